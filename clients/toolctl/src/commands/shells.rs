//! `toolctl shells`: commands that run in the background.

use std::io::{IsTerminal, Read, Write};

use anyhow::Context;
use clap::{Args, Subcommand};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use toold_client::{Client, Items};
use toold_proto::method::{ShellsAttach, ShellsKill, ShellsList, ShellsResize, ShellsWrite};
use toold_proto::shell::{
    AttachShell, KillShell, ListShells, ResizeShell, ShellInfo, ShellOutput, TerminalSize, WriteShell,
};
use toold_proto::tool::SessionId;

use crate::commands::call::session_id;
use crate::exit::{OK, TOOL_ERROR, not_found, usage};
use crate::globals::Globals;
use crate::output::{self, DIM, TerminalControl, WARN, one_line, print_json, shorten, tame};
use crate::views::{self, shells};
use crate::{connection, terminal};

/// The key that detaches from a shell: Ctrl-], as in telnet.
const DETACH: u8 = 0x1d;

/// List, attach to, write to or kill background commands
#[derive(Debug, Args)]
pub(crate) struct ShellsArgs {
    #[command(subcommand)]
    action: Option<ShellsAction>,
    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum ShellsAction {
    /// List the shells of all sessions, or of one, the oldest first
    List {
        /// Only shells of this session
        #[arg(long, value_name = "ID", value_parser = session_id)]
        session: Option<SessionId>,
    },
    /// Show a shell's output, and type into it
    ///
    /// A shell with a terminal receives every key; Ctrl-] detaches, and the shell keeps running. A shell without one
    /// receives whole lines; Ctrl-D ends its input, and Ctrl-C detaches. The exit status is 0 if you detach or the
    /// shell ends with exit code 0, and 1 otherwise.
    Attach {
        /// The id of the shell; `toolctl shells` lists them
        #[arg(value_name = "SHELL")]
        shell: String,
        /// Start with this many bytes of earlier output; defaults to all that is kept
        #[arg(long, value_name = "BYTES", value_parser = crate::amount::whole::<usize>)]
        tail: Option<usize>,
        /// Only watch: send no input, and do not resize its terminal
        #[arg(long, short)]
        read_only: bool,
    },
    /// Send a line of input to a shell; without words, send stdin
    Write {
        /// The id of the shell; `toolctl shells` lists them
        #[arg(value_name = "SHELL")]
        shell: String,
        /// The words of the line
        #[arg(value_name = "WORD")]
        words: Vec<String>,
        /// Close its input after the line
        #[arg(long)]
        eof: bool,
    },
    /// Kill shells with all their processes
    Kill {
        /// The ids of the shells; `toolctl shells` lists them
        #[arg(value_name = "SHELL", required = true)]
        shells: Vec<String>,
    },
}

pub(crate) async fn run(args: ShellsArgs, globals: &Globals) -> anyhow::Result<u8> {
    let client = connection::open(globals).await?;
    match args.action.unwrap_or(ShellsAction::List { session: None }) {
        ShellsAction::List { session } => list(&client, session, args.json).await,
        ShellsAction::Attach { shell, tail, read_only } => attach(&client, shell, tail, read_only).await,
        ShellsAction::Write { shell, words, eof } => write(&client, shell, &words, eof).await,
        ShellsAction::Kill { shells } => {
            for shell_id in shells {
                let killed = client.call::<ShellsKill>(KillShell { shell_id: shell_id.clone(), session_id: None });
                let killed = killed.await?;
                match args.json {
                    true => print_json(&killed)?,
                    false => writeln!(output::stdout(), "{}: {}", one_line(&shell_id), one_line(&killed.status))?,
                }
            }
            Ok(OK)
        }
    }
}

async fn list(client: &Client, session: Option<SessionId>, json: bool) -> anyhow::Result<u8> {
    let all = session.is_none();
    let list = client.call::<ShellsList>(ListShells { session_id: session, all }).await?;
    if json {
        print_json(&list)?;
    } else if list.shells.is_empty() {
        writeln!(output::stderr(), "no command runs in the background")?;
    } else {
        let rows = list.shells.iter().map(shells::cells);
        output::print(&views::render(shells::COLUMNS, rows, output::terminal_width()))?;
    }
    Ok(OK)
}

async fn write(client: &Client, shell: String, words: &[String], eof: bool) -> anyhow::Result<u8> {
    let text = match words {
        [] if eof && std::io::stdin().is_terminal() => String::new(),
        [] => {
            let mut text = String::new();
            std::io::stdin().read_to_string(&mut text).context("can't read stdin")?;
            text
        }
        words => words.join(" ") + "\n",
    };
    if text.is_empty() && !eof {
        return Err(usage("there is nothing to write: give words, input on stdin, or --eof"));
    }
    client.call::<ShellsWrite>(WriteShell { shell_id: shell, session_id: None, text, eof, typed: true }).await?;
    Ok(OK)
}

async fn attach(client: &Client, shell: String, tail: Option<usize>, read_only: bool) -> anyhow::Result<u8> {
    let shells = client.call::<ShellsList>(ListShells { session_id: None, all: true }).await?.shells;
    let info = shells.into_iter().find(|info| info.shell_id == shell);
    let params = AttachShell { shell_id: shell.clone(), session_id: None, tail };
    // The error for a shell that does not exist comes from here.
    let output = client.subscribe::<ShellsAttach>(params).await?;
    let Some(info) = info else { return Err(not_found(format!("there is no shell {shell}"))) };
    let types = !read_only && info.running;
    let raw = match types && info.terminal.is_some() && std::io::stdin().is_terminal() {
        true => Some(RawTerminal::begin().context("can't set the terminal to raw mode")?),
        false => None,
    };
    let is_raw = raw.is_some();
    if std::io::stderr().is_terminal() {
        let newline = if is_raw { "\r\n" } else { "\n" };
        let key = if is_raw { "Ctrl-]" } else { "Ctrl-C" };
        let command = shorten(&one_line(&info.command), 60);
        write!(output::stderr(), "{DIM}{shell}: {command} ({key} detaches){DIM:#}{newline}")?;
    }
    let attached =
        AttachedShell { client, info: &info, raw: is_raw, half: Vec::new(), open_line: false, returned: false };
    let end = attached.follow(output, types).await;
    drop(raw);
    match end? {
        AttachEnd::Detached => {
            writeln!(output::stderr(), "{DIM}detached from {shell}; it keeps running{DIM:#}")?;
            Ok(OK)
        }
        AttachEnd::Ended { status, exit_code } => {
            writeln!(output::stderr(), "{DIM}{shell}: {}{DIM:#}", one_line(&status))?;
            Ok(if exit_code == Some(0) { OK } else { TOOL_ERROR })
        }
    }
}

enum AttachEnd {
    Detached,
    Ended { status: String, exit_code: Option<i32> },
}

/// One shell on this terminal.
struct AttachedShell<'a> {
    client: &'a Client,
    info: &'a ShellInfo,
    raw: bool,
    /// The typed bytes of an incomplete character.
    half: Vec<u8>,
    /// The last line has not ended.
    open_line: bool,
    /// The last line ends with a carriage return: new output overwrites it.
    returned: bool,
}

