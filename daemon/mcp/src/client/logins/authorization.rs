//! From a server's URL to the page on which a person logs in, and back.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use rmcp::transport::auth::{AuthorizationManager, AuthorizationMetadata, OAuthClientConfig};
use url::{Host, Url};

use super::challenge::{ChallengeKind, LoginChallenge};
use super::http_client::LoginHttpClient;
use super::stored::{LoginIdentity, LoginStore, StoredLogin};
use crate::client::connect::error_chain;
use crate::client::endpoint::OAuthSettings;

/// The name under which the daemon registers.
const CLIENT_NAME: &str = "toold";
/// The scope with which a login outlives its first token.
const OFFLINE_ACCESS: &str = "offline_access";

pub(super) struct PreparedLogin {
    pub(super) manager: AuthorizationManager,
    pub(super) page: String,
    pub(super) state: String,
    pub(super) scopes: Vec<String>,
    pub(super) issuer: Option<String>,
    /// Set once the authorization server has refused the client.
    pub(super) client_refused: Arc<AtomicBool>,
}

/// # Errors
/// Why nobody can log in, as a sentence for the user.
pub(super) async fn prepare(
    url: &str,
    settings: &OAuthSettings,
    client_secret: Option<String>,
    redirect_uri: &str,
    challenge: Option<LoginChallenge>,
    store: LoginStore,
) -> Result<PreparedLogin, String> {
    let server = Url::parse(url).map_err(|error| format!("{url:?} is not a URL: {error}"))?;
    let http = LoginHttpClient::new(&server).await?;
    let client_refused = http.client_refused();
    let manager = AuthorizationManager::new_with_oauth_http_client(server, Arc::new(http)).await;
    let mut manager = manager.map_err(|error| error_chain(&error))?;
    let header = challenge.as_ref().and_then(|challenge| challenge.header.as_deref());
    let found = manager.resolve_metadata_from_challenge(header).await;
    let found = found.map_err(|error| format!("can't find its authorization server: {}", error_chain(&error)))?;
    if !found.source.is_discovered() {
        return Err(
            "it does not say which authorization server it uses: it needs no login, or a token in `headers`".into()
        );
    }
    check_server(&found.metadata)?;
    manager.set_metadata(found.metadata.clone());
    let before = store.read().await.ok().flatten();
    let before = before.filter(|login| login.credentials.issuer == found.metadata.issuer);
    let scopes = scopes(&manager, settings, &found.metadata, challenge.as_ref(), before.as_ref()).await;
    let client = identify(&mut manager, settings, client_secret, redirect_uri, &found.metadata, &scopes).await?;
    let identity = LoginIdentity {
        redirect_uri: redirect_uri.to_owned(),
        client_secret: client.client_secret.clone(),
        scopes: scopes.clone(),
    };
    manager.set_credential_store(store.with(identity));
    manager.configure_client(client).map_err(|error| error_chain(&error))?;
    let asked: Vec<&str> = scopes.iter().map(String::as_str).collect();
    let mut page = manager.get_authorization_url(&asked).await.map_err(|error| error_chain(&error))?;
    if scopes.iter().any(|scope| scope == OFFLINE_ACCESS) {
        // OpenID Connect, section 11: without consent, no token for refreshing is given.
        page.push_str("&prompt=consent");
    }
    let state = state_of(&page)?;
    Ok(PreparedLogin { manager, page, state, scopes, issuer: found.metadata.issuer, client_refused })
}

/// Refuses an authorization server that does not announce PKCE with S256, as the specification requires, and one whose
/// pages and tokens would travel in the clear.
fn check_server(metadata: &AuthorizationMetadata) -> Result<(), String> {
    let methods = metadata.code_challenge_methods_supported.as_deref().unwrap_or_default();
    if !methods.iter().any(|method| method == "S256") {
        return Err(
            "its authorization server does not announce PKCE with S256, without which a login is not safe".into()
        );
    }
    for endpoint in [
        Some(&metadata.authorization_endpoint),
        Some(&metadata.token_endpoint),
        metadata.registration_endpoint.as_ref(),
    ]
    .into_iter()
    .flatten()
    {
        check_endpoint(endpoint)?;
    }
    Ok(())
}

/// An address to which tokens and secrets may go.
pub(super) fn check_endpoint(endpoint: &str) -> Result<Url, String> {
    let url = Url::parse(endpoint).map_err(|error| format!("its authorization server names {endpoint:?}: {error}"))?;
    if url.scheme() != "https" && !(url.scheme() == "http" && is_loopback(&url)) {
        return Err(format!("its authorization server names {endpoint}, which is not https"));
    }
    Ok(url)
}

/// The scopes to ask for: those of the configuration, or what the server's refusal names, or its metadata. A login that
/// is widened keeps what it has.
async fn scopes(
    manager: &AuthorizationManager,
    settings: &OAuthSettings,
    metadata: &AuthorizationMetadata,
    challenge: Option<&LoginChallenge>,
    before: Option<&StoredLogin>,
) -> Vec<String> {
    let mut scopes: Vec<String> = before.map(|login| login.credentials.granted_scopes.clone()).unwrap_or_default();
    match challenge.map(|challenge| &challenge.kind) {
        Some(ChallengeKind::Scope(wanted)) if before.is_some() => scopes.extend(wanted.iter().cloned()),
        _ if !settings.scopes.is_empty() => scopes.extend(settings.scopes.iter().cloned()),
        _ => scopes.extend(manager.select_initial_scopes(&[]).await),
    }
    let can_refresh = metadata.scopes_supported.iter().flatten().any(|scope| scope == OFFLINE_ACCESS);
    if can_refresh && !scopes.is_empty() {
        scopes.push(OFFLINE_ACCESS.to_owned());
    }
    let mut unique: Vec<String> = Vec::new();
    for scope in scopes {
        if !unique.contains(&scope) {
            unique.push(scope);
        }
    }
    unique
}

