//! Rules as people write them, and what becomes of those that cannot be read.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toold_proto::permission::{RuleInfo, Verdict};
use toold_proto::tool::Category;

use crate::policy::pattern::{Pattern, escape_glob};
use crate::policy::{Broken, Policy, Rule, ToolGlobs};

/// One `[[permission.rules]]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RuleConfig {
    #[schemars(extend("enum" = Category::ALL))]
    pub category: String,
    /// `**` matches everything of its category. Else of a command: words, quoted as for a shell, `*` for any text
    /// within one, as the last word for any further ones. Of a file: a glob over its path. Of the network: `host` or
    /// `host:port`. Of all else: a glob over the name.
    pub pattern: String,
    /// `allow`, `ask` or `deny`.
    #[schemars(extend("enum" = ["allow", "ask", "deny"]))]
    pub action: String,
    /// Only for these tools, as globs; absent for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    /// Only in calls whose folder lies in this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
}

/// Where a rule stands, and how much that counts.
#[derive(Clone, Debug)]
pub struct RulePlace {
    /// File and line, for people.
    pub origin: String,
    /// The project whose configuration it stands in; `None` for the user's own.
    pub project: Option<PathBuf>,
    /// What a project allows counts only when it is trusted; what it denies or asks always does.
    pub trusted: bool,
    /// The folder that relative paths in it mean: the project, or the user's home.
    pub base: Option<PathBuf>,
    /// What `~` means.
    pub home: Option<PathBuf>,
}

/// What a project loses when it cannot be told which category a rule of its was for.
const UNKNOWN: [Category; 4] = [Category::FileWrite, Category::Shell, Category::Network, Category::Mcp];

impl Policy {
    /// Adds the rules to what is there. One that cannot be read is told in `broken` and denies.
    pub fn with_rules(mut self, rules: impl IntoIterator<Item = (RuleConfig, RulePlace)>) -> Self {
        for (config, place) in rules {
            match read_rule(&config, &place) {
                Ok(rule) if rule.action == Verdict::Allow && !place.trusted => {}
                Ok(rule) => self.rules.push(rule),
                Err(reason) => self.close(&config, place, &reason),
            }
        }
        self
    }

    /// A policy of these rules alone.
    pub fn from_rules(rules: impl IntoIterator<Item = (RuleConfig, RulePlace)>) -> Self {
        Self::default().with_rules(rules)
    }

    /// What a rule that cannot be read takes away: all of its category, of an unknown one all but what
    /// needs no leave. A project's takes it from the project alone.
    fn close(&mut self, config: &RuleConfig, place: RulePlace, reason: &str) {
        let told = format!("{}: {reason}", place.origin);
        let categories = match (Category::parse(&config.category), &place.project) {
            (Some(category), _) => vec![category],
            (None, Some(_)) => UNKNOWN.to_vec(),
            (None, None) => Vec::new(),
        };
        let rule = format!("a rule that cannot be read: {told}");
        if place.project.is_none() {
            self.broken.push(told);
        }
        let project = place.project;
        let closed = |category| Broken { category, project: project.clone(), rule: rule.clone() };
        self.closed.extend(categories.into_iter().map(closed));
    }

    /// A project's configuration cannot be read, and may have denied anything: all that needs leave is denied there.
    pub fn close_project(&mut self, project: &Path, problem: &str) {
        let rule = format!("a configuration that cannot be read: {problem}");
        let closed = |category| Broken { category, project: Some(project.to_owned()), rule: rule.clone() };
        self.closed.extend(UNKNOWN.map(closed));
    }

    /// What could not be read, as `permissions.list` shows it.
    pub fn describe_broken(&self) -> Vec<String> {
        let of_projects =
            self.closed.iter().filter(|closed| closed.project.is_some()).map(|closed| closed.rule.clone());
        let mut all: Vec<String> = self.broken.iter().cloned().chain(of_projects).collect();
        all.dedup();
        all
    }

    /// The rules, as `permissions.list` shows them.
    pub fn describe_rules(&self) -> Vec<RuleInfo> {
        self.rules.iter().map(Rule::describe).collect()
    }
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
            source: self.origin.clone(),
        }
    }
}

/// # Errors
/// What is wrong with it, in words.
pub fn read_rule(config: &RuleConfig, place: &RulePlace) -> Result<Rule, String> {
    let category = Category::parse(&config.category).ok_or_else(|| {
        let known = Category::ALL.map(Category::as_str).join(", ");
        format!("{:?} is no category: expected one of {known}", config.category)
    })?;
    let action = match config.action.as_str() {
        "allow" => Verdict::Allow,
        "ask" => Verdict::Ask,
        "deny" => Verdict::Deny,
        other => return Err(format!("{other:?} is no action: expected allow, ask or deny")),
    };
    let pattern = match category {
        Category::FileRead | Category::FileWrite => absolute_pattern(&config.pattern, place)?,
        Category::Shell | Category::Network | Category::Mcp | Category::Agent | Category::Plugin => {
            config.pattern.clone()
        }
    };
    let tools = config.tools.as_deref().map(ToolGlobs::new).transpose().map_err(|error| error.to_string())?;
    Ok(Rule {
        category,
        pattern: Pattern::parse(category, &pattern).map_err(|error| error.to_string())?,
        action,
        tools,
        cwd: config.cwd.as_ref().map(|cwd| absolute_folder(cwd, place)).transpose()?,
        project: place.project.clone(),
        origin: place.origin.clone(),
    })
}

/// A pattern of paths as it is written, with `~` and the folder that it is relative to in their place.
pub(crate) fn absolute_pattern(pattern: &str, place: &RulePlace) -> Result<String, String> {
    if pattern.starts_with('/') || pattern.starts_with("**") {
        return Ok(pattern.to_owned());
    }
    let below = |folder: &Option<PathBuf>, rest: &str| {
        let folder =
            folder.as_deref().and_then(Path::to_str).ok_or("there is no folder that it could be relative to")?;
        Ok(format!("{}/{rest}", escape_glob(folder.trim_end_matches('/'))).trim_end_matches('/').to_owned())
    };
    match pattern.strip_prefix('~') {
        Some("") => below(&place.home, ""),
        Some(rest) if rest.starts_with('/') => below(&place.home, &rest[1..]),
        Some(_) => Err("of the home folders only one's own can be named, as ~/".into()),
        None => below(&place.base, pattern.trim_start_matches("./")),
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
