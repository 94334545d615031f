//! The path of a call. [`execute`] and [`run_pipeline`] are its nine steps in order; the tool itself runs in
//! [`run`](mod@run).

mod answer;
mod call_record;
mod nested;
mod run;

use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tokio::time::Instant;
use toold_proto::provide::CallWait;
use toold_proto::tool::{CallId, NOT_RUN, ToolResult};
use tracing::Instrument;

use answer::{answer, cap_structure, change_output, hold_to_schema, into_answer};
use call_record::CallRecord;
use run::{Permits, panic_message, run, timed_out};

use crate::Engine;
use crate::absent_tools::unknown_tool;
use crate::arguments::{FittedArguments, fit};
use crate::arrival::ArrivalTurn;
use crate::blocking::Blocking;
use crate::cache::{self, Lookup, LookupRequest};
use crate::call::{Call, CallError};
use crate::callable::Callable;
use crate::counts::CallStage;
use crate::cx::Cx;
use crate::deadline::Deadline;
use crate::hooks::{HookEvent, HookOutcome};
use crate::lanes::LaneGuard;
use crate::need::Need;
use crate::permission::check_declared;
use crate::session::{InFlightGuard, Session};

use crate::tool::{Origin, ToolError, ToolOutput, ToolSpec};
use crate::trace::{end_trace, step, trace_of};

/// A call to run, and how its tool is found. An ordinary [`Call`] looks its tool up by name.
pub struct CallRequest<'a> {
    pub call: Call,
    /// Something that is called like a tool but is in no registry, such as a slash command.
    pub tool: Option<Arc<dyn Callable>>,
    /// The enclosing call: it inherits the dependencies of this one.
    pub(crate) outer: Option<&'a Cx>,
    /// Its place among the calls of its client; `None` if its order does not matter.
    pub(crate) turn: Option<ArrivalTurn>,
}

impl CallRequest<'_> {
    /// A call that runs after those of its client that arrived earlier.
    pub fn in_turn(call: Call, turn: Option<ArrivalTurn>) -> Self {
        Self { turn, ..Self::from(call) }
    }
}

impl From<Call> for CallRequest<'_> {
    fn from(call: Call) -> Self {
        Self { call, tool: None, outer: None, turn: None }
    }
}

/// Takes a call from request to answer.
///
/// Whatever goes wrong, a call of a known tool produces one `call.started`, one `call.finished`,
/// one audit row and one answer. When `call.cancel` fires it answers `Cancelled` at once; the work
/// then has the configured grace to end by itself, and its permits are free only when it has ended.
pub fn execute<'a>(
    engine: &'a Arc<Engine>,
    request: impl Into<CallRequest<'a>>,
) -> BoxFuture<'a, Result<ToolResult, CallError>> {
    // In a box, or each crate that calls this would contain the whole pipeline.
    run_call(engine, request.into()).boxed()
}

fn run_call<'a>(
    engine: &'a Arc<Engine>,
    request: CallRequest<'a>,
) -> impl Future<Output = Result<ToolResult, CallError>> + Send + 'a {
    // Taken apart outside of the future, which would otherwise be larger by a second call.
    let CallRequest { mut call, tool, outer, mut turn } = request;
    async move {
        // 1. The tool, from one snapshot: a reload never changes a call that has begun.
        let tool = match tool {
            Some(tool) => tool,
            None => match (look_up(engine, &mut call), engine.absent_tools.get()) {
                // Its source may be about to list its tools for the first time.
                (Err(CallError::UnknownTool { .. }), Some(absent)) => {
                    turn = None;
                    absent.first_list(&call.name).await;
                    find_named(engine, &call)?
                }
                (found, _) => found?,
            },
        };
        let (cx, in_flight) = enter(engine, &mut call, outer, tool.as_ref())?;
        let _turn = TurnGuard::new(&cx, turn);
        let record = CallRecord::begin(&cx, in_flight, &call.arguments);
        // Below the level at which every call is logged, lines name their call themselves.
        let span = tracing::debug_span!("call", id = %cx.call_id);
        let traced = trace_of(&cx);
        let ran = {
            // Pinned where it is: it is large, and each wrapper would move it once more.
            let pipeline = pin!(run_pipeline(tool, call, &cx, &record));
            AssertUnwindSafe(pipeline).catch_unwind().instrument(span).instrument(traced.clone()).await
        };
        let answer = match ran.unwrap_or_else(|panic| Err(CallError::Failed(panic_message(&panic)))) {
            // The daemon has cancelled it, and nobody else.
            Err(CallError::Cancelled) if engine.stop.is_cancelled() => match record.has_run() {
                true => Err(CallError::Ended),
                false => answer(&cx, &record, not_begun()).await,
            },
            answer => answer,
        };
        if let Some(outer) = outer {
            outer.join_dependencies(cx.dependencies());
        }
        let (answer, outcome) = record.finish(answer);
        if !traced.is_disabled() {
            end_trace(&traced, outcome, &answer);
        }
        answer
    }
}

