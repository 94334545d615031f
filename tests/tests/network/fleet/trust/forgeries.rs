//! Messages that somebody makes from a recorded one.

use serde_json::Value;
use toold_fleet::keys::{KeyOwner, SigningKey};
use toold_fleet::signed::{LIFETIME, Message, now_ms, random_id, seal};

/// A forged message, and the reason for which it must be refused.
pub(crate) struct Forgery {
    pub(crate) name: &'static str,
    pub(crate) bytes: Vec<u8>,
    pub(crate) reason: &'static str,
}

/// A recorded message with another content, signed by a key.
pub(crate) fn signed_again(recorded: &[u8], key: &SigningKey, change: impl FnOnce(&mut Value)) -> Vec<u8> {
    let mut value: Value = serde_json::from_slice(recorded).unwrap();
    value.as_object_mut().unwrap().remove("signature");
    change(&mut value);
    let message: Message<Value> = serde_json::from_value(value).unwrap();
    seal(key, &message)
}

/// The same as if it had just been sent for the first time.
pub(crate) fn fresh(recorded: &[u8], key: &SigningKey, change: impl FnOnce(&mut Value)) -> Vec<u8> {
    signed_again(recorded, key, |message| {
        message["nonce"] = random_id().into();
        let now = now_ms();
        message["at"] = now.into();
        if !message["until"].is_null() {
            message["until"] = (now + LIFETIME.as_millis() as u64).into();
        }
        change(message);
    })
}

/// What can be made of a recorded message. `sender` is the key of its true sender, which signs what is refused for another
/// reason than its signature.
pub(crate) fn forgeries(recorded: &[u8], sender: &SigningKey) -> Vec<Forgery> {
    let original: Value = serde_json::from_slice(recorded).unwrap();
    let is_command = !original["until"].is_null();
    let stranger = SigningKey::generate(KeyOwner::Daemon);
    let forgery = |name, reason, bytes| Forgery { name, bytes, reason };
    let mut forgeries = vec![
        forgery("a digit of the nonce is another", "bad_signature", altered(recorded)),
        forgery("it is signed by a stranger's key", "bad_signature", fresh(recorded, &stranger, |_| ())),
        forgery(
            "it is a stranger's",
            "unknown_sender",
            fresh(recorded, &stranger, |message| {
                message["from"] = "mallory".into();
            }),
        ),
        forgery(
            "it is for another receiver",
            "misdirected",
            fresh(recorded, sender, |message| {
                message["to"] = format!("{}x", message["to"].as_str().unwrap()).into();
            }),
        ),
        forgery(
            "it is of another kind",
            "misdirected",
            fresh(recorded, sender, |message| {
                // Signed by an owner of the same kind.
                let other = match message["kind"].as_str().unwrap() {
                    "answer" => "grant",
                    "grant" => "answer",
                    "audit" => "reply",
                    _ => "audit",
                };
                message["kind"] = other.into();
            }),
        ),
        forgery("its signature is cut off", "malformed", recorded[..recorded.len() - 10].to_vec()),
        forgery(
            "its body is another message's",
            "malformed",
            fresh(recorded, sender, |message| {
                let header = ["kind", "from", "to", "at", "until", "nonce"];
                message.as_object_mut().unwrap().retain(|member, _| header.contains(&member.as_str()));
            }),
        ),
    ];
    if is_command {
        let shifted = |by: i64| {
            fresh(recorded, sender, |message| {
                for member in ["at", "until"] {
                    message[member] = message[member].as_u64().unwrap().saturating_add_signed(by).into();
                }
            })
        };
        forgeries.extend([
            forgery("it is received twice", "replayed", recorded.to_vec()),
            forgery("it is old", "expired", shifted(-300_000)),
            forgery("it is from the future", "expired", shifted(300_000)),
            forgery(
                "it never expires",
                "malformed",
                fresh(recorded, sender, |message| {
                    message["until"] = (now_ms() + 24 * 3_600_000).into();
                }),
            ),
        ]);
    }
    forgeries
}

/// With another digit in its nonce.
pub(crate) fn altered(recorded: &[u8]) -> Vec<u8> {
    let mut bytes = recorded.to_vec();
    let marker = br#""nonce":""#;
    let at = bytes.windows(marker.len()).position(|part| part == marker).unwrap() + marker.len();
    bytes[at] = if bytes[at] == b'0' { b'1' } else { b'0' };
    bytes
}
