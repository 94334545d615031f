//! The daemon under test, and how much memory it has.

use std::collections::HashMap;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use serde_json::json;
use toold_tests::{Wire, toold};

/// A daemon without plugins, in folders of its own.
pub(crate) struct LoadedDaemon {
    dir: tempfile::TempDir,
    child: Child,
}

impl LoadedDaemon {
    pub(crate) fn start() -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("work")).unwrap();
        std::fs::write(dir.path().join("work/a.txt"), "a line of text\n".repeat(10)).unwrap();
        let child = Command::new(toold())
            .arg("serve")
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", dir.path())
            .env("TOOLD_SOCKET", dir.path().join("run/toold.sock"))
            .env("XDG_CONFIG_HOME", dir.path().join("config"))
            .env("XDG_STATE_HOME", dir.path().join("state"))
            .env("TOOLD_LOG", "error")
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        let daemon = Self { dir, child };
        toold_tests::until("the daemon listens", || std::os::unix::net::UnixStream::connect(daemon.socket()).ok());
        daemon
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.dir.path().join("run/toold.sock")
    }

    pub(crate) fn work(&self) -> PathBuf {
        self.dir.path().join("work")
    }

    pub(crate) fn wire(&self) -> Wire {
        Wire::connect(&self.socket())
    }

    pub(crate) fn connections(&self) -> u64 {
        self.wire().result("daemon.status", json!({}))["connections"].as_u64().unwrap() - 1
    }

    pub(crate) fn memory(&self) -> ProcessMemory {
        let text = std::fs::read_to_string(format!("/proc/{}/smaps_rollup", self.child.id())).unwrap();
        let kib: HashMap<&str, f64> = text
            .lines()
            .filter_map(|line| {
                let (name, rest) = line.split_once(':')?;
                Some((name, rest.trim().strip_suffix(" kB")?.trim().parse().ok()?))
            })
            .collect();
        ProcessMemory { resident: kib["Rss"], own: kib["Anonymous"], huge: kib["AnonHugePages"] }
    }
}

impl Drop for LoadedDaemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// In KiB.
#[derive(Clone, Copy)]
pub(crate) struct ProcessMemory {
    /// With pages of the program's file, which the kernel takes back when it needs them, and shares.
    pub(crate) resident: f64,
    /// Its output.
    pub(crate) own: f64,
    /// The part of it in huge pages, which are allocated whole even for small needs.
    pub(crate) huge: f64,
}
