//! Compares the grammar with the shell: everything that `bash` runs or writes must have been a need.

use std::path::Path;
use std::process::{Command, Stdio};

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use toold_engine::need::{Need, Word};
use toold_host::environment::Environment;
use toold_host::shell_grammar::{Surroundings, fuzz_one};
use toold_proto::tool::Category;

/// Pieces of lines. No program has these names, so nothing runs but the handler below; nothing here loops or stays
/// behind.
const PIECES: &[&str] = &[
    "aa",
    "bb",
    "zz",
    "aa",
    "bb",
    " ",
    " ",
    " ",
    " ",
    " ",
    "\n",
    ";",
    "; ",
    " && ",
    " || ",
    " | ",
    "$(",
    "`",
    ")",
    "(",
    "{ ",
    "; }",
    "}",
    "{",
    "'",
    "\"",
    "\\",
    "$'",
    "$\"",
    "#",
    " #",
    " <<E\n",
    "\nE\n",
    " <<'E'\n",
    " <<-E\n",
    " <<E | zz\n",
    "<<<",
    " >f",
    ">f ",
    ">>g",
    " 2>&1",
    ">&",
    "&>h",
    ">|",
    "<",
    "$x",
    "${x}",
    "${x:-",
    "$((1",
    "))",
    "$[",
    "]",
    "[",
    "*",
    "~",
    "=",
    "x=",
    "x=1 ",
    "eval ",
    "time ",
    "! ",
    "if ",
    "; then ",
    "; fi",
    "case ",
    " in ",
    ") ",
    " esac",
    ";; ",
    "[[ ",
    " ]]",
    "[ ",
    "function ",
    "\t",
    "-",
    "0",
    "2",
    "!",
    "\\\n",
    " \\\n",
    "--",
    "é",
    "{a,b}",
    "env ",
    "(( ",
    " ))",
    "|&",
    "a=(",
    "\\'",
    "\\\"",
    "\\\\",
    "${x#",
    "${x//",
    "\u{a0}",
    "\r",
    "declare ",
    "-c ",
    "{x}>",
    "bash ",
    "coproc ",
];

const PRELUDE: &str = r#"
exec 9>"$LOG"
command_not_found_handle() {
    builtin printf '%s\0' "$#" "$@" >&9
    [ "$*" != cat ] || while IFS= read -r line || [ -n "$line" ]; do printf '%s\n' "$line"; done
}
FUNCNEST=3
PATH=/nonexistent
ulimit -t 2
"#;

fn needs(line: &str, cwd: &Path) -> Vec<Need> {
    let environment = Environment::default();
    toold_host::shell_grammar::needs(
        line,
        &mut Surroundings { cwd, folders: &[], environment: &environment, may_read: &mut |_| true },
    )
}

/// The commands that `bash` ran, as words, and the files that it created.
fn run_in_bash(line: &str) -> (Vec<Vec<String>>, Vec<String>) {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("work");
    std::fs::create_dir(&folder).unwrap();
    let log = dir.path().join("log");
    Command::new("bash")
        .args(["--noprofile", "--norc", "-c", &format!("{PRELUDE}{line}")])
        .env_clear()
        .env("LOG", &log)
        .current_dir(&folder)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .unwrap();
    let text = std::fs::read(&log).unwrap_or_default();
    let mut fields = text.split(|byte| *byte == 0).map(|field| String::from_utf8_lossy(field).into_owned());
    let mut ran = Vec::new();
    while let Some(count) = fields.next().and_then(|count| count.parse::<usize>().ok()) {
        ran.push(fields.by_ref().take(count).collect());
    }
    let made = std::fs::read_dir(&folder).unwrap();
    (ran, made.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect())
}

/// Words that the shell expands may become any number of words.
fn can_become(words: &[Word], ran: &[String]) -> bool {
    match words.split_first() {
        None => ran.is_empty(),
        Some((word, rest)) if word.literal => ran.first() == Some(&word.text) && can_become(rest, &ran[1..]),
        Some((_, rest)) => (0..=ran.len()).any(|taken| can_become(rest, &ran[taken..])),
    }
}

fn was_needed(needs: &[Need], ran: &[String]) -> bool {
    needs.iter().filter_map(|need| need.words()).any(|words| can_become(words, ran))
}

fn was_understood(needs: &[Need]) -> bool {
    !needs.iter().any(|need| need.category() == Category::Shell && (need.words().is_none() || need.unsure().is_some()))
}

