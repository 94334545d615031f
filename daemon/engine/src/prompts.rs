//! Prompts for people: the calls that wait for an answer, and the frontends that can give one.
//!
//! Pending prompts are state, not a queue: a subscriber compares it with the prompts it has received, so a slow
//! one loses nothing, an answered prompt is never shown late, and one that has changed is received again.
//! [`crate::asks`] and [`crate::questions`] are the two kinds.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::watch;
use tokio::time::Instant;
use toold_proto::event::EventBody;
use toold_proto::tool::{CallId, SessionId};

use crate::call::Caller;
use crate::cx::Cx;
use crate::events::Events;

/// How long a prompt waits for a subscriber who can answer: after the last one disconnected, and where one is expected back.
const ALONE: Duration = Duration::from_secs(10);

/// One kind of prompt.
pub trait PromptKind: Clone + Send + 'static {
    /// The outcome, for subscribers and for the waiting calls.
    type Outcome: Clone + Send + Sync + 'static;
    /// What is remembered of an outcome for a while; small.
    type End: Clone + Send + 'static;

    fn session(&self) -> &SessionId;
    /// Another call waits for it, too, for this long.
    fn join(&mut self, cx: &Cx, time: Duration);
    /// One of its calls no longer waits.
    fn leave(&mut self, call: &CallId);
    /// All its calls have ended.
    fn cancelled(&self) -> Self::Outcome;
    fn asked(&self) -> EventBody;
    fn resolved(&self, outcome: &Self::Outcome) -> EventBody;
    fn end(outcome: &Self::Outcome) -> Self::End;
}

/// The prompts of one kind, and their subscribers.
pub struct Prompts<P: PromptKind> {
    shared: Arc<SharedPrompts<P>>,
}

struct SharedPrompts<P: PromptKind> {
    state: Mutex<PromptsState<P>>,
    changed: watch::Sender<()>,
    events: Arc<Events>,
}

struct PromptsState<P: PromptKind> {
    next: u64,
    /// The oldest first.
    pending: BTreeMap<u64, PendingPrompt<P>>,
    subscribers: BTreeMap<u64, PromptSubscriber<P>>,
    /// Until when the frontends of the previous daemon may come back.
    expected: Option<Instant>,
    /// How the last ones ended, the latest last.
    ended: VecDeque<P::End>,
}

/// The number of ends that are remembered.
const MAX_ENDED: usize = 256;

struct PendingPrompt<P: PromptKind> {
    prompt: P,
    /// Counts the changes of `prompt`.
    version: u64,
    /// Prompts with the same key are one prompt.
    key: String,
    /// It is another daemon's, and only shown here.
    is_relayed: bool,
    expires: Instant,
    /// Since when no subscriber can answer it.
    alone: Option<Instant>,
    /// The waiting calls, and their callers.
    waiting: Vec<(CallId, Arc<Caller>)>,
    /// Somebody's answer is being applied.
    claimed: bool,
    outcome: watch::Sender<Option<P::Outcome>>,
}

struct PromptSubscriber<P: PromptKind> {
    can_answer: bool,
    sees: PromptScope,
    /// The prompts that it has received, if it has not received their outcome yet.
    reported: BTreeMap<u64, ReportedPrompt<P>>,
}

enum ReportedPrompt<P: PromptKind> {
    /// In this version.
    Open(u64),
    Ended(P::Outcome),
}

/// The prompts that a subscriber sees.
#[derive(Clone)]
pub enum PromptScope {
    All,
    /// Prompts of this session.
    Session(SessionId),
    /// Prompts of this caller's calls, direct or nested.
    Caller(Arc<Caller>),
    /// All prompts of this daemon, for people at other machines. The function tells whether anybody can be asked there now
    /// about a session. It is called under a lock, so it must not use prompts.
    Elsewhere(Arc<dyn Fn(&SessionId) -> bool + Send + Sync>),
}

/// The properties of a prompt that decide who sees it.
struct PromptAudience<'p, C> {
    session: &'p SessionId,
    callers: C,
    is_relayed: bool,
}

