//! Making a Lua state: its libraries, the prelude, and compiling source text.

use std::collections::BTreeSet;
use std::sync::OnceLock;

use mlua::chunk::ChunkMode;
use mlua::{Function, Lua, LuaOptions, StdLib, Table, Value};

use crate::vm::diagnostics::{TAKE_RAISED, explain_syntax};
use crate::vm::dialect::{self, AdaptedSource};
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
    convert::install(&lua, memory)?;
    let globals = lua.globals();
    globals.raw_set("require", Value::Nil)?;
    let host = lua.create_table()?;
    host.raw_set("plain_find", lua.create_function(plain_find)?)?;
    host.raw_set("compile", lua.create_function(compile)?)?;
    host.raw_set("set_type_metatable", lua.create_function(set_type_metatable)?)?;
    host.raw_set("pending", Value::LightUserData(Lua::poll_pending()))?;
    host.raw_set("slice_is_over", lua.create_function(|_, ()| Ok(raw::take_handed_up()))?)?;
    let table: Table = host_chunks.prelude(&lua).call(&host)?;
    let additions: Table = host_chunks.lua51(&lua).call((host, table.raw_get::<Function>("level")?))?;
    for addition in additions.pairs::<Value, Value>() {
        let (name, function) = addition?;
        table.raw_set(name, function)?;
    }
    lua.set_named_registry_value(TAKE_RAISED, table.raw_get::<Function>("take_raised")?)?;
    let prelude = Prelude { lift: table.raw_get("lift")?, lift_waiting: table.raw_get("lift_waiting")?, table };
    offer(&lua, &prelude)?;
    lua.sandbox(true)?;
    let builtin = globals;
    // The sandbox made the table that scripts write their globals to. It gets the globals themselves: programs list
    // them, read them with `rawget`, and set a metatable for those that are missing.
    let globals = lua.globals();
    let loaded: Table = builtin.raw_get::<Table>("package")?.raw_get("loaded")?;
    for global in builtin.pairs::<mlua::LuaString, Value>() {
        let (name, value) = global?;
        // Plugins written for other hosts add to `string` and `table`; a Lua state belongs to one plugin, so they change
        // only their own libraries.
        if let Value::Table(library) = &value {
            library.set_readonly(false);
            if LIBRARIES.contains(&&*name.as_bytes()) {
                loaded.raw_set(&name, library)?;
            }
        }
        globals.raw_set(name, value)?;
    }
    globals.set_metatable(None)?;
    globals.raw_set("_G", &globals)?;
    loaded.raw_set("_G", &globals)?;
    if let Some(meta) = lua.type_metatable::<mlua::LuaString>() {
        meta.set_readonly(false);
    }
    raw::install_interrupt(&lua)?;
    lua.set_memory_limit(memory)?;
    Ok(lua)
}

/// The libraries that `require` finds by their names.
const LIBRARIES: [&[u8]; 11] =
    [b"string", b"table", b"math", b"coroutine", b"os", b"io", b"debug", b"package", b"bit", b"bit32", b"utf8"];

/// The host's own Lua code, compiled once for all Lua states, when the first one is made.
#[derive(Default)]
pub(crate) struct HostChunks {
    prelude: OnceLock<Vec<u8>>,
    lua51: OnceLock<Vec<u8>>,
    package: OnceLock<Vec<u8>>,
    io: OnceLock<Vec<u8>>,
}

impl HostChunks {
    fn prelude<'a>(&'a self, lua: &Lua) -> mlua::chunk::Chunk<'a> {
        precompiled(lua, &self.prelude, include_str!("prelude.lua"))
    }

    fn lua51<'a>(&'a self, lua: &Lua) -> mlua::chunk::Chunk<'a> {
        precompiled(lua, &self.lua51, include_str!("lua51.lua"))
    }

    /// Compiles this source of `package` and `require`.
    pub(crate) fn package<'a>(&'a self, lua: &Lua, source: &str) -> mlua::chunk::Chunk<'a> {
        precompiled(lua, &self.package, source)
    }

    /// Compiles this source of `io` and of the additions to `os`.
    pub(crate) fn io<'a>(&'a self, lua: &Lua, source: &str) -> mlua::chunk::Chunk<'a> {
        precompiled(lua, &self.io, source)
    }
}

fn precompiled<'a>(lua: &Lua, compiled: &'a OnceLock<Vec<u8>>, source: &str) -> mlua::chunk::Chunk<'a> {
    // Without lines: errors of library functions that host code calls would name host code as their place.
    let compiler = || mlua::chunk::Compiler::new().set_debug_level(0);
    let compile = || compiler().compile(source).expect("our host_chunks source compiles");
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
    let known = lua.remove_app_data::<ChangedLibraries>().map(|known| known.0).unwrap_or_default();
    let AdaptedSource { text, changed } = dialect::adapt(source, known);
    lua.set_app_data(ChangedLibraries(changed));
    lua.load(&*text).set_name(name).set_mode(ChunkMode::Text).into_function().map_err(|error| match error {
        mlua::Error::SyntaxError { message, .. } => explain_syntax(message, &text),
        other => other.to_string(),
    })
}

/// The libraries and functions of Lua that the texts of a Lua state change.
struct ChangedLibraries(BTreeSet<Vec<u8>>);

/// `debug.setmetatable` for values that share one metatable.
fn set_type_metatable(lua: &Lua, (value, meta): (Value, Option<Table>)) -> mlua::Result<()> {
    match value {
        Value::String(_) => lua.set_type_metatable::<mlua::LuaString>(meta),
        Value::Number(_) | Value::Integer(_) => lua.set_type_metatable::<mlua::Number>(meta),
        Value::Boolean(_) => lua.set_type_metatable::<bool>(meta),
        Value::Function(_) => lua.set_type_metatable::<Function>(meta),
        other => {
            let kind = other.type_name();
            return Err(mlua::Error::runtime(format!("debug.setmetatable: a {kind} cannot have a metatable here")));
        }
    }
    Ok(())
}