/// Steps 2 to 9 of a call. Steps that most calls skip are boxed where they are awaited, or each call would be as large as
/// the largest of them.
async fn run_pipeline(
    tool: Arc<dyn Callable>,
    call: Call,
    cx: &Arc<Cx>,
    record: &CallRecord,
) -> Result<ToolResult, CallError> {
    let engine = &cx.engine;
    let spec = tool.spec();

    // The limits include waiting calls, so they come before anything that can wait.
    let admitted = match cx.depth {
        0 => Some(engine.limits.admit(&cx.caller.in_flight).map_err(CallError::Overloaded)?),
        _ => None,
    };

    match spec.parallelizable || call.holds_lane {
        true => cx.leave_turn(),
        false => unless_cancelled(cx, cx.wait_turn()).await?,
    }

    if cx.depth == 0 {
        let saved = engine.rule_files.get().filter(|saved| !saved.are_current(cx.session.project()));
        if let Some(saved) = saved {
            unless_cancelled(cx, saved.until_current(cx.session.project())).await?;
        }
    }

    // 2. The arguments fit the schema, or every mismatch is reported.
    let FittedArguments { arguments: mut input, notes } = fit(spec, call.arguments)?;
    record.note_arguments(notes, &input);

    // 3. Hooks may refuse or change the arguments.
    if !engine.hooks.is_empty() {
        let hooked =
            engine.hooks.around(HookEvent::PreTool, cx, input, None).instrument(step("pre_tool hooks")).boxed();
        match unless_cancelled(cx, hooked).await? {
            HookOutcome::Go(changed) => {
                let fitted = fit(spec, changed)?;
                record.note_arguments(fitted.notes, &fitted.arguments);
                input = fitted.arguments;
            }
            HookOutcome::Denied { hook, reason } => {
                let output = ToolOutput::error(format!("not run: hook {hook} denied it: {reason}"));
                return answer(cx, record, output.with("hook", hook)).await;
            }
        }
    }

    // 4. Permission for everything that the call will touch.
    let generation = engine.policy_generation();
    let needs = match unless_cancelled(cx, check_permissions(&tool, &input, cx)).await? {
        Ok(needs) => needs,
        Err(error) => return into_answer(cx, record, error).await,
    };
    let limit = time_limit(engine, spec, call.timeout);

    // 5. The result of an identical call, stored or in flight. After the permission, or one caller could read
    // what another was allowed to compute.
    let mut leader = None;
    if let (Some(ttl), false) = (spec.cache_ttl, call.no_cache) {
        let may_follow = cx.depth == 0 && !call.holds_lane;
        let request = LookupRequest { tool: &tool, input: &input, needs: &needs, ttl, limit, may_follow };
        match unless_cancelled(cx, cache::lookup(cx, request).boxed()).await? {
            Lookup::Run(own) => leader = Some(own),
            Lookup::Served { result, original } => {
                // Waiting for another call may have taken long.
                if generation != engine.policy_generation()
                    && let Err(error) = unless_cancelled(cx, check_permissions(&tool, &input, cx).boxed()).await?
                {
                    return into_answer(cx, record, error).await;
                }
                record.note_original(original);
                let cached = original.is_some();
                return match result {
                    Ok(output) => {
                        let served = hand_over(cx, record, output, Some(&input)).await;
                        served.map(|result| ToolResult { cached, ..result })
                    }
                    Err(error) => into_answer(cx, record, error).await,
                };
            }
            Lookup::TimedOut => return answer(cx, record, timed_out(cx, limit)).await,
            Lookup::Skipped => return answer(cx, record, skipped()).await,
        }
    }

    // 6. The session's lane.
    let given_up = |after: Duration| cx.session.lane_of(spec).is_held_for(after);
    let lane = match spec.parallelizable || call.holds_lane || tool.lane_patience().is_some_and(given_up) {
        true => None,
        false => match cx.session.lane_of(spec).try_take() {
            Some(lane) => Some(lane),
            None => {
                match unless_cancelled(cx, wait_for_lane(cx, spec).instrument(step("wait for the lane")).boxed())
                    .await?
                {
                    Ok(lane) => Some(lane),
                    Err(skipped) => return answer(cx, record, skipped).await,
                }
            }
        },
    };

    cx.leave_turn();

    // 7. Run. A permission may have been revoked while the call waited.
    if generation != engine.policy_generation()
        && let Err(error) = unless_cancelled(cx, check_permissions(&tool, &input, cx).boxed()).await?
    {
        return into_answer(cx, record, error).await;
    }
    if let Some(leader) = &leader {
        leader.begin(cx, &needs);
    }
    if let Err(why) = record.begin_audited(spec) {
        let words = format!("not run: the audit log is required here, and the call cannot be recorded: {why}");
        return answer(cx, record, ToolOutput::error(words)).await;
    }
    cx.deadline.restart(limit);
    record.clock_starts();
    let at_work = engine.counts.enter(CallStage::Running);
    let permits = Permits { _admitted: admitted, _lane: lane };
    // Hooks see the arguments beside the result.
    let arguments = engine.hooks.has(HookEvent::PostTool).then(|| input.clone());
    let mut ran = pin!(run(tool.clone(), input, cx, permits, limit)).instrument(step("run")).await;
    record.clock_stops();
    drop(at_work);
    if let Ok(output) = &mut ran {
        hold_to_schema(spec, output);
        if tool.limits_structure() && output.structured.is_some() {
            cap_structure(spec, cx, output).boxed().await;
        }
    }
    // Stored as the tool returned it: hooks see it again for each call.
    if let Some(leader) = leader {
        leader.end(cx, &ran, record.duration());
    }
    match ran {
        Ok(output) => hand_over(cx, record, output, arguments.as_ref()).await,
        Err(error) => into_answer(cx, record, error).await,
    }
}

