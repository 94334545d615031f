//! Asking a person for permission.
//!
//! [`ask`] is a call that waits; [`reply`] is a person's answer to it. How prompts are kept and delivered is in
//! [`crate::prompts`]; the patterns that an ask suggests are in [`crate::policy::suggest`].

mod misleading;
mod one_line;
pub mod relay;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::sync::watch;
use tokio::time::Instant;
use toold_proto::agent_request::DecidedBy;
use toold_proto::effect::{self, Effect};
use toold_proto::event::EventBody;
use toold_proto::permission::Verdict;
use toold_proto::permission::{
    Action, Answerer, Ask, AskPart, GrantAsk, PermissionEvent, ReplyPermission, Resolution, Resolved, Scope,
};
use toold_proto::provide::CallWait;
use toold_proto::session::terminal_of;
use toold_proto::tool::{CallId, Category, SessionId};
use tracing::Instrument;

use misleading::misleading;
use one_line::fits_one_line;

use crate::Engine;
use crate::agent_request::NOBODY_ANSWERED;
use crate::call::Caller;
use crate::cx::Cx;
use crate::decision::decide_need;
use crate::events::Events;
use crate::grant_commands::way_to_allow;
use crate::kept::NotKept;
use crate::need::Need;
use crate::policy::grants::{Grant, GrantScope};
use crate::policy::pattern::{BadPattern, LINE, Pattern};
use crate::policy::suggest::{exact_pattern, suggestions};
use crate::policy::{Decision, Policy, default_rule};
use crate::prompts::{PromptEvent, PromptKind, PromptScope, PromptSubscription, Prompts, WaitOutcome};
use crate::time::rfc3339;
use crate::tool::ToolError;
use crate::trace::SPANS;

/// The asks that wait for a person, and the frontends that can answer them.
pub struct Asks {
    prompts: Prompts<PendingAsk>,
}

/// An ask, and the data needed to answer it.
#[derive(Clone, Debug)]
pub struct PendingAsk {
    ask: Box<Ask>,
    /// Who asks by each of the ask's calls, in their order.
    askers: Vec<Asker>,
    need: Arc<Need>,
    /// See [`Ask::parts`]; `need` is one of them.
    parts: Arc<[Need]>,
    project: PathBuf,
    /// The ask of another daemon that this one shows: the answer is sent there, and nothing of it is stored here.
    relayed: Option<RelayedAsk>,
    /// See [`Asks::fits_one_line`].
    fits_one_line: bool,
}

/// An ask of another daemon.
#[derive(Clone, Debug)]
struct RelayedAsk {
    from: String,
    /// There.
    request_id: String,
}

#[derive(Clone, Debug)]
struct Asker {
    agent: Option<String>,
    subagent: Option<String>,
    session: SessionId,
}

impl Asker {
    fn of(cx: &Cx) -> Self {
        Self {
            agent: cx.asker(),
            subagent: cx.agent.as_ref().and_then(|request| request.subagent.clone()),
            session: cx.session.id.clone(),
        }
    }
}

impl PendingAsk {
    fn name_askers(&mut self) {
        // One that only some of them have says nothing about the others, and stands with its agent's name.
        let first = self.askers.first();
        let common = first.filter(|first| self.askers.iter().all(|other| other.subagent == first.subagent));
        let mut names: Vec<(String, Vec<&SessionId>)> = Vec::new();
        for asker in &self.askers {
            let Some(agent) = &asker.agent else { continue };
            let name = match &asker.subagent {
                Some(subagent) if common.is_none() => format!("{agent}, sub-agent {subagent}"),
                Some(_) | None => agent.clone(),
            };
            match names.iter_mut().find(|(known, _)| *known == name) {
                Some((_, sessions)) if sessions.contains(&&asker.session) => {}
                Some((_, sessions)) => sessions.push(&asker.session),
                None => names.push((name, vec![&asker.session])),
            }
        }
        let one = matches!(&names[..], [] | [(_, _)]) && names.iter().all(|(_, sessions)| sessions.len() == 1);
        let in_words = |(name, sessions): (String, Vec<&SessionId>)| match sessions.len() {
            1 => name,
            several => format!("{name} in {several} sessions"),
        };
        self.ask.agent = self.askers.iter().find_map(|asker| asker.agent.clone());
        self.ask.subagent = common.and_then(|first| first.subagent.clone());
        self.ask.agents = if one { Vec::new() } else { names.into_iter().map(in_words).collect() };
    }
}

