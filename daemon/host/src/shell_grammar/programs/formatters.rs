//! Formatters, linters and editors that no table of programs knows, or whose operands it does not: the files that their words
//! name are written, and so are those to which options move what a program writes.

use toold_proto::cut;

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
    /// The endings of the files in a folder that it changes; none if it may be all.
    endings: &'static str,
    without_files: WithoutFiles,
}

/// The files that a program changes if its words name none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WithoutFiles {
    Nothing,
    /// The folder that it runs in.
    Folder,
    /// The same whatever its words are.
    AlwaysFolder,
}

const fn row(
    programs: &'static str,
    verbs: &'static str,
    with: &'static str,
    unless: &'static str,
    values: &'static str,
) -> ChangedOperands {
    let without_files = WithoutFiles::Nothing;
    ChangedOperands { programs, verbs, with, unless, values, skipped: 0, endings: "", without_files }
}

impl ChangedOperands {
    const fn of(self, endings: &'static str) -> Self {
        Self { endings, ..self }
    }

    const fn or_folder(self) -> Self {
        Self { without_files: WithoutFiles::Folder, ..self }
    }

    const fn in_folder(self) -> Self {
        Self { without_files: WithoutFiles::AlwaysFolder, ..self }
    }
}

/// Programs that format several languages choose among these by themselves.
const WEB: &str =
    "js jsx ts tsx mjs cjs mts cts json jsonc json5 css scss less html vue svelte astro md mdx yaml yml graphql gql";
const PYTHON: &str = "py pyi pyx ipynb";
const C: &str = "c cc cpp cxx h hh hpp hxx m mm inc cs java js ts json proto cu";

