//! Logins at remote servers, by OAuth 2.1 as revisions 2025-11-25 and 2026-07-28 have it. One login serves every caller.
//!
//! A server that refuses a request says how to log in ([`challenge`]). A person begins a login and opens its page;
//! [`authorization`] prepares that, and exchanges what the page redirects to for tokens. [`stored`] keeps these as
//! secrets, [`revocation`] gives them back, [`http_client`] makes the requests. The protocol itself is that of the
//! SDK. [`unattended`] gets tokens without a person.

mod authorization;
pub(super) mod challenge;
mod http_client;
mod revocation;
mod stored;
mod unattended;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;
use rmcp::transport::auth::{AuthorizationCallback, AuthorizationManager, OAuthClientConfig};
use tokio::time::{Instant, timeout};
use toold_engine::time::rfc3339;
use toold_host::secret_text::SecretText;
use toold_host::secrets::{SecretError, SecretStore};
use toold_mounts::config::{MountConfig, MountKey};
use toold_proto::mcp::{McpLogin, McpLoginBegun, McpLoginState};
use url::Url;

use super::connect::error_chain;
use super::endpoint::{OAuthSettings, ServerEndpoint};
use challenge::{ChallengeKind, LoginChallenge};
use http_client::LoginHttpClient;
use stored::LoginStore;

/// How long a person may take.
const LOGIN_TIMEOUT: Duration = Duration::from_secs(15 * 60);
/// Logins that wait for a person; a further one replaces the oldest.
const MAX_PENDING: usize = 16;

/// How long the secrets may take to be read for a list.
const STATUS_TIMEOUT: Duration = Duration::from_secs(2);

/// The logins of one daemon.
pub(super) struct ServerLogins {
    secrets: Arc<SecretStore>,
    /// The last refusal of each server.
    challenges: Mutex<HashMap<MountKey, LoginChallenge>>,
    /// Servers with a login that no connection uses yet: what refuses an older connection does not refuse that login.
    unused: Mutex<HashSet<MountKey>>,
    /// By their `state`, which is random and comes back with the redirect.
    pending: Mutex<HashMap<String, PendingLogin>>,
    /// For each login that is in use, whether its authorization server has refused the client.
    client_refused: Mutex<HashMap<MountKey, Arc<AtomicBool>>>,
}

struct PendingLogin {
    server: MountKey,
    manager: AuthorizationManager,
    client_refused: Arc<AtomicBool>,
    /// The configuration names no client: each login registers one.
    is_registered: bool,
    began: Instant,
}

/// A login that is forgotten here.
pub struct EndedLogin {
    /// Why its tokens may stay valid until they expire; as a sentence for the user.
    pub not_revoked: Option<String>,
}

/// Why a login did not take place, as a sentence for the user.
#[derive(Debug, thiserror::Error)]
pub enum LoginError {
    #[error(transparent)]
    Secrets(#[from] SecretError),
    #[error("{0}")]
    Refused(String),
    /// The authorization server does not know the client that it has just registered. The next login registers another one.
    #[error("{0}")]
    ClientRefused(String),
}

impl ServerLogins {
    pub(super) fn new(secrets: Arc<SecretStore>) -> Self {
        Self {
            secrets,
            challenges: Mutex::default(),
            unused: Mutex::default(),
            pending: Mutex::default(),
            client_refused: Mutex::default(),
        }
    }

    /// The access to a server for which nobody logs in; `None` while it has not said where tokens come from.
    ///
    /// # Errors
    /// Why there is no token.
    pub(super) async fn access(
        &self,
        server: &MountKey,
        url: &str,
        oauth: &OAuthSettings,
    ) -> Result<Option<AuthorizationManager>, String> {
        let challenge = self.challenges.lock().get(server).cloned();
        let secret = match &oauth.client_secret {
            Some(secret) => Some(self.secrets.fill(secret).await.map_err(|error| error.to_string())?),
            None => None,
        };
        unattended::access(url, oauth, secret, challenge.as_ref()).await
    }

