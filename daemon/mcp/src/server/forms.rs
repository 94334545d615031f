//! Prompts as forms for the client, and its answers to them.
#![expect(deprecated, reason = "sampling is deprecated in the newest revision only")]

use rmcp::model::{
    CreateMessageRequest, CreateMessageRequestParams, CreateMessageResult, ElicitRequest, ElicitRequestParams,
    ElicitResult, ElicitationAction, ElicitationSchema, InputRequest, ListRootsResult,
};
use serde_json::{Map, Value, json};
use toold_engine::sampling::{ClientRoot, SamplingRequest, SamplingResponse};
use toold_proto::offer::Speaker;
use toold_proto::permission::{Action, Ask, ReplyPermission, Scope};
use toold_proto::question::{Question, ReplyQuestion};
use toold_proto::tool::{Block, Category};

use crate::server::content;

const ONCE: &str = "allow once";
const SESSION: &str = "allow for this session";
const DENY: &str = "deny";
/// Bytes of a diff or a command in a prompt.
const MAX_SHOWN: usize = 4_000;

fn elicitation(message: String, schema: Value) -> Option<InputRequest> {
    let requested_schema: ElicitationSchema = serde_json::from_value(schema).ok()?;
    let params = ElicitRequestParams::FormElicitationParams { meta: None, message, requested_schema };
    Some(InputRequest::Elicitation(ElicitRequest::new(params)))
}

/// A form with one text field, for a schema that elicitation cannot express.
fn text_form(message: String, description: &str) -> InputRequest {
    let schema = json!({
        "type": "object",
        "properties": {"answer": {"type": "string", "description": description}},
        "required": ["answer"],
    });
    elicitation(message, schema).expect("elicitation allows a field of type string")
}

/// A permission prompt.
pub(super) fn ask(ask: &Ask) -> InputRequest {
    let mut message = format!("{} asks for permission: {} {}", ask.tool, ask.category, shortened(&ask.target));
    if !ask.chain.is_empty() {
        message.push_str(&format!("\nby plugin {}", ask.chain.join(" > ")));
    }
    let subagent = ask.subagent.as_ref().map(|subagent| format!(", for sub-agent {subagent}")).unwrap_or_default();
    message.push_str(&format!("\nin {}{subagent}, at level {}", ask.cwd, ask.level));
    if let Some(description) = &ask.description {
        message.push_str(&format!("\nagent says: {}", shortened(description)));
    }
    for warning in &ask.misleading {
        message.push_str(&format!("\ncareful: {warning}"));
    }
    if let Some(reason) = &ask.reason {
        message.push_str(&format!("\n{}", shortened(reason)));
    }
    if let Some(command) = ask.command.as_ref().filter(|command| **command != ask.target) {
        message.push_str(&format!("\nfull command: {}", shortened(command)));
    }
    if let Some(diff) = &ask.diff {
        message.push_str(&format!("\n{}", shortened(diff)));
    }
    // Only a request for a workspace is remembered without a pattern.
    let is_remembered = ask.category == Category::FileRead || !ask.suggestions.is_empty();
    let session = is_remembered.then(|| SESSION.to_owned());
    let wider = wider(ask).map(|(label, _)| label);
    let decisions: Vec<String> =
        [ONCE.to_owned()].into_iter().chain(session).chain(wider).chain([DENY.to_owned()]).collect();
    let schema = json!({
        "type": "object",
        "properties": {
            "decision": {"type": "string", "title": "Decision", "enum": decisions},
            "message": {"type": "string", "title": "Message", "description": "For the model: the reason, or what to do instead"},
        },
        "required": ["decision"],
    });
    let fallback = message.clone();
    elicitation(message, schema).unwrap_or_else(|| text_form(fallback, DENY))
}

/// The decisions for wider patterns, which hold in the session, each with its pattern.
fn wider(ask: &Ask) -> impl Iterator<Item = (String, &str)> {
    let wider = ask.suggestions.iter().filter(|suggestion| suggestion.pattern != ask.target);
    wider.map(|suggestion| {
        let covers = suggestion.covers.as_ref().map(|covers| format!(" ({covers})")).unwrap_or_default();
        (format!("{SESSION}: {}{covers}", suggestion.pattern), suggestion.pattern.as_str())
    })
}

