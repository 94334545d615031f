//! Makes and revokes grants of the fleet, in the name of the person at this machine.

use std::time::{Duration, SystemTime};

use tokio::time::timeout;
use toold_engine::policy::pattern::Pattern;
use toold_engine::time::rfc3339;
use toold_proto::fleet::{FleetGrantInfo, MakeFleetGrant};
use toold_proto::permission::Action;
use toold_proto::tool::ToolName;

use crate::grant_book::check::MAX_ALLOWED;
use crate::grants::save;
use crate::member::Member;
use crate::messages::{FleetGrant, FleetRule, GrantOrigin};
use crate::names::FleetName;
use crate::signed::{SignedKind, random_id};
use crate::subjects::{GRANTS, grant_key};

/// How long a grant allows something if nothing else is said.
const DEFAULT_ALLOWED: Duration = Duration::from_secs(12 * 3600);
/// How long the broker may take to show this daemon what it has stored.
const TAKE_OVER: Duration = Duration::from_secs(10);

/// Why a grant was not made or revoked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FleetGrantError {
    /// The parameters, with what is wrong about them.
    #[error("{0}")]
    Invalid(String),
    #[error("there is no grant {0} in the fleet")]
    Unknown(String),
    /// Nobody here may do it, or the broker is away.
    #[error("{0}")]
    Refused(String),
}

/// Makes a grant. Returns when the broker has stored it and it has taken effect here.
///
/// # Errors
/// As a sentence for the person.
pub async fn make(member: &Member, wanted: &MakeFleetGrant) -> Result<FleetGrantInfo, FleetGrantError> {
    let person = person_here(member)?;
    let made_at = SystemTime::now();
    let grant = FleetGrant {
        id: format!("fleet_{}", &random_id()[..16]),
        rule: rule(wanted)?,
        origin: GrantOrigin { daemon: member.name.clone(), made_at: rfc3339(made_at) },
        expiry: lifetime(wanted)?.and_then(|length| made_at.checked_add(length)).map(rfc3339),
        revoked: false,
    };
    let key = grant_key(person, &grant.id);
    let signed = signed(member, &key, &grant)?;
    publish(member, &key, &grant.id, &signed).await?;
    match member.grants.find(person, &grant.id) {
        Some((_, info)) => Ok(info),
        None => {
            let why = member.counts.last_refused().unwrap_or_else(|| "it was replaced at once".to_owned());
            Err(FleetGrantError::Refused(format!(
                "the grant {} was stored, and this daemon refused it: {why}",
                grant.id
            )))
        }
    }
}

/// Revokes a grant of the person at this machine, for good. Returns when the broker has stored it and it has taken
/// effect here.
///
/// # Errors
/// As a sentence for the person; then the grant is revoked here, and may still be valid elsewhere.
pub async fn revoke(member: &Member, id: &str) -> Result<FleetGrantInfo, FleetGrantError> {
    let person = person_here(member)?;
    let Some((checked, _)) = member.grants.find(person, id) else {
        return Err(match member.grants.makers(id).first() {
            Some(maker) => FleetGrantError::Refused(format!(
                "{maker} made the grant {id}, and only {maker} can revoke it, with `toolctl fleet revoke {id}` at \
                 {maker}'s machine. To end what it allows now, deny it: `toolctl fleet grant --deny`"
            )),
            None => FleetGrantError::Unknown(id.to_owned()),
        });
    };
    let key = grant_key(person, id);
    let signed = signed(member, &key, &FleetGrant { revoked: true, ..checked.grant })?;
    // What the server does not take holds here all the same.
    member.grants.revoke_here(&key, &signed, &member.counts);
    save(member).await;
    publish(member, &key, id, &signed).await.map_err(|error| {
        FleetGrantError::Refused(format!(
            "{error}. {id} is revoked on this machine; the others may use it until the server takes the revocation, which \
             this daemon goes on sending"
        ))
    })?;
    member.grants.was_sent(&key);
    let (_, info) = member.grants.find(person, id).ok_or_else(|| FleetGrantError::Unknown(id.to_owned()))?;
    Ok(info)
}

