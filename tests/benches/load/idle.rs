//! Clients that are connected and idle.

use serde_json::json;
use toold_tests::{Wire, until};

use crate::loaded_daemon::LoadedDaemon;
use crate::{goal, row};

pub(crate) fn run(daemon: &LoadedDaemon, clients: usize) {
    daemon.wire().result("tools.list", json!({}));
    let bare = daemon.memory();
    row("daemon without plugins, memory of its own", bare.own / 1024.0, "MiB");
    row("of that in huge pages", bare.huge / 1024.0, "MiB");
    row("with the mapped parts of its program file", bare.resident / 1024.0, "MiB");
    goal(12, "daemon without plugins, memory of its own", bare.own / 1024.0, "MiB", 15.0);
    let mut wires: Vec<Wire> = (0..clients).map(|_| daemon.wire()).collect();
    until("all are served", || (daemon.connections() == clients as u64).then_some(()));
    let each = |before: f64| (daemon.memory().own - before) * 1024.0 / clients as f64;
    let connected = each(bare.own);
    row(&format!("{clients} idle clients, connected"), connected, "bytes each");
    for wire in &mut wires {
        wire.result("daemon.ping", json!({}));
    }
    let used = each(bare.own);
    row(&format!("{clients} idle clients, answered once"), used, "bytes each");
    goal(12, &format!("{clients} idle clients, answered once"), used, "bytes each", 1536.0);
    for wire in &mut wires {
        wire.result("session.open", json!({"cwd": daemon.work()}));
    }
    row(&format!("{clients} idle clients, each with a session"), each(bare.own), "bytes each");
    drop(wires);
    until("all are gone", || (daemon.connections() == 0).then_some(()));
    row("memory of its own when they have left", daemon.memory().own / 1024.0, "MiB");
}
