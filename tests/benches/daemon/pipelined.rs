//! Calls per second with many in flight, compared with other servers that do the same.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toold_tests::toold;

use crate::served::ServedProgram;
use crate::stats::{Demand, goal, median_rate, percentile, rate_row, ratio, row};

const IN_FLIGHT: usize = 16;

/// A peer that sends and receives one JSON text per line.
struct LineClient {
    reader: Box<dyn Read + Send>,
    writer: Box<dyn Write + Send>,
    next_id: u64,
    _process: Option<BenchedProcess>,
}

struct BenchedProcess(Child);

impl Drop for BenchedProcess {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl LineClient {
    fn socket(path: &Path) -> Self {
        let stream = UnixStream::connect(path).unwrap();
        let writer = stream.try_clone().unwrap();
        Self { reader: Box::new(stream), writer: Box::new(writer), next_id: 0, _process: None }
    }

    fn stdio(command: &mut Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let (writer, reader) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        Self { reader: Box::new(reader), writer: Box::new(writer), next_id: 0, _process: Some(BenchedProcess(child)) }
    }

    fn request(&mut self, method: &str, params: &str) -> String {
        self.next_id += 1;
        format!(r#"{{"jsonrpc":"2.0","id":{},"method":"{method}","params":{params}}}{}"#, self.next_id, "\n")
    }

    /// One request and its answer; other messages before it are skipped.
    fn ask(&mut self, method: &str, params: &Value) -> Value {
        let request = self.request(method, &params.to_string());
        self.writer.write_all(request.as_bytes()).unwrap();
        self.writer.flush().unwrap();
        let mut reader = BufReader::with_capacity(1, &mut self.reader);
        loop {
            let mut line = String::new();
            assert!(reader.read_line(&mut line).unwrap() > 0, "{method}: the server went");
            let answer: Value = serde_json::from_str(&line).unwrap();
            if answer["id"] == self.next_id {
                assert!(answer.get("error").is_none() && answer["result"]["isError"] != true, "{answer}");
                return answer;
            }
        }
    }

    fn initialize(mut self) -> Self {
        let client = json!({"name": "bench", "version": "1"});
        self.ask("initialize", &json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}));
        self.writer.write_all(b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n").unwrap();
        self
    }

