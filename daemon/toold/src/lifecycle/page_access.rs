//! The page of this daemon: where it is served, and the browsers that are signed in.
//!
//! Without an address in the configuration, the first link is what makes the daemon listen for browsers. Methods
//! cannot reach the transport, so they order that here.

use std::net::{IpAddr, SocketAddr, UdpSocket};

use http::uri::Authority;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, oneshot};

use crate::peer::page_sign_ins::{BrowserRecord, PageSignIns};

/// Where the page is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PageAddress {
    pub(crate) address: SocketAddr,
    pub(crate) tls: bool,
}

impl PageAddress {
    /// The origin that links name, such as `http://127.0.0.1:7346`. `hosts` are those of the configuration.
    pub(crate) fn origin(&self, hosts: &[String]) -> String {
        let scheme = if self.tls { "https" } else { "http" };
        format!("{scheme}://{}", self.host(hosts.first().map(String::as_str)))
    }

    fn host(&self, named: Option<&str>) -> String {
        let (ip, port) = (self.address.ip(), self.address.port());
        let Some(named) = named else {
            let ip = if ip.is_unspecified() { outward_address().unwrap_or(ip) } else { ip };
            return SocketAddr::new(ip, port).to_string();
        };
        let has_port = named.parse::<Authority>().is_ok_and(|host| host.port().is_some());
        match (has_port, named.parse::<IpAddr>()) {
            (_, Ok(ip)) => SocketAddr::new(ip, port).to_string(),
            (true, Err(_)) => named.to_owned(),
            (false, Err(_)) => format!("{named}:{port}"),
        }
    }
}

/// The address of this machine towards others. Nothing is sent: the system only chooses the way.
fn outward_address() -> Option<IpAddr> {
    let socket = UdpSocket::bind("0.0.0.0:0").ok()?;
    // An address for documentation (RFC 5737), which is nobody's.
    socket.connect("192.0.2.1:9").ok()?;
    Some(socket.local_addr().ok()?.ip())
}

/// The state that the next daemon takes over, so that open pages reconnect.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct PageHandOver {
    local_port: Option<u16>,
    browsers: Vec<BrowserRecord>,
}

/// Where the page is served, or why it is not.
type ServedPage = Result<PageAddress, String>;

pub(crate) struct PageAccess {
    pub(crate) sign_ins: PageSignIns,
    /// The port of the loopback address that the system chose, of this daemon or of the previous one.
    local_port: Mutex<Option<u16>>,
    served: Mutex<Option<ServedPage>>,
    orders: mpsc::Sender<oneshot::Sender<ServedPage>>,
    received: tokio::sync::Mutex<mpsc::Receiver<oneshot::Sender<ServedPage>>>,
}

impl Default for PageAccess {
    fn default() -> Self {
        let (orders, received) = mpsc::channel(8);
        Self {
            sign_ins: PageSignIns::default(),
            local_port: Mutex::default(),
            served: Mutex::default(),
            orders,
            received: tokio::sync::Mutex::new(received),
        }
    }
}

impl PageAccess {
    /// Where the page is served by now.
    pub(crate) fn served(&self) -> Option<ServedPage> {
        self.served.lock().clone()
    }

    pub(crate) fn set_served(&self, served: ServedPage) {
        *self.served.lock() = Some(served);
    }

    pub(crate) fn local_port(&self) -> Option<u16> {
        *self.local_port.lock()
    }

    pub(crate) fn set_local_port(&self, port: u16) {
        *self.local_port.lock() = Some(port);
    }

    /// Whether the configuration says where: browsers could not start the daemon.
    pub(crate) fn is_configured(&self) -> bool {
        self.local_port().is_none() && self.served().is_some_and(|served| served.is_ok())
    }

    pub(crate) fn hand_over(&self) -> PageHandOver {
        PageHandOver { local_port: self.local_port(), browsers: self.sign_ins.records() }
    }

    pub(crate) fn restore(&self, page: PageHandOver) {
        *self.local_port.lock() = page.local_port;
        self.sign_ins.restore(page.browsers);
    }

    /// Where the page is served, once it is.
    ///
    /// # Errors
    /// Why it is not, as a sentence for the user.
    pub(crate) async fn serve(&self) -> ServedPage {
        let (reply, served) = oneshot::channel();
        // Both fail only when the daemon stops.
        let answer = async { self.orders.send(reply).await.ok().and(served.await.ok()) };
        answer.await.unwrap_or_else(|| Err("the daemon is stopping".to_owned()))
    }

    /// Waits until somebody wants to open the page. Cancel-safe.
    pub(crate) async fn ordered(&self) -> oneshot::Sender<ServedPage> {
        match self.received.lock().await.recv().await {
            Some(order) => order,
            None => std::future::pending().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_name_what_a_browser_can_reach() {
        let origin = |address: &str, tls, hosts: &[&str]| {
            let hosts: Vec<String> = hosts.iter().map(|host| (*host).to_owned()).collect();
            PageAddress { address: address.parse().unwrap(), tls }.origin(&hosts)
        };
        assert_eq!(origin("127.0.0.1:7", false, &[]), "http://127.0.0.1:7");
        assert_eq!(origin("0.0.0.0:7", true, &["page.example", "other.example"]), "https://page.example:7");
        assert_eq!(origin("0.0.0.0:7", true, &["page.example:443"]), "https://page.example:443");
        assert_eq!(origin("[::]:7", false, &["fd00::5"]), "http://[fd00::5]:7");
        // A machine without a network has no other address.
        assert!(!origin("0.0.0.0:7", false, &[]).contains("//0.0.0.0") || outward_address().is_none());
    }
}
