//! Conversion between JSON and Lua: which table is an array, what is refused, and the words of the errors.
//!
//! The walking itself is in [`crate::vm::raw`].

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mlua::{AppDataRef, Function, Lua, Table, Thread, Value as LuaValue};
use serde_json::{Map, Value};

use crate::vm::raw::{self, CtxFields, MAX_DEPTH, Nulls};

/// What an empty table becomes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum EmptyTables {
    Objects,
    /// As in a JSON Schema: `[]` where a list is expected, `{}` elsewhere.
    Schema,
}

/// The only member of an object that stands for bytes: they are its value, in Base64.
pub(crate) const BYTES: &str = "$toold.bytes";

impl EmptyTables {
    pub(crate) fn is_array_under(self, key: &str) -> bool {
        self == Self::Schema && matches!(key, "required" | "enum" | "type" | "anyOf" | "oneOf" | "allOf")
    }
}

/// A Lua value that cannot be converted to JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ConvertError {
    problem: ConvertProblem,
    /// Fields and positions from the outside in, as Lua would write them; kept short.
    path: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConvertProblem {
    Depth,
    Cycle,
    /// With the limit, in MiB.
    Size(usize),
    NotFinite,
    Key,
    Kind(&'static str),
    Memory,
}

impl From<ConvertProblem> for ConvertError {
    fn from(problem: ConvertProblem) -> Self {
        Self { problem, path: String::new() }
    }
}

impl ConvertError {
    pub(crate) fn within_item(self, place: usize) -> Self {
        self.within(&format!("[{place}]"))
    }

    pub(crate) fn within_member(self, key: &str) -> Self {
        self.within(&format!(".{}", key.chars().take(40).collect::<String>()))
    }

    fn within(mut self, step: &str) -> Self {
        // A path of 128 levels is of no use.
        if self.path.len() < 200 {
            self.path.insert_str(0, step);
        }
        self
    }
}

impl fmt::Display for ConvertError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.problem {
            ConvertProblem::Depth => write!(f, "it nests deeper than {MAX_DEPTH} levels"),
            ConvertProblem::Cycle => f.write_str("a table contains itself"),
            ConvertProblem::Size(limit) => write!(f, "it is larger than {limit} MiB"),
            ConvertProblem::NotFinite => f.write_str("a number is infinite or not a number"),
            ConvertProblem::Key => f.write_str("a key is neither a string nor a number"),
            ConvertProblem::Kind(kind) => write!(f, "{kind} cannot be converted to JSON"),
            ConvertProblem::Memory => f.write_str("not enough memory"),
        }?;
        // Where a table contains itself, the rest of the path adds nothing to its first steps.
        if self.path.is_empty() { Ok(()) } else { write!(f, " (at {})", self.path.trim_start_matches('.')) }
    }
}

/// Metatables that conversions in a Lua state need, looked up once.
pub(crate) struct Metatables {
    /// Marks a table as an array.
    array: Table,
    /// The metatable of `ctx` tables.
    pub(crate) ctx: Table,
    /// Bytes that the JSON of a value may take.
    max_bytes: usize,
}

/// Bytes that the JSON of a value may take, unless the Lua state may use more.
const MAX_BYTES: usize = 64 << 20;

/// Prepares a new Lua state, which may use this much memory, for the functions below.
pub(crate) fn install(lua: &Lua, memory: usize) -> mlua::Result<()> {
    let array = lua.create_table()?;
    array.raw_set("__metatable", "array")?;
    lua.set_app_data(Metatables { array, ctx: lua.create_table()?, max_bytes: MAX_BYTES.max(memory) });
    Ok(())
}

pub(crate) fn shapes(lua: &Lua) -> mlua::Result<AppDataRef<'_, Metatables>> {
    lua.app_data_ref().ok_or_else(|| mlua::Error::runtime("this Lua state is not prepared"))
}

/// The metatable that marks a table as an array.
pub(crate) fn array_metatable(lua: &Lua) -> mlua::Result<Table> {
    Ok(shapes(lua)?.array.clone())
}

/// Arguments as scripts expect them: a null field is absent.
pub(crate) fn to_lua(lua: &Lua, json: &Value) -> mlua::Result<LuaValue> {
    raw::push(lua, json, &shapes(lua)?.array, Nulls::Absent)
}

