//! Who may do what: a pure function of rules, grants, mode and need.
//!
//! [`decide`] is the whole of it. Asking a person is [`crate::asks`]; both fail closed.

mod grants;
pub mod pattern;
mod secrets;

pub use grants::{Grant, GrantScope, Grants};

use std::path::{Path, PathBuf};

use toold_proto::permission::{Action, Verdict};
use toold_proto::session::Mode;
use toold_proto::tool::{Category, SessionId, ToolName};

use crate::need::Need;
use crate::policy::pattern::{Pattern, Specificity};
use crate::tool::Origin;

/// The rules of the configuration. Replaced as a whole.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    pub rules: Vec<Rule>,
    /// Rules that could not be read, with their place. While there are any, every need is denied
    /// that is not allowed by its category's default.
    pub broken: Vec<String>,
    /// Folders and files that no tool may write, such as the daemon's own.
    pub control: Vec<PathBuf>,
    /// Files that no tool may read either, such as the socket and the database.
    pub private: Vec<PathBuf>,
}

#[derive(Clone, Debug)]
pub struct Rule {
    pub category: Category,
    pub pattern: Pattern,
    pub action: Verdict,
    /// Only for these tools, as globs; `None` for all.
    pub tools: Option<globset::GlobSet>,
    /// Only in calls whose `cwd` lies in this folder.
    pub cwd: Option<PathBuf>,
    /// A project's rule allows only once the project is trusted; it counts before the user's.
    pub project: Option<PathBuf>,
    /// Where it stands, for people: file and place.
    pub origin: String,
}

/// Who needs something.
#[derive(Clone, Debug)]
pub struct Subject<'a> {
    pub tool: &'a ToolName,
    pub origin: Origin,
    pub session: &'a SessionId,
    pub mode: Mode,
    pub cwd: &'a Path,
    /// The session's own folder and its roots.
    pub roots: &'a [&'a Path],
    pub project: &'a Path,
    /// The plugins between the caller and the need, the outermost first.
    pub chain: &'a [String],
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    pub verdict: Verdict,
    /// The rule that decided, in words that name where it stands.
    pub rule: String,
}

impl Decision {
    fn new(verdict: Verdict, rule: impl Into<String>) -> Self {
        Self { verdict, rule: rule.into() }
    }
}

/// What the policy says to one need. Steps in order; the first that has something to say decides.
pub fn decide(policy: &Policy, grants: &[Grant], subject: &Subject, need: &Need) -> Decision {
    if let Some(rule) = hard_deny(policy, need) {
        return Decision::new(Verdict::Deny, rule);
    }
    let rules: Vec<(&Rule, Specificity)> = matching_rules(policy, subject, need);
    let grants: Vec<&Grant> = grants.iter().filter(|grant| grant.matches(subject, need)).collect();
    if let Some((rule, _)) = rules.iter().find(|(rule, _)| rule.action == Verdict::Deny) {
        return Decision::new(Verdict::Deny, format!("rule at {}", rule.origin));
    }
    if let Some(grant) = grants.iter().find(|grant| grant.action == Action::Deny) {
        return Decision::new(Verdict::Deny, grant.describe());
    }
    if let Some(decision) = by_mode(subject, need) {
        return decision;
    }
    let nearest = rules.iter().max_by(|(a, a_fits), (b, b_fits)| {
        let strict = |rule: &Rule| rule.action == Verdict::Ask;
        (a_fits, a.project.is_some(), strict(a)).cmp(&(b_fits, b.project.is_some(), strict(b)))
    });
    if let Some((rule, _)) = nearest {
        if rule.action == Verdict::Allow && !policy.broken.is_empty() {
            return Decision::new(Verdict::Deny, format!("a rule cannot be read: {}", policy.broken[0]));
        }
        if rule.action == Verdict::Allow {
            return Decision::new(Verdict::Allow, format!("rule at {}", rule.origin));
        }
    }
    if let Some(grant) = grants.first() {
        return Decision::new(Verdict::Allow, grant.describe());
    }
    if let Some((rule, _)) = nearest {
        return Decision::new(Verdict::Ask, format!("rule at {}", rule.origin));
    }
    if !policy.broken.is_empty() && default_of(subject, need) != Verdict::Allow {
        return Decision::new(Verdict::Deny, format!("a rule cannot be read: {}", policy.broken[0]));
    }
    Decision::new(default_of(subject, need), format!("default of {}", need.category))
}

/// What no rule and no mode lifts.
fn hard_deny(policy: &Policy, need: &Need) -> Option<String> {
    if let Some(reason) = &need.forbidden {
        return Some(reason.clone());
    }
    if !matches!(need.category, Category::FileRead | Category::FileWrite) {
        return None;
    }
    let path = Path::new(&need.target);
    if let Some(private) = policy.private.iter().find(|private| path.starts_with(private)) {
        return Some(format!("the daemon's own files ({})", private.display()));
    }
    if need.category == Category::FileWrite {
        if let Some(control) = policy.control.iter().find(|control| path.starts_with(control)) {
            return Some(format!("control files ({})", control.display()));
        }
        if let Some(name) = secrets::control_name(path) {
            return Some(format!("control files ({name})"));
        }
    }
    secrets::secret_name(path).map(|pattern| format!("secrets ({pattern})"))
}

fn matching_rules<'a>(policy: &'a Policy, subject: &Subject, need: &Need) -> Vec<(&'a Rule, Specificity)> {
    policy
        .rules
        .iter()
        .filter(|rule| rule.category == need.category)
        .filter(|rule| rule.tools.as_ref().is_none_or(|tools| tools.is_match(subject.tool.as_str())))
        .filter(|rule| rule.cwd.as_ref().is_none_or(|cwd| subject.cwd.starts_with(cwd)))
        .filter(|rule| rule.project.as_ref().is_none_or(|project| subject.project == project))
        .filter_map(|rule| rule.pattern.matches(need).map(|fits| (rule, fits)))
        .collect()
}

fn by_mode(subject: &Subject, need: &Need) -> Option<Decision> {
    match subject.mode {
        Mode::Default => None,
        Mode::Yolo => Some(Decision::new(Verdict::Allow, "mode yolo")),
        Mode::Plan => match need.category {
            Category::FileRead => None,
            Category::Plugin if subject.chain.is_empty() => None,
            Category::FileWrite
            | Category::Shell
            | Category::Network
            | Category::Mcp
            | Category::Agent
            | Category::Plugin => Some(Decision::new(Verdict::Deny, "mode plan: reads only")),
        },
        Mode::AcceptEdits => {
            let inside = need.category == Category::FileWrite && is_inside(subject, need);
            inside.then(|| Decision::new(Verdict::Allow, "mode accept_edits"))
        }
    }
}

fn default_of(subject: &Subject, need: &Need) -> Verdict {
    match need.category {
        Category::FileRead if is_inside(subject, need) => Verdict::Allow,
        Category::Plugin if matches!(subject.origin, Origin::Builtin | Origin::UserPlugin) => Verdict::Allow,
        Category::Agent => Verdict::Allow,
        Category::Network => Verdict::Deny,
        Category::FileRead | Category::FileWrite | Category::Shell | Category::Mcp | Category::Plugin => Verdict::Ask,
    }
}

fn is_inside(subject: &Subject, need: &Need) -> bool {
    let path = Path::new(&need.target);
    subject.roots.iter().any(|root| path.starts_with(root))
}
