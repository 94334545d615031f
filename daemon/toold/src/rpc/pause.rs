//! `daemon.pause` and `daemon.resume`: a person stops everything, and lets it go on.

use jsonrpsee::types::ErrorObjectOwned;
use toold_engine::deadline::{hold_time, release_time};
use toold_host::process_registry::{StopSignal, stop_all};
use toold_proto::daemon::{NoParams, PauseDaemon, PausedDaemon};
use toold_proto::method::{DaemonPause, DaemonResume};

use crate::config::paused::PausedBy;
use crate::rpc::blocking::blocking;
use crate::rpc::error::{NOT_KEPT, refused};
use crate::rpc::{MethodRequest, MethodTable, Right, add_async, client_name};

pub(super) fn register(module: &mut MethodTable) -> anyhow::Result<()> {
    add_async::<DaemonPause, _>(module, Right::Decider, pause)?;
    add_async::<DaemonResume, _>(module, Right::Decider, resume)
}

/// First nothing new is allowed, then what runs is stopped. A second pause stops what was started meanwhile.
async fn pause(request: MethodRequest, params: PauseDaemon) -> Result<PausedDaemon, ErrorObjectOwned> {
    let services = request.services.clone();
    let by = client_name(&request).unwrap_or_else(|| "a person".to_owned());
    blocking(move || {
        if services.config.paused().is_none() {
            set(&services.config, Some(PausedBy::now(by)))?;
        }
        let sessions = services.engine.sessions.list();
        if params.kill {
            let calls: u64 = sessions.iter().map(|session| session.cancel_all()).sum();
            let shells = services.builtins.shells.list(None);
            let running = shells.iter().filter(|shell| shell.ended.is_none());
            let ended = running
                .filter_map(|shell| services.builtins.shells.find_any(&shell.shell_id).ok())
                .map(|shell| shell.kill());
            let processes = calls + ended.count() as u64;
            return Ok(PausedDaemon { processes, paused: words(&services.config), ..PausedDaemon::default() });
        }
        hold_time();
        let processes = stop_all(&services.engine.sessions, StopSignal::Stop) as u64;
        let calls = sessions.iter().flat_map(|session| session.calls());
        let of_agents = calls.map(|call| call.info()).filter_map(|call| Some(format!("{} {}", call.agent?, call.tool)));
        Ok(PausedDaemon {
            processes,
            still_running: of_agents.collect(),
            paused: words(&services.config),
            resumed: None,
        })
    })
    .await?
}

async fn resume(request: MethodRequest, _: NoParams) -> Result<PausedDaemon, ErrorObjectOwned> {
    let services = request.services.clone();
    blocking(move || {
        let resumed = words(&services.config);
        set(&services.config, None)?;
        let processes = stop_all(&services.engine.sessions, StopSignal::Continue) as u64;
        release_time();
        Ok(PausedDaemon { processes, resumed, ..PausedDaemon::default() })
    })
    .await?
}

fn set(config: &crate::config::active_config::ActiveConfig, paused: Option<PausedBy>) -> Result<(), ErrorObjectOwned> {
    config.set_paused(paused).map_err(|error| refused(NOT_KEPT, &format!("{error:#}")))
}

fn words(config: &crate::config::active_config::ActiveConfig) -> Option<String> {
    config.paused().map(|paused| paused.describe())
}
