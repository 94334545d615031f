//! Long-running programs that communicate over pipes, such as servers on stdio.

use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitOptions};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};
use tokio::time::{sleep, timeout};

use super::{ProcessCommand, RunningProcess, StartError, spawn};

/// Waits until the program has ended; forever if there is none. Cancel-safe; may be called again.
pub async fn ended(talker: &mut Option<PipedChild>) {
    match talker {
        Some(talker) => talker.ended().await,
        None => std::future::pending().await,
    }
}

/// A running program. Dropping it kills it with all processes that it started.
pub struct PipedChild {
    running: RunningProcess,
    grace: Duration,
    exited: bool,
}

/// Our ends of its pipes. The program blocks if they are not read.
pub struct ChildPipes {
    pub stdin: ChildStdin,
    pub stdout: ChildStdout,
    pub stderr: ChildStderr,
}

/// Starts a program in a session of its own. Ignores `stdin`, `timeout` and `keep` of the command.
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

    /// Ends the program and all processes that it started. First waits for it to exit by itself, which its closed stdin
    /// may trigger, then sends TERM, then KILL, each after the command's grace period. Returns how it ended.
    pub async fn end(mut self) -> Option<ExitStatus> {
        let grace = self.grace;
        for signal in [Signal::TERM, Signal::KILL] {
            if timeout(grace, self.ended()).await.is_ok() {
                break;
            }
            self.running.signal_all(signal).await;
        }
        // A program that survives KILL is stuck in the kernel; we stop waiting for it.
        let _ = timeout(grace, self.ended()).await;
        if self.exited {
            // Includes processes that left its group. Must happen before the group's id can be reused.
            let left = self.running.descendants().await;
            self.running.signal_all(Signal::KILL).await;
            let status = self.running.reap().await;
            self.running.end_rest(Vec::new()).await;
            reap_orphans(left).await;
            return status;
        }
        None
    }
}

/// Reaps killed processes if this process adopts orphans: no one else does.
async fn reap_orphans(killed: Vec<Pid>) {
    for pid in killed {
        for _ in 0..60 {
            // Fails for processes that are not our children or were already reaped.
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
    async fn program_ends_by_itself_when_stdin_closes() {
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
            let is_gone = || {
                let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
                stat.is_empty() || stat.contains(") Z ")
            };
            // The kernel ends a killed process soon, not at once.
            let gone = async {
                while !is_gone() {
                    tokio::time::sleep(Duration::from_millis(2)).await;
                }
            };
            tokio::time::timeout(Duration::from_secs(60), gone).await.expect("the process lives on");
        }
    }
}
