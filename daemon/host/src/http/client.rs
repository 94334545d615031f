//! The underlying clients, which connect, encrypt and decompress.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use rustls::ClientConfig;
use rustls::RootCertStore;
use rustls::crypto::CryptoProvider;
use rustls_platform_verifier::BuilderVerifierExt;

use super::guard::Guard;
use super::resolve::{AddressLookup, GuardedResolver};

const CONNECT: Duration = Duration::from_secs(10);
/// Limits of one response's headers: total size and number.
const HEADER_BYTES: u32 = 64 * 1024;
const HEADERS: usize = 128;
/// Rarely used ports are evicted; each client keeps only a few idle connections.
const MAX_CLIENTS: usize = 16;

/// One client per port: a resolver gets only a name, but what may be reached depends on the port.
pub(super) struct Clients {
    lookup: Arc<dyn AddressLookup>,
    user_agent: String,
    made: Mutex<Made>,
}

struct Made {
    guard: Arc<Guard>,
    /// Reads the system's certificates, so it is created for the first request and not at start.
    tls: Option<ClientConfig>,
    by_port: HashMap<u16, reqwest::Client>,
}

impl Clients {
    pub(super) fn new(lookup: Arc<dyn AddressLookup>, guard: Guard, user_agent: String) -> Self {
        let made = Made { guard: Arc::new(guard), tls: None, by_port: HashMap::new() };
        Self { lookup, user_agent, made: Mutex::new(made) }
    }

    pub(super) fn guard(&self) -> Arc<Guard> {
        self.made.lock().guard.clone()
    }

    /// Drops connections that another guard has allowed.
    pub(super) fn set_guard(&self, guard: Guard) {
        let mut made = self.made.lock();
        made.guard = Arc::new(guard);
        made.by_port.clear();
    }

    pub(super) async fn for_port(self: &Arc<Self>, port: u16) -> Result<reqwest::Client, String> {
        if let Some(client) = self.made.lock().by_port.get(&port) {
            return Ok(client.clone());
        }
        let clients = self.clone();
        let make = move || clients.make(port);
        tokio::task::spawn_blocking(make).await.map_err(|error| error.to_string())?
    }

    /// The first call blocks briefly.
    fn make(&self, port: u16) -> Result<reqwest::Client, String> {
        let known = self.made.lock().tls.clone();
        let tls = known.map_or_else(tls, Ok)?;
        let mut made = self.made.lock();
        // Another request may have been first; its TLS sessions can then be resumed.
        let tls = made.tls.get_or_insert(tls).clone();
        if let Some(client) = made.by_port.get(&port) {
            return Ok(client.clone());
        }
        let resolver = GuardedResolver { lookup: self.lookup.clone(), guard: made.guard.clone(), port };
        let client = reqwest::Client::builder()
            .tls_backend_preconfigured(tls)
            // A proxy would resolve names itself and bypass the guard.
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .dns_resolver(Arc::new(resolver))
            .connect_timeout(CONNECT)
            .pool_idle_timeout(Duration::from_secs(15))
            .pool_max_idle_per_host(2)
            .http1_max_headers(HEADERS)
            .http2_max_header_list_size(HEADER_BYTES)
            .referer(false)
            .user_agent(&self.user_agent)
            .build()
            .map_err(|error| super::chain(&error))?;
        if made.by_port.len() >= MAX_CLIENTS {
            made.by_port.clear();
        }
        made.by_port.insert(port, client.clone());
        Ok(client)
    }
}

/// Trusts the system's certificate authorities. Blocks briefly to read their certificates.
pub(super) fn tls() -> Result<ClientConfig, String> {
    let provider: Arc<CryptoProvider> = Arc::new(rustls::crypto::ring::default_provider());
    let builder = || {
        let builder = ClientConfig::builder_with_provider(provider.clone());
        builder.with_safe_default_protocol_versions().map_err(|error| error.to_string())
    };
    let mut config = match builder()?.with_platform_verifier() {
        Ok(builder) => builder.with_no_client_auth(),
        Err(error) => {
            // Plain HTTP works without certificates; HTTPS then reports an unknown issuer.
            tracing::warn!(%error, "the system has no certificates to trust: HTTPS will not work");
            builder()?.with_root_certificates(RootCertStore::empty()).with_no_client_auth()
        }
    };
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}
