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
use serde_json::value::RawValue;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncWriteExt, BufReader, stdout};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout};
use toold_client::ended::{EndedDaemon, FOLLOWED_CHECK};
use toold_client::{Client, ClientError};
use toold_proto::daemon::{CLOSING_STOP, Closing};
use toold_proto::mcp_line::{LineCollector, LinePart, UnreadableMessage};
use toold_proto::method::CallsBegun;
use toold_proto::provide::FindBegunCalls;
use toold_proto::tool::CallId;

use crate::commands::connect::{LISTENS_CHECK, stdout_is_closed};
use conversation::{Conversation, RelayedMessage};

/// The daemon's limit for a message.
const MAX_LINE: usize = 16 << 20;

/// Nothing is read of a client that does not read so many answers to what is no message.
const MAX_REFUSALS: usize = 64;

/// How long the control connection may take to end after that of the client.
const FAREWELL: Duration = Duration::from_secs(2);

/// A daemon is started at most so often within [`STARTS_WITHIN`].
pub(super) const MAX_STARTS: usize = 3;
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
    /// The answers to what is no message, until they are written out.
    refusals: Mutex<Vec<Vec<u8>>>,
    refused: Notify,
    written: Notify,
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

/// The client's messages.
pub(super) struct ClientInput<I> {
    input: I,
    lines: LineCollector,
    /// The messages of lines that were read, as far as nobody has taken them yet.
    parts: VecDeque<LinePart>,
    has_ended: bool,
}

impl<I: AsyncBufRead + Unpin> ClientInput<I> {
    pub(super) fn new(input: I) -> Self {
        Self { input, lines: LineCollector::new(MAX_LINE), parts: VecDeque::new(), has_ended: false }
    }

    /// The next message, or what is none; `None` at the end. Cancel-safe.
    pub(super) async fn next(&mut self) -> Option<LinePart> {
        loop {
            if let Some(part) = self.parts.pop_front() {
                return Some(part);
            }
            if self.has_ended {
                return None;
            }
            // An error ends the input too, and its end a line.
            let bytes = self.input.fill_buf().await.unwrap_or_default();
            self.has_ended = bytes.is_empty();
            let (taken, is_complete) = self.lines.take(bytes);
            self.input.consume(taken);
            if is_complete || self.has_ended {
                // The daemon decides how much memory a message may take.
                self.parts.extend(self.lines.end_line(u64::MAX));
            }
        }
    }

    fn is_over(&self) -> bool {
        self.has_ended && self.parts.is_empty()
    }
}

/// A message as a line.
pub(super) fn line_of(message: &RawValue) -> Vec<u8> {
    format!("{}\n", message.get()).into_bytes()
}

impl<'a> Bridge<'a> {
    pub(super) fn new(name: &'a str, socket: &'a Path) -> Self {
        Self {
            conversation: Mutex::default(),
            name,
            socket,
            starts: Mutex::default(),
            refusals: Mutex::default(),
            refused: Notify::new(),
            written: Notify::new(),
        }
    }

    /// Passes messages until the client is gone. `again` connects to another daemon.
    pub(super) async fn run(
        &self,
        first: Vec<u8>,
        mut input: ClientInput<impl AsyncBufRead + Unpin>,
        mut control: Client,
        mut stream: UnixStream,
        again: impl AsyncFn(DaemonToReach<'_>) -> anyhow::Result<(Client, UnixStream)>,
    ) -> anyhow::Result<()> {
        self.lock().begin(&first);
        let mut opening = vec![first];
        loop {
            let (reader, writer) = stream.into_split();
            let upstream = self.upstream(std::mem::take(&mut opening), &mut input, writer);
            let end = self.pass(upstream, self.downstream(reader)).await?;
            self.write_refusals().await?;
            if let RelayEnd::ClientGone = end {
                return Ok(());
            }
            // The last message on the control connection says whether unanswered requests were read.
            let why = timeout(FAREWELL, control.closed()).await;
            if input.is_over() && !self.lock().has_waiting() {
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
            if input.is_over() && !self.lock().has_waiting() {
                return Ok(None);
            }
            tokio::select! {
                biased;
                part = input.next(), if !input.is_over() => {
                    if let Some(part) = part {
                        // A request is sent to the next daemon.
                        self.take_from_client(part);
                        self.write_refusals().await?;
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
        loop {
            let written = self.written.notified();
            if self.refusals.lock().len() >= MAX_REFUSALS {
                written.await;
                continue;
            }
            let Some(part) = input.next().await else { break };
            if let Some(line) = self.take_from_client(part) {
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
            tokio::select! {
                biased;
                () = self.refused.notified() => {
                    self.write_refusals().await?;
                    continue;
                }
                // Dropping this future loses nothing: the part of a line that it has read stays in `line`. A reset ends the
                // connection, too.
                read = from_daemon.read_until(b'\n', &mut line) => {
                    if !matches!(read, Ok(1..)) {
                        return Ok(());
                    }
                }
            }
            let passed = self.lock().take_from_daemon(&line);
            match passed {
                RelayedMessage::Unchanged => write_out(std::slice::from_ref(&line)).await?,
                RelayedMessage::Changed(line) => write_out(&[line]).await?,
                RelayedMessage::Consumed => {}
            }
            line.clear();
        }
    }

    /// A message of the client as the daemon gets it, if it gets it. What is no message is answered here: its id would be
    /// lost with the daemon.
    fn take_from_client(&self, part: LinePart) -> Option<Vec<u8>> {
        let taken = part.and_then(|message| self.lock().take_from_client(line_of(&message)));
        match taken {
            Ok(line) => line,
            Err(unreadable) => {
                self.refusals.lock().push(answer_line(&unreadable));
                self.refused.notify_one();
                None
            }
        }
    }

    async fn write_refusals(&self) -> io::Result<()> {
        let refusals = std::mem::take(&mut *self.refusals.lock());
        self.written.notify_waiters();
        write_out(&refusals).await
    }
}

pub(super) fn answer_line(unreadable: &UnreadableMessage) -> Vec<u8> {
    format!("{}\n", unreadable.answer()).into_bytes()
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

pub(super) async fn write_out(lines: &[Vec<u8>]) -> io::Result<()> {
    let mut out = stdout();
    for line in lines {
        out.write_all(line).await?;
    }
    out.flush().await
}
