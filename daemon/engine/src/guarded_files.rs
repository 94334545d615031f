//! The files that no command reads or changes that runs without a person's word: besides those that the daemon guards by
//! itself, those that a rule or a refusal denies, or that a rule asks about. And the hosts that rules and grants allow to it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use toold_proto::cut;
use toold_proto::permission::{Action, Verdict};
use toold_proto::tool::{Category, ToolName};

use crate::Engine;
use crate::cx::Cx;
use crate::need::Need;
use crate::policy::grants::{Grant, GrantScope};
use crate::policy::pattern::{Pattern, Specificity};
use crate::policy::{CallingAgent, Policy, Rule, is_control};
use crate::session::Session;

/// Characters that mean something in a glob.
const OF_GLOBS: [char; 8] = ['*', '?', '[', ']', '{', '}', '!', '\\'];

/// A policy, and its patterns for files as they hold in a session.
#[derive(Clone, Debug, Default)]
pub struct GuardedFiles {
    policy: Arc<Policy>,
    read: StrictPatterns,
    write: StrictPatterns,
}

/// See [`GuardedFiles::texts`].
pub type PatternText<T> = (Category, Option<Verdict>, T);

/// The patterns of one category.
#[derive(Clone, Debug, Default)]
struct StrictPatterns {
    denied: Vec<Pattern>,
    asked: Vec<Pattern>,
    /// Exceptions from those that ask.
    allowed: Vec<Pattern>,
}

impl Cx {
    /// The files that no command of this call reads or changes without a person's word.
    pub fn guarded_files(&self) -> GuardedFiles {
        GuardedFiles::of(&self.engine, &self.session, self.agent_ref().or(self.caller.agent))
    }

    /// The patterns of hosts that a rule or a grant of a person allows to the commands of this call.
    pub fn allowed_hosts(&self) -> Vec<String> {
        let (policy, now) = (self.engine.policy.load(), SystemTime::now());
        let caller = CallingAgent::of(&self.session, self.agent_ref(), self.caller.agent);
        let is_rule = |rule: &&Rule| {
            rule.category == Category::Network && rule.action == Verdict::Allow && is_for(rule, &self.session, &caller)
        };
        let grants = self.engine.grants.snapshot();
        let is_grant = |grant: &&Grant| {
            grant.category == Category::Network
                && grant.action == Action::Allow
                && grant.expires_at.is_none_or(|end| end > now)
                && grants_to(grant, &self.session)
        };
        let rules = policy.rules.iter().filter(is_rule).map(|rule| &rule.pattern);
        let patterns = rules.chain(grants.iter().filter(is_grant).map(|grant| &grant.pattern));
        patterns.map(|pattern| pattern.as_str().to_owned()).collect()
    }
}

impl GuardedFiles {
    /// The guarded files of a session as they are now. Of rules for some tools only, those for `bash` count, and of rules for some
    /// agent, those for the session's client, or for `agent`, which asks about a tool of its own.
    pub fn of(engine: &Engine, session: &Session, agent: Option<&str>) -> Self {
        let (policy, grants) = (engine.policy.load_full(), engine.grants.snapshot());
        let patterns = |category| StrictPatterns::of(category, &policy, &grants, session, agent);
        let (read, write) = (patterns(Category::FileRead), patterns(Category::FileWrite));
        Self { policy, read, write }
    }

    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Whether a rule or a refusal keeps this file or folder from being read. `**` is about the files that commands name.
    pub fn keeps_from_reading(&self, path: &Path, is_folder: bool) -> bool {
        self.read.hold(Category::FileRead, path, is_folder)
    }

    /// Whether a rule or a refusal keeps this file or folder as it is.
    pub fn keeps_from_writing(&self, path: &Path, is_folder: bool) -> bool {
        self.write.hold(Category::FileWrite, path, is_folder)
    }

    /// Whether all files in a folder are as they are kept, so that nothing can be free there that writes.
    pub fn keeps_all(&self, folder: &Path) -> bool {
        self.write.all().any(Pattern::is_any) || self.keeps_from_writing(folder, true)
    }

    /// Whether a file or a folder runs code later or configures toold, or a rule or a refusal keeps it as it is.
    pub fn is_kept(&self, path: &Path, is_folder: bool) -> bool {
        is_control(path) || self.policy.is_protected_place(path) || self.keeps_from_writing(path, is_folder)
    }

    /// Whether such files may lie in what a link leads to, under the link's own path.
    pub fn link_may_hold_kept(&self, link: &Path) -> bool {
        self.policy.holds_protected_places(link)
    }

    /// Those that a pattern about reading names without a wildcard, or as the folder of all that it matches.
    pub fn named_to_read(&self) -> impl Iterator<Item = PathBuf> {
        self.read.all().filter_map(named_place)
    }

    /// The same for writing.
    pub fn named_to_write(&self) -> impl Iterator<Item = PathBuf> {
        self.write.all().filter_map(named_place)
    }

    /// Its patterns, each with its category and the verdict of its rule; none for a protected place of the configuration. Two
    /// that have the same ones guard the same files.
    pub fn texts(&self) -> impl Iterator<Item = PatternText<&str>> {
        let own = self.policy.own_protected_patterns().map(|text| (Category::FileWrite, None, text));
        own.chain(self.read.texts(Category::FileRead)).chain(self.write.texts(Category::FileWrite))
    }
}

