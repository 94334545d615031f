//! Batches: many requests in one message, and their answers in one (JSON-RPC 2.0, section 6).
//!
//! The requests are begun a few at a time, so that other clients have their turns in between.

use std::fmt;
use std::ops::Range;
use std::pin::Pin;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use jsonrpsee::types::Id;
use serde::Deserializer;
use serde::de::{Error, SeqAccess, Visitor};
use serde_json::value::RawValue;
use toold_proto::error;
use toold_proto::method::{Method, RpcDiscover};

use super::message::{RawRequest, bytes, failure, not_json, read_id};
use super::requests::{BatchPosition, StartedRequest, refused};
use super::{ConnectionTask, RequestId, TURN};
use crate::rpc::message_budget::Reservation;
use crate::rpc::parsed_memory::{HeldMemory, beside_others};

/// Requests of one batch.
const MAX_REQUESTS: usize = 20_000;
/// Bytes of all its answers together.
const MAX_ANSWERS: usize = 64 * 1024 * 1024;
/// Bytes of answers that a batch has whatever other clients have not read.
const ALWAYS: usize = 1024 * 1024;

/// A batch whose requests are not all begun.
pub(super) struct RequestBatch {
    text: Box<str>,
    /// Where the requests that are left stand in the text.
    left: std::vec::IntoIter<Range<usize>>,
    answers: BatchAnswers,
    waiting: FuturesUnordered<WaitingRequest>,
    ids: Vec<RequestId>,
    barrier: bool,
    /// `rpc.discover` was answered.
    described: bool,
    held: Option<HeldMemory>,
}

/// Gives a response, and the id of its request as it was sent.
type WaitingRequest = Pin<Box<dyn Future<Output = (Option<Vec<u8>>, Option<RequestId>)> + Send>>;

impl ConnectionTask {
    pub(super) fn dispatch_batch(&mut self, message: &str) -> Option<Vec<u8>> {
        match beside_others(message, || self.read_batch(message)) {
            Ok(batch) => self.go_on_with(batch),
            Err(refusal) => Some(bytes(refusal)),
        }
    }

    fn read_batch(&self, message: &str) -> Result<Box<RequestBatch>, Box<RawValue>> {
        let wrong = |words: String, kind: &str| failure(Id::Null, error::INVALID_REQUEST, words, kind);
        let held = self.limits.parsed.hold(message).map_err(|refusal| refused(Id::Null, refusal))?;
        let requests = match requests_in(message) {
            Ok(requests) => requests,
            Err(error) if error.is_data() => return Err(wrong(error.to_string(), "too_large")),
            Err(error) => return Err(not_json(&error)),
        };
        if requests.is_empty() {
            return Err(wrong("the batch is empty".to_owned(), "invalid_request"));
        }
        Ok(Box::new(RequestBatch {
            text: message.into(),
            left: requests.into_iter(),
            answers: BatchAnswers::new(Reservation::new(self.limits.unread.clone())),
            waiting: FuturesUnordered::new(),
            ids: Vec::new(),
            barrier: false,
            described: false,
            held,
        }))
    }

    /// Begins some more requests of a batch. Its answers are given when all have ended, here or as those of a request.
    pub(super) fn go_on_with(&mut self, mut batch: Box<RequestBatch>) -> Option<Vec<u8>> {
        for _ in 0..TURN {
            let Some(request) = batch.left.next() else { return self.finish(*batch) };
            let text = &batch.text[request];
            if let Some(words) = batch.why_not(self.limits.max_requests).or_else(|| batch.why_not_again(text)) {
                if let Some(refusal) = refusal_of(text, words) {
                    batch.answers.push(&refusal);
                }
                continue;
            }
            batch.described |= is_discovery(text);
            match beside_others(text, || self.start(text, BatchPosition::InBatch)) {
                StartedRequest::Nothing => {}
                StartedRequest::Done(json) => batch.answers.put(&json, || id_of(text)),
                StartedRequest::Waiting { responding, id, barrier } => {
                    batch.ids.extend(id.clone());
                    batch.waiting.push(Box::pin(async move { (responding.await, id) }));
                    batch.barrier |= barrier;
                }
            }
        }
        self.batch = Some(batch);
        None
    }

