//! Calls that ask, and frontends that come, answer and go.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};
use toold_engine::asks::{AskReplyError, AskSubscription, Replier, reply};
use toold_engine::call::{Call, CallError};
use toold_engine::events::EventSelection;
use toold_engine::execute::execute;
use toold_engine::grant_commands::grant_command;
use toold_engine::need::Need;
use toold_engine::permission::{grant, revoke};
use toold_engine::policy::grants::{Grant, GrantScope, GrantStore};
use toold_engine::policy::pattern::Pattern;
use toold_engine::tool::ToolOutput;
use toold_proto::call::Progress;
use toold_proto::permission::{
    Action, Answerer, Ask, GrantPermission, PermissionEvent, ReplyPermission, Resolution, Resolved, Scope,
};
use toold_proto::provide::CallWait;
use toold_proto::session::Mode;
use toold_proto::tool::{CallId, Category};
use toold_test_kit::SampleTool;

use crate::calls::test_engine::{CallAnswer, RecordedValues, TestEngine, session, settle, shell};

/// `bash {line}` needs that line; `write {diff}` needs to write a file; `late {line}` asks while it runs.
pub(crate) fn fixture() -> TestEngine {
    TestEngine::new(tools())
}

fn tools() -> Vec<SampleTool> {
    let line = |input: &Value| input["line"].as_str().unwrap().to_owned();
    vec![
        SampleTool::new("bash").needs(move |input| match line(input) {
            cut if cut.ends_with("((") => vec![Need::new(Category::Shell, cut).with_command(|command| {
                command.is_unjudged = true;
                command.unsure = Some("it ends too early".into());
            })],
            odd if odd.contains("((") => vec![Need::new(Category::Shell, odd)],
            line => line.split(" && ").map(shell).collect(),
        }),
        SampleTool::new("write").needs(|input| {
            let diff = input["diff"].as_str().map(str::to_owned);
            vec![Need::new(Category::FileWrite, "/p/a b/[x].txt").with_file(|file| file.diff = diff)]
        }),
        SampleTool::new("late").run(move |input, cx| {
            async move {
                cx.require(shell(&line(&input))).await?;
                Ok(ToolOutput::text("ran late"))
            }
            .boxed()
        }),
        SampleTool::new("always").run(|_, cx| {
            async move {
                for _ in 0..2 {
                    cx.require(Need { always_asked: true, ..Need::new(Category::Mcp, "s/sampling") }).await?;
                }
                Ok(ToolOutput::text("asked twice"))
            }
            .boxed()
        }),
    ]
}

pub(crate) fn bash(line: &str) -> Value {
    json!({"line": line})
}

fn person(name: &str) -> Replier {
    Replier { by: Answerer { client: Some(name.into()), connection: 7 }, widest: Scope::Always, session: None }
}

pub(crate) fn answer(ask: &Ask, action: Action) -> ReplyPermission {
    ReplyPermission::once(&ask.request_id, action)
}

impl TestEngine {
    pub(crate) fn frontend(&self) -> AskSubscription {
        self.engine.asks.subscribe(true, None)
    }

    pub(crate) fn begin(&self, name: &str, arguments: Value) -> JoinHandle<CallAnswer> {
        self.start(self.prepare(name, arguments))
    }

    pub(crate) fn reply(&self, wanted: ReplyPermission) -> Result<(), AskReplyError> {
        reply(&self.engine, &wanted, &person("tester"))
    }

    fn allow(&self, ask: &Ask, scope: Scope) {
        self.reply(ReplyPermission { scope: Some(scope), ..answer(ask, Action::Allow) }).unwrap();
    }

    /// The result of a call that must not ask anybody.
    async fn unasked(&self, name: &str, arguments: Value) -> CallAnswer {
        let before = self.engine.asks.pending().len();
        let call = self.begin(name, arguments);
        settle().await;
        assert_eq!(self.engine.asks.pending().len(), before, "nobody should be asked");
        call.await.unwrap()
    }
}

pub(crate) async fn next_ask(frontend: &mut AskSubscription) -> Ask {
    match frontend.next().await {
        PermissionEvent::Asked { request } => *request,
        PermissionEvent::Resolved(resolved) => panic!("expected an ask, not {resolved:?}"),
    }
}

