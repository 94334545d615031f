//! Runs programs and kills every process that they leave behind.
//!
//! [`run`] runs a program to its end. [`piped_child`] starts a server that you talk to over pipes. The [`reaper`] process
//! kills what still runs when the daemon itself is killed.

pub mod piped_child;
pub mod reaper;

mod pipe;

use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use rustix::process::{Pid, Signal};
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncRead, AsyncWriteExt};
use tokio::net::unix::pipe::Receiver as PipeReceiver;
use tokio::process::Child;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;
use toold_engine::deadline::Deadline;
use toold_proto::call::Stream;
use toold_proto::shell::TerminalSize;

use crate::descendants::{self, CommandProcesses};
use crate::environment::Environment;
use crate::kept_programs::KeptPrograms;
use crate::launcher;
use crate::launcher::order::Confinement;
use crate::output_buffer::OutputBuffer;
use crate::process::pipe::{OutputPipe, read_either};
use crate::process::reaper::Ward;
use crate::process_registry::{StartedFor, TrackedProcess};
use crate::sandbox::network::call::CallNetwork;
use crate::sandbox::{ProgramStarter, attend};
use crate::terminal;
use crate::tool_mark;

/// A program to run.
#[derive(Clone, Debug)]
pub struct ProcessCommand {
    /// A path, or a name that is looked up in the absolute folders of the environment's `PATH`.
    pub program: OsString,
    pub args: Vec<OsString>,
    pub cwd: PathBuf,
    /// The child's complete environment; nothing else is inherited.
    pub environment: Environment,
    /// Closed when `None`.
    pub stdin: Option<Vec<u8>>,
    pub timeout: Option<Duration>,
    /// The grace period between TERM and KILL.
    pub grace: Duration,
    /// Bytes to keep of each stream; the middle of longer output is cut.
    pub keep: usize,
    /// The size of a terminal to use instead of pipes; it may change while the program runs. All output is stdout then.
    /// Without input, the program finds its input closed, and input is not echoed.
    pub terminal: Option<watch::Receiver<TerminalSize>>,
    /// Stdout and stderr are one pipe, so that what is written to both keeps its order. All output is stdout then.
    pub one_output: bool,
    /// The sandbox. With one, a failure to start the program itself cannot be detected from outside.
    pub confinement: Option<Confinement>,
    /// The network that it reaches by a guard, which ends with it. Its time limit stands still while a person is asked.
    pub network: Option<Arc<CallNetwork>>,
    /// The call for which it runs. Through the daemon, the program and its children may do no more than that call.
    /// `None` limits them to reading.
    pub started_for: Option<StartedFor>,
    /// With a list, processes that left the group are ended too, except the programs of the list and those below them.
    /// Without one, those that the program leaves behind in other groups keep running.
    pub kept: Option<Arc<KeptPrograms>>,
    /// Hears the output as bytes, before it becomes text.
    pub tap: Option<OutputTap>,
}

/// A function that hears the bytes of a program's output as they arrive.
#[derive(Clone)]
pub struct OutputTap(Arc<HearBytes>);

type HearBytes = dyn Fn(Stream, &[u8]) + Send + Sync;

impl OutputTap {
    pub fn new(hear: impl Fn(Stream, &[u8]) + Send + Sync + 'static) -> Self {
        Self(Arc::new(hear))
    }

    fn hear(&self, stream: Stream, bytes: &[u8]) {
        (self.0)(stream, bytes);
    }
}

impl std::fmt::Debug for OutputTap {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("OutputTap")
    }
}

impl ProcessCommand {
    pub fn new(program: impl Into<OsString>, cwd: impl Into<PathBuf>, environment: Environment) -> Self {
        Self {
            program: program.into(),
            args: Vec::new(),
            cwd: cwd.into(),
            environment,
            stdin: None,
            timeout: None,
            grace: Duration::from_secs(1),
            keep: 1024 * 1024,
            terminal: None,
            one_output: false,
            confinement: None,
            network: None,
            started_for: None,
            kept: None,
            tap: None,
        }
    }

