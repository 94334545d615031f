//! The messages between two daemons: JSON texts, one a line; the first one carries the descriptors.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use anyhow::{Context, bail, ensure};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
    recvmsg, sendmsg,
};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncWrite, AsyncWriteExt};
use toold_mcp::server::http::records::HttpSessionRecords;
use toold_proto::tool::SessionId;

use crate::config::paused::PausedBy;
use crate::lifecycle::page_access::PageHandOver;

/// Newer daemons may add members; existing ones stay.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "word", rename_all = "snake_case")]
pub(super) enum RestartMessage {
    /// From the old one, with the descriptors: the listening socket, the lock next to it, the lock
    /// in the state folder.
    Offer {
        socket: PathBuf,
        bound_by_daemon: bool,
        /// The mark of its tools' processes; absent from daemons before 0.2.
        #[serde(default)]
        tool_mark: Option<u64>,
    },
    /// From the new one: it is ready.
    Ready { version: String, protocol: u32 },
    /// From the new one: it will not serve.
    Failed { words: String },
    /// From the old one: it no longer accepts clients.
    Go {
        /// Absent from daemons before 0.3.
        #[serde(default)]
        page: PageHandOver,
        /// Absent from daemons before 0.3.
        #[serde(default)]
        http_sessions: HttpSessionRecords,
        /// The sessions of which it still runs serial calls.
        #[serde(default)]
        busy_sessions: Vec<SessionId>,
        /// Whether it had frontends that answer prompts, which will connect to the new one. Absent from older daemons.
        #[serde(default)]
        frontends: bool,
    },
    /// From the new one.
    Serving { epoch: String },
    /// From the new one, while the old one lets its calls end: a person pauses or resumes everything.
    Standstill(Standstill),
    /// From the old one, which has done so.
    StoodStill(StoodStill),
}

/// What a person does to everything that runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "does", rename_all = "snake_case")]
pub enum Standstill {
    Pause {
        by: PausedBy,
        /// Ends what runs, in place of stopping it.
        kill: bool,
    },
    Resume,
}

/// The outcome of a [`Standstill`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoodStill {
    /// How many processes were stopped, ended, or go on.
    pub processes: u64,
    /// What still runs, because toold cannot stop it.
    pub still_running: Vec<String>,
}

/// The resources that are handed over.
pub struct SocketOffer {
    pub socket: PathBuf,
    /// Whether the daemon created the socket, and has to remove it; otherwise a service manager
    /// does.
    pub bound_by_daemon: bool,
    /// The mark of the daemon's tool processes, if there is one.
    pub tool_mark: Option<u64>,
    pub listener: OwnedFd,
    pub lock_beside: OwnedFd,
    pub lock_kept: Option<OwnedFd>,
}

const MAX_DESCRIPTORS: usize = 3;
const MAX_LINE: usize = 16 * 1024;

pub(super) fn send_offer(channel: &UnixStream, offer: &SocketOffer) -> anyhow::Result<()> {
    let word = RestartMessage::Offer {
        socket: offer.socket.clone(),
        bound_by_daemon: offer.bound_by_daemon,
        tool_mark: offer.tool_mark,
    };
    let line = format!("{}\n", serde_json::to_string(&word)?);
    ensure!(line.len() < MAX_LINE, "the socket's path is too long");
    let descriptors: Vec<BorrowedFd<'_>> = [Some(&offer.listener), Some(&offer.lock_beside), offer.lock_kept.as_ref()]
        .into_iter()
        .flatten()
        .map(AsFd::as_fd)
        .collect();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    ensure!(ancillary.push(SendAncillaryMessage::ScmRights(&descriptors)), "there are too many descriptors");
    let sent = sendmsg(channel, &[IoSlice::new(line.as_bytes())], &mut ancillary, SendFlags::empty())?;
    ensure!(sent == line.len(), "the offer was sent only in part");
    Ok(())
}

/// Waits for the offer. Blocks up to the channel's read timeout.
pub(super) fn receive_offer(channel: &UnixStream) -> anyhow::Result<SocketOffer> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut bytes = vec![0; MAX_LINE];
    let received = recvmsg(channel, &mut [IoSliceMut::new(&mut bytes)], &mut ancillary, RecvFlags::empty())
        .context("no offer arrived")?;
    let mut descriptors = Vec::new();
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            descriptors.extend(rights);
        }
    }
    for descriptor in &descriptors {
        rustix::io::fcntl_setfd(descriptor, rustix::io::FdFlags::CLOEXEC)?;
    }
    let word = serde_json::from_slice(&bytes[..received.bytes]).context("the offer cannot be read")?;
    let RestartMessage::Offer { socket, bound_by_daemon, tool_mark } = word else {
        bail!("the daemon said {word:?} instead of its offer")
    };
    let mut descriptors = descriptors.into_iter();
    let (Some(listener), Some(lock_beside)) = (descriptors.next(), descriptors.next()) else {
        bail!("no socket and no lock came with the offer");
    };
    Ok(SocketOffer { socket, bound_by_daemon, tool_mark, listener, lock_beside, lock_kept: descriptors.next() })
}

pub(super) async fn say(channel: &mut (impl AsyncWrite + Unpin), word: &RestartMessage) -> anyhow::Result<()> {
    let line = format!("{}\n", serde_json::to_string(word)?);
    channel.write_all(line.as_bytes()).await.context("the other daemon does not listen any more")
}
