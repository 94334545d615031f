//! Checks the tools that a server lists. They are untrusted: the list is bounded, and tools that
//! could not be called or would deceive a reader are left out.

use std::collections::HashSet;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use toold_engine::schema::Schema;
use toold_mounts::adapter::ListedTool;
use toold_proto::tool::{Annotations, PROMPT_TARGET, RESOURCE_TARGET};

use crate::server::tool_meta::ICONS;

/// Limit of the tools of one server.
pub(super) const MAX_TOOLS: usize = 512;
/// Pages may be as small as one entry. The time to start also limits them.
pub(super) const MAX_PAGES: usize = 2_100;
/// Limit of all its tools together, as JSON.
const MAX_BYTES: usize = 4 * 1024 * 1024;
pub(super) const MAX_NAME: usize = 256;
pub(super) const MAX_TITLE: usize = 256;
pub(super) const MAX_DESCRIPTION: usize = 16 * 1024;
/// Limit of the `_meta` of one tool, and of its icons, as JSON.
const MAX_META: usize = 16 * 1024;
/// More of them help nobody.
pub(super) const MAX_PROBLEMS: usize = 20;

/// A tool as its server describes it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ListedServerTool {
    /// Its server's name for it.
    #[serde(rename = "own")]
    pub(super) upstream_name: String,
    pub(super) title: Option<String>,
    pub(super) description: String,
    pub(super) input: Value,
    pub(super) output: Option<Value>,
    pub(super) annotations: Annotations,
    /// Its `_meta`, such as the user interface that shows its results.
    #[serde(default)]
    pub(super) meta: Option<Map<String, Value>>,
}

impl ListedTool for ListedServerTool {
    fn upstream_name(&self) -> &str {
        &self.upstream_name
    }

    fn digest(&self) -> String {
        // What a server claims of a tool is compared, too: rules such as `mcp:read` rest on it.
        let Self { upstream_name, title, description, input, output, annotations, meta: _ } = self;
        let seen = json!([upstream_name, title, description, input, output, annotations]);
        blake3::hash(seen.to_string().as_bytes()).to_hex().to_string()
    }

    fn meta(&self) -> Option<&Map<String, Value>> {
        self.meta.as_ref()
    }
}

/// A list that is being read.
#[derive(Debug, Default)]
pub(super) struct ServerListing {
    pub(super) tools: Vec<ListedServerTool>,
    /// The omissions and cuts, as sentences for the user.
    pub(super) problems: Vec<String>,
    /// The tools that were left out, by the server's names for them, with the problem of each; at most [`MAX_PROBLEMS`].
    pub(super) left_out: Vec<(String, String)>,
    /// How long the list is good, as the server says; the shortest of its pages.
    pub(super) ttl: Option<Duration>,
    names: HashSet<String>,
    bytes: usize,
}

impl ServerListing {
    /// Adds a page of the list, and returns the cursor of the next one.
    ///
    /// # Errors
    /// When the answer is not a list.
    pub(super) fn take(&mut self, page: &Value) -> Result<Option<String>, String> {
        let tools =
            page.get("tools").and_then(Value::as_array).ok_or("its answer to tools/list has no list of tools")?;
        for tool in tools {
            if let Err(problem) = self.take_one(tool) {
                let name = tool.get("name").and_then(Value::as_str).filter(|name| name.len() <= MAX_NAME);
                if let Some(name) =
                    name.filter(|name| self.left_out.len() < MAX_PROBLEMS && !self.names.contains(*name))
                {
                    self.left_out.push((name.to_owned(), problem.clone()));
                }
                self.problem(problem);
            }
        }
        self.ttl = shorter(self.ttl, page);
        let next = page.get("nextCursor").and_then(Value::as_str);
        if next.is_some() && self.is_full() {
            self.problem(format!("it lists more than {MAX_TOOLS} tools: those beyond are left out"));
            return Ok(None);
        }
        Ok(next.map(str::to_owned))
    }

