//! The grants of the fleet that this daemon knows, and those that were revoked.
//!
//! A change takes effect in the engine first, and is then written to disk: a grant that was revoked is not used
//! while a disk is slow, or full.

pub(crate) mod check;
mod kept;
pub(crate) mod term;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use toold_engine::Engine;
use toold_engine::policy::grants::{Grant, GrantScope};
use toold_proto::fleet::FleetGrantInfo;
use toold_proto::permission::Action;

use crate::counts::FleetCounts;
use crate::grant_book::check::{CheckedGrant, check, read_kept};
use crate::grant_book::kept::KeptGrants;
use crate::grant_book::term::{Lease, Moment, Term, boot_time};
use crate::names::FleetName;
use crate::settings::WantedSettings;
use crate::signed::{MessageRefusal, Verifier, now_ms};
use crate::subjects::grant_key;

/// How long after the end of a grant its revocation is remembered: no clock is behind by so much.
const REMEMBERED: Duration = Duration::from_secs(7 * 24 * 3600);
/// The longest time without a look at the lease: a timer does not count the time that the machine slept.
const LOOK: Duration = Duration::from_secs(5);

pub struct FleetGrantBook {
    engine: Arc<Engine>,
    file: PathBuf,
    pub(crate) lease: Arc<Lease>,
    content: Mutex<BookContent>,
    pub(crate) progress: watch::Sender<ReadProgress>,
    /// Changes when other signatures count: the bucket has to be read again.
    pub(crate) reconfigured: watch::Sender<()>,
    /// Writes of the file, one after another.
    writing: Mutex<()>,
}

/// How much of the bucket has taken effect here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ReadProgress {
    /// All that it contained has, on this connection.
    pub(crate) is_synced: bool,
    /// The last revision of it that has, and is on disk if it has to be.
    pub(crate) revision: u64,
}

#[derive(Default)]
struct BookContent {
    is_loaded: bool,
    /// `None` while `[fleet]` has a mistake: the grants of before hold.
    verifier: Option<Verifier>,
    /// The name of this daemon.
    own_name: Option<FleetName>,
    held: BTreeMap<String, HeldGrant>,
    revoked: BTreeMap<String, Revocation>,
    /// Revocations of this machine that the server does not have, signed, by their keys.
    unsent: BTreeMap<String, Vec<u8>>,
    allows_since: Option<u64>,
    /// Revocations or denying grants are not on disk.
    is_dirty: bool,
    /// The grants or revocations that were lost, as a sentence for the user.
    problem: Option<String>,
}

struct HeldGrant {
    text: String,
    checked: CheckedGrant,
    term: Arc<Term>,
    /// Whether the bucket has contained it since it was last read from the start.
    is_shown: bool,
    /// It allows something, and somebody has taken it out of the bucket: it is not valid, and can still be revoked.
    is_gone: bool,
}

/// The circumstances in which an entry arrives.
struct EntryArrival<'a> {
    now: Moment,
    /// All that the bucket contained before has arrived.
    is_synced: bool,
    lease: Arc<Lease>,
    counts: &'a FleetCounts,
}

struct Revocation {
    text: String,
    checked: CheckedGrant,
}

impl Revocation {
    fn is_over(&self, now: Moment) -> bool {
        let end = self.checked.expires_at.and_then(|end| end.checked_add(REMEMBERED));
        end.is_some_and(|end| end < now.wall)
    }
}

impl FleetGrantBook {
    /// `file` keeps revocations and denying grants.
    pub fn new(engine: &Arc<Engine>, file: PathBuf) -> Arc<Self> {
        Arc::new(Self {
            engine: engine.clone(),
            file,
            lease: Arc::default(),
            content: Mutex::default(),
            progress: watch::Sender::default(),
            reconfigured: watch::Sender::default(),
            writing: Mutex::default(),
        })
    }

    /// Takes over other settings. The first time, it reads the file, so that denying grants hold from now on. Blocks.
    pub fn configure(&self, wanted: &WantedSettings) {
        let mut content = self.content.lock();
        match wanted {
            None => {
                *content = BookContent::default();
                self.lease.end();
            }
            Some(Ok(settings)) => {
                content.verifier = Some(Verifier::new(settings.roster.clone()));
                content.own_name = Some(settings.connection.name.clone());
                self.lease.set_length(settings.lease);
                content.verify_again();
            }
            // Who may deny something is not known, so all denials hold.
            Some(Err(_)) => content.verifier = None,
        }
        if wanted.is_some() && !content.is_loaded {
            self.load(&mut content);
        }
        self.publish(&content);
        self.reconfigured.send_replace(());
    }

