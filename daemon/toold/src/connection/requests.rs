//! From a message to its answer, or to the future that will give it.

use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use jsonrpsee::core::id_providers::RandomStringIdProvider;
use jsonrpsee::core::server::{MethodCallback, MethodResponse, MethodSink, SubscriptionState};
use jsonrpsee::types::{ErrorObject, Id, Params};
use jsonrpsee::{ConnectionId, Extensions};
use serde::Deserialize;
use serde_json::value::RawValue;
use toold_proto::error;

use super::message::{RawRequest, Text, batch, by_position, failure, not_json, read_id, response, within};
use super::{Dialect, Reply, RequestId, RequestScope, Responding, Server};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Alone,
    InBatch,
}

enum Started {
    Nothing,
    Done(Box<RawValue>),
    Waiting { responding: Responding, id: Option<RequestId>, barrier: bool },
}

impl Server {
    pub(super) fn dispatch(&mut self, message: &[u8]) {
        let first = message.iter().find(|b| !b.is_ascii_whitespace());
        if first == Some(&b'[') {
            return self.dispatch_batch(message);
        }
        match self.start(message, Place::Alone) {
            Started::Nothing => {}
            Started::Done(json) => self.put(&json),
            Started::Waiting { responding, id, barrier } => self.push(responding, id.into_iter().collect(), barrier),
        }
    }

    fn dispatch_batch(&mut self, message: &[u8]) {
        let members: Vec<&RawValue> = match serde_json::from_slice(message) {
            Ok(members) => members,
            Err(error) => return self.put(&not_json(&error)),
        };
        if members.is_empty() {
            let words = "an empty batch asks for nothing".to_owned();
            return self.put(&failure(Id::Null, error::INVALID_REQUEST, words, "invalid_request"));
        }
        let (mut done, mut waiting, mut ids) = (Vec::new(), FuturesUnordered::new(), Vec::new());
        let mut any_barrier = false;
        for member in members {
            match self.start(member.get().as_bytes(), Place::InBatch) {
                Started::Nothing => {}
                Started::Done(json) => done.push(json),
                Started::Waiting { responding, id, barrier } => {
                    waiting.push(responding);
                    ids.extend(id);
                    any_barrier |= barrier;
                }
            }
        }
        if waiting.is_empty() {
            if let Some(json) = batch(done) {
                self.put(&json);
            }
            return;
        }
        let all = async move {
            while let Some(json) = waiting.next().await {
                done.extend(json);
            }
            batch(done)
        };
        self.push(Box::pin(all), ids, any_barrier);
    }

    /// Looks a request up and polls it once.
    fn start(&mut self, message: &[u8], place: Place) -> Started {
        let request: RawRequest = match serde_json::from_slice(message) {
            Ok(request) => request,
            Err(error) if error.is_data() => {
                let words = "a request is an object with jsonrpc, method, and an id unless it is a notification";
                return Started::Done(failure(Id::Null, error::INVALID_REQUEST, words.to_owned(), "invalid_request"));
            }
            Err(error) => return Started::Done(not_json(&error)),
        };
        let id = match request.id.map(read_id).transpose() {
            Ok(id) => id,
            Err(words) => {
                return Started::Done(failure(Id::Null, error::INVALID_REQUEST, words, "invalid_request"));
            }
        };
        let answer_id = id.clone().unwrap_or(Id::Null);
        let method: Option<Text> = request.method.and_then(|raw| serde_json::from_str(raw.get()).ok());
        let version = request.jsonrpc.map(RawValue::get);
        let (Some(Text(method)), Some("\"2.0\"")) = (method, version) else {
            let words = "expected jsonrpc: \"2.0\" and method: a string".to_owned();
            return Started::Done(failure(answer_id, error::INVALID_REQUEST, words, "invalid_request"));
        };
        if method == "$/cancelRequest" {
            self.cancel_request(request.params);
            return match id {
                None => Started::Nothing,
                Some(id) => Started::Done(response(id, &())),
            };
        }
        let key = request.id.map(|raw| raw.get().trim());
        if key.is_some_and(|key| self.tokens.contains_key(key)) {
            let words = "a request with this id is in flight on this connection".to_owned();
            return Started::Done(failure(answer_id, error::INVALID_REQUEST, words, "invalid_request"));
        }
        self.call(&method, request.params, id, key, place)
    }

