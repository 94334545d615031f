//! The session of a request: its working folder, and the tools that it sees.

use parking_lot::Mutex;
use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rmcp::ErrorData;
use rmcp::model::{ProtocolVersion, RequestId, RequestMetaObject};
use rmcp::service::{RequestContext, RoleServer};
use serde::Deserialize;
use toold_engine::client_profile::ClientProfile;
use toold_engine::session::Session;
use toold_proto::call::ListingMode;
use toold_proto::session::{ClientInfo, ToolFilter};
use toold_proto::tool::{CallId, SourceKind};

use crate::server::{ConnectionKind, McpClientServer, McpHost, McpIdentity, WantedSession};

/// `_meta`: the absolute path of the folder that this request works in.
const CWD_KEY: &str = "toold/cwd";
/// `_meta` of a stream's first request: the folder of all requests that name none. Bridges send it.
const DEFAULT_CWD_KEY: &str = "toold/default-cwd";
/// `_meta` of a stream's first request: variables for the commands of its sessions, as an object of
/// strings. Bridges send the ones that they were started with; the daemon accepts those that the
/// client may set.
const ENV_KEY: &str = "toold/env";
/// `_meta` of a stream's first request: the name of the bridge, with which the ids of its calls begin. It is the same at the
/// next daemon, which can tell so whether a request of it has begun.
const BRIDGE_KEY: &str = "toold/bridge";
/// The longest name of a bridge, and the longest id of a request that becomes a part of a call's.
const MAX_BRIDGE_ID: usize = 64;
/// The same as [`CWD_KEY`], as a header of HTTP, which more clients can be configured to send.
const CWD_HEADER: &str = "toold-cwd";

/// `_meta`: the sources whose tools are shown and can be called, by their kinds or names: `{"only": [..],
/// "without": [..]}`. On a stream it applies from then on.
const SOURCES_KEY: &str = "toold/sources";
/// The same as headers of HTTP, separated by commas.
const SOURCES_HEADER: &str = "toold-sources";
const WITHOUT_SOURCES_HEADER: &str = "toold-without-sources";

/// `_meta`: which tools the lists of the client show, `all` or `deferred`. On a stream it applies from then on.
const LISTING_KEY: &str = "toold/listing";
/// The same as a header of HTTP.
const LISTING_HEADER: &str = "toold-listing";

/// How long a client may take to list its roots.
const ROOTS_TIMEOUT: Duration = Duration::from_secs(3);
/// How long the session of a client without a connection is kept for its next request.
const STATELESS_IDLE: Duration = Duration::from_secs(600);
const MAX_STATELESS: usize = 256;

/// The parameters of a session to open.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct SessionTarget {
    cwd: Option<PathBuf>,
    roots: Vec<PathBuf>,
    sources: SourceSelection,
    /// With their settings: a session that began before these changed is not continued.
    profiles: Vec<ClientProfile>,
}

/// The sources whose tools a client wants to see; all by default.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct SourceSelection {
    only: Option<Vec<String>>,
    without: Option<Vec<String>>,
}

impl SourceSelection {
    fn filter(&self) -> ToolFilter {
        ToolFilter { sources: self.only.clone(), without_sources: self.without.clone(), ..ToolFilter::default() }
    }
}

/// The sessions of one connection, closed with it.
pub(crate) struct ConnectionSessions {
    host: Arc<dyn McpHost>,
    open: Mutex<HashMap<SessionTarget, Arc<Session>>>,
    /// As last listed by the client; `None` when it has to be asked.
    roots: tokio::sync::Mutex<Option<Vec<PathBuf>>>,
}

impl ConnectionSessions {
    pub(crate) fn new(host: Arc<dyn McpHost>) -> Self {
        Self { host, open: Mutex::default(), roots: tokio::sync::Mutex::default() }
    }

    /// The client reported that its roots changed.
    pub(crate) async fn forget_roots(&self) {
        *self.roots.lock().await = None;
    }

    fn session(
        &self,
        target: SessionTarget,
        wanted: impl FnOnce(&SessionTarget) -> WantedSession,
    ) -> Result<Arc<Session>, String> {
        let mut open = self.open.lock();
        if let Some(session) = open.get(&target).filter(|session| !session.closed.is_cancelled()) {
            return Ok(session.clone());
        }
        let session = self.host.open_session(wanted(&target))?;
        session.bind();
        open.insert(target, session.clone());
        Ok(session)
    }
}

