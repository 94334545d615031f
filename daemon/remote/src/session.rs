//! Remote sessions: each local session has one of its own, so that grants, lanes and read stamps
//! are not mixed.

mod relay;

use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tokio_util::sync::{CancellationToken, DropGuard};
use toold_client::ClientError;
use toold_engine::cx::Cx;
use toold_engine::session::Session;
use toold_proto::method::{PermissionsSubscribe, QuestionsSubscribe, SessionClose};
use toold_proto::permission::SubscribePrompts;
use toold_proto::session::CloseSession;
use toold_proto::tool::{CallId, SessionId};

use crate::peer::{RemotePeer, open_session};
use crate::session::relay::PromptRelay;

/// The remote session of a local one.
pub(crate) struct RemoteSession {
    pub(crate) id: SessionId,
    local: Weak<Session>,
    /// Opened once on each connection.
    opened: tokio::sync::OnceCell<()>,
    /// The calls that are running in it, the newest last.
    calls: Mutex<Vec<(CallId, Arc<Cx>)>>,
    relaying: tokio::sync::Mutex<Option<RunningRelay>>,
}

/// The task that relays its prompts, until this is dropped.
struct RunningRelay {
    ended: CancellationToken,
    _stop: DropGuard,
}

impl RemoteSession {
    pub(crate) fn new(id: SessionId, local: &Arc<Session>) -> Self {
        Self {
            id,
            local: Arc::downgrade(local),
            opened: tokio::sync::OnceCell::new(),
            calls: Mutex::default(),
            relaying: tokio::sync::Mutex::default(),
        }
    }

    /// The local session is gone.
    pub(crate) fn is_abandoned(&self) -> bool {
        self.local.strong_count() == 0
    }

    /// # Errors
    /// Why it cannot be opened, as a sentence for a model.
    pub(crate) async fn ensure_open(&self, peer: &RemotePeer) -> Result<(), String> {
        let opened = self.opened.get_or_try_init(|| async {
            open_session(&peer.client, self.id.clone(), &peer.cwd).await.map(|_| ()).map_err(|error| error.to_string())
        });
        opened.await.copied()
    }

    pub(crate) async fn close(&self, peer: &RemotePeer) {
        drop(self.relaying.lock().await.take());
        // If this fails, the remote daemon closes it after a while.
        let _ = peer.client.call::<SessionClose>(CloseSession { session_id: self.id.clone() }).await;
    }

    /// A call that runs on the remote daemon, until this is dropped.
    pub(crate) fn begin_call(&self, call_id: CallId, cx: Arc<Cx>) -> RemoteCall<'_> {
        self.calls.lock().push((call_id.clone(), cx));
        RemoteCall { session: self, call_id }
    }

    /// Relays the prompts of its calls, if somebody here could answer those of this one.
    pub(crate) async fn relay_prompts(self: &Arc<Self>, peer: &Arc<RemotePeer>, cx: &Cx) -> Result<(), ClientError> {
        if !peer.can_decide || !cx.engine.asks.can_be_answered(cx) {
            return Ok(());
        }
        let mut relaying = self.relaying.lock().await;
        if relaying.as_ref().is_some_and(|relay| !relay.ended.is_cancelled()) {
            return Ok(());
        }
        let prompts = SubscribePrompts { session_id: Some(self.id.clone()) };
        let asks = peer.client.subscribe::<PermissionsSubscribe>(prompts.clone()).await?;
        let questions = peer.client.subscribe::<QuestionsSubscribe>(prompts).await?;
        let (ended, stop) = (CancellationToken::new(), peer.closing.child_token());
        let relay = PromptRelay::new(self.clone(), Arc::downgrade(peer));
        *relaying = Some(RunningRelay { ended: ended.clone(), _stop: stop.clone().drop_guard() });
        let ended = ended.drop_guard();
        peer.tasks.spawn(async move {
            let _ended = ended;
            relay.run(asks, questions, stop).await;
        });
        Ok(())
    }

    /// The local call that a remote prompt belongs to: the one that it names, otherwise the newest,
    /// since a nested call has an id that only the remote daemon knows.
    fn call_for(&self, ids: &[CallId]) -> Option<Arc<Cx>> {
        let calls = self.calls.lock();
        let mut running = calls.iter().rev().filter(|(_, cx)| !cx.is_cancelled());
        let newest = running.clone().next();
        running.find(|(id, _)| ids.contains(id)).or(newest).map(|(_, cx)| cx.clone())
    }
}

/// Counts as running on the remote daemon, until it is dropped.
pub(crate) struct RemoteCall<'a> {
    session: &'a RemoteSession,
    call_id: CallId,
}

impl Drop for RemoteCall<'_> {
    fn drop(&mut self) {
        self.session.calls.lock().retain(|(id, _)| *id != self.call_id);
    }
}
