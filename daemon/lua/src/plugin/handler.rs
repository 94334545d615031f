//! Running functions of plugins as calls, with deadline and permissions: tools, commands, resources and prompts.

use std::sync::Arc;
use std::time::Instant;

use futures_util::FutureExt;
use mlua::{Function, Lua, MultiValue, Table, Thread, Value as LuaValue};
use serde_json::{Map, Value, json};
use toold_engine::cx::Cx;
use toold_engine::schema::Schema;
use toold_engine::tool::{ToolError, ToolOutput, ToolSpec};
use toold_proto::plugin::PluginError;
use toold_proto::tool::{Annotations, ToolName};

use crate::plugin::PluginVersion;
use crate::plugin::endings::{self, CallEnding};
use crate::plugin::failures::HandlerName;
use crate::plugin::state_pool::{LoadedState, StatePool};
use crate::vm::convert;
use crate::vm::raw::CtxFields;
use crate::vm::script_run::ScriptRun;

/// Runs a function as a call, with its deadline, with the call's `ctx` and `given`; then the functions that it gave to
/// `ctx.on_end`. `input` is the call's own; `read` makes the result of the value that the function returned. Failures are
/// reported to the plugin's author too.
pub(crate) async fn run(
    states: &StatePool,
    loaded: &LoadedState,
    (handler, function): (HandlerName<'_>, &Function),
    cx: &Arc<Cx>,
    input: &Value,
    given: &[&Value],
    read: impl FnOnce(&LuaValue) -> Result<ToolOutput, String>,
) -> Result<ToolOutput, ToolError> {
    let call = ScriptRun::of_call(cx.clone());
    let read = |values: &MultiValue| read(values.front().unwrap_or(&LuaValue::Nil));
    run_script(states, loaded, (handler, function), &call, input, given, read).await
}

/// The same for a run that is made already, and for all values that the function returned.
pub(crate) async fn run_script(
    states: &StatePool,
    loaded: &LoadedState,
    (handler, function): (HandlerName<'_>, &Function),
    call: &Arc<ScriptRun>,
    input: &Value,
    given: &[&Value],
    read: impl FnOnce(&MultiValue) -> Result<ToolOutput, String>,
) -> Result<ToolOutput, ToolError> {
    let start = Instant::now();
    let cx = call.cx().map_err(ToolError::Failed)?;
    let watched = states.plugin.shared.watchdog.watch(&call.interrupt);
    let ended = match begin(loaded.state.lua(), function, cx, input, given) {
        Ok(script) => loaded.state.run(call, script, ()).await,
        Err(error) => Err(error),
    };
    drop(watched);
    states.note_call(loaded.state.stalls());
    let output = match ended {
        Ok(values) => Ok(read(&values).unwrap_or_else(|why| {
            let message = format!("the result of {} is not valid: {why}", handler.name);
            let output = ToolOutput::error(&message);
            states.report_failure(handler, cx, PluginError::of(message));
            output
        })),
        Err(error) if call.interrupt.check() && cx.is_cancelled() => {
            if cx.timed_out() {
                states.report_failure(handler, cx, states.plugin.sources.explain(&error));
            }
            Err(ToolError::Cancelled)
        }
        Err(error) => {
            let explained = states.plugin.sources.explain(&error);
            states.report_failure(handler, cx, explained.clone());
            let is_of_time = call.interrupt.is_set() && !call.interrupt.is_out_of_memory();
            Ok(failed(explained, is_of_time, cx))
        }
    };
    let functions = call.take_endings();
    if !functions.is_empty() {
        endings::run(states, loaded, functions, cx, &CallEnding::new(cx, &output, start.elapsed())).boxed().await;
    }
    output
}

/// How calls and the audit log describe a function that is not a tool. It runs in parallel with others, and each thing
/// that it touches is checked when it does. `input` is one of our own schemas.
pub(crate) fn spec(kind: &str, name: &str, about: (String, String), input: Value, plugin: &PluginVersion) -> ToolSpec {
    let (label, description) = about;
    ToolSpec {
        name: tool_name(kind, name),
        label,
        description,
        input: Schema::compiled_before(input),
        output: None,
        source: plugin.source(),
        origin: plugin.origin,
        parallelizable: true,
        permissions: Vec::new(),
        cache_ttl: None,
        timeout: plugin.manifest.timeout,
        annotations: Annotations::default(),
        version: plugin.manifest.version.clone(),
        grammar: None,
    }
}

fn tool_name(kind: &str, name: &str) -> ToolName {
    let fits = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' };
    let name: String = kind.chars().chain(['_']).chain(name.chars().map(fits)).take(64).collect();
    ToolName::parse(&name).expect("letters, digits and underscores are a name")
}

/// The result of a call whose script raised an error.
fn failed(explained: PluginError, timed_out: bool, cx: &Cx) -> ToolOutput {
    if timed_out {
        let so_far = cx.progress.output_so_far();
        let text = match so_far.as_str() {
            "" => explained.message.clone(),
            so_far => format!("{so_far}\n[{}; the output so far is above]", explained.message),
        };
        return with_place(ToolOutput::error(text), explained).with("timed_out", true);
    }
    with_place(ToolOutput::error(&explained.message), explained)
}

fn with_place(mut output: ToolOutput, error: PluginError) -> ToolOutput {
    let mut place = Map::new();
    if let (Some(file), Some(line)) = (error.file, error.line) {
        place.insert("file".into(), file.into());
        place.insert("line".into(), line.into());
        place.insert("source_line".into(), json!(error.source_line));
    }
    if let Some(traceback) = error.traceback {
        output.metadata.insert("traceback".into(), traceback.into());
    }
    if !place.is_empty() {
        output.metadata.insert("error".into(), Value::Object(place));
    }
    output
}

/// A coroutine that is ready to run a handler of a call, with the call's `ctx` and `given`.
pub(crate) fn begin(
    lua: &Lua,
    handler: &Function,
    cx: &Arc<Cx>,
    input: &Value,
    given: &[&Value],
) -> mlua::Result<Thread> {
    let (cwd, session_cwd) = (cx.cwd.to_string_lossy(), cx.session.cwd.to_string_lossy());
    let model = cx.session.model.as_deref();
    let texts = [
        ("call_id", cx.call_id.as_str()),
        ("tool", cx.tool.as_str()),
        ("cwd", &*cwd),
        ("model", model.unwrap_or_default()),
    ];
    let texts = if model.is_some() { &texts[..] } else { &texts[..3] };
    let session = [("id", cx.session.id.as_str()), ("cwd", &*session_cwd)];
    // A result that may serve other sessions: this table notices when the script reads the session id.
    let shared = match cx.wants_stamps() {
        true => Some(lua.named_registry_value::<Table>(SESSION)?),
        false => None,
    };
    let fields = CtxFields { texts, session: &session, shared_session: shared.as_ref() };
    convert::begin(lua, handler, &fields, input, given)
}

/// The name of the table `hygge.session` in the registry of the Lua state.
pub(crate) const SESSION: &str = "toold.session";
