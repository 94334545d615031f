//! Resources and prompts: what sources offer besides tools, to frontends that can show them.
//!
//! A source owns what it offers and replaces it as a whole, as it does its tools. [`read`], [`render`],
//! [`complete`] and [`watch`](watch::watch) are calls: with a session, hooks, a deadline, needs, and a row in the audit
//! log.

pub mod linked;
pub mod template;
pub mod watch;

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use toold_proto::event::EventBody;
use toold_proto::offer::{Completion, PromptArgument, Rendered, ResourceContents};
use toold_proto::tool::{Source, SourceKind, ToolResult};

use crate::Engine;
use crate::call::{Call, CallError};
use crate::callable::Callable;
use crate::events::Events;
use crate::execute::execute_tool;
use crate::offers::linked::LinkedResources;
use crate::offers::template::Template;
use crate::offers::watch::ResourceWatcher;
use crate::registry::{SourceKey, SourceScope};
use crate::session::Session;
use crate::tool::Origin;

/// Something that can be read by its URI.
pub struct Resource {
    pub address: ResourceAddress,
    pub name: String,
    pub title: Option<String>,
    pub description: Option<String>,
    pub mime_type: Option<String>,
    pub source: Source,
    /// Called with `{"uri": text, "variables": {name: text}}`; its structured result is a list of
    /// [`ResourceContents`]. An error with `not_found` in its metadata says that there is no such resource.
    pub reader: Arc<dyn Callable>,
    /// Completes the template's variables. Called with `{"argument": text, "value": text, "given": {name: text}}`;
    /// its structured result is a [`Completion`].
    pub completer: Option<Arc<dyn Callable>>,
    /// Reports changes of its contents; `None` for a source that does not.
    pub watcher: Option<Arc<dyn ResourceWatcher>>,
    /// Other members of its description in MCP (`_meta`, `annotations`, `icons`, `size`), for clients that know them.
    pub more: Map<String, Value>,
}

/// Where a resource is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResourceAddress {
    Uri(String),
    /// Many resources, by what stands in place of the variables.
    Template(Template),
}

impl ResourceAddress {
    pub fn as_str(&self) -> &str {
        match self {
            Self::Uri(uri) => uri,
            Self::Template(template) => template.as_str(),
        }
    }
}

/// A prompt: one or more messages, made of arguments.
pub struct PromptTemplate {
    /// The name that clients use.
    pub name: String,
    pub title: Option<String>,
    pub description: Option<String>,
    pub arguments: Vec<PromptArgument>,
    pub source: Source,
    /// Called with the arguments; its structured result is a [`Rendered`].
    pub renderer: Arc<dyn Callable>,
    /// As for a resource.
    pub completer: Option<Arc<dyn Callable>>,
    /// As for a resource.
    pub more: Map<String, Value>,
}

/// Everything that one source offers.
#[derive(Default)]
pub struct SourceOffer {
    pub resources: Vec<Arc<Resource>>,
    pub prompts: Vec<Arc<PromptTemplate>>,
}

impl SourceOffer {
    pub fn is_empty(&self) -> bool {
        self.resources.is_empty() && self.prompts.is_empty()
    }
}

/// An offer that no session gets, since an earlier source offers the same.
#[derive(Debug, PartialEq, Eq)]
pub struct HiddenOffer {
    /// `resource` or `prompt`.
    pub kind: &'static str,
    /// The name of a prompt, the URI or template of a resource.
    pub name: String,
    /// The source that serves.
    pub holder: Source,
}

/// The offers of all sources.
pub struct Offers {
    /// Readers never wait for writers.
    shown: ArcSwap<Vec<OwnedOffer>>,
    writers: Mutex<OfferSources>,
    events: Arc<Events>,
}

#[derive(Default)]
struct OfferSources {
    sources: HashMap<SourceKey, OwnedOffer>,
    next: u64,
}

#[derive(Clone)]
struct OwnedOffer {
    scope: SourceScope,
    origin: Origin,
    /// Earlier sources of one origin keep a name, as with tools.
    since: u64,
    offer: Arc<SourceOffer>,
}

