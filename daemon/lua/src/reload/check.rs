//! For authors: a plugin checked, and its tests run, apart from any daemon.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;
use toold_engine::Engine;
use toold_engine::call::{Call, Caller, Principal};
use toold_engine::execute::execute;
use toold_engine::registry::{SourceKey, SourceScope};
use toold_engine::session::{NewSession, Session, SessionFilter};
use toold_engine::tool::Origin;
use toold_host::environment::Environment;
use toold_host::http::Http;
use toold_host::http::guard::Guard;
use toold_proto::plugin::PluginError;
use toold_proto::session::Mode;
use toold_proto::tool::{SessionId, SourceKind, Tool};

use crate::brake::Watchdog;
use crate::load::{Extra, Outcome, explain_manifest, load_with};
use crate::manifest::{Capabilities, Manifest};
use crate::offer::ResourceRegistration;
use crate::plugin::{Plugin, Shared};
use crate::service::Put;
use crate::vm::OwnChunks;

/// What a plugin is, or what is wrong with it.
#[derive(Clone, Debug, Default)]
pub struct Report {
    pub name: String,
    pub version: Option<String>,
    /// What its manifest holds it to; `None` when it holds it to nothing.
    pub capabilities: Option<Vec<String>>,
    pub tools: Vec<Tool>,
    pub hooks: Vec<String>,
    pub commands: Vec<String>,
    pub subagents: Vec<String>,
    /// URIs and templates.
    pub resources: Vec<String>,
    pub prompts: Vec<String>,
    /// Why it does not load; all mistakes of registrations, not just the first.
    pub problems: Vec<PluginError>,
    /// What loads and is probably not meant.
    pub warnings: Vec<PluginError>,
}

impl Report {
    pub fn is_good(&self) -> bool {
        self.problems.is_empty()
    }
}

/// What the tests of a plugin said.
#[derive(Clone, Debug, Default)]
pub struct TestReport {
    pub files: Vec<TestFile>,
}

#[derive(Clone, Debug)]
pub struct TestFile {
    pub path: PathBuf,
    pub cases: Vec<TestCase>,
    /// Why the file, or the plugin, did not run.
    pub error: Option<PluginError>,
}

#[derive(Clone, Debug)]
pub struct TestCase {
    /// The words of its `describe`s and its `it`.
    pub name: String,
    /// `None` when it passed.
    pub error: Option<PluginError>,
}

impl TestReport {
    pub fn passed(&self) -> usize {
        self.cases().filter(|case| case.error.is_none()).count()
    }

    /// Cases that failed, and files that did not run.
    pub fn failed(&self) -> usize {
        self.cases().filter(|case| case.error.is_some()).count()
            + self.files.iter().filter(|file| file.error.is_some()).count()
    }

    fn cases(&self) -> impl Iterator<Item = &TestCase> {
        self.files.iter().flat_map(|file| &file.cases)
    }
}

const MEMORY: usize = 64 << 20;
const LOAD_LIMIT: Duration = Duration::from_secs(5);
const TEST_LIMIT: Duration = Duration::from_secs(120);
/// The tool that runs a file of tests, while it does.
const RUNNER: &str = "run_the_tests_of_this_plugin";

/// The capabilities that a plugin's manifest holds it to; `None` where it holds it to nothing, or cannot be read.
pub fn capabilities(path: &Path) -> Option<Vec<String>> {
    let manifest = if path.is_dir() { Manifest::of_folder(path) } else { Manifest::of_file(path) };
    Some(manifest.ok()?.capabilities?.names())
}

