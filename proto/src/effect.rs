//! The effects of commands, in a few kinds that people and rules can name.

use std::fmt;

use serde::{Deserialize, Serialize};

/// One kind of effect, the worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// Gains rights that the user does not have, or leaves the separation of a container.
    Privilege,
    /// Prints or stores passwords, keys or tokens.
    Secret,
    /// Removes what cannot be brought back.
    Destroy,
    /// Changes packages, services, owners or modes of the machine.
    System,
    /// Makes something public or visible to others: a push, a release, a comment, a merge.
    Publish,
    /// Changes a service, a cluster or a database.
    Change,
    /// Sends data to another machine.
    Send,
    /// Fetches foreign code and may run it.
    Install,
    /// Signals or reprioritises other processes.
    Process,
    /// Runs code of the project: scripts, hooks, tests, compilers.
    Build,
    /// Changes commits, branches, tags, stashes or the index.
    History,
    /// Changes files.
    Write,
    /// Reads from the network.
    Fetch,
    /// Reads files and states of this machine.
    Read,
}

impl Effect {
    pub const ALL: [Self; 14] = [
        Self::Privilege,
        Self::Secret,
        Self::Destroy,
        Self::System,
        Self::Publish,
        Self::Change,
        Self::Send,
        Self::Install,
        Self::Process,
        Self::Build,
        Self::History,
        Self::Write,
        Self::Fetch,
        Self::Read,
    ];

    /// As rules name it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Privilege => "privilege",
            Self::Secret => "secret",
            Self::Destroy => "destroy",
            Self::System => "system",
            Self::Publish => "publish",
            Self::Change => "change",
            Self::Send => "send",
            Self::Install => "install",
            Self::Process => "process",
            Self::Build => "build",
            Self::History => "history",
            Self::Write => "write",
            Self::Fetch => "fetch",
            Self::Read => "read",
        }
    }

    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|effect| effect.as_str() == name)
    }

    /// For a person who is asked: completes the sentence "the command ...".
    pub fn in_words(self) -> &'static str {
        match self {
            Self::Privilege => "gains rights that you do not have otherwise",
            Self::Secret => "handles secrets",
            Self::Destroy => "may remove what cannot be brought back",
            Self::System => "changes this machine's system",
            Self::Publish => "publishes",
            Self::Change => "changes a service or a database",
            Self::Send => "sends data to another machine",
            Self::Install => "fetches code of others and may run it",
            Self::Process => "signals other processes",
            Self::Build => "runs code of the project",
            Self::History => "changes Git's history or index",
            Self::Write => "changes files",
            Self::Fetch => "reads from the network",
            Self::Read => "reads",
        }
    }

    /// Whether a pattern that stops before the operation, such as `git *`, does not cover it.
    pub fn must_be_named(self) -> bool {
        matches!(self, Self::Privilege | Self::Secret | Self::Destroy | Self::System | Self::Publish)
    }
}

impl fmt::Display for Effect {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// Effects as a sentence for a person, the worst first: `publishes, may remove what cannot be brought back`. Empty when
/// there are none.
pub fn in_words(effects: &[Effect]) -> String {
    let mut sorted = effects.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    sorted.iter().map(|effect| effect.in_words()).collect::<Vec<_>>().join(", ")
}
