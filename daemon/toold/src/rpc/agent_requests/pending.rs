//! The requests of agents whose tools have not ended. They outlive the connections that they came on.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use toold_builtins::agent_tool::{AgentReport, AgentTool};
use toold_engine::agent_request::Judgement;
use toold_proto::agent_request::FinishScope;
use toold_proto::tool::{CallId, SessionId};

use crate::peer::sessions::Opener;

/// How many requests of one session, and of all, may be open; beyond that the oldest judged ones end.
const MAX_OF_SESSION: usize = 64;
const MAX_IN_ALL: usize = 512;

/// An agent's process, as far as it is the same for each of its connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RequestingAgent {
    pub(super) opener: Opener,
    /// The session of the tool that started it.
    pub(super) below: Option<SessionId>,
}

/// A request that was made, and has not ended.
pub(super) struct OpenRequest {
    pub(super) requester: RequestingAgent,
    /// `AGENT/SESSION`, if the agent names its conversation.
    pub(super) conversation: Option<String>,
    pub(super) tool: Arc<AgentTool>,
    /// The agent's own id of the sub-agent that uses the tool, if it is one.
    pub(super) subagent: Option<String>,
    pub(super) session: SessionId,
    pub(super) call_id: CallId,
    /// The tool and its input.
    pub(super) digest: blake3::Hash,
    /// The rules, grants and modes that it was judged with.
    pub(super) generation: u64,
    pub(super) judgement: Option<Judgement>,
    pub(super) report: oneshot::Sender<AgentReport>,
    /// Ends it without a report.
    pub(super) cancel: CancellationToken,
    /// Fires when its call has ended.
    pub(super) ended: CancellationToken,
}

/// What a request has in common with one that is open.
pub(super) struct OpenRequestKey<'a> {
    /// `None` for one that is asked again and does not name its call.
    pub(super) id: Option<&'a str>,
    pub(super) conversation: Option<String>,
    pub(super) digest: &'a blake3::Hash,
    pub(super) generation: u64,
}

/// Too many requests of the session, or of all, wait for an answer.
pub(super) struct TooManyRequests;

/// All open requests, by number and by the id that their agents know.
#[derive(Default)]
pub(crate) struct OpenAgentRequests {
    next: AtomicU64,
    all: Mutex<HashMap<u64, (String, OpenRequest)>>,
}

impl OpenAgentRequests {
    /// Adds a request. One of the same id and the same agent ends.
    pub(super) fn add(&self, id: &str, request: OpenRequest) -> Result<u64, TooManyRequests> {
        let mut all = self.all.lock();
        let same =
            |(_, (known, other)): &(&u64, &(String, OpenRequest))| known == id && other.requester == request.requester;
        if let Some((number, other)) = all.iter().find(same).map(|(number, (_, other))| (*number, other)) {
            other.tool.note_gone("the agent asked again");
            end(&mut all, number);
        }
        let in_session = |open: &OpenRequest| open.session == request.session;
        if all.values().filter(|(_, open)| in_session(open)).count() >= MAX_OF_SESSION {
            end_oldest(&mut all, in_session)?;
        }
        if all.len() >= MAX_IN_ALL {
            end_oldest(&mut all, |_| true)?;
        }
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        all.insert(number, (id.to_owned(), request));
        Ok(number)
    }

    /// Records the judgement of a request.
    pub(super) fn judge(&self, number: u64, judgement: &Judgement) {
        if let Some((_, open)) = self.all.lock().get_mut(&number) {
            open.judgement = Some(judgement.clone());
        }
    }

    /// Forgets a request whose call has ended.
    pub(super) fn remove(&self, number: u64) {
        self.all.lock().remove(&number);
    }

    /// The judgement of an open request for the same tool and input, unless the policy has changed since; with the ids of the
    /// request and its call. A request that does not name its call has the judgement of the conversation's last one.
    pub(super) fn judgement_of(
        &self,
        key: &OpenRequestKey<'_>,
        requester: &RequestingAgent,
    ) -> Option<(Judgement, String, CallId)> {
        let all = self.all.lock();
        let is_same = |known: &str, open: &OpenRequest| {
            open.requester == *requester
                && open.digest == *key.digest
                && open.generation == key.generation
                && match key.id {
                    Some(id) => known == id,
                    None => key.conversation.is_some() && open.conversation == key.conversation,
                }
        };
        let same = all.iter().filter(|(_, (known, open))| is_same(known, open) && open.judgement.is_some());
        let (_, (id, open)) = same.max_by_key(|(number, _)| **number)?;
        Some((open.judgement.clone()?, id.clone(), open.call_id.clone()))
    }

    /// The conversation goes on, in the agent itself or in a sub-agent of it: has recorded what its judged tools have changed until
    /// now. Some of them may have ended without a report.
    pub(super) async fn go_on(&self, conversation: &str, subagent: Option<&str>, requester: &RequestingAgent) {
        let is_its = |open: &OpenRequest| {
            open.conversation.as_deref() == Some(conversation)
                && open.subagent.as_deref() == subagent
                && open.requester == *requester
                && open.judgement.is_some()
        };
        let tools = |all: &HashMap<u64, (String, OpenRequest)>| -> Vec<(Arc<AgentTool>, CancellationToken)> {
            let its = all.values().filter(|(_, open)| is_its(open));
            its.map(|(_, open)| (Arc::clone(&open.tool), open.ended.clone())).collect()
        };
        let tools = tools(&self.all.lock());
        for (tool, ended) in tools {
            tool.goes_on().record(&ended).await;
        }
    }

    /// Ends the judged requests of a conversation: all of them, or at the end of a turn those of the agent itself.
    pub(super) fn end_conversation(
        &self,
        conversation: &str,
        scope: FinishScope,
        may_end: impl Fn(&OpenRequest) -> bool,
    ) {
        let mut all = self.all.lock();
        let is_over = |open: &OpenRequest| {
            open.conversation.as_deref() == Some(conversation)
                && open.judgement.is_some()
                && (scope == FinishScope::Conversation || open.subagent.is_none())
                && may_end(open)
        };
        let over: Vec<u64> = all.iter().filter(|(_, (_, open))| is_over(open)).map(|(number, _)| *number).collect();
        for number in over {
            end(&mut all, number);
        }
    }

    /// Takes a judged request, of this agent or, for a person, of any.
    pub(super) fn take(&self, id: &str, may_end: impl Fn(&OpenRequest) -> bool) -> Option<OpenRequest> {
        let mut all = self.all.lock();
        let is_it = |(_, (known, open)): &(&u64, &(String, OpenRequest))| {
            known == id && open.judgement.is_some() && may_end(open)
        };
        let number = all.iter().find(is_it).map(|(number, _)| *number)?;
        all.remove(&number).map(|(_, open)| open)
    }
}

fn end(all: &mut HashMap<u64, (String, OpenRequest)>, number: u64) {
    if let Some((_, open)) = all.remove(&number) {
        open.cancel.cancel();
    }
}

/// One that a person is asked about goes on.
fn end_oldest(
    all: &mut HashMap<u64, (String, OpenRequest)>,
    counts: impl Fn(&OpenRequest) -> bool,
) -> Result<(), TooManyRequests> {
    let judged = all.iter().filter(|(_, (_, open))| open.judgement.is_some() && counts(open));
    let oldest = judged.map(|(number, _)| *number).min().ok_or(TooManyRequests)?;
    end(all, oldest);
    Ok(())
}
