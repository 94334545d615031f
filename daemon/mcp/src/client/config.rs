//! What a server is mounted with.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;
use toold_engine::registry::SourceScope;

use super::Key;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerConfig {
    /// Its tools are called `NAME_tool`, as far as the name fits.
    pub name: String,
    /// Who sees its tools.
    pub scope: SourceScope,
    pub reach: Reach,
    pub enabled: bool,
    /// It is stopped when nobody has called it for so long; `None` is never.
    pub idle_timeout: Option<Duration>,
    /// Of a call.
    pub timeout: Option<Duration>,
    /// Until it is connected and has listed its tools.
    pub start_timeout: Duration,
    /// Globs over its own names of tools; `None` for all.
    pub allow: Option<Vec<String>>,
    pub deny: Vec<String>,
}

/// How a server is reached.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub enum Reach {
    /// A program, on its stdin and stdout.
    Stdio { program: String, args: Vec<String>, env: BTreeMap<String, String>, cwd: Option<PathBuf> },
    /// A Unix socket that speaks one message a line.
    Socket { path: PathBuf },
    /// Streamable HTTP.
    Http { url: String, headers: BTreeMap<String, String> },
    /// Its configuration makes no sense; why, for people.
    Unusable { why: String },
}

impl Reach {
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Stdio { .. } => "stdio",
            Self::Socket { .. } => "socket",
            Self::Http { .. } => "http",
            Self::Unusable { .. } => "none",
        }
    }
}

impl ServerConfig {
    pub(crate) fn key(&self) -> Key {
        (self.scope.clone(), self.name.clone())
    }

    /// Tells one server from another that has the same name: what it lists may be served to nobody else's.
    pub(crate) fn digest(&self) -> String {
        let text = serde_json::to_vec(&self.reach).expect("texts and lists of texts have a form in JSON");
        blake3::hash(&text).to_hex().to_string()
    }
}
