//! What makes Git run programs in a repository: its settings, its hooks, and what its settings include.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::checked_out::git_folder;
use crate::launcher::stand_in::StandInContent;
use crate::shell_grammar::{git_settings_run_nothing, logical};
use crate::{files, git_settings};

/// Settings are not read beyond this size.
const MAX_CONFIG: u64 = 256 << 10;
/// Files that settings include, one by another.
const MAX_INCLUDED: usize = 32;
/// The settings of a person, below the home folder.
const OF_PERSON: [&str; 2] = [".config/git/config", ".gitconfig"];
/// Logs of branches, and folders of such, that are looked at.
const MAX_LOGS: usize = 4096;
/// Repositories of submodules that are looked into.
const MAX_MODULES: usize = 64;

/// What Git reads as configuration of a repository, and what stands in for it where it does not exist: as without it, the
/// repository's own folder has all of the repository, and nothing more is set.
const CONFIGURATION: &[(&str, StandInContent)] = &[
    ("commondir", StandInContent::File(".\n")),
    ("config.worktree", StandInContent::File("")),
    ("hooks", StandInContent::Folder),
    ("info", StandInContent::Folder),
    ("modules", StandInContent::Folder),
];

/// In the folder of a repository, while a rebase or a series of picks has stopped: what Git does when it goes on, and the names of
/// strategies, which are parts of names of programs.
const REBASE: &str = "rebase-merge/git-rebase-todo";
const STRATEGY: &str = "rebase-merge/strategy";
const OPTIONS: &str = "sequencer/opts";

/// The places that decide what Git runs in a repository.
#[derive(Debug, Default)]
pub(super) struct GitControl {
    /// Those that exist.
    pub(super) existing: BTreeSet<PathBuf>,
    /// Those that do not, with what stands in for them.
    pub(super) missing: Vec<(PathBuf, StandInContent)>,
    /// Files by which Git goes on with what has stopped, which may name commands.
    pub(super) waiting: Vec<PathBuf>,
}

impl GitControl {
    /// Adds those of a repository. `git` is `.git` of a folder, be it a folder itself or a file that names one, or a bare
    /// repository. Reads some small files.
    pub(super) fn add(&mut self, git: &Path, home: Option<&Path>) {
        let is_folder = git.is_dir();
        let top = git.parent().unwrap_or(Path::new("/"));
        let own = match (is_folder, git.ends_with(".git")) {
            (true, _) => Some(git.to_owned()),
            (false, true) => git_folder(top),
            (false, false) => None,
        };
        if !is_folder {
            self.existing.insert(git.to_owned());
        }
        let Some(own) = own else { return };
        // In the folder of a linked worktree, it names the repository.
        let common = match text(&own.join("commondir")) {
            Some(common) if common.trim() != "." => own.join(common.trim()),
            _ => own.clone(),
        };
        for (name, content) in CONFIGURATION {
            self.place(own.join(name), *content);
        }
        self.waiting.extend(waiting_files(&own));
        for worktree in worktrees(&own) {
            self.place(worktree.join("config.worktree"), StandInContent::File(""));
            self.existing.extend(
                ["commondir", "gitdir"].map(|name| worktree.join(name)).into_iter().filter(|path| exists(path)),
            );
        }
        let config = own.join("config");
        self.existing.extend(Some(config).filter(|config| exists(config)));
        let top = if git.ends_with(".git") { top } else { git };
        self.follow(vec![common.join("config"), own.join("config.worktree")], top, home);
        // What is relative there is so to each repository.
        self.add_of_person(top, home);
    }

    /// Adds what the settings of the person name, as Git sees it in a folder.
    pub(super) fn add_of_person(&mut self, top: &Path, home: Option<&Path>) {
        let files = home.into_iter().flat_map(|home| OF_PERSON.map(|name| home.join(name)));
        self.follow(files.collect(), top, home);
    }

    /// Adds what these files with settings include, and the folders of hooks that they name.
    fn follow(&mut self, mut left: Vec<PathBuf>, top: &Path, home: Option<&Path>) {
        let mut read = BTreeSet::new();
        while let Some(config) = left.pop() {
            if read.len() == MAX_INCLUDED || !read.insert(config.clone()) {
                continue;
            }
            let folder = config.parent().unwrap_or(Path::new("/"));
            for setting in text(&config).and_then(|text| git_settings::all(&text)).unwrap_or_default() {
                let Some(value) = setting.value else { continue };
                match (setting.section.as_str(), setting.name.as_str()) {
                    ("include" | "includeif", "path") => {
                        let included = at(&value, folder, home);
                        self.place(included.clone(), StandInContent::File(""));
                        left.push(included);
                    }
                    ("core", "hookspath") => self.place(at(&value, top, home), StandInContent::Folder),
                    _ => {}
                }
            }
        }
    }

    /// A place that may not exist, nor the folders above it.
    fn place(&mut self, path: PathBuf, content: StandInContent) {
        let first = path.ancestors().take_while(|path| !exists(path)).last().map(Path::to_owned);
        match first {
            None => _ = self.existing.insert(path),
            Some(first) if first == path => self.missing.push((path, content)),
            Some(first) => self.missing.push((first, StandInContent::Folder)),
        }
    }
}

/// The folders of the linked worktrees of a repository, where they really lie.
fn worktrees(own: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = std::fs::read_dir(own.join("worktrees")).into_iter().flatten().flatten();
    entries.filter_map(|worktree| worktree.path().canonicalize().ok())
}

/// The files by which Git goes on with what has stopped in a repository, also in its linked worktrees. `own` is its folder.
fn waiting_files(own: &Path) -> Vec<PathBuf> {
    let folders = worktrees(own).chain([own.to_owned()]);
    let files = folders.flat_map(|folder| [REBASE, STRATEGY, OPTIONS].map(|name| folder.join(name)));
    files.filter(|file| exists(file)).collect()
}