/// The client as which the daemon logs in: a registered one of the configuration, or the metadata document that the user
/// hosts, or one that it registers now.
async fn identify(
    manager: &mut AuthorizationManager,
    settings: &OAuthSettings,
    client_secret: Option<String>,
    redirect_uri: &str,
    metadata: &AuthorizationMetadata,
    scopes: &[String],
) -> Result<OAuthClientConfig, String> {
    let takes_documents = metadata.additional_fields.get("client_id_metadata_document_supported");
    let takes_documents = takes_documents.and_then(serde_json::Value::as_bool).unwrap_or(false);
    if let Some(id) = &settings.client_id {
        let mut client = OAuthClientConfig::new(id.clone(), redirect_uri);
        client.client_secret = client_secret;
        return Ok(client);
    }
    if let Some(document) = settings.client_id_url.as_ref().filter(|_| takes_documents) {
        return Ok(OAuthClientConfig::new(document.clone(), redirect_uri));
    }
    if metadata.registration_endpoint.is_none() {
        return Err("its authorization server lets no client register by itself: register toold there, and set \
                    client_id in the section [mcp.servers.NAME.oauth], or [mcp.oauth] client_id_url if it takes metadata documents"
            .into());
    }
    let scopes: Vec<&str> = scopes.iter().map(String::as_str).collect();
    manager.register_client(CLIENT_NAME, redirect_uri, &scopes).await.map_err(|error| error_chain(&error))
}

/// Where a page may send a person back to: this machine.
pub(super) fn check_redirect(redirect_uri: &str) -> Result<Url, String> {
    let is_ours =
        |url: &Url| url.scheme() == "http" && is_loopback(url) && url.port().is_some() && url.query().is_none();
    let ours = Url::parse(redirect_uri).ok().filter(is_ours);
    ours.ok_or_else(|| format!("redirect_uri: expected http://127.0.0.1:PORT/PATH, not {redirect_uri:?}"))
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

/// The `state` of a page or of the redirect from it.
pub(super) fn state_of(url: &str) -> Result<String, String> {
    let mut members = members(url)?;
    members.remove("state").ok_or_else(|| "this is not the URL that a login ends with: it has no `state`".to_owned())
}

/// # Errors
/// The authorization server's reason for refusing the login.
pub(super) fn check_refusal(redirected_to: &str) -> Result<(), String> {
    let members = members(redirected_to)?;
    let Some(error) = members.get("error") else { return Ok(()) };
    let description = members.get("error_description").map(|text| format!(": {text}")).unwrap_or_default();
    Err(format!("the authorization server refused the login: {error}{description}"))
}

fn members(url: &str) -> Result<HashMap<String, String>, String> {
    let url = Url::parse(url.trim()).map_err(|error| format!("this is not the URL that a login ends with: {error}"))?;
    Ok(url.query_pairs().into_owned().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redirects_lead_to_this_machine() {
        for good in ["http://127.0.0.1:8123/callback", "http://[::1]:1/", "http://localhost:9/x"] {
            assert!(check_redirect(good).is_ok(), "{good}");
        }
        for bad in ["https://a.example/x", "http://a.example:1/", "http://127.0.0.1/", "http://127.0.0.1:1/?a", "x"] {
            assert!(check_redirect(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_reason_of_a_refusal_is_shown() {
        let url = "http://127.0.0.1:1/?error=access_denied&error_description=not+today&state=s";
        assert_eq!(
            check_refusal(url),
            Err("the authorization server refused the login: access_denied: not today".into())
        );
        assert_eq!(check_refusal("http://127.0.0.1:1/?code=c&state=s"), Ok(()));
        assert_eq!(state_of(url), Ok("s".into()));
        assert!(state_of("http://127.0.0.1:1/?code=c").is_err() && state_of("code").is_err());
    }

    #[test]
    fn servers_without_pkce_or_tls_are_refused() {
        let metadata = |authorize: &str, methods: Option<Vec<String>>| {
            let mut metadata = AuthorizationMetadata::default();
            metadata.authorization_endpoint = authorize.to_owned();
            metadata.token_endpoint = "https://a.example/token".to_owned();
            metadata.code_challenge_methods_supported = methods;
            metadata
        };
        let s256 = Some(vec!["plain".to_owned(), "S256".to_owned()]);
        assert_eq!(check_server(&metadata("https://a.example/authorize", s256.clone())), Ok(()));
        assert_eq!(check_server(&metadata("http://127.0.0.1:1/authorize", s256.clone())), Ok(()));
        assert!(check_server(&metadata("http://a.example/authorize", s256)).is_err());
        assert!(check_server(&metadata("https://a.example/authorize", None)).is_err());
        assert!(check_server(&metadata("https://a.example/authorize", Some(vec!["plain".to_owned()]))).is_err());
    }
}
