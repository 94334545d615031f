//! Step 5 of a call: a stored result, the result of an identical call in flight, or the decision to run.

use std::sync::{Arc, Weak};
use std::time::Duration;

use serde_json::Value;
use toold_proto::call::{Progress, Stream};
use toold_proto::provide::CallWait;

use crate::cache::flight::{Flight, FlightPhase, FlightRole, Leading};
use crate::cache::{CacheKey, CachedOutcome};
use crate::callable::Callable;
use crate::cx::Cx;
use crate::need::Need;
use crate::progress::ProgressSink;
use crate::tool::{ToolError, ToolOutput};

/// A call at step 5.
pub(crate) struct LookupRequest<'a> {
    pub(crate) tool: &'a Arc<dyn Callable>,
    pub(crate) input: &'a Value,
    /// The needs that are permitted so far.
    pub(crate) needs: &'a [Need],
    /// For how long the tool says that its results are valid.
    pub(crate) ttl: Duration,
    /// The time limit of the call.
    pub(crate) limit: Duration,
    /// False for a nested call: a call that it would follow may wait for a permit that the outer
    /// call holds.
    pub(crate) may_follow: bool,
}

pub(crate) enum Lookup {
    /// `original`: how long the call took whose result was stored; `None` when another call has just produced it.
    Served { result: Result<ToolOutput, ToolError>, original: Option<Duration> },
    /// The call runs; others may follow it.
    Run(Leader),
    /// The call's own time is over before that of the leader.
    TimedOut,
    /// The session was interrupted while the leader waited for its turn.
    Skipped,
}

/// A call that runs for itself and for its followers.
pub(crate) struct Leader {
    key: CacheKey,
    ttl: Duration,
    generation: u64,
    leading: Option<Leading>,
}

/// Looks up the result of the call. Cancel-safe; when a leader is dropped, a follower takes its
/// place.
pub(crate) async fn lookup(cx: &Arc<Cx>, request: LookupRequest<'_>) -> Lookup {
    let cache = &cx.engine.cache;
    let key = CacheKey::new(cx, request.tool, request.input, request.needs);
    let begun = *cx.session.interrupts.borrow();
    let mut may_follow = request.may_follow;
    // One clock for all leaders that it follows, or leaders that give up could make it wait for
    // ever.
    let mut clock_runs = false;
    loop {
        let leading = match cache.flights.join(&key, cx) {
            FlightRole::Leads(leading) => Some(leading),
            FlightRole::Follows(flight) if may_follow => match follow(cx, flight, request.limit, &mut clock_runs).await
            {
                FollowOutcome::Ended { outcome, cached } if outcome.depends.hold_for(cx, outcome.outer).await => {
                    cache.count_shared();
                    return serve(cx, &outcome, cached);
                }
                // The other call's result is not for this one, or predates a change: this call
                // runs.
                FollowOutcome::Ended { .. } => {
                    may_follow = false;
                    continue;
                }
                FollowOutcome::GaveUp if *cx.session.interrupts.borrow() != begun => return Lookup::Skipped,
                FollowOutcome::GaveUp => continue,
                FollowOutcome::TimedOut => return Lookup::TimedOut,
            },
            FlightRole::Follows(_) => None,
        };
        // The leader looks it up, so that between its end and this point nobody runs a second time.
        let generation = cache.generation();
        if let Some(outcome) = cache.find(&key)
            && outcome.depends.hold_for(cx, outcome.outer).await
        {
            cache.count_hit();
            if let Some(leading) = leading {
                leading.end(outcome.clone(), true);
            }
            return serve(cx, &outcome, true);
        }
        cache.count_miss();
        return Lookup::Run(Leader { key, ttl: request.ttl, generation, leading });
    }
}

fn serve(cx: &Cx, outcome: &CachedOutcome, cached: bool) -> Lookup {
    let original = cached.then_some(outcome.took);
    cx.engine.cache.count_saved(original.unwrap_or_default());
    Lookup::Served { result: outcome.result.clone(), original }
}