    /// A command line for `bash`, which reads no start-up files: what was checked is what runs.
    pub fn shell(line: &str, cwd: impl Into<PathBuf>, environment: Environment) -> Self {
        // The usual path if it exists, not whatever a session's `PATH` has under that name.
        let bash = ["/bin/bash", "/usr/bin/bash"].into_iter().find(|path| Path::new(path).exists()).unwrap_or("bash");
        Self::new(bash, cwd, environment).args(["--noprofile", "--norc", "-c", line])
    }

    pub fn args<A: Into<OsString>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }
}

/// How a program ended, and its output.
#[derive(Debug)]
pub struct ProcessOutput {
    pub ending: ProcessEnding,
    /// The exit code; `None` when a signal ended it.
    pub code: Option<i32>,
    pub signal: Option<i32>,
    pub stdout: OutputBuffer,
    pub stderr: OutputBuffer,
    /// Processes were left behind and were ended.
    pub left_behind: bool,
    pub duration: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessEnding {
    /// It exited by itself.
    Exited,
    TimedOut,
    Cancelled,
}

/// Why a program did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("there is no program {0}")]
    NotFound(String),
    #[error("can't run in {}: it is not a folder, or it cannot be entered", .0.display())]
    NoFolder(PathBuf),
    #[error(
        "can't start {0}: the command line is longer than the system takes, 128 KiB for one argument; write what is long \
         into a file, and name that"
    )]
    TooLong(String),
    #[error("can't start {program}: {source}")]
    System { program: String, source: std::io::Error },
}

impl StartError {
    fn of_system(program: String, source: std::io::Error) -> Self {
        match source.kind() {
            std::io::ErrorKind::ArgumentListTooLong => Self::TooLong(program),
            _ => Self::System { program, source },
        }
    }
}

/// After the program has ended: how long its pipes must be silent before we stop waiting for other processes that hold
/// them.
const QUIET: Duration = Duration::from_millis(250);
/// The upper limits of that wait: normally, and when the program was ended from outside.
const DRAIN: Duration = Duration::from_secs(2);
const DRAIN_ENDED: Duration = Duration::from_millis(50);
/// Longer than any program runs.
const FAR: Duration = Duration::from_secs(365 * 24 * 3600);

/// Runs a program to its end. `on_output` receives the output as it arrives: text of any length, never cut inside a
/// character.
///
/// The program gets a session of its own, or a process group if the system has no `setsid` program. When `cancel` fires
/// or the time limit expires, all its processes get TERM and, after the grace period, KILL, including those that left
/// the group. The result contains the output until then. When the program ends by itself, processes left in its group
/// are ended, and with [`ProcessCommand::kept`] all others that it left behind. Dropping the future kills at once.
///
/// # Errors
/// When the program cannot be started. A program that fails is not an error: see [`ProcessOutput`].
pub async fn run(
    mut command: ProcessCommand,
    cancel: &CancellationToken,
    on_output: impl FnMut(Stream, &str),
) -> Result<ProcessOutput, StartError> {
    let input = command.stdin.take().map(|bytes| {
        let (sender, receiver) = mpsc::channel(1);
        // The channel has room for one, and this is the only one.
        let _ = sender.try_send(bytes);
        receiver
    });
    run_with_input(command, input, cancel, on_output).await
}