/// Steps 8 and 9, of a call that has a result.
async fn hand_over(
    cx: &Arc<Cx>,
    record: &CallRecord,
    mut output: ToolOutput,
    arguments: Option<&Value>,
) -> Result<ToolResult, CallError> {
    let engine = &cx.engine;

    // 8. Hooks see the result and may change it.
    if !engine.hooks.is_empty() {
        let seen = json!({"content": output.content, "is_error": output.is_error, "metadata": output.metadata});
        let hooks = engine.hooks.around(HookEvent::PostTool, cx, seen, arguments);
        let hooked = hooks.instrument(step("post_tool hooks")).boxed();
        match unless_cancelled(cx, hooked).await? {
            HookOutcome::Go(changed) => change_output(&mut output, changed),
            HookOutcome::Denied { hook, reason } => {
                output = ToolOutput::error(format!("hook {hook} withheld the result: {reason}"));
            }
        }
    }

    // 9. The answer. Another daemon that a tool called may have ended, not this one.
    output.metadata.remove(NOT_RUN);
    answer(cx, record, output).await
}

/// The tool of a call. A call of `tools_call` becomes one of the tool that it names.
fn look_up(engine: &Engine, call: &mut Call) -> Result<Arc<dyn Callable>, CallError> {
    if call.depth == 0 {
        let snapshot = engine.registry.snapshot();
        let view = snapshot.view(call.session.project());
        if let Some(search) = engine.meta_tools.unwrap(view, call)? {
            return Ok(search);
        }
    }
    find_named(engine, call)
}

