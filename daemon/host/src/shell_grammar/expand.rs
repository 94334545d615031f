//! Wildcards: the names of files that a word expands to.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use globset::GlobBuilder;

use super::arg::{Arg, WordPart};
use super::names::{MAX_ENTRIES, NameSet};

/// The files that a word with wildcards expands to in `cwd`: none if nothing matches, since the word then stays as it
/// is. `None` if that is unknown.
pub(super) fn expand(arg: &Arg, cwd: &Path, may_read: &mut dyn FnMut(&Path) -> bool) -> Option<NameSet> {
    // The pattern with its literal text escaped, split by folders.
    let mut pattern = String::new();
    for piece in &arg.pieces {
        match piece {
            WordPart::Text(text) => {
                for c in text.chars() {
                    if "*?[]{}!\\,".contains(c) {
                        pattern.push('\\');
                    }
                    pattern.push(c);
                }
            }
            // A character may be several bytes, depending on the locale: this finds more names than the shell does.
            WordPart::Glob(glob)
                if glob == "?" || glob.starts_with("[!") || glob.starts_with("[^") || !glob.is_ascii() =>
            {
                pattern.push('*');
            }
            WordPart::Glob(glob) => pattern.push_str(glob),
            WordPart::Number
            | WordPart::Digits
            | WordPart::Plain
            | WordPart::Maybe
            | WordPart::Names(_)
            | WordPart::Pipe
            | WordPart::Unknown { .. } => return None,
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
            // The caller must not learn the contents of a folder that it may not read.
            let real = crate::files::resolve_for(path, Path::new("/"), may_read).ok()?;
            if real.judged_as.is_some() || !may_read(&real.path) {
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
    Some(NameSet::printed(folder, found, cwd))
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
pub(super) fn arg(names: Rc<NameSet>, raw: &str) -> Arg {
    Arg { pieces: vec![WordPart::Names(names)], raw: raw.to_owned() }
}
