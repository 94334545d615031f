//! Skills and memories as MCP clients see them: resources and prompts.

use std::fs;

use serde_json::{Value, json};
use toold_tests::{Setup, TestDaemon, Wire, until};

/// A client of the older revisions.
fn client(daemon: &TestDaemon) -> Wire {
    let mut wire = Wire::connect(&daemon.socket());
    let params = json!({
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "old", "version": "1"},
        "_meta": {"toold/default-cwd": daemon.work()},
    });
    wire.result("initialize", params);
    wire.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    wire
}

/// The members of a list by this field; others do not matter here.
fn listed(client: &mut Wire, method: &str, list: &str, field: &str) -> Vec<String> {
    let all = client.result(method, json!({}));
    all[list].as_array().unwrap().iter().map(|one| one[field].as_str().unwrap().to_owned()).collect()
}

fn uris(client: &mut Wire) -> Vec<String> {
    listed(client, "resources/list", "resources", "uri")
}

fn read(client: &mut Wire, uri: &str) -> Value {
    client.result("resources/read", json!({"uri": uri}))["contents"][0].take()
}

#[test]
fn a_skill_is_a_resource_and_a_prompt() {
    let daemon = Setup::new()
        .file(".agents/skills/one/SKILL.md", "---\nname: one\ndescription: The first\n---\nDo it.\n")
        .file(".agents/skills/one/notes.txt", "x")
        .start();
    // A person has opened the folder.
    daemon.connect();
    let mut client = client(&daemon);
    until("the project's skill is listed", || (uris(&mut client) == ["skill://one"]).then_some(()));
    let all = client.result("resources/list", json!({}));
    assert_eq!(all["resources"][0]["description"], "The first");
    assert_eq!(all["resources"][0]["mimeType"], "text/markdown");
    let contents = read(&mut client, "skill://one");
    assert_eq!(contents, json!({"uri": "skill://one", "mimeType": "text/markdown", "text": "Do it.\n"}));

    assert_eq!(listed(&mut client, "prompts/list", "prompts", "name"), ["one"]);
    let prompt = client.result("prompts/get", json!({"name": "one"}));
    assert_eq!(prompt["description"], "The first");
    assert_eq!(prompt["messages"][0]["role"], "user");
    let text = prompt["messages"][0]["content"]["text"].as_str().unwrap();
    assert!(text.starts_with("Do it.\n") && text.ends_with("it holds notes.txt]"), "{text}");

    // Nothing is cached: the file is read each time.
    fs::write(daemon.work().join(".agents/skills/one/SKILL.md"), "---\ndescription: x\n---\nDo more.\n").unwrap();
    assert_eq!(read(&mut client, "skill://one")["text"], "Do more.\n");
    fs::remove_file(daemon.work().join(".agents/skills/one/SKILL.md")).unwrap();
    assert_eq!(client.error("resources/read", json!({"uri": "skill://one"}))["code"], -32002);
    until("the skill is gone", || uris(&mut client).is_empty().then_some(()));
    assert_eq!(listed(&mut client, "prompts/list", "prompts", "name"), Vec::<String>::new());
}

#[test]
fn clients_hear_that_a_skill_was_saved() {
    let daemon = TestDaemon::start();
    // A person has opened the folder.
    daemon.connect();
    let mut client = client(&daemon);
    assert_eq!(uris(&mut client), Vec::<String>::new());
    let folder = daemon.work().join(".claude/skills");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("two.md"), "# The second\n").unwrap();
    client.notification("notifications/resources/list_changed");
    client.notification("notifications/prompts/list_changed");
    assert_eq!(uris(&mut client), ["skill://two"]);
    assert_eq!(read(&mut client, "skill://two")["text"], "# The second\n");
}

#[test]
fn a_projects_skill_stands_in_for_the_users() {
    let daemon = Setup::new().file(".agents/skills/both.md", "---\ndescription: project's\n---\nHere.\n").start();
    // A person has opened the folder.
    daemon.connect();
    let users = daemon.setup.path("config/toold/skills");
    fs::create_dir_all(&users).unwrap();
    fs::write(users.join("both.md"), "---\ndescription: user's\n---\nAnywhere.\n").unwrap();
    let mut client = client(&daemon);
    until("the project's description is listed", || {
        let all = client.result("prompts/list", json!({}));
        (all["prompts"][0]["description"] == "project's").then_some(())
    });
    assert_eq!(read(&mut client, "skill://both")["text"], "Here.\n");
}

#[test]
fn memories_of_the_project_and_of_all_are_resources_and_those_of_sessions_are_not() {
    let daemon = Setup::new().file(".toold/memories/use tabs.md", "---\n---\nUse tabs\n").start();
    // A person has opened the folder.
    daemon.connect();
    let global = daemon.setup.path("config/toold/memories");
    fs::create_dir_all(&global).unwrap();
    fs::write(global.join("rain.md"), "It rains").unwrap();
    let mut client = client(&daemon);
    let remember = json!({"name": "remember", "arguments": {"content": "Mine alone"}});
    assert_eq!(client.result("tools/call", remember)["isError"], false);
    let expected = ["memory://global/rain", "memory://project/use%20tabs"];
    until("both memories are listed", || (uris(&mut client) == expected).then_some(()));
    assert_eq!(read(&mut client, "memory://global/rain")["text"], "It rains");
    assert_eq!(read(&mut client, "memory://project/use%20tabs")["text"], "Use tabs");
    assert_eq!(client.error("resources/read", json!({"uri": "memory://session/mine"}))["code"], -32002);
}

#[test]
fn a_project_shows_no_memories_from_outside_of_it() {
    let daemon = Setup::new().file(".toold/memories/in.md", "inside").start();
    // A person has opened the folder.
    daemon.connect();
    let outside = daemon.setup.path("secret.md");
    fs::write(&outside, "outside").unwrap();
    std::os::unix::fs::symlink(&outside, daemon.work().join(".toold/memories/out.md")).unwrap();
    let mut client = client(&daemon);
    until("the memory is listed", || (uris(&mut client) == ["memory://project/in"]).then_some(()));
    // The folder becomes a link after it was listed.
    let memories = daemon.work().join(".toold/memories");
    let elsewhere = daemon.setup.path("elsewhere");
    fs::rename(&memories, &elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &memories).unwrap();
    assert_eq!(client.error("resources/read", json!({"uri": "memory://project/in"}))["code"], -32002);
    until("nothing is listed", || uris(&mut client).is_empty().then_some(()));
}