    /// Remembers why a server refused the token of [`access`](Self::access). Returns what to do about it.
    pub(super) fn explain_unattended(&self, server: &MountKey, challenge: LoginChallenge) -> String {
        let name = &server.1;
        let text = match &challenge.kind {
            ChallengeKind::Login => format!("it refuses the token that [mcp.servers.{name}.oauth] gets"),
            ChallengeKind::Scope(scopes) => format!(
                "its token lacks the scope {}: add it to `scopes` in [mcp.servers.{name}.oauth]",
                scopes.join(" ")
            ),
        };
        self.challenges.lock().insert(server.clone(), challenge);
        text
    }

    /// The access to a server that somebody has logged in to; `None` for others. The metadata of its authorization server
    /// is fetched again: a login at another one is void.
    ///
    /// # Errors
    /// The authorization server cannot be reached, or what is stored cannot be used.
    pub(super) async fn resume(&self, server: &MountKey, url: &str) -> Result<Option<AuthorizationManager>, String> {
        let store = LoginStore::new(&self.secrets, server, url);
        self.unused.lock().remove(server);
        // A server that needs no login is reached all the same; one that does says so.
        let Ok(Some(login)) = store.read().await else { return Ok(None) };
        let url = Url::parse(url).map_err(|error| format!("{url:?} is not a URL: {error}"))?;
        let http = LoginHttpClient::new(&url).await?;
        self.client_refused.lock().insert(server.clone(), http.client_refused());
        let resumed = async {
            let mut manager = AuthorizationManager::new_with_oauth_http_client(url, Arc::new(http)).await?;
            manager.set_credential_store(store);
            if !manager.initialize_from_store().await? {
                return Ok(None);
            }
            let mut client = OAuthClientConfig::new(login.client_id().to_owned(), login.redirect_uri.clone());
            client.client_secret = login.client_secret.clone();
            manager.configure_client(client)?;
            Ok(Some(manager))
        };
        resumed
            .await
            .map_err(|error: rmcp::transport::AuthError| format!("can't use its login: {}", error_chain(&error)))
    }

    /// Remembers why a server refused a request. Returns what to do about it, as a sentence for a person or a model.
    pub(super) async fn explain(
        &self,
        server: &MountKey,
        url: Option<&str>,
        oauth: &OAuthSettings,
        challenge: LoginChallenge,
    ) -> String {
        let name = &server.1;
        let login = match url {
            Some(url) => LoginStore::new(&self.secrets, server, url).read().await,
            None => Ok(None),
        };
        let refused = self.client_refused.lock().get(server).is_some_and(|refused| refused.load(Ordering::Relaxed));
        let text = match (&challenge.kind, login) {
            (_, Err(SecretError::Locked)) => {
                "it needs a login, and the secrets are locked: run toolctl secrets unlock".to_owned()
            }
            (_, Err(error)) => format!("it needs a login, which can't be read: {error}"),
            (ChallengeKind::Scope(scopes), Ok(Some(login))) if login.has_asked_for(scopes) => format!(
                "its login does not give the scope {}, though it was asked for: the account may not have it",
                scopes.join(" ")
            ),
            (ChallengeKind::Scope(scopes), Ok(_)) => format!(
                "its login lacks the scope {}: run toolctl mcp login {name}, which asks for it",
                scopes.join(" ")
            ),
            (ChallengeKind::Login, Ok(_)) if refused && oauth.client_id.is_some() => format!(
                "its authorization server refuses the client of [mcp.servers.{name}.oauth] (invalid_client): correct \
                 client_id and client_secret, then run toolctl mcp login {name}"
            ),
            (ChallengeKind::Login, Ok(_)) if refused => format!(
                "its authorization server no longer knows toold as its client (invalid_client): run toolctl mcp login \
                 {name}, which registers it again"
            ),
            (ChallengeKind::Login, Ok(_)) => format!("it needs a login: run toolctl mcp login {name}"),
        };
        // Held until the refusal is remembered, so that a login that ends meanwhile forgets it.
        let unused = self.unused.lock();
        if !unused.contains(server) {
            self.challenges.lock().insert(server.clone(), challenge);
        }
        text
    }

