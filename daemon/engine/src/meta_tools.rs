//! `tools_search` and `tools_call`: with them, a caller finds and calls tools that its list does not show, because the list
//! is short or older than they are. A call of `tools_call` is a call of the tool that it names from the start, with that
//! tool's permissions, lane, progress and audit row; a tool of the registry that has one of the two names keeps it.

use std::fmt::Write;
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use toold_proto::error::ArgumentError;
use toold_proto::tool::{Annotations, Source, SourceKind, ToolName};

use crate::call::{Call, CallError};
use crate::callable::Callable;
use crate::cx::Cx;
use crate::need::Need;
use crate::registry::ToolView;
use crate::schema::Schema;
use crate::tool::{Origin, ToolError, ToolOutput, ToolSpec};

pub const SEARCH: &str = "tools_search";
pub const CALL: &str = "tools_call";

/// How many tools a search shows.
const FOUND: usize = 10;
const MAX_FOUND: usize = 100;

/// The two tools, which are in no registry.
pub struct SearchAndCall {
    search: Arc<dyn Callable>,
    call: ToolSpec,
}

impl Default for SearchAndCall {
    fn default() -> Self {
        Self { search: Arc::new(SearchTool { spec: search_spec() }), call: call_spec() }
    }
}

impl SearchAndCall {
    /// How they describe themselves, but for those whose name a tool of the view has.
    pub fn specs(&self, view: &ToolView) -> impl Iterator<Item = &ToolSpec> {
        [&self.call, self.search.spec()].into_iter().filter(|spec| view.find(spec.name.as_str()).is_none())
    }

    /// Makes a call of `tools_call` one of the tool that it names. Returns the tool if the call is a search.
    ///
    /// # Errors
    /// The arguments name no tool.
    pub(crate) fn unwrap(&self, view: &ToolView, call: &mut Call) -> Result<Option<Arc<dyn Callable>>, CallError> {
        if call.name == CALL && view.find(CALL).is_none() {
            (call.name, call.arguments) = inner_call(std::mem::take(&mut call.arguments))?;
        }
        Ok((call.name == SEARCH && view.find(SEARCH).is_none()).then(|| self.search.clone()))
    }
}

/// Whether a name is one of the two, and no tool of the view has it.
pub fn is_meta_tool(view: &ToolView, name: &str) -> bool {
    [SEARCH, CALL].contains(&name) && view.find(name).is_none()
}

/// The tool that a frontend's call is of, also one by `tools_call`; `None` if it names no tool of the view.
pub(crate) fn tool_of<'v>(view: &'v ToolView, call: &Call) -> Option<&'v Arc<dyn Callable>> {
    match is_meta_tool(view, &call.name) {
        true => view.find(call.arguments.get("name")?.as_str()?),
        false => view.find(&call.name),
    }
}

/// The name and the arguments of the call that the arguments of `tools_call` describe.
///
/// # Errors
/// [`CallError::InvalidArgs`]: they name no tool, or have arguments of the tool beside `name`.
pub fn inner_call(arguments: Value) -> Result<(String, Value), CallError> {
    let wrong = |path: &str, message: String| {
        let errors = vec![ArgumentError { path: path.to_owned(), message }];
        CallError::InvalidArgs { tool: CALL.to_owned(), errors }
    };
    let mut members = match arguments {
        Value::Object(members) => members,
        _ => Map::new(),
    };
    let inner = match members.remove("arguments") {
        // Models write nested objects as text, too.
        Some(Value::String(text)) => serde_json::from_str(&text).unwrap_or(Value::String(text)),
        inner => inner.unwrap_or_default(),
    };
    if !(inner.is_object() || inner.is_null()) {
        return Err(wrong("/arguments", format!("expected an object with the tool's arguments, not {inner}")));
    }
    let Some(Value::String(name)) = members.remove("name") else {
        return Err(wrong("/name", format!("expected the name of a tool, as {SEARCH} returns it")));
    };
    if let Some(stray) = members.keys().next() {
        return Err(wrong("", format!("unknown argument {stray}: arguments of {name} belong into `arguments`")));
    }
    Ok((name, inner))
}

struct SearchTool {
    spec: ToolSpec,
}

