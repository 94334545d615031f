//! Knowledge about programs, from the tables in `programs`: see the README there.

pub(super) mod aliases;
mod awk;
mod builtins;
mod clouds;
mod code_options;
mod coreutils;
mod curl;
mod elsewhere;
mod fd;
mod filters;
mod find;
mod formatters;
mod git;
mod in_folder;
mod interpreters;
mod jq;
mod known;
pub(super) mod listed;
mod make;
pub(super) mod moved;
mod named_effects;
mod named_files;
mod operation;
mod operation_effects;
mod options;
mod other_names;
mod overwritten;
mod parallel;
mod pathspec;
mod placed;
mod ps;
mod pushed;
pub(super) mod repository;
mod requests;
mod runners;
mod rustc;
mod sed;
mod shell;
mod shown;
mod special;
mod sql;
mod standard_input;
mod tar;
mod tmux;
mod transfers;
mod uncovered;
pub(super) mod values;
mod wrapped;
mod wrappers;
pub(super) mod written_files;
mod xargs;

use std::rc::Rc;
use std::sync::Arc;

use toold_engine::effects::AddedEffect;
use toold_engine::need::{CheckedOutCommits, CommandForm, FormOption, ShownFiles};

use super::arg::Arg;
use super::names::NameSet;
use super::trees::TreeFilter;

pub use builtins::is_known_command;
pub(super) use builtins::{DECLARING, changes_shell, exports, is_no_command, only_empties_wildcards};
pub(super) use interpreters::{inline_script, script_at};
pub(super) use known::{ProgramTable, Takes, find, load_tables};
pub(super) use operation::head;
pub(super) use operation_effects::effects_of;
pub use operation_effects::withheld;
pub(super) use options::{Parsed, parse};
pub use other_names::signal_named;
pub(super) use other_names::{NamedCommand, other_names};
pub(super) use pushed::switches_branch;
pub(super) use transfers::is_elsewhere;
pub use uncovered::{UncoveredPattern, uncovered};

/// How a command uses a file that it names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileAccess {
    Read,
    /// Including everything inside.
    Tree,
    /// Shows names only.
    List,
    Write,
}

#[derive(Clone, Debug)]
pub(super) struct FileUse {
    pub(super) how: FileAccess,
    pub(super) arg: Arg,
    /// The folder for relative names, if it is not the command's own.
    pub(super) folder: Option<Arg>,
    pub(super) filter: Option<Rc<TreeFilter>>,
    /// Approving the command approves this use; false for a file that an option makes it write.
    pub(super) is_operand: bool,
    /// If it is a folder, everything inside is written as well.
    pub(super) is_whole: bool,
}

impl FileUse {
    pub(super) fn new(how: FileAccess, arg: Arg) -> Self {
        Self { how, arg, folder: None, filter: None, is_operand: true, is_whole: false }
    }
}

/// The output of a command, which may be the standard input of another one.
#[derive(Clone, Debug, Default)]
pub(super) enum CommandOutput {
    #[default]
    Unknown,
    /// As standard input: that of the line itself, which gives it none.
    OfLine,
    /// All of it.
    Text(Rc<str>),
    /// The content of this file.
    Content(Arg),
    /// One word of this kind, or this text.
    Pieces(Vec<super::arg::WordPart>),
    /// The names of these files, one per line.
    Names(Vec<FileUse>),
    /// The names of these files, each terminated by a NUL.
    EndedNames(Vec<FileUse>),
    /// The two above, after the files were looked up.
    Lines(Rc<NameSet>),
    Ended(Rc<NameSet>),
    /// Lines of its standard input.
    Input,
}

