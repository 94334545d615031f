//! The ways in which a notification reaches a person.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::future::BoxFuture;
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use toold_engine::need::Need;
use toold_engine::tool::ToolError;
use toold_host::desktop;
use toold_host::environment::Environment;
use toold_host::http::guard::Guard;
use toold_host::http::request::HttpRequest;
use toold_host::http::{Http, HttpLimits, Requester, target};
use toold_host::process::{ProcessCommand, ProcessEnding, run};
use toold_host::secret_text::SecretText;
use toold_host::secrets::SecretStore;
use toold_proto::notify::{NotifyResult, NotifyWay};

use crate::config::notify::NotifyConfig;
use crate::config::options::Options;
use crate::config::{program, secrets};
use crate::lifecycle::notify::message::NotificationText;

/// The time limit of each way.
const TIMEOUT: Duration = Duration::from_secs(15);
/// Bytes of a program's error output, or of a server's answer, that are shown.
const MAX_WORDS: usize = 300;

/// The ways that a configuration sets.
pub(super) struct NotifyWays {
    command: Vec<String>,
    desktop: bool,
    post: Option<PostWay>,
    details: Option<bool>,
    allow: bool,
    options: Options,
}

struct PostWay {
    url: String,
    token: Option<SecretText>,
    http: Http,
    secrets: Arc<SecretStore>,
}

impl NotifyWays {
    /// `config` has no errors.
    pub(super) fn new(config: &NotifyConfig, options: &Options, secrets: &Arc<SecretStore>) -> Result<Self, String> {
        let home = options.paths.home.as_deref();
        let mut command = config.command.clone();
        if let Some(name) = command.first_mut() {
            *name = program(name.clone(), home)?;
        }
        let post = config.post.as_deref().map(|text| {
            let url = target::parse(text).map_err(|error| error.to_string())?;
            // A user who names a server means to reach it, also in the local network.
            let place = url.host_str().zip(url.port_or_known_default());
            let guard = match place {
                Some((host, port)) => Guard::default().and(&format!("{host}:{port}"))?,
                None => Guard::default(),
            };
            let token = config.secret_token(&|name| options.variable(name))?;
            Ok::<_, String>(PostWay { url: url.into(), token, http: Http::new(guard), secrets: secrets.clone() })
        });
        Ok(Self {
            command,
            desktop: config.desktop,
            post: post.transpose()?,
            details: config.details,
            allow: config.allow,
            options: options.clone(),
        })
    }

    /// Sends it in all ways at once, and reports how each went. Takes no longer than [`TIMEOUT`] and a second.
    pub(super) async fn send(&self, text: &NotificationText, buttons: Option<&Value>) -> Vec<NotifyResult> {
        let local = if self.details == Some(false) { &text.brief } else { &text.full };
        let posted = if self.details == Some(true) { &text.full } else { &text.brief };
        let command = async {
            let sent = self.run_command(text, local).await;
            (!self.command.is_empty()).then(|| result(NotifyWay::Command, sent))
        };
        let desktop = async {
            match self.desktop {
                true => Some(result(NotifyWay::Desktop, in_time(self.show_on_desktop(text, local)).await)),
                false => None,
            }
        };
        let post = async {
            let post = self.post.as_ref()?;
            Some(result(NotifyWay::Post, in_time(post.send(text, posted, buttons)).await))
        };
        let (command, desktop, post) = tokio::join!(command, desktop, post);
        [command, desktop, post].into_iter().flatten().collect()
    }

    /// Whether notifications may have a button that allows: the server must show the topic to nobody without the token.
    ///
    /// # Errors
    /// Why not, as a sentence for the user.
    pub(super) async fn may_allow(&self) -> Result<bool, String> {
        match &self.post {
            Some(post) if self.allow => in_time(post.is_private()).await.map(|()| true),
            Some(_) | None => Ok(false),
        }
    }

    async fn run_command(&self, text: &NotificationText, words: &str) -> Result<(), String> {
        let Some((program, arguments)) = self.command.split_first() else { return Ok(()) };
        let link = text.link.as_deref().unwrap_or_default();
        let fill = |argument: &String| fill(argument, [("{title}", &text.title), ("{text}", words), ("{link}", link)]);
        let folder = self.options.paths.home.clone().unwrap_or_else(|| "/".into());
        let environment = Environment::inherited(self.options.environment.iter().cloned());
        let mut command = ProcessCommand::new(program, folder, environment).args(arguments.iter().map(fill));
        command.timeout = Some(TIMEOUT);
        let finished = run(command, &CancellationToken::new(), |_, _| {}).await.map_err(|error| error.to_string())?;
        match (finished.ending, finished.code) {
            (ProcessEnding::Exited, Some(0)) => Ok(()),
            (ProcessEnding::TimedOut, _) => Err(format!("{program} took longer than {} s", TIMEOUT.as_secs())),
            (ProcessEnding::Exited | ProcessEnding::Cancelled, code) => {
                let ended = code.map_or("by a signal".to_owned(), |code| format!("with status {code}"));
                Err(with_details(format!("{program} ended {ended}"), &finished.stderr.to_text()))
            }
        }
    }

