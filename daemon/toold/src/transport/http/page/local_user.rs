//! The user at the other end of a connection from this machine.
//!
//! Browsers send a cookie to every port of its host, so a server of another user of this machine can get to know one. It
//! is of no use to that user while the page serves none but its own.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The id of the user whose process has the socket at `peer`, connected to `local`; `None` when it is on another
/// machine or the system does not say.
pub(super) async fn user_of(peer: SocketAddr, local: SocketAddr) -> Option<u32> {
    let look = move || {
        // A socket of IPv6 may speak IPv4.
        ["/proc/net/tcp", "/proc/net/tcp6"].iter().find_map(|table| {
            let table = std::fs::read_to_string(table).ok()?;
            table.lines().skip(1).find_map(|line| user_in(line, peer, local))
        })
    };
    tokio::task::spawn_blocking(look).await.ok().flatten()
}

/// The user of a line of the table, if it is that of the connection.
fn user_in(line: &str, peer: SocketAddr, local: SocketAddr) -> Option<u32> {
    let mut words = line.split_ascii_whitespace().skip(1);
    let is = |word: Option<&str>, address: SocketAddr| word.and_then(parse) == Some(canonical(address));
    // The table is that of the other end: its own address comes first.
    let is_it = is(words.next(), peer) && is(words.next(), local);
    is_it.then(|| words.nth(4)?.parse().ok())?
}

fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// An address as `proc_net_tcp(5)` has it: words of 32 bits in the order of this machine's bytes.
fn parse(text: &str) -> Option<SocketAddr> {
    let (ip, port) = text.split_once(':')?;
    let words = ip.as_bytes().chunks(8).map(|word| u32::from_str_radix(std::str::from_utf8(word).ok()?, 16).ok());
    let bytes: Vec<u8> = words.collect::<Option<Vec<u32>>>()?.into_iter().flat_map(u32::to_ne_bytes).collect();
    let ip = match bytes.len() {
        4 => IpAddr::V4(Ipv4Addr::from(<[u8; 4]>::try_from(bytes).ok()?)),
        _ => IpAddr::V6(Ipv6Addr::from(<[u8; 16]>::try_from(bytes).ok()?)),
    };
    Some(SocketAddr::new(ip.to_canonical(), u16::from_str_radix(port, 16).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn both_families_are_found() {
        for (bind, name) in [("127.0.0.1:0", "127.0.0.1"), ("[::1]:0", "::1"), ("[::]:0", "127.0.0.1")] {
            // A machine may have no IPv6.
            let Ok(listener) = std::net::TcpListener::bind(bind) else { continue };
            let port = listener.local_addr().unwrap().port();
            let client = std::net::TcpStream::connect((name, port)).unwrap();
            let (served, peer) = listener.accept().unwrap();
            let user = user_of(peer, served.local_addr().unwrap()).await;
            assert_eq!(user, Some(rustix::process::geteuid().as_raw()), "{bind}");
            drop(client);
        }
    }

    #[test]
    fn lines_are_compared_as_a_whole() {
        let line = "   1: 0100007F:A0E4 0100007F:1CB1 01 00000000:00000000 00:00000000 00000000  1001        0 5 1 0";
        let at = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let (peer, local) = (at(0xa0e4), at(0x1cb1));
        if cfg!(target_endian = "little") {
            assert_eq!(user_in(line, peer, local), Some(1001));
        }
        assert_eq!(user_in(line, local, peer), None);
        assert_eq!(user_in(line, peer, at(1)), None);
        assert_eq!(user_in("", peer, local), None);
    }
}
