//! `[sandbox]`: the sandbox of the commands of `bash` and of plugins.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::Mutex;
use serde::Deserialize;
use serde::de::{self, Deserializer, SeqAccess, Unexpected, Visitor};
use toold_engine::policy::Policy;
use toold_host::sandbox::network::hosts::NetworkHosts;
use toold_host::sandbox::{ConfinementMode, SandboxRules, try_guard};
use toold_host::tool_mark;
use toold_proto::daemon::GuardTrial;

use crate::config::paths::DaemonPaths;
use crate::config::{LoadedConfig, expand_home};

/// The sandbox for commands of `bash` and of plugins. Hooks are your own commands and are not confined.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct SandboxConfig {
    /// What commands may do.
    pub mode: SandboxMode,
    /// Whether commands can reach the network; with mode `guard` they always can. With the other modes they can never
    /// reach Unix sockets. A list of hosts allows those, such as `packages.example.org`, `*.example.com:8443` or
    /// `localhost:5432`, and asks a person about others when a command connects to them; `"ask"` asks about all.
    pub network: NetworkSetting,
    /// Folders that commands may change in addition to the session's, with mode `workspace-write`; `~/` is the home
    /// folder.
    pub writable: Vec<String>,
    /// Run commands that can't change anything without asking. Only with mode `read-only` and without the network.
    pub ease: bool,
    /// Secret files that builds and tests may read although nobody approved the command, such as `.env`: relative to the
    /// session's folders, absolute, or below the home folder with `~/`. Only in your own configuration.
    pub expose: Vec<String>,
    /// Unix sockets that builds and tests may connect to although nobody approved the command, such as
    /// `/run/postgresql/.s.PGSQL.5432`: absolute, or below the home folder with `~/`. They always reach those that they make
    /// themselves in `$TMPDIR`. Only in your own configuration.
    pub sockets: Vec<String>,
}

/// `[sandbox] network`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(test, derive(schemars::JsonSchema, serde::Serialize))]
#[cfg_attr(test, serde(untagged))]
pub enum NetworkSetting {
    /// All of it, or nothing.
    All(bool),
    /// A person is asked about each host.
    Ask(AskWord),
    /// These hosts; a person is asked about others. A host without a port stands for its ports 443 and 80.
    Hosts(Vec<String>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(test, derive(schemars::JsonSchema, serde::Serialize))]
#[cfg_attr(test, serde(rename_all = "kebab-case"))]
pub enum AskWord {
    Ask,
}

impl Default for NetworkSetting {
    fn default() -> Self {
        Self::All(false)
    }
}

impl<'de> Deserialize<'de> for NetworkSetting {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NetworkVisitor)
    }
}

struct NetworkVisitor;

impl<'de> Visitor<'de> for NetworkVisitor {
    type Value = NetworkSetting;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("true, false, \"ask\" or a list of hosts")
    }

    fn visit_bool<E: de::Error>(self, all: bool) -> Result<NetworkSetting, E> {
        Ok(NetworkSetting::All(all))
    }

    fn visit_str<E: de::Error>(self, word: &str) -> Result<NetworkSetting, E> {
        match word {
            "ask" => Ok(NetworkSetting::Ask(AskWord::Ask)),
            _ => Err(E::invalid_value(Unexpected::Str(word), &self)),
        }
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut entries: A) -> Result<NetworkSetting, A::Error> {
        let mut hosts = Vec::new();
        while let Some(host) = entries.next_element()? {
            hosts.push(host);
        }
        Ok(NetworkSetting::Hosts(hosts))
    }
}

impl NetworkSetting {
    /// The hosts, if the network is by host.
    ///
    /// # Errors
    /// An entry that is no host, in words for people.
    fn hosts(&self) -> Result<Option<NetworkHosts>, String> {
        match self {
            Self::All(_) => Ok(None),
            Self::Ask(AskWord::Ask) => NetworkHosts::parse(&[]).map(Some),
            Self::Hosts(hosts) => NetworkHosts::parse(hosts).map(Some),
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema, serde::Serialize))]
#[serde(rename_all = "kebab-case")]
pub enum SandboxMode {
    /// Commands may do everything that you may.
    #[default]
    Off,
    /// Commands may do the same, except change the files that control the daemon or read the daemon's own files. Some
    /// programs do not work with it.
    Guard,
    /// Commands may not change any file.
    ReadOnly,
    /// Commands may change files in the session's folders, except those that control the daemon.
    WorkspaceWrite,
}

