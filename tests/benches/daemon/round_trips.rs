//! One small call after another, each candidate in turn; and how soon a saved plugin takes effect.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;
use toold_tests::Wire;

use crate::served::ServedProgram;
use crate::stats::{Demand, goal, median, percentile, ratio, row};

const NOOP_LUA: &str = r#"
hygge.register_tool{
  name = "noop_lua", description = "Gives its text back", parallelizable = true,
  input_schema = {type = "object", properties = {text = {type = "string"}}, required = {"text"}, additionalProperties = false},
  execute = function(ctx, input) return input.text end,
}
"#;

pub(crate) fn run(quick: bool) {
    let dir = tempfile::tempdir().unwrap();
    let plugins = dir.path().join("config/plugins");
    std::fs::create_dir_all(&plugins).unwrap();
    std::fs::write(plugins.join("noop.lua"), NOOP_LUA).unwrap();
    let (thread_socket, echo_socket) = (dir.path().join("thread.sock"), dir.path().join("echo.sock"));
    let daemon_socket = dir.path().join("run/toold.sock");
    let _thread = ServedProgram::start("serve-echo", &thread_socket, &thread_socket);
    let _echo = ServedProgram::start("serve-echo-tokio", &echo_socket, &echo_socket);
    let _daemon = ServedProgram::start("serve-daemon", dir.path(), &daemon_socket);
    let mut wire = Wire::connect(&daemon_socket);
    wire.result("tools.list", json!({}));

    let request = |method: &str, tool: &str| {
        let params = match tool {
            "" => json!({}),
            tool => json!({"name": tool, "arguments": {"text": "hello world 0123456789"}}),
        };
        json!({"jsonrpc": "2.0", "id": 12345, "method": method, "params": params}).to_string()
    };
    let lines = |text: String| format!("{text}\n");
    let headers = |text: String| format!("Content-Length: {}\r\n\r\n{text}", text.len());
    let native = request("tools.execute", "noop_native");
    let mut candidates = [
        Candidate::new("raw echo of the same line, on tokio", &echo_socket, lines(native.clone()), false),
        Candidate::new("raw echo on a thread that blocks", &thread_socket, lines(native.clone()), false),
        Candidate::new("daemon.ping", &daemon_socket, lines(request("daemon.ping", "")), false),
        Candidate::new("no-op built-in", &daemon_socket, lines(native.clone()), false),
        Candidate::new("no-op built-in, Content-Length", &daemon_socket, headers(native), true),
        Candidate::new("no-op Lua tool", &daemon_socket, lines(request("tools.execute", "noop_lua")), false),
    ];
    let (rounds, calls) = if quick { (3, 200) } else { (30, 1_000) };
    for round in 0..=rounds {
        for candidate in &mut candidates {
            let mut samples: Vec<Duration> = (0..calls).map(|_| candidate.once()).collect();
            // The first round warms up.
            if round > 0 {
                candidate.p50.push(percentile(&mut samples, 0.5));
                candidate.p99.push(percentile(&mut samples, 0.99));
            }
        }
    }
    let p50: Vec<Duration> = candidates.iter().map(|candidate| median(candidate.p50.clone())).collect();
    let p99: Vec<Duration> = candidates.iter().map(|candidate| median(candidate.p99.clone())).collect();
    println!("{:<44} {:>13}   {:>8}", "round trip, p50", "", "of floor");
    for (candidate, value) in candidates.iter().zip(&p50) {
        row(candidate.name, *value, p50[0]);
    }
    let built_in = p50[3];
    println!("p99 in us: {}", list(&candidates, &p99));
    let (of_tokio, of_thread) = (ratio(built_in, p50[0]), ratio(built_in, p50[1]));
    goal(1, "a no-op built-in, whole pipeline, of a raw echo on tokio", of_tokio, "x", Demand::AtMost(1.5));
    goal(1, "the same, of a raw echo on a thread that blocks", of_thread, "x", Demand::AtMost(1.5));
    goal(2, "Content-Length, of lines", ratio(p50[4], built_in), "x", Demand::AtMost(1.06));
    goal(5, "a no-op Lua tool, of the built-in", ratio(p50[5], built_in), "x", Demand::AtMost(1.3));
    println!();
    beside_a_flood(&daemon_socket, &mut candidates[3], built_in, if quick { 50 } else { 1_000 });
    reloads(&plugins, &daemon_socket, if quick { 5 } else { 50 });
}

