//! How the daemon's process starts, restarts, cleans up and stops, and the state that it keeps for
//! this.

pub mod cleaning;
pub mod idle;
pub mod logging;
pub mod notify;
pub(crate) mod page_access;
pub mod persistence;
pub mod process_statistics;
pub mod restart;
pub mod service_manager;
pub mod spool;
pub mod stop_deadline;
#[cfg_attr(not(feature = "trace"), path = "lifecycle/without_traces.rs")]
pub mod traces;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use toold_builtins::toolkit::Toolkit;
use toold_engine::Engine;
use toold_proto::daemon::{CLOSING, CLOSING_RESTART, CLOSING_STOP, Closing};

use crate::lifecycle::page_access::PageAccess;
use crate::lifecycle::restart::HandOver;

/// How long calls in flight may continue when the daemon stops.
pub const DRAIN: Duration = Duration::from_secs(5);

/// The phase of the daemon's life, and its tasks.
pub struct Lifecycle {
    engine: Arc<Engine>,
    builtins: Arc<Toolkit>,
    pub started: Instant,
    /// Fires when no new work is accepted any more.
    stopping: CancellationToken,
    /// Fires when running work is cut short.
    cancel: CancellationToken,
    drain: Mutex<Duration>,
    /// The last message to clients.
    farewell: Arc<OnceLock<Box<RawValue>>>,
    connections: TaskTracker,
    next_connection: AtomicU64,
    /// The address for HTTP clients, or why there is none; unset when HTTP is not configured.
    pub(crate) http: OnceLock<Result<HttpUrls, String>>,
    pub(crate) page: PageAccess,
    /// The channels to the next daemon, and from the previous one.
    pub hand_over: HandOver,
}

/// The address for HTTP clients.
#[derive(Clone, Debug)]
pub(crate) struct HttpUrls {
    pub(crate) mcp: String,
    pub(crate) rpc: String,
}

impl Lifecycle {
    pub fn new(engine: &Arc<Engine>, builtins: &Arc<Toolkit>) -> Self {
        Self {
            engine: engine.clone(),
            builtins: builtins.clone(),
            started: Instant::now(),
            stopping: CancellationToken::new(),
            cancel: CancellationToken::new(),
            drain: Mutex::new(DRAIN),
            farewell: Arc::default(),
            connections: TaskTracker::new(),
            next_connection: AtomicU64::new(1),
            http: OnceLock::new(),
            page: PageAccess::default(),
            hand_over: HandOver::default(),
        }
    }

    /// Stops the daemon, with this much time for calls in flight. Clients learn that a person did.
    pub fn shut_down(&self, drain: Duration) {
        self.end(drain, CLOSING_STOP);
    }

    /// Stops the daemon when another one takes over, with this much time for calls in flight.
    pub fn be_replaced(&self, drain: Duration) {
        self.end(drain, CLOSING_RESTART);
    }

    fn end(&self, drain: Duration, reason: &str) {
        self.say_why(reason);
        *self.drain.lock() = drain;
        self.stopping.cancel();
    }

    /// Tells clients why the daemon ends, in the last message to each. Only the first reason counts.
    pub(crate) fn say_why(&self, reason: &str) {
        let closing = Closing { reason: reason.to_owned(), restart: reason == CLOSING_RESTART };
        let farewell = serde_json::json!({"jsonrpc": "2.0", "method": CLOSING, "params": closing});
        let farewell = serde_json::value::to_raw_value(&farewell).expect("a JSON value can be written");
        let _ = self.farewell.set(farewell);
    }

    /// The last message to clients, once it is set.
    pub(crate) fn farewell(&self) -> &Arc<OnceLock<Box<RawValue>>> {
        &self.farewell
    }

    /// How long calls in flight may continue when the daemon stops.
    pub(crate) fn drain(&self) -> Duration {
        *self.drain.lock()
    }

    /// Fires when no new work is accepted any more.
    pub fn stopping(&self) -> CancellationToken {
        self.stopping.clone()
    }

    /// Fires when running work is cut short.
    pub fn cancelled(&self) -> CancellationToken {
        self.cancel.child_token()
    }

    /// Cuts running work short.
    pub(crate) fn cancel(&self) -> &CancellationToken {
        &self.cancel
    }

    /// A number that no other connection has.
    pub(crate) fn next_connection(&self) -> u64 {
        self.next_connection.fetch_add(1, Ordering::Relaxed)
    }

    /// Runs the tasks of connections.
    pub(crate) fn tracker(&self) -> &TaskTracker {
        &self.connections
    }

    /// The number of connections since the start, on any transport.
    pub fn connections_so_far(&self) -> u64 {
        self.next_connection.load(Ordering::Relaxed)
    }

    pub fn connections(&self) -> u64 {
        self.connections.len() as u64
    }

    /// Whether a call or a background command runs.
    pub fn is_busy(&self) -> bool {
        self.engine.counts.read().in_flight > 0 || self.running_shells() > 0
    }

    /// The number of running background commands.
    pub fn running_shells(&self) -> usize {
        self.builtins.shells.list(None).iter().filter(|shell| shell.ended.is_none()).count()
    }

    /// Whether anybody would lose something if the daemon ended now.
    fn is_used(&self) -> bool {
        self.connections() > 0
            || self.is_busy()
            || self.http.get().is_some_and(Result::is_ok)
            || self.page.is_configured()
    }
}
