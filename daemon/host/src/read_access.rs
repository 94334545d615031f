//! Decides which files a call may read without an ask: [`may_see_link`] for links on the way to a path, [`ReadAccess`]
//! for many files from any thread.

use std::borrow::Cow;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use toold_engine::Engine;
use toold_engine::cx::Cx;
use toold_engine::decision::decide_need;
use toold_engine::need::Need;
use toold_engine::plugin_limits::Undeclared;
use toold_engine::policy::grants::Grant;
use toold_engine::policy::{CallingAgent, Decision, Policy, Subject, decide};
use toold_engine::session::Session;
use toold_engine::tool::Origin;
use toold_proto::level::Level;
use toold_proto::permission::Verdict;
use toold_proto::session::Mode;
use toold_proto::tool::{Category, SessionId, ToolName};

use crate::exclude::Exclusions;
use crate::file_needs::entry_read_need;

/// Whether the caller may know if there is a link at `place`: if it may read the place, or if its own resolved folder
/// is there or below. `chain` contains the plugins through which the call came.
pub fn may_see_link(place: &Path, cx: &Cx, chain: &[String]) -> bool {
    let is_above = cx.cwd.starts_with(place) || cx.session.places().iter().any(|own| own.starts_with(place));
    is_above
        || decide_need(cx, chain, &entry_read_need(place, false, &mut Exclusions::default())).verdict == Verdict::Allow
}

/// Decides as for the tool `read`, but asks nobody: files that would need approval are not shown.
pub struct ReadAccess {
    policy: Arc<Policy>,
    grants: Arc<Vec<Grant>>,
    session: Arc<Session>,
    /// The session's state, determined once for all files.
    places: Vec<Cow<'static, Path>>,
    above: Vec<SessionId>,
    mode: Mode,
    tool: ToolName,
    origin: Origin,
    cwd: PathBuf,
    chain: Arc<[String]>,
    undeclared: Vec<Undeclared>,
    made: Vec<PathBuf>,
    /// The agent whose hook asks, and the one that the caller's process is.
    agents: (Option<String>, Option<&'static str>),
    /// The folder that the call itself has permission to read.
    root: PathBuf,
    /// The decision about it, and whether it is a folder.
    root_decision: Option<(bool, Verdict)>,
    /// The rule that required an ask for `root`; `None` if none was required.
    asked_by: Option<String>,
    /// The exclusions of the folders on the way to `root`.
    exclusions: Exclusions,
}

impl ReadAccess {
    /// `root` is the resolved folder or file that the call has permission to read. If that needed an ask, the answer covers
    /// everything below for which the same rule would ask. `chain` contains the plugins through which the call came.
    pub fn new(cx: &Cx, chain: Arc<[String]>, root: PathBuf) -> Self {
        let is_folder = root.is_dir();
        Self::of_entry(cx, chain, root, is_folder, &mut Exclusions::of_walk())
    }

    /// As [`ReadAccess::new`], for a root of which the kind was just seen, with the exclusions that the call has just read.
    pub fn of_entry(
        cx: &Cx,
        chain: Arc<[String]>,
        root: PathBuf,
        is_folder: bool,
        exclusions: &mut Exclusions,
    ) -> Self {
        let engine: &Engine = &cx.engine;
        let places = cx.session.places().into_iter().map(|place| Cow::Owned(place.into_owned()));
        let mut decide_need = Self {
            policy: engine.policy.load_full(),
            grants: engine.grants.snapshot(),
            places: places.collect(),
            above: cx.session.above().into_iter().cloned().collect(),
            made: cx.session.made(),
            session: cx.session.clone(),
            mode: cx.session.mode(),
            tool: cx.tool.clone(),
            origin: cx.origin,
            cwd: cx.cwd.clone(),
            undeclared: engine.plugin_limits.of_chain(&chain, cx.session.project()),
            chain,
            agents: (cx.agent.as_ref().map(|request| request.agent.clone()), cx.caller.agent),
            root: root.clone(),
            root_decision: None,
            asked_by: None,
            exclusions: Exclusions::of_walk(),
        };
        let decision = decide_need.decide(&root, is_folder, exclusions);
        decide_need.exclusions = exclusions.clone();
        decide_need.root_decision = Some((is_folder, decision.verdict));
        // Nobody is asked for a plugin that acts on its own, so no answer covers more than the root.
        let was_asked = decision.verdict == Verdict::Ask && !cx.session.is_of_plugin();
        decide_need.asked_by = was_asked.then_some(decision.rule);
        decide_need
    }

