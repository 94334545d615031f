//! Logs a server's stderr and log messages with a rate limit, and keeps the last lines.

use std::collections::VecDeque;
use std::time::Instant;

use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncReadExt};
use toold_engine::redact::without_hidden;

/// The burst of lines that may be logged at once, and the rate at which it refills per second.
const BURST: f64 = 100.0;
const PER_SECOND: f64 = 10.0;
/// The length limit of a line, in characters.
const LINE: usize = 1000;
/// Lines that are kept for display.
const TAIL: usize = 20;

/// The log of one program.
pub struct StderrLog {
    name: String,
    state: Mutex<StderrLogState>,
}

struct StderrLogState {
    tail: VecDeque<String>,
    room: f64,
    filled: Instant,
    lost: u64,
}

impl StderrLog {
    /// `name` identifies the program in the log.
    pub fn new(name: &str) -> Self {
        let state = StderrLogState { tail: VecDeque::new(), room: BURST, filled: Instant::now(), lost: 0 };
        Self { name: name.to_owned(), state: Mutex::new(state) }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// Reads to the end. Never stops reading, so that a flood of output does not block the program.
    pub async fn read(&self, mut stderr: impl AsyncRead + Unpin) {
        let mut buffer = vec![0; 16 * 1024];
        let mut line = Vec::new();
        // A pipe that can no longer be read is at its end.
        while let Ok(read @ 1..) = stderr.read(&mut buffer).await {
            for piece in buffer[..read].split_inclusive(|byte| *byte == b'\n') {
                // Longer lines are cut, whether they end soon or never.
                let room = (4 * LINE).saturating_sub(line.len());
                line.extend_from_slice(&piece[..piece.len().min(room)]);
                if piece.ends_with(b"\n") {
                    self.line(&String::from_utf8_lossy(&line));
                    line.clear();
                }
            }
        }
        if !line.is_empty() {
            self.line(&String::from_utf8_lossy(&line));
        }
    }

    pub fn line(&self, text: &str) {
        self.line_at(text, Instant::now());
    }

    fn line_at(&self, text: &str, now: Instant) {
        let text: String = without_hidden(text)
            .trim_end()
            .chars()
            .take(LINE)
            .map(|c| if c.is_control() && c != '\t' { ' ' } else { c })
            .collect();
        if text.is_empty() {
            return;
        }
        let mut state = self.state.lock();
        state.room = (state.room + now.duration_since(state.filled).as_secs_f64() * PER_SECOND).min(BURST);
        state.filled = now;
        if state.room >= 1.0 {
            state.room -= 1.0;
            let lost = std::mem::take(&mut state.lost);
            if lost > 0 {
                tracing::info!(name = self.name, lost, "a program wrote more lines than are logged");
            }
            tracing::info!(name = self.name, "{text}");
        } else {
            state.lost += 1;
        }
        if state.tail.len() == TAIL {
            state.tail.pop_front();
        }
        state.tail.push_back(text);
    }

    /// The last lines, newest last.
    pub fn tail(&self) -> Vec<String> {
        self.state.lock().tail.iter().cloned().collect()
    }

    /// The kept lines belong to a run that is over.
    pub fn forget(&self) {
        self.state.lock().tail.clear();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn a_flood_is_read_and_its_end_kept() {
        let log = StderrLog::new("s");
        let mut flood: Vec<u8> = (0..50_000).flat_map(|n| format!("line {n}\n").into_bytes()).collect();
        flood.extend(vec![b'x'; 1_000_000]);
        log.read(flood.as_slice()).await;
        let tail = log.tail();
        assert_eq!((tail.len(), tail[18].as_str(), tail[19].len()), (TAIL, "line 49999", LINE));
    }

    #[test]
    fn lines_over_the_rate_limit_are_counted_and_not_logged() {
        let log = StderrLog::new("s");
        let start = Instant::now();
        (0..1_000).for_each(|n| log.line_at(&n.to_string(), start));
        assert_eq!(log.state.lock().lost, 1_000 - BURST as u64);
        // A logged line reports how many were suppressed.
        log.line_at("later", start + Duration::from_secs(1));
        assert_eq!(log.state.lock().lost, 0);
    }
}
