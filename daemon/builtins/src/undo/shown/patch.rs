//! Changes as a patch in the form of Git, of whole files: byte for byte, and nothing is cut.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use toold_host::exclude::Exclusions;

use super::{Shown, is_hidden};
use crate::comparison::{lines, steps, unified};
use crate::journal::PathState;
use crate::paths::quoted;

/// What Git knows of the mode of a file of which the change did not touch it.
const USUAL_MODE: u32 = 0o644;
const FILE: u32 = 0o100_000;
const LINK: u32 = 0o120_000;

/// What Git has at a path: it knows no folders.
#[derive(PartialEq, Eq)]
struct GitFile {
    mode: u32,
    has_known_mode: bool,
    text: String,
}

/// The part of a patch for one path.
///
/// # Errors
/// Why a patch cannot hold the change.
pub(super) fn of_path(
    path: &Path,
    folder: &Path,
    old: &Shown,
    new: &Shown,
    exclusions: &mut Exclusions,
) -> Result<String, &'static str> {
    let Ok(below) = path.strip_prefix(folder) else {
        return Err("not below this folder, and so left out of the patch");
    };
    if below.components().any(|part| part.as_os_str() == ".git") {
        return Err("a file of Git's own, and so left out of the patch");
    }
    let is_folder = |shown: &Shown| shown.as_ref().is_some_and(|(state, _)| state.is_folder());
    if (is_folder(old) || old.is_none()) && (is_folder(new) || new.is_none()) {
        return Err(match (is_folder(old), is_folder(new)) {
            (false, true) => "the folder was made",
            (true, false) => "the folder was removed",
            (true, true) => "the folder got other permission bits or attributes",
            (false, false) => "nothing is left of the changes",
        });
    }
    if is_hidden(path, exclusions) {
        return Err("its content is not shown, it is secret or excluded");
    }
    let side = |letter: &str| {
        let mut name = OsString::from(letter);
        name.push("/");
        name.push(below);
        quoted(&name)
    };
    let names = (side("a"), side("b"));
    Ok(match (git_file(old)?, git_file(new)?) {
        (Some(old), Some(new)) if old == new => return Err("nothing is left of the changes"),
        // For Git, a link in place of a file is another file.
        (Some(old), Some(new)) if old.mode & LINK != new.mode & LINK => {
            change(&names, Some(&old), None) + &change(&names, None, Some(&new))
        }
        (old, new) => change(&names, old.as_ref(), new.as_ref()),
    })
}

fn git_file(shown: &Shown) -> Result<Option<GitFile>, &'static str> {
    let Some((state, content)) = shown else { return Ok(None) };
    let (mode, content) = match state {
        PathState::Folder { .. } => return Ok(None),
        PathState::Link { target } => (Some(LINK), target.path().as_os_str().as_bytes()),
        PathState::File { mode, .. } => {
            let content = content.as_deref().ok_or("a content is not kept, so the change is left out of the patch")?;
            (mode.map(|mode| FILE | mode & 0o777), content)
        }
        PathState::Special { .. } => return Err("neither a file nor a link, and so left out of the patch"),
    };
    let is_text = !content.contains(&0);
    match std::str::from_utf8(content) {
        Ok(text) if is_text => Ok(Some(GitFile {
            mode: mode.unwrap_or(FILE | USUAL_MODE),
            has_known_mode: mode.is_some(),
            text: text.to_owned(),
        })),
        _ => Err("not text in UTF-8, and so left out of the patch"),
    }
}

fn lines_of(file: Option<&GitFile>) -> Vec<&str> {
    file.map(|file| lines(&file.text)).unwrap_or_default()
}

fn change((a, b): &(String, String), old: Option<&GitFile>, new: Option<&GitFile>) -> String {
    let mut text = format!("diff --git {a} {b}\n");
    match (old, new) {
        (None, Some(new)) => text.push_str(&format!("new file mode {:o}\n", new.mode)),
        (Some(old), None) => text.push_str(&format!("deleted file mode {:o}\n", old.mode)),
        (Some(old), Some(new)) if old.mode != new.mode && old.has_known_mode && new.has_known_mode => {
            text.push_str(&format!("old mode {:o}\nnew mode {:o}\n", old.mode, new.mode));
        }
        (Some(_), Some(_)) | (None, None) => {}
    }
    let (before, after) = (lines_of(old), lines_of(new));
    let header = |name: &str, is_there: bool| if is_there { name.to_owned() } else { "/dev/null".to_owned() };
    let (from, to) = (header(a, old.is_some()), header(b, new.is_some()));
    text.push_str(&unified(&before, &after, steps(&before, &after), [&from, &to]));
    text
}
