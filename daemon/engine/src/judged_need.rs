//! What the audit log keeps of a need: enough to decide it again by other rules, without running or reading anything.

use serde::{Deserialize, Serialize};
use toold_proto::level::Level;
use toold_proto::tool::Category;

use crate::need::{JudgedCommand, Need, NeedKind};

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
    /// Only for a tool of an MCP server: see [`NeedKind::Mcp`].
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub reads_only: bool,
    /// It was denied by something that no rule lifts and that its target does not show, such as a secret below a folder.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub denied_for_good: bool,
    /// The call was refused here, and the rest of what it needed was not decided: the levels at which that would be free.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rest_free_at: Option<Vec<Level>>,
    /// A text in it may have been a secret, or it was too long: it is not kept.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub withheld: bool,
}

impl JudgedNeed {
    /// `None` for what has nothing beyond its target. `inside`: whether a file lies in the session's folders.
    pub fn of(need: &Need, inside: bool) -> Option<Self> {
        match &need.kind {
            NeedKind::Command(command) => Some(Self { command: Some(command.clone()), ..Self::default() }),
            NeedKind::FileRead(file) | NeedKind::FileWrite(file) => Some(Self {
                inside,
                by_command: need.line.is_some(),
                is_operand: file.of_command.is_some(),
                is_public: file.is_public,
                ..Self::default()
            }),
            NeedKind::Workspace => Some(Self { inside, ..Self::default() }),
            NeedKind::Mcp { reads_only: true } => Some(Self { reads_only: true, ..Self::default() }),
            NeedKind::Network(_) | NeedKind::Mcp { .. } | NeedKind::AgentMcp | NeedKind::Agent | NeedKind::Plugin => {
                None
            }
        }
    }

    /// That of a need which was denied by `rule`.
    pub fn of_denied(need: &Need, inside: bool, rule: &str) -> Option<Self> {
        let judged = Self::of(need, inside);
        let is_below = || need.covers().iter().any(|file| rule.contains(file.as_str()));
        match need.forbidden.is_some() || is_below() {
            true => Some(Self { denied_for_good: true, ..judged.unwrap_or_default() }),
            false => judged,
        }
    }

    /// The same without its texts.
    #[must_use]
    pub fn without_texts(&self) -> Self {
        Self { command: None, withheld: true, ..self.clone() }
    }

    /// The need again; `None` if its texts were withheld.
    pub fn need(&self, category: Category, target: &str) -> Option<Need> {
        if self.withheld {
            return None;
        }
        let kind = match category {
            Category::Shell => NeedKind::Command(self.command.clone()?),
            Category::Mcp => NeedKind::Mcp { reads_only: self.reads_only },
            _ => {
                let of_command = self.is_operand.then(String::new);
                let (is_public, line) = (self.is_public, self.by_command.then(String::new));
                let need = Need { line, ..Need::new(category, target) };
                return Some(need.with_file(|file| (file.of_command, file.is_public) = (of_command, is_public)));
            }
        };
        Some(Need::of_kind(kind, target))
    }
}
