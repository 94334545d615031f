//! The context of a call: everything that a tool can use.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::{Duration, SystemTime};

use parking_lot::{Mutex, MutexGuard};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use toold_proto::agent_request::{DecidedBy, DeniedUnasked};
use toold_proto::audit::HostTraffic;
use toold_proto::call::{Progress, Stream};
use toold_proto::event::EventBody;
use toold_proto::level::Level;
use toold_proto::provide::{CallInfo, CallState, CallWait};
use toold_proto::session::Mode;
use toold_proto::tool::{CallId, Category, Source, SourceKind, ToolName};

use crate::Engine;
use crate::agent_request::{AgentRequest, NOBODY_ANSWERED, OBSERVED, QuestionLeft};
use crate::argument_line::ArgumentLine;
use crate::arrival::ArrivalTurn;
use crate::audit::DecisionRecord;
use crate::call::{Call, Caller, Principal};
use crate::deadline::Deadline;
use crate::dependencies::{Dependencies, FileStamp};
use crate::floor::{AllowedParts, Floor};
use crate::judged_need::JudgedNeed;
use crate::level::may_be_free;
use crate::need::Need;
use crate::progress::ProgressLog;
use crate::session::{CallInFlight, Session, SessionOwner};
use crate::slots::Slots;
use crate::time::rfc3339;
use crate::tool::{Origin, ToolOutput, ToolSpec};

/// The context of one call.
pub struct Cx {
    pub engine: Arc<Engine>,
    pub call_id: CallId,
    /// The tool's own name.
    pub tool: ToolName,
    pub source: Source,
    pub origin: Origin,
    pub session: Arc<Session>,
    /// An absolute, resolved folder within the session's `cwd` or roots.
    pub cwd: PathBuf,
    pub caller: Arc<Caller>,
    /// The plugins between the caller and this call, the outermost first; not this call's own.
    pub outer_chain: Arc<[String]>,
    /// `outer_chain` and this call's own plugin: the chain of needs inside the tool.
    pub chain: Arc<[String]>,
    /// The nesting depth of this call.
    pub depth: u32,
    /// Whether this call, or one that encloses it, holds the session's lane.
    pub holds_lane: bool,
    /// No stored result may be used, neither for this call nor for its nested calls.
    pub no_cache: bool,
    pub deadline: Deadline,
    /// Fires when the caller gave up, the time is over, or the daemon stops.
    pub cancel: CancellationToken,
    pub started_at: SystemTime,
    pub progress: ProgressLog,
    /// As its caller sent them; `None` without arguments.
    pub(crate) arguments: Option<Arc<ArgumentLine>>,
    /// Nobody is asked anything: a need that a person would have to approve is refused.
    pub unattended: bool,
    /// The request of an agent, in a call that only judges what the agent does with a tool of its own.
    pub agent: Option<Arc<AgentRequest>>,
    notes: Mutex<CallNotes>,
    slots: Slots,
    /// The call after whose end this context is used; its notes are used.
    ended: Option<Arc<Cx>>,
    this: Weak<Cx>,
}

/// Longer than any call.
const ENDLESS: Duration = Duration::from_secs(365 * 24 * 3600);
/// What a call that timed out says besides.
const MAX_HINTS: usize = 2;

#[derive(Default)]
struct CallNotes {
    decisions: Vec<DecisionRecord>,
    granted_once: Vec<(Need, Vec<String>)>,
    /// Commands that were approved as a whole, not by a pattern.
    approved_commands: Vec<String>,
    /// What allowed the parts of its commands.
    allowed: AllowedParts,
    timed_out: bool,
    /// What is said when the call's time is over.
    time_out_hints: Vec<String>,
    /// The question that was left to an agent's own prompt, with the reason for it.
    question_left: Option<QuestionLeft>,
    denied: Option<DecidedBy>,
    /// A question to a person.
    asked: Vec<DecisionRecord>,
    /// See [`AuditRow::begun`](crate::audit::AuditRow::begun).
    begun: Option<u64>,
    depends: Dependencies,
    waits_for: Vec<CallWait>,
    /// Its place among the calls of its client, until it has joined the queue of the lane or waits for something else.
    turn: Option<ArrivalTurn>,
}

