//! Programs that you talk to over pipes for as long as they run, such as servers on stdio.

use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitOptions};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};
use tokio::time::{sleep, timeout};

use super::{ProcessCommand, RunningProcess, StartError, spawn};

/// Waits until the program has ended: for ever, where there is none. Cancel-safe; may be called again.
pub async fn ended(talker: &mut Option<PipedChild>) {
    match talker {
        Some(talker) => talker.ended().await,
        None => std::future::pending().await,
    }
}

/// A program that runs. Dropped, it is killed, with all that it started.
pub struct PipedChild {
    running: RunningProcess,
    grace: Duration,
    exited: bool,
}

/// Its ends. What is not read holds it up.
pub struct ChildPipes {
    pub stdin: ChildStdin,
    pub stdout: ChildStdout,
    pub stderr: ChildStderr,
}

/// Starts a program in a session of its own. Neither `stdin` nor `timeout` nor `keep` of the command counts.
///
/// # Errors
/// When it cannot be started.
pub fn start_piped(command: ProcessCommand) -> Result<(PipedChild, ChildPipes), StartError> {
    let grace = command.grace;
    let mut running = spawn(command, Stdio::piped())?;
    let child = &mut running.child;
    let pipes = child.stdin.take().zip(child.stdout.take()).zip(child.stderr.take());
    let ((stdin, stdout), stderr) = pipes.expect("all three are made as pipes, and nobody took them yet");
    Ok((PipedChild { running, grace, exited: false }, ChildPipes { stdin, stdout, stderr }))
}

impl PipedChild {
    pub fn pid(&self) -> u32 {
        self.running.pid.as_raw_nonzero().get().unsigned_abs()
    }

    /// Waits until the program has ended. Cancel-safe; may be called again.
    pub async fn ended(&mut self) {
        if !self.exited {
            self.running.exit.wait(&mut self.running.child).await;
            self.exited = true;
        }
    }

    /// Ends the program and all that it started: waits for it to go by itself, which its closed stdin may tell it
    /// to, then TERM, then KILL, each after the command's grace. Gives how it ended.
    pub async fn end(mut self) -> Option<ExitStatus> {
        let grace = self.grace;
        for signal in [Signal::TERM, Signal::KILL] {
            if timeout(grace, self.ended()).await.is_ok() {
                break;
            }
            self.running.signal_all(signal).await;
        }
        // A program that KILL does not end is waited for by the kernel, and no longer by us.
        let _ = timeout(grace, self.ended()).await;
        if self.exited {
            // Those too that left its group, and before the group's number can be another's.
            let left = self.running.descendants().await;
            self.running.signal_all(Signal::KILL).await;
            let status = self.running.reap().await;
            self.running.end_rest().await;
            reap_orphans(left).await;
            return status;
        }
        None
    }
}

/// Waits for processes that were killed, where orphans are given to us: nobody else does.
async fn reap_orphans(killed: Vec<Pid>) {
    for pid in killed {
        for _ in 0..60 {
            // Fails for those that are somebody else's, or were waited for.
            match rustix::process::waitpid(Some(pid), WaitOptions::NOHANG) {
                Ok(None) => sleep(Duration::from_millis(5)).await,
                Ok(Some(_)) | Err(_) => break,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};

    use super::*;
    use crate::environment::Environment;

    fn shell(line: &str) -> ProcessCommand {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let mut command = ProcessCommand::shell(line, "/", Environment::default().with([("PATH", path)]));
        command.grace = Duration::from_millis(50);
        command
    }

    #[tokio::test]
    async fn a_program_that_is_told_so_ends_by_itself() {
        let (mut talker, mut pipes) = start_piped(shell("read line; echo \"heard $line\"; read line; exit 3")).unwrap();
        pipes.stdin.write_all(b"this\n").await.unwrap();
        let mut said = BufReader::new(&mut pipes.stdout).lines();
        assert_eq!(said.next_line().await.unwrap().as_deref(), Some("heard this"));
        drop(pipes.stdin);
        talker.ended().await;
        talker.ended().await;
        assert_eq!(talker.end().await.and_then(|status| status.code()), Some(3));
    }

    #[tokio::test]
    async fn nothing_outlives_a_program_that_is_ended() {
        let (talker, mut pipes) =
            start_piped(shell("trap '' TERM; setsid sleep 1000 & echo $!; sleep 1000; sleep 1000")).unwrap();
        let mut said = BufReader::new(&mut pipes.stdout).lines();
        let child = said.next_line().await.unwrap().unwrap();
        let leader = talker.pid();
        talker.end().await;
        for pid in [child, leader.to_string()] {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            assert!(stat.is_empty() || stat.contains(") Z "), "{stat}");
        }
    }
}
