//! The replies of a call on their way to its caller: numbered, kept until they are acknowledged, sent again when they were
//! lost. A caller that reads slowly loses progress, never output.

use std::collections::VecDeque;

use toold_proto::call::{Progress, Stream};

use super::backlog::Backlog;
use crate::messages::{Finished, ReplyEvent};

/// Messages, and bytes of their texts, that are sent without being acknowledged.
const MAX_SENT: usize = 256;
const MAX_SENT_BYTES: usize = 1024 * 1024;

pub(super) struct ReplyWindow {
    /// The number of the next new message.
    next: u64,
    /// Sent and not acknowledged; the last one has the number before `next`.
    sent: VecDeque<SentReply>,
    sent_bytes: usize,
    /// How many of `sent` need not be sent again.
    passed: usize,
    backlog: Backlog,
    /// Bytes that one output may have, so that it fits into a message.
    max_text: usize,
    /// Progress that was left out since the last one.
    dropped: u64,
    end: Option<Finished>,
    is_ending: bool,
}

struct SentReply {
    event: ReplyEvent,
    bytes: usize,
}

impl ReplyWindow {
    /// `first` is the number of the first message.
    pub(super) fn new(first: u64, max_text: usize, backlog: Backlog) -> Self {
        Self {
            next: first,
            sent: VecDeque::new(),
            sent_bytes: 0,
            passed: 0,
            backlog,
            max_text,
            dropped: 0,
            end: None,
            is_ending: false,
        }
    }

    /// # Errors
    /// When output can be kept no longer, as a sentence: then the call has to end.
    pub(super) fn push(&mut self, progress: &Progress) -> Result<(), String> {
        if self.is_ending {
            return Ok(());
        }
        match progress {
            Progress::Output { stream, text } => self.push_output(*stream, text),
            Progress::Message { .. } | Progress::Update { .. } => {
                self.push_progress(progress);
                Ok(())
            }
        }
    }

    fn push_output(&mut self, stream: Stream, mut text: &str) -> Result<(), String> {
        while !text.is_empty() {
            let end = if text.len() <= self.max_text { text.len() } else { text.floor_char_boundary(self.max_text) };
            let (piece, rest) = text.split_at(end.max(text.ceil_char_boundary(1)));
            self.backlog.push_output(stream, piece, self.max_text)?;
            text = rest;
        }
        Ok(())
    }

    fn push_progress(&mut self, progress: &Progress) {
        let bytes = json_bytes(progress);
        let is_full = self.sent.len() + self.backlog.len() >= MAX_SENT
            || self.sent_bytes + self.backlog.bytes() + bytes > MAX_SENT_BYTES
            || bytes > self.max_text;
        if is_full {
            self.dropped += 1;
            return;
        }
        self.tell_dropped();
        self.backlog.push(ReplyEvent::Progress(progress.clone()), bytes);
    }

    fn tell_dropped(&mut self) {
        if self.dropped > 0 {
            let text = format!("{} progress messages were dropped on the way", std::mem::take(&mut self.dropped));
            let bytes = text.len();
            self.backlog.push(ReplyEvent::Progress(Progress::Message { text }), bytes);
        }
    }

    /// Nothing follows. A second end is ignored.
    pub(super) fn finish(&mut self, finished: Finished) {
        if !std::mem::replace(&mut self.is_ending, true) {
            self.tell_dropped();
            self.end = Some(finished);
        }
    }

    /// The number of the next new message.
    pub(super) fn next(&self) -> u64 {
        self.next
    }

    /// The next message to send: one that was lost, or a new one if the window has room.
    pub(super) fn next_to_send(&mut self) -> Option<(u64, ReplyEvent)> {
        if self.passed == self.sent.len() {
            let has_room =
                self.sent.is_empty() || self.sent.len() < MAX_SENT && self.sent_bytes < MAX_SENT_BYTES;
            let (event, bytes) = if has_room { self.take_new()? } else { return None };
            self.sent_bytes += bytes;
            self.sent.push_back(SentReply { event, bytes });
            self.next += 1;
        }
        let number = self.oldest() + self.passed as u64;
        let event = self.sent.get(self.passed)?.event.clone();
        self.passed += 1;
        Some((number, event))
    }

    fn take_new(&mut self) -> Option<(ReplyEvent, usize)> {
        match self.backlog.pop() {
            Some(waiting) => Some(waiting),
            None => self.end.take().map(|finished| (ReplyEvent::Result(finished), 0)),
        }
    }

    /// The number of the oldest message that is not acknowledged.
    fn oldest(&self) -> u64 {
        self.next - self.sent.len() as u64
    }

    /// The caller has everything before `seen`. Returns whether that is new.
    pub(super) fn acknowledge(&mut self, seen: u64) -> bool {
        let count = usize::try_from(seen.saturating_sub(self.oldest())).unwrap_or(usize::MAX).min(self.sent.len());
        for reply in self.sent.drain(..count) {
            self.sent_bytes -= reply.bytes;
        }
        self.passed = self.passed.saturating_sub(count);
        count > 0
    }

    /// All that is not acknowledged was lost.
    pub(super) fn send_again(&mut self) {
        self.passed = 0;
    }

    /// Whether messages are sent and not acknowledged.
    pub(super) fn is_waiting(&self) -> bool {
        !self.sent.is_empty()
    }

    /// Whether the caller has everything, the end included.
    pub(super) fn is_delivered(&self) -> bool {
        self.is_ending && self.end.is_none() && self.sent.is_empty() && self.backlog.is_empty()
    }
}

fn json_bytes(progress: &Progress) -> usize {
    serde_json::to_vec(progress).map_or(usize::MAX, |text| text.len())
}
