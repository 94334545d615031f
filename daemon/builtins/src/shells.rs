//! The background commands of sessions.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;

use regex::Regex;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;
use toold_engine::cx::Cx;
use toold_host::descendants::{OWNER, owner};
use toold_host::process::{ProcessCommand, ProcessEnding, ProcessOutput, StartError, run_with_input};
use toold_proto::event::EventBody;
use toold_proto::shell::TerminalSize;
use toold_proto::tool::{CallId, SessionId};

use crate::command_changes::CommandWindow;
use crate::made_control::MadeControl;
use crate::plain_output::{plain, whole_sequences};
use crate::ring::{OutputRing, RingRead};

/// Bytes of output that a shell keeps for its readers.
const MAX_OUTPUT: usize = 1024 * 1024;
/// The limit of running shells in a session, and of ended shells that are kept.
const MAX_RUNNING: usize = 32;
const MAX_ENDED: usize = 32;
/// The limit of pending input for a program that does not read: chunks, and bytes per chunk.
const MAX_INPUT: usize = 64;
pub const MAX_INPUT_BYTES: usize = 64 * 1024;

/// The shells of all sessions. They end with their session or with the daemon.
#[derive(Default)]
pub struct BackgroundShells {
    all: Mutex<BTreeMap<u64, Arc<BackgroundShell>>>,
    next: AtomicU64,
}

/// One background command.
pub struct BackgroundShell {
    number: u64,
    session: SessionId,
    call_id: CallId,
    command: String,
    cwd: PathBuf,
    started_at: SystemTime,
    state: Mutex<BackgroundState>,
    /// Increases with each output and at the end.
    changed: watch::Sender<u64>,
    input: Mutex<Option<mpsc::Sender<Vec<u8>>>>,
    terminal: Option<watch::Sender<TerminalSize>>,
    cancel: CancellationToken,
    /// The number within its session.
    closed: CancellationToken,
}

struct BackgroundState {
    ring: OutputRing,
    ended: Option<ShellEnding>,
    /// The position up to which its session has read it, for each filter.
    cursors: HashMap<Option<String>, u64>,
}

/// How a shell ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ShellEnding {
    Exited(i32),
    Signalled(i32),
    /// Its own time limit expired.
    TimedOut,
    /// By `kill_shell`, or by the end of the session or the daemon.
    Killed,
    /// It never started.
    Failed(String),
}

/// A shell in a list.
#[derive(Clone, Debug)]
pub struct BackgroundShellInfo {
    pub shell_id: String,
    pub session: SessionId,
    /// The call that started it.
    pub call_id: CallId,
    pub command: String,
    pub cwd: PathBuf,
    pub started_at: SystemTime,
    /// `None` while it runs.
    pub ended: Option<ShellEnding>,
    /// Bytes of output so far.
    pub output_bytes: u64,
    /// The size of its terminal, if it has one.
    pub terminal: Option<TerminalSize>,
}

/// The next output for one reader of a shell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShellChunk {
    pub text: String,
    /// Bytes before it that were overwritten before this reader read them.
    pub lost: u64,
    /// The position to continue from.
    pub next: u64,
}

/// Why a shell operation failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ShellError {
    #[error("this session has no shell {0}")]
    Unknown(String),
    #[error("{MAX_RUNNING} commands run in the background of this session already: end some with kill_shell")]
    TooMany,
    #[error("{0} has ended or closed its input")]
    InputClosed(String),
    #[error("{0} does not read its input: nothing more is taken until it does")]
    InputFull(String),
    #[error("at most {MAX_INPUT_BYTES} bytes of input are taken at once")]
    InputTooLong,
    #[error("{0} has no terminal")]
    NoTerminal(String),
    #[error("a terminal has 1 to 1000 columns and rows")]
    BadSize,
}

