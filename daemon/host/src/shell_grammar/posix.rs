//! Whether every shell of POSIX makes of a script what bash makes of it: dash, BusyBox, ksh and whatever `sh` is.
//!
//! Anything that may differ is left out as a whole, also in quotes: the rest is the language of everyday one-liners.

use super::zsh::{self, ZshReading};

/// Syntax of bash that others refuse, or read as something else: `[[ a > b ]]` writes a file in dash.
const SYNTAX: &[&str] = &[
    "[[", "((", "$'", "$\"", "$[", "$(<", "<(", ">(", "<<<", "&>", "|&", ";&", "=(", "+=", "()", "[^", "~+", "~-",
    "@(", "?(", "+(", "!(",
];

/// Commands and keywords that not all of them have, or that do not mean the same.
const WORDS: &[&str] = &[
    "builtin",
    "coproc",
    "declare",
    "disown",
    "enable",
    "export",
    "function",
    "let",
    "local",
    "mapfile",
    "popd",
    "pushd",
    "read",
    "readarray",
    "readonly",
    "select",
    "shopt",
    "source",
    "time",
    "typeset",
];

/// A variable in front of these keeps its value in some.
const SPECIAL: &[&str] =
    &[":", ".", "break", "continue", "eval", "exec", "exit", "return", "set", "shift", "times", "trap", "unset"];

/// Variables that bash sets by itself.
const VARIABLES: &[&str] = &[
    "RANDOM",
    "SRANDOM",
    "SECONDS",
    "EPOCH",
    "UID",
    "EUID",
    "HOST",
    "BASH",
    "OSTYPE",
    "MACHTYPE",
    "GROUPS",
    "PIPESTATUS",
    "FUNCNAME",
    "DIRSTACK",
    "SHLVL",
    "_",
];

pub(super) fn reads_alike(script: &str) -> bool {
    let has = |text: &str| script.contains(text);
    let words =
        || script.split(|c: char| c.is_whitespace() || ";|&(){}`'\"".contains(c)).filter(|word| !word.is_empty());
    let expansions = || script.split('$').skip(1).map(|behind| behind.trim_start_matches('{'));
    let pairs = || words().zip(words().skip(1));
    let is_assignment =
        |word: &str| word.split_once('=').is_some_and(|(name, _)| !name.is_empty() && !name.starts_with('-'));
    let keeps_variable = |(first, second): (&str, &str)| is_assignment(first) && SPECIAL.contains(&second);
    // Their `echo` has no options, and reads escapes.
    let prints_otherwise =
        pairs().any(|(first, second)| first == "echo" && second.starts_with('-')) || has("echo") && has("\\");
    let may_differ = SYNTAX.iter().any(|text| has(text))
        || words().any(|word| WORDS.contains(&word))
        || pairs().any(keeps_variable)
        || prints_otherwise
        || expansions().any(|name| VARIABLES.iter().any(|known| name.starts_with(known)));
    let is_descriptor = |behind: &str| behind.starts_with(|c: char| c.is_ascii_digit() || c == '-');
    !may_differ
        && script.match_indices('{').all(|(at, _)| is_plain_brace(script, at))
        && script.split(">&").skip(1).all(is_descriptor)
        && zsh::reading_of(script) == ZshReading::Alike
}

/// `{ ls; }`, and `${NAME}` with what POSIX lets stand behind the name.
fn is_plain_brace(script: &str, at: usize) -> bool {
    let (before, behind) = script.split_at(at);
    let Some(behind) = behind.strip_prefix('{') else { return false };
    if !before.ends_with('$') {
        return behind.starts_with(char::is_whitespace);
    }
    let name = behind.trim_start_matches('#').trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '_');
    match name.strip_prefix(':') {
        Some(rest) => rest.starts_with(['-', '+', '=', '?']),
        None => name.starts_with(['}', '-', '+', '=', '?', '%', '#']),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_that_other_shells_may_read_in_another_way_are_not_alike() {
        for alike in [
            "npm test",
            "cd web && npm test | head -5",
            "test -f a.txt && cat a.txt || echo none",
            "for f in a b; do wc -l $f; done",
            "x=1; echo ${x:-2} \"${x%.*}\"",
            "ls >/dev/null 2>&1",
            "{ ls; pwd; }",
            "CI=1 npm test",
            "if grep -q x a.txt; then ls; fi",
        ] {
            assert!(reads_alike(alike), "{alike}");
        }
        for other in [
            "[[ a > b ]]",
            "((a > b))",
            "echo $'\\'; rm -rf x #'",
            "echo 'a\\nb'",
            "echo -e a",
            "cat {a,b}",
            "a=README.md; a=.env :; cat $a",
            "export a=$b; ls",
            "b='x PATH=./bin'; export a=$b; ls",
            "echo .env | read x; cat $x",
            "cat <(ls)",
            "ls &>x",
            "ls >&x",
            "cat a$RANDOM",
            "cat ${x//a/b}",
            "cat ${!x}",
            "cat ${x:1}",
            "f() { ls; }; f",
            "function f { ls; }",
            "source x",
            "cat [^a]*",
            "time ls",
            "cat ~-/x",
        ] {
            assert!(!reads_alike(other), "{other}");
        }
    }
}