fn find_named(engine: &Engine, call: &Call) -> Result<Arc<dyn Callable>, CallError> {
    let snapshot = engine.registry.snapshot();
    let view = snapshot.view(call.session.project());
    // Plugins are written for the tools' own names.
    let found = match call.depth {
        0 => view.find(&call.name),
        _ => view.find_own(&call.name),
    };
    let filter = &call.session.filter;
    let seen = |tool: &Arc<dyn Callable>| match call.depth {
        0 => filter.allows(tool.own_name(), tool.spec()),
        _ => filter.allows_inner(tool.own_name(), tool.spec()),
    };
    let found = found.filter(|tool| seen(tool)).cloned();
    found.ok_or_else(|| unknown_tool(engine, &call.session, &call.name))
}

/// Like [`execute`], for something that is called like a tool but is in no registry.
///
/// # Errors
/// As [`execute`], but for an unknown name.
pub async fn execute_tool(engine: &Arc<Engine>, tool: Arc<dyn Callable>, call: Call) -> Result<ToolResult, CallError> {
    execute(engine, CallRequest { tool: Some(tool), ..call.into() }).await
}

/// Answers a call that an interrupt skipped before its turn. It is recorded like any other.
pub(crate) async fn skip(engine: &Arc<Engine>, mut call: Call) -> Result<ToolResult, CallError> {
    let tool = look_up(engine, &mut call)?;
    let (cx, in_flight) = enter(engine, &mut call, None, tool.as_ref())?;
    let record = CallRecord::begin(&cx, in_flight, &call.arguments);
    let skipped = answer(&cx, &record, skipped()).await;
    record.finish(skipped).0
}

fn enter(
    engine: &Arc<Engine>,
    call: &mut Call,
    outer: Option<&Cx>,
    tool: &dyn Callable,
) -> Result<(Arc<Cx>, InFlightGuard), CallError> {
    let given = call.call_id.take();
    loop {
        let id = given.clone().unwrap_or_else(|| {
            let next = engine.next_call.fetch_add(1, Ordering::Relaxed);
            CallId::parse(&format!("call_{next}")).expect("digits are printable")
        });
        let described = (tool.own_name(), tool.spec());
        let cx = Cx::new(engine, call, outer, described, tool.agent_request().cloned(), id.clone());
        match call.session.enter(&id, cx.clone()) {
            Some(in_flight) => return Ok((cx, in_flight)),
            None if given.is_some() => return Err(CallError::DuplicateCallId(id)),
            None => {}
        }
    }
}

async fn check_permissions(tool: &Arc<dyn Callable>, input: &Value, cx: &Arc<Cx>) -> Result<Vec<Need>, ToolError> {
    let ask = pin!(async {
        let needs = match tool.may_block() {
            false => tool.needs(input, cx).await?,
            true => needs_on_own_task(tool, input, cx).boxed().await?,
        };
        check_declared(cx, &needs).await?;
        Ok(needs)
    });
    ask.instrument(step("permission")).await
}

