//! Floors: what a command may do that runs because of its effects alone. Whatever runs without a person's word runs where
//! no more than these effects is possible, so that a mistake in the tables of programs does no harm.
//!
//! [`TABLE`] is what an effect gets. The sandbox of the host makes a confinement of a [`Floor`].

use std::path::PathBuf;

use toold_proto::effect::Effect;
use toold_proto::tool::Category;

use crate::effects::EffectSet;
use crate::need::Need;

/// The files that a command on a floor may change. Later ones allow more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FloorWrites {
    /// Nothing that outlives it: it has a private folder for temporary files and caches.
    Nothing,
    /// The session's folders, except the files that control the daemon or run code later.
    Session,
}

/// What it may reach by the network. Later ones allow more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FloorNetwork {
    /// Nothing but questions to the kernel that only list: addresses, routes, open sockets.
    Nothing,
    /// Hosts that a person allowed, one by one, and the loopback network of the session. Where that cannot be enforced, and
    /// for the own commands of agents, nothing.
    Hosts,
}

/// The Unix sockets that it may connect to. Later ones allow more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FloorSockets {
    /// Pairs alone, which lead nowhere else.
    Nothing,
    /// The sockets that it makes itself, and those that `[sandbox] sockets` names.
    Own,
}

/// The tokens and keys that it may read. Later ones allow more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FloorCredentials {
    Nothing,
    /// The files that `[sandbox] expose` names.
    Exposed,
}

/// What a command on a floor may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FloorRights {
    pub writes: FloorWrites,
    pub network: FloorNetwork,
    pub sockets: FloorSockets,
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
    /// Files that it writes, also those below the folder for temporary files.
    pub files: Vec<PathBuf>,
}

const READ: FloorRights = FloorRights {
    writes: FloorWrites::Nothing,
    network: FloorNetwork::Nothing,
    sockets: FloorSockets::Nothing,
    credentials: FloorCredentials::Nothing,
};
const WRITE: FloorRights = FloorRights { writes: FloorWrites::Session, ..READ };
const FETCH: FloorRights = FloorRights { network: FloorNetwork::Hosts, ..WRITE };
const BUILD: FloorRights = FloorRights { sockets: FloorSockets::Own, credentials: FloorCredentials::Exposed, ..FETCH };

/// The rights of each effect. A command that has another effect is never free. No command on a floor reaches Unix sockets of
/// other programs that no person named, or signals processes that it did not start.
pub const TABLE: &[(Effect, FloorRights)] = &[
    (Effect::Read, READ),
    (Effect::Write, WRITE),
    (Effect::History, WRITE),
    (Effect::Destroy, WRITE),
    (Effect::Build, BUILD),
    (Effect::Fetch, FETCH),
    (Effect::Install, BUILD),
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
            credentials: self.credentials.max(other.credentials),
        }
    }
}

/// What allowed the parts of a call's commands: the commands themselves, and the files that they write.
#[derive(Debug, Default)]
pub(crate) struct AllowedParts(Vec<AllowedPart>);

#[derive(Debug)]
struct AllowedPart {
    category: Category,
    target: String,
    /// `None` if a person allowed it: by a rule, a grant, a mode or an answer.
    freed: Option<FreedPart>,
}

#[derive(Debug)]
struct FreedPart {
    effects: EffectSet,
    /// What freed it, in words.
    by: String,
}

impl AllowedParts {
    /// A person allowed it.
    pub(crate) fn allow(&mut self, need: &Need) {
        self.add(need, None);
    }

    /// It is allowed because of its effects alone.
    pub(crate) fn free(&mut self, need: &Need, by: &str) {
        let all = need.effects();
        let effects = match need.category() {
            Category::FileWrite => EffectSet::EMPTY.with(Effect::Write),
            _ if need.reads_only() => EffectSet::EMPTY.with(Effect::Read),
            // The hooks of a commit may do no more than the commit.
            _ if all.contains(Effect::History) => all.without(Effect::Build),
            // Code that is free because nothing can be changed where it runs.
            _ if need.confined == EffectSet::READING => EffectSet::READING,
            _ => all,
        };
        self.add(need, Some(FreedPart { effects, by: by.to_owned() }));
    }

    fn add(&mut self, need: &Need, freed: Option<FreedPart>) {
        if need.category() == Category::Shell || need.line.is_some() || need.command_naming_it().is_some() {
            self.0.push(AllowedPart { category: need.category(), target: need.target.clone(), freed });
        }
    }

    fn part(&self, need: &Need) -> Option<&AllowedPart> {
        // The last answer counts, as for the permission.
        self.0.iter().rev().find(|part| part.category == need.category() && part.target == need.target)
    }

