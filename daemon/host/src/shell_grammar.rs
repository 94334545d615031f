//! Analyzes a command line before it runs: each simple command, the files that it names or redirects to, and the
//! commands that wrappers such as `env` or `bash -c` run.
//!
//! The line is parsed with a real shell grammar, which gets it without the bodies of heredocs: see `heredocs`. Where the
//! grammar is known to be laxer than the shell, its result is checked again: see `check`. Words are expanded as far as the line itself determines their values (`arg`, `state`),
//! and each program's arguments are parsed as that program does (`programs`). Anything that cannot be parsed reliably
//! becomes a need that no pattern with a wildcard matches. The engine matches words with patterns.
//!
//! Judging fails closed: a line that takes too long, needs too much, or makes this code panic becomes a need that a
//! person is asked about each time.

#![warn(clippy::string_slice)]

mod arg;
mod assignments;
mod check;
mod clock;
mod command;
mod compound;
mod effects;
mod expand;
mod explain;
mod files;
mod flow;
mod fuzz;
mod handed;
mod heredocs;
mod made;
mod named_programs;
mod names;
mod other_shells;
mod outline;
mod places;
mod posix;
mod programs;
mod redirects;
mod state;
mod trees;
mod typed;
mod variables;
mod words;
mod zsh;

pub use explain::{Explained, explain};
#[doc(hidden)]
pub use fuzz::fuzz_one;
pub use other_shells::{as_read_by, is_zsh, with_comments_as_words};
pub use outline::{Outline, OutlinePart, outline};
#[doc(hidden)]
pub use programs::listed::{TableListing, listings};
pub use programs::{Note, UncoveredPattern, is_known_command, signal_named, uncovered, withheld};
pub(crate) use state::logical;
pub use typed::with_typed_commands;

use std::borrow::Cow;
use std::collections::HashSet;
use std::ops::{ControlFlow, Range};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use toold_engine::effects::CommandEffects;
use toold_engine::need::{CheckedOutCommits, CommandForm, InnerCommand, JudgedCommand, Need, ShownFiles, Word};
use toold_proto::cut;
use toold_proto::shell_word::quoted_unless;
use toold_proto::tool::Category;
use tree_sitter::{Node, ParseOptions, Parser, Tree};

use crate::environment::Environment;
use crate::exclude::Exclusions;
use crate::shell_grammar::clock::JudgingClock;
use crate::shell_grammar::files::NamedFile;
use crate::shell_grammar::heredocs::LiftedText;
use crate::shell_grammar::made::MadeNames;
use crate::shell_grammar::programs::CommandOutput;
use crate::shell_grammar::redirects::Redirected;
use crate::shell_grammar::state::ShellState;

/// Longer lines are not analyzed.
const MAX_BYTES: usize = 256 * 1024;
/// How deep statements, substitutions and wrappers may nest.
const MAX_DEPTH: usize = 60;
/// No person can judge more needs than this.
const MAX_NEEDS: usize = 200;
/// Limit of the files that are judged one by one, as parts of folders.
const MAX_FILES: usize = 100_000;
/// Limit of analyzed statements; those in loops count once per analyzed iteration.
const MAX_STATEMENTS: usize = 4_000;
/// How many progress reports the parser may make before it is stopped: ambiguous input must not take seconds.
const MAX_STEPS: usize = 20_000;

/// The folder and environment of a line, and the files that the analysis may look at.
pub struct Surroundings<'a> {
    /// Absolute, with links resolved.
    pub cwd: &'a Path,
    /// The folders of the session, as `cwd`. What a repository below one of them says is not the person's word, unless it is
    /// the folder's own.
    pub folders: &'a [Cow<'a, Path>],
    /// The variables that the command gets.
    pub environment: &'a Environment,
    /// Whether the caller may learn about links and names in a folder: see [`resolve_for`].
    ///
    /// [`resolve_for`]: crate::files::resolve_for
    pub may_read: &'a mut dyn FnMut(&Path) -> bool,
}

/// Whether a file with settings of Git makes no command of Git run a program, as far as the settings are known.
pub(crate) fn git_settings_run_nothing(text: &str) -> bool {
    programs::repository::settings_run_nothing(text)
}

