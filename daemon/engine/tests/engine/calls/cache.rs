//! Results that are served again, and identical calls that run once.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use toold_engine::cache::ResultCache;
use toold_engine::call::{Call, CallError};
use toold_engine::cx::Cx;
use toold_engine::dependencies::{FileChecks, FileStamp};
use toold_engine::hooks::{Hook, HookAnswer, HookEvent, HookHealth, HookInput, HookSpec};
use toold_engine::need::Need;
use toold_engine::policy::Policy;
use toold_engine::registry::{SourceKey, SourceScope};
use toold_engine::tool::{ToolError, ToolOutput};
use toold_proto::call::Progress;
use toold_proto::tool::{Category, SourceKind};
use toold_test_kit::SampleTool;

use crate::calls::test_engine::{CallAnswer, RecordedValues, TestEngine, session, settle};

const LONG: Duration = Duration::from_secs(3600);

/// Files that are as they were, but for those that somebody wrote.
#[derive(Default)]
struct Paper(Mutex<HashSet<PathBuf>>);

impl Paper {
    fn write(&self, path: &str) {
        self.0.lock().unwrap().insert(path.into());
    }
}

impl FileChecks for Paper {
    fn is_current(&self, stamp: &FileStamp) -> bool {
        !self.0.lock().unwrap().contains(&stamp.path)
    }

    fn stands(&self, need: &Need) -> bool {
        !self.0.lock().unwrap().contains(&PathBuf::from(&need.target))
    }
}

fn stamp(path: &str) -> FileStamp {
    FileStamp { path: path.into(), facts: None, settled: true, digest: None }
}

/// How often a tool ran.
type Runs = Arc<AtomicUsize>;

fn runs(runs: &Runs) -> usize {
    runs.load(Ordering::SeqCst)
}

/// A cacheable tool that says which run of it this is, after `work`.
fn counting(
    name: &str,
    work: impl for<'a> Fn(&'a Value, &'a Cx) -> BoxFuture<'a, Result<(), ToolError>> + Send + Sync + 'static,
) -> (SampleTool, Runs) {
    let count = Runs::default();
    let (counted, work) = (count.clone(), Arc::new(work));
    let fake = SampleTool::new(name).spec(|spec| spec.cache_ttl = Some(LONG)).run(move |input, cx| {
        let run = counted.fetch_add(1, Ordering::SeqCst) + 1;
        let work = work.clone();
        async move {
            work(&input, cx).await?;
            Ok(ToolOutput::text(format!("run {run}")))
        }
        .boxed()
    });
    (fake, count)
}

fn plain(name: &str) -> (SampleTool, Runs) {
    counting(name, |_, _| async { Ok(()) }.boxed())
}

/// A tool whose runs wait for a permit each.
fn gated(name: &str) -> (SampleTool, Runs, Arc<Semaphore>) {
    let gate = Arc::new(Semaphore::new(0));
    let shut = gate.clone();
    let (fake, runs) = counting(name, move |_, cx| {
        let gate = shut.clone();
        async move {
            tokio::select! {
                permit = gate.acquire() => permit.unwrap().forget(),
                () = cx.cancel.cancelled() => return Err(ToolError::Cancelled),
            }
            Ok(())
        }
        .boxed()
    });
    (fake, runs, gate)
}

fn on_paper(tools: Vec<SampleTool>) -> (TestEngine, Arc<Paper>) {
    let paper = Arc::new(Paper::default());
    let files = paper.clone();
    (TestEngine::with(tools, |engine| engine.cache = ResultCache::new(1 << 20, Some(files))), paper)
}

/// Text and whether it had been there.
#[track_caller]
fn text_and_cached(answer: CallAnswer) -> (String, bool) {
    let result = answer.unwrap();
    (result.text(), result.cached)
}

fn ran(run: usize) -> (String, bool) {
    (format!("run {run}"), false)
}

fn kept(run: usize) -> (String, bool) {
    (format!("run {run}"), true)
}

async fn run(fixture: &TestEngine, call: Call) -> CallAnswer {
    fixture.start(call).await.unwrap()
}

