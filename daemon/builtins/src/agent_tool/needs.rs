//! The needs of an agent's own tool: those of the built-in tool that does the same.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, bail};
use serde_json::Value;
use toold_adapters::agents::AgentAction;
use toold_engine::cx::Cx;
use toold_engine::need::Need;
use toold_host::environment::Environment;
use toold_host::exclude::Exclusions;
use toold_host::file_needs;
use toold_host::shell_grammar;
use toold_proto::agent_request::NamedNeed;
use toold_proto::tool::Category;

use crate::bash;
use crate::change::{self, Basis, Before, Change, ChangeTarget, NewState};
use crate::document::Document;
use crate::edits::{Replacement, apply};
use crate::paths::{Located, ReadableTree};
use crate::toolkit::Toolkit;
use crate::web_fetch;

/// Derives needs.
pub(super) struct Deriving<'a> {
    pub(super) toolkit: &'a Arc<Toolkit>,
    /// The environment of the agent's programs, before the session adds its variables.
    pub(super) environment: &'a Environment,
    /// The shell that runs the agent's commands.
    pub(super) shell: &'a str,
    /// The agent's own words about a command.
    pub(super) description: Option<&'a str>,
    pub(super) cx: &'a Cx,
}

impl Deriving<'_> {
    /// The needs of one action.
    ///
    /// # Errors
    /// They cannot be determined, as a sentence.
    pub(super) async fn of_action(&self, action: &AgentAction) -> anyhow::Result<Vec<Need>> {
        if let Some(change) = change_of(self.toolkit, action, self.cx)? {
            return Ok(change::needs_of_agent(change, self.cx).await);
        }
        match action {
            AgentAction::Command { line, cwd } => self.command(line, cwd.as_deref()),
            AgentAction::Read { path } => Ok(read_needs(&Located::new(path, self.cx)?)),
            AgentAction::List { path } => ReadableTree::needs(Some(path), self.cx),
            AgentAction::Fetch { url } => self.fetch(url),
            // The agent's provider searches, so there is no host.
            AgentAction::WebSearch { .. } => Ok(vec![Need::new(Category::Plugin, "web_search")]),
            AgentAction::Mcp { server, tool } => Ok(vec![Need::new(Category::Mcp, format!("{server}/{tool}"))]),
            AgentAction::Nothing => Ok(Vec::new()),
            AgentAction::Unknown => bail!("the tool is not known to toold"),
            AgentAction::Write { .. }
            | AgentAction::Edit { .. }
            | AgentAction::Delete { .. }
            | AgentAction::Move { .. } => Ok(Vec::new()),
        }
    }

    /// The needs that the caller names.
    ///
    /// # Errors
    /// As [`Deriving::of_action`].
    pub(super) fn of_named(&self, named: &NamedNeed) -> anyhow::Result<Vec<Need>> {
        let NamedNeed { category, target } = named;
        match category {
            Category::FileRead => Ok(read_needs(&Located::new(target, self.cx)?)),
            Category::FileWrite => {
                let located = Located::new(target, self.cx)?;
                let veil = located.is_veiled().then(|| located.to_write());
                let whole = file_needs::write_need(&located.path, &mut Exclusions::default());
                Ok(veil.into_iter().chain([whole]).collect())
            }
            Category::Shell => self.command(target, None),
            Category::Network if target.contains("://") => self.fetch(target),
            Category::Network => self.fetch(&format!("https://{target}")),
            Category::Mcp | Category::Agent | Category::Plugin => {
                anyhow::ensure!(!target.is_empty(), "a need without a target");
                Ok(vec![Need::new(*category, target)])
            }
        }
    }

    fn command(&self, line: &str, cwd: Option<&str>) -> anyhow::Result<Vec<Need>> {
        let folder = match cwd {
            Some(cwd) => self.folder(cwd)?,
            None => self.cx.cwd.clone(),
        };
        let needs = bash::needs(line, &folder, self.description, self.environment, self.cx);
        let mut needs = shell_grammar::as_read_by(self.shell, line, needs);
        // Nothing confines the agent's command.
        needs.iter_mut().filter(|need| need.category == Category::Shell).for_each(|need| need.harmless = false);
        Ok(needs)
    }

    /// Rules for commands are made for the session's folders.
    fn folder(&self, cwd: &str) -> anyhow::Result<PathBuf> {
        let located = Located::new(cwd, self.cx)?;
        let inside = !located.is_veiled() && self.cx.session.contains(&located.path);
        anyhow::ensure!(inside, "it runs in {cwd}, outside of the session's folders");
        Ok(located.path)
    }

    fn fetch(&self, url: &str) -> anyhow::Result<Vec<Need>> {
        Ok(vec![self.toolkit.web.http.need(&web_fetch::request(url)?)])
    }
}

