//! The search services: a SearXNG instance, Brave's API, or a user's command.

mod answers;
mod domains;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, bail};
use toold_engine::cx::Cx;
use toold_engine::need::Need;
use toold_engine::tool::ToolError;
use toold_host::environment::Environment;
use toold_host::files;
use toold_host::http::request::HttpRequest;
use toold_host::http::{BodyEnding, Http, HttpLimits, HttpResponse};
use toold_host::process::{self, ProcessCommand, ProcessEnding};
use toold_host::process_registry::StartedFor;
use toold_proto::tool::Category;
use url::Url;

use crate::web::Fetching;
pub(crate) use crate::web::search::answers::WebResult;
pub(crate) use crate::web::search::domains::Domains;

/// The address of Brave's API, unless the configuration sets another one.
pub const BRAVE: &str = "https://api.search.brave.com/res/v1/web/search";
const MAX_BYTES: usize = 2 * 1024 * 1024;
/// The most results that a service returns at once. The caller gets those that the filters admit.
const ASK_FOR: usize = 20;
/// The size limit of a key file, in bytes.
const MAX_KEY: u64 = 64 << 10;

/// A service to search with.
pub struct WebSearch {
    pub service: SearchService,
    /// In addition to what all tools may reach, it may reach the service itself, at any address.
    pub http: Http,
    pub timeout: Duration,
}

pub enum SearchService {
    /// The address of the instance, without `/search`.
    Searxng {
        url: Url,
    },
    Brave {
        url: Url,
        key: SearchKey,
    },
    /// The program and its arguments. `{query}` and `{max_results}` are placeholders. The program prints JSON: a list
    /// of objects with `url`, `title` and `snippet`, or an object with such a list as `results`.
    Command {
        command: Vec<String>,
    },
}

/// A secret that a service requires.
pub enum SearchKey {
    Value(String),
    /// Read for each search, so that it can be replaced at any time.
    File(PathBuf),
    /// The setting that is missing.
    Missing(String),
}

/// A search.
pub(crate) struct WebQuery {
    pub(crate) text: String,
    pub(crate) max_results: usize,
    pub(crate) domains: Domains,
}

