//! Functions of plugins that are called as tools are, whether or not they are any.

use std::sync::Arc;

use mlua::{Function, MultiValue};
use serde_json::{Map, Value, json};
use toold_engine::cx::Cx;
use toold_engine::schema::Schema;
use toold_engine::tool::{ToolError, ToolOutput, ToolSpec};
use toold_proto::plugin::PluginError;
use toold_proto::tool::{Annotations, ToolName};

use crate::brake::Brake;
use crate::call::Call;
use crate::hygge::begin;
use crate::plugin::{Loaded, Plugin, Version};

/// How a run ended that nobody cancelled.
pub(crate) enum Ended {
    Gave(MultiValue),
    /// It raised, or its time was over.
    Failed(ToolOutput),
}

/// Runs a function as a call, with its deadline: with the call's `ctx` and `given`. `input` is the call's own.
pub(crate) async fn run(
    version: &Version,
    loaded: &Loaded,
    function: &Function,
    cx: &Arc<Cx>,
    input: &Value,
    given: &[&Value],
) -> Result<Ended, ToolError> {
    let call = Call::new(Brake::of_call(cx.clone()), cx.clone());
    let _watched = version.plugin.shared.watchdog.watch(&call.brake);
    let ended = match begin(loaded.vm.lua(), function, cx, input, given) {
        Ok(script) => loaded.vm.run(&call, script, ()).await,
        Err(error) => Err(error),
    };
    version.note_call(loaded.vm.stalls());
    match ended {
        Ok(values) => Ok(Ended::Gave(values)),
        Err(_) if call.brake.look() && cx.is_cancelled() => Err(ToolError::Cancelled),
        Err(error) => Ok(Ended::Failed(failed(&version.plugin, &error, call.brake.is_set(), cx))),
    }
}

/// What calls and the audit log know of something that is no tool. It runs beside others, and what it touches is
/// judged need by need. `input` is one of our own schemas.
pub(crate) fn spec(kind: &str, name: &str, about: (String, String), input: Value, plugin: &Plugin) -> ToolSpec {
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
    }
}

fn tool_name(kind: &str, name: &str) -> ToolName {
    let fits = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' };
    let name: String = kind.chars().chain(['_']).chain(name.chars().map(fits)).take(64).collect();
    ToolName::parse(&name).expect("letters, digits and underscores are a name")
}

/// What a call gives whose script raised.
fn failed(plugin: &Plugin, error: &mlua::Error, timed_out: bool, cx: &Cx) -> ToolOutput {
    let explained = plugin.sources.explain(error);
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
