//! Makes paths what they were.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::{File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use toold_host::files::{self, FileType};
use toold_host::replace::{Expected, ReplaceError, add_name, make_file, replace, replace_name};

use super::plan::Present;
use super::{UndoError, kept};
use crate::journal::contents::KeptContents;
use crate::journal::state::MAX_KEPT_FILE;
use crate::journal::{FileIdentity, PathState, SpecialKind};
use crate::stamps::FileDigest;

/// What a path has to be.
pub(super) struct Wanted<'s> {
    pub(super) state: &'s Option<PathState>,
    /// The file that had this name. One with several names is written in place if it is still there, so that all of them
    /// have the content; another one at the path only loses this name.
    pub(super) was: Option<FileIdentity>,
}

/// The files that were brought back, by the numbers that they had: further names of one are names of it again.
type BroughtFiles<'s> = HashMap<(u64, u64), (&'s Path, FileDigest)>;

/// Makes all paths what they should be.
pub(super) fn bring_all(wanted: &BTreeMap<&Path, Wanted<'_>>, contents: &KeptContents) -> Result<(), UndoError> {
    // Nothing can be removed from a folder that is read-only, or be made there.
    for path in wanted.keys() {
        if let Some(now) = files::stat_entry(path)?
            && now.kind.is_dir()
            && now.mode & 0o700 != 0o700
        {
            files::set_mode(path, now.mode | 0o700)?;
        }
    }
    let last = clear(wanted)?;
    let (later, first): (Vec<&Path>, Vec<&Path>) = wanted.keys().partition(|path| last.contains(*path));
    let mut brought = BroughtFiles::new();
    for path in first.iter().chain(&later) {
        let Wanted { state: Some(state), was } = &wanted[*path] else { continue };
        bring(path, state, *was, contents, &mut brought)?;
    }
    for path in later.iter().rev() {
        clear_one(path, wanted[*path].state)?;
    }
    for (path, wanted) in wanted.iter().rev() {
        if let Some(PathState::Folder { mode: Some(mode) }) = wanted.state {
            files::set_mode(path, *mode)?;
        }
    }
    Ok(())
}

/// Removes what stands where something else should be; entries of folders before the folders. Returns what is left to the
/// end, when all else has succeeded: files that could not be brought back, and the folders that go with them.
fn clear<'p>(wanted: &BTreeMap<&'p Path, Wanted<'_>>) -> Result<HashSet<&'p Path>, UndoError> {
    let mut last: HashSet<&Path> = HashSet::new();
    for (path, Wanted { state, .. }) in wanted.iter().rev() {
        let holds_last = || last.iter().any(|other| other.starts_with(path));
        if holds_last() && state.is_none() || is_gone_for_good(path, wanted)? {
            last.insert(path);
        } else {
            clear_one(path, state)?;
        }
    }
    Ok(last)
}

/// Whether the content of the file at a path could not be brought back; no if its place is needed for something else.
fn is_gone_for_good(path: &Path, wanted: &BTreeMap<&Path, Wanted<'_>>) -> Result<bool, UndoError> {
    let Some(now) = files::stat_entry(path)?.filter(|now| now.kind.is_file()) else { return Ok(false) };
    let is_kept = now.size <= MAX_KEPT_FILE && (now.mode & 0o400 != 0 || files::open(path).is_ok());
    let is_other = |state: &Option<PathState>| state.as_ref().is_some_and(|state| !state.is_folder());
    let is_needed =
        || path.ancestors().skip(1).any(|above| wanted.get(above).is_some_and(|above| is_other(above.state)));
    Ok(!is_kept && !is_needed())
}

