//! Finds one entry in the text of a file by its bytes, so that an entry is replaced and put back without touching
//! anything else.

use std::ops::Range;
use std::path::Path;

use anyhow::{Context, ensure};
use jsonc_parser::ast::Value as JsonNode;
use jsonc_parser::common::Ranged;
use jsonc_parser::{CollectOptions, parse_to_ast};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use toml_edit::{Document, Item};

use crate::commands::mcp::jsonc;
use crate::config_file::appended;

/// How a file is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ConfigForm {
    Json,
    Toml,
}

/// How an entry stands in its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ServerEntryKind {
    /// A value of JSON, with comments and trailing commas.
    Json,
    /// A table of TOML in braces.
    Inline,
    /// A table of TOML below its header, with its subtables.
    Block,
}

/// Where an entry stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct EntrySpan {
    pub(super) range: Range<usize>,
    pub(super) kind: ServerEntryKind,
}

impl ConfigForm {
    pub(super) fn of(file: &Path) -> Self {
        if file.extension().is_some_and(|extension| extension == "toml") { Self::Toml } else { Self::Json }
    }

    /// The value of the whole text; `None` if it cannot be read. An empty text is an empty object.
    pub(super) fn read(self, text: &str) -> Option<Value> {
        if text.trim().trim_start_matches('\u{feff}').is_empty() {
            return Some(Value::Object(Map::new()));
        }
        match self {
            Self::Json => serde_json::from_str(text).ok().or_else(|| jsonc::whole(text)),
            Self::Toml => serde_json::to_value(text.parse::<toml::Table>().ok()?).ok(),
        }
    }

    /// Whether a text that can be read has no entry at this path.
    pub(super) fn lacks(self, text: &str, path: &[String]) -> bool {
        self.read(text).is_some_and(|whole| path.iter().try_fold(&whole, |value, name| value.get(name)).is_none())
    }

    /// The text with this entry, which it lacks.
    ///
    /// # Errors
    /// The text has no place for it.
    pub(super) fn with_entry(
        self,
        text: &str,
        path: &[String],
        members: &Map<String, Value>,
    ) -> anyhow::Result<String> {
        let entry = Value::Object(members.clone());
        let after = match self {
            Self::Json => jsonc::with_member(text, &path.iter().map(String::as_str).collect::<Vec<_>>(), &entry)?,
            Self::Toml => {
                let block = ServerEntryKind::Block.text_of(path, members).context("the entry cannot be written")?;
                appended(text, &block)
            }
        };
        let read = self.read(&after).unwrap_or_default();
        let there = path.iter().try_fold(&read, |value, name| value.get(name));
        ensure!(there == Some(&entry), "the entry {} cannot be added safely", path.join("."));
        Ok(after)
    }

    /// The bytes of the entry at this path; `None` if it is not there, or not in one piece.
    pub(super) fn find(self, text: &str, path: &[String]) -> Option<EntrySpan> {
        match self {
            Self::Json => find_json(text, path),
            Self::Toml => find_toml(text, path),
        }
    }
}

impl ServerEntryKind {
    /// The entry that stands like this in a text; `None` if it cannot be read.
    pub(super) fn value_of(self, path: &[String], text: &str) -> Option<Value> {
        match self {
            Self::Json => ConfigForm::Json.read(text),
            Self::Inline => ConfigForm::Toml.read(&format!("value = {text}")).map(|mut whole| whole["value"].take()),
            Self::Block => {
                let mut whole = ConfigForm::Toml.read(text)?;
                path.iter().try_fold(&mut whole, |value, name| value.get_mut(name)).map(Value::take)
            }
        }
    }

