//! A registry of MCP servers: searching it, and describing how a server of it is run.
//!
//! [`entry`] turns a registry's description into a template of the daemon's own configuration.
//!
//! The API is that of the generic registry specification, version 0.1
//! (`docs/reference/api/openapi.yaml` of `modelcontextprotocol/registry`, 2025-12-01).

mod entry;

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::future::{BoxFuture, try_join_all};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tokio_util::sync::CancellationToken;
use toold_engine::need::Need;
use toold_engine::tool::ToolError;
use toold_host::http::guard::Guard;
use toold_host::http::request::HttpRequest;
use toold_host::http::{BodyEnding, Http, HttpError, HttpLimits, Requester, target};
use toold_proto::mcp_registry::{RegistryServer, RegistryServerList};
use url::Url;

use entry::ListedServer;

/// The registry of the Model Context Protocol's maintainers.
pub const OFFICIAL: &str = "https://registry.modelcontextprotocol.io";

/// Limit of one answer, in bytes.
const MAX_BYTES: usize = 4 << 20;
/// Time limit of one request.
const TIMEOUT: Duration = Duration::from_secs(15);
/// The registry compares one substring, so each word is a search of its own.
const MAX_WORDS: usize = 8;
/// Limit of pages in a search for one word. A registry that lists more matches is asked for a more precise word.
const MAX_PAGES: usize = 3;
const PAGE: usize = 100;
const DEFAULT_LIMIT: usize = 20;

/// A registry at its URL.
pub struct McpRegistry {
    base: Url,
    /// The only place that requests reach, redirects included.
    place: String,
    http: Http,
}

/// Why there is no answer. The messages are for people.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    #[error("{0}")]
    BadQuery(String),
    /// The registry has no such server, or no such version of it.
    #[error("the registry {registry} has no {server}")]
    Unknown { registry: String, server: String },
    #[error("the registry {registry} gives no answer: {reason}")]
    Failed { registry: String, reason: String },
}

impl McpRegistry {
    /// `guard` is the daemon's own; the registry's host is reached too if it is not public.
    ///
    /// # Errors
    /// A URL that is no base of others, with a message for people.
    pub fn new(url: &str, guard: &Guard) -> Result<Self, String> {
        let base = target::parse(url).map_err(|error| error.to_string())?;
        let place = match (base.host_str(), base.port_or_known_default()) {
            (Some(host), Some(port)) if !base.cannot_be_a_base() => format!("{host}:{port}"),
            _ => return Err(format!("{url} is not the URL of a registry, such as {OFFICIAL}")),
        };
        // A user who names a registry means to reach it, also on this machine.
        let guard = guard.and(&place)?;
        Ok(Self { base, place, http: Http::new(guard) })
    }

    /// The servers whose name, title or description contains the words; those that contain most of them first.
    /// Cancelled by dropping it.
    ///
    /// # Errors
    /// A query without words or with too many, or no answer of the registry within 15 seconds.
    pub async fn search(&self, query: &str, limit: Option<usize>) -> Result<RegistryServerList, RegistryError> {
        let words: Vec<String> = query.split_whitespace().map(str::to_lowercase).collect();
        if words.is_empty() || words.len() > MAX_WORDS {
            let found = words.len();
            return Err(RegistryError::BadQuery(format!("expected 1 to {MAX_WORDS} words to search for, got {found}")));
        }
        let found = try_join_all(words.iter().map(|word| self.search_word(word))).await?;
        let mut more = found.iter().any(|found| found.more);
        let mut by_name: BTreeMap<String, RegistryServer> = BTreeMap::new();
        for listed in found.into_iter().flat_map(|found| found.servers) {
            if !listed.is_deleted() && (listed.is_latest() || !by_name.contains_key(&listed.server.name)) {
                by_name.insert(listed.server.name.clone(), listed.describe());
            }
        }
        let mut servers: Vec<RegistryServer> = by_name.into_values().collect();
        servers.sort_by_key(|server| std::cmp::Reverse(matches(server, &words)));
        let limit = limit.unwrap_or(DEFAULT_LIMIT).min(PAGE);
        more |= servers.len() > limit;
        servers.truncate(limit);
        Ok(RegistryServerList { registry: self.base.to_string(), servers, more })
    }

