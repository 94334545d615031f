//! The folders in which agents look for files of theirs, such as skills and sub-agents: those of the project, the person and an
//! organization. Where versions of an agent differ, all are searched. Those of plugins and extensions are in [`super::plugins`].

use std::collections::VecDeque;
use std::fs;
use std::path::{Component, Path, PathBuf};

use anyhow::ensure;
use icu_normalizer::ComposingNormalizerBorrowed;
use serde_json::Value;
use toold_host::environment::Environment;
use toold_host::files;

/// The largest file that is read, in bytes.
pub(super) const MAX_BYTES: u64 = 1 << 20;
/// How many names of one folder are looked at.
const MAX_NAMES: usize = 1000;
/// The same of folders of skills and sub-agents, of which none may be missed.
pub(super) const MAX_DEFINITIONS: usize = 10_000;
/// How many folders above the working folder are searched.
const MAX_LEVELS: usize = 32;
/// How many folders below one are looked at: some tens of milliseconds.
const MAX_FOLDERS: usize = 5_000;
/// How many files of sub-agents are read.
const MAX_FILES: usize = 1000;

/// The folder of an organization's own skills and sub-agents of Claude Code.
const MANAGED: &str = "/etc/claude-code/.claude";

/// The variables that name the folder that an agent was started in, whatever folder it works in by now.
const STARTED_IN: &[&str] = &["CLAUDE_PROJECT_DIR", "QWEN_PROJECT_DIR", "GEMINI_PROJECT_DIR"];

/// Names of folders of an agent other than Claude Code, in a project and in the home folder, and the variable that moves the
/// person's.
fn names_of(agent: &str) -> (&'static [&'static str], &'static str) {
    match agent {
        // The names of its files differ from those of skills for other agents.
        "copilot" | "vscode" => (&[".github", ".claude", ".copilot"], "COPILOT_HOME"),
        "gemini" => (&[".gemini"], "GEMINI_CLI_HOME"),
        "qwen-code" => (&[".qwen", ".agents"], "QWEN_HOME"),
        _ => (&[], ""),
    }
}

/// Folders that may have `skills`, `commands` and `agents`; for a name with this prefix, also those that it names.
pub(super) fn folders(agent: &str, prefix: Option<&str>, cwd: &Path, environment: &Environment) -> Vec<PathBuf> {
    if agent == "claude-code" {
        return of_claude_code(prefix, cwd, environment);
    }
    let (names, variable) = names_of(agent);
    let own = ["HOME", variable].into_iter().filter_map(|name| folder_in(environment, name));
    let places: Vec<PathBuf> = own.chain(above(cwd, environment)).collect();
    let in_place = |place: &PathBuf| names.iter().map(|name| place.join(name)).collect::<Vec<_>>();
    let mut folders: Vec<PathBuf> = places.iter().flat_map(in_place).collect();
    folders.extend(folder_in(environment, variable));
    folders
}

fn of_claude_code(prefix: Option<&str>, cwd: &Path, environment: &Environment) -> Vec<PathBuf> {
    let own = config_folder(environment);
    let places = above(cwd, environment);
    let above = || places.iter();
    let mut folders = vec![PathBuf::from(MANAGED)];
    folders.extend(own);
    folders.extend(above().map(|folder| folder.join(".claude")));
    let of_places: Vec<PathBuf> = folders.iter().flat_map(|folder| added_folders(folder, cwd, environment)).collect();
    folders.extend(of_places.into_iter().map(|folder| folder.join(".claude")));
    let Some(prefix) = prefix else { return folders };
    // The skills of a folder further down have its path in front of their names.
    let below = Path::new(prefix);
    if below.components().all(|part| matches!(part, Component::Normal(_))) {
        folders.extend(above().map(|folder| folder.join(below).join(".claude")));
    }
    folders
}

/// The working folder, and the one that the agent was started in, whatever folder it works in by now.
pub(super) fn started_in(cwd: &Path, environment: &Environment) -> Vec<PathBuf> {
    let projects = STARTED_IN.iter().filter_map(|name| folder_in(environment, name));
    std::iter::once(cwd.to_owned()).chain(projects).collect()
}