impl Drop for ConnectionSessions {
    fn drop(&mut self) {
        let open = self.open.get_mut();
        for session in open.values() {
            session.unbind();
            self.host.close_session(&session.id);
        }
    }
}

/// The sessions of clients whose requests stand alone, so that a later request has the read stamps and grants of an
/// earlier one.
#[derive(Default)]
pub(crate) struct StatelessSessions(Mutex<HashMap<StatelessKey, StatelessSession>>);

/// With the name that the client reports.
type StatelessKey = (SessionTarget, McpIdentity, Option<String>);

struct StatelessSession {
    session: Arc<Session>,
    last_used: Instant,
}

impl StatelessSessions {
    fn session(
        &self,
        host: &dyn McpHost,
        target: SessionTarget,
        client: Option<ClientInfo>,
        identity: &McpIdentity,
        connection: u64,
    ) -> Result<Arc<Session>, String> {
        let mut sessions = self.0.lock();
        let now = Instant::now();
        sessions.retain(|_, kept| {
            let is_idle = now.duration_since(kept.last_used) > STATELESS_IDLE && kept.session.calls().is_empty();
            if is_idle {
                host.close_session(&kept.session.id);
            }
            !is_idle && !kept.session.closed.is_cancelled()
        });
        let key = (target.clone(), identity.clone(), client.as_ref().map(|client| client.name.clone()));
        if let Some(kept) = sessions.get_mut(&key) {
            kept.last_used = now;
            return Ok(kept.session.clone());
        }
        if sessions.len() >= MAX_STATELESS {
            return Err(format!("{MAX_STATELESS} sessions of clients without a connection are open: try again later"));
        }
        let filter = target.sources.filter();
        let SessionTarget { cwd, roots, profiles, .. } = target;
        let session = host.open_session(WantedSession {
            cwd,
            roots,
            client,
            principal: identity.principal,
            filter,
            profiles,
            token_profile: identity.profile.clone(),
            connection,
            env: BTreeMap::new(),
            bridge: None,
        })?;
        sessions.insert(key, StatelessSession { session: session.clone(), last_used: now });
        Ok(session)
    }
}

impl McpClientServer {
    /// The session of a request: in the client's roots, otherwise in the folder that the request or
    /// the connection names.
    pub(crate) async fn session(&self, context: &RequestContext<RoleServer>) -> Result<Arc<Session>, ErrorData> {
        self.note_default_cwd(&context.meta);
        let cwd = self.cwd_of(context)?;
        let client = client_of(context);
        let profiles = self.profiles(context, client.as_ref().map(|client| client.name.as_str()))?;
        let mut target = SessionTarget { cwd, roots: Vec::new(), sources: self.sources(context)?, profiles };
        if !is_modern(context) {
            let mut roots = self.roots(context).await.into_iter();
            if let Some(first) = roots.next() {
                target.cwd = Some(first);
                target.roots = roots.collect();
            }
        }
        if target.cwd.is_none() {
            target.cwd = self.connection.default_cwd.lock().clone();
        }
        let identity = &self.connection.identity;
        let session = match self.connection.kind {
            ConnectionKind::Http if is_modern(context) => self.mcp.stateless_sessions.session(
                self.mcp.host.as_ref(),
                target,
                client,
                identity,
                self.connection.id,
            ),
            ConnectionKind::Stream | ConnectionKind::Http => self.sessions.session(target, |target| WantedSession {
                cwd: target.cwd.clone(),
                roots: target.roots.clone(),
                client,
                principal: identity.principal,
                filter: target.sources.filter(),
                profiles: target.profiles.clone(),
                token_profile: identity.profile.clone(),
                connection: self.connection.id,
                env: self.connection.env.lock().clone(),
                bridge: self.connection.bridge.get().cloned(),
            }),
        };
        session.map_err(|error| ErrorData::invalid_params(error, None))
    }

