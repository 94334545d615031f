//! Passes messages between an MCP client and the daemon, across restarts of the daemon.
//!
//! The client talks to one server for as long as it lives. When another daemon takes over, the bridge repeats the client's
//! first messages there, keeps the answers to itself, and sends the requests that the old daemon did not read. Which
//! messages these are is the business of [`conversation`].

mod conversation;

use std::io;
use std::pin::pin;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, stdout};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::time::{sleep, timeout};
use toold_client::{Client, ClientError};

use crate::commands::connect::{LISTENS_CHECK, stdout_is_closed};
use conversation::{Conversation, RelayedMessage};

/// The daemon's limit for a message. A longer one passes in pieces, and the daemon answers it with an error.
const MAX_LINE: u64 = 16 << 20;

/// How long the control connection may take to end after that of the client.
const FAREWELL: Duration = Duration::from_secs(2);

#[derive(Default)]
pub(super) struct Bridge {
    conversation: Mutex<Conversation>,
}

/// How the connection to one daemon ended.
enum RelayEnd {
    /// The daemon closed it.
    Closed,
    /// The client no longer reads stdout.
    ClientGone,
}

impl Bridge {
    /// Passes messages until the client or the daemon is gone. `again` connects to the daemon that took over.
    pub(super) async fn run(
        &self,
        first: Vec<u8>,
        mut input: impl AsyncBufRead + Unpin,
        mut control: Client,
        mut stream: UnixStream,
        again: impl AsyncFn(&Client) -> anyhow::Result<(Client, UnixStream)>,
    ) -> anyhow::Result<()> {
        self.lock().begin(&first);
        let mut opening = vec![first];
        let (mut half_line, mut input_ended) = (Vec::new(), false);
        loop {
            let (reader, writer) = stream.into_split();
            let upstream =
                self.upstream(std::mem::take(&mut opening), &mut input, &mut half_line, &mut input_ended, writer);
            let end = self.pass(upstream, self.downstream(reader)).await?;
            if let RelayEnd::ClientGone = end {
                return Ok(());
            }
            // The last message on the control connection says whether unanswered requests were read.
            let why = timeout(FAREWELL, control.closed()).await;
            if input_ended && !self.lock().has_waiting() {
                return Ok(());
            }
            match why {
                Ok(ClientError::Replaced) => {}
                // The daemon ended only this connection.
                Err(_) => return Ok(()),
                Ok(_) => {
                    let answers = self.lock().fail_waiting();
                    return Ok(write_out(&answers).await?);
                }
            }
            (control, stream) = again(&control).await?;
            let cancelled;
            (opening, cancelled) = self.lock().hand_over();
            write_out(&cancelled).await?;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Conversation> {
        self.conversation.lock()
    }

    async fn pass(
        &self,
        upstream: impl Future<Output = io::Result<()>>,
        downstream: impl Future<Output = io::Result<()>>,
    ) -> io::Result<RelayEnd> {
        let (mut upstream, mut downstream) = (pin!(upstream), pin!(downstream));
        let mut sending = true;
        loop {
            // Both futures are kept across turns, so nothing that was read is lost.
            tokio::select! {
                biased;
                done = &mut downstream => return done.map(|()| RelayEnd::Closed),
                // When the daemon closes its end, downstream ends too.
                _ = &mut upstream, if sending => sending = false,
                // The input has ended already, so only a check of stdout shows whether the client is there.
                () = sleep(LISTENS_CHECK), if !sending => {
                    if stdout_is_closed() {
                        return Ok(RelayEnd::ClientGone);
                    }
                }
            }
        }
    }

    /// From the client to the daemon. `half_line` is the part of a line that was read when the daemon before ended.
    async fn upstream(
        &self,
        opening: Vec<Vec<u8>>,
        input: &mut (impl AsyncBufRead + Unpin),
        half_line: &mut Vec<u8>,
        input_ended: &mut bool,
        mut to_daemon: OwnedWriteHalf,
    ) -> io::Result<()> {
        for line in opening {
            to_daemon.write_all(&line).await?;
        }
        while !*input_ended {
            // When this future is dropped in the middle of a line, its part stays in `half_line`.
            let limit = MAX_LINE.saturating_sub(half_line.len() as u64);
            let read = (&mut *input).take(limit).read_until(b'\n', half_line).await;
            // An error ends the input too.
            *input_ended = !matches!(read, Ok(1..));
            if half_line.is_empty() {
                continue;
            }
            let line = std::mem::take(half_line);
            let line = self.lock().take_from_client(line);
            if let Some(line) = line {
                to_daemon.write_all(&line).await?;
            }
        }
        // The answers to what was sent last are still to come.
        to_daemon.shutdown().await
    }

    /// From the daemon to the client.
    async fn downstream(&self, from_daemon: OwnedReadHalf) -> io::Result<()> {
        let mut from_daemon = BufReader::with_capacity(64 << 10, from_daemon);
        let mut line = Vec::new();
        loop {
            line.clear();
            // A reset ends the connection too.
            match from_daemon.read_until(b'\n', &mut line).await {
                Ok(0) | Err(_) => return Ok(()),
                Ok(_) => {}
            }
            let passed = self.lock().take_from_daemon(&line);
            match passed {
                RelayedMessage::Unchanged => write_out(std::slice::from_ref(&line)).await?,
                RelayedMessage::Changed(line) => write_out(&[line]).await?,
                RelayedMessage::Consumed => {}
            }
        }
    }
}

async fn write_out(lines: &[Vec<u8>]) -> io::Result<()> {
    let mut out = stdout();
    for line in lines {
        out.write_all(line).await?;
    }
    out.flush().await
}
