//! The profiles of MCP clients, as a running daemon knows them.

use serde_json::Value;
use toold_client::{Client, ClientError};
use toold_proto::daemon::NoParams;
use toold_proto::mcp::{ALL_TOOLS, WITHOUT_FILES_AND_SHELL, is_profile_name};
use toold_proto::method::DaemonGetConfig;
use toold_proto::nearest::nearest;

use crate::connection;
use crate::exit::{not_found, usage};
use crate::globals::Globals;

/// The names of the built-in profiles and those of the configuration.
pub(crate) async fn names(client: &Client) -> Result<Vec<String>, ClientError> {
    let config = client.call::<DaemonGetConfig>(NoParams {}).await?;
    let configured = config.entries.into_iter().find(|entry| entry.key == "mcp.profiles").map(|entry| entry.value);
    let configured = match configured {
        Some(Value::Object(profiles)) => profiles.into_iter().map(|(name, _)| name).collect(),
        _ => Vec::new(),
    };
    Ok([ALL_TOOLS, WITHOUT_FILES_AND_SHELL].map(str::to_owned).into_iter().chain(configured).collect())
}

/// # Errors
/// The name cannot be that of a profile, or a daemon runs that knows no such profile. Starts no daemon.
pub(crate) async fn check_with_daemon(name: &str, globals: &Globals) -> anyhow::Result<()> {
    if !is_profile_name(name) {
        return Err(usage(format!(
            "{name:?} is not the name of a profile: expected [a-z][a-z0-9_-]*, with 64 characters at most"
        )));
    }
    let Ok(client) = Client::connect(&connection::socket(globals)?).await else { return Ok(()) };
    check(name, &names(&client).await?)
}

/// # Errors
/// It is none of these.
pub(crate) fn check(name: &str, known: &[String]) -> anyhow::Result<()> {
    if known.iter().any(|known| known == name) {
        return Ok(());
    }
    Err(not_found(match nearest(name, known.iter().map(String::as_str)) {
        Some(near) => format!("there is no profile {name}: did you mean {near}?"),
        None => format!("there is no profile {name}: the profiles are {}", known.join(", ")),
    }))
}
