//! The environment of child processes: an allow-list of the daemon's variables, and those that a session adds.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

/// The variables that a child may inherit from the daemon. Any of its clients may have started the daemon, so only the
/// variables that programs need to run are passed on, and nothing else of that client's shell reaches other clients'
/// calls.
const INHERITED: [&str; 22] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "TZ",
    "TMPDIR",
    "XDG_RUNTIME_DIR",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_CACHE_HOME",
    "XDG_STATE_HOME",
    "SSH_AUTH_SOCK",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "CARGO_HOME",
    "RUSTUP_HOME",
];

/// Variables that make a shell or the dynamic linker run other code than intended.
const REFUSED: [&str; 8] =
    ["BASH_ENV", "ENV", "SHELLOPTS", "BASHOPTS", "PS4", "PROMPT_COMMAND", "GLOBIGNORE", "BASH_XTRACEFD"];
const REFUSED_PREFIXES: [&str; 3] = ["BASH_FUNC_", "LD_", "DYLD_"];

/// The variables of a child process. Never contains variables that change which code runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Environment(BTreeMap<OsString, OsString>);

impl Environment {
    /// The variables that children inherit from `daemon`, the environment of the daemon's own process.
    pub fn inherited(daemon: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        let mut environment = Self::default();
        for (name, value) in daemon {
            let passes = name.to_str().is_some_and(|name| INHERITED.contains(&name) || name.starts_with("LC_"));
            if passes {
                environment.set(name, value);
            }
        }
        // Programs that open a pager or an editor would wait for a terminal that never comes.
        for (name, value) in [("TERM", "dumb"), ("PAGER", "cat"), ("GIT_PAGER", "cat"), ("GIT_TERMINAL_PROMPT", "0")] {
            environment.set(name, value);
        }
        environment
    }

    /// Adds or replaces variables; skips those that change which code runs.
    pub fn with<N: AsRef<OsStr>, V: AsRef<OsStr>>(mut self, more: impl IntoIterator<Item = (N, V)>) -> Self {
        for (name, value) in more {
            self.set(name, value);
        }
        self
    }

    pub fn get(&self, name: &str) -> Option<&OsStr> {
        self.0.get(OsStr::new(name)).map(OsString::as_os_str)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&OsStr, &OsStr)> {
        self.0.iter().map(|(name, value)| (name.as_os_str(), value.as_os_str()))
    }

    fn set(&mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) {
        let (name, value) = (name.as_ref(), value.as_ref());
        let text = name.to_string_lossy();
        let refused =
            REFUSED.contains(&text.as_ref()) || REFUSED_PREFIXES.iter().any(|prefix| text.starts_with(prefix));
        // The system accepts neither; `Command` would reject the whole list.
        let unusable = text.is_empty() || text.contains(['=', '\0']) || value.as_encoded_bytes().contains(&0);
        if !refused && !unusable {
            self.0.insert(name.to_owned(), value.to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_listed_variables_are_inherited() {
        let daemon = [("PATH", "/bin"), ("LC_ALL", "C"), ("AWS_SECRET_ACCESS_KEY", "x"), ("PS1", "$")];
        let environment = Environment::inherited(daemon.map(|(name, value)| (name.into(), value.into())));
        assert_eq!(environment.get("PATH"), Some(OsStr::new("/bin")));
        assert_eq!(environment.get("LC_ALL"), Some(OsStr::new("C")));
        assert_eq!(environment.get("AWS_SECRET_ACCESS_KEY"), None);
        assert_eq!(environment.get("PS1"), None);
    }

    #[test]
    fn a_session_cannot_change_which_code_runs() {
        let asked = ["BASH_ENV", "ENV", "SHELLOPTS", "LD_PRELOAD", "BASH_FUNC_ls%%", "A=B", "", "OK"];
        let environment = Environment::default().with(asked.map(|name| (name, "x")));
        let names: Vec<_> = environment.iter().map(|(name, _)| name.to_owned()).collect();
        assert_eq!(names, ["OK"]);
    }
}
