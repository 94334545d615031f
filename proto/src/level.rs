//! Levels: how much runs without an approval.

use serde::{Deserialize, Serialize};

use crate::effect::Effect;
use crate::tool::SessionId;

/// How much runs without an approval, from little to much. Each level frees what those before it free.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// Reading in the session's folders.
    #[default]
    Read,
    /// And changing files there.
    Edit,
    /// And building and testing the project.
    Develop,
    /// And downloading, installing into the session's folders, and ending processes that the session started.
    Operate,
}

impl Level {
    pub const ALL: [Self; 4] = [Self::Read, Self::Edit, Self::Develop, Self::Operate];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Edit => "edit",
            Self::Develop => "develop",
            Self::Operate => "operate",
        }
    }

    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.as_str() == name)
    }
}

impl std::fmt::Display for Level {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// Params of `permissions.set_level`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SetLevel {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// Absent for the level of the configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<Level>,
}

/// Params of `permissions.level`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ShowLevel {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
}

/// Answer of `permissions.level` and `permissions.set_level`: the level of a session, and what the levels free here.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SessionLevel {
    pub session_id: SessionId,
    pub level: Level,
    /// What decides it, in words: a key of a configuration file, or a person.
    pub from: String,
    /// Why commands cannot be confined here, as a sentence for the user; absent when they can. What needs that is not free
    /// then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unconfined: Option<String>,
    /// By level, what it frees beyond the levels before it.
    pub table: Vec<LevelEntry>,
}

/// One line of the table of levels.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LevelEntry {
    /// The first level that frees it.
    pub level: Level,
    pub effect: Effect,
    /// Who has the effect and within which limits, for people.
    pub what: String,
    /// What it needs to be free: the confinement of the command, or something that toold does not have.
    pub needs: LevelNeeds,
    /// Whether the session's level frees it here.
    pub free: bool,
}

/// What a line of the table of levels needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum LevelNeeds {
    Nothing,
    /// The command runs confined: it changes files in the session's folders alone, without the network.
    Confinement,
    /// A proof of what a session made. Not available: a person is asked.
    Unavailable,
}

/// The level of the configuration in `daemon.status`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct LevelStatus {
    pub level: Level,
    /// See [`SessionLevel::unconfined`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unconfined: Option<String>,
}