impl Offers {
    pub(crate) fn new(events: Arc<Events>) -> Self {
        Self { shown: ArcSwap::default(), writers: Mutex::default(), events }
    }

    /// From now on each source offers exactly this; an empty offer removes it. Emits
    /// `resources.changed` and `prompts.changed`, each once and only if something of its kind was
    /// added, removed or replaced.
    pub fn commit(&self, changes: Vec<(SourceKey, Origin, SourceOffer)>) {
        let mut written = self.writers.lock();
        let (mut resources, mut prompts) = (false, false);
        for (key, origin, offer) in changes {
            let before = written.sources.remove(&key);
            let had = before.as_ref().map(|owned| owned.offer.clone()).unwrap_or_default();
            resources |= !(had.resources.is_empty() && offer.resources.is_empty());
            prompts |= !(had.prompts.is_empty() && offer.prompts.is_empty());
            if offer.is_empty() {
                continue;
            }
            let since = before.map_or(written.next, |owned| owned.since);
            written.next += 1;
            let owned = OwnedOffer { scope: key.scope.clone(), origin, since, offer: Arc::new(offer) };
            written.sources.insert(key, owned);
        }
        if !resources && !prompts {
            return;
        }
        let mut ordered: Vec<(&SourceKey, &OwnedOffer)> = written.sources.iter().collect();
        // As with tools: an offer of the daemon for one project replaces its offer for all.
        let general = |key: &SourceKey| key.kind == SourceKind::Builtin && key.scope == SourceScope::Global;
        ordered.sort_by_key(|(key, owned)| (owned.origin, general(key), owned.since));
        self.shown.store(Arc::new(ordered.into_iter().map(|(_, owned)| owned.clone()).collect()));
        // Under the lock, so that a subscriber who hears of a change sees it or a later one.
        if resources {
            self.events.emit(EventBody::ResourcesChanged {});
        }
        if prompts {
            self.events.emit(EventBody::PromptsChanged {});
        }
    }

    /// The resources that sessions of a project see, sorted by URI or template. If two have the same address, the first
    /// source's counts.
    pub fn resources(&self, project: &Path) -> Vec<Arc<Resource>> {
        let mut all = BTreeMap::new();
        for owned in self.shown.load().iter().filter(|owned| owned.is_seen_in(project)) {
            for resource in &owned.offer.resources {
                all.entry(resource.address.as_str().to_owned()).or_insert_with(|| resource.clone());
            }
        }
        all.into_values().collect()
    }

    /// The prompts that sessions of a project see, sorted by name. If two have the same name, the first source's counts.
    pub fn prompts(&self, project: &Path) -> Vec<Arc<PromptTemplate>> {
        let mut all = BTreeMap::new();
        for owned in self.shown.load().iter().filter(|owned| owned.is_seen_in(project)) {
            for prompt in &owned.offer.prompts {
                all.entry(prompt.name.clone()).or_insert_with(|| prompt.clone());
            }
        }
        all.into_values().collect()
    }

    /// Offers of this source that no session uses, since an earlier source has the same.
    pub fn hidden(&self, key: &SourceKey) -> Vec<HiddenOffer> {
        let written = self.writers.lock();
        let Some(own) = written.sources.get(key) else { return Vec::new() };
        let shown = self.shown.load();
        let earlier = || {
            let earlier = shown.iter().take_while(|owned| !Arc::ptr_eq(&owned.offer, &own.offer));
            earlier.filter(|owned| owned.scope == SourceScope::Global || owned.scope == own.scope)
        };
        let mut hidden = Vec::new();
        for resource in &own.offer.resources {
            let address = resource.address.as_str();
            let mut holders = earlier().flat_map(|owned| &owned.offer.resources);
            if let Some(holder) = holders.find(|other| other.address.as_str() == address) {
                hidden.push(HiddenOffer { kind: "resource", name: address.to_owned(), holder: holder.source.clone() });
            }
        }
        for prompt in &own.offer.prompts {
            let mut holders = earlier().flat_map(|owned| &owned.offer.prompts);
            if let Some(holder) = holders.find(|other| other.name == prompt.name) {
                let name = prompt.name.clone();
                hidden.push(HiddenOffer { kind: "prompt", name, holder: holder.source.clone() });
            }
        }
        hidden
    }

