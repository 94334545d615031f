//! A project's `.toold/config.toml`.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use toml::Spanned;
use toold_engine::policy::Policy;
use toold_engine::policy::rules::{BadRule, RuleConfig, RulePlace, read_rule};
use toold_host::files;
use toold_proto::config::ConfigEntry;
use toold_proto::permission::{RuleInfo, Verdict};

use crate::config::read::{ConfigText, ReadConfig, read};
use crate::config::strict_rules::StrictRule;
use crate::config::{Config, ReadOnlyCommands, dangling_link, unreadable};

/// The keys that a project may set. All but rules that deny or ask take effect only once a person
/// trusts the file.
pub const SECTIONS: &[&str] = &["permission", "hooks", "plugins", "mcp", "sandbox", "subagents"];

/// A larger file is no configuration.
const MAX_BYTES: u64 = 1 << 20;

/// A project's configuration file, as it was read.
#[derive(Clone, Debug)]
pub struct ProjectFile {
    /// The project's real path.
    pub project: PathBuf,
    pub path: PathBuf,
    /// The hash of its bytes, in hexadecimal digits; `None` when there is no file.
    pub digest: Option<String>,
    pub bytes: u64,
    pub config: Config,
    pub entries: Vec<ConfigEntry>,
    /// Errors as sentences for the user. With an error, everything that needs permission is denied
    /// in the project.
    pub problems: Vec<String>,
    text: String,
}

/// The path of a project's file.
pub fn file_of(project: &Path) -> PathBuf {
    project.join(".toold/config.toml")
}

impl ProjectFile {
    /// Reads the file. Never fails: errors are reported, and deny. Blocks.
    pub fn read(project: &Path) -> Self {
        let mut none = Self::empty(project);
        match read_bounded(&none.path) {
            Ok(bytes) => Self::of_bytes(project, bytes),
            Err(error)
                if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
                    && dangling_link(&none.path).is_none() =>
            {
                none
            }
            Err(error) => {
                none.problems.push(unreadable(&none.path, &error));
                none
            }
        }
    }

    fn empty(project: &Path) -> Self {
        Self {
            project: project.to_owned(),
            path: file_of(project),
            digest: None,
            bytes: 0,
            config: Config::default(),
            entries: Vec::new(),
            problems: Vec::new(),
            text: String::new(),
        }
    }

    /// Parses the file. Never fails, like [`ProjectFile::read`].
    pub fn of_bytes(project: &Path, bytes: Vec<u8>) -> Self {
        let mut file = Self::empty(project);
        let shown = file.path.display().to_string();
        file.digest = Some(blake3::hash(&bytes).to_hex().to_string());
        file.bytes = bytes.len() as u64;
        match String::from_utf8(bytes) {
            Ok(text) => {
                let read: ReadConfig =
                    read(ConfigText { name: &shown, text: &text, overrides: &[], sections: Some(SECTIONS) });
                file.entries = read.entries;
                match read.problems.is_empty() {
                    true => file.config = read.readable,
                    false => file.problems = read.problems,
                }
                file.text = text;
            }
            Err(error) => file.problems.push(format!("{shown}: {error}")),
        }
        file
    }

    /// Adds the file's rules to a policy, and the writes that it protects. `trusted`: the rules that allow, too.
    pub fn add_rules(&self, policy: Policy, home: Option<&Path>, trusted: bool) -> Policy {
        let mut policy = self.add_limits(policy.with_rules(self.rules(home, trusted)));
        self.problems.iter().for_each(|problem| policy.close_project(&self.project, problem));
        policy
    }

    /// Adds what only narrows, and is no rule.
    fn add_limits(&self, mut policy: Policy) -> Policy {
        for pattern in &self.config.permission.protected_writes {
            let origin = format!("{}:{}", self.path.display(), self.line_of(pattern));
            policy.protect(pattern.get_ref(), &origin, Some(&self.project));
        }
        if self.config.permission.read_only_commands == ReadOnlyCommands::Ask {
            policy.asks_for_reading.projects.push(self.project.clone());
        }
        if let Some(level) = self.config.permission.level {
            policy.levels.projects.push((self.project.clone(), level));
        }
        policy
    }

    /// Adds, of an earlier version that is trusted when the current one is not, the rules that allow, and what narrows: nobody who
    /// changes the file takes that back.
    pub fn add_trusted(&self, policy: Policy, home: Option<&Path>) -> Policy {
        let allows = self
            .rules(home, true)
            .filter(|(rule, place)| read_rule(rule, place).is_ok_and(|rule| rule.action == Verdict::Allow));
        self.add_limits(policy.with_rules(allows.collect::<Vec<_>>()))
    }

    /// Whether all its denials are known.
    pub fn is_whole(&self, home: Option<&Path>) -> bool {
        let is_read = |(rule, place): (RuleConfig, RulePlace)| match read_rule(&rule, &place) {
            Ok(_) => true,
            Err(BadRule::MatchesNothing(_)) => rule.action == "allow",
            Err(BadRule::Unreadable(_)) => false,
        };
        self.problems.is_empty() && self.rules(home, false).all(is_read)
    }

    /// The rules that deny or ask. Complete only when the file is [whole](Self::is_whole).
    pub fn strict_rules(&self, home: Option<&Path>) -> Vec<StrictRule> {
        self.rules(home, false).filter_map(|(rule, place)| StrictRule::of(&rule, &place.origin)).collect()
    }

    /// The location of rules that were stored when this file was last read.
    pub fn place_of_kept(&self, home: Option<&Path>) -> RulePlace {
        self.place(String::new(), home, false)
    }

    /// The line on which a table of the file begins.
    pub fn line_of<T>(&self, table: &Spanned<T>) -> usize {
        crate::config::line_of(&self.text, table)
    }

    /// The rules that allow something, which a person should see before trusting them.
    pub fn allows(&self, home: Option<&Path>) -> Vec<RuleInfo> {
        let rules = self.rules(home, true).filter_map(|(rule, place)| read_rule(&rule, &place).ok());
        rules.filter(|rule| rule.action == Verdict::Allow).map(|rule| rule.describe()).collect()
    }

    /// The settings that need trust, except the rules that allow.
    pub fn settings(&self) -> Vec<ConfigEntry> {
        self.entries.iter().filter(|entry| !entry.key.starts_with("permission.")).cloned().collect()
    }

    fn rules(&self, home: Option<&Path>, trusted: bool) -> impl Iterator<Item = (RuleConfig, RulePlace)> {
        self.config.permission.rules.iter().map(move |rule| {
            let line = self.line_of(rule);
            let origin = format!("{}:{line}", self.path.display());
            (Spanned::get_ref(rule).clone(), self.place(origin, home, trusted))
        })
    }

    fn place(&self, origin: String, home: Option<&Path>, trusted: bool) -> RulePlace {
        RulePlace {
            origin,
            project: Some(self.project.clone()),
            trusted,
            base: Some(self.project.clone()),
            home: home.map(Path::to_owned),
        }
    }
}

fn read_bounded(path: &Path) -> std::io::Result<Vec<u8>> {
    // The repository chooses the content here, so it is opened like any file that a tool names.
    files::read_named(path, MAX_BYTES)
}
