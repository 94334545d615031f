//! Makes paths what they were.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fs::{File, Metadata, Permissions};
use std::io::ErrorKind;
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use toold_host::files::{self, EntryStat, FileType, OpenError, UserAttributes};
use toold_host::replace::{Expected, ReplaceError, add_name, add_name_of, make_file, replace, replace_name};

use super::plan::{Present, entry_at};
use super::{UndoError, kept};
use crate::journal::contents::KeptContents;
use crate::journal::state::MAX_KEPT_FILE;
use crate::journal::{InodeId, PathState, SpecialKind};
use crate::stamps::FileDigest;

/// What a path has to be.
pub(super) struct Wanted<'s> {
    pub(super) state: &'s Option<PathState>,
    /// The file that had this name. One with several names is written in place if it is still there, so that all of them
    /// have the content; another one at the path only loses this name.
    pub(super) was: Option<InodeId>,
    /// Another path that this file had after the calls.
    pub(super) other: Option<&'s Path>,
    /// The file that the calls left here, if that is known. Only if it is still the same one have they written into it.
    pub(super) left: Option<InodeId>,
}

impl Wanted<'_> {
    /// Whether what is at the path is the file that was there before, and that the calls changed.
    fn is_same_file(&self, now: Option<InodeId>) -> bool {
        let is = |other: Option<InodeId>| now.zip(other).is_some_and(|(now, other)| now.is(other));
        is(self.was) && (self.left.is_none() || is(self.left))
    }
}

/// The most files that are held open to be given their former names.
const MAX_HELD: usize = 256;

/// The files that are given their former names, by their numbers.
#[derive(Default)]
struct FormerFiles<'s> {
    /// Those that are at other paths now.
    held: HashMap<(u64, u64), File>,
    /// Those that were brought back, whether as they were or as new ones: further names of one are names of it again.
    brought: HashMap<(u64, u64), (&'s Path, FileDigest, Option<u32>)>,
}

impl FormerFiles<'_> {
    /// Holds the files that calls have given other names: they may have further ones that nobody knows, and what those show
    /// is brought back with them.
    fn of(wanted: &BTreeMap<&Path, Wanted<'_>>) -> Result<Self, UndoError> {
        let mut present: HashMap<&Path, InodeId> = HashMap::new();
        let mut displaced: HashMap<(u64, u64), InodeId> = HashMap::new();
        for (path, wanted) in wanted {
            let now = entry_at(path)?.and_then(|_| std::fs::symlink_metadata(path).ok()).filter(Metadata::is_file);
            let now = now.map(|facts| (InodeId::of(&facts), facts.nlink()));
            if let Some(was) = wanted.was.filter(|_| !wanted.is_same_file(now.map(|(file, _)| file))) {
                displaced.insert(was.number(), was);
            }
            let stays = |file: InodeId| wanted.is_same_file(Some(file));
            // One that others have put there was not changed by the calls.
            let is_left = |file: InodeId| wanted.left.is_none_or(|left| left.is(file));
            let now = now.filter(|(file, names)| (*names > 1 || stays(*file)) && is_left(*file));
            present.extend(now.map(|(file, _)| (*path, file)));
        }
        let mut held = HashMap::new();
        for (path, file) in present {
            let is_wanted = displaced.get(&file.number()).is_some_and(|was| was.is(file));
            if is_wanted && held.len() < MAX_HELD && !held.contains_key(&file.number()) {
                // What nobody may read is made again as a new file.
                held.extend(files::open(path).ok().map(|opened| (file.number(), opened)));
            }
        }
        Ok(Self { held, brought: HashMap::new() })
    }
}

/// What was at the paths when they were compared with the records.
pub(super) type SeenPaths<'p> = BTreeMap<&'p Path, Option<EntryStat>>;

/// The paths that are being changed.
pub(super) struct TouchedPaths<'p> {
    /// Nothing is compared when an undo goes back.
    seen: Option<SeenPaths<'p>>,
    touched: BTreeSet<&'p Path>,
    /// Files of which one name was touched: all their names show that.
    files: HashSet<(u64, u64)>,
}

impl<'p> TouchedPaths<'p> {
    pub(super) fn new(seen: Option<SeenPaths<'p>>) -> Self {
        Self { seen, touched: BTreeSet::new(), files: HashSet::new() }
    }

    pub(super) fn has(&self, path: &Path) -> bool {
        self.touched.contains(path)
    }