/// How an ask ended.
#[derive(Clone, Debug)]
pub struct EndedAsk {
    resolved: Resolved,
    answer: AskAnswer,
    /// A person's own words.
    reply: Option<ReplyPermission>,
}

/// The outcome of an ask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AskAnswer {
    Allowed {
        rule: String,
        by: DecidedBy,
        /// The scope that a person chose; `None` when a rule or a grant answered.
        scope: Option<Scope>,
        /// Everything that the person allowed with the need, as it was shown.
        parts: Arc<[Need]>,
    },
    Denied {
        rule: String,
        /// `Default` when nobody answered.
        by: DecidedBy,
        message: String,
    },
}

/// How many characters of what a person wrote are kept with a grant.
const MAX_KEPT_WORDS: usize = 500;

/// Why an answer is not remembered.
const EACH_TIME: &str = "it is asked about each time";

/// How the rule of a person's answer begins.
pub(crate) const ANSWER: &str = "answer of ";

/// Why a reply was rejected, or not stored. The ask is still pending, except for `Unknown` and a refusal that holds.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AskReplyError {
    #[error("no ask {0} is waiting for an answer: it was answered, it ended, or it never existed")]
    Unknown(String),
    #[error("ask {0} is already answered: {1}")]
    AlreadyAnswered(String, String),
    #[error("ask {0} has ended: {1}")]
    Ended(String, String),
    #[error(
        "{0:?} is neither the target of the ask nor one of its suggested patterns; for a wider pattern, allow it once and use `toolctl permissions grant`"
    )]
    NotSuggested(String),
    #[error("{0}; you can still allow it once")]
    CannotBeRemembered(String),
    #[error("the scope {} is too wide: this caller may grant at most {}", .0.as_str(), .1.as_str())]
    TooWide(Scope, Scope),
    #[error("all_parts and pattern exclude each other: each part is allowed exactly as shown")]
    PatternOfParts,
    #[error("can't store the answer: {0}")]
    Store(NotKept),
}

/// The author of a reply, and how far the reply may reach.
#[derive(Clone, Debug)]
pub struct Replier {
    pub by: Answerer,
    /// `Always` for people; less for those who answer for somebody else.
    pub widest: Scope,
    /// Answers asks of this session only; `None` for all.
    pub session: Option<SessionId>,
}

impl PromptKind for PendingAsk {
    type Outcome = EndedAsk;
    type End = Resolved;

    fn session(&self) -> &SessionId {
        &self.ask.session_id
    }

    fn join(&mut self, cx: &Cx, time: Duration) {
        // Both are in UTC and of the same length, so that the later one is the greater text.
        let end = rfc3339(SystemTime::now() + time);
        if end > self.ask.expires_at {
            self.ask.expires_at = end;
        }
        self.ask.call_ids.push(cx.call_id.clone());
        self.askers.push(Asker::of(cx));
        self.name_askers();
    }

    fn leave(&mut self, call: &CallId) {
        if let Some(at) = self.ask.call_ids.iter().position(|waiting| waiting == call) {
            self.ask.call_ids.remove(at);
            // The asks of another daemon have their askers from there.
            if self.relayed.is_none() {
                self.askers.remove(at);
                self.name_askers();
            }
        }
    }

    fn cancelled(&self) -> EndedAsk {
        ended(
            &self.ask.request_id,
            Resolution::Cancelled,
            "the call ended",
            denied("ask cancelled", DecidedBy::Default, "the call was cancelled"),
        )
    }

    fn asked(&self) -> EventBody {
        EventBody::PermissionAsked { session_id: self.ask.session_id.clone(), request: self.ask.clone() }
    }

    fn resolved(&self, outcome: &EndedAsk) -> EventBody {
        EventBody::PermissionResolved { session_id: self.ask.session_id.clone(), resolved: outcome.resolved.clone() }
    }

    fn end(outcome: &EndedAsk) -> Resolved {
        outcome.resolved.clone()
    }
}

/// A frontend that receives asks. While it exists and can answer, it counts as able to answer.
pub struct AskSubscription(PromptSubscription<PendingAsk>);

