//! Where the daemon's socket is. Both sides must agree, so the rule stands here.

use std::path::{Path, PathBuf};

/// The socket's path, from a look-up of environment variables.
///
/// `$TOOLD_SOCKET`, else `$XDG_RUNTIME_DIR/toold/toold.sock`, else `$XDG_STATE_HOME/toold/toold.sock`
/// with `~/.local/state` for an unset `$XDG_STATE_HOME`. Empty and relative values count as unset,
/// as the XDG Base Directory Specification says. `None` without a home folder.
pub fn socket_path(var: impl Fn(&str) -> Option<String>) -> Option<PathBuf> {
    let absolute = |name: &str| var(name).map(PathBuf::from).filter(|path| path.is_absolute());
    if let Some(path) = absolute("TOOLD_SOCKET") {
        return Some(path);
    }
    let dir = absolute("XDG_RUNTIME_DIR")
        .or_else(|| absolute("XDG_STATE_HOME"))
        .or_else(|| absolute("HOME").map(|home| home.join(".local/state")))?;
    Some(dir.join("toold/toold.sock"))
}

/// The file whose lock the one daemon of a socket holds. It stays after a stop.
pub fn lock_path(socket: &Path) -> PathBuf {
    beside(socket, ".lock")
}

/// The log of a daemon that a client started.
pub fn log_path(socket: &Path) -> PathBuf {
    beside(socket, ".log")
}

fn beside(socket: &Path, suffix: &str) -> PathBuf {
    let mut name = socket.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(vars: &[(&str, &str)], expected: &str) {
        let var = |name: &str| vars.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).to_owned());
        assert_eq!(socket_path(var).unwrap().to_str().unwrap(), expected);
    }

    #[test]
    fn socket_follows_the_environment() {
        check(&[("TOOLD_SOCKET", "/x/s"), ("HOME", "/h")], "/x/s");
        check(&[("XDG_RUNTIME_DIR", "/run/user/1"), ("HOME", "/h")], "/run/user/1/toold/toold.sock");
        check(&[("XDG_STATE_HOME", "/st"), ("HOME", "/h")], "/st/toold/toold.sock");
        check(&[("XDG_RUNTIME_DIR", ""), ("TOOLD_SOCKET", "rel"), ("HOME", "/h")], "/h/.local/state/toold/toold.sock");
    }
}
