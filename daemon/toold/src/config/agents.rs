//! `[agents]`: clients that act for a model, and `[agents.NAME]`: the tools that an agent brings along.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use globset::{Glob, GlobSet, GlobSetBuilder};
use serde::Deserialize;
use serde::de::{Deserializer, Error, MapAccess, Visitor};
use serde_json::{Map, Value};
use toold_adapters::agents::CONFINABLE;
use toold_engine::level::is_named;
use toold_proto::agent_names::{AGENTS, agent_named};
use toold_proto::config::ConfigEntry;
use toold_proto::level::Level;
use toold_proto::nearest::did_you_mean;
use toold_proto::session::Mode;

use crate::config::mcp_profiles::ProfileMode;

/// `[agents]`: clients that act for a model.
#[derive(Clone, Debug)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(default))]
pub struct AgentsConfig {
    /// Names of variables that an agent, an MCP client, a client with a token or a process that a tool started may set
    /// for its session, with any value; `*` stands for any text. A variable with the value that the client's own
    /// process was started with is always accepted, unless it holds a secret.
    pub env: Vec<String>,
    #[cfg_attr(test, schemars(flatten))]
    pub named: BTreeMap<String, AgentConfig>,
}

/// By hand, since the places of the values in a flattened table are not known.
impl<'de> Deserialize<'de> for AgentsConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(AgentsVisitor)
    }
}

struct AgentsVisitor;

impl<'de> Visitor<'de> for AgentsVisitor {
    type Value = AgentsConfig;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a table")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<AgentsConfig, A::Error> {
        let mut read = AgentsConfig::default();
        while let Some(name) = members.next_key::<String>()? {
            match name.as_str() {
                "env" => read.env = members.next_value()?,
                _ => {
                    let agent = agent_named(&name).map_or(name, str::to_owned);
                    if read.named.insert(agent.clone(), members.next_value()?).is_some() {
                        let words = format!("agents has two sections of the agent {agent}: leave one of them");
                        return Err(A::Error::custom(words));
                    }
                }
            }
        }
        Ok(read)
    }
}

/// `[agents.NAME]`: what happens when the agent NAME, such as `codex`, asks whether a tool of its own may run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct AgentConfig {
    /// Who asks the person when nothing decides: `agent` leaves it to the agent's own prompt; `toold` asks in the
    /// frontends that are connected to toold; when nobody answers, the agent asks, or does not run the tool.
    pub ask: AgentAsks,
    /// The mode in which the agent's own tools are judged: with `plan` they only read, in whatever mode the agent itself is.
    pub mode: ProfileMode,
    /// Whether the agent's own mode applies, where the session here is in the default mode: one that accepts edits, one
    /// that only plans, and one that asks nothing. Anything that the agent reports is believed.
    pub trust_mode: bool,
    /// Which of the agent's command lines run in the sandbox: `off` none; `free` those that nobody wrote a rule for, or
    /// approved, because they only read or `permission.level` frees them; `all` all of them. It has an effect only for
    /// `claude-code`. Where a line cannot be confined, nothing but rules, grants and answers allows it.
    pub confine: AgentConfines,
    /// The level of this agent's sessions, in place of `permission.level`. It only lowers that, since a client gives itself its
    /// name, unless the client runs the program that `toolctl agents install NAME` has recorded.
    #[cfg_attr(test, schemars(schema_with = "crate::config::schema::foreign::optional_level"))]
    pub level: Option<Level>,
}

/// Who asks a person about an agent's own tools.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum AgentAsks {
    #[default]
    Agent,
    Toold,
}

/// Which of an agent's command lines run confined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum AgentConfines {
    Off,
    #[default]
    Free,
    All,
}

/// How long people have to answer when the request does not say so, and at most.
const WAIT: (Duration, Duration) = (Duration::from_secs(50), Duration::from_secs(600));

impl AgentConfig {
    /// The mode of a request in which the agent reports to be in `reported`; `None` for that of the session.
    pub(crate) fn mode(&self, reported: Option<Mode>) -> Option<Mode> {
        match self.mode {
            ProfileMode::Plan => Some(Mode::Plan),
            // A mode that narrows needs no trust.
            ProfileMode::Default => reported.filter(|mode| self.trust_mode || *mode == Mode::Plan),
        }
    }