    /// Exclusions for one thread of a walk below the root.
    pub fn exclusions(&self) -> Exclusions {
        if self.exclusions.is_fresh() { self.exclusions.clone() } else { Exclusions::of_walk() }
    }

    /// Whether the file or folder at this resolved path may be shown. Each thread has its own [`Self::exclusions`].
    pub fn may_read(&self, resolved: &Path, is_folder: bool, exclusions: &mut Exclusions) -> bool {
        // Compared as text: a walk begins with the very path.
        if self.root_decision == Some((is_folder, Verdict::Allow)) && resolved.as_os_str() == self.root.as_os_str() {
            return true;
        }
        let decision = self.decide(resolved, is_folder, exclusions);
        match decision.verdict {
            Verdict::Allow => true,
            Verdict::Deny => false,
            Verdict::Ask => self.asked_by == Some(decision.rule) && resolved.starts_with(&self.root),
        }
    }

    /// Whether the name of a file or folder may be shown though it is not UTF-8, for which reason it may not be read.
    pub fn may_name(&self, resolved: &Path, exclusions: &mut Exclusions) -> bool {
        let (Some(folder), None) = (resolved.parent(), resolved.to_str()) else { return false };
        // Whoever may read the folder sees all other names in it. Rules see this one as people do.
        self.may_read(folder, true, exclusions)
            && exclusions.reason(resolved, true).is_none()
            && exclusions.reason(resolved, false).is_none()
            && self.verdict(&Need::new(Category::FileRead, resolved.to_string_lossy())).verdict != Verdict::Deny
    }

    /// The reportable text about a file or folder that was left out for its name alone.
    pub fn unjudged(&self, resolved: &Path, exclusions: &mut Exclusions) -> Option<String> {
        let may = self.may_name(resolved, exclusions);
        may.then(|| format!("{}: permissions cannot be checked for names that are not UTF-8", resolved.display()))
    }

    /// The reportable text of a walk's error, if it concerns a place that may be shown. Errors in lines of ignore files
    /// are never reported: some of these files are above the tree, or are links out of it.
    pub fn problem(&self, error: &ignore::Error, exclusions: &mut Exclusions) -> Option<String> {
        let (path, cause) = place_of(error)?;
        self.may_read(path, true, exclusions).then(|| format!("{}: {cause}", path.display()))
    }

    fn decide(&self, resolved: &Path, is_folder: bool, exclusions: &mut Exclusions) -> Decision {
        self.verdict(&entry_read_need(resolved, is_folder, exclusions))
    }

    fn verdict(&self, need: &Need) -> Decision {
        let above: Vec<&SessionId> = self.above.iter().collect();
        let subject = Subject {
            tool: (!self.session.is_of_plugin()).then_some(&self.tool),
            origin: self.origin,
            session: &self.session.id,
            above: &above,
            mode: self.mode,
            // No level adds to what may be read.
            level: Level::Read,
            cwd: &self.cwd,
            roots: &self.places,
            project: self.session.project(),
            grant_project: self.session.grant_project(),
            chain: &self.chain,
            undeclared: &self.undeclared,
            made: &self.made,
            profile: self.session.profile(),
            agent: CallingAgent::of(&self.session, self.agents.0.as_deref(), self.agents.1),
        };
        decide(&self.policy, &self.grants, &subject, need)
    }
}

/// The place that could not be read, and why.
fn place_of(error: &ignore::Error) -> Option<(&Path, &io::Error)> {
    match error {
        ignore::Error::WithDepth { err, .. } => place_of(err),
        ignore::Error::WithPath { path, err } => match err.as_ref() {
            ignore::Error::Io(cause) => Some((path, cause)),
            _ => None,
        },
        _ => None,
    }
}
