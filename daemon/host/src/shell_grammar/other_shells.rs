//! Lines that another shell than bash runs, as agents do: they were taken apart as bash reads them.
//!
//! What denies or asks counts for them all the same. But what only reads for bash may run a program for another shell, so
//! nothing is free there; in zsh, what zsh reads as bash does.

use std::path::Path;
use std::sync::Arc;

use toold_engine::need::{Need, ShownFiles, Word};
use toold_engine::policy::is_secret;
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
    let reading = match name {
        "zsh" if !needs.iter().any(|need| enters_elsewhere(need, &needs)) => zsh::reading_of(line),
        _ => ZshReading::Differs,
    };
    match &reading {
        ZshReading::Alike => return needs,
        ZshReading::AlikeButWildcards(dotted) => add_hidden_files(&mut needs, needs_in_bash(dotted)),
        ZshReading::Differs => {}
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
            let hides_file = name == "zsh" && zsh::changes_names(line);
            let whole =
                SimpleCommand { may_run_any: false, hides_file, ..SimpleCommand::not_understood(text.trim(), &why) };
            // Only the agent's own rules can allow it.
            needs.push(Need { always_asked: true, ..whole.need(line) });
        }
    }
    needs
}

/// Whether a `cd` enters another folder in zsh: with `CDABLE_VARS`, `cd HOME` enters `$HOME` and `cd root` the folder of that user,
/// unless there is a folder of this name.
fn enters_elsewhere(need: &Need, needs: &[Need]) -> bool {
    let Some([program, folder]) = need.words() else { return false };
    let is_name = folder.literal && folder.text.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
    let makes = |words: &[Word]| {
        words.first().is_some_and(|program| program.text == "mkdir")
            && words.iter().any(|word| word.text == folder.text)
    };
    let is_there = || need.command().and_then(|of| of.folder.as_ref()).is_some_and(|at| at.join(&folder.text).is_dir());
    matches!(program.text.as_str(), "cd" | "pushd")
        && is_name
        && !is_there()
        && !needs.iter().filter_map(Need::words).any(makes)
}

/// Adds to a command the files that its wildcards also match with `GLOB_DOTS`, from the needs of a line that names them. A person may
/// not have set that option, so that they refuse nothing.
fn add_hidden_files(needs: &mut [Need], dotted: Vec<Need>) {
    let is_new = |need: &Need| !needs.contains(need);
    let more: Vec<Need> = dotted.into_iter().filter(is_new).collect();
    let Some(command) = needs.iter_mut().filter_map(Need::command_mut).next() else { return };
    for need in more {
        let path = Path::new(&need.target);
        match (need.category(), path.parent(), path.file_name()) {
            (Category::FileRead, Some(folder), Some(name)) => {
                command.hides_file |= is_secret(path);
                let names = Some(vec![name.to_string_lossy().into_owned()]);
                command.shows.push(Arc::new(ShownFiles { folder: folder.to_owned(), names, leaving_out: None }));
            }
            (Category::FileWrite, ..) => command.covers.push(need.target),
            _ => {}
        }
    }
}

/// The line with its comments as words, as an interactive zsh reads it without `INTERACTIVE_COMMENTS`; `None` where it has none.
pub fn with_comments_as_words(line: &str) -> Option<String> {
    let (mut written, mut quote, mut before) = (String::new(), None, ' ');
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match (c, quote) {
            ('\\', None | Some('"')) => {
                written.push(c);
                written.extend(chars.next());
                before = 'x';
                continue;
            }
            ('\'' | '"', None) => quote = Some(c),
            (c, Some(open)) if c == open => quote = None,
            ('#', None) if before.is_whitespace() || ";|&(".contains(before) => written.push('\\'),
            _ => {}
        }
        written.push(c);
        before = c;
    }
    (written != line).then_some(written)
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
    fn a_line_of_zsh_may_name_a_file_that_no_tool_touches() {
        let hides = |line: &str| needs_in("zsh", line).iter().any(Need::hides_file);
        for line in [
            "x=.ENV; cat $x:l",
            "x=a/.env; cat ${x:t}",
            "x=(a .env); cat $x[2]",
            "cat .en^",
            "cat .e#nv",
            "cat *~a",
            "cat .{efg}nv",
            "functions[f]='cat .env'; f",
            "$commands[cat] .env",
            "emulate sh -c 'cat .env'",
            "zmodload zsh/mapfile; echo $mapfile[.env]",
        ] {
            assert!(hides(line), "{line}");
        }
        for line in [
            "git status",
            "path=./bin; ls",
            "git show main~2",
            "trap 'echo a' EXIT",
            "case $x in a) echo b;; esac",
            "local x=1",
            "echo ${x:-y} # a comment",
            "grep '^a~b' c.txt; typeset x",
        ] {
            assert!(!hides(line), "{line}");
        }
    }

    #[test]
    fn a_comment_is_text_in_an_interactive_zsh() {
        for (line, read) in [
            ("ls # ; git push", Some("ls \\# ; git push")),
            ("# a\nls", Some("\\# a\nls")),
            ("echo 'a # b' \"c # d\" e#f \\# g", None),
        ] {
            assert_eq!(with_comments_as_words(line).as_deref(), read, "{line}");
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