#[tokio::test]
async fn the_same_call_is_given_the_same_result_and_says_so() {
    let fixture = TestEngine::new(vec![plain("look").0]);
    assert_eq!(text_and_cached(fixture.call("look", json!({"a": 1, "b": {"c": 2, "d": 3}})).await), ran(1));
    assert_eq!(text_and_cached(fixture.call("look", json!({"b": {"d": 3, "c": 2}, "a": 1})).await), kept(1));
    fixture.records_are_closed();
    let stats = fixture.engine.cache.stats();
    assert_eq!((stats.hits, stats.misses, stats.entries, stats.evictions), (1, 1, 1, 0));
    assert!(stats.size > 0 && stats.size < stats.capacity);
    assert_eq!(stats.hit_rate, 0.5);
}

#[tokio::test]
async fn other_arguments_another_folder_and_another_environment_are_other_calls() {
    let fixture = TestEngine::new(vec![plain("look").0]);
    let base = || fixture.prepare("look", json!({"a": [1, 2]}));
    assert_eq!(text_and_cached(run(&fixture, base()).await), ran(1));
    assert_eq!(text_and_cached(fixture.call("look", json!({"a": [2, 1]})).await), ran(2));
    assert_eq!(text_and_cached(run(&fixture, Call { cwd: Some("/p/deep".into()), ..base() }).await), ran(3));
    let other = session("s2", "/q");
    assert_eq!(text_and_cached(run(&fixture, Call { session: other, ..base() }).await), ran(4));
    assert_eq!(text_and_cached(run(&fixture, base()).await), kept(1));
}

#[tokio::test]
async fn sessions_of_one_folder_share_results() {
    let fixture = TestEngine::new(vec![plain("look").0]);
    assert_eq!(text_and_cached(fixture.call("look", json!({})).await), ran(1));
    let other = Call { session: session("s2", "/p"), ..fixture.prepare("look", json!({})) };
    assert_eq!(text_and_cached(run(&fixture, other).await), kept(1));
}

#[tokio::test]
async fn session_dependent_result_is_for_that_session() {
    let (look, _) = counting("look", |_, cx| {
        async {
            cx.depends_on_session();
            Ok(())
        }
        .boxed()
    });
    let fixture = TestEngine::new(vec![look]);
    assert_eq!(text_and_cached(fixture.call("look", json!({})).await), ran(1));
    assert_eq!(text_and_cached(fixture.call("look", json!({})).await), kept(1));
    let other = Call { session: session("s2", "/p"), ..fixture.prepare("look", json!({})) };
    assert_eq!(text_and_cached(run(&fixture, other).await), ran(2));
}

#[tokio::test]
async fn replaced_tool_starts_with_an_empty_cache() {
    let fixture = TestEngine::new(vec![plain("look").0]);
    assert_eq!(text_and_cached(fixture.call("look", json!({})).await), ran(1));
    let key = SourceKey { kind: SourceKind::Builtin, name: "test/look".into(), scope: SourceScope::Global };
    let (again, count) = plain("look");
    fixture.engine.registry.put(key, again.spec.origin, vec![Arc::new(again)]).unwrap();
    assert_eq!(text_and_cached(fixture.call("look", json!({})).await), ran(1));
    assert_eq!(runs(&count), 1);
}

#[tokio::test]
async fn no_cache_neither_looks_nor_keeps() {
    let fixture = TestEngine::new(vec![plain("look").0]);
    let fresh = || Call { no_cache: true, ..fixture.prepare("look", json!({})) };
    assert_eq!(text_and_cached(run(&fixture, fresh()).await), ran(1));
    assert_eq!(text_and_cached(fixture.call("look", json!({})).await), ran(2));
    assert_eq!(text_and_cached(run(&fixture, fresh()).await), ran(3));
    assert_eq!(text_and_cached(fixture.call("look", json!({})).await), kept(2));
}

#[tokio::test(start_paused = true)]
async fn time_that_the_cache_saves_is_recorded() {
    let long = Duration::from_millis(1500);
    let (look, _) = counting("look", move |_, _| tokio::time::sleep(long).map(Ok).boxed());
    let fixture = TestEngine::new(vec![look]);
    for cached in [false, true, true] {
        assert_eq!(fixture.call("look", json!({})).await.unwrap().cached, cached);
    }
    let originals: Vec<_> = fixture.audit.0.lock().unwrap().iter().map(|row| row.original).collect();
    assert_eq!(originals, [None, Some(long), Some(long)]);
    assert_eq!(fixture.engine.cache.stats().saved_ms, 3000);
}

