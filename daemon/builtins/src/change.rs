//! Changes of files for `write` and `edit`: planned, shown to the user who approves them, then made.

use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{bail, ensure};
use toold_engine::cx::Cx;
use toold_engine::need::Need;
use toold_engine::session::Session;
use toold_engine::tool::{ToolError, ToolOutput};
use toold_host::exclude::Exclusions;
use toold_host::file_needs;
use toold_host::files::{self, OpenError};
use toold_host::replace::{Expected, replace};
use toold_proto::permission::Verdict;

use crate::blocking::{blocking, check};
use crate::buffers::Buffer;
use crate::diff::{Diff, diff};
use crate::document::{Document, MAX_BYTES};
use crate::paths::{self, Located, may_read, verdict};
use crate::stamps::FileDigest;
use crate::toolkit::Toolkit;

/// The part of the diff that the model gets; it knows what it wrote.
const MAX_SHOWN_DIFF: usize = 8 * 1024;

/// A file's current state.
pub(crate) struct Before {
    pub(crate) file: File,
    pub(crate) bytes: Vec<u8>,
    pub(crate) digest: FileDigest,
}

/// The file to change, and the session that changes it.
#[derive(Clone)]
pub(crate) struct ChangeTarget {
    pub(crate) toolkit: Arc<Toolkit>,
    pub(crate) session: Arc<Session>,
    pub(crate) located: Located,
    pub(crate) path: PathBuf,
    /// Its name in messages.
    pub(crate) shown: String,
}

impl ChangeTarget {
    pub(crate) fn new(toolkit: &Arc<Toolkit>, path: &str, cx: &Cx) -> anyhow::Result<Self> {
        let located = Located::new(path, cx)?;
        let path = located.path.clone();
        let shown = paths::shown(&path, &cx.cwd);
        Ok(Self { toolkit: toolkit.clone(), session: cx.session.clone(), located, path, shown })
    }

    /// Fails unless the session has seen the file's current version.
    pub(crate) fn check_stamp(&self, before: &Before) -> anyhow::Result<()> {
        Ok(self.toolkit.stamps.check(&self.session, &self.path, &self.shown, before.digest)?)
    }

    /// The unsaved text of an editor.
    pub(crate) fn buffer(&self) -> Option<Arc<Buffer>> {
        self.toolkit.buffers.over(self.session.project(), &self.path)
    }

    fn open(&self) -> anyhow::Result<Option<Before>> {
        let before = self.open_file()?;
        let Some(buffer) = self.buffer() else { return Ok(before) };
        let saved = before.as_ref().is_some_and(|before| before.bytes == buffer.text.as_bytes());
        // A write that the editor does not know of would make one of the two texts get lost.
        ensure!(saved, "{} has unsaved changes in {}: save it there first", self.shown, buffer.owner);
        Ok(before)
    }

    fn open_file(&self) -> anyhow::Result<Option<Before>> {
        let mut file = match files::open(&self.path) {
            Ok(file) => file,
            Err(OpenError::NotFound(_)) => return Ok(None),
            Err(OpenError::Folder(_)) => bail!("{} is a folder", self.shown),
            Err(error) => return Err(error.into()),
        };
        let size = file.metadata()?.len();
        let limit = MAX_BYTES;
        ensure!(
            size <= limit,
            "{} has {size} bytes; files over {limit} bytes can only be changed by commands",
            self.shown
        );
        let bytes = files::read_opened(&mut file, &self.path, limit)?;
        let digest = blake3::hash(&bytes);
        Ok(Some(Before { file, bytes, digest }))
    }
}

/// The new content of a file.
pub(crate) type NewContent = dyn Fn(&ChangeTarget, Option<&Before>) -> anyhow::Result<Vec<u8>> + Send + Sync;

/// Where the new content comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Basis {
    /// Computed from the old text. Success or failure thus reveals something about that text.
    OldText,
    /// Given completely by the caller.
    NewText,
}

