//! Formatters, linters and editors that no table of programs knows, or whose operands it does not: the files that their words
//! name are written, and so are those to which options move what a program writes.

use super::written_files::{is_given, named_by};
use super::{CommandContext, FileAccess, FileUse, Reading, interpreters, moved};
use crate::shell_grammar::arg::Arg;
use crate::shell_grammar::state::logical;

/// When a program changes the files among its words.
struct ChangedOperands {
    /// Names of the program, and the words that choose the operation.
    programs: &'static str,
    verbs: &'static str,
    /// It changes them with one of these options; always if there are none.
    with: &'static str,
    /// With one of these it only shows or checks.
    unless: &'static str,
    /// Options whose value is the next word.
    values: &'static str,
    /// So many operands come before the files.
    skipped: usize,
}

const fn row(
    programs: &'static str,
    verbs: &'static str,
    with: &'static str,
    unless: &'static str,
    values: &'static str,
) -> ChangedOperands {
    ChangedOperands { programs, verbs, with, unless, values, skipped: 0 }
}

/// Read from the programs' own manuals.
const ROWS: &[ChangedOperands] = &[
    row("prettier", "", "--write -w", "", "--config --ignore-path --log-level --parser --plugin"),
    row(
        "eslint oxlint standard",
        "",
        "--fix",
        "",
        "-c --config --ext -f --format --ignore-path --parser --plugin --rule",
    ),
    row(
        "stylelint markdownlint markdownlint-cli2",
        "",
        "--fix",
        "",
        "-c --config -f --formatter --ignore-path -i -p -r",
    ),
    row("biome", "", "--write --fix --apply --apply-unsafe", "", "--config-path"),
    row("dprint", "fmt", "", "", "-c --config"),
    row("black", "", "", "--check --diff", "-l --line-length -t --target-version --config -c --code -W --workers"),
    row(
        "isort",
        "",
        "",
        "--check --check-only -c --diff -d --stdout",
        "--profile --sp --settings-path -l --line-length",
    ),
    row("autopep8 autoflake yapf", "", "-i --in-place", "", "--style --max-line-length --select --ignore --exclude"),
    row("pyupgrade", "", "", "", ""),
    row("ruff", "format", "", "--check --diff", "--config --line-length --target-version"),
    row(
        "ruff",
        "check",
        "--fix --fix-only --unsafe-fixes --add-noqa",
        "--diff",
        "--config --select --ignore --target-version",
    ),
    row("clang-format", "", "-i", "-n --dry-run", "--style -style"),
    row("shfmt", "", "-w --write", "", "-i --indent -ln --language-dialect"),
    row("gofumpt golines gci", "", "-w", "", "-m"),
    row("rubocop standardrb", "", "-a -A -x --autocorrect --autocorrect-all --fix", "", "-c --config --only"),
    row("stylua", "", "", "--check", "-f --config-path"),
    row("taplo", "fmt", "", "--check --diff", "-c --config -o --option"),
    row("dart", "format", "", "-o --output --set-exit-if-changed", "-l --line-length"),
    row("zig", "fmt", "", "--check", ""),
    row("nixfmt nixpkgs-fmt alejandra", "", "", "-c --check", "-w"),
    row("ktlint", "", "-F --format", "", ""),
    row("google-java-format", "", "-i --replace", "", ""),
    row("cmake-format", "", "-i --in-place", "", "-c --config-files"),
    row("dos2unix unix2dos", "", "", "-O --to-stdout -i --info", ""),
    row("ed red", "", "", "", "-p --prompt"),
    ChangedOperands { skipped: 1, ..row("yq", "", "-i --inplace --in-place", "", "-p -o -I --indent") },
];

/// Programs that write the file which an option names.
const OUTPUTS: &[(&str, &str)] = &[("openssl", "-out"), ("pandoc", "-o --output"), ("eslint", "-o --output-file")];

