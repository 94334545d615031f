//! `[secrets]`: the names of secrets, and where their values are kept.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::Deserialize;
use toold_host::secrets::{SecretOptions, is_secret_name};

use crate::config::options::Options;

/// `[secrets]`: values such as tokens that stand in no file. `${secret:NAME}` in the section of an MCP server is
/// replaced by the value that `toolctl secrets set NAME` stored.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SecretsConfig {
    /// Names of secrets that this configuration needs, so that `toolctl secrets list` shows those that are not set yet.
    /// Secrets that an MCP server uses are shown without this.
    pub names: Vec<String>,
}

impl SecretsConfig {
    /// The errors of each.
    pub fn problems(&self) -> Vec<String> {
        let wrong = self.names.iter().filter(|name| !is_secret_name(name));
        wrong.map(|name| format!("{name:?} is not the name of a secret: letters, digits, _, - and .")).collect()
    }
}

/// The surroundings of the daemon's secrets.
pub fn options(options: &Options) -> SecretOptions {
    let variable = |name: &str| {
        let found = options.environment.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_os_str()).filter(|value| !value.is_empty())
    };
    let folder = |name: &str| variable(name).map(Path::new).filter(|path| path.is_absolute()).map(Path::to_owned);
    SecretOptions {
        file: options.paths.secrets(),
        bus: variable("DBUS_SESSION_BUS_ADDRESS")
            .and_then(OsStr::to_str)
            .map(str::to_owned)
            .or_else(|| folder("XDG_RUNTIME_DIR").and_then(|runtime| bus_below(&runtime))),
        credentials: folder("CREDENTIALS_DIRECTORY"),
    }
}

/// The bus of a session that systemd started.
fn bus_below(runtime: &Path) -> Option<String> {
    let socket: PathBuf = runtime.join("bus");
    socket.exists().then(|| format!("unix:path={}", socket.display()))
}
