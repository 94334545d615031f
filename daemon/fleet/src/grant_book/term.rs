//! How long a grant of the fleet is valid: its expiry, and the lease of the grants that allow.
//!
//! The clock of the machine can be set. So each end is also known as a time since the machine started, which counts
//! sleep and which nobody sets: an allowing grant ends at the earlier of the two, one that denies at the later.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use tokio::sync::watch;
use toold_engine::policy::grants::FleetGrantTerm;
use toold_proto::permission::Action;

use crate::signed::CLOCK_TOLERANCE;
use crate::silence::SILENCE;

/// The time now, by both clocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    pub(crate) wall: SystemTime,
    /// Since the machine started, with the time that it slept.
    pub(crate) boot: Duration,
}

impl Moment {
    pub(crate) fn now() -> Self {
        Self { wall: SystemTime::now(), boot: boot_time() }
    }
}

pub(crate) fn boot_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    Duration::new(time.tv_sec.try_into().unwrap_or(0), time.tv_nsec.try_into().unwrap_or(0))
}

/// The permission to use allowing grants: it is renewed while the broker answers, and ends by itself.
#[derive(Debug)]
pub(crate) struct Lease(watch::Sender<LeaseState>);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct LeaseState {
    /// When the broker last showed all grants; `None` before it has.
    renewed: Option<Duration>,
    connected: bool,
    length: Duration,
}

impl LeaseState {
    fn end(self) -> Option<Duration> {
        // A connection that is in use is not lost before it is noticed to be silent.
        let length = if self.connected { self.length.max(SILENCE) } else { self.length };
        self.renewed.map(|renewed| renewed.saturating_add(length))
    }
}

impl Default for Lease {
    fn default() -> Self {
        Self(watch::Sender::new(LeaseState::default()))
    }
}

impl Lease {
    pub(crate) fn set_length(&self, length: Duration) {
        self.0.send_modify(|state| state.length = length);
    }

    /// How often it has to be renewed.
    pub(crate) fn interval(&self) -> Duration {
        (self.0.borrow().length / 3).clamp(Duration::from_millis(100), Duration::from_secs(5))
    }

    /// The broker answered a question that was sent at `asked`.
    pub(crate) fn renew(&self, asked: Duration) {
        self.0.send_modify(|state| {
            state.connected = true;
            state.renewed = state.renewed.max(Some(asked));
        });
    }

    /// The broker is away, or does not show the grants.
    pub(crate) fn lose_contact(&self) {
        self.0.send_modify(|state| state.connected = false);
    }

    /// This daemon has left the fleet.
    pub(crate) fn end(&self) {
        self.0.send_modify(|state| *state = LeaseState { length: state.length, ..LeaseState::default() });
    }

    /// How much of it is left.
    pub(crate) fn left(&self, boot: Duration) -> Option<Duration> {
        let left = self.0.borrow().end()?.saturating_sub(boot);
        (!left.is_zero()).then_some(left)
    }

    pub(crate) fn changes(&self) -> watch::Receiver<impl Sized + use<>> {
        self.0.subscribe()
    }
}

/// The term of one grant.
#[derive(Debug)]
pub(crate) struct Term {
    action: Action,
    made_at: SystemTime,
    /// By both clocks; never ends when absent.
    ends: Option<Moment>,
    ended_here: AtomicBool,
    lease: Arc<Lease>,
}

impl Term {
    /// For a grant that arrived `now`.
    pub(crate) fn new(
        action: Action,
        (made_at, expires_at): (SystemTime, Option<SystemTime>),
        lease: &Arc<Lease>,
        now: Moment,
    ) -> Self {
        let ends = expires_at.map(|wall| {
            // With a clock that is far behind, as much seems to be left as when the grant was made, at most.
            let whole = wall.duration_since(made_at).unwrap_or_default();
            let left = wall.duration_since(now.wall).unwrap_or_default().min(whole);
            Moment { wall, boot: now.boot.saturating_add(left) }
        });
        Self { action, made_at, ends, ended_here: AtomicBool::new(false), lease: lease.clone() }
    }

    pub(crate) fn has_expired(&self, now: Moment) -> bool {
        self.ends.is_some_and(|end| {
            let (by_wall, by_boot) = (end.wall <= now.wall, end.boot <= now.boot);
            match self.action {
                Action::Allow => by_wall || by_boot,
                Action::Deny => by_wall && by_boot,
            }
        })
    }

