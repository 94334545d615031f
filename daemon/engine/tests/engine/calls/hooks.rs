//! Hooks before and after calls.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tokio::time::sleep;
use toold_engine::call::CallError;
use toold_engine::cx::Cx;
use toold_engine::hooks::{Hook, HookAnswer, HookEvent, HookHealth, HookInput, HookSpec};
use toold_engine::registry::{SourceKey, SourceScope};
use toold_engine::schema::Schema;
use toold_engine::tool::ToolOutput;
use toold_proto::hook::HookDecision;
use toold_proto::tool::SourceKind;
use toold_test_kit::SampleTool;

use crate::calls::test_engine::{CallAnswer, TestEngine};

type Says = Arc<dyn Fn(HookInput) -> BoxFuture<'static, Result<HookAnswer, String>> + Send + Sync>;

struct FakeHook {
    spec: HookSpec,
    says: Says,
}

impl Hook for FakeHook {
    fn spec(&self) -> &HookSpec {
        &self.spec
    }

    fn run<'a>(&'a self, input: HookInput, _: Option<Arc<Cx>>) -> BoxFuture<'a, Result<HookAnswer, String>> {
        (self.says)(input)
    }
}

fn key(name: &str) -> SourceKey {
    SourceKey { kind: SourceKind::Plugin, name: name.into(), scope: SourceScope::Global }
}

fn hook(
    event: HookEvent,
    says: impl Fn(HookInput) -> BoxFuture<'static, Result<HookAnswer, String>> + Send + Sync + 'static,
) -> FakeHook {
    let spec = HookSpec {
        name: "guard".into(),
        source: key("plug"),
        event,
        priority: 0,
        asynchronous: false,
        timeout: Duration::from_secs(1),
        fail_closed: false,
        tools: None,
        health: HookHealth::default(),
    };
    FakeHook { spec, says: Arc::new(says) }
}

/// One that says the same each time.
fn saying(event: HookEvent, answer: HookAnswer) -> FakeHook {
    hook(event, move |_| std::future::ready(Ok(answer.clone())).boxed())
}

fn closed(mut hook: FakeHook) -> FakeHook {
    hook.spec.fail_closed = true;
    hook
}

/// The answer of an echoing tool that takes `{n: integer}`.
async fn with(hooks: Vec<FakeHook>) -> (TestEngine, CallAnswer) {
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
    let echo = SampleTool::new("echo")
        .spec(|spec| spec.input = Schema::compile_input(schema).unwrap())
        .run(|input, _| async move { Ok(ToolOutput::text(input.to_string())) }.boxed());
    let fixture = TestEngine::new(vec![echo]);
    let hooks = hooks.into_iter().map(|hook| Arc::new(hook) as Arc<dyn Hook>).collect();
    fixture.engine.hooks.replace(&key("plug"), hooks);
    let answer = fixture.call("echo", json!({"n": 1})).await;
    fixture.records_are_closed();
    (fixture, answer)
}

async fn text_with(hooks: Vec<FakeHook>) -> String {
    with(hooks).await.1.unwrap().text()
}

fn denies(reason: &str) -> HookAnswer {
    HookAnswer { decision: Some(HookDecision::Deny), reason: Some(reason.into()), ..HookAnswer::default() }
}

fn changes_input(input: Value) -> HookAnswer {
    HookAnswer { decision: Some(HookDecision::Modify), modified_tool_input: Some(input), ..HookAnswer::default() }
}

use HookEvent::{PostTool, PreTool};

#[tokio::test(start_paused = true)]
async fn a_hook_can_refuse_a_call() {
    let (_, answer) = with(vec![saying(PreTool, denies("not on Fridays"))]).await;
    let result = answer.unwrap();
    assert!(result.is_error && result.text().contains("guard") && result.text().contains("not on Fridays"));
}

