//! Runs one call, and delivers its replies.

use std::sync::{Arc, Weak};
use std::time::Duration;

use async_nats::{Message as NatsMessage, Subscriber};
use futures_util::StreamExt;
use serde_json::Value;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};
use toold_engine::call::{Call, CallError, Caller, Principal};
use toold_engine::execute::execute;
use toold_engine::session::Session;
use toold_engine::spool::cut;
use toold_proto::provide::CallWait;
use toold_proto::tool::CallId;

use super::counted_call::{CountedCall, ReplySink};
use crate::blobs::{self, OwnBlob};
use crate::caller_origin::note_origin;
use crate::member::Member;
use crate::messages::{Accepted, AliveCall, Blob, CallBeat, CallReply, Finished, FleetCall, ReplyEvent};
use crate::served_calls::ServedCall;
use crate::signed::{MessageRefusal, SignedKind};
use crate::silence::ALIVE_INTERVAL;
use crate::subjects;

/// How long an accepted call waits for the caller's first sign of life.
const CONFIRM: Duration = Duration::from_secs(10);
/// How long a result waits for a caller that is there and does not take it, such as one that fetches a long text.
const LONGEST_STUCK: Duration = Duration::from_secs(600);
/// Bytes of the reason why there is no result.
const MAX_ERROR: usize = 16 * 1024;
/// How long the last message may take when the daemon stops.
const LAST_MESSAGE: Duration = Duration::from_secs(1);

/// Takes a call from its acceptance to the end.
pub(super) async fn run(member: Arc<Member>, call: Arc<ServedCall>, request: FleetCall, running: CountedCall) {
    // A subscription of its own is there again as soon as the broker is.
    let mut alive = match member.broker.client.subscribe(subjects::alive(&member.name, &call.call_id)).await {
        Ok(alive) => alive,
        Err(error) => {
            tracing::warn!(%error, "a call of the fleet cannot be accepted");
            member.served.remove(&call.call_id);
            return;
        }
    };
    let accepted = Accepted { instance: member.instance.clone(), challenge: call.challenge.clone() };
    reply(&member, &call, 0, ReplyEvent::Accepted(accepted)).await;
    let first_sign = async {
        while let Some(message) = alive.next().await {
            if hear(&member, &call, &message) {
                return true;
            }
        }
        false
    };
    let confirmed = tokio::select! {
        biased;
        confirmed = first_sign => confirmed,
        () = call.cancel.cancelled() => false,
        () = member.stop.cancelled() => false,
        () = tokio::time::sleep(CONFIRM) => false,
    };
    if !confirmed {
        call.over.cancel();
        drop(running);
        let error = "the call did not run: its caller did not confirm it in time".to_owned();
        call.window.lock().finish(Finished { error: Some(error), last: true, ..Finished::default() });
        Replies::new(&member, &call, alive).deliver(None).await;
        member.served.remove(&call.call_id);
        return;
    }
    let session = member.host.open_session(&request.origin, &request.session).await;
    if let Ok(session) = &session {
        note_origin(session, &member.name, &request.origin, &request.session);
    }
    let running = Arc::new(running);
    let counted = Arc::downgrade(&running);
    let (sender, waits) = tokio::sync::oneshot::channel();
    let work = member.tasks.spawn({
        let (member, call, session) = (member.clone(), call.clone(), session.clone());
        async move {
            let finished = work(&member, &call, request, session, running).await;
            // Fails when nobody waits for it any more.
            let _ = sender.send(finished);
        }
    });
    let mut replies = Replies::new(&member, &call, alive);
    replies.session = session.ok();
    replies.counted = Some(counted);
    let blob = replies.deliver(Some(waits)).await;
    drop(blob.map(|blob| OwnBlob::new(&member, &call.call_id, blob)));
    // Until then the call can be asked about.
    tokio::select! {
        () = call.over.cancelled() => {}
        () = member.stop.cancelled() => {}
    }
    if let Err(error) = work.await {
        tracing::error!(%error, "a call of the fleet failed");
    }
    member.served.remove(&call.call_id);
}

