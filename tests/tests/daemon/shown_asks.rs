//! What a person sees of an ask: who asks and where, what the answers cover, and how it ended. And agents that are observed.

use std::path::Path;

use serde_json::{Value, json};
use toold_tests::{Setup, TestDaemon, Wire, until};

fn person(daemon: &TestDaemon) -> Wire {
    let mut person = daemon.connect();
    let client = json!({"name": "desk"});
    person.result("session.open", json!({"cwd": daemon.work(), "client": client}));
    person.result("permissions.subscribe", json!({}));
    person
}

fn next(person: &mut Wire, kind: &str) -> Value {
    loop {
        let event = person.notification("permissions.event")["result"].take();
        if event["type"] == kind {
            return event;
        }
    }
}

/// Calls a tool, and answers its ask.
#[track_caller]
fn answered(daemon: &TestDaemon, person: &mut Wire, (tool, arguments): (&str, Value), reply: Value) -> (Value, Value) {
    let mut agent = daemon.connect();
    let open = json!({"cwd": daemon.work(), "client": {"name": "helper"}, "role": "agent"});
    agent.result("session.open", open);
    let id = agent.request("tools.execute", json!({"name": tool, "arguments": arguments}));
    let ask = next(person, "asked")["request"].take();
    let mut reply = reply;
    reply["request_id"] = ask["request_id"].clone();
    person.result("permissions.reply", reply);
    agent.answer(id);
    (ask, next(person, "resolved"))
}

#[test]
fn an_ask_says_who_asks_and_how_it_ended() {
    let config = "[permission]\nread_only_commands = \"ask\"\n";
    let daemon = Setup::new().config(config).start();
    let mut person = person(&daemon);
    let call = ("bash", json!({"command": "echo gіt", "description": "prints a word"}));
    let (ask, end) = answered(&daemon, &mut person, call, json!({"action": "allow", "scope": "session"}));
    assert_eq!((&ask["agent"], &ask["session_name"]), (&json!("helper"), &json!("this helper session")), "{ask}");
    assert_eq!((&ask["level"], &ask["description"]), (&json!("read"), &json!("prints a word")), "{ask}");
    assert_eq!(ask["misleading"][0], "\"gіt\" has characters that look like others: і (U+0456)", "{ask}");
    assert_eq!(end["how"], "allowed by desk (this helper session)");
    let late = person.error("permissions.reply", json!({"request_id": ask["request_id"], "action": "deny"}));
    let words = late["message"].as_str().unwrap();
    assert!(words.ends_with("is already answered: allowed by desk (this helper session)"), "{words}");
    // A terminal is a session of its own.
    let mut terminal = daemon.connect();
    terminal.result("session.open", json!({"cwd": daemon.work(), "session_id": "terminal-pts_5-1-2-3"}));
    terminal.request("tools.execute", json!({"name": "bash", "arguments": {"command": "echo b"}, "call_id": "b"}));
    let ask = next(&mut person, "asked")["request"].take();
    assert_eq!(ask["session_name"], "terminal pts/5", "{ask}");
    // Nobody answers, and the call ends.
    terminal.result("tools.cancel", json!({"call_id": "b"}));
    assert_eq!(next(&mut person, "resolved")["how"], "the call ended");
    let late = person.error("permissions.reply", json!({"request_id": ask["request_id"], "action": "allow"}));
    assert!(late["message"].as_str().unwrap().ends_with("has ended: the call ended"), "{late}");
    // A rule answers.
    terminal.request("tools.execute", json!({"name": "bash", "arguments": {"command": "echo c"}}));
    next(&mut person, "asked");
    person.result("permissions.grant", json!({"category": "shell", "pattern": "echo c", "scope": "always"}));
    let how = next(&mut person, "resolved")["how"].take();
    assert!(how.as_str().unwrap().starts_with("allowed by grant "), "{how}");
}

/// Calls `bash` where nobody can be asked, and gives whether it was allowed.
fn runs(daemon: &TestDaemon, line: &str) -> bool {
    let mut wire = Wire::connect(&daemon.socket());
    wire.result("session.open", json!({"cwd": daemon.work(), "role": "agent"}));
    wire.tool("bash", json!({"command": line}))["metadata"]["permission"].is_null()
}