/// The person in whose name this daemon signs grants.
fn person_here(member: &Member) -> Result<&FleetName, FleetGrantError> {
    let refused = |why: String| Err(FleetGrantError::Refused(why));
    let Some(person) = member.person() else {
        return refused(
            "grants of the fleet are signed by a person, and [fleet] names none for this machine: set `person`, and make \
             the key in `person_key_file`"
                .to_owned(),
        );
    };
    match member.verifier.roster().people.get(person) {
        None => refused(format!(
            "the key of {person} is not in [fleet.people.{person}] of this machine, so no grant of {person} counts here"
        )),
        Some(known) if !known.decides => {
            refused(format!("{person} does not decide here: fleet.people.{person}.decides is false"))
        }
        Some(_) => Ok(person),
    }
}

fn rule(wanted: &MakeFleetGrant) -> Result<FleetRule, FleetGrantError> {
    let invalid = |of: &str, error: &dyn std::fmt::Display| FleetGrantError::Invalid(format!("{of}: {error}"));
    let pattern =
        Pattern::parse_to_use(wanted.category, &wanted.pattern).map_err(|error| invalid("pattern", &error))?;
    for tool in wanted.tools.iter().flatten() {
        ToolName::parse(tool).map_err(|error| invalid("tools", &error))?;
    }
    let daemons = wanted.daemons.as_ref().map(|names| names.iter().map(|name| FleetName::parse(name)).collect());
    let daemons: Option<Vec<FleetName>> = daemons.transpose().map_err(|error| invalid("daemons", &error))?;
    for (of, is_empty) in [
        ("tools", wanted.tools.as_ref().is_some_and(Vec::is_empty)),
        ("daemons", daemons.as_ref().is_some_and(Vec::is_empty)),
    ] {
        if is_empty {
            return Err(FleetGrantError::Invalid(format!("{of}: an empty list matches nothing: leave it out for all")));
        }
    }
    Ok(FleetRule {
        action: wanted.action,
        category: wanted.category,
        pattern: pattern.as_str().to_owned(),
        tools: wanted.tools.clone(),
        daemons,
    })
}

/// For how long it is valid; `None` for no end.
fn lifetime(wanted: &MakeFleetGrant) -> Result<Option<Duration>, FleetGrantError> {
    let length = wanted.expires_in.map(Duration::from_secs);
    match (wanted.action, length) {
        (_, Some(Duration::ZERO)) => Err(FleetGrantError::Invalid("expires_in: 0 s is no time".to_owned())),
        (Action::Allow, None) => Ok(Some(DEFAULT_ALLOWED)),
        (Action::Allow, Some(length)) if length > MAX_ALLOWED => Err(FleetGrantError::Invalid(
            "expires_in: a grant of the fleet allows something for at most 30 days (2592000 s)".to_owned(),
        )),
        (_, length) => Ok(length),
    }
}

/// The grant as the person of this machine signs it.
fn signed(member: &Member, key: &str, grant: &FleetGrant) -> Result<Vec<u8>, FleetGrantError> {
    member.sign_for_person(SignedKind::Grant, key, grant).ok_or_else(|| away(member))
}

fn away(member: &Member) -> FleetGrantError {
    let why = member.broker.state.borrow().error.clone();
    let why =
        why.or_else(|| member.problems().into_iter().next()).unwrap_or_else(|| "it shows no grants yet".to_owned());
    FleetGrantError::Refused(format!("the server of the fleet is needed for this, and is away: {why}"))
}

/// Stores it, and waits until it has taken effect here.
async fn publish(member: &Member, key: &str, id: &str, signed: &[u8]) -> Result<(), FleetGrantError> {
    let refused = |why: String| FleetGrantError::Refused(why);
    if !member.broker.state.borrow().connected || timeout(TAKE_OVER, member.grants.synced()).await.is_err() {
        return Err(away(member));
    }
    let mut progress = member.grants.progress.subscribe();
    let stored = async {
        let bucket = member.broker.jetstream.get_key_value(GRANTS).await.map_err(|error| error.to_string())?;
        bucket.put(key, signed.to_vec().into()).await.map_err(|error| error.to_string())
    };
    let revision = stored.await.map_err(|error| {
        refused(format!("the server of the fleet did not confirm it, and may have stored it: {error}"))
    })?;
    let taken_over = progress.wait_for(|progress| progress.is_synced && progress.revision >= revision);
    match timeout(TAKE_OVER, taken_over).await {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(_)) | Err(_) => Err(refused(format!(
            "the server of the fleet has stored grant {id}, and has not shown it to this daemon yet"
        ))),
    }
}
