//! How many of a command's first words say what it does: suggestions never leave out one of them.

use super::{
    CommandContext, REMOTE_SHELLS, Reading, SCRIPT_OPTIONS, TEXT_OPTIONS, clouds, interpreters, operation_effects,
};
use crate::shell_grammar::arg::Arg;

/// Behind the subcommand stands the name of a script, a recipe or a program, and so many further words with it.
const NAMES_SCRIPT: &[(&str, usize)] = &[
    ("npm run", 1),
    ("npm run-script", 1),
    ("npm rum", 1),
    ("npm urn", 1),
    ("yarn run", 1),
    ("yarn run-script", 1),
    ("yarnpkg run", 1),
    ("pnpm run", 1),
    ("pnpm run-script", 1),
    ("bun run", 1),
    ("composer run-script", 1),
    ("composer run", 1),
    ("devbox run", 1),
    ("cargo", 1),
    ("yarn", OF_TOOL),
    ("yarnpkg", OF_TOOL),
    ("pnpm", OF_TOOL),
    ("bun", OF_TOOL),
    ("kubectl rollout", 1),
    ("kubectl create", 1),
    ("kubectl set", 1),
    ("go run", 1),
    ("make", usize::MAX),
    ("gmake", usize::MAX),
    ("ninja", usize::MAX),
    ("samu", usize::MAX),
    ("gradle", usize::MAX),
    ("gradlew", usize::MAX),
    ("mvn", usize::MAX),
    ("mvnw", usize::MAX),
    ("just", usize::MAX),
    ("task", usize::MAX),
    ("go-task", usize::MAX),
];

/// A script or a tool, with the words behind it that look like subcommands of the tool.
const OF_TOOL: usize = 4;

/// Everything in their words says what they do, and no further words belong to the same.
pub(super) const WHOLE: &[&str] = &["gh api", "glab api", "psql", "mysql", "mariadb", "sqlite3", "ssh", "xargs"];

/// Programs that do whatever their words say.
const ANYTHING: &[&str] = &[
    "sh", "bash", "dash", "ash", "rbash", "zsh", "fish", "ksh", "eval", "python", "python3", "node", "deno", "bun",
    "perl", "ruby", "php", "lua", "awk", "gawk", "mawk", "rm", "rmdir", "shred", "mv", "cp", "dd", "chmod", "chown",
    "curl", "wget", "find", "kill", "pkill", "killall", "tee", "ln", "xargs", "env",
];

/// So many wrappers are looked into: a line may hold thousands, one inside of another.
const MAX_INNER: usize = 4;

/// `None` where nothing is known about the program.
pub(in crate::shell_grammar) fn head(words: &[Arg], reading: &Reading, site: &CommandContext) -> Option<usize> {
    head_within(words, reading, site, MAX_INNER)
}

fn head_within(words: &[Arg], reading: &Reading, site: &CommandContext, depth: usize) -> Option<usize> {
    let all = Some(words.len());
    if let Some(inner) = only_inner(reading) {
        let start = words.len().checked_sub(inner.len()).filter(|start| words.ends_with(inner) && *start > 0);
        return match start {
            Some(start) => Some(start + head_of_inner(inner, site, depth)),
            None => all,
        };
    }
    if !reading.scripts.is_empty() || !reading.on_found.is_empty() || !reading.scripts_elsewhere.is_empty() {
        return all;
    }
    let Some(known) = reading.known else { return all.filter(|_| runs_text(words)) };
    if let Some(count) = clouds::head(words) {
        return Some(count);
    }
    // With fewer words it does more: `git clean -n`.
    let is_milder = reading.form.as_ref().is_some_and(|form| operation_effects::is_milder(&known.entry, form));
    if is_milder || WHOLE.contains(&known.name.as_str()) {
        return all;
    }
    let Some(start) = behind_subcommands(words, reading, &known.name) else { return all };
    let Some((_, further)) = NAMES_SCRIPT.iter().find(|(name, _)| *name == known.name) else { return Some(start) };
    // Behind an option, a word may be its value.
    let is_name = |word: &&Arg| word.literal().is_some_and(|text| !text.starts_with(['-', '+', '@']));
    let behind = words.get(start..).unwrap_or_default();
    let is_verb = |word: &Arg| {
        word.start().starts_with(|first: char| first.is_ascii_alphabetic())
            && word.start().bytes().all(|b| b.is_ascii_alphanumeric() || b"-_:".contains(&b))
    };
    let names = behind.iter().take(*further).take_while(is_name).enumerate();
    let names = names.take_while(|(at, word)| *further != OF_TOOL || *at == 0 || is_verb(word)).count();
    match names {
        0 if behind.is_empty() => Some(start),
        0 => all,
        // `cargo xtask` is a program of the project, and its first word chooses what it does.
        1 if known.name == "cargo" && behind[0].is("xtask") => {
            Some(start + 1 + usize::from(behind.get(1).as_ref().is_some_and(is_name)))
        }
        names => Some(start + names),
    }
}

