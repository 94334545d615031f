//! `toolctl connect`: the daemon's socket on stdin and stdout, for programs that start their own server.

use std::io;
use std::time::Duration;

use clap::Args;
use tokio::io::{AsyncRead, AsyncWriteExt, copy, stdin, stdout};
use tokio::net::UnixStream;
use toold_client::client::connect_stream;

use crate::connection;
use crate::exit::OK;
use crate::globals::Globals;

/// Connect stdin and stdout to the daemon
///
/// For editors and agents that start their own server: set `toolctl connect` as its command. Ends when the daemon
/// closes the connection or the program that started it is gone.
#[derive(Debug, Args)]
pub(crate) struct ConnectArgs {}

pub(crate) async fn run(_: ConnectArgs, globals: &Globals) -> anyhow::Result<u8> {
    let socket = connection::socket(globals)?;
    // Starts the daemon if needed, and keeps it from exiting because it has no clients.
    let client = connection::open(globals).await?;
    let stream = connect_stream(&socket).await?;
    drop(client);
    pass(stream, stdin()).await?;
    Ok(OK)
}

/// How often a client that sends nothing more is checked for whether it still reads.
pub(crate) const LISTENS_CHECK: Duration = Duration::from_millis(50);

/// Passes bytes both ways until the daemon closes the connection, or the reader of stdout is gone.
async fn pass(mut stream: UnixStream, mut input: impl AsyncRead + Unpin) -> io::Result<()> {
    let (mut from_daemon, mut to_daemon) = stream.split();
    let upstream = async {
        copy(&mut input, &mut to_daemon).await?;
        // The answers to what was sent last are still to come.
        to_daemon.shutdown().await
    };
    let (mut input, mut output) = (std::pin::pin!(upstream), stdout());
    let mut downstream = std::pin::pin!(copy(&mut from_daemon, &mut output));
    let mut sending = true;
    loop {
        // Both copies are kept across turns, so nothing that was read is dropped.
        tokio::select! {
            biased;
            done = &mut downstream => {
                done?;
                return Ok(());
            }
            done = &mut input, if sending => {
                // When the daemon closes its end, the downstream copy ends too.
                sending = false;
                let _ = done;
            }
            // The input has ended already, so only a check of stdout shows whether the client is there: the calls of a
            // client that is gone must not keep running.
            () = tokio::time::sleep(LISTENS_CHECK), if !sending => {
                if stdout_is_closed() {
                    return Ok(());
                }
            }
        }
    }
}

/// Whether the other end of stdout is gone for good.
pub(crate) fn stdout_is_closed() -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let stdout = io::stdout();
    let mut fds = [PollFd::new(&stdout, PollFlags::empty())];
    match poll(&mut fds, Some(&Timespec::default())) {
        Ok(_) => fds[0].revents().intersects(PollFlags::HUP | PollFlags::ERR),
        Err(_) => false,
    }
}