impl PromptScope {
    fn sees<'p>(&self, prompt: PromptAudience<'p, impl Iterator<Item = &'p Arc<Caller>>>) -> bool {
        let PromptAudience { session, mut callers, is_relayed } = prompt;
        match self {
            Self::All => true,
            Self::Session(own) => own == session,
            Self::Caller(own) => callers.any(|caller| Arc::ptr_eq(caller, own)),
            Self::Elsewhere(_) => !is_relayed,
        }
    }
}

impl<P: PromptKind> PromptSubscriber<P> {
    fn can_answer<'p>(&self, prompt: PromptAudience<'p, impl Iterator<Item = &'p Arc<Caller>>>) -> bool {
        let is_there = match &self.sees {
            PromptScope::Elsewhere(is_there) => is_there(prompt.session),
            PromptScope::All | PromptScope::Session(_) | PromptScope::Caller(_) => true,
        };
        self.can_answer && is_there && self.sees.sees(prompt)
    }
}

impl<P: PromptKind> PendingPrompt<P> {
    fn audience(&self) -> PromptAudience<'_, impl Iterator<Item = &Arc<Caller>>> {
        let callers = self.waiting.iter().map(|(_, caller)| caller);
        PromptAudience { session: self.prompt.session(), callers, is_relayed: self.is_relayed }
    }
}

/// A new, changed or resolved prompt, for a subscriber.
#[derive(Clone, Debug)]
pub enum PromptEvent<P: PromptKind> {
    /// A new one, or a known one as it is now.
    Asked(P),
    Resolved(P::Outcome),
}

/// The outcome of waiting.
#[derive(Debug)]
pub(crate) enum WaitOutcome<O> {
    Answered(O),
    /// The time is over.
    Expired,
    /// The last subscriber who could answer disconnected, and no other came.
    Alone,
}

impl<P: PromptKind> Prompts<P> {
    pub(crate) fn new(events: Arc<Events>) -> Self {
        let state = PromptsState {
            next: 1,
            pending: BTreeMap::new(),
            subscribers: BTreeMap::new(),
            expected: None,
            ended: VecDeque::new(),
        };
        Self { shared: Arc::new(SharedPrompts { state: Mutex::new(state), changed: watch::Sender::new(()), events }) }
    }

    /// From now on the subscriber receives all pending and all new prompts. While it exists and
    /// `can_answer` is set, it counts as able to answer the prompts that it sees.
    pub fn subscribe(&self, can_answer: bool, sees: PromptScope) -> PromptSubscription<P> {
        let mut state = self.shared.state.lock();
        let id = state.next;
        state.next += 1;
        state.subscribers.insert(id, PromptSubscriber { can_answer, sees, reported: BTreeMap::new() });
        state.record_lone_prompts();
        drop(state);
        self.shared.changed.send_replace(());
        PromptSubscription { id, changes: self.shared.changed.subscribe(), shared: self.shared.clone() }
    }

    /// The previous daemon had frontends, which have not connected to this one yet: for a while, prompts wait for them.
    pub(crate) fn expect_frontends(&self) {
        self.shared.state.lock().expected = Some(Instant::now() + ALONE);
    }

    /// Whether somebody could answer prompts, whichever call they belong to.
    pub(crate) fn can_all_be_answered(&self) -> bool {
        let state = self.shared.state.lock();
        state.subscribers.values().any(|own| own.can_answer && matches!(own.sees, PromptScope::All))
    }

    /// Fires when prompts or subscribers come and go.
    pub(crate) fn changes(&self) -> watch::Receiver<()> {
        self.shared.changed.subscribe()
    }

    /// Whether somebody could answer a prompt of this call, or is expected back.
    pub(crate) fn can_be_answered(&self, cx: &Cx) -> bool {
        !cx.unattended && self.shared.state.lock().can_be_answered(cx, false)
    }

    /// Whether somebody could answer another daemon's prompt for this call.
    pub(crate) fn can_be_answered_here(&self, cx: &Cx) -> bool {
        !cx.unattended && self.shared.state.lock().can_be_answered(cx, true)
    }

    /// Call it when the function of a [`PromptScope::Elsewhere`] may have changed its mind.
    pub(crate) fn reconsider(&self) {
        self.shared.state.lock().record_lone_prompts();
        self.shared.changed.send_replace(());
    }

