//! The time that judging one line may take.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// Ends some time after it was started. Loops over what a line names look at it.
#[derive(Clone, Copy, Debug)]
pub(super) struct JudgingClock {
    /// In the time that this thread has computed: other work of a busy machine does not count.
    computed: Duration,
    until: Instant,
}

impl JudgingClock {
    /// People wait for the answer, and agents give up on their hooks: then a person is asked instead.
    const LIMIT: Duration = Duration::from_secs(1);
    /// With everything that it waits for, such as slow file systems.
    const LIMIT_WITH_WAITING: Duration = Duration::from_secs(10);

    pub(super) fn start() -> Self {
        Self { computed: computed() + Self::LIMIT, until: Instant::now() + Self::LIMIT_WITH_WAITING }
    }

    #[cfg(test)]
    pub(super) fn over() -> Self {
        Self { computed: Duration::ZERO, until: Instant::now() }
    }

    /// Ends when half of the time that is left is over: one part of the work leaves time for the others.
    pub(super) fn half(self) -> Self {
        let (spent, now) = (computed(), Instant::now());
        Self {
            computed: spent + self.computed.saturating_sub(spent) / 2,
            until: now + self.until.saturating_duration_since(now) / 2,
        }
    }

    pub(super) fn is_over(self) -> bool {
        computed() >= self.computed || Instant::now() >= self.until
    }
}

fn computed() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::try_from(time).unwrap_or_default()
}
