//! Decides which grants of the bucket count here.

use std::time::{Duration, SystemTime};

use toold_engine::policy::pattern::Pattern;
use toold_proto::permission::Action;
use toold_proto::tool::ToolName;

use crate::counts::FleetCounts;
use crate::messages::FleetGrant;
use crate::names::FleetName;
use crate::settings::Roster;
use crate::signed::{Message, MessageRefusal, SignedKind, Verifier};
use crate::subjects::grant_key;

/// The longest time for which a grant may allow something.
pub(crate) const MAX_ALLOWED: Duration = Duration::from_secs(30 * 24 * 3600);
/// Bytes of a signed grant.
const MAX_TEXT: usize = 16 * 1024;

/// A grant or a revocation that counts here.
#[derive(Clone, Debug)]
pub(crate) struct CheckedGrant {
    pub(crate) person: FleetName,
    /// When it was signed, in milliseconds since 1970.
    pub(crate) at: u64,
    pub(crate) grant: FleetGrant,
    pub(crate) made_at: SystemTime,
    pub(crate) expires_at: Option<SystemTime>,
    /// `None` for a revocation, which counts whatever it revokes.
    pub(crate) pattern: Option<Pattern>,
}

/// Verifies the entry of a key. Refused ones are counted.
pub(crate) fn check(verifier: &Verifier, key: &str, text: &[u8], counts: &FleetCounts) -> Option<CheckedGrant> {
    if text.len() > MAX_TEXT {
        let sentence = format!("the grant {key} has {} bytes, more than the limit of {MAX_TEXT}", text.len());
        counts.refuse(MessageRefusal::Malformed, sentence);
        return None;
    }
    // It is counted there.
    let message = verifier.verify(text, SignedKind::Grant, key, counts).ok()?;
    read(message, key, &verifier.roster())
        .map_err(|(refusal, why)| counts.refuse(refusal, format!("the grant {key} does not count here: {why}")))
        .ok()
}

/// Without the signature, for texts that this daemon has verified before.
pub(crate) fn read_kept(text: &[u8]) -> Option<(String, CheckedGrant)> {
    let message: Message<FleetGrant> = serde_json::from_slice(text).ok()?;
    let key = message.to.clone();
    let checked = checked(message).ok()?;
    Some((key, checked))
}

fn read(message: Message<FleetGrant>, key: &str, roster: &Roster) -> Result<CheckedGrant, (MessageRefusal, String)> {
    let person = &message.from;
    if !roster.people.get(person).is_some_and(|member| member.decides) {
        return Err((MessageRefusal::NotPermitted, format!("{person} does not decide here")));
    }
    let id = &message.body.id;
    if !is_id(id) {
        return Err((MessageRefusal::Malformed, format!("{id:?} is not the id of a grant of a fleet")));
    }
    if key != grant_key(person, id) {
        return Err((MessageRefusal::Misdirected, format!("it is grant {id} of {person}")));
    }
    checked(message)
}

/// Ids of grants that are stored here begin with `grant_`: none of the fleet may look like one.
fn is_id(id: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'_' | b'-');
    (1..=64).contains(&id.len()) && id.bytes().all(is_letter) && !id.starts_with("grant_")
}

fn checked(message: Message<FleetGrant>) -> Result<CheckedGrant, (MessageRefusal, String)> {
    let malformed = |why: String| (MessageRefusal::Malformed, why);
    let time = |text: &str| {
        humantime::parse_rfc3339(text).map_err(|error| malformed(format!("{text:?} is not a time: {error}")))
    };
    let Message { from: person, at, body: grant, .. } = message;
    let made_at = time(&grant.origin.made_at)?;
    let expires_at = grant.expiry.as_deref().map(time).transpose()?;
    if grant.revoked {
        return Ok(CheckedGrant { person, at, grant, made_at, expires_at, pattern: None });
    }
    let rule = &grant.rule;
    let pattern = Pattern::parse(rule.category, &rule.pattern).map_err(|error| malformed(error.to_string()))?;
    for tool in rule.tools.iter().flatten() {
        ToolName::parse(tool).map_err(|error| malformed(error.to_string()))?;
    }
    if rule.action == Action::Allow {
        let Some(end) = expires_at else {
            return Err((MessageRefusal::NotPermitted, "it allows something and has no end".to_owned()));
        };
        if end.duration_since(made_at).is_ok_and(|length| length > MAX_ALLOWED) {
            return Err((MessageRefusal::NotPermitted, "it allows something for more than 30 days".to_owned()));
        }
    }
    Ok(CheckedGrant { person, at, grant, made_at, expires_at, pattern: Some(pattern) })
}
