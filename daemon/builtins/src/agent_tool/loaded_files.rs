//! The needs of files that an agent loads when it uses a skill or starts a sub-agent: a skill may run in a sub-agent, and a
//! sub-agent may begin with skills.

use std::collections::BTreeSet;

use anyhow::{bail, ensure};
use toold_adapters::agents::AgentAction;
use toold_engine::decision::decide_need;
use toold_engine::need::Need;
use toold_proto::agent_request::{DecidedBy, NamedNeed};
use toold_proto::permission::Verdict;
use toold_proto::tool::Category;

use super::needs::{Deriving, is_refused, mcp_need, read_needs};
use super::skill_file::{self, SkillFile, SkillPermission};
use super::started_programs::StartedPrograms;
use super::{AgentFloor, agent_file, rule_about};
use crate::paths::Located;

/// How many files may load one another.
const MAX_LOADED: usize = 64;

/// A file that is loaded by its name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum LoadedFile {
    Skill { name: String, arguments: String },
    SubAgent { kind: String },
}

impl Deriving<'_> {
    /// The needs of loading a file, and of those that it has loaded.
    ///
    /// # Errors
    /// A file cannot be read for certain, or there are too many.
    pub(super) async fn loaded(&self, first: LoadedFile) -> anyhow::Result<Vec<Need>> {
        let mut needs = Vec::new();
        let mut waiting = vec![first];
        let mut seen = BTreeSet::new();
        while let Some(file) = waiting.pop() {
            if !seen.insert(file.clone()) {
                continue;
            }
            ensure!(seen.len() <= MAX_LOADED, "more than {MAX_LOADED} skills and sub-agents are loaded at once");
            needs.extend(match &file {
                LoadedFile::Skill { name, arguments } => self.skill(name, arguments, &mut waiting).await?,
                LoadedFile::SubAgent { kind } => self.sub_agent(kind, &mut waiting).await?,
            });
        }
        Ok(needs)
    }

    /// The programs that the files of a sub-agent start with it, and the servers that they name.
    async fn sub_agent(&self, kind: &str, waiting: &mut Vec<LoadedFile>) -> anyhow::Result<Vec<Need>> {
        let mut needs = Vec::new();
        let files = agent_file::find(self.agent, kind, &self.cx.cwd, self.environment)?;
        // One of a plugin that was named on the command line, for example.
        if files.is_empty()
            && kind.contains(':')
            && let Some(rule) = rule_about(&AgentAction::Unknown, self.cx)
        {
            bail!("no file of the sub-agent {kind} is where toold looks for it, and it may be about this: {rule}");
        }
        for file in files {
            let mut of_file = self.started(&file.starts, &format!("sub-agent {kind}")).await?;
            of_file.retain(|need| !file.is_confirmed || is_refused(need, self.cx));
            needs.extend(of_file);
            let skill = |name| LoadedFile::Skill { name, arguments: String::new() };
            waiting.extend(file.skills.into_iter().map(skill));
        }
        Ok(needs)
    }

    /// The needs of programs and servers that a file names, which no floor confines.
    async fn started(&self, starts: &StartedPrograms, by: &str) -> anyhow::Result<Vec<Need>> {
        let deriving = Deriving { shell: "bash", description: None, floor: AgentFloor::Impossible, ..*self };
        let mut needs = Vec::new();
        for line in &starts.lines {
            needs.extend(deriving.command(line, None).await?);
        }
        for url in &starts.urls {
            needs.extend(self.of_named(&NamedNeed { category: Category::Network, target: url.clone() }).await?);
        }
        needs.extend(starts.others.iter().map(|member| Need::new(Category::Plugin, format!("{by}: {member}"))));
        Ok(explained(needs, &format!("the {by} starts it")).collect())
    }

    /// The commands that the agent runs when it loads the skill, the files that it reads and the sub-agent that it starts
    /// then, and what the skill's file lets it do without asking.
    async fn skill(&self, name: &str, arguments: &str, waiting: &mut Vec<LoadedFile>) -> anyhow::Result<Vec<Need>> {
        let mut needs = Vec::new();
        let files = skill_file::find(self.agent, name, &self.cx.cwd, self.environment)?;
        if files.is_empty()
            && !skill_file::needs_no_file(self.agent, name)
            && let Some(rule) = rule_about(&AgentAction::Unknown, self.cx)
        {
            bail!("no file of the skill {name} is where toold looks for it, and it may be about this: {rule}");
        }
        for file in files {
            let skill = SkillFile::read(self.agent, &file, arguments)?;
            let shell = skill.shell.as_deref().unwrap_or(self.shell);
            let deriving = Deriving { shell, description: None, ..*self };
            for line in &skill.commands {
                self.lines.lock().push(line.clone());
                let found = deriving.command(line, None).await?;
                needs.extend(explained(found, &format!("the skill {name} runs it as it is loaded")));
            }
            needs.extend(self.started(&skill.hooks, &format!("skill {name}")).await?);
            for mention in &skill.mentions {
                needs.extend(self.mentioned(mention).into_iter().map(|need| {
                    let reason = format!("the skill {name} reads it as it is loaded");
                    need.because(reason)
                }));
            }
            waiting.extend(skill.agent.iter().map(|kind| LoadedFile::SubAgent { kind: kind.clone() }));
            if let Some(agent) = &skill.agent
                && self.cx.rule_about_any(Category::Agent, &[Verdict::Deny]).is_some()
            {
                let need = Need::new(Category::Agent, agent).because(format!("the skill {name} runs in it"));
                needs.push(Need { always_asked: true, ..need });
            }
            for permission in &skill.permissions {
                let found = match permission {
                    SkillPermission::Command(line) => deriving.command(line, None).await?,
                    SkillPermission::Commands { start, any } => deriving.permitted(start.as_deref(), any).await?,
                    SkillPermission::Need(need) => deriving.of_named(need).await?,
                    SkillPermission::Other(text) => vec![Need::new(Category::Plugin, format!("skill {name}: {text}"))],
                };
                needs.extend(explained(found, &format!("the skill {name} lets the agent do it without asking")));
            }
        }
        Ok(needs)
    }

    /// The needs of lines that a skill permits. A rule that allows the command allows what follows it; else only its start
    /// may be free. The files that it reads are judged when it comes.
    async fn permitted(&self, start: Option<&str>, any: &str) -> anyhow::Result<Vec<Need>> {
        let is_free = |need: &Need| {
            let decision = decide_need(self.cx, &self.cx.outer_chain, need);
            decision.verdict == Verdict::Allow && (decision.by == DecidedBy::Default || decision.by_level)
        };
        let of_start = match start {
            Some(start) => self.command(start, None).await?,
            None => Vec::new(),
        };
        let commands: Vec<&Need> = of_start.iter().filter(|need| need.category() == Category::Shell).collect();
        let says_too_little = commands.is_empty() || commands.into_iter().any(is_free);
        let mut needs = if says_too_little { self.command(any, None).await? } else { of_start };
        needs.retain(|need| need.category() != Category::FileRead);
        Ok(needs)
    }

    /// The files and resources that a mentioned name may stand for, as far as a rule denies or asks about them. Claude Code asks
    /// about none of them.
    fn mentioned(&self, name: &str) -> Vec<Need> {
        let file =
            Located::new(name, self.cx).ok().filter(|located| located.hides_its_target() || located.path.exists());
        let mut needs = file.map(|located| read_needs(&located, self.cx)).unwrap_or_default();
        let rule_about_mcp = || self.cx.rule_about_any(Category::Mcp, &[Verdict::Deny, Verdict::Ask]);
        if let Some((server, uri)) = name.split_once(':')
            && rule_about_mcp().is_some()
        {
            needs.push(mcp_need(format!("{server}/resource/{uri}")));
        }
        needs.retain(|need| is_refused(need, self.cx));
        needs
    }
}

/// Says why, for needs that have no reason of their own.
fn explained(needs: Vec<Need>, reason: &str) -> impl Iterator<Item = Need> {
    needs.into_iter().map(move |need| Need { reason: need.reason.clone().or_else(|| Some(reason.to_owned())), ..need })
}