    /// Reads the settings that a bridge sends for its whole connection.
    pub(crate) fn note_default_cwd(&self, meta: &RequestMetaObject) {
        if self.connection.kind == ConnectionKind::Stream
            && let Some(cwd) = meta.get(DEFAULT_CWD_KEY).and_then(|cwd| cwd.as_str())
        {
            let mut known = self.connection.default_cwd.lock();
            *known = Some(PathBuf::from(cwd));
        }
        if self.connection.kind == ConnectionKind::Stream
            && let Some(env) = meta.get(ENV_KEY).and_then(|env| BTreeMap::deserialize(env).ok())
        {
            *self.connection.env.lock() = env;
        }
        if self.connection.kind == ConnectionKind::Stream
            && let Some(bridge) = meta.get(BRIDGE_KEY).and_then(|name| name.as_str())
            && (1..=MAX_BRIDGE_ID).contains(&bridge.len())
        {
            let _ = self.connection.bridge.set(bridge.to_owned());
        }
    }

    /// The id of the call that a request of a bridge makes; `None` for other clients.
    pub(crate) fn bridged_call_id(&self, request: &RequestId) -> Option<CallId> {
        let id = serde_json::to_string(request).ok().filter(|id| id.len() <= MAX_BRIDGE_ID)?;
        CallId::parse(&format!("{}-{id}", self.connection.bridge.get()?)).ok()
    }

    /// Reads the sources that the whole connection should see. Bridges send them in its first
    /// message.
    ///
    /// # Errors
    /// Invalid params: they cannot be read. A list of all tools instead would show those that were excluded.
    pub(crate) fn note_sources(&self, meta: &RequestMetaObject) -> Result<(), ErrorData> {
        if self.connection.kind == ConnectionKind::Stream
            && let Some(value) = meta.get(SOURCES_KEY)
        {
            let sources = read_sources(value)?;
            *self.connection.sources.lock() = Some(sources);
        }
        Ok(())
    }

    /// Which tools the lists of a client show: as the request says, the connection's first request, a profile, or the
    /// configuration for a client of this name.
    ///
    /// # Errors
    /// Invalid params: it is none of the choices.
    pub(crate) fn listing(&self, context: &RequestContext<RoleServer>) -> Result<ListingMode, ErrorData> {
        self.note_listing(&context.meta)?;
        let parts = context.extensions.get::<::http::request::Parts>();
        let header = parts.and_then(|parts| parts.headers.get(LISTING_HEADER)).and_then(|value| value.to_str().ok());
        if let Some(value) = context.meta.get(LISTING_KEY).cloned().or(header.map(Into::into)) {
            return read_listing(&value);
        }
        if let Some(of_connection) = *self.connection.listing.lock() {
            return Ok(of_connection);
        }
        let client = client_of(context).map(|client| client.name);
        let profiles = self.profiles(context, client.as_deref())?;
        let of_profile = profiles.iter().find_map(|profile| profile.listing);
        Ok(of_profile
            .unwrap_or_else(|| self.mcp.engine().registry.snapshot().tool_settings().listing_of(client.as_deref())))
    }

    /// Reads the list that the whole connection gets. Bridges send it in their first message.
    ///
    /// # Errors
    /// Invalid params: it is none of the choices.
    pub(crate) fn note_listing(&self, meta: &RequestMetaObject) -> Result<(), ErrorData> {
        if self.connection.kind == ConnectionKind::Stream
            && let Some(value) = meta.get(LISTING_KEY)
        {
            *self.connection.listing.lock() = Some(read_listing(value)?);
        }
        Ok(())
    }

    /// Whether the connection stands for one server, about which the daemon's own instructions say nothing.
    pub(super) fn has_one_source(&self) -> bool {
        let sources = self.connection.sources.lock();
        let only = sources.as_ref().and_then(|sources| sources.only.as_deref());
        matches!(only, Some([only]) if SourceKind::ALL.iter().all(|kind| kind.as_str() != only))
    }

    fn sources(&self, context: &RequestContext<RoleServer>) -> Result<SourceSelection, ErrorData> {
        self.note_sources(&context.meta)?;
        let known = self.connection.sources.lock().clone();
        if let Some(known) = known {
            return Ok(known);
        }
        if let Some(value) = context.meta.get(SOURCES_KEY) {
            return read_sources(value);
        }
        let parts = context.extensions.get::<::http::request::Parts>();
        let header = |name: &str| {
            let text = parts?.headers.get(name)?.to_str().ok()?;
            Some(text.split(',').map(|source| source.trim().to_owned()).collect())
        };
        Ok(SourceSelection { only: header(SOURCES_HEADER), without: header(WITHOUT_SOURCES_HEADER) })
    }