/// A change that can be made.
struct PlannedChange {
    before: Option<(Vec<u8>, FileDigest)>,
    after: Vec<u8>,
    diff: Diff,
}

/// The permissions for a change, with its diff.
///
/// # Errors
/// When the change cannot be made and the caller may read the file; then nobody is asked. For other files, the caller
/// gets this error only after the change is approved.
pub(crate) async fn needs(
    site: ChangeTarget,
    change: Arc<NewContent>,
    basis: Basis,
    cx: &Cx,
) -> anyhow::Result<Vec<Need>> {
    if site.located.is_veiled() {
        return Ok(vec![site.located.to_write()]);
    }
    needs_there(&site, &change, basis, cx).await
}

async fn needs_there(
    site: &ChangeTarget,
    change: &Arc<NewContent>,
    basis: Basis,
    cx: &Cx,
) -> anyhow::Result<Vec<Need>> {
    let need = write_need(site);
    let judged = verdict(&need, cx);
    if judged == Verdict::Deny {
        // The caller may not see even the diff.
        return Ok(vec![need]);
    }
    let may_read = may_read(&site.path, cx);
    if let Some(read) = read_need(site, basis, cx) {
        return Ok(vec![read, need]);
    }
    // The file is read for the user who is asked, and for no one else.
    if !may_read && (judged == Verdict::Allow || !cx.engine.asks.can_be_answered(cx)) {
        return Ok(vec![need]);
    }
    let (site, change) = (site.clone(), change.clone());
    match blocking(cx, move |_| plan(&site, &*change)).await {
        Ok(plan) => Ok(vec![with_diff(need, &plan)]),
        Err(error) if may_read => Err(error),
        Err(_) => Ok(vec![failing(need)]),
    }
}

/// Makes the change.
///
/// # Errors
/// When the change can no longer be made, or the policy denies it. The file is unchanged then.
pub(crate) async fn make(
    site: ChangeTarget,
    change: Arc<NewContent>,
    basis: Basis,
    cx: &Cx,
) -> anyhow::Result<ToolOutput> {
    if site.located.is_veiled() {
        cx.require(site.located.to_write()).await?;
        for need in needs_there(&site, &change, basis, cx).await? {
            cx.require(need).await?;
        }
    }
    // Planned while holding the file's lock, so that each writer builds on the result of the one before.
    let guard = tokio::select! {
        biased;
        () = cx.cancel.cancelled() => return Err(ToolError::Cancelled.into()),
        guard = site.toolkit.stamps.writing(&site.path) => guard,
    };
    // Checked again: the path may lead elsewhere by now, and the change may be a different one.
    if let Some(read) = read_need(&site, basis, cx) {
        cx.require(read).await?;
    }
    let planned = {
        let site = site.clone();
        blocking(cx, move |_| plan(&site, &*change)).await
    };
    let may_read = may_read(&site.path, cx);
    let planned = match planned {
        Ok(planned) => planned,
        Err(error) if may_read => return Err(error),
        Err(error) => {
            cx.require(failing(write_need(&site))).await?;
            return Err(error);
        }
    };
    cx.require(with_diff(write_need(&site), &planned)).await?;
    if planned.before.as_ref().is_some_and(|(before, _)| *before == planned.after) {
        return Ok(ToolOutput::text(format!("{} already has this content: nothing was written", site.shown)));
    }
    let (call_id, tool) = (cx.call_id.clone(), cx.tool.clone());
    blocking(cx, move |cancel| {
        let _guard = guard;
        check(cancel)?;
        let now = site.open()?;
        let known = planned.before.as_ref().map(|(_, digest)| *digest);
        ensure!(
            now.as_ref().map(|now| now.digest) == known,
            "{} has changed on disk in the meantime: read it again",
            site.shown
        );
        // A diff also shows lines that the change did not add.
        let knows =
            may_read || known.is_none_or(|known| site.toolkit.stamps.has_seen(&site.session, &site.path, known));
        let expected = now.as_ref().map_or(Expected::Absent, |now| Expected::Same(&now.file));
        replace(&site.path, &planned.after, expected)?;
        let digest = blake3::hash(&planned.after);
        if knows {
            site.toolkit.stamps.wrote(&site.session, &site.path, digest);
        }
        let output = if knows { output(&site, &planned) } else { output_unseen(&site) };
        let before = planned.before.as_ref().map(|(before, _)| before.as_slice());
        match site.toolkit.journal.record(&site.session, (&call_id, &tool), &site.path, before, digest) {
            Ok(()) => Ok(output),
            Err(error) => Ok(output.with("not_undoable", error.to_string())),
        }
    })
    .await
}

