//! `[page]`: the daemon's page in a browser.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, bail, ensure};
use http::uri::Authority;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde::Deserialize;
use toold_host::files;

use crate::config::listen::listen_address;
use crate::config::mcp_servers::McpConfig;
use crate::config::{absolute, private_file};

/// Bytes of a certificate's file, and of a key's.
const MAX_PEM: u64 = 1 << 20;

/// `[page]`: the page that `toolctl page` opens in a browser. Browsers sign in with a link that is valid once.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct PageConfig {
    /// Whether the page is served.
    pub enabled: bool,
    /// Serve the page at this address, such as `192.168.1.5:7346` for a phone. Without it, the page is served at
    /// `mcp.listen` if that is set, or else at a loopback address whose port the system chooses when the first link
    /// is made. Takes effect at the next start.
    pub listen: Option<String>,
    /// Serve the page without TLS at an address that other machines can reach. Anyone on the network in between can
    /// read and change it, and so decide for you: set it only where a VPN or a proxy protects the way.
    pub allow_remote: bool,
    /// The file with the certificate and its intermediates, as PEM, to serve the page with TLS at `page.listen`. It is read
    /// again when the configuration is reloaded.
    pub tls_cert: Option<String>,
    /// The file of the certificate's private key, as PEM. Only you may be able to read it.
    pub tls_key: Option<String>,
    /// Host names by which browsers reach the page, in addition to `localhost` and the address itself; links name the
    /// first one.
    pub hosts: Vec<String>,
    /// The user of a proxy on this machine in front of the page, such as `www-data`, as a name or a number. No other user
    /// than you and this one is served. The proxy has to keep others out: the page does not see who is behind it.
    pub proxy_user: Option<String>,
}

impl Default for PageConfig {
    fn default() -> Self {
        Self {
            enabled: true,
            listen: None,
            allow_remote: false,
            tls_cert: None,
            tls_key: None,
            hosts: Vec::new(),
            proxy_user: None,
        }
    }
}

/// The page's own listener.
pub(crate) struct PageListener {
    pub(crate) address: SocketAddr,
    pub(crate) tls: Option<Arc<ServerConfig>>,
}

impl PageConfig {
    /// The listener that `listen` names; `None` without it. Reads the files of TLS.
    ///
    /// # Errors
    /// The key that is wrong, and why.
    pub(crate) fn listener(&self, mcp: &McpConfig, home: Option<&Path>) -> anyhow::Result<Option<PageListener>> {
        let Some(listen) = &self.listen else {
            for (key, file) in [("tls_cert", &self.tls_cert), ("tls_key", &self.tls_key)] {
                ensure!(file.is_none(), "page.{key}: TLS is for page.listen, which is not set");
            }
            return Ok(None);
        };
        let address = listen_address(listen).with_context(|| {
            format!("page.listen: {listen:?} is not an address and port, such as \"127.0.0.1:7346\"")
        })?;
        let is_mcps = address.port() != 0 && mcp.listen.as_deref().and_then(listen_address) == Some(address);
        ensure!(!is_mcps, "page.listen: {address} is already mcp.listen; remove page.listen to serve the page there");
        let tls = self.tls(home)?;
        if tls.is_none() && !address.ip().is_loopback() && !self.allow_remote {
            bail!(
                "page.listen: other machines can reach {address}, so it needs TLS: set page.tls_cert and page.tls_key, \
                 or page.allow_remote = true if a VPN or a proxy protects the way"
            );
        }
        Ok(Some(PageListener { address, tls }))
    }

    /// # Errors
    /// The key that is wrong, and why.
    pub(crate) fn tls(&self, home: Option<&Path>) -> anyhow::Result<Option<Arc<ServerConfig>>> {
        let (cert, key) = match (&self.tls_cert, &self.tls_key) {
            (None, None) => return Ok(None),
            (Some(_), None) => bail!("page.tls_key: missing; the certificate of page.tls_cert needs its key"),
            (None, Some(_)) => bail!("page.tls_cert: missing; the key of page.tls_key needs its certificate"),
            (Some(cert), Some(key)) => (cert, key),
        };
        let path = |text: &str| -> anyhow::Result<PathBuf> { absolute(text, home).map_err(anyhow::Error::msg) };
        let certificates = path(cert).and_then(|path| read_certificates(&path)).context("page.tls_cert")?;
        let private = path(key).and_then(|path| read_key(&path)).context("page.tls_key")?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(certificates, private)
            .context("page.tls_key: the key does not match the certificate of page.tls_cert")?;
        Ok(Some(Arc::new(config)))
    }