fn clear_one(path: &Path, state: &Option<PathState>) -> Result<(), UndoError> {
    let Some(now) = files::stat_entry(path)? else { return Ok(()) };
    let is_kind = |state: &PathState| match state {
        PathState::File { .. } => now.kind.is_file(),
        PathState::Folder { .. } => now.kind.is_dir(),
        PathState::Link { .. } => now.kind.is_symlink(),
        PathState::Special { what, .. } => !now.kind.is_file() && *what == SpecialKind::of(now.kind),
    };
    if state.as_ref().is_some_and(is_kind) {
        return Ok(());
    }
    match now.kind {
        FileType::Symlink => files::remove_link(path)?,
        FileType::Directory => match files::remove(path) {
            // A folder that others use by now stays, unless something else should be there.
            Err(error) if state.is_some() => return Err(error.into()),
            Ok(()) | Err(_) => {}
        },
        _ => files::remove(path)?,
    }
    Ok(())
}

fn bring<'s>(
    path: &'s Path,
    state: &PathState,
    was: Option<FileIdentity>,
    contents: &KeptContents,
    brought: &mut BroughtFiles<'s>,
) -> Result<(), UndoError> {
    let now = Present::at(path)?;
    match state {
        PathState::Folder { mode } => {
            files::make_folders(path)?;
            if let Some(mode) = mode {
                // Its own bits come last.
                files::set_mode(path, mode | 0o700)?;
            }
        }
        PathState::Link { target } => {
            if now.state.as_ref() == Some(state) {
                return Ok(());
            }
            if now.state.is_some() {
                files::remove_link(path)?;
            }
            make_parents(path)?;
            files::make_link(path, target.path())?;
        }
        PathState::Special { what: SpecialKind::Pipe, mode } => match now.state {
            Some(_) => mode.map_or(Ok(()), |mode| files::set_mode(path, mode))?,
            None => {
                make_parents(path)?;
                files::make_pipe(path, mode.unwrap_or(0o600))?;
            }
        },
        // It is there: otherwise nothing would have been begun.
        PathState::Special { mode, .. } => mode.map_or(Ok(()), |mode| files::set_mode(path, mode))?,
        // The same holds for one whose content is not kept.
        PathState::File { content: None, .. } => {}
        PathState::File { content: Some(digest), mode, .. } => {
            make_parents(path)?;
            bring_file(path, (*digest, *mode), was, &now, contents, brought)?;
            if let Some(was) = was {
                brought.entry(was.number()).or_insert((path, *digest));
            }
        }
    }
    Ok(())
}

fn bring_file(
    path: &Path,
    (digest, mode): (FileDigest, Option<u32>),
    was: Option<FileIdentity>,
    now: &Present,
    contents: &KeptContents,
    brought: &BroughtFiles<'_>,
) -> Result<(), UndoError> {
    let is_itself = now.is(was);
    if !is_itself
        && let Some((other, of_other)) = was.and_then(|was| brought.get(&was.number()))
        && *of_other == digest
        // On a file system without further names, it becomes a file of its own.
        && add_name(other, path, now.file.as_ref()).is_ok()
    {
        return Ok(());
    }
    let Some(file) = &now.file else {
        if now.state.is_some() {
            // Nobody may read it, and so it is not what is wanted.
            files::remove(path)?;
        }
        return Ok(make_file(path, &kept(contents, digest, path)?, mode)?);
    };
    let own_mode = now.mode().unwrap_or(0o600);
    let mode = mode.unwrap_or(own_mode);
    let has_content = now.state.as_ref().and_then(PathState::content) == Some(digest);
    // With several names, it may be one that was only put here: it keeps what it has under the others.
    let is_own = is_itself || !now.has_other_names;
    if !has_content || !is_own && was.is_some() {
        let content = kept(contents, digest, path)?;
        match is_itself && now.has_other_names {
            true => write_into(path, &content, file, own_mode)?,
            false => match replace_name(path, &content, file, mode) {
                // Nothing can be made in its folder.
                Err(_) if is_own => write_into(path, &content, file, own_mode)?,
                replaced => replaced?,
            },
        }
    }
    let is_mode = files::stat_entry(path)?.is_some_and(|now| now.mode == mode);
    if is_mode { Ok(()) } else { Ok(files::set_mode(path, mode)?) }
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
        files::make_folders(folder)?;
    }
    Ok(())
}
