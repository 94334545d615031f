//! Where the calls of a session come from, for those that came through the fleet.

use parking_lot::Mutex;
use toold_engine::Engine;
use toold_engine::grant_commands::ServedOn;
use toold_engine::session::Session;
use toold_proto::tool::SessionId;

use crate::messages::CallOrigin;
use crate::names::FleetName;

/// Kept in the slot of a session that serves calls of the fleet.
#[derive(Default)]
struct FleetSession(Mutex<Option<CallerOrigin>>);

/// The origin of the last call of a session.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CallerOrigin {
    pub(crate) origin: CallOrigin,
    /// The session there.
    pub(crate) session: String,
}

/// Notes where a call comes from that runs in this session, on the daemon `here`.
pub(crate) fn note_origin(session: &Session, here: &FleetName, origin: &CallOrigin, theirs: &str) {
    session.slot::<ServedOn>().0.get_or_init(|| here.to_string());
    let noted = CallerOrigin { origin: origin.clone(), session: theirs.to_owned() };
    *session.slot::<FleetSession>().0.lock() = Some(noted);
}

/// Where the calls of this session come from, or those of a session that holds it; `None` for sessions of this machine.
pub(crate) fn origin_of(engine: &Engine, session: &SessionId) -> Option<CallerOrigin> {
    let session = engine.sessions.find(session)?;
    let own = |session: &Session| session.slot_if_any::<FleetSession>().and_then(|slot| slot.0.lock().clone());
    own(&session).or_else(|| session.above().into_iter().find_map(|above| own(&*engine.sessions.find(above)?)))
}
