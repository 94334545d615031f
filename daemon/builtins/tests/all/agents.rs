use std::time::Duration;

use serde_json::json;
use toold_builtins::agents::AgentType;

use crate::builtin_test::BuiltinTest;

fn kind(name: &str, command: &[&str]) -> AgentType {
    let command = command.iter().map(|word| (*word).to_owned()).collect();
    AgentType { name: name.to_owned(), command: Some(command), ..AgentType::default() }
}

fn work(kind: &str) -> serde_json::Value {
    json!({"type": kind, "description": "some work", "prompt": "do {type} it"})
}

#[tokio::test]
async fn output_of_the_program_is_the_answer() {
    let test = BuiltinTest::new();
    let script = "echo \"$1 in $(basename \"$PWD\") at $TOOLD_AGENT_DEPTH\"; echo thinking >&2";
    test.toolkit.agents.configure(vec![kind("helper", &["sh", "-c", script, "sh", "{type}: {prompt}"])]);
    // Inserted values are not expanded again.
    assert_eq!(test.ok("subagent", work("helper")).await, "helper: do {type} it in work at 1");
}

/// A prompt such as `--settings={...}` would let the model choose the program's options.
#[tokio::test]
async fn what_a_model_writes_is_never_an_option() {
    let test = BuiltinTest::new();
    fn command<'a>(words: &[&'a str]) -> Vec<&'a str> {
        [&["sh", "-c", "for word; do echo \"[$word]\"; done; cat", "sh"], words].concat()
    }
    let mut work = work("helper");
    work["prompt"] = json!("--danger");
    work["description"] = json!("-d");
    for (words, shown) in [
        (&["--", "{prompt}", "{description}"][..], "[--]\n[--danger]\n[-d]"),
        (&["--prompt={prompt}", "x {description}"], "[--prompt=--danger]\n[x -d]"),
        (&["--print"], "[--print]\n--danger"),
    ] {
        test.toolkit.agents.configure(vec![kind("helper", &command(words))]);
        assert_eq!(test.ok("subagent", work.clone()).await, shown, "{words:?}");
    }
    for words in [&["-p", "{prompt}"][..], &["{prompt}"], &["{description}: {prompt}"], &["{system_prompt}", "--"]] {
        test.toolkit.agents.configure(vec![kind("helper", &command(words))]);
        let error = test.bad("subagent", work.clone()).await;
        assert!(error.contains("for an option: put \"--\" before it"), "{words:?}: {error}");
    }
    test.toolkit.agents.configure(vec![kind("-x", &command(&["{type}"]))]);
    work["type"] = json!("-x");
    assert!(test.bad("subagent", work).await.contains("could take -x for an option"));
}

#[tokio::test]
async fn a_kind_of_a_file_is_run_by_the_default_program() {
    let test = BuiltinTest::new();
    test.write(
        ".claude/agents/reviewer.md",
        "---\nname: reviewer\ndescription: Reviews: carefully\ntools: read, grep\n---\nYou review.\n",
    );
    test.write(".claude/agents/notes.md", "no agent");
    let types = test.toolkit.agent_types(&test.root);
    assert_eq!(types.len(), 1);
    assert_eq!(types[0].tools.as_deref(), Some(["read".to_owned(), "grep".to_owned()].as_slice()));
    let error = test.bad("subagent", work("reviewer")).await;
    assert!(error.contains("no program is configured"), "{error}");
    test.toolkit.agents.configure(vec![kind("default", &["cat"])]);
    assert_eq!(test.ok("subagent", work("reviewer")).await, "You review.\n\ndo {type} it");
    let unknown = test.bad("subagent", work("painter")).await;
    assert_eq!(unknown, "there is no sub-agent painter; there are: default, reviewer");
}

#[tokio::test]
async fn failures_are_reported() {
    let test = BuiltinTest::new();
    let slow =
        AgentType { timeout: Some(Duration::from_secs(2)), ..kind("slow", &["sh", "-c", "echo begun; sleep 60"]) };
    test.toolkit.agents.configure(vec![
        kind("failing", &["sh", "-c", "echo half; echo why >&2; exit 3"]),
        kind("missing", &["no-such-program"]),
        kind("silent", &["true"]),
        slow,
    ]);
    assert_eq!(test.bad("subagent", work("failing")).await, "half\n[sub-agent failing ended with exit code 3: why]");
    assert!(test.bad("subagent", work("missing")).await.contains("no-such-program"));
    assert_eq!(test.ok("subagent", work("silent")).await, "[sub-agent silent printed nothing]");
    let error = test.bad("subagent", work("slow")).await;
    assert_eq!(error, "begun\n[sub-agent slow timed out]");
    assert!(
        test.bad("subagent", json!({"type": "silent", "description": "", "prompt": " "})).await.contains("nothing")
    );
}
