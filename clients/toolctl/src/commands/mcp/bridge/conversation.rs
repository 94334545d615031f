//! The bridge's record of the conversation between its client and the daemons: the messages that the next daemon must
//! get, and the ids that differ between the two sides. Does no I/O.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use toold_proto::daemon::CLOSING;
use toold_proto::mcp_line::{Members, UnreadableMessage};
use toold_proto::tool::NOT_RUN;

/// The answer to a call that a daemon may have carried out before it ended.
const ENDED: &str = "the daemon ended before it answered, and the call may have been executed: look at what it changed \
                     before you repeat it";

/// Prefix of the ids of the bridge's own requests, and of requests that a later daemon sends to the client.
const OWN: &str = "toolctl";

/// The conversation so far.
#[derive(Default)]
pub(super) struct Conversation {
    /// How many daemons served before this one.
    generation: u64,
    /// The client's first message, with what the bridge adds to it.
    first: Option<Value>,
    /// The `notifications/initialized` of the client, once it came.
    initialized: Option<Vec<u8>>,
    /// The log level and the subscriptions in effect: by their subject, the last request.
    settings: BTreeMap<String, Value>,
    /// Unanswered requests of the client, by the JSON of their ids.
    waiting: BTreeMap<String, UnansweredRequest>,
    next: u64,
    /// Unanswered requests of the daemon, by the ids that the client knows.
    daemon_requests: BTreeSet<String>,
}

/// A request of the client without an answer.
struct UnansweredRequest {
    /// Later requests have higher numbers.
    order: u64,
    line: Vec<u8>,
    /// It calls a tool, which may change something.
    is_call: bool,
    /// A daemon may have read it and ended without an answer. It is sent to another daemon only once.
    was_lost: bool,
}

/// How a message of the daemon is passed on.
#[derive(Debug, PartialEq)]
pub(super) enum RelayedMessage {
    Unchanged,
    Changed(Vec<u8>),
    /// Not at all: it is for the bridge.
    Consumed,
}

/// The members of a message that decide how it is passed on.
struct MessageHead {
    id: Option<Value>,
    method: Option<String>,
}

impl Conversation {
    /// Whether the client waits for any answer.
    pub(super) fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Takes the client's first message.
    pub(super) fn begin(&mut self, line: &[u8]) {
        self.first = serde_json::from_slice(line).ok().filter(|message: &Value| message.get("method").is_some());
        if let Some(MessageHead { id: Some(id), method: Some(method) }) = head(line) {
            self.track_request(&id, &method, line);
        }
    }

    fn track_request(&mut self, id: &Value, method: &str, line: &[u8]) {
        self.next += 1;
        let is_call = method == "tools/call";
        let request = UnansweredRequest { order: self.next, line: line.to_vec(), is_call, was_lost: false };
        self.waiting.insert(id.to_string(), request);
    }

