//! Secrets and variables that a person gave to plugins: `hygge.secret`, `${secret:NAME}` and `${env:NAME}` in their
//! tables of the configuration, and `auth` of `hygge.http`.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value;
use tokio::runtime::Handle;
use toold_engine::need::Need;
use toold_engine::redact::{clean_hidden, without_hidden};
use toold_engine::registry::SourceScope;
use toold_engine::tool::ToolOutput;
use toold_host::secrets::{SecretStore, is_secret_name};
use toold_proto::tool::{Block, Category};

use crate::plugin::PluginVersion;

/// What plugins may be given of the daemon's own.
#[derive(Clone, Default)]
pub struct PluginValues {
    /// `None` where plugins are loaded without a daemon.
    pub secrets: Option<Arc<SecretStore>>,
    /// All variables of the daemon's process.
    pub variables: HashMap<String, String>,
}

/// A secret that a script may use.
///
/// # Errors
/// The manifest does not declare it.
pub(crate) fn declared(plugin: &PluginVersion, name: &str) -> Result<(), String> {
    if !is_secret_name(name) {
        return Err(format!("{name:?} is not the name of a secret: letters, digits, _, - and ."));
    }
    match plugin.manifest.secrets.iter().any(|known| known == name) {
        true => Ok(()),
        false => {
            Err(format!("the plugin does not declare the secret {name}: add secrets = [\"{name}\"] to its plugin.toml"))
        }
    }
}

/// The permission for a secret: to see it, or to send it to a host and port.
pub(crate) fn need(name: &str, host: Option<&str>) -> Need {
    let (target, reason) = match host {
        Some(host) => (format!("secret:{name}@{host}"), format!("send the secret {name} to {host}")),
        None => (format!("secret:{name}"), format!("read the secret {name}")),
    };
    Need { reason: Some(reason), ..Need::new(Category::Plugin, target) }
}

/// The value of a secret.
///
/// # Errors
/// It is not set, or the secrets cannot be read.
pub(crate) async fn value(plugin: &PluginVersion, name: &str) -> Result<String, String> {
    let Some(store) = &plugin.shared.values.secrets else {
        return Err(format!("there are no secrets without a daemon, so {name} has no value here"));
    };
    let found = store.get(name).await.map_err(|error| error.to_string())?;
    // No colon behind the name: the log would take what follows `GITHUB_TOKEN: ` for a secret.
    found.ok_or_else(|| format!("there is no secret {name}; `toolctl secrets set {name}` sets it"))
}

/// The plugin's table of the configuration with its secrets and variables; what has no value is absent, and `missing` hears
/// why. Blocks.
pub(crate) fn filled_config(plugin: &PluginVersion, missing: &mut impl FnMut(String)) -> Value {
    let mut config = plugin.config();
    fill(plugin, &mut config, missing);
    config
}

fn fill(plugin: &PluginVersion, value: &mut Value, missing: &mut impl FnMut(String)) {
    match value {
        Value::Object(members) => members.retain(|name, member| match member {
            Value::String(text) if text.contains("${") => match filled(plugin, text) {
                Ok(filled) => {
                    *text = filled;
                    true
                }
                Err(why) => {
                    missing(format!("hygge.config.{name} is absent: {why}"));
                    false
                }
            },
            member => {
                fill(plugin, member, missing);
                true
            }
        }),
        Value::Array(items) => items.iter_mut().for_each(|item| match item {
            Value::String(text) if text.contains("${") => match filled(plugin, text) {
                Ok(filled) => *text = filled,
                Err(why) => missing(format!("an element of a list of hygge.config stays as it is: {why}")),
            },
            item => fill(plugin, item, missing),
        }),
        _ => {}
    }
}

/// `${secret:NAME}` and `${env:NAME}`, with a default as in `${env:NAME:-text}`; anything else stands for itself.
fn filled(plugin: &PluginVersion, text: &str) -> Result<String, String> {
    let is_users = plugin.key.scope == SourceScope::Global;
    let (mut made, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once("${") {
        made.push_str(before);
        let Some((inside, behind)) = after.split_once('}') else {
            made.push_str("${");
            rest = after;
            continue;
        };
        rest = behind;
        if let Some(name) = inside.strip_prefix("secret:") {
            if !is_users {
                return Err(format!("a project's configuration gets no secrets: use hygge.secret(\"{name}\")"));
            }
            made.push_str(&in_background(value(plugin, name))?);
        } else if let Some(inside) = inside.strip_prefix("env:") {
            let (name, default) = match inside.split_once(":-") {
                Some((name, default)) => (name, Some(default)),
                None => (inside, None),
            };
            let own = || plugin.shared.environment.get(name).map(|value| value.to_string_lossy().into_owned());
            let all = || plugin.shared.values.variables.get(name).filter(|_| is_users).cloned();
            let found = own().or_else(all).or_else(|| default.map(str::to_owned));
            made.push_str(&found.ok_or_else(|| format!("the daemon's environment has no variable {name}"))?);
        } else {
            made.push_str(&format!("${{{inside}}}"));
        }
    }
    made.push_str(rest);
    Ok(made)
}

/// Lua states are made on threads that may block.
fn in_background<T>(work: impl Future<Output = Result<T, String>>) -> Result<T, String> {
    match Handle::try_current() {
        Ok(handle) => handle.block_on(work),
        Err(_) => Err("secrets cannot be read here".to_owned()),
    }
}

/// The output without the values of secrets.
pub(crate) fn without_secrets(mut output: ToolOutput) -> ToolOutput {
    for block in &mut output.content {
        if let Some(text) = block.as_text() {
            *block = Block::text(without_hidden(text).into_owned());
        }
    }
    let mut metadata = Value::Object(std::mem::take(&mut output.metadata));
    clean_hidden(&mut metadata);
    if let Value::Object(metadata) = metadata {
        output.metadata = metadata;
    }
    output.structured.iter_mut().for_each(|value| _ = clean_hidden(value));
    output
}

/// Whether the plugin was given secrets.
pub(crate) fn knows_secrets(plugin: &PluginVersion) -> bool {
    !plugin.manifest.secrets.is_empty() || plugin.config().to_string().contains("${secret:")
}
