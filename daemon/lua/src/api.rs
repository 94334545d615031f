//! The global table `hygge`: which modules it has, and how their functions are made.
//!
//! A module's file names each of its functions once; `plugins/types/hygge.lua` documents them.

mod context;
mod exec;
mod fs;
mod http;
mod json;
mod modules;
mod offers;
mod register;
mod store;
mod system;
mod tell;
mod testing;
mod time;
mod tools;

pub(crate) use context::{begin, need};
pub(crate) use exec::Following;
pub(crate) use system::after_load;
pub(crate) use testing::{offer_testing, test_runner};

use std::future::Future;
use std::sync::{Arc, Mutex};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use mlua::{Function, IntoLua, IntoLuaMulti, Lua, MultiValue, Table, Value};
use serde_json::Value as Json;

use crate::args::Args;
use crate::call::{self, Call};
use crate::convert;
use crate::load::Home;
use crate::vm::Prelude;

/// Gives a new machine its host functions.
pub(crate) fn offer(lua: &Lua, prelude: &Prelude, home: &Arc<Home>) -> mlua::Result<()> {
    let waits = Waits::new(lua, prelude, home)?;
    let module = Module { lua, prelude, home, waits: &waits, table: lua.create_table()? };
    register::offer(&module)?;
    offers::offer(&module)?;
    tell::offer(&module)?;
    json::offer(&module)?;
    time::offer(&module)?;
    tools::offer(&module)?;
    context::offer(&module)?;
    exec::offer(&module)?;
    fs::offer(&module)?;
    http::offer(&module)?;
    store::offer(&module)?;
    modules::offer(&module)?;
    system::offer(&module)?;
    lua.globals().raw_set("hygge", module.table)
}

/// A table of host functions in the making.
pub(crate) struct Module<'a> {
    pub(crate) lua: &'a Lua,
    pub(crate) prelude: &'a Prelude,
    pub(crate) home: &'a Arc<Home>,
    waits: &'a Waits,
    pub(crate) table: Table,
}

/// What a function that waits finds when it begins.
pub(crate) struct Asked<'a> {
    pub(crate) lua: &'a Lua,
    pub(crate) args: &'a Args,
    pub(crate) home: &'a Arc<Home>,
    pub(crate) call: &'a Arc<Call>,
    /// The script cannot be left: its machine is held until the work is done.
    pub(crate) held: bool,
}

/// What a function of the host gives that was done outside of the machine.
pub(crate) enum Reply {
    Nil,
    /// As arguments are: a null field is absent.
    Json(Json),
    /// A null is `json.null`.
    Exact(Json),
    Bytes(Vec<u8>),
    Fields(Vec<(&'static str, Reply)>),
}

/// What a function that waits has done beside the script.
pub(crate) type Work = BoxFuture<'static, Result<Reply, String>>;

impl<'a> Module<'a> {
    /// A table within this one.
    pub(crate) fn within(&self, name: &str) -> mlua::Result<Module<'a>> {
        let table = self.lua.create_table()?;
        self.table.raw_set(name, &table)?;
        Ok(Module { table, ..*self })
    }

    /// A table that is not reachable by a name.
    pub(crate) fn apart(&self) -> mlua::Result<Module<'a>> {
        Ok(Module { table: self.lua.create_table()?, ..*self })
    }

    /// A function that answers at once. `called` is its full name, as errors tell it.
    pub(crate) fn function<R: IntoLuaMulti>(
        &self,
        name: &str,
        called: &'static str,
        run: impl Fn(&Lua, &Args, &Arc<Home>) -> Result<R, String> + Send + Sync + 'static,
    ) -> mlua::Result<Function> {
        let home = self.home.clone();
        let raw = self
            .lua
            .create_function(move |lua, values: MultiValue| answer(lua, run(lua, &Args::new(called, values), &home)))?;
        let function: Function = self.prelude.lift.call(raw)?;
        self.table.raw_set(name, &function)?;
        Ok(function)
    }

    /// A function that waits. `begin` reads the arguments; the future that it gives is done beside the
    /// script, and dropped when the call must stop.
    pub(crate) fn waiting<W>(
        &self,
        name: &str,
        called: &'static str,
        begin: impl Fn(&Asked) -> Result<W, String> + Send + Sync + 'static,
    ) -> mlua::Result<Function>
    where
        W: Future<Output = Result<Reply, String>> + Send + 'static,
    {
        let begin: Begin = Box::new(move |asked| Ok(begin(asked)?.boxed()));
        let place = self.waits.add(called, begin);
        let function: Function = self.waits.lift.call(place)?;
        self.table.raw_set(name, &function)?;
        Ok(function)
    }
}

type Begin = Box<dyn Fn(&Asked) -> Result<Work, String> + Send + Sync>;

/// The functions of a machine that wait. Two functions of the machine serve all of them: one that yields
/// while it waits, and one that holds its thread. Each of its own would cost every machine dearly.
pub(crate) struct Waits {
    all: Arc<Mutex<Vec<(&'static str, Begin)>>>,
    /// Makes what scripts call of a place in the list.
    lift: Function,
}

impl Waits {
    fn new(lua: &Lua, prelude: &Prelude, home: &Arc<Home>) -> mlua::Result<Self> {
        let all = Arc::<Mutex<Vec<(&'static str, Begin)>>>::default();
        let start = {
            let (all, home) = (all.clone(), home.clone());
            move |lua: &Lua, mut values: MultiValue, held: bool| {
                let place = values.pop_front().and_then(|place| place.as_usize()).unwrap_or(usize::MAX);
                let all = all.lock().expect("no code panics while it holds this lock");
                let (called, begin) = all.get(place).ok_or("there is no such function")?;
                let call = call::current().ok_or_else(|| format!("{called}: no call is running"))?;
                let args = Args::new(called, values);
                home.does_more();
                let work = begin(&Asked { lua, args: &args, home: &home, call: &call, held })?;
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

    fn add(&self, called: &'static str, begin: Begin) -> usize {
        let mut all = self.all.lock().expect("no code panics while it holds this lock");
        all.push((called, begin));
        all.len() - 1
    }
}

/// As the prelude expects it: true and the value, or false and the message.
fn answer<R: IntoLuaMulti>(lua: &Lua, reply: Result<R, String>) -> mlua::Result<MultiValue> {
    let (ok, mut values) = match reply {
        Ok(values) => (true, values.into_lua_multi(lua)?),
        Err(message) => (false, message.into_lua_multi(lua)?),
    };
    values.push_front(Value::Boolean(ok));
    Ok(values)
}

impl IntoLua for Reply {
    fn into_lua(self, lua: &Lua) -> mlua::Result<Value> {
        match self {
            Self::Nil => Ok(Value::Nil),
            Self::Json(json) => convert::to_lua(lua, &json),
            Self::Exact(json) => convert::to_lua_exact(lua, &json),
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
