//! One message that came whole, as a WebSocket and a POST give it to their connection.

use bytes::Bytes;

use crate::rpc::connection::ConnectionLimits;
use crate::rpc::connection::message_stream::NextMessage;
use crate::rpc::message_budget::Reservation;

/// A message that came whole and waits until its connection takes it.
pub(super) struct WholeMessage {
    max: usize,
    message: Bytes,
    state: MessageState,
    /// It counts as those that come in pieces do, until it is given.
    unfinished: Reservation,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum MessageState {
    Received,
    Given,
}

impl WholeMessage {
    pub(super) fn new(limits: &ConnectionLimits) -> Self {
        Self {
            max: limits.max_message,
            message: Bytes::new(),
            state: MessageState::Given,
            unfinished: Reservation::new(limits.unfinished.clone()),
        }
    }

    pub(super) fn receive(&mut self, message: Bytes) {
        self.message = without_line_breaks(message);
        self.state = MessageState::Received;
    }

    pub(super) fn is_received(&self) -> bool {
        self.state == MessageState::Received
    }

    /// Gives the message once. Blanks alone are none.
    pub(super) fn next(&mut self, may_be_mcp: bool) -> NextMessage<'_> {
        if !self.is_received() {
            return NextMessage::Incomplete;
        }
        self.state = MessageState::Given;
        let has_room = self.unfinished.grow(self.message.len());
        self.unfinished.set(0);
        match self.message.trim_ascii_start() {
            [] => NextMessage::Incomplete,
            json if json.len() > self.max => NextMessage::TooLarge,
            _ if !has_room => NextMessage::OverBudget,
            json => NextMessage::Message { json, may_be_mcp },
        }
    }

    pub(super) fn put_back(&mut self) {
        self.state = MessageState::Received;
    }

    /// Frees a message that was given.
    pub(super) fn release(&mut self) {
        if self.state == MessageState::Given {
            self.message = Bytes::new();
        }
    }

    /// The message that was not given.
    pub(super) fn into_message(self) -> Option<Bytes> {
        self.is_received().then_some(self.message)
    }
}

/// A message means the same on all transports, and on a stream of lines it has no line breaks: they are blanks.
fn without_line_breaks(message: Bytes) -> Bytes {
    if memchr::memchr2(b'\n', b'\r', &message).is_none() {
        return message;
    }
    message.iter().map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { *byte }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn received(text: &'static str) -> WholeMessage {
        let mut message = WholeMessage::new(&ConnectionLimits { max_message: 10, ..ConnectionLimits::default() });
        message.receive(Bytes::from_static(text.as_bytes()));
        message
    }

    #[test]
    fn a_message_is_given_once_and_has_no_line_breaks() {
        let mut message = received("\n{\"a\":\r\n1}");
        let json = b"{\"a\":  1}".as_slice();
        assert_eq!(message.next(true), NextMessage::Message { json, may_be_mcp: true });
        assert_eq!(message.next(true), NextMessage::Incomplete);
        assert_eq!(received(" \n").next(true), NextMessage::Incomplete);
        assert_eq!(received("{\"aaaaaa\":1}").next(true), NextMessage::TooLarge);
    }

    #[test]
    fn a_message_that_was_put_back_is_there_for_another() {
        let mut message = received("{}");
        assert!(matches!(message.next(true), NextMessage::Message { .. }));
        message.put_back();
        assert_eq!(message.into_message().as_deref(), Some(b"{}".as_slice()));
    }
}
