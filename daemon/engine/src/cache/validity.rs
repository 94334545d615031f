//! Whether a result is still valid, and whether another call may have it.

use toold_proto::permission::Verdict;
use toold_proto::tool::Category;

use crate::cx::Cx;
use crate::decision::decide_need_for;
use crate::dependencies::{DecidedNeed, Dependencies};
use crate::need::Need;

impl Dependencies {
    /// These dependencies as seen from another call: its outer plugins replace those of the call
    /// that ran, which had `outer` of them.
    fn for_call(&self, cx: &Cx, outer: usize) -> Self {
        let mut own = self.clone();
        for asked in &mut own.needs {
            let inner = asked.chain.split_off(outer.min(asked.chain.len()));
            asked.chain = cx.outer_chain.iter().cloned().chain(inner).collect();
        }
        own
    }

    /// Whether the result is still valid and this call may have it: the policy decides every need
    /// of the tool again, for this call. If only a person could allow one of them the answer is no,
    /// and the tool runs and asks. `outer` is the number of plugins around the call that ran.
    ///
    /// When it is, the call has the same dependencies as if it had run.
    pub(crate) async fn hold_for(&self, cx: &Cx, outer: usize) -> bool {
        if !self.is_for(cx) {
            return false;
        }
        let own = self.for_call(cx, outer);
        let mut rules = Vec::with_capacity(own.needs.len());
        for asked in &own.needs {
            let decision = decide_need_for(cx, &asked.tool, asked.origin, &asked.chain, &asked.need);
            if decision.verdict != Verdict::Allow {
                return false;
            }
            rules.push((decision.rule, decision.by));
        }
        if !own.files_hold(cx).await {
            return false;
        }
        for (asked, (rule, by)) in own.needs.iter().zip(rules) {
            cx.record(&asked.need, "allow", rule, by);
        }
        cx.join_dependencies(own);
        true
    }

    /// Whether this call may see the output based on them so far, by the policy alone.
    pub(crate) fn may_be_seen_by(&self, cx: &Cx, outer: usize) -> bool {
        let allows = |asked: &DecidedNeed| {
            decide_need_for(cx, &asked.tool, asked.origin, &asked.chain, &asked.need).verdict == Verdict::Allow
        };
        self.is_for(cx) && self.for_call(cx, outer).needs.iter().all(allows)
    }

    fn is_for(&self, cx: &Cx) -> bool {
        !self.private && self.only_for.as_ref().is_none_or(|session| *session == cx.session.id)
    }

    async fn files_hold(&self, cx: &Cx) -> bool {
        let is_file = |need: &&Need| need.category() == Category::FileRead;
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

impl Cx {
    /// Whether another call may see the output of this one so far.
    pub(crate) fn may_be_seen_by(&self, other: &Self) -> bool {
        self.with_dependencies(|dependencies| dependencies.may_be_seen_by(other, self.outer_chain.len()))
    }
}
