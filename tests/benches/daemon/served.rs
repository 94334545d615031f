//! The servers under test.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use toold::daemon::{Daemon, Options};
use toold::places::Places;
use toold::transport::unix::Socket;
use toold_engine::cx::Cx;
use toold_engine::need::Need;
use toold_engine::registry::{Scope, SourceKey};
use toold_engine::schema::Schema;
use toold_engine::tool::{Origin, Tool, ToolError, ToolOutput, ToolSpec};
use toold_proto::tool::{Annotations, Source, SourceKind, ToolName};

/// A server process; killed when dropped.
pub(crate) struct Server(Child);

impl Server {
    pub(crate) fn start(what: &str, place: &Path, socket: &Path) -> Self {
        let program = std::env::current_exe().unwrap();
        let child = Command::new(program).args([what]).arg(place).stdin(Stdio::null()).spawn().unwrap();
        toold_tests::until("the server listens", || std::os::unix::net::UnixStream::connect(socket).ok());
        Self(child)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Gives each line back: what no daemon on a socket can be faster than.
pub(crate) fn echo(socket: &Path) {
    let listener = UnixListener::bind(socket).unwrap();
    for stream in listener.incoming() {
        let stream = stream.unwrap();
        std::thread::spawn(move || {
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let mut writer = stream;
            let mut line = Vec::new();
            while reader.read_until(b'\n', &mut line).is_ok_and(|n| n > 0) {
                if writer.write_all(&line).is_err() {
                    return;
                }
                line.clear();
            }
        });
    }
}

/// A whole daemon with one more built-in, which does nothing.
pub(crate) fn daemon(dir: &Path) {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let socket = Socket::bind(&dir.join("run/toold.sock")).unwrap();
        let daemon = Daemon::start(Options {
            places: Places { config: dir.join("config"), state: dir.join("state"), home: None },
            config: None,
            set: Vec::new(),
            plugins: Vec::new(),
            socket: Some(socket.path().to_owned()),
            environment: Vec::new(),
        })
        .unwrap();
        let key = SourceKey { kind: SourceKind::Builtin, name: "bench".into(), scope: Scope::Global };
        daemon.state.engine.registry.put(key, Origin::Builtin, vec![Arc::new(Noop::new())]).unwrap();
        socket.accept(&daemon).await;
    });
}

struct Noop(ToolSpec);

impl Noop {
    fn new() -> Self {
        Self(ToolSpec {
            name: ToolName::parse("noop_native").unwrap(),
            label: "No-op".into(),
            description: "Gives its text back".into(),
            input: Schema::compile_input(json!({
                "type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"],
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
        })
    }
}

impl Tool for Noop {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn needs<'a>(&'a self, _: &'a Value, _: &'a Cx) -> BoxFuture<'a, Result<Vec<Need>, ToolError>> {
        async { Ok(Vec::new()) }.boxed()
    }

    fn call<'a>(&'a self, input: Value, _: &'a Cx) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        async move { Ok(ToolOutput::text(input["text"].as_str().unwrap_or_default())) }.boxed()
    }
}
