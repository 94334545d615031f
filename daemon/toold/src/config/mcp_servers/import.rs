//! The usual `mcp.json` of other programs.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use anyhow::Context;
use serde::Deserialize;
use serde_json::Value;
use toold_host::files;

use super::McpServerConfig;

/// Longer lists are rejected.
const MAX_BYTES: u64 = 1 << 20;

/// One server of such a file; other members are ignored.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Imported {
    #[serde(rename = "type", alias = "transport")]
    kind: Option<String>,
    command: Option<String>,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, Value>,
    cwd: Option<String>,
    #[serde(alias = "serverUrl", alias = "httpUrl")]
    url: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    #[serde(default)]
    disabled: bool,
}

/// The servers of a file, by name; none if the file does not exist. A server that cannot be used
/// comes with the reason.
///
/// # Errors
/// A file that cannot be parsed.
pub(super) fn read(path: &Path) -> anyhow::Result<BTreeMap<String, Result<McpServerConfig, String>>> {
    let Some(text) = text_of(path).with_context(|| format!("can't read {}", path.display()))? else {
        return Ok(BTreeMap::new());
    };
    let json: Value =
        serde_json::from_str(&plain_json(&text)).with_context(|| format!("can't read {}", path.display()))?;
    let servers = ["mcpServers", "servers", "context_servers"].iter().find_map(|key| json.get(key)?.as_object());
    let servers = servers.with_context(|| format!("{} has no mcpServers", path.display()))?;
    let read = servers.iter().filter_map(|(name, server)| {
        let imported = Imported::deserialize(server).map_err(|error| error.to_string());
        match imported {
            Ok(imported) if is_ourselves(&imported) => {
                tracing::debug!(name, path = %path.display(), "is the daemon itself, and not mounted");
                None
            }
            imported => Some((name.clone(), imported.and_then(server_config))),
        }
    });
    Ok(read.collect())
}

/// A trusted project names such files too, so their content comes from a repository. `None` if the
/// file does not exist.
fn text_of(path: &Path) -> anyhow::Result<Option<String>> {
    match files::read_text(path, MAX_BYTES) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn server_config(imported: Imported) -> Result<McpServerConfig, String> {
    if let Some(kind @ ("ws" | "websocket")) = imported.kind.as_deref() {
        return Err(format!("servers of the kind {kind} cannot be reached: expected stdio, http or sse"));
    }
    let text = |value: Value| match value {
        Value::String(text) => text,
        other => other.to_string(),
    };
    Ok(McpServerConfig {
        command: imported.command,
        args: imported.args,
        env: imported.env.into_iter().map(|(name, value)| (name, text(value))).collect(),
        cwd: imported.cwd,
        url: imported.url,
        headers: imported.headers,
        enabled: !imported.disabled,
        ..McpServerConfig::default()
    })
}

/// `toolctl mcp` in the file of another program is how that program calls us: mounted, it would
/// call itself.
fn is_ourselves(imported: &Imported) -> bool {
    let program = imported.command.as_deref().and_then(|command| Path::new(command).file_name()?.to_str());
    match program {
        Some("toold") => true,
        Some("toolctl") => imported.args.iter().any(|arg| arg == "mcp"),
        Some(_) | None => false,
    }
}

/// Without the comments and the trailing commas that some programs allow in such files.
fn plain_json(text: &str) -> String {
    let mut made = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    let mut comma_at = None;
    while let Some(c) = chars.next() {
        match (c, chars.peek()) {
            ('"', _) => {
                comma_at = None;
                made.push(c);
                let mut escaped = false;
                for c in chars.by_ref() {
                    made.push(c);
                    match c {
                        '"' if !escaped => break,
                        _ => escaped = c == '\\' && !escaped,
                    }
                }
            }
            ('/', Some('/')) => while chars.next_if(|c| *c != '\n').is_some() {},
            ('/', Some('*')) => {
                let mut before = ' ';
                chars.next();
                for c in chars.by_ref() {
                    if before == '*' && c == '/' {
                        break;
                    }
                    before = c;
                }
            }
            ('}' | ']', _) => {
                if let Some(at) = comma_at.take() {
                    made.remove(at);
                }
                made.push(c);
            }
            (',', _) => {
                comma_at = Some(made.len());
                made.push(c);
            }
            (c, _) => {
                if !c.is_whitespace() {
                    comma_at = None;
                }
                made.push(c);
            }
        }
    }
    made
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_last_commas_go_and_texts_stay() {
        let text = "{\"a\": \"x // y, } \\\" /* z\", /* c */ \"b\": [1, 2, ], // d\n}";
        let json: Value = serde_json::from_str(&plain_json(text)).unwrap();
        assert_eq!(json, serde_json::json!({"a": "x // y, } \" /* z", "b": [1, 2]}));
    }
    #[test]
    fn pipes_are_not_opened_and_long_lists_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let (pipe, long) = (folder.path().join("pipe"), folder.path().join("long"));
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        std::fs::write(&long, vec![b' '; 1 + MAX_BYTES as usize]).unwrap();
        let error = |path: &Path| format!("{:#}", read(path).unwrap_err());
        assert!(error(&pipe).contains("is a named pipe"), "{}", error(&pipe));
        assert!(error(&long).contains("more than 1048576 bytes"), "{}", error(&long));
        assert!(read(&folder.path().join("none")).unwrap().is_empty());
    }
}
