//! The permission policy: a pure function of rules, grants, mode and need.
//!
//! [`decide`] is the whole of it. Asking a person is [`crate::asks`]; both fail closed.

#![warn(clippy::string_slice)]

pub mod allowing;
#[doc(hidden)]
pub mod fuzz;
pub mod grants;
mod left_out;
pub mod path_set;
pub mod pattern;
pub mod protected_writes;
pub mod rules;
mod secrets;
pub mod suggest;
pub mod targets;
mod unnamed;

use std::borrow::Cow;
use std::cmp::Reverse;
use std::path::{Component, Path, PathBuf};

use globset::{Glob, GlobSet, GlobSetBuilder};
use toold_proto::agent_names::is_client_named;
use toold_proto::agent_request::DecidedBy;
use toold_proto::effect::Effect;
use toold_proto::level::Level;
use toold_proto::permission::{Action, CheckedPart, CheckedPermission, Verdict};
use toold_proto::session::Mode;
use toold_proto::tool::{Category, SessionId, ToolName};

use crate::level::{ConfiguredLevels, freed_by};
use crate::need::{HostListing, Need, NeedKind};
use crate::plugin_limits::Undeclared;
use crate::policy::grants::Grant;
use crate::policy::path_set::{PathSet, in_one_form, is_at_or_below, is_in_one_form};
use crate::policy::pattern::wild::Wild;
use crate::policy::pattern::{Pattern, Specificity, check_tool_glob, is_exception};
use crate::policy::protected_writes::ProtectedWrite;
use crate::session::{Session, SessionOwner};
use crate::tool::Origin;

/// The rules of the configuration. Replaced as a whole.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    pub rules: Vec<Rule>,
    /// Rules that are invalid, with their locations. While there are any, every need is denied
    /// unless its category's default allows it.
    pub broken: Vec<String>,
    /// Categories in which a rule could not be read: it may have been one that denies, so all is denied.
    pub closed: Vec<BrokenRule>,
    /// Rules that allow but can match nothing, with their locations. They restrict nothing.
    pub unmatchable: Vec<String>,
    /// Folders and files that no tool may write, such as the daemon's own.
    pub control: PathSet,
    /// Files that no tool may read either, such as the socket and the database.
    pub private: PathSet,
    /// Places that run code later, in addition to the built-in ones.
    pub protected_writes: Vec<ProtectedWrite>,
    /// The daemon's state folder, with the results of all sessions: it is in no session's folder,
    /// even if it is below one.
    pub state: Option<PathBuf>,
    /// The home folder: a session in it, or above it, may not read all of it without being asked.
    pub home: Option<PathBuf>,
    /// The folder that programs use in place of `.config` in the home folder, by `XDG_CONFIG_HOME`.
    pub config_home: Option<PathBuf>,
    /// Why refusals that people made may be lost, as a sentence for the user. While there is a
    /// reason, everything that would be allowed is asked about.
    pub lost_refusals: Option<String>,
    /// Read-only commands are asked about like any others: everywhere, or in sessions of these
    /// projects.
    pub asks_for_reading: AsksFor,
    /// How much needs no approval.
    pub levels: ConfiguredLevels,
    /// A person has paused everything, in words: nothing is allowed until a person resumes.
    pub paused: Option<String>,
}

impl Policy {
    /// Why a rule of a decision denies, in words that name it.
    pub(crate) fn because(&self, rule: &str) -> String {
        match &self.paused {
            Some(paused) if paused == rule => format!("everything is {paused}; `toolctl resume` lets it go on"),
            _ => format!("by {rule}"),
        }
    }
}

/// Where something is asked about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AsksFor {
    pub everywhere: bool,
    pub projects: Vec<PathBuf>,
}

impl AsksFor {
    fn holds_in(&self, project: &Path) -> bool {
        self.everywhere || self.projects.iter().any(|of| of == project)
    }
}

#[derive(Clone, Debug)]
pub struct Rule {
    pub category: Category,
    pub pattern: Pattern,
    pub action: Verdict,
    /// Only for these tools; `None` for all.
    pub tools: Option<ToolGlobs>,
    /// Only in calls whose `cwd` lies in this folder.
    pub cwd: Option<PathBuf>,
    /// Only commands with this effect. A rule that allows covers those with no other effect than this one and reading.
    pub effect: Option<Effect>,
    /// Only for this agent. A rule that allows counts for [`CallingAgent::proven`] alone.
    pub agent: Option<&'static str>,
    /// A project's rule allows only once the project is trusted; it takes precedence over the
    /// user's.
    pub project: Option<PathBuf>,
    /// The location for the user: file and position.
    pub origin: String,
}

/// Globs over names of tools.
#[derive(Clone, Debug)]
pub struct ToolGlobs {
    globs: Vec<String>,
    set: GlobSet,
}

impl ToolGlobs {
    /// # Errors
    /// A glob that cannot be read, or that no tool's name can match; the message names it.
    pub fn new(globs: &[String]) -> Result<Self, String> {
        let mut set = GlobSetBuilder::new();
        for glob in globs {
            let glob = Glob::new(glob).map_err(|error| error.to_string())?;
            check_tool_glob(&glob)?;
            set.add(glob);
        }
        Ok(Self { globs: globs.to_vec(), set: set.build().map_err(|error| error.to_string())? })
    }