    /// How long people may take to answer here, for a request that allows `wait_ms`; `None` when nobody is asked here.
    pub(crate) fn wait(&self, wait_ms: Option<u64>) -> Option<Duration> {
        match self.ask {
            AgentAsks::Agent => None,
            AgentAsks::Toold => Some(wait_ms.map_or(WAIT.0, |ms| Duration::from_millis(ms).min(WAIT.1))),
        }
    }
}

impl Default for AgentsConfig {
    fn default() -> Self {
        let env = ["LANG", "LC_*", "TZ", "TERM", "COLORTERM", "NO_COLOR", "CI"];
        Self { env: env.map(str::to_owned).to_vec(), named: BTreeMap::new() }
    }
}

impl AgentsConfig {
    /// The levels of agents, by name.
    pub(crate) fn levels(&self) -> Vec<(String, Level)> {
        self.named.iter().filter_map(|(name, agent)| Some((name.clone(), agent.level?))).collect()
    }

    /// The errors of the names.
    pub fn problems(&self) -> Vec<String> {
        self.env.iter().filter_map(|name| is_variable(name).err()).collect()
    }

    /// The compiled names. An invalid one matches nothing.
    pub(crate) fn names(&self) -> GlobSet {
        let mut set = GlobSetBuilder::new();
        self.env.iter().filter_map(|name| Glob::new(name).ok()).for_each(|glob| _ = set.add(glob));
        set.build().unwrap_or_default()
    }
}

/// The sections of names that are near those of agents, by the keys that a configuration has: what they set for an agent's
/// own tools holds for nobody.
pub(super) fn misspelt(entries: &[ConfigEntry]) -> Vec<String> {
    let unknown = sections(entries).filter(|(name, _, _)| agent_named(name).is_none());
    let described = unknown.filter_map(|(name, section, origin)| {
        let keys: Vec<&str> = section.keys().map(String::as_str).filter(|key| *key != "level").collect();
        let near = did_you_mean(name, AGENTS.iter().copied());
        let is_wrong = !keys.is_empty() && !near.is_empty();
        let keys = keys.join(", ");
        is_wrong
            .then(|| format!("{origin}: agents.{name}: no agent is called {name}, so {keys} holds for nobody{near}"))
    });
    described.collect()
}

/// Settings of agents that may have no effect.
pub(super) fn warnings(entries: &[ConfigEntry]) -> Vec<String> {
    let mut found = Vec::new();
    for (name, section, origin) in sections(entries) {
        if let Some(agent) = agent_named(name) {
            if section.contains_key("confine") && !CONFINABLE.contains(&agent) {
                let only = CONFINABLE.join(", ");
                let words = format!("agents.{name}.confine has no effect: toold can confine only {only}");
                found.push(format!("{origin}: warning: {words}"));
            }
            continue;
        }
        let near = did_you_mean(name, AGENTS.iter().copied());
        let only_level = section.keys().all(|key| key == "level");
        // A level counts for each client that begins with the name.
        let is_of_client = only_level && AGENTS.iter().any(|agent| is_named(agent, name));
        if !is_of_client && (only_level || near.is_empty()) {
            let words =
                format!("toold knows no agent {name}: the section is for clients that give themselves this name");
            found.push(format!("{origin}: warning: agents.{name}: {words}{near}"));
        }
    }
    found
}

/// The tables of agents, with their names and places.
fn sections(entries: &[ConfigEntry]) -> impl Iterator<Item = (&str, &Map<String, Value>, &str)> {
    entries.iter().filter_map(|entry| {
        let name = entry.key.strip_prefix("agents.")?;
        Some((name, entry.value.as_object()?, entry.origin.as_str()))
    })
}

