//! Codes with which a person confirms a program that toold cannot tell from one that an agent left behind.

use std::time::{Duration, SystemTime};

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::config::random::random_hex;

/// How long a code is valid.
const CODE_FOR: Duration = Duration::from_secs(120);
/// Codes at one time; a further one takes the place of the oldest.
const MAX_CODES: usize = 8;
/// The length of a code, in bytes before they are written in hexadecimal. A person types it.
const CODE_BYTES: usize = 5;

/// The codes that are valid, as digests. Each is valid once.
#[derive(Default)]
pub(crate) struct ConfirmCodes(Mutex<Vec<(blake3::Hash, Instant)>>);

impl ConfirmCodes {
    /// A new code, and until when it is valid.
    pub(crate) fn make(&self) -> (String, SystemTime) {
        let code = random_hex(CODE_BYTES);
        let mut codes = self.0.lock();
        codes.retain(|(_, made)| made.elapsed() < CODE_FOR);
        if codes.len() == MAX_CODES {
            codes.remove(0);
        }
        codes.push((blake3::hash(code.as_bytes()), Instant::now()));
        (code, SystemTime::now() + CODE_FOR)
    }

    /// Whether the code is valid, which it is no longer.
    pub(crate) fn take(&self, code: &str) -> bool {
        let digest = blake3::hash(code.trim().as_bytes());
        let mut codes = self.0.lock();
        codes.retain(|(_, made)| made.elapsed() < CODE_FOR);
        let known = codes.len();
        codes.retain(|(code, _)| *code != digest);
        codes.len() < known
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_code_is_valid_once_and_for_a_while() {
        let codes = ConfirmCodes::default();
        let (code, _) = codes.make();
        assert!(!codes.take("0"));
        assert!(codes.take(&format!(" {code}\n")));
        assert!(!codes.take(&code));
        let (late, _) = codes.make();
        tokio::time::advance(CODE_FOR).await;
        assert!(!codes.take(&late));
    }
}
