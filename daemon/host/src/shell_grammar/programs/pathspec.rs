//! The paths by which commands of Git choose among the files of a repository (gitglossary(7), "pathspec").

use std::path::{Component, Path};

use globset::{GlobBuilder, GlobMatcher};

use crate::shell_grammar::arg::{Arg, WordPart};

/// Which files of a repository some paths choose. A path that is not understood chooses all, and leaves out none.
#[derive(Debug, Default)]
pub(super) struct Pathspecs {
    chosen: Vec<Pathspec>,
    left_out: Vec<Pathspec>,
}

/// Names from the top folder on.
#[derive(Debug)]
enum Pathspec {
    /// A file or a folder with everything inside; the empty name is that of the top folder. `folder`: it is no file.
    Path { name: String, folder: bool },
    /// A wildcard, where names that it leaves out have to match it.
    Wildcard(GlobMatcher),
    /// A wildcard, where names that it chooses begin with this.
    Start(String),
}

/// More paths choose all files.
const MAX_PATHS: usize = 500;

impl Pathspecs {
    /// The paths that these words are. `below` is the folder of the command, from the top folder on, and `top` that folder.
    pub(super) fn of<'w>(words: impl Iterator<Item = &'w Arg>, top: &Path, below: &Path) -> Self {
        let mut found = Self::default();
        let mut chooses_all = false;
        for (at, word) in words.enumerate() {
            if at == MAX_PATHS {
                return Self::default();
            }
            match word.literal().map_or_else(|| expanded(word, below), |text| parse(text, top, below)) {
                Some((true, path)) => found.left_out.push(path),
                Some((false, path)) => found.chosen.push(path),
                None => chooses_all |= !is_exclusion(word.start()),
            }
        }
        if chooses_all {
            found.chosen.clear();
        }
        found
    }

    /// Whether the file may be among them.
    pub(super) fn may_choose(&self, file: &str) -> bool {
        let is_chosen = self.chosen.is_empty() || self.chosen.iter().any(|path| path.holds(file));
        is_chosen && !self.left_out.iter().any(|path| path.holds(file))
    }

    /// Whether a file in this folder, or below it, may be among them.
    pub(super) fn may_choose_below(&self, folder: &str) -> bool {
        let is_chosen = self.chosen.is_empty() || self.chosen.iter().any(|path| path.may_hold_below(folder));
        let is_plain = |path: &&Pathspec| matches!(path, Pathspec::Path { .. });
        is_chosen && !self.left_out.iter().filter(is_plain).any(|path| path.holds(&format!("{folder}/")))
    }
}

impl Pathspec {
    fn may_hold_below(&self, folder: &str) -> bool {
        match self {
            Self::Path { name, .. } => self.holds(&format!("{folder}/")) || Path::new(name).starts_with(folder),
            Self::Wildcard(_) => true,
            Self::Start(start) => folder.starts_with(start.as_str()) || start.starts_with(folder),
        }
    }

    fn holds(&self, file: &str) -> bool {
        match self {
            Self::Path { name, .. } if name.is_empty() => true,
            Self::Path { name, folder } => match file.strip_prefix(name.as_str()) {
                Some(rest) => rest.starts_with('/') || rest.is_empty() && !folder,
                None => false,
            },
            Self::Wildcard(glob) => glob.is_match(file),
            Self::Start(start) => file.starts_with(start.as_str()),
        }
    }
}

/// Whether a word is a pathspec by its form, and no name of a revision that exists.
pub(super) fn has_magic(word: &str) -> bool {
    [":(", ":!", ":^"].iter().any(|magic| word.starts_with(magic))
}

/// Whether a pathspec may leave files out.
fn is_exclusion(word: &str) -> bool {
    match word.strip_prefix(":(") {
        Some(magic) => magic.split(')').next().unwrap_or_default().split(',').any(|word| word == "exclude"),
        None => word.strip_prefix(':').is_some_and(|short| short.trim_start_matches('/').starts_with(['!', '^'])),
    }
}

/// A word with wildcards that the shell replaces by names: they begin as it does.
fn expanded(word: &Arg, below: &Path) -> Option<(bool, Pathspec)> {
    let is_known = |piece: &WordPart| matches!(piece, WordPart::Text(_) | WordPart::Glob(_));
    let (folder, _) = word.start().rsplit_once('/').filter(|_| word.pieces.iter().all(is_known))?;
    let is_plain = !folder.starts_with([':', '/', '~']) && !folder.contains(['*', '?', '[', '\\']);
    let name = joined(below, folder).filter(|_| is_plain)?;
    Some((false, Pathspec::Path { name, folder: true }))
}

