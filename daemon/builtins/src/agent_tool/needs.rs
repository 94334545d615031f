//! The needs of an agent's own tool: those of the built-in tool that does the same.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, bail};
use parking_lot::Mutex;
use serde_json::Value;
use toold_adapters::agents::{self, AgentAction, ContentSearch};
use toold_engine::cx::Cx;
use toold_engine::decision::decide_need;
use toold_engine::need::{Need, NeedKind, Word};
use toold_host::environment::Environment;
use toold_host::sandbox::FoundSecrets;
use toold_host::shell_grammar;
use toold_proto::agent_request::{DecidedBy, NamedNeed};
use toold_proto::permission::Verdict;
use toold_proto::session::Mode;
use toold_proto::tool::Category;

use super::AgentFloor;
use super::content_search::{self, SearchedFiles};
use super::loaded_files::LoadedFile;
use super::own_commands;
use super::shell_snapshot::{ShellName, ShellSnapshot};
use crate::bash;
use crate::change::{self, Basis, Before, Change, ChangeTarget, NewState};
use crate::checkouts;
use crate::document::Document;
use crate::edits::{Replacement, apply};
use crate::paths::{Located, ReadableTree};
use crate::toolkit::Toolkit;
use crate::web_fetch;

/// How many aliases may stand for one another.
const MAX_ALIASES: usize = 8;

