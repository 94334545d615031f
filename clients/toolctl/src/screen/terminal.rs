//! The terminal in full-screen mode, until this is dropped.

use std::io;

use crossterm::clipboard::CopyToClipboard;
use crossterm::event::{DisableMouseCapture, EnableMouseCapture, Event};
use crossterm::execute;

use super::draw;
use super::state::ScreenState;
use crate::keys::KeyReader;

pub(super) struct ScreenTerminal {
    terminal: ratatui::DefaultTerminal,
    keys: KeyReader,
    mouse: bool,
}

impl ScreenTerminal {
    pub(super) fn open(mouse: bool) -> anyhow::Result<Self> {
        let terminal = ratatui::try_init()?;
        let keys = KeyReader::open()?;
        let mut opened = Self { terminal, keys, mouse: false };
        opened.capture_mouse(mouse)?;
        Ok(opened)
    }

    /// The next key, mouse event, or new size; `None` when the terminal is gone. Cancel-safe.
    pub(super) async fn next_event(&mut self) -> Option<Event> {
        self.keys.next_terminal_event().await
    }

    pub(super) fn draw(&mut self, state: &mut ScreenState) -> io::Result<()> {
        self.terminal.draw(|frame| draw::draw(frame, state))?;
        Ok(())
    }

    pub(super) fn capture_mouse(&mut self, on: bool) -> io::Result<()> {
        if on == self.mouse {
            return Ok(());
        }
        self.mouse = on;
        match on {
            true => execute!(io::stdout(), EnableMouseCapture),
            false => execute!(io::stdout(), DisableMouseCapture),
        }
    }

    /// By the terminal's own sequence (OSC 52), which also works through ssh and, if it is allowed to, tmux.
    pub(super) fn copy(&mut self, text: &str) -> io::Result<()> {
        execute!(io::stdout(), CopyToClipboard::to_clipboard_from(text))
    }
}

impl Drop for ScreenTerminal {
    fn drop(&mut self) {
        // A terminal that is gone keeps no mode either.
        let _ = self.capture_mouse(false);
        ratatui::restore();
    }
}
