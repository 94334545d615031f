//! A hook whose handler is a Lua function.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use globset::{Glob, GlobSet, GlobSetBuilder};
use mlua::Value as LuaValue;
use serde_json::Value;
use toold_engine::cx::Cx;
use toold_engine::hooks::{Hook, HookAnswer, HookInput, HookSpec};

use crate::plugin::registrations::HookRegistration;
use crate::plugin::state_pool::StatePool;
use crate::vm::convert;
use crate::vm::interrupt::ScriptInterrupt;
use crate::vm::script_run::ScriptRun;

pub(crate) struct LuaHook {
    spec: HookSpec,
    /// Its position among the hooks of its plugin.
    index: usize,
    states: Arc<StatePool>,
}

impl LuaHook {
    pub(crate) fn new(registered: HookRegistration, index: usize, states: Arc<StatePool>) -> Self {
        let HookRegistration { name, event, priority, asynchronous, timeout, fail_closed, tools } = registered;
        let source = states.plugin.key.clone();
        let tools = tools.map(|patterns| globs(&patterns).expect("they were read when they were registered"));
        let spec = HookSpec { name, source, event, priority, asynchronous, timeout, fail_closed, tools };
        Self { spec, index, states }
    }

    async fn handle(&self, input: HookInput, cx: Option<Arc<Cx>>) -> Result<HookAnswer, String> {
        let loaded = self.states.main().await?;
        let handler = loaded.hooks.get(self.index).ok_or("the plugin no longer registers this hook")?;
        let call = ScriptRun::of_hook(ScriptInterrupt::of_hook(self.spec.timeout), cx, self.states.plugin.name());
        let _watched = self.states.plugin.shared.watchdog.watch(&call.interrupt);
        let lua = loaded.state.lua();
        let explain = |error: &mlua::Error| self.states.plugin.sources.explain(error).message;
        let mut event = serde_json::to_value(input).map_err(|error| error.to_string())?;
        for text in ["tool_name", "message", "mode_name"] {
            // Hooks of several events compare them with texts.
            event.as_object_mut().map(|event| event.entry(text).or_insert_with(|| "".into()));
        }
        let event = convert::to_lua(lua, &event).map_err(|error| explain(&error))?;
        let script = lua.create_thread(handler.clone()).map_err(|error| explain(&error))?;
        let values = loaded.state.run(&call, script, event).await.map_err(|error| explain(&error))?;
        let answer = values.front().unwrap_or(&LuaValue::Nil);
        match convert::to_json(lua, answer).map_err(|error| error.to_string())? {
            Value::Null => Ok(HookAnswer::default()),
            mut table @ Value::Object(_) => {
                for text in ["reason", "system_prompt_append"] {
                    if let Some(number @ (Value::Number(_) | Value::Bool(_))) = table.get_mut(text) {
                        *number = number.to_string().into();
                    }
                }
                serde_json::from_value(table).map_err(|error| format!("its answer is not valid: {error}"))
            }
            other => Err(format!("its answer is not valid: expected a table or nil, got {other}")),
        }
    }
}

/// # Errors
/// A pattern that cannot be read.
pub(crate) fn globs(patterns: &[String]) -> Result<GlobSet, globset::Error> {
    let mut set = GlobSetBuilder::new();
    for pattern in patterns {
        set.add(Glob::new(pattern)?);
    }
    set.build()
}

impl Hook for LuaHook {
    fn spec(&self) -> &HookSpec {
        &self.spec
    }

    fn run<'a>(&'a self, input: HookInput, cx: Option<Arc<Cx>>) -> BoxFuture<'a, Result<HookAnswer, String>> {
        self.handle(input, cx).boxed()
    }
}
