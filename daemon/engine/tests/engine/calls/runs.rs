//! Calls that end well, badly, late, or not by themselves.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, join_all};
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use toold_engine::call::{Call, CallError, Caller, Principal};
use toold_engine::lanes::CallLimits;
use toold_engine::permission::{grant, revoke};
use toold_engine::policy::grants::GrantScope;
use toold_engine::schema::Schema;
use toold_engine::spool::Spool;
use toold_engine::tool::{ToolError, ToolOutput};
use toold_proto::call::{Progress, Stream};
use toold_proto::event::{EventBody, Outcome};
use toold_proto::tool::{Block, CallId, SessionId, SourceKind};
use toold_test_kit::SampleTool;

use crate::calls::test_engine::{CallAnswer, RecordedValues, TestEngine, settle, shell};

/// Says that it is gone when it is dropped.
struct DropFlag(Arc<AtomicBool>);

impl Drop for DropFlag {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Never ends, and does not listen when it is told to.
fn deaf(name: &str, gone: &Arc<AtomicBool>) -> SampleTool {
    let gone = gone.clone();
    SampleTool::new(name).run(move |_, _| {
        let gone = DropFlag(gone.clone());
        async move {
            let _gone = gone;
            std::future::pending().await
        }
        .boxed()
    })
}

/// Takes as many seconds as its input says, and ends early when it is cancelled.
fn slow(name: &str) -> SampleTool {
    SampleTool::new(name).run(|input, cx| {
        async move {
            tokio::select! {
                () = sleep(Duration::from_secs(input["s"].as_u64().unwrap())) => Ok(ToolOutput::text("done")),
                () = cx.cancel.cancelled() => Err(ToolError::Cancelled),
            }
        }
        .boxed()
    })
}

impl TestEngine {
    /// How the only call ended, by its event and its row.
    #[track_caller]
    fn outcome(&self) -> Outcome {
        self.records_are_closed();
        let rows = self.audit.0.lock().unwrap();
        assert_eq!(rows.len(), 1);
        let ended = self.events().into_iter().find_map(|what| match what {
            EventBody::CallFinished { outcome, .. } => Some(outcome),
            _ => None,
        });
        assert_eq!(ended, Some(rows[0].outcome));
        rows[0].outcome
    }

