//! `events.*`

use std::sync::Arc;

use jsonrpsee::core::server::{PendingSubscriptionSink, SubscriptionSink};
use serde_json::value::to_raw_value;
use tokio::sync::broadcast::error::RecvError;
use toold_engine::events::{Emitted, Hears, Subscribed};
use toold_proto::event::{Event, SubscribeEvents, What};
use toold_proto::method::{EventsSubscribe, Subscription};
use toold_proto::tool::SessionId;

use crate::daemon::State;
use crate::rpc::error::invalid_params;
use crate::rpc::located::for_onlooker;
use crate::rpc::{Module, read_params, scope};

pub(super) fn register(module: &mut Module) -> anyhow::Result<()> {
    module.rpc.register_subscription(
        EventsSubscribe::NAME,
        EventsSubscribe::ITEM_METHOD,
        EventsSubscribe::UNSUBSCRIBE,
        |params, pending, state, extensions| async move {
            let read = || -> Result<_, jsonrpsee::types::ErrorObjectOwned> {
                let wanted: SubscribeEvents = read_params(&params)?;
                let scope = scope(&extensions)?;
                check_kinds(&wanted)?;
                Ok((wanted, scope))
            };
            match read() {
                Ok((wanted, scope)) => {
                    let sees_all = scope.connection.may_decide();
                    let own = scope.connection.session().map(|session| session.id.clone());
                    stream(pending, state.as_ref(), Filter { wanted, sees_all, own }).await;
                }
                Err(error) => pending.reject(error).await,
            }
        },
    )?;
    Ok(())
}

fn check_kinds(wanted: &SubscribeEvents) -> Result<(), jsonrpsee::types::ErrorObjectOwned> {
    let unknown = wanted.kinds.iter().flatten().find(|kind| !What::KINDS.contains(&kind.as_str()));
    match unknown {
        Some(kind) => Err(invalid_params(&format!("kinds: there is no {kind}; there are {}", What::KINDS.join(", ")))),
        None => Ok(()),
    }
}

/// What one subscriber gets to see.
struct Filter {
    wanted: SubscribeEvents,
    /// People see all sessions, others their own.
    sees_all: bool,
    own: Option<SessionId>,
}

impl Filter {
    fn lets(&self, what: &What) -> bool {
        let kind = self.wanted.kinds.as_ref().is_none_or(|kinds| kinds.iter().any(|kind| kind == what.kind()));
        let session = what.session_id();
        let asked = match (&self.wanted.session_id, session) {
            (Some(wanted), Some(session)) => wanted == session,
            (Some(_) | None, None) | (None, Some(_)) => true,
        };
        let allowed = self.sees_all || session.is_none() || session == self.own.as_ref();
        kind && asked && allowed
    }
}

async fn stream(pending: PendingSubscriptionSink, state: &Arc<State>, filter: Filter) {
    let events = &state.engine.events;
    let wants = |what: &str| filter.wanted.kinds.as_ref().is_none_or(|kinds| kinds.iter().any(|k| k.starts_with(what)));
    let _listener = wants("call.progress").then(|| events.listen_to_progress());
    let hears = if wants("call.") { Hears::All } else { Hears::NoCalls };
    let same_epoch = filter.wanted.epoch.as_ref().is_none_or(|epoch| epoch == events.epoch());
    let Subscribed { replay, missed, mut receiver } = match same_epoch {
        true => events.subscribe(hears, filter.wanted.since),
        false => events.subscribe_from_start(hears),
    };
    let Ok(sink) = pending.accept().await else { return };
    let mut next = replay.first().map_or(0, |first| first.seq);
    if missed > 0 && tell_lag(&sink, events.epoch(), next, missed).await.is_err() {
        return;
    }
    for emitted in replay {
        next = emitted.seq + 1;
        if send(&sink, events.epoch(), &filter, &emitted).await.is_err() {
            return;
        }
    }
    loop {
        let received = tokio::select! {
            () = sink.closed() => return,
            received = receiver.recv() => received,
        };
        let sent = match received {
            Ok(emitted) => {
                next = emitted.seq + 1;
                send(&sink, events.epoch(), &filter, &emitted).await
            }
            Err(RecvError::Lagged(missed)) => {
                events.count_lost(missed);
                tell_lag(&sink, events.epoch(), next, missed).await
            }
            Err(RecvError::Closed) => return,
        };
        if sent.is_err() {
            return;
        }
    }
}

/// The subscriber is gone.
struct Gone;

async fn send(sink: &SubscriptionSink, epoch: &str, filter: &Filter, emitted: &Emitted) -> Result<(), Gone> {
    if !filter.lets(&emitted.what) {
        return Ok(());
    }
    let mut event = emitted.to_wire(epoch);
    if let What::PermissionAsked { request, .. } = &mut event.what
        && !filter.sees_all
    {
        for_onlooker(request);
    }
    put(sink, &event).await
}

/// Waits for a slow reader; meanwhile the ring moves on, and what it loses is told as lag.
async fn put(sink: &SubscriptionSink, event: &Event) -> Result<(), Gone> {
    let Ok(json) = to_raw_value(event) else { return Ok(()) };
    sink.send(json).await.map_err(|_| Gone)
}

async fn tell_lag(sink: &SubscriptionSink, epoch: &str, seq: u64, missed: u64) -> Result<(), Gone> {
    let at = toold_engine::time::rfc3339(std::time::SystemTime::now());
    put(sink, &Event { seq, epoch: epoch.to_owned(), at, what: What::Lagged { missed: Some(missed) } }).await
}
