//! Command lines of agents that were judged and may run, each once: `permissions.confine`.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use jsonrpsee::types::ErrorObjectOwned;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};
use toold_builtins::agent_tool::AgentTool;
use toold_engine::agent_request::Judgement;
use toold_host::launcher;
use toold_host::process_registry::{StopSignal, signal_trees};
use toold_host::sandbox::control_watch::{ControlWatch, SetAside};
use toold_host::sandbox::{ConfinedLife, ProgramStarter, attend};
use toold_proto::agent_request::{ConfineCommand, ConfinedCommand, RequestPermission};
use toold_proto::permission::Verdict;
use toold_proto::tool::CallId;

use super::pending::RequestingAgent;
use super::{conversation_of, note_agent, requester};
use crate::peer::agent_processes::ProcessId;
use crate::peer::process_end;
use crate::rpc::MethodRequest;
use crate::rpc::blocking::blocking;
use crate::rpc::error::{invalid_params, refused};

/// How long a line that was allowed may take until it runs.
const VALID: Duration = Duration::from_secs(60);
/// The same where the agent asks its user; the end of the turn ends it too.
const VALID_WHILE_ASKED: Duration = Duration::from_secs(3600);

/// How long the end of a request waits for the end of its line, which has ended unless it runs in the background.
const ENDS_WITHIN: Duration = Duration::from_millis(300);

/// Above this many, the oldest are forgotten.
const MAX_APPROVALS: usize = 1_024;

struct CommandApproval {
    /// The request that it was judged for.
    request_id: String,
    requester: RequestingAgent,
    /// `AGENT/SESSION` of the agent's conversation.
    conversation: String,
    line: blake3::Hash,
    until: Instant,
    tool: Arc<AgentTool>,
    /// The rules, grants, modes and levels that it was judged with.
    generation: u64,
}

/// A line that runs confined, or has run, and whose request has not been reported as ended.
pub(super) struct ConfinedRun {
    request_id: String,
    requester: RequestingAgent,
    conversation: String,
    call_id: CallId,
    /// The process that became the line's program.
    program: ProcessId,
    /// The agent has reported the end.
    is_reported: Arc<Notify>,
    /// When the line has ended: sentences about what was set aside.
    aside: JoinHandle<Vec<String>>,
}

/// See [`CommandApprovals::signal`].
pub(crate) struct SignalledRuns {
    /// Also those whose line has ended and whose agent has not reported it.
    pub(crate) calls: Vec<CallId>,
    /// The lines that ran, or of which something did.
    pub(crate) alive: usize,
    pub(crate) processes: usize,
}

/// The lines that may run, and those that run.
#[derive(Default)]
pub(crate) struct CommandApprovals {
    approved: Mutex<Vec<CommandApproval>>,
    runs: Mutex<Vec<ConfinedRun>>,
    /// Also those whose line has ended and left something that runs.
    lives: Mutex<Vec<ConfinedLife>>,
}

impl CommandApprovals {
    /// Approves one run of each line, if the agent names its conversation.
    pub(super) fn leave(
        &self,
        request_id: &str,
        requester: &RequestingAgent,
        params: &RequestPermission,
        judgement: &Judgement,
        (tool, generation): (&Arc<AgentTool>, u64),
    ) {
        let Some(session) = &params.session else { return };
        let valid = if judgement.decision == Verdict::Allow { VALID } else { VALID_WHILE_ASKED };
        let now = Instant::now();
        let mut all = self.approved.lock();
        all.retain(|approval| approval.until > now);
        all.extend(tool.lines().iter().map(|line| CommandApproval {
            request_id: request_id.to_owned(),
            requester: requester.clone(),
            conversation: conversation_of(&params.agent, session),
            line: digest(line, &params.cwd),
            until: now + valid,
            tool: tool.clone(),
            generation,
        }));
        let surplus = all.len().saturating_sub(MAX_APPROVALS);
        all.drain(..surplus);
    }

    /// Takes the approval of one run; `None` if there is none.
    fn take(&self, requester: &RequestingAgent, params: &ConfineCommand) -> Option<CommandApproval> {
        let conversation = conversation_of(&params.agent, &params.session);
        let (line, now) = (digest(&params.command, &params.cwd), Instant::now());
        let mut all = self.approved.lock();
        let at = all.iter().position(|approval| {
            approval.line == line
                && approval.until > now
                && approval.conversation == conversation
                && approval.requester == *requester
        })?;
        Some(all.remove(at))
    }

    /// The line of this request does not run: nobody was asked in place of the agent.
    pub(super) fn deny(&self, request_id: &str, may_end: impl Fn(&RequestingAgent) -> bool) {
        let is_it = |approval: &CommandApproval| approval.request_id == request_id && may_end(&approval.requester);
        self.approved.lock().retain(|approval| !is_it(approval));
    }

    /// The turn of a conversation, or the conversation, has ended: what its agent's user was asked about will not run. What was
    /// allowed may still be about to start.
    pub(super) fn end(&self, conversation: &str, may_end: impl Fn(&RequestingAgent) -> bool) {
        let latest = Instant::now() + VALID;
        let is_over = |approval: &CommandApproval| {
            approval.conversation == conversation && may_end(&approval.requester) && approval.until > latest
        };
        self.approved.lock().retain(|approval| !is_over(approval));
        self.runs.lock().retain(|run| run.conversation != conversation || !may_end(&run.requester));
    }

    fn add_run(&self, run: ConfinedRun) {
        let mut runs = self.runs.lock();
        let surplus = (runs.len() + 1).saturating_sub(MAX_APPROVALS);
        runs.drain(..surplus);
        runs.push(run);
    }

