//! The configuration: the user's `config.toml`, and the overrides from flags and the environment.
//!
//! Read whole or not at all: a file that cannot be read leaves the defaults, and the policy closed.
//! A project's own file is [`project`]; how both are applied is in [`active_config`].

pub mod active_config;
pub(crate) mod agent_programs;
pub mod agents;
pub mod build_features;
pub mod bundled;
pub mod command;
pub mod fleet;
#[cfg(feature = "fleet")]
pub mod fleet_key;
#[cfg_attr(not(feature = "fleet"), path = "config/without_fleet.rs")]
pub mod fleet_settings;
#[doc(hidden)]
pub mod fuzz;
pub mod hooks;
mod kept_state;
pub(crate) mod listen;
pub mod mcp_profiles;
pub mod mcp_servers;
mod mount_mistakes;
mod names;
pub mod notify;
pub mod observing;
pub mod options;
pub mod overrides;
pub mod page;
pub mod paths;
pub mod paused;
pub mod plugin_command;
pub mod plugins;
pub(crate) mod private_file;
pub mod process;
pub mod project;
pub mod project_folder;
pub mod random;
pub mod read;
pub mod remotes;
pub mod sandbox;
pub mod saved_files;
pub mod schema;
pub mod secrets;
pub mod shell;
pub mod show;
pub mod skills;
pub mod strict_rules;
pub mod subagents;
pub mod tools;
pub mod trust;
pub mod warnings;
pub mod watch;
pub mod web;
pub mod workspaces;

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use toml::Spanned;
use toold_engine::Settings;
use toold_engine::hooks::Hook;
use toold_engine::policy::Policy;
use toold_engine::policy::rules::{RuleConfig, RulePlace, rule_mistakes};
use toold_engine::registry::SourceScope;
use toold_engine::tool_settings::ToolSettings;
use toold_host::environment::Environment;
use toold_host::files;
use toold_host::sandbox::SandboxRules;
use toold_proto::config::ConfigEntry;
use toold_proto::level::Level;

use crate::config::agents::AgentsConfig;
use crate::config::fleet::FleetConfig;
use crate::config::hooks::HookConfig;
use crate::config::mcp_profiles::ProfileGlob;
use crate::config::mcp_servers::McpConfig;
use crate::config::notify::NotifyConfig;
use crate::config::options::Options;
use crate::config::overrides::{Overrides, overrides};
use crate::config::page::PageConfig;
use crate::config::paths::DaemonPaths;
use crate::config::process::{DaemonConfig, LogConfig, MetricsConfig, TraceConfig};
use crate::config::read::{ConfigText, ReadConfig, UnknownChoice, read};
use crate::config::remotes::RemoteSection;
use crate::config::sandbox::SandboxConfig;
use crate::config::secrets::SecretsConfig;
use crate::config::shell::ShellConfig;
use crate::config::strict_rules::StrictRule;
use crate::config::subagents::SubagentConfig;
use crate::config::tools::ToolsConfig;
use crate::config::web::{NetworkConfig, WebConfig};
use crate::config::workspaces::WorkspacesConfig;

/// Bytes of a configuration file.
const MAX_BYTES: u64 = 1 << 20;

#[derive(Clone, Debug, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    pub daemon: DaemonConfig,
    pub plugins: PluginsConfig,
    pub permission: PermissionConfig,
    pub tools: ToolsConfig,
    pub limits: LimitsConfig,
    pub results: ResultsConfig,
    pub spool: SpoolConfig,
    pub cache: CacheConfig,
    pub audit: AuditConfig,
    pub sandbox: SandboxConfig,
    pub shell: ShellConfig,
    /// Programs that see, change or refuse calls and messages.
    #[cfg_attr(test, schemars(with = "Vec<HookConfig>"))]
    pub hooks: Vec<Spanned<HookConfig>>,
    pub mcp: McpConfig,
    pub page: PageConfig,
    pub secrets: SecretsConfig,
    /// Other daemons, whose tools are called `NAME_tool` here.
    pub remotes: BTreeMap<String, RemoteSection>,
    pub fleet: FleetConfig,
    pub network: NetworkConfig,
    pub web: WebConfig,
    /// The kinds of sub-agents, by name.
    pub subagents: BTreeMap<String, SubagentConfig>,
    pub workspaces: WorkspacesConfig,
    pub agents: AgentsConfig,
    pub notify: NotifyConfig,
    pub log: LogConfig,
    pub metrics: MetricsConfig,
    pub trace: TraceConfig,
}