impl BackgroundShells {
    /// Starts a command, in a terminal if a size is given. Until it ends, what changes in `window` is its work. The engine's task set owns it. It ends when the session is
    /// closed or the engine stops.
    pub(crate) fn start(
        &self,
        cx: &Cx,
        mut command: ProcessCommand,
        line: &str,
        terminal: Option<TerminalSize>,
        mut window: CommandWindow,
    ) -> Result<Arc<BackgroundShell>, ShellError> {
        let (sender, receiver) = mpsc::channel(MAX_INPUT);
        let terminal = terminal.map(watch::Sender::new);
        command.terminal = terminal.as_ref().map(watch::Sender::subscribe);
        let shell = Arc::new(BackgroundShell {
            number: self.next.fetch_add(1, Ordering::Relaxed) + 1,
            session: cx.session.id.clone(),
            call_id: cx.call_id.clone(),
            command: line.to_owned(),
            cwd: command.cwd.clone(),
            started_at: SystemTime::now(),
            state: Mutex::new(BackgroundState {
                ring: OutputRing::new(MAX_OUTPUT),
                ended: None,
                cursors: HashMap::new(),
            }),
            changed: watch::Sender::new(0),
            input: Mutex::new(Some(sender)),
            terminal,
            cancel: CancellationToken::new(),
            closed: cx.session.closed.clone(),
        });
        self.enter(&shell)?;
        command.keep = 0;
        command.environment = command.environment.with([(OWNER, owner())]);
        let (closed, stop) = (cx.session.closed.clone(), cx.engine.stop.clone());
        let own = shell.clone();
        let events = cx.engine.events.clone();
        let (session_id, shell_id) = (shell.session.clone(), shell.id());
        events.emit(EventBody::ShellStarted { session_id, shell_id, command: shell.command.clone() });
        cx.engine.tasks.spawn(async move {
            let work = run_with_input(command, Some(receiver), &own.cancel, |_, text| own.heard(text));
            tokio::pin!(work);
            let finished = tokio::select! {
                finished = &mut work => finished,
                () = closed.cancelled() => { own.cancel.cancel(); work.await }
                () = stop.cancelled() => { own.cancel.cancel(); work.await }
            };
            if let Some(watch) = window.take_control() {
                let made = MadeControl::of(watch).await;
                made.words().for_each(|words| own.heard(&format!("[{words}]\n")));
            }
            window.end().await;
            let ended = own.end(finished);
            let exit_code = if let ShellEnding::Exited(code) = ended { Some(code) } else { None };
            let (session_id, shell_id) = (own.session.clone(), own.id());
            events.emit(EventBody::ShellExited { session_id, shell_id, status: ended.to_string(), exit_code });
        });
        Ok(shell)
    }

    /// Finds a shell of this session.
    ///
    /// # Errors
    /// `Unknown`, also for shells of other sessions.
    pub fn find(&self, session: &SessionId, shell_id: &str) -> Result<Arc<BackgroundShell>, ShellError> {
        let shell = self.find_any(shell_id)?;
        if shell.session == *session { Ok(shell) } else { Err(ShellError::Unknown(shell_id.to_owned())) }
    }

    /// As [`BackgroundShells::find`], with the session's shells in the error.
    ///
    /// # Errors
    /// For a model: which shells there are.
    pub(crate) fn find_own(&self, session: &SessionId, shell_id: &str) -> anyhow::Result<Arc<BackgroundShell>> {
        self.find(session, shell_id).map_err(|error| {
            let own: Vec<String> = self.list(Some(session)).into_iter().map(|shell| shell.shell_id).collect();
            let own =
                if own.is_empty() { "none; start one by bash with background".to_owned() } else { own.join(", ") };
            anyhow::anyhow!("{error}: it has {own}")
        })
    }

    /// Finds a shell of any session, for callers that may see all.
    ///
    /// # Errors
    /// `Unknown`.
    pub fn find_any(&self, shell_id: &str) -> Result<Arc<BackgroundShell>, ShellError> {
        let unknown = || ShellError::Unknown(shell_id.to_owned());
        let number: u64 = shell_id.strip_prefix("sh_").and_then(|number| number.parse().ok()).ok_or_else(unknown)?;
        self.all.lock().get(&number).cloned().ok_or_else(unknown)
    }

    /// The shells of a session, or of all sessions, oldest first.
    pub fn list(&self, session: Option<&SessionId>) -> Vec<BackgroundShellInfo> {
        let all = self.all.lock();
        all.values()
            .filter(|shell| session.is_none_or(|session| shell.session == *session))
            .map(|shell| shell.info())
            .collect()
    }

    /// Forgets the shells of a closed session. Running ones end by themselves.
    pub fn forget(&self, session: &SessionId) {
        self.all.lock().retain(|_, shell| shell.session != *session);
    }

