//! The folders that a person trusted in an agent's own dialog, as the agent recorded it in the home folder. Writes of these
//! files are protected, and no client names others.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use toold_engine::level::is_named;
use toold_host::files;

const MAX_BYTES: u64 = 16 * 1024 * 1024;

/// What an agent recorded about a folder and everything in it.
type TrustRecord = (PathBuf, bool);

/// Reads the records of an agent from the text of its file; none when it cannot be read.
type ReadTrustRecords = fn(&str) -> Vec<TrustRecord>;

/// The agents that ask for trust, by the names that they report, with the files of their answers.
const RECORDS: [(&str, &str, ReadTrustRecords); 3] = [
    ("claude-code", ".claude.json", of_claude_code),
    ("codex", ".codex/config.toml", of_codex),
    ("gemini", ".gemini/trustedFolders.json", of_gemini),
];

/// The nearest folder around `folder`, or itself, about which a person answered the agent that this client is named after, if the
/// answer was to trust it. Reads a file.
pub(super) fn trusted_place(client: &str, folder: &Path, home: &Path) -> Option<PathBuf> {
    let (_, file, read) = RECORDS.iter().find(|(agent, ..)| is_named(client, agent))?;
    let text = files::read_text(&home.join(file), MAX_BYTES).ok()?;
    let around = read(&text).into_iter().filter_map(|(place, is_trusted)| {
        // A relative path would depend on the daemon's own folder.
        let place = place.is_absolute().then(|| place.canonicalize().ok()).flatten()?;
        folder.starts_with(&place).then_some((place, is_trusted))
    });
    // If there are two answers about one folder, such as through a link to it, the refusal counts.
    let (place, is_trusted) = around.max_by_key(|(place, is_trusted)| (place.components().count(), !is_trusted))?;
    is_trusted.then_some(place)
}

/// An answer of no is not recorded, and `false` stands for a question that was not asked yet.
fn of_claude_code(text: &str) -> Vec<TrustRecord> {
    #[derive(Deserialize)]
    struct ClaudeCodeState {
        projects: HashMap<PathBuf, ClaudeCodeProject>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct ClaudeCodeProject {
        #[serde(default)]
        has_trust_dialog_accepted: bool,
    }
    let state: Option<ClaudeCodeState> = serde_json::from_str(text).ok();
    let projects = state.into_iter().flat_map(|state| state.projects);
    projects.filter(|(_, project)| project.has_trust_dialog_accepted).map(|(place, _)| (place, true)).collect()
}

fn of_codex(text: &str) -> Vec<TrustRecord> {
    #[derive(Deserialize)]
    struct CodexTrustConfig {
        projects: HashMap<PathBuf, CodexProject>,
    }
    #[derive(Deserialize)]
    struct CodexProject {
        trust_level: Option<String>,
    }
    let config: Option<CodexTrustConfig> = toml::from_str(text).ok();
    let projects = config.into_iter().flat_map(|config| config.projects);
    projects.filter_map(|(place, project)| Some((place, project.trust_level? == "trusted"))).collect()
}

fn of_gemini(text: &str) -> Vec<TrustRecord> {
    let folders: HashMap<PathBuf, String> = serde_json::from_str(text).unwrap_or_default();
    let record = |(place, answer): (PathBuf, String)| match answer.as_str() {
        "TRUST_FOLDER" => Some((place, true)),
        "TRUST_PARENT" => Some((place.parent()?.to_owned(), true)),
        _ => Some((place, false)),
    };
    folders.into_iter().filter_map(record).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_answer_of_the_agent_itself_counts() {
        let place = tempfile::tempdir().unwrap();
        let home = place.path().canonicalize().unwrap();
        for folder in [".codex", ".gemini", "a/inner", "b/inner"] {
            std::fs::create_dir_all(home.join(folder)).unwrap();
        }
        let (a, inner, b) = (home.join("a"), home.join("a/inner"), home.join("b"));
        let write = |file: &str, text: String| std::fs::write(home.join(file), text).unwrap();
        write(
            ".claude.json",
            serde_json::json!({"numStartups": 1, "projects": {
                &*a.to_string_lossy(): {"hasTrustDialogAccepted": true, "allowedTools": []},
                &*b.to_string_lossy(): {"hasTrustDialogAccepted": false},
                "b": {"hasTrustDialogAccepted": true},
            }})
            .to_string(),
        );
        write(
            ".codex/config.toml",
            format!(
                "model = \"m\"\n[projects.{a:?}]\ntrust_level = \"trusted\"\n[projects.{inner:?}]\ntrust_level = \"untrusted\"\n"
            ),
        );
        write(
            ".gemini/trustedFolders.json",
            serde_json::json!({&*inner.to_string_lossy(): "TRUST_PARENT", &*b.to_string_lossy(): "DO_NOT_TRUST"})
                .to_string(),
        );
        let trusts = |client: &str, folder: &Path| trusted_place(client, folder, &home).is_some();
        // In a, in the folder in it, in b.
        for (client, expected) in [
            ("claude-code", [true, true, false]),
            ("codex-mcp-client", [true, false, false]),
            ("gemini-cli-mcp-client", [true, true, false]),
            ("somebody", [false, false, false]),
            ("claude-codex", [false, false, false]),
        ] {
            assert_eq!([&a, &inner, &b].map(|folder| trusts(client, folder)), expected, "{client}");
        }
        write(".claude.json", "{\"projects\": 1}".to_owned());
        assert!(!trusts("claude-code", &a));
    }
}
