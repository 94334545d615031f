//! The socket at the other end of a connection from this machine.
//!
//! Browsers send a cookie to every port of its host, so a server of another user, or of a tool, can get to know one. It
//! is of no use to them while the page is served to its own user's programs only.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::Duration;

/// The table may miss a line while it changes.
const TRIES: u32 = 5;
const TRY_AGAIN: Duration = Duration::from_millis(10);

/// A socket that a process of this machine has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LocalSocket {
    /// The id of the user who made it.
    pub(super) user: u32,
    /// As `/proc/PID/fd` names it. 0 when all processes have closed it: the kernel then sends what is left.
    pub(super) inode: u64,
}

/// Where the other end of a connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OtherEnd {
    /// On another machine, or on a system that does not say.
    Elsewhere,
    Here(LocalSocket),
    /// On this machine, and no process has it any more.
    Closed,
}

/// Looks up the other end of a connection from `peer` to `local`.
pub(super) async fn other_end(peer: SocketAddr, local: SocketAddr) -> OtherEnd {
    if !cfg!(target_os = "linux") {
        return OtherEnd::Elsewhere;
    }
    for attempt in 0..TRIES {
        if attempt > 0 {
            tokio::time::sleep(TRY_AGAIN).await;
        }
        let found = tokio::task::spawn_blocking(move || look(peer, local)).await;
        match found.unwrap_or(OtherEnd::Closed) {
            OtherEnd::Closed => {}
            found => return found,
        }
    }
    OtherEnd::Closed
}

fn look(peer: SocketAddr, local: SocketAddr) -> OtherEnd {
    // A socket of IPv6 may speak IPv4.
    let socket = ["/proc/net/tcp", "/proc/net/tcp6"].iter().find_map(|table| {
        let table = std::fs::read_to_string(table).ok()?;
        table.lines().skip(1).find_map(|line| socket_in(line, peer, local))
    });
    match socket {
        Some(socket) if socket.inode != 0 => OtherEnd::Here(socket),
        None if !is_here(peer, local) => OtherEnd::Elsewhere,
        Some(_) | None => OtherEnd::Closed,
    }
}

/// Whether the address of `peer` is one of this machine's.
fn is_here(peer: SocketAddr, local: SocketAddr) -> bool {
    let (from, to) = (peer.ip().to_canonical(), local.ip().to_canonical());
    if from.is_loopback() || from == to {
        return true;
    }
    // To an address of its own, a machine sends from that address. Nothing is sent: the system only chooses the way.
    let any = if from.is_ipv4() { IpAddr::V4(Ipv4Addr::UNSPECIFIED) } else { IpAddr::V6(Ipv6Addr::UNSPECIFIED) };
    let Ok(socket) = UdpSocket::bind((any, 0)) else { return true };
    let chosen = socket.connect(canonical(peer)).and_then(|()| socket.local_addr());
    chosen.is_ok_and(|chosen| chosen.ip().to_canonical() == from)
}

/// The socket of a line of the table, if it is that of the connection.
fn socket_in(line: &str, peer: SocketAddr, local: SocketAddr) -> Option<LocalSocket> {
    let mut words = line.split_ascii_whitespace().skip(1);
    let is = |word: Option<&str>, address: SocketAddr| {
        word.and_then(parse).is_some_and(|(ip, port)| ip == address.ip().to_canonical() && port == address.port())
    };
    // The table is that of the other end: its own address comes first.
    if !(is(words.next(), peer) && is(words.next(), local)) {
        return None;
    }
    let user = words.nth(4)?.parse().ok()?;
    let inode = words.nth(1)?.parse().ok()?;
    Some(LocalSocket { user, inode })
}

/// The same address, of IPv4 where IPv6 only wraps it. The zone of a link-local address stays.
fn canonical(address: SocketAddr) -> SocketAddr {
    match address.ip().to_canonical() {
        IpAddr::V4(ip) => SocketAddr::from((ip, address.port())),
        IpAddr::V6(_) => address,
    }
}

/// An address as `proc_net_tcp(5)` has it: words of 32 bits in the order of this machine's bytes.
fn parse(text: &str) -> Option<(IpAddr, u16)> {
    let (ip, port) = text.split_once(':')?;
    let words = ip.as_bytes().chunks(8).map(|word| u32::from_str_radix(std::str::from_utf8(word).ok()?, 16).ok());
    let bytes: Vec<u8> = words.collect::<Option<Vec<u32>>>()?.into_iter().flat_map(u32::to_ne_bytes).collect();
    let ip = match bytes.len() {
        4 => IpAddr::V4(Ipv4Addr::from(<[u8; 4]>::try_from(bytes).ok()?)),
        _ => IpAddr::V6(Ipv6Addr::from(<[u8; 16]>::try_from(bytes).ok()?)),
    };
    Some((ip.to_canonical(), u16::from_str_radix(port, 16).ok()?))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[tokio::test]
    async fn both_families_are_found() {
        for (bind, name) in [("127.0.0.1:0", "127.0.0.1"), ("[::1]:0", "::1"), ("[::]:0", "127.0.0.1")] {
            // A machine may have no IPv6.
            let Ok(listener) = TcpListener::bind(bind) else { continue };
            let port = listener.local_addr().unwrap().port();
            let client = TcpStream::connect((name, port)).unwrap();
            let (served, peer) = listener.accept().unwrap();
            let found = other_end(peer, served.local_addr().unwrap()).await;
            let own = rustix::process::geteuid().as_raw();
            assert!(matches!(found, OtherEnd::Here(socket) if socket.user == own), "{bind}: {found:?}");
            drop(client);
            assert_eq!(other_end(peer, served.local_addr().unwrap()).await, OtherEnd::Closed, "{bind}");
        }
    }

    #[tokio::test]
    async fn other_addresses_of_this_machine_are_here_too() {
        // 127.0.0.2 to 127.0.0.1 stands for two addresses of one machine.
        let local = SocketAddr::from((Ipv4Addr::LOCALHOST, 1));
        assert_eq!(other_end(SocketAddr::from(([127, 0, 0, 2], 1)), local).await, OtherEnd::Closed);
        // An address for documentation (RFC 5737), which is nobody's.
        assert_eq!(other_end(SocketAddr::from(([192, 0, 2, 1], 1)), local).await, OtherEnd::Elsewhere);
        let outward = UdpSocket::bind("0.0.0.0:0").unwrap();
        // A machine without a network has no other address.
        if outward.connect("192.0.2.1:9").is_ok() {
            let own = SocketAddr::new(outward.local_addr().unwrap().ip(), 1);
            assert_eq!(other_end(own, local).await, OtherEnd::Closed);
        }
    }

    #[test]
    fn lines_are_compared_as_a_whole() {
        let line = "   1: 0100007F:A0E4 0100007F:1CB1 01 00000000:00000000 00:00000000 00000000  1001        0 5 1 0";
        let at = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let (peer, local) = (at(0xa0e4), at(0x1cb1));
        if cfg!(target_endian = "little") {
            assert_eq!(socket_in(line, peer, local), Some(LocalSocket { user: 1001, inode: 5 }));
        }
        assert_eq!(socket_in(line, local, peer), None);
        assert_eq!(socket_in(line, peer, at(1)), None);
        assert_eq!(socket_in("", peer, local), None);
    }
}