#[tokio::test]
async fn only_tools_that_say_so_are_kept() {
    let (look, _) = plain("look");
    let fixture = TestEngine::new(vec![look.spec(|spec| spec.cache_ttl = None)]);
    assert_eq!(text_and_cached(fixture.call("look", json!({})).await), ran(1));
    assert_eq!(text_and_cached(fixture.call("look", json!({})).await), ran(2));
    assert_eq!(fixture.engine.cache.stats().misses, 0);
}

#[tokio::test]
async fn bad_news_is_not_kept() {
    let bad = SampleTool::new("bad").spec(|spec| spec.cache_ttl = Some(LONG));
    let bad = bad.run(|_, _| async { Ok(ToolOutput::error("out of luck")) }.boxed());
    let (reported_bad, count) = counting("reported", |_, _| async { Err(ToolError::Failed("no".into())) }.boxed());
    let fixture = TestEngine::new(vec![bad, reported_bad]);
    for _ in 0..2 {
        for name in ["bad", "reported"] {
            let result = fixture.call(name, json!({})).await.unwrap();
            assert!(result.is_error && !result.cached);
        }
    }
    assert_eq!(runs(&count), 2);
    assert_eq!(fixture.engine.cache.stats().entries, 0);
}

#[tokio::test]
async fn a_result_lives_as_long_as_its_tool_says() {
    let (look, count) = plain("look");
    let fixture = TestEngine::new(vec![look.spec(|spec| spec.cache_ttl = Some(Duration::from_millis(20)))]);
    while runs(&count) < 3 {
        fixture.call("look", json!({})).await.unwrap();
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn least_recently_used_entry_is_evicted() {
    let big = SampleTool::new("big").spec(|spec| spec.cache_ttl = Some(LONG));
    let big = big.run(|_, _| async { Ok(ToolOutput::text("x".repeat(10_000))) }.boxed());
    let fixture = TestEngine::with(vec![big], |engine| engine.cache = ResultCache::new(50_000, None));
    for n in 0..20 {
        fixture.call("big", json!({"n": n})).await.unwrap();
    }
    let stats = fixture.engine.cache.stats();
    assert!(stats.size <= 50_000 && stats.entries == 4, "{stats:?}");
    assert_eq!(stats.evictions, 16);
    assert!(fixture.call("big", json!({"n": 19})).await.unwrap().cached);
    assert!(!fixture.call("big", json!({"n": 0})).await.unwrap().cached);
}

#[tokio::test]
async fn clearing_drops_all_results_including_running_calls() {
    let (look, _, gate) = gated("look");
    let fixture = TestEngine::new(vec![look]);
    gate.add_permits(1);
    assert_eq!(text_and_cached(fixture.call("look", json!({})).await), ran(1));
    let running = fixture.start(fixture.prepare("look", json!({"n": 2})));
    settle().await;
    assert_eq!(fixture.engine.cache.clear(), 1);
    gate.add_permits(3);
    assert_eq!(text_and_cached(running.await.unwrap()), ran(2));
    assert_eq!(text_and_cached(fixture.call("look", json!({})).await), ran(3));
    assert_eq!(text_and_cached(fixture.call("look", json!({"n": 2})).await), ran(4));
}

fn forbid(fixture: &TestEngine, path: &str) {
    fixture.engine.policy.store(Arc::new(Policy { private: vec![path.into()].into(), ..Policy::default() }));
    fixture.engine.policy_changed();
}

#[tokio::test]
async fn a_denial_wins_over_a_result_that_is_there() {
    let (look, count) = plain("look");
    let look = look.needs(|_| vec![Need::new(Category::FileRead, "/p/file")]);
    let (fixture, _) = on_paper(vec![look]);
    assert_eq!(text_and_cached(fixture.call("look", json!({})).await), ran(1));
    assert_eq!(text_and_cached(fixture.call("look", json!({})).await), kept(1));
    forbid(&fixture, "/p/file");
    let refused = fixture.call("look", json!({})).await.unwrap();
    assert!(refused.is_error && !refused.cached && refused.metadata.contains_key("permission"), "{refused:?}");
    assert_eq!(runs(&count), 1);
    fixture.records_are_closed();
}

#[tokio::test]
async fn need_decided_during_the_run_is_checked_again() {
    let (look, count) = counting("look", |_, cx| cx.require(Need::new(Category::FileRead, "/p/file")).boxed());
    let (fixture, paper) = on_paper(vec![look]);
    assert_eq!(text_and_cached(fixture.call("look", json!({})).await), ran(1));
    assert_eq!(text_and_cached(fixture.call("look", json!({})).await), kept(1));
    // As when an ignore file names it by now, or a link leads elsewhere.
    paper.write("/p/file");
    assert_eq!(text_and_cached(fixture.call("look", json!({})).await), ran(2));
    forbid(&fixture, "/p/file");
    assert!(fixture.call("look", json!({})).await.unwrap().is_error);
    assert_eq!(runs(&count), 3);
    let rows = fixture.audit.0.lock().unwrap();
    assert!(rows[..2].iter().all(|row| row.decisions[0].target == "/p/file"), "{rows:?}");
}

#[tokio::test]
async fn result_with_a_change_is_not_cached() {
    let (look, _) = counting("look", |_, cx| cx.require(Need::new(Category::FileWrite, "/p/file")).boxed());
    let (fixture, _) = on_paper(vec![look]);
    fixture.session.set_mode(toold_proto::session::Mode::Yolo);
    assert_eq!(text_and_cached(fixture.call("look", json!({})).await), ran(1));
    assert_eq!(text_and_cached(fixture.call("look", json!({})).await), ran(2));
}

#[tokio::test]
async fn a_result_is_good_until_a_file_of_it_changes() {
    let (look, _) = counting("look", |input, cx| {
        cx.depends_on(stamp(input["path"].as_str().unwrap()));
        async { Ok(()) }.boxed()
    });
    let (fixture, paper) = on_paper(vec![look]);
    let (a, b) = (json!({"path": "/p/a"}), json!({"path": "/p/b"}));
    assert_eq!(text_and_cached(fixture.call("look", a.clone()).await), ran(1));
    assert_eq!(text_and_cached(fixture.call("look", b.clone()).await), ran(2));
    paper.write("/p/a");
    assert_eq!(text_and_cached(fixture.call("look", a.clone()).await), ran(3));
    assert_eq!(text_and_cached(fixture.call("look", b).await), kept(2));
    // Without anybody to look, nothing of files is served again.
    let (look, _) = counting("look", |_, cx| {
        async {
            cx.depends_on(stamp("/p/a"));
            Ok(())
        }
        .boxed()
    });
    let blind = TestEngine::new(vec![look]);
    assert_eq!(text_and_cached(blind.call("look", a.clone()).await), ran(1));
    assert_eq!(text_and_cached(blind.call("look", a).await), ran(2));
}

#[tokio::test]
async fn outer_call_inherits_dependencies_of_nested_calls() {
    let (inner, inner_runs) = counting("inner", |_, cx| {
        async {
            cx.depends_on(stamp("/p/a"));
            Ok(())
        }
        .boxed()
    });
    let (outer, outer_runs) = counting("outer", |_, cx| {
        async {
            cx.call_tool("inner", json!({})).await.unwrap();
            Ok(())
        }
        .boxed()
    });
    let (fixture, paper) = on_paper(vec![inner, outer]);
    assert_eq!(text_and_cached(fixture.call("inner", json!({})).await), ran(1));
    assert_eq!(text_and_cached(fixture.call("outer", json!({})).await), ran(1));
    assert_eq!(text_and_cached(fixture.call("outer", json!({})).await), kept(1));
    assert_eq!(runs(&inner_runs), 1);
    paper.write("/p/a");
    assert_eq!(text_and_cached(fixture.call("outer", json!({})).await), ran(2));
    assert_eq!((runs(&inner_runs), runs(&outer_runs)), (2, 2));
}

#[tokio::test]
async fn a_result_made_with_a_tool_that_is_never_kept_is_not_kept() {
    let (outer, _) = counting("outer", |_, cx| {
        async {
            cx.call_tool("grep", json!({})).await.unwrap();
            Ok(())
        }
        .boxed()
    });
    let fixture = TestEngine::new(vec![SampleTool::new("grep"), outer]);
    assert_eq!(text_and_cached(fixture.call("outer", json!({})).await), ran(1));
    assert_eq!(text_and_cached(fixture.call("outer", json!({})).await), ran(2));
}

struct Stamper(HookSpec, AtomicUsize);

impl Hook for Stamper {
    fn spec(&self) -> &HookSpec {
        &self.0
    }

    fn run<'a>(&'a self, input: HookInput, _: Option<Arc<Cx>>) -> BoxFuture<'a, Result<HookAnswer, String>> {
        let n = self.1.fetch_add(1, Ordering::SeqCst) + 1;
        let text = input.tool_result.unwrap()["content"][0]["text"].as_str().unwrap().to_owned();
        let changed = json!({"content": format!("{text}, seen {n} times")});
        async move { Ok(HookAnswer { modified_tool_result: Some(changed), ..HookAnswer::default() }) }.boxed()
    }
}