    /// A message of the client, as the daemon gets it; `None` when it answers a daemon that is gone.
    ///
    /// # Errors
    /// It is a request whose id another one has that waits: the daemons would not know which one they answer.
    pub(super) fn take_from_client(&mut self, line: Vec<u8>) -> Result<Option<Vec<u8>>, UnreadableMessage> {
        let Some(head) = head(&line) else { return Ok(Some(line)) };
        Ok(match (head.id, head.method.as_deref()) {
            (Some(id), Some(_)) if self.waiting.contains_key(&id.to_string()) => {
                return Err(UnreadableMessage::sent_twice(id));
            }
            (Some(id), Some(method)) => {
                self.track_settings(method, &line);
                self.track_request(&id, method, &line);
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
        })
    }

    /// The client's answer to a request of the daemon, with the daemon's own id.
    fn answer(&mut self, id: &Value, line: Vec<u8>) -> Option<Vec<u8>> {
        let known = self.daemon_requests.remove(&id.to_string());
        if self.generation == 0 {
            return Some(line);
        }
        let own: Value = id.as_str()?.strip_prefix(&self.prefix()).filter(|_| known)?.parse().ok()?;
        changed(&line, |message| message["id"] = own)
    }

    fn prefix(&self) -> String {
        format!("{OWN}-{}:", self.generation)
    }

    /// Records a request whose effect the next daemon must have too.
    fn track_settings(&mut self, method: &str, line: &[u8]) {
        let about = |message: &Value| format!("resource {}", message["params"]["uri"]);
        match method {
            "logging/setLevel" => {
                if let Ok(message) = serde_json::from_slice(line) {
                    self.settings.insert("level".to_owned(), message);
                }
            }
            "resources/subscribe" => {
                if let Ok(message) = serde_json::from_slice(line) {
                    self.settings.insert(about(&message), message);
                }
            }
            "resources/unsubscribe" => {
                if let Ok(message) = serde_json::from_slice::<Value>(line) {
                    self.settings.remove(&about(&message));
                }
            }
            _ => {}
        }
    }

    pub(super) fn take_from_daemon(&mut self, line: &[u8]) -> RelayedMessage {
        let Some(head) = head(line) else { return RelayedMessage::Unchanged };
        match (&head.id, head.method.as_deref()) {
            (Some(Value::String(id)), None) if id.starts_with(&format!("{OWN}-own-")) => RelayedMessage::Consumed,
            // The next daemon gets the request, and asks its person again.
            (Some(id), None) if self.waiting.contains_key(&id.to_string()) && is_not_run(line) => {
                RelayedMessage::Consumed
            }
            (id, None) => {
                self.answered(id.as_ref());
                RelayedMessage::Unchanged
            }
            (Some(id), Some(_)) => {
                if self.generation == 0 {
                    self.daemon_requests.insert(id.to_string());
                    return RelayedMessage::Unchanged;
                }
                let known: Value = format!("{}{id}", self.prefix()).into();
                self.daemon_requests.insert(known.to_string());
                changed(line, |message| message["id"] = known)
                    .map_or(RelayedMessage::Unchanged, RelayedMessage::Changed)
            }
            (None, Some("notifications/cancelled")) if self.generation > 0 => {
                let prefix = self.prefix();
                let named = changed(line, |message| {
                    let id = &mut message["params"]["requestId"];
                    *id = format!("{prefix}{id}").into();
                });
                named.map_or(RelayedMessage::Unchanged, RelayedMessage::Changed)
            }
            // toold's own, for clients of its own protocol: the daemon does not know of MCP before the first message.
            (None, Some(CLOSING)) => RelayedMessage::Consumed,
            (None, Some(_)) => RelayedMessage::Unchanged,
        }
    }

    fn answered(&mut self, id: Option<&Value>) {
        if let Some(id) = id {
            self.waiting.remove(&id.to_string());
        }
    }

    /// Switches to the daemon that took over. Returns the messages that open the conversation there, and for the client the
    /// cancellations of requests from the daemon before.
    pub(super) fn hand_over(&mut self) -> (Vec<Vec<u8>>, Vec<Vec<u8>>) {
        let cancelled = std::mem::take(&mut self.daemon_requests).into_iter().filter_map(|id| {
            let id: Value = serde_json::from_str(&id).ok()?;
            let params = json!({"requestId": id, "reason": "the daemon was replaced by another one"});
            Some(line_of(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})))
        });
        let cancelled = cancelled.collect();
        self.generation += 1;
        let mut opening = Vec::new();
        let first_waits = self.first.as_ref().is_some_and(|first| self.waiting.contains_key(&first["id"].to_string()));
        // A first message without an answer is sent with the other waiting requests.
        if !first_waits {
            let requests = self.first.iter().chain(self.settings.values());
            for (n, request) in requests.enumerate() {
                let mut request = request.clone();
                if request.get("id").is_some() {
                    request["id"] = format!("{OWN}-own-{}-{n}", self.generation).into();
                }
                opening.push(line_of(&request));
                if n == 0 {
                    opening.extend(self.initialized.clone());
                }
            }
        }
        let mut waiting: Vec<&UnansweredRequest> = self.waiting.values().collect();
        waiting.sort_by_key(|request| request.order);
        opening.extend(waiting.into_iter().map(|request| request.line.clone()));
        (opening, cancelled)
    }

    /// Notifications for the client that everything which it has listed may have changed, if it is one that takes them.
    pub(super) fn list_changes(&self) -> Vec<Vec<u8>> {
        let is_initialized = self.initialized.is_some();
        let kinds = ["tools", "prompts", "resources"].iter().filter(|_| is_initialized);
        kinds
            .map(|kind| line_of(&json!({"jsonrpc": "2.0", "method": format!("notifications/{kind}/list_changed")})))
            .collect()
    }

    /// The daemon ended without a word, so it may have read the waiting requests. Returns errors for those that were sent
    /// twice, and the JSON of the ids of calls that it may have carried out.
    pub(super) fn lose(&mut self) -> (Vec<Vec<u8>>, Vec<String>) {
        let twice = self.fail(ENDED, |_, request| request.was_lost);
        for request in self.waiting.values_mut() {
            request.was_lost = true;
        }
        let calls = self.waiting.iter().filter(|(_, request)| request.is_call).map(|(id, _)| id.clone()).collect();
        (twice, calls)
    }

    /// Errors for calls that a daemon which ended may have carried out, by the JSON of their ids.
    pub(super) fn fail_lost(&mut self, ids: &[String]) -> Vec<Vec<u8>> {
        self.fail(ENDED, |id, request| request.was_lost && ids.iter().any(|lost| lost == id))
    }

    /// Errors for all waiting requests, none of which was carried out.
    pub(super) fn refuse_waiting(&mut self, why: &str) -> Vec<Vec<u8>> {
        self.fail(why, |_, _| true)
    }

    fn fail(&mut self, message: &str, fails: impl Fn(&str, &UnansweredRequest) -> bool) -> Vec<Vec<u8>> {
        let failed = self.waiting.extract_if(.., |id, request| fails(id, request));
        let answer = |(id, _): (String, UnansweredRequest)| {
            let id: Value = serde_json::from_str(&id).unwrap_or_default();
            line_of(&json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32603, "message": message}}))
        };
        failed.map(answer).collect()
    }
}