/// # Errors
/// Why the answer is invalid, as a sentence for the user.
pub(super) fn read_ask(ask: &Ask, answer: Result<Value, String>) -> Result<ReplyPermission, String> {
    let answer = match answer {
        Ok(answer) => answer,
        Err(error) => return Ok(deny(ask, &error)),
    };
    let result: ElicitResult = serde_json::from_value(answer).map_err(|error| error.to_string())?;
    let content = result.content.unwrap_or_default();
    let message = content["message"].as_str().filter(|text| !text.trim().is_empty()).map(str::to_owned);
    let reply = |action, scope| ReplyPermission {
        scope: Some(scope),
        message: message.clone(),
        ..ReplyPermission::once(&ask.request_id, action)
    };
    match (result.action, content["decision"].as_str()) {
        (ElicitationAction::Accept, Some(ONCE)) => Ok(reply(Action::Allow, Scope::Once)),
        (ElicitationAction::Accept, Some(SESSION)) => Ok(reply(Action::Allow, Scope::Session)),
        (ElicitationAction::Accept, Some(DENY)) => Ok(reply(Action::Deny, Scope::Once)),
        (ElicitationAction::Accept, Some(chosen)) => match wider(ask).find(|(label, _)| label == chosen) {
            Some((_, pattern)) => {
                Ok(ReplyPermission { pattern: Some(pattern.to_owned()), ..reply(Action::Allow, Scope::Session) })
            }
            None => Err(format!("decision: expected {ONCE:?}, {SESSION:?}, {DENY:?} or another of the form's")),
        },
        (ElicitationAction::Decline, _) => Ok(reply(Action::Deny, Scope::Once)),
        (ElicitationAction::Cancel, _) => Ok(deny(ask, "the prompt was dismissed")),
        _ => Err(format!("decision: expected {ONCE:?}, {SESSION:?} or {DENY:?}")),
    }
}

/// Denies a prompt in place of a client that did not answer it.
pub(super) fn deny(ask: &Ask, reason: &str) -> ReplyPermission {
    ReplyPermission { message: Some(reason.to_owned()), ..ReplyPermission::once(&ask.request_id, Action::Deny) }
}

/// The key of a question in a round: the one that its tool chose, if that is free.
pub(super) fn key_of(question: &Question, taken: impl Fn(&str) -> bool) -> String {
    match &question.key {
        Some(key) if !taken(key) => key.clone(),
        Some(_) | None => question.request_id.clone(),
    }
}

/// A question, or a tool's own form.
pub(super) fn question(question: &Question) -> InputRequest {
    let message = question.question.clone();
    if let Some(schema) = &question.schema {
        let description = format!("A JSON object that matches {}", shortened(&schema.to_string()));
        return elicitation(message.clone(), schema.clone()).unwrap_or_else(|| text_form(message, &description));
    }
    let labels: Vec<&str> = question.options.iter().map(|option| option.label.as_str()).collect();
    let mut properties = Map::new();
    if question.multiple && !labels.is_empty() {
        let choices = json!({"type": "array", "title": "Choices", "items": {"type": "string", "enum": labels}});
        properties.insert("choices".to_owned(), choices);
    } else if !labels.is_empty() {
        properties.insert("choice".to_owned(), json!({"type": "string", "title": "Choice", "enum": labels}));
    }
    if labels.is_empty() || question.allow_other {
        properties.insert("answer".to_owned(), json!({"type": "string", "title": "Answer"}));
    }
    let required: Vec<&String> = properties.keys().filter(|_| properties.len() == 1).collect();
    let mut described = message.clone();
    for option in question.options.iter().filter(|option| option.description.is_some()) {
        described.push_str(&format!("\n{}: {}", option.label, option.description.as_deref().unwrap_or_default()));
    }
    let schema = json!({"type": "object", "properties": properties, "required": required});
    elicitation(described, schema).unwrap_or_else(|| text_form(message, "Your answer"))
}

