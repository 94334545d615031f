//! The global table `hygge`: which modules it has, and how their functions are made.
//!
//! A module's file names each of its functions once; `plugins/types/hygge.lua` documents them.

mod bytes;
mod context;
pub(crate) mod exec;
mod fs;
mod http;
pub(crate) mod io;
mod json;
mod log;
mod modules;
mod register;
mod register_offers;
pub(crate) mod script_context;
mod secret;
mod state;
mod store;
pub(crate) mod testing;
mod time;
mod timers;
mod tools;

use std::future::Future;
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use mlua::{Function, IntoLua, IntoLuaMulti, Lua, MultiValue, Table, Value};
use parking_lot::Mutex;
use serde_json::Value as Json;

use crate::api::script_context::ScriptContext;
use crate::vm::args::Args;
use crate::vm::convert;
use crate::vm::create::Prelude;
use crate::vm::script_run::{self, ScriptRun};

/// Adds the host functions to a new Lua state.
pub(crate) fn install(lua: &Lua, prelude: &Prelude, context: &Arc<ScriptContext>) -> mlua::Result<()> {
    let waiting_functions = WaitingFunctions::new(lua, prelude, context)?;
    let module = ApiTable { lua, prelude, context, waiting_functions: &waiting_functions, table: lua.create_table()? };
    register::install(&module)?;
    register_offers::install(&module)?;
    log::install(&module)?;
    json::install(&module)?;
    bytes::install(&module)?;
    time::install(&module)?;
    timers::install(&module)?;
    tools::install(&module)?;
    context::install(&module)?;
    exec::install(&module)?;
    fs::install(&module)?;
    http::install(&module)?;
    secret::install(&module)?;
    state::install(&module)?;
    store::install(&module)?;
    modules::install(&module)?;
    io::install(&module)?;
    lua.globals().raw_set("hygge", module.table)
}

/// A table of host functions while it is built.
pub(crate) struct ApiTable<'a> {
    pub(crate) lua: &'a Lua,
    pub(crate) prelude: &'a Prelude,
    pub(crate) context: &'a Arc<ScriptContext>,
    waiting_functions: &'a WaitingFunctions,
    pub(crate) table: Table,
}

/// The arguments and the context of a host function that waits.
pub(crate) struct HostCall<'a> {
    pub(crate) lua: &'a Lua,
    pub(crate) args: &'a Args,
    pub(crate) context: &'a Arc<ScriptContext>,
    pub(crate) call: &'a Arc<ScriptRun>,
    /// The script cannot yield: its Lua state is blocked until the work is done.
    pub(crate) blocking: bool,
}

/// A value that a host function returns, made outside of the Lua state.
pub(crate) enum HostReply {
    Nil,
    /// Converted as arguments are: a null field is absent.
    Json(Json),
    /// A null is `json.null`, and bytes that are not text are themselves.
    Stored(Json),
    Bytes(Vec<u8>),
    Fields(Vec<(&'static str, HostReply)>),
}

/// The work of a host function that waits, done while the script waits.
pub(crate) type HostWork = BoxFuture<'static, Result<HostReply, String>>;

impl<'a> ApiTable<'a> {
    /// A table within this one.
    pub(crate) fn within(&self, name: &str) -> mlua::Result<ApiTable<'a>> {
        let table = self.lua.create_table()?;
        self.table.raw_set(name, &table)?;
        Ok(ApiTable { table, ..*self })
    }

    /// A table that is not reachable by name.
    pub(crate) fn apart(&self) -> mlua::Result<ApiTable<'a>> {
        Ok(ApiTable { table: self.lua.create_table()?, ..*self })
    }

    /// A function that returns at once. `called` is its full name, for errors.
    pub(crate) fn function<R: IntoLuaMulti>(
        &self,
        name: &str,
        called: &'static str,
        run: impl Fn(&Lua, &Args, &Arc<ScriptContext>) -> Result<R, String> + Send + Sync + 'static,
    ) -> mlua::Result<Function> {
        let context = self.context.clone();
        let raw = self.lua.create_function(move |lua, values: MultiValue| {
            answer(lua, run(lua, &Args::new(called, values), &context))
        })?;
        let function: Function = self.prelude.lift.call(raw)?;
        self.table.raw_set(name, &function)?;
        Ok(function)
    }

