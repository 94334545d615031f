//! `daemon.*` and `rpc.discover`

use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;

use jsonrpsee::types::ErrorObjectOwned;
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};
use toold_engine::counts::CallStage;
use toold_engine::latency;
use toold_host::sandbox::{ProgramStarter, sockets_refused};
use toold_proto::config::{ProjectConfig, ShownConfig};
use toold_proto::daemon::{
    DaemonStatus, Done, FloorStatus, MessageMemory, Metrics, PluginCounts, Queues, Restart, Restarted, Shutdown,
    StoreStatus,
};
use toold_proto::level::LevelStatus;
use toold_proto::method::{
    DaemonGetConfig, DaemonGetMetrics, DaemonGetStatus, DaemonPing, DaemonReload, DaemonRestart, DaemonShutdown,
    Method, RpcDiscover,
};
use toold_proto::plugin::PluginStatus;

use crate::config::show::with_defaults;
use crate::lifecycle::DRAIN;
use crate::lifecycle::process_statistics;
use crate::rpc::Services;
use crate::rpc::blocking::blocking;
use crate::rpc::compressed::{OPENRPC, plain};
use crate::rpc::error::{internal, refused};
use crate::rpc::metrics;
use crate::rpc::parsed_memory;
use crate::rpc::{MethodRequest, MethodTable, Right, add, add_async, add_shaped, unless_cancelled};

pub(super) fn register(module: &mut MethodTable) -> anyhow::Result<()> {
    add::<DaemonPing>(module, Right::Anyone, |_, _| Ok(Done {}))?;
    add_async::<DaemonGetMetrics, _>(module, Right::Anyone, |request, _| async move {
        let text = metrics::text(&request.services).await.map_err(|error| internal(&format!("{error:#}")))?;
        Ok(Metrics { content_type: metrics::CONTENT_TYPE.to_owned(), text })
    })?;
    add_async::<DaemonGetStatus, _>(module, Right::Anyone, |request, _| async move {
        let services = request.services.clone();
        // Reads the stored rows.
        let status = move || {
            let mut status = DaemonStatus { guard: services.config.trial_of_guard(), ..status(&services) };
            let sandbox = &services.builtins.sandbox;
            let (reading, problem) = (sandbox.confines_reading(), sandbox.unconfined());
            status.level.unconfined = problem.clone();
            let sockets = sockets_refused(ProgramStarter::Daemon).or_else(|| sockets_refused(ProgramStarter::Agent));
            status.floors = Some(FloorStatus { reading, freed: problem.is_none(), problem, sockets });
            status
        };
        blocking(status).await
    })?;
    add::<DaemonShutdown>(module, Right::Administrator, |request, shutdown: Shutdown| {
        let drain = shutdown.drain_ms.map_or(DRAIN, |ms| Duration::from_millis(ms.min(600_000)));
        request.services.lifecycle.shut_down(drain);
        Ok(Done {})
    })?;
    add_async::<DaemonRestart, _>(module, Right::Administrator, restart)?;
    add::<DaemonGetConfig>(module, Right::Administrator, |request, _| shown_config(&request))?;
    add_async::<DaemonReload, _>(module, Right::Administrator, |request, _| async move {
        let services = request.services.clone();
        blocking(move || services.config.reload_all()).await
    })?;
    // Reports what is registered by now, so it comes last.
    let mut served: Vec<&'static str> = module.rpc.method_names().collect();
    served.push(RpcDiscover::NAME);
    // Read on demand: few clients ask for it.
    let document: OnceLock<Box<RawValue>> = OnceLock::new();
    add_shaped::<RpcDiscover, <RpcDiscover as Method>::Params, Box<RawValue>, _>(module, Right::Anyone, move |_, _| {
        let document =
            document.get_or_init(|| to_raw_value(&describe(&served)).expect("a JSON value has a form in JSON"));
        std::future::ready(Ok(document.clone()))
    })
}

