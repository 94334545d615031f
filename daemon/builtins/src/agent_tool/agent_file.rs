//! The files of sub-agents: the programs that run for the sub-agent by themselves, and the skills that it begins with.
//!
//! Sources: the documentation of Claude Code and Qwen Code, and real runs. Claude Code 2.1.332 starts `mcpServers` and runs
//! `hooks` of files in `agents`, however deep, in a folder that the person trusts, and loads `skills`. Qwen Code 0.24.4 does the
//! first two, and with `executor` the sub-agent is another program. Copilot CLI 1.0.102 starts `mcp-servers`, also those of files
//! for Claude Code. Gemini CLI 0.61.0 starts `mcp_servers`: those of a project's file once the person has confirmed it. The roles
//! of Codex 0.171.0 start nothing. The code of VS Code 1.139.1 reads `hooks` and `mcp-servers` of files in `.github/agents`.
//! An agent finds a file by the name in its front matter.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context;
use serde_json::Value;
use toold_host::environment::Environment;
use toold_host::files;

use super::agent_folders::{MAX_BYTES, folder_in, folders, markdown_below, plain};
use super::plugins::plugins;
use super::started_programs::StartedPrograms;
use crate::front_matter::split;

/// The members of a front matter that start something, by any agent: more is found than one of them starts.
const STARTING: &[&str] = &["executor", "hooks", "mcp-servers", "mcpServers", "mcp_servers"];

/// The effects of starting one sub-agent.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct AgentFile {
    pub(super) starts: StartedPrograms,
    /// The names of skills that are loaded with it.
    pub(super) skills: Vec<String>,
    /// The agent has asked the person about it.
    pub(super) is_confirmed: bool,
}

/// The files that may define sub-agents of this kind. Blocks.
///
/// # Errors
/// A file that may be of this kind cannot be read, or there are too many files.
pub(super) fn find(agent: &str, kind: &str, cwd: &Path, environment: &Environment) -> anyhow::Result<Vec<AgentFile>> {
    if kind.trim().is_empty() {
        return Ok(Vec::new());
    }
    // The person's own file may be reached by several paths.
    let mut paths = BTreeMap::new();
    for folder in folders(agent, None, cwd, environment) {
        let is_confirmed = agent == "gemini" && !is_persons(&folder, environment);
        for file in markdown_below(&folder.join("agents"))? {
            *paths.entry(file).or_insert(is_confirmed) &= is_confirmed;
        }
    }
    let mut found = Vec::new();
    for (file, is_confirmed) in paths {
        found.extend(read(&file, &[plain(kind)])?.map(|found| AgentFile { is_confirmed, ..found }));
    }
    for plugin in plugins(agent, cwd, environment) {
        for top in &plugin.agents {
            let files = if top.is_file() { vec![top.clone()] } else { markdown_below(top)? };
            for file in files {
                // The names of the plugin and of the folders may stand in front.
                let below = file.parent().and_then(|folder| folder.strip_prefix(top).ok()).unwrap_or(Path::new(""));
                let below = plain(&below.to_string_lossy());
                let behind =
                    |own: &String| plain(kind).strip_prefix(&format!("{}{below}", plain(own))).map(str::to_owned);
                let behind = plugin.names.iter().filter_map(behind).filter(|behind| !behind.is_empty());
                let kinds: Vec<String> = behind.chain([plain(kind)]).collect();
                found.extend(read(&file, &kinds)?);
            }
        }
    }
    Ok(found)
}

/// Whether it is the folder of the person's own files.
fn is_persons(folder: &Path, environment: &Environment) -> bool {
    let home = |name: &str| folder_in(environment, name);
    ["HOME", "GEMINI_CLI_HOME"]
        .into_iter()
        .filter_map(home)
        .any(|home| folder == home.join(".gemini") || folder == home)
}

/// `None` for a file of other kinds than these, which are plain.
fn read(file: &Path, kinds: &[String]) -> anyhow::Result<Option<AgentFile>> {
    let bytes = files::read_named(file, MAX_BYTES).with_context(|| format!("can't read {}", file.display()))?;
    let text = String::from_utf8_lossy(&bytes);
    let stem = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let stem = stem.trim_end_matches(".md").trim_end_matches(".agent");
    AgentFile::parse(&text, stem, kinds).with_context(|| file.display().to_string())
}

