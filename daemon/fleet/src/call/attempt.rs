//! One attempt to run a call: the request, its acceptance, and everything until its end.

use std::sync::Arc;
use std::time::Duration;

use async_nats::{Message as NatsMessage, StatusCode, Subscriber};
use futures_util::StreamExt;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};
use toold_engine::cx::Cx;
use toold_engine::deadline::Pause;
use toold_engine::tool::{ToolError, ToolOutput};
use toold_proto::tool::ToolResult;

use super::OutgoingCall;
use super::cancel::CancelGuard;
use super::order::{Arrival, ReplyOrder};
use crate::blobs::{self, OwnBlob};
use crate::member::Member;
use crate::messages::{Accepted, AliveCall, CallOrigin, CallReply, Finished, FleetCall, RefusedCall, ReplyEvent};
use crate::names::FleetName;
use crate::signed::{MessageRefusal, SignedKind, random_id};
use crate::silence::{ALIVE_INTERVAL, SILENCE, Silence};
use crate::subjects;
use crate::target::CallTarget;

/// How long a daemon may take to accept a call.
const ACCEPT: Duration = Duration::from_secs(10);
/// Until the first reply arrives, signs of life are sent this often: without one the call does not begin.
const FIRST_INTERVAL: Duration = Duration::from_secs(1);
/// Lost replies are asked for this often.
const GAP_INTERVAL: Duration = Duration::from_millis(600);
/// Replies, and bytes of them, that arrive before the caller acknowledges them.
const SHARE: u64 = 64;
const SHARE_BYTES: usize = 256 * 1024;
/// How often the state of the connection is looked at.
const LOOK: Duration = Duration::from_millis(500);

/// How an attempt ended.
pub(super) enum AttemptEnd {
    /// The tool has an answer: its result, or why there is none.
    Done(ToolOutput),
    /// It did not run.
    Refused { daemon: FleetName, refusal: RefusedCall },
    /// It did not run: nobody is there.
    NoResponders,
    /// It did not run: nobody accepted it.
    Unanswered,
    /// The daemon has gone while it ran.
    Unknown { daemon: FleetName, call_id: String, why: String },
}

/// Calls once, where `to` says.
///
/// # Errors
/// `Cancelled`, or why the call could not be sent.
pub(super) async fn attempt(
    member: &Arc<Member>,
    call: &OutgoingCall<'_>,
    to: &CallTarget,
    cx: &Cx,
) -> Result<AttemptEnd, ToolError> {
    let call_id = random_id();
    let (subject, receiver, direct) = match to {
        CallTarget::Daemon(daemon) => (subjects::call(daemon), daemon.to_string(), Some(daemon.clone())),
        CallTarget::Label(label) => (subjects::any_call(label), format!("any.{label}"), None),
    };
    // Dropped last: everything else is over when the daemon hears of the cancellation.
    let mut guard = CancelGuard::new(member, &call_id, direct);
    let _outgoing = member.outgoing.enter(&call_id, cx);
    let attempt = Attempt { member, call, to, cx, call_id };
    let run = async {
        let (request, _blob) = attempt.request(&receiver).await?;
        let inbox = member.broker.client.new_inbox();
        let failed = |error: String| ToolError::Failed(format!("the call was not sent: {error}; it did not run"));
        let mut replies =
            member.broker.client.subscribe(inbox.clone()).await.map_err(|error| failed(error.to_string()))?;
        let sent = member.broker.client.publish_with_reply(subject, inbox, request.into()).await;
        sent.map_err(|error| failed(error.to_string()))?;
        let accepted = timeout(ACCEPT, attempt.acceptance(&mut replies)).await;
        match accepted.unwrap_or(Acceptance::Ended(AttemptEnd::Unanswered)) {
            Acceptance::Accepted(daemon, accepted) => {
                guard.arm(&daemon);
                let running = Running::new(&attempt, &daemon, &accepted);
                running.follow(&mut replies).await
            }
            Acceptance::Ended(end) => Ok(end),
        }
    };
    let end = tokio::select! {
        biased;
        () = cx.cancel.cancelled() => Err(ToolError::Cancelled),
        () = member.stop.cancelled() => Err(ToolError::Cancelled),
        end = run => end,
    };
    // A call that did not run, or has ended, needs no cancellation. Of one whose fate is unknown nobody awaits the end.
    if let Ok(AttemptEnd::Done(_) | AttemptEnd::Refused { .. } | AttemptEnd::NoResponders) = &end {
        guard.disarm();
    }
    end
}

