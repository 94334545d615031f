//! An action that an agent takes with a tool of its own, as a call. The agent does the work: the call decides whether it may,
//! and lasts until the agent says that it is done. No registry contains such a tool.

mod agent_file;
mod agent_folders;
mod content_search;
mod loaded_files;
mod needs;
mod own_commands;
mod plugins;
mod shell_snapshot;
mod skill_file;
mod started_programs;
mod startup_files;
mod touched;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use toold_adapters::agents::AgentAction;
use toold_engine::agent_request::{AgentRequest, Judgement, OBSERVED};
use toold_engine::callable::Callable;
use toold_engine::cx::Cx;
use toold_engine::need::Need;
use toold_engine::permission::check_again;
use toold_engine::tool::{Origin, ToolError, ToolOutput, ToolSpec};
use toold_host::environment::Environment;
use toold_host::file_systems::answering;
use toold_host::sandbox::{CommandToConfine, Confinement, FoundSecrets, SandboxUnavailable};
use toold_proto::agent_request::{DecidedBy, DeniedUnasked, NamedNeed};
use toold_proto::permission::Verdict;
use toold_proto::tool::{Annotations, Category, Source, SourceKind, ToolName};

use needs::{Deriving, description_in};
use shell_snapshot::ShellSnapshot;
use touched::{ToolEnd, TouchedFiles};

use crate::bash;
use crate::command_changes::beyond::DeclaredChanges;
use crate::command_changes::{CommandChanges, CommandWindow};
use crate::journal::ChangingCall;
use crate::toolkit::Toolkit;

/// Agents cut longer names of tools of MCP servers, each in its way, to 63 or 64 bytes.
const SHORTEST_CUT: usize = 63;

/// How long an agent may take to report the end of its tool, in which its own prompt may wait for a person.
const PATIENCE: Duration = Duration::from_secs(3600);

/// How the agent runs its command lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AgentFloor {
    /// As it likes: nothing can confine them.
    #[default]
    Impossible,
    /// As it likes, although they could be confined. Then nothing is allowed that no person allowed.
    Missing,
    /// Confined, if no person allowed them.
    OfFree,
    /// All of them confined.
    OfAll,
}

/// The agent's tool, and what is known of it.
pub struct AgentWork {
    /// The agent's own name of the tool.
    pub tool: String,
    pub input: Value,
    pub actions: Vec<AgentAction>,
    pub named: Vec<NamedNeed>,
    /// Why no needs can be derived.
    pub unclear: Option<String>,
    /// The shell that the agent runs commands in; `None` for bash.
    pub shell: Option<String>,
    /// The environment of the agent's programs.
    pub environment: Environment,
    pub floor: AgentFloor,
}

/// The end of the agent's tool; with a few words about its result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AgentReport {
    Done(String),
    Failed(String),
    /// It did not run: the agent's hook denied it in place of the question that was left to the agent.
    Denied(DeniedUnasked),
}

/// A call of such a tool. It can be called once.
pub struct AgentTool {
    spec: ToolSpec,
    request: Arc<AgentRequest>,
    toolkit: Arc<Toolkit>,
    work: AgentWork,
    /// Why toold cannot judge it, although it knows the tool: it is asked about as if a rule said so.
    unclear: Mutex<Option<String>>,
    /// Why the needs are not all of what it does, so that it is not allowed.
    partial: Mutex<Option<String>>,
    /// The command lines that the agent runs if it is allowed to.
    lines: Mutex<Vec<String>>,
    /// What it needs, as it was decided.
    needs: Mutex<Vec<Need>>,
    /// The secrets in the session's folders, if they were looked for when the needs were derived.
    secrets: Mutex<Option<FoundSecrets>>,
    /// Whether these lines run confined.
    confines: Mutex<bool>,
    judged: Mutex<Option<oneshot::Sender<Judgement>>>,
    report: Mutex<Option<oneshot::Receiver<AgentReport>>>,
    goes_on: SessionGoesOn,
    cx: Mutex<Option<Arc<Cx>>>,
}

/// The agent begins something else before it has reported the end of a tool: some report none, such as that of a command that
/// fails. What the tool has changed until then is recorded, and the call goes on, since agents also use several tools at a time.
#[derive(Debug, Default)]
pub struct SessionGoesOn {
    begun: CancellationToken,
    recorded: CancellationToken,
}

impl SessionGoesOn {
    /// Has it recorded, and waits for that; at most until the call `ended`.
    pub async fn record(&self, ended: &CancellationToken) {
        self.begun.cancel();
        tokio::select! {
            () = self.recorded.cancelled() => {}
            () = ended.cancelled() => {}
        }
    }
}

