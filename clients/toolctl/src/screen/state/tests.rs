//! What keys and events do to the screen.

use crossterm::event::{KeyModifiers, MouseEvent, MouseEventKind};
use serde_json::json;
use toold_proto::permission::{Action, Ask, Scope};

use super::*;
use crate::prompts::ask::choices;
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

/// As if the prompt had been on the screen for long enough, and no key had been pressed in this time.
fn read_prompt(state: &mut ScreenState) {
    drawn(state, 100, 40);
    let long_ago = Instant::now().checked_sub(prompts::READ_FOR).unwrap();
    state.prompt.shown.as_mut().unwrap().1 = long_ago;
    state.prompt.recent.wait(Duration::from_secs(1));
}

fn reply(action: Option<ScreenAction>) -> toold_proto::permission::ReplyPermission {
    let Some(ScreenAction::Request(Request::Reply(reply))) = action else { panic!("expected a reply: {action:?}") };
    reply
}

fn resolved(state: &mut ScreenState, id: &str) {
    let resolved = json!({"type": "resolved", "request_id": id, "action": "allow", "by": null});
    state.permission(serde_json::from_value(resolved).unwrap());
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
    let mut state = ScreenState { panel: Panel::Tools, ..ScreenState::default() };
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
    assert_eq!(reply(press_char(&mut state, 'y')).request_id, "1");
    assert_eq!(press_char(&mut state, 'y'), None, "it is answered once");
    resolved(&mut state, "1");
    assert_eq!(state.data.prompts[0].id(), "2");
    assert_eq!(press_char(&mut state, 'q'), Some(ScreenAction::Quit));
}

#[test]
fn a_prompt_that_ended_elsewhere_says_how() {
    let by = json!({"client": "page", "connection": 3});
    for (end, told) in [
        (json!({"action": "allow", "scope": "once", "by": by, "how": "allowed by page (once)"}), "allowed by page: ls"),
        (json!({"action": "deny", "scope": "once", "by": by, "how": "denied by page (once)"}), "denied by page: ls"),
        (json!({"action": "cancelled", "how": "the call ended"}), "closed: its call has ended: ls"),
        (json!({"action": "expired", "how": "nobody answered in time"}), "expired: nobody answered in time: ls"),
    ] {
        let mut state = state();
        state.permission(ask("1", "ls"));
        let mut resolved = end.clone();
        (resolved["type"], resolved["request_id"]) = (json!("resolved"), json!("1"));
        state.permission(serde_json::from_value(resolved).unwrap());
        let screen = drawn(&mut state, 80, 12);
        assert!(screen.contains(told) && !screen.contains("allow once"), "{end}\n{screen}");
    }
    let mut state = state();
    state.question(question("q", false));
    let answered = json!({"type": "resolved", "request_id": "q", "action": "answered", "by": by});
    state.question(serde_json::from_value(answered).unwrap());
    assert!(drawn(&mut state, 80, 12).contains("answered by page: Which one?"));
    // One that was answered here has ended as the user knows.
    state.permission(ask("2", "ls"));
    read_prompt(&mut state);
    reply(press_char(&mut state, 'y'));
    resolved(&mut state, "2");
    assert_eq!(state.message, None);
}

#[test]
fn a_key_pauses_everything_and_resumes_after_a_question() {
    let mut state = state();
    assert_eq!(press_char(&mut state, 'P'), None, "a question comes first");
    assert!(drawn(&mut state, 80, 12).contains("Pause everything?"));
    assert_eq!(press_char(&mut state, 'n'), None);
    assert!(state.confirm.is_none());
    // A prompt does not keep it.
    state.permission(ask("1", "ls"));
    read_prompt(&mut state);
    press_char(&mut state, 'P');
    drawn(&mut state, 80, 12);
    assert_eq!(press_char(&mut state, 'y'), Some(ScreenAction::Request(Request::Pause)));
    let calls = json!({"started": 0, "finished": 0, "in_flight": 0, "outcomes": {}});
    let status = json!({"pid": 7, "version": "0.1.0", "protocol": 2, "epoch": "e", "uptime_s": 1.0, "plugin_dirs": [],
        "sessions": 1,        "connections": 1, "tools": 1, "revision": 1, "calls": calls, "plugins": {"loaded": 0, "failed": 0, "other": 0},
        "paused": "paused by toolctl at 2026-01-02T03:04:05Z"});
    take(&mut state, ListKind::Status, Fetched::Status(serde_json::from_value(status).unwrap()));
    press_char(&mut state, 'P');
    let screen = drawn(&mut state, 80, 12);
    for text in ["paused: P resumes", "Resume everything?", "paused by toolctl at 2026-01-02"] {
        assert!(screen.contains(text), "{text}\n{screen}");
    }
    assert_eq!(press_char(&mut state, 'y'), Some(ScreenAction::Request(Request::Resume)));
}

