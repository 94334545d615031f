//! The variables that tell where toold's files and socket are, as they were when a hook was installed.
//!
//! Gemini CLI and Qwen Code pass on the variables of the working folder's `.env`, which the author of a repository may have
//! written. With them, the hook would miss the daemon, or start another one with a configuration of the repository.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Beside these, all names that begin with `TOOLD_`.
const PLACES: [&str; 6] =
    ["HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR", "XDG_STATE_HOME"];

/// A variable of an installed hook, `NAME=VALUE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct InstalledVariable {
    name: String,
    value: String,
}

impl std::str::FromStr for InstalledVariable {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            Some((name, value)) if is_place(OsStr::new(name)) => {
                Ok(Self { name: name.to_owned(), value: value.to_owned() })
            }
            _ => Err(format!("expected NAME=VALUE with one of the names {}, or TOOLD_...", PLACES.join(", "))),
        }
    }
}

/// The variables of this process that tell where toold is, each as `NAME=VALUE`, sorted. Values that are not UTF-8 are left out.
pub(crate) fn variables() -> Vec<String> {
    let own = own().into_iter().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    own.map(|(name, value)| format!("{name}={value}")).collect()
}

/// Runs this program again with these variables in place of those that the agent has passed on, unless they are the same.
///
/// # Errors
/// The program cannot be run. It returns in no other case but when the variables are the same.
pub(super) fn apply(installed: &[InstalledVariable]) -> std::io::Result<()> {
    let installed: BTreeMap<OsString, OsString> =
        installed.iter().map(|variable| (variable.name.clone().into(), variable.value.clone().into())).collect();
    let own = own();
    if installed.is_empty() || own == installed {
        return Ok(());
    }
    let mut again = Command::new(std::env::current_exe()?);
    again.args(std::env::args_os().skip(1));
    own.keys().for_each(|name| _ = again.env_remove(name));
    Err(again.envs(installed).exec())
}

/// The variables of this process that tell a place. The usual folder of the system is as good as none: only some ways to log
/// in set it.
fn own() -> BTreeMap<OsString, OsString> {
    let usual = format!("/run/user/{}", rustix::process::getuid().as_raw());
    let is_usual = |name: &OsStr, value: &OsStr| name == "XDG_RUNTIME_DIR" && value == OsStr::new(&usual);
    std::env::vars_os().filter(|(name, value)| is_place(name) && !is_usual(name, value)).collect()
}

fn is_place(name: &OsStr) -> bool {
    PLACES.iter().any(|place| name == *place) || name.as_encoded_bytes().starts_with(b"TOOLD_")
}
