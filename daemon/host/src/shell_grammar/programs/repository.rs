//! Checks that a Git command that only reads runs nothing that the repository names, and that others run nothing there that
//! no person has chosen.

mod branches;
mod contents;
pub(in crate::shell_grammar) mod credentials;
pub(super) mod history;
mod nested;
mod objects;
pub(super) mod settings;

use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::CommandContext;
use super::pathspec::Pathspecs;
use crate::environment::Environment;
use crate::git_index::{self, IndexEntry, IndexEntryKind};
use crate::shell_grammar::arg::Arg;
use crate::shell_grammar::names::NameSet;

pub(super) use objects::is_object_name;
use settings::{RepositoryProblem, RepositorySettings};

const MAX_CONFIG: u64 = 256 * 1024;
/// A repository with more submodules that are checked out, those within submodules included, is not looked into.
const MAX_SUBMODULES: usize = 32;
/// Files of the working tree that are compared with the index: some tens of milliseconds.
const MAX_COMPARED: usize = 20_000;

/// A repository, as far as it is known.
pub(super) struct Repository {
    /// The folder with the files.
    pub(super) top: PathBuf,
    /// The files whose revisions `git blame` ignores.
    pub(super) ignored_revisions: Vec<PathBuf>,
    /// The repository's own folder.
    pub(super) own: PathBuf,
    /// The folder of the command.
    pub(super) folder: PathBuf,
    /// `None` when there is no index.
    entries: Option<Vec<IndexEntry>>,
    /// Its settings make commands enter submodules.
    recurses: bool,
    /// Why the command might run something that it names, although the command only reads or no person chose that.
    pub(super) problem: Option<RepositoryProblem>,
    /// A program in the session's folders that the command may run, so that tools may have written it, in words.
    pub(super) runs_inside: Option<String>,
}

/// Finds the repository as `git` does, for a command with this subcommand.
///
/// # Errors
/// Why nothing is known of it.
pub(super) fn find(
    site: &CommandContext,
    folder: Option<&Arg>,
    subcommand: &str,
    only_reads: bool,
) -> Result<Repository, RepositoryProblem> {
    match site.folders {
        Some([here]) => find_in(here, site, folder, subcommand, only_reads),
        folders => {
            let mut worst = RepositoryProblem::NotKnown("the folder that it runs in is unknown".to_owned());
            for here in folders.unwrap_or_default() {
                let found = find_in(here, site, folder, subcommand, only_reads);
                let problem = found.map_or_else(Some, |repository| repository.problem);
                worst = problem.filter(|problem| problem.rank() > worst.rank()).unwrap_or(worst);
            }
            Err(worst)
        }
    }
}

fn find_in(
    here: &Path,
    site: &CommandContext,
    folder: Option<&Arg>,
    subcommand: &str,
    only_reads: bool,
) -> Result<Repository, RepositoryProblem> {
    check_environment(site.environment)?;
    let named = folder.and_then(Arg::literal).unwrap_or(".");
    let folder = here.join(named).canonicalize().map_err(|error| format!("{}: {error}", here.join(named).display()))?;
    for top in folder.ancestors() {
        let own = top.join(".git");
        if let Ok(metadata) = std::fs::symlink_metadata(&own) {
            let own = folder_of(&own, &metadata)?;
            let reader = RepositoryReader { site, subcommand, only_reads };
            return Ok(reader.read(top, own, folder.clone(), &mut { MAX_SUBMODULES }));
        }
        // A bare repository may be anywhere.
        let exists = |name: &str| top.join(name).symlink_metadata().is_ok();
        if exists("HEAD") && (exists("objects") || exists("refs") || exists("commondir")) {
            return Err(RepositoryProblem::Odd(
                "the folder is a bare repository, and any tool may have written its settings".to_owned(),
            ));
        }
    }
    Err("there is no repository".to_owned().into())
}

