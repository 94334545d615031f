//! Ignore files: `.gitignore`, `.ignore`, `.rgignore`, `.git/info/exclude` and the user's global list, with the semantics
//! of gitignore(5) and ripgrep.
//!
//! They are read here with limits instead of by the walker: a repository may contain a pipe, a device or gigabytes in
//! their place. One that cannot be used is listed in [`IgnoreFiles::problems`], and the walk continues without it.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::SystemTime;

use parking_lot::Mutex;
use toold_engine::dependencies::FileFacts;

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use crate::exclude::Exclusions;
use crate::file_facts;
use crate::files::{self, OpenError};
use crate::git_index;
use crate::pattern_budget::{MAX_BYTES, MAX_FOLDERS, MAX_PATTERNS, take_room};
use crate::read_access::ReadAccess;

/// The most problems that are kept: further ones would add nothing.
const MAX_PROBLEMS: usize = 20;
/// Size limit of a Git configuration, and of Git's files that contain one path, in bytes.
const MAX_CONFIG: u64 = 256 * 1024;
/// The length of ignore files that are read in place, in bytes together.
const SHORT: u64 = 4 * 1024;

/// Ignore files of searches, in a repository or not; the first takes precedence.
const OF_SEARCHES: [&str; 2] = [".rgignore", ".ignore"];
/// The same for walks of the daemon's own: a file of which only ripgrep knows says nothing about them.
const OF_DAEMON: [&str; 1] = [".ignore"];

/// The ignore files that apply to one walk. Each is read when the walk reaches its folder.
pub struct IgnoreFiles {
    root: PathBuf,
    /// `None` reads no ignore file that is a link, and keeps no problems.
    judge: Option<Arc<ReadAccess>>,
    cwd: PathBuf,
    /// The user's global list for all repositories (`core.excludesFile`), read for the first path in one.
    global: OnceLock<Gitignore>,
    known: Mutex<IgnoreState>,
}

struct IgnoreState {
    /// The rules of a folder; `None` if none apply.
    folders: HashMap<PathBuf, Option<Arc<IgnoreLevel>>>,
    /// Rules of the folders above the root.
    above: Option<Arc<IgnoreLevel>>,
    /// How many more plain patterns may be kept.
    room: usize,
    problems: Vec<String>,
    exclusions: Exclusions,
    /// The hidden folders in the index of each repository that was asked about.
    indexes: HashMap<PathBuf, Option<Arc<HashSet<Vec<u8>>>>>,
}

/// The ignore files of a folder that has some or that is a repository, linked to those above.
struct IgnoreLevel {
    above: Option<Arc<IgnoreLevel>>,
    /// By index in the walk's names.
    ignores: Vec<Gitignore>,
    git_ignore: Gitignore,
    git_exclude: Gitignore,
    is_repository: bool,
}

impl IgnoreFiles {
    /// For a walk below `root`. Patterns of the user's list that begin with `/` are relative to `cwd`. Reads the ignore
    /// files above `root`. Blocks.
    ///
    /// `judge` decides about files that are reached through links.
    pub fn new(root: &Path, cwd: &Path, judge: Arc<ReadAccess>) -> Self {
        Self::judged(root, cwd, Some(judge))
    }

    /// As [`IgnoreFiles::new`], for a walk whose results nobody is given. Ignore files that are links are not used. Blocks.
    pub fn for_daemon(root: &Path) -> Self {
        Self::judged(root, root, None)
    }

    /// Whether the ignore files in and above a folder are so short that to read them takes no longer than to have another
    /// thread do it.
    pub fn are_short(root: &Path, judge: &ReadAccess) -> bool {
        let exclusions = judge.exclusions();
        let in_folder = |folder: &Path| -> u64 {
            let names = exclusions.names_of(folder);
            let files = OF_SEARCHES.into_iter().chain([".gitignore"]).filter(|name| names.may_have(name));
            files.filter_map(|name| std::fs::metadata(folder.join(name)).ok()).map(|metadata| metadata.len()).sum()
        };
        root.ancestors().map(in_folder).sum::<u64>() <= SHORT
    }

