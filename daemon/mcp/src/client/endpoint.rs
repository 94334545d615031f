//! Where an MCP server is, and how it is reached.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use serde::Serialize;
use toold_host::secret_text::SecretText;

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub enum ServerEndpoint {
    /// A program, on its stdin and stdout.
    Stdio { program: String, args: Vec<SecretText>, env: BTreeMap<String, SecretText>, cwd: Option<PathBuf> },
    /// A Unix socket that speaks one message a line.
    Socket { path: PathBuf },
    /// Streamable HTTP.
    Http { url: SecretText, headers: BTreeMap<String, SecretText> },
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

    /// The names of the secrets that it uses, sorted.
    pub fn secrets(&self) -> Vec<String> {
        let texts: Vec<&SecretText> = match self {
            Self::Stdio { args, env, .. } => args.iter().chain(env.values()).collect(),
            Self::Http { url, headers } => std::iter::once(url).chain(headers.values()).collect(),
            Self::Socket { .. } | Self::Unusable { .. } => Vec::new(),
        };
        let names: BTreeSet<&str> = texts.into_iter().flat_map(SecretText::secrets).collect();
        names.into_iter().map(str::to_owned).collect()
    }

    pub(super) fn digest(&self) -> String {
        let text = serde_json::to_vec(self).expect("texts and lists of texts have a form in JSON");
        blake3::hash(&text).to_hex().to_string()
    }
}
