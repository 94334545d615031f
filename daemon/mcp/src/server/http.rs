//! Streamable HTTP, as a service that a listener puts its requests into.

use std::sync::Arc;
use std::time::Duration;

use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use tokio_util::sync::CancellationToken;
use toold_engine::execute::Principal;

use crate::server::{Kind, Mcp, Server};

pub type HttpService = StreamableHttpService<Server, LocalSessionManager>;

/// How requests are served.
pub struct HttpOptions {
    /// Names and addresses by which clients may call this host, each with or without a port.
    pub hosts: Vec<String>,
    /// Origins of web pages that may call, such as `http://localhost:*`.
    pub origins: Vec<String>,
    /// Bytes of one request's body.
    pub max_body: usize,
    /// Sessions of the older revisions that are idle for so long end.
    pub session_idle: Duration,
    /// Fires when all that is open is to end.
    pub stop: CancellationToken,
}

/// A service for requests whose token was checked already. JSON where no stream is needed.
pub fn http_service(mcp: &Arc<Mcp>, principal: Principal, options: HttpOptions) -> HttpService {
    let HttpOptions { hosts, origins, max_body, session_idle, stop } = options;
    let config = StreamableHttpServerConfig::default()
        .with_allowed_hosts(hosts)
        .with_allowed_origins(origins)
        .enforce_origin_validation()
        .with_json_response(true)
        .with_max_request_body_bytes(max_body)
        .with_cancellation_token(stop);
    let mut sessions = LocalSessionManager::default();
    sessions.session_config.keep_alive = Some(session_idle);
    let mcp = mcp.clone();
    let server = move || Ok(mcp.server(Kind::Http, mcp.host.next_connection(), principal, None));
    StreamableHttpService::new(server, Arc::new(sessions), config)
}
