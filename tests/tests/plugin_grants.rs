//! Permissions that plugins asked for and were refused: how they are listed and granted.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use toold_tests::{Setup, Wire};

/// `fetch` needs the network, `peek` a file outside of the session's folder, `secret` a file that nobody reads.
const ASKING: &str = r#"
hygge.register_tool { name = "fetch", execute = function(ctx, input)
  return hygge.http.get(input.url).body
end }
hygge.register_tool { name = "peek", execute = function(ctx, input)
  return hygge.fs.read(input.path)
end }
"#;

fn refused(wire: &mut Wire) -> Vec<Value> {
    let shown = wire.result("plugins.show", json!({"name": "asking"}));
    shown["refused"].as_array().cloned().unwrap_or_default()
}

#[test]
fn a_refused_need_of_a_plugin_is_listed_once_with_the_pattern_that_allows_it() {
    let setup =
        Setup::new().plugin("asking.lua", ASKING).file("outside/note.txt", "a note").file("outside/.env", "KEY=1");
    let note = setup.path("outside/note.txt");
    let daemon = setup.start();
    let mut wire = daemon.connect();
    assert_eq!(refused(&mut wire), [] as [Value; 0]);
    for _ in 0..2 {
        wire.tool("fetch", json!({"url": "https://example.org/"}));
    }
    wire.tool("peek", json!({"path": note}));
    wire.tool("peek", json!({"path": note.with_file_name(".env")}));
    let refused = refused(&mut wire);
    let seen: Vec<_> = refused.iter().map(|one| (&one["category"], &one["times"], &one["pattern"])).collect();
    let (file, network) = (json!("file.read"), json!("network"));
    assert_eq!(
        seen,
        [
            (&file, &json!(1), &Value::Null),
            (&file, &json!(1), &json!(note)),
            (&network, &json!(2), &json!("example.org:443")),
        ],
        "{refused:?}"
    );
    assert!(refused.iter().all(|one| one["chain"] == json!(["asking"]) && one["at_load"] == false), "{refused:?}");

    let mut agent = BTreeMap::from([("role", json!("agent")), ("cwd", json!(daemon.work()))]);
    agent.insert("client", json!({"name": "agent", "version": "1"}));
    let mut other = daemon.connect();
    other.result("session.open", json!(agent));
    let shown = other.result("plugins.show", json!({"name": "asking"}));
    assert_eq!(shown.get("refused"), None, "another session's refusals are not shown to an agent: {shown}");

    let grant = json!({"category": "network", "pattern": "*.net:443", "scope": "always", "chain": ["asking"]});
    wire.result("permissions.grant", grant);
    assert_eq!(self::refused(&mut wire).len(), 3, "the grant does not match it");
    let grant = json!({"category": "network", "pattern": "example.org:443", "scope": "always", "chain": ["asking"]});
    wire.result("permissions.grant", grant);
    assert_eq!(self::refused(&mut wire).len(), 2);
}