    /// Answers a second, with [`IN_FLIGHT`] requests under way at each moment.
    fn rate(&mut self, method: &str, params: &Value, calls: usize) -> f64 {
        self.ask(method, params);
        let (params, mut buffer) = (params.to_string(), vec![0; 64 * 1024]);
        let start = Instant::now();
        let (mut sent, mut answered, mut batch) = (0, 0, String::new());
        while answered < calls {
            while sent < calls && sent - answered < IN_FLIGHT {
                batch.push_str(&self.request(method, &params));
                sent += 1;
            }
            if !batch.is_empty() {
                self.writer.write_all(batch.as_bytes()).unwrap();
                self.writer.flush().unwrap();
                batch.clear();
            }
            let read = self.reader.read(&mut buffer).unwrap();
            assert!(read > 0, "{method}: the server went");
            answered += buffer[..read].iter().filter(|byte| **byte == b'\n').count();
        }
        calls as f64 / start.elapsed().as_secs_f64()
    }
}

pub(crate) fn run(quick: bool) {
    let dir = tempfile::tempdir().unwrap();
    let (hand, rmcp) = (dir.path().join("hand.sock"), dir.path().join("rmcp.sock"));
    let daemon = dir.path().join("run/toold.sock");
    let _hand = ServedProgram::start("serve-by-hand", &hand, &hand);
    let _rmcp = ServedProgram::start("serve-rmcp", &rmcp, &rmcp);
    let _daemon = ServedProgram::start("serve-daemon", dir.path(), &daemon);
    eight_by_sixteen(&hand, &daemon, quick);
    stdio(dir.path(), quick);
    beside_sdks(&rmcp, &daemon, quick);
}

fn call() -> Value {
    json!({"name": "noop_native", "arguments": {"text": "hello world 0123456789"}})
}

/// Eight connections with sixteen requests each, against a server that does nothing but parse.
fn eight_by_sixteen(hand: &Path, daemon: &Path, quick: bool) {
    let (rounds, calls) = if quick { (3, 500) } else { (21, 5_000) };
    let cases =
        [(hand, "tools.execute", call()), (daemon, "daemon.ping", json!({})), (daemon, "tools.execute", call())];
    let mut rates = [const { Vec::new() }; 3];
    for _ in 0..rounds {
        for ((socket, method, params), rates) in cases.iter().zip(&mut rates) {
            let start = Instant::now();
            std::thread::scope(|scope| {
                for _ in 0..8 {
                    scope.spawn(|| LineClient::socket(socket).rate(method, params, calls));
                }
            });
            rates.push(8.0 * calls as f64 / start.elapsed().as_secs_f64());
        }
    }
    let [floor, ping, noop] = rates.map(median_rate);
    println!("{:<44} {:>13}   {:>8}", "8 connections by 16 requests", "", "of floor");
    rate_row("a parser written by hand", floor, floor);
    rate_row("daemon.ping", ping, floor);
    rate_row("no-op built-in", noop, floor);
    goal(3, "requests a second, 8 by 16, of a parser written by hand", ping / floor, "x", Demand::AtLeast(0.5));
    println!();
}

/// The same request over stdio and over a socket of the same program.
fn stdio(dir: &Path, quick: bool) {
    let (rounds, calls) = if quick { (3, 100) } else { (21, 1_000) };
    let socket = dir.join("two/toold.sock");
    let program = || {
        let mut command = Command::new(toold());
        command.env("XDG_CONFIG_HOME", dir.join("two")).env("XDG_STATE_HOME", dir.join("two/state"));
        command.env("TOOLD_LOG", "error").env("TOOLD_SOCKET", &socket);
        command
    };
    std::fs::create_dir(dir.join("two")).unwrap();
    let _served = BenchedProcess(program().arg("serve").stdin(Stdio::null()).spawn().unwrap());
    toold_tests::until("the daemon listens", || UnixStream::connect(&socket).ok());
    let mut ways = [LineClient::socket(&socket), LineClient::stdio(program().arg("--stdio"))];
    let mut medians = [const { Vec::new() }; 2];
    for _ in 0..=rounds {
        for (lines, medians) in ways.iter_mut().zip(&mut medians) {
            let mut samples: Vec<Duration> = (0..calls)
                .map(|_| {
                    let request = lines.request("daemon.ping", "{}");
                    let (start, mut buffer) = (Instant::now(), [0; 4096]);
                    lines.writer.write_all(request.as_bytes()).unwrap();
                    lines.writer.flush().unwrap();
                    loop {
                        let read = lines.reader.read(&mut buffer).unwrap();
                        if buffer[..read].ends_with(b"\n") {
                            break;
                        }
                        assert!(read > 0, "the daemon went");
                    }
                    start.elapsed()
                })
                .collect();
            medians.push(percentile(&mut samples, 0.5));
        }
    }
    let [on_socket, on_stdio] = medians.map(|mut medians| percentile(&mut medians[1..], 0.5));
    println!("{:<44} {:>13}   {:>8}", "daemon.ping by transport, p50", "", "of socket");
    row("socket", on_socket, on_socket);
    row("stdio", on_stdio, on_socket);
    goal(4, "a ping over stdio, of the socket's", ratio(on_stdio, on_socket), "x", Demand::AtMost(1.15));
    println!();
}

/// Calls of a tool that does nothing: the daemon's own protocol against servers on the SDKs of MCP.
fn beside_sdks(rmcp: &Path, daemon: &Path, quick: bool) {
    let (rounds, calls) = if quick { (1, 200) } else { (11, 3_000) };
    let arguments = json!({"name": "noop", "arguments": {"text": "hello world 0123456789"}});
    let others: [(&str, f64, Option<LineClient>); 3] = [
        ("an rmcp server, socket", 2.0, Some(LineClient::socket(rmcp).initialize())),
        (
            "a server on the TypeScript SDK, stdio",
            6.0,
            node_server().map(|mut node| LineClient::stdio(&mut node).initialize()),
        ),
        (
            "a server on the Python SDK, stdio",
            40.0,
            python_server().map(|mut py| LineClient::stdio(&mut py).initialize()),
        ),
    ];
    let mut own = LineClient::socket(daemon);
    let mut others = others.map(|(name, least, lines)| (name, least, lines, Vec::new()));
    let mut rates = Vec::new();
    for _ in 0..rounds {
        rates.push(own.rate("tools.execute", &call(), calls));
        for (_, least, lines, rates) in &mut others {
            if let Some(lines) = lines {
                // The slower ones get fewer, or the run would spend its time on them.
                rates.push(lines.rate("tools/call", &arguments, (calls as f64 / *least) as usize));
            }
        }
    }
    let own = median_rate(rates);
    println!("{:<44} {:>13}   {:>8}", "calls a second, 16 in flight", "", "of toold");
    rate_row("toold, socket", own, own);
    for (name, least, lines, rates) in others {
        if lines.is_none() {
            println!("{name}: not installed below target/; `.ci/mcp_client` installs it");
            continue;
        }
        let rate = median_rate(rates);
        rate_row(name, rate, own);
        goal(15, &format!("calls a second, of {name}"), own / rate, "x", Demand::AtLeast(least));
    }
    println!();
}

fn below_target(path: &str) -> Option<PathBuf> {
    // …/target/release/deps/daemon-…
    let program = std::env::current_exe().unwrap();
    let target = program.ancestors().find(|dir| dir.join("CACHEDIR.TAG").exists())?;
    Some(target.join(path)).filter(|path| path.exists())
}

/// The server on the TypeScript SDK, if it is installed. The script is copied next to the SDK, because
/// Node looks for packages there.
pub(crate) fn node_server() -> Option<Command> {
    let node = below_target("node/22/node_modules/node/bin/node")?;
    let beside = below_target("node/mcp-files/node_modules/@modelcontextprotocol/sdk")?;
    let script = beside.ancestors().nth(3)?.join("bench_server.mjs");
    std::fs::write(&script, include_str!("peers/sdk_server.mjs")).unwrap();
    let mut command = Command::new(node);
    command.arg(script);
    Some(command)
}

fn python_server() -> Option<Command> {
    let mut command = Command::new(below_target("mcp-python-2/bin/python")?);
    command.arg("-c").arg(include_str!("peers/sdk_server.py"));
    Some(command)
}