#[tokio::test]
async fn hooks_see_each_result_as_the_tool_gave_it() {
    let fixture = TestEngine::new(vec![plain("look").0]);
    let source = SourceKey { kind: SourceKind::Plugin, name: "plug".into(), scope: SourceScope::Global };
    let spec = HookSpec {
        name: "stamper".into(),
        source: source.clone(),
        event: HookEvent::PostTool,
        priority: 0,
        asynchronous: false,
        timeout: Duration::from_secs(1),
        fail_closed: false,
        tools: None,
        health: HookHealth::default(),
    };
    fixture.engine.hooks.replace(&source, vec![Arc::new(Stamper(spec, AtomicUsize::new(0)))]);
    assert_eq!(text_and_cached(fixture.call("look", json!({})).await), ("run 1, seen 1 times".to_owned(), false));
    assert_eq!(text_and_cached(fixture.call("look", json!({})).await), ("run 1, seen 2 times".to_owned(), true));
}

#[tokio::test(start_paused = true)]
async fn identical_calls_in_flight_run_once_and_have_their_own_records() {
    let (look, count, gate) = gated("look");
    let fixture = TestEngine::new(vec![look]);
    let calls: Vec<_> =
        (0..10).map(|n| fixture.start(fixture.prepare_as(&format!("c{n}"), "look", json!({})))).collect();
    settle().await;
    gate.add_permits(10);
    for (n, call) in calls.into_iter().enumerate() {
        let result = call.await.unwrap().unwrap();
        assert_eq!((result.text(), result.cached), ran(1));
        assert_eq!(result.call_id.as_str(), format!("c{n}"));
    }
    assert_eq!(runs(&count), 1);
    assert_eq!(fixture.audit.0.lock().unwrap().len(), 10);
    fixture.records_are_closed();
    let stats = fixture.engine.cache.stats();
    assert_eq!((stats.misses, stats.shared, stats.hits), (1, 9, 0));
}