/// Variables that change nothing about commands that only read: those of editors and prompts, and for connections.
const HARMLESS_VARIABLES: &[&str] = &[
    "GIT_PAGER",
    "GIT_TERMINAL_PROMPT",
    "GIT_EDITOR",
    "GIT_SEQUENCE_EDITOR",
    "GIT_MERGE_AUTOEDIT",
    "GIT_OPTIONAL_LOCKS",
    "GIT_CONFIG_NOSYSTEM",
    "GIT_LFS_SKIP_SMUDGE",
    "GIT_SSL_CAINFO",
    "GIT_SSL_CAPATH",
    "GIT_SSL_CERT",
    "GIT_SSL_KEY",
    "GIT_SSL_NO_VERIFY",
    "GIT_HTTP_LOW_SPEED_LIMIT",
    "GIT_HTTP_LOW_SPEED_TIME",
    "GIT_HTTP_USER_AGENT",
];

/// Programs for connections: reading runs them only where it may fetch objects. Editors set the first in their terminals.
const CONNECTING_VARIABLES: &[&str] =
    &["GIT_ASKPASS", "GIT_SSH", "GIT_SSH_COMMAND", "GIT_SSH_VARIANT", "GIT_PROXY_COMMAND"];

fn check_environment(environment: &Environment) -> Result<(), String> {
    for (name, value) in environment.iter() {
        let name = name.to_string_lossy();
        let is_person = name.starts_with("GIT_AUTHOR_") || name.starts_with("GIT_COMMITTER_");
        let is_harmless = is_person || HARMLESS_VARIABLES.contains(&&*name) || CONNECTING_VARIABLES.contains(&&*name);
        if name.starts_with("GIT_") && !is_harmless {
            return Err(format!("{name} is set"));
        }
        let pages = matches!(&*name, "GIT_PAGER" | "PAGER");
        if pages && !matches!(value.to_str(), Some("cat" | "less" | "more" | "")) {
            return Err(format!("{name} names a program"));
        }
    }
    Ok(())
}

/// The repository's own folder: `.git`, or what a file `.git` names, as in a worktree or a submodule.
fn folder_of(git: &Path, metadata: &std::fs::Metadata) -> Result<PathBuf, RepositoryProblem> {
    let own = match metadata.is_dir() {
        true => git.to_owned(),
        false => {
            let text = text_of(git, 4096)?;
            let target = text.strip_prefix("gitdir:").map(str::trim);
            let target = target.ok_or_else(|| "its .git file cannot be parsed".to_owned())?;
            let folder = git.parent().unwrap_or(Path::new("/")).join(target);
            folder.canonicalize().map_err(|error| format!("{}: {error}", folder.display()))?
        }
    };
    // Git ignores a `.git` that is not a repository.
    let is_one = own.join("HEAD").is_file() && (own.join("objects").is_dir() || own.join("commondir").is_file());
    match is_one {
        true => Ok(own),
        false => Err(RepositoryProblem::Odd(format!("{} is not a repository", own.display()))),
    }
}

/// Whether settings make no command of Git run a program, as far as they are known.
pub(in crate::shell_grammar) fn settings_run_nothing(text: &str) -> bool {
    let mut settings = RepositorySettings::default();
    let is_known = settings.read(text).is_ok();
    let RepositorySettings { hooks, worktrees, aliases, commands, runs_to_fetch, .. } = settings;
    let names_nothing = hooks.is_empty() && worktrees.is_empty() && aliases.is_empty() && commands.is_empty();
    is_known && names_nothing && runs_to_fetch.is_none()
}

fn text_of(path: &Path, limit: u64) -> Result<String, String> {
    crate::files::read_text(path, limit).map_err(|error| format!("{}: {error}", path.display()))
}

/// The folder with the settings and the hooks: another one for a worktree.
fn common_of(own: &Path) -> PathBuf {
    match text_of(&own.join("commondir"), 4096) {
        Ok(text) => own.join(text.trim()),
        Err(_) => own.to_owned(),
    }
}

