//! What the audit log keeps of a need: enough to decide it again by other rules, without running or reading anything.

use serde::{Deserialize, Serialize};
use toold_proto::tool::Category;

use crate::effects::CommandEffects;
use crate::need::{CommandForm, InnerCommand, Need, Word};

/// A need as it was judged. The category and the target are those of its decision.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct JudgedNeed {
    /// Only for a command.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<Box<JudgedCommand>>,
    /// The file lies in the session's folders.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub inside: bool,
    /// A command names the file, or a line writes it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub by_command: bool,
    /// A command names the file among its operands, and has an approval of its own.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_operand: bool,
    /// The file was read or written without an approval of its own.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_public: bool,
    /// Only for a tool of an MCP server: see [`Need::reads_only`].
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub reads_only: bool,
    /// A text in it may have been a secret, or it was too long: it is not kept.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub withheld: bool,
}

/// A command: its words as its program understands them, and its effects.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct JudgedCommand {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub words: Option<Vec<Word>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub form: Option<CommandForm>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub short: Option<Vec<Word>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub elsewhere: Vec<InnerCommand>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub head: Option<usize>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub operands: Vec<usize>,
    pub effects: CommandEffects,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unsure: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub script: Option<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub may_run_any: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_unjudged: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub hides_file: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub reads_only: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub harmless: bool,
}

impl JudgedNeed {
    /// `None` for what has nothing beyond its target. `inside`: whether a file lies in the session's folders.
    pub fn of(need: &Need, inside: bool) -> Option<Self> {
        match need.category {
            Category::Shell => Some(Self { command: Some(Box::new(JudgedCommand::of(need))), ..Self::default() }),
            Category::FileRead | Category::FileWrite => Some(Self {
                inside,
                by_command: need.command.is_some(),
                is_operand: need.of_command.is_some(),
                is_public: need.is_public,
                ..Self::default()
            }),
            Category::Mcp if need.reads_only => Some(Self { reads_only: true, ..Self::default() }),
            Category::Network | Category::Mcp | Category::Agent | Category::Plugin => None,
        }
    }

    /// The same without its texts.
    #[must_use]
    pub fn without_texts(&self) -> Self {
        Self { command: None, withheld: true, ..self.clone() }
    }

    /// The need again; `None` if its texts were withheld.
    pub fn need(&self, category: Category, target: &str) -> Option<Need> {
        let base = Need { is_public: self.is_public, ..Need::new(category, target) };
        if self.withheld {
            return None;
        }
        match (&self.command, category) {
            (Some(command), _) => Some(command.need(base)),
            (None, Category::Shell) => None,
            (None, _) => Some(Need {
                reads_only: self.reads_only,
                command: self.by_command.then(String::new),
                of_command: self.is_operand.then(String::new),
                ..base
            }),
        }
    }
}

impl JudgedCommand {
    fn of(need: &Need) -> Self {
        Self {
            words: need.words.clone(),
            form: need.form.clone(),
            short: need.short.clone(),
            elsewhere: need.elsewhere.clone(),
            head: need.head,
            operands: need.operands.clone(),
            effects: need.effects.clone(),
            unsure: need.unsure.clone(),
            script: need.script.clone(),
            may_run_any: need.may_run_any,
            is_unjudged: need.is_unjudged,
            hides_file: need.hides_file,
            reads_only: need.reads_only,
            harmless: need.harmless,
        }
    }

    fn need(&self, base: Need) -> Need {
        Need {
            words: self.words.clone(),
            form: self.form.clone(),
            short: self.short.clone(),
            elsewhere: self.elsewhere.clone(),
            head: self.head,
            operands: self.operands.clone(),
            effects: self.effects.clone(),
            unsure: self.unsure.clone(),
            script: self.script.clone(),
            may_run_any: self.may_run_any,
            is_unjudged: self.is_unjudged,
            hides_file: self.hides_file,
            reads_only: self.reads_only,
            harmless: self.harmless,
            ..base
        }
    }
}
