//! Interpreters that are given a program in their words: `python3 -c TEXT`.

use toold_proto::cut;

use super::other_names::{packaged_as, unversioned};
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
    ("zx", "e"),
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

pub(super) fn is_interpreter(name: &str) -> bool {
    letters(name).is_some()
}

/// Whether it runs statements, as clients of databases do.
pub(super) fn is_client(name: &str) -> bool {
    CLIENTS.iter().any(|(client, _)| *client == unversioned(name))
}

/// `-c`, `-lane` and `--eval=TEXT`.
fn takes_program(letters: &str, word: &str) -> bool {
    let is_long =
        LONG.iter().any(|long| word == *long || word.strip_prefix(long).is_some_and(|rest| rest.starts_with('=')));
    let is_bundle = word.starts_with('-') && !word.starts_with("--");
    is_long || is_bundle && cut::after_first(word).contains(|letter: char| letters.contains(letter))
}

/// Clients of databases and the like, which no table describes: they run the statements of an option or of their standard
/// input, and their languages can run programs, or read and write files.
const CLIENTS: &[(&str, &[&str])] = &[
    ("duckdb", &["-c", "-s", "-f"]),
    ("mongosh", &["--eval", "-f", "--file"]),
    ("mongo", &["--eval"]),
    ("redis-cli", &["--eval"]),
    ("clickhouse", &["-q", "--query", "--queries-file"]),
    ("clickhouse-client", &["-q", "--query", "--queries-file"]),
    ("clickhouse-local", &["-q", "--query", "--queries-file"]),
    ("sqlcmd", &["-Q", "-q", "-i"]),
    ("sqlplus", &[]),
    ("usql", &["-c", "-f"]),
    ("pgcli", &["-c"]),
    ("mycli", &["-e", "--execute"]),
    ("litecli", &["-e", "--execute"]),
    ("cqlsh", &["-e", "-f", "--execute", "--file"]),
    ("iredis", &[]),
    ("tclsh", &[]),
    ("wish", &[]),
    ("m4", &[]),
    ("gnuplot", &["-e"]),
    ("octave", &["--eval"]),
    ("bpython", &[]),
    ("irb", &[]),
    ("jshell", &[]),
    ("spark-shell", &["-i"]),
    ("spark-sql", &["-e", "-f"]),
    ("hive", &["-e", "-f"]),
    ("beeline", &["-e", "-f"]),
    ("trino", &["--execute", "-f"]),
    ("snowsql", &["-q", "-f"]),
    ("snow", &["-q", "-f"]),
    ("isql", &[]),
    ("isql-fb", &["-i"]),
    ("influx", &["-execute"]),
];

/// Options of interpreters whose value is the next word and no program.
const WITH_VALUE: &[&str] = &["-W", "-X", "-r", "-I", "-C", "-d", "-l", "--require", "--import", "--loader"];

/// Scripts of interpreters that are installers, by the names of their files.
const INSTALLERS: &[&str] =
    &["pip", "pip3", "pipx", "pipenv", "poetry", "pdm", "uv", "easy_install", "gem", "bundle", "cpan", "cpanm"];

/// The tool that an interpreter is given by its name, with its words: `pip install x` of `python3 -W ignore -mpip install x`.
pub(super) fn tool(words: &[Arg]) -> Option<Vec<Arg>> {
    let (first, rest) = words.split_first()?;
    let name = unversioned(first.literal()?.rsplit('/').next()?);
    let behind = |at: usize| rest.get(at + 1..).unwrap_or_default();
    let named = |name: &str, words: &[Arg]| [&[Arg::text(name)], words].concat();
    match name {
        "python" | "py" | "pypy" => module(rest),
        "perl" | "ruby" | "jruby" => {
            let starts = |at: &usize| rest[*at].is("-S") || rest[*at].start().starts_with("-MCPAN");
            match (0..rest.len()).find(starts) {
                Some(at) if rest[at].is("-S") => Some(behind(at).to_vec()),
                Some(at) => Some(named("cpan", behind(at))),
                None => None,
            }
        }
        "deno" => package(rest),
        "node" | "nodejs" | "bun" => None,
        _ => return None,
    }
    .or_else(|| {
        let at = rest.iter().position(|word| !word.start().starts_with('-'))?;
        let file = rest[at].literal().filter(|path| path.contains('/'))?.rsplit('/').next()?;
        let tool = INSTALLERS.iter().find(|name| **name == file).copied().or_else(|| packaged_as(file))?;
        Some(named(tool, behind(at)))
    })
    .filter(|tool| !tool.is_empty())
}

/// The program of a package that `deno` is given by its name, with its words: `npm publish` of `deno run -A npm:npm@10 publish`
/// (docs.deno.com, "npm: specifiers").
pub(super) fn package(words: &[Arg]) -> Option<Vec<Arg>> {
    let starts = |word: &Arg| ["npm:", "jsr:"].iter().any(|start| word.start().starts_with(start));
    let at = words.iter().position(starts)?;
    let (_, package) = words[at].literal()?.split_once(':')?;
    let package = package.trim_start_matches('/');
    // `SCOPE/NAME@VERSION/PROGRAM`; without a program, it has the package's name.
    let scope = package.split_once('/').filter(|_| package.starts_with('@')).map_or(0, |(scope, _)| scope.len() + 1);
    let name = cut::from(package, scope);
    let (name, program) = name.split_once('/').unwrap_or((name, ""));
    let name = name.split('@').next().unwrap_or(name);
    let program = if program.is_empty() { name } else { program };
    // These fetch the package, and run nothing of it.
    let only_fetches = |word: &Arg| {
        ["add", "install", "i", "cache", "check", "compile", "info", "doc", "remove"].iter().any(|verb| word.is(verb))
    };
    let is_run = !words[..at].iter().any(only_fetches);
    is_run.then(|| [&[Arg::text(program)], words.get(at + 1..).unwrap_or_default()].concat())
}