fn write_need(site: &ChangeTarget) -> Need {
    file_needs::write_need(&site.path, &mut Exclusions::default())
}

/// The permission to read that a change needs in addition to the one to write. A user who is asked about the change
/// sees its diff, so one answer covers both.
fn read_need(site: &ChangeTarget, basis: Basis, cx: &Cx) -> Option<Need> {
    let read = file_needs::read_need(&site.path, &mut Exclusions::default());
    let is_needed = match (basis, verdict(&read, cx)) {
        (Basis::NewText, _) | (Basis::OldText, Verdict::Allow) => false,
        (Basis::OldText, Verdict::Deny) => true,
        (Basis::OldText, Verdict::Ask) => verdict(&write_need(site), cx) == Verdict::Allow,
    };
    is_needed.then_some(read)
}

/// The explanation for a user who is asked about a change that does not apply to the file.
fn failing(need: Need) -> Need {
    need.because("the change does not fit the file as it is now: it will fail and write nothing")
}

fn plan(site: &ChangeTarget, change: &NewContent) -> anyhow::Result<PlannedChange> {
    let before = site.open()?;
    let after = change(site, before.as_ref())?;
    let limit = MAX_BYTES;
    ensure!(after.len() as u64 <= limit, "{} bytes are too many for one file: at most {limit}", after.len());
    let text = |bytes: &[u8]| Document::decode(bytes).map(|document| document.text).ok();
    let diff = match (before.as_ref().map(|before| text(&before.bytes)), text(&after)) {
        (None, Some(new)) => diff(None, &new, &site.shown),
        (Some(Some(old)), Some(new)) => diff(Some(&old), &new, &site.shown),
        (None | Some(None), _) | (Some(Some(_)), None) => {
            Diff { text: format!("Binary file {} differs\n", site.shown), ..Diff::default() }
        }
    };
    Ok(PlannedChange { before: before.map(|before| (before.bytes, before.digest)), after, diff })
}

fn with_diff(mut need: Need, plan: &PlannedChange) -> Need {
    need.diff = Some(plan.diff.text.clone());
    need
}

/// The result for a caller that may write the file but not read it.
fn output_unseen(site: &ChangeTarget) -> ToolOutput {
    let output = ToolOutput::text(format!("changed {}; you may not read its content", site.shown));
    output.with("path", site.path.to_string_lossy().as_ref()).with("created", false)
}

fn output(site: &ChangeTarget, plan: &PlannedChange) -> ToolOutput {
    let Diff { text, added, removed } = &plan.diff;
    let words = match plan.before {
        // The model has just written the whole file.
        None => format!("created {} ({added} {})", site.shown, if *added == 1 { "line" } else { "lines" }),
        Some(_) => {
            let mut shown = text.as_str();
            if shown.len() > MAX_SHOWN_DIFF {
                let end = shown.floor_char_boundary(MAX_SHOWN_DIFF);
                shown = &shown[..shown[..end].rfind('\n').map_or(end, |line| line + 1)];
            }
            let cut = if shown.len() < text.len() { "[the rest of the diff is cut]" } else { "" };
            format!("changed {} (+{added} -{removed})\n{shown}{cut}", site.shown).trim_end().to_owned()
        }
    };
    ToolOutput::text(words)
        .with("path", site.path.to_string_lossy().as_ref())
        .with("created", plan.before.is_none())
        .with("added", *added)
        .with("removed", *removed)
        .with("diff", text.as_str())
}