#[derive(Deserialize)]
struct SearchInput {
    query: String,
    limit: Option<usize>,
    #[serde(default)]
    schemas: bool,
}

impl Callable for SearchTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn needs<'a>(&'a self, _: &'a Value, _: &'a Cx) -> BoxFuture<'a, Result<Vec<Need>, ToolError>> {
        std::future::ready(Ok(Vec::new())).boxed()
    }

    fn call<'a>(&'a self, input: Value, cx: &'a Cx) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        std::future::ready(search(input, cx)).boxed()
    }
}

fn search(input: Value, cx: &Cx) -> Result<ToolOutput, ToolError> {
    let input = SearchInput::deserialize(input).map_err(|error| ToolError::Failed(error.to_string()))?;
    let snapshot = cx.engine.registry.snapshot();
    let view = snapshot.view(cx.session.project());
    let filter = &cx.session.filter;
    let found = view.search(&input.query, |tool| filter.allows(tool.own_name(), tool.spec()));
    let shown = input.limit.unwrap_or(FOUND).min(found.len());
    let (mut text, mut tools) = (String::new(), Vec::new());
    for spec in found[..shown].iter().map(|tool| tool.spec()) {
        let summary = spec.summary();
        let _ = writeln!(text, "{}: {summary}", spec.name);
        let mut tool = json!({"name": spec.name, "description": summary});
        if input.schemas {
            let schema = spec.input.as_value();
            let _ = writeln!(text, "  inputSchema: {schema}");
            tool["description"] = json!(spec.description);
            tool["inputSchema"] = schema.clone();
        }
        tools.push(tool);
    }
    let more = found.len() - shown;
    match (shown, more) {
        (0, _) => text.push_str("no tool fits: use other words, or an empty query for all tools"),
        (_, 0) => {}
        _ => _ = writeln!(text, "({more} more: use other words or a larger limit)"),
    }
    let structured = json!({"tools": tools, "more": more});
    Ok(ToolOutput { structured: Some(structured), ..ToolOutput::text(text.trim_end()) })
}

fn search_spec() -> ToolSpec {
    let schema = json!({
        "type": "object",
        "properties": {
            "query": {"type": "string", "description": "What the tool should do, in a few words; empty for all tools"},
            "limit": {"type": "integer", "minimum": 1, "maximum": MAX_FOUND, "description": "How many tools to show; 10 by default"},
            "schemas": {"type": "boolean", "description": "Also show the whole description and the schema of the arguments"},
        },
        "required": ["query"],
        "additionalProperties": false,
    });
    let description = "Searches all tools, including those that are not in your list, and returns the names, the best \
                       first, with one line each. Ask for `schemas` to see their arguments, then call them with `tools_call`.";
    let annotations = Annotations {
        read_only: Some(true),
        destructive: Some(false),
        idempotent: Some(true),
        open_world: Some(false),
        task: None,
    };
    spec(SEARCH, "Search tools", description, schema, annotations)
}

fn call_spec() -> ToolSpec {
    let schema = json!({
        "type": "object",
        "properties": {
            "name": {"type": "string", "description": "The name of a tool that tools_search returned"},
            "arguments": {"type": "object", "description": "Arguments that match the tool's inputSchema"},
        },
        "required": ["name"],
        "additionalProperties": false,
    });
    let description =
        "Calls a tool by its name, including tools that are not in your list. Find it with `tools_search`.";
    let annotations = Annotations { destructive: Some(true), open_world: Some(true), ..Annotations::default() };
    spec(CALL, "Call a tool", description, schema, annotations)
}

fn spec(name: &str, label: &str, description: &str, schema: Value, annotations: Annotations) -> ToolSpec {
    ToolSpec {
        name: ToolName::parse(name).expect("it is a tool name"),
        label: label.to_owned(),
        description: description.to_owned(),
        input: Schema::compile_input(schema).expect("it is a schema"),
        output: None,
        source: Source { kind: SourceKind::Builtin, name: "toold".to_owned(), path: None },
        origin: Origin::Builtin,
        parallelizable: true,
        permissions: Vec::new(),
        cache_ttl: None,
        timeout: None,
        annotations,
        version: None,
        grammar: None,
    }
}
