//! Resources, prompts and completion, which plugins and mounted servers offer besides tools.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use rmcp::ErrorData;
use rmcp::model::{
    CacheScope, CompleteRequestParams, CompleteResult, CompletionInfo, GetPromptRequestParams, GetPromptResponse,
    GetPromptResult, InputResponses, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, Prompt,
    PromptArgument, PromptMessage, ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult, Reference,
    Resource, ResourceTemplate,
};
use rmcp::service::{RequestContext, RoleServer};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use toold_engine::Engine;
use toold_engine::call::Call;
use toold_engine::offers::{self, Completing, OfferError, ResourceAddress};
use toold_proto::offer::Rendered;

use crate::server::request::RequestEnd;
use crate::server::request_state::StateBinding;
use crate::server::running_request::{RequestOutcome, RequestResult};
use crate::server::tools::LIST_TTL_MS;
use crate::server::{McpClientServer, content};

pub(super) async fn resources(
    server: &McpClientServer,
    context: &RequestContext<RoleServer>,
) -> Result<ListResourcesResult, ErrorData> {
    let all = visible(server, context).await?;
    let resources = all.iter().filter_map(|resource| match &resource.address {
        ResourceAddress::Uri(uri) => {
            let mut shown = Resource::new(uri, &resource.name);
            set_common(resource, [&mut shown.title, &mut shown.description, &mut shown.mime_type]);
            Some(with_more(shown, &resource.more))
        }
        ResourceAddress::Template(_) => None,
    });
    let list = ListResourcesResult::with_all_items(resources.collect());
    Ok(list.with_ttl_ms(LIST_TTL_MS).with_cache_scope(CacheScope::Private))
}

pub(super) async fn templates(
    server: &McpClientServer,
    context: &RequestContext<RoleServer>,
) -> Result<ListResourceTemplatesResult, ErrorData> {
    let all = visible(server, context).await?;
    let templates = all.iter().filter_map(|resource| match &resource.address {
        ResourceAddress::Template(template) => {
            let mut shown = ResourceTemplate::new(template.as_str(), &resource.name);
            set_common(resource, [&mut shown.title, &mut shown.description, &mut shown.mime_type]);
            Some(with_more(shown, &resource.more))
        }
        ResourceAddress::Uri(_) => None,
    });
    let list = ListResourceTemplatesResult::with_all_items(templates.collect());
    Ok(list.with_ttl_ms(LIST_TTL_MS).with_cache_scope(CacheScope::Private))
}

/// Sets the common members of resources and templates.
fn set_common(resource: &offers::Resource, [title, description, mime_type]: [&mut Option<String>; 3]) {
    title.clone_from(&resource.title);
    description.clone_from(&resource.description);
    mime_type.clone_from(&resource.mime_type);
}

/// Adds the members that a mounted server passes on, as far as they are what the protocol says.
fn with_more<T: Clone + Serialize + DeserializeOwned>(shown: T, more: &Map<String, Value>) -> T {
    let mut with = shown;
    for (member, value) in more {
        let Ok(Value::Object(mut members)) = serde_json::to_value(&with) else { continue };
        members.insert(member.clone(), value.clone());
        if let Ok(added) = serde_json::from_value(Value::Object(members)) {
            with = added;
        }
    }
    with
}

async fn visible(
    server: &McpClientServer,
    context: &RequestContext<RoleServer>,
) -> Result<Vec<Arc<offers::Resource>>, ErrorData> {
    let session = server.session(context).await?;
    server.mcp.host.settled().await;
    Ok(server.mcp.engine().offers.resources_of(&session))
}

pub(super) async fn read(
    server: &McpClientServer,
    mut request: ReadResourceRequestParams,
    context: RequestContext<RoleServer>,
) -> Result<ReadResourceResponse, ErrorData> {
    let binding = StateBinding::new("resources/read", &request.uri, None, &server.connection);
    let again = (request.request_state.take(), request.input_responses.take());
    let uri = request.uri;
    let start = move |engine: Arc<Engine>, call| {
        let read = async move {
            let read = offers::read(&engine, &uri, call).await.map_err(failed)?;
            let contents = read.into_iter().map(content::contents).collect();
            let result = ReadResourceResult::new(contents);
            Ok(RequestOutcome::Resource(result.with_ttl_ms(0).with_cache_scope(CacheScope::Private)))
        };
        read.boxed()
    };
    let served = serve(server, again, binding, context, start).await?;
    match served {
        RequestEnd::Finished(Ok(RequestOutcome::Resource(result))) => Ok(result.into()),
        RequestEnd::InputRequired(required) => Ok(required.into()),
        other => Err(error_of(other)),
    }
}

/// Subscribes a client of the older revisions to a resource.
pub(super) async fn subscribe(
    server: &McpClientServer,
    uri: &str,
    context: &RequestContext<RoleServer>,
) -> Result<(), ErrorData> {
    let session = server.session(context).await?;
    server.mcp.host.settled().await;
    let call = server.plain_call(session, context.ct.child_token());
    server.connection.subscriptions.add(server.mcp.engine(), uri, call).await.map_err(failed)
}