#[tokio::test(start_paused = true)]
async fn a_hook_can_change_the_arguments_which_are_checked_again() {
    assert_eq!(text_with(vec![saying(PreTool, changes_input(json!({"n": 2})))]).await, "{\"n\":2}");
    let (_, answer) = with(vec![saying(PreTool, changes_input(json!({"n": "two"})))]).await;
    assert!(matches!(answer, Err(CallError::InvalidArgs { .. })), "{answer:?}");
    assert_eq!(text_with(vec![saying(PreTool, HookAnswer::default())]).await, "{\"n\":1}");
}

#[tokio::test(start_paused = true)]
async fn hooks_run_by_priority_on_the_previous_output() {
    let adds = |priority: i64| {
        let mut hook = hook(PreTool, move |input| {
            let n = input.tool_input.unwrap()["n"].as_i64().unwrap();
            std::future::ready(Ok(changes_input(json!({"n": n * 10 + priority})))).boxed()
        });
        hook.spec.priority = priority;
        hook
    };
    assert_eq!(text_with(vec![adds(3), adds(1), adds(2)]).await, "{\"n\":1123}");
}

#[tokio::test(start_paused = true)]
async fn a_hook_can_change_or_withhold_the_result() {
    let changed = HookAnswer { modified_tool_result: Some(json!({"content": "redacted"})), ..HookAnswer::default() };
    assert_eq!(text_with(vec![saying(PostTool, changed)]).await, "redacted");
    let (_, answer) = with(vec![saying(PostTool, denies("secret"))]).await;
    let result = answer.unwrap();
    assert!(result.is_error && result.text().contains("withheld") && !result.text().contains("{\"n\""));
}

fn failing(event: HookEvent) -> Vec<FakeHook> {
    let error = hook(event, |_| std::future::ready(Err("broken".to_owned())).boxed());
    let slow = hook(event, |_| {
        async {
            sleep(Duration::from_secs(100)).await;
            Ok(denies("too late"))
        }
        .boxed()
    });
    let panics = hook(event, |_| async { panic!("on purpose") }.boxed());
    vec![error, slow, panics]
}

#[tokio::test(start_paused = true)]
async fn failing_hook_lets_the_call_continue() {
    for event in [PreTool, PostTool] {
        for hook in failing(event) {
            assert_eq!(text_with(vec![hook]).await, "{\"n\":1}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_hook_that_fails_closed_ends_the_call() {
    for event in [PreTool, PostTool] {
        for hook in failing(event) {
            let (_, answer) = with(vec![closed(hook)]).await;
            let result = answer.unwrap();
            assert!(result.is_error && result.text().contains("the hook failed"), "{}", result.text());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_asynchronous_hook_delays_and_changes_nothing() {
    let seen: Arc<Mutex<Vec<String>>> = Arc::default();
    let kept = seen.clone();
    let mut hook = hook(PreTool, move |input| {
        let kept = kept.clone();
        async move {
            sleep(Duration::from_millis(500)).await;
            kept.lock().unwrap().push(input.tool_name.unwrap());
            Ok(denies("ignored"))
        }
        .boxed()
    });
    hook.spec.asynchronous = true;
    let (fixture, answer) = with(vec![hook]).await;
    assert_eq!(answer.unwrap().text(), "{\"n\":1}");
    assert!(seen.lock().unwrap().is_empty());
    fixture.engine.tasks.close();
    fixture.engine.tasks.wait().await;
    assert_eq!(*seen.lock().unwrap(), ["echo"]);
}

#[tokio::test(start_paused = true)]
async fn a_hook_s_consent_skips_no_permission() {
    let fixture =
        TestEngine::new(vec![SampleTool::new("bash").needs(|_| vec![crate::calls::test_engine::shell("ls")])]);
    let allow = HookAnswer { decision: Some(HookDecision::Allow), ..HookAnswer::default() };
    fixture.engine.hooks.replace(&key("plug"), vec![Arc::new(saying(PreTool, allow))]);
    assert!(fixture.call("bash", json!({})).await.unwrap().is_error);
}