/// Whether it leaves files out, and what it stands for. `None` if that is not known.
fn parse(text: &str, top: &Path, below: &Path) -> Option<(bool, Pathspec)> {
    let (mut excludes, mut from_top, mut ignores_case) = (false, false, false);
    let (mut is_literal, mut within_names) = (false, false);
    let path = match text.strip_prefix(':') {
        None => text,
        Some("") => return Some((false, Pathspec::Path { name: String::new(), folder: true })),
        Some(magic) => match magic.strip_prefix('(') {
            Some(long) => {
                let (words, path) = long.split_once(')')?;
                for word in words.split(',').filter(|word| !word.is_empty()) {
                    match word {
                        "exclude" => excludes = true,
                        "top" => from_top = true,
                        "literal" => is_literal = true,
                        "glob" => within_names = true,
                        "icase" => ignores_case = true,
                        _ => return None,
                    }
                }
                path
            }
            None => {
                let path = magic.trim_start_matches(['!', '^', '/']);
                let short = magic.strip_suffix(path)?;
                excludes = short.contains(['!', '^']);
                from_top = short.contains('/');
                path.strip_prefix(':').unwrap_or(path)
            }
        },
    };
    let is_folder = path.ends_with('/');
    let (below, path) = match path.starts_with('/') {
        true => (Path::new(""), Path::new(path).strip_prefix(top).ok()?.to_str()?),
        false if from_top => (Path::new(""), path),
        false => (below, path),
    };
    let wild = path.find(['*', '?', '[', '\\']).filter(|_| !is_literal);
    let name = joined(below, path)?;
    let chooses = |path: Pathspec| Some((false, path)).filter(|_| !ignores_case);
    match (wild, excludes) {
        (None, true) => Some((true, Pathspec::Path { name, folder: is_folder })),
        (None, false) => chooses(Pathspec::Path { name, folder: false }),
        (Some(_), false) => {
            let start = name.find(['*', '?', '[', '\\']).and_then(|at| name.get(..at)).unwrap_or_default();
            chooses(Pathspec::Start(start.to_owned()))
        }
        (Some(_), true) => {
            let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-.+@~/* ".contains(c);
            if is_folder || !name.chars().all(is_plain) {
                return None;
            }
            // Without `glob`, an asterisk stands for slashes too, and two are one.
            let mut pattern = name.clone();
            while !within_names && pattern.contains("**") {
                pattern = pattern.replace("**", "*");
            }
            let glob = GlobBuilder::new(&pattern).literal_separator(within_names).build().ok()?;
            Some((true, Pathspec::Wildcard(glob.compile_matcher())))
        }
    }
}

/// A path of the folder, from the top folder on. `None` if it leads out of that.
fn joined(below: &Path, path: &str) -> Option<String> {
    let mut names: Vec<&str> = below.iter().map(|name| name.to_str()).collect::<Option<_>>()?;
    for part in Path::new(path).components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => _ = names.pop()?,
            Component::Normal(name) => names.push(name.to_str()?),
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(names.join("/"))
}

/// Whether a pathspec names what is left out (gitglossary(7), "pathspec").
pub(super) fn excludes(pathspec: &str) -> bool {
    [":!", ":^", ":(exclude)", ":(top,exclude)"].iter().any(|magic| pathspec.starts_with(magic))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(below: &str, paths: &[&str], chosen: &[&str]) {
        let files = ["a.rs", "secrets/a.txt", "secrets.txt", "web/a.ts", "web/secrets/b.txt"];
        let words: Vec<Arg> = paths.iter().map(|path| Arg::text(path)).collect();
        let found = Pathspecs::of(words.iter(), Path::new("/work/app"), Path::new(below));
        let may: Vec<&str> = files.into_iter().filter(|file| found.may_choose(file)).collect();
        assert_eq!(may, chosen, "{paths:?} in {below:?}");
    }

    #[test]
    fn paths_choose_files_and_folders() {
        let all = ["a.rs", "secrets/a.txt", "secrets.txt", "web/a.ts", "web/secrets/b.txt"];
        check("", &[], &all);
        check("", &["."], &all);
        check("web", &["."], &["web/a.ts", "web/secrets/b.txt"]);
        check("web", &["..", ":/a.rs"], &all);
        check("", &["web/", "a.rs"], &["a.rs", "web/a.ts", "web/secrets/b.txt"]);
        check("web", &["./a.ts", "../a.rs"], &["a.rs", "web/a.ts"]);
        check("", &["/work/app/web/a.ts"], &["web/a.ts"]);
        check("", &["sec*"], &["secrets/a.txt", "secrets.txt"]);
        check("", &["*.rs"], &all);
        check("", &[":(icase)A.RS", "a.rs"], &all);
        check("", &[":(attr:x)a.rs"], &all);
        check("web", &["../../other"], &all);
    }

    #[test]
    fn excluded_paths_leave_files_out() {
        let rest = ["a.rs", "secrets.txt", "web/a.ts", "web/secrets/b.txt"];
        for excluded in
            [":!secrets", ":^secrets", ":(exclude)secrets", ":!secrets/", ":(top,exclude)secrets", ":/!secrets"]
        {
            check("", &[excluded], &rest);
            check("", &[".", excluded], &rest);
        }
        check("web", &[":(top,exclude)secrets"], &rest);
        check("web", &[":(exclude)secrets"], &["a.rs", "secrets/a.txt", "secrets.txt", "web/a.ts"]);
        check("", &[":!*secrets*"], &["a.rs", "web/a.ts"]);
        check("", &[":!secrets/*"], &rest);
        // Only a file within another folder matches.
        check("", &[":!**/secrets/**"], &["a.rs", "secrets/a.txt", "secrets.txt", "web/a.ts"]);
        check("", &[":(exclude,glob)**/secrets/**"], &["a.rs", "secrets.txt", "web/a.ts"]);
        check("", &[":(exclude,glob)secrets*"], &["a.rs", "secrets/a.txt", "web/a.ts", "web/secrets/b.txt"]);
        // These are not understood.
        let all = ["a.rs", "secrets/a.txt", "secrets.txt", "web/a.ts", "web/secrets/b.txt"];
        check("", &[":(exclude,attr:x)secrets"], &all);
        check("", &[":!secret[s]"], &all);
    }
}
