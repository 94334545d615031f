//! Signed messages.
//!
//! A message is a JSON object whose last member is `signature`: the Ed25519 signature, in hexadecimal digits, of the
//! bytes of the message without that member, after a fixed prefix. Whoever verifies it never writes the JSON again, so
//! no canonical form is needed. `kind` and `to` are signed too: a message counts for one purpose at one receiver.

use std::collections::{HashMap, HashSet, VecDeque};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::counts::FleetCounts;
use crate::keys::{KeyOwner, PublicKey, SigningKey};
use crate::names::FleetName;
pub use crate::refusal::MessageRefusal;
use crate::settings::Roster;

/// Signed before the text, so that no signature for another purpose fits.
const PREFIX: &[u8] = b"toold fleet message 1\n";
const SIGNATURE: &str = ",\"signature\":\"";
const SIGNATURE_DIGITS: usize = 128;
/// How far clocks may differ.
pub const CLOCK_TOLERANCE: Duration = Duration::from_secs(60);
/// How far the clock of the sender of a state may be ahead: one from a later time would outlast all that come after it.
const MAX_AHEAD: Duration = Duration::from_secs(10 * 60);
/// How long a command may be under way.
pub const LIFETIME: Duration = Duration::from_secs(60);
/// Commands of one sender that are remembered, so that none is obeyed twice.
const MAX_REMEMBERED: usize = 20_000;
/// As [`random_id`] makes them.
const NONCE_DIGITS: usize = 32;

/// The purpose of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SignedKind {
    Call,
    Reply,
    Alive,
    Cancel,
    Cancelled,
    Daemon,
    Tool,
    Ask,
    Answer,
    Answered,
    Grant,
    Audit,
}

impl SignedKind {
    /// The kind of owner whose key signs it.
    pub fn signer(self) -> KeyOwner {
        match self {
            Self::Answer | Self::Grant => KeyOwner::Person,
            Self::Call
            | Self::Reply
            | Self::Alive
            | Self::Cancel
            | Self::Cancelled
            | Self::Daemon
            | Self::Tool
            | Self::Ask
            | Self::Answered
            | Self::Audit => KeyOwner::Daemon,
        }
    }

    /// Whether it is obeyed once, and only while it is fresh. Others describe a state, or are numbered.
    fn is_command(self) -> bool {
        matches!(self, Self::Call | Self::Cancel | Self::Answer)
    }
}

/// A message without its signature.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Message<B> {
    pub kind: SignedKind,
    /// The daemon or the person that signs, by [`SignedKind::signer`].
    pub from: FleetName,
    /// The receiver: a daemon, `any.LABEL`, a key of a bucket, or a subject.
    pub to: String,
    /// Milliseconds since 1970, by the sender's clock.
    pub at: u64,
    /// The end of its validity; absent for a state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<u64>,
    /// Random: no two messages are the same.
    pub nonce: String,
    #[serde(flatten)]
    pub body: B,
}

/// The time in milliseconds since 1970.
pub fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// 128 random bits as hexadecimal digits.
pub fn random_id() -> String {
    let mut bytes = [0; 16];
    let mut filled = 0;
    while filled < bytes.len() {
        // Fails only when a signal interrupts it.
        filled += rustix::rand::getrandom(&mut bytes[filled..], rustix::rand::GetRandomFlags::empty()).unwrap_or(0);
    }
    hex(&bytes)
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    if !rest.is_empty() {
        return None;
    }
    pairs.iter().map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?)).collect()
}

/// Writes and signs a message.
pub fn sign<B: Serialize>(key: &SigningKey, kind: SignedKind, from: &FleetName, to: &str, body: B) -> Vec<u8> {
    let at = now_ms();
    let until = kind.is_command().then(|| at + millis(LIFETIME));
    let message = Message { kind, from: from.clone(), to: to.to_owned(), at, until, nonce: random_id(), body };
    seal(key, &message)
}

/// Signs a message as it is.
pub fn seal<B: Serialize>(key: &SigningKey, message: &Message<B>) -> Vec<u8> {
    let mut text = serde_json::to_vec(message).expect("messages have a form in JSON");
    let signature = key.sign(&[PREFIX, &text].concat());
    text.pop();
    text.extend_from_slice(SIGNATURE.as_bytes());
    text.extend_from_slice(hex(&signature).as_bytes());
    text.extend_from_slice(b"\"}");
    text
}

