//! Keys from the terminal, one at a time.

use std::io::{self, IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers, MouseEventKind};
use crossterm::terminal::{disable_raw_mode, enable_raw_mode};
use tokio::sync::mpsc;

use crate::output::{self, StderrWriter, TerminalControl};
use crate::terminal;

/// How often the thread that waits for a key checks whether it should stop.
const LOOK_EVERY: Duration = Duration::from_millis(30);

/// The characters of a paste come within this time, and nobody types two in it.
pub(crate) const AT_ONCE: Duration = Duration::from_millis(20);

/// A pressed key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyPress {
    /// Without Ctrl or Alt: Ctrl-A is not the `a` that answers a prompt.
    Char(char),
    /// Escape, Ctrl-C or Ctrl-D.
    Exit,
    /// Any other.
    Other,
}

/// The terminal in raw mode, until this is dropped. The drop waits for the thread that reads, about [`LOOK_EVERY`]:
/// keys that are pressed after it belong to whoever reads the terminal next.
pub(crate) struct KeyReader {
    events: mpsc::Receiver<Event>,
    stop: Arc<AtomicBool>,
    reader: JoinHandle<()>,
}

/// Whether there is a terminal to ask on.
pub(crate) fn has_terminal() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

impl KeyReader {
    /// Keys that were pressed before this are discarded.
    pub(crate) fn open() -> io::Result<Self> {
        terminal::guard()?;
        enable_raw_mode()?;
        // Fails only where there is no terminal, and then there are no keys either.
        let _ = rustix::termios::tcflush(io::stdin(), rustix::termios::QueueSelector::IFlush);
        // Nobody presses more keys between two reads.
        let (sender, events) = mpsc::channel(64);
        let stop = Arc::new(AtomicBool::new(false));
        let reader = std::thread::spawn({
            let stop = Arc::clone(&stop);
            move || read(&sender, &stop)
        });
        Ok(Self { events, stop, reader })
    }

    /// The next key; `None` when the terminal is gone. Cancel-safe.
    pub(crate) async fn next_event(&mut self) -> Option<KeyEvent> {
        loop {
            if let Event::Key(key) = self.next_terminal_event().await? {
                return Some(key);
            }
        }
    }

    /// Whether no character but this one's comes within the time; those that do are dropped. Several characters in one
    /// moment are a pasted text, or typed for something else, and answer nothing.
    pub(crate) async fn is_alone(&mut self, pressed: KeyEvent, within: Duration) -> bool {
        let end = tokio::time::Instant::now() + within;
        let mut is_alone = true;
        while let Ok(Some(next)) = tokio::time::timeout_at(end, self.next_event()).await {
            is_alone &= next.code == pressed.code || !matches!(next.code, KeyCode::Char(_));
        }
        is_alone
    }

    /// Waits for Enter at most so long; other keys are dropped.
    pub(crate) async fn take_enter(&mut self, within: Duration) {
        let end = tokio::time::Instant::now() + within;
        while let Ok(Some(next)) = tokio::time::timeout_at(end, self.next_event()).await {
            if next.code == KeyCode::Enter {
                return;
            }
        }
    }

    /// The next key, mouse event, paste, or new size of the terminal; `None` when the terminal is gone. Cancel-safe.
    pub(crate) async fn next_terminal_event(&mut self) -> Option<Event> {
        self.events.recv().await
    }
}

impl Drop for KeyReader {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // On a terminal that is closed, the thread never stops: the terminal library reads its end again and again.
        let latest = Instant::now() + LOOK_EVERY * 10;
        while !self.reader.is_finished() && Instant::now() < latest {
            std::thread::sleep(Duration::from_millis(1));
        }
        let _ = disable_raw_mode();
    }
}

fn read(sender: &mpsc::Sender<Event>, stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        match event::poll(LOOK_EVERY) {
            Ok(false) => continue,
            Ok(true) => {}
            Err(_) => return,
        }
        match event::read() {
            Ok(Event::Key(key)) if key.kind == KeyEventKind::Release => {}
            // A pointer that only moves says nothing, and could fill the queue.
            Ok(Event::Mouse(mouse)) if matches!(mouse.kind, MouseEventKind::Moved | MouseEventKind::Drag(_)) => {}
            Ok(event) => {
                // Full: keys come faster than they are read; the user will press again.
                let _ = sender.try_send(event);
            }
            Err(_) => return,
        }
    }
}

pub(crate) fn key(event: KeyEvent) -> KeyPress {
    match event.code {
        KeyCode::Esc => KeyPress::Exit,
        KeyCode::Char('c' | 'd') if event.modifiers.contains(KeyModifiers::CONTROL) => KeyPress::Exit,
        KeyCode::Char(c) if !event.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT) => KeyPress::Char(c),
        _ => KeyPress::Other,
    }
}

/// Writes to a terminal in raw mode, where a line feed does not return to the first column.
pub(crate) fn write_raw(write: impl FnOnce(&mut Vec<u8>) -> io::Result<()>) -> io::Result<()> {
    write_raw_on(&mut output::unfolded_stderr(), write)
}

/// [`write_raw`] in place of the line that has not ended.
pub(crate) fn rewrite_line_raw(write: impl FnOnce(&mut Vec<u8>) -> io::Result<()>) -> io::Result<()> {
    let mut err = output::unfolded_stderr();
    err.control(TerminalControl::RestartLine)?;
    write_raw_on(&mut err, write)
}

fn write_raw_on(err: &mut StderrWriter, write: impl FnOnce(&mut Vec<u8>) -> io::Result<()>) -> io::Result<()> {
    let mut text = Vec::new();
    write(&mut text)?;
    let text = output::folded_for_stderr(&String::from_utf8_lossy(&text)).replace('\n', "\r\n");
    err.write_all(text.as_bytes())?;
    err.flush()
}
