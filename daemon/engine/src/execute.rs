//! The whole way of a call. [`execute`] and [`walk`] are its nine steps, one under another.

mod answer;
mod books;
mod run;
mod trace;

use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;

use futures_util::FutureExt;
use serde_json::{Map, Value, json};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use toold_proto::error::ArgumentError;
use toold_proto::tool::{CallId, ToolResult};
use tracing::Instrument;

use answer::{answer, change_output, hold_to_schema, told};
use books::Running;
use run::{Place, panic_words, run, timed_out};
pub use trace::SPANS;
use trace::{end_trace, step, trace_of};

use crate::Engine;
use crate::apart::Apart;
use crate::cache::{self, Question, Sought};
use crate::counts::At;
use crate::cx::Cx;
use crate::deadline::Deadline;
use crate::hooks::{HookEvent, Hooked};
use crate::lanes::LaneGuard;
use crate::need::Need;
use crate::permit::permit;
use crate::progress::ProgressSink;
use crate::session::{InFlight, Session};
use crate::tool::{Tool, ToolError, ToolOutput, ToolSpec};

/// A call, ready to run.
pub struct Call {
    pub name: String,
    /// An object, or null for none.
    pub arguments: Value,
    pub call_id: Option<CallId>,
    pub session: Arc<Session>,
    /// Resolved, and within the session's `cwd` or roots; its `cwd` when `None`.
    pub cwd: Option<PathBuf>,
    pub timeout: Option<Duration>,
    pub no_cache: bool,
    pub caller: Arc<Caller>,
    pub progress: Vec<Arc<dyn ProgressSink>>,
    /// Fires when the caller gives up. This call's own: it fires too when the call's time is over.
    pub cancel: CancellationToken,
    /// The plugins between the caller and this call, the outermost first.
    pub chain: Arc<[String]>,
    /// How many calls this one is inside of; 0 for a frontend's own.
    pub depth: u32,
    /// An outer call holds the session's lane already.
    pub holds_lane: bool,
}

/// Who calls.
#[derive(Debug)]
pub struct Caller {
    pub connection: u64,
    pub principal: Principal,
    /// Calls of the connection in flight.
    pub in_flight: Arc<AtomicUsize>,
}

/// What a caller may do, by how it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Principal {
    /// A frontend that a person sits at.
    Person,
    /// A frontend that acts for a model.
    Agent,
    /// A process below one of our tools.
    ToolDescendant,
    /// WebSocket or HTTP, with a token that may call.
    TokenCall,
    /// WebSocket or HTTP, with a token that may do all that a person may.
    TokenAdmin,
}

impl Principal {
    /// Whether it may answer asks, trust plugins, stop the daemon.
    pub fn may_decide(self) -> bool {
        match self {
            Self::Person | Self::TokenAdmin => true,
            Self::Agent | Self::ToolDescendant | Self::TokenCall => false,
        }
    }
}

/// A call that could not run.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum CallError {
    #[error("the arguments do not fit the schema of {tool}: {}", list(.errors))]
    InvalidArgs { tool: String, errors: Vec<ArgumentError> },
    #[error("there is no tool {name}{}", perhaps(.suggestions))]
    UnknownTool { name: String, suggestions: Vec<String> },
    #[error("a call with the id {0} is in flight already: use another id, or none")]
    DuplicateCallId(CallId),
    #[error("{0}")]
    PermissionEngine(String),
    #[error("{0}")]
    Failed(String),
    #[error("{0}; nothing was run, try again when some have ended")]
    Overloaded(String),
    #[error("the call was cancelled")]
    Cancelled,
}

fn list(errors: &[ArgumentError]) -> String {
    let lines = errors.iter().map(|error| match error.path.as_str() {
        "" => error.message.clone(),
        path => format!("{path}: {}", error.message),
    });
    lines.collect::<Vec<_>>().join("; ")
}

fn perhaps(suggestions: &[String]) -> String {
    match suggestions {
        [] => String::new(),
        names => format!("; perhaps {} was meant", names.join(" or ")),
    }
}

