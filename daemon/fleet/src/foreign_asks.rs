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

/// What became of a message.
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
                open.at = at;
                return Noted::Unchanged;
            }
            // Its daemon has joined the fleet anew.
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