/// The entries of the index; `None` without one.
fn entries_of(own: &Path) -> Result<Option<Vec<IndexEntry>>, RepositoryProblem> {
    let index = own.join("index");
    if index.symlink_metadata().is_err() {
        return Ok(None);
    }
    // The names of a split index lie in two files.
    let is_text = |entry: &IndexEntry| std::str::from_utf8(&entry.name).is_ok();
    let found = git_index::read(&index).filter(|index| index.shared.is_none() && index.entries.iter().all(is_text));
    let found = found.ok_or_else(|| "its index cannot be parsed".to_owned())?;
    Ok(Some(found.entries))
}

/// The hooks that run when the index is refreshed, and when objects that are not there are fetched.
fn check_hooks(folders: &[PathBuf], is_partial: bool) -> Result<(), RepositoryProblem> {
    let of_fetching = ["pre-auto-gc", "reference-transaction"].into_iter().filter(|_| is_partial);
    for name in std::iter::once("post-index-change").chain(of_fetching) {
        if folders.iter().any(|folder| folder.join(name).symlink_metadata().is_ok()) {
            return Err(format!("it has the hook {name}").into());
        }
    }
    Ok(())
}

/// Looks at a repository, for one command.
struct RepositoryReader<'a> {
    site: &'a CommandContext<'a>,
    subcommand: &'a str,
    only_reads: bool,
}