impl AgentTool {
    /// `judged` receives the judgement, unless the call ends before, as with a denial. `report` ends the call.
    pub fn new(
        toolkit: &Arc<Toolkit>,
        request: AgentRequest,
        work: AgentWork,
        judged: oneshot::Sender<Judgement>,
        report: oneshot::Receiver<AgentReport>,
    ) -> Self {
        Self {
            spec: spec(toolkit, &request, &work),
            request: Arc::new(request),
            toolkit: toolkit.clone(),
            unclear: Mutex::new(work.unclear.clone()),
            partial: Mutex::default(),
            lines: Mutex::default(),
            needs: Mutex::default(),
            secrets: Mutex::default(),
            confines: Mutex::default(),
            work,
            judged: Mutex::new(Some(judged)),
            report: Mutex::new(Some(report)),
            goes_on: SessionGoesOn::default(),
            cx: Mutex::default(),
        }
    }

    /// The agent, and how it is asked for.
    pub fn request(&self) -> &AgentRequest {
        &self.request
    }

    /// The call is about to be cancelled: for the audit log, how it ended for whom it is judged.
    pub fn note_gone(&self, how: &'static str) {
        // The first one is the reason for the others.
        let _ = self.request.gone.set(how);
    }

    pub fn goes_on(&self) -> &SessionGoesOn {
        &self.goes_on
    }

    /// The command lines that the agent runs if it is allowed to; once it was judged.
    pub fn lines(&self) -> Vec<String> {
        self.lines.lock().clone()
    }

    /// The restriction of one of these lines, which is about to begin: secrets and files that run code later may have been made
    /// since it was judged. `None` if it runs as it is. `changed`: rules, grants, modes or levels may be others now. Blocks.
    ///
    /// # Errors
    /// It is not allowed any more, or cannot be confined, in words for people and models.
    pub fn begin_line(&self, changed: bool) -> Result<Option<Confinement>, String> {
        let cx = self.context().ok_or("it was not judged")?;
        if changed {
            check_again(&cx, &self.needs.lock())?;
        }
        match *self.confines.lock() {
            true => self.confinement(&cx, None).map_err(|why| format!("the line cannot be confined: {why}")),
            false => Ok(None),
        }
    }

    /// The context of the call, once it has begun.
    pub fn context(&self) -> Option<Arc<Cx>> {
        self.cx.lock().clone()
    }

    async fn derive(&self, cx: &Cx) -> Vec<Need> {
        let shell = self.work.shell.as_deref().unwrap_or("bash");
        let snapshot = match self.request.agent.as_str() {
            "claude-code" if self.runs_commands() => ShellSnapshot::newest(shell, &self.work.environment)
                .map(|newest| newest.or_else(|| Some(startup_files::read(shell, &self.work.environment)))),
            _ => Ok(None),
        };
        let snapshot = snapshot.unwrap_or_else(|error| {
            self.note_unclear(&error.context("the aliases of the shell"));
            None
        });
        let deriving = Deriving {
            agent: &self.request.agent,
            toolkit: &self.toolkit,
            environment: &self.work.environment,
            shell,
            snapshot: snapshot.as_ref(),
            unclear: &self.unclear,
            description: description_in(&self.work.input),
            partial: &self.partial,
            lines: &self.lines,
            floor: self.work.floor,
            secrets: &self.secrets,
            cx,
        };
        let mut needs = Vec::new();
        for action in &self.work.actions {
            let is_named = self.is_named(action);
            if is_named && !matches!(action, AgentAction::Mcp { .. }) {
                continue;
            }
            match deriving.of_action(action).await {
                // The caller may not know all servers, so that what refuses another reading of the tool's name counts.
                Ok(found) if is_named => {
                    needs.extend(found.into_iter().filter(|need| needs::is_refused_reading(need, cx)))
                }
                Ok(found) => needs.extend(found),
                Err(error) => self.note_unclear(&error),
            }
            if *action == AgentAction::Unknown && !is_named {
                needs.extend(deriving.of_unknown(&self.work.input).await);
            }
            if let Some(rule) = self.denial_of_all(action, cx) {
                let category = categories_of(action).first().copied().unwrap_or(Category::Agent);
                needs.push(Need { forbidden: Some(rule), ..Need::new(category, &self.work.tool) });
            }
        }
        for named in &self.work.named {
            match deriving.of_named(named).await {
                Ok(found) => needs.extend(found),
                Err(error) => self.note_unclear(&error),
            }
        }
        needs
    }

