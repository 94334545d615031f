//! Something that a call will touch: the unit that the policy decides about.

use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use toold_proto::cut::cut_chars;
use toold_proto::tool::Category;

use crate::effects::{CommandEffects, EffectSet};

/// How many characters of a target, or of a pattern for it, stand in a message.
pub(crate) const LONGEST_NAMED: usize = 500;

/// One thing that a call needs permission for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Need {
    /// Files: an absolute path with links resolved. Shell: one simple command as written. Network:
    /// `host:port`. Otherwise a name.
    pub target: String,
    pub kind: NeedKind,
    /// For the person who is asked.
    pub reason: Option<String>,
    /// The model's own words about it, which nobody has checked.
    pub description: Option<String>,
    /// The whole command line that needs it, and that `target` may be a part of.
    pub line: Option<String>,
    /// Set where the target was resolved, if no rule and no mode may allow it: the reason, such as
    /// the line of an ignore file, as it stands behind "by".
    pub forbidden: Option<String>,
    /// For commands, and for files behind redirects: the effects that are possible where the line would run if a level frees
    /// it, which is confined. Empty where nothing is confined: then no level frees it.
    pub confined: EffectSet,
    /// A person is asked each time: no rule, no grant, no mode and no earlier answer allows it. A rule, a refusal or a mode
    /// that denies still does.
    pub always_asked: bool,
}

/// What is known about the target, which depends on its category.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NeedKind {
    FileRead(Box<JudgedFile>),
    FileWrite(Box<JudgedFile>),
    /// The session's folders as a whole. The answer is remembered as a workspace, not as a grant.
    Workspace,
    Command(Box<JudgedCommand>),
    /// `Some` for a command that connects, and whose sandbox has the network by host. Without a rule, a host that the
    /// configuration lists is allowed, and another one is asked about.
    Network(Option<HostListing>),
    Mcp {
        /// The server says that its tool only reads, and a person trusts it with that.
        reads_only: bool,
    },
    /// The same by the name that an agent gives it, in which other characters than letters and digits may be replaced: rules
    /// that deny or ask count for every name that it may be made of.
    AgentMcp,
    Agent,
    Plugin,
}

/// A command as its program understands it.
///
/// The reader of command lines makes it, the policy decides about it, the ask shows it, and the audit log keeps it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct JudgedCommand {
    /// `None` when it could not be parsed for certain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub words: Option<Vec<Word>>,
    /// The words as the program tells them apart, where that is certain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub form: Option<CommandForm>,
    /// The words without options before the subcommand that change nothing about it (`git -P commit`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub short: Option<Vec<Word>>,
    /// What it runs in a container or on another machine. Its own permission covers them, but rules that deny or ask count
    /// there too.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub elsewhere: Vec<InnerCommand>,
    /// How many of the first words identify the command (`git commit` has two), where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub head: Option<usize>,
    /// The places of the words that name files.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub operands: Vec<usize>,
    /// What it does, as far as that is known.
    pub effects: CommandEffects,
    /// Why no pattern with a wildcard covers the command. A person sees all of it, and a rule for exactly these words
    /// covers it, if the shell changes none of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unsure: Option<String>,
    /// A text that may hold commands, for rules that deny or ask: a script that the command runs, or its own words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub script: Option<String>,
    /// It runs a program that it reads from its standard input, as `python3 -` does. Its words do not show that program, so
    /// that a rule for exactly these words does not cover it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub runs_input: bool,
    /// The program that it runs, directly or indirectly, is unknown, so every rule that denies commands applies.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub may_run_any: bool,
    /// It runs what is in a file that an earlier command of the line may write, so that rules which deny or ask may be about it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub runs_written: bool,
    /// An option runs a program, loads code, or reads settings that may name some: no level frees it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub carries_code: bool,
    /// No level frees it: it changes settings, which no floor allows, or it is not known which files it overwrites.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub never_free: bool,
    /// It signals processes that the session's own commands have started, and no others. The daemon sends the signal itself, and
    /// finds out once more then whose they are.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub signals_own: bool,
    /// Judging it failed, took too long or would need too much: `unsure` says what. It is asked about as if a rule said so,
    /// unless a rule denies it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_unjudged: bool,
    /// It reads or writes a file whose name is not known, and which may be one that no tool touches: `**` and modes do not
    /// allow it. False in every sandbox, which keeps such files from the command, or as they are.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub hides_file: bool,
    /// It changes nothing outside of its own process; the files that it names are needs of their own.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub reads_only: bool,
    /// It is sandboxed so that it can change nothing, and nobody has to be asked.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub harmless: bool,
    /// The folder that it runs in, as `cd` computes it, where that is certain.
    #[serde(skip)]
    pub folder: Option<PathBuf>,
    /// Files whose changes it may throw away. If writing one of them is denied, a person is asked about the command.
    #[serde(skip)]
    pub covers: Vec<String>,
    /// Folders in which it may write files whose names its words do not show. If writing a file there may be denied, a person is
    /// asked about the command.
    #[serde(skip)]
    pub writes_in: Vec<String>,
    /// Files that it may change although its words do not name them, as a formatter does those of a folder. If writing one of them
    /// is denied, a person is asked about the command.
    #[serde(skip)]
    pub changes: Vec<Arc<ShownFiles>>,
    /// The last parts of the paths of files that it reads in folders which are not known. If reading such a file may be denied, a
    /// person is asked about the command.
    #[serde(skip)]
    pub reads_anywhere: Vec<String>,
    /// Files whose contents it may show although its words do not name them. If reading one of them may be denied or asked about,
    /// a person is asked about the command.
    #[serde(skip)]
    pub shows: Vec<Arc<ShownFiles>>,
    /// Commands that its words may stand for, of a program about which nothing is known. If one of them may be denied or asked
    /// about, a person is asked about the command.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub may_run: Vec<InnerCommand>,
    /// Commits whose files Git puts into its working tree.
    #[serde(skip)]
    pub checks_out: Option<CheckedOutCommits>,
}

