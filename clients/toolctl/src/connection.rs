//! From the command line to a connection with the daemon.

use std::hash::{Hash, Hasher};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use anyhow::Context;
use rustix::fs::{major, minor};
use rustix::termios::ttyname;
use toold_client::{Client, ClientError, StartOptions, place};
use toold_proto::daemon::{CLOSING_IDLE, CLOSING_RESTART, CLOSING_STOP, Closing, NoParams};
use toold_proto::error::PERMISSION_DENIED;
use toold_proto::method::{SessionClose, SessionsList, ShellsList};
use toold_proto::session::{ClientInfo, CloseSession, OpenSession, SessionInfo, terminal_session};
use toold_proto::shell::ListShells;
use toold_proto::tool::SessionId;

use crate::globals::Globals;
use crate::keys::has_terminal;
use crate::output::{self, DIM};

/// The path of the daemon's socket, from the flag or the environment.
pub(crate) fn socket(globals: &Globals) -> anyhow::Result<PathBuf> {
    match &globals.socket {
        Some(path) => std::path::absolute(path).with_context(|| format!("can't find {}", path.display())),
        None => Ok(place::find_socket()?),
    }
}

/// A connection; starts the daemon unless that is forbidden.
pub(crate) async fn open(globals: &Globals) -> anyhow::Result<Client> {
    let tried = socket(globals)?;
    if globals.no_start {
        return Ok(Client::connect(&tried).await?);
    }
    let failed = match Client::connect_or_start(&tried, &StartOptions::default()).await {
        Err(failed @ ClientError::StartFailed { .. }) => failed,
        other => return Ok(other?),
    };
    // Another client may have started a daemon at another place meanwhile.
    match socket(globals)? {
        found if found == tried => Err(failed.into()),
        found => Ok(Client::connect(&found).await?),
    }
}

/// Connects to the daemon that took over from that of `client`, and says so on stderr.
///
/// # Errors
/// Why the connection ended, when no daemon took over.
pub(crate) async fn successor(client: &Client) -> anyhow::Result<Client> {
    let successor = client.successor().await?;
    writeln!(output::stderr(), "{DIM}another daemon took over; reconnected{DIM:#}")?;
    Ok(successor)
}

/// Connects to the daemon that serves after that of `client`, however that one ended, and says so on stderr. Waits until
/// there is one, and starts none.
///
/// # Errors
/// The daemon that serves does not answer.
pub(crate) async fn next(client: &Client) -> anyhow::Result<Client> {
    let error = client.closed().await;
    if matches!(error, ClientError::Replaced) {
        return successor(client).await;
    }
    let why = client.closing().map_or_else(|| error.to_string(), |closing| ended_words(&closing).to_owned());
    writeln!(output::stderr(), "{DIM}{why}; waiting for the next daemon{DIM:#}")?;
    let next = client.next().await?;
    writeln!(output::stderr(), "{DIM}another daemon serves; reconnected{DIM:#}")?;
    Ok(next)
}

/// How a daemon ended that has said so.
pub(crate) fn ended_words(closing: &Closing) -> &'static str {
    match closing.reason.as_str() {
        CLOSING_STOP => "toold was stopped by a person",
        CLOSING_IDLE => "the daemon ended because nobody used it",
        CLOSING_RESTART => "another daemon took over",
        _ => "the daemon was stopped by a signal",
    }
}

/// Whether the request was not carried out because another daemon took over before it was read.
pub(crate) fn is_replaced(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| matches!(cause.downcast_ref(), Some(ClientError::Replaced)))
}

/// Whether the daemon ended during a request, or before it.
pub(crate) fn is_lost(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        let cause = cause.downcast_ref();
        matches!(cause, Some(ClientError::Disconnected(_) | ClientError::Replaced | ClientError::NotRunning { .. }))
    })
}