impl RepositoryReader<'_> {
    /// `submodules` is how many of them may still be looked into.
    fn read(&self, top: &Path, own: PathBuf, folder: PathBuf, submodules: &mut usize) -> Repository {
        let common = common_of(&own);
        let mut repository = Repository {
            ignored_revisions: Vec::new(),
            top: top.to_owned(),
            own,
            folder,
            entries: None,
            recurses: false,
            problem: None,
            runs_inside: None,
        };
        self.look(&mut repository, &common, submodules);
        if let Some(RepositoryProblem::NotKnown(why) | RepositoryProblem::Runs(why)) = &repository.problem
            && nested::is_nested(self.site.session_folders, &[&repository.own, &common])
        {
            repository.problem = Some(RepositoryProblem::Nested(why.clone()));
        }
        repository
    }

    /// Looks at its settings, its hooks and its submodules.
    fn look(&self, repository: &mut Repository, common: &Path, submodules: &mut usize) {
        let (top, own) = (repository.top.clone(), repository.own.clone());
        let mut settings = RepositorySettings::default();
        for config in [common.join("config"), own.join("config"), own.join("config.worktree")] {
            if config.symlink_metadata().is_ok() {
                let read = text_of(&config, MAX_CONFIG).map_err(RepositoryProblem::from);
                repository.note(read.and_then(|text| settings.read(&text)));
            }
        }
        repository.recurses = settings.recurses;
        repository.note(self.check_settings(&top, &own, &settings));
        let ignored = settings.ignored_revisions.iter().map(|file| self.path_in(&top, file)).collect();
        repository.ignored_revisions = repository.noted(ignored).unwrap_or_default();
        let mut hooks = vec![common.join("hooks")];
        hooks.extend(settings.hooks.iter().filter_map(|folder| repository.noted(self.path_in(&top, folder))));
        repository.note(check_hooks(&hooks, settings.is_partial));
        let entries = repository.noted(entries_of(&own)).flatten();
        for entry in entries.iter().flatten() {
            let found = top.join(entry.text());
            match entry.kind {
                IndexEntryKind::File => {}
                IndexEntryKind::Submodule => {
                    let submodule = repository.noted(self.submodule(&found, submodules)).flatten();
                    if let Some(submodule) = submodule {
                        repository.note(submodule.problem.map_or(Ok(()), Err));
                        repository.runs_inside = repository.runs_inside.take().or(submodule.runs_inside);
                    }
                }
                // Git lists what is in it, submodules included, once the folder is there.
                IndexEntryKind::SparseFolder if found.symlink_metadata().is_err() => {}
                IndexEntryKind::SparseFolder => {
                    let why = format!("its sparse index leaves out {}, which is there", entry.text());
                    repository.note(Err(why.into()));
                }
            }
        }
        repository.entries = entries;
        let folders = self.site.session_folders;
        if self.only_reads {
            if settings.is_partial && nested::is_nested(folders, &[&own, common]) {
                let why =
                    "reading may fetch objects from where its settings say, and no person has chosen this repository";
                repository.note(Err(RepositoryProblem::Nested(why.to_owned())));
            }
            return;
        }
        if nested::is_nested(folders, &[&own, common]) {
            repository.note(nested::runs_nothing(self.subcommand, &settings, &hooks));
        } else if repository.runs_inside.is_none() {
            repository.runs_inside = nested::runs_inside(folders, &top, common, &settings, &hooks);
        }
    }

    fn check_settings(&self, top: &Path, own: &Path, settings: &RepositorySettings) -> Result<(), RepositoryProblem> {
        // Git prefers its own commands to aliases, but which those are depends on its version.
        if settings.aliases.iter().any(|alias| alias.eq_ignore_ascii_case(self.subcommand)) {
            return Err(format!("it has an alias with the name {}", self.subcommand).into());
        }
        if settings.worktrees.iter().any(|place| own.join(place).canonicalize().ok().as_deref() != Some(top)) {
            return Err("its setting core.worktree names another folder".to_owned().into());
        }
        if let Some(why) = settings.runs_to_fetch.as_ref().filter(|_| settings.is_partial) {
            return Err(format!("reading may fetch objects, and {why}").into());
        }
        let connects = CONNECTING_VARIABLES.iter().find(|name| self.site.environment.get(name).is_some());
        match connects.filter(|_| settings.is_partial) {
            Some(name) => Err(format!("reading may fetch objects, and {name} is set").into()),
            None => Ok(()),
        }
    }

    /// `git status` and others run themselves in each submodule that is checked out, with the settings there.
    fn submodule(&self, folder: &Path, left: &mut usize) -> Result<Option<Repository>, RepositoryProblem> {
        let git = folder.join(".git");
        let Ok(metadata) = git.symlink_metadata() else { return Ok(None) };
        *left = left.checked_sub(1).ok_or_else(|| "it has too many submodules".to_owned())?;
        if folder.canonicalize().ok().as_deref() != Some(folder) {
            return Err(format!("its submodule {} is behind a link", folder.display()).into());
        }
        let own = folder_of(&git, &metadata)?;
        Ok(Some(self.read(folder, own, folder.to_owned(), left)))
    }

    /// A path in a setting, which is relative to the folder with the files.
    fn path_in(&self, top: &Path, text: &str) -> Result<PathBuf, RepositoryProblem> {
        let home = || self.site.environment.get("HOME").map(PathBuf::from);
        let path = match text.strip_prefix("~/") {
            Some(below) => home().map(|home| home.join(below)),
            None if text.starts_with(['~', '%', ':']) => None,
            None => Some(top.join(text)),
        };
        path.ok_or_else(|| RepositoryProblem::NotKnown(format!("its settings name {text}, which is not known")))
    }
}

impl Repository {
    /// Keeps the worst of what is wrong with it.
    fn note(&mut self, checked: Result<(), RepositoryProblem>) {
        if let Err(problem) = checked
            && self.problem.as_ref().is_none_or(|worst| worst.rank() < problem.rank())
        {
            self.problem = Some(problem);
        }
    }

    fn noted<T>(&mut self, found: Result<T, RepositoryProblem>) -> Option<T> {
        match found {
            Ok(found) => Some(found),
            Err(problem) => {
                self.note(Err(problem));
                None
            }
        }
    }