impl AskSubscription {
    /// First every pending ask, then new events. No ask is lost on a slow reader; an ask that was
    /// answered before it was read is skipped. One that is known comes again when others wait for its answer than before.
    /// Cancel-safe.
    pub async fn next(&mut self) -> PermissionEvent {
        to_wire(self.0.next().await)
    }

    /// The next event, if one is ready.
    pub fn try_next(&mut self) -> Option<PermissionEvent> {
        self.0.try_next().map(to_wire)
    }
}

fn to_wire(news: PromptEvent<PendingAsk>) -> PermissionEvent {
    match news {
        PromptEvent::Asked(asked) => PermissionEvent::Asked { request: asked.ask },
        PromptEvent::Resolved(ended) => PermissionEvent::Resolved(ended.resolved),
    }
}

impl Asks {
    pub(crate) fn new(events: Arc<Events>) -> Self {
        Self { prompts: Prompts::new(events) }
    }

    /// How one of the last asks ended.
    fn end_of(&self, request_id: &str) -> Option<Resolved> {
        self.prompts.end(|end| end.request_id == request_id)
    }

    /// `session`: only that session's asks; `None` for all.
    pub fn subscribe(&self, can_answer: bool, session: Option<SessionId>) -> AskSubscription {
        AskSubscription(self.prompts.subscribe(can_answer, session.map_or(PromptScope::All, PromptScope::Session)))
    }

    /// For a client that can answer for this caller only.
    pub fn subscribe_for(&self, caller: Arc<Caller>) -> AskSubscription {
        AskSubscription(self.prompts.subscribe(true, PromptScope::Caller(caller)))
    }

    /// For people at other machines: all asks of this daemon, but none that it only shows for another one. `is_there` tells
    /// whether anybody can be asked there now about a session. It is called under a lock, so it must not use asks.
    pub fn subscribe_elsewhere(
        &self,
        is_there: impl Fn(&SessionId) -> bool + Send + Sync + 'static,
    ) -> AskSubscription {
        AskSubscription(self.prompts.subscribe(true, PromptScope::Elsewhere(Arc::new(is_there))))
    }

    /// Call it when the function of [`Asks::subscribe_elsewhere`] may have changed its mind.
    pub fn reconsider(&self) {
        self.prompts.reconsider();
    }

    /// Call it when frontends of the previous daemon will connect to this one: for a while, asks wait for them.
    pub fn expect_frontends(&self) {
        self.prompts.expect_frontends();
    }

    /// Whether a frontend is connected that can answer the asks of all calls.
    pub fn can_all_be_answered(&self) -> bool {
        self.prompts.can_all_be_answered()
    }

    /// Fires when asks, or frontends that see them, come and go.
    pub fn changes(&self) -> watch::Receiver<()> {
        self.prompts.changes()
    }

    /// Whether anybody is connected, or expected back, who could answer an ask of this call.
    pub fn can_be_answered(&self, cx: &Cx) -> bool {
        self.prompts.can_be_answered(cx)
    }

    /// The same for an ask of this call on another machine, which only people here are shown.
    pub fn can_be_answered_here(&self, cx: &Cx) -> bool {
        self.prompts.can_be_answered_here(cx)
    }

    /// Whether a person who reads nothing but the ask's agent, folder and target knows enough to allow it once: it is pending,
    /// certain, has no content to look at, and has none of the effects that a rule has to name.
    pub fn fits_one_line(&self, request_id: &str) -> bool {
        self.prompts.pending().iter().any(|asked| asked.ask.request_id == request_id && asked.fits_one_line)
    }

    /// The oldest first.
    pub fn pending(&self) -> Vec<Ask> {
        self.prompts.pending().into_iter().map(|asked| *asked.ask).collect()
    }
}

/// Asks a person and waits. When nobody can answer, the need is denied at once, and the error says
/// how to allow it.
///
/// The call's deadline is paused meanwhile, and the caller is notified that the call waits. A
/// grant, or a change of rules or of the mode, that decides the need also ends the wait. Dropping
/// the future ends the ask.
///
/// # Errors
/// `Cancelled` when the call ends first; `PermissionEngine` when the daemon is stopping.
pub async fn ask(
    cx: &Cx,
    chain: &[String],
    need: &Need,
    declared: &[Need],
    decision: &Decision,
) -> Result<AskAnswer, ToolError> {
    let traced = tracing::trace_span!(target: SPANS, "ask a person", toold.category = %need.category());
    ask_person(cx, chain, need, declared, decision).instrument(traced).await
}

