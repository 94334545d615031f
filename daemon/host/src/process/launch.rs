//! The process between the daemon and a program that it starts: the daemon's own binary again. It creates a session,
//! sets the [mark of tools](crate::tool_mark), and becomes the program. Doing that in the child itself would need
//! unsafe code between fork and exec.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::ExitCode;

use crate::sandbox::helper::PROGRAM;
use crate::tool_mark;

/// The first argument that selects this mode.
const NAME: &str = "launch";
/// The exit status of shells for a command that could not be run.
const FAILED: u8 = 126;

/// The program to start instead of `program`, and the arguments to prepend to its own.
pub(super) fn wrap(program: &Path, mark: u64) -> (&'static str, [OsString; 3]) {
    (PROGRAM, [NAME.into(), mark.to_string().into(), program.into()])
}

/// Runs this mode if the process's arguments ask for it; returns only on failure. Must be called before any other
/// thread exists.
pub fn run_if_asked(mut arguments: impl Iterator<Item = OsString>) -> Option<ExitCode> {
    arguments.next();
    if arguments.next()? != NAME {
        return None;
    }
    eprintln!("toold: {}", become_program(arguments));
    Some(ExitCode::from(FAILED))
}

fn become_program(mut arguments: impl Iterator<Item = OsString>) -> String {
    let mark = arguments.next().and_then(|mark| mark.to_str()?.parse().ok());
    let (Some(mark), Some(program)) = (mark, arguments.next()) else {
        return format!("{NAME} takes a mark and a program; the daemon uses it to start tools");
    };
    // With a terminal it already leads a session.
    let _ = rustix::process::setsid();
    // An unmarked program could be mistaken for a person.
    if let Err(error) = tool_mark::put_on_this_process(mark) {
        return format!("can't mark {} as started by a tool: {error}", program.display());
    }
    let error = std::process::Command::new(&program).args(arguments).exec();
    format!("can't run {}: {error}", program.display())
}
