//! Revokes grants of tools that changed.

use toold_engine::Engine;
use toold_engine::need::{Need, NeedKind};
use toold_engine::permission::revoke;
use toold_proto::permission::Action;

/// Revokes every grant that allows this target. False when one could not be revoked.
pub(crate) fn revoke_grants(engine: &Engine, target: String) -> bool {
    // A grant for tools that only read may have counted for it.
    let need = Need::of_kind(NeedKind::Mcp { reads_only: true }, target);
    let grants = engine.grants.snapshot();
    let mut all_revoked = true;
    for grant in grants.iter() {
        let allows = grant.category == need.category()
            && grant.action == Action::Allow
            && grant.pattern.matches(&need).is_some();
        if !allows {
            continue;
        }
        tracing::warn!(target = need.target, grant = grant.id, "a tool changed: its grant is revoked");
        if let Err(error) = revoke(engine, &grant.id) {
            tracing::error!(target = need.target, grant = grant.id, %error, "can't revoke a grant");
            all_revoked = false;
        }
    }
    all_revoked
}
