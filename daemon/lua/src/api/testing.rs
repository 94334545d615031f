//! The functions that test files can use, and the tool that runs such a file.

use mlua::{Function, Lua, Table};
use serde_json::json;
use toold_engine::schema::Schema;
use toold_engine::tool::ToolSpec;
use toold_proto::tool::{Annotations, ToolName};

use crate::plugin::PluginVersion;
use crate::plugin::registrations::{ToolHandlers, ToolPermission};

/// The name, in the registry of the Lua state, of the function that runs tests.
const RUN: &str = "toold.tests";
/// And of the function that connects them with the engine.
pub(crate) const CONNECT: &str = "toold.tests.connect";

/// Adds `describe`, `it`, `expect` and the fakes to a Lua state, before the plugin runs in it.
pub(crate) fn install_testing(lua: &Lua) -> mlua::Result<()> {
    let hygge: Table = lua.globals().raw_get("hygge")?;
    let script = lua.load(include_str!("testing.lua")).set_name("=[toold]");
    let (run, connect): (Function, Function) = script.call(hygge)?;
    lua.set_named_registry_value(RUN, run)?;
    lua.set_named_registry_value(CONNECT, connect)
}

/// A tool that runs the cases of a compiled file and returns the result of each.
pub(crate) fn test_runner(
    plugin: &PluginVersion,
    lua: &Lua,
    name: &str,
    file: &Function,
) -> mlua::Result<(ToolSpec, ToolHandlers)> {
    let run: Function = lua.named_registry_value(RUN)?;
    let debug: Table = lua.globals().get("debug")?;
    let traceback: Function = debug.get("traceback")?;
    let execute = run.bind((file, traceback))?;
    let invalid = |error: &dyn std::fmt::Display| mlua::Error::runtime(error.to_string());
    let spec = ToolSpec {
        name: ToolName::parse(name).map_err(|error| invalid(&error))?,
        label: name.to_owned(),
        description: String::new(),
        input: Schema::compile_input(json!({"type": "object"})).map_err(|error| invalid(&error))?,
        output: None,
        source: plugin.source(),
        origin: plugin.origin,
        parallelizable: false,
        permissions: Vec::new(),
        cache_ttl: None,
        timeout: None,
        annotations: Annotations::default(),
        version: None,
        grammar: None,
    };
    Ok((spec, ToolHandlers { execute, permission: ToolPermission::None }))
}
