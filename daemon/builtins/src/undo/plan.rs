//! What an undo does: for each path, what the calls left there, and what was there before.

use std::collections::BTreeMap;
use std::fs::{File, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use toold_host::files::{self, EntryStat, FileType, OpenError, UserAttributes};

use super::UndoError;
use crate::journal::state::MAX_KEPT_FILE;
use crate::journal::{
    ChangeRecord, FileVersion, ForeignFile, InodeId, Journal, JournalScope, PathChange, PathState, RawPath, SpecialKind,
};

/// What must be there, and what was there before, for each path.
pub(super) struct Plan {
    pub(super) steps: BTreeMap<PathBuf, PlanStep>,
    newest: SystemTime,
}

pub(super) struct PlanStep {
    pub(super) before: Option<PathState>,
    after: Option<PathState>,
    /// The file that was there before.
    pub(super) was: Option<InodeId>,
    /// Another path that this file had after the calls.
    pub(super) other: Option<PathBuf>,
    /// The file that the calls left, if that is known.
    left: Option<FileVersion>,
    foreign: Option<ForeignFile>,
}

/// Which undo this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UndoAttempt {
    First,
    /// One that was interrupted goes on: it may have left a path between the two states.
    Again,
}

impl Plan {
    /// The records are given newest first.
    pub(super) fn of(records: &[ChangeRecord]) -> Result<Self, UndoError> {
        let newest = records.first().ok_or(UndoError::Nothing)?.at;
        let mut steps: BTreeMap<PathBuf, PlanStep> = BTreeMap::new();
        for change in records.iter().flat_map(|record| &record.changes) {
            let Some(step) = steps.get_mut(change.path.path()) else {
                steps.insert(change.path.0.clone(), PlanStep::of(change));
                continue;
            };
            if change.foreign == Some(ForeignFile::Moved) {
                // The file with the newer changes may be the only copy.
                let why = "an older change had moved it here from outside of the session's folders: undo the newer ones by \
                           themselves";
                return Err(UndoError::NotKept { path: change.path.0.clone(), why });
            }
            if is_same(&step.before, &change.after) {
                let linked = change.left.filter(|_| change.foreign.is_some()).map(|left| left.file);
                if step.was.zip(linked).is_some_and(|(was, linked)| was.is(linked)) {
                    // Its other names would keep what the newer change made of it.
                    let why = "a newer change was written into the file that an older one had linked here: undo the newer \
                               one by itself first";
                    return Err(UndoError::NotKept { path: change.path.0.clone(), why });
                }
                let before = match (change.before.clone(), &step.before) {
                    (Some(before), Some(later)) => Some(before.with_untouched_of(later)),
                    (before, _) => before,
                };
                (step.before, step.was) = (before, change.was);
                step.other = change.other.clone().map(|path| path.0);
            } else if !is_same(&step.before, &change.before) {
                // Somebody else changed it between the two, and did more than take back the older change.
                return Err(UndoError::Changed { path: change.path.0.clone(), by: None });
            }
        }
        Ok(Self { steps, newest })
    }

    /// Fails unless a path is as these calls left it, or as it was before them: then nothing is lost.
    pub(super) fn check(
        &self,
        (path, step): (&Path, &PlanStep),
        now: &Present,
        attempt: UndoAttempt,
        journal: &Journal,
    ) -> Result<(), UndoError> {
        let fits = match attempt {
            UndoAttempt::First => step.is_left(now) || step.is_undone(now),
            UndoAttempt::Again => step.is_left(now) || step.is_undone(now) || step.is_between(now),
        };
        if !fits {
            return Err(UndoError::Changed { path: path.to_owned(), by: self.later_change(path, journal) });
        }
        if step.is_undone(now) {
            return Ok(());
        }
        let foreign = match step.foreign {
            // Even if it is another file by now, such as after an undo of its removal: it is the only one with this content.
            Some(ForeignFile::Moved) => Some(ForeignFile::Moved),
            linked => linked
                .filter(|_| now.is(step.left()))
                .map(|file| if now.has_other_names { file } else { ForeignFile::Moved }),
        };
        let lost = foreign.and_then(ForeignFile::lost_because);
        match lost.or_else(|| step.before.as_ref().and_then(PathState::lost_because)) {
            Some(why) => Err(UndoError::NotKept { path: path.to_owned(), why }),
            None => Ok(()),
        }
    }

