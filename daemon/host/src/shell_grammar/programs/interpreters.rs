//! Interpreters that are given a program in their words: `python3 -c TEXT`.

use toold_proto::cut;

use super::other_names::unversioned;
use crate::shell_grammar::arg::Arg;

/// Each with the letters of its options that take a program.
const INTERPRETERS: &[(&str, &str)] = &[
    ("python", "c"),
    ("ipython", "c"),
    ("pypy", "c"),
    ("node", "ep"),
    ("nodejs", "ep"),
    ("deno", ""),
    ("bun", "ep"),
    ("tsx", "ep"),
    ("ts-node", "ep"),
    ("ruby", "e"),
    ("jruby", "e"),
    ("perl", "eE"),
    ("php", "rBRE"),
    ("lua", "e"),
    ("luajit", "e"),
    ("R", "e"),
    ("Rscript", "e"),
    ("julia", "eE"),
    ("elixir", "e"),
    ("groovy", "e"),
    ("scala", "e"),
    ("guile", "c"),
    ("racket", "e"),
    ("ghc", "e"),
    ("clojure", "e"),
    ("clj", "e"),
    ("bb", "e"),
    ("osascript", "e"),
    ("octave", ""),
    ("gnuplot", "e"),
    ("swipl", "g"),
    ("sbcl", ""),
    ("erl", "e"),
];

/// Long options, and subcommands, with a program behind them.
const LONG: &[&str] = &["--eval", "--print", "--run", "--exec", "--execute", "-eval", "eval"];

/// The letters of the options that take a program, if `name` is an interpreter.
fn letters(name: &str) -> Option<&'static str> {
    let plain = unversioned(name);
    INTERPRETERS.iter().find(|(interpreter, _)| *interpreter == plain).map(|(_, letters)| *letters)
}

/// `-c`, `-lane` and `--eval=TEXT`.
fn takes_program(letters: &str, word: &str) -> bool {
    let is_long =
        LONG.iter().any(|long| word == *long || word.strip_prefix(long).is_some_and(|rest| rest.starts_with('=')));
    let is_bundle = word.starts_with('-') && !word.starts_with("--");
    is_long || is_bundle && cut::after_first(word).contains(|letter: char| letters.contains(letter))
}

/// All words of an interpreter that is given a program as text, for rules that deny or ask.
pub(in crate::shell_grammar) fn inline_script(words: &[Arg]) -> Option<String> {
    let (first, rest) = words.split_first()?;
    let letters = letters(first.literal()?.rsplit('/').next()?)?;
    let shown = || rest.iter().map(|word| word.literal().unwrap_or(&word.raw));
    rest.iter().any(|word| takes_program(letters, word.start())).then(|| shown().collect::<Vec<_>>().join(" "))
}

/// A word that the shell changes and that may be the interpreter's program, or an option that takes one. What stands
/// behind the name of a script is the script's.
pub(super) fn expanded_program<'a>(name: &str, words: &'a [Arg]) -> Option<&'a Arg> {
    let letters = letters(name)?;
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let takes_program = takes_program(letters, word.start());
        match word.literal() {
            None if takes_program || word.may_become_option() => return Some(word),
            None => return None,
            Some(_) if takes_program => return words.find(|word| word.literal().is_none()),
            Some("-m") => return None,
            Some(text) if text.len() > 1 && text.starts_with('-') => {}
            Some(_) => return None,
        }
    }
    None
}
