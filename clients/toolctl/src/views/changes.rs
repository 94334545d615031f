//! The changes that tools made to files.

use toold_proto::file::FileChange;

use super::{Column, FILL, Tone, ViewCell, column, time_column, whole_column};
use crate::clock::Zone;

pub(crate) const COLUMNS: &[Column] = &[
    time_column("AT", 2),
    column("TOOL", 6, 20, 2),
    column("SESSION", 10, 36, 4),
    column("CALL", 10, 36, 5),
    column("STATE", 7, 14, 1),
    whole_column("FILE", 14, FILL),
];

pub(crate) fn cells(change: &FileChange, zone: Zone) -> Vec<ViewCell> {
    vec![
        ViewCell::time(&change.at, zone),
        ViewCell::plain(&change.tool),
        ViewCell::plain(change.session_id.as_str()),
        ViewCell::plain(change.call_id.as_str()),
        state(change),
        ViewCell::path(Tone::Name, &change.path),
    ]
}

pub(crate) fn state(change: &FileChange) -> ViewCell {
    let (tone, state) = match change {
        FileChange { undone: true, .. } => (Tone::Dim, "undone"),
        FileChange { shared_with, .. } if !shared_with.is_empty() => (Tone::Warn, "one of several"),
        FileChange { created: true, .. } => (Tone::Good, "created"),
        FileChange { removed: true, .. } => (Tone::Bad, "removed"),
        FileChange { .. } => (Tone::Warn, "changed"),
    };
    ViewCell::new(tone, state)
}