impl CommandOutput {
    /// The whole text, if it is known; without the newline at its end if it is one word.
    pub(super) fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Pieces(pieces) => match pieces.as_slice() {
                [super::arg::WordPart::Text(text)] => Some(text),
                _ => None,
            },
            _ => None,
        }
    }

    pub(super) fn of_text(text: Option<String>) -> Self {
        text.map_or(Self::Unknown, |text| Self::Text(text.into()))
    }

    /// For a part of a command with this standard input, which other parts may read as well.
    pub(super) fn shared(&self) -> Self {
        match self {
            Self::OfLine => Self::OfLine,
            _ => Self::Unknown,
        }
    }
}

/// A word of the command, and its meaning to the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    pub text: String,
    pub meaning: String,
}

/// The effects of a command besides running itself.
#[derive(Clone, Debug, Default)]
pub(super) struct Reading {
    pub(super) known: Option<&'static ProgramTable>,
    /// A command that it runs.
    pub(super) commands: Vec<Vec<Arg>>,
    /// A command that it runs for each of these files; the names replace `{}`.
    pub(super) on_found: Vec<(Vec<Arg>, Vec<FileUse>)>,
    /// A script that it passes to a shell.
    pub(super) scripts: Vec<String>,
    /// Values in the same word as their option, which may hold commands.
    pub(super) texts: Vec<String>,
    /// A file with commands that it reads.
    pub(super) script_file: Option<Arg>,
    /// It runs what its standard input says: see [`standard_input`].
    pub(super) runs_input: bool,
    /// A program in another language that it runs, as far as it is known, for rules that deny or ask.
    pub(super) program: Option<String>,
    /// `NAME=value` words that set variables for the command that it runs.
    pub(super) assignments: Vec<Arg>,
    pub(super) files: Vec<FileUse>,
    /// Files whose changes it may throw away, or that a patch or a program of which nothing is known may change, by their absolute
    /// paths.
    pub(super) discards: Vec<String>,
    /// A patch that names files which it writes.
    pub(super) patch: Option<written_files::Patch>,
    /// Folders in which it may write files whose names its words do not show.
    pub(super) writes_in: Vec<Arg>,
    /// Folders in which it may change the files with these endings, between blanks; all files if there are none.
    pub(super) changes_in: Vec<(std::path::PathBuf, &'static str)>,
    /// See [`toold_engine::need::JudgedCommand::checks_out`].
    pub(super) checks_out: Option<CheckedOutCommits>,
    /// See [`toold_engine::need::Need::form`].
    pub(super) form: Option<CommandForm>,
    /// Effects that neither an option nor an operand of the tables shows.
    pub(super) added: Vec<AddedEffect>,
    /// The spellings of each option that chooses another machine, account or repository.
    pub(super) places: Vec<Vec<String>>,
    /// See [`toold_engine::effects::CommandEffects::targets`].
    pub(super) targets: Vec<String>,
    /// Commands that it runs in a container or on another machine, and scripts of a shell there.
    pub(super) elsewhere: Vec<Vec<Arg>>,
    pub(super) scripts_elsewhere: Vec<String>,
    /// The same command with words that say what it does without them, for rules that deny or ask.
    pub(super) also: Vec<Vec<Arg>>,
    /// The tool that it runs is installed in the project, so that it fetches and installs nothing.
    pub(super) is_installed: bool,
    /// Its operation is in no table of its program, so that its effects are not known.
    pub(super) is_unknown_operation: bool,
    /// The options that were read, where the command has no form.
    pub(super) given: Vec<FormOption>,
    /// Why its effects are unknown.
    pub(super) unsure: Option<String>,
    /// The doubt is about which files it reads: its words run nothing.
    pub(super) doubts_files: bool,
    /// It may run any program.
    pub(super) may_run_any: bool,
    /// See [`toold_engine::need::JudgedCommand::carries_code`].
    pub(super) carries_code: bool,
    /// See [`toold_engine::need::JudgedCommand::never_free`].
    pub(super) never_free: bool,
    /// A file that it reads or writes may be one that no tool touches.
    pub(super) hides_file: bool,
    /// See [`toold_engine::need::JudgedCommand::reads_anywhere`].
    pub(super) reads_anywhere: Vec<String>,
    /// See [`toold_engine::need::JudgedCommand::shows`].
    pub(super) shows: Vec<Arc<ShownFiles>>,
    /// Folders that it gives to what it runs in a container.
    pub(super) reads_in: Vec<Arg>,
    /// See [`toold_engine::need::JudgedCommand::may_run`].
    pub(super) may_run: Vec<Vec<Arg>>,
    /// The command that it runs comes from elsewhere, so even all of its words do not show what it does.
    pub(super) is_open: bool,
    pub(super) reads_only: bool,
    /// It runs in the same shell, so the command that it runs changes that shell.
    pub(super) same_shell: bool,
    /// Another shell than bash runs its script, or the environment is not known: nothing there is free because
    /// it only reads.
    pub(super) other_shell: bool,
    pub(super) output: CommandOutput,
    pub(super) notes: Vec<Note>,
}

impl Reading {
    pub(super) fn unsure(mut self, why: impl Into<String>) -> Self {
        self.doubt(why);
        self
    }

