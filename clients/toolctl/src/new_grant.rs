//! Grants that a person makes here.

use toold_proto::permission::{Action, GrantPermission, Scope};
use toold_proto::tool::Category;

/// A grant that allows the pattern to all tools, to calls that no plugin makes, without an end. `cwd` tells the project.
pub(crate) fn allowing(category: Category, pattern: String, scope: Scope, cwd: Option<String>) -> GrantPermission {
    GrantPermission {
        category,
        pattern,
        scope,
        action: Action::Allow,
        tools: None,
        session_id: None,
        cwd,
        chain: Vec::new(),
        expires_in: None,
    }
}