/// As [`run`], with input that arrives while it runs. Stdin is closed when the channel is, or if there is no channel.
/// Ignores `command.stdin`. If the program does not read, the input stays in the channel.
///
/// # Errors
/// As [`run`].
pub async fn run_with_input(
    mut command: ProcessCommand,
    input: Option<mpsc::Receiver<Vec<u8>>>,
    cancel: &CancellationToken,
    mut on_output: impl FnMut(Stream, &str),
) -> Result<ProcessOutput, StartError> {
    let started = Instant::now();
    let ProcessCommand { timeout, grace, keep, .. } = command;
    let kept = command.kept.clone();
    let tap = command.tap.clone();
    let network = command.network.clone();
    let _attended = command.confinement.as_mut().map(|confinement| attend(confinement, ProgramStarter::Daemon));
    let mut running = start(command, input)?;
    running.kept = kept;
    let mut stdout = OutputPipe::new(Stream::Stdout, running.stdout.take(), keep, tap.clone());
    let mut stderr = OutputPipe::new(Stream::Stderr, running.stderr.take(), keep, tap);

    let mut ending = ProcessEnding::Exited;
    let far = started + FAR;
    let time = Arc::new(Deadline::after(timeout.unwrap_or(FAR)));
    if let Some(network) = &network {
        network.limited_by(time.clone());
    }
    let mut kill_at = far;
    let mut exited: Option<Instant> = None;
    let mut last_output = started;
    loop {
        if exited.is_some() && stdout.closed() && stderr.closed() {
            break;
        }
        let drained = exited.map_or(far, |at| match ending {
            ProcessEnding::Exited => (at.max(last_output) + QUIET).min(at + DRAIN),
            ProcessEnding::TimedOut | ProcessEnding::Cancelled => at + DRAIN_ENDED,
        });
        tokio::select! {
            biased;
            () = cancel.cancelled(), if ending == ProcessEnding::Exited && exited.is_none() => {
                ending = ProcessEnding::Cancelled;
                running.signal_all(Signal::TERM).await;
                kill_at = Instant::now() + grace;
            }
            () = time.over(), if timeout.is_some() && ending == ProcessEnding::Exited && exited.is_none() => {
                ending = ProcessEnding::TimedOut;
                running.signal_all(Signal::TERM).await;
                kill_at = Instant::now() + grace;
            }
            () = sleep_until(kill_at), if exited.is_none() => {
                running.signal_all(Signal::KILL).await;
                kill_at = far;
            }
            () = running.exit.wait(&mut running.child), if exited.is_none() => exited = Some(Instant::now()),
            () = sleep_until(drained), if exited.is_some() => break,
            () = read_either(&mut stdout, &mut stderr, &mut on_output), if !(stdout.closed() && stderr.closed()) => {
                last_output = Instant::now();
            }
        }
    }
    stdout.finish(&mut on_output);
    stderr.finish(&mut on_output);
    if ending != ProcessEnding::Exited {
        running.signal_all(Signal::KILL).await;
    }
    let elsewhere = running.left_elsewhere().await;
    let status = running.reap().await;
    let left_behind = running.end_rest(elsewhere).await;
    use std::os::unix::process::ExitStatusExt;
    Ok(ProcessOutput {
        ending,
        code: status.and_then(|status| status.code()),
        signal: status.and_then(|status| status.signal()),
        stdout: stdout.kept,
        stderr: stderr.kept,
        left_behind: left_behind && ending == ProcessEnding::Exited,
        duration: started.elapsed(),
    })
}

fn start(command: ProcessCommand, input: Option<mpsc::Receiver<Vec<u8>>>) -> Result<RunningProcess, StartError> {
    if let Some(size) = command.terminal.clone() {
        return start_at_terminal(command, size, input);
    }
    let stdin = if input.is_some() { Stdio::piped() } else { Stdio::null() };
    let both = command.one_output;
    let mut running = if both { spawn_with_one_output(command, stdin)? } else { spawn(command, stdin)? };
    running.writer = input.zip(running.child.stdin.take()).map(|(mut input, mut stdin)| {
        tokio::spawn(async move {
            while let Some(bytes) = input.recv().await {
                if stdin.write_all(&bytes).await.is_err() {
                    // The program has closed its input: the closed channel tells the sender that its input is lost.
                    break;
                }
            }
        })
    });
    if !both {
        running.stdout = running.child.stdout.take().map(|stdout| Box::new(stdout) as ProcessStream);
    }
    running.stderr = running.child.stderr.take().map(|stderr| Box::new(stderr) as ProcessStream);
    Ok(running)
}