#[tokio::test(start_paused = true)]
async fn a_follower_that_gives_up_leaves_the_others() {
    let (look, count, gate) = gated("look");
    let fixture = TestEngine::new(vec![look]);
    let leader = fixture.start(fixture.prepare("look", json!({})));
    settle().await;
    let call = fixture.prepare("look", json!({}));
    let cancel = call.cancel.clone();
    let (quitter, other) = (fixture.start(call), fixture.start(fixture.prepare("look", json!({}))));
    settle().await;
    cancel.cancel();
    assert_eq!(quitter.await.unwrap(), Err(CallError::Cancelled));
    gate.add_permits(1);
    assert_eq!(text_and_cached(leader.await.unwrap()), ran(1));
    assert_eq!(text_and_cached(other.await.unwrap()), ran(1));
    assert_eq!(runs(&count), 1);
    fixture.records_are_closed();
}

#[tokio::test(start_paused = true)]
async fn when_the_first_gives_up_another_runs() {
    let (look, count, gate) = gated("look");
    let fixture = TestEngine::new(vec![look.serial()]);
    let call = fixture.prepare("look", json!({}));
    let cancel = call.cancel.clone();
    let leader = fixture.start(call);
    settle().await;
    let others = [(); 2].map(|()| fixture.start(fixture.prepare("look", json!({}))));
    settle().await;
    cancel.cancel();
    assert_eq!(leader.await.unwrap(), Err(CallError::Cancelled));
    settle().await;
    gate.add_permits(1);
    for other in others {
        assert_eq!(text_and_cached(other.await.unwrap()), ran(2));
    }
    assert_eq!(runs(&count), 2);
    fixture.records_are_closed();
}