    async fn show_on_desktop(&self, text: &NotificationText, words: &str) -> Result<(), String> {
        let bus = secrets::session_bus(&self.options)
            .ok_or("the daemon was started without a desktop session: there is no DBUS_SESSION_BUS_ADDRESS")?;
        let body = text.link.iter().fold(words.to_owned(), |words, link| format!("{words}\n{link}"));
        desktop::notify(&bus, &text.title, &body)
            .await
            .map_err(|error| format!("can't show a desktop notification: {error}"))
    }
}

impl PostWay {
    /// Servers of ntfy answer `GET TOPIC/auth` by whether the caller may read the topic.
    async fn is_private(&self) -> Result<(), String> {
        let url = format!("{}/auth", self.url.trim_end_matches('/'));
        let request = HttpRequest::get(&url).map_err(|error| error.to_string())?;
        let limits = HttpLimits { timeout: TIMEOUT, max_bytes: 4096, redirects: 0 };
        let sent = self.http.send(request, limits, &OwnServer, &CancellationToken::new()).await;
        match sent.map_err(|error| error.to_string())?.status {
            401 | 403 => Ok(()),
            200..300 => Err("everybody can read the topic, so deny reading it without the token".to_owned()),
            status => Err(format!("expected 401 or 403 from {url} without the token, but got {status}")),
        }
    }

    async fn send(&self, text: &NotificationText, words: &str, buttons: Option<&Value>) -> Result<(), String> {
        let header = |name: &str, value: String| (name.to_owned(), value);
        let mut headers = vec![
            header("Title", header_text(&text.title)),
            header("Priority", "high".to_owned()),
            header("Tags", "lock".to_owned()),
            header("Content-Type", "text/plain; charset=utf-8".to_owned()),
        ];
        headers.extend(text.link.clone().map(|link| header("Click", link)));
        headers.extend(buttons.map(|buttons| header("Actions", header_text(&buttons.to_string()))));
        if let Some(token) = &self.token {
            let token = self.secrets.fill(token).await.map_err(|error| error.to_string())?;
            headers.push(header("Authorization", format!("Bearer {token}")));
        }
        let request = HttpRequest::new("POST", &self.url, &headers, Some(words.as_bytes().to_vec()));
        let request = request.map_err(|error| error.to_string())?;
        // The text goes to this server and to no other.
        let limits = HttpLimits { timeout: TIMEOUT, max_bytes: 4096, redirects: 0 };
        let sent = self.http.send(request, limits, &OwnServer, &CancellationToken::new()).await;
        let response = sent.map_err(|error| error.to_string())?;
        match response.status {
            200..300 => Ok(()),
            status => {
                let body = String::from_utf8_lossy(&response.body);
                Err(with_details(format!("{} answers {status}", self.url), &body))
            }
        }
    }
}

/// An error, and what the program or the server said about it, if anything.
fn with_details(error: String, said: &str) -> String {
    match said.trim() {
        "" => error,
        said => format!("{error}: {said}"),
    }
}

/// The user's own configuration names the server, so nobody is asked.
struct OwnServer;

impl Requester for OwnServer {
    fn require(&self, _: Need) -> BoxFuture<'_, Result<(), ToolError>> {
        Box::pin(std::future::ready(Ok(())))
    }
}

async fn in_time(work: impl Future<Output = Result<(), String>>) -> Result<(), String> {
    let late = || Err(format!("no answer within {} s", TIMEOUT.as_secs()));
    tokio::time::timeout(TIMEOUT, work).await.unwrap_or_else(|_| late())
}

fn result(way: NotifyWay, sent: Result<(), String>) -> NotifyResult {
    NotifyResult { way, error: sent.err().map(|error| toold_engine::redact::one_line(&error, MAX_WORDS)) }
}

/// The argument with the places filled. A text that is filled in is not searched for places again.
fn fill(argument: &str, places: [(&str, &str); 3]) -> String {
    let mut filled = String::new();
    let mut rest = argument;
    loop {
        let next = places.iter().filter_map(|place| Some((rest.find(place.0)?, place))).min_by_key(|(at, _)| *at);
        let Some((at, (name, value))) = next else { return filled + rest };
        filled.push_str(&rest[..at]);
        filled.push_str(value);
        rest = &rest[at + name.len()..];
    }
}

/// A text as the value of a header: in the encoding of RFC 2047 unless it is ASCII.
fn header_text(text: &str) -> String {
    match text.is_ascii() {
        true => text.to_owned(),
        false => format!("=?UTF-8?B?{}?=", STANDARD.encode(text)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_of_arguments_are_filled_once() {
        let places = [("{title}", "a {text}"), ("{text}", "b"), ("{link}", "")];
        assert_eq!(fill("{title}: {text}{link}!", places), "a {text}: b!");
        assert_eq!(fill("{other} {", places), "{other} {");
    }

    #[test]
    fn header_is_ascii() {
        assert_eq!(header_text("toold: 2"), "toold: 2");
        assert_eq!(header_text("ü"), "=?UTF-8?B?w7w=?=");
    }
}
