//! Needs that a call declared and was allowed a moment ago, and that it requires as they were: they are decided once.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use toold_proto::level::Level;
use toold_proto::session::Mode;
use toold_proto::tool::Category;

use crate::cx::Cx;
use crate::need::Need;
use crate::policy::Policy;
use crate::policy::grants::Grant;

/// A call that waits for its turn or for a person takes longer: its needs are decided again.
const FRESH: Duration = Duration::from_millis(50);

/// What the needs of a call were decided by. While nothing has replaced a part of it, a decision is the same.
pub(super) struct DecisionBasis {
    at: Instant,
    policy: Arc<Policy>,
    grants: Arc<Vec<Grant>>,
    mode: Mode,
    level: Level,
}

impl DecisionBasis {
    /// Taken before the decisions, so that a change between them counts.
    pub(super) fn of(cx: &Cx) -> Self {
        Self {
            at: Instant::now(),
            policy: cx.engine.policy.load_full(),
            grants: cx.engine.grants.snapshot(),
            mode: cx.mode(),
            level: cx.level(),
        }
    }

    fn is_current(&self, cx: &Cx) -> bool {
        self.at.elapsed() < FRESH
            && Arc::ptr_eq(&self.policy, &*cx.engine.policy.load())
            && Arc::ptr_eq(&self.grants, &cx.engine.grants.snapshot())
            && self.mode == cx.mode()
            && self.level == cx.level()
    }
}

/// What the declared needs of a call were decided by.
#[derive(Default)]
struct DeclaredBasis(Mutex<Option<DecisionBasis>>);

impl Cx {
    /// All declared needs were allowed by this.
    pub(super) fn note_decided_by(&self, basis: DecisionBasis) {
        *self.slot::<DeclaredBasis>().0.lock() = Some(basis);
    }

    /// Only for reads: what is allowed to write or to run decides about more than this need.
    pub(super) fn was_just_allowed(&self, need: &Need) -> bool {
        need.category() == Category::FileRead
            && self.agent.is_none()
            && self.slot::<DeclaredBasis>().0.lock().as_ref().is_some_and(|basis| basis.is_current(self))
            && self.with_dependencies(|depends| depends.has_allowed(need, &self.chain))
    }
}