    /// The pending prompts, the oldest first.
    pub fn pending(&self) -> Vec<P> {
        self.shared.state.lock().pending.values().map(|pending| pending.prompt.clone()).collect()
    }

    /// Adds a call's prompt, or joins the one of this key; `None` when nobody could answer it.
    pub(crate) fn enter(
        &self,
        key: String,
        cx: &Cx,
        time: Duration,
        make: impl FnOnce(u64) -> P,
    ) -> Option<PromptWaiter<P>> {
        self.enter_as(key, cx, time, make, false)
    }

    /// The same for a prompt of another daemon, which only people here can answer.
    pub(crate) fn enter_relayed(
        &self,
        key: String,
        cx: &Cx,
        time: Duration,
        make: impl FnOnce(u64) -> P,
    ) -> Option<PromptWaiter<P>> {
        self.enter_as(key, cx, time, make, true)
    }

    fn enter_as(
        &self,
        key: String,
        cx: &Cx,
        time: Duration,
        make: impl FnOnce(u64) -> P,
        is_relayed: bool,
    ) -> Option<PromptWaiter<P>> {
        let (call, caller) = (&cx.call_id, &cx.caller);
        let mut state = self.shared.state.lock();
        if cx.unattended || !state.can_be_answered(cx, is_relayed) {
            return None;
        }
        let joined = state.pending.iter_mut().find(|(_, pending)| pending.key == key && !pending.claimed);
        let id = match joined {
            Some((id, pending)) => {
                pending.waiting.push((call.clone(), caller.clone()));
                // Those that wait less leave earlier.
                pending.expires = pending.expires.max(Instant::now() + time);
                pending.prompt.join(cx, time);
                pending.version += 1;
                *id
            }
            None => {
                let waiting = vec![(call.clone(), caller.clone())];
                self.shared.add(&mut state, key, time, is_relayed, waiting, make)
            }
        };
        // One who is only expected back is not there, and the frontend of a call that joins is.
        state.record_lone_prompts();
        Some(self.waiter(state, id, Some(call.clone())))
    }

    /// Shows a prompt of another daemon that waits for no call here, also while nobody can answer it. It is shown to the
    /// callers of `calls`, too.
    pub(crate) fn show(
        &self,
        key: String,
        calls: &[Arc<Cx>],
        time: Duration,
        make: impl FnOnce(u64) -> P,
    ) -> PromptWaiter<P> {
        let mut state = self.shared.state.lock();
        let waiting = calls.iter().map(|cx| (cx.call_id.clone(), cx.caller.clone())).collect();
        let id = self.shared.add(&mut state, key, time, true, waiting, make);
        self.waiter(state, id, None)
    }

    fn waiter(&self, state: MutexGuard<'_, PromptsState<P>>, id: u64, call: Option<CallId>) -> PromptWaiter<P> {
        let pending = &state.pending[&id];
        let (prompt, outcome) = (pending.prompt.clone(), pending.outcome.subscribe());
        drop(state);
        self.shared.changed.send_replace(());
        let changes = self.shared.changed.subscribe();
        PromptWaiter { id, prompt, call, outcome, changes, shared: self.shared.clone() }
    }

    /// Claims a prompt, so that no other answer can be given; `None` when it is gone or claimed.
    pub(crate) fn claim(&self, is_it: impl Fn(&P) -> bool) -> Option<(u64, P)> {
        let mut state = self.shared.state.lock();
        let (id, pending) = state.pending.iter_mut().find(|(_, pending)| is_it(&pending.prompt) && !pending.claimed)?;
        pending.claimed = true;
        Some((*id, pending.prompt.clone()))
    }

    /// How one of the last prompts ended.
    pub(crate) fn end(&self, is_it: impl Fn(&P::End) -> bool) -> Option<P::End> {
        self.shared.state.lock().ended.iter().rev().find(|end| is_it(end)).cloned()
    }

    /// Changes the prompts for which `change` returns true, which subscribers receive again.
    pub(crate) fn change(&self, mut change: impl FnMut(&mut P) -> bool) {
        for pending in self.shared.state.lock().pending.values_mut() {
            pending.version += u64::from(change(&mut pending.prompt));
        }
        self.shared.changed.send_replace(());
    }

