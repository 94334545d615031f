//! The only place that knows how a line is judged: the rest of this test uses [`judge`].

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use toold_engine::effects::EffectSet;
use toold_engine::need::Need;
use toold_engine::policy::rules::{RuleConfig, RulePlace};
use toold_engine::policy::{CallingAgent, Policy, Subject, check, decide};
use toold_engine::tool::Origin;
use toold_host::environment::Environment;
use toold_host::sandbox::network::hosts::NetworkHosts;
use toold_host::sandbox::{LineToConfine, SessionRecords, confined_effects_of};
use toold_host::shell_grammar::{Surroundings, as_read_by, needs};
use toold_proto::level::Level;
use toold_proto::permission::{CheckedPart, Verdict};
use toold_proto::session::Mode;
use toold_proto::tool::{Category, SessionId, ToolName};

/// Where a line would run.
#[derive(Clone, Debug)]
pub(crate) struct CommandSetting {
    /// The session's folder.
    pub(crate) workspace: PathBuf,
    pub(crate) home: PathBuf,
    /// The daemon's configuration, which no tool may write.
    pub(crate) config: PathBuf,
}

/// What the test project's repository ignores.
const IGNORED: [&str; 7] = [".env", "target", "build", "dist", "node_modules", ".venv", "logs"];

/// One rule, as the data files write it: `allow shell git log *`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RuleLine {
    pub(crate) action: String,
    pub(crate) category: String,
    pub(crate) pattern: String,
}

impl RuleLine {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut parts = text.splitn(3, ' ');
        let (action, category, pattern) = (parts.next()?, parts.next()?, parts.next()?);
        let known = ["allow", "ask", "deny"].contains(&action) && Category::parse(category).is_some();
        known.then(|| Self { action: action.into(), category: category.into(), pattern: pattern.trim().into() })
    }

    pub(crate) fn shown(&self) -> String {
        format!("{} {} {}", self.action, self.category, self.pattern)
    }
}

/// The policy's verdict on one line, and on each of its needs.
#[derive(Clone, Debug)]
pub(crate) struct Judged {
    pub(crate) verdict: Verdict,
    pub(crate) parts: Vec<JudgedPart>,
}

#[derive(Clone, Debug)]
pub(crate) struct JudgedPart {
    pub(crate) category: Category,
    pub(crate) target: String,
    pub(crate) verdict: Verdict,
    /// The rule that decided.
    pub(crate) rule: String,
    pub(crate) effects: EffectSet,
}

/// The verdict of the default configuration with these rules on a line that an agent wants to run in the workspace.
pub(crate) fn judge(line: &str, place: &CommandSetting, rules: &[RuleLine]) -> Judged {
    judge_at(Level::Read, line, place, rules)
}

/// The same at a level, where commands can be confined.
pub(crate) fn judge_at(level: Level, line: &str, place: &CommandSetting, rules: &[RuleLine]) -> Judged {
    judge_in("bash", level, line, place, rules)
}

/// The same for another shell.
pub(crate) fn judge_in(shell: &str, level: Level, line: &str, place: &CommandSetting, rules: &[RuleLine]) -> Judged {
    let policy = policy(place, rules);
    let (tool, session) = (ToolName::parse("bash").unwrap(), SessionId::parse("s").unwrap());
    let roots = [Cow::Borrowed(place.workspace.as_path())];
    let subject = Subject {
        tool: Some(&tool),
        origin: Origin::Builtin,
        session: &session,
        above: &[],
        mode: Mode::Default,
        level,
        cwd: &place.workspace,
        roots: &roots,
        project: &place.workspace,
        grant_project: &place.workspace,
        chain: &[],
        undeclared: &[],
        made: &[],
        profile: None,
        agent: CallingAgent::default(),
    };
    let decided = |need: &Need| decide(&policy, &[], &subject, need);
    let mut may_read =
        |path: &Path| decided(&Need::new(Category::FileRead, path.to_string_lossy())).verdict == Verdict::Allow;
    let environment =
        Environment::default().with([("HOME", place.home.as_os_str()), ("PATH", "/usr/bin:/bin".as_ref())]);
    let mut surroundings =
        Surroundings { cwd: &place.workspace, folders: &roots, environment: &environment, may_read: &mut may_read };
    let mut needs = as_read_by(shell, line, |line| needs(line, &mut surroundings));
    // `undo` keeps what is in files that Git does not ignore.
    let is_ignored = |path: &&Path| path.iter().any(|name| IGNORED.iter().any(|ignored| name == *ignored));
    let keeps = |files: &[&Path]| !files.iter().any(is_ignored);
    let places = [place.workspace.clone()];
    let confined = LineToConfine {
        needs: &needs,
        places: &places,
        cwd: &place.workspace,
        made: &[],
        records: &SessionRecords { keeps: &keeps, ..SessionRecords::NONE },
        hosts: Some(&NetworkHosts::default()),
    };
    let confined = confined_effects_of(level, &confined);
    let is_plain = |need: &Need| need.reads_only() || need.category() == Category::FileRead;
    if !needs.iter().all(is_plain) {
        needs.iter_mut().for_each(|need| need.confined = confined);
    }
    let checked = check(&policy, &[], &subject, &needs);
    let part = |(need, part): (&Need, CheckedPart)| JudgedPart {
        category: part.category,
        target: part.target,
        verdict: part.verdict,
        rule: match need.unsure() {
            Some(why) => format!("{} ({why})", part.rule),
            None => part.rule,
        },
        effects: need.effects(),
    };
    let parts = match checked.parts.is_empty() {
        true => needs
            .iter()
            .map(|need| CheckedPart {
                allowed_with: None,
                category: need.category(),
                target: need.target.clone(),
                verdict: checked.verdict,
                rule: checked.rule.clone(),
            })
            .collect(),
        false => checked.parts,
    };
    Judged { verdict: checked.verdict, parts: needs.iter().zip(parts).map(part).collect() }
}

fn policy(place: &CommandSetting, rules: &[RuleLine]) -> Policy {
    let rules = rules.iter().map(|rule| {
        let config = RuleConfig {
            category: rule.category.clone(),
            pattern: rule.pattern.replace("{project}", &place.workspace.to_string_lossy()),
            action: rule.action.clone(),
            tools: None,
            cwd: None,
            effect: None,
            agent: None,
        };
        let place = RulePlace {
            origin: "the corpus".to_owned(),
            project: None,
            trusted: true,
            base: Some(place.home.clone()),
            home: Some(place.home.clone()),
        };
        (config, place)
    });
    let base =
        Policy { home: Some(place.home.clone()), control: vec![place.config.clone()].into(), ..Policy::default() };
    let policy = base.with_rules(rules);
    let unread = [&policy.broken, &policy.unmatchable].map(|problems| problems.join("; ")).concat();
    assert!(unread.is_empty() && policy.closed.is_empty(), "rules that cannot be read: {unread}");
    policy
}
