//! Making a Lua state: its libraries, the prelude, and compiling source text.

use std::sync::OnceLock;

use mlua::chunk::ChunkMode;
use mlua::{Function, Lua, LuaOptions, StdLib, Table, Value};

use crate::vm::{convert, raw, worker_thread};

/// Longer source texts are refused: compiling does not count towards the memory limit of the Lua state.
pub(crate) const MAX_SOURCE: usize = 4 << 20;

/// A Lua state before any plugin's script has run in it.
///
/// `memory` is in bytes, and counts everything that scripts allocate.
pub(crate) fn new_lua_state(
    memory: usize,
    host_chunks: &HostChunks,
    offer: impl FnOnce(&Lua, &Prelude) -> mlua::Result<()>,
) -> mlua::Result<Lua> {
    let libraries = StdLib::TABLE
        | StdLib::STRING
        | StdLib::MATH
        | StdLib::COROUTINE
        | StdLib::UTF8
        | StdLib::BIT
        | StdLib::BUFFER
        | StdLib::OS
        | StdLib::DEBUG;
    let lua = Lua::new_with(libraries, LuaOptions::new())?;
    convert::install(&lua)?;
    let globals = lua.globals();
    globals.raw_set("require", Value::Nil)?;
    let host = lua.create_table()?;
    host.raw_set("plain_find", lua.create_function(plain_find)?)?;
    host.raw_set("compile", lua.create_function(compile)?)?;
    host.raw_set("pending", Value::LightUserData(Lua::poll_pending()))?;
    host.raw_set("slice_is_over", lua.create_function(|_, ()| Ok(raw::take_handed_up()))?)?;
    let table: Table = host_chunks.prelude(&lua).call(host)?;
    let prelude = Prelude { lift: table.raw_get("lift")?, lift_waiting: table.raw_get("lift_waiting")?, table };
    offer(&lua, &prelude)?;
    lua.sandbox(true)?;
    // Plugins written for other hosts add to `string` and `table`; a Lua state belongs to one plugin, so they change
    // only their own libraries.
    for library in globals.pairs::<Value, Value>() {
        if let (_, Value::Table(library)) = library? {
            library.set_readonly(false);
        }
    }
    // The sandbox made the table that scripts write their globals to.
    let globals = lua.globals();
    globals.raw_set("_G", &globals)?;
    raw::install_interrupt(&lua)?;
    lua.set_memory_limit(memory)?;
    Ok(lua)
}

/// The host's own Lua code, compiled once for all Lua states, when the first one is made.
#[derive(Default)]
pub(crate) struct HostChunks {
    prelude: OnceLock<Vec<u8>>,
    io: OnceLock<Vec<u8>>,
}

impl HostChunks {
    fn prelude<'a>(&'a self, lua: &Lua) -> mlua::chunk::Chunk<'a> {
        precompiled(lua, &self.prelude, include_str!("prelude.lua"))
    }

    /// Compiles this source of `io` and of the additions to `os`.
    pub(crate) fn io<'a>(&'a self, lua: &Lua, source: &str) -> mlua::chunk::Chunk<'a> {
        precompiled(lua, &self.io, source)
    }
}

fn precompiled<'a>(lua: &Lua, compiled: &'a OnceLock<Vec<u8>>, source: &str) -> mlua::chunk::Chunk<'a> {
    let compile = || mlua::chunk::Compiler::new().compile(source).expect("our host_chunks source compiles");
    lua.load(compiled.get_or_init(compile).as_slice()).set_name("=[toold]").set_mode(ChunkMode::Binary)
}

/// Turns host functions into the functions that scripts call.
pub(crate) struct Prelude {
    /// Wraps a function that answers `true, ...` or `false, message` into one that returns or raises.
    pub(crate) lift: Function,
    /// The same for a pair of functions: one yields while it waits, the other one holds its thread.
    pub(crate) lift_waiting: Function,
    pub(crate) table: Table,
}

/// `string.find` with `plain`, in linear time.
fn plain_find(
    _: &Lua,
    (text, needle, init): (mlua::LuaString, mlua::LuaString, Option<i64>),
) -> mlua::Result<(Option<usize>, Option<usize>)> {
    let (text, needle) = (text.as_bytes(), needle.as_bytes());
    let length = text.len() as i64;
    let start = match init.unwrap_or(1) {
        init if init > 0 => init,
        0 => 1,
        init => (length + init + 1).max(1),
    };
    if start > length + 1 {
        return Ok((None, None));
    }
    let from = (start - 1) as usize;
    let found = memchr::memmem::find(&text[from..], &needle).map(|at| from + at + 1);
    Ok((found, found.map(|at| at + needle.len() - 1)))
}

/// Compiles source text: a function, or nil and the reason.
fn compile(
    lua: &Lua,
    (source, name): (mlua::LuaString, Option<String>),
) -> mlua::Result<(Option<Function>, Option<String>)> {
    let source = source.as_bytes();
    let name = name.unwrap_or_else(|| "=(load)".to_owned());
    match chunk(lua, &source, &name) {
        Ok(function) => Ok((Some(function), None)),
        Err(message) => Ok((None, Some(message))),
    }
}

/// Compiles source text; `name` as in Lua: `=shown` or `@file`.
pub(crate) fn chunk(lua: &Lua, source: &[u8], name: &str) -> Result<Function, String> {
    let shown = name.trim_start_matches(['=', '@']);
    if source.len() > MAX_SOURCE {
        return Err(format!("{shown}:1: the source has {} bytes; the limit is {MAX_SOURCE}", source.len()));
    }
    if source.first() == Some(&0x1b) || source.first().is_some_and(|first| (1..=8).contains(first)) {
        return Err(format!("{shown}:1: this is bytecode; plugins are loaded from source text only"));
    }
    worker_thread::replace_thread_for(source.len());
    let source = source.strip_prefix(b"\xef\xbb\xbf").unwrap_or(source);
    // A shebang line becomes a comment of the same length, so that lines keep their numbers.
    let shebang;
    let source = if source.starts_with(b"#") {
        shebang = [b"--", source].concat();
        &shebang[..]
    } else {
        source
    };
    lua.load(source).set_name(name).set_mode(ChunkMode::Text).into_function().map_err(|error| match error {
        mlua::Error::SyntaxError { message, .. } => crate::vm::diagnostics::explain_syntax(message, source),
        other => other.to_string(),
    })
}
