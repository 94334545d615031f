//! What a result depends on: the files that were read for it, what its tool had leave for, and whose it is.

use std::path::PathBuf;

use toold_proto::permission::Verdict;
use toold_proto::tool::{Category, SessionId, ToolName};

use crate::cx::Cx;
use crate::need::Need;
use crate::permit::judge_for;
use crate::tool::Origin;

/// A file as it was when it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// Absolute, as it was asked for: links are followed anew at each check.
    pub path: PathBuf,
    /// `None`: there was nothing.
    pub facts: Option<Facts>,
    /// The facts alone decide. They do not when the file had changed less than two seconds before: one more
    /// change could leave them as they are.
    pub settled: bool,
    /// Of the whole content, as it was read. Decides where the facts do not.
    pub digest: Option<[u8; 32]>,
}

/// What the system tells of a file. Any change of its content changes them, if it comes late enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    pub device: u64,
    pub inode: u64,
    pub mode: u32,
    pub size: u64,
    /// Seconds and nanoseconds.
    pub mtime: (i64, i64),
    /// Seconds and nanoseconds.
    pub ctime: (i64, i64),
}

/// Looks at files for the cache. Called on a thread where it may wait.
pub trait Files: Send + Sync + 'static {
    /// Whether reading the file would give what it gave then. False in doubt.
    fn is_current(&self, stamp: &Stamp) -> bool;

    /// Whether a need that was worked out a while ago would be the same now: its path leads nowhere else,
    /// and nothing forbids it since. False in doubt.
    fn stands(&self, need: &Need) -> bool;
}

/// A result that was made from more is not kept: to look at so many files again is no gain.
const MAX_PARTS: usize = 1_000;

/// What a result depends on. Written down while a call runs.
#[derive(Clone, Default)]
pub struct Dependencies {
    stamps: Vec<Stamp>,
    needs: Vec<Asked>,
    only_for: Option<SessionId>,
    /// Somebody said no, or it depends on what nobody can check.
    private: bool,
}

/// A need that was decided for a tool, and the plugins that asked, the outermost first.
#[derive(Clone, PartialEq)]
struct Asked {
    need: Need,
    chain: Vec<String>,
    tool: ToolName,
    origin: Origin,
}

impl Dependencies {
    /// Those of a result that nobody else will get: nothing is written down.
    pub(crate) fn private() -> Self {
        Self { private: true, ..Self::default() }
    }

    pub(crate) fn is_private(&self) -> bool {
        self.private
    }

    pub(crate) fn stamp(&mut self, stamp: Stamp) {
        if !self.private && self.stamps.last() != Some(&stamp) {
            self.stamps.push(stamp);
            self.hold_bound();
        }
    }

    /// A need that was decided while the tool ran.
    pub(crate) fn need(&mut self, cx: &Cx, need: &Need, chain: &[String], allowed: bool) {
        // A result that came with a change does not make the change again, and nobody knows what a program
        // has looked at.
        if !allowed || matches!(need.category, Category::FileWrite | Category::Shell) {
            self.keep_private();
        }
        if self.private {
            return;
        }
        let asked = Asked { need: need.clone(), chain: chain.to_vec(), tool: cx.tool.clone(), origin: cx.origin };
        if self.needs.last() != Some(&asked) {
            self.needs.push(asked);
            self.hold_bound();
        }
    }

    pub(crate) fn session(&mut self, session: &SessionId) {
        self.only_for = Some(session.clone());
    }

    pub(crate) fn keep_private(&mut self) {
        *self = Self::private();
    }

    /// The result of another call went into this one's.
    pub(crate) fn join(&mut self, other: Self) {
        if self.private || other.private {
            return self.keep_private();
        }
        self.stamps.extend(other.stamps);
        self.needs.extend(other.needs);
        self.only_for = other.only_for.or(self.only_for.take());
        self.hold_bound();
    }

    fn hold_bound(&mut self) {
        if self.stamps.len() + self.needs.len() > MAX_PARTS {
            self.keep_private();
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        let stamps = self.stamps.iter().map(|stamp| stamp.path.as_os_str().len() + size_of::<Stamp>());
        let needs = self.needs.iter().map(|asked| asked.need.target.len() + size_of::<Asked>());
        stamps.chain(needs).sum()
    }

    /// These dependencies as they are for another call: its outer plugins in the place of those of the call
    /// that ran, which had `outer` of them.
    fn for_call(&self, cx: &Cx, outer: usize) -> Self {
        let mut own = self.clone();
        for asked in &mut own.needs {
            let inner = asked.chain.split_off(outer.min(asked.chain.len()));
            asked.chain = cx.outer_chain.iter().cloned().chain(inner).collect();
        }
        own
    }

    /// Whether the result is still good, and this call may have it: every leave that the tool had is asked
    /// of the policy again, in this call's name. What only a person could allow makes it a no; the tool
    /// then runs and asks. `outer` is the number of plugins around the call that ran.
    ///
    /// When it is, the call has the same dependencies as if it had run.
    pub(crate) async fn hold_for(&self, cx: &Cx, outer: usize) -> bool {
        if !self.is_for(cx) {
            return false;
        }
        let own = self.for_call(cx, outer);
        let mut rules = Vec::with_capacity(own.needs.len());
        for asked in &own.needs {
            let decision = judge_for(cx, &asked.tool, asked.origin, &asked.chain, &asked.need);
            if decision.verdict != Verdict::Allow {
                return false;
            }
            rules.push(decision.rule);
        }
        if !own.files_hold(cx).await {
            return false;
        }
        for (asked, rule) in own.needs.iter().zip(rules) {
            cx.record(&asked.need, "allow", rule);
        }
        cx.join_dependencies(own);
        true
    }

    /// Whether this call may see what was made from them so far, by the policy alone.
    pub(crate) fn may_be_seen_by(&self, cx: &Cx, outer: usize) -> bool {
        let allows = |asked: &Asked| {
            judge_for(cx, &asked.tool, asked.origin, &asked.chain, &asked.need).verdict == Verdict::Allow
        };
        self.is_for(cx) && self.for_call(cx, outer).needs.iter().all(allows)
    }

    fn is_for(&self, cx: &Cx) -> bool {
        !self.private && self.only_for.as_ref().is_none_or(|session| *session == cx.session.id)
    }

    async fn files_hold(&self, cx: &Cx) -> bool {
        let is_file = |need: &&Need| need.category == Category::FileRead;
        let needs: Vec<Need> = self.needs.iter().map(|asked| &asked.need).filter(is_file).cloned().collect();
        if self.stamps.is_empty() && needs.is_empty() {
            return true;
        }
        let Some(files) = cx.engine.cache.files() else { return false };
        let stamps = self.stamps.clone();
        let look = move || needs.iter().all(|need| files.stands(need)) && stamps.iter().all(|s| files.is_current(s));
        tokio::task::spawn_blocking(look).await.unwrap_or(false)
    }
}
