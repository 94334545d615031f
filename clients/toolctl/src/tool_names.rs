//! Names of tools on the command line.

use toold_client::Client;
use toold_proto::call::ListTools;
use toold_proto::method::ToolsList;
use toold_proto::nearest::nearest;

use crate::exit::not_found;

/// # Errors
/// One of these is neither the name of a tool nor a pattern; the message has the nearest name.
pub(crate) async fn check(client: &Client, named: &[String]) -> anyhow::Result<()> {
    if named.is_empty() {
        return Ok(());
    }
    let tools = client.call::<ToolsList>(ListTools::default()).await?.tools.unwrap_or_default();
    let exists = |name: &String| tools.iter().any(|tool| tool.name.as_str() == name);
    let is_pattern = |name: &String| name.contains(['*', '?', '[', '{']);
    let Some(unknown) = named.iter().find(|name| !is_pattern(name) && !exists(name)) else { return Ok(()) };
    Err(not_found(match nearest(unknown, tools.iter().map(|tool| tool.name.as_str())) {
        Some(near) => format!("there is no tool {unknown}: did you mean {near}?"),
        None => format!("there is no tool {unknown}; `toolctl list` shows all"),
    }))
}
