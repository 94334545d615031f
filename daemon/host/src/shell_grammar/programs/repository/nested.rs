//! Tells whether a person has chosen the settings and hooks of a repository. Those of the repository of a session's folder are
//! the person's, and no tool may write them. A repository further below came with other files, or a command of the session made
//! it. And a tool may have written a program in the session's folders, also if a person's setting names it.

use std::borrow::Cow;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::settings::{RepositoryProblem, RepositorySettings};
use super::{common_of, folder_of};

/// Hooks that commands run which change the index or a branch, or which fetch.
const HOOKS_OF_ALL: &[&str] = &["post-index-change", "reference-transaction", "pre-auto-gc"];

/// Subcommands that run no hook but those above: githooks(5) of git 2.47.
const WITHOUT_OWN_HOOKS: &[&str] = &[
    "add",
    "apply",
    "branch",
    "config",
    "fetch",
    "gc",
    "mv",
    "remote",
    "reset",
    "restore",
    "rm",
    "stage",
    "tag",
    "update-index",
];

/// Anybody may make a repository there.
const TEMPORARY: &[&str] = &["/tmp", "/var/tmp"];

/// Whether one of the folders of a repository (`.git`) lies in the session's folders or in one for temporary files, and not
/// in the repository of one of the session's folders.
pub(super) fn is_nested(session_folders: &[Cow<Path>], owns: &[&Path]) -> bool {
    let is_writable = |own: &Path| {
        let folders = session_folders.iter().map(AsRef::as_ref);
        folders.chain(TEMPORARY.iter().map(Path::new)).any(|folder| own.starts_with(folder))
    };
    let found: Vec<PathBuf> = owns.iter().map(|own| own.canonicalize().unwrap_or_else(|_| own.to_path_buf())).collect();
    if session_folders.is_empty() || !found.iter().any(|own| is_writable(own)) {
        return false;
    }
    let chosen: Vec<PathBuf> = session_folders.iter().filter_map(|folder| common_above(folder)).collect();
    !found.iter().all(|own| chosen.iter().any(|chosen| own.starts_with(chosen)))
}

/// The `.git` of the repository in which a folder lies.
fn common_above(folder: &Path) -> Option<PathBuf> {
    let git = folder.ancestors().map(|top| top.join(".git")).find(|git| git.symlink_metadata().is_ok())?;
    let own = folder_of(&git, &git.symlink_metadata().ok()?).ok()?;
    common_of(&own).canonicalize().ok()
}

/// Checks that a command which does not only read runs nothing that a nested repository names.
pub(super) fn runs_nothing(
    subcommand: &str,
    settings: &RepositorySettings,
    hooks: &[PathBuf],
) -> Result<(), RepositoryProblem> {
    if let Some(setting) = settings.commands.first() {
        return Err(RepositoryProblem::Runs(format!("its setting {} names a program", setting.key)));
    }
    if let Some(why) = &settings.runs_to_fetch {
        return Err(RepositoryProblem::Runs(why.clone()));
    }
    match hook_of(subcommand, hooks) {
        Some(hook) => Err(RepositoryProblem::Runs(format!("it has the hook {hook}"))),
        None => Ok(()),
    }
}

/// A hook that the subcommand may run.
fn hook_of(subcommand: &str, folders: &[PathBuf]) -> Option<String> {
    let runs = |name: &str| HOOKS_OF_ALL.contains(&name) || !WITHOUT_OWN_HOOKS.contains(&subcommand);
    let found = folders.iter().filter_map(|folder| std::fs::read_dir(folder).ok()).flatten().flatten();
    let hooks = found.filter(|entry| entry.path().metadata().is_ok_and(|of| of.permissions().mode() & 0o111 != 0));
    let mut names = hooks.map(|entry| entry.file_name().to_string_lossy().into_owned());
    // Git adds those that end so to each new repository, and runs none of them.
    names.find(|name| !name.ends_with(".sample") && runs(name))
}

/// A program in the session's folders that a person's repository makes a command run, in words. The hooks of single
/// subcommands are among the effects of these.
pub(super) fn runs_inside(
    session_folders: &[Cow<Path>],
    top: &Path,
    common: &Path,
    settings: &RepositorySettings,
    hooks: &[PathBuf],
) -> Option<String> {
    let is_inside = |path: &Path| session_folders.iter().any(|folder| path.starts_with(folder));
    let names_inside = |word: &str| {
        let word = word.trim_matches(['!', '\'', '"']);
        let path = word.rsplit('=').next().unwrap_or_default();
        match path.chars().next() {
            None | Some('~' | '$' | '%') => false,
            Some('/') => is_inside(Path::new(path)),
            // In the folder with the files, or relative to it.
            Some(_) => is_inside(top) && (path.contains('/') || top.join(path).is_file()),
        }
    };
    let mut commands = settings.commands.iter();
    let named = commands.find(|setting| match &setting.value {
        Some(value) => value.split([' ', ';', '|', '&']).any(names_inside),
        None => true,
    });
    if let Some(setting) = named {
        return Some(format!("the setting {} names a program of the project", setting.key));
    }
    let of_project: Vec<PathBuf> =
        hooks.iter().filter(|folder| is_inside(folder) && !folder.starts_with(common)).cloned().collect();
    let found = hook_of("add", &of_project)?;
    Some(format!("its hook {found} is a file of the project"))
}
