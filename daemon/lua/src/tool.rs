//! A tool whose `execute` is a Lua function.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use mlua::{MultiValue, Value as LuaValue};
use serde_json::{Map, Value, json};
use toold_engine::counts::At;
use toold_engine::cx::Cx;
use toold_engine::need::Need;
use toold_engine::tool::{Tool, ToolError, ToolOutput, ToolSpec};
use toold_proto::plugin::PluginError;
use toold_proto::tool::Category;

use crate::args::{Args, Fields};
use crate::brake::Brake;
use crate::call::Call;
use crate::hygge::{CallTable, call_table, need};
use crate::plugin::{Handlers, Held, Permission, Plugin, Version};
use crate::registrations::Needs;
use crate::result;

pub(crate) struct LuaTool {
    pub(crate) spec: ToolSpec,
    pub(crate) version: Arc<Version>,
    pub(crate) needs: Needs,
}

impl Tool for LuaTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn needs<'a>(&'a self, input: &'a Value, cx: &'a Cx) -> BoxFuture<'a, Result<Vec<Need>, ToolError>> {
        match self.needs {
            Needs::None => std::future::ready(Ok(Vec::new())).boxed(),
            Needs::Default => {
                std::future::ready(Ok(vec![Need::new(Category::Plugin, self.spec.name.as_str())])).boxed()
            }
            Needs::Told => self.ask_needs(input, cx).boxed(),
        }
    }

    fn call<'a>(&'a self, input: Value, cx: &'a Cx) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        self.run(input, cx).boxed()
    }
}

impl LuaTool {
    async fn run(&self, input: Value, cx: &Cx) -> Result<ToolOutput, ToolError> {
        let version = &self.version;
        // An outer call of the same plugin holds the place that an inner one runs in.
        let nested = cx.outer_chain.iter().any(|plugin| plugin == version.plugin.name());
        let _serial = match self.spec.parallelizable || nested {
            true => None,
            false => match version.serial.try_lock() {
                Ok(serial) => Some(serial),
                Err(_) => {
                    let _counted = cx.engine.counts.stay(At::Place);
                    Some(version.serial.lock().await)
                }
            },
        };
        let (loaded, handlers) = self.machine().await?;
        let cx = cx.shared();
        let call = Call::new(Brake::of_call(cx.clone()), cx.clone());
        let _watched = version.plugin.shared.watchdog.watch(&call.brake);
        let lua = loaded.vm.lua();
        let ended = match call_table(lua, &CallTable { cx: &cx, input: &input }) {
            Ok(args) => loaded.vm.run(&call, &handlers.execute, args).await,
            Err(error) => Err(error),
        };
        match ended {
            Ok(values) => {
                let value = values.front().unwrap_or(&LuaValue::Nil);
                Ok(result::output(lua, value, &self.spec).unwrap_or_else(|why| {
                    ToolOutput::error(format!("the result of {} cannot be used: {why}", self.spec.name))
                }))
            }
            Err(_) if call.brake.look() && cx.is_cancelled() => Err(ToolError::Cancelled),
            Err(error) => Ok(failed(&version.plugin, &error, call.brake.is_set(), &cx)),
        }
    }

    /// A machine to run in, and the tool's functions there.
    async fn machine(&self) -> Result<(Held, Handlers), ToolError> {
        let version = &self.version;
        let loaded = match self.spec.parallelizable {
            true => version.any().await,
            false => version.main().await,
        };
        let loaded = loaded.map_err(ToolError::Told)?;
        let handlers = loaded.tools.get(&self.spec.name).cloned().ok_or_else(|| {
            ToolError::Told(format!("the plugin {} did not register {} again", version.plugin.name(), self.spec.name))
        })?;
        Ok((loaded, handlers))
    }

    async fn ask_needs(&self, input: &Value, cx: &Cx) -> Result<Vec<Need>, ToolError> {
        let (loaded, handlers) = self.machine().await?;
        let Permission::Told(told) = handlers.permission else { return Ok(Vec::new()) };
        let cx = cx.shared();
        let call = Call::new(Brake::of_needs(cx.clone()), cx.clone());
        let _watched = self.version.plugin.shared.watchdog.watch(&call.brake);
        let lua = loaded.vm.lua();
        let args = call_table(lua, &CallTable { cx: &cx, input });
        let ended = match args {
            Ok((_, input)) => loaded.vm.run(&call, &told, input).await,
            Err(error) => Err(error),
        };
        match ended {
            Ok(values) => read_needs(values, &cx).map_err(ToolError::Told),
            Err(_) if cx.is_cancelled() => Err(ToolError::Cancelled),
            Err(error) => {
                let message = self.version.plugin.sources.explain(&error).message;
                Err(ToolError::Told(format!("{} could not say what it will touch: {message}", self.spec.name)))
            }
        }
    }
}

/// What a call gives whose script raised.
pub(crate) fn failed(plugin: &Plugin, error: &mlua::Error, timed_out: bool, cx: &Cx) -> ToolOutput {
    let explained = plugin.sources.explain(error);
    if timed_out {
        let so_far = cx.progress.output_so_far();
        let text = match so_far.as_str() {
            "" => explained.message.clone(),
            so_far => format!("{so_far}\n[{}; this is what came before]", explained.message),
        };
        return with_place(ToolOutput::error(text), explained).with("timed_out", true);
    }
    with_place(ToolOutput::error(&explained.message), explained)
}

/// One need, a list of needs, or nothing.
fn read_needs(values: MultiValue, cx: &Cx) -> Result<Vec<Need>, String> {
    let args = Args::new("permission", values);
    if matches!(args.value(1), LuaValue::Nil | LuaValue::Boolean(false)) {
        return Ok(Vec::new());
    }
    let fields = args.fields(1, "result")?;
    if fields.table.raw_len() == 0 {
        return Ok(vec![need(&fields, &cx.cwd)?]);
    }
    let list = fields.table.sequence_values::<mlua::Table>();
    let needs = list.map(|table| {
        let table = table.map_err(|_| "permission: expected a table or a list of tables".to_owned())?;
        need(&Fields::new("permission", table), &cx.cwd)
    });
    needs.collect()
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
