//! The folders in which agents of this machine worked lately.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde_json::Value;

use crate::commands::mcp::install::below_home;
use crate::commands::mcp::jsonc;
use crate::commands::setup::servers::read;

/// A folder, the agents that worked there, and when the last one did if that is known.
#[derive(Clone)]
pub(super) struct WorkFolder {
    pub(super) path: PathBuf,
    pub(super) agents: Vec<&'static str>,
}

/// What counts as lately.
const LATELY: Duration = Duration::from_secs(90 * 24 * 3600);
/// The largest number of sessions of Codex, and of workspaces of an editor, that are looked at.
const MAX_RECORDS: usize = 400;
const MAX_FOLDERS: usize = 30;

/// Sorted by path. Never the home folder or one above it, and no folder for temporary files.
pub(super) fn lately(home: &Path) -> Vec<WorkFolder> {
    let mut found: BTreeMap<PathBuf, Vec<&'static str>> = BTreeMap::new();
    let mut add = |agent: &'static str, folder: &str| {
        let Ok(folder) = Path::new(folder).canonicalize() else { return };
        if folder.is_dir() && is_possible(&folder, home) {
            let agents = found.entry(folder).or_default();
            if !agents.contains(&agent) {
                agents.push(agent);
            }
        }
    };
    let claude = json(&home.join(".claude.json"));
    for project in claude["projects"].as_object().into_iter().flat_map(|projects| projects.keys()) {
        // Claude Code keeps the sessions of each folder below a name that is made of its path.
        let sessions: String = project.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
        let sessions = home.join(".claude/projects").join(sessions);
        if !sessions.exists() || is_late(&sessions) {
            add("claude-code", project);
        }
    }
    let codex = read(&home.join(".codex/config.toml")).ok().and_then(|text| text.parse::<toml::Table>().ok());
    for project in codex.iter().filter_map(|table| table.get("projects")?.as_table()).flat_map(toml::Table::keys) {
        add("codex", project);
    }
    let gemini = json(&home.join(".gemini/projects.json"));
    for project in gemini["projects"].as_object().into_iter().flat_map(|projects| projects.keys()) {
        add("gemini", project);
    }
    for (agent, folder) in [("vscode", "Code"), ("cursor", "Cursor"), ("windsurf", "Windsurf")] {
        let storage = below_home(&format!("$XDG_CONFIG_HOME/{folder}/User/workspaceStorage"));
        for workspace in recent(&home.join(storage)) {
            let workspace = json(&workspace.join("workspace.json"));
            if let Some(path) = workspace["folder"].as_str().and_then(|uri| uri.strip_prefix("file://")) {
                add(agent, &path.replace("%20", " "));
            }
        }
    }
    for project in recent(&home.join(".local/share/opencode/storage/project")) {
        add("opencode", json(&project)["worktree"].as_str().unwrap_or_default());
    }
    found.into_iter().map(|(path, agents)| WorkFolder { path, agents }).take(MAX_FOLDERS).collect()
}

/// A folder that is narrow enough to be one for work.
pub(super) fn is_possible(folder: &Path, home: &Path) -> bool {
    let real_home = home.canonicalize().unwrap_or_else(|_| home.to_owned());
    let temporary = [std::env::temp_dir(), "/tmp".into(), "/var/tmp".into(), "/dev/shm".into()];
    let in_temporary = |folder: &Path| temporary.iter().any(|temporary| folder.starts_with(temporary));
    // A home below a temporary folder is used for trials; its projects are none the less projects.
    let is_temporary = in_temporary(folder) && !folder.starts_with(&real_home);
    !real_home.starts_with(folder) && !home.starts_with(folder) && !is_temporary && folder.components().count() > 2
}

fn json(file: &Path) -> Value {
    read(file).ok().and_then(|text| jsonc::whole(&text)).unwrap_or_default()
}

fn is_late(path: &Path) -> bool {
    let changed = path.metadata().and_then(|about| about.modified()).ok();
    changed.is_some_and(|changed| SystemTime::now().duration_since(changed).is_ok_and(|age| age < LATELY))
}

/// What is in a folder and was changed lately.
fn recent(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| is_late(path)).take(MAX_RECORDS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_folders_are_not_offered() {
        let home = Path::new("/home/u");
        for folder in ["/", "/home", "/home/u", "/tmp", "/tmp/x/y", "/var/tmp/x", "/srv"] {
            assert!(!is_possible(Path::new(folder), home), "{folder}");
        }
        for folder in ["/home/u/work", "/srv/code", "/home/u/tmp"] {
            assert!(is_possible(Path::new(folder), home), "{folder}");
        }
    }
}