/// Runs the tool; returns the end of the call.
async fn work(
    member: &Arc<Member>,
    call: &Arc<ServedCall>,
    request: FleetCall,
    session: Result<Arc<Session>, String>,
    running: Arc<CountedCall>,
) -> Finished {
    let sink = ReplySink::new(call, running);
    let failed = |error: String| {
        let error = cut(&error, MAX_ERROR).map_or(error, |(shorter, _)| shorter);
        Finished { error: Some(error), last: true, ..Finished::default() }
    };
    let session = match session {
        Ok(session) => session,
        Err(why) => return failed(format!("the call did not run: {why}")),
    };
    let arguments = match arguments_of(member, &request).await {
        Ok(arguments) => arguments,
        Err(why) => return failed(format!("the call did not run: its arguments cannot be fetched: {why}")),
    };
    let Ok(call_id) = CallId::parse(&call.call_id) else { return failed("the call did not run: its id is bad".into()) };
    let caller = Caller::new(0, Principal::Agent);
    let run = Call {
        name: request.tool,
        arguments,
        call_id: Some(call_id),
        session,
        cwd: None,
        timeout: request.timeout_ms.map(Duration::from_millis),
        no_cache: false,
        caller: Arc::new(caller),
        progress: vec![sink],
        cancel: call.cancel.child_token(),
        chain: Arc::from([]),
        depth: 0,
        holds_lane: false,
    };
    let answer = execute(&member.engine, run).await;
    if let Some(why) = call.failure() {
        return Finished { error: Some(why), cancelled: true, last: true, ..Finished::default() };
    }
    let result = match answer {
        Ok(result) => result,
        Err(CallError::Cancelled | CallError::Ended) => {
            return Finished { cancelled: true, last: true, ..Finished::default() };
        }
        Err(error) => return failed(error.to_string()),
    };
    let text = match serde_json::to_vec(&result) {
        Ok(text) => text,
        Err(error) => return failed(format!("the result cannot be sent: {error}")),
    };
    if text.len() <= blobs::message_limit(member) {
        return Finished { result: Some(result), last: true, ..Finished::default() };
    }
    match put_result(member, call, &text).await {
        Ok(blob) => Finished { result_blob: Some(blob), last: true, ..Finished::default() },
        Err(why) => failed(format!(
            "the tool has run, but its result of {} bytes cannot be sent through the broker: {why}",
            text.len()
        )),
    }
}

async fn arguments_of(member: &Member, request: &FleetCall) -> Result<Value, String> {
    let Some(blob) = &request.arguments_blob else { return Ok(request.arguments.clone().unwrap_or(Value::Null)) };
    let text = blobs::get(member, &request.call_id, blob).await?;
    serde_json::from_slice(&text).map_err(|error| format!("they are no JSON: {error}"))
}

