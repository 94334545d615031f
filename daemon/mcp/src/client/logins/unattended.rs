//! Tokens for which no person logs in here: of a registered client itself (client credentials), for the token of the
//! workload as which the daemon runs (JWT bearer, RFC 7523), or for the identity token of a person in an organisation whose
//! identity provider decides (enterprise-managed authorization).

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use rmcp::transport::auth::{
    AuthError, AuthorizationManager, AuthorizationMetadata, CredentialRefreshGuard, CredentialStore, OAuthClientConfig,
    StoredCredentials,
};
use tokio::sync::Mutex;
use tokio::time::Instant;
use toold_engine::redact;
use toold_host::files;
use url::Url;

use super::authorization::check_endpoint;
use super::challenge::LoginChallenge;
use super::http_client::{LoginHttpClient, PostedForm};
use crate::client::connect::error_chain;
use crate::client::endpoint::{OAuthGrant, OAuthSettings};

/// A token is replaced so long before it expires, or when half its time is over if that is sooner.
const MARGIN: Duration = Duration::from_secs(60);
/// How long a token counts whose server does not say it.
const UNKNOWN: Duration = Duration::from_secs(5 * 60);
/// So long it counts at most.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);
const ID_JAG: &str = "urn:ietf:params:oauth:token-type:id-jag";
/// The size limit of the token in a file, in bytes.
const MAX_ASSERTION: u64 = 64 * 1024;

/// Gets tokens as they are needed, and stores none.
struct UnattendedLogin {
    http: Arc<LoginHttpClient>,
    settings: OAuthSettings,
    client_secret: Option<String>,
    /// The server, for which alone the tokens are.
    resource: String,
    scopes: Vec<String>,
    metadata: AuthorizationMetadata,
    token: Mutex<Option<(StoredCredentials, Instant)>>,
}

/// The access to a server by a token that is requested now, and again before it expires. `None` where the server names no
/// authorization server before it has refused a request.
///
/// # Errors
/// Why there is no token, as a sentence for the user.
pub(super) async fn access(
    url: &str,
    settings: &OAuthSettings,
    client_secret: Option<String>,
    challenge: Option<&LoginChallenge>,
) -> Result<Option<AuthorizationManager>, String> {
    let server = Url::parse(url).map_err(|error| format!("{url:?} is not a URL: {error}"))?;
    let http = Arc::new(LoginHttpClient::new(&server).await?);
    let manager = AuthorizationManager::new_with_oauth_http_client(server, http.clone()).await;
    let mut manager = manager.map_err(|error| error_chain(&error))?;
    let header = challenge.and_then(|challenge| challenge.header.as_deref());
    let found = manager.resolve_metadata_from_challenge(header).await;
    let found = found.map_err(|error| format!("can't find its authorization server: {}", error_chain(&error)))?;
    if !found.source.is_discovered() {
        return Ok(None);
    }
    let metadata = found.metadata;
    manager.set_metadata(metadata.clone());
    let scopes = match settings.scopes.is_empty() {
        true => manager.select_initial_scopes(&[]).await,
        false => settings.scopes.clone(),
    };
    // No person is sent anywhere.
    let client = OAuthClientConfig::new(settings.client_id.clone().unwrap_or_default(), "http://127.0.0.1/");
    manager.configure_client(client).map_err(|error| error_chain(&error))?;
    let login = UnattendedLogin {
        http,
        settings: settings.clone(),
        client_secret,
        resource: url.to_owned(),
        scopes,
        metadata,
        token: Mutex::default(),
    };
    let (token, until) = login.request().await?;
    *login.token.lock().await = Some((token, until));
    manager.set_credential_store(login);
    Ok(Some(manager))
}

impl UnattendedLogin {
    /// A new token, and when to replace it.
    async fn request(&self) -> Result<(StoredCredentials, Instant), String> {
        let mut fields = match self.settings.grant {
            OAuthGrant::JwtBearer => jwt_bearer(self.assertion().await?),
            OAuthGrant::IdJag => jwt_bearer(self.id_jag().await?),
            OAuthGrant::ClientCredentials | OAuthGrant::AuthorizationCode => {
                vec![field("grant_type", "client_credentials")]
            }
        };
        fields.extend(self.purpose());
        let id = self.settings.client_id.as_deref();
        let methods = ["token_endpoint_auth_methods_supported"];
        let form = PostedForm::of_client(fields, id, self.client_secret.as_deref(), &self.metadata, &methods);
        let answer = self.http.post(&check_endpoint(&self.metadata.token_endpoint)?, &form).await?;
        if !answer.status.is_success() {
            return Err(format!("its authorization server gives no token: {}", answer.refusal()));
        }
        let body = answer.body;
        redact::hide(["access_token", "refresh_token"].iter().filter_map(|name| body[*name].as_str()));
        let lasts = body["expires_in"].as_u64().map_or(UNKNOWN, Duration::from_secs).min(LONGEST);
        let until = Instant::now() + lasts.saturating_sub(MARGIN).max(lasts / 2);
        let token = serde_json::from_value(body);
        let token =
            token.map_err(|error| format!("its authorization server sent a token of no known form: {error}"))?;
        // Without a time, so that the SDK does not refresh it: it is replaced here.
        let id = id.unwrap_or_default().to_owned();
        let stored = StoredCredentials::new(id, Some(token), self.scopes.clone(), None);
        Ok((stored.with_issuer(self.metadata.issuer.clone()), until))
    }

