//! Identifies the other end of a connection, as far as the system can tell.

pub mod agent_processes;
mod agent_programs;
mod agent_trust;
mod ancestry;
pub(crate) mod confirm_codes;
#[cfg_attr(not(feature = "fleet"), path = "peer/without_fleet.rs")]
pub mod fleet;
pub mod frontends;
pub(crate) mod page_sign_ins;
pub(crate) mod process_end;
pub mod sessions;
pub mod share_codes;
pub(crate) mod socket_holders;
pub mod workspaces;

use std::path::PathBuf;
use std::sync::Arc;

use tokio::net::UnixStream;
use toold_engine::call::Principal;
use toold_engine::session::{SessionOwner, Sessions};

use crate::peer::agent_processes::{AgentProcesses, Lineage, ProcessId};

pub use ancestry::is_below_a_daemon;

/// The other end of a stream.
#[derive(Clone)]
pub struct Peer {
    pub principal: Principal,
    pub pid: Option<u32>,
    /// The current working folder of its process.
    pub cwd: Option<PathBuf>,
    /// The owner of the sessions that it opens.
    pub owner: SessionOwner,
    pub lineage: Lineage,
    /// The profile of its token, which limits all its sessions.
    pub token_profile: Option<String>,
    /// What a page in a browser is called in its answers, since it may have no session.
    pub page: Option<&'static str>,
    /// See [`ancestry::Orphan`].
    orphan: Option<ancestry::Orphan>,
    /// `None` for peers that are not processes of this machine.
    agents: Option<Arc<AgentProcesses>>,
}

/// Why a client is not served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PeerRefused {
    #[error("it belongs to another user")]
    OtherUser,
    #[error("there are too many open files to identify it")]
    TooManyFiles,
}

/// The proof that is missing to tell a person's program from one that an agent left behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unproven {
    /// It has no terminal, and its parent has ended.
    NoTerminal,
    /// An agent may have made its terminal, or left it behind.
    Terminal,
    /// It is a child of the shell that is process 1, which adopts what agents leave behind.
    ChildOfFirst,
}

impl Peer {
    /// The parent, on stdio.
    pub fn parent() -> Self {
        Self::within(std::env::current_dir().ok())
    }

    /// A person's frontend within this process, or its parent, with this working folder.
    pub fn within(cwd: Option<PathBuf>) -> Self {
        Self { cwd, ..Self::of_token(Principal::Person) }
    }

    /// A client with a token: a program of any machine, with no known folder here.
    pub fn of_token(principal: Principal) -> Self {
        let (owner, lineage) = (SessionOwner::Frontend, Lineage::default());
        Self {
            principal,
            pid: None,
            cwd: None,
            owner,
            lineage,
            token_profile: None,
            page: None,
            orphan: None,
            agents: None,
        }
    }

    /// A page in a browser that a person has signed in.
    pub fn of_page(is_phone: bool) -> Self {
        Self { page: Some(if is_phone { "phone" } else { "page" }), ..Self::of_token(Principal::Page) }
    }

    /// The same, with a token that is limited to this profile.
    pub fn limited_to(self, token_profile: Option<String>) -> Self {
        Self { token_profile, ..self }
    }

    /// The working folder of its process, or, if that is outside of its tool's session, the
    /// session's folder.
    pub fn folder(&self) -> Option<PathBuf> {
        match &self.owner {
            SessionOwner::Frontend => self.cwd.clone(),
            SessionOwner::UnknownTool | SessionOwner::Plugin { .. } => None,
            SessionOwner::Tool(starter) => {
                let own = self.cwd.as_ref().filter(|cwd| starter.session.contains(cwd));
                Some(own.unwrap_or(&starter.session.cwd).clone())
            }
        }
    }

    /// The same process, known to be a descendant of a tool of another daemon.
    pub fn of_a_tool(self) -> Self {
        Self { principal: Principal::ToolDescendant, owner: SessionOwner::UnknownTool, ..self }
    }

