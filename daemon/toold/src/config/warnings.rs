//! Settings that have no effect now but may have one later: `config check` reports them, but not as
//! errors.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use toold_engine::policy::Rule;
use toold_engine::policy::pattern::Pattern;
use toold_engine::registry::SourceScope;
use toold_host::files;
use toold_host::shell_grammar::{uncovered, withheld};
use toold_proto::agent_names::agent_named;
use toold_proto::level::Level;
use toold_proto::nearest::did_you_mean;
use toold_proto::permission::Verdict;
use toold_proto::tool::{Category, SourceKind};

use crate::config::agent_programs;
use crate::config::agents;
use crate::config::bundled;
use crate::config::mcp_profiles::{GlobSubject, ProfileGlob};
use crate::config::mcp_servers;
use crate::config::options::Options;
use crate::config::plugins;
use crate::config::read::ConfigText;
use crate::config::tools::KnownNames;
use crate::config::{self, LoadedConfig};

/// Sentences for the user, with locations. Reads folders.
pub(super) fn warnings(options: &Options, loaded: &LoadedConfig) -> Vec<String> {
    let rules = loaded.policy.rules.iter();
    let of_rules = rules.clone().flat_map(of_rule);
    let of_agents = agents::warnings(&loaded.entries);
    let of_others = of_plugins(options, loaded).into_iter().chain(of_profiles(options, loaded)).chain(of_agents);
    of_rules.chain(of_servers(options, loaded, rules)).chain(of_others).collect()
}

/// Levels of agents and profiles that are above the user's, and only lower that.
pub(super) fn of_levels(source: &ConfigText, options: &Options, loaded: &LoadedConfig) -> Vec<String> {
    let LoadedConfig { config, policy, .. } = loaded;
    let (user, programs) = (policy.levels.user, agent_programs::load(&options.paths.agent_programs()));
    let mut found = Vec::new();
    for (name, level) in
        policy.levels.agents.iter().filter(|(name, level)| *level > user && !programs.agents.contains_key(name))
    {
        let how = match agent_named(name) {
            Some(_) => format!(", unless `toolctl agents install {name}` has recorded the agent's program"),
            None => String::new(),
        };
        let words = format!("agents.{name}.level: {level} has no effect: it only lowers yours, which is {user}{how}");
        found.push(format!("{}: warning: {words}", source.place_of(&["agents", name, "level"])));
    }
    for (name, profile) in &config.mcp.profiles {
        let Some(level) = profile.level.filter(|level| *level > user) else { continue };
        let words = format!("mcp.profiles.{name}.level: {level} has no effect: it only lowers yours, which is {user}");
        found.push(format!("{}: warning: {words}", source.place_of(&["mcp", "profiles", name, "level"])));
    }
    found
}

/// A level of a project that is above each one that counts for the user.
pub(super) fn of_project_level(source: &ConfigText, level: Option<Level>, options: &Options) -> Option<String> {
    let levels = config::load(options).policy.levels;
    let programs = agent_programs::load(&options.paths.agent_programs());
    let of_agents =
        levels.agents.iter().filter(|(name, _)| programs.agents.contains_key(name)).map(|(_, level)| *level);
    let highest = of_agents.fold(levels.user, Level::max);
    let level = level.filter(|level| *level > highest)?;
    let words = format!("permission.level: {level} has no effect: a project only lowers yours, which is {highest}");
    Some(format!("{}: warning: {words}", source.place_of(&["permission", "level"])))
}

/// The same for one rule.
pub(super) fn of_rule(rule: &Rule) -> Vec<String> {
    let cwd = rule.cwd.as_deref().filter(|cwd| !cwd.is_dir());
    let no_folder = |folder: &Path| format!("there is no folder {}, so the rule matches no call yet", folder.display());
    // One that denies may be for a folder that is to come.
    let files = folder_of(rule).filter(|folder| rule.action == Verdict::Allow && !folder.is_dir());
    let meant = of_pattern(rule.category, &rule.pattern, rule.action);
    let all = cwd.map(no_folder).into_iter().chain(files.as_deref().map(no_folder)).chain(meant);
    all.map(|words| format!("{}: warning: {words}", rule.origin)).collect()
}

