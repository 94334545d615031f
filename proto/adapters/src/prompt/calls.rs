//! Calls as each family writes them: the inverse of [`crate::parse`].

use serde_json::{Map, Value, json};
use toold_proto::prompt::ParsedCall;

use crate::families::Family;
use crate::parse::lenient_json::{STRING_MARKS, is_key_char};
use crate::parse::raw_value;

/// The calls as a model of this family would have written them, for the history that is shown to
/// it. [`crate::parse::parse`] reads them back as they were, as long as the names are names of
/// tools and the arguments are objects. Empty without calls.
pub fn render_calls(family: Family, calls: &[ParsedCall]) -> String {
    if calls.is_empty() {
        return String::new();
    }
    let each =
        |write: fn(&ParsedCall) -> String, between: &str| calls.iter().map(write).collect::<Vec<_>>().join(between);
    match family {
        Family::Tags => each(|call| tagged(&json!({"name": call.name, "args": call.arguments}).to_string()), "\n"),
        Family::Hermes => {
            each(|call| tagged(&json!({"name": call.name, "arguments": call.arguments}).to_string()), "\n")
        }
        Family::Gemma => each(gemma, ""),
        Family::Mistral => {
            let list: Vec<Value> =
                calls.iter().map(|call| json!({"name": call.name, "arguments": call.arguments})).collect();
            format!("[TOOL_CALLS]{}", Value::Array(list))
        }
        Family::Llama => {
            let list = each(|call| json!({"name": call.name, "parameters": call.arguments}).to_string(), "; ");
            format!("<|python_tag|>{list}")
        }
        Family::Pythonic => format!("[{}]", each(pythonic, ", ")),
        Family::Function => each(function, "\n"),
        Family::QwenCoder => each(qwen_coder, "\n"),
    }
}

fn tagged(content: &str) -> String {
    format!("<tool_call>{content}</tool_call>")
}

fn function(call: &ParsedCall) -> String {
    format!("<function={}>{}</function>", call.name, call.arguments)
}

fn gemma(call: &ParsedCall) -> String {
    let mut text = format!("<|tool_call>call:{}", call.name);
    gemma_value(&call.arguments, &mut text);
    text.push_str("<tool_call|>");
    text
}

fn gemma_value(value: &Value, out: &mut String) {
    match value {
        Value::String(text) if !STRING_MARKS.iter().any(|mark| text.contains(mark)) => {
            out.push_str(STRING_MARKS[0]);
            out.push_str(text);
            out.push_str(STRING_MARKS[0]);
        }
        Value::Array(items) => list(items.iter(), ['[', ']'], out, gemma_value),
        Value::Object(map) => list(map.iter(), ['{', '}'], out, |(key, value), out| {
            if !key.is_empty() && key.chars().all(is_key_char) {
                out.push_str(key);
            } else {
                out.push_str(&Value::from(key.as_str()).to_string());
            }
            out.push(':');
            gemma_value(value, out);
        }),
        other => out.push_str(&other.to_string()),
    }
}

fn pythonic(call: &ParsedCall) -> String {
    let none = Map::new();
    let mut text = call.name.clone();
    list(call.arguments.as_object().unwrap_or(&none).iter(), ['(', ')'], &mut text, |(key, value), out| {
        if !key.is_empty() && key.chars().all(is_key_char) {
            out.push_str(key);
        } else {
            out.push_str(&Value::from(key.as_str()).to_string());
        }
        out.push('=');
        python_value(value, out);
    });
    text
}

fn python_value(value: &Value, out: &mut String) {
    match value {
        Value::Null => out.push_str("None"),
        Value::Bool(true) => out.push_str("True"),
        Value::Bool(false) => out.push_str("False"),
        Value::Number(_) | Value::String(_) => out.push_str(&value.to_string()),
        Value::Array(items) => list(items.iter(), ['[', ']'], out, python_value),
        Value::Object(map) => list(map.iter(), ['{', '}'], out, |(key, value), out| {
            out.push_str(&Value::from(key.as_str()).to_string());
            out.push_str(": ");
            python_value(value, out);
        }),
    }
}

fn list<T>(items: impl Iterator<Item = T>, brackets: [char; 2], out: &mut String, write: impl Fn(T, &mut String)) {
    out.push(brackets[0]);
    for (index, item) in items.enumerate() {
        if index > 0 {
            out.push_str(if brackets[0] == '(' { ", " } else { "," });
        }
        write(item, out);
    }
    out.push(brackets[1]);
}

fn qwen_coder(call: &ParsedCall) -> String {
    let none = Map::new();
    let arguments = call.arguments.as_object().unwrap_or(&none);
    // Such a key cannot stand in a tag.
    if arguments.keys().any(|key| key.is_empty() || key.len() > 100 || key.contains(['<', '>', '\n'])) {
        return tagged(&function(call));
    }
    let mut text = format!("<function={}>\n", call.name);
    for (key, value) in arguments {
        text.push_str(&format!("<parameter={key}>\n{}\n</parameter>\n", raw_value::write(value)));
    }
    text.push_str("</function>");
    tagged(&format!("\n{text}\n"))
}
