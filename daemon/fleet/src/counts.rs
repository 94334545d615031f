//! Counters of a fleet, for its status.

use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::refusal::MessageRefusal;

/// Refused messages of each reason that are logged; after those, each that doubles their number.
const LOGGED: u64 = 20;
/// Characters of a sentence about a refused message, which may quote it.
const MAX_SENTENCE: usize = 300;

/// A text that may quote a stranger, short and without control characters.
fn shown(text: &str) -> String {
    let mut characters = text.chars();
    let shown = characters.by_ref().take(MAX_SENTENCE);
    let shown: String = shown.map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c }).collect();
    if characters.next().is_some() { shown + "..." } else { shown }
}

/// Counts since this daemon joined.
#[derive(Default)]
pub struct FleetCounts {
    refused: [AtomicU64; MessageRefusal::ALL.len()],
    /// The last refused message, as a sentence.
    last_refused: Mutex<Option<String>>,
    /// Calls from the fleet that are running here.
    pub running: AtomicU64,
    /// Those that wait for a person, and do not count as running.
    pub(crate) asking: AtomicU64,
    /// Calls from the fleet that have ended here.
    pub served: AtomicU64,
    /// How long those took together, in nanoseconds.
    pub processing_ns: AtomicU64,
    /// Rows of the audit log that the broker has confirmed.
    pub audit_sent: AtomicU64,
    /// Rows that wait to be sent, when it was last looked.
    pub audit_waiting: AtomicU64,
    /// The last row of the audit log that does not have to be sent.
    pub audit_row: AtomicU64,
}

impl FleetCounts {
    pub fn refuse(&self, refusal: MessageRefusal, sentence: String) {
        let before = self.refused[refusal as usize].fetch_add(1, Ordering::Relaxed);
        let sentence = shown(&sentence);
        // Anybody with access to the broker can send such messages, and must not be able to fill the log.
        if before < LOGGED || (before + 1).is_power_of_two() {
            let (reason, refused) = (refusal.as_str(), before + 1);
            tracing::warn!(reason, refused, "refused a message of the fleet: {sentence}");
        }
        *self.last_refused.lock() = Some(sentence);
    }

    /// How many messages were refused, by reason; all reasons, in their order.
    pub fn refused(&self) -> impl Iterator<Item = (MessageRefusal, u64)> {
        MessageRefusal::ALL.into_iter().map(|refusal| (refusal, self.refused[refusal as usize].load(Ordering::Relaxed)))
    }

    pub fn last_refused(&self) -> Option<String> {
        self.last_refused.lock().clone()
    }
}