struct Attempt<'c> {
    member: &'c Arc<Member>,
    call: &'c OutgoingCall<'c>,
    to: &'c CallTarget,
    cx: &'c Cx,
    call_id: String,
}

enum Acceptance {
    Accepted(FleetName, Accepted),
    Ended(AttemptEnd),
}

impl Attempt<'_> {
    /// The signed request. Arguments that it has no room for are in the object store as long as the second value lives.
    async fn request(&self, receiver: &str) -> Result<(Vec<u8>, Option<OwnBlob>), ToolError> {
        let Self { member, call, cx, .. } = self;
        let limit = call.timeout.map_or(cx.deadline.remaining(), |limit| limit.min(cx.deadline.remaining()));
        let mut request = FleetCall {
            call_id: self.call_id.clone(),
            tool: call.tool.to_owned(),
            fingerprint: call.record.fingerprint.clone(),
            arguments: Some(call.arguments.clone()),
            arguments_blob: None,
            session: cx.session.id.to_string(),
            origin: CallOrigin {
                daemon: member.name.clone(),
                person: member.person().cloned(),
                client: cx.session.client.as_ref().map(|client| client.name.clone()),
                can_ask: cx.engine.asks.can_be_answered_here(cx),
            },
            timeout_ms: Some(u64::try_from(limit.as_millis()).unwrap_or(u64::MAX)),
        };
        let text = call.arguments.to_string();
        let mut own = None;
        if text.len() > blobs::message_limit(member) {
            let stored = blobs::put(member, &self.call_id, text.as_bytes()).await.map_err(|why| {
                ToolError::Failed(format!(
                    "the arguments cannot be sent through the broker: {why}; the call did not run"
                ))
            })?;
            request.arguments = None;
            request.arguments_blob = Some(stored.clone());
            own = Some(OwnBlob::new(member, &self.call_id, stored));
        }
        Ok((member.sign(SignedKind::Call, receiver, request), own))
    }

    /// A reply of this call and its daemon.
    fn open(&self, message: &NatsMessage) -> Option<(FleetName, CallReply)> {
        let reply = self.member.verify::<CallReply>(&message.payload, SignedKind::Reply, &self.call_id).ok()?;
        Some((reply.from, reply.body))
    }

    /// Waits until a daemon that may run the call accepts it. All others are ignored: without a sign of life they do not
    /// run it.
    async fn acceptance(&self, replies: &mut Subscriber) -> Acceptance {
        while let Some(message) = replies.next().await {
            if message.status == Some(StatusCode::NO_RESPONDERS) {
                return Acceptance::Ended(AttemptEnd::NoResponders);
            }
            let Some((from, reply)) = self.open(&message) else { continue };
            if !self.may_run(&from) {
                let sentence = format!("{from} answered a call that is not for it");
                self.member.counts.refuse(MessageRefusal::NotPermitted, sentence);
                continue;
            }
            match reply.event {
                ReplyEvent::Accepted(accepted) => return Acceptance::Accepted(from, accepted),
                ReplyEvent::Refused(refusal) => {
                    return Acceptance::Ended(AttemptEnd::Refused { daemon: from, refusal });
                }
                ReplyEvent::Progress(_) | ReplyEvent::Output { .. } | ReplyEvent::Beat(_) | ReplyEvent::Result(_) => {}
            }
        }
        Acceptance::Ended(AttemptEnd::Unanswered)
    }

    fn may_run(&self, from: &FleetName) -> bool {
        match self.to {
            CallTarget::Daemon(daemon) => daemon == from,
            CallTarget::Label(label) => {
                self.member.directory.find(from, |known| known.labels().contains(label)).unwrap_or(false)
            }
        }
    }
}

