//! `prompt.*`: the text protocol for models without native tool calls.

use jsonrpsee::types::ErrorObjectOwned;
use toold_adapters::families::Family;
use toold_adapters::parse::known::KnownTools;
use toold_adapters::parse::{CallParser, parse_with};
use toold_adapters::prompt::render_prompt;
use toold_engine::session::Session;
use toold_proto::call::ListingMode;
use toold_proto::method::{PromptParse, PromptParseStream, PromptRender};
use toold_proto::prompt::{
    ParsePrompt, ParseStream, ParsedPrompt, ParsedStream, RenderPrompt, RenderedPrompt, StreamAction,
};
use toold_proto::tool::Tool;

use crate::rpc::error::invalid_params;
use crate::rpc::tools::{listed, listing_of};
use crate::rpc::{MethodRequest, MethodTable, Right, add_async};

pub(super) fn register(module: &mut MethodTable) -> anyhow::Result<()> {
    add_async::<PromptRender, _>(module, Right::Anyone, render)?;
    add_async::<PromptParse, _>(module, Right::Anyone, read)?;
    add_async::<PromptParseStream, _>(module, Right::Anyone, read_stream)
}

async fn read(request: MethodRequest, asked: ParsePrompt) -> Result<ParsedPrompt, ErrorObjectOwned> {
    let known = known_tools(&request, asked.tools.as_deref()).await?;
    Ok(parse_with(&asked.text, known))
}

async fn read_stream(request: MethodRequest, asked: ParseStream) -> Result<ParsedStream, ErrorObjectOwned> {
    let streams = &request.connection().parse_streams;
    let id =
        || asked.stream_id.as_deref().ok_or_else(|| invalid_params("stream_id: expected the id that open returned"));
    let answer = match asked.action {
        StreamAction::Open => {
            let known = known_tools(&request, asked.tools.as_deref()).await?;
            let parser = match asked.thinking {
                Some(true) => CallParser::inside_thinking(known),
                Some(false) => CallParser::outside_thinking(known),
                None => CallParser::new(known),
            };
            streams.open(parser).and_then(|id| streams.push(&id, &asked.text))
        }
        StreamAction::Push => streams.push(id()?, &asked.text),
        StreamAction::End => streams.end(id()?, &asked.text),
    };
    answer.map_err(|message| invalid_params(&message))
}

/// The tools that calls may be of, with the schemas of those that the session sees: they say which arguments are strings
/// where a model's syntax does not.
async fn known_tools(request: &MethodRequest, names: Option<&[String]>) -> Result<KnownTools, ErrorObjectOwned> {
    let session = request.session(None)?;
    request.services.plugins.settled().await;
    let mut tools = shown(request, &session, None, |_| true);
    let snapshot = request.services.engine.registry.snapshot();
    let view = snapshot.view(session.project());
    tools.extend(request.services.engine.meta_tools.specs(view).map(|spec| spec.describe()));
    Ok(match names {
        Some(names) => {
            tools.retain(|tool| names.iter().any(|known| known == tool.name.as_str()));
            KnownTools::listed(names, &tools)
        }
        None => KnownTools::any_with(&tools),
    })
}

async fn render(request: MethodRequest, asked: RenderPrompt) -> Result<RenderedPrompt, ErrorObjectOwned> {
    let family = asked.format.as_deref().map(Family::parse).transpose();
    let family = family.map_err(|error| invalid_params(&format!("format: {error}")))?.unwrap_or(Family::Tags);
    let session = request.session(asked.session_id.as_ref())?;
    request.services.plugins.settled().await;
    let wanted = |name: &str| asked.names.as_ref().is_none_or(|names| names.iter().any(|known| known == name));
    let mode = asked.mode.or_else(|| {
        let snapshot = request.services.engine.registry.snapshot();
        asked.names.is_none().then(|| listing_of(&snapshot, &session))
    });
    let tools = shown(&request, &session, mode, wanted);
    Ok(RenderedPrompt { text: render_prompt(family, &tools, asked.detail) })
}

/// The selected tools of a list, as far as the session sees them; of the whole list if no mode is named.
fn shown(
    request: &MethodRequest,
    session: &Session,
    mode: Option<ListingMode>,
    wanted: impl Fn(&str) -> bool,
) -> Vec<Tool> {
    let engine = &request.services.engine;
    let snapshot = engine.registry.snapshot();
    let tools = listed(engine, &snapshot, snapshot.view(session.project()), mode.unwrap_or_default());
    let shown = tools.iter().filter(|tool| tool.is_seen(session) && wanted(tool.spec.name.as_str()));
    shown.map(|tool| tool.spec.describe()).collect()
}
