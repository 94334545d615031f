//! The end of a text without limit, for readers that poll it.

use std::collections::VecDeque;

/// Small pushes are joined up to this size.
const CHUNK: usize = 8 * 1024;

/// Keeps about the last `max` bytes. Positions count bytes from the very first one.
#[derive(Debug)]
pub(crate) struct OutputRing {
    chunks: VecDeque<String>,
    max: usize,
    start: u64,
    end: u64,
}

/// The part of the text that a reader gets.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct RingRead {
    pub(crate) text: String,
    /// The position to continue from.
    pub(crate) next: u64,
    /// Bytes that were overwritten before they were read.
    pub(crate) lost: u64,
}

impl OutputRing {
    pub(crate) fn new(max: usize) -> Self {
        Self { chunks: VecDeque::new(), max, start: 0, end: 0 }
    }

    pub(crate) fn push(&mut self, text: &str) {
        self.end += text.len() as u64;
        match self.chunks.back_mut() {
            Some(last) if last.len() + text.len() <= CHUNK => last.push_str(text),
            Some(_) | None => self.chunks.push_back(text.to_owned()),
        }
        while let Some(first) = self.chunks.front()
            && (self.end - self.start) as usize - first.len() >= self.max
        {
            self.start += first.len() as u64;
            self.chunks.pop_front();
        }
    }

    /// The current end position.
    pub(crate) fn end(&self) -> u64 {
        self.end
    }

    /// At most `max` bytes from `position` on, cut at a character boundary. `position` must have been returned by this
    /// ring.
    pub(crate) fn read(&self, position: u64, max: usize) -> RingRead {
        let from = position.clamp(self.start, self.end);
        let mut skip = (from - self.start) as usize;
        let mut text = String::new();
        for chunk in &self.chunks {
            if skip >= chunk.len() {
                skip -= chunk.len();
                continue;
            }
            let rest = &chunk[skip..];
            skip = 0;
            let room = max - text.len();
            text.push_str(&rest[..rest.floor_char_boundary(room)]);
            if rest.len() > room {
                break;
            }
        }
        RingRead { next: from + text.len() as u64, lost: from - position, text }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn overwritten_bytes_are_counted() {
        let mut ring = OutputRing::new(100_000);
        for _ in 0..100 {
            ring.push(&"x".repeat(10_000));
        }
        let part = ring.read(0, usize::MAX);
        assert_eq!(part.lost + part.text.len() as u64, 1_000_000);
        assert!(part.text.len() >= 100_000 && part.text.len() < 120_000);
        assert_eq!(ring.read(part.next, 10), RingRead { text: String::new(), next: 1_000_000, lost: 0 });
    }

    proptest! {
        #[test]
        fn readers_get_all_that_fits(pushes in prop::collection::vec("[aé\n]{0,30}", 0..20), step in 2usize..50) {
            let mut ring = OutputRing::new(1 << 20);
            let mut read = String::new();
            let mut position = 0;
            for push in &pushes {
                ring.push(push);
                let part = ring.read(position, step);
                read.push_str(&part.text);
                position = part.next;
            }
            while position < ring.end() {
                let part = ring.read(position, step);
                read.push_str(&part.text);
                position = part.next;
            }
            prop_assert_eq!(read, pushes.concat());
        }
    }
}