    /// The agent that it is a descendant of, or an orphan of, if one is known by now.
    pub fn agent_above(&self) -> Option<ProcessId> {
        let agents = self.agents.as_ref()?;
        agents.above(&self.lineage).or_else(|| agents.left_by(self.orphan.as_ref()?, &self.lineage))
    }

    /// Why it has to show a code before it decides anything, if it has to: see [`AgentProcesses::needs_code`].
    pub fn needs_code(&self) -> Option<Unproven> {
        let (agents, orphan) = self.agents.as_ref().zip(self.orphan.as_ref())?;
        let needs = self.principal == Principal::Person && agents.needs_code(orphan, &self.lineage);
        needs.then(|| match (orphan.has_terminal || orphan.holds_terminal, orphan.is_of_first) {
            (false, _) => Unproven::NoTerminal,
            (true, true) if self.lineage.own() == Some(orphan.id) => Unproven::ChildOfFirst,
            (true, _) => Unproven::Terminal,
        })
    }

    /// Takes a code that a person has read on another screen; false for one that is not valid.
    pub fn confirm(&self, code: &str) -> bool {
        let Some(agents) = &self.agents else { return false };
        let is_valid = agents.codes.take(code);
        if let Some(orphan) = self.orphan.as_ref().filter(|_| is_valid) {
            agents.confirm(orphan);
        }
        is_valid
    }

    /// Records that it acts for a model.
    pub fn record_agent(&self) {
        if let Some(agents) = &self.agents {
            agents.record_agent(&self.lineage);
        }
    }

    /// A hook of this agent has said so: the program that started it is the agent.
    pub fn name_agent(&self, agent: &'static str) {
        if let Some(agents) = self.agents.as_ref().filter(|_| self.is_own_process()) {
            agents.name(&self.lineage, agent);
        }
    }

    /// The agent that it is a client of, if that agent's hooks have named it, and nothing else is above.
    pub fn agent_name(&self) -> Option<&'static str> {
        let name = self.agents.as_ref()?.name_of(&self.lineage)?;
        self.is_own_process().then_some(name)
    }

    /// Whether it is known who started it: no tool did, and no agent may have left it behind.
    fn is_own_process(&self) -> bool {
        let is_of_person = |agents: &Arc<AgentProcesses>, orphan: &ancestry::Orphan| {
            agents.left_by(orphan, &self.lineage).is_none() && !agents.needs_code(orphan, &self.lineage)
        };
        matches!(self.principal, Principal::Person | Principal::Agent)
            && self
                .agents
                .as_ref()
                .zip(self.orphan.as_ref())
                .is_none_or(|(agents, orphan)| is_of_person(agents, orphan))
    }

    /// Records that a person uses it.
    pub fn record_frontend(&self) {
        if let Some(agents) = &self.agents {
            agents.record_frontend(&self.lineage);
        }
    }

    /// A process that connected to the socket. A descendant of a tool is limited to the session of
    /// its tool, and a descendant of an agent acts for a model.
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
        let ancestry::PeerOrigin { owner, lineage, orphan } = ancestry::origin_of(stream, pid, sessions)?;
        let lineage = agents.shared(lineage);
        let is_left = || orphan.as_ref().is_some_and(|orphan| agents.left_by(orphan, &lineage).is_some());
        Ok(Self {
            principal: match owner {
                SessionOwner::Frontend if agents.above(&lineage).is_some() || is_left() => Principal::Agent,
                SessionOwner::Frontend => Principal::Person,
                SessionOwner::Tool(_) | SessionOwner::UnknownTool | SessionOwner::Plugin { .. } => {
                    Principal::ToolDescendant
                }
            },
            pid,
            cwd: pid.and_then(|pid| std::fs::read_link(format!("/proc/{pid}/cwd")).ok()),
            owner,
            lineage,
            token_profile: None,
            orphan,
            page: None,
            agents: Some(agents.clone()),
        })
    }
}
