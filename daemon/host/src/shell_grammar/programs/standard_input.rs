//! Programs that run what their standard input says: shells, interpreters, clients of databases.
//!
//! The readers of their words tell by [`Reading::runs_input`] that the words name no other program, and by
//! [`Reading::is_open`] that the command comes from elsewhere.

use super::{CommandOutput, Reading};

/// Adds what the standard input of such a program says to what rules that deny or ask are about. Where it is not known, the
/// program may run anything.
pub(super) fn judge(reading: &mut Reading, input: &CommandOutput) {
    reading.runs_input &= !matches!(input, CommandOutput::OfLine);
    if !reading.runs_input && !reading.is_open {
        return;
    }
    match input {
        CommandOutput::OfLine => {}
        CommandOutput::Content(file) => _ = reading.script_file.get_or_insert_with(|| file.clone()),
        other => match other.text() {
            Some(text) => reading.program = Some(text.to_owned()),
            None => reading.may_run_any = true,
        },
    }
}
