//! `toolctl events`: the events of the daemon as they happen.

use std::io::Write;

use clap::Args;
use serde_json::Value;
use toold_proto::event::SubscribeEvents;
use toold_proto::method::EventsSubscribe;
use toold_proto::tool::SessionId;

use crate::commands::call::session_id;
use crate::event_line::event_line;
use crate::globals::Globals;
use crate::output;
use crate::connection;

/// Show the events of the daemon as they happen
#[derive(Debug, Args)]
pub(crate) struct EventsArgs {
    /// Only these kinds, such as call.finished,tools.changed
    #[arg(long, short, value_delimiter = ',', value_name = "KINDS")]
    kinds: Option<Vec<String>>,
    /// Start with the stored events after this number; 0 for all of them
    #[arg(long, value_name = "SEQ")]
    since: Option<u64>,
    /// Only events of this session, and events of no session
    #[arg(long, value_name = "ID", value_parser = session_id)]
    session: Option<SessionId>,
    /// Print one JSON document per line, as the daemon sends it
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(args: EventsArgs, globals: &Globals) -> anyhow::Result<u8> {
    let mut client = connection::open(globals).await?;
    let mut params = SubscribeEvents { kinds: args.kinds, session_id: args.session, since: args.since, epoch: None };
    loop {
        // As values, so that events of a newer daemon are shown too.
        let mut events = client.subscribe_as::<EventsSubscribe, Value>(params.clone()).await?;
        while let Some(event) = events.next().await {
            let event = event?;
            let mut out = output::stdout();
            if args.json {
                writeln!(out, "{event}")?;
            } else {
                writeln!(out, "{}", event_line(&event))?;
            }
            out.flush()?;
        }
        client = connection::successor(&client).await?;
        // From the first event there.
        params.since = Some(0);
    }
}
