//! Every panel, dialog and prompt on screens of many sizes, with hostile data.

use std::collections::HashSet;

use clap::ValueEnum;
use proptest::prelude::*;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::layout::Rect;
use ratatui::style::Modifier;
use serde_json::{Value, json};

use super::draw;
use crate::screen::answer::ScreenAnswer;
use crate::screen::fetch::{Fetched, ListKind};
use crate::screen::fixtures::{ask, happened, press, press_char, question, take, tool};
use crate::screen::panel::Panel;
use crate::screen::state::{HitArea, ScreenState};
use crate::screen::theme::{Theme, ThemeName};
use crossterm::event::KeyCode;

/// Texts that others choose: control sequences, wide, combining and reordering characters, long lines.
fn hostile() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(String::new()),
        Just("\u{1b}[2J\u{1b}]52;c;eA==\u{7}".to_owned()),
        Just("日本語のとても長い文章".repeat(9)),
        Just("e\u{301}\u{200b}\u{202e}👩‍👩‍👧".to_owned()),
        Just("a\r\n\tb".to_owned()),
        Just("x".repeat(3_000)),
        "[a-z /.*-]{1,40}",
    ]
}

fn one<T: serde::de::DeserializeOwned>(value: Value) -> Vec<T> {
    vec![serde_json::from_value(value).unwrap()]
}

/// A state in which every panel has rows, made of these texts.
fn full(text: &str, other: &str, rows: usize) -> ScreenState {
    let mut state = ScreenState::default();
    let tools = (0..rows).map(|n| {
        let mut tool = tool(&format!("tool_{n}"));
        (tool["description"], tool["source"]["name"]) = (json!(text), json!(other));
        serde_json::from_value(tool).unwrap()
    });
    take(&mut state, ListKind::Tools, Fetched::Tools(tools.collect()));
    let error = json!({"message": text, "file": other, "line": 3, "source_line": text, "traceback": other});
    take(
        &mut state,
        ListKind::Sources,
        Fetched::Sources {
            plugins: one(json!({"name": other, "path": text, "bundled": false, "status": "failed", "tools": [text],
            "error": error, "warnings": [text]})),
            servers: Vec::new(),
            remotes: Vec::new(),
            fleet: Box::default(),
        },
    );
    take(
        &mut state,
        ListKind::Sessions,
        Fetched::Sessions(one(json!({"session_id": "s", "cwd": text, "roots": [other],
        "project": other, "mode": "default", "client": {"name": text}, "connections": 1, "opened_at": other,
        "calls": 3}))),
    );
    take(
        &mut state,
        ListKind::Changes,
        Fetched::Changes(one(json!({"session_id": "s", "call_id": "c", "tool": text,
        "path": other, "at": "2026-01-02T03:04:05Z", "created": true, "removed": false, "undone": false}))),
    );
    take(
        &mut state,
        ListKind::Shells,
        Fetched::Shells(one(json!({"shell_id": "sh_1", "session_id": "s",
        "call_id": "c", "command": text, "cwd": other, "started_at": text, "running": true, "status": "running",
        "output_bytes": 12}))),
    );
    let grant = json!({"id": other, "category": "shell", "pattern": text, "action": "allow", "scope": "project",
        "project": text, "granted_at": other, "uses": 3});
    let rule = json!({"category": "shell", "pattern": text, "action": "ask", "source": other});
    take(
        &mut state,
        ListKind::Permissions,
        Fetched::Permissions(
            serde_json::from_value(json!({"mode": "default", "rules": [rule], "grants": [grant]})).unwrap(),
        ),
    );
    take(
        &mut state,
        ListKind::Audit,
        Fetched::Audit(one(json!({"id": 1, "at": text, "call_id": "c",
        "session_id": "s", "tool": "bash", "source": text, "client": other, "connection": 3, "outcome": "denied",
        "duration_ms": 3, "input_bytes": 1, "output_bytes": 2, "decisions": [{"category": "shell", "target": text,
        "verdict": "deny", "rule": other}]}))),
    );
    for n in 0..rows {
        happened(
            &mut state,
            json!({"kind": "call.started", "call_id": format!("c{n}"), "session_id": "s",
            "tool": "bash", "agent": other, "client": text, "cwd": other, "arguments": text}),
        );
        let progress = json!({"kind": "update", "progress": n, "total": rows, "message": text});
        happened(
            &mut state,
            json!({"kind": "call.progress", "call_id": format!("c{n}"), "session_id": "s",
            "progress": progress}),
        );
        happened(&mut state, json!({"kind": "something.new", "text": text, "n": n}));
    }
    state
}