/// The signed text and the signature of a message.
fn open(bytes: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
    let end = bytes.strip_suffix(b"\"}")?;
    let (text, digits) = end.split_at_checked(end.len().checked_sub(SIGNATURE_DIGITS)?)?;
    let signature = unhex(std::str::from_utf8(digits).ok()?)?;
    let mut text = text.strip_suffix(SIGNATURE.as_bytes())?.to_vec();
    text.push(b'}');
    Some((text, signature))
}

/// A message that a daemon finds on the broker and signed itself; `None` for any other.
pub fn read_own<B: DeserializeOwned>(key: &PublicKey, bytes: &[u8], kind: SignedKind, to: &str) -> Option<Message<B>> {
    let (text, signature) = open(bytes)?;
    if !key.verifies(&[PREFIX, &text].concat(), &signature) {
        return None;
    }
    serde_json::from_slice(&text).ok().filter(|message: &Message<B>| message.kind == kind && message.to == to)
}

/// Decides which messages count here.
pub struct Verifier {
    roster: ArcSwap<Roster>,
    /// By sender: one that sends too many keeps nobody else from being heard.
    seen: Mutex<HashMap<(KeyOwner, FleetName), SeenCommands>>,
}

/// Nonces of commands that have been obeyed, the oldest first.
#[derive(Default)]
struct SeenCommands {
    nonces: HashSet<String>,
    order: VecDeque<(u64, String)>,
}

impl SeenCommands {
    /// False when it was seen before, or when there is no room to remember it.
    fn remember(&mut self, nonce: &str, until: u64, now: u64) -> bool {
        while self.order.front().is_some_and(|(until, _)| until.saturating_add(millis(CLOCK_TOLERANCE)) < now) {
            if let Some((_, old)) = self.order.pop_front() {
                self.nonces.remove(&old);
            }
        }
        if self.order.len() >= MAX_REMEMBERED || !self.nonces.insert(nonce.to_owned()) {
            return false;
        }
        self.order.push_back((until, nonce.to_owned()));
        true
    }
}

impl Verifier {
    pub fn new(roster: Roster) -> Self {
        Self { roster: ArcSwap::from_pointee(roster), seen: Mutex::default() }
    }

    pub fn replace_roster(&self, roster: Roster) {
        self.roster.store(roster.into());
    }

    pub fn roster(&self) -> arc_swap::Guard<std::sync::Arc<Roster>> {
        self.roster.load()
    }

    fn key_of(&self, owner: KeyOwner, name: &FleetName) -> Option<PublicKey> {
        let roster = self.roster.load();
        match owner {
            KeyOwner::Daemon => roster.daemons.get(name).map(|member| member.key.clone()),
            KeyOwner::Person => roster.people.get(name).map(|member| member.key.clone()),
        }
    }

    /// The message, if it is of this kind, for this receiver, and signed by somebody in `[fleet]`. A command is accepted
    /// once, while it is fresh. Refused messages are counted.
    ///
    /// # Errors
    /// Why it is refused.
    pub fn verify<B: DeserializeOwned>(
        &self,
        bytes: &[u8],
        kind: SignedKind,
        to: &str,
        counts: &FleetCounts,
    ) -> Result<Message<B>, MessageRefusal> {
        self.check(bytes, kind, to).map_err(|(refusal, sentence)| {
            counts.refuse(refusal, sentence);
            refusal
        })
    }

