//! The entry that starts a bridge in place of a server, and the settings of the person that both have.

use std::collections::BTreeSet;

use anyhow::Context;
use serde_json::{Map, Value};

use crate::commands::mcp::install::McpClient;
use crate::commands::setup::places::PLACES;
use crate::commands::setup::record::ChangedEntry;

/// The members that say how a server is started or reached.
const LAUNCH: [&str; 19] = [
    "command",
    "args",
    "env",
    "environment",
    "cwd",
    "url",
    "httpUrl",
    "serverUrl",
    "headers",
    "http_headers",
    "env_vars",
    "env_http_headers",
    "bearer_token_env_var",
    "envFile",
    "type",
    "transport",
    "oauth",
    "auth",
    "authProviderType",
];

/// The members of an entry that do not say how its server is started, such as what the agent approves by itself.
pub(super) fn settings(entry: &Value) -> Map<String, Value> {
    let mut settings = entry.as_object().cloned().unwrap_or_default();
    settings.retain(|name, _| !LAUNCH.contains(&name.as_str()));
    settings
}

/// The entry that starts the bridge of a server whose entry has these settings.
pub(super) fn bridge(
    client: Option<McpClient>,
    program: &str,
    source: &str,
    settings: Map<String, Value>,
) -> Map<String, Value> {
    let arguments = ["mcp", "--source", source].map(str::to_owned);
    let entry = match client {
        Some(client) => client.entry(program, &arguments),
        None => serde_json::json!({"command": program, "args": arguments}),
    };
    let mut entry = entry.as_object().cloned().unwrap_or_default();
    // Settings of the person stay, such as the tools that a client offers.
    entry.extend(settings);
    entry
}

impl ChangedEntry {
    /// The members of the server's entry, whose text with its secrets is `old`.
    ///
    /// # Errors
    /// The text cannot be read.
    pub(super) fn members(&self, old: &str) -> anyhow::Result<Map<String, Value>> {
        let value = self.kind.value_of(&self.path, old).context("the entry cannot be read")?;
        value.as_object().cloned().context("the entry cannot be read")
    }

    /// The entry of its bridge.
    ///
    /// # Errors
    /// The server's entry cannot be read.
    pub(super) fn bridge(&self, program: &str) -> anyhow::Result<Map<String, Value>> {
        // Secrets say how the server is started, so that their values make no difference.
        let old = self.members(&self.old.filled(&|name| Some(name.to_owned()))?)?;
        let client = PLACES.iter().find(|place| place.name == self.place).and_then(|place| place.client);
        Ok(bridge(client, program, &self.source, settings(&Value::Object(old))))
    }

    /// Takes those settings into the server's entry that differ in its bridge's, which is `there`, from the ones that setup
    /// wrote; returns their names.
    ///
    /// # Errors
    /// As [`ChangedEntry::bridge`].
    pub(super) fn take_settings(&self, old: &mut Map<String, Value>, there: &Value) -> anyhow::Result<Vec<String>> {
        let (wrote, now) = (settings(&Value::Object(self.bridge("")?)), settings(there));
        let names: BTreeSet<&String> = wrote.keys().chain(now.keys()).collect();
        let changed = names.into_iter().filter(|name| wrote.get(*name) != now.get(*name));
        let changed: Vec<String> = changed.cloned().collect();
        for name in &changed {
            match now.get(name) {
                Some(value) => _ = old.insert(name.clone(), value.clone()),
                None => _ = old.shift_remove(name),
            }
        }
        Ok(changed)
    }
}