/// What lies over the panel.
#[derive(Clone, Copy, Debug)]
enum Over {
    Nothing,
    Help,
    Details,
    Confirm,
    Ask,
    Question,
    Filter,
    Result,
    Gone,
}

fn over() -> impl Strategy<Value = Over> {
    use Over::{Ask, Confirm, Details, Filter, Gone, Help, Nothing, Question, Result};
    prop::sample::select(vec![Nothing, Help, Details, Confirm, Ask, Question, Filter, Result, Gone])
}

fn lay_over(state: &mut ScreenState, over: Over, text: &str) {
    match over {
        Over::Nothing => {}
        Over::Help => drop(press_char(state, '?')),
        Over::Details => drop(press(state, KeyCode::Enter)),
        Over::Confirm => drop(press_char(state, 'x')),
        Over::Ask => state.permission(ask("1", text)),
        Over::Question => state.question(question("q", true)),
        Over::Filter => {
            press_char(state, '/');
            for c in text.chars().take(100) {
                press_char(state, c);
            }
        }
        Over::Result => state.take(ScreenAnswer::Result(text.to_owned(), Vec::new())),
        Over::Gone => state.lost(),
    }
}

/// The row of this key, as it was drawn.
fn row_of(state: &ScreenState, key: &str) -> Option<Rect> {
    state.hits.iter().find_map(|hit| match hit {
        HitArea::Row(area, other) if other == key => Some(*area),
        HitArea::Row(..) | HitArea::Tab(..) => None,
    })
}

#[test]
fn the_selected_row_has_one_colour_that_no_other_row_has_in_all_panels_sizes_and_themes() {
    let mut themes = Vec::new();
    for no_color in [None, Some("1")] {
        let mut theme = Theme::detect(None, None, no_color);
        for _ in ThemeName::value_variants() {
            themes.push(theme);
            theme = theme.next();
        }
    }
    for (width, height) in [(200, 60), (80, 24), (40, 12)] {
        for panel in Panel::ALL {
            let mut state = full("make all", "/home/me/x", 3);
            state.panel = panel;
            let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
            for theme in &themes {
                state.theme = *theme;
                terminal.draw(|frame| draw(frame, &mut state)).unwrap();
                let buffer = terminal.backend().buffer();
                let colours = |area: Rect| -> HashSet<_> {
                    area.positions().map(|at| (buffer[at].fg, buffer[at].bg, buffer[at].modifier)).collect()
                };
                let selected = state.view().seen().unwrap().to_owned();
                let at = row_of(&state, &selected).unwrap();
                let of_selected = colours(at);
                let case = format!("{panel:?} {width}x{height} {theme:?}");
                assert_eq!((at.width, of_selected.len()), (width, 1), "{case}: {of_selected:?}");
                for row in state.rows().iter().filter(|row| row.key != selected) {
                    let Some(other) = row_of(&state, &row.key) else { continue };
                    assert!(colours(other).is_disjoint(&of_selected), "{case}: {}", row.key);
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(150) })]

    #[test]
    fn every_size_is_drawn_with_the_selected_row_and_no_column_of_single_letters(
        width in 30_u16..300, height in 8_u16..60, panel in prop::sample::select(Panel::ALL.to_vec()), over in over(),
        text in hostile(), other in hostile(), rows in 1_usize..40, down in 0_usize..50, sort in 0_usize..8,
    ) {
        let mut state = full(&text, &other, rows);
        state.panel = panel;
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| draw(frame, &mut state)).unwrap();
        for _ in 0..sort {
            press_char(&mut state, 's');
        }
        for _ in 0..down {
            press_char(&mut state, 'j');
        }
        terminal.draw(|frame| draw(frame, &mut state)).unwrap();
        let selected = state.view().seen().map(str::to_owned);
        let area = selected.and_then(|key| row_of(&state, &key)).expect("the selected row is on the screen");
        let cell = &terminal.backend().buffer()[(area.x, area.y)];
        prop_assert!(cell.modifier.contains(Modifier::REVERSED));
        // The titles of the columns stand in full, but for the last one that fits.
        let head: String = (0..width).map(|x| terminal.backend().buffer()[(x, 3)].symbol().to_owned()).collect();
        for title in head.split_whitespace() {
            prop_assert!(title == "/" || title.chars().count() >= 2, "{head}");
        }
        lay_over(&mut state, over, &text);
        terminal.draw(|frame| draw(frame, &mut state)).unwrap();
        // All of it is text: nothing that steers a terminal is in any cell.
        for cell in &terminal.backend().buffer().content {
            prop_assert!(!cell.symbol().contains(|c: char| c.is_control() || c == '\u{202e}'), "{:?}", cell.symbol());
        }
    }
}
