//! Lines that another shell than bash runs, as agents do: they were taken apart as bash reads them.
//!
//! What denies or asks counts for them all the same. But what only reads for bash may run a program for another shell, so
//! nothing is free there.

use std::path::Path;

use toold_engine::need::Need;
use toold_proto::tool::Category;

use super::SimpleCommand;

/// Shells that read a line as bash does, or refuse it.
const LIKE_BASH: &[&str] = &["bash", "sh", "dash", "ash", "rbash"];

/// Variables that zsh ties to others, or runs commands from.
const OF_ZSH: &[&str] = &[
    "path",
    "cdpath",
    "fpath",
    "mailpath",
    "manpath",
    "module_path",
    "psvar",
    "watch",
    "prompt",
    "NULLCMD",
    "READNULLCMD",
    "aliases",
    "galiases",
    "saliases",
    "functions",
    "commands",
    "builtins",
    "nameddirs",
    "precmd_functions",
    "chpwd_functions",
    "preexec_functions",
    "zshexit_functions",
];

/// Words that set the variables behind them.
const SETTERS: &[&str] = &[
    "for", "foreach", "select", "read", "typeset", "declare", "local", "export", "readonly", "integer", "float",
    "vared",
];

/// The needs of a line for the shell that runs it, from those that it has for bash. `shell`: its name or path.
pub fn as_read_by(shell: &str, line: &str, mut needs: Vec<Need>) -> Vec<Need> {
    let name = Path::new(shell).file_name().and_then(|name| name.to_str()).unwrap_or(shell).trim_start_matches('-');
    if LIKE_BASH.contains(&name) {
        return needs;
    }
    for need in needs.iter_mut().filter(|need| need.category == Category::Shell) {
        need.reads_only = false;
    }
    let is_read = name == "zsh" && !differs_in_zsh(line);
    if !is_read || needs.iter().all(|need| need.category != Category::Shell) {
        let why = format!("{name} runs the line, and toold reads it as bash does");
        let whole = SimpleCommand::not_understood(line.trim(), &why).need(line);
        // Only the agent's own rules can allow it.
        needs.push(Need { may_run_any: false, always_asked: true, ..whole });
    }
    needs
}

/// Whether the line may mean something else to zsh, in a way that its words as bash reads them do not show.
pub(super) fn differs_in_zsh(line: &str) -> bool {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    let odd = ["${(", ">!", "&!", "&|", "=(", "**", "(#", "<->", "^^", "~~"].iter().any(|text| line.contains(text));
    let expands = |word: &str| word.starts_with('=') && word.len() > 1;
    let autoloads =
        ["autoload", "zmodload", "emulate", "setopt", "unsetopt", "zstyle", "zle", "sched", "disable", "limit"];
    let mut before = "";
    let mut rest = line;
    while let Some(start) = rest.find(is_name) {
        let from = toold_proto::cut::from(rest, start);
        let end = from.find(|c| !is_name(c)).unwrap_or(from.len());
        let (word, behind) = from.split_at(end);
        let is_set = behind.starts_with(['=', '[']) || behind.starts_with("+=") || SETTERS.contains(&before);
        if OF_ZSH.contains(&word) && is_set || autoloads.contains(&word) {
            return true;
        }
        (before, rest) = (word, behind);
    }
    odd || line.split_whitespace().any(expands)
}

#[cfg(test)]
mod tests {
    use toold_engine::policy::pattern::Pattern;

    use super::*;
    use crate::environment::Environment;
    use crate::shell_grammar::{Surroundings, needs};

    fn needs_in(shell: &str, line: &str) -> Vec<Need> {
        let environment = Environment::default();
        let mut surroundings =
            Surroundings { cwd: Path::new("/nowhere"), environment: &environment, may_read: &mut |_| true };
        as_read_by(shell, line, needs(line, &mut surroundings))
    }

    #[test]
    fn nothing_is_free_in_another_shell() {
        for line in
            ["ls", "path=./bin; ls", "for path in ./bin; do ls; done", "read path < p; ls", "< README.md", "git status"]
        {
            for shell in ["zsh", "/bin/zsh", "-zsh", "/usr/bin/fish", "nu", "pwsh", "ksh"] {
                let needs = needs_in(shell, line);
                let is_asked = |need: &Need| need.category == Category::Shell && !need.reads_only;
                assert!(needs.iter().any(is_asked), "{shell}: {line}: {needs:?}");
                assert!(!needs.iter().any(|need| need.reads_only), "{shell}: {line}: {needs:?}");
            }
        }
        for shell in ["bash", "/bin/sh", "dash"] {
            assert!(needs_in(shell, "ls").iter().all(|need| need.reads_only), "{shell}");
        }
    }

    #[test]
    fn what_zsh_reads_otherwise_is_allowed_by_no_rule() {
        let differs = |line: &str| needs_in("zsh", line).iter().any(|need| need.always_asked);
        for line in [
            "path=./bin; ls",
            "path+=(./bin); ls",
            "for path in a; do ls; done",
            "read path < p",
            "READNULLCMD=x; < f",
            "=ls",
            "ls =x",
            "print ${(e)x}",
            "autoload -U x",
            "typeset path",
            "ls > f >! g",
            "aliases[ls]=x; ls",
        ] {
            assert!(differs(line), "{line}");
        }
        for line in ["ls -la", "git status && npm test", "rg path src", "x=1; echo $x", "grep -n 'path' a.txt"] {
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
