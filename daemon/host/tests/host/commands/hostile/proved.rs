//! The program tables, compared with the programs: each line that needs no approval because it only reads is run by the
//! installed programs, and a log of their system calls must show that it only reads.
//!
//! A sample each time; `TABLE_LINES=all` runs every listed option of every entry. The report lists the programs that are
//! not installed as not proved, and is kept in `target/tmp/tables.txt`.

mod lines;
mod report;
mod trace;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use toold_host::environment::Environment;
use toold_host::shell_grammar::{Surroundings, TableListing, listings, needs};
use toold_proto::permission::Verdict;

use self::lines::{ProofLine, lines};
use self::report::ProofReport;
use self::trace::{CALLS, excesses};
use super::root::{OUTSIDE, SECRET, ThrowAwayRoot, find_program};
use super::shell::{ShellKind, TestShell};
use crate::commands::judge::judge;
use crate::commands::random::SplitMix;

const THREADS: usize = 2;
/// So many lines run each time.
const SAMPLE: usize = 300;

/// In the environment of `strace`, and not of what it runs. Not in its words, which every `ps` shows.
const OTHER: &str = "canary-of-a-process";

/// Files that programs may look for in their folder, each of which names another program or file.
const EXTRA: &[(&str, &str)] = &[
    (".gitattributes", "*.md diff=x filter=x\n"),
    (".gitconfig", "[core]\n\tpager = evil\n\tfsmonitor = evil\n[diff]\n\texternal = evil\n"),
    ("include.cfg", "[include]\n\tpath = .env\n\tpath = ../outside/data.txt\n"),
    ("rust-toolchain.toml", "[toolchain]\npath = \"bin\"\n"),
    (".cargo/config.toml", "[alias]\nversion = \"run\"\n[build]\nrustc = \"evil\"\n"),
    (".ripgreprc", "--pre=evil\n"),
    (".ackrc", "--pager=evil\n"),
    (".ignore", "!.env\n"),
    (".rgignore", "!.env\n"),
    (".fdignore", "!.env\n"),
    ("git/config", "[core]\n\tpager = evil\n[include]\n\tpath = ../../outside/data.txt\n"),
    (".jq", "import \"x\" as $x;\n"),
    ("x.jq", "def x: 1;\n"),
    ("x.json", "{}\n"),
    ("filter.jq", "import \"../outside/data\" as $x; 1\n"),
    ("sitecustomize.py", "import os\nos.system('evil')\n"),
    ("pip/__init__.py", "import os\nos.system('evil')\n"),
    ("pip/__main__.py", "import os\nos.system('evil')\n"),
    (".inputrc", "$include .env\n"),
    (".lesskey", "#env\nLESSOPEN=|evil\n"),
    (".magic", "0 string x x\n"),
    ("magic", "0 string x x\n"),
    (".toprc", "top's Config File (Linux processes with windows)\n"),
    ("data.json", "{\"a\": [1, 2]}\n"),
    ("list", ".env\n../outside/data.txt\n"),
    ("sums", "d41d8cd98f00b204e9800998ecf8427e  .env\nd41d8cd98f00b204e9800998ecf8427e  ../outside/data.txt\n"),
    ("ü.txt", "ü\n"),
    // Made by rustup's own installation.
    ("../home/.rustup/settings.toml", "version = \"12\"\n"),
];

/// Makes archives of two files, by programs that not every machine has.
const ARCHIVES: &[(&str, &str)] = &[
    ("a.tar", "tar -cf a.tar README.md data/a.txt"),
    ("a.tgz", "tar -czf a.tgz README.md"),
    ("a.txz", "tar -cJf a.txz README.md"),
    ("a.gz", "gzip -c README.md > a.gz"),
    ("a.xz", "xz -c README.md > a.xz"),
    ("a.bz2", "bzip2 -c README.md > a.bz2"),
    ("a.zst", "zstd -q -c README.md > a.zst"),
    ("a.zip", "python3 -m zipfile -c a.zip README.md"),
    ("prog", "cp /bin/true prog"),
];

/// Which programs the names in a line mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Implementation {
    /// The first ones on the path.
    Installed,
    /// Those of BusyBox.
    Busybox,
}

/// A root, and a shell that runs lines in it.
struct ProofBench {
    /// Ends before its folders are removed.
    shell: TestShell,
    root: ThrowAwayRoot,
    strace: PathBuf,
    /// The names of the programs in BusyBox.
    applets: BTreeSet<String>,
}

