//! The record of a call: events, counts and the audit row, each once.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;
use toold_proto::event::{EventBody, Outcome};
use toold_proto::tool::{Block, ToolResult};

use crate::agent_request::AgentRequest;
use crate::arguments::ArgumentNotes;
use crate::audit::{AuditRow, DecisionRecord, OF_AGENT};
use crate::call::CallError;
use crate::cx::Cx;
use crate::repeats::{count_repeat, forget_last_call, mark_repeat, number_of};
use crate::session::InFlightGuard;
use crate::tool::{Origin, ToolOutput, ToolSpec};

/// The target of log lines about calls, in whichever file they are written: users filter by it.
const TARGET: &str = "toold_engine::execute";

/// When a tool's run began, until it has ended, and how long it took.
#[derive(Default)]
struct RunClock {
    began: Option<Instant>,
    ran: Option<Duration>,
}

/// The arguments that reached the tool, as far as its result tells of them.
#[derive(Default)]
struct NotedArguments {
    notes: ArgumentNotes,
    /// The number of a call that no other call encloses.
    call: Option<u64>,
}

/// The record of one call: opened when the call starts, closed exactly once.
pub(super) struct CallRecord {
    cx: Arc<Cx>,
    input_bytes: u64,
    clock: parking_lot::Mutex<RunClock>,
    arguments: parking_lot::Mutex<NotedArguments>,
    /// See [`AuditRow::original`].
    original: parking_lot::Mutex<Option<Duration>>,
    /// Why the audit log does not know that it has begun.
    unrecorded: parking_lot::Mutex<Option<String>>,
    closed: bool,
    /// The call's id is free again when its record is closed.
    _in_flight: InFlightGuard,
}

impl CallRecord {
    pub(super) fn begin(cx: &Arc<Cx>, in_flight: InFlightGuard, arguments: &Value) -> Self {
        let engine = &cx.engine;
        engine.counts.start();
        engine.events.emit_started(cx.started(), cx.arguments.clone());
        tracing::debug!(target: TARGET, call = %cx.call_id, session = %cx.session.id, tool = %cx.tool, "call started");
        let input_bytes = if engine.audit.is_some() { json_length(arguments) } else { 0 };
        Self {
            cx: cx.clone(),
            input_bytes,
            clock: Default::default(),
            arguments: Default::default(),
            original: Default::default(),
            unrecorded: Default::default(),
            closed: false,
            _in_flight: in_flight,
        }
    }

    /// The arguments match the schema; again, if a hook changed them.
    pub(super) fn note_arguments(&self, notes: ArgumentNotes, arguments: &Value) {
        let mut noted = self.arguments.lock();
        let before = std::mem::take(&mut noted.notes);
        noted.notes = before.then(notes);
        noted.call = (self.cx.depth == 0).then(|| number_of(self.cx.tool.as_str(), arguments));
    }

    /// Tells in the output what became of the arguments. `times`: see [`CallRecord::count`].
    pub(super) fn tell(&self, times: u64, output: &mut ToolOutput) {
        std::mem::take(&mut self.arguments.lock().notes).into_metadata(&mut output.metadata);
        mark_repeat(&self.cx, times, output);
    }

    /// Counts the call by its output before that is cut; returns how often in a row it was the same.
    pub(super) fn count(&self, output: &ToolOutput) -> u64 {
        let call = self.arguments.lock().call.take();
        call.map_or(1, |call| count_repeat(&self.cx, call, output))
    }

    /// The call was answered from the cache, if `original` is there: the time of the call that produced the result.
    pub(super) fn note_original(&self, original: Option<Duration>) {
        *self.original.lock() = original;
    }

    /// Records in the audit log that the tool runs now, if it may change something: what it does may end the daemon.
    ///
    /// # Errors
    /// Why that cannot be recorded, if no call may run then.
    pub(super) fn begin_audited(&self, spec: &ToolSpec) -> Result<(), String> {
        let engine = &self.cx.engine;
        let Some(audit) = &engine.audit else { return Ok(()) };
        let is_required = engine.settings.load().audit_required;
        if !is_required && !may_change(spec) {
            return Ok(());
        }
        match audit.begin(&self.row(self.cx.decisions(), Outcome::Interrupted, 0, 0)) {
            Ok(number) => self.cx.note_begun(number),
            Err(why) if is_required => return Err(why),
            Err(why) => *self.unrecorded.lock() = Some(why),
        }
        Ok(())
    }