    fn follow(&self, life: Option<ConfinedLife>) {
        let mut lives = self.lives.lock();
        lives.retain(|life| !life.is_over());
        lives.extend(life);
    }

    /// Stops the lines that run confined, with all processes below them and those that have lost their parents, ends them, or lets
    /// them go on. Blocks.
    pub(crate) fn signal(&self, signal: StopSignal) -> SignalledRuns {
        let is_running = |life: &&ConfinedLife| !life.is_over() && life.mounts().is_some();
        let lives: Vec<ConfinedLife> = self.lives.lock().iter().filter(is_running).cloned().collect();
        let runs = self.runs.lock();
        let alive: Vec<u32> = runs.iter().filter(|run| run.program.is_alive()).map(|run| run.program.pid).collect();
        let calls = runs.iter().map(|run| run.call_id.clone()).collect();
        let lines = alive.len().max(lives.len());
        let processes = signal_trees(&alive, lives, signal);
        SignalledRuns { calls, alive: lines, processes }
    }

    /// The lines of this request, which have ended or are about to end.
    pub(super) fn take_runs(&self, request_id: &str, may_end: impl Fn(&RequestingAgent) -> bool) -> Vec<ConfinedRun> {
        let is_it = |run: &mut ConfinedRun| run.request_id == request_id && may_end(&run.requester);
        self.runs.lock().extract_if(.., is_it).collect()
    }
}

/// Sentences about what was set aside after these lines. One that goes on in the background says them in the log alone.
pub(super) async fn notes(runs: Vec<ConfinedRun>) -> Vec<String> {
    let until = Instant::now() + ENDS_WITHIN;
    runs.iter().for_each(|run| run.is_reported.notify_one());
    let mut notes = Vec::new();
    for run in runs {
        // Fails when the runtime stops, too.
        if let Ok(Ok(words)) = timeout_at(until, run.aside).await {
            notes.extend(words);
        }
    }
    notes
}

/// Sets aside what a line has made. Blocks.
fn set_aside(watch: ControlWatch) -> Vec<String> {
    let words = match watch.settle() {
        Ok(aside) => aside.iter().map(SetAside::words).collect(),
        Err(why) => vec![format!("after a confined command: {why}")],
    };
    words.iter().for_each(|words| tracing::warn!("{words}"));
    words
}

/// The digest of a line in its folder, which may be named by a link.
fn digest(line: &str, cwd: &str) -> blake3::Hash {
    let real = Path::new(cwd).canonicalize().unwrap_or_else(|_| cwd.into());
    blake3::hash(format!("{line}\0{}", real.display()).as_bytes())
}

pub(super) async fn confine(
    request: MethodRequest,
    params: ConfineCommand,
) -> Result<ConfinedCommand, ErrorObjectOwned> {
    let shell = Path::new(&params.program);
    if !shell.is_absolute() {
        return Err(invalid_params(&format!("program: {} is not an absolute path", params.program)));
    }
    let connection = request.connection();
    note_agent(connection, &params.agent);
    let approval = request.services.command_approvals.take(&requester(connection), &params);
    let Some(approval) = approval else {
        return Err(refused("not_approved", "nothing approved this line in this folder, or it has run already"));
    };
    let (tool, services) = (approval.tool.clone(), request.services.clone());
    let begun = blocking(move || {
        // Also what changes from now on counts.
        let changed = approval.generation != services.engine.policy_generation();
        tool.begin_line(changed)
    });
    let Some(mut confinement) = begun.await?.map_err(|why| refused("not_approved", &why))? else {
        return Ok(ConfinedCommand { arguments: None });
    };
    let words = |why: &str| refused("no_sandbox", &format!("the line cannot be confined: {why}"));
    let attended = attend(&mut confinement, ProgramStarter::Agent);
    request.services.command_approvals.follow(confinement.life.clone());
    // The process that asks becomes the program.
    let program = connection.peer.lineage.own().ok_or_else(|| words("its process is not known"))?;
    if let Some(cx) = approval.tool.context() {
        let watch = request.services.builtins.sandbox.watch_control(|| cx.guarded_files(), Some(&confinement));
        let is_reported = Arc::new(Notify::new());
        let report = is_reported.clone();
        let aside = request.services.engine.tasks.spawn(async move {
            // The agent's report comes sooner than the next look at the process.
            while program.is_alive() {
                tokio::select! {
                    () = process_end::ended(program) => {}
                    () = report.notified() => {}
                }
            }
            drop(attended);
            let Some(watch) = watch else { return Vec::new() };
            // Fails only when the runtime stops.
            tokio::task::spawn_blocking(move || set_aside(watch)).await.unwrap_or_default()
        });
        let CommandApproval { request_id, requester, conversation, .. } = approval;
        let call_id = cx.call_id.clone();
        request.services.command_approvals.add_run(ConfinedRun {
            request_id,
            requester,
            conversation,
            call_id,
            program,
            is_reported,
            aside,
        });
    }
    // Somebody who paused everything before this line was known has not stopped it.
    if let Some(paused) = request.services.config.paused() {
        return Err(refused("not_approved", &format!("everything is {}", paused.describe())));
    }
    let arguments = launcher::arguments(shell, &confinement).map_err(|error| words(&error))?;
    let arguments = arguments.into_iter().map(|argument| argument.into_string()).collect::<Result<Vec<_>, _>>();
    let arguments = arguments.map_err(|path| words(&format!("{} is not UTF-8", path.display())))?;
    Ok(ConfinedCommand { arguments: Some(arguments) })
}
