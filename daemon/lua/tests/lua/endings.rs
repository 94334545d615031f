//! Functions that run after the end of a call: `ctx.on_end`.

use serde_json::json;
use tokio_util::sync::CancellationToken;
use toold_engine::asks::{Replier, reply};
use toold_engine::call::CallError;
use toold_engine::events::EventSelection;
use toold_engine::execute::execute_tool;
use toold_engine::offers::read;
use toold_proto::event::EventBody;
use toold_proto::permission::{Answerer, PermissionEvent, Scope};

use crate::world::{TestPlugins, soon};

fn tool(body: &str) -> String {
    format!("hygge.register_tool{{name = 't', execute = function(ctx, input)\n {body} end}}")
}

/// The texts of the next log lines of plugins, one for each that begins with one of `expected`.
async fn logged(world: &TestPlugins, run: impl Future<Output = ()>, expected: &[&str]) -> Vec<String> {
    let mut events = world.engine.events.subscribe(EventSelection::NoCalls, None).receiver;
    run.await;
    let mut lines = Vec::new();
    while lines.len() < expected.len() {
        if let EventBody::Log { message, .. } = &soon(events.recv()).await.unwrap().body {
            lines.push(message.clone());
        }
    }
    for (line, expected) in lines.iter().zip(expected) {
        assert!(line.starts_with(expected), "{lines:#?}");
    }
    lines
}

const LOG: &str =
    "ctx.on_end(function(outcome) hygge.log('info', outcome.status .. ': ' .. tostring(outcome.error)) end)";

