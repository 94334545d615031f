//! The programs of agents that a person has recorded.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// The file below the state folder that holds [`AgentPrograms`]. Only people's commands write it.
pub const AGENT_PROGRAMS: &str = "agent-programs.json";

/// The recorded programs, by the names of their agents.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AgentPrograms {
    pub agents: BTreeMap<String, AgentProgram>,
}

/// A program's file, as the system knew it when it was recorded. One that is replaced or changed afterwards differs in at least one
/// of these.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentProgram {
    /// Absolute, with links resolved. For people: the other fields identify the file.
    pub path: PathBuf,
    pub file: ProgramFile,
}

/// The identity of a file and of its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramFile {
    pub device: u64,
    pub inode: u64,
    pub bytes: u64,
    /// Seconds since 1970, and nanoseconds, of the last change of the content or of the inode, which no program can set.
    pub changed: (i64, i64),
}

impl AgentPrograms {
    /// The agent whose recorded program this is.
    pub fn agent_of(&self, file: &ProgramFile) -> Option<&str> {
        self.agents.iter().find(|(_, program)| program.file == *file).map(|(agent, _)| agent.as_str())
    }
}