    pub fn is_match(&self, name: &ToolName) -> bool {
        self.set.is_match(name.as_str())
    }

    pub fn into_set(self) -> GlobSet {
        self.set
    }

    /// As they were written.
    pub fn as_slice(&self) -> &[String] {
        &self.globs
    }
}

/// A rule that could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokenRule {
    pub category: Category,
    /// The project whose configuration it is in; `None` for the user's own.
    pub project: Option<PathBuf>,
    /// Where it stands and what is wrong.
    pub rule: String,
}

/// The call that needs something.
#[derive(Clone, Debug)]
pub struct Subject<'a> {
    /// `None` for a plugin that acts on its own: rules that deny or ask apply to it whichever tools they name, rules that
    /// allow only if they name none.
    pub tool: Option<&'a ToolName>,
    pub origin: Origin,
    pub session: &'a SessionId,
    /// The sessions that own it, whose grants count too.
    pub above: &'a [&'a SessionId],
    pub mode: Mode,
    /// How much needs no approval.
    pub level: Level,
    pub cwd: &'a Path,
    /// The session's own folder and its roots.
    pub roots: &'a [Cow<'a, Path>],
    pub project: &'a Path,
    /// The project whose grants count too: that of the repository, in a linked worktree of Git.
    pub grant_project: &'a Path,
    /// The plugins between the caller and the need, the outermost first.
    pub chain: &'a [String],
    /// The categories that the manifests of these plugins withhold.
    pub undeclared: &'a [Undeclared],
    /// Files below the folder for temporary files that were made with a permission of the session.
    pub made: &'a [PathBuf],
    /// The profile folder, of which a plugin that acts on its own may read what controls nothing.
    pub profile: Option<&'a Path>,
    pub agent: CallingAgent<'a>,
}

/// The agent that a call is made for. A client gives itself its name, so names narrow, and only proof widens.
#[derive(Clone, Copy, Debug, Default)]
pub struct CallingAgent<'a> {
    /// The agent whose hook asks about a tool of its own, where the answer is all that it gets; else the one whose hooks named
    /// the process that the client belongs to.
    proven: Option<&'a str>,
    /// All its names: the hook's, and that of the session's client.
    names: [Option<&'a str>; 2],
}

impl<'a> CallingAgent<'a> {
    /// The agent of a call in a session. `asks`: the agent whose hook asks; `process`: the agent that the caller's process is,
    /// by its hooks. Nothing is proven of one that a tool started.
    pub fn of(session: &'a Session, asks: Option<&'a str>, process: Option<&'a str>) -> Self {
        let client = session.topmost().client.as_ref().map(|client| client.name.as_str());
        let is_frontend = matches!(session.owner(), SessionOwner::Frontend);
        Self { proven: asks.or(process).filter(|_| is_frontend), names: [asks.or(process), client] }
    }

    /// The agent that asked about a tool of its own in a past call.
    pub fn past(agent: Option<&'a str>) -> Self {
        Self { proven: agent, names: [agent, None] }
    }