/// The permissions that running `line` by `bash -c` needs, in the order of the line.
///
/// Reads the file system to resolve the files that the line names, to find the matches of wildcards, and to check
/// whether Git would run anything that a repository names. Empty only for a blank line. Never panics, and does not take
/// long: see [`JudgingClock`].
pub fn needs(line: &str, surroundings: &mut Surroundings) -> Vec<Need> {
    read(line, surroundings).into_iter().flat_map(|(_, needs)| needs).fold(Vec::new(), |mut all, need| {
        if !all.contains(&need) {
            all.push(need);
        }
        all
    })
}

/// Each action of the line, with the permissions it needs.
fn read(line: &str, surroundings: &mut Surroundings) -> Vec<(LineItem, Vec<Need>)> {
    // The first line of the process reads them, which is no work of that line.
    programs::load_tables();
    read_within(line, surroundings, JudgingClock::start())
}

fn read_within(line: &str, surroundings: &mut Surroundings, clock: JudgingClock) -> Vec<(LineItem, Vec<Need>)> {
    let read = catch_unwind(AssertUnwindSafe(|| read_actions(line, surroundings, clock)));
    let unjudged = match read {
        Ok(Ok(judged)) => return judged,
        Ok(Err(unjudged)) => unjudged,
        Err(_) => Unjudged::Failed,
    };
    let whole = SimpleCommand::not_parsed(line.trim(), unjudged.why());
    let is_unjudged = unjudged != Unjudged::NotParsed;
    let need = whole.need(line).with_command(|command| command.is_unjudged = is_unjudged);
    let need = Need { always_asked: is_unjudged, ..need };
    vec![(LineItem::Command(whole), vec![need])]
}

/// Why a line was not taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unjudged {
    NotParsed,
    TooLarge,
    TooSlow,
    Failed,
}

impl Unjudged {
    fn why(self) -> &'static str {
        match self {
            Self::NotParsed => {
                "toold cannot read this line as bash: check its quotes and brackets, and that it has no invisible characters \
                 outside of quotes"
            }
            Self::TooLarge => "the line does too much for toold to judge: split it",
            Self::TooSlow => "judging the line takes too long: split it, or name fewer files",
            Self::Failed => "judging the line failed inside toold, which is a bug: please report it",
        }
    }
}

fn read_actions(
    line: &str,
    surroundings: &mut Surroundings,
    clock: JudgingClock,
) -> Result<Vec<(LineItem, Vec<Need>)>, Unjudged> {
    if line.len() > MAX_BYTES {
        return Err(Unjudged::TooLarge);
    }
    let lifted = heredocs::lift(line).map_err(|Unreadable| Unjudged::NotParsed)?;
    let state = ShellState::new(surroundings.cwd);
    let mut walk = ShellWalk::new(&lifted, surroundings, state, clock);
    walk.input = CommandOutput::OfLine;
    let outcome = walk.script();
    let is_too_large = walk.found.len() > MAX_NEEDS || walk.statements > MAX_STATEMENTS;
    let mut found = walk.found;
    let unordered = walk.unordered;
    match outcome {
        Ok(()) => {}
        Err(Unreadable) if clock.is_over() => return Err(Unjudged::TooSlow),
        Err(Unreadable) if is_too_large => return Err(Unjudged::TooLarge),
        Err(Unreadable) => return Err(Unjudged::NotParsed),
    }
    doubt_wildcards(&mut found);
    handed::settle_exports(&mut found, surroundings.folders, surroundings.cwd);
    made::doubt_made_names(&mut found, &unordered, surroundings.may_read, clock);
    made::note_overwritten(&mut found, &unordered, surroundings.folders);
    if clock.is_over() {
        return Err(Unjudged::TooSlow);
    }
    let mut exclusions = Exclusions::default();
    let mut judged = Vec::new();
    let (mut needs_so_far, mut files_so_far) = (0, 0);
    for found in found {
        let needs = found.needs(line, surroundings, &mut exclusions, clock);
        needs_so_far += needs.len();
        let files = needs.iter().filter(|need| need.category() != Category::Shell);
        files_so_far += files.map(|need| need.covers().len()).sum::<usize>();
        if clock.is_over() {
            return Err(Unjudged::TooSlow);
        }
        if needs_so_far > MAX_NEEDS || files_so_far > MAX_FILES {
            return Err(Unjudged::TooLarge);
        }
        judged.push((found, needs));
    }
    say_what_is_outside(&mut judged, surroundings.folders);
    Ok(judged)
}

