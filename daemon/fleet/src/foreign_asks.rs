//! The asks of other daemons that are open, and those that have ended.

use std::collections::{BTreeMap, VecDeque};

use tokio::sync::watch;
use toold_proto::permission::Resolution;

use crate::messages::{EndedFleetAsk, FleetAsk};
use crate::names::FleetName;

/// Open asks of one daemon. Further ones are read when one of them has ended.
const MAX_OPEN: usize = 100;
/// Ended asks of one daemon that are remembered. Older ones have also expired.
const MAX_ENDED: usize = 1_000;

/// By daemon.
#[derive(Default)]
pub(crate) struct ForeignAsks(BTreeMap<FleetName, AsksOfDaemon>);

#[derive(Default)]
struct AsksOfDaemon {
    /// In the order in which they were asked.
    open: Vec<ForeignAsk>,
    /// Ids, the oldest first.
    ended: VecDeque<String>,
    /// There were more than are kept.
    has_more: bool,
}

pub(crate) struct ForeignAsk {
    /// An open one.
    pub(crate) message: FleetAsk,
    /// When it was signed.
    pub(crate) at: u64,
    pub(crate) prompt: PromptState,
}

/// The prompt of an ask.
pub(crate) enum PromptState {
    /// None yet, or its daemon was away.
    Absent,
    /// A value ends it.
    Shown(watch::Sender<Option<EndedFleetAsk>>),
    /// It was answered here, or expired. The end arrives later.
    Done,
}

/// The effect of a message.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Noted {
    /// It changed what is open.
    Changed,
    /// It is known, or there is no room for it.
    Unchanged,
    /// It ended an ask, and there is room for others, which have to be read again.
    HasRoom,
    /// It is older than what was seen.
    Stale,
}

impl ForeignAsks {
    /// Takes over a message that was verified and signed at this time.
    pub(crate) fn note(&mut self, from: &FleetName, at: u64, message: FleetAsk) -> Noted {
        let of = self.0.entry(from.clone()).or_default();
        let known = of.open.iter().position(|open| open.message.ask_id == message.ask_id);
        if message.ended.is_some() {
            if !of.ended.contains(&message.ask_id) {
                of.ended.push_back(message.ask_id);
            }
            if of.ended.len() > MAX_ENDED {
                of.ended.pop_front();
            }
            let Some(known) = known else { return Noted::Unchanged };
            of.open.remove(known).end(message.ended);
            return if std::mem::take(&mut of.has_more) { Noted::HasRoom } else { Noted::Changed };
        }
        if of.ended.contains(&message.ask_id) {
            return Noted::Stale;
        }
        if let Some(open) = known.map(|known| &mut of.open[known]) {
            if at < open.at {
                return Noted::Stale;
            }
            if open.message.challenge == message.challenge {
                // Others wait for the answer than before, or the message was sent again.
                open.at = at;
                open.message = message;
                return Noted::Unchanged;
            }
            // Its daemon has joined the fleet again.
            let new = ForeignAsk { message, at, prompt: PromptState::Absent };
            std::mem::replace(open, new).end(None);
            return Noted::Changed;
        }
        if of.open.len() >= MAX_OPEN {
            of.has_more = true;
            return Noted::Unchanged;
        }
        of.open.push(ForeignAsk { message, at, prompt: PromptState::Absent });
        Noted::Changed
    }

    /// All that are open.
    pub(crate) fn open(&mut self) -> impl Iterator<Item = (&FleetName, &mut ForeignAsk)> {
        self.0.iter_mut().flat_map(|(from, of)| of.open.iter_mut().map(move |open| (from, open)))
    }

    /// Forgets those that `is_over`.
    pub(crate) fn forget(&mut self, is_over: impl Fn(&FleetAsk) -> bool) {
        for of in self.0.values_mut() {
            of.open.retain(|open| !is_over(&open.message));
        }
    }

    /// Its prompt has ended, and is not shown again.
    pub(crate) fn set_done(&mut self, from: &FleetName, message: &FleetAsk) {
        let open = self
            .0
            .get_mut(from)
            .and_then(|of| of.open.iter_mut().find(|open| open.message.challenge == message.challenge));
        if let Some(open) = open {
            open.prompt = PromptState::Done;
        }
    }
}

