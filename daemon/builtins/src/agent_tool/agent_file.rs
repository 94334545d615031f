//! The files of sub-agents: the programs that run for the sub-agent by themselves, and the skills that it begins with.
//!
//! Sources: the documentation of Claude Code and Qwen Code, and real runs. Claude Code 2.1.332 starts `mcpServers` and runs
//! `hooks` of files in `agents`, however deep, in a folder that the person trusts, and loads `skills`. Qwen Code 0.24.4 does the
//! first two, and with `executor` the sub-agent is another program. Copilot CLI 1.0.102 starts `mcp-servers`, also those of files
//! for Claude Code. Gemini CLI 0.61.0 starts `mcp_servers` once the person has confirmed the file. The roles of Codex 0.171.0
//! start nothing. An agent finds a file by the name in its front matter.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::Context;
use icu_normalizer::ComposingNormalizerBorrowed;
use serde_json::Value;
use toold_host::environment::Environment;
use toold_host::files;

use super::agent_folders::{MAX_BYTES, folders, markdown_below};
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
}

/// The files that may define sub-agents of this kind. Blocks.
///
/// # Errors
/// A file that may be of this kind cannot be read, or there are too many files.
pub(super) fn find(agent: &str, kind: &str, cwd: &Path, environment: &Environment) -> anyhow::Result<Vec<AgentFile>> {
    let mut paths = BTreeSet::new();
    for folder in folders(agent, None, cwd, environment) {
        paths.extend(markdown_below(&folder.join("agents"))?);
    }
    let mut found = Vec::new();
    for file in paths {
        let bytes = files::read_named(&file, MAX_BYTES).with_context(|| format!("can't read {}", file.display()))?;
        let text = String::from_utf8_lossy(&bytes);
        let stem = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let stem = stem.trim_end_matches(".md").trim_end_matches(".agent");
        found.extend(AgentFile::parse(&text, stem, kind).with_context(|| file.display().to_string())?);
    }
    Ok(found)
}

impl AgentFile {
    /// `None` for a file of another kind. `stem` is the name where the file does not tell one.
    fn parse(text: &str, stem: &str, kind: &str) -> anyhow::Result<Option<Self>> {
        let front = match split::<Value>(text) {
            Ok(parts) if parts.front.as_object().is_some_and(|front| !front.is_empty()) => parts.front,
            // A text without a front matter is of no sub-agent.
            Ok(_) if !text.trim_start_matches('\u{feff}').starts_with("---") => return Ok(None),
            // An agent may be able to read it.
            unread => {
                let may_be_named = text.contains('\\') || plain(text).contains(&plain(kind));
                anyhow::ensure!(
                    !may_be_named && !is_kind(stem, kind),
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
        if !is_kind(&name, kind) {
            return Ok(None);
        }
        let mut found = Self::default();
        for member in STARTING {
            found.starts.add(member, front.get(member).unwrap_or(&Value::Null));
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

/// Whether an agent may take one for the name of the other. Claude Code leaves out white space, dashes and `_`, and reads compatible
/// characters as the same; here, all that is no letter and no digit is left out.
fn is_kind(one: &str, other: &str) -> bool {
    plain(one) == plain(other)
}

fn plain(name: &str) -> String {
    let name = ComposingNormalizerBorrowed::new_nfkc().normalize(name).to_lowercase();
    name.chars().filter(|c| c.is_alphanumeric()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str, kind: &str) -> Option<Vec<String>> {
        AgentFile::parse(text, "stem", kind).unwrap().map(|file| file.starts.lines)
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
        let found = AgentFile::parse(text, "", "a").unwrap().unwrap();
        assert_eq!(found.starts.lines, ["touch x", "node b.js"]);
        assert_eq!(
            (found.starts.urls, found.skills),
            (vec!["https://a.test".to_owned()], vec!["one".to_owned(), "two".to_owned()])
        );
    }

    #[test]
    fn a_file_that_cannot_be_read_is_an_error_if_it_may_be_of_the_kind() {
        for text in [
            "---\nname: helper\n",
            "---\nname: helper\nname: b\n---\n",
            "---\u{c}\nname: helper\n---\n",
            "---\n- helper\n---\n",
        ] {
            assert!(AgentFile::parse(text, "stem", "Helper").is_err(), "{text}");
            assert_eq!(AgentFile::parse(text, "stem", "other").unwrap(), None, "{text}");
        }
        assert!(AgentFile::parse("---\nname: \"\\x68elper\"\nname: b\n---\n", "stem", "other").is_err());
    }
}
