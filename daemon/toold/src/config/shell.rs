//! `[shell]`: the processes of the tool `bash`.

use std::sync::Arc;

use serde::Deserialize;
use toold_host::kept_programs::KeptPrograms;

/// The processes of the tool `bash`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct ShellConfig {
    /// Programs that keep running when a command leaves them behind, such as build servers; all others are ended with
    /// their command. `*` stands for any text. An entry is compared with the program's name and with the whole command
    /// line. They stay tools' processes, and end with the daemon. The list replaces the default one.
    pub keep: Vec<String>,
}

/// Build servers, agents for keys, masters of ssh connections, and the background work of git.
const KEEP: [&str; 22] = [
    "sccache",
    "*org.gradle.launcher.daemon.bootstrap.GradleDaemon*",
    "*org.jetbrains.kotlin.daemon.*",
    "*org.mvndaemon.mvnd.*",
    "bazel(*",
    "buck2d*",
    "*VBCSCompiler*",
    "*MSBuild.dll*/nodemode:*",
    "turbo *daemon*",
    "watchman",
    "eslint_d*",
    "adb",
    "conmon",
    "gpg-agent",
    "keyboxd",
    "dirmngr",
    "scdaemon",
    "ssh-agent",
    "ssh: *[mux]",
    "git gc*",
    "git maintenance*",
    "git fsmonitor--daemon*",
];

impl Default for ShellConfig {
    fn default() -> Self {
        Self { keep: KEEP.map(str::to_owned).to_vec() }
    }
}

impl ShellConfig {
    pub(crate) fn kept_programs(&self) -> Arc<KeptPrograms> {
        Arc::new(KeptPrograms::new(self.keep.clone()))
    }
}