/// Approving exactly this command also approves the files that it writes elsewhere, so the ask names them.
fn say_what_is_outside(judged: &mut [(LineItem, Vec<Need>)], folders: &[Cow<Path>]) {
    const SHOWN: usize = 3;
    let is_outside = |need: &&Need| {
        need.category() == Category::FileWrite
            && !folders.iter().any(|folder| Path::new(&need.target).starts_with(folder))
    };
    let written = judged.iter().flat_map(|(_, needs)| needs).filter(is_outside);
    let named = written.filter_map(|need| Some((need.command_naming_it()?.to_owned(), need.target.clone())));
    let named: Vec<(String, String)> = named.collect();
    for need in judged.iter_mut().flat_map(|(_, needs)| needs).filter(|need| need.command().is_some()) {
        let mut files: Vec<&str> =
            named.iter().filter(|(command, _)| *command == need.target).map(|(_, file)| file.as_str()).collect();
        let more = files.len().saturating_sub(SHOWN);
        files.truncate(SHOWN);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        if !files.is_empty() {
            need.reason = Some(format!("writes outside of the session's folders: {}{more}", files.join(", ")));
        }
    }
}

/// Wildcards were looked up before the line runs. If another command of the line can create a file, the wildcard might
/// also match a new name that is an option.
fn doubt_wildcards(found: &mut [LineItem]) {
    let changes: Vec<bool> = found
        .iter()
        .map(|found| match found {
            LineItem::Command(command) => !command.reads_only,
            LineItem::Redirect(_) | LineItem::File(_) => false,
        })
        .collect();
    let total = changes.iter().filter(|changes| **changes).count();
    for (found, changes) in found.iter_mut().zip(&changes) {
        if let LineItem::Command(command) = found
            && command.looked_up
            && total > usize::from(*changes)
        {
            command.doubt("another command of the line may create files that its wildcard matches");
        }
    }
}

/// One action of a line.
#[expect(clippy::large_enum_variant, reason = "a line has few of them, and most are commands")]
enum LineItem {
    Command(SimpleCommand),
    Redirect(Redirected),
    File(NamedFile),
}

impl LineItem {
    fn needs(
        &self,
        line: &str,
        surroundings: &mut Surroundings,
        exclusions: &mut Exclusions,
        clock: JudgingClock,
    ) -> Vec<Need> {
        match self {
            Self::Command(command) => vec![command.need(line)],
            Self::Redirect(redirected) => redirected.needs(line, surroundings.may_read, exclusions),
            Self::File(named) => named.needs(line, surroundings.may_read, exclusions, clock),
        }
    }
}

/// An analyzed simple command.
#[derive(Clone, Debug)]
struct SimpleCommand {
    target: String,
    /// `None` if even its words do not show what it does.
    words: Option<Vec<Word>>,
    /// Each word as it was written.
    raw: Vec<String>,
    unsure: Option<String>,
    may_run_any: bool,
    runs_written: bool,
    carries_code: bool,
    /// See [`JudgedCommand::never_free`].
    never_free: bool,
    /// See [`JudgedCommand::runs_input`].
    runs_input: bool,
    /// See [`JudgedCommand::hides_file`].
    hides_file: bool,
    /// See [`JudgedCommand::reads_anywhere`].
    reads_anywhere: Vec<String>,
    /// See [`JudgedCommand::shows`] and [`JudgedCommand::may_run`].
    shows: Vec<Arc<ShownFiles>>,
    may_run: Vec<InnerCommand>,
    reads_only: bool,
    /// The matches of its wildcards were looked up, and none of them is an option.
    looked_up: bool,
    /// See [`JudgedCommand::script`].
    script: Option<String>,
    makes: MadeNames,
    /// See [`JudgedCommand::form`], [`JudgedCommand::short`] and [`JudgedCommand::elsewhere`].
    form: Option<CommandForm>,
    short: Option<Vec<Word>>,
    elsewhere: Vec<InnerCommand>,
    /// See [`JudgedCommand::head`] and [`JudgedCommand::operands`].
    head: Option<usize>,
    operands: Vec<usize>,
    /// See [`JudgedCommand::covers`].
    discards: Vec<String>,
    /// See [`JudgedCommand::writes_in`].
    writes_in: Vec<String>,
    /// See [`JudgedCommand::changes`].
    changes: Vec<Arc<ShownFiles>>,
    /// See [`JudgedCommand::checks_out`].
    checks_out: Option<CheckedOutCommits>,
    effects: CommandEffects,
    /// See [`JudgedCommand::folder`].
    folder: Option<PathBuf>,
    /// The entry of the tables that describes it.
    known: Option<&'static programs::ProgramTable>,
    notes: Vec<Note>,
}