#[tokio::test(flavor = "multi_thread")]
async fn functions_run_after_the_call_in_reverse_order() {
    let world = TestPlugins::of(&tool(
        "hygge.fs.write('lock', 'x')
         ctx.on_end(function(outcome)
           hygge.fs.write('ended', outcome.status .. tostring(outcome.error) .. type(outcome.duration_ms) .. hygge.fs.read('second'))
         end)
         ctx.on_end(function() hygge.fs.remove('lock') hygge.fs.write('second', 'second') end)
         return 'done'",
    ))
    .await;
    world.allow_all();
    assert_eq!(world.text("t", json!({})).await, "done");
    assert!(!world.work().join("lock").exists());
    assert_eq!(std::fs::read_to_string(world.work().join("ended")).unwrap(), "oknilnumbersecond");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_is_told_and_stays_the_result() {
    let world = TestPlugins::of(&tool(&format!("{LOG} error('boom')"))).await;
    let run = async {
        let result = world.call("t", json!({})).await;
        assert_eq!((result.text().as_str(), result.is_error), ("p.lua:2: boom", true));
    };
    logged(&world, run, &["error: p.lua:2: boom"]).await;
    let world = TestPlugins::of(&tool(&format!("{LOG} return {{content = 'no', is_error = true}}"))).await;
    logged(&world, async { assert!(world.call("t", json!({})).await.is_error) }, &["error: no"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_in_a_function_is_logged_and_changes_nothing() {
    let world = TestPlugins::of(&tool(
        "ctx.on_end(function() hygge.log('info', 'still') end) ctx.on_end(function() error('late') end) return 'fine'",
    ))
    .await;
    let run = async { assert_eq!(world.text("t", json!({})).await, "fine") };
    logged(&world, run, &["a function of ctx.on_end failed: p.lua:2: late", "still"]).await;
}

/// Starts a call that waits for long, cancels it when it runs, and returns its answer.
async fn cancelled(world: &TestPlugins) {
    let cancel = CancellationToken::new();
    let mut call = world.call_of("t", json!({}));
    call.cancel = cancel.clone();
    let mut events = world.engine.events.subscribe(EventSelection::NoCalls, None).receiver;
    let running = async {
        while !matches!(&events.recv().await.unwrap().body, EventBody::Notice { .. }) {}
        cancel.cancel();
    };
    let (answer, ()) = tokio::join!(world.execute(call), soon(running));
    assert!(matches!(answer, Err(CallError::Cancelled)), "{answer:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_call_cleans_up() {
    let body = format!(
        "ctx.on_end(function()
           hygge.fs.remove('lock')
           hygge.log('info', 'ran ' .. hygge.exec('echo', {{'this'}}).stdout .. tostring(ctx.cancelled()))
         end)
         {LOG}
         hygge.fs.write('lock', 'x')
         hygge.notify('it runs')"
    );
    for wait in ["hygge.sleep('1h')", "while true do pcall(function() while true do end end) end"] {
        let world = TestPlugins::of(&tool(&format!("{body} {wait}"))).await;
        world.allow_all();
        logged(&world, cancelled(&world), &["cancelled: it was cancelled", "ran this\nfalse"]).await;
        assert!(!world.work().join("lock").exists());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_timed_out_cleans_up() {
    for wait in ["hygge.sleep('1h')", "while true do end"] {
        let script = tool(&format!("{LOG} {wait}")).replace("execute", "timeout = '1s', execute");
        let world = TestPlugins::of(&script).await;
        let run = async { assert_eq!(world.call("t", json!({})).await.metadata["timed_out"], true) };
        logged(&world, run, &["timed_out: the call's time limit is exceeded"]).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn functions_have_a_limit_of_their_own() {
    let script = tool("ctx.on_end(function() while true do pcall(hygge.sleep, '1h') end end) return 'fine'");
    let world = TestPlugins::of(&script.replace("execute", "timeout = '1s', execute")).await;
    let run = async { assert_eq!(world.text("t", json!({})).await, "fine") };
    logged(&world, run, &["a function of ctx.on_end failed: the time limit for functions of ctx.on_end"]).await;
    assert_eq!(world.text("t", json!({})).await, "fine");
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_is_asked_after_the_end_of_a_call() {
    let world = TestPlugins::of(&tool(
        "local function ask() return hygge.exec('touch', {'a'}) end
         ctx.on_end(function()
           hygge.log('info', 'same ' .. ask().code)
           hygge.log('info', 'other ' .. hygge.exec('touch', {'b'}).stderr)
           hygge.log('info', 'nested ' .. hygge.call_tool('u').content)
           hygge.log('info', tostring(select(2, pcall(ctx.question, {question = 'Well?'}))))
         end)
         return ask().code",
    ))
    .await;
    world.write(
        "q.lua",
        "hygge.register_tool{name = 'u', description = 'u', execute = function() end, permission = function()
        return {category = 'shell', target = 'touch c'} end}",
    );
    world.until_described("u", "u").await;
    let mut asks = world.engine.asks.subscribe(true, None);
    let answer = async {
        loop {
            let PermissionEvent::Asked { request } = asks.next().await else { continue };
            let answer = serde_json::from_value(json!({"request_id": request.request_id, "action": "allow"})).unwrap();
            let by = Answerer { connection: 1, client: None };
            reply(&world.engine, &answer, &Replier { by, widest: Scope::Always, session: None }).unwrap();
        }
    };
    let run = async {
        tokio::select! {
            text = world.text("t", json!({})) => assert_eq!(text, "0"),
            () = answer => {}
        }
    };
    let lines = logged(
        &world,
        run,
        &[
            "same 0",
            "other not allowed: shell touch b",
            "nested not allowed: shell touch c",
            "no connected client can answer",
        ],
    )
    .await;
    assert!(lines[1..3].iter().all(|line| line.contains("you are not asked now")), "{lines:#?}");
    assert!(!world.work().join("b").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn functions_come_from_handlers_only() {
    let world = TestPlugins::of(
        "local last, messages = nil, {}
         local function try(name) messages[#messages + 1] = name .. ': ' .. tostring(select(2, pcall(last.on_end, print))) end
         hygge.register_hook('post_tool', function() try('hook') end)
         hygge.register_tool{name = 't', execute = function(ctx)
           last = ctx
           hygge.all{function() ctx.on_end(function() try('ending') end) end}
         end}
         hygge.register_tool{name = 'messages', permission = function() try('permission') end,
           execute = function() return table.concat(messages, '\\n') end}",
    )
    .await;
    world.call("t", json!({})).await;
    let text = world.text("messages", json!({})).await;
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 3, "{text}");
    for (line, name) in lines.iter().zip(["ending", "hook", "permission"]) {
        assert!(line.starts_with(name) && line.contains("ctx.on_end: no handler is running"), "{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_resources_and_prompts_have_ends_too() {
    let world = TestPlugins::of(&format!(
        "local function run(ctx) {LOG} return 'x' end
         hygge.register_command{{name = 'c', execute = run}}
         hygge.register_resource{{name = 'r', uri = 'r://r', read = run}}"
    ))
    .await;
    let command = world.host.commands()[0].tool.clone();
    let run = async {
        let call = world.call_of("c", json!({"input": ""}));
        soon(execute_tool(&world.engine, command, call)).await.unwrap();
        read(&world.engine, "r://r", world.call_of("", json!({}))).await.unwrap();
    };
    logged(&world, run, &["ok: nil", "ok: nil"]).await;
}