/// These folders and those above them.
fn above(cwd: &Path, environment: &Environment) -> Vec<PathBuf> {
    let levels = |folder: &PathBuf| folder.ancestors().take(MAX_LEVELS).map(Path::to_owned).collect::<Vec<_>>();
    started_in(cwd, environment).iter().flat_map(levels).collect()
}

/// The folders `.claude` below this one; where it has too many folders, those that are found first. Links are not followed.
pub(super) fn folders_below(top: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut waiting = VecDeque::from([top.to_owned()]);
    let mut looked = 0;
    while let Some(folder) = waiting.pop_front() {
        looked += 1;
        if looked > MAX_FOLDERS {
            break;
        }
        for name in names_in(&folder) {
            let path = folder.join(&name);
            match &*name {
                ".claude" => found.push(path),
                ".git" | "node_modules" => {}
                _ if path.symlink_metadata().is_ok_and(|entry| entry.is_dir()) => waiting.push_back(path),
                _ => {}
            }
        }
    }
    found
}

/// The files `*.md` in the folder and below it, through links.
///
/// # Errors
/// There are more than anybody has.
pub(super) fn markdown_below(top: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut seen = Vec::new();
    let mut waiting = vec![top.to_owned()];
    while let Some(folder) = waiting.pop() {
        let Ok(real) = folder.canonicalize() else { continue };
        if seen.contains(&real) {
            continue;
        }
        seen.push(real);
        let names = first_names_in(&folder, MAX_DEFINITIONS);
        ensure!(names.len() < MAX_DEFINITIONS, "{} has too many names", folder.display());
        for name in names {
            let path = folder.join(&name);
            if path.is_dir() {
                waiting.push(path);
            } else if name.ends_with(".md") && path.is_file() {
                found.push(path);
            }
        }
        let is_whole = found.len() < MAX_FILES && seen.len() < MAX_FILES;
        ensure!(is_whole, "{} has too many files", top.display());
    }
    Ok(found)
}

/// The folder in which Claude Code keeps the person's own files.
pub(super) fn config_folder(environment: &Environment) -> Option<PathBuf> {
    folder_in(environment, "CLAUDE_CONFIG_DIR").or_else(|| Some(folder_in(environment, "HOME")?.join(".claude")))
}

/// The folder that a variable names.
pub(super) fn folder_in(environment: &Environment, name: &str) -> Option<PathBuf> {
    environment.get(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// The folders that settings add to the working folder.
fn added_folders(of_settings: &Path, cwd: &Path, environment: &Environment) -> Vec<PathBuf> {
    let read = |name: &str| -> Option<Value> {
        serde_json::from_str(&files::read_text(&of_settings.join(name), MAX_BYTES).ok()?).ok()
    };
    let settings = ["settings.json", "settings.local.json"].into_iter().filter_map(read);
    let added = settings.flat_map(|settings| match &settings["permissions"]["additionalDirectories"] {
        Value::Array(folders) => folders.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        _ => Vec::new(),
    });
    let home = environment.get("HOME").map(PathBuf::from);
    let whole = |folder: String| match (folder.strip_prefix("~/"), &home) {
        (Some(below), Some(home)) => home.join(below),
        _ => cwd.join(folder),
    };
    added.map(whole).collect()
}

/// Agents do not distinguish small letters from others in names of skills and sub-agents.
pub(super) fn is_same(one: &str, other: &str) -> bool {
    one.to_lowercase() == other.to_lowercase()
}

/// A name without all in which agents may take it for another: Claude Code leaves out white space, dashes and `_`, and reads
/// compatible characters as the same; here, all that is no letter and no digit is left out.
pub(super) fn plain(name: &str) -> String {
    let name = ComposingNormalizerBorrowed::new_nfkc().normalize(name).to_lowercase();
    name.chars().filter(|c| c.is_alphanumeric()).collect()
}

/// The names in a folder, as far as they are looked at; none where it cannot be read. Those that are not UTF-8 name no file.
pub(super) fn names_in(folder: &Path) -> Vec<String> {
    first_names_in(folder, MAX_NAMES)
}

/// The same for another limit.
pub(super) fn first_names_in(folder: &Path, limit: usize) -> Vec<String> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    entries.flatten().take(limit).map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}
