//! `toolctl events`: the events of the daemon, those that it still has and those that come.

use clap::Args;
use serde_json::Value;
use toold_client::{Client, Items};
use toold_proto::daemon::NoParams;
use toold_proto::event::SubscribeEvents;
use toold_proto::method::{DaemonGetStatus, EventsSubscribe};
use toold_proto::tool::SessionId;

use crate::commands::call::session_id;
use crate::connection;
use crate::event_line::event_line;
use crate::exit::OK;
use crate::globals::Globals;
use crate::output;

/// Show the events of the daemon as they happen, or those that it still has
///
/// Without options, it waits for events until you press Ctrl-C. With --since, it shows the stored events and ends,
/// unless --follow is given.
#[derive(Debug, Args)]
pub(crate) struct EventsArgs {
    /// Only these kinds, such as call.finished,tools.changed
    #[arg(long, short, value_delimiter = ',', value_name = "KINDS")]
    kinds: Option<Vec<String>>,
    /// Show the stored events after this number, and end; 0 for all of them
    #[arg(long, value_name = "SEQ", value_parser = crate::amount::whole::<u64>)]
    since: Option<u64>,
    /// Keep showing events until you press Ctrl-C; the default without --since
    #[arg(long, short, overrides_with = "no_follow")]
    follow: bool,
    /// End after the stored events
    #[arg(long)]
    no_follow: bool,
    /// Only events of this session, and events of no session
    #[arg(long, value_name = "ID", value_parser = session_id)]
    session: Option<SessionId>,
    /// Print one JSON document per line, as the daemon sends it
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(args: EventsArgs, globals: &Globals) -> anyhow::Result<u8> {
    let mut client = connection::open(globals).await?;
    let follows = args.follow || args.since.is_none() && !args.no_follow;
    let since = args.since.or((!follows).then_some(0));
    let mut params = SubscribeEvents { kinds: args.kinds, session_id: args.session, since, epoch: None };
    if !follows {
        return stored(&client, params, args.json).await;
    }
    loop {
        // As values, so that events of a newer daemon are shown too.
        let mut events = client.subscribe_as::<EventsSubscribe, Value>(params.clone()).await?;
        while let Some(event) = events.next().await {
            print(&event?, args.json)?;
        }
        client = connection::next(&client).await?;
        // From the first event there.
        params.since = Some(0);
    }
}

/// The events that the daemon has when it is asked.
async fn stored(client: &Client, params: SubscribeEvents, json: bool) -> anyhow::Result<u8> {
    let mut events: Items<Value> = client.subscribe_as::<EventsSubscribe, Value>(params).await?;
    let next = client.call::<DaemonGetStatus>(NoParams {}).await?.queues.events.emitted;
    // A filter may leave out the last event. Events are sent before the answer to a later request, so there are no more
    // of them once a request is answered without one in between.
    let mut last_round_had_events = true;
    while last_round_had_events {
        last_round_had_events = false;
        let mut answered = std::pin::pin!(client.call::<DaemonGetStatus>(NoParams {}));
        loop {
            let event = tokio::select! {
                biased;
                event = events.next() => event,
                answer = &mut answered => {
                    answer?;
                    break;
                }
            };
            let Some(event) = event else { return Err(client.closed().await.into()) };
            let event = event?;
            last_round_had_events = true;
            let seq = event["seq"].as_u64().unwrap_or_default();
            if seq < next {
                print(&event, json)?;
            }
            if seq + 1 >= next {
                return Ok(OK);
            }
        }
    }
    Ok(OK)
}

fn print(event: &Value, json: bool) -> anyhow::Result<()> {
    match json {
        true => output::print_json_line(event),
        false => output::print(&format!("{}\n", event_line(event))),
    }
}
