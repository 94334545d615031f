//! Which files a call may read, asked for many files from any thread.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use toold_engine::Engine;
use toold_engine::cx::Cx;
use toold_engine::policy::{Decision, Grant, Policy, Subject, decide};
use toold_engine::session::Session;
use toold_engine::tool::Origin;
use toold_host::exclude::Exclusions;
use toold_host::files::seen_need;
use toold_proto::permission::Verdict;
use toold_proto::session::Mode;
use toold_proto::tool::ToolName;

/// Judges as `read` would be judged, with nobody asked: what would be asked is not shown.
pub(crate) struct Judge {
    policy: Arc<Policy>,
    grants: Arc<Vec<Grant>>,
    session: Arc<Session>,
    mode: Mode,
    tool: ToolName,
    origin: Origin,
    cwd: PathBuf,
    chain: Arc<[String]>,
    /// The folder that the call itself has leave to read.
    root: PathBuf,
    /// The rule by which leave for `root` had to be asked for; `None` when nobody had to be asked.
    asked_by: Option<String>,
}

impl Judge {
    /// `root` is the folder or file that the call has been given leave for. Where somebody was asked for
    /// it, the answer holds for all below that the same rule would ask for.
    pub(crate) fn new(cx: &Cx, root: PathBuf) -> Self {
        let engine: &Engine = &cx.engine;
        let mut judge = Self {
            policy: engine.policy.load_full(),
            grants: engine.grants.snapshot(),
            session: cx.session.clone(),
            mode: cx.session.mode(),
            tool: cx.tool.clone(),
            origin: cx.origin,
            cwd: cx.cwd.clone(),
            chain: cx.outer_chain.clone(),
            root: root.clone(),
            asked_by: None,
        };
        let decision = judge.decide(&root, root.is_dir(), &mut Exclusions::default());
        judge.asked_by = (decision.verdict == Verdict::Ask).then_some(decision.rule);
        judge
    }

    /// Whether the file or folder at this resolved path may be shown. Each thread has its own `exclusions`.
    pub(crate) fn may_read(&self, resolved: &Path, is_folder: bool, exclusions: &mut Exclusions) -> bool {
        let decision = self.decide(resolved, is_folder, exclusions);
        match decision.verdict {
            Verdict::Allow => true,
            Verdict::Deny => false,
            Verdict::Ask => self.asked_by == Some(decision.rule) && resolved.starts_with(&self.root),
        }
    }

    fn decide(&self, resolved: &Path, is_folder: bool, exclusions: &mut Exclusions) -> Decision {
        let (roots, above) = (self.session.places(), self.session.above());
        let subject = Subject {
            tool: &self.tool,
            origin: self.origin,
            session: &self.session.id,
            above: &above,
            mode: self.mode,
            cwd: &self.cwd,
            roots: &roots,
            project: &self.session.project,
            chain: &self.chain,
        };
        let need = seen_need(resolved, is_folder, exclusions);
        decide(&self.policy, &self.grants, &subject, &need)
    }
}