/// Read from the programs' own manuals.
const ROWS: &[ChangedOperands] = &[
    row("prettier", "", "--write -w", "", "--config --ignore-path --log-level --parser --plugin").of(WEB),
    row(
        "eslint oxlint standard xo",
        "",
        "--fix",
        "",
        "-c --config --ext -f --format --ignore-path --parser --plugin --rule",
    )
    .of(WEB)
    .or_folder(),
    row(
        "stylelint markdownlint markdownlint-cli2",
        "",
        "--fix",
        "",
        "-c --config -f --formatter --ignore-path -i -p -r",
    )
    .of(WEB),
    row("biome rome", "check", "--write --fix --apply --apply-unsafe", "", "--config-path").of(WEB).or_folder(),
    row("biome rome", "format", "--write --fix --apply --apply-unsafe", "", "--config-path").of(WEB).or_folder(),
    row("biome rome", "lint", "--write --fix --apply --apply-unsafe", "", "--config-path").of(WEB).or_folder(),
    row("biome rome", "ci", "--write --fix --apply --apply-unsafe", "", "--config-path").of(WEB).or_folder(),
    row("dprint", "fmt", "", "", "-c --config").or_folder(),
    row("deno", "fmt", "", "--check", "-c --config --ext --ignore").of(WEB).or_folder(),
    row("jscodeshift", "", "", "-d --dry", "-t --transform --parser --extensions --ignore-pattern"),
    row("black", "", "", "--check --diff", "-l --line-length -t --target-version --config -c --code -W --workers")
        .of(PYTHON),
    row(
        "isort",
        "",
        "",
        "--check --check-only -c --diff -d --stdout",
        "--profile --sp --settings-path -l --line-length",
    )
    .of(PYTHON),
    row("autopep8 autoflake yapf", "", "-i --in-place", "", "--style --max-line-length --select --ignore --exclude")
        .of(PYTHON),
    row("pyupgrade", "", "", "", "").of(PYTHON),
    row("2to3", "", "-w --write", "", "-f -x -j -o").of(PYTHON),
    row("ruff", "format", "", "--check --diff", "--config --line-length --target-version").of(PYTHON).or_folder(),
    row(
        "ruff",
        "check",
        "--fix --fix-only --unsafe-fixes --add-noqa",
        "--diff",
        "--config --select --ignore --target-version",
    )
    .of(PYTHON)
    .or_folder(),
    row("djlint", "", "--reformat", "--check", "--profile --indent").of("html jinja j2 hbs"),
    row("sqlfluff", "fix", "", "", "--dialect --rules").of("sql").or_folder(),
    row("sqlfluff", "format", "", "", "--dialect").of("sql").or_folder(),
    row("codespell typos", "", "-w --write-changes", "", "-L --ignore-words-list -I -S --skip").or_folder(),
    row("clang-format", "", "-i", "-n --dry-run", "--style -style").of(C),
    row("shfmt", "", "-w --write", "", "-i --indent -ln --language-dialect"),
    row("gofmt gofumpt goimports golines gci", "", "-w", "", "-m -r -local").of("go"),
    row("go", "fmt", "", "-n", "").of("go").or_folder(),
    row("go", "fix", "", "", "").of("go").or_folder(),
    row("cargo", "fmt", "", "--check", "").of("rs").in_folder(),
    row("cargo", "fix", "", "", "").of("rs").in_folder(),
    row("cargo", "clippy", "--fix", "", "").of("rs").in_folder(),
    row("rubocop standardrb", "", "-a -A -x --autocorrect --autocorrect-all --fix", "", "-c --config --only")
        .of("rb rake ru gemspec erb")
        .or_folder(),
    row("stylua", "", "", "--check", "-f --config-path").of("lua"),
    row("taplo", "fmt", "", "--check --diff", "-c --config -o --option").of("toml").or_folder(),
    row("terraform tofu", "fmt", "", "-check -write", "").of("tf tfvars hcl").or_folder(),
    row("dart", "format", "", "-o --output --set-exit-if-changed", "-l --line-length").of("dart"),
    row("dart", "fix", "--apply", "", "").of("dart").or_folder(),
    row("zig", "fmt", "", "--check", "").of("zig zon"),
    row("gleam", "format", "", "--check", "").of("gleam").or_folder(),
    row("mix", "format", "", "--check-formatted --dry-run", "").of("ex exs eex heex").or_folder(),
    row("dotnet", "format", "", "--verify-no-changes", "").of("cs vb fs").in_folder(),
    row("buf", "format", "-w --write", "", "").of("proto").or_folder(),
    row("php-cs-fixer", "fix", "", "--dry-run", "--config --rules").of("php").or_folder(),
    row("phpcbf", "", "", "", "").of("php").or_folder(),
    row("swiftformat", "", "", "--lint --dryrun", "--config --rules").of("swift"),
    row("swiftlint", "", "--fix --autocorrect", "", "--config").of("swift").or_folder(),
    row("treefmt", "", "", "--fail-on-change --ci", "").or_folder(),
    row("fastmod", "", "", "", "-e --extensions -g --glob -d --dir").in_folder(),
    row("comby", "", "-i -in-place", "", "-d -directory").in_folder(),
    row("ast-grep sg", "", "-U --update-all", "", "-p --pattern -r --rewrite -l --lang").in_folder(),
    row("nixfmt nixpkgs-fmt alejandra", "", "", "-c --check", "-w").of("nix"),
    row("ktlint", "", "-F --format", "", "").of("kt kts").or_folder(),
    row("google-java-format", "", "-i --replace", "", "").of("java"),
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
    let Some((first, rest)) = words.split_first() else { return false };
    let name = first.literal().and_then(|path| path.rsplit('/').next()).unwrap_or_default();
    ROWS.iter().any(|row| row.has_name(name, rest))
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
    let here = site.folders.unwrap_or_default();
    let is_folder = |text: &str| here.iter().any(|folder| logical(&folder.join(text)).is_dir());
    // What a folder has, and what a pattern of the program's own matches, it chooses itself.
    let names_file = |word: &Arg| match word.literal() {
        Some(text) => !text.is_empty() && !is_pattern(text) && !is_folder(text),
        None => word.has_glob(),
    };
    let mut named = Vec::new();
    for row in ROWS.iter().filter(|row| row.is_about(name, rest)) {
        let (files, mut folders): (Vec<Arg>, Vec<Arg>) = row.files(rest).into_iter().partition(names_file);
        let is_whole = row.without_files == WithoutFiles::AlwaysFolder;
        let names_none = files.is_empty() && folders.is_empty() && !rest.iter().any(|word| word.is("-"));
        if is_whole || names_none && row.without_files == WithoutFiles::Folder {
            folders.push(Arg::text("."));
        }
        let changed = folders.iter().filter_map(Arg::literal).map(folder_of_pattern);
        let paths = changed.flat_map(|folder| here.iter().map(move |here| logical(&here.join(folder))));
        reading.changes_in.extend(paths.map(|path| (path.canonicalize().unwrap_or(path), row.endings)));
        named.extend(files.into_iter().filter(|_| !is_whole));
    }
    let outputs = OUTPUTS.iter().filter(|(program, _)| *program == name);
    let outputs = outputs.flat_map(|(_, options)| named_by(rest, options));
    let (files, folders): (Vec<Arg>, Vec<Arg>) = outputs.partition(names_file);
    named.extend(files);
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
            moved::in_own_folder(name, site, reading);
            let values = moved::set_values(name, words);
            moved::may_write(within.iter().filter_map(Arg::literal).chain(values), site, reading);
        }
    }
}

/// A pattern that the program itself matches with files: `**/*.js`, and `./...` of Go.
fn is_pattern(text: &str) -> bool {
    text.contains(['*', '?', '{']) || text.ends_with("...")
}

/// The folder in which it matches any.
fn folder_of_pattern(text: &str) -> &str {
    let end = text.find(['*', '?', '{']).or_else(|| text.rfind("...")).unwrap_or(text.len());
    let before = cut::before(text, end);
    match before.rsplit_once('/') {
        _ if end == text.len() => text,
        Some(("", _)) => "/",
        Some((folder, _)) => folder,
        None => ".",
    }
}

impl ChangedOperands {
    fn is_about(&self, name: &str, words: &[Arg]) -> bool {
        self.has_name(name, words)
            && (self.with.is_empty() || is_given(words, self.with))
            && !is_given(words, self.unless)
    }

    fn has_name(&self, name: &str, words: &[Arg]) -> bool {
        let mut own = words.iter().filter(|word| !word.start().starts_with(['-', '+']));
        self.programs.split(' ').any(|program| program == name)
            && self.verbs.split_whitespace().all(|verb| own.next().is_some_and(|word| word.is(verb)))
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
