//! Files that run code later: each write needs an approval of its own.

use serde_json::{Value, json};
use toold_tests::{Setup, TestDaemon, Wire};

fn asked(wire: &mut Wire) -> Value {
    let mut event = wire.notification("permissions.event")["result"].take();
    assert_eq!(event["type"], "asked", "{event}");
    event["request"].take()
}

fn write(wire: &mut Wire, path: &str) -> u64 {
    wire.request("tools.execute", json!({"name": "write", "arguments": {"path": path, "content": "echo hi\n"}}))
}

fn accepting_edits(daemon: &TestDaemon) -> Wire {
    let mut wire = daemon.connect();
    wire.result("permissions.set_mode", json!({"mode": "accept_edits"}));
    wire.result("permissions.subscribe", json!({}));
    wire
}

const HOOK: &str = ".git/hooks/pre-commit";

#[test]
fn a_git_hook_is_asked_about_where_edits_are_accepted() {
    let daemon = TestDaemon::start();
    std::fs::create_dir_all(daemon.work().join(".git/hooks")).unwrap();
    let mut wire = accepting_edits(&daemon);
    let usual = write(&mut wire, "src.txt");
    assert_eq!(wire.answer(usual)["result"]["is_error"], false, "an ordinary file is not asked about");

    let hook = daemon.work().join(HOOK);
    let id = write(&mut wire, HOOK);
    let ask = asked(&mut wire);
    assert_eq!((&ask["category"], &ask["target"]), (&json!("file.write"), &json!(hook)));
    let reason = ask["reason"].as_str().unwrap();
    assert!(reason.contains("(.git/**)") && reason.contains("git runs hooks"), "{ask}");
    assert_eq!(ask["suggestions"], json!([{"pattern": hook, "scope": "session"}]), "only this file can be allowed");
    assert!(!hook.exists());
    let wide = json!({"request_id": ask["request_id"], "action": "allow", "scope": "always",
        "pattern": format!("{}/*", hook.parent().unwrap().display())});
    assert_eq!(wire.error("permissions.reply", wide)["code"], -32602);
    wire.result("permissions.reply", json!({"request_id": ask["request_id"], "action": "allow"}));
    assert_eq!(wire.answer(id)["result"]["is_error"], false);
    assert_eq!(std::fs::read_to_string(&hook).unwrap(), "echo hi\n");
}

#[test]
fn a_wide_grant_does_not_cover_a_hook_and_an_exact_one_does() {
    let daemon = Setup::new().config("[permission]\nprotected_writes = [\"deploy/**\"]\n").start();
    let mut wire = daemon.connect();
    let (hook, own) = (daemon.work().join(HOOK), daemon.work().join("deploy/run.sh"));
    let check = |wire: &mut Wire, path: &std::path::Path| {
        let checked = wire.result("permissions.check", json!({"category": "file.write", "target": path}));
        (checked["verdict"].as_str().unwrap().to_owned(), checked["rule"].as_str().unwrap().to_owned())
    };
    wire.result("permissions.grant", json!({"category": "file.write", "pattern": "**", "scope": "always"}));
    assert_eq!(check(&mut wire, &daemon.work().join("a.txt")).0, "allow");
    for (path, named) in [(&hook, ".git/**"), (&own, "deploy/**")] {
        let (verdict, rule) = check(&mut wire, path);
        assert!(verdict == "ask" && rule.contains(named), "{verdict}: {rule}");
    }
    // There is no client that can answer.
    let refused = wire.tool("write", json!({"path": HOOK, "content": "x"}));
    let text = refused["content"][0]["text"].as_str().unwrap();
    assert!(text.contains(&format!("toolctl permissions grant file.write {}", hook.display())), "{text}");
    let shown = daemon.toolctl(&["permissions", "check", "file.write", hook.to_str().unwrap()]);
    let shown = String::from_utf8_lossy(&[shown.stdout, shown.stderr].concat()).into_owned();
    assert!(shown.contains("ask") && shown.contains("git runs hooks"), "{shown}");

    wire.result("permissions.grant", json!({"category": "file.write", "pattern": hook, "scope": "always"}));
    assert_eq!(check(&mut wire, &hook).0, "allow");
    assert_eq!(check(&mut wire, &daemon.work().join(".git/config")).0, "ask");
}

#[test]
fn a_project_protects_its_files_before_it_is_trusted() {
    let daemon =
        Setup::new().file("p/.toold/config.toml", "[permission]\nprotected_writes = [\"release.sh\"]\n").start();
    let mut wire = Wire::connect(&daemon.socket());
    wire.result("session.open", json!({"cwd": daemon.work().join("p")}));
    wire.result("permissions.set_mode", json!({"mode": "accept_edits"}));
    let mut check = |name: &str| {
        let target = daemon.work().join("p").join(name);
        wire.result("permissions.check", json!({"category": "file.write", "target": target}))["verdict"].take()
    };
    assert_eq!((check("release.sh"), check("other.sh")), (json!("ask"), json!("allow")));
}

#[test]
fn a_redirect_and_a_link_do_not_lead_around_it() {
    let daemon = Setup::new()
        .config("[[permission.rules]]\ncategory = \"shell\"\npattern = \"**\"\naction = \"allow\"\n")
        .file("p/x", "")
        .start();
    let mut wire = daemon.connect();
    wire.result("permissions.set_mode", json!({"mode": "accept_edits"}));
    std::fs::create_dir_all(daemon.work().join(".git/hooks")).unwrap();
    std::os::unix::fs::symlink(".git/hooks", daemon.work().join("link")).unwrap();
    let line = wire.tool("bash", json!({"command": "echo x > .git/hooks/pre-push"}));
    let linked = wire.tool("write", json!({"path": "link/pre-push", "content": "x"}));
    for refused in [line, linked] {
        assert_eq!(refused["is_error"], true, "{refused}");
        assert!(refused["content"][0]["text"].as_str().unwrap().contains("git runs hooks"), "{refused}");
    }
    assert!(!daemon.work().join(".git/hooks/pre-push").exists());
}
