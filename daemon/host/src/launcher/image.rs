//! The launcher's program in memory. The file that it runs from is sealed, so nobody can change it, not even a process
//! that opens it through the daemon's `/proc/PID/fd`. An [installed copy](super::installed) takes its place.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use rustix::fs::{MemfdFlags, Mode, SealFlags, fchmod, fcntl_add_seals, memfd_create};

use super::OWN_PROGRAM;
use super::installed;
use super::order::{FAILED, LaunchOrder};
use crate::tool_mark;

/// The program, as `build.rs` compiled it from [`main.rs`](main.rs); empty where it could not.
pub(super) static IMAGE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/launcher"));

/// Global, as the program is: all daemons of a process share it.
static FILE: OnceLock<Option<OwnedFd>> = OnceLock::new();

/// The path of the program, for a child of this process; `None` if the system does not run it. The first call tries that,
/// which takes about a millisecond.
pub(super) fn path() -> Option<PathBuf> {
    let file = FILE.get_or_init(|| {
        let tried = |file: OwnedFd| try_out(&file).map(|()| file);
        if let Some(file) = installed::open(IMAGE).and_then(|file| tried(file).ok()) {
            return Some(file);
        }
        let file = sealed(IMAGE).and_then(tried);
        file.inspect_err(|error| tracing::info!(%error, "commands start through the daemon's own program")).ok()
    });
    file.as_ref().map(path_of)
}

fn path_of(file: &OwnedFd) -> PathBuf {
    format!("/proc/self/fd/{}", file.as_raw_fd()).into()
}

/// A file in memory with this content, which may be executed, is closed by that, and never changes.
fn sealed(content: &[u8]) -> io::Result<OwnedFd> {
    const NAME: &str = "toold-launcher";
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    // Before Linux 6.3, every such file may be executed, and the flag is unknown; as is the seal for that.
    let file = memfd_create(NAME, flags | MemfdFlags::EXEC).or_else(|_| memfd_create(NAME, flags))?;
    let mut file = File::from(file);
    file.write_all(content)?;
    fchmod(&file, Mode::RUSR | Mode::XUSR)?;
    let seals = SealFlags::WRITE | SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL;
    fcntl_add_seals(&file, seals | SealFlags::EXEC).or_else(|_| fcntl_add_seals(&file, seals))?;
    Ok(file.into())
}

/// Starts the program as if for a tool, and lets it become itself without arguments, which it refuses.
fn try_out(file: &OwnedFd) -> io::Result<()> {
    let program = PathBuf::from(OWN_PROGRAM);
    let order = LaunchOrder { tool_mark: Some(tool_mark::HIGHEST), program, ..LaunchOrder::default() };
    let mut command = Command::new(path_of(file));
    command.args(order.arguments()).env_clear().stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let status = command.status()?;
    if status.code() == Some(FAILED.into()) { Ok(()) } else { Err(io::Error::other(status.to_string())) }
}

#[cfg(test)]
mod tests {
    use rustix::io::Errno;

    use super::*;

    #[test]
    fn the_program_runs_and_another_file_does_not() {
        try_out(&sealed(IMAGE).unwrap()).unwrap();
        assert!(try_out(&sealed(b"").unwrap()).is_err());
        assert!(
            try_out(&sealed(&std::fs::read("/bin/true").unwrap()).unwrap()).is_err(),
            "it runs, and refuses nothing"
        );
        assert_eq!(path(), path());
    }

    #[test]
    fn nobody_changes_the_file() {
        let file = sealed(b"as it is").unwrap();
        // What a child would open. Only root may open it for writing.
        let again = std::fs::OpenOptions::new().write(true).open(path_of(&file)).map(OwnedFd::from);
        for file in std::iter::once(&file).chain(&again) {
            assert_eq!(rustix::io::pwrite(file, b"X", 0), Err(Errno::PERM));
            assert_eq!(rustix::fs::ftruncate(file, 0), Err(Errno::PERM));
            assert_eq!(rustix::fs::ftruncate(file, 100), Err(Errno::PERM));
            assert_eq!(rustix::fs::fcntl_add_seals(file, SealFlags::FUTURE_WRITE), Err(Errno::PERM));
        }
        assert_eq!(std::fs::read(path_of(&file)).unwrap(), b"as it is");
    }
}