/// One client's single calls, while another one sends ten thousand at a time.
fn beside_a_flood(socket: &Path, candidate: &mut Candidate, alone: Duration, calls: usize) {
    let flood = UnixStream::connect(socket).unwrap();
    let (mut reader, mut writer) = (flood.try_clone().unwrap(), flood);
    let (stop, request) = (Arc::new(AtomicBool::new(false)), candidate.request.repeat(10_000));
    let sending = std::thread::spawn({
        let stop = stop.clone();
        move || {
            while !stop.load(Ordering::Relaxed) && writer.write_all(request.as_bytes()).is_ok() {}
            let _ = writer.shutdown(std::net::Shutdown::Write);
        }
    });
    let reading = std::thread::spawn(move || std::io::copy(&mut reader, &mut std::io::sink()));
    let mut samples: Vec<Duration> = (0..calls).map(|_| candidate.once()).collect();
    stop.store(true, Ordering::Relaxed);
    sending.join().unwrap();
    let flooded = reading.join().unwrap().unwrap_or(0);
    assert!(flooded > 0, "the flood was answered");
    println!("{:<44} {:>13}   {:>8}", "beside 10,000 calls at a time", "", "of alone");
    row("no-op built-in, p50", percentile(&mut samples, 0.5), alone);
    row("no-op built-in, p99", percentile(&mut samples, 0.99), alone);
    println!();
}

fn list(candidates: &[Candidate], values: &[Duration]) -> String {
    let shown = candidates.iter().zip(values).map(|(c, value)| format!("{} {:.1}", c.name, value.as_secs_f64() * 1e6));
    shown.collect::<Vec<_>>().join(", ")
}

pub(crate) struct Candidate {
    pub(crate) name: &'static str,
    stream: BufReader<UnixStream>,
    request: String,
    /// The request after this one, and so on.
    next: VecDeque<String>,
    headers: bool,
    answer: Vec<u8>,
    pub(crate) p50: Vec<Duration>,
    p99: Vec<Duration>,
}

impl Candidate {
    pub(crate) fn new(name: &'static str, socket: &Path, request: String, headers: bool) -> Self {
        let mut candidate = Self::connected(name, socket, request, headers);
        candidate.check();
        candidate
    }

    /// One that makes these requests in turn, after those `before` were answered once.
    pub(crate) fn in_session(name: &'static str, socket: &Path, before: &[String], requests: Vec<String>) -> Self {
        let mut candidate = Self::connected(name, socket, String::new(), false);
        for request in before {
            request.clone_into(&mut candidate.request);
            candidate.check();
        }
        candidate.request.clear();
        candidate.next = requests.into();
        candidate.turn();
        for _ in 0..=candidate.next.len() {
            candidate.check();
        }
        candidate
    }

    fn connected(name: &'static str, socket: &Path, request: String, headers: bool) -> Self {
        let stream = BufReader::new(UnixStream::connect(socket).unwrap());
        let (answer, next, p50, p99) = Default::default();
        Self { name, stream, request, next, headers, answer, p50, p99 }
    }

    /// The first request is the last one from now on.
    fn turn(&mut self) {
        if let Some(next) = self.next.pop_front() {
            let last = std::mem::replace(&mut self.request, next);
            self.next.extend((!last.is_empty()).then_some(last));
        }
    }

    fn check(&mut self) {
        self.once();
        let answer = String::from_utf8_lossy(&self.answer).into_owned();
        let is_error = answer.contains("\"error\"") || answer.contains("\"is_error\":true");
        assert!(!is_error, "{}: {answer}", self.name);
    }

    pub(crate) fn once(&mut self) -> Duration {
        let start = Instant::now();
        self.stream.get_mut().write_all(self.request.as_bytes()).unwrap();
        self.answer.clear();
        self.stream.read_until(b'\n', &mut self.answer).unwrap();
        if self.headers {
            let header = std::str::from_utf8(&self.answer).unwrap();
            let length: usize = header.trim().rsplit(' ').next().unwrap().parse().unwrap();
            self.answer.clear();
            self.answer.resize(length + 2, 0);
            self.stream.read_exact(&mut self.answer).unwrap();
        }
        let took = start.elapsed();
        self.turn();
        took
    }
}

/// From `rename(2)` of a changed plugin to the event about its new tools.
fn reloads(plugins: &Path, socket: &Path, times: usize) {
    let mut wire = Wire::connect(socket);
    wire.result("events.subscribe", json!({"kinds": ["tools.changed"]}));
    let (mut to_event, mut to_echo) = (Vec::new(), Vec::new());
    for version in 0..times {
        let beside = plugins.join(".new");
        std::fs::write(&beside, NOOP_LUA.replace("Gives its", &format!("Version {version} gives its"))).unwrap();
        let start = Instant::now();
        std::fs::rename(&beside, plugins.join("noop.lua")).unwrap();
        wire.notification("events.event");
        to_event.push(start.elapsed());
        let start = Instant::now();
        wire.result("daemon.ping", json!({}));
        to_echo.push(start.elapsed());
    }
    let floor = median(to_echo);
    println!("{:<44} {:>13}   {:>8}", "reload", "", "of a ping");
    let p50 = percentile(&mut to_event, 0.5);
    row("rename(2) to tools.changed, p50", p50, floor);
    row("rename(2) to tools.changed, p99", percentile(&mut to_event, 0.99), floor);
    goal(10, "from a save to its notification", p50.as_secs_f64() * 1e3, "ms", Demand::AtMost(3.0));
    println!();
}