/// What a pattern probably means and does not, in words, for a rule as for a grant.
pub fn of_pattern(category: Category, pattern: &Pattern, action: Verdict) -> Vec<String> {
    let meant = pattern.otherwise_meant(action != Verdict::Allow);
    let meant = meant.map(|why| format!("{} {:?}: {why}", action.as_str(), pattern.as_str()));
    let uncovered = uncovered_by(category, pattern.as_str(), action);
    meant.into_iter().chain(uncovered).chain(withheld_by(category, pattern.as_str(), action)).collect()
}

/// Why a pattern that allows commands covers none of them, or is about an operation that the program may not have.
fn uncovered_by(category: Category, pattern: &str, action: Verdict) -> Option<String> {
    let found = (category == Category::Shell).then(|| uncovered(pattern))??;
    let (why, near) = (&found.why, &found.near);
    let shown = format!("{} {pattern:?}", action.as_str());
    match action {
        Verdict::Allow => Some(format!(
            "{shown} covers no command, since {why}, and a rule with a wildcard covers only what is known: write each \
             command that you mean in full, without a wildcard{near}"
        )),
        // It counts by its words.
        Verdict::Ask | Verdict::Deny if near.is_empty() => None,
        Verdict::Ask | Verdict::Deny => Some(format!("{shown}: {why}{near}")),
    }
}

/// The operations that a pattern which allows commands seems to cover and does not, with the patterns that add them.
fn withheld_by(category: Category, pattern: &str, action: Verdict) -> Option<String> {
    const SHOWN: usize = 8;
    let allows = category == Category::Shell && action == Verdict::Allow;
    let withheld = allows.then(|| withheld(pattern)).filter(|withheld| !withheld.is_empty())?;
    let named: Vec<String> =
        withheld.iter().take(SHOWN).map(|(operation, effect)| format!("`{operation} *` ({effect})")).collect();
    let more = withheld.len().saturating_sub(SHOWN);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    Some(format!("allow {pattern:?} does not cover {}{more}: add a rule for each one that you mean", named.join(", ")))
}

/// The folder that all files of a rule lie in, as far as its pattern says.
fn folder_of(rule: &Rule) -> Option<PathBuf> {
    let of_files = matches!(rule.category, Category::FileRead | Category::FileWrite);
    let pattern = of_files.then(|| rule.pattern.as_str())?;
    let folder = match pattern.find(['*', '?', '[', '{', '\\']) {
        Some(wildcard) => pattern.split_at_checked(wildcard)?.0.rsplit_once('/')?.0,
        None => pattern.rsplit_once('/')?.0,
    };
    (!folder.is_empty()).then(|| folder.into())
}

/// Rules for the tools of servers that are not mounted.
fn of_servers<'r>(options: &Options, loaded: &LoadedConfig, rules: impl Iterator<Item = &'r Rule>) -> Vec<String> {
    let mounted =
        mcp_servers::mounts(&loaded.config.mcp, &SourceScope::Global, options.paths.home.as_deref(), &|_| None);
    let remotes = loaded.config.remotes.keys().map(|name| format!("remote:{name}"));
    let fleet = &loaded.config.fleet;
    let of_fleet = fleet.daemons.keys().chain(fleet.use_labels.keys()).map(|name| format!("fleet:{name}"));
    let servers = mounted.servers.into_iter().map(|server| server.name);
    let known: Vec<String> = servers.chain(remotes).chain(of_fleet).collect();
    let mut found = Vec::new();
    for rule in rules.filter(|rule| rule.category == Category::Mcp) {
        let Some((server, _)) = rule.pattern.as_str().split_once('/') else { continue };
        // A wildcard may match a server of a project.
        if server.contains(['*', '?', '[', '{']) || known.iter().any(|known| known == server) {
            continue;
        }
        let near = did_you_mean(server, known.iter().map(String::as_str));
        let missing = match server.split_once(':') {
            Some(("fleet", name)) => format!("daemon or label {name} of the fleet"),
            Some(("remote", name)) => format!("remote daemon {name}"),
            _ => format!("MCP server {server}"),
        };
        let words = format!("there is no {missing} now, so the rule matches no call yet{near}");
        found.push(format!("{}: warning: {words}", rule.origin));
    }
    found
}