impl WebSearch {
    pub(crate) fn name(&self) -> &'static str {
        match self.service {
            SearchService::Searxng { .. } => "searxng",
            SearchService::Brave { .. } => "brave",
            SearchService::Command { .. } => "command",
        }
    }

    /// The permission that the search needs: the network, with the service's host or the command's name as the target.
    pub(crate) fn need(&self, query: &WebQuery) -> anyhow::Result<Need> {
        match &self.service {
            SearchService::Searxng { .. } | SearchService::Brave { .. } => {
                Ok(self.http.need(&self.request(query, None)?))
            }
            SearchService::Command { command } => {
                let program = command.first().context("the command is empty")?;
                let name = program.rsplit('/').next().unwrap_or(program);
                let reason = format!("search by the configured command for {:?}", query.text);
                Ok(Need::new(Category::Network, name).because(reason))
            }
        }
    }

    /// All results of the service, unfiltered.
    ///
    /// # Errors
    /// No answer, an unreadable answer, or a refusal. The message says what to do.
    pub(crate) async fn run(
        &self,
        query: &WebQuery,
        environment: &Environment,
        cx: &Cx,
    ) -> anyhow::Result<Vec<WebResult>> {
        let key = match &self.service {
            SearchService::Searxng { .. } => None,
            SearchService::Brave { key, .. } => Some(key.read().await?),
            SearchService::Command { command } => return self.run_command(command, query, environment, cx).await,
        };
        let request = self.request(query, key)?;
        let limits = HttpLimits { timeout: self.timeout, max_bytes: MAX_BYTES, ..HttpLimits::default() };
        let response =
            self.http.send(request, limits, &Fetching::new(cx), &cx.cancel).await.map_err(ToolError::from)?;
        match (&self.service, response.status) {
            (_, 200) => {}
            (SearchService::Searxng { url }, 403) => bail!(
                "{url} answers 403 Forbidden: an instance gives results to programs only if its settings.yml names \
                 json in search.formats"
            ),
            (_, 429) => bail!("the search service limits requests (429): try again later"),
            _ => bail!("the search service says {}{}", status(&response), answers::complaint(&response.body)),
        }
        match response.ending {
            BodyEnding::Whole => {}
            BodyEnding::Stopped => return Err(ToolError::Cancelled.into()),
            BodyEnding::TooLong => bail!("the answer of the search service is over {MAX_BYTES} bytes"),
            BodyEnding::TimedOut => bail!("the answer of the search service took over {} ms", self.timeout.as_millis()),
            BodyEnding::Broken(reason) => bail!("the answer of the search service broke off: {reason}"),
        }
        match self.service {
            SearchService::Brave { .. } => answers::brave(&response.body),
            SearchService::Searxng { .. } | SearchService::Command { .. } => answers::searxng(&response.body),
        }
        .context("the answer of the search service cannot be read")
    }

    fn request(&self, query: &WebQuery, key: Option<String>) -> anyhow::Result<HttpRequest> {
        let text = query.domains.with_operators(&query.text);
        let mut headers = vec![("Accept".to_owned(), "application/json".to_owned())];
        let url = match &self.service {
            SearchService::Searxng { url } => {
                let mut url = url.clone();
                url.path_segments_mut()
                    .map_err(|()| ToolError::Failed(format!("{} is no base", self.name())))?
                    .pop_if_empty()
                    .push("search");
                url.query_pairs_mut().append_pair("q", &text).append_pair("format", "json");
                url
            }
            SearchService::Brave { url, .. } => {
                headers.extend(key.map(|key| ("X-Subscription-Token".to_owned(), key)));
                let mut url = url.clone();
                url.query_pairs_mut()
                    .append_pair("q", &text)
                    .append_pair("count", &ASK_FOR.to_string())
                    .append_pair("text_decorations", "false");
                url
            }
            SearchService::Command { .. } => bail!("a command makes no request"),
        };
        Ok(HttpRequest::new("GET", url.as_str(), &headers, None)?)
    }

    async fn run_command(
        &self,
        command: &[String],
        query: &WebQuery,
        environment: &Environment,
        cx: &Cx,
    ) -> anyhow::Result<Vec<WebResult>> {
        let text = query.domains.with_operators(&query.text);
        // A query that begins with a dash and is a whole argument would be parsed as an option.
        let text = if text.starts_with('-') { format!(" {text}") } else { text };
        let fill = |argument: &String| {
            let number = ASK_FOR.to_string();
            argument.replace("{max_results}", &number).replace("{query}", &text)
        };
        let program = command.first().context("the command is empty")?;
        let arguments: Vec<String> = command[1..].iter().map(fill).collect();
        let mut run = ProcessCommand::new(program, &cx.cwd, environment.clone()).args(&arguments);
        run.timeout = Some(self.timeout);
        run.started_for = Some(StartedFor::call(cx, &cx.chain));
        run.keep = MAX_BYTES;
        let finished = process::run(run, &cx.cancel, |_, _| {})
            .await
            .with_context(|| format!("can't run {program}, the command that searches"))?;
        let complaint = finished.stderr.to_text();
        match (finished.ending, finished.code) {
            (ProcessEnding::Exited, Some(0)) => {}
            (ProcessEnding::Exited, code) => {
                let code = code.map_or("by a signal".to_owned(), |code| format!("with status {code}"));
                bail!("{program}, the command that searches, ended {code}: {}", complaint.trim());
            }
            (ProcessEnding::TimedOut, _) => bail!("{program} took over {} ms", self.timeout.as_millis()),
            (ProcessEnding::Cancelled, _) => return Err(ToolError::Cancelled.into()),
        }
        answers::command(finished.stdout.to_text().as_bytes())
            .with_context(|| format!("what {program} printed cannot be read"))
    }
}

impl SearchKey {
    async fn read(&self) -> anyhow::Result<String> {
        match self {
            Self::Value(key) => Ok(key.clone()),
            Self::File(path) => {
                let file = path.clone();
                let key = tokio::task::spawn_blocking(move || files::read_text(&file, MAX_KEY))
                    .await?
                    .with_context(|| format!("can't read the key of the search service from {}", path.display()))?;
                Ok(key.trim().to_owned())
            }
            Self::Missing(what) => bail!("the search service needs a key: {what}"),
        }
    }
}

fn status(response: &HttpResponse) -> String {
    match response.status_text() {
        Some(text) => format!("{} {text}", response.status),
        None => response.status.to_string(),
    }
}