/// `[plugins]`, and `[plugins.NAME]` for each plugin's own table, which it sees as `hygge.config`.
#[derive(Clone, Debug, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct PluginsConfig {
    /// Plugin folders and files in addition to the user's plugin folder; `~/` is the home folder.
    pub paths: Vec<String>,
    /// Names of plugins that are not loaded.
    pub disabled: Vec<String>,
    /// Names of bundled plugins that are loaded.
    pub bundled: Vec<String>,
    /// How often to poll plugin folders for changes, in milliseconds, in addition to file system events. When absent,
    /// toold relies on the events, and polls every second only where they are not complete, as on network file
    /// systems. Takes effect at the next start; only in the user's configuration.
    pub poll_ms: Option<NonZeroU64>,
    /// After this many milliseconds without a call, a plugin's memory is freed: its globals are new at the next call.
    /// Applies only to plugins whose script only registers when it is loaded. Half an hour when absent; 0 means never.
    /// Takes effect at the next start; only in the user's configuration.
    pub release_after_ms: Option<u64>,
    #[serde(flatten)]
    #[cfg_attr(test, schemars(with = "BTreeMap<String, serde_json::Map<String, serde_json::Value>>"))]
    pub tables: BTreeMap<String, toml::Table>,
}

/// `[permission]`: what needs no approval, and what always does.
#[derive(Clone, Debug, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct PermissionConfig {
    /// Permission rules. The most specific rule wins; `deny` wins over all others.
    #[cfg_attr(test, schemars(schema_with = "schema::foreign::rules"))]
    pub rules: Vec<Spanned<RuleConfig>>,
    /// Files that need an approval of their own before a tool writes them, in every mode except `yolo`: a rule or a
    /// grant with a wildcard does not cover them. Patterns such as `deploy/**`, `~/scripts/*.sh` or `/srv/www/**`; a
    /// pattern that begins with neither `/` nor `~/` applies in any folder. They add to the built-in list
    /// (PROTECTED_WRITES.md).
    #[cfg_attr(test, schemars(with = "Vec<String>"))]
    pub protected_writes: Vec<Spanned<String>>,
    /// What happens to commands that only read, such as `git status` or `ls`: `allow` runs them without an approval of
    /// their own, `ask` asks as for any other command. The files that they name need permission either way, and rules
    /// that deny or ask take precedence. A project can only set it to `ask`.
    pub read_only_commands: ReadOnlyCommands,
    /// How much runs without an approval: `read` only reads, `edit` also changes files, `develop` also builds and tests,
    /// `operate` is the most. A project can only lower it. `toolctl level --explain` shows what each
    /// frees here.
    #[cfg_attr(test, schemars(schema_with = "schema::foreign::optional_level", extend("default" = Level::default())))]
    pub level: Option<Level>,
}

/// What happens to commands that only read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema, serde::Serialize))]
#[serde(rename_all = "snake_case")]
pub enum ReadOnlyCommands {
    #[default]
    Allow,
    Ask,
}

/// `[limits]`: how much at one time, how long, and how large.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct LimitsConfig {
    /// The maximum number of calls in flight for one connection, including those that wait.
    #[serde(deserialize_with = "read::at_least_one")]
    #[cfg_attr(test, schemars(range(min = 1)))]
    pub calls_per_connection: usize,
    /// The maximum number of calls in flight for all connections.
    #[serde(deserialize_with = "read::at_least_one")]
    #[cfg_attr(test, schemars(range(min = 1)))]
    pub calls: usize,
    /// The maximum length of a message, in bytes; longer ones are refused.
    #[serde(deserialize_with = "read::at_least_one")]
    #[cfg_attr(test, schemars(range(min = 1)))]
    pub message_bytes: usize,
    /// The maximum text of a result, in bytes; longer text is cut, and the whole of it is kept in a file.
    pub result_bytes: usize,
    /// The maximum number of subscriptions for one connection.
    pub subscriptions_per_connection: u32,
    /// The timeout of tools that set none of their own, in milliseconds.
    #[serde(deserialize_with = "read::at_least_one")]
    #[cfg_attr(test, schemars(range(min = 1)))]
    pub timeout_ms: u64,
    /// The maximum timeout that a call may ask for, in milliseconds.
    #[serde(deserialize_with = "read::at_least_one")]
    #[cfg_attr(test, schemars(range(min = 1)))]
    pub max_timeout_ms: u64,
    /// The memory that a plugin's Lua state may use, in MiB, unless its manifest says otherwise. Takes effect at the
    /// next start.
    pub vm_memory_mib: usize,
}

impl Default for LimitsConfig {
    fn default() -> Self {
        Self {
            calls_per_connection: 256,
            calls: 4_096,
            message_bytes: 16 * 1024 * 1024,
            result_bytes: 64 * 1024,
            subscriptions_per_connection: 512,
            timeout_ms: 120_000,
            max_timeout_ms: 600_000,
            vm_memory_mib: 64,
        }
    }
}

