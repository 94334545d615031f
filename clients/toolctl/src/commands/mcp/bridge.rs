//! Messages of an MCP client to the daemon and back, over restarts of the daemon.
//!
//! The client speaks to one server for as long as it lives. When another daemon takes over, the bridge says to it what
//! the client said first, keeps the answers to that to itself, and sends what the old daemon did not read.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::pin::pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, stdout};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::time::{sleep, timeout};
use toold_client::{Client, ClientError};

use crate::commands::connect::{LISTENS_CHECK, nobody_listens};

/// The daemon's limit for a message. A longer one passes in pieces, and is answered by the daemon.
const MAX_LINE: u64 = 16 << 20;

/// How long the daemon's own connection may take to end when that of the client has ended.
const FAREWELL: Duration = Duration::from_secs(2);

/// Begins the ids of requests that are the bridge's own, and of those that a later daemon sends to the client.
const OWN: &str = "toolctl";

/// What the bridge knows of the conversation.
#[derive(Default)]
pub(super) struct Bridge {
    state: Mutex<BridgeState>,
}

#[derive(Default)]
struct BridgeState {
    /// How many daemons served before this one.
    generation: u64,
    /// The client's first message, with what the bridge adds to it.
    first: Option<Value>,
    /// That the client is ready, once it said so.
    initialized: Option<Vec<u8>>,
    /// What else holds until the client says otherwise: by what it is about, the last request.
    standing: BTreeMap<String, Value>,
    /// Requests of the client that have no answer, by the JSON of their ids, in their order.
    waiting: BTreeMap<String, (u64, Vec<u8>)>,
    next: u64,
    /// Requests of the daemon that have no answer, by the ids that the client knows.
    asked: BTreeSet<String>,
}

/// What of a message says how it is passed on.
#[derive(Deserialize)]
struct MessageHead {
    #[serde(default)]
    id: Option<Value>,
    #[serde(default)]
    method: Option<String>,
}

/// How the service of one daemon ended.
enum RelayEnd {
    /// It closed the connection.
    Closed,
    /// Nobody is at the other end of stdout.
    NobodyListens,
}

impl Bridge {
    /// Passes messages until the client or the daemon is gone. `again` connects to the daemon that took over.
    pub(super) async fn run(
        &self,
        first: Vec<u8>,
        mut input: impl AsyncBufRead + Unpin,
        mut control: Client,
        mut stream: UnixStream,
        again: impl AsyncFn(&Client) -> anyhow::Result<(Client, UnixStream)>,
    ) -> anyhow::Result<()> {
        self.lock().begin(&first);
        let mut said = vec![first];
        let (mut half_line, mut input_ended) = (Vec::new(), false);
        loop {
            let (reader, writer) = stream.into_split();
            let upstream =
                self.upstream(std::mem::take(&mut said), &mut input, &mut half_line, &mut input_ended, writer);
            let end = self.pass(upstream, self.downstream(reader)).await?;
            if let RelayEnd::NobodyListens = end {
                return Ok(());
            }
            // What the daemon says last to its other clients tells whether what has no answer was read.
            let why = timeout(FAREWELL, control.closed()).await;
            if input_ended && self.lock().waiting.is_empty() {
                return Ok(());
            }
            match why {
                Ok(ClientError::Replaced) => {}
                // It ended this connection alone.
                Err(_) => return Ok(()),
                Ok(_) => {
                    let answers = self.lock().give_up();
                    return Ok(write_out(&answers).await?);
                }
            }
            (control, stream) = again(&control).await?;
            let cancelled;
            (said, cancelled) = self.lock().go_on();
            write_out(&cancelled).await?;
        }
    }

