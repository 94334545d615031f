//! The Chat Completions API of OpenAI, and of the many servers that speak it.
//!
//! Tools: `{"type": "function", "function": {name, description, parameters}}`, a name of
//! `[a-zA-Z0-9_-]{1,64}`, at most 128 tools
//! (<https://platform.openai.com/docs/api-reference/chat/create#chat-create-tools>,
//! <https://platform.openai.com/docs/guides/function-calling>). Beyond what the pages say, the API
//! refuses descriptions over 1024 characters
//! (<https://github.com/modelcontextprotocol/servers/issues/799>), `oneOf`, `anyOf`, `allOf`,
//! `enum` and `not` at the root of the parameters, and arrays without `items`. What does not fit a
//! description goes on in that of the parameters, which has no such limit. A list of more than 128
//! tools is the caller's to cut. Custom tools, `{"type": "custom", "custom": {name, description, format}}`, take plain text,
//! with a grammar of the syntax `lark` or `regex` (version 3.3.1 of the Python SDK,
//! <https://github.com/openai/openai-python>, `src/openai/types/chat`).
//!
//! Calls: `tool_calls`, arguments as JSON in a string. Results: messages of the role `tool`, text
//! only, without a mark for errors: theirs begin with `Error: `. Images of all results follow in
//! one message of the role `user`, after the last result, since each call must have its result
//! before anything else is said.

use serde_json::{Map, Value, json};
use toold_proto::call::ProviderOptions;
use toold_proto::tool::{Block, Tool, ToolGrammar, only_text_argument};

use super::strict::{Enforcer, enforceable};
use super::{
    AnswerOutcome, CallForm, CallKind, ParsedBlock, ProviderAnswer, all_in_words, assemble, data_url, malformed,
    object_in_string, schema, text_input, with_form,
};

/// Limit of the tools of one request.
pub(super) const MOST_TOOLS: usize = 128;

pub(super) fn tool(tool: &Tool, options: &ProviderOptions, warnings: &mut Vec<String>) -> Value {
    if let Some(grammar) = grammar(tool).filter(|_| options.custom_tools == Some(true)) {
        let format = json!({"type": "grammar", "grammar": grammar});
        let custom = json!({"name": tool.name, "description": tool.description, "format": format});
        return json!({"type": "custom", "custom": custom});
    }
    let (description, parameters, strict) = function(tool, options, warnings);
    let mut function = json!({"name": tool.name, "description": description, "parameters": parameters});
    if strict {
        function["strict"] = true.into();
    }
    json!({"type": "function", "function": function})
}

/// The grammar of a tool that can be a custom tool. A long description needs the parameters of a function.
pub(super) fn grammar(tool: &Tool) -> Option<&ToolGrammar> {
    let is_short = tool.description.chars().nth(LONGEST_DESCRIPTION).is_none();
    tool.grammar.as_ref().filter(|_| is_short && only_text_argument(&tool.input_schema).is_some())
}

/// The description and the parameters that both of OpenAI's APIs take, and whether they can be enforced and are to be.
pub(super) fn function(
    tool: &Tool,
    options: &ProviderOptions,
    warnings: &mut Vec<String>,
) -> (String, Map<String, Value>, bool) {
    let (mut parameters, left) = schema::plain_root(&tool.input_schema);
    let enforced = match options.strict {
        true => enforceable(&parameters, Enforcer::Openai).filter(|_| left.is_empty()),
        false => None,
    };
    if options.strict && enforced.is_none() {
        warnings.push(format!("strict: the provider cannot enforce the schema of {}", tool.name));
    }
    let strict = enforced.is_some();
    match enforced {
        Some((schema, _)) => parameters = schema,
        None => schema::add_items(&mut parameters),
    }
    let mut description = schema::describe(&tool.description, left);
    if description.chars().nth(LONGEST_DESCRIPTION).is_some() {
        let rest = split_off(&mut description);
        let own = parameters.get("description").and_then(Value::as_str).map(|own| format!("\n\n{own}"));
        parameters.insert("description".to_owned(), format!("{rest}{}", own.unwrap_or_default()).into());
    }
    (description, parameters, strict)
}

pub(super) fn call(block: &Value) -> ParsedBlock {
    let Some(block) = block.as_object() else { return malformed("it is not an object") };
    // A message without calls has none.
    if block.contains_key("role") {
        return None;
    }
    let id = block.get("id");
    let form = CallForm { kind: CallKind::Custom, caller: None };
    if let Some(custom) = block.get("custom") {
        let input = match id {
            None => Err("it has no id".to_owned()),
            Some(_) => text_input(custom.get("input")),
        };
        return Some(with_form(assemble(id, custom.get("name"), input), form));
    }
    let Some(function) = block.get("function") else {
        return Some(assemble(id, None, Err("it has no function".to_owned())));
    };
    let arguments = match id {
        None => Err("it has no id".to_owned()),
        Some(_) => object_in_string(function.get("arguments")),
    };
    Some(assemble(id, function.get("name"), arguments))
}

pub(super) fn results(answers: &[ProviderAnswer<'_>]) -> Value {
    let mut messages: Vec<Value> = answers.iter().map(result).collect();
    let mut images = Vec::new();
    for answer in answers {
        for block in answer.outcome.blocks().iter() {
            if let Block::Image { data, mime_type } = block {
                images.push(json!({"type": "text", "text": format!("An image from {}:", label(answer))}));
                images.push(json!({"type": "image_url", "image_url": {"url": data_url(mime_type, data)}}));
            }
        }
    }
    if !images.is_empty() {
        messages.push(json!({"role": "user", "content": images}));
    }
    Value::Array(messages)
}

fn result(answer: &ProviderAnswer<'_>) -> Value {
    let mut content = error_marked(answer, all_in_words(answer, |block| !matches!(block, Block::Image { .. })));
    let has_image = answer.outcome.blocks().iter().any(|block| matches!(block, Block::Image { .. }));
    if has_image {
        let gap = if content.is_empty() { "" } else { "\n" };
        content.push_str(&format!("{gap}[its images follow]"));
    }
    json!({"role": "tool", "tool_call_id": answer.call_id.unwrap_or_default(), "content": content})
}

/// Neither of OpenAI's APIs has a mark for errors.
pub(super) fn error_marked(answer: &ProviderAnswer<'_>, text: String) -> String {
    match answer.outcome {
        AnswerOutcome::Result(result) if !result.is_error => text,
        AnswerOutcome::Found(_) => text,
        AnswerOutcome::Result(_) | AnswerOutcome::Error(_) if text.is_empty() => {
            "Error: the tool failed without a message".to_owned()
        }
        AnswerOutcome::Result(_) | AnswerOutcome::Error(_) => format!("Error: {text}"),
    }
}

fn label(answer: &ProviderAnswer<'_>) -> String {
    match answer.call_id {
        Some(id) => format!("{} ({id})", answer.name),
        None => answer.name.to_owned(),
    }
}

const LONGEST_DESCRIPTION: usize = 1024;
const GOES_ON: &str = " … (continued in the description of the parameters)";

/// Cuts at white space if there is some near the limit.
fn split_off(description: &mut String) -> String {
    let room = LONGEST_DESCRIPTION - GOES_ON.chars().count();
    let limit = description.char_indices().nth(room).map_or(description.len(), |(at, _)| at);
    let head = &description[..limit];
    let cut = head.rfind(char::is_whitespace).filter(|cut| *cut > limit / 2).unwrap_or(limit);
    let rest = description.split_off(cut);
    description.push_str(GOES_ON);
    format!("… {}", rest.trim_start())
}