/// The module of `python`, whose options without a value can stand in one word (python(1), "COMMAND LINE").
fn module(words: &[Arg]) -> Option<Vec<Arg>> {
    let mut at = 0;
    while let Some(word) = words.get(at) {
        at += 1;
        let letters = word.literal()?.strip_prefix('-')?;
        if letters.starts_with('-') {
            at += usize::from(letters == "-check-hash-based-pycs");
            continue;
        }
        let Some(place) = letters.find(['m', 'c', 'W', 'X']) else { continue };
        let (letter, attached) = cut::from(letters, place).split_at(1);
        match letter {
            "m" => {
                let name = if attached.is_empty() { words.get(at)?.literal()? } else { attached };
                let behind = words.get(at + usize::from(attached.is_empty())..).unwrap_or_default();
                let name =
                    ["._internal", ".__main__"].iter().fold(name, |name, end| name.strip_suffix(end).unwrap_or(name));
                return Some([&[Arg::text(name)], behind].concat());
            }
            "c" => return None,
            _ => at += usize::from(attached.is_empty()),
        }
    }
    None
}

/// Whether an interpreter, or a client, runs its standard input: no word names another program.
pub(super) fn runs_input(name: &str, words: &[Arg]) -> bool {
    if let Some((_, options)) = CLIENTS.iter().find(|(client, _)| *client == unversioned(name)) {
        let gives_program = |word: &Arg| {
            options.iter().any(|option| {
                word.start().strip_prefix(option).is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
            })
        };
        return !words.iter().any(gives_program);
    }
    let Some(letters) = letters(name) else { return false };
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match word.literal() {
            Some("-" | "/dev/stdin" | "/dev/fd/0" | "/proc/self/fd/0") => return true,
            Some("-m") => return false,
            _ if takes_program(letters, word.start()) => return false,
            Some(option) if WITH_VALUE.contains(&option) => _ = words.next(),
            Some(option) if option.starts_with('-') => {}
            _ => return false,
        }
    }
    true
}

/// All words of an interpreter that is given a program as text, for rules that deny or ask.
pub(in crate::shell_grammar) fn inline_script(words: &[Arg]) -> Option<String> {
    let (first, rest) = words.split_first()?;
    let letters = letters(first.literal()?.rsplit('/').next()?)?;
    let shown = || rest.iter().map(|word| word.literal().unwrap_or(&word.raw));
    // `python3 -m timeit` runs its operands.
    let is_timed = rest.windows(2).any(|pair| pair[0].is("-m") && pair[1].is("timeit"));
    let has_program = is_timed || rest.iter().any(|word| takes_program(letters, word.start()));
    has_program.then(|| shown().collect::<Vec<_>>().join(" "))
}

/// The script that an interpreter is given by its name.
pub(super) fn script<'a>(name: &str, words: &'a [Arg]) -> Option<&'a Arg> {
    let letters = letters(name)?;
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match word.literal()? {
            _ if takes_program(letters, word.start()) => return None,
            "-" | "-m" => return None,
            option if WITH_VALUE.contains(&option) => _ = words.next(),
            "run" if matches!(name, "deno" | "bun") => {}
            option if option.starts_with('-') => {}
            _ => return Some(word),
        }
    }
    None
}

/// Shells, which run the file that their first operand names.
const SHELLS: &[&str] = &["sh", "bash", "dash", "ash", "ksh", "mksh", "zsh", "source", "."];

/// Programs whose first operand may also be the name of another thing than a file: a task, a package, a subcommand.
const WITH_OTHERS: &[&str] = &["bun", "deno", "uv"];

/// The position of the word that names the file that a shell or an interpreter runs.
pub(in crate::shell_grammar) fn script_at(words: &[Arg]) -> Option<usize> {
    let (first, rest) = words.split_first()?;
    let name = first.literal()?.rsplit('/').next()?;
    let found = match name {
        "uv" if rest.first().is_some_and(|verb| verb.is("run")) => {
            rest[1..].first().filter(|word| word.literal().is_some_and(|text| text.ends_with(".py")))
        }
        name if SHELLS.contains(&name) => {
            let is_option = |word: &&Arg| word.start().starts_with(['-', '+']);
            let options = rest.iter().take_while(is_option);
            let takes_more =
                |word: &Arg| word.start().contains(['c', 's', 'o', 'O', 'n']) || word.start().starts_with("--");
            rest.get(options.clone().count()).filter(|_| !options.clone().any(takes_more))
        }
        name => script(name, rest),
    }?;
    let is_file = |text: &str| !text.is_empty() && (!WITH_OTHERS.contains(&name) || text.contains(['/', '.']));
    let at = words.iter().position(|word| std::ptr::eq(word, found))?;
    found.literal().is_some_and(is_file).then_some(at)
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