    fn lock(&self) -> MutexGuard<'_, BridgeState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn pass(
        &self,
        upstream: impl Future<Output = io::Result<()>>,
        downstream: impl Future<Output = io::Result<()>>,
    ) -> io::Result<RelayEnd> {
        let (mut upstream, mut downstream) = (pin!(upstream), pin!(downstream));
        let mut sending = true;
        loop {
            // Both are kept across turns, so nothing that was read is dropped.
            tokio::select! {
                biased;
                done = &mut downstream => return done.map(|()| RelayEnd::Closed),
                // A daemon that has closed its end tells so downstream.
                _ = &mut upstream, if sending => sending = false,
                // The end of what can be read was told already, so whether anybody still listens is asked.
                () = sleep(LISTENS_CHECK), if !sending => {
                    if nobody_listens() {
                        return Ok(RelayEnd::NobodyListens);
                    }
                }
            }
        }
    }

    /// From the client to the daemon. `half_line` is what was read of a line when the daemon before ended.
    async fn upstream(
        &self,
        said: Vec<Vec<u8>>,
        input: &mut (impl AsyncBufRead + Unpin),
        half_line: &mut Vec<u8>,
        input_ended: &mut bool,
        mut to_daemon: OwnedWriteHalf,
    ) -> io::Result<()> {
        for line in said {
            to_daemon.write_all(&line).await?;
        }
        while !*input_ended {
            // Whatever is dropped in the middle of a line stays in `half_line`.
            let limit = MAX_LINE.saturating_sub(half_line.len() as u64);
            let read = (&mut *input).take(limit).read_until(b'\n', half_line).await;
            // An input that cannot be read has ended too.
            *input_ended = !matches!(read, Ok(1..));
            if half_line.is_empty() {
                continue;
            }
            let line = std::mem::take(half_line);
            let line = self.lock().sent(line);
            if let Some(line) = line {
                to_daemon.write_all(&line).await?;
            }
        }
        // The answers to what was sent last are still to come.
        to_daemon.shutdown().await
    }

    /// From the daemon to the client.
    async fn downstream(&self, from_daemon: OwnedReadHalf) -> io::Result<()> {
        let mut from_daemon = BufReader::with_capacity(64 << 10, from_daemon);
        let mut line = Vec::new();
        loop {
            line.clear();
            // A connection that was reset has ended as well.
            match from_daemon.read_until(b'\n', &mut line).await {
                Ok(0) | Err(_) => return Ok(()),
                Ok(_) => {}
            }
            let passed = self.lock().received(&line);
            match passed {
                RelayedMessage::AsItIs => write_out(std::slice::from_ref(&line)).await?,
                RelayedMessage::As(line) => write_out(&[line]).await?,
                RelayedMessage::Kept => {}
            }
        }
    }
}

/// What becomes of a message of the daemon.
#[derive(Debug, PartialEq)]
enum RelayedMessage {
    AsItIs,
    As(Vec<u8>),
    /// It answers the bridge itself.
    Kept,
}

impl BridgeState {
    /// Takes the client's first message.
    fn begin(&mut self, line: &[u8]) {
        self.first = serde_json::from_slice(line).ok().filter(|message: &Value| message.get("method").is_some());
        self.wait_for(line);
    }

    fn wait_for(&mut self, line: &[u8]) {
        let Ok(messages) = heads(line) else { return };
        for (head, text) in messages {
            if let MessageHead { id: Some(id), method: Some(_) } = head {
                self.next += 1;
                self.waiting.insert(id.to_string(), (self.next, text));
            }
        }
    }

    /// A message of the client, as the daemon gets it; `None` when it is for one that is gone.
    fn sent(&mut self, line: Vec<u8>) -> Option<Vec<u8>> {
        let Some(head) = head(&line) else {
            self.wait_for(&line);
            return Some(line);
        };
        match (head.id, head.method.as_deref()) {
            (Some(_), Some(method)) => {
                self.keep(method, &line);
                self.wait_for(&line);
                Some(line)
            }
            (None, Some("notifications/initialized")) => {
                self.initialized = Some(line.clone());
                Some(line)
            }
            (None, Some("notifications/cancelled")) => {
                let message: Value = serde_json::from_slice(&line).unwrap_or_default();
                self.waiting.remove(&message["params"]["requestId"].to_string());
                Some(line)
            }
            (Some(id), None) => self.answer(&id, line),
            (None, _) => Some(line),
        }
    }

    /// The client's answer to the daemon, whose ids only the daemon that gave them knows.
    fn answer(&mut self, id: &Value, line: Vec<u8>) -> Option<Vec<u8>> {
        let known = self.asked.remove(&id.to_string());
        if self.generation == 0 {
            return Some(line);
        }
        let own: Value = id.as_str()?.strip_prefix(&self.prefix()).filter(|_| known)?.parse().ok()?;
        with(&line, |message| message["id"] = own)
    }

    fn prefix(&self) -> String {
        format!("{OWN}-{}:", self.generation)
    }

    /// Keeps what the next daemon is to be told too.
    fn keep(&mut self, method: &str, line: &[u8]) {
        let about = |message: &Value| format!("resource {}", message["params"]["uri"]);
        match method {
            "logging/setLevel" => {
                if let Ok(message) = serde_json::from_slice(line) {
                    self.standing.insert("level".to_owned(), message);
                }
            }
            "resources/subscribe" => {
                if let Ok(message) = serde_json::from_slice(line) {
                    self.standing.insert(about(&message), message);
                }
            }
            "resources/unsubscribe" => {
                if let Ok(message) = serde_json::from_slice::<Value>(line) {
                    self.standing.remove(&about(&message));
                }
            }
            _ => {}
        }
    }

