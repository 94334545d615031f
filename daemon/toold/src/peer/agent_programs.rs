//! The agent whose program a client belongs to, as a person recorded it with `toolctl agents install`. The name that a client gives
//! itself proves nothing.

use std::os::unix::fs::MetadataExt;

use toold_engine::session::SessionOwner;
use toold_proto::agent_programs::{AgentPrograms, ProgramFile};

use crate::peer::Peer;
use crate::peer::agent_processes::ProcessId;
use crate::peer::ancestry::Orphan;

impl Peer {
    /// The agent that the peer's process is or belongs to, by the program that runs above it. `None` for all others, for a program
    /// that another agent may have started to act with its rights, and for processes of tools.
    pub(crate) fn proven_agent<'p>(&self, programs: &'p AgentPrograms) -> Option<&'p str> {
        let agents = self.agents.as_ref().filter(|_| matches!(self.owner, SessionOwner::Frontend))?;
        let lineage = self.lineage.program_lineage()?;
        let may_be_left = |orphan: &Orphan| {
            agents.left_by(orphan, &self.lineage).is_some() || agents.needs_code(orphan, &self.lineage)
        };
        if agents.above(&lineage).is_some() || self.orphan.as_ref().is_some_and(may_be_left) {
            return None;
        }
        programs.agent_of(&file_of(lineage.own()?)?)
    }
}

/// The file of the program that a process runs, also of one that was replaced since.
fn file_of(id: ProcessId) -> Option<ProgramFile> {
    let found = std::fs::metadata(format!("/proc/{}/exe", id.pid)).ok()?;
    let file = ProgramFile {
        device: found.dev(),
        inode: found.ino(),
        bytes: found.size(),
        changed: (found.ctime(), found.ctime_nsec()),
    };
    id.is_alive().then_some(file)
}
