//! The log of `strace`, and what in it is more than reading.

use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};

use super::super::root::ThrowAwayRoot;

/// The system calls that are logged: they run programs, open or change files, send, or reach other processes.
pub(super) const CALLS: &str = "execve,execveat,open,openat,openat2,creat,connect,sendto,sendmsg,sendmmsg,\
     unlink,unlinkat,rename,renameat,renameat2,mkdir,mkdirat,rmdir,symlink,symlinkat,link,linkat,truncate,\
     chmod,fchmod,fchmodat,chown,fchown,lchown,fchownat,utime,utimes,futimesat,utimensat,mknod,mknodat,\
     setxattr,lsetxattr,fsetxattr,removexattr,mount,umount2,sethostname,settimeofday,clock_settime,ptrace,\
     process_vm_readv,setpriority,init_module,finit_module,syslog";

/// Programs that are shell scripts around another program of the same package, in Debian or elsewhere.
const PARTS: &[(&str, &str)] = &[
    ("zcat", "gzip"),
    ("gzcat", "gzip"),
    ("egrep", "grep"),
    ("fgrep", "grep"),
    // Without a command it runs this one.
    ("xargs", "echo"),
    ("npm", "node"),
    // A script of systemd, and what it runs.
    ("systemctl", "systemd-sysv-install"),
    ("systemctl", "getopt"),
    ("systemctl", "ls"),
    // A script of git.
    ("submodule", "basename"),
    ("submodule", "sed"),
    ("submodule", "uname"),
    // By the name of the archive, its first bytes, or an option.
    ("tar", "bzip2"),
    ("tar", "compress"),
    ("tar", "gzip"),
    ("tar", "lzip"),
    ("tar", "lzma"),
    ("tar", "lzop"),
    ("tar", "xz"),
    ("tar", "zstd"),
];

/// One system call.
struct SystemCall<'a> {
    process: &'a str,
    name: &'a str,
    args: &'a str,
    result: &'a str,
}

/// What the line did beyond reading, one phrase each.
pub(super) fn excesses(log: &str, line: &str, root: &ThrowAwayRoot) -> Vec<String> {
    let mut found = Vec::new();
    let mut unfinished: HashMap<String, String> = HashMap::new();
    let mut programs = 0;
    for text in log.lines() {
        let Some((process, rest)) = text.split_once(' ') else { continue };
        let mut rest = rest.trim_start().to_owned();
        if let Some(start) = rest.strip_suffix("<unfinished ...>") {
            unfinished.insert(process.to_owned(), start.trim_end().to_owned());
            continue;
        }
        if let Some(resumed) = rest.strip_prefix("<... ").and_then(|rest| rest.split_once("resumed>")) {
            rest = unfinished.remove(process).unwrap_or_default() + resumed.1;
        }
        let Some(call) = parse(process, &rest) else { continue };
        if call.name.starts_with("execve") {
            programs += 1;
            // `timeout` and the shell itself.
            if programs <= 2 {
                continue;
            }
        }
        if let Some(excess) = excess(&call, line, root) {
            let excess = root.take_out_of(&excess);
            if !found.contains(&excess) {
                found.push(excess);
            }
        }
    }
    found
}

fn parse<'a>(process: &'a str, text: &'a str) -> Option<SystemCall<'a>> {
    let (name, rest) = text.split_once('(')?;
    let (args, result) = rest.rsplit_once(" = ")?;
    Some(SystemCall { process, name, args: args.trim_end().strip_suffix(')')?, result })
}

fn excess(call: &SystemCall, line: &str, root: &ThrowAwayRoot) -> Option<String> {
    let SystemCall { name, args, result, .. } = *call;
    match name {
        "execve" | "execveat" => {
            let path = quoted(args).next()?;
            let program = path.rsplit('/').next().unwrap_or_default();
            (!may_run(program, &path, line)).then(|| format!("runs {path}"))
        }
        "open" | "openat" | "openat2" => opened(call, line, root),
        "connect" | "sendto" | "sendmsg" | "sendmmsg" => {
            let (_, to) = args.split_once("sa_family=AF_INET")?;
            Some(format!("{name} to {to}"))
        }
        // Shows the messages of the kernel, or clears them.
        "syslog" => args.contains("CLEAR").then(|| format!("syslog {args}")),
        "setpriority" if is_named("nice", line) => None,
        // The own file behind a descriptor: where it may write, it may change it.
        "fchmod" | "fchown" | "fsetxattr" => {
            let path = annotated(args)?;
            (!may_write(&path, root)).then(|| format!("{name} {path}"))
        }
        _ => {
            let folder = annotated(args).unwrap_or_default();
            let paths: Vec<String> = quoted(args).map(|path| joined(&folder, &path)).collect();
            let is_own = !paths.is_empty() && paths.iter().all(|path| may_write(path, root));
            (!is_own).then(|| format!("{name} {} = {result}", paths.join(" ")))
        }
    }
}

