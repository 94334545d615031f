//! Revoking the tokens of a login that is given up (RFC 7009).

use std::sync::Arc;
use std::time::Duration;

use rmcp::transport::auth::{AuthorizationManager, AuthorizationMetadata};
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
        let form = form(login, &found.metadata, kind, &token);
        let (status, body) = http.post(&endpoint, &form).await?;
        if status.is_success() {
            continue;
        }
        let body: Value = serde_json::from_slice(&body).unwrap_or_default();
        let (name, code) = (kind.replace('_', " "), body["error"].as_str().unwrap_or_default());
        return Err(match code {
            "unsupported_token_type" => format!("the authorization server revokes no {name}"),
            _ => {
                format!("the authorization server refused to revoke the {name}: {status} {code}").trim_end().to_owned()
            }
        });
    }
    Ok(())
}

/// The request, with which the client identifies itself as at the token endpoint.
fn form(login: &StoredLogin, metadata: &AuthorizationMetadata, kind: &str, token: &str) -> PostedForm {
    let mut fields = vec![("token".to_owned(), token.to_owned()), ("token_type_hint".to_owned(), kind.to_owned())];
    let client_id = login.client_id().to_owned();
    let Some(secret) = login.client_secret.clone() else {
        fields.push(("client_id".to_owned(), client_id));
        return PostedForm { fields, basic: None };
    };
    let methods = ["revocation_endpoint_auth_methods_supported", "token_endpoint_auth_methods_supported"];
    let methods = methods.iter().find_map(|name| metadata.additional_fields.get(*name)?.as_array());
    // HTTP Basic where nothing is said (RFC 8414).
    let takes = |method: &str| methods.is_none_or(|methods| methods.iter().any(|named| named == method));
    if takes("client_secret_basic") || !takes("client_secret_post") {
        return PostedForm { fields, basic: Some((client_id, secret)) };
    }
    fields.extend([("client_id".to_owned(), client_id), ("client_secret".to_owned(), secret)]);
    PostedForm { fields, basic: None }
}