    /// The text of an entry of this kind.
    pub(super) fn text_of(self, path: &[String], members: &Map<String, Value>) -> Option<String> {
        let table = || serde_json::from_value::<toml::Table>(Value::Object(members.clone())).ok();
        match self {
            Self::Json => Some(one_line(&Value::Object(members.clone()))),
            Self::Inline => Some(toml::Value::Table(table()?).to_string()),
            Self::Block => {
                let nested = path.iter().rev().fold(toml::Value::Table(table()?), |inner, name| {
                    toml::Value::Table(toml::Table::from_iter([(name.clone(), inner)]))
                });
                toml::to_string(&nested).ok()
            }
        }
    }
}

/// The text with other bytes in this place.
pub(super) fn spliced(text: &str, range: Range<usize>, new: &str) -> String {
    format!("{}{new}{}", &text[..range.start], &text[range.end..])
}

/// As people write a small object.
pub(super) fn one_line(value: &Value) -> String {
    match value {
        Value::Object(members) => {
            let members =
                members.iter().map(|(name, value)| format!("{}: {}", Value::from(name.as_str()), one_line(value)));
            format!("{{{}}}", members.collect::<Vec<_>>().join(", "))
        }
        Value::Array(items) => format!("[{}]", items.iter().map(one_line).collect::<Vec<_>>().join(", ")),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.to_string(),
    }
}

fn find_json(text: &str, path: &[String]) -> Option<EntrySpan> {
    let rest = text.trim_start_matches('\u{feff}');
    let mark = text.len() - rest.len();
    let parsed = parse_to_ast(rest, &CollectOptions::default(), &jsonc::OPTIONS).ok()?;
    let mut node = parsed.value?;
    for name in path {
        let JsonNode::Object(object) = node else { return None };
        let mut same: Vec<_> = object.properties.into_iter().filter(|member| member.name.as_str() == name).collect();
        // Agents do not agree which of several members of one name counts.
        node = if same.len() == 1 { same.pop()?.value } else { return None };
    }
    let range = node.range();
    Some(EntrySpan { range: range.start + mark..range.end + mark, kind: ServerEntryKind::Json })
}

fn find_toml(text: &str, path: &[String]) -> Option<EntrySpan> {
    let document = Document::parse(text).ok()?;
    let mut item = document.as_item();
    for name in path {
        item = item.as_table_like()?.get(name)?;
    }
    if let Item::Value(value) = item {
        let range = value.as_inline_table().filter(|table| !table.is_dotted()).and(value.span())?;
        return Some(EntrySpan { range, kind: ServerEntryKind::Inline });
    }
    let table = item.as_table().filter(|table| !table.is_dotted() && !table.is_implicit())?;
    let range = block(text, table.span()?.start, path)?;
    // Lines are not the whole grammar: what is taken out is this entry, and nothing else.
    let without = ConfigForm::Toml.read(&spliced(text, range.clone(), ""))?;
    let mut expected = ConfigForm::Toml.read(text)?;
    let (name, parents) = path.split_last()?;
    let holder = parents.iter().try_fold(&mut expected, |value, name| value.get_mut(name))?;
    holder.as_object_mut()?.remove(name);
    let is_same = without == expected || holder_is_gone(&without, &expected, parents);
    is_same.then_some(EntrySpan { range, kind: ServerEntryKind::Block })
}

/// Whether they differ only in tables that are empty, and gone in the first.
fn holder_is_gone(without: &Value, expected: &Value, parents: &[String]) -> bool {
    let mut pruned = expected.clone();
    for depth in (0..parents.len()).rev() {
        let Some(holder) = parents[..depth].iter().try_fold(&mut pruned, |value, name| value.get_mut(name)) else {
            return false;
        };
        let is_empty = holder.get(&parents[depth]).and_then(Value::as_object).is_some_and(Map::is_empty);
        if let Some(members) = holder.as_object_mut().filter(|_| is_empty) {
            members.remove(&parents[depth]);
        }
        if *without == pruned {
            return true;
        }
    }
    false
}