/// A call that a daemon has accepted.
struct Running<'c> {
    attempt: &'c Attempt<'c>,
    daemon: &'c FleetName,
    accepted: &'c Accepted,
    order: ReplyOrder,
    silence: Silence,
    /// The number of the last sign of life, and when it was sent.
    number: u64,
    sent_at: Instant,
    /// Replies, and their bytes, that have arrived since.
    arrived: u64,
    arrived_bytes: usize,
    /// The daemon's instance by the directory at the start, if another one accepted the call.
    old_instance: Option<String>,
    /// The end counts as arrived when its text has.
    is_fetching: bool,
    /// While a person is asked there, the time here stands still.
    pause: Option<Pause<'c>>,
}

impl<'c> Running<'c> {
    fn new(attempt: &'c Attempt<'c>, daemon: &'c FleetName, accepted: &'c Accepted) -> Self {
        let mut running = Self {
            attempt,
            daemon,
            accepted,
            order: ReplyOrder::new(1),
            silence: Silence::new(),
            number: 0,
            sent_at: Instant::now(),
            arrived: 0,
            arrived_bytes: 0,
            old_instance: None,
            is_fetching: false,
            pause: None,
        };
        running.old_instance = running.other_instance();
        running
    }

    /// The instance of the daemon by the directory, when it is not the one that accepted the call.
    fn other_instance(&self) -> Option<String> {
        let instance = |known: &crate::directory::KnownDaemon| known.instance().map(str::to_owned);
        let known = self.attempt.member.directory.find(self.daemon, instance).flatten();
        known.filter(|instance| *instance != self.accepted.instance)
    }

    fn unknown(&self, why: String) -> AttemptEnd {
        AttemptEnd::Unknown { daemon: self.daemon.clone(), call_id: self.attempt.call_id.clone(), why }
    }

    async fn follow(mut self, replies: &mut Subscriber) -> Result<AttemptEnd, ToolError> {
        let Attempt { member, cx, .. } = self.attempt;
        let mut directory = member.directory.changes();
        let mut broker = member.broker.state.clone();
        broker.mark_unchanged();
        let mut look = interval(LOOK);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        self.send_alive().await;
        loop {
            tokio::select! {
                biased;
                message = replies.next() => {
                    let Some(message) = message else {
                        return Ok(self.unknown("the connection to the broker was closed".to_owned()));
                    };
                    let Some((from, reply)) = self.attempt.open(&message) else { continue };
                    if from != *self.daemon {
                        let sentence = format!("{from} answered a call that {} runs", self.daemon);
                        member.counts.refuse(MessageRefusal::NotPermitted, sentence);
                        continue;
                    }
                    self.arrived_bytes += message.payload.len();
                    if let Some(finished) = self.take(reply, cx).await {
                        let output = self.output(finished).await;
                        // Acknowledges the end.
                        self.send_alive().await;
                        return Ok(AttemptEnd::Done(output));
                    }
                }
                changed = directory.changed() => {
                    let now = self.other_instance();
                    if changed.is_ok() && now.is_some() && now != self.old_instance {
                        return Ok(self.unknown(format!("{} was restarted", self.daemon)));
                    }
                }
                changed = broker.changed() => {
                    if changed.is_ok() && broker.borrow_and_update().connected {
                        self.send_alive().await;
                    }
                }
                _ = look.tick() => {
                    let connected = member.broker.state.borrow().connected;
                    if self.silence.is_over(connected) {
                        let why = match connected {
                            true => format!("{} has been silent for {} s", self.daemon, SILENCE.as_secs()),
                            false => "the broker is not connected any more".to_owned(),
                        };
                        return Ok(self.unknown(why));
                    }
                    if connected && self.sent_at.elapsed() >= self.interval() {
                        self.send_alive().await;
                    }
                }
            }
        }
    }

