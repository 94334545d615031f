//! `[agents]`: clients that act for a model, and `[agents.NAME]`: the tools that an agent brings along.

use std::collections::BTreeMap;
use std::time::Duration;

use globset::{Glob, GlobSet, GlobSetBuilder};
use serde::Deserialize;
use toold_proto::level::Level;
use toold_proto::session::Mode;

use crate::config::mcp_profiles::ProfileMode;

/// `[agents]`: clients that act for a model.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct AgentsConfig {
    /// Names of variables that an agent, an MCP client, a client with a token or a process that a tool started may set
    /// for its session, with any value; `*` stands for any text. A variable with the value that the client's own
    /// process was started with is always accepted, unless it holds a secret.
    pub env: Vec<String>,
    #[serde(flatten)]
    pub named: BTreeMap<String, AgentConfig>,
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
    /// Lowers `permission.level` for this agent. It cannot raise it: a client gives itself its name.
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
    fn names_that_no_variable_has_are_errors() {
        assert!(is_variable("LC_*").is_ok() && is_variable("CI").is_ok());
        assert!(is_variable("$PATH").unwrap_err().contains("\"PATH\""));
        for wrong in ["", "1A", "A=B", "A B"] {
            assert!(is_variable(wrong).is_err(), "{wrong}");
        }
    }
}
