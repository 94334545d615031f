//! The terminal in full-screen mode, until this is dropped.

use std::io;

use crossterm::clipboard::CopyToClipboard;
use crossterm::event::Event;
use crossterm::execute;
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;

use super::draw;
use super::state::ScreenState;
use crate::keys::KeyReader;
use crate::terminal::{ModeOn, TerminalMode};

/// The fields are dropped in this order: the modes first, raw mode at the end.
pub(super) struct ScreenTerminal {
    mouse: Option<ModeOn>,
    _paste: ModeOn,
    _screen: ModeOn,
    terminal: ratatui::DefaultTerminal,
    keys: KeyReader,
}

impl ScreenTerminal {
    pub(super) fn open(mouse: bool) -> anyhow::Result<Self> {
        let keys = KeyReader::open()?;
        let mut opened = Self {
            _screen: ModeOn::enter(TerminalMode::AlternateScreen)?,
            _paste: ModeOn::enter(TerminalMode::Paste)?,
            mouse: None,
            terminal: Terminal::new(CrosstermBackend::new(io::stdout()))?,
            keys,
        };
        opened.capture_mouse(mouse)?;
        Ok(opened)
    }

    /// The next key, mouse event, paste, or new size; `None` when the terminal is gone. Cancel-safe.
    pub(super) async fn next_event(&mut self) -> Option<Event> {
        self.keys.next_terminal_event().await
    }

    pub(super) fn draw(&mut self, state: &mut ScreenState) -> io::Result<()> {
        self.terminal.draw(|frame| draw::draw(frame, state))?;
        Ok(())
    }

    pub(super) fn capture_mouse(&mut self, on: bool) -> io::Result<()> {
        match on {
            true if self.mouse.is_none() => self.mouse = Some(ModeOn::enter(TerminalMode::Mouse)?),
            true => {}
            false => self.mouse = None,
        }
        Ok(())
    }

    /// By the terminal's own sequence (OSC 52), which also works through ssh and, if it is allowed to, tmux.
    pub(super) fn copy(&mut self, text: &str) -> io::Result<()> {
        execute!(io::stdout(), CopyToClipboard::to_clipboard_from(text))
    }
}
