//! Output of plugins: `hygge.log`, `hygge.notify`, `hygge.send_message`, `print`.

use std::borrow::Cow;
use std::sync::atomic::Ordering;

use mlua::Value;
use serde_json::Value as Json;
use toold_proto::call::Stream;
use toold_proto::cut::cut_bytes;
use toold_proto::event::EventBody;
use toold_proto::tool::SessionId;

use crate::api::ApiTable;
use crate::plugin::PluginVersion;
use crate::vm::args::{Args, shown, text};
use crate::vm::script_run;

/// Longer texts are cut, since they are kept for later subscribers.
const MAX_TEXT: usize = 16 * 1024;
/// How many lines of one call become events: more would push other events out of the buffer.
const MAX_LOGGED: u32 = 100;

pub(super) fn install(hygge: &ApiTable) -> mlua::Result<()> {
    hygge.function("log", "hygge.log", |lua, args, context| {
        context.note_side_effect();
        let level = level(args, 1)?;
        let message = short(args.text(2, "message")?);
        let fields = match args.value(3) {
            Value::Nil => None,
            // A line is worth more than its fields.
            _ => Some(small(args.json(lua, 3, "fields").unwrap_or_else(Json::String))),
        };
        log(&context.plugin, &level, message, fields);
        Ok(())
    })?;
    hygge.function("notify", "hygge.notify", |_, args, context| {
        context.note_side_effect();
        let message = short(args.text(1, "message")?);
        let level = if args.value(2).is_nil() { "info".to_owned() } else { level(args, 2)? };
        let session_id = script_run::current().and_then(|call| Some(call.cx.as_ref()?.session.id.clone()));
        let plugin = Some(context.plugin.name().to_owned());
        context.plugin.shared.engine.events.emit(EventBody::Notice { session_id, plugin, level, message });
        Ok(())
    })?;
    hygge.function("send_message", "hygge.send_message", |_, args, context| {
        context.note_side_effect();
        let id = args.text(1, "session_id")?;
        let role = args.text(2, "role")?;
        let content = short(args.text(3, "content")?);
        context.plugin.requires("messages", |can| can.messages)?;
        let engine = &context.plugin.shared.engine;
        let found = SessionId::parse(&id).map_err(|error| error.to_string()).and_then(|session_id| {
            let exists = engine.sessions.find(&session_id).is_some();
            exists.then_some(session_id).ok_or_else(|| format!("there is no session {id}"))
        });
        let session_id = match found {
            Ok(session_id) => session_id,
            // Plugins greet a session while they load, when there is none yet.
            Err(why) if script_run::current().is_none_or(|call| call.cx.is_none()) => {
                log(&context.plugin, "warn", format!("hygge.send_message: the message is lost: {why}"), None);
                return Ok(());
            }
            Err(why) => return Err(format!("hygge.send_message: {why}")),
        };
        engine.events.emit(EventBody::Message { session_id, plugin: context.plugin.name().to_owned(), role, content });
        Ok(())
    })?;
    let print = hygge.function("print", "print", |lua, args, context| {
        context.note_side_effect();
        let mut texts = Vec::new();
        for place in 1..=args.len() {
            let value = args.value(place);
            let text = match text(value) {
                Some(text) => text,
                None => lua
                    .coerce_string(value.clone())
                    .ok()
                    .flatten()
                    .map_or_else(|| value.to_string().unwrap_or_else(|_| shown(value)), |text| text.to_string_lossy()),
            };
            texts.push(text);
        }
        log(&context.plugin, "info", short(texts.join("\t")), None);
        Ok(())
    })?;
    hygge.table.raw_remove("print")?;
    hygge.lua.globals().raw_set("print", print)
}

fn level(args: &Args, place: usize) -> Result<String, String> {
    let level = args.text(place, "level")?;
    match level.as_str() {
        "debug" | "error" => Ok(level),
        "warn" | "warning" => Ok("warn".to_owned()),
        // As in hygge, where no level is a mistake.
        _ => Ok("info".to_owned()),
    }
}

/// Writes to the daemon's log, and emits an event; within a call, an event of its session.
pub(super) fn log(plugin: &PluginVersion, level: &str, message: String, fields: Option<Json>) {
    let engine = &plugin.shared.engine;
    let current = script_run::current();
    let cx = current.as_ref().and_then(|call| call.cx.as_ref());
    {
        let (plugin, call) = (plugin.name(), cx.map(|cx| cx.call_id.as_str()));
        let fields = fields.as_ref().map(Json::to_string);
        match level {
            "debug" => tracing::debug!(target: "toold::plugin", plugin, call, fields, "{message}"),
            "warn" => tracing::warn!(target: "toold::plugin", plugin, call, fields, "{message}"),
            "error" => tracing::error!(target: "toold::plugin", plugin, call, fields, "{message}"),
            _ => tracing::info!(target: "toold::plugin", plugin, call, fields, "{message}"),
        }
    }
    let Some(call) = &current else {
        let (plugin, level) = (plugin.name().to_owned(), level.to_owned());
        let event = EventBody::Log { call_id: None, session_id: None, plugin, level, message, fields };
        return engine.events.emit(event);
    };
    if let Some(cx) = cx.filter(|_| call.echoes_log) {
        let fields = fields.as_ref().map(|fields| format!(" {fields}")).unwrap_or_default();
        let level = if level == "info" { String::new() } else { format!("{level}: ") };
        cx.output(Stream::Stdout, format!("{level}{message}{fields}\n"));
    }
    let number = call.logged.fetch_add(1, Ordering::Relaxed);
    let message = match number {
        0..MAX_LOGGED => message,
        MAX_LOGGED => "further lines are only in the daemon's log".to_owned(),
        _ => return,
    };
    engine.events.emit(EventBody::Log {
        call_id: cx.map(|cx| cx.call_id.clone()),
        session_id: cx.map(|cx| cx.session.id.clone()),
        plugin: plugin.name().to_owned(),
        level: level.to_owned(),
        message,
        fields: if number < MAX_LOGGED { fields } else { None },
    });
}

/// Fields that are too large become a cut text.
fn small(fields: Json) -> Json {
    let text = fields.to_string();
    if text.len() > MAX_TEXT { Json::String(short(text)) } else { fields }
}

/// Copies the part that stays: a truncated `String` keeps the memory of the whole one.
fn short(text: String) -> String {
    match cut_bytes(&text, MAX_TEXT, " [cut]") {
        Cow::Borrowed(_) => text,
        Cow::Owned(start) => start,
    }
}