    /// The resources of a session's project that its client's profiles do not leave out.
    pub fn resources_of(&self, session: &Session) -> Vec<Arc<Resource>> {
        let mut all = self.resources(session.project());
        all.retain(|resource| session.filter.allows_offers_of(&resource.source));
        all
    }

    /// The prompts of a session's project that its client's profiles do not leave out.
    pub fn prompts_of(&self, session: &Session) -> Vec<Arc<PromptTemplate>> {
        let mut all = self.prompts(session.project());
        all.retain(|prompt| session.filter.allows_offers_of(&prompt.source));
        all
    }

    /// The resource that a session reads at a URI, and the values of its template's variables: one that is listed, one
    /// that a result in the session linked to, or one of a template; within each, the first source's.
    fn resource(&self, session: &Session, uri: &str) -> Option<(Arc<Resource>, Map<String, Value>)> {
        let shown = self.shown.load();
        let all = || {
            let seen = shown.iter().filter(|owned| owned.is_seen_in(session.project()));
            let resources = seen.flat_map(|owned| &owned.offer.resources);
            resources.filter(|resource| session.filter.allows_offers_of(&resource.source))
        };
        let exact =
            all().find(|resource| matches!(&resource.address, ResourceAddress::Uri(own) if own == uri)).cloned();
        let linked = || {
            let linked = session.slot_if_any::<LinkedResources>()?.find(uri)?;
            session.filter.allows_offers_of(&linked.source).then_some(linked)
        };
        if let Some(resource) = exact.or_else(linked) {
            return Some((resource, Map::new()));
        }
        all().find_map(|resource| match &resource.address {
            ResourceAddress::Uri(_) => None,
            ResourceAddress::Template(template) => Some((resource.clone(), template.matches(uri)?)),
        })
    }
}

impl OwnedOffer {
    fn is_seen_in(&self, project: &Path) -> bool {
        match &self.scope {
            SourceScope::Global => true,
            SourceScope::Project(own) => own == project,
        }
    }
}

/// Why nothing was read, rendered or completed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum OfferError {
    #[error("there is no resource {0}")]
    NoResource(String),
    #[error("there is no prompt {0}")]
    NoPrompt(String),
    /// The arguments do not fit the prompt, or the argument to complete does not exist.
    #[error("{0}")]
    Arguments(String),
    /// It ran and failed: an error of a script, a refusal, a timeout.
    #[error("{0}")]
    Failed(String),
    #[error(transparent)]
    Call(#[from] CallError),
}

/// Reads a resource. `call` provides the caller and session; its name and arguments are ignored.
/// Cancelling is as with [`execute`](crate::execute::execute).
///
/// # Errors
/// The session sees no resource of that URI; the reader failed or was refused.
pub async fn read(engine: &Arc<Engine>, uri: &str, call: Call) -> Result<Vec<ResourceContents>, OfferError> {
    let found = engine.offers.resource(&call.session, uri);
    let (resource, variables) = found.ok_or_else(|| OfferError::NoResource(uri.to_owned()))?;
    let name = resource.reader.spec().name.to_string();
    let arguments = json!({"uri": uri, "variables": variables});
    let result = execute_tool(engine, resource.reader.clone(), Call { name, arguments, ..call }).await?;
    if result.is_error && result.metadata.contains_key("not_found") {
        return Err(OfferError::NoResource(uri.to_owned()));
    }
    structured(result)
}