    /// Called before anything is done at a path. Others may have changed it since it was compared.
    ///
    /// # Errors
    /// They did.
    fn touch(&mut self, path: &'p Path) -> Result<(), UndoError> {
        if self.touched.contains(path) {
            return Ok(());
        }
        let now = entry_at(path)?;
        if let Some(seen) = &self.seen {
            let is_same = match (seen.get(path).copied().flatten(), now) {
                (Some(seen), Some(now)) if now.kind.is_dir() => seen.kind.is_dir(),
                (Some(seen), Some(now)) => {
                    seen == now || seen.identity == now.identity && self.files.contains(&now.identity)
                }
                (None, None) => true,
                // A folder that was missing on the way to what is brought back is there by now.
                (None, Some(now)) => now.kind.is_dir(),
                (Some(_), None) => false,
            };
            if !is_same {
                return Err(UndoError::Changed { path: path.to_owned(), by: None });
            }
        }
        self.files.extend(now.map(|now| now.identity));
        self.touched.insert(path);
        Ok(())
    }
}

/// Makes all paths what they should be.
pub(super) fn bring_all<'p>(
    wanted: &BTreeMap<&'p Path, Wanted<'_>>,
    contents: &KeptContents,
    touched: &mut TouchedPaths<'p>,
) -> Result<(), UndoError> {
    // Nothing can be removed from a folder that is read-only, or be made there.
    for path in wanted.keys() {
        if let Some(now) = entry_at(path)?
            && now.kind.is_dir()
            && now.mode & 0o700 != 0o700
        {
            touched.touch(path)?;
            step(OPEN, path, files::set_mode(path, now.mode | 0o700))?;
        }
    }
    let mut former = FormerFiles::of(wanted)?;
    let last = clear(wanted, touched)?;
    let (later, first): (Vec<&'p Path>, Vec<&'p Path>) = wanted.keys().partition(|path| last.contains(*path));
    for path in first.iter().chain(&later) {
        let wanted = &wanted[*path];
        if let Some(state) = wanted.state {
            bring(path, (state, wanted), contents, (&mut former, touched))?;
        }
    }
    for path in later.iter().rev() {
        clear_one(path, wanted[*path].state, touched)?;
    }
    for (path, wanted) in wanted.iter().rev() {
        if let Some(PathState::Folder { mode: Some(mode), .. }) = wanted.state {
            step(SET_MODE, path, files::set_mode(path, *mode))?;
        }
    }
    Ok(())
}

const MAKE: &str = "make";
const REMOVE: &str = "remove";
const REPLACE: &str = "bring back the content of";
const SET_MODE: &str = "set the permission bits of";
const OPEN: &str = "open up the folder";

/// Names the step that an error is of.
fn step<T, E: Into<UndoError>>(step: &'static str, path: &Path, done: Result<T, E>) -> Result<T, UndoError> {
    done.map_err(|error| error.into().of_step(step, path))
}

/// Removes what stands where something else should be; entries of folders before the folders. Returns what is left to the
/// end, when all else has succeeded: files that could not be brought back, and the folders that go with them.
fn clear<'p>(
    wanted: &BTreeMap<&'p Path, Wanted<'_>>,
    touched: &mut TouchedPaths<'p>,
) -> Result<HashSet<&'p Path>, UndoError> {
    let mut last: HashSet<&Path> = HashSet::new();
    for (path, Wanted { state, .. }) in wanted.iter().rev() {
        let holds_last = || last.iter().any(|other| other.starts_with(path));
        if holds_last() && state.is_none() || is_gone_for_good(path, wanted)? {
            last.insert(path);
        } else {
            clear_one(path, state, touched)?;
        }
    }
    Ok(last)
}

/// Whether the content of the file at a path could not be brought back; no if its place is needed for something else.
fn is_gone_for_good(path: &Path, wanted: &BTreeMap<&Path, Wanted<'_>>) -> Result<bool, UndoError> {
    let Some(now) = entry_at(path)?.filter(|now| now.kind.is_file()) else { return Ok(false) };
    let is_kept = now.size <= MAX_KEPT_FILE && (now.mode & 0o400 != 0 || files::open(path).is_ok());
    let is_other = |state: &Option<PathState>| state.as_ref().is_some_and(|state| !state.is_folder());
    let is_needed =
        || path.ancestors().skip(1).any(|above| wanted.get(above).is_some_and(|above| is_other(above.state)));
    Ok(!is_kept && !is_needed())
}

