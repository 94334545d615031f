//! Values as a person reads them at a prompt: tables with their fields, within bounds.

use std::ffi::c_void;

use mlua::{Function, MultiValue, Table, Value};

use crate::vm::args::number_text;

/// Longer texts are cut.
const MAX_TEXT: usize = 16 * 1024;
/// Fields of one table that are shown.
const MAX_FIELDS: usize = 100;
/// Levels of tables that are shown.
const MAX_DEPTH: usize = 6;
/// A table that fits on a line of this many characters is one line.
const LINE: usize = 80;

/// One value a line. Only raw fields count, so nothing of the script runs.
pub(crate) fn display(values: &MultiValue) -> String {
    let mut display = Display { left: MAX_TEXT, above: Vec::new() };
    let lines: Vec<String> = values.iter().map(|value| display.value(value)).collect();
    lines.join("\n")
}

struct Display {
    /// How many more bytes may be shown.
    left: usize,
    /// The tables around the value.
    above: Vec<*const c_void>,
}

impl Display {
    fn value(&mut self, value: &Value) -> String {
        let text = match value {
            Value::Nil => "nil".to_owned(),
            Value::Boolean(flag) => flag.to_string(),
            Value::Integer(number) => number.to_string(),
            Value::Number(number) => number_text(*number),
            Value::String(text) => quoted(&text.as_bytes(), self.left),
            Value::LightUserData(pointer) if pointer.0.is_null() => "json.null".to_owned(),
            Value::Table(table) => return self.table(table),
            Value::Function(function) => function_name(function),
            other => format!("<{}>", other.type_name()),
        };
        self.left = self.left.saturating_sub(text.len());
        text
    }

    fn table(&mut self, table: &Table) -> String {
        let pointer = table.to_pointer();
        if self.above.contains(&pointer) {
            return "<the table around it>".to_owned();
        }
        if self.above.len() == MAX_DEPTH || self.left == 0 {
            return "{...}".to_owned();
        }
        self.above.push(pointer);
        let fields = self.fields(table);
        self.above.pop();
        let length: usize = fields.iter().map(|field| field.chars().count() + 2).sum();
        let is_short = length <= LINE && !fields.iter().any(|field| field.contains('\n'));
        match is_short {
            true => format!("{{{}}}", fields.join(", ")),
            false => {
                let lines = fields.join(",\n").replace('\n', "\n  ");
                format!("{{\n  {lines}\n}}")
            }
        }
    }

    /// The items of its list, then its other fields, sorted.
    fn fields(&mut self, table: &Table) -> Vec<String> {
        let items = table.raw_len();
        let (mut list, mut named, mut more) = (Vec::new(), Vec::new(), false);
        for pair in table.pairs::<Value, Value>() {
            // Fails when the table was changed meanwhile.
            let Ok((key, value)) = pair else { break };
            if list.len() + named.len() == MAX_FIELDS || self.left == 0 {
                more = true;
                break;
            }
            let place = match &key {
                Value::Integer(place) => usize::try_from(*place).ok(),
                Value::Number(place) if place.fract() == 0.0 && *place >= 1.0 => Some(*place as usize),
                _ => None,
            };
            match place.filter(|place| (1..=items).contains(place)) {
                Some(place) => list.push((place, self.value(&value))),
                None => {
                    let key = self.key(&key);
                    named.push(format!("{key} = {}", self.value(&value)));
                }
            }
        }
        list.sort();
        named.sort();
        let mut fields: Vec<String> = list.into_iter().map(|(_, text)| text).chain(named).collect();
        if more {
            fields.push("...".to_owned());
        }
        fields
    }

    fn key(&mut self, key: &Value) -> String {
        if let Value::String(text) = key {
            let name = text.as_bytes();
            let is_name = name.first().is_some_and(|first| !first.is_ascii_digit())
                && name.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
                && name.len() <= LINE;
            if is_name {
                return String::from_utf8_lossy(&name).into_owned();
            }
        }
        format!("[{}]", self.value(key))
    }
}

/// As in Lua source; bytes that are not UTF-8 and control characters are escaped.
fn quoted(bytes: &[u8], most: usize) -> String {
    let mut text = String::from("\"");
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            if text.len() > most {
                return format!("{text}\"... ({} bytes)", bytes.len());
            }
            match c {
                '"' => text.push_str("\\\""),
                '\\' => text.push_str("\\\\"),
                '\n' => text.push_str("\\n"),
                '\t' => text.push_str("\\t"),
                c if c.is_control() => text.push_str(&format!("\\u{{{:x}}}", u32::from(c))),
                c => text.push(c),
            }
        }
        chunk.invalid().iter().for_each(|byte| text.push_str(&format!("\\x{byte:02x}")));
    }
    text.push('"');
    text
}

fn function_name(function: &Function) -> String {
    let info = function.info();
    let name = info.name.as_deref().map(|name| format!(" {name}")).unwrap_or_default();
    match (info.short_src, info.line_defined) {
        (Some(file), Some(line)) if info.what != "C" => format!("<function{name} at {file}:{line}>"),
        _ => format!("<function{name}>"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mlua::Lua;

    #[track_caller]
    fn check(script: &str, expected: &str) {
        let lua = Lua::new();
        let values: MultiValue = lua.load(script).set_name("=p.lua").eval().unwrap();
        assert_eq!(display(&values), expected, "{script}");
    }

    #[test]
    fn values_are_shown_as_lua_writes_them() {
        check("return", "");
        check("return nil, true, 3, 2.5, 'a\\n\"b\\255'", "nil\ntrue\n3\n2.5\n\"a\\n\\\"b\\xff\"");
        check(
            "return {1, {2}, b = {}, a = 'x', ['a b'] = 1, [7] = 2}",
            "{1, {2}, [\"a b\"] = 1, [7] = 2, a = \"x\", b = {}}",
        );
        check("local function f() end return f, print", "<function f at p.lua:1>\n<function print>");
        check("local t = {} t.self = t return t", "{self = <the table around it>}");
        check(
            "return {first = string.rep('a', 50), second = {third = string.rep('b', 50)}}",
            &format!("{{\n  first = \"{}\",\n  second = {{third = \"{}\"}}\n}}", "a".repeat(50), "b".repeat(50)),
        );
    }

    #[test]
    fn nothing_of_the_script_runs() {
        check("return setmetatable({}, {__tostring = error, __index = error, __len = error, __iter = error})", "{}");
    }

    #[test]
    fn large_values_are_cut() {
        let lua = Lua::new();
        for script in [
            "return string.rep('x', 1e6)",
            "local t = {} for i = 1, 1e5 do t[i] = i end return t",
            "local t = {} for i = 1, 100 do t = {t, t, t} end return t",
            "local t = {} for i = 1, 90 do t[i] = {} for j = 1, 90 do t[i][j] = string.rep('x', 900) end end return t",
        ] {
            let values: MultiValue = lua.load(script).eval().unwrap();
            let text = display(&values);
            assert!(text.len() < 4 * MAX_TEXT && text.contains("..."), "{script}: {}", text.len());
        }
    }
}