impl SimpleCommand {
    /// A need that no pattern but `**` matches.
    fn not_understood(target: &str, why: &str) -> Self {
        // Without expansions, no name can be hidden.
        let may_run_any = target.contains(['$', '`', '*', '?', '[', '{', '\\']);
        Self {
            target: target.to_owned(),
            words: None,
            raw: Vec::new(),
            unsure: Some(why.to_owned()),
            may_run_any,
            runs_written: false,
            carries_code: false,
            never_free: false,
            runs_input: false,
            hides_file: false,
            reads_anywhere: Vec::new(),
            shows: Vec::new(),
            may_run: Vec::new(),
            reads_only: false,
            looked_up: false,
            script: None,
            makes: MadeNames::default(),
            form: None,
            short: None,
            elsewhere: Vec::new(),
            head: None,
            operands: Vec::new(),
            discards: Vec::new(),
            writes_in: Vec::new(),
            changes: Vec::new(),
            checks_out: None,
            effects: CommandEffects::default(),
            folder: None,
            known: None,
            notes: Vec::new(),
        }
    }

    /// The same for a text that was not taken apart. It may run any program, and each of its words may be a file that it
    /// opens.
    fn not_parsed(text: &str, why: &str) -> Self {
        Self { may_run_any: true, hides_file: true, ..Self::not_understood(text, why) }
    }

    /// `NAME=value`, which is judged as a command of one word.
    fn variable(name: &str, target: &str, is_harmless: bool) -> Self {
        let meaning = if is_harmless { "variable that changes nothing else" } else { "variable" };
        Self {
            target: target.to_owned(),
            words: None,
            raw: vec![target.to_owned()],
            unsure: None,
            may_run_any: variables::loads_code(name) || variables::names_settings(name, target),
            runs_written: false,
            carries_code: false,
            never_free: false,
            runs_input: false,
            hides_file: false,
            reads_anywhere: Vec::new(),
            shows: Vec::new(),
            may_run: Vec::new(),
            reads_only: is_harmless,
            looked_up: false,
            // Programs may run its value, as Git runs that of GIT_EDITOR.
            script: (!is_harmless).then(|| variables::script_of(name, target)),
            makes: MadeNames::default(),
            form: None,
            short: None,
            elsewhere: Vec::new(),
            head: None,
            operands: Vec::new(),
            discards: Vec::new(),
            writes_in: Vec::new(),
            changes: Vec::new(),
            checks_out: None,
            // Where nothing but the command's own effects is possible, it adds none.
            effects: if variables::carries_code(name) { CommandEffects::default() } else { CommandEffects::reading() },
            folder: None,
            known: None,
            notes: vec![Note { text: target.to_owned(), meaning: meaning.to_owned() }],
        }
    }

    /// `((expression))` of numbers, which tells whether the result is 0.
    fn arithmetic(target: &str) -> Self {
        let word = Word { text: target.to_owned(), literal: true };
        let note = Note { text: target.to_owned(), meaning: "arithmetic with numbers".to_owned() };
        Self { words: Some(vec![word]), notes: vec![note], ..Self::variable("", target, true) }
    }

    fn doubt(&mut self, why: &str) {
        self.unsure.get_or_insert_with(|| why.to_owned());
        self.reads_only = false;
    }

