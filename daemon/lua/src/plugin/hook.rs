//! A hook whose handler is a Lua function.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use globset::{Glob, GlobSet, GlobSetBuilder};
use mlua::Value as LuaValue;
use serde_json::{Map, Value};
use tokio::time::Instant;
use toold_engine::cx::Cx;
use toold_engine::hooks::{Hook, HookAnswer, HookEvent, HookHealth, HookInput, HookSpec};
use toold_proto::hook::HookDecision;
use toold_proto::plugin::PluginError;
use toold_proto::tool::SessionId;

use crate::plugin::failures::HandlerName;
use crate::plugin::registrations::HookRegistration;
use crate::plugin::schema_shape::empty_lists;
use crate::plugin::state_pool::{LoadedState, StatePool};
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
        let health = HookHealth::default();
        let spec = HookSpec { name, source, event, priority, asynchronous, timeout, fail_closed, tools, health };
        Self { spec, index, states }
    }

    async fn handle(&self, input: HookInput, cx: Option<Arc<Cx>>) -> Result<HookAnswer, String> {
        let started = Instant::now();
        let loaded = self.states.main().await?;
        let session = SessionId::parse(&input.session_id).ok();
        let mut ending = HookEnding { hook: self, cx: cx.clone(), session, started, is_known: false };
        let answer = self.answer(&loaded, input, cx).await;
        ending.is_known = true;
        answer.map_err(|error| {
            let words = error.message.clone();
            ending.report(error);
            words
        })
    }

    async fn answer(
        &self,
        loaded: &LoadedState,
        input: HookInput,
        cx: Option<Arc<Cx>>,
    ) -> Result<HookAnswer, PluginError> {
        let plugin = &self.states.plugin;
        let explain = |error: &mlua::Error| plugin.sources.explain(error);
        let handler = loaded.hooks.get(self.index);
        let handler = handler.ok_or_else(|| PluginError::of("the plugin no longer registers this hook"))?;
        let seen = cx.clone();
        let call = ScriptRun::of_hook(ScriptInterrupt::of_hook(self.spec.timeout), cx, plugin.name());
        let _watched = plugin.shared.watchdog.watch(&call.interrupt);
        let lua = loaded.state.lua();
        let event = event_of(input, self.spec.event).map_err(|error| PluginError::of(error.to_string()))?;
        let event = convert::to_lua(lua, &event).map_err(|error| explain(&error))?;
        let script = lua.create_thread(handler.clone()).map_err(|error| explain(&error))?;
        let values = loaded.state.run(&call, script, event).await.map_err(|error| explain(&error))?;
        let answer = values.front().unwrap_or(&LuaValue::Nil);
        let invalid = |why: String| PluginError::of(format!("its answer is not valid: {why}"));
        match convert::to_json(lua, answer).map_err(|error| invalid(error.to_string()))? {
            Value::Null => Ok(HookAnswer::default()),
            Value::Object(table) => {
                let mut answer = read_answer(table).map_err(|error| invalid(error.to_string()))?;
                if let (Some(changed), Some(cx)) = (&mut answer.modified_tool_input, &seen) {
                    let snapshot = plugin.shared.engine.registry.snapshot();
                    if let Some(tool) = snapshot.view(cx.session.project()).find_own(cx.tool.as_str()) {
                        empty_lists(changed, tool.spec().input.as_value());
                    }
                }
                Ok(answer)
            }
            other => Err(invalid(format!("expected a table or nil, got {other}"))),
        }
    }
}

/// The event as plugins of hygge know it: its own name as `hook_name`, a mode only before a message, and texts that are
/// there for every event, since hooks of several events compare them.
fn event_of(input: HookInput, event: HookEvent) -> serde_json::Result<Value> {
    let mode_name = input.mode_name.filter(|_| event == HookEvent::PreMessage);
    let input = HookInput { hook_name: event.as_str().to_owned(), mode_name, ..input };
    let mut fields = serde_json::to_value(input)?;
    for text in ["tool_name", "message", "mode_name"] {
        fields.as_object_mut().map(|fields| fields.entry(text).or_insert_with(|| "".into()));
    }
    Ok(fields)
}

/// Only the decision `modify` changes anything, and an empty message replaces none, as in hygge.
fn read_answer(mut table: Map<String, Value>) -> serde_json::Result<HookAnswer> {
    for text in ["decision", "reason", "system_prompt_append", "modified_message"] {
        match table.get_mut(text) {
            Some(number @ (Value::Number(_) | Value::Bool(_))) => *number = number.to_string().into(),
            Some(Value::String(empty)) if empty.is_empty() => drop(table.remove(text)),
            Some(_) | None => {}
        }
    }
    let answer: HookAnswer = serde_json::from_value(Value::Object(table))?;
    match answer.decision {
        Some(HookDecision::Modify) => Ok(answer),
        None | Some(HookDecision::Allow | HookDecision::Deny) => {
            Ok(HookAnswer { modified_tool_input: None, modified_tool_result: None, modified_message: None, ..answer })
        }
    }
}

/// Reports a hook whose time was over while it waited: then its future is dropped, and it has no error.
struct HookEnding<'a> {
    hook: &'a LuaHook,
    cx: Option<Arc<Cx>>,
    /// That of a message, which is no call.
    session: Option<SessionId>,
    started: Instant,
    is_known: bool,
}

impl HookEnding<'_> {
    fn report(&self, error: PluginError) {
        let (states, handler) = (&self.hook.states, HandlerName { kind: "hook", name: &self.hook.spec.name });
        match &self.cx {
            Some(cx) => states.report_failure(handler, cx, error),
            None => states.report_failure_outside(handler, self.session.clone(), error),
        }
    }
}

impl Drop for HookEnding<'_> {
    fn drop(&mut self) {
        // The clock of the time limit started just before. A hook that is dropped sooner belongs to a call that
        // was cancelled.
        let limit = self.hook.spec.timeout;
        if !self.is_known && self.started.elapsed() + Duration::from_millis(5) >= limit {
            self.report(PluginError::of(format!("it took longer than {} ms", limit.as_millis())));
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