impl ProofBench {
    fn make(strace: PathBuf) -> Self {
        let mut root = ThrowAwayRoot::make();
        let extra: Vec<(&str, &[u8])> = EXTRA.iter().map(|(name, text)| (*name, text.as_bytes())).collect();
        root.add(&extra);
        let mut made: Vec<(&str, Vec<u8>)> = Vec::new();
        for (name, line) in ARCHIVES {
            let mut command = Command::new("bash");
            command.args(["-c", line]).current_dir(&root.place.workspace).stdout(Stdio::null()).stderr(Stdio::null());
            let _ = command.status();
            made.extend(fs::read(root.place.workspace.join(name)).ok().map(|content| (*name, content)));
        }
        root.add(&made.iter().map(|(name, content)| (*name, content.as_slice())).collect::<Vec<_>>());
        fs::write(root.base.join("other"), OTHER).unwrap();
        let applets = applets();
        let folder = root.base.join("busybox");
        fs::create_dir(&folder).unwrap();
        for applet in &applets {
            symlink(find_program("busybox").unwrap(), folder.join(applet)).unwrap();
        }
        let shell = TestShell::start(&root, ShellKind::Bash);
        Self { shell, root, strace, applets }
    }

    fn is_free(&self, line: &str) -> bool {
        judge(line, &self.root.place, &[]).verdict == Verdict::Allow
    }

    /// What it did beyond reading.
    fn run(&mut self, line: &str, implementation: Implementation) -> Vec<String> {
        let (base, home) = (self.root.base.display().to_string(), self.root.place.home.display().to_string());
        // Programs of version managers are not free, and the judge does not see them here.
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders = std::env::split_paths(&path).filter(|folder| !folder.ends_with("shims"));
        let path = std::env::join_paths(folders).unwrap().into_string().unwrap();
        let path = match implementation {
            Implementation::Installed => format!("{path}:{base}/bin"),
            Implementation::Busybox => format!("{base}/busybox:{path}:{base}/bin"),
        };
        let log = format!("{base}/trace");
        // Not that of BusyBox, which looks once a second.
        let timeout = find_program("timeout").unwrap().display().to_string();
        let _ = fs::remove_file(&log);
        // The time limit is within the log: what it ends is ended before the log is read.
        self.shell.run(&format!(
            "exec env -i PATH={} HOME={home} TMPDIR={base}/tmp LANG=C.UTF-8 TERM=dumb USER=ada OTHER=$(< {base}/other) \
             {} -E OTHER -f -qq -y -s 1000 --seccomp-bpf -e signal=none -e trace={CALLS} -o {log} {timeout} -s KILL 3 \
             /bin/bash --noprofile --norc -c {}",
            single_quoted(&path),
            self.strace.display(),
            single_quoted(line)
        ));
        let log = fs::read(&log).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        assert!(log.contains("execve("), "strace has logged nothing of {line:?}: {}", self.root.recorded().1);
        let mut found = excesses(&log, line, &self.root);
        let (ran, shown) = self.root.recorded();
        found.extend(ran.iter().map(|ran| format!("runs {}", ran.join(" "))));
        let canaries = [
            (SECRET, "a secret"),
            (OUTSIDE, "a file outside of the project"),
            (OTHER, "another process's environment"),
        ];
        for (text, what) in canaries {
            if shown.contains(text) {
                found.push(format!("shows {what}"));
            }
        }
        let changes = self.root.changes();
        let is_index = |path: &Path| path.ends_with(".git/index") || path.ends_with(".git/index.lock");
        let changed = changes.iter().filter(|change| !is_index(&change.path));
        found.extend(changed.map(|change| format!("changes {} ({:?})", change.path.display(), change.did)));
        found
    }

    fn close(self) {
        let Self { shell, root, .. } = self;
        drop(shell);
        root.close();
    }
}

fn single_quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

fn output(program: &str, args: &[&str]) -> String {
    let mut command = Command::new("timeout");
    let run = command.arg("5").arg(program).args(args).stdin(Stdio::null()).output();
    run.map_or_else(|_| String::new(), |run| String::from_utf8_lossy(&[run.stdout, run.stderr].concat()).into_owned())
}

fn applets() -> BTreeSet<String> {
    let listed: BTreeSet<String> = listings().into_iter().map(|listing| listing.words[0].clone()).collect();
    let all = if find_program("busybox").is_some() { output("busybox", &["--list"]) } else { String::new() };
    all.lines().map(str::to_owned).filter(|applet| listed.contains(applet)).collect()
}

