//! A bound on the memory of parsed messages, for all clients together.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use toold_engine::blocking::run_blocking;
use toold_proto::weight::weight;

/// Size up to which a text is not counted: most are shorter, and their parsed form is small.
const LIGHT: usize = 4 * 1024;
/// Size from which parsing a text would keep other clients waiting.
const LONG: usize = 256 * 1024;
/// Bytes of memory that one parsed text may take.
pub const ONE: u64 = 256 * 1024 * 1024;
/// Bytes of memory that all parsed texts may take at a time.
pub const ALL: u64 = 512 * 1024 * 1024;
/// The part of it reserved for small texts, so that large ones do not block everybody else.
const FOR_SMALL: u64 = 128 * 1024 * 1024;
const SMALL: u64 = 1024 * 1024;

/// The memory of parsed messages.
#[derive(Debug, Default)]
pub struct ParsedMemory {
    taken: AtomicU64,
}

/// Why a text is not parsed, as a sentence for the user.
#[derive(Debug, PartialEq, Eq)]
pub enum Refusal {
    TooLarge(String),
    Overloaded(String),
}

/// Reserved memory. Released when dropped.
#[derive(Debug)]
pub struct HeldMemory {
    memory: Arc<ParsedMemory>,
    bytes: u64,
}

impl ParsedMemory {
    /// Reserves the memory of the parsed text; `None` for one that is too short to count.
    ///
    /// # Errors
    /// The text takes too much, or all texts together do.
    pub fn hold(self: &Arc<Self>, text: impl AsRef<[u8]>) -> Result<Option<HeldMemory>, Refusal> {
        let text = text.as_ref();
        if text.len() <= LIGHT {
            return Ok(None);
        }
        let bytes = weight(text);
        if bytes > ONE {
            let words = format!(
                "the message has so many values that it would take {} MiB of memory; the limit is {} MiB: send \
                 fewer values, or send them as one string",
                bytes >> 20,
                ONE >> 20
            );
            return Err(Refusal::TooLarge(words));
        }
        let limit = if bytes <= SMALL { ALL + FOR_SMALL } else { ALL };
        let add = |taken: u64| Some(taken + bytes).filter(|taken| *taken <= limit);
        match self.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add) {
            Ok(_) => Ok(Some(HeldMemory { memory: self.clone(), bytes })),
            Err(_) => Err(Refusal::Overloaded(
                "other large messages use all the memory reserved for them: try again when they are \
                 answered"
                    .to_owned(),
            )),
        }
    }

    /// Bytes that are reserved now.
    pub fn taken(&self) -> u64 {
        self.taken.load(Ordering::Relaxed)
    }
}

impl Drop for HeldMemory {
    fn drop(&mut self) {
        self.memory.taken.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// Processes a text. If it is long, other tasks continue meanwhile on another thread.
pub fn beside_others<T>(text: &str, work: impl FnOnce() -> T) -> T {
    if text.len() > LONG { run_blocking(work) } else { work() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_text_has_a_bound_and_all_have_another() {
        let memory = Arc::<ParsedMemory>::default();
        assert!(memory.hold("[1,1,1]").unwrap().is_none());
        let too_many = format!("[{}1]", "1,".repeat(2_000_000));
        assert!(matches!(memory.hold(&too_many), Err(Refusal::TooLarge(_))));
        let many = format!("[{}1]", "1,".repeat(1_500_000));
        let held: Vec<_> = (0..2).map(|_| memory.hold(&many).unwrap().unwrap()).collect();
        assert!(matches!(memory.hold(&many), Err(Refusal::Overloaded(_))));
        drop(held);
        assert_eq!(memory.taken(), 0);
        let few = format!("[{}1]", "1,".repeat(4_000));
        let held: Vec<_> = (0..2).map(|_| memory.hold(&many).unwrap().unwrap()).collect();
        assert!(memory.hold(&few).is_ok(), "large messages keep small ones out");
        drop(held);
        // A long string is not amplified.
        let text = format!("\"{}\"", "[1,".repeat(1_000_000));
        assert!(memory.hold(&text).unwrap().is_some());
    }
}
