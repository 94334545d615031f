//! The policy's decision about a need of a call, without asking anybody.

use toold_proto::agent_request::DecidedBy;
use toold_proto::permission::Verdict;
use toold_proto::tool::ToolName;

use crate::cx::Cx;
use crate::need::Need;
use crate::policy::{CallingAgent, Decision, Subject, decide};
use crate::tool::Origin;
use crate::workspace::Workspace;

/// The policy's decision alone, without asking anybody.
pub fn decide_need(cx: &Cx, chain: &[String], need: &Need) -> Decision {
    let decision = decide_need_for(cx, &cx.tool, cx.origin, chain, need);
    let folders = cx.session.topmost().workspace().filter(|_| need.is_workspace());
    match decision.verdict {
        // An answer to another call opened them: nobody is asked once more.
        Verdict::Ask if folders.is_some_and(Workspace::is_chosen) => Decision {
            verdict: Verdict::Allow,
            by: DecidedBy::Person,
            rule: "the answer to another call".to_owned(),
            ..decision
        },
        _ => decision,
    }
}

/// As [`decide_need`], for a tool that was called within the call.
pub(crate) fn decide_need_for(cx: &Cx, tool: &ToolName, origin: Origin, chain: &[String], need: &Need) -> Decision {
    with_subject(cx, tool, origin, chain, |subject| {
        decide(&cx.engine.policy.load(), &cx.engine.grants.snapshot(), subject, need)
    })
}

/// The call as the policy sees it, on behalf of a chain of plugins.
pub(crate) fn with_subject<T>(
    cx: &Cx,
    tool: &ToolName,
    origin: Origin,
    chain: &[String],
    work: impl FnOnce(&Subject) -> T,
) -> T {
    let session = &cx.session;
    let (places, above) = (session.places(), session.above());
    work(&Subject {
        tool: (!session.is_of_plugin()).then_some(tool),
        origin,
        session: &session.id,
        above: &above,
        mode: cx.mode(),
        level: cx.level(),
        cwd: &cx.cwd,
        roots: &places,
        project: session.project(),
        grant_project: session.grant_project(),
        chain,
        undeclared: &cx.engine.plugin_limits.of_chain(chain, session.project()),
        made: &session.made(),
        profile: session.profile(),
        agent: CallingAgent::of(session, cx.agent_ref(), cx.caller.agent),
    })
}
