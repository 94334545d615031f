//! What a script registered: its functions in one Lua state, and as data.

use std::collections::BTreeSet;
use std::time::Duration;

use mlua::{Function, Table};
use serde::{Deserialize, Serialize};
use toold_engine::hooks::HookEvent;
use toold_engine::registry::SourceScope;
use toold_engine::tool::ToolSpec;
use toold_proto::tool::Category;

use crate::plugin::resources_and_prompts::{OfferHandlers, PromptRegistration, ResourceRegistration};
use crate::plugin::timers::TimerRegistration;

/// What a script registered, in order, with its functions in one Lua state.
#[derive(Default)]
pub(crate) struct ScriptRegistrations {
    pub(crate) tools: Vec<(ToolSpec, ToolHandlers)>,
    pub(crate) hooks: Vec<(HookRegistration, Function)>,
    pub(crate) commands: Vec<(CommandRegistration, Function)>,
    pub(crate) subagents: Vec<SubagentSpec>,
    pub(crate) resources: Vec<(ResourceRegistration, OfferHandlers)>,
    pub(crate) prompts: Vec<(PromptRegistration, OfferHandlers)>,
    pub(crate) timers: Vec<(TimerRegistration, Function)>,
    /// Tables whose content the next version takes over, by name.
    pub(crate) state_tables: Vec<(String, Table)>,
}

impl ScriptRegistrations {
    /// The same as data, without the functions.
    pub(crate) fn as_data(&self) -> Registrations {
        let needs = |handlers: &ToolHandlers| match handlers.permission {
            ToolPermission::Default => NeedsSource::Default,
            ToolPermission::None => NeedsSource::None,
            ToolPermission::Function(_) => NeedsSource::Function,
        };
        Registrations {
            tools: self.tools.iter().map(|(spec, handlers)| (spec.clone(), needs(handlers))).collect(),
            hooks: self.hooks.iter().map(|(hook, _)| hook.clone()).collect(),
            commands: self.commands.iter().map(|(command, _)| command.clone()).collect(),
            subagents: self.subagents.clone(),
            resources: self.resources.iter().map(|(resource, _)| resource.clone()).collect(),
            prompts: self.prompts.iter().map(|(prompt, _)| prompt.clone()).collect(),
            timers: self.timers.iter().map(|(timer, _)| timer.clone()).collect(),
        }
    }
}

/// The functions of a tool, in one Lua state.
#[derive(Clone)]
pub(crate) struct ToolHandlers {
    pub(crate) execute: Function,
    pub(crate) permission: ToolPermission,
}

/// The field `permission` of a tool: what it will touch.
#[derive(Clone)]
pub(crate) enum ToolPermission {
    /// Category `plugin`, the tool's name.
    Default,
    /// Nothing; what it asks of the host is checked when it does.
    None,
    /// A function of the input.
    Function(Function),
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct HookRegistration {
    pub(crate) name: String,
    pub(crate) event: HookEvent,
    pub(crate) priority: i64,
    pub(crate) asynchronous: bool,
    pub(crate) timeout: Duration,
    pub(crate) fail_closed: bool,
    /// Names or globs, which can be read as such; `None` for all.
    pub(crate) tools: Option<Vec<String>>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct CommandRegistration {
    pub(crate) name: String,
    pub(crate) description: String,
}

/// A sub-agent that a plugin describes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubagentSpec {
    pub name: String,
    pub plugin: String,
    /// The sessions that see it.
    pub scope: SourceScope,
    pub description: String,
    pub system_prompt: String,
    /// Names of tools that it may use; `None` for all.
    pub tools: Option<Vec<String>>,
    pub model: Option<String>,
}

/// In the order of registration.
#[derive(Clone, Default)]
pub(crate) struct Registrations {
    pub(crate) tools: Vec<(ToolSpec, NeedsSource)>,
    pub(crate) hooks: Vec<HookRegistration>,
    pub(crate) commands: Vec<CommandRegistration>,
    pub(crate) subagents: Vec<SubagentSpec>,
    pub(crate) resources: Vec<ResourceRegistration>,
    pub(crate) prompts: Vec<PromptRegistration>,
    pub(crate) timers: Vec<TimerRegistration>,
}

impl Registrations {
    /// The names of everything that is offered, to compare versions of a plugin.
    pub(crate) fn names(&self) -> BTreeSet<String> {
        let tools = self.tools.iter().map(|(spec, _)| format!("tool {}", spec.name));
        let hooks = self.hooks.iter().map(|hook| format!("hook {:?} {}", hook.event, hook.name));
        let commands = self.commands.iter().map(|command| format!("command {}", command.name));
        let subagents = self.subagents.iter().map(|subagent| format!("sub-agent {}", subagent.name));
        let resources = self.resources.iter().map(|resource| format!("resource {}", resource.address.as_str()));
        let prompts = self.prompts.iter().map(|prompt| format!("prompt {}", prompt.about.name));
        let timers = self.timers.iter().map(|timer| format!("timer {}", timer.name));
        let mut names = BTreeSet::new();
        let offered = tools.chain(hooks).chain(commands).chain(subagents).chain(resources).chain(prompts).chain(timers);
        for mut name in offered {
            // Hooks may share a name; each of them counts.
            while !names.insert(name.clone()) {
                name.push('+');
            }
        }
        names
    }
}

/// How the needs of a tool are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum NeedsSource {
    /// Category `plugin`, the tool's name.
    Default,
    /// Nothing in advance.
    None,
    /// A function of the input.
    Function,
}

impl NeedsSource {
    /// The categories that such a tool may need.
    pub(crate) fn categories(self) -> Vec<Category> {
        match self {
            Self::Default => vec![Category::Plugin],
            Self::None => Vec::new(),
            Self::Function => Category::ALL.to_vec(),
        }
    }
}
