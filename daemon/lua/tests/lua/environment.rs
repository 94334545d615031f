//! Variables that a plugin sets for a program are judged like a shell line that sets them.

use serde_json::{Value, json};
use toold_engine::asks::{AskSubscription, Replier, reply};
use toold_engine::policy::grants::GrantScope;
use toold_proto::permission::{Action, Answerer, Ask, PermissionEvent, ReplyPermission, Scope};

use crate::world::{TestPlugins, soon};

const EXEC: &str = "hygge.register_tool{name = 't', permission = false, execute = function(ctx, input)
  local result = hygge.exec(input.command or 'echo', input.args or {'done'}, {env = input.env})
  return result.code .. ' ' .. result.stdout .. result.stderr
end}
hygge.register_tool{name = 'line', permission = false, execute = function(ctx, input)
  local file = io.popen(input.line)
  return file.code .. ' ' .. (file:read('*a') or '')
end}";

fn grant(world: &TestPlugins, pattern: &str) {
    let params =
        json!({"category": "shell", "pattern": pattern, "action": "allow", "scope": "session", "chain": ["p"]});
    let session = GrantScope::Session(world.session.id.clone());
    toold_engine::permission::grant(&world.engine, &serde_json::from_value(params).unwrap(), session, None).unwrap();
}

async fn asked(frontend: &mut AskSubscription) -> Ask {
    match soon(frontend.next()).await {
        PermissionEvent::Asked { request } => *request,
        other => panic!("{other:?}"),
    }
}

fn allow(world: &TestPlugins, ask: &Ask, pattern: Option<String>) {
    let by = Answerer { client: Some("person".into()), connection: 7 };
    let replier = Replier { by, widest: Scope::Always, session: None };
    let wanted = ReplyPermission {
        scope: pattern.is_some().then_some(Scope::Session),
        pattern,
        ..ReplyPermission::once(&ask.request_id, Action::Allow)
    };
    reply(&world.engine, &wanted, &replier).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_grant_for_a_command_does_not_cover_variables() {
    let world = TestPlugins::of(EXEC).await;
    grant(&world, "echo done");
    assert_eq!(world.text("t", json!({})).await, "0 done\n");
    for (env, target) in [
        (json!({"GIT_EXTERNAL_DIFF": "x"}), "GIT_EXTERNAL_DIFF=x"),
        (json!({"PATH": "/evil"}), "PATH=/evil"),
        (json!({"A": "b c", "LANG": "C"}), "A=b c"),
        (json!({"EMPTY": ""}), "EMPTY="),
        (json!({"QUOTED": "'; echo done"}), "QUOTED="),
    ] {
        let text = world.text("t", json!({"env": env})).await;
        let shown = text.replace('\'', "");
        assert!(shown.starts_with(&format!("1 not allowed: shell {target}")), "{env}: {text}");
    }
    // As in a shell line.
    let text = world.text("line", json!({"line": "GIT_EXTERNAL_DIFF=x echo done"})).await;
    assert_eq!(text, "1 ");
    assert_eq!(world.text("line", json!({"line": "echo done"})).await, "0 done\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_person_sees_the_variables_and_their_grant_covers_no_others() {
    let world = TestPlugins::of(EXEC).await;
    grant(&world, "echo done");
    let mut frontend = world.engine.asks.subscribe(true, None);
    let env = json!({"env": {"GIT_EXTERNAL_DIFF": "a b"}});
    let answer = async {
        let ask = asked(&mut frontend).await;
        assert_eq!(ask.command.as_deref(), Some("GIT_EXTERNAL_DIFF='a b' echo done"));
        assert_eq!(ask.target, "GIT_EXTERNAL_DIFF='a b'");
        let patterns: Vec<&str> = ask.suggestions.iter().map(|suggestion| suggestion.pattern.as_str()).collect();
        assert_eq!(patterns, ["'GIT_EXTERNAL_DIFF=a b'"]);
        allow(&world, &ask, Some(patterns[0].to_owned()));
    };
    let (text, ()) = tokio::join!(world.text("t", env.clone()), answer);
    assert_eq!(text, "0 done\n");
    drop(frontend);
    assert_eq!(world.text("t", env).await, "0 done\n");
    let text = world.text("t", json!({"env": {"GIT_EXTERNAL_DIFF": "other"}})).await;
    assert!(text.starts_with("1 not allowed: shell GIT_EXTERNAL_DIFF=other"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn variables_that_change_nothing_need_no_permission() {
    let world = TestPlugins::of(EXEC).await;
    grant(&world, "echo done");
    // The program always gets the first, and never the second.
    let path = std::env::var("PATH").unwrap();
    let env = json!({"env": {"PATH": path, "LD_PRELOAD": "/evil.so"}});
    assert_eq!(world.text("t", env).await, "0 done\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_variable_names_are_refused() {
    let world = TestPlugins::of(EXEC).await;
    world.allow_all();
    for name in ["A-B", "1A", "A B", "A=B", "", "A;echo", "BASH_FUNC_ls%%"] {
        let result = world.call("t", json!({"env": {name: "x"}})).await;
        let words = format!("expected variable names of letters, digits and _, such as LANG, got {name:?}");
        assert!(result.is_error && result.text().contains(&words), "{name}: {}", result.text());
    }
    let text = world.text("t", json!({"command": "sh", "args": ["-c", "echo $A $B"], "env": {"A": "1", "B": 2}})).await;
    assert_eq!(text, "0 1 2\n", "{}", Value::from(text.clone()));
}
