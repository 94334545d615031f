//! Resources and prompts whose functions are Lua, and the completion of their arguments.
//!
//! They run like commands: as calls, beside tools of the same plugin, in the machine that keeps its state.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use mlua::{Function, Lua, Table, Value as LuaValue};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toold_engine::callable::Callable;
use toold_engine::cx::Cx;
use toold_engine::need::Need;
use toold_engine::offers::{PromptTemplate, Resource, ResourceAddress, SourceOffer};
use toold_engine::tool::{ToolError, ToolOutput, ToolSpec};
use toold_proto::offer::{Completion, PromptArgument, PromptMessage, Rendered, ResourceContents, Speaker};
use toold_proto::tool::Block;

use crate::args::{Fields, shown, text};
use crate::plugin::{Loaded, Version};
use crate::result::block;
use crate::run::Ended;
use crate::{convert, run};

#[derive(Clone, Debug)]
pub(crate) struct ResourceRegistration {
    pub(crate) address: ResourceAddress,
    pub(crate) about: About,
    pub(crate) mime_type: Option<String>,
    pub(crate) completes: bool,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct PromptRegistration {
    pub(crate) about: About,
    pub(crate) arguments: Vec<PromptArgument>,
    pub(crate) completes: bool,
}

/// What both say of themselves.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct About {
    pub(crate) name: String,
    pub(crate) title: Option<String>,
    pub(crate) description: Option<String>,
}

/// The functions of a resource or a prompt, in one machine.
#[derive(Clone)]
pub(crate) struct OfferHandlers {
    /// Reads or renders.
    pub(crate) run: Function,
    pub(crate) complete: Option<Completer>,
}

#[derive(Clone)]
pub(crate) enum Completer {
    /// Of the context, the argument, its beginning, and the other arguments.
    Function(Function),
    /// Lists of values by argument.
    Lists(Table),
}

/// What a version offers, by the places of its registrations.
pub(crate) fn offer(
    resources: Vec<ResourceRegistration>,
    prompts: Vec<PromptRegistration>,
    version: &Arc<Version>,
) -> SourceOffer {
    let of = |kind: &str, about: &About, task: Task| -> Arc<dyn Callable> {
        let label = about.title.clone().unwrap_or_else(|| about.name.clone());
        let words = (label, about.description.clone().unwrap_or_default());
        let spec = run::spec(kind, &about.name, words, json!({"type": "object"}), &version.plugin);
        Arc::new(LuaOffered { spec, version: version.clone(), task })
    };
    let source = version.plugin.source();
    let resources = resources.into_iter().enumerate().map(|(place, registered)| {
        let ResourceRegistration { address, about, mime_type, completes } = registered;
        let task = Task::Read { place, mime_type: mime_type.clone() };
        Arc::new(Resource {
            reader: of("resource", &about, task),
            completer: completes.then(|| of("complete", &about, Task::CompleteResource(place))),
            address,
            name: about.name,
            title: about.title,
            description: about.description,
            mime_type,
            source: source.clone(),
        })
    });
    let prompts = prompts.into_iter().enumerate().map(|(place, registered)| {
        let PromptRegistration { about, arguments, completes } = registered;
        Arc::new(PromptTemplate {
            renderer: of("prompt", &about, Task::Render(place)),
            completer: completes.then(|| of("complete", &about, Task::CompletePrompt(place))),
            name: about.name,
            title: about.title,
            description: about.description,
            arguments,
            source: source.clone(),
        })
    });
    SourceOffer { resources: resources.collect(), prompts: prompts.collect() }
}

/// A function of a resource or a prompt, called like a tool.
struct LuaOffered {
    spec: ToolSpec,
    version: Arc<Version>,
    task: Task,
}

enum Task {
    Read { place: usize, mime_type: Option<String> },
    Render(usize),
    CompleteResource(usize),
    CompletePrompt(usize),
}

impl Callable for LuaOffered {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn needs<'a>(&'a self, _: &'a Value, _: &'a Cx) -> BoxFuture<'a, Result<Vec<Need>, ToolError>> {
        // What it touches is judged need by need.
        std::future::ready(Ok(Vec::new())).boxed()
    }

    fn call<'a>(&'a self, input: Value, cx: &'a Cx) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        self.run(input, cx).boxed()
    }
}

