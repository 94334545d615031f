//! A loaded version of a plugin, ready to be put into service.

use std::collections::BTreeSet;
use std::sync::Arc;

use toold_engine::callable::Callable;
use toold_engine::hooks::Hook;
use toold_engine::offers::SourceOffer;
use toold_engine::registry::SourceKey;

use crate::plugin::PluginVersion;
use crate::plugin::command::SlashCommand;
use crate::plugin::hook::LuaHook;
use crate::plugin::registrations::{Registrations, SubagentSpec};
use crate::plugin::resources_and_prompts::offer;
use crate::plugin::state_pool::{LoadedState, StatePool};
use crate::plugin::timers::TimerRegistration;
use crate::plugin::tool::LuaTool;

/// A version that is about to be put into service.
pub(crate) struct PreparedPlugin {
    pub(crate) key: SourceKey,
    pub(crate) states: Arc<StatePool>,
    pub(crate) tools: Vec<Arc<dyn Callable>>,
    pub(crate) hooks: Vec<Arc<dyn Hook>>,
    pub(crate) subagents: Vec<SubagentSpec>,
    pub(crate) commands: Vec<SlashCommand>,
    pub(crate) offer: SourceOffer,
    /// The names of everything above.
    pub(crate) names: BTreeSet<String>,
    pub(crate) timers: Vec<TimerRegistration>,
}

impl PreparedPlugin {
    /// Without `loaded`, the first call makes a Lua state. `rebuildable`: the Lua state can also be released later, and
    /// made again for the next call.
    pub(crate) fn new(
        plugin: Arc<PluginVersion>,
        loaded: Option<LoadedState>,
        registered: Registrations,
        rebuildable: bool,
    ) -> Self {
        let key = plugin.key.clone();
        let names = registered.names();
        // Between two runs of a timer, its plugin is not idle.
        let states = StatePool::new(plugin, loaded, rebuildable && registered.timers.is_empty());
        let tools = registered.tools.into_iter().map(|(spec, needs)| {
            let tool: Arc<dyn Callable> = Arc::new(LuaTool::new(spec, states.clone(), needs));
            tool
        });
        let tools = tools.collect();
        let hooks = registered.hooks.into_iter().enumerate().map(|(place, spec)| {
            let hook: Arc<dyn Hook> = Arc::new(LuaHook::new(spec, place, states.clone()));
            hook
        });
        let hooks = hooks.collect();
        let (resources, prompts) = (registered.resources, registered.prompts);
        let offer = offer(resources, prompts, registered.commands.clone(), &registered.subagents, &states);
        let commands = registered.commands.into_iter().map(|spec| SlashCommand::new(spec, &states)).collect();
        let Registrations { subagents, timers, .. } = registered;
        Self { key, tools, hooks, subagents, commands, offer, timers, names, states }
    }
}
