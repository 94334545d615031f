//! Grants, for as long as a person gave them.

use std::time::SystemTime;

use rusqlite::{OptionalExtension, Row, params};
use toold_engine::policy::pattern::Pattern;
use toold_engine::policy::{Grant, GrantScope, GrantStore};
use toold_proto::permission::Action;
use toold_proto::tool::{Category, SessionId};

use crate::columns::{from_path, from_time, to_path, to_time};
use crate::{Store, StoreError};

impl Store {
    /// All grants that hold, the oldest first.
    ///
    /// A row that cannot be understood any more stays in the database, is told in [`Store::problems`], and allows
    /// nothing; if it denied something, it denies all of its category in its scope until it is revoked. With a
    /// database that cannot be read there are none, with a damaged one those that deny.
    pub fn load_grants(&self) -> Vec<Grant> {
        let now = from_time(SystemTime::now());
        let kept = self.keeps_sessions();
        let mut grants = Vec::new();
        let read = self.read(|connection| {
            let mut rows = connection.prepare_cached(
                "SELECT id, category, pattern, action, scope, session_id, project, tools, chain, granted_by, \
                 granted_at, expires_at FROM grants \
                 WHERE (expires_at IS NULL OR expires_at > ?1) AND (?2 OR scope <> 'session')",
            )?;
            let mut rows = rows.query(params![now, kept])?;
            // One by one, as they lie there: when a page is damaged, those before it count.
            while let Some(row) = rows.next()? {
                let raw = Raw::read(row)?;
                match raw.understand() {
                    Ok(grant) => grants.push(grant),
                    Err(why) => {
                        self.health.tell(raw.problem(&why));
                        grants.extend(raw.strictest());
                    }
                }
            }
            Ok(())
        });
        grants.sort_by(|a, b| (a.granted_at, &a.id).cmp(&(b.granted_at, &b.id)));
        if let Err(error) = &read
            && self.takes_writes()
        {
            self.health.tell(format!("grants cannot be read from {}: {error}", self.path().display()));
        }
        if read.is_err() || self.health.is_damaged() {
            // A refusal that narrows a permission may be lost: the permission alone would allow too much.
            grants.retain(|grant| grant.action == Action::Deny);
        }
        if self.takes_writes() {
            let dropped = self
                .write(move |transaction| Ok(transaction.execute("DELETE FROM grants WHERE expires_at <= ?1", [now])?));
            if let Err(error) = dropped {
                tracing::warn!(%error, "expired grants stay in the database");
            }
        }
        grants
    }

    /// Keeps a grant, or how it is now. When it returns, the grant survives a power cut.
    pub fn save_grant(&self, grant: &Grant) -> Result<(), StoreError> {
        if matches!(grant.scope, GrantScope::Session(_)) && !self.keeps_sessions() {
            return Ok(());
        }
        let grant = grant.clone();
        self.write_durably(move |transaction| {
            let (scope, session, project) = match &grant.scope {
                GrantScope::Session(session) => ("session", Some(session.as_str()), None),
                GrantScope::Project(project) => ("project", None, Some(from_path(project))),
                GrantScope::Always => ("always", None, None),
            };
            let action = match grant.action {
                Action::Allow => "allow",
                Action::Deny => "deny",
            };
            let list = |texts: &[String]| serde_json::Value::from(texts).to_string();
            transaction.execute(
                "INSERT OR REPLACE INTO grants (id, category, pattern, action, scope, session_id, project, tools, \
                 chain, granted_by, granted_at, expires_at) \
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
                params![
                    grant.id,
                    grant.category.as_str(),
                    grant.pattern.as_str(),
                    action,
                    scope,
                    session,
                    project,
                    grant.tools.as_deref().map(list),
                    list(&grant.chain),
                    grant.by,
                    from_time(grant.granted_at),
                    grant.expires_at.map(from_time),
                ],
            )?;
            Ok(())
        })
    }

    /// Removes a grant for good. True when it was there.
    pub fn delete_grant(&self, id: &str) -> Result<bool, StoreError> {
        let id = id.to_owned();
        // A grant that was revoked must not come back with a power cut.
        self.write_durably(move |transaction| Ok(transaction.execute("DELETE FROM grants WHERE id = ?1", [id])? > 0))
    }

    /// The ids of grants of version 0.1 that a person has not reviewed since.
    pub fn grants_to_review(&self) -> Result<Vec<String>, StoreError> {
        self.read(|connection| {
            let mut select = connection.prepare_cached("SELECT id FROM grants WHERE review = 1")?;
            Ok(select.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?)
        })
    }

    /// A person has reviewed them all.
    pub fn set_grants_reviewed(&self) -> Result<(), StoreError> {
        self.write(|transaction| {
            transaction.execute("UPDATE grants SET review = 0", [])?;
            Ok(())
        })
    }