impl LuaOffered {
    async fn run(&self, input: Value, cx: &Cx) -> Result<ToolOutput, ToolError> {
        let version = &self.version;
        let loaded = version.main().await.map_err(ToolError::Failed)?;
        let gone = || ToolError::Failed(format!("the plugin did not register {} again", self.spec.label));
        let handlers = self.handlers(&loaded).ok_or_else(gone)?;
        let function = match (&self.task, &handlers.complete) {
            (Task::Read { .. } | Task::Render(_), _) => &handlers.run,
            (_, Some(Completer::Function(complete))) => complete,
            (_, Some(Completer::Lists(lists))) => return from_list(lists, &input).map_err(ToolError::Failed),
            (_, None) => return Err(gone()),
        };
        let cx = cx.shared();
        match run::run(version, &loaded, function, &cx, &input, &self.given(&input)).await? {
            Ended::Gave(values) => self
                .output(loaded.vm.lua(), values.front().unwrap_or(&LuaValue::Nil), &input)
                .or_else(|why| Ok(ToolOutput::error(format!("what {} gave cannot be used: {why}", self.spec.label)))),
            Ended::Failed(output) => Ok(output),
        }
    }

    fn handlers<'a>(&self, loaded: &'a Loaded) -> Option<&'a OfferHandlers> {
        match self.task {
            Task::Read { place, .. } | Task::CompleteResource(place) => loaded.resources.get(place),
            Task::Render(place) | Task::CompletePrompt(place) => loaded.prompts.get(place),
        }
    }

    /// What its function gets after the `ctx`.
    fn given<'a>(&self, input: &'a Value) -> Vec<&'a Value> {
        match &self.task {
            Task::Read { .. } => vec![&input["uri"], &input["variables"]],
            Task::Render(_) => vec![input],
            Task::CompleteResource(_) | Task::CompletePrompt(_) => {
                vec![&input["argument"], &input["value"], &input["given"]]
            }
        }
    }

    fn output(&self, lua: &Lua, value: &LuaValue, input: &Value) -> Result<ToolOutput, String> {
        let structured = match &self.task {
            Task::Read { mime_type, .. } => {
                let uri = input["uri"].as_str().unwrap_or_default();
                if value.is_nil() {
                    return Ok(ToolOutput::error(format!("there is no resource {uri}")).with("not_found", true));
                }
                serde_json::to_value(contents(value, uri, mime_type.as_deref())?)
            }
            Task::Render(_) => serde_json::to_value(rendered(lua, value)?),
            Task::CompleteResource(_) | Task::CompletePrompt(_) => serde_json::to_value(completion(value)?),
        };
        let structured = structured.map_err(|error| error.to_string())?;
        Ok(ToolOutput { structured: Some(structured), ..ToolOutput::default() })
    }
}

/// A text, `{text | blob | bytes, mime_type?, uri?}`, or a list of these.
fn contents(value: &LuaValue, uri: &str, mime_type: Option<&str>) -> Result<Vec<ResourceContents>, String> {
    match value {
        LuaValue::Table(list) if list.raw_len() > 0 => {
            let items = list.sequence_values::<LuaValue>();
            items.map(|item| content(&item.map_err(|error| error.to_string())?, uri, mime_type)).collect()
        }
        one => Ok(vec![content(one, uri, mime_type)?]),
    }
}

fn content(value: &LuaValue, uri: &str, mime_type: Option<&str>) -> Result<ResourceContents, String> {
    let (uri, mut mime_type) = (uri.to_owned(), mime_type.map(str::to_owned));
    let LuaValue::Table(table) = value else {
        let expected = || format!("expected a string, or a table with text, blob or bytes, got {}", shown(value));
        return match value {
            // Bytes that are no text have no other form in JSON.
            LuaValue::String(bytes) if bytes.to_str().is_err() => Ok(of_bytes(&bytes.as_bytes(), uri, mime_type)),
            value => {
                let text = Some(text(value).ok_or_else(expected)?);
                let mime_type = mime_type.or_else(|| Some("text/plain".to_owned()));
                Ok(ResourceContents { uri, mime_type, text, blob: None })
            }
        };
    };
    let fields = Fields::new("read", table.clone());
    let uri = fields.optional_text("uri")?.unwrap_or(uri);
    mime_type = fields.optional_text("mime_type")?.or(mime_type);
    if let LuaValue::String(bytes) = fields.get("bytes")? {
        return Ok(of_bytes(&bytes.as_bytes(), uri, mime_type));
    }
    let (text, blob) = (fields.optional_text("text")?, fields.optional_text("blob")?);
    if text.is_some() == blob.is_some() {
        return Err("expected a table with one of text, blob (Base64) or bytes".to_owned());
    }
    Ok(ResourceContents { uri, mime_type, text, blob })
}

