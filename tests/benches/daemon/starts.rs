//! From the start of the process to its first answer.

use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;
use toold_tests::{Wire, toold};

use crate::stats::{median, row};

pub(crate) fn run(quick: bool) {
    let rounds = if quick { 3 } else { 15 };
    let many = if quick { 100 } else { 1_000 };
    let (empty, full) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let plugins = full.path().join("config/toold/plugins");
    std::fs::create_dir_all(&plugins).unwrap();
    for n in 0..many {
        let source = format!(
            "hygge.register_tool{{name = \"tool_{n}\", description = \"Number {n}\", \
             input_schema = {{type = \"object\"}}, execute = function() return {n} end}}\n"
        );
        std::fs::write(plugins.join(format!("p{n}.lua")), source).unwrap();
    }
    let (mut processes, mut bare, mut with_plugins, mut all_listed) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for _ in 0..rounds {
        processes.push(bare_process());
        bare.push(start(empty.path(), None).0);
        let (first, listed) = start(full.path(), Some(many));
        with_plugins.push(first);
        all_listed.push(listed);
    }
    let floor = median(processes);
    println!("{:<44} {:>13}   {:>8}", "start", "", "of floor");
    row("`toold --version`, to its end", floor, floor, "");
    row("no plugins, to the first answer", median(bare), floor, "goal 10000 us");
    row(&format!("{many} plugins, to the first answer"), median(with_plugins), floor, "goal 10000 us");
    row(&format!("{many} plugins, to all listed"), median(all_listed), floor, "");
}

fn bare_process() -> Duration {
    let start = Instant::now();
    let status = Command::new(toold()).arg("--version").stdout(Stdio::null()).status().unwrap();
    assert!(status.success());
    start.elapsed()
}

fn start(dir: &Path, plugins: Option<usize>) -> (Duration, Duration) {
    let socket = dir.join("run/toold.sock");
    let start = Instant::now();
    let mut child = Command::new(toold())
        .arg("serve")
        .env("TOOLD_SOCKET", &socket)
        .env("XDG_CONFIG_HOME", dir.join("config"))
        .env("XDG_STATE_HOME", dir.join("state"))
        .env("TOOLD_LOG", "error")
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    while UnixStream::connect(&socket).is_err() {
        std::thread::yield_now();
    }
    let mut wire = Wire::connect(&socket);
    wire.result("daemon.ping", json!({}));
    let first = start.elapsed();
    let listed = wire.result("tools.list", json!({"source": "plugin"}))["tools"].as_array().unwrap().len();
    let all = start.elapsed();
    assert_eq!(listed, plugins.unwrap_or(0));
    wire.result("daemon.shutdown", json!({"drain_ms": 0}));
    child.wait().unwrap();
    (first, all)
}