    /// The call that changed a path since, and was not undone.
    fn later_change(&self, path: &Path, journal: &Journal) -> Option<String> {
        let all = journal.read(JournalScope::Everybody).into_iter().rev();
        let mut later = all.take_while(|record| record.at > self.newest).filter(|record| !record.undone);
        let by = later.find(|record| record.changes.iter().any(|change| change.path.path() == path));
        by.map(|record| record.name())
    }
}

impl PlanStep {
    fn of(change: &PathChange) -> Self {
        let PathChange { before, after, was, other, left, foreign, .. } = change.clone();
        Self { before, after, was, other: other.map(|path| path.0), left, foreign }
    }

    /// The file that the calls left.
    pub(super) fn left(&self) -> Option<InodeId> {
        self.left.map(|left| left.file)
    }

    /// What an undo makes of the path: what was there before, but with the permission bits that it has now if the calls did not
    /// set them.
    pub(super) fn wanted(&self, now: &Option<PathState>) -> Option<PathState> {
        let mut wanted = self.before.clone()?;
        let mode = |state: &Option<PathState>| state.as_ref().and_then(PathState::mode);
        let is_kind = |other: &PathState| std::mem::discriminant(other) == std::mem::discriminant(&wanted);
        if mode(&self.before) == mode(&self.after)
            && self.after.as_ref().is_some_and(is_kind)
            && now.as_ref().is_some_and(is_kind)
        {
            wanted.set_mode(mode(now));
        }
        Some(wanted)
    }

    /// It is as the calls left it. The permission bits count if the calls set them.
    fn is_left(&self, now: &Present) -> bool {
        let mode = |state: &Option<PathState>| state.as_ref().and_then(PathState::mode);
        let sets_mode = mode(&self.before) != mode(&self.after);
        let compared = |state: &Option<PathState>| match sets_mode {
            true => state.clone(),
            false => state.as_ref().map(PathState::without_mode),
        };
        if let (Some(left), Some(PathState::File { content: None, .. })) = (self.left, &self.after) {
            let is_it = |version: FileVersion| version.file.is(left.file) && version.modified == left.modified;
            return now.version.is_some_and(|version| version.size == left.size && is_it(version));
        }
        if is_same(&compared(&now.state), &compared(&self.after)) {
            return true;
        }
        // A folder that the calls made and that has got another mode loses nothing.
        let is_made_folder = self.before.is_none() && self.after.as_ref().is_some_and(PathState::is_folder);
        is_made_folder && now.state.as_ref().is_some_and(PathState::is_folder)
    }

    /// It is as before the calls, whoever did that.
    pub(super) fn is_undone(&self, now: &Present) -> bool {
        is_same(&now.state, &self.before)
    }

    /// It is as an undo leaves it in between: removed, or with other permission bits. Only a file with several names can be
    /// half written.
    fn is_between(&self, now: &Present) -> bool {
        if now.has_other_names && now.is(self.was) && self.left().is_none_or(|left| now.is(Some(left))) {
            return true;
        }
        let is = |state: &Option<PathState>| match (&now.state, state) {
            (Some(now), Some(state)) => now.has_content_of(state),
            (now, state) => now.is_none() && state.is_none(),
        };
        now.state.is_none() || is(&self.before) || is(&self.after)
    }
}

/// Whether two states are the same, as far as both are known.
fn is_same(one: &Option<PathState>, other: &Option<PathState>) -> bool {
    let (Some(one), Some(other)) = (one, other) else { return one.is_none() && other.is_none() };
    // What is not known is not the same.
    let is_known = !matches!(one, PathState::File { content: None, .. });
    is_known && one.is_like(other)
}

/// What is at a path; nothing, if a folder on the way is a link by now.
pub(super) fn entry_at(path: &Path) -> Result<Option<EntryStat>, UndoError> {
    match files::stat_entry(path) {
        Err(OpenError::Swapped(_)) => Ok(None),
        found => Ok(found?),
    }
}

/// Folders that a call has made inaccessible, and that were opened to look at what is in them. Dropped, they are as before.
#[derive(Default)]
pub(super) struct OpenedFolders(Vec<(PathBuf, u32)>);

