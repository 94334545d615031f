//! Whatever happens to files, a later call is answered from their current state.

use std::fs::{self, File, FileTimes};
use std::io::Read;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use proptest::prelude::*;
use serde_json::Value;
use toold_engine::Engine;
use toold_engine::cache::ResultCache;
use toold_engine::callable::Callable;
use toold_engine::cx::Cx;
use toold_engine::dependencies::{FileChecks, FileFacts, FileStamp};
use toold_engine::execute::execute;
use toold_engine::need::Need;
use toold_engine::registry::{SourceKey, SourceScope};
use toold_engine::session::Session;
use toold_engine::tool::{Origin, ToolError, ToolOutput, ToolSpec};
use toold_host::exclude::Exclusions;
use toold_host::file_needs;
use toold_host::{files, stamps};
use toold_proto::tool::SourceKind;
use toold_test_kit::{new_session, prepare_call, sample_spec};

/// Joins the contents of all the files, by names that may be links.
struct ReadAll {
    spec: ToolSpec,
    paths: Vec<PathBuf>,
    runs: AtomicUsize,
}

const GONE: &str = "(gone)";

impl Callable for ReadAll {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn needs<'a>(&'a self, _: &'a Value, _: &'a Cx) -> BoxFuture<'a, Result<Vec<Need>, ToolError>> {
        async { Ok(Vec::new()) }.boxed()
    }

    fn call<'a>(&'a self, _: Value, cx: &'a Cx) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        async move {
            self.runs.fetch_add(1, Ordering::Relaxed);
            let mut texts = Vec::new();
            for path in &self.paths {
                let seen = stamps::of_facts(path).unwrap();
                let resolved = files::resolve(path, Path::new("/")).unwrap();
                cx.require(file_needs::read_need(&resolved, &mut Exclusions::default())).await?;
                let Ok(mut file) = files::open(&resolved) else {
                    cx.depends_on(seen);
                    texts.push(GONE.to_owned());
                    continue;
                };
                let stamp = stamps::before_reading(path, &file).unwrap();
                let mut text = String::new();
                file.read_to_string(&mut text).unwrap();
                cx.depends_on(stamps::with_content(stamp, text.as_bytes()));
                texts.push(text);
            }
            Ok(ToolOutput::text(texts.join("|")))
        }
        .boxed()
    }
}

/// A file system whose clock ticks so seldom that all changes of a test have the same time.
struct Coarse;

impl FileChecks for Coarse {
    fn is_current(&self, stamp: &FileStamp) -> bool {
        let now = stamps::of_facts(&stamp.path).unwrap().facts;
        let same = |now: FileFacts, then: FileFacts| (now.inode, now.size) == (then.inode, then.size);
        let facts = match (now, stamp.facts) {
            // A change two seconds later would be detected.
            (Some(now), Some(then)) if !stamp.settled && same(now, then) => Some(now),
            _ => stamp.facts,
        };
        stamps::Disk.is_current(&FileStamp { facts, ..stamp.clone() })
    }

    fn stands(&self, need: &Need) -> bool {
        stamps::Disk.stands(need)
    }
}

struct StaleTest {
    engine: Arc<Engine>,
    session: Arc<Session>,
    tool: Arc<ReadAll>,
    _folder: tempfile::TempDir,
}

impl StaleTest {
    fn new(old: bool, files: Arc<dyn FileChecks>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let paths: Vec<PathBuf> = ["a", "b", "link"].iter().map(|name| root.join(name)).collect();
        fs::write(&paths[0], "0").unwrap();
        fs::write(&paths[1], "0").unwrap();
        symlink("a", &paths[2]).unwrap();
        if old {
            paths[..2].iter().for_each(|path| set_time(path, SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000)));
        }
        let mut engine = Engine::new("0123456789abcdef");
        engine.cache = ResultCache::new(1 << 20, Some(files));
        let spec = ToolSpec { cache_ttl: Some(Duration::from_secs(3600)), ..sample_spec("read_all") };
        let tool = Arc::new(ReadAll { spec, paths, runs: AtomicUsize::new(0) });
        let key = SourceKey { kind: SourceKind::Builtin, name: "test".into(), scope: SourceScope::Global };
        engine.registry.put(key, Origin::Builtin, vec![tool.clone()]).unwrap();
        let session = Arc::new(Session::new(new_session("s", root)));
        Self { engine: Arc::new(engine), session, tool, _folder: folder }
    }

    fn path(&self, file: usize) -> &Path {
        &self.tool.paths[file]
    }

    /// The answer, and whether it was cached.
    async fn ask(&self) -> (String, bool) {
        let call = prepare_call(&self.session, "read_all", Value::Null);
        let result = execute(&self.engine, call).await.unwrap();
        assert!(!result.is_error, "{}", result.text());
        (result.text(), result.cached)
    }

    fn truth(&self) -> String {
        let text = |path: &PathBuf| fs::read_to_string(path).unwrap_or_else(|_| GONE.to_owned());
        self.tool.paths.iter().map(text).collect::<Vec<_>>().join("|")
    }
}

