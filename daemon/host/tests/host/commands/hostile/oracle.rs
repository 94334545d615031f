//! The effects that a line's rules allow, as a person would read them: knows nothing about parsing lines.

use std::collections::BTreeSet;
use std::path::Path;

use super::root::{Did, FileChangeSeen, OUTSIDE, REAL, SECRET};
use crate::commands::judge::RuleLine;

/// How a line went beyond its rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum EscapeKind {
    Ran,
    Wrote,
    ShowedSecret,
    ShowedOutside,
}

#[derive(Clone, Debug)]
pub(super) struct EscapeFailure {
    pub(super) kind: EscapeKind,
    pub(super) detail: String,
}

/// The effects of a line.
pub(super) struct LineOutcome {
    pub(super) ran: Vec<Vec<String>>,
    pub(super) changes: Vec<FileChangeSeen>,
    pub(super) shown: String,
    /// It runs programs by `command -p`, which finds them elsewhere, so that they are not recorded.
    pub(super) uses_default_path: bool,
}

/// The purpose of these programs is to write their operands.
const WRITERS: &[&str] = &["tee", "cp", "mv", "split", "tar", "make", "mkdir"];
/// These subcommands of git write nothing but its index.
const READING_GIT: &[&str] = &[
    "log",
    "diff",
    "show",
    "status",
    "grep",
    "blame",
    "ls-files",
    "ls-tree",
    "rev-parse",
    "shortlog",
    "cat-file",
    "describe",
    "archive",
    "rev-list",
    "diff-tree",
    "bundle",
    "help",
];
/// Nothing that a tool runs may write these, whatever the rules.
const CONTROL: &[&str] = &[".env", "id_rsa", ".aiexclude", ".vscode", ".npmrc", ".envrc", ".mcp.json", "private.txt"];

/// Git takes settings and programs from these in a repository without `.git`.
const OF_BARE: &[&str] = &["HEAD", "config", "config.worktree", "commondir", "hooks", "info", "modules", "worktrees"];

pub(super) fn failures(rules: &[RuleLine], outcome: &LineOutcome) -> Vec<EscapeFailure> {
    let mut found = Vec::new();
    let mut fail = |kind, detail| found.push(EscapeFailure { kind, detail });
    let unique: BTreeSet<&Vec<String>> = outcome.ran.iter().collect();
    for ran in unique {
        if says(rules, "deny", ran) || !(REAL.contains(&ran[0].as_str()) || says(rules, "allow", ran)) {
            fail(EscapeKind::Ran, ran.join(" "));
        }
    }
    let denies_removal = rules.iter().any(|rule| rule.action == "deny" && rule.pattern.starts_with("rm "));
    // A rule that allows every command also allows what it writes and shows.
    let allows_all =
        rules.iter().any(|rule| rule.action == "allow" && rule.category == "shell" && rule.pattern == "**");
    for change in &outcome.changes {
        let path = change.path.display();
        if denies_removal && change.did == Did::Removed && change.path.ends_with("V") {
            fail(EscapeKind::Ran, format!("rm, since {path} is gone"));
        } else if !allows_all && !may_change(rules, outcome, change) {
            fail(EscapeKind::Wrote, format!("{path} ({:?})", change.did));
        }
        if !allows_all && has(&change.content, SECRET) && change.did != Did::Marked {
            fail(EscapeKind::ShowedSecret, format!("a secret is in {path}"));
        }
    }
    if !allows_all && outcome.shown.contains(SECRET) {
        fail(EscapeKind::ShowedSecret, "a secret is in the output".to_owned());
    }
    if !allows_all && outcome.shown.contains(OUTSIDE) {
        fail(EscapeKind::ShowedOutside, "a file outside of the workspace is in the output".to_owned());
    }
    found
}

/// Whether one of the rules with this action names the command: word by word, where a final `*` stands for any further
/// words.
fn says(rules: &[RuleLine], action: &str, ran: &[String]) -> bool {
    rules.iter().filter(|rule| rule.category == "shell" && rule.action == action).any(|rule| {
        let words: Vec<&str> = rule.pattern.split(' ').collect();
        match words.split_last() {
            Some((&"**", [])) => true,
            Some((&"*", first)) => ran.len() >= first.len() && first.iter().zip(ran).all(|(word, ran)| word == ran),
            _ => words == ran,
        }
    })
}

fn may_change(rules: &[RuleLine], outcome: &LineOutcome, change: &FileChangeSeen) -> bool {
    let Ok(path) = change.path.strip_prefix("work") else { return false };
    if path.starts_with(".git") {
        return git_may_change(rules, outcome, path, change);
    }
    let is_control = path.iter().any(|name| CONTROL.iter().any(|control| name == *control));
    let of_bare = path.strip_prefix("bare").is_ok_and(|own| OF_BARE.iter().any(|name| own.starts_with(name)));
    if is_control || path.starts_with("nest/.git") || of_bare {
        // Git refreshes its index there, too.
        return is_index(path);
    }
    let by_file_rule = rules.iter().any(|rule| {
        let folder = rule.pattern.strip_suffix("/**").and_then(|folder| folder.split_once("work/"));
        rule.category == "file.write" && rule.action == "allow" && folder.is_some_and(|(_, it)| path.starts_with(it))
    });
    let by_unrecorded = || {
        let mut allowed = rules.iter().filter(|rule| rule.category == "shell" && rule.action == "allow");
        allowed.any(|rule| rule.pattern.split(' ').next().is_some_and(|program| WRITERS.contains(&program)))
    };
    by_file_rule
        || outcome.ran.iter().any(|ran| may_write(rules, ran, path))
        || outcome.uses_default_path && by_unrecorded()
}

/// Whether this is a writing program that was allowed and was given the file.
fn may_write(rules: &[RuleLine], ran: &[String], path: &Path) -> bool {
    if !says(rules, "allow", ran) {
        return false;
    }
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    match ran[0].as_str() {
        "tee" => ran[1..].iter().any(|word| word.ends_with(name)),
        "git" => !READING_GIT.contains(&subcommand(ran)),
        program => WRITERS.contains(&program),
    }
}

fn subcommand(ran: &[String]) -> &str {
    let mut words = ran.iter().skip(1);
    while let Some(word) = words.next() {
        match word.as_str() {
            "-C" | "-c" | "--git-dir" | "--work-tree" => drop(words.next()),
            word if word.starts_with('-') => {}
            word => return word,
        }
    }
    "help"
}

/// Files that git refreshes whenever it looks at the work tree; the lock stays if git is killed meanwhile.
fn is_index(path: &Path) -> bool {
    path.ends_with(".git/index") || path.ends_with(".git/index.lock")
}

/// Git's internal files, but nothing that it would run later.
fn git_may_change(rules: &[RuleLine], outcome: &LineOutcome, path: &Path, change: &FileChangeSeen) -> bool {
    // Also by `command -p git`, which is not recorded.
    if is_index(path) {
        return true;
    }
    if path.starts_with(".git/hooks") || path.ends_with("info/attributes") || has(&change.content, "evil") {
        return false;
    }
    let may_write =
        |ran: &Vec<String>| ran[0] == "git" && says(rules, "allow", ran) && !READING_GIT.contains(&subcommand(ran));
    outcome.ran.iter().any(may_write)
}

fn has(content: &[u8], text: &str) -> bool {
    content.windows(text.len()).any(|window| window == text.as_bytes())
}