    /// Unsure, and it might run anything.
    pub(super) fn runs_any(mut self, why: impl Into<String>) -> Self {
        self.may_run_any = true;
        self.unsure(why)
    }

    /// None of its words contains the command that it runs.
    pub(super) fn open(mut self, why: impl Into<String>) -> Self {
        self.is_open = true;
        self.runs_any(why)
    }

    pub(super) fn doubt(&mut self, why: impl Into<String>) {
        self.unsure.get_or_insert_with(|| why.into());
        self.reads_only = false;
        self.doubts_files = false;
    }

    /// A doubt about which files it reads.
    pub(super) fn doubt_files(&mut self, why: impl Into<String>) {
        let is_first = self.unsure.is_none() || self.doubts_files;
        self.doubt(why);
        self.doubts_files = is_first;
    }

    pub(super) fn note(&mut self, word: &Arg, meaning: impl Into<String>) {
        let text = word.literal().map_or_else(|| word.raw.clone(), str::to_owned);
        self.notes.push(Note { text, meaning: meaning.into() });
    }

    /// The options before the words that chose the entry.
    fn behind(&mut self, before: Self) {
        self.form = self.form.take().zip(before.form).map(|(mut form, before)| {
            form.options.splice(0..0, before.options);
            form
        });
        self.notes.splice(0..0, before.notes);
        self.files.splice(0..0, before.files);
        self.places.extend(before.places);
        self.may_run_any |= before.may_run_any;
        self.carries_code |= before.carries_code;
        if let Some(why) = before.unsure {
            self.doubt(why);
        }
    }

    fn command(&mut self, words: &[Arg]) {
        let Some((first, behind)) = words.split_first() else { return };
        self.commands.push(words.to_vec());
        // Some programs pass one word with blanks to a shell: `retry 'npm publish'`.
        if let Some(text) = first.literal().filter(|text| text.contains(char::is_whitespace)) {
            self.elsewhere.push(text.split_whitespace().map(Arg::text).chain(behind.iter().cloned()).collect());
        }
    }

