//! `hygge.register_tool` and its siblings: registering tools, hooks, commands and sub-agents.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use mlua::{Lua, Value};
use serde_json::{Value as Json, json};
use toold_engine::hooks::HookEvent;
use toold_engine::need::Need;
use toold_engine::policy::OVERRIDE;
use toold_engine::schema::Schema;
use toold_engine::tool::ToolSpec;
use toold_proto::nearest::nearest;
use toold_proto::tool::{
    Annotations, Category, GrammarSyntax, SourceKind, TaskUse, ToolGrammar, ToolName, only_text_argument,
};

use crate::api::ApiTable;
use crate::api::log::log;
use crate::api::script_context::ScriptContext;
use crate::plugin::hook::globs;
use crate::plugin::registrations::{
    CommandRegistration, HookRegistration, NeedsSource, ScriptRegistrations, SubagentSpec, ToolHandlers, ToolPermission,
};
use crate::vm::args::{Args, Fields, text};
use crate::vm::{convert, script_run};

/// How many of one kind a plugin may register.
const MAX_REGISTRATIONS: usize = 1_000;
/// How long the result of a tool is cached that only sets `cacheable`.
const DEFAULT_TTL: Duration = Duration::from_secs(300);
const DEFAULT_HOOK_TIMEOUT: Duration = Duration::from_secs(10);

pub(super) fn install(hygge: &ApiTable) -> mlua::Result<()> {
    let tools = hygge.within("tools")?;
    let register = |lua: &Lua, args: &Args, context: &Arc<ScriptContext>| {
        context.record_mistake(lua, register_tool(lua, args, context))
    };
    hygge.function("register_tool", "register_tool", register)?;
    tools.function("register", "tools.register", register)?;
    hygge.function("register_hook", "register_hook", |lua, args, context| {
        context.record_mistake(lua, register_hook(lua, args, context))
    })?;
    hygge.function("register_command", "register_command", |lua, args, context| {
        context.record_mistake(lua, register_command(args, context))
    })?;
    hygge.function("register_subagent", "register_subagent", |lua, args, context| {
        context.record_mistake(lua, register_subagent(args, context))
    })?;
    Ok(())
}

/// The fields that `register_tool` reads.
const TOOL_FIELDS: [&str; 16] = [
    "name",
    "description",
    "execute",
    "handler",
    "label",
    "input_schema",
    "output_schema",
    "parallelizable",
    "timeout",
    "cacheable",
    "cache_ttl",
    "annotations",
    "grammar",
    "permission",
    "version",
    "override",
];

/// The fields of the options of `register_hook`.
const HOOK_FIELDS: [&str; 6] = ["name", "priority", "mode", "timeout", "fail", "tools"];

/// Warns about fields that nothing reads: they are probably misspelt.
fn warn_unread(lua: &Lua, name: &str, fields: &Fields, read: &[&str], context: &Arc<ScriptContext>) {
    for pair in fields.table.pairs::<Value, Value>() {
        let Ok((Value::String(field), _)) = pair else { continue };
        let field = field.to_string_lossy();
        if !read.contains(&field.as_str()) {
            context.warn(lua, &format!("{name}: nothing reads the field '{field}'"));
        }
    }
}

/// Warns about things that load but are probably mistakes.
fn warn(lua: &Lua, fields: &Fields, spec: &ToolSpec, context: &Arc<ScriptContext>) {
    if context.notes.is_none() {
        return;
    }
    let name = &spec.name;
    warn_unread(lua, name.as_str(), fields, &TOOL_FIELDS, context);
    if spec.description.trim().is_empty() {
        context.warn(lua, &format!("{name}: without a description, models do not know when to call it"));
    }
    if let Some(properties) = spec.input.as_value().get("properties").and_then(Json::as_object) {
        for (property, schema) in properties {
            if schema.get("description").is_none() && schema.get("enum").is_none() {
                context.warn(lua, &format!("{name}: the argument '{property}' has no description"));
            }
        }
    }
}

/// Adds to the registrations of the script.
pub(super) fn add(
    args: &Args,
    context: &Arc<ScriptContext>,
    add: impl FnOnce(&mut ScriptRegistrations) -> Result<(), String>,
) -> Result<(), String> {
    let mut registered = context.registered.lock();
    match registered.as_mut() {
        Some(registered) => add(registered),
        None => Err(format!("{}: can only be called while the plugin loads, not from a handler", args.function)),
    }
}

pub(super) fn room(args: &Args, count: usize) -> Result<(), String> {
    if count < MAX_REGISTRATIONS {
        return Ok(());
    }
    Err(format!("{}: a plugin may register at most {MAX_REGISTRATIONS}", args.function))
}

