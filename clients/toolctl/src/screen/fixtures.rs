//! States and events for tests.

use crossterm::event::{KeyCode, KeyEvent};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use serde_json::{Value, json};
use toold_proto::permission::PermissionEvent;
use toold_proto::question::QuestionEvent;

use super::action::ScreenAction;
use super::answer::ScreenAnswer;
use super::draw::draw;
use super::fetch::{Fetched, ListKind};
use super::panel::Panel;
use super::state::ScreenState;

/// A state with one tool, which the panel shows.
pub(super) fn state() -> ScreenState {
    let mut state = ScreenState::default();
    state.panel = Panel::Tools;
    take(&mut state, ListKind::Tools, Fetched::Tools(vec![serde_json::from_value(tool("bash")).unwrap()]));
    state
}

pub(super) fn take(state: &mut ScreenState, kind: ListKind, fetched: Fetched) {
    state.take(ScreenAnswer::List(kind, Ok(fetched)));
}

pub(super) fn tool(name: &str) -> Value {
    json!({
        "name": name, "label": name, "description": "Runs a command. More.",
        "input_schema": {}, "source": {"kind": "builtin", "name": "builtin"},
        "parallelizable": false, "permissions": ["shell"], "cacheable": false, "annotations": {}
    })
}

pub(super) fn happened(state: &mut ScreenState, what: Value) {
    happened_at(state, "2026-01-02T03:04:05Z", what);
}

pub(super) fn happened_at(state: &mut ScreenState, at: &str, mut what: Value) {
    what["seq"] = json!(1);
    what["epoch"] = json!("e");
    what["at"] = json!(at);
    state.event(what);
}

pub(super) fn ask(id: &str, target: &str) -> PermissionEvent {
    let request = json!({"request_id": id, "session_id": "s", "call_id": "c", "call_ids": ["c"],
        "category": "shell", "target": target, "tool": "bash", "source": {"kind": "builtin", "name": "builtin"},
        "cwd": "/x", "suggestions": [{"scope": "project", "pattern": "git *"}], "asked_at": "", "expires_at": ""});
    serde_json::from_value(json!({"type": "asked", "request": request})).unwrap()
}

pub(super) fn question(id: &str, multiple: bool) -> QuestionEvent {
    let request = json!({"request_id": id, "session_id": "s", "call_id": "c", "question": "Which one?",
        "options": [{"id": "a", "label": "The first"}, {"id": "b", "label": "The second"}],
        "multiple": multiple, "allow_other": true, "asked_at": "", "expires_at": ""});
    serde_json::from_value(json!({"type": "asked", "request": request})).unwrap()
}

pub(super) fn press(state: &mut ScreenState, code: KeyCode) -> Option<ScreenAction> {
    state.press(KeyEvent::from(code))
}

pub(super) fn press_char(state: &mut ScreenState, c: char) -> Option<ScreenAction> {
    press(state, KeyCode::Char(c))
}

/// The screen of this size as text.
pub(super) fn drawn(state: &mut ScreenState, width: u16, height: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(frame, state)).unwrap();
    let buffer = terminal.backend().buffer().clone();
    let rows = buffer.content.chunks(usize::from(width));
    let text: Vec<String> =
        rows.map(|row| row.iter().map(|cell| cell.symbol()).collect::<String>().trim_end().to_owned()).collect();
    text.join("\n")
}
