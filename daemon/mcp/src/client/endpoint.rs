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
    /// Streamable HTTP, or HTTP with SSE as before revision 2025-03-26.
    Http { url: SecretText, headers: BTreeMap<String, SecretText>, oauth: OAuthSettings },
    /// Its configuration is invalid; the reason as a sentence for the user.
    Unusable { why: String },
}

/// How the daemon identifies itself at a server's authorization server, and what it asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct OAuthSettings {
    /// A client that is registered already.
    pub client_id: Option<String>,
    pub client_secret: Option<SecretText>,
    /// The URL of a document that describes the daemon as a client, and is its id where servers accept that.
    pub client_id_url: Option<String>,
    /// When empty, the scopes that the server names.
    pub scopes: Vec<String>,
    pub grant: OAuthGrant,
    /// For [`OAuthGrant::JwtBearer`], the file with the token of the workload; for [`OAuthGrant::IdJag`], that with the
    /// identity token of the person.
    pub assertion_file: Option<PathBuf>,
    pub identity_provider: Option<IdentityProvider>,
}

/// Where an identity token is exchanged, and the daemon's client there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct IdentityProvider {
    pub token_endpoint: String,
    pub client_id: String,
}

/// How the daemon gets tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub enum OAuthGrant {
    /// A person logs in.
    #[default]
    AuthorizationCode,
    /// The registered client itself has access.
    ClientCredentials,
    /// The workload has access, with a token of its platform.
    JwtBearer,
    /// The person has access as the organisation's identity provider decides.
    IdJag,
}

impl OAuthGrant {
    pub(super) fn is_attended(self) -> bool {
        match self {
            Self::AuthorizationCode => true,
            Self::ClientCredentials | Self::JwtBearer | Self::IdJag => false,
        }
    }
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
            Self::Http { url, headers, oauth } => {
                std::iter::once(url).chain(headers.values()).chain(&oauth.client_secret).collect()
            }
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
