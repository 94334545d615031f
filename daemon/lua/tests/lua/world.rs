//! A plugin host with a folder of its own, and an engine to call its tools.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use serde_json::Value;
use tempfile::TempDir;
use toold_engine::Engine;
use toold_engine::call::{Call, CallError};
use toold_engine::events::EventSelection;
use toold_engine::execute::execute;
use toold_engine::session::{NewSession, Session};
use toold_host::environment::Environment;
use toold_lua::plugin::store::KeyValueStore;
use toold_lua::reload::PluginHost;
use toold_lua::reload::check::{CheckReport, check};
use toold_lua::reload::options::{DirKind, PluginDir, PluginHostOptions, StandaloneOptions};
use toold_proto::event::EventBody;
use toold_proto::plugin::{Plugin, PluginStatus};
use toold_proto::tool::ToolResult;
use toold_test_kit::{PATIENCE, new_session, prepare_call};

pub(crate) struct TestPlugins {
    pub(crate) engine: Arc<Engine>,
    pub(crate) host: PluginHost,
    pub(crate) session: Arc<Session>,
    /// The user's plugin folder.
    pub(crate) plugins: PathBuf,
    pub(crate) root: TempDir,
}

impl TestPlugins {
    /// With these files in the plugin folder, loaded.
    pub(crate) async fn new(files: &[(&str, &str)]) -> Self {
        Self::with(files, |_| {}).await
    }

    pub(crate) async fn with(files: &[(&str, &str)], change: impl FnOnce(&mut PluginHostOptions)) -> Self {
        let root = TempDir::new().unwrap();
        let real = root.path().canonicalize().unwrap();
        let plugins = real.join("plugins");
        std::fs::create_dir(&plugins).unwrap();
        std::fs::create_dir(real.join("work")).unwrap();
        for (name, text) in files {
            write(&plugins.join(name), text);
        }
        let engine = Arc::new(Engine::new("test"));
        let dirs = vec![PluginDir { path: plugins.clone(), kind: DirKind::User }];
        let mut options = PluginHostOptions::new(engine.clone(), dirs);
        options.environment = Environment::inherited(std::env::vars_os());
        options.settle_patience = PATIENCE;
        change(&mut options);
        let host = PluginHost::start(options).unwrap();
        soon(host.settled()).await;
        let session = session("s", &real.join("work"));
        Self { engine, host, session, plugins, root }
    }

    /// One plugin of one file.
    pub(crate) async fn of(script: &str) -> Self {
        let world = Self::new(&[("p.lua", script)]).await;
        let error = world.plugin("p").error;
        assert_eq!(error, None, "the plugin did not load");
        world
    }

    /// A session whose serial lane is free.
    pub(crate) fn another_session(&self) -> Arc<Session> {
        session("another", self.work())
    }

    /// Lets every plugin do anything.
    pub(crate) fn allow_all(&self) {
        self.session.set_mode(toold_proto::session::Mode::Yolo);
    }

    /// The session's folder.
    pub(crate) fn work(&self) -> &Path {
        &self.session.cwd
    }

    pub(crate) fn call_of(&self, name: &str, arguments: Value) -> Call {
        prepare_call(&self.session, name, arguments)
    }

    pub(crate) async fn execute(&self, call: Call) -> Result<ToolResult, CallError> {
        soon(execute(&self.engine, call)).await
    }

    /// A call that can run.
    pub(crate) async fn call(&self, name: &str, arguments: Value) -> ToolResult {
        self.execute(self.call_of(name, arguments)).await.unwrap()
    }

    /// The text of a call that went well.
    pub(crate) async fn text(&self, name: &str, arguments: Value) -> String {
        let result = self.call(name, arguments).await;
        assert!(!result.is_error, "{}", result.text());
        result.text()
    }

    pub(crate) fn plugin(&self, name: &str) -> Plugin {
        let list = self.host.list();
        list.iter().find(|plugin| plugin.name == name).unwrap_or_else(|| panic!("no {name} in {list:#?}")).clone()
    }

