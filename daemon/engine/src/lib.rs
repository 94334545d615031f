//! The path of a call, from request to answer.
//!
//! Read [`execute`] first: it is the path of a call, as statements in order. The other
//! modules prepare its arguments. No I/O, no JSON-RPC and no Lua here: tools, stores and clocks
//! come from outside as values.

pub mod absent_tools;
mod agent_prompt;
pub mod agent_request;
mod argument_line;
mod arguments;
pub mod arrival;
pub mod asks;
pub mod audit;
pub mod batch;
pub mod blocking;
pub mod cache;
pub mod call;
mod call_wait;
pub mod callable;
pub mod client_profile;
pub mod counts;
pub mod cx;
pub mod deadline;
pub mod decision;
pub mod dependencies;
pub mod detached;
pub mod effects;
pub mod events;
pub mod execute;
pub mod floor;
pub mod grant_commands;
pub mod guarded_files;
pub mod head_tail;
pub mod hooks;
pub mod judged_need;
pub mod kept;
pub mod lanes;
pub mod latency;
pub mod level;
pub mod meta_tools;
pub mod need;
pub mod offers;
pub mod permission;
pub mod plugin_limits;
pub mod plugin_refusals;
pub mod policy;
pub mod progress;
pub mod prompts;
pub mod questions;
pub mod redact;
pub mod registry;
mod renamed;
mod repeats;
pub mod replay;
pub mod roles;
pub mod rule_files;
pub mod sampling;
pub mod schema;
pub mod session;
mod slots;
pub mod spool;
pub mod time;
pub mod tool;
pub mod tool_filter;
pub mod tool_rank;
pub mod tool_search;
pub mod tool_settings;
pub mod trace;
pub mod workspace;

use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwap;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use toold_proto::event::EventBody;
use toold_proto::tool::CallId;

use crate::absent_tools::AbsentTools;
use crate::asks::Asks;
use crate::audit::AuditLog;
use crate::cache::ResultCache;
use crate::counts::Counts;
use crate::events::Events;
use crate::hooks::Hooks;
use crate::lanes::CallLimits;
use crate::latency::Latencies;
use crate::meta_tools::SearchAndCall;
use crate::offers::Offers;
use crate::plugin_limits::PluginLimits;
use crate::plugin_refusals::PluginRefusals;
use crate::policy::Policy;
use crate::policy::grants::Grants;
use crate::questions::Questions;
use crate::registry::Registry;
use crate::roles::Roles;
use crate::rule_files::RuleFiles;
use crate::sampling::Samplers;
use crate::session::Sessions;
use crate::spool::Spool;

/// Walks at one time. One over 100,000 files holds some 13 MiB.
const MAX_WALKS: usize = 8;

/// The long-lived state that calls share. One for each daemon; no part of it is global.
pub struct Engine {
    pub registry: Registry,
    /// Explains names that are not in the registry. Set once, when its sources exist.
    pub absent_tools: OnceLock<Arc<dyn AbsentTools>>,
    /// Whether the policy is that of the files. Set once.
    pub rule_files: OnceLock<Arc<dyn RuleFiles>>,
    pub meta_tools: SearchAndCall,
    pub offers: Offers,
    pub sessions: Sessions,
    pub policy: ArcSwap<Policy>,
    pub grants: Grants,
    pub plugin_limits: PluginLimits,
    pub plugin_refusals: PluginRefusals,
    pub asks: Asks,
    pub questions: Questions,
    /// Frontends that can ask a model for tools.
    pub samplers: Samplers,
    pub hooks: Hooks,
    /// The frontends' implementation of built-ins; `None` when there are no frontends.
    pub roles: Option<Arc<dyn Roles>>,
    pub cache: ResultCache,
    pub events: Arc<Events>,
    pub limits: CallLimits,
    /// The turns of walks over trees of files: so many go on at one time, and each holds some MiB.
    pub walks: Arc<tokio::sync::Semaphore>,
    pub counts: Counts,
    /// How long tools take.
    pub latencies: Latencies,
    pub settings: ArcSwap<Settings>,
    /// Stores results that are too long for a model; `None` when there is no folder for them.
    pub spool: Option<Arc<dyn Spool>>,
    pub audit: Option<Arc<dyn AuditLog>>,
    /// The number in the next id that the engine makes for a call.
    pub next_call: std::sync::atomic::AtomicU64,
    generation: tokio::sync::watch::Sender<u64>,
    next_grant: std::sync::atomic::AtomicU64,
    /// Owns the work of calls that did not finish at once, including those whose caller gave up.
    pub tasks: TaskTracker,
    /// Fires when the daemon stops: every call in flight is cancelled.
    pub stop: CancellationToken,
}

