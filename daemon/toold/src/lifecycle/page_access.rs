//! The page of this daemon: where it is served, and the browsers that are signed in.
//!
//! Without an address in the configuration, the first link is what makes the daemon listen for browsers. Methods
//! cannot reach the transport, so they order that here.

use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot};

use crate::peer::page_sign_ins::PageSignIns;

/// Where the page is served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PageAddress {
    /// Such as `http://127.0.0.1:7346`.
    pub(crate) origin: String,
    pub(crate) address: std::net::SocketAddr,
    pub(crate) tls: bool,
}

/// Where the page is served, or why it is not.
type ServedPage = Result<PageAddress, String>;

pub(crate) struct PageAccess {
    pub(crate) sign_ins: PageSignIns,
    served: Mutex<Option<ServedPage>>,
    orders: mpsc::Sender<oneshot::Sender<ServedPage>>,
    received: tokio::sync::Mutex<mpsc::Receiver<oneshot::Sender<ServedPage>>>,
}

impl Default for PageAccess {
    fn default() -> Self {
        let (orders, received) = mpsc::channel(8);
        Self {
            sign_ins: PageSignIns::default(),
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
