//! The address of a WebSocket.

use std::net::IpAddr;

use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::http::Request;

pub(crate) struct WebSocketAddress {
    pub(crate) request: Request<()>,
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) is_tls: bool,
}

impl WebSocketAddress {
    /// # Errors
    /// Why it is not the address of a WebSocket.
    pub(crate) fn parse(url: &str) -> Result<Self, String> {
        let request = url.into_client_request().map_err(|error| format!("{url:?}: {error}"))?;
        let is_tls = match request.uri().scheme_str() {
            Some("ws") => false,
            Some("wss") => true,
            Some(_) | None => return Err(format!("{url:?} must begin with ws:// or wss://")),
        };
        let host = request.uri().host().ok_or_else(|| format!("{url:?} names no host"))?;
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let port = request.uri().port_u16().unwrap_or(if is_tls { 443 } else { 80 });
        Ok(Self { request, host, port, is_tls })
    }

    /// Whether a token would go over a network unencrypted.
    pub(crate) fn is_in_the_clear(&self) -> bool {
        let is_local = self.host == "localhost" || self.host.parse().is_ok_and(|address: IpAddr| address.is_loopback());
        !self.is_tls && !is_local
    }
}
