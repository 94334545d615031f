//! The functions of test files that need the engine: rendering prompts, reading resources, running commands, finding
//! out what a call needs, and tools that stand in for those of the daemon.

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use mlua::{Function, Lua, Value as LuaValue};
use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use toold_engine::Engine;
use toold_engine::call::Call;
use toold_engine::callable::Callable;
use toold_engine::cx::Cx;
use toold_engine::execute::execute_tool;
use toold_engine::hooks::Hook;
use toold_engine::need::Need;
use toold_engine::offers;
use toold_engine::registry::{SourceKey, SourceScope};
use toold_engine::schema::Schema;
use toold_engine::tool::{Origin, ToolError, ToolOutput, ToolSpec};
use toold_proto::tool::{Annotations, Source, SourceKind, ToolName};

use crate::plugin::command::SlashCommand;
use crate::plugin::failures::HandlerName;
use crate::plugin::handler;
use crate::plugin::prepared::PreparedPlugin;
use crate::plugin::state_pool::StatePool;
use crate::plugin::tool_result;
use crate::reload::memory_store::MemoryStore;
use crate::vm::convert;
use crate::vm::script_run;

/// The state behind the functions of one test file.
pub(crate) struct TestFunctions {
    engine: Arc<Engine>,
    states: Arc<StatePool>,
    key: SourceKey,
    hooks: Vec<Arc<dyn Hook>>,
    commands: Vec<SlashCommand>,
    store: Arc<MemoryStore>,
    /// The session's.
    folder: PathBuf,
    fakes: Mutex<Vec<Arc<dyn Callable>>>,
    files: Mutex<Vec<PathBuf>>,
}

impl TestFunctions {
    /// Puts everything but its tools into the engine.
    pub(crate) fn new(
        engine: Arc<Engine>,
        prepared: &mut PreparedPlugin,
        store: Arc<MemoryStore>,
        folder: &Path,
    ) -> Self {
        let offer = std::mem::take(&mut prepared.offer);
        engine.offers.commit(vec![(prepared.key.clone(), Origin::UserPlugin, offer)]);
        Self {
            engine,
            states: prepared.states.clone(),
            key: prepared.key.clone(),
            hooks: std::mem::take(&mut prepared.hooks),
            commands: std::mem::take(&mut prepared.commands),
            store,
            folder: folder.to_owned(),
            fakes: Mutex::default(),
            files: Mutex::default(),
        }
    }

    /// Lets the functions of `testing.lua` reach the engine.
    ///
    /// # Errors
    /// The Lua state has no memory left.
    pub(crate) fn install(self, lua: &Lua, connect: &Function) -> mlua::Result<()> {
        let own = Arc::new(self);
        let asked = own.clone();
        let ask = lua.create_async_function(move |lua, (kind, name, given): (String, String, LuaValue)| {
            let own = asked.clone();
            async move {
                let reply = match convert::to_json(&lua, &given) {
                    Ok(given) => own.ask(&kind, name, given).await,
                    Err(error) => Err(error.to_string()),
                };
                match reply {
                    Ok(value) => Ok((true, convert::to_lua(&lua, &value)?)),
                    Err(message) => Ok((false, LuaValue::String(lua.create_string(message)?))),
                }
            }
        })?;
        let faked = own.clone();
        let fake = lua.create_function(move |_, (name, run): (String, Function)| {
            faked.fake(&name, run).map_err(mlua::Error::runtime)
        })?;
        let made = own.clone();
        let file = lua.create_function(move |_, (name, text): (String, mlua::LuaString)| {
            made.make_file(&name, &text.as_bytes()).map_err(mlua::Error::runtime)
        })?;
        // The test file is itself a call, which the plugin's hooks are not for.
        let between = lua.create_function(move |_, is_case: bool| {
            own.engine.hooks.replace(&own.key, if is_case { own.hooks.clone() } else { Vec::new() });
            own.engine.registry.remove(fakes_key());
            own.fakes.lock().clear();
            own.store.clear();
            for file in own.files.lock().drain(..) {
                // The plugin may have removed it.
                let _ = std::fs::remove_file(file);
            }
            Ok(())
        })?;
        connect.call((ask, fake, file, between))
    }