    fn row(&self, decisions: Vec<DecisionRecord>, outcome: Outcome, duration_ms: u64, output_bytes: u64) -> AuditRow {
        AuditRow {
            original: *self.original.lock(),
            input_bytes: self.input_bytes,
            output_bytes,
            ..row_of(&self.cx, decisions, outcome, duration_ms)
        }
    }

    pub(super) fn clock_starts(&self) {
        self.clock.lock().began = Some(Instant::now());
    }

    /// Whether the tool runs or has run.
    pub(super) fn has_run(&self) -> bool {
        let clock = self.clock.lock();
        clock.began.is_some() || clock.ran.is_some()
    }

    /// Returns how long the tool ran; `None` when it did not.
    pub(super) fn clock_stops(&self) -> Option<Duration> {
        let mut clock = self.clock.lock();
        if let Some(began) = clock.began.take() {
            clock.ran = Some(began.elapsed());
        }
        clock.ran
    }

    pub(super) fn duration(&self) -> Duration {
        self.clock_stops().unwrap_or_default()
    }

    pub(super) fn finish(
        mut self,
        mut answer: Result<ToolResult, CallError>,
    ) -> (Result<ToolResult, CallError>, Outcome) {
        let outcome = match &answer {
            Ok(result) => outcome_of(result),
            Err(CallError::InvalidArgs { .. } | CallError::UnknownTool { .. } | CallError::DuplicateCallId(_)) => {
                Outcome::InvalidArgs
            }
            Err(CallError::PermissionEngine(_) | CallError::Failed(_)) => Outcome::Failed,
            Err(CallError::Overloaded(_)) => Outcome::Overloaded,
            Err(CallError::Cancelled | CallError::Ended) => Outcome::Cancelled,
        };
        let output_bytes = match &answer {
            Ok(result) => result.content.iter().filter_map(Block::as_text).map(str::len).sum::<usize>() as u64,
            Err(_) => 0,
        };
        if answer.is_err() && self.cx.depth == 0 {
            forget_last_call(&self.cx);
        }
        let unrecorded = self.close(outcome, output_bytes);
        if let (Ok(result), Some(why)) = (&mut answer, unrecorded) {
            result.content.push(Block::text(format!("[this call is not recorded in the audit log: {why}]")));
            result.metadata.insert("not_recorded".to_owned(), why.into());
        }
        (answer, outcome)
    }

    /// Returns why the call is not recorded, if it is not.
    fn close(&mut self, outcome: Outcome, output_bytes: u64) -> Option<String> {
        self.closed = true;
        let cx = &self.cx;
        let engine = &cx.engine;
        let ran = self.clock_stops();
        let duration_ms = ran.unwrap_or_default().as_millis() as u64;
        engine.counts.finish(outcome);
        // The time of an agent's own tool, and of its prompt, says nothing about the tools here.
        if cx.agent.is_none() {
            engine.latencies.record(&cx.tool, outcome, ran);
        }
        let recorded = engine
            .audit
            .as_ref()
            .map(|audit| audit.record(&self.row(take_decisions(cx), outcome, duration_ms, output_bytes)));
        tracing::debug!(
            target: TARGET,
            call = %cx.call_id, session = %cx.session.id, tool = %cx.tool,
            outcome = outcome.as_str(), duration_ms, "call finished"
        );
        engine.events.emit(EventBody::CallFinished {
            call_id: cx.call_id.clone(),
            session_id: cx.session.id.clone(),
            tool: cx.tool.clone(),
            agent: cx.agent_name(),
            outcome,
            duration_ms,
        });
        let unrecorded = self.unrecorded.lock().take();
        recorded?.err().or(unrecorded)
    }
}