/// The answer to a call whose permission prompt or question was open when the daemon stopped.
pub(crate) const STOPPED_WHILE_ASKED: &str = "not run: the daemon was restarted or stopped before the person who was asked \
                                             had answered; make the call again, and the next daemon asks again";

async fn ask_person(
    cx: &Cx,
    chain: &[String],
    need: &Need,
    declared: &[Need],
    decision: &Decision,
) -> Result<AskAnswer, ToolError> {
    let engine = &cx.engine;
    if engine.stop.is_cancelled() {
        return Err(ToolError::PermissionEngine(
            "the call did not run: the daemon is stopping and asks nobody any more".to_owned(),
        ));
    }
    // A grant made since the decision counts, and every change from here on is noticed.
    let mut policy = engine.policy_changes();
    let since = decide_need(cx, chain, need);
    match since.verdict {
        Verdict::Allow => return Ok(allowed(since.rule, since.by)),
        Verdict::Deny => return Ok(refused_by_policy(&cx.engine.policy.load(), &since, need)),
        Verdict::Ask => {}
    }
    let settings = engine.settings.load_full();
    let parts = parts(cx, chain, need, declared);
    let until = cx.agent.as_ref().and_then(|agent| agent.asks_until);
    let left = until.map(|until| until.saturating_duration_since(Instant::now()));
    let time = left.map_or(settings.ask_timeout, |left| left.min(settings.ask_timeout));
    let make = |number| asked(cx, chain, need, parts, number, time);
    let key = key(cx, chain, need);
    let Some(mut waiter) = engine.asks.prompts.enter(key, cx, time, make) else {
        return Ok(nobody(cx, chain, need, decision));
    };
    if let Some(agent) = &cx.agent {
        agent.waiting.send_replace(true);
    }
    cx.note_asked(need, &decision.rule);
    let _pause = cx.deadline.pause();
    let _waiting = cx.wait_for(CallWait::Permission);
    let mut heartbeat = tokio::time::interval_at(Instant::now() + settings.heartbeat, settings.heartbeat);
    let request_id = waiter.prompt.ask.request_id.clone();
    let end = |resolution, how: &str, answer| ended(&request_id, resolution, how, answer);
    loop {
        tokio::select! {
            biased;
            // Dropping the waiter ends the ask.
            () = engine.stop.cancelled() => return Err(ToolError::Stopped(STOPPED_WHILE_ASKED)),
            () = cx.cancel.cancelled() => return Err(ToolError::Cancelled),
            waited = waiter.wait() => {
                cx.note_answered(need);
                let ended = match waited {
                    WaitOutcome::Answered(ended) => ended,
                    WaitOutcome::Expired => {
                        let words = format!("no answer within {} s", time.as_secs());
                        let answer = refused(NOBODY_ANSWERED, DecidedBy::Default, need, &words);
                        waiter.resolve(end(Resolution::Expired, &words, answer))
                    }
                    WaitOutcome::Alone => {
                        let how = "no client is connected any more that could answer";
                        waiter.resolve(end(Resolution::Deny, how, nobody(cx, chain, need, decision)))
                    }
                };
                return Ok(ended.answer);
            }
            _ = policy.changed() => {
                let decision = decide_need(cx, chain, need);
                let (resolution, how, answer) = match decision.verdict {
                    Verdict::Ask => continue,
                    Verdict::Allow => {
                        let how = format!("allowed by {}", decision.rule);
                        (Resolution::Allow, how, allowed(decision.rule, decision.by))
                    }
                    Verdict::Deny => {
                        let how = match &cx.engine.policy.load().paused {
                            Some(paused) if *paused == decision.rule => format!("everything is {paused}"),
                            _ => format!("denied by {}", decision.rule),
                        };
                        (Resolution::Deny, how, refused_by_policy(&cx.engine.policy.load(), &decision, need))
                    }
                };
                cx.note_answered(need);
                // The other waiting calls may have other rules.
                waiter.resolve_if_last(end(resolution, &how, answer.clone()));
                return Ok(answer);
            }
            _ = heartbeat.tick() => cx.message("waiting for a person's answer"),
        }
    }
}

