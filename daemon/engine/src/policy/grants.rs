//! Remembered permissions.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use arc_swap::ArcSwap;
use toold_proto::permission::Action;
use toold_proto::tool::{Category, SessionId};

use crate::need::Need;
use crate::policy::Subject;
use crate::policy::pattern::Pattern;

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
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GrantScope {
    Session(SessionId),
    Project(PathBuf),
    Always,
}

impl Grant {
    pub fn matches(&self, subject: &Subject, need: &Need) -> bool {
        let scope = match &self.scope {
            GrantScope::Session(session) => session == subject.session,
            GrantScope::Project(project) => project == subject.project,
            GrantScope::Always => true,
        };
        scope
            && self.category == need.category
            && self.chain == subject.chain
            && self.tools.as_ref().is_none_or(|tools| tools.iter().any(|tool| tool == subject.tool.as_str()))
            && self.expires_at.is_none_or(|end| SystemTime::now() < end)
            && self.pattern.matches(need).is_some()
    }

    pub fn describe(&self) -> String {
        format!("grant {} ({})", self.id, self.pattern.as_str())
    }
}

/// The grants of all frontends. Readers never wait; replaced as a whole.
#[derive(Default)]
pub struct Grants {
    all: ArcSwap<Vec<Grant>>,
}

impl Grants {
    pub fn snapshot(&self) -> Arc<Vec<Grant>> {
        self.all.load_full()
    }

    pub fn add(&self, grant: Grant) {
        self.all.rcu(|all| all.iter().cloned().chain([grant.clone()]).collect::<Vec<_>>());
    }

    /// Removes a grant; `None` for an unknown id.
    pub fn remove(&self, id: &str) -> Option<Grant> {
        let mut removed = None;
        self.all.rcu(|all| {
            removed = all.iter().find(|grant| grant.id == id).cloned();
            all.iter().filter(|grant| grant.id != id).cloned().collect::<Vec<_>>()
        });
        removed
    }
}