pub(super) async fn prompts(
    server: &McpClientServer,
    context: &RequestContext<RoleServer>,
) -> Result<ListPromptsResult, ErrorData> {
    let session = server.session(context).await?;
    server.mcp.host.settled().await;
    let all = server.mcp.engine().offers.prompts_of(&session);
    let prompts = all.iter().map(|prompt| {
        let argument = |own: &toold_proto::offer::PromptArgument| {
            let mut shown = PromptArgument::new(&own.name).with_required(own.required);
            shown.title = own.title.clone();
            shown.description = own.description.clone();
            shown
        };
        let arguments: Vec<PromptArgument> = prompt.arguments.iter().map(argument).collect();
        let arguments = Some(arguments).filter(|arguments| !arguments.is_empty());
        let mut shown = Prompt::new(&prompt.name, prompt.description.clone(), arguments);
        shown.title = prompt.title.clone();
        with_more(shown, &prompt.more)
    });
    let list = ListPromptsResult::with_all_items(prompts.collect());
    Ok(list.with_ttl_ms(LIST_TTL_MS).with_cache_scope(CacheScope::Private))
}

pub(super) async fn prompt(
    server: &McpClientServer,
    mut request: GetPromptRequestParams,
    context: RequestContext<RoleServer>,
) -> Result<GetPromptResponse, ErrorData> {
    let binding = StateBinding::new("prompts/get", &request.name, request.arguments.as_ref(), &server.connection);
    let again = (request.request_state.take(), request.input_responses.take());
    let (name, arguments) = (request.name, request.arguments.unwrap_or_default());
    let start = move |engine: Arc<Engine>, call| {
        let render = async move {
            let rendered = offers::render(&engine, &name, arguments, call).await.map_err(failed)?;
            Ok(RequestOutcome::Prompt(shown(rendered)))
        };
        render.boxed()
    };
    let served = serve(server, again, binding, context, start).await?;
    match served {
        RequestEnd::Finished(Ok(RequestOutcome::Prompt(result))) => Ok(result.into()),
        RequestEnd::InputRequired(required) => Ok(required.into()),
        other => Err(error_of(other)),
    }
}

/// Starts a call, or continues the one that the client resumes with its state and its answers.
async fn serve(
    server: &McpClientServer,
    (state, answers): (Option<String>, Option<InputResponses>),
    binding: StateBinding,
    context: RequestContext<RoleServer>,
    start: impl FnOnce(Arc<Engine>, Call) -> BoxFuture<'static, RequestResult>,
) -> Result<RequestEnd, ErrorData> {
    let answers = answers.unwrap_or_default();
    if let Some(state) = state {
        return server.resume(&state, answers, binding, context).await;
    }
    let session = server.session(&context).await?;
    server.mcp.host.settled().await;
    let engine = server.mcp.engine().clone();
    Ok(server.run(session, answers, binding, context, None, move |call| start(engine, call)).await)
}

fn shown(rendered: Rendered) -> GetPromptResult {
    let message = |message: toold_proto::offer::PromptMessage| {
        PromptMessage::new(content::role(message.role), content::block(message.content))
    };
    let mut result = GetPromptResult::new(rendered.messages.into_iter().map(message).collect());
    result.description = rendered.description;
    result
}

pub(super) async fn complete(
    server: &McpClientServer,
    request: CompleteRequestParams,
    context: RequestContext<RoleServer>,
) -> Result<CompleteResult, ErrorData> {
    let session = server.session(&context).await?;
    server.mcp.host.settled().await;
    let of = match &request.r#ref {
        Reference::Prompt(prompt) => Completing::Prompt(prompt.name.clone()),
        Reference::Resource(resource) => Completing::Resource(resource.uri.clone()),
        _ => return Err(ErrorData::invalid_params("ref: expected ref/prompt or ref/resource", None)),
    };
    let given = request.context.and_then(|context| context.arguments).unwrap_or_default();
    let given: Map<String, Value> = given.into_iter().map(|(name, value)| (name, value.into())).collect();
    let call = server.plain_call(session, context.ct.child_token());
    let argument = &request.argument;
    let completed = offers::complete(server.mcp.engine(), &of, &argument.name, &argument.value, given, call)
        .await
        .map_err(failed)?;
    let total = completed.total.and_then(|total| u32::try_from(total).ok());
    let info = CompletionInfo::with_pagination(completed.values, total, completed.has_more);
    info.map(CompleteResult::new).map_err(|error| ErrorData::internal_error(error, None))
}

fn failed(error: OfferError) -> ErrorData {
    let message = error.to_string();
    match error {
        OfferError::NoResource(uri) => ErrorData::resource_not_found(message, Some(serde_json::json!({"uri": uri}))),
        OfferError::NoPrompt(_) | OfferError::Arguments(_) => ErrorData::invalid_params(message, None),
        OfferError::Failed(_) | OfferError::Call(_) => ErrorData::internal_error(message, None),
    }
}

/// The error for an outcome that is not a result of this kind of request.
fn error_of(served: RequestEnd) -> ErrorData {
    match served {
        RequestEnd::Finished(Err(error)) => error,
        RequestEnd::Cancelled | RequestEnd::Finished(Ok(RequestOutcome::Cancelled)) => {
            ErrorData::internal_error("the request was cancelled", None)
        }
        RequestEnd::Finished(Ok(RequestOutcome::Tool(result))) => {
            let texts: Vec<&str> =
                result.content.iter().filter_map(|block| block.as_text()).map(|text| text.text.as_str()).collect();
            ErrorData::internal_error(texts.join("\n"), None)
        }
        RequestEnd::Finished(Ok(RequestOutcome::Prompt(_) | RequestOutcome::Resource(_)))
        | RequestEnd::InputRequired(_)
        | RequestEnd::Task(_) => ErrorData::internal_error("the result belongs to another kind of request", None),
    }
}
