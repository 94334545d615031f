//! The sessions in which clients work.

use toold_proto::session::SessionInfo;

use crate::clock::date_and_time_in;
use crate::screen::daemon_data::DaemonData;
use crate::screen::details::{Details, DetailsQuery, field};
use crate::screen::panel::PanelRow;
use crate::views::sessions;

pub(in crate::screen) fn find<'a>(data: &'a DaemonData, wanted: &str) -> Option<&'a SessionInfo> {
    data.sessions.iter().find(|session| session.session_id.as_str() == wanted)
}

pub(in crate::screen) fn rows(data: &DaemonData) -> Vec<PanelRow> {
    let row = |session: &SessionInfo| PanelRow {
        key: session.session_id.as_str().to_owned(),
        cells: sessions::cells(session),
    };
    data.sessions.iter().map(row).collect()
}

pub(in crate::screen) fn details(data: &DaemonData, wanted: &str) -> Option<Details> {
    let session = find(data, wanted)?;
    let client = session.client.as_ref().map(|client| {
        format!("{} {}", client.name, client.version.as_deref().unwrap_or_default()).trim_end().to_owned()
    });
    let mut lines = vec![
        field("client", client.as_deref().unwrap_or("unknown")),
        field("mode", &sessions::mode(session.mode)),
        field("level", session.level.as_str()),
        field("folder", &session.cwd),
        field("project", &session.project),
        field("opened", &date_and_time_in(&session.opened_at, data.zone)),
        field("connections", &session.connections.to_string()),
        field("calls", &session.calls.to_string()),
    ];
    lines.extend(session.roots.iter().map(|root| field("root", root)));
    let query = DetailsQuery::Session(session.session_id.clone(), data.zone);
    Some(Details { title: format!("session {wanted}"), lines, query: Some(query) })
}