/// As [`to_lua_exact`], with the bytes of [`to_json_with_bytes`].
pub(crate) fn to_lua_with_bytes(lua: &Lua, json: &Value) -> mlua::Result<LuaValue> {
    if let Some(bytes) = bytes_of(json) {
        return Ok(LuaValue::String(lua.create_string(bytes)?));
    }
    let value = to_lua_exact(lua, json)?;
    if let LuaValue::Table(table) = &value {
        restore_bytes(lua, json, table)?;
    }
    Ok(value)
}

fn restore_bytes(lua: &Lua, json: &Value, table: &Table) -> mlua::Result<()> {
    let restore = |key: LuaValue, member: &Value| {
        if let Some(bytes) = bytes_of(member) {
            return table.raw_set(key, lua.create_string(bytes)?);
        }
        match (member, table.raw_get::<LuaValue>(key)?) {
            (Value::Array(_) | Value::Object(_), LuaValue::Table(inner)) => restore_bytes(lua, member, &inner),
            _ => Ok(()),
        }
    };
    match json {
        Value::Array(items) => (1..).zip(items).try_for_each(|(place, item)| restore(LuaValue::Integer(place), item)),
        Value::Object(members) => {
            members.iter().try_for_each(|(name, member)| restore(LuaValue::String(lua.create_string(name)?), member))
        }
        _ => Ok(()),
    }
}

/// Nothing is lost: null is `json.null`.
pub(crate) fn to_lua_exact(lua: &Lua, json: &Value) -> mlua::Result<LuaValue> {
    raw::push(lua, json, &shapes(lua)?.array, Nulls::Kept)
}

/// A coroutine that is ready to run a handler with its `ctx` and the other arguments.
pub(crate) fn begin(
    lua: &Lua,
    handler: &Function,
    fields: &CtxFields,
    input: &Value,
    given: &[&Value],
) -> mlua::Result<Thread> {
    let shapes = shapes(lua)?;
    raw::begin(lua, handler, fields, input, given, &shapes.array, &shapes.ctx)
}

/// The JSON for a value; an empty table is an object unless `json.array` made it.
pub(crate) fn to_json(lua: &Lua, value: &LuaValue) -> Result<Value, ConvertError> {
    pull(lua, value, EmptyTables::Objects)
}

/// The same; a text that is not UTF-8 becomes an object with the member [`BYTES`].
pub(crate) fn to_json_with_bytes(lua: &Lua, value: &LuaValue) -> Result<Value, ConvertError> {
    let mut json = to_json(lua, value)?;
    // Where a text was mended, this character stands in it.
    if json.to_string().contains('\u{fffd}') {
        keep_bytes(&mut json, value);
    }
    Ok(json)
}

/// Puts the bytes of a value into the places of its JSON where texts were mended.
fn keep_bytes(json: &mut Value, value: &LuaValue) {
    match (json, value) {
        (json @ Value::String(_), LuaValue::String(bytes)) if bytes.to_str().is_err() => {
            let encoded = STANDARD.encode(bytes.as_bytes());
            *json = Value::Object(Map::from_iter([(BYTES.to_owned(), encoded.into())]));
        }
        (Value::Array(items), LuaValue::Table(table)) => {
            for (place, item) in (1..).zip(items) {
                if let Ok(value) = table.raw_get::<LuaValue>(place) {
                    keep_bytes(item, &value);
                }
            }
        }
        (Value::Object(members), LuaValue::Table(table)) => {
            for (name, member) in members {
                let found = table.raw_get::<LuaValue>(name.as_str());
                let found = found.ok().filter(|value| !value.is_nil());
                let by_number = || table.raw_get::<LuaValue>(name.parse::<f64>().ok()?).ok();
                if let Some(value) = found.or_else(by_number) {
                    keep_bytes(member, &value);
                }
            }
        }
        _ => {}
    }
}

/// The bytes that an object of [`to_json_with_bytes`] stands for.
pub(crate) fn bytes_of(value: &Value) -> Option<Vec<u8>> {
    let members = value.as_object().filter(|members| members.len() == 1)?;
    STANDARD.decode(members.get(BYTES)?.as_str()?).ok()
}

/// The JSON Schema that a table describes.
pub(crate) fn to_schema(lua: &Lua, value: &LuaValue) -> Result<Value, ConvertError> {
    pull(lua, value, EmptyTables::Schema)
}