    fn load(&self, content: &mut BookContent) {
        content.is_loaded = true;
        let kept = KeptGrants::load(&self.file).unwrap_or_else(|error| {
            let shown = self.file.display();
            let problem = format!(
                "{shown} cannot be read ({error}): denying grants hold once the server of the fleet has shown them, and \
                 grants that were made before now allow nothing"
            );
            tracing::error!("{problem}");
            content.problem = Some(problem);
            content.is_dirty = true;
            // For whoever looks for the cause; the next write would replace it.
            let _ = std::fs::rename(&self.file, self.file.with_extension("damaged"));
            KeptGrants { allows_since: Some(now_ms()), ..KeptGrants::default() }
        });
        content.allows_since = kept.allows_since;
        let now = Moment::now();
        for text in kept.revocations {
            match read_kept(text.as_bytes()) {
                Some((key, checked)) => {
                    content.revoked.insert(key, Revocation { text, checked });
                }
                None => tracing::error!(text, "a revocation on disk cannot be read"),
            }
        }
        for text in kept.denials {
            let Some((key, checked)) = read_kept(text.as_bytes()) else {
                tracing::error!(text, "a denying grant on disk cannot be read");
                continue;
            };
            if checked.grant.rule.action == Action::Deny {
                content.hold(key, text, checked, &self.lease, now);
            }
        }
        content.verify_again();
    }

    /// The bucket is read from the start.
    pub(crate) fn begin_reading(&self) {
        self.progress.send_modify(|progress| progress.is_synced = false);
        self.content.lock().held.values_mut().for_each(|held| held.is_shown = false);
    }

    /// Revokes a grant here before the server has its revocation.
    pub(crate) fn revoke_here(&self, key: &str, signed: &[u8], counts: &FleetCounts) {
        self.content.lock().unsent.insert(key.to_owned(), signed.to_vec());
        self.take_over(key, signed, counts);
    }

    /// The revocations that the server does not have.
    pub(crate) fn unsent(&self) -> Vec<(String, Vec<u8>)> {
        self.content.lock().unsent.iter().map(|(key, signed)| (key.clone(), signed.clone())).collect()
    }

    /// The server has the revocation of this key.
    pub(crate) fn was_sent(&self, key: &str) {
        self.content.lock().unsent.remove(key);
    }

    /// Takes over an entry of the bucket.
    pub(crate) fn take_over(&self, key: &str, text: &[u8], counts: &FleetCounts) {
        let mut content = self.content.lock();
        let arrival = self.arrival(counts);
        let checked = content.verifier.as_ref().and_then(|verifier| check(verifier, key, text, counts));
        // It was verified, so it is JSON.
        let entry = checked.map(|checked| (String::from_utf8_lossy(text).into_owned(), checked));
        if entry.is_some_and(|(text, checked)| content.take_over(key, text, checked, &arrival)) {
            content.forget_ended(arrival.now);
            self.publish(&content);
        }
    }