impl StrictPatterns {
    fn of(category: Category, policy: &Policy, grants: &[Grant], session: &Session, agent: Option<&str>) -> Self {
        let caller = CallingAgent::of(session, agent, None);
        let rules = |action: Verdict| {
            let holds = move |rule: &&Rule| {
                rule.category == category
                    && rule.action == action
                    && is_for(rule, session, &caller)
                    && rule.effect.is_none()
            };
            policy.rules.iter().filter(holds).map(|rule| rule.pattern.clone())
        };
        let is_refusal =
            |grant: &&Grant| grant.category == category && grant.action == Action::Deny && grants_to(grant, session);
        let refused = grants.iter().filter(is_refusal).map(|grant| grant.pattern.clone());
        let asked: Vec<Pattern> = rules(Verdict::Ask).collect();
        let allowed = if asked.is_empty() { Vec::new() } else { rules(Verdict::Allow).collect() };
        Self { denied: rules(Verdict::Deny).chain(refused).collect(), asked, allowed }
    }

    fn all(&self) -> impl Iterator<Item = &Pattern> {
        self.denied.iter().chain(&self.asked)
    }

    fn hold(&self, category: Category, path: &Path, is_folder: bool) -> bool {
        if self.denied.is_empty() && self.asked.is_empty() {
            return false;
        }
        let need = Need::new(category, path.to_string_lossy());
        let best = |patterns: &[Pattern]| -> Option<Specificity> {
            let narrow = patterns.iter().filter(|pattern| !pattern.is_any());
            narrow.filter_map(|pattern| pattern.matches(&need)).max()
        };
        // A folder with an exception in it is not kept as a whole.
        let has_exceptions = || is_folder && self.allowed.iter().any(|allowed| may_lie_below(allowed, path));
        let is_excepted = |asked: Specificity| best(&self.allowed) > Some(asked) || has_exceptions();
        best(&self.denied).is_some() || best(&self.asked).is_some_and(|asked| !is_excepted(asked))
    }

    fn texts(&self, category: Category) -> impl Iterator<Item = PatternText<&str>> {
        let lists = [(Verdict::Deny, &self.denied), (Verdict::Ask, &self.asked), (Verdict::Allow, &self.allowed)];
        lists.into_iter().flat_map(move |(verdict, list)| {
            list.iter().map(move |pattern| (category, Some(verdict), pattern.as_str()))
        })
    }
}

/// The tool that runs commands on floors.
const BASH: &str = "bash";

fn is_for(rule: &Rule, session: &Session, caller: &CallingAgent) -> bool {
    let is_near = |folder: &Path| session.cwd.starts_with(folder) || folder.starts_with(&session.cwd);
    rule.project.as_deref().is_none_or(|project| session.project() == project)
        && rule.cwd.as_deref().is_none_or(is_near)
        && rule.agent.is_none_or(|agent| caller.is(agent, rule.action))
        && rule.tools.as_ref().is_none_or(|tools| ToolName::parse(BASH).is_ok_and(|bash| tools.is_match(&bash)))
}

fn grants_to(grant: &Grant, session: &Session) -> bool {
    grant.chain.is_empty()
        && grant.tools.as_ref().is_none_or(|tools| tools.iter().any(|tool| tool == BASH))
        && match &grant.scope {
            GrantScope::Session(of) => *of == session.id || session.above().contains(&of),
            GrantScope::Project(of) => of == session.project() || of == session.grant_project(),
            GrantScope::Always => true,
        }
}

/// Whether a pattern may match something below a folder.
fn may_lie_below(pattern: &Pattern, folder: &Path) -> bool {
    let (text, folder) = (pattern.as_str(), format!("{}/", folder.display()));
    let certain = text.find(OF_GLOBS).map_or(text, |end| cut::before(text, end));
    !pattern.is_any() && (certain.starts_with(&folder) || certain.len() < text.len() && folder.starts_with(certain))
}

/// The file that a pattern without a wildcard names, or the folder of `FOLDER/**`.
fn named_place(pattern: &Pattern) -> Option<PathBuf> {
    let text = pattern.as_str();
    let place = text.strip_suffix("/**").unwrap_or(text);
    (place.starts_with('/') && !place.contains(OF_GLOBS)).then(|| PathBuf::from(place))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_texts_tell_what_is_denied_from_what_is_asked_about() {
        let patterns = |texts: &[&str]| -> Vec<Pattern> {
            texts.iter().map(|text| Pattern::parse(Category::FileRead, text).unwrap()).collect()
        };
        let files = |denied: &[&str], asked: &[&str]| {
            let allowed = patterns(&["/w/b/free"]);
            let read = StrictPatterns { denied: patterns(denied), asked: patterns(asked), allowed };
            GuardedFiles { read, ..GuardedFiles::default() }
        };
        let (asks, denies) = (files(&["/w/a"], &["/w/b/**", "/w/c"]), files(&["/w/a", "/w/b/**"], &["/w/c"]));
        let free = Path::new("/w/b/free");
        assert!(!asks.keeps_from_reading(free, false) && denies.keeps_from_reading(free, false));
        assert!(!asks.texts().eq(denies.texts()));
        assert!(asks.texts().eq(asks.clone().texts()));
    }
}
