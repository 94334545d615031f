//! `toolctl call` without a name: a fuzzy search over the tools, with a preview of the selected one.
//!
//! [`ranking`] decides which tools match and in what order; [`draw`] draws them.

mod draw;
mod ranking;

use std::io;
use std::time::Duration;

use crossterm::event::{Event, KeyCode, KeyEvent, KeyModifiers};
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use toold_proto::tool::Tool;

use crate::keys::{self, KeyPress, KeyReader};
use crate::terminal::{ModeOn, TerminalMode};
use ranking::Ranking;

/// How often the size of the terminal is checked.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// The tool that the user picks; `None` when the user cancels. stdout stays free for the result.
pub(crate) async fn pick(tools: Vec<Tool>) -> anyhow::Result<Option<Tool>> {
    let mut keys = KeyReader::open()?;
    let _screen = ModeOn::enter(TerminalMode::AlternateScreen)?;
    let _paste = ModeOn::enter(TerminalMode::Paste)?;
    let mut terminal = Terminal::new(CrosstermBackend::new(io::stderr()))?;
    let mut picker = Picker::new(tools);
    loop {
        terminal.draw(|frame| draw::draw(frame, &mut picker))?;
        let end = match tokio::time::timeout(LOOK_EVERY, keys.next_terminal_event()).await {
            Ok(Some(Event::Key(key))) => picker.press(key),
            Ok(Some(Event::Paste(text))) => {
                picker.paste(&text);
                None
            }
            Ok(Some(_)) | Err(_) => None,
            Ok(None) => return Ok(None),
        };
        match end {
            None => {}
            Some(PickEnd::Cancelled) => return Ok(None),
            Some(PickEnd::Picked(tool)) => return Ok(Some(*tool)),
        }
    }
}

/// The search and its state.
struct Picker {
    tools: Vec<Tool>,
    ranking: Ranking,
    query: String,
    /// Positions in `tools`, the best match first.
    matching: Vec<usize>,
    /// A position in `matching`.
    selected: usize,
}

#[derive(Debug, PartialEq)]
enum PickEnd {
    Picked(Box<Tool>),
    Cancelled,
}

impl Picker {
    fn new(tools: Vec<Tool>) -> Self {
        let matching = (0..tools.len()).collect();
        Self { tools, ranking: Ranking::default(), query: String::new(), matching, selected: 0 }
    }

    fn selected(&self) -> Option<&Tool> {
        self.matching.get(self.selected).map(|at| &self.tools[*at])
    }

    fn press(&mut self, event: KeyEvent) -> Option<PickEnd> {
        let control = event.modifiers.contains(KeyModifiers::CONTROL);
        match (event.code, keys::key(event)) {
            (_, KeyPress::Exit) => return Some(PickEnd::Cancelled),
            (KeyCode::Enter, _) => {
                return self.selected().map(|tool| PickEnd::Picked(Box::new(tool.clone())));
            }
            (KeyCode::Up, _) => self.step(-1),
            (KeyCode::Down | KeyCode::Tab, _) => self.step(1),
            (KeyCode::PageUp, _) => self.step(-10),
            (KeyCode::PageDown, _) => self.step(10),
            (KeyCode::Char('p' | 'k'), _) if control => self.step(-1),
            (KeyCode::Char('n' | 'j'), _) if control => self.step(1),
            (KeyCode::Char('u'), _) if control => self.search(String::new()),
            (KeyCode::Backspace, _) => {
                let mut query = self.query.clone();
                query.pop();
                self.search(query);
            }
            (KeyCode::Char(c), _) if !control => self.search(format!("{}{c}", self.query)),
            _ => {}
        }
        None
    }

    /// A line break in it picks nothing.
    fn paste(&mut self, text: &str) {
        let words: Vec<&str> = text.split(|c: char| c.is_control()).filter(|word| !word.is_empty()).collect();
        self.search(format!("{}{}", self.query, words.join(" ")));
    }

    fn step(&mut self, by: isize) {
        let last = self.matching.len().saturating_sub(1);
        self.selected = self.selected.saturating_add_signed(by).min(last);
    }

    fn search(&mut self, query: String) {
        self.query = query;
        self.matching = self.ranking.order(&self.query, &self.tools);
        self.selected = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn press(picker: &mut Picker, code: KeyCode) -> Option<PickEnd> {
        picker.press(KeyEvent::new(code, KeyModifiers::NONE))
    }

    #[test]
    fn typing_narrows_and_enter_picks() {
        let mut picker = Picker::new(ranking::tests::tools());
        for c in "red".chars() {
            assert_eq!(press(&mut picker, KeyCode::Char(c)), None);
        }
        assert_eq!(picker.selected().unwrap().name.as_str(), "read");
        press(&mut picker, KeyCode::Down);
        for _ in 0..3 {
            press(&mut picker, KeyCode::Backspace);
        }
        assert_eq!((picker.matching.len(), picker.selected), (picker.tools.len(), 0));
        press(&mut picker, KeyCode::PageDown);
        let last = picker.tools.last().unwrap().clone();
        assert_eq!(press(&mut picker, KeyCode::Enter), Some(PickEnd::Picked(Box::new(last))));
    }

    #[test]
    fn a_pasted_text_is_searched_for_and_picks_nothing() {
        let mut picker = Picker::new(ranking::tests::tools());
        press(&mut picker, KeyCode::Char('r'));
        picker.paste("ed\nit\n");
        assert_eq!(picker.query, "red it");
    }

    #[test]
    fn nothing_can_be_picked_when_nothing_matches() {
        let mut picker = Picker::new(ranking::tests::tools());
        "zzz".chars().for_each(|c| drop(press(&mut picker, KeyCode::Char(c))));
        assert_eq!(press(&mut picker, KeyCode::Enter), None);
        assert_eq!(press(&mut picker, KeyCode::Esc), Some(PickEnd::Cancelled));
    }
}
