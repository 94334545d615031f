//! `prompt.*`: the text protocol for models without native tool calls.

use jsonrpsee::types::ErrorObjectOwned;
use toold_adapters::families::Family;
use toold_adapters::parse::known::KnownTools;
use toold_adapters::parse::{parse, parse_with};
use toold_adapters::prompt::render_prompt;
use toold_engine::session::Session;
use toold_proto::method::{PromptParse, PromptRender};
use toold_proto::prompt::{ParsePrompt, ParsedPrompt, RenderPrompt, RenderedPrompt};
use toold_proto::tool::Tool;

use crate::rpc::error::invalid_params;
use crate::rpc::{MethodRequest, MethodTable, Right, add_async};

pub(super) fn register(module: &mut MethodTable) -> anyhow::Result<()> {
    add_async::<PromptRender, _>(module, Right::Anyone, render)?;
    add_async::<PromptParse, _>(module, Right::Anyone, read)
}

async fn read(request: MethodRequest, asked: ParsePrompt) -> Result<ParsedPrompt, ErrorObjectOwned> {
    let Some(names) = asked.tools else { return Ok(parse(&asked.text, None)) };
    let session = request.session(None)?;
    request.services.plugins.settled().await;
    // The schemas say which arguments are strings where a model's syntax does not.
    let tools = view(&request, &session, |name| names.iter().any(|known| known == name));
    Ok(parse_with(&asked.text, KnownTools::listed(&names, &tools)))
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
