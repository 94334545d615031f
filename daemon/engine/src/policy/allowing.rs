//! The narrowest pattern that a grant needs to allow something, if any grant does.

use std::path::Path;
use std::time::SystemTime;

use toold_proto::permission::{Action, Verdict};
use toold_proto::session::Mode;
use toold_proto::tool::Category;

use crate::need::Need;
use crate::policy::grants::{Grant, GrantScope};
use crate::policy::pattern::Pattern;
use crate::policy::suggest::{exact_pattern, suggestions};
use crate::policy::{Policy, Subject, decide, is_secret};

/// The pattern of a grant, for the chain of `subject`, that allows this need in the mode `default`, or in `plan` if that is
/// the mode. `None` when no pattern does: a rule, a grant or the mode `plan` denies it, it is a secret or a control file, or
/// only `**` covers it.
pub fn allowing_pattern(policy: &Policy, grants: &[Grant], subject: &Subject, need: &Need) -> Option<String> {
    // A person can name a secret in a grant. Nobody is led to it.
    if matches!(need.category(), Category::FileRead | Category::FileWrite) && is_secret(Path::new(&need.target)) {
        return None;
    }
    let wider = suggestions(need, policy.home.as_deref()).into_iter().map(|suggestion| suggestion.pattern);
    let mode = match subject.mode {
        Mode::Plan => Mode::Plan,
        Mode::Default | Mode::AcceptEdits | Mode::Yolo => Mode::Default,
    };
    let subject = Subject { mode, ..subject.clone() };
    exact_pattern(need).into_iter().chain(wider).find(|text| {
        let Ok(pattern) = Pattern::parse_to_use(need.category(), text) else { return false };
        let grant = Grant {
            id: String::new(),
            category: need.category(),
            pattern,
            action: Action::Allow,
            scope: GrantScope::Always,
            tools: None,
            chain: subject.chain.to_vec(),
            by: None,
            granted_at: SystemTime::UNIX_EPOCH,
            expires_at: None,
            asked: None,
            fleet: None,
        };
        let with_it: Vec<Grant> = grants.iter().cloned().chain([grant]).collect();
        decide(policy, &with_it, &subject, need).verdict == Verdict::Allow
    })
}
