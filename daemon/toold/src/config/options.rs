//! The settings of the command line, the environment and the folders, before any configuration file
//! is read.

use std::ffi::OsString;
use std::path::PathBuf;

use toold_host::environment::Environment;

use crate::config::paths::DaemonPaths;

/// The options that a daemon is started with.
#[derive(Clone, Debug)]
pub struct Options {
    pub paths: DaemonPaths,
    /// A configuration file in place of the usual one.
    pub config: Option<PathBuf>,
    /// `KEY=VALUE` flags, which override the file and the environment.
    pub set: Vec<String>,
    /// Plugin folders and files in addition to those of the configuration.
    pub plugins: Vec<PathBuf>,
    /// What `daemon.status` shows; `None` for a daemon on stdio.
    pub socket: Option<PathBuf>,
    /// The variables of the daemon's process, from which those of its children are chosen.
    pub environment: Vec<(OsString, OsString)>,
}

impl Options {
    /// The path of the configuration file, whether or not it exists.
    pub fn config_file(&self) -> PathBuf {
        self.config.clone().unwrap_or_else(|| self.paths.config_file())
    }

    /// A variable of the daemon's process, if it is text.
    pub fn variable(&self, name: &str) -> Option<String> {
        let found = self.environment.iter().find(|(known, _)| known == name);
        found.and_then(|(_, value)| value.to_str()).map(str::to_owned)
    }

    /// The variables for processes that tools start: they find this daemon, and need no other.
    pub fn of_children(&self) -> Environment {
        let socket = self.socket.iter().map(|socket| ("TOOLD_SOCKET", socket.as_os_str()));
        Environment::inherited(self.environment.iter().cloned()).with(socket)
    }
}
