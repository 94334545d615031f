//! Remembered permissions.

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::SystemTime;

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use toold_proto::permission::{Action, GrantAsk, GrantInfo, Scope};
use toold_proto::tool::{Category, SessionId};

use crate::kept::{ChangeEffect, NotKept};
use crate::need::Need;
use crate::policy::Subject;
use crate::policy::pattern::{Pattern, Specificity};
use crate::time::rfc3339;

/// A permission that a person gave, or refused, for more than one call.
#[derive(Clone, Debug)]
pub struct Grant {
    pub id: String,
    pub category: Category,
    pub pattern: Pattern,
    pub action: Action,
    pub scope: GrantScope,
    /// Only for these tools; `None` for all.
    pub tools: Option<Vec<String>>,
    /// Exactly the plugins between the caller and the need, the outermost first.
    pub chain: Vec<String>,
    pub by: Option<String>,
    pub granted_at: SystemTime,
    pub expires_at: Option<SystemTime>,
    /// The ask that it answers; `None` when nobody was asked.
    pub asked: Option<GrantAsk>,
    /// How long a grant of the fleet, which is not stored here, is valid, in place of `expires_at` alone.
    pub fleet: Option<Arc<dyn FleetGrantTerm>>,
}

/// How long a grant of the fleet is valid: that depends on clocks, and on the connection to the fleet.
pub trait FleetGrantTerm: fmt::Debug + Send + Sync {
    fn is_valid(&self) -> bool;

    /// Ends it on this daemon alone, as when a tool that it allows has changed.
    fn end_here(&self);
}

/// How the description of a grant begins.
const DESCRIBED: &str = "grant ";

