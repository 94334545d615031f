//! Resources and prompts of a mounted source, as the engine offers them.

use std::collections::HashMap;
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::{Map, Value, json};
use toold_engine::callable::Callable;
use toold_engine::cx::Cx;
use toold_engine::decision::decide_need;
use toold_engine::need::Need;
use toold_engine::offers::linked::link;
use toold_engine::offers::template::Template;
use toold_engine::offers::watch::{ResourceUpdates, ResourceWatcher, WatchSlot};
use toold_engine::offers::{PromptTemplate, Resource, ResourceAddress, SourceOffer};
use toold_engine::schema::Schema;
use toold_engine::tool::{Origin, ToolError, ToolOutput, ToolSpec};
use toold_proto::offer::Completion;
use toold_proto::permission::Verdict;
use toold_proto::tool::{Annotations, Block, Category, Source, ToolName};

use crate::adapter::MountAdapter;
use crate::mount::MountedSource;
use crate::names;
use crate::offer_listing::{ListedOffers, ListedPrompt, ListedResource, OfferRequest, OfferSubject};
use crate::request::{begin, preview, result_of};

/// The published offers of one mount.
pub(crate) struct PublishedOffers<A: MountAdapter> {
    mount: Arc<MountedSource<A>>,
    listed: ListedOffers,
    resources: Vec<Arc<Resource>>,
}

impl<A: MountAdapter> PublishedOffers<A> {
    pub(crate) fn new(mount: &Arc<MountedSource<A>>, listed: ListedOffers, before: Option<&Self>) -> Self {
        // An unchanged resource stays the same object, or it would be reported as changed.
        let before = before.filter(|before| {
            Arc::ptr_eq(&before.mount, mount)
                && (before.listed.completes, before.listed.watches) == (listed.completes, listed.watches)
        });
        let known: HashMap<&str, (&ListedResource, &Arc<Resource>)> = before
            .iter()
            .flat_map(|before| before.listed.resources.iter().zip(&before.resources))
            .map(|(listed, resource)| (listed.address.as_str(), (listed, resource)))
            .collect();
        let resource = |own: &ListedResource| match known.get(own.address.as_str()) {
            Some((same, resource)) if *same == own => Some((own.clone(), (*resource).clone())),
            Some(_) | None => {
                resource_of(mount, own, listed.completes, listed.watches).map(|made| (own.clone(), Arc::new(made)))
            }
        };
        let (of_list, resources) = listed.resources.iter().filter_map(resource).unzip();
        Self { mount: mount.clone(), listed: ListedOffers { resources: of_list, ..listed }, resources }
    }

    pub(crate) fn is_of(&self, mount: &Arc<MountedSource<A>>, listed: &ListedOffers) -> bool {
        Arc::ptr_eq(&self.mount, mount) && self.listed == *listed
    }

    pub(crate) fn offer(&self) -> SourceOffer {
        let own: Vec<&str> = self.listed.prompts.iter().map(|prompt| prompt.upstream_name.as_str()).collect();
        let names = names::assign(&self.mount.config.name, &own);
        let prompt = |(prompt, name): (&ListedPrompt, ToolName)| {
            Arc::new(prompt_of(&self.mount, prompt, name.as_str(), self.listed.completes))
        };
        let prompts = self.listed.prompts.iter().zip(names).map(prompt);
        SourceOffer { resources: self.resources.clone(), prompts: prompts.collect() }
    }
}

/// `None` for a template that cannot be read, which an accepted list does not contain.
fn resource_of<A: MountAdapter>(
    mount: &Arc<MountedSource<A>>,
    listed: &ListedResource,
    completes: bool,
    watches: bool,
) -> Option<Resource> {
    let ListedResource { address, is_template, name, title, description, mime_type, more } = listed.clone();
    let make = |kind: &str, task: MountedOfferTask| -> Arc<dyn Callable> {
        Arc::new(MountedOffer { spec: spec(mount, kind, &name), mount: mount.clone(), task })
    };
    let subject = OfferSubject::Resource(address.clone());
    let watcher =
        || -> Arc<dyn ResourceWatcher> { Arc::new(MountedWatcher { name: name.clone(), mount: mount.clone() }) };
    Some(Resource {
        reader: make("resource", MountedOfferTask::Read),
        completer: (completes && is_template).then(|| make("complete", MountedOfferTask::Complete(subject))),
        watcher: watches.then(watcher),
        source: source(mount),
        address: match is_template {
            true => ResourceAddress::Template(Template::parse_any(&address).ok()?),
            false => ResourceAddress::Uri(address),
        },
        name: name.clone(),
        title,
        description,
        mime_type,
        more,
    })
}

