//! Calls that outlive their caller: their session stores the outcomes for a while.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use parking_lot::Mutex;
use toold_proto::tool::{CallId, ToolResult};

use crate::Engine;
use crate::argument_line::ArgumentLine;
use crate::cache::{content_bytes, json_bytes};
use crate::call::{Call, CallError};
use crate::meta_tools::tool_of;
use crate::session::Session;

/// How long the outcome of a detached call is stored.
pub const RETENTION: Duration = Duration::from_secs(600);
/// Outcomes that one session stores, and bytes of their results; the oldest are dropped first, and
/// the newest always stays.
const MAX_KEPT: usize = 64;
const MAX_BYTES: usize = 16 << 20;

/// How a detached call ended.
#[derive(Clone, Debug)]
pub struct FinishedCall {
    pub call_id: CallId,
    pub tool: String,
    pub cwd: PathBuf,
    pub arguments: Option<Arc<ArgumentLine>>,
    pub started_at: SystemTime,
    pub answer: Result<ToolResult, CallError>,
}

/// A call that is detached, or may become so; created before it runs.
pub struct Detached {
    session: Arc<Session>,
    call_id: Option<CallId>,
    tool: String,
    cwd: PathBuf,
    arguments: Option<Arc<ArgumentLine>>,
    started_at: SystemTime,
}

impl Detached {
    pub fn of(engine: &Engine, call: &Call) -> Self {
        let (session, call_id) = (call.session.clone(), call.call_id.clone());
        let snapshot = engine.registry.snapshot();
        let tool = tool_of(snapshot.view(session.project()), call);
        let tool = tool.map_or_else(|| call.name.clone(), |tool| tool.own_name().to_string());
        let cwd = call.cwd.as_ref().unwrap_or(&session.cwd).clone();
        Self {
            session,
            call_id,
            tool,
            cwd,
            arguments: ArgumentLine::of(&call.arguments),
            started_at: SystemTime::now(),
        }
    }

    /// Stores the outcome. Calls without an id are not stored.
    pub fn keep(self, answer: &Result<ToolResult, CallError>) {
        let Self { session, call_id: Some(call_id), tool, cwd, arguments, started_at } = self else { return };
        let answer = answer.clone();
        session.slot::<RetainedCalls>().keep(FinishedCall { call_id, tool, cwd, arguments, started_at, answer });
    }
}

/// The outcomes that a session stores, the oldest first.
pub fn ended(session: &Session) -> Vec<FinishedCall> {
    session.slot::<RetainedCalls>().list()
}

/// Drops the outcomes that have expired.
pub fn forget_old(session: &Session) {
    if let Some(all) = session.slot_if_any::<RetainedCalls>() {
        all.list();
    }
}

#[derive(Default)]
struct RetainedCalls(Mutex<VecDeque<RetainedCall>>);

struct RetainedCall {
    at: Instant,
    bytes: usize,
    ended: FinishedCall,
}

impl RetainedCalls {
    fn keep(&self, ended: FinishedCall) {
        let bytes = ended.answer.as_ref().map_or(0, bytes);
        let mut kept = self.0.lock();
        let mut all = bytes + kept.iter().map(|kept| kept.bytes).sum::<usize>();
        while kept.len() >= MAX_KEPT || all > MAX_BYTES {
            let Some(oldest) = kept.pop_front() else { break };
            all -= oldest.bytes;
        }
        kept.push_back(RetainedCall { at: Instant::now(), bytes, ended });
    }

    fn list(&self) -> Vec<FinishedCall> {
        let mut kept = self.0.lock();
        kept.retain(|kept| kept.at.elapsed() < RETENTION);
        kept.iter().map(|kept| kept.ended.clone()).collect()
    }
}

fn bytes(result: &ToolResult) -> usize {
    content_bytes(&result.content) + json_bytes(&result.metadata) + result.structured.as_ref().map_or(0, json_bytes)
}

#[cfg(test)]
mod tests {
    use toold_proto::tool::Block;

    use super::*;

    fn ended(number: usize, bytes: usize) -> FinishedCall {
        let call_id = CallId::parse(&number.to_string()).unwrap();
        let result = ToolResult {
            call_id: call_id.clone(),
            content: vec![Block::Text { text: "x".repeat(bytes) }],
            is_error: false,
            metadata: Default::default(),
            structured: None,
            duration_ms: 0,
            cached: false,
        };
        FinishedCall {
            call_id,
            tool: "read".to_owned(),
            cwd: "/".into(),
            arguments: None,
            started_at: SystemTime::now(),
            answer: Ok(result),
        }
    }

    #[test]
    fn results_are_kept_within_their_bounds_and_the_newest_always() {
        for (bytes, calls, kept) in [(10, 100, MAX_KEPT), (5 << 20, 9, 3), (20 << 20, 2, 1)] {
            let all = RetainedCalls::default();
            (0..calls).for_each(|number| all.keep(ended(number, bytes)));
            let ids: Vec<String> = all.list().iter().map(|ended| ended.call_id.to_string()).collect();
            let newest: Vec<String> = (calls - kept..calls).map(|number| number.to_string()).collect();
            assert_eq!(ids, newest, "{bytes} bytes each");
        }
    }
}
