//! Browsers at the daemon's page: the codes that sign them in, and those that are signed in.
//!
//! Everything is in memory, codes and cookies as digests only. Digests are compared in constant time.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use toold_engine::time::rfc3339;
use toold_proto::page::PageSession;

use crate::config::random::random_hex;
use crate::peer::agent_processes::ProcessId;

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

/// A browser that is signed in, for the next daemon. It has no cookie, only the digest of one.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct BrowserRecord {
    id: u64,
    cookie: String,
    from: String,
    browser: String,
    #[serde(default)]
    processes: Vec<ProcessId>,
    age_s: u64,
    idle_s: u64,
}

struct SignedIn {
    id: u64,
    cookie: blake3::Hash,
    from: String,
    browser: String,
    processes: Arc<[ProcessId]>,
    since: Instant,
    used: Instant,
    /// Fires when it is signed out.
    ended: CancellationToken,
    /// Held by each connection, and once here.
    held: Arc<()>,
}

/// A browser that wants to sign in.
pub(crate) struct NewBrowser {
    /// Its address, and its name for itself.
    pub(crate) from: String,
    pub(crate) browser: String,
    /// Its processes that connect, if it is on this machine.
    pub(crate) processes: Vec<ProcessId>,
}

/// A browser that is signed in. While it is held, the browser is in use.
#[derive(Clone)]
pub(crate) struct PageBrowser {
    /// Those of its processes that signed it in, if it is on this machine.
    pub(crate) processes: Arc<[ProcessId]>,
    /// Fires when it is signed out.
    pub(crate) ended: CancellationToken,
    /// The rest of its time, however it is used.
    pub(crate) remaining: Duration,
    _held: Arc<()>,
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