#[test]
fn an_answer_for_a_line_with_wildcards_covers_this_line_alone() {
    let daemon = Setup::new().file("a.txt", "1\n").file("b.txt", "2\n").start();
    let line = "for f in *.txt; do touch \"$f\"; done";
    let mut desk = person(&daemon);
    let (ask, end) =
        answered(&daemon, &mut desk, ("bash", json!({"command": line})), json!({"action": "allow", "scope": "always"}));
    assert_eq!(patterns(&ask).last(), Some(&format!("$ {line}").as_str()), "{ask}");
    let covers = &ask["suggestions"].as_array().unwrap().last().unwrap()["covers"];
    assert_eq!(covers, "exactly this line, whatever its variables and wildcards stand for then");
    assert_eq!(end["action"], "allow", "{end}");
    let grants = desk.result("permissions.list", json!({}))["grants"].take();
    assert_eq!(grants[0]["pattern"], format!("$ {line}"), "{grants}");
    drop(desk);
    assert!(runs(&daemon, line));
    for other in ["for f in *.txt; do touch \"$f\"; done; touch c", "touch a.txt", "for f in *; do touch \"$f\"; done"]
    {
        assert!(!runs(&daemon, other), "{other}");
    }
}

#[test]
fn an_ask_says_what_is_not_known_and_what_is_written_elsewhere() {
    let daemon = Setup::new().start();
    let mut desk = person(&daemon);
    for (line, said) in [
        ("frobnicate -x y", "not known what it does: toold has no description of frobnicate"),
        ("docker buildx bake", "not certain what it does: toold does not know what docker buildx does"),
        ("mkdir -p /var/no/such/x", "writes outside of the session's folders: /var/no/such/x"),
    ] {
        let (ask, _) = answered(&daemon, &mut desk, ("bash", json!({"command": line})), json!({"action": "deny"}));
        assert!(ask["reason"].as_str().is_some_and(|reason| reason.contains(said)), "{line}: {ask}");
    }
}

#[test]
fn an_ask_about_what_may_be_denied_names_the_rule_and_offers_what_helps() {
    let rule = |category: &str, pattern: &str| {
        format!("[[permission.rules]]\ncategory = \"{category}\"\npattern = \"{pattern}\"\naction = \"deny\"\n")
    };
    let config = [rule("file.read", "**/private/**"), rule("shell", "frob push *")].concat();
    let daemon = Setup::new().file("private/plan.txt", "the plan\n").config(&config).start();
    toold_test_kit::git(&daemon.work(), &["init", "-q"]);
    toold_test_kit::git(&daemon.work(), &["add", "."]);
    let mut desk = person(&daemon);
    for (line, said) in [
        ("git diff --cached", "it may show "),
        ("git diff --cached", "/private/plan.txt: rule deny file.read \"**/private/**\""),
        ("bench 'frob push'", "frob push may be a command that it runs: rule deny shell \"frob push *\""),
        ("frob push --help", "it may do no more than show help about what this denies: rule deny shell"),
    ] {
        let (ask, _) = answered(&daemon, &mut desk, ("bash", json!({"command": line})), json!({"action": "deny"}));
        assert!(ask["reason"].as_str().is_some_and(|reason| reason.contains(said)), "{line}: {ask}");
        // A wildcard would not cover it the next time.
        assert_eq!(patterns(&ask), [line], "{ask}");
    }
}

/// A daemon with an MCP server whose tool `s_echo` says that it only reads.
fn serving(trusts: bool, rules: &str) -> TestDaemon {
    let stand_in = Path::new(env!("CARGO_MANIFEST_DIR")).join("mcp/stand_in.py");
    let server = format!(
        "[mcp.servers.s]\ncommand = \"python3\"\nargs = {}\ntrust_hints = {trusts}\n{rules}",
        json!([stand_in])
    );
    let daemon = Setup::new().config(&server).start();
    let mut wire = daemon.connect();
    until("the tools are listed", || wire.call("tools.schema", json!({"name": "s_echo"})).get("result").map(|_| ()));
    daemon
}