    fn check<B: DeserializeOwned>(
        &self,
        bytes: &[u8],
        kind: SignedKind,
        to: &str,
    ) -> Result<Message<B>, (MessageRefusal, String)> {
        let malformed = |why: &str| (MessageRefusal::Malformed, format!("a message for {to} is malformed: {why}"));
        let (text, signature) = open(bytes).ok_or_else(|| malformed("it does not end with a signature"))?;
        // The sender first: nothing else of an unsigned text is of interest.
        let header: Message<serde::de::IgnoredAny> =
            serde_json::from_slice(&text).map_err(|error| malformed(&error.to_string()))?;
        let owner = header.kind.signer();
        let (from, signer) = (&header.from, owner.as_str());
        let Some(key) = self.key_of(owner, from) else {
            return Err((
                MessageRefusal::UnknownSender,
                format!("a message for {to} is from the {signer} {from}, whose key is not in [fleet]"),
            ));
        };
        if !key.verifies(&[PREFIX, &text].concat(), &signature) {
            return Err((
                MessageRefusal::BadSignature,
                format!("a message for {to} in the name of the {signer} {from} has a wrong signature"),
            ));
        }
        if header.kind != kind || header.to != to {
            let (is, of) = (header.kind, &header.to);
            return Err((
                MessageRefusal::Misdirected,
                format!("a message of {from} for {of} ({is:?}) arrived as one for {to} ({kind:?})"),
            ));
        }
        let message: Message<B> = serde_json::from_slice(&text).map_err(|error| malformed(&error.to_string()))?;
        let now = now_ms();
        if message.at > now.saturating_add(millis(MAX_AHEAD)) {
            let ahead = (message.at - now) / 1000;
            return Err((
                MessageRefusal::Expired,
                format!("a message of {from} for {to} is {ahead} s from the future: the clocks differ"),
            ));
        }
        if kind.is_command() {
            let tolerance = millis(CLOCK_TOLERANCE);
            let Some(until) = message.until else { return Err(malformed("a command needs `until`")) };
            if until.saturating_sub(message.at) > millis(LIFETIME) {
                return Err(malformed("a command may not be valid for so long"));
            }
            if message.nonce.len() != NONCE_DIGITS {
                return Err(malformed("its nonce has another length"));
            }
            if until.saturating_add(tolerance) < now || message.at > now.saturating_add(tolerance) {
                let difference = now.abs_diff(message.at) / 1000;
                return Err((
                    MessageRefusal::Expired,
                    format!(
                        "a message of {from} for {to} has expired: it was signed {difference} s away from the time here, \
                         so it was delayed, or the clocks differ"
                    ),
                ));
            }
            let sender = (owner, from.clone());
            if !self.seen.lock().entry(sender).or_default().remember(&message.nonce, until, now) {
                return Err((MessageRefusal::Replayed, format!("a message of {from} for {to} was received before")));
            }
        }
        Ok(message)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;
    use crate::settings::DaemonMember;

    fn name(text: &str) -> FleetName {
        FleetName::parse(text).unwrap()
    }

    fn known(key: &SigningKey) -> Verifier {
        let member = DaemonMember { key: key.public().clone(), may_call: true, shows_asks: true };
        Verifier::new(Roster { daemons: BTreeMap::from([(name("laptop"), member)]), people: BTreeMap::new() })
    }

    fn check(verifier: &Verifier, bytes: &[u8], kind: SignedKind, to: &str) -> Result<Value, MessageRefusal> {
        verifier.verify::<Value>(bytes, kind, to, &FleetCounts::default()).map(|message| message.body)
    }

    #[test]
    fn a_message_counts_once_for_its_purpose_at_its_receiver() {
        let key = SigningKey::generate(KeyOwner::Daemon);
        let verifier = known(&key);
        let body = json!({"tool": "bash", "arguments": {"command": "ls \"é\"", "n": 1.0e-7}});
        let bytes = sign(&key, SignedKind::Call, &name("laptop"), "build", &body);
        assert_eq!(check(&verifier, &bytes, SignedKind::Call, "other"), Err(MessageRefusal::Misdirected));
        assert_eq!(check(&verifier, &bytes, SignedKind::Cancel, "build"), Err(MessageRefusal::Misdirected));
        assert_eq!(check(&verifier, &bytes, SignedKind::Call, "build"), Ok(body));
        assert_eq!(check(&verifier, &bytes, SignedKind::Call, "build"), Err(MessageRefusal::Replayed));
    }

    #[test]
    fn strangers_and_those_who_use_their_names_are_refused() {
        let key = SigningKey::generate(KeyOwner::Daemon);
        let stranger = SigningKey::generate(KeyOwner::Daemon);
        let verifier = known(&key);
        let foreign = sign(&stranger, SignedKind::Call, &name("mallory"), "build", json!({}));
        assert_eq!(check(&verifier, &foreign, SignedKind::Call, "build"), Err(MessageRefusal::UnknownSender));
        let forged = sign(&stranger, SignedKind::Call, &name("laptop"), "build", json!({}));
        assert_eq!(check(&verifier, &forged, SignedKind::Call, "build"), Err(MessageRefusal::BadSignature));
        // A daemon is no person.
        let granted = sign(&key, SignedKind::Grant, &name("laptop"), "build", json!({}));
        assert_eq!(check(&verifier, &granted, SignedKind::Grant, "build"), Err(MessageRefusal::UnknownSender));
    }

    #[test]
    fn a_command_expires() {
        let key = SigningKey::generate(KeyOwner::Daemon);
        let verifier = known(&key);
        let message = |at: u64, until: Option<u64>| {
            let (kind, from) = (SignedKind::Call, name("laptop"));
            seal(&key, &Message { kind, from, to: "build".into(), at, until, nonce: random_id(), body: json!({}) })
        };
        let now = now_ms();
        let old = message(now - 300_000, Some(now - 240_000));
        assert_eq!(check(&verifier, &old, SignedKind::Call, "build"), Err(MessageRefusal::Expired));
        let early = message(now + 300_000, Some(now + 360_000));
        assert_eq!(check(&verifier, &early, SignedKind::Call, "build"), Err(MessageRefusal::Expired));
        assert_eq!(check(&verifier, &message(now, None), SignedKind::Call, "build"), Err(MessageRefusal::Malformed));
        let lasting = message(now, Some(now + 3_600_000));
        assert_eq!(check(&verifier, &lasting, SignedKind::Call, "build"), Err(MessageRefusal::Malformed));
        let state = |at: u64| {
            let (kind, from) = (SignedKind::Daemon, name("laptop"));
            seal(
                &key,
                &Message { kind, from, to: "build".into(), at, until: None, nonce: random_id(), body: json!({}) },
            )
        };
        assert_eq!(
            check(&verifier, &state(now + 3_600_000), SignedKind::Daemon, "build"),
            Err(MessageRefusal::Expired)
        );
        assert_eq!(check(&verifier, &state(now - 3_600_000), SignedKind::Daemon, "build"), Ok(json!({})));
        let skewed = message(now + 30_000, Some(now + 90_000));
        assert_eq!(check(&verifier, &skewed, SignedKind::Call, "build"), Ok(json!({})));
    }

    #[test]
    fn a_sender_of_too_many_commands_keeps_nobody_else_from_being_heard() {
        let keys = ["laptop", "other"].map(|of| (name(of), SigningKey::generate(KeyOwner::Daemon)));
        let member = |key: &SigningKey| DaemonMember { key: key.public().clone(), may_call: true, shows_asks: true };
        let daemons = keys.iter().map(|(of, key)| (of.clone(), member(key))).collect();
        let verifier = Verifier::new(Roster { daemons, people: BTreeMap::new() });
        let send = |(of, key): &(FleetName, SigningKey)| {
            check(&verifier, &sign(key, SignedKind::Cancel, of, "build", json!({})), SignedKind::Cancel, "build")
        };
        for _ in 0..MAX_REMEMBERED {
            let mut seen = verifier.seen.lock();
            let of_first = seen.entry((KeyOwner::Daemon, keys[0].0.clone())).or_default();
            assert!(of_first.remember(&random_id(), u64::MAX, now_ms()));
        }
        assert_eq!(send(&keys[0]), Err(MessageRefusal::Replayed));
        assert_eq!(send(&keys[1]), Ok(json!({})));
    }

    #[test]
    fn the_sentence_about_a_message_is_short_and_shows_no_control_characters() {
        let counts = FleetCounts::default();
        let kind = "\\u001b".repeat(100_000);
        let bytes = format!("{{\"kind\":\"{kind}\",\"signature\":\"{}\"}}", "0".repeat(SIGNATURE_DIGITS));
        let verifier = known(&SigningKey::generate(KeyOwner::Daemon));
        let refused = verifier.verify::<Value>(bytes.as_bytes(), SignedKind::Call, "build", &counts);
        assert_eq!(refused, Err(MessageRefusal::Malformed));
        let sentence = counts.last_refused().unwrap();
        assert!(sentence.len() < 1_000 && !sentence.contains(char::is_control), "{sentence}");
    }

    proptest! {
        /// Any change of any byte is refused.
        #[test]
        fn altered_messages_are_refused(at in any::<prop::sample::Index>(), by in 1u8..) {
            let key = SigningKey::generate(KeyOwner::Daemon);
            let mut bytes = sign(&key, SignedKind::Tool, &name("laptop"), "laptop.bash", json!({"label": "Shell"}));
            let at = at.index(bytes.len());
            bytes[at] ^= by;
            prop_assert!(check(&known(&key), &bytes, SignedKind::Tool, "laptop.bash").is_err());
        }

        /// No bytes make it panic.
        #[test]
        fn any_bytes_are_answered(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let key = SigningKey::generate(KeyOwner::Daemon);
            prop_assert!(check(&known(&key), &bytes, SignedKind::Call, "build").is_err());
        }
    }
}
