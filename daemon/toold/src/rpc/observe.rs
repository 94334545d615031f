//! `permissions.observe`: a record first, for some days, and no decisions.

use jsonrpsee::types::ErrorObjectOwned;
use toold_proto::method::PermissionsObserve;
use toold_proto::permission::{ObserveAgents, ObserveState};

use crate::config::observing::{DEFAULT_DAYS, MAX_DAYS, from_now};
use crate::rpc::agent_requests::hooked_agent;
use crate::rpc::blocking::blocking;
use crate::rpc::error::{NOT_KEPT, invalid_params, refused};
use crate::rpc::own_rows::record_change;
use crate::rpc::{MethodRequest, MethodTable, Right, add_async, client_name};

pub(super) fn register(module: &mut MethodTable) -> anyhow::Result<()> {
    add_async::<PermissionsObserve, _>(module, Right::Decider, observe)
}

async fn observe(request: MethodRequest, params: ObserveAgents) -> Result<ObserveState, ErrorObjectOwned> {
    let state = |request: &MethodRequest| ObserveState { observing: request.services.config.observing(None) };
    let Some(on) = params.on else { return Ok(state(&request)) };
    let agent = params.agent.as_deref().map(hooked_agent).transpose()?.map(str::to_owned);
    let days = params.days.unwrap_or(DEFAULT_DAYS);
    if !(1..=MAX_DAYS).contains(&days) {
        return Err(invalid_params(&format!("days: expected 1 to {MAX_DAYS}, not {days}")));
    }
    if let Some(now) = request.services.config.observing(None)
        && let Some(agent) = agent.as_ref().filter(|agent| now.agent.as_ref() != Some(*agent))
    {
        let who = now.agent.as_deref().map_or_else(|| "all agents are".to_owned(), |agent| format!("{agent} is"));
        return Err(invalid_params(&format!(
            "agent: {who} observed until {}, and not {agent} by itself: there is one record at a time, which `toolctl permissions \
             observe off` ends",
            now.until
        )));
    }
    let by = client_name(&request).unwrap_or_else(|| "a person".to_owned());
    let observed = on.then(|| from_now(by, agent, days));
    let target = match &observed {
        Some(observed) => {
            format!("{} until {}", observed.agent.as_deref().unwrap_or("all agents"), observed.until)
        }
        None => "off".to_owned(),
    };
    let config = request.services.config.clone();
    let kept = blocking(move || config.set_observing(observed)).await?;
    let not_kept = kept.err().map(|error| (error.holds, refused(NOT_KEPT, &error.to_string())));
    if let Some((false, refusal)) = not_kept {
        return Err(refusal);
    }
    let recorded = record_change(&request, &request.session(None)?.id, ("permission_observe", "observe"), target);
    not_kept.map_or(recorded.map(|()| state(&request)), |(_, refusal)| Err(refusal))
}
