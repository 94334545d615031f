//! Revoking the tokens of a login that is given up (RFC 7009).

use std::sync::Arc;
use std::time::Duration;

use rmcp::transport::auth::AuthorizationManager;
use serde_json::Value;
use tokio::time::timeout;
use url::Url;

use super::authorization::check_endpoint;
use super::challenge::LoginChallenge;
use super::http_client::{LoginHttpClient, PostedForm};
use super::stored::StoredLogin;
use crate::client::connect::error_chain;

/// A person waits for it, and the tokens are forgotten in any case.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Asks the authorization server of a login to revoke its tokens. Takes at most [`TIMEOUT`].
///
/// # Errors
/// Why tokens stay valid there, as a sentence for the user.
pub(super) async fn revoke(login: &StoredLogin, challenge: Option<&LoginChallenge>) -> Result<(), String> {
    let revoked = timeout(TIMEOUT, revoke_all(login, challenge)).await;
    revoked.unwrap_or_else(|_| Err(format!("the authorization server did not answer within {} s", TIMEOUT.as_secs())))
}

async fn revoke_all(login: &StoredLogin, challenge: Option<&LoginChallenge>) -> Result<(), String> {
    let server = Url::parse(&login.url).map_err(|error| error.to_string())?;
    let http = Arc::new(LoginHttpClient::new(&server).await?);
    let manager = AuthorizationManager::new_with_oauth_http_client(server, http.clone()).await;
    let manager = manager.map_err(|error| error_chain(&error))?;
    let header = challenge.and_then(|challenge| challenge.header.as_deref());
    let found = manager.resolve_metadata_from_challenge(header).await;
    let found = found.map_err(|error| format!("can't find the authorization server: {}", error_chain(&error)))?;
    if !found.source.is_discovered() || found.metadata.issuer != login.credentials.issuer {
        return Err("the server no longer names the authorization server that gave them".to_owned());
    }
    let endpoint = found.metadata.additional_fields.get("revocation_endpoint").and_then(Value::as_str);
    let endpoint = endpoint.ok_or("the authorization server does not revoke tokens")?;
    let endpoint = check_endpoint(endpoint)?;
    // With a refresh token, servers revoke what it has brought; not all do.
    for kind in ["refresh_token", "access_token"] {
        let Some(token) = login.token(kind) else { continue };
        let fields = vec![("token".to_owned(), token), ("token_type_hint".to_owned(), kind.to_owned())];
        let methods = ["revocation_endpoint_auth_methods_supported", "token_endpoint_auth_methods_supported"];
        let secret = login.client_secret.as_deref();
        let form = PostedForm::of_client(fields, Some(login.client_id()), secret, &found.metadata, &methods);
        let answer = http.post(&endpoint, &form).await?;
        if answer.status.is_success() {
            continue;
        }
        let name = kind.replace('_', " ");
        return Err(match answer.error() {
            "unsupported_token_type" => format!("the authorization server revokes no {name}"),
            _ => format!("the authorization server refused to revoke the {name}: {}", answer.refusal()),
        });
    }
    Ok(())
}