    /// Whether a rule for the agent `name` counts.
    pub(crate) fn is(&self, name: &str, action: Verdict) -> bool {
        match action {
            Verdict::Allow => self.proven == Some(name),
            Verdict::Ask | Verdict::Deny => self.names.into_iter().flatten().any(|own| is_client_named(own, name)),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    pub verdict: Verdict,
    pub by: DecidedBy,
    /// The rule that decided, worded with its location.
    pub rule: String,
    /// It is a rule for exactly this need, or one for everything: the files that a command names
    /// are covered as well.
    pub covers_all: bool,
    /// A level freed it, and nothing else allowed it.
    pub by_level: bool,
    /// It is asked about because a rule or a grant that denies or asks may be about it, or because it could not be judged.
    pub may_be_denied: bool,
}

impl Decision {
    fn new(verdict: Verdict, by: DecidedBy, rule: impl Into<String>) -> Self {
        Self { verdict, by, rule: rule.into(), covers_all: false, by_level: false, may_be_denied: false }
    }

    /// It may be what a rule denies or asks about.
    fn doubtful(why: String) -> Self {
        Self { may_be_denied: true, ..Self::new(Verdict::Ask, DecidedBy::Rule, why) }
    }

    /// An allowed need that a pattern matches.
    fn allowed(by: DecidedBy, pattern: &Pattern, rule: String) -> Self {
        // A line does not show the files that its words become.
        let shows_files = pattern.is_exact() && !pattern.is_line();
        Self { covers_all: shows_files || pattern.is_any(), ..Self::new(Verdict::Allow, by, rule) }
    }
}

/// The policy's decision about one need.
///
/// `grants` are those that hold now.
pub fn decide(policy: &Policy, grants: &[Grant], subject: &Subject, need: &Need) -> Decision {
    if let Some(paused) = &policy.paused {
        return Decision::new(Verdict::Deny, DecidedBy::Rule, paused.clone());
    }
    let decision = decide_from_policy(policy, grants, subject, need);
    if decision.verdict == Verdict::Allow
        && let Some(file) = need.holds_secrets().iter().find(|file| !is_named(policy, grants, subject, need, file))
    {
        let rule = format!("secrets (a password or a token in {file}{})", left_out::secret(need, file));
        return Decision::new(Verdict::Deny, DecidedBy::Rule, rule);
    }
    if decision.verdict != Verdict::Deny
        && let Some(unjudged) = need.command().filter(|command| command.is_unjudged)
    {
        return Decision::doubtful(unjudged.unsure.clone().unwrap_or_default());
    }
    if need.always_asked && decision.verdict == Verdict::Allow {
        let why = if need.is_workspace() { "only a person opens a workspace" } else { "it is asked about each time" };
        return Decision::new(Verdict::Ask, DecidedBy::Default, why);
    }
    match &policy.lost_refusals {
        Some(why) if decision.verdict == Verdict::Allow => Decision::new(Verdict::Ask, DecidedBy::Rule, why.clone()),
        _ => decision,
    }
}

/// Steps in order; the first that applies decides.
fn decide_from_policy(policy: &Policy, grants: &[Grant], subject: &Subject, need: &Need) -> Decision {
    let rules = || policy.rules.iter().filter(|rule| rule.concerns(subject, need));
    // 1. Denials that nothing overrides; of reading a secret, only a rule or a grant for exactly this file.
    let is_named = |secret: &str| is_named(policy, grants, subject, need, secret);
    if let Some(rule) = hard_deny(policy, subject, need, &is_named) {
        return Decision::new(Verdict::Deny, DecidedBy::Rule, rule);
    }
    // 2. Explicit denials. Help about an operation is not the operation, but some programs take it for one of its words.
    let only_asks = need.asks_for_help();
    let is_certain = |pattern: &Pattern| {
        let is_help = only_asks && pattern.is_of_operation();
        !is_help && !pattern.depends_on_expansion(need)
    };
    let denying = || rules().filter(|rule| rule.action == Verdict::Deny && rule.pattern.may_match(need).is_some());
    if let Some(rule) = denying().find(|rule| is_certain(&rule.pattern)) {
        return Decision::new(Verdict::Deny, DecidedBy::Rule, left_out::with_file(rule.name(), &rule.pattern, need));
    }
    let refusing = || grants.iter().filter(|grant| grant.denies(subject, need));
    if let Some(grant) = refusing().find(|grant| is_certain(&grant.pattern)) {
        let refusal = left_out::with_file(grant.describe(), &grant.pattern, need);
        return Decision::new(Verdict::Deny, DecidedBy::Grant, refusal);
    }
    let in_project = |broken: &&BrokenRule| broken.project.as_deref().is_none_or(|project| project == subject.project);
    if let Some(broken) = policy.closed.iter().filter(in_project).find(|broken| broken.category == need.category()) {
        return Decision::new(Verdict::Deny, DecidedBy::Rule, broken.rule.clone());
    }
    let default = default_of(policy, subject, need);
    if let Some(broken) = policy.broken.first().filter(|_| default != Verdict::Allow) {
        return Decision::new(Verdict::Deny, DecidedBy::Rule, format!("an invalid rule: {broken}"));
    }
    // A command that could run anything might be what a rule or a grant denies or asks about. Only a rule for exactly this
    // command, or a person, knows.
    let doubted = need.may_run_any().then(|| doubted_by(rules(), grants, subject, need)).flatten();
    let doubted = doubted.or_else(|| policy.rules.iter().find_map(|rule| rule.doubts_effect(subject, need)));
    let doubted = doubted.or_else(|| unnamed::denied(policy, grants, subject, need));
    let becomes = || {
        let denies = denying().next().map(Rule::name).or_else(|| refusing().next().map(Grant::describe))?;
        Some(match only_asks {
            true => format!("it may do no more than show help about what this denies: {denies}"),
            false => format!("the shell may expand it to what this denies: {denies}"),
        })
    };
    let doubted = doubted.or_else(becomes);
    // 3. The mode. Approving edits is not approving what a write makes run later.
    let protected = policy.protected_write(subject.project, need);
    if let Some(decision) = by_mode(policy, subject, need, protected.is_some())
        && (decision.verdict != Verdict::Allow || !need.hides_file() && doubted.is_none())
    {
        return decision;
    }
    // 4. and 5. Rules that ask, but for the exceptions that others allow: of two rules of which neither is an exception from
    // the other, the stricter decides. A grant answers a rule that asks, if the grant is no wider.
    let covers =
        |pattern: &Pattern| protected.is_none() && !need.hides_file() && doubted.is_none() || pattern.is_exact();
    let asking: Vec<(&Rule, Specificity)> = rules()
        .filter(|rule| rule.action == Verdict::Ask)
        .filter_map(|rule| Some((rule, rule.pattern.may_match(need)?)))
        .collect();
    let allowing = rules()
        .filter(|rule| rule.action == Verdict::Allow && covers(&rule.pattern))
        .filter_map(|rule| Some((rule, rule.pattern.matches(need)?)))
        .filter(|(rule, fits)| {
            asking.iter().all(|(asks, of)| {
                let is_narrower = (*fits, rule.project.is_some()) > (*of, asks.project.is_some())
                    || fits == of && !is_exception(&asks.pattern, &rule.pattern);
                is_narrower && asks.excepts(&rule.pattern, need)
            })
        })
        .max_by_key(|(rule, fits)| (*fits, rule.project.is_some()));
    let granted = grants
        .iter()
        .filter(|grant| grant.action == Action::Allow && covers(&grant.pattern))
        .filter_map(|grant| Some((grant, grant.matches(subject, need)?)))
        .filter(|(grant, fits)| asking.iter().all(|(asks, of)| fits >= of && asks.excepts(&grant.pattern, need)))
        .max_by_key(|(_, fits)| *fits);
    let asks = asking.into_iter().max_by_key(|(rule, fits)| (*fits, rule.project.is_some()));
    match (allowing, granted, asks) {
        (Some((rule, _)), _, _) => rule.allows(),
        (None, Some((grant, _)), _) => Decision::allowed(DecidedBy::Grant, &grant.pattern, grant.describe()),
        (None, None, Some((rule, _))) => {
            let asked = Decision::new(Verdict::Ask, DecidedBy::Rule, rule.name());
            Decision { may_be_denied: doubted.is_some(), ..asked }
        }
        // 6. and 7. The level, and the default, which may be to ask.
        (None, None, None) => match protected {
            Some(protected) => Decision::new(Verdict::Ask, DecidedBy::Rule, protected),
            None if doubted.is_some() => Decision::doubtful(doubted.unwrap_or_default()),
            None if need.hides_file() && is_all_allowed(subject, rules(), grants, need) => {
                let why = need.unsure().unwrap_or("it names a file that is not known");
                Decision::new(Verdict::Ask, DecidedBy::Rule, format!("{why}, and it may be one that no tool touches"))
            }
            // While part of the configuration cannot be read, that part may deny it.
            None if default == Verdict::Ask && policy.broken.is_empty() => match by_level(policy, subject, need) {
                Some(freed) => Decision { by_level: true, ..Decision::new(Verdict::Allow, DecidedBy::Rule, freed) },
                None => Decision::new(default, DecidedBy::Default, default_name(need, default)),
            },
            None => Decision::new(default, DecidedBy::Default, default_name(need, default)),
        },
    }
}

/// Whether a rule or a grant allows reading exactly this file, of those that are read.
fn is_named(policy: &Policy, grants: &[Grant], subject: &Subject, need: &Need, file: &str) -> bool {
    let exactly = Need::new(need.category(), file);
    let names = |pattern: &Pattern| pattern.is_exact() && pattern.matches(&exactly).is_some();
    let mut rules = policy.rules.iter().filter(|rule| rule.concerns(subject, need));
    need.category() == Category::FileRead
        && (rules.any(|rule| rule.action == Verdict::Allow && names(&rule.pattern))
            || grants.iter().any(|grant| {
                grant.action == Action::Allow && grant.matches(subject, &exactly).is_some() && names(&grant.pattern)
            }))
}

/// The level that frees a need which nothing else decided, in words. It frees no plugin, nor what the user wants to be asked
/// about although it only reads.
fn by_level(policy: &Policy, subject: &Subject, need: &Need) -> Option<String> {
    let is_asked = need.reads_only() && policy.asks_for_reading.holds_in(subject.project);
    let is_file_tool =
        matches!(subject.origin, Origin::Builtin | Origin::Frontend) && need.command_naming_it().is_none();
    // Secrets are refused where a level's command runs, and what controls tools stays as it is.
    let hides_file = need.hides_file() && need.confined.is_empty();
    let is_inside = is_inside(policy, subject, need) || is_temporary_file(need, subject.made);
    (subject.chain.is_empty() && !is_asked && !hides_file)
        .then(|| freed_by(subject.level, need, is_file_tool, is_inside))?
}

/// The rule or grant that might be about a command that could run anything, in words.
fn doubted_by<'a>(
    mut rules: impl Iterator<Item = &'a Rule>,
    grants: &[Grant],
    subject: &Subject,
    need: &Need,
) -> Option<String> {
    let rule = rules.find(|rule| rule.action != Verdict::Allow).map(Rule::name);
    let strict = || grants.iter().find(|grant| grant.may_deny(subject, need)).map(Grant::describe);
    let why = need.unsure().unwrap_or("the program that it runs is unknown");
    rule.or_else(strict).map(|rule| format!("{why}, so it may be about this: {rule}"))
}

/// Whether the mode or `**` would allow it.
fn is_all_allowed<'a>(
    subject: &Subject,
    mut rules: impl Iterator<Item = &'a Rule>,
    grants: &[Grant],
    need: &Need,
) -> bool {
    subject.mode == Mode::Yolo
        || rules.any(|rule| rule.action == Verdict::Allow && rule.pattern.is_any() && rule.effect.is_none())
        || grants.iter().any(|grant| {
            grant.action == Action::Allow && grant.pattern.is_any() && grant.matches(subject, need).is_some()
        })
}