/// Files whose contents a command may show, or change, without naming them, such as those that a repository tracks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShownFiles {
    /// The folder around all of them, as an absolute path with links resolved.
    pub folder: PathBuf,
    /// Their names from the folder on; `None` if it may be any file there.
    pub names: Option<Vec<String>>,
    /// The text that the command takes before the name of a file, or of a folder, that it is to leave out: `:(exclude)`. `None`
    /// if it leaves out none.
    pub leaving_out: Option<&'static str>,
}

/// Commits that a command of Git checks out, merges or applies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckedOutCommits {
    /// The repository's own folder.
    pub git: PathBuf,
    /// The folder of its files.
    pub top: PathBuf,
    /// As Git's words name them. Words that name no commit do no harm.
    pub revisions: Vec<String>,
    pub how: CheckoutKind,
}

/// Which commits besides those that are named reach the working tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckoutKind {
    /// None.
    These,
    /// Those between them and the current one, as in a rebase.
    Between,
    /// The same, and those of a bisection.
    Bisected,
    /// Not the commits themselves, but the changes that they made: `git cherry-pick`.
    Changes,
}

/// A file that is read or written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JudgedFile {
    /// A unified diff of what would be written.
    pub diff: Option<String>,
    /// The target of the command that names the file as an operand. A person who approves exactly that command has seen the
    /// file.
    pub of_command: Option<String>,
    /// Paths below the target that are read or written with it. A denial of one of them denies the need.
    pub covers: Vec<String>,
    /// Those of the target and of `covers` that are no secrets here in spite of their names: they were looked at and hold
    /// public certificates alone, or the program takes them as its own input and does not show them.
    pub no_secrets: Vec<String>,
    /// Those of the target and of `covers` that hold a password or a token, as their contents show. Reading them is never
    /// allowed but by a rule or a grant for exactly this file; where a person is asked, the person decides.
    pub holds_secrets: Vec<String>,
    /// Files that are there, and that may be overwritten with it. Rules decide nothing about them: no level frees it unless
    /// undo keeps all of them.
    pub overwrites: Vec<String>,
    /// A command reads it, and the system lets all its users read it (below `/etc` and `/usr`).
    pub is_public: bool,
    /// Files among the target and `covers` from which Git takes settings or programs, in a repository that is no folder `.git`:
    /// nothing about their names shows that.
    pub of_repository: Vec<String>,
    /// The command that names it is sandboxed so that it can change nothing.
    pub harmless: bool,
}

