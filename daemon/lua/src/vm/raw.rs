//! Unsafe code: the interrupt that stops a script, and the walkers that carry values between JSON and the stack of a
//! Lua state in one protected call.
//!
//! When to stop is decided in [`crate::vm::interrupt`]; which JSON a table becomes is decided in
//! [`crate::vm::convert`].
#![allow(unsafe_code, reason = "mlua's own interrupt costs three times as much, its serde conversion too")]

use std::cell::Cell;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr;
use std::time::{Duration, Instant};

use mlua::{Function, Lua, Table, Thread, Value as LuaValue, ffi};
use serde_json::{Map, Number, Value};
use toold_host::memory_reserve;

use crate::vm::convert::{ConvertError, ConvertProblem, EmptyTables};
use crate::vm::interrupt::ScriptInterrupt;
use crate::vm::sampler::{SampledRun, StackSampler};
use crate::vm::worker_thread;

/// How long a script may keep its thread before others run.
const SLICE: Duration = Duration::from_millis(1);
/// The clock is read once in so many safepoints.
const SAFEPOINTS: u32 = 1_000;

thread_local! {
    /// The script that runs on this thread; null, or valid until `run` returns.
    static RUNNING: Cell<*const RunningScript<'static>> = const { Cell::new(ptr::null()) };
}

/// What the interrupt needs to know about the script.
struct RunningScript<'a> {
    interrupt: &'a ScriptInterrupt,
    /// The coroutine that may yield its thread at the end of a slice; null for none.
    own: *mut ffi::lua_State,
    /// Another coroutine of the script has stopped at the end of a slice, and the prelude has not handled that yet.
    handed_up: Cell<bool>,
    until_clock: Cell<u32>,
    slice_end: Cell<Option<Instant>>,
    /// How often the thread was replaced.
    replacements: Cell<u8>,
    /// Somebody wants to know where it spends its time.
    sampled: Option<SampledRun<'a>>,
}

/// Makes every safepoint of this Lua state check the interrupt of the script that [`run`] runs.
pub(crate) fn install_interrupt(lua: &Lua) -> mlua::Result<()> {
    // SAFETY: `lua_callbacks` of a live state is valid, and nothing else in this crate sets the
    // interrupt. The closure neither panics nor raises, and leaves the stack as it was.
    unsafe { lua.exec_raw((), |state| (*ffi::lua_callbacks(state)).interrupt = Some(interrupt)) }
}

