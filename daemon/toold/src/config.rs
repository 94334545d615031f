//! The configuration file, `config.toml`.
//!
//! Read whole or not at all: a file that cannot be read leaves the defaults, and the policy closed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use toml::Spanned;
use toold_engine::Settings;
use toold_engine::hooks::Hook;
use toold_engine::policy::Policy;
use toold_engine::policy::rules::{RuleConfig, RulePlace};
use toold_host::environment::Environment;

use crate::hooks::{self, HookConfig};
use crate::mcp_servers::McpConfig;
use crate::places::Places;

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    pub plugins: PluginsConfig,
    pub permission: PermissionConfig,
    pub limits: LimitsConfig,
    pub spool: SpoolConfig,
    pub cache: CacheConfig,
    pub audit: AuditConfig,
    pub hooks: Vec<Spanned<HookConfig>>,
    pub mcp: McpConfig,
}

/// `[plugins]`, and `[plugins.NAME]` for each plugin's own table, which it sees as `hygge.config`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct PluginsConfig {
    /// Folders and files beside the user's plugin folder; `~/` is the home folder.
    pub paths: Vec<String>,
    /// Names of plugins that are not loaded.
    pub disabled: Vec<String>,
    /// Names of bundled plugins that are.
    pub bundled: Vec<String>,
    #[serde(flatten)]
    pub tables: BTreeMap<String, toml::Table>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PermissionConfig {
    pub rules: Vec<Spanned<RuleConfig>>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LimitsConfig {
    pub calls_per_connection: usize,
    pub calls: usize,
    pub message_bytes: usize,
    pub result_bytes: usize,
    pub subscriptions_per_connection: u32,
    pub timeout_ms: u64,
    pub max_timeout_ms: u64,
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

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SpoolConfig {
    pub max_age_hours: u64,
    pub max_mib: u64,
}

impl Default for SpoolConfig {
    fn default() -> Self {
        Self { max_age_hours: 7 * 24, max_mib: 512 }
    }
}

/// How long the audit log is kept; sessions that nobody uses go at the same age.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AuditConfig {
    pub max_age_days: u64,
    pub max_rows: u64,
}

impl Default for AuditConfig {
    fn default() -> Self {
        Self { max_age_days: 90, max_rows: 200_000 }
    }
}

/// `[cache]`: results of tools that say that they may be served again.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CacheConfig {
    /// What they may take in all; 0 keeps none.
    pub max_mib: u64,
}

impl Default for CacheConfig {
    fn default() -> Self {
        Self { max_mib: toold_engine::cache::DEFAULT_CAPACITY >> 20 }
    }
}

/// What became of reading the file.
#[derive(Clone, Default)]
pub struct Loaded {
    pub config: Config,
    /// The file, if there is one.
    pub file: Option<PathBuf>,
    pub policy: Policy,
    pub hooks: Vec<Arc<dyn Hook>>,
    /// What is wrong, in words for people.
    pub problems: Vec<String>,
}

/// Reads the file and makes a policy of its rules. Never fails: what is wrong is told, and denies.
pub fn load(places: &Places, file: &Path, environment: &Environment) -> Loaded {
    let text = match std::fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Loaded { policy: base_policy(places), ..Loaded::default() };
        }
        Err(error) => return broken(places, file, format!("can't read {}: {error}", file.display())),
    };
    match toml::from_str::<Config>(&text) {
        Ok(config) => {
            let rules = config.permission.rules.iter().map(|rule| {
                let line = line_of(&text, rule);
                let place = RulePlace {
                    origin: format!("{}:{line}", file.display()),
                    project: None,
                    trusted: true,
                    base: None,
                    home: places.home.clone(),
                };
                (rule.get_ref().clone(), place)
            });
            let mut policy = base_policy(places).with_rules(rules);
            let mut hooks = Vec::new();
            for hook in &config.hooks {
                match hooks::read(hook.get_ref(), environment) {
                    Ok(hook) => hooks.push(hook),
                    // A hook that should stand in the way and cannot closes the policy instead.
                    Err(error) => {
                        policy.broken.push(format!("{}:{}: {error:#}", file.display(), line_of(&text, hook)));
                    }
                }
            }
            let problems = policy.broken.clone();
            Loaded { config, file: Some(file.to_owned()), policy, hooks, problems }
        }
        Err(error) => broken(places, file, format!("{}: {error}", file.display())),
    }
}

impl Config {
    pub fn settings(&self) -> Settings {
        Settings {
            default_timeout: Duration::from_millis(self.limits.timeout_ms),
            max_timeout: Duration::from_millis(self.limits.max_timeout_ms),
            max_result_text: self.limits.result_bytes,
            ..Settings::default()
        }
    }
}

/// `~` and `~/...` with the home folder in its place.
pub fn expand_home(text: &str, home: Option<&Path>) -> PathBuf {
    match (text.strip_prefix('~'), home) {
        (Some(""), Some(home)) => home.to_owned(),
        (Some(rest), Some(home)) if rest.starts_with('/') => home.join(&rest[1..]),
        _ => PathBuf::from(text),
    }
}

/// The line on which a table of an array begins, from 1.
fn line_of<T>(text: &str, table: &Spanned<T>) -> usize {
    text[..table.span().start].matches('\n').count() + 1
}

fn broken(places: &Places, file: &Path, problem: String) -> Loaded {
    let mut policy = base_policy(places);
    policy.broken.push(problem.clone());
    Loaded {
        config: Config::default(),
        file: Some(file.to_owned()),
        policy,
        hooks: Vec::new(),
        problems: vec![problem],
    }
}

/// What holds whatever the file says: no tool touches what controls the daemon.
fn base_policy(places: &Places) -> Policy {
    let real = |path: PathBuf| path.canonicalize().unwrap_or(path);
    let spool = real(places.state.clone()).join("spool");
    let home = places.home.clone().map(real);
    Policy { control: vec![real(places.config.clone()), spool], home, ..Policy::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loaded(text: &str) -> Loaded {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("config.toml");
        std::fs::write(&file, text).unwrap();
        let places =
            Places { config: dir.path().into(), state: dir.path().join("state"), home: Some("/home/u".into()) };
        load(&places, &file, &Environment::default())
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
    fn unknown_keys_are_told_with_their_line_and_close_the_policy() {
        let loaded = loaded("[limits]\ncals = 7\n");
        assert!(loaded.problems[0].contains("line 2") && loaded.problems[0].contains("cals"), "{:?}", loaded.problems);
        assert_eq!(loaded.policy.broken.len(), 1);
    }

    #[test]
    fn a_bad_rule_is_told_and_the_others_count() {
        let text = "[[permission.rules]]\ncategory = \"shel\"\npattern = \"x\"\naction = \"deny\"\n\
                    [[permission.rules]]\ncategory = \"file.read\"\npattern = \"~/notes/**\"\naction = \"allow\"\n";
        let loaded = loaded(text);
        assert_eq!(loaded.policy.rules.len(), 1);
        assert_eq!(loaded.policy.rules[0].pattern.as_str(), "/home/u/notes/**");
        assert!(
            loaded.problems[0].contains(":1: ") && loaded.problems[0].contains("file.read"),
            "{:?}",
            loaded.problems
        );
    }
}