    /// A script in the words, joined as `eval` does.
    fn script(&mut self, words: &[Arg]) {
        let texts: Option<Vec<&str>> = words.iter().map(Arg::literal).collect();
        match texts {
            None => {
                self.may_run_any = true;
                self.doubt("the shell expands the script that it runs, and the result is unknown");
            }
            Some(texts) => {
                let script = texts.join(" ");
                if !script.trim().is_empty() {
                    self.scripts.push(script);
                }
            }
        }
    }
}

/// The surroundings of the command, for effects that depend on more than its words.
pub(super) struct CommandContext<'a> {
    pub(super) folders: Option<&'a [std::path::PathBuf]>,
    /// It runs where another command says: the files that it names are none of its own line's.
    pub(super) is_elsewhere: bool,
    /// See [`super::Surroundings::folders`].
    pub(super) session_folders: &'a [std::borrow::Cow<'a, std::path::Path>],
    pub(super) environment: &'a crate::environment::Environment,
    /// No command of the line before it may have changed a file.
    pub(super) nothing_changed: bool,
    /// A variable of the line may change how Git reads paths (git(1), `GIT_ICASE_PATHSPECS`).
    pub(super) changes_pathspecs: bool,
    /// The words of the last command of the line that may have checked out another branch.
    pub(super) switched_by: Option<&'a [toold_engine::need::Word]>,
    /// Its standard input.
    pub(super) input: &'a CommandOutput,
    /// The time that is left for the line.
    pub(super) clock: crate::shell_grammar::clock::JudgingClock,
    /// Whether no program gets a variable of this name.
    pub(super) is_the_shells_own: &'a dyn Fn(&str) -> bool,
}

/// Programs that only print their version when asked for it: no file of the folder affects which program runs or what
/// it loads.
const VERSIONED: &[&str] = &[
    "bash", "clang", "cmake", "curl", "docker", "g++", "gcc", "gem", "gh", "git", "java", "javac", "jq", "kubectl",
    "make", "node", "npm", "openssl", "perl", "php", "psql", "python", "python3", "rg", "ruby", "ruff", "sqlite3",
    "tar", "uv",
];

/// Other ways to ask some of them for the version.
const VERSION_WORDS: &[(&str, &[&str])] = &[
    ("git", &["version"]),
    ("openssl", &["version"]),
    ("java", &["-version"]),
    ("javac", &["-version"]),
    ("node", &["-v"]),
    ("npm", &["-v"]),
    ("php", &["-v"]),
    ("ruby", &["-v"]),
    ("perl", &["-v"]),
    ("python", &["-V"]),
    ("python3", &["-V"]),
];

/// Parses one command. Its first word is known.
pub(super) fn read(words: &[Arg], site: &CommandContext) -> Reading {
    let mut reading = read_as_known(words, site);
    if !reading.reads_only && operation_effects::tells_of_itself(words) {
        // Whatever its table says about other words, and other programs that it could run.
        return Reading { known: reading.known, form: reading.form, notes: reading.notes, ..Reading::default() };
    }
    if !site.is_elsewhere {
        formatters::add(words, site, &mut reading);
    }
    reading
}

/// The same without the files that formatters and editors change, which make no program a known one.
fn read_as_known(words: &[Arg], site: &CommandContext) -> Reading {
    let Some((first, rest)) = words.split_first() else { return Reading::default() };
    let Some(path) = first.literal() else { return Reading::default() };
    let name = path.rsplit('/').next().unwrap_or_default();
    if ["/dev/", "/proc/"].iter().any(|folder| path.starts_with(folder)) {
        return Reading::default().open(format!("{path} may be any program"));
    }
    // Git's own programs, in a folder of its installation: `git-push` is `git push`.
    if let Some(subcommand) = name.strip_prefix("git-")
        && (path.contains("/git-core/")
            || known::find("git").is_some_and(|git| git.subcommands.contains_key(subcommand)))
    {
        let mut reading = Reading { reads_only: true, ..Reading::default() };
        reading.command(&[&[Arg::text("git"), Arg::text(subcommand)], rest].concat());
        return reading;
    }
    let mut reading = match rest {
        [only] if only.literal().is_some_and(|word| asks_version(name, word)) => {
            let mut reading = Reading { reads_only: true, ..Reading::default() };
            reading.note(only, "prints its version");
            reading
        }
        _ => special::read(name, rest, site).unwrap_or_else(|| from_table(name, rest)),
    };
    written_files::add(name, rest, &mut reading);
    standard_input::judge(name, rest, &mut reading, site.input);
    named_files::add(name, words, site, &mut reading);
    // In other folders, another program may have the name.
    reading.reads_only &= path == name
        || ["/bin/", "/usr/bin/", "/usr/local/bin/"]
            .iter()
            .any(|folder| path.strip_prefix(folder).is_some_and(|rest| rest == name));
    if reading.reads_only && path == name && is_shim(name, site.environment) {
        reading.reads_only = false;
        reading.note(first, "not treated as read-only: files of the folder choose which program of this name runs");
    }
    reading
}

