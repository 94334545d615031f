//! The network namespace of a session: a process that makes one hands it to the daemon and ends; programs enter it.
//!
//! Sockets belong to the namespace that they were made in, whoever uses them. So the listeners are made here, and the
//! daemon, which stays outside, accepts their connections.

use std::ffi::OsString;
use std::fs::File;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, TcpListener, UdpSocket};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use super::mounts::create;
use super::system::{self, MAX_SENT, NEW_NETWORK};

/// Where the guard listens: at an address of its own, so that it takes no port of `localhost`.
const GUARD: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

/// Makes a namespace, or with `--join` enters one that exists, makes the listeners, and sends their descriptors through
/// the socket at standard input. The arguments are the namespaces to enter and the ports of this machine to listen at.
///
/// The text of the message has one letter for each descriptor: `n` the network namespace, `u` the user namespace that
/// owns it, `g` the listener of the guard, `p` a listener at one of the ports.
pub(super) fn serve(arguments: impl Iterator<Item = OsString>) -> Result<(), String> {
    let (join, ports) = read(arguments)?;
    let mut sent = Vec::new();
    if join.is_empty() {
        let owned = create(NEW_NETWORK)?;
        loopback().map_err(|error| format!("can't start the loopback device: {error}"))?;
        sent.push((b'n', own("net")?));
        if owned {
            sent.push((b'u', own("user")?));
        }
        let guard = TcpListener::bind((GUARD, 0));
        sent.push((b'g', guard.map_err(|error| format!("can't listen in the namespace: {error}"))?.into()));
    } else {
        enter(&join)?;
    }
    for port in ports {
        // One that a program of the session has taken is its own.
        for address in [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)] {
            sent.extend(TcpListener::bind((address, port)).ok().map(|listener| (b'p', listener.into())));
        }
    }
    sent.truncate(MAX_SENT);
    let (letters, descriptors): (Vec<u8>, Vec<OwnedFd>) = sent.into_iter().unzip();
    let text = if letters.is_empty() { b"-".to_vec() } else { letters };
    system::send_descriptors(0, &text, &descriptors).map_err(|error| format!("can't hand over the namespace: {error}"))
}

fn read(mut arguments: impl Iterator<Item = OsString>) -> Result<(Vec<PathBuf>, Vec<u16>), String> {
    let (mut join, mut ports) = (Vec::new(), Vec::new());
    while let Some(argument) = arguments.next() {
        if argument == "--join" {
            join.push(arguments.next().ok_or("--join takes a namespace")?.into());
        } else {
            let port = argument.to_str().and_then(|port| port.parse().ok());
            ports.push(port.ok_or(format!("{} is not a port", argument.display()))?);
        }
    }
    Ok((join, ports))
}

fn own(kind: &str) -> Result<OwnedFd, String> {
    let path = Path::new("/proc/self/ns").join(kind);
    File::open(&path).map(OwnedFd::from).map_err(|error| format!("can't open {}: {error}", path.display()))
}

/// Starts the loopback device of this process's network.
pub(super) fn loopback() -> std::io::Result<()> {
    system::start_loopback(&UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?)
}

/// Enters the namespaces, in their order: the user namespace gives the right to enter the others.
pub(super) fn enter(namespaces: &[PathBuf]) -> Result<(), String> {
    let enter = || {
        // Within the user namespace, the daemon's descriptors can no longer be opened.
        let opened: Vec<File> = namespaces.iter().map(File::open).collect::<Result<_, _>>()?;
        opened.iter().try_for_each(system::enter)
    };
    enter().map_err(|error: std::io::Error| format!("can't enter the namespaces of the session: {error}"))
}
