//! Reports what version 0.1 allowed and this one does not, for one user: `toolctl upgrade --check`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use parking_lot::Mutex;
use toold_engine::Engine;
use toold_engine::grant_commands::workspace_command;
use toold_engine::policy::grants::Grant;
use toold_proto::permission::{Action, Verdict};
use toold_proto::tool::{Category, SessionId};
use toold_proto::upgrade::{UpgradeChange, UpgradeKind};
use toold_store::Store;

use crate::peer::sessions::{Opener, OpenerKind};
use crate::peer::workspaces::Workspaces;

/// A report is for a person to read.
const MAX_CHANGES: usize = 1_000;
/// The number of names of each kind that are recorded; later ones are dropped.
const MAX_NAMES: usize = 256;

/// The changes for one user, and the refused requests of clients since the daemon started.
pub(crate) struct UpgradeNotes {
    engine: Arc<Engine>,
    store: Arc<Store>,
    workspaces: Arc<Workspaces>,
    refused: Mutex<RefusedRequests>,
}

/// The refused requests of clients.
#[derive(Default)]
struct RefusedRequests {
    /// By client, the variables that it was not allowed to set.
    env: BTreeMap<String, BTreeSet<String>>,
    /// The client, and the session that it was not allowed to join.
    joins: BTreeSet<(String, SessionId)>,
}

impl UpgradeNotes {
    pub(crate) fn new(engine: &Arc<Engine>, store: &Arc<Store>, workspaces: &Arc<Workspaces>) -> Self {
        let (engine, store, workspaces) = (engine.clone(), store.clone(), workspaces.clone());
        Self { engine, store, workspaces, refused: Mutex::default() }
    }

    pub(crate) fn note_env(&self, client: &str, names: &[String]) {
        let mut refused = self.refused.lock();
        if refused.env.len() >= MAX_NAMES && !refused.env.contains_key(client) {
            return;
        }
        let of_client = refused.env.entry(client.to_owned()).or_default();
        let room = MAX_NAMES.saturating_sub(of_client.len());
        of_client.extend(names.iter().take(room).cloned());
    }

    pub(crate) fn note_join(&self, client: Option<&str>, session: &SessionId) {
        let mut refused = self.refused.lock();
        if refused.joins.len() < MAX_NAMES {
            refused.joins.insert((client.unwrap_or("a client without a name").to_owned(), session.clone()));
        }
    }

    /// Everything that a person may want to know after an upgrade, by kind. With `reviewed`, grants
    /// of version 0.1 count as reviewed from now on. Blocks.
    pub(crate) fn check(&self, reviewed: bool) -> Vec<UpgradeChange> {
        let mut changes = self.changed_rules();
        changes.extend(self.grants_to_review(reviewed));
        changes.extend(self.refused_env());
        changes.extend(self.changed_workspaces());
        changes.extend(self.refused_joins());
        changes.truncate(MAX_CHANGES);
        changes
    }

    fn changed_rules(&self) -> Vec<UpgradeChange> {
        let policy = self.engine.policy.load();
        let allows = policy.rules.iter().filter(|rule| rule.action == Verdict::Allow);
        let wide = allows.filter(|rule| rule.category == Category::FileWrite && rule.pattern.as_str().contains('*'));
        let change = |pattern: &str, origin: &str| UpgradeChange {
            kind: UpgradeKind::Rule,
            subject: format!("allow file.write {pattern} at {origin}"),
            now: "does not cover files that run code later, such as .git/hooks and shell start files".to_owned(),
            replacement: "toolctl permissions grant file.write PATH, once for each such file".to_owned(),
        };
        wide.map(|rule| change(rule.pattern.as_str(), &rule.origin)).collect()
    }

    fn grants_to_review(&self, reviewed: bool) -> Vec<UpgradeChange> {
        let ids = self.store.grants_to_review().unwrap_or_else(|error| {
            tracing::warn!(%error, "the grants to review cannot be read");
            Vec::new()
        });
        let grants = self.engine.grants.snapshot();
        let open = grants.iter().filter(|grant| grant.action == Action::Allow && ids.contains(&grant.id));
        let changes = open.map(review).collect();
        if reviewed && let Err(error) = self.store.set_grants_reviewed() {
            tracing::warn!(%error, "the grants will be listed for review again");
        }
        changes
    }

    fn refused_env(&self) -> Vec<UpgradeChange> {
        let refused = self.refused.lock();
        let change = |(client, names): (&String, &BTreeSet<String>)| {
            let names: Vec<String> = names.iter().map(|name| format!("\"{name}\"")).collect();
            let names = names.join(", ");
            UpgradeChange {
                kind: UpgradeKind::Environment,
                subject: format!("{client} sets {names}"),
                now: "ignored: the client acts for a model, and its own process was not started with these values"
                    .to_owned(),
                replacement: format!(
                    "[agents] env = [..., {names}] in the configuration, or start the client with them"
                ),
            }
        };
        refused.env.iter().map(change).collect()
    }

    /// Stored sessions whose folder an agent would now have to ask for.
    fn changed_workspaces(&self) -> Vec<UpgradeChange> {
        let sessions = self.store.load_sessions().unwrap_or_else(|error| {
            tracing::warn!(%error, "the sessions cannot be read");
            Vec::new()
        });
        let mut folders: BTreeMap<String, String> = BTreeMap::new();
        for session in sessions {
            let opener: Option<Opener> = session.owner.as_deref().and_then(|owner| serde_json::from_str(owner).ok());
            // Version 0.1 did not record who opened a session.
            let is_persons = opener.is_some_and(|opener| matches!(opener.kind, OpenerKind::Person | OpenerKind::Fleet));
            let client = session.client.map_or("a client without a name".to_owned(), |client| client.name);
            for folder in std::iter::once(session.cwd).chain(session.roots) {
                if !is_persons && !self.workspaces.is_chosen_for(&client, &folder) {
                    folders.entry(folder.display().to_string()).or_insert_with(|| client.clone());
                }
            }
        }
        let change = |(folder, client): (String, String)| UpgradeChange {
            kind: UpgradeKind::Workspace,
            subject: format!("{client} worked in {folder}"),
            now: "you are asked once before an agent works there; your own clients work there as before".to_owned(),
            replacement: workspace_command(&folder),
        };
        folders.into_iter().map(change).collect()
    }

    fn refused_joins(&self) -> Vec<UpgradeChange> {
        let refused = self.refused.lock();
        let change = |(client, session): &(String, SessionId)| UpgradeChange {
            kind: UpgradeKind::Join,
            subject: format!("{client} tried to join session {session}"),
            now: "agents join only sessions that their own program opened, and none in yolo mode".to_owned(),
            replacement: format!("toolctl sessions share {session}, which prints a code for the agent's session_id"),
        };
        refused.joins.iter().map(change).collect()
    }
}

fn review(grant: &Grant) -> UpgradeChange {
    UpgradeChange {
        kind: UpgradeKind::Grant,
        subject: format!("grant {}: allow {} {}", grant.id, grant.category, grant.pattern.as_str()),
        now: "still holds, except for files that run code later; it was granted in version 0.1 with a wildcard"
            .to_owned(),
        replacement: format!("keep it, or: toolctl permissions revoke {}", grant.id),
    }
}