/// The settings of calls. Replaced as a whole.
#[derive(Clone, Debug)]
pub struct Settings {
    /// For tools that name no limit of their own.
    pub default_timeout: std::time::Duration,
    /// No call may ask for more.
    pub max_timeout: std::time::Duration,
    /// Bytes of text in a result to a model.
    pub max_result_text: usize,
    /// From which time in a row on a text says to the model that it makes the same call again; `None` for never.
    pub warn_repeats: Option<std::num::NonZeroU64>,
    pub lane_wait: std::time::Duration,
    pub ask_timeout: std::time::Duration,
    /// How long cancelled work may take to end by itself.
    pub grace: std::time::Duration,
    /// How often a call that waits for a person or a lane reports so.
    pub heartbeat: std::time::Duration,
    /// Whether a call that cannot be recorded in the audit log is refused.
    pub audit_required: bool,
}

impl Default for Settings {
    fn default() -> Self {
        use std::time::Duration;
        Self {
            default_timeout: Duration::from_secs(120),
            max_timeout: Duration::from_secs(600),
            max_result_text: 64 * 1024,
            warn_repeats: None,
            lane_wait: Duration::from_secs(600),
            ask_timeout: Duration::from_secs(600),
            grace: Duration::from_secs(2),
            heartbeat: Duration::from_secs(15),
            audit_required: false,
        }
    }
}

impl Engine {
    /// An engine with nothing in it. `epoch` is new at each start.
    pub fn new(epoch: &str) -> Self {
        let events = Arc::new(Events::new(epoch));
        Self {
            registry: Registry::new(events.clone()),
            absent_tools: OnceLock::new(),
            rule_files: OnceLock::new(),
            meta_tools: SearchAndCall::default(),
            offers: Offers::new(events.clone()),
            sessions: Sessions::default(),
            policy: ArcSwap::default(),
            grants: Grants::default(),
            plugin_limits: PluginLimits::default(),
            plugin_refusals: PluginRefusals::default(),
            asks: Asks::new(events.clone()),
            questions: Questions::new(events.clone()),
            walks: Arc::new(tokio::sync::Semaphore::new(MAX_WALKS)),
            samplers: Samplers::default(),
            hooks: Hooks::default(),
            roles: None,
            cache: ResultCache::default(),
            limits: CallLimits::default(),
            counts: Counts::default(),
            latencies: Latencies::default(),
            settings: ArcSwap::default(),
            spool: None,
            audit: None,
            next_call: std::sync::atomic::AtomicU64::new(1),
            generation: tokio::sync::watch::Sender::new(0),
            next_grant: std::sync::atomic::AtomicU64::new(1),
            tasks: TaskTracker::new(),
            stop: CancellationToken::new(),
            events,
        }
    }

    /// Changes whenever a decision of the policy may have changed: rules, grants, modes.
    pub fn policy_generation(&self) -> u64 {
        *self.generation.borrow()
    }

    /// Call this after every change of rules, grants or modes.
    pub fn policy_changed(&self) {
        self.generation.send_modify(|generation| *generation += 1);
    }

    /// Call this when folders of a session have been opened: it sees the tools, resources and prompts of their project.
    pub(crate) fn folders_opened(&self) {
        self.registry.view_changed();
        self.events.emit(EventBody::ResourcesChanged {});
        self.events.emit(EventBody::PromptsChanged {});
    }

    /// Calls that go on from here see the change. Those that wait hear of it by [`policy_changed`](Self::policy_changed), which
    /// has to follow.
    pub(crate) fn policy_is_changing(&self) {
        self.generation.send_if_modified(|generation| {
            *generation += 1;
            false
        });
    }

    /// Wakes everything that waits for a decision that may have changed.
    pub fn policy_changes(&self) -> tokio::sync::watch::Receiver<u64> {
        self.generation.subscribe()
    }

    /// An id that no other grant has, including those of earlier daemons.
    pub fn new_grant_id(&self) -> String {
        let next = self.next_grant.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        format!("grant_{}_{next}", self.short_epoch())
    }

    /// An id for a call that was given none; no other call has it.
    pub fn new_call_id(&self) -> CallId {
        let next = self.next_call.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let id = ["call_", self.events.epoch(), "_", &next.to_string()].concat();
        CallId::parse(&id).expect("letters and digits print")
    }

    /// Enough of the epoch to distinguish the ids of two daemons.
    pub(crate) fn short_epoch(&self) -> &str {
        let epoch = self.events.epoch();
        epoch.get(..8).unwrap_or(epoch)
    }
}
