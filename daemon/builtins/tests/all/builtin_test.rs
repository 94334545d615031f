//! A small daemon without a transport: an engine with the built-in tools, and a working folder.

use std::cell::RefCell;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use toold_builtins::skills::SkillPlaces;
use toold_builtins::toolkit::{Toolkit, ToolkitFolders};
use toold_engine::Engine;
use toold_engine::call::{Call, CallError};
use toold_engine::execute::execute;
use toold_engine::policy::pattern::Pattern;
use toold_engine::policy::{Policy, Rule};
use toold_engine::progress::ProgressSink;
use toold_engine::registry::{SourceKey, SourceScope};
use toold_engine::session::{NewSession, Session};
use toold_engine::tool::Origin;
use toold_host::environment::Environment;
use toold_proto::call::{Progress, Stream};
use toold_proto::permission::Verdict;
use toold_proto::session::Mode;
use toold_proto::tool::{Category, SourceKind, ToolResult};
use toold_test_kit::{new_session, prepare_call};

pub(crate) struct BuiltinTest {
    pub(crate) engine: Arc<Engine>,
    pub(crate) toolkit: Arc<Toolkit>,
    pub(crate) session: Arc<Session>,
    /// The session's working folder, resolved.
    pub(crate) root: PathBuf,
    /// The folder of everything that the daemon has, resolved.
    top: PathBuf,
}

thread_local! {
    /// Removed when the thread of the test ends. The test's runtime ends before that, and then records what background commands
    /// have changed, which would make a folder that is gone again.
    static FOLDERS: RefCell<Vec<tempfile::TempDir>> = const { RefCell::new(Vec::new()) };
}

fn places(top: &Path) -> ToolkitFolders {
    ToolkitFolders {
        spool: Some(top.join("spool")),
        undo: Some(top.join("undo")),
        sessions: Some(top.join("sessions")),
        memories: Some(top.join("config/toold/memories")),
        skills: SkillPlaces { config: Some(top.join("config/toold/skills")), home: Some(top.join("home")) },
    }
}

impl BuiltinTest {
    /// In mode `yolo`, so that tests of tools need no permissions.
    pub(crate) fn new() -> Self {
        let test = Self::strict();
        test.session.set_mode(Mode::Yolo);
        test
    }

    /// With the default policy.
    pub(crate) fn strict() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().canonicalize().unwrap();
        FOLDERS.with_borrow_mut(|folders| folders.push(folder));
        let root = top.join("work");
        std::fs::create_dir(&root).unwrap();
        let engine = Arc::new(Engine::new("test"));
        let inherited = Environment::inherited(std::env::vars_os());
        let mut path = top.join("bin").into_os_string();
        if let Some(others) = inherited.get("PATH") {
            path.push(":");
            path.push(others);
        }
        let toolkit = Arc::new(Toolkit::new(inherited.with([("PATH", path)]), places(&top)));
        // A busy machine is no reason for a test to fail.
        toolkit.wait_for_changes(std::time::Duration::from_secs(60));
        let key = SourceKey { kind: SourceKind::Builtin, name: "toold".into(), scope: SourceScope::Global };
        engine.registry.put(key, Origin::Builtin, toold_builtins::all(&toolkit)).unwrap();
        let session = session("s1", &root);
        let (session, _) = engine.sessions.open(session);
        Self { engine, toolkit, session, root, top }
    }

    pub(crate) fn write(&self, path: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.root.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        path
    }

    /// The tools of a daemon that is started in the same folders.
    pub(crate) fn next_toolkit(&self) -> Arc<Toolkit> {
        Arc::new(Toolkit::new(Environment::inherited(std::env::vars_os()), places(&self.top)))
    }

    /// Makes a program of this script, which tools find by its name.
    pub(crate) fn program(&self, name: &str, script: &str) {
        let path = self.top.join("bin").join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
    }

    #[allow(dead_code, reason = "a part of the tests uses it")]
    pub(crate) fn content(&self, path: &str) -> String {
        std::fs::read_to_string(self.root.join(path)).unwrap()
    }

    pub(crate) fn rule(&self, category: Category, pattern: &str, action: Verdict) {
        let mut policy = Policy::clone(&self.engine.policy.load());
        policy.rules.push(Rule {
            category,
            pattern: Pattern::parse(category, pattern).unwrap(),
            action,
            tools: None,
            cwd: None,
            effect: None,
            agent: None,
            project: None,
            origin: format!("test:{}", policy.rules.len() + 1),
        });
        self.engine.policy.store(Arc::new(policy));
        self.engine.policy_changed();
    }

    /// A call, for tests that change something about it.
    pub(crate) fn prepare(&self, name: &str, arguments: Value) -> Call {
        prepare_call(&self.session, name, arguments)
    }

    pub(crate) async fn run(&self, call: Call) -> Result<ToolResult, CallError> {
        let answer = execute(&self.engine, call).await;
        if self.toolkit.shells.list(None).iter().any(|shell| shell.ended.is_none()) {
            // Background shells are tasks of the engine too, and keep running.
            return answer;
        }
        // Abandoned work must be gone too.
        self.engine.tasks.close();
        self.engine.tasks.wait().await;
        self.engine.tasks.reopen();
        answer
    }

    pub(crate) async fn call(&self, name: &str, arguments: Value) -> ToolResult {
        self.run(self.prepare(name, arguments)).await.unwrap()
    }

    /// The text of a call that must succeed.
    pub(crate) async fn ok(&self, name: &str, arguments: Value) -> String {
        let result = self.call(name, arguments).await;
        assert!(!result.is_error, "{}", result.text());
        result.text()
    }

    /// The text of a call that must fail.
    pub(crate) async fn bad(&self, name: &str, arguments: Value) -> String {
        let result = self.call(name, arguments).await;
        assert!(result.is_error, "{}", result.text());
        result.text()
    }

    pub(crate) async fn read(&self, path: &str) -> String {
        self.ok("read", json!({"path": path})).await
    }
}

pub(crate) fn session(id: &str, root: &Path) -> Session {
    let env = [("FROM_SESSION".to_owned(), "yes".to_owned())].into();
    Session::new(NewSession { env, ..new_session(id, root) })
}

impl Drop for BuiltinTest {
    /// Background commands end with their daemon.
    fn drop(&mut self) {
        self.engine.stop.cancel();
    }
}

type OnText = Box<dyn Fn(&str) + Send + Sync>;

/// Records a call's progress.
#[derive(Default)]
pub(crate) struct OutputListener {
    pub(crate) heard: Mutex<Vec<(Stream, String)>>,
    pub(crate) messages: Mutex<Vec<String>>,
    /// Returns everything that was recorded so far.
    pub(crate) on_text: Option<OnText>,
}

impl OutputListener {
    pub(crate) fn text(&self) -> String {
        self.heard.lock().unwrap().iter().map(|(_, text)| text.as_str()).collect()
    }
}

impl ProgressSink for OutputListener {
    fn send(&self, _: u64, progress: &Progress) {
        let (stream, text) = match progress {
            Progress::Output { stream, text } => (stream, text),
            Progress::Message { text } => return self.messages.lock().unwrap().push(text.clone()),
            Progress::Update { .. } => return,
        };
        self.heard.lock().unwrap().push((*stream, text.clone()));
        if let Some(on_text) = &self.on_text {
            on_text(&self.text());
        }
    }
}
