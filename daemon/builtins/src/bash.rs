//! `bash`: runs a command line and streams its output.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use toold_engine::cx::Cx;
use toold_engine::need::{Need, NeedKind};
use toold_engine::tool::{ToolError, ToolOutput};
use toold_host::checked_out::CheckedOutCommit;
use toold_host::environment::Environment;
use toold_host::exclude::Exclusions;
use toold_host::output_buffer::OutputBuffer;
use toold_host::process::{self, ProcessCommand, ProcessEnding, ProcessOutput};
use toold_host::process_registry::StartedFor;
use toold_host::sandbox::{CommandToConfine, Confinement, overwritten};
use toold_host::shell_grammar::{self, Surroundings};
use toold_proto::level::Level;
use toold_proto::shell::TerminalSize;
use toold_proto::tool::{Block, Category};

use crate::blocking::with_heartbeat;
use crate::builds::is_build;
use crate::builtin::{Builtin, CHANGES, ToolFacts};
use crate::checkouts;
use crate::command_changes::beyond::DeclaredChanges;
use crate::command_changes::{CommandChanges, CommandWindow, NotUndoable};
use crate::index_refresh;
use crate::journal::ChangingCall;
use crate::judged_line::JudgedLine;
use crate::locked_installs::{self, LineLocks};
use crate::made_control::MadeControl;
use crate::named_hosts::named_hosts;
use crate::own_signals::SignalLine;
use crate::paths::{Located, knows, may_read};
use crate::plain_output::PlainLines;
use crate::reader_program::ReaderProgram;
use crate::stopped::{differences, explanation, is_refusal};
use crate::toolkit::Toolkit;

const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);
/// The default of [builds].
const BUILD_TIMEOUT: Duration = Duration::from_secs(300);
const MAX_TIMEOUT: Duration = Duration::from_secs(600);

/// Arguments of `bash`.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct BashInput {
    /// The command line, as bash reads it.
    command: String,
    /// Timeout in milliseconds, at most 600000; by default 30000, and 300000 for builds, tests and installations (cargo,
    /// npm, make, gradle, pytest, pip and the like).
    #[cfg_attr(test, schemars(range(min = 1, max = 600_000)))]
    timeout_ms: Option<u64>,
    /// What the command does, in a few words, for the person who is asked for permission.
    description: Option<String>,
    /// The folder to run in; the working folder by default.
    cwd: Option<String>,
    /// Run it in the background, without a timeout unless one is given: read its output with `bash_output`, stop it
    /// with `kill_shell`.
    #[serde(default)]
    background: bool,
    /// Give it a terminal, for programs that need one. Standard input is still closed, except in the background,
    /// where a person can type.
    #[serde(default)]
    tty: bool,
    /// Columns of the terminal; 80 by default.
    #[cfg_attr(test, schemars(range(min = 1, max = 1000)))]
    cols: Option<u16>,
    /// Rows of the terminal; 24 by default.
    #[cfg_attr(test, schemars(range(min = 1, max = 1000)))]
    rows: Option<u16>,
}

impl BashInput {
    fn terminal(&self) -> Option<TerminalSize> {
        self.tty.then(|| TerminalSize { cols: self.cols.unwrap_or(80), rows: self.rows.unwrap_or(24) })
    }
}

pub(crate) struct BashTool {
    toolkit: Arc<Toolkit>,
}

impl BashTool {
    /// The lock files of a line. Runs Git, once for each file, to read what was committed when the session began.
    async fn line_locks(&self, needs: &[Need], cx: &Cx) -> LineLocks {
        for lookup in locked_installs::to_look_up(needs, &cx.session) {
            let committed = match &lookup.commit {
                Some(commit) => self.committed(commit, &lookup.file, cx).await,
                None => None,
            };
            lookup.found(committed, &cx.session);
        }
        LineLocks::known(needs, &cx.session)
    }

    /// The content of a file in a commit, which Git reads confined.
    async fn committed(&self, commit: &CheckedOutCommit, file: &Path, cx: &Cx) -> Option<Vec<u8>> {
        let git = ReaderProgram { names: &["git"], package: "git", arguments: commit.arguments() };
        let output = git.read(commit.question(file)?, &self.toolkit, cx).await.ok()?;
        commit.answer(file, &output.bytes)
    }
}

impl Builtin for BashTool {
    type Input = BashInput;

