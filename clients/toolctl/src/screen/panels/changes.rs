//! The changes that tools made to files, the newest first.

use toold_proto::file::{FileChange, UndoFiles};

use crate::clock::date_and_time_in;
use crate::screen::daemon_data::DaemonData;
use crate::screen::details::{Details, DetailsQuery, field};
use crate::screen::panel::PanelRow;
use crate::views::changes;

pub(in crate::screen) fn find<'a>(data: &'a DaemonData, wanted: &str) -> Option<&'a FileChange> {
    data.changes.iter().find(|change| key(change) == wanted)
}

fn key(change: &FileChange) -> String {
    format!("{}/{}/{}", change.session_id, change.call_id.as_str(), change.path)
}

pub(in crate::screen) fn rows(data: &DaemonData) -> Vec<PanelRow> {
    let row = |change: &FileChange| PanelRow { key: key(change), cells: changes::cells(change, data.zone) };
    data.changes.iter().rev().map(row).collect()
}

/// Undoes the call that made the change: the last change of a file could be another call's.
pub(in crate::screen) fn undo(change: &FileChange) -> UndoFiles {
    UndoFiles {
        call_id: Some(change.call_id.clone()),
        session_id: Some(change.session_id.clone()),
        all: true,
        ..UndoFiles::default()
    }
}

pub(in crate::screen) fn details(data: &DaemonData, wanted: &str) -> Option<Details> {
    let change = find(data, wanted)?;
    let lines = vec![
        field("state", &changes::state(change).text),
        field("tool", &change.tool),
        field("call", change.call_id.as_ref()),
        field("session", change.session_id.as_str()),
        field("at", &date_and_time_in(&change.at, data.zone)),
    ];
    let query = (!change.undone).then(|| DetailsQuery::Change(undo(change)));
    Some(Details { title: change.path.clone(), lines, query })
}