/// The interval at which running work is checked.
const LOOK_EVERY: Duration = Duration::from_millis(20);
const MAX_DRAIN_MS: u64 = 600_000;
/// How long a restart waits for the end of the one before.
const PREDECESSOR_WAIT: Duration = Duration::from_secs(3);

async fn restart(request: MethodRequest, restart: Restart) -> Result<Restarted, ErrorObjectOwned> {
    let services = &request.services;
    let Ok(_one) = services.lifecycle.hand_over.one.try_lock() else {
        return Err(refused("restarting", "a restart is already in progress"));
    };
    // Until the next daemon takes over, who asked for it can take that back.
    let ready = async {
        let gone = async {
            while services.lifecycle.hand_over.predecessor().is_some() {
                tokio::time::sleep(LOOK_EVERY).await;
            }
        };
        // It ends a moment after its last answer.
        if tokio::time::timeout(PREDECESSOR_WAIT, gone).await.is_err() {
            let old = services.lifecycle.hand_over.predecessor().unwrap_or_default();
            let words = format!(
                "the previous restart is not finished: the daemon before this one still lets its calls end; `kill {old}` cancels them"
            );
            return Err(refused("restarting", &words));
        }
        let program = restart.program.as_deref().map(Path::new);
        let next = services.lifecycle.hand_over.prepare(program, &services.config.options).await;
        let next = next.map_err(|error| refused("restart_failed", &format!("the daemon keeps serving: {error:#}")))?;
        if restart.when_idle {
            let wait = Duration::from_millis(restart.timeout_ms.unwrap_or(600_000).min(86_400_000));
            let idle = async {
                while services.lifecycle.is_busy() {
                    tokio::time::sleep(LOOK_EVERY).await;
                }
            };
            if tokio::time::timeout(wait, idle).await.is_err() {
                let (calls, shells) = (services.engine.counts.read().in_flight, services.lifecycle.running_shells());
                let words =
                    format!("the daemon keeps serving; still running: calls {calls}, background commands {shells}");
                return Err(refused("busy", &words));
            }
        }
        Ok(next)
    };
    let next = unless_cancelled(&request, ready).await?;
    let drain_ms = restart.drain_ms.unwrap_or(if restart.when_idle { MAX_DRAIN_MS } else { DRAIN.as_millis() as u64 });
    let drain = Duration::from_millis(drain_ms.min(MAX_DRAIN_MS));
    let restarted = services.lifecycle.hand_over.carry_out(next, drain).await;
    restarted.map_err(|error| refused("restart_failed", &format!("the daemon keeps serving: {error:#}")))
}