    const NAME: &'static str = "bash";
    const FACTS: ToolFacts = ToolFacts {
        label: "Run a command",
        description: "Runs a bash command line and returns its output, stdout and stderr in the order in which they \
                      arrive, and its exit code. Standard input is closed and there is no terminal, unless `tty` \
                      asks for one. Each call is a new shell: `cd`, exports and functions end with it, so use `cwd` or \
                      one line. On a timeout, all its processes are ended and the output so far is returned. \
                      Processes that it leaves behind are ended too, except build servers and agents such as gradle's \
                      or gpg's: for servers and the like set `background`. \
                      Colours and progress bars are left out of the output.",
        parallelizable: false,
        permissions: &[Category::Shell, Category::FileRead, Category::FileWrite],
        timeout: Some(MAX_TIMEOUT),
        annotations: CHANGES,
    };

    fn new(toolkit: Arc<Toolkit>) -> Self {
        Self { toolkit }
    }

    async fn needs(&self, input: &BashInput, cx: &Cx) -> anyhow::Result<Vec<Need>> {
        let cwd = folder(input, cx)?;
        let description = input.description.as_deref();
        let mut judged = self.judge(&input.command, &cwd, description, cx);
        let (level, files) = (cx.level_once_chosen(), cx.guarded_files());
        let reader = (&*self.toolkit.sandbox, &self.toolkit.environment, files.policy());
        checkouts::add_overwritten(&mut judged.needs, level, &cx.session, reader, &cx.cancel).await;
        let mut needs = judged.needs.clone();
        let locks = match lock_files_count(cx) {
            true => self.line_locks(&needs, cx).await,
            false => LineLocks::default(),
        };
        locks.explain(&mut needs, &cx.session);
        judged.secrets = self.toolkit.mark_confined_by(&mut needs, level, &cx.session, &cwd, (&files, &locks));
        judged.keep_for_run(cx);
        let rules = self.toolkit.sandbox.rules_in(cx.session.project());
        if let Some(confined) = rules.describe() {
            for need in &mut needs {
                match &mut need.kind {
                    NeedKind::FileRead(file) | NeedKind::FileWrite(file) if file.of_command.is_some() => {
                        file.harmless = rules.eases();
                    }
                    NeedKind::Command(command) => {
                        command.harmless = rules.eases();
                        command.hides_file = false;
                        let reason = need.reason.take().map(|reason| format!("{reason} ")).unwrap_or_default();
                        need.reason = Some(format!("{reason}[sandbox: {confined}]"));
                    }
                    _ => {}
                }
            }
        }
        if let Some(hosts) = rules.hosts.as_ref().filter(|_| may_read(&cwd, cx)) {
            let environment = self.toolkit.environment.clone().with(&cx.session.env);
            let named = named_hosts(&needs, &cwd, &environment);
            let hosts = hosts.with_locked(locks.hosts());
            needs.extend(named.iter().filter_map(|host| hosts.need_before(host)));
        }
        Ok(needs)
    }

    async fn run(&self, input: BashInput, cx: &Cx) -> anyhow::Result<ToolOutput> {
        if self.toolkit.sandbox.eases_no_more(cx.session.project()) {
            for need in self.needs(&input, cx).await? {
                cx.require(need).await?;
            }
        }
        loop {
            if let Some(output) = self.run_once(&input, cx).await? {
                return Ok(output);
            }
        }
    }
}

impl BashTool {
    fn judge(&self, line: &str, cwd: &Path, description: Option<&str>, cx: &Cx) -> JudgedLine {
        JudgedLine::new(line, cwd, || needs(line, cwd, description, &self.toolkit.environment, cx))
    }