/// `[results]`: what results tell a model besides the tool's own output.
#[derive(Clone, Debug, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct ResultsConfig {
    /// Tell the model when a session makes the same call, with the same result, this many times in a row; `true` is 3.
    /// Off by default.
    pub warn_repeats: WarnRepeats,
}

/// Whether, and from which time on, a result tells a model that it repeats a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema, serde::Serialize))]
#[serde(untagged, expecting = "expected true, false, or a number from 2")]
pub enum WarnRepeats {
    Switch(bool),
    From(#[cfg_attr(test, schemars(range(min = 2)))] NonZeroU64),
}

impl Default for WarnRepeats {
    fn default() -> Self {
        Self::Switch(false)
    }
}

impl WarnRepeats {
    fn first_warning(self) -> Option<NonZeroU64> {
        match self {
            Self::Switch(on) => NonZeroU64::new(3).filter(|_| on),
            Self::From(times) => Some(times),
        }
    }
}

/// `[spool]`: the files of long results.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct SpoolConfig {
    /// Files of long results are deleted at this age, in hours.
    pub max_age_hours: u64,
    /// The oldest files are deleted when all together are larger, in MiB.
    pub max_mib: u64,
}

impl Default for SpoolConfig {
    fn default() -> Self {
        Self { max_age_hours: 7 * 24, max_mib: 512 }
    }
}

/// How long the audit log is kept; unused sessions are deleted at the same age.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct AuditConfig {
    /// Rows are deleted at this age, in days. Takes effect at the next start.
    pub max_age_days: u64,
    /// The oldest rows are deleted when there are more. Takes effect at the next start.
    pub max_rows: u64,
    /// Whether calls are refused that cannot be recorded, as when the disk is full. Otherwise they run, and their result says
    /// that they are not recorded.
    pub required: bool,
}

impl Default for AuditConfig {
    fn default() -> Self {
        Self { max_age_days: 90, max_rows: 200_000, required: false }
    }
}

/// `[cache]`: results of tools that declare them cacheable.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct CacheConfig {
    /// The maximum size of all cached results, in MiB; 0 turns the cache off. Takes effect at the next start.
    pub max_mib: u64,
}

impl Default for CacheConfig {
    fn default() -> Self {
        Self { max_mib: toold_engine::cache::DEFAULT_CAPACITY >> 20 }
    }
}

/// The result of reading the configuration.
#[derive(Clone, Default)]
pub struct LoadedConfig {
    pub config: Config,
    /// The file, if it exists.
    pub file: Option<PathBuf>,
    /// The user's rules, and the built-in ones that they cannot change.
    pub policy: Policy,
    pub tools: ToolSettings,
    /// The globs of `mcp.profiles`.
    pub profile_globs: Vec<ProfileGlob>,
    pub hooks: Vec<Arc<dyn Hook>>,
    /// The sandbox of commands.
    pub sandbox: SandboxRules,
    /// The keys that are set, and where.
    pub entries: Vec<ConfigEntry>,
    /// Errors as sentences for the user.
    pub problems: Vec<String>,
}

