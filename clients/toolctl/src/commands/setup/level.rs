//! The level of permissions, which a person is asked for once if the configuration knows levels.

use std::path::Path;

use anyhow::Context;
use inquire::Select;
use inquire::list_option::ListOption;
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
    let labels: Vec<String> = levels.iter().map(|(level, about)| format!("{level:<9}{about}")).collect();
    if is_set || levels.is_empty() || !keys::has_terminal() {
        return Ok(None);
    }
    terminal::guard()?;
    let current = property["default"].as_str().unwrap_or_default();
    let at = levels.iter().position(|(level, _)| *level == current).unwrap_or(0);
    let chosen = |option: ListOption<&String>| option.value.split("  ").next().unwrap_or_default().to_owned();
    let prompt = Select::new("What may agents do without asking?", labels).with_formatter(&chosen);
    // Space ticks in the lists before this one, and would leave none of the levels here.
    let prompt = prompt.without_filtering().with_starting_cursor(at);
    let prompt = prompt.with_help_message("each frees what those above it free, too; toolctl level --explain shows it");
    match terminal::answered(prompt.raw_prompt())? {
        // Also the one that holds without being set, so that a later setup does not ask again.
        Some(chosen) => Ok(levels.get(chosen.index).map(|(level, _)| (*level).to_owned())),
        None => Err(interrupted("nothing is changed")),
    }
}

/// The texts that a schema permits, in its order, each with its description.
fn values(schema: &Value) -> Vec<(&str, &str)> {
    let about = schema["description"].as_str().unwrap_or_default().trim_end_matches('.');
    let listed = schema.get("const").and_then(Value::as_str).map(|value| (value, about));
    let forms = ["anyOf", "oneOf"].into_iter().filter_map(|name| schema[name].as_array()).flatten();
    listed.into_iter().chain(forms.flat_map(values)).collect()
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