    /// A function that waits. `begin` reads the arguments; the future that it returns runs while the script waits, and
    /// is dropped when the call must stop.
    pub(crate) fn waiting<W>(
        &self,
        name: &str,
        called: &'static str,
        begin: impl Fn(&HostCall) -> Result<W, String> + Send + Sync + 'static,
    ) -> mlua::Result<Function>
    where
        W: Future<Output = Result<HostReply, String>> + Send + 'static,
    {
        let begin: BeginWork = Box::new(move |host_call| Ok(begin(host_call)?.boxed()));
        let place = self.waiting_functions.add(called, begin);
        let function: Function = self.waiting_functions.lift.call(place)?;
        self.table.raw_set(name, &function)?;
        Ok(function)
    }
}

type BeginWork = Box<dyn Fn(&HostCall) -> Result<HostWork, String> + Send + Sync>;

/// The host functions of a Lua state that wait. Two Lua functions serve all of them: one yields while it waits, the
/// other blocks its thread. A pair for each would make every Lua state much larger.
pub(crate) struct WaitingFunctions {
    all: Arc<Mutex<Vec<(&'static str, BeginWork)>>>,
    /// Turns a position in the list into the function that scripts call.
    lift: Function,
}

impl WaitingFunctions {
    fn new(lua: &Lua, prelude: &Prelude, context: &Arc<ScriptContext>) -> mlua::Result<Self> {
        let all = Arc::<Mutex<Vec<(&'static str, BeginWork)>>>::default();
        let start = {
            let (all, context) = (all.clone(), context.clone());
            move |lua: &Lua, mut values: MultiValue, blocking: bool| {
                let place = values.pop_front().and_then(|place| place.as_usize()).unwrap_or(usize::MAX);
                let all = all.lock();
                let (called, begin) = all.get(place).ok_or("there is no such function")?;
                let call = script_run::current().ok_or_else(|| format!("{called}: no call is running"))?;
                let args = Args::new(called, values);
                context.note_side_effect();
                let work = begin(&HostCall { lua, args: &args, context: &context, call: &call, blocking })?;
                drop(all);
                Ok::<_, String>((call, work))
            }
        };
        let blocking = {
            let start = start.clone();
            lua.create_function(move |lua, values: MultiValue| {
                let reply = start(lua, values, true).and_then(|(call, work)| call.effect_blocking(work)?);
                answer(lua, reply)
            })?
        };
        let waiting = lua.create_async_function(move |lua, values: MultiValue| {
            let started = start(&lua, values, false);
            async move {
                let reply = match started {
                    Ok((call, work)) => call.effect(work).await.unwrap_or_else(Err),
                    Err(message) => Err(message),
                };
                answer(&lua, reply)
            }
        })?;
        Ok(Self { all, lift: prelude.lift_waiting.bind((waiting, blocking))? })
    }

    fn add(&self, called: &'static str, begin: BeginWork) -> usize {
        let mut all = self.all.lock();
        all.push((called, begin));
        all.len() - 1
    }
}

/// The form that the prelude expects: true and the value, or false and the message.
fn answer<R: IntoLuaMulti>(lua: &Lua, reply: Result<R, String>) -> mlua::Result<MultiValue> {
    let (ok, mut values) = match reply {
        Ok(values) => (true, values.into_lua_multi(lua)?),
        Err(message) => (false, message.into_lua_multi(lua)?),
    };
    values.push_front(Value::Boolean(ok));
    Ok(values)
}

impl IntoLua for HostReply {
    fn into_lua(self, lua: &Lua) -> mlua::Result<Value> {
        match self {
            Self::Nil => Ok(Value::Nil),
            Self::Json(json) => convert::to_lua(lua, &json),
            Self::Stored(json) => convert::to_lua_with_bytes(lua, &json),
            Self::Bytes(bytes) => Ok(Value::String(lua.create_string(bytes)?)),
            Self::Fields(fields) => {
                let table = lua.create_table_with_capacity(0, fields.len())?;
                for (name, reply) in fields {
                    table.raw_set(name, reply)?;
                }
                Ok(Value::Table(table))
            }
        }
    }
}