fn set_time(path: &Path, at: SystemTime) {
    File::options().write(true).open(path).unwrap().set_times(FileTimes::new().set_modified(at)).unwrap();
}

#[derive(Clone, Copy, Debug)]
enum StaleStep {
    /// Overwrites a digit in place: the size stays the same.
    Rewrite(usize, u8),
    /// The same, and sets the modification time back.
    RewriteInSecret(usize, u8),
    /// Another file takes the name.
    Replace(usize, u8),
    Remove(usize),
    Touch(usize),
    Link(usize),
    Ask,
}

fn step() -> impl Strategy<Value = StaleStep> {
    let (file, digit) = (0usize..2, 0u8..10);
    prop_oneof![
        3 => (file.clone(), digit.clone()).prop_map(|(file, digit)| StaleStep::Rewrite(file, digit)),
        3 => (file.clone(), digit.clone()).prop_map(|(file, digit)| StaleStep::RewriteInSecret(file, digit)),
        2 => (file.clone(), digit).prop_map(|(file, digit)| StaleStep::Replace(file, digit)),
        1 => file.clone().prop_map(StaleStep::Remove),
        1 => file.clone().prop_map(StaleStep::Touch),
        1 => file.prop_map(StaleStep::Link),
        8 => Just(StaleStep::Ask),
    ]
}

fn take(test: &StaleTest, step: StaleStep) {
    match step {
        StaleStep::Rewrite(file, digit) => fs::write(test.path(file), digit.to_string()).unwrap(),
        StaleStep::RewriteInSecret(file, digit) => {
            let before = fs::metadata(test.path(file)).and_then(|metadata| metadata.modified());
            fs::write(test.path(file), digit.to_string()).unwrap();
            if let Ok(before) = before {
                set_time(test.path(file), before);
            }
        }
        StaleStep::Replace(file, digit) => {
            let new = test.path(file).with_extension("new");
            fs::write(&new, digit.to_string()).unwrap();
            fs::rename(new, test.path(file)).unwrap();
        }
        StaleStep::Remove(file) => {
            // Removing a missing file is no step.
            let _ = fs::remove_file(test.path(file));
        }
        StaleStep::Touch(file) => {
            if test.path(file).exists() {
                set_time(test.path(file), SystemTime::now());
            }
        }
        StaleStep::Link(file) => {
            fs::remove_file(test.path(2)).unwrap();
            symlink(test.path(file), test.path(2)).unwrap();
        }
        StaleStep::Ask => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_answer_is_older_than_its_question(
        old in any::<bool>(),
        coarse in any::<bool>(),
        steps in prop::collection::vec(step(), 1..40),
    ) {
        let files: Arc<dyn FileChecks> = if coarse { Arc::new(Coarse) } else { Arc::new(stamps::Disk) };
        let test = StaleTest::new(old, files);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            for step in steps {
                take(&test, step);
                if matches!(step, StaleStep::Ask) {
                    let (answer, _) = test.ask().await;
                    assert_eq!(answer, test.truth());
                }
            }
            // Without a change in between, the second answer is the first one.
            let first = test.ask().await;
            let before = test.tool.runs.load(Ordering::Relaxed);
            assert_eq!(test.ask().await, (first.0, true));
            assert_eq!(test.tool.runs.load(Ordering::Relaxed), before);
        });
    }
}

#[tokio::test]
async fn a_thousand_rewrites_of_one_size_within_a_moment_are_all_seen() {
    let both: [Arc<dyn FileChecks>; 2] = [Arc::new(stamps::Disk), Arc::new(Coarse)];
    for files in both {
        let test = StaleTest::new(false, files);
        for n in 0..500 {
            fs::write(test.path(0), (n % 10).to_string()).unwrap();
            assert_eq!(test.ask().await.0, test.truth());
        }
    }
}
