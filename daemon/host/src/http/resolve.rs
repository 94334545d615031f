//! Resolves names to addresses that may be reached.
//!
//! The address that is checked is the one that is connected to: the name is not resolved a second time.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use futures_util::future::BoxFuture;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use super::guard::{Guard, kind_of};

/// Looks up the addresses of a name.
pub trait AddressLookup: Send + Sync + 'static {
    fn lookup(&self, host: String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>>;
}

/// Uses the system's resolver, as every other program does.
pub struct SystemLookup;

impl AddressLookup for SystemLookup {
    fn lookup(&self, host: String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
        Box::pin(async move {
            let found = tokio::net::lookup_host((host, 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        })
    }
}

/// A name without an address, or without one that may be reached.
#[derive(Clone, Debug, thiserror::Error)]
pub(super) enum ResolveError {
    #[error("{host} has no address: {reason}")]
    Unknown { host: String, reason: String },
    #[error("{host} is at {address}, which {}, and [network] allow_private does not list it", kind_of(*.address))]
    Private { host: String, address: IpAddr },
}

/// For the connections to one port.
pub(super) struct GuardedResolver {
    pub(super) lookup: Arc<dyn AddressLookup>,
    pub(super) guard: Arc<Guard>,
    pub(super) port: u16,
}

impl Resolve for GuardedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let host = name.as_str().trim_end_matches('.').to_owned();
        let asked = self.lookup.lookup(host.clone());
        let (guard, port) = (self.guard.clone(), self.port);
        Box::pin(async move {
            let addresses = asked.await.map_err(|error| {
                // The system's message describes its internals.
                let reason = error.to_string().replace("failed to lookup address information: ", "");
                ResolveError::Unknown { host: host.clone(), reason }
            })?;
            let good: Vec<SocketAddr> = addresses
                .iter()
                .filter(|address| guard.admits(**address, &host, port))
                .map(|address| SocketAddr::new(*address, port))
                .collect();
            match (good.is_empty(), addresses.first()) {
                (false, _) => Ok(Box::new(good.into_iter()) as Addrs),
                (true, Some(address)) => Err(ResolveError::Private { host, address: *address }.into()),
                (true, None) => Err(ResolveError::Unknown { host, reason: "none was given".into() }.into()),
            }
        })
    }
}