    fn runs_commands(&self) -> bool {
        self.work.actions.iter().any(AgentAction::may_run_commands)
            || self.work.named.iter().any(|need| need.category == Category::Shell)
    }

    /// Whether the caller names the needs of the action: all of an unknown tool, and the server and tool of an MCP
    /// tool, which it knows better than the tool's name tells, unless the agent may have cut that.
    fn is_named(&self, action: &AgentAction) -> bool {
        let named = &self.work.named;
        let names_tool = || named.iter().any(|need| need.category == Category::Mcp);
        *action == AgentAction::Unknown && !named.is_empty()
            || matches!(action, AgentAction::Mcp { .. }) && names_tool() && self.work.tool.len() < SHORTEST_CUT
    }

    /// The rule that denies the action whatever its target is, because it denies everything of the kind, in words.
    fn denial_of_all(&self, action: &AgentAction, cx: &Cx) -> Option<String> {
        if self.is_named(action) {
            return None;
        }
        let denials: Option<Vec<String>> =
            categories_of(action).iter().map(|category| cx.denial_of_all(*category)).collect();
        denials?.into_iter().next()
    }

    fn note_unclear(&self, error: &anyhow::Error) {
        self.unclear.lock().get_or_insert_with(|| format!("{error:#}"));
    }

    /// An agent that is observed decides by itself, unless the question is about a protected write or what may be denied.
    fn judgement(&self, cx: &Cx) -> Judgement {
        let judgement = self.judgement_by_rules(cx);
        if !self.request.observed || judgement.protected || judgement.may_be_denied {
            return judgement;
        }
        Judgement::ask(format!("{OBSERVED}{} ({})", judgement.decision.as_str(), judgement.reason))
    }

    /// Allows only what was judged. What is not clear is asked about: as if a rule said so, if a rule may be about it.
    fn judgement_by_rules(&self, cx: &Cx) -> Judgement {
        let tool = &self.work.tool;
        let judgement = cx.judgement();
        let as_by_rule = |reason: String| {
            let by = DecidedBy::Rule;
            Judgement { by, protected: judgement.protected, may_be_denied: true, ..Judgement::ask(reason) }
        };
        if let Some(why) = self.unclear.lock().as_ref() {
            let reason = match judgement.decision {
                Verdict::Ask => format!("{}; {why}", judgement.reason),
                Verdict::Allow | Verdict::Deny => format!("toold can't judge {tool}: {why}"),
            };
            return as_by_rule(reason);
        }
        let mut unnamed = self.work.actions.iter().filter(|action| !self.is_named(action));
        if let Some(rule) = unnamed.find_map(|action| rule_about(action, cx)) {
            let reason = format!("toold can't tell what {tool} does, which may be about this: {rule}");
            return as_by_rule(reason);
        }
        let loads_file =
            |action: &AgentAction| matches!(action, AgentAction::Skill { .. } | AgentAction::SubAgent { .. });
        let loads_file = self.work.actions.iter().any(loads_file);
        match judgement.decision {
            // The model chose a file that runs commands before anybody sees them.
            Verdict::Ask if loads_file => Judgement { by: DecidedBy::Rule, ..judgement },
            Verdict::Allow if self.partial.lock().is_some() => {
                let why = self.partial.lock().clone().unwrap_or_default();
                Judgement::ask(format!("toold does not judge {tool}: {why}: the agent decides"))
            }
            Verdict::Allow if !self.judges_all() => {
                Judgement::ask(format!("toold does not judge {tool}: the agent decides"))
            }
            Verdict::Allow | Verdict::Ask | Verdict::Deny => judgement,
        }
    }

    /// Determines how the lines run. What no person allowed is left to the agent where it cannot be confined.
    ///
    /// # Errors
    /// They cannot run as the configuration says.
    fn with_floor(&self, judgement: Judgement, cx: &Cx) -> Result<Judgement, ToolError> {
        if self.lines.lock().is_empty() {
            return Ok(judgement);
        }
        let needs = self.needs.lock().clone();
        let is_freed = cx.is_freed(&judgement, &needs);
        match self.work.floor {
            AgentFloor::Missing if is_freed => {
                let reason = format!("{}, and toold cannot confine it here: the agent decides", judgement.reason);
                return Ok(Judgement::ask(reason));
            }
            AgentFloor::OfFree if !is_freed => return Ok(judgement),
            AgentFloor::Impossible | AgentFloor::Missing => return Ok(judgement),
            AgentFloor::OfFree | AgentFloor::OfAll => {}
        }
        let secrets = self.secrets.lock().take();
        let confinement = self.confinement(cx, secrets.as_ref());
        *self.confines.lock() = confinement.map_err(|error| ToolError::Failed(format!("not run: {error}")))?.is_some();
        Ok(judgement)
    }

