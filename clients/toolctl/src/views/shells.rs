//! Commands in the background.

use toold_proto::shell::ShellInfo;

use super::{Column, FILL, Tone, ViewCell, column};
use crate::output;

pub(crate) const COLUMNS: &[Column] = &[
    column("SHELL", 6, 12, 0),
    column("STATUS", 7, 18, 1),
    column("TERMINAL", 8, 9, 5),
    column("OUTPUT", 8, 10, 3),
    column("COMMAND", 12, FILL, 2),
    column("FOLDER", 12, 40, 4),
    column("SESSION", 10, 40, 6),
];

pub(crate) fn cells(shell: &ShellInfo) -> Vec<ViewCell> {
    vec![
        ViewCell::name(&shell.shell_id),
        ViewCell::new(if shell.running { Tone::Good } else { Tone::Dim }, &shell.status),
        ViewCell::plain(shell.terminal.map(|size| format!("{}x{}", size.cols, size.rows)).unwrap_or_default()),
        ViewCell::plain(output::bytes(shell.output_bytes)).number(shell.output_bytes as f64),
        ViewCell::plain(&shell.command),
        ViewCell::path(Tone::Plain, &shell.cwd),
        ViewCell::plain(shell.session_id.as_str()),
    ]
}
