//! Mistakes in MCP servers, other daemons and the fleet of a configuration. The daemon runs without those, so they make
//! nothing else invalid; `config check` names them all.

use std::collections::BTreeMap;

use toold_engine::registry::SourceScope;
use toold_mcp::client::endpoint::ServerEndpoint;
use toold_mounts::names::prefix;

use crate::config::build_features::unused_sections;
use crate::config::mcp_servers::{self, expand};
use crate::config::options::Options;
use crate::config::read::ConfigText;
use crate::config::{Config, fleet_settings, remotes};

/// A mistake, and the key that it is in, if it is in one.
pub(super) type Mistake = (Option<&'static str>, String);

/// Problems and warnings, with their places. A variable that is not set here may be set for the daemon.
pub(super) fn of(config: &Config, source: &ConfigText, options: &Options) -> (Vec<String>, Vec<String>) {
    let home = options.paths.home.as_deref();
    let var = |name: &str| options.variable(name);
    let id_url = config.mcp.oauth.client_id_url.as_deref();
    let mut found: Vec<(Vec<&str>, Mistake)> = Vec::new();
    for (name, server) in &config.mcp.servers {
        let mistakes = mcp_servers::mistakes(name, server, home, &var, id_url);
        found.extend(mistakes.into_iter().map(|mistake| (vec!["mcp", "servers", name], mistake)));
    }
    for (name, section) in &config.remotes {
        let mistakes = remotes::mistakes(name, section, home);
        found.extend(mistakes.into_iter().map(|mistake| (vec!["remotes", name], mistake)));
    }
    let (mut problems, mut warnings) = (Vec::new(), Vec::new());
    for (mut keys, (key, why)) in found {
        let name = keys.join(".");
        keys.extend(key);
        let place = source.place_of(&keys);
        match expand::is_about_variable(&why) {
            true => warnings.push(format!("{place}: warning: {name}: {why}")),
            false => problems.push(format!("{place}: {name}: {why}")),
        }
    }
    for (section, why) in unused_sections(config) {
        warnings.push(format!("{}: warning: {why}", source.place_of(&[section])));
    }
    for mistake in fleet_settings::mistakes(&config.fleet, options) {
        let keys: Vec<&str> = mistake.keys.iter().map(String::as_str).collect();
        problems.push(format!("{}: {mistake}", source.place_of(&keys)));
    }
    let imported = mcp_servers::mounts(&config.mcp, &SourceScope::Global, home, &var);
    for server in &imported.servers {
        if let ServerEndpoint::Unusable { why } = &server.endpoint
            && !config.mcp.servers.contains_key(&server.name)
        {
            let place = source.place_of(&["mcp", "import"]);
            warnings.push(format!("{place}: warning: the imported MCP server {} cannot be used: {why}", server.name));
        }
    }
    let servers = imported.servers.iter().map(|server| ("MCP server", &server.name));
    let others: BTreeMap<String, &str> = config
        .remotes
        .keys()
        .map(|name| ("remote daemon", name))
        .chain(servers)
        .map(|(kind, name)| (prefix(name), kind))
        .collect();
    let daemons = config
        .fleet
        .daemons
        .iter()
        .filter(|(name, section)| section.enabled && config.fleet.name.as_ref().is_some_and(|own| own != *name));
    let labels = config.fleet.use_labels.keys().map(|name| ("use_labels", name));
    for (table, name) in daemons.map(|(name, _)| ("daemons", name)).chain(labels) {
        if let Some(kind) = others.get(&prefix(name)) {
            let place = source.place_of(&["fleet", table, name]);
            let why = format!("there is a {kind} whose tools are called {}... too", prefix(name));
            problems.push(format!("{place}: fleet.{table}.{name}: {why}: rename that one"));
        }
    }
    let place = source.place_of(&["mcp", "import"]);
    problems.extend(imported.problems.into_iter().map(|why| format!("{place}: mcp.import: {why}")));
    (problems, warnings)
}
