//! Finds and starts the daemon.
//!
//! Any number of clients may do this at once. Each one that finds no listener starts a daemon; a lock decides which
//! daemon serves, and the others exit with status 0.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::net::UnixStream;
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep, timeout_at};
use toold_proto::socket::log_path;

use crate::error::{ClientError, NoAnswerReason};
use crate::holder;
use crate::link::{LinkHandshake, RpcLink};
use crate::place::may_serve;

/// How a daemon is started.
#[derive(Clone, Debug)]
pub struct StartOptions {
    /// The program; `None` for the `toold` beside the running executable, or else in `PATH`.
    pub program: Option<PathBuf>,
    /// How long to wait for its first answer.
    pub wait: Duration,
    pub environment: StartEnvironment,
}

/// The variables that a started daemon gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StartEnvironment {
    /// All variables of this process.
    #[default]
    Inherited,
    /// Only those that describe the user and the folders of the system, such as `HOME`, `LANG` and `XDG_*`.
    UserOnly,
}

impl StartEnvironment {
    fn apply(self, command: &mut Command) {
        if self == Self::UserOnly {
            command.env_clear().envs(std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(describes_user)));
        }
    }
}

fn describes_user(variable: &str) -> bool {
    const NAMES: &[&str] =
        &["HOME", "USER", "LOGNAME", "SHELL", "PATH", "LANG", "TZ", "TMPDIR", "DBUS_SESSION_BUS_ADDRESS"];
    NAMES.contains(&variable) || variable.starts_with("LC_") || variable.starts_with("XDG_")
}

impl Default for StartOptions {
    fn default() -> Self {
        Self { program: None, wait: PATIENCE, environment: StartEnvironment::default() }
    }
}

/// The first pause between two attempts to connect. A daemon starts in some tens of milliseconds.
const FIRST_PAUSE: Duration = Duration::from_millis(10);

/// The longest pause, for a program that closes each connection and is not a daemon that gives way to another.
const LONGEST_PAUSE: Duration = Duration::from_millis(200);

/// A daemon that exited because another one holds the lock may have met one that was stopping: after
/// this time without a listener, the next one is started.
const START_AGAIN_AFTER: Duration = Duration::from_millis(300);

/// How much of the daemon's output an error shows, in bytes.
const MAX_OUTPUT: u64 = 4096;

/// How long connecting and the first answer may take. Enough for a busy computer, and for a daemon that is blocked for
/// some seconds.
pub const PATIENCE: Duration = Duration::from_secs(8);

pub(crate) async fn connect(socket: &Path) -> Result<UnixStream, ClientError> {
    let connected = UnixStream::connect(socket).await.and_then(|stream| {
        let server = stream.peer_cred()?.uid();
        match may_serve(server, rustix::process::geteuid().as_raw()) {
            true => Ok(stream),
            false => Err(io::Error::new(
                io::ErrorKind::PermissionDenied,
                format!("another user serves it, with the id {server}: set TOOLD_SOCKET to a socket of your own"),
            )),
        }
    });
    connected.map_err(|source| match source.kind() {
        io::ErrorKind::ConnectionRefused if is_no_socket(socket) => {
            ClientError::NotASocket { socket: socket.to_owned() }
        }
        // Reset: the daemon stopped before it accepted the connection.
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused | io::ErrorKind::ConnectionReset => {
            ClientError::NotRunning { socket: socket.to_owned() }
        }
        _ => ClientError::Connect { socket: socket.to_owned(), source },
    })
}

fn is_no_socket(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|metadata| !metadata.file_type().is_socket())
}

/// The result of one attempt to reach a daemon.
enum ConnectAttempt {
    Reached(RpcLink),
    /// Nothing listens.
    NoListener,
    /// The connection ended before the first answer, as when the daemon hands its socket over: the next attempt may meet
    /// another one.
    Gone,
    /// Something listens, but its queue of connections is full.
    Full,
    /// Something listens, but sends nothing.
    Silent,
}

