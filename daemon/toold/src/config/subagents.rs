//! The sub-agents of configurations: the user's, and those of projects that are trusted.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use toold_builtins::agents::{AgentOrigin, AgentType};
use toold_engine::registry::SourceScope;

use crate::daemon::State;

/// `[subagents.NAME]`: a kind of sub-agent. The command of `[subagents.default]` serves the kinds that have none.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SubagentConfig {
    /// For the model that chooses.
    pub description: String,
    pub system_prompt: String,
    /// Names of tools that it may use; all when absent.
    pub tools: Option<Vec<String>>,
    pub model: Option<String>,
    /// The program and its arguments. `{prompt}`, `{system_prompt}`, `{description}`, `{type}`, `{model}` and
    /// `{session_id}` are put in; without `{prompt}` the prompt comes on stdin. What it writes to stdout is the answer.
    pub command: Option<Vec<String>>,
    /// Added to the program's environment.
    pub env: BTreeMap<String, String>,
    /// How long the program may take, in milliseconds: 600000 when absent, at most 3600000.
    pub timeout_ms: Option<u64>,
}

/// Gives the built-in tool the sub-agents that are configured now, and goes on with each change.
pub fn follow(state: &Arc<State>) {
    let asked = Arc::downgrade(state);
    state
        .builtins
        .agents
        .ask_plugins(move |project| asked.upgrade().map(|state| of_plugins(&state, project)).unwrap_or_default());
    state.follow(configure);
}

fn configure(state: &State) {
    let loaded = state.loaded();
    let types = loaded.config.subagents.iter().map(|(name, config)| to_type(name, config));
    state.builtins.agents.configure(types.collect());
    let trusted = state.trusted_configs();
    let of_projects = trusted.iter().map(|file| {
        let types = file
            .config
            .subagents
            .iter()
            .map(|(name, config)| AgentType { origin: AgentOrigin::File(file.path.clone()), ..to_type(name, config) });
        (file.project.clone(), types.collect())
    });
    state.builtins.agents.configure_projects(of_projects.collect());
}

fn to_type(name: &str, config: &SubagentConfig) -> AgentType {
    AgentType {
        name: name.to_owned(),
        description: config.description.clone(),
        system_prompt: config.system_prompt.clone(),
        tools: config.tools.clone(),
        model: config.model.clone(),
        command: config.command.clone(),
        env: config.env.clone(),
        timeout: config.timeout_ms.map(|ms| Duration::from_millis(ms.min(3_600_000))),
        origin: AgentOrigin::Config,
    }
}

fn of_plugins(state: &State, project: &Path) -> Vec<AgentType> {
    let subagents = state.plugins.subagents();
    let seen = subagents.iter().filter(|subagent| match &subagent.scope {
        SourceScope::Global => true,
        SourceScope::Project(own) => own == project,
    });
    let types = seen.map(|subagent| AgentType {
        name: subagent.name.clone(),
        description: subagent.description.clone(),
        system_prompt: subagent.system_prompt.clone(),
        tools: subagent.tools.clone(),
        model: subagent.model.clone(),
        origin: AgentOrigin::Plugin(subagent.plugin.clone()),
        ..AgentType::default()
    });
    types.collect()
}
