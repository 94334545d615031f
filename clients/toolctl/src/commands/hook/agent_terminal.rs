//! Whether the agent that runs this hook has a terminal, on which it can ask a person.

use std::fs;

/// The hook, the shell that agents start it with, and the agent.
const LEVELS: usize = 3;

/// Hooks may run in a session of their own, so that the terminal is that of one of the processes above.
pub(super) fn has_terminal() -> bool {
    let mut pid = "self".to_owned();
    for _ in 0..LEVELS {
        // Where there is no such file, only the hook's own terminal tells.
        let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else { break };
        let Some(process) = ProcessStat::read(&stat) else { break };
        if process.has_terminal {
            return true;
        }
        pid = process.parent;
    }
    fs::File::open("/dev/tty").is_ok()
}

/// Whether the agent was started with `-p` or `--prompt`, and so answers one prompt and asks nothing.
pub(super) fn runs_one_prompt() -> bool {
    let mut pid = "self".to_owned();
    for _ in 0..LEVELS {
        let Some(process) =
            fs::read_to_string(format!("/proc/{pid}/stat")).ok().and_then(|stat| ProcessStat::read(&stat))
        else {
            return false;
        };
        pid = process.parent;
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let mut words = line.split(|byte| *byte == 0);
        if words.any(|word| word == b"-p" || word == b"--prompt" || word.starts_with(b"--prompt=")) {
            return true;
        }
    }
    false
}

struct ProcessStat {
    parent: String,
    has_terminal: bool,
}

impl ProcessStat {
    /// `PID (NAME) STATE PPID PGRP SESSION TTY`; the name may have spaces and parentheses.
    fn read(stat: &str) -> Option<Self> {
        let (_, rest) = stat.rsplit_once(") ")?;
        let fields: Vec<&str> = rest.split(' ').take(5).collect();
        let [_, parent, _, _, terminal] = fields.as_slice() else { return None };
        Some(Self { parent: (*parent).to_owned(), has_terminal: *terminal != "0" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_s_parent_and_terminal_are_read_after_its_name() {
        let read = |stat: &str| ProcessStat::read(stat).map(|process| (process.parent, process.has_terminal));
        assert_eq!(read("7 (a) b) S 5 7 7 34816 7 0 0"), Some(("5".to_owned(), true)));
        assert_eq!(read("7 (sh) S 5 7 7 0 -1 0 0"), Some(("5".to_owned(), false)));
        assert_eq!(read("7 (sh) S 5"), None);
    }
}
