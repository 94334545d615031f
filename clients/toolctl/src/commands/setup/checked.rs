//! The daemon's check of a configuration that is not written to a file yet.

use anyhow::Context;
use toml::Table;

use crate::config_file::replace_own;
use crate::program;

/// Why toold does not take this configuration; `None` if it does.
///
/// # Errors
/// There is no `toold`, or no place for a file that it checks.
pub(super) async fn refusal(configuration: &Table) -> anyhow::Result<Option<String>> {
    if configuration.is_empty() {
        return Ok(None);
    }
    let file = std::env::temp_dir().join(format!("toold-setup-{}.toml", std::process::id()));
    replace_own(&file, &toml::to_string(configuration)?)?;
    let wrong = program::errors(&["config".as_ref(), "check".as_ref(), "--".as_ref(), file.as_ref()]).await;
    std::fs::remove_file(&file).with_context(|| format!("can't remove {}", file.display()))?;
    Ok(wrong?.map(|wrong| without_place(&wrong)))
}

/// The first line without the place in the file and the key, which are not those of a person's file.
fn without_place(wrong: &str) -> String {
    let line = wrong.lines().next().unwrap_or_default();
    line.rsplit(": ").next().unwrap_or(line).to_owned()
}
