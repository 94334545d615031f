//! The functions that a handler gave to `ctx.on_end`: they run once the call has ended, however it ended.

use std::time::Duration;

use mlua::Function;
use serde_json::{Value, json};
use toold_engine::cx::Cx;
use toold_engine::tool::{ToolError, ToolOutput};
use toold_proto::tool::Block;

use crate::plugin::failure_log::log_failure;
use crate::plugin::state_pool::{LoadedState, StatePool};
use crate::vm::convert;
use crate::vm::interrupt::ScriptInterrupt;
use crate::vm::script_run::ScriptRun;

/// How long all functions of a call may take together. Less than the grace of a cancelled call, after which its work is
/// dropped.
const LIMIT: Duration = Duration::from_millis(1_500);

const TIMED_OUT: &str = "the call's time limit is exceeded";

/// How a call ended, as its functions receive it.
pub(crate) struct CallEnding {
    status: &'static str,
    error: Option<String>,
    duration: Duration,
}

impl CallEnding {
    pub(crate) fn new(cx: &Cx, output: &Result<ToolOutput, ToolError>, duration: Duration) -> Self {
        let stopped = |status, words: &str| (status, Some(words.to_owned()));
        let (status, error) = match output {
            _ if cx.timed_out() => stopped("timed_out", TIMED_OUT),
            Ok(output) if output.metadata.get("timed_out") == Some(&Value::Bool(true)) => {
                stopped("timed_out", TIMED_OUT)
            }
            _ if cx.is_cancelled() => stopped("cancelled", "it was cancelled"),
            Ok(output) if output.is_error => ("error", Some(text(output))),
            Ok(_) => ("ok", None),
            Err(error) => ("error", Some(error.to_string())),
        };
        Self { status, error, duration }
    }

    fn to_json(&self) -> Value {
        json!({"status": self.status, "error": self.error, "duration_ms": self.duration.as_millis() as u64})
    }
}

/// Runs functions one after another, in the Lua state of the call. They have the permissions of the call, but nobody is
/// asked. An error is logged, and changes neither the result nor whether the others run.
pub(crate) async fn run(
    states: &StatePool,
    loaded: &LoadedState,
    functions: Vec<Function>,
    cx: &Cx,
    ending: &CallEnding,
) {
    // The time is not the call's, which might otherwise time out although its handler has returned.
    let _pause = cx.deadline.pause();
    let plugin = &states.plugin;
    let after = cx.after_end(LIMIT);
    let call = ScriptRun::around_call(ScriptInterrupt::of_ending(LIMIT), after.clone());
    let _watched = plugin.shared.watchdog.watch(&call.interrupt);
    let lua = loaded.state.lua();
    let outcome = ending.to_json();
    for function in functions {
        let begun = convert::to_lua(lua, &outcome).and_then(|outcome| Ok((lua.create_thread(function)?, outcome)));
        let ended = match begun {
            Ok((script, outcome)) => loaded.state.run(&call, script, outcome).await,
            Err(error) => Err(error),
        };
        if let Err(error) = ended {
            log_failure(plugin, Some(cx), "a function of ctx.on_end failed", &plugin.sources.explain(&error));
        }
    }
}

fn text(output: &ToolOutput) -> String {
    let texts: Vec<&str> = output.content.iter().filter_map(Block::as_text).collect();
    texts.join("\n")
}
