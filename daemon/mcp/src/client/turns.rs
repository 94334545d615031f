//! Which sessions' calls may run on a server at one time: all, or those of one. A server of an older revision that asks a
//! person does not say for which call; when the calls are of one session, that is known.

use std::collections::HashMap;

use parking_lot::Mutex;
use tokio::sync::Notify;
use toold_proto::tool::SessionId;

#[derive(Default)]
pub(super) struct SessionTurns {
    state: Mutex<TurnState>,
    ended: Notify,
}

#[derive(Default)]
struct TurnState {
    /// The server has asked without naming a call.
    required: bool,
    running: HashMap<SessionId, usize>,
}

/// A call that runs until this is dropped.
pub(super) struct SessionTurn<'t> {
    turns: &'t SessionTurns,
    session: SessionId,
}

impl SessionTurns {
    /// From now on calls of one session wait for those of others.
    pub(super) fn require(&self) {
        self.state.lock().required = true;
    }

    /// Whether a call of this session has to wait at the moment.
    pub(super) fn is_taken(&self, session: &SessionId) -> bool {
        self.state.lock().is_taken(session)
    }

    /// Waits until calls of this session may run. Cancel-safe.
    pub(super) async fn take(&self, session: &SessionId) -> SessionTurn<'_> {
        loop {
            let ended = self.ended.notified();
            {
                let mut state = self.state.lock();
                if !state.is_taken(session) {
                    *state.running.entry(session.clone()).or_default() += 1;
                    return SessionTurn { turns: self, session: session.clone() };
                }
            }
            ended.await;
        }
    }
}

impl TurnState {
    fn is_taken(&self, session: &SessionId) -> bool {
        self.required && self.running.keys().any(|running| running != session)
    }
}

impl Drop for SessionTurn<'_> {
    fn drop(&mut self) {
        let mut state = self.turns.state.lock();
        if let Some(count) = state.running.get_mut(&self.session) {
            *count -= 1;
            if *count == 0 {
                state.running.remove(&self.session);
            }
        }
        drop(state);
        self.turns.ended.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[tokio::test]
    async fn sessions_take_turns_once_they_must() {
        let turns = SessionTurns::default();
        let (one, other) = (SessionId::parse("one").unwrap(), SessionId::parse("other").unwrap());
        let (a, b) = (turns.take(&one).await, turns.take(&other).await);
        turns.require();
        assert!(turns.take(&one).now_or_never().is_none());
        drop(b);
        let c = turns.take(&one).now_or_never().expect("calls of one session run at once");
        assert!(turns.is_taken(&other) && turns.take(&other).now_or_never().is_none());
        let mut waiting = std::pin::pin!(turns.take(&other));
        assert!(waiting.as_mut().now_or_never().is_none());
        drop((a, c));
        waiting.await;
    }
}
