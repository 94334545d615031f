//! How long a call waits for a daemon that is free.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep};
use toold_engine::cx::Cx;
use toold_engine::tool::ToolError;

use crate::member::Member;

const LONGEST_WAIT: Duration = Duration::from_secs(60);
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// The pauses between the attempts of one call, each longer than the one before.
pub(super) struct Patience {
    give_up: Instant,
    pause: Duration,
}

impl Patience {
    pub(super) fn new() -> Self {
        Self { give_up: Instant::now() + LONGEST_WAIT, pause: FIRST_PAUSE }
    }

    pub(super) fn is_over(&self) -> bool {
        Instant::now() >= self.give_up
    }

    /// Waits for the next attempt.
    ///
    /// # Errors
    /// The call, or the daemon, ends first.
    pub(super) async fn wait(&mut self, member: &Arc<Member>, cx: &Cx) -> Result<(), ToolError> {
        tokio::select! {
            () = sleep(self.pause) => {}
            () = cx.cancel.cancelled() => return Err(ToolError::Cancelled),
            () = member.stop.cancelled() => return Err(ToolError::Cancelled),
        }
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        Ok(())
    }
}
