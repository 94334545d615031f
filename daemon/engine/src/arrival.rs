//! The order in which the calls of a client arrived. Each call of a session that runs alone joins the queue of the session's lane in
//! this order, although it may have a task of its own and be judged for longer than the next one.

use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::sync::oneshot::error::TryRecvError;

/// Gives the calls of one client their places.
#[derive(Debug, Default)]
pub struct ArrivalOrder(Mutex<Option<CallBefore>>);

/// Ends when the call before has left its place; with the one before that, if that one did not wait for it.
#[derive(Debug)]
struct CallBefore(oneshot::Receiver<Option<CallBefore>>);

/// A place, until it is dropped.
#[derive(Debug)]
pub struct ArrivalTurn {
    before: Option<CallBefore>,
    /// `None` once it is dropped.
    after: Option<oneshot::Sender<Option<CallBefore>>>,
}

impl ArrivalOrder {
    /// The place behind all others.
    pub fn next(&self) -> ArrivalTurn {
        let (after, before) = oneshot::channel();
        let before = self.0.lock().replace(CallBefore(before));
        ArrivalTurn { before, after: Some(after) }
    }
}

impl ArrivalTurn {
    /// Waits until no call that arrived earlier has a place. Cancel-safe.
    pub async fn wait(&mut self) {
        while let Some(CallBefore(left)) = &mut self.before {
            self.before = left.await.ok().flatten();
        }
    }
}

impl Drop for ArrivalTurn {
    fn drop(&mut self) {
        // Calls that have left are not handed on, or the last place would hold them all.
        while let Some(CallBefore(left)) = &mut self.before {
            match left.try_recv() {
                Ok(earlier) => self.before = earlier,
                Err(TryRecvError::Closed) => self.before = None,
                Err(TryRecvError::Empty) => break,
            }
        }
        if let Some(after) = self.after.take() {
            // Fails when it was the last one.
            let _ = after.send(self.before.take());
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[test]
    fn places_are_left_in_the_order_of_arrival() {
        let order = ArrivalOrder::default();
        let [first, second, mut third, mut fourth] = [(); 4].map(|()| order.next());
        assert!(third.wait().now_or_never().is_none());
        // It did not wait for the first one.
        drop(second);
        assert!(third.wait().now_or_never().is_none());
        drop(first);
        assert!(third.wait().now_or_never().is_some() && fourth.wait().now_or_never().is_none());
        drop(third);
        assert!(fourth.wait().now_or_never().is_some());
        drop(fourth);
        assert!(order.next().wait().now_or_never().is_some());
    }

    #[test]
    fn calls_that_have_left_are_not_kept() {
        let order = ArrivalOrder::default();
        let first = order.next();
        for _ in 0..1_000_000 {
            drop(order.next());
        }
        drop(first);
        assert!(order.next().wait().now_or_never().is_some());
    }
}
