//! Recorded and documented inputs of each agent's hooks: the call that is read from each, and the answers to it.
//!
//! `UPDATE=1 cargo test --bin toolctl corpus` writes the expectations.

use serde_json::{Value, json};
use toold_adapters::agents::actions;

use crate::commands::hook::answers::{self, AgentAsking, HookJudgement, JudgedBy, JudgedDecision};
use crate::commands::hook::{HookAgent, is_own, may_be_of_server, mcp_servers, mcp_tools, payload};

#[test]
fn every_input_is_read_and_answered_as_recorded() {
    for agent in HookAgent::ALL {
        let path = format!("{}/../../tests/agents/payloads/{}.json", env!("CARGO_MANIFEST_DIR"), agent.name());
        let mut entries: Vec<Value> = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        for entry in &mut entries {
            let expected = expectation(agent, entry);
            if std::env::var_os("UPDATE").is_some() {
                entry["expected"] = expected;
            } else {
                assert_eq!(entry["expected"], expected, "{path}: {entry:#}");
            }
        }
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(&path, serde_json::to_string_pretty(&entries).unwrap() + "\n").unwrap();
        }
    }
}

fn expectation(agent: HookAgent, entry: &Value) -> Value {
    let (given, input) = (entry["event"].as_str(), &entry["payload"]);
    let Some(mut call) = payload::read(agent, given, input).unwrap() else {
        return json!("silence: no event of a tool");
    };
    if may_be_of_server(agent, &call) {
        call.mcp = mcp_tools(agent, &call, &mcp_servers::tests::known(&["toold", "tickets", "my_tickets"]));
    }
    if is_own(&call) {
        return json!("silence: a tool of toold");
    }
    let actions = match actions(agent.name(), &call.tool, &call.input) {
        Ok(actions) => actions.iter().map(|action| format!("{action:?}")).collect(),
        Err(error) => vec![error.to_string()],
    };
    let mut expected = json!({"moment": format!("{:?}", call.moment), "cwd": call.cwd, "actions": actions});
    if let Some(needs) = call.params(agent, None).get("needs") {
        expected["needs"] = needs.clone();
    }
    if let Some(row) = answers::row(agent, &payload::event(given, input)) {
        let answer = |decision, by| {
            let judged = HookJudgement { decision, by, reason: "R".to_owned(), protected: false };
            row.answer(&judged, AgentAsking::AtTerminal).unwrap_or_else(|| json!("silence"))
        };
        expected["allow"] = answer(JudgedDecision::Allow, JudgedBy::Rule);
        expected["deny"] = answer(JudgedDecision::Deny, JudgedBy::Rule);
        expected["ask by rule"] = answer(JudgedDecision::Ask, JudgedBy::Rule);
        expected["ask by default"] = answer(JudgedDecision::Ask, JudgedBy::Default);
    }
    expected
}

#[test]
fn events_of_one_call_have_one_request() {
    for agent in HookAgent::ALL {
        let path = format!("{}/../../tests/agents/payloads/{}.json", env!("CARGO_MANIFEST_DIR"), agent.name());
        let entries: Vec<Value> = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        let read = |entry: &Value| payload::read(agent, entry["event"].as_str(), &entry["payload"]).unwrap();
        let calls: Vec<_> = entries.iter().filter_map(read).collect();
        let after = calls.iter().find(|call| matches!(call.moment, payload::HookMoment::After { .. })).unwrap();
        let before = calls.iter().find(|call| {
            call.moment == payload::HookMoment::Before && call.tool == after.tool && call.input == after.input
        });
        // Some examples of the documentation have another id, or more arguments, before than after.
        if let Some(before) = before {
            assert_eq!(before.request_id(agent), after.request_id(agent), "{}", agent.name());
            assert!(before.request_id(agent).is_some());
        }
    }
}

#[test]
fn inputs_that_are_no_hook_s_are_refused() {
    for input in [json!(null), json!([1]), json!({}), json!({"hook_event_name": "PreToolUse"}), json!("x")] {
        let error = payload::read(HookAgent::Codex, None, &input).unwrap_err();
        assert!(error.contains("input") || error.contains("object"), "{error}");
    }
}