fn clear_one<'p>(path: &'p Path, state: &Option<PathState>, touched: &mut TouchedPaths<'p>) -> Result<(), UndoError> {
    let Some(now) = entry_at(path)? else { return Ok(()) };
    let is_kind = |state: &PathState| match state {
        PathState::File { .. } => now.kind.is_file(),
        PathState::Folder { .. } => now.kind.is_dir(),
        PathState::Link { .. } => now.kind.is_symlink(),
        PathState::Special { what, .. } => !now.kind.is_file() && *what == SpecialKind::of(now.kind),
    };
    if state.as_ref().is_some_and(is_kind) {
        return Ok(());
    }
    touched.touch(path)?;
    match now.kind {
        FileType::Symlink => step(REMOVE, path, files::remove_link(path))?,
        FileType::Directory => match files::remove(path) {
            // A folder that others use by now stays, unless something else should be there.
            Err(OpenError::System { source, .. })
                if matches!(source.kind(), ErrorKind::DirectoryNotEmpty | ErrorKind::ResourceBusy) =>
            {
                if state.is_some() {
                    return Err(UndoError::InUse(path.to_owned()));
                }
            }
            removed => step(REMOVE, path, removed)?,
        },
        _ => step(REMOVE, path, files::remove(path))?,
    }
    Ok(())
}

fn bring<'s>(
    path: &'s Path,
    (state, wanted): (&PathState, &Wanted<'_>),
    contents: &KeptContents,
    (former, touched): (&mut FormerFiles<'s>, &mut TouchedPaths<'s>),
) -> Result<(), UndoError> {
    let now = Present::at(path)?;
    if now.state.as_ref().is_some_and(|now| now.is_like(state)) && !matches!(state, PathState::File { .. }) {
        return Ok(());
    }
    match state {
        PathState::Folder { mode, attributes } => {
            touched.touch(path)?;
            step(MAKE, path, files::make_folders(path))?;
            if let Some(mode) = mode {
                // Its own bits come last.
                step(SET_MODE, path, files::set_mode(path, mode | 0o700))?;
            }
            if let Some(attributes) = attributes {
                give(path, files::open_folder(path), attributes, touched)?;
            }
        }
        PathState::Link { target } => {
            touched.touch(path)?;
            if now.state.is_some() {
                step(REMOVE, path, files::remove_link(path))?;
            }
            make_parents(path)?;
            step(MAKE, path, files::make_link(path, target.path()))?;
        }
        PathState::Special { what, mode } => {
            touched.touch(path)?;
            if now.state.is_none() && *what == SpecialKind::Pipe {
                make_parents(path)?;
                step(MAKE, path, files::make_pipe(path, mode.unwrap_or(0o600)))?;
            } else if let Some(mode) = mode {
                // It is there: otherwise nothing would have been begun.
                step(SET_MODE, path, files::set_mode(path, *mode))?;
            }
        }
        // The same holds for one whose content is not kept.
        PathState::File { content: None, .. } => {}
        PathState::File { content: Some(digest), mode, attributes, .. } => {
            make_parents(path)?;
            let source = FileSource { digest: *digest, mode: *mode, wanted, contents };
            source.bring(path, now, former, touched)?;
            if let Some(attributes) = attributes {
                give(path, files::open(path), attributes, touched)?;
            }
            if let Some(was) = wanted.was {
                former.brought.entry(was.number()).or_insert((path, *digest, *mode));
            }
        }
    }
    Ok(())
}

/// Gives a file or folder the attributes that it had. If the system refuses that, its content matters more.
fn give<'p>(
    path: &'p Path,
    opened: Result<impl AsFd, OpenError>,
    attributes: &UserAttributes,
    touched: &mut TouchedPaths<'p>,
) -> Result<(), UndoError> {
    if let Ok(entry) = opened
        && UserAttributes::of(&entry) != *attributes
    {
        touched.touch(path)?;
        let _ = attributes.give(&entry);
    }
    Ok(())
}

/// What a file has to be.
struct FileSource<'c> {
    digest: FileDigest,
    mode: Option<u32>,
    wanted: &'c Wanted<'c>,
    contents: &'c KeptContents,
}

