//! The descriptors that the launcher hands over to the daemon just before it becomes a confined program, and their use until
//! the program and all that it has started have ended: the connections of its [Unix sockets](super::sockets) are served, and its
//! files are covered again when somebody outside replaces them.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::fstat;
use rustix::net::sockopt;
use rustix::process::geteuid;

use super::ProgramStarter;
use super::network::namespace::receive;
use super::sockets::{self, HandedConnections};
use crate::launcher;
use crate::launcher::life::{ConfinedLife, HandedLife, ProgramMounts};
use crate::launcher::order::Confinement;
use crate::launcher::stand_in::StandIn;
use crate::random::random;

/// How long a program may take to start.
const START: Duration = Duration::from_secs(60);
/// Most commands have ended after that, before anybody replaces a file.
const SHORT: Duration = Duration::from_millis(20);

/// Whether the launcher hands over anything on this architecture.
const HANDS_OVER: bool = cfg!(any(target_arch = "x86_64", target_arch = "aarch64"));

/// The descriptors of one program.
struct HandedOver {
    /// Its calls, if it may make sockets. Nothing is at the other end when it and all that it has started have ended.
    calls: OwnedFd,
    /// The user namespace, if it is not the daemon's, and the namespace of its mounts.
    namespaces: Vec<OwnedFd>,
    /// The latter again.
    mounts: Option<ProgramMounts>,
    /// The list of what is covered, for the process that covers it again.
    covers: Option<OwnedFd>,
    /// See [`HandedConnections::own`].
    own: Option<u64>,
}

/// Prepares for what a program hands over, if it may make sockets, if files are covered for it, or if it is followed. Without
/// that, it makes no sockets. Its stand-ins stay as long as it is followed.
pub(super) fn prepare(confinement: &mut Confinement, starter: ProgramStarter, stand_ins: &[Arc<StandIn>]) {
    let named = std::mem::take(&mut confinement.named_sockets);
    confinement.own_sockets &= sockets::refused(starter).is_none();
    confinement.own_sockets &= HANDS_OVER;
    if starter == ProgramStarter::Agent && confinement.floor {
        confinement.life.get_or_insert_default();
    }
    if let Some(life) = &confinement.life {
        life.keep(stand_ins.to_vec());
    }
    let life = confinement.life.clone().unwrap_or_default();
    let has_covers = !(confinement.masked.is_empty() && confinement.protected.is_empty());
    let has_use = has_covers || confinement.own_sockets || confinement.life.is_some();
    if confinement.bare || !HANDS_OVER || !has_use {
        return life.begin(None);
    }
    let own_sockets = confinement.own_sockets;
    let followed = life.clone();
    let attend = move |listener: UnixListener| {
        let handed = take_over(&listener, &followed);
        drop(listener);
        match handed {
            Ok(handed) => handed.attend(own_sockets.then_some(named), has_covers),
            Err(_) => followed.begin(None),
        }
        followed.end();
    };
    let started = listen().and_then(|(listener, name)| {
        // It blocks in calls of the kernel that cannot be awaited, and ends with the program.
        let attending = std::thread::Builder::new().name("confined".to_owned()).stack_size(256 << 10);
        attending.spawn(|| attend(listener)).map(|_| name)
    });
    match started {
        Ok(name) => confinement.handover = Some(name),
        Err(error) => {
            life.begin(None);
            tracing::warn!("confined programs make no Unix sockets, nor are files covered again: {error}");
        }
    }
    confinement.own_sockets &= confinement.handover.is_some();
}

impl ConfinedLife {
    /// Whether the program and all that it has started have ended, or never started.
    pub fn is_over(&self) -> bool {
        match self.handed() {
            None => false,
            Some(None) => true,
            Some(Some(handed)) => has_ended(handed.calls.as_fd(), Some(Duration::ZERO)),
        }
    }

    /// The program has ended, or did not start. If all that it has started has ended too, so has its life.
    pub(super) fn settle(&self) {
        // The launcher has ended before it could hand over anything.
        self.begin(None);
        if self.is_over() {
            self.end();
        }
    }
}

/// A listener at a name that nobody guesses.
fn listen() -> io::Result<(UnixListener, String)> {
    let random = random::<16>().map_err(io::Error::other)?;
    let name = format!("toold-{}", random.iter().map(|byte| format!("{byte:02x}")).collect::<String>());
    let listener = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name)?)?;
    Ok((listener, name))
}

