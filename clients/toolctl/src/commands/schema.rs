//! `toolctl schema`: one tool and its arguments.

use std::io::{self, Write};

use clap::Args;
use comfy_table::{Attribute, Cell};
use serde_json::Value;
use toold_proto::call::ToolSchema;
use toold_proto::method::ToolsSchema;
use toold_proto::tool::Tool;

use crate::arguments::members;
use crate::exit::OK;
use crate::globals::Globals;
use crate::output::{self, BOLD, DIM, NAME, one_line, plain, print_json};
use crate::{connection, table};

/// Show a tool and its arguments
#[derive(Debug, Args)]
pub(crate) struct SchemaArgs {
    /// The name of the tool
    pub(crate) name: String,
    /// Print JSON, with the full JSON Schema
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) async fn run(args: SchemaArgs, globals: &Globals) -> anyhow::Result<u8> {
    let client = connection::open(globals).await?;
    let tool = client.call::<ToolsSchema>(ToolSchema { name: args.name, session_id: None }).await?;
    if args.json {
        print_json(&tool)?;
    } else {
        let mut out = output::stdout();
        show(&tool, output::terminal_width(), &mut out)?;
        out.flush()?;
    }
    Ok(OK)
}

/// The tool for a person: its description, its arguments and the facts about it.
pub(crate) fn show(tool: &Tool, width: Option<u16>, out: &mut impl Write) -> io::Result<()> {
    let label = if tool.label == tool.name.as_str() { String::new() } else { format!("  {}", one_line(&tool.label)) };
    writeln!(out, "{NAME}{BOLD}{}{BOLD:#}{NAME:#}{label}", tool.name)?;
    writeln!(out, "\n{}\n", plain(tool.description.trim()))?;
    let arguments = arguments(&tool.input_schema);
    if arguments.is_empty() {
        writeln!(out, "Takes no arguments.")?;
    } else {
        let mut rows = table::new(width);
        rows.set_header(table::header(&["ARGUMENT", "TYPE", "DESCRIPTION"]));
        for argument in &arguments {
            let mut name = table::name(&one_line(argument.name));
            if argument.required {
                name = name.add_attribute(Attribute::Bold);
            }
            rows.add_row([name, Cell::new(&argument.kind), Cell::new(&argument.text)]);
        }
        write!(out, "{}", table::render(&rows))?;
    }
    writeln!(out)?;
    for (name, value) in facts(tool) {
        writeln!(out, "{DIM}{name:<12}{DIM:#} {}", one_line(&value))?;
    }
    Ok(())
}

struct Argument<'a> {
    name: &'a str,
    kind: String,
    text: String,
    required: bool,
}

/// The required ones first, each group in the schema's order.
fn arguments(schema: &Value) -> Vec<Argument<'_>> {
    let required: Vec<&str> = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let properties = schema["properties"].as_object().into_iter().flatten();
    let mut arguments: Vec<Argument<'_>> = properties
        .map(|(name, property)| {
            let required = required.contains(&name.as_str());
            Argument { name, kind: kind(property), text: text(property, required), required }
        })
        .collect();
    arguments.sort_by_key(|argument| !argument.required);
    arguments
}

/// The type, or the values, in a few words; of an object its members, those that may be left out with a `?`.
fn kind(schema: &Value) -> String {
    let only = schema.get("const").map(std::slice::from_ref);
    if let Some(values) = schema["enum"].as_array().map(Vec::as_slice).or(only) {
        let values: Vec<String> =
            values.iter().map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned)).collect();
        return one_line(&values.join(" | "));
    }
    let members = members(schema);
    if !members.is_empty() {
        return format!("{{{}}}", members.join(", "));
    }
    let name = match &schema["type"] {
        Value::String(name) => name.clone(),
        Value::Array(names) => names.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" | "),
        _ => {
            let choices = ["anyOf", "oneOf"].iter().find_map(|word| schema[*word].as_array());
            return choices
                .map_or_else(|| "any".to_owned(), |all| all.iter().map(kind).collect::<Vec<_>>().join(" | "));
        }
    };
    if name == "array" && schema["items"].is_object() {
        format!("array of {}", kind(&schema["items"]))
    } else {
        one_line(&name)
    }
}

fn text(schema: &Value, required: bool) -> String {
    let mut parts = vec![one_line(schema["description"].as_str().unwrap_or_default())];
    if required {
        parts.push("(required)".to_owned());
    }
    if let Some(default) = schema.get("default") {
        parts.push(format!("(default {})", one_line(&default.to_string())));
    }
    parts.retain(|part| !part.is_empty());
    parts.join(" ")
}

fn facts(tool: &Tool) -> Vec<(&'static str, String)> {
    let source = [Some(tool.source.kind.as_str()), Some(tool.source.name.as_str()), tool.source.path.as_deref()];
    let mut source: Vec<&str> = source.into_iter().flatten().collect();
    source.dedup();
    let needs: Vec<&str> = tool.permissions.iter().map(|category| category.as_str()).collect();
    let annotations = [
        (tool.annotations.read_only, "read-only"),
        (tool.annotations.destructive, "destructive"),
        (tool.annotations.idempotent, "idempotent"),
        (tool.annotations.open_world, "open world"),
        (Some(tool.parallelizable), "parallelizable"),
        (Some(tool.cacheable), "cacheable"),
    ];
    let annotations: Vec<&str> =
        annotations.into_iter().filter_map(|(holds, word)| (holds == Some(true)).then_some(word)).collect();
    let mut facts = vec![
        ("source", source.join(" ")),
        ("needs", if needs.is_empty() { "nothing".to_owned() } else { needs.join(", ") }),
        ("is", annotations.join(", ")),
        ("time limit", tool.timeout_ms.map(output::duration).unwrap_or_default()),
        ("version", tool.version.clone().unwrap_or_default()),
    ];
    facts.retain(|(_, value)| !value.is_empty());
    facts
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_tool_is_shown_with_its_arguments() {
        let tool: Tool = serde_json::from_value(json!({
            "name": "grep", "label": "Search", "description": "Finds lines.\nIn files.",
            "input_schema": {
                "type": "object",
                "properties": {
                    "mode": {"enum": ["content", "files"], "default": "content", "description": "What to give."},
                    "pattern": {"type": "string", "description": "A regular expression."},
                    "paths": {"type": "array", "items": {"type": "string"}},
                    "limit": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
                    "scope": {"oneOf": [{"type": "string", "const": "session"}, {"type": "string", "const": "global"}]},
                    "edits": {"type": "array", "items": {"type": "object", "required": ["old"],
                        "properties": {"all": {"type": "boolean"}, "old": {"type": "string"}}}}
                },
                "required": ["pattern"]
            },
            "source": {"kind": "builtin", "name": "builtin"},
            "parallelizable": true, "permissions": ["file.read"], "cacheable": false, "timeout_ms": 120000,
            "annotations": {"read_only": true}
        }))
        .unwrap();
        let mut out = Vec::new();
        show(&tool, None, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        insta::assert_snapshot!(anstream::adapter::strip_str(&text).to_string(), @r#"
        grep  Search

        Finds lines.
        In files.

         ARGUMENT  TYPE                  DESCRIPTION
         pattern   string                A regular expression. (required)
         mode      content | files       What to give. (default "content")
         paths     array of string
         limit     integer | null
         scope     session | global
         edits     array of {old, all?}

        source       builtin
        needs        file.read
        is           read-only, parallelizable
        time limit   2 min
        "#);
    }
}
