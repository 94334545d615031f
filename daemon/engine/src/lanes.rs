//! Places to run in: the serial lane of a session, and the limits on calls in flight.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::{Mutex, OwnedMutexGuard};

/// Lets one serial call of a session run at a time, in the order in which they came.
#[derive(Default)]
pub struct Lane(Arc<Mutex<()>>);

pub type LaneGuard = OwnedMutexGuard<()>;

impl Lane {
    /// The lane, if nobody has it.
    pub fn try_take(&self) -> Option<LaneGuard> {
        self.0.clone().try_lock_owned().ok()
    }

    /// Waits for the lane. Cancel-safe; giving up loses the place in the queue.
    pub async fn take(&self) -> LaneGuard {
        self.0.clone().lock_owned().await
    }
}

/// How many calls may be in flight, those that wait included.
pub struct Limits {
    pub per_connection: usize,
    pub in_all: usize,
    now: Arc<AtomicUsize>,
}

impl Default for Limits {
    fn default() -> Self {
        Self::new(256, 4_096)
    }
}

impl Limits {
    pub fn new(per_connection: usize, in_all: usize) -> Self {
        Self { per_connection, in_all, now: Arc::default() }
    }

    /// A place for one more call, or the limit that is reached, in words.
    pub fn admit(&self, connection: &Arc<AtomicUsize>) -> Result<Admitted, String> {
        let mine = Counted::enter(connection, self.per_connection)
            .ok_or_else(|| format!("{} calls of this connection are in flight already", self.per_connection))?;
        let all = Counted::enter(&self.now, self.in_all)
            .ok_or_else(|| format!("{} calls are in flight in all", self.in_all))?;
        Ok(Admitted { _counted: [mine, all] })
    }
}

/// The place of a call; free again when dropped.
pub struct Admitted {
    _counted: [Counted; 2],
}

struct Counted(Arc<AtomicUsize>);

impl Counted {
    fn enter(counter: &Arc<AtomicUsize>, limit: usize) -> Option<Self> {
        let entered = counter.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| (n < limit).then_some(n + 1));
        entered.is_ok().then(|| Self(counter.clone()))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_hold_for_one_and_for_all() {
        let limits = Limits::new(2, 3);
        let (a, b) = (Arc::default(), Arc::default());
        let held: Vec<Admitted> = [&a, &a, &b].into_iter().map(|c| limits.admit(c).unwrap()).collect();
        assert!(limits.admit(&a).err().unwrap().contains("of this connection"));
        assert!(limits.admit(&b).err().unwrap().contains("in all"));
        drop(held);
        assert!(limits.admit(&b).is_ok());
        assert_eq!(a.load(Ordering::Relaxed), 0);
    }
}
