//! Whatever happens to the rows between two keys, a key acts on the item that the user saw as selected.

use proptest::prelude::*;
use serde_json::json;
use toold_proto::tool::{CallId, SessionId};

use super::ScreenState;
use crate::screen::action::{Request, ScreenAction};
use crate::screen::fetch::{Fetched, ListKind};
use crate::screen::fixtures::{drawn, happened, press_char, take, tool};
use crate::screen::panel::Panel;

/// Something that happens between two keys.
#[derive(Clone, Debug)]
enum Between {
    Add(u8),
    Remove(u8),
    /// The daemon lists the items in another order.
    Rotate(u8),
    Down,
    Up,
    Sort,
    Draw,
    /// The key that ends the selected item, and then `y`.
    End,
}

fn between() -> impl Strategy<Value = Between> {
    prop_oneof![
        3 => (0_u8..12).prop_map(Between::Add),
        3 => (0_u8..12).prop_map(Between::Remove),
        2 => any::<u8>().prop_map(Between::Rotate),
        2 => Just(Between::Down),
        1 => Just(Between::Up),
        1 => Just(Between::Sort),
        3 => Just(Between::Draw),
        2 => Just(Between::End),
    ]
}

fn show_items(state: &mut ScreenState, items: &[u8]) {
    let shells = items.iter().map(|n| {
        serde_json::from_value(json!({"shell_id": format!("sh_{n}"), "session_id": "s", "call_id": "c",
            "command": format!("sleep {n}"), "cwd": "/", "started_at": "", "running": true, "status": "running",
            "output_bytes": u64::from(*n) * 37 % 11}))
        .unwrap()
    });
    take(state, ListKind::Shells, Fetched::Shells(shells.collect()));
    let grants: Vec<_> = items
        .iter()
        .map(|n| {
            json!({"id": format!("g{n}"), "category": "shell", "pattern": format!("x {n}"), "action": "allow",
            "scope": "always", "granted_at": ""})
        })
        .collect();
    let list = json!({"mode": "default", "rules": [], "grants": grants});
    take(state, ListKind::Permissions, Fetched::Permissions(serde_json::from_value(list).unwrap()));
    let plugins = items.iter().map(|n| {
        serde_json::from_value(json!({"name": format!("p{n}"), "path": format!("/p{n}.lua"), "bundled": false,
            "status": "loaded", "tools": []}))
        .unwrap()
    });
    let (servers, remotes, fleet) = (Vec::new(), Vec::new(), Box::default());
    take(state, ListKind::Sources, Fetched::Sources { plugins: plugins.collect(), servers, remotes, fleet });
    let tools = items.iter().map(|n| serde_json::from_value(tool(&format!("t{n}"))).unwrap());
    take(state, ListKind::Tools, Fetched::Tools(tools.collect()));
    for n in 0..12 {
        let call_id = format!("c{n}");
        let runs = state.data.running.iter().any(|call| call.call_id.as_str() == call_id);
        let call = json!({"call_id": call_id, "session_id": "s", "tool": "bash", "outcome": "ok", "duration_ms": 1});
        let mut event = call.clone();
        match (items.contains(&n), runs) {
            (true, false) => event["kind"] = json!("call.started"),
            (false, true) => event["kind"] = json!("call.finished"),
            _ => continue,
        }
        happened(state, event);
    }
    let position = |call: &CallId| items.iter().position(|n| format!("c{n}") == call.as_str());
    state.data.running.sort_by_key(|call| position(&call.call_id));
}

/// The request that the item which is drawn as selected would get.
fn expected(panel: Panel, n: &str) -> Request {
    let session = SessionId::parse("s").unwrap();
    match panel {
        Panel::Calls => Request::Cancel(CallId::parse(&format!("c{n}")).unwrap(), session),
        Panel::Shells => Request::KillShell(format!("sh_{n}"), session),
        Panel::Rules => Request::Revoke(format!("g{n}")),
        _ => Request::DisablePlugin(format!("p{n}")),
    }
}

fn number(key: &str) -> String {
    key.chars().filter(char::is_ascii_digit).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(100) })]

    #[test]
    fn a_key_ends_the_item_that_was_drawn_as_selected_or_nothing(
        panel in prop::sample::select(vec![Panel::Calls, Panel::Shells, Panel::Rules, Panel::Sources]),
        happenings in prop::collection::vec(between(), 1..60),
    ) {
        let mut state = ScreenState { panel, ..ScreenState::default() };
        let mut items: Vec<u8> = vec![0, 1, 2, 3];
        show_items(&mut state, &items);
        // As they were drawn.
        let mut rows: Vec<String> = Vec::new();
        let mut seen: Option<String> = None;
        for happening in happenings {
            match happening {
                Between::Add(n) if !items.contains(&n) => items.insert(usize::from(n) % (items.len() + 1), n),
                Between::Remove(n) => items.retain(|item| *item != n),
                Between::Rotate(by) if !items.is_empty() => {
                    let by = usize::from(by) % items.len();
                    items.rotate_left(by);
                }
                Between::Add(_) | Between::Rotate(_) => {}
                Between::Down | Between::Up => {
                    let down = matches!(happening, Between::Down);
                    press_char(&mut state, if down { 'j' } else { 'k' });
                    // Among the rows that are on the screen.
                    let at = rows.iter().position(|row| Some(row) == seen.as_ref());
                    let next = at.map(|at| if down { at + 1 } else { at.saturating_sub(1) });
                    seen = next.map(|next| rows[next.min(rows.len() - 1)].clone());
                }
                Between::Sort => drop(press_char(&mut state, 's')),
                Between::Draw => {
                    drawn(&mut state, 90, 12);
                    rows = state.rows().iter().map(|row| number(&row.key)).collect();
                    seen = state.view().seen().map(number);
                }
                Between::End => {
                    let key = if panel == Panel::Sources { 'd' } else { 'x' };
                    prop_assert_eq!(press_char(&mut state, key), None, "nothing ends without a question");
                    let question = state.confirm.as_ref().map(|confirm| confirm.question.clone());
                    let ended = press_char(&mut state, 'y');
                    let listed = seen.as_ref().is_some_and(|n| items.iter().any(|item| item.to_string() == *n));
                    match (&seen, listed) {
                        (Some(n), true) => {
                            prop_assert_eq!(ended, Some(ScreenAction::Request(expected(panel, n))));
                            let named = question.expect("a dialog has asked");
                            let id = match panel {
                                Panel::Calls => format!(" c{n} "),
                                Panel::Shells => format!(" sh_{n} "),
                                Panel::Rules => format!(" g{n}?"),
                                _ => format!(" p{n} "),
                            };
                            prop_assert!(named.contains(&id), "{named}");
                        }
                        _ => prop_assert_eq!(ended, None),
                    }
                }
            }
            show_items(&mut state, &items);
        }
    }
}