/// Renders a prompt. `call` as for [`read`].
///
/// # Errors
/// The session sees no prompt of that name; an argument is missing, unknown, or no text; the renderer failed or
/// was refused.
pub async fn render(
    engine: &Arc<Engine>,
    name: &str,
    arguments: Map<String, Value>,
    call: Call,
) -> Result<Rendered, OfferError> {
    let prompt = prompt(engine, name, &call)?;
    let wrong = |argument: &str, why: &str| OfferError::Arguments(format!("prompt {name}: argument {argument} {why}"));
    for (argument, value) in &arguments {
        if !prompt.arguments.iter().any(|known| known.name == *argument) {
            return Err(wrong(argument, "is unknown"));
        }
        if !value.is_string() {
            return Err(wrong(argument, "must be a string"));
        }
    }
    if let Some(missing) = prompt.arguments.iter().find(|own| own.required && !arguments.contains_key(&own.name)) {
        return Err(wrong(&missing.name, "is missing"));
    }
    let mut rendered: Rendered = run(engine, &prompt.renderer, Value::Object(arguments), call).await?;
    rendered.description = rendered.description.or_else(|| prompt.description.clone());
    Ok(rendered)
}

/// The thing whose argument is completed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Completing {
    /// An argument of the prompt of this name.
    Prompt(String),
    /// A variable of the resource template of this text.
    Resource(String),
}

/// Completes the beginning of an argument; `given` are the others that have values already. Empty
/// if the source does not complete. `call` as for [`read`].
///
/// # Errors
/// The session sees nothing of that name, or it has no such argument; the completer failed or was refused.
pub async fn complete(
    engine: &Arc<Engine>,
    of: &Completing,
    argument: &str,
    value: &str,
    given: Map<String, Value>,
    call: Call,
) -> Result<Completion, OfferError> {
    let unknown = |of: &str| OfferError::Arguments(format!("{of} has no argument {argument}"));
    let completer = match of {
        Completing::Prompt(name) => {
            let prompt = prompt(engine, name, &call)?;
            let known = prompt.arguments.iter().any(|own| own.name == argument);
            known.then(|| prompt.completer.clone()).ok_or_else(|| unknown(name))?
        }
        Completing::Resource(text) => {
            let all = engine.offers.resources_of(&call.session);
            let found = all.iter().find(|resource| resource.address.as_str() == text);
            let resource = found.ok_or_else(|| OfferError::NoResource(text.clone()))?;
            let known = match &resource.address {
                ResourceAddress::Uri(_) => false,
                ResourceAddress::Template(template) => template.variables().any(|own| own == argument),
            };
            known.then(|| resource.completer.clone()).ok_or_else(|| unknown(text))?
        }
    };
    let Some(completer) = completer else { return Ok(Completion::default()) };
    let input = json!({"argument": argument, "value": value, "given": given});
    let mut completion: Completion = run(engine, &completer, input, call).await?;
    completion.has_more |= completion.values.len() > MAX_VALUES;
    if completion.values.len() > MAX_VALUES {
        completion.total = completion.total.or(Some(completion.values.len() as u64));
        completion.values.truncate(MAX_VALUES);
    }
    Ok(completion)
}

/// How many values a completion may have (MCP, completion).
const MAX_VALUES: usize = 100;

fn prompt(engine: &Engine, name: &str, call: &Call) -> Result<Arc<PromptTemplate>, OfferError> {
    let all = engine.offers.prompts_of(&call.session);
    all.into_iter().find(|prompt| prompt.name == name).ok_or_else(|| OfferError::NoPrompt(name.to_owned()))
}

async fn run<T: DeserializeOwned>(
    engine: &Arc<Engine>,
    tool: &Arc<dyn Callable>,
    arguments: Value,
    call: Call,
) -> Result<T, OfferError> {
    let name = tool.spec().name.to_string();
    let result = execute_tool(engine, tool.clone(), Call { name, arguments, ..call }).await?;
    structured(result)
}

fn structured<T: DeserializeOwned>(result: ToolResult) -> Result<T, OfferError> {
    if result.is_error {
        return Err(OfferError::Failed(result.text()));
    }
    let structured = result.structured.unwrap_or_default();
    serde_json::from_value(structured)
        .map_err(|error| OfferError::Failed(format!("it returned an unexpected value: {error}")))
}