    pub(crate) fn tools(&self) -> Vec<String> {
        let snapshot = self.engine.registry.snapshot();
        snapshot.global().iter().map(|tool| tool.spec().name.to_string()).collect()
    }

    pub(crate) fn revision(&self) -> u64 {
        self.engine.registry.snapshot().revision
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        write(&self.plugins.join(name), text);
    }

    /// Waits, from event to event, until something is so.
    pub(crate) async fn until(&self, mut is_so: impl FnMut(&Self) -> bool) {
        let mut events = self.engine.events.subscribe(EventSelection::All, None).receiver;
        let wait = async {
            while !is_so(self) {
                events.recv().await.unwrap();
            }
        };
        if tokio::time::timeout(PATIENCE, wait).await.is_err() {
            panic!("it never was so; plugins: {:#?}", self.host.list());
        }
    }

    pub(crate) async fn until_failed(&self, name: &str) -> Plugin {
        self.until(|world| world.host.list().iter().any(|p| p.name == name && p.status == PluginStatus::Failed)).await;
        self.plugin(name)
    }

    /// Everything that plugins have logged.
    pub(crate) fn logs(&self) -> Vec<String> {
        let events = self.engine.events.subscribe_from_start(EventSelection::All).replay;
        let text = |event: &Arc<toold_engine::events::Emitted>| match &event.body {
            EventBody::Log { message, .. } => Some(message.clone()),
            _ => None,
        };
        events.iter().filter_map(text).collect()
    }

    pub(crate) async fn until_described(&self, tool: &str, description: &str) {
        self.until(|world| {
            let snapshot = world.engine.registry.snapshot();
            snapshot.global().find(tool).is_some_and(|tool| tool.spec().description == description)
        })
        .await;
    }
}

fn session(id: &str, cwd: &Path) -> Arc<Session> {
    Arc::new(Session::new(NewSession { model: Some("test-model".into()), ..new_session(id, cwd) }))
}

pub(crate) async fn soon<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, work).await.expect("it hangs")
}

pub(crate) fn write(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// A store that lasts as long as its test.
#[derive(Default)]
pub(crate) struct TestStore(Mutex<BTreeMap<(String, String), Value>>);

impl KeyValueStore for TestStore {
    fn get(&self, plugin: &str, key: &str) -> Result<Option<Value>, String> {
        Ok(self.0.lock().unwrap().get(&(plugin.to_owned(), key.to_owned())).cloned())
    }
    fn set(&self, plugin: &str, key: &str, value: &Value) -> Result<(), String> {
        self.0.lock().unwrap().insert((plugin.to_owned(), key.to_owned()), value.clone());
        Ok(())
    }
    fn compare_and_set(
        &self,
        plugin: &str,
        key: &str,
        expected: Option<&str>,
        new: Option<&Value>,
    ) -> Result<bool, String> {
        let (mut all, at) = (self.0.lock().unwrap(), (plugin.to_owned(), key.to_owned()));
        if all.get(&at).map(Value::to_string).as_deref() != expected {
            return Ok(false);
        }
        match new {
            Some(new) => all.insert(at, new.clone()),
            None => all.remove(&at),
        };
        Ok(true)
    }
    fn delete(&self, plugin: &str, key: &str) -> Result<bool, String> {
        Ok(self.0.lock().unwrap().remove(&(plugin.to_owned(), key.to_owned())).is_some())
    }
    fn keys(&self, plugin: &str, prefix: &str) -> Result<Vec<String>, String> {
        let all = self.0.lock().unwrap();
        Ok(all.keys().filter(|(of, key)| of == plugin && key.starts_with(prefix)).map(|(_, key)| key.clone()).collect())
    }
}

/// The report of `plugins check`.
pub(crate) fn checked(path: &Path) -> CheckReport {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(check(path, StandaloneOptions::default())).unwrap()
}
