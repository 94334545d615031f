//! Globs as callers write them: lists, `./`, absolute paths, and names that are globs by chance.

use std::path::{Path, PathBuf};

use ignore::overrides::{Override, OverrideBuilder};

use crate::paths;

/// The most bytes of a text with globs: a compiled glob takes some forty times as much memory.
const MAX_TEXT: usize = 64 * 1024;

/// The globs of a text, relative to `root`. A text that names an existing file or folder stands for it, and so do a quoted
/// name as tools print it and the folders at the beginning of a glob; otherwise commas outside of braces separate globs, or are
/// a part of names. Globs that match every file are none: they ask for no file that would otherwise be left out, such as an
/// ignored one.
///
/// # Errors
/// A glob that is not valid, or that can match nothing; a text of more than 64 KiB.
pub(crate) fn build(text: &str, root: &Path) -> anyhow::Result<Override> {
    anyhow::ensure!(text.len() <= MAX_TEXT, "the glob has {} bytes, and may have {MAX_TEXT}", text.len());
    let globs = list(text, root);
    if globs.iter().all(|glob| ["*", "**", "**/*"].contains(&glob.as_str())) {
        return Ok(Override::empty());
    }
    let mut builder = OverrideBuilder::new(root);
    for glob in globs {
        let climbs = glob.trim_start_matches('!').split('/').any(|part| part == "..");
        anyhow::ensure!(
            !climbs,
            "a glob with `..` matches nothing: name the folder in `path`, and give the glob that begins there"
        );
        // In an ignore file, that would be a comment, and match nothing.
        let glob = if glob.starts_with('#') { format!("\\{glob}") } else { glob };
        builder.add(&glob).map_err(|error| {
            anyhow::anyhow!(
                "can't use the glob: {error}; to name such a character itself, put it in brackets, as in `[[]`"
            )
        })?;
    }
    Ok(builder.build()?)
}

fn list(text: &str, root: &Path) -> Vec<String> {
    let text = text.trim();
    if let Some(name) = paths::unquoted(text).and_then(|name| name.into_string().ok()) {
        return vec![below(&escaped(&name), root)];
    }
    let (not, bare) = text.strip_prefix('!').map_or(("", text), |bare| ("!", bare));
    let is_name = bare.contains(['[', '{', ',', '\\']) && root.join(bare).symlink_metadata().is_ok();
    // A file with the name `*.rs` is no reason to leave out all others.
    if is_name && !matches_itself(bare, root) {
        return vec![format!("{not}{}", below(&escaped(bare), root))];
    }
    let parts: Vec<&str> = parts(text).into_iter().map(str::trim).filter(|part| !part.is_empty()).collect();
    let mut globs: Vec<String> = parts.iter().map(|part| in_folders(&part.replace("\\,", ","), root)).collect();
    // Also the glob of names that have the commas themselves: a list matches such names only by chance.
    if parts.len() > 1 && parts.iter().all(|part| !part.starts_with('!')) {
        globs.push(in_folders(&text.replace("\\,", ","), root));
    }
    globs
}

/// The glob relative to `root`. Folders at its beginning that exist under the very names stand for themselves, although the names
/// are globs by chance, such as `[id]` and `{x}`.
fn in_folders(glob: &str, root: &Path) -> String {
    let glob = below(glob, root);
    let (not, bare) = glob.strip_prefix('!').map_or(("", &*glob), |bare| ("!", bare));
    let (slash, bare) = bare.strip_prefix('/').map_or(("", bare), |bare| ("/", bare));
    let (mut folder, mut literal, mut rest) = (root.to_owned(), String::new(), bare);
    while let Some((name, more)) = rest.split_once('/').filter(|(name, _)| !["", ".."].contains(name)) {
        let is_glob = name.contains(['[', '{', '*', '?', '\\']);
        folder.push(name);
        if is_glob && (matches_itself(name, root) || !folder.symlink_metadata().is_ok_and(|facts| facts.is_dir())) {
            break;
        }
        literal.push_str(&if is_glob { escaped(name) } else { name.to_owned() });
        literal.push('/');
        rest = more;
    }
    format!("{not}{slash}{literal}{rest}")
}

/// Whether a name is one that it matches as globs.
fn matches_itself(name: &str, root: &Path) -> bool {
    let mut builder = OverrideBuilder::new(root);
    let is_valid = parts(name).iter().all(|part| builder.add(&below(part.trim(), root)).is_ok());
    let globs = builder.build().ok().filter(|_| is_valid);
    globs.is_some_and(|globs| globs.matched(root.join(name), false).is_whitelist())
}