impl FileSource<'_> {
    /// Whether the former file has another name, and is as it was: it may have been changed by others.
    fn is_at_other(&self) -> Result<bool, UndoError> {
        let Some(other) = self.wanted.other else { return Ok(false) };
        let now = Present::at(other)?;
        let has_content = now.state.as_ref().and_then(PathState::content) == Some(self.digest);
        Ok(now.is(self.wanted.was) && has_content && self.mode.is_none_or(|mode| now.mode() == Some(mode)))
    }

    fn bring<'s>(
        &self,
        path: &'s Path,
        mut now: Present,
        former: &FormerFiles<'s>,
        touched: &mut TouchedPaths<'s>,
    ) -> Result<(), UndoError> {
        let content = || kept(self.contents, self.digest, path);
        let was = self.wanted.was;
        let brought = was.and_then(|was| former.brought.get(&was.number()));
        let is_brought = brought.is_some_and(|(_, digest, mode)| (*digest, *mode) == (self.digest, self.mode));
        let mut is_itself = self.wanted.is_same_file(now.file_id()) && (is_brought || brought.is_none());
        if !is_itself && let Some((other, ..)) = brought.filter(|_| is_brought) {
            touched.touch(path)?;
            // On a file system without further names, it becomes a file of its own.
            if add_name(other, path, now.file.as_ref()).is_ok() {
                return Ok(());
            }
        }
        if !is_itself
            && brought.is_none()
            && let Some((was, file)) = was.and_then(|was| Some((was, former.held.get(&was.number())?)))
        {
            touched.touch(path)?;
            // It may have no name any more: then it is made again.
            if add_name_of(file, path, now.file.as_ref()).is_ok() {
                touched.files.insert(was.number());
                now = Present::at(path)?;
                is_itself = now.is(Some(was));
            }
        }
        if !is_itself && brought.is_none() && self.is_at_other()? {
            touched.touch(path)?;
            let other = self.wanted.other.unwrap_or(path);
            if add_name(other, path, now.file.as_ref()).is_ok() {
                touched.files.extend(was.map(InodeId::number));
                return Ok(());
            }
        }
        let Some(file) = &now.file else {
            touched.touch(path)?;
            if now.state.is_some() {
                // Nobody may read it, and so it is not what is wanted.
                step(REMOVE, path, files::remove(path))?;
            }
            return step(MAKE, path, make_file(path, &content()?, self.mode));
        };
        let own_mode = now.mode().unwrap_or(0o600);
        let mode = self.mode.unwrap_or(own_mode);
        let has_content = now.state.as_ref().and_then(PathState::content) == Some(self.digest);
        // With several names, it may be one that was only put here: it keeps what it has under the others.
        let is_own = is_itself || !now.has_other_names;
        let is_kept = has_content && (is_own || was.is_none());
        if is_kept && mode == own_mode {
            return Ok(());
        }
        touched.touch(path)?;
        if !is_kept {
            match is_itself && now.has_other_names {
                true => step(REPLACE, path, write_into(path, &content()?, file, own_mode))?,
                false => match replace_name(path, &content()?, file, mode) {
                    // Nothing can be made in its folder.
                    Err(_) if is_own => step(REPLACE, path, write_into(path, &content()?, file, own_mode))?,
                    replaced => step(REPLACE, path, replaced)?,
                },
            }
        }
        let is_mode = entry_at(path)?.is_some_and(|now| now.mode == mode);
        if is_mode { Ok(()) } else { step(SET_MODE, path, files::set_mode(path, mode)) }
    }
}

/// Writes into a file that has other names, or that cannot be replaced. It may be read-only.
fn write_into(path: &Path, content: &[u8], file: &File, own_mode: u32) -> Result<(), UndoError> {
    let set = |mode: u32| file.set_permissions(Permissions::from_mode(mode));
    let failed = |source| ReplaceError::System { path: path.to_owned(), source };
    let is_writable = own_mode & 0o200 != 0;
    if !is_writable {
        set(own_mode | 0o200).map_err(failed)?;
    }
    let written = replace(path, content, Expected::Same(file));
    if !is_writable && written.is_err() {
        // The error of the write is the one that matters.
        let _ = set(own_mode);
    }
    Ok(written?)
}

fn make_parents(path: &Path) -> Result<(), UndoError> {
    if let Some(folder) = path.parent() {
        step(MAKE, folder, files::make_folders(folder))?;
    }
    Ok(())
}