/// A place on the path that needs permission comes before the file.
fn read_needs(located: &Located) -> Vec<Need> {
    let veil = located.is_veiled().then(|| located.to_read());
    veil.into_iter().chain([file_needs::read_need(&located.path, &mut Exclusions::default())]).collect()
}

/// The change of files that an action makes.
///
/// # Errors
/// A path cannot be resolved.
pub(super) fn change_of(toolkit: &Arc<Toolkit>, action: &AgentAction, cx: &Cx) -> anyhow::Result<Option<Change>> {
    let target = |path: &str| ChangeTarget::new(toolkit, path, cx);
    let change = match action {
        AgentAction::Write { path, text } => {
            let text = text.clone();
            Change::of_file(target(path)?, Basis::NewText, move |_, _| match &text {
                Some(text) => Ok(NewState::of(text.clone().into_bytes())),
                None => bail!("the new text is not known"),
            })
        }
        AgentAction::Edit { path, old, new, all } => {
            let replacement = old.clone().zip(new.clone()).map(|(old, new)| Replacement { old, new, all: *all });
            Change::of_file(target(path)?, Basis::OldText, move |_, before| edited(replacement.as_ref(), before))
        }
        AgentAction::Delete { path } => Change::of_file(target(path)?, Basis::NewText, |_, _| Ok(NewState::default())),
        AgentAction::Move { from, to } => {
            let targets = vec![(target(from)?, Basis::OldText), (target(to)?, Basis::NewText)];
            Change::new(targets, Arc::new(|_: &[ChangeTarget], before: &[Option<Before>]| moved(before)))
        }
        AgentAction::Command { .. }
        | AgentAction::Read { .. }
        | AgentAction::List { .. }
        | AgentAction::Fetch { .. }
        | AgentAction::WebSearch { .. }
        | AgentAction::Mcp { .. }
        | AgentAction::Nothing
        | AgentAction::Unknown => return Ok(None),
    };
    Ok(Some(change))
}

fn edited(replacement: Option<&Replacement>, before: Option<&Before>) -> anyhow::Result<NewState> {
    let replacement = replacement.context("the new text is not known")?;
    let document = Document::decode(&before.context("there is no such file")?.bytes)?;
    let adopted = Replacement {
        old: document.adopt(&replacement.old),
        new: document.adopt(&replacement.new),
        all: replacement.all,
    };
    let edited = apply(&document.text, &[adopted])?;
    Ok(NewState::of(document.encode(&edited.text)?))
}

/// The file before the other, which is its new place.
fn moved(before: &[Option<Before>]) -> anyhow::Result<Vec<NewState>> {
    let content = before.first().and_then(Option::as_ref).context("there is no such file")?.bytes.clone();
    Ok(vec![NewState::default(), NewState::of(content)])
}

/// The purpose of the command, in the agent's own words.
pub(super) fn description_in(input: &Value) -> Option<&str> {
    input.get("description").and_then(Value::as_str).filter(|text| !text.trim().is_empty())
}
