//! Resources and prompts whose functions are Lua, and the completion of their arguments.
//!
//! They run like commands: as calls, in parallel with tools of the same plugin, in the Lua state that keeps its
//! globals.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use mlua::{Function, Lua, Table, Value as LuaValue};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use toold_engine::callable::Callable;
use toold_engine::cx::Cx;
use toold_engine::need::Need;
use toold_engine::offers::{PromptTemplate, Resource, ResourceAddress, SourceOffer};
use toold_engine::tool::{ToolError, ToolOutput, ToolSpec};
use toold_proto::offer::{Completion, PromptArgument, PromptMessage, Rendered, Speaker};
use toold_proto::tool::{Block, Source};

use crate::plugin::command::command_output;
use crate::plugin::failures::HandlerName;
use crate::plugin::handler;
use crate::plugin::messages::{completion, contents, rendered, texts};
use crate::plugin::registrations::{CommandRegistration, SubagentSpec};
use crate::plugin::state_pool::{LoadedState, StatePool};

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

/// The description of a resource or a prompt.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct About {
    pub(crate) name: String,
    pub(crate) title: Option<String>,
    pub(crate) description: Option<String>,
}

/// The functions of a resource or a prompt, in one Lua state.
#[derive(Clone)]
pub(crate) struct OfferHandlers {
    /// Reads or renders.
    pub(crate) run: Function,
    pub(crate) complete: Option<Completer>,
}

#[derive(Clone)]
pub(crate) enum Completer {
    /// Takes the context, the argument, its beginning, and the other arguments.
    Function(Function),
    /// Lists of values, by argument.
    Lists(Table),
}

/// The resources and prompts of a version, by the positions of their registrations.
pub(crate) fn offer(
    resources: Vec<ResourceRegistration>,
    prompts: Vec<PromptRegistration>,
    commands: Vec<CommandRegistration>,
    subagents: &[SubagentSpec],
    states: &Arc<StatePool>,
) -> SourceOffer {
    let of = |kind: &str, about: &About, task: OfferTask| -> Arc<dyn Callable> {
        let label = about.title.clone().unwrap_or_else(|| about.name.clone());
        let words = (label, about.description.clone().unwrap_or_default());
        let spec = handler::spec(kind, &about.name, words, json!({"type": "object"}), &states.plugin);
        Arc::new(LuaOffer { spec, name: about.name.clone(), states: states.clone(), task })
    };
    let source = states.plugin.source();
    let resources = resources.into_iter().enumerate().map(|(place, registered)| {
        let ResourceRegistration { address, about, mime_type, completes } = registered;
        let task = OfferTask::Read { place, mime_type: mime_type.clone() };
        Arc::new(Resource {
            reader: of("resource", &about, task),
            completer: completes.then(|| of("complete", &about, OfferTask::CompleteResource(place))),
            address,
            name: about.name,
            title: about.title,
            description: about.description,
            mime_type,
            source: source.clone(),
            watcher: None,
            more: Map::new(),
        })
    });
    let prompts = prompts.into_iter().enumerate().map(|(place, registered)| {
        let PromptRegistration { about, arguments, completes } = registered;
        Arc::new(PromptTemplate {
            renderer: of("prompt", &about, OfferTask::Render(place)),
            completer: completes.then(|| of("complete", &about, OfferTask::CompletePrompt(place))),
            name: about.name,
            title: about.title,
            description: about.description,
            arguments,
            source: source.clone(),
            more: Map::new(),
        })
    });
    let mut prompts: Vec<Arc<PromptTemplate>> = prompts.collect();
    for command in commands {
        let CommandRegistration { name, description } = command;
        let input = argument("input", "What stands behind the command", false);
        let about = About { name: name.clone(), title: Some(format!("/{name}")), description: Some(description) };
        add_unless_taken(&mut prompts, about, input, &source, |about| of("command", about, OfferTask::Command(name)));
    }
    for subagent in subagents {
        let SubagentSpec { name, description, system_prompt, .. } = subagent;
        let task = argument("task", "What the sub-agent is to do", true);
        let about = About { name: name.clone(), title: None, description: Some(description.clone()) };
        let prompt = system_prompt.clone();
        add_unless_taken(&mut prompts, about, task, &source, |about| {
            of("agent", about, OfferTask::Instructions(prompt))
        });
    }
    SourceOffer { resources: resources.collect(), prompts }
}

fn argument(name: &str, description: &str, required: bool) -> PromptArgument {
    PromptArgument { name: name.to_owned(), title: None, description: Some(description.to_owned()), required }
}

/// Offers a command or a sub-agent as a prompt, for clients that have no other way to it. A prompt that the plugin registers
/// under the same name comes first.
fn add_unless_taken(
    prompts: &mut Vec<Arc<PromptTemplate>>,
    about: About,
    argument: PromptArgument,
    source: &Source,
    renderer: impl FnOnce(&About) -> Arc<dyn Callable>,
) {
    if prompts.iter().any(|prompt| prompt.name == about.name) {
        return;
    }
    prompts.push(Arc::new(PromptTemplate {
        renderer: renderer(&about),
        completer: None,
        name: about.name,
        title: about.title,
        description: about.description,
        arguments: vec![argument],
        source: source.clone(),
        more: Map::new(),
    }));
}

/// A function of a resource or a prompt, called like a tool.
struct LuaOffer {
    spec: ToolSpec,
    /// That of the resource or the prompt.
    name: String,
    states: Arc<StatePool>,
    task: OfferTask,
}

