//! Rules as users write them, and the effect of unreadable ones.

use std::path::{Component, Path, PathBuf};

use globset::Glob;
use serde::{Deserialize, Serialize};
use toold_proto::agent_names::{AGENTS, agent_named};
use toold_proto::effect::Effect;
use toold_proto::nearest::did_you_mean;
use toold_proto::permission::{RuleInfo, Verdict};
use toold_proto::tool::Category;

use crate::policy::pattern::words::with_home;
use crate::policy::pattern::{LINE, Pattern, check, escape_glob};
use crate::policy::{BrokenRule, Policy, Rule, ToolGlobs};
use toold_proto::cut;

/// One `[[permission.rules]]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RuleConfig {
    /// The kind of need that it is about.
    #[cfg_attr(test, schemars(extend("enum" = Category::ALL)))]
    pub category: String,
    /// `**` matches everything of its category. Else of a command: words, quoted as for a shell, `*` for any text
    /// within one, as the last word for any further ones; `$ LINE` for exactly this line. Of a file: a glob over its path.
    /// Of the network: `host` or `host:port`, `*` within one label, `*` alone for every host. Of `mcp`: a glob over
    /// `server/tool`. Of all else: a glob over the name. One that can match nothing is a mistake. Absent only with
    /// `effect`, where it stands for `**`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub pattern: String,
    /// `allow`, `ask` or `deny`.
    #[cfg_attr(test, schemars(extend("enum" = ["allow", "ask", "deny"])))]
    pub action: String,
    /// Only for these tools, as globs; absent for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    /// Only in calls whose folder lies in this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// Only commands with this effect, in the category `shell`. A rule that allows covers commands whose effects are this
    /// one, and reading.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(extend("enum" = Effect::ALL)))]
    pub effect: Option<String>,
    /// Only for this agent, by its name in `[agents.NAME]`. A rule that allows counts only for an agent that its hooks prove: where
    /// they ask about a tool of its own, and for the MCP clients that the same process starts. A rule that denies or asks also
    /// counts for a client that gives itself the name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
}

/// Where a rule stands, and how much that counts.
#[derive(Clone, Debug)]
pub struct RulePlace {
    /// File and line, for the user.
    pub origin: String,
    /// The project whose configuration contains it; `None` for the user's own.
    pub project: Option<PathBuf>,
    /// Rules of a project that allow count only when it is trusted; rules that deny or ask always count.
    pub trusted: bool,
    /// The folder that relative paths in it are resolved against: the project, or the current folder of a client. `None` in
    /// the user's own configuration, where they are mistakes.
    pub base: Option<PathBuf>,
    /// The folder that `~` stands for.
    pub home: Option<PathBuf>,
}

/// The categories that are denied in a project when the category of one of its rules is unknown.
const UNKNOWN: [Category; 4] = [Category::FileWrite, Category::Shell, Category::Network, Category::Mcp];

impl Policy {
    /// Adds the rules to the existing ones. An invalid rule is reported in `broken` and denies.
    pub fn with_rules(mut self, rules: impl IntoIterator<Item = (RuleConfig, RulePlace)>) -> Self {
        for (config, place) in rules {
            match read_rule(&config, &place) {
                Ok(rule) if rule.action == Verdict::Allow && !place.trusted => {}
                Ok(rule) => self.rules.push(rule),
                // Everything that it would have allowed is asked about. A rule that denies or asks
                // may have been meant for anything.
                Err(BadRule::MatchesNothing(why)) if config.action == "allow" => {
                    self.unmatchable.push(format!("{}: {why}", place.origin));
                }
                Err(bad) => self.close(&config, place, &bad.to_string()),
            }
        }
        self
    }

    /// A policy of these rules alone.
    pub fn from_rules(rules: impl IntoIterator<Item = (RuleConfig, RulePlace)>) -> Self {
        Self::default().with_rules(rules)
    }

    /// The effect of an invalid rule: it denies its whole category; if the category is unknown, everything that
    /// needs no permission. A project's rule affects the project alone.
    fn close(&mut self, config: &RuleConfig, place: RulePlace, reason: &str) {
        let problem = format!("{}: {reason}", place.origin);
        let categories = match (Category::parse(&config.category), &place.project) {
            (Some(category), _) => vec![category],
            (None, Some(_)) => UNKNOWN.to_vec(),
            (None, None) => Vec::new(),
        };
        categories.iter().for_each(|category| self.close_category(*category, place.project.as_deref(), &problem));
        if place.project.is_none() && categories.is_empty() {
            self.broken.push(problem);
        }
    }

    /// Denies all of a category, since the unreadable rule may have denied any of it.
    pub(super) fn close_category(&mut self, category: Category, project: Option<&Path>, problem: &str) {
        let rule = format!("an invalid rule: {problem}");
        self.closed.push(BrokenRule { category, project: project.map(Path::to_owned), rule });
        if project.is_none() {
            self.broken.push(problem.to_owned());
        }
    }

