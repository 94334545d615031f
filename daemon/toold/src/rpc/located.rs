//! Paths in the parameters of methods, for callers that must not learn about places that their
//! session may not read.

use std::io;
use std::path::Path;

use toold_engine::Engine;
use toold_engine::policy::{CallingAgent, Subject, decide};
use toold_engine::session::Session;
use toold_engine::tool::Origin;
use toold_host::exclude::Exclusions;
use toold_host::file_needs::entry_read_need;
use toold_host::files::{ResolvedPath, resolve_for};
use toold_proto::level::Level;
use toold_proto::permission::{Ask, Verdict};
use toold_proto::tool::{Category, ToolName};

/// Where a path leads; see [`resolve_for`].
///
/// # Errors
/// As [`resolve_for`].
pub(super) fn located(engine: &Engine, session: &Session, path: &Path) -> io::Result<ResolvedPath> {
    resolve_for(path, &session.cwd, &mut |place| knows(engine, session, place))
}

/// Whether the session may know if there is a link at `place`: it may read it, or its own resolved
/// folder is there or below.
pub(super) fn knows(engine: &Engine, session: &Session, place: &Path) -> bool {
    session.places().iter().any(|own| own.starts_with(place)) || may_read(engine, session, place) == Verdict::Allow
}

/// Whether the session may read a place, without asking anybody.
pub(super) fn may_read(engine: &Engine, session: &Session, place: &Path) -> Verdict {
    let tool = ToolName::parse("read").expect("small letters are a name");
    let (places, above, chain, made) = (session.places(), session.above(), session.chain(), session.made());
    let subject = Subject {
        tool: Some(&tool),
        origin: Origin::Builtin,
        session: &session.id,
        above: &above,
        mode: session.mode(),
        level: Level::Read,
        cwd: &session.cwd,
        roots: &places,
        project: session.project(),
        grant_project: session.grant_project(),
        chain: &chain,
        undeclared: &engine.plugin_limits.of_chain(&chain, session.project()),
        made: &made,
        profile: None,
        agent: CallingAgent::of(session, None, None),
    };
    let need = entry_read_need(place, true, &mut Exclusions::default());
    decide(&engine.policy.load(), &engine.grants.snapshot(), &subject, &need).verdict
}

/// An ask as shown to callers that may not answer it. The diff shows lines of a file that they may
/// not be allowed to read, and the reason of a change reveals whether it fits that file.
pub(super) fn for_onlooker(ask: &mut Ask) {
    ask.diff = None;
    if ask.category == Category::FileWrite {
        ask.reason = None;
    }
}