fn patterns(ask: &Value) -> Vec<&str> {
    ask["suggestions"].as_array().unwrap().iter().map(|each| each["pattern"].as_str().unwrap()).collect()
}

fn is_asked(daemon: &TestDaemon, tool: &str) -> bool {
    let mut wire = Wire::connect(&daemon.socket());
    wire.result("session.open", json!({"cwd": daemon.work(), "role": "agent"}));
    // Nobody is there to be asked.
    !wire.tool(tool, json!({}))["metadata"]["permission"].is_null()
}

#[test]
fn one_answer_covers_the_reading_tools_of_a_server_that_a_person_trusts() {
    let daemon = serving(true, "");
    let mut desk = person(&daemon);
    let reply = json!({"action": "allow", "scope": "always", "pattern": "s/mcp:read"});
    let (ask, _) = answered(&daemon, &mut desk, ("s_echo", json!({})), reply);
    assert_eq!(patterns(&ask), ["s/echo", "s/mcp:read", "s/*"], "{ask}");
    assert_eq!(ask["suggestions"][1]["covers"], "the tools of s that only read, as s itself says");
    drop(desk);
    assert!(!is_asked(&daemon, "s_steps"));
    assert!(is_asked(&daemon, "s_where"));
    // All of a server.
    let mut desk = person(&daemon);
    let reply = json!({"action": "allow", "scope": "always", "pattern": "s/*"});
    let (ask, _) = answered(&daemon, &mut desk, ("s_where", json!({})), reply);
    assert_eq!(patterns(&ask), ["s/where", "s/*"], "{ask}");
    drop(desk);
    assert!(!is_asked(&daemon, "s_roots"));
}

#[test]
fn a_hint_counts_for_nothing_without_a_person_s_trust() {
    let rule = "[[permission.rules]]\ncategory = \"mcp\"\npattern = \"mcp:read\"\naction = \"allow\"\n";
    let (trusted, untrusted) = (serving(true, rule), serving(false, rule));
    assert!(!is_asked(&trusted, "s_echo"));
    assert!(is_asked(&trusted, "s_where"));
    assert!(is_asked(&untrusted, "s_echo"));
    let mut desk = person(&untrusted);
    let (ask, _) = answered(&untrusted, &mut desk, ("s_echo", json!({})), json!({"action": "deny"}));
    assert_eq!(patterns(&ask), ["s/echo", "s/*"], "{ask}");
}

fn judged(daemon: &TestDaemon, agent: &str, tool: &str, input: Value) -> Value {
    let params = json!({"agent": agent, "tool": tool, "input": input, "cwd": daemon.work(), "session": "c"});
    let judged = Wire::connect(&daemon.socket()).result("permissions.request", params);
    let done = json!({"request_id": judged["request_id"], "ok": true});
    if judged["decision"] != "deny" {
        Wire::connect(&daemon.socket()).result("permissions.done", done);
    }
    judged
}