/// Takes a call from request to answer.
///
/// Whatever goes wrong, a call of a known tool makes one `call.started`, one `call.finished`, one
/// audit row and one answer. When `call.cancel` fires it answers `Cancelled` at once; the work then has
/// the configured grace to end by itself, and its place is free only when it has.
pub async fn execute(engine: &Arc<Engine>, call: Call) -> Result<ToolResult, CallError> {
    // 1. The tool, from one snapshot: a reload never changes a call that has begun.
    let tool = look_up(engine, &call)?;
    execute_tool(engine, tool, call).await
}

/// As [`execute`], for a call from inside another: what it depends on, the other does.
pub(crate) async fn execute_within(outer: &Cx, call: Call) -> Result<ToolResult, CallError> {
    let tool = look_up(&outer.engine, &call)?;
    carry_out(&outer.engine, tool, call, Some(outer)).await
}

/// The same for something that is called like a tool and is in no registry, such as a slash command.
///
/// # Errors
/// As [`execute`], but for an unknown name.
pub async fn execute_tool(engine: &Arc<Engine>, tool: Arc<dyn Tool>, call: Call) -> Result<ToolResult, CallError> {
    carry_out(engine, tool, call, None).await
}

async fn carry_out(
    engine: &Arc<Engine>,
    tool: Arc<dyn Tool>,
    mut call: Call,
    outer: Option<&Cx>,
) -> Result<ToolResult, CallError> {
    let (cx, in_flight) = enter(engine, &mut call, tool.spec())?;
    let running = Running::begin(&cx, in_flight, &call.arguments);
    // Below the level at which every call is logged, lines name their call themselves.
    let span = tracing::debug_span!("call", id = %cx.call_id);
    let traced = trace_of(&cx);
    let walked = {
        // Pinned where it is: it is large, and each wrapper would move it once more.
        let walk = pin!(walk(tool, call, &cx, &running));
        AssertUnwindSafe(walk).catch_unwind().instrument(span).instrument(traced.clone()).await
    };
    let answer = walked.unwrap_or_else(|panic| Err(CallError::Failed(panic_words(&panic))));
    if let Some(outer) = outer {
        outer.join_dependencies(cx.dependencies());
    }
    let (answer, outcome) = running.finish(answer);
    if !traced.is_disabled() {
        end_trace(&traced, outcome, &answer);
    }
    answer
}

/// Answers a call that an interrupt kept from its turn. It has its books like any other.
pub(crate) async fn skip(engine: &Arc<Engine>, mut call: Call) -> Result<ToolResult, CallError> {
    let tool = look_up(engine, &call)?;
    let (cx, in_flight) = enter(engine, &mut call, tool.spec())?;
    let running = Running::begin(&cx, in_flight, &call.arguments);
    let skipped = answer(&cx, &running, skipped()).await;
    running.finish(skipped).0
}

fn look_up(engine: &Engine, call: &Call) -> Result<Arc<dyn Tool>, CallError> {
    let snapshot = engine.registry.snapshot();
    let view = snapshot.view(call.session.project());
    let seen = |tool: &Arc<dyn Tool>| call.session.filter.lets(tool.spec());
    view.find(&call.name).filter(|tool| seen(tool)).cloned().ok_or_else(|| {
        let mut suggestions = view.near(&call.name);
        suggestions.retain(|name| view.find(name).is_some_and(seen));
        CallError::UnknownTool { name: call.name.clone(), suggestions }
    })
}

