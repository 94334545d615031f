//! The changes that toolctl makes to the terminal, and how they are undone however it ends: by itself, by a signal, or by a
//! panic in any thread.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{OnceLock, mpsc};

use anyhow::Context;
use crossterm::cursor::Show;
use crossterm::event::{DisableBracketedPaste, DisableMouseCapture, EnableBracketedPaste, EnableMouseCapture};
use crossterm::terminal::{Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen};
use crossterm::{execute, queue};
use inquire::InquireError;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::exit::BY_SIGNAL;
use crate::output;

/// The status of Rust programs that panic.
const PANICKED: i32 = 101;

/// The modes that are on, a bit each.
static MODES: AtomicU8 = AtomicU8::new(0);

/// Whether the signals are awaited by [`EndSignals`] of a part that ends by itself then.
static ENDS_ITSELF: AtomicBool = AtomicBool::new(false);

/// A mode of the terminal that toolctl switches on.
#[derive(Clone, Copy, Debug)]
pub(crate) enum TerminalMode {
    AlternateScreen = 1,
    Mouse = 2,
    /// A pasted text comes as one event instead of as keys.
    Paste = 4,
}

/// A mode that is on until this is dropped.
pub(crate) struct ModeOn(TerminalMode);

impl ModeOn {
    pub(crate) fn enter(mode: TerminalMode) -> io::Result<Self> {
        guard()?;
        MODES.fetch_or(mode as u8, Ordering::SeqCst);
        let on = Self(mode);
        let mut out = terminal();
        match mode {
            TerminalMode::AlternateScreen => execute!(out, EnterAlternateScreen),
            TerminalMode::Mouse => execute!(out, EnableMouseCapture),
            TerminalMode::Paste => execute!(out, EnableBracketedPaste),
        }?;
        Ok(on)
    }
}

impl Drop for ModeOn {
    fn drop(&mut self) {
        MODES.fetch_and(!(self.0 as u8), Ordering::SeqCst);
        // A terminal that is gone keeps no mode either.
        let _ = leave(&mut terminal(), self.0 as u8);
    }
}

/// The terminal does not show the keys that are pressed, until this is dropped: for the moments in which nothing reads them.
pub(crate) struct EchoOff(Option<Termios>);

impl EchoOff {
    pub(crate) fn begin() -> io::Result<Self> {
        guard()?;
        let before = tcgetattr(io::stdin()).ok();
        if let Some(before) = &before {
            let mut quiet = before.clone();
            quiet.local_modes.remove(LocalModes::ECHO | LocalModes::ICANON);
            tcsetattr(io::stdin(), OptionalActions::Now, &quiet)?;
        }
        Ok(Self(before))
    }
}

impl Drop for EchoOff {
    fn drop(&mut self) {
        if let Some(before) = &self.0 {
            // A terminal that is gone shows nothing.
            let _ = tcsetattr(io::stdin(), OptionalActions::Flush, before);
        }
    }
}

fn leave(out: &mut impl Write, modes: u8) -> io::Result<()> {
    let has = |mode: TerminalMode| modes & mode as u8 != 0;
    if has(TerminalMode::Mouse) {
        queue!(out, DisableMouseCapture)?;
    }
    if has(TerminalMode::Paste) {
        queue!(out, DisableBracketedPaste)?;
    }
    if has(TerminalMode::AlternateScreen) {
        queue!(out, LeaveAlternateScreen)?;
    }
    out.flush()
}

/// stdout may be a file, while stderr is a terminal wherever toolctl asks for keys.
fn terminal() -> Box<dyn Write> {
    if output::stdout_is_terminal() { Box::new(io::stdout()) } else { Box::new(io::stderr()) }
}

/// From here on the terminal is restored when a signal or a panic ends toolctl. Called before anything changes it: raw
/// mode, the modes above, or what a line editor does.
///
/// # Errors
/// When signals cannot be caught.
pub(crate) fn guard() -> io::Result<()> {
    static GUARDED: OnceLock<Result<(), io::ErrorKind>> = OnceLock::new();
    let guarded = GUARDED.get_or_init(|| {
        before();
        let report = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            // Nothing is drawn over the message by another thread.
            let _held = io::stdout().lock();
            restore();
            report(panic);
            // A thread that panics would otherwise leave toolctl waiting, or let it end as if all were well.
            std::process::exit(PANICKED);
        }));
        end_at_signals().map_err(|error| error.kind())
    });
    (*guarded).map_err(io::Error::from)
}

/// The answer to a form's prompt; `None` for a person who cancelled it.
///
/// # Errors
/// When the terminal fails.
pub(crate) fn answered<T>(prompted: Result<T, InquireError>) -> anyhow::Result<Option<T>> {
    match prompted {
        Ok(answer) => Ok(Some(answer)),
        Err(InquireError::OperationCanceled | InquireError::OperationInterrupted) => {
            // Ctrl-C leaves the cursor at the start of the prompt's last line.
            let _ = execute!(io::stderr(), Clear(ClearType::FromCursorDown));
            Ok(None)
        }
        Err(error) => Err(error).context("can't read from the terminal"),
    }
}

