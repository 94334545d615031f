//! Teaches tools to a model without native calls, in text.
//!
//! How each family writes a call is in `prompt/calls.rs`; what reads them is [`crate::parse`].

pub mod calls;

use serde_json::{Map, Value, json};
use toold_proto::prompt::{Detail, ParsedCall};
use toold_proto::tool::Tool;

use crate::families::Family;
use crate::prompt::calls::render_calls;

/// The text for a system prompt. Empty without tools. The same tools in the same order give the
/// same bytes.
///
/// [`Family::Tags`] with [`Detail::Names`] has the layout of hugind's `tools_prompt`.
pub fn render_prompt(family: Family, tools: &[Tool], detail: Detail) -> String {
    if tools.is_empty() {
        return String::new();
    }
    let mut text = format!("You have tools. To use one: {}\n{}\n", example(family), ending(family));
    for tool in tools {
        text.push_str(&format!("\n- {}", entry(tool, detail)));
    }
    text.push('\n');
    text
}

fn example(family: Family) -> String {
    match family {
        // Not JSON, but what models have been shown to follow.
        Family::Tags => r#"<tool_call>{"name":"tool_name","args":{...}}</tool_call>"#.to_owned(),
        Family::Hermes => r#"<tool_call>{"name": "tool_name", "arguments": {...}}</tool_call>"#.to_owned(),
        Family::Mistral => r#"[TOOL_CALLS][{"name": "tool_name", "arguments": {...}}]"#.to_owned(),
        Family::Llama => r#"<|python_tag|>{"name": "tool_name", "parameters": {...}}"#.to_owned(),
        Family::Function => "<function=tool_name>{...}</function>".to_owned(),
        family => {
            let arguments = json!({"text_argument": "text", "number_argument": 1});
            render_calls(family, &[ParsedCall { name: "tool_name".to_owned(), arguments }])
        }
    }
}

fn ending(family: Family) -> &'static str {
    match family {
        Family::Tags => "When done, respond without tool_call tags.",
        Family::Hermes => "Put every call in tags of its own. When done, respond without tool_call tags.",
        Family::Gemma => "Text stands between <|\"|> and <|\"|>. When done, respond without tool_call marks.",
        Family::Mistral => "Put several calls in one list. When done, respond without [TOOL_CALLS].",
        Family::MistralArgs => "Put [TOOL_CALLS] before each of several calls. When done, respond without it.",
        Family::Llama => "Put ; between several calls. When done, respond without <|python_tag|>.",
        Family::Llama3 => {
            "Put ; between several calls, and nothing else into the answer. When done, respond without calls."
        }
        Family::Pythonic => {
            "Put the list on a line of its own, several calls in one list, every argument with its name. \
             When done, respond without such a list."
        }
        Family::Xlam | Family::Phi4Mini | Family::HyperclovaX => {
            "Put several calls in one list, and nothing else into the answer. When done, respond without calls."
        }
        Family::Function | Family::QwenCoder => "When done, respond without function tags.",
        _ => "Write each call exactly so. When done, respond without calls.",
    }
}

fn entry(tool: &Tool, detail: Detail) -> String {
    let name = &tool.name;
    // A line that begins with `- ` would look like the next tool.
    let description = tool.description.trim().replace('\n', "\n  ");
    let none = Map::new();
    let properties = tool.input_schema.get("properties").and_then(Value::as_object).unwrap_or(&none);
    match detail {
        Detail::Names => {
            let names: Vec<&str> = properties.keys().map(String::as_str).collect();
            format!("{name}({}): {description}", names.join(", "))
        }
        Detail::Types => {
            let required: Vec<&str> =
                tool.input_schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
            let arguments: Vec<String> = properties
                .iter()
                .map(|(key, schema)| {
                    let optional = if required.contains(&key.as_str()) { "" } else { "?" };
                    format!("{key}{optional}: {}", type_name(schema, 0))
                })
                .collect();
            format!("{name}({}): {description}", arguments.join(", "))
        }
        Detail::Schema => format!("{name}: {description}\n  arguments: {}", tool.input_schema),
    }
}

/// A type as TypeScript would write it; `any` where the schema says it in other ways.
fn type_name(schema: &Value, depth: usize) -> String {
    if depth > 8 {
        return "any".to_owned();
    }
    if let Some(value) = schema.get("const") {
        return value.to_string();
    }
    if let Some(choices) = schema.get("enum").and_then(Value::as_array) {
        return choices.iter().map(Value::to_string).collect::<Vec<_>>().join(" | ");
    }
    for key in ["anyOf", "oneOf"] {
        if let Some(choices) = schema.get(key).and_then(Value::as_array) {
            return choices.iter().map(|choice| type_name(choice, depth + 1)).collect::<Vec<_>>().join(" | ");
        }
    }
    match schema.get("type") {
        Some(Value::String(name)) if name == "array" => match schema.get("items") {
            Some(items) => {
                let item = type_name(items, depth + 1);
                if item.contains('|') { format!("({item})[]") } else { format!("{item}[]") }
            }
            None => "any[]".to_owned(),
        },
        Some(Value::String(name)) => name.clone(),
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" | "),
        _ => "any".to_owned(),
    }
}
