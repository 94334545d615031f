//! The page of this daemon: where it is served, and the browsers that are signed in.
//!
//! Without an address in the configuration, the first link is what makes the daemon listen for browsers. Methods
//! cannot reach the transport, so they order that here.

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, oneshot};

use crate::peer::page_sign_ins::{BrowserRecord, PageSignIns};

/// Where the page is served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PageAddress {
    /// Such as `http://127.0.0.1:7346`.
    pub(crate) origin: String,
    pub(crate) address: std::net::SocketAddr,
    pub(crate) tls: bool,
}

/// What the next daemon takes over, so that open pages reconnect.
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
        let stops = |_| "the daemon stops".to_owned();
        let (reply, served) = oneshot::channel();
        self.orders.send(reply).await.map_err(|_| "the daemon stops".to_owned())?;
        served.await.map_err(stops)?
    }

    /// Waits until somebody wants to open the page. Cancel-safe.
    pub(crate) async fn ordered(&self) -> oneshot::Sender<ServedPage> {
        match self.received.lock().await.recv().await {
            Some(order) => order,
            None => std::future::pending().await,
        }
    }
}
