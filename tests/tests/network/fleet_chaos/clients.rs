//! Clients that call tools of other daemons and of a label, and note how each call ends.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toold_tests::{Dice, PATIENCE};

use crate::fleet_chaos::Ending;
use crate::fleet_chaos::machines::{LABEL, Machines};

/// The calls that a person is asked about.
pub(crate) const ASKED: &str = "asked";
/// How long a client waits after a call that did not run.
const WAITS: Duration = Duration::from_millis(300);
/// A call that takes longer is cancelled by its client.
const GIVES_UP: Duration = Duration::from_secs(30);

/// How a call ended for its client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ChaosCallEnd {
    Ok,
    /// It did not run: nobody is there, all are busy, or it is not permitted.
    DidNotRun,
    /// Whether it ran is unknown.
    Unknown,
    Cancelled,
    /// It ran, and its tool failed.
    Failed,
    /// A daemon was stopped while it ran, or its result was lost.
    Interrupted,
    /// The client's own daemon was killed meanwhile.
    CallerDied,
}

impl ChaosCallEnd {
    fn of(answer: &Value) -> Self {
        let result = &answer["result"];
        if answer["error"]["code"] == -32800 {
            return Self::Cancelled;
        }
        let text = result["content"][0]["text"].as_str().or(answer["error"]["message"].as_str()).unwrap_or_default();
        if result["is_error"] == false {
            Self::Ok
        } else if text.contains("unknown whether") {
            Self::Unknown
        } else if [
            "did not run",
            "not run: the daemon was",
            "busy",
            "no longer has a tool",
            "there is no tool",
            "is not available",
        ]
        .iter()
        .any(|words| text.contains(words))
            || !result["metadata"]["permission"].is_null()
        {
            Self::DidNotRun
        } else if ["cancelled on", "has run on", "while the call ran"].iter().any(|words| text.contains(words))
            || !answer["error"].is_null()
        {
            Self::Interrupted
        } else {
            Self::Failed
        }
    }
}

pub(crate) struct ChaosCallRecord {
    /// What it appends to the ledger.
    pub(crate) id: String,
    pub(crate) tool: &'static str,
    pub(crate) end: ChaosCallEnd,
    pub(crate) text: String,
    /// The grant that it needs had been revoked, and the daemon knew.
    pub(crate) after_revocation: bool,
}

impl ChaosCallRecord {
    /// Whether it leaves a line in a ledger if it runs.
    pub(crate) fn has_effect(&self) -> bool {
        !matches!(self.tool, "look" | "large")
    }
}

/// A client's connection, which may end at any time.
pub(crate) struct Connection {
    reader: BufReader<UnixStream>,
    partial: Vec<u8>,
    sent: u64,
    answered: BTreeSet<u64>,
}

impl Connection {
    pub(crate) fn open(socket: &Path) -> Option<Self> {
        let stream = UnixStream::connect(socket).ok()?;
        stream.set_write_timeout(Some(PATIENCE)).ok()?;
        let mut link = Self { reader: BufReader::new(stream), partial: Vec::new(), sent: 0, answered: BTreeSet::new() };
        let work = socket.parent()?.with_file_name("work");
        link.request("session.open", json!({"cwd": work, "client": {"name": "chaos"}}), None)?;
        Some(link)
    }

    fn send(&mut self, message: &Value) -> Option<()> {
        self.reader.get_mut().write_all(format!("{message}\n").as_bytes()).ok()
    }

    /// The answer; `None` when the connection ends first. The request is cancelled after a time.
    pub(crate) fn request(&mut self, method: &str, params: Value, cancel_after: Option<Duration>) -> Option<Value> {
        self.sent += 1;
        let id = self.sent;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))?;
        let mut end = Instant::now() + cancel_after.unwrap_or(PATIENCE);
        let mut cancels = cancel_after.is_some();
        loop {
            let left = end.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
            self.reader.get_ref().set_read_timeout(Some(left)).ok()?;
            match self.reader.read_until(b'\n', &mut self.partial) {
                Ok(0) => return None,
                Ok(_) if !self.partial.ends_with(b"\n") => return None,
                Ok(_) => {
                    let message: Value = serde_json::from_slice(&self.partial).unwrap();
                    self.partial.clear();
                    let Some(answered) = message["id"].as_u64().filter(|_| message.get("method").is_none()) else {
                        continue;
                    };
                    assert!(self.answered.insert(answered), "a second answer to one request: {message}");
                    assert_eq!(answered, id, "{message}");
                    return Some(message);
                }
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                    assert!(cancels, "no answer to {method} {params} within {PATIENCE:?}");
                    cancels = false;
                    end = Instant::now() + PATIENCE;
                    self.send(&json!({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": id}}))?;
                }
                Err(_) => return None,
            }
        }
    }

    /// Calls a tool, and says how that ended.
    pub(crate) fn call(&mut self, name: &str, arguments: Value, cancel_after: Duration) -> (ChaosCallEnd, String) {
        let params = json!({"name": name, "arguments": arguments, "progress": true});
        match self.request("tools.execute", params, Some(cancel_after)) {
            None => (ChaosCallEnd::CallerDied, String::new()),
            Some(answer) => {
                let end = ChaosCallEnd::of(&answer);
                let text = answer.to_string().chars().take(600).collect();
                (end, text)
            }
        }
    }
}

/// Calls at one machine until it is over.
pub(crate) fn call_until(
    machines: &Machines,
    ending: &Ending,
    at: usize,
    client: u64,
    seed: u64,
) -> Vec<ChaosCallRecord> {
    let mut dice = Dice::new(seed);
    let (mut link, mut calls) = (None, Vec::new());
    let own = &machines.all[at];
    while ending.pause(Duration::from_millis(dice.roll(60))) {
        let Some(connected) = link.as_mut() else {
            link = Connection::open(&own.socket);
            continue;
        };
        let id = format!("{}-{client}-{}", own.name, calls.len());
        let others: Vec<&str> =
            machines.all.iter().map(|machine| machine.name).filter(|name| *name != own.name).chain([LABEL]).collect();
        let target = dice.pick(&others);
        let (tool, cancel_after) = match dice.roll(12) {
            0..=2 => ("look", GIVES_UP),
            3 => ("large", GIVES_UP),
            4..=8 => ("note", GIVES_UP),
            9 => (ASKED, GIVES_UP),
            _ => ("slow", Duration::from_millis(dice.roll(2_000))),
        };
        let (name, arguments) = match tool {
            ASKED => (format!("{target}_bash"), json!({"command": format!("echo {id} >> ledger")})),
            _ => (format!("{target}_{tool}"), json!({"id": id})),
        };
        let (end, text) = connected.call(&name, arguments, cancel_after);
        if end == ChaosCallEnd::CallerDied {
            link = None;
        }
        calls.push(ChaosCallRecord { id, tool, end, text, after_revocation: false });
        if end == ChaosCallEnd::DidNotRun && !ending.pause(WAITS) {
            break;
        }
    }
    calls
}