    /// Releases a claimed prompt: the answer could not be applied.
    pub(crate) fn release(&self, id: u64) {
        if let Some(pending) = self.shared.state.lock().pending.get_mut(&id) {
            pending.claimed = false;
        }
    }

    /// Ends a prompt; false when it has already ended.
    pub(crate) fn resolve(&self, id: u64, outcome: P::Outcome) -> bool {
        self.shared.resolve(id, outcome)
    }
}

impl<P: PromptKind> SharedPrompts<P> {
    fn add(
        &self,
        state: &mut PromptsState<P>,
        key: String,
        time: Duration,
        is_relayed: bool,
        waiting: Vec<(CallId, Arc<Caller>)>,
        make: impl FnOnce(u64) -> P,
    ) -> u64 {
        let id = state.next;
        state.next += 1;
        let prompt = make(id);
        // Under the lock, so that its end cannot be reported before its beginning.
        self.events.emit(prompt.asked());
        let expires = Instant::now() + time;
        let outcome = watch::Sender::new(None);
        let (version, alone, claimed) = (0, None, false);
        let pending = PendingPrompt { prompt, version, key, is_relayed, expires, alone, waiting, claimed, outcome };
        state.pending.insert(id, pending);
        id
    }

    fn resolve(&self, id: u64, outcome: P::Outcome) -> bool {
        let mut state = self.state.lock();
        let Some(pending) = state.pending.remove(&id) else { return false };
        for subscriber in state.subscribers.values_mut() {
            if let Some(reported) = subscriber.reported.get_mut(&id) {
                *reported = ReportedPrompt::Ended(outcome.clone());
            }
        }
        self.events.emit(pending.prompt.resolved(&outcome));
        if state.ended.len() == MAX_ENDED {
            state.ended.pop_front();
        }
        state.ended.push_back(P::end(&outcome));
        pending.outcome.send_replace(Some(outcome));
        drop(state);
        self.changed.send_replace(());
        true
    }
}

impl<P: PromptKind> PromptsState<P> {
    fn can_be_answered(&self, cx: &Cx, is_relayed: bool) -> bool {
        self.is_expected(cx)
            || self.subscribers.values().any(|subscriber| {
                let callers = std::iter::once(&cx.caller);
                subscriber.can_answer(PromptAudience { session: &cx.session.id, callers, is_relayed })
            })
    }

    /// Whether a frontend may come back that could answer a prompt of this call: it could when the previous daemon ended.
    fn is_expected(&self, cx: &Cx) -> bool {
        self.expected.is_some_and(|until| Instant::now() < until)
            || cx.agent.as_ref().is_some_and(|request| request.was_asked)
    }

    /// Records since when prompts have no subscriber. Call it when subscribers or waiting calls come or go.
    fn record_lone_prompts(&mut self) {
        let now = Instant::now();
        let Self { pending, subscribers, .. } = self;
        for pending in pending.values_mut() {
            let watched = subscribers.values().any(|subscriber| subscriber.can_answer(pending.audience()));
            pending.alone = if watched { None } else { pending.alone.or(Some(now)) };
        }
    }
}

/// A frontend's view of the prompts. Ends when dropped.
pub struct PromptSubscription<P: PromptKind> {
    id: u64,
    changes: watch::Receiver<()>,
    shared: Arc<SharedPrompts<P>>,
}

impl<P: PromptKind> PromptSubscription<P> {
    /// Waits for the next event that it has not received yet; ends come before beginnings. Of several changes of a prompt,
    /// it receives the last. Cancel-safe.
    pub async fn next(&mut self) -> PromptEvent<P> {
        loop {
            self.changes.mark_unchanged();
            if let Some(news) = self.try_next() {
                return news;
            }
            // Fails only when the sender is gone, which `shared` keeps.
            let _ = self.changes.changed().await;
        }
    }