/// The decision about these needs, and its rules, without asking anybody: the strictest decides.
pub fn check(policy: &Policy, grants: &[Grant], subject: &Subject, needs: &[Need]) -> CheckedPermission {
    let mut made = subject.made.to_vec();
    let mut judged: Vec<(Decision, &Need)> = Vec::new();
    for need in needs {
        let decision = decide(policy, grants, &Subject { made: &made, ..subject.clone() }, need);
        if decision.verdict == Verdict::Allow && makes_temporary(need) {
            made.push(PathBuf::from(&need.target));
        }
        judged.push((decision, need));
    }
    let exact = |(decision, need): &(Decision, &Need)| {
        (need.category() == Category::Shell && decision.verdict == Verdict::Allow && decision.covers_all)
            .then(|| need.target.clone())
    };
    let commands: Vec<String> = judged.iter().filter_map(exact).collect();
    for (decision, need) in &mut judged {
        let command = need.command_naming_it().filter(|command| commands.iter().any(|allowed| allowed == command));
        if let Some(command) = command
            .filter(|_| decision.verdict == Verdict::Ask && policy.protected_write(subject.project, need).is_none())
        {
            *decision = Decision::new(Verdict::Allow, DecidedBy::Rule, of_approved_command(command));
        }
    }
    // An allowed line gives the reason of a command that does more than read.
    let strictness = |(decision, need): &(Decision, &Need)| match decision.verdict {
        Verdict::Allow => u8::from(need.category() == Category::Shell && !need.reads_only()),
        Verdict::Ask => 2,
        Verdict::Deny => 3,
    };
    // The first of the strictest, which is the one that a call would report.
    let worst = judged.iter().enumerate().max_by_key(|(at, judged)| (strictness(judged), Reverse(*at)));
    let (verdict, rule) = match worst {
        Some((_, (decision, _))) => (decision.verdict, decision.rule.clone()),
        None => (Verdict::Allow, "it needs no permission".to_owned()),
    };
    let part = |(decision, need): &(Decision, &Need)| CheckedPart {
        category: need.category(),
        target: need.target.clone(),
        verdict: decision.verdict,
        rule: decision.rule.clone(),
        allowed_with: None,
    };
    let parts = if judged.len() > 1 { judged.iter().map(part).collect() } else { Vec::new() };
    CheckedPermission { verdict, rule, parts, commands: Vec::new() }
}