/// Whether a daemon that ends answers that a call was not run, because the person who was asked had not answered.
fn is_not_run(line: &[u8]) -> bool {
    // Few answers have the word in them, and are read once more.
    let has_word = std::str::from_utf8(line).is_ok_and(|line| line.contains(NOT_RUN));
    let message = || serde_json::from_slice::<Value>(line).ok();
    has_word && message().is_some_and(|message| message["result"]["_meta"]["toold/metadata"][NOT_RUN] == true)
}

/// The head of a message. Serde would read a list as the members of a `MessageHead` in their order.
fn head(line: &[u8]) -> Option<MessageHead> {
    if !line.starts_with(b"{") {
        return None;
    }
    let members: Members<'_> = serde_json::from_slice(line).ok()?;
    let member = |name: &str| members.get(name).and_then(|raw| serde_json::from_str(raw.get()).ok());
    let method = member("method").and_then(|method: Value| method.as_str().map(str::to_owned));
    Some(MessageHead { id: member("id").filter(|id| !id.is_null()), method })
}

/// The message of a line after a change.
fn changed(line: &[u8], change: impl FnOnce(&mut Value)) -> Option<Vec<u8>> {
    let mut message: Value = serde_json::from_slice(line).ok()?;
    change(&mut message);
    Some(line_of(&message))
}