fn register_tool(lua: &Lua, args: &Args, context: &Arc<ScriptContext>) -> Result<(), String> {
    context.plugin.requires("tools", |can| can.tools)?;
    let fields = args.fields(1, "spec")?;
    let named = fields.get("name")?;
    let name = match &named {
        Value::String(name) => ToolName::parse(&name.to_string_lossy()).ok(),
        _ => None,
    };
    let expected = "a name of the form [a-z][a-z0-9_]*, at most 64 characters";
    let name = name.ok_or_else(|| fields.mistake("name", expected, &named))?;
    let execute = match fields.get("execute")? {
        Value::Nil if args.function == "tools.register" => fields.function("handler")?,
        _ => fields.function("execute")?,
    };
    let permission = match fields.get("permission")? {
        Value::Nil => ToolPermission::Default,
        Value::Boolean(false) => ToolPermission::None,
        Value::Function(function) => ToolPermission::Function(function),
        other => return Err(fields.mistake("permission", "false or a function of the input", &other)),
    };
    let input = input_schema(lua, &fields)?;
    let spec = ToolSpec {
        label: fields.optional_text("label")?.unwrap_or_else(|| name.to_string()),
        description: fields.optional_text("description")?.unwrap_or_default(),
        grammar: grammar(&fields, &input)?,
        input,
        output: output_schema(lua, &fields)?,
        source: context.plugin.source(),
        origin: context.plugin.origin,
        // Only `true` counts: older plugins have all kinds of values there.
        parallelizable: matches!(fields.get("parallelizable")?, Value::Boolean(true)),
        permissions: match &permission {
            ToolPermission::Default => NeedsSource::Default.categories(),
            ToolPermission::None => NeedsSource::None.categories(),
            ToolPermission::Function(_) => NeedsSource::Function.categories(),
        },
        cache_ttl: match (fields.flag("cacheable")?, fields.optional_duration("cache_ttl")?) {
            (_, Some(ttl)) => Some(ttl),
            (true, None) => Some(DEFAULT_TTL),
            (false, None) => None,
        },
        timeout: fields.optional_duration("timeout")?.or(context.plugin.manifest.timeout),
        annotations: annotations(&fields)?,
        version: context.plugin.manifest.version.clone(),
        name,
    };
    warn(lua, &fields, &spec, context);
    claim_name(&fields, &spec, context)?;
    add(args, context, |registered| {
        if registered.tools.iter().any(|(other, _)| other.name == spec.name) {
            return Err(fields.wrong("name", format!("this plugin has registered the tool {} already", spec.name)));
        }
        room(args, registered.tools.len())?;
        registered.tools.push((spec, ToolHandlers { execute, permission }));
        Ok(())
    })
}

/// Makes sure that the tool's name is free, or that the plugin may replace the built-in tool that has it.
fn claim_name(fields: &Fields, spec: &ToolSpec, context: &Arc<ScriptContext>) -> Result<(), String> {
    let plugin = &context.plugin;
    let registry = &plugin.shared.engine.registry;
    let holder = || registry.holder(&spec.name, &plugin.key, plugin.origin);
    let replaces = fields.flag("override")?;
    if replaces {
        // The permission is asked for at each load.
        context.note_side_effect();
    } else {
        registry.end_override(&spec.name, &plugin.key);
    }
    let Some(taken) = holder() else { return Ok(()) };
    let name = &spec.name;
    let refuse = |why: String| {
        context.name_taken.store(true, Ordering::Relaxed);
        Err(fields.wrong("name", why))
    };
    let at = taken.path.map(|path| format!(" ({path})")).unwrap_or_default();
    let words = format!("the tool name {name} is taken by {} {}{at}", taken.kind.as_str(), taken.name);
    match (taken.kind, replaces) {
        (SourceKind::Builtin, false) => refuse(format!(
            "{words}: choose another name; or give the built-in tool one ([tools.rename] {name} = \"...\" in config.toml), or \
             switch it off ([tools] disable = [\"{name}\"]); or register yours with override = true, which a person grants"
        )),
        (SourceKind::Builtin, true) => {
            let need = Need {
                reason: Some(format!("replace the built-in tool {name} with its own")),
                ..Need::new(Category::Plugin, format!("{OVERRIDE}{name}"))
            };
            let call = script_run::current().ok_or("register_tool: no script is loading")?;
            match call.effect_blocking(call.require(need))? {
                Ok(()) => {
                    registry.let_override(name.clone(), plugin.key.clone());
                    match holder() {
                        None => Ok(()),
                        Some(_) => refuse(words),
                    }
                }
                Err(error) => refuse(format!("{words}, and override needs a permission: {error}")),
            }
        }
        (_, _) => refuse(words),
    }
}

