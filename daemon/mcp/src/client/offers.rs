//! Resources and prompts of a server: listing, reading, rendering and completing them.

use rmcp::RoleClient;
use rmcp::model::{
    ArgumentInfo, ClientRequest, CompleteRequest, CompleteRequestParams, CompletionContext, ErrorCode,
    GetPromptRequest, GetPromptRequestParams, ListPromptsRequest, ListResourceTemplatesRequest, ListResourcesRequest,
    PaginatedRequestParams, ReadResourceRequest, ReadResourceRequestParams, Reference, ServerResult,
};
use rmcp::service::{Peer, ServiceError};
use serde_json::{Map, Value, json};
use tokio::time::{Instant, timeout_at};
use toold_engine::cx::Cx;
use toold_engine::tool::{ToolError, ToolOutput};
use toold_mounts::adapter::{CallFailure, MountConnection};
use toold_mounts::config::MountConfig;
use toold_mounts::offer_listing::{OfferRequest, OfferSubject};
use toold_proto::offer::{Completion, PromptMessage, Rendered, ResourceContents, Speaker};

use super::adapter::ServerAdapter;
use super::call::{RequestFailure, converse};
use super::connect::error_chain;
use super::endpoint::ServerEndpoint;
use super::listing::{MAX_PAGES, cut};
use super::offer_listing::{OfferKind, OfferListing};
use super::result::{self, MAX_BLOCKS};

/// Bytes of the contents of one resource.
const MAX_CONTENTS: usize = 8 << 20;
/// Characters of one completed value; of the values, the engine takes as many as the protocol allows.
const MAX_VALUE: usize = 4096;

/// Everything that the server lists besides tools, as far as it answers in time. A server whose lists cannot be read still
/// has its tools.
pub(super) async fn list(peer: &Peer<RoleClient>, until: Instant) -> OfferListing {
    let mut listing = OfferListing::default();
    let Some(info) = peer.peer_info() else { return listing };
    let capabilities = &info.capabilities;
    let is_modern = !info.protocol_version.has_initialize();
    listing.offers.completes = capabilities.completions.is_some();
    // Since 2026-07-28 a server answers a subscription with the parts of it that it accepts.
    listing.offers.watches =
        capabilities.resources.as_ref().is_some_and(|resources| is_modern || resources.subscribe == Some(true));
    let reports = |reports: Option<bool>| reports == Some(true);
    let resources_reported = reports(capabilities.resources.as_ref().and_then(|resources| resources.list_changed));
    let prompts_reported = reports(capabilities.prompts.as_ref().and_then(|prompts| prompts.list_changed));
    let of = async |is_declared, is_reported, kind: OfferKind| {
        let mut listed = OfferListing::default();
        if is_declared {
            let method = kind.method();
            match timeout_at(until, pages(peer, kind, &mut listed)).await {
                Ok(Ok(())) => {}
                Ok(Err(why)) => listed.problem(format!("{method} failed: {why}")),
                Err(_) => listed.problem(format!("{method} was not answered in time")),
            }
        }
        if is_reported {
            listed.ttl = None;
        }
        listed
    };
    let (has_resources, has_prompts) = (capabilities.resources.is_some(), capabilities.prompts.is_some());
    // At the same time: one that is not answered costs the others nothing.
    let (resources, templates, prompts) = tokio::join!(
        of(has_resources, resources_reported, OfferKind::Resource),
        of(has_resources, resources_reported, OfferKind::Template),
        of(has_prompts, prompts_reported, OfferKind::Prompt)
    );
    for listed in [resources, templates, prompts] {
        listing.join(listed);
    }
    listing
}

async fn pages(peer: &Peer<RoleClient>, kind: OfferKind, listing: &mut OfferListing) -> Result<(), String> {
    let mut cursor: Option<String> = None;
    for _ in 0..MAX_PAGES {
        let params = cursor.take().map(|cursor| PaginatedRequestParams::default().with_cursor(Some(cursor)));
        let request = match kind {
            OfferKind::Resource => {
                ClientRequest::ListResourcesRequest(ListResourcesRequest { params, ..Default::default() })
            }
            OfferKind::Template => ClientRequest::ListResourceTemplatesRequest(ListResourceTemplatesRequest {
                params,
                ..Default::default()
            }),
            OfferKind::Prompt => ClientRequest::ListPromptsRequest(ListPromptsRequest { params, ..Default::default() }),
        };
        let answer = match peer.send_request(request).await {
            Ok(answer) => answer,
            // Servers with resources need not know templates.
            Err(ServiceError::McpError(error)) if error.code == ErrorCode::METHOD_NOT_FOUND => return Ok(()),
            Err(error) => return Err(error_chain(&error)),
        };
        cursor = listing.take(kind, &as_json(&answer)?)?;
        if cursor.is_none() {
            return Ok(());
        }
    }
    listing.problem(format!("it has more than {MAX_PAGES} pages of {}: those beyond are left out", kind.member()));
    Ok(())
}

