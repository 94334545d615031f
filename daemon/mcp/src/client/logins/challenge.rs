//! A server's refusal of a request that needs a login.

use std::error::Error;

use rmcp::service::{ClientInitializeError, ServiceError};
use rmcp::transport::auth::AuthError;
use rmcp::transport::streamable_http_client::{AuthRequiredError, InsufficientScopeError};

/// A refusal of a server, with its header `WWW-Authenticate`.
#[derive(Clone, Debug)]
pub(in crate::client) struct LoginChallenge {
    pub(super) header: Option<String>,
    pub(super) kind: ChallengeKind,
}

#[derive(Clone, Debug)]
pub(super) enum ChallengeKind {
    /// There is no login, or it is no longer valid.
    Login,
    /// The login lacks these scopes.
    Scope(Vec<String>),
}

impl LoginChallenge {
    /// The challenge that ended a greeting.
    pub(in crate::client) fn of_greeting(error: &ClientInitializeError) -> Option<Self> {
        match error {
            ClientInitializeError::TransportError { error, .. } => Self::of(error.error.as_ref()),
            ClientInitializeError::LegacyFallbackFailed { fallback, .. } => Self::of_greeting(fallback),
            _ => None,
        }
    }

    /// The challenge that refused a request.
    pub(in crate::client) fn of_request(error: &ServiceError) -> Option<Self> {
        match error {
            ServiceError::TransportSend(error) => Self::of(error.error.as_ref()),
            _ => None,
        }
    }

    /// The challenge among an error of the transport and its causes.
    pub(in crate::client) fn of(error: &(dyn Error + 'static)) -> Option<Self> {
        let mut current = Some(error);
        while let Some(error) = current {
            if let Some(required) = error.downcast_ref::<AuthRequiredError>() {
                let header = Some(required.www_authenticate_header.clone());
                return Some(Self { header, kind: ChallengeKind::Login });
            }
            if let Some(insufficient) = error.downcast_ref::<InsufficientScopeError>() {
                let scopes = insufficient.required_scope.as_deref().unwrap_or_default();
                let scopes = scopes.split_ascii_whitespace().map(str::to_owned).collect();
                let header = Some(insufficient.www_authenticate_header.clone());
                return Some(Self { header, kind: ChallengeKind::Scope(scopes) });
            }
            if let Some(AuthError::AuthorizationRequired) = error.downcast_ref::<AuthError>() {
                return Some(Self { header: None, kind: ChallengeKind::Login });
            }
            current = error.source();
        }
        None
    }
}
