//! The Responses API of OpenAI.
//!
//! Tools: `{"type": "function", name, description, parameters, strict}`
//! (<https://platform.openai.com/docs/api-reference/responses/create#responses-create-tools>).
//! `strict` is true when absent and then refuses optional arguments, so it is false unless the
//! schema is written for it. The limits are those in `openai.rs`.
//!
//! `custom`, `namespace`, `tool_search` and the members `defer_loading`, `allowed_callers` and
//! `output_schema` are those of version 3.3.1 of the Python SDK
//! (<https://github.com/openai/openai-python>, `src/openai/types/responses`). A search is run by the
//! client (<https://developers.openai.com/api/docs/guides/tools-tool-search>): the list leaves
//! deferred tools out, and `tool_search_output` has their definitions.
//!
//! Calls: `function_call`, arguments as JSON in a string; `custom_tool_call`, plain text;
//! `tool_search_call`. Results: `function_call_output` and `custom_tool_call_output`, a string, or a
//! list with `input_text` and `input_image`; errors begin with `Error: `. `caller` is repeated; a
//! program gets the tool's value as JSON.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use toold_proto::call::ProviderOptions;
use toold_proto::tool::{Block, SourceKind, Tool};

use super::{
    AnswerOutcome, CallForm, CallKind, OfferedTool, ParsedBlock, ProviderAnswer, SEARCH_TOOL, all_in_words, assemble,
    data_url, for_program, in_words, malformed, object, object_in_string, openai, text_input, with_form,
};

const PROGRAMMATIC: &str = "programmatic";