    fn arrival<'a>(&self, counts: &'a FleetCounts) -> EntryArrival<'a> {
        let is_synced = self.progress.borrow().is_synced;
        EntryArrival { now: Moment::now(), is_synced, lease: self.lease.clone(), counts }
    }

    /// An entry was deleted from the bucket, which ends a grant that allows something until it is there again.
    pub(crate) fn note_deleted(&self, key: &str, counts: &FleetCounts) {
        let mut content = self.content.lock();
        let arrival = self.arrival(counts);
        if let Some(held) = content.held.get_mut(key) {
            held.is_shown = false;
        }
        // Before, all that it does not contain ends together.
        if arrival.is_synced {
            content.end_unshown(|of| of == key, &arrival);
            self.publish(&content);
        }
    }

    /// All entries of the bucket have been read.
    pub(crate) fn end_reading(&self, counts: &FleetCounts) {
        let mut content = self.content.lock();
        let arrival = self.arrival(counts);
        content.end_unshown(|_| true, &arrival);
        content.forget_ended(arrival.now);
        self.publish(&content);
    }

    /// Gives the engine the grants that concern this daemon.
    fn publish(&self, content: &BookContent) {
        self.engine.grants.replace_fleet(content.held.values().filter_map(|held| content.grant(held)).collect());
        self.engine.policy_changed();
    }

    /// Writes revocations and denying grants to disk, if there are new ones. Blocks.
    ///
    /// # Errors
    /// As a sentence for the user; the next call tries again.
    pub(crate) fn save(&self) -> Result<(), String> {
        let _one = self.writing.lock();
        let kept = {
            let mut content = self.content.lock();
            if !std::mem::take(&mut content.is_dirty) {
                return Ok(());
            }
            let denials = content.held.values().filter(|held| held.checked.grant.rule.action == Action::Deny);
            KeptGrants {
                revocations: content.revoked.values().map(|revocation| revocation.text.clone()).collect(),
                denials: denials.map(|held| held.text.clone()).collect(),
                allows_since: content.allows_since,
            }
        };
        kept.save(&self.file).map_err(|error| {
            self.content.lock().is_dirty = true;
            format!("can't keep revocations and denying grants in {}: {error}", self.file.display())
        })
    }

    pub(crate) fn is_dirty(&self) -> bool {
        self.content.lock().is_dirty
    }

    pub(crate) fn problem(&self) -> Option<String> {
        self.content.lock().problem.clone()
    }

    /// Returns when the grants that the broker had have taken effect, on the present connection.
    pub(crate) async fn synced(&self) {
        // Fails only when it is dropped, which it is not while it is borrowed.
        let _ = self.progress.subscribe().wait_for(|progress| progress.is_synced).await;
    }

    /// Wakes what waits for decisions when the lease ends or begins, until it is stopped.
    pub(crate) async fn follow_lease(self: Arc<Self>, stop: CancellationToken) {
        let mut before = None;
        let mut changes = self.lease.changes();
        loop {
            let left = self.lease.left(boot_time());
            if before.replace(left.is_some()).is_some_and(|was| was != left.is_some()) {
                tracing::info!(valid = left.is_some(), "the lease of the fleet's grants changed");
                self.engine.policy_changed();
            }
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                changed = changes.changed() => if changed.is_err() { return },
                () = tokio::time::sleep(left.unwrap_or(LOOK).min(LOOK)) => {}
            }
        }
    }

    /// All grants that are not revoked, the newest last.
    pub fn list(&self) -> Vec<FleetGrantInfo> {
        let content = self.content.lock();
        let now = Moment::now();
        let mut held: Vec<&HeldGrant> = content.held.values().collect();
        held.sort_by_key(|held| (held.checked.made_at, held.checked.at));
        held.into_iter().map(|held| content.info(held, now)).collect()
    }

    /// How many are valid here now.
    pub fn valid(&self) -> usize {
        self.list().iter().filter(|grant| grant.valid).count()
    }

    /// The grant of this person, and whether it is revoked.
    pub(crate) fn find(&self, person: &FleetName, id: &str) -> Option<(CheckedGrant, FleetGrantInfo)> {
        let content = self.content.lock();
        let key = grant_key(person, id);
        if let Some(held) = content.held.get(&key) {
            return Some((held.checked.clone(), content.info(held, Moment::now())));
        }
        let revocation = content.revoked.get(&key)?;
        Some((revocation.checked.clone(), info(&revocation.checked, Some("it is revoked"))))
    }

    /// The persons who have made a grant of this id that is not revoked.
    pub fn makers(&self, id: &str) -> Vec<FleetName> {
        let content = self.content.lock();
        let of = content.held.values().filter(|held| held.checked.grant.id == id);
        of.map(|held| held.checked.person.clone()).collect()
    }
}

impl BookContent {
    /// Whether something has changed that has to take effect. An entry that does not count changes nothing.
    fn take_over(&mut self, key: &str, text: String, checked: CheckedGrant, arrival: &EntryArrival) -> bool {
        let EntryArrival { now, is_synced, lease, counts } = arrival;
        let (person, id) = (checked.person.clone(), checked.grant.id.clone());
        if checked.grant.revoked {
            if !self.revoked.contains_key(key) {
                self.held.remove(key);
                self.revoked.insert(key.to_owned(), Revocation { text, checked });
                self.is_dirty = true;
                return true;
            }
            return false;
        }
        // The server shows it as long as it does not take the revocation.
        if self.unsent.contains_key(key) {
            return false;
        }
        if self.revoked.contains_key(key) {
            counts.refuse(
                MessageRefusal::Replayed,
                format!("{person} has revoked the grant {id}, and it was sent again"),
            );
            return false;
        }
        let allows = checked.grant.rule.action == Action::Allow;
        let made_at = checked.made_at.duration_since(std::time::UNIX_EPOCH).unwrap_or_default().as_millis();
        if allows && self.allows_since.is_some_and(|since| made_at < u128::from(since)) {
            let why = "was made before revocations were lost here, so it does not count";
            counts.refuse(MessageRefusal::Replayed, format!("the grant {id} of {person} {why}"));
            return false;
        }
        if let Some(held) = self.held.get_mut(key) {
            if held.text == text {
                held.is_shown = true;
                return std::mem::take(&mut held.is_gone);
            }
            if checked.at <= held.checked.at {
                counts
                    .refuse(MessageRefusal::Replayed, format!("an older state of the grant {id} of {person} was sent"));
                return false;
            }
        }
        if Term::new(checked.grant.rule.action, (checked.made_at, checked.expires_at), lease, *now).has_expired(*now) {
            // Old entries stay in the bucket; nobody has a reason to put one there.
            if *is_synced {
                counts.refuse(
                    MessageRefusal::Expired,
                    format!("the grant {id} of {person} has expired, and it was sent again"),
                );
            }
            let was_held = self.held.remove(key).is_some();
            self.is_dirty |= was_held;
            return was_held;
        }
        self.is_dirty |=
            !allows || self.held.get(key).is_some_and(|held| held.checked.grant.rule.action == Action::Deny);
        self.hold(key.to_owned(), text, checked, lease, *now);
        true
    }

