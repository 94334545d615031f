//! A tool whose `execute` is a Lua function.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use mlua::{MultiValue, Value as LuaValue};
use serde_json::Value;
use toold_engine::callable::Callable;
use toold_engine::cx::Cx;
use toold_engine::need::Need;
use toold_engine::tool::{ToolError, ToolOutput, ToolSpec};
use toold_host::file_systems::answering;
use toold_proto::plugin::PluginError;
use toold_proto::provide::CallWait;
use toold_proto::tool::{Block, Category};

use crate::plugin::failures::HandlerName;
use crate::plugin::handler::run_script;
use crate::plugin::needs::read_needs;
use crate::plugin::registrations::{NeedsSource, ToolHandlers, ToolPermission};
use crate::plugin::schema_shape::{fill_defaults, has_defaults};
use crate::plugin::secrets::{knows_secrets, without_secrets};
use crate::plugin::state_pool::{LoadedState, StateLease, StatePool};
use crate::plugin::tool_result;
use crate::vm::convert;
use crate::vm::interrupt::ScriptInterrupt;
use crate::vm::script_run::{ScriptRun, SerialTurn};

pub(crate) struct LuaTool {
    spec: ToolSpec,
    states: Arc<StatePool>,
    needs: NeedsSource,
    has_defaults: bool,
    /// Its results may contain secrets.
    knows_secrets: bool,
}

/// How often, and how far apart, a call looks for a plugin's file that is not there.
const GONE_LOOKS: u32 = 3;
const GONE_PAUSE: Duration = Duration::from_millis(50);

/// The output of a call that failed says which permission it was refused: a script may take a refusal for something else.
fn with_refusal(mut output: ToolOutput, call: &ScriptRun) -> ToolOutput {
    if let Some(denial) = call.refused().filter(|_| output.is_error) {
        let is_said = |block: &Block| block.as_text().is_some_and(|text| text.contains(&denial.message));
        if !output.content.iter().any(is_said) {
            output.content.push(Block::text(format!("[{}]", denial.message)));
        }
    }
    output
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
    pub(crate) fn new(spec: ToolSpec, states: Arc<StatePool>, needs: NeedsSource) -> Self {
        let has_defaults = has_defaults(spec.input.as_value());
        let knows_secrets = knows_secrets(&states.plugin);
        Self { spec, states, needs, has_defaults, knows_secrets }
    }

    async fn run(&self, mut input: Value, cx: &Cx) -> Result<ToolOutput, ToolError> {
        let states = &self.states;
        // An outer call of the same plugin holds the serial lock; an inner one runs under it.
        let nested = cx.outer_chain.iter().any(|plugin| plugin == states.plugin.name());
        let turn = match self.spec.parallelizable || nested {
            true => None,
            false => {
                let held = match states.serial.clone().try_lock_owned() {
                    Ok(held) => held,
                    Err(_) => {
                        let _waiting = cx.wait_for(CallWait::Turn);
                        states.serial.clone().lock_owned().await
                    }
                };
                Some(SerialTurn::new(states.serial.clone(), held))
            }
        };
        self.must_exist().await?;
        if self.has_defaults {
            fill_defaults(&mut input, self.spec.input.as_value());
        }
        let loaded = self.lease_state().await?;
        let execute = &self.handlers(&loaded)?.execute;
        let read = |values: &MultiValue| {
            let value = values.front().unwrap_or(&LuaValue::Nil);
            tool_result::output(loaded.state.lua(), value, &self.spec)
        };
        let handler = HandlerName { kind: "tool", name: self.spec.name.as_str() };
        let call = match turn {
            Some(turn) => ScriptRun::of_call_in_turn(cx.shared(), turn),
            None => ScriptRun::of_call(cx.shared()),
        };
        let output = run_script(states, &loaded, (handler, execute), &call, &input, &[&input], read).await;
        let output = output.map(|output| if self.knows_secrets { without_secrets(output) } else { output });
        output.map(|output| with_refusal(output, &call))
    }

    /// A plugin whose files were deleted serves no call from then on, even before the daemon has heard of it. An editor may
    /// take a file away for a moment while it saves.
    async fn must_exist(&self) -> Result<(), ToolError> {
        let path = &self.states.plugin.path;
        for _ in 0..GONE_LOOKS {
            if path.symlink_metadata().is_ok() {
                return Ok(());
            }
            tokio::time::sleep(GONE_PAUSE).await;
        }
        let (name, path) = (&self.spec.name, path.display());
        Err(ToolError::Failed(format!("there is no tool {name} any more: its plugin {path} was removed")))
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
        let mut filled = input.clone();
        if self.has_defaults {
            fill_defaults(&mut filled, self.spec.input.as_value());
        }
        let input = &filled;
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
