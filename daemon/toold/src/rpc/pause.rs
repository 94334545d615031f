//! `daemon.pause` and `daemon.resume`: a person stops everything, and lets it go on.
//!
//! A previous daemon that still lets calls end does the same with them.

use jsonrpsee::types::ErrorObjectOwned;
use toold_engine::deadline::{hold_time, release_time};
use toold_host::process_registry::{StopSignal, stop_all};

use toold_proto::daemon::{NoParams, PauseDaemon, PausedDaemon};
use toold_proto::method::{DaemonPause, DaemonResume};
use toold_proto::provide::CallInfo;

use crate::config::active_config::ActiveConfig;
use crate::config::paused::PausedBy;
use crate::lifecycle::restart::channel::{Standstill, StoodStill};
use crate::rpc::blocking::blocking;
use crate::rpc::error::{NOT_KEPT, refused};
use crate::rpc::{MethodRequest, MethodTable, Right, Services, add_async, client_name};

pub(super) fn register(module: &mut MethodTable) -> anyhow::Result<()> {
    add_async::<DaemonPause, _>(module, Right::Decider, pause)?;
    add_async::<DaemonResume, _>(module, Right::Decider, resume)
}

/// First nothing new is allowed, then what runs is stopped. A second pause stops what was started meanwhile.
async fn pause(request: MethodRequest, params: PauseDaemon) -> Result<PausedDaemon, ErrorObjectOwned> {
    let by = client_name(&request).unwrap_or_else(|| "a person".to_owned());
    let by = request.services.config.paused().unwrap_or_else(|| PausedBy::now(by));
    let what = Standstill::Pause { by: by.clone(), kill: params.kill };
    let services = request.services.clone();
    let kept = blocking(move || services.config.set_paused(Some(by))).await?;
    let StoodStill { processes, still_running } = everywhere(&request, what).await?;
    kept.map_err(|error| refused(NOT_KEPT, &error.to_string()))?;
    Ok(PausedDaemon { processes, still_running, paused: words(&request.services.config), resumed: None })
}

async fn resume(request: MethodRequest, _: NoParams) -> Result<PausedDaemon, ErrorObjectOwned> {
    let services = request.services.clone();
    let resumed = words(&services.config);
    let kept = blocking(move || services.config.set_paused(None)).await?;
    kept.map_err(|error| refused(NOT_KEPT, &error.to_string()))?;
    let StoodStill { processes, .. } = everywhere(&request, Standstill::Resume).await?;
    Ok(PausedDaemon { processes, resumed, ..PausedDaemon::default() })
}

/// Here, and in the previous daemon.
async fn everywhere(request: &MethodRequest, what: Standstill) -> Result<StoodStill, ErrorObjectOwned> {
    let (services, here) = (request.services.clone(), what.clone());
    let mut done = blocking(move || stand_still(&services, &here)).await?;
    match request.services.lifecycle.hand_over.tell_predecessor(what).await {
        None => {}
        Some(Ok(before)) => {
            done.processes += before.processes;
            done.still_running.extend(before.still_running);
        }
        Some(Err(why)) => done.still_running.push(format!("calls of the previous daemon: {why}")),
    }
    Ok(done)
}

/// Stops what runs for calls of this daemon, ends it, or lets it go on. Blocks.
pub(crate) fn stand_still(services: &Services, what: &Standstill) -> StoodStill {
    let sessions = &services.engine.sessions;
    if *what == Standstill::Resume {
        let processes = stop_all(sessions, StopSignal::Continue);
        let confined = services.command_approvals.signal(StopSignal::Continue);
        release_time();
        return StoodStill { processes: (processes + confined.processes) as u64, still_running: Vec::new() };
    }
    let calls: Vec<_> = sessions.list().iter().flat_map(|session| session.calls()).collect();
    let infos: Vec<CallInfo> = calls.iter().map(|call| call.info()).collect();
    // What an agent does with a tool of its own has begun once nobody is asked about it.
    let is_agents = |call: &CallInfo| call.agent.is_some() && call.waits_for.is_none();
    let (processes, confined) = match what {
        Standstill::Pause { kill: true, .. } => {
            let ended = calls.iter().zip(&infos).filter(|(_, info)| !is_agents(info)).map(|(call, _)| call.cancel());
            let shells = services.builtins.shells.list(None);
            let running = shells.iter().filter(|shell| shell.ended.is_none());
            let killed = running
                .filter_map(|shell| services.builtins.shells.find_any(&shell.shell_id).ok())
                .map(|shell| shell.kill());
            let ended = ended.count() + killed.count();
            let confined = services.command_approvals.signal(StopSignal::End);
            (ended + confined.alive, confined)
        }
        Standstill::Pause { kill: false, .. } | Standstill::Resume => {
            hold_time();
            let stopped = stop_all(sessions, StopSignal::Stop);
            let confined = services.command_approvals.signal(StopSignal::Stop);
            (stopped + confined.processes, confined)
        }
    };
    let still_running =
        infos.iter().filter(|call| is_agents(call) && !confined.calls.contains(&call.call_id)).map(in_words).collect();
    StoodStill { processes: processes as u64, still_running }
}

/// Which call it is, for a person who has to end it by other means.
fn in_words(call: &CallInfo) -> String {
    let agent = call.agent.as_deref().unwrap_or_default();
    let arguments = call.arguments.as_ref().map(|arguments| format!(" {arguments}")).unwrap_or_default();
    let folder = call.cwd.as_ref().map(|cwd| format!(" in {cwd}")).unwrap_or_default();
    format!("{agent} {}{arguments}{folder} (session {})", call.tool, call.session_id)
}

fn words(config: &ActiveConfig) -> Option<String> {
    config.paused().map(|paused| paused.describe())
}
