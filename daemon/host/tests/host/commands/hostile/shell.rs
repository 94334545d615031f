//! A real shell, which runs one line after another in a root folder and can change nothing outside of it.
//!
//! If the system has user namespaces (`unshare`), everything else is mounted read-only, there is no network, and
//! processes that a line leaves behind are killed. Otherwise the lines themselves name only places in the root.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process};

use super::root::{ThrowAwayRoot, find_program};

/// A line is killed after this time, which does not depend on the processor time that it has.
const LIMIT: Timespec = Timespec { tv_sec: 5, tv_nsec: 0 };

/// Reads lines, each ended by a NUL, and answers each with its status.
const SERVER: &str = r#"
base=$1 mount=$2
shift 2
confine() {
    "$mount" --bind "$base" "$base" || return 1
    while read -r _ point _ options _; do
        printf -v point '%b' "$point"
        case $point in "$base" | /proc | /proc/* | /dev) continue ;; esac
        flags=
        for flag in nosuid nodev noexec noatime nodiratime relatime; do
            case ,$options, in *,$flag,*) flags+=,$flag ;; esac
        done
        "$mount" -o "remount,bind,ro$flags" "$point" 2>/dev/null || [ "$point" != / ] || return 1
    done < /proc/self/mounts
    cd "$base"
}
mode=open
if [ -n "$mount" ]; then
    confine || exit 1
    mode=confined
fi
echo "$mode"
set -m
# Ends the wait for a line that takes too long.
trap : USR1
while IFS= read -r -d '' line; do
    : > "$base/log"
    (
        cd "$base/root/work" || exit 1
        ulimit -c 0 -t 2 -f 512
        exec "$@" -c "$line"
    ) < /dev/null > "$base/out" 2>&1 &
    wait "$!"
    status=$?
    # What the line left behind: its group, and in a namespace of our own all else.
    kill -KILL -- "-$!"
    if [ "$mode" = confined ] && [ "$$" = 1 ]; then kill -KILL -1; fi
    printf '%s\n' "$status"
done 2> /dev/null
"#;

/// The shell that runs the lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ShellKind {
    Bash,
    /// With options that people set: more characters are wildcards, wildcards match more names, and more words are names of files.
    Zsh,
}

const OPTIONS_OF_ZSH: &str = "extendedglob,globdots,globsubst,braceccl,rcquotes,cdablevars,magicequalsubst";

impl ShellKind {
    /// The words that start it, before `-c`; `None` if it is not installed.
    fn command(self) -> Option<Vec<std::ffi::OsString>> {
        let (program, options) = match self {
            Self::Bash => ("/bin/bash".into(), vec!["--noprofile", "--norc"]),
            Self::Zsh => {
                let options = OPTIONS_OF_ZSH.split(',').flat_map(|option| ["-o", option]);
                (find_program("zsh")?, std::iter::once("-f").chain(options).collect())
            }
        };
        Some(std::iter::once(program.into()).chain(options.into_iter().map(Into::into)).collect())
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Bash => "bash",
            Self::Zsh => "zsh",
        }
    }

    pub(super) fn is_installed(self) -> bool {
        self.command().is_some()
    }
}

pub(super) struct TestShell {
    child: Child,
    /// The process that runs `SERVER`: the child itself, or one that this has started.
    server: Pid,
    /// `None` once it must end.
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    /// Nothing outside of the root can be changed or reached.
    pub(super) is_confined: bool,
}

impl TestShell {
    pub(super) fn start(root: &ThrowAwayRoot, kind: ShellKind) -> Self {
        let start = |confined| Self::start_as(root, kind, confined);
        start(true).or_else(|| start(false)).expect("the shell can be started")
    }

    /// `None` if it cannot be confined here.
    pub(super) fn start_as(root: &ThrowAwayRoot, kind: ShellKind, confined: bool) -> Option<Self> {
        let base = root.base.to_str().unwrap();
        let server = root.base.join("server");
        fs::write(&server, SERVER).unwrap();
        let mut command = match confined {
            false => Command::new("/bin/bash"),
            true => {
                let mut command = Command::new(find_program("unshare")?);
                command.args(["-rmnpf", "--mount-proc", "--kill-child", "/bin/bash"]);
                command
            }
        };
        command.args(["--noprofile", "--norc"]).arg(&server).arg(base);
        command.arg(if confined { find_program("mount")? } else { "".into() }).args(kind.command()?);
        command.env_clear().env("PATH", root.base.join("bin")).env("HOME", &root.place.home);
        command.env("TMPDIR", root.base.join("tmp")).env("LANG", "C").env("SHELL", "/bin/bash");
        command.env("GIT_CONFIG_NOSYSTEM", "1").env("USER", "ada");
        command.current_dir(&root.base).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().ok()?;
        let (input, mut output) = (child.stdin.take(), BufReader::new(child.stdout.take()?));
        let mut mode = String::new();
        let is_there = output.read_line(&mut mode).is_ok() && mode.trim() == if confined { "confined" } else { "open" };
        let server = if confined { only_child(&child) } else { Some(Pid::from_child(&child)) };
        let mut shell =
            Self { server: server.unwrap_or(Pid::from_child(&child)), child, input, output, is_confined: confined };
        if !is_there || server.is_none() {
            shell.end();
            return None;
        }
        Some(shell)
    }

    /// Runs one line to its end.
    pub(super) fn run(&mut self, line: &str) {
        let input = self.input.as_mut().expect("it has not ended");
        input.write_all(line.as_bytes()).and_then(|()| input.write_all(&[0])).and_then(|()| input.flush()).unwrap();
        // Each line has one answer, so that nothing of it is in the buffer.
        let answer = &mut [PollFd::new(self.output.get_ref(), PollFlags::IN)];
        if poll(answer, Some(&LIMIT)).unwrap() == 0 {
            kill_process(self.server, Signal::USR1).unwrap();
        }
        let mut status = String::new();
        self.output.read_line(&mut status).unwrap();
        assert!(!status.is_empty(), "the shell that runs lines has ended, at {line:?}");
    }

    fn end(&mut self) {
        self.input = None;
        let _ = self.child.wait();
    }
}

impl Drop for TestShell {
    fn drop(&mut self) {
        self.end();
    }
}

fn only_child(parent: &Child) -> Option<Pid> {
    let parent = parent.id();
    let children = fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).ok()?;
    Pid::from_raw(children.trim().parse().ok()?)
}
