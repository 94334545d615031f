//! Where a request works: the session that it runs in, and so the tools that it sees.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rmcp::ErrorData;
use rmcp::model::{ProtocolVersion, RequestMetaObject};
use rmcp::service::{RequestContext, RoleServer};
use serde::Deserialize;
use toold_engine::call::Principal;
use toold_engine::session::Session;
use toold_proto::session::{ClientInfo, ToolFilter};

use crate::server::{Host, Kind, Server, Wanted};

/// `_meta`: the absolute path of the folder that this request works in.
const CWD_KEY: &str = "toold/cwd";
/// `_meta` of a stream's first request: the folder for all that name none. Bridges send it.
const DEFAULT_CWD_KEY: &str = "toold/default-cwd";
/// `_meta` of a stream's first request: variables for the commands of its sessions, as an object of texts. Bridges send
/// those that they were started with; the daemon takes those that the client may set.
const ENV_KEY: &str = "toold/env";
/// The same as [`CWD_KEY`], as a header of HTTP, which more clients can be told to send.
const CWD_HEADER: &str = "toold-cwd";

/// `_meta`: the sources whose tools are shown and can be called, by their kinds or names: `{"only": [..],
/// "without": [..]}`. On a stream it holds from then on.
const SOURCES_KEY: &str = "toold/sources";
/// The same as headers of HTTP, with commas in between.
const SOURCES_HEADER: &str = "toold-sources";
const WITHOUT_SOURCES_HEADER: &str = "toold-without-sources";

/// A client that offers roots has so long to tell them.
const ROOTS_WAIT: Duration = Duration::from_secs(3);
/// Sessions of clients without a connection are kept this long for their next request.
const VISIT: Duration = Duration::from_secs(600);
const MAX_VISITS: usize = 256;

/// What a session is opened by.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Place {
    cwd: Option<PathBuf>,
    roots: Vec<PathBuf>,
    narrowed: Narrowed,
}

/// The sources whose tools a client wants to see; all when it does not say.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Narrowed {
    only: Option<Vec<String>>,
    without: Option<Vec<String>>,
}

impl Narrowed {
    fn filter(&self) -> ToolFilter {
        ToolFilter { sources: self.only.clone(), without_sources: self.without.clone(), ..ToolFilter::default() }
    }
}

/// The sessions of one client, closed when it goes.
pub(crate) struct Views {
    host: Arc<dyn Host>,
    open: Mutex<HashMap<Place, Arc<Session>>>,
    /// What the client told last; `None` when it is to be asked.
    roots: tokio::sync::Mutex<Option<Vec<PathBuf>>>,
}

impl Views {
    pub(crate) fn new(host: Arc<dyn Host>) -> Self {
        Self { host, open: Mutex::default(), roots: tokio::sync::Mutex::default() }
    }

    /// The client's roots are others now.
    pub(crate) async fn forget_roots(&self) {
        *self.roots.lock().await = None;
    }

    fn session(&self, place: Place, wanted: impl FnOnce(&Place) -> Wanted) -> Result<Arc<Session>, String> {
        let mut open = self.open.lock().expect("no code panics while it holds this lock");
        if let Some(session) = open.get(&place).filter(|session| !session.closed.is_cancelled()) {
            return Ok(session.clone());
        }
        let session = self.host.open_session(wanted(&place))?;
        session.bind();
        open.insert(place, session.clone());
        Ok(session)
    }
}

impl Drop for Views {
    fn drop(&mut self) {
        let open = self.open.get_mut().expect("no code panics while it holds this lock");
        for session in open.values() {
            session.unbind();
            self.host.close_session(&session.id);
        }
    }
}

/// The sessions of clients whose requests stand alone, so that a later request finds what an earlier
/// one read.
#[derive(Default)]
pub(crate) struct Visits(Mutex<HashMap<(Place, Option<String>), Visit>>);

struct Visit {
    session: Arc<Session>,
    last: Instant,
}

impl Visits {
    fn session(
        &self,
        host: &dyn Host,
        place: Place,
        client: Option<ClientInfo>,
        principal: Principal,
        connection: u64,
    ) -> Result<Arc<Session>, String> {
        let mut visits = self.0.lock().expect("no code panics while it holds this lock");
        let now = Instant::now();
        let idle = |visit: &Visit| now.duration_since(visit.last) > VISIT && visit.session.calls().is_empty();
        visits.retain(|_, visit| {
            let over = idle(visit);
            if over {
                host.close_session(&visit.session.id);
            }
            !over && !visit.session.closed.is_cancelled()
        });
        let key = (place.clone(), client.as_ref().map(|client| client.name.clone()));
        if let Some(visit) = visits.get_mut(&key) {
            visit.last = now;
            return Ok(visit.session.clone());
        }
        if visits.len() >= MAX_VISITS {
            return Err(format!("{MAX_VISITS} sessions of clients without a connection are open"));
        }
        let filter = place.narrowed.filter();
        let Place { cwd, roots, .. } = place;
        let session =
            host.open_session(Wanted { cwd, roots, client, principal, filter, connection, env: BTreeMap::new() })?;
        visits.insert(key, Visit { session: session.clone(), last: now });
        Ok(session)
    }
}