/// # Errors
/// No variable can have this name, or nothing matches this pattern; as a sentence for the user.
fn is_variable(name: &str) -> Result<(), String> {
    let plain: String = name.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
    let is_plain = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '*');
    match is_plain && !name.starts_with(|c: char| c.is_ascii_digit()) {
        true => Ok(()),
        false => Err(format!("{name:?} is no name of a variable: did you mean {plain:?}?")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_mode_that_widens_needs_trust_and_the_mode_plan_counts_always() {
        let of = |text: &str, reported| toml::from_str::<AgentConfig>(text).unwrap().mode(reported);
        assert_eq!(of("", Some(Mode::Yolo)), None);
        assert_eq!(of("", Some(Mode::Plan)), Some(Mode::Plan));
        assert_eq!(of("trust_mode = true", Some(Mode::Yolo)), Some(Mode::Yolo));
        for reported in [None, Some(Mode::Default), Some(Mode::AcceptEdits), Some(Mode::Yolo)] {
            assert_eq!(of("mode = \"plan\"", reported), Some(Mode::Plan));
            assert_eq!(of("mode = \"plan\"\ntrust_mode = true", reported), Some(Mode::Plan));
        }
        assert!(toml::from_str::<AgentConfig>("mode = \"yolo\"").is_err());
    }

    #[test]
    fn a_section_of_no_agent_is_reported_by_what_it_sets() {
        let entry = |name: &str, value: Value| {
            [ConfigEntry { key: format!("agents.{name}"), value, origin: "config.toml:1".to_owned() }]
        };
        for (name, near) in [
            ("claude", "did you mean claude-code?"),
            ("claude-cod", "did you mean claude-code?"),
            ("gemini-clo", "did you mean gemini?"),
            ("opencode-io", "did you mean opencode?"),
        ] {
            let set = entry(name, json!({"mode": "plan", "level": "read"}));
            let wrong = misspelt(&set);
            assert!(wrong.len() == 1 && wrong[0].contains(near) && wrong[0].contains("mode holds"), "{wrong:?}");
            assert_eq!(warnings(&set), Vec::<String>::new());
        }
        for name in AGENTS.iter().chain(&["gemini-cli", "codex-mcp-client", "Claude Code"]) {
            let set = entry(name, json!({"mode": "plan", "level": "read", "ask": "toold", "trust_mode": true}));
            assert_eq!((misspelt(&set), warnings(&set)), (Vec::new(), Vec::new()), "{name}");
            let confined = entry(name, json!({"confine": "free"}));
            let confines = agent_named(name).is_some_and(|agent| CONFINABLE.contains(&agent));
            assert_eq!(warnings(&confined).is_empty(), confines, "{name}");
        }
        for (name, key, warned) in
            [("claude", "level", false), ("claude_code", "level", false), ("zzz", "level", true), ("zzz", "ask", true)]
        {
            let set = entry(name, json!({key: "x"}));
            assert_eq!((misspelt(&set).len(), warnings(&set).len()), (0, usize::from(warned)), "{name} {key}");
        }
        assert_eq!(misspelt(&entry("env", json!(["LANG"]))), Vec::<String>::new());
    }

    #[test]
    fn a_section_under_any_name_of_an_agent_is_the_agents() {
        let read = |text: &str| toml::from_str::<AgentsConfig>(text);
        for (name, agent) in [("gemini-cli", "gemini"), ("codex-mcp-client", "codex"), ("mine", "mine")] {
            let config = read(&format!("[{name}]\nmode = \"plan\"")).unwrap();
            assert_eq!(config.named.keys().collect::<Vec<_>>(), [agent]);
        }
        let two = read("[gemini]\nmode = \"plan\"\n[gemini-cli]\nask = \"toold\"");
        assert!(two.unwrap_err().to_string().contains("two sections of the agent gemini"));
    }

    #[test]
    fn names_that_no_variable_has_are_errors() {
        assert!(is_variable("LC_*").is_ok() && is_variable("CI").is_ok());
        assert!(is_variable("$PATH").unwrap_err().contains("\"PATH\""));
        for wrong in ["", "1A", "A=B", "A B"] {
            assert!(is_variable(wrong).is_err(), "{wrong}");
        }
    }
}