/// Derives needs.
pub(super) struct Deriving<'a> {
    pub(super) agent: &'a str,
    pub(super) toolkit: &'a Arc<Toolkit>,
    /// The environment of the agent's programs, before the session adds its variables.
    pub(super) environment: &'a Environment,
    /// The shell that runs the agent's commands.
    pub(super) shell: &'a str,
    /// The aliases and functions of that shell, where they are known.
    pub(super) snapshot: Option<&'a ShellSnapshot>,
    /// Set to the reason when an action cannot be judged, and a rule may be about it.
    pub(super) unclear: &'a Mutex<Option<String>>,
    /// The agent's own words about a command.
    pub(super) description: Option<&'a str>,
    /// Set to the reason when the needs are not all of what an action does.
    pub(super) partial: &'a Mutex<Option<String>>,
    /// The command lines that were found.
    pub(super) lines: &'a Mutex<Vec<String>>,
    pub(super) floor: AgentFloor,
    /// Set to the secrets that were found for it.
    pub(super) secrets: &'a Mutex<Option<FoundSecrets>>,
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
            AgentAction::Command { line, cwd } => {
                self.lines.lock().push(line.clone());
                self.command(line, cwd.as_deref()).await
            }
            AgentAction::Read { path } => Ok(read_needs(&Located::new(path, self.cx)?, self.cx)),
            AgentAction::List { path } => ReadableTree::needs(Some(path), self.cx),
            AgentAction::Search(search) => self.search(search).await,
            AgentAction::Fetch { url } => self.fetch(url),
            // The agent's provider searches, so there is no host.
            AgentAction::WebSearch { .. } => Ok(vec![Need::new(Category::Plugin, "web_search")]),
            AgentAction::Mcp { server, tool } => Ok(vec![mcp_need(format!("{server}/{tool}"))]),
            AgentAction::Skill { name, arguments } => {
                self.loaded(LoadedFile::Skill { name: name.clone(), arguments: arguments.clone() }).await
            }
            AgentAction::SubAgent { kind } => self.loaded(LoadedFile::SubAgent { kind: kind.clone() }).await,
            AgentAction::Nothing | AgentAction::Unclear { .. } | AgentAction::Unknown => Ok(Vec::new()),
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
    pub(super) async fn of_named(&self, named: &NamedNeed) -> anyhow::Result<Vec<Need>> {
        let NamedNeed { category, target } = named;
        match category {
            Category::FileRead => Ok(read_needs(&Located::new(target, self.cx)?, self.cx)),
            Category::FileWrite => {
                let located = Located::new(target, self.cx)?;
                let link = located.hides_its_target().then(|| located.to_write(self.cx));
                Ok(link.into_iter().chain([located.target_to_write(self.cx)]).collect())
            }
            Category::Shell => self.command(target, None).await,
            Category::Network if target.contains("://") => self.fetch(target),
            Category::Network => self.fetch(&format!("https://{target}")),
            Category::Mcp | Category::Agent | Category::Plugin => {
                anyhow::ensure!(!target.is_empty(), "a need without a target");
                Ok(vec![if *category == Category::Mcp { mcp_need(target) } else { Need::new(*category, target) }])
            }
        }
    }

    /// The commands, files and addresses that the input of an unknown tool names, as far as a rule or a protection refuses them. It
    /// may do something else with them.
    pub(super) async fn of_unknown(&self, input: &Value) -> Vec<Need> {
        let mut needs = Vec::new();
        // In the mode plan, the agent decides whether its tool only reads.
        let writes = self.cx.mode() != Mode::Plan;
        let named = agents::named_in(input).into_iter().filter(|named| writes || named.category != Category::FileWrite);
        for named in named {
            needs.extend(self.of_named(&named).await.unwrap_or_default());
        }
        needs.retain(|need| is_refused(need, self.cx));
        needs
    }

    /// The root, and the files below it that the agent may not read by itself.
    async fn search(&self, search: &ContentSearch) -> anyhow::Result<Vec<Need>> {
        let located = Located::new(&search.path, self.cx)?;
        let mut needs = read_needs(&located, self.cx);
        let not_known = |why: &str| {
            self.partial.lock().get_or_insert_with(|| why.to_owned());
        };
        if located.hides_its_target() {
            not_known("the files that it searches are not known");
            return Ok(needs);
        }
        let SearchedFiles { unreadable, partial } = content_search::look(located.path, search, self.cx).await?;
        needs.extend(unreadable);
        partial.iter().for_each(|why| not_known(why));
        Ok(needs)
    }

    pub(super) async fn command(&self, line: &str, cwd: Option<&str>) -> anyhow::Result<Vec<Need>> {
        let (folder, inside) = match cwd {
            Some(cwd) => self.folder(cwd)?,
            None => (self.cx.cwd.clone(), true),
        };
        let mut needs = self.expanded(line, &folder, &mut SeenNames::default());
        if matches!(self.floor, AgentFloor::OfFree | AgentFloor::OfAll) {
            let (level, session) = (self.cx.level_once_chosen(), &self.cx.session);
            let files = self.cx.guarded_files();
            let reader = (&*self.toolkit.sandbox, &self.toolkit.environment, files.policy());
            checkouts::add_overwritten(&mut needs, level, session, reader, &self.cx.cancel).await;
            let found = self.toolkit.sandbox.mark_confined(&mut needs, level, session, &folder, (&files, None));
            *self.secrets.lock() = found;
        }
        for need in needs.iter_mut().filter(|need| need.category() == Category::Shell) {
            // Nothing keeps the agent's command from changing anything.
            need.set_harmless(false);
            // Rules that allow commands are made for the session's folders.
            need.always_asked |= !inside;
            own_commands::forbid(need);
        }
        Ok(needs)
    }

    /// The needs of a line, of those that its aliases stand for, and of its functions for any words. The names of functions are
    /// taken for what they say only by rules that deny or ask.
    fn expanded(&self, line: &str, folder: &Path, seen: &mut SeenNames) -> Vec<Need> {
        let needs_in_bash = |line: &str| bash::needs(line, folder, self.description, self.environment, self.cx);
        let mut needs = shell_grammar::as_read_by(self.shell, line, needs_in_bash);
        // They type their commands into an interactive shell.
        if matches!(self.agent, "cursor" | "vscode")
            && shell_grammar::is_zsh(self.shell)
            && let Some(other) = shell_grammar::with_comments_as_words(line)
        {
            needs.extend(
                needs_in_bash(&other).into_iter().filter(|need| need.command().is_some_and(|of| of.words.is_some())),
            );
        }
        // It types into running programs without asking.
        if self.agent == "codex" {
            needs = shell_grammar::with_typed_commands(line, needs);
        }
        let commands = needs.iter_mut().filter(|need| need.category() == Category::Shell);
        // Any of its names may be an alias or a function of the person's shell.
        let any_may_be = shell_grammar::is_zsh(self.shell) && self.snapshot.is_none_or(ShellSnapshot::is_partial);
        let mut of_names = Vec::new();
        for need in commands {
            need.always_asked |= any_may_be;
            let Some(snapshot) = self.snapshot else { continue };
            let words = need.words().unwrap_or_default();
            match snapshot.meaning(words, &seen.aliases) {
                ShellName::Program if snapshot.is_partial() && self.is_no_program(words) => self.note_unread(need),
                ShellName::Program => {}
                ShellName::Alias(line) if seen.aliases.len() < MAX_ALIASES => {
                    seen.aliases.extend(words.first().map(|word| word.text.clone()));
                    of_names.extend(self.expanded(&line, folder, seen));
                    seen.aliases.pop();
                }
                ShellName::Function(definition) => {
                    need.always_asked = true;
                    if seen.functions.insert(definition.clone()) {
                        of_names.extend(self.expanded(&definition, folder, seen).into_iter().map(in_function));
                    }
                }
                ShellName::Alias(_) | ShellName::Unread => {
                    need.always_asked = true;
                    self.note_unread(need);
                }
            }
        }
        needs.extend(of_names);
        needs
    }

    /// The command may be an alias or a function that is not read: it is asked about if a rule may be about it.
    fn note_unread(&self, need: &mut Need) {
        if let Some(rule) = self.cx.rule_about_any(Category::Shell, &[Verdict::Deny, Verdict::Ask]) {
            need.always_asked = true;
            let name = need.words().unwrap_or_default().first().map_or("a command", |word| &word.text);
            self.unclear.lock().get_or_insert_with(|| {
                format!("{name} may be an alias or a function of the shell that does what this is about: {rule}")
            });
        }
    }

    /// Whether the command has a plain name that no program and no builtin has.
    fn is_no_program(&self, words: &[Word]) -> bool {
        let Some(Word { text: name, literal: true }) = words.first() else { return false };
        let path = self.environment.get("PATH").unwrap_or(OsStr::new("/usr/local/bin:/usr/bin:/bin"));
        let is_there = || std::env::split_paths(path).any(|folder| folder.join(name).is_file());
        !name.contains('/') && !shell_grammar::is_known_command(name) && !is_there()
    }

    /// The folder that a command runs in, and whether it is one of the session's.
    fn folder(&self, cwd: &str) -> anyhow::Result<(PathBuf, bool)> {
        let located = Located::new(cwd, self.cx)?;
        if located.hides_its_target() {
            return Ok((self.cx.cwd.clone(), false));
        }
        let inside = self.cx.session.contains(&located.path);
        Ok((located.path, inside))
    }

    fn fetch(&self, url: &str) -> anyhow::Result<Vec<Need>> {
        Ok(vec![self.toolkit.web.http.need(&web_fetch::request(url)?)])
    }
}

