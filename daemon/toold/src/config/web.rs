//! `[network]` and `[web]`: the addresses that tools may reach, and their search service.

use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use serde::{Deserialize, Deserializer};
use toold_builtins::toolkit::Toolkit;
use toold_builtins::web::search::{BRAVE, SearchKey, SearchService, WebSearch};
use toold_builtins::web::{Searching, Web};
use toold_engine::policy::pattern::Pattern;
use toold_host::http::guard::Guard;
use toold_host::http::{Http, target};
use toold_proto::tool::Category;

use crate::config::active_config::ActiveConfig;
use crate::config::expand_home;
use crate::config::options::Options;

/// `[network]`: what requests of tools and plugins may reach.
#[derive(Clone, Debug, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct NetworkConfig {
    /// Addresses that may be reached although they are not public: networks (`10.0.0.0/8`), addresses and hosts
    /// (`127.0.0.1:8080`, `*.corp.example`). They need permission like all others.
    #[serde(deserialize_with = "checked")]
    pub allow_private: Vec<String>,
}

/// `[web]`: the tools for the web.
#[derive(Clone, Debug, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct WebConfig {
    pub search: SearchConfig,
}

/// `[web.search]`: the service that `web_search` uses.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct SearchConfig {
    /// The kind of service. Without it, `web_search` explains how to set it.
    pub kind: Option<SearchKind>,
    /// For `searxng`: the URL of the instance. For `brave`: a URL in place of the usual one.
    pub url: Option<String>,
    /// For `brave`: the variable of the daemon's environment that holds the key.
    pub api_key_env: Option<String>,
    /// For `brave`: the file that holds the key; it is read for each search.
    pub api_key_file: Option<String>,
    /// For `command`: the program and its arguments, in which `{query}` and `{max_results}` are replaced. It prints
    /// JSON: objects with `url`, `title` and `snippet`, in a list or as `results`.
    pub command: Vec<String>,
    /// The timeout of a search, in milliseconds.
    pub timeout_ms: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum SearchKind {
    Searxng,
    Brave,
    Command,
}

impl Default for SearchConfig {
    fn default() -> Self {
        Self { kind: None, url: None, api_key_env: None, api_key_file: None, command: Vec::new(), timeout_ms: 15_000 }
    }
}

fn checked<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let entries = Vec::<String>::deserialize(deserializer)?;
    Guard::parse(&entries).map_err(serde::de::Error::custom)?;
    for host in entries.iter().filter(|entry| !entry.contains('/')) {
        Pattern::parse_to_use(Category::Network, host).map_err(serde::de::Error::custom)?;
    }
    Ok(entries)
}

/// Passes the configuration to the web tools, now and after each change.
pub fn follow(config: &Arc<ActiveConfig>, builtins: &Arc<Toolkit>) {
    let builtins = builtins.clone();
    config.follow(move |config| configure(config, &builtins.web));
}

fn configure(active: &ActiveConfig, web: &Web) {
    let loaded = active.loaded();
    let config = &loaded.config;
    let guard = Guard::parse(&config.network.allow_private).unwrap_or_default();
    web.set_searching(searching(&config.web.search, &guard, &active.options));
    web.http.set_guard(guard);
}

fn searching(config: &SearchConfig, guard: &Guard, options: &Options) -> Searching {
    let Some(kind) = config.kind else { return Searching::Unset };
    match search(kind, config, guard, options) {
        Ok(search) => Searching::Set(Arc::new(search)),
        Err(error) => {
            let words = format!("[web.search] of the configuration: {error:#}");
            tracing::warn!("{words}");
            Searching::Broken(words)
        }
    }
}

fn search(kind: SearchKind, config: &SearchConfig, guard: &Guard, options: &Options) -> anyhow::Result<WebSearch> {
    let parse = |url: &str| target::parse(url).context("url");
    let service = match kind {
        SearchKind::Searxng => {
            let url = config.url.as_deref().context("searxng needs url, such as https://searx.example.org")?;
            SearchService::Searxng { url: parse(url)? }
        }
        SearchKind::Brave => {
            SearchService::Brave { url: parse(config.url.as_deref().unwrap_or(BRAVE))?, key: key(config, options)? }
        }
        SearchKind::Command => {
            ensure!(!config.command.is_empty(), "command needs command: a program and its arguments");
            ensure!(config.command.iter().any(|word| word.contains("{query}")), "command: no argument has {{query}}");
            SearchService::Command { command: config.command.clone() }
        }
    };
    let url = match &service {
        SearchService::Searxng { url } | SearchService::Brave { url, .. } => Some(url),
        SearchService::Command { .. } => None,
    };
    // A user who names a service means to reach it, also on this machine.
    let place = url.and_then(|url| Some(format!("{}:{}", url.host_str()?, url.port_or_known_default()?)));
    let guard = match place {
        Some(place) => guard.and(&place).map_err(anyhow::Error::msg)?,
        None => guard.clone(),
    };
    Ok(WebSearch { service, http: Http::new(guard), timeout: Duration::from_millis(config.timeout_ms) })
}

fn key(config: &SearchConfig, options: &Options) -> anyhow::Result<SearchKey> {
    match (&config.api_key_env, &config.api_key_file) {
        (Some(_), Some(_)) => bail!("either api_key_env or api_key_file, not both"),
        (Some(name), None) => {
            let (wanted, variables) = (OsString::from(name), &options.environment);
            let value = variables.iter().find(|(known, _)| *known == wanted).and_then(|(_, value)| value.to_str());
            Ok(match value.map(str::trim).filter(|value| !value.is_empty()) {
                Some(value) => SearchKey::Value(value.to_owned()),
                None => SearchKey::Missing(format!("the daemon was started without {name} in its environment")),
            })
        }
        (None, Some(file)) => Ok(SearchKey::File(expand_home(file, options.paths.home.as_deref()))),
        (None, None) => bail!("brave needs a key: set api_key_env or api_key_file"),
    }
}