/// Steps 2 to 9 of a call. What most calls don't come to is boxed where it is awaited, or each call would be as large as
/// the largest of it.
async fn walk(tool: Arc<dyn Tool>, call: Call, cx: &Arc<Cx>, running: &Running) -> Result<ToolResult, CallError> {
    let engine = &cx.engine;
    let spec = tool.spec();

    // Limits count those that wait too, so they come before anything that can wait.
    let admitted = match cx.depth {
        0 => Some(engine.limits.admit(&cx.caller.in_flight).map_err(CallError::Overloaded)?),
        _ => None,
    };

    // 2. The arguments fit the schema, or all that does not fit is told.
    let mut input = if call.arguments.is_null() { Value::Object(Map::new()) } else { call.arguments };
    check(spec, &input)?;

    // 3. Hooks may refuse or change the arguments.
    if !engine.hooks.is_empty() {
        let hooked = engine.hooks.around(HookEvent::PreTool, cx, input).instrument(step("pre_tool hooks")).boxed();
        match unless_cancelled(cx, hooked).await? {
            Hooked::Go(changed) => input = changed,
            Hooked::Denied { hook, reason } => {
                let output = ToolOutput::error(format!("not run: hook {hook} says: {reason}"));
                return answer(cx, running, output.with("hook", hook)).await;
            }
        }
        check(spec, &input)?;
    }

    // 4. Leave for all that it will touch.
    let generation = engine.policy_generation();
    let needs = match unless_cancelled(cx, ask_leave(&tool, &input, cx)).await? {
        Ok(needs) => needs,
        Err(error) => return told(cx, running, error).await,
    };
    let limit = time_limit(engine, spec, call.timeout);

    // 5. What an identical call gave or is about to give. After the permission, or one caller could read what
    // another was allowed to compute.
    let mut lead = None;
    if let (Some(ttl), false) = (spec.cache_ttl, call.no_cache) {
        let may_follow = cx.depth == 0 && !call.holds_lane;
        let question = Question { tool: &tool, input: &input, needs: &needs, ttl, limit, may_follow };
        match unless_cancelled(cx, cache::seek(cx, question).boxed()).await? {
            Sought::Run(own) => lead = Some(own),
            Sought::Served { result, cached } => {
                // Waiting for another call may have taken long.
                if generation != engine.policy_generation()
                    && let Err(error) = unless_cancelled(cx, ask_leave(&tool, &input, cx).boxed()).await?
                {
                    return told(cx, running, error).await;
                }
                return match result {
                    Ok(output) => hand_over(cx, running, output).await.map(|result| ToolResult { cached, ..result }),
                    Err(error) => told(cx, running, error).await,
                };
            }
            Sought::TimedOut => return answer(cx, running, timed_out(cx, limit)).await,
            Sought::Skipped => return answer(cx, running, skipped()).await,
        }
    }

    // 6. A place to run in.
    let lane = match spec.parallelizable || call.holds_lane {
        true => None,
        false => match cx.session.lane.try_take() {
            Some(lane) => Some(lane),
            None => {
                match unless_cancelled(cx, wait_for_lane(cx).instrument(step("wait for the lane")).boxed()).await? {
                    Ok(lane) => Some(lane),
                    Err(skipped) => return answer(cx, running, skipped).await,
                }
            }
        },
    };

    // 7. Run. What was allowed a while ago may not be allowed any more.
    if generation != engine.policy_generation()
        && let Err(error) = unless_cancelled(cx, ask_leave(&tool, &input, cx).boxed()).await?
    {
        return told(cx, running, error).await;
    }
    if let Some(lead) = &lead {
        lead.begin(cx, &needs);
    }
    cx.deadline.restart(limit);
    running.clock_starts();
    let at_work = engine.counts.stay(At::Running);
    let place = Place { _admitted: admitted, _lane: lane };
    let mut ran = pin!(run(tool.clone(), input, cx, place, limit)).instrument(step("run")).await;
    running.clock_stops();
    drop(at_work);
    if let Ok(output) = &mut ran {
        hold_to_schema(spec, output);
    }
    // Kept as the tool gave it: hooks see it anew for each call.
    if let Some(lead) = lead {
        lead.end(cx, &ran).boxed().await;
    }
    match ran {
        Ok(output) => hand_over(cx, running, output).await,
        Err(error) => told(cx, running, error).await,
    }
}

/// Steps 8 and 9, of a call that has a result.
async fn hand_over(cx: &Arc<Cx>, running: &Running, mut output: ToolOutput) -> Result<ToolResult, CallError> {
    let engine = &cx.engine;

    // 8. Hooks see the result and may change it.
    if !engine.hooks.is_empty() {
        let seen = json!({"content": output.content, "is_error": output.is_error, "metadata": output.metadata});
        let hooked = engine.hooks.around(HookEvent::PostTool, cx, seen).instrument(step("post_tool hooks")).boxed();
        match unless_cancelled(cx, hooked).await? {
            Hooked::Go(changed) => change_output(&mut output, changed),
            Hooked::Denied { hook, reason } => {
                output = ToolOutput::error(format!("the result is withheld: hook {hook} says: {reason}"));
            }
        }
    }

    // 9. The answer.
    answer(cx, running, output).await
}

