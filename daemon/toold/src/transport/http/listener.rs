//! The addresses where HTTP clients connect.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use rustls::ServerConfig;
use tokio::net::TcpListener;

use crate::config::Config;
use crate::config::page::PageListener;
use crate::config::paths::DaemonPaths;
use crate::lifecycle::page_access::PageAddress;
use crate::transport::ClientServer;
use crate::transport::http::connections::Connections;
use crate::transport::http::page::{PageGate, PageSite};
use crate::transport::http::tokens::Tokens;
use crate::transport::http::{HttpGate, MCP, RPC, TokenGate};

/// Connections at one time.
const MAX_CONNECTIONS: usize = 256;
/// Sessions of the older revisions at one time, when the configuration does not say.
const MAX_SESSIONS: usize = 128;
/// A client has so long to send a request's body, and as long to begin its next request, when the configuration does
/// not say.
const REQUEST_WAIT: Duration = Duration::from_secs(20);

/// Where HTTP clients connect: those with a token, browsers at the page, or both.
pub struct HttpSocket {
    listener: std::net::TcpListener,
    address: SocketAddr,
    tokens: Option<TokenListener>,
    page: Option<PageSite>,
    request_wait: Duration,
}

/// For clients with a token.
pub(super) struct TokenListener {
    pub(super) tokens: Tokens,
    pub(super) hosts: Vec<String>,
    pub(super) origins: Vec<String>,
    pub(super) max_sessions: usize,
}

impl HttpSocket {
    /// Binds the address that `mcp.listen` names; `None` when it names none. Browsers find the page there, unless it
    /// has an address of its own.
    ///
    /// # Errors
    /// It is no address, is taken, or other machines reach it and `allow_remote` is not set; a token's file
    /// cannot be read or is open to others.
    pub fn bind(config: &Config, places: &DaemonPaths) -> anyhow::Result<Option<Self>> {
        let (mcp, page) = (&config.mcp, &config.page);
        let Some(address) = mcp.address()? else { return Ok(None) };
        let tokens = Tokens::read(places)?;
        let (listener, address) = listen_at(address)?;
        let mut hosts: Vec<String> = ["localhost", "127.0.0.1", "::1"].map(str::to_owned).to_vec();
        hosts.extend(mcp.hosts.iter().cloned());
        if mcp.allow_remote && !address.ip().is_unspecified() {
            hosts.push(address.ip().to_string());
        }
        // A section that is wrong may have asked for TLS.
        let is_here = page.listener(mcp, places.home.as_deref()).is_ok_and(|listener| listener.is_none());
        let serves_page = is_here && (address.ip().is_loopback() || page.allow_remote);
        Ok(Some(Self {
            listener,
            address,
            tokens: Some(TokenListener {
                tokens,
                hosts,
                origins: mcp.origins.clone(),
                max_sessions: mcp.max_sessions.unwrap_or(MAX_SESSIONS),
            }),
            page: serves_page.then(|| PageSite::new(None)),
            request_wait: mcp.body_timeout_ms.map_or(REQUEST_WAIT, Duration::from_millis),
        }))
    }

    /// Binds the address that `page.listen` names; `None` when it names none, or the page is turned off.
    ///
    /// # Errors
    /// It is no address, is taken, or must not be listened on; the files of TLS are wrong.
    pub fn bind_page(config: &Config, places: &DaemonPaths) -> anyhow::Result<Option<Self>> {
        if !config.page.enabled {
            return Ok(None);
        }
        let Some(PageListener { address, tls }) = config.page.listener(&config.mcp, places.home.as_deref())? else {
            return Ok(None);
        };
        Self::for_page(address, tls).map(Some)
    }

    /// Binds a port of the loopback address for the page; any free one for 0.
    ///
    /// # Errors
    /// It is taken.
    pub fn bind_page_locally(port: u16) -> anyhow::Result<Self> {
        Self::for_page(SocketAddr::from((Ipv4Addr::LOCALHOST, port)), None)
    }