impl Rule {
    fn concerns(&self, subject: &Subject, need: &Need) -> bool {
        self.is_for(subject, need) && self.effect.is_none_or(|effect| self.concerns_effect(effect, need))
    }

    /// Whether the call and the category are those of the rule.
    fn is_for(&self, subject: &Subject, need: &Need) -> bool {
        self.category == need.category()
            && self.tools.as_ref().is_none_or(|tools| match subject.tool {
                Some(tool) => tools.is_match(tool),
                None => self.action != Verdict::Allow,
            })
            && self.cwd.as_ref().is_none_or(|cwd| subject.cwd.starts_with(cwd))
            && self.agent.is_none_or(|agent| subject.agent.is(agent, self.action))
            && self.project.as_ref().is_none_or(|project| subject.project == project)
    }

    /// Why this rule, which denies or asks about an effect, may be about a command whose effects are not all known.
    fn doubts_effect(&self, subject: &Subject, need: &Need) -> Option<String> {
        let why = need.unsure().filter(|_| self.action != Verdict::Allow)?;
        let effect = self.effect.filter(|effect| !need.effects().contains(*effect))?;
        let is_about = self.is_for(subject, need) && self.pattern.may_match(need).is_some();
        is_about.then(|| format!("{why}, so it may have the effect {effect}: {}", self.name()))
    }

    fn concerns_effect(&self, effect: Effect, need: &Need) -> bool {
        match self.action {
            Verdict::Allow => {
                let all = need.effects();
                need.unsure().is_none()
                    && all.contains(effect)
                    && all.iter().all(|other| other == effect || other == Effect::Read)
                    && need.effects_within().iter().all(|other| other == effect || !other.must_be_named())
            }
            Verdict::Ask | Verdict::Deny => need.effects_within().contains(effect),
        }
    }

    /// Whether a pattern that allows the need is an exception from this rule, which asks about it.
    fn excepts(&self, allowed: &Pattern, need: &Need) -> bool {
        is_exception(allowed, &self.pattern) && (self.effect.is_none() || allowed.names_operation(need))
    }

    fn allows(&self) -> Decision {
        let decision = Decision::allowed(DecidedBy::Rule, &self.pattern, self.name());
        // `**` with an effect is not a rule for everything.
        Decision { covers_all: decision.covers_all && self.effect.is_none(), ..decision }
    }

    /// The rule's text and location.
    fn name(&self) -> String {
        let effect = self.effect.map(|effect| format!(" with the effect {effect}")).unwrap_or_default();
        let agent = self.agent.map(|agent| format!(" for {agent}")).unwrap_or_default();
        let (action, pattern) = (self.action.as_str(), self.pattern.as_str());
        format!("rule {action} {} {pattern:?}{effect}{agent} at {}", self.category, self.origin)
    }
}

