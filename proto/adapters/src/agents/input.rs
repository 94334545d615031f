//! The members of a tool's input.

use serde_json::Value;

use crate::agents::{AgentAction, AgentInputError};
use crate::patch::{self, PatchOperation};

/// The input of one call, read member by member.
#[derive(Clone, Copy)]
pub(super) struct ToolInput<'a> {
    pub(super) tool: &'a str,
    pub(super) value: &'a Value,
}

impl<'a> ToolInput<'a> {
    /// # Errors
    /// The member is missing, is no text or is empty.
    pub(super) fn text(self, member: &'static str) -> Result<String, AgentInputError> {
        match self.value.get(member) {
            Some(Value::String(text)) if !text.is_empty() => Ok(text.clone()),
            found => Err(self.error(member, "a text that is not empty", found)),
        }
    }

    /// `None` when the member is missing or null.
    ///
    /// # Errors
    /// The input is no object, or the member is no text.
    pub(super) fn optional_text(self, member: &'static str) -> Result<Option<String>, AgentInputError> {
        match self.value.get(member) {
            None if !self.value.is_object() => Err(self.error(member, "a text", None)),
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            found => Err(self.error(member, "a text", found)),
        }
    }

    /// The text of several members that mean the same.
    ///
    /// # Errors
    /// None of them is there, they differ, or one that is there is no text or is empty.
    pub(super) fn any_text(self, members: &[&'static str]) -> Result<String, AgentInputError> {
        self.any_optional_text(members)?;
        let there = members.iter().find(|member| self.value.get(**member).is_some_and(|value| !value.is_null()));
        self.text(there.or(members.first()).copied().unwrap_or_default())
    }

    /// As [`ToolInput::any_text`]; `None` when all of the members are missing or null.
    ///
    /// # Errors
    /// The input is no object, or the members differ: which one counts is the agent's choice. Or one of them is no text.
    pub(super) fn any_optional_text(self, members: &[&'static str]) -> Result<Option<String>, AgentInputError> {
        let mut found: Option<String> = None;
        for member in members {
            let text = self.optional_text(member)?;
            match (&found, &text) {
                (Some(one), Some(other)) if one != other => {
                    return Err(self.refuse(&format!("{} mean the same and differ", members.join(" and "))));
                }
                _ => found = found.or(text),
            }
        }
        Ok(found)
    }

    /// A text that may be empty.
    ///
    /// # Errors
    /// The member is missing or is no text.
    pub(super) fn content(self, member: &'static str) -> Result<String, AgentInputError> {
        self.optional_text(member)?.ok_or_else(|| self.error(member, "a text", None))
    }

    /// A folder; the agent's current one when the member is missing, null or empty.
    ///
    /// # Errors
    /// The member is no text.
    pub(super) fn folder(self, member: &'static str) -> Result<String, AgentInputError> {
        Ok(self.optional_text(member)?.filter(|folder| !folder.is_empty()).unwrap_or_else(|| ".".to_owned()))
    }

    /// The texts of a member that is a text or a list of texts; empty when it is missing or null.
    ///
    /// # Errors
    /// The input is no object, or the member is neither.
    pub(super) fn texts(self, member: &'static str) -> Result<Vec<String>, AgentInputError> {
        match self.value.get(member) {
            None if !self.value.is_object() => Err(self.error(member, "a text or a list of texts", None)),
            None | Some(Value::Null) => Ok(Vec::new()),
            Some(Value::String(text)) => Ok(vec![text.clone()]),
            Some(Value::Array(items)) => {
                let text = |item: &Value| item.as_str().map(str::to_owned);
                let texts: Option<Vec<String>> = items.iter().map(text).collect();
                texts.ok_or_else(|| self.error(member, "a list of texts", self.value.get(member)))
            }
            found => Err(self.error(member, "a text or a list of texts", found)),
        }
    }

    /// False when the member is missing or null.
    ///
    /// # Errors
    /// The member is neither true nor false.
    pub(super) fn flag(self, member: &'static str) -> Result<bool, AgentInputError> {
        match self.value.get(member) {
            None | Some(Value::Null) => Ok(false),
            Some(Value::Bool(flag)) => Ok(*flag),
            found => Err(self.error(member, "true or false", found)),
        }
    }

    /// The items of a list.
    ///
    /// # Errors
    /// The member is missing or is no list.
    pub(super) fn list(self, member: &'static str) -> Result<&'a [Value], AgentInputError> {
        match self.value.get(member) {
            Some(Value::Array(items)) => Ok(items),
            found => Err(self.error(member, "a list", found)),
        }
    }

    /// The input as a whole is not what the tool takes.
    pub(super) fn refuse(self, problem: &str) -> AgentInputError {
        AgentInputError::Text { tool: self.tool.to_owned(), problem: problem.to_owned() }
    }

    pub(super) fn error(self, member: &'static str, expected: &'static str, found: Option<&Value>) -> AgentInputError {
        let found = match found {
            None if self.value.is_object() => "nothing".to_owned(),
            None => format!("no object but {}", kind(self.value)),
            Some(value) => kind(value).to_owned(),
        };
        AgentInputError::Member { tool: self.tool.to_owned(), member, expected, found }
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(text) if text.is_empty() => "an empty text",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// The folder that a search by `pattern` in `folder` stays in: a pattern can name a folder by itself, lead upwards, and
/// have such parts in braces.
pub(super) fn searched_folder(folder: Option<String>, pattern: &str) -> String {
    let folder = folder.filter(|folder| !folder.is_empty()).unwrap_or_else(|| ".".to_owned());
    let end = pattern.find(['*', '?', '[', '{', '(', '!', '\\']).unwrap_or(pattern.len());
    let (literal, rest) = pattern.split_at(end);
    // Where such a pattern leads cannot be said, so it is judged as the most that it can reach.
    if rest.contains("..") || ["{/", ",/", "(/", "|/", "{~", ",~"].iter().any(|part| rest.contains(part)) {
        return "/".to_owned();
    }
    let named = literal.rfind('/').and_then(|slash| literal.get(..=slash)).unwrap_or_default();
    match named {
        "" => folder,
        "/" => named.to_owned(),
        _ if named.starts_with(['/', '~']) => named.trim_end_matches('/').to_owned(),
        _ => format!("{}/{}", folder.trim_end_matches('/'), named.trim_end_matches('/')),
    }
}

/// A tool of an MCP server by the name that Claude Code, Codex and others give it, `mcp__SERVER__TOOL`; otherwise an
/// unknown tool.
pub(super) fn mcp_or_unknown(tool: &str) -> Vec<AgentAction> {
    let named = tool.strip_prefix("mcp__").and_then(|names| mcp_tools(names, &["__"]));
    named.unwrap_or_else(|| vec![AgentAction::Unknown])
}

/// The same for an agent whose names of such tools have no prefix: any name may also be that of a tool of its own.
pub(super) fn unknown_or_mcp(tool: &str, marks: &[&str]) -> Vec<AgentAction> {
    mcp_tools(tool, marks).unwrap_or_default().into_iter().chain([AgentAction::Unknown]).collect()
}

/// All servers and tools that `SERVER MARK TOOL` can stand for, since both names may contain the mark; `None` if there
/// are none.
pub(super) fn mcp_tools(names: &str, marks: &[&str]) -> Option<Vec<AgentAction>> {
    let split = |(at, _): (usize, char)| {
        let (server, rest) = names.split_at(at);
        let tool = marks.iter().find_map(|mark| rest.strip_prefix(mark))?;
        let are_names = !server.is_empty() && !tool.is_empty();
        are_names.then(|| AgentAction::Mcp { server: server.to_owned(), tool: tool.to_owned() })
    };
    // Marks may overlap: `a___b` is `a` and `_b`, or `a_` and `b`.
    let found: Vec<_> = names.char_indices().filter_map(split).collect();
    (!found.is_empty()).then_some(found)
}

/// The text of a patch: the member, or the whole input, which some agents leave as a text.
///
/// # Errors
/// The input is no text, and the member is missing, is no text or is empty.
pub(super) fn patch_text(input: ToolInput<'_>, members: &[&'static str]) -> Result<String, AgentInputError> {
    match input.value {
        Value::String(text) if !text.is_empty() => Ok(text.clone()),
        _ => input.any_text(members),
    }
}

/// The actions of a patch, in its order.
///
/// # Errors
/// It is not a patch, or has lines before or after it. An agent may read those otherwise than [`patch::parse`] does.
pub(super) fn patch_actions(tool: &str, text: &str) -> Result<Vec<AgentAction>, AgentInputError> {
    let refuse = |problem: String| AgentInputError::Text { tool: tool.to_owned(), problem };
    let text = text.trim();
    if !text.starts_with("*** Begin Patch") || !text.ends_with("*** End Patch") {
        return Err(refuse(
            "the first line of a patch is *** Begin Patch, and the last one is *** End Patch".to_owned(),
        ));
    }
    let mut actions = Vec::new();
    for section in patch::parse(text).map_err(|error| refuse(error.to_string()))? {
        let path = section.path;
        match section.operation {
            PatchOperation::Add { content } => actions.push(AgentAction::Write { path, text: Some(content) }),
            PatchOperation::Delete => actions.push(AgentAction::Delete { path }),
            PatchOperation::Update { move_to, .. } => {
                actions.push(AgentAction::Edit { path: path.clone(), old: None, new: None, all: false });
                if let Some(to) = move_to {
                    actions.push(AgentAction::Move { from: path, to });
                }
            }
        }
    }
    Ok(actions)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn searched(folder: Option<&str>, pattern: &str, expected: &str) {
        assert_eq!(searched_folder(folder.map(str::to_owned), pattern), expected, "{pattern}");
    }

    #[test]
    fn a_name_stands_for_a_tool_of_each_server_that_it_can_name() {
        let servers = |name: &str| -> Vec<String> {
            let shown = |action: AgentAction| match action {
                AgentAction::Mcp { server, tool } => format!("{server}/{tool}"),
                _ => "unknown".to_owned(),
            };
            mcp_or_unknown(name).into_iter().map(shown).collect()
        };
        assert_eq!(servers("mcp__a__b"), ["a/b"]);
        assert_eq!(servers("mcp__a__b__c"), ["a/b__c", "a__b/c"]);
        assert_eq!(servers("mcp__a___b"), ["a/_b", "a_/b"]);
        for name in ["mcp__", "mcp____b", "mcp__a__", "mcp__a", "mcp_a_b", "Mcp__a__b"] {
            assert_eq!(servers(name), ["unknown"], "{name}");
        }
        let without_prefix = |name: &str, marks: &[&str]| -> Vec<AgentAction> { unknown_or_mcp(name, marks) };
        let mcp = |server: &str, tool: &str| AgentAction::Mcp { server: server.to_owned(), tool: tool.to_owned() };
        let found = without_prefix("a-b/c", &["-", "/"]);
        assert_eq!(found, [mcp("a", "b/c"), mcp("a-b", "c"), AgentAction::Unknown]);
        assert_eq!(without_prefix("a_b_c", &["_"]), [mcp("a", "b_c"), mcp("a_b", "c"), AgentAction::Unknown]);
        assert_eq!(without_prefix("plain", &["_"]), [AgentAction::Unknown]);
    }

    #[test]
    fn a_search_stays_in_the_folder_that_its_pattern_names() {
        searched(None, "**/*.rs", ".");
        searched(Some("/w"), "src/**", "/w/src");
        searched(Some("/w/"), "src/a/*.rs", "/w/src/a");
        searched(Some("/w"), "/etc/**", "/etc");
        searched(Some("/w"), "/*", "/");
        searched(Some("/w"), "../*", "/w/..");
        searched(Some(""), "a.rs", ".");
    }

    #[test]
    fn a_pattern_that_leads_out_after_a_wildcard_is_judged_as_the_most_it_can_reach() {
        for pattern in ["*/../../etc/*", "{/etc,src}/*", "{src,/etc}/*", "{src,~/.ssh}/*", "src/{..,a}/*"] {
            searched(Some("/w"), pattern, "/");
        }
    }
}