    /// Runs it where its needs, as they were decided, allow it to run. `None` if that stopped it, it has changed nothing, and a
    /// person has allowed it since: it is to run again.
    async fn run_once(&self, input: &BashInput, cx: &Cx) -> anyhow::Result<Option<ToolOutput>> {
        let cwd = folder(input, cx)?;
        let mut environment = self.toolkit.environment.clone();
        if !input.tty {
            // An editor has no terminal here: Git takes the text as it is.
            environment = environment.with([("GIT_EDITOR", "true")]);
        }
        let environment = environment.with(&cx.session.env);
        let kept = JudgedLine::kept(&input.command, &cwd, cx);
        let JudgedLine { needs: judged, secrets, .. } =
            kept.unwrap_or_else(|| self.judge(&input.command, &cwd, None, cx));
        if let Some(line) = SignalLine::of(&judged).filter(|_| cx.floor(&judged).is_some()) {
            return Ok(Some(ToolOutput::text(line.send(&cx.session)?)));
        }
        let sandbox = &self.toolkit.sandbox;
        let to_confine = CommandToConfine {
            needs: &judged,
            cwd: &cwd,
            environment: &environment,
            seen: &[],
            opens_network: true,
            secrets: secrets.as_ref(),
        };
        let mut confinement = sandbox.confine(cx, &to_confine)?;
        let only_shown = confinement.as_ref().is_some_and(Confinement::only_reads);
        let locks = match lock_files_count(cx) {
            true => LineLocks::known(&judged, &cx.session),
            false => LineLocks::default(),
        };
        locks.note_seen(cx);
        let network =
            sandbox.open_network(cx, &mut confinement, &input.command, locks.hosts(), input.background).await?;
        let environment = match &network {
            Some(network) => network.in_environment(environment),
            None => environment,
        };
        let around = cwd.clone();
        let mut command = ProcessCommand::shell(&input.command, cwd, environment);
        if only_shown {
            // Git would write what it learns about files into the index.
            command.environment = command.environment.with([("GIT_OPTIONAL_LOCKS", "0")]);
        }
        command.confinement = confinement;
        command.network = network.clone();
        command.one_output = true;
        command.started_for = Some(StartedFor::call(cx, &cx.chain));
        command.kept = Some(self.toolkit.kept_programs.lock().clone());
        let confined = command.confinement.clone();
        // A floor that nothing ran into is no news.
        let is_news = !only_shown || self.toolkit.sandbox.rules_in(cx.session.project()).describe().is_some();
        let with_sandbox = |output: ToolOutput| match &confined {
            Some(confinement) if is_news => output.with("sandbox", confinement.words.as_str()),
            Some(_) | None => output,
        };
        let mut window = self.window((&input.command, &command.cwd), &judged, cx).await;
        let files = || cx.guarded_files();
        window.watch_control(sandbox.watch_control(files, confined.as_ref()));
        let on_floor = confined.as_ref().is_some_and(|confinement| confinement.floor);
        if let Some(why) = window.lost().filter(|_| on_floor)
            && let Some(file) = self.overwritten(&judged, cx).first()
        {
            // It is free only because this can be undone.
            anyhow::bail!(
                "nothing ran: {} would be overwritten, which nobody approved, and could not be undone: {why}; try again",
                file.display()
            );
        }
        if input.background {
            command.timeout = input.timeout_ms.map(Duration::from_millis);
            window.set_in_background();
            let shell = self.toolkit.shells.start(cx, command, &input.command, input.terminal(), window)?;
            let words =
                format!("{0} runs in the background: read its output with bash_output, shell_id {0}", shell.id());
            return Ok(Some(with_sandbox(ToolOutput::text(words).with("shell_id", shell.id()))));
        }
        let time = match input.timeout_ms {
            Some(millis) => Duration::from_millis(millis),
            None if is_build(&judged) => BUILD_TIMEOUT,
            None => DEFAULT_TIMEOUT,
        };
        command.timeout = Some(time);
        // The size never changes. The sender must live as long as the program.
        let terminal = input.terminal().map(tokio::sync::watch::Sender::new);
        command.terminal = terminal.as_ref().map(tokio::sync::watch::Sender::subscribe);
        // The output is collected here, in the order in which it arrives.
        command.keep = 0;
        let max = cx.engine.settings.load().max_result_text.saturating_sub(1024);
        let mut kept = match self.toolkit.spool_file(cx) {
            Some(file) => OutputBuffer::with_file(max, file),
            None => OutputBuffer::new(max),
        };
        let mut lines = PlainLines::default();
        let work = process::run(command, &cx.cancel, |stream, text| {
            kept.push(&lines.push(text));
            // People see the output as it is.
            cx.output(stream, text);
        });
        let finished = with_heartbeat(cx, work).await?;
        kept.push(&lines.finish());
        let made = match window.take_control() {
            Some(watch) => MadeControl::of(watch).await.ask(cx).await,
            None => MadeControl::default(),
        };
        let is_news_of_it = !window.is_elsewhere() && !only_reads(&judged);
        // A command that can change nothing has nothing to undo.
        let not_undoable = window.end().await.filter(|_| !only_shown);
        if only_shown && finished.ending == ProcessEnding::Exited {
            index_refresh::after(&judged, &around, &self.toolkit, cx).await;
        }
        if finished.ending == ProcessEnding::Cancelled && !cx.timed_out() {
            return Err(ToolError::Cancelled.into());
        }
        let failed = finished.code != Some(0);
        let text = with_cut(&kept);
        let has_network = confined.as_ref().is_none_or(|confinement| confinement.network || confinement.by_host);
        let was_stopped = on_floor && is_refusal(&text, !failed, has_network);
        // Code that was tried where nothing can be changed has changed nothing.
        let was_tried = only_shown && !only_reads(&judged);
        // Where only a connection failed, the server may not run.
        let is_sure = was_stopped && is_refusal(&text, !failed, true);
        if is_sure && failed && was_tried && self.is_allowed_after_all(&judged, cx).await {
            return Ok(None);
        }
        let note = confined.as_ref().and_then(|confinement| {
            let words = || (failed && is_news).then(|| confinement.words.clone());
            was_stopped.then(|| explanation(confinement, cx, &judged, &text)).or_else(words)
        });
        let mut refused = network.as_ref().map(|network| network.refused()).unwrap_or_default();
        if network.is_some() && failed && misses_network(&text) {
            refused.push(PROXY_ONLY.to_owned());
        }
        let floor = confined.as_ref().filter(|_| on_floor);
        let differences = floor.map(|floor| differences(floor, cx, &judged, &text)).unwrap_or_default();
        let notes = (note, refused.as_slice(), differences, &made);
        let mut output = made.add_to(with_sandbox(output(&finished, (text, &kept), time, notes)));
        if let Some(NotUndoable { why, is_part }) = not_undoable {
            if is_news_of_it {
                output.content.push(Block::text(match is_part {
                    true => format!("[undo does not bring back all that this command removed: {why}]"),
                    false => format!("[what this command changed cannot be undone: {why}]"),
                }));
            }
            output = output.with("not_undoable", why);
        }
        Ok(Some(output))
    }