    fn has_grant(&self, id: &str) -> Result<bool, StoreError> {
        self.read(|connection| {
            let found = connection.query_row("SELECT 1 FROM grants WHERE id = ?1", [id], |_| Ok(())).optional()?;
            Ok(found.is_some())
        })
    }
}

/// Without a database that takes writes, a grant for a session holds until the daemon ends; wider ones are refused.
impl GrantStore for Store {
    fn add(&self, grant: &Grant) -> Result<(), String> {
        match (self.save_grant(grant), &grant.scope) {
            // It holds in memory then, for as long as the daemon lives.
            (Err(StoreError::Refused(_) | StoreError::Failed(_) | StoreError::Damaged(_)), GrantScope::Session(_)) => {
                Ok(())
            }
            (saved, _) => saved.map_err(|error| error.to_string()),
        }
    }

    fn remove(&self, id: &str) -> Result<(), String> {
        match self.delete_grant(id) {
            Ok(_) => Ok(()),
            // It was held in memory alone: there is nothing that could come back.
            Err(StoreError::Refused(_) | StoreError::Failed(_)) if !self.has_grant(id).unwrap_or(false) => Ok(()),
            Err(error) => Err(error.to_string()),
        }
    }
}

/// A row as it stands.
struct Raw {
    id: String,
    category: String,
    pattern: String,
    action: String,
    scope: String,
    session: Option<String>,
    project: Option<Vec<u8>>,
    tools: Option<String>,
    chain: String,
    by: Option<String>,
    granted_at: i64,
    expires_at: Option<i64>,
}

impl Raw {
    fn read(row: &Row) -> rusqlite::Result<Self> {
        Ok(Self {
            id: row.get(0)?,
            category: row.get(1)?,
            pattern: row.get(2)?,
            action: row.get(3)?,
            scope: row.get(4)?,
            session: row.get(5)?,
            project: row.get(6)?,
            tools: row.get(7)?,
            chain: row.get(8)?,
            by: row.get(9)?,
            granted_at: row.get(10)?,
            expires_at: row.get(11)?,
        })
    }

    fn understand(&self) -> Result<Grant, String> {
        let category = self.category()?;
        let action = match self.action.as_str() {
            "allow" => Action::Allow,
            "deny" => Action::Deny,
            other => return Err(format!("{other:?} is no action")),
        };
        let tools = match &self.tools {
            Some(tools) => Some(list(tools)?),
            None => None,
        };
        Ok(Grant {
            pattern: Pattern::parse(category, &self.pattern).map_err(|error| error.to_string())?,
            tools,
            chain: list(&self.chain)?,
            ..self.of_all(category, action)?
        })
    }

    /// What stands for a row that denied something and cannot be understood: it denies too much rather than too
    /// little. `None` for all others, and where not even its category or scope is known.
    fn strictest(&self) -> Option<Grant> {
        if self.action == "allow" {
            return None;
        }
        let all = self.of_all(self.category().ok()?, Action::Deny).ok()?;
        Some(Grant { chain: list(&self.chain).ok()?, ..all })
    }

    /// The grant without what narrows it within its scope.
    fn of_all(&self, category: Category, action: Action) -> Result<Grant, String> {
        Ok(Grant {
            id: self.id.clone(),
            category,
            pattern: Pattern::parse(category, "**").map_err(|error| error.to_string())?,
            action,
            scope: self.scope()?,
            tools: None,
            chain: Vec::new(),
            by: self.by.clone(),
            granted_at: to_time(self.granted_at),
            expires_at: self.expires_at.map(to_time),
        })
    }

    fn category(&self) -> Result<Category, String> {
        Category::parse(&self.category).ok_or_else(|| format!("{:?} is no category", self.category))
    }

    fn scope(&self) -> Result<GrantScope, String> {
        match (self.scope.as_str(), &self.session, &self.project) {
            ("session", Some(session), _) => {
                SessionId::parse(session).map(GrantScope::Session).map_err(|error| error.to_string())
            }
            ("project", _, Some(project)) => Ok(GrantScope::Project(to_path(project))),
            ("always", _, _) => Ok(GrantScope::Always),
            (other, _, _) => Err(format!("{other:?} is no scope, or lacks whose")),
        }
    }

    fn problem(&self, why: &str) -> String {
        let effect = match self.action.as_str() {
            "allow" => "It allows nothing",
            _ => "All of its category is denied where it held",
        };
        format!(
            "the grant {} ({} {} {}) cannot be understood: {why}. {effect}; remove it with `toolctl permissions \
             revoke {}`.",
            self.id, self.action, self.category, self.pattern, self.id
        )
    }
}

fn list(json: &str) -> Result<Vec<String>, String> {
    serde_json::from_str(json).map_err(|error| error.to_string())
}