impl ForeignAsk {
    /// Ends its prompt: as the ask ended, or because its daemon is gone.
    pub(crate) fn end(&mut self, ended: Option<EndedFleetAsk>) {
        let gone = EndedFleetAsk { action: Resolution::Cancelled, scope: None, by: None };
        if let PromptState::Shown(end) = std::mem::replace(&mut self.prompt, PromptState::Absent) {
            end.send_replace(Some(ended.unwrap_or(gone)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(id: &str, challenge: &str, ended: Option<Resolution>) -> FleetAsk {
        FleetAsk {
            ask_id: id.into(),
            instance: "i".into(),
            challenge: challenge.into(),
            ask: None,
            origin: None,
            session: None,
            ended: ended.map(|action| EndedFleetAsk { action, scope: None, by: None }),
        }
    }

    fn open(id: &str) -> FleetAsk {
        message(id, id, None)
    }

    fn end(id: &str) -> FleetAsk {
        message(id, "", Some(Resolution::Allow))
    }

    fn build() -> FleetName {
        FleetName::parse("build").unwrap()
    }

    fn ids(asks: &mut ForeignAsks) -> Vec<String> {
        asks.open().map(|(_, open)| open.message.ask_id.clone()).collect()
    }

    #[test]
    fn an_ask_that_has_ended_never_comes_back() {
        let mut asks = ForeignAsks::default();
        assert_eq!(asks.note(&build(), 1, open("a")), Noted::Changed);
        // Who waits for it may change.
        let now = FleetAsk { session: Some("another".into()), ..open("a") };
        assert_eq!(asks.note(&build(), 2, now), Noted::Unchanged);
        assert_eq!(asks.open().next().unwrap().1.message.session.as_deref(), Some("another"));
        assert_eq!(asks.note(&build(), 1, open("a")), Noted::Stale);
        // Also when the clock there was set back.
        assert_eq!(asks.note(&build(), 0, end("a")), Noted::Changed);
        assert_eq!(asks.note(&build(), 3, open("a")), Noted::Stale);
        // Nor one whose end arrived alone.
        assert_eq!(asks.note(&build(), 3, end("b")), Noted::Unchanged);
        assert_eq!(asks.note(&build(), 3, open("b")), Noted::Stale);
        assert!(ids(&mut asks).is_empty());
        // The asks of another daemon are its own.
        assert_eq!(asks.note(&FleetName::parse("other").unwrap(), 3, open("a")), Noted::Changed);
    }

    #[test]
    fn the_end_of_an_ask_ends_its_prompt() {
        let mut asks = ForeignAsks::default();
        asks.note(&build(), 1, open("a"));
        let (sender, seen) = watch::channel(None);
        asks.open().next().unwrap().1.prompt = PromptState::Shown(sender);
        asks.note(&build(), 2, end("a"));
        assert_eq!(seen.borrow().as_ref().unwrap().action, Resolution::Allow);
        // So does one that takes its place.
        asks.note(&build(), 1, open("b"));
        let (sender, seen) = watch::channel(None);
        asks.open().next().unwrap().1.prompt = PromptState::Shown(sender);
        assert_eq!(asks.note(&build(), 2, message("b", "new", None)), Noted::Changed);
        assert_eq!(seen.borrow().as_ref().unwrap().action, Resolution::Cancelled);
        assert!(matches!(asks.open().next().unwrap().1.prompt, PromptState::Absent));
    }

    #[test]
    fn a_daemon_has_so_many_asks_and_keeps_no_other_from_asking() {
        let mut asks = ForeignAsks::default();
        let id = |n: usize| format!("{n:04}");
        for n in 0..MAX_OPEN {
            assert_eq!(asks.note(&build(), 1, open(&id(n))), Noted::Changed);
        }
        assert_eq!(asks.note(&build(), 1, open("more")), Noted::Unchanged);
        assert_eq!(asks.note(&FleetName::parse("other").unwrap(), 1, open("a")), Noted::Changed);
        assert_eq!(ids(&mut asks).len(), MAX_OPEN + 1);
        // The stream is read again for those that had no room.
        assert_eq!(asks.note(&build(), 2, end(&id(7))), Noted::HasRoom);
        assert_eq!(asks.note(&build(), 1, open("more")), Noted::Changed);
        assert_eq!(asks.note(&build(), 2, end(&id(8))), Noted::Changed);
        for n in 0..3 * MAX_ENDED {
            asks.note(&build(), 2, end(&format!("ended-{n}")));
        }
        assert_eq!(asks.0[&build()].ended.len(), MAX_ENDED);
    }
}
