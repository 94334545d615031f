//! The reasons why calls wait: counted, and shown with the call.

use toold_proto::provide::CallWait;

use crate::counts::{CallStage, StageGuard};
use crate::cx::Cx;

/// A call that waits, until it is dropped.
pub struct WaitGuard<'c> {
    cx: &'c Cx,
    reason: CallWait,
    _counted: StageGuard<'c>,
}

impl Cx {
    /// From now on the call waits, until the guard is dropped.
    pub fn wait_for(&self, reason: CallWait) -> WaitGuard<'_> {
        let stage = match reason {
            CallWait::Lane => CallStage::Lane,
            CallWait::Turn => CallStage::Turn,
            CallWait::Permission | CallWait::Answer => CallStage::Person,
        };
        self.start_waiting(reason);
        WaitGuard { cx: self, reason, _counted: self.engine.counts.enter(stage) }
    }
}

impl Drop for WaitGuard<'_> {
    fn drop(&mut self) {
        self.cx.stop_waiting(self.reason);
    }
}