impl Leader {
    /// The call has its permits and runs from now on. From here on the dependencies of its result
    /// are recorded.
    pub(crate) fn begin(&self, cx: &Cx, needs: &[Need]) {
        cx.start_noting(needs);
        if let Some(leading) = &self.leading {
            leading.runs();
        }
    }

    /// Stores the result if it may be stored, and passes it to the followers. `took`: how long the tool ran.
    pub(crate) fn end(self, cx: &Cx, result: &Result<ToolOutput, ToolError>, took: Duration) {
        let own = match result {
            Ok(_) => cx.timed_out(),
            Err(ToolError::Failed(_) | ToolError::Unavailable(_) | ToolError::Overloaded(_)) => false,
            Err(
                ToolError::Denied(_) | ToolError::Stopped(_) | ToolError::Cancelled | ToolError::PermissionEngine(_),
            ) => true,
        };
        if own {
            return;
        }
        let outcome = Arc::new(CachedOutcome {
            result: result.clone(),
            depends: cx.dependencies(),
            outer: cx.outer_chain.len(),
            ttl: self.ttl,
            took,
        });
        cx.engine.cache.keep(self.key, outcome.clone(), self.generation);
        if let Some(leading) = self.leading {
            leading.end(outcome, false);
        }
    }
}

enum FollowOutcome {
    Ended { outcome: Arc<CachedOutcome>, cached: bool },
    GaveUp,
    TimedOut,
}

/// Waits for the end of another call, and receives its progress.
async fn follow(cx: &Arc<Cx>, mut flight: Flight, limit: Duration, clock_runs: &mut bool) -> FollowOutcome {
    let leader = flight.leader.clone();
    let sink: Arc<dyn ProgressSink> =
        Arc::new(FollowerSink { leader: Arc::downgrade(&leader), follower: Arc::downgrade(cx) });
    let so_far = leader.progress.add_sink(sink.clone());
    let _guard = FollowerGuard { leader: &leader, sink };
    let _waiting = cx.wait_for(CallWait::Turn);
    if !so_far.is_empty() && leader.may_be_seen_by(cx) {
        cx.output(Stream::Stdout, so_far);
    }
    let mut phase = flight.now();
    loop {
        match phase {
            FlightPhase::Ended { outcome, cached } => return FollowOutcome::Ended { outcome, cached },
            // Waiting for its turn may take long and does not count as running time.
            FlightPhase::Waits => match flight.next().await {
                Some(next) => phase = next,
                None => return FollowOutcome::GaveUp,
            },
            FlightPhase::Runs => {
                if !std::mem::replace(clock_runs, true) {
                    cx.deadline.restart(limit);
                }
                loop {
                    tokio::select! {
                        biased;
                        next = flight.next() => match next {
                            Some(next) => { phase = next; break }
                            None => return FollowOutcome::GaveUp,
                        },
                        // The time limit of a call is paused while a person is asked.
                        () = cx.deadline.over() => match leader.deadline.is_paused() {
                            true => cx.deadline.restart(limit),
                            false => return FollowOutcome::TimedOut,
                        },
                    }
                }
            }
        }
    }
}

/// Passes on the progress of the leader, as long as the follower may have the result: the leader
/// may have been allowed to read things that the follower is not. Weak: a leader may live on for a
/// while after its followers are gone.
struct FollowerSink {
    leader: Weak<Cx>,
    follower: Weak<Cx>,
}

impl ProgressSink for FollowerSink {
    fn send(&self, _: u64, progress: &Progress) {
        if let (Some(leader), Some(follower)) = (self.leader.upgrade(), self.follower.upgrade())
            && leader.may_be_seen_by(&follower)
        {
            follower.report(progress.clone());
        }
    }
}

struct FollowerGuard<'a> {
    leader: &'a Cx,
    sink: Arc<dyn ProgressSink>,
}

impl Drop for FollowerGuard<'_> {
    fn drop(&mut self) {
        self.leader.progress.remove_sink(&self.sink);
    }
}