    fn finish(&mut self, batch: RequestBatch) -> Option<Vec<u8>> {
        let RequestBatch { mut answers, mut waiting, ids, barrier, held, .. } = batch;
        if waiting.is_empty() {
            return answers.into_json();
        }
        let all = async move {
            let _held = held;
            while let Some((json, id)) = waiting.next().await {
                if let Some(json) = json {
                    answers.put(&json, || id.and_then(|id| read_id(&RawValue::from_string(id.into()).ok()?).ok()));
                }
            }
            answers.into_json()
        };
        self.push(Box::pin(all), ids, barrier);
        None
    }
}

impl RequestBatch {
    /// Why the document is not sent again, in words for people.
    fn why_not_again(&self, text: &str) -> Option<(i32, String, &'static str)> {
        let words = "not run: this batch has asked for it already, and one answer is enough";
        (self.described && is_discovery(text)).then(|| (error::INVALID_REQUEST, words.to_owned(), "repeated"))
    }

    /// Why no further request is begun, in words for people.
    fn why_not(&self, max_waiting: usize) -> Option<(i32, String, &'static str)> {
        if self.answers.json.len() >= MAX_ANSWERS {
            let words = format!(
                "not run: the answers to this batch have over {} MiB already; send the request in another batch",
                MAX_ANSWERS >> 20
            );
            return Some((error::INTERNAL_ERROR, words, "too_large"));
        }
        if self.answers.others_have_all {
            let words = format!("not run: {OTHERS_HAVE_ALL}; send the request again later, alone");
            return Some((error::OVERLOADED, words, "overloaded"));
        }
        (self.waiting.len() >= max_waiting).then(|| {
            let words = format!(
                "not run: {max_waiting} requests of this batch are in flight already; send the request again when \
                 the batch is answered"
            );
            (error::OVERLOADED, words, "overloaded")
        })
    }
}

/// Whether a request asks for the OpenRPC document, whose size is thousands of times its own.
fn is_discovery(text: &str) -> bool {
    // Few requests have the word in them, and are read once more.
    text.contains(RpcDiscover::NAME)
        && serde_json::from_str(text).is_ok_and(|request: RawRequest| request.is_of(RpcDiscover::NAME))
}

const OTHERS_HAVE_ALL: &str = "answers that clients have not read use all the memory reserved for them";

/// The answers so far, each behind a comma.
struct BatchAnswers {
    json: Vec<u8>,
    share: Reservation,
    /// There was no memory for an answer.
    others_have_all: bool,
}

impl BatchAnswers {
    fn new(share: Reservation) -> Self {
        Self { json: Vec::new(), share, others_have_all: false }
    }

    /// Adds an answer, or says in its place why it is left out.
    fn put(&mut self, json: &[u8], id: impl FnOnce() -> Option<Id<'static>>) {
        let length = self.json.len() + json.len();
        let why = if length > MAX_ANSWERS {
            format!("the answers to a batch have at most {} MiB together", MAX_ANSWERS >> 20)
        } else if length > ALWAYS && !self.share.grow(length) {
            self.others_have_all = true;
            OTHERS_HAVE_ALL.to_owned()
        } else {
            return self.push(json);
        };
        let words = format!("the request ran; its answer of {} bytes is left out, because {why}", json.len());
        let refusal = failure(id().unwrap_or(Id::Null), error::INTERNAL_ERROR, words, "too_large");
        self.push(refusal.get().as_bytes());
    }

    fn push(&mut self, json: &[u8]) {
        self.json.push(b',');
        self.json.extend_from_slice(json);
    }

    /// `None` when nothing was asked for that has an answer.
    fn into_json(mut self) -> Option<Vec<u8>> {
        *self.json.first_mut()? = b'[';
        self.json.push(b']');
        Some(self.json)
    }
}

