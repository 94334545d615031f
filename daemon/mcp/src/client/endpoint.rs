//! Where an MCP server is, and how it is reached.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Serialize;

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub enum ServerEndpoint {
    /// A program, on its stdin and stdout.
    Stdio { program: String, args: Vec<String>, env: BTreeMap<String, String>, cwd: Option<PathBuf> },
    /// A Unix socket that speaks one message a line.
    Socket { path: PathBuf },
    /// Streamable HTTP.
    Http { url: String, headers: BTreeMap<String, String> },
    /// Its configuration is invalid; the reason as a sentence for the user.
    Unusable { why: String },
}

impl ServerEndpoint {
    pub(super) fn transport(&self) -> &'static str {
        match self {
            Self::Stdio { .. } => "stdio",
            Self::Socket { .. } => "socket",
            Self::Http { .. } => "http",
            Self::Unusable { .. } => "none",
        }
    }

    pub(super) fn digest(&self) -> String {
        let text = serde_json::to_vec(self).expect("texts and lists of texts have a form in JSON");
        blake3::hash(&text).to_hex().to_string()
    }
}
