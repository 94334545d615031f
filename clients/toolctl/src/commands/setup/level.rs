//! The level of permissions, which a person is asked for once if the configuration knows levels.

use std::path::Path;

use anyhow::Context;
use inquire::Select;
use serde_json::Value;
use toml_edit::DocumentMut;

use crate::exit::interrupted;
use crate::{config_file, keys, program, terminal};

/// The key of the configuration: `[permission] level`.
const TABLE: &str = "permission";
const KEY: &str = "level";

/// The chosen level; `None` if there are no levels, one is set already, or there is no terminal.
///
/// # Errors
/// The person gave up.
pub(super) async fn ask(config: &Path) -> anyhow::Result<Option<String>> {
    let text = config_file::read(config)?.unwrap_or_default();
    let configured: toml::Table = text.parse().with_context(|| format!("can't read {}", config.display()))?;
    let is_set = configured.get(TABLE).is_some_and(|table| table.get(KEY).is_some());
    let schema = program::text(&["config".as_ref(), "schema".as_ref()]).await?;
    let schema: Value = serde_json::from_str(&schema).context("can't read the schema of the configuration")?;
    let property = &schema["properties"][TABLE]["properties"][KEY];
    let levels = values(property);
    if is_set || levels.is_empty() || !keys::has_terminal() {
        return Ok(None);
    }
    terminal::guard()?;
    let about = property["description"].as_str().unwrap_or("each level frees what those above it free, and more");
    let about = about.replace('\n', " ");
    let current = property["default"].as_str().unwrap_or(levels[0]);
    let at = levels.iter().position(|level| *level == current).unwrap_or(0);
    let prompt = Select::new("What may agents do without asking?", levels);
    // Space ticks in the lists before this one, and would leave none of the levels here.
    let prompt = prompt.without_filtering().with_starting_cursor(at).with_help_message(&about);
    match terminal::answered(prompt.prompt())? {
        // Also the one that holds without being set, so that a later setup does not ask again.
        Some(level) => Ok(Some(level.to_owned())),
        None => Err(interrupted("nothing is changed")),
    }
}

/// The texts that a schema permits, in its order.
fn values(schema: &Value) -> Vec<&str> {
    let listed = schema["enum"].as_array().into_iter().flatten().chain(schema.get("const")).filter_map(Value::as_str);
    let forms = ["anyOf", "oneOf"].into_iter().filter_map(|name| schema[name].as_array()).flatten();
    listed.chain(forms.flat_map(values)).collect()
}

/// The configuration's text with this level.
///
/// # Errors
/// The text is not TOML.
pub(super) fn with_level(text: &str, level: &str) -> anyhow::Result<String> {
    let mut document: DocumentMut = text.parse()?;
    document[TABLE].or_insert(toml_edit::table())[KEY] = toml_edit::value(level);
    Ok(document.to_string())
}
