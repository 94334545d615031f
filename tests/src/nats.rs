//! A NATS server of a test's own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;
use toold_test_kit::until;

use crate::ports::lasting_port;
use crate::skip_uninstalled;

/// The server's program, as `.ci/install` installs it; `None` when it is not installed, which is reported.
#[track_caller]
pub fn nats_server() -> Option<PathBuf> {
    let installed = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/nats/bin/nats-server");
    let named = std::env::var_os("NATS_SERVER").map(PathBuf::from);
    let found = named.into_iter().chain([installed]).find(|program| program.exists());
    if found.is_none() {
        skip_uninstalled("nats-server");
    }
    found
}

/// A running server with JetStream, on a port of its own. Killed on drop.
pub struct NatsServer {
    program: PathBuf,
    dir: TempDir,
    child: Option<Child>,
    port: u16,
    content: NatsConfig,
}

/// What its configuration file contains.
enum NatsConfig {
    WithJetStream,
    WithoutJetStream,
    /// This text, which listens on port -1 of 127.0.0.1.
    Given(String),
}

impl NatsServer {
    /// `None` when it is not installed, which is reported.
    #[track_caller]
    pub fn start() -> Option<Self> {
        Self::start_with(NatsConfig::WithJetStream)
    }

    /// The same without JetStream, which a fleet needs.
    #[track_caller]
    pub fn start_without_jetstream() -> Option<Self> {
        Self::start_with(NatsConfig::WithoutJetStream)
    }

    /// One with this configuration, which must listen on port -1 of 127.0.0.1; the port is put in its place.
    #[track_caller]
    pub fn start_configured(config: &str) -> Option<Self> {
        Self::start_with(NatsConfig::Given(config.to_owned()))
    }

    #[track_caller]
    fn start_with(content: NatsConfig) -> Option<Self> {
        let program = nats_server()?;
        let dir = tempfile::Builder::new().prefix("toold-nats-").tempdir().expect("there is a place for temp files");
        let mut server = Self { program, dir, child: None, port: lasting_port(), content };
        server.start_again();
        Some(server)
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    pub fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    /// Lines added to its configuration file from the next start on.
    pub fn configure(&self, lines: &str) {
        fs::write(self.dir.path().join("extra.conf"), lines).unwrap();
    }

    /// Starts it after [`kill`](Self::kill), on the same port and with what it has stored.
    pub fn start_again(&mut self) {
        assert!(self.child.is_none(), "it is running");
        let dir = self.dir.path();
        let extra = dir.join("extra.conf");
        if !extra.exists() {
            fs::write(&extra, "").unwrap();
        }
        let port = self.port;
        let jetstream = match &self.content {
            NatsConfig::WithJetStream => format!("jetstream {{ store_dir: {:?} }}\n", dir.join("store")),
            NatsConfig::WithoutJetStream | NatsConfig::Given(_) => String::new(),
        };
        let config = match &self.content {
            NatsConfig::Given(text) => text.replacen("127.0.0.1:-1", &format!("127.0.0.1:{port}"), 1),
            _ => format!("listen: \"127.0.0.1:{port}\"\n{jetstream}include extra.conf\n"),
        };
        fs::write(dir.join("nats.conf"), config).unwrap();
        let log = fs::OpenOptions::new().create(true).append(true).open(dir.join("log")).unwrap();
        let child = Command::new(&self.program)
            .arg("-c")
            .arg(dir.join("nats.conf"))
            .arg("--ports_file_dir")
            .arg(dir)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        // It writes this file once it listens.
        let ports = dir.join(format!("nats-server_{}.ports", child.id()));
        let child = self.child.insert(child);
        let log = dir.join("log");
        until("the NATS server listens", || {
            if let Some(status) = child.try_wait().unwrap() {
                panic!("the NATS server ended ({status}): {}", fs::read_to_string(&log).unwrap_or_default());
            }
            ports.exists().then_some(())
        });
    }

    /// `kill -9`.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Its log, for failures.
    pub fn log(&self) -> String {
        fs::read_to_string(self.dir.path().join("log")).unwrap_or_default()
    }
}

impl Drop for NatsServer {
    fn drop(&mut self) {
        self.kill();
    }
}
