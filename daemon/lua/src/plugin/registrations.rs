//! What a script registered: its functions in one Lua state, and as data.

use std::time::Duration;

use mlua::Function;
use serde::{Deserialize, Serialize};
use toold_engine::hooks::HookEvent;
use toold_engine::registry::SourceScope;
use toold_engine::tool::ToolSpec;
use toold_proto::tool::Category;

use crate::plugin::resources_and_prompts::{OfferHandlers, PromptRegistration, ResourceRegistration};

/// What a script registered, in the order in which it did, with its functions in one machine.
#[derive(Default)]
pub(crate) struct ScriptRegistrations {
    pub(crate) tools: Vec<(ToolSpec, ToolHandlers)>,
    pub(crate) hooks: Vec<(HookRegistration, Function)>,
    pub(crate) commands: Vec<(CommandRegistration, Function)>,
    pub(crate) subagents: Vec<SubagentSpec>,
    pub(crate) resources: Vec<(ResourceRegistration, OfferHandlers)>,
    pub(crate) prompts: Vec<(PromptRegistration, OfferHandlers)>,
}

impl ScriptRegistrations {
    /// What others need to know of it.
    pub(crate) fn as_data(&self) -> Registrations {
        let needs = |handlers: &ToolHandlers| match handlers.permission {
            ToolPermission::Default => NeedsSource::Default,
            ToolPermission::None => NeedsSource::None,
            ToolPermission::Told(_) => NeedsSource::Told,
        };
        Registrations {
            tools: self.tools.iter().map(|(spec, handlers)| (spec.clone(), needs(handlers))).collect(),
            hooks: self.hooks.iter().map(|(hook, _)| hook.clone()).collect(),
            commands: self.commands.iter().map(|(command, _)| command.clone()).collect(),
            subagents: self.subagents.clone(),
            resources: self.resources.iter().map(|(resource, _)| resource.clone()).collect(),
            prompts: self.prompts.iter().map(|(prompt, _)| prompt.clone()).collect(),
        }
    }
}

/// The functions of a tool, in one machine.
#[derive(Clone)]
pub(crate) struct ToolHandlers {
    pub(crate) execute: Function,
    pub(crate) permission: ToolPermission,
}

/// What a tool says of what it will touch.
#[derive(Clone)]
pub(crate) enum ToolPermission {
    /// Category `plugin`, the tool's name.
    Default,
    /// Nothing; what it asks of the host is judged need by need all the same.
    None,
    /// A function of the input.
    Told(Function),
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
    /// Who sees it.
    pub scope: SourceScope,
    pub description: String,
    pub system_prompt: String,
    /// Names of tools that it may use; `None` for all.
    pub tools: Option<Vec<String>>,
    pub model: Option<String>,
}

/// In the order in which it was registered.
#[derive(Clone, Default)]
pub(crate) struct Registrations {
    pub(crate) tools: Vec<(ToolSpec, NeedsSource)>,
    pub(crate) hooks: Vec<HookRegistration>,
    pub(crate) commands: Vec<CommandRegistration>,
    pub(crate) subagents: Vec<SubagentSpec>,
    pub(crate) resources: Vec<ResourceRegistration>,
    pub(crate) prompts: Vec<PromptRegistration>,
}

/// Who says what a tool will touch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum NeedsSource {
    /// Category `plugin`, the tool's name.
    Default,
    /// Nothing beforehand.
    None,
    /// A function of the input.
    Told,
}

impl NeedsSource {
    /// The categories that such a tool may name.
    pub(crate) fn categories(self) -> Vec<Category> {
        match self {
            Self::Default => vec![Category::Plugin],
            Self::None => Vec::new(),
            Self::Told => Category::ALL.to_vec(),
        }
    }
}
