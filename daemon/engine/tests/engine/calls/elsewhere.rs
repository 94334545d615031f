//! Asks that people at other machines answer, and asks of other machines that people here answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::json;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};
use toold_engine::asks::AskSubscription;
use toold_engine::asks::relay::{Relayed, show};
use toold_engine::permission::grant;
use toold_engine::policy::grants::GrantScope;
use toold_proto::permission::{Action, Answerer, Ask, GrantPermission, ReplyPermission, Resolution, Resolved, Scope};
use toold_proto::session::Mode;
use toold_proto::tool::{Category, SessionId};

use crate::calls::asks::{answer, bash, fixture, next_ask, next_end, ran, was_denied};
use crate::calls::test_engine::{TestEngine, settle};

const SHOWN: Duration = Duration::from_secs(300);

/// People elsewhere, who are there while the flag is set.
fn elsewhere(fixture: &TestEngine, is_there: &Arc<AtomicBool>) -> AskSubscription {
    let is_there = is_there.clone();
    fixture.engine.asks.subscribe_elsewhere(move |_| is_there.load(Ordering::Relaxed))
}

fn theirs() -> Ask {
    serde_json::from_value(json!({
        "request_id": "ask_there_1", "session_id": "theirs", "call_id": "c9", "call_ids": ["c9"],
        "category": "shell", "target": "make", "tool": "bash", "source": {"kind": "builtin", "name": "shell"},
        "agent": "claude", "cwd": "/srv", "suggestions": [{"scope": "project", "pattern": "make *"}],
        "asked_at": "2026-01-01T00:00:00Z", "expires_at": "2026-01-01T00:10:00Z"
    }))
    .unwrap()
}

/// Shows an ask of the daemon `build`, whose end there is `end`.
fn shown(fixture: &TestEngine, end: impl Future<Output = Resolved> + Send + 'static) -> JoinHandle<Relayed> {
    let nowhere = SessionId::parse("nowhere").unwrap();
    let shown = show(&fixture.engine, "build", &theirs(), &nowhere, Vec::new(), SHOWN);
    tokio::spawn(shown.answer(end))
}

#[tokio::test(start_paused = true)]
async fn people_elsewhere_are_asked_while_they_are_there() {
    let fixture = fixture();
    let is_there = Arc::new(AtomicBool::new(false));
    let mut elsewhere = elsewhere(&fixture, &is_there);
    was_denied(fixture.call("bash", bash("ls")).await, "no connected client can ask you");
    is_there.store(true, Ordering::Relaxed);
    let call = fixture.begin("bash", bash("ls"));
    let ask = next_ask(&mut elsewhere).await;
    fixture.reply(answer(&ask, Action::Allow)).unwrap();
    ran(call.await.unwrap());
    assert_eq!(next_end(&mut elsewhere).await.action, Resolution::Allow);
}

