//! `io` and `os`, written in Lua on top of the host functions.

use mlua::{Function, Lua, Value};

use toold_engine::decision::decide_need;
use toold_engine::need::Need;
use toold_engine::permission::note_unasked;
use toold_proto::permission::Verdict;
use toold_proto::tool::Category;

use crate::api::ApiTable;
use crate::api::script_context::ScriptContext;
use crate::vm::script_run::ScriptRun;

pub(super) fn install(hygge: &ApiTable) -> mlua::Result<()> {
    let host = hygge.apart()?;
    host.function("getenv", "os.getenv", |_, args, context| {
        context.note_side_effect();
        let name = args.text(1, "name")?;
        let call = crate::vm::script_run::current();
        let session = call.as_ref().and_then(|call| call.cx.as_ref()).and_then(|cx| cx.session.env.get(&name).cloned());
        let daemon = || context.plugin.shared.environment.get(&name).map(|value| value.to_string_lossy().into_owned());
        Ok(session.or_else(daemon).or_else(|| granted_variable(&name, context, call.as_deref())))
    })?;
    host.function("tmpname", "os.tmpname", |_, _, context| {
        context.note_side_effect();
        let nanos = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default().as_nanos();
        let name = format!("toold-{}-{nanos:x}", context.plugin.name());
        Ok(std::env::temp_dir().join(name).display().to_string())
    })?;
    for name in ["shell", "rename", "level", "variables"] {
        host.table.raw_set(name, hygge.prelude.table.raw_get::<Value>(name)?)?;
    }
    let io: Value = hygge
        .context
        .plugin
        .shared
        .host_chunks
        .io(hygge.lua, include_str!("io.lua"))
        .call((&hygge.table, &host.table))?;
    hygge.lua.globals().raw_set("io", io)?;
    let note = host.function("note", "note", |_, _, context| {
        context.note_side_effect();
        Ok(())
    })?;
    let settle: Function = hygge.prelude.table.raw_get::<Function>("note_changing")?.call(note)?;
    hygge.lua.set_named_registry_value(SETTLE, settle)
}

/// A variable of the daemon that it does not pass on by itself: only if a person granted it. Otherwise it is listed with what
/// the plugin was refused.
fn granted_variable(name: &str, context: &ScriptContext, call: Option<&ScriptRun>) -> Option<String> {
    let value = context.plugin.shared.values.variables.get(name)?;
    let call = call?;
    let cx = call.authority().ok()?;
    let reason = Some(format!("read the variable {name} of the daemon's environment"));
    let need = Need { reason, ..Need::new(Category::Plugin, format!("env:{name}")) };
    if decide_need(cx, &call.chain, &need).verdict == Verdict::Allow {
        return Some(value.clone());
    }
    note_unasked(cx, &call.chain, &need);
    None
}

/// Must be called after the plugin's script has run.
pub(crate) fn after_load(lua: &Lua) -> mlua::Result<()> {
    let settle: Function = lua.named_registry_value(SETTLE)?;
    lua.unset_named_registry_value(SETTLE)?;
    settle.call(())
}

/// The name, in the registry of the Lua state, of the function that ends loading for the libraries.
const SETTLE: &str = "toold.settle";