fn describe(served: &[&'static str]) -> Value {
    let mut document: Value = serde_json::from_slice(&plain(OPENRPC)).expect("a test writes the file as JSON");
    document["info"]["version"] = env!("CARGO_PKG_VERSION").into();
    debug_assert_eq!(document["methods"].as_array().map(Vec::len), Some(served.len()), "a method is not described");
    document
}

fn shown_config(request: &MethodRequest) -> Result<ShownConfig, ErrorObjectOwned> {
    let session = request.session(None)?;
    let services = &request.services;
    let file = services.config.project_file(session.project()).filter(|(file, _)| file.digest.is_some());
    Ok(ShownConfig {
        file: services.config.options.config_file().display().to_string(),
        entries: with_defaults(&services.config.loaded().entries),
        project: file.map(|(file, trusted)| ProjectConfig {
            file: file.path.display().to_string(),
            trusted,
            entries: file.entries.clone(),
            problems: file.problems.clone(),
        }),
        problems: services.config.user_config_problems(),
    })
}

pub(crate) fn status(services: &Services) -> DaemonStatus {
    let engine = &services.engine;
    let snapshot = engine.registry.snapshot();
    let mut plugins = PluginCounts::default();
    for plugin in services.plugins.list().iter().filter(|plugin| !plugin.is_spare()) {
        match plugin.status {
            PluginStatus::Loaded => plugins.loaded += 1,
            PluginStatus::Failed => plugins.failed += 1,
            PluginStatus::Disabled | PluginStatus::Untrusted | PluginStatus::Shadowed => plugins.other += 1,
        }
    }
    let store = store_status(services);
    let not_on_http = services.lifecycle.http.get().and_then(|told| told.clone().err());
    let http = services.lifecycle.http.get().and_then(|told| told.clone().ok());
    let page = services.lifecycle.page.served();
    let loaded = services.config.loaded();
    let hosts = &loaded.config.page.hosts;
    DaemonStatus {
        pid: std::process::id(),
        version: env!("CARGO_PKG_VERSION").into(),
        protocol: toold_proto::PROTOCOL,
        epoch: engine.events.epoch().to_owned(),
        instance: Some(services.instance.clone()),
        uptime_s: services.lifecycle.started.elapsed().as_secs_f64(),
        socket: services.config.options.socket.as_ref().map(|path| path.display().to_string()),
        database: Some(services.config.options.paths.database().display().to_string()),
        mcp_url: http.as_ref().map(|urls| urls.mcp.clone()),
        rpc_url: http.map(|urls| urls.rpc),
        page_url: page.as_ref().and_then(|page| page.as_ref().ok()).map(|page| format!("{}/page/", page.origin(hosts))),
        config: services.config.loaded().file.as_ref().map(|path| path.display().to_string()),
        plugin_dirs: services.config.plugin_dirs().iter().map(|path| path.display().to_string()).collect(),
        sandbox: services.builtins.sandbox.rules().describe(),
        sandbox_refused: services.builtins.sandbox.rules().refused.clone(),
        floors: None,
        guard: None,
        level: LevelStatus { level: loaded.config.permission.level.unwrap_or_default(), unconfined: None },
        observing: services.config.observing(None),
        paused: services.config.paused().map(|paused| paused.describe()),
        sessions: engine.sessions.len() as u64,
        connections: services.lifecycle.connections(),
        tools: snapshot.global().len() as u64,
        revision: snapshot.revision,
        calls: engine.counts.read(),
        queues: queues(services),
        latency: engine.latencies.recent(),
        latency_window_s: latency::WINDOW.as_secs(),
        plugins,
        lua: services.plugins.lua_usage(),
        memory_bytes: process_statistics::resident_bytes(),
        message_memory: MessageMemory {
            taken_bytes: services.limits.parsed.taken(),
            limit_bytes: parsed_memory::ALL,
            unread_bytes: services.limits.unread.taken() as u64,
        },
        open_files: process_statistics::open_files(),
        open_files_limit: process_statistics::open_files_limit(),
        problems: (services
            .config
            .config_problems()
            .into_iter()
            .chain(services.config.paused().map(|paused| format!("{}: `toolctl resume` ends it", paused.describe())))
            .chain(store.problems.iter().cloned())
            .chain(not_on_http)
            .chain(page.and_then(Result::err))
            .chain(services.notifier.problems()))
        .chain(services.plugins.poll_notices().iter().cloned())
        .collect(),
        store: Some(store),
    }
}

fn store_status(services: &Services) -> StoreStatus {
    let store = &services.store;
    // First, since looking for problems may find the database damaged.
    let problems = store.problems();
    StoreStatus {
        takes_writes: store.takes_writes(),
        damaged: store.is_damaged(),
        refusals_lost: store.lost_refusals().is_some(),
        audit_rows_lost: store.lost_rows(),
        problems,
    }
}

fn queues(services: &Services) -> Queues {
    let engine = &services.engine;
    Queues {
        running: engine.counts.now(CallStage::Running),
        waiting_for_lane: engine.counts.now(CallStage::Lane),
        waiting_for_place: engine.counts.now(CallStage::Turn),
        waiting_for_person: engine.counts.now(CallStage::Person),
        outboxes: services.limits.outboxes.fill(),
        events: engine.events.fill(),
    }
}