#[tokio::test(start_paused = true)]
async fn panic_is_reported_to_all_and_the_next_call_runs() {
    let (look, count) = counting("look", |input, _| {
        let wait = input["wait"].as_u64().unwrap();
        async move {
            tokio::time::sleep(Duration::from_millis(wait)).await;
            panic!("on purpose")
        }
        .boxed()
    });
    let fixture = TestEngine::new(vec![look]);
    let calls = [(); 3].map(|()| fixture.start(fixture.prepare("look", json!({"wait": 10}))));
    for call in calls {
        assert!(matches!(call.await.unwrap(), Err(CallError::Failed(words)) if words.contains("on purpose")));
    }
    assert_eq!(runs(&count), 1);
    assert!(fixture.call("look", json!({"wait": 10})).await.is_err());
    assert_eq!(runs(&count), 2);
    fixture.records_are_closed();
}

#[tokio::test(start_paused = true)]
async fn each_call_has_its_own_time() {
    let (look, count, gate) = gated("look");
    let fixture = TestEngine::new(vec![look]);
    let limited = |ms| Call { timeout: Some(Duration::from_millis(ms)), ..fixture.prepare("look", json!({})) };
    // A follower's own time.
    let leader = fixture.start(limited(60_000));
    settle().await;
    let hasty = run(&fixture, limited(100)).await.unwrap();
    assert!(hasty.is_error && hasty.metadata["timed_out"] == true, "{hasty:?}");
    assert_eq!(runs(&count), 1);
    gate.add_permits(1);
    assert_eq!(text_and_cached(leader.await.unwrap()), ran(1));
    // The leader's time is not that of the others.
    fixture.engine.cache.clear();
    let leader = fixture.start(limited(100));
    settle().await;
    let patient = fixture.start(limited(60_000));
    let hasty = leader.await.unwrap().unwrap();
    assert!(hasty.metadata["timed_out"] == true);
    settle().await;
    gate.add_permits(1);
    assert_eq!(text_and_cached(patient.await.unwrap()), ran(3));
    fixture.records_are_closed();
}

#[tokio::test(start_paused = true)]
async fn followers_receive_progress_of_the_leader() {
    let gate = Arc::new(Semaphore::new(0));
    let shut = gate.clone();
    let (look, _) = counting("look", move |_, cx| {
        let gate = shut.clone();
        cx.output(toold_proto::call::Stream::Stdout, "early ");
        async move {
            gate.acquire().await.unwrap().forget();
            cx.message("late");
            Ok(())
        }
        .boxed()
    });
    let fixture = TestEngine::new(vec![look]);
    let leader = fixture.start(fixture.prepare("look", json!({})));
    settle().await;
    let ears = Arc::new(RecordedValues::default());
    let follower = fixture.start(Call { progress: vec![ears.clone()], ..fixture.prepare("look", json!({})) });
    settle().await;
    gate.add_permits(1);
    assert_eq!(text_and_cached(follower.await.unwrap()), ran(1));
    leader.await.unwrap().unwrap();
    let heard: Vec<(u64, Progress)> = ears.0.lock().unwrap().clone();
    let texts: Vec<(u64, &str)> = heard
        .iter()
        .map(|(seq, progress)| match progress {
            Progress::Output { text, .. } | Progress::Message { text } => (*seq, text.as_str()),
            Progress::Update { .. } => (*seq, "?"),
        })
        .collect();
    assert_eq!(texts, [(0, "early "), (1, "late")]);
}

