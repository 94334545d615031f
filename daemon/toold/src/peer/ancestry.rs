//! The ancestors of a process. If they cannot be read for certain, it counts as started by a tool.
//!
//! A process counts as a tool's if it or one of its ancestors has a daemon as its parent or carries
//! the [mark of tools](toold_host::tool_mark), which stays when the daemon is gone. Process ids are
//! reused, so no id is trusted by itself. The peer is held by a descriptor where the kernel
//! supports that, its parents are read from the bottom up, and then once more from the top down: a
//! process that is named as the parent by one that lived before and after was that parent in
//! between.

use tokio::net::UnixStream;
use toold_engine::session::{SessionOwner, Sessions};

use crate::peer::PeerRefused;
use crate::peer::agent_processes::{Lineage, ProcessId};

/// The findings about a process.
pub(super) struct PeerOrigin {
    /// The owner of its sessions.
    pub(super) owner: SessionOwner,
    /// The process and its ancestors; empty where they cannot be read.
    pub(super) lineage: Lineage,
    /// The process that lost its parent, if it or one of its ancestors has.
    pub(super) orphan: Option<Orphan>,
}

impl PeerOrigin {
    fn of(owner: SessionOwner) -> Self {
        Self { owner, lineage: Lineage::default(), orphan: None }
    }
}

/// A process whose parent has ended, so that its ancestors do not tell who started it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Orphan {
    pub(super) id: ProcessId,
    /// The id of the leader of its session.
    pub(super) session: u32,
    /// Whether the leader is the process itself.
    pub(super) leads: bool,
    pub(super) has_terminal: bool,
    /// It is above a terminal that somebody types into: a server of `tmux`, or a program that made a pseudo-terminal.
    pub(super) holds_terminal: bool,
    /// It was typed into the terminal of process 1, which adopts orphans: its own children look like them.
    pub(super) is_of_first: bool,
}

/// The place of a living process among the others.
#[derive(Clone, Copy, Debug)]
pub(super) struct ProcessPlace {
    pub(super) id: ProcessId,
    pub(super) session: u32,
}

#[cfg(target_os = "linux")]
pub(super) fn place_of(pid: u32) -> Option<ProcessPlace> {
    linux::read(pid).ok().map(|link| ProcessPlace { id: link.id(), session: link.session() })
}

#[cfg(not(target_os = "linux"))]
pub(super) fn place_of(_pid: u32) -> Option<ProcessPlace> {
    None
}

/// A living process and its ancestors; empty where they cannot be read.
#[cfg(target_os = "linux")]
pub(super) fn ancestors_of(pid: u32) -> Vec<ProcessId> {
    let links = climb(pid, None).map(|(links, _)| links).unwrap_or_default();
    links.into_iter().map(linux::AncestryLink::id).collect()
}

#[cfg(not(target_os = "linux"))]
pub(super) fn ancestors_of(_pid: u32) -> Vec<ProcessId> {
    Vec::new()
}

/// The origin of the process at the other end, which had the id `pid` when it connected.
///
/// # Errors
/// There are no descriptors left to examine it.
#[cfg(target_os = "linux")]
pub(super) fn origin_of(stream: &UnixStream, pid: Option<u32>, sessions: &Sessions) -> Result<PeerOrigin, PeerRefused> {
    let peer = match HeldProcess::of_peer(stream, pid) {
        Ok(Some(peer)) => peer,
        Ok(None) => return Ok(PeerOrigin::of(SessionOwner::UnknownTool)),
        Err(error) => return refused_or_unknown(&error),
    };
    if peer.pid == std::process::id() {
        return Ok(PeerOrigin::of(SessionOwner::Frontend));
    }
    // Parents end, and their children are re-parented, while they are examined.
    for _ in 0..TRIES {
        match look(&peer, sessions) {
            Ok(Some(origin)) => return Ok(origin),
            Ok(None) => {}
            Err(error) => return refused_or_unknown(&error),
        }
    }
    Ok(PeerOrigin::of(SessionOwner::UnknownTool))
}

