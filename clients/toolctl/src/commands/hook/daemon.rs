//! Requests of a hook to the daemon, in as few steps as possible.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use rustix::io::{Errno, ioctl_fionbio};
use rustix::net::sockopt::socket_peercred;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use serde_json::{Value, json};
use toold_client::place::{may_serve, running_at};
use toold_proto::socket::DaemonRecord;

use crate::connection;
use crate::globals::Globals;

/// For an answer while no person is asked.
const ANSWERS_WITHIN: Duration = Duration::from_secs(10);

/// How long before the agent's time limit the daemon stops asking a person.
pub(crate) const BEFORE_THE_LIMIT: Duration = Duration::from_secs(5);

/// For an answer that is on its way when the person's time is over. Less than [`BEFORE_THE_LIMIT`].
const ON_ITS_WAY: Duration = Duration::from_secs(2);

/// How long a daemon may take to accept a connection while it has as many as it can hold.
const ACCEPTS_WITHIN: Duration = Duration::from_secs(1);

/// How long a lost daemon may take to be there again, as after a restart.
const BACK_WITHIN: Duration = Duration::from_secs(3);

/// How often a request is sent; each time but the first, the daemon was lost.
const TRIES: u32 = 3;

const BETWEEN_TRIES: Duration = Duration::from_millis(10);

/// More than any answer, in bytes.
const MAX_ANSWER: u64 = 1 << 20;

#[derive(Debug, thiserror::Error)]
pub(crate) enum DaemonError {
    #[error("toold is not running")]
    NotRunning,
    #[error("can't connect to {}: {source}", socket.display())]
    NoConnection { socket: PathBuf, source: std::io::Error },
    #[error("toold runs as process {pid}, but does not listen at {}: restart it with `toolctl restart`", socket.display())]
    Unreachable { socket: PathBuf, pid: u32 },
    #[error("no answer from toold: {0}")]
    NoAnswer(std::io::Error),
    #[error("toold did not answer within {} s", .0.as_secs())]
    NotInTime(Duration),
    /// The connection ended before the answer.
    #[error("toold ended before it answered")]
    Ended,
    #[error("another user serves {}, with the id {server}", socket.display())]
    OfOtherUser { socket: PathBuf, server: u32 },
    #[error("toold refused the request: {0}")]
    Failed(String),
}

/// A judgement, or why there is none.
pub(crate) struct JudgedAnswer {
    pub(crate) answer: Result<Value, DaemonError>,
    /// Whether a person was asked.
    pub(crate) was_asked: bool,
}

/// Asks for a judgement, again if the daemon is lost meanwhile, as at a restart. It ends before `limit`, the agent's time
/// limit for the hook: an answer comes within 10 seconds, and while a person is asked, until the time that the daemon names.
pub(crate) fn judge(globals: &Globals, params: &Value, limit: Duration) -> JudgedAnswer {
    let began = Instant::now();
    let until = began + limit.saturating_sub(BEFORE_THE_LIMIT);
    let mut was_asked = false;
    let mut tries = 0;
    let answer = loop {
        tries += 1;
        let opened = match tries {
            1 => Exchange::open(globals),
            _ => Exchange::open_again(globals),
        };
        let left = until.saturating_duration_since(Instant::now());
        let answer = opened.and_then(|exchange| {
            let mut params = params.clone();
            params["wait_ms"] = json!(left.as_millis() as u64);
            if was_asked {
                params["was_asked"] = json!(true);
            }
            exchange.judge(&params, until, &mut was_asked)
        });
        match answer {
            Err(DaemonError::Ended) if tries < TRIES && !left.is_zero() => {}
            // It was there before.
            Err(DaemonError::NotRunning) if tries > 1 => break Err(DaemonError::Ended),
            answer => break answer,
        }
    };
    JudgedAnswer { answer, was_asked }
}

/// A connection for one request.
pub(crate) struct Exchange {
    reader: BufReader<std::io::Take<UnixStream>>,
}

impl Exchange {
    /// Never starts a daemon.
    ///
    /// # Errors
    /// No daemon listens, or it accepts no connections.
    pub(crate) fn open(globals: &Globals) -> Result<Self, DaemonError> {
        let socket = connection::socket(globals).map_err(|_| DaemonError::NotRunning)?;
        let stream = connected(&socket)?;
        stream.set_write_timeout(Some(ANSWERS_WITHIN)).map_err(DaemonError::NoAnswer)?;
        Ok(Self { reader: BufReader::new(stream.take(MAX_ANSWER)) })
    }

    /// The same after a daemon was lost, with time for the next one to come.
    fn open_again(globals: &Globals) -> Result<Self, DaemonError> {
        let began = Instant::now();
        loop {
            match Self::open(globals) {
                Err(DaemonError::NotRunning | DaemonError::Unreachable { .. }) if began.elapsed() < BACK_WITHIN => {
                    std::thread::sleep(BETWEEN_TRIES);
                }
                opened => return opened,
            }
        }
    }

