//! Tells the daemon that runs a call that nobody waits for it any more.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use tokio::time::{sleep, timeout};

use crate::member::Member;
use crate::messages::{CancelCallRequest, CancelledCall};
use crate::names::FleetName;
use crate::signed::SignedKind;
use crate::silence::SILENCE;
use crate::subjects;

/// How long one attempt waits for the answer.
const ANSWER: Duration = Duration::from_secs(5);
/// Between attempts.
const PAUSE: Duration = Duration::from_secs(1);
/// How long the last message may take when this daemon stops.
const LAST_MESSAGE: Duration = Duration::from_secs(1);

/// Cancels the call on its daemon when it is dropped, unless the call has ended.
pub(super) struct CancelGuard {
    member: Arc<Member>,
    call_id: String,
    /// `None` while no daemon is known to have the call.
    daemon: Option<FleetName>,
}

impl CancelGuard {
    pub(super) fn new(member: &Arc<Member>, call_id: &str, daemon: Option<FleetName>) -> Self {
        Self { member: member.clone(), call_id: call_id.to_owned(), daemon }
    }

    pub(super) fn arm(&mut self, daemon: &FleetName) {
        self.daemon = Some(daemon.clone());
    }

    pub(super) fn disarm(&mut self) {
        self.daemon = None;
    }
}

impl Drop for CancelGuard {
    fn drop(&mut self) {
        let Some(daemon) = self.daemon.take() else { return };
        let (member, call_id) = (self.member.clone(), std::mem::take(&mut self.call_id));
        let tasks = member.tasks.clone();
        tasks.spawn(async move {
            let told = async {
                while !tell(&member, &daemon, &call_id).await {
                    sleep(PAUSE).await;
                }
            };
            tokio::select! {
                // After that time the daemon has noticed the silence.
                told = timeout(SILENCE, told) => if told.is_err() {
                    tracing::debug!(%daemon, call_id, "a cancelled call was not confirmed");
                },
                () = member.stop.cancelled() => {
                    let last = timeout(LAST_MESSAGE, async {
                        send(&member, &daemon, &call_id, member.broker.client.new_inbox()).await?;
                        member.broker.client.flush().await.map_err(|error| error.to_string())
                    });
                    if !matches!(last.await, Ok(Ok(()))) {
                        tracing::debug!(%daemon, call_id, "the cancellation of a call was not sent");
                    }
                }
            }
        });
    }
}

async fn send(member: &Member, daemon: &FleetName, call_id: &str, inbox: String) -> Result<(), String> {
    // A command is obeyed once, so each attempt is a new message.
    let request = CancelCallRequest { call_id: call_id.to_owned() };
    let bytes = member.sign(SignedKind::Cancel, daemon.as_str(), request);
    let sent = member.broker.client.publish_with_reply(subjects::cancel(daemon, call_id), inbox, bytes.into()).await;
    sent.map_err(|error| error.to_string())
}

/// Returns whether the daemon has confirmed that nothing of the call runs any more.
async fn tell(member: &Member, daemon: &FleetName, call_id: &str) -> bool {
    let mut state = member.broker.state.clone();
    if state.wait_for(|state| state.connected).await.is_err() {
        return true;
    }
    let inbox = member.broker.client.new_inbox();
    let Ok(mut answers) = member.broker.client.subscribe(inbox.clone()).await else { return false };
    if send(member, daemon, call_id, inbox).await.is_err() {
        return false;
    }
    let confirmed = async {
        while let Some(answer) = answers.next().await {
            if answer.status.is_some() {
                return false;
            }
            let answer = member.verify::<CancelledCall>(&answer.payload, SignedKind::Cancelled, call_id);
            if answer.is_ok_and(|answer| answer.from == *daemon) {
                return true;
            }
        }
        false
    };
    timeout(ANSWER, confirmed).await.unwrap_or(false)
}