    fn enter(&self, shell: &Arc<BackgroundShell>) -> Result<(), ShellError> {
        let mut all = self.all.lock();
        // No one can look at them any more.
        all.retain(|_, other| other.is_running() || !other.closed.is_cancelled());
        let own: Vec<(u64, bool)> = all
            .values()
            .filter(|other| other.session == shell.session)
            .map(|other| (other.number, other.is_running()))
            .collect();
        if own.iter().filter(|(_, running)| *running).count() >= MAX_RUNNING {
            return Err(ShellError::TooMany);
        }
        let ended: Vec<u64> = own.iter().filter(|(_, running)| !running).map(|(number, _)| *number).collect();
        for number in ended.iter().take(ended.len().saturating_sub(MAX_ENDED - 1)) {
            all.remove(number);
        }
        all.insert(shell.number, shell.clone());
        Ok(())
    }
}

/// The new output for a reader of a shell.
#[derive(Debug)]
pub(crate) struct ShellUpdate {
    pub(crate) text: String,
    /// Bytes that were overwritten before this reader read them.
    pub(crate) lost: u64,
    /// There is more output than fits.
    pub(crate) more: bool,
    pub(crate) ended: Option<ShellEnding>,
}

impl BackgroundShell {
    pub fn id(&self) -> String {
        format!("sh_{}", self.number)
    }

    pub fn command(&self) -> &str {
        &self.command
    }

    pub fn is_running(&self) -> bool {
        self.state.lock().ended.is_none()
    }

    pub fn info(&self) -> BackgroundShellInfo {
        let state = self.state.lock();
        BackgroundShellInfo {
            shell_id: self.id(),
            session: self.session.clone(),
            call_id: self.call_id.clone(),
            command: self.command.clone(),
            cwd: self.cwd.clone(),
            started_at: self.started_at,
            ended: state.ended.clone(),
            output_bytes: state.ring.end(),
            terminal: self.terminal.as_ref().map(|size| *size.borrow()),
        }
    }

