//! Browsers at the daemon's page: the codes that sign them in, and those that are signed in.
//!
//! Everything is in memory, codes and cookies as digests only. Digests are compared in constant time.

use std::time::{Duration, Instant, SystemTime};

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;
use toold_engine::time::rfc3339;
use toold_proto::page::PageSession;

use crate::config::random::random_hex;

/// How long a code is valid.
const CODE_FOR: Duration = Duration::from_secs(120);
/// Codes at one time; a further one takes the place of the oldest.
const MAX_CODES: usize = 8;
/// A browser without a connection is signed out after this, and every browser after the second.
const IDLE: Duration = Duration::from_secs(12 * 3600);
const MAX_AGE: Duration = Duration::from_secs(7 * 24 * 3600);
/// Browsers at one time; a further one takes the place of the one that was not used for the longest time.
const MAX_SIGN_INS: usize = 32;
/// Wrong codes within a minute that are answered as such.
const MAX_WRONG: usize = 20;
const WRONG_WINDOW: Duration = Duration::from_secs(60);

/// The codes and the browsers.
#[derive(Default)]
pub(crate) struct PageSignIns(Mutex<SignInState>);

#[derive(Default)]
struct SignInState {
    codes: Vec<(blake3::Hash, Instant)>,
    /// When wrong codes came.
    wrong: Vec<Instant>,
    browsers: Vec<SignedIn>,
    last_id: u64,
}

/// A code that was just made.
pub(crate) struct PageCode {
    pub(crate) code: String,
    pub(crate) expires_at: SystemTime,
}

/// Why a code signs nobody in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CodeRefused {
    Wrong,
    /// Too many wrong ones came. A valid one is accepted all the same.
    TooMany,
}

struct SignedIn {
    id: u64,
    cookie: blake3::Hash,
    from: String,
    browser: String,
    since: Instant,
    used: Instant,
    /// Fires when it is signed out.
    ended: CancellationToken,
    /// Held by each connection, and once here.
    held: std::sync::Arc<()>,
}

/// A browser that is signed in. While it is held, the browser is in use.
#[derive(Clone)]
pub(crate) struct PageBrowser {
    /// Fires when it is signed out.
    pub(crate) ended: CancellationToken,
    /// The rest of its time, however it is used.
    pub(crate) remaining: Duration,
    _held: std::sync::Arc<()>,
}

impl PageSignIns {
    /// A code that signs one browser in.
    pub(crate) fn make_code(&self) -> PageCode {
        let code = random_hex(16);
        let mut state = self.0.lock();
        state.forget_old();
        if state.codes.len() == MAX_CODES {
            state.codes.remove(0);
        }
        state.codes.push((blake3::hash(code.as_bytes()), Instant::now()));
        PageCode { code, expires_at: SystemTime::now() + CODE_FOR }
    }

    /// Signs a browser in with a code, which is then no longer valid; returns its cookie.
    pub(crate) fn sign_in(&self, code: &str, from: String, browser: String) -> Result<String, CodeRefused> {
        let digest = blake3::hash(code.as_bytes());
        let mut state = self.0.lock();
        state.forget_old();
        let known = state.codes.len();
        // All of them are compared, each in constant time.
        state.codes.retain(|(code, _)| *code != digest);
        let now = Instant::now();
        if state.codes.len() == known {
            if state.wrong.len() >= MAX_WRONG {
                return Err(CodeRefused::TooMany);
            }
            state.wrong.push(now);
            return Err(CodeRefused::Wrong);
        }
        if state.browsers.len() == MAX_SIGN_INS
            && let Some(oldest) = state.browsers.iter().min_by_key(|browser| (browser.connections(), browser.used))
        {
            let id = oldest.id;
            state.end(|browser| browser.id == id);
        }
        let cookie = random_hex(32);
        state.last_id += 1;
        let signed_in = SignedIn {
            id: state.last_id,
            cookie: blake3::hash(cookie.as_bytes()),
            from,
            browser,
            since: now,
            used: now,
            ended: CancellationToken::new(),
            held: Default::default(),
        };
        state.browsers.push(signed_in);
        Ok(cookie)
    }

    /// The browser that shows a cookie.
    pub(crate) fn find(&self, cookie: &str) -> Option<PageBrowser> {
        let digest = blake3::hash(cookie.as_bytes());
        let mut state = self.0.lock();
        state.forget_old();
        let mut found = None;
        for browser in &mut state.browsers {
            if browser.cookie == digest {
                browser.used = Instant::now();
                let (ended, remaining) = (browser.ended.clone(), MAX_AGE.saturating_sub(browser.since.elapsed()));
                found = Some(PageBrowser { ended, remaining, _held: browser.held.clone() });
            }
        }
        found
    }

    /// Signs out the browser that shows a cookie. False when there is none.
    pub(crate) fn sign_out(&self, cookie: &str) -> bool {
        let digest = blake3::hash(cookie.as_bytes());
        self.0.lock().end(|browser| browser.cookie == digest) > 0
    }

    /// Signs out one browser, or all of them, and then all codes are void; returns how many.
    pub(crate) fn revoke(&self, id: Option<u64>) -> u64 {
        let mut state = self.0.lock();
        state.forget_old();
        if id.is_none() {
            state.codes.clear();
        }
        state.end(|browser| id.is_none_or(|id| browser.id == id))
    }

    /// Those that are signed in.
    pub(crate) fn list(&self) -> Vec<PageSession> {
        let mut state = self.0.lock();
        state.forget_old();
        let ago = |instant: Instant| rfc3339(SystemTime::now() - instant.elapsed());
        let shown = state.browsers.iter().map(|browser| PageSession {
            id: browser.id,
            from: browser.from.clone(),
            browser: browser.browser.clone(),
            signed_in_at: ago(browser.since),
            last_used_at: if browser.connections() > 0 { ago(Instant::now()) } else { ago(browser.used) },
            connections: browser.connections() as u64,
        });
        shown.collect()
    }
}

impl SignedIn {
    fn connections(&self) -> usize {
        std::sync::Arc::strong_count(&self.held) - 1
    }
}

impl SignInState {
    fn forget_old(&mut self) {
        self.codes.retain(|(_, made)| made.elapsed() < CODE_FOR);
        self.wrong.retain(|came| came.elapsed() < WRONG_WINDOW);
        for browser in &mut self.browsers {
            if browser.connections() > 0 {
                browser.used = Instant::now();
            }
        }
        self.end(|browser| browser.since.elapsed() >= MAX_AGE || browser.used.elapsed() >= IDLE);
    }

    fn end(&mut self, which: impl Fn(&SignedIn) -> bool) -> u64 {
        let ended = self.browsers.extract_if(.., |browser| which(browser));
        ended.map(|browser| browser.ended.cancel()).count() as u64
    }
}
