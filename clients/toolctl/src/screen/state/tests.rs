//! What keys and events do to the screen.

use serde_json::json;

use super::*;
use crate::screen::action::Request;
use crate::screen::fetch::Fetched;
use crate::screen::fixtures::{ask, drawn, happened, press, press_char, question, state, take, tool};

fn started(state: &mut ScreenState, call_id: &str) {
    happened(state, json!({"kind": "call.started", "call_id": call_id, "session_id": "s", "tool": "bash"}));
}

fn finished(state: &mut ScreenState, call_id: &str) {
    happened(
        state,
        json!({"kind": "call.finished", "call_id": call_id, "session_id": "s", "tool": "bash",
        "outcome": "ok", "duration_ms": 5}),
    );
}

/// As if the prompt had been on the screen for long enough.
fn read_prompt(state: &mut ScreenState) {
    drawn(state, 100, 40);
    let long_ago = Instant::now().checked_sub(prompts::READ_FOR).unwrap();
    state.prompt.shown.as_mut().unwrap().1 = long_ago;
}

#[test]
fn a_call_is_shown_while_it_runs() {
    let mut state = ScreenState::default();
    started(&mut state, "c");
    let progress = json!({"kind": "update", "progress": 1, "total": 4, "message": "step"});
    happened(&mut state, json!({"kind": "call.progress", "call_id": "c", "session_id": "s", "progress": progress}));
    let running = &state.data.running[0];
    assert_eq!((running.ratio, running.message.as_str()), (Some(0.25), "step"));
    finished(&mut state, "c");
    assert!(state.data.running.is_empty());
    assert_eq!(state.data.durations, [5]);
    assert_eq!(state.data.tool_durations["bash"], [5]);
    assert_eq!(state.data.events.len(), 2);
}

#[test]
fn equal_events_are_one_line() {
    let mut state = ScreenState::default();
    for _ in 0..10 {
        happened(&mut state, json!({"kind": "notice", "level": "info", "message": "waiting"}));
    }
    assert_eq!((state.data.events.len(), state.data.events[0].times), (1, 10));
}

#[test]
fn a_change_is_fetched_once_more_when_it_came_too_late() {
    let mut state = ScreenState::default();
    assert_eq!(state.claim_outdated(), ListKind::ALL);
    let changed = json!({"kind": "session.closed", "session_id": "s"});
    happened(&mut state, changed);
    assert_eq!(state.claim_outdated(), []);
    take(&mut state, ListKind::Sessions, Fetched::Sessions(Vec::new()));
    assert_eq!(state.claim_outdated(), [ListKind::Sessions]);
}

#[test]
fn the_audit_log_is_read_again_when_it_is_looked_at() {
    let mut state = ScreenState::default();
    state.claim_outdated();
    take(&mut state, ListKind::Audit, Fetched::Audit(Vec::new()));
    finished(&mut state, "c");
    assert_eq!(state.claim_outdated(), [], "nobody looks");
    state.panel = Panel::Audit;
    assert_eq!(state.claim_outdated(), [ListKind::Audit]);
    take(&mut state, ListKind::Audit, Fetched::Audit(Vec::new()));
    assert_eq!(state.claim_outdated(), [], "nothing has ended since");
}

#[test]
fn keys_answer_the_oldest_ask_and_nothing_else_is_lost() {
    let mut state = state();
    state.permission(ask("1", "ls"));
    state.permission(ask("2", "ls"));
    drawn(&mut state, 100, 40);
    assert_eq!(press_char(&mut state, 'y'), None, "it has only just appeared");
    read_prompt(&mut state);
    let Some(ScreenAction::Request(Request::Reply(reply))) = press_char(&mut state, 'y') else {
        panic!("expected a reply")
    };
    assert_eq!(reply.request_id, "1");
    assert_eq!(press_char(&mut state, 'y'), None, "it is answered once");
    let resolved = json!({"type": "resolved", "request_id": "1", "action": "allow", "by": null});
    state.permission(serde_json::from_value(resolved).unwrap());
    assert_eq!(state.data.prompts[0].id(), "2");
    assert_eq!(press_char(&mut state, 'q'), Some(ScreenAction::Quit));
}

#[test]
fn an_ask_is_denied_with_a_reason() {
    let mut state = state();
    state.permission(ask("1", "ls"));
    read_prompt(&mut state);
    press_char(&mut state, 'd');
    for c in "not yet".chars() {
        assert_eq!(press_char(&mut state, c), None);
    }
    let Some(ScreenAction::Request(Request::Reply(reply))) = press(&mut state, KeyCode::Enter) else {
        panic!("expected a reply")
    };
    assert_eq!(reply.message.as_deref(), Some("not yet"));
}