enum OfferTask {
    Read {
        place: usize,
        mime_type: Option<String>,
    },
    Render(usize),
    CompleteResource(usize),
    CompletePrompt(usize),
    /// Runs the slash command of this name; its answer is the message.
    Command(String),
    /// The instructions of a sub-agent, with its task.
    Instructions(String),
}

impl Callable for LuaOffer {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn needs<'a>(&'a self, _: &'a Value, _: &'a Cx) -> BoxFuture<'a, Result<Vec<Need>, ToolError>> {
        // Each thing that it touches is checked when it does.
        std::future::ready(Ok(Vec::new())).boxed()
    }

    fn call<'a>(&'a self, input: Value, cx: &'a Cx) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        self.run(input, cx).boxed()
    }
}

impl LuaOffer {
    async fn run(&self, input: Value, cx: &Cx) -> Result<ToolOutput, ToolError> {
        let states = &self.states;
        if let OfferTask::Instructions(system_prompt) = &self.task {
            let task = input["task"].as_str().unwrap_or_default();
            return said(&format!("{system_prompt}\n\n{task}"));
        }
        let loaded = states.main().await.map_err(ToolError::Failed)?;
        let missing = || ToolError::Failed(format!("the plugin no longer registers {}", self.spec.label));
        if let OfferTask::Command(name) = &self.task {
            // A command counts as a tool for profiles.
            if !cx.session.filter.allows_command(name, &states.plugin.source()) {
                return Err(ToolError::Failed(format!("there is no prompt {name}")));
            }
            let execute = loaded.commands.get(name).ok_or_else(missing)?;
            let text = json!(input["input"].as_str().unwrap_or_default());
            let read = |value: &LuaValue| command_output(loaded.state.lua(), value, &self.spec);
            let handler = HandlerName { kind: "command", name };
            let output = handler::run(states, &loaded, (handler, execute), &cx.shared(), &text, &[&text], read).await?;
            return if output.is_error {
                Ok(output)
            } else {
                said(&output.content.iter().filter_map(Block::as_text).collect::<Vec<_>>().join("\n"))
            };
        }
        let handlers = self.handlers(&loaded).ok_or_else(missing)?;
        let function = match (&self.task, &handlers.complete) {
            (OfferTask::Read { .. } | OfferTask::Render(_), _) => &handlers.run,
            (_, Some(Completer::Function(complete))) => complete,
            (_, Some(Completer::Lists(lists))) => return from_list(lists, &input).map_err(ToolError::Failed),
            (_, None) => return Err(missing()),
        };
        let cx = cx.shared();
        let read = |value: &LuaValue| self.output(loaded.state.lua(), value, &input);
        let handler = HandlerName { kind: self.kind(), name: &self.name };
        handler::run(states, &loaded, (handler, function), &cx, &input, &self.given(&input), read).await
    }

    fn handlers<'a>(&self, loaded: &'a LoadedState) -> Option<&'a OfferHandlers> {
        match self.task {
            OfferTask::Read { place, .. } | OfferTask::CompleteResource(place) => loaded.resources.get(place),
            OfferTask::Render(place) | OfferTask::CompletePrompt(place) => loaded.prompts.get(place),
            OfferTask::Command(_) | OfferTask::Instructions(_) => None,
        }
    }

    fn kind(&self) -> &'static str {
        match self.task {
            OfferTask::Read { .. } => "resource",
            OfferTask::Render(_) => "prompt",
            OfferTask::CompleteResource(_) | OfferTask::CompletePrompt(_) => "completion",
            OfferTask::Command(_) => "command",
            OfferTask::Instructions(_) => "sub-agent",
        }
    }

    /// The arguments of its function after the `ctx`.
    fn given<'a>(&self, input: &'a Value) -> Vec<&'a Value> {
        match &self.task {
            OfferTask::Read { .. } => vec![&input["uri"], &input["variables"]],
            OfferTask::Render(_) | OfferTask::Command(_) | OfferTask::Instructions(_) => vec![input],
            OfferTask::CompleteResource(_) | OfferTask::CompletePrompt(_) => {
                vec![&input["argument"], &input["value"], &input["given"]]
            }
        }
    }

    fn output(&self, lua: &Lua, value: &LuaValue, input: &Value) -> Result<ToolOutput, String> {
        let structured = match &self.task {
            OfferTask::Read { mime_type, .. } => {
                let uri = input["uri"].as_str().unwrap_or_default();
                if value.is_nil() {
                    return Ok(ToolOutput::error(format!("there is no resource {uri}")).with("not_found", true));
                }
                serde_json::to_value(contents(value, uri, mime_type.as_deref())?)
            }
            OfferTask::Render(_) | OfferTask::Command(_) | OfferTask::Instructions(_) => {
                serde_json::to_value(rendered(lua, value)?)
            }
            OfferTask::CompleteResource(_) | OfferTask::CompletePrompt(_) => serde_json::to_value(completion(value)?),
        };
        let structured = structured.map_err(|error| error.to_string())?;
        Ok(ToolOutput { structured: Some(structured), ..ToolOutput::default() })
    }
}

/// A prompt with one message of the user.
fn said(text: &str) -> Result<ToolOutput, ToolError> {
    let message = PromptMessage { role: Speaker::User, content: Block::text(text) };
    let rendered = Rendered { description: None, messages: vec![message] };
    let structured = serde_json::to_value(rendered).map_err(|error| ToolError::Failed(error.to_string()))?;
    Ok(ToolOutput { structured: Some(structured), ..ToolOutput::default() })
}

/// The values of a list in the plugin that begin with the typed text.
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
