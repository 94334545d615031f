//! From the start of the process to its first answer.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;
use toold_tests::{Wire, toold};

use crate::pipelined::node_server;
use crate::stats::{Demand, goal, median, ratio, row};

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
    let mut node = Vec::new();
    let (mut processes, mut bare, mut with_plugins, mut all_listed) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for _ in 0..rounds {
        // First, because later starts find its files in the caches.
        node.extend(start_of_node());
        processes.push(bare_process());
        bare.push(start(empty.path(), None).0);
        let (first, listed) = start(full.path(), Some(many));
        with_plugins.push(first);
        all_listed.push(listed);
    }
    let (floor, bare, with_plugins) = (median(processes), median(bare), median(with_plugins));
    println!("{:<44} {:>13}   {:>8}", "start", "", "of floor");
    row("`toold --version`, to its end", floor, floor);
    row("no plugins, to the first answer", bare, floor);
    row(&format!("{many} plugins, to the first answer"), with_plugins, floor);
    row(&format!("{many} plugins, to all listed"), median(all_listed), floor);
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    goal(13, "from the start to the first answer", ms(bare), "ms", Demand::AtMost(10.0));
    goal(13, &format!("the same with {many} plugins"), ms(with_plugins), "ms", Demand::AtMost(10.0));
    if node.is_empty() {
        println!("the TypeScript SDK is not installed below target/; `.ci/mcp_client` installs it");
    } else {
        let node = median(node);
        row("a server on the TypeScript SDK, the same", node, floor);
        goal(13, "a start, of a server on the TypeScript SDK", ratio(bare, node), "x", Demand::AtMost(1.0 / 30.0));
    }
    println!();
}

/// To the answer to `initialize`.
fn start_of_node() -> Option<Duration> {
    let mut command = node_server()?;
    let start = Instant::now();
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let request = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params":
        {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}});
    writeln!(child.stdin.as_mut().unwrap(), "{request}").unwrap();
    let mut answer = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut answer).unwrap();
    let took = start.elapsed();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(answer.contains("serverInfo"), "{answer}");
    Some(took)
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
        // Not in a busy loop, which would take one of two cores from the measured process.
        std::thread::sleep(Duration::from_micros(50));
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
