//! Whether this program and the daemon have the same version, and what to do if not.

use std::io::Write;
use std::time::Duration;

use semver::Version;
use serde_json::Value;
use tokio::time::timeout;
use toold_client::{Client, ClientError};
use toold_proto::PROTOCOL;
use toold_proto::daemon::{DaemonStatus, NoParams};
use toold_proto::error::METHOD_NOT_FOUND;
use toold_proto::method::DaemonGetStatus;

use crate::connection;
use crate::globals::Globals;
use crate::output::{self, DIM, one_line};

const OWN: &str = env!("CARGO_PKG_VERSION");

/// How long a daemon that failed may take to say its version.
const PATIENCE: Duration = Duration::from_secs(2);

/// Adds to an error that a daemon of another version can explain which versions are in use, and what to do.
pub(crate) async fn explain(error: anyhow::Error, globals: &Globals) -> anyhow::Error {
    if !may_come_of_versions(&error) {
        return error;
    }
    match timeout(PATIENCE, daemon_version(globals)).await {
        Ok(Some(daemon)) => match daemon.mismatch() {
            Some(mismatch) => error.context(mismatch),
            None => error,
        },
        Ok(None) | Err(_) => error,
    }
}

/// Prints a note on stderr when the daemon has another version.
pub(crate) fn note(status: &DaemonStatus) -> std::io::Result<()> {
    if status.version == OWN {
        return Ok(());
    }
    let (version, pid) = (one_line(&status.version), status.pid);
    let advice = if is_older(&status.version, OWN) { "; run `toolctl restart` to replace the daemon" } else { "" };
    writeln!(output::stderr(), "{DIM}version mismatch: daemon {version} (pid {pid}), toolctl {OWN}{advice}{DIM:#}")
}

fn may_come_of_versions(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| match cause.downcast_ref() {
        Some(ClientError::Rpc(rpc)) => rpc.code == METHOD_NOT_FOUND || rpc.kind() == "unsupported_protocol",
        Some(ClientError::BadAnswer(_)) => true,
        _ => false,
    })
}

/// The members of a status that a daemon of any version reports.
#[derive(Debug)]
struct DaemonVersion {
    socket: String,
    version: String,
    protocol: u64,
    pid: u64,
}

async fn daemon_version(globals: &Globals) -> Option<DaemonVersion> {
    let socket = connection::socket(globals).ok()?;
    let client = Client::connect(&socket).await.ok()?;
    // As a value: only members that every version has are read.
    let status = client.call_as::<DaemonGetStatus, Value>(NoParams {}).await.ok()?;
    Some(DaemonVersion {
        socket: socket.display().to_string(),
        version: status["version"].as_str()?.to_owned(),
        protocol: status["protocol"].as_u64()?,
        pid: status["pid"].as_u64()?,
    })
}

impl DaemonVersion {
    /// The mismatch, and what to do; `None` when the versions are equal.
    fn mismatch(&self) -> Option<String> {
        let Self { socket, version, protocol, pid } = self;
        let older = *protocol < u64::from(PROTOCOL) || is_older(version, OWN);
        let advice = match older {
            true => "run `toolctl restart` to replace the daemon with this version".to_owned(),
            false => format!("use toolctl {version}"),
        };
        if *protocol != u64::from(PROTOCOL) {
            return Some(format!(
                "protocol mismatch: daemon {version} at {socket} (pid {pid}) speaks protocol {protocol}, toolctl {OWN} speaks \
                 {PROTOCOL}; {advice}"
            ));
        }
        (version != OWN)
            .then(|| format!("version mismatch: daemon {version} at {socket} (pid {pid}), toolctl {OWN}; {advice}"))
    }
}

/// Whether a version comes before another one, by Semantic Versioning; false when one of them is not such a version.
fn is_older(version: &str, other: &str) -> bool {
    matches!((Version::parse(version), Version::parse(other)), (Ok(version), Ok(other)) if version < other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(version: &str, protocol: u64, expected: Option<&str>) {
        let daemon = DaemonVersion { socket: "/s".to_owned(), version: version.to_owned(), protocol, pid: 7 };
        let mismatch = daemon.mismatch();
        assert_eq!(mismatch.is_some(), expected.is_some(), "{mismatch:?}");
        assert!(mismatch.unwrap_or_default().contains(expected.unwrap_or_default()));
    }

    #[test]
    fn the_message_says_which_side_to_replace() {
        let same = u64::from(PROTOCOL);
        check(OWN, same, None);
        check("0.0.1", same, Some("version mismatch: daemon 0.0.1 at /s (pid 7), toolctl"));
        check("0.0.1", same, Some("toolctl restart"));
        check("99.0.0", same, Some("use toolctl 99.0.0"));
        check("99.0.0", same + 1, Some("use toolctl 99.0.0"));
        check(OWN, same - 1, Some("toolctl restart"));
    }

    #[test]
    fn versions_are_compared_by_semantic_versioning() {
        assert!(is_older("0.9.0", "0.10.0"));
        assert!(!is_older("0.10.0", "0.10.0"));
        assert!(!is_older("1.0.0-rc.1", "0.10.0"));
    }
}
