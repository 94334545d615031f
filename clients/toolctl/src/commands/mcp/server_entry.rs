//! Entries `[mcp.servers.NAME]` of a configuration: how a server is run or reached. All commands that mount or unmount a
//! server write through this module.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

use anyhow::Context;
use toml::{Table, Value};
use toml_edit::{DocumentMut, Item};
use toold_client::Client;
use toold_proto::daemon::NoParams;
use toold_proto::method::DaemonReload;

use crate::config_file;
use crate::exit::{NOT_RUN, OK, usage};
use crate::output::{self, BAD, plain};
use crate::person::PersonWrites;

/// How a server is run or reached: `command` with `args` and `env`, or `url` with `headers`. Texts may contain
/// `${secret:NAME}` and `${env:NAME}`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct McpServerEntry {
    pub(crate) command: Option<String>,
    pub(crate) args: Vec<String>,
    pub(crate) env: BTreeMap<String, String>,
    pub(crate) cwd: Option<String>,
    pub(crate) url: Option<String>,
    pub(crate) headers: BTreeMap<String, String>,
}

impl McpServerEntry {
    /// The members that have a value.
    fn table(&self) -> Table {
        let texts = |texts: &BTreeMap<String, String>| -> Value {
            texts.iter().map(|(name, text)| (name.clone(), Value::String(text.clone()))).collect::<Table>().into()
        };
        let mut table = Table::new();
        for (key, text) in [("command", &self.command), ("cwd", &self.cwd), ("url", &self.url)] {
            table.extend(text.iter().map(|text| (key.to_owned(), Value::String(text.clone()))));
        }
        if !self.args.is_empty() {
            table.insert("args".to_owned(), self.args.clone().into());
        }
        for (key, pairs) in [("env", &self.env), ("headers", &self.headers)] {
            if !pairs.is_empty() {
                table.insert(key.to_owned(), texts(pairs));
            }
        }
        table
    }
}

/// The configuration's text with one more server at its end.
///
/// # Errors
/// The text is not TOML, or has a server of this name.
pub(crate) fn with_server(text: &str, name: &str, entry: &McpServerEntry, file: &Path) -> anyhow::Result<String> {
    let parsed: Table = text.parse().with_context(|| format!("{} is not valid TOML", file.display()))?;
    let servers = parsed.get("mcp").and_then(|mcp| mcp.get("servers"));
    if servers.is_some_and(|servers| servers.get(name).is_some()) {
        return Err(usage(format!(
            "{} has a server {name} already: choose another name, or first run `toolctl mcp remove {name}`",
            file.display()
        )));
    }
    let nested =
        Table::from_iter([("servers".to_owned(), Table::from_iter([(name.to_owned(), entry.table().into())]).into())]);
    let table = toml::to_string(&Table::from_iter([("mcp".to_owned(), Value::Table(nested))]))?;
    let after = config_file::appended(text, &table);
    after.parse::<Table>().with_context(|| format!("{} cannot be extended by this program", file.display()))?;
    Ok(after)
}

/// The configuration's text without the server, with everything else as it is; `None` if it has no such server.
///
/// # Errors
/// The text is not TOML.
pub(crate) fn without_server(text: &str, name: &str, file: &Path) -> anyhow::Result<Option<String>> {
    let mut document: DocumentMut = text.parse().with_context(|| format!("{} is not valid TOML", file.display()))?;
    let mcp = document.get_mut("mcp").and_then(Item::as_table_like_mut);
    let servers = mcp.and_then(|mcp| mcp.get_mut("servers")).and_then(Item::as_table_like_mut);
    let removed = servers.and_then(|servers| servers.remove(name));
    Ok(removed.is_some().then(|| document.to_string()))
}

/// The names of the servers in the configuration's text; none if it is not TOML.
pub(crate) fn server_names(text: &str) -> Vec<String> {
    let parsed: Table = text.parse().unwrap_or_default();
    let servers = parsed.get("mcp").and_then(|mcp| mcp.get("servers")).and_then(Value::as_table);
    servers.map(|servers| servers.keys().cloned().collect()).unwrap_or_default()
}

/// Writes a configuration that is valid, and has the daemon read it. The exit status.
///
/// # Errors
/// The text has mistakes, which are shown, or the file cannot be written.
pub(crate) async fn write(file: &Path, text: &str, client: &Client, right: &PersonWrites) -> anyhow::Result<u8> {
    config_file::write_checked(file, text, right).await?;
    let reloaded = client.call::<DaemonReload>(NoParams {}).await?;
    for problem in &reloaded.problems {
        writeln!(output::stderr(), "{BAD}{}{BAD:#}", plain(problem))?;
    }
    Ok(if reloaded.applied { OK } else { NOT_RUN })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(command: &str) -> McpServerEntry {
        McpServerEntry { command: Some(command.to_owned()), ..McpServerEntry::default() }
    }

    #[test]
    fn a_server_is_added_at_the_end_and_removed_alone() {
        let file = Path::new("c.toml");
        let before = "# mine\n[mcp]\nlisten = \"127.0.0.1:1\" # here\n\n[mcp.servers.\"a.b\"]\ncommand = \"x\"\n";
        let mut files = entry("npx");
        files.args = vec!["-y".to_owned(), "files".to_owned()];
        files.env.insert("KEY".to_owned(), "${secret:KEY}".to_owned());
        let after = with_server(before, "files", &files, file).unwrap();
        insta::assert_snapshot!(after.strip_prefix(before).unwrap(), @r#"

        [mcp.servers.files]
        args = ["-y", "files"]
        command = "npx"

        [mcp.servers.files.env]
        KEY = "${secret:KEY}"
        "#);
        assert_eq!(server_names(&after), ["a.b", "files"]);
        assert!(with_server(&after, "files", &files, file).is_err());
        assert_eq!(without_server(&after, "files", file).unwrap().unwrap().trim_end(), before.trim_end());
        assert_eq!(without_server(before, "files", file).unwrap(), None);
    }

    #[test]
    fn a_server_of_an_inline_table_is_removed() {
        let text = "mcp.servers = { a = { command = \"x\" }, b = { url = \"http://h/\" } }\n";
        let after = without_server(text, "a", Path::new("c.toml")).unwrap().unwrap();
        assert_eq!(server_names(&after), ["b"]);
    }
}