impl Cx {
    /// `outer` encloses the call, if it is a nested one.
    pub(crate) fn new(
        engine: &Arc<Engine>,
        call: &Call,
        outer: Option<&Self>,
        (tool, spec): (&ToolName, &ToolSpec),
        agent: Option<Arc<AgentRequest>>,
        call_id: CallId,
    ) -> Arc<Self> {
        let chain = match spec.source.kind {
            SourceKind::Plugin => call.chain.iter().cloned().chain([spec.source.name.clone()]).collect(),
            SourceKind::Builtin | SourceKind::Frontend | SourceKind::Mcp | SourceKind::Remote | SourceKind::Fleet => {
                call.chain.clone()
            }
        };
        // Dependencies of a plugin's tool are recorded when another tool calls it, since they are
        // then dependencies of the other's result. All other tools without a `cache_ttl` depend on
        // things that nobody can check.
        let is_part = call.depth > 0 && spec.source.kind == SourceKind::Plugin;
        let depends = match spec.cache_ttl.is_some() || is_part {
            true => Dependencies::default(),
            false => Dependencies::private(),
        };
        Arc::new_cyclic(|this| Self {
            engine: engine.clone(),
            call_id,
            tool: tool.clone(),
            source: spec.source.clone(),
            origin: spec.origin,
            session: call.session.clone(),
            cwd: call.cwd.clone().unwrap_or_else(|| call.session.cwd.clone()),
            caller: call.caller.clone(),
            outer_chain: call.chain.clone(),
            chain,
            depth: call.depth,
            holds_lane: call.holds_lane || !spec.parallelizable,
            no_cache: call.no_cache,
            deadline: Deadline::after(ENDLESS),
            cancel: call.cancel.clone(),
            started_at: SystemTime::now(),
            progress: ProgressLog::new(call.progress.clone()),
            arguments: ArgumentLine::of(&call.arguments),
            unattended: outer.is_some_and(|outer| outer.unattended) || call.session.is_of_plugin(),
            agent,
            notes: Mutex::new(CallNotes { depends, ..CallNotes::default() }),
            slots: Slots::default(),
            ended: None,
            this: this.clone(),
        })
    }

    /// A context for work of the tool after its call has ended, such as cleaning up, which may take `limit`. It has the
    /// permissions of the call, including those that a person gave it once, and a token of its own, so that it can be
    /// used after the call was cancelled. Nobody is asked, and nobody receives its progress.
    pub fn after_end(&self, limit: Duration) -> Arc<Self> {
        self.later(Deadline::after(limit), CancellationToken::new(), true, Some(self.shared()))
    }

    /// A context for a program that the call leaves running in the background. It is asked about as the call is, and keeps
    /// its own decisions: see [`Cx::audit_background`]. `cancel` ends it.
    pub fn in_background(&self, cancel: CancellationToken) -> Arc<Self> {
        self.later(Deadline::after(ENDLESS), cancel, self.unattended, None)
    }

    fn later(
        &self,
        deadline: Deadline,
        cancel: CancellationToken,
        unattended: bool,
        ended: Option<Arc<Self>>,
    ) -> Arc<Self> {
        Arc::new_cyclic(|this| Self {
            engine: self.engine.clone(),
            call_id: self.call_id.clone(),
            tool: self.tool.clone(),
            source: self.source.clone(),
            origin: self.origin,
            session: self.session.clone(),
            cwd: self.cwd.clone(),
            caller: self.caller.clone(),
            outer_chain: self.outer_chain.clone(),
            chain: self.chain.clone(),
            depth: self.depth,
            holds_lane: self.holds_lane,
            no_cache: self.no_cache,
            deadline,
            cancel,
            started_at: SystemTime::now(),
            progress: ProgressLog::new(Vec::new()),
            arguments: self.arguments.clone(),
            unattended,
            agent: self.agent.clone(),
            notes: Mutex::default(),
            slots: Slots::default(),
            ended,
            this: this.clone(),
        })
    }

