//! What a call will touch: the unit that the policy judges.

use toold_proto::tool::Category;

/// One thing that a call needs leave for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Need {
    pub category: Category,
    /// Files: an absolute path with links resolved. Shell: one simple command as it was written.
    /// Network: `host:port`. Else a name.
    pub target: String,
    /// For the person who is asked.
    pub reason: Option<String>,
    /// The whole command line that `target` is a part of.
    pub command: Option<String>,
    /// A unified diff of what would be written.
    pub diff: Option<String>,
    /// Shell only: the command as words; `None` when it could not be parsed for certain.
    pub words: Option<Vec<Word>>,
    /// Set by whoever resolved the target when no rule and no mode may allow it: the reason, such as
    /// the line of an ignore file.
    pub forbidden: Option<String>,
    /// Shell only: what runs is confined so that it can change nothing, and nobody need be asked.
    pub harmless: bool,
    /// Asks for the session's folders as a whole: the answer is remembered as a workspace, not as a grant.
    pub workspace: bool,
}

impl Need {
    pub fn new(category: Category, target: impl Into<String>) -> Self {
        Self {
            category,
            target: target.into(),
            reason: None,
            command: None,
            diff: None,
            words: None,
            forbidden: None,
            harmless: false,
            workspace: false,
        }
    }

    pub fn because(mut self, reason: impl Into<String>) -> Self {
        self.reason = Some(reason.into());
        self
    }
}

/// A word of a simple command, after the shell's quote removal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word {
    pub text: String,
    /// False when the shell would expand it: then only a wildcard can match it.
    pub literal: bool,
}