/// The process and its ancestors, if no tool started it; `None` for a tool's, and where that cannot be told.
#[cfg(target_os = "linux")]
pub(super) fn lineage_of_a_persons(pid: u32) -> Option<Lineage> {
    let process = HeldProcess::of_id(pid);
    // Whose tool it is does not matter here.
    let sessions = Sessions::default();
    let origin = (0..TRIES).find_map(|_| look(&process, &sessions).transpose())?.ok()?;
    matches!(origin.owner, SessionOwner::Frontend).then_some(origin.lineage)
}

#[cfg(not(target_os = "linux"))]
pub(super) fn lineage_of_a_persons(_pid: u32) -> Option<Lineage> {
    Some(Lineage::default())
}

/// Where there is no `/proc`, toold cannot tell descendants from people; the security document says so.
#[cfg(not(target_os = "linux"))]
pub(super) fn origin_of(
    _stream: &UnixStream,
    _pid: Option<u32>,
    _sessions: &Sessions,
) -> Result<PeerOrigin, PeerRefused> {
    Ok(PeerOrigin::of(SessionOwner::Frontend))
}

/// A living process, identified from then on.
#[cfg(target_os = "linux")]
pub(super) fn process_id(pid: u32) -> Option<ProcessId> {
    linux::read(pid).ok().map(|link| link.id())
}

#[cfg(not(target_os = "linux"))]
pub(super) fn process_id(_pid: u32) -> Option<ProcessId> {
    None
}

/// Whether this process was started by a tool of a daemon. One that serves there would take the tool for a person.
#[cfg(target_os = "linux")]
pub fn is_below_a_daemon() -> bool {
    matches!(climb(std::process::id(), None), Ok((_, AncestryEnd::AnotherDaemon)))
}

/// Without `/proc`, this cannot be determined.
#[cfg(not(target_os = "linux"))]
pub fn is_below_a_daemon() -> bool {
    false
}

#[cfg(target_os = "linux")]
use linux::{AncestryEnd, HeldProcess, climb, look, refused_or_unknown};

#[cfg(target_os = "linux")]
const TRIES: usize = 3;

#[cfg(target_os = "linux")]
mod linux {
    use std::io;
    use std::os::fd::{AsRawFd, OwnedFd};

    use nix::errno::Errno;
    use nix::sys::socket::{getsockopt, sockopt::PeerPidfd};
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use tokio::net::UnixStream;
    use toold_engine::session::{SessionOwner, Sessions};
    use toold_host::descendants::program_of;
    use toold_host::process_registry::holder_of;
    use toold_host::tool_mark;

    use super::{Orphan, PeerOrigin};
    use crate::peer::PeerRefused;
    use crate::peer::agent_processes::{Lineage, ProcessId, begins_sessions, is_host, is_shell, program_name};

    /// Deeper than any real tree; a loop can only come from process ids that were reused meanwhile.
    const MAX_DEPTH: usize = 256;

    /// A process that is being examined.
    pub(super) struct HeldProcess {
        pub(super) pid: u32,
        /// Refers to this process and to no other that gets its id. `None` on kernels before Linux
        /// 6.5.
        descriptor: Option<OwnedFd>,
    }

    impl HeldProcess {
        /// The process that connected; `None` when it cannot be determined.
        pub(super) fn of_peer(stream: &UnixStream, pid: Option<u32>) -> io::Result<Option<Self>> {
            let descriptor = match getsockopt(stream, PeerPidfd) {
                Ok(descriptor) => descriptor,
                Err(Errno::ENOPROTOOPT) => return Ok(pid.map(|pid| Self { pid, descriptor: None })),
                Err(error @ (Errno::EMFILE | Errno::ENFILE)) => return Err(error.into()),
                // It has ended.
                Err(_) => return Ok(None),
            };
            let about = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", descriptor.as_raw_fd()))?;
            // Negative for a process that was reaped, 0 for one outside of this namespace.
            let pid = about.lines().find_map(|line| line.strip_prefix("Pid:")?.trim().parse().ok());
            Ok(pid.filter(|pid| *pid > 0).map(|pid| Self { pid, descriptor: Some(descriptor) }))
        }

