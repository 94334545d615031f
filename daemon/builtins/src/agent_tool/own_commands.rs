//! Commands of `toolctl` that decide in a person's place. No agent runs them: a rule or a grant for them would let it
//! decide about itself.

use std::path::Path;

use toold_engine::effects::EffectSet;
use toold_engine::need::{JudgedCommand, Need, Word};

/// The daemon's client, by its file name.
const CLIENT: &str = "toolctl";

/// The beginning of its other names, by which it is `toolctl confine`.
const CONFINE: &str = "toolctl-confine-";

/// Subcommands that only show something, judge, or call tools, which the daemon judges; of those with a list, only with
/// one of these words behind it, or with none. All others decide something, end the daemon, or change what it loads.
const HARMLESS: &[(&str, &[&str])] = &[
    ("agents", &["answers", "doctor", "hook", "list"]),
    ("audit", &[]),
    ("call", &[]),
    ("changes", &[]),
    ("completions", &[]),
    ("config", &["check", "path", "schema", "show"]),
    ("daemon", &["completions", "doctor", "logs", "man", "status"]),
    ("do", &[]),
    ("doctor", &[]),
    ("events", &[]),
    ("fleet", &["doctor", "grants", "labels", "list"]),
    ("help", &[]),
    ("hook", &[]),
    ("list", &[]),
    ("logs", &[]),
    ("man", &[]),
    ("mcp", &["doctor", "search", "servers", "status"]),
    ("memories", &["list", "show"]),
    ("parse", &[]),
    ("permissions", &["check", "list", "pending"]),
    ("plugins", &["check", "list", "logs", "new", "profile", "show", "test"]),
    ("prompt", &[]),
    ("remotes", &["doctor", "list"]),
    ("schema", &[]),
    ("secrets", &["list"]),
    ("sessions", &["list"]),
    ("shells", &["list"]),
    ("skills", &[]),
    ("status", &[]),
    ("tools", &[]),
    ("watch", &[]),
    ("workspaces", &["list"]),
];

/// Removes records, as `toolctl changes forget` and `toolctl audit changes forget`.
const FORGET: &str = "forget";

/// Options of every subcommand that take no value in the next word.
const FLAGS: &[&str] = &["--no-start", "--plain", "--utc", "--json"];

/// Programs that run what the line gives them as input.
const LATER: &[&str] = &["at", "batch", "crontab"];

/// Forbids the command if it decides, or if a command that decides stands in a text that it may run.
pub(super) fn forbid(need: &mut Need) {
    if need.words().is_some_and(decides) || need.command().is_some_and(|command| may_decide(need, command)) {
        let why = "the guard of decisions: commands of toolctl that decide are a person's, and no agent runs them";
        need.forbidden.get_or_insert_with(|| why.to_owned());
    }
}

fn may_decide(need: &Need, command: &JudgedCommand) -> bool {
    let line = need.line.as_deref().unwrap_or(&need.target);
    let first = need.target.split_whitespace().next().unwrap_or_default();
    // `cp toolctl t; ./t permissions grant`, and a link to it from before.
    let is_renamed = || {
        let words: Vec<&str> = need.target.split_whitespace().skip(1).collect();
        let program = command.folder.as_deref().unwrap_or(Path::new("")).join(first);
        let leads_to_it =
            || program.canonicalize().is_ok_and(|real| real.file_name().is_some_and(|name| name == CLIENT));
        first.contains('/') && is_deciding(&words) && (line.contains(CLIENT) || leads_to_it())
    };
    let runs_text = command.may_run_any || command.runs_written || command.runs_input || LATER.contains(&first);
    // A search is for text, whatever the shell makes of its other words.
    let only_reads = command.effects.all() == EffectSet::READING;
    // Nothing is known of such a program.
    let is_unknown = !command.reads_only && command.effects.all().is_empty() && !first.contains('=');
    command
        .elsewhere
        .iter()
        .any(|inner| inner.words.as_deref().is_some_and(decides) || inner.is_unsure && names_it(&inner.target))
        || !only_reads && command.script.as_deref().is_some_and(names_it)
        || !only_reads && runs_text && names_it(line)
        || is_unknown && names_it(&need.target)
        || is_renamed()
}

/// Whether a command that decides stands somewhere in the text, whatever quotes and expansions are around its words.
fn names_it(text: &str) -> bool {
    let words: Vec<&str> = text
        .split(|c: char| c.is_whitespace() || "'\"`$();|&<>{},=\\".contains(c))
        .filter(|word| !word.is_empty())
        .collect();
    let is_client = |word: &str| {
        let name = word.rsplit('/').next().unwrap_or_default();
        name == CLIENT || name.starts_with("toolct") && name.contains(['?', '*', '['])
    };
    words.iter().enumerate().any(|(at, word)| is_client(word) && is_deciding(words.get(at + 1..).unwrap_or_default()))
}