    /// Sends the request and returns its result.
    ///
    /// # Errors
    /// The connection failed, there was no answer within 10 seconds, or the daemon answered with an error.
    pub(crate) fn call(mut self, method: &str, params: &Value) -> Result<Value, DaemonError> {
        self.send(method, params)?;
        let until = Instant::now() + ANSWERS_WITHIN;
        loop {
            let mut message = self.next_message(until, ANSWERS_WITHIN)?;
            if is_answer(&message) {
                return result(&mut message);
            }
        }
    }

    fn judge(mut self, params: &Value, latest: Instant, was_asked: &mut bool) -> Result<Value, DaemonError> {
        self.send("permissions.request", params)?;
        let mut patience = ANSWERS_WITHIN;
        let mut until = Instant::now() + patience;
        loop {
            let mut message = self.next_message(until, patience)?;
            if is_answer(&message) {
                return result(&mut message);
            }
            if message["method"] == "permissions.waiting"
                && let Some(left) = time_until(&message["params"]["until"])
            {
                *was_asked = true;
                let now = Instant::now();
                until = now.checked_add(left).map_or(latest, |until| until.min(latest)) + ON_ITS_WAY;
                patience = until.saturating_duration_since(now);
            }
        }
    }

    fn send(&mut self, method: &str, params: &Value) -> Result<(), DaemonError> {
        let mut line = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
        line.push('\n');
        self.reader.get_mut().get_mut().write_all(line.as_bytes()).map_err(lost)
    }

    /// The next line that is JSON. `patience`: the time that ends at `until`, for the error.
    fn next_message(&mut self, until: Instant, patience: Duration) -> Result<Value, DaemonError> {
        let mut line = Vec::new();
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(DaemonError::NotInTime(patience));
            }
            self.reader.get_ref().get_ref().set_read_timeout(Some(left)).map_err(DaemonError::NoAnswer)?;
            match self.reader.read_until(b'\n', &mut line) {
                Ok(0) => return Err(DaemonError::Ended),
                Ok(_) => {}
                // The bytes that were read stay in `line`.
                Err(error) if is_timeout(&error) => continue,
                Err(error) => return Err(lost(error)),
            }
            match serde_json::from_slice(&line) {
                Ok(message) => return Ok(message),
                Err(_) => line.clear(),
            }
        }
    }
}

fn is_timeout(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut)
}

fn lost(error: std::io::Error) -> DaemonError {
    match error.kind() {
        std::io::ErrorKind::ConnectionReset | std::io::ErrorKind::BrokenPipe => DaemonError::Ended,
        _ => DaemonError::NoAnswer(error),
    }
}

/// Notifications may come before the answer.
fn is_answer(message: &Value) -> bool {
    message.get("id").is_some_and(|id| *id == 1)
}

fn result(message: &mut Value) -> Result<Value, DaemonError> {
    let error = &message["error"];
    match error["message"].as_str() {
        // Nothing here cancels a request, so the daemon stops or restarts.
        Some(_) if error["data"]["kind"] == "cancelled" => Err(DaemonError::Ended),
        Some(words) => Err(DaemonError::Failed(words.to_owned())),
        None => Ok(message["result"].take()),
    }
}

/// The time from now to a moment as RFC 3339; zero for one that is over, `None` for another text.
fn time_until(moment: &Value) -> Option<Duration> {
    let moment = humantime::parse_rfc3339(moment.as_str()?).ok()?;
    Some(moment.duration_since(SystemTime::now()).unwrap_or_default())
}

/// A connection that was made without waiting for a daemon that accepts none.
fn connected(path: &Path) -> Result<UnixStream, DaemonError> {
    let address = SocketAddrUnix::new(path).map_err(|_| DaemonError::NotRunning)?;
    let failed = |error: Errno| DaemonError::NoAnswer(error.into());
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None).map_err(failed)?;
    let began = Instant::now();
    loop {
        match connect(&socket, &address) {
            Ok(()) => break,
            Err(Errno::AGAIN) if began.elapsed() < ACCEPTS_WITHIN => std::thread::sleep(BETWEEN_TRIES),
            Err(error @ Errno::AGAIN) => return Err(failed(error)),
            Err(Errno::NOENT | Errno::NOTDIR | Errno::CONNREFUSED | Errno::CONNRESET) => {
                return Err(match running_at(path) {
                    Some(DaemonRecord { pid, .. }) => DaemonError::Unreachable { socket: path.to_owned(), pid },
                    None => DaemonError::NotRunning,
                });
            }
            // One may run there, with rules that deny.
            Err(error) => return Err(DaemonError::NoConnection { socket: path.to_owned(), source: error.into() }),
        }
    }
    ioctl_fionbio(&socket, false).map_err(failed)?;
    let server = socket_peercred(&socket).map_err(failed)?.uid.as_raw();
    if !may_serve(server, rustix::process::geteuid().as_raw()) {
        return Err(DaemonError::OfOtherUser { socket: path.to_owned(), server });
    }
    Ok(UnixStream::from(socket))
}
