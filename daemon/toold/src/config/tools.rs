//! `[tools]` of the configuration: tools that are disabled, renamed or pinned.

pub mod provided_names;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::Deserialize;
use toml::Spanned;
use toold_builtins::toolkit::Toolkit;
use toold_engine::meta_tools;
use toold_engine::registry::SourceScope;
use toold_engine::tool_settings::{ToolPattern, ToolRename, ToolSettings};
use toold_host::files;
use toold_mounts::names::prefix;
use toold_proto::nearest::did_you_mean;
use toold_proto::tool::ToolName;

use crate::config::mcp_servers::{McpClientConfig, McpConfig};
use crate::config::options::Options;
use crate::config::read::ConfigText;
use crate::config::{self, LoadedConfig, bundled, mcp_servers, plugins};

/// `[tools]`: single tools of any source. All keys use a tool's own name, which it has without this section, as rules,
/// grants, hooks and the audit log do.
#[derive(Clone, Debug, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct ToolsConfig {
    /// Tools that are neither listed nor callable, as globs over their names.
    #[cfg_attr(test, schemars(with = "Vec<String>"))]
    pub disable: Vec<Spanned<String>>,
    /// New names of tools. A tool is listed and called by its new name alone.
    #[cfg_attr(test, schemars(with = "BTreeMap<String, String>"))]
    pub rename: BTreeMap<String, Spanned<String>>,
    /// The tools of the short list (`listing = "deferred"`), as globs over their names. When absent, the built-in tools that
    /// an agent uses at each step: bash, edit, glob, grep, list, read, todo, write.
    #[cfg_attr(test, schemars(with = "Option<Vec<String>>"))]
    pub pinned: Option<Vec<Spanned<String>>>,
}

/// The settings and the errors in them, as sentences for the user.
#[derive(Default)]
pub(super) struct ReadToolSettings {
    pub(super) settings: ToolSettings,
    /// Warnings about tools that should be disabled, but are not.
    pub(super) grave: Vec<String>,
    pub(super) others: Vec<String>,
}

/// The own names of the built-in tools.
pub(super) fn builtin_names(options: &Options) -> Vec<ToolName> {
    let toolkit = Toolkit::new(options.of_children(), options.paths.of_builtins()).into();
    let mut names: Vec<ToolName> = toold_builtins::all(&toolkit).iter().map(|tool| tool.spec().name.clone()).collect();
    names.extend(ToolName::parse("skill"));
    names
}

/// Reads `[tools]`, and the lists that clients get. `builtins` is asked only if names are in question.
pub(super) fn read_settings(
    config: &ToolsConfig,
    mcp: &McpConfig,
    source: &ConfigText,
    builtins: impl FnOnce() -> Vec<ToolName>,
) -> ReadToolSettings {
    let mut read = ReadToolSettings::default();
    let of_profile = |client: &McpClientConfig| mcp.profiles.get(client.profile.as_ref()?.get_ref())?.listing;
    let listing = |client: &McpClientConfig| of_profile(client).or(client.listing);
    let clients = mcp.clients.iter().filter_map(|(name, client)| Some((name.clone(), listing(client)?)));
    read.settings.clients = clients.collect();
    let pattern = |key: &str, glob: &Spanned<String>| {
        let place = source.place(Some(glob.span()));
        ToolPattern::new(glob.get_ref(), &place).map_err(|error| format!("{place}: tools.{key}: {error}"))
    };
    for glob in &config.disable {
        match pattern("disable", glob) {
            Ok(pattern) => read.settings.disabled.push(pattern),
            Err(problem) => read.grave.push(problem),
        }
    }
    if let Some(pinned) = &config.pinned {
        read.settings.pinned.clear();
        for glob in pinned {
            match pattern("pinned", glob) {
                Ok(pattern) => read.settings.pinned.push(pattern),
                Err(problem) => read.others.push(problem),
            }
        }
    }
    let builtins = if config.rename.is_empty() { Vec::new() } else { builtins() };
    for (own, to) in &config.rename {
        let place = source.place(Some(to.span()));
        match read_rename(config, &read.settings, &builtins, own, to.get_ref()) {
            Ok((own, to)) => _ = read.settings.renamed.insert(own, ToolRename { to, origin: place }),
            Err(problem) => read.others.push(format!("{place}: tools.rename: {problem}")),
        }
    }
    read
}

fn read_rename(
    config: &ToolsConfig,
    settings: &ToolSettings,
    builtins: &[ToolName],
    own: &str,
    to: &str,
) -> Result<(ToolName, ToolName), String> {
    let name = |text: &str| ToolName::parse(text).map_err(|error| error.to_string());
    let (own, to) = (name(own)?, name(to)?);
    if own == to {
        return Err(format!("{own} has this name already"));
    }
    if let Some(pattern) = settings.disables(&own) {
        return Err(format!("{own} is disabled by {:?} in tools.disable ({})", pattern.text, pattern.origin));
    }
    if [meta_tools::SEARCH, meta_tools::CALL].contains(&to.as_str()) {
        return Err(format!("{to} is the name of a tool that finds and calls others: choose another name for {own}"));
    }
    let twin = settings.renamed.iter().find(|(_, rename)| rename.to == to);
    if let Some((twin, rename)) = twin {
        return Err(format!("{twin} is called {to} already ({}): choose another name for {own}", rename.origin));
    }
    let makes_way = config.rename.contains_key(to.as_str()) || settings.disables(&to).is_some();
    if builtins.contains(&to) && !makes_way {
        return Err(format!(
            "a built-in tool is called {to}: choose another name for {own}, or rename or disable that tool too"
        ));
    }
    Ok((own, to))
}