/// Whether the name belongs to a version manager (asdf, mise, pyenv, Volta), which lets files such as `.tool-versions` and
/// `package.json` choose what runs.
fn is_shim(name: &str, environment: &crate::environment::Environment) -> bool {
    let Some(path) = environment.get("PATH") else { return false };
    let folder = std::env::split_paths(path).find(|folder| folder.join(name).is_file());
    folder.is_some_and(|folder| {
        ["shims", ".volta/bin", "aquaproj-aqua/bin"].iter().any(|of_manager| folder.ends_with(of_manager))
    })
}

/// The files whose text it runs: the program or the script that a path names, and those in which `make` and the like look for what their
/// words name. What an earlier command of the line may have put there is not known.
pub(super) fn files_that_run(words: &[Arg], reading: &Reading) -> Vec<Arg> {
    let Some((first, rest)) = words.split_first() else { return Vec::new() };
    let Some(path) = first.literal() else { return Vec::new() };
    let name = path.rsplit('/').next().unwrap_or_default();
    if let Some((_, options, folders, files)) =
        RECIPES.iter().find(|(programs, ..)| programs.split(' ').any(|of| of == name))
    {
        let named = written_files::named_by(rest, options);
        let folder = written_files::named_by(rest, folders).pop();
        let files: Vec<Arg> = if named.is_empty() { files.split(' ').map(Arg::text).collect() } else { named };
        return match folder.as_ref().map(Arg::literal) {
            None => files,
            Some(Some(folder)) => files.iter().map(|file| Arg::text(&format!("{folder}/{}", file.start()))).collect(),
            Some(None) => Vec::new(),
        };
    }
    if path.contains('/') && reading.known.is_none() {
        return vec![first.clone()];
    }
    interpreters::script(name, rest).into_iter().cloned().collect()
}

/// Programs that run what a file of the folder says, the options that name another file and another folder, and the usual files.
const RECIPES: &[(&str, &str, &str, &str)] = &[
    ("make gmake", "-f --file --makefile", "-C --directory", "Makefile makefile GNUmakefile"),
    ("npm pnpm yarn bun", "", "--prefix -C --cwd", "package.json"),
    ("just", "-f --justfile", "-d --working-directory", "justfile Justfile .justfile"),
    ("task go-task", "-t --taskfile", "-d --dir", "Taskfile.yml Taskfile.yaml"),
    ("rake", "-f --rakefile", "", "Rakefile rakefile"),
    ("deno", "-c --config", "", "deno.json deno.jsonc"),
];

fn asks_version(name: &str, word: &str) -> bool {
    word == "--version" && VERSIONED.contains(&name)
        || VERSION_WORDS.iter().any(|(program, words)| *program == name && words.contains(&word))
}

/// By the table alone. A subcommand of an open one is a program of its own.
fn from_table(name: &str, words: &[Arg]) -> Reading {
    let Some(known) = known::find(name) else { return own(name, words) };
    let parsed = parse(known, words);
    let added = match parsed.operands.as_slice() {
        [first, behind @ ..] if known.open && parsed.subcommands.is_empty() => own(first.start(), behind),
        _ => Reading::default(),
    };
    let mut reading = parsed.into_reading();
    reading.elsewhere.extend(added.elsewhere);
    reading.may_run.extend(added.may_run);
    if let Some(command) = runners::behind_run(name, words) {
        match names_operation(command) {
            true => reading.elsewhere.push(command.to_vec()),
            false => reading.may_run.extend(Some(command.to_vec()).filter(|command| begins_with_options(command))),
        }
    }
    reading
}

