//! The Gemini API of Google.
//!
//! Tools: one object with `functionDeclarations`, each with `name`, `description` and `parameters`,
//! a `Schema`, which is a subset of OpenAPI 3.0's (<https://ai.google.dev/api/caching#Schema>,
//! <https://ai.google.dev/gemini-api/docs/function-calling>): see `gemini/subset.rs`. A name may
//! have 64 characters. A function without arguments has no `parameters`. An argument's name is of
//! `[a-zA-Z_][a-zA-Z0-9_]{0,63}` (`FunctionDeclaration.parameters` in
//! <https://github.com/googleapis/python-genai>, `google/genai/types.py`), so others get another
//! name. A request may have 512 declarations (<https://github.com/google-gemini/gemini-cli/issues/19083>).
//!
//! Calls: parts with `functionCall {id?, name, args}`. Results: parts with
//! `functionResponse {id?, name, response, parts?}`, where `response` has the key `error` for what
//! failed and `output` else (<https://ai.google.dev/api/caching#FunctionResponse>); images are
//! `inlineData` in `parts`, which models from Gemini 3 on read.

mod subset;

use serde_json::{Map, Value, json};
use toold_proto::tool::{Block, Tool};

use super::names::{Alphabet, ArgumentNames};
use super::{ParsedBlock, ProviderAnswer, all_in_words, assemble, malformed, object, schema};

pub(super) const ARGUMENTS: Alphabet = Alphabet { others: "", begins_with_digit: false };
pub(super) const MOST_TOOLS: usize = 512;

pub(super) fn tools(tools: &[&Tool]) -> Value {
    let declarations: Vec<Value> = tools.iter().map(|tool| declaration(tool)).collect();
    if declarations.is_empty() { json!([]) } else { json!([{"functionDeclarations": declarations}]) }
}

fn declaration(tool: &Tool) -> Value {
    let names = ArgumentNames::of(&tool.input_schema, ARGUMENTS);
    let schema = names.in_schema(&tool.input_schema);
    let (mut root, left) = schema::plain_root(&schema);
    if let Some(example) = schema::take_examples(&mut root).into_iter().next() {
        root.insert("example".to_owned(), names.in_example(example));
    }
    let has_properties = root.get("properties").and_then(Value::as_object).is_some_and(|map| !map.is_empty());
    let parameters = subset::convert(&Value::Object(root));
    let mut description = schema::describe(&tool.description, left);
    let mut out = Map::new();
    out.insert("name".to_owned(), json!(tool.name));
    if !has_properties && let Some(Value::String(words)) = parameters.get("description") {
        let gap = if description.is_empty() { "" } else { "\n\n" };
        description = format!("{description}{gap}{words}");
    }
    out.insert("description".to_owned(), description.into());
    if has_properties {
        out.insert("parameters".to_owned(), Value::Object(parameters));
    }
    Value::Object(out)
}

pub(super) fn call(part: &Value) -> ParsedBlock {
    let Some(map) = part.as_object() else { return malformed("it is not a part") };
    let Some(call) = map.get("functionCall").or_else(|| map.get("function_call")) else {
        let known = |key: &String| PARTS.contains(&key.as_str());
        return if map.keys().any(known) { None } else { malformed("it has no functionCall") };
    };
    Some(assemble(call.get("id"), call.get("name"), object(call.get("args"))))
}

pub(super) fn result(answer: &ProviderAnswer<'_>) -> Value {
    let is_image = |block: &Block| matches!(block, Block::Image { .. });
    let key = if answer.outcome.is_error() { "error" } else { "output" };
    let mut response = Map::new();
    if let Some(id) = answer.call_id {
        response.insert("id".to_owned(), id.into());
    }
    response.insert("name".to_owned(), answer.name.into());
    response.insert("response".to_owned(), json!({key: all_in_words(answer, |block| !is_image(block))}));
    let images: Vec<Value> = answer
        .outcome
        .blocks()
        .iter()
        .filter_map(|block| match block {
            Block::Image { data, mime_type } => Some(json!({"inlineData": {"mimeType": mime_type, "data": data}})),
            Block::Text { .. } | Block::Audio { .. } | Block::Resource { .. } => None,
        })
        .collect();
    if !images.is_empty() {
        response.insert("parts".to_owned(), images.into());
    }
    json!({"functionResponse": response})
}

/// The other kinds of parts.
const PARTS: [&str; 11] = [
    "text",
    "thought",
    "thoughtSignature",
    "inlineData",
    "inline_data",
    "fileData",
    "file_data",
    "executableCode",
    "codeExecutionResult",
    "functionResponse",
    "role",
];
