//! A grant as stored in the database, and in the file of refusals next to it.

use rusqlite::Row;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use toold_engine::policy::grants::{Grant, GrantScope};
use toold_engine::policy::pattern::Pattern;
use toold_proto::permission::Action;
use toold_proto::tool::{Category, SessionId};

use crate::columns::{from_path, from_time, to_path, to_time};

/// The columns, in the order in which [`StoredGrant::read`] expects them.
pub(crate) const COLUMNS: &str = "id, category, pattern, action, scope, session_id, project, tools, chain, granted_by, \
                                  granted_at, expires_at, asked";

/// The limit of all grants.
pub(crate) const MAX_GRANTS: usize = 10_000;

/// A raw row: nothing in it has been parsed yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoredGrant {
    pub(crate) id: String,
    pub(crate) category: String,
    pub(crate) pattern: String,
    pub(crate) action: String,
    pub(crate) scope: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) session: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none", with = "path_text")]
    pub(crate) project: Option<Vec<u8>>,
    /// A list of texts as JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) tools: Option<String>,
    /// A list of texts as JSON.
    pub(crate) chain: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) by: Option<String>,
    /// Milliseconds since 1970.
    pub(crate) granted_at: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) expires_at: Option<i64>,
    /// The ask that it answers, as JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) asked: Option<String>,
}

impl StoredGrant {
    pub(crate) fn of(grant: &Grant) -> Self {
        let (scope, session, project) = match &grant.scope {
            GrantScope::Session(session) => ("session", Some(session.as_str().to_owned()), None),
            GrantScope::Project(project) => ("project", None, Some(from_path(project).to_vec())),
            GrantScope::Always => ("always", None, None),
        };
        let action = match grant.action {
            Action::Allow => "allow",
            Action::Deny => "deny",
        };
        let list = |texts: &[String]| serde_json::Value::from(texts).to_string();
        Self {
            id: grant.id.clone(),
            category: grant.category.as_str().to_owned(),
            pattern: grant.pattern.as_str().to_owned(),
            action: action.to_owned(),
            scope: scope.to_owned(),
            session,
            project,
            tools: grant.tools.as_deref().map(list),
            chain: list(&grant.chain),
            by: grant.by.clone(),
            granted_at: from_time(grant.granted_at),
            expires_at: grant.expires_at.map(from_time),
            asked: grant.asked.as_ref().map(|asked| serde_json::to_string(asked).expect("texts have a form in JSON")),
        }
    }

    /// Whether it denies something: a row with an unknown action might.
    pub(crate) fn refuses(&self) -> bool {
        self.action != "allow"
    }

    pub(crate) fn has_ended(&self, now: i64) -> bool {
        self.expires_at.is_some_and(|end| end <= now)
    }

    pub(crate) fn read(row: &Row) -> rusqlite::Result<Self> {
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
            asked: row.get(12)?,
        })
    }

    pub(crate) fn understand(&self) -> Result<Grant, String> {
        let category = self.category()?;
        let action = match self.action.as_str() {
            "allow" => Action::Allow,
            "deny" => Action::Deny,
            other => return Err(format!("{other:?} is not an action")),
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

    /// The replacement for a row that denied something and cannot be parsed: it denies too much
    /// rather than too little. `None` for all others, and where not even its category or scope is
    /// known.
    pub(crate) fn strictest(&self) -> Option<Grant> {
        if !self.refuses() {
            return None;
        }
        let all = self.of_all(self.category().ok()?, Action::Deny).ok()?;
        Some(Grant { chain: list(&self.chain).ok()?, ..all })
    }

    /// The grant without the conditions that narrow it within its scope.
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
            // Only shown: a grant holds without it.
            asked: self.asked.as_deref().and_then(|asked| serde_json::from_str(asked).ok()),
            fleet: None,
        })
    }

    fn category(&self) -> Result<Category, String> {
        Category::parse(&self.category).ok_or_else(|| format!("{:?} is not a category", self.category))
    }

    fn scope(&self) -> Result<GrantScope, String> {
        match (self.scope.as_str(), &self.session, &self.project) {
            ("session", Some(session), _) => {
                SessionId::parse(session).map(GrantScope::Session).map_err(|error| error.to_string())
            }
            ("project", _, Some(project)) => Ok(GrantScope::Project(to_path(project))),
            ("always", _, _) => Ok(GrantScope::Always),
            (other, _, _) => Err(format!("{other:?} is not a scope, or its owner is missing")),
        }
    }

    pub(crate) fn problem(&self, why: &str) -> String {
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

/// A path as text if it is valid text, otherwise as its bytes.
mod path_text {
    use super::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize, Deserialize)]
    #[serde(untagged)]
    enum PathText {
        Text(String),
        Bytes(Vec<u8>),
    }

    pub(super) fn serialize<S: Serializer>(path: &Option<Vec<u8>>, to: S) -> Result<S::Ok, S::Error> {
        let text = |bytes: &Vec<u8>| match std::str::from_utf8(bytes) {
            Ok(text) => PathText::Text(text.to_owned()),
            Err(_) => PathText::Bytes(bytes.clone()),
        };
        path.as_ref().map(text).serialize(to)
    }

    pub(super) fn deserialize<'d, D: Deserializer<'d>>(from: D) -> Result<Option<Vec<u8>>, D::Error> {
        Ok(Option::<PathText>::deserialize(from)?.map(|path| match path {
            PathText::Text(text) => text.into_bytes(),
            PathText::Bytes(bytes) => bytes,
        }))
    }
}