    /// Why it is not valid, as a clause for the user.
    pub(crate) fn why_not(&self, now: Moment) -> Option<&'static str> {
        if self.has_expired(now) {
            return Some("it has expired");
        }
        if self.action == Action::Deny {
            return None;
        }
        if self.ended_here.load(Ordering::Relaxed) {
            return Some(
                "it has ended on this daemon, because a tool that it allows has changed, or somebody revoked it here",
            );
        }
        if now.wall.checked_add(CLOCK_TOLERANCE).is_some_and(|latest| latest < self.made_at) {
            return Some("it was made in the future, by the clock of this machine: set the clock");
        }
        match self.lease.left(now.boot) {
            Some(_) => None,
            None => Some("its lease is over: the server of the fleet has been away for too long"),
        }
    }
}

impl FleetGrantTerm for Term {
    fn is_valid(&self) -> bool {
        self.why_not(Moment::now()).is_none()
    }

    fn end_here(&self) {
        self.ended_here.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);
    const MINUTE: Duration = Duration::from_secs(60);
    const START: Duration = Duration::from_secs(1_000_000);

    fn made() -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000)
    }

    /// So long after the grant was made, by both clocks.
    fn at(wall: Duration, boot: Duration) -> Moment {
        Moment { wall: made() + wall, boot: START + boot }
    }

    fn lease(length: Duration) -> Arc<Lease> {
        let lease = Arc::new(Lease::default());
        lease.set_length(length);
        lease
    }

    #[test]
    fn an_allowing_grant_needs_a_lease_and_ends_with_it() {
        let lease = lease(10 * MINUTE);
        let term = Term::new(Action::Allow, (made(), Some(made() + 12 * HOUR)), &lease, at(MINUTE, MINUTE));
        let over = Some("its lease is over: the server of the fleet has been away for too long");
        assert_eq!(term.why_not(at(MINUTE, MINUTE)), over, "the broker has not shown it yet");
        lease.renew(START + MINUTE);
        lease.lose_contact();
        for (minutes, expected) in [(2, None), (10, None), (11, over), (600, over)] {
            assert_eq!(term.why_not(at(minutes * MINUTE, minutes * MINUTE)), expected, "{minutes}");
        }
        lease.renew(START + 600 * MINUTE);
        assert_eq!(term.why_not(at(600 * MINUTE, 600 * MINUTE)), None);
        lease.end();
        assert_eq!(term.why_not(at(600 * MINUTE, 600 * MINUTE)), over);
    }

    #[test]
    fn a_short_lease_lasts_while_the_connection_is_in_use_but_not_through_sleep() {
        let lease = lease(Duration::from_millis(300));
        lease.renew(START);
        assert!(lease.left(START + SILENCE / 2).is_some());
        assert_eq!(lease.left(START + 8 * HOUR), None);
        lease.lose_contact();
        assert!(lease.left(START + Duration::from_millis(299)).is_some());
        assert_eq!(lease.left(START + Duration::from_millis(300)), None);
        // An answer to an older question takes nothing back.
        lease.renew(START + SILENCE);
        lease.renew(START);
        assert!(lease.left(START + SILENCE).is_some());
    }

    #[test]
    fn a_clock_that_is_set_neither_prolongs_an_allowing_grant_nor_ends_a_denying_one() {
        let lease = lease(1000 * HOUR);
        lease.renew(START);
        let term =
            |action| Term::new(action, (made(), Some(made() + HOUR)), &lease, at(Duration::ZERO, Duration::ZERO));
        let (allow, deny) = (term(Action::Allow), term(Action::Deny));
        for (wall, boot, allows, denies) in [
            (30 * MINUTE, 30 * MINUTE, true, true),
            // Set back.
            (MINUTE, 2 * HOUR, false, true),
            // Set forward.
            (2 * HOUR, MINUTE, false, true),
            (2 * HOUR, 2 * HOUR, false, false),
        ] {
            let now = at(wall, boot);
            assert_eq!((!allow.has_expired(now), !deny.has_expired(now)), (allows, denies), "{wall:?} {boot:?}");
        }
    }

    #[test]
    fn a_grant_is_not_valid_before_it_was_made() {
        let lease = lease(1000 * HOUR);
        lease.renew(START);
        let early = Moment { wall: made() - HOUR, boot: START };
        let times = (made(), Some(made() + HOUR));
        let allow = Term::new(Action::Allow, times, &lease, early);
        assert!(allow.why_not(early).unwrap().contains("future"));
        assert_eq!(Term::new(Action::Deny, times, &lease, early).why_not(early), None);
        // The two hours that seem to be left are not.
        assert!(allow.has_expired(Moment { wall: made() - HOUR, boot: START + HOUR }));
    }

    #[test]
    fn a_grant_can_end_on_one_daemon() {
        let lease = lease(HOUR);
        lease.renew(boot_time());
        let now = Moment::now();
        let term = Term::new(Action::Allow, (now.wall, Some(now.wall + HOUR)), &lease, now);
        assert!(term.is_valid());
        term.end_here();
        assert!(!term.is_valid());
    }
}
