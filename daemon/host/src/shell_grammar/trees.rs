//! Determines which files of a folder a program reads, from the options that select them.

use globset::GlobMatcher;

use super::arg::Arg;
use super::names::{TreeEntry, leaves_out, wildcard};
use super::programs::Parsed;

#[derive(Debug, Default)]
pub(super) struct TreeFilter {
    /// A file's name must match one of them, if there are any.
    pub(super) includes: Vec<GlobMatcher>,
    pub(super) excludes: Vec<GlobMatcher>,
    pub(super) excluded_folders: Vec<GlobMatcher>,
    /// Folders with these names directly in the tree's own folder.
    pub(super) excluded_at_top: Vec<String>,
    pub(super) skips_hidden: bool,
    /// Links are followed, whatever the names of what they lead to.
    pub(super) follows_links: bool,
    /// No folder is among what it takes.
    pub(super) is_of_files: bool,
}

impl TreeFilter {
    pub(super) fn enters(&self, entry: &TreeEntry) -> bool {
        let is_hidden = self.skips_hidden && entry.name.starts_with('.');
        let is_excluded = entry.is_at_top && self.excluded_at_top.iter().any(|name| name == entry.name);
        !is_hidden && !is_excluded && !self.excluded_folders.iter().any(|glob| glob.is_match(entry.name))
    }

    pub(super) fn takes(&self, entry: &TreeEntry) -> bool {
        let is_hidden = self.skips_hidden && entry.name.starts_with('.');
        !is_hidden
            && (self.includes.is_empty() || self.includes.iter().any(|glob| glob.is_match(entry.name)))
            && !self.excludes.iter().any(|glob| glob.is_match(entry.name))
    }

    /// By `--include`, `--exclude` and `--exclude-dir`; `None` if one of them is not understood, and then all files
    /// count. With both kinds, a file that matches neither is included (GNU grep decides by its first match), so only
    /// one kind is considered here.
    pub(super) fn of_grep(parsed: &Parsed) -> Option<std::rc::Rc<Self>> {
        // Where the shell finds names for `--include=*.py`, they include less.
        let text = |value: &Arg| value.literal().map(str::to_owned).or_else(|| value.wildcard());
        let globs = |name: &str| -> Option<Vec<GlobMatcher>> {
            parsed.values(&[name]).map(|value| wildcard(&text(value)?, false)).collect()
        };
        let left_out = |name: &str| -> Vec<GlobMatcher> {
            parsed.values(&[name]).filter_map(|value| leaves_out(value.literal()?)).collect()
        };
        let (includes, excludes) = (globs("--include")?, left_out("--exclude"));
        let includes = if parsed.has(&["--exclude"]) { Vec::new() } else { includes };
        let follows_links = parsed.has(&["-R", "--dereference-recursive"]);
        let has_both = parsed.has(&["--include"]) && parsed.has(&["--exclude"]);
        let excludes = if has_both { Vec::new() } else { excludes };
        Some(
            Self { includes, excludes, excluded_folders: left_out("--exclude-dir"), follows_links, ..Self::default() }
                .into(),
        )
    }

    /// Hidden files are skipped unless an option says otherwise; `-g` may do so as well. File types and ignore files
    /// only exclude more.
    pub(super) fn of_rg(parsed: &Parsed) -> Option<std::rc::Rc<Self>> {
        let all = [
            "-.",
            "--hidden",
            "-u",
            "--unrestricted",
            "-a",
            "--all-types",
            "-g",
            "--glob",
            "--iglob",
            "--ignore-file",
            "--type-add",
        ];
        // `-f` names a file with patterns for rg, and follows links for ag.
        let follows_links = parsed.has(&["-L", "--follow"]) || parsed.known.name != "rg" && parsed.has(&["-f"]);
        let globs: Vec<_> = parsed.values(&["-g", "--glob"]).map(|value| value.literal()).collect();
        // `-g=X` is `-g X` to some versions, blanks at the ends and comments are left out, and an empty glob includes all.
        let is_plain = |glob: &str| {
            !glob.is_empty()
                && glob.trim() == glob
                && !glob.contains(['/', '{', '\\'])
                && !glob.starts_with(['!', '=', '#'])
        };
        let plain = globs.iter().all(|glob| glob.is_some_and(is_plain))
            && !parsed.has(&["--iglob", "--ignore-file", "--type-add"]);
        if !globs.is_empty() && plain && parsed.known.name == "rg" {
            let includes = globs.iter().flatten().map(|glob| wildcard(glob, false)).collect::<Option<_>>()?;
            return Some(Self { includes, follows_links, ..Self::default() }.into());
        }
        Some(Self { skips_hidden: !parsed.has(&all), follows_links, ..Self::default() }.into())
    }
}