/// The errors of names that no tool has, as far as that is known without a daemon. Reads folders.
pub(super) fn unmatched(options: &Options, loaded: &LoadedConfig) -> Vec<String> {
    let (config, settings) = (&loaded.config.tools, &loaded.tools);
    let pinned = settings.pinned.iter().filter(|_| config.pinned.is_some()).map(|pattern| ("pinned", pattern));
    let patterns: Vec<(&str, &ToolPattern)> =
        settings.disabled.iter().map(|pattern| ("disable", pattern)).chain(pinned).collect();
    if patterns.is_empty() && settings.renamed.is_empty() {
        return Vec::new();
    }
    let known = KnownNames::find(options, loaded);
    let mut problems = Vec::new();
    let mut report = |key: &str, text: &str, place: &str| {
        let new_name = settings.renamed.iter().find(|(_, rename)| rename.to.as_str() == text);
        let hint = match new_name {
            Some((own, _)) => format!(": it is the new name of {own}, which this section calls {own}"),
            None => did_you_mean(text, known.names.iter().map(String::as_str)),
        };
        problems.push(format!("{place}: tools.{key}: no tool is called {text}{hint}"));
    };
    for (key, pattern) in patterns {
        if !known.names.iter().any(|name| pattern.matches(name)) && !known.may_be_of_server(&pattern.text) {
            report(key, &pattern.text, &pattern.origin);
        }
    }
    for (own, rename) in &settings.renamed {
        if !known.names.contains(own.as_str()) && !known.may_be_of_server(own.as_str()) {
            report("rename", own.as_str(), &rename.origin);
        }
    }
    problems
}

/// The names of tools that are known without a daemon.
pub(super) struct KnownNames {
    pub(super) names: BTreeSet<String>,
    /// Beginnings of the names of the tools of servers and other daemons.
    prefixes: Vec<String>,
}

impl KnownNames {
    pub(super) fn find(options: &Options, loaded: &LoadedConfig) -> Self {
        let mut names: BTreeSet<String> = builtin_names(options).iter().map(ToolName::to_string).collect();
        let mut folders = plugins::dirs(options, loaded);
        folders.push(bundled::folder(&options.paths));
        folders.iter().for_each(|folder| names_in(folder, &mut names, 0));
        names.extend(bundled::sources().flat_map(names_of));
        names.extend(provided_names::read(&options.paths));
        let home = options.paths.home.as_deref();
        let servers = mcp_servers::mounts(&loaded.config.mcp, &SourceScope::Global, home, &|_| None).servers;
        let fleet = &loaded.config.fleet;
        let of_fleet = fleet.daemons.keys().chain(fleet.use_labels.keys());
        let mounted = servers.iter().map(|server| &server.name).chain(loaded.config.remotes.keys()).chain(of_fleet);
        Self { names, prefixes: mounted.map(|name| prefix(name)).collect() }
    }

    /// Whether the text can match a tool of a server: `*` matches some, as does `git*` if there is a server `github`.
    pub(super) fn may_be_of_server(&self, text: &str) -> bool {
        let literal = &text[..text.find(['*', '?', '[', '{']).unwrap_or(text.len())];
        let is_open = literal.len() < text.len();
        self.prefixes.iter().any(|prefix| literal.starts_with(prefix) || is_open && prefix.starts_with(literal))
    }
}

/// How deep the files of a plugin may lie.
const MAX_DEPTH: usize = 4;

/// The names in the Lua files of a folder, or of the file itself.
fn names_in(place: &Path, names: &mut BTreeSet<String>, depth: usize) {
    let Ok(entries) = place.read_dir() else {
        if place.extension().is_some_and(|extension| extension == "lua" || extension == "luau") {
            names.extend(files::read_text(place, config::MAX_BYTES).iter().flat_map(|text| names_of(text)));
        }
        return;
    };
    if depth < MAX_DEPTH {
        entries.flatten().for_each(|entry| names_in(&entry.path(), names, depth + 1));
    }
}

/// The texts after `name =` in a script: without running it, these are the names that its tools can have.
fn names_of(script: &str) -> Vec<String> {
    let assigned = script.match_indices("name").filter_map(|(at, word)| {
        let value = script[at + word.len()..].trim_start().strip_prefix('=')?.trim_start();
        let quote = value.chars().next().filter(|quote| ['"', '\''].contains(quote))?;
        value[1..].split(quote).next()
    });
    assigned.filter(|text| ToolName::parse(text).is_ok()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_tools_are_found_in_a_script() {
        let script =
            "hygge.register_tool{name = \"greet\", label='Name = x'}\nlocal name='other_one'; name == 'no'; name = f()";
        assert_eq!(names_of(script), ["greet", "other_one"]);
    }

    #[test]
    fn patterns_may_match_tools_of_servers_that_are_not_connected() {
        let known = KnownNames { names: BTreeSet::new(), prefixes: vec!["github_".to_owned()] };
        for (text, may) in [("github_x", true), ("git*", true), ("*", true), ("github", false), ("gitlab_*", false)] {
            assert_eq!(known.may_be_of_server(text), may, "{text}");
        }
    }
}