/// Determines the needs of a call on a task of its own: the caller's other requests go on, whatever
/// this one waits for.
async fn needs_on_own_task(tool: &Arc<dyn Callable>, input: &Value, cx: &Arc<Cx>) -> Result<Vec<Need>, ToolError> {
    let limit = time_limit(&cx.engine, tool.spec(), None);
    let (tool, input, own) = (tool.clone(), input.clone(), cx.clone());
    let found = Blocking(async move { tool.needs(&input, &own).await }.boxed());
    let found = cx.engine.tasks.spawn(found.in_current_span());
    let deadline = Deadline::after(limit);
    tokio::select! {
        biased;
        needs = found => needs.unwrap_or_else(|error| {
            Err(ToolError::Unavailable(format!("can't determine which permissions the call needs: {error}")))
        }),
        () = deadline.over() => Err(ToolError::Overloaded(format!(
            "the files that the call names could not be checked within {} s",
            limit.as_secs()
        ))),
    }
}

fn time_limit(engine: &Engine, spec: &ToolSpec, asked: Option<Duration>) -> Duration {
    let settings = engine.settings.load();
    let own = spec.timeout.unwrap_or(settings.default_timeout).min(settings.max_timeout);
    asked.map_or(own, |asked| asked.min(own))
}

/// Gives up the place of a call at the latest when it is dropped.
struct TurnGuard<'c>(&'c Cx);

impl<'c> TurnGuard<'c> {
    fn new(cx: &'c Cx, turn: Option<ArrivalTurn>) -> Self {
        cx.keep_turn(turn);
        Self(cx)
    }
}

impl Drop for TurnGuard<'_> {
    fn drop(&mut self) {
        self.0.leave_turn();
    }
}

/// Waits for the session's lane; returns an explaining result when the call is skipped or waits too
/// long.
async fn wait_for_lane(cx: &Cx, spec: &ToolSpec) -> Result<LaneGuard, ToolOutput> {
    let settings = cx.engine.settings.load_full();
    let lane = cx.session.lane_of(spec).take(cx.caller.connection);
    let _in_queue = WaitingCall::enter(&cx.session);
    let _waiting = cx.wait_for(CallWait::Lane);
    let mut interrupts = cx.session.interrupts.subscribe();
    let mut heartbeat = tokio::time::interval_at(Instant::now() + settings.heartbeat, settings.heartbeat);
    let give_up = tokio::time::sleep(settings.lane_wait);
    let others = match spec.origin == Origin::Mcp {
        true => format!("another call of {} in this session is running", spec.source.name),
        false => "another call of this session is running".to_owned(),
    };
    tokio::pin!(give_up, lane);
    loop {
        tokio::select! {
            biased;
            () = cx.engine.stop.cancelled() => return Err(not_begun()),
            _ = interrupts.changed() => return Err(skipped()),
            lane = &mut lane => return Ok(lane),
            _ = heartbeat.tick() => cx.message(format!("waiting: {others}")),
            () = &mut give_up => return Err(ToolOutput::error(format!(
                "not run: it waited {} s for other calls of this session", settings.lane_wait.as_secs()
            )).with("skipped", true)),
        }
    }
}

/// Counts a call of a session as waiting for its turn until it is dropped.
pub(crate) struct WaitingCall(Arc<Session>);

impl WaitingCall {
    pub(crate) fn enter(session: &Arc<Session>) -> Self {
        session.waiting.fetch_add(1, Ordering::Relaxed);
        Self(session.clone())
    }
}

impl Drop for WaitingCall {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The answer of a call that was skipped by an interrupt.
fn skipped() -> ToolOutput {
    ToolOutput::error("not run: the session was interrupted before this call started").with("skipped", true)
}

/// The answer of a call that waited when the daemon ended. The next daemon may run it.
fn not_begun() -> ToolOutput {
    ToolOutput::error("not run: the daemon was restarted or stopped before the call began").with(NOT_RUN, true)
}

/// Waits for a step, unless the call is cancelled first.
async fn unless_cancelled<F: Future>(cx: &Cx, step: F) -> Result<F::Output, CallError> {
    tokio::pin!(step);
    if let Poll::Ready(done) = futures_util::poll!(&mut step) {
        return Ok(done);
    }
    tokio::select! {
        biased;
        () = cx.cancel.cancelled() => Err(CallError::Cancelled),
        done = step => Ok(done),
    }
}