    /// The context of a plugin that acts on its own, outside of any call, such as while its script loads. Its session
    /// must be one of [`SessionOwner::Plugin`](crate::session::SessionOwner): what a call would ask a person is refused.
    /// `plugin` describes the plugin as a tool. Relative paths are relative to the
    /// session's folder.
    pub fn of_plugin(
        engine: &Arc<Engine>,
        plugin: &ToolSpec,
        session: Session,
        cancel: CancellationToken,
    ) -> Arc<Self> {
        let call = Call {
            name: plugin.name.to_string(),
            arguments: Value::Null,
            call_id: None,
            session: Arc::new(session),
            cwd: None,
            timeout: None,
            no_cache: true,
            caller: Arc::new(Caller::new(0, Principal::ToolDescendant)),
            progress: Vec::new(),
            cancel,
            chain: Arc::from([]),
            depth: 0,
            holds_lane: false,
        };
        Self::new(engine, &call, None, (&plugin.name, plugin), None, engine.new_call_id())
    }

    /// The mode that the call is decided in. An agent's `plan` counts everywhere; another mode of an agent replaces the
    /// default mode only, and only in a session that nothing holds.
    pub fn mode(&self) -> Mode {
        let own = self.session.mode();
        let of_agent = self.agent.as_ref().and_then(|agent| agent.mode);
        match (own, self.session.owner()) {
            _ if of_agent == Some(Mode::Plan) => Mode::Plan,
            (Mode::Default, SessionOwner::Frontend) => of_agent.unwrap_or(own),
            _ => own,
        }
    }

    /// The level that the call is decided at.
    pub fn level(&self) -> Level {
        self.engine.policy.load().levels.of(&self.session, self.agent_ref()).level
    }

    /// The level that it would be decided at if a person had chosen the session's folders. Needs are prepared for it, since a
    /// person may be asked to choose them.
    pub fn level_once_chosen(&self) -> Level {
        self.engine.policy.load().levels.once_chosen(&self.session, self.agent_ref()).level
    }

    /// The agent whose hook asks about a tool of its own.
    pub fn agent_ref(&self) -> Option<&str> {
        self.agent.as_ref().map(|agent| agent.agent.as_str())
    }

    /// The same context, for work that outlives the borrow, such as that of a script.
    pub fn shared(&self) -> Arc<Self> {
        self.this.upgrade().expect("a context is made within an Arc, which is alive while it is borrowed")
    }

