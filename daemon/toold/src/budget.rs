//! A bound on the memory of messages that have begun and not ended, of all clients together.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes that all clients together may have sent of messages that are not whole yet. Small ones are not counted.
#[derive(Debug)]
pub struct Unfinished {
    left: AtomicUsize,
}

/// What is counted before is not worth it: most messages are smaller, and come whole.
const SMALL: usize = 64 * 1024;
const ALL: usize = 256 * 1024 * 1024;

impl Default for Unfinished {
    fn default() -> Self {
        Self { left: AtomicUsize::new(ALL) }
    }
}

/// One client's part. Given back when dropped.
#[derive(Debug)]
pub struct Part {
    all: Arc<Unfinished>,
    taken: usize,
}

impl Part {
    pub fn new(all: Arc<Unfinished>) -> Self {
        Self { all, taken: 0 }
    }

    /// Takes so many bytes in all. False when there are not so many left; then it has what it had.
    #[must_use]
    pub fn grow(&mut self, bytes: usize) -> bool {
        if bytes <= SMALL || bytes <= self.taken {
            return true;
        }
        let more = bytes - self.taken;
        let left = &self.all.left;
        let taken = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(more)).is_ok();
        self.taken += if taken { more } else { 0 };
        taken
    }

    /// Nothing is kept any more.
    pub fn clear(&mut self) {
        self.all.left.fetch_add(std::mem::take(&mut self.taken), Ordering::Relaxed);
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        self.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_share_what_there_is() {
        let all = Arc::<Unfinished>::default();
        let (mut one, mut other) = (Part::new(all.clone()), Part::new(all));
        assert!(one.grow(ALL - SMALL));
        assert!(one.grow(10));
        assert!(other.grow(SMALL));
        assert!(!other.grow(2 * SMALL));
        one.clear();
        assert!(other.grow(2 * SMALL));
        drop(other);
        assert!(one.grow(ALL));
    }
}