fn input_schema(lua: &Lua, fields: &Fields) -> Result<Schema, String> {
    let given = fields.get("input_schema")?;
    let mut schema = match given {
        Value::Nil => json!({}),
        Value::Table(_) => convert::to_schema(lua, &given).map_err(|error| fields.wrong("input_schema", error))?,
        other => return Err(fields.mistake("input_schema", "a table with a JSON Schema", &other)),
    };
    // Arguments are always an object, even if the plugin does not say so.
    if let Json::Object(schema) = &mut schema {
        schema.entry("type").or_insert_with(|| "object".into());
    }
    let meant = meant_types(&schema);
    Schema::compile_input(schema).map_err(|error| fields.wrong("input_schema", format!("{error}{meant}")))
}

fn output_schema(lua: &Lua, fields: &Fields) -> Result<Option<Schema>, String> {
    let given = fields.get("output_schema")?;
    if given.is_nil() {
        return Ok(None);
    }
    if !given.is_table() {
        return Err(fields.mistake("output_schema", "a table with a JSON Schema", &given));
    }
    let schema = convert::to_schema(lua, &given).map_err(|error| fields.wrong("output_schema", error))?;
    let meant = meant_types(&schema);
    Schema::compile(schema).map(Some).map_err(|error| fields.wrong("output_schema", format!("{error}{meant}")))
}

/// The types that other languages have, and what JSON Schema calls them.
const TYPES: [(&str, &str); 16] = [
    ("int", "integer"),
    ("long", "integer"),
    ("float", "number"),
    ("double", "number"),
    ("num", "number"),
    ("decimal", "number"),
    ("str", "string"),
    ("text", "string"),
    ("bool", "boolean"),
    ("list", "array"),
    ("dict", "object"),
    ("map", "object"),
    ("table", "object"),
    ("nil", "null"),
    ("none", "null"),
    ("date", "string"),
];

/// The types of a schema that do not exist, with those that were probably meant; empty if there are none.
fn meant_types(schema: &Json) -> String {
    fn collect<'a>(schema: &'a Json, found: &mut Vec<&'a str>) {
        match schema {
            Json::Object(members) => {
                for (key, member) in members {
                    match member {
                        Json::String(text) if key == "type" => found.push(text),
                        Json::Array(list) if key == "type" => found.extend(list.iter().filter_map(Json::as_str)),
                        other => collect(other, found),
                    }
                }
            }
            Json::Array(items) => items.iter().for_each(|item| collect(item, found)),
            _ => {}
        }
    }
    let known = ["string", "number", "integer", "boolean", "object", "array", "null"];
    let mut found = Vec::new();
    collect(schema, &mut found);
    let mut meant = Vec::new();
    for text in found.into_iter().filter(|text| !known.contains(text)) {
        let lower = text.to_ascii_lowercase();
        let alias = TYPES.iter().find(|(other, _)| *other == lower).map(|(_, meant)| *meant);
        if let Some(right) = alias.or_else(|| nearest(&lower, known.iter().copied())) {
            let words = format!("; {right} is meant, not {text}");
            if !meant.contains(&words) {
                meant.push(words);
            }
        }
    }
    meant.concat()
}

fn annotations(fields: &Fields) -> Result<Annotations, String> {
    let Some(given) = fields.optional_fields("annotations")? else { return Ok(Annotations::default()) };
    Ok(Annotations {
        read_only: given.optional_flag("read_only")?,
        destructive: given.optional_flag("destructive")?,
        idempotent: given.optional_flag("idempotent")?,
        open_world: given.optional_flag("open_world")?,
        task: match given.optional_text("task")?.as_deref() {
            None => None,
            Some("optional") => Some(TaskUse::Optional),
            Some("required") => Some(TaskUse::Required),
            Some(other) => return Err(given.wrong("task", format!("expected optional or required, got {other}"))),
        },
    })
}

fn grammar(fields: &Fields, input: &Schema) -> Result<Option<ToolGrammar>, String> {
    let Some(given) = fields.optional_fields("grammar")? else { return Ok(None) };
    let syntax = match given.text("syntax")?.as_str() {
        "lark" => GrammarSyntax::Lark,
        "regex" => GrammarSyntax::Regex,
        other => return Err(given.wrong("syntax", format!("expected lark or regex, got {other}"))),
    };
    if only_text_argument(input.as_value()).is_none() {
        let expected = "needs an input_schema with one property: a string, which is required";
        return Err(fields.wrong("grammar", expected.to_owned()));
    }
    Ok(Some(ToolGrammar { syntax, definition: given.text("definition")? }))
}

