//! A tool whose `execute` is a Lua function.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use mlua::Value as LuaValue;
use serde_json::Value;
use toold_engine::callable::Callable;
use toold_engine::cx::Cx;
use toold_engine::need::Need;
use toold_engine::tool::{ToolError, ToolOutput, ToolSpec};
use toold_host::file_systems::answering;
use toold_proto::plugin::PluginError;
use toold_proto::provide::CallWait;
use toold_proto::tool::Category;

use crate::plugin::failures::HandlerName;
use crate::plugin::handler::run;
use crate::plugin::needs::read_needs;
use crate::plugin::registrations::{NeedsSource, ToolHandlers, ToolPermission};
use crate::plugin::state_pool::{LoadedState, StateLease, StatePool};
use crate::plugin::tool_result;
use crate::vm::convert;
use crate::vm::interrupt::ScriptInterrupt;
use crate::vm::script_run::ScriptRun;

pub(crate) struct LuaTool {
    pub(crate) spec: ToolSpec,
    pub(crate) states: Arc<StatePool>,
    pub(crate) needs: NeedsSource,
}

impl Callable for LuaTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn needs<'a>(&'a self, input: &'a Value, cx: &'a Cx) -> BoxFuture<'a, Result<Vec<Need>, ToolError>> {
        match self.needs {
            NeedsSource::None => std::future::ready(Ok(Vec::new())).boxed(),
            NeedsSource::Default => {
                std::future::ready(Ok(vec![Need::new(Category::Plugin, self.spec.name.as_str())])).boxed()
            }
            NeedsSource::Function => self.run_permission_function(input, cx).boxed(),
        }
    }

    fn may_block(&self) -> bool {
        answering::any() || self.states.may_stall()
    }

    fn call<'a>(&'a self, input: Value, cx: &'a Cx) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        self.run(input, cx).boxed()
    }
}

impl LuaTool {
    async fn run(&self, input: Value, cx: &Cx) -> Result<ToolOutput, ToolError> {
        let states = &self.states;
        // An outer call of the same plugin holds the serial lock; an inner one runs under it.
        let nested = cx.outer_chain.iter().any(|plugin| plugin == states.plugin.name());
        let _serial = match self.spec.parallelizable || nested {
            true => None,
            false => match states.serial.try_lock() {
                Ok(serial) => Some(serial),
                Err(_) => {
                    let _waiting = cx.wait_for(CallWait::Turn);
                    Some(states.serial.lock().await)
                }
            },
        };
        let loaded = self.lease_state().await?;
        let execute = &self.handlers(&loaded)?.execute;
        let read = |value: &LuaValue| tool_result::output(loaded.state.lua(), value, &self.spec);
        let handler = HandlerName { kind: "tool", name: self.spec.name.as_str() };
        run(states, &loaded, (handler, execute), &cx.shared(), &input, &[&input], read).await
    }

    /// The Lua state to run in.
    async fn lease_state(&self) -> Result<StateLease, ToolError> {
        let states = &self.states;
        let loaded = match self.spec.parallelizable {
            true => states.any().await,
            false => states.main().await,
        };
        loaded.map_err(ToolError::Failed)
    }

    /// The tool's functions in that Lua state.
    fn handlers<'a>(&self, loaded: &'a LoadedState) -> Result<&'a ToolHandlers, ToolError> {
        loaded.tools.get(&self.spec.name).ok_or_else(|| {
            let plugin = self.states.plugin.name();
            ToolError::Failed(format!("the plugin {plugin} no longer registers {}", self.spec.name))
        })
    }

    async fn run_permission_function(&self, input: &Value, cx: &Cx) -> Result<Vec<Need>, ToolError> {
        let loaded = self.lease_state().await?;
        let ToolPermission::Function(permission) = &self.handlers(&loaded)?.permission else { return Ok(Vec::new()) };
        let cx = cx.shared();
        let call = ScriptRun::around_call(ScriptInterrupt::of_needs(cx.clone()), cx.clone());
        let _watched = self.states.plugin.shared.watchdog.watch(&call.interrupt);
        let lua = loaded.state.lua();
        let begun = convert::to_lua(lua, input).and_then(|input| Ok((lua.create_thread(permission.clone())?, input)));
        let ended = match begun {
            Ok((script, input)) => loaded.state.run(&call, script, input).await,
            Err(error) => Err(error),
        };
        let error = match ended {
            Ok(values) => match read_needs(values, &call, &self.states.plugin) {
                Ok(needs) => return Ok(needs),
                Err(message) => PluginError::of(message),
            },
            Err(_) if cx.is_cancelled() => return Err(ToolError::Cancelled),
            Err(error) => self.states.plugin.sources.explain(&error),
        };
        let words = format!("the permission function of {} failed: {}", self.spec.name, error.message);
        let handler = HandlerName { kind: "permission of", name: self.spec.name.as_str() };
        self.states.report_failure(handler, &cx, error);
        Err(ToolError::Failed(words))
    }
}