/// Runs `f` so that `interrupt` stops scripts inside it. With `own`, that coroutine yields its thread after a slice of
/// 1 ms, as a yield without values; then `slice_is_over` is set.
pub(crate) fn run<R>(
    interrupt: &ScriptInterrupt,
    own: Option<&Thread>,
    sampler: Option<&StackSampler>,
    f: impl FnOnce() -> R,
) -> RunReport<R> {
    struct RestoreRunning(*const RunningScript<'static>);
    impl Drop for RestoreRunning {
        fn drop(&mut self) {
            RUNNING.set(self.0);
        }
    }
    // False while there is too little, which ends the script at its first safepoint.
    memory_reserve::ensure();
    let running = RunningScript {
        interrupt,
        own: own.map_or(ptr::null_mut(), Thread::state),
        handed_up: Cell::new(false),
        until_clock: Cell::new(if sampler.is_some() { 0 } else { SAFEPOINTS }),
        slice_end: Cell::new(own.map(|_| Instant::now() + SLICE)),
        replacements: Cell::new(0),
        sampled: sampler.map(SampledRun::new),
    };
    // The pointer outlives neither `running` nor `interrupt`: `restore` is dropped before both, also
    // when `f` panics.
    let restore = RestoreRunning(RUNNING.replace((&raw const running).cast()));
    let done = f();
    drop(restore);
    RunReport {
        done,
        slice_is_over: own.is_some() && running.slice_end.get().is_none(),
        replaced_thread: running.replacements.get() > 0,
    }
}

/// The result of [`run`], and how it ended.
pub(crate) struct RunReport<R> {
    pub(crate) done: R,
    pub(crate) slice_is_over: bool,
    /// It could not yield for long, so its thread was replaced.
    pub(crate) replaced_thread: bool,
}

unsafe extern "C-unwind" fn interrupt(state: *mut ffi::lua_State, gc: c_int) {
    // Errors cannot be raised from within the collector.
    if gc >= 0 {
        return;
    }
    let running = RUNNING.get();
    if running.is_null() {
        return;
    }
    // SAFETY: not null, so set by `run`, which has not returned: its frame is below this one.
    let running = unsafe { &*running };
    if running.interrupt.is_set() {
        // SAFETY: Luau calls interrupts where errors may be raised.
        unsafe { raise(state, running.interrupt.reason()) }
    }
    let left = running.until_clock.get();
    if left > 0 {
        running.until_clock.set(left - 1);
        return;
    }
    match &running.sampled {
        None => running.until_clock.set(SAFEPOINTS),
        // At every safepoint: they may be far apart.
        // SAFETY: `state` is the live coroutine that hit the safepoint.
        Some(sampled) => sampled.at_safepoint(|| unsafe { own_frames(state) }),
    }
    if running.interrupt.check() {
        // SAFETY: as above.
        unsafe { raise(state, running.interrupt.reason()) }
    }
    let over = running.slice_end.get().and_then(|end| Instant::now().checked_duration_since(end));
    let Some(over) = over else { return };
    // SAFETY: `state` is the live coroutine that hit the safepoint; yielding without values is
    // allowed exactly where `lua_isyieldable` says so, and Luau returns at once after it.
    unsafe {
        if ffi::lua_isyieldable(state) != 0 {
            if state == running.own {
                running.slice_end.set(None);
            } else {
                // The host's `resume` handles it, long before the coroutine that resumed this one checks the clock.
                running.handed_up.set(true);
            }
            ffi::lua_yield(state, 0);
            return;
        }
    }
    let replacements = running.replacements.get();
    if replacements < worker_thread::TRIES && over >= worker_thread::PATIENCE * (u32::from(replacements) + 1) {
        running.replacements.set(replacements + 1);
        worker_thread::replace_thread();
    }
}

/// The innermost functions that a stack contributes to a sample.
const MAX_FRAMES: c_int = 128;

/// The plugin's own functions on the stack of a coroutine, the outermost first.
///
/// # Safety
/// `state` is live.
unsafe fn own_frames(state: *mut ffi::lua_State) -> Vec<String> {
    let mut frames = Vec::new();
    // SAFETY: all zeros are a valid `lua_Debug`. With these options `lua_getinfo` reads only: it pushes nothing and does
    // not raise; the texts that it points to live as long as the function is on the stack.
    unsafe {
        for level in 0..MAX_FRAMES.min(ffi::lua_stackdepth(state)) {
            let mut about: ffi::lua_Debug = std::mem::zeroed();
            if ffi::lua_getinfo(state, level, c"sn".as_ptr(), &raw mut about) == 0 {
                break;
            }
            let text = |text: *const c_char| match text.is_null() {
                true => std::borrow::Cow::Borrowed(""),
                false => CStr::from_ptr(text).to_string_lossy(),
            };
            let (file, name) = (text(about.short_src), text(about.name));
            if matches!(&*file, "[C]" | "[toold]" | "__mlua_async_poll") {
                continue;
            }
            frames.push(match (&*name, about.linedefined) {
                ("", ..=1) => format!("main ({file})"),
                ("", line) => format!("function ({file}:{line})"),
                (name, line) => format!("{name} ({file}:{line})"),
            });
        }
    }
    frames.reverse();
    frames
}

/// Whether the coroutine that has just stopped on this thread did so because its slice is over. True once; then the
/// coroutine that resumed it stops at its next safepoint, if it can.
pub(crate) fn take_handed_up() -> bool {
    let running = RUNNING.get();
    if running.is_null() {
        return false;
    }
    // SAFETY: not null, so set by `run`, which has not returned.
    let running = unsafe { &*running };
    let is_over = running.handed_up.replace(false);
    if is_over {
        running.until_clock.set(0);
    }
    is_over
}

/// # Safety
/// Only where Luau allows errors. The caller must not hold anything that has to be dropped.
#[cold]
unsafe fn raise(state: *mut ffi::lua_State, reason: &'static str) {
    // SAFETY: two slots are reserved before one is used; Luau copies the text.
    unsafe {
        ffi::lua_rawcheckstack(state, 2);
        ffi::lua_pushlstring_(state, reason.as_ptr().cast(), reason.len());
        ffi::lua_error(state)
    }
}

/// What JSON's null becomes in an object.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Nulls {
    /// The field is absent, since scripts test fields for truth.
    Absent,
    /// `json.null`.
    Kept,
}

