//! The Messages API of Anthropic.
//!
//! Tools: `name` of `[a-zA-Z0-9_-]{1,64}`, `description`, `input_schema`, a JSON Schema whose root
//! is an object (<https://docs.anthropic.com/en/docs/agents-and-tools/tool-use/implement-tool-use>).
//! The API also refuses `oneOf`, `allOf` and `anyOf` at the root, which that page does not say
//! (<https://github.com/anthropics/claude-code/issues/40075>): they are said in the description
//! instead. Properties have names of `[a-zA-Z0-9_.-]{1,64}`, so others get another name.
//!
//! The members `strict`, `defer_loading`, `allowed_callers`, `input_examples` and
//! `eager_input_streaming` are those of `Tool` in version 0.120.0 of the TypeScript SDK
//! (<https://github.com/anthropics/anthropic-sdk-typescript>, `src/resources/messages/messages.ts`).
//! Tools that programs may call cannot be strict
//! (<https://platform.claude.com/docs/en/agents-and-tools/tool-use/programmatic-tool-calling>).
//!
//! Calls: `tool_use`. Results: `tool_result`, with text, and images of four types; text must not
//! be empty, and an error must say something. The result of a search for tools has
//! `tool_reference`s, which load tools of the list with `defer_loading`
//! (<https://platform.claude.com/docs/en/agents-and-tools/tool-use/tool-search-tool>). The result of a call by a program
//! is text, and the tool's value as JSON where there is one; the API wants no `caller` with it.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use toold_proto::call::ProviderOptions;
use toold_proto::tool::{Block, Tool, ToolName};

use super::names::{Alphabet, ArgumentNames};
use super::strict::{Enforcer, SchemaCost, enforceable};
use super::{
    AnswerOutcome, CallForm, CallKind, OfferedTool, ParsedBlock, ProviderAnswer, assemble, for_program, in_words,
    malformed, object, schema, with_form,
};

pub(super) const ARGUMENTS: Alphabet = Alphabet { others: ".-", begins_with_digit: true };
/// With and without `defer_loading`.
pub(super) const MOST_TOOLS: usize = 10_000;

/// Limits of one request, for all strict tools together.
const MOST_STRICT: usize = 20;
const MOST_OPTIONAL: usize = 24;
const MOST_UNIONS: usize = 16;

