//! The file tools that are called most, each beside a raw echo that opens and reads the same file.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toold_tests::Setup;

use crate::round_trips::Candidate;
use crate::served::ServedProgram;
use crate::stats::{Demand, goal, median, percentile, ratio, row};

const RULE: &str = "[[permission.rules]]\ncategory = \"file.write\"\npattern = \"**\"\naction = \"allow\"\n";
/// Calls while the system calls of the daemon are counted.
const COUNTED: usize = 100;

/// A tool, its calls in turn, and how many times as long as the echo it may take.
fn tools() -> [(&'static str, Vec<Value>, f64); 5] {
    let edit = |old: &str, new: &str| json!({"path": "edited", "old": old, "new": new});
    [
        ("read", vec![json!({"path": "small/a"})], 4.0),
        ("list", vec![json!({"path": "small"})], 6.0),
        ("grep", vec![json!({"pattern": "abc", "path": "small"})], 8.0),
        ("glob", vec![json!({"pattern": "*", "path": "small"})], 8.0),
        ("edit", vec![edit("one", "two"), edit("two", "one")], 10.0),
    ]
}

pub(crate) fn run(quick: bool) {
    // The tests' daemons write a line for each call, for which each that watches a folder above the log wakes up.
    let daemon = Setup::new().config(RULE).start_by(|setup| {
        let mut command = setup.daemon_command();
        command.env("TOOLD_LOG", "error");
        command
    });
    let (work, dir) = (daemon.work(), tempfile::tempdir().unwrap());
    std::fs::create_dir(work.join("small")).unwrap();
    std::fs::write(work.join("small/a"), "abc").unwrap();
    std::fs::write(work.join("edited"), "one\n").unwrap();
    let echo_socket = dir.path().join("echo.sock");
    let _echo = ServedProgram::start_with("serve-echo-reading", &echo_socket, &work.join("small/a"));

    let request = |name: &str, arguments: &Value| {
        let params = json!({"name": name, "arguments": arguments});
        format!("{}\n", json!({"jsonrpc": "2.0", "id": 12345, "method": "tools.execute", "params": params}))
    };
    let open = json!({"jsonrpc": "2.0", "id": 1, "method": "session.open", "params": {"cwd": work}});
    let read_first = request("read", &json!({"path": "edited"}));
    let before = [format!("{open}\n"), read_first];
    let tools = tools();
    let echo = Candidate::new("raw echo that reads the file", &echo_socket, request("read", &tools[0].1[0]), false);
    let of_tools = tools.iter().map(|(name, calls, _)| {
        let requests = calls.iter().map(|arguments| request(name, arguments)).collect();
        Candidate::in_session(name, &daemon.socket(), &before, requests)
    });
    let mut candidates: Vec<Candidate> = std::iter::once(echo).chain(of_tools).collect();
    let (rounds, calls) = if quick { (2, 20) } else { (30, 200) };
    let mut replacements = Vec::new();
    for round in 0..=rounds {
        let mut samples: Vec<Duration> = (0..calls).map(|_| replace(dir.path())).collect();
        replacements.push(percentile(&mut samples, 0.5));
        for candidate in &mut candidates {
            let mut samples: Vec<Duration> = (0..calls).map(|_| candidate.once()).collect();
            // The first round warms up.
            if round > 0 {
                candidate.p50.push(percentile(&mut samples, 0.5));
            }
        }
    }
    let p50: Vec<Duration> = candidates.iter().map(|candidate| median(candidate.p50.clone())).collect();
    println!("{:<44} {:>13}   {:>8}", "file tools, p50", "", "of floor");
    for (candidate, value) in candidates.iter().zip(&p50) {
        row(candidate.name, *value, p50[0]);
    }
    row("a file replaced by one that is on the disk", median(replacements), p50[0]);
    for (candidate, (name, ..)) in candidates[1..].iter_mut().zip(&tools) {
        println!("system calls of one {name}: {}", system_calls(daemon.pid(), dir.path(), candidate));
    }
    for ((name, _, most), value) in tools.iter().zip(&p50[1..]) {
        let what = format!("{name}, of a raw echo that opens and reads a file");
        goal(18, &what, ratio(*value, p50[0]), "x", Demand::AtMost(*most));
    }
    println!();
    daemon.stop();
}

/// How long the least takes that an edit has to do: a new file that reaches the disk, under the name of the old one.
fn replace(folder: &Path) -> Duration {
    let (new, old) = (folder.join("replacing"), folder.join("replaced"));
    let start = Instant::now();
    let mut file = std::fs::File::create(&new).unwrap();
    file.write_all(b"one\n").unwrap();
    file.sync_all().unwrap();
    std::fs::rename(new, old).unwrap();
    start.elapsed()
}

/// The system calls that the daemon makes for one call, the most frequent first, as `strace` counts them.
fn system_calls(daemon: u32, folder: &Path, candidate: &mut Candidate) -> String {
    let counts = folder.join("counts");
    let mut command = Command::new("strace");
    command.args(["-f", "-c", "-S", "calls", "-U", "name,calls", "-o"]).arg(&counts);
    let strace = command.args(["-p", &daemon.to_string()]).stderr(Stdio::null()).spawn();
    let Ok(mut strace) = strace else { return "not counted, since strace is not installed".to_owned() };
    let is_traced = || {
        let tracer = std::fs::read_to_string(format!("/proc/{daemon}/status")).ok()?;
        tracer.lines().any(|line| line.starts_with("TracerPid:") && !line.ends_with("\t0")).then_some(())
    };
    toold_tests::until("strace is attached", is_traced);
    (0..COUNTED).for_each(|_| _ = candidate.once());
    let _ = rustix::process::kill_process(rustix::process::Pid::from_child(&strace), rustix::process::Signal::INT);
    strace.wait().unwrap();
    let counts = std::fs::read_to_string(&counts).unwrap_or_default();
    let count = |line: &str| {
        let mut words = line.split_whitespace();
        let (name, calls) = (words.next()?.to_owned(), words.next()?.parse::<usize>().ok()?);
        let each = calls as f64 / COUNTED as f64;
        (name != "total" && each >= 0.5).then(|| format!("{name} {each:.1}"))
    };
    counts.lines().filter_map(count).collect::<Vec<_>>().join(", ")
}