    /// Data that a tool keeps for this call; created on first use.
    pub fn slot<T: Default + Send + Sync + 'static>(&self) -> Arc<T> {
        self.slots.get()
    }

    fn notes(&self) -> MutexGuard<'_, CallNotes> {
        self.ended.as_ref().map_or(&self.notes, |ended| &ended.notes).lock()
    }

    /// The result depends on this file: once the file has changed, the cached result is no longer
    /// served. Stamp it before the file is read.
    pub fn depends_on(&self, stamp: FileStamp) {
        self.notes().depends.stamp(stamp);
    }

    /// Whether stamps have any effect.
    pub fn wants_stamps(&self) -> bool {
        !self.notes().depends.is_private()
    }

    /// The result depends on something that cannot be checked, such as the contents of a folder: it
    /// is not cached.
    pub fn do_not_keep(&self) {
        self.notes().depends.keep_private();
    }

    /// The result is for calls of this session only.
    pub fn depends_on_session(&self) {
        self.notes().depends.session(&self.session.id);
    }

    pub fn is_cancelled(&self) -> bool {
        self.cancel.is_cancelled()
    }

    /// True when the call's time is over: then a tool should return its partial output, with
    /// `timed_out` in its metadata.
    pub fn timed_out(&self) -> bool {
        self.notes().timed_out
    }

    /// What the caller reads beside the limit if the call's time is over: a setting, or a text that came instead of an answer.
    /// The first and the last one are kept.
    pub fn hint_at_time_out(&self, hint: impl Into<String>) {
        let mut notes = self.notes();
        notes.time_out_hints.truncate(MAX_HINTS - 1);
        notes.time_out_hints.push(hint.into());
    }

    pub(crate) fn time_out_hints(&self) -> Vec<String> {
        self.notes().time_out_hints.clone()
    }

    pub fn output(&self, stream: Stream, text: impl Into<String>) {
        self.progress.output(stream, text);
    }

    pub fn message(&self, text: impl Into<String>) {
        self.progress.message(text);
    }

    pub fn report(&self, progress: Progress) {
        self.progress.report(progress);
    }

    /// The result depends on these needs and on everything that is recorded from now on.
    pub(crate) fn start_noting(&self, needs: &[Need]) {
        let mut depends = Dependencies::default();
        for need in needs {
            depends.need(&self.tool, self.origin, need, self.chain_of_declared(need), true);
        }
        self.notes().depends = depends;
    }

    /// The chain that a need which the tool declares is judged with: the chain of the same need when the tool comes to
    /// it, so that one answer serves for both. Calling the tool itself is the caller's need.
    pub(crate) fn chain_of_declared(&self, need: &Need) -> &[String] {
        match need.category() {
            Category::Plugin => &self.outer_chain,
            Category::FileRead
            | Category::FileWrite
            | Category::Shell
            | Category::Network
            | Category::Mcp
            | Category::Agent => &self.chain,
        }
    }

    pub(crate) fn note_need(&self, need: &Need, chain: &[String], allowed: bool) {
        self.notes().depends.need(&self.tool, self.origin, need, chain, allowed);
    }

    pub(crate) fn with_dependencies<T>(&self, read: impl FnOnce(&Dependencies) -> T) -> T {
        read(&self.notes().depends)
    }

    pub(crate) fn dependencies(&self) -> Dependencies {
        self.notes().depends.clone()
    }

    pub(crate) fn join_dependencies(&self, other: Dependencies) {
        self.notes().depends.join(other);
    }

    pub(crate) fn set_timed_out(&self) {
        self.notes().timed_out = true;
        self.cancel.cancel();
    }

    pub(crate) fn record(&self, need: &Need, verdict: &'static str, rule: String, by: DecidedBy) {
        let decision = self.decision_record(need, verdict, rule, by);
        self.notes().decisions.push(decision);
    }

    /// Notes at the last decision, which refused the call, at which levels the `rest` of what the call needs would be free.
    pub(crate) fn note_rest(&self, rest: &[Need]) {
        if rest.is_empty() {
            return;
        }
        let inside = |need: &Need| self.session.contains(Path::new(&need.target));
        let is_free = |level: &Level| rest.iter().all(|need| may_be_free(*level, need, inside(need)));
        let levels: Vec<Level> = Level::ALL.into_iter().filter(is_free).collect();
        if let Some(judged) = self.notes().decisions.last_mut().and_then(|last| last.judged.as_mut()) {
            judged.rest_free_at = Some(levels);
        }
    }

    fn decision_record(&self, need: &Need, verdict: &'static str, rule: String, by: DecidedBy) -> DecisionRecord {
        let is_observed = verdict != "deny" && self.agent.as_ref().is_some_and(|agent| agent.observed);
        let inside = self.session.contains(Path::new(&need.target));
        let judged = match verdict {
            "deny" => JudgedNeed::of_denied(need, inside, &rule),
            _ => JudgedNeed::of(need, inside),
        };
        let rule = if is_observed { format!("{OBSERVED}{rule}") } else { rule };
        DecisionRecord {
            category: need.category().as_str().into(),
            target: need.target.clone(),
            verdict: verdict.into(),
            rule,
            by,
            operation: need.command().map(|command| command.effects.name.join(" ")).unwrap_or_default(),
            effects: need.effects_within().iter().collect(),
            traffic: None,
            judged,
        }
    }

    /// A person is asked about the need, by this rule. Until [`Cx::note_answered`], the record of the call says that there was
    /// no answer, however the call ends.
    pub(crate) fn note_asked(&self, need: &Need, rule: &str) {
        let decision = self.decision_record(need, "ask", rule.to_owned(), DecidedBy::Default);
        self.notes().asked.push(decision);
        self.audit_ask();
    }

    /// The question has ended, and its answer is recorded by the one who asked.
    pub(crate) fn note_answered(&self, need: &Need) {
        let category = need.category().as_str();
        self.notes().asked.retain(|asked| asked.category != category || asked.target != need.target);
    }

    /// The questions without an answer. `how` the call ended, in words.
    pub(crate) fn unanswered(&self, how: &str) -> Vec<DecisionRecord> {
        let unanswered = |asked: &DecisionRecord| {
            let rule = format!("{how} before an answer ({})", asked.rule);
            DecisionRecord { rule, ..asked.clone() }
        };
        self.notes().asked.iter().map(unanswered).collect()
    }

    pub(crate) fn begun(&self) -> Option<u64> {
        self.notes().begun
    }

    pub(crate) fn note_begun(&self, number: u64) {
        self.notes().begun = Some(number);
    }

    /// Adds to what the call exchanged with a host, once that is decided.
    pub fn note_traffic(&self, target: &str, traffic: HostTraffic) {
        let mut notes = self.notes();
        let is_it = |decision: &&mut DecisionRecord| decision.category == "network" && decision.target == target;
        if let Some(decision) = notes.decisions.iter_mut().rev().find(is_it) {
            let known = decision.traffic.get_or_insert_default();
            known.connections += traffic.connections;
            known.sent_bytes += traffic.sent_bytes;
            known.received_bytes += traffic.received_bytes;
        }
    }

    pub(crate) fn decisions(&self) -> Vec<DecisionRecord> {
        self.notes().decisions.clone()
    }

    pub(crate) fn leave_question(&self, question: QuestionLeft) {
        let left = &mut self.notes().question_left;
        *left = Some(match left.take() {
            Some(first) => first.with(question),
            None => question,
        });
    }

    /// The question that was left to the agent's own prompt, if there is one.
    pub fn question_left(&self) -> Option<QuestionLeft> {
        self.notes().question_left.clone()
    }

    pub(crate) fn note_denial(&self, by: DecidedBy) {
        self.notes().denied = Some(by);
    }

    /// By what the call was denied, also after its end.
    pub fn denied_by(&self) -> Option<DecidedBy> {
        self.notes().denied
    }

    /// The questions that were left to the agent's own prompt are denials with this reason. Returns the result of the call.
    pub fn deny_unasked(&self, why: DeniedUnasked) -> ToolOutput {
        let words = why.in_words();
        let mut permission = json!({"rule": words});
        for question in self.notes().decisions.iter_mut().filter(|decision| decision.verdict == "ask") {
            question.rule = match question.rule.starts_with(NOBODY_ANSWERED) {
                true => format!("{}, and {words}", question.rule),
                false => format!("{words} ({})", question.rule),
            };
            question.verdict = "deny".into();
            permission = json!({"category": question.category, "target": question.target, "rule": question.rule});
        }
        ToolOutput::error(format!("denied: {words}")).with("permission", permission)
    }

    pub(crate) fn take_decisions(&self) -> Vec<DecisionRecord> {
        std::mem::take(&mut self.notes().decisions)
    }

    /// Calls that came later do not wait for it any more.
    pub(crate) fn start_waiting(&self, reason: CallWait) {
        self.leave_turn();
        self.notes().waits_for.push(reason);
    }

    pub(crate) fn keep_turn(&self, turn: Option<ArrivalTurn>) {
        self.notes().turn = turn;
    }

    /// Waits for the calls of its client that arrived earlier.
    pub(crate) async fn wait_turn(&self) {
        let turn = self.notes().turn.take();
        if let Some(mut turn) = turn {
            turn.wait().await;
            self.keep_turn(Some(turn));
        }
    }

    pub(crate) fn leave_turn(&self) {
        // Dropped without the lock: the next call may begin at once.
        let turn = self.notes().turn.take();
        drop(turn);
    }

    pub(crate) fn stop_waiting(&self, reason: CallWait) {
        let waits = &mut self.notes().waits_for;
        if let Some(at) = waits.iter().rposition(|waiting| *waiting == reason) {
            waits.remove(at);
        }
    }

    /// The name of the agent that uses a tool of its own.
    pub(crate) fn agent_name(&self) -> Option<String> {
        self.agent_ref().map(str::to_owned)
    }

    /// The frontend that opened the session, as it named itself.
    pub(crate) fn client(&self) -> Option<String> {
        self.session.client.as_ref().map(|client| client.name.clone())
    }

    /// The agent that people are asked for: the program whose session it is, or the agent that uses a tool of its own.
    pub(crate) fn asker(&self) -> Option<String> {
        self.agent_name().or_else(|| self.client())
    }

    /// Its `call.started`, without the arguments, which are made into a line when somebody reads them.
    pub(crate) fn started(&self) -> EventBody {
        EventBody::CallStarted {
            call_id: self.call_id.clone(),
            session_id: self.session.id.clone(),
            tool: self.tool.clone(),
            agent: self.agent_name(),
            client: self.client(),
            cwd: Some(self.cwd.display().to_string()),
            arguments: None,
        }
    }

    pub(crate) fn remember_once(&self, need: &Need, chain: &[String]) {
        self.notes().granted_once.push((need.without_reason(), chain.to_vec()));
    }

    /// A reason is only a text for the person who was asked.
    pub(crate) fn was_granted_once(&self, need: &Need, chain: &[String]) -> bool {
        let need = need.without_reason();
        self.notes().granted_once.iter().any(|(granted, by)| *granted == need && by == chain)
    }

    /// Whether a person was asked about it during this call, and allowed it.
    pub fn was_answered(&self, category: Category, target: &str) -> bool {
        self.notes().granted_once.iter().any(|(granted, _)| granted.category() == category && granted.target == target)
    }

    /// The files that the command names as operands are approved with it.
    pub(crate) fn approve_command(&self, target: &str) {
        self.notes().approved_commands.push(target.to_owned());
    }

    /// A person allowed this part of a command: by a rule, a grant, a mode or an answer.
    pub(crate) fn note_allowed(&self, need: &Need) {
        self.notes().allowed.allow(need);
    }

    /// This part of a command is allowed because of its effects alone; `by` says it in words.
    pub(crate) fn note_freed(&self, need: &Need, by: &str) {
        self.notes().allowed.free(need, by);
    }

    /// The floor on which a command with these needs runs, which have been decided. `None` if a person allowed a part of it:
    /// then it runs as the configuration says.
    pub fn floor(&self, needs: &[Need]) -> Option<Floor> {
        self.notes().allowed.floor(needs)
    }

    /// Whether the last word about this part of a command was a person's.
    pub(crate) fn was_allowed_by_person(&self, need: &Need) -> bool {
        self.notes().allowed.is_by_person(need)
    }

    pub(crate) fn is_approved_command(&self, target: &str) -> bool {
        self.notes().approved_commands.iter().any(|approved| approved == target)
    }
}

impl CallInFlight for Cx {
    fn cancel(&self) {
        self.cancel.cancel();
    }

    fn info(&self) -> CallInfo {
        let output = self.progress.output_so_far();
        CallInfo {
            call_id: self.call_id.clone(),
            session_id: self.session.id.clone(),
            tool: self.tool.to_string(),
            agent: self.agent_name(),
            client: self.client(),
            cwd: Some(self.cwd.display().to_string()),
            arguments: self.arguments.as_ref().map(|arguments| arguments.shown()),
            state: CallState::Running,
            waits_for: self.notes().waits_for.last().copied(),
            started_at: rfc3339(self.started_at),
            output: (!output.is_empty()).then_some(output),
            result: None,
            error: None,
        }
    }
}
