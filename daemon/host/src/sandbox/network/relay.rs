//! Passes bytes on between a program and a host, and counts them.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{ReadHalf, WriteHalf};
use toold_proto::audit::HostTraffic;

/// A larger one is no faster.
const BUFFER: usize = 128 * 1024;

/// What a call has exchanged with a host so far.
#[derive(Default)]
pub(super) struct TrafficCounter {
    pub(super) connections: AtomicU64,
    pub(super) sent: AtomicU64,
    pub(super) received: AtomicU64,
}

impl TrafficCounter {
    pub(super) fn total(&self) -> HostTraffic {
        HostTraffic {
            connections: self.connections.load(Ordering::Relaxed),
            sent_bytes: self.sent.load(Ordering::Relaxed),
            received_bytes: self.received.load(Ordering::Relaxed),
        }
    }
}

/// Passes everything on in both directions, until both have ended or one has failed. One that ends first stays closed
/// while the other goes on.
pub(super) async fn both_ways(client: &mut TcpStream, host: &mut TcpStream, counter: &TrafficCounter) {
    let (from_client, to_client) = client.split();
    let (from_host, to_host) = host.split();
    // An error is the end of the connection, of which both sides learn.
    let _ = tokio::try_join!(
        pass_on(from_client, to_host, &counter.sent),
        pass_on(from_host, to_client, &counter.received),
    );
}

async fn pass_on(mut from: ReadHalf<'_>, mut to: WriteHalf<'_>, counter: &AtomicU64) -> io::Result<()> {
    let mut buffer = vec![0; BUFFER];
    loop {
        let read = from.read(&mut buffer).await?;
        if read == 0 {
            return to.shutdown().await;
        }
        to.write_all(&buffer[..read]).await?;
        counter.fetch_add(read as u64, Ordering::Relaxed);
    }
}
