//! Names of files that a command gets by wildcards, or from another command: which they are.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use globset::{GlobBuilder, GlobMatcher};

use super::arg::{Arg, Piece};

/// No folder with more entries than these is looked through: the answer must not take seconds.
const MAX_ENTRIES: usize = 50_000;
const MAX_DEPTH: usize = 64;

/// Files that one word may stand for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Names {
    /// Holds all of them.
    pub(super) folder: PathBuf,
    /// Absolute; links are not followed.
    pub(super) files: Vec<PathBuf>,
    /// Where relative names begin.
    pub(super) base: PathBuf,
    /// Each of them stays one word without quotes, and as a line.
    pub(super) is_plain: bool,
    /// One of them might be taken for an option.
    pub(super) has_dash: bool,
}

impl Names {
    /// Names as they are printed or found in `base`.
    pub(super) fn printed(folder: PathBuf, files: Vec<PathBuf>, base: &Path) -> Self {
        let relative = |file: &'_ PathBuf| file.strip_prefix(base).map_or_else(|_| file.clone(), Path::to_owned);
        let is_plain = files.iter().all(|file| is_plain(&relative(file)));
        let has_dash = files.iter().any(|file| relative(file).as_os_str().as_encoded_bytes().starts_with(b"-"));
        Self { folder, files, base: base.to_owned(), is_plain, has_dash }
    }
}

/// One entry of a folder that was looked through.
pub(super) struct Entry<'a> {
    pub(super) path: &'a Path,
    pub(super) name: &'a str,
    /// It lies in the tree's own folder.
    pub(super) is_at_top: bool,
}

/// All that lies in `folder` and below it, but for what `enters` refuses to enter and `takes` refuses to take. `None`
/// when there is too much of it, or when a name could be taken for several words or for an option.
pub(super) fn tree(
    folder: &Path,
    mut enters: impl FnMut(&Entry) -> bool,
    mut takes: impl FnMut(&Entry) -> bool,
) -> Option<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut seen = 0;
    let mut waiting = VecDeque::from([(folder.to_owned(), 0)]);
    while let Some((folder, depth)) = waiting.pop_front() {
        // Whoever may not look into it here cannot do so in the command either.
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        for entry in entries.flatten() {
            seen += 1;
            if seen > MAX_ENTRIES || depth > MAX_DEPTH {
                return None;
            }
            let (path, name) = (entry.path(), entry.file_name());
            let (name, kind) = (name.to_str()?, entry.file_type().ok()?);
            let entry = Entry { path: &path, name, is_at_top: depth == 0 };
            if kind.is_dir() {
                if enters(&entry) {
                    waiting.push_back((path, depth + 1));
                }
            } else if takes(&entry) {
                found.push(path);
            }
        }
    }
    Some(found)
}

/// Whether a name stays one word when a program reads it as a line, `xargs` as a word, or the shell without quotes.
fn is_plain(path: &Path) -> bool {
    let plain = |name: &str| !name.contains([' ', '\t', '\n', '\'', '"', '\\', '*', '?', '[']);
    path.iter().all(|name| name.to_str().is_some_and(plain))
}

/// A wildcard of `fnmatch` for names, such that no name that it matches is missed; `None` when that is not sure.
pub(super) fn wildcard(text: &str, ignores_case: bool) -> Option<GlobMatcher> {
    let plain = |c: char| c.is_alphanumeric() || "_-.+@~#%= *?".contains(c);
    if !text.chars().all(plain) || text.contains("**") {
        return None;
    }
    // A character may be several bytes: the locale decides.
    let wide = text.replace('?', "*");
    let glob = GlobBuilder::new(&wide).case_insensitive(ignores_case).build().ok()?;
    Some(glob.compile_matcher())
}

/// The same for names that are left out, such that none is left out that the program takes.
pub(super) fn leaves_out(text: &str) -> Option<GlobMatcher> {
    wildcard(text, false).filter(|_| !text.contains('?') && text.is_ascii())
}

/// The files that a word with wildcards becomes in `cwd`: none when nothing matches, for then it stays as it is. `None`
/// when that cannot be told.
pub(super) fn expand(arg: &Arg, cwd: &Path, may_read: &mut dyn FnMut(&Path) -> bool) -> Option<Names> {
    // The pattern's text, with its known text escaped, by folders.
    let mut pattern = String::new();
    for piece in &arg.pieces {
        match piece {
            Piece::Text(text) => {
                for c in text.chars() {
                    if "*?[]{}!\\,".contains(c) {
                        pattern.push('\\');
                    }
                    pattern.push(c);
                }
            }
            // A character may be several bytes, which the locale decides: more names are found than there are.
            Piece::Glob(glob)
                if glob == "?" || glob.starts_with("[!") || glob.starts_with("[^") || !glob.is_ascii() =>
            {
                pattern.push('*');
            }
            Piece::Glob(glob) => pattern.push_str(glob),
            Piece::Number
            | Piece::Digits
            | Piece::Plain
            | Piece::Maybe
            | Piece::Names(_)
            | Piece::Pipe
            | Piece::Unknown { .. } => return None,
        }
    }
    let start = if pattern.starts_with('/') { PathBuf::from("/") } else { cwd.to_owned() };
    let mut found = vec![start];
    let mut folder = None;
    for segment in pattern.split('/').filter(|segment| !segment.is_empty()) {
        let plain: String = unescaped(segment);
        if plain.chars().count() == segment.chars().filter(|c| *c != '\\').count() && !has_wildcard(segment) {
            for path in &mut found {
                path.push(&plain);
            }
            continue;
        }
        folder.get_or_insert_with(|| found.first().cloned().unwrap_or_default());
        let glob = GlobBuilder::new(segment).backslash_escape(true).literal_separator(true).build().ok()?;
        let glob = glob.compile_matcher();
        let mut next = Vec::new();
        for path in &found {
            // What is in a folder that may not be read is not for the caller to learn.
            let real = crate::files::resolve_for(path, Path::new("/"), may_read).ok()?;
            if real.veil.is_some() || !may_read(&real.path) {
                return None;
            }
            let Ok(entries) = std::fs::read_dir(&real.path) else { continue };
            for entry in entries.flatten() {
                let name = entry.file_name();
                let name = name.to_str()?;
                let is_hidden = name.starts_with('.') && !segment.starts_with('.');
                if !is_hidden && glob.is_match(name) {
                    next.push(path.join(name));
                }
                if next.len() > MAX_ENTRIES {
                    return None;
                }
            }
        }
        found = next;
    }
    let folder = folder.unwrap_or_else(|| cwd.to_owned());
    Some(Names::printed(folder, found, cwd))
}

fn has_wildcard(segment: &str) -> bool {
    let mut escaped = false;
    segment.chars().any(|c| {
        let wild = !escaped && "*?[".contains(c);
        escaped = !escaped && c == '\\';
        wild
    })
}

fn unescaped(segment: &str) -> String {
    let mut text = String::new();
    let mut chars = segment.chars();
    while let Some(c) = chars.next() {
        if c == '\\' { text.extend(chars.next()) } else { text.push(c) }
    }
    text
}

/// A word that stands for any of these files.
pub(super) fn arg(names: Rc<Names>, raw: &str) -> Arg {
    Arg { pieces: vec![Piece::Names(names)], raw: raw.to_owned() }
}