/// From the header to the last line before the next header of another table, without empty lines and comments at the
/// end, which belong to that one.
fn block(text: &str, start: usize, path: &[String]) -> Option<Range<usize>> {
    let start = text[..start].rfind('\n').map_or(0, |at| at + 1);
    let (mut at, mut end) = (start, start);
    for line in text[start..].split_inclusive('\n') {
        let trimmed = line.trim();
        if at > start && trimmed.starts_with('[') && header(trimmed).is_some_and(|header| !header.starts_with(path)) {
            break;
        }
        at += line.len();
        if !trimmed.is_empty() && !trimmed.starts_with('#') {
            end = at;
        }
    }
    Some(start..end)
}

/// The names in the header of a table; `None` if the line is no header.
fn header(line: &str) -> Option<Vec<String>> {
    let parsed = line.parse::<toml::Table>().ok()?;
    let mut names = Vec::new();
    let mut table = &parsed;
    while let Some((name, value)) = table.iter().next() {
        names.push(name.clone());
        table = match value {
            toml::Value::Table(inner) => inner,
            toml::Value::Array(items) => items.first()?.as_table()?,
            _ => return None,
        };
    }
    Some(names)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn path(names: &[&str]) -> Vec<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    #[test]
    fn an_entry_is_replaced_and_put_back_byte_for_byte() {
        let json = [
            "{\"mcpServers\":{\"a\":{\"command\":\"x\"}}}",
            "\u{feff}{\n\t\"mcpServers\": {\n\t\t// mine\n\t\t\"b\": {},\n\t\t\"a\": { /* x */ \"command\": \"x\", },\n\t},\n}\n",
            "{\r\n  \"mcpServers\": {\"a\": {\"command\": \"x\", \"env\": {\"ä\": \"[\"}}}\r\n}",
        ];
        let toml = [
            "[mcp_servers.a]\ncommand = \"x\"",
            "# mine\nmodel = \"m\"\n\n[mcp_servers.a] # a\ncommand = \"x\" # here\nargs = [\n  \"[b]\",\n]\n[mcp_servers.a.env]\nK = \"v\"\n\n# b\n[mcp_servers.b]\ncommand = \"y\"\n",
            "[mcp_servers]\na = { command = \"x\" }\nb = { command = \"y\" }\n",
            "mcp_servers = { a = { command = \"x\" } }\n",
            "[ mcp_servers . \"a\" ]\r\ncommand = \"x\"\r\n",
        ];
        let texts = json.map(|text| (ConfigForm::Json, "mcpServers", text)).into_iter();
        for (form, holder, text) in texts.chain(toml.map(|text| (ConfigForm::Toml, "mcp_servers", text))) {
            let path = path(&[holder, "a"]);
            let span = form.find(text, &path).unwrap_or_else(|| panic!("not found in {text}"));
            let members = json!({"command": "toolctl", "args": ["mcp", "--source", "a"]});
            let new = span.kind.text_of(&path, members.as_object().unwrap()).unwrap();
            let after = spliced(text, span.range.clone(), &new);
            let read = form.read(&after).unwrap_or_else(|| panic!("{after}"));
            assert_eq!(read[holder]["a"], members, "{after}");
            assert_eq!(read[holder].get("b"), form.read(text).unwrap()[holder].get("b"), "{after}");
            let there = form.find(&after, &path).unwrap();
            assert_eq!(spliced(&after, there.range, &text[span.range]), text, "{after}");
        }
    }

    #[test]
    fn what_is_not_in_one_piece_is_not_found() {
        let twice = "{\"s\": {\"a\": 1, \"a\": 2}}";
        assert_eq!(ConfigForm::Json.find(twice, &path(&["s", "a"])), None);
        for text in [
            "s.a.command = \"x\"\n",
            "[s.a]\nx = 1\n[t]\ny = 1\n[s.a.env]\nz = 1\n",
            "[s.a]\nx = \"\"\"\n[t]\n\"\"\"\n",
        ] {
            assert_eq!(ConfigForm::Toml.find(text, &path(&["s", "a"])), None, "{text}");
        }
    }
}
