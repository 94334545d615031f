//! The tokens of a login, as one secret of the daemon.

use std::sync::Arc;

use async_trait::async_trait;
use rmcp::transport::auth::{AuthError, CredentialStore, StoredCredentials};
use serde::{Deserialize, Serialize};
use toold_host::secrets::{SecretError, SecretStore};
use toold_mounts::config::MountKey;

/// The SDK refreshes a token that is valid for less than this, in seconds.
const SDK_MARGIN: u64 = 30;

/// A login as it is stored.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct StoredLogin {
    /// The URL of the server: tokens go nowhere else.
    pub(super) url: String,
    pub(super) redirect_uri: String,
    #[serde(default)]
    pub(super) client_secret: Option<String>,
    /// The scopes that were asked for. Fewer may have been given.
    #[serde(default)]
    asked_for: Vec<String>,
    pub(super) credentials: StoredCredentials,
}

impl StoredLogin {
    pub(super) fn client_id(&self) -> &str {
        &self.credentials.client_id
    }

    /// Whether asking again for these scopes is pointless.
    pub(super) fn has_asked_for(&self, scopes: &[String]) -> bool {
        !scopes.is_empty() && scopes.iter().all(|scope| self.asked_for.contains(scope))
    }

    /// The `access_token` or the `refresh_token`.
    pub(super) fn token(&self, kind: &str) -> Option<String> {
        let token = serde_json::to_value(self.credentials.token_response.as_ref()?).ok()?;
        Some(token[kind].as_str()?.to_owned())
    }

    /// When the access token expires, in seconds since 1970. It is refreshed then, if the server gave a token for that.
    pub(super) fn expires(&self) -> Option<u64> {
        let token = serde_json::to_value(self.credentials.token_response.as_ref()?).ok()?;
        Some(self.credentials.token_received_at? + token["expires_in"].as_u64()?)
    }
}

/// Where the login at one server is stored.
#[derive(Clone)]
pub(super) struct LoginStore {
    secrets: Arc<SecretStore>,
    secret: String,
    url: String,
    /// The identity of the login that is being made.
    identity: Option<LoginIdentity>,
}

/// The client as which the daemon logs in.
#[derive(Clone)]
pub(super) struct LoginIdentity {
    pub(super) redirect_uri: String,
    pub(super) client_secret: Option<String>,
    pub(super) scopes: Vec<String>,
}

/// The name of a server's login among the secrets, which no person can give a secret.
pub(super) fn secret_name((scope, name): &MountKey) -> String {
    let id = blake3::hash(format!("{scope:?}\0{name}").as_bytes()).to_hex();
    format!("login:{}", &id[..32])
}

impl LoginStore {
    pub(super) fn new(secrets: &Arc<SecretStore>, server: &MountKey, url: &str) -> Self {
        Self { secrets: secrets.clone(), secret: secret_name(server), url: url.to_owned(), identity: None }
    }

    /// For a new login.
    pub(super) fn with(self, identity: LoginIdentity) -> Self {
        Self { identity: Some(identity), ..self }
    }

    /// The login, if there is one at this URL.
    ///
    /// # Errors
    /// The secrets cannot be read.
    pub(super) async fn read(&self) -> Result<Option<StoredLogin>, SecretError> {
        let Some(json) = self.secrets.get(&self.secret).await? else { return Ok(None) };
        // One that cannot be read is made again.
        let login: Option<StoredLogin> = serde_json::from_str(&json).ok();
        Ok(login.filter(|login| login.url == self.url && login.credentials.token_response.is_some()))
    }
}

#[async_trait]
impl CredentialStore for LoginStore {
    async fn load(&self) -> Result<Option<StoredCredentials>, AuthError> {
        Ok(self.read().await.map_err(failed)?.map(|login| with_own_margin(login.credentials)))
    }

    async fn save(&self, credentials: StoredCredentials) -> Result<(), AuthError> {
        let login = match (&self.identity, self.read().await.map_err(failed)?) {
            (Some(identity), _) => StoredLogin {
                url: self.url.clone(),
                redirect_uri: identity.redirect_uri.clone(),
                client_secret: identity.client_secret.clone(),
                asked_for: identity.scopes.clone(),
                credentials,
            },
            (None, Some(login)) => StoredLogin { credentials, ..login },
            // It was ended while its token was refreshed.
            (None, None) => return Ok(()),
        };
        let json = serde_json::to_string(&login).map_err(|error| AuthError::CredentialStoreError(error.to_string()))?;
        self.secrets.keep(&self.secret, &json).await.map_err(failed)
    }

    async fn clear(&self) -> Result<(), AuthError> {
        self.secrets.remove(&self.secret).await.map(drop).map_err(failed)
    }

    /// A token that the server has refused for good is not tried again.
    async fn on_refresh_token_rejected(&self, rejected: &StoredCredentials) -> Result<(), AuthError> {
        let is_current = self.load().await?.is_some_and(|current| {
            current.client_id == rejected.client_id && current.token_received_at == rejected.token_received_at
        });
        if is_current { self.clear().await } else { Ok(()) }
    }
}

/// A token that is valid for a short time is refreshed when a quarter of that is left; by the SDK's margin, it would be
/// refreshed at every request.
fn with_own_margin(mut credentials: StoredCredentials) -> StoredCredentials {
    let Some(token) = &credentials.token_response else { return credentials };
    let Ok(mut json) = serde_json::to_value(token) else { return credentials };
    let Some(lifetime) = json["expires_in"].as_u64() else { return credentials };
    let margin = (lifetime / 4).clamp(1, SDK_MARGIN);
    json["expires_in"] = (lifetime + SDK_MARGIN - margin).into();
    if let Ok(token) = serde_json::from_value(json) {
        credentials.token_response = Some(token);
    }
    credentials
}

fn failed(error: SecretError) -> AuthError {
    AuthError::CredentialStoreError(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_refreshed_when_a_quarter_of_a_short_life_is_left() {
        // A life, and the rest of it at which the SDK refreshes.
        for (lifetime, rest) in [(0, 1), (1, 1), (4, 1), (20, 5), (60, 15), (120, 30), (3600, 30)] {
            let token = serde_json::json!({"access_token": "a", "token_type": "Bearer", "expires_in": lifetime});
            let token = serde_json::from_value(token).unwrap();
            let stored = StoredCredentials::new("c".to_owned(), Some(token), Vec::new(), Some(1000));
            let shown = serde_json::to_value(with_own_margin(stored).token_response).unwrap();
            // The SDK refreshes when less than its margin is left of what it is shown.
            assert_eq!(shown["expires_in"].as_i64().unwrap() - SDK_MARGIN as i64, lifetime - rest, "{lifetime}");
        }
    }
}
