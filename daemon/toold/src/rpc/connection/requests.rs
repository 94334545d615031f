//! From a message to its answer, or to the future that will give it.

use std::sync::Arc;
use std::task::{Context, Poll};

use jsonrpsee::core::id_providers::RandomStringIdProvider;
use jsonrpsee::core::server::{BoundedSubscriptions, MethodCallback, MethodResponse, MethodSink, SubscriptionState};
use jsonrpsee::types::{ErrorObject, Id, Params};
use jsonrpsee::{ConnectionId, Extensions};
use serde::Deserialize;
use serde_json::value::RawValue;
use toold_engine::blocking::Blocking;
use toold_host::file_systems::answering;
use toold_proto::error;

use super::message::{MessageString, RawRequest, by_position, bytes, failure, not_json, read_id, success};
use super::{ClientDialect, ConnectionTask, MessageReply, RequestId, RequestScope, Responding};
use crate::rpc::parsed_memory::{HeldMemory, Refusal, beside_others};

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum BatchPosition {
    Alone,
    InBatch,
}

pub(super) enum StartedRequest {
    Nothing,
    Done(Vec<u8>),
    Waiting { responding: Responding, id: Option<RequestId>, barrier: bool },
}

impl StartedRequest {
    fn of(response: Option<Vec<u8>>) -> Self {
        response.map_or(Self::Nothing, Self::Done)
    }
}

impl ConnectionTask {
    pub(super) fn dispatch(&mut self, message: &[u8]) {
        // All of it: what is passed over is not looked at later (RFC 8259, section 8.1).
        let message = match std::str::from_utf8(message) {
            Ok(message) => message,
            Err(error) => return self.put(not_json(&error).get().as_bytes()),
        };
        if message.trim_start().starts_with('[') {
            return self.dispatch_batch(message);
        }
        match beside_others(message, || self.start(message, BatchPosition::Alone)) {
            StartedRequest::Nothing => {}
            StartedRequest::Done(json) => self.put(&json),
            StartedRequest::Waiting { responding, id, barrier } => {
                self.push(responding, id.into_iter().collect(), barrier)
            }
        }
    }

    /// Looks a request up and polls it once.
    pub(super) fn start(&mut self, message: &str, place: BatchPosition) -> StartedRequest {
        let request: RawRequest = match serde_json::from_str(message) {
            Ok(request) => request,
            Err(error) if error.is_data() => {
                let words = "a request is an object with jsonrpc, method, and an id unless it is a notification";
                return StartedRequest::Done(bytes(failure(
                    Id::Null,
                    error::INVALID_REQUEST,
                    words.to_owned(),
                    "invalid_request",
                )));
            }
            Err(error) => return StartedRequest::Done(bytes(not_json(&error))),
        };
        let id = match request.id.map(read_id).transpose() {
            Ok(id) => id,
            Err(words) => {
                return StartedRequest::Done(bytes(failure(
                    Id::Null,
                    error::INVALID_REQUEST,
                    words,
                    "invalid_request",
                )));
            }
        };
        let answer_id = id.clone().unwrap_or(Id::Null);
        let method: Option<MessageString> = request.method.and_then(|raw| serde_json::from_str(raw.get()).ok());
        let version = request.jsonrpc.map(RawValue::get);
        let (Some(MessageString(method)), Some("\"2.0\"")) = (method, version) else {
            let words = "expected jsonrpc: \"2.0\" and method: a string".to_owned();
            return StartedRequest::Done(bytes(failure(answer_id, error::INVALID_REQUEST, words, "invalid_request")));
        };
        if method == "$/cancelRequest" {
            self.cancel_request(request.params);
            return match id {
                None => StartedRequest::Nothing,
                Some(id) => StartedRequest::Done(success(&id, &()).expect("null has a form in JSON")),
            };
        }
        let key = request.id.map(|raw| raw.get().trim());
        if key.is_some_and(|key| self.pending.has(key)) {
            let words = "a request with this id is in flight on this connection".to_owned();
            return StartedRequest::Done(bytes(failure(answer_id, error::INVALID_REQUEST, words, "invalid_request")));
        }
        let held = match place {
            BatchPosition::Alone => self.limits.parsed.hold(message),
            // The batch holds it.
            BatchPosition::InBatch => Ok(None),
        };
        match held {
            Ok(held) => self.call(&method, request.params, id, key, place, held),
            Err(_) if id.is_none() => StartedRequest::Nothing,
            Err(refusal) => StartedRequest::Done(bytes(refused(answer_id, refusal))),
        }
    }

