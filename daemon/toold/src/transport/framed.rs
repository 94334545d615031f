//! Messages of a stream of bytes, such as a Unix socket, without a buffer while nothing comes.

use std::cell::RefCell;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::ReadBuf;

use super::framing::{self, FoundMessage, Framing, Splitter};
use crate::rpc::byte_stream::ByteStream;
use crate::rpc::connection::message_stream::{MessageStream, NextMessage, Transferred};
use crate::rpc::connection::{ConnectionLimits, HIGH_WATER};
use crate::rpc::message_budget::Reservation;

thread_local! {
    /// Bytes are read here first, so that idle connections hold no buffer.
    static SCRATCH: RefCell<Box<[u8]>> = RefCell::new(vec![0; 64 * 1024].into_boxed_slice());
}

/// A stream of bytes whose messages are found by [`Splitter`].
pub struct FramedStream<S> {
    stream: S,
    splitter: Splitter,
    unfinished: Reservation,
    unread: Reservation,
    inbox: Vec<u8>,
    /// Bytes of the inbox that are done with.
    used: usize,
    /// Bytes behind them of the message that was given last.
    given: usize,
    /// Bytes behind these that were searched for the end of a message.
    searched: usize,
    out: Vec<u8>,
    written: usize,
}

impl<S: ByteStream> FramedStream<S> {
    pub fn new(stream: S, limits: &ConnectionLimits) -> Self {
        Self {
            stream,
            splitter: Splitter::new(limits.max_message),
            unfinished: Reservation::new(limits.unfinished.clone()),
            unread: Reservation::new(limits.unread.clone()),
            inbox: Vec::new(),
            used: 0,
            given: 0,
            searched: 0,
            out: Vec::new(),
            written: 0,
        }
    }

    /// The stream, and what was read of it and not given as a message.
    pub fn into_parts(mut self) -> (S, Vec<u8>) {
        self.release_used();
        (self.stream, self.inbox)
    }

    /// Frees what the messages took that were given.
    fn release_used(&mut self) {
        let used = std::mem::take(&mut self.used) + std::mem::take(&mut self.given);
        if used == self.inbox.len() {
            self.inbox = Vec::new();
        } else if used > 0 {
            // Not drained: the rest keeps a buffer of its own size.
            self.inbox = self.inbox[used..].to_vec();
        }
    }

    fn note_written(&mut self, bytes: usize) {
        self.written += bytes;
        if self.written == self.out.len() {
            self.written = 0;
            self.out = Vec::new();
        } else if self.written >= HIGH_WATER && self.written >= self.out.len() / 2 {
            // What was written goes, for a client that reads all the time and never all of it, too.
            self.out.drain(..self.written);
            self.out.shrink_to(2 * self.out.len());
            self.written = 0;
        }
        self.unread.set(self.out.len());
    }
}

impl<S: ByteStream> MessageStream for FramedStream<S> {
    fn next_message(&mut self) -> NextMessage<'_> {
        self.used += std::mem::take(&mut self.given);
        loop {
            let bytes = &self.inbox[self.used..];
            match self.splitter.next(bytes, self.searched) {
                FoundMessage::Message(json, length) => {
                    self.searched = 0;
                    self.unfinished.set(0);
                    self.given = length;
                    // The Model Context Protocol is always in lines.
                    return NextMessage::Message { json, may_be_mcp: self.splitter.framing == Some(Framing::Lines) };
                }
                FoundMessage::Skip(length) => {
                    self.used += length;
                    self.searched = 0;
                }
                FoundMessage::TooLarge => {
                    self.searched = 0;
                    return NextMessage::TooLarge;
                }
                FoundMessage::More if self.unfinished.grow(bytes.len()) => {
                    self.searched = bytes.len();
                    return NextMessage::Incomplete;
                }
                FoundMessage::More => {
                    self.splitter.give_up(bytes);
                    self.unfinished.set(0);
                    self.searched = 0;
                    return NextMessage::OverBudget;
                }
                FoundMessage::Broken(words) => {
                    self.used += bytes.len();
                    self.searched = 0;
                    return NextMessage::Broken(words);
                }
            }
        }
    }

    fn has_received(&self) -> bool {
        self.used + self.given < self.inbox.len()
    }

    fn put_back(&mut self) {
        self.given = 0;
    }

    fn send(&mut self, message: &[u8]) {
        framing::write(self.splitter.framing.unwrap_or(Framing::Lines), message, &mut self.out);
        self.unread.set(self.out.len());
    }

    fn unsent(&self) -> usize {
        self.out.len() - self.written
    }

    fn poll_transfer(&mut self, context: &mut Context<'_>, receiving: bool) -> Poll<io::Result<Transferred>> {
        self.release_used();
        if self.unsent() > 0
            && let Poll::Ready(written) = Pin::new(&mut self.stream).poll_write(context, &self.out[self.written..])
        {
            let written = written?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.note_written(written);
            return Poll::Ready(Ok(Transferred::Sent));
        }
        if !receiving {
            return Poll::Pending;
        }
        SCRATCH.with_borrow_mut(|scratch| {
            let mut buffer = ReadBuf::new(scratch);
            ready!(Pin::new(&mut self.stream).poll_read(context, &mut buffer))?;
            let read = buffer.filled();
            self.inbox.extend_from_slice(read);
            if read.is_empty() {
                self.splitter.end();
                return Poll::Ready(Ok(Transferred::End));
            }
            Poll::Ready(Ok(Transferred::Received))
        })
    }

    fn hung_up(&self) -> bool {
        self.stream.hung_up()
    }
}