    fn interval(&self) -> Duration {
        if self.order.has_begun() { ALIVE_INTERVAL } else { FIRST_INTERVAL }
    }

    /// Passes a reply on. Returns the end of the call.
    async fn take(&mut self, reply: CallReply, cx: &'c Cx) -> Option<Finished> {
        let is_gap = match self.order.take(reply) {
            Arrival::New(event) => {
                self.silence.hear();
                self.arrived += 1;
                match event {
                    ReplyEvent::Progress(progress) => cx.report(progress),
                    ReplyEvent::Output { stream, text } => cx.output(stream, text),
                    ReplyEvent::Result(finished) => return Some(finished),
                    ReplyEvent::Accepted(_) | ReplyEvent::Refused(_) | ReplyEvent::Beat(_) => {}
                }
                false
            }
            Arrival::Beat { asks, is_gap } => {
                self.silence.hear();
                if asks != self.pause.is_some() {
                    self.pause = asks.then(|| cx.deadline.pause());
                }
                is_gap
            }
            Arrival::Gap => true,
            Arrival::Old => false,
        };
        let is_share = self.arrived >= SHARE || self.arrived_bytes >= SHARE_BYTES;
        if is_share || is_gap && self.sent_at.elapsed() >= GAP_INTERVAL {
            self.send_alive().await;
        }
        None
    }

    async fn send_alive(&mut self) {
        let Attempt { member, call_id, .. } = self.attempt;
        if !member.broker.state.borrow().connected {
            return;
        }
        self.number += 1;
        (self.arrived, self.arrived_bytes, self.sent_at) = (0, 0, Instant::now());
        let alive = AliveCall {
            call_id: call_id.clone(),
            challenge: self.accepted.challenge.clone(),
            seen: self.order.expected() - u64::from(self.is_fetching),
            number: self.number,
        };
        let bytes = member.sign(SignedKind::Alive, self.daemon.as_str(), alive);
        let sent = member.broker.client.publish(subjects::alive(self.daemon, call_id), bytes.into()).await;
        if let Err(error) = sent {
            tracing::debug!(%error, "a sign of life was not sent");
        }
    }

    /// The end of the call, for the caller.
    async fn output(&mut self, finished: Finished) -> ToolOutput {
        let daemon = self.daemon;
        let result = match finished {
            Finished { result: Some(result), .. } => Ok(result),
            Finished { result_blob: Some(blob), .. } => self.fetch(&blob).await,
            Finished { error: Some(error), .. } => Err(format!("{daemon}: {error}")),
            Finished { .. } => Err(format!("the call was cancelled on {daemon}")),
        };
        let output = match result {
            Ok(ToolResult { content, is_error, metadata, structured, .. }) => {
                ToolOutput { content, is_error, metadata, structured }
            }
            Err(why) => ToolOutput::error(why),
        };
        about(output, daemon, &self.attempt.call_id)
    }

    /// Fetches a long result, while the daemon hears that this caller is there.
    async fn fetch(&mut self, blob: &crate::messages::Blob) -> Result<ToolResult, String> {
        let Attempt { member, call_id, .. } = self.attempt;
        self.is_fetching = true;
        let mut tick = interval(ALIVE_INTERVAL);
        let text = {
            let mut fetching = std::pin::pin!(blobs::get(member, call_id, blob));
            loop {
                tokio::select! {
                    text = &mut fetching => break text,
                    _ = tick.tick() => self.send_alive().await,
                }
            }
        };
        self.is_fetching = false;
        let failed =
            |why: String| format!("the tool has run on {}, but its result cannot be fetched: {why}", self.daemon);
        serde_json::from_slice(&text.map_err(failed)?).map_err(|error| failed(error.to_string()))
    }
}

/// Marks an output with the daemon that it is from.
pub(super) fn about(output: ToolOutput, daemon: &FleetName, call_id: &str) -> ToolOutput {
    output.with("fleet", daemon.as_str()).with("fleet_call_id", call_id)
}