/// Loads a plugin's file or folder and says what it offers, and everything that is wrong. Blocks, for 5 s
/// at most. Runs the plugin's script, with nothing of the world within its reach but its own folder.
///
/// # Errors
/// The system has no thread for the watchdog.
pub fn check(path: &Path) -> std::io::Result<Report> {
    let engine = Arc::new(Engine::new("check"));
    let mut report = Report::default();
    let plugin = match plugin_at(path, shared(engine, LOAD_LIMIT)?) {
        Ok(plugin) => plugin,
        Err(error) => {
            report.problems.push(*error);
            return Ok(report);
        }
    };
    report.name = plugin.name().to_owned();
    report.version = plugin.manifest.version.clone();
    report.capabilities = plugin.manifest.capabilities.as_ref().map(Capabilities::names);
    let (loaded, notes) = load_with(&plugin, &Extra { lenient: true, tests: None });
    report.problems = notes.problems;
    report.warnings = notes.warnings;
    match loaded {
        Ok(Outcome { registered, .. }) => {
            report.tools = registered.tools.iter().map(|(spec, _)| spec.describe()).collect();
            report.hooks = registered.hooks.iter().map(|(hook, _)| hook.name.clone()).collect();
            report.commands = registered.commands.iter().map(|(command, _)| command.name.clone()).collect();
            report.subagents = registered.subagents.iter().map(|subagent| subagent.name.clone()).collect();
            let address = |resource: &ResourceRegistration| resource.address.as_str().to_owned();
            report.resources = registered.resources.iter().map(|(resource, _)| address(resource)).collect();
            report.prompts = registered.prompts.iter().map(|(prompt, _)| prompt.about.name.clone()).collect();
        }
        Err(failure) => report.problems.push(failure.error),
    }
    Ok(report)
}

/// Runs the tests of a plugin: of `x.lua` those in `x_test.lua` beside it, of a folder all its
/// `*_test.lua`. Each file gets the plugin anew, an empty folder as its session's, and no programs but
/// those that it fakes.
///
/// # Errors
/// The system has no thread for the watchdog, or no place for the folder.
pub async fn test(path: &Path) -> std::io::Result<TestReport> {
    let mut report = TestReport::default();
    for file in tests_of(path)? {
        let outcome = test_file(path, &file).await?;
        let (cases, error) = match outcome {
            Ok(cases) => (cases, None),
            Err(error) => (Vec::new(), Some(*error)),
        };
        report.files.push(TestFile { path: file, cases, error });
    }
    Ok(report)
}

fn tests_of(path: &Path) -> std::io::Result<Vec<PathBuf>> {
    if !path.is_dir() {
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        let beside = path.with_file_name(format!("{stem}_test.lua"));
        return Ok(if beside.is_file() { vec![beside] } else { Vec::new() });
    }
    let mut files = Vec::new();
    for entry in std::fs::read_dir(path)? {
        let entry = entry?.path();
        if entry.to_string_lossy().ends_with("_test.lua") {
            files.push(entry);
        }
    }
    files.sort();
    Ok(files)
}

async fn test_file(path: &Path, file: &Path) -> std::io::Result<Result<Vec<TestCase>, Box<PluginError>>> {
    let folder = Scratch::new()?;
    let engine = Arc::new(Engine::new("test"));
    let plugin = match plugin_at(path, shared(engine.clone(), LOAD_LIMIT)?) {
        Ok(plugin) => plugin,
        Err(error) => return Ok(Err(error)),
    };
    let extra = Extra { lenient: false, tests: Some((RUNNER, file.to_owned())) };
    let loading = {
        let plugin = plugin.clone();
        tokio::task::spawn_blocking(move || load_with(&plugin, &extra).0)
    };
    let Outcome { loaded, registered, .. } = match loading.await.map_err(std::io::Error::other)? {
        Ok(loaded) => loaded,
        Err(failure) => return Ok(Err(Box::new(failure.error))),
    };
    let put = Put::new(plugin.clone(), Some(loaded), registered.as_data(), false);
    engine.hooks.replace(&put.key, put.hooks);
    if let Err(taken) = engine.registry.put(put.key, Origin::UserPlugin, put.tools) {
        return Ok(Err(Box::new(plain(taken.to_string()))));
    }
    let session = session_in("test", &folder.0, Mode::Yolo);
    let call = call_in(session, Principal::Person, RUNNER.to_owned(), TEST_LIMIT);
    Ok(match execute(&engine, call).await {
        Ok(result) if !result.is_error => Ok(cases(&plugin, result.structured.as_ref())),
        Ok(result) => {
            let traceback = result.metadata.get("traceback").and_then(Value::as_str);
            Err(Box::new(plugin.sources.explain_text(&result.text(), traceback)))
        }
        Err(error) => Err(Box::new(plain(error.to_string()))),
    })
}