fn of_bytes(bytes: &[u8], uri: String, mime_type: Option<String>) -> ResourceContents {
    let mime_type = mime_type.or_else(|| Some("application/octet-stream".to_owned()));
    ResourceContents { uri, mime_type, text: None, blob: Some(STANDARD.encode(bytes)) }
}

/// A text, a list of messages, or `{messages, description?}`.
fn rendered(lua: &Lua, value: &LuaValue) -> Result<Rendered, String> {
    if let Some(text) = text(value) {
        let message = PromptMessage { role: Speaker::User, content: Block::text(text) };
        return Ok(Rendered { description: None, messages: vec![message] });
    }
    let LuaValue::Table(table) = value else {
        return Err(format!("expected a string, a list of messages, or a table with messages, got {}", shown(value)));
    };
    let fields = Fields::new("render", table.clone());
    match fields.get("messages")? {
        LuaValue::Nil => Ok(Rendered { description: None, messages: messages(lua, "render", value)? }),
        list => Ok(Rendered {
            description: fields.optional_text("description")?,
            messages: messages(lua, "render", &list)?,
        }),
    }
}

/// Messages as scripts write them: texts, or `{role?, content}` with a text, a block, or a list of blocks.
pub(crate) fn messages(lua: &Lua, of: &'static str, value: &LuaValue) -> Result<Vec<PromptMessage>, String> {
    let LuaValue::Table(list) = value else {
        return Err(format!("{of}: expected a list of messages, got {}", shown(value)));
    };
    let mut all = Vec::new();
    for item in list.sequence_values::<LuaValue>() {
        let item = item.map_err(|error| error.to_string())?;
        if let Some(text) = text(&item) {
            all.push(PromptMessage { role: Speaker::User, content: Block::text(text) });
            continue;
        }
        let LuaValue::Table(message) = &item else {
            return Err(format!("{of}: expected a message, got {}", shown(&item)));
        };
        let fields = Fields::new(of, message.clone());
        let named = fields.get("role")?;
        let role = match text(&named).as_deref() {
            None if named.is_nil() => Speaker::User,
            Some("user") => Speaker::User,
            Some("assistant") => Speaker::Assistant,
            Some(_) | None => return Err(fields.mistake("role", "\"user\" or \"assistant\"", &named)),
        };
        let content = convert::to_json(lua, &fields.get("content")?).map_err(|error| fields.wrong("content", error))?;
        let blocks = match content {
            Value::Array(blocks) => {
                (1..).zip(blocks).map(|(place, value)| block(place, value)).collect::<Result<_, _>>()?
            }
            Value::Null => return Err(fields.wrong("content", "expected a text, a block, or a list of blocks")),
            one => vec![block(1, one)?],
        };
        all.extend(blocks.into_iter().map(|content| PromptMessage { role, content }));
    }
    Ok(all)
}

/// A list of texts, or `{values, total?, has_more?}`.
fn completion(value: &LuaValue) -> Result<Completion, String> {
    let table = match value {
        LuaValue::Nil => return Ok(Completion::default()),
        LuaValue::Table(table) => table,
        _ => return Err(format!("expected a list of strings, got {}", shown(value))),
    };
    let fields = Fields::new("complete", table.clone());
    match fields.optional_fields("values")? {
        None => Ok(Completion { values: texts(table)?, ..Completion::default() }),
        Some(values) => Ok(Completion {
            values: texts(&values.table)?,
            total: fields.optional_number("total")?.map(|total| total as u64),
            has_more: fields.flag("has_more")?,
        }),
    }
}

/// Of a list that the plugin wrote down, what begins as the person did.
fn from_list(lists: &Table, input: &Value) -> Result<ToolOutput, String> {
    let part = |name: &str| input[name].as_str().unwrap_or_default();
    let mut values = match lists.raw_get::<Option<Table>>(part("argument")) {
        Ok(Some(list)) => texts(&list)?,
        Ok(None) | Err(_) => Vec::new(),
    };
    let begun = part("value").to_lowercase();
    values.retain(|value| value.to_lowercase().starts_with(&begun));
    let completion = Completion { values, ..Completion::default() };
    let structured = serde_json::to_value(completion).map_err(|error| error.to_string())?;
    Ok(ToolOutput { structured: Some(structured), ..ToolOutput::default() })
}

fn texts(list: &Table) -> Result<Vec<String>, String> {
    let items = list.sequence_values::<LuaValue>().map(|item| {
        let item = item.map_err(|error| error.to_string())?;
        text(&item).ok_or_else(|| format!("expected a list of strings, got {} in it", shown(&item)))
    });
    items.collect()
}
