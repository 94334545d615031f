//! Mistakes in MCP servers, other daemons and the fleet of a configuration. The daemon runs without those, so they make
//! nothing else invalid; `config check` names them all.

use toold_engine::registry::SourceScope;

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
    for mistake in fleet_settings::mistakes(&config.fleet, options) {
        let keys: Vec<&str> = mistake.keys.iter().map(String::as_str).collect();
        problems.push(format!("{}: {mistake}", source.place_of(&keys)));
    }
    let imported = mcp_servers::mounts(&config.mcp, &SourceScope::Global, home, &var).problems;
    let place = source.place_of(&["mcp", "import"]);
    problems.extend(imported.into_iter().map(|why| format!("{place}: mcp.import: {why}")));
    (problems, warnings)
}