/// The grant that a rule describes, by [`Grant::describe`]; `None` for other rules.
pub fn described_id(rule: &str) -> Option<&str> {
    let (id, _) = rule.strip_prefix(DESCRIBED)?.split_once(' ')?;
    Some(id)
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GrantScope {
    Session(SessionId),
    Project(PathBuf),
    Always,
}

/// Stores grants beyond the life of the daemon. Called before a change takes effect; [`ChangeEffect`] says what becomes of
/// one that it refuses.
pub trait GrantStore: Send + Sync {
    /// # Errors
    /// Why it cannot be stored, as a sentence for the user.
    fn add(&self, grant: &Grant) -> Result<(), String>;

    /// # Errors
    /// Why it cannot be removed, as a sentence for the user.
    fn remove(&self, id: &str) -> Result<(), String>;
}

impl Grant {
    /// How specifically it answers a need; `None` when it does not. Expiry is not considered.
    pub fn matches(&self, subject: &Subject, need: &Need) -> Option<Specificity> {
        if !self.concerns(subject, need) {
            return None;
        }
        self.pattern.matches(need)
    }

    pub(super) fn denies(&self, subject: &Subject, need: &Need) -> bool {
        self.may_deny(subject, need) && self.pattern.may_match(need).is_some()
    }

    /// Whether it denies something of the need's category to the subject.
    pub(super) fn may_deny(&self, subject: &Subject, need: &Need) -> bool {
        self.action == Action::Deny && self.concerns(subject, need)
    }

    fn concerns(&self, subject: &Subject, need: &Need) -> bool {
        let scope = match &self.scope {
            GrantScope::Session(session) => session == subject.session || subject.above.contains(&session),
            GrantScope::Project(project) => project == subject.project || project == subject.grant_project,
            GrantScope::Always => true,
        };
        scope
            && self.category == need.category()
            && self.chain == subject.chain
            && self.tools.as_ref().is_none_or(|tools| match subject.tool {
                Some(of) => tools.iter().any(|tool| tool == of.as_str()),
                None => self.action == Action::Deny,
            })
    }

    /// The grant as a rule, for answers and the audit.
    pub fn describe(&self) -> String {
        format!("{DESCRIBED}{} ({})", self.id, self.pattern.as_str())
    }

    /// As `permissions.list` shows it, without its uses: the audit log knows them.
    pub fn info(&self) -> GrantInfo {
        let (scope, session_id, project) = match &self.scope {
            GrantScope::Session(session) => (Scope::Session, Some(session.clone()), None),
            GrantScope::Project(project) => (Scope::Project, None, Some(project.display().to_string())),
            GrantScope::Always => (Scope::Always, None, None),
        };
        GrantInfo {
            id: self.id.clone(),
            category: self.category,
            pattern: self.pattern.as_str().to_owned(),
            action: self.action,
            scope,
            tools: self.tools.clone(),
            session_id,
            project,
            chain: self.chain.clone(),
            by: self.by.clone(),
            granted_at: rfc3339(self.granted_at),
            expires_at: self.expires_at.map(rfc3339),
            without_chains: Vec::new(),
            warnings: Vec::new(),
            asked: self.asked.clone(),
            uses: 0,
            used_at: None,
        }
    }

    /// Whether both say the same about the same calls. Who gave them, and how long they hold, is of no importance.
    fn says_the_same(&self, other: &Self) -> bool {
        let terms = |grant: &Self| (grant.category, grant.action, grant.fleet.is_some());
        terms(self) == terms(other)
            && self.pattern.as_str() == other.pattern.as_str()
            && (&self.scope, &self.tools, &self.chain) == (&other.scope, &other.tools, &other.chain)
    }

    fn is_valid(&self, now: SystemTime) -> bool {
        match &self.fleet {
            Some(term) => term.is_valid(),
            None => !self.has_expired(now),
        }
    }

    fn has_expired(&self, now: SystemTime) -> bool {
        self.fleet.is_none() && self.expires_at.is_some_and(|end| end <= now)
    }
}

/// The grants of all frontends. Readers never wait; replaced as a whole.
///
/// Call `Engine::policy_changed` after a change.
#[derive(Default)]
pub struct Grants {
    all: ArcSwap<Vec<Grant>>,
    store: OnceLock<Arc<dyn GrantStore>>,
    /// Serialises changes, so that the store sees them in their order.
    changing: Mutex<()>,
}

impl Grants {
    /// The grants that are valid now.
    pub fn snapshot(&self) -> Arc<Vec<Grant>> {
        let all = self.all.load_full();
        if all.iter().all(|grant| grant.expires_at.is_none() && grant.fleet.is_none()) {
            return all;
        }
        let now = SystemTime::now();
        match all.iter().all(|grant| grant.is_valid(now)) {
            true => all,
            false => Arc::new(all.iter().filter(|grant| grant.is_valid(now)).cloned().collect()),
        }
    }

    /// Loads the stored grants, and sets where changes are stored from now on. Call it once, before the first call runs.
    pub fn load(&self, kept: Vec<Grant>, store: Arc<dyn GrantStore>) {
        self.all.store(Arc::new(kept));
        assert!(self.store.set(store).is_ok(), "grants are loaded once");
    }

    /// Replaces the stored grants with those that `read` returns, for a store that another daemon has changed since.
    pub fn reload(&self, read: impl FnOnce() -> Vec<Grant>) {
        let _one = self.changing.lock();
        let stored = read();
        let held = self.all.load();
        self.all.store(Arc::new(held.iter().filter(|held| held.fleet.is_some()).cloned().chain(stored).collect()));
    }

    /// Adds the stored grants that `read` returns to those that are held, for a store that could not be read before.
    pub fn add_stored(&self, read: impl FnOnce() -> Vec<Grant>) {
        let _one = self.changing.lock();
        let stored = read();
        let held = self.all.load();
        let only_held = held.iter().filter(|held| stored.iter().all(|stored| stored.id != held.id)).cloned();
        self.all.store(Arc::new(only_held.chain(stored.iter().cloned()).collect()));
    }

    /// Adds a grant, and returns it as it holds: one that says the same as a grant that is valid renews that one, which keeps its
    /// id, and holds until the later of the two ends.
    ///
    /// # Errors
    /// It could not be stored.
    pub fn add(&self, mut grant: Grant) -> Result<Grant, NotKept> {
        let _one = self.changing.lock();
        let now = SystemTime::now();
        let held = self.all.load();
        if let Some(same) = held.iter().find(|held| held.says_the_same(&grant) && held.is_valid(now)) {
            grant.id.clone_from(&same.id);
            grant.expires_at = same.expires_at.zip(grant.expires_at).map(|(before, now)| before.max(now));
        }
        let effect = if grant.action == Action::Allow { ChangeEffect::Widens } else { ChangeEffect::Narrows };
        let store = || self.store.get().map_or(Ok(()), |store| store.add(&grant));
        effect.keep(store, |_| {
            let others = held.iter().filter(|held| !held.has_expired(now) && held.id != grant.id).cloned();
            self.all.store(Arc::new(others.chain([grant.clone()]).collect()));
        })?;
        Ok(grant)
    }

    /// Whether any grant is for this session.
    pub fn are_any_of(&self, session: &SessionId) -> bool {
        self.all.load().iter().any(|grant| matches!(&grant.scope, GrantScope::Session(of) if of == session))
    }

    /// Replaces the grants of the fleet, which are never stored. Each has a term.
    pub fn replace_fleet(&self, grants: Vec<Grant>) {
        let _one = self.changing.lock();
        let held = self.all.load();
        self.all.store(Arc::new(held.iter().filter(|held| held.fleet.is_none()).cloned().chain(grants).collect()));
    }

    /// Removes a grant; `None` for an unknown id. One of the fleet that allows something ends on this daemon alone.
    ///
    /// # Errors
    /// It could not be stored; or only its person can revoke it, and the grant is still valid.
    pub fn remove(&self, id: &str) -> Result<Option<Grant>, NotKept> {
        let _one = self.changing.lock();
        let held = self.all.load();
        let Some(grant) = held.iter().find(|grant| grant.id == id).cloned() else { return Ok(None) };
        let store = || match (&grant.fleet, self.store.get()) {
            (Some(_), _) if grant.action == Action::Deny => {
                Err(format!("it is a grant of the fleet: revoke it with `toolctl fleet revoke {id}`"))
            }
            (Some(term), _) => {
                term.end_here();
                Ok(())
            }
            (None, Some(store)) => store.remove(id),
            (None, None) => Ok(()),
        };
        let effect = if grant.action == Action::Allow { ChangeEffect::Narrows } else { ChangeEffect::Widens };
        effect
            .keep(store, |_| self.all.store(Arc::new(held.iter().filter(|grant| grant.id != id).cloned().collect())))?;
        Ok(Some(grant))
    }

    /// Removes the grants of a closed session. Returns whether there were any.
    pub fn forget_session(&self, session: &SessionId) -> bool {
        let _one = self.changing.lock();
        let held = self.all.load();
        let (gone, kept): (Vec<Grant>, Vec<Grant>) =
            held.iter().cloned().partition(|grant| grant.scope == GrantScope::Session(session.clone()));
        for grant in &gone {
            if let Some(Err(error)) = self.store.get().map(|store| store.remove(&grant.id)) {
                tracing::warn!(grant = grant.id, error, "the grant of a closed session stays in the store");
            }
        }
        self.all.store(Arc::new(kept));
        !gone.is_empty()
    }
}