    fn for_page(address: SocketAddr, tls: Option<Arc<ServerConfig>>) -> anyhow::Result<Self> {
        let (listener, address) = listen_at(address)?;
        Ok(Self { listener, address, tokens: None, page: Some(PageSite::new(tls)), request_wait: REQUEST_WAIT })
    }

    /// Where MCP clients connect.
    pub fn mcp_url(&self) -> String {
        format!("http://{}{MCP}", self.address)
    }

    /// Where native clients connect.
    pub fn rpc_url(&self) -> String {
        format!("ws://{}{RPC}", self.address)
    }

    pub(crate) fn port(&self) -> u16 {
        self.address.port()
    }

    /// Where browsers find the page; `None` when they don't find it here.
    pub(crate) fn page_address(&self) -> Option<PageAddress> {
        self.page.as_ref().map(|page| PageAddress { address: self.address, tls: page.has_tls() })
    }

    /// Accepts clients until the daemon stops.
    pub async fn accept(self, clients: ClientServer) {
        let listener = match TcpListener::from_std(self.listener) {
            Ok(listener) => listener,
            Err(error) => return tracing::error!(%error, "can't accept HTTP clients"),
        };
        let stop = clients.services.lifecycle.stopping();
        let max_body = clients.services.limits.max_message;
        let gate = Arc::new(HttpGate {
            tokens: self.tokens.map(|tokens| TokenGate::new(tokens, &clients, max_body)),
            page: self.page.map(|page| PageGate::new(page, &clients)),
            clients,
            max_body,
            request_wait: self.request_wait,
            stop: stop.clone(),
        });
        let mut connections = Connections::new(MAX_CONNECTIONS);
        loop {
            let accepted = tokio::select! {
                biased;
                () = stop.cancelled() => return,
                accepted = listener.accept() => accepted,
            };
            match accepted {
                Ok((stream, _)) => {
                    let place = tokio::select! {
                        biased;
                        () = stop.cancelled() => return,
                        place = connections.place() => place,
                    };
                    let (gate, stop) = (gate.clone(), stop.clone());
                    gate.clients
                        .services
                        .lifecycle
                        .tracker()
                        .clone()
                        .spawn(async move { gate.serve(stream, stop, place).await });
                }
                Err(error) => {
                    // Out of descriptors or memory: the next try may fare better, and must not spin.
                    tracing::warn!(%error, "can't accept an HTTP client");
                    tokio::select! {
                        () = stop.cancelled() => return,
                        () = tokio::time::sleep(Duration::from_millis(100)) => {}
                    }
                }
            }
        }
    }
}

fn listen_at(address: SocketAddr) -> anyhow::Result<(std::net::TcpListener, SocketAddr)> {
    let listener = std::net::TcpListener::bind(address).with_context(|| format!("can't listen on {address}"))?;
    listener.set_nonblocking(true)?;
    let address = listener.local_addr()?;
    Ok((listener, address))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::mcp_servers::McpConfig;

    fn config(listen: &str) -> Config {
        let mcp = McpConfig { listen: Some(listen.to_owned()), ..McpConfig::default() };
        Config { mcp, ..Config::default() }
    }

    #[test]
    fn only_loopback_is_bound_unless_told_otherwise() {
        let dir = tempfile::tempdir().unwrap();
        let places = DaemonPaths { config: dir.path().into(), state: dir.path().into(), home: None };
        let refused = |listen| format!("{:#}", HttpSocket::bind(&config(listen), &places).err().unwrap());
        assert!(refused("0.0.0.0:0").contains("allow_remote"));
        assert!(refused("example.com:1").contains("not an address"));
        let bound = HttpSocket::bind(&config("localhost:0"), &places).unwrap().unwrap();
        assert!(bound.address.ip().is_loopback() && bound.address.port() != 0);
        assert!(bound.page.is_some());
        let mut remote = config("0.0.0.0:0");
        remote.mcp.allow_remote = true;
        assert!(HttpSocket::bind(&remote, &places).unwrap().unwrap().page.is_none(), "the page needs its own word");
        assert!(HttpSocket::bind(&Config::default(), &places).unwrap().is_none());
    }
}