fn opened(call: &SystemCall, line: &str, root: &ThrowAwayRoot) -> Option<String> {
    let asked = quoted(call.args).next()?;
    let is_open = !call.result.starts_with('-');
    let path = match annotated(call.result).filter(|_| is_open) {
        Some(path) => path,
        None => joined(&annotated(call.args).unwrap_or_default(), &asked),
    };
    let flags = call.args.rsplit_once('"').map_or("", |(_, flags)| flags);
    let writes = ["O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC", "O_APPEND", "O_TMPFILE"];
    if writes.iter().any(|flag| flags.contains(flag)) {
        return (!may_write(&path, root)).then(|| format!("opens {path} for writing ({flags})"));
    }
    // `df` opens files so that they are mounted, and reads nothing.
    if !is_open || flags.contains("O_PATH") || is_named("df", line) {
        return None;
    }
    let place = &root.place;
    let top = place.workspace.parent()?;
    let is_below = |folder: PathBuf| Path::new(&path).starts_with(folder);
    let name = path.rsplit('/').next().unwrap_or_default();
    let is_secret = is_below(top.to_owned()) && [".env", "id_rsa", "private.txt"].contains(&name);
    let is_outside = is_below(top.join("outside"))
        || is_below(place.home.join("notes.txt"))
        || is_below(place.home.join(".ssh"))
        || is_below(place.config.clone());
    // Files of other processes: its own are `/proc/self`, which is shown by its number.
    let of_process = path.strip_prefix("/proc/").and_then(|rest| rest.split_once('/'));
    let is_private = of_process.is_some_and(|(process, file)| {
        process.parse::<u32>().is_ok() && process != call.process && ["environ", "mem", "auxv"].contains(&file)
    });
    // `systemctl` looks for the name of a container there. `ps` reads what it may not show: its output is looked at.
    let is_private = is_private && !(path == "/proc/1/environ" && is_named("systemctl", line)) && !is_named("ps", line);
    let is_system = path.starts_with("/etc/shadow") || path.starts_with("/etc/gshadow") || path == "/dev/mem";
    (is_secret || is_outside || is_private || is_system).then(|| format!("reads {path}"))
}

fn may_run(program: &str, path: &str, line: &str) -> bool {
    if program == "evil" {
        return false;
    }
    let is_part = PARTS.iter().any(|(whole, part)| *part == program && is_named(whole, line));
    let is_git = is_named("git", line) && (program == "git" || path.contains("/git-core/git"));
    is_part || is_git || is_named(program, line)
}

/// Whether the line has this word.
fn is_named(program: &str, line: &str) -> bool {
    line.split(|c: char| !(c.is_alphanumeric() || "_.+-".contains(c))).any(|word| word == program)
}

/// Devices that keep nothing, what the line was given, its temporary folder, and the index that git refreshes.
fn may_write(path: &str, root: &ThrowAwayRoot) -> bool {
    let devices = ["/dev/null", "/dev/full", "/dev/zero", "/dev/tty", "/dev/pts", "/proc/self/fd", "/dev/fd"];
    let is_kept_nowhere = ["pipe:", "socket:", "anon_inode:", "/memfd:"].iter().any(|kind| path.starts_with(kind));
    let is_index = path.ends_with("/.git/index") || path.ends_with("/.git/index.lock");
    is_kept_nowhere
        || is_index
        || devices.iter().any(|device| Path::new(path).starts_with(device))
        || ["tmp", "out"].iter().any(|own| Path::new(path).starts_with(root.base.join(own)))
}

/// The texts between quotes, with their escapes undone.
fn quoted(args: &str) -> impl Iterator<Item = String> {
    let mut chars = args.chars();
    std::iter::from_fn(move || {
        chars.find(|c| *c == '"')?;
        let mut text = String::new();
        while let Some(c) = chars.next().filter(|c| *c != '"') {
            text.push(c);
            if c == '\\' {
                text.extend(chars.next());
            }
        }
        Some(unescaped(&text))
    })
}

/// The path that `-y` prints after a descriptor: `3</etc/passwd>`.
fn annotated(text: &str) -> Option<String> {
    // In arguments, the one of the folder comes first.
    let text = text.split('"').next()?;
    let (start, end) = (text.find('<')?, text.rfind('>')?);
    Some(unescaped(text.get(start + 1..end)?))
}

/// C escapes; octal ones are bytes.
fn unescaped(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.bytes().peekable();
    while let Some(byte) = rest.next() {
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        let mut number: Option<u32> = None;
        for _ in 0..3 {
            let Some(digit) = rest.next_if(|byte| (b'0'..b'8').contains(byte)) else { break };
            number = Some(number.unwrap_or_default() * 8 + u32::from(digit - b'0'));
        }
        match number {
            Some(number) => bytes.push(number as u8),
            None => bytes.extend(rest.next().map(|byte| match byte {
                b'n' => b'\n',
                b't' => b'\t',
                other => other,
            })),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Without `.` and `..`; links are not followed.
fn joined(folder: &str, path: &str) -> String {
    let mut whole = PathBuf::new();
    for part in Path::new(folder).join(path).components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => drop(whole.pop()),
            part => whole.push(part),
        }
    }
    whole.to_string_lossy().into_owned()
}