    fn received(&mut self, line: &[u8]) -> RelayedMessage {
        let Some(head) = head(line) else {
            for (head, _) in heads(line).unwrap_or_default() {
                self.answered(head.id.as_ref());
            }
            return RelayedMessage::AsItIs;
        };
        match (&head.id, head.method.as_deref()) {
            (Some(Value::String(id)), None) if id.starts_with(&format!("{OWN}-own-")) => RelayedMessage::Kept,
            (id, None) => {
                self.answered(id.as_ref());
                RelayedMessage::AsItIs
            }
            (Some(id), Some(_)) => {
                if self.generation == 0 {
                    self.asked.insert(id.to_string());
                    return RelayedMessage::AsItIs;
                }
                let known: Value = format!("{}{id}", self.prefix()).into();
                self.asked.insert(known.to_string());
                with(line, |message| message["id"] = known).map_or(RelayedMessage::AsItIs, RelayedMessage::As)
            }
            (None, Some("notifications/cancelled")) if self.generation > 0 => {
                let prefix = self.prefix();
                let named = with(line, |message| {
                    let id = &mut message["params"]["requestId"];
                    *id = format!("{prefix}{id}").into();
                });
                named.map_or(RelayedMessage::AsItIs, RelayedMessage::As)
            }
            (None, Some(_)) => RelayedMessage::AsItIs,
        }
    }

    fn answered(&mut self, id: Option<&Value>) {
        if let Some(id) = id {
            self.waiting.remove(&id.to_string());
        }
    }

    /// What the daemon that took over is told first, and what the client is told: that nobody waits for its answers to
    /// the one before.
    fn go_on(&mut self) -> (Vec<Vec<u8>>, Vec<Vec<u8>>) {
        let cancelled = std::mem::take(&mut self.asked).into_iter().filter_map(|id| {
            let id: Value = serde_json::from_str(&id).ok()?;
            let params = json!({"requestId": id, "reason": "the daemon was replaced by another one"});
            Some(line_of(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})))
        });
        let cancelled = cancelled.collect();
        self.generation += 1;
        let mut said = Vec::new();
        let first_waits = self.first.as_ref().is_some_and(|first| self.waiting.contains_key(&first["id"].to_string()));
        // A first message that has no answer yet is sent with the rest.
        if !first_waits {
            let requests = self.first.iter().chain(self.standing.values());
            for (n, request) in requests.enumerate() {
                let mut request = request.clone();
                if request.get("id").is_some() {
                    request["id"] = format!("{OWN}-own-{}-{n}", self.generation).into();
                }
                said.push(line_of(&request));
                if n == 0 {
                    said.extend(self.initialized.clone());
                }
            }
        }
        let mut waiting: Vec<&(u64, Vec<u8>)> = self.waiting.values().collect();
        waiting.sort_by_key(|(n, _)| *n);
        said.extend(waiting.into_iter().map(|(_, line)| line.clone()));
        (said, cancelled)
    }

    /// Answers to what a daemon that is gone may have read.
    fn give_up(&mut self) -> Vec<Vec<u8>> {
        let message = "the daemon ended before it answered: whether the request was carried out is not known, and it is \
                       not sent again";
        let ids = std::mem::take(&mut self.waiting).into_keys();
        let answer = |id: String| {
            let id: Value = serde_json::from_str(&id).unwrap_or_default();
            line_of(&json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32603, "message": message}}))
        };
        ids.map(answer).collect()
    }
}

/// Of a line that is one message. A list would be read as the members of a `MessageHead` in their order.
fn head(line: &[u8]) -> Option<MessageHead> {
    if line.trim_ascii_start().starts_with(b"{") { serde_json::from_slice(line).ok() } else { None }
}

/// The messages of a line, each as a line: a batch has several.
fn heads(line: &[u8]) -> serde_json::Result<Vec<(MessageHead, Vec<u8>)>> {
    if let Some(head) = head(line) {
        let mut text = line.trim_ascii().to_vec();
        text.push(b'\n');
        return Ok(vec![(head, text)]);
    }
    let batch: Vec<Value> = serde_json::from_slice(line)?;
    batch.into_iter().map(|message| Ok((MessageHead::deserialize(&message)?, line_of(&message)))).collect()
}