    fn call(
        &mut self,
        method: &str,
        params: Option<&RawValue>,
        id: Option<Id<'static>>,
        key: Option<&str>,
        place: BatchPosition,
        held: Option<HeldMemory>,
    ) -> StartedRequest {
        let answer_id = id.clone().unwrap_or(Id::Null);
        let notification = id.is_none();
        let Some((name, callback)) = self.methods.method_with_name(method) else {
            let words = format!("there is no method {}", method.chars().take(80).collect::<String>());
            let error = ErrorObject::owned(error::METHOD_NOT_FOUND, words, None::<()>);
            return match notification {
                true => StartedRequest::Nothing,
                false => StartedRequest::Done(bytes(MethodResponse::error(answer_id, error).into_json())),
            };
        };
        self.dialect = ClientDialect::Native;
        let cancel = match callback {
            // Is over before anything could cancel it.
            MethodCallback::Sync(_) => self.limits.cancel.clone(),
            _ => self.cancel.get_or_insert_with(|| self.limits.cancel.child_token()).child_token(),
        };
        let scope = Arc::new(RequestScope::new(self.connection.clone(), cancel));
        let mut extensions = Extensions::new();
        extensions.insert(scope.clone());
        let connection_id = ConnectionId(self.connection.id as usize);
        let params_text = params.map(RawValue::get);
        let max = self.limits.max_message;
        let mut future = match callback {
            MethodCallback::Sync(run) => {
                let response = run(answer_id, Params::new(params_text), max, extensions);
                return StartedRequest::of(answered(response, &scope, notification));
            }
            MethodCallback::Unsubscription(run) => {
                // jsonrpsee takes the id by position, our protocol by name.
                let by_position = by_position(params_text);
                let response = run(answer_id, Params::new(by_position.as_deref()), connection_id, max, extensions);
                return StartedRequest::of(answered(response, &scope, notification));
            }
            MethodCallback::Async(run) => {
                run(answer_id, Params::new(params_text).into_owned(), connection_id, max, extensions)
            }
            MethodCallback::Subscription(_) if place == BatchPosition::InBatch || notification => {
                let words = format!("{name} is a subscription: send it alone, with an id");
                return match notification {
                    true => StartedRequest::Nothing,
                    false => StartedRequest::Done(bytes(failure(
                        answer_id,
                        error::INVALID_REQUEST,
                        words,
                        "invalid_request",
                    ))),
                };
            }
            MethodCallback::Subscription(_) if !self.is_kept => {
                let words = format!("{name} is a subscription: it needs a lasting connection, such as a WebSocket");
                return StartedRequest::Done(bytes(failure(answer_id, error::INVALID_REQUEST, words, "no_stream")));
            }
            MethodCallback::Subscription(run) => {
                let most = self.limits.max_subscriptions;
                let subscriptions = self.subscriptions.get_or_insert_with(|| BoundedSubscriptions::new(most));
                let Some(permit) = subscriptions.acquire() else {
                    let words = format!("{most} subscriptions of this connection are open");
                    return StartedRequest::Done(bytes(failure(answer_id, error::OVERLOADED, words, "overloaded")));
                };
                let state = SubscriptionState {
                    conn_id: connection_id,
                    id_provider: &RandomStringIdProvider::new(16),
                    subscription_permit: permit,
                };
                let sink = MethodSink::new_with_limit(self.connection.outbox.sender(), u32::MAX);
                let response = run(answer_id, Params::new(params_text), sink, state, extensions);
                let scope = scope.clone();
                Box::pin(async move {
                    let response = response.await;
                    if response.is_success() {
                        scope.subscribed.notified().await;
                    }
                    response
                })
            }
        };
        if may_block(name) {
            future = Box::pin(Blocking(future));
        }
        let mut context = Context::from_waker(std::task::Waker::noop());
        // The waker does not matter: whatever is pending now is polled again by the connection's own loop.
        match future.as_mut().poll(&mut context) {
            Poll::Ready(response) => StartedRequest::of(answered(response, &scope, notification)),
            Poll::Pending => {
                let key: Option<RequestId> = key.map(Into::into);
                if let Some(key) = &key {
                    self.pending.enter(key.clone(), scope.cancel.clone());
                }
                let responding = Box::pin(async move {
                    let _held = held;
                    answered(future.await, &scope, notification)
                });
                StartedRequest::Waiting { responding, id: key, barrier: takes_effect_in_order(name) }
            }
        }
    }

    pub(super) fn push(&mut self, responding: Responding, ids: Vec<RequestId>, barrier: bool) {
        self.barrier |= barrier;
        self.pending.push(Box::pin(async move { MessageReply { json: responding.await, ids, barrier } }));
    }

    pub(super) fn take_reply(&mut self, reply: MessageReply) {
        if reply.barrier {
            self.barrier = false;
        }
        if let Some(json) = reply.json {
            self.put(&json);
        }
    }

    fn cancel_request(&mut self, params: Option<&RawValue>) {
        #[derive(Deserialize)]
        struct Cancel<'a> {
            #[serde(borrow)]
            id: &'a RawValue,
        }
        let Some(cancel) = params.and_then(|params| serde_json::from_str::<Cancel>(params.get()).ok()) else { return };
        self.pending.cancel(cancel.id.get().trim());
    }
}

/// What is answered for a message that would take too much memory.
pub(super) fn refused(id: Id<'_>, refusal: Refusal) -> Box<RawValue> {
    match refusal {
        Refusal::TooLarge(words) => failure(id, error::INVALID_REQUEST, words, "too_large"),
        Refusal::Overloaded(words) => failure(id, error::OVERLOADED, words, "overloaded"),
    }
}

/// What is written when a method has ended.
fn answered(response: MethodResponse, scope: &RequestScope, notification: bool) -> Option<Vec<u8>> {
    match scope.take_response() {
        _ if notification => None,
        // The sink has carried the answer of a subscription already.
        None if response.is_subscription() => None,
        None => Some(bytes(response.into_json())),
        own => own,
    }
}

/// Methods that look at paths themselves, and not within a call, while there are file systems that may not answer.
fn may_block(method: &str) -> bool {
    !["tools.", "events.", "daemon."].iter().any(|prefix| method.starts_with(prefix)) && answering::any()
}

/// Methods that take effect before the next message is read.
fn takes_effect_in_order(method: &str) -> bool {
    ["session.", "buffers.", "permissions.", "questions."].iter().any(|prefix| method.starts_with(prefix))
        || method.ends_with("subscribe")
        || method == "tools.provide"
        || method == "tools.unprovide"
}
