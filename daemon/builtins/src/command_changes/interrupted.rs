//! What commands had changed when their daemon was killed: the difference between the index that it left and what is
//! there now.

use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

use super::index::{FolderIndex, WindowChanges};
use super::index_log::{LeftLog, LogLine};
use crate::journal::{AFTER_A_KILL, ChangingCall, Journal, JournalScope, PathChange, RawPath, UnrecordedChanges};

/// How long commands may go on after their daemon has ended, and how much older than that its last sign of life may be.
const TO_END: Duration = Duration::from_secs(4);

/// Records the changes of all calls that daemons have left in the middle. Blocks.
pub(super) fn record(journal: &Journal) {
    let Some(folder) = journal.folder() else { return };
    for log in LeftLog::all(&FolderIndex::log_folder(folder)) {
        record_left(journal, &log);
    }
}

fn record_left(journal: &Journal, log: &LeftLog) {
    let Ok(contents) = journal.contents() else { return };
    let mut calls: HashMap<u64, ChangingCall> = HashMap::new();
    let Some(mut index) = replayed(log, &mut calls) else { return };
    if calls.is_empty() || index.catch_up(contents).is_err() {
        return;
    }
    let recorded = journal.read(JournalScope::Everybody);
    let is_recorded = |call: &ChangingCall| {
        recorded.iter().any(|record| record.call_id == call.call_id && record.session_id == call.session_id)
    };
    let end = log.alive_until() + TO_END;
    for (id, call) in calls {
        let mut changes = index.finish(id);
        changes.set_lost_aside();
        let WindowChanges { own, shared, contested, shared_with, not_kept, .. } = changes;
        if is_recorded(&call) {
            continue;
        }
        let (certain, later): (Vec<PathChange>, Vec<PathChange>) =
            own.into_iter().partition(|change| is_before(change.path.path(), end));
        // Nobody is there to be told that it failed.
        let not_kept = not_kept.into_iter().map(RawPath).collect();
        let beyond = UnrecordedChanges { not_kept, ..UnrecordedChanges::default() };
        let _ = journal.record_with(&call, certain, Vec::new(), beyond);
        let mut others: Vec<String> = shared_with.into_iter().collect();
        others.push(AFTER_A_KILL.to_owned());
        let _ = journal.record(&call, [shared, contested, later].concat(), others);
    }
}

/// The index at the end of the log, and the calls that ran then.
fn replayed(log: &LeftLog, calls: &mut HashMap<u64, ChangingCall>) -> Option<FolderIndex> {
    let mut index: Option<FolderIndex> = None;
    for line in log.lines() {
        match (line, &mut index) {
            (LogLine::Folder { root, own_folder, device }, _) => {
                index = Some(FolderIndex::of_log(root.path(), own_folder.as_ref().map(|own| own.path()), device));
            }
            (_, None) => return None,
            (LogLine::Path(path, entry), Some(index)) => index.set(path.path(), entry),
            (LogLine::Adopted(path, entry), Some(index)) => index.set_adopted(path.path(), entry),
            (LogLine::Open { id, call, may_write, opened }, Some(index)) => {
                index.add_window(id, &call, may_write, opened);
                calls.insert(id, call);
            }
            (LogLine::Others(paths), Some(index)) => {
                index.expect_others(paths.iter().map(|path| &path.0));
            }
            (LogLine::Close { id }, Some(index)) => {
                calls.remove(&id);
                drop(index.finish(id));
            }
        }
    }
    index
}

/// Whether nothing has happened at a path after a moment, as far as the file system knows.
fn is_before(path: &Path, moment: SystemTime) -> bool {
    // Of what is gone, its folder has the time.
    let facts = path.ancestors().find_map(|place| place.symlink_metadata().ok());
    let changed = facts.and_then(|facts| {
        let seconds = u64::try_from(facts.ctime()).ok()?;
        let nanos = u32::try_from(facts.ctime_nsec()).ok()?;
        Some(SystemTime::UNIX_EPOCH + Duration::new(seconds, nanos))
    });
    changed.is_some_and(|changed| changed <= moment)
}