/// Reads the file and the overrides, and makes a policy of its rules. Never fails: errors are
/// reported, and deny. Blocks.
pub fn load(options: &Options) -> LoadedConfig {
    let file = options.config_file();
    let shown = file.display().to_string();
    let text = match files::read_text(&file, MAX_BYTES) {
        Ok(text) => Some(text),
        // A file named on the command line must exist.
        Err(error)
            if error.kind() == ErrorKind::NotFound && options.config.is_none() && dangling_link(&file).is_none() =>
        {
            None
        }
        Err(error) => return broken(options, vec![unreadable(&file, &error)], Vec::new()),
    };
    let Overrides { found: overrides, unknown, mut problems } = overrides(&options.environment, &options.set);
    let source =
        ConfigText { name: &shown, text: text.as_deref().unwrap_or_default(), overrides: &overrides, sections: None };
    let ReadConfig { readable: mut config, problems: found, unknown_choices, entries } = read(source);
    problems.extend(found);
    let home = options.paths.home.as_deref();
    let of_keys = config.problems(home, &|name| options.variable(name));
    // With an error in the section, it is not known who sees a notification, and what of the request.
    config.notify.allow &= !of_keys.iter().any(|problem| problem.starts_with("notify"));
    let mut wrong: Vec<String> = of_keys.iter().map(|problem| source.placed(problem)).collect();
    wrong.extend(agents::misspelt(&entries));
    let rules = config.permission.rules.iter().map(|rule| {
        let place = RulePlace {
            origin: source.place(Some(rule.span())),
            project: None,
            trusted: true,
            base: None,
            home: options.paths.home.clone(),
        };
        (rule.get_ref().clone(), place)
    });
    let mut policy = base_policy(&options.paths).with_rules(rules);
    policy.levels.user = config.permission.level.unwrap_or_default();
    policy.levels.agents = config.agents.levels();
    policy.asks_for_reading.everywhere = config.permission.read_only_commands == ReadOnlyCommands::Ask;
    for pattern in &config.permission.protected_writes {
        policy.protect(pattern.get_ref(), &source.place(Some(pattern.span())), None);
    }
    let environment = Environment::inherited(options.environment.iter().cloned());
    let mut hooks = Vec::new();
    for hook in &config.hooks {
        match hooks::read(hook.get_ref(), SourceScope::Global, &environment) {
            Ok(hook) => hooks.push(hook),
            // A blocking hook that cannot be loaded closes the policy instead.
            Err(error) => policy.broken.push(format!("{}: {error:#}", source.place(Some(hook.span())))),
        }
    }
    let sandbox = config.sandbox.rules(&options.paths);
    policy.broken.extend(sandbox.refused.iter().map(|why| {
        let key = ["writable", "network", "ease"].into_iter().find(|key| why.starts_with(key)).unwrap_or("mode");
        format!("{}: sandbox: {why}", source.place_of(&["sandbox", key]))
    }));
    let tools = tools::read_settings(&config.tools, &config.mcp, &source, || tools::builtin_names(options));
    // A tool that should be disabled must not run because of a typing error, nor one that a profile leaves out.
    policy.broken.extend(tools.grave);
    let of_clients = config.mcp.clients.iter().filter_map(|(name, client)| Some((name, client.profile.as_ref()?)));
    policy.broken.extend(mcp_profiles::problems(&config.mcp.profiles, of_clients, &source, home));
    let profile_globs = mcp_profiles::all_globs(&config.mcp.profiles, &source);
    policy.unmatchable.extend(wrong.into_iter().chain(tools.others));
    let found = policy.broken.iter().chain(&policy.unmatchable).chain(&unknown).cloned();
    let found = with_unknown_choices(found.collect(), &config, &unknown_choices, &source, home);
    if !problems.is_empty() {
        problems.extend(found);
        return broken(options, in_order(problems, &shown), entries);
    }
    let problems = in_order(found, &shown);
    let (file, tools) = (text.is_some().then_some(file), tools.settings);
    LoadedConfig { config, file, policy, tools, profile_globs, hooks, sandbox, entries, problems }
}

/// Why a configuration file is not read, as a sentence for the user.
fn unreadable(file: &Path, error: &std::io::Error) -> String {
    let why = dangling_link(file).unwrap_or_else(|| error.to_string());
    format!("can't read {}: {why}", file.display())
}

/// The link on the way to a file that leads nowhere. Behind it, there may be rules that deny: such a file is not absent.
fn dangling_link(file: &Path) -> Option<String> {
    let link = file.ancestors().find(|path| path.is_symlink() && !path.exists())?;
    let target = link.read_link().ok()?;
    Some(format!("{} is a link to {}, which does not exist", link.display(), target.display()))
}

/// The problems of rules and hooks, with every one of a rule or a hook instead of its first.
fn with_unknown_choices(
    mut problems: Vec<String>,
    config: &Config,
    unknown_choices: &[UnknownChoice],
    source: &ConfigText,
    home: Option<&Path>,
) -> Vec<String> {
    let mut replace = |of: &str, all: Vec<String>| {
        problems.retain(|problem| !problem.starts_with(&format!("{of}: ")));
        problems.extend(all);
    };
    for UnknownChoice { of, .. } in unknown_choices {
        replace(of, Vec::new());
    }
    for rule in &config.permission.rules {
        let origin = source.place(Some(rule.span()));
        let place = RulePlace { project: None, trusted: true, base: None, home: home.map(Path::to_owned), origin };
        let mistakes = rule_mistakes(rule.get_ref(), &place);
        if !mistakes.is_empty() {
            replace(&place.origin, mistakes.iter().map(|mistake| format!("{}: {mistake}", place.origin)).collect());
        }
    }
    for hook in &config.hooks {
        let origin = source.place(Some(hook.span()));
        let mistakes = hooks::mistakes(hook.get_ref());
        if !mistakes.is_empty() {
            replace(&origin, mistakes.iter().map(|mistake| format!("{origin}: {mistake}")).collect());
        }
    }
    problems.extend(unknown_choices.iter().map(|choice| choice.problem.clone()));
    problems
}