/// The message of a line, changed.
fn with(line: &[u8], change: impl FnOnce(&mut Value)) -> Option<Vec<u8>> {
    let mut message: Value = serde_json::from_slice(line).ok()?;
    change(&mut message);
    Some(line_of(&message))
}

fn line_of(message: &Value) -> Vec<u8> {
    let mut line = message.to_string().into_bytes();
    line.push(b'\n');
    line
}

async fn write_out(lines: &[Vec<u8>]) -> io::Result<()> {
    let mut out = stdout();
    for line in lines {
        out.write_all(line).await?;
    }
    out.flush().await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(message: Value) -> Vec<u8> {
        line_of(&message)
    }

    fn texts(lines: &[Vec<u8>]) -> Vec<Value> {
        lines.iter().map(|line| serde_json::from_slice(line).unwrap()).collect()
    }

    /// A client that is ready, and has an answer to all that it asked.
    fn ready() -> BridgeState {
        let mut state = BridgeState::default();
        state.begin(&line(json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {}})));
        assert_eq!(state.received(&line(json!({"id": 0, "result": {}}))), RelayedMessage::AsItIs);
        state.sent(line(json!({"jsonrpc": "2.0", "method": "notifications/initialized"})));
        state
    }

    #[test]
    fn the_next_daemon_hears_the_opening_and_what_was_not_read() {
        let mut state = ready();
        state.sent(line(json!({"id": 1, "method": "tools/list"})));
        state.sent(line(json!({"id": "a", "method": "tools/call"})));
        state.sent(line(json!({"id": 3, "method": "tools/call"})));
        state.sent(line(json!({"method": "notifications/cancelled", "params": {"requestId": 3}})));
        state.received(&line(json!({"id": 1, "result": {}})));
        let (said, cancelled) = state.go_on();
        let said = texts(&said);
        assert!(cancelled.is_empty());
        assert_eq!(said.len(), 3, "{said:?}");
        assert_eq!((&said[0]["method"], &said[0]["id"]), (&json!("initialize"), &json!("toolctl-own-1-0")));
        assert_eq!(said[1]["method"], "notifications/initialized");
        assert_eq!(said[2]["id"], "a");
        assert_eq!(state.received(&line(json!({"id": "toolctl-own-1-0", "result": {}}))), RelayedMessage::Kept);
    }

    #[test]
    fn an_opening_without_an_answer_is_the_clients_own() {
        let mut state = BridgeState::default();
        state.begin(&line(json!({"id": 0, "method": "initialize"})));
        assert_eq!(texts(&state.go_on().0), [json!({"id": 0, "method": "initialize"})]);
    }

    #[test]
    fn what_stands_is_asked_for_again() {
        let mut state = ready();
        for (id, method, uri) in [(1, "subscribe", "a"), (2, "subscribe", "b"), (3, "unsubscribe", "a")] {
            state.sent(line(json!({"id": id, "method": format!("resources/{method}"), "params": {"uri": uri}})));
            state.received(&line(json!({"id": id, "result": {}})));
        }
        let said = texts(&state.go_on().0);
        assert_eq!(said.len(), 3, "{said:?}");
        assert_eq!(said[2]["params"]["uri"], "b");
    }

    #[test]
    fn answers_go_to_the_daemon_that_asked() {
        let mut state = ready();
        state.received(&line(json!({"id": 0, "method": "roots/list"})));
        let (_, cancelled) = state.go_on();
        assert_eq!(texts(&cancelled)[0]["params"]["requestId"], 0);
        let RelayedMessage::As(asked) = state.received(&line(json!({"id": 0, "method": "roots/list"}))) else {
            panic!()
        };
        let id = texts(&[asked])[0]["id"].clone();
        assert_eq!(state.sent(line(json!({"id": 0, "result": "late"}))), None);
        let answer = state.sent(line(json!({"id": id, "result": {}}))).unwrap();
        assert_eq!(texts(&[answer]), [json!({"id": 0, "result": {}})]);
    }

    #[test]
    fn what_a_killed_daemon_may_have_read_is_answered_by_an_error() {
        let mut state = ready();
        state.sent(line(json!([{"id": 1, "method": "tools/call"}, {"id": 2, "method": "tools/call"}])));
        state.received(&line(json!([{"id": 2, "result": {}}])));
        let answers = texts(&state.give_up());
        assert_eq!((answers.len(), &answers[0]["id"]), (1, &json!(1)));
    }
}
