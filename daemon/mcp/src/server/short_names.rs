//! Names of tools that leave room for the prefix that hosts put before them, such as `mcp__toold__`: the APIs of models
//! accept 64 characters in all.

use toold_engine::callable::Callable;
use toold_engine::session::Session;

use crate::server::McpClientServer;

/// The length of names, when the configuration does not say for the client.
const USUAL: usize = 52;
/// The characters of a hash, which tells shortened names apart.
const HASH: usize = 8;

/// The length of names for a client that reports this name.
pub(super) fn limit(server: &McpClientServer, client: Option<&str>) -> usize {
    client.and_then(|client| server.mcp.host.client(client).name_length).unwrap_or(USUAL)
}

/// The name that a client is listed in place of one that is longer.
pub(super) fn shortened(name: &str, limit: usize) -> Option<String> {
    if name.len() <= limit {
        return None;
    }
    let mark = &blake3::hash(name.as_bytes()).to_hex()[..HASH];
    let head: String = name.chars().take(limit.saturating_sub(HASH + 1)).collect();
    Some(format!("{}_{mark}", head.trim_end_matches('_')))
}

/// The name here of the tool that the session's client knows by this shortened name.
pub(super) fn of_shortened(server: &McpClientServer, session: &Session, name: &str, limit: usize) -> Option<String> {
    let snapshot = server.mcp.engine().registry.snapshot();
    let is_alone = session.filter.only_source().is_some();
    let is_meant = |tool: &dyn Callable| {
        let listed = tool.upstream_name().filter(|_| is_alone).unwrap_or(tool.spec().name.as_str());
        session.filter.allows(tool.own_name(), tool.spec()) && shortened(listed, limit).as_deref() == Some(name)
    };
    let mut tools = snapshot.view(session.project()).iter();
    let tool = tools.find(|tool| is_meant(tool.as_ref()))?;
    Some(tool.spec().name.as_str().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_too_long_stay_apart() {
        let name = |last: &str| format!("{}{last}", "x".repeat(60));
        let (one, other) = (shortened(&name("a"), USUAL).unwrap(), shortened(&name("b"), USUAL).unwrap());
        assert!(one != other && one.len() == USUAL && other.len() == USUAL, "{one} {other}");
        assert_eq!(shortened(&"x".repeat(USUAL), USUAL), None);
        assert!(shortened(&"日".repeat(60), 24).unwrap().chars().count() <= 24);
    }
}
