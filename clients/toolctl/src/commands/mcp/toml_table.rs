//! Sets or removes one table of a TOML text, and leaves the rest as it is.

use anyhow::{Context, anyhow, bail};
use serde_json::{Map, Value};
use toml_edit::{Array, DocumentMut, Item, Table, TableLike};

/// The text with these members in the table `holder.name`. Other members of it stay.
///
/// # Errors
/// The text is not TOML, with the line of the mistake, or `holder` is not a table.
pub(crate) fn with_table(text: &str, holder: &str, name: &str, members: &Map<String, Value>) -> anyhow::Result<String> {
    let mut document = parse(text)?;
    let mut implicit = Table::new();
    implicit.set_implicit(true);
    let is_inline = document.get(holder).is_some_and(Item::is_inline_table);
    let servers = document.entry(holder).or_insert(Item::Table(implicit));
    let servers = servers.as_table_like_mut().with_context(|| format!("{holder} is not a table"))?;
    let new = if is_inline { toml_edit::value(toml_edit::InlineTable::new()) } else { Item::Table(Table::new()) };
    let table = servers.entry(name).or_insert(new);
    let table = table.as_table_like_mut().with_context(|| format!("{holder}.{name} is not a table"))?;
    for (key, value) in members {
        set(table, key, value)?;
    }
    read_back(text, &document)
}

/// The text without the table; with the one of `before` in its place, if there is one.
///
/// # Errors
/// One of the texts is not TOML.
pub(crate) fn without_table(text: &str, holder: &str, name: &str, before: &str) -> anyhow::Result<String> {
    let mut document = parse(text)?;
    let earlier = parse(before)?;
    let earlier_holder = earlier.get(holder).and_then(Item::as_table_like);
    if let Some(servers) = document.get_mut(holder).and_then(Item::as_table_like_mut) {
        servers.remove(name);
        if let Some(entry) = earlier_holder.and_then(|servers| servers.get(name)) {
            servers.insert(name, entry.clone());
        }
        if servers.is_empty() && earlier_holder.is_none() {
            document.remove(holder);
        }
    }
    read_back(text, &document)
}

/// `None` for a text that is not TOML, too.
pub(crate) fn has_table(text: &str, holder: &str, name: &str) -> bool {
    let Ok(document) = parse(text) else { return false };
    document.get(holder).and_then(|servers| servers.get(name)).is_some()
}

/// The text of a member of the table `holder.name`; `None` if there is none, or the text is not TOML.
pub(crate) fn member(text: &str, holder: &str, name: &str, key: &str) -> Option<Value> {
    let document = parse(text).ok()?;
    Some(document.get(holder)?.get(name)?.get(key)?.as_str()?.into())
}

/// The texts of an array in the table `holder.name`; `None` if there is none, or the text is not TOML.
pub(crate) fn strings(text: &str, holder: &str, name: &str, key: &str) -> Option<Vec<String>> {
    let document = parse(text).ok()?;
    let array = document.get(holder)?.get(name)?.get(key)?.as_array()?;
    Some(array.iter().filter_map(|value| value.as_str().map(str::to_owned)).collect())
}

fn set(table: &mut dyn TableLike, key: &str, value: &Value) -> anyhow::Result<()> {
    let new: toml_edit::Value = match value {
        Value::String(text) => text.into(),
        Value::Array(items) => items.iter().filter_map(Value::as_str).collect::<Array>().into(),
        other => bail!("{other} has no form in this file"),
    };
    let same = |old: &toml_edit::Value| old.to_string().trim() == new.to_string().trim();
    if !table.get(key).and_then(Item::as_value).is_some_and(same) {
        table.insert(key, Item::Value(new));
    }
    Ok(())
}

fn parse(text: &str) -> anyhow::Result<DocumentMut> {
    text.parse().map_err(|error: toml_edit::TomlError| {
        let start = error.span().map_or(0, |span| span.start.min(text.len()));
        let line = text.as_bytes()[..start].iter().filter(|byte| **byte == b'\n').count() + 1;
        anyhow!("it is not TOML: line {line}: {}", error.message())
    })
}

/// The text after the change. A file of somebody else: nothing is written that does not read back.
fn read_back(before: &str, document: &DocumentMut) -> anyhow::Result<String> {
    let after = with_line_ends_of(before, document.to_string());
    parse(&after).context("it cannot be changed safely")?;
    Ok(after)
}