/// Stores a result, as soon as the broker is there.
async fn put_result(member: &Member, call: &ServedCall, text: &[u8]) -> Result<Blob, String> {
    const ATTEMPTS: usize = 5;
    let mut last = String::new();
    for _ in 0..ATTEMPTS {
        let mut state = member.broker.state.clone();
        tokio::select! {
            connected = state.wait_for(|state| state.connected) => { connected.map_err(|error| error.to_string())?; }
            () = call.cancel.cancelled() => return Err("the call was cancelled".to_owned()),
        }
        match blobs::put(member, &call.call_id, text).await {
            Ok(blob) => return Ok(blob),
            Err(why) => last = why,
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    Err(last)
}

/// A caller's sign of life. Returns whether it counts.
fn hear(member: &Member, call: &ServedCall, message: &NatsMessage) -> bool {
    let to = member.name.as_str();
    let Ok(alive) = member.verify::<AliveCall>(&message.payload, SignedKind::Alive, to) else { return false };
    let heard = match call.caller == alive.from {
        true => call.hear(&alive.body),
        false => Err((
            MessageRefusal::NotPermitted,
            format!("{} sent a sign of life for a call of {}", alive.from, call.caller),
        )),
    };
    heard.map_err(|(refusal, sentence)| member.counts.refuse(refusal, sentence)).is_ok()
}

/// Signs and sends one reply. One that is lost is sent again when the caller misses it.
pub(super) async fn reply(member: &Member, call: &ServedCall, seq: u64, event: ReplyEvent) {
    let body = CallReply { call_id: call.call_id.clone(), seq, event };
    let bytes = member.sign(SignedKind::Reply, &call.call_id, body);
    if let Err(error) = member.broker.client.publish(call.reply.clone(), bytes.into()).await {
        tracing::debug!(%error, "a reply was not sent");
    }
}

/// Sends the replies of a call until the caller has them all, or is gone.
struct Replies<'c> {
    member: &'c Member,
    call: &'c Arc<ServedCall>,
    alive: Subscriber,
    session: Option<Arc<Session>>,
    /// Until nothing of the call runs any more.
    counted: Option<Weak<CountedCall>>,
    beats: u64,
    last_beat: Instant,
    asks: bool,
}

impl<'c> Replies<'c> {
    fn new(member: &'c Member, call: &'c Arc<ServedCall>, alive: Subscriber) -> Self {
        Self { member, call, alive, session: None, counted: None, beats: 0, last_beat: Instant::now(), asks: false }
    }

    /// `end` arrives while the call runs. Returns the result's text in the object store.
    async fn deliver(mut self, end: Option<tokio::sync::oneshot::Receiver<Finished>>) -> Option<Blob> {
        let (member, call) = (self.member, self.call);
        let mut blob = None;
        let mut end = end;
        let mut stops = false;
        let mut tick = interval(Duration::from_secs(1));
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // Tells the caller that the call has begun.
        self.beat().await;
        loop {
            self.send_ready().await;
            let has_ended = end.is_none();
            if has_ended && (stops || call.window.lock().is_delivered()) {
                break;
            }
            let ending = async {
                match &mut end {
                    Some(end) => end.await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                finished = ending => {
                    end = None;
                    let finished = finished.unwrap_or_else(|_| Finished {
                        error: Some("the daemon failed while the call ran: unknown whether it was done".to_owned()),
                        last: true,
                        ..Finished::default()
                    });
                    blob.clone_from(&finished.result_blob);
                    call.window.lock().finish(finished);
                }
                () = member.stop.cancelled(), if !stops => {
                    stops = true;
                    call.fail(format!("{} stopped while the call ran, and cancelled it", member.name));
                }
                Some(message) = self.alive.next() => { hear(member, call, &message); }
                () = call.wake.notified() => {}
                _ = tick.tick() => {
                    let connected = member.broker.state.borrow().connected;
                    if call.is_caller_gone(connected) || has_ended && call.stuck_for() > LONGEST_STUCK {
                        call.cancel.cancel();
                        if has_ended {
                            break;
                        }
                    }
                    let asks = self.session_asks();
                    if let Some(counted) = self.counted.as_ref().and_then(Weak::upgrade) {
                        counted.note_asking(asks);
                    }
                    if connected && (asks != self.asks || self.last_beat.elapsed() >= ALIVE_INTERVAL) {
                        self.asks = asks;
                        self.beat().await;
                    }
                }
            }
        }
        if stops && timeout(LAST_MESSAGE, member.broker.client.flush()).await.is_err() {
            tracing::debug!("the end of a call was not sent");
        }
        blob
    }

    async fn send_ready(&self) {
        // Without the connection, messages would only wait to be sent twice.
        while self.member.broker.state.borrow().connected {
            let Some((seq, event)) = self.call.window.lock().next_to_send() else { return };
            reply(self.member, self.call, seq, event).await;
        }
    }

    async fn beat(&mut self) {
        self.beats += 1;
        self.last_beat = Instant::now();
        let next = self.call.window.lock().next();
        reply(self.member, self.call, next, ReplyEvent::Beat(CallBeat { number: self.beats, asks: self.asks })).await;
    }

    /// Whether the call waits for a person.
    fn session_asks(&self) -> bool {
        let Ok(call_id) = CallId::parse(&self.call.call_id) else { return false };
        let call = self.session.as_ref().and_then(|session| session.call(&call_id));
        let waits_for = call.and_then(|call| call.info().waits_for);
        matches!(waits_for, Some(CallWait::Permission | CallWait::Answer))
    }
}
