//! The process between the daemon and a confined program: the daemon's own binary again. It drops what the program must
//! not have, then becomes the program. At that point it has no threads and no open files.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::ExitCode;

use super::Confinement;
use crate::tool_mark;

/// The first argument that selects this mode.
pub const NAME: &str = "sandbox-exec";
/// The daemon's own binary, even if it was replaced since the daemon started.
pub(crate) const PROGRAM: &str = "/proc/self/exe";
/// The prefix of its error messages.
pub(crate) const SAYS: &str = "toold: no sandbox: ";
/// The exit status of shells for a command that could not be run.
const FAILED: u8 = 126;

/// Runs this mode if the process's arguments ask for it; returns only on failure. Must be called before any other
/// thread exists.
pub fn run_if_asked(mut arguments: impl Iterator<Item = OsString>) -> Option<ExitCode> {
    arguments.next();
    if arguments.next()? != NAME {
        return None;
    }
    let error = match read(arguments) {
        Ok(asked) => become_confined(asked),
        Err(error) => error,
    };
    eprintln!("{SAYS}{error}");
    Some(ExitCode::from(FAILED))
}

/// The program that the process becomes.
struct ConfinedProgram<A> {
    confinement: Confinement,
    /// See [`tool_mark`].
    tool_mark: Option<u64>,
    program: PathBuf,
    arguments: A,
}

fn read<A: Iterator<Item = OsString>>(mut arguments: A) -> Result<ConfinedProgram<A>, String> {
    let mut confinement = Confinement::default();
    let mut tool_mark = None;
    loop {
        let flag = arguments.next().ok_or("expected -- and a program")?;
        let mut path = || arguments.next().map(PathBuf::from).ok_or(format!("{} takes a path", flag.display()));
        match flag.to_str() {
            Some("--guard") => confinement.guard = true,
            Some("--network") => confinement.network = true,
            Some("--needs-scope") => confinement.needs_scope = true,
            Some("--tool-mark") => {
                let mark = path()?;
                tool_mark = Some(mark.to_str().and_then(|mark| mark.parse().ok()).ok_or("--tool-mark takes a number")?);
            }
            Some("--write") => confinement.writable.push(path()?),
            Some("--protect") => confinement.protected.push(path()?),
            Some("--mask") => confinement.masked.push(path()?),
            Some("--") => return Ok(ConfinedProgram { confinement, tool_mark, program: path()?, arguments }),
            Some(_) | None => return Err(format!("{} is no flag", flag.display())),
        }
    }
}

#[cfg(target_os = "linux")]
fn become_confined(asked: ConfinedProgram<impl Iterator<Item = OsString>>) -> String {
    let ConfinedProgram { confinement, tool_mark, program, arguments } = asked;
    // With a terminal it already leads a session.
    let _ = rustix::process::setsid();
    if let Some(Err(error)) = tool_mark.map(tool_mark::put_on_this_process) {
        return format!("can't mark {} as started by a tool: {error}", program.display());
    }
    let temp = match super::kernel::confine(&confinement) {
        Ok(temp) => temp,
        Err(error) => return error,
    };
    let mut command = std::process::Command::new(&program);
    command.args(arguments);
    if let Some(temp) = temp {
        command.env("TMPDIR", temp);
    }
    format!("can't run {}: {}", program.display(), command.exec())
}

#[cfg(not(target_os = "linux"))]
fn become_confined(_: ConfinedProgram<impl Iterator<Item = OsString>>) -> String {
    "this system has neither Landlock nor seccomp".to_owned()
}