    pub(super) fn is_full(&self) -> bool {
        self.tools.len() >= MAX_TOOLS
    }

    fn take_one(&mut self, tool: &Value) -> Result<(), String> {
        if self.is_full() {
            return Err(format!("it lists more than {MAX_TOOLS} tools: those beyond are left out"));
        }
        let tool = read(tool)?;
        if self.names.contains(&tool.upstream_name) {
            return Err(format!("{} is listed twice: the second is left out", tool.upstream_name));
        }
        let bytes = tool.input.to_string().len() + tool.description.len();
        if self.bytes + bytes > MAX_BYTES {
            return Err(format!(
                "its list is longer than {MAX_BYTES} bytes: {} and others are left out",
                tool.upstream_name
            ));
        }
        self.bytes += bytes;
        self.names.insert(tool.upstream_name.clone());
        self.tools.push(tool);
        Ok(())
    }

    pub(super) fn problem(&mut self, problem: String) {
        if self.problems.len() < MAX_PROBLEMS && !self.problems.contains(&problem) {
            self.problems.push(problem);
        }
    }
}

/// The shorter of a time and that of a page's `ttlMs`, of which 0 says nothing.
pub(super) fn shorter(ttl: Option<Duration>, page: &Value) -> Option<Duration> {
    let own = page.get("ttlMs").and_then(Value::as_u64).filter(|ms| *ms > 0).map(Duration::from_millis);
    ttl.into_iter().chain(own).min()
}

fn read(tool: &Value) -> Result<ListedServerTool, String> {
    let own = tool.get("name").and_then(Value::as_str).unwrap_or_default();
    if own.is_empty() || own.chars().count() > MAX_NAME || own.chars().any(is_hidden) {
        return Err(format!("a tool with the name {:?} is left out", cut(own, 80)));
    }
    if own.starts_with(RESOURCE_TARGET) || own.starts_with(PROMPT_TARGET) {
        return Err(format!("{own} is left out: in rules, this would be the name of a resource or a prompt"));
    }
    let text = |member: &str| tool.get(member).and_then(Value::as_str);
    let input = schema(tool.get("inputSchema"));
    Schema::compile_input(input.clone()).map_err(|error| format!("{own} is left out: its input schema: {error}"))?;
    // A schema of results only helps a model: a tool without one can still be called.
    let output =
        tool.get("outputSchema").filter(|output| output.is_object() && Schema::compile((*output).clone()).is_ok());
    let claims = tool.get("annotations").unwrap_or(&Value::Null);
    let claim = |name: &str| claims.get(name).and_then(Value::as_bool);
    let title = text("title").or_else(|| claims.get("title").and_then(Value::as_str));
    Ok(ListedServerTool {
        upstream_name: own.to_owned(),
        title: title.map(|title| cut(title.trim(), MAX_TITLE)).filter(|title| !title.is_empty()),
        description: cut(text("description").unwrap_or_default(), MAX_DESCRIPTION),
        input,
        output: output.cloned(),
        meta: meta(tool),
        annotations: Annotations {
            read_only: claim("readOnlyHint"),
            destructive: claim("destructiveHint"),
            idempotent: claim("idempotentHint"),
            open_world: claim("openWorldHint"),
            task: None,
        },
    })
}

/// Its `_meta` and its icons, for lists of MCP clients.
fn meta(tool: &Value) -> Option<Map<String, Value>> {
    let short = |member: &str| tool.get(member).filter(|value| value.to_string().len() <= MAX_META);
    let mut meta = short("_meta").and_then(Value::as_object).cloned().unwrap_or_default();
    meta.retain(|key, _| key != ICONS);
    if let Some(icons @ Value::Array(_)) = short("icons") {
        meta.insert(ICONS.to_owned(), icons.clone());
    }
    Some(meta).filter(|meta| !meta.is_empty())
}

/// Many servers forget to say that the arguments are an object.
fn schema(given: Option<&Value>) -> Value {
    let mut schema = match given {
        Some(schema @ Value::Object(_)) => schema.clone(),
        Some(_) | None => json!({}),
    };
    let root = schema.as_object_mut().expect("both arms make an object");
    root.entry("type").or_insert_with(|| "object".into());
    schema
}

