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
    let escaped = (name == "fish").then(|| without_escapes_of_fish(line)).filter(|plain| plain != line);
    if let Some(plain) = &escaped {
        needs.extend(needs_in_bash(plain).into_iter().filter(|need| need.command().is_some()).map(|mut need| {
            need.command_mut().into_iter().for_each(|command| command.reads_only = false);
            need
        }));
    }
    if reading == ZshReading::Differs || needs.iter().all(|need| need.category() != Category::Shell) {
        let why = format!("{name} runs the line, and toold reads it as bash does");
        for text in [Some(line), escaped.as_deref()].into_iter().flatten() {
            let whole = SimpleCommand { may_run_any: false, ..SimpleCommand::not_understood(text.trim(), &why) };
            // Only the agent's own rules can allow it.
            needs.push(Need { always_asked: true, ..whole.need(line) });
        }
    }
    needs
}

/// The line with the letters that fish's escapes stand for (fish-language, "Escaping Characters"), for rules that deny:
/// `\x67it`, `\u0067it` and `\147it` are `git`. Others stay as they are.
fn without_escapes_of_fish(line: &str) -> String {
    let mut plain = String::with_capacity(line.len());
    let mut rest = line.chars();
    while let Some(c) = rest.next() {
        let (radix, most, skipped) = match (c, rest.clone().next()) {
            ('\\', Some('x' | 'X')) => (16, 2, 1),
            ('\\', Some('u')) => (16, 4, 1),
            ('\\', Some('U')) => (16, 8, 1),
            ('\\', Some('0'..='7')) => (8, 3, 0),
            _ => {
                plain.push(c);
                continue;
            }
        };
        let digits: String = rest.clone().skip(skipped).take(most).take_while(|digit| digit.is_digit(radix)).collect();
        match u32::from_str_radix(&digits, radix).ok().and_then(char::from_u32) {
            Some(letter) => {
                plain.push(letter);
                rest.by_ref().take(skipped + digits.len()).for_each(drop);
            }
            None => plain.push(c),
        }
    }
    plain
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
        for line in [
            "begin; git push; end",
            "g\\x69t push",
            "\\147it push",
            "git \\u0070ush",
            "begin; gi\\U00000074 p\\X75sh; end",
            "g'i't pu\"s\"h",
        ] {
            let needs = needs_in("fish", line);
            assert!(needs.iter().any(|need| deny.may_match(need).is_some()), "{line}: {needs:?}");
        }
        assert_eq!(without_escapes_of_fish("a\\n\\x\\\"é\\xzz\\u\\"), "a\\n\\x\\\"é\\xzz\\u\\");
    }
}
