//! `hygge.every`: timers that live as long as the version of the plugin that made them.

use std::sync::Arc;
use std::time::Duration;

use mlua::{Lua, MultiValue, Table};

use crate::api::ApiTable;
use crate::api::register::add;
use crate::api::script_context::ScriptContext;
use crate::plugin::timers::TimerRegistration;
use crate::vm::args::Args;

const MIN_INTERVAL: Duration = Duration::from_secs(1);
/// How many timers a plugin may have.
const MAX_TIMERS: usize = 16;
const MAX_NAME: usize = 64;

pub(super) fn install(hygge: &ApiTable) -> mlua::Result<()> {
    hygge.function("every", "hygge.every", |lua, args, context| {
        // In a load that finds all mistakes, the script goes on with a timer that never runs.
        let place = match every(args, context) {
            Ok(place) => place,
            Err(mistake) => {
                context.record_mistake(lua, Err(mistake))?;
                MAX_TIMERS
            }
        };
        handle(lua, place, context).map_err(|error| error.to_string())
    })?;
    Ok(())
}

/// Registers a timer, and returns its position.
fn every(args: &Args, context: &Arc<ScriptContext>) -> Result<usize, String> {
    let interval = args.duration(1, "interval")?;
    if interval < MIN_INTERVAL {
        return Err(args.mistake(1, "interval", "at least one second"));
    }
    let function = args.function(2, "function")?;
    let options = args.optional_fields(3, "opts")?;
    let (mut name, mut immediately) = (None, false);
    if let Some(options) = options {
        name = options.optional_text("name")?;
        if name.as_ref().is_some_and(|name| name.is_empty() || name.len() > MAX_NAME) {
            return Err(options.wrong("name", format!("expected 1 to {MAX_NAME} bytes")));
        }
        immediately = options.flag("immediately")?;
    }
    let mut place = 0;
    add(args, context, |registered| {
        place = registered.timers.len();
        if place >= MAX_TIMERS {
            return Err(format!("hygge.every: a plugin may have at most {MAX_TIMERS} timers"));
        }
        let name = name.unwrap_or_else(|| (place + 1).to_string());
        registered.timers.push((TimerRegistration { name, interval, immediately }, function));
        Ok(())
    })?;
    Ok(place)
}

/// The timer as the script gets it: a table with `stop`.
fn handle(lua: &Lua, place: usize, context: &ScriptContext) -> mlua::Result<Table> {
    let stop = context.plugin.timers.stop_token(place);
    let handle = lua.create_table()?;
    handle.raw_set(
        "stop",
        lua.create_function(move |_, _: MultiValue| {
            stop.cancel();
            Ok(())
        })?,
    )?;
    Ok(handle)
}
