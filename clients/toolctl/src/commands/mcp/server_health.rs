//! What is wrong with mounted MCP servers, and what to do about each: one diagnosis for `toolctl doctor`, `toolctl mcp
//! doctor`, `toolctl mcp test` and `toolctl status`.

use toold_client::Client;
use toold_proto::daemon::NoParams;
use toold_proto::mcp::{McpLoginState, McpServer, McpServerList, McpServerState};
use toold_proto::method::SecretsList;
use toold_proto::secret::SecretStoreState;

use crate::finding::{Finding, bad, good, warning};
use crate::output::counted;

/// As [`findings`], without advice to set secrets that are set.
pub(crate) async fn diagnosed(client: &Client, list: &McpServerList) -> Vec<Finding> {
    let mut list = list.clone();
    // Where the daemon does not tell, all are named.
    let known = client.call::<SecretsList>(NoParams {}).await.ok();
    let is_locked = known.as_ref().is_some_and(|known| known.state == SecretStoreState::Locked);
    if let Some(known) = known.filter(|_| !is_locked) {
        let is_set = |name: &String| known.secrets.iter().any(|one| one.name == *name && one.is_set == Some(true));
        list.servers.iter_mut().for_each(|server| server.secrets.retain(|name| !is_set(name)));
    }
    all_findings(&list, is_locked)
}

/// The findings of each server, those of failures first. Nothing for servers that are disabled or were not started yet.
pub(crate) fn findings(list: &McpServerList) -> Vec<Finding> {
    all_findings(list, false)
}

fn all_findings(list: &McpServerList, is_locked: bool) -> Vec<Finding> {
    let mut findings: Vec<Finding> = list.servers.iter().filter_map(|server| of_server(server, is_locked)).collect();
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.health));
    findings.extend(list.servers.iter().flat_map(left_out));
    findings
}

/// `is_locked`: the secrets are.
fn of_server(server: &McpServer, is_locked: bool) -> Option<Finding> {
    let McpServer { name, state, .. } = server;
    let login = server.login.as_ref().map(|login| login.state);
    match (state, &server.error, login) {
        (McpServerState::Disabled, _, _) => None,
        (_, Some(error), Some(McpLoginState::Required)) => {
            Some(bad("mcp server", format!("{name}: {error}"), format!("run `toolctl mcp login {name}`")))
        }
        (_, Some(error), Some(McpLoginState::Locked)) => {
            Some(bad("mcp server", format!("{name}: {error}"), "run `toolctl secrets unlock`"))
        }
        (_, Some(error), Some(McpLoginState::LoggedIn) | None) if is_locked && !server.secrets.is_empty() => {
            Some(bad("mcp server", format!("{name}: {error}"), "run `toolctl secrets unlock`"))
        }
        (_, Some(error), Some(McpLoginState::LoggedIn) | None) => {
            Some(bad("mcp server", format!("{name}: {error}"), advice(server)))
        }
        (McpServerState::Failed, None, _) => {
            Some(bad("mcp server", format!("{name}: it does not run"), advice(server)))
        }
        (McpServerState::Running, None, _) => {
            let tools = counted(server.tools.len() as u64, "tool");
            Some(good("mcp server", format!("{name} runs, with {tools}")))
        }
        (McpServerState::Stopped | McpServerState::Starting, None, _) => None,
    }
}

/// For a server that does not start or does not answer.
fn advice(server: &McpServer) -> String {
    let name = &server.name;
    let set: Vec<String> = server.secrets.iter().map(|secret| format!("`toolctl secrets set {secret}`")).collect();
    let secrets = match set.as_slice() {
        [] => String::new(),
        set => format!(", or set a secret that is not set: {}", set.join(", ")),
    };
    let place = match (&server.project, server.transport.as_str()) {
        (Some(_), _) => "with `toolctl config edit --project`",
        (None, _) => "with `toolctl config edit`",
    };
    let what = match server.transport.as_str() {
        "stdio" => "correct its command, args and env",
        "none" => "correct its command or url",
        _ => "check your network, or correct its address",
    };
    let logs = if server.stderr.is_empty() { String::new() } else { format!("see `toolctl mcp logs {name}`; ") };
    format!("{logs}{what} in [mcp.servers.{name}] {place}{secrets}; then run `toolctl mcp test {name}`")
}

fn left_out(server: &McpServer) -> impl Iterator<Item = Finding> + '_ {
    let advice =
        format!("tell the author of the server; to hide the tool, name it in [mcp.servers.{}.tools] deny", server.name);
    server
        .problems
        .iter()
        .map(move |problem| warning("mcp tool", format!("{}: {problem}", server.name), advice.clone()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_failure_has_its_own_advice() {
        let server = |own: serde_json::Value| {
            let mut server = json!({"transport": "stdio", "tools": [], "problems": [], "running": 0, "starts": 1,
                "stderr": [], "calls": 0, "bad_calls": 0, "state": "failed", "error": "why"});
            server.as_object_mut().unwrap().extend(own.as_object().unwrap().clone());
            server
        };
        let list: McpServerList = serde_json::from_value(json!({"servers": [
            server(json!({"name": "fine", "state": "running", "error": null})),
            server(json!({"name": "off", "state": "disabled", "error": null})),
            server(json!({"name": "far", "transport": "http", "login": {"state": "required"}})),
            server(json!({"name": "locked", "transport": "http", "login": {"state": "locked"}})),
            server(json!({"name": "noisy", "stderr": ["x"], "secrets": ["KEY"]})),
            server(json!({"name": "odd", "state": "running", "error": null, "problems": ["t is left out: no schema"]})),
        ]}))
        .unwrap();
        let locked: Vec<_> =
            all_findings(&list, true).into_iter().filter(|finding| finding.message.contains("noisy")).collect();
        assert_eq!(locked[0].advice.as_deref(), Some("run `toolctl secrets unlock`"));
        let mut out = Vec::new();
        crate::finding::show(&findings(&list), &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        insta::assert_snapshot!(anstream::adapter::strip_str(&text).to_string(), @r"
        bad  mcp server  far: why
                         > run `toolctl mcp login far`
        bad  mcp server  locked: why
                         > run `toolctl secrets unlock`
        bad  mcp server  noisy: why
                         > see `toolctl mcp logs noisy`; correct its command, args and env in [mcp.servers.noisy] with `toolctl config edit`, or set a secret that is not set: `toolctl secrets set KEY`; then run `toolctl mcp test noisy`
        ok   mcp server  fine runs, with 0 tools
        ok   mcp server  odd runs, with 0 tools
        warn mcp tool    odd: t is left out: no schema
                         > tell the author of the server; to hide the tool, name it in [mcp.servers.odd.tools] deny
        ");
    }
}
