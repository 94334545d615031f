//! Bounds on the memory that all clients together may use.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A byte budget that all clients share. Small messages are not counted: most are small, and a
/// counter that all connections write to would cost them more.
#[derive(Debug)]
pub struct MessageBudget {
    limit: usize,
    taken: AtomicUsize,
}

/// What one client may use without being counted.
pub const SMALL: usize = 64 * 1024;

impl MessageBudget {
    pub fn new(limit: usize) -> Self {
        Self { limit, taken: AtomicUsize::new(0) }
    }

    pub fn has_room(&self) -> bool {
        self.taken() < self.limit
    }

    /// Bytes that are reserved now.
    pub fn taken(&self) -> usize {
        self.taken.load(Ordering::Relaxed)
    }
}

/// One client's share. Released when dropped.
#[derive(Debug)]
pub struct Reservation {
    budget: Arc<MessageBudget>,
    taken: usize,
}

impl Reservation {
    pub fn new(budget: Arc<MessageBudget>) -> Self {
        Self { budget, taken: 0 }
    }

    /// Reserves this many bytes in total. False when too few are left; then the reservation is
    /// unchanged.
    #[must_use]
    pub fn grow(&mut self, bytes: usize) -> bool {
        if bytes <= SMALL || bytes <= self.taken {
            return true;
        }
        let more = bytes - self.taken;
        let add = |taken: usize| taken.checked_add(more).filter(|taken| *taken <= self.budget.limit);
        let grown = self.budget.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).is_ok();
        self.taken += if grown { more } else { 0 };
        grown
    }

    /// Sets the reservation to this many bytes in total, whether or not they are left.
    pub fn set(&mut self, bytes: usize) {
        let bytes = if bytes <= SMALL { 0 } else { bytes };
        if bytes > self.taken {
            self.budget.taken.fetch_add(bytes - self.taken, Ordering::Relaxed);
        } else if bytes < self.taken {
            self.budget.taken.fetch_sub(self.taken - bytes, Ordering::Relaxed);
        }
        self.taken = bytes;
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.set(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: usize = 10 * SMALL;

    #[test]
    fn reservations_grow_within_the_budget() {
        let budget = Arc::new(MessageBudget::new(LIMIT));
        let (mut one, mut other) = (Reservation::new(budget.clone()), Reservation::new(budget.clone()));
        assert!(one.grow(LIMIT - SMALL));
        assert!(one.grow(10));
        assert!(other.grow(SMALL));
        assert!(!other.grow(2 * SMALL));
        one.set(0);
        assert!(other.grow(2 * SMALL));
        drop(other);
        assert!(one.grow(LIMIT));
        assert!(!budget.has_room());
    }

    #[test]
    fn set_reservation_counts_beyond_the_limit() {
        let budget = Arc::new(MessageBudget::new(LIMIT));
        let mut share = Reservation::new(budget.clone());
        share.set(SMALL);
        assert_eq!(budget.taken(), 0);
        share.set(2 * LIMIT);
        assert!(!budget.has_room());
        share.set(2 * SMALL);
        assert_eq!(budget.taken(), 2 * SMALL);
        drop(share);
        assert_eq!(budget.taken(), 0);
    }
}
