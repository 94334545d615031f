//! `tools_search` and `tools_call`: for clients that never ask for the list again, the way to what was
//! loaded a second ago.

use rmcp::model::{CallToolResult, ContentBlock, Tool, ToolAnnotations};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::{Map, Value, json};
use toold_engine::session::Session;

use crate::server::view::{client_of, is_modern};
use crate::server::{MetaTools, Server, tools};

const SEARCH: &str = "tools_search";
const CALL: &str = "tools_call";
/// How many tools a search shows.
const MAX_FOUND: usize = 20;

/// What a call of one comes to.
pub(super) enum Meta {
    Answer(CallToolResult),
    /// This tool with these arguments, judged as itself.
    Call(String, Map<String, Value>),
}

/// Whether a client is shown them.
pub(super) fn are_offered(server: &Server, context: &RequestContext<RoleServer>) -> bool {
    match server.mcp.host.meta_tools() {
        MetaTools::Off => false,
        MetaTools::On => true,
        // In the stateless revisions lists are the same for all.
        MetaTools::Auto => {
            is_modern(context)
                || !client_of(context).is_some_and(|client| server.mcp.host.client(&client.name).list_changed)
        }
    }
}

/// Whether a call is of one of them: a tool of the registry keeps its name.
pub(super) fn is_one(server: &Server, session: &Session, name: &str, context: &RequestContext<RoleServer>) -> bool {
    [SEARCH, CALL].contains(&name) && are_offered(server, context) && !tools::knows(server.mcp.engine(), session, name)
}

pub(super) fn all() -> Vec<Tool> {
    let search = json!({
        "type": "object",
        "properties": {"query": {"type": "string", "description": "Words that stand in the name, the title or the description; empty for all"}},
        "required": ["query"],
        "additionalProperties": false,
    });
    let call = json!({
        "type": "object",
        "properties": {
            "name": {"type": "string", "description": "The name of a tool that tools_search shows"},
            "arguments": {"type": "object", "description": "What that tool's inputSchema asks for"},
        },
        "required": ["name"],
        "additionalProperties": false,
    });
    let tool = |name: &'static str, title: &str, description: &'static str, schema: Value| {
        let Value::Object(schema) = schema else { unreachable!("schemas of tools are objects") };
        Tool::new(name, description, schema).with_title(title)
    };
    vec![
        tool(CALL, "Call a tool", "Calls a tool by its name, also one that was added after the list of tools was read. Find it with tools_search.", call),
        tool(SEARCH, "Search tools", "Searches the tools that there are now, those that were added after the list of tools was read too. Call what it finds with tools_call.", search)
            .with_annotations(ToolAnnotations::new().read_only(true).idempotent(true).open_world(false)),
    ]
}

pub(super) fn read(server: &Server, session: &Session, name: &str, mut arguments: Map<String, Value>) -> Meta {
    if name == CALL {
        let inner = match arguments.remove("arguments") {
            None | Some(Value::Null) => Map::new(),
            Some(Value::Object(inner)) => inner,
            Some(_) => return Meta::Answer(wrong("arguments: expected an object")),
        };
        return match arguments.remove("name") {
            Some(Value::String(name)) => Meta::Call(name, inner),
            Some(_) | None => Meta::Answer(wrong("name: expected the name of a tool")),
        };
    }
    let Some(query) = arguments.get("query").and_then(Value::as_str) else {
        return Meta::Answer(wrong("query: expected a text"));
    };
    Meta::Answer(search(tools::visible(server.mcp.engine(), session), query))
}

fn search(tools: Vec<Tool>, query: &str) -> CallToolResult {
    let query = query.to_lowercase();
    let matches = |tool: &&Tool| {
        let title = tool.title.as_deref().unwrap_or_default();
        let description = tool.description.as_deref().unwrap_or_default();
        let text = format!("{} {title} {description}", tool.name).to_lowercase();
        query.split_whitespace().all(|word| text.contains(word))
    };
    let found: Vec<&Tool> = tools.iter().filter(matches).collect();
    let shown: Vec<Value> = found
        .iter()
        .take(MAX_FOUND)
        .map(|tool| json!({"name": tool.name, "description": tool.description, "inputSchema": tool.input_schema}))
        .collect();
    let left = found.len() - shown.len();
    let mut answer = json!({"tools": shown});
    if left > 0 {
        answer["more"] = json!(left);
    }
    let mut result = CallToolResult::success(vec![ContentBlock::text(answer.to_string())]);
    result.structured_content = Some(answer);
    result
}

fn wrong(words: &str) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(format!("invalid arguments: {words}"))])
}
