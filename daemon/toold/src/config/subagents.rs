//! The sub-agents of configurations: the user's, and those of projects that are trusted.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use toold_builtins::agents::{AgentOrigin, AgentType};
use toold_builtins::toolkit::Toolkit;
use toold_engine::registry::SourceScope;
use toold_lua::reload::PluginHost;

use crate::config::active_config::ActiveConfig;

/// `[subagents.NAME]`: a kind of sub-agent. The command of `[subagents.default]` serves the kinds that have none.
#[derive(Clone, Debug, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct SubagentConfig {
    /// A description for the model that chooses a kind.
    pub description: String,
    /// The text for `{system_prompt}` in the command.
    pub system_prompt: String,
    /// Names of tools that it may use; all when absent.
    pub tools: Option<Vec<String>>,
    /// The name for `{model}` in the command.
    pub model: Option<String>,
    /// The program and its arguments, in which `{prompt}`, `{system_prompt}`, `{description}`, `{type}`, `{model}` and
    /// `{session_id}` are replaced; without `{prompt}` the prompt is written to stdin. An argument that begins with text
    /// of a model stands behind `--`, so that it is no option. The program's stdout is the answer.
    pub command: Option<Vec<String>>,
    /// Added to the program's environment.
    pub env: BTreeMap<String, String>,
    /// The program's timeout, in milliseconds: 600000 when absent, at most 3600000.
    pub timeout_ms: Option<u64>,
}

/// Passes the configured sub-agents to the built-in tool, now and after each change.
pub fn follow(config: &Arc<ActiveConfig>, builtins: &Arc<Toolkit>, plugins: &Arc<PluginHost>) {
    let asked = Arc::downgrade(plugins);
    builtins
        .agents
        .ask_plugins(move |project| asked.upgrade().map(|plugins| of_plugins(&plugins, project)).unwrap_or_default());
    let builtins = builtins.clone();
    config.follow(move |config| configure(config, &builtins));
}

fn configure(config: &ActiveConfig, builtins: &Toolkit) {
    let loaded = config.loaded();
    let types = loaded.config.subagents.iter().map(|(name, config)| to_type(name, config));
    builtins.agents.configure(types.collect());
    let trusted = config.trusted_configs();
    let of_projects = trusted.iter().map(|file| {
        let types = file
            .config
            .subagents
            .iter()
            .map(|(name, config)| AgentType { origin: AgentOrigin::File(file.path.clone()), ..to_type(name, config) });
        (file.project.clone(), types.collect())
    });
    builtins.agents.configure_projects(of_projects.collect());
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

fn of_plugins(plugins: &PluginHost, project: &Path) -> Vec<AgentType> {
    let subagents = plugins.subagents();
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
