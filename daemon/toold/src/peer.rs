//! Who is at the other end of a connection, as far as the system tells.

mod ancestry;

use std::path::PathBuf;

use tokio::net::UnixStream;
use toold_engine::execute::Principal;
use toold_engine::session::{Hold, Sessions};

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
}

/// Why somebody is not served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    #[error("it is of another user")]
    OtherUser,
    #[error("there are too many open files to see who it is")]
    TooManyFiles,
}

impl Peer {
    /// The parent, on stdio.
    pub fn parent() -> Self {
        Self { principal: Principal::Person, pid: None, cwd: std::env::current_dir().ok(), hold: Hold::Free }
    }

    /// Whoever showed a token: a program of any machine, in no folder that is known here.
    pub fn of_token(principal: Principal) -> Self {
        Self { principal, pid: None, cwd: None, hold: Hold::Free }
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

    /// A process that connected to the socket. One that runs below a tool is held to the session of its tool.
    ///
    /// # Errors
    /// It must not be served.
    pub fn of_socket(stream: &UnixStream, sessions: &Sessions) -> Result<Self, Refused> {
        let credentials = stream.peer_cred().map_err(|_| Refused::OtherUser)?;
        if credentials.uid() != rustix::process::geteuid().as_raw() {
            return Err(Refused::OtherUser);
        }
        let pid = credentials.pid().and_then(|pid| u32::try_from(pid).ok()).filter(|pid| *pid > 0);
        let hold = ancestry::hold_of(stream, pid, sessions)?;
        Ok(Self {
            principal: match hold {
                Hold::Free => Principal::Person,
                Hold::Tool(_) | Hold::Unknown => Principal::ToolDescendant,
            },
            pid,
            cwd: pid.and_then(|pid| std::fs::read_link(format!("/proc/{pid}/cwd")).ok()),
            hold,
        })
    }
}
