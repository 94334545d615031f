//! Programs that run what is typed into them, for agents that type into running programs without asking.

use std::path::Path;

use toold_engine::need::Need;

use super::SimpleCommand;

/// These run commands that are typed, whatever their operands are.
const WITH_OPERANDS: &[&str] = &[
    "ed", "emacs", "ex", "expect", "ftp", "gdb", "info", "less", "lldb", "mc", "more", "most", "mutt", "nano", "nnn",
    "nvim", "ranger", "screen", "sftp", "telnet", "tig", "tmux", "vi", "view", "vim",
];

/// These do so unless they get a program.
const INTERPRETERS: &[&str] = &[
    "R", "bash", "bun", "dash", "deno", "fish", "ghci", "ipython", "irb", "julia", "ksh", "lua", "node", "perl", "php",
    "python", "python3", "ruby", "sh", "zsh",
];

/// These do so unless they get a statement.
const DATABASES: &[&str] = &["mariadb", "mysql", "psql", "sqlite3"];

/// Adds a need of any command for each command of the line that takes commands from its terminal.
///
/// Codex keeps a program running and types into it (`write_stdin`), and runs no hook for that; the hook of the command does not
/// say whether it has a terminal.
pub fn with_typed_commands(line: &str, mut needs: Vec<Need>) -> Vec<Need> {
    let typed = needs.iter().filter(|need| match need.words() {
        Some(words) => runs_what_is_typed(&words.iter().map(|word| word.text.as_str()).collect::<Vec<_>>()),
        // It is not certain what its words mean.
        None => need.command().is_some() && runs_what_is_typed(&need.target.split_whitespace().collect::<Vec<_>>()),
    });
    let why = "it runs what is typed into it, and that is not judged";
    let any: Vec<Need> = typed.map(|need| SimpleCommand::not_parsed(&need.target, why).need(line)).collect();
    needs.extend(any);
    needs
}

fn runs_what_is_typed(words: &[&str]) -> bool {
    let [program, rest @ ..] = words else { return false };
    let name = Path::new(program).file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let texts = || rest.iter().copied();
    if INTERPRETERS.contains(&name) {
        return texts().all(opens_a_prompt) || !edits_with_i(name) && texts().any(|text| text == "-i");
    }
    let gives_statement = |text: &str| {
        let starts = ["-c", "-e", "-f", "--command", "--execute", "--file", "--version", "--help"];
        starts.iter().any(|start| text.starts_with(start))
    };
    let has_statement = || {
        texts().any(gives_statement) || name == "sqlite3" && texts().filter(|text| !text.starts_with('-')).count() > 1
    };
    WITH_OPERANDS.contains(&name) || DATABASES.contains(&name) && !has_statement()
}

/// Whether `-i` does not ask for a prompt, but edits files in place.
fn edits_with_i(name: &str) -> bool {
    matches!(name, "perl" | "ruby")
}

/// Whether an interpreter still reads its standard input with this word behind it.
fn opens_a_prompt(word: &str) -> bool {
    match word.strip_prefix('-') {
        Some(long) if long.starts_with('-') => {
            ["-interactive", "-login", "-noprofile", "-norc", "-posix", "-quiet"].contains(&long)
        }
        // A program, a module, or only the version or help.
        Some(letters) => !letters.contains(['c', 'e', 'h', 'm', 'p', 'r', 'v', 'V']),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_takes_commands_from_its_terminal_is_doubted() {
        let runs = |line: &str| runs_what_is_typed(&line.split(' ').collect::<Vec<_>>());
        for line in [
            "bash",
            "/bin/sh",
            "bash -i",
            "bash --norc -l",
            "python3",
            "python3 -q",
            "python3 -i x.py",
            "node",
            "less a.txt",
            "sqlite3",
            "sqlite3 db",
            "psql -h host db",
            "vi",
            "gdb ./x",
            "zsh -f",
        ] {
            assert!(runs(line), "{line}");
        }
        for line in [
            "bash x.sh",
            "bash -c ls",
            "bash -lc ls",
            "python3 x.py",
            "python3 -m pytest",
            "python3 --version",
            "node -e 1",
            "perl -pe 1",
            "perl -i -pe 1 a",
            "sqlite3 db .tables",
            "psql -c 1",
            "mysql -e 1 db",
            "git log",
            "cat a.txt",
            "ls",
        ] {
            assert!(!runs(line), "{line}");
        }
    }
}
