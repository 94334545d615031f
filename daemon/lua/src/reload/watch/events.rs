//! Sorting events of the system: which entry of a plugin folder they concern.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use notify::Event;
use notify::event::{AccessKind, AccessMode, CreateKind, EventKind, ModifyKind, RemoveKind, RenameMode};

use crate::plugin::content::is_passing;
use crate::reload::dirs::ResolvedDir;
use crate::reload::watch::LinkTargets;
use crate::reload::watch::changes::{PendingChanges, WatchTarget};

pub(super) fn sort(event: &Event, dirs: &BTreeMap<usize, ResolvedDir>, links: &LinkTargets, changes: &PendingChanges) {
    if event.need_rescan() {
        return dirs.keys().for_each(|dir| changes.due_now(WatchTarget::Dir(*dir)));
    }
    for path in &event.paths {
        for (target, link_target) in &*links.lock() {
            let passing = path.file_name().is_some_and(|name| is_passing(&name.to_string_lossy()));
            if path.starts_with(link_target) && !passing {
                sort_entry(event.kind, path, target.clone(), changes);
            }
        }
        for (&index, dir) in dirs {
            let dir = dir.folder();
            if dir.starts_with(path) {
                // The folder itself, or one above it, was made or removed.
                match event.kind {
                    EventKind::Create(_) | EventKind::Remove(_) | EventKind::Modify(ModifyKind::Name(_)) => {
                        changes.due_now(WatchTarget::Dir(index));
                    }
                    _ => {}
                }
            } else if let Some(entry) = entry_of(dir, path) {
                sort_entry(event.kind, path, WatchTarget::Entry(index, entry), changes);
            }
        }
    }
}

fn sort_entry(kind: EventKind, path: &Path, target: WatchTarget, changes: &PendingChanges) {
    match kind {
        EventKind::Access(AccessKind::Close(AccessMode::Write))
        | EventKind::Modify(ModifyKind::Name(RenameMode::To)) => changes.due_now(target),
        EventKind::Remove(RemoveKind::Any | RemoveKind::File | RemoveKind::Folder | RemoveKind::Other)
        | EventKind::Modify(ModifyKind::Name(RenameMode::From)) => changes.due_when_gone(target),
        EventKind::Create(CreateKind::Any | CreateKind::File | CreateKind::Folder | CreateKind::Other)
        | EventKind::Modify(ModifyKind::Any | ModifyKind::Data(_) | ModifyKind::Other)
        | EventKind::Modify(ModifyKind::Name(RenameMode::Any | RenameMode::Other))
        | EventKind::Any => changes.due_when_quiet(target, path),
        // `Both` repeats `From` and `To`; reading is no change, and neither is a new mode or time.
        EventKind::Modify(ModifyKind::Name(RenameMode::Both) | ModifyKind::Metadata(_))
        | EventKind::Access(_)
        | EventKind::Other => {}
    }
}

/// The entry of a plugin folder that a path belongs to; `None` for temporary files of editors.
pub(super) fn entry_of(dir: &Path, path: &Path) -> Option<PathBuf> {
    let within = path.strip_prefix(dir).ok()?;
    let mut parts = within.components();
    let Component::Normal(first) = parts.next()? else { return None };
    let passing = within.components().any(|part| is_passing(&part.as_os_str().to_string_lossy()));
    (!passing).then(|| dir.join(first))
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use toold_host::folders::EMPTY;

    use super::*;
    use crate::reload::options::{DirKind, PluginDir};

    #[test]
    fn a_path_belongs_to_its_first_entry() {
        let dir = Path::new("/p");
        assert_eq!(entry_of(dir, Path::new("/p/a.lua")), Some("/p/a.lua".into()));
        assert_eq!(entry_of(dir, Path::new("/p/git/lib/x.lua")), Some("/p/git".into()));
        assert_eq!(entry_of(dir, Path::new("/p/git/.git/index")), None);
        assert_eq!(entry_of(dir, Path::new("/q/a.lua")), None);
    }

    #[test]
    fn a_file_that_was_emptied_is_waited_for_until_it_is_written_or_closed() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().canonicalize().unwrap();
        let path = folder.join("a.lua");
        let dirs = BTreeMap::from([(0, ResolvedDir::new(PluginDir { path: folder, kind: DirKind::User }))]);
        let (links, changes) = (LinkTargets::default(), PendingChanges::default());
        let sort_event = |kind| sort(&Event::new(kind).add_path(path.clone()), &dirs, &links, &changes);
        let written = EventKind::Modify(ModifyKind::Data(notify::event::DataChange::Any));
        std::fs::write(&path, "").unwrap();
        let before = Instant::now();
        sort_event(written);
        let (ready, next) = changes.take_due();
        assert!(ready.is_empty() && next.unwrap() >= before + EMPTY);
        std::fs::write(&path, "return 1").unwrap();
        sort_event(written);
        let (ready, next) = changes.take_due();
        assert!(!ready.is_empty() || next.unwrap() <= Instant::now() + Duration::from_millis(10));
        std::fs::write(&path, "").unwrap();
        sort_event(EventKind::Access(AccessKind::Close(AccessMode::Write)));
        assert_eq!(changes.take_due().0, [WatchTarget::Entry(0, path.clone())]);
    }
}
