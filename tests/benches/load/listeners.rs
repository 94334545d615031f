//! Clients that receive every event.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use serde_json::json;

use crate::loaded_daemon::LoadedDaemon;
use crate::row;

pub(crate) fn run(daemon: &LoadedDaemon, subscribers: usize, calls: usize) {
    let mut wires: Vec<_> = (0..subscribers).map(|_| daemon.wire()).collect();
    for wire in &mut wires {
        wire.result("events.subscribe", json!({"kinds": ["call.finished", "session.opened"]}));
    }
    let mut caller = daemon.wire();
    caller.result("session.open", json!({"cwd": daemon.work()}));
    let (heard, lost) = (AtomicU64::new(0), AtomicU64::new(0));
    let start = Instant::now();
    std::thread::scope(|scope| {
        for wire in &mut wires {
            let (heard, lost) = (&heard, &lost);
            scope.spawn(move || {
                loop {
                    let event = wire.notification("events.event")["result"].take();
                    match event["kind"].as_str() {
                        Some("call.finished") => _ = heard.fetch_add(1, Ordering::Relaxed),
                        Some("lagged") => {
                            lost.fetch_add(event["missed"].as_u64().unwrap_or(0), Ordering::Relaxed);
                        }
                        _ if event["session_id"] == "last" => return,
                        _ => {}
                    }
                }
            });
        }
        for _ in 0..calls {
            caller.tool("read", json!({"path": "a.txt"}));
        }
        caller.result("session.open", json!({"cwd": daemon.work(), "session_id": "last"}));
    });
    let seconds = start.elapsed().as_secs_f64();
    row(&format!("{subscribers} subscribers, events delivered"), heard.into_inner() as f64 / seconds, "a second");
    row("events that a subscriber lost, as reported to it", lost.into_inner() as f64, "");
    row("calls of one client beside them", calls as f64 / seconds, "a second");
}
