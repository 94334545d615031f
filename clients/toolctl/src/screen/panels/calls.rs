//! The calls that run.

use toold_proto::tool::SessionId;

use crate::live::BAR_CHARS;
use crate::output;
use crate::prompts::WaitingPrompt;
use crate::screen::daemon_data::{DaemonData, RunningCall};
use crate::screen::details::{Details, DetailsQuery, field};
use crate::screen::panel::PanelRow;
use crate::screen::text::PaneLine;
use crate::views::{Column, FILL, Tone, ViewCell, column};

pub(in crate::screen) const COLUMNS: &[Column] = &[
    column("TOOL", 8, 28, 0),
    column("TIME", 7, 12, 1),
    column("PROGRESS", 9, 17, 3),
    column("WHO", 6, 20, 2),
    column("ARGUMENTS", 12, 60, 5),
    column("MESSAGE", 12, FILL, 4),
    column("FOLDER", 10, 40, 6),
];

/// The cells of a full bar.
const BAR: usize = 10;

pub(in crate::screen) fn key(session_id: &SessionId, call_id: &str) -> String {
    format!("{session_id}/{call_id}")
}

pub(in crate::screen) fn find<'a>(data: &'a DaemonData, wanted: &str) -> Option<&'a RunningCall> {
    data.running.iter().find(|call| key(&call.session_id, call.call_id.as_str()) == wanted)
}

pub(in crate::screen) fn rows(data: &DaemonData) -> Vec<PanelRow> {
    let row = |call: &RunningCall| {
        let ms = elapsed_ms(call);
        let ratio = call.ratio.unwrap_or(-1.0);
        let waits = waits_for(data, call);
        let message = match &waits {
            Some(waits) => ViewCell::new(Tone::Warn, waits),
            None => ViewCell::plain(&call.message),
        };
        PanelRow {
            key: key(&call.session_id, call.call_id.as_str()),
            cells: vec![
                ViewCell::name(&call.tool),
                ViewCell::plain(output::duration(ms)).number(ms as f64),
                ViewCell::plain(call.ratio.map(bar).unwrap_or_default())
                    .short(call.ratio.map(percent).unwrap_or_default())
                    .number(ratio),
                ViewCell::plain(who(data, call)),
                ViewCell::plain(call.arguments.as_deref().unwrap_or_default()),
                message,
                ViewCell::path(Tone::Plain, folder(data, call)),
            ],
        }
    };
    data.running.iter().map(row).collect()
}

/// `━━━━━━━─── 70 %`. Lines, because blocks mean the opposite in a row whose colours are reversed.
pub(in crate::screen) fn bar(ratio: f64) -> String {
    let full = (ratio * BAR as f64).round() as usize;
    let [done, left] = BAR_CHARS;
    format!("{}{} {}", done.repeat(full), left.repeat(BAR - full), percent(ratio))
}

fn percent(ratio: f64) -> String {
    format!("{:.0} %", ratio * 100.0)
}

fn elapsed_ms(call: &RunningCall) -> u64 {
    u64::try_from(call.since.elapsed().unwrap_or_default().as_millis()).unwrap_or(u64::MAX)
}

pub(in crate::screen) fn who(data: &DaemonData, call: &RunningCall) -> String {
    let of_session = || data.session(&call.session_id)?.client.as_ref().map(|client| client.name.clone());
    call.client.clone().or_else(of_session).unwrap_or_default()
}

fn folder(data: &DaemonData, call: &RunningCall) -> String {
    let of_session = || data.session(&call.session_id).map(|session| session.cwd.clone());
    call.cwd.clone().or_else(of_session).unwrap_or_default()
}

fn waits_for(data: &DaemonData, call: &RunningCall) -> Option<String> {
    Some(match data.prompt_of(call)? {
        WaitingPrompt::Permission(ask) => format!("asks for {}: {}", ask.category, ask.target),
        WaitingPrompt::Question(question) => format!("asks you: {}", question.question),
    })
}

pub(in crate::screen) fn details(data: &DaemonData, wanted: &str) -> Option<Details> {
    let call = find(data, wanted)?;
    let mut lines = vec![
        field("who", &who(data, call)),
        field("session", call.session_id.as_str()),
        field("call", call.call_id.as_ref()),
        field("folder", &folder(data, call)),
        field("runs for", &output::duration(elapsed_ms(call))),
    ];
    lines.extend(call.arguments.as_deref().map(|arguments| field("arguments", arguments)));
    lines.extend(call.ratio.map(|ratio| field("progress", &bar(ratio))));
    lines.extend((!call.message.is_empty()).then(|| field("message", &call.message)));
    lines.extend(waits_for(data, call).map(|waits| PaneLine::new(Tone::Warn, waits)));
    let query = DetailsQuery::Call(call.call_id.clone(), call.session_id.clone());
    Some(Details { title: call.tool.clone(), lines, query: Some(query) })
}