/// The first rule or grant of this category that denies something to the subject, or has another of these verdicts, in
/// words; a rule that could not be read counts as one that denies. It is for an action of the category whose target is not
/// known.
///
/// `verdicts` are those that count.
pub fn strict_rule(
    policy: &Policy,
    grants: &[Grant],
    subject: &Subject,
    category: Category,
    verdicts: &[Verdict],
) -> Option<String> {
    let need = Need::new(category, "");
    let rule = policy.rules.iter().find(|rule| verdicts.contains(&rule.action) && rule.concerns(subject, &need));
    let denies = verdicts.contains(&Verdict::Deny);
    let grant = || grants.iter().find(|grant| denies && grant.may_deny(subject, &need)).map(Grant::describe);
    let in_project = |broken: &&BrokenRule| broken.project.as_deref().is_none_or(|project| project == subject.project);
    let closed = || {
        let mut unread = policy.closed.iter().filter(in_project);
        unread.find(|broken| denies && broken.category == category).map(|broken| broken.rule.clone())
    };
    let broken = || policy.broken.first().filter(|_| denies).map(|broken| format!("an invalid rule: {broken}"));
    rule.map(Rule::name).or_else(grant).or_else(closed).or_else(broken)
}

/// The rule or grant that denies the subject everything of this category, in words: `**`, for all effects.
pub fn denial_of_all(policy: &Policy, grants: &[Grant], subject: &Subject, category: Category) -> Option<String> {
    let need = Need::new(category, "");
    let mut rules = policy.rules.iter().filter(|rule| rule.action == Verdict::Deny && rule.pattern.is_any());
    let rule = rules.find(|rule| rule.effect.is_none() && rule.concerns(subject, &need)).map(Rule::name);
    let mut refusals = grants.iter().filter(|grant| grant.pattern.is_any() && grant.may_deny(subject, &need));
    rule.or_else(|| refusals.next().map(Grant::describe))
}

/// Whether a path names a file known to hold secrets, which no tool reads.
pub fn is_secret(path: &Path) -> bool {
    secrets::secret_name(path).is_some()
}

/// Whether a path leads through a folder whose keys are published with the code in it, such as `tests/fixtures`.
pub fn is_published(path: &Path) -> bool {
    secrets::is_published(&path.to_string_lossy())
}

/// Whether a path names a file that controls the daemon, which no tool writes.
pub fn is_control(path: &Path) -> bool {
    secrets::control_name(path).is_some()
}

/// Denials that no mode overrides, and no rule but one that names a secret (`is_named`).
fn hard_deny(policy: &Policy, subject: &Subject, need: &Need, is_named: &dyn Fn(&str) -> bool) -> Option<String> {
    if let Some(reason) = &need.forbidden {
        return Some(reason.clone());
    }
    if let Some(rule) = subject.undeclared.iter().find_map(|undeclared| undeclared.denies(need)) {
        return Some(rule);
    }
    if !matches!(need.category(), Category::FileRead | Category::FileWrite) {
        return None;
    }
    let of = |target: &String| {
        let secret = |path: &Path| {
            let name = secrets::secret_name(path)?;
            // The input of a program may be written, but not shown.
            if need.category() == Category::FileWrite && secrets::is_input(name) {
                return None;
            }
            // Elsewhere, the answer would reveal what the file is.
            let is_none = || {
                need.file().is_some_and(|file| file.no_secrets.contains(target))
                    && default_of(policy, subject, need) == Verdict::Allow
            };
            (!is_none() && !is_named(target)).then(|| format!("secrets ({name})"))
        };
        hard_deny_of(policy, subject, need.category(), target, &secret)
    };
    // The message names the other file, since the target does not show it.
    let covered = |target: &String| Some(format!("{}: {target}{}", of(target)?, left_out::secret(need, target)));
    of(&need.target).or_else(|| need.covers().iter().find_map(covered))
}

fn hard_deny_of(
    policy: &Policy,
    subject: &Subject,
    category: Category,
    target: &str,
    secret: &dyn Fn(&Path) -> Option<String>,
) -> Option<String> {
    let mut path = Cow::Borrowed(Path::new(target));
    if !is_in_one_form(target) {
        let resolved = |part: Component| matches!(part, Component::RootDir | Component::Normal(_));
        if !path.is_absolute() || !path.components().all(resolved) {
            return Some("a path that is not resolved".to_owned());
        }
        path = Cow::Owned(in_one_form(&path));
    }
    let path = path.as_ref();
    if let Some(private) = policy.private.holding(path) {
        return Some(format!("the daemon's own files ({})", private.display()));
    }
    if category == Category::FileWrite && !(keeps_memories(subject) && secrets::is_memory(path)) {
        if let Some(control) = policy.control.holding(path) {
            return Some(format!("control files ({})", control.display()));
        }
        if let Some(name) = secrets::control_name(path) {
            return Some(format!("control files ({name})"));
        }
    }
    secret(path)
}

