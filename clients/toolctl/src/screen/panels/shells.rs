//! Commands in the background.

use toold_proto::shell::ShellInfo;

use crate::clock::date_and_time_in;
use crate::output;
use crate::screen::daemon_data::DaemonData;
use crate::screen::details::{Details, field};
use crate::screen::panel::PanelRow;
use crate::screen::text::PaneLine;
use crate::views::{Tone, shells};

pub(in crate::screen) fn find<'a>(data: &'a DaemonData, wanted: &str) -> Option<&'a ShellInfo> {
    data.shells.iter().find(|shell| key(shell) == wanted)
}

/// Shells are numbered in their session.
fn key(shell: &ShellInfo) -> String {
    format!("{}/{}", shell.session_id, shell.shell_id)
}

pub(in crate::screen) fn rows(data: &DaemonData) -> Vec<PanelRow> {
    let row = |shell: &ShellInfo| PanelRow { key: key(shell), cells: shells::cells(shell) };
    data.shells.iter().map(row).collect()
}

pub(in crate::screen) fn details(data: &DaemonData, wanted: &str) -> Option<Details> {
    let shell = find(data, wanted)?;
    let mut lines = vec![
        field("command", &shell.command),
        field("status", &shell.status),
        field("folder", &shell.cwd),
        field("session", shell.session_id.as_str()),
        field("call", shell.call_id.as_ref()),
        field("started", &date_and_time_in(&shell.started_at, data.zone)),
        field("output", &output::bytes(shell.output_bytes)),
    ];
    if shell.running {
        lines.push(PaneLine::empty());
        lines.push(PaneLine::new(Tone::Dim, format!("to see its output: toolctl shells attach {}", shell.shell_id)));
    }
    Some(Details { title: shell.shell_id.clone(), lines, query: None })
}