    async fn search_word(&self, word: &str) -> Result<FoundServers, RegistryError> {
        let mut found = FoundServers { servers: Vec::new(), more: false };
        let mut cursor: Option<String> = None;
        for _ in 0..MAX_PAGES {
            let mut url = self.url(&["servers"]);
            url.query_pairs_mut()
                .append_pair("search", word)
                .append_pair("version", "latest")
                .append_pair("limit", &PAGE.to_string())
                .extend_pairs(cursor.iter().map(|cursor| ("cursor", cursor)));
            let page: ServerPage = self.get_json(&url).await?.ok_or_else(|| self.failed("404 Not Found"))?;
            found.servers.extend(page.servers);
            cursor = page.metadata.next_cursor.filter(|cursor| !cursor.is_empty());
            if cursor.is_none() {
                return Ok(found);
            }
        }
        found.more = true;
        Ok(found)
    }

    /// One server; its latest version when `version` is absent. Cancelled by dropping it.
    ///
    /// # Errors
    /// The registry does not have it, or gives no answer within 15 seconds.
    pub async fn get(&self, name: &str, version: Option<&str>) -> Result<RegistryServer, RegistryError> {
        let url = self.url(&["servers", name, "versions", version.unwrap_or("latest")]);
        let unknown = || RegistryError::Unknown {
            registry: self.base.to_string(),
            server: version.map_or_else(|| name.to_owned(), |version| format!("{name} {version}")),
        };
        let listed: ListedServer = self.get_json(&url).await?.ok_or_else(unknown)?;
        if listed.is_deleted() {
            return Err(unknown());
        }
        Ok(listed.describe())
    }

    /// A path of the API; slashes within a segment are encoded.
    fn url(&self, segments: &[&str]) -> Url {
        let mut url = self.base.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().push("v0.1").extend(segments);
        }
        url
    }

    /// `None` for 404.
    async fn get_json<T: DeserializeOwned>(&self, url: &Url) -> Result<Option<T>, RegistryError> {
        let limits = HttpLimits { timeout: TIMEOUT, max_bytes: MAX_BYTES, redirects: 3 };
        let accept = [("Accept".to_owned(), "application/json".to_owned())];
        let request = HttpRequest::new("GET", url.as_str(), &accept, None);
        let sent = async { self.http.send(request?, limits, &OnlyHere(&self.place), &CancellationToken::new()).await };
        let response = sent.await.map_err(|error: HttpError| self.failed(&error.to_string()))?;
        match (response.status, &response.ending) {
            (404, _) => Ok(None),
            (200, BodyEnding::Whole) => serde_json::from_slice(&response.body)
                .map(Some)
                .map_err(|error| self.failed(&format!("its answer is not that of a registry: {error}"))),
            (200, BodyEnding::TooLong) => Err(self.failed(&format!("its answer has more than {MAX_BYTES} bytes"))),
            (200, _) => Err(self.failed("its answer broke off")),
            (status, _) => {
                Err(self.failed(format!("{status} {}", response.status_text().unwrap_or_default()).trim_end()))
            }
        }
    }

    fn failed(&self, reason: &str) -> RegistryError {
        RegistryError::Failed { registry: self.base.to_string(), reason: reason.to_owned() }
    }
}

struct FoundServers {
    servers: Vec<ListedServer>,
    more: bool,
}

fn matches(server: &RegistryServer, words: &[String]) -> usize {
    let title = server.title.as_deref().unwrap_or_default();
    let text = format!("{} {title} {}", server.name, server.description).to_lowercase();
    words.iter().filter(|word| text.contains(word.as_str())).count()
}

/// `ServerList` of the specification.
#[derive(Deserialize)]
struct ServerPage {
    #[serde(default)]
    servers: Vec<ListedServer>,
    #[serde(default)]
    metadata: PageMetadata,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct PageMetadata {
    next_cursor: Option<String>,
}

/// The configuration names the registry, so nobody is asked about it; a redirect to another place is refused.
struct OnlyHere<'a>(&'a str);

impl Requester for OnlyHere<'_> {
    fn require(&self, need: Need) -> BoxFuture<'_, Result<(), ToolError>> {
        let refused =
            || ToolError::Failed(format!("it redirects to {}, and only {} is its place", need.target, self.0));
        let allowed = if need.target == self.0 { Ok(()) } else { Err(refused()) };
        Box::pin(std::future::ready(allowed))
    }
}