#[test]
fn agents_that_are_observed_decide_themselves_and_denials_hold() {
    let rules = "[agents.codex]\nask = \"toold\"\n[[permission.rules]]\ncategory = \"shell\"\npattern = \"make *\"\n\
                 action = \"allow\"\n[[permission.rules]]\ncategory = \"shell\"\npattern = \"rm *\"\naction = \"deny\"\n\
                 [[permission.rules]]\ncategory = \"shell\"\npattern = \"git push *\"\naction = \"ask\"\n";
    let mut daemon = Setup::new().config(rules).file(".env", "KEY=1\n").start();
    let mut desk = person(&daemon);
    assert_eq!(desk.result("permissions.observe", json!({})), json!({}));
    let state = desk.result("permissions.observe", json!({"on": true, "agent": "codex", "days": 2}));
    assert_eq!((&state["observing"]["agent"], &state["observing"]["by"]), (&json!("codex"), &json!("desk")));
    let bash = |line: &str| ("Bash", json!({"command": line}));
    let check = |daemon: &TestDaemon, agent: &str, (tool, input): (&str, Value), decision: &str, by: &str| {
        let judged = judged(daemon, agent, tool, input);
        assert_eq!((&judged["decision"], &judged["by"]), (&json!(decision), &json!(by)), "{judged}");
        judged
    };
    // What would be allowed or asked is the agent's own to decide, and nobody is asked here.
    for line in ["make all", "git push origin", "curl http://localhost:1/", "mytool $x"] {
        check(&daemon, "codex", bash(line), "ask", "default");
    }
    // What may be denied is none of it.
    for line in ["echo x >> $CONFIG/toold/config.toml", "cat ${F}", "r$x y", "eval \"$x\"", "git stash; ${x} y"] {
        check(&daemon, "codex", bash(line), "ask", "rule");
    }
    check(&daemon, "codex", bash("rm x"), "deny", "rule");
    check(&daemon, "codex", bash("cat .env"), "deny", "rule");
    // Another agent is judged as ever, and a write that runs code later is asked about.
    check(&daemon, "claude-code", bash("make all"), "allow", "rule");
    let hook = daemon.work().join(".git/hooks/pre-commit");
    let patch = format!("*** Begin Patch\n*** Add File: {}\n+x\n*** End Patch\n", hook.display());
    let protected = judged(&daemon, "codex", "apply_patch", json!({"input": patch}));
    assert_eq!((&protected["decision"], &protected["by"]), (&json!("ask"), &json!("rule")), "{protected}");
    // It outlives the daemon. Its rows are no answers.
    daemon.restart("TERM");
    let mut desk = person(&daemon);
    assert_eq!(desk.result("daemon.status", json!({}))["observing"]["agent"], "codex");
    check(&daemon, "codex", bash("make other"), "ask", "default");
    let rows = until("the rows", || {
        let found = desk.result("audit.query", json!({}))["entries"].take();
        let all = found.as_array().unwrap().clone();
        let is_last = |row: &Value| row["decisions"][0]["target"] == "make other";
        all.iter().any(is_last).then_some(all)
    });
    let decision = |target: &str| {
        let row = rows.iter().find(|row| row["agent"] == "codex" && row["decisions"][0]["target"] == target);
        row.unwrap_or_else(|| panic!("{target}: {rows:?}"))["decisions"][0].clone()
    };
    let rule = |target: &str| decision(target)["rule"].as_str().unwrap().to_owned();
    assert_eq!(decision("make all")["verdict"], "allow");
    assert!(rule("make all").starts_with("observed: rule allow shell"), "{}", rule("make all"));
    assert_eq!(decision("git push origin")["verdict"], "ask");
    assert!(rule("git push origin").starts_with("observed: rule ask shell"), "{}", rule("git push origin"));
    assert!(rule("rm x").starts_with("rule deny shell"), "{}", rule("rm x"));
    assert_eq!(desk.result("permissions.suggest", json!({}))["answers"], 0);
    let replayed = desk.result("permissions.replay", json!({"since": "1h"}));
    assert!(replayed["asks_before"].as_u64().unwrap() >= 3, "{replayed}");
    let changed = desk.result("audit.query", json!({"tool": "permission_observe"}));
    assert!(changed["entries"][0]["decisions"][0]["target"].as_str().unwrap().starts_with("codex until "), "{changed}");
    // The record of one agent is neither ended nor replaced by a word about another one.
    for on in [true, false] {
        let other = desk.error("permissions.observe", json!({"on": on, "agent": "gemini"}));
        assert!(other["message"].as_str().unwrap().contains("codex is observed until "), "{other}");
    }
    assert_eq!(desk.result("permissions.observe", json!({}))["observing"]["agent"], "codex");
    desk.result("permissions.observe", json!({"on": false}));
    check(&daemon, "codex", bash("make last"), "allow", "rule");
    for wrong in [json!({"on": true, "agent": "nobody"}), json!({"on": true, "days": 0})] {
        assert_eq!(desk.error("permissions.observe", wrong)["code"], -32602);
    }
}
