//! What a connection needs of its transport: whole messages, either way.

use std::io;
use std::task::{Context, Poll};

/// One client's messages. How they are framed, and which bytes carry them, only the transport knows.
pub trait MessageStream: Unpin + Send {
    /// The next message of those that were received. Never waits.
    fn next_message(&mut self) -> NextMessage<'_>;

    /// Whether something was received that [`Self::next_message`] did not give yet; it may be a part of a message.
    fn has_received(&self) -> bool;

    /// Puts the message back that was given last: it belongs to whoever takes the stream over.
    fn put_back(&mut self);

    /// Queues a message to be sent. Never waits; [`Self::unsent`] says how much is queued.
    fn send(&mut self, message: &[u8]);

    /// Bytes that are queued and not sent yet.
    fn unsent(&self) -> usize;

    /// Sends some of what is queued, or receives what is there, whichever can be done first. Waits for ever when nothing
    /// is queued and receiving is not wanted.
    fn poll_transfer(&mut self, context: &mut Context<'_>, receiving: bool) -> Poll<io::Result<Transferred>>;

    /// Called only after [`Transferred::End`]: true when nobody can read our answers any more.
    fn hung_up(&self) -> bool;

    /// False when it ends with the answer to its first message: then there is nothing to subscribe to.
    fn is_kept(&self) -> bool {
        true
    }

    /// Sends the goodbye that some transports have.
    fn poll_goodbye(&mut self, _context: &mut Context<'_>) -> Poll<()> {
        Poll::Ready(())
    }
}

/// What comes next of what was received.
#[derive(Debug, PartialEq, Eq)]
pub enum NextMessage<'m> {
    /// A message. It may begin a conversation in the Model Context Protocol only when its transport can be handed over.
    Message { json: &'m [u8], may_be_mcp: bool },
    /// A message over the limit, which is discarded.
    TooLarge,
    /// A message that is discarded because the unfinished messages of all clients use up the memory for them.
    OverBudget,
    /// What is wrong with the frame: nothing after it can be understood.
    Broken(&'static str),
    /// There is no whole message.
    Incomplete,
}

/// What was done with a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transferred {
    Sent,
    Received,
    /// Nothing more will be received.
    End,
}