impl Need {
    pub fn new(category: Category, target: impl Into<String>) -> Self {
        let kind = match category {
            Category::FileRead => NeedKind::FileRead(Box::default()),
            Category::FileWrite => NeedKind::FileWrite(Box::default()),
            Category::Shell => NeedKind::Command(Box::default()),
            Category::Network => NeedKind::Network(None),
            Category::Mcp => NeedKind::Mcp { reads_only: false },
            Category::Agent => NeedKind::Agent,
            Category::Plugin => NeedKind::Plugin,
        };
        Self::of_kind(kind, target)
    }

    pub fn of_kind(kind: NeedKind, target: impl Into<String>) -> Self {
        Self {
            target: target.into(),
            kind,
            reason: None,
            description: None,
            line: None,
            forbidden: None,
            confined: EffectSet::EMPTY,
            always_asked: false,
        }
    }

    pub fn of_command(target: impl Into<String>, command: JudgedCommand) -> Self {
        Self::of_kind(NeedKind::Command(Box::new(command)), target)
    }

    pub fn because(mut self, reason: impl Into<String>) -> Self {
        self.reason = Some(reason.into());
        self
    }

    /// The rule that decided it, behind the reason for the need.
    pub(crate) fn explained(&self, rule: &str) -> String {
        self.reason.as_ref().map_or_else(|| rule.to_owned(), |reason| format!("{reason}; {rule}"))
    }

    pub(crate) fn without_reason(&self) -> Self {
        Self { reason: None, description: None, ..self.clone() }
    }

    pub fn category(&self) -> Category {
        match self.kind {
            NeedKind::FileRead(_) | NeedKind::Workspace => Category::FileRead,
            NeedKind::FileWrite(_) => Category::FileWrite,
            NeedKind::Command(_) => Category::Shell,
            NeedKind::Network(_) => Category::Network,
            NeedKind::Mcp { .. } | NeedKind::AgentMcp => Category::Mcp,
            NeedKind::Agent => Category::Agent,
            NeedKind::Plugin => Category::Plugin,
        }
    }

    pub fn command(&self) -> Option<&JudgedCommand> {
        match &self.kind {
            NeedKind::Command(command) => Some(command),
            _ => None,
        }
    }

    pub fn command_mut(&mut self) -> Option<&mut JudgedCommand> {
        match &mut self.kind {
            NeedKind::Command(command) => Some(command),
            _ => None,
        }
    }

    pub fn file(&self) -> Option<&JudgedFile> {
        match &self.kind {
            NeedKind::FileRead(file) | NeedKind::FileWrite(file) => Some(file),
            _ => None,
        }
    }

    pub fn file_mut(&mut self) -> Option<&mut JudgedFile> {
        match &mut self.kind {
            NeedKind::FileRead(file) | NeedKind::FileWrite(file) => Some(file),
            _ => None,
        }
    }

    /// The need with a change of what is known about its command. Nothing changes if it is for something else.
    #[must_use]
    pub fn with_command(mut self, change: impl FnOnce(&mut JudgedCommand)) -> Self {
        if let Some(command) = self.command_mut() {
            change(command);
        }
        self
    }

    /// The need with a change of what is known about its file. Nothing changes if it is for something else.
    #[must_use]
    pub fn with_file(mut self, change: impl FnOnce(&mut JudgedFile)) -> Self {
        if let Some(file) = self.file_mut() {
            change(file);
        }
        self
    }

    pub fn is_workspace(&self) -> bool {
        self.kind == NeedKind::Workspace
    }

    /// See [`JudgedCommand::words`].
    pub fn words(&self) -> Option<&[Word]> {
        self.command()?.words.as_deref()
    }

    /// See [`JudgedCommand::effects`].
    pub fn effects(&self) -> EffectSet {
        self.command().map_or(EffectSet::EMPTY, |command| command.effects.all())
    }

    /// The effects of the command and of those that it runs elsewhere or as a runner: what a person sees, and what rules that
    /// deny or ask about effects see.
    pub fn effects_within(&self) -> EffectSet {
        let elsewhere = self.command().into_iter().flat_map(|command| &command.elsewhere);
        elsewhere.flat_map(|inner| inner.effects.all().iter()).fold(self.effects(), EffectSet::with)
    }

