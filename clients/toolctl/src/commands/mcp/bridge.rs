//! Passes messages between an MCP client and the daemon, across every end of the daemon.
//!
//! The client talks to one server for as long as it lives. When another daemon serves, the bridge repeats the client's
//! first messages there, keeps the answers to itself, and sends the requests that the old daemon did not carry out. Which
//! messages these are is the business of [`conversation`]. A daemon that a person stopped is not started again; any other
//! is, once the client asks for something.

mod conversation;

use std::collections::VecDeque;
use std::io;
use std::path::Path;
use std::pin::pin;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use serde_json::Value;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, stdout};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::time::{Instant, sleep, timeout};
use toold_client::ended::{EndedDaemon, FOLLOWED_CHECK};
use toold_client::{Client, ClientError};
use toold_proto::daemon::{CLOSING_STOP, Closing};
use toold_proto::method::CallsBegun;
use toold_proto::provide::FindBegunCalls;
use toold_proto::tool::CallId;

use crate::commands::connect::{LISTENS_CHECK, stdout_is_closed};
use conversation::{Conversation, RelayedMessage};

/// The daemon's limit for a message. A longer one passes in pieces, and the daemon answers it with an error.
const MAX_LINE: u64 = 16 << 20;

/// How long the control connection may take to end after that of the client.
const FAREWELL: Duration = Duration::from_secs(2);

/// A daemon is started at most so often within [`STARTS_WITHIN`].
const MAX_STARTS: usize = 3;
const STARTS_WITHIN: Duration = Duration::from_secs(60);

/// The longest id of a request that the daemon makes a part of a call's.
const MAX_REQUEST_ID: usize = 64;

const STOPPED: &str = "toold was stopped by a person: `toolctl start`";
const TOO_OFTEN: &str = "toold has ended three times within a minute, and is not started again before that is over: \
                         `toolctl doctor` shows why";

pub(super) struct Bridge<'a> {
    conversation: Mutex<Conversation>,
    /// The name of the bridge, with which the ids of its calls begin.
    name: &'a str,
    socket: &'a Path,
    /// When daemons were started.
    starts: Mutex<VecDeque<Instant>>,
}

/// How the connection to one daemon ended.
enum RelayEnd {
    /// The daemon closed it.
    Closed,
    /// The client no longer reads stdout.
    ClientGone,
}

/// How a daemon ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum DaemonEnd {
    /// Another one has taken over.
    Replaced,
    /// A person stopped it.
    Stopped,
    /// For another reason, after it had answered all that it had read.
    InOrder,
    /// Without a word: it may have read requests that it did not answer.
    Lost,
}

/// Which daemon is to be connected to.
pub(super) enum DaemonToReach<'a> {
    /// The one that took over from that of this client.
    Successor(&'a Client),
    /// One that runs.
    Running,
    /// One that runs, or is started.
    Started,
}

/// The client's messages, and what was read of them.
struct ClientInput<I> {
    input: I,
    /// The part of a line that was read when the daemon before ended.
    half_line: Vec<u8>,
    has_ended: bool,
}

impl<I: AsyncBufRead + Unpin> ClientInput<I> {
    /// The next line, or a part of one that is too long; `None` at the end. Cancel-safe.
    async fn next_line(&mut self) -> Option<Vec<u8>> {
        while !self.has_ended {
            // When this future is dropped in the middle of a line, its part stays in `half_line`.
            let limit = MAX_LINE.saturating_sub(self.half_line.len() as u64);
            let read = (&mut self.input).take(limit).read_until(b'\n', &mut self.half_line).await;
            // An error ends the input too.
            self.has_ended = !matches!(read, Ok(1..));
            if !self.half_line.is_empty() {
                return Some(std::mem::take(&mut self.half_line));
            }
        }
        None
    }
}

impl<'a> Bridge<'a> {
    pub(super) fn new(name: &'a str, socket: &'a Path) -> Self {
        Self { conversation: Mutex::default(), name, socket, starts: Mutex::default() }
    }