    /// The restriction of the lines as the session's folders are now.
    fn confinement(&self, cx: &Cx, secrets: Option<&FoundSecrets>) -> Result<Option<Confinement>, SandboxUnavailable> {
        let environment = self.work.environment.clone().with(&cx.session.env);
        // Its shell reads the aliases there before the line.
        let seen: Vec<PathBuf> = ShellSnapshot::folder(&environment).into_iter().collect();
        let command = CommandToConfine {
            needs: &self.needs.lock(),
            cwd: &cx.cwd,
            environment: &environment,
            seen: &seen,
            opens_network: false,
            secrets,
        };
        self.toolkit.sandbox.confine(cx, &command)
    }

    /// Whether the judgement is about everything that the tool does. A skill does more than toold can see.
    fn judges_all(&self) -> bool {
        let is_judged = |action: &AgentAction| match action {
            AgentAction::Nothing
            | AgentAction::Skill { .. }
            | AgentAction::SubAgent { .. }
            | AgentAction::Unclear { .. } => false,
            AgentAction::Unknown => self.is_named(action),
            AgentAction::Command { .. }
            | AgentAction::Read { .. }
            | AgentAction::Write { .. }
            | AgentAction::Edit { .. }
            | AgentAction::Delete { .. }
            | AgentAction::Move { .. }
            | AgentAction::List { .. }
            | AgentAction::Search(_)
            | AgentAction::Fetch { .. }
            | AgentAction::WebSearch { .. }
            | AgentAction::Mcp { .. } => true,
        };
        let work = &self.work;
        work.actions.iter().all(is_judged) && !(work.actions.is_empty() && work.named.is_empty())
    }

    /// Begins to watch for what a command changes; `None` if the tool runs none.
    async fn window(&self, cx: &Cx) -> Option<CommandWindow> {
        let lines = self.work.actions.iter().filter_map(|action| match action {
            AgentAction::Command { line, .. } => Some(line.as_str()),
            _ => None,
        });
        let lines: Vec<&str> = lines.collect();
        if lines.is_empty() {
            return None;
        }
        let call = ChangingCall::of(cx).with_command(&lines.join("; "));
        let needs: Vec<Need> =
            lines.iter().flat_map(|line| bash::needs(line, &cx.cwd, None, &self.work.environment, cx)).collect();
        let declared = DeclaredChanges::of(&needs, &cx.session, &cx.cwd);
        let kind = (!bash::only_reads(&needs), &declared);
        Some(CommandChanges::begin(&self.toolkit.command_changes, &cx.session, call, kind).await)
    }

    async fn accompany(&self, cx: &Cx) -> Result<ToolOutput, ToolError> {
        let mut touched = TouchedFiles::look(&self.toolkit, &self.work.actions, cx).await;
        let mut window = self.window(cx).await;
        let (judged, report) = (self.judged.lock().take(), self.report.lock().take());
        let (Some(judged), Some(report)) = (judged, report) else {
            return Err(ToolError::Unavailable("an agent's tool is called once".to_owned()));
        };
        let judgement = self.with_floor(self.judgement(cx), cx)?;
        if cx.is_cancelled() || judged.send(judgement).is_err() {
            return Err(ToolError::Cancelled);
        }
        // It lasts as long as the agent's own prompt and tool do.
        let _pause = cx.deadline.pause();
        let (mut report, patience) = (report, tokio::time::Instant::now() + PATIENCE);
        let mut is_overdue = false;
        let report = loop {
            tokio::select! {
                biased;
                report = &mut report => break report.ok(),
                () = cx.cancel.cancelled() => break None,
                () = self.goes_on.begun.cancelled(), if !is_overdue => {
                    is_overdue = true;
                    touched.record_until_now(&self.toolkit, cx).await;
                    if let Some(window) = &mut window {
                        window.record_until_now().await;
                    }
                    self.goes_on.recorded.cancel();
                }
                () = tokio::time::sleep_until(patience) => break None,
            }
        };
        let end = match &report {
            Some(AgentReport::Done(_)) => ToolEnd::Done,
            Some(AgentReport::Failed(_) | AgentReport::Denied(_)) => ToolEnd::Failed,
            None => ToolEnd::Unknown,
        };
        // Otherwise it has ended when the session went on.
        if report.is_some() || !is_overdue {
            touched.record(&self.toolkit, cx, end).await;
            if let Some(window) = window {
                window.end().await;
            }
        }
        Ok(match report {
            Some(AgentReport::Done(summary)) => ToolOutput::text(summary),
            Some(AgentReport::Failed(summary)) => ToolOutput::error(summary),
            Some(AgentReport::Denied(why)) => cx.deny_unasked(why),
            None => ToolOutput::error("the agent did not report the end of its tool").with("timed_out", true),
        })
    }
}

