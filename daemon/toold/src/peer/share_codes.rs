//! Codes with which agents join sessions that people share.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use toold_proto::tool::SessionId;

use crate::config::random::random_hex;

/// How long a code is valid.
pub(crate) const SHARE_FOR: Duration = Duration::from_secs(600);
/// The prefix of codes; no client may name a session so.
const SHARE: &str = "share-";
const MAX_SHARES: usize = 1_000;

/// Codes with which agents join sessions that people share. Each is valid once.
#[derive(Default)]
pub(crate) struct ShareCodes(Mutex<HashMap<SessionId, (SessionId, Instant)>>);

impl ShareCodes {
    /// A code for a session; `None` when too many are pending.
    pub(crate) fn make(&self, session: &SessionId) -> Option<SessionId> {
        let mut codes = self.0.lock();
        codes.retain(|_, (_, made)| made.elapsed() < SHARE_FOR);
        if codes.len() >= MAX_SHARES {
            return None;
        }
        let code = SessionId::parse(&format!("{SHARE}{}", random_hex(16))).expect("hexadecimal digits fit");
        codes.insert(code.clone(), (session.clone(), Instant::now()));
        Some(code)
    }

    /// The session of a code, which is then no longer valid.
    pub(crate) fn take(&self, code: &SessionId) -> Option<SessionId> {
        let mut codes = self.0.lock();
        codes.remove(code).filter(|(_, made)| made.elapsed() < SHARE_FOR).map(|(session, _)| session)
    }
}

pub(crate) fn is_share_code(id: &SessionId) -> bool {
    id.as_str().starts_with(SHARE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_good_once() {
        let shares = ShareCodes::default();
        let session = SessionId::parse("s").unwrap();
        let code = shares.make(&session).unwrap();
        assert!(is_share_code(&code));
        assert_eq!(shares.take(&code), Some(session));
        assert_eq!(shares.take(&code), None);
    }
}