fn prompt_of<A: MountAdapter>(
    mount: &Arc<MountedSource<A>>,
    listed: &ListedPrompt,
    name: &str,
    completes: bool,
) -> PromptTemplate {
    let ListedPrompt { upstream_name, title, description, arguments, more } = listed.clone();
    let make = |kind: &str, task: MountedOfferTask| -> Arc<dyn Callable> {
        Arc::new(MountedOffer { spec: spec(mount, kind, &upstream_name), mount: mount.clone(), task })
    };
    let subject = OfferSubject::Prompt(upstream_name.clone());
    PromptTemplate {
        name: name.to_owned(),
        title,
        description,
        arguments,
        source: source(mount),
        renderer: make("prompt", MountedOfferTask::Render(upstream_name.clone())),
        completer: completes.then(|| make("complete", MountedOfferTask::Complete(subject))),
        more,
    }
}

/// The session of a call can read the resources that its result links to.
pub(crate) fn remember_links<A: MountAdapter>(mount: &Arc<MountedSource<A>>, output: &ToolOutput, cx: &Cx) {
    let watches = mount.offers().watches;
    for block in &output.content {
        let Block::Resource { uri, mime_type, text: None, blob: None, name, description, .. } = block else { continue };
        if !is_uri(uri) {
            continue;
        }
        let listed = ListedResource {
            address: uri.clone(),
            is_template: false,
            name: name.clone().unwrap_or_else(|| uri.clone()),
            title: None,
            description: description.clone(),
            mime_type: mime_type.clone(),
            more: Map::new(),
        };
        if let Some(resource) = resource_of(mount, &listed, false, watches) {
            link(&cx.session, Arc::new(resource));
        }
    }
}

/// Bytes of a URI.
const MAX_URI: usize = 4096;

/// Whether a source may list this URI or template, and a client name it in a request.
pub fn is_uri(uri: &str) -> bool {
    !uri.is_empty() && uri.len() <= MAX_URI && !uri.chars().any(char::is_control)
}

fn source<A: MountAdapter>(mount: &MountedSource<A>) -> Source {
    Source { kind: A::SOURCE, name: mount.config.name.clone(), path: None }
}

/// How calls and the audit log describe a request that is not a call of a tool.
fn spec<A: MountAdapter>(mount: &MountedSource<A>, kind: &str, own: &str) -> ToolSpec {
    ToolSpec {
        name: names::of_offer(kind, &mount.config.name, own),
        label: own.to_owned(),
        description: String::new(),
        input: Schema::compiled_before(json!({"type": "object"})),
        output: None,
        source: source(mount),
        origin: Origin::Mcp,
        parallelizable: true,
        permissions: vec![Category::Mcp],
        cache_ttl: None,
        timeout: mount.config.timeout,
        annotations: Annotations::default(),
        version: None,
        grammar: None,
    }
}

/// Reads, renders, completes or watches, called like a tool.
struct MountedOffer<A: MountAdapter> {
    spec: ToolSpec,
    mount: Arc<MountedSource<A>>,
    task: MountedOfferTask,
}

enum MountedOfferTask {
    Read,
    /// The name of the prompt in its source.
    Render(String),
    Complete(OfferSubject),
    Watch {
        updates: Arc<ResourceUpdates>,
        slot: Arc<WatchSlot>,
    },
}

struct MountedWatcher<A: MountAdapter> {
    name: String,
    mount: Arc<MountedSource<A>>,
}

