//! The HTTP client of logins. Servers choose the addresses that it is sent to, so it reaches neither this machine nor a
//! private network for a server that is on the internet.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::StreamExt;
use http::StatusCode;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::{ACCEPT, CONTENT_TYPE};
use reqwest::redirect::Policy;
use rmcp::transport::auth::{
    AuthorizationMetadata, OAuthHttpClient, OAuthHttpClientError, OAuthHttpClientFuture, OAuthHttpRedirectPolicy,
    OAuthHttpRequest,
};
use serde_json::Value;
use tokio::net::lookup_host;
use toold_host::http::guard::is_public;
use url::{Host, Url, form_urlencoded};

use crate::client::connect::{error_chain, http_client_builder};

const TIMEOUT: Duration = Duration::from_secs(30);
const MAX_REDIRECTS: usize = 10;
/// The size limit of an answer.
const MAX_BODY: usize = 1 << 20;
/// Characters of a refusal.
const MAX_REFUSAL: usize = 300;
const FORM: &str = "application/x-www-form-urlencoded";

pub(super) struct LoginHttpClient {
    follow: reqwest::Client,
    stop: reqwest::Client,
    client_refused: Arc<AtomicBool>,
}

impl LoginHttpClient {
    /// # Errors
    /// Why there is no client, as a sentence for the user.
    pub(super) async fn new(server: &Url) -> Result<Self, String> {
        let resolver = Arc::new(LoginResolver { may_be_private: is_private(server).await });
        let client = |policy: Policy| {
            let builder = http_client_builder()?.redirect(policy).timeout(TIMEOUT).dns_resolver(resolver.clone());
            builder.build().map_err(|error| error_chain(&error))
        };
        Ok(Self {
            follow: client(Policy::limited(MAX_REDIRECTS))?,
            stop: client(Policy::none())?,
            client_refused: Arc::default(),
        })
    }

    /// Set once the authorization server has answered a request for a token with `invalid_client`.
    pub(super) fn client_refused(&self) -> Arc<AtomicBool> {
        self.client_refused.clone()
    }

    async fn send(&self, request: OAuthHttpRequest) -> Result<http::Response<Vec<u8>>, OAuthHttpClientError> {
        let client = match request.redirect_policy {
            OAuthHttpRedirectPolicy::Follow => &self.follow,
            // Credentials are for the address that they were meant for.
            _ => &self.stop,
        };
        let grant = grant_type(request.request.body());
        let answer = client.execute(reqwest::Request::try_from(request.request)?).await?;
        let mut made = http::Response::builder().status(answer.status());
        if let Some(headers) = made.headers_mut() {
            headers.clone_from(answer.headers());
        }
        let is_refusal = answer.status().is_client_error();
        let mut body = bounded_body(answer).await?;
        if let Some(grant) = grant.filter(|_| is_refusal)
            && refuses_client(&body)
        {
            self.client_refused.store(true, Ordering::Relaxed);
            if grant == "refresh_token" {
                // The token is bound to the client, and so is lost with it; the SDK would try it at every request.
                body = br#"{"error":"invalid_grant"}"#.to_vec();
            }
        }
        Ok(made.body(body)?)
    }

    /// Posts a form, and follows no redirect. Returns the answer in JSON, or null.
    ///
    /// # Errors
    /// Why there is no answer, as a sentence for the user.
    pub(super) async fn post(&self, url: &Url, form: &PostedForm) -> Result<PostedAnswer, String> {
        let body = form_urlencoded::Serializer::new(String::new()).extend_pairs(&form.fields).finish();
        let mut request = self.stop.post(url.clone());
        if let Some((name, password)) = &form.basic {
            // RFC 6749, section 2.3.1.
            let encoded = |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
            request = request.basic_auth(encoded(name), Some(encoded(password)));
        }
        let request = request.header(ACCEPT, "application/json").header(CONTENT_TYPE, FORM).body(body);
        let answer = request.send().await.map_err(|error| error_chain(&error))?;
        let status = answer.status();
        let body = bounded_body(answer).await.map_err(|error| error.to_string())?;
        Ok(PostedAnswer { status, body: serde_json::from_slice(&body).unwrap_or_default() })
    }
}

