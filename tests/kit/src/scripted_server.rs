//! A server that sends what a test specifies, byte by byte, and follows no standard.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

/// An action of a server on a connection after it has read a request. It closes after the last step.
pub enum ServerStep {
    Send(Vec<u8>),
    /// Repeats until the client has disconnected.
    Flood(Vec<u8>),
    /// Waits until the client has disconnected.
    Hang,
}

/// Ends with its value.
pub struct ScriptedServer {
    pub address: SocketAddr,
    requests: Arc<Mutex<Vec<String>>>,
    _accepting: JoinSet<()>,
    /// Dropped last: it runs the task above, unless the test's own runtime does.
    _runtime: Option<Runtime>,
}

impl ScriptedServer {
    /// Answers each request with the result of `script` for it: first line, headers and body.
    pub async fn start(script: impl Fn(&str) -> Vec<ServerStep> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let requests = Arc::<Mutex<Vec<String>>>::default();
        let (script, seen) = (Arc::new(script), requests.clone());
        let mut accepting = JoinSet::new();
        accepting.spawn(async move {
            let mut serving = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let (script, seen) = (script.clone(), seen.clone());
                serving.spawn(async move {
                    // A client that disconnects is normal.
                    let _ = serve(stream, &*script, &seen).await;
                });
            }
        });
        Self { address, requests, _accepting: accepting, _runtime: None }
    }

    /// Always answers with these bytes.
    pub async fn of(bytes: impl Into<Vec<u8>>) -> Self {
        let bytes = bytes.into();
        Self::start(move |_| vec![ServerStep::Send(bytes.clone())]).await
    }

    /// As [`start`](Self::start), with a thread of its own, for tests without a runtime.
    pub fn start_thread(script: impl Fn(&str) -> Vec<ServerStep> + Send + Sync + 'static) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let server = runtime.block_on(Self::start(script));
        Self { _runtime: Some(runtime), ..server }
    }

    /// As [`of`](Self::of), with a thread of its own.
    pub fn thread_of(bytes: impl Into<Vec<u8>>) -> Self {
        let bytes = bytes.into();
        Self::start_thread(move |_| vec![ServerStep::Send(bytes.clone())])
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// All requests so far.
    pub fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

/// A response with a correct `Content-Length`.
pub fn answer(status: &str, headers: &[(&str, &str)], body: impl AsRef<[u8]>) -> Vec<u8> {
    let body = body.as_ref();
    let mut bytes = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n", body.len());
    for (name, value) in headers {
        bytes.push_str(&format!("{name}: {value}\r\n"));
    }
    [format!("{bytes}\r\n").as_bytes(), body].concat()
}

pub fn ok(content_type: &str, body: impl AsRef<[u8]>) -> Vec<u8> {
    answer("200 OK", &[("Content-Type", content_type), ("Connection", "close")], body)
}

pub fn redirect(status: &str, location: &str) -> Vec<u8> {
    answer(status, &[("Location", location), ("Connection", "close")], "")
}

async fn serve(
    mut stream: TcpStream,
    script: &(impl Fn(&str) -> Vec<ServerStep> + ?Sized),
    seen: &Mutex<Vec<String>>,
) -> io::Result<()> {
    let request = read_request(&mut stream).await?;
    seen.lock().unwrap().push(request.clone());
    for step in script(&request) {
        match step {
            ServerStep::Send(bytes) => stream.write_all(&bytes).await?,
            ServerStep::Flood(bytes) => loop {
                stream.write_all(&bytes).await?;
            },
            ServerStep::Hang => while stream.read(&mut [0; 64]).await? > 0 {},
        }
    }
    stream.shutdown().await?;
    // Closing with unread bytes would reset the connection and lose the data that was sent.
    while stream.read(&mut [0; 1024]).await? > 0 {}
    Ok(())
}

async fn read_request(stream: &mut TcpStream) -> io::Result<String> {
    let mut bytes = Vec::new();
    let head = loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break end + 4;
        }
        let mut buffer = [0; 1024];
        let n = stream.read(&mut buffer).await?;
        if n == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        bytes.extend_from_slice(&buffer[..n]);
    };
    let text = String::from_utf8_lossy(&bytes[..head]).into_owned();
    let length = text.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
    let mut rest = vec![0; (head + length.unwrap_or(0usize)).saturating_sub(bytes.len())];
    stream.read_exact(&mut rest).await?;
    bytes.extend(rest);
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