    fn judged(root: &Path, cwd: &Path, judge: Option<Arc<ReadAccess>>) -> Self {
        let known = IgnoreState {
            folders: HashMap::new(),
            above: None,
            room: MAX_PATTERNS,
            problems: Vec::new(),
            exclusions: judge.as_ref().map_or_else(Exclusions::default, |judge| judge.exclusions()),
            indexes: HashMap::new(),
        };
        let (root, cwd) = (root.to_owned(), cwd.to_owned());
        let files = Self { root, judge, cwd, global: OnceLock::new(), known: Mutex::new(known) };
        let mut known = files.known.lock();
        let mut above: Vec<&Path> = files.root.ancestors().skip(1).collect();
        above.reverse();
        for folder in above {
            let inherited = known.above.take();
            known.above = files.level(folder, inherited, &mut known);
        }
        drop(known);
        files
    }

    fn global(&self) -> &Gitignore {
        self.global.get_or_init(|| {
            let rules = |file: PathBuf| self.rules(&self.cwd, &file, &mut self.known.lock());
            excludes_file().and_then(rules).unwrap_or_else(Gitignore::empty)
        })
    }

    /// The verdict on an absolute path in the tree: the nearest file with a matching pattern decides. `.rgignore` takes
    /// precedence over `.ignore`, that over `.gitignore`, that over `.git/info/exclude`, and that over the user's list.
    /// Git's own files apply only in repositories, up to the root of the repository.
    pub fn matched(&self, path: &Path, is_folder: bool) -> Match<()> {
        let Some(level) = path.parent().and_then(|folder| self.level_of(folder)) else { return Match::None };
        let (mut ignores, mut git_ignore, mut git_exclude) =
            ([const { Match::None }; OF_SEARCHES.len()], Match::None, Match::None);
        let mut is_repository = false;
        for level in std::iter::successors(Some(&level), |level| level.above.as_ref()) {
            for (ignore, rules) in ignores.iter_mut().zip(&level.ignores) {
                *ignore = std::mem::replace(ignore, Match::None).or(rules.matched(path, is_folder).map(drop));
            }
            if !is_repository {
                git_ignore = git_ignore.or(level.git_ignore.matched(path, is_folder).map(drop));
                git_exclude = git_exclude.or(level.git_exclude.matched(path, is_folder).map(drop));
                is_repository = level.is_repository;
            }
        }
        let ignore = ignores.into_iter().fold(Match::None, Match::or);
        match is_repository {
            true => ignore.or(git_ignore).or(git_exclude).or(self.global().matched(path, is_folder).map(drop)),
            false => ignore,
        }
    }

    /// Whether the index of the repository has files in this folder, whose name begins with a dot. Reads the index once for each
    /// repository, if it is another one than that of the last walk. Blocks.
    pub fn tracks_folder(&self, folder: &Path) -> bool {
        let Some((top, Some(git))) = folder.ancestors().skip(1).find_map(|top| Some((top, own_git_folder(top)?)))
        else {
            return false;
        };
        let Ok(inside) = folder.strip_prefix(top) else { return false };
        let mut known = self.known.lock();
        let index = known.indexes.entry(top.to_owned()).or_insert_with(|| hidden_folders(&git.join("index"))).clone();
        drop(known);
        index.is_some_and(|index| index.contains(inside.as_os_str().as_bytes()))
    }

    /// The files that were not used, and why; only those that the caller may read.
    pub fn problems(&self) -> Vec<String> {
        self.known.lock().problems.clone()
    }

    /// Adds a problem of the walk if the caller may read the file concerned.
    pub(crate) fn note(&self, path: &Path, problem: &str) {
        self.note_in(path, problem, &mut self.known.lock());
    }

    fn level_of(&self, folder: &Path) -> Option<Arc<IgnoreLevel>> {
        self.level_in(folder, &mut self.known.lock())
    }

    fn level_in(&self, folder: &Path, known: &mut IgnoreState) -> Option<Arc<IgnoreLevel>> {
        if let Some(level) = known.folders.get(folder) {
            return level.clone();
        }
        let above = match folder.parent() {
            Some(parent) if folder != self.root => self.level_in(parent, known),
            _ => known.above.clone(),
        };
        let level = self.level(folder, above.clone(), known);
        if known.folders.len() >= MAX_FOLDERS {
            // Folders with patterns are bounded by the pattern limit.
            known.folders.retain(|_, level| level.as_ref().is_some_and(|level| level.has_patterns()));
        }
        known.folders.insert(folder.to_owned(), level.clone());
        level
    }