fn register_hook(lua: &Lua, args: &Args, context: &Arc<ScriptContext>) -> Result<(), String> {
    context.plugin.requires("hooks", |can| can.hooks)?;
    let named = args.text(1, "event")?;
    let event = HookEvent::parse(&named)
        .ok_or_else(|| args.mistake(1, "event", "pre_tool, post_tool, pre_message or post_message"))?;
    let (options, handler) = match args.value(2) {
        Value::Function(handler) => (None, handler.clone()),
        _ => (args.optional_fields(2, "opts")?, args.function(3, "handler")?),
    };
    let mut hook = HookRegistration {
        name: format!("{}:{named}", context.plugin.name()),
        event,
        priority: 0,
        asynchronous: false,
        timeout: DEFAULT_HOOK_TIMEOUT,
        fail_closed: false,
        tools: None,
    };
    if let Some(options) = options {
        if let Some(name) = options.optional_text("name")? {
            hook.name = name;
        }
        if context.notes.is_some() {
            warn_unread(lua, &hook.name, &options, &HOOK_FIELDS, context);
        }
        hook.priority = options.optional_number("priority")?.unwrap_or(0.0) as i64;
        let mode = options.get("mode")?;
        hook.asynchronous = match text(&mode).as_deref() {
            None if mode.is_nil() => false,
            Some("sync") => false,
            Some("async") => true,
            Some(_) | None => return Err(options.mistake("mode", "\"sync\" or \"async\"", &mode)),
        };
        hook.timeout = options.optional_duration("timeout")?.unwrap_or(DEFAULT_HOOK_TIMEOUT);
        let fail = options.get("fail")?;
        hook.fail_closed = match text(&fail).as_deref() {
            None if fail.is_nil() => false,
            Some("open") => false,
            Some("closed") => true,
            Some(_) | None => return Err(options.mistake("fail", "\"open\" or \"closed\"", &fail)),
        };
        hook.tools = options.optional_texts("tools")?;
        if let Some(patterns) = &hook.tools {
            globs(patterns).map_err(|error| options.wrong("tools", error))?;
        }
    }
    if hook.asynchronous && matches!(event, HookEvent::PreTool | HookEvent::PreMessage) {
        // As in hygge: it could neither refuse nor change anything.
        let words =
            format!("the hook {} never runs: an asynchronous {named} hook is skipped; leave out its mode", hook.name);
        context.warn(lua, &words);
        log(&context.plugin, "warn", words, None);
        return Ok(());
    }
    if matches!(event, HookEvent::PreMessage | HookEvent::PostMessage) {
        let plugin = context.plugin.name();
        let words = format!(
            "the hook {} runs for prompts of agents that `toolctl agents install` set up, and in clients that run hooks of \
             messages; `toolctl plugins show {plugin}` lists them",
            hook.name
        );
        log(&context.plugin, "info", words, None);
    }
    add(args, context, |registered| {
        room(args, registered.hooks.len())?;
        registered.hooks.push((hook, handler));
        Ok(())
    })
}

fn register_command(args: &Args, context: &Arc<ScriptContext>) -> Result<(), String> {
    context.plugin.requires("commands", |can| can.commands)?;
    let fields = args.fields(1, "spec")?;
    let named = fields.get("name")?;
    let name = fields.text("name")?;
    let name = name.strip_prefix('/').unwrap_or(&name).to_owned();
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-' || c == ':';
    if name.is_empty() || name.len() > 64 || !name.chars().all(fits) {
        return Err(fields.mistake("name", "a word of letters, digits, _ - and :", &named));
    }
    let command = CommandRegistration { name, description: fields.optional_text("description")?.unwrap_or_default() };
    let execute = fields.function("execute")?;
    add(args, context, |registered| {
        if registered.commands.iter().any(|(other, _)| other.name == command.name) {
            return Err(
                fields.wrong("name", format!("this plugin has registered the command {} already", command.name))
            );
        }
        room(args, registered.commands.len())?;
        registered.commands.push((command, execute));
        Ok(())
    })
}

/// A field that must be there and not be empty.
fn required_text(fields: &Fields, field: &str, expected: &str) -> Result<String, String> {
    let given = fields.get(field)?;
    text(&given).filter(|text| !text.is_empty()).ok_or_else(|| fields.mistake(field, expected, &given))
}

fn register_subagent(args: &Args, context: &Arc<ScriptContext>) -> Result<(), String> {
    context.plugin.requires("subagents", |can| can.subagents)?;
    let fields = args.fields(1, "spec")?;
    let subagent = SubagentSpec {
        name: required_text(&fields, "name", "the name of the sub-agent")?,
        plugin: context.plugin.name().to_owned(),
        scope: context.plugin.key.scope.clone(),
        description: required_text(&fields, "description", "a sentence that says when to use the sub-agent")?,
        system_prompt: required_text(&fields, "system_prompt", "the instructions of the sub-agent")?,
        tools: fields.optional_texts("tools")?,
        model: fields.optional_text("model")?,
    };
    add(args, context, |registered| {
        if registered.subagents.iter().any(|other| other.name == subagent.name) {
            return Err(fields.wrong("name", format!("this plugin has registered {} already", subagent.name)));
        }
        room(args, registered.subagents.len())?;
        registered.subagents.push(subagent);
        Ok(())
    })
}