    /// Prepares a login: finds the authorization server, and identifies the daemon as its client.
    ///
    /// # Errors
    /// Why that is not possible.
    pub(super) async fn begin(
        &self,
        config: &MountConfig<ServerEndpoint>,
        redirect_uri: &str,
    ) -> Result<McpLoginBegun, LoginError> {
        let ServerEndpoint::Http { url, oauth, .. } = &config.endpoint else {
            return Err(LoginError::Refused("only servers with a url have logins".to_owned()));
        };
        if !oauth.grant.is_attended() {
            return Err(LoginError::Refused("nobody logs in to it: its section names another grant".to_owned()));
        }
        let redirected_to = authorization::check_redirect(redirect_uri).map_err(LoginError::Refused)?;
        if let Some(redirect) = oauth.redirect.as_ref().filter(|redirect| !redirect.allows(&redirected_to)) {
            let name = &config.name;
            return Err(LoginError::Refused(format!(
                "its logins end at {redirect}, as [mcp.servers.{name}.oauth] redirect says: run toolctl mcp login {name}"
            )));
        }
        // Before a person goes to the trouble.
        self.secrets.check_writable().await?;
        let url = self.secrets.fill(url).await?;
        let client_secret = match &oauth.client_secret {
            Some(secret) => Some(self.secrets.fill(secret).await?),
            None => None,
        };
        let key = config.key();
        let challenge = self.challenges.lock().get(&key).cloned();
        let store = LoginStore::new(&self.secrets, &key, &url);
        let prepared = authorization::prepare(&url, oauth, client_secret, redirect_uri, challenge, store).await;
        let prepared = prepared.map_err(LoginError::Refused)?;
        let begun = McpLoginBegun { url: prepared.page, scopes: prepared.scopes, issuer: prepared.issuer };
        let mut pending = self.pending.lock();
        pending.retain(|_, login| login.began.elapsed() < LOGIN_TIMEOUT);
        if pending.len() >= MAX_PENDING
            && let Some(oldest) = pending.iter().min_by_key(|(_, login)| login.began).map(|(state, _)| state.clone())
        {
            pending.remove(&oldest);
        }
        let login = PendingLogin {
            server: key,
            manager: prepared.manager,
            client_refused: prepared.client_refused,
            is_registered: oauth.client_id.is_none(),
            began: Instant::now(),
        };
        pending.insert(prepared.state, login);
        Ok(begun)
    }

    /// Exchanges the code in the URL that the page redirected to, and stores the tokens. Returns the server.
    ///
    /// # Errors
    /// Why there is no login.
    pub(super) async fn finish(&self, redirected_to: &str) -> Result<MountKey, LoginError> {
        let refused = |why: String| LoginError::Refused(why);
        let state = authorization::state_of(redirected_to).map_err(refused)?;
        // It stays until it has succeeded: a forged redirect must not end it.
        let login = self.pending.lock().remove(&state).filter(|login| login.began.elapsed() < LOGIN_TIMEOUT);
        let login = login.ok_or_else(|| {
            refused("this redirect belongs to no login that is waiting: run toolctl mcp login again".to_owned())
        })?;
        let exchanged = async {
            authorization::check_refusal(redirected_to)?;
            let callback =
                AuthorizationCallback::from_redirect_url(redirected_to).map_err(|error| error_chain(&error))?;
            let exchange = login.manager.exchange_code_for_token_with_issuer(
                &callback.code,
                &callback.csrf_token,
                callback.issuer.as_deref(),
            );
            exchange.await.map_err(|error| error_chain(&error))
        };
        if let Err(why) = exchanged.await {
            let name = &login.server.1;
            let error = match (login.client_refused.load(Ordering::Relaxed), login.is_registered) {
                (false, _) => refused(why),
                (true, true) => LoginError::ClientRefused(format!(
                    "the authorization server does not know the client that it has registered (invalid_client): run \
                     toolctl mcp login {name}, which registers another one"
                )),
                (true, false) => refused(format!(
                    "the authorization server refuses the client of [mcp.servers.{name}.oauth] (invalid_client): correct \
                     client_id and client_secret, then run toolctl mcp login {name}"
                )),
            };
            self.pending.lock().insert(state, login);
            return Err(error);
        }
        self.forget_refusals(&login.server);
        Ok(login.server)
    }

