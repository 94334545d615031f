//! `web_search`: a search with the configured service.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::json;
use toold_engine::cx::Cx;
use toold_engine::need::Need;
use toold_engine::tool::ToolOutput;
use toold_proto::tool::{Annotations, Category};

use crate::blocking::with_heartbeat;
use crate::builtin::{Builtin, READS, ToolFacts};
use crate::toolkit::Toolkit;
use crate::web::Searching;
use crate::web::search::{Domains, WebQuery, WebResult, WebSearch};

const DEFAULT_RESULTS: usize = 8;
const MAX_RESULTS: usize = 20;

const UNSET: &str = "web_search has no service to ask. A person can set one in config.toml, such as\n\n\
    [web.search]\nkind = \"searxng\"\nurl = \"https://searx.example.org\"\n\n\
    or\n\n[web.search]\nkind = \"brave\"\napi_key_env = \"BRAVE_API_KEY\"\n\n\
    or\n\n[web.search]\nkind = \"command\"\ncommand = [\"ddgr\", \"--json\", \"--\", \"{query}\"]";

/// Arguments of `web_search`.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct WebSearchInput {
    /// What to search for.
    #[cfg_attr(test, schemars(length(min = 1, max = 400)))]
    query: String,
    /// How many results to give; 8 by default, at most 20.
    #[cfg_attr(test, schemars(range(min = 1, max = 20)))]
    max_results: Option<u64>,
    /// Only results from these domains and those below them.
    #[serde(default)]
    #[cfg_attr(test, schemars(length(max = 50)))]
    allowed_domains: Vec<String>,
    /// No results from these domains and those below them.
    #[serde(default)]
    #[cfg_attr(test, schemars(length(max = 50)))]
    blocked_domains: Vec<String>,
}

pub(crate) struct WebSearchTool {
    toolkit: Arc<Toolkit>,
}

impl Builtin for WebSearchTool {
    type Input = WebSearchInput;

    const NAME: &'static str = "web_search";
    const FACTS: ToolFacts = ToolFacts {
        label: "Search the web",
        description: "Searches the web and returns titles, URLs and snippets. Read a result with `web_fetch`.",
        parallelizable: true,
        permissions: &[Category::Network],
        timeout: None,
        annotations: Annotations { open_world: Some(true), ..READS },
    };

    fn new(toolkit: Arc<Toolkit>) -> Self {
        Self { toolkit }
    }

    async fn needs(&self, input: &WebSearchInput, _: &Cx) -> anyhow::Result<Vec<Need>> {
        let query = query(input)?;
        match self.toolkit.web.searching() {
            Searching::Set(search) => Ok(vec![search.need(&query)?]),
            Searching::Unset | Searching::Broken(_) => Ok(Vec::new()),
        }
    }

    async fn run(&self, input: WebSearchInput, cx: &Cx) -> anyhow::Result<ToolOutput> {
        let query = query(&input)?;
        let search = match self.toolkit.web.searching() {
            Searching::Set(search) => search,
            Searching::Unset => return Ok(ToolOutput::error(UNSET)),
            Searching::Broken(why) => anyhow::bail!("web_search is misconfigured, and a person has to fix it: {why}"),
        };
        let work = search.run(&query, &self.toolkit.environment, cx);
        let mut found = with_heartbeat(cx, work).await?;
        let before = found.len();
        found.retain(|found| query.domains.admit(&found.url));
        let filtered = before - found.len();
        found.truncate(query.max_results);
        Ok(output(&search, &query, &found, filtered))
    }
}

fn query(input: &WebSearchInput) -> anyhow::Result<WebQuery> {
    let text = input.query.trim().to_owned();
    anyhow::ensure!(!text.is_empty(), "the query is empty");
    let max_results = input.max_results.map_or(DEFAULT_RESULTS, |max| max.min(MAX_RESULTS as u64) as usize);
    Ok(WebQuery { text, max_results, domains: Domains::parse(&input.allowed_domains, &input.blocked_domains)? })
}

fn output(search: &WebSearch, query: &WebQuery, found: &[WebResult], filtered: usize) -> ToolOutput {
    let rows = found.iter().enumerate().map(|(at, found)| {
        let mut row = format!("{}. {}\n   {}", at + 1, found.title, found.url);
        if !found.snippet.is_empty() {
            row.push_str(&format!("\n   {}", found.snippet));
        }
        row
    });
    let mut text = rows.collect::<Vec<_>>().join("\n\n");
    if found.is_empty() {
        text = format!("nothing was found for {:?}", query.text);
        if filtered > 0 {
            text.push_str(&format!("; the domains left out {filtered} results"));
        }
    }
    let results = json!(found);
    let mut output =
        ToolOutput::text(text).with("service", search.name()).with("results", found.len()).with("left_out", filtered);
    output.structured = Some(json!({"query": query.text, "results": results}));
    output
}
