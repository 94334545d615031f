//! The life of a confined program and of all that it starts, which may go on when the program has ended.

use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::stand_in::StandIn;

/// Nothing is known before the program starts.
#[derive(Clone, Debug, Default)]
pub struct ConfinedLife(Arc<LifeState>);

#[derive(Debug, Default)]
struct LifeState {
    handed: OnceLock<Option<HandedLife>>,
    /// They stay while anything of it runs.
    stand_ins: Mutex<Vec<Arc<StandIn>>>,
}

#[derive(Debug)]
pub(crate) struct HandedLife {
    /// Nothing is at the other end when all have ended.
    pub(crate) calls: OwnedFd,
    /// `None` when all have ended.
    pub(crate) mounts: Mutex<Option<Arc<ProgramMounts>>>,
}

/// The namespace of a program's mounts. While one of these exists, no other namespace gets its number.
#[derive(Debug)]
pub struct ProgramMounts {
    pub(crate) number: u64,
    #[expect(dead_code, reason = "it is only held")]
    pub(crate) descriptor: OwnedFd,
}

impl PartialEq for ConfinedLife {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for ConfinedLife {}

impl ConfinedLife {
    /// The program has started; `None` if it cannot be followed, or did not start. Only the first call has an effect.
    pub(crate) fn begin(&self, handed: Option<HandedLife>) {
        let _ = self.0.handed.set(handed);
    }

    pub(crate) fn handed(&self) -> Option<Option<&HandedLife>> {
        self.0.handed.get().map(Option::as_ref)
    }

    pub(crate) fn keep(&self, stand_ins: Vec<Arc<StandIn>>) {
        self.0.stand_ins.lock().unwrap_or_else(PoisonError::into_inner).extend(stand_ins);
    }

    /// The namespace of mounts that the program and its children are in, unless they have made another one. `None` before they
    /// start and when they have ended.
    pub fn mounts(&self) -> Option<Arc<ProgramMounts>> {
        self.handed()??.mounts.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// All have ended: nothing of them is held any more.
    pub(crate) fn end(&self) {
        if let Some(Some(handed)) = self.handed() {
            handed.mounts.lock().unwrap_or_else(PoisonError::into_inner).take();
        }
        self.0.stand_ins.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}