    /// Sends input to it. Never waits.
    ///
    /// # Errors
    /// When it has ended, or has not read its earlier input.
    pub fn write(&self, text: &str) -> Result<(), ShellError> {
        if text.len() > MAX_INPUT_BYTES {
            return Err(ShellError::InputTooLong);
        }
        let input = self.input.lock();
        let Some(sender) = &*input else { return Err(ShellError::InputClosed(self.id())) };
        sender.try_send(text.as_bytes().to_vec()).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => ShellError::InputFull(self.id()),
            mpsc::error::TrySendError::Closed(_) => ShellError::InputClosed(self.id()),
        })
    }

    /// Closes its input after the pending input is read. A terminal instead gets the end-of-input key, and still
    /// accepts input afterwards.
    ///
    /// # Errors
    /// For a terminal, as [`BackgroundShell::write`].
    pub fn close_input(&self) -> Result<(), ShellError> {
        if self.terminal.is_some() {
            return self.write("\u{4}");
        }
        self.input.lock().take();
        Ok(())
    }

    /// Changes the size of its terminal. The program gets SIGWINCH.
    ///
    /// # Errors
    /// When it has no terminal, or the size is invalid.
    pub fn resize(&self, size: TerminalSize) -> Result<(), ShellError> {
        let Some(terminal) = &self.terminal else { return Err(ShellError::NoTerminal(self.id())) };
        if !(1..=1000).contains(&size.cols) || !(1..=1000).contains(&size.rows) {
            return Err(ShellError::BadSize);
        }
        terminal.send_replace(size);
        Ok(())
    }

    /// The session that owns it.
    pub fn session(&self) -> &SessionId {
        &self.session
    }

    /// Sends TERM to its processes, then KILL; does not wait.
    pub fn kill(&self) {
        self.cancel.cancel();
    }

    /// Waits until it has ended. Cancel-safe.
    pub async fn ended(&self) -> ShellEnding {
        let mut changes = self.changed.subscribe();
        loop {
            if let Some(ended) = self.state.lock().ended.clone() {
                return ended;
            }
            if changes.changed().await.is_err() {
                return ShellEnding::Killed;
            }
        }
    }

    /// The start position for a client that attaches and wants the last `max` bytes.
    pub fn tail(&self, max: usize) -> u64 {
        let state = self.state.lock();
        let all = state.ring.read(0, usize::MAX);
        all.next - (all.text.len() - all.text.ceil_char_boundary(all.text.len().saturating_sub(max))) as u64
    }

    /// The output after `position`, at most `max` bytes. Waits for it; `None` once the shell has ended and everything
    /// is read. Cancel-safe.
    pub async fn next_output(&self, position: u64, max: usize) -> Option<ShellChunk> {
        let mut changes = self.changed.subscribe();
        loop {
            {
                let state = self.state.lock();
                let RingRead { text, next, lost } = state.ring.read(position, max);
                if !text.is_empty() {
                    return Some(ShellChunk { text, lost, next });
                }
                if state.ended.is_some() {
                    return None;
                }
            }
            changes.changed().await.ok()?;
        }
    }

    /// The new output for its session, at most `max` bytes, whichever connection asks. With a filter, only matching lines. Each
    /// filter has its own position, so that none takes lines from another.
    pub(crate) fn update(&self, filter: Option<&Regex>, max: usize) -> ShellUpdate {
        let mut state = self.state.lock();
        let key = filter.map(|filter| filter.as_str().to_owned());
        let mut position = state.cursors.get(&key).copied().unwrap_or(0);
        let ended = state.ended.clone();
        let mut update = ShellUpdate { text: String::new(), lost: 0, more: false, ended };
        match filter {
            None => {
                let mut part = state.ring.read(position, max);
                if update.ended.is_none() {
                    part.text.truncate(whole_sequences(&part.text));
                }
                position += part.lost + part.text.len() as u64;
                (update.text, update.lost) = (part.text, part.lost);
                update.more = position < state.ring.end();
            }
            Some(filter) => {
                let part = state.ring.read(position, usize::MAX);
                update.lost = part.lost;
                position += part.lost;
                for line in part.text.split_inclusive('\n') {
                    // An unfinished line may still match later.
                    if !line.ends_with('\n') && update.ended.is_none() {
                        break;
                    }
                    if filter.is_match(plain(line).trim_end_matches('\n')) {
                        if update.text.len() + line.len() > max && !update.text.is_empty() {
                            update.more = true;
                            break;
                        }
                        update.text.push_str(line);
                    }
                    position += line.len() as u64;
                }
            }
        }
        state.cursors.insert(key, position);
        update
    }

    /// Waits for new output, `time` at most. Cancel-safe.
    pub(crate) async fn wait_for_update(&self, filter: Option<&Regex>, time: Duration) {
        let mut changes = self.changed.subscribe();
        let wait = async {
            while !self.has_update(filter) {
                if changes.changed().await.is_err() {
                    return;
                }
            }
        };
        // A timeout is no error: there is nothing new then.
        let _ = tokio::time::timeout(time, wait).await;
    }

    fn has_update(&self, filter: Option<&Regex>) -> bool {
        let state = self.state.lock();
        if state.ended.is_some() {
            return true;
        }
        let key = filter.map(|filter| filter.as_str().to_owned());
        let position = state.cursors.get(&key).copied().unwrap_or(0);
        let Some(filter) = filter else { return position < state.ring.end() };
        let part = state.ring.read(position, usize::MAX);
        let whole = part.text.rfind('\n').map_or("", |end| &part.text[..end]);
        plain(whole).lines().any(|line| filter.is_match(line))
    }

    fn heard(&self, text: &str) {
        self.state.lock().ring.push(text);
        self.changed.send_modify(|version| *version += 1);
    }

    fn end(&self, finished: Result<ProcessOutput, StartError>) -> ShellEnding {
        let ended = match finished {
            Err(error) => ShellEnding::Failed(error.to_string()),
            Ok(finished) => match (finished.ending, finished.code, finished.signal) {
                (ProcessEnding::Cancelled, _, _) => ShellEnding::Killed,
                (ProcessEnding::TimedOut, _, _) => ShellEnding::TimedOut,
                (ProcessEnding::Exited, Some(code), _) => ShellEnding::Exited(code),
                (ProcessEnding::Exited, None, Some(signal)) => ShellEnding::Signalled(signal),
                (ProcessEnding::Exited, None, None) => ShellEnding::Killed,
            },
        };
        self.input.lock().take();
        self.state.lock().ended = Some(ended.clone());
        self.changed.send_modify(|version| *version += 1);
        ended
    }
}

impl std::fmt::Display for ShellEnding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Exited(code) => write!(f, "exit code {code}"),
            Self::Signalled(signal) => write!(f, "killed by signal {signal}"),
            Self::TimedOut => f.write_str("timed out"),
            Self::Killed => f.write_str("killed"),
            Self::Failed(why) => write!(f, "could not run: {why}"),
        }
    }
}