    /// A project's configuration is invalid and may have denied anything: everything that needs permission is denied there.
    pub fn close_project(&mut self, project: &Path, problem: &str) {
        let rule = format!("an invalid configuration: {problem}");
        let closed = |category| BrokenRule { category, project: Some(project.to_owned()), rule: rule.clone() };
        self.closed.extend(UNKNOWN.map(closed));
    }

    /// The invalid rules, as `permissions.list` shows them. `project`: only the user's and this project's; all when
    /// `None`.
    pub fn describe_broken(&self, project: Option<&Path>) -> Vec<String> {
        let of_projects =
            self.closed.iter().filter(|closed| closed.project.is_some() && is_seen(closed.project.as_deref(), project));
        let of_projects = of_projects.map(|closed| closed.rule.clone());
        let mut all: Vec<String> = self.broken.iter().chain(&self.unmatchable).cloned().chain(of_projects).collect();
        all.dedup();
        all
    }

    /// The rules, as `permissions.list` shows them. `project` as above.
    pub fn describe_rules(&self, project: Option<&Path>) -> Vec<RuleInfo> {
        let is_seen = |rule: &&Rule| is_seen(rule.project.as_deref(), project);
        self.rules.iter().filter(is_seen).map(Rule::describe).collect()
    }
}

/// Whether something in a project's configuration applies to sessions that work in `seen_from`.
fn is_seen(of: Option<&Path>, seen_from: Option<&Path>) -> bool {
    of.is_none() || seen_from.is_none() || of == seen_from
}

impl Rule {
    /// As `permissions.list` shows it.
    pub fn describe(&self) -> RuleInfo {
        RuleInfo {
            category: self.category,
            pattern: self.pattern.as_str().to_owned(),
            action: self.action,
            tools: self.tools.as_ref().map(|tools| tools.as_slice().to_vec()),
            cwd: self.cwd.as_ref().map(|cwd| cwd.display().to_string()),
            effect: self.effect,
            agent: self.agent.map(str::to_owned),
            source: self.origin.clone(),
        }
    }
}

/// The problem with a rule, as a sentence for the user.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadRule {
    #[error("{0}")]
    Unreadable(String),
    /// It can be read, but no call could ever match it.
    #[error("{0}")]
    MatchesNothing(String),
}

impl From<String> for BadRule {
    fn from(why: String) -> Self {
        Self::Unreadable(why)
    }
}

/// # Errors
/// The problem with it.
pub fn read_rule(config: &RuleConfig, place: &RulePlace) -> Result<Rule, BadRule> {
    let category = Category::parse(&config.category).ok_or_else(|| {
        let known = Category::ALL.map(Category::as_str);
        let near = perhaps(&config.category, &known);
        format!("{:?} is not a category: expected one of {}{near}", config.category, known.join(", "))
    })?;
    let action = match config.action.as_str() {
        "allow" => Verdict::Allow,
        "ask" => Verdict::Ask,
        "deny" => Verdict::Deny,
        other => {
            let near = perhaps(other, &["allow", "ask", "deny"]);
            return Err(format!("{other:?} is not an action: expected allow, ask or deny{near}").into());
        }
    };
    let effect = config.effect.as_deref().map(|effect| read_effect(effect, category)).transpose()?;
    let pattern = match category {
        _ if config.pattern.is_empty() && effect.is_some() => "**".to_owned(),
        Category::FileRead | Category::FileWrite => absolute_pattern(&config.pattern, place)?,
        Category::Shell => at_home(&config.pattern, place.home.as_deref()),
        Category::Network | Category::Mcp | Category::Agent | Category::Plugin => config.pattern.clone(),
    };
    let pattern = Pattern::parse_as_meant(category, &pattern).map_err(|error| error.to_string())?;
    let nothing = |why: String| BadRule::MatchesNothing(why);
    for glob in config.tools.iter().flatten() {
        Glob::new(glob).map_err(|error| error.to_string())?;
    }
    let tools = config.tools.as_deref().map(ToolGlobs::new).transpose().map_err(nothing)?;
    if tools.as_ref().is_some_and(|tools| tools.as_slice().is_empty()) {
        return Err(nothing(
            "tools is empty, so the rule applies to no tool: remove it to apply the rule to all tools".to_owned(),
        ));
    }
    pattern.check(category).map_err(|error| nothing(error.to_string()))?;
    let cwd = config.cwd.as_ref().map(|cwd| absolute_folder(cwd, place)).transpose()?;
    if let Some(cwd) = &cwd {
        check_folder(cwd).map_err(nothing)?;
    }
    let agent = config.agent.as_deref().map(read_agent).transpose()?;
    let (project, origin) = (place.project.clone(), place.origin.clone());
    Ok(Rule { category, pattern, action, tools, cwd, effect, agent, project, origin })
}

fn read_agent(name: &str) -> Result<&'static str, String> {
    agent_named(name).ok_or_else(|| {
        let near = perhaps(name, &AGENTS);
        format!("{name:?} is not an agent: expected one of {}{near}", AGENTS.join(", "))
    })
}

fn read_effect(name: &str, category: Category) -> Result<Effect, String> {
    let known = Effect::ALL.map(Effect::as_str);
    let effect = Effect::parse(name).ok_or_else(|| {
        let near = perhaps(name, &known);
        format!("{name:?} is not an effect: expected one of {}{near}", known.join(", "))
    })?;
    if category != Category::Shell {
        return Err(format!("only commands have effects: a rule of category {category} has none"));
    }
    Ok(effect)
}