/// What is answered for a request that is not begun; `None` for a notification.
fn refusal_of(request: &str, (code, words, kind): (i32, String, &str)) -> Option<Vec<u8>> {
    let request: Option<RawRequest> = serde_json::from_str(request).ok();
    let id = match request {
        Some(request) => request.id.map(read_id)?.unwrap_or(Id::Null),
        None => Id::Null,
    };
    Some(bytes(failure(id, code, words, kind)))
}

fn id_of(request: &str) -> Option<Id<'static>> {
    let request: RawRequest = serde_json::from_str(request).ok()?;
    read_id(request.id?).ok()
}

/// Where the requests of a batch stand in its text.
///
/// # Errors
/// The text is no JSON; it is a data error when there are too many of them.
fn requests_in(text: &str) -> serde_json::Result<Vec<Range<usize>>> {
    struct Requests<'t>(&'t str);

    impl<'de> Visitor<'de> for Requests<'de> {
        type Value = Vec<Range<usize>>;

        fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str("a batch of requests")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Self::Value, A::Error> {
            let mut found = Vec::new();
            while let Some(request) = sequence.next_element::<&'de RawValue>()? {
                if found.len() == MAX_REQUESTS {
                    return Err(A::Error::custom(format!("a batch has at most {MAX_REQUESTS} requests")));
                }
                let start = request.get().as_ptr() as usize - self.0.as_ptr() as usize;
                found.push(start..start + request.get().len());
            }
            Ok(found)
        }
    }

    let mut deserializer = serde_json::Deserializer::from_str(text);
    let found = deserializer.deserialize_seq(Requests(text))?;
    deserializer.end()?;
    Ok(found)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::rpc::message_budget::MessageBudget;

    #[test]
    fn requests_are_found_where_they_stand() {
        let text = r#" [ {"a": [1]} , 2,"x" ] "#;
        let found: Vec<&str> = requests_in(text).unwrap().into_iter().map(|range| &text[range]).collect();
        assert_eq!(found, [r#"{"a": [1]}"#, "2", r#""x""#]);
        assert!(requests_in("[1,").unwrap_err().is_eof());
        assert!(requests_in("[1] 2").unwrap_err().is_syntax());
        let many = format!("[{}1]", "1,".repeat(MAX_REQUESTS));
        assert!(requests_in(&many).unwrap_err().is_data());
    }

    #[test]
    fn answers_beyond_the_limit_say_so_and_name_their_requests() {
        let budget = Arc::new(MessageBudget::new(4 * MAX_ANSWERS));
        let mut answers = BatchAnswers::new(Reservation::new(budget.clone()));
        assert_eq!(BatchAnswers::new(Reservation::new(budget)).into_json(), None);
        let half = vec![b' '; MAX_ANSWERS / 2];
        for number in 0..3 {
            answers.put(&half, || Some(Id::Number(number)));
        }
        let json = String::from_utf8(answers.into_json().unwrap()).unwrap();
        assert!(json.len() < MAX_ANSWERS + 1_000);
        assert!(json.starts_with('[') && json.ends_with(']'));
        assert_eq!(json.matches("too_large").count(), 2);
        assert!(json.contains("\"id\":1") && json.contains("\"id\":2"), "{}", &json[json.len() - 800..]);
    }

    #[test]
    fn small_batches_are_answered_whatever_others_have_not_read() {
        let budget = Arc::new(MessageBudget::new(ALWAYS));
        let mut slow = Reservation::new(budget.clone());
        slow.set(ALWAYS);
        let mut answers = BatchAnswers::new(Reservation::new(budget));
        answers.put(&vec![b' '; ALWAYS / 2], || None);
        assert!(!answers.others_have_all);
        answers.put(&vec![b' '; ALWAYS], || Some(Id::Number(7)));
        assert!(answers.others_have_all);
        let json = String::from_utf8(answers.into_json().unwrap()).unwrap();
        assert!(json.len() < ALWAYS && json.contains("\"id\":7"), "{}", &json[json.len() - 400..]);
    }
}