    /// For a server with a new login.
    fn forget_refusals(&self, server: &MountKey) {
        // First, since an older connection may be refused at this moment.
        self.unused.lock().insert(server.clone());
        self.challenges.lock().remove(server);
        self.client_refused.lock().remove(server);
    }

    /// Forgets a login, and has its tokens revoked where they came from; `None` when there was no login.
    ///
    /// # Errors
    /// The secrets cannot be read or stored.
    pub(super) async fn end(&self, server: &MountKey) -> Result<Option<EndedLogin>, SecretError> {
        let challenge = self.challenges.lock().remove(server);
        let secret = stored::secret_name(server);
        let Some(json) = self.secrets.get(&secret).await? else { return Ok(None) };
        // First, so that nothing uses it any more.
        self.secrets.remove(&secret).await?;
        let revoked = match serde_json::from_str(&json) {
            Ok(login) => revocation::revoke(&login, challenge.as_ref()).await,
            Err(_) => Err("what was stored can't be read".to_owned()),
        };
        Ok(Some(EndedLogin { not_revoked: revoked.err() }))
    }

    /// The state of a server's login; `None` for a server that has asked for none.
    pub(super) async fn status(&self, server: &MountKey, url: &SecretText) -> Option<McpLogin> {
        let is_refused = self.challenges.lock().contains_key(server);
        let read = async {
            let url = self.secrets.fill(url).await?;
            LoginStore::new(&self.secrets, server, &url).read().await
        };
        // A list of servers does not wait for a person to unlock a keyring.
        let read = async { timeout(STATUS_TIMEOUT, read).await.unwrap_or(Err(SecretError::Locked)) };
        let state = |state| McpLogin { state, issuer: None, client_id: None, scopes: Vec::new(), expires: None };
        match read.await {
            Ok(None) if !is_refused => None,
            Ok(None) => Some(state(McpLoginState::Required)),
            Err(SecretError::Locked) => Some(state(McpLoginState::Locked)),
            Err(_) => None,
            Ok(Some(login)) => Some(McpLogin {
                issuer: login.credentials.issuer.clone(),
                client_id: Some(login.client_id().to_owned()),
                scopes: login.credentials.granted_scopes.clone(),
                expires: login.expires().map(|seconds| rfc3339(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds))),
                state: if is_refused { McpLoginState::Required } else { McpLoginState::LoggedIn },
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use toold_engine::registry::SourceScope;
    use toold_host::secrets::SecretOptions;

    use super::*;

    /// The server refuses a connection at the moment in which a person's login ends.
    #[tokio::test]
    async fn a_refusal_of_an_older_connection_says_nothing_about_a_new_login() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("secrets.json");
        let secrets = Arc::new(SecretStore::new(SecretOptions { file, bus: None, credentials: None }));
        secrets.unlock("the passphrase of this test").await.unwrap();
        let (server, url): (MountKey, _) = ((SourceScope::Global, "s".to_owned()), "http://127.0.0.1:1/mcp");
        let token = json!({"access_token": "a", "token_type": "Bearer", "expires_in": 3600});
        let credentials =
            json!({"client_id": "c", "token_response": token, "granted_scopes": [], "token_received_at": 1});
        let login = json!({"url": url, "redirect_uri": "http://127.0.0.1:2/", "credentials": credentials});
        secrets.keep(&stored::secret_name(&server), &login.to_string()).await.unwrap();

        let logins = ServerLogins::new(secrets);
        let refuse = async || {
            let challenge = LoginChallenge { header: None, kind: ChallengeKind::Login };
            logins.explain(&server, Some(url), &OAuthSettings::default(), challenge).await
        };
        let state = async || logins.status(&server, &url.into()).await.unwrap().state;
        refuse().await;
        assert_eq!(state().await, McpLoginState::Required);
        logins.forget_refusals(&server);
        refuse().await;
        assert_eq!(state().await, McpLoginState::LoggedIn);
        // The next connection uses it, and cannot be made here.
        assert!(logins.resume(&server, url).await.is_err());
        refuse().await;
        assert_eq!(state().await, McpLoginState::Required);
    }
}