/// A person's answer to an ask. The first one counts.
///
/// An answer for longer than once is stored as a grant, for all frontends, before the call receives
/// it.
///
/// # Errors
/// Nothing was answered, and the ask is still pending; except for `Unknown`, and a refusal that holds and is not stored.
pub fn reply(engine: &Engine, reply: &ReplyPermission, replier: &Replier) -> Result<(), AskReplyError> {
    let scope = reply.scope.unwrap_or(Scope::Once);
    let is_it = |asked: &PendingAsk| {
        asked.ask.request_id == reply.request_id
            && replier.session.as_ref().is_none_or(|session| *session == asked.ask.session_id)
    };
    let prompts = &engine.asks.prompts;
    let (id, asked) = prompts.claim(is_it).ok_or_else(|| {
        let id = reply.request_id.clone();
        // Only who may answer all asks learns how others were answered.
        match engine.asks.end_of(&id).filter(|_| replier.session.is_none()) {
            Some(end) if end.by.is_some() => AskReplyError::AlreadyAnswered(id, end.how),
            Some(end) => AskReplyError::Ended(id, end.how),
            None => AskReplyError::Unknown(id),
        }
    })?;
    // A refusal that could not be stored.
    let mut not_kept = None;
    let granted = grants_of(engine, &asked, reply, scope, replier).and_then(|grants| {
        let any = !grants.is_empty();
        for grant in grants {
            match engine.grants.add(grant) {
                Ok(_) => {}
                Err(error) if error.holds => not_kept = Some(error),
                Err(error) => return Err(AskReplyError::Store(error)),
            }
        }
        Ok(any)
    });
    let granted = match granted {
        Ok(granted) => granted,
        Err(error) => {
            prompts.release(id);
            return Err(error);
        }
    };
    let who = replier.by.client.clone().unwrap_or_else(|| format!("connection {}", replier.by.connection));
    let rule = format!("{ANSWER}{who} ({})", scope.as_str());
    let (action, answer) = match reply.action {
        Action::Allow => {
            let parts = if reply.all_parts { asked.parts.clone() } else { Arc::default() };
            (Resolution::Allow, AskAnswer::Allowed { rule, by: DecidedBy::Person, scope: Some(scope), parts })
        }
        Action::Deny => {
            let words = match &reply.message {
                Some(message) => format!("the user said no: {message}"),
                None => "the user said no".to_owned(),
            };
            (Resolution::Deny, refused(&rule, DecidedBy::Person, &asked.need, &words))
        }
    };
    let word = if reply.action == Action::Allow { "allowed" } else { "denied" };
    let how = format!("{word} by {who} ({})", reach(scope, &asked.ask));
    let mut ended = ended(&reply.request_id, action, &how, answer);
    ended.resolved.scope = Some(scope);
    ended.resolved.by = Some(replier.by.clone());
    ended.reply = Some(reply.clone());
    if granted {
        // The call that goes on uses the grant in any case, and not only if it is slower than the next lines.
        engine.policy_is_changing();
    }
    let was_there = prompts.resolve(id, ended);
    if granted {
        // After the answer, or the call would see the grant first.
        engine.policy_changed();
    }
    match not_kept {
        Some(error) => Err(AskReplyError::Store(error)),
        // The call may have ended while the answer was stored, which holds all the same.
        None if was_there || granted => Ok(()),
        None => Err(AskReplyError::Unknown(reply.request_id.clone())),
    }
}

/// How long an answer holds, and where, for people.
fn reach(scope: Scope, ask: &Ask) -> &str {
    match (scope, &ask.session_name) {
        (Scope::Session, Some(session)) => session,
        (Scope::Once | Scope::Session | Scope::Project | Scope::Always, _) => scope.as_str(),
    }
}

