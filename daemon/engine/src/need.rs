//! Something that a call will touch: the unit that the policy decides about.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use toold_proto::tool::Category;

use crate::effects::{CommandEffects, EffectSet};

/// One thing that a call needs permission for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Need {
    pub category: Category,
    /// Files: an absolute path with links resolved. Shell: one simple command as written. Network:
    /// `host:port`. Otherwise a name.
    pub target: String,
    /// For the person who is asked.
    pub reason: Option<String>,
    /// The model's own words about it, which nobody has checked.
    pub description: Option<String>,
    /// The whole command line that `target` is a part of.
    pub command: Option<String>,
    /// A unified diff of what would be written.
    pub diff: Option<String>,
    /// Shell only: the command as words; `None` when it could not be parsed for certain.
    pub words: Option<Vec<Word>>,
    /// Set where the target was resolved, if no rule and no mode may allow it: the reason, such as
    /// the line of an ignore file.
    pub forbidden: Option<String>,
    /// Shell only: the command is sandboxed so that it can change nothing, and nobody has to be
    /// asked.
    pub harmless: bool,
    /// Shell only: the words as the program tells them apart, where that is certain.
    pub form: Option<CommandForm>,
    /// Shell only: the words without options before the subcommand that change nothing about it (`git -P commit`).
    pub short: Option<Vec<Word>>,
    /// Shell only: what it runs in a container or on another machine. Its own permission covers them, but rules that deny or
    /// ask count there too.
    pub elsewhere: Vec<InnerCommand>,
    /// Shell only: how many of the first words identify the command (`git commit` has two), where
    /// that is known.
    pub head: Option<usize>,
    /// Shell only: the places of the words that name files.
    pub operands: Vec<usize>,
    /// Shell only: what it does, as far as that is known.
    pub effects: CommandEffects,
    /// Shell only: the folder that it runs in, as `cd` computes it, where that is certain.
    pub folder: Option<PathBuf>,
    /// Shell only: why no pattern with a wildcard covers the command. A person sees all of it, and
    /// a rule for exactly this command covers it.
    pub unsure: Option<String>,
    /// Shell only: the program that it runs, directly or indirectly, is unknown, so every rule that
    /// denies commands applies.
    pub may_run_any: bool,
    /// Shell only: judging it failed, took too long or would need too much: `unsure` says what. It is asked about as if a
    /// rule said so, unless a rule denies it.
    pub is_unjudged: bool,
    /// Shell only: it reads or writes a file whose name is not known, and which may be one that no tool touches: `**` and
    /// modes do not allow it. False in every sandbox, which keeps such files from the command, or as they are.
    pub hides_file: bool,
    /// Shell only: a text that may hold commands, for rules that deny or ask: a script that the command runs, or its own words.
    pub script: Option<String>,
    /// The command changes nothing outside of its own process; the files that it names are needs of their own. Or a server,
    /// which a person trusts with that, says that its tool only reads.
    pub reads_only: bool,
    /// Shell, and files behind redirects: the effects that are possible where the line would run if a level frees it, which is
    /// confined. Empty where nothing is confined: then no level frees it.
    pub confined: EffectSet,
    /// Files only: the target of the command that names the file as an operand. A person who
    /// approves exactly that command has seen the file.
    pub of_command: Option<String>,
    /// Files: paths below the target that are read or written with it. A denial of one of them denies the need. Shell: files
    /// whose changes the command may throw away. If writing one of them is denied, a person is asked about the command.
    pub covers: Vec<String>,
    /// Files only: those of the target and of `covers` that are no secrets here in spite of their names: they were looked at
    /// and hold public certificates alone, or the program takes them as its own input and does not show them.
    pub no_secrets: Vec<String>,
    /// Files only: those of the target and of `covers` that hold a password or a token, as their contents show. Reading them
    /// is never allowed but by a rule or a grant for exactly this file; where a person is asked, the person decides.
    pub holds_secrets: Vec<String>,
    /// Files only: a command reads it, and the system lets all its users read it (below `/etc` and `/usr`).
    pub is_public: bool,
    /// Network only: a command connects whose sandbox has the network by host. Without a rule, a host that the
    /// configuration lists is allowed, and another one is asked about.
    pub by_host: Option<HostListing>,
    /// Asks for the session's folders as a whole: the answer is remembered as a workspace, not as a grant.
    pub workspace: bool,
    /// A person is asked each time: no rule, no grant, no mode and no earlier answer allows it. A rule, a refusal or a mode
    /// that denies still does.
    pub always_asked: bool,
}

impl Need {
    pub fn new(category: Category, target: impl Into<String>) -> Self {
        Self {
            category,
            target: target.into(),
            reason: None,
            description: None,
            command: None,
            diff: None,
            words: None,
            forbidden: None,
            harmless: false,
            form: None,
            short: None,
            elsewhere: Vec::new(),
            head: None,
            operands: Vec::new(),
            effects: CommandEffects::default(),
            folder: None,
            unsure: None,
            may_run_any: false,
            is_unjudged: false,
            hides_file: false,
            script: None,
            reads_only: false,
            confined: EffectSet::EMPTY,
            of_command: None,
            covers: Vec::new(),
            no_secrets: Vec::new(),
            holds_secrets: Vec::new(),
            is_public: false,
            by_host: None,
            workspace: false,
            always_asked: false,
        }
    }

    pub fn because(mut self, reason: impl Into<String>) -> Self {
        self.reason = Some(reason.into());
        self
    }

    pub(crate) fn without_reason(&self) -> Self {
        Self { reason: None, description: None, ..self.clone() }
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
