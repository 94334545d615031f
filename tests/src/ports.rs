//! Ports for servers that a test stops and starts again.

use std::net::{Ipv4Addr, TcpListener};
use std::sync::atomic::{AtomicU16, Ordering};

/// A free port of 127.0.0.1 that no other program gets while the server is stopped: the system chooses ports from 32768
/// on for those that ask for any.
pub fn lasting_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    loop {
        // Tests that run at the same time in processes of their own begin at ports that are far apart.
        let begin = (std::process::id() % 10_000 * 97 % 10_000) as u16;
        let port = 20_000 + (begin + NEXT.fetch_add(1, Ordering::Relaxed) % 10_000) % 10_000;
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return port;
        }
    }
}