    /// Passes messages until the client is gone. `again` connects to another daemon.
    pub(super) async fn run(
        &self,
        first: Vec<u8>,
        input: impl AsyncBufRead + Unpin,
        mut control: Client,
        mut stream: UnixStream,
        again: impl AsyncFn(DaemonToReach<'_>) -> anyhow::Result<(Client, UnixStream)>,
    ) -> anyhow::Result<()> {
        self.lock().begin(&first);
        let mut opening = vec![first];
        let mut input = ClientInput { input, half_line: Vec::new(), has_ended: false };
        loop {
            let (reader, writer) = stream.into_split();
            let upstream = self.upstream(std::mem::take(&mut opening), &mut input, writer);
            let end = self.pass(upstream, self.downstream(reader)).await?;
            if let RelayEnd::ClientGone = end {
                return Ok(());
            }
            // The last message on the control connection says whether unanswered requests were read.
            let why = timeout(FAREWELL, control.closed()).await;
            if input.has_ended && !self.lock().has_waiting() {
                return Ok(());
            }
            let ended = match why {
                Ok(ClientError::Replaced) => DaemonEnd::Replaced,
                // The daemon ended only this connection.
                Err(_) => return Ok(()),
                Ok(_) => DaemonEnd::of(control.closing().as_ref()),
            };
            let Some(next) = self.next_daemon(ended, &control, &mut input, &again).await? else { return Ok(()) };
            (control, stream) = next;
            let (cancelled, list_changes);
            {
                let mut conversation = self.lock();
                (opening, cancelled) = conversation.hand_over();
                list_changes = conversation.list_changes();
            }
            write_out(&cancelled).await?;
            write_out(&list_changes).await?;
        }
    }

    /// Connects to the next daemon. Until there is one, requests are answered with the reason. `None` when the client is
    /// gone.
    async fn next_daemon(
        &self,
        end: DaemonEnd,
        control: &Client,
        input: &mut ClientInput<impl AsyncBufRead + Unpin>,
        again: &impl AsyncFn(DaemonToReach<'_>) -> anyhow::Result<(Client, UnixStream)>,
    ) -> anyhow::Result<Option<(Client, UnixStream)>> {
        let ended = EndedDaemon::at(self.socket);
        let mut lost = Vec::new();
        let answers;
        match end {
            DaemonEnd::Replaced | DaemonEnd::InOrder => answers = Vec::new(),
            DaemonEnd::Stopped => answers = self.lock().refuse_waiting(STOPPED),
            DaemonEnd::Lost => (answers, lost) = self.lock().lose(),
        }
        write_out(&answers).await?;
        let mut was_replaced = end == DaemonEnd::Replaced;
        loop {
            let way = match end {
                _ if std::mem::take(&mut was_replaced) => Some(DaemonToReach::Successor(control)),
                _ if ended.is_followed() => Some(DaemonToReach::Running),
                DaemonEnd::Stopped => None,
                _ if !self.lock().has_waiting() => None,
                _ if self.may_start() => Some(DaemonToReach::Started),
                _ => {
                    let answers = self.lock().refuse_waiting(TOO_OFTEN);
                    write_out(&answers).await?;
                    None
                }
            };
            if let Some(way) = way {
                let is_start = matches!(way, DaemonToReach::Started);
                match again(way).await {
                    Ok((control, stream)) => {
                        let begun = self.begun(&control, lost).await;
                        let answers = self.lock().fail_lost(&begun);
                        write_out(&answers).await?;
                        return Ok(Some((control, stream)));
                    }
                    Err(error) if is_start => {
                        let answers = self.lock().refuse_waiting(&format!("{error:#}"));
                        write_out(&answers).await?;
                    }
                    // It ended again meanwhile, or does not listen yet.
                    Err(_) => {}
                }
            } else if end == DaemonEnd::Stopped {
                let answers = self.lock().refuse_waiting(STOPPED);
                write_out(&answers).await?;
            }
            if input.has_ended && !self.lock().has_waiting() {
                return Ok(None);
            }
            tokio::select! {
                biased;
                line = input.next_line(), if !input.has_ended => {
                    if let Some(line) = line {
                        self.lock().take_from_client(line);
                    }
                }
                () = sleep(FOLLOWED_CHECK) => {}
            }
        }
    }

    /// Those of the lost calls that a daemon has begun, or may have, by the JSON of their requests' ids.
    async fn begun(&self, control: &Client, lost: Vec<String>) -> Vec<String> {
        let call_id = |id: &String| {
            let is_recorded = id.len() <= MAX_REQUEST_ID
                && matches!(serde_json::from_str(id), Ok(Value::String(_))) | id.parse::<i64>().is_ok();
            CallId::parse(&format!("{}-{id}", self.name)).ok().filter(|_| is_recorded)
        };
        let call_ids: Vec<CallId> = lost.iter().filter_map(call_id).collect();
        if call_ids.is_empty() {
            return lost;
        }
        match control.call::<CallsBegun>(FindBegunCalls { call_ids }).await {
            Ok(found) if found.complete => {
                let has_begun = |id: &String| call_id(id).is_none_or(|call_id| found.begun.contains(&call_id));
                lost.into_iter().filter(has_begun).collect()
            }
            // Nobody knows.
            Ok(_) | Err(_) => lost,
        }
    }

    /// Whether one more start is due, which counts from now on.
    fn may_start(&self) -> bool {
        let mut starts = self.starts.lock();
        while starts.front().is_some_and(|start| start.elapsed() > STARTS_WITHIN) {
            starts.pop_front();
        }
        let is_due = starts.len() < MAX_STARTS;
        if is_due {
            starts.push_back(Instant::now());
        }
        is_due
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

    /// From the client to the daemon.
    async fn upstream(
        &self,
        opening: Vec<Vec<u8>>,
        input: &mut ClientInput<impl AsyncBufRead + Unpin>,
        mut to_daemon: OwnedWriteHalf,
    ) -> io::Result<()> {
        for line in opening {
            to_daemon.write_all(&line).await?;
        }
        while let Some(line) = input.next_line().await {
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

impl DaemonEnd {
    /// That of a daemon which has said why it ends, or has not.
    fn of(closing: Option<&Closing>) -> Self {
        match closing {
            Some(closing) if closing.reason == CLOSING_STOP => Self::Stopped,
            Some(_) => Self::InOrder,
            None => Self::Lost,
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