/// Every problem with a rule, where [`read_rule`] reports the first. A category or an action that does
/// not exist is none of them: it is named with its place in the text.
pub fn rule_mistakes(config: &RuleConfig, place: &RulePlace) -> Vec<String> {
    if Category::parse(&config.category).is_none() {
        return Vec::new();
    }
    let harmless = RuleConfig {
        category: config.category.clone(),
        pattern: "**".to_owned(),
        action: "deny".to_owned(),
        tools: None,
        cwd: None,
        effect: None,
        agent: None,
    };
    let alone = [
        RuleConfig { pattern: config.pattern.clone(), effect: config.effect.clone(), ..harmless.clone() },
        RuleConfig { tools: config.tools.clone(), ..harmless.clone() },
        RuleConfig { cwd: config.cwd.clone(), ..harmless.clone() },
        RuleConfig { agent: config.agent.clone(), ..harmless },
    ];
    alone.iter().filter_map(|rule| Some(read_rule(rule, place).err()?.to_string())).collect()
}

/// A pattern of commands with `~` expanded; a line is taken as it is written.
pub(crate) fn at_home(pattern: &str, home: Option<&Path>) -> String {
    match home.and_then(Path::to_str).filter(|_| !pattern.trim_start().starts_with(LINE)) {
        Some(home) => with_home(pattern, home),
        None => pattern.to_owned(),
    }
}

/// A pattern of paths with `~` and the folder that it is relative to expanded.
pub(crate) fn absolute_pattern(pattern: &str, place: &RulePlace) -> Result<String, String> {
    if pattern.starts_with('/') || pattern.starts_with("**") {
        return Ok(pattern.to_owned());
    }
    // As agents and shells write it.
    let inside = check::of_agent_tool(pattern).unwrap_or(pattern);
    let plain = ["$HOME", "${HOME}"].iter().find_map(|home| inside.strip_prefix(home)).map(|rest| format!("~{rest}"));
    if let Some(meant) = plain.as_deref().or(Some(inside).filter(|inside| *inside != pattern)) {
        return Err(format!(
            "pattern: expected an absolute path, got {pattern:?}: did you mean {:?}?",
            anywhere(meant)
        ));
    }
    let below = |folder: &Option<PathBuf>, rest: &str| {
        let folder = folder.as_deref().and_then(Path::to_str).ok_or_else(|| {
            format!("pattern: expected an absolute path, got {pattern:?}: did you mean \"~/{rest}\" or \"**/{rest}\"?")
        })?;
        let folder = escape_glob(folder.trim_end_matches('/'));
        // A slash at the end of a longer path stays: it is a mistake, and the message says so.
        Ok(if rest.is_empty() && !folder.is_empty() { folder } else { format!("{folder}/{rest}") })
    };
    match pattern.strip_prefix('~') {
        Some("") => below(&place.home, ""),
        Some(rest) if rest.starts_with('/') => below(&place.home, cut::after_first(rest)),
        Some(_) => Err("only your own home folder can be named, as ~/".into()),
        None => below(&place.base, pattern.trim_start_matches("./")),
    }
}

/// A path that begins nowhere, in all folders.
fn anywhere(path: &str) -> String {
    match path.starts_with(['/', '~', '*']) {
        true => path.to_owned(),
        false => format!("**/{}", path.trim_start_matches("./")),
    }
}

/// Folders of calls are compared with their links followed.
fn check_folder(folder: &Path) -> Result<(), String> {
    if folder.components().all(|part| part != Component::ParentDir) {
        return Ok(());
    }
    let mut plain = PathBuf::new();
    for part in folder.components() {
        match part {
            Component::ParentDir => _ = plain.pop(),
            part => plain.push(part),
        }
    }
    Err(format!("no call runs in the folder {folder:?}, because it contains ..: did you mean {plain:?}?"))
}

/// `: did you mean X?`, or nothing without a close match.
fn perhaps(name: &str, known: &[&str]) -> String {
    let aliases =
        [("bash", "shell"), ("read", "file.read"), ("write", "file.write"), ("edit", "file.write"), ("web", "network")];
    let alias = aliases.iter().find(|(alias, meant)| alias.eq_ignore_ascii_case(name) && known.contains(meant));
    match alias {
        Some((_, meant)) => format!(": did you mean {meant}?"),
        None => did_you_mean(name, known.iter().copied()),
    }
}

fn absolute_folder(folder: &str, place: &RulePlace) -> Result<PathBuf, String> {
    let path = match (folder.strip_prefix('~'), &place.home) {
        (Some(rest), Some(home)) if rest.is_empty() || rest.starts_with('/') => home.join(rest.trim_start_matches('/')),
        _ => PathBuf::from(folder),
    };
    match (&place.base, path.is_absolute()) {
        (_, true) => Ok(path),
        (Some(base), false) => Ok(base.join(path)),
        (None, false) => Err(format!("the folder {folder:?} is not absolute")),
    }
}