    /// The files of the session that a command overwrites.
    fn overwritten<'a>(&self, needs: &'a [Need], cx: &Cx) -> Vec<&'a Path> {
        let places: Vec<PathBuf> = cx.session.places().into_iter().map(Cow::into_owned).collect();
        overwritten(needs, &places)
    }

    /// Asks a person about a command that its level has freed and its floor has stopped.
    async fn is_allowed_after_all(&self, needs: &[Need], cx: &Cx) -> bool {
        for need in needs {
            if cx.require(need.clone().because("it was stopped where nothing can be changed")).await.is_err() {
                return false;
            }
        }
        cx.floor(needs).is_none()
    }

    /// Begins to watch for what the command changes.
    async fn window(&self, (line, cwd): (&str, &Path), needs: &[Need], cx: &Cx) -> CommandWindow {
        let call = ChangingCall::of(cx).with_command(line);
        let declared = DeclaredChanges::of(needs, &cx.session, cwd);
        CommandChanges::begin(&self.toolkit.command_changes, &cx.session, call, (!only_reads(needs), &declared)).await
    }
}

/// Whether a command is known to change nothing.
pub(crate) fn only_reads(needs: &[Need]) -> bool {
    needs.iter().all(|need| match need.category() {
        Category::Shell => need.reads_only(),
        Category::FileRead => true,
        _ => false,
    })
}

/// Whether the lock files of a line can free anything: below this level they are not read.
fn lock_files_count(cx: &Cx) -> bool {
    cx.level_once_chosen() >= Level::Develop
}

/// The permissions that running `command` in `cwd` needs. Redirects to files respect the ignore files of tools, too.
pub(crate) fn needs(
    command: &str,
    cwd: &Path,
    description: Option<&str>,
    environment: &Environment,
    cx: &Cx,
) -> Vec<Need> {
    let mut exclusions = Exclusions::default();
    let environment = environment.clone().with(&cx.session.env);
    let mut known = |place: &Path| knows(place, cx);
    let folders = cx.session.places();
    let mut surroundings = Surroundings { cwd, folders: &folders, environment: &environment, may_read: &mut known };
    let mut needs = shell_grammar::needs(command, &mut surroundings);
    // The result of the command would reveal whether an unreadable folder exists.
    let is_known = may_read(cwd, cx);
    for need in &mut needs {
        need.description = description.map(str::to_owned);
        if let Some(command) = need.command_mut() {
            command.reads_only &= is_known;
        }
        if need.file().is_some() && need.forbidden.is_none() {
            need.forbidden = exclusions.reason(Path::new(&need.target), false);
        }
    }
    needs
}