fn start_at_terminal(
    command: ProcessCommand,
    size: watch::Receiver<TerminalSize>,
    input: Option<mpsc::Receiver<Vec<u8>>>,
) -> Result<RunningProcess, StartError> {
    let program = command.program.display().to_string();
    let started_for = command.started_for.clone();
    let Prepared { mut system, processes, ward } = prepare(&command)?;
    if command.environment.get("TERM").is_none_or(|term| term == "dumb") {
        system.env("TERM", "xterm-256color");
    }
    let start = || terminal::spawn(system, size, input);
    let spawned = start_for(started_for, &processes, start, |spawned| spawned.child.id());
    let (spawned, known) = spawned.map_err(|source| StartError::of_system(program, source))?;
    let mut running = RunningProcess::new(spawned.child, processes, known, ward);
    running.writer = Some(spawned.writer);
    running.stdout = Some(Box::new(spawned.output));
    Ok(running)
}

/// With one pipe for all its output.
fn spawn_with_one_output(command: ProcessCommand, stdin: Stdio) -> Result<RunningProcess, StartError> {
    let program = command.program.display().to_string();
    let failed = |source| StartError::of_system(program.clone(), source);
    let (reader, writer) = std::io::pipe().map_err(failed)?;
    let output = PipeReceiver::from_owned_fd(reader.into()).map_err(failed)?;
    let other = writer.try_clone().map_err(failed)?;
    // The daemon's own ends of the pipe are closed when the command is dropped.
    let mut running = spawn_with(command, stdin, (writer.into(), other.into()))?;
    running.stdout = Some(Box::new(output));
    Ok(running)
}

/// With pipes for its output, which are still in the child.
fn spawn(command: ProcessCommand, stdin: Stdio) -> Result<RunningProcess, StartError> {
    spawn_with(command, stdin, (Stdio::piped(), Stdio::piped()))
}

fn spawn_with(
    command: ProcessCommand,
    stdin: Stdio,
    (stdout, stderr): (Stdio, Stdio),
) -> Result<RunningProcess, StartError> {
    let program = command.program.display().to_string();
    let Prepared { mut system, processes, ward } = prepare(&command)?;
    system.stdin(stdin).stdout(stdout).stderr(stderr);
    let spawned = start_for(command.started_for, &processes, || system.spawn(), Child::id);
    let (child, known) = spawned.map_err(|source| StartError::of_system(program, source))?;
    Ok(RunningProcess::new(child, processes, known, ward))
}

fn start_for<T>(
    started_for: Option<StartedFor>,
    processes: &CommandProcesses,
    spawn: impl FnOnce() -> std::io::Result<T>,
    pid_of: impl FnOnce(&T) -> Option<u32>,
) -> std::io::Result<(T, Option<TrackedProcess>)> {
    match started_for {
        Some(started_for) => started_for.start(processes, spawn, pid_of),
        None => Ok((spawn()?, None)),
    }
}

struct Prepared {
    system: tokio::process::Command,
    /// Without their leader, which has not started.
    processes: CommandProcesses,
    ward: Ward,
}

fn prepare(command: &ProcessCommand) -> Result<Prepared, StartError> {
    let program = command.program.display().to_string();
    if !command.cwd.is_dir() {
        return Err(StartError::NoFolder(command.cwd.clone()));
    }
    let Some(path) = find_program(command) else { return Err(StartError::NotFound(program)) };
    let mark = descendants::new_mark();
    let setsid = ["/usr/bin/setsid", "/bin/setsid"].into_iter().find(|path| Path::new(path).exists());
    let tool_mark = tool_mark::own();
    let mut system = match setsid {
        // The launcher creates the session and sets the mark before it becomes the program.
        _ if command.confinement.is_some() || tool_mark.is_some() => {
            launcher::command(&path, tool_mark, command.confinement.as_ref()).into()
        }
        // For processes that do not mark what they start, such as tests.
        // With a terminal it leads a session of its own.
        _ if command.terminal.is_some() => tokio::process::Command::new(&path),
        // Without a terminal to read from, a program that asks for a password fails instead of waiting.
        Some(setsid) => {
            let mut system = tokio::process::Command::new(setsid);
            system.arg(&path);
            system
        }
        None => {
            let mut system = tokio::process::Command::new(&path);
            system.process_group(0);
            system
        }
    };
    system
        .args(&command.args)
        .current_dir(&command.cwd)
        .env_clear()
        .envs(command.environment.iter())
        .env("PWD", &command.cwd)
        .env(descendants::MARK, &mark)
        .kill_on_drop(true);
    let ward = Ward::new(&mark);
    let lives = command.confinement.iter().filter_map(|confinement| confinement.life.clone()).collect();
    let processes = CommandProcesses { marks: vec![mark], lives, ..CommandProcesses::default() };
    Ok(Prepared { system, processes, ward })
}

