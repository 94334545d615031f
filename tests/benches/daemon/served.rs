//! The servers under test.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use ::rmcp::RoleServer;
use ::rmcp::model::{CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock};
use ::rmcp::service::RequestContext;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use toold::config::options::Options;
use toold::config::paths::DaemonPaths;
use toold::daemon::Daemon;
use toold::transport::unix::Socket;
use toold_engine::callable::Callable;
use toold_engine::cx::Cx;
use toold_engine::need::Need;
use toold_engine::registry::{SourceKey, SourceScope};
use toold_engine::schema::Schema;
use toold_engine::tool::{Origin, ToolError, ToolOutput, ToolSpec};
use toold_proto::tool::{Annotations, Source, SourceKind, ToolName};

/// A server process; killed when dropped.
pub(crate) struct ServedProgram(Child);

impl ServedProgram {
    /// A server of this program; returns when it listens on the socket.
    pub(crate) fn start(what: &str, place: &Path, socket: &Path) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        Self::spawn(command.args([what]).arg(place), || std::os::unix::net::UnixStream::connect(socket).ok()).0
    }

    /// The same of one that serves on `socket` and has one more argument.
    pub(crate) fn start_with(what: &str, socket: &Path, argument: &Path) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.arg(what).args([socket, argument]);
        Self::spawn(&mut command, || std::os::unix::net::UnixStream::connect(socket).ok()).0
    }

    /// jsonrpsee's own WebSocket server, and its port.
    pub(crate) fn start_jsonrpsee(port_file: &Path) -> (Self, u16) {
        let mut command = Command::new(toold_tests::jsonrpsee_server());
        Self::spawn(command.arg(port_file), || std::fs::read_to_string(port_file).ok()?.parse().ok())
    }

    fn spawn<T>(command: &mut Command, ready: impl FnMut() -> Option<T>) -> (Self, T) {
        let server = Self(command.stdin(Stdio::null()).spawn().unwrap());
        let found = toold_tests::until("the server listens", ready);
        (server, found)
    }

    /// Bytes that are its own and in memory.
    pub(crate) fn memory(&self) -> u64 {
        let rollup = std::fs::read_to_string(format!("/proc/{}/smaps_rollup", self.0.id())).unwrap();
        let own = rollup.lines().find_map(|line| line.strip_prefix("Anonymous:")).unwrap();
        own.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
    }
}

impl Drop for ServedProgram {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Echoes each line, with one thread per connection that waits in `read(2)`. No daemon on a socket can be faster, and
/// none that holds ten thousand connections can be as fast.
pub(crate) fn echo(socket: &Path) {
    echo_after(socket, || {});
}

/// As [`echo`], but opens and reads a file before each answer.
pub(crate) fn echo_reading(socket: &Path, file: &Path) {
    let file = file.to_owned();
    echo_after(socket, move || drop(std::fs::read(&file).unwrap()));
}

fn echo_after(socket: &Path, work: impl Fn() + Clone + Send + 'static) {
    let listener = UnixListener::bind(socket).unwrap();
    for stream in listener.incoming() {
        let (stream, work) = (stream.unwrap(), work.clone());
        std::thread::spawn(move || {
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let mut writer = stream;
            let mut line = Vec::new();
            while reader.read_until(b'\n', &mut line).is_ok_and(|n| n > 0) {
                work();
                if writer.write_all(&line).is_err() {
                    return;
                }
                line.clear();
            }
        });
    }
}

/// Echoes each line, on the daemon's runtime.
pub(crate) fn echo_on_tokio(socket: &Path) {
    use tokio::io::{AsyncBufReadExt, AsyncWriteExt};
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let listener = tokio::net::UnixListener::bind(socket).unwrap();
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            tokio::spawn(async move {
                let (reader, mut writer) = stream.split();
                let mut reader = tokio::io::BufReader::new(reader);
                let mut line = Vec::new();
                while reader.read_until(b'\n', &mut line).await.is_ok_and(|n| n > 0) {
                    if writer.write_all(&line).await.is_err() {
                        return;
                    }
                    line.clear();
                }
            });
        }
    });
}

