//! `[secrets]`: the names of secrets, and where their values are kept.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use toold_host::secrets::{SecretOptions, is_secret_name};

use crate::config::options::Options;

/// `[secrets]`: values such as tokens that stand in no file. `${secret:NAME}` in the section of an MCP server, or
/// as `notify.token`, is replaced by the value that `toolctl secrets set NAME` stored.
#[derive(Clone, Debug, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct SecretsConfig {
    /// Names of secrets that this configuration needs, so that `toolctl secrets list` shows those that are not set yet.
    /// Secrets that an MCP server or `notify.token` uses are shown without this.
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
    SecretOptions {
        file: options.paths.secrets(),
        bus: session_bus(options),
        credentials: folder(options, "CREDENTIALS_DIRECTORY"),
    }
}

/// The address of the D-Bus session bus of the daemon's user.
pub fn session_bus(options: &Options) -> Option<String> {
    let named = variable(options, "DBUS_SESSION_BUS_ADDRESS").and_then(OsStr::to_str).map(str::to_owned);
    named.or_else(|| folder(options, "XDG_RUNTIME_DIR").and_then(|runtime| bus_below(&runtime)))
}

fn folder(options: &Options, name: &str) -> Option<PathBuf> {
    variable(options, name).map(Path::new).filter(|path| path.is_absolute()).map(Path::to_owned)
}

fn variable<'o>(options: &'o Options, name: &str) -> Option<&'o OsStr> {
    let found = options.environment.iter().find(|(known, _)| known == name);
    found.map(|(_, value)| value.as_os_str()).filter(|value| !value.is_empty())
}

/// The bus of a session that systemd started.
fn bus_below(runtime: &Path) -> Option<String> {
    let socket: PathBuf = runtime.join("bus");
    socket.exists().then(|| format!("unix:path={}", socket.display()))
}
