//! Approval of a session's folders, asked for once, before the first call that needs them: one that uses a folder in which the
//! client may not work yet, or one that is free only in a folder that a person chose.

use std::path::{Path, PathBuf};

use toold_proto::agent_request::DecidedBy;
use toold_proto::level::Level;
use toold_proto::permission::{Scope, Verdict};
use toold_proto::session::Mode;
use toold_proto::tool::Category;

use super::refuse;
use crate::agent_prompt::ask_or_leave;
use crate::agent_request::QuestionLeft;
use crate::asks::{self, AskAnswer};
use crate::cx::Cx;
use crate::decision::{decide_need, with_subject};
use crate::grant_commands::workspace_command;
use crate::need::{Need, NeedKind};
use crate::policy::{Decision, Subject, decide};
use crate::tool::ToolError;
use crate::workspace::Workspace;

/// Approval of the session's folders, if a need is the first that needs it. True when folders were opened.
///
/// # Errors
/// As [`super::check_permission`]; in a session without a folder, the error says how to open one.
pub(super) async fn approve_folders(
    cx: &Cx,
    chain: &[String],
    need: &Need,
    decision: &Decision,
) -> Result<bool, ToolError> {
    let Some(workspace) = cx.session.topmost().workspace() else { return Ok(false) };
    if decision.verdict == Verdict::Deny || cx.session.mode() == Mode::Yolo {
        return Ok(false);
    }
    if !workspace.has_folder {
        return match uses_no_folder(cx, need, decision) {
            true if cx.agent.is_some() => {
                cx.leave_question(QuestionLeft::by_default(no_folder(need)));
                Ok(false)
            }
            true => refuse(cx, need, ("no workspace".to_owned(), DecidedBy::Rule), no_folder(need)).map(|()| false),
            false => Ok(false),
        };
    }
    let needs_approval =
        || uses(workspace, cx, need, decision) || is_free_once_chosen(workspace, cx, chain, need, decision);
    if !needs_approval() {
        return Ok(false);
    }
    let (folders, has_opened) = workspace.refresh();
    if has_opened {
        cx.engine.folders_opened();
    }
    // The folder may have been opened meanwhile.
    let Some(first) = folders.first().filter(|_| needs_approval()) else {
        cx.engine.policy_changed();
        return Ok(true);
    };
    // The person who is asked sees where links lead; the refused client does not.
    let as_named = |words: &str| workspace.as_named(words);
    let told = Need::of_kind(NeedKind::Workspace, as_named(&first.to_string_lossy()));
    if let Some(reason) = folders.iter().find_map(|folder| workspace.gate.refuses(folder)) {
        if cx.agent.is_some() && folders.iter().all(|folder| workspace.gate.is_too_broad(folder)) {
            cx.leave_question(QuestionLeft::by_default(as_named(&reason)));
            return Ok(false);
        }
        let words = format!("not allowed: {}", as_named(&reason));
        return refuse(cx, &told, ("workspaces".to_owned(), DecidedBy::Rule), words).map(|()| false);
    }
    // A rule about reading may open a folder for reading. It is no word about what else is free there.
    let always_asked = workspace.unchosen().is_some();
    let ask = Need { always_asked, ..Need::of_kind(NeedKind::Workspace, first.to_string_lossy()) };
    // Otherwise the client may work there all the same, only not as freely.
    let is_closed = uses(workspace, cx, need, decision);
    let reason = match is_closed {
        true => reason(&folders, workspace.gate.client()),
        false => first_time(&folders, workspace.gate.client(), cx.level_once_chosen()),
    };
    let ask = ask.because(reason);
    if workspace.folders.lock().refused {
        if !is_closed {
            return Ok(false);
        }
        let words = as_named(&refused(&folders));
        return refuse(cx, &told, ("workspace refused".to_owned(), DecidedBy::Person), words).map(|()| false);
    }
    let decision = decide_need(cx, &[], &ask);
    match Box::pin(ask_or_leave(cx, &[], &ask, &[], &decision)).await? {
        None => Ok(false),
        Some(AskAnswer::Allowed { rule, by, scope, .. }) => {
            cx.record(&ask, "allow", rule, by);
            // Once for all calls that waited for the answer.
            if workspace.open(&folders) {
                cx.engine.folders_opened();
            }
            if scope.is_some_and(|scope| scope != Scope::Session) {
                workspace.gate.remember(&folders);
            }
            cx.engine.policy_changed();
            Ok(true)
        }
        Some(AskAnswer::Denied { rule, by, message }) => {
            if rule.starts_with(asks::ANSWER) {
                workspace.folders.lock().refused = true;
                if !is_closed {
                    return Ok(false);
                }
            }
            refuse(cx, &told, (rule, by), as_named(&message)).map(|()| false)
        }
    }
}

fn uses(workspace: &Workspace, cx: &Cx, need: &Need, decision: &Decision) -> bool {
    match need.category() {
        // A command can read anything in the folder that it runs in, whatever rule allows it.
        Category::Shell | Category::Agent => workspace.holds_back(&cx.cwd),
        // A rule or a grant that names the file decides alone.
        Category::FileRead | Category::FileWrite => {
            decision.verdict == Verdict::Ask && workspace.holds_back(Path::new(&need.target))
        }
        Category::Network | Category::Mcp | Category::Plugin => false,
    }
}

/// Whether the session's level would free a need if a person had chosen its folders.
fn is_free_once_chosen(workspace: &Workspace, cx: &Cx, chain: &[String], need: &Need, decision: &Decision) -> bool {
    decision.verdict == Verdict::Ask
        && workspace.unchosen().is_some()
        && with_subject(cx, &cx.tool, cx.origin, chain, |subject| {
            let subject = Subject { level: cx.level_once_chosen(), ..subject.clone() };
            decide(&cx.engine.policy.load(), &cx.engine.grants.snapshot(), &subject, need).by_level
        })
}

/// Whether a need cannot be met in a session without a folder.
fn uses_no_folder(cx: &Cx, need: &Need, decision: &Decision) -> bool {
    match need.category() {
        Category::Shell | Category::Agent => !cx.session.places().iter().any(|place| cx.cwd.starts_with(place)),
        Category::FileRead | Category::FileWrite => {
            let target = Path::new(&need.target);
            decision.verdict == Verdict::Ask && !cx.session.places().iter().any(|place| target.starts_with(place))
        }
        Category::Network | Category::Mcp | Category::Plugin => false,
    }
}

fn no_folder(need: &Need) -> String {
    format!(
        "not allowed: {} {}: this session has no folder to work in. Open a folder with: toolctl workspaces allow DIR",
        need.category(),
        need.named()
    )
}

/// The reason that is shown to the person who is asked.
fn reason(folders: &[PathBuf], client: &str) -> String {
    let (names, noun) = named(folders);
    format!("use {names} as {noun} of {client}: its tools may read everything in there")
}

/// The same, in a folder that the client was started in.
fn first_time(folders: &[PathBuf], client: &str, level: Level) -> String {
    let (names, noun) = named(folders);
    format!("{client} works in {names} for the first time; as {noun}, what level {level} frees needs no approval there")
}

fn named(folders: &[PathBuf]) -> (String, &'static str) {
    let names: Vec<String> = folders.iter().map(|folder| folder.display().to_string()).collect();
    (names.join(" and "), if names.len() == 1 { "a workspace" } else { "workspaces" })
}

fn refused(folders: &[PathBuf]) -> String {
    let first = folders.first().map(|folder| folder.display().to_string()).unwrap_or_default();
    format!("not allowed: the user refused {first} as a workspace. Allow it with: {}", workspace_command(&first))
}