    /// Whether a person allowed this part.
    pub(crate) fn is_by_person(&self, need: &Need) -> bool {
        self.part(need).is_some_and(|part| part.freed.is_none())
    }

    /// The floor of a command with these needs; `None` if a person allowed it. Their word about a command that only reads says
    /// nothing about others of the line, and their word about another one nothing about a command that only a level frees.
    pub(crate) fn floor(&self, needs: &[Need]) -> Option<Floor> {
        let (mut rights, mut by) = (READ, None);
        let (mut allows_reading, mut allows_acting, mut frees_acting) = (false, false, false);
        for need in needs {
            // A part that was not decided, since the files have changed meanwhile, adds no right.
            let Some(part) = self.part(need) else { continue };
            let Some(freed) = &part.freed else {
                if need.reads_only() {
                    allows_reading = true;
                } else {
                    allows_acting = true;
                    rights = rights.join(FloorRights::of(need.effects()).unwrap_or(READ));
                }
                continue;
            };
            frees_acting |= need.category() == Category::Shell && !need.reads_only();
            let of_part = FloorRights::of(freed.effects).unwrap_or(READ);
            if by.is_none() || of_part != READ {
                by = Some(freed.by.clone());
            }
            rights = rights.join(of_part);
        }
        if allows_acting && !frees_acting || allows_reading && by.is_none() {
            return None;
        }
        let files = |category: Category| {
            let named = needs.iter().filter(move |need| need.category() == category && need.forbidden.is_none());
            named.map(|need| PathBuf::from(&need.target)).collect()
        };
        let by = by.unwrap_or_else(|| "it only reads".to_owned());
        Some(Floor { rights, by, reads: files(Category::FileRead), files: files(Category::FileWrite) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_persons_word_about_a_part_lifts_the_floor() {
        let command = |line: &str, effect: Effect| {
            let operation = EffectSet::EMPTY.with(effect);
            Need::new(Category::Shell, line).with_command(|command| command.effects.operation = operation)
        };
        let reads = command("ls", Effect::Read).with_command(|command| command.reads_only = true);
        let (commit, build) = (command("git commit", Effect::History), command("make", Effect::Build));
        let mut parts = AllowedParts::default();
        parts.free(&reads, "it only reads");
        parts.free(&commit, "level edit");
        assert_eq!(parts.floor(std::slice::from_ref(&reads)).unwrap().rights, READ);
        let both = parts.floor(&[reads.clone(), commit.clone()]).unwrap();
        assert_eq!((both.rights, both.by.as_str()), (WRITE, "level edit"));
        parts.allow(&build);
        assert_eq!(parts.floor(&[reads.clone(), build.clone()]), None);
        // A level's command runs on its floor beside one of a person.
        let mixed = parts.floor(&[commit.clone(), build.clone()]).unwrap();
        assert_eq!((mixed.rights, mixed.by.as_str()), (BUILD, "level edit"));
        // What nobody decided adds nothing.
        assert_eq!(parts.floor(&[reads.clone(), command("make x", Effect::Build)]).unwrap().rights, READ);
        // A word about a command that only reads is about that alone.
        let other = command("cat a", Effect::Read).with_command(|command| command.reads_only = true);
        parts.allow(&other);
        assert_eq!(parts.floor(std::slice::from_ref(&other)), None);
        assert_eq!(parts.floor(&[other, reads]).unwrap().rights, READ);
        // The last answer counts.
        parts.allow(&commit);
        assert_eq!(parts.floor(&[commit]), None);
    }

    #[test]
    fn effects_have_their_rights_together_and_some_have_no_floor() {
        let of = |effects: &[Effect]| FloorRights::of(effects.iter().copied().collect());
        assert_eq!(of(&[]), Some(READ));
        assert_eq!(of(&[Effect::Read]), Some(READ));
        assert_eq!(of(&[Effect::Read, Effect::History]), Some(WRITE));
        assert_eq!(of(&[Effect::Write, Effect::Build]), Some(BUILD));
        assert_eq!(of(&[Effect::Build, Effect::Fetch]), Some(BUILD));
        let fetches = of(&[Effect::Read, Effect::Fetch]).unwrap();
        assert_eq!((fetches.network, fetches.credentials), (FloorNetwork::Hosts, FloorCredentials::Nothing));
        let known = |effect: &Effect| TABLE.iter().any(|(of, _)| of == effect);
        for effect in Effect::ALL.into_iter().filter(|effect| !known(effect)) {
            assert_eq!(of(&[Effect::Read, effect]), None, "{effect}");
        }
    }
}