/// Whether a program that toold knows has options behind it.
fn begins_with_options(words: &[Arg]) -> bool {
    let is_program = |name: &str| known::find(name.rsplit('/').next().unwrap_or_default()).is_some();
    words.first().and_then(Arg::literal).is_some_and(is_program)
        && words.get(1).is_some_and(|word| word.start().starts_with('-'))
}

/// So many words of a program that no table knows may begin a command.
const MAX_SHOWN: usize = 12;
/// Options by which such programs are given a command as one text.
const SCRIPT_OPTIONS: &[&str] = &["-c", "-e", "-x", "-a", "--command", "--cmd", "--exec", "--eval", "--run", "--args"];
/// So many commands are found there.
const MAX_INNER: usize = 4;
/// Options of such programs behind which a command begins, with its words.
const STARTING_OPTIONS: &[&str] = &["-e", "-x", "--exec", "--execute", "--command"];
/// Programs whose operands are targets.
const BUILD_TOOLS: &[&str] = &["make", "gmake", "ninja", "just"];
/// Shells on other machines, whose options are not described.
const REMOTE_SHELLS: &[&str] = &["pdsh", "dsh", "clush", "pssh", "parallel-ssh", "rsh", "remsh"];
/// Options whose value is a text for people.
const TEXT_OPTIONS: &[&str] = &[
    "-m",
    "--message",
    "--title",
    "--subject",
    "--body",
    "--description",
    "--comment",
    "--note",
    "--text",
    "--prompt",
];

/// Whether these are the name of a program and of a subcommand that it has, behind options with one value each at most.
fn names_operation(words: &[Arg]) -> bool {
    let Some((first, rest)) = words.split_first() else { return false };
    let known = first.literal().and_then(|name| known::find(name.rsplit('/').next()?));
    let is_option =
        |at: Option<usize>| at.and_then(|at| rest.get(at)).is_some_and(|word| word.start().starts_with('-'));
    // Some operations are known by their names alone.
    first.literal().is_some_and(|_| named_effects::of(words).is_some_and(|(_, name)| name.len() > 1))
        || known.is_some_and(|known| {
            let names = |word: &Arg| word.literal().is_some_and(|text| known.subcommands.contains_key(text));
            let skipped = (0..rest.len())
                .take_while(|at| is_option(Some(*at)) || is_option(at.checked_sub(1)) && !names(&rest[*at]));
            rest.get(skipped.count()).is_some_and(names)
        })
}

/// Programs whose texts with blanks are names of tests.
const TEST_RUNNERS: &[&str] = &[
    "jest",
    "vitest",
    "mocha",
    "ava",
    "playwright",
    "cypress",
    "pytest",
    "py.test",
    "rspec",
    "cucumber",
    "phpunit",
    "pest",
];

/// Programs that show pages about other programs, whose names are their words.
const HELPERS: &[&str] = &["tldr", "tealdeer", "cheat", "navi", "howdoi", "whatis", "apropos", "explain"];