/// The grants that a reply asks for: one, or one for each part.
fn grants_of(
    engine: &Engine,
    asked: &PendingAsk,
    reply: &ReplyPermission,
    scope: Scope,
    replier: &Replier,
) -> Result<Vec<Grant>, AskReplyError> {
    if reply.all_parts && reply.pattern.is_some() {
        return Err(AskReplyError::PatternOfParts);
    }
    if scope > replier.widest {
        return Err(AskReplyError::TooWide(scope, replier.widest));
    }
    let wanted = reply.pattern.as_deref().filter(|pattern| *pattern != asked.ask.target);
    if let Some(wanted) = wanted
        && !asked.ask.suggestions.iter().any(|suggestion| suggestion.pattern == wanted)
        && exact_pattern(&asked.need).as_deref() != Some(wanted)
    {
        let of_use = Pattern::parse_to_use(asked.need.category(), wanted);
        of_use.map_err(|error| AskReplyError::CannotBeRemembered(error.to_string()))?;
        return Err(AskReplyError::NotSuggested(wanted.to_owned()));
    }
    let scope = match scope {
        _ if asked.relayed.is_some() || asked.need.is_workspace() => return Ok(Vec::new()),
        Scope::Once => return Ok(Vec::new()),
        _ if asked.need.always_asked && reply.action == Action::Allow => {
            return Err(AskReplyError::CannotBeRemembered(EACH_TIME.to_owned()));
        }
        Scope::Session => GrantScope::Session(asked.ask.session_id.clone()),
        Scope::Project => GrantScope::Project(asked.project.clone()),
        Scope::Always => GrantScope::Always,
    };
    let needs = match reply.all_parts && reply.action == Action::Allow && !asked.parts.is_empty() {
        true => &asked.parts[..],
        false => std::slice::from_ref(&*asked.need),
    };
    let now = SystemTime::now();
    let grant = |need: &Need| {
        let text = wanted.map(str::to_owned).or_else(|| exact_pattern(need)).ok_or_else(|| no_exact_pattern(need))?;
        let bad = |error: BadPattern| AskReplyError::CannotBeRemembered(error.to_string());
        Ok(Grant {
            id: engine.new_grant_id(),
            category: need.category(),
            pattern: Pattern::parse(need.category(), &text).map_err(bad)?,
            action: reply.action,
            scope: scope.clone(),
            tools: None,
            chain: asked.ask.chain.clone(),
            by: replier.by.client.clone(),
            granted_at: now,
            expires_at: reply.expires_in.map(|seconds| crate::time::after(now, seconds)),
            asked: Some(GrantAsk {
                agent: asked.ask.agent.clone(),
                tool: asked.ask.tool.clone(),
                cwd: asked.ask.cwd.clone(),
                words: reply.message.as_ref().map(|words| words.chars().take(MAX_KEPT_WORDS).collect()),
            }),
            fleet: None,
        })
    };
    needs.iter().map(grant).collect()
}

fn no_exact_pattern(need: &Need) -> AskReplyError {
    let words = match need.words() {
        Some(_) => {
            "no pattern matches exactly this command, because the shell expands part of it to what the line does not show; \
             choose one of the suggestions"
        }
        None => "no pattern matches a command line that cannot be parsed with certainty",
    };
    AskReplyError::CannotBeRemembered(words.to_owned())
}

/// Asks with the same key are one. A person who allows a write has seen the content, so diffs are
/// part of the key.
fn key(cx: &Cx, chain: &[String], need: &Need) -> String {
    // One that is asked each time is never joined with another. A workspace is opened once for all calls that wait for it.
    let own = (need.always_asked && !need.is_workspace()).then(|| cx.engine.new_call_id());
    let asked = (need.category(), &need.target, chain, need.diff(), own);
    match &cx.agent {
        None => format!("{:?}", (cx.session.id.as_str(), asked)),
        // Agents that do the same in one folder are asked about once. A workspace is one client's.
        Some(request) => {
            let client = need.is_workspace().then_some(&request.agent);
            format!("{:?}", ("agents", cx.session.project(), &cx.cwd, client, asked))
        }
    }
}

/// The needs that the call asks a person about, this one among them; none when this is the only one.
///
/// Files that a command names are approved with the command. A write to a place that runs code later is never approved
/// together with others.
fn parts(cx: &Cx, chain: &[String], need: &Need, declared: &[Need]) -> Arc<[Need]> {
    let policy = cx.engine.policy.load();
    let is_asked = |need: &&Need| {
        !need.is_workspace()
            && !need.always_asked
            && cx.chain_of_declared(need) == chain
            && decide_need(cx, chain, need).verdict == Verdict::Ask
            && policy.protected_write(cx.session.project(), need).is_none()
    };
    let asked: Vec<&Need> = declared.iter().filter(is_asked).collect();
    let is_command = |target: &str| asked.iter().any(|of| of.category() == Category::Shell && of.target == target);
    let apart = |need: &&&Need| !need.command_naming_it().is_some_and(is_command);
    let parts: Vec<Need> = asked.iter().filter(apart).map(|need| (*need).clone()).collect();
    match parts.len() > 1 && parts.contains(need) {
        true => parts.into(),
        false => Arc::default(),
    }
}