pub(crate) async fn next_end(frontend: &mut AskSubscription) -> Resolved {
    match frontend.next().await {
        PermissionEvent::Resolved(resolved) => resolved,
        PermissionEvent::Asked { request } => panic!("expected an end, not {request:?}"),
    }
}

#[track_caller]
pub(crate) fn ran(answer: CallAnswer) {
    let result = answer.unwrap();
    assert!(!result.is_error, "{}", result.text());
}

#[track_caller]
pub(crate) fn was_denied(answer: CallAnswer, words: &str) {
    let result = answer.unwrap();
    assert!(result.is_error && result.text().contains(words), "{words:?} is not in {:?}", result.text());
    assert!(result.metadata.contains_key("permission"));
}

#[tokio::test(start_paused = true)]
async fn nobody_there_is_a_denial_at_once_that_says_how_to_allow_it() {
    let fixture = fixture();
    let start = Instant::now();
    let result = fixture.call("bash", bash("rm it's")).await.unwrap();
    assert_eq!(start.elapsed(), Duration::ZERO);
    assert!(
        result.text().ends_with(r"toolctl permissions grant shell 'rm '\''it'\''\'\'''\''s'\'''"),
        "{}",
        result.text()
    );
    assert_eq!(result.metadata["permission"]["category"], "shell");
    assert_eq!(result.metadata["permission"]["target"], "rm it's");
    assert!(result.metadata["permission"]["rule"].as_str().unwrap().contains("default of shell"));
    assert_eq!(fixture.kinds(), ["call.started", "call.finished"]);
    // One who only looks on is nobody.
    let _watcher = fixture.engine.asks.subscribe(false, None);
    was_denied(fixture.call("bash", bash("ls")).await, "no connected client");
}

#[tokio::test(start_paused = true)]
async fn the_command_that_allows_it_can_be_parsed_back() {
    let fixture = fixture();
    for line in ["rm -rf x", "rm it's", "echo \"a\" *", "ls [a", "a\\b c", "cat a $x", "make"] {
        let refused = fixture.call("bash", bash(line)).await.unwrap().text();
        let (_, pattern) = refused.split_once("Allow it with: toolctl permissions grant shell ").expect(&refused);
        let unquoted = pattern.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\''));
        let pattern = unquoted.map_or(pattern.to_owned(), |inner| inner.replace(r"'\''", "'"));
        assert!(Pattern::parse(Category::Shell, &pattern).unwrap().matches(&shell(line)).is_some(), "{refused}");
    }
    // Only a rule for everything would be about it, and that is never what is meant.
    let refused = fixture.call("bash", bash("ls $((")).await.unwrap().text();
    assert!(refused.contains("No rule but one for every command allows it"), "{refused}");
    assert_eq!(refused.matches("it ends too early").count(), 1, "{refused}");
    // A long one does not hide why it is refused.
    let refused = fixture.call("bash", bash(&format!("make {}", "x".repeat(9000)))).await.unwrap().text();
    assert!(refused.len() < 1000 && refused.contains("permissions grant shell A_SHORTER_PATTERN"), "{refused}");
}