/// Subcommands without others that decide.
const DECIDING: &[&str] = &["approve", "level", "pause", "resume", "restart", "setup", "stop"];

/// Whether the words are a known subcommand that decides.
fn is_deciding(words: &[&str]) -> bool {
    let mut plain = words.iter().skip_while(|word| word.starts_with('-'));
    let Some(first) = plain.next() else { return false };
    let behind = plain.next();
    let with_list = HARMLESS.iter().find(|(name, own)| name == first && !own.is_empty());
    let is_help = words.iter().any(|word| matches!(*word, "--help" | "-h"));
    !is_help
        && match with_list {
            Some((_, own)) => {
                behind.is_some_and(|second| !second.starts_with('-') && *second != "help" && !own.contains(second))
            }
            None => DECIDING.contains(first),
        }
}

fn decides(words: &[Word]) -> bool {
    let [program, rest @ ..] = words else { return false };
    let name = Path::new(&program.text).file_name().and_then(|name| name.to_str()).unwrap_or_default();
    if !program.literal || name != CLIENT {
        return program.literal && name.starts_with(CONFINE);
    }
    let options = rest.iter().take_while(|word| word.text != "--");
    if options.clone().any(|word| word.literal && matches!(word.text.as_str(), "--help" | "-h" | "--version" | "-V")) {
        return false;
    }
    let mut rest = rest.iter();
    let Some(first) = next_plain(&mut rest) else { return true };
    let Some((_, own)) = HARMLESS.iter().find(|(name, _)| first.literal && first.text == *name) else { return true };
    if matches!(first.text.as_str(), "audit" | "changes") {
        return rest.as_slice().iter().any(|word| !word.literal || word.text == FORGET);
    }
    if own.is_empty() || rest.as_slice().is_empty() {
        return false;
    }
    let shows = |second: &str| own.contains(&second) || second == "help";
    !next_plain(&mut rest).is_some_and(|second| second.literal && shows(&second.text))
}

/// The next word that is neither an option of every subcommand nor the value of one.
fn next_plain<'a>(words: &mut std::slice::Iter<'a, Word>) -> Option<&'a Word> {
    while let Some(word) = words.next() {
        match word.text.as_str() {
            "--socket" => drop(words.next()),
            text if word.literal && (FLAGS.contains(&text) || text.starts_with("--socket=")) => {}
            _ => return Some(word),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, expected: bool) {
        let word = |text: &str| Word { text: text.to_owned(), literal: !text.contains(['$', '*']) };
        assert_eq!(decides(&line.split(' ').map(word).collect::<Vec<_>>()), expected, "{line}");
    }

    #[test]
    fn commands_that_decide_are_known_and_those_that_show_something_are_not() {
        for line in [
            "toolctl",
            "toolctl permissions grant shell x",
            "/usr/bin/toolctl permissions allow ask_1",
            "./toolctl --socket list permissions revoke x",
            "toolctl --socket=x --plain approve",
            "toolctl workspaces allow .",
            "toolctl permissions mode yolo",
            "toolctl permissions --other list grant",
            "toolctl $x grant",
            "toolctl permissions $x",
            "toolctl stop",
            "toolctl secrets set x",
            "toolctl config edit",
            "toolctl agents install codex --undo",
            "toolctl permissions grant shell -- --help",
            "toolctl changes forget x",
            "toolctl audit changes forget --all",
            "toolctl daemon stop",
            "toolctl agents confine open x",
            "toolctl permissions grant shell help",
            "/h/.local/state/toold/hooks/toolctl-confine-closed x",
            "toolctl-confine-open --help",
        ] {
            check(line, true);
        }
        for line in [
            "toolctl status",
            "toolctl permissions",
            "toolctl permissions list",
            "toolctl --socket x permissions check shell x",
            "toolctl audit --decisions",
            "toolctl audit changes --since 1h",
            "toolctl changes",
            "toolctl daemon status",
            "toolctl agents hook codex",
            "toolctl tools do x",
            "toolctl do x",
            "toolctl call bash command=ls",
            "toolctl permissions grant --help",
            "toolctl --version",
            "toolctl permissions help grant",
            "rg toolctl permissions grant",
            "mytoolctl permissions grant",
            "$x permissions grant",
        ] {
            check(line, false);
        }
    }
}