/// Memories are among the control files. These two tools write them and nothing else, with
/// permission as for any file.
fn keeps_memories(subject: &Subject) -> bool {
    subject.origin == Origin::Builtin && subject.tool.is_some_and(|tool| matches!(tool.as_str(), "remember" | "forget"))
}

fn by_mode(policy: &Policy, subject: &Subject, need: &Need, is_protected: bool) -> Option<Decision> {
    match subject.mode {
        Mode::Default => None,
        Mode::Yolo => Some(Decision::new(Verdict::Allow, DecidedBy::Rule, "mode yolo")),
        Mode::Plan => match need.category() {
            Category::FileRead => None,
            Category::Shell if need.is_harmless() || need.reads_only() => None,
            Category::FileWrite if !is_protected && is_plan(policy, subject, need) => {
                Some(Decision::new(Verdict::Allow, DecidedBy::Rule, "mode plan: it is the agent's own plan"))
            }
            // Fetching and searching are reading; a request of a plugin may send anything.
            Category::Network if subject.chain.is_empty() => None,
            Category::Plugin if need.target == "web_search" => None,
            // The agent's own prompt may know more about the tools of its servers.
            Category::Mcp if subject.origin == Origin::Frontend => {
                Some(Decision::new(Verdict::Ask, DecidedBy::Rule, "mode plan: it may do more than read"))
            }
            // The needs of a plugin's tool are decided one by one; the needs of the others are unknown.
            Category::Plugin
                if matches!(subject.origin, Origin::Builtin | Origin::UserPlugin | Origin::ProjectPlugin) =>
            {
                None
            }
            Category::FileWrite
            | Category::Shell
            | Category::Network
            | Category::Mcp
            | Category::Agent
            | Category::Plugin => Some(Decision::new(Verdict::Deny, DecidedBy::Rule, PLAN_DENIES)),
        },
        Mode::AcceptEdits => {
            let inside = need.category() == Category::FileWrite && !is_protected && is_inside(policy, subject, need);
            inside.then(|| Decision::new(Verdict::Allow, DecidedBy::Rule, "mode accept_edits"))
        }
    }
}

/// The rule of what the mode `plan` denies.
pub(crate) const PLAN_DENIES: &str = "mode plan: read only";

/// The plans that agents write in their own plan modes: in the home folder and in a project, `*` within one name.
///
/// Sources: the documentation of Claude Code (`plansDirectory`), Gemini CLI ("Plan Mode") and opencode ("Plan"), and for
/// Cursor and Copilot CLI the places that their plans are saved in.
const PLANS: [&[&str]; 2] = [
    &[
        ".claude/plans/*.md",
        ".gemini/tmp/*/plans/*.md",
        ".gemini/tmp/*/*/plans/*.md",
        ".opencode/plan/*.md",
        ".local/share/opencode/plans/*.md",
        ".cursor/plans/*.md",
        ".copilot/session-state/*/plan.md",
    ],
    // Claude Code writes none into a project, unless a setting says so.
    &[".opencode/plans/*.md", ".opencode/plan/*.md", ".cursor/plans/*.md"],
];

/// Whether it writes nothing but a plan of an agent.
fn is_plan(policy: &Policy, subject: &Subject, need: &Need) -> bool {
    let [at_home, in_project] = PLANS;
    let is_one = |folder: &Path, plans: &[&str]| {
        let Some(below) = Path::new(&need.target).strip_prefix(folder).ok().and_then(Path::to_str) else {
            return false;
        };
        plans.iter().any(|plan| {
            plan.split('/').count() == below.split('/').count()
                && plan.split('/').zip(below.split('/')).all(|(plan, name)| Wild::parse(plan).matches(name))
        })
    };
    // Only by the agent's own tool: a process without a session is in this mode as well.
    subject.origin == Origin::Frontend
        && need.covers().is_empty()
        && (policy.home.as_deref().is_some_and(|home| is_one(home, at_home)) || is_one(subject.project, in_project))
}

/// The target of the category `plugin` begins with this where a plugin replaces a built-in tool; the tool's name follows.
pub const OVERRIDE: &str = "override:";
/// The beginnings of the targets of the category `plugin` that are no tools, and that nobody has without a grant.
const PERSONAL: [&str; 3] = [OVERRIDE, "secret:", "env:"];

