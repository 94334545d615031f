//! The identity of a script: `hygge.plugin`, `hygge.profile`, `hygge.session`, `hygge.config`, and the `ctx` of a
//! tool's call.

use mlua::{Lua, Value};
use serde_json::{Value as Json, json};
use toold_engine::questions::{FormOutcome, FormRequest, QuestionAnswer, QuestionRequest};
use toold_engine::sampling::SamplingRequest;
use toold_engine::schema::Schema;
use toold_engine::tool::ToolError;
use toold_proto::call::{Progress, Stream};
use toold_proto::offer::{PromptMessage, Speaker};
use toold_proto::tool::Block;

use toold_proto::question::QuestionOption;

use crate::api::log::log;
use crate::api::{ApiTable, HostReply, bytes};
use crate::plugin::handler::SESSION;
use crate::plugin::messages::messages;
use crate::plugin::needs::written_needs;
use crate::plugin::secrets::filled_config;
use crate::vm::args::{Args, Fields, text};
use crate::vm::convert;
use crate::vm::script_run::{self};

pub(super) fn install(hygge: &ApiTable) -> mlua::Result<()> {
    let plugin = &hygge.context.plugin;
    let about = hygge.within("plugin")?.table;
    about.raw_set("name", plugin.name())?;
    about.raw_set("path", plugin.manifest.entry.display().to_string())?;
    about.raw_set("dir", plugin.dir().display().to_string())?;
    about.raw_set("version", plugin.manifest.version.as_deref())?;
    hygge.within("profile")?.table.raw_set("dir", plugin.shared.profile_dir.display().to_string())?;
    let config = filled_config(plugin, &mut |why| log(plugin, "warn", why, None));
    hygge.table.raw_set("config", convert::to_lua(hygge.lua, &config)?)?;

    // Computed on access, since the same table serves all calls.
    let session = hygge.within("session")?.table;
    let meta = hygge.lua.create_table()?;
    let index = hygge.lua.create_function(|_, (_, key): (Value, Value)| {
        let key = key.as_string().map(|key| key.to_string_lossy());
        let Some(cx) = script_run::current().and_then(|call| call.cx.clone()) else {
            // While the plugin loads.
            return Ok((key.as_deref() == Some("id")).then(String::new));
        };
        Ok(match key.as_deref() {
            Some("id") => {
                cx.depends_on_session();
                Some(cx.session.id.to_string())
            }
            Some("cwd") => Some(cx.session.cwd.display().to_string()),
            Some(_) | None => None,
        })
    })?;
    meta.raw_set("__index", index)?;
    session.set_metatable(Some(meta))?;
    hygge.lua.set_named_registry_value(SESSION, session)?;

    let ctx = hygge.apart()?;
    methods(&ctx)?;
    bytes::blocks(&ctx)?;
    convert::shapes(hygge.lua)?.ctx.raw_set("__index", ctx.table)
}

/// The functions of `ctx`. They act on the current call, whichever `ctx` table they are taken from.
fn methods(ctx: &ApiTable) -> mlua::Result<()> {
    ctx.function("progress", "ctx.progress", |lua, args, _| {
        let progress = match args.value(1) {
            Value::Table(_) => update(lua, &args.fields(1, "progress")?)?,
            _ => Progress::Message { text: args.text(1, "text")? },
        };
        script_run::current_cx()?.report(progress);
        Ok(())
    })?;
    ctx.function("output", "ctx.output", |_, args, _| {
        script_run::current_cx()?.output(Stream::Stdout, args.text(1, "text")?);
        Ok(())
    })?;
    ctx.function("cancelled", "ctx.cancelled", |_, _, _| Ok(script_run::current_cx()?.is_cancelled()))?;
    ctx.function("remaining_ms", "ctx.remaining_ms", |_, _, _| {
        Ok(script_run::current_cx()?.deadline.remaining().as_millis() as f64)
    })?;
    ctx.function("on_end", "ctx.on_end", |_, args, _| {
        let function = args.function(1, "function")?;
        let call = script_run::current().ok_or("ctx.on_end: no call is running")?;
        call.at_end(function).map_err(|why| format!("ctx.on_end: {why}"))
    })?;
    ctx.waiting("ask", "ctx.ask", |host_call| {
        let needs = written_needs(&host_call.args.fields(1, "need")?, host_call.call, &host_call.context.plugin)?;
        let call = host_call.call.clone();
        Ok(async move {
            for need in needs {
                match call.require(need).await {
                    Ok(()) => {}
                    Err(ToolError::Denied(_)) => return Ok(HostReply::Json(Json::Bool(false))),
                    Err(other) => return Err(other.to_string()),
                }
            }
            Ok(HostReply::Json(Json::Bool(true)))
        })
    })?;
    ctx.waiting("question", "ctx.question", |host_call| {
        let asking = asking(&host_call.args.fields(1, "question")?)?;
        let cx = host_call.call.cx()?.clone();
        Ok(async move {
            match cx.question(asking).await.map_err(|error| error.to_string())? {
                QuestionAnswer::Cancelled => Ok(HostReply::Nil),
                QuestionAnswer::Answer { answer_ids, answer } => {
                    Ok(HostReply::Json(json!({"ids": answer_ids, "id": answer_ids.first(), "text": answer})))
                }
            }
        })
    })?;
    ctx.waiting("elicit", "ctx.elicit", |host_call| {
        let form = form(host_call.lua, &host_call.args.fields(1, "form")?)?;
        let cx = host_call.call.cx()?.clone();
        Ok(async move {
            let filled = cx.elicit(form).await.map_err(|error| error.to_string())?;
            Ok(HostReply::Json(match filled {
                FormOutcome::Accepted(content) => json!({"action": "accept", "content": content}),
                FormOutcome::Declined => json!({"action": "decline"}),
                FormOutcome::Cancelled => json!({"action": "cancel"}),
            }))
        })
    })?;
    ctx.waiting("sample", "ctx.sample", |host_call| {
        let sampling = sampling(host_call.lua, host_call.args)?;
        let cx = host_call.call.cx()?.clone();
        Ok(async move {
            let sampled = cx.sample(sampling).await.map_err(|error| error.to_string())?;
            let texts: Vec<&str> = sampled.content.iter().filter_map(Block::as_text).collect();
            Ok(HostReply::Json(json!({
                "content": texts.join("\n"),
                "blocks": sampled.content,
                "role": sampled.role,
                "model": sampled.model,
                "stop_reason": sampled.stop_reason,
            })))
        })
    })?;
    ctx.waiting("roots", "ctx.roots", |host_call| {
        let cx = host_call.call.cx()?.clone();
        Ok(async move {
            let roots = toold_engine::sampling::roots(&cx).await.map_err(|error| error.to_string())?;
            let roots = roots.into_iter().map(|root| json!({"uri": root.uri, "name": root.name}));
            Ok(HostReply::Json(Json::Array(roots.collect())))
        })
    })?;
    Ok(())
}