    /// The server and the scopes for which a token is.
    fn purpose(&self) -> Vec<(String, String)> {
        let mut fields = vec![field("resource", &self.resource)];
        if !self.scopes.is_empty() {
            fields.push(field("scope", &self.scopes.join(" ")));
        }
        fields
    }

    async fn assertion(&self) -> Result<String, String> {
        let path = self.settings.assertion_file.clone().ok_or("its grant needs assertion_file")?;
        let read = tokio::task::spawn_blocking(move || assertion(&path));
        read.await.map_err(|error| error.to_string())?
    }

    /// The identity provider's permission to get a token at the server's authorization server, for the person of the
    /// identity token.
    async fn id_jag(&self) -> Result<String, String> {
        let provider = self.settings.identity_provider.as_ref().ok_or("its grant needs identity_provider")?;
        let audience = self.metadata.issuer.as_deref().ok_or("its authorization server names no issuer")?;
        let mut fields = vec![
            field("grant_type", "urn:ietf:params:oauth:grant-type:token-exchange"),
            field("requested_token_type", ID_JAG),
            field("subject_token_type", "urn:ietf:params:oauth:token-type:id_token"),
            field("subject_token", &self.assertion().await?),
            field("audience", audience),
            field("client_id", &provider.client_id),
        ];
        fields.extend(self.purpose());
        let form = PostedForm { fields, basic: None };
        let answer = self.http.post(&check_endpoint(&provider.token_endpoint)?, &form).await?;
        if !answer.status.is_success() || answer.body["issued_token_type"] != ID_JAG {
            return Err(format!("the identity provider does not permit it: {}", answer.refusal()));
        }
        let token = answer.body["access_token"].as_str().ok_or("the identity provider sent no token")?;
        redact::hide([token]);
        Ok(token.to_owned())
    }
}

fn field(name: &str, value: &str) -> (String, String) {
    (name.to_owned(), value.to_owned())
}

fn jwt_bearer(assertion: String) -> Vec<(String, String)> {
    vec![field("grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer"), ("assertion".to_owned(), assertion)]
}

#[async_trait]
impl CredentialStore for UnattendedLogin {
    async fn load(&self) -> Result<Option<StoredCredentials>, AuthError> {
        let mut kept = self.token.lock().await;
        if let Some((token, _)) = kept.as_ref().filter(|(_, until)| Instant::now() < *until) {
            return Ok(Some(token.clone()));
        }
        let (token, until) = self.request().await.map_err(AuthError::TokenExchangeFailed)?;
        *kept = Some((token.clone(), until));
        Ok(Some(token))
    }

    async fn save(&self, _: StoredCredentials) -> Result<(), AuthError> {
        Ok(())
    }

    async fn clear(&self) -> Result<(), AuthError> {
        *self.token.lock().await = None;
        Ok(())
    }

    /// The SDK refreshes a token when the server has refused it: the next request gets another one.
    async fn acquire_refresh_guard(&self) -> Result<Option<CredentialRefreshGuard>, AuthError> {
        self.clear().await?;
        Ok(None)
    }
}

/// The token of the workload or the person, which is replaced in the file before it expires. It goes to the authorization
/// server, so nothing but a JSON Web Token is taken.
fn assertion(path: &Path) -> Result<String, String> {
    let text =
        files::read_text(path, MAX_ASSERTION).map_err(|error| format!("can't read {}: {error}", path.display()))?;
    let text = text.trim();
    let is_part = |part: &str| {
        !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
    };
    if text.split('.').count() != 3 || !text.split('.').all(is_part) {
        return Err(format!("{} does not hold a JSON Web Token", path.display()));
    }
    redact::hide([text]);
    Ok(text.to_owned())
}