/// The schemas that the API enforces, for the first tools that its limits have room for.
pub(super) fn strict_tools(
    offered: &[OfferedTool<'_>],
    options: &ProviderOptions,
    warnings: &mut Vec<String>,
) -> BTreeMap<ToolName, Map<String, Value>> {
    let mut strict = BTreeMap::new();
    if !options.strict {
        return strict;
    }
    if options.allowed_callers.iter().any(|caller| caller != "direct") {
        warnings.push("strict: not for tools that programs may call (allowed_callers)".to_owned());
        return strict;
    }
    let mut spent = SchemaCost::default();
    let (mut unfit, mut beyond) = (Vec::new(), Vec::new());
    for OfferedTool { tool, .. } in offered {
        let (plain, left) = plain(tool);
        let Some((schema, cost)) = enforceable(&plain, Enforcer::Anthropic).filter(|_| left.is_empty()) else {
            unfit.push(tool.name.as_str());
            continue;
        };
        let (optional, unions) = (spent.optional + cost.optional, spent.unions + cost.unions);
        if strict.len() == MOST_STRICT || optional > MOST_OPTIONAL || unions > MOST_UNIONS {
            beyond.push(tool.name.as_str());
            continue;
        }
        spent = SchemaCost { optional, unions };
        strict.insert(tool.name.clone(), schema);
    }
    if !unfit.is_empty() {
        warnings.push(format!("strict: the provider cannot enforce the schemas of {}", unfit.join(", ")));
    }
    if !beyond.is_empty() {
        warnings.push(format!(
            "strict: a request may have {MOST_STRICT} strict tools with {MOST_OPTIONAL} optional arguments and \
             {MOST_UNIONS} arguments of several types; not strict are {}",
            beyond.join(", ")
        ));
    }
    strict
}

/// The schema with names that the API takes, and what has been taken from its root.
fn plain(tool: &Tool) -> (Map<String, Value>, Map<String, Value>) {
    let schema = ArgumentNames::of(&tool.input_schema, ARGUMENTS).in_schema(&tool.input_schema);
    schema::plain_root(&schema)
}

pub(super) fn tool(
    offered: OfferedTool<'_>,
    options: &ProviderOptions,
    strict: &BTreeMap<ToolName, Map<String, Value>>,
) -> Value {
    let OfferedTool { tool, deferred } = offered;
    let (mut input_schema, left) = plain(tool);
    let examples = match options.input_examples {
        true => schema::take_examples(&mut input_schema),
        false => Vec::new(),
    };
    let is_strict = strict.contains_key(&tool.name);
    if let Some(enforced) = strict.get(&tool.name) {
        input_schema = enforced.clone();
    }
    let mut out = json!({
        "name": tool.name,
        "description": schema::describe(&tool.description, left),
        "input_schema": input_schema,
    });
    if is_strict {
        out["strict"] = true.into();
    }
    if deferred {
        out["defer_loading"] = true.into();
    }
    if !options.allowed_callers.is_empty() {
        out["allowed_callers"] = json!(options.allowed_callers);
    }
    if !examples.is_empty() {
        let names = ArgumentNames::of(&tool.input_schema, ARGUMENTS);
        out["input_examples"] = examples.into_iter().map(|example| names.in_example(example)).collect();
    }
    if options.eager_input_streaming {
        out["eager_input_streaming"] = true.into();
    }
    out
}

pub(super) fn call(block: &Value) -> ParsedBlock {
    match block.get("type").and_then(Value::as_str) {
        Some("tool_use") => {
            let input = match block.get("input") {
                None => Err("it has no input".to_owned()),
                input => object(input),
            };
            let call = match block.get("id") {
                Some(id) => assemble(Some(id), block.get("name"), input),
                None => assemble(None, block.get("name"), Err("it has no id".to_owned())),
            };
            Some(with_form(call, CallForm { kind: CallKind::Function, caller: block.get("caller").cloned() }))
        }
        Some(_) => None,
        None => malformed("it is not a block with a type"),
    }
}

pub(super) fn result(answer: &ProviderAnswer<'_>) -> Value {
    let mut content: Vec<Value> = Vec::new();
    let blocks = match (for_program(answer), answer.outcome) {
        (Some(value), _) => vec![Block::text(value.to_string())].into(),
        // The API takes nothing else beside them.
        (None, AnswerOutcome::Found(tools)) if !tools.is_empty() => {
            content.extend(tools.iter().map(|tool| json!({"type": "tool_reference", "tool_name": tool.name})));
            Vec::new().into()
        }
        (None, outcome) => outcome.blocks(),
    };
    let takes_images = !answer.form.is_from_program();
    for block in blocks.iter() {
        match block {
            Block::Image { data, mime_type } if takes_images && IMAGES.contains(&mime_type.as_str()) => {
                content.push(json!({
                    "type": "image",
                    "source": {"type": "base64", "media_type": mime_type, "data": data},
                }))
            }
            other => {
                let text = in_words(other);
                if !text.is_empty() {
                    content.push(json!({"type": "text", "text": text}));
                }
            }
        }
    }
    let is_error = answer.outcome.is_error();
    if is_error && content.is_empty() {
        content.push(json!({"type": "text", "text": "the tool failed without a message"}));
    }
    json!({
        "type": "tool_result",
        "tool_use_id": answer.call_id.unwrap_or_default(),
        "content": content,
        "is_error": is_error,
    })
}

const IMAGES: [&str; 4] = ["image/jpeg", "image/png", "image/gif", "image/webp"];