    /// The same command with other words: words that differ become unknown.
    fn join(&mut self, other: Self) {
        if let (Some(words), Some(others)) = (&mut self.words, other.words) {
            for (at, (word, other)) in words.iter_mut().zip(others).enumerate() {
                if *word != other {
                    *word = Word { text: self.raw[at].clone(), literal: false };
                }
            }
            self.target = shown(words);
            self.short = self.short.take().filter(|short| other.short.as_ref() == Some(short));
        }
        self.form = match (self.form.take(), other.form) {
            (Some(one), Some(other)) => joined_form(one, &other),
            _ => None,
        };
        self.elsewhere.extend(other.elsewhere);
        self.discards.extend(other.discards);
        self.writes_in.extend(other.writes_in);
        self.changes.extend(other.changes);
        self.effects.join(other.effects);
        self.folder = self.folder.take().filter(|folder| other.folder.as_ref() == Some(folder));
        self.makes.join(other.makes);
        self.unsure = self.unsure.take().or(other.unsure);
        self.script = self.script.take().or(other.script);
        self.may_run_any |= other.may_run_any;
        self.runs_written |= other.runs_written;
        self.carries_code |= other.carries_code;
        self.never_free |= other.never_free;
        // For commands in several repositories, the commits are not looked up.
        self.never_free |= self.checks_out != other.checks_out;
        self.runs_input |= other.runs_input;
        self.hides_file |= other.hides_file;
        self.reads_anywhere.extend(other.reads_anywhere);
        self.shows.extend(other.shows);
        self.may_run.extend(other.may_run);
        self.reads_only &= other.reads_only;
        self.looked_up |= other.looked_up;
    }

    fn need(&self, line: &str) -> Need {
        let command = JudgedCommand {
            words: self.words.clone(),
            unsure: self.unsure.clone(),
            may_run_any: self.may_run_any,
            runs_written: self.runs_written,
            carries_code: self.carries_code,
            never_free: self.never_free,
            runs_input: self.runs_input,
            hides_file: self.hides_file,
            reads_anywhere: self.reads_anywhere.clone(),
            shows: self.shows.clone(),
            may_run: self.may_run.clone(),
            reads_only: self.reads_only,
            script: self.script.clone(),
            form: self.form.clone(),
            short: self.short.clone(),
            elsewhere: self.elsewhere.clone(),
            head: self.head,
            operands: self.operands.clone(),
            covers: self.discards.clone(),
            writes_in: self.writes_in.clone(),
            changes: self.changes.clone(),
            checks_out: self.checks_out.clone(),
            effects: self.effects.clone(),
            folder: self.folder.clone(),
            ..JudgedCommand::default()
        };
        Need { line: Some(line.to_owned()), ..Need::of_command(self.target.clone(), command) }
    }
}

/// The common form of two commands with the same options: words that differ become unknown.
fn joined_form(mut one: CommandForm, other: &CommandForm) -> Option<CommandForm> {
    let names = |form: &CommandForm| form.options.iter().map(|option| option.names.clone()).collect::<Vec<_>>();
    let values = |form: &CommandForm| form.options.iter().map(|option| option.values.len()).collect::<Vec<_>>();
    if one.plain.len() != other.plain.len() || names(&one) != names(other) || values(&one) != values(other) {
        return None;
    }
    let own = one.plain.iter_mut().chain(one.options.iter_mut().flat_map(|option| &mut option.values));
    let others = other.plain.iter().chain(other.options.iter().flat_map(|option| &option.values));
    own.zip(others).filter(|(word, other)| word != other).for_each(|(word, _)| word.literal = false);
    Some(one)
}

/// The line cannot be parsed reliably.
struct Unreadable;

type Walked<T = ()> = Result<T, Unreadable>;

