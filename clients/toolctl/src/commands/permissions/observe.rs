//! `toolctl permissions observe`: a record first, and no decisions.

use clap::{Args, ValueEnum};
use toold_client::Client;
use toold_proto::method::PermissionsObserve;
use toold_proto::permission::{ObserveAgents, ObservedAgents};

use crate::clock;
use crate::commands::hook::HookAgent;
use crate::exit::OK;
use crate::output::{BOLD, DIM, one_line, print_answer};

/// Without `on` or `off`, toolctl shows whether agents are observed. Denials, secrets, control files and protected writes hold
/// all the same; everything else that agents do with their own tools is decided by the agents, and recorded as toold would
/// have decided it. `toolctl permissions replay` shows the record.
#[derive(Debug, Args)]
pub(super) struct ObserveArgs {
    /// Begin, or end
    #[arg(value_enum)]
    state: Option<ObserveSwitch>,
    /// Only this agent
    #[arg(long, value_enum, value_name = "NAME")]
    agent: Option<HookAgent>,
    /// For how many days
    #[arg(long, value_name = "DAYS", default_value = "7", value_parser = crate::amount::whole::<u64>)]
    days: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ObserveSwitch {
    On,
    Off,
}

pub(super) async fn run(client: &Client, args: ObserveArgs, json: bool) -> anyhow::Result<u8> {
    let on = args.state.map(|state| state == ObserveSwitch::On);
    let params = ObserveAgents { on, agent: args.agent.map(|agent| agent.name().to_owned()), days: Some(args.days) };
    let state = client.call::<PermissionsObserve>(params).await?;
    print_answer(json, &state, |state, _| shown(state.observing.as_ref()))?;
    Ok(OK)
}

fn shown(observing: Option<&ObservedAgents>) -> String {
    let Some(observed) = observing else { return "agents are not observed: toold decides\n".to_owned() };
    format!(
        "{BOLD}{}{BOLD:#}\n{DIM}denials, secrets, control files and protected writes hold all the same; \
         `toolctl permissions replay` shows the record{DIM:#}\n",
        words(observed)
    )
}

/// Who is observed, on one line.
pub(crate) fn words(observed: &ObservedAgents) -> String {
    let who = observed.agent.as_deref().map_or_else(|| "all agents are".to_owned(), |agent| format!("{agent} is"));
    let (until, by) = (clock::date_and_time(&observed.until), one_line(&observed.by));
    format!("{} observed until {until} (by {by})", one_line(&who))
}