fn take_over(listener: &UnixListener, life: &ConfinedLife) -> io::Result<HandedOver> {
    let end = Instant::now() + START;
    loop {
        let left = end.saturating_duration_since(Instant::now());
        if !is_ready(listener.as_fd(), Some(left))? {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let (stream, _) = listener.accept()?;
        // The kernel lists the name for everybody, and other users may connect first.
        let peer = sockopt::socket_peercred(&stream)?;
        if peer.uid == geteuid()
            && let Ok(mut handed) = receive_from(&stream, peer.pid.as_raw_nonzero().get())
        {
            life.begin(handed.life());
            // The launcher waits for this.
            drop(stream);
            return Ok(handed);
        }
    }
}

fn receive_from(stream: &UnixStream, launcher: i32) -> io::Result<HandedOver> {
    stream.set_read_timeout(Some(START))?;
    let (mut calls, mut namespaces, mut covers, mut mounts) = (None, Vec::new(), None, None);
    for (letter, descriptor) in receive(stream)? {
        match letter {
            b'c' => calls = Some(descriptor),
            b'u' => namespaces.push(descriptor),
            b'm' => {
                let number = fstat(&descriptor)?.st_ino;
                mounts = Some(ProgramMounts { number, descriptor: descriptor.try_clone()? });
                namespaces.push(descriptor);
            }
            b'l' => covers = Some(descriptor),
            _ => {}
        }
    }
    let calls = calls.ok_or(io::ErrorKind::UnexpectedEof)?;
    Ok(HandedOver { calls, namespaces, mounts, covers, own: sockets::own_device(launcher) })
}

/// Waits until there is something to read. False when the time is over, or when nothing can come any more.
pub(super) fn is_ready(descriptor: BorrowedFd<'_>, time: Option<Duration>) -> io::Result<bool> {
    wait(descriptor, time).map(|found| found.contains(PollFlags::IN))
}

/// Whether nothing is at the other end any more. False when the time is over.
fn has_ended(calls: BorrowedFd<'_>, time: Option<Duration>) -> bool {
    wait(calls, time).is_ok_and(|found| found.contains(PollFlags::HUP))
}

/// The events of a descriptor; none when the time is over.
fn wait(descriptor: BorrowedFd<'_>, time: Option<Duration>) -> io::Result<PollFlags> {
    let time = time.and_then(|time| Timespec::try_from(time).ok());
    loop {
        let mut polled = [PollFd::from_borrowed_fd(descriptor, PollFlags::IN)];
        match poll(&mut polled, time.as_ref()) {
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
            Ok(_) => return Ok(polled[0].revents()),
        }
    }
}

impl HandedOver {
    fn life(&mut self) -> Option<HandedLife> {
        let mounts = Mutex::new(Some(Arc::new(self.mounts.take()?)));
        Some(HandedLife { calls: self.calls.try_clone().ok()?, mounts })
    }

    /// Returns when it and all that it has started have ended. `sockets`: those of others that it may connect to, if it may make
    /// sockets.
    fn attend(mut self, sockets: Option<Vec<PathBuf>>, has_covers: bool) {
        if sockets.is_none() && has_ended(self.calls.as_fd(), Some(SHORT)) {
            return;
        }
        let renewing = if has_covers { self.renew_covers() } else { None };
        if let Some(named) = sockets {
            HandedConnections { calls: &self.calls, own: self.own, named }.serve();
        }
        // It ends by itself.
        if let Some(Err(error)) = renewing.map(|mut renewing| renewing.wait()) {
            tracing::warn!("the process that covers files again: {error}");
        }
        has_ended(self.calls.as_fd(), None);
    }

    /// Starts the process that covers files again, until the program and all that it has started have ended.
    fn renew_covers(&mut self) -> Option<Child> {
        let covers = self.covers.take()?;
        let path = |descriptor: &OwnedFd| format!("/proc/{}/fd/{}", std::process::id(), descriptor.as_raw_fd()).into();
        let join: Vec<PathBuf> = self.namespaces.iter().map(path).collect();
        let calls = self.calls.try_clone().ok()?;
        let mut command = launcher::renew_command(&join);
        command.env_clear().current_dir("/").stdin(covers).stdout(calls).stderr(Stdio::null());
        let started = command.spawn();
        started.inspect_err(|error| tracing::warn!("files are not covered again beside a program: {error}")).ok()
    }
}
