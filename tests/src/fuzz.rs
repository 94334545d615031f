//! Properties of a connection that hold for any input: driven by proptest, by fuzzers and by kept corpora.
//!
//! Each function takes any bytes and panics where a promise is broken.

mod world;

pub use world::ClosedAtEnd;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use toold::transport::framing::{self, FoundMessage, Framing, Splitter};
use toold_proto::openrpc;

/// It starts the program that it is given, or this one.
const NOT_TRIED: &str = "daemon.restart";

/// All methods of a daemon except those that would start another, with the names of their parameters.
pub static METHODS: LazyLock<BTreeMap<String, Vec<String>>> = LazyLock::new(|| {
    let document = openrpc::document();
    let methods = document["methods"].as_array().into_iter().flatten();
    let described = methods.filter_map(|method| {
        let params = method["params"].as_array()?.iter().filter_map(|param| param["name"].as_str());
        Some((method["name"].as_str()?.to_owned(), params.map(str::to_owned).collect()))
    });
    described.filter(|(name, _)| name != NOT_TRIED).collect()
});

/// The first byte is the length of the pieces in which the others arrive: the same messages are found in them as in the
/// whole, and none is larger than the limit.
pub fn frames(data: &[u8]) {
    let [size, stream @ ..] = data else { return };
    const MAX: usize = 64;
    let whole = split(stream, stream.len().max(1), MAX);
    let pieces = split(stream, usize::from(*size).max(1), MAX);
    assert_eq!(whole, pieces, "in pieces of {size}");
    for framing in [Framing::Lines, Framing::Headers] {
        // Written messages are read again, where the framing can carry it.
        let message: Vec<u8> =
            stream.iter().copied().filter(|byte| *byte != b'\n' && *byte != b'\r').take(MAX).collect();
        let carried = match framing {
            Framing::Lines => [&b"{"[..], &message].concat(),
            Framing::Headers => message,
        };
        if carried.len() <= MAX {
            let mut out = Vec::new();
            framing::write(framing, &carried, &mut out);
            assert_eq!(split(&out, 1, MAX), [String::from_utf8_lossy(&carried)]);
        }
    }
}

/// The messages in a stream that arrives in pieces of this many bytes.
fn split(stream: &[u8], size: usize, max: usize) -> Vec<String> {
    let mut splitter = Splitter::new(max);
    let (mut buffer, mut searched, mut found) = (Vec::new(), 0, Vec::new());
    for piece in stream.chunks(size) {
        buffer.extend_from_slice(piece);
        loop {
            let used = match splitter.next(&buffer, searched) {
                FoundMessage::Message(message, used) => {
                    assert!(message.len() <= max && message.len() <= used && used <= buffer.len());
                    found.push(String::from_utf8_lossy(message).into_owned());
                    used
                }
                FoundMessage::Skip(used) => {
                    assert!(used > 0 && used <= buffer.len());
                    used
                }
                FoundMessage::TooLarge => {
                    found.push("TOO LARGE".into());
                    0
                }
                FoundMessage::More => {
                    searched = buffer.len();
                    break;
                }
                FoundMessage::Broken(_) => {
                    found.push("BROKEN".into());
                    return found;
                }
            };
            buffer.drain(..used);
            searched = 0;
        }
    }
    found
}

/// Bytes as a client's stream: all that comes back are responses and notifications in the client's framing, and each
/// request with an id of its own has one response.
pub fn stream(data: &[u8]) {
    if memchr_str(data, NOT_TRIED) || memchr_str(data, "initialize") {
        // The second is another protocol's.
        return;
    }
    let answered = world::exchange(data);
    let is_lines = data.iter().find(|byte| !byte.is_ascii_whitespace()).is_none_or(|byte| matches!(byte, b'{' | b'['));
    let framing = if is_lines { Framing::Lines } else { Framing::Headers };
    let mut counts = BTreeMap::<String, usize>::new();
    for message in messages(framing, &answered.out) {
        let message: Value = serde_json::from_slice(message).expect("what the daemon says is JSON");
        match message {
            Value::Array(batch) => {
                assert!(!batch.is_empty(), "an empty batch");
                batch.iter().for_each(|response| count(response, &mut counts));
            }
            one => count(&one, &mut counts),
        }
    }
    if answered.whole && framing == Framing::Lines {
        for (id, times) in asked(data) {
            let responses = counts.get(&id).copied().unwrap_or(0);
            assert_eq!(responses, times, "responses to {id} in {}", String::from_utf8_lossy(data));
        }
    }
}

/// Looks at a message of the daemon, and counts it when it is a response.
fn count(message: &Value, counts: &mut BTreeMap<String, usize>) {
    assert_eq!(message["jsonrpc"], "2.0", "{message}");
    if message.get("method").is_some() {
        assert!(message.get("id").is_none(), "a request to a client that takes none: {message}");
        return;
    }
    let id = message.get("id").expect("a response has an id");
    assert!(message.get("result").is_some() != message.get("error").is_some(), "{message}");
    if !id.is_null() {
        *counts.entry(id.to_string()).or_default() += 1;
    }
}

