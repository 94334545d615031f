//! Lines that another shell than bash runs, as agents do: they were taken apart as bash reads them.
//!
//! What denies or asks counts for them all the same. But what only reads for bash may run a program for another shell, so
//! nothing is free there; in zsh, what zsh reads as bash does.

use std::path::Path;

use toold_engine::need::Need;
use toold_proto::tool::Category;

use super::SimpleCommand;
use super::zsh::{self, ZshReading};

/// Shells that read a line as bash does, or refuse it.
const LIKE_BASH: &[&str] = &["bash", "sh", "dash", "ash", "rbash"];

fn name_of(shell: &str) -> &str {
    Path::new(shell).file_name().and_then(|name| name.to_str()).unwrap_or(shell).trim_start_matches('-')
}

/// `shell`: its name or path.
pub fn is_zsh(shell: &str) -> bool {
    name_of(shell) == "zsh"
}

/// The needs of a line for the shell that runs it, from those that lines have for bash. `shell`: its name or path.
pub fn as_read_by(shell: &str, line: &str, mut needs_in_bash: impl FnMut(&str) -> Vec<Need>) -> Vec<Need> {
    let mut needs = needs_in_bash(line);
    let name = name_of(shell);
    if LIKE_BASH.contains(&name) {
        return needs;
    }
    // bash reads `> ! file` there, in which `file` is a word of the command.
    if is_zsh(shell)
        && let Some(other) = zsh::with_redirects_of_bash(line)
    {
        let is_about_file = |need: &Need| need.file().is_some() || need.hides_file();
        needs.extend(needs_in_bash(&other).into_iter().filter(is_about_file));
    }
    let reading = if name == "zsh" { zsh::reading_of(line) } else { ZshReading::Differs };
    if reading == ZshReading::Alike {
        return needs;
    }
    for command in needs.iter_mut().filter_map(Need::command_mut) {
        command.reads_only = false;
    }
    if reading == ZshReading::Differs || needs.iter().all(|need| need.category() != Category::Shell) {
        let why = format!("{name} runs the line, and toold reads it as bash does");
        let whole = SimpleCommand { may_run_any: false, ..SimpleCommand::not_understood(line.trim(), &why) };
        // Only the agent's own rules can allow it.
        needs.push(Need { always_asked: true, ..whole.need(line) });
    }
    needs
}

#[cfg(test)]
mod tests {
    use toold_engine::policy::pattern::Pattern;

    use super::*;
    use crate::environment::Environment;
    use crate::shell_grammar::{Surroundings, needs};

    fn needs_in(shell: &str, line: &str) -> Vec<Need> {
        let environment = Environment::default();
        let cwd = Path::new("/nowhere");
        let mut surroundings = Surroundings { cwd, folders: &[], environment: &environment, may_read: &mut |_| true };
        as_read_by(shell, line, |line| needs(line, &mut surroundings))
    }

    #[test]
    fn nothing_is_free_in_another_shell() {
        let is_asked = |shell: &str, line: &str| {
            let needs = needs_in(shell, line);
            let is_asked = |need: &Need| need.category() == Category::Shell && !need.reads_only();
            needs.iter().any(is_asked)
        };
        let lines = [
            "ls *",
            "path=./bin; ls",
            "for path in ./bin; do ls; done",
            "read -r path < p; ls",
            "< README.md",
            "ls $x:h",
        ];
        for line in lines {
            for shell in ["zsh", "/bin/zsh", "-zsh", "/usr/bin/fish", "nu", "pwsh", "ksh"] {
                assert!(is_asked(shell, line), "{shell}: {line}");
            }
        }
        for line in ["ls -la", "git status", "cat a.txt | head -3"] {
            for shell in ["/usr/bin/fish", "nu", "pwsh", "ksh"] {
                assert!(is_asked(shell, line), "{shell}: {line}");
            }
            assert_eq!(needs_in("zsh", line), needs_in("bash", line), "{line}");
        }
        for shell in ["bash", "/bin/sh", "dash"] {
            assert!(needs_in(shell, "ls").iter().all(|need| need.reads_only()), "{shell}");
        }
    }

    #[test]
    fn what_zsh_reads_otherwise_is_allowed_by_no_rule() {
        let differs = |line: &str| needs_in("zsh", line).iter().any(|need| need.always_asked);
        for line in ["path=./bin; ls", "ls =x", "rm $x:t", "autoload -U x"] {
            assert!(differs(line), "{line}");
        }
        for line in ["rm a.txt", "rm *.txt", "git push && npm test"] {
            assert!(!differs(line), "{line}");
        }
    }

    #[test]
    fn a_rule_that_denies_counts_behind_the_words_of_zsh() {
        let deny = Pattern::parse(Category::Shell, "git push *").unwrap();
        for line in [
            "git push",
            "noglob git push",
            "nocorrect git push",
            "repeat 1 git push",
            "- git push",
            "builtin git push",
            "command git push",
            "exec git push",
            "repeat 3 noglob command git push origin main",
        ] {
            let needs = needs_in("zsh", line);
            assert!(needs.iter().any(|need| deny.may_match(need).is_some()), "{line}: {needs:?}");
        }
        let needs = needs_in("fish", "begin; git push; end");
        assert!(needs.iter().any(|need| deny.may_match(need).is_some()), "{needs:?}");
    }
}