#[test]
fn a_path_that_does_not_fit_shows_the_name_of_its_file() {
    let mut state = ScreenState { panel: Panel::Changes, ..ScreenState::default() };
    let path = format!("/home/you/{}name.rs", "a-long-folder/".repeat(9));
    let change = json!({"session_id": "s", "call_id": "c", "tool": "edit", "path": path, "at": "2026-01-02T03:04:05Z",
        "created": true, "removed": false, "undone": false});
    take(&mut state, ListKind::Changes, Fetched::Changes(vec![serde_json::from_value(change).unwrap()]));
    for (width, height) in [(80, 24), (40, 12)] {
        let screen = drawn(&mut state, width, height);
        assert!(screen.contains("name.rs"), "{screen}");
    }
}

#[test]
fn an_open_ask_says_who_waits_now() {
    let mut state = state();
    state.permission(ask("1", "ls"));
    state.permission(ask("2", "pwd"));
    let PermissionEvent::Asked { mut request } = ask("1", "ls") else { panic!("expected an ask") };
    request.agents = vec!["codex".to_owned(), "claude-code".to_owned()];
    state.permission(PermissionEvent::Asked { request });
    let screen = drawn(&mut state, 100, 40);
    assert!(screen.contains("permission 1 of 2") && screen.contains("agent: codex, claude-code"), "{screen}");
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
    assert_eq!(reply(press(&mut state, KeyCode::Enter)).message.as_deref(), Some("not yet"));
}

#[test]
fn one_press_answers_whatever_is_remembered() {
    let mut state = state();
    let PermissionEvent::Asked { request } = ask("1", "make") else { panic!("expected an ask") };
    let parts = serde_json::from_value(json!([{"category": "shell", "target": "make"}])).unwrap();
    let with_parts = Ask { parts, ..*request };
    for (number, choice) in (1..).zip(choices(&with_parts)) {
        let request = Box::new(Ask { request_id: format!("r{number}"), ..with_parts.clone() });
        let expected = choice.reply(&request);
        state.permission(PermissionEvent::Asked { request });
        read_prompt(&mut state);
        assert_eq!(reply(press_char(&mut state, choice.key)), expected);
        resolved(&mut state, &format!("r{number}"));
    }
}

#[test]
fn a_key_in_the_middle_of_typing_or_held_down_answers_nothing() {
    let mut state = state();
    // In the panel, a person sorts again and again, and an ask appears.
    press_char(&mut state, 's');
    state.permission(ask("1", "ls"));
    read_prompt(&mut state);
    press_char(&mut state, 'z');
    assert_eq!(press_char(&mut state, 's'), None, "another key came just before");
    assert!(drawn(&mut state, 100, 40).contains("too soon after the prompt or another key"));
    state.prompt.recent.wait(prompts::READ_FOR);
    assert_eq!(reply(press_char(&mut state, 's')).scope, Some(Scope::Session));
    // The key is still down when the next ask has been read.
    resolved(&mut state, "1");
    state.permission(ask("2", "ls"));
    drawn(&mut state, 100, 40);
    state.prompt.shown.as_mut().unwrap().1 = Instant::now().checked_sub(prompts::READ_FOR).unwrap();
    for repeated in [Duration::from_millis(600), Duration::from_millis(40)] {
        state.prompt.recent.wait(repeated);
        assert_eq!(press_char(&mut state, 's'), None);
    }
    state.prompt.recent.wait(prompts::READ_FOR);
    assert_eq!(reply(press_char(&mut state, 's')).request_id, "2");
}

