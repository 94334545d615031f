//! A slash command whose `execute` is a Lua function. It runs like a tool, but no model sees it.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use mlua::{Lua, Value as LuaValue};
use serde_json::{Value, json};
use toold_engine::callable::Callable;
use toold_engine::cx::Cx;
use toold_engine::need::Need;
use toold_engine::registry::SourceScope;
use toold_engine::tool::{ToolError, ToolOutput, ToolSpec};

use crate::plugin::failures::HandlerName;
use crate::plugin::registrations::CommandRegistration;
use crate::plugin::state_pool::StatePool;
use crate::plugin::{handler, tool_result};
use crate::vm::convert;

/// A slash command of a plugin.
#[derive(Clone)]
pub struct SlashCommand {
    /// Without the slash.
    pub name: String,
    pub plugin: String,
    /// The sessions that see it.
    pub scope: SourceScope,
    pub description: String,
    /// Takes `{"input": "..."}`. For `toold_engine::execute::execute_tool`, since it is in no registry.
    pub tool: Arc<dyn Callable>,
}

/// The answer of a command: its message, or what a tool could return.
pub(crate) fn command_output(lua: &Lua, value: &LuaValue, spec: &ToolSpec) -> Result<ToolOutput, String> {
    let message = value.as_table().and_then(|table| table.raw_get::<Option<String>>("message").ok()?);
    match message {
        Some(message) => {
            let json = convert::to_json(lua, value).unwrap_or_default();
            Ok(ToolOutput { structured: Some(json), ..ToolOutput::text(message) })
        }
        None => tool_result::output(lua, value, spec),
    }
}

struct LuaCommand {
    spec: ToolSpec,
    name: String,
    states: Arc<StatePool>,
}

impl SlashCommand {
    pub(crate) fn new(registered: CommandRegistration, states: &Arc<StatePool>) -> Self {
        let CommandRegistration { name, description } = registered;
        let plugin = &states.plugin;
        let input = json!({"type": "object", "properties": {"input": {"type": "string"}}});
        let spec = handler::spec("command", &name, (format!("/{name}"), description.clone()), input, plugin);
        let tool = Arc::new(LuaCommand { spec, name: name.clone(), states: states.clone() });
        let scope = plugin.key.scope.clone();
        Self { name, plugin: plugin.name().to_owned(), scope, description, tool }
    }
}

impl Callable for LuaCommand {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn needs<'a>(&'a self, _: &'a Value, _: &'a Cx) -> BoxFuture<'a, Result<Vec<Need>, ToolError>> {
        // The user typed it; each thing that it touches is checked when it does.
        std::future::ready(Ok(Vec::new())).boxed()
    }

    fn call<'a>(&'a self, input: Value, cx: &'a Cx) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        self.run(input, cx).boxed()
    }
}

impl LuaCommand {
    async fn run(&self, input: Value, cx: &Cx) -> Result<ToolOutput, ToolError> {
        let states = &self.states;
        let loaded = states.main().await.map_err(ToolError::Failed)?;
        let missing = || ToolError::Failed(format!("the plugin no longer registers the command {}", self.name));
        let execute = loaded.commands.get(&self.name).ok_or_else(missing)?;
        let cx = cx.shared();
        let text = json!(input["input"].as_str().unwrap_or_default());
        let read = |value: &LuaValue| command_output(loaded.state.lua(), value, &self.spec);
        let handler = HandlerName { kind: "command", name: &self.name };
        handler::run(states, &loaded, (handler, execute), &cx, &text, &[&text], read).await
    }
}