#[tokio::test(start_paused = true)]
async fn progress_reaches_only_followers_with_the_same_permissions() {
    let gate = Arc::new(Semaphore::new(0));
    let shut = gate.clone();
    let (look, _) = counting("look", move |_, cx| {
        let gate = shut.clone();
        async move {
            gate.acquire().await.unwrap().forget();
            cx.message("begun");
            cx.require(Need::new(Category::FileRead, "/elsewhere/file")).await?;
            cx.message("its content");
            Ok(())
        }
        .boxed()
    });
    let fixture = TestEngine::new(vec![look]);
    let other = session("s2", "/p");
    other.set_mode(toold_proto::session::Mode::Yolo);
    let leader = fixture.start(Call { session: other, ..fixture.prepare("look", json!({})) });
    settle().await;
    let ears = Arc::new(RecordedValues::default());
    let follower = fixture.start(Call { progress: vec![ears.clone()], ..fixture.prepare("look", json!({})) });
    settle().await;
    gate.add_permits(2);
    leader.await.unwrap().unwrap();
    assert!(follower.await.unwrap().unwrap().is_error, "nobody is there to be asked");
    let heard = ears.0.lock().unwrap().clone();
    let texts = heard.iter().filter_map(|(_, progress)| match progress {
        Progress::Message { text } => Some(text.as_str()),
        Progress::Output { .. } | Progress::Update { .. } => None,
    });
    // That of the other, and then of its own run.
    assert_eq!(texts.collect::<Vec<_>>(), ["begun", "begun"]);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_came_after_a_change_does_not_follow_one_from_before() {
    let gate = Arc::new(Semaphore::new(0));
    let shut = gate.clone();
    let first = AtomicBool::new(true);
    let (look, count) = counting("look", move |_, cx| {
        let gate = shut.clone();
        if first.swap(false, Ordering::SeqCst) {
            cx.depends_on(stamp("/p/old"));
        }
        async move {
            gate.acquire().await.unwrap().forget();
            Ok(())
        }
        .boxed()
    });
    let (fixture, paper) = on_paper(vec![look]);
    let before = fixture.start(fixture.prepare("look", json!({})));
    settle().await;
    paper.write("/p/old");
    let after = fixture.start(fixture.prepare("look", json!({})));
    settle().await;
    gate.add_permits(2);
    assert_eq!(text_and_cached(before.await.unwrap()), ran(1));
    assert_eq!(text_and_cached(after.await.unwrap()), ran(2));
    assert_eq!(runs(&count), 2);
}

#[tokio::test(start_paused = true)]
async fn permission_revoked_meanwhile_applies_to_followers() {
    let (look, _, gate) = gated("look");
    let look = look.needs(|_| vec![Need::new(Category::FileRead, "/p/file")]);
    let (fixture, _) = on_paper(vec![look]);
    let leader = fixture.start(fixture.prepare("look", json!({})));
    settle().await;
    let follower = fixture.start(fixture.prepare("look", json!({})));
    settle().await;
    forbid(&fixture, "/p/file");
    gate.add_permits(2);
    assert_eq!(text_and_cached(leader.await.unwrap()), ran(1));
    let refused = follower.await.unwrap().unwrap();
    assert!(refused.is_error && refused.metadata.contains_key("permission"), "{refused:?}");
}

#[tokio::test(start_paused = true)]
async fn a_call_inside_another_never_waits_for_one_that_waits_for_the_outer() {
    let gate = Arc::new(Semaphore::new(0));
    let shut = gate.clone();
    let (inner, _) = plain("inner");
    let outer = SampleTool::new("outer").serial().run(move |_, cx| {
        let gate = shut.clone();
        async move {
            gate.acquire().await.unwrap().forget();
            Ok(ToolOutput::text(cx.call_tool("inner", json!({})).await.unwrap().text()))
        }
        .boxed()
    });
    let fixture = TestEngine::new(vec![inner.serial(), outer]);
    let outer = fixture.start(fixture.prepare("outer", json!({})));
    settle().await;
    // It leads, and waits for the lane that the outer call holds.
    let beside = fixture.start(fixture.prepare("inner", json!({})));
    settle().await;
    gate.add_permits(1);
    assert_eq!(text_and_cached(outer.await.unwrap()).0, "run 1");
    // By its turn the other one's result is there, but it had looked before.
    assert_eq!(text_and_cached(beside.await.unwrap()), ran(2));
    fixture.records_are_closed();
}

#[tokio::test(start_paused = true)]
async fn interrupt_skips_followers_of_a_waiting_call() {
    let (look, count) = plain("look");
    let (slow, _, gate) = gated("slow");
    let fixture = TestEngine::new(vec![look.serial(), slow.serial()]);
    let busy = fixture.start(fixture.prepare("slow", json!({})));
    settle().await;
    let waiting = [(); 2].map(|()| fixture.start(fixture.prepare("look", json!({}))));
    settle().await;
    fixture.session.interrupt();
    for call in waiting {
        assert_eq!(call.await.unwrap().unwrap().metadata["skipped"], true);
    }
    gate.add_permits(1);
    busy.await.unwrap().unwrap();
    assert_eq!(runs(&count), 0);
    fixture.records_are_closed();
}
