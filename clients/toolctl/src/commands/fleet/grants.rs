//! `toolctl fleet grant`, `revoke` and `grants`: grants that are valid on all machines.

use std::io::Write;
use std::time::Duration;

use clap::Args;
use comfy_table::Cell;
use toold_proto::daemon::NoParams;
use toold_proto::fleet::{FleetGrants, MakeFleetGrant, RevokeFleetGrant};
use toold_proto::method::{FleetGrantMake, FleetGrantRevoke, FleetGrantsList};
use toold_proto::permission::Action;
use toold_proto::tool::Category;

use crate::commands::permissions::category;
use crate::exit::OK;
use crate::globals::Globals;
use crate::output::{self, DIM, one_line, print_answer};
use crate::views::permissions::{self, of_action};
use crate::{clock, connection, table};

/// Allow or deny something on all machines that let you decide
///
/// The person who uses this machine signs the grant. A grant that allows ends after 12 hours unless --for says otherwise,
/// and earlier on a machine that loses the NATS server for longer than its lease. One that denies has no end by default.
#[derive(Debug, Args)]
pub(super) struct FleetGrantArgs {
    /// file.read, file.write, shell, network, mcp, agent or plugin
    #[arg(value_parser = category)]
    category: Category,
    /// The exact target, or a pattern with * and **
    pattern: String,
    /// Deny instead of allow
    #[arg(long)]
    deny: bool,
    /// Only for this tool, by its name on the daemon; can be repeated
    #[arg(long = "tool", value_name = "NAME")]
    tools: Vec<String>,
    /// Only on this daemon; can be repeated
    #[arg(long = "on", value_name = "DAEMON")]
    daemons: Vec<String>,
    /// How long it is valid, such as 30m or 7days; at most 30 days if it allows
    #[arg(long = "for", value_name = "TIME", value_parser = crate::amount::duration)]
    lifetime: Option<Duration>,
}

pub(super) async fn grant(args: FleetGrantArgs, json: bool, globals: &Globals) -> anyhow::Result<u8> {
    let some = |names: Vec<String>| (!names.is_empty()).then_some(names);
    let params = MakeFleetGrant {
        action: if args.deny { Action::Deny } else { Action::Allow },
        category: args.category,
        pattern: args.pattern,
        tools: some(args.tools),
        daemons: some(args.daemons),
        expires_in: args.lifetime.map(|lifetime| lifetime.as_secs()),
    };
    let client = connection::open(globals).await?;
    // So that the grant records this client.
    let session = connection::open_session(&client, None, None).await?;
    let made = client.call::<FleetGrantMake>(params).await;
    session.close(&client).await;
    show(&made?, json)
}

pub(super) async fn revoke(id: String, json: bool, globals: &Globals) -> anyhow::Result<u8> {
    let client = connection::open(globals).await?;
    let left = client.call::<FleetGrantRevoke>(RevokeFleetGrant { id }).await?;
    show(&left, json)
}

pub(super) async fn list(json: bool, globals: &Globals) -> anyhow::Result<u8> {
    let client = connection::open(globals).await?;
    let grants = client.call::<FleetGrantsList>(NoParams {}).await?;
    if grants.grants.is_empty() && !json {
        writeln!(output::stderr(), "there are no grants of the fleet")?;
    }
    show(&grants, json)
}

fn show(grants: &FleetGrants, json: bool) -> anyhow::Result<u8> {
    print_answer(json, grants, render)?;
    Ok(OK)
}

fn render(grants: &FleetGrants, width: Option<u16>) -> String {
    if grants.grants.is_empty() {
        return String::new();
    }
    let mut rows = table::new(width);
    rows.set_header(table::header(&["GRANT", "", "CATEGORY", "PATTERN", "BY", "ONLY FOR", "ONLY ON", "UNTIL"]));
    for grant in &grants.grants {
        let names = |names: &Option<Vec<String>>| one_line(&names.as_deref().unwrap_or_default().join(" "));
        rows.add_row([
            Cell::new(one_line(&grant.id)),
            permissions::verdict(of_action(grant.action)).into(),
            Cell::new(grant.category),
            table::name(&one_line(&grant.pattern)),
            Cell::new(one_line(&format!("{} on {}", grant.person, grant.made_on))),
            Cell::new(names(&grant.tools)),
            Cell::new(names(&grant.daemons)),
            Cell::new(grant.expires_at.as_deref().map(clock::date_and_time).unwrap_or_default()),
        ]);
    }
    let mut text = table::render_without(&rows, &["BY", "ONLY FOR"]);
    for grant in grants.grants.iter().filter(|grant| !grant.valid) {
        let why = grant.why_not.as_deref().unwrap_or("the daemon gives no reason");
        text.push_str(&format!("{DIM}not valid here{DIM:#} {}: {}\n", one_line(&grant.id), one_line(why)));
    }
    text
}