    async fn ask(self: Arc<Self>, kind: &str, name: String, given: Value) -> Result<Value, String> {
        let run = script_run::current().ok_or("this can only be called within a case")?;
        let cx = run.cx()?.clone();
        let (kind, chain) = (kind.to_owned(), run.chain.clone());
        let work = async move {
            let call = inner_call(&cx, chain);
            match kind.as_str() {
                "render" => {
                    let given = given.as_object().cloned().unwrap_or_default();
                    let rendered = offers::render(&self.engine, &name, given, call).await;
                    json(rendered.map_err(|error| error.to_string())?)
                }
                "read" => {
                    let contents = offers::read(&self.engine, &name, call).await;
                    json(contents.map_err(|error| error.to_string())?)
                }
                "command" => {
                    let command = self.commands.iter().find(|command| command.name == name);
                    let tool = command.ok_or_else(|| format!("there is no command {name}"))?.tool.clone();
                    let call = Call { name, arguments: json!({ "input": given }), ..call };
                    let result = execute_tool(&self.engine, tool, call).await.map_err(|error| error.to_string())?;
                    Ok(json!({"content": result.text(), "is_error": result.is_error}))
                }
                _ => {
                    let tool = self.engine.registry.snapshot().global().find(&name).cloned();
                    let tool = tool.ok_or_else(|| format!("there is no tool {name}"))?;
                    let needs = tool.needs(&given, &cx).await.map_err(|error| error.to_string())?;
                    Ok(needs.into_iter().map(described).collect())
                }
            }
        };
        run.effect(work).await?
    }

    fn fake(&self, name: &str, run: Function) -> Result<(), String> {
        let name = ToolName::parse(name).map_err(|error| error.to_string())?;
        let spec = ToolSpec {
            label: name.to_string(),
            name,
            description: String::new(),
            input: Schema::compiled_before(json!({"type": "object"})),
            output: None,
            source: Source { kind: SourceKind::Builtin, name: fakes_key().name, path: None },
            origin: Origin::Builtin,
            parallelizable: true,
            permissions: Vec::new(),
            cache_ttl: None,
            timeout: None,
            annotations: Annotations::default(),
            version: None,
            grammar: None,
        };
        let mut fakes = self.fakes.lock();
        fakes.retain(|fake| fake.spec().name != spec.name);
        fakes.push(Arc::new(FakeTool { spec, states: self.states.clone(), run }));
        self.engine.registry.put(fakes_key(), Origin::Builtin, fakes.clone()).map_err(|taken| taken.to_string())
    }

    /// Not through `hygge.fs`: a plugin that may not write is tested with files too.
    fn make_file(&self, name: &str, text: &[u8]) -> Result<(), String> {
        if !Path::new(name).components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir)) {
            return Err(format!("fake.file: expected a path within the session's folder, got {name:?}"));
        }
        let path = self.folder.join(name);
        let made =
            std::fs::create_dir_all(path.parent().unwrap_or(&self.folder)).and_then(|()| std::fs::write(&path, text));
        made.map_err(|error| format!("fake.file: can't write {name}: {error}"))?;
        self.files.lock().push(path);
        Ok(())
    }
}

fn fakes_key() -> SourceKey {
    SourceKey { kind: SourceKind::Builtin, name: "fakes".to_owned(), scope: SourceScope::Global }
}

/// A call within the call that runs the test file.
fn inner_call(cx: &Cx, chain: Arc<[String]>) -> Call {
    Call {
        name: String::new(),
        arguments: Value::Object(Map::new()),
        call_id: None,
        session: cx.session.clone(),
        cwd: None,
        timeout: Some(cx.deadline.remaining()),
        no_cache: true,
        caller: cx.caller.clone(),
        progress: Vec::new(),
        cancel: cx.cancel.child_token(),
        chain,
        depth: cx.depth + 1,
        holds_lane: cx.holds_lane,
    }
}

fn json(value: impl serde::Serialize) -> Result<Value, String> {
    serde_json::to_value(value).map_err(|error| error.to_string())
}

fn described(need: Need) -> Value {
    json!({"category": need.category(), "target": need.target, "reason": need.reason})
}

/// A function of a test file in the place of a tool of the daemon.
struct FakeTool {
    spec: ToolSpec,
    states: Arc<StatePool>,
    run: Function,
}

impl Callable for FakeTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn needs<'a>(&'a self, _: &'a Value, _: &'a Cx) -> BoxFuture<'a, Result<Vec<Need>, ToolError>> {
        std::future::ready(Ok(Vec::new())).boxed()
    }

    fn call<'a>(&'a self, input: Value, cx: &'a Cx) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        let cx = cx.shared();
        async move {
            let loaded = self.states.main().await.map_err(ToolError::Failed)?;
            let lua = loaded.state.lua();
            let read = |value: &LuaValue| tool_result::output(lua, value, &self.spec);
            let handler = HandlerName { kind: "fake", name: self.spec.name.as_str() };
            handler::run(&self.states, &loaded, (handler, &self.run), &cx, &input, &[&input], read).await
        }
        .boxed()
    }
}