impl OpenedFolders {
    /// Called for folders before what is in them.
    pub(super) fn open(&mut self, path: &Path, now: &Present) -> Result<(), UndoError> {
        if let Some(PathState::Folder { mode: Some(mode), .. }) = now.state
            && mode & 0o700 != 0o700
        {
            files::set_mode(path, mode | 0o700)
                .map_err(|error| UndoError::from(error).of_step("open up the folder", path))?;
            self.0.push((path.to_owned(), mode));
        }
        Ok(())
    }

    /// Somebody else sets the permission bits.
    pub(super) fn keep_open(mut self) {
        self.0.clear();
    }
}

impl Drop for OpenedFolders {
    fn drop(&mut self) {
        for (path, mode) in self.0.iter().rev() {
            // It was possible a moment ago.
            let _ = files::set_mode(path, *mode);
        }
    }
}

/// What is at a path now.
pub(super) struct Present {
    pub(super) state: Option<PathState>,
    pub(super) file: Option<File>,
    /// `None` if it is too large to be kept, or cannot be read.
    pub(super) content: Option<Vec<u8>>,
    pub(super) version: Option<FileVersion>,
    pub(super) has_other_names: bool,
}

impl Present {
    pub(super) fn at(path: &Path) -> Result<Self, UndoError> {
        let Some(stat) = entry_at(path)? else { return Ok(Self::of(None)) };
        Ok(match stat.kind {
            FileType::Directory => {
                let attributes = files::open_folder(path).ok().map(UserAttributes::of);
                Self::of(Some(PathState::Folder { mode: Some(stat.mode), attributes }))
            }
            FileType::Symlink => Self::of(Some(PathState::Link { target: RawPath(files::link_target(path)?) })),
            FileType::RegularFile => Self::of_file(path)?,
            kind => Self::of(Some(PathState::Special { what: SpecialKind::of(kind), mode: Some(stat.mode) })),
        })
    }

    fn of(state: Option<PathState>) -> Self {
        Self { state, file: None, content: None, version: None, has_other_names: false }
    }

    fn of_file(path: &Path) -> Result<Self, UndoError> {
        let mut file = match files::open(path) {
            Ok(file) => file,
            Err(OpenError::System { source, .. }) if source.kind() == std::io::ErrorKind::PermissionDenied => {
                let facts = std::fs::symlink_metadata(path);
                let facts = facts.map_err(|source| UndoError::Read { path: path.to_owned(), source })?;
                return Ok(Self::with_facts(&facts, (None, None), None));
            }
            Err(error) => return Err(error.into()),
        };
        let facts = file.metadata().map_err(|source| UndoError::Read { path: path.to_owned(), source })?;
        let content = match facts.size() > MAX_KEPT_FILE {
            true => None,
            false => match files::read_opened(&mut file, path, MAX_KEPT_FILE) {
                Ok(content) => Some(content),
                Err(OpenError::TooLarge { .. }) => None,
                Err(error) => return Err(error.into()),
            },
        };
        let attributes = UserAttributes::of(&file);
        Ok(Self::with_facts(&facts, (Some(file), Some(attributes)), content))
    }

    fn with_facts(
        facts: &Metadata,
        (file, attributes): (Option<File>, Option<UserAttributes>),
        content: Option<Vec<u8>>,
    ) -> Self {
        let digest = content.as_ref().map(|content| blake3::hash(content));
        let size = content.as_ref().map_or(facts.size(), |content| content.len() as u64);
        let state = PathState::File { content: digest, mode: Some(facts.mode() & 0o7777), size, attributes };
        let (version, has_other_names) = (Some(FileVersion::of(facts)), facts.nlink() > 1);
        Self { state: Some(state), file, content, version, has_other_names }
    }

    /// Whether it is this file, whatever it has in it.
    pub(super) fn is(&self, file: Option<InodeId>) -> bool {
        self.version.zip(file).is_some_and(|(version, file)| version.file.is(file))
    }

    pub(super) fn file_id(&self) -> Option<InodeId> {
        self.version.map(|version| version.file)
    }

    pub(super) fn mode(&self) -> Option<u32> {
        self.state.as_ref().and_then(PathState::mode)
    }
}
