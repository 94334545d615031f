//! One virtual machine of a plugin: its libraries, its limits, and how calls take turns in it.
//!
//! What the machine offers to scripts beyond Lua is in [`crate::hygge`].

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use futures_util::task::AtomicWaker;
use mlua::chunk::ChunkMode;
use mlua::{Function, IntoLuaMulti, Lua, LuaOptions, MultiValue, StdLib, Table, Thread, Value};

use crate::brake::Gate;
use crate::call::{self, Call, Effects};
use crate::raw::Ran;
use crate::{convert, raw, stretch};

/// Source text over this is refused: compiling is not under the machine's memory limit.
pub(crate) const MAX_SOURCE: usize = 4 << 20;

const POISON: &str = "no code panics while it holds this lock";

/// A machine with the plugin's script run in it.
pub(crate) struct Vm {
    lua: Lua,
    gate: Gate,
    /// Calls that are in it now, or about to be; those that wait included.
    calls: AtomicUsize,
    /// When the last one left it.
    left: Mutex<Instant>,
    /// A script in it could not give way for long.
    stalls: AtomicBool,
    /// Its memory ran out once: calls in it end as they can, new ones get another machine.
    worn: AtomicBool,
    /// Bytes that scripts may allocate in it.
    limit: usize,
    usage: Arc<Usage>,
    /// What `usage` knows of this machine, in bytes.
    known: AtomicUsize,
}

/// How many machines there are, and what scripts have allocated in them.
#[derive(Debug, Default)]
pub(crate) struct Usage {
    pub(crate) machines: AtomicUsize,
    /// In bytes; of each machine as its last call left it.
    pub(crate) memory: AtomicUsize,
}

/// A machine, before any plugin's script has run in it.
///
/// `memory` is in bytes, and counts everything that scripts allocate.
pub(crate) fn machine(
    memory: usize,
    own: &OwnChunks,
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
    let prelude: Table = own.prelude(&lua).call(host)?;
    let prelude = Prelude { lift: prelude.raw_get("lift")?, lift_waiting: prelude.raw_get("lift_waiting")?, prelude };
    offer(&lua, &prelude)?;
    lua.sandbox(true)?;
    // Plugins written for other hosts add to `string` and `table`; a machine belongs to one plugin,
    // so that they spoil nobody's but their own.
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

/// The host's own Lua, compiled once for all machines, when the first one is made.
#[derive(Default)]
pub(crate) struct OwnChunks {
    prelude: OnceLock<Vec<u8>>,
    io: OnceLock<Vec<u8>>,
}

impl OwnChunks {
    fn prelude<'a>(&'a self, lua: &Lua) -> mlua::chunk::Chunk<'a> {
        own(lua, &self.prelude, include_str!("prelude.lua"))
    }

    /// `io`, and what it adds to `os`.
    pub(crate) fn io<'a>(&'a self, lua: &Lua) -> mlua::chunk::Chunk<'a> {
        own(lua, &self.io, include_str!("io.lua"))
    }
}

fn own<'a>(lua: &Lua, compiled: &'a OnceLock<Vec<u8>>, source: &str) -> mlua::chunk::Chunk<'a> {
    let compile = || mlua::chunk::Compiler::new().compile(source).expect("our own source compiles");
    lua.load(compiled.get_or_init(compile).as_slice()).set_name("=[toold]").set_mode(ChunkMode::Binary)
}

/// How host functions are made into what scripts call.
pub(crate) struct Prelude {
    /// Makes a function that answers `true, ...` or `false, message` one that returns or raises.
    pub(crate) lift: Function,
    /// The same of a pair: one that yields while it waits, and one that holds its thread.
    pub(crate) lift_waiting: Function,
    pub(crate) prelude: Table,
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

/// Source text as a function, or nil and why not.
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
        return Err(format!("{shown}:1: the source has {} bytes; at most {MAX_SOURCE} are taken", source.len()));
    }
    if source.first() == Some(&0x1b) || source.first().is_some_and(|first| (1..=8).contains(first)) {
        return Err(format!("{shown}:1: this is bytecode; only source text is taken"));
    }
    stretch::give_thread_away_for(source.len());
    let source = source.strip_prefix(b"\xef\xbb\xbf").unwrap_or(source);
    // A first line for the shell becomes a comment of the same length, so that lines keep their numbers.
    let shebang;
    let source = if source.starts_with(b"#") {
        shebang = [b"--", source].concat();
        &shebang[..]
    } else {
        source
    };
    lua.load(source).set_name(name).set_mode(ChunkMode::Text).into_function().map_err(|error| match error {
        mlua::Error::SyntaxError { message, .. } => crate::trouble::explain_syntax(message, source),
        other => other.to_string(),
    })
}

impl Vm {
    pub(crate) fn new(lua: Lua, usage: Arc<Usage>) -> Self {
        let known = lua.used_memory();
        let limit = lua.set_memory_limit(0).unwrap_or(0);
        // Fails for a state that is not ours, which there is none of.
        let _ = lua.set_memory_limit(limit);
        usage.machines.fetch_add(1, Ordering::Relaxed);
        usage.memory.fetch_add(known, Ordering::Relaxed);
        Self {
            lua,
            gate: Gate::default(),
            calls: AtomicUsize::new(0),
            left: Mutex::new(Instant::now()),
            stalls: AtomicBool::new(false),
            worn: AtomicBool::new(false),
            limit,
            usage,
            known: AtomicUsize::new(known),
        }
    }

    /// Tells what it uses now. Here and not when somebody asks, who would wait for the script that runs.
    fn note_usage(&self) {
        let used = self.lua.used_memory();
        let before = self.known.swap(used, Ordering::Relaxed);
        self.usage.memory.fetch_add(used.wrapping_sub(before), Ordering::Relaxed);
    }