/// Answers as the daemon does, with nothing in between: parses requests in place in the buffer, and answers all that
/// arrived together in one write. No daemon that speaks JSON-RPC can be faster.
pub(crate) fn by_hand(socket: &Path) {
    #[derive(serde::Deserialize)]
    struct BenchRequest<'a> {
        #[serde(borrow)]
        id: &'a RawValue,
        method: &'a str,
        params: RequestParams<'a>,
    }
    #[derive(serde::Deserialize)]
    struct RequestParams<'a> {
        name: &'a str,
        arguments: CallArguments<'a>,
    }
    #[derive(serde::Deserialize)]
    struct CallArguments<'a> {
        text: &'a str,
    }
    let listener = UnixListener::bind(socket).unwrap();
    for stream in listener.incoming() {
        let mut stream = stream.unwrap();
        std::thread::spawn(move || {
            let (mut buffer, mut filled, mut out) = (vec![0; 64 * 1024], 0, Vec::new());
            while let Ok(read @ 1..) = stream.read(&mut buffer[filled..]) {
                filled += read;
                let whole = buffer[..filled].iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
                for line in buffer[..whole].split_inclusive(|byte| *byte == b'\n') {
                    let request: BenchRequest = serde_json::from_slice(line).unwrap();
                    assert_eq!((request.method, request.params.name), ("tools.execute", "noop_native"));
                    let content = json!([{"type": "text", "text": request.params.arguments.text}]);
                    writeln!(out, r#"{{"jsonrpc":"2.0","id":{},"result":{{"content":{content}}}}}"#, request.id)
                        .unwrap();
                }
                buffer.copy_within(whole..filled, 0);
                filled -= whole;
                if stream.write_all(&out).is_err() {
                    return;
                }
                out.clear();
            }
        });
    }
}

/// A server of one tool on the official Rust SDK of MCP.
pub(crate) fn rmcp(socket: &Path) {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let listener = tokio::net::UnixListener::bind(socket).unwrap();
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            tokio::spawn(async move {
                if let Ok(service) = ::rmcp::serve_server(OneTool, stream.into_split()).await {
                    let _ = service.waiting().await;
                }
            });
        }
    });
}

struct OneTool;

impl ::rmcp::ServerHandler for OneTool {
    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ::rmcp::ErrorData> {
        let text = request.arguments.as_ref().and_then(|arguments| arguments["text"].as_str()).unwrap_or_default();
        Ok(CallToolResult::success(vec![ContentBlock::text(text)]).into())
    }
}

/// The text of each progress message.
const TEXT: &str = "hello world 0123456789";

/// A whole daemon with three more built-ins: one does nothing, one reports progress, one waits.
pub(crate) fn daemon(dir: &Path) {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let socket = Socket::bind(&dir.join("run/toold.sock"), &dir.join("state")).unwrap();
        let daemon = Daemon::start(Options {
            paths: DaemonPaths { config: dir.join("config"), state: dir.join("state"), home: None },
            config: None,
            set: Vec::new(),
            plugins: Vec::new(),
            socket: Some(socket.path().to_owned()),
            environment: Vec::new(),
        })
        .unwrap();
        let key = SourceKey { kind: SourceKind::Builtin, name: "bench".into(), scope: SourceScope::Global };
        let tools = vec![
            Bench::tool("noop_native", BenchAction::Nothing),
            Bench::tool("noop_progress", BenchAction::Progress),
            Bench::tool("noop_wait", BenchAction::Wait),
        ];
        daemon.services.engine.registry.put(key, Origin::Builtin, tools).unwrap();
        socket.accept(&daemon.clients).await;
    });
}

/// The additional tools of the daemon under test.
#[derive(Clone, Copy)]
enum BenchAction {
    Nothing,
    /// Reports `items` messages, with pauses in which its outbox is drained.
    Progress,
    /// Waits until it is cancelled.
    Wait,
}

struct Bench {
    spec: ToolSpec,
    does: BenchAction,
}

impl Bench {
    fn tool(name: &str, does: BenchAction) -> Arc<dyn Callable> {
        let spec = ToolSpec {
            name: ToolName::parse(name).unwrap(),
            label: name.into(),
            description: "Gives its text back".into(),
            input: Schema::compile_input(json!({
                "type": "object", "properties": {"text": {"type": "string"}, "items": {"type": "integer"}},
                "additionalProperties": false
            }))
            .unwrap(),
            output: None,
            source: Source { kind: SourceKind::Builtin, name: "bench".into(), path: None },
            origin: Origin::Builtin,
            parallelizable: true,
            permissions: Vec::new(),
            cache_ttl: None,
            timeout: None,
            annotations: Annotations::default(),
            version: None,
            grammar: None,
        };
        Arc::new(Self { spec, does })
    }
}

impl Callable for Bench {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn needs<'a>(&'a self, _: &'a Value, _: &'a Cx) -> BoxFuture<'a, Result<Vec<Need>, ToolError>> {
        async { Ok(Vec::new()) }.boxed()
    }

    fn call<'a>(&'a self, input: Value, cx: &'a Cx) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        async move {
            match self.does {
                BenchAction::Nothing => {}
                BenchAction::Progress => {
                    for n in 0..input["items"].as_u64().unwrap_or_default() {
                        cx.message(TEXT);
                        if n % 64 == 63 {
                            tokio::task::yield_now().await;
                        }
                    }
                }
                BenchAction::Wait => cx.cancel.cancelled().await,
            }
            Ok(ToolOutput::text(input["text"].as_str().unwrap_or_default()))
        }
        .boxed()
    }
}
