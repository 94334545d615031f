//! `toolctl fleet`: daemons on several machines that share tools, asks and grants through a NATS server.

mod broker_config;
mod broker_info;
mod doctor;
mod grants;
mod invitation;
mod membership;
mod roster;
mod show;

use clap::{Args, Subcommand};
use toold_proto::daemon::NoParams;
use toold_proto::method::FleetGetStatus;

use crate::connection;
use crate::exit::OK;
use crate::globals::Globals;
use crate::output::print_answer;

/// Set up and show a fleet: daemons that share tools over NATS
///
/// The first machine starts a fleet with init, each other one takes part with join, and every machine names with
/// trust whose messages count on it. docs/fleet.md is a guide from nothing to the first call.
#[derive(Debug, Args)]
pub(crate) struct FleetArgs {
    #[command(subcommand)]
    action: Option<FleetAction>,
    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum FleetAction {
    /// List the daemons of the fleet: state, labels, load and the age of what is known of them
    List(show::FleetListArgs),
    /// List the labels: which daemons have them, and whether their tools are listed here
    Labels,
    /// Find problems of the fleet, and show how to fix them; exit status 3 if something does not work
    Doctor,
    Init(membership::InitArgs),
    Join(membership::JoinArgs),
    /// Print the invitation again: the servers and public keys that this machine knows
    Invite,
    Trust(membership::FleetTrustArgs),
    Forget(membership::ForgetArgs),
    Grant(grants::FleetGrantArgs),
    /// Revoke a grant of the fleet, on all machines
    Revoke {
        /// The id of the grant; `toolctl fleet grants` lists them
        id: String,
    },
    /// List the grants of the fleet
    Grants,
    BrokerConfig(broker_config::BrokerConfigArgs),
}

pub(crate) async fn run(args: FleetArgs, globals: &Globals) -> anyhow::Result<u8> {
    let json = args.json;
    match args.action {
        None => show::list(show::FleetListArgs::default(), json, globals).await,
        Some(FleetAction::List(list)) => show::list(list, json, globals).await,
        Some(FleetAction::Labels) => labels(json, globals).await,
        Some(FleetAction::Doctor) => doctor::run(json, globals).await,
        Some(FleetAction::Init(init)) => membership::init(init, json, globals).await,
        Some(FleetAction::Join(join)) => membership::join(join, json, globals).await,
        Some(FleetAction::Invite) => membership::invite(json).await,
        Some(FleetAction::Trust(trust)) => membership::trust(&trust, json, globals).await,
        Some(FleetAction::Forget(forget)) => membership::forget(&forget, json, globals).await,
        Some(FleetAction::Grant(grant)) => grants::grant(grant, json, globals).await,
        Some(FleetAction::Revoke { id }) => grants::revoke(id, json, globals).await,
        Some(FleetAction::Grants) => grants::list(json, globals).await,
        Some(FleetAction::BrokerConfig(config)) => broker_config::run(config, json).await,
    }
}

async fn labels(json: bool, globals: &Globals) -> anyhow::Result<u8> {
    let client = connection::open(globals).await?;
    let status = client.call::<FleetGetStatus>(NoParams {}).await?;
    print_answer(json, &status.label_groups, |_, width| show::labels(&status, width))?;
    Ok(OK)
}