impl SandboxConfig {
    /// Converts it to rules, tried on this system. Blocks for some milliseconds where there is a
    /// sandbox.
    pub fn rules(&self, places: &DaemonPaths) -> SandboxRules {
        let mode = match self.mode {
            SandboxMode::Off => ConfinementMode::Off,
            SandboxMode::Guard => ConfinementMode::Guard,
            SandboxMode::ReadOnly => ConfinementMode::ReadOnly,
            SandboxMode::WorkspaceWrite => ConfinementMode::WorkspaceWrite,
        };
        let home = places.home.as_ref().map(|home| home.canonicalize().unwrap_or_else(|_| home.clone()));
        let writable: Vec<PathBuf> = self.writable.iter().map(|path| expand_home(path, home.as_deref())).collect();
        let expose = self.expose.iter().map(|path| expand_home(path, home.as_deref())).collect();
        let sockets = self.sockets.iter().map(|path| expand_home(path, home.as_deref())).collect();
        // A list with a mistake allows nothing, and is reported below.
        let hosts = self.network.hosts().ok().flatten().map(Arc::new);
        let network = self.network == NetworkSetting::All(true);
        let ease = self.ease;
        let mut rules = SandboxRules { mode, network, hosts, writable, ease, expose, sockets, home, refused: None };
        rules.refused = self.mistake(&rules).map_or_else(|| rules.try_out().err(), Some);
        rules
    }

    fn mistake(&self, rules: &SandboxRules) -> Option<String> {
        if let Some(path) = rules.writable.iter().find(|path| !path.is_absolute()) {
            return Some(format!("writable: {} is not an absolute path", path.display()));
        }
        if let Some(path) = rules.sockets.iter().find(|path| !path.is_absolute()) {
            return Some(format!("sockets: {} is not an absolute path", path.display()));
        }
        if self.mode != SandboxMode::WorkspaceWrite && !self.writable.is_empty() {
            return Some("writable is for the mode workspace-write".to_owned());
        }
        let by_host = match self.network.hosts() {
            Ok(hosts) => hosts.is_some(),
            Err(why) => return Some(why),
        };
        if by_host && matches!(self.mode, SandboxMode::Off | SandboxMode::Guard) {
            return Some("network by host is for the modes workspace-write and read-only".to_owned());
        }
        let harmless = self.mode == SandboxMode::ReadOnly && self.network == NetworkSetting::default();
        (self.ease && !harmless).then(|| "ease is for the mode read-only without the network".to_owned())
    }
}

/// The result of the last trial of the mode `guard`, and its configuration.
#[derive(Default)]
pub(crate) struct GuardTrials(Mutex<Option<(Arc<LoadedConfig>, GuardTrial)>>);

/// Tries the mode `guard` where no sandbox is set, once for each configuration. Blocks for some
/// milliseconds.
pub(super) fn trial_of_guard(trials: &GuardTrials, loaded: Arc<LoadedConfig>, policy: &Policy) -> Option<GuardTrial> {
    // Without a mark this is a daemon embedded in another program, whose binary cannot apply a
    // sandbox.
    if loaded.sandbox.mode != ConfinementMode::Off || loaded.sandbox.refused.is_some() || tool_mark::own().is_none() {
        return None;
    }
    let mut last = trials.0.lock();
    if let Some((of, trial)) = last.as_ref()
        && Arc::ptr_eq(of, &loaded)
    {
        return Some(trial.clone());
    }
    let problem = try_guard(policy).err();
    let trial = GuardTrial { works: problem.is_none(), problem };
    *last = Some((loaded, trial.clone()));
    Some(trial)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, problem: Option<&str>) {
        let config: SandboxConfig = toml::from_str(text).unwrap();
        let rules =
            SandboxRules { writable: config.writable.iter().map(PathBuf::from).collect(), ..SandboxRules::default() };
        assert_eq!(config.mistake(&rules).as_deref(), problem);
    }

    #[test]
    fn other_values_of_network_are_refused() {
        let wrong = toml::from_str::<SandboxConfig>("network = \"all\"").unwrap_err().to_string();
        assert!(wrong.contains("expected true, false, \"ask\" or a list of hosts"), "{wrong}");
        assert!(toml::from_str::<SandboxConfig>("network = [1]").is_err());
    }

    #[test]
    fn conflicting_settings_are_reported() {
        check("", None);
        check("mode = \"read-only\"\nease = true", None);
        check("mode = \"workspace-write\"\nwritable = [\"/a\"]", None);
        check("mode = \"guard\"", None);
        check("mode = \"guard\"\nease = true", Some("ease is for the mode read-only without the network"));
        check("mode = \"guard\"\nwritable = [\"/a\"]", Some("writable is for the mode workspace-write"));
        check(
            "mode = \"read-only\"\nease = true\nnetwork = true",
            Some("ease is for the mode read-only without the network"),
        );
        check("mode = \"workspace-write\"\nease = true", Some("ease is for the mode read-only without the network"));
        check("mode = \"read-only\"\nnetwork = \"ask\"", None);
        check("mode = \"workspace-write\"\nnetwork = [\"a.example\", \"localhost:5432\"]", None);
        check("network = []", Some("network by host is for the modes workspace-write and read-only"));
        check(
            "mode = \"read-only\"\nnetwork = \"ask\"\nease = true",
            Some("ease is for the mode read-only without the network"),
        );
        check(
            "mode = \"read-only\"\nnetwork = [\"localhost\"]",
            Some("network: \"localhost\" needs a port, such as localhost:5432"),
        );
        check("mode = \"read-only\"\nwritable = [\"/a\"]", Some("writable is for the mode workspace-write"));
        check("mode = \"workspace-write\"\nwritable = [\"a\"]", Some("writable: a is not an absolute path"));
    }
}