/// Problems in the order of their lines; those without one come last.
fn in_order(mut problems: Vec<String>, file: &str) -> Vec<String> {
    let position = |problem: &String| {
        let mut numbers = problem.strip_prefix(file)?.strip_prefix(':')?.split(':').map(str::parse::<usize>);
        let line = numbers.next()?.ok()?;
        Some((line, numbers.next().and_then(Result::ok).unwrap_or(0)))
    };
    problems.sort_by_key(|problem| position(problem).unwrap_or((usize::MAX, 0)));
    problems
}

impl LoadedConfig {
    /// The rules that deny or ask. Complete only if the file has no errors.
    pub fn strict_rules(&self) -> Vec<StrictRule> {
        // Each rule of a file without errors became one of the policy.
        let rules = self.config.permission.rules.iter().zip(&self.policy.rules);
        rules.filter_map(|(config, rule)| StrictRule::of(config.get_ref(), &rule.origin)).collect()
    }
}

impl Config {
    /// The errors of values that can be read and cannot be used. Each begins with its key.
    fn problems(&self, home: Option<&Path>, var: &dyn Fn(&str) -> Option<String>) -> Vec<String> {
        let of = |key: &str, problems: Vec<String>| -> Vec<String> {
            problems.into_iter().map(|problem| format!("{key}: {problem}")).collect()
        };
        let mut found = of("workspaces.allow", self.workspaces.problems(home));
        found.extend(of("mcp.token.workspaces", self.mcp.token.problems(home)));
        found.extend(of("agents.env", self.agents.problems()));
        found.extend(of("secrets.names", self.secrets.problems()));
        found.extend(self.mcp.oauth.problems().map(|problem| format!("mcp.oauth.{problem}")));
        found.extend(self.mcp.address().err().map(|error| error.to_string()));
        found.extend(self.page.problem(&self.mcp, home));
        found.extend(self.notify.problems(home, var));
        found
    }

    pub fn settings(&self) -> Settings {
        Settings {
            default_timeout: Duration::from_millis(self.limits.timeout_ms),
            max_timeout: Duration::from_millis(self.limits.max_timeout_ms),
            max_result_text: self.limits.result_bytes,
            warn_repeats: self.results.warn_repeats.first_warning(),
            audit_required: self.audit.required,
            ..Settings::default()
        }
    }
}

/// Expands `~` and `~/...` to the home folder.
pub fn expand_home(text: &str, home: Option<&Path>) -> PathBuf {
    match (text.strip_prefix('~'), home) {
        (Some(""), Some(home)) => home.to_owned(),
        (Some(rest), Some(home)) if rest.starts_with('/') => home.join(&rest[1..]),
        _ => PathBuf::from(text),
    }
}

/// As [`expand_home`], for a path that must be absolute.
///
/// # Errors
/// The path is not absolute, as a sentence for the user.
pub fn absolute(text: &str, home: Option<&Path>) -> Result<PathBuf, String> {
    let path = expand_home(text, home);
    if path.is_absolute() { Ok(path) } else { Err(format!("{text:?} is not an absolute path")) }
}

/// A program by its name, or by its absolute path, which may begin with `~/`.
///
/// # Errors
/// It is a relative path, which would name a different program in each folder; as a sentence for
/// the user.
pub fn program(text: String, home: Option<&Path>) -> Result<String, String> {
    match text.contains('/') && !text.starts_with('/') {
        true if text.starts_with("~/") => Ok(absolute(&text, home)?.display().to_string()),
        true => Err(format!("{text:?} is neither a name nor an absolute path")),
        false => Ok(text),
    }
}

/// The line on which a table of an array begins, from 1.
fn line_of<T>(text: &str, table: &Spanned<T>) -> usize {
    text[..table.span().start].matches('\n').count() + 1
}

fn broken(options: &Options, problems: Vec<String>, entries: Vec<ConfigEntry>) -> LoadedConfig {
    let mut policy = base_policy(&options.paths);
    policy.broken.extend(problems.iter().cloned());
    LoadedConfig { file: Some(options.config_file()), policy, entries, problems, ..LoadedConfig::default() }
}