    /// The branch that is checked out, or `HEAD`.
    pub(super) fn branch(&self) -> Option<String> {
        let head = text_of(&self.own.join("HEAD"), 4096).ok()?;
        match head.trim_end().strip_prefix("ref: ") {
            Some(name) => name.strip_prefix("refs/heads/").map(str::to_owned),
            None => Some("HEAD".to_owned()),
        }
    }

    /// The names of all files of the index, from the top folder; none if the index is missing.
    pub(super) fn tracked_names(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().flatten().map(IndexEntry::text)
    }

    /// The same, if they are all known: `None` with folders that a sparse index leaves out, or with an index that cannot be read.
    pub(super) fn all_tracked_names(&self) -> Option<impl Iterator<Item = &str>> {
        let is_left_out = |entry: &IndexEntry| entry.kind == IndexEntryKind::SparseFolder;
        let is_unknown = self.entries.is_none() && self.own.join("index").symlink_metadata().is_ok();
        let is_known = !is_unknown && !self.entries.iter().flatten().any(is_left_out);
        is_known.then(|| self.tracked_names())
    }

    /// The entries of the index, as for [`Self::all_tracked_names`].
    fn all_entries(&self) -> Option<&[IndexEntry]> {
        self.all_tracked_names().map(|_| self.entries.as_deref().unwrap_or_default())
    }

    /// The names of the files that a comparison of the index with the working tree may show; `None` if they are not known.
    fn changed_names(&self) -> Option<impl Iterator<Item = &str>> {
        let entries = self.all_entries()?;
        let index = self.own.join("index").symlink_metadata().ok().filter(|_| entries.len() <= MAX_COMPARED);
        let may_differ =
            move |entry: &&IndexEntry| index.as_ref().is_none_or(|index| entry.may_differ(&self.top, index));
        Some(entries.iter().filter(may_differ).map(IndexEntry::text))
    }

    /// The tracked files below the folder of the command that these paths choose; `None` if there may be others: an index that
    /// is missing, folders that a sparse index leaves out, or submodules, where the command enters them.
    pub(super) fn tracked(&self, enters_submodules: bool, paths: &Pathspecs) -> Option<Rc<NameSet>> {
        let below = self.folder.strip_prefix(&self.top).ok()?;
        let entries = self.entries.as_ref()?;
        let is_whole = |entry: &IndexEntry| match entry.kind {
            IndexEntryKind::File => true,
            IndexEntryKind::Submodule => !enters_submodules && !self.recurses,
            IndexEntryKind::SparseFolder => false,
        };
        if !entries.iter().all(is_whole) {
            return None;
        }
        let is_below = |name: &&str| Path::new(name).starts_with(below) && paths.may_choose(name);
        let names = entries.iter().map(IndexEntry::text).filter(is_below);
        let files = names.map(|name| self.top.join(name)).collect();
        Some(Rc::new(NameSet::printed(self.folder.clone(), files, &self.folder)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_of_editors_and_for_connections_leave_git_reading() {
        let check = |variables: &[(&str, &str)]| {
            let variables = variables.iter().map(|(name, value)| (*name, std::ffi::OsStr::new(value)));
            check_environment(&Environment::default().with(variables))
        };
        for harmless in [
            [("GIT_SSL_CAINFO", "/etc/ssl/ca.pem"), ("GIT_EDITOR", "true")],
            [("GIT_ASKPASS", "/opt/editor/askpass.sh"), ("GIT_PAGER", "cat")],
            [("GIT_SSH_COMMAND", "ssh -i key"), ("GIT_AUTHOR_NAME", "Ada")],
        ] {
            assert_eq!(check(&harmless), Ok(()), "{harmless:?}");
        }
        for other in ["GIT_EXTERNAL_DIFF", "GIT_DIR", "GIT_CONFIG_COUNT", "GIT_TRACE", "GIT_EXEC_PATH", "GIT_SSL"] {
            assert!(check(&[(other, "x")]).is_err(), "{other}");
        }
        assert!(check(&[("PAGER", "./x")]).is_err());
    }
}
