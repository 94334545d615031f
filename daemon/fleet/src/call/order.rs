//! The numbered replies of a call, as they arrive: each counts once, in its order.

use crate::messages::{CallReply, ReplyEvent};

/// The state of the numbered replies so far.
pub(crate) struct ReplyOrder {
    /// The number of the next one.
    expected: u64,
    /// The number of the last beat.
    beat: u64,
    first: u64,
}

/// How a reply fits into the order.
#[derive(Debug, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "it is read at once; a box would be an allocation for each reply")]
pub(crate) enum Arrival {
    /// The next one.
    New(ReplyEvent),
    /// Whether the call waits for a person there; and whether replies before this one are missing.
    Beat { asks: bool, is_gap: bool },
    /// Replies before this one are missing: they must be sent again, this one too.
    Gap,
    /// It arrived before.
    Old,
}

impl ReplyOrder {
    /// `first` is the number of the first reply.
    pub(crate) fn new(first: u64) -> Self {
        Self { expected: first, beat: 0, first }
    }

    /// The number of the next reply: all before it have arrived.
    pub(crate) fn expected(&self) -> u64 {
        self.expected
    }

    /// Whether the call is known to run.
    pub(crate) fn has_begun(&self) -> bool {
        self.beat > 0 || self.expected > self.first
    }

    pub(crate) fn take(&mut self, reply: CallReply) -> Arrival {
        if let ReplyEvent::Beat(beat) = reply.event {
            if beat.number <= self.beat {
                return Arrival::Old;
            }
            self.beat = beat.number;
            return Arrival::Beat { asks: beat.asks, is_gap: reply.seq > self.expected };
        }
        match reply.seq.cmp(&self.expected) {
            std::cmp::Ordering::Less => Arrival::Old,
            std::cmp::Ordering::Greater => Arrival::Gap,
            std::cmp::Ordering::Equal => {
                self.expected += 1;
                Arrival::New(reply.event)
            }
        }
    }
}
