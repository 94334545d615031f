//! The profiles that limit a client. Each leaves out more: that of its token, those that its messages name, and that of the
//! client in the configuration.

use rmcp::ErrorData;
use rmcp::model::RequestMetaObject;
use rmcp::service::{RequestContext, RoleServer};
use serde_json::Value;
use toold_engine::client_profile::ClientProfile;

use crate::server::{ConnectionKind, McpClientServer, McpConnection};

/// `_meta`: the name of a profile. On a stream it applies from then on, and cannot be taken back.
const PROFILE_KEY: &str = "toold/profile";
/// The same as a header of HTTP.
const PROFILE_HEADER: &str = "toold-profile";
/// Profiles that the messages of one connection can name.
const MAX_PROFILES: usize = 8;

impl McpConnection {
    /// Records the profile that a message of a stream names.
    pub(super) fn note_profile(&self, meta: &RequestMetaObject) {
        let Some(value) = meta.get(PROFILE_KEY).filter(|_| self.kind == ConnectionKind::Stream) else { return };
        let mut profiles = self.profiles.lock();
        // One more than is allowed, so that the connection is refused.
        if profiles.len() <= MAX_PROFILES && !profiles.contains(&name_in(value)) {
            profiles.push(name_in(value));
        }
    }
}

impl McpClientServer {
    /// The profiles that apply to a request of a client that reports this name.
    ///
    /// # Errors
    /// Invalid params: one of them does not exist. All tools instead would show those that it leaves out.
    pub(super) fn profiles(
        &self,
        context: &RequestContext<RoleServer>,
        client: Option<&str>,
    ) -> Result<Vec<ClientProfile>, ErrorData> {
        let mut names: Vec<String> = self.connection.identity.profile.iter().cloned().collect();
        names.extend(self.connection.profiles.lock().iter().cloned());
        if names.len() > MAX_PROFILES {
            let words = format!("{PROFILE_KEY}: a connection can name {MAX_PROFILES} profiles at most");
            return Err(ErrorData::invalid_params(words, None));
        }
        names.extend(context.meta.get(PROFILE_KEY).map(name_in));
        let parts = context.extensions.get::<::http::request::Parts>();
        let headers = parts.into_iter().flat_map(|parts| parts.headers.get_all(PROFILE_HEADER));
        names.extend(headers.map(|value| String::from_utf8_lossy(value.as_bytes()).trim().to_owned()));
        names.extend(client.and_then(|client| self.mcp.host.client(client).profile));
        let mut known = std::collections::HashSet::new();
        names.retain(|name| known.insert(name.clone()));
        self.mcp.host.profiles(&names, client).map_err(|error| ErrorData::invalid_params(error, None))
    }
}

/// A value that is no text is the name of no profile.
fn name_in(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
