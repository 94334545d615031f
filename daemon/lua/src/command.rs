//! A slash command whose `execute` is a Lua function. It runs like a tool, but no model sees it.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use mlua::Value as LuaValue;
use serde_json::{Value, json};
use toold_engine::cx::Cx;
use toold_engine::need::Need;
use toold_engine::registry::Scope;
use toold_engine::schema::Schema;
use toold_engine::tool::{Tool, ToolError, ToolOutput, ToolSpec};
use toold_proto::tool::{Annotations, ToolName};

use crate::brake::Brake;
use crate::call::Call;
use crate::hygge::{CallTable, call_table};
use crate::plugin::{CommandRegistration, Version};
use crate::tool::failed;
use crate::{convert, result};

/// A slash command of a plugin.
#[derive(Clone)]
pub struct Command {
    /// Without the slash.
    pub name: String,
    pub plugin: String,
    /// Who sees it.
    pub scope: Scope,
    pub description: String,
    /// Takes `{"input": "..."}`. For `toold_engine::execute::execute_tool`: it is in no registry.
    pub tool: Arc<dyn Tool>,
}

struct LuaCommand {
    spec: ToolSpec,
    name: String,
    version: Arc<Version>,
}

impl Command {
    pub(crate) fn new(registered: CommandRegistration, version: &Arc<Version>) -> Self {
        let CommandRegistration { name, description } = registered;
        let plugin = &version.plugin;
        let spec = ToolSpec {
            name: tool_name("command", &name),
            label: format!("/{name}"),
            description: description.clone(),
            input: input_schema(),
            output: None,
            source: plugin.source(),
            origin: plugin.origin,
            parallelizable: true,
            permissions: Vec::new(),
            cache_ttl: None,
            timeout: plugin.manifest.timeout,
            annotations: Annotations::default(),
            version: plugin.manifest.version.clone(),
        };
        let tool = Arc::new(LuaCommand { spec, name: name.clone(), version: version.clone() });
        let scope = plugin.key.scope.clone();
        Self { name, plugin: plugin.name().to_owned(), scope, description, tool }
    }
}

/// How calls and the audit log name something that is no tool.
pub(crate) fn tool_name(kind: &str, name: &str) -> ToolName {
    let fits = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' };
    let name: String = kind.chars().chain(['_']).chain(name.chars().map(fits)).take(64).collect();
    ToolName::parse(&name).expect("letters, digits and underscores are a name")
}

fn input_schema() -> Schema {
    let schema = json!({"type": "object", "properties": {"input": {"type": "string"}}});
    Schema::compile_input(schema).expect("it is a schema")
}

impl Tool for LuaCommand {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn needs<'a>(&'a self, _: &'a Value, _: &'a Cx) -> BoxFuture<'a, Result<Vec<Need>, ToolError>> {
        // A person typed it; what it touches is judged need by need.
        std::future::ready(Ok(Vec::new())).boxed()
    }

    fn call<'a>(&'a self, input: Value, cx: &'a Cx) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        self.run(input, cx).boxed()
    }
}

impl LuaCommand {
    async fn run(&self, input: Value, cx: &Cx) -> Result<ToolOutput, ToolError> {
        let version = &self.version;
        let loaded = version.main().await.map_err(ToolError::Told)?;
        let gone = || ToolError::Told(format!("the plugin did not register the command {} again", self.name));
        let execute = loaded.commands.get(&self.name).ok_or_else(gone)?;
        let cx = cx.shared();
        let call = Call::new(Brake::of_call(cx.clone()), cx.clone());
        let _watched = version.plugin.shared.watchdog.watch(&call.brake);
        let lua = loaded.vm.lua();
        let text = json!(input["input"].as_str().unwrap_or_default());
        let ended = match call_table(lua, &CallTable { cx: &cx, input: &text }) {
            Ok(args) => loaded.vm.run(&call, execute, args).await,
            Err(error) => Err(error),
        };
        match ended {
            Ok(values) => {
                let value = values.front().unwrap_or(&LuaValue::Nil);
                let message = value.as_table().and_then(|table| table.raw_get::<Option<String>>("message").ok()?);
                Ok(match message {
                    Some(message) => {
                        let json = convert::to_json(lua, value).unwrap_or_default();
                        ToolOutput { structured: Some(json), ..ToolOutput::text(message) }
                    }
                    None => result::output(lua, value, &self.spec).unwrap_or_else(ToolOutput::error),
                })
            }
            Err(_) if call.brake.look() && cx.is_cancelled() => Err(ToolError::Cancelled),
            Err(error) => Ok(failed(&version.plugin, &error, call.brake.is_set(), &cx)),
        }
    }
}
