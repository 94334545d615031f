//! The clients underneath, which connect, encrypt, and undo compression.

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
/// Of one answer's headers, in all, and how many.
const HEADER_BYTES: u32 = 64 * 1024;
const HEADERS: usize = 128;
/// Ports seldom used come and go; each client keeps a few idle connections only.
const MAX_CLIENTS: usize = 16;

/// One client for each port: a resolver is told a name only, and what may be reached depends on the port.
pub(super) struct Clients {
    lookup: Arc<dyn AddressLookup>,
    user_agent: String,
    made: Mutex<Made>,
}

struct Made {
    guard: Arc<Guard>,
    /// Reads the system's certificates, so it is made for the first request and not at start.
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

    /// Their connections go to what another guard has let pass.
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

    /// Blocks for a moment when it is the first.
    fn make(&self, port: u16) -> Result<reqwest::Client, String> {
        let known = self.made.lock().tls.clone();
        let tls = known.map_or_else(tls, Ok)?;
        let mut made = self.made.lock();
        // Another request may have come here first; its sessions can be taken up again.
        let tls = made.tls.get_or_insert(tls).clone();
        if let Some(client) = made.by_port.get(&port) {
            return Ok(client.clone());
        }
        let resolver = GuardedResolver { lookup: self.lookup.clone(), guard: made.guard.clone(), port };
        let client = reqwest::Client::builder()
            .tls_backend_preconfigured(tls)
            // A proxy would resolve names by itself, and see no guard.
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

/// Trusts whom the system trusts. Blocks for a moment: it reads the system's certificates.
pub(super) fn tls() -> Result<ClientConfig, String> {
    let provider: Arc<CryptoProvider> = Arc::new(rustls::crypto::ring::default_provider());
    let builder = || {
        let builder = ClientConfig::builder_with_provider(provider.clone());
        builder.with_safe_default_protocol_versions().map_err(|error| error.to_string())
    };
    let mut config = match builder()?.with_platform_verifier() {
        Ok(builder) => builder.with_no_client_auth(),
        Err(error) => {
            // Plain HTTP works without; HTTPS then says that it knows no issuer.
            tracing::warn!(%error, "the system has no certificates to trust: HTTPS will not work");
            builder()?.with_root_certificates(RootCertStore::empty()).with_no_client_auth()
        }
    };
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}
