//! What a daemon is mounted with.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;

use crate::connect::Address;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteConfig {
    /// Its tools are called `NAME_tool`: `[a-z][a-z0-9_]*`, at most 32 characters.
    pub name: String,
    pub reach: Reach,
    /// The folder there that calls work in; `~` is the home folder there.
    pub cwd: String,
    pub enabled: bool,
    /// Of a call; `None` for the tool's own.
    pub timeout: Option<Duration>,
    /// Until it is connected and has listed its tools.
    pub start_timeout: Duration,
    /// Globs over its own names of tools; `None` for all.
    pub allow: Option<Vec<String>>,
    pub deny: Vec<String>,
}

/// How a daemon is reached.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub enum Reach {
    /// A program whose stdin and stdout are a connection to it, such as `ssh HOST toolctl connect`.
    Command { program: String, args: Vec<String>, env: BTreeMap<String, String> },
    /// A WebSocket, and the file with the token for it.
    WebSocket { url: String, token_file: PathBuf },
    /// Its configuration makes no sense; why, for people.
    Unusable { why: String },
}

impl Reach {
    /// # Errors
    /// An address that is none, or one to which the token would go for all to see; `in_the_clear` allows that.
    pub fn websocket(url: String, token_file: PathBuf, in_the_clear: bool) -> Result<Self, String> {
        let address = Address::read(&url)?;
        if !in_the_clear && address.is_in_the_clear() {
            return Err(format!("the token for {url} would go over the network for all to see: use wss, or ssh"));
        }
        Ok(Self::WebSocket { url, token_file })
    }

    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Command { .. } => "command",
            Self::WebSocket { .. } => "websocket",
            Self::Unusable { .. } => "none",
        }
    }
}

impl RemoteConfig {
    /// Tells one daemon from another that has the same name.
    pub(crate) fn digest(&self) -> String {
        let text = serde_json::to_vec(&(&self.reach, &self.cwd)).expect("texts and lists of texts have a form in JSON");
        blake3::hash(&text).to_hex().to_string()
    }
}
