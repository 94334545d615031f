//! Skills, memories and to-do lists, on the wire.

use serde::{Deserialize, Serialize};

use crate::todo::TodoItem;
use crate::tool::SessionId;

/// Params of `skills.list`, `memories.list` and `todo.list`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct OfSession {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
}

/// Answer of `skills.list`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SkillList {
    /// By name.
    pub skills: Vec<SkillInfo>,
    /// Files that were meant to be skills.
    pub broken: Vec<BrokenSkill>,
    /// Files that are hidden by a skill of the same name that is nearer.
    pub shadowed: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SkillInfo {
    pub name: String,
    pub description: String,
    /// `project` or `user`.
    pub scope: String,
    pub path: String,
    /// The folder of its further files; absent for a single file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct BrokenSkill {
    pub path: String,
    /// From 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    pub message: String,
}

/// Params of `skills.get`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct GetSkill {
    /// The name of the skill.
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
}

/// Answer of `skills.get`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SkillText {
    #[serde(flatten)]
    pub skill: SkillInfo,
    /// Markdown, without the front matter.
    pub text: String,
}

/// Answer of `memories.list`: the session's own, its project's, the user's; the oldest first in each.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MemoryList {
    pub memories: Vec<MemoryInfo>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MemoryInfo {
    /// The id that `forget` takes.
    pub memory_id: String,
    /// `session`, `project` or `global`.
    pub scope: String,
    pub content: String,
    /// RFC 3339, UTC.
    pub created_at: String,
    pub path: String,
}

/// Answer of `todo.list`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TodoList {
    pub items: Vec<TodoItem>,
}