#[test]
fn a_prompt_takes_the_keys_of_the_panel_until_it_is_put_aside() {
    let mut state = ScreenState { panel: Panel::Calls, ..ScreenState::default() };
    started(&mut state, "c");
    state.permission(ask("1", "ls"));
    read_prompt(&mut state);
    for c in "x39/rt".chars() {
        assert_eq!(press_char(&mut state, c), None);
        assert!(drawn(&mut state, 100, 40).contains("the prompt takes the keys: Esc puts it aside"), "{c}");
    }
    assert!(state.confirm.is_none() && state.panel == Panel::Calls);
    press(&mut state, KeyCode::Esc);
    assert!(!drawn(&mut state, 100, 40).contains("allow once"));
    press_char(&mut state, 'x');
    assert!(drawn(&mut state, 100, 40).contains("Cancel the call c of bash?"));
    press_char(&mut state, 'n');
    // A new one appears, and all come back on demand.
    state.permission(ask("2", "pwd"));
    assert!(drawn(&mut state, 100, 40).contains("permission 2 of 2"));
    press(&mut state, KeyCode::Esc);
    let footer = drawn(&mut state, 100, 40);
    assert!(!footer.contains("allow once") && footer.contains("Ctrl-N next prompt"), "{footer}");
    state.press(KeyEvent::new(KeyCode::Char('n'), KeyModifiers::CONTROL));
    assert!(drawn(&mut state, 100, 40).contains("permission 1 of 2"));
}

#[test]
fn keys_with_ctrl_or_alt_answer_nothing_and_are_no_text() {
    let mut state = state();
    state.permission(ask("1", "ls"));
    read_prompt(&mut state);
    for modifiers in [KeyModifiers::CONTROL, KeyModifiers::ALT] {
        for c in "ynwshpa1".chars() {
            assert_eq!(state.press(KeyEvent::new(KeyCode::Char(c), modifiers)), None, "{c}");
        }
    }
    state.prompt.recent.wait(prompts::READ_FOR);
    press_char(&mut state, 'd');
    state.press(KeyEvent::new(KeyCode::Char('w'), KeyModifiers::CONTROL));
    assert_eq!(state.prompt.entry.as_ref().unwrap().text, "");
}

#[test]
fn a_long_prompt_is_allowed_only_after_its_end_was_on_the_screen() {
    let PermissionEvent::Asked { mut request } = ask("1", "big.txt") else { panic!("expected an ask") };
    request.diff = Some((0..500).map(|n| format!("+line {n}\n")).collect());
    let mut state = state();
    state.permission(PermissionEvent::Asked { request });
    read_prompt(&mut state);
    let screen = drawn(&mut state, 100, 30);
    for text in ["big.txt", "+line 0", "y  allow once", "lines below: PgDn; n can deny now, allow only at the end"] {
        assert!(screen.contains(text), "{text}\n{screen}");
    }
    assert_eq!(press_char(&mut state, 'y'), None);
    assert!(drawn(&mut state, 100, 30).contains("read the prompt to its end first"));
    press(&mut state, KeyCode::PageDown);
    let screen = drawn(&mut state, 100, 30);
    assert!(!screen.contains("+line 0") && screen.contains("+line 12"), "{screen}");
    assert_eq!(press_char(&mut state, 'y'), None);
    press(&mut state, KeyCode::End);
    assert!(drawn(&mut state, 100, 30).contains("+line 499"));
    // A prompt counts as read also after you scroll back.
    press(&mut state, KeyCode::Home);
    let wheel = MouseEventKind::ScrollDown;
    state.click(MouseEvent { kind: wheel, column: 3, row: 3, modifiers: KeyModifiers::NONE });
    let screen = drawn(&mut state, 100, 30);
    assert!(screen.contains("lines 2 to ") && screen.contains("+line 0") && !screen.contains("bash asks"), "{screen}");
    assert_eq!(reply(press_char(&mut state, 'y')).action, Action::Allow);
}

#[test]
fn a_prompt_that_does_not_fit_is_denied_at_once() {
    for deny in ['n', 'd'] {
        let mut state = state();
        state.permission(ask("1", &"x".repeat(5_000)));
        read_prompt(&mut state);
        drawn(&mut state, 30, 8);
        assert_eq!(press_char(&mut state, 'y'), None);
        let pressed = press_char(&mut state, deny);
        let pressed = if deny == 'd' { press(&mut state, KeyCode::Enter) } else { pressed };
        assert_eq!(reply(pressed).action, Action::Deny);
    }
}

