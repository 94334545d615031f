//! Addresses: those to listen on, of `mcp.listen` and `page.listen`, and whether one is of this machine.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// An address and a port. Names are not looked up: `localhost` is the loopback address.
pub(crate) fn listen_address(text: &str) -> Option<SocketAddr> {
    match text.strip_prefix("localhost:") {
        Some(port) => Some(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port.parse().ok()?)),
        None => text.parse().ok(),
    }
}

/// Whether the host of an address is this machine alone: `localhost` or a loopback address.
pub(crate) fn is_this_machine(host: &str) -> bool {
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}
