//! The persons who may answer an ask of this daemon.

use toold_proto::tool::SessionId;

use crate::caller_origin::origin_of;
use crate::member::Member;
use crate::names::FleetName;

/// The persons who are asked about calls of this session: the one at the machine that calls, otherwise the one at this
/// machine, otherwise all who decide here.
pub(super) fn of(member: &Member, session: &SessionId) -> Vec<FleetName> {
    let roster = member.verifier.roster();
    let decides = |person: &FleetName| roster.people.get(person).is_some_and(|person| person.decides);
    let caller = origin_of(&member.engine, session).and_then(|from| from.origin.person);
    match caller.into_iter().chain(member.person().cloned()).find(decides) {
        Some(person) => vec![person],
        None => roster.people.keys().filter(|person| decides(person)).cloned().collect(),
    }
}

/// Whether one of them can be asked on another machine now.
pub(super) fn can_be_asked(member: &Member, session: &SessionId) -> bool {
    if member.stop.is_cancelled() || !member.broker.state.borrow().connected {
        return false;
    }
    let people = of(member, session);
    let caller = origin_of(&member.engine, session).map(|from| from.origin);
    let at_caller =
        caller.is_some_and(|from| from.can_ask && from.person.is_some_and(|person| people.contains(&person)));
    at_caller
        || member.directory.read(|daemons| {
            let here = daemons.values().filter(|daemon| !daemon.is_away);
            here.filter_map(|daemon| daemon.record.as_ref())
                .flat_map(|record| &record.people)
                .any(|person| people.contains(person))
        })
}
