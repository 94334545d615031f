//! One request to the daemon, in as few steps as possible.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::io::{Errno, ioctl_fionbio};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use serde_json::{Value, json};

use crate::connection;
use crate::globals::Globals;

/// For a judgement: longer than the daemon waits for a person, and shorter than agents wait for a hook.
pub(crate) const PATIENCE: Duration = Duration::from_secs(55);

/// How long a daemon may take to accept a connection while it has as many as it can hold.
const ACCEPTS_WITHIN: Duration = Duration::from_secs(1);

/// More than any answer, in bytes.
const MAX_ANSWER: u64 = 1 << 20;

#[derive(Debug, thiserror::Error)]
pub(crate) enum DaemonError {
    #[error("toold is not running")]
    NotRunning,
    #[error("no answer from toold: {0}")]
    NoAnswer(std::io::Error),
    #[error("toold refused the request: {0}")]
    Failed(String),
}

/// A connection for one request.
pub(crate) struct Exchange {
    stream: UnixStream,
}

impl Exchange {
    /// Never starts a daemon. `patience`: how long the answer may take.
    ///
    /// # Errors
    /// No daemon listens, or it accepts no connections.
    pub(crate) fn open(globals: &Globals, patience: Duration) -> Result<Self, DaemonError> {
        let socket = connection::socket(globals).map_err(|_| DaemonError::NotRunning)?;
        let stream = connected(&socket)?;
        stream.set_read_timeout(Some(patience)).map_err(DaemonError::NoAnswer)?;
        stream.set_write_timeout(Some(patience)).map_err(DaemonError::NoAnswer)?;
        Ok(Self { stream })
    }

    /// Asks for a judgement.
    ///
    /// # Errors
    /// As [`Self::call`].
    pub(crate) fn request(self, params: &Value) -> Result<Value, DaemonError> {
        self.call("permissions.request", params)
    }

    /// Sends the request and returns its result.
    ///
    /// # Errors
    /// The connection failed, there was no answer in time, or the daemon answered with an error.
    pub(crate) fn call(mut self, method: &str, params: &Value) -> Result<Value, DaemonError> {
        let mut line = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
        line.push('\n');
        self.stream.write_all(line.as_bytes()).map_err(DaemonError::NoAnswer)?;
        let mut reader = BufReader::new(self.stream.take(MAX_ANSWER));
        loop {
            let mut line = Vec::new();
            if reader.read_until(b'\n', &mut line).map_err(DaemonError::NoAnswer)? == 0 {
                return Err(DaemonError::NoAnswer(std::io::ErrorKind::UnexpectedEof.into()));
            }
            let Ok(mut message) = serde_json::from_slice::<Value>(&line) else { continue };
            // Notifications may come before the answer.
            if message.get("id").is_none_or(|id| *id != 1) {
                continue;
            }
            return match message["error"]["message"].as_str() {
                Some(error) => Err(DaemonError::Failed(error.to_owned())),
                None => Ok(message["result"].take()),
            };
        }
    }
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
            Err(Errno::AGAIN) if began.elapsed() < ACCEPTS_WITHIN => std::thread::sleep(Duration::from_millis(10)),
            Err(error @ Errno::AGAIN) => return Err(failed(error)),
            Err(_) => return Err(DaemonError::NotRunning),
        }
    }
    ioctl_fionbio(&socket, false).map_err(failed)?;
    Ok(UnixStream::from(socket))
}
