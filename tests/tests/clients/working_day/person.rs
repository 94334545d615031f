//! The person at their own frontend, who answers every prompt and keeps a list of them.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use serde_json::{Value, json};
use toold_tests::{TestDaemon, Wire, until};

use crate::working_day::script::{PersonAnswer, answer_to};

/// One ask, and how it was answered.
#[derive(Clone, Debug)]
pub(crate) struct AnsweredAsk {
    /// The step of the day that asked, from 1.
    pub(crate) step: usize,
    pub(crate) who: &'static str,
    pub(crate) tool: String,
    pub(crate) category: String,
    pub(crate) target: String,
    pub(crate) allowed: bool,
    /// The pattern that was allowed for the session, if more than this once.
    pub(crate) pattern: Option<String>,
}

#[derive(Default)]
struct PersonState {
    asked: Mutex<Vec<AnsweredAsk>>,
    /// The running step and its actor.
    now: Mutex<(usize, &'static str)>,
    /// How many daemons have served: one, and one more after each restart.
    daemons: AtomicUsize,
    /// How often the frontend has subscribed; once for each daemon.
    subscribed: AtomicUsize,
    over: AtomicBool,
}

pub(crate) struct Person {
    shared: Arc<PersonState>,
    thread: Option<JoinHandle<()>>,
}

impl Person {
    pub(crate) fn start(daemon: &TestDaemon) -> Self {
        let shared = Arc::<PersonState>::default();
        let (socket, home) = (daemon.socket(), daemon.setup.path("home"));
        let thread = std::thread::spawn({
            let shared = Arc::clone(&shared);
            move || answer_all(&shared, &socket, &home)
        });
        let person = Self { shared, thread: Some(thread) };
        person.has_a_daemon();
        person
    }

    /// A daemon serves, the first one or one that replaced another: waits until the frontend is connected to it.
    #[track_caller]
    pub(crate) fn has_a_daemon(&self) {
        let daemons = 1 + self.shared.daemons.fetch_add(1, Ordering::Relaxed);
        until("the person's frontend is connected", || {
            (self.shared.subscribed.load(Ordering::Relaxed) == daemons).then_some(())
        });
    }

    pub(crate) fn step_begins(&self, number: usize, who: &'static str) {
        *self.shared.now.lock().unwrap() = (number, who);
    }

    pub(crate) fn asked(&self) -> Vec<AnsweredAsk> {
        self.shared.asked.lock().unwrap().clone()
    }

    /// From here on, the daemon may be stopped, and the frontend does not reconnect.
    pub(crate) fn day_is_over(&self) {
        self.shared.over.store(true, Ordering::Relaxed);
    }

    /// Once the daemon has stopped.
    pub(crate) fn join(mut self) {
        self.thread.take().expect("it is joined once").join().unwrap();
    }
}

impl Drop for Person {
    fn drop(&mut self) {
        self.day_is_over();
    }
}

fn answer_all(shared: &PersonState, socket: &Path, home: &Path) {
    loop {
        // The old daemon may still take connections while it is replaced.
        until("a daemon serves, or the day is over", || {
            let serves = shared.daemons.load(Ordering::Relaxed) > shared.subscribed.load(Ordering::Relaxed);
            (serves || shared.over.load(Ordering::Relaxed)).then_some(())
        });
        if shared.over.load(Ordering::Relaxed) {
            return;
        }
        let mut wire = Wire::connect(socket);
        wire.result("session.open", json!({"cwd": home, "client": {"name": "approvals"}}));
        wire.result("permissions.subscribe", json!({}));
        shared.subscribed.fetch_add(1, Ordering::Relaxed);
        while let Some(message) = wire.next_message() {
            let item = &message["params"]["result"];
            if message["method"] == "permissions.event" && item["type"] == "asked" {
                let reply = reply_to(shared, &item["request"]);
                wire.result("permissions.reply", reply);
            }
        }
    }
}

fn reply_to(shared: &PersonState, ask: &Value) -> Value {
    let text = |name: &str| ask[name].as_str().unwrap_or_default().to_owned();
    let (category, target) = (text("category"), text("target"));
    let offered: Vec<&str> =
        ask["suggestions"].as_array().into_iter().flatten().filter_map(|s| s["pattern"].as_str()).collect();
    let answer = answer_to(&category, &target, &offered);
    let mut reply = json!({"request_id": ask["request_id"], "action": "allow", "scope": "once"});
    match &answer {
        PersonAnswer::Once => {}
        PersonAnswer::Session(pattern) => {
            reply["scope"] = json!("session");
            reply["pattern"] = json!(pattern);
        }
        PersonAnswer::Deny => reply["action"] = json!("deny"),
    }
    let (step, who) = *shared.now.lock().unwrap();
    let allowed = answer != PersonAnswer::Deny;
    let pattern = if let PersonAnswer::Session(pattern) = answer { Some(pattern) } else { None };
    shared.asked.lock().unwrap().push(AnsweredAsk {
        step,
        who,
        tool: text("tool"),
        category,
        target,
        allowed,
        pattern,
    });
    reply
}
