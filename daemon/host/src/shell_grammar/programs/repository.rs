//! Checks that a Git command that only reads runs nothing that the repository names.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::CommandContext;
use crate::environment::Environment;
use crate::shell_grammar::arg::Arg;
use crate::shell_grammar::names::NameSet;

const MAX_CONFIG: u64 = 256 * 1024;
const MAX_INDEX: u64 = 64 * 1024 * 1024;

/// Repository settings that run nothing during a read: their sections and names.
const HARMLESS: &[(&str, &[&str])] = &[
    (
        "core",
        &[
            "repositoryformatversion",
            "filemode",
            "bare",
            "logallrefupdates",
            "ignorecase",
            "precomposeunicode",
            "symlinks",
            "autocrlf",
            "eol",
            "safecrlf",
            "abbrev",
            "quotepath",
            "longpaths",
            "untrackedcache",
            "preloadindex",
            "sharedrepository",
            "commitgraph",
            "compression",
            "looseCompression",
            "whitespace",
            "checkstat",
            "trustctime",
            "sparsecheckout",
            "sparsecheckoutcone",
            "multipackindex",
        ],
    ),
    ("remote", &["url", "fetch", "pushurl", "push", "prune", "tagopt", "mirror", "skipdefaultupdate", "gh-resolved"]),
    (
        "branch",
        &[
            "remote",
            "merge",
            "rebase",
            "pushremote",
            "description",
            "autosetupmerge",
            "autosetuprebase",
            "vscode-merge-base",
            "gh-merge-base",
            "github-pr-owner-number",
        ],
    ),
    ("user", &["name", "email", "signingkey", "useconfigonly"]),
    ("author", &["name", "email"]),
    ("committer", &["name", "email"]),
    ("init", &["defaultbranch"]),
    ("pull", &["rebase", "ff", "octopus"]),
    ("push", &["default", "autosetupremote", "followtags"]),
    ("fetch", &["prune", "prunetags", "parallel"]),
    ("merge", &["ff", "conflictstyle", "renames", "log"]),
    ("rebase", &["autostash", "autosquash", "updaterefs"]),
    ("rerere", &["enabled", "autoupdate"]),
    ("color", &["ui", "status", "branch", "diff", "interactive"]),
    ("advice", &["*"]),
    ("gc", &["auto", "autodetach", "autopacklimit"]),
    ("pack", &["threads", "windowmemory"]),
    ("commit", &["gpgsign", "verbose", "cleanup"]),
    ("tag", &["gpgsign", "sort"]),
    ("log", &["decorate", "date", "abbrevcommit", "follow"]),
    ("status", &["short", "branch", "showuntrackedfiles", "submodulesummary"]),
    (
        "diff",
        &[
            "renames",
            "algorithm",
            "context",
            "noprefix",
            "mnemonicprefix",
            "colormoved",
            "indentheuristic",
            "renamelimit",
        ],
    ),
    ("extensions", &["worktreeconfig"]),
    ("feature", &["manyfiles", "experimental"]),
    ("index", &["version", "threads", "skiphash"]),
    ("receive", &["denycurrentbranch", "denynonfastforwards"]),
    ("maintenance", &["auto", "strategy"]),
    ("safe", &["directory"]),
    ("submodule", &["active", "recurse"]),
];

/// Settings that make reading run a program. The effects of all others are unknown here.
const RUNS: &[(&str, &[&str])] = &[
    ("core", &["fsmonitor", "pager", "sshcommand", "gitproxy", "askpass", "editor", "alternaterefscommand"]),
    ("diff", &["external", "textconv", "command", "cachetextconv"]),
    ("filter", &["clean", "smudge", "process"]),
    ("pager", &["*"]),
    ("gpg", &["program"]),
    ("interactive", &["difffilter"]),
    ("include", &["path"]),
    ("includeif", &["path"]),
];

/// Why a command of Git might do more than read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RepositoryProblem {
    /// This is uncertain, so the command needs approval like any other.
    NotKnown(String),
    /// The repository names a program that the command runs.
    Runs(String),
    /// Git might use a different folder as the repository, or any tool could have written its settings.
    Odd(String),
}

impl From<String> for RepositoryProblem {
    fn from(why: String) -> Self {
        Self::NotKnown(why)
    }
}

/// A repository in which reading runs nothing.
pub(super) struct Repository {
    /// The folder with the files.
    pub(super) top: PathBuf,
    own: PathBuf,
    /// The folder of the command.
    folder: PathBuf,
}