    /// Signs a browser in with a code, which is then no longer valid; returns its cookie, which is valid for this host
    /// name alone.
    pub(crate) fn sign_in(&self, code: &str, host: &str, new: NewBrowser) -> Result<String, CodeRefused> {
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
            cookie: digest_of(&cookie, host),
            from: new.from,
            browser: new.browser,
            processes: new.processes.into(),
            since: now,
            used: now,
            ended: CancellationToken::new(),
            held: Default::default(),
        };
        state.browsers.push(signed_in);
        Ok(cookie)
    }

    /// The browser that shows a cookie.
    pub(crate) fn find(&self, cookie: &str, host: &str) -> Option<PageBrowser> {
        let digest = digest_of(cookie, host);
        let mut state = self.0.lock();
        state.forget_old();
        let mut found = None;
        for browser in &mut state.browsers {
            if browser.cookie == digest {
                browser.used = Instant::now();
                let (ended, remaining) = (browser.ended.clone(), MAX_AGE.saturating_sub(browser.since.elapsed()));
                let processes = browser.processes.clone();
                found = Some(PageBrowser { processes, ended, remaining, _held: browser.held.clone() });
            }
        }
        found
    }

    /// Signs out the browser that shows a cookie, if there is one.
    pub(crate) fn sign_out(&self, cookie: &str, host: &str) {
        let digest = digest_of(cookie, host);
        self.0.lock().end(|browser| browser.cookie == digest);
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

    /// The browsers for the next daemon, with which they stay signed in.
    pub(crate) fn records(&self) -> Vec<BrowserRecord> {
        let mut state = self.0.lock();
        state.forget_old();
        let records = state.browsers.iter().map(|browser| BrowserRecord {
            id: browser.id,
            cookie: browser.cookie.to_hex().to_string(),
            from: browser.from.clone(),
            browser: browser.browser.clone(),
            processes: browser.processes.to_vec(),
            age_s: browser.since.elapsed().as_secs(),
            idle_s: browser.used.elapsed().as_secs(),
        });
        records.collect()
    }

    /// Takes the browsers of the previous daemon.
    pub(crate) fn restore(&self, records: Vec<BrowserRecord>) {
        let mut state = self.0.lock();
        let ago = |seconds| Instant::now().checked_sub(Duration::from_secs(seconds));
        for record in records {
            let (Ok(cookie), Some(since), Some(used)) =
                (blake3::Hash::from_hex(&record.cookie), ago(record.age_s), ago(record.idle_s))
            else {
                continue;
            };
            state.last_id = state.last_id.max(record.id);
            let (ended, held) = Default::default();
            let BrowserRecord { id, from, browser, processes, .. } = record;
            let processes = processes.into();
            state.browsers.push(SignedIn { id, cookie, from, browser, processes, since, used, ended, held });
        }
    }

    /// The browsers that are signed in.
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

/// A cookie counts for the host that it was set for. Another server of that host may have seen it; the names by which
/// others reach the page stay out of its reach.
fn digest_of(cookie: &str, host: &str) -> blake3::Hash {
    blake3::hash(format!("{cookie} {host}").as_bytes())
}

impl SignedIn {
    fn connections(&self) -> usize {
        Arc::strong_count(&self.held) - 1
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

#[cfg(test)]
mod tests {
    use super::*;

    fn new_browser(from: &str, browser: &str) -> NewBrowser {
        NewBrowser { from: from.to_owned(), browser: browser.to_owned(), processes: Vec::new() }
    }

    fn signed_in(sign_ins: &PageSignIns) -> String {
        let code = sign_ins.make_code().code;
        sign_ins.sign_in(&code, "localhost", new_browser("127.0.0.1", "b")).unwrap()
    }

    #[test]
    fn a_code_is_valid_once_and_wrong_ones_keep_nobody_out() {
        let sign_ins = PageSignIns::default();
        let try_code = |code: &str| sign_ins.sign_in(code, "localhost", new_browser("", ""));
        let code = sign_ins.make_code().code;
        assert_eq!(code.len(), 32);
        assert!(try_code(&code).is_ok());
        assert_eq!(try_code(&code), Err(CodeRefused::Wrong));
        while try_code("0") == Err(CodeRefused::Wrong) {}
        assert_eq!(try_code("1"), Err(CodeRefused::TooMany));
        assert!(try_code(&sign_ins.make_code().code).is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn codes_and_browsers_expire() {
        let sign_ins = PageSignIns::default();
        let code = sign_ins.make_code().code;
        tokio::time::advance(CODE_FOR).await;
        assert!(sign_ins.sign_in(&code, "localhost", new_browser("", "")).is_err());

        let (idle, used) = (signed_in(&sign_ins), signed_in(&sign_ins));
        for _ in 0..2 {
            tokio::time::advance(IDLE / 2).await;
            assert!(sign_ins.find(&used, "localhost").is_some());
        }
        assert!(sign_ins.find(&idle, "localhost").is_none());

        let connected = sign_ins.find(&used, "localhost").unwrap();
        tokio::time::advance(IDLE).await;
        assert!(sign_ins.find(&used, "localhost").is_some(), "its connection is open");
        assert!(connected.remaining < MAX_AGE);
        tokio::time::advance(MAX_AGE).await;
        assert!(sign_ins.find(&used, "localhost").is_none());
        assert!(connected.ended.is_cancelled());
    }

    #[test]
    fn there_is_a_handful_of_codes() {
        let sign_ins = PageSignIns::default();
        let codes: Vec<String> = (0..=MAX_CODES).map(|_| sign_ins.make_code().code).collect();
        let try_code = |code: &str| sign_ins.sign_in(code, "localhost", new_browser("", ""));
        assert_eq!(try_code(&codes[0]), Err(CodeRefused::Wrong));
        assert!(codes[1..].iter().all(|code| try_code(code).is_ok()));
    }

    #[test]
    fn a_cookie_counts_for_its_host() {
        let sign_ins = PageSignIns::default();
        let cookie = signed_in(&sign_ins);
        assert!(sign_ins.find(&cookie, "localhost").is_some());
        assert!(sign_ins.find(&cookie, "127.0.0.1").is_none());
        assert!(sign_ins.find(&cookie[1..], "localhost").is_none());
    }

    #[test]
    fn the_browser_that_is_used_least_makes_room() {
        let sign_ins = PageSignIns::default();
        let cookies: Vec<String> = (0..MAX_SIGN_INS).map(|_| signed_in(&sign_ins)).collect();
        let connected = sign_ins.find(&cookies[0], "localhost").unwrap();
        signed_in(&sign_ins);
        assert!(!connected.ended.is_cancelled());
        assert!(sign_ins.find(&cookies[1], "localhost").is_none());
    }

    #[test]
    fn revoking_ends_connections_and_codes() {
        let sign_ins = PageSignIns::default();
        let (cookie, code) = (signed_in(&sign_ins), sign_ins.make_code().code);
        let browser = sign_ins.find(&cookie, "localhost").unwrap();
        assert_eq!(sign_ins.revoke(Some(7)), 0);
        assert_eq!(sign_ins.revoke(None), 1);
        assert!(browser.ended.is_cancelled());
        assert!(sign_ins.find(&cookie, "localhost").is_none());
        assert!(sign_ins.sign_in(&code, "localhost", new_browser("", "")).is_err());
    }

    #[test]
    fn the_next_daemon_knows_the_browsers() {
        let (before, after) = (PageSignIns::default(), PageSignIns::default());
        let cookie = signed_in(&before);
        let records = serde_json::to_string(&before.records()).unwrap();
        assert!(!records.contains(&cookie));
        after.restore(serde_json::from_str(&records).unwrap());
        assert!(after.find(&cookie, "localhost").is_some());
        signed_in(&after);
        assert_eq!(after.list().iter().map(|session| session.id).collect::<Vec<_>>(), [1, 2]);
    }
}
