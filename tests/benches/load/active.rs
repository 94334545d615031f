//! Clients that call one tool after another, all at the same time.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;

use crate::loaded_daemon::LoadedDaemon;
use crate::row;

pub(crate) fn run(daemon: &LoadedDaemon, clients: usize, seconds: u64) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (socket, work) = (daemon.socket(), daemon.work());
    let mut times = runtime.block_on(async {
        let mut tasks = Vec::new();
        for _ in 0..clients {
            tasks.push(tokio::spawn(client(socket.clone(), work.clone(), Duration::from_secs(seconds))));
        }
        let mut times = Vec::new();
        for task in tasks {
            times.extend(task.await.unwrap());
        }
        times
    });
    times.sort_unstable();
    let part = |part: f64| times[((times.len() - 1) as f64 * part) as usize].as_secs_f64() * 1e3;
    row(&format!("{clients} clients that read a file, calls"), times.len() as f64 / seconds as f64, "a second");
    row("a call among them, p50", part(0.5), "ms");
    row("a call among them, p99", part(0.99), "ms");
    row("memory of its own meanwhile", daemon.memory().own / 1024.0, "MiB");
}

/// How long each call took.
async fn client(socket: PathBuf, work: PathBuf, time: Duration) -> Vec<Duration> {
    let mut stream = BufReader::new(UnixStream::connect(socket).await.unwrap());
    let open = json!({"jsonrpc": "2.0", "id": 1, "method": "session.open", "params": {"cwd": work}});
    ask(&mut stream, &format!("{open}\n")).await;
    let params = json!({"name": "read", "arguments": {"path": "a.txt"}});
    let call = json!({"jsonrpc": "2.0", "id": 2, "method": "tools.execute", "params": params}).to_string() + "\n";
    let start = Instant::now();
    let mut times = Vec::new();
    while start.elapsed() < time {
        let before = Instant::now();
        let answer = ask(&mut stream, &call).await;
        assert!(answer.contains("\"is_error\":false"), "{answer}");
        times.push(before.elapsed());
    }
    times
}

async fn ask(stream: &mut BufReader<UnixStream>, request: &str) -> String {
    stream.get_mut().write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_line(&mut answer).await.unwrap();
    answer
}