    /// Why the section cannot be used.
    pub(crate) fn problem(&self, mcp: &McpConfig, home: Option<&Path>) -> Option<String> {
        let bad_host = self.hosts.iter().find(|host| !is_host_name(host)).map(|host| {
            format!(
                "page.hosts: {host:?} is not a host name or an address, such as \"desk.example\" or \"desk.example:8443\""
            )
        });
        let of_listener = || self.listener(mcp, home).err().or_else(|| self.proxy_user_id().err());
        bad_host.or_else(|| of_listener().map(|error| format!("{error:#}")))
    }

    /// The number of `proxy_user`. May ask a service for it.
    ///
    /// # Errors
    /// There is no such user.
    pub(crate) fn proxy_user_id(&self) -> anyhow::Result<Option<u32>> {
        let Some(user) = &self.proxy_user else { return Ok(None) };
        // A name may consist of digits, so it goes first.
        let id = user_by_name(user).or_else(|| user.parse().ok());
        id.map(Some).with_context(|| format!("page.proxy_user: this machine has no user {user:?}"))
    }
}

#[cfg(target_os = "linux")]
fn user_by_name(name: &str) -> Option<u32> {
    Some(nix::unistd::User::from_name(name).ok()??.uid.as_raw())
}

/// Only on Linux does the daemon distinguish users.
#[cfg(not(target_os = "linux"))]
fn user_by_name(_name: &str) -> Option<u32> {
    None
}

/// A name or an address, with or without a port, that a browser can be sent to.
fn is_host_name(host: &str) -> bool {
    let is_name = |name: &str| {
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
    };
    let of_authority = |host: Authority| {
        let bare = host.host().trim_start_matches('[').trim_end_matches(']');
        let port = host.as_str().strip_prefix(host.host()).unwrap_or_default();
        let has_port = port.is_empty() || host.port_u16().is_some_and(|port| port != 0);
        has_port && !host.as_str().contains('@') && (is_name(bare) || bare.parse::<IpAddr>().is_ok())
    };
    host.parse::<IpAddr>().is_ok() || host.parse::<Authority>().is_ok_and(of_authority)
}

fn read_certificates(file: &Path) -> anyhow::Result<Vec<CertificateDer<'static>>> {
    let text = files::read_named(file, MAX_PEM).with_context(|| format!("can't read {}", file.display()))?;
    let certificates: Vec<_> = CertificateDer::pem_slice_iter(&text)
        .collect::<Result<_, _>>()
        .with_context(|| format!("{} is not PEM", file.display()))?;
    ensure!(!certificates.is_empty(), "{} holds no certificate: expected -----BEGIN CERTIFICATE-----", file.display());
    Ok(certificates)
}

fn read_key(file: &Path) -> anyhow::Result<PrivateKeyDer<'static>> {
    let text = private_file::read(file, MAX_PEM)?;
    PrivateKeyDer::from_pem_slice(&text)
        .with_context(|| format!("{} holds no private key: expected -----BEGIN PRIVATE KEY-----", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_names_and_addresses() {
        for right in ["desk.example", "desk", "desk.example:8443", "192.168.1.5", "::1", "[fe80::1]:8443", "a_b-c:1"] {
            assert!(is_host_name(right), "{right}");
        }
        for wrong in [
            "",
            "*",
            "*.example",
            "https://desk.example",
            "desk.example/page",
            "desk:99999",
            "desk:",
            "desk:0",
            "u@desk",
            "a b",
        ] {
            assert!(!is_host_name(wrong), "{wrong}");
        }
    }
}