    async fn all_work_is_gone(&self) {
        self.engine.tasks.close();
        self.engine.tasks.wait().await;
    }
}

fn with_timeout(call: Call, seconds: u64) -> Call {
    Call { timeout: Some(Duration::from_secs(seconds)), ..call }
}

#[tokio::test(start_paused = true)]
async fn a_call_has_one_start_one_end_one_row_and_one_answer() {
    let fixture = TestEngine::new(vec![SampleTool::new("t")]);
    let result = fixture.call("t", json!({})).await.unwrap();
    assert_eq!((result.text().as_str(), result.is_error, result.cached), ("ran", false, false));
    assert_eq!(fixture.kinds(), ["call.started", "call.finished"]);
    assert_eq!(fixture.outcome(), Outcome::Ok);
    let counts = fixture.engine.counts.read();
    assert_eq!((counts.started, counts.finished, counts.in_flight), (1, 1, 0));
}

#[tokio::test(start_paused = true)]
async fn null_arguments_are_an_empty_object() {
    let fixture = TestEngine::new(vec![
        SampleTool::new("t").run(|input, _| async move { Ok(ToolOutput::text(input.to_string())) }.boxed()),
    ]);
    assert_eq!(fixture.call("t", Value::Null).await.unwrap().text(), "{}");
}

#[tokio::test(start_paused = true)]
async fn bad_news_is_a_result() {
    let fixture = TestEngine::new(vec![
        SampleTool::new("t").run(|_, _| async { Err(ToolError::Failed("no such file".into())) }.boxed()),
    ]);
    let result = fixture.call("t", json!({})).await.unwrap();
    assert_eq!((result.text().as_str(), result.is_error), ("no such file", true));
    assert_eq!(fixture.outcome(), Outcome::Error);
}

#[tokio::test(start_paused = true)]
async fn a_panic_is_the_failure_of_its_own_call() {
    let early = SampleTool::new("early").run(|_, _| async { panic!("on purpose") }.boxed());
    let late = SampleTool::new("late").run(|_, _| {
        async {
            sleep(Duration::from_secs(1)).await;
            panic!("on purpose")
        }
        .boxed()
    });
    let needs = SampleTool::new("needs").needs(|_| panic!("on purpose"));
    let fixture = TestEngine::new(vec![early, late, needs, SampleTool::new("other")]);
    for name in ["early", "late", "needs"] {
        let answer = fixture.call(name, json!({})).await;
        assert!(matches!(&answer, Err(CallError::Failed(words)) if words.contains("on purpose")), "{answer:?}");
    }
    fixture.call("other", json!({})).await.unwrap();
    fixture.records_are_closed();
    assert_eq!(fixture.caller.in_flight.load(Ordering::SeqCst), 0);
}

#[tokio::test(start_paused = true)]
async fn all_argument_errors_are_reported() {
    let schema = json!({
        "type": "object",
        "properties": {"path": {"type": "string"}, "limit": {"type": "integer", "minimum": 1}},
        "required": ["path"],
        "additionalProperties": false
    });
    let ran = Arc::new(AtomicUsize::new(0));
    let count = ran.clone();
    let fake = SampleTool::new("t").spec(|spec| spec.input = Schema::compile_input(schema).unwrap()).needs(move |_| {
        count.fetch_add(1, Ordering::SeqCst);
        Vec::new()
    });
    let fixture = TestEngine::new(vec![fake]);
    let Err(CallError::InvalidArgs { errors, .. }) = fixture.call("t", json!({"limit": 0, "x": 1})).await else {
        panic!("expected invalid arguments");
    };
    assert_eq!(errors.len(), 3, "{errors:?}");
    assert_eq!(ran.load(Ordering::SeqCst), 0);
    assert_eq!(fixture.outcome(), Outcome::InvalidArgs);
}

#[tokio::test(start_paused = true)]
async fn unknown_tool_is_reported_with_a_suggestion() {
    let fixture = TestEngine::new(vec![SampleTool::new("read_file"), SampleTool::new("bash")]);
    let answer = fixture.call("readfile", json!({})).await;
    let Err(CallError::UnknownTool { suggestions, .. }) = answer else { panic!("{answer:?}") };
    assert_eq!(suggestions, ["read_file"]);
    assert!(fixture.kinds().is_empty());
}

#[tokio::test(start_paused = true)]
async fn the_id_of_a_call_is_its_own_while_it_is_in_flight() {
    let fixture = TestEngine::new(vec![slow("t")]);
    let first = fixture.start(fixture.prepare_as("c", "t", json!({"s": 5})));
    settle().await;
    let second = fixture.start(fixture.prepare_as("c", "t", json!({"s": 0}))).await.unwrap();
    assert_eq!(second, Err(CallError::DuplicateCallId(CallId::parse("c").unwrap())));
    first.await.unwrap().unwrap();
    fixture.start(fixture.prepare_as("c", "t", json!({"s": 0}))).await.unwrap().unwrap();
    fixture.records_are_closed();
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_call_is_answered_at_once() {
    let fixture = TestEngine::new(vec![slow("t")]);
    let call = fixture.prepare("t", json!({"s": 100}));
    let cancel = call.cancel.clone();
    let call = fixture.start(call);
    settle().await;
    let start = Instant::now();
    cancel.cancel();
    assert_eq!(call.await.unwrap(), Err(CallError::Cancelled));
    assert_eq!(start.elapsed(), Duration::ZERO);
    assert_eq!(fixture.outcome(), Outcome::Cancelled);
    assert!(fixture.session.calls().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_cancelled_before_it_begins_does_not_run() {
    let gone = Arc::new(AtomicBool::new(false));
    let fixture = TestEngine::new(vec![deaf("t", &gone)]);
    let call = fixture.prepare("t", json!({}));
    call.cancel.cancel();
    assert_eq!(fixture.start(call).await.unwrap(), Err(CallError::Cancelled));
    assert!(!gone.load(Ordering::SeqCst), "it never began, so nothing was dropped");
    assert_eq!(fixture.outcome(), Outcome::Cancelled);
}

#[tokio::test(start_paused = true)]
async fn a_call_says_whether_it_had_begun_when_the_daemon_ended() {
    let fixture = TestEngine::new(vec![slow("t").serial()]);
    let begun = fixture.prepare("t", json!({"s": 100}));
    let cancel = begun.cancel.clone();
    let begun = fixture.start(begun);
    settle().await;
    let waiting = fixture.start(fixture.prepare("t", json!({"s": 1})));
    settle().await;
    fixture.engine.stop.cancel();
    let waiting = waiting.await.unwrap().unwrap();
    assert!(waiting.is_not_run() && waiting.text().contains("before the call began"), "{waiting:?}");
    cancel.cancel();
    assert_eq!(begun.await.unwrap(), Err(CallError::Ended));
    fixture.records_are_closed();
}

#[tokio::test(start_paused = true)]
async fn data_that_is_no_base64_is_told_of_and_not_passed_on() {
    let image = |data: &str| Block::Image { data: data.to_owned(), mime_type: "image/png".to_owned() };
    let content = vec![image("!!!"), image("aGVs\nbG8=\n"), image("aGVsb")];
    let tool = SampleTool::new("t").run(move |_, _| {
        let content = content.clone();
        async move { Ok(ToolOutput { content, ..ToolOutput::default() }) }.boxed()
    });
    let result = TestEngine::new(vec![tool]).call("t", json!({})).await.unwrap();
    let left_out = Block::text("[image/png is left out: its data is not Base64]");
    assert_eq!(result.content, [left_out.clone(), image("aGVsbG8="), left_out]);
}

#[tokio::test(start_paused = true)]
async fn work_that_does_not_listen_is_dropped_after_its_grace_and_frees_its_place_then() {
    let gone = Arc::new(AtomicBool::new(false));
    let fixture = TestEngine::new(vec![deaf("deaf", &gone).serial(), SampleTool::new("next").serial()]);
    let call = fixture.prepare("deaf", json!({}));
    let cancel = call.cancel.clone();
    let first = fixture.start(call);
    settle().await;
    cancel.cancel();
    assert_eq!(first.await.unwrap(), Err(CallError::Cancelled));
    let start = Instant::now();
    assert!(!gone.load(Ordering::SeqCst));
    assert_eq!(fixture.caller.in_flight.load(Ordering::SeqCst), 1, "its place is not free");
    fixture.call("next", json!({})).await.unwrap();
    assert_eq!(start.elapsed(), Duration::from_secs(2));
    assert!(gone.load(Ordering::SeqCst));
    assert_eq!(fixture.caller.in_flight.load(Ordering::SeqCst), 0);
    fixture.records_are_closed();
}

#[tokio::test(start_paused = true)]
async fn a_call_whose_future_is_dropped_stops_its_work_and_closes_its_record() {
    let gone = Arc::new(AtomicBool::new(false));
    let fixture = TestEngine::new(vec![deaf("t", &gone).serial()]);
    let call = fixture.start(fixture.prepare("t", json!({})));
    settle().await;
    call.abort();
    let _ = call.await;
    assert_eq!(fixture.outcome(), Outcome::Cancelled);
    fixture.all_work_is_gone().await;
    assert!(gone.load(Ordering::SeqCst));
    assert_eq!(fixture.caller.in_flight.load(Ordering::SeqCst), 0);
}

#[tokio::test(start_paused = true)]
async fn timeout_keeps_the_output_so_far() {
    let fake = SampleTool::new("t").run(|_, cx| {
        async move {
            cx.output(Stream::Stdout, "first line\n");
            std::future::pending().await
        }
        .boxed()
    });
    let fixture = TestEngine::new(vec![fake]);
    let result = fixture.start(with_timeout(fixture.prepare("t", json!({})), 3)).await.unwrap().unwrap();
    assert!(result.is_error && result.metadata["timed_out"] == true);
    assert!(result.text().contains("first line") && result.text().contains("3000 ms"), "{}", result.text());
    assert_eq!(fixture.outcome(), Outcome::TimedOut);
    fixture.all_work_is_gone().await;
}

#[tokio::test(start_paused = true)]
async fn tool_may_return_partial_output_on_timeout() {
    let fake = SampleTool::new("t").run(|_, cx| {
        async move {
            cx.cancel.cancelled().await;
            assert!(cx.timed_out());
            Ok(ToolOutput::error("half of it"))
        }
        .boxed()
    });
    let fixture = TestEngine::new(vec![fake]);
    let result = fixture.start(with_timeout(fixture.prepare("t", json!({})), 3)).await.unwrap().unwrap();
    assert_eq!((result.text().as_str(), &result.metadata["timed_out"]), ("half of it", &json!(true)));
}

#[tokio::test(start_paused = true)]
async fn the_deadline_is_the_smallest_that_anybody_names() {
    let own = slow("own").spec(|spec| spec.timeout = Some(Duration::from_secs(5)));
    let long = slow("long").spec(|spec| spec.timeout = Some(Duration::from_secs(100_000)));
    let fixture = TestEngine::new(vec![own, long, slow("plain")]);
    for (name, asked, expected) in [("own", 3, 3), ("own", 9, 5), ("plain", 9_999, 120), ("long", 9_999, 600)] {
        let start = Instant::now();
        let call = with_timeout(fixture.prepare(name, json!({"s": 50_000})), asked);
        let result = fixture.start(call).await.unwrap().unwrap();
        assert_eq!(start.elapsed().as_secs(), expected, "{name}");
        assert!(result.metadata["timed_out"] == true);
    }
}

#[tokio::test(start_paused = true)]
async fn serial_calls_of_a_session_run_in_their_order_and_others_beside_them() {
    let log: Arc<Mutex<Vec<String>>> = Arc::default();
    let logging = |name: &str| {
        let log = log.clone();
        SampleTool::new(name).run(move |input, _| {
            let log = log.clone();
            async move {
                log.lock().unwrap().push(format!("+{}", input["n"]));
                sleep(Duration::from_secs(1)).await;
                log.lock().unwrap().push(format!("-{}", input["n"]));
                Ok(ToolOutput::text("done"))
            }
            .boxed()
        })
    };
    let fixture = TestEngine::new(vec![logging("serial").serial(), logging("beside")]);
    let mut calls = Vec::new();
    for n in 0..4 {
        calls.push(fixture.start(fixture.prepare("serial", json!({"n": n}))));
        settle().await;
    }
    calls.push(fixture.start(fixture.prepare("beside", json!({"n": 9}))));
    for call in calls {
        call.await.unwrap().unwrap();
    }
    let log: Vec<String> = log.lock().unwrap().iter().filter(|entry| !entry.ends_with('9')).cloned().collect();
    assert_eq!(log, ["+0", "-0", "+1", "-1", "+2", "-2", "+3", "-3"]);
}

#[tokio::test(start_paused = true)]
async fn lane_wait_is_reported_bounded_and_not_part_of_the_time_limit() {
    let fixture = TestEngine::with(vec![slow("t").serial()], |engine| {
        let settings = toold_engine::Settings { max_timeout: Duration::from_secs(10_000), ..Default::default() };
        engine.settings.store(Arc::new(settings));
    });
    let long = slow("long").serial().spec(|spec| spec.timeout = Some(Duration::from_secs(10_000)));
    let key = toold_engine::registry::SourceKey {
        kind: SourceKind::Builtin,
        name: "long".into(),
        scope: toold_engine::registry::SourceScope::Global,
    };
    fixture.engine.registry.put(key, toold_engine::tool::Origin::Builtin, vec![Arc::new(long)]).unwrap();
    let first = fixture.start(fixture.prepare("long", json!({"s": 100})));
    settle().await;
    let heard = Arc::new(RecordedValues::default());
    let second = Call { progress: vec![heard.clone()], ..with_timeout(fixture.prepare("t", json!({"s": 1})), 2) };
    let result = fixture.start(second).await.unwrap().unwrap();
    assert_eq!((result.text().as_str(), result.duration_ms), ("done", 1000));
    assert_eq!(heard.0.lock().unwrap().len(), 6, "one every 15 s");
    first.await.unwrap().unwrap();

    let first = fixture.start(fixture.prepare("long", json!({"s": 5_000})));
    settle().await;
    let start = Instant::now();
    let given_up = fixture.call("t", json!({"s": 1})).await.unwrap();
    assert_eq!(start.elapsed(), Duration::from_secs(600));
    assert!(given_up.is_error && given_up.metadata["skipped"] == true, "{}", given_up.text());
    first.abort();
}

#[tokio::test(start_paused = true)]
async fn interrupt_skips_waiting_calls_and_lets_running_ones_end() {
    let fixture = TestEngine::new(vec![slow("t").serial()]);
    let calls: Vec<_> = (0..3).map(|_| fixture.start(fixture.prepare("t", json!({"s": 5})))).collect();
    settle().await;
    assert_eq!(fixture.session.interrupt(), 2);
    let results: Vec<_> = join_all(calls).await.into_iter().map(|result| result.unwrap().unwrap()).collect();
    assert_eq!(results.iter().filter(|result| result.metadata.contains_key("skipped")).count(), 2);
    assert_eq!(results[0].text(), "done");
    fixture.records_are_closed();
}

#[tokio::test(start_paused = true)]
async fn calls_over_a_limit_are_refused_and_those_that_wait_count() {
    let fixture = TestEngine::with(vec![slow("t").serial()], |engine| engine.limits = CallLimits::new(2, 3));
    let first = fixture.start(fixture.prepare("t", json!({"s": 5})));
    let second = fixture.start(fixture.prepare("t", json!({"s": 5})));
    settle().await;
    let third = fixture.call("t", json!({"s": 5})).await;
    assert!(
        matches!(&third, Err(CallError::Overloaded(words)) if words.contains("this connection already")),
        "{third:?}"
    );
    let from = |connection| Caller::new(connection, Principal::Agent);
    let other = |call: Call, connection| Call { caller: Arc::new(from(connection)), ..call };
    let fourth = fixture.start(other(fixture.prepare("t", json!({"s": 0})), 2));
    settle().await;
    let fifth = fixture.start(other(fixture.prepare("t", json!({"s": 0})), 3)).await.unwrap();
    assert!(matches!(&fifth, Err(CallError::Overloaded(words)) if words.contains("the daemon already")), "{fifth:?}");
    for call in [first, second, fourth] {
        call.await.unwrap().unwrap();
    }
    fixture.call("t", json!({"s": 0})).await.unwrap();
    fixture.records_are_closed();
}

#[tokio::test(start_paused = true)]
async fn calls_inside_calls_share_the_lane_and_the_time_and_end_somewhere() {
    let deepest = Arc::new(AtomicUsize::new(0));
    let seen = deepest.clone();
    let fake = SampleTool::new("t").serial().run(move |_, cx| {
        let seen = seen.clone();
        async move {
            seen.fetch_max(cx.depth as usize, Ordering::SeqCst);
            match cx.call_tool("t", json!({})).await {
                Ok(result) => Ok(ToolOutput::text(result.text())),
                Err(error) => Ok(ToolOutput::text(error.to_string())),
            }
        }
        .boxed()
    });
    let fixture = TestEngine::new(vec![fake, slow("slow").serial(), nesting("outer", "slow", json!({"s": 100}))]);
    let result = timeout(Duration::from_secs(1), fixture.call("t", json!({}))).await.unwrap().unwrap();
    assert!(result.text().contains("nest deeper than 8"), "{}", result.text());
    assert_eq!(deepest.load(Ordering::SeqCst), 8);
    let start = Instant::now();
    fixture.start(with_timeout(fixture.prepare("outer", json!({})), 7)).await.unwrap().unwrap();
    assert_eq!(start.elapsed().as_secs(), 7);
    fixture.all_work_is_gone().await;
    fixture.records_are_closed();
}

/// Calls another tool, and gives what that gave.
fn nesting(name: &str, inner: &'static str, arguments: Value) -> SampleTool {
    SampleTool::new(name).run(move |_, cx| {
        let arguments = arguments.clone();
        async move {
            let result = cx.call_tool(inner, arguments).await.map_err(|error| ToolError::Failed(error.to_string()))?;
            Ok(ToolOutput { is_error: result.is_error, ..ToolOutput::text(result.text()) })
        }
        .boxed()
    })
}

#[tokio::test(start_paused = true)]
async fn nested_call_is_decided_with_the_plugin_in_the_chain() {
    let inner = SampleTool::new("inner").needs(|_| vec![shell("ls")]);
    let outer = nesting("outer", "inner", json!({})).spec(|spec| {
        spec.source.kind = SourceKind::Plugin;
        spec.source.name = "plug".into();
    });
    let fixture = TestEngine::new(vec![inner, outer]);
    let allow = serde_json::from_value(json!({"category": "shell", "pattern": "ls", "scope": "always"})).unwrap();
    grant(&fixture.engine, &allow, GrantScope::Always, None).unwrap();
    assert!(!fixture.call("inner", json!({})).await.unwrap().is_error);
    let denied = fixture.call("outer", json!({})).await.unwrap();
    assert!(denied.is_error && denied.text().contains("grant shell ls --chain plug"), "{}", denied.text());
}

#[tokio::test(start_paused = true)]
async fn permission_revoked_during_the_lane_wait_stops_the_call() {
    let ran = Arc::new(AtomicUsize::new(0));
    let count = ran.clone();
    let fake = SampleTool::new("bash").serial().needs(|_| vec![shell("ls")]).run(move |_, _| {
        let count = count.clone();
        async move {
            count.fetch_add(1, Ordering::SeqCst);
            Ok(ToolOutput::text("ran"))
        }
        .boxed()
    });
    let fixture = TestEngine::new(vec![fake, slow("slow").serial()]);
    let allow = serde_json::from_value(json!({"category": "shell", "pattern": "ls", "scope": "always"})).unwrap();
    let id = grant(&fixture.engine, &allow, GrantScope::Always, None).unwrap().id;
    let slow = fixture.start(fixture.prepare("slow", json!({"s": 5})));
    settle().await;
    let call = fixture.start(fixture.prepare("bash", json!({})));
    settle().await;
    revoke(&fixture.engine, &id).unwrap();
    assert!(call.await.unwrap().unwrap().is_error);
    assert_eq!(ran.load(Ordering::SeqCst), 0);
    slow.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn permission_revoked_during_another_ask_stops_the_call() {
    let fake = SampleTool::new("bash").needs(|_| vec![shell("ls"), shell("rm x")]);
    let fixture = TestEngine::new(vec![fake]);
    let allow = serde_json::from_value(json!({"category": "shell", "pattern": "ls", "scope": "always"})).unwrap();
    let id = grant(&fixture.engine, &allow, GrantScope::Always, None).unwrap().id;
    let mut frontend = fixture.engine.asks.subscribe(true, None);
    let call = fixture.start(fixture.prepare("bash", json!({})));
    let first = frontend.next().await;
    revoke(&fixture.engine, &id).unwrap();
    settle().await;
    let toold_proto::permission::PermissionEvent::Asked { request } = first else { panic!("{first:?}") };
    assert_eq!(request.target, "rm x");
    let by = toold_proto::permission::Answerer { client: None, connection: 1 };
    let replier = toold_engine::asks::Replier { by, widest: toold_proto::permission::Scope::Always, session: None };
    let yes = serde_json::from_value(json!({"request_id": request.request_id, "action": "allow"})).unwrap();
    toold_engine::asks::reply(&fixture.engine, &yes, &replier).unwrap();
    settle().await;
    let again = fixture.engine.asks.pending();
    assert_eq!(again.iter().map(|ask| ask.target.as_str()).collect::<Vec<_>>(), ["ls"], "it is asked anew");
    drop(frontend);
    assert!(call.await.unwrap().unwrap().is_error);
}

#[tokio::test(start_paused = true)]
async fn structured_results_are_held_to_their_schema() {
    let schema = json!({"type": "object", "required": ["n"]});
    let fake = SampleTool::new("t")
        .spec(|spec| spec.output = Some(Schema::compile(schema).unwrap()))
        .run(|input, _| async move { Ok(ToolOutput { structured: Some(input), ..ToolOutput::text("fine") }) }.boxed());
    let fixture = TestEngine::new(vec![fake]);
    assert!(!fixture.call("t", json!({"n": 1})).await.unwrap().is_error);
    let result = fixture.call("t", json!({"m": 1})).await.unwrap();
    assert!(result.is_error && result.text().contains("output schema"), "{}", result.text());
}

/// Keeps texts under the name of their call.
struct Shelf(Mutex<Vec<String>>);

impl Spool for Shelf {
    fn keep<'a>(&'a self, _: &'a SessionId, call: &'a CallId, text: &'a str) -> BoxFuture<'a, std::io::Result<String>> {
        self.0.lock().unwrap().push(text.to_owned());
        async move { Ok(format!("/spool/{call}")) }.boxed()
    }
}

#[tokio::test(start_paused = true)]
async fn a_long_result_is_cut_and_kept_whole() {
    let long: String = (0..20_000).map(|n| format!("line {n}\n")).collect();
    let text = long.clone();
    let fake = || {
        let text = text.clone();
        SampleTool::new("t").run(move |_, _| {
            let text = text.clone();
            async move { Ok(ToolOutput::text(text)) }.boxed()
        })
    };
    let shelf = Arc::new(Shelf(Mutex::default()));
    let fixture = TestEngine::with(vec![fake()], |engine| engine.spool = Some(shelf.clone()));
    let result = fixture.call("t", json!({})).await.unwrap();
    assert!(result.text().len() < 70_000 && result.text().contains("/spool/call_1"));
    assert!(result.text().starts_with("line 0\n") && result.text().contains("line 19999\n"));
    assert_eq!(result.metadata["spool"], "/spool/call_1");
    assert_eq!(*shelf.0.lock().unwrap(), [long]);
    let lost = TestEngine::new(vec![fake()]).call("t", json!({})).await.unwrap();
    assert!(lost.text().contains("lost"));
}

#[tokio::test(start_paused = true)]
async fn progress_is_numbered_without_gaps() {
    let fake = SampleTool::new("t").run(|_, cx| {
        async move {
            for n in 0..5 {
                cx.message(n.to_string());
                cx.output(Stream::Stderr, "x");
                tokio::task::yield_now().await;
            }
            Ok(ToolOutput::text("done"))
        }
        .boxed()
    });
    let fixture = TestEngine::new(vec![fake]);
    let heard: Arc<RecordedValues<(u64, Progress)>> = Arc::default();
    let call = Call { progress: vec![heard.clone()], ..fixture.prepare("t", json!({})) };
    fixture.start(call).await.unwrap().unwrap();
    let heard: Vec<u64> = heard.0.lock().unwrap().iter().map(|(seq, _)| *seq).collect();
    assert_eq!(heard, (0..10).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn one_session_s_calls_do_not_wait_for_another_s() {
    let fixture = TestEngine::new(vec![slow("t").serial()]);
    let first = fixture.start(fixture.prepare("t", json!({"s": 100})));
    settle().await;
    let other =
        Call { session: crate::calls::test_engine::session("s2", "/p"), ..fixture.prepare("t", json!({"s": 1})) };
    let start = Instant::now();
    fixture.start(other).await.unwrap().unwrap();
    assert_eq!(start.elapsed().as_secs(), 1);
    first.abort();
}

#[tokio::test(start_paused = true)]
async fn random_endings_keep_nothing_open() {
    let gone = Arc::new(AtomicBool::new(false));
    let wake = Arc::new(Notify::new());
    let fixture = TestEngine::new(vec![slow("slow"), slow("serial").serial(), deaf("deaf", &gone).serial()]);
    let mut calls: Vec<(CancellationToken, tokio::task::JoinHandle<CallAnswer>)> = Vec::new();
    for n in 0..60u64 {
        let name = ["slow", "serial", "deaf"][(n % 3) as usize];
        let call = with_timeout(fixture.prepare(name, json!({"s": n % 7})), 1 + n % 5);
        calls.push((call.cancel.clone(), fixture.start(call)));
        if n % 4 == 0 {
            calls[(n / 2) as usize].0.cancel();
        }
        if n % 11 == 0 {
            calls[(n / 3) as usize].1.abort();
        }
        sleep(Duration::from_millis(137 * (n % 4))).await;
    }
    for (_, call) in calls {
        let _ = call.await;
    }
    wake.notify_waiters();
    fixture.all_work_is_gone().await;
    fixture.records_are_closed();
    assert_eq!(fixture.caller.in_flight.load(Ordering::SeqCst), 0);
    assert!(fixture.session.lane.try_take().is_some());
    assert_eq!(fixture.engine.counts.read().in_flight, 0);
}