/// The needs of a line, if nothing about it is in doubt.
pub(crate) fn understood_needs(line: &str) -> Option<Vec<Need>> {
    let needs = needs(line, Path::new("/nowhere"));
    (!line.contains('\0') && was_understood(&needs)).then_some(needs)
}

/// Everything that `bash` ran or wrote without one of these needs of the line.
pub(crate) fn ran_beyond_needs(line: &str, needs: &[Need]) -> Option<String> {
    let (ran, made) = run_in_bash(line);
    if let Some(ran) = ran.iter().find(|ran| !was_needed(needs, ran)) {
        return Some(format!("{line:?} ran {ran:?}, needs were {needs:#?}"));
    }
    let is_reported = |file: &&String| {
        let target = format!("/nowhere/{file}");
        needs.iter().any(|need| need.category() == Category::FileWrite && need.target == target)
    };
    let file = made.iter().find(|file| !is_reported(file))?;
    Some(format!("{line:?} made {file:?}, needs were {needs:#?}"))
}

fn check(line: &str) -> Result<(), TestCaseError> {
    match understood_needs(line).and_then(|needs| ran_beyond_needs(line, &needs)) {
        Some(beyond) => Err(TestCaseError::fail(beyond)),
        None => Ok(()),
    }
}

/// The same cases each time. For a search of any length: `PROPTEST_CASES=100000`.
fn config() -> ProptestConfig {
    let config = ProptestConfig { failure_persistence: None, ..ProptestConfig::default() };
    match std::env::var_os("PROPTEST_CASES") {
        Some(_) => config,
        None => ProptestConfig { rng_seed: RngSeed::Fixed(1), ..config },
    }
}

#[test]
fn handler_sees_every_command() {
    let (ran, made) = run_in_bash("aa 'b c' \"$(zz)\"; x=1 eval 'bb >f'");
    assert_eq!(ran, [vec!["zz"], vec!["aa", "b c", ""], vec!["bb"]]);
    assert_eq!(made, ["f"]);
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn everything_that_bash_runs_was_a_need(pieces in prop::collection::vec(prop::sample::select(PIECES), 1..14)) {
        check(&pieces.concat())?;
    }

    #[test]
    fn everything_that_bash_runs_of_a_changed_line_was_a_need(
        line in prop::sample::select(corpus()),
        changes in prop::collection::vec((any::<prop::sample::Index>(), 0usize..3, prop::sample::select(PIECES)), 1..4),
    ) {
        let mut line: Vec<char> = line.chars().collect();
        for (at, removed, piece) in changes {
            let at = at.index(line.len() + 1);
            let end = line.len().min(at + removed);
            line.splice(at..end, piece.chars());
        }
        let line: String = line.into_iter().collect();
        if is_harmless(&line) {
            check(&line)?;
        }
    }

    #[test]
    fn no_rule_allows_a_line_to_which_a_command_was_added(data in prop::collection::vec(any::<u8>(), 3..40)) {
        fuzz_one(&data);
    }

    #[test]
    fn the_reader_takes_any_text(text in "\\PC{0,200}") {
        needs(&text, Path::new("/nowhere"));
    }
}

#[test]
fn no_rule_allows_any_addition_anywhere() {
    for rule in 0..8 {
        for addition in 0..50 {
            for at in 0..40 {
                fuzz_one(&[rule, addition, at]);
            }
        }
    }
}

/// Whether bash may safely run a line: it names no existing program, no place outside its folder, and nothing that
/// loops, waits or stays behind.
fn is_harmless(line: &str) -> bool {
    let odd =
        ["exec", "trap", "while", "until", "source", "set -", "/", "~", "read", "wait", "for ", "..", "ulimit", "kill"];
    !odd.iter().any(|word| line.contains(word)) && !line.replace("&&", "").replace(">&", "").contains('&')
}

fn corpus() -> Vec<String> {
    let lines = include_str!("shell_corpus.txt").lines().filter(|line| !line.starts_with("## "));
    let sources =
        lines.filter_map(|entry| entry.split_once(" => ")).map(|(line, _)| line.replace('⏎', "\n").replace('⇥', "\t"));
    sources.filter(|line| is_harmless(line)).collect()
}

#[test]
fn the_corpus_agrees_with_bash() {
    let lines = corpus();
    assert!(lines.len() > 200, "{}", lines.len());
    for line in lines {
        check(&line).unwrap();
    }
}