/// At most `max` characters, without those that a person would not see.
pub(super) fn cut(text: &str, max: usize) -> String {
    let mut seen = text.chars().filter(|c| matches!(c, '\n' | '\t') || !is_hidden(*c));
    let mut short: String = seen.by_ref().take(max).collect();
    if seen.next().is_some() {
        short.push('…');
    }
    short
}

/// Control characters, and those that hide or reorder text: a model reads them, a person does not.
pub(super) fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
        || matches!(c, '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_that_cannot_be_called_are_left_out_and_reported() {
        let mut listing = ServerListing::default();
        let page = json!({"tools": [
            {"name": "good", "description": "Says\u{202e} it\u{e0041}.", "inputSchema": {"properties": {}}},
            {"name": "good"},
            {"name": ""},
            {"name": "a\nb"},
            {"name": "x".repeat(1000)},
            {"name": "resource/x://a"},
            {"name": "typed", "inputSchema": {"type": "strng"}},
            {"name": "listed", "inputSchema": {"type": "array"}},
            {"name": "away", "inputSchema": {"type": "object", "properties": {"a": {"$ref": "http://127.0.0.1:1/"}}}},
            {"name": "bare", "outputSchema": {"type": "strng"}},
            "nonsense"
        ], "nextCursor": "2"});
        assert_eq!(listing.take(&page), Ok(Some("2".into())));
        let names: Vec<&str> = listing.tools.iter().map(|tool| tool.upstream_name.as_str()).collect();
        assert_eq!(names, ["good", "bare"]);
        assert_eq!(listing.tools[0].description, "Says it.");
        assert_eq!(listing.tools[0].input, json!({"properties": {}, "type": "object"}));
        assert_eq!(listing.tools[1].output, None);
        // The tool without a name and the text that is not a tool are the same problem.
        assert_eq!(listing.problems.len(), 8, "{:#?}", listing.problems);
        assert!(listing.left_out.iter().any(|(name, why)| name == "typed" && why.contains("its input schema")));
        assert!(listing.left_out.iter().all(|(name, _)| name != "good"), "{:#?}", listing.left_out);
    }

    #[test]
    fn a_huge_list_is_cut() {
        let mut listing = ServerListing::default();
        let tools: Vec<Value> = (0..5000).map(|n| json!({"name": format!("t{n}")})).collect();
        assert_eq!(listing.take(&json!({"tools": tools, "nextCursor": "more"})), Ok(None));
        assert_eq!((listing.tools.len(), listing.problems.len()), (MAX_TOOLS, 1));
        let long = json!({"tools": [{"name": "a", "description": "é".repeat(100_000)}]});
        let mut listing = ServerListing::default();
        listing.take(&long).unwrap();
        assert_eq!(listing.tools[0].description.chars().count(), MAX_DESCRIPTION + 1);
        assert!(ServerListing::default().take(&json!({"tools": 7})).is_err());
    }

    #[test]
    fn only_declared_hints_are_claimed() {
        let tool = read(&json!({"name": "a"})).unwrap();
        assert_eq!(tool.annotations, Annotations::default());
        let reads = read(&json!({"name": "a", "annotations": {"readOnlyHint": true, "title": "A"}})).unwrap();
        assert_eq!(reads.annotations, Annotations { read_only: Some(true), ..Annotations::default() });
        assert_eq!(reads.title.as_deref(), Some("A"));
        assert_ne!(tool.digest(), reads.digest(), "a title is seen");
        let digest = |annotations: Value| read(&json!({"name": "a", "annotations": annotations})).unwrap().digest();
        for hint in ["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"] {
            assert_ne!(digest(json!({hint: true})), digest(json!({hint: false})), "{hint}");
            assert_ne!(digest(json!({hint: true})), digest(json!({})), "{hint}");
        }
    }
}