impl Callable for AgentTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn agent_request(&self) -> Option<&Arc<AgentRequest>> {
        Some(&self.request)
    }

    fn needs<'a>(&'a self, input: &'a Value, cx: &'a Cx) -> BoxFuture<'a, Result<Vec<Need>, ToolError>> {
        async move {
            *self.cx.lock() = Some(cx.shared());
            if self.work.input.is_object() && *input != self.work.input {
                let words = "not run: a hook changed the arguments, and the agent's own tool would not use them";
                return Err(ToolError::Failed(words.to_owned()));
            }
            let needs = self.derive(cx).await;
            self.needs.lock().clone_from(&needs);
            Ok(needs)
        }
        .boxed()
    }

    fn may_block(&self) -> bool {
        answering::any()
    }

    fn call<'a>(&'a self, _: Value, cx: &'a Cx) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        self.accompany(cx).boxed()
    }
}

/// The rule that an action may be about whose target is not known. An unknown tool may do anything.
fn rule_about(action: &AgentAction, cx: &Cx) -> Option<String> {
    const DENIES: &[Verdict] = &[Verdict::Deny];
    let rule_about = |category: &Category| match category {
        Category::Mcp => cx.rule_about_any(Category::Mcp, &[Verdict::Deny, Verdict::Ask]),
        category => cx.rule_about_any(*category, DENIES),
    };
    match action {
        AgentAction::Mcp { .. } => rule_about(&Category::Mcp),
        action => categories_of(action).iter().find_map(rule_about),
    }
}

/// The categories that an action may be of whose target is not known; none for other actions.
fn categories_of(action: &AgentAction) -> &[Category] {
    const ANY: &[Category] =
        &[Category::Mcp, Category::FileWrite, Category::Shell, Category::Network, Category::FileRead];
    match action {
        AgentAction::Unclear { category } => std::slice::from_ref(category),
        AgentAction::SubAgent { .. } => &[Category::Agent],
        AgentAction::Unknown => ANY,
        _ => &[],
    }
}

fn spec(toolkit: &Toolkit, request: &AgentRequest, work: &AgentWork) -> ToolSpec {
    ToolSpec {
        name: name_of(work),
        label: work.tool.clone(),
        description: String::new(),
        input: toolkit.any_object.clone(),
        output: None,
        source: Source { kind: SourceKind::Frontend, name: request.agent.clone(), path: None },
        origin: Origin::Frontend,
        parallelizable: true,
        permissions: Vec::new(),
        cache_ttl: None,
        timeout: None,
        annotations: Annotations::default(),
        version: None,
        grammar: None,
    }
}

/// The built-in tool that does the same, whose rules apply; otherwise the agent's own name in the form of a tool's.
fn name_of(work: &AgentWork) -> ToolName {
    let same = |action: &AgentAction| match action {
        AgentAction::Command { .. } => Some("bash"),
        AgentAction::Read { .. } => Some("read"),
        AgentAction::Write { .. } => Some("write"),
        AgentAction::Edit { .. } => Some("edit"),
        AgentAction::Delete { .. } | AgentAction::Move { .. } => Some("apply_patch"),
        AgentAction::List { .. } => Some("list"),
        AgentAction::Search(_) => Some("grep"),
        AgentAction::Fetch { .. } => Some("web_fetch"),
        AgentAction::WebSearch { .. } => Some("web_search"),
        AgentAction::Mcp { .. }
        | AgentAction::Skill { .. }
        | AgentAction::SubAgent { .. }
        | AgentAction::Nothing
        | AgentAction::Unclear { .. }
        | AgentAction::Unknown => None,
    };
    let names: Vec<Option<&str>> = work.actions.iter().map(same).collect();
    let name = match names.as_slice() {
        [Some(name)] => (*name).to_owned(),
        [_, _, ..] if names.iter().all(|name| matches!(name, Some("write" | "edit" | "apply_patch"))) => {
            "apply_patch".to_owned()
        }
        [Some(name), ..] => (*name).to_owned(),
        _ => {
            let plain = work.tool.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' });
            let name: String = plain.skip_while(|c| !c.is_ascii_lowercase()).take(64).collect();
            if name.is_empty() { "unknown".to_owned() } else { name }
        }
    };
    ToolName::parse(&name).expect("small letters, digits and underscores after a letter are a name")
}