    /// The target as messages name it: those who asked for a long command know it, and it would hide why it is refused.
    pub fn named(&self) -> Cow<'_, str> {
        cut_chars(&self.target, LONGEST_NAMED, "…")
    }

    /// See [`JudgedCommand::unsure`].
    pub fn unsure(&self) -> Option<&str> {
        self.command()?.unsure.as_deref()
    }

    /// The program that the command runs, here or elsewhere, is unknown.
    pub fn may_run_any(&self) -> bool {
        self.command().is_some_and(|command| {
            command.may_run_any || command.runs_written || command.elsewhere.iter().any(|inner| inner.may_run_any)
        })
    }

    /// Whether its words ask for help about an operation, as far as words tell: `git push --help`, `npm help publish`.
    pub(crate) fn asks_for_help(&self) -> bool {
        let Some([_, words @ ..]) = self.words().filter(|words| words.iter().all(|word| word.literal)) else {
            return false;
        };
        let mut texts = words.iter().map(|word| word.text.as_str());
        let is_last = matches!(words, [.., before, last] if last.text == "--help" && !before.text.starts_with('-'));
        is_last && !texts.clone().any(|text| text == "--") || texts.find(|text| !text.starts_with('-')) == Some("help")
    }

    /// See [`JudgedCommand::hides_file`].
    pub fn hides_file(&self) -> bool {
        self.command().is_some_and(|command| command.hides_file)
    }

    /// A command that changes nothing outside of its own process, or a tool that only reads.
    pub fn reads_only(&self) -> bool {
        match &self.kind {
            NeedKind::Command(command) => command.reads_only,
            NeedKind::Mcp { reads_only } => *reads_only,
            _ => false,
        }
    }

    /// See [`JudgedFile::diff`].
    pub fn diff(&self) -> Option<&str> {
        self.file()?.diff.as_deref()
    }

    /// See [`JudgedFile::holds_secrets`].
    pub fn holds_secrets(&self) -> &[String] {
        self.file().map_or(&[], |file| &file.holds_secrets)
    }

    /// See [`JudgedFile::of_command`].
    pub fn command_naming_it(&self) -> Option<&str> {
        self.file()?.of_command.as_deref()
    }

    /// See [`JudgedCommand::covers`] and [`JudgedFile::covers`].
    pub fn covers(&self) -> &[String] {
        match &self.kind {
            NeedKind::Command(command) => &command.covers,
            NeedKind::FileRead(file) | NeedKind::FileWrite(file) => &file.covers,
            _ => &[],
        }
    }

    /// See [`JudgedCommand::harmless`] and [`JudgedFile::harmless`].
    pub fn is_harmless(&self) -> bool {
        match &self.kind {
            NeedKind::Command(command) => command.harmless,
            NeedKind::FileRead(file) | NeedKind::FileWrite(file) => file.harmless,
            _ => false,
        }
    }

    /// Nothing changes for what is neither a command nor a file.
    pub fn set_harmless(&mut self, harmless: bool) {
        match &mut self.kind {
            NeedKind::Command(command) => command.harmless = harmless,
            NeedKind::FileRead(file) | NeedKind::FileWrite(file) => file.harmless = harmless,
            _ => {}
        }
    }
}

/// Whether a command may connect to a host without an ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostListing {
    /// `[sandbox] network` lists it.
    Listed,
    /// A lock file names it that was committed when the session began, or that a person has seen since.
    Locked,
    Unlisted,
}

/// A word of a simple command, after the shell's quote removal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Word {
    pub text: String,
    /// False when the shell would expand it: then only a wildcard can match it.
    pub literal: bool,
}

/// The words of a command behind its name, as its program tells them apart.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandForm {
    /// The subcommand and the operands: words that are neither options nor their values.
    pub plain: Vec<Word>,
    pub options: Vec<FormOption>,
    /// So many of the plain words choose the operation, where it is not known which of those behind them are values of options:
    /// then they are all here, and an option has the word behind it as a value, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<usize>,
}

/// An option of a command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FormOption {
    /// All its spellings: `-f` and `--force`.
    pub names: Vec<String>,
    pub values: Vec<Word>,
}

/// A command that another one runs elsewhere.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InnerCommand {
    pub target: String,
    /// `None` when it could not be parsed for certain.
    pub words: Option<Vec<Word>>,
    pub form: Option<CommandForm>,
    pub is_unsure: bool,
    pub may_run_any: bool,
    pub effects: CommandEffects,
}
