//! Runs programs in a terminal of their own. [`crate::process`] uses it.

use std::io;

use pty_process::{OwnedReadPty, OwnedWritePty, Size};
use rustix::termios::{LocalModes, OptionalActions, OutputModes, tcgetattr, tcsetattr};
use tokio::io::AsyncWriteExt;
use tokio::process::{Child, Command};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use toold_proto::shell::TerminalSize;

/// The end-of-input key of a terminal in its initial state.
const END: u8 = 4;

pub(crate) struct Spawned {
    pub(crate) child: Child,
    pub(crate) output: OwnedReadPty,
    /// Writes the input and changes the size. Ends with the program, or is aborted.
    pub(crate) writer: JoinHandle<()>,
}

/// Starts a program as the leader of a new session, in a new terminal.
pub(crate) fn spawn(
    command: Command,
    size: watch::Receiver<TerminalSize>,
    input: Option<mpsc::Receiver<Vec<u8>>>,
) -> io::Result<Spawned> {
    let other = |error: pty_process::Error| match error {
        pty_process::Error::Io(error) => error,
        error => io::Error::other(error),
    };
    let (terminal, program_end) = pty_process::open().map_err(other)?;
    terminal.resize(to_size(*size.borrow())).map_err(other)?;
    if input.is_none() {
        // No person watches the echo, and the output goes to a model.
        let mut modes = tcgetattr(&terminal)?;
        modes.local_modes -= LocalModes::ECHO;
        modes.output_modes -= OutputModes::ONLCR;
        tcsetattr(&terminal, OptionalActions::Now, &modes)?;
    }
    let child = pty_process::Command::from(command).spawn(program_end).map_err(other)?;
    let (output, keys) = terminal.into_split();
    let writer = tokio::spawn(write(keys, size, input));
    Ok(Spawned { child, output, writer })
}

async fn write(
    mut keys: OwnedWritePty,
    mut size: watch::Receiver<TerminalSize>,
    input: Option<mpsc::Receiver<Vec<u8>>>,
) {
    let Some(mut input) = input else {
        // Each ends the input for one reader; a line may have several readers.
        let _ = keys.write_all(&[END; 16]).await;
        return;
    };
    loop {
        tokio::select! {
            // A program that gets keys after a resize must see the new size.
            biased;
            changed = size.changed() => {
                let new = *size.borrow_and_update();
                if changed.is_err() || keys.resize(to_size(new)).is_err() {
                    return;
                }
            }
            bytes = input.recv() => match bytes {
                // A closed terminal has no reader.
                Some(bytes) => if keys.write_all(&bytes).await.is_err() {
                    return;
                },
                None => return,
            },
        }
    }
}

fn to_size(size: TerminalSize) -> Size {
    Size::new(size.rows, size.cols)
}