    /// The rules of a folder, given the rules above it.
    fn level(
        &self,
        folder: &Path,
        above: Option<Arc<IgnoreLevel>>,
        known: &mut IgnoreState,
    ) -> Option<Arc<IgnoreLevel>> {
        let names = known.exclusions.names_of(folder);
        let repository = if names.may_have(".git") || names.may_have(".jj") { repository(folder) } else { None };
        let mut own =
            |name: &str| names.may_have(name).then(|| self.rules(folder, &folder.join(name), known)).flatten();
        let of_walk: &[&str] = if self.judge.is_some() { &OF_SEARCHES } else { &OF_DAEMON };
        let ignores: Vec<Option<Gitignore>> = of_walk.iter().map(|name| own(name)).collect();
        let git_ignore = own(".gitignore");
        let git_exclude = match &repository {
            Some(Some(git)) => self.rules(folder, &git.join("info/exclude"), known),
            Some(None) | None => None,
        };
        let has_ignores = ignores.iter().any(Option::is_some);
        if repository.is_none() && !has_ignores && git_ignore.is_none() && git_exclude.is_none() {
            return above;
        }
        Some(Arc::new(IgnoreLevel {
            above,
            ignores: ignores.into_iter().map(|rules| rules.unwrap_or_else(Gitignore::empty)).collect(),
            git_ignore: git_ignore.unwrap_or_else(Gitignore::empty),
            git_exclude: git_exclude.unwrap_or_else(Gitignore::empty),
            is_repository: repository.is_some(),
        }))
    }

    /// The rules of one file, relative to `folder`; `None` if there is no usable file.
    fn rules(&self, folder: &Path, file: &Path, known: &mut IgnoreState) -> Option<Gitignore> {
        let is_of_git = !OF_SEARCHES.iter().any(|name| file.ends_with(name));
        let line: fn(&str) -> Cow<'_, str> = if is_of_git { without_lists } else { |line| Cow::Borrowed(line) };
        match self.read(file, known).map(|bytes| parse(folder, &bytes, line, &mut known.room))? {
            Ok(rules) => Some(rules),
            Err(problem) => {
                self.note_in(file, &problem, known);
                None
            }
        }
    }

    fn read(&self, file: &Path, known: &mut IgnoreState) -> Option<Vec<u8>> {
        let link = match files::facts(file) {
            Ok(Some(_)) => file.to_owned(),
            // A link, at the end or on the way: the caller may not be allowed to read its target.
            Err(OpenError::Swapped(_)) => {
                let resolved = files::resolve(file, Path::new("/")).ok()?;
                self.may_read(&resolved, known).then_some(resolved)?
            }
            Ok(None) | Err(_) => return None,
        };
        match files::read_whole(&link, MAX_BYTES) {
            Ok(bytes) => Some(bytes),
            Err(OpenError::NotFound(_)) => None,
            Err(error) => {
                self.note_in(file, &format!("it is not used: {error}"), known);
                None
            }
        }
    }

    fn may_read(&self, file: &Path, known: &mut IgnoreState) -> bool {
        self.judge.as_ref().is_some_and(|judge| judge.may_read(file, false, &mut known.exclusions))
    }

    fn note_in(&self, file: &Path, problem: &str, known: &mut IgnoreState) {
        if known.problems.len() < MAX_PROBLEMS && self.may_read(file, known) {
            known.problems.push(format!("{}: {problem}", file.display()));
        }
    }
}

impl IgnoreLevel {
    fn has_patterns(&self) -> bool {
        self.ignores.iter().chain([&self.git_ignore, &self.git_exclude]).any(|rules| !rules.is_empty())
    }
}

/// Parses the patterns of a text in the syntax of `.gitignore`, each as `line` gives it. Invalid lines are skipped, as in Git.
fn parse(folder: &Path, text: &[u8], line: fn(&str) -> Cow<'_, str>, room: &mut usize) -> Result<Gitignore, String> {
    take_room(text, room)?;
    let text = String::from_utf8_lossy(text);
    let mut builder = GitignoreBuilder::new(folder);
    for pattern in text.trim_start_matches('\u{feff}').lines() {
        let _ = builder.add_line(None, &line(pattern));
    }
    builder.build().map_err(|_| "it is not used: its patterns are too complex together".to_owned())
}

