//! `permissions.review`: the uses of grants, and which of them could be dropped or merged.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;
use std::time::{Duration, SystemTime};

use jsonrpsee::types::ErrorObjectOwned;
use toold_engine::Engine;
use toold_engine::need::Need;
use toold_engine::policy::grants::Grant;
use toold_engine::policy::suggest::suggestions;
use toold_engine::time::rfc3339;
use toold_host::environment::Environment;
use toold_host::shell_grammar::{self, Surroundings};
use toold_proto::daemon::NoParams;
use toold_proto::permission::{Action, GrantInfo, PermissionReview, ReviewProposal};
use toold_proto::tool::Category;
use toold_store::grants::GrantUses;

use crate::peer::sessions::persistence::with_store;
use crate::rpc::MethodRequest;
use crate::rpc::blocking::blocking;
use crate::rpc::error::{NOT_KEPT, refused};

/// A grant that was not used for so long may be dropped.
const UNUSED: Duration = Duration::from_secs(30 * 24 * 3600);
/// So many grants that one pattern covers may be merged.
const MERGED: usize = 3;

pub(super) async fn review(request: MethodRequest, _: NoParams) -> Result<PermissionReview, ErrorObjectOwned> {
    let engine = request.services.engine.clone();
    let environment = request.services.config.options.of_children();
    let uses = grant_uses(&request).await?;
    blocking(move || {
        let grants = engine.grants.snapshot();
        let now = SystemTime::now();
        let dropped = grants.iter().filter_map(|grant| unused(grant, uses.get(&grant.id), now));
        let dropped: Vec<ReviewProposal> = dropped.collect();
        let is_dropped =
            |id: &str| dropped.iter().any(|drop| matches!(drop, ReviewProposal::Drop { id: of, .. } if of == id));
        let used: Vec<&Grant> = grants.iter().filter(|grant| !is_dropped(&grant.id)).collect();
        let proposals = merges(&engine, &environment, &used).into_iter().chain(dropped.iter().cloned()).collect();
        let mut grants: Vec<(SystemTime, GrantInfo)> =
            grants.iter().map(|grant| (last_use(grant, uses.get(&grant.id)), with_uses(grant, &uses))).collect();
        grants.sort_by_key(|(used, _)| *used);
        PermissionReview { grants: grants.into_iter().map(|(_, grant)| grant).collect(), proposals }
    })
    .await
}

/// How often each grant has decided. Waits for the audit log.
///
/// # Errors
/// The database cannot be read.
pub(super) async fn grant_uses(request: &MethodRequest) -> Result<HashMap<String, GrantUses>, ErrorObjectOwned> {
    let uses = with_store(&request.services.store, |store| store.grant_uses()).await;
    uses.map_err(|error| refused(NOT_KEPT, &format!("the uses of grants cannot be read: {error}")))
}

pub(super) fn with_uses(grant: &Grant, uses: &HashMap<String, GrantUses>) -> GrantInfo {
    let uses = uses.get(&grant.id);
    GrantInfo { uses: uses.map_or(0, |uses| uses.count), used_at: uses.map(|uses| rfc3339(uses.last)), ..grant.info() }
}

/// When it was used last, or given.
fn last_use(grant: &Grant, uses: Option<&GrantUses>) -> SystemTime {
    uses.map_or(grant.granted_at, |uses| uses.last.max(grant.granted_at))
}

/// Refusals stay: that nobody tried is no reason to allow it.
fn unused(grant: &Grant, uses: Option<&GrantUses>, now: SystemTime) -> Option<ReviewProposal> {
    let idle = now.duration_since(last_use(grant, uses)).ok()?;
    let days = idle.as_secs() / (24 * 3600);
    (grant.action == Action::Allow && idle >= UNUSED).then(|| ReviewProposal::Drop { id: grant.id.clone(), days })
}

/// The grants that one pattern could replace, which an ask for any of them would have suggested. Each is in one proposal
/// at most, that of the narrowest pattern.
fn merges(engine: &Engine, environment: &Environment, grants: &[&Grant]) -> Vec<ReviewProposal> {
    let policy = engine.policy.load();
    let mut by_pattern: BTreeMap<(String, usize, String), Vec<&Grant>> = BTreeMap::new();
    for grant in grants {
        let is_narrow = grant.action == Action::Allow && grant.expires_at.is_none() && grant.pattern.is_exact();
        let Some(need) = is_narrow.then(|| need_of(grant, environment)).flatten() else { continue };
        let alike = format!("{:?}", (grant.category, &grant.scope, &grant.tools, &grant.chain));
        for (width, wider) in suggestions(&need, policy.home.as_deref()).into_iter().enumerate().skip(1) {
            by_pattern.entry((alike.clone(), width, wider.pattern)).or_default().push(grant);
        }
    }
    let mut taken = HashSet::new();
    let mut proposals = Vec::new();
    let mut narrow_first: Vec<_> = by_pattern.into_iter().collect();
    narrow_first.sort_by_key(|((_, width, _), _)| *width);
    for ((_, _, pattern), covered) in narrow_first {
        let ids: Vec<String> = covered.iter().map(|grant| grant.id.clone()).filter(|id| !taken.contains(id)).collect();
        if ids.len() >= MERGED {
            taken.extend(ids.iter().cloned());
            proposals.push(ReviewProposal::Merge { ids, pattern });
        }
    }
    proposals
}

/// The need that an exact pattern was made for.
fn need_of(grant: &Grant, environment: &Environment) -> Option<Need> {
    let pattern = grant.pattern.as_str();
    match grant.category {
        Category::Shell => {
            // The files of the command do not matter here, so nothing is looked at.
            let may_read = &mut |_: &Path| false;
            let surroundings = &mut Surroundings { cwd: Path::new("/"), folders: &[], environment, may_read };
            let needs = shell_grammar::explain(pattern, surroundings).into_iter().flat_map(|part| part.needs);
            let mut commands = needs.filter(|need| need.category() == Category::Shell);
            commands.next().filter(|need| commands.next().is_none() && grant.pattern.matches(need).is_some())
        }
        // An escaped pattern is not the target.
        _ if pattern.contains('\\') => None,
        category => Some(Need::new(category, pattern)),
    }
}