/// Names that the shell has already replaced.
#[derive(Default)]
struct SeenNames {
    /// Those that the line came from.
    aliases: Vec<String>,
    /// The definitions that were judged.
    functions: BTreeSet<String>,
}

/// A need of a function's text. The files that the words of its call name are judged with the call, and a text that cannot be
/// judged is a doubt about rules alone: the agent asks about the call.
fn in_function(need: Need) -> Need {
    need.with_command(|command| {
        command.hides_file = false;
        command.is_unjudged = false;
    })
}

/// A tool or a resource of a server that the agent has mounted, by the names that the agent gives them.
pub(super) fn mcp_need(target: impl Into<String>) -> Need {
    Need::of_kind(NeedKind::AgentMcp, target)
}

/// Whether a rule or a grant denies it or asks about it.
pub(super) fn is_refused(need: &Need, cx: &Cx) -> bool {
    let decision = decide_need(cx, &cx.outer_chain, need);
    decision.verdict != Verdict::Allow && decision.by != DecidedBy::Default
}

/// The same for a tool of a server that may not be there. A rule that asks about all tools asks about the one that is there.
pub(super) fn is_refused_reading(need: &Need, cx: &Cx) -> bool {
    let decision = decide_need(cx, &cx.outer_chain, need);
    let of_all = || decide_need(cx, &cx.outer_chain, &mcp_need("?/?"));
    is_refused(need, cx) && (decision.verdict == Verdict::Deny || decision.rule != of_all().rule)
}

/// A place on the path that needs permission comes before the file.
pub(super) fn read_needs(located: &Located, cx: &Cx) -> Vec<Need> {
    let link = located.hides_its_target().then(|| located.to_read(cx));
    link.into_iter().chain([located.target_to_read(cx)]).collect()
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
        | AgentAction::Search(_)
        | AgentAction::Fetch { .. }
        | AgentAction::WebSearch { .. }
        | AgentAction::Mcp { .. }
        | AgentAction::Skill { .. }
        | AgentAction::SubAgent { .. }
        | AgentAction::Nothing
        | AgentAction::Unclear { .. }
        | AgentAction::Unknown => return Ok(None),
    };
    Ok(Some(change))
}

fn edited(replacement: Option<&Replacement>, before: Option<&Before>) -> anyhow::Result<NewState> {
    let replacement = replacement.context("the new text is not known")?;
    let document = Document::decode(&before.context("there is no such file")?.bytes)?;
    let adopted = Replacement {
        old: document.adopt_part(&replacement.old),
        new: document.adopt_part(&replacement.new),
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
