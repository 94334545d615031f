//! Running the tests of a plugin, without a daemon.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use mlua::Function;
use serde_json::Value;
use toold_engine::Engine;
use toold_engine::call::Principal;
use toold_engine::execute::execute;
use toold_engine::tool::Origin;
use toold_proto::plugin::PluginError;
use toold_proto::session::Mode;

use crate::api::testing;
use crate::plugin::PluginVersion;
use crate::plugin::prepared::PreparedPlugin;
use crate::reload::coverage::TestCoverage;
use crate::reload::load::{LoadOptions, LoadedScript, load_with};
use crate::reload::memory_store::MemoryStore;
use crate::reload::options::StandaloneOptions;
use crate::reload::standalone::{LOAD_LIMIT, call_in, plugin_at, session_in, shared};
use crate::reload::test_functions::TestFunctions;

/// The results of a plugin's tests.
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
    /// The texts of its `describe`s and its `it`.
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

const TEST_LIMIT: Duration = Duration::from_secs(120);

/// The name of the tool that runs a test file, while it runs.
const RUNNER: &str = "run_the_tests_of_this_plugin";

/// Runs the tests of a plugin: for `x.lua` those in `x_test.lua` beside it, for a folder all its `*_test.lua`. Each
/// file gets a freshly loaded plugin, an empty folder as its session's, and only the programs that it fakes.
///
/// # Errors
/// There is no plugin at `path`, the system has no thread for the watchdog, or the folder cannot be made.
pub async fn test(path: &Path) -> std::io::Result<TestReport> {
    run(path, &mut None).await
}

/// The same, with the lines that ran.
///
/// # Errors
/// As [`test()`].
pub async fn test_with_coverage(path: &Path) -> std::io::Result<(TestReport, TestCoverage)> {
    let mut coverage = Some(TestCoverage::default());
    let report = run(path, &mut coverage).await?;
    Ok((report, coverage.unwrap_or_default()))
}

async fn run(path: &Path, coverage: &mut Option<TestCoverage>) -> std::io::Result<TestReport> {
    let mut report = TestReport::default();
    for file in tests_of(path)? {
        let outcome = test_file(path, &file, coverage).await?;
        let (cases, error) = match outcome {
            Ok(cases) => (cases, None),
            Err(error) => (Vec::new(), Some(*error)),
        };
        report.files.push(TestFile { path: file, cases, error });
    }
    Ok(report)
}

fn tests_of(path: &Path) -> std::io::Result<Vec<PathBuf>> {
    if !std::fs::metadata(path)?.is_dir() {
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

async fn test_file(
    path: &Path,
    file: &Path,
    coverage: &mut Option<TestCoverage>,
) -> std::io::Result<Result<Vec<TestCase>, Box<PluginError>>> {
    // As the plugin's own files, so that messages name it in the same way.
    let file = file.canonicalize()?;
    let folder = Scratch::new()?;
    let engine = Arc::new(Engine::new("test"));
    let store = Arc::<MemoryStore>::default();
    let mut resources = shared(engine.clone(), LOAD_LIMIT, StandaloneOptions::default())?;
    Arc::get_mut(&mut resources).expect("nothing else has it yet").store = Some(store.clone());
    let plugin = match plugin_at(path, resources) {
        Ok(plugin) => plugin,
        Err(error) => return Ok(Err(error)),
    };
    let extra =
        LoadOptions { lenient: false, fakes: true, tests: Some((RUNNER, file)), counts_lines: coverage.is_some() };
    let loading = {
        let plugin = plugin.clone();
        tokio::task::spawn_blocking(move || load_with(&plugin, &extra).0)
    };
    let LoadedScript { loaded, registered, .. } = match loading.await.map_err(std::io::Error::other)? {
        Ok(loaded) => loaded,
        Err(failure) => return Ok(Err(Box::new(failure.error))),
    };
    let connect: Function = loaded.state.lua().named_registry_value(testing::CONNECT).map_err(std::io::Error::other)?;
    let lua = loaded.state.lua().clone();
    let mut prepared = PreparedPlugin::new(plugin.clone(), Some(loaded), registered.as_data(), false);
    let functions = TestFunctions::new(engine.clone(), &mut prepared, store, &folder.0);
    functions.install(&lua, &connect).map_err(std::io::Error::other)?;
    if let Err(taken) = engine.registry.put(prepared.key, Origin::UserPlugin, prepared.tools) {
        return Ok(Err(Box::new(PluginError::of(taken.to_string()))));
    }
    let states = prepared.states;
    let session = session_in("test", &folder.0, Mode::Yolo);
    let call = call_in(session, Principal::Person, RUNNER.to_owned(), TEST_LIMIT);
    let executed = execute(&engine, call).await;
    if let (Some(coverage), Ok(main)) = (coverage, states.main().await) {
        main.state.between_scripts(|lua| coverage.add(lua, &plugin)).await;
    }
    Ok(match executed {
        Ok(result) if !result.is_error => Ok(cases(&plugin, result.structured.as_ref())),
        Ok(result) => {
            let traceback = result.metadata.get("traceback").and_then(Value::as_str);
            Err(Box::new(plugin.sources.explain_text(&result.text(), traceback)))
        }
        Err(error) => Err(Box::new(PluginError::of(error.to_string()))),
    })
}

fn cases(plugin: &PluginVersion, structured: Option<&Value>) -> Vec<TestCase> {
    let list = structured.and_then(|value| value["cases"].as_array()).cloned().unwrap_or_default();
    let case = |value: &Value| TestCase {
        name: value["name"].as_str().unwrap_or_default().to_owned(),
        error: (value["ok"] != true).then(|| {
            plugin.sources.explain_text(value["message"].as_str().unwrap_or("?"), value["traceback"].as_str())
        }),
    };
    list.iter().map(case).collect()
}

/// A folder for one test, removed with it.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn new() -> std::io::Result<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("toold-plugin-test-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path)?;
        path.canonicalize().map(Self)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // If removing fails, the system cleans its temporary folder.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