#[test]
fn a_prompt_is_read_and_allowed_on_the_smallest_screen() {
    let mut state = state();
    state.permission(ask("1", "touch small"));
    drawn(&mut state, 30, 8);
    state.prompt.shown.as_mut().unwrap().1 = Instant::now().checked_sub(prompts::READ_FOR).unwrap();
    let mut seen = drawn(&mut state, 30, 8);
    while press_char(&mut state, 'y').is_none() {
        press_char(&mut state, 'j');
        let screen = drawn(&mut state, 30, 8);
        assert_ne!(seen, screen);
        seen = screen;
    }
    assert!(seen.contains("d  deny, with a reason"), "{seen}");
}

#[test]
fn one_goes_between_waiting_prompts() {
    let mut state = state();
    let control = |state: &mut ScreenState, c| state.press(KeyEvent::new(KeyCode::Char(c), KeyModifiers::CONTROL));
    for id in ["1", "2", "3"] {
        state.permission(ask(id, &format!("command {id}")));
    }
    assert!(drawn(&mut state, 100, 40).contains("permission 1 of 3"));
    control(&mut state, 'n');
    read_prompt(&mut state);
    let screen = drawn(&mut state, 100, 40);
    assert!(screen.contains("permission 2 of 3") && screen.contains("command 2"), "{screen}");
    control(&mut state, 'p');
    control(&mut state, 'p');
    drawn(&mut state, 100, 40);
    assert_eq!(press_char(&mut state, 'n'), None, "it has only just appeared");
    read_prompt(&mut state);
    assert_eq!(reply(press_char(&mut state, 'n')).request_id, "3");
    resolved(&mut state, "3");
    assert!(drawn(&mut state, 100, 40).contains("command 1"));
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
fn the_only_option_of_a_question_is_chosen_and_sent() {
    let mut state = state();
    state.question(question("q", false));
    read_prompt(&mut state);
    let Some(ScreenAction::Request(Request::Answer(reply))) = press_char(&mut state, '2') else {
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
    let mut state = ScreenState { panel: Panel::Tools, ..ScreenState::default() };
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
    for _ in 0..4 {
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

#[test]
fn a_suggested_rule_is_accepted_after_a_question_that_says_where_it_holds() {
    let mut state = ScreenState { panel: Panel::Rules, cwd: Some("/home/me/x".to_owned()), ..ScreenState::default() };
    let suggested = json!([{"category": "shell", "pattern": "cargo test *", "count": 12, "effects": ["build"]}]);
    let grants = |grants: serde_json::Value| {
        Fetched::Permissions(serde_json::from_value(json!({"mode": "default", "rules": [], "grants": grants})).unwrap())
    };
    take(&mut state, ListKind::Suggestions, Fetched::Suggestions(serde_json::from_value(suggested).unwrap()));
    take(&mut state, ListKind::Permissions, grants(json!([])));
    let screen = drawn(&mut state, 120, 12);
    for text in
        ["allow? shell     cargo test * 12", "suggested: would have given 12 of your answers of the last 7 days"]
    {
        assert!(screen.contains(text), "{text}\n{screen}");
    }
    for (key, place, scope, cwd) in [
        ('a', "in the project of /home/me/x, to every agent", Scope::Project, Some("/home/me/x")),
        ('A', "everywhere, to every agent", Scope::Always, None),
    ] {
        assert_eq!(press_char(&mut state, key), None, "a question comes first");
        let screen = drawn(&mut state, 120, 16);
        assert!(screen.contains("Allow this from now on?") && screen.contains(place), "{screen}");
        let Some(ScreenAction::Request(Request::Grant(grant))) = press_char(&mut state, 'y') else {
            panic!("expected a grant")
        };
        assert_eq!((grant.pattern.as_str(), grant.action), ("cargo test *", Action::Allow));
        assert_eq!((grant.scope, grant.cwd.as_deref()), (scope, cwd));
    }
    // An accepted one is a grant, and no suggestion any more.
    let grant = json!({"id": "g1", "category": "shell", "pattern": "cargo test *", "action": "allow", "scope": "always",
        "granted_at": ""});
    take(&mut state, ListKind::Permissions, grants(json!([grant])));
    let screen = drawn(&mut state, 120, 12);
    assert!(!screen.contains("allow?") && screen.contains("grant: always"), "{screen}");
    press_char(&mut state, 'a');
    assert!(drawn(&mut state, 120, 12).contains("only a suggested rule can be accepted"));
}