impl AttachedShell<'_> {
    async fn follow(mut self, mut items: Items<ShellOutput>, types: bool) -> anyhow::Result<AttachEnd> {
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut window = signal(SignalKind::window_change())?;
        if self.raw {
            self.resize().await;
        }
        let mut typed = if types { Some(read_stdin()) } else { None };
        loop {
            tokio::select! {
                item = items.next() => match item {
                    Some(Ok(ShellOutput::Text { text, lost })) => self.show(&text, lost)?,
                    Some(Ok(ShellOutput::Ended { status, exit_code })) => {
                        self.end_line()?;
                        return Ok(AttachEnd::Ended { status, exit_code });
                    }
                    Some(Err(error)) => return Err(error.into()),
                    None => return Err(self.client.closed().await.into()),
                },
                bytes = next(&mut typed) => match bytes {
                    Some(bytes) => if self.type_in(&bytes).await? {
                        self.end_line()?;
                        return Ok(AttachEnd::Detached);
                    },
                    None => {
                        typed = None;
                        self.write(String::new(), true).await?;
                    }
                },
                _ = window.recv(), if self.raw => self.resize().await,
                _ = interrupt.recv() => {
                    self.end_line()?;
                    return Ok(AttachEnd::Detached);
                }
            }
        }
    }

    /// True when the user detaches.
    async fn type_in(&mut self, bytes: &[u8]) -> anyhow::Result<bool> {
        let end = if self.raw { bytes.iter().position(|byte| *byte == DETACH) } else { None };
        self.half.extend_from_slice(&bytes[..end.unwrap_or(bytes.len())]);
        // A read may end within a character.
        let whole = match std::str::from_utf8(&self.half) {
            Err(error) if error.error_len().is_none() && end.is_none() => error.valid_up_to(),
            Ok(_) | Err(_) => self.half.len(),
        };
        let rest = self.half.split_off(whole);
        let text = String::from_utf8_lossy(&std::mem::replace(&mut self.half, rest)).into_owned();
        if !text.is_empty() {
            self.write(text, false).await?;
        }
        Ok(end.is_some())
    }

    async fn write(&self, text: String, eof: bool) -> anyhow::Result<()> {
        let shell_id = self.info.shell_id.clone();
        let write = WriteShell { shell_id, session_id: None, text, eof, typed: true };
        match self.client.call::<ShellsWrite>(write).await {
            // The shell may end between two keys; its end is reported next.
            Err(toold_client::ClientError::Rpc(error)) if error.kind() == "input_closed" => Ok(()),
            written => Ok(written.map(drop)?),
        }
    }

    async fn resize(&self) {
        let Ok(window) = tcgetwinsize(std::io::stdin()) else { return };
        let size = TerminalSize { cols: window.ws_col.clamp(1, 1000), rows: window.ws_row.clamp(1, 1000) };
        let shell_id = self.info.shell_id.clone();
        // Fails for a shell that has just ended.
        let _ = self.client.call::<ShellsResize>(ResizeShell { shell_id, session_id: None, size }).await;
    }

    fn show(&mut self, text: &str, lost: Option<u64>) -> anyhow::Result<()> {
        if let Some(lost) = lost {
            let end = if self.raw { "\r\n" } else { "\n" };
            write!(output::stderr(), "{WARN}[{lost} bytes of output were lost]{WARN:#}{end}")?;
        }
        // Only a program that has a terminal may control this one.
        if self.info.terminal.is_some() || !output::stdout_is_terminal() {
            let mut out = std::io::stdout().lock();
            out.write_all(text.as_bytes())?;
            return Ok(out.flush()?);
        }
        let mut out = output::unfolded_stdout();
        for piece in text.split_inclusive('\n') {
            let line = piece.trim_end_matches(['\r', '\n']);
            if self.open_line && (self.returned || line.contains('\r')) {
                out.control(TerminalControl::RestartLine)?;
            }
            write!(out, "{}", tame(line))?;
            self.open_line = !piece.ends_with('\n');
            self.returned = piece.ends_with('\r');
            if !self.open_line {
                writeln!(out)?;
            }
        }
        Ok(out.flush()?)
    }

    fn end_line(&self) -> anyhow::Result<()> {
        if self.raw {
            write!(std::io::stdout().lock(), "\r\n")?;
        } else if self.open_line {
            writeln!(output::stdout())?;
        }
        Ok(())
    }
}