/// A line of Git's own ignore files for a reader that takes braces for lists, as ripgrep does in its own files, and that does
/// not know the classes of POSIX.
fn without_lists(line: &str) -> Cow<'_, str> {
    const CLASSES: [(&str, &str); 7] = [
        ("[:alpha:]", "a-zA-Z"),
        ("[:digit:]", "0-9"),
        ("[:alnum:]", "a-zA-Z0-9"),
        ("[:upper:]", "A-Z"),
        ("[:lower:]", "a-z"),
        ("[:xdigit:]", "0-9a-fA-F"),
        ("[:space:]", " \t"),
    ];
    if !line.contains(['{', '}']) && !line.contains("[:") {
        return Cow::Borrowed(line);
    }
    let (mut plain, mut rest, mut in_class) = (String::new(), line, false);
    while let Some(next) = rest.chars().next() {
        let class = CLASSES.iter().find(|(name, _)| in_class && rest.starts_with(name));
        let (length, text) = match next {
            '\\' => (1 + rest[1..].chars().next().map_or(0, char::len_utf8), None),
            '{' if !in_class => (1, Some("[{]")),
            '}' if !in_class => (1, Some("[}]")),
            _ => class.map_or((next.len_utf8(), None), |(name, members)| (name.len(), Some(*members))),
        };
        let (taken, after) = rest.split_at(length);
        plain.push_str(text.unwrap_or(taken));
        rest = after;
        if next == '[' && !in_class {
            // A bracket that comes first is a member.
            let members = rest.trim_start_matches(['!', '^']);
            let first = rest.len() - members.len() + usize::from(members.starts_with(']'));
            plain.push_str(&rest[..first]);
            rest = &rest[first..];
        }
        in_class = next == '[' || in_class && next != ']';
    }
    Cow::Owned(plain)
}

/// Whether a folder is a repository of Git or Jujutsu, and where Git's files shared by all work trees are.
fn repository(folder: &Path) -> Option<Option<PathBuf>> {
    let git = folder.join(".git");
    let kind = std::fs::metadata(&git).ok().map(|metadata| metadata.file_type());
    match kind {
        Some(kind) if kind.is_dir() => Some(Some(git)),
        Some(kind) if kind.is_file() => Some(shared_by_work_trees(&git, folder)),
        Some(_) => Some(None),
        None => folder.join(".jj").exists().then_some(None),
    }
}

/// Where the index of the work tree at `folder` is; `None` if it is none.
fn own_git_folder(folder: &Path) -> Option<Option<PathBuf>> {
    let git = folder.join(".git");
    let kind = std::fs::symlink_metadata(&git).ok()?.file_type();
    if kind.is_dir() {
        return Some(Some(git));
    }
    let bytes = files::read_whole(&git, MAX_CONFIG).ok()?;
    let line = bytes.split(|byte| *byte == b'\n').next()?.strip_prefix(b"gitdir:")?;
    Some(Some(folder.join(OsStr::from_bytes(line.trim_ascii()))))
}

/// The hidden folders of one index, as it was when it was read.
struct KnownIndex {
    path: PathBuf,
    facts: FileFacts,
    hidden: Arc<HashSet<Vec<u8>>>,
}

static KNOWN_INDEX: Mutex<Option<KnownIndex>> = Mutex::new(None);

/// The hidden folders with files in an index. Those of the last index are kept until its file is another.
fn hidden_folders(path: &Path) -> Option<Arc<HashSet<Vec<u8>>>> {
    let metadata = std::fs::metadata(path).ok()?;
    let facts = file_facts::facts(&metadata);
    let known = KNOWN_INDEX.lock();
    if let Some(known) = known.as_ref().filter(|known| known.path == path && known.facts == facts) {
        return Some(known.hidden.clone());
    }
    drop(known);
    let hidden = Arc::new(git_index::hidden_folders(path)?);
    if file_facts::is_settled(&metadata, SystemTime::now()) {
        *KNOWN_INDEX.lock() = Some(KnownIndex { path: path.to_owned(), facts, hidden: hidden.clone() });
    }
    Some(hidden)
}