/// Makes one Lua value from a JSON value, in one protected call. Empty arrays get `array` as their metatable.
///
/// # Errors
/// The memory limit of the Lua state.
pub(crate) fn push(lua: &Lua, json: &Value, array: &Table, nulls: Nulls) -> mlua::Result<LuaValue> {
    // SAFETY: `push_value` nets one value. It may raise (memory), which unwinds through frames that
    // hold references only.
    unsafe {
        lua.exec_raw(array, |state| {
            push_value(state, json, nulls);
            ffi::lua_remove(state, 1);
        })
    }
}

/// The fields of a call's `ctx`.
pub(crate) struct CtxFields<'a> {
    /// Fields with text values.
    pub(crate) texts: &'a [(&'static str, &'a str)],
    /// The fields of `ctx.session`.
    pub(crate) session: &'a [(&'static str, &'a str)],
    /// Used as `ctx.session` instead.
    pub(crate) shared_session: Option<&'a Table>,
}

/// How many values a handler gets at most, including its `ctx`.
const MAX_GIVEN: usize = 8;

/// A coroutine that is ready to run `function` with a `ctx` and then `given`, made in one protected call. `ctx` gets
/// `meta` as its metatable and `input` as a field; if `given` contains `input`, it is the same Lua value.
///
/// # Errors
/// The memory limit of the Lua state.
///
/// # Panics
/// On more than seven values.
pub(crate) fn begin(
    lua: &Lua,
    function: &Function,
    fields: &CtxFields,
    input: &Value,
    given: &[&Value],
    array: &Table,
    meta: &Table,
) -> mlua::Result<Thread> {
    const ARRAY: c_int = 1;
    const META: c_int = 2;
    const FUNCTION: c_int = 3;
    const SESSION: c_int = 4;
    const THREAD: c_int = 5;
    const CTX: c_int = 6;
    const INPUT: c_int = 7;
    assert!(given.len() < MAX_GIVEN, "a handler gets fewer values");
    // SAFETY: fewer than twenty slots are used, which are always free, and as many as are moved are free on a new
    // coroutine. What may raise unwinds through references only.
    unsafe {
        lua.exec_raw((array, meta, function, fields.shared_session), |state| {
            let thread = ffi::lua_newthread(state);
            ffi::lua_createtable(state, 0, fields.texts.len() as c_int + 2);
            push_texts(state, fields.texts);
            push_name(state, "session");
            if fields.shared_session.is_some() {
                ffi::lua_pushvalue(state, SESSION);
            } else {
                ffi::lua_createtable(state, 0, fields.session.len() as c_int);
                push_texts(state, fields.session);
            }
            ffi::lua_rawset(state, CTX);
            push_value(state, input, Nulls::Absent);
            push_name(state, "input");
            ffi::lua_pushvalue(state, INPUT);
            ffi::lua_rawset(state, CTX);
            ffi::lua_pushvalue(state, META);
            ffi::lua_setmetatable(state, CTX);
            ffi::lua_pushvalue(state, FUNCTION);
            ffi::lua_pushvalue(state, CTX);
            for value in given {
                match ptr::eq(*value, input) {
                    true => ffi::lua_pushvalue(state, INPUT),
                    false => push_value(state, value, Nulls::Absent),
                }
            }
            ffi::lua_xmove(state, thread, given.len() as c_int + 2);
            ffi::lua_pushvalue(state, THREAD);
            ffi::lua_replace(state, ARRAY);
            ffi::lua_settop(state, ARRAY);
        })
    }
}

