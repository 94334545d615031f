//! Where a daemon is, and how it is reached.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Serialize;
use toold_host::environment::Environment;

use crate::address::WebSocketAddress;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteEndpoint {
    pub reach: Reach,
    /// The remote working folder of calls; `~` is the home folder there.
    pub cwd: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub enum Reach {
    /// A program whose stdin and stdout are a connection to it, such as `ssh HOST toolctl connect`.
    Command { program: String, args: Vec<String>, env: BTreeMap<String, String> },
    /// A WebSocket, and the file with the token for it.
    WebSocket { url: String, token_file: PathBuf },
    /// Its configuration is invalid; the reason as a sentence for the user.
    Unusable { why: String },
}

/// The shared settings of all mounted daemons.
#[derive(Clone, Debug)]
pub struct RemoteOptions {
    /// The identity of this daemon: mounting itself is refused.
    pub instance: String,
    /// The folder of the files with the last known tools of each.
    pub cache_dir: PathBuf,
    /// The environment of a program that reaches one, in addition to its own `env`.
    pub environment: Environment,
    /// The working folder of such a program.
    pub home: PathBuf,
    /// The prefix of names of remote sessions, so that nobody else can guess them.
    pub secret: [u8; 32],
}

impl Reach {
    /// # Errors
    /// When this is not an address, or the token would go over a network unencrypted, unless
    /// `in_the_clear` allows it.
    pub fn websocket(url: String, token_file: PathBuf, in_the_clear: bool) -> Result<Self, String> {
        let address = WebSocketAddress::parse(&url)?;
        if !in_the_clear && address.is_in_the_clear() {
            return Err(format!("{url} would send the token unencrypted: use wss or ssh, or set in_the_clear = true"));
        }
        Ok(Self::WebSocket { url, token_file })
    }

    pub(crate) fn transport(&self) -> &'static str {
        match self {
            Self::Command { .. } => "command",
            Self::WebSocket { .. } => "websocket",
            Self::Unusable { .. } => "none",
        }
    }
}

impl RemoteEndpoint {
    pub(crate) fn digest(&self) -> String {
        let text = serde_json::to_vec(&(&self.reach, &self.cwd)).expect("texts and lists of texts have a form in JSON");
        blake3::hash(&text).to_hex().to_string()
    }
}