/// The terminal's settings when it was guarded; `None` where stdin is no terminal.
fn before() -> Option<&'static Termios> {
    static BEFORE: OnceLock<Option<Termios>> = OnceLock::new();
    BEFORE.get_or_init(|| tcgetattr(io::stdin()).ok()).as_ref()
}

/// Makes the terminal as it was, whichever part of toolctl has changed it.
pub(crate) fn restore() {
    let modes = MODES.swap(0, Ordering::SeqCst);
    let mut out = terminal();
    // Forms and line editors switch on the paste mode and hide the cursor by themselves. A terminal that is gone keeps
    // nothing.
    let _ = leave(&mut out, modes | TerminalMode::Paste as u8);
    let _ = execute!(out, Show);
    if let Some(before) = before() {
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, before);
    }
}

/// In a thread of its own, because forms block the runtime.
fn end_at_signals() -> io::Result<()> {
    let (ready, is_ready) = mpsc::sync_channel(1);
    std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
        let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
            Ok(runtime) => runtime,
            Err(error) => return drop(ready.send(Err(error))),
        };
        runtime.block_on(async {
            let mut signals = match EndSignals::catch() {
                Ok(signals) => signals,
                Err(error) => return drop(ready.send(Err(error))),
            };
            let _ = ready.send(Ok(()));
            loop {
                let number = signals.next().await;
                if !ENDS_ITSELF.load(Ordering::SeqCst) {
                    let _held = io::stdout().lock();
                    restore();
                    std::process::exit(i32::from(BY_SIGNAL) + number);
                }
            }
        });
    })?;
    is_ready.recv().map_err(io::Error::other)?
}

/// The signals that end a program at a terminal, apart from that of Ctrl-C, which cancels calls.
pub(crate) struct EndSignals {
    terminate: Signal,
    hangup: Signal,
    quit: Signal,
}

impl EndSignals {
    fn catch() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
            quit: signal(SignalKind::quit())?,
        })
    }

    /// The number of the next signal. Cancel-safe.
    async fn next(&mut self) -> i32 {
        let kind = tokio::select! {
            _ = self.terminate.recv() => SignalKind::terminate(),
            _ = self.hangup.recv() => SignalKind::hangup(),
            _ = self.quit.recv() => SignalKind::quit(),
        };
        kind.as_raw_value()
    }
}

/// The signals for a part that ends by itself at the first of them. Once it is dropped, the next one ends toolctl at
/// once.
pub(crate) struct OrderlyEnd {
    signals: EndSignals,
    interrupt: Signal,
}

impl OrderlyEnd {
    /// # Errors
    /// When signals cannot be caught.
    pub(crate) fn await_signals() -> io::Result<Self> {
        let caught = Self { signals: EndSignals::catch()?, interrupt: signal(SignalKind::interrupt())? };
        ENDS_ITSELF.store(true, Ordering::SeqCst);
        Ok(caught)
    }

    /// The exit status for the next signal. Cancel-safe.
    pub(crate) async fn next(&mut self) -> u8 {
        let number = tokio::select! {
            number = self.signals.next() => number,
            _ = self.interrupt.recv() => SignalKind::interrupt().as_raw_value(),
        };
        BY_SIGNAL.saturating_add(u8::try_from(number).unwrap_or(u8::MAX))
    }
}

impl Drop for OrderlyEnd {
    fn drop(&mut self) {
        ENDS_ITSELF.store(false, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    /// Set in the process that panics.
    const PANICS: &str = "TOOLCTL_TEST_PANICS";

    #[test]
    fn a_panic_of_any_thread_restores_the_terminal_and_ends_with_its_message() {
        if std::env::var_os(PANICS).is_some() {
            let _modes = [TerminalMode::AlternateScreen, TerminalMode::Mouse, TerminalMode::Paste]
                .map(|mode| ModeOn::enter(mode).unwrap());
            std::thread::spawn(|| panic!("a thread has failed")).join().unwrap_err();
            // As the runtime does that handles the panics of its tasks.
            std::process::exit(0);
        }
        let this = "terminal::tests::a_panic_of_any_thread_restores_the_terminal_and_ends_with_its_message";
        let mut command = Command::new(std::env::current_exe().unwrap());
        let output = command.args(["--exact", this, "--nocapture"]).env(PANICS, "1").output().unwrap();
        let written = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(PANICKED), "{written}");
        let message = written.find("a thread has failed").unwrap();
        for left in ["\x1b[?1000l", "\x1b[?2004l", "\x1b[?1049l", "\x1b[?25h"] {
            assert!(written[..message].contains(left), "{left:?} in {written:?}");
        }
    }
}