/// Sets fields of the table on top of the stack.
///
/// # Safety
/// A table is on top, and two slots are free.
unsafe fn push_texts(state: *mut ffi::lua_State, texts: &[(&'static str, &str)]) {
    for (name, text) in texts {
        // SAFETY: Luau copies both; `lua_rawset` pops both.
        unsafe {
            push_name(state, name);
            push_name(state, text);
            ffi::lua_rawset(state, -3);
        }
    }
}

/// # Safety
/// One slot is free, and errors may be raised.
unsafe fn push_name(state: *mut ffi::lua_State, name: &str) {
    // SAFETY: Luau copies it.
    unsafe { ffi::lua_pushlstring_(state, name.as_ptr().cast(), name.len()) }
}

/// # Safety
/// `state` is live, the array metatable is at index 1, one free slot is there.
unsafe fn push_value(state: *mut ffi::lua_State, json: &Value, nulls: Nulls) {
    // SAFETY: each branch nets one value; containers reserve the slots for their members first.
    unsafe {
        match json {
            Value::Null => ffi::lua_pushlightuserdata(state, ptr::null_mut()),
            Value::Bool(value) => ffi::lua_pushboolean(state, c_int::from(*value)),
            Value::Number(number) => ffi::lua_pushnumber(state, number.as_f64().unwrap_or(f64::NAN)),
            Value::String(text) => ffi::lua_pushlstring_(state, text.as_ptr().cast(), text.len()),
            Value::Array(items) => {
                reserve(state);
                ffi::lua_createtable(state, items.len() as c_int, 0);
                if items.is_empty() {
                    ffi::lua_pushvalue(state, 1);
                    ffi::lua_setmetatable(state, -2);
                }
                match items.first() {
                    Some(Value::Object(first)) if items.len() > 1 && first.len() <= MAX_KEYS => {
                        push_objects(state, first, items, nulls);
                    }
                    _ => {
                        for (index, item) in (1..).zip(items) {
                            push_value(state, item, nulls);
                            ffi::lua_rawseti_(state, -2, index);
                        }
                    }
                }
            }
            Value::Object(members) => {
                reserve(state);
                ffi::lua_createtable(state, 0, members.len() as c_int);
                for (key, member) in members {
                    if member.is_null() && nulls == Nulls::Absent {
                        continue;
                    }
                    ffi::lua_pushlstring_(state, key.as_ptr().cast(), key.len());
                    push_value(state, member, nulls);
                    ffi::lua_rawset(state, -3);
                }
            }
        }
    }
}

/// How many keys of a list's first object are kept on the stack.
const MAX_KEYS: usize = 16;

/// Fills the list on top of the stack. Its objects mostly have the members of the first one, so their keys are pushed
/// once.
///
/// # Safety
/// As for `push_value`; `first` has at most `MAX_KEYS` members.
unsafe fn push_objects(state: *mut ffi::lua_State, first: &Map<String, Value>, items: &[Value], nulls: Nulls) {
    let mut keys = [""; MAX_KEYS];
    for (slot, key) in keys.iter_mut().zip(first.keys()) {
        *slot = key;
    }
    let keys = &keys[..first.len()];
    // SAFETY: slots for the keys and for one member are reserved first; each turn nets nothing.
    unsafe {
        if ffi::lua_checkstack(state, MAX_KEYS as c_int + 4) == 0 {
            raise(state, "the value nests too deeply");
        }
        let list = ffi::lua_gettop(state);
        for key in keys {
            ffi::lua_pushlstring_(state, key.as_ptr().cast(), key.len());
        }
        for (index, item) in (1..).zip(items) {
            match item {
                Value::Object(members) if members.keys().map(String::as_str).eq(keys.iter().copied()) => {
                    ffi::lua_createtable(state, 0, members.len() as c_int);
                    for (place, member) in (list + 1..).zip(members.values()) {
                        if member.is_null() && nulls == Nulls::Absent {
                            continue;
                        }
                        ffi::lua_pushvalue(state, place);
                        push_value(state, member, nulls);
                        ffi::lua_rawset(state, -3);
                    }
                }
                other => push_value(state, other, nulls),
            }
            ffi::lua_rawseti_(state, list, index);
        }
        ffi::lua_settop(state, list);
    }
}

/// # Safety
/// Only where errors may be raised.
unsafe fn reserve(state: *mut ffi::lua_State) {
    // SAFETY: checks, and raises instead of going over the end of the stack.
    unsafe {
        if ffi::lua_checkstack(state, 4) == 0 {
            raise(state, "the value nests too deeply");
        }
    }
}

/// The JSON for a Lua value. Only raw fields count; keys come out sorted.
///
/// # Errors
/// A value that is no JSON, with its path; more than [`MAX_DEPTH`] levels; more memory than
/// `max_bytes`.
pub(crate) fn pull(
    lua: &Lua,
    value: &LuaValue,
    array: &Table,
    empty: EmptyTables,
    max_bytes: usize,
) -> Result<Value, ConvertError> {
    let mut pulled = Err(ConvertError::from(ConvertProblem::Memory));
    // SAFETY: slots for the deepest nesting are reserved first, and nothing after that raises:
    // `lua_type`, raw reads, `lua_rawiter`, and `lua_tolstring` of what is a string already do not
    // allocate. The result is written into a variable outside, so that nothing is lost either way.
    let ran: mlua::Result<()> = unsafe {
        lua.exec_raw((value, array), |state| {
            if ffi::lua_checkstack(state, MAX_DEPTH as c_int * 2 + 16) != 0 {
                let mut walk = TableWalk {
                    state,
                    array: ffi::lua_topointer(state, 2),
                    empty,
                    left: max_bytes,
                    max_bytes,
                    path: [ptr::null(); MAX_DEPTH],
                    shapes: Vec::new(),
                    values: Vec::new(),
                };
                pulled = walk.value(1, 0, false);
            }
            ffi::lua_settop(state, 0);
        })
    };
    match ran {
        Ok(()) => pulled,
        Err(_) => Err(ConvertProblem::Memory.into()),
    }
}

/// How deep tables may nest.
pub(crate) const MAX_DEPTH: usize = 128;
/// Approximate size of one value, including its key and its slot.
const VALUE_BYTES: usize = 40;

struct TableWalk {
    state: *mut ffi::lua_State,
    /// The identity of the metatable that marks arrays.
    array: *const c_void,
    empty: EmptyTables,
    left: usize,
    /// What `left` was at first.
    max_bytes: usize,
    /// The tables that contain the current value, outermost first.
    path: [*const c_void; MAX_DEPTH],
    /// The last object at each depth: lists mostly hold objects with the same members.
    shapes: Vec<SeenObject>,
    /// Values of the objects that are being walked, if their shape is known.
    values: Vec<Value>,
}

/// What is known about the last object at a depth.
#[derive(Default)]
enum SeenObject {
    #[default]
    Nothing,
    /// How many members it had. A shape is made when another object has as many.
    Members(usize),
    Shape(Box<ObjectShape>),
}

/// The members of an object, in the order in which Luau iterates over them.
struct ObjectShape {
    /// Luau interns strings: the same key has the same address, as long as a table holds it.
    keys: Vec<*const u8>,
    names: Vec<String>,
    /// The position of each member in `blank`, which is sorted.
    order: Vec<usize>,
    blank: Map<String, Value>,
}

/// An object, and the addresses of its keys if another object may have the same ones.
type WalkedObject = (Map<String, Value>, Option<Vec<*const [u8]>>);

/// Objects with more members are not compared.
const MAX_SHAPE: usize = 64;

impl ObjectShape {
    /// `None` when a key is not UTF-8.
    ///
    /// # Safety
    /// The bytes of all keys are alive.
    unsafe fn of(keys: &[*const [u8]], object: &Map<String, Value>) -> Option<Self> {
        // SAFETY: as promised by the caller.
        let names = keys.iter().map(|key| unsafe { std::str::from_utf8(&**key) }.ok().map(str::to_owned));
        let names: Vec<String> = names.collect::<Option<_>>()?;
        let mut order: Vec<usize> = (0..names.len()).collect();
        order.sort_unstable_by_key(|place| names[*place].as_str());
        let blank = object.keys().map(|name| (name.clone(), Value::Null)).collect();
        Some(Self { keys: keys.iter().map(|key| key.cast()).collect(), names, order, blank })
    }
}

impl TableWalk {
    /// The value at `index`, which is positive.
    ///
    /// # Safety
    /// `state` is live, and two slots for each level that is left are reserved.
    unsafe fn value(&mut self, index: c_int, depth: usize, empty_array: bool) -> Result<Value, ConvertError> {
        self.spend(VALUE_BYTES)?;
        // SAFETY: reads by kind only.
        unsafe {
            match ffi::lua_type(self.state, index) {
                ffi::LUA_TNIL => Ok(Value::Null),
                ffi::LUA_TBOOLEAN => Ok(Value::Bool(ffi::lua_toboolean(self.state, index) != 0)),
                ffi::LUA_TNUMBER => number(ffi::lua_tonumber(self.state, index)),
                ffi::LUA_TSTRING => Ok(Value::String(self.text(index)?)),
                ffi::LUA_TTABLE => self.table(index, depth, empty_array),
                ffi::LUA_TLIGHTUSERDATA if ffi::lua_touserdata(self.state, index).is_null() => Ok(Value::Null),
                ffi::LUA_TINTEGER => Ok(Value::from(ffi::lua_tointeger64(self.state, index, ptr::null_mut()))),
                ffi::LUA_TFUNCTION => Err(ConvertProblem::Kind("a function").into()),
                ffi::LUA_TTHREAD => Err(ConvertProblem::Kind("a coroutine").into()),
                ffi::LUA_TVECTOR => Err(ConvertProblem::Kind("a vector").into()),
                ffi::LUA_TBUFFER => Err(ConvertProblem::Kind("a buffer").into()),
                _ => Err(ConvertProblem::Kind("a userdata").into()),
            }
        }
    }

    /// # Safety
    /// As for `value`; a table is at `index`.
    unsafe fn table(&mut self, index: c_int, depth: usize, empty_array: bool) -> Result<Value, ConvertError> {
        if depth == MAX_DEPTH {
            return Err(ConvertProblem::Depth.into());
        }
        let state = self.state;
        // SAFETY: reads only; `lua_getmetatable` pushes one value, which is popped at once.
        let (identity, length, marked) = unsafe {
            let marked = ffi::lua_getmetatable(state, index) != 0 && {
                let is = ffi::lua_topointer(state, -1) == self.array;
                ffi::lua_pop(state, 1);
                is
            };
            (ffi::lua_topointer(state, index), ffi::lua_objlen(state, index), marked)
        };
        if self.path[..depth].contains(&identity) {
            return Err(ConvertProblem::Cycle.into());
        }
        self.path[depth] = identity;
        // SAFETY: as promised by the caller.
        unsafe {
            if marked {
                let items = Vec::with_capacity(length.min(self.left / VALUE_BYTES));
                return self.array(index, depth, items, length);
            }
            if length > 0 {
                return self.sequence(index, depth, length);
            }
            let object = self.object(index, depth)?;
            Ok(if object.is_empty() && empty_array { Value::Array(Vec::new()) } else { Value::Object(object) })
        }
    }

    /// A table that may be a list: treated as one as long as its entries are the values 1 to `length` in order.
    ///
    /// # Safety
    /// As for `table`.
    unsafe fn sequence(&mut self, index: c_int, depth: usize, length: usize) -> Result<Value, ConvertError> {
        let mut items = Vec::with_capacity(length.min(self.left / VALUE_BYTES));
        let mut next = 0;
        loop {
            // SAFETY: pushes a key and a value, or nothing at the end; both are popped.
            unsafe {
                let after = ffi::lua_rawiter(self.state, index, next);
                let is_next = after >= 0 && {
                    let key = ffi::lua_gettop(self.state) - 1;
                    ffi::lua_type(self.state, key) == ffi::LUA_TNUMBER
                        && ffi::lua_tonumber(self.state, key) == (items.len() + 1) as f64
                };
                if is_next && items.len() < length {
                    let item = self.value(ffi::lua_gettop(self.state), depth + 1, false);
                    ffi::lua_pop(self.state, 2);
                    let item = item.map_err(|error| match self.is_sequence(index, length) {
                        true => error.within_item(items.len() + 1),
                        false => error.within_member(&(items.len() + 1).to_string()),
                    });
                    items.push(item?);
                    next = after;
                    continue;
                }
                if after >= 0 {
                    ffi::lua_pop(self.state, 2);
                } else if items.len() == length {
                    return Ok(Value::Array(items));
                }
                if self.is_sequence(index, length) {
                    return self.array(index, depth, items, length);
                }
                let members = (1..).zip(items).map(|(place, item): (usize, Value)| (place.to_string(), item));
                let members = members.collect();
                return Ok(Value::Object(self.members(index, depth, next, members)?.0));
            }
        }
    }

    /// Whether the table contains nothing but the values 1 to `length`.
    ///
    /// # Safety
    /// As for `table`.
    unsafe fn is_sequence(&self, index: c_int, length: usize) -> bool {
        let (mut next, mut count) = (0, 0);
        loop {
            // SAFETY: pushes a key and a value, or nothing at the end; both are popped.
            unsafe {
                next = ffi::lua_rawiter(self.state, index, next);
                if next < 0 {
                    return count == length;
                }
                ffi::lua_pop(self.state, 2);
            }
            count += 1;
            if count > length {
                return false;
            }
        }
    }

    /// The rest of a list of which `items` are converted.
    ///
    /// # Safety
    /// As for `table`.
    unsafe fn array(
        &mut self,
        index: c_int,
        depth: usize,
        mut items: Vec<Value>,
        length: usize,
    ) -> Result<Value, ConvertError> {
        for place in items.len() + 1..=length {
            // SAFETY: pushes one value, popped after its conversion.
            let item = unsafe {
                ffi::lua_rawgeti_(self.state, index, place as c_int);
                let item = self.value(ffi::lua_gettop(self.state), depth + 1, false);
                ffi::lua_pop(self.state, 1);
                item
            };
            items.push(item.map_err(|error| error.within_item(place))?);
        }
        Ok(Value::Array(items))
    }

    /// # Safety
    /// As for `table`.
    unsafe fn object(&mut self, index: c_int, depth: usize) -> Result<Map<String, Value>, ConvertError> {
        if self.shapes.len() <= depth {
            self.shapes.resize_with(depth + 1, SeenObject::default);
        }
        // SAFETY: as promised by the caller.
        unsafe {
            let count = match std::mem::take(&mut self.shapes[depth]) {
                SeenObject::Shape(shape) => return self.shaped(index, depth, shape),
                SeenObject::Members(count) => Some(count),
                SeenObject::Nothing => None,
            };
            let (object, keys) = self.members(index, depth, 0, Vec::new())?;
            let known = keys.as_ref().map_or(SeenObject::Nothing, |keys| SeenObject::Members(keys.len()));
            let shape = keys.filter(|keys| count == Some(keys.len())).and_then(|keys| ObjectShape::of(&keys, &object));
            self.shapes[depth] = shape.map_or(known, |shape| SeenObject::Shape(Box::new(shape)));
            Ok(object)
        }
    }

    /// An object that may have the same members as the one before.
    ///
    /// # Safety
    /// As for `table`.
    unsafe fn shaped(
        &mut self,
        index: c_int,
        depth: usize,
        shape: Box<ObjectShape>,
    ) -> Result<Map<String, Value>, ConvertError> {
        let (base, mut next) = (self.values.len(), 0);
        loop {
            let place = self.values.len() - base;
            // SAFETY: pushes a key and a value, or nothing at the end; both are popped.
            unsafe {
                let after = ffi::lua_rawiter(self.state, index, next);
                if after < 0 && place == shape.keys.len() {
                    break;
                }
                let top = ffi::lua_gettop(self.state);
                let is_known = after >= 0
                    && place < shape.keys.len()
                    && ffi::lua_type(self.state, top - 1) == ffi::LUA_TSTRING
                    && ffi::lua_tolstring(self.state, top - 1, ptr::null_mut()).cast() == shape.keys[place];
                if !is_known {
                    if after >= 0 {
                        ffi::lua_pop(self.state, 2);
                    }
                    let values = self.values.drain(base..);
                    let members = shape.names.iter().cloned().zip(values).collect();
                    let (object, _) = self.members(index, depth, next, members)?;
                    self.shapes[depth] = SeenObject::Members(object.len());
                    return Ok(object);
                }
                let name = &shape.names[place];
                let member =
                    self.spend(name.len()).and_then(|()| self.value(top, depth + 1, self.empty.is_array_under(name)));
                ffi::lua_pop(self.state, 2);
                self.values.push(member.map_err(|error| error.within_member(name))?);
                next = after;
            }
        }
        let mut object = shape.blank.clone();
        for (slot, place) in object.values_mut().zip(&shape.order) {
            *slot = std::mem::take(&mut self.values[base + place]);
        }
        self.values.truncate(base);
        self.shapes[depth] = SeenObject::Shape(shape);
        Ok(object)
    }

    /// The rest of an object of which `members` are converted: the entries after `next`. For an object walked from its
    /// beginning, also its keys, if another one may have the same.
    ///
    /// # Safety
    /// As for `table`.
    unsafe fn members(
        &mut self,
        index: c_int,
        depth: usize,
        mut next: c_int,
        mut members: Vec<(String, Value)>,
    ) -> Result<WalkedObject, ConvertError> {
        let mut keys = members.is_empty().then(Vec::new);
        loop {
            // SAFETY: pushes a key and a value, or nothing at the end; both are popped.
            let (key, member) = unsafe {
                next = ffi::lua_rawiter(self.state, index, next);
                if next < 0 {
                    break;
                }
                let top = ffi::lua_gettop(self.state);
                let key = match ffi::lua_type(self.state, top - 1) {
                    ffi::LUA_TSTRING => {
                        if let Some(keys) = &mut keys {
                            keys.push(self.bytes(top - 1) as *const [u8]);
                        }
                        self.text(top - 1)
                    }
                    ffi::LUA_TNUMBER => {
                        keys = None;
                        number(ffi::lua_tonumber(self.state, top - 1)).map(|key| key.to_string())
                    }
                    _ => Err(ConvertProblem::Key.into()),
                };
                let member = match &key {
                    Ok(key) => self.value(top, depth + 1, self.empty.is_array_under(key)),
                    Err(_) => Ok(Value::Null),
                };
                ffi::lua_pop(self.state, 2);
                (key?, member)
            };
            let member = member.map_err(|error| error.within_member(&key))?;
            members.push((key, member));
            if members.len() > MAX_SHAPE {
                keys = None;
            }
        }
        members.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        Ok((members.into_iter().collect(), keys))
    }

    /// The bytes of a Lua string, which live as long as a table or the stack holds it.
    ///
    /// # Safety
    /// A string is at `index`.
    unsafe fn bytes<'a>(&self, index: c_int) -> &'a [u8] {
        let mut length = 0;
        // SAFETY: of a string, `lua_tolstring` gives its own bytes.
        unsafe {
            let start = ffi::lua_tolstring(self.state, index, &raw mut length);
            std::slice::from_raw_parts(start.cast::<u8>(), length)
        }
    }

    /// # Safety
    /// A string is at `index`.
    unsafe fn text(&mut self, index: c_int) -> Result<String, ConvertError> {
        // SAFETY: as promised by the caller.
        let bytes = unsafe { self.bytes(index) };
        self.spend(bytes.len())?;
        Ok(match std::str::from_utf8(bytes) {
            Ok(text) => text.to_owned(),
            Err(_) => String::from_utf8_lossy(bytes).into_owned(),
        })
    }

    fn spend(&mut self, bytes: usize) -> Result<(), ConvertError> {
        self.left = self.left.checked_sub(bytes).ok_or(ConvertProblem::Size(self.max_bytes >> 20))?;
        Ok(())
    }
}

/// A number without a fraction becomes an integer, as Lua prints it.
fn number(value: f64) -> Result<Value, ConvertError> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if value.fract() == 0.0 && value.abs() <= EXACT {
        return Ok(Value::from(value as i64));
    }
    Number::from_f64(value).map(Value::Number).ok_or_else(|| ConvertProblem::NotFinite.into())
}
