//! `toolctl audit --fleet`: the audit logs of all machines, from the fleet's stream.

use std::io::Write;
use std::time::Duration;

use toold_client::Client;
use toold_proto::fleet::{FleetAuditList, FleetAuditQuery};
use toold_proto::method::FleetSearchAudit;

use super::{AuditFormat, PastCall, print_calls, print_new_calls};
use crate::exit::OK;
use crate::output::{self, BAD, WARN, counted, one_line, print_json};

/// How often new rows are asked for.
const INTERVAL: Duration = Duration::from_secs(1);

pub(super) async fn list(client: &Client, query: FleetAuditQuery, format: AuditFormat) -> anyhow::Result<u8> {
    let list = client.call::<FleetSearchAudit>(query).await?;
    if let AuditFormat::Json = format {
        print_json(&list)?;
        return Ok(OK);
    }
    print_calls(&calls(&list), list.more, matches!(format, AuditFormat::Decisions))?;
    warn(&list)?;
    Ok(OK)
}

/// Past calls, then each call when its row arrives; until the daemon stops.
pub(super) async fn follow(client: &Client, mut query: FleetAuditQuery, format: AuditFormat) -> anyhow::Result<u8> {
    loop {
        let list = client.call::<FleetSearchAudit>(query.clone()).await?;
        print_new_calls(&calls(&list), &list.entries, format)?;
        warn(&list)?;
        let more = query.after.is_some() && list.more;
        // A call is new when its row arrives, however long ago it began.
        query.since = None;
        query.limit = None;
        query.after = Some(list.last);
        if !more {
            tokio::time::sleep(INTERVAL).await;
        }
    }
}

fn calls(list: &FleetAuditList) -> Vec<PastCall<'_>> {
    list.entries.iter().map(|entry| PastCall { daemon: Some(&entry.daemon), entry: &entry.row }).collect()
}

/// Rows that cannot be relied on, or that should be there.
fn warn(list: &FleetAuditList) -> anyhow::Result<()> {
    let mut err = output::stderr();
    if list.unverified > 0 {
        let rows = counted(list.unverified, "row");
        writeln!(err, "{WARN}left out, as no daemon in [fleet] has signed them: {rows}{WARN:#}")?;
    }
    for (daemon, missing) in &list.missing {
        let rows = counted(*missing, "row");
        writeln!(err, "{BAD}missing on the server, between others of {}: {rows}{BAD:#}", one_line(daemon))?;
    }
    Ok(())
}
