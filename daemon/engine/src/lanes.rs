//! The serial lane of a session, and the limits on calls in flight.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::time::Instant;

/// Runs one serial call of a session at a time. Connections take turns, and the calls of a
/// connection run in order of arrival: a client that sent a thousand calls delays each call of
/// another client by one.
#[derive(Clone, Default)]
pub struct Lane(Arc<Mutex<LaneQueue>>);

#[derive(Default)]
struct LaneQueue {
    /// Since when it is held.
    held: Option<Instant>,
    /// The connection whose turn is next stands first. None of the queues is empty.
    turns: VecDeque<(u64, VecDeque<oneshot::Sender<LaneGuard>>)>,
}

/// The lane, until it is dropped.
pub struct LaneGuard(Option<Lane>);

impl Lane {
    /// The lane, if it is free.
    pub fn try_take(&self) -> Option<LaneGuard> {
        let mut waiting = self.0.lock();
        waiting.hold().then(|| LaneGuard(Some(self.clone())))
    }

    /// Whether a call holds it.
    pub fn is_held(&self) -> bool {
        self.0.lock().held.is_some()
    }

    /// Whether a call has held it for this long.
    pub fn is_held_for(&self, time: Duration) -> bool {
        self.0.lock().held.is_some_and(|since| since.elapsed() >= time)
    }

    /// Joins the queue, and waits for a turn of this connection. Cancel-safe; a caller that gives up loses its place in
    /// the queue.
    pub fn take(&self, connection: u64) -> impl Future<Output = LaneGuard> + use<> {
        let (lane, mut joined) = (self.clone(), self.join(connection));
        async move {
            loop {
                match joined {
                    Ok(guard) => return guard,
                    // Fails when the lane itself is gone, which a call in it prevents; then it is tried again.
                    Err(turn) => match turn.await {
                        Ok(guard) => return guard,
                        Err(_) => joined = lane.join(connection),
                    },
                }
            }
        }
    }

    /// The lane if it is free, else a place in the queue.
    fn join(&self, connection: u64) -> Result<LaneGuard, oneshot::Receiver<LaneGuard>> {
        let mut waiting = self.0.lock();
        match waiting.hold() {
            true => Ok(LaneGuard(Some(self.clone()))),
            false => Err(waiting.enqueue(connection)),
        }
    }
}

impl LaneQueue {
    /// Takes it from now on; false if it is held.
    fn hold(&mut self) -> bool {
        let is_free = self.held.is_none();
        if is_free {
            self.held = Some(Instant::now());
        }
        is_free
    }

    fn enqueue(&mut self, connection: u64) -> oneshot::Receiver<LaneGuard> {
        let (sender, turn) = oneshot::channel();
        match self.turns.iter_mut().find(|(whose, _)| *whose == connection) {
            Some((_, queue)) => queue.push_back(sender),
            None => self.turns.push_back((connection, VecDeque::from([sender]))),
        }
        turn
    }

    /// The next turn; its connection goes to the end of the queue.
    fn next(&mut self) -> Option<oneshot::Sender<LaneGuard>> {
        let (connection, mut queue) = self.turns.pop_front()?;
        let sender = queue.pop_front();
        if !queue.is_empty() {
            self.turns.push_back((connection, queue));
        }
        sender
    }
}

impl Drop for LaneGuard {
    fn drop(&mut self) {
        let Some(lane) = self.0.take() else { return };
        loop {
            let next = {
                let mut waiting = lane.0.lock();
                let next = waiting.next();
                waiting.held = next.as_ref().map(|_| Instant::now());
                next
            };
            let Some(next) = next else { return };
            match next.send(LaneGuard(Some(lane.clone()))) {
                Ok(()) => return,
                // The waiting call gave up. The guard must not pass the lane on a second time.
                Err(mut unused) => unused.0 = None,
            }
        }
    }
}