/// The target of a work tree's `.git` file (gitrepository-layout(5), `gitdir` and `commondir`).
fn shared_by_work_trees(git: &Path, folder: &Path) -> Option<PathBuf> {
    let path_in = |file: &Path, prefix: &str| -> Option<PathBuf> {
        let bytes = files::read_whole(&files::resolve(file, Path::new("/")).ok()?, MAX_CONFIG).ok()?;
        let line = bytes.split(|byte| *byte == b'\n').next()?.strip_prefix(prefix.as_bytes())?;
        Some(PathBuf::from(OsStr::from_bytes(line.trim_ascii())))
    };
    let own = folder.join(path_in(git, "gitdir:")?);
    let shared = path_in(&own.join("commondir"), "").map(|shared| own.join(shared));
    files::resolve(&shared.unwrap_or(own), folder).ok()
}

/// Where the user's global list is, and the settings that say so, as they were when they were read.
struct KnownList {
    settings: Vec<(PathBuf, Option<FileFacts>)>,
    list: Option<PathBuf>,
}

static KNOWN_LIST: Mutex<Option<KnownList>> = Mutex::new(None);

/// The user's global list (gitignore(5), `core.excludesFile`), whether or not it exists. The settings are read again when
/// one of their files is another.
fn excludes_file() -> Option<PathBuf> {
    let var = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| !path.as_os_str().is_empty());
    let home = std::env::home_dir();
    let config = var("XDG_CONFIG_HOME").or_else(|| Some(home.as_ref()?.join(".config")));
    let configured = [
        var("GIT_CONFIG_GLOBAL"),
        home.as_ref().map(|home| home.join(".gitconfig")),
        config.as_ref().map(|config| config.join("git/config")),
        Some(var("GIT_CONFIG_SYSTEM").unwrap_or_else(|| PathBuf::from("/etc/gitconfig"))),
    ];
    let now = SystemTime::now();
    let mut is_settled = true;
    let seen = configured.into_iter().flatten().map(|file| {
        let metadata = std::fs::metadata(&file).ok();
        is_settled &= metadata.as_ref().is_none_or(|metadata| file_facts::is_settled(metadata, now));
        (file, metadata.as_ref().map(file_facts::facts))
    });
    let settings: Vec<(PathBuf, Option<FileFacts>)> = seen.collect();
    let known = KNOWN_LIST.lock();
    if let Some(known) = known.as_ref().filter(|known| is_settled && known.settings == settings) {
        return known.list.clone();
    }
    drop(known);
    let read = |file: &Path| files::read_whole(&files::resolve(file, Path::new("/")).ok()?, MAX_CONFIG).ok();
    let there = settings.iter().filter(|(_, facts)| facts.is_some());
    let named = there.map(|(file, _)| file).find_map(|file| excludes_in(&read(file)?));
    let named = named.map(|path| match path.strip_prefix("~/") {
        Some(rest) => home.clone().unwrap_or_default().join(rest),
        None => PathBuf::from(path),
    });
    let list = named.or_else(|| config.map(|config| config.join("git/ignore")));
    *KNOWN_LIST.lock() = is_settled.then(|| KnownList { settings, list: list.clone() });
    list
}

/// The last value of `excludesFile` in section `[core]` of a Git configuration.
fn excludes_in(config: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(config);
    let (mut is_core, mut found) = (false, None);
    for line in text.lines().map(str::trim) {
        if line.starts_with('[') {
            is_core = line.to_ascii_lowercase().starts_with("[core]");
        } else if let Some((key, value)) = line.split_once('=')
            && is_core
            && key.trim().eq_ignore_ascii_case("excludesfile")
        {
            found = Some(value.trim().trim_matches('"').to_owned());
        }
    }
    found.filter(|path| !path.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_git_have_no_lists_and_may_have_classes() {
        for (line, expected) in [
            ("*.rs", "*.rs"),
            ("*.{a,b}", "*.[{]a,b[}]"),
            (r"\{a,\}", r"\{a,\}"),
            ("[{}]x{", "[{}]x[{]"),
            ("[]{]{", "[]{][{]"),
            ("[!]{]{", "[!]{][{]"),
            ("v[[:digit:]].[[:alpha:]_]", "v[0-9].[a-zA-Z_]"),
            ("[:digit:]{", "[:digit:][{]"),
            ("ü{\\", "ü[{]\\"),
        ] {
            assert_eq!(without_lists(line), expected);
        }
    }
}