fn row_of(cx: &Cx, decisions: Vec<DecisionRecord>, outcome: Outcome, duration_ms: u64) -> AuditRow {
    AuditRow {
        begun: cx.begun(),
        at: cx.started_at,
        call_id: cx.call_id.clone(),
        session_id: cx.session.id.clone(),
        tool: cx.tool.clone(),
        source: match &cx.agent {
            Some(request) => source_of_agent(request),
            None => [cx.source.kind.as_str(), ":", &cx.source.name].concat(),
        },
        client: cx.client(),
        connection: cx.caller.connection,
        decisions,
        outcome,
        duration_ms,
        original: None,
        input_bytes: 0,
        output_bytes: 0,
    }
}

/// All decisions, with the questions that the end of the call left without an answer.
fn take_decisions(cx: &Cx) -> Vec<DecisionRecord> {
    let mut decisions = cx.take_decisions();
    decisions.extend(cx.unanswered(how_it_ended(cx)));
    decisions
}

/// How a call ended that a person was asked about in vain, in words.
fn how_it_ended(cx: &Cx) -> &'static str {
    let gone = cx.agent.as_ref().map(|agent| agent.gone.get().copied());
    match gone {
        Some(Some(gone)) => gone,
        // Nothing else ends it.
        Some(None) => "toold stopped",
        None if cx.engine.stop.is_cancelled() => "toold stopped",
        None => "the call was cancelled",
    }
}

impl Cx {
    /// Records in the audit log that a person is asked: the daemon may be killed before the answer.
    pub(crate) fn audit_ask(&self) {
        let Some(audit) = &self.engine.audit else { return };
        let mut decisions = self.decisions();
        decisions.extend(self.unanswered("toold ended"));
        match audit.begin(&row_of(self, decisions, Outcome::Interrupted, 0)) {
            Ok(number) => self.note_begun(number),
            Err(error) => tracing::warn!(target: TARGET, call = %self.call_id, error, "a question is not recorded"),
        }
    }

    /// Records what was decided for a program that ran on [in the background](Cx::in_background), in a row of its own with
    /// the id of its call; nothing if nothing was.
    pub fn audit_background(&self) {
        let decisions = take_decisions(self);
        let Some(audit) = self.engine.audit.as_ref().filter(|_| !decisions.is_empty()) else { return };
        let denied = decisions.iter().any(|decision| decision.verdict == "deny");
        let outcome = if denied { Outcome::Denied } else { Outcome::Ok };
        let duration = self.started_at.elapsed().unwrap_or_default();
        if let Err(error) = audit.record(&row_of(self, decisions, outcome, duration.as_millis() as u64)) {
            tracing::warn!(target: TARGET, call = %self.call_id, error, "a program in the background is not recorded");
        }
    }
}

/// The name of the agent, and behind a slash its sub-agent.
fn source_of_agent(request: &AgentRequest) -> String {
    let subagent = request.subagent.iter().flat_map(|subagent| ["/", subagent]);
    [OF_AGENT, &request.agent].into_iter().chain(subagent).collect()
}

impl Drop for CallRecord {
    /// The future of the call was dropped, as when its connection's task dies: the work must stop, and
    /// the record is closed all the same.
    fn drop(&mut self) {
        if !self.closed {
            self.cx.cancel.cancel();
            self.close(Outcome::Cancelled, 0);
        }
    }
}

/// Whether a tool may change something. Only the built-in tools are believed that they do not.
fn may_change(spec: &ToolSpec) -> bool {
    spec.origin != Origin::Builtin || spec.annotations.read_only != Some(true)
}

/// How many bytes a value takes as JSON, without storing the text.
fn json_length(value: &Value) -> u64 {
    struct Counter(u64);
    impl std::io::Write for Counter {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len() as u64;
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut counter = Counter(0);
    serde_json::to_writer(&mut counter, value).expect("any value is JSON, and counting cannot fail");
    counter.0
}

fn outcome_of(result: &ToolResult) -> Outcome {
    let marked = |key: &str| result.metadata.get(key).is_some_and(|value| *value != Value::Bool(false));
    match result.is_error {
        false => Outcome::Ok,
        true if marked("permission") => Outcome::Denied,
        true if marked("timed_out") => Outcome::TimedOut,
        true if marked("skipped") => Outcome::Skipped,
        true if result.metadata.get("outcome").is_some_and(|outcome| outcome == "unknown") => Outcome::Interrupted,
        true => Outcome::Error,
    }
}