/// The grant that a request for a token names.
fn grant_type(body: &[u8]) -> Option<String> {
    form_urlencoded::parse(body).find(|(name, _)| name == "grant_type").map(|(_, grant)| grant.into_owned())
}

/// Whether an answer says that the authorization server does not know the client (RFC 6749, section 5.2).
fn refuses_client(body: &[u8]) -> bool {
    serde_json::from_slice::<Value>(body).is_ok_and(|body| body["error"] == "invalid_client")
}

pub(super) struct PostedAnswer {
    pub(super) status: StatusCode,
    pub(super) body: Value,
}

impl PostedAnswer {
    pub(super) fn error(&self) -> &str {
        self.body["error"].as_str().unwrap_or_default()
    }

    /// The status, the error and its description, in a few words.
    pub(super) fn refusal(&self) -> String {
        let description = self.body["error_description"].as_str();
        let description = description.map(|text| format!(": {text}")).unwrap_or_default();
        let text = format!("{} {}{description}", self.status, self.error());
        text.trim_end().chars().take(MAX_REFUSAL).collect()
    }
}

/// A request of a client that identifies itself.
pub(super) struct PostedForm {
    pub(super) fields: Vec<(String, String)>,
    /// The name and password of HTTP Basic.
    pub(super) basic: Option<(String, String)>,
}

impl PostedForm {
    /// The form of a client that identifies itself in one of the ways that the first of these members of the metadata
    /// lists.
    pub(super) fn of_client(
        mut fields: Vec<(String, String)>,
        client_id: Option<&str>,
        client_secret: Option<&str>,
        metadata: &AuthorizationMetadata,
        members: &[&str],
    ) -> Self {
        let Some(id) = client_id else { return Self { fields, basic: None } };
        let (id, secret) = (id.to_owned(), client_secret.map(str::to_owned));
        let Some(secret) = secret else {
            fields.push(("client_id".to_owned(), id));
            return Self { fields, basic: None };
        };
        let methods = members.iter().find_map(|name| metadata.additional_fields.get(*name)?.as_array());
        // HTTP Basic where nothing is said (RFC 8414).
        let takes = |method: &str| methods.is_none_or(|methods| methods.iter().any(|named| named == method));
        if takes("client_secret_basic") || !takes("client_secret_post") {
            return Self { fields, basic: Some((id, secret)) };
        }
        fields.extend([("client_id".to_owned(), id), ("client_secret".to_owned(), secret)]);
        Self { fields, basic: None }
    }
}

async fn bounded_body(answer: reqwest::Response) -> Result<Vec<u8>, OAuthHttpClientError> {
    let mut body = Vec::new();
    let mut chunks = answer.bytes_stream();
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk?;
        if body.len() + chunk.len() > MAX_BODY {
            return Err(format!("the answer is longer than {MAX_BODY} bytes").into());
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

impl OAuthHttpClient for LoginHttpClient {
    fn execute(&self, request: OAuthHttpRequest) -> OAuthHttpClientFuture<'_> {
        Box::pin(self.send(request))
    }
}

/// Whether a server is itself on this machine or in a private network: then its authorization server may be too.
async fn is_private(server: &Url) -> bool {
    let port = server.port_or_known_default().unwrap_or(443);
    let addresses: Vec<IpAddr> = match server.host() {
        Some(Host::Ipv4(address)) => vec![address.into()],
        Some(Host::Ipv6(address)) => vec![address.into()],
        Some(Host::Domain(name)) => match lookup_host((name, port)).await {
            Ok(found) => found.map(|address| address.ip()).collect(),
            Err(_) => Vec::new(),
        },
        None => Vec::new(),
    };
    addresses.iter().any(|address| !is_public(*address))
}

struct LoginResolver {
    may_be_private: bool,
}

impl Resolve for LoginResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let may_be_private = self.may_be_private;
        Box::pin(async move {
            let found = lookup_host((name.as_str(), 0)).await?;
            let good: Vec<SocketAddr> = found.filter(|address| may_be_private || is_public(address.ip())).collect();
            match good.is_empty() {
                false => Ok(Box::new(good.into_iter()) as Addrs),
                true => Err(io::Error::other(format!("{} has no public address", name.as_str())).into()),
            }
        })
    }
}
