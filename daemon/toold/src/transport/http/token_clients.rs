//! The clients of each token: no token reaches the MCP sessions of another one, and all connections of a token end when it is
//! revoked.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;
use toold_engine::call::Principal;
use toold_mcp::server::McpIdentity;
use toold_mcp::server::http::{HttpOptions, McpHttp};

use crate::transport::ClientServer;
use crate::transport::http::tokens::{ShownToken, Tokens};

/// How often to look whether a token has been revoked whose clients hold connections. A request notices it at once.
const REVOKED_CHECK: Duration = Duration::from_secs(1);

/// The clients of one token.
pub(super) struct TokenClients {
    pub(super) mcp: McpHttp,
    /// Fires when the token is no longer valid.
    pub(super) revoked: CancellationToken,
    digest: blake3::Hash,
}

/// The clients of all tokens.
pub(super) struct AllTokenClients {
    options: HttpOptions,
    by_profile: Mutex<HashMap<Option<String>, Arc<TokenClients>>>,
}

impl AllTokenClients {
    pub(super) fn new(options: HttpOptions) -> Self {
        Self { options, by_profile: Mutex::default() }
    }

    /// Those of a token that was just shown. On MCP, the administrator's token is as the one that may call.
    pub(super) fn of(&self, shown: &ShownToken, tokens: &Arc<Tokens>, clients: &ClientServer) -> Arc<TokenClients> {
        let mut by_profile = self.by_profile.lock();
        if let Some(known) = by_profile.get(&shown.profile) {
            if shown.profile.is_none() || known.digest == shown.digest {
                return known.clone();
            }
            // A new token in place of one that was revoked.
            known.revoked.cancel();
        }
        let (revoked, stop) = (CancellationToken::new(), self.options.stop.child_token());
        let options = HttpOptions { stop: stop.clone(), ..self.options.clone() };
        let identity = McpIdentity { principal: Principal::TokenCall, profile: shown.profile.clone() };
        let owner = shown.profile.as_ref().map_or_else(String::new, |_| shown.digest.to_hex().to_string());
        let mcp = McpHttp::new(&clients.mcp.mcp, identity, owner, options);
        if shown.profile.is_some() {
            let lifecycle = &clients.services.lifecycle;
            let (shown, tokens, revoked) = (shown.clone(), tokens.clone(), revoked.clone());
            lifecycle.tracker().spawn(watch(shown, tokens, revoked, stop, lifecycle.stopping()));
        }
        let new = Arc::new(TokenClients { mcp, revoked, digest: shown.digest });
        by_profile.insert(shown.profile.clone(), new.clone());
        new
    }
}

/// Cancels the connections and `requests` of a token once it is not valid any more, or `revoked` has fired.
async fn watch(
    shown: ShownToken,
    tokens: Arc<Tokens>,
    revoked: CancellationToken,
    requests: CancellationToken,
    stopping: CancellationToken,
) {
    while tokens.is_valid(&shown) {
        tokio::select! {
            () = stopping.cancelled() => return,
            () = revoked.cancelled() => break,
            () = tokio::time::sleep(REVOKED_CHECK) => {}
        }
    }
    tracing::info!(profile = shown.profile, "a token was revoked: its connections end");
    revoked.cancel();
    requests.cancel();
}