/// The rules that no file can change: no tool touches the files that control the daemon.
fn base_policy(places: &DaemonPaths) -> Policy {
    let real = |path: PathBuf| path.canonicalize().unwrap_or(path);
    let home = places.home.clone().map(real);
    let state = real(places.state.clone());
    let config = real(places.config.clone());
    // The entries that the daemon reads itself have names, since plugins may read the others.
    let own = ["config.toml", "plugins", "memories", "skills"].map(|name| config.join(name));
    let usual = home.as_ref().map(|home| home.join(".config"));
    let config_home = config.parent().filter(|parent| config.ends_with("toold") && Some(*parent) != usual.as_deref());
    let config_home = config_home.map(Path::to_owned);
    let control = [config, state.clone()].into_iter().chain(own).collect::<Vec<_>>().into();
    Policy { control, state: Some(state), home, config_home, ..Policy::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(dir: &Path, set: &[&str]) -> Options {
        Options {
            paths: DaemonPaths { config: dir.into(), state: dir.join("state"), home: Some("/home/u".into()) },
            config: None,
            set: set.iter().map(|flag| (*flag).to_owned()).collect(),
            plugins: Vec::new(),
            socket: None,
            environment: vec![("TOOLD_LIMITS_RESULT_BYTES".into(), "9".into())],
        }
    }

    fn loaded_with(text: &str, set: &[&str]) -> LoadedConfig {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("config.toml"), text).unwrap();
        load(&options(dir.path(), set))
    }

    fn loaded(text: &str) -> LoadedConfig {
        loaded_with(text, &[])
    }

    #[track_caller]
    fn check_problem(text: &str, words: &[&str]) {
        let loaded = loaded(text);
        let problem = loaded.problems.first().expect("a problem");
        assert!(words.iter().all(|word| problem.contains(word)), "{problem}");
        assert_eq!(loaded.policy.broken, loaded.problems);
    }

    #[test]
    fn rules_know_their_line() {
        let loaded = loaded(
            "[limits]\ncalls = 7\n\n[[permission.rules]]\ncategory = \"shell\"\npattern = \"git status\"\naction = \"allow\"\n",
        );
        assert_eq!(loaded.problems, Vec::<String>::new());
        assert_eq!(loaded.config.limits.calls, 7);
        assert!(loaded.policy.rules[0].origin.ends_with("config.toml:4"), "{}", loaded.policy.rules[0].origin);
    }

    #[test]
    fn errors_are_reported_with_line_and_suggestion_and_close_the_policy() {
        check_problem(
            "\n[limits]\ncals = 7\n",
            &["config.toml:3:1: ", "unknown key cals in [limits]", "did you mean calls"],
        );
        check_problem("[limit]\ncalls = 7\n", &["config.toml:1:2: ", "did you mean limits"]);
        check_problem("[plugins]\npahts = []\n", &["config.toml:2:1: ", "did you mean paths"]);
        check_problem("[limits]\ncalls = \"many\"\n", &["config.toml:2:9: limits.calls: ", "got \"many\""]);
        check_problem("[limits]\ncalls = 7\ncalls = 8\n", &["config.toml:3:1: ", "duplicate"]);
        let hook = "[[hooks]]\nevent = \"pre_tool\"\ncommand = [\"x\"]\n";
        check_problem(&format!("{hook}mode = \"asink\"\n"), &["config.toml:4:8: hooks.mode: ", "did you mean async"]);
        check_problem(&format!("{hook}tymeout_ms = 1\n"), &["config.toml:4:1: ", "did you mean timeout_ms"]);
        check_problem("[[hooks]]\nevent = \"pre_tool\"\n", &["config.toml:1:1: hooks: ", "missing key command"]);
    }

    #[test]
    fn all_unknown_keys_are_reported_at_once() {
        let problems = loaded("[limits]\na = 1\n[spool]\nb = 2\n").problems;
        assert!(problems.len() == 2 && problems[1].contains(":4:1: "), "{problems:?}");
    }

    /// In one file: unknown keys, wrong types, values that are none of the choices, lacking keys, rules and hooks.
    #[test]
    fn every_mistake_of_a_file_is_reported_in_its_order() {
        let text = r#"[limits]
calls = "many"
cals = 3
[spool]
max_mib = -1
[permission]
read_only_commands = "never"
[[permission.rules]]
category = "shel"
pattern = "x"
action = "alow"
[[permission.rules]]
category = "shell"
pattern = "'"
action = "deny"
tools = []
[[hooks]]
event = "pre_tol"
mode = "asink"
[[hooks]]
event = "pre_tol"
command = []
[log]
filter = "loud"
[plugins]
pahts = []
disabled = ["No Plugin"]
"#;
        let problems = loaded(text).problems;
        let expected = [
            (":2:9: limits.calls: ", "got \"many\""),
            (":3:1: ", "unknown key cals in [limits]: did you mean calls?"),
            (":5:11: spool.max_mib: ", "-1"),
            (":7:22: permission.read_only_commands: ", "never"),
            (":9:12: permission.rules.category: ", "did you mean shell?"),
            (":11:10: permission.rules.action: ", "did you mean allow?"),
            (":12: ", "quote"),
            (":12: ", "tools is empty"),
            (":17:1: hooks: ", "missing key command"),
            (":18:9: hooks.event: ", "did you mean pre_tool?"),
            (":19:8: hooks.mode: ", "did you mean async?"),
            (":20: ", "command is empty"),
            (":21:9: hooks.event: ", "did you mean pre_tool?"),
            (":24:10: log.filter: ", "loud"),
            (":26:1: ", "unknown key pahts in [plugins]: did you mean paths?"),
            (":27:13: plugins.disabled: ", "no_plugin"),
        ];
        let found = |(place, words): &(&str, &str)| {
            problems.iter().position(|problem| problem.contains(place) && problem.contains(words))
        };
        let places: Vec<Option<usize>> = expected.iter().map(found).collect();
        assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{places:?} {problems:#?}");
        assert_eq!(problems.len(), expected.len(), "{problems:#?}");
    }

    /// Values of the right type: the line of the value, or of the section where all of it is wrong.
    #[test]
    fn a_value_that_cannot_be_used_is_reported_on_its_line() {
        for (section, value, line, problem) in [
            ("workspaces", "allow = ['src']", 5, "workspaces.allow: "),
            ("agents", "env = ['$PATH']", 5, "agents.env: "),
            ("secrets", "names = ['a b']", 5, "secrets.names: "),
            ("mcp", "listen = '8080'", 5, "mcp.listen: "),
            ("mcp", "listen = '127.0.0.1:99999'", 5, "mcp.listen: "),
            ("mcp", "listen = '0.0.0.0:18091'", 5, "mcp.listen: other machines can reach "),
            ("mcp.token", "workspaces = ['/']", 5, "mcp.token.workspaces: "),
            ("mcp.oauth", "client_id_url = 'http://a/b'", 5, "mcp.oauth.client_id_url: "),
            ("mcp.profiles.all", "mode = 'plan'", 4, "mcp.profiles.all: "),
            ("page", "listen = 'x'", 5, "page.listen: "),
            ("page", "hosts = ['a b']", 5, "page.hosts: "),
            ("page", "tls_key = '/none'", 5, "page.tls_key: "),
            ("notify", "post = 'ntfy'", 5, "notify.post: "),
            ("notify", "link = 'x'\ndesktop = true", 5, "notify.link: "),
            ("notify", "after = '1s'", 4, "notify: nothing is sent"),
            ("sandbox", "network = ['https://x']", 5, "sandbox: network: "),
            ("sandbox", "network = ['x.org']", 5, "sandbox: network by host"),
            ("sandbox", "writable = ['/a']", 5, "sandbox: writable "),
            ("sandbox", "ease = true", 5, "sandbox: ease "),
            ("agents.codex", "ask = 'tool'", 5, "agents.codex.ask: "),
            ("agents.codex", "mode = 'yolo'", 5, "agents.codex.mode: "),
            ("agents.codex", "level = 'x'", 5, "agents.codex.level: "),
            ("agents.claude", "mode = 'plan'", 4, "agents.claude: "),
            ("limits", "timeout_ms = 0", 5, "limits.timeout_ms: expected a number from 1, got 0"),
            ("limits", "message_bytes = 0", 5, "limits.message_bytes: expected a number from 1, got 0"),
        ] {
            let text = format!("\n\n\n[{section}]\n{value}\n");
            let problems = loaded(&text).problems;
            let is_there = |found: &String| found.contains(&format!("config.toml:{line}:")) && found.contains(problem);
            assert!(problems.len() == 1 && is_there(&problems[0]), "{text}{problems:#?}");
        }
        for (more, allows) in [
            ("details = true\ntoken = 't'", true),
            ("token = 't'", false),
            ("details = false\ntoken = 't'", false),
            ("details = true", false),
            ("details = true\ntoken = 't'\nafter = '1h'", false),
        ] {
            let text = format!("[notify]\nallow = true\npost = 'https://h/x'\n{more}\n");
            let loaded = loaded(&text);
            assert_eq!((loaded.config.notify.allow, loaded.problems.is_empty()), (allows, allows), "{text}");
        }
        let flag = loaded_with("", &["mcp.listen=8080"]).problems;
        assert!(flag[0].starts_with("flag --set mcp.listen=8080: mcp.listen: "), "{flag:?}");
    }

    /// A value of another type for each key of each section, all in one file.
    #[test]
    fn a_wrong_type_of_any_key_is_reported_on_its_line() {
        let mut text = String::new();
        let mut keys = Vec::new();
        // The tests' environment sets the other one, which counts instead of the file.
        for leaf in schema::leaf_keys().into_iter().filter(|leaf| leaf.key != "limits.result_bytes") {
            let wrong = if leaf.text && leaf.scalar { "[[1]]" } else { "'wrong type'" };
            text.push_str(&format!("{} = {wrong}\n", leaf.key));
            keys.push(leaf.key);
        }
        let problems = loaded(&text).problems;
        for (line, key) in (1..).zip(&keys) {
            let place = format!("config.toml:{line}:");
            assert!(problems.iter().any(|problem| problem.contains(&place)), "{key}: {problems:#?}");
        }
    }

    /// Tables that are written as lists, whose members would count by their position.
    #[test]
    fn a_list_in_the_place_of_a_table_is_an_error_that_names_the_key() {
        let mut tables = Vec::new();
        tables_in(schema::schema(), "", &mut tables);
        assert!(tables.len() > 30, "{tables:?}");
        for table in tables {
            for list in ["[]", "[1]", "['debug']", "[true, 1]"] {
                let text = format!("{table} = {list}\n");
                let expected = format!("config.toml:1:{}: {table}: expected a table, got a list", table.len() + 4);
                let problems = loaded(&text).problems;
                assert!(problems.iter().any(|problem| problem.ends_with(&expected)), "{text}: {problems:?}");
            }
        }
        check_problem("hooks = [['pre_tool']]\n", &["config.toml:1:10: hooks: expected a table, got a list"]);
    }

    /// The keys whose values are tables; `n` is a name that people choose.
    fn tables_in(schema: &serde_json::Value, path: &str, found: &mut Vec<String>) {
        for (key, below) in schema["properties"].as_object().into_iter().flatten() {
            let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
            if below["type"] == "object" {
                tables_in(below, &path, found);
                found.push(path);
            }
        }
        if schema["additionalProperties"]["type"] == "object" && !path.is_empty() && path != "plugins" {
            let path = format!("{path}.n");
            tables_in(&schema["additionalProperties"], &path, found);
            found.push(path);
        }
    }

    #[test]
    fn a_relative_path_of_a_rule_is_an_error_that_says_what_to_write() {
        let of = |pattern: &str| {
            let rule = "[[permission.rules]]\ncategory = \"file.write\"\naction = \"allow\"";
            loaded(&format!("{rule}\npattern = {pattern:?}\n")).problems
        };
        for pattern in ["src/**", "./src/**", "src/*.rs", "*"] {
            let rest = pattern.trim_start_matches("./");
            let meant = format!("got {pattern:?}: did you mean \"~/{rest}\" or \"**/{rest}\"?");
            let problems = of(pattern);
            assert!(problems.len() == 1 && problems[0].ends_with(&meant), "{problems:?}");
            assert!(problems[0].contains("config.toml:1: pattern: expected an absolute path"), "{problems:?}");
        }
        assert_eq!(of("~/src/**"), Vec::<String>::new());
    }

    #[test]
    fn the_environment_stands_over_the_file_and_flags_over_both() {
        let text = "[limits]\nresult_bytes = 1\ncalls = 2\ntimeout_ms = 3\n";
        let loaded = loaded_with(text, &["limits.calls=8", "plugins.disabled=[\"a\"]"]);
        assert_eq!(loaded.problems, Vec::<String>::new());
        let limits = &loaded.config.limits;
        assert_eq!((limits.result_bytes, limits.calls, limits.timeout_ms), (9, 8, 3));
        assert_eq!(loaded.config.plugins.disabled, ["a"]);
        let origin = |key: &str| loaded.entries.iter().find(|entry| entry.key == key).unwrap().origin.clone();
        assert_eq!(origin("limits.result_bytes"), "environment TOOLD_LIMITS_RESULT_BYTES");
        assert_eq!(origin("limits.calls"), "flag --set limits.calls=8");
        assert!(origin("limits.timeout_ms").ends_with("config.toml:4"));
        let wrong = loaded_with("", &["limits.calls=many"]);
        assert!(wrong.problems[0].starts_with("flag --set limits.calls=many: limits.calls: "), "{:?}", wrong.problems);
    }

    #[test]
    fn invalid_rule_is_reported_and_the_others_apply() {
        let text = "[[permission.rules]]\ncategory = \"shel\"\npattern = \"x\"\naction = \"deny\"\n\
                    [[permission.rules]]\ncategory = \"file.read\"\npattern = \"~/notes/**\"\naction = \"allow\"\n";
        let loaded = loaded(text);
        assert_eq!(loaded.policy.rules.len(), 1);
        assert_eq!(loaded.policy.rules[0].pattern.as_str(), "/home/u/notes/**");
        assert!(
            loaded.problems[0].contains(":2:12: ") && loaded.problems[0].contains("file.read"),
            "{:?}",
            loaded.problems
        );
    }

    #[test]
    fn values_with_secret_names_are_not_shown() {
        let entries = loaded("[plugins.w]\napi_key = \"a-secret-value\"\ncity = \"Bonn\"\n").entries;
        let shown = serde_json::to_string(&entries).unwrap();
        assert!(!shown.contains("a-secret-value") && shown.contains("Bonn"), "{shown}");
    }
}