/// The names of all plugins, as far as their files say. Reads folders.
fn plugin_names(options: &Options, loaded: &LoadedConfig) -> Vec<String> {
    let mut folders = plugins::dirs(options, loaded);
    folders.push(bundled::folder(&options.paths));
    let mut known: Vec<String> = folders.iter().flat_map(|folder| names_in(folder)).collect();
    known.extend(bundled::names().map(str::to_owned));
    known
}

fn of_plugins(options: &Options, loaded: &LoadedConfig) -> Vec<String> {
    let known = plugin_names(options, loaded);
    let config = &loaded.config.plugins;
    let mut found = Vec::new();
    for (key, names) in [("disabled", &config.disabled), ("bundled", &config.bundled)] {
        let key = format!("plugins.{key}");
        let place = loaded.entries.iter().find(|entry| entry.key == key).map_or("", |entry| entry.origin.as_str());
        for name in names.iter().filter(|name| !known.contains(*name)) {
            let near = did_you_mean(name, known.iter().map(String::as_str));
            found.push(format!("{place}: warning: {key}: there is no plugin {name} now{near}"));
        }
    }
    found
}

/// Globs of profiles that match no tool and no source now. Those of a project, or of a frontend, may match later.
fn of_profiles(options: &Options, loaded: &LoadedConfig) -> Vec<String> {
    if loaded.profile_globs.is_empty() {
        return Vec::new();
    }
    let tools = KnownNames::find(options, loaded);
    let sources = source_names(options, loaded);
    let mut found = Vec::new();
    for ProfileGlob { key, over, pattern } in &loaded.profile_globs {
        let (what, known) = match over {
            GlobSubject::Tools if tools.may_be_of_server(&pattern.text) => continue,
            GlobSubject::Tools => ("tool", &tools.names),
            GlobSubject::Sources => ("source", &sources),
        };
        if !known.iter().any(|name| pattern.matches(name)) {
            let near = did_you_mean(&pattern.text, known.iter().map(String::as_str));
            let (place, text) = (&pattern.origin, &pattern.text);
            found.push(format!("{place}: warning: {key}: there is no {what} {text} now{near}"));
        }
    }
    found
}

/// The kinds and names of sources.
fn source_names(options: &Options, loaded: &LoadedConfig) -> BTreeSet<String> {
    let home = options.paths.home.as_deref();
    let servers = mcp_servers::mounts(&loaded.config.mcp, &SourceScope::Global, home, &|_| None).servers;
    let kinds = SourceKind::ALL.map(|kind| kind.as_str().to_owned()).into_iter();
    let fleet = loaded.config.fleet.daemons.keys().chain(loaded.config.fleet.use_labels.keys());
    let others = loaded.config.remotes.keys().chain(fleet).cloned();
    let mounted = servers.into_iter().map(|server| server.name).chain(others);
    kinds.chain(mounted).chain(plugin_names(options, loaded)).collect()
}

/// The names of the plugins in a folder, or at the path itself, as far as their files say.
fn names_in(place: &Path) -> Vec<String> {
    let stem = |path: &Path| Some(path.file_stem()?.to_str()?.to_owned());
    let Ok(entries) = place.read_dir() else { return stem(place).into_iter().collect() };
    let mut names: Vec<String> = name_of(place).into_iter().collect();
    for entry in entries.flatten() {
        names.extend(stem(&entry.path()));
        names.extend(name_of(&entry.path()));
    }
    names
}

/// The name of the plugin in a folder with a `plugin.toml`.
fn name_of(folder: &Path) -> Option<String> {
    let manifest: toml::Table = files::read_text(&folder.join("plugin.toml"), super::MAX_BYTES).ok()?.parse().ok()?;
    manifest.get("name").and_then(toml::Value::as_str).map(str::to_owned)
}
