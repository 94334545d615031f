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
use toold_host::memory_reserve;
use toold_proto::error;

use super::message::{ParsedRequest, by_position, bytes, failure, not_json, success};
use super::{ClientDialect, ConnectionTask, MessageReply, RequestId, RequestScope, Responding};
use crate::rpc::parsed_memory::{Refusal, beside_others};

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

    fn refused(refusal: Box<RawValue>) -> Self {
        Self::Done(bytes(refusal))
    }
}

impl ConnectionTask {
    /// Begins what a message asks for, and gives the answer that is there at once.
    pub(super) fn dispatch(&mut self, message: &[u8]) -> Option<Vec<u8>> {
        // If it was given up, and no script runs that would take it again.
        memory_reserve::ensure();
        // All of it: what is passed over is not looked at later (RFC 8259, section 8.1).
        let message = match std::str::from_utf8(message) {
            Ok(message) => message,
            Err(error) => return Some(bytes(not_json(&error))),
        };
        if message.trim_start().starts_with('[') {
            return self.dispatch_batch(message);
        }
        match beside_others(message, || self.start(message, BatchPosition::Alone)) {
            StartedRequest::Nothing => None,
            StartedRequest::Done(json) => Some(json),
            StartedRequest::Waiting { responding, id, barrier } => {
                self.push(responding, id.into_iter().collect(), barrier);
                None
            }
        }
    }

    /// Looks a request's method up and polls it once.
    pub(super) fn start(&mut self, message: &str, place: BatchPosition) -> StartedRequest {
        let ParsedRequest { id, key, method, params } = match ParsedRequest::read(message) {
            Ok(request) => request,
            Err(refusal) => return StartedRequest::refused(refusal),
        };
        if method == "$/cancelRequest" {
            self.cancel_request(params);
            return match id {
                None => StartedRequest::Nothing,
                Some(id) => StartedRequest::Done(success(&id, &()).expect("null has a form in JSON")),
            };
        }
        let notification = id.is_none();
        let answer_id = id.unwrap_or(Id::Null);
        if key.is_some_and(|key| self.pending.has(key)) {
            let words = format!(
                "a request with the id {} waits for its answer: give each request an id of its own",
                key.unwrap_or_default()
            );
            return StartedRequest::refused(failure(answer_id, error::INVALID_REQUEST, words, "invalid_request"));
        }
        let held = match place {
            BatchPosition::Alone => self.limits.parsed.hold(message),
            // The batch holds it.
            BatchPosition::InBatch => Ok(None),
        };
        let held = match held {
            Ok(held) => held,
            Err(_) if notification => return StartedRequest::Nothing,
            Err(refusal) => return StartedRequest::refused(refused(answer_id, refusal)),
        };
        let Some((name, callback)) = self.methods.method_with_name(&method) else {
            let words = format!("there is no method {}", method.chars().take(80).collect::<String>());
            let error = ErrorObject::owned(error::METHOD_NOT_FOUND, words, None::<()>);
            return match notification {
                true => StartedRequest::Nothing,
                false => StartedRequest::refused(MethodResponse::error(answer_id, error).into_json()),
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
                    false => {
                        StartedRequest::refused(failure(answer_id, error::INVALID_REQUEST, words, "invalid_request"))
                    }
                };
            }
            MethodCallback::Subscription(_) if !self.is_kept => {
                let words = format!("{name} is a subscription: it needs a lasting connection, such as a WebSocket");
                return StartedRequest::refused(failure(answer_id, error::INVALID_REQUEST, words, "no_stream"));
            }
            MethodCallback::Subscription(run) => {
                let most = self.limits.max_subscriptions;
                let subscriptions = self.subscriptions.get_or_insert_with(|| BoundedSubscriptions::new(most));
                let Some(permit) = subscriptions.acquire() else {
                    let words = format!("{most} subscriptions of this connection are open");
                    return StartedRequest::refused(failure(answer_id, error::OVERLOADED, words, "overloaded"));
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
    // It may wait for a person.
    if method == "permissions.request" {
        return false;
    }
    ["session.", "buffers.", "permissions.", "questions."].iter().any(|prefix| method.starts_with(prefix))
        || method.ends_with("subscribe")
        || method == "tools.provide"
        || method == "tools.unprovide"
}
