//! The calls that run on a connection to a server, for its progress, its log messages and its requests.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use parking_lot::Mutex;
use rmcp::model::{ProgressNotificationParam, ProgressToken, RequestId};
use tokio_util::sync::CancellationToken;
use toold_engine::cx::Cx;
use toold_mounts::adapter::ConnectionContext;
use toold_proto::call::Progress;

use super::sampling::CallSampling;
use super::turns::SessionTurns;
use super::wedged::LifeSigns;

/// The destination of one connection's notifications.
pub(super) struct Notifications {
    pub(super) calls: ServerCalls,
    pub(super) turns: SessionTurns,
    pub(super) life: LifeSigns,
    pub(super) context: Arc<ConnectionContext>,
}

impl Notifications {
    pub(super) fn new(context: Arc<ConnectionContext>) -> Self {
        Self { calls: ServerCalls::default(), turns: SessionTurns::default(), life: LifeSigns::default(), context }
    }

    /// The call that a request of the server belongs to. A server that does not name it makes its sessions take turns.
    ///
    /// # Errors
    /// As a sentence for the server.
    pub(super) fn call_that_asks(
        &self,
        request: Option<&RequestId>,
        token: Option<&ProgressToken>,
    ) -> Result<AskingCall, UnknownCall> {
        let found = self.calls.find(request, token);
        // One that asks for roots when it starts need not be asking during calls.
        if request.is_none() && token.is_none() && !matches!(found, Err(UnknownCall::None)) {
            self.turns.require();
        }
        found
    }
}

/// The calls that are running on a server.
#[derive(Default)]
pub(super) struct ServerCalls(Mutex<HashMap<ProgressToken, ServerCall>>);

/// A request to a server for a call.
#[derive(Clone)]
struct ServerCall {
    request: RequestId,
    cx: Arc<Cx>,
    /// Fires when the server has answered, or nobody waits for its answer any more.
    ended: CancellationToken,
    sampling: Arc<CallSampling>,
}

/// The call that a request of a server belongs to.
pub(super) struct AskingCall {
    pub(super) cx: Arc<Cx>,
    pub(super) sampling: Arc<CallSampling>,
    /// Tokens of all calls that it can be.
    ended: Vec<CancellationToken>,
}

impl AskingCall {
    /// Waits until the call has certainly ended. Cancel-safe.
    pub(super) async fn ended(&self) {
        for ended in &self.ended {
            ended.cancelled().await;
        }
    }
}

impl From<&ServerCall> for AskingCall {
    fn from(call: &ServerCall) -> Self {
        let ServerCall { cx, sampling, ended, .. } = call.clone();
        Self { cx, sampling, ended: vec![ended] }
    }
}

/// Marks an outgoing request as that of a call. It never reaches the wire.
#[derive(Clone)]
pub(super) struct OfCall(pub(super) Arc<Cx>);

impl ServerCalls {
    pub(super) fn report_progress(&self, update: ProgressNotificationParam) {
        // Cloned, since the engine's sink must not run under this lock.
        let call = self.0.lock().get(&update.progress_token).cloned();
        if let Some(call) = call {
            call.cx.deadline.renew();
            let (progress, total) = (Some(update.progress), update.total);
            call.cx.report(Progress::Update { progress, total, message: update.message, content: None, details: None });
        }
    }

    pub(super) fn insert(&self, token: ProgressToken, request: RequestId, cx: Arc<Cx>) {
        let (ended, sampling) = (CancellationToken::new(), Arc::default());
        self.0.lock().insert(token, ServerCall { request, cx, ended, sampling });
    }

    pub(super) fn remove(&self, token: &ProgressToken) {
        let removed = self.0.lock().remove(token);
        if let Some(call) = removed {
            call.ended.cancel();
        }
    }

    pub(super) fn all(&self) -> Vec<Arc<Cx>> {
        self.0.lock().values().map(|call| call.cx.clone()).collect()
    }

    /// The newest call, if all that run are of one session.
    pub(super) fn only(&self) -> Option<Arc<Cx>> {
        self.find(None, None).ok().map(|call| call.cx)
    }

    /// The call that a server's request belongs to: the one that it names, or else the only running
    /// one. Calls of one session count as one: they belong to the same person.
    ///
    /// # Errors
    /// No call is running, or it may belong to calls of several sessions. From then on the sessions take turns.
    fn find(&self, request: Option<&RequestId>, token: Option<&ProgressToken>) -> Result<AskingCall, UnknownCall> {
        let calls = self.0.lock();
        if let Some(call) = token.and_then(|token| calls.get(token)) {
            return Ok(call.into());
        }
        if let Some(request) = request {
            let call = calls.values().find(|call| call.request == *request);
            return call.map(AskingCall::from).ok_or(UnknownCall::None);
        }
        let sessions: HashSet<&str> = calls.values().map(|call| call.cx.session.id.as_str()).collect();
        let newest = calls.values().max_by_key(|call| call.cx.started_at);
        let oldest = calls.values().min_by_key(|call| call.cx.started_at);
        match (newest.zip(oldest), sessions.len()) {
            (Some((newest, oldest)), 1) => Ok(AskingCall {
                cx: newest.cx.clone(),
                // One for all that may ask.
                sampling: oldest.sampling.clone(),
                ended: calls.values().map(|call| call.ended.clone()).collect(),
            }),
            (Some(_), of_sessions) => Err(UnknownCall::Ambiguous { of_sessions }),
            (None, _) => Err(UnknownCall::None),
        }
    }
}

/// Why a server's request has no addressee.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum UnknownCall {
    #[error("nobody was asked: no call is running that this question could belong to")]
    None,
    #[error(
        "nobody was asked: calls of {of_sessions} sessions are running, and the server did not say which of them asks. \
         From now on these calls wait for each other, so call again; or set scope = \"session\" for this server"
    )]
    Ambiguous { of_sessions: usize },
}
