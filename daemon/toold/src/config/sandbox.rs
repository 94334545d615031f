//! `[sandbox]`: the sandbox of the commands of `bash` and of plugins.

use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::Mutex;
use serde::Deserialize;
use toold_engine::policy::Policy;
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
    pub mode: SandboxMode,
    /// Whether commands can reach the network; with mode `guard` they always can. With the other modes they can never
    /// reach Unix sockets.
    pub network: bool,
    /// Folders that commands may change in addition to the session's, with mode `workspace-write`; `~/` is the home
    /// folder.
    pub writable: Vec<String>,
    /// Run commands that can't change anything without asking. Only with mode `read-only` and without the network.
    pub ease: bool,
    /// Secret files that builds and tests may read although nobody approved the command, such as `.env`: relative to the
    /// session's folders, absolute, or below the home folder with `~/`. Only in your own configuration.
    pub expose: Vec<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
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
        let (network, ease) = (self.network, self.ease);
        let mut rules = SandboxRules { mode, network, writable, ease, expose, home, refused: None };
        rules.refused = self.mistake(&rules).map_or_else(|| rules.try_out().err(), Some);
        rules
    }

    fn mistake(&self, rules: &SandboxRules) -> Option<String> {
        if let Some(path) = rules.writable.iter().find(|path| !path.is_absolute()) {
            return Some(format!("writable: {} is not an absolute path", path.display()));
        }
        if self.mode != SandboxMode::WorkspaceWrite && !self.writable.is_empty() {
            return Some("writable is for the mode workspace-write".to_owned());
        }
        let harmless = self.mode == SandboxMode::ReadOnly && !self.network;
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
        check("mode = \"read-only\"\nwritable = [\"/a\"]", Some("writable is for the mode workspace-write"));
        check("mode = \"workspace-write\"\nwritable = [\"a\"]", Some("writable: a is not an absolute path"));
    }
}
