//! `kill` of processes that the session's own background commands run. The daemon sends the signal, and no program: an id that
//! somebody else gets meanwhile does no harm, and no command on a floor may signal others.

use toold_engine::need::{Need, Word};
use toold_engine::session::Session;
use toold_host::process_registry::OwnProcess;
use toold_host::shell_grammar::signal_named;
use toold_proto::tool::Category;

/// A command line that is a single `kill` with ids that can be read off it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SignalLine {
    /// Its number and name.
    signal: (i32, &'static str),
    processes: Vec<u32>,
}

impl SignalLine {
    /// `None` for every other line, also for one that does more than that.
    pub(crate) fn of(needs: &[Need]) -> Option<Self> {
        let [need] = needs else { return None };
        let is_whole = need.category() == Category::Shell && need.line.as_deref().map(str::trim) == Some(&need.target);
        Self::read(need.words().filter(|_| is_whole)?)
    }

    fn read(words: &[Word]) -> Option<Self> {
        let texts: Option<Vec<&str>> = words.iter().map(|word| word.literal.then_some(word.text.as_str())).collect();
        let texts = texts?;
        let (signal, ids) = match texts.strip_prefix(&["kill"])? {
            ["-s" | "-n", name, ids @ ..] => (signal_named(name)?, ids),
            [option, ids @ ..] if option.starts_with('-') && *option != "--" => (signal_named(&option[1..])?, ids),
            ids => (signal_named("TERM")?, ids),
        };
        let ids = ids.strip_prefix(&["--"]).unwrap_or(ids);
        // Ids of process groups are negative.
        let read = |id: &&str| if id.bytes().all(|byte| byte.is_ascii_digit()) { id.parse().ok() } else { None };
        let processes: Option<Vec<u32>> = ids.iter().map(read).collect();
        let processes = processes.filter(|processes| !processes.is_empty())?;
        Some(Self { signal, processes })
    }

    /// All its processes; `None` if one of them is not the session's own.
    fn own(&self, session: &Session) -> Option<Vec<OwnProcess>> {
        self.processes.iter().map(|pid| OwnProcess::find(session, *pid)).collect()
    }

    /// Sends the signal, if all processes are the session's own now. In words, what was done.
    ///
    /// # Errors
    /// One of the processes is not, or not any more: then none gets the signal. Or one has ended since.
    pub(crate) fn send(&self, session: &Session) -> anyhow::Result<String> {
        let own = self.own(session).ok_or_else(|| {
            anyhow::anyhow!(
                "nothing was signalled: not all of these processes run in background commands of this session any more"
            )
        })?;
        let (number, name) = self.signal;
        let mut sent = Vec::new();
        for process in &own {
            let pid = process.pid();
            process.signal(number).map_err(|error| anyhow::anyhow!("can't send {name} to {pid}: {error}"))?;
            sent.push(pid.to_string());
        }
        Ok(format!("sent {name} to {}", sent.join(", ")))
    }
}

/// Marks the need of a line that signals processes of the session and no others. Reads a few small files.
pub(crate) fn mark(needs: &mut [Need], session: &Session) {
    let is_own = SignalLine::of(needs).is_some_and(|line| line.own(session).is_some());
    if let (true, [need]) = (is_own, needs)
        && let Some(command) = need.command_mut()
    {
        command.signals_own = true;
    }
}

#[cfg(test)]
mod tests {
    use toold_engine::need::JudgedCommand;

    use super::*;

    #[track_caller]
    fn check(line: &str, expected: Option<(&str, &[u32])>) {
        let word = |text: &str| Word { text: text.to_owned(), literal: !text.starts_with('$') };
        let words = Some(line.split_ascii_whitespace().map(word).collect());
        let need = Need::of_command(line, JudgedCommand { words, ..JudgedCommand::default() });
        let found = SignalLine::of(&[Need { line: Some(line.to_owned()), ..need.clone() }]);
        let found = found.as_ref().map(|found| (found.signal.1, found.processes.as_slice()));
        assert_eq!(found, expected, "{line}");
        assert_eq!(SignalLine::of(&[Need { line: Some(format!("{line}; ls")), ..need }]), None, "{line}");
    }

    #[test]
    fn a_signal_and_its_processes_are_read_off_the_line() {
        check("kill 12", Some(("TERM", &[12])));
        check("kill -9 12 13", Some(("KILL", &[12, 13])));
        check("kill -s INT -- 12", Some(("INT", &[12])));
        check("kill -SIGhup 12", Some(("HUP", &[12])));
    }

    #[test]
    fn other_lines_are_not_read() {
        for line in [
            "kill",
            "kill -l",
            "kill -0 12",
            "kill -9",
            "kill -12",
            "kill -- -12",
            "kill -TERM -1",
            "kill %1",
            "kill $x",
            "kill 12 $x",
            "kill +12",
            "kill 99999999999",
            "kill -q 1 12",
            "/bin/kill 12",
            "pkill 12",
        ] {
            check(line, None);
        }
    }
}