/// How many calls may be in flight, including waiting ones.
pub struct CallLimits {
    per_connection: AtomicUsize,
    in_all: AtomicUsize,
    now: Arc<AtomicUsize>,
}

impl Default for CallLimits {
    fn default() -> Self {
        Self::new(256, 4_096)
    }
}

impl CallLimits {
    pub fn new(per_connection: usize, in_all: usize) -> Self {
        Self { per_connection: per_connection.into(), in_all: in_all.into(), now: Arc::default() }
    }

    /// Replaces the limits; they apply from the next call on.
    pub fn set(&self, per_connection: usize, in_all: usize) {
        self.per_connection.store(per_connection, Ordering::Relaxed);
        self.in_all.store(in_all, Ordering::Relaxed);
    }

    /// Admits one more call, or says which limit is reached.
    pub fn admit(&self, connection: &Arc<AtomicUsize>) -> Result<Admitted, String> {
        let (per_connection, in_all) =
            (self.per_connection.load(Ordering::Relaxed), self.in_all.load(Ordering::Relaxed));
        let mine = CountGuard::enter(connection, per_connection)
            .ok_or_else(|| format!("this connection already has {per_connection} calls in flight"))?;
        let all = CountGuard::enter(&self.now, in_all)
            .ok_or_else(|| format!("the daemon already has {in_all} calls in flight"))?;
        Ok(Admitted { _counted: [mine, all] })
    }
}

/// Counts a call towards the limits until it is dropped.
pub struct Admitted {
    _counted: [CountGuard; 2],
}

struct CountGuard(Arc<AtomicUsize>);

impl CountGuard {
    fn enter(counter: &Arc<AtomicUsize>, limit: usize) -> Option<Self> {
        let entered = counter.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| (n < limit).then_some(n + 1));
        entered.is_ok().then(|| Self(counter.clone()))
    }
}

impl Drop for CountGuard {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[test]
    fn connections_take_turns() {
        let lane = Lane::default();
        let mut held = lane.try_take();
        assert!(held.is_some() && lane.try_take().is_none());
        let mut waiting: Vec<_> = [1, 1, 1, 2, 3].into_iter().map(|c| (c, Box::pin(lane.take(c)))).collect();
        for (_, turn) in &mut waiting {
            assert!(turn.now_or_never().is_none());
        }
        // One of the waiting calls gives up.
        drop(waiting.remove(1));
        let mut order = Vec::new();
        while !waiting.is_empty() {
            held = None;
            let at = waiting.iter_mut().position(|(_, turn)| {
                held = turn.now_or_never();
                held.is_some()
            });
            order.push(waiting.remove(at.expect("somebody's turn comes")).0);
        }
        assert_eq!(order, [1, 2, 3, 1]);
        drop(held);
        assert!(lane.try_take().is_some());
    }

    #[test]
    fn a_turn_that_is_not_taken_is_handed_on() {
        let lane = Lane::default();
        let held = lane.try_take();
        let mut first = Box::pin(lane.take(1));
        let mut second = Box::pin(lane.take(1));
        assert!(first.as_mut().now_or_never().is_none() && second.as_mut().now_or_never().is_none());
        // The turn comes, but its owner is gone before it notices.
        drop(held);
        drop(first);
        assert!(second.now_or_never().is_some());
    }

    #[test]
    fn limits_hold_for_one_and_for_all() {
        let limits = CallLimits::new(2, 3);
        let (a, b) = (Arc::default(), Arc::default());
        let held: Vec<Admitted> = [&a, &a, &b].into_iter().map(|c| limits.admit(c).unwrap()).collect();
        assert!(limits.admit(&a).err().unwrap().contains("this connection already"));
        assert!(limits.admit(&b).err().unwrap().contains("the daemon already"));
        drop(held);
        assert!(limits.admit(&b).is_ok());
        assert_eq!(a.load(Ordering::Relaxed), 0);
    }
}