/// Programs in no table whose words are for other machines, or that fetch what these name.
const FOR_OTHERS: &[&str] = &[
    "ansible",
    "ansible-console",
    "salt",
    "salt-call",
    "salt-ssh",
    "knife",
    "mco",
    "bolt",
    "http",
    "https",
    "xh",
    "xhs",
    "curlie",
    "aria2c",
    "lynx",
    "w3m",
    "links",
    "hurl",
    "websocat",
    "grpcurl",
    "ftp",
    "lftp",
    "telnet",
];

/// Words of a program by which it runs the text behind them.
const TEXT_VERBS: &[&str] = &["eval", "exec", "execute", "runner", "query", "sql", "console", "tinker", "shell"];

/// Whether the words of a program that no table knows hold a text that it runs, or a command for other machines.
fn runs_text(words: &[Arg]) -> bool {
    let Some((path, words)) = words.split_first().and_then(|(first, rest)| Some((first.literal()?, rest))) else {
        return false;
    };
    let name = path.rsplit('/').next().unwrap_or_default();
    let is_one = |word: &Arg, list: &[&str]| list.iter().any(|one| word.is(one));
    let is_message = |at: usize| at.checked_sub(1).is_some_and(|before| is_one(&words[before], TEXT_OPTIONS));
    let is_text = |(at, word): (usize, &Arg)| {
        let is_long = word.literal().is_some_and(|text| text.contains(char::is_whitespace));
        is_long && !word.start().starts_with('-') && !is_message(at)
    };
    let is_script = path.contains('/') || interpreters::is_interpreter(name);
    FOR_OTHERS.contains(&name)
        || REMOTE_SHELLS.contains(&name)
        || interpreters::is_client(name)
        || words.iter().any(|word| is_one(word, TEXT_VERBS))
        || !is_script
            && (words.iter().any(|word| is_one(word, SCRIPT_OPTIONS)) || words.iter().enumerate().any(is_text))
}

/// The one command that it runs, here or elsewhere.
fn only_inner(reading: &Reading) -> Option<&Vec<Arg>> {
    let is_alone = reading.scripts.is_empty() && reading.scripts_elsewhere.is_empty() && reading.on_found.is_empty();
    match (reading.commands.as_slice(), reading.elsewhere.as_slice()) {
        ([only], []) if is_alone => Some(only),
        // Targets of a build tool are no commands behind it.
        ([], [only]) if is_alone && !reading.known.is_some_and(|known| has_targets(&known.name)) => Some(only),
        _ => None,
    }
}

fn has_targets(name: &str) -> bool {
    NAMES_SCRIPT.iter().any(|(known, further)| *known == name && *further == usize::MAX)
}

fn head_of_inner(words: &[Arg], site: &CommandContext, depth: usize) -> usize {
    let name = words.first().and_then(Arg::literal).unwrap_or_default();
    let base = name.rsplit('/').next().unwrap_or_default();
    if base.is_empty() || depth == 0 {
        return words.len();
    }
    if ANYTHING.contains(&base) || interpreters::is_interpreter(base) {
        return operation_effects::script_of(words).map_or(words.len(), |script| script.len());
    }
    let reading = super::read(words, site);
    // Words of an unknown tool that look like subcommands count as such.
    let is_plain = |word: &&Arg| {
        word.literal().is_some_and(|text| text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_:".contains(&b)))
            && !word.start().starts_with('-')
    };
    let plain = words.iter().skip(1).take(2).take_while(is_plain).count();
    head_within(words, &reading, site, depth - 1).unwrap_or(1 + plain)
}

/// The words up to the last that chose the entry of the tables. The notes of a command that is certain stand in the
/// order of its words up to there.
fn behind_subcommands(words: &[Arg], reading: &Reading, name: &str) -> Option<usize> {
    let wanted = name.split(' ').count() - 1;
    if wanted == 0 {
        return Some(1);
    }
    let places = reading.notes.iter().enumerate().filter(|(_, note)| note.meaning == "subcommand").map(|(at, _)| at);
    let last = places.take(wanted).last()?;
    let is_same = |(at, note): (usize, &super::Note)| {
        words.get(at + 1).is_some_and(|word| word.literal().unwrap_or(&word.raw) == note.text)
    };
    reading.notes.iter().enumerate().take(last + 1).all(is_same).then_some(last + 2)
}