fn line_of(message: &Value) -> Vec<u8> {
    let mut line = message.to_string().into_bytes();
    line.push(b'\n');
    line
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

    /// A client that is initialized, and whose requests are all answered.
    fn ready() -> Conversation {
        let mut state = Conversation::default();
        state.begin(&line(json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {}})));
        assert_eq!(state.take_from_daemon(&line(json!({"id": 0, "result": {}}))), RelayedMessage::Unchanged);
        state.take_from_client(line(json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))).unwrap();
        state
    }

    #[test]
    fn a_call_that_waited_for_a_person_goes_over_to_the_next_daemon() {
        let mut state = ready();
        state.take_from_client(line(json!({"id": 1, "method": "tools/call"}))).unwrap();
        let meta =
            |not_run| json!({"id": 1, "result": {"isError": true, "_meta": {"toold/metadata": {"not_run": not_run}}}});
        assert_eq!(state.take_from_daemon(&line(meta(true))), RelayedMessage::Consumed);
        assert_eq!(texts(&state.hand_over().0)[2]["id"], 1);
        assert_eq!(state.take_from_daemon(&line(meta(false))), RelayedMessage::Unchanged);
        assert!(!state.has_waiting());
    }

    #[test]
    fn the_next_daemon_gets_the_opening_and_unread_requests() {
        let mut state = ready();
        state.take_from_client(line(json!({"id": 1, "method": "tools/list"}))).unwrap();
        state.take_from_client(line(json!({"id": "a", "method": "tools/call"}))).unwrap();
        state.take_from_client(line(json!({"id": 3, "method": "tools/call"}))).unwrap();
        state.take_from_client(line(json!({"method": "notifications/cancelled", "params": {"requestId": 3}}))).unwrap();
        state.take_from_daemon(&line(json!({"id": 1, "result": {}})));
        let (opening, cancelled) = state.hand_over();
        let opening = texts(&opening);
        assert!(cancelled.is_empty());
        assert_eq!(opening.len(), 3, "{opening:?}");
        assert_eq!((&opening[0]["method"], &opening[0]["id"]), (&json!("initialize"), &json!("toolctl-own-1-0")));
        assert_eq!(opening[1]["method"], "notifications/initialized");
        assert_eq!(opening[2]["id"], "a");
        assert_eq!(
            state.take_from_daemon(&line(json!({"id": "toolctl-own-1-0", "result": {}}))),
            RelayedMessage::Consumed
        );
    }

    #[test]
    fn a_request_with_the_id_of_one_that_waits_is_refused() {
        let mut state = ready();
        let request = line(json!({"id": 1, "method": "tools/call"}));
        state.take_from_client(request.clone()).unwrap();
        assert!(state.take_from_client(request.clone()).unwrap_err().reason.contains("id 1 waits"));
        assert_eq!(texts(&state.hand_over().0)[2]["id"], 1, "the first one waits still");
        state.take_from_daemon(&line(json!({"id": 1, "result": {}})));
        assert!(state.take_from_client(request).unwrap().is_some());
    }

    #[test]
    fn an_unanswered_first_message_is_sent_once() {
        let mut state = Conversation::default();
        state.begin(&line(json!({"id": 0, "method": "initialize"})));
        assert_eq!(texts(&state.hand_over().0), [json!({"id": 0, "method": "initialize"})]);
    }

    #[test]
    fn subscriptions_are_made_again() {
        let mut state = ready();
        for (id, method, uri) in [(1, "subscribe", "a"), (2, "subscribe", "b"), (3, "unsubscribe", "a")] {
            state
                .take_from_client(line(
                    json!({"id": id, "method": format!("resources/{method}"), "params": {"uri": uri}}),
                ))
                .unwrap();
            state.take_from_daemon(&line(json!({"id": id, "result": {}})));
        }
        let opening = texts(&state.hand_over().0);
        assert_eq!(opening.len(), 3, "{opening:?}");
        assert_eq!(opening[2]["params"]["uri"], "b");
    }

    #[test]
    fn answers_go_to_the_daemon_that_asked() {
        let mut state = ready();
        state.take_from_daemon(&line(json!({"id": 0, "method": "roots/list"})));
        let (_, cancelled) = state.hand_over();
        assert_eq!(texts(&cancelled)[0]["params"]["requestId"], 0);
        let RelayedMessage::Changed(asked) = state.take_from_daemon(&line(json!({"id": 0, "method": "roots/list"})))
        else {
            panic!()
        };
        let id = texts(&[asked])[0]["id"].clone();
        assert_eq!(state.take_from_client(line(json!({"id": 0, "result": "late"}))), Ok(None));
        let answer = state.take_from_client(line(json!({"id": id, "result": {}}))).unwrap().unwrap();
        assert_eq!(texts(&[answer]), [json!({"id": 0, "result": {}})]);
    }

    #[test]
    fn what_the_daemon_tells_clients_of_its_own_protocol_is_not_passed_on() {
        let closing = json!({"jsonrpc": "2.0", "method": "daemon.closing", "params": {"reason": "signal"}});
        assert_eq!(Conversation::default().take_from_daemon(&line(closing)), RelayedMessage::Consumed);
    }

    #[test]
    fn a_request_is_sent_again_once() {
        let mut state = ready();
        state.take_from_client(line(json!({"id": 1, "method": "tools/list"}))).unwrap();
        assert_eq!(state.lose(), (vec![], vec![]));
        assert_eq!(texts(&state.hand_over().0)[2]["id"], 1);
        let (twice, _) = state.lose();
        assert_eq!(texts(&twice)[0]["id"], 1);
        assert!(!state.has_waiting());
    }

    #[test]
    fn requests_that_a_killed_daemon_may_have_read_get_an_error() {
        let mut state = ready();
        state.take_from_client(line(json!({"id": 1, "method": "tools/call"}))).unwrap();
        state.take_from_client(line(json!({"id": 2, "method": "tools/call"}))).unwrap();
        state.take_from_daemon(&line(json!({"id": 2, "result": {}})));
        let (twice, calls) = state.lose();
        assert_eq!((twice.len(), &calls), (0, &vec!["1".to_owned()]));
        let answers = texts(&state.fail_lost(&calls));
        assert_eq!((answers.len(), &answers[0]["id"]), (1, &json!(1)));
        assert!(answers[0]["error"]["message"].as_str().unwrap().contains("may have been executed"));
    }
}
