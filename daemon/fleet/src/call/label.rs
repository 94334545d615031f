//! Calls of any daemon that has a label: one that is free, and again on another one when that does no harm.

use std::collections::BTreeSet;
use std::sync::Arc;

use toold_engine::cx::Cx;
use toold_engine::tool::{ToolError, ToolOutput};

use super::attempt::{AttemptEnd, attempt};
use super::patience::Patience;
use super::{OutgoingCall, did_not_run, unknown};
use crate::directory::KnownDaemon;
use crate::member::Member;
use crate::messages::CallRefusal;
use crate::names::FleetName;
use crate::target::CallTarget;

/// How many times a call that may be repeated is, after its daemon has gone.
const REPEATS: usize = 2;

pub(super) async fn call_label(
    member: &Arc<Member>,
    call: &OutgoingCall<'_>,
    label: &FleetName,
    cx: &Cx,
) -> Result<ToolOutput, ToolError> {
    let mut search = Search { member, call, label, excluded: BTreeSet::new(), busy: BTreeSet::new(), why: None };
    let mut patience = Patience::new();
    let mut repeats = 0;
    // The queue group gives the call to a free daemon. This one must not get its own.
    let is_own_label = member.settings.load().labels.contains(label);
    let mut to = match is_own_label {
        true => None,
        false => Some(CallTarget::Label(label.clone())),
    };
    loop {
        if let Some(target) = to.take() {
            match attempt(member, call, &target, cx).await? {
                AttemptEnd::Done(output) => return Ok(output),
                AttemptEnd::Refused { daemon, refusal } => match refusal.reason {
                    CallRefusal::Busy => _ = search.busy.insert(daemon),
                    CallRefusal::UnknownTool | CallRefusal::ChangedTool | CallRefusal::Stopping => {
                        search.exclude(daemon, refusal.message);
                    }
                    CallRefusal::NotPermitted | CallRefusal::Stale | CallRefusal::Failed => {
                        return Err(did_not_run(&refusal.message));
                    }
                },
                AttemptEnd::NoResponders | AttemptEnd::Unanswered => {
                    if let CallTarget::Daemon(daemon) = target {
                        let why = format!("{daemon} does not answer");
                        search.exclude(daemon, why);
                    }
                }
                AttemptEnd::Unknown { daemon, call_id, why } => {
                    let harmless = &call.record.annotations;
                    let may_repeat = harmless.read_only == Some(true) || harmless.idempotent == Some(true);
                    if !may_repeat || repeats == REPEATS {
                        return Ok(unknown(&daemon, &call_id, &why));
                    }
                    repeats += 1;
                    search.exclude(daemon.clone(), why.clone());
                    if search.candidates().is_empty() {
                        return Ok(unknown(&daemon, &call_id, &why));
                    }
                    cx.message(format!("{why}; the call does no harm when repeated, so another daemon runs it"));
                }
            }
        }
        if let Some(daemon) = search.free() {
            to = Some(CallTarget::Daemon(daemon));
            continue;
        }
        let candidates = search.candidates();
        if candidates.is_empty() {
            let why = search.why.unwrap_or_else(|| format!("no machine with the label {label} is there"));
            return Err(did_not_run(&why));
        }
        let all = candidates.len();
        if patience.is_over() {
            return Err(ToolError::Overloaded(format!("all {all} daemons with the label {label} are busy")));
        }
        cx.message(format!("waiting for a free daemon with {label}: {all} of {all} are busy"));
        patience.wait(member, cx).await?;
        search.busy.clear();
        to = match is_own_label || !search.excluded.is_empty() {
            // Their records may be old, so any may be free.
            true => candidates.into_iter().next().map(|(daemon, _)| CallTarget::Daemon(daemon)),
            false => Some(CallTarget::Label(label.clone())),
        };
    }
}

/// The daemons with the label, and how each has answered so far.
struct Search<'s> {
    member: &'s Member,
    call: &'s OutgoingCall<'s>,
    label: &'s FleetName,
    /// Those that cannot run the call.
    excluded: BTreeSet<FleetName>,
    /// Those that have just refused it.
    busy: BTreeSet<FleetName>,
    /// Why the last one was excluded.
    why: Option<String>,
}

impl Search<'_> {
    fn exclude(&mut self, daemon: FleetName, why: String) {
        self.excluded.insert(daemon);
        self.why = Some(why);
    }

    /// Those that could run the call, the one with the least load first, and whether each has room.
    fn candidates(&self) -> Vec<(FleetName, bool)> {
        let fits = |name: &FleetName, known: &KnownDaemon| {
            let has_tool = |tool: &crate::messages::ToolRecord| tool.fingerprint == self.call.record.fingerprint;
            !known.is_away
                && known.trusts(&self.member.name, self.member.key()) != Some(false)
                && known.labels().contains(self.label)
                && !self.excluded.contains(name)
                && known.tools.get(self.call.tool).is_some_and(|tool| has_tool(tool))
        };
        let mut found: Vec<(u64, FleetName, bool)> = self.member.directory.read(|daemons| {
            let fitting = daemons.iter().filter(|(name, known)| fits(name, known));
            let with_load = fitting.filter_map(|(name, known)| {
                let record = known.record.as_ref()?;
                let load = record.running * 1000 / record.max_calls.max(1);
                Some((load, name.clone(), record.running < record.max_calls))
            });
            with_load.collect()
        });
        found.sort();
        found.into_iter().map(|(_, name, is_free)| (name, is_free)).collect()
    }

    fn free(&self) -> Option<FleetName> {
        let candidates = self.candidates().into_iter();
        candidates.filter(|(name, is_free)| *is_free && !self.busy.contains(name)).map(|(name, _)| name).next()
    }
}
