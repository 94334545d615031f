//! Who is at the other end of a connection, as far as the system can say.

pub mod agent_processes;
mod ancestry;
pub mod frontends;
pub mod sessions;
pub mod share_codes;
pub mod workspaces;

use std::path::PathBuf;
use std::sync::Arc;

use tokio::net::UnixStream;
use toold_engine::call::Principal;
use toold_engine::session::{Hold, Sessions};

use crate::peer::agent_processes::{AgentProcesses, Lineage, ProcessId};

pub use ancestry::is_below_a_daemon;

/// The other end of a stream.
#[derive(Clone)]
pub struct Peer {
    pub principal: Principal,
    pub pid: Option<u32>,
    /// The folder that its process works in now.
    pub cwd: Option<PathBuf>,
    /// What holds the sessions that it opens.
    pub hold: Hold,
    pub lineage: Lineage,
    /// `None` for peers that are not processes of this machine.
    agents: Option<Arc<AgentProcesses>>,
}

/// Why somebody is not served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PeerRefused {
    #[error("it belongs to another user")]
    OtherUser,
    #[error("there are too many open files to identify it")]
    TooManyFiles,
}

impl Peer {
    /// The parent, on stdio.
    pub fn parent() -> Self {
        Self::within(std::env::current_dir().ok())
    }

    /// A person's frontend within this process, or its parent, that works in this folder.
    pub fn within(cwd: Option<PathBuf>) -> Self {
        Self { cwd, ..Self::of_token(Principal::Person) }
    }

    /// Whoever showed a token: a program of any machine, in no folder that is known here.
    pub fn of_token(principal: Principal) -> Self {
        Self { principal, pid: None, cwd: None, hold: Hold::Free, lineage: Lineage::default(), agents: None }
    }

    /// Where its process works, or, if its tool's session does not reach so far, that session's folder.
    pub fn folder(&self) -> Option<PathBuf> {
        match &self.hold {
            Hold::Free => self.cwd.clone(),
            Hold::Unknown => None,
            Hold::Tool(starter) => {
                let own = self.cwd.as_ref().filter(|cwd| starter.session.contains(cwd));
                Some(own.unwrap_or(&starter.session.cwd).clone())
            }
        }
    }

    /// The same process, known to run below a tool that is none of this daemon's.
    pub fn of_a_tool(self) -> Self {
        Self { principal: Principal::ToolDescendant, hold: Hold::Unknown, ..self }
    }

    /// The agent that it runs below, if there is one by now.
    pub fn agent_above(&self) -> Option<ProcessId> {
        self.agents.as_ref()?.above(&self.lineage)
    }

    /// Records that it acts for a model.
    pub fn record_agent(&self) {
        if let Some(agents) = &self.agents {
            agents.record_agent(&self.lineage);
        }
    }

    /// Records that a person uses it.
    pub fn record_frontend(&self) {
        if let Some(agents) = &self.agents {
            agents.record_frontend(&self.lineage);
        }
    }

    /// A process that connected to the socket. One that runs below a tool is held to the session of its tool, and one
    /// that runs below an agent acts for a model.
    ///
    /// # Errors
    /// It must not be served.
    pub fn of_socket(
        stream: &UnixStream,
        sessions: &Sessions,
        agents: &Arc<AgentProcesses>,
    ) -> Result<Self, PeerRefused> {
        let credentials = stream.peer_cred().map_err(|_| PeerRefused::OtherUser)?;
        if credentials.uid() != rustix::process::geteuid().as_raw() {
            return Err(PeerRefused::OtherUser);
        }
        let pid = credentials.pid().and_then(|pid| u32::try_from(pid).ok()).filter(|pid| *pid > 0);
        let ancestry::PeerOrigin { hold, lineage } = ancestry::origin_of(stream, pid, sessions)?;
        let lineage = agents.shared(lineage);
        Ok(Self {
            principal: match hold {
                Hold::Free if agents.above(&lineage).is_some() => Principal::Agent,
                Hold::Free => Principal::Person,
                Hold::Tool(_) | Hold::Unknown => Principal::ToolDescendant,
            },
            pid,
            cwd: pid.and_then(|pid| std::fs::read_link(format!("/proc/{pid}/cwd")).ok()),
            hold,
            lineage,
            agents: Some(agents.clone()),
        })
    }
}