struct ShellWalk<'s, 'w, 'p> {
    lifted: &'s LiftedText<'s>,
    /// The text that the grammar has parsed.
    source: &'s str,
    surroundings: &'w mut Surroundings<'p>,
    clock: JudgingClock,
    found: Vec<LineItem>,
    /// See [`made::doubt_made_names`].
    unordered: Vec<Range<usize>>,
    /// Only the words of the commands count: see [`ShellWalk::elsewhere`].
    is_elsewhere: bool,
    /// The words of the current command do not show everything that it does.
    doubt: bool,
    /// A redirect of the current command opens a file whose name is not known.
    hides_file: bool,
    /// The nodes of the tree that were judged, of the kinds that [`check::all_is_judged`] asks about.
    judged: HashSet<usize>,
    depth: usize,
    statements: usize,
    /// The nesting depth of substitutions.
    substitutions: usize,
    state: ShellState,
    /// The state after a failure of the last statement, if it differs.
    failed: Option<ShellState>,
    /// The states at each `break` or `continue` of the current loop.
    jumped: Option<ShellState>,
    /// The standard input of the current command.
    input: CommandOutput,
    /// The output of the last statement.
    output: CommandOutput,
}

fn parse(source: &str) -> Option<Tree> {
    let mut parser = Parser::new();
    parser.set_language(&tree_sitter_bash::LANGUAGE.into()).ok()?;
    let bytes = source.as_bytes();
    let mut steps = 0;
    let mut count = |_: &tree_sitter::ParseState| {
        steps += 1;
        if steps > MAX_STEPS { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let options = ParseOptions::new().progress_callback(&mut count);
    parser.parse_with_options(&mut |at, _| bytes.get(at..).unwrap_or_default(), None, Some(options))
}

impl<'s, 'w, 'p> ShellWalk<'s, 'w, 'p> {
    fn new(
        lifted: &'s LiftedText<'s>,
        surroundings: &'w mut Surroundings<'p>,
        state: ShellState,
        clock: JudgingClock,
    ) -> Self {
        Self {
            lifted,
            source: &lifted.text,
            surroundings,
            clock,
            found: Vec::new(),
            unordered: Vec::new(),
            is_elsewhere: false,
            doubt: false,
            hides_file: false,
            judged: HashSet::new(),
            depth: 0,
            statements: 0,
            substitutions: 0,
            state,
            failed: None,
            jumped: None,
            input: CommandOutput::Unknown,
            output: CommandOutput::Unknown,
        }
    }

    fn script(&mut self) -> Walked {
        let tree = self.parsed()?;
        self.statement(tree.root_node())?;
        check::all_is_judged(tree.root_node(), self.source, &self.judged)
    }

    /// Only the operands of the text, which is one command with this number of them.
    fn operands(&mut self, count: usize) -> Walked {
        if self.depth > MAX_DEPTH {
            return Err(Unreadable);
        }
        let tree = self.parsed()?;
        let [command] = named(tree.root_node()).try_into().map_err(|_: Vec<Node>| Unreadable)?;
        let operands = children_of_field(command, "argument");
        if command.kind() != "command" || operands.len() != count || command.named_child_count() != count + 1 {
            return Err(Unreadable);
        }
        operands.into_iter().try_for_each(|operand| self.tokens(operand).map(drop))?;
        self.judged.insert(command.id());
        check::all_is_judged(command, self.source, &self.judged)
    }

    fn parsed(&self) -> Walked<Tree> {
        if self.source.len() > MAX_BYTES {
            return Err(Unreadable);
        }
        let is_translated =
            self.surroundings.environment.get("TEXTDOMAIN").is_some() || self.source.contains("TEXTDOMAIN");
        if self.lifted.has_translations() && (is_translated || self.state.is_lost() || self.state.is_set("TEXTDOMAIN"))
        {
            return Err(Unreadable);
        }
        let tree = parse(self.source).ok_or(Unreadable)?;
        let root = tree.root_node();
        let is_certain = check::is_whole(root)
            && check::gaps_are_blank(root, self.source)
            && check::odd_characters_are_quoted(root, self.source)
            && self.lifted.agrees_with(root);
        if is_certain { Ok(tree) } else { Err(Unreadable) }
    }

    /// As it was written.
    fn text(&self, node: Node) -> &'s str {
        cut::between(self.lifted.written, node.byte_range())
    }

    fn home(&self) -> Option<String> {
        match self.state.variable("HOME") {
            None => self.surroundings.environment.get("HOME").and_then(|home| home.to_str()).map(str::to_owned),
            Some(_) => None,
        }
    }

    /// A need that no pattern but `**` matches.
    fn unsure(&mut self, node: Node, why: &str) -> Walked {
        let mut command = SimpleCommand::not_understood(&self.lifted.shown(node.byte_range()), why);
        // The command that it runs is analyzed as well.
        command.may_run_any = false;
        command.hides_file = std::mem::take(&mut self.hides_file);
        self.found.push(LineItem::Command(command));
        Ok(())
    }

    /// Analyzes with separate doubts, and returns whether there were any.
    fn doubting(&mut self, read: impl FnOnce(&mut Self) -> Walked) -> Walked<bool> {
        let outer = std::mem::replace(&mut self.doubt, false);
        read(self)?;
        Ok(std::mem::replace(&mut self.doubt, outer))
    }
}

/// A command as one would type it.
fn shown(words: &[Word]) -> String {
    let shown: Vec<String> =
        words.iter().map(|word| if word.literal { quoted(&word.text) } else { word.text.clone() }).collect();
    shown.join(" ")
}

fn quoted(text: &str) -> String {
    match text {
        "{}" | "[" | "[[" | "]" | "]]" | "!" | "{" | "}" => text.to_owned(),
        text => quoted_unless(text, |c| c.is_alphanumeric() || "_@%+=:,./-^".contains(c)),
    }
}

fn all<'t>(node: Node<'t>) -> Vec<Node<'t>> {
    node.children(&mut node.walk()).collect()
}