    pub(crate) fn lua(&self) -> &Lua {
        &self.lua
    }

    pub(crate) fn calls(&self) -> usize {
        self.calls.load(Ordering::Relaxed)
    }

    pub(crate) fn enter(&self) {
        self.calls.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn leave(&self) {
        *self.left.lock().expect(POISON) = Instant::now();
        self.calls.fetch_sub(1, Ordering::Relaxed);
    }

    /// For how long no call has been in it, if none is.
    pub(crate) fn idle(&self) -> Duration {
        self.left.lock().expect(POISON).elapsed()
    }

    pub(crate) fn stalls(&self) -> bool {
        self.stalls.load(Ordering::Relaxed)
    }

    pub(crate) fn is_worn(&self) -> bool {
        self.worn.load(Ordering::Relaxed)
    }

    /// Runs a coroutine that has not begun to its end. Its waits, and the ends of its slices, let others run; what it
    /// asks of the host is done here, so that dropping this future stops that too.
    ///
    /// # Errors
    /// What the script raised, the brake's reason included.
    pub(crate) async fn run(
        &self,
        call: &Arc<Call>,
        thread: Thread,
        args: impl IntoLuaMulti,
    ) -> mlua::Result<MultiValue> {
        let mut script = Box::pin(thread.clone().into_async::<MultiValue>(args)?);
        let mut effects = Effects::default();
        let pulse = Arc::<Pulse>::default();
        let waker = Waker::from(pulse.clone());
        let ended = std::future::poll_fn(|cx| {
            pulse.outer.register(cx.waker());
            let mut inner = Context::from_waker(&waker);
            loop {
                {
                    let Some(_inside) = self.gate.enter(cx.waker()) else { break };
                    pulse.polling.store(true, Ordering::SeqCst);
                    let Ran { done: polled, slice_is_over, gave_thread_away } = call::within(call, || {
                        raw::run(&call.brake, Some(&thread), || script.as_mut().poll(&mut inner))
                    });
                    if gave_thread_away {
                        self.stalls.store(true, Ordering::Relaxed);
                    }
                    pulse.polling.store(false, Ordering::SeqCst);
                    if let Poll::Ready(ended) = polled {
                        return Poll::Ready(ended);
                    }
                    if slice_is_over {
                        // Not merely behind those who are ready: whoever became ready meanwhile comes
                        // first, which the runtime finds out before it goes on with those who gave way.
                        pulse.beat.store(false, Ordering::SeqCst);
                        let _ = std::pin::pin!(tokio::task::yield_now()).poll(cx);
                    } else if pulse.beat.swap(false, Ordering::SeqCst) {
                        cx.waker().wake_by_ref();
                    }
                }
                call.take_effects(&mut effects);
                match effects.poll_next_unpin(cx) {
                    // An effect is done, so that the script can go on.
                    Poll::Ready(Some(())) => {}
                    Poll::Ready(None) | Poll::Pending => return Poll::Pending,
                }
            }
            // Others are in the machine; effects go on meanwhile.
            while let Poll::Ready(Some(())) = effects.poll_next_unpin(cx) {}
            Poll::Pending
        })
        .await;
        // A coroutine that was stopped still has what its functions held.
        drop(script);
        drop(thread);
        self.note_usage();
        // A script may have caught the error that its memory ran out.
        let is_full = self.known.load(Ordering::Relaxed) > self.limit / 4 * 3;
        if is_full || matches!(root(&ended), Some(mlua::Error::MemoryError(_))) || call.brake.is_set() {
            stretch::give_thread_away_for(self.known.load(Ordering::Relaxed));
            self.check_wear(if is_full { self.limit / 4 * 3 } else { self.limit / 2 });
            self.note_usage();
        }
        ended
    }

    /// Runs a function to its end on this thread, waits included.
    ///
    /// # Errors
    /// What the script raised, the brake's reason included.
    pub(crate) fn run_blocking(
        &self,
        call: &Arc<Call>,
        function: &Function,
        args: impl IntoLuaMulti,
    ) -> mlua::Result<MultiValue> {
        let ended = call::within(call, || raw::run(&call.brake, None, || function.call(args))).done;
        self.note_usage();
        ended
    }

    /// Collects all garbage, and notes whether little memory is left then.
    fn check_wear(&self, most: usize) {
        let lifted = self.lua.set_memory_limit(0);
        let collected = self.lua.gc_collect();
        let used = self.lua.used_memory();
        if lifted.is_err() || self.lua.set_memory_limit(self.limit).is_err() || collected.is_err() || used > most {
            self.worn.store(true, Ordering::Relaxed);
        }
    }
}

impl Drop for Vm {
    fn drop(&mut self) {
        self.usage.machines.fetch_sub(1, Ordering::Relaxed);
        self.usage.memory.fetch_sub(self.known.load(Ordering::Relaxed), Ordering::Relaxed);
    }
}

/// What a script is woken by. While it runs, its wakes are only noted: a slice that is over wakes it at
/// once, and would leave no time for others.
#[derive(Default)]
struct Pulse {
    outer: AtomicWaker,
    polling: AtomicBool,
    beat: AtomicBool,
}

impl Wake for Pulse {
    fn wake(self: Arc<Self>) {
        self.beat.store(true, Ordering::SeqCst);
        if !self.polling.load(Ordering::SeqCst) {
            self.outer.wake();
        }
    }
}

fn root(ended: &mlua::Result<MultiValue>) -> Option<&mlua::Error> {
    let mut error = ended.as_ref().err()?;
    while let mlua::Error::CallbackError { cause, .. } = error {
        error = cause;
    }
    Some(error)
}