/// Connects once and runs the handshake.
async fn attempt(
    socket: &Path,
    deadline: Instant,
    handshake: &LinkHandshake<'_>,
) -> Result<ConnectAttempt, ClientError> {
    let stream = match connect(socket).await {
        Ok(stream) => stream,
        Err(ClientError::NotRunning { .. }) => return Ok(ConnectAttempt::NoListener),
        Err(ClientError::Connect { source, .. }) if source.kind() == io::ErrorKind::WouldBlock => {
            return Ok(ConnectAttempt::Full);
        }
        Err(error) => return Err(error),
    };
    match timeout_at(deadline, handshake.run(stream, socket)).await {
        Ok(Ok(reached)) => Ok(ConnectAttempt::Reached(reached)),
        Ok(Err(ClientError::Disconnected(_) | ClientError::Replaced)) => Ok(ConnectAttempt::Gone),
        Ok(Err(error)) => Err(error),
        Err(_) => Ok(ConnectAttempt::Silent),
    }
}

/// Connects to a daemon that answers, with repeated attempts while one gives way to another. `was_there`: a daemon was
/// listening a moment ago, so a missing listener is a gap between two daemons.
pub(crate) async fn reach(
    socket: &Path,
    was_there: bool,
    handshake: &LinkHandshake<'_>,
) -> Result<RpcLink, ClientError> {
    reach_within(socket, was_there, PATIENCE, handshake).await
}

pub(crate) async fn reach_within(
    socket: &Path,
    mut was_there: bool,
    patience: Duration,
    handshake: &LinkHandshake<'_>,
) -> Result<RpcLink, ClientError> {
    let deadline = Instant::now() + patience;
    let (mut pause, mut before) = (FIRST_PAUSE, NoAnswerReason::Silence);
    loop {
        let reason = match attempt(socket, deadline, handshake).await? {
            ConnectAttempt::Reached(reached) => return Ok(reached),
            ConnectAttempt::NoListener if !was_there || Instant::now() >= deadline => {
                return Err(ClientError::NotRunning { socket: socket.to_owned() });
            }
            ConnectAttempt::NoListener => NoAnswerReason::Silence,
            ConnectAttempt::Gone => {
                was_there = true;
                NoAnswerReason::Hangup
            }
            ConnectAttempt::Full => NoAnswerReason::FullQueue,
            // The time was up during one more attempt.
            ConnectAttempt::Silent => before,
        };
        if Instant::now() >= deadline {
            return Err(no_answer(socket, reason, patience, String::new()));
        }
        before = reason;
        sleep(pause).await;
        pause = LONGEST_PAUSE.min(pause * 2);
    }
}

pub(crate) async fn connect_or_start(
    socket: &Path,
    options: &StartOptions,
    handshake: &LinkHandshake<'_>,
) -> Result<RpcLink, ClientError> {
    let deadline = Instant::now() + options.wait;
    let mut started: Option<SpawnedDaemon> = None;
    let (mut pause, mut before) = (FIRST_PAUSE, NoAnswerReason::Silence);
    loop {
        let (listens, reason) = match attempt(socket, deadline, handshake).await? {
            ConnectAttempt::Reached(reached) => return Ok(reached),
            ConnectAttempt::NoListener => (false, NoAnswerReason::Silence),
            // Something listened, and may continue to: another daemon that took over, or a program that is not a daemon.
            ConnectAttempt::Gone => (true, NoAnswerReason::Hangup),
            ConnectAttempt::Full => (true, NoAnswerReason::FullQueue),
            // The time was up during one more attempt.
            ConnectAttempt::Silent => (true, before),
        };
        if Instant::now() >= deadline {
            let output = started.as_ref().map(SpawnedDaemon::output).unwrap_or_default();
            return Err(no_answer(socket, reason, options.wait, output));
        }
        before = reason;
        match &mut started {
            _ if listens => pause = LONGEST_PAUSE.min(pause * 2),
            None => started = Some(SpawnedDaemon::spawn(socket, options)?),
            Some(running) => {
                if let Some(status) = running.ended()? {
                    if !status.success() {
                        let output = running.output();
                        running.remove_own_log();
                        return Err(ClientError::StartFailed { program: running.program.clone(), status, output });
                    }
                    if running.since.elapsed() >= START_AGAIN_AFTER {
                        started = Some(SpawnedDaemon::spawn(socket, options)?);
                    }
                }
            }
        }
        sleep(pause).await;
    }
}