fn pull(lua: &Lua, value: &LuaValue, empty: EmptyTables) -> Result<Value, ConvertError> {
    let shapes = shapes(lua).map_err(|_| ConvertProblem::Memory)?;
    raw::pull(lua, value, &shapes.array, empty, shapes.max_bytes)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn new_state() -> Lua {
        let lua = Lua::new();
        install(&lua, 0).unwrap();
        let array = array_metatable(&lua).unwrap();
        let mark = move |_: &Lua, table: Table| {
            table.set_metatable(Some(array.clone()))?;
            Ok(table)
        };
        lua.globals().set("array", lua.create_function(mark).unwrap()).unwrap();
        lua
    }

    #[track_caller]
    fn check(script: &str, expected: Value) {
        let lua = new_state();
        let value: LuaValue = lua.load(script).eval().unwrap();
        assert_eq!(to_json(&lua, &value), Ok(expected), "{script}");
    }

    #[track_caller]
    fn check_error(script: &str, expected: &str) {
        let lua = new_state();
        let value: LuaValue = lua.load(script).eval().unwrap();
        assert_eq!(to_json(&lua, &value).unwrap_err().to_string(), expected, "{script}");
    }

    #[test]
    fn scalars_keep_their_kind() {
        check("return 3.0", json!(3));
        check("return 10 / 4", json!(2.5));
        check("return -2^53", json!(-9_007_199_254_740_992i64));
        check("return 1e300", json!(1e300));
        check("return 'é'", json!("é"));
        check("return '\\255'", json!("\u{fffd}"));
        check("return nil", json!(null));
    }

    #[test]
    fn tables_become_arrays_or_objects() {
        check("return {}", json!({}));
        check("return array{}", json!([]));
        check("return {1, 2, {}}", json!([1, 2, {}]));
        check("return {b = 1, a = {true}}", json!({"a": [true], "b": 1}));
        check("return {10, 20, x = 1}", json!({"1": 10, "2": 20, "x": 1}));
        check("return {[5] = 'a'}", json!({"5": "a"}));
    }

    #[test]
    fn objects_of_a_list_may_differ_wherever_they_like() {
        check(
            "local list = {} for i = 1, 4 do list[i] = {b = i, a = {x = i}} end
             list[5] = {b = 5} list[6] = {a = 6, b = 7, c = 8} list[7] = {} list[8] = {b = 9, a = 10}
             list[9] = {b = {y = 1}, a = 2} list[10] = {b = 3, z = 4} list[11] = {4, 5} list[12] = {b = 1, [7] = 2}
             return list",
            json!([
                {"a": {"x": 1}, "b": 1}, {"a": {"x": 2}, "b": 2}, {"a": {"x": 3}, "b": 3}, {"a": {"x": 4}, "b": 4},
                {"b": 5}, {"a": 6, "b": 7, "c": 8}, {}, {"a": 10, "b": 9},
                {"a": 2, "b": {"y": 1}}, {"b": 3, "z": 4}, [4, 5], {"7": 2, "b": 1}
            ]),
        );
        // Deeper objects with the same members, and one with another value among them.
        check(
            "local function tree(depth) if depth == 0 then return {k = 'leaf', v = 1} end
               return {k = tree(depth - 1), v = depth} end
             return {tree(2), tree(2), tree(2), {k = {k = 1}, v = tree(1)}}",
            {
                let tree = json!({"k": {"k": {"k": "leaf", "v": 1}, "v": 1}, "v": 2});
                let inner = json!({"k": {"k": "leaf", "v": 1}, "v": 1});
                json!([tree, tree, tree, {"k": {"k": 1}, "v": inner}])
            },
        );
        check_error(
            "return {{a = 1, b = 1}, {a = 2, b = 2}, {a = 3, b = 3}, {a = 4, b = {c = print}}}",
            "a function cannot be converted to JSON (at [4].b.c)",
        );
        let wide = "local list = {} for i = 1, 3 do local t = {} for j = 1, 70 do t['k' .. j] = i end list[i] = t end return list";
        let lua = new_state();
        let value: LuaValue = lua.load(wide).eval().unwrap();
        assert_eq!(to_json(&lua, &value).unwrap()[2]["k70"], json!(3));
    }

    #[test]
    fn keys_that_are_no_text_of_utf8_are_mended_in_each_object() {
        check(
            "local list = {} for i = 1, 3 do list[i] = {['\\255'] = i, a = i} end return list",
            json!([{"a": 1, "\u{fffd}": 1}, {"a": 2, "\u{fffd}": 2}, {"a": 3, "\u{fffd}": 3}]),
        );
    }

    #[test]
    fn lists_are_lists_in_whatever_order_they_were_filled() {
        check("local t = {} for i = 9, 1, -1 do t[i] = i end return t", json!([1, 2, 3, 4, 5, 6, 7, 8, 9]));
        check("local t = {1, 2} t[4] = 4 t[3] = {3} return t", json!([1, 2, [3], 4]));
        check("return {1, nil, 3}", json!({"1": 1, "3": 3}));
        check("return {1, {2}, x = {3}}", json!({"1": 1, "2": [2], "x": [3]}));
        check_error("return {1, {print}, x = 1}", "a function cannot be converted to JSON (at 2[1])");
        check_error("return {1, {print}}", "a function cannot be converted to JSON (at [2][1])");
    }

    #[test]
    fn mixed_tables_are_walked_once_however_deep() {
        let lua = new_state();
        let script = "local t = {1, x = 1} for i = 1, 100 do t = {t, x = 1} end return t";
        let value: LuaValue = lua.load(script).eval().unwrap();
        assert!(to_json(&lua, &value).unwrap()["1"]["1"]["x"] == json!(1));
        let script = "local t = {a = 1, b = 1} for i = 1, 100 do t = {a = t, b = 1} end return {t, t, {a = t}}";
        let value: LuaValue = lua.load(script).eval().unwrap();
        assert!(to_json(&lua, &value).unwrap()[2]["a"]["a"]["b"] == json!(1));
    }

    #[test]
    fn keys_are_sorted() {
        let lua = new_state();
        let value: LuaValue = lua.load("return {c = 1, a = 2, b = 3, B = 4}").eval().unwrap();
        assert_eq!(to_json(&lua, &value).unwrap().to_string(), r#"{"B":4,"a":2,"b":3,"c":1}"#);
    }

    #[test]
    fn only_raw_fields_count() {
        check("return setmetatable({a = 1}, {__index = {b = 2}, __len = function() error('x') end})", json!({"a": 1}));
    }

    #[test]
    fn what_has_no_json_is_named_with_its_path() {
        check_error("return {a = {b = {1, print}}}", "a function cannot be converted to JSON (at a.b[2])");
        check_error("return {[{}] = 1}", "a key is neither a string nor a number");
        check_error("return {x = 0/0}", "a number is infinite or not a number (at x)");
        check_error("local t = {} t.t = t return t", "a table contains itself (at t)");
        check_error("local t = {} for i = 1, 200 do t = {t} end return t", &{
            let path: String = "[1]".repeat(67);
            format!("it nests deeper than 128 levels (at {path})")
        });
    }

    #[test]
    fn a_graph_that_unfolds_for_ever_is_refused() {
        check_error("local t = {} for i = 1, 100 do t = {t, t} end return #t > 0 and t", &{
            // The walk goes along the first members first.
            let lua = new_state();
            let value: LuaValue = lua.load("local t = {} for i = 1, 100 do t = {t, t} end return t").eval().unwrap();
            let error = to_json(&lua, &value).unwrap_err();
            assert!(error.to_string().starts_with("it is larger than 64 MiB"), "{error}");
            error.to_string()
        });
    }

    #[test]
    fn empty_tables_of_schemas_follow_their_key() {
        let lua = new_state();
        let script = "return {type = 'object', properties = {}, required = {}, anyOf = {}, items = {enum = {}}}";
        let value: LuaValue = lua.load(script).eval().unwrap();
        assert_eq!(
            to_schema(&lua, &value).unwrap(),
            json!({"anyOf": [], "items": {"enum": []}, "properties": {}, "required": [], "type": "object"})
        );
    }

    #[test]
    fn json_survives_the_way_there_and_back() {
        let lua = new_state();
        let there = json!({"a": [], "b": {}, "c": [1, 2.5, "x", null, true], "d": {"e": null}, "f": [[]]});
        let value = to_lua_exact(&lua, &there).unwrap();
        assert_eq!(to_json(&lua, &value).unwrap(), there);
        let arguments = to_lua(&lua, &json!({"gone": null, "list": [null]})).unwrap();
        assert_eq!(to_json(&lua, &arguments).unwrap(), json!({"list": [null]}));
    }
}