#[test]
fn several_options_of_a_question_are_chosen_and_sent() {
    let mut state = state();
    state.question(question("q", true));
    read_prompt(&mut state);
    press_char(&mut state, '2');
    assert!(drawn(&mut state, 80, 30).contains("chosen: The second"));
    let Some(ScreenAction::Request(Request::Answer(reply))) = press(&mut state, KeyCode::Enter) else {
        panic!("expected a reply")
    };
    assert_eq!(reply.answer_ids.unwrap(), ["b"]);
}

#[test]
fn a_text_that_is_typed_does_not_answer_a_prompt_that_appears() {
    let mut state = state();
    press_char(&mut state, '/');
    state.permission(ask("1", "ls"));
    drawn(&mut state, 100, 40);
    for c in "yes".chars() {
        assert_eq!(press_char(&mut state, c), None);
    }
    assert_eq!(state.view().filter, "yes");
    press(&mut state, KeyCode::Enter);
    read_prompt(&mut state);
    assert!(press_char(&mut state, 'n').is_some());
}

#[test]
fn the_filter_is_incremental_and_esc_clears_it() {
    let mut state = ScreenState::default();
    let tools = ["bash", "edit", "read"].map(|name| serde_json::from_value(tool(name)).unwrap());
    take(&mut state, ListKind::Tools, Fetched::Tools(tools.into()));
    press_char(&mut state, '/');
    press_char(&mut state, 'E');
    assert_eq!(state.rows().len(), 3, "each has the letter in a cell");
    press_char(&mut state, 'd');
    press_char(&mut state, 'i');
    assert_eq!(state.rows().len(), 1);
    press(&mut state, KeyCode::Enter);
    assert!(drawn(&mut state, 80, 10).contains("Tools: 1 of 3 with /Edi"));
    press(&mut state, KeyCode::Esc);
    assert_eq!(state.rows().len(), 3);
}

#[test]
fn columns_are_sorted_by_numbers_where_they_are_numbers() {
    let mut state = ScreenState { panel: Panel::Shells, ..ScreenState::default() };
    let shell = |id: &str, bytes: u64| {
        serde_json::from_value(json!({"shell_id": id, "session_id": "s", "call_id": "c", "command": "", "cwd": "",
            "started_at": "", "running": true, "status": "running", "output_bytes": bytes}))
        .unwrap()
    };
    take(&mut state, ListKind::Shells, Fetched::Shells(vec![shell("a", 2000), shell("b", 900), shell("c", 3)]));
    let order = |state: &ScreenState| state.rows().iter().map(|row| row.cells[0].text.clone()).collect::<String>();
    assert_eq!(order(&state), "abc");
    for _ in 0..3 {
        press_char(&mut state, 's');
    }
    assert_eq!(order(&state), "cba");
    assert!(drawn(&mut state, 80, 10).contains("OUTPUT▲"));
    press_char(&mut state, 'S');
    assert_eq!(order(&state), "abc");
    assert!(drawn(&mut state, 80, 10).contains("OUTPUT▼"));
}

#[test]
fn a_dialog_closes_when_its_call_has_ended() {
    let mut state = ScreenState { panel: Panel::Calls, ..ScreenState::default() };
    started(&mut state, "c");
    drawn(&mut state, 80, 20);
    press_char(&mut state, 'x');
    assert!(drawn(&mut state, 80, 20).contains("Cancel the call c of bash?"));
    finished(&mut state, "c");
    assert!(state.confirm.is_none());
    assert_eq!(press_char(&mut state, 'y'), None);
}

#[test]
fn a_dialog_that_does_not_fit_is_not_answered_with_yes() {
    let mut state = ScreenState { panel: Panel::Calls, ..ScreenState::default() };
    started(&mut state, &"c".repeat(120));
    drawn(&mut state, 30, 8);
    press_char(&mut state, 'x');
    assert!(drawn(&mut state, 30, 8).contains("too small"));
    assert_eq!(press_char(&mut state, 'y'), None);
    drawn(&mut state, 30, 30);
    assert!(press_char(&mut state, 'y').is_some());
}

#[test]
fn nothing_of_the_old_daemon_can_be_answered_or_ended() {
    let mut state = ScreenState { panel: Panel::Calls, ..ScreenState::default() };
    started(&mut state, "c");
    state.permission(ask("1", "ls"));
    drawn(&mut state, 80, 40);
    state.lost();
    assert!(state.data.prompts.is_empty());
    assert!(drawn(&mut state, 80, 20).contains("bash"), "the last data stays");
    press_char(&mut state, 'x');
    assert!(state.confirm.is_none());
    assert_eq!(press_char(&mut state, 'D'), Some(ScreenAction::StartDaemon));
    state.connected();
    assert!(state.data.running.is_empty());
    assert_eq!(state.claim_outdated(), ListKind::ALL);
}

#[test]
fn esc_does_not_quit() {
    let mut state = state();
    assert_eq!(press(&mut state, KeyCode::Esc), None);
    assert_eq!(press_char(&mut state, 'q'), Some(ScreenAction::Quit));
}
