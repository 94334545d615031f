//! `tools_search` and `tools_call`: with them, clients that never request the list again reach a
//! tool that was loaded a second ago.

use rmcp::model::{CallToolResult, ContentBlock, Tool, ToolAnnotations};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::{Map, Value, json};
use toold_engine::session::Session;

use crate::server::request_session::{client_of, is_modern};
use crate::server::{McpClientServer, MetaTools, tools};

const SEARCH: &str = "tools_search";
const CALL: &str = "tools_call";
/// How many tools a search shows.
const MAX_FOUND: usize = 20;

/// The meaning of a call of a meta-tool.
pub(super) enum MetaToolUse {
    Answer(CallToolResult),
    /// A call of this tool with these arguments, with the permissions of that tool.
    Call(String, Map<String, Value>),
}

/// Whether a client sees them.
pub(super) fn are_offered(server: &McpClientServer, context: &RequestContext<RoleServer>) -> bool {
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

/// Whether a call names one of them: a tool of the registry keeps its name.
pub(super) fn is_one(
    server: &McpClientServer,
    session: &Session,
    name: &str,
    context: &RequestContext<RoleServer>,
) -> bool {
    [SEARCH, CALL].contains(&name) && are_offered(server, context) && !tools::knows(server.mcp.engine(), session, name)
}

pub(super) fn all() -> Vec<Tool> {
    let search = json!({
        "type": "object",
        "properties": {"query": {"type": "string", "description": "Words that the name, the title or the description must contain; empty for all tools"}},
        "required": ["query"],
        "additionalProperties": false,
    });
    let call = json!({
        "type": "object",
        "properties": {
            "name": {"type": "string", "description": "The name of a tool that tools_search returned"},
            "arguments": {"type": "object", "description": "Arguments that match the tool's inputSchema"},
        },
        "required": ["name"],
        "additionalProperties": false,
    });
    let tool = |name: &'static str, title: &str, description: &'static str, schema: Value| {
        let Value::Object(schema) = schema else { unreachable!("schemas of tools are objects") };
        Tool::new(name, description, schema).with_title(title)
    };
    vec![
        tool(CALL, "Call a tool", "Calls a tool by its name, including tools that were added after you read the list of tools. Find it with tools_search.", call),
        tool(SEARCH, "Search tools", "Searches the current tools, including those that were added after you read the list of tools. Call them with tools_call.", search)
            .with_annotations(ToolAnnotations::new().read_only(true).idempotent(true).open_world(false)),
    ]
}

pub(super) fn read(
    server: &McpClientServer,
    session: &Session,
    name: &str,
    mut arguments: Map<String, Value>,
) -> MetaToolUse {
    if name == CALL {
        let inner = match arguments.remove("arguments") {
            None | Some(Value::Null) => Map::new(),
            Some(Value::Object(inner)) => inner,
            Some(_) => return MetaToolUse::Answer(invalid("arguments: expected an object")),
        };
        return match arguments.remove("name") {
            Some(Value::String(name)) => MetaToolUse::Call(name, inner),
            Some(_) | None => MetaToolUse::Answer(invalid("name: expected the name of a tool")),
        };
    }
    let Some(query) = arguments.get("query").and_then(Value::as_str) else {
        return MetaToolUse::Answer(invalid("query: expected a string"));
    };
    MetaToolUse::Answer(search(tools::visible(server.mcp.engine(), session), query))
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
    let more = found.len() - shown.len();
    let mut answer = json!({"tools": shown});
    if more > 0 {
        answer["more"] = json!(more);
    }
    let mut result = CallToolResult::success(vec![ContentBlock::text(answer.to_string())]);
    result.structured_content = Some(answer);
    result
}

fn invalid(problem: &str) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(format!("invalid arguments: {problem}"))])
}
