//! `tools.cost`: how much of a model's context the lists of tools take.

use std::collections::BTreeMap;

use jsonrpsee::types::ErrorObjectOwned;
use serde_json::Value;
use toold_adapters::providers::tools_as;
use toold_engine::session::{Session, SessionFilter};
use toold_proto::call::{ListingMode, ToolFormat};
use toold_proto::cost::{ClientCost, ListCost, MeasureTools, SourceCost, ToolCosts};
use toold_proto::method::ToolsCost;
use toold_proto::tool::{Source, ToolName};

use crate::config::mcp_servers::McpClientConfig;
use crate::rpc::session::may_use;
use crate::rpc::tools::{ListedSpec, listed};
use crate::rpc::{MethodRequest, MethodTable, Right, add_async, may_decide};

/// Bytes of JSON that are counted as one token. Tokenizers of providers differ, and most are not published; names and
/// punctuation of schemas take three to five bytes a token.
const BYTES_PER_TOKEN: u64 = 4;

pub(super) fn register(module: &mut MethodTable) -> anyhow::Result<()> {
    add_async::<ToolsCost, _>(module, Right::Anyone, measure)
}

async fn measure(request: MethodRequest, asked: MeasureTools) -> Result<ToolCosts, ErrorObjectOwned> {
    let session = request.session(asked.session_id.as_ref())?;
    request.services.plugins.settled().await;
    let engine = &request.services.engine;
    let snapshot = engine.registry.snapshot();
    let view = snapshot.view(session.project());
    let format = asked.format.unwrap_or(ToolFormat::Anthropic);
    let list = |mode| listed(engine, &snapshot, view, mode);
    let (whole, short) = (list(ListingMode::All), list(ListingMode::Deferred));
    let tokens: BTreeMap<&ToolName, u64> =
        whole.iter().chain(&short).map(|tool| (&tool.spec.name, tokens_of(tool, format))).collect();
    let cost = |tools: &[ListedSpec], seen: &dyn Fn(&ListedSpec) -> bool| {
        let seen =
            tools.iter().filter(|tool| seen(tool)).map(|tool| ListCost { tools: 1, tokens: tokens[&tool.spec.name] });
        seen.fold(ListCost::default(), sum)
    };
    let by_session = |tool: &ListedSpec| tool.is_seen(&session);
    let mut sources = BTreeMap::<(&str, &str), SourceCost>::new();
    let is_meta = |tool: &ListedSpec| tool.is_meta_tool();
    for (tools, mode) in [(&whole, ListingMode::All), (&short, ListingMode::Deferred)] {
        for tool in tools.iter().filter(|tool| by_session(tool) && !is_meta(tool)) {
            let source = &tool.spec.source;
            let of_source = sources.entry((source.kind.as_str(), &source.name)).or_insert_with(|| SourceCost {
                source: Source { path: None, ..source.clone() },
                all: ListCost::default(),
                deferred: ListCost::default(),
            });
            let place = match mode {
                ListingMode::All => &mut of_source.all,
                ListingMode::Deferred => &mut of_source.deferred,
            };
            *place = sum(*place, ListCost { tools: 1, tokens: tokens[&tool.spec.name] });
        }
    }
    let mut sources: Vec<SourceCost> = sources.into_values().collect();
    sources.sort_by_key(|source| std::cmp::Reverse(source.all.tokens));
    let of_client = |(client, filter): (String, Option<SessionFilter>)| {
        let of_profile = filter.as_ref().and_then(SessionFilter::listing);
        let listing = of_profile.unwrap_or_else(|| snapshot.tool_settings().listing_of(Some(&client)));
        let tools = if listing == ListingMode::All { &whole } else { &short };
        let list = cost(tools, &|tool| filter.as_ref().is_none_or(|filter| tool.is_allowed(filter)));
        ClientCost { client, listing, list }
    };
    let clients = clients(&request, &session).into_iter().map(of_client);
    Ok(ToolCosts {
        format,
        all: cost(&whole, &by_session),
        deferred: cost(&short, &by_session),
        sources,
        clients: clients.collect(),
    })
}

/// The clients with a session that the caller sees in the same project, each with the filter of the latest, and for people
/// those that the configuration names.
fn clients(request: &MethodRequest, own: &Session) -> BTreeMap<String, Option<SessionFilter>> {
    let loaded = request.services.config.loaded();
    let profile = |client: &McpClientConfig| {
        let profile = request.services.config.profile(client.profile.as_ref()?.get_ref()).ok()?;
        SessionFilter::of_profile(&profile).ok()
    };
    let configured = loaded.config.mcp.clients.iter().filter(|_| may_decide(request));
    let configured = configured.filter(|(_, client)| client.listing.is_some() || client.profile.is_some());
    let mut clients: BTreeMap<String, Option<SessionFilter>> =
        configured.map(|(name, client)| (name.clone(), profile(client))).collect();
    for session in request.services.engine.sessions.list() {
        if let Some(client) = &session.client
            && session.project() == own.project()
            && may_use(request, &session).is_ok()
        {
            clients.insert(client.name.clone(), Some(session.filter.clone()));
        }
    }
    clients
}

fn tokens_of(tool: &ListedSpec, format: ToolFormat) -> u64 {
    let bytes = match tools_as(format, &[tool.spec.describe()]) {
        Value::Array(tools) => tools.iter().map(|tool| tool.to_string().len() as u64).sum(),
        other => other.to_string().len() as u64,
    };
    bytes.div_ceil(BYTES_PER_TOKEN)
}

fn sum(one: ListCost, other: ListCost) -> ListCost {
    ListCost { tools: one.tools + other.tools, tokens: one.tokens + other.tokens }
}