/// A connection to a running daemon; `None` when none is running.
pub(crate) async fn open_running(globals: &Globals) -> anyhow::Result<Option<Client>> {
    match Client::connect(&socket(globals)?).await {
        Ok(client) => Ok(Some(client)),
        Err(ClientError::NotRunning { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// A session that is bound to the connection.
pub(crate) struct CommandSession {
    /// `None` when the daemon refuses one: a process that a tool started works in its connection's own session.
    id: Option<SessionId>,
    /// Opened for this command alone.
    own: bool,
}

/// Binds a session to the connection: the one that is named, else a new one in `cwd`.
pub(crate) async fn open_session(
    client: &Client,
    cwd: Option<PathBuf>,
    session_id: Option<SessionId>,
) -> anyhow::Result<CommandSession> {
    let cwd = match (cwd, &session_id) {
        (Some(cwd), _) => Some(std::path::absolute(&cwd).with_context(|| format!("can't find {}", cwd.display()))?),
        // A session that is joined has a folder already, perhaps another one.
        (None, Some(_)) => None,
        (None, None) => Some(std::env::current_dir().context("can't determine the current folder")?),
    };
    let own = session_id.is_none();
    let params = OpenSession { session_id, ..of_toolctl(cwd) };
    match client.open_session(params).await {
        Ok(opened) => Ok(CommandSession { id: Some(opened.session_id), own }),
        Err(ClientError::Rpc(error)) if own && error.code == PERMISSION_DENIED => Ok(CommandSession { id: None, own }),
        Err(error) => Err(error.into()),
    }
}

/// The session of the shell at this terminal, in its folder: an answer for the session holds for the next command too. A new
/// one where there is no such shell, or while another command uses it, since calls of a session wait for each
/// other.
pub(crate) async fn open_terminal_session(client: &Client, cwd: Option<PathBuf>) -> anyhow::Result<CommandSession> {
    let folder = match &cwd {
        Some(cwd) => std::path::absolute(cwd).ok(),
        None => std::env::current_dir().ok(),
    };
    let Some(id) = folder.and_then(|folder| id_of_terminal(&folder)) else {
        return open_session(client, cwd, None).await;
    };
    if connections_of(client, &id).await > 0 {
        return open_session(client, cwd, None).await;
    }
    let folder = match &cwd {
        Some(cwd) => std::path::absolute(cwd).with_context(|| format!("can't find {}", cwd.display()))?,
        None => std::env::current_dir().context("can't determine the current folder")?,
    };
    let params = OpenSession { session_id: Some(id.clone()), ..of_toolctl(Some(folder)) };
    match client.open_session(params).await {
        // Another command has opened it in the same moment.
        Ok(_) if connections_of(client, &id).await > 1 => open_session(client, cwd, None).await,
        Ok(opened) => Ok(CommandSession { id: Some(opened.session_id), own: false }),
        // The daemon keeps these for people.
        Err(ClientError::Rpc(_)) => open_session(client, cwd, None).await,
        Err(error) => Err(error.into()),
    }
}

/// How many connections use a session; 0 if there is no such session.
async fn connections_of(client: &Client, id: &SessionId) -> u64 {
    let sessions = client.call::<SessionsList>(NoParams {}).await.map(|list| list.sessions).unwrap_or_default();
    sessions.iter().find(|session| session.session_id == *id).map_or(0, |session| session.connections)
}

/// The session of this terminal among these: that of the current folder.
pub(crate) fn of_this_terminal(sessions: &[SessionInfo]) -> Option<&SessionInfo> {
    let own = id_of_terminal(&std::env::current_dir().ok()?)?;
    sessions.iter().find(|session| session.session_id == own)
}

/// The id of the session of this terminal in a folder. A later process with the number of its shell began at another time.
fn id_of_terminal(folder: &Path) -> Option<SessionId> {
    let (shell, terminal) = shell_of_terminal()?;
    let start = start_of(shell)?;
    let mut hash = std::hash::DefaultHasher::new();
    folder.canonicalize().ok()?.hash(&mut hash);
    terminal_session(&terminal, &format!("{shell}-{start}-{:016x}", hash.finish())).ok()
}

/// The process with which this terminal's session ends, and the terminal, such as `pts/5`; `tty` where it has no name. `None`
/// without a terminal, and where the session ends with this command.
///
/// The controlling terminal counts: this command belongs to it also where its input or output go elsewhere, and where a script
/// or another program runs it.
fn shell_of_terminal() -> Option<(u32, String)> {
    let own = StatFields::read("self")?;
    let terminal: u32 = own.field(TERMINAL)?;
    if terminal == 0 {
        return has_terminal().then(|| (std::os::unix::process::parent_id(), terminal_name()));
    }
    let leader: u32 = own.field(SESSION)?;
    let name = match (major(terminal.into()), minor(terminal.into())) {
        (136, number) => format!("pts/{number}"),
        (4, number @ 0..64) => format!("tty{number}"),
        _ => "tty".to_owned(),
    };
    (leader != std::process::id()).then_some((leader, name))
}

/// The fields of `/proc/PID/stat` behind the name, which may have any characters (proc(5)).
struct StatFields(String);

const SESSION: usize = 3;
const TERMINAL: usize = 4;
const START: usize = 19;

impl StatFields {
    /// `None` for a process that has ended.
    fn read(process: &str) -> Option<Self> {
        let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
        Some(Self(stat.rsplit_once(')')?.1.to_owned()))
    }

    fn field<T: FromStr>(&self, number: usize) -> Option<T> {
        self.0.split_ascii_whitespace().nth(number)?.parse().ok()
    }
}

/// When a process started, in ticks; `None` for one that has ended.
fn start_of(pid: u32) -> Option<u64> {
    StatFields::read(&pid.to_string())?.field(START)
}

/// The terminal of stdin or stderr, where it controls no session.
fn terminal_name() -> String {
    let names = [ttyname(std::io::stdin(), Vec::new()), ttyname(std::io::stderr(), Vec::new())];
    let name = names.into_iter().flatten().find_map(|name| name.into_string().ok());
    let name = name.as_deref().and_then(|name| name.strip_prefix("/dev/")).unwrap_or_default();
    let is_plain = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '/');
    if is_plain { name.to_owned() } else { "tty".to_owned() }
}

fn of_toolctl(cwd: Option<PathBuf>) -> OpenSession {
    OpenSession {
        cwd: cwd.map(|cwd| cwd.to_string_lossy().into_owned()),
        client: Some(ClientInfo { name: "toolctl".to_owned(), version: Some(env!("CARGO_PKG_VERSION").to_owned()) }),
        ..OpenSession::default()
    }
}

impl CommandSession {
    pub(crate) fn id(&self) -> Option<&SessionId> {
        self.id.as_ref()
    }

    /// Closes the session if it was opened for this command. Call it when its calls have ended or are no longer
    /// awaited. Background commands that it started keep it open.
    pub(crate) async fn close(self, client: &Client) {
        let Some(id) = self.id else { return };
        let list = ListShells { session_id: Some(id.clone()), all: false };
        let shells = client.call::<ShellsList>(list).await.map(|list| list.shells).unwrap_or_default();
        if self.own && !shells.iter().any(|shell| shell.running) {
            let closed = client.call::<SessionClose>(CloseSession { session_id: id });
            // The command has done its work; the daemon logs a session that it cannot close.
            let _ = tokio::time::timeout(Duration::from_secs(1), closed).await;
        }
    }
}