/// Finds the repository as `git` does.
///
/// # Errors
/// Why reading it might run something.
pub(super) fn find(site: &CommandContext, folder: Option<&Arg>) -> Result<Repository, RepositoryProblem> {
    let Some([here]) = site.folders else { return Err("the folder that it runs in is unknown".to_owned().into()) };
    check_environment(site.environment)?;
    let named = folder.and_then(Arg::literal).unwrap_or(".");
    let folder = here.join(named).canonicalize().map_err(|error| format!("{}: {error}", here.join(named).display()))?;
    for top in folder.ancestors() {
        let own = top.join(".git");
        if let Ok(metadata) = std::fs::symlink_metadata(&own) {
            let own = match metadata.is_dir() {
                true => own,
                false => linked(&own)?,
            };
            // Git ignores a `.git` that is not a repository.
            let is_one =
                own.join("HEAD").is_file() && (own.join("objects").is_dir() || own.join("commondir").is_file());
            if !is_one {
                return Err(RepositoryProblem::Odd(format!("{} is not a repository", own.display())));
            }
            return check_repository(Repository { top: top.to_owned(), own, folder: folder.clone() });
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

fn check_environment(environment: &Environment) -> Result<(), String> {
    let harmless = ["GIT_PAGER", "GIT_TERMINAL_PROMPT", "GIT_EDITOR", "GIT_OPTIONAL_LOCKS"];
    for (name, value) in environment.iter() {
        let name = name.to_string_lossy();
        let is_person = name.starts_with("GIT_AUTHOR_") || name.starts_with("GIT_COMMITTER_");
        if name.starts_with("GIT_") && !is_person && !harmless.contains(&&*name) {
            return Err(format!("{name} is set"));
        }
        let pages = matches!(&*name, "GIT_PAGER" | "PAGER");
        if pages && !matches!(value.to_str(), Some("cat" | "less" | "more" | "")) {
            return Err(format!("{name} names a program"));
        }
    }
    Ok(())
}

/// `.git` may be a file that names the folder: in a worktree or a submodule.
fn linked(file: &Path) -> Result<PathBuf, String> {
    let text = text_of(file, 4096)?;
    let target = text.strip_prefix("gitdir:").map(str::trim).ok_or("its .git file cannot be parsed")?;
    let folder = file.parent().unwrap_or(Path::new("/")).join(target);
    folder.canonicalize().map_err(|error| format!("{}: {error}", folder.display()))
}

fn check_repository(repository: Repository) -> Result<Repository, RepositoryProblem> {
    let own = &repository.own;
    let common = match text_of(&own.join("commondir"), 4096) {
        Ok(text) => own.join(text.trim()),
        Err(_) => own.clone(),
    };
    for config in [common.join("config"), own.join("config"), own.join("config.worktree")] {
        if config.symlink_metadata().is_ok() {
            check_config(&text_of(&config, MAX_CONFIG)?)?;
        }
    }
    if common.join("modules").symlink_metadata().is_ok() {
        return Err("it has submodules, and their settings apply too".to_owned().into());
    }
    // Submodules have their own settings, and may be named only in the index.
    match repository.entries() {
        Some(entries) if entries.iter().any(|entry| entry.is_link) => {
            return Err("it has submodules, and their settings apply too".to_owned().into());
        }
        None if own.join("index").symlink_metadata().is_ok() => {
            return Err("its index cannot be parsed".to_owned().into());
        }
        Some(_) | None => {}
    }
    // The only hook that runs when the index is refreshed.
    if common.join("hooks/post-index-change").symlink_metadata().is_ok() {
        return Err("it has the hook post-index-change".to_owned().into());
    }
    Ok(repository)
}

fn text_of(path: &Path, limit: u64) -> Result<String, String> {
    crate::files::read_text(path, limit).map_err(|error| format!("{}: {error}", path.display()))
}

/// Each line must be a known section or setting. A value that continues on the next line is parsed as another setting,
/// which can only reject more.
fn check_config(text: &str) -> Result<(), RepositoryProblem> {
    let mut problem = Ok(());
    let mut section = String::new();
    for line in text.lines() {
        let mut line = line.trim();
        if let Some(rest) = line.strip_prefix('[') {
            let Some((header, behind)) = rest.split_once(']') else {
                return Err("its settings cannot be parsed".to_owned().into());
            };
            if header.matches('"').count() % 2 == 1 || header.contains('\\') {
                return Err("its settings cannot be parsed".to_owned().into());
            }
            let name = header.split(['"', ' ', '.', '\t']).next().unwrap_or_default();
            section = name.to_ascii_lowercase();
            line = behind.trim();
        }
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        let name = line.split(['=', ' ', '\t']).next().unwrap_or_default().to_ascii_lowercase();
        let is_in = |list: &[(&str, &[&str])]| {
            let names = list.iter().find(|(known, _)| *known == section).map(|(_, names)| *names);
            names.is_some_and(|names| names.contains(&"*") || names.contains(&name.as_str()))
        };
        if is_in(RUNS) {
            return Err(RepositoryProblem::Runs(format!("the repository's setting {section}.{name} runs a program")));
        }
        if !is_in(HARMLESS) {
            problem = Err(format!("its setting {section}.{name} is not known to be harmless").into());
        }
    }
    problem
}

impl Repository {
    /// The branch that is checked out, or `HEAD`.
    pub(super) fn branch(&self) -> Option<String> {
        let head = text_of(&self.own.join("HEAD"), 4096).ok()?;
        match head.trim_end().strip_prefix("ref: ") {
            Some(name) => name.strip_prefix("refs/heads/").map(str::to_owned),
            None => Some("HEAD".to_owned()),
        }
    }

    /// The tracked files below the folder of the command; `None` if the index is not understood.
    pub(super) fn tracked(&self) -> Option<Rc<NameSet>> {
        let below = self.folder.strip_prefix(&self.top).ok()?;
        let entries = self.entries()?;
        let names = entries.into_iter().map(|entry| entry.name).filter(|name| Path::new(name).starts_with(below));
        let files = names.map(|name| self.top.join(name)).collect();
        Some(Rc::new(NameSet::printed(self.folder.clone(), files, &self.folder)))
    }

    fn entries(&self) -> Option<Vec<Tracked>> {
        index(&crate::files::read_named(&self.own.join("index"), MAX_INDEX).ok()?)
    }
}

/// An entry of the index.
struct Tracked {
    name: String,
    /// A submodule.
    is_link: bool,
}

/// The entries of an index of version 2 or 3 with SHA-1 (git-scm.com/docs/index-format).
fn index(bytes: &[u8]) -> Option<Vec<Tracked>> {
    let number = |at: usize| Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    if bytes.get(..4)? != b"DIRC" || !matches!(number(4)?, 2 | 3) {
        return None;
    }
    let mut entries = Vec::new();
    let mut at = 12;
    for _ in 0..number(8)? {
        let is_link = number(at + 24)? & 0o170_000 == 0o160_000;
        let flags = u16::from_be_bytes(bytes.get(at + 60..at + 62)?.try_into().ok()?);
        let start = at + if flags & 0x4000 == 0 { 62 } else { 64 };
        let length = bytes.get(start..)?.iter().position(|byte| *byte == 0)?;
        entries.push(Tracked { name: String::from_utf8(bytes[start..start + length].to_vec()).ok()?, is_link });
        // Padded with NULs to a multiple of eight, with at least one.
        at += ((start - at + length) / 8 + 1) * 8;
    }
    // Extensions, then the checksum. With these two extensions, file names are stored elsewhere.
    while at + 20 < bytes.len() {
        if matches!(bytes.get(at..at + 4)?, b"link" | b"sdir") {
            return None;
        }
        at += 8 + number(at + 4)? as usize;
    }
    Some(entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_run_nothing_are_known() {
        let plain = "[core]\n\trepositoryformatversion = 0\n\tbare = false\n[remote \"origin\"]\n\turl = git@h:x.git\n\
                     [branch \"main\"]\n\tremote = origin ; here\n# x\n";
        assert_eq!(check_config(plain), Ok(()));
        for runs in [
            "[core]\nfsmonitor = x",
            "[core]\npager=x",
            "[diff]\nexternal = x",
            "[diff \"x\"]\ntextconv = y",
            "[filter \"x\"]\nclean = y",
            "[core] hooksPath = x",
            "[include]\npath = x",
            "[alias]\nst = !x",
            "[CORE]\nsshCommand = x",
            "[gpg]\nprogram = x",
            "[core]\nbare = false \\\nfsmonitor = x",
            "[core]fsmonitor=touch x # ]",
            "[remote \"a]b\"]\nfetch = x",
            "core.x = 1",
            "[includeIf \"x\"]\npath = y",
            "[remote \"o\"]\nuploadpack = x",
            "[credential]\nhelper = x",
            "[core]\nworktree = /",
            "[extensions]\npartialClone = o",
            "[remote \"o\"]\npromisor = true",
            "[url \"x\"]\ninsteadOf = y",
        ] {
            assert!(check_config(runs).is_err(), "{runs}");
        }
    }
}