fn enter(engine: &Arc<Engine>, call: &mut Call, spec: &ToolSpec) -> Result<(Arc<Cx>, InFlight), CallError> {
    let given = call.call_id.take();
    loop {
        let id = given.clone().unwrap_or_else(|| {
            let next = engine.next_call.fetch_add(1, Ordering::Relaxed);
            CallId::parse(&format!("call_{next}")).expect("digits are printable")
        });
        let cx = Cx::new(engine, call, spec, id.clone());
        match call.session.enter(&id, &cx) {
            Some(in_flight) => return Ok((cx, in_flight)),
            None if given.is_some() => return Err(CallError::DuplicateCallId(id)),
            None => {}
        }
    }
}

fn check(spec: &ToolSpec, input: &Value) -> Result<(), CallError> {
    let errors = spec.input.check(input);
    if errors.is_empty() { Ok(()) } else { Err(CallError::InvalidArgs { tool: spec.name.to_string(), errors }) }
}

async fn ask_leave(tool: &Arc<dyn Tool>, input: &Value, cx: &Arc<Cx>) -> Result<Vec<Need>, ToolError> {
    let ask = pin!(async {
        let needs = match tool.may_block() {
            false => tool.needs(input, cx).await?,
            true => needs_apart(tool, input, cx).boxed().await?,
        };
        for need in &needs {
            permit(cx, &cx.outer_chain, need).await?;
        }
        Ok(needs)
    });
    ask.instrument(step("permission")).await
}

/// The needs of a call, found out on a task of its own: whatever that waits for, the caller's other requests go on.
async fn needs_apart(tool: &Arc<dyn Tool>, input: &Value, cx: &Arc<Cx>) -> Result<Vec<Need>, ToolError> {
    let limit = time_limit(&cx.engine, tool.spec(), None);
    let (tool, input, own) = (tool.clone(), input.clone(), cx.clone());
    let found = Apart(async move { tool.needs(&input, &own).await }.boxed());
    let found = cx.engine.tasks.spawn(found.in_current_span());
    let deadline = Deadline::after(limit);
    tokio::select! {
        biased;
        needs = found => needs.unwrap_or_else(|error| {
            Err(ToolError::Unavailable(format!("the call's needs could not be found out: {error}")))
        }),
        () = deadline.over() => Err(ToolError::Overloaded(format!(
            "the files that the call names could not be looked at within {} s",
            limit.as_secs()
        ))),
    }
}

fn time_limit(engine: &Engine, spec: &ToolSpec, asked: Option<Duration>) -> Duration {
    let settings = engine.settings.load();
    let own = spec.timeout.unwrap_or(settings.default_timeout).min(settings.max_timeout);
    asked.map_or(own, |asked| asked.min(own))
}

/// Waits for the session's lane; gives a result that says so when the call is skipped or waits too long.
async fn wait_for_lane(cx: &Cx) -> Result<LaneGuard, ToolOutput> {
    let settings = cx.engine.settings.load_full();
    let _waiting = Waiting::enter(&cx.session);
    let _counted = cx.engine.counts.stay(At::Lane);
    let mut interrupts = cx.session.interrupts.subscribe();
    let mut heartbeat = tokio::time::interval_at(Instant::now() + settings.heartbeat, settings.heartbeat);
    let give_up = tokio::time::sleep(settings.lane_wait);
    let lane = cx.session.lane.take(cx.caller.connection);
    tokio::pin!(give_up, lane);
    loop {
        tokio::select! {
            lane = &mut lane => return Ok(lane),
            _ = interrupts.changed() => return Err(skipped()),
            _ = heartbeat.tick() => cx.message("waiting: another call of this session is running"),
            () = &mut give_up => return Err(ToolOutput::error(format!(
                "not run: other calls of this session kept it waiting for {} s", settings.lane_wait.as_secs()
            )).with("skipped", true)),
        }
    }
}

/// Counts a call of a session as waiting for its turn until it is dropped.
pub(crate) struct Waiting(Arc<Session>);

impl Waiting {
    pub(crate) fn enter(session: &Arc<Session>) -> Self {
        session.waiting.fetch_add(1, Ordering::Relaxed);
        Self(session.clone())
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What a call answers that an interrupt kept from running.
fn skipped() -> ToolOutput {
    ToolOutput::error("not run: the session was interrupted before this call's turn").with("skipped", true)
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
