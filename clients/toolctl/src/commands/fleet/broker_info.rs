//! The information that a NATS server sends to each client that connects.

use std::time::Duration;

use anyhow::{Context, bail};
use semver::Version;
use serde::Deserialize;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Time limit of a connection and the first line.
const PATIENCE: Duration = Duration::from_secs(5);
/// Bytes of that line.
const MAX_LINE: u64 = 64 << 10;
const DEFAULT_PORT: u16 = 4222;
/// The first version that keeps a time to live for each message.
pub(super) const OLDEST: Version = Version::new(2, 11, 0);

/// The members of the `INFO` message that matter here.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct BrokerInfo {
    pub(super) version: String,
    pub(super) jetstream: bool,
    pub(super) tls_required: bool,
    pub(super) tls_available: bool,
    pub(super) auth_required: bool,
}

impl BrokerInfo {
    /// Connects, reads the first message, which a server sends before TLS begins, and leaves.
    pub(super) async fn of(server: &str) -> anyhow::Result<Self> {
        let address = address(server);
        let asked = async {
            let stream = TcpStream::connect(&address).await?;
            let mut line = String::new();
            BufReader::new(stream).take(MAX_LINE).read_line(&mut line).await?;
            anyhow::Ok(line)
        };
        let line = timeout(PATIENCE, asked).await.with_context(|| format!("{address} does not answer"))??;
        match line.trim_end().strip_prefix("INFO ") {
            Some(json) => {
                serde_json::from_str(json).with_context(|| format!("{address} says something else than NATS"))
            }
            None => bail!("{address} is not a NATS server"),
        }
    }

    pub(super) fn is_too_old(&self) -> bool {
        Version::parse(&self.version).is_ok_and(|version| version < OLDEST)
    }
}

/// Host and port of an address such as `tls://HOST`.
fn address(server: &str) -> String {
    let rest = server.split_once("://").map_or(server, |(_, rest)| rest).trim_end_matches('/');
    let has_port = rest.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok() && !rest.ends_with(']'));
    if has_port { rest.to_owned() } else { format!("{rest}:{DEFAULT_PORT}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_a_port() {
        let shown = ["nats://h:1", "tls://h", "nats://[::1]", "nats://[::1]:5/"].map(address);
        assert_eq!(shown, ["h:1", "h:4222", "[::1]:4222", "[::1]:5"]);
    }

    #[test]
    fn versions_before_2_11_are_too_old() {
        let of = |version: &str| BrokerInfo { version: version.to_owned(), ..BrokerInfo::default() }.is_too_old();
        assert!(of("2.9.10") && of("2.10.29") && !of("2.11.0") && !of("2.15.1"));
    }
}
