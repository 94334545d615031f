//! Floors: what a command may do that runs because of its effects alone. Whatever runs without a person's word runs where
//! no more than these effects is possible, so that a mistake in the tables of programs does no harm.
//!
//! [`TABLE`] is the whole of it. The sandbox of the host makes a confinement of a [`Floor`].

use std::path::PathBuf;

use toold_proto::effect::Effect;

use crate::effects::EffectSet;

/// The files that a command on a floor may change. Later ones allow more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FloorWrites {
    /// Nothing that outlives it: it has a private folder for temporary files and caches.
    Nothing,
    /// The session's folders, except the files that control the daemon or run code later.
    Session,
    /// Also the caches of the tool itself.
    SessionAndCaches,
}

/// What it may reach by the network. Later ones allow more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FloorNetwork {
    /// Nothing but questions to the kernel that only list: addresses, routes, open sockets.
    Nothing,
    /// Hosts that a person allowed, one by one. Where that cannot be enforced, nothing.
    Hosts,
}

/// The Unix sockets of other programs that it may reach. Later ones allow more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FloorSockets {
    Nothing,
    /// Those of a list of the configuration.
    Listed,
}

/// What it may do to processes that it did not start itself. Their environment, memory, descriptors and folders are out of
/// reach in any case. Later ones allow more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FloorProcesses {
    /// It sees that they are there.
    Seen,
    /// It ends those that the session started.
    OfSession,
}

/// The tokens and keys that it may read. Later ones allow more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FloorCredentials {
    Nothing,
    /// The files that `[sandbox] expose` names.
    Exposed,
    /// Also the tool's own.
    OfTool,
}

/// What a command on a floor may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FloorRights {
    pub writes: FloorWrites,
    pub network: FloorNetwork,
    pub sockets: FloorSockets,
    pub processes: FloorProcesses,
    pub credentials: FloorCredentials,
}

/// The floor of one command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Floor {
    pub rights: FloorRights,
    /// Why it needs no approval, in words.
    pub by: String,
    /// Files and folders that it names, and that the caller may read. Absolute, with links resolved.
    pub reads: Vec<PathBuf>,
}

const READ: FloorRights = FloorRights {
    writes: FloorWrites::Nothing,
    network: FloorNetwork::Nothing,
    sockets: FloorSockets::Nothing,
    processes: FloorProcesses::Seen,
    credentials: FloorCredentials::Nothing,
};
const WRITE: FloorRights = FloorRights { writes: FloorWrites::Session, ..READ };
const BUILD: FloorRights = FloorRights {
    network: FloorNetwork::Hosts,
    sockets: FloorSockets::Listed,
    credentials: FloorCredentials::Exposed,
    ..WRITE
};
const FETCH: FloorRights = FloorRights {
    writes: FloorWrites::SessionAndCaches,
    network: FloorNetwork::Hosts,
    credentials: FloorCredentials::OfTool,
    ..WRITE
};
const OF_SESSION: FloorRights = FloorRights { processes: FloorProcesses::OfSession, ..BUILD };

/// The rights of each effect. A command that has another effect is never free.
pub const TABLE: &[(Effect, FloorRights)] = &[
    (Effect::Read, READ),
    (Effect::Write, WRITE),
    (Effect::History, WRITE),
    (Effect::Build, BUILD),
    (Effect::Fetch, FETCH),
    (Effect::Install, FETCH),
    // Of what the session made.
    (Effect::Change, OF_SESSION),
    (Effect::Destroy, OF_SESSION),
];

impl FloorRights {
    /// Those of a command that only reads: the least that there are.
    pub const READ: Self = READ;

    /// The rights that these effects need together; `None` if one of them is on no floor.
    pub fn of(effects: EffectSet) -> Option<Self> {
        effects.iter().try_fold(READ, |all, effect| Some(all.join(Self::of_effect(effect)?)))
    }

    fn of_effect(effect: Effect) -> Option<Self> {
        TABLE.iter().find(|(known, _)| *known == effect).map(|(_, rights)| *rights)
    }

    /// What either of the two allows.
    #[must_use]
    pub fn join(self, other: Self) -> Self {
        Self {
            writes: self.writes.max(other.writes),
            network: self.network.max(other.network),
            sockets: self.sockets.max(other.sockets),
            processes: self.processes.max(other.processes),
            credentials: self.credentials.max(other.credentials),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn effects_have_their_rights_together_and_some_have_no_floor() {
        let of = |effects: &[Effect]| FloorRights::of(effects.iter().copied().collect());
        assert_eq!(of(&[]), Some(READ));
        assert_eq!(of(&[Effect::Read]), Some(READ));
        assert_eq!(of(&[Effect::Read, Effect::History]), Some(WRITE));
        assert_eq!(of(&[Effect::Write, Effect::Build]), Some(BUILD));
        let both = of(&[Effect::Build, Effect::Fetch]).unwrap();
        assert_eq!((both.writes, both.sockets), (FloorWrites::SessionAndCaches, FloorSockets::Listed));
        for effect in [
            Effect::Privilege,
            Effect::Secret,
            Effect::System,
            Effect::Publish,
            Effect::Send,
            Effect::Process,
        ] {
            assert_eq!(of(&[Effect::Read, effect]), None, "{effect}");
        }
    }
}