pub(crate) fn no_answer(socket: &Path, reason: NoAnswerReason, waited: Duration, output: String) -> ClientError {
    ClientError::NoAnswer { socket: socket.to_owned(), reason, waited, holder: holder::of(socket), output }
}

/// A daemon that this process has started.
struct SpawnedDaemon {
    program: PathBuf,
    child: Child,
    since: Instant,
    log: PathBuf,
    /// Where its output begins in the log.
    log_start: u64,
}

impl SpawnedDaemon {
    fn spawn(socket: &Path, options: &StartOptions) -> Result<Self, ClientError> {
        let program = match &options.program {
            Some(program) => program.clone(),
            None => find_program()?,
        };
        let path = log_path(socket);
        let log_error = |source| ClientError::Log { path: path.clone(), source };
        let log = open_log(&path).map_err(log_error)?;
        let log_start = log.metadata().map_err(log_error)?.len();
        let errors = log.try_clone().map_err(log_error)?;
        let mut command = Command::new(&program);
        options.environment.apply(&mut command);
        let child = command
            .args(["serve", "--detached"])
            .env("TOOLD_SOCKET", socket)
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(log)
            .stderr(errors)
            .spawn()
            .map_err(|source| ClientError::Start { program: program.clone(), source })?;
        Ok(Self { program, child, since: Instant::now(), log: path, log_start })
    }

    fn ended(&mut self) -> Result<Option<std::process::ExitStatus>, ClientError> {
        self.child.try_wait().map_err(|source| ClientError::Start { program: self.program.clone(), source })
    }

    /// Removes the log of a daemon that did not serve, unless there was one before.
    fn remove_own_log(&self) {
        if self.log_start == 0 {
            // If that fails, a file with the output stays, which the error shows anyway.
            let _ = std::fs::remove_file(&self.log);
        }
    }

    /// The end of the log since this start, written by this daemon or by one that was
    /// started at the same time.
    fn output(&self) -> String {
        let read = || -> io::Result<String> {
            let mut log = File::open(&self.log)?;
            let end = log.metadata()?.len();
            log.seek(SeekFrom::Start(self.log_start.max(end.saturating_sub(MAX_OUTPUT))))?;
            let mut output = Vec::new();
            log.take(MAX_OUTPUT).read_to_end(&mut output)?;
            Ok(String::from_utf8_lossy(&output).trim().to_owned())
        };
        // Used in an error message, which matters more than this output.
        read().unwrap_or_default()
    }
}

fn open_log(path: &Path) -> io::Result<File> {
    if let Some(folder) = path.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    let no_follow = rustix::fs::OFlags::NOFOLLOW.bits().cast_signed();
    OpenOptions::new().append(true).create(true).mode(0o600).custom_flags(no_follow).open(path)
}

/// The `toold` to start: the one beside the running executable, or else the first in `PATH`.
///
/// # Errors
///
/// [`ClientError::NoProgram`] when there is none.
pub fn find_program() -> Result<PathBuf, ClientError> {
    let current = std::env::current_exe().unwrap_or_default();
    let beside = current.parent().map(|folder| folder.join("toold"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let in_path = std::env::split_paths(&path).filter(|folder| folder.is_absolute()).map(|folder| folder.join("toold"));
    beside
        .into_iter()
        .chain(in_path)
        .find(|program| is_program(program))
        .ok_or(ClientError::NoProgram { beside: current })
}

fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}
