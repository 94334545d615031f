//! A daemon in this process, for one input after the other.

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use tempfile::TempDir;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream, ReadBuf, duplex};
use tokio::runtime::Runtime;
use toold::config::options::Options;
use toold::config::paths::DaemonPaths;
use toold::daemon::Daemon;
use toold::peer::Peer;
use toold::rpc::byte_stream::ByteStream;
use toold_proto::tool::Category;

static WORLD: Mutex<Option<World>> = Mutex::new(None);

/// How long answers may take; then the client goes away.
const ANSWER: Duration = Duration::from_secs(30);

/// The answers of the daemon.
pub(super) struct Answered {
    pub(super) out: Vec<u8>,
    /// The daemon ended the connection by itself: there is nothing more to come.
    pub(super) whole: bool,
}

/// Removes the daemon and its folders on drop. The next input gets new ones.
pub struct ClosedAtEnd;

impl Drop for ClosedAtEnd {
    fn drop(&mut self) {
        *WORLD.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// Sends all of `data` as a person's client that then listens until the end.
pub(super) fn exchange(data: &[u8]) -> Answered {
    let mut world = WORLD.lock().unwrap_or_else(PoisonError::into_inner);
    let there = world.take().filter(|world| !world.daemon.services.lifecycle.stopping().is_cancelled());
    world.insert(there.unwrap_or_else(World::new)).exchange(data)
}

struct World {
    runtime: Runtime,
    daemon: Daemon,
    dir: TempDir,
}

impl World {
    fn new() -> Self {
        let dir = tempfile::Builder::new().prefix("toold-fuzz-").tempdir().expect("there is a place for temp files");
        for name in ["config", "state", "work"] {
            std::fs::create_dir(dir.path().join(name)).expect("the folder is new");
        }
        // No request runs, writes or fetches anything: deny rules come before grants and modes.
        let closed = Category::ALL.into_iter().filter(|category| *category != Category::FileRead);
        let rules = closed.map(|category| {
            format!("[[permission.rules]]\ncategory = \"{category}\"\npattern = \"*\"\naction = \"deny\"\n")
        });
        let registry = "[mcp]\nregistry = \"http://127.0.0.1:9\"\n".to_owned();
        let config = [registry].into_iter().chain(rules).collect::<String>();
        std::fs::write(dir.path().join("config/config.toml"), config).expect("the folder is there");
        let options = Options {
            paths: DaemonPaths { config: dir.path().join("config"), state: dir.path().join("state"), home: None },
            config: None,
            set: Vec::new(),
            plugins: Vec::new(),
            socket: None,
            environment: Vec::new(),
        };
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.expect("the system gives threads");
        let daemon = {
            let _inside = runtime.enter();
            Daemon::start(options).expect("a daemon starts in empty folders")
        };
        Self { runtime, daemon, dir }
    }

    fn exchange(&self, data: &[u8]) -> Answered {
        let (near, far) = duplex(64 * 1024);
        let gone = Arc::<AtomicBool>::default();
        let peer = Peer::within(Some(self.dir.path().join("work")));
        let serving = self.daemon.clients.serve_here(Pipe { stream: far, gone: gone.clone() }, peer);
        self.runtime.block_on(async {
            let (mut reader, mut writer) = tokio::io::split(near);
            let mut out = Vec::new();
            let send = async {
                // Fails when the daemon has ended the connection, as it may.
                let _ = writer.write_all(data).await;
                let _ = writer.shutdown().await;
            };
            let whole = {
                let listen = async {
                    // In memory, reading never fails.
                    let _ = reader.read_to_end(&mut out).await;
                };
                let talk = async { tokio::join!(serving, send, listen) };
                let mut talk = std::pin::pin!(talk);
                let whole = tokio::time::timeout(ANSWER, &mut talk).await.is_ok();
                gone.store(true, Ordering::Relaxed);
                if !whole {
                    let ended = tokio::time::timeout(2 * ANSWER, &mut talk).await;
                    ended.expect("a connection ends when its client is gone");
                }
                whole
            };
            Answered { out, whole }
        })
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.runtime.block_on(self.daemon.stop(std::future::ready(())));
    }
}

/// The daemon's end of a connection.
struct Pipe {
    stream: DuplexStream,
    gone: Arc<AtomicBool>,
}

impl ByteStream for Pipe {
    fn hung_up(&self) -> bool {
        self.gone.load(Ordering::Relaxed)
    }
}

impl AsyncRead for Pipe {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Pipe {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