/// The printed document has no carriage returns: unchanged lines get theirs again, and so do new ones where there are any.
fn with_line_ends_of(before: &str, printed: String) -> String {
    if !before.contains("\r\n") {
        return printed;
    }
    let old: Vec<&str> = before.split_inclusive('\n').collect();
    let new: Vec<&str> = printed.split_inclusive('\n').collect();
    let content = |line: &str| line.replace("\r\n", "\n");
    let same = |(old, new): &(&&str, &&str)| content(old) == content(new);
    let start = old.iter().zip(&new).take_while(same).count();
    let rest = old.len().min(new.len()) - start;
    let end = old.iter().rev().zip(new.iter().rev()).take(rest).take_while(same).count();
    let changed = new[start..new.len() - end].iter().map(|line| content(line).replace('\n', "\r\n"));
    old[..start].concat() + &changed.collect::<String>() + &old[old.len() - end..].concat()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn members() -> Map<String, Value> {
        json!({"command": "/bin/toolctl", "args": ["mcp"]}).as_object().unwrap().clone()
    }

    #[test]
    fn a_table_is_added_or_changed() {
        let text = "model = \"x\"\n\n[mcp_servers.toold]\ncommand = \"old\" # mine\nenv = { A = \"1\" }\n\n# next\n[other]\na = 1\n";
        let after = with_table(text, "mcp_servers", "toold", &members()).unwrap();
        let read: toml::Table = after.parse().unwrap();
        assert_eq!(read["mcp_servers"]["toold"]["env"]["A"].as_str(), Some("1"), "{after}");
        assert_eq!(read["mcp_servers"]["toold"]["command"].as_str(), Some("/bin/toolctl"));
        assert!(after.contains("# next\n[other]\na = 1\n"), "{after}");
        assert_eq!(with_table(&after, "mcp_servers", "toold", &members()).unwrap(), after);
        let added = with_table("a = 1", "mcp_servers", "toold", &members()).unwrap();
        assert_eq!(added, "a = 1\n\n[mcp_servers.toold]\ncommand = \"/bin/toolctl\"\nargs = [\"mcp\"]\n");
        let inline = "mcp_servers = { other = { command = \"x\" } }\n";
        let after: toml::Table = with_table(inline, "mcp_servers", "toold", &members()).unwrap().parse().unwrap();
        assert!(after["mcp_servers"]["other"].is_table() && after["mcp_servers"]["toold"].is_table());
    }

    #[test]
    fn only_the_table_is_removed() {
        let before = "# mine\n[mcp_servers.other]\ncommand = \"x\" # theirs\n";
        let after = with_table(before, "mcp_servers", "toold", &members()).unwrap() + "\n[new]\nb = 2\n";
        let undone = without_table(&after, "mcp_servers", "toold", before).unwrap();
        assert_eq!(undone, format!("{before}\n[new]\nb = 2\n"));
        assert!(has_table(&after, "mcp_servers", "toold") && !has_table(&undone, "mcp_servers", "toold"));
        let earlier = "[mcp_servers.toold]\ncommand = \"old\"\n";
        let after = with_table(earlier, "mcp_servers", "toold", &members()).unwrap();
        assert_eq!(without_table(&after, "mcp_servers", "toold", earlier).unwrap(), earlier);
    }

    #[test]
    fn line_ends_stay() {
        for text in [
            "# c\r\n[a]\r\nx = 1\r\n\r\n[b]\r\ny = \"\"\"\r\nz\"\"\"\r\n",
            "a = 1\r\nb = 2\n[c]\nd = 3",
            "a = 1\r\n[c]",
        ] {
            let with = with_table(text, "mcp_servers", "toold", &members()).unwrap();
            assert!(with.starts_with(text), "{with:?}");
            assert!(!with[text.len()..].replace("\r\n", "").contains('\n'), "{with:?}");
            let read: toml::Table = with.parse().unwrap();
            assert_eq!(read["mcp_servers"]["toold"]["command"].as_str(), Some("/bin/toolctl"));
            let undone = without_table(&with, "mcp_servers", "toold", text).unwrap();
            assert_eq!(undone.trim_end(), text.trim_end());
        }
    }

    #[test]
    fn a_mistake_is_told_with_its_line() {
        let error = with_table("a = 1\nb = = 2\n", "mcp_servers", "toold", &members()).unwrap_err();
        assert!(error.to_string().starts_with("it is not TOML: line 2: "), "{error}");
    }
}