impl<A: MountAdapter> ResourceWatcher for MountedWatcher<A> {
    fn watch(&self, updates: Arc<ResourceUpdates>, slot: Arc<WatchSlot>) -> Arc<dyn Callable> {
        let spec = spec(&self.mount, "watch", &self.name);
        Arc::new(MountedOffer { spec, mount: self.mount.clone(), task: MountedOfferTask::Watch { updates, slot } })
    }
}

impl<A: MountAdapter> MountedOffer<A> {
    fn need(&self, subject: &OfferSubject) -> Need {
        let target = self.mount.adapter.permission_target(&self.mount.config.name, &subject.target());
        Need::new(Category::Mcp, target)
    }

    async fn run(&self, input: Value, cx: &Cx) -> Result<ToolOutput, ToolError> {
        let text = |member: &str| input[member].as_str().unwrap_or_default().to_owned();
        let object = |value: &Value| value.as_object().cloned().unwrap_or_default();
        let request = match &self.task {
            MountedOfferTask::Read => OfferRequest::Read { uri: uri_of(&input)? },
            MountedOfferTask::Render(upstream_name) => {
                OfferRequest::Render { upstream_name: upstream_name.clone(), arguments: object(&input) }
            }
            MountedOfferTask::Complete(of) => {
                // Nobody is asked while somebody types.
                if decide_need(cx, &cx.chain, &self.need(of)).verdict != Verdict::Allow {
                    return completed(&Completion::default());
                }
                let (argument, value, given) = (text("argument"), text("value"), object(&input["given"]));
                OfferRequest::Complete { of: of.clone(), argument, value, given }
            }
            MountedOfferTask::Watch { updates, slot } => {
                let uri = uri_of(&input)?;
                let mount = self.mount.for_session(&cx.session).map_err(ToolError::Failed)?;
                let watch = tokio::select! {
                    biased;
                    () = cx.cancel.cancelled() => return Err(ToolError::Cancelled),
                    watch = mount.watch_resource(&uri, updates.clone()) => watch.map_err(ToolError::Failed)?,
                };
                slot.fill(watch);
                return Ok(ToolOutput::default());
            }
        };
        let call = begin(&self.mount, None, cx).await?;
        let mount = &call.mount;
        let result = mount.adapter.request(&mount.config, &call.connection, request, cx).await;
        result_of(result, &call, cx).await
    }
}

fn uri_of(input: &Value) -> Result<String, ToolError> {
    let uri = input["uri"].as_str().unwrap_or_default();
    match is_uri(uri) {
        true => Ok(uri.to_owned()),
        false => {
            Err(ToolError::Failed(format!("expected a URI of at most {MAX_URI} bytes without control characters")))
        }
    }
}

/// The output of a completer.
fn completed(completion: &Completion) -> Result<ToolOutput, ToolError> {
    let structured = serde_json::to_value(completion).map_err(|error| ToolError::Failed(error.to_string()))?;
    Ok(ToolOutput { structured: Some(structured), ..ToolOutput::default() })
}

impl<A: MountAdapter> Callable for MountedOffer<A> {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn needs<'a>(&'a self, input: &'a Value, _: &'a Cx) -> BoxFuture<'a, Result<Vec<Need>, ToolError>> {
        let need = match &self.task {
            MountedOfferTask::Read => uri_of(input).map(|uri| self.need(&OfferSubject::Resource(uri))).map(Some),
            MountedOfferTask::Watch { .. } => uri_of(input)
                .map(|uri| self.need(&OfferSubject::Resource(uri)).because("to hear of its changes"))
                .map(Some),
            MountedOfferTask::Render(name) => {
                Ok(Some(self.need(&OfferSubject::Prompt(name.clone())).because(preview(input))))
            }
            MountedOfferTask::Complete(_) => Ok(None),
        };
        std::future::ready(need.map(|need| need.into_iter().collect())).boxed()
    }

    fn call<'a>(&'a self, input: Value, cx: &'a Cx) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        async move {
            let result = self.run(input, cx).await;
            self.mount.count_call(result.as_ref().is_ok_and(|output| !output.is_error));
            result
        }
        .boxed()
    }
}