/// Runners that take a word which is no command of theirs for a tool of the project.
const OF_TOOLS: &[&str] = &["yarn", "yarnpkg", "pnpm"];

/// Whether the program is one of them: it changes the files that [`add`] says.
pub(super) fn is_one(words: &[Arg]) -> bool {
    let name = words.first().and_then(Arg::literal).and_then(|path| path.rsplit('/').next()).unwrap_or_default();
    ROWS.iter().any(|row| row.programs.split(' ').any(|program| program == name))
}

/// Adds the files to those of a command, whose first word is the program or the one that runs it.
pub(super) fn add(words: &[Arg], site: &CommandContext, reading: &mut Reading) {
    let Some((first, mut rest)) = words.split_first() else { return };
    let Some(mut name) = first.literal().and_then(|path| path.rsplit('/').next()) else { return };
    let (program, own) = (name, rest);
    let module = interpreters::tool(words).unwrap_or_default();
    if let Some((tool, behind)) = module.split_first() {
        (name, rest) = (tool.literal().unwrap_or_default(), behind);
    } else if OF_TOOLS.contains(&name)
        && let Some(at) = rest.iter().position(|word| !word.start().starts_with('-'))
    {
        (name, rest) = (rest[at].literal().unwrap_or_default(), &rest[at + 1..]);
    }
    let changed = ROWS.iter().filter(|row| row.is_about(name, rest)).flat_map(|row| row.files(rest));
    let outputs = OUTPUTS.iter().filter(|(program, _)| *program == name);
    let written = changed.chain(outputs.flat_map(|(_, options)| named_by(rest, options)));
    let is_folder = |word: &Arg| {
        let mut folders = site.folders.unwrap_or_default().iter();
        word.literal().is_some_and(|text| folders.any(|folder| logical(&folder.join(text)).is_dir()))
    };
    // What a folder has, and what a pattern of the program's own matches, it chooses itself.
    let names_file = |word: &Arg| match word.literal() {
        Some(text) => !text.is_empty() && !text.contains(['*', '?', '{']) && !is_folder(word),
        None => word.has_glob(),
    };
    let (named, folders): (Vec<Arg>, Vec<Arg>) = written.partition(names_file);
    moved::may_write(folders.iter().filter_map(Arg::literal), site, reading);
    for word in named {
        let is_known = |file: &FileUse| file.how == FileAccess::Write && file.arg == word;
        if !reading.files.iter().any(is_known) {
            reading.files.push(FileUse::new(FileAccess::Write, word));
        }
    }
    if !reading.reads_only {
        let tool = Some((name, rest)).filter(|_| name != program);
        for (name, words) in std::iter::once((program, own)).chain(tool) {
            let (away, within) = moved::written(name, words, site);
            reading.files.extend(away.into_iter().map(|word| FileUse::new(FileAccess::Write, word)));
            moved::may_write(within.iter().filter_map(Arg::literal), site, reading);
        }
    }
}

impl ChangedOperands {
    fn is_about(&self, name: &str, words: &[Arg]) -> bool {
        let mut own = words.iter().filter(|word| !word.start().starts_with('-'));
        self.programs.split(' ').any(|program| program == name)
            && self.verbs.split_whitespace().all(|verb| own.next().is_some_and(|word| word.is(verb)))
            && (self.with.is_empty() || is_given(words, self.with))
            && !is_given(words, self.unless)
    }

    fn files(&self, words: &[Arg]) -> Vec<Arg> {
        let is_value = |at: usize| {
            let before = at.checked_sub(1).and_then(|at| words[at].literal());
            before.is_some_and(|option| self.values.split(' ').any(|known| known == option))
        };
        let operands = words.iter().enumerate().filter(|(at, word)| !word.start().starts_with('-') && !is_value(*at));
        let before = self.verbs.split_whitespace().count() + self.skipped;
        operands.skip(before).map(|(_, word)| word.clone()).collect()
    }
}