    /// The next event that it has not received yet, if there is one.
    pub fn try_next(&mut self) -> Option<PromptEvent<P>> {
        let mut state = self.shared.state.lock();
        let PromptsState { pending, subscribers, .. } = &mut *state;
        let own = subscribers.get_mut(&self.id)?;
        let ended = own.reported.iter().find_map(|(id, reported)| match reported {
            ReportedPrompt::Ended(outcome) => Some((*id, outcome.clone())),
            ReportedPrompt::Open(_) => None,
        });
        if let Some((id, outcome)) = ended {
            own.reported.remove(&id);
            return Some(PromptEvent::Resolved(outcome));
        }
        let is_news = |(id, pending): &(&u64, &PendingPrompt<P>)| {
            let is_known =
                matches!(own.reported.get(id), Some(ReportedPrompt::Open(version)) if *version == pending.version);
            !is_known && own.sees.sees(pending.audience())
        };
        let (id, news) = pending.iter().find(is_news)?;
        own.reported.insert(*id, ReportedPrompt::Open(news.version));
        Some(PromptEvent::Asked(news.prompt.clone()))
    }
}

impl<P: PromptKind> Drop for PromptSubscription<P> {
    fn drop(&mut self) {
        let mut state = self.shared.state.lock();
        state.subscribers.remove(&self.id);
        state.record_lone_prompts();
        drop(state);
        self.shared.changed.send_replace(());
    }
}

/// A waiting call. When all waiters of a prompt are dropped, the prompt ends as cancelled.
pub(crate) struct PromptWaiter<P: PromptKind> {
    id: u64,
    /// The state when the call began to wait.
    pub(crate) prompt: P,
    /// `None` for a prompt that waits for no call here.
    call: Option<CallId>,
    outcome: watch::Receiver<Option<P::Outcome>>,
    changes: watch::Receiver<()>,
    shared: Arc<SharedPrompts<P>>,
}

impl<P: PromptKind> PromptWaiter<P> {
    /// Waits for an answer, or until none can come. Cancel-safe.
    pub(crate) async fn wait(&mut self) -> WaitOutcome<P::Outcome> {
        loop {
            if let Some(outcome) = self.outcome.borrow().clone() {
                return WaitOutcome::Answered(outcome);
            }
            self.changes.mark_unchanged();
            let Some((expires, alone)) = self.ends() else {
                // It has just ended, so the outcome is set.
                continue;
            };
            // One that is only shown waits for frontends to come.
            let alone = alone.filter(|_| self.call.is_some());
            let end = alone.map_or(expires, |since| expires.min(since + ALONE));
            tokio::select! {
                biased;
                _ = self.outcome.changed() => {}
                _ = self.changes.changed() => {}
                () = tokio::time::sleep_until(end) => {
                    return if end < expires { WaitOutcome::Alone } else { WaitOutcome::Expired };
                }
            }
        }
    }

    fn ends(&self) -> Option<(Instant, Option<Instant>)> {
        self.shared.state.lock().pending.get(&self.id).map(|pending| (pending.expires, pending.alone))
    }

    /// Ends the prompt for all waiting calls; returns the outcome, which somebody else may have
    /// decided.
    pub(crate) fn resolve(&self, outcome: P::Outcome) -> P::Outcome {
        self.shared.resolve(self.id, outcome.clone());
        self.outcome.borrow().clone().unwrap_or(outcome)
    }

    /// Ends the prompt if no other call waits for it.
    pub(crate) fn resolve_if_last(&self, outcome: P::Outcome) {
        if self.shared.state.lock().pending.get(&self.id).is_some_and(|pending| pending.waiting.len() == 1) {
            self.shared.resolve(self.id, outcome);
        }
    }
}

impl<P: PromptKind> Drop for PromptWaiter<P> {
    fn drop(&mut self) {
        let mut state = self.shared.state.lock();
        let Some(pending) = state.pending.get_mut(&self.id) else { return };
        match &self.call {
            Some(own) => {
                if let Some(at) = pending.waiting.iter().position(|(call, _)| call == own) {
                    pending.waiting.remove(at);
                }
            }
            None => pending.waiting.clear(),
        }
        if pending.waiting.is_empty() {
            let outcome = pending.prompt.cancelled();
            drop(state);
            self.shared.resolve(self.id, outcome);
            return;
        }
        if let Some(call) = &self.call {
            pending.prompt.leave(call);
            pending.version += 1;
        }
        // A subscriber that could answer for the ended call may not be able to answer for the
        // remaining ones.
        state.record_lone_prompts();
        drop(state);
        // The remaining calls wait less if nobody can answer them, and subscribers show who waits now.
        self.shared.changed.send_replace(());
    }
}
