//! The asks of this daemon that the fleet knows of.

use toold_engine::asks::AskSubscription;

use crate::messages::FleetAsk;
use crate::names::FleetName;

/// Bytes of a message about an ask. A diff that does not fit is left out; it is never cut, because a person decides about
/// all of it.
pub(crate) const MAX_ASK: usize = 256 * 1024;

/// They outlive the connection to the broker: an ask keeps its challenge, and the end of one is sent later.
#[derive(Default)]
pub(crate) struct OwnAsks {
    /// Absent until the broker is connected for the first time.
    pub(crate) subscription: Option<AskSubscription>,
    /// In the order in which they were asked. Those that have ended stay until their end is sent.
    pub(crate) asks: Vec<OwnAsk>,
}

pub(crate) struct OwnAsk {
    /// The persons who are asked.
    pub(crate) people: Vec<FleetName>,
    pub(crate) message: FleetAsk,
    /// Whether the broker has it as it is.
    pub(crate) is_sent: bool,
    /// Whether the broker may have an earlier form of it.
    pub(crate) was_sent: bool,
}

/// The id of an ask in the fleet. The daemon's name is a token of subjects of its own, so that the server can limit a login to
/// the asks of its machine.
pub(crate) fn ask_id(daemon: &FleetName, request_id: &str) -> String {
    format!("{daemon}.{request_id}")
}

/// The id on its own daemon; `None` for asks of others.
pub(crate) fn request_id<'i>(daemon: &FleetName, ask_id: &'i str) -> Option<&'i str> {
    ask_id.strip_prefix(daemon.as_str())?.strip_prefix('.')
}

/// The person or client that answered, as other machines and the audit log show it.
pub(crate) fn answerer(person: &FleetName, at: &FleetName) -> String {
    format!("{person} at {at} (fleet)")
}
