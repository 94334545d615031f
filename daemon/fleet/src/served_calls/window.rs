//! The replies of a call on their way to its caller: numbered, kept until they are acknowledged, sent again when they were
//! lost. A caller that reads slowly loses progress, never output.

use std::collections::VecDeque;

use toold_proto::call::{Progress, Stream};

use crate::messages::{Finished, ReplyEvent};
use crate::served_calls::backlog::Backlog;

/// Messages, and bytes of their texts, that are sent without being acknowledged.
const MAX_SENT: usize = 256;
const MAX_SENT_BYTES: usize = 1024 * 1024;

pub(crate) struct ReplyWindow {
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
    pub(crate) fn new(first: u64, max_text: usize, backlog: Backlog) -> Self {
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
    pub(crate) fn push(&mut self, progress: &Progress) -> Result<(), String> {
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
    pub(crate) fn finish(&mut self, finished: Finished) {
        if !std::mem::replace(&mut self.is_ending, true) {
            self.tell_dropped();
            self.end = Some(finished);
        }
    }

    /// The number of the next new message.
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    /// The next message to send: one that was lost, or a new one if the window has room.
    pub(crate) fn next_to_send(&mut self) -> Option<(u64, ReplyEvent)> {
        if self.passed == self.sent.len() {
            let has_room = self.sent.is_empty() || self.sent.len() < MAX_SENT && self.sent_bytes < MAX_SENT_BYTES;
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
    pub(crate) fn acknowledge(&mut self, seen: u64) -> bool {
        let count = usize::try_from(seen.saturating_sub(self.oldest())).unwrap_or(usize::MAX).min(self.sent.len());
        for reply in self.sent.drain(..count) {
            self.sent_bytes -= reply.bytes;
        }
        self.passed = self.passed.saturating_sub(count);
        count > 0
    }

    /// All that is not acknowledged was lost.
    pub(crate) fn send_again(&mut self) {
        self.passed = 0;
    }

    /// Whether messages are sent and not acknowledged.
    pub(crate) fn is_waiting(&self) -> bool {
        !self.sent.is_empty()
    }

    /// Whether the caller has everything, the end included.
    pub(crate) fn is_delivered(&self) -> bool {
        self.is_ending && self.end.is_none() && self.sent.is_empty() && self.backlog.is_empty()
    }
}

fn json_bytes(progress: &Progress) -> usize {
    serde_json::to_vec(progress).map_or(usize::MAX, |text| text.len())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::call::order::{Arrival, ReplyOrder};
    use crate::messages::CallReply;

    /// What happens next.
    #[derive(Clone, Debug)]
    enum Step {
        Output(bool, String),
        Message(String),
        /// The daemon sends what it may.
        Send,
        /// A message on its way arrives, once or several times, or is lost: by its place among them.
        Deliver(prop::sample::Index, usize),
        /// The caller acknowledges.
        Acknowledge,
        /// An acknowledgement arrives, or is lost.
        Hear(prop::sample::Index, bool),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let index = any::<prop::sample::Index>;
        let step = prop_oneof![
            3 => (any::<bool>(), "[a-zé]{0,40}").prop_map(|(is_error, text)| Step::Output(is_error, text)),
            2 => "[a-z]{0,10}".prop_map(Step::Message),
            3 => Just(Step::Send),
            8 => (index(), 0usize..3).prop_map(|(at, times)| Step::Deliver(at, times)),
            3 => Just(Step::Acknowledge),
            3 => (index(), any::<bool>()).prop_map(|(at, arrives)| Step::Hear(at, arrives)),
        ];
        prop::collection::vec(step, 0..300)
    }

    /// A daemon and a caller, with messages on their way between them.
    struct LossyLink {
        window: ReplyWindow,
        order: ReplyOrder,
        replies: Vec<(u64, ReplyEvent)>,
        acknowledgements: Vec<u64>,
        wanted: [String; 2],
        got: [String; 2],
        messages: usize,
        got_messages: usize,
        ends: usize,
    }

    fn slot(stream: Stream) -> usize {
        usize::from(stream == Stream::Stderr)
    }

    impl LossyLink {
        fn new() -> Self {
            // So little memory that outputs are stored in the file.
            let backlog = Backlog::new(tempfile::tempfile).with_memory(100);
            Self {
                window: ReplyWindow::new(1, 16, backlog),
                order: ReplyOrder::new(1),
                replies: Vec::new(),
                acknowledgements: Vec::new(),
                wanted: Default::default(),
                got: Default::default(),
                messages: 0,
                got_messages: 0,
                ends: 0,
            }
        }

        fn arrive(&mut self, seq: u64, event: ReplyEvent) {
            assert_eq!(self.ends, 0, "nothing follows the end, but {event:?}");
            match self.order.take(CallReply { call_id: "call".into(), seq, event }) {
                Arrival::New(ReplyEvent::Output { stream, text }) => self.got[slot(stream)].push_str(&text),
                Arrival::New(ReplyEvent::Progress(_)) => self.got_messages += 1,
                Arrival::New(ReplyEvent::Result(_)) => self.ends += 1,
                Arrival::New(event) => panic!("{event:?}"),
                Arrival::Beat { .. } | Arrival::Gap | Arrival::Old => {}
            }
        }

        fn hear(&mut self, seen: u64) {
            if !self.window.acknowledge(seen) && self.window.is_waiting() {
                self.window.send_again();
            }
        }

        fn step(&mut self, step: Step) {
            match step {
                Step::Output(is_error, text) => {
                    let stream = if is_error { Stream::Stderr } else { Stream::Stdout };
                    self.wanted[slot(stream)].push_str(&text);
                    self.window.push(&Progress::Output { stream, text }).unwrap();
                }
                Step::Message(text) => {
                    self.messages += 1;
                    self.window.push(&Progress::Message { text }).unwrap();
                }
                Step::Send => self.replies.extend(std::iter::from_fn(|| self.window.next_to_send())),
                Step::Deliver(at, times) if !self.replies.is_empty() => {
                    let (seq, event) = self.replies.remove(at.index(self.replies.len()));
                    for _ in 0..times {
                        self.arrive(seq, event.clone());
                    }
                }
                Step::Acknowledge => self.acknowledgements.push(self.order.expected()),
                Step::Hear(at, arrives) if !self.acknowledgements.is_empty() => {
                    let seen = self.acknowledgements.remove(at.index(self.acknowledgements.len()));
                    if arrives {
                        self.hear(seen);
                    }
                }
                Step::Deliver(..) | Step::Hear(..) => {}
            }
        }
    }

    proptest! {
        /// Whatever is lost, doubled or overtaken: once messages arrive, the caller has all output once and in order.
        #[test]
        fn output_arrives_once_and_in_order(steps in steps()) {
            let mut link = LossyLink::new();
            for step in steps {
                link.step(step);
            }
            link.window.finish(Finished { last: true, ..Finished::default() });
            // Nothing on its way arrives; then the connection is as it should be.
            link.replies.clear();
            link.acknowledgements.clear();
            while link.ends == 0 {
                link.hear(link.order.expected());
                link.step(Step::Send);
                for (seq, event) in std::mem::take(&mut link.replies) {
                    link.arrive(seq, event);
                }
            }
            link.hear(link.order.expected());
            prop_assert!(link.window.is_delivered());
            prop_assert_eq!(&link.got, &link.wanted);
            // Each note about dropped ones stands for at least one.
            prop_assert!(link.got_messages <= link.messages);
        }
    }

    #[test]
    fn a_caller_that_reads_nothing_loses_progress_but_no_output() {
        let mut window = ReplyWindow::new(1, 1000, Backlog::new(tempfile::tempfile).with_memory(10_000));
        for number in 0..1000 {
            window.push(&Progress::Message { text: format!("{number}") }).unwrap();
            window.push(&Progress::Output { stream: Stream::Stdout, text: format!("{number:0500}\n") }).unwrap();
        }
        window.finish(Finished { last: true, ..Finished::default() });
        let mut sent = 0;
        let (mut output, mut messages) = (String::new(), Vec::new());
        while let Some((seq, event)) = window.next_to_send() {
            sent += 1;
            assert_eq!(seq, sent);
            match event {
                ReplyEvent::Output { text, .. } => output.push_str(&text),
                ReplyEvent::Progress(Progress::Message { text }) => messages.push(text),
                other => assert!(matches!(other, ReplyEvent::Result(_)), "{other:?}"),
            }
            window.acknowledge(seq + 1);
        }
        let expected: String = (0..1000).map(|number| format!("{number:0500}\n")).collect();
        assert!(output == expected, "{} bytes of {}", output.len(), expected.len());
        let note = messages.last().unwrap();
        assert_eq!(*note, format!("{} progress messages were dropped on the way", 1001 - messages.len()));
    }
}
