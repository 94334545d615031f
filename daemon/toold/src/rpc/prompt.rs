//! `prompt.*`: the text protocol for models without native tool calls.

use jsonrpsee::types::ErrorObjectOwned;
use toold_adapters::families::Family;
use toold_adapters::parse::known::KnownTools;
use toold_adapters::parse::{CallParser, parse_with};
use toold_adapters::prompt::render_prompt;
use toold_engine::session::Session;
use toold_proto::method::{PromptParse, PromptParseStream, PromptRender};
use toold_proto::prompt::{
    ParsePrompt, ParseStream, ParsedPrompt, ParsedStream, RenderPrompt, RenderedPrompt, StreamAction,
};
use toold_proto::tool::Tool;

use crate::rpc::error::invalid_params;
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
            let parser = if asked.thinking { CallParser::inside_thinking(known) } else { CallParser::new(known) };
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
    Ok(match names {
        Some(names) => {
            KnownTools::listed(names, &view(request, &session, |name| names.iter().any(|known| known == name)))
        }
        None => KnownTools::any_with(&view(request, &session, |_| true)),
    })
}

async fn render(request: MethodRequest, asked: RenderPrompt) -> Result<RenderedPrompt, ErrorObjectOwned> {
    let family = asked.format.as_deref().map(Family::parse).transpose();
    let family = family.map_err(|error| invalid_params(&format!("format: {error}")))?.unwrap_or(Family::Tags);
    let session = request.session(asked.session_id.as_ref())?;
    request.services.plugins.settled().await;
    let wanted = |name: &str| asked.names.as_ref().is_none_or(|names| names.iter().any(|known| known == name));
    let tools = view(&request, &session, wanted);
    Ok(RenderedPrompt { text: render_prompt(family, &tools, asked.detail) })
}

/// The selected tools, as far as the session sees them.
fn view(request: &MethodRequest, session: &Session, wanted: impl Fn(&str) -> bool) -> Vec<Tool> {
    let snapshot = request.services.engine.registry.snapshot();
    let specs = snapshot.view(session.project()).iter().map(|tool| tool.spec());
    let seen = specs.filter(|spec| session.filter.allows(spec) && wanted(spec.name.as_str()));
    seen.map(|spec| spec.describe()).collect()
}