fn asked(cx: &Cx, chain: &[String], need: &Need, parts: Arc<[Need]>, number: u64, time: Duration) -> PendingAsk {
    let now = SystemTime::now();
    let policy = cx.engine.policy.load();
    let protected = policy.protected_write(cx.session.project(), need);
    // A workspace is exactly the folder that was named; frontends recognise such an ask by this.
    let mut suggestions = match need.is_workspace() || need.always_asked {
        true => Vec::new(),
        false => suggestions(need, policy.home.as_deref()),
    };
    if protected.is_some() {
        // A wider grant would not cover it.
        let exact = exact_pattern(need);
        suggestions.retain(|suggestion| Some(&suggestion.pattern) == exact.as_ref());
    }
    // Nor would one if a rule that denies may be about it.
    let decision = decide_need(cx, chain, need);
    let doubt = decision.may_be_denied.then_some(decision.rule);
    if doubt.is_some() {
        let is_exact = |pattern: &str| Pattern::parse(need.category(), pattern).is_ok_and(|pattern| pattern.is_exact());
        suggestions.retain(|suggestion| is_exact(&suggestion.pattern));
    }
    let is_said = |why: &&str| doubt.as_ref().is_some_and(|doubt| doubt.contains(*why));
    let unsure = need.unsure().filter(|why| !is_said(why)).map(|why| format!("not certain what it does: {why}"));
    let is_protected = protected.is_some();
    let (effects, does) = (effects_beyond_reading(need), does_of(need));
    let reason = reason_with_mode(cx, need);
    let reasons = reason.iter().cloned().chain(does).chain(protected).chain(unsure).chain(doubt);
    let reasons: Vec<String> = reasons.collect();
    let (asker, cwd) = (Asker::of(cx), cx.cwd.display().to_string());
    let agent = asker.agent.clone();
    let whole = need.line.as_deref().filter(|command| command.contains(&need.target));
    let texts = [Some(whole.unwrap_or(&need.target)), need.line.as_deref().filter(|_| whole.is_none())];
    let words = [agent.as_deref(), reason.as_deref(), need.description.as_deref()];
    let texts = texts.into_iter().chain(words).flatten().chain([cwd.as_str()]);
    let misleading = misleading(texts);
    let ask = Ask {
        // Another daemon's ask never has the same id, or an old answer could meet a new question.
        request_id: format!("ask_{}_{number}", cx.engine.short_epoch()),
        session_id: cx.session.id.clone(),
        call_id: cx.call_id.clone(),
        call_ids: vec![cx.call_id.clone()],
        category: need.category(),
        target: need.target.clone(),
        tool: cx.tool.to_string(),
        source: cx.source.clone(),
        session_name: Some(session_name(cx, agent.as_deref())),
        agent,
        agents: Vec::new(),
        subagent: asker.subagent.clone(),
        level: cx.level(),
        cwd,
        reason: (!reasons.is_empty()).then(|| reasons.join("; ")),
        description: need.description.clone(),
        misleading,
        command: need.line.clone(),
        effects,
        diff: need.diff().map(str::to_owned),
        chain: chain.to_vec(),
        suggestions,
        part: parts.iter().position(|part| part == need).map(|at| at as u64 + 1),
        parts: parts
            .iter()
            .map(|part| AskPart { category: part.category(), target: part.target.clone(), does: does_of(part) })
            .collect(),
        asked_at: rfc3339(now),
        expires_at: rfc3339(now + time),
    };
    let fits_one_line = !is_protected && ask.misleading.is_empty() && fits_one_line(need);
    PendingAsk {
        askers: vec![asker],
        ask: Box::new(ask),
        fits_one_line,
        need: Arc::new(need.clone()),
        parts,
        project: cx.session.grant_project().to_owned(),
        relayed: None,
    }
}

/// The reason for the need, and the mode of the agent that asks.
fn reason_with_mode(cx: &Cx, need: &Need) -> Option<String> {
    let agent = cx.agent.as_ref().filter(|_| !need.is_workspace());
    let mode = agent.and_then(|of| Some(format!("[{} in mode {}]", of.agent, of.mode_name.as_ref()?)));
    let texts: Vec<String> = need.reason.iter().cloned().chain(mode).collect();
    (!texts.is_empty()).then(|| texts.join(" "))
}

