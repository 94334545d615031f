//! The files and folders that a session has made: those that its calls created, and that nobody else has changed since.

use std::collections::{HashMap, HashSet};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use toold_host::files;

use super::ChangeRecord;
use super::state::{PathState, RawPath};
use crate::stamps::FileDigest;

/// The most files and folders that are looked at, and the most bytes that are read.
const MAX_ENTRIES: usize = 5_000;
const MAX_BYTES: u64 = 64 << 20;

/// Whether the session of these records, oldest first, made what is at a path with all that is in it, after `since`, and whether
/// it is still as the session left it. False where that is not certain, and for files that were moved there. Reads the files.
pub(crate) fn made(records: &[ChangeRecord], path: &Path, since: SystemTime) -> bool {
    let known = made_states(records);
    let (mut left, mut entries, mut bytes) = (vec![path.to_owned()], 0, 0);
    while let Some(path) = left.pop() {
        let Ok(facts) = path.symlink_metadata() else { continue };
        entries += 1;
        bytes += if facts.is_file() { facts.len() } else { 0 };
        // One that was moved here from elsewhere is older. Not all file systems know when a file was created.
        let was_made_before = || facts.created().is_ok_and(|time| time < since);
        let is_old = facts.is_file() && (was_made_before() || !facts.modified().is_ok_and(|time| time >= since));
        if entries > MAX_ENTRIES || bytes > MAX_BYTES || is_old {
            return false;
        }
        let mode = Some(facts.mode() & 0o7777);
        let state = match facts.file_type() {
            kind if kind.is_dir() => {
                let Ok(inside) = std::fs::read_dir(&path).and_then(Iterator::collect::<std::io::Result<Vec<_>>>) else {
                    return false;
                };
                left.extend(inside.iter().map(std::fs::DirEntry::path));
                PathState::Folder { mode, attributes: None }
            }
            kind if kind.is_symlink() => {
                let Ok(target) = files::link_target(&path) else { return false };
                PathState::Link { target: RawPath(target) }
            }
            kind if kind.is_file() => {
                let Ok(content) = files::read_named(&path, MAX_BYTES) else { return false };
                PathState::File { content: Some(blake3::hash(&content)), mode, size: facts.len(), attributes: None }
            }
            _ => return false,
        };
        if !known.get(&path).is_some_and(|known| known.is_some_and(|known| known.is_like(&state))) {
            return false;
        }
    }
    true
}

/// By path, what the session made there and left; `None` where it did not make it, or where that is not certain.
fn made_states(records: &[ChangeRecord]) -> HashMap<PathBuf, Option<&PathState>> {
    let mut known: HashMap<PathBuf, Option<&PathState>> = HashMap::new();
    for record in records {
        let is_certain = record.is_of_one_call() && !record.undone;
        let gone: HashSet<FileDigest> = record
            .changes
            .iter()
            .filter(|change| change.after.is_none())
            .filter_map(|change| change.before.as_ref()?.content())
            .collect();
        for change in &record.changes {
            let was_moved = || {
                let content = change.after.as_ref().and_then(PathState::content);
                content.is_some_and(|content| gone.contains(&content))
            };
            let was_own = || known.get(&change.path.0).is_some_and(Option::is_some);
            let is_own = is_certain && if change.before.is_none() { !was_moved() } else { was_own() };
            let state = change.after.as_ref().filter(|_| is_own);
            known.insert(change.path.0.clone(), state);
        }
    }
    known
}

#[cfg(test)]
mod tests {
    use toold_proto::tool::{CallId, SessionId, ToolName};

    use super::super::PathChange;
    use super::*;

    fn record(changes: Vec<PathChange>) -> ChangeRecord {
        ChangeRecord {
            session_id: SessionId::parse("s").unwrap(),
            call_id: CallId::parse("c").unwrap(),
            tool: ToolName::parse("bash").unwrap(),
            agent: None,
            command: None,
            at: SystemTime::UNIX_EPOCH,
            changes,
            shared_with: Vec::new(),
            beyond: Default::default(),
            undone: false,
            kept: PathBuf::new(),
        }
    }

    fn state(path: &Path) -> Option<PathState> {
        let facts = path.symlink_metadata().unwrap();
        let mode = Some(facts.mode() & 0o7777);
        Some(match facts.is_dir() {
            true => PathState::Folder { mode, attributes: None },
            false => {
                let content = Some(blake3::hash(&std::fs::read(path).unwrap()));
                PathState::File { content, mode, size: facts.len(), attributes: None }
            }
        })
    }

    #[test]
    fn what_is_as_the_session_made_it_is_its_own() {
        let since = SystemTime::now() - std::time::Duration::from_secs(60);
        let folder = tempfile::tempdir().unwrap();
        let (top, file) = (folder.path().join("made"), folder.path().join("made/a.txt"));
        std::fs::create_dir(&top).unwrap();
        std::fs::write(&file, "text\n").unwrap();
        let is_made = |records: &[ChangeRecord]| made(records, &top, since);
        let new = |path: &Path| PathChange::new(path, None, state(path));
        let both = || vec![new(&top), new(&file)];
        assert!(is_made(&[record(both())]));
        assert!(is_made(&[record(vec![new(&top)]), record(vec![new(&file)])]));
        // It was there before, or only a part is the session's.
        assert!(!is_made(&[]) && !is_made(&[record(vec![new(&top)])]));
        assert!(!is_made(&[record(vec![new(&top), PathChange::new(&file, state(&file), state(&file))])]));
        // It was moved there, by the same call; a file that was removed before and made again was not.
        let gone = PathChange::new(&folder.path().join("from.txt"), state(&file), None);
        assert!(!is_made(&[record([both(), vec![gone.clone()]].concat())]));
        assert!(is_made(&[record(vec![gone]), record(both())]));
        // Others may have made it, it was undone, or it is older than the session.
        assert!(!is_made(&[ChangeRecord { shared_with: vec!["t/d".to_owned()], ..record(both()) }]));
        assert!(!is_made(&[ChangeRecord { undone: true, ..record(both()) }]));
        assert!(!made(&[record(both())], &top, SystemTime::now() + std::time::Duration::from_secs(60)));
        // It was changed since, or something was put beside it.
        let records = [record(both())];
        std::fs::write(top.join("b.txt"), "").unwrap();
        assert!(!is_made(&records));
        std::fs::remove_file(top.join("b.txt")).unwrap();
        assert!(is_made(&records));
        std::fs::write(&file, "Text\n").unwrap();
        assert!(!is_made(&records));
    }
}
