//! `toolctl upgrade --check`, on the database of a daemon of version 0.1.

use serde_json::json;
use toold_tests::{Setup, TestDaemon, Wire};

use crate::principals::peers::spoken;

/// Brings the database back to the tables of version 0.1, with what a user of it had.
fn as_of_the_first_version(setup: &Setup) {
    let database = rusqlite::Connection::open(setup.path("state/toold/toold.db")).unwrap();
    let folder = setup.path("home/Documents").display().to_string();
    let rows = format!(
        "ALTER TABLE sessions DROP COLUMN owner; ALTER TABLE grants DROP COLUMN review; DROP TABLE workspaces; \
         ALTER TABLE grants DROP COLUMN asked; ALTER TABLE grants DROP COLUMN uses; ALTER TABLE grants DROP COLUMN used_at; ALTER TABLE audit DROP COLUMN original_ms; \
         INSERT INTO grants VALUES ('wide', 'shell', 'git *', 'allow', 'always', NULL, NULL, NULL, '[]', NULL, 0, NULL), \
         ('exact', 'shell', 'ls', 'allow', 'always', NULL, NULL, NULL, '[]', NULL, 0, NULL); \
         INSERT INTO sessions VALUES ('old', CAST('{folder}' AS BLOB), CAST('' AS BLOB), '{{\"name\": \"claude-code\"}}', NULL, \
         '\"default\"', '{{}}', 0, {now}); \
         PRAGMA user_version = 3;",
        now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis(),
    );
    database.execute_batch(&rows).unwrap();
}

fn checked(daemon: &TestDaemon) -> String {
    let output = daemon.toolctl(&["upgrade", "--check"]);
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn changed_behaviour_is_listed_with_its_replacement() {
    let rule = "[[permission.rules]]\ncategory = \"file.write\"\npattern = \"~/**\"\naction = \"allow\"\n";
    let setup = Setup::new().config(rule);
    std::fs::create_dir_all(setup.path("home/Documents")).unwrap();
    let setup = setup.start().into_setup();
    as_of_the_first_version(&setup);
    let daemon = setup.start();
    // The person's frontend, and an agent that does what agents of 0.1 could.
    let mut person = Wire::connect(&daemon.socket());
    person.result("session.open", json!({"session_id": "persons", "cwd": daemon.work()}));
    let client = json!({"name": "my-agent"});
    spoken(
        &daemon,
        &[],
        &json!([
            ["session.open", {"cwd": daemon.work(), "role": "agent", "client": client, "env": {"NODE_OPTIONS": "x"}}],
            ["session.open", {"session_id": "persons", "client": client}],
        ]),
    );
    let documents = daemon.setup.path("home/Documents").display().to_string();
    let first = checked(&daemon);
    for expected in [
        "allow file.write",
        "toolctl permissions grant file.write",
        "grant wide: allow shell git *",
        "toolctl permissions revoke wide",
        "my-agent sets \"NODE_OPTIONS\"",
        "[agents] env",
        &*format!("claude-code worked in {documents}"),
        &*format!("toolctl workspaces allow {documents}"),
        "my-agent tried to join session persons",
        "toolctl sessions share persons",
    ] {
        assert!(first.contains(expected), "{expected:?} is missing:\n{first}");
    }
    assert!(!first.contains("exact"), "{first}");
    // Grants are shown once, and hold.
    let second = checked(&daemon);
    assert!(!second.contains("grant wide") && second.contains("my-agent sets"), "{second}");
    let grants = person.result("permissions.list", json!({}))["grants"].take();
    assert_eq!(grants.as_array().unwrap().len(), 2, "{grants}");
    // The replacements work.
    assert!(daemon.toolctl(&["workspaces", "allow", &documents]).status.success());
    assert!(!checked(&daemon).contains("claude-code worked in"));
}

#[test]
fn a_new_user_has_nothing_to_review() {
    let daemon = TestDaemon::start();
    daemon.connect();
    assert_eq!(checked(&daemon), "nothing that version 0.1 allowed is treated differently\n");
    assert!(!daemon.toolctl(&["upgrade"]).status.success(), "it upgrades nothing by itself");
}