/// Bytes as they are typed; the channel closes at the end of the input.
fn read_stdin() -> mpsc::Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel(16);
    // Ends with the process: nothing wakes a thread that waits for a key.
    std::thread::spawn(move || {
        let mut bytes = [0; 4096];
        loop {
            match std::io::stdin().lock().read(&mut bytes) {
                Ok(read @ 1..) => {
                    if sender.blocking_send(bytes[..read].to_vec()).is_err() {
                        return;
                    }
                }
                Ok(0) | Err(_) => return,
            }
        }
    });
    receiver
}

/// Never ready once the input has ended. Cancel-safe.
async fn next(typed: &mut Option<mpsc::Receiver<Vec<u8>>>) -> Option<Vec<u8>> {
    match typed {
        Some(typed) => typed.recv().await,
        None => std::future::pending().await,
    }
}

/// Raw mode of the terminal, until this is dropped.
struct RawTerminal(Termios);

impl RawTerminal {
    fn begin() -> std::io::Result<Self> {
        terminal::guard()?;
        let before = tcgetattr(std::io::stdin())?;
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(std::io::stdin(), OptionalActions::Now, &raw)?;
        Ok(Self(before))
    }
}

impl Drop for RawTerminal {
    fn drop(&mut self) {
        // Fails only when the terminal is gone.
        let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, &self.0);
    }
}