/// A session with nobody at it, for what runs apart from the daemon.
pub(crate) fn session_in(id: &str, folder: &Path, mode: Mode) -> Session {
    let session = Session::new(NewSession {
        id: SessionId::parse(id).expect("letters are an id"),
        cwd: folder.to_owned(),
        roots: Vec::new(),
        project: folder.to_owned(),
        client: None,
        model: None,
        env: Default::default(),
        filter: SessionFilter::default(),
        workspace: None,
    });
    session.set_mode(mode);
    session
}

/// A call without arguments that nobody hears of.
pub(crate) fn call_in(session: Session, principal: Principal, name: String, limit: Duration) -> Call {
    Call {
        name,
        arguments: Value::Object(Map::new()),
        call_id: None,
        session: Arc::new(session),
        cwd: None,
        timeout: Some(limit),
        no_cache: true,
        caller: Arc::new(Caller { connection: 0, principal, in_flight: Arc::new(AtomicUsize::new(0)) }),
        progress: Vec::new(),
        cancel: CancellationToken::new(),
        chain: Arc::new([]),
        depth: 0,
        holds_lane: false,
    }
}

fn cases(plugin: &Plugin, structured: Option<&Value>) -> Vec<TestCase> {
    let list = structured.and_then(|value| value["cases"].as_array()).cloned().unwrap_or_default();
    let case = |value: &Value| TestCase {
        name: value["name"].as_str().unwrap_or_default().to_owned(),
        error: (value["ok"] != true).then(|| {
            plugin.sources.explain_text(value["message"].as_str().unwrap_or("?"), value["traceback"].as_str())
        }),
    };
    list.iter().map(case).collect()
}

/// What a plugin needs of a host, with little in it.
///
/// # Errors
/// The system has no thread for the watchdog.
pub(crate) fn shared(engine: Arc<Engine>, load_limit: Duration) -> std::io::Result<Arc<Shared>> {
    Ok(Arc::new(Shared {
        engine,
        watchdog: Watchdog::start()?,
        own: OwnChunks::default(),
        memory: MEMORY,
        load_limit,
        machines: 1,
        release_after: None,
        tables: Default::default(),
        profile_dir: PathBuf::new(),
        store: None,
        environment: Environment::default(),
        http: Arc::new(Http::new(Guard::default())),
        sandbox: Arc::default(),
        kept: None,
        usage: Arc::default(),
        stop: CancellationToken::new(),
    }))
}

fn plugin_at(path: &Path, shared: Arc<Shared>) -> Result<Arc<Plugin>, Box<PluginError>> {
    let real = path.canonicalize().map_err(|error| Box::new(plain(format!("{}: {error}", path.display()))))?;
    let manifest = if real.is_dir() { Manifest::of_folder(&real) } else { Manifest::of_file(&real) };
    let manifest = manifest.map_err(|error| Box::new(explain_manifest(&error)))?;
    let entry = manifest.entry.display();
    let script =
        std::fs::read(&manifest.entry).map_err(|error| Box::new(plain(format!("can't read {entry}: {error}"))))?;
    Ok(Arc::new(Plugin {
        key: SourceKey { kind: SourceKind::Plugin, name: manifest.name.clone(), scope: SourceScope::Global },
        path: real,
        origin: Origin::UserPlugin,
        script: script.into(),
        sources: Default::default(),
        sealed: false,
        shared,
        manifest,
    }))
}

fn plain(message: String) -> PluginError {
    PluginError { message, file: None, line: None, source_line: None, traceback: None }
}

/// A folder of the test's own, gone with it.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> std::io::Result<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("toold-plugin-test-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path)?;
        path.canonicalize().map(Self)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What cannot be removed is the system's temporary folder's to clean.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