pub(super) fn tools(offered: &[OfferedTool<'_>], options: &ProviderOptions, warnings: &mut Vec<String>) -> Value {
    let has_deferred = offered.iter().any(|one| one.deferred);
    let (mut list, mut of_sources) = (Vec::new(), BTreeMap::new());
    for OfferedTool { tool, .. } in offered.iter().filter(|one| !one.deferred) {
        if tool.name.as_str() == SEARCH_TOOL && has_deferred {
            list.push(search_tool(tool));
            continue;
        }
        let written = definition(tool, options, warnings);
        match namespace(tool).filter(|_| options.namespaces) {
            None => list.push(written),
            Some(name) => of_sources.entry(name).or_insert_with(|| (*tool, Vec::new())).1.push(written),
        }
    }
    list.extend(of_sources.into_iter().map(|(name, (tool, tools))| as_namespace(&name, tool, tools)));
    Value::Array(list)
}

fn definition(tool: &Tool, options: &ProviderOptions, warnings: &mut Vec<String>) -> Value {
    let mut out = match openai::grammar(tool).filter(|_| options.custom_tools != Some(false)) {
        Some(grammar) => {
            let format = json!({"type": "grammar", "syntax": grammar.syntax, "definition": grammar.definition});
            json!({"type": "custom", "name": tool.name, "description": tool.description, "format": format})
        }
        None => {
            let (description, parameters, strict) = openai::function(tool, options, warnings);
            let mut out = json!({
                "type": "function",
                "name": tool.name,
                "description": description,
                "parameters": parameters,
                "strict": strict,
            });
            if let Some(schema) = &tool.output_schema
                && schema.is_object()
                && options.allowed_callers.iter().any(|caller| caller == PROGRAMMATIC)
            {
                out["output_schema"] = schema.clone();
            }
            out
        }
    };
    if !options.allowed_callers.is_empty() {
        out["allowed_callers"] = json!(options.allowed_callers);
    }
    out
}

fn search_tool(tool: &Tool) -> Value {
    json!({
        "type": "tool_search",
        "execution": "client",
        "description": tool.description,
        "parameters": tool.input_schema,
    })
}

/// The name of a source as one of a namespace, `[a-zA-Z0-9_-]{1,64}`; none for built-ins.
fn namespace(tool: &Tool) -> Option<String> {
    let fits = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    let name: String = tool.source.name.chars().map(fits).take(64).collect();
    (tool.source.kind != SourceKind::Builtin && !name.is_empty()).then_some(name)
}

fn as_namespace(name: &str, tool: &Tool, tools: Vec<Value>) -> Value {
    let kind = match tool.source.kind {
        SourceKind::Builtin | SourceKind::Plugin => "plugin",
        SourceKind::Frontend => "application",
        SourceKind::Mcp => "MCP server",
        SourceKind::Remote => "daemon",
        SourceKind::Fleet => "fleet",
    };
    let description = format!("Tools of the {kind} {}", tool.source.name);
    json!({"type": "namespace", "name": name, "description": description, "tools": tools})
}

/// Found tools are called as those of a list.
fn found(tools: &[Tool]) -> Vec<Value> {
    let (mut list, mut of_sources) = (Vec::new(), BTreeMap::new());
    for tool in tools {
        // The search has none of the options.
        let mut written = definition(tool, &ProviderOptions::default(), &mut Vec::new());
        written["defer_loading"] = true.into();
        match namespace(tool) {
            None => list.push(written),
            Some(name) => of_sources.entry(name).or_insert_with(|| (tool, Vec::new())).1.push(written),
        }
    }
    list.extend(of_sources.into_iter().map(|(name, (tool, tools))| as_namespace(&name, tool, tools)));
    list
}

pub(super) fn call(item: &Value) -> ParsedBlock {
    let id = item.get("call_id");
    let needs_id = |arguments: Result<Value, String>| match id {
        None => Err("it has no call_id".to_owned()),
        Some(_) => arguments,
    };
    let form = |kind| CallForm { kind, caller: item.get("caller").filter(|caller| !caller.is_null()).cloned() };
    match item.get("type").and_then(Value::as_str) {
        Some("function_call") => {
            let call = assemble(id, item.get("name"), needs_id(object_in_string(item.get("arguments"))));
            Some(with_form(call, form(CallKind::Function)))
        }
        Some("custom_tool_call") => {
            let call = assemble(id, item.get("name"), needs_id(text_input(item.get("input"))));
            Some(with_form(call, form(CallKind::Custom)))
        }
        // Other searches are run by the provider.
        Some("tool_search_call") if item.get("execution").is_some_and(|by| by == "client") => {
            let arguments = match item.get("arguments") {
                text @ Some(Value::String(_)) => object_in_string(text),
                other => object(other),
            };
            let call = assemble(id, Some(&SEARCH_TOOL.into()), needs_id(arguments));
            Some(with_form(call, form(CallKind::ToolSearch)))
        }
        Some(_) => None,
        None => malformed("it is not an item with a type"),
    }
}

pub(super) fn result(answer: &ProviderAnswer<'_>) -> Value {
    let call_id = answer.call_id.unwrap_or_default();
    let kind = match answer.form.kind {
        CallKind::Function => "function_call_output",
        CallKind::Custom => "custom_tool_call_output",
        CallKind::ToolSearch => {
            // There is no place for words.
            let (status, tools) = match answer.outcome {
                AnswerOutcome::Found(tools) => ("completed", found(tools)),
                AnswerOutcome::Result(_) | AnswerOutcome::Error(_) => ("incomplete", Vec::new()),
            };
            return json!({
                "type": "tool_search_output",
                "call_id": call_id,
                "execution": "client",
                "status": status,
                "tools": tools,
            });
        }
    };
    let mut out = json!({"type": kind, "call_id": call_id, "output": output(answer)});
    if let Some(caller) = &answer.form.caller {
        out["caller"] = caller.clone();
    }
    out
}

fn output(answer: &ProviderAnswer<'_>) -> Value {
    if let Some(value) = for_program(answer) {
        return value.to_string().into();
    }
    let blocks = answer.outcome.blocks();
    if !blocks.iter().any(|block| matches!(block, Block::Image { .. })) {
        return openai::error_marked(answer, all_in_words(answer, |_| true)).into();
    }
    let mut parts = Vec::new();
    if answer.outcome.is_error() {
        parts.push(json!({"type": "input_text", "text": "Error:"}));
    }
    parts.extend(blocks.iter().map(|block| match block {
        Block::Image { data, mime_type } => json!({
            "type": "input_image",
            "image_url": data_url(mime_type, data),
            "detail": "auto",
        }),
        other => json!({"type": "input_text", "text": in_words(other)}),
    }));
    Value::Array(parts)
}