/// The folder to run in. It must be inside the session's folders.
pub(crate) fn folder(input: &BashInput, cx: &Cx) -> anyhow::Result<PathBuf> {
    let Some(cwd) = &input.cwd else { return Ok(cx.cwd.clone()) };
    let located = Located::new(cwd, cx)?;
    // Reported as the caller wrote it: the caller must not learn where links lead outside.
    let inside = !located.hides_its_target() && cx.session.contains(&located.path);
    anyhow::ensure!(inside, "can't run in {cwd}: it is outside the session's folders");
    let folder = located.path;
    // Whether an unreadable folder exists shows only after approval, when the command fails.
    if may_read(&folder, cx) {
        let is = if folder.exists() { "it is a file" } else { "there is no such folder" };
        anyhow::ensure!(folder.is_dir(), "can't run in {}: {is}", folder.display());
    }
    Ok(folder)
}

/// `30 s` or `0.5 s`.
fn seconds(time: Duration) -> String {
    format!("{} s", time.as_millis() as f64 / 1000.0)
}

fn output(
    finished: &ProcessOutput,
    (mut text, kept): (String, &OutputBuffer),
    time: Duration,
    (sandbox, refused, differences, made): (Option<String>, &[String], Vec<String>, &MadeControl),
) -> ToolOutput {
    let mut notes = Vec::new();
    match (finished.ending, finished.code, finished.signal) {
        (ProcessEnding::TimedOut | ProcessEnding::Cancelled, _, _) => notes.push(format!(
            "ended after {}, because of its timeout; for longer work set timeout_ms, at most {}, or background",
            seconds(time.min(finished.duration)),
            MAX_TIMEOUT.as_millis()
        )),
        (ProcessEnding::Exited, Some(0), _) => {}
        (ProcessEnding::Exited, Some(code), _) => notes.push(format!("exit code {code}")),
        (ProcessEnding::Exited, None, Some(signal)) => notes.push(format!("killed by signal {signal}")),
        (ProcessEnding::Exited, None, None) => notes.push("its exit code is unknown".to_owned()),
    }
    if finished.left_behind {
        notes.push("processes that it left behind were ended; to keep them running set background".to_owned());
    }
    notes.extend(refused.iter().map(|why| format!("network: {why}")));
    notes.extend(sandbox.map(|sandbox| format!("it ran in a sandbox: {sandbox}")));
    notes.extend(differences);
    notes.extend(made.words());
    if text.is_empty() && notes.is_empty() {
        notes.push("no output".to_owned());
    }
    for note in notes {
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(&format!("[{note}]"));
    }
    let mut output = ToolOutput::text(text).with("timeout_ms", time.as_millis() as u64);
    output.is_error = finished.ending != ProcessEnding::Exited || finished.code != Some(0);
    if let Some(code) = finished.code {
        output = output.with("exit_code", code);
    }
    if let Some(signal) = finished.signal {
        output = output.with("signal", signal);
    }
    if finished.ending != ProcessEnding::Exited {
        output = output.with("timed_out", true);
    }
    if kept.parts().2 > 0 {
        output = output.with("truncated_bytes", kept.parts().2);
    }
    if let Some(file) = kept.file() {
        output = output.with("spool", file.to_string_lossy().as_ref());
    }
    output
}

/// For a program that did not find the way out of a network by host.
const PROXY_ONLY: &str = "hosts are reached only by programs that use the proxy in HTTP_PROXY and HTTPS_PROXY, or with an \
                          option for it; others, such as ssh, find no network";

/// Whether a program says that it looked for a host by itself.
fn misses_network(output: &str) -> bool {
    const SAYS: [&str; 7] = [
        "name resolution",
        "resolve host",
        "EAI_AGAIN",
        "Network is unreachable",
        "ENETUNREACH",
        "network is unreachable",
        "Name or service not known",
    ];
    SAYS.iter().any(|words| output.contains(words))
}

/// The output, or its head and tail with a line between them that says where the rest is.
fn with_cut(kept: &OutputBuffer) -> String {
    let (mut head, tail, mut cut) = kept.parts();
    let mut tail = tail.as_str();
    if cut == 0 {
        return format!("{head}{tail}");
    }
    // Cut at line ends, unless the lines are so long that little would remain.
    if let Some(end) = head.rfind('\n').filter(|end| *end > head.len() / 2) {
        cut += (head.len() - end - 1) as u64;
        head = &head[..end];
    }
    if let Some(end) = tail.find('\n').filter(|end| *end < tail.len() / 2) {
        cut += end as u64 + 1;
        tail = &tail[end + 1..];
    }
    let rest = match (kept.file(), kept.file_error()) {
        (Some(file), _) => format!("the full output is in {}: read it there", file.display()),
        (None, Some(error)) => format!("and lost: {error}"),
        (None, None) => "and lost".to_owned(),
    };
    format!("{head}\n[... {cut} of {} bytes cut; {rest} ...]\n{tail}", kept.total())
}