/// The program's path. A name without a slash is looked up in the absolute folders of the environment's `PATH`: with
/// relative ones, the working folder would decide what a name means.
fn find_program(command: &ProcessCommand) -> Option<PathBuf> {
    let path = command.environment.get("PATH").unwrap_or(OsStr::new("/usr/local/bin:/usr/bin:/bin"));
    let folders = std::env::join_paths(std::env::split_paths(path).filter(|folder| folder.is_absolute())).ok()?;
    // Without any folder, the library would search the daemon's own working folder and find a relative path.
    which::which_in(&command.program, Some(folders), &command.cwd).ok().filter(|path| path.is_absolute())
}

type ProcessStream = Box<dyn AsyncRead + Send + Sync + Unpin>;

/// A running program and its process group. Dropping it early kills it.
struct RunningProcess {
    /// Declared before the child, so that it is dropped first: dropping the child may reap it.
    known: Option<TrackedProcess>,
    child: Child,
    stdout: Option<ProcessStream>,
    stderr: Option<ProcessStream>,
    exit: Exit,
    pid: Pid,
    processes: CommandProcesses,
    /// Writes its input. Not awaited: a process that inherited the input may never read it.
    writer: Option<JoinHandle<()>>,
    over: bool,
    kept: Option<Arc<KeptPrograms>>,
    /// Dropped last: until then the command ends with the daemon.
    _ward: Ward,
}

impl RunningProcess {
    fn new(child: Child, mut processes: CommandProcesses, known: Option<TrackedProcess>, ward: Ward) -> Self {
        let pid = child.id().and_then(|pid| Pid::from_raw(pid as i32));
        let pid = pid.expect("a child that nobody waited for has an id");
        processes.leaders.push(pid);
        ward.started(pid);
        let exit = Exit::of(pid);
        Self {
            known,
            child,
            stdout: None,
            stderr: None,
            exit,
            pid,
            processes,
            writer: None,
            over: false,
            kept: None,
            _ward: ward,
        }
    }

    /// Sends a signal to every process of the command, wherever it moved.
    async fn signal_all(&self, signal: Signal) {
        let (pid, processes, kept) = (self.pid, self.processes.clone(), self.kept.clone());
        // Reads all of /proc. Fails only when the runtime shuts down, and then dropping kills.
        let _ = tokio::task::spawn_blocking(move || signal_all(pid, &processes, signal, kept.as_deref())).await;
    }

    /// All its processes except the first, wherever they moved.
    async fn descendants(&self) -> Vec<Pid> {
        let processes = self.processes.clone();
        // Reads all of /proc. Fails only when the runtime shuts down.
        let found = tokio::task::spawn_blocking(move || processes.find()).await.unwrap_or_default();
        found.into_iter().filter(|found| *found != self.pid).collect()
    }

    /// The processes that left the group and are still there, if they are to be ended. Before the leader is reaped:
    /// until then its id is not reused.
    async fn left_elsewhere(&self) -> Vec<Pid> {
        let Some(kept) = self.kept.clone() else { return Vec::new() };
        let processes = self.processes.clone();
        // Fails only when the runtime shuts down.
        tokio::task::spawn_blocking(move || processes.left_behind(&kept)).await.unwrap_or_default()
    }

    async fn reap(&mut self) -> Option<std::process::ExitStatus> {
        self.known = None;
        self.child.wait().await.inspect_err(|error| tracing::warn!(%error, "can't wait for a child")).ok()
    }