/// Reads a form as scripts write it: `{message, schema, key?}`.
fn form(lua: &Lua, fields: &Fields) -> Result<FormRequest, String> {
    let given = fields.get("schema")?;
    if !given.is_table() {
        return Err(fields.mistake("schema", "a table with a JSON Schema of an object", &given));
    }
    let mut schema = convert::to_schema(lua, &given).map_err(|error| fields.wrong("schema", error))?;
    if let Json::Object(schema) = &mut schema {
        schema.entry("type").or_insert_with(|| "object".into());
    }
    let schema = Schema::compile_input(schema).map_err(|error| fields.wrong("schema", error))?;
    Ok(FormRequest { key: fields.optional_text("key")?, message: fields.text("message")?, schema })
}

/// How many tokens a model may generate if the script does not say.
const MAX_TOKENS: u32 = 1_024;

/// Reads a request to a model: a text, or `{messages | prompt, ...}`.
fn sampling(lua: &Lua, args: &Args) -> Result<SamplingRequest, String> {
    let said = |text| vec![PromptMessage { role: Speaker::User, content: Block::text(text) }];
    let mut sampling = SamplingRequest {
        messages: Vec::new(),
        system_prompt: None,
        max_tokens: MAX_TOKENS,
        temperature: None,
        stop_sequences: Vec::new(),
        model_preferences: None,
    };
    if let Some(text) = text(args.value(1)) {
        sampling.messages = said(text);
        return Ok(sampling);
    }
    let fields = args.fields(1, "request")?;
    sampling.messages = match fields.optional_text("prompt")? {
        Some(text) => said(text),
        None => messages(lua, "ctx.sample", &fields.get("messages")?)?,
    };
    if sampling.messages.is_empty() {
        return Err(fields.wrong("messages", "expected at least one message, or a prompt"));
    }
    sampling.system_prompt = fields.optional_text("system_prompt")?;
    if let Some(tokens) = fields.optional_number("max_tokens")? {
        sampling.max_tokens = (tokens as u32).max(1);
    }
    sampling.temperature = fields.optional_finite("temperature")?;
    sampling.stop_sequences = fields.optional_texts("stop_sequences")?.unwrap_or_default();
    sampling.model_preferences = match fields.get("model_preferences")? {
        Value::Nil => None,
        given => Some(convert::to_json(lua, &given).map_err(|error| fields.wrong("model_preferences", error))?),
    };
    Ok(sampling)
}

/// Reads a question as scripts write it: options are texts, or `{id, label, description}`.
fn asking(fields: &Fields) -> Result<QuestionRequest, String> {
    let mut options = Vec::new();
    if let Some(list) = fields.optional_fields("options")? {
        for place in 1..=list.table.raw_len() {
            let option: Value = list.table.raw_get(place).map_err(|error| error.to_string())?;
            options.push(match &option {
                Value::Table(table) => {
                    let option = Fields::new("ctx.question", table.clone());
                    let label = option.text("label")?;
                    let id = option.optional_text("id")?.unwrap_or_else(|| label.clone());
                    QuestionOption { id, label, description: option.optional_text("description")? }
                }
                _ => {
                    let expected = "a list of texts, or of tables with a label";
                    let label = text(&option).ok_or_else(|| fields.mistake("options", expected, &option))?;
                    QuestionOption { id: label.clone(), label, description: None }
                }
            });
        }
    }
    Ok(QuestionRequest {
        question: fields.text("question")?,
        allow_other: options.is_empty() || fields.flag("allow_other")?,
        options,
        multiple: fields.flag("multiple")?,
    })
}

fn update(lua: &Lua, fields: &Fields) -> Result<Progress, String> {
    let details = match fields.get("details")? {
        Value::Nil => None,
        details => match convert::to_json(lua, &details).map_err(|error| fields.wrong("details", error))? {
            Json::Object(details) => Some(details),
            _ => return Err(fields.mistake("details", "a table with string keys", &details)),
        },
    };
    Ok(Progress::Update {
        progress: fields.optional_finite("progress")?,
        total: fields.optional_finite("total")?,
        message: fields.optional_text("message")?,
        content: None,
        details,
    })
}
