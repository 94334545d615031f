//! `prompt.*`: the text protocol for models without native tool calls.

use std::sync::Arc;

use jsonrpsee::RpcModule;
use jsonrpsee::types::ErrorObjectOwned;
use toold_adapters::families::Family;
use toold_adapters::parse::parse;
use toold_adapters::prompt::render_prompt;
use toold_proto::method::{PromptParse, PromptRender};
use toold_proto::prompt::{ParsePrompt, RenderPrompt, RenderedPrompt};
use toold_proto::tool::Tool;

use crate::daemon::State;
use crate::rpc::error::invalid_params;
use crate::rpc::{Request, Right, add, add_async};

pub(super) fn register(module: &mut RpcModule<Arc<State>>) -> anyhow::Result<()> {
    add_async::<PromptRender, _>(module, Right::Anyone, render)?;
    add::<PromptParse>(module, Right::Anyone, |_, asked: ParsePrompt| Ok(parse(&asked.text, asked.tools.as_deref())))
}

async fn render(request: Request, asked: RenderPrompt) -> Result<RenderedPrompt, ErrorObjectOwned> {
    let family = asked.format.as_deref().map(Family::parse).transpose();
    let family = family.map_err(|error| invalid_params(&format!("format: {error}")))?.unwrap_or(Family::Tags);
    let session = request.session(asked.session_id.as_ref())?;
    request.state.plugins.settled().await;
    let snapshot = request.state.engine.registry.snapshot();
    let wanted = |name: &str| asked.names.as_ref().is_none_or(|names| names.iter().any(|known| known == name));
    let specs = snapshot.view(&session.project).iter().map(|tool| tool.spec());
    let tools: Vec<Tool> = specs
        .filter(|spec| session.filter.lets(spec.name.as_str()) && wanted(spec.name.as_str()))
        .map(|spec| spec.describe())
        .collect();
    Ok(RenderedPrompt { text: render_prompt(family, &tools, asked.detail) })
}
