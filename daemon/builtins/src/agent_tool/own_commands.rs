//! Commands of `toolctl` that decide in a person's place. No agent runs them: a rule or a grant for them would let it
//! decide about itself.

use std::path::Path;

use toold_engine::need::{Need, Word};

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

/// Forbids the command if it decides.
pub(super) fn forbid(need: &mut Need) {
    if need.words().is_some_and(decides) {
        let why = "commands of toolctl that decide are a person's, and no agent runs them";
        need.forbidden.get_or_insert_with(|| why.to_owned());
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
    !next_plain(&mut rest).is_some_and(|second| second.literal && own.contains(&second.text.as_str()))
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
            "rg toolctl permissions grant",
            "mytoolctl permissions grant",
            "$x permissions grant",
        ] {
            check(line, false);
        }
    }
}