fn effects_beyond_reading(need: &Need) -> Vec<Effect> {
    need.effects_within().iter().filter(|effect| *effect != Effect::Read).collect()
}

/// The effects of a need beyond reading, in words, or that they are unknown.
fn does_of(need: &Need) -> Option<String> {
    let effects = effects_beyond_reading(need);
    let unknown = || {
        let program = need.words()?.first().filter(|program| program.literal && !program.text.contains('='))?;
        let is_known = !need.effects_within().is_empty() || need.unsure().is_some();
        (!is_known).then(|| format!("not known what it does: toold has no description of {}", program.text))
    };
    if effects.is_empty() { unknown() } else { Some(effect::in_words(&effects)) }
}

/// The session as people know it.
fn session_name(cx: &Cx, agent: Option<&str>) -> String {
    match (terminal_of(&cx.session.id), agent) {
        (Some(terminal), _) if terminal.is_empty() => "its terminal".to_owned(),
        (Some(terminal), _) => format!("terminal {terminal}"),
        (None, Some(agent)) => format!("this {agent} session"),
        (None, None) => "this session".to_owned(),
    }
}

/// `how`: in words, for people.
fn ended(request_id: &str, action: Resolution, how: &str, answer: AskAnswer) -> EndedAsk {
    EndedAsk {
        resolved: Resolved { request_id: request_id.to_owned(), action, scope: None, by: None, how: how.to_owned() },
        answer,
        reply: None,
    }
}

/// By the rule alone: nobody was asked here.
fn allowed(rule: String, by: DecidedBy) -> AskAnswer {
    AskAnswer::Allowed { rule, by, scope: None, parts: Arc::default() }
}

fn denied(rule: &str, by: DecidedBy, message: &str) -> AskAnswer {
    AskAnswer::Denied { rule: rule.to_owned(), by, message: message.to_owned() }
}

fn refused(rule: &str, by: DecidedBy, need: &Need, words: &str) -> AskAnswer {
    denied(rule, by, &format!("not allowed: {} {}: {words}", need.category(), need.named()))
}

fn refused_by_policy(policy: &Policy, decision: &Decision, need: &Need) -> AskAnswer {
    refused(&decision.rule, decision.by, need, &policy.because(&decision.rule))
}

fn nobody(cx: &Cx, chain: &[String], need: &Need, decision: &Decision) -> AskAnswer {
    let rule = &decision.rule;
    let default = default_rule(need.category());
    let by = if *rule == default { String::new() } else { format!(" ({rule})") };
    let unsaid = need.unsure().filter(|reason| !rule.contains(reason));
    let why = unsaid.map(|reason| format!(" ({reason})")).unwrap_or_default();
    let exact = exact_pattern(need).filter(|_| need.category() == Category::Shell);
    // A rule for the line says nothing of its commands.
    let doubt = exact.as_deref().filter(|exact| exact.starts_with(LINE)).map(|_| why.as_str()).unwrap_or_default();
    let way = way_to_allow(cx, chain, need).map(|way| format!("{way}{doubt}")).unwrap_or_else(|| {
        let connect = "run it while a client that can ask you is connected (toolctl approve)";
        match need.category() {
            Category::Shell if exact.is_none() => {
                format!(
                    "No rule but one for every command allows it in advance, because its effect is not certain{why}: \
                     write it in a simpler way, or {connect}"
                )
            }
            _ => format!("No grant allows it in advance: {connect}"),
        }
    });
    let why = if cx.unattended { "you are not asked now" } else { "no connected client can ask you" };
    let words = format!("{}{by}, and {why}. {way}", needs_approval(need));
    refused(&format!("nobody to ask ({rule})"), DecidedBy::Default, need, &words)
}

fn needs_approval(need: &Need) -> &'static str {
    match need.category() {
        Category::FileRead if need.is_workspace() => "working in this folder needs approval",
        Category::FileRead => "reading this file needs approval",
        Category::FileWrite => "writing this file needs approval",
        Category::Shell => "shell commands need approval",
        Category::Network => "requests to this host need approval",
        Category::Mcp if need.always_asked => "the use of your model by an MCP server needs approval each time",
        Category::Mcp => "this tool of an MCP server needs approval",
        Category::Agent => "this sub-agent needs approval",
        Category::Plugin => "this tool of a plugin needs approval",
    }
}
