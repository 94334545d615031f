//! A file system that does not answer, such as a network mount whose server is gone, or a FUSE program that hangs.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toold_tests::{Setup, TestDaemon, Wire, until};

use crate::faults::{threads, with_mounts};

const PLUGIN: &str = r#"
hygge.register_tool{name = "peek", description = "Reads a file", parallelizable = true, permissions = {"file.read"},
    input_schema = {type = "object", properties = {path = {type = "string"}}},
    execute = function(_, input) return hygge.fs.read(input.path) end}
"#;

/// A daemon in whose working folder `hung` is a FUSE file system that nobody serves: each access blocks. `None` where
/// there is no FUSE.
fn with_hung_folder() -> Option<TestDaemon> {
    let setup = Setup::new().file("a.txt", "needle").file("hung/below", "").plugin("peek.lua", PLUGIN);
    if std::fs::File::options().read(true).write(true).open("/dev/fuse").is_err() {
        toold_tests::skip("/dev/fuse cannot be opened");
        return None;
    }
    let place = setup.path("work/hung");
    // The daemon holds the other end, and reads nothing from it.
    let mount = format!(
        "exec 9<>/dev/fuse && mount -i -t fuse hung {} -o fd=9,rootmode=40000,user_id=0,group_id=0",
        place.display()
    );
    Some(with_mounts(setup, &mount)?.start())
}

fn execute(name: &str, arguments: Value) -> Value {
    json!({"name": name, "arguments": arguments})
}

#[track_caller]
fn serves(wire: &mut Wire) {
    assert_eq!(wire.tool("read", json!({"path": "a.txt"}))["is_error"], false);
    assert_eq!(wire.tool("bash", json!({"command": "echo hello"}))["is_error"], false);
}

#[test]
fn a_file_system_that_does_not_answer_costs_only_the_calls_that_go_there() {
    let Some(mut daemon) = with_hung_folder() else { return };
    let mut wire = daemon.connect();
    until("the plugin is loaded", || wire.call("tools.schema", json!({"name": "peek"})).get("result").map(drop));
    let before = threads(&daemon);
    let calls = [
        execute("read", json!({"path": "hung/x"})),
        execute("read", json!({"path": "hung/../hung/x/y"})),
        execute("grep", json!({"pattern": "needle", "path": "hung"})),
        execute("glob", json!({"pattern": "*", "path": "hung"})),
        execute("list", json!({"path": "hung"})),
        execute("write", json!({"path": "hung/new", "content": ""})),
        execute("peek", json!({"path": "hung/x"})),
    ];
    let mut waiting = Vec::new();
    for _ in 0..20 {
        for call in &calls {
            waiting.push(wire.request("tools.execute", call.clone()));
        }
    }
    // The same client, another one, and one that comes now.
    serves(&mut wire);
    serves(&mut daemon.connect());
    for id in waiting {
        let answer = wire.answer(id);
        let words = answer.to_string();
        assert!(words.contains("does not answer") || words.contains("overloaded"), "{words}");
    }
    // A search of the folder above skips it.
    for (tool, arguments) in
        [("grep", json!({"pattern": "needle"})), ("glob", json!({"pattern": "*.txt"})), ("list", json!({}))]
    {
        let result = wire.tool(tool, arguments);
        assert_eq!(result["is_error"], false, "{result}");
        assert_eq!(result["metadata"]["files"], 1, "{result}");
        assert_eq!(result["metadata"]["problems"], 1, "{result}");
    }
    let opened = daemon.connect().call("session.open", json!({"cwd": daemon.work().join("hung")}));
    assert!(opened["error"]["message"].as_str().unwrap().contains("does not answer"), "{opened}");
    let checked = daemon.connect().call("permissions.check", json!({"category": "file.read", "target": "hung/x"}));
    assert!(checked.get("result").is_some() || checked.get("error").is_some());
    serves(&mut wire);
    // At most one thread waits for the file system, for any calls. The runtime keeps idle threads for ten seconds.
    until("the threads of the calls end", || (threads(&daemon) <= before + 4).then_some(()));
    let start = Instant::now();
    daemon.signal("TERM");
    assert!(daemon.wait().success());
    assert!(start.elapsed() < Duration::from_secs(30), "{:?}", start.elapsed());
}