/// # Errors
/// Why the answer is invalid, as a sentence for the user.
pub(super) fn read_question(question: &Question, answer: Result<Value, String>) -> Result<ReplyQuestion, String> {
    let mut reply = ReplyQuestion { request_id: question.request_id.clone(), ..ReplyQuestion::default() };
    let Ok(answer) = answer else {
        reply.cancelled = true;
        return Ok(reply);
    };
    let result: ElicitResult = serde_json::from_value(answer).map_err(|error| error.to_string())?;
    match result.action {
        ElicitationAction::Decline => {
            reply.declined = true;
            return Ok(reply);
        }
        ElicitationAction::Accept => {}
        _ => {
            reply.cancelled = true;
            return Ok(reply);
        }
    }
    let Some(Value::Object(content)) = result.content else { return Err("content: expected an object".to_owned()) };
    if let Some(schema) = &question.schema {
        match (elicitation(String::new(), schema.clone()), content.get("answer")) {
            (None, Some(Value::String(text))) => reply.answer = Some(text.clone()),
            _ => reply.content = Some(content),
        }
        return Ok(reply);
    }
    let id_of = |label: &Value| {
        let label = label.as_str()?;
        question.options.iter().find(|option| option.label == label).map(|option| option.id.clone())
    };
    let chosen: Vec<&Value> = match (content.get("choices"), content.get("choice")) {
        (Some(Value::Array(choices)), _) => choices.iter().collect(),
        (_, Some(choice)) => vec![choice],
        (_, None) => Vec::new(),
    };
    let ids: Option<Vec<String>> = chosen.into_iter().map(id_of).collect();
    let ids = ids.ok_or_else(|| "choice: expected one of the options".to_owned())?;
    reply.answer_ids = Some(ids).filter(|ids| !ids.is_empty());
    reply.answer = content.get("answer").and_then(Value::as_str).map(str::to_owned);
    Ok(reply)
}

/// A tool's request to the client's model.
pub(super) fn sampling(asked: &SamplingRequest) -> InputRequest {
    let message = |message: &toold_proto::offer::PromptMessage| json!({"role": content::role(message.role), "content": content::block(message.content.clone())});
    let messages: Vec<Value> = asked.messages.iter().map(message).collect();
    let mut params = json!({"messages": messages, "maxTokens": asked.max_tokens});
    let mut put = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            params[name] = value;
        }
    };
    put("systemPrompt", asked.system_prompt.as_ref().map(|text| json!(text)));
    put("temperature", asked.temperature.map(|number| json!(number)));
    put("stopSequences", Some(json!(asked.stop_sequences)).filter(|_| !asked.stop_sequences.is_empty()));
    put("modelPreferences", asked.model_preferences.clone());
    let read = |params: Value| serde_json::from_value::<CreateMessageRequestParams>(params).ok();
    let params = read(params).unwrap_or_else(|| CreateMessageRequestParams::new(Vec::new(), asked.max_tokens));
    InputRequest::CreateMessage(CreateMessageRequest::new(params))
}

/// # Errors
/// When the client's answer is not a message; for the tool.
pub(super) fn read_sampled(answer: Value) -> Result<SamplingResponse, String> {
    let result: CreateMessageResult = serde_json::from_value(answer)
        .map_err(|error| format!("the client's answer to the sampling request is invalid: {error}"))?;
    let role = match result.message.role {
        rmcp::model::Role::User => Speaker::User,
        rmcp::model::Role::Assistant => Speaker::Assistant,
    };
    let blocks = json!(result.message.content);
    let blocks = match blocks {
        Value::Array(blocks) => blocks,
        block => vec![block],
    };
    Ok(SamplingResponse {
        role,
        content: blocks.into_iter().filter_map(block_of).collect(),
        model: result.model,
        stop_reason: result.stop_reason,
    })
}

/// # Errors
/// When the client's answer is not a list of roots; for the tool.
pub(super) fn read_roots(answer: Value) -> Result<Vec<ClientRoot>, String> {
    let result: ListRootsResult =
        serde_json::from_value(answer).map_err(|error| format!("the client's list of roots is invalid: {error}"))?;
    Ok(result.roots.into_iter().map(|root| ClientRoot { uri: root.uri, name: root.name }).collect())
}

/// A block of a message, if its kind is known.
fn block_of(block: Value) -> Option<Block> {
    let text = |name: &str| block[name].as_str().map(str::to_owned);
    match block["type"].as_str()? {
        "text" => Some(Block::Text { text: text("text")? }),
        "image" => Some(Block::Image { data: text("data")?, mime_type: text("mimeType")? }),
        "audio" => Some(Block::Audio { data: text("data")?, mime_type: text("mimeType")? }),
        _ => None,
    }
}

fn shortened(text: &str) -> String {
    match text.len() <= MAX_SHOWN {
        true => text.to_owned(),
        false => {
            format!("{}\n[... {} bytes more]", &text[..text.floor_char_boundary(MAX_SHOWN)], text.len() - MAX_SHOWN)
        }
    }
}
