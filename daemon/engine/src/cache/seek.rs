//! Step 5 of a call: a kept result, that of an identical call under way, or leave to run.

use std::sync::{Arc, Weak};
use std::time::Duration;

use serde_json::Value;
use toold_proto::call::{Progress, Stream};

use crate::cache::flight::{Flight, Joined, Leading, Phase};
use crate::cache::{Key, Outcome};
use crate::counts::At;
use crate::cx::Cx;
use crate::need::Need;
use crate::progress::ProgressSink;
use crate::tool::{Tool, ToolError, ToolOutput};

/// A call at step 5.
pub(crate) struct Question<'a> {
    pub(crate) tool: &'a Arc<dyn Tool>,
    pub(crate) input: &'a Value,
    /// What it has leave for by now.
    pub(crate) needs: &'a [Need],
    /// The tool's own word for how long results are good.
    pub(crate) ttl: Duration,
    /// How long the call may take.
    pub(crate) limit: Duration,
    /// False for a call within another: what it would follow may wait for a place that the outer one holds.
    pub(crate) may_follow: bool,
}

pub(crate) enum Sought {
    /// `cached` when it was there already, not when another call has just made it.
    Served { result: Result<ToolOutput, ToolError>, cached: bool },
    /// The call is to run; others may follow it.
    Run(Lead),
    /// The call's own time is over before the other's.
    TimedOut,
    /// The session was interrupted while the other waited for its turn.
    Skipped,
}

/// What a call holds that runs for itself and for those who follow.
pub(crate) struct Lead {
    key: Key,
    ttl: Duration,
    generation: u64,
    leading: Option<Leading>,
}

/// Looks for what the call would give. Cancel-safe; a leader that is dropped leaves its place to a follower.
pub(crate) async fn seek(cx: &Arc<Cx>, question: Question<'_>) -> Sought {
    let cache = &cx.engine.cache;
    let key = Key::new(cx, question.tool, question.input, question.needs);
    let begun = *cx.session.interrupts.borrow();
    let mut may_follow = question.may_follow;
    // One clock for all that it follows, or leaders that give up could keep it for ever.
    let mut clock_runs = false;
    loop {
        let leading = match cache.flights.join(&key, cx) {
            Joined::Leads(leading) => Some(leading),
            Joined::Follows(flight) if may_follow => match follow(cx, flight, question.limit, &mut clock_runs).await {
                Followed::Ended { outcome, cached } if outcome.depends.hold_for(cx, outcome.outer).await => {
                    cache.count_shared();
                    return Sought::Served { result: outcome.result.clone(), cached };
                }
                // What the other call was given is not for this one, or from before a change: it runs itself.
                Followed::Ended { .. } => {
                    may_follow = false;
                    continue;
                }
                Followed::GaveUp if *cx.session.interrupts.borrow() != begun => return Sought::Skipped,
                Followed::GaveUp => continue,
                Followed::TimedOut => return Sought::TimedOut,
            },
            Joined::Follows(_) => None,
        };
        // Looked up by the leader, so that between its end and this nobody runs a second time.
        let generation = cache.generation();
        if let Some(outcome) = cache.find(&key).await
            && outcome.depends.hold_for(cx, outcome.outer).await
        {
            cache.count_hit();
            if let Some(leading) = leading {
                leading.end(outcome.clone(), true);
            }
            return Sought::Served { result: outcome.result.clone(), cached: true };
        }
        cache.count_miss();
        return Sought::Run(Lead { key, ttl: question.ttl, generation, leading });
    }
}

impl Lead {
    /// The call has its place and runs from now on. What it notes from here on is what its result depends on.
    pub(crate) fn begin(&self, cx: &Cx, needs: &[Need]) {
        cx.start_noting(needs);
        if let Some(leading) = &self.leading {
            leading.runs();
        }
    }

    /// Keeps the result, if it is one to keep, and gives it to those who follow.
    pub(crate) async fn end(self, cx: &Cx, result: &Result<ToolOutput, ToolError>) {
        let own = match result {
            Ok(_) => cx.timed_out(),
            Err(ToolError::Told(_) | ToolError::Unavailable(_) | ToolError::Overloaded(_)) => false,
            Err(ToolError::Denied(_) | ToolError::Cancelled | ToolError::PermissionEngine(_)) => true,
        };
        if own {
            return;
        }
        let outcome = Arc::new(Outcome {
            result: result.clone(),
            depends: cx.dependencies(),
            outer: cx.outer_chain.len(),
            ttl: self.ttl,
        });
        cx.engine.cache.keep(self.key, outcome.clone(), self.generation).await;
        if let Some(leading) = self.leading {
            leading.end(outcome, false);
        }
    }
}

enum Followed {
    Ended { outcome: Arc<Outcome>, cached: bool },
    GaveUp,
    TimedOut,
}

/// Waits for the end of another call, and hears what it tells.
async fn follow(cx: &Arc<Cx>, mut flight: Flight, limit: Duration, clock_runs: &mut bool) -> Followed {
    let leader = flight.leader.clone();
    let ears: Arc<dyn ProgressSink> = Arc::new(Ears { leader: Arc::downgrade(&leader), follower: Arc::downgrade(cx) });
    let so_far = leader.progress.add_sink(ears.clone());
    let _hears = Hears { leader: &leader, ears };
    let _counted = cx.engine.counts.stay(At::Place);
    if !so_far.is_empty() && leader.may_be_seen_by(cx) {
        cx.output(Stream::Stdout, so_far);
    }
    let mut phase = flight.now();
    loop {
        match phase {
            Phase::Ended { outcome, cached } => return Followed::Ended { outcome, cached },
            // Its turn may be long in coming; that is nobody's running time.
            Phase::Waits => match flight.next().await {
                Some(next) => phase = next,
                None => return Followed::GaveUp,
            },
            Phase::Runs => {
                if !std::mem::replace(clock_runs, true) {
                    cx.deadline.restart(limit);
                }
                loop {
                    tokio::select! {
                        biased;
                        next = flight.next() => match next {
                            Some(next) => { phase = next; break }
                            None => return Followed::GaveUp,
                        },
                        // The time of a call stands still while a person is asked.
                        () = cx.deadline.over() => match leader.deadline.is_paused() {
                            true => cx.deadline.restart(limit),
                            false => return Followed::TimedOut,
                        },
                    }
                }
            }
        }
    }
}

/// Passes on what the leader tells, as long as the follower may have the result: the leader may have been allowed to
/// read what the follower is not. Weak: a leader may be slow to go when its followers have gone.
struct Ears {
    leader: Weak<Cx>,
    follower: Weak<Cx>,
}

impl ProgressSink for Ears {
    fn send(&self, _: u64, progress: &Progress) {
        if let (Some(leader), Some(follower)) = (self.leader.upgrade(), self.follower.upgrade())
            && leader.may_be_seen_by(&follower)
        {
            follower.tell(progress.clone());
        }
    }
}

struct Hears<'a> {
    leader: &'a Cx,
    ears: Arc<dyn ProgressSink>,
}

impl Drop for Hears<'_> {
    fn drop(&mut self) {
        self.leader.progress.remove_sink(&self.ears);
    }
}