/// Commands that words of such a program may be: a text with blanks (`bench 'npm publish'`), and a program that toold knows with
/// options behind it (`multitime -n 3 rm -rf x`), which few programs have among their own subcommands.
fn guessed(name: &str, words: &[Arg]) -> Vec<Vec<Arg>> {
    let shown = words.get(..MAX_SHOWN).unwrap_or(words);
    let has_texts = !TEST_RUNNERS.contains(&name);
    let is_for_people =
        |at: usize| at.checked_sub(1).is_some_and(|before| TEXT_OPTIONS.iter().any(|option| shown[before].is(option)));
    let texts = shown.iter().enumerate().filter(|(at, _)| has_texts && !is_for_people(*at)).filter_map(|(_, word)| {
        let text = word.literal().filter(|text| text.contains(char::is_whitespace))?;
        Some(if text.starts_with('-') { text.split_once('=')?.1 } else { text })
    });
    let commands = texts.flat_map(|text| text.split(['\n', ';', '&', '|'])).map(|command| {
        let words = command.split_whitespace().map(|word| word.trim_matches(['\'', '"']));
        words.skip_while(|word| word.contains('=')).map(Arg::text).collect()
    });
    let behind =
        (0..shown.len()).map(|at| &words[at..]).filter(|words| begins_with_options(words)).map(<[Arg]>::to_vec);
    // `xterm -e top`, and `pdsh -w web1 uptime`.
    let begins = |at: usize| STARTING_OPTIONS.iter().any(|option| shown[at].is(option));
    let behind_option =
        (0..shown.len()).filter(|at| begins(*at)).filter_map(|at| words.get(at + 1..)).map(<[Arg]>::to_vec);
    // `bear make deploy`: a target is no subcommand.
    let builds = |at: usize| {
        let is_tool = shown[at].literal().is_some_and(|name| BUILD_TOOLS.contains(&name));
        is_tool && words.get(at + 1).is_some_and(|target| !target.start().starts_with('-'))
    };
    let built = (0..shown.len()).filter(|at| builds(*at)).map(|at| words[at..].to_vec());
    let remote = if REMOTE_SHELLS.contains(&name) { MAX_INNER } else { 0 };
    let tried = (0..shown.len().min(remote)).map(|at| words[at..].to_vec());
    let is_command = |words: &Vec<Arg>| {
        let is_name = |name: &str| name.starts_with(|c: char| c.is_ascii_alphanumeric() || "./~_".contains(c));
        words.first().and_then(Arg::literal).is_some_and(is_name)
    };
    behind_option.chain(tried).chain(built).chain(behind).chain(commands).filter(is_command).take(MAX_INNER).collect()
}

/// A user's own program: its words are known, and expansions come after the first of them. What stands behind `--` may be a
/// command that it runs.
fn own(name: &str, words: &[Arg]) -> Reading {
    if HELPERS.contains(&name) {
        return Reading::default();
    }
    let (runs_input, form) = (interpreters::runs_input(name, words), values::form(name, words));
    let mut reading = Reading { runs_input, form, ..Reading::default() };
    code_options::judge(name, words, &mut reading);
    let behind = words.iter().position(|word| word.is("--")).map(|at| &words[at + 1..]).unwrap_or_default();
    if behind.first().is_some_and(|first| !first.start().starts_with('-')) {
        reading.elsewhere.push(behind.to_vec());
    }
    // `wrap -x git push`, and `wrap -c 'git push'`: no package or file has the name of a program with its subcommand.
    let shown = words.iter().take(MAX_SHOWN);
    let inner = shown.enumerate().map(|(at, _)| words[at..].to_vec());
    let is_script = |option: &Arg| SCRIPT_OPTIONS.iter().any(|known| option.is(known));
    let values = words.windows(2).take(MAX_SHOWN).filter(|pair| is_script(&pair[0]));
    let texts =
        values.filter_map(|pair| pair[1].literal()).map(|text| text.split_whitespace().map(Arg::text).collect());
    for command in inner.chain(texts).filter(|words| names_operation(words)).take(MAX_INNER) {
        if !reading.elsewhere.contains(&command) {
            reading.elsewhere.push(command);
        }
    }
    reading.also.extend(runners::scripts_run(name, words));
    if name == "deno" {
        reading.elsewhere.extend(interpreters::package(words));
    }
    reading.may_run.extend(guessed(name, words));
    if let Some(word) = interpreters::expanded_program(name, words) {
        return reading.runs_any(format!("the shell expands {}, which may be the program that {name} runs", word.raw));
    }
    match words.first() {
        // Names of files below a folder are no subcommand.
        Some(first) if first.literal().is_none() && !first.start().contains('/') => reading.unsure(format!(
            "the shell expands {}, the first word after a program that toold does not know",
            first.raw
        )),
        Some(_) | None => reading,
    }
}