/// The links in a repository's own folder and those of its worktrees, among what Git writes there. Git follows them: by one from
/// the text of the last commit, `git commit` would write that text anywhere. `git` is as for [`GitControl::add`].
pub(super) fn links(git: &Path) -> Vec<PathBuf> {
    let Some(own) = own_folder(git) else { return Vec::new() };
    let tops: Vec<PathBuf> = worktrees(&own).chain([own.clone()]).collect();
    let (mut left, mut found) = (tops.clone(), Vec::new());
    left.extend(tops.iter().map(|top| top.join("logs")).chain([own.join("worktrees")]));
    let mut looked = 0;
    while let Some(folder) = left.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            looked += 1;
            let Ok(kind) = entry.file_type() else { continue };
            let is_log = || !tops.contains(&folder) && !tops.contains(&entry.path()) && looked < MAX_LOGS;
            if kind.is_symlink() {
                found.push(entry.path());
            } else if kind.is_dir() && is_log() {
                left.push(entry.path());
            }
        }
    }
    found
}

/// The commands that Git will run when what has stopped in a repository goes on, each with its file. `git` is as for
/// [`GitControl::add`].
pub(super) fn waiting_commands(git: &Path) -> BTreeSet<(PathBuf, String)> {
    let own = own_folder(git);
    let files = own.iter().flat_map(|own| waiting_files(own));
    files.flat_map(|file| commands_in(&file).into_iter().map(move |command| (file.clone(), command))).collect()
}

/// Its own folder, which a file may name.
fn own_folder(git: &Path) -> Option<PathBuf> {
    if git.is_dir() { Some(git.to_owned()) } else { git.parent().and_then(git_folder) }
}

fn commands_in(file: &Path) -> Vec<String> {
    // One that cannot be read may name any.
    let Some(text) = text(file) else { return vec![String::new()] };
    // Git looks up a name without a slash where it looks up its own programs.
    let runs_file = |name: &String| name.contains('/');
    if file.ends_with(STRATEGY) {
        return Some(text).filter(runs_file).into_iter().collect();
    }
    if file.ends_with(OPTIONS) {
        let Some(settings) = git_settings::all(&text) else { return vec![text] };
        let strategies = settings.into_iter().filter(|setting| setting.name == "strategy");
        return strategies.map(|setting| setting.value.unwrap_or_else(|| "/".to_owned())).filter(runs_file).collect();
    }
    let is_command = |line: &&str| matches!(line.split_whitespace().next(), Some("exec" | "x"));
    text.lines().filter(is_command).map(|line| line.trim().to_owned()).collect()
}

/// Whether Git runs nothing in a repository that has appeared, whatever is done there. `git` is as for [`GitControl::add`];
/// `is_known` tells about other repositories.
pub(super) fn runs_nothing(git: &Path, is_known: impl Fn(&Path) -> bool) -> bool {
    let Ok(found) = git.symlink_metadata() else { return true };
    if found.is_dir() {
        return folder_runs_nothing(git, &mut { MAX_MODULES });
    }
    let Some(own) = git.parent().and_then(git_folder) else { return !found.is_symlink() };
    let Ok(own) = own.canonicalize() else { return true };
    let common = text(&own.join("commondir")).map_or_else(|| own.clone(), |common| own.join(common.trim()));
    let Ok(common) = common.canonicalize() else { return false };
    let has_settings = exists(&own.join("config.worktree"));
    !has_settings && (is_known(&common) || folder_runs_nothing(&common, &mut { MAX_MODULES }))
}

fn folder_runs_nothing(own: &Path, modules: &mut usize) -> bool {
    if *modules == 0 {
        return false;
    }
    *modules -= 1;
    let is_harmless = |name: &str| {
        let path = own.join(name);
        !exists(&path) || text(&path).is_some_and(|text| git_settings_run_nothing(&text))
    };
    let entries = |name: &str| std::fs::read_dir(own.join(name)).into_iter().flatten().flatten();
    let is_sample = |name: &std::ffi::OsStr| name.to_string_lossy().ends_with(".sample");
    let has_own_files = !exists(&own.join("commondir")) || text(&own.join("commondir")).as_deref() == Some(".\n");
    has_own_files
        && is_harmless("config")
        && is_harmless("config.worktree")
        && entries("hooks").all(|hook| is_sample(&hook.file_name()))
        && entries("worktrees").all(|worktree| !exists(&worktree.path().join("config.worktree")))
        && modules_of(&own.join("modules")).iter().all(|module| folder_runs_nothing(module, modules))
}

/// The repositories below a folder: their names may have slashes.
fn modules_of(folder: &Path) -> Vec<PathBuf> {
    let (mut left, mut found) = (vec![folder.to_owned()], Vec::new());
    while let Some(folder) = left.pop() {
        let entries = std::fs::read_dir(&folder).into_iter().flatten().flatten();
        for path in entries.map(|entry| entry.path()).filter(|path| path.is_dir()) {
            match exists(&path.join("HEAD")) || exists(&path.join("config")) {
                true => found.push(path),
                false if left.len() < MAX_MODULES => left.push(path),
                // Too many to look at.
                false => found.push(path),
            }
        }
    }
    found
}

fn exists(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

fn text(path: &Path) -> Option<String> {
    files::read_text(path, MAX_CONFIG).ok()
}

/// A path as settings of Git write it.
fn at(value: &str, folder: &Path, home: Option<&Path>) -> PathBuf {
    match (value.strip_prefix("~/"), home) {
        (Some(below), Some(home)) => home.join(below),
        // The folders may not exist.
        _ => logical(&folder.join(value)),
    }
}