#[test]
fn words_of_a_command_are_quoted_where_a_shell_would_change_them() {
    let chain = ["outer".to_owned(), "plug".to_owned()];
    for (pattern, chain, expected) in [
        ("wttr.in:443", &[][..], "toolctl permissions grant network wttr.in:443"),
        ("wttr.in:443", &chain, "toolctl permissions grant network wttr.in:443 --chain outer --chain plug"),
        ("**", &[], "toolctl permissions grant network '**'"),
        ("", &[], "toolctl permissions grant network ''"),
        ("-x", &chain[1..], "toolctl permissions grant network --chain plug -- -x"),
    ] {
        assert_eq!(grant_command(Category::Network, pattern, chain), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_lets_the_call_go_on_once() {
    let fixture = fixture();
    let mut frontend = fixture.frontend();
    let call = fixture.begin("bash", bash("git push"));
    let ask = next_ask(&mut frontend).await;
    assert_eq!((ask.category, ask.target.as_str(), ask.tool.as_str()), (Category::Shell, "git push", "bash"));
    assert_eq!(ask.suggestions[0].pattern, "git push");
    fixture.allow(&ask, Scope::Once);
    ran(call.await.unwrap());
    let end = next_end(&mut frontend).await;
    assert_eq!((end.action, end.scope), (Resolution::Allow, Some(Scope::Once)));
    assert_eq!(end.by.unwrap().client.as_deref(), Some("tester"));
    let again = fixture.begin("bash", bash("git push"));
    fixture.reply(answer(&next_ask(&mut frontend).await, Action::Deny)).unwrap();
    was_denied(again.await.unwrap(), "the user said no");
    let kinds = ["call.started", "permission.asked", "permission.resolved", "call.finished"];
    assert_eq!(fixture.kinds(), [kinds, kinds].concat());
    let rows = fixture.audit.0.lock().unwrap();
    assert_eq!(rows[0].decisions[0].rule, "answer of tester (once)");
    assert_eq!(rows[1].decisions[0].verdict, "deny");
}

#[tokio::test(start_paused = true)]
async fn the_needs_of_a_call_are_asked_in_order_and_the_first_denial_ends_it() {
    let fixture = fixture();
    let mut frontend = fixture.frontend();
    let call = fixture.begin("bash", bash("a && b && c"));
    let first = next_ask(&mut frontend).await;
    assert_eq!(first.target, "a");
    fixture.allow(&first, Scope::Once);
    next_end(&mut frontend).await;
    let second = next_ask(&mut frontend).await;
    assert_eq!(second.target, "b");
    let no = ReplyPermission { message: Some("use make".into()), ..answer(&second, Action::Deny) };
    fixture.reply(no).unwrap();
    was_denied(call.await.unwrap(), "the user said no: use make");
    next_end(&mut frontend).await;
    assert!(frontend.try_next().is_none());
}

#[tokio::test(start_paused = true)]
async fn first_reply_counts_and_all_are_notified() {
    let fixture = fixture();
    let mut frontends = [fixture.frontend(), fixture.frontend(), fixture.frontend()];
    let call = fixture.begin("bash", bash("ls"));
    let mut asks = Vec::new();
    for frontend in &mut frontends {
        asks.push(next_ask(frontend).await);
    }
    fixture.reply(answer(&asks[1], Action::Deny)).unwrap();
    let late = fixture.reply(answer(&asks[0], Action::Allow));
    let how = late.unwrap_err().to_string();
    assert!(how.contains("already answered: denied by "), "{how}");
    was_denied(call.await.unwrap(), "");
    for frontend in &mut frontends {
        assert_eq!(next_end(frontend).await.action, Resolution::Deny);
        assert!(frontend.try_next().is_none());
    }
}

#[tokio::test(start_paused = true)]
async fn scopes_reach_as_far_as_they_say() {
    for (scope, same_project, other_project) in
        [(Scope::Session, false, false), (Scope::Project, true, false), (Scope::Always, true, true)]
    {
        let fixture = fixture();
        let mut frontend = fixture.frontend();
        let call = fixture.begin("bash", bash("ls"));
        fixture.allow(&next_ask(&mut frontend).await, scope);
        ran(call.await.unwrap());
        ran(fixture.unasked("bash", bash("ls")).await);
        drop(frontend);
        for (other, allowed) in [(session("s2", "/p"), same_project), (session("s3", "/q"), other_project)] {
            let call = Call { session: other, ..fixture.prepare("bash", bash("ls")) };
            assert_eq!(!execute(&fixture.engine, call).await.unwrap().is_error, allowed, "{scope:?}");
        }
        let other = fixture.call("bash", bash("ls -a")).await.unwrap();
        assert!(other.is_error, "a grant is for exactly the target");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_always_asked_has_an_ask_of_its_own_each_time() {
    let fixture = fixture();
    let mut frontend = fixture.frontend();
    let calls = [fixture.begin("always", json!({})), fixture.begin("always", json!({}))];
    let mut seen = Vec::new();
    while seen.len() < 4 {
        let PermissionEvent::Asked { request: ask } = frontend.next().await else { continue };
        assert!(ask.suggestions.is_empty() && !seen.contains(&ask.request_id), "{ask:?}");
        for scope in [Scope::Session, Scope::Project, Scope::Always] {
            let wider = ReplyPermission { scope: Some(scope), ..answer(&ask, Action::Allow) };
            assert!(matches!(fixture.reply(wider), Err(AskReplyError::CannotBeRemembered(_))));
        }
        fixture.allow(&ask, Scope::Once);
        seen.push(ask.request_id);
    }
    for call in calls {
        assert_eq!(call.await.unwrap().unwrap().text(), "asked twice");
    }
    // A refusal can be remembered.
    drop(frontend);
    let mut frontend = fixture.frontend();
    let call = fixture.begin("always", json!({}));
    let ask = next_ask(&mut frontend).await;
    fixture.reply(ReplyPermission { scope: Some(Scope::Session), ..answer(&ask, Action::Deny) }).unwrap();
    was_denied(call.await.unwrap(), "the user said no");
    was_denied(fixture.unasked("always", json!({})).await, "by grant");
}

#[tokio::test(start_paused = true)]
async fn a_denial_can_be_remembered() {
    let fixture = fixture();
    let mut frontend = fixture.frontend();
    let call = fixture.begin("bash", bash("rm x"));
    let ask = next_ask(&mut frontend).await;
    fixture.reply(ReplyPermission { scope: Some(Scope::Session), ..answer(&ask, Action::Deny) }).unwrap();
    was_denied(call.await.unwrap(), "");
    was_denied(fixture.unasked("bash", bash("rm x")).await, "grant_01234567_1");
}

#[tokio::test(start_paused = true)]
async fn reply_takes_a_suggested_pattern_and_nothing_wider() {
    let fixture = fixture();
    let mut frontend = fixture.frontend();
    let call = fixture.begin("bash", bash("git push -u origin main"));
    let ask = next_ask(&mut frontend).await;
    let patterns: Vec<&str> = ask.suggestions.iter().map(|suggestion| suggestion.pattern.as_str()).collect();
    assert_eq!(patterns, ["git push -u origin main", "git push *"]);
    let with = |pattern: &str| ReplyPermission {
        scope: Some(Scope::Session),
        pattern: Some(pattern.into()),
        ..answer(&ask, Action::Allow)
    };
    for wide in ["**", "*", "git p*"] {
        assert_eq!(fixture.reply(with(wide)), Err(AskReplyError::NotSuggested(wide.into())));
    }
    assert_eq!(fixture.engine.asks.pending().len(), 1, "a refused reply answers nothing");
    fixture.reply(with("git push *")).unwrap();
    ran(call.await.unwrap());
    ran(fixture.unasked("bash", bash("git push -f")).await);
    drop(frontend);
    was_denied(fixture.call("bash", bash("git pull")).await, "");
}

#[tokio::test(start_paused = true)]
async fn uncertain_command_is_allowed_once_or_not_at_all() {
    let fixture = fixture();
    let mut frontend = fixture.frontend();
    for line in ["echo $((x))", "cat $x"] {
        let call = fixture.begin("bash", bash(line));
        let ask = next_ask(&mut frontend).await;
        let always = ReplyPermission { scope: Some(Scope::Always), ..answer(&ask, Action::Allow) };
        assert!(matches!(fixture.reply(always), Err(AskReplyError::CannotBeRemembered(_))), "{line}");
        fixture.allow(&ask, Scope::Once);
        ran(call.await.unwrap());
        next_end(&mut frontend).await;
    }
}

#[tokio::test(start_paused = true)]
async fn odd_names_can_be_remembered() {
    let fixture = fixture();
    let mut frontend = fixture.frontend();
    let call = fixture.begin("write", json!({}));
    let ask = next_ask(&mut frontend).await;
    // The exact target, as it is shown.
    let reply = ReplyPermission {
        scope: Some(Scope::Project),
        pattern: Some("/p/a b/[x].txt".into()),
        ..answer(&ask, Action::Allow)
    };
    fixture.reply(reply).unwrap();
    ran(call.await.unwrap());
    ran(fixture.unasked("write", json!({})).await);
}

#[tokio::test(start_paused = true)]
async fn identical_asks_are_one_prompt_that_ends_with_the_last_call() {
    let fixture = fixture();
    let mut frontend = fixture.frontend();
    let calls: Vec<Call> = ["c1", "c2", "c3"].map(|id| fixture.prepare_as(id, "bash", bash("ls"))).into();
    let cancels: Vec<_> = calls.iter().map(|call| call.cancel.clone()).collect();
    let mut running = Vec::new();
    for call in calls {
        running.push(fixture.start(call));
        settle().await;
    }
    let ask = next_ask(&mut frontend).await;
    let ids: Vec<CallId> = ["c1", "c2", "c3"].map(|id| CallId::parse(id).unwrap()).into();
    assert_eq!((&ask.call_id, &ask.call_ids), (&ids[0], &ids));
    for gone in [1, 2] {
        cancels[gone - 1].cancel();
        settle().await;
        assert_eq!(fixture.engine.asks.pending()[0].call_ids, ids[gone..]);
        let now = next_ask(&mut frontend).await;
        assert_eq!((now.request_id, &now.call_ids[..]), (ask.request_id.clone(), &ids[gone..]), "who waits now");
    }
    assert!(frontend.try_next().is_none());
    cancels[2].cancel();
    assert_eq!(next_end(&mut frontend).await.action, Resolution::Cancelled);
    for call in running {
        assert_eq!(call.await.unwrap(), Err(CallError::Cancelled));
    }
    assert!(fixture.engine.asks.pending().is_empty());
    fixture.records_are_closed();
}

#[tokio::test(start_paused = true)]
async fn calls_in_flight_show_their_arguments_and_the_reason_why_they_wait() {
    let fixture = TestEngine::new(vec![SampleTool::new("bash").serial().needs(|_| vec![shell("ls")])]);
    let mut frontend = fixture.frontend();
    let lane = fixture.session.lane.try_take();
    let asking = fixture.begin("bash", json!({"line": "ls", "token": "abc"}));
    let ask = next_ask(&mut frontend).await;
    let waits = || fixture.session.calls().iter().map(|call| call.info().waits_for).collect::<Vec<_>>();
    assert_eq!(waits(), [Some(CallWait::Permission)]);
    fixture.allow(&ask, Scope::Once);
    settle().await;
    assert_eq!(waits(), [Some(CallWait::Lane)]);
    let info = fixture.session.calls()[0].info();
    assert_eq!((info.cwd.as_deref(), info.arguments.as_deref()), (Some("/p"), Some("line=ls token=[redacted]")));
    drop(lane);
    ran(asking.await.unwrap());
    let started = fixture.engine.events.subscribe_from_start(EventSelection::All).replay;
    let started = started.iter().find(|event| event.body.kind() == "call.started").unwrap().to_wire("e");
    let started = serde_json::to_value(started).unwrap();
    assert_eq!([&started["cwd"], &started["arguments"]], ["/p", "line=ls token=[redacted]"]);
    assert_eq!(started.get("client"), None);
}

#[tokio::test(start_paused = true)]
async fn one_answer_lets_all_identical_calls_go() {
    let fixture = fixture();
    let mut frontend = fixture.frontend();
    let calls = [fixture.begin("bash", bash("ls")), fixture.begin("bash", bash("ls"))];
    settle().await;
    fixture.allow(&next_ask(&mut frontend).await, Scope::Once);
    for call in calls {
        ran(call.await.unwrap());
    }
    next_end(&mut frontend).await;
    assert!(frontend.try_next().is_none());
}

#[tokio::test(start_paused = true)]
async fn writes_of_another_text_are_another_ask() {
    let fixture = fixture();
    let mut frontend = fixture.frontend();
    let calls = [fixture.begin("write", json!({"diff": "+a"})), fixture.begin("write", json!({"diff": "+b"}))];
    for _ in &calls {
        let ask = next_ask(&mut frontend).await;
        assert_eq!(ask.call_ids.len(), 1);
    }
    drop(frontend);
    for call in calls {
        was_denied(call.await.unwrap(), "");
    }
}

#[tokio::test(start_paused = true)]
async fn an_ask_lives_ten_minutes() {
    let fixture = fixture();
    let mut frontend = fixture.frontend();
    let start = Instant::now();
    let call = fixture.begin("bash", bash("ls"));
    let ask = next_ask(&mut frontend).await;
    assert_ne!(ask.asked_at, ask.expires_at);
    was_denied(call.await.unwrap(), "no answer within 600 s");
    assert_eq!(start.elapsed(), Duration::from_secs(600));
    assert_eq!(next_end(&mut frontend).await.action, Resolution::Expired);
    assert!(matches!(fixture.reply(answer(&ask, Action::Allow)), Err(AskReplyError::Ended(..))));
}

#[tokio::test(start_paused = true)]
async fn when_the_last_frontend_leaves_the_ask_waits_ten_seconds_for_another() {
    let fixture = fixture();
    let frontend = fixture.frontend();
    let call = fixture.begin("bash", bash("ls"));
    settle().await;
    drop(frontend);
    sleep(Duration::from_secs(9)).await;
    let mut second = fixture.frontend();
    sleep(Duration::from_secs(100)).await;
    let ask = next_ask(&mut second).await;
    let start = Instant::now();
    drop(second);
    was_denied(call.await.unwrap(), "toolctl permissions grant shell ls");
    assert_eq!(start.elapsed(), Duration::from_secs(10));
    assert!(matches!(fixture.reply(answer(&ask, Action::Allow)), Err(AskReplyError::Ended(..))));
    let ends: Vec<_> = fixture.kinds().into_iter().filter(|kind| kind.starts_with("permission")).collect();
    assert_eq!(ends, ["permission.asked", "permission.resolved"]);
}

#[tokio::test(start_paused = true)]
async fn asks_wait_for_frontends_that_are_expected_back_and_no_longer() {
    let fixture = fixture();
    fixture.engine.asks.expect_frontends();
    let start = Instant::now();
    let [answered, alone] = ["ls", "git push"].map(|line| fixture.begin("bash", bash(line)));
    sleep(Duration::from_secs(3)).await;
    let mut frontend = fixture.frontend();
    let ask = next_ask(&mut frontend).await;
    fixture.allow(&ask, Scope::Once);
    ran(answered.await.unwrap());
    drop(frontend);
    was_denied(alone.await.unwrap(), "no connected client");
    assert_eq!(start.elapsed(), Duration::from_secs(13), "since the frontend left");
    was_denied(fixture.call("bash", bash("make")).await, "no connected client");
    fixture.engine.asks.expect_frontends();
    was_denied(fixture.call("bash", bash("make")).await, "no connected client");
    was_denied(fixture.call("bash", bash("make")).await, "no connected client");
    assert_eq!(start.elapsed(), Duration::from_secs(23), "one waited");
}

#[tokio::test(start_paused = true)]
async fn the_deadline_stands_still_and_the_caller_hears_that_it_waits() {
    let fixture = fixture();
    let mut frontend = fixture.frontend();
    let heard = Arc::new(RecordedValues::default());
    let call = Call {
        timeout: Some(Duration::from_secs(1)),
        progress: vec![heard.clone()],
        ..fixture.prepare("late", bash("ls"))
    };
    let call = fixture.start(call);
    let ask = next_ask(&mut frontend).await;
    sleep(Duration::from_secs(100)).await;
    fixture.allow(&ask, Scope::Once);
    assert_eq!(call.await.unwrap().unwrap().text(), "ran late");
    let heard = heard.0.lock().unwrap();
    assert_eq!(heard.len(), 6, "one every 15 s");
    let Progress::Message { text } = &heard[0].1 else { panic!("{:?}", heard[0]) };
    assert!(text.contains("person"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_cancelled_while_it_runs_ends_its_ask() {
    let fixture = fixture();
    let mut frontend = fixture.frontend();
    let call = fixture.prepare("late", bash("ls"));
    let cancel = call.cancel.clone();
    let call = fixture.start(call);
    next_ask(&mut frontend).await;
    cancel.cancel();
    assert_eq!(call.await.unwrap(), Err(CallError::Cancelled));
    assert_eq!(next_end(&mut frontend).await.action, Resolution::Cancelled);
}

#[tokio::test(start_paused = true)]
async fn a_call_whose_task_dies_ends_its_ask() {
    let fixture = fixture();
    let mut frontend = fixture.frontend();
    for name in ["bash", "late"] {
        let call = fixture.begin(name, bash("ls"));
        next_ask(&mut frontend).await;
        call.abort();
        assert_eq!(next_end(&mut frontend).await.action, Resolution::Cancelled);
    }
    settle().await;
    fixture.records_are_closed();
}

fn permission(pattern: &str) -> GrantPermission {
    serde_json::from_value(json!({"category": "shell", "pattern": pattern, "scope": "always"})).unwrap()
}

#[tokio::test(start_paused = true)]
async fn grant_from_elsewhere_answers_pending_asks() {
    let fixture = fixture();
    let mut frontend = fixture.frontend();
    let call = fixture.begin("bash", bash("git push"));
    let other = fixture.begin("bash", bash("rm x"));
    let asks = [next_ask(&mut frontend).await, next_ask(&mut frontend).await];
    let info = grant(&fixture.engine, &permission("git *"), GrantScope::Always, Some("toolctl".into())).unwrap();
    assert_eq!((info.pattern.as_str(), info.by.as_deref()), ("git *", Some("toolctl")));
    ran(call.await.unwrap());
    let end = next_end(&mut frontend).await;
    assert_eq!((end.request_id, end.action, end.by), (asks[0].request_id.clone(), Resolution::Allow, None));
    assert_eq!(fixture.engine.asks.pending().len(), 1);
    ran(fixture.unasked("bash", bash("git pull")).await);
    assert!(revoke(&fixture.engine, &info.id).unwrap());
    assert!(!revoke(&fixture.engine, &info.id).unwrap());
    let mode_ends_it = async {
        fixture.session.set_mode(Mode::Plan);
        fixture.engine.policy_changed();
    };
    mode_ends_it.await;
    was_denied(other.await.unwrap(), "mode plan");
    assert_eq!(next_end(&mut frontend).await.action, Resolution::Deny);
}

#[tokio::test(start_paused = true)]
async fn an_answer_of_one_holds_for_all_that_wait() {
    let fixture = fixture();
    let mut frontend = fixture.frontend();
    let first = fixture.begin("bash", bash("git push -a"));
    let second = fixture.begin("bash", bash("git push -b"));
    let ask = next_ask(&mut frontend).await;
    next_ask(&mut frontend).await;
    let reply = ReplyPermission {
        scope: Some(Scope::Session),
        pattern: Some("git push *".into()),
        ..answer(&ask, Action::Allow)
    };
    fixture.reply(reply).unwrap();
    ran(first.await.unwrap());
    ran(second.await.unwrap());
    assert!(fixture.engine.asks.pending().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_slow_reader_loses_no_ask_and_sees_none_that_is_over() {
    let fixture = fixture();
    let mut slow = fixture.frontend();
    let calls: Vec<_> = (0..250).map(|n| fixture.begin("bash", bash(&format!("x{n}")))).collect();
    settle().await;
    let pending = fixture.engine.asks.pending();
    assert_eq!(pending.len(), 250);
    for ask in &pending[..100] {
        fixture.allow(ask, Scope::Once);
    }
    settle().await;
    for ask in &pending[100..] {
        assert_eq!(next_ask(&mut slow).await.request_id, ask.request_id);
    }
    assert!(slow.try_next().is_none());
    drop(slow);
    for call in calls {
        call.await.unwrap().unwrap();
    }
    fixture.records_are_closed();
}

#[tokio::test(start_paused = true)]
async fn limited_author_is_held_to_its_session_and_scope() {
    let fixture = fixture();
    let mut agent = fixture.engine.asks.subscribe(true, Some(fixture.session.id.clone()));
    let call = fixture.begin("bash", bash("ls"));
    let other = Call { session: session("s2", "/p"), ..fixture.prepare("bash", bash("rm x")) };
    was_denied(execute(&fixture.engine, other).await, "no connected client");
    let ask = next_ask(&mut agent).await;
    let answerer = |session| Replier { widest: Scope::Session, session, ..person("agent") };
    let own = answerer(Some(fixture.session.id.clone()));
    let foreign = answerer(Some(session("s2", "/p").id.clone()));
    let always = ReplyPermission { scope: Some(Scope::Always), ..answer(&ask, Action::Allow) };
    assert!(matches!(reply(&fixture.engine, &always, &foreign), Err(AskReplyError::Unknown(_))));
    assert_eq!(reply(&fixture.engine, &always, &own), Err(AskReplyError::TooWide(Scope::Always, Scope::Session)));
    reply(&fixture.engine, &ReplyPermission { scope: Some(Scope::Session), ..always }, &own).unwrap();
    ran(call.await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn a_stopping_daemon_asks_nobody() {
    let fixture = fixture();
    let _frontend = fixture.frontend();
    fixture.engine.stop.cancel();
    assert!(matches!(
        fixture.call("bash", bash("ls")).await,
        Err(CallError::PermissionEngine(_) | CallError::Cancelled)
    ));
    fixture.records_are_closed();
}

struct Full;

impl GrantStore for Full {
    fn add(&self, _: &Grant) -> Result<(), String> {
        Err("the disk is full".into())
    }

    fn remove(&self, _: &str) -> Result<(), String> {
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn answer_that_cannot_be_stored_is_reported_and_the_ask_stays_pending() {
    let fixture = fixture();
    fixture.engine.grants.load(Vec::new(), Arc::new(Full));
    let mut frontend = fixture.frontend();
    let call = fixture.begin("bash", bash("ls"));
    let ask = next_ask(&mut frontend).await;
    let always = ReplyPermission { scope: Some(Scope::Always), ..answer(&ask, Action::Allow) };
    let refused = fixture.reply(always).unwrap_err();
    assert_eq!(refused.to_string(), "can't store the answer: nothing was changed: the disk is full");
    fixture.allow(&ask, Scope::Once);
    ran(call.await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn refusal_that_cannot_be_stored_holds_and_says_so() {
    let fixture = fixture();
    fixture.engine.grants.load(Vec::new(), Arc::new(Full));
    let mut frontend = fixture.frontend();
    let call = fixture.begin("bash", bash("ls"));
    let ask = next_ask(&mut frontend).await;
    let never = ReplyPermission { scope: Some(Scope::Always), ..answer(&ask, Action::Deny) };
    let said = fixture.reply(never).unwrap_err().to_string();
    assert!(said.contains("only until the daemon stops") && said.ends_with("the disk is full"), "{said}");
    was_denied(call.await.unwrap(), "the user said no");
    drop(frontend);
    was_denied(fixture.call("bash", bash("ls")).await, "");
    assert_eq!(fixture.engine.grants.snapshot().len(), 1);
}

/// A database that is so slow that the call is given up meanwhile.
struct SlowStore(tokio_util::sync::CancellationToken);

impl GrantStore for SlowStore {
    fn add(&self, _: &Grant) -> Result<(), String> {
        self.0.cancel();
        Ok(())
    }

    fn remove(&self, _: &str) -> Result<(), String> {
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_was_stored_is_no_answer_to_an_unknown_request() {
    let fixture = fixture();
    let mut frontend = fixture.frontend();
    let call = fixture.prepare("bash", bash("ls"));
    let cancel = call.cancel.clone();
    let call = fixture.start(call);
    let ask = next_ask(&mut frontend).await;
    // The call ends between the two halves of the reply.
    fixture.engine.grants.load(Vec::new(), Arc::new(SlowStore(cancel.clone())));
    cancel.cancel();
    let always = ReplyPermission { scope: Some(Scope::Always), ..answer(&ask, Action::Allow) };
    let replied = fixture.reply(always);
    drop(call);
    assert_eq!(replied, Ok(()));
    assert_eq!(fixture.engine.grants.snapshot().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn grants_are_of_the_chain_that_they_were_given_for() {
    let fixture = fixture();
    let mut frontend = fixture.frontend();
    let through = |plugin: &str| Call { chain: Arc::from([plugin.to_owned()]), ..fixture.prepare("bash", bash("ls")) };
    let call = fixture.start(through("one"));
    let ask = next_ask(&mut frontend).await;
    assert_eq!(ask.chain, ["one"]);
    fixture.allow(&ask, Scope::Always);
    ran(call.await.unwrap());
    ran(fixture.start(through("one")).await.unwrap());
    drop(frontend);
    was_denied(fixture.start(through("two")).await.unwrap(), "--chain two");
    was_denied(fixture.call("bash", bash("ls")).await, "");
}