/// The messages in what the daemon wrote.
fn messages(framing: Framing, mut out: &[u8]) -> Vec<&[u8]> {
    let mut splitter = Splitter::new(usize::MAX >> 1);
    splitter.framing = Some(framing);
    let mut messages = Vec::new();
    loop {
        match splitter.next(out, 0) {
            FoundMessage::Message(message, used) => {
                messages.push(message);
                out = &out[used..];
            }
            FoundMessage::Skip(used) => out = &out[used..],
            // A client that had to be cut off may have got half a message.
            FoundMessage::More | FoundMessage::TooLarge | FoundMessage::Broken(_) => return messages,
        }
    }
}

#[derive(Deserialize)]
struct SentRequest<'a> {
    #[serde(borrow)]
    jsonrpc: &'a RawValue,
    #[serde(borrow)]
    id: &'a RawValue,
    #[serde(borrow)]
    method: &'a RawValue,
    /// A member that is there twice makes no request.
    #[serde(borrow, default, rename = "params")]
    _params: Option<&'a RawValue>,
}

/// The ids of what are requests beyond doubt, with how often each was used; single ones, since batches have bounds. Not those
/// that others have too, such as a message of another version: that one is answered as well, or not.
fn asked(data: &[u8]) -> BTreeMap<String, usize> {
    let (mut ids, mut of_others) = (BTreeMap::<String, usize>::new(), Vec::new());
    let mut lines = data.split(|byte| *byte == b'\n').peekable();
    while let Some(line) = lines.next() {
        // A last line without an end may have an answer.
        let ends = lines.peek().is_some();
        // Else it is no JSON, wherever in it that is.
        let Ok(line) = std::str::from_utf8(line) else { continue };
        match serde_json::from_str::<SentRequest>(line) {
            Ok(request) if ends && request.is_beyond_doubt() => {
                *ids.entry(request.id.get().to_owned()).or_default() += 1
            }
            _ => of_others.extend(ids_in(line)),
        }
    }
    ids.retain(|id, _| !of_others.contains(id));
    ids
}

/// The ids in a message or a batch, whatever else is in it.
fn ids_in(line: &str) -> Vec<String> {
    #[derive(Deserialize)]
    struct OnlyId<'a> {
        #[serde(borrow)]
        id: &'a RawValue,
    }
    // Unparsed: a number may be larger than any type, and nesting deeper than any parser goes.
    let members: Vec<&RawValue> = match serde_json::from_str(line) {
        Ok(batch) => batch,
        Err(_) => serde_json::from_str(line).into_iter().collect(),
    };
    let only = members.iter().filter_map(|member| serde_json::from_str::<OnlyId>(member.get()).ok());
    only.map(|only| only.id.get().to_owned()).collect()
}

impl SentRequest<'_> {
    fn is_beyond_doubt(&self) -> bool {
        let id = self.id.get();
        let is_number = id.parse::<u64>().is_ok_and(|number| number.to_string() == id);
        let is_text = serde_json::from_str::<String>(self.method.get()).is_ok();
        self.jsonrpc.get() == r#""2.0""# && is_text && is_number
    }
}

/// `METHOD PARAMS`: a method of the daemon's table with any JSON as its parameters has exactly one answer, and never
/// that of an error of the daemon itself.
pub fn methods(data: &[u8]) {
    let Some(space) = data.iter().position(|byte| *byte == b' ') else { return };
    let Ok(name) = std::str::from_utf8(&data[..space]) else { return };
    if !METHODS.contains_key(name) {
        return;
    }
    let Ok(params) = serde_json::from_slice::<&RawValue>(&data[space + 1..]) else { return };
    // Between values; strings cannot contain them.
    let params = params.get().replace(['\n', '\r'], " ");
    let request = format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"{name}\",\"params\":{params}}}\n");
    let answered = world::exchange(request.as_bytes());
    assert!(answered.whole, "no answer to {request}");
    let mut counts = BTreeMap::new();
    for message in messages(Framing::Lines, &answered.out) {
        let message: Value = serde_json::from_slice(message).expect("what the daemon says is JSON");
        count(&message, &mut counts);
        assert_ne!(message["error"]["code"], INTERNAL, "{message} to {request}");
    }
    assert_eq!(counts, BTreeMap::from([("1".to_owned(), 1)]), "to {request}");
}

/// JSON-RPC's own code for it.
const INTERNAL: i64 = -32603;

fn memchr_str(data: &[u8], text: &str) -> bool {
    data.windows(text.len()).any(|window| window == text.as_bytes())
}