impl Server {
    /// The session that a request works in: where the client's roots are, else where the request or the
    /// connection says.
    pub(crate) async fn view(&self, context: &RequestContext<RoleServer>) -> Result<Arc<Session>, ErrorData> {
        self.note_default_cwd(&context.meta);
        let own = self.cwd_of(context)?;
        let mut place = Place { cwd: own, roots: Vec::new(), narrowed: self.narrowed(context)? };
        if !is_modern(context) {
            let mut roots = self.roots(context).await.into_iter();
            if let Some(first) = roots.next() {
                place.cwd = Some(first);
                place.roots = roots.collect();
            }
        }
        if place.cwd.is_none() {
            place.cwd = self.connection.default_cwd.lock().expect("no code panics while it holds this lock").clone();
        }
        let client = client_of(context);
        let principal = self.connection.principal;
        let session = match self.connection.kind {
            Kind::Http if is_modern(context) => {
                self.mcp.visits.session(self.mcp.host.as_ref(), place, client, principal, self.connection.id)
            }
            Kind::Stream | Kind::Http => self.views.session(place, |place| Wanted {
                cwd: place.cwd.clone(),
                roots: place.roots.clone(),
                client,
                principal,
                filter: place.narrowed.filter(),
                connection: self.connection.id,
                env: self.connection.env.lock().expect("no code panics while it holds this lock").clone(),
            }),
        };
        session.map_err(|words| ErrorData::invalid_params(words, None))
    }

    /// Takes what a bridge says of its whole connection.
    pub(crate) fn note_default_cwd(&self, meta: &RequestMetaObject) {
        if self.connection.kind == Kind::Stream
            && let Some(cwd) = meta.get(DEFAULT_CWD_KEY).and_then(|cwd| cwd.as_str())
        {
            let mut known = self.connection.default_cwd.lock().expect("no code panics while it holds this lock");
            *known = Some(PathBuf::from(cwd));
        }
        if self.connection.kind == Kind::Stream
            && let Some(env) = meta.get(ENV_KEY).and_then(|env| BTreeMap::deserialize(env).ok())
        {
            *self.connection.env.lock().expect("no code panics while it holds this lock") = env;
        }
    }

    /// Takes which tools the whole connection is to see. Bridges say so in its first message.
    ///
    /// # Errors
    /// Invalid params: what is said cannot be read. A list of all instead would show what was not wanted.
    pub(crate) fn note_sources(&self, meta: &RequestMetaObject) -> Result<(), ErrorData> {
        if self.connection.kind == Kind::Stream
            && let Some(said) = meta.get(SOURCES_KEY)
        {
            let narrowed = read_sources(said)?;
            *self.connection.narrowed.lock().expect("no code panics while it holds this lock") = Some(narrowed);
        }
        Ok(())
    }

    fn narrowed(&self, context: &RequestContext<RoleServer>) -> Result<Narrowed, ErrorData> {
        self.note_sources(&context.meta)?;
        let known = self.connection.narrowed.lock().expect("no code panics while it holds this lock").clone();
        if let Some(known) = known {
            return Ok(known);
        }
        if let Some(said) = context.meta.get(SOURCES_KEY) {
            return read_sources(said);
        }
        let parts = context.extensions.get::<::http::request::Parts>();
        let header = |name: &str| {
            let text = parts?.headers.get(name)?.to_str().ok()?;
            Some(text.split(',').map(|source| source.trim().to_owned()).collect())
        };
        Ok(Narrowed { only: header(SOURCES_HEADER), without: header(WITHOUT_SOURCES_HEADER) })
    }

    fn cwd_of(&self, context: &RequestContext<RoleServer>) -> Result<Option<PathBuf>, ErrorData> {
        let in_meta = match context.meta.get(CWD_KEY) {
            None => None,
            Some(cwd) => {
                let words = format!("_meta {CWD_KEY}: expected the absolute path of a folder");
                Some(cwd.as_str().ok_or_else(|| ErrorData::invalid_params(words, None))?)
            }
        };
        let parts = context.extensions.get::<::http::request::Parts>();
        let in_header = parts.and_then(|parts| parts.headers.get(CWD_HEADER)).and_then(|cwd| cwd.to_str().ok());
        Ok(in_meta.or(in_header).map(PathBuf::from))
    }

    /// The folders that the client works in, asked once and again when it says that they changed. None when
    /// it offers none, or does not tell them in time.
    #[expect(deprecated, reason = "roots are deprecated in the newest revision only")]
    async fn roots(&self, context: &RequestContext<RoleServer>) -> Vec<PathBuf> {
        let offers = context.client_capabilities().is_some_and(|capabilities| capabilities.roots.is_some());
        if !offers {
            return Vec::new();
        }
        let mut known = self.views.roots.lock().await;
        if let Some(roots) = known.as_ref() {
            return roots.clone();
        }
        let told = tokio::time::timeout(ROOTS_WAIT, context.peer.list_roots()).await;
        let roots = match told {
            Ok(Ok(told)) => {
                told.roots.iter().filter_map(|root| path_of(&root.uri)).filter(|path| path.is_dir()).collect()
            }
            Ok(Err(error)) => {
                tracing::debug!(connection = self.connection.id, %error, "the client did not tell its roots");
                Vec::new()
            }
            Err(_) => {
                tracing::debug!(connection = self.connection.id, "the client did not tell its roots in time");
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

fn read_sources(said: &serde_json::Value) -> Result<Narrowed, ErrorData> {
    Narrowed::deserialize(said)
        .map_err(|error| ErrorData::invalid_params(format!("_meta {SOURCES_KEY}: {error}"), None))
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