impl AgentFile {
    /// `stem` is the name where the file does not tell one.
    fn parse(text: &str, stem: &str, kinds: &[String]) -> anyhow::Result<Option<Self>> {
        let is_named = |name: &str| kinds.contains(&plain(name));
        let is_escaped = text.contains('\\');
        let front = match split::<Value>(text) {
            Ok(parts) if parts.front.as_object().is_some_and(|front| !front.is_empty()) => parts.front,
            // A text without a front matter is of no sub-agent.
            Ok(_) if !text.trim_start_matches('\u{feff}').starts_with("---") => return Ok(None),
            // An agent may be able to read it.
            unread => {
                let text = plain(text);
                let may_be_named = is_escaped || kinds.iter().any(|kind| text.contains(kind.as_str()));
                anyhow::ensure!(
                    !may_be_named && !is_named(stem),
                    "{}",
                    match unread {
                        Ok(_) => "the front matter is not a mapping".to_owned(),
                        Err(error) => error.to_string(),
                    }
                );
                return Ok(None);
            }
        };
        let name = match front.get("name") {
            None | Some(Value::Null) => stem.to_owned(),
            Some(Value::String(name)) => name.trim().to_owned(),
            Some(name) => name.to_string(),
        };
        if !is_named(&name) {
            return Ok(None);
        }
        let mut found = Self::default();
        for member in STARTING {
            found.starts.add(member, front.get(member).unwrap_or(&Value::Null));
        }
        // A sub-agent of Gemini CLI can be one of another machine.
        found.starts.urls.extend(front.get("agent_card_url").and_then(Value::as_str).map(str::to_owned));
        if front.get("agent_card_json").is_some_and(|card| !card.is_null()) {
            found.starts.others.push("agent_card_json".to_owned());
        }
        found.skills = match front.get("skills") {
            Some(Value::String(names)) => names.split(',').map(|name| name.trim().to_owned()).collect(),
            Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
            _ => Vec::new(),
        };
        found.skills.retain(|name| !name.is_empty());
        Ok(Some(found))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str, kind: &str) -> Option<Vec<String>> {
        AgentFile::parse(text, "stem", &[plain(kind)]).unwrap().map(|file| file.starts.lines)
    }

    #[test]
    fn a_file_is_of_the_kind_in_its_front_matter() {
        let text = "---\nname: Helper\nexecutor: {kind: acp, command: ./x, args: [a b]}\n---\nYou help.\n";
        assert_eq!(lines(text, "helper"), Some(vec!["./x 'a b'".to_owned()]));
        for kind in ["HELPER", "hel per", "help-er", "_Helper", "\u{ff48}elper"] {
            assert!(lines(text, kind).is_some(), "{kind}");
        }
        assert_eq!(lines(text, "stem"), None);
        assert_eq!(lines("---\ndescription: x\n---\n", "stem"), Some(Vec::new()));
        assert_eq!(lines("---\nname: 12\n---\n", "12"), Some(Vec::new()));
        assert_eq!(lines("# stem\n", "stem"), None);
    }

    #[test]
    fn programs_of_hooks_and_servers_and_skills_are_found() {
        let text = "---\nname: a\nskills: [one, two]\nhooks:\n  Stop:\n  - hooks: [{command: touch x}]\n\
                    mcpServers:\n- near: {command: node, args: [b.js]}\nmcp-servers: {far: {url: \"https://a.test\"}}\n---\n";
        let found = AgentFile::parse(text, "", &["a".to_owned()]).unwrap().unwrap();
        assert_eq!(found.starts.lines, ["touch x", "node b.js"]);
        assert_eq!(
            (found.starts.urls, found.skills),
            (vec!["https://a.test".to_owned()], vec!["one".to_owned(), "two".to_owned()])
        );
        let text = "---\nname: a\nkind: remote\nagent_card_url: https://b.test/card\n---\n";
        let starts = AgentFile::parse(text, "", &["a".to_owned()]).unwrap().unwrap().starts;
        assert_eq!(starts.urls, ["https://b.test/card"]);
    }

    #[test]
    fn a_file_that_cannot_be_read_is_an_error_if_it_may_be_of_the_kind() {
        let other = ["other".to_owned()];
        for text in [
            "---\nname: helper\n",
            "---\nname: helper\nname: b\n---\n",
            "---\u{c}\nname: helper\n---\n",
            "---\n- helper\n---\n",
        ] {
            assert!(AgentFile::parse(text, "stem", &["helper".to_owned()]).is_err(), "{text}");
            assert_eq!(AgentFile::parse(text, "stem", &other).unwrap(), None, "{text}");
        }
        assert!(AgentFile::parse("---\nname: \"\\x68elper\"\nname: b\n---\n", "stem", &other).is_err());
    }
}