    /// Ends the processes left in the group after its leader is reaped, and those `elsewhere`; true if there were any.
    /// While the group has a member, its id is not reused.
    async fn end_rest(&mut self, elsewhere: Vec<Pid>) -> bool {
        let mut patience = Duration::from_millis(300);
        let there = self.group_is_there() || elsewhere.iter().any(|pid| is_there(*pid));
        if self.group_is_there() {
            signal_group(self.pid, Signal::TERM);
        }
        signal_each(&elsewhere, Signal::TERM);
        while self.group_is_there() || elsewhere.iter().any(|pid| is_there(*pid)) {
            let step = Duration::from_millis(5);
            sleep(step).await;
            if patience.is_zero() {
                signal_group(self.pid, Signal::KILL);
                signal_each(&elsewhere, Signal::KILL);
                // A process in an uninterruptible wait ends only when the kernel releases it.
                sleep(step).await;
                break;
            }
            patience = patience.saturating_sub(step);
        }
        self.adopt_and_reap();
        elsewhere.iter().for_each(|pid| _ = is_there(*pid));
        self.over = true;
        there
    }

    fn group_is_there(&self) -> bool {
        self.adopt_and_reap();
        rustix::process::test_kill_process_group(self.pid).is_ok()
    }

    /// If the daemon adopts orphans, it must reap them.
    fn adopt_and_reap(&self) {
        while let Ok(Some(_)) = rustix::process::waitpgid(self.pid, rustix::process::WaitOptions::NOHANG) {}
    }
}

impl Drop for RunningProcess {
    fn drop(&mut self) {
        if let Some(writer) = &self.writer {
            writer.abort();
        }
        if !self.over {
            signal_all(self.pid, &self.processes, Signal::KILL, self.kept.as_deref());
        }
    }
}

/// Whether a process is still there. Reaps it if it has ended and the daemon has adopted it.
fn is_there(pid: Pid) -> bool {
    let _ = rustix::process::waitpid(Some(pid), rustix::process::WaitOptions::NOHANG);
    descendants::started(pid.as_raw_nonzero().get()).is_some()
}

fn signal_each(pids: &[Pid], signal: Signal) {
    for pid in pids.iter().filter(|pid| is_there(**pid)) {
        // Fails for those that have ended meanwhile. A stopped process handles TERM only after it continues.
        let _ = rustix::process::kill_process(*pid, signal);
        let _ = rustix::process::kill_process(*pid, Signal::CONT);
    }
}

fn signal_all(group: Pid, processes: &CommandProcesses, signal: Signal, kept: Option<&KeptPrograms>) {
    signal_group(group, signal);
    // A process may fork during the search, so KILL is repeated until none is found.
    let rounds = if signal == Signal::KILL { 10 } else { 1 };
    for _ in 0..rounds {
        let found = processes.find_but_kept(kept);
        if found.is_empty() {
            break;
        }
        for pid in found {
            // Fails for processes that have ended meanwhile.
            let _ = rustix::process::kill_process(pid, signal);
        }
    }
}

fn signal_group(pid: Pid, signal: Signal) {
    // Fails when all have ended, and at the very start, before the leader has created its group.
    if rustix::process::kill_process_group(pid, signal).is_err() {
        return;
    }
    // A stopped process handles TERM only after it continues.
    let _ = rustix::process::kill_process_group(pid, Signal::CONT);
}

/// Reports when a child has ended, without reaping it: until then, its id and its group's id are not reused.
enum Exit {
    Pidfd(AsyncFd<OwnedFd>),
    /// On systems without pidfd: reaps.
    Wait,
}

impl Exit {
    #[expect(deprecated, reason = "its replacement is unsafe; an `OwnedFd` cannot be closed under the reactor")]
    fn of(pid: Pid) -> Self {
        let pidfd = rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::NONBLOCK).ok();
        match pidfd.and_then(|pidfd| AsyncFd::with_interest(pidfd, tokio::io::Interest::READABLE).ok()) {
            Some(pidfd) => Self::Pidfd(pidfd),
            None => Self::Wait,
        }
    }

    /// Cancel-safe.
    async fn wait(&self, child: &mut Child) {
        match self {
            Self::Pidfd(pidfd) => {
                // Fails only when the runtime shuts down.
                let _ = pidfd.readable().await;
            }
            Self::Wait => {
                let _ = child.wait().await;
            }
        }
    }
}