fn default_of(policy: &Policy, subject: &Subject, need: &Need) -> Verdict {
    match need.category() {
        Category::FileRead if is_inside(policy, subject, need) => Verdict::Allow,
        Category::FileRead if need.file().is_some_and(|file| file.is_public) || was_made(subject, need) => {
            Verdict::Allow
        }
        Category::FileRead if is_of_profile(policy, subject, need) => Verdict::Allow,
        // The command has an approval of its own, which includes writing the files of the session's
        // folders.
        Category::FileWrite if need.command_naming_it().is_some() && is_inside(policy, subject, need) => Verdict::Allow,
        Category::FileRead | Category::FileWrite if need.command_naming_it().is_some() && need.is_harmless() => {
            Verdict::Allow
        }
        // While a part of the configuration is invalid, that part may deny it.
        Category::Shell
            if need.reads_only() && policy.broken.is_empty() && !policy.asks_for_reading.holds_in(subject.project) =>
        {
            Verdict::Allow
        }
        // A person decides whether a plugin may replace a built-in tool, or use a secret or a variable.
        Category::Plugin if PERSONAL.iter().any(|start| need.target.starts_with(start)) => Verdict::Ask,
        Category::Plugin if matches!(subject.origin, Origin::Builtin | Origin::UserPlugin) => Verdict::Allow,
        Category::Agent => Verdict::Allow,
        Category::Shell if need.is_harmless() => Verdict::Allow,
        Category::Network => match need.kind {
            NeedKind::Network(Some(HostListing::Listed | HostListing::Locked)) => Verdict::Allow,
            NeedKind::Network(Some(HostListing::Unlisted)) => Verdict::Ask,
            _ => Verdict::Deny,
        },
        Category::FileRead | Category::FileWrite | Category::Shell | Category::Mcp | Category::Plugin => Verdict::Ask,
    }
}

/// The default that decided, in words.
fn default_name(need: &Need, default: Verdict) -> String {
    let freed = match &need.kind {
        NeedKind::Command(command) if command.reads_only => {
            Some("it only reads (permission.read_only_commands)".to_owned())
        }
        // The command may be asked about, or not be allowed at all.
        NeedKind::FileWrite(file) => {
            let command = file.of_command.as_ref();
            command.map(|command| format!("decided with the command that names it: {command}"))
        }
        NeedKind::Network(Some(HostListing::Listed)) => Some("[sandbox] network lists it".to_owned()),
        NeedKind::Network(Some(HostListing::Locked)) => Some("the lock file of the command names it".to_owned()),
        _ => None,
    };
    freed.filter(|_| default == Verdict::Allow).unwrap_or_else(|| default_rule(need.category()))
}

/// The display name of the rule for a category without any rules.
pub(crate) fn default_rule(category: Category) -> String {
    ["default of ", category.as_str()].concat()
}

pub(crate) fn of_approved_command(command: &str) -> String {
    format!("approved with the command that names it: {command}")
}

/// Whether it creates a file below the folder for temporary files.
pub(crate) fn makes_temporary(need: &Need) -> bool {
    let path = Path::new(&need.target);
    need.category() == Category::FileWrite
        && path.starts_with("/tmp")
        && path.parent().is_some_and(|above| above.parent().is_some())
        && path.symlink_metadata().is_err()
}

/// Programs that open the file that they write as a redirect does, and put no other in its place.
const OPENING: &[&str] = &["tee", "touch", "cp"];

/// Whether a command's redirect, or a program such as `tee`, makes a file in `/tmp` or in a folder there that the session made, or writes one that it
/// made: what others have in folders there may run it. `made` is [`Session::made`](crate::session::Session::made).
pub fn is_temporary_file(need: &Need, made: &[PathBuf]) -> bool {
    let path = Path::new(&need.target);
    let is_made = || made.iter().any(|made| made == path) && path.symlink_metadata().is_ok_and(|found| found.is_file());
    let is_own = |above: &Path| above == Path::new("/tmp") || made.iter().any(|made| above.starts_with(made));
    let opens_it = |command: &str| OPENING.contains(&command.split(' ').next().unwrap_or_default());
    need.line.is_some()
        && need.command_naming_it().is_none_or(opens_it)
        && path.parent().is_some_and(|above| is_own(above) && above.is_dir())
        && path.file_name().is_some_and(|name| !name.as_encoded_bytes().starts_with(b"."))
        && (makes_temporary(need) || need.category() == Category::FileWrite && is_made())
}

fn was_made(subject: &Subject, need: &Need) -> bool {
    subject.made.iter().any(|made| Path::new(&need.target).starts_with(made))
}

/// Whether it is a file of the plugin's profile that controls nothing. The profile is a control folder as a whole: no
/// tool writes there. The control files that the policy knows below it, such as plugin folders, are not data of plugins.
fn is_of_profile(policy: &Policy, subject: &Subject, need: &Need) -> bool {
    let Some(profile) = subject.profile else { return false };
    let path = Path::new(&need.target);
    let Ok(below) = path.strip_prefix(profile) else { return false };
    let mut control = policy.control.iter().chain(policy.state.iter());
    need.command_naming_it().is_none()
        && need.covers().is_empty()
        && secrets::control_name(below).is_none()
        && !control.any(|place| place.starts_with(profile) && place != profile && is_at_or_below(path, place))
}

/// Whether it lies in a folder that the session works in. `/`, the home folder and the folders
/// above it do not count: too much lies in them.
fn is_inside(policy: &Policy, subject: &Subject, need: &Need) -> bool {
    let path = Path::new(&need.target);
    let is_wide =
        |root: &Path| root.parent().is_none() || policy.home.as_deref().is_some_and(|home| home.starts_with(root));
    // A path that is not normalised matches fewer places, and is then asked about.
    let is_state = policy.state.as_deref().is_some_and(|state| is_at_or_below(path, state));
    !is_state && subject.roots.iter().any(|root| is_at_or_below(path, root) && !is_wide(root))
}

#[cfg(test)]
mod tests;
