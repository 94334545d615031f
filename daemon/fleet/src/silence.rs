//! Decides when the other side of a call is gone.

use std::time::Duration;

use tokio::time::Instant;

/// How often the caller of a running call and the daemon that runs it send each other a sign of life.
pub const ALIVE_INTERVAL: Duration = Duration::from_secs(5);
/// A caller or a daemon that is silent for this long is gone.
pub const SILENCE: Duration = Duration::from_secs(20);
/// How long a call survives without the broker.
const LONGEST_AWAY: Duration = Duration::from_secs(180);

/// When the other side was last heard. The time without the broker does not count, within reason.
pub(crate) struct Silence {
    heard: Instant,
    away_since: Option<Instant>,
}

impl Silence {
    pub(crate) fn new() -> Self {
        Self { heard: Instant::now(), away_since: None }
    }

    pub(crate) fn hear(&mut self) {
        self.heard = Instant::now();
    }

    /// Whether the other side is gone. Call it regularly, with the state of the connection.
    pub(crate) fn is_over(&mut self, connected: bool) -> bool {
        if !connected {
            return self.away_since.get_or_insert_with(Instant::now).elapsed() > LONGEST_AWAY;
        }
        if self.away_since.take().is_some() {
            self.hear();
        }
        self.heard.elapsed() > SILENCE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_time_without_the_broker_does_not_count() {
        let mut silence = Silence::new();
        tokio::time::sleep(SILENCE - Duration::from_secs(1)).await;
        assert!(!silence.is_over(true) && !silence.is_over(false));
        tokio::time::sleep(LONGEST_AWAY - Duration::from_secs(1)).await;
        assert!(!silence.is_over(false) && !silence.is_over(true));
        tokio::time::sleep(SILENCE - Duration::from_secs(1)).await;
        assert!(!silence.is_over(true));
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert!(silence.is_over(true));
        assert!(!silence.is_over(false));
        tokio::time::sleep(LONGEST_AWAY + Duration::from_secs(1)).await;
        assert!(silence.is_over(false));
    }
}