        /// The process that has this id now.
        pub(super) fn of_id(pid: u32) -> Self {
            Self { pid, descriptor: None }
        }

        /// Whether it has had its id until now.
        fn lives(&self) -> bool {
            let Some(descriptor) = &self.descriptor else { return true };
            let mut fds = [PollFd::new(descriptor, PollFlags::IN)];
            // Readable once it has ended.
            matches!(poll(&mut fds, Some(&Timespec::default())), Ok(0))
        }
    }

    /// The kinds of ancestors of a process.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(super) enum AncestryEnd {
        ThisDaemon,
        /// All its children are tools, too.
        AnotherDaemon,
        Nobody,
    }

    /// The data that was read of a process.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(super) struct AncestryLink {
        pid: u32,
        parent: u32,
        /// The id of its session's leader, which no other process gets as long as the session has
        /// members.
        session: u32,
        has_terminal: bool,
        /// In ticks since the system started.
        started: u64,
        /// Whether it carries the mark of tools.
        marked: bool,
    }

    impl AncestryLink {
        pub(super) fn id(self) -> ProcessId {
            ProcessId { pid: self.pid, started: self.started }
        }

        pub(super) fn session(self) -> u32 {
            self.session
        }
    }

    /// The origin of a process; `None` when something changed meanwhile.
    pub(super) fn look(peer: &HeldProcess, sessions: &Sessions) -> io::Result<Option<PeerOrigin>> {
        let (links, top) = climb(peer.pid, Some(std::process::id()))?;
        let owner = match (top, links.last()) {
            // A tool of a daemon that has ended.
            (AncestryEnd::Nobody, _) if links.iter().any(|link| link.marked) => SessionOwner::UnknownTool,
            (AncestryEnd::Nobody, _) => SessionOwner::Frontend,
            (AncestryEnd::ThisDaemon, Some(topmost)) => match holder_of(sessions, topmost.pid) {
                // Its parents have ended, and it stayed in the session that its tool's program
                // leads.
                SessionOwner::UnknownTool => holder_of(sessions, topmost.session),
                found => found,
            },
            (AncestryEnd::ThisDaemon, None) | (AncestryEnd::AnotherDaemon, _) => SessionOwner::UnknownTool,
        };
        for link in links.iter().rev() {
            if read(link.pid)? != *link {
                return Ok(None);
            }
        }
        let in_order = links.windows(2).all(|pair| pair[1].started <= pair[0].started);
        let orphan = orphan_among(&links);
        let lineage = Lineage::new(links.into_iter().map(AncestryLink::id));
        Ok((in_order && peer.lives()).then_some(PeerOrigin { owner, lineage, orphan }))
    }

    /// Sessions are inherited, so that the leader of a process's session is one of its ancestors, unless one of those has
    /// ended. One that made a session of its own is an orphan if a process that adopts orphans is its parent; a service of
    /// that process looks the same.
    ///
    /// A terminal shows that a person types into it, unless an agent made it: what is above it, and lost its own parent, is an
    /// orphan, too. So is the topmost program below a shell that is process 1: it stands for all that is typed below it.
    fn orphan_among(links: &[AncestryLink]) -> Option<Orphan> {
        let is_of_first = links.last().is_some_and(is_in_terminal_of_first);
        let orphan = |link: &AncestryLink, holds_terminal: bool| Orphan {
            id: link.id(),
            session: link.session,
            leads: link.session == link.pid,
            has_terminal: link.has_terminal,
            holds_terminal,
            is_of_first,
        };
        let below = links.iter().take_while(|link| !adopts_or_serves_people(**link));
        if let Some(top) = below.last() {
            let leads = top.session == top.pid;
            let has_leader = links.iter().any(|link| link.pid == top.session) || is_of_first;
            if !has_leader || leads && is_adopted(*top) {
                return Some(orphan(top, false));
            }
        }
        let root = links.iter().take_while(|link| !adopts(link.pid)).last()?;
        // Names of programs prove nothing where everything has process 1 as its parent.
        let is_orphan = is_adopted(*root) && (is_of_first || !begins_sessions(root.id()));
        is_orphan.then(|| orphan(root, true))
    }

    /// Whether a child of process 1 is in the session of its terminal, as in a container. Process 1 is in no lineage, and the
    /// number of its session is 0 where the leader is outside of the container.
    fn is_in_terminal_of_first(link: &AncestryLink) -> bool {
        link.parent == 1 && link.session <= 1 && link.has_terminal
    }

    /// Nothing within a container has the parent 0, but a terminal that was opened into it from outside.
    fn is_adopted(link: AncestryLink) -> bool {
        match link.parent {
            0 => !link.has_terminal,
            1 => true,
            parent => adopts(parent),
        }
    }

    fn adopts_or_serves_people(link: AncestryLink) -> bool {
        // A shell that only reads a pipe has no terminal and serves nobody.
        is_host(link.id()) && (link.has_terminal || !is_shell(link.pid))
    }

    fn adopts(pid: u32) -> bool {
        program_name(pid).is_some_and(|name| name == "systemd")
    }

    /// The process and its parents, up to the one below a daemon. `own` is this daemon's number, if it serves.
    pub(super) fn climb(pid: u32, own: Option<u32>) -> io::Result<(Vec<AncestryLink>, AncestryEnd)> {
        let program = program_of("self");
        let mut links = vec![read(pid)?];
        while let Some(link) = links.last()
            && links.len() <= MAX_DEPTH
        {
            let parent = link.parent;
            if Some(parent) == own {
                return Ok((links, AncestryEnd::ThisDaemon));
            }
            if parent <= 1 {
                return Ok((links, AncestryEnd::Nobody));
            }
            if program.is_some() && program_of(&parent.to_string()) == program {
                return Ok((links, AncestryEnd::AnotherDaemon));
            }
            links.push(read(parent)?);
        }
        Err(io::Error::other("these parents have no end"))
    }

    pub(super) fn read(pid: u32) -> io::Result<AncestryLink> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
        let link = parse(pid, &stat).ok_or(io::ErrorKind::InvalidData)?;
        Ok(AncestryLink { marked: tool_mark::is_marked(pid)?, ..link })
    }

    /// Fields 4, 6, 7 and 22 of `/proc/PID/stat`. The name in field 2 may contain blanks and
    /// parentheses, so it is cut off first.
    pub(super) fn parse(pid: u32, stat: &str) -> Option<AncestryLink> {
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_ascii_whitespace().collect();
        let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
        let id = |number: usize| u32::try_from(field(number)?).ok();
        let has_terminal = id(7)? != 0;
        Some(AncestryLink { pid, parent: id(4)?, session: id(6)?, has_terminal, started: field(22)?, marked: false })
    }

    pub(super) fn refused_or_unknown(error: &io::Error) -> Result<PeerOrigin, PeerRefused> {
        match error.raw_os_error().map(Errno::from_raw) {
            Some(Errno::EMFILE | Errno::ENFILE) => Err(PeerRefused::TooManyFiles),
            Some(_) | None => Ok(PeerOrigin::of(SessionOwner::UnknownTool)),
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::linux::parse;
    use super::*;

    #[tokio::test]
    async fn a_peer_is_looked_at_by_a_descriptor() {
        let (one, _other) = UnixStream::pair().unwrap();
        let peer = HeldProcess::of_peer(&one, None).unwrap();
        // Kernels before Linux 6.5 give the number only, and none was given here.
        assert!(peer.is_none_or(|peer| peer.pid == std::process::id()));
        let origin = origin_of(&one, Some(std::process::id()), &Sessions::default()).unwrap();
        assert!(matches!(origin.owner, SessionOwner::Frontend));
    }

    #[tokio::test]
    async fn ended_process_has_no_known_origin() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        let pid = child.id();
        assert!(climb(pid, None).is_err());
    }

    #[test]
    fn names_with_brackets_and_blanks_do_not_confuse() {
        let rest = "S 7 8 9 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 4242 100";
        let one = parse(12, &format!("12 (a) R 1 1 1 (b) {rest}")).unwrap();
        assert_eq!(Some(one), parse(12, &format!("12 (a) {rest}")));
        assert_eq!(parse(12, "12 (a) S 7"), None);
    }
}