    fn hold(&mut self, key: String, text: String, checked: CheckedGrant, lease: &Arc<Lease>, now: Moment) {
        let times = (checked.made_at, checked.expires_at);
        let term = Arc::new(Term::new(checked.grant.rule.action, times, lease, now));
        self.held.insert(key, HeldGrant { text, checked, term, is_shown: true, is_gone: false });
    }

    /// Ends the allowing grants that the bucket does not contain. Nobody ends a denying one by deleting it.
    fn end_unshown(&mut self, concerns: impl Fn(&str) -> bool, arrival: &EntryArrival) {
        for (key, held) in self.held.iter_mut().filter(|(key, held)| !held.is_shown && concerns(key)) {
            match held.checked.grant.rule.action {
                Action::Allow => held.is_gone = true,
                Action::Deny if held.term.has_expired(arrival.now) => {}
                Action::Deny => {
                    let why = "denies something, and is gone from the server without a revocation: it holds";
                    arrival.counts.refuse(MessageRefusal::NotPermitted, format!("the grant {key} {why}"));
                }
            }
        }
    }

    fn forget_ended(&mut self, now: Moment) {
        let before = self.held.len() + self.revoked.len();
        self.held.retain(|_, held| !held.term.has_expired(now));
        self.revoked.retain(|_, revocation| !revocation.is_over(now));
        self.is_dirty |= self.held.len() + self.revoked.len() != before;
    }

    /// Ends the grants of those who decide here no longer.
    fn verify_again(&mut self) {
        let Some(verifier) = &self.verifier else { return };
        // They are counted when the bucket is read again.
        let counts = FleetCounts::default();
        let before = self.held.len();
        self.held.retain(|key, held| check(verifier, key, held.text.as_bytes(), &counts).is_some());
        self.is_dirty |= self.held.len() != before;
    }

    fn is_for_here(&self, held: &HeldGrant) -> bool {
        let (own, daemons) = (&self.own_name, &held.checked.grant.rule.daemons);
        daemons.as_ref().is_none_or(|daemons| own.as_ref().is_none_or(|own| daemons.contains(own)))
    }

    /// As the engine decides with it.
    fn grant(&self, held: &HeldGrant) -> Option<Grant> {
        let CheckedGrant { person, grant, made_at, expires_at, pattern, .. } = &held.checked;
        if held.is_gone || !self.is_for_here(held) {
            return None;
        }
        Some(Grant {
            id: grant.id.clone(),
            category: grant.rule.category,
            pattern: pattern.clone()?,
            action: grant.rule.action,
            scope: GrantScope::Always,
            tools: grant.rule.tools.clone(),
            chain: Vec::new(),
            by: Some(format!("{person} (fleet)")),
            granted_at: *made_at,
            expires_at: *expires_at,
            asked: None,
            fleet: Some(held.term.clone()),
        })
    }

    fn info(&self, held: &HeldGrant, now: Moment) -> FleetGrantInfo {
        let why_not = match (self.is_for_here(held), held.is_gone) {
            (false, _) => Some("it is for other daemons"),
            (true, true) => Some("somebody has deleted it from the server of the fleet"),
            (true, false) => held.term.why_not(now),
        };
        info(&held.checked, why_not)
    }
}

fn info(checked: &CheckedGrant, why_not: Option<&str>) -> FleetGrantInfo {
    let CheckedGrant { person, grant, .. } = checked;
    FleetGrantInfo {
        id: grant.id.clone(),
        person: person.to_string(),
        action: grant.rule.action,
        category: grant.rule.category,
        pattern: grant.rule.pattern.clone(),
        tools: grant.rule.tools.clone(),
        daemons: grant.rule.daemons.as_ref().map(|names| names.iter().map(ToString::to_string).collect()),
        made_on: grant.origin.daemon.to_string(),
        made_at: grant.origin.made_at.clone(),
        expires_at: grant.expiry.clone(),
        valid: why_not.is_none(),
        why_not: why_not.map(str::to_owned),
    }
}
