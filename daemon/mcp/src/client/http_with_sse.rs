//! The transport of revision 2024-11-05, "HTTP with SSE": one stream of events for everything that the server sends, and
//! a URL that the stream's first event names for everything that the client sends.
//!
//! Later revisions deprecate it, and describe how a client finds out that a server speaks it:
//! <https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#backwards-compatibility>

use std::collections::HashMap;
use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use http::{HeaderName, HeaderValue};
use rmcp::RoleClient;
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::Transport;
use rmcp::transport::streamable_http_client::{StreamableHttpClient, StreamableHttpError};
use toold_engine::redact::without_hidden;
use url::Url;

use super::connect::error_chain;

/// A connection to a server. Requests are made by the client of Streamable HTTP, with its limits and logins.
pub(super) struct HttpWithSse<C> {
    client: C,
    headers: HashMap<HeaderName, HeaderValue>,
    /// Where messages go.
    endpoint: Arc<str>,
    events: BoxStream<'static, Result<ServerEvent, String>>,
}

/// An event of the stream. It ends the stream if it is longer than the client of Streamable HTTP accepts (16 MiB).
struct ServerEvent {
    /// `message` when absent.
    kind: Option<String>,
    data: String,
}

/// Why there is no connection.
pub(super) enum SseFailure {
    /// The server answered the request for a stream with something else, or not at all.
    Refused(StreamableHttpError<reqwest::Error>),
    /// It sends a stream, but not one of this transport; as a sentence about the server.
    Unusable(String),
}

impl<C: StreamableHttpClient<Error = reqwest::Error> + Sync> HttpWithSse<C> {
    /// Opens the stream and waits for its first event, without a time limit. Cancelled by dropping it.
    ///
    /// # Errors
    /// The server does not speak this transport, or wants the messages at another origin.
    pub(super) async fn connect(
        client: C,
        url: &str,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<Self, SseFailure> {
        let unusable = |why: &str| SseFailure::Unusable(why.to_owned());
        let base = Url::parse(url).map_err(|error| SseFailure::Unusable(format!("its URL is not valid: {error}")))?;
        let stream = client.get_stream(url.into(), None, None, None, headers.clone()).await;
        let stream = stream.map_err(SseFailure::Refused)?;
        let mut events = stream.map(|event| match event {
            Ok(event) => Ok(ServerEvent { kind: event.event, data: event.data.unwrap_or_default() }),
            Err(error) => Err(error_chain(&error)),
        });
        let first = events.next().await.ok_or_else(|| unusable("its event stream ended at once"))?;
        let first = first.map_err(|why| SseFailure::Unusable(format!("its event stream broke: {why}")))?;
        if first.kind.as_deref() != Some("endpoint") {
            return Err(unusable("its event stream does not begin with an endpoint"));
        }
        let endpoint = base.join(first.data.trim());
        let endpoint = endpoint.map_err(|error| SseFailure::Unusable(format!("its endpoint is not a URL: {error}")))?;
        if endpoint.origin() != base.origin() {
            // Headers and tokens are for this server alone.
            let named = endpoint.origin().ascii_serialization();
            let named = without_hidden(&named).into_owned();
            return Err(SseFailure::Unusable(format!("it wants its messages at another place, {named}")));
        }
        Ok(Self { client, headers, endpoint: endpoint.as_str().into(), events: events.boxed() })
    }
}

impl<C: StreamableHttpClient<Error = reqwest::Error> + Sync> Transport<RoleClient> for HttpWithSse<C> {
    type Error = StreamableHttpError<reqwest::Error>;

    fn send(
        &mut self,
        message: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let (client, endpoint, headers) = (self.client.clone(), self.endpoint.clone(), self.headers.clone());
        async move {
            match client.post_message(endpoint, message, None, None, headers).await {
                // Any success accepts the message, and the answer comes in the stream: some servers say so in words.
                Ok(_) | Err(StreamableHttpError::UnexpectedContentType(_)) => Ok(()),
                Err(error) => Err(error),
            }
        }
    }

    /// Cancel-safe. The connection is over when the stream ends: this transport cannot resume it.
    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            let event = match self.events.next().await? {
                Ok(event) => event,
                Err(why) => {
                    tracing::info!(why, "the event stream of an MCP server broke");
                    return None;
                }
            };
            if event.kind.is_some_and(|kind| kind != "message") {
                continue;
            }
            match serde_json::from_str(&event.data) {
                Ok(message) => return Some(message),
                Err(error) => tracing::debug!(%error, "an MCP server sent an event that is no message"),
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.events = futures_util::stream::empty().boxed();
        Ok(())
    }
}