    fn cwd_of(&self, context: &RequestContext<RoleServer>) -> Result<Option<PathBuf>, ErrorData> {
        let in_meta = match context.meta.get(CWD_KEY) {
            None => None,
            Some(cwd) => {
                let error = format!("_meta {CWD_KEY}: expected the absolute path of a folder");
                Some(cwd.as_str().ok_or_else(|| ErrorData::invalid_params(error, None))?)
            }
        };
        let parts = context.extensions.get::<::http::request::Parts>();
        let in_header = parts.and_then(|parts| parts.headers.get(CWD_HEADER)).and_then(|cwd| cwd.to_str().ok());
        Ok(in_meta.or(in_header).map(PathBuf::from))
    }

    /// The folders that the client works in. It is asked once, and again when it reports a change. Empty when it offers
    /// no roots, or does not list them in time.
    #[expect(deprecated, reason = "roots are deprecated in the newest revision only")]
    async fn roots(&self, context: &RequestContext<RoleServer>) -> Vec<PathBuf> {
        let offers = context.client_capabilities().is_some_and(|capabilities| capabilities.roots.is_some());
        if !offers {
            return Vec::new();
        }
        let mut known = self.sessions.roots.lock().await;
        if let Some(roots) = known.as_ref() {
            return roots.clone();
        }
        let listed = tokio::time::timeout(ROOTS_TIMEOUT, context.peer.list_roots()).await;
        let roots = match listed {
            Ok(Ok(listed)) => {
                listed.roots.iter().filter_map(|root| path_of(&root.uri)).filter(|path| path.is_dir()).collect()
            }
            Ok(Err(error)) => {
                tracing::debug!(connection = self.connection.id, %error, "the client did not list its roots");
                Vec::new()
            }
            Err(_) => {
                tracing::debug!(connection = self.connection.id, "the client did not list its roots in time");
                Vec::new()
            }
        };
        known.insert(roots).clone()
    }
}

/// Whether a request is of a stateless revision.
pub(crate) fn is_modern(context: &RequestContext<RoleServer>) -> bool {
    context.protocol_version().is_some_and(|version| version >= ProtocolVersion::V_2026_07_28)
}

pub(crate) fn client_of(context: &RequestContext<RoleServer>) -> Option<ClientInfo> {
    let client = context.client_info()?;
    Some(ClientInfo { name: client.name, version: Some(client.version) })
}

fn read_sources(value: &serde_json::Value) -> Result<SourceSelection, ErrorData> {
    SourceSelection::deserialize(value)
        .map_err(|error| ErrorData::invalid_params(format!("_meta {SOURCES_KEY}: {error}"), None))
}

fn read_listing(value: &serde_json::Value) -> Result<ListingMode, ErrorData> {
    ListingMode::deserialize(value)
        .map_err(|_| ErrorData::invalid_params(format!("{LISTING_KEY}: expected all or deferred, not {value}"), None))
}

/// The path of a `file:` URI (RFC 8089) of this host.
fn path_of(uri: &str) -> Option<PathBuf> {
    let rest = uri.strip_prefix("file://")?;
    let path = rest.strip_prefix("localhost").unwrap_or(rest);
    if !path.starts_with('/') {
        return None;
    }
    let mut bytes = Vec::with_capacity(path.len());
    let mut left = path.bytes();
    while let Some(byte) = left.next() {
        bytes.push(match byte {
            b'%' => {
                let digits = [left.next()?, left.next()?];
                u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?
            }
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok().map(PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roots_are_paths_of_this_host() {
        let path = |uri| path_of(uri).map(|path| path.display().to_string());
        assert_eq!(path("file:///a/b%20c").as_deref(), Some("/a/b c"));
        assert_eq!(path("file://localhost/a").as_deref(), Some("/a"));
        for other in ["https://a/b", "file://host/a", "file:relative", "file:///a%2", "file:///a%zz"] {
            assert_eq!(path(other), None, "{other}");
        }
    }
}