/// The parts between commas that are neither in braces nor in brackets, nor behind a backslash.
fn parts(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut from, mut depth, mut is_escaped) = (0, 0_usize, false);
    for (at, c) in text.char_indices() {
        let was_escaped = is_escaped;
        is_escaped = c == '\\' && !was_escaped;
        match c {
            _ if was_escaped => {}
            '{' | '[' => depth += 1,
            '}' | ']' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                parts.push(&text[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[from..]);
    parts
}

/// The path as a glob that only it matches.
fn escaped(path: &str) -> String {
    let mut glob = String::with_capacity(path.len());
    for (at, c) in path.char_indices() {
        match c {
            '[' | ']' | '{' | '}' | '*' | '?' => glob.extend(['[', c, ']']),
            '\\' => glob.push_str("\\\\"),
            // At the beginning, these stand for exclusions and comments, and blanks at the end are dropped.
            '!' | '#' if at == 0 => glob.extend(['\\', c]),
            c if c.is_whitespace() && at + c.len_utf8() == path.len() => glob.extend(['[', c, ']']),
            c => glob.push(c),
        }
    }
    glob
}

/// The glob relative to `root`. Callers also write absolute paths, and `./`.
fn below(glob: &str, root: &Path) -> String {
    let (not, bare) = glob.strip_prefix('!').map_or(("", glob), |bare| ("!", bare));
    let absolute = root.to_str().and_then(|root| bare.strip_prefix(root)).filter(|rest| rest.starts_with('/'));
    let rest = absolute.map(str::to_owned).or_else(|| bare.strip_prefix("./").map(|rest| format!("/{rest}")));
    format!("{not}{}", rest.as_deref().unwrap_or(bare))
}

/// The path of which a glob is the name, if it is one with a folder.
pub(crate) fn named_path(glob: &str, root: &Path) -> Option<PathBuf> {
    let bare = glob.strip_prefix("./").unwrap_or(glob);
    bare.contains('/').then(|| root.join(bare))
}

/// For globs that match nothing, a word about what may be meant as a name: the backslashes of a Windows path, or a set of
/// characters, such as `[id]`; or nothing.
pub(crate) fn hint_about_names(globs: &str) -> String {
    let is_in_name = |(_, after): (usize, &str)| after[1..].starts_with(|c: char| c.is_alphanumeric() || c == '*');
    if globs.match_indices('\\').map(|(at, _)| (at, &globs[at..])).any(is_in_name) {
        return "; a backslash stands for the character behind it, and folders are separated by /".to_owned();
    }
    let is_word = |set: &&str| set.len() > 1 && set.chars().all(|c| c.is_alphabetic() || c == '.' || c == '_');
    let sets = globs.split('[').skip(1).filter_map(|rest| rest.split_once(']')).map(|(set, _)| set);
    match { sets }.find(is_word) {
        Some(name) => format!("; [{name}] stands for one of these characters, and [[]{name}] for the name"),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backslashes_of_a_windows_path_are_explained() {
        for (glob, expected) in
            [("src\\main.rs", true), ("C:\\src\\*.rs", true), ("src\\*.rs", true), ("a\\, b", false), ("*.rs\\", false)]
        {
            assert_eq!(hint_about_names(glob).contains("separated by /"), expected, "{glob}");
        }
    }

    #[test]
    fn commas_separate_globs_outside_of_braces() {
        let root = Path::new("/nowhere/at/all");
        assert_eq!(list("*.ts, *.tsx", root), ["*.ts", "*.tsx", "*.ts, *.tsx"]);
        assert_eq!(list(r"a\,b*.txt,c", root), ["a,b*.txt", "c", "a,b*.txt,c"]);
        assert_eq!(list("*.{ts,tsx},!a[,]b", root), ["*.{ts,tsx}", "!a[,]b"]);
        let folder = tempfile::tempdir().unwrap();
        for name in ["*.rs", "[id]", "a,b"] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        assert_eq!(list("*.rs", folder.path()), ["*.rs"]);
        assert_eq!(list("[id]", folder.path()), ["[[]id[]]"]);
        assert_eq!(list("a,b", folder.path()), ["a,b"]);
        for name in ["app/[id]/{x}", "app/*"] {
            std::fs::create_dir_all(folder.path().join(name)).unwrap();
        }
        assert_eq!(list("app/[id]/**/*.tsx", folder.path()), ["app/[[]id[]]/**/*.tsx"]);
        assert_eq!(list("!./app/[id]/{x}/[ab]", folder.path()), ["!/app/[[]id[]]/[{]x[}]/[ab]"]);
        assert_eq!(list("app/[no]/*,app/*/[id]/a", folder.path())[..2], ["app/[no]/*", "app/*/[id]/a"]);
        assert_eq!(list("./src/a.ts,/nowhere/at/all/b", root), ["/src/a.ts", "/b", "/src/a.ts,/nowhere/at/all/b"]);
        assert_eq!(list(r#""a\nb[1]""#, root), ["a\nb[[]1[]]"]);
    }
}