/// The words that look like options in the help of a program.
fn options_in_help(program: &str) -> Vec<String> {
    if find_program(program).is_none() {
        return Vec::new();
    }
    let help = output(program, &["--help"]);
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '-';
    let words = help.split(|c: char| !is_part(c));
    let is_option = |word: &&str| {
        word.strip_prefix("--")
            .map_or(word.len() == 2 && word.starts_with('-'), |long| long.starts_with(char::is_alphabetic))
    };
    let options: BTreeSet<String> = words.filter(is_option).map(str::to_owned).collect();
    options.into_iter().filter(|option| option != "--").collect()
}

/// The first line of what it says its version is.
fn version(program: &str, implementation: Implementation) -> String {
    match implementation {
        Implementation::Busybox => output("busybox", &[]).lines().next().unwrap_or_default().to_owned(),
        Implementation::Installed if find_program(program).is_none() => {
            format!("bash, {}", output("bash", &["--version"]).lines().next().unwrap_or_default())
        }
        Implementation::Installed => {
            let first = output(program, &["--version"]).lines().next().unwrap_or_default().to_owned();
            if first.chars().any(|c| c.is_ascii_digit()) { first } else { "of unknown version".to_owned() }
        }
    }
}

fn is_builtin(program: &str, builtins: &BTreeSet<String>) -> bool {
    builtins.contains(program)
}

/// In an order that mixes the programs, the same each time.
fn shuffled(mut all: Vec<ProofLine>) -> Vec<ProofLine> {
    let mut random = SplitMix::of_line(1, 1);
    for at in (1..all.len()).rev() {
        all.swap(at, random.below(at + 1));
    }
    all
}

#[derive(Default)]
struct ProofResult {
    report: ProofReport,
    violations: Vec<String>,
}

struct ProofPlan {
    lines: Vec<ProofLine>,
    /// Ends after this many have run.
    limit: usize,
    strace: PathBuf,
    builtins: BTreeSet<String>,
    versions: BTreeMap<(String, bool), String>,
    next: AtomicUsize,
    ran: AtomicUsize,
}

impl ProofPlan {
    fn work(&self) -> ProofResult {
        let mut bench = ProofBench::make(self.strace.clone());
        let mut result = ProofResult::default();
        while self.ran.load(Ordering::Relaxed) < self.limit {
            let at = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(ProofLine { program, line }) = self.lines.get(at) else { break };
            let line = bench.root.put_into(line);
            if !bench.is_free(&line) {
                continue;
            }
            let name = program.split(' ').next().unwrap_or_default();
            let is_installed = find_program(name).is_some() || is_builtin(name, &self.builtins);
            let is_applet = bench.applets.contains(name) && !is_builtin(name, &self.builtins);
            for (implementation, is_there) in
                [(Implementation::Installed, is_installed), (Implementation::Busybox, is_applet)]
            {
                if !is_there {
                    continue;
                }
                let found = bench.run(&line, implementation);
                let key = (name.to_owned(), implementation == Implementation::Busybox);
                let version = self.versions.get(&key).cloned().unwrap_or_default();
                result.report.add(program, &version, !found.is_empty());
                if !found.is_empty() {
                    let shown = bench.root.take_out_of(&line);
                    let violation = format!("{shown}\n    by {version}: {}", found.join("; "));
                    eprintln!("{violation}");
                    result.violations.push(violation);
                }
                let ran = self.ran.fetch_add(1, Ordering::Relaxed) + 1;
                if ran.is_multiple_of(2000) {
                    eprintln!("{ran} lines ran, {at} of {} are looked at", self.lines.len());
                }
            }
        }
        bench.close();
        result
    }
}

fn prove(limit: usize, strace: PathBuf) -> ProofResult {
    let all: Vec<TableListing> = listings();
    let lines = shuffled(lines(&all, options_in_help));
    let builtins: BTreeSet<String> = output("bash", &["-c", "compgen -bk"]).lines().map(str::to_owned).collect();
    let mut versions = BTreeMap::new();
    let programs: BTreeSet<&str> = lines.iter().filter_map(|line| line.program.split(' ').next()).collect();
    let applets = applets();
    // Only the report of a long run is kept.
    for program in programs.into_iter().filter(|_| limit != SAMPLE) {
        versions.insert((program.to_owned(), false), version(program, Implementation::Installed));
        if applets.contains(program) {
            versions.insert((program.to_owned(), true), version(program, Implementation::Busybox));
        }
    }
    let mut result = ProofResult::default();
    for line in &lines {
        let rows = result.report.0.entry(line.program.clone()).or_default();
        let name = line.program.split(' ').next().unwrap_or_default();
        if find_program(name).is_some() || is_builtin(name, &builtins) {
            rows.entry(versions.get(&(name.to_owned(), false)).cloned().unwrap_or_default()).or_default();
        }
    }
    let plan =
        ProofPlan { lines, limit, strace, builtins, versions, next: AtomicUsize::new(0), ran: AtomicUsize::new(0) };
    let parts: Vec<ProofResult> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(|| plan.work())).collect();
        threads.into_iter().map(|thread| thread.join().expect("a thread that runs lines ends")).collect()
    });
    for part in parts {
        result.report.merge(part.report);
        result.violations.extend(part.violations);
    }
    result.violations.sort();
    result
}

