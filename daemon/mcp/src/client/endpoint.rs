//! Where an MCP server is, and how it is reached.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::PathBuf;

use serde::Serialize;
use toold_host::secret_text::SecretText;
use url::Url;

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
    /// Where a login's page sends the browser back to; any free port of 127.0.0.1 when absent.
    pub redirect: Option<LoginRedirect>,
    pub grant: OAuthGrant,
    /// For [`OAuthGrant::JwtBearer`], the file with the token of the workload; for [`OAuthGrant::IdJag`], that with the
    /// identity token of the person.
    pub assertion_file: Option<PathBuf>,
    pub identity_provider: Option<IdentityProvider>,
}

/// An address of this machine, as far as an authorization server knows it before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LoginRedirect {
    /// `localhost`, `127.0.0.1` or `[::1]`.
    pub host: String,
    /// Any free one when absent.
    pub port: Option<u16>,
    /// `/callback` when absent.
    pub path: Option<String>,
}

impl LoginRedirect {
    /// Reads `HOST`, `HOST:PORT` or `HOST:PORT/PATH`, with or without `http://`.
    ///
    /// # Errors
    /// What was expected, as a sentence for the user.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "oauth: redirect: expected a port, or localhost, localhost:PORT or localhost:PORT/PATH (127.0.0.1 and [::1] \
                 too), not {text:?}"
            )
        };
        let address = text.strip_prefix("http://").unwrap_or(text);
        let (authority, path) = match address.find('/') {
            Some(at) => (&address[..at], Some(&address[at..])),
            None => (address, None),
        };
        let host = ["localhost", "127.0.0.1", "[::1]"].into_iter().find(|host| authority.starts_with(host));
        let host = host.ok_or_else(wrong)?;
        let port = match &authority[host.len()..] {
            "" => None,
            port => {
                let port = port.strip_prefix(':').and_then(|port| port.parse().ok()).filter(|port| *port > 0);
                Some(port.ok_or_else(wrong)?)
            }
        };
        let is_plain = |path: &str| path.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'?' && byte != b'#');
        if path.is_some_and(|path| !is_plain(path)) {
            return Err(wrong());
        }
        Ok(Self { host: host.to_owned(), port, path: path.map(str::to_owned) })
    }

    /// Whether a login that ends there ends where the authorization server expects it.
    pub(super) fn allows(&self, redirect_uri: &Url) -> bool {
        redirect_uri.host_str() == Some(self.host.as_str())
            && self.port.is_none_or(|port| redirect_uri.port() == Some(port))
            && self.path.as_deref().is_none_or(|path| redirect_uri.path() == path)
    }
}

impl fmt::Display for LoginRedirect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.host)?;
        if let Some(port) = self.port {
            write!(f, ":{port}")?;
        }
        f.write_str(self.path.as_deref().unwrap_or_default())
    }
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

    /// Where the page of a login sends the browser back to, if the configuration says so.
    pub(super) fn login_redirect(&self) -> Option<&LoginRedirect> {
        match self {
            Self::Http { oauth, .. } => oauth.redirect.as_ref(),
            Self::Stdio { .. } | Self::Socket { .. } | Self::Unusable { .. } => None,
        }
    }

    pub(super) fn digest(&self) -> String {
        let text = serde_json::to_vec(self).expect("texts and lists of texts have a form in JSON");
        blake3::hash(&text).to_hex().to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redirects_name_an_address_of_this_machine() {
        let allows =
            |redirect: &str, uri: &str| LoginRedirect::parse(redirect).unwrap().allows(&Url::parse(uri).unwrap());
        assert!(allows("localhost", "http://localhost:81/callback") && allows("[::1]:81", "http://[::1]:81/x"));
        assert!(allows("http://localhost:81/a/b", "http://localhost:81/a/b"));
        assert!(
            !allows("localhost", "http://127.0.0.1:81/callback") && !allows("localhost:81", "http://localhost:82/")
        );
        assert!(!allows("127.0.0.1:81/a", "http://127.0.0.1:81/callback"));
        for bad in
            ["a.example", "localhost.example", "localhost:0", "localhost:x", "https://localhost", "localhost/?a", ""]
        {
            assert!(LoginRedirect::parse(bad).is_err(), "{bad}");
        }
        assert_eq!(LoginRedirect::parse("http://localhost:81/a").unwrap().to_string(), "localhost:81/a");
    }
}
