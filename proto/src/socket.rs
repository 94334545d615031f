//! Where the daemon's socket is. Both sides must agree, so the rule is here.

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

/// The output of a daemon that a client started, until it opens its log; see [`log_file`].
pub fn log_path(socket: &Path) -> PathBuf {
    beside(socket, ".log")
}

/// The log of the daemon of this socket: `toold.log` in `$XDG_STATE_HOME/toold/log`. Those of other sockets than the
/// usual one have names of their own. Older ones are beside it, `.1` the newest of them. `None` without a home folder.
pub fn log_file(socket: &Path, var: impl Fn(&str) -> Option<String>) -> Option<PathBuf> {
    let absolute = |name: &str| var(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = absolute("XDG_STATE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".local/state")))?;
    let usual = socket_path(|name| if name == "TOOLD_SOCKET" { None } else { var(name) });
    let name = match usual.as_deref() == Some(socket) {
        true => "toold.log".to_owned(),
        false => format!("toold-{:08x}.log", fnv1a(socket.as_os_str().as_encoded_bytes())),
    };
    Some(state.join("toold/log").join(name))
}

/// The hash of Fowler, Noll and Vo: short, and the same in every version.
fn fnv1a(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
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

    #[test]
    fn every_socket_has_a_log_of_its_own() {
        let var = |name: &str| match name {
            "XDG_RUNTIME_DIR" => Some("/run/user/1".to_owned()),
            "TOOLD_SOCKET" => Some("/x/s".to_owned()),
            "HOME" => Some("/h".to_owned()),
            _ => None,
        };
        let file = |socket: &str| log_file(Path::new(socket), var).unwrap().display().to_string();
        assert_eq!(file("/run/user/1/toold/toold.sock"), "/h/.local/state/toold/log/toold.log");
        assert_eq!(file("/x/s"), "/h/.local/state/toold/log/toold-6eee4bdc.log");
        assert_ne!(file("/x/t"), file("/x/s"));
    }
}