#[test]
fn free_lines_only_read() {
    let Some(strace) = find_program("strace") else {
        assert!(std::env::var_os("TABLE_LINES").is_none(), "there is no strace");
        return println!("there is no strace: the tables are not proved here");
    };
    let limit = match std::env::var("TABLE_LINES") {
        Ok(text) if text == "all" => usize::MAX,
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("TABLE_LINES={text}: expected a number or \"all\"")),
        Err(_) => SAMPLE,
    };
    let ProofResult { report, violations } = prove(limit, strace);
    let text = format!("{}\n{}\n", report.shown(), violations.join("\n"));
    if limit != SAMPLE {
        fs::write(Path::new(env!("CARGO_TARGET_TMPDIR")).join("tables.txt"), &text).unwrap();
        println!("{text}");
    }
    println!("{} free lines ran, {} did more than read", report.ran(), violations.len());
    assert!(violations.is_empty(), "{} lines did more than read:\n{}", violations.len(), violations.join("\n"));
    assert!(report.ran() >= SAMPLE as u64, "only {} lines ran", report.ran());
}

/// A version manager lets files of the folder choose what runs.
#[test]
fn programs_of_version_managers_are_not_free() {
    let root = ThrowAwayRoot::make();
    let is_free = |folder: &str| {
        let folder = root.base.join(folder);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("jq"), "").unwrap();
        let environment = Environment::default().with([("PATH", folder.as_os_str())]);
        let mut may_read = |_: &Path| true;
        let cwd = &root.place.workspace;
        let mut surroundings = Surroundings { cwd, folders: &[], environment: &environment, may_read: &mut may_read };
        needs("jq -n 1", &mut surroundings).iter().all(|need| need.reads_only())
    };
    assert!(is_free("x/bin"));
    assert!(!is_free("x/shims"));
    assert!(!is_free(".volta/bin"));
    root.close();
}

/// The first test proves only as much as it can observe.
#[test]
fn what_is_more_than_reading_is_observed() {
    let Some(strace) = find_program("strace") else { return };
    let mut bench = ProofBench::make(strace);
    let mut first = |line: &str| {
        let found = bench.run(&line.replace("{root}", &bench.root.put_into("{root}")), Implementation::Installed);
        found.first().cloned().unwrap_or_default()
    };
    for line in
        ["cat README.md", "ls -la", "git status", "git log -p -1", "sort data/a.txt | uniq -c", "zcat a.gz", ":"]
    {
        assert_eq!(first(line), "", "{line}");
    }
    for (line, excess) in [
        ("sort -o pwn README.md", "opens {root}/work/pwn for writing"),
        ("cat ../outside/data.txt", "reads {root}/outside/data.txt"),
        ("cat link-secret", "reads {root}/work/.env"),
        ("sed 's/shop/evil/e' README.md", "runs /bin/sh"),
        ("touch README.md", "opens {root}/work/README.md for writing"),
        ("touch -c -h link-file", "utimensat {root}/work/link-file"),
        ("ls src; rm data/a.txt", "unlinkat {root}/work/data/a.txt"),
        ("ls src; mkdir a", "mkdir a"),
        ("git branch new", "opens {root}/work/.git/refs/heads/new.lock for writing"),
        ("env evil x", "runs "),
        (": < /dev/tcp/127.0.0.1/9", "connect to "),
        ("cat /etc/shadow", "reads /etc/shadow"),
        ("sleep 1 & cat /proc/$!/environ", "reads /proc/"),
        ("ps axeww", "shows another process's environment"),
        ("git diff --no-index /dev/null .env", "reads {root}/work/.env"),
        ("echo x > /dev/stdout; cat < .env", "reads {root}/work/.env"),
    ] {
        let found = first(line);
        assert!(found.starts_with(excess), "{line}: {found:?}, not {excess:?}");
    }
    bench.close();
}
