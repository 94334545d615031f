//! The places of a client's calls, which the SDK gives to tasks that begin in any order.

use std::collections::HashMap;

use parking_lot::Mutex;
use rmcp::model::RequestId;
use toold_engine::arrival::{ArrivalOrder, ArrivalTurn};

/// The calls that have arrived and have not begun.
#[derive(Debug, Default)]
pub(crate) struct Arrivals {
    order: ArrivalOrder,
    turns: Mutex<HashMap<RequestId, ArrivalTurn>>,
}

impl Arrivals {
    pub(super) fn add(&self, request: RequestId) {
        let former = self.turns.lock().insert(request, self.order.next());
        drop(former);
    }

    /// `None` for a request whose order does not matter.
    pub(super) fn take(&self, request: &RequestId) -> Option<ArrivalTurn> {
        self.turns.lock().remove(request)
    }

    /// The request was answered or cancelled: if it has not begun, nothing waits for it.
    pub(super) fn forget(&self, request: &RequestId) {
        drop(self.take(request));
    }
}
