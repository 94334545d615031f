//! The launcher: the process between the daemon and a program that it starts. It creates a session, sets the
//! [mark of tools](crate::tool_mark), restricts itself if the program is confined, and becomes the program ([`order`]).
//! Doing that in the child itself would need unsafe code between fork and exec.
//!
//! The daemon contains the launcher as a small static program ([`image`]). Where the system does not run that, the
//! daemon's own binary is the launcher.

pub mod life;
pub mod order;
pub mod stand_in;

#[cfg(target_os = "linux")]
mod filters;
#[cfg(target_os = "linux")]
mod image;
#[cfg(target_os = "linux")]
pub mod installed;
#[cfg(target_os = "linux")]
mod kernel;
#[cfg(target_os = "linux")]
mod mounts;
#[cfg(target_os = "linux")]
mod network;
#[cfg(target_os = "linux")]
mod renew;
#[cfg(target_os = "linux")]
mod system;

use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use order::{Confinement, LaunchOrder};

/// The daemon's own binary, even if it was replaced since the daemon started.
pub(crate) const OWN_PROGRAM: &str = "/proc/self/exe";

/// Starts the program through the launcher. The program's own arguments follow.
pub(crate) fn command(program: &Path, tool_mark: Option<u64>, confinement: Option<&Confinement>) -> Command {
    // Without a filter, the launcher reports why it has none.
    let filter = confinement.and_then(|confinement| filter_for(confinement).ok());
    let order = LaunchOrder { tool_mark, confinement: confinement.cloned(), filter, program: program.to_owned() };
    let mut command = launcher();
    command.args(order.arguments());
    command
}

/// A process that makes a network namespace, or enters those given, and sends its listeners through the socket at its
/// standard input.
pub(crate) fn network_command(join: &[PathBuf], ports: &[u16]) -> Command {
    let mut command = launcher();
    command.arg(order::NETWORK);
    command.args(join.iter().flat_map(|path| [OsStr::new("--join"), path.as_os_str()]));
    command.args(ports.iter().map(u16::to_string));
    command
}

/// A process that covers files again in the namespaces of a program: see `launcher/renew.rs`.
#[cfg(target_os = "linux")]
pub(crate) fn renew_command(join: &[PathBuf]) -> Command {
    let mut command = launcher();
    command.arg(order::RENEW);
    command.args(join.iter().flat_map(|path| [OsStr::new("--join"), path.as_os_str()]));
    command
}

fn launcher() -> Command {
    #[cfg(target_os = "linux")]
    let launcher = image::path().unwrap_or_else(|| OWN_PROGRAM.into());
    #[cfg(not(target_os = "linux"))]
    let launcher = OWN_PROGRAM;
    let mut command = Command::new(launcher);
    command.arg0("toold");
    command
}

/// The arguments with which the daemon's program confines itself and becomes the program, whose own arguments follow. The
/// process is not marked: whoever starts it is known by other means.
///
/// # Errors
/// Why there is no filter of system calls, in words for people.
pub fn arguments(program: &Path, confinement: &Confinement) -> Result<Vec<OsString>, String> {
    let filter = Some(filter_for(confinement)?);
    let confinement = Some(confinement.clone());
    Ok(LaunchOrder { tool_mark: None, confinement, filter, program: program.to_owned() }.arguments())
}

/// What a person can do where the system refuses namespaces to the launcher, as the end of a sentence.
pub(crate) fn advice() -> Option<&'static str> {
    #[cfg(target_os = "linux")]
    return installed::advice();
    #[cfg(not(target_os = "linux"))]
    None
}

#[cfg(target_os = "linux")]
fn filter_for(confinement: &Confinement) -> Result<String, String> {
    filters::filter(confinement)
}

#[cfg(not(target_os = "linux"))]
fn filter_for(_: &Confinement) -> Result<String, String> {
    Ok(String::new())
}

/// Makes this process the launcher if its arguments ask for that; returns only on failure. Must be called before any
/// other thread exists.
pub fn run_if_asked(arguments: impl Iterator<Item = OsString>) -> Option<ExitCode> {
    order::run_if_asked(arguments, filter_for)
}

/// The program of these tests is no launcher, so the one in memory starts whatever starts.
#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::order::NO_SANDBOX;
    use super::*;
    use crate::tool_mark;

    fn shell(tool_mark: Option<u64>, confinement: Option<&Confinement>, line: &str) -> std::process::Output {
        command(Path::new("/bin/bash"), tool_mark, confinement)
            .args(["-c", line, "its-name", "its argument"])
            .output()
            .unwrap()
    }

    #[test]
    fn a_program_is_marked_and_leads_a_session() {
        let line = "ulimit -Hq; ulimit -Sq; cut -d ' ' -f 6 /proc/$$/stat; echo $$; echo \"$0, $1\"";
        let output = shell(Some(tool_mark::HIGHEST), None, line);
        let said = String::from_utf8(output.stdout).unwrap();
        let lines: Vec<&str> = said.lines().collect();
        let mark = tool_mark::HIGHEST.to_string();
        assert_eq!([lines[0], lines[1], lines[2], lines[4]], [&mark, &mark, lines[3], "its-name, its argument"]);
    }

    #[test]
    fn a_program_inherits_no_descriptor_of_the_launcher() {
        // The fourth one is the folder itself.
        let open = |command: &mut Command| command.args(["-c", "ls /proc/self/fd | wc -l"]).output().unwrap().stdout;
        let plain = open(&mut Command::new("/bin/bash"));
        assert_eq!(open(&mut command(Path::new("/bin/bash"), Some(tool_mark::HIGHEST), None)), plain);
    }

    #[test]
    fn a_program_that_cannot_be_marked_or_started_is_reported() {
        let run = |mark: u64, program: &str| {
            let output = command(Path::new(program), Some(mark), None).output().unwrap();
            (output.status.code(), String::from_utf8(output.stderr).unwrap())
        };
        let (status, words) = run(tool_mark::HIGHEST, "/no/such");
        assert_eq!(
            (status, words.as_str()),
            (Some(126), "toold: can't run /no/such: No such file or directory (os error 2)\n")
        );
        // No process may have as high a limit as this without a right that the launcher does not need.
        let (status, words) = run(u64::MAX - 1, "/bin/true");
        assert!(
            words.starts_with("toold: can't mark /bin/true as started by a tool: ") || status == Some(0),
            "{words}"
        );
    }

    #[test]
    fn a_confined_program_is_marked_too() {
        let confinement = Confinement::default();
        let output = shell(Some(tool_mark::HIGHEST), Some(&confinement), "ulimit -Hq; : > /tmp/written");
        let words = String::from_utf8_lossy(&output.stderr);
        if words.starts_with(NO_SANDBOX) {
            assert!(output.stdout.is_empty() && output.status.code() == Some(126), "{output:?}");
            return;
        }
        assert_eq!(String::from_utf8(output.stdout).unwrap(), format!("{}\n", tool_mark::HIGHEST));
        assert!(words.contains("Read-only file system"), "{words}");
    }
}