    fn call(
        &mut self,
        method: &str,
        params: Option<&RawValue>,
        id: Option<Id<'static>>,
        key: Option<&str>,
        place: Place,
    ) -> Started {
        let answer_id = id.clone().unwrap_or(Id::Null);
        let notification = id.is_none();
        let done = |response: MethodResponse| match notification {
            true => Started::Nothing,
            false => Started::Done(response.into_json()),
        };
        let Some((name, callback)) = self.methods.method_with_name(method) else {
            let words = format!("there is no method {}", method.chars().take(80).collect::<String>());
            return done(MethodResponse::error(
                answer_id,
                ErrorObject::owned(error::METHOD_NOT_FOUND, words, None::<()>),
            ));
        };
        self.dialect = Dialect::Native;
        let token = match callback {
            // Is over before anything could cancel it.
            MethodCallback::Sync(_) => self.cancel.clone(),
            _ => self.cancel.child_token(),
        };
        let mut extensions = Extensions::new();
        let scope = RequestScope { connection: self.connection.clone(), cancel: token.clone() };
        extensions.insert(Arc::new(scope));
        let connection_id = ConnectionId(self.connection.id as usize);
        let params_text = params.map(RawValue::get);
        let max = self.limits.max_message;
        let future = match callback.clone() {
            MethodCallback::Sync(run) => {
                return done(within(run(answer_id, Params::new(params_text), usize::MAX, extensions), max));
            }
            MethodCallback::Unsubscription(run) => {
                // jsonrpsee takes the id by position, our protocol by name.
                let by_position = by_position(params_text);
                return done(run(
                    answer_id,
                    Params::new(by_position.as_deref()),
                    connection_id,
                    usize::MAX,
                    extensions,
                ));
            }
            MethodCallback::Async(run) => {
                run(answer_id, Params::new(params_text).into_owned(), connection_id, usize::MAX, extensions)
            }
            MethodCallback::Subscription(_) if place == Place::InBatch || notification => {
                let words = format!("{name} is a subscription: send it alone, with an id");
                return match notification {
                    true => Started::Nothing,
                    false => Started::Done(failure(answer_id, error::INVALID_REQUEST, words, "invalid_request")),
                };
            }
            MethodCallback::Subscription(_) if self.limits.max_subscriptions == 0 => {
                let words = format!("{name} is a subscription: it needs a connection that stays, such as a WebSocket");
                return Started::Done(failure(answer_id, error::INVALID_REQUEST, words, "no_stream"));
            }
            MethodCallback::Subscription(run) => {
                let Some(permit) = self.subscriptions.acquire() else {
                    let words = format!("{} subscriptions of this connection are open", self.subscriptions.max());
                    return Started::Done(failure(answer_id, error::OVERLOADED, words, "overloaded"));
                };
                let state = SubscriptionState {
                    conn_id: connection_id,
                    id_provider: &RandomStringIdProvider::new(16),
                    subscription_permit: permit,
                };
                let sink = MethodSink::new_with_limit(self.connection.outbox.sender(), u32::MAX);
                run(answer_id, Params::new(params_text), sink, state, extensions)
            }
        };
        let mut responding: Responding = Box::pin(async move {
            let response = within(future.await, max);
            // The sink has carried the answer of a subscription already.
            if notification || response.is_subscription() { None } else { Some(response.into_json()) }
        });
        let mut context = Context::from_waker(std::task::Waker::noop());
        // The waker does not matter: whatever is pending now is polled again by the connection's own loop.
        match responding.as_mut().poll(&mut context) {
            Poll::Ready(None) => Started::Nothing,
            Poll::Ready(Some(json)) => Started::Done(json),
            Poll::Pending => {
                let key: Option<RequestId> = key.map(Into::into);
                if let Some(key) = &key {
                    self.tokens.insert(key.clone(), token);
                }
                Started::Waiting { responding, id: key, barrier: takes_effect_in_order(name) }
            }
        }
    }

    fn push(&mut self, responding: Responding, ids: Vec<RequestId>, barrier: bool) {
        self.barrier |= barrier;
        self.pending.push(Box::pin(async move { Reply { json: responding.await, ids, barrier } }));
    }

    pub(super) fn take_reply(&mut self, reply: Reply) {
        for id in &reply.ids {
            self.tokens.remove(id);
        }
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
        if let Some(token) = self.tokens.get(cancel.id.get().trim()) {
            token.cancel();
        }
    }
}

/// Methods that take effect before the next message is read.
fn takes_effect_in_order(method: &str) -> bool {
    ["session.", "buffers.", "permissions.", "questions."].iter().any(|prefix| method.starts_with(prefix))
        || method.ends_with("subscribe")
        || method == "tools.provide"
        || method == "tools.unprovide"
}
