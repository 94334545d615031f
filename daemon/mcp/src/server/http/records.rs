//! The sessions of the revisions up to 2025-11-25 on HTTP, as the next daemon takes them over at a restart. Their clients go
//! on under the same ids, without a greeting.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use parking_lot::Mutex;
use rmcp::model::{ClientJsonRpcMessage, ClientRequest};
use rmcp::transport::streamable_http_server::session::{SessionState, SessionStore, SessionStoreError};
use serde::{Deserialize, Serialize};

/// Bytes of a greeting; the session of a longer one ends with its daemon.
const MAX_GREETING: usize = 64 * 1024;
/// Room for streams that begin while the daemon is replaced.
const STREAMS_MEANWHILE: u64 = 1 << 16;

/// The sessions of all tokens.
#[derive(Default)]
pub(crate) struct HttpSessions {
    /// By their token's owner and their id.
    records: Mutex<HashMap<(String, String), SessionState>>,
    /// The number of the next stream of a request; the ids of events name it.
    next_stream: Arc<AtomicU64>,
}

/// The sessions that the next daemon takes over.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct HttpSessionRecords {
    sessions: Vec<HttpSessionRecord>,
    next_stream: u64,
}

#[derive(Debug, Serialize, Deserialize)]
struct HttpSessionRecord {
    owner: String,
    id: String,
    state: SessionState,
}

impl HttpSessions {
    pub(crate) fn hand_over(&self) -> HttpSessionRecords {
        let records = self.records.lock();
        let sessions = records.iter().map(|((owner, id), state)| HttpSessionRecord {
            owner: owner.clone(),
            id: id.clone(),
            state: state.clone(),
        });
        let next_stream = self.next_stream.load(Ordering::Relaxed) + STREAMS_MEANWHILE;
        HttpSessionRecords { sessions: sessions.collect(), next_stream }
    }

    pub(crate) fn restore(&self, handed_over: HttpSessionRecords) {
        let sessions = handed_over.sessions.into_iter();
        self.records.lock().extend(sessions.map(|record| ((record.owner, record.id), record.state)));
        self.next_stream.fetch_max(handed_over.next_stream, Ordering::Relaxed);
    }

    /// Those of one token. `owner` tells tokens apart.
    pub(super) fn of(self: &Arc<Self>, owner: String) -> TokenSessionRecords {
        TokenSessionRecords { all: self.clone(), owner }
    }
}

/// The sessions of one token.
#[derive(Clone)]
pub(super) struct TokenSessionRecords {
    all: Arc<HttpSessions>,
    owner: String,
}

impl TokenSessionRecords {
    /// Records a session that is greeted with this message.
    pub(super) fn add(&self, id: &str, greeting: &ClientJsonRpcMessage) {
        let ClientJsonRpcMessage::Request(request) = greeting else { return };
        let ClientRequest::InitializeRequest(initialize) = &request.request else { return };
        let state = SessionState::new(initialize.params.clone());
        if serde_json::to_vec(&state).is_ok_and(|text| text.len() <= MAX_GREETING) {
            self.all.records.lock().insert(self.key(id), state);
        }
    }

    pub(super) fn has(&self, id: &str) -> bool {
        self.all.records.lock().contains_key(&self.key(id))
    }

    /// The revision that the client of a session asked for in its greeting.
    pub(super) fn revision(&self, id: &str) -> Option<String> {
        let records = self.all.records.lock();
        records.get(&self.key(id)).map(|state| state.initialize_params.protocol_version.to_string())
    }

    pub(super) fn remove(&self, id: &str) {
        self.all.records.lock().remove(&self.key(id));
    }

    pub(super) fn stream_numbers(&self) -> Arc<AtomicU64> {
        self.all.next_stream.clone()
    }

    fn key(&self, id: &str) -> (String, String) {
        (self.owner.clone(), id.to_owned())
    }
}

#[async_trait]
impl SessionStore for TokenSessionRecords {
    async fn load(&self, id: &str) -> Result<Option<SessionState>, SessionStoreError> {
        Ok(self.all.records.lock().get(&self.key(id)).cloned())
    }

    /// It is recorded when it is greeted, before it can end.
    async fn store(&self, _: &str, _: &SessionState) -> Result<(), SessionStoreError> {
        Ok(())
    }

    async fn delete(&self, id: &str) -> Result<(), SessionStoreError> {
        self.remove(id);
        Ok(())
    }
}