/// Makes a request about a resource or a prompt, and answers the server's requests on the way.
pub(super) async fn request(
    adapter: &ServerAdapter,
    config: &MountConfig<ServerEndpoint>,
    connection: &MountConnection<ServerAdapter>,
    request: OfferRequest,
    cx: &Cx,
) -> Result<ToolOutput, CallFailure> {
    let server = &config.name;
    let wrong = |why: String| CallFailure::from(ToolError::Failed(format!("MCP server {server} sent {why}")));
    let structured = match request {
        OfferRequest::Read { uri } => {
            let params = ReadResourceRequestParams::new(uri.clone());
            let answer = converse(adapter, config, connection, cx, |answers, state| {
                let mut params = params.clone();
                (params.input_responses, params.request_state) = (answers, state);
                ClientRequest::ReadResourceRequest(ReadResourceRequest::new(params))
            });
            match answer.await {
                Ok(answer) => {
                    as_json(&answer).and_then(|answer| contents(&answer, &uri)).map(|contents| json!(contents))
                }
                // Revision 2026-07-28 has no code of its own for it.
                Err(RequestFailure::Refused {
                    code: ErrorCode::RESOURCE_NOT_FOUND | ErrorCode::INVALID_PARAMS,
                    words,
                }) => {
                    return Ok(ToolOutput::error(words).with("not_found", true));
                }
                Err(failure) => return Err(failure.into()),
            }
        }
        OfferRequest::Render { upstream_name, arguments } => {
            let mut params = GetPromptRequestParams::new(upstream_name);
            params.arguments = Some(arguments).filter(|arguments| !arguments.is_empty());
            let answer = converse(adapter, config, connection, cx, |answers, state| {
                let mut params = params.clone();
                (params.input_responses, params.request_state) = (answers, state);
                ClientRequest::GetPromptRequest(GetPromptRequest::new(params))
            });
            as_json(&answer.await?).and_then(rendered).map(|rendered| json!(rendered))
        }
        OfferRequest::Complete { of, argument, value, given } => {
            let of = match of {
                OfferSubject::Prompt(name) => Reference::for_prompt(name),
                OfferSubject::Resource(template) => Reference::for_resource(template),
            };
            let mut params = CompleteRequestParams::new(of, ArgumentInfo::new(argument, value));
            let given = given.into_iter().filter_map(|(name, value)| Some((name, value.as_str()?.to_owned())));
            let given: std::collections::HashMap<String, String> = given.collect();
            params.context = (!given.is_empty()).then(|| CompletionContext::with_arguments(given));
            let answer = converse(adapter, config, connection, cx, |_, _| {
                ClientRequest::CompleteRequest(CompleteRequest::new(params.clone()))
            });
            as_json(&answer.await?).and_then(|answer| completion(&answer)).map(|completion| json!(completion))
        }
    };
    Ok(ToolOutput { structured: Some(structured.map_err(wrong)?), ..ToolOutput::default() })
}

fn as_json(answer: &ServerResult) -> Result<Value, String> {
    match answer {
        ServerResult::CustomResult(raw) => Ok(raw.0.clone()),
        other => serde_json::to_value(other).map_err(|error| error.to_string()),
    }
}

fn contents(answer: &Value, uri: &str) -> Result<Vec<ResourceContents>, String> {
    let given = answer.get("contents").and_then(Value::as_array).ok_or("an answer without contents")?;
    let mut bytes = 0;
    let mut contents = Vec::new();
    for one in given {
        let text = |member: &str| one.get(member).and_then(Value::as_str).map(str::to_owned);
        let read = ResourceContents {
            uri: text("uri").unwrap_or_else(|| uri.to_owned()),
            mime_type: text("mimeType"),
            text: text("text"),
            blob: text("blob"),
            meta: one.get("_meta").and_then(Value::as_object).cloned(),
        };
        if read.text.is_none() && read.blob.is_none() {
            return Err("contents that are neither text nor a blob".to_owned());
        }
        bytes += one.to_string().len();
        if bytes > MAX_CONTENTS || contents.len() >= MAX_BLOCKS {
            return Err(format!("a resource with more than {MAX_CONTENTS} bytes or {MAX_BLOCKS} parts"));
        }
        contents.push(read);
    }
    Ok(contents)
}

fn rendered(mut answer: Value) -> Result<Rendered, String> {
    let description = answer.get("description").and_then(Value::as_str).map(str::to_owned);
    let Some(Value::Array(given)) = answer.get_mut("messages").map(Value::take) else {
        return Err("an answer without messages".to_owned());
    };
    if given.len() > MAX_BLOCKS {
        return Err(format!("a prompt with more than {MAX_BLOCKS} messages"));
    }
    let message = |mut message: Value| {
        let role = match message.get("role").and_then(Value::as_str) {
            Some("user") => Speaker::User,
            Some("assistant") => Speaker::Assistant,
            Some(_) | None => return Err("a message of a prompt that is neither of user nor of assistant".to_owned()),
        };
        let content = message.get_mut("content").map(Value::take).unwrap_or_default();
        Ok(PromptMessage { role, content: result::block(content) })
    };
    Ok(Rendered { description, messages: given.into_iter().map(message).collect::<Result<_, _>>()? })
}

fn completion(answer: &Value) -> Result<Completion, String> {
    let none = Map::new();
    let completion = answer.get("completion").and_then(Value::as_object).unwrap_or(&none);
    let values = completion.get("values").and_then(Value::as_array).ok_or("an answer without values")?;
    Ok(Completion {
        values: values.iter().filter_map(Value::as_str).map(|value| cut(value, MAX_VALUE)).collect(),
        total: completion.get("total").and_then(Value::as_u64),
        has_more: completion.get("hasMore") == Some(&Value::Bool(true)),
    })
}
