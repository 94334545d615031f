//! The sessions in which clients work.

use toold_proto::session::{Mode, SessionInfo};

use super::{Column, FILL, Tone, ViewCell, column};

pub(crate) const COLUMNS: &[Column] = &[
    // Its first characters tell it from the others; the folder needs the room more.
    column("SESSION", 10, FILL, 2),
    column("CLIENT", 8, 20, 0),
    column("MODE", 7, 13, 3),
    column("LEVEL", 7, 8, 5),
    column("CALLS", 6, 8, 4),
    column("FOLDER", 12, FILL, 1),
];

pub(crate) fn cells(session: &SessionInfo) -> Vec<ViewCell> {
    vec![
        ViewCell::name(session.session_id.as_str()),
        ViewCell::plain(session.client.as_ref().map(|client| client.name.as_str()).unwrap_or_default()),
        ViewCell::plain(mode(session.mode)),
        ViewCell::plain(session.level.as_str()),
        ViewCell::plain(session.calls.to_string()).number(session.calls as f64),
        ViewCell::path(Tone::Plain, &session.cwd),
    ]
}

pub(crate) fn mode(mode: Mode) -> String {
    serde_json::to_value(mode).unwrap_or_default().as_str().unwrap_or_default().to_owned()
}
