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
const REMEMBERED: &str = "allow, and remember it for this client";
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
    let decisions = decisions(ask).into_iter().map(|decision| decision.label);
    let decisions: Vec<String> = decisions.chain([DENY.to_owned()]).collect();
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

/// An answer that allows, of those that a client which acts for a model may give: none holds beyond the session.
struct FormAnswer<'a> {
    label: String,
    scope: Scope,
    /// Absent for exactly the ask's target.
    pattern: Option<&'a str>,
}

fn decisions(ask: &Ask) -> Vec<FormAnswer<'_>> {
    let is_for_workspace = ask.category == Category::FileRead && ask.suggestions.is_empty();
    // A workspace is remembered unless it is for the session.
    let once = if is_for_workspace { REMEMBERED } else { ONCE };
    let mut decisions = vec![FormAnswer { label: once.to_owned(), scope: Scope::Once, pattern: None }];
    let session = format!("allow in {}", ask.session_name.as_deref().unwrap_or("this session"));
    if is_for_workspace || !ask.suggestions.is_empty() {
        decisions.push(FormAnswer { label: session.clone(), scope: Scope::Session, pattern: None });
    }
    let wider = ask.suggestions.iter().filter(|suggestion| suggestion.pattern != ask.target);
    decisions.extend(wider.map(|suggestion| {
        let covers = suggestion.covers.as_ref().map(|covers| format!(" ({covers})")).unwrap_or_default();
        let label = format!("{session}: {}{covers}", suggestion.pattern);
        FormAnswer { label, scope: Scope::Session, pattern: Some(&suggestion.pattern) }
    }));
    decisions
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
    let decision = content["decision"].as_str();
    match result.action {
        ElicitationAction::Accept if decision == Some(DENY) => Ok(reply(Action::Deny, Scope::Once)),
        ElicitationAction::Accept => {
            let decisions = decisions(ask);
            match decisions.iter().find(|known| decision == Some(&known.label)) {
                Some(FormAnswer { scope, pattern, .. }) => {
                    Ok(ReplyPermission { pattern: pattern.map(str::to_owned), ..reply(Action::Allow, *scope) })
                }
                None => {
                    let labels: Vec<String> = decisions.iter().map(|known| format!("{:?}", known.label)).collect();
                    Err(format!("decision: expected {} or {DENY:?}", labels.join(", ")))
                }
            }
        }
        ElicitationAction::Decline => Ok(reply(Action::Deny, Scope::Once)),
        ElicitationAction::Cancel => Ok(deny(ask, "the prompt was dismissed")),
        _ => Err("action: expected accept, decline or cancel".to_owned()),
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

#[cfg(test)]
mod tests {
    use super::*;

    /// All clients describe in the same words what an answer covers, and each is tested with these cases.
    #[test]
    fn answers_are_those_of_all_clients_up_to_the_session() {
        let cases: Value = serde_json::from_str(include_str!("../../../../proto/tests/answers.json")).unwrap();
        for case in cases.as_array().unwrap() {
            let ask: Ask = serde_json::from_value(case["ask"].clone()).unwrap();
            let is_beyond = |answer: &&str| {
                answer.contains("in this project") || answer.contains("all parts") || *answer == "allow always"
            };
            let answers = case["answers"].as_array().unwrap().iter().map(|answer| answer.as_str().unwrap());
            let expected: Vec<&str> = answers.filter(|answer| !is_beyond(answer)).collect();
            let form = serde_json::to_value(super::ask(&ask)).unwrap();
            let shown = &form["params"]["requestedSchema"]["properties"]["decision"]["enum"];
            assert_eq!(*shown, json!(expected), "{}: {form}", case["name"]);
            for answer in expected {
                let given = json!({"action": "accept", "content": {"decision": answer}});
                let reply = read_ask(&ask, Ok(given)).unwrap();
                assert_eq!(reply.action == Action::Deny, answer == "deny", "{answer}");
                assert_eq!(reply.scope == Some(Scope::Session), answer.contains("session"), "{answer}");
            }
            let wrong = read_ask(&ask, Ok(json!({"action": "accept", "content": {"decision": "yes"}}))).unwrap_err();
            assert!(wrong.starts_with("decision: expected \"allow"), "{wrong}");
        }
    }
}
