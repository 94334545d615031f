//! A prompt in a plugin that is loaded with the fakes of tests, without a daemon.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use mlua::Function;
use serde_json::json;
use tokio_util::sync::CancellationToken;
use toold_engine::Engine;
use toold_engine::call::{Call, CallError, Principal};
use toold_engine::callable::Callable;
use toold_engine::execute::execute_tool;
use toold_engine::progress::ProgressSink;
use toold_engine::tool::Origin;
use toold_proto::plugin::PluginError;
use toold_proto::session::Mode;
use toold_proto::tool::ToolResult;

use crate::api::testing;
use crate::plugin::evaluate::Evaluator;
use crate::plugin::prepared::PreparedPlugin;
use crate::reload::load::{LoadOptions, LoadedScript, load_with};
use crate::reload::memory_store::MemoryStore;
use crate::reload::options::StandaloneOptions;
use crate::reload::plugin_tests::Scratch;
use crate::reload::standalone::{LOAD_LIMIT, call_in, plugin_at, session_in, shared};
use crate::reload::test_functions::TestFunctions;

/// How long an input may run.
const INPUT_LIMIT: Duration = Duration::from_secs(600);

/// A plugin with the functions of test files: its programs and its requests are faked, its session has an empty folder.
pub struct FakedPrompt {
    engine: Arc<Engine>,
    evaluator: Arc<dyn Callable>,
    folder: Scratch,
}

impl FakedPrompt {
    /// # Errors
    /// The outer one: the system has no thread for the watchdog, or the folder cannot be made. The inner one: the plugin
    /// cannot be loaded.
    pub async fn open(path: &Path) -> std::io::Result<Result<Self, Box<PluginError>>> {
        let folder = Scratch::new()?;
        let engine = Arc::new(Engine::new("prompt"));
        let store = Arc::<MemoryStore>::default();
        let mut resources = shared(engine.clone(), LOAD_LIMIT, StandaloneOptions::default())?;
        Arc::get_mut(&mut resources).expect("nothing else has it yet").store = Some(store.clone());
        let plugin = match plugin_at(path, resources) {
            Ok(plugin) => plugin,
            Err(error) => return Ok(Err(error)),
        };
        let options = LoadOptions { fakes: true, ..LoadOptions::default() };
        let loading = {
            let plugin = plugin.clone();
            tokio::task::spawn_blocking(move || load_with(&plugin, &options).0)
        };
        let LoadedScript { loaded, registered, .. } = match loading.await.map_err(std::io::Error::other)? {
            Ok(loaded) => loaded,
            Err(failure) => return Ok(Err(Box::new(failure.error))),
        };
        let lua = loaded.state.lua().clone();
        let connect: Function = lua.named_registry_value(testing::CONNECT).map_err(std::io::Error::other)?;
        let mut prepared = PreparedPlugin::new(plugin, Some(loaded), registered.as_data(), false);
        let hooks = prepared.hooks.clone();
        let functions = TestFunctions::new(engine.clone(), &mut prepared, store, folder.path());
        functions.install(&lua, &connect).map_err(std::io::Error::other)?;
        engine.hooks.replace(&prepared.key, hooks);
        if let Err(taken) = engine.registry.put(prepared.key, Origin::UserPlugin, prepared.tools) {
            return Ok(Err(Box::new(PluginError::of(taken.to_string()))));
        }
        let evaluator = Arc::new(Evaluator::new(prepared.states));
        Ok(Ok(Self { engine, evaluator, folder }))
    }

    /// Runs an input. It is stopped when `cancel` fires, and after 10 minutes.
    ///
    /// # Errors
    /// It was stopped.
    pub async fn evaluate(
        &self,
        source: String,
        progress: Arc<dyn ProgressSink>,
        cancel: CancellationToken,
    ) -> Result<ToolResult, CallError> {
        let session = session_in("prompt", self.folder.path(), Mode::Yolo);
        let call = Call {
            arguments: json!({"source": source}),
            progress: vec![progress],
            cancel,
            ..call_in(session, Principal::Person, "prompt".to_owned(), INPUT_LIMIT)
        };
        execute_tool(&self.engine, self.evaluator.clone(), call).await
    }
}