fn named<'t>(node: Node<'t>) -> Vec<Node<'t>> {
    node.named_children(&mut node.walk()).collect()
}

fn children_of_field<'t>(node: Node<'t>, field: &str) -> Vec<Node<'t>> {
    with_fields(node)
        .into_iter()
        .filter(|(child, name)| *name == Some(field) && child.is_named())
        .map(|(child, _)| child)
        .collect()
}

fn with_fields<'t>(node: Node<'t>) -> Vec<(Node<'t>, Option<&'t str>)> {
    let mut cursor = node.walk();
    let mut found = Vec::new();
    if cursor.goto_first_child() {
        loop {
            found.push((cursor.node(), cursor.field_name()));
            if !cursor.goto_next_sibling() {
                break;
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use toold_engine::need::NeedKind;

    use super::*;

    fn judged(line: &str, clock: JudgingClock, may_read: &mut dyn FnMut(&Path) -> bool) -> Vec<Need> {
        let environment = Environment::default();
        let mut surroundings =
            Surroundings { folders: &[], cwd: Path::new("/nowhere"), environment: &environment, may_read };
        read_within(line, &mut surroundings, clock).into_iter().flat_map(|(_, needs)| needs).collect()
    }

    fn is_asked_each_time(needs: &[Need]) -> bool {
        matches!(needs, [Need { always_asked: true, kind: NeedKind::Command(command), .. }]
            if command.is_unjudged && command.words.is_none() && command.unsure.is_some())
    }

    #[test]
    fn a_panic_while_a_line_is_judged_asks() {
        let folder = tempfile::tempdir().unwrap();
        let line = format!("cat {}/*; git push", folder.path().display());
        let needs = judged(&line, JudgingClock::start(), &mut |_| panic!("injected"));
        assert!(is_asked_each_time(&needs), "{needs:?}");
        assert_eq!(needs[0].target, line);
    }

    #[test]
    fn what_takes_too_long_or_is_too_large_asks() {
        for line in ["ls", "git status && ls", "cat a b c"] {
            let needs = judged(line, JudgingClock::over(), &mut |_| true);
            assert!(is_asked_each_time(&needs), "{line}: {needs:?}");
        }
        for line in [format!("echo {}", "x".repeat(MAX_BYTES)), "ls;".repeat(MAX_STATEMENTS + 1)] {
            let needs = judged(&line, JudgingClock::start(), &mut |_| true);
            assert!(is_asked_each_time(&needs), "{} bytes: {:?}", line.len(), needs.first().map(Need::unsure));
        }
        let needs = judged("ls )", JudgingClock::start(), &mut |_| true);
        assert!(
            needs[0].command().is_some_and(|command| !command.is_unjudged && command.unsure.is_some()),
            "{needs:?}"
        );
    }
}
