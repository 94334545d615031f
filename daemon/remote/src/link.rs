//! A connection to a daemon, and the sessions that it holds there.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use toold_engine::session::Session;
use toold_mounts::adapter::ConnectionContext;
use toold_proto::method::SessionClose;
use toold_proto::session::CloseSession;
use toold_proto::tool::{CallId, SessionId};

use crate::peer::RemotePeer;
use crate::session::RemoteSession;

pub struct RemoteLink {
    pub(crate) peer: Arc<RemotePeer>,
    pub(crate) context: Arc<ConnectionContext>,
    /// For the daemon itself, which lists tools in it.
    pub(crate) base_session: SessionId,
    /// The name that the daemon reports.
    pub(crate) instance: String,
    pub(crate) version: String,
    /// The prefix of this daemon's sessions.
    pub(crate) namer: SessionNamer,
    /// The prefix of call ids, so that no other daemon uses the same.
    pub(crate) call_prefix: String,
    pub(crate) next_call: AtomicU64,
    pub(crate) sessions: Mutex<HashMap<SessionId, Arc<RemoteSession>>>,
}

/// Makes names of remote sessions that cannot be guessed, and that are the same on another
/// connection.
#[derive(Clone)]
pub(crate) struct SessionNamer {
    pub(crate) secret: [u8; 32],
    pub(crate) remote: String,
}

impl SessionNamer {
    pub(crate) fn name(&self, session: &str) -> SessionId {
        let text = format!("{}\0{session}", self.remote);
        let hash = blake3::keyed_hash(&self.secret, text.as_bytes()).to_hex();
        SessionId::parse(&format!("r-{}", &hash[..32])).expect("hexadecimal digits fit")
    }
}

impl RemoteLink {
    /// The remote session for a local one.
    pub(crate) fn session(&self, session: &Arc<Session>) -> Arc<RemoteSession> {
        let make = || Arc::new(RemoteSession::new(self.namer.name(session.id.as_str()), session));
        self.sessions.lock().entry(session.id.clone()).or_insert_with(make).clone()
    }

    /// A new id: other daemons may call on behalf of the same session.
    pub(crate) fn new_call_id(&self) -> CallId {
        let n = self.next_call.fetch_add(1, Ordering::Relaxed);
        CallId::parse(&format!("{}-{n}", self.call_prefix)).expect("hexadecimal digits and a number are printable")
    }

    /// Closes the remote sessions whose local session is gone.
    pub(crate) async fn close_abandoned_sessions(&self) {
        let abandoned: Vec<Arc<RemoteSession>> =
            self.sessions.lock().extract_if(|_, session| session.is_abandoned()).map(|(_, session)| session).collect();
        for session in abandoned {
            session.close(&self.peer).await;
        }
    }

    pub(crate) async fn close_all_sessions(&self) {
        let sessions: Vec<Arc<RemoteSession>> = self.sessions.lock().drain().map(|(_, session)| session).collect();
        for session in sessions {
            session.close(&self.peer).await;
        }
        let base = CloseSession { session_id: self.base_session.clone() };
        let _ = self.peer.client.call::<SessionClose>(base).await;
    }
}