#[tokio::test(start_paused = true)]
async fn an_ask_waits_a_while_for_people_elsewhere_who_left() {
    let fixture = fixture();
    let is_there = Arc::new(AtomicBool::new(true));
    let mut elsewhere = elsewhere(&fixture, &is_there);
    let call = fixture.begin("bash", bash("ls"));
    next_ask(&mut elsewhere).await;
    is_there.store(false, Ordering::Relaxed);
    fixture.engine.asks.reconsider();
    let start = Instant::now();
    was_denied(call.await.unwrap(), "no connected client can ask you");
    assert_eq!(start.elapsed(), Duration::from_secs(10));
    // One who comes back in time is still asked.
    is_there.store(true, Ordering::Relaxed);
    let call = fixture.begin("bash", bash("ls"));
    next_end(&mut elsewhere).await;
    let ask = next_ask(&mut elsewhere).await;
    for now in [false, true] {
        is_there.store(now, Ordering::Relaxed);
        fixture.engine.asks.reconsider();
        settle().await;
    }
    assert!(timeout(Duration::from_secs(60), elsewhere.next()).await.is_err());
    fixture.reply(answer(&ask, Action::Allow)).unwrap();
    ran(call.await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn a_foreign_ask_is_answered_here_and_stored_nowhere() {
    let fixture = fixture();
    let is_there = Arc::new(AtomicBool::new(true));
    let mut elsewhere = elsewhere(&fixture, &is_there);
    let relayed = shown(&fixture, std::future::pending());
    // A frontend that comes later sees it, too.
    settle().await;
    let mut frontend = fixture.frontend();
    let ask = next_ask(&mut frontend).await;
    assert_eq!(ask.reason.as_deref(), Some("on build, by its tool bash"));
    assert_eq!((ask.source.name.as_str(), ask.agent.as_deref()), ("build", Some("claude")));
    assert!(elsewhere.try_next().is_none(), "it is not sent on");
    let always = ReplyPermission {
        scope: Some(Scope::Always),
        pattern: Some("make *".into()),
        message: Some("go on".into()),
        ..answer(&ask, Action::Allow)
    };
    fixture.reply(always.clone()).unwrap();
    assert_eq!(relayed.await.unwrap(), Relayed::Answered(always));
    assert_eq!(next_end(&mut frontend).await.action, Resolution::Allow);
    assert!(fixture.engine.grants.snapshot().iter().next().is_none());
}

#[tokio::test(start_paused = true)]
async fn neither_grants_nor_modes_answer_a_foreign_ask() {
    let fixture = fixture();
    let relayed = shown(&fixture, std::future::pending());
    settle().await;
    let of_all = GrantPermission {
        category: Category::Shell,
        pattern: "*".into(),
        scope: Scope::Always,
        action: Action::Allow,
        tools: None,
        session_id: None,
        cwd: None,
        chain: Vec::new(),
        expires_in: None,
    };
    grant(&fixture.engine, &of_all, GrantScope::Always, None).unwrap();
    fixture.session.set_mode(Mode::Plan);
    fixture.engine.policy_changed();
    settle().await;
    assert_eq!(fixture.engine.asks.pending().len(), 1);
    // It ends by itself.
    assert_eq!(relayed.await.unwrap(), Relayed::Nobody);
    assert!(fixture.engine.asks.pending().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_foreign_ask_ends_here_when_it_ended_elsewhere() {
    let fixture = fixture();
    let mut frontend = fixture.frontend();
    let (sender, end) = tokio::sync::oneshot::channel();
    let relayed = shown(&fixture, async { end.await.unwrap() });
    let ask = next_ask(&mut frontend).await;
    let by = Some(Answerer { client: Some("anna at desk".into()), connection: 0 });
    let (request_id, how) = ("ask_there_1".into(), "denied by anna at desk".into());
    let there = Resolved { request_id, action: Resolution::Deny, scope: Some(Scope::Once), by, how };
    let sent = Resolved { how: String::new(), ..there.clone() };
    sender.send(sent).unwrap();
    assert_eq!(next_end(&mut frontend).await, Resolved { request_id: ask.request_id.clone(), ..there });
    assert_eq!(relayed.await.unwrap(), Relayed::Elsewhere);
    assert!(fixture.reply(answer(&ask, Action::Allow)).is_err());
    // So does one that nobody waits for any more.
    let dropped = shown(&fixture, std::future::pending());
    next_ask(&mut frontend).await;
    dropped.abort();
    assert_eq!(next_end(&mut frontend).await.action, Resolution::Cancelled);
}

#[tokio::test(start_paused = true)]
async fn only_frontends_that_answer_everything_count_for_asks_of_other_machines() {
    let fixture = fixture();
    let asks = &fixture.engine.asks;
    let mut changes = asks.changes();
    let is_there = Arc::new(AtomicBool::new(true));
    let _others = (
        asks.subscribe(false, None),
        asks.subscribe(true, Some(fixture.session.id.clone())),
        asks.subscribe_for(fixture.caller.clone()),
        elsewhere(&fixture, &is_there),
    );
    assert!(!asks.can_all_be_answered());
    changes.mark_unchanged();
    let frontend = fixture.frontend();
    changes.changed().await.unwrap();
    assert!(asks.can_all_be_answered());
    drop(frontend);
    assert!(!asks.can_all_be_answered());
}
