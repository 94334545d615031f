//! `hygge.register_resource` and `hygge.register_prompt`.

use std::sync::Arc;

use mlua::{Lua, Value};
use toold_engine::offers::ResourceAddress;
use toold_engine::offers::template::Template;
use toold_proto::offer::PromptArgument;

use crate::api::ApiTable;
use crate::api::register::{add, room};
use crate::api::script_context::ScriptContext;
use crate::plugin::resources_and_prompts::{About, Completer, OfferHandlers, PromptRegistration, ResourceRegistration};
use crate::vm::args::{Args, Fields, text};

pub(super) fn install(hygge: &ApiTable) -> mlua::Result<()> {
    hygge.function("register_resource", "register_resource", |lua, args, context| {
        context.record_mistake(lua, register_resource(lua, args, context))
    })?;
    hygge.function("register_prompt", "register_prompt", |lua, args, context| {
        context.record_mistake(lua, register_prompt(lua, args, context))
    })?;
    Ok(())
}

const RESOURCE_FIELDS: [&str; 8] =
    ["uri", "uri_template", "name", "title", "description", "mime_type", "read", "complete"];
const PROMPT_FIELDS: [&str; 6] = ["name", "title", "description", "arguments", "render", "complete"];

fn register_resource(lua: &Lua, args: &Args, context: &Arc<ScriptContext>) -> Result<(), String> {
    let fields = args.fields(1, "spec")?;
    let about = about(&fields)?;
    let address = match (fields.optional_text("uri")?, fields.optional_text("uri_template")?) {
        (Some(uri), None) if is_uri(&uri) => ResourceAddress::Uri(uri),
        (None, Some(template)) if is_uri(&template) => {
            ResourceAddress::Template(Template::parse(&template).map_err(|error| fields.wrong("uri_template", error))?)
        }
        (Some(_), None) => return Err(fields.mistake("uri", "a URI such as notes://today", &fields.get("uri")?)),
        (None, Some(_)) => {
            let given = fields.get("uri_template")?;
            return Err(fields.mistake("uri_template", "a template of URIs such as notes://{day}", &given));
        }
        (None, None) => return Err(fields.wrong("uri", "expected uri or uri_template, got neither")),
        (Some(_), Some(_)) => return Err(fields.wrong("uri", "expected uri or uri_template, got both")),
    };
    let handlers = OfferHandlers { run: fields.function("read")?, complete: completer(&fields)? };
    if handlers.complete.is_some() && matches!(address, ResourceAddress::Uri(_)) {
        return Err(fields.wrong("complete", "only a uri_template has variables to complete"));
    }
    warn(lua, &fields, &RESOURCE_FIELDS, context);
    let resource = ResourceRegistration {
        address,
        about,
        mime_type: fields.optional_text("mime_type")?,
        completes: handlers.complete.is_some(),
    };
    add(args, context, |registered| {
        let address = resource.address.as_str();
        if registered.resources.iter().any(|(other, _)| other.address.as_str() == address) {
            return Err(fields.wrong("uri", format!("this plugin has registered the resource {address} already")));
        }
        room(args, registered.resources.len())?;
        registered.resources.push((resource, handlers));
        Ok(())
    })
}

fn register_prompt(lua: &Lua, args: &Args, context: &Arc<ScriptContext>) -> Result<(), String> {
    let fields = args.fields(1, "spec")?;
    let about = about(&fields)?;
    let arguments = arguments(&fields)?;
    let handlers = OfferHandlers { run: fields.function("render")?, complete: completer(&fields)? };
    warn(lua, &fields, &PROMPT_FIELDS, context);
    let prompt = PromptRegistration { about, arguments, completes: handlers.complete.is_some() };
    add(args, context, |registered| {
        let name = &prompt.about.name;
        if registered.prompts.iter().any(|(other, _)| other.about.name == *name) {
            return Err(fields.wrong("name", format!("this plugin has registered the prompt {name} already")));
        }
        room(args, registered.prompts.len())?;
        registered.prompts.push((prompt, handlers));
        Ok(())
    })
}

fn about(fields: &Fields) -> Result<About, String> {
    let name = fields.text("name")?;
    if name.trim().is_empty() || name.len() > 128 || name.chars().any(char::is_control) {
        return Err(fields.mistake("name", "1 to 128 printable characters", &fields.get("name")?));
    }
    Ok(About { name, title: fields.optional_text("title")?, description: fields.optional_text("description")? })
}

/// A scheme, a colon, and a rest (RFC 3986, section 3.1).
fn is_uri(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once(':') else { return false };
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
    scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(fits)
        && !rest.is_empty()
        && text.len() <= 2_048
        && !text.contains(|c: char| c.is_whitespace() || c.is_control())
}

/// Names, or tables with a name.
fn arguments(fields: &Fields) -> Result<Vec<PromptArgument>, String> {
    let Some(list) = fields.optional_fields("arguments")? else { return Ok(Vec::new()) };
    let mut arguments: Vec<PromptArgument> = Vec::new();
    for item in list.table.sequence_values::<Value>() {
        let item = item.map_err(|error| error.to_string())?;
        let argument = match &item {
            Value::Table(table) => {
                let argument = Fields::new("register_prompt", table.clone());
                PromptArgument {
                    name: argument.text("name")?,
                    title: argument.optional_text("title")?,
                    description: argument.optional_text("description")?,
                    required: argument.flag("required")?,
                }
            }
            one => {
                let expected = "a list of names, or of tables with a name";
                let name = text(one).ok_or_else(|| fields.mistake("arguments", expected, one))?;
                PromptArgument { name, title: None, description: None, required: false }
            }
        };
        if arguments.iter().any(|other| other.name == argument.name) {
            return Err(fields.wrong("arguments", format!("the argument {} is there twice", argument.name)));
        }
        arguments.push(argument);
    }
    Ok(arguments)
}

fn completer(fields: &Fields) -> Result<Option<Completer>, String> {
    match fields.get("complete")? {
        Value::Nil => Ok(None),
        Value::Function(function) => Ok(Some(Completer::Function(function))),
        Value::Table(lists) => Ok(Some(Completer::Lists(lists))),
        other => Err(fields.mistake("complete", "a function, or a table of lists by argument", &other)),
    }
}

fn warn(lua: &Lua, fields: &Fields, known: &[&str], context: &Arc<ScriptContext>) {
    if context.notes.is_none() {
        return;
    }
    for pair in fields.table.pairs::<Value, Value>() {
        let Ok((Value::String(field), _)) = pair else { continue };
        let field = field.to_string_lossy();
        if !known.contains(&field.as_str()) {
            context.warn(lua, &format!("nothing reads the field '{field}'"));
        }
    }
}
