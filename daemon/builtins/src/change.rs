//! Changes of files for `write`, `edit` and `apply_patch`: planned, shown to the user who approves them, then made, all
//! or none.

use std::collections::BTreeMap;
use std::fs::{File, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{bail, ensure};
use serde_json::Value;
use toold_engine::cx::Cx;
use toold_engine::need::Need;
use toold_engine::session::Session;
use toold_engine::tool::{ToolError, ToolOutput};
use toold_host::files::{self, CachedFile, OpenError, UserAttributes};
use toold_host::replace::{Expected, ReplaceError, add_name, remove, replace};
use toold_proto::permission::Verdict;
use toold_proto::tool::Block;

use crate::blocking::{blocking, check};
use crate::buffers::Buffer;
use crate::diff::{self, Diff};
use crate::document::MAX_BYTES;
use crate::journal::{ChangingCall, InodeId, PathChange, PathState, RawPath};
use crate::near_names::{self, MissingKind};
use crate::paths::{self, Located, verdict};
use crate::stamps::FileDigest;
use crate::text::counted;
use crate::toolkit::Toolkit;

/// The part of the diff that the model gets; it knows what it wrote.
const MAX_SHOWN_DIFF: usize = 8 * 1024;
/// Files up to this size are read and compared in place if no disk is needed for that.
const IN_PLACE: usize = 4 * 1024;

/// A file's current state.
pub(crate) struct Before {
    pub(crate) file: File,
    pub(crate) bytes: Vec<u8>,
    pub(crate) digest: FileDigest,
    /// The permission bits.
    pub(crate) mode: u32,
    pub(crate) identity: InodeId,
}

/// The file to change, and the session that changes it.
#[derive(Clone)]
pub(crate) struct ChangeTarget {
    cx: Arc<Cx>,
    pub(crate) toolkit: Arc<Toolkit>,
    pub(crate) session: Arc<Session>,
    pub(crate) located: Located,
    pub(crate) path: PathBuf,
    /// Its name in messages.
    pub(crate) shown: String,
    /// The path as it was given.
    named: String,
}

impl ChangeTarget {
    pub(crate) fn new(toolkit: &Arc<Toolkit>, path: &str, cx: &Cx) -> anyhow::Result<Self> {
        let located = Located::new(path, cx)?;
        let (file, named) = (located.path.clone(), path.to_owned());
        let shown = paths::shown(&file, &cx.cwd);
        let (toolkit, session) = (toolkit.clone(), cx.session.clone());
        Ok(Self { cx: cx.shared(), toolkit, session, located, path: file, shown, named })
    }

    /// The message for a file that does not exist, with the names that may be meant, or else what to do. Blocks.
    pub(crate) fn missing(&self, otherwise: &str) -> String {
        let Self { named, shown, .. } = self;
        if self.is_link() {
            return format!("{named} is a link to {shown}, which does not exist");
        }
        let hint = near_names::hint(&self.path, MissingKind::File, &self.cx);
        let hint = hint.unwrap_or_else(|| format!(": find it with `glob`{otherwise}"));
        format!("there is no file {}{hint}", self.shown)
    }

    /// Whether the path that was given is a link, and the caller may know that.
    fn is_link(&self) -> bool {
        let entry = &self.located.named;
        !self.located.hides_its_target() && entry.symlink_metadata().is_ok_and(|facts| facts.is_symlink())
    }

    /// Fails for a link: what it leads to would be removed or moved, and the link would stay.
    pub(crate) fn check_is_no_link(&self) -> anyhow::Result<()> {
        let Self { named, shown, .. } = self;
        ensure!(
            !self.is_link(),
            "{named} is a link to {shown}: remove or move the link by a command, or name {shown} itself"
        );
        Ok(())
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
        self.unless_unsaved(self.open_file()?)
    }

    /// As [`Self::open`], if the file is small and the system has it in memory.
    fn open_cached(&self) -> Option<anyhow::Result<Option<Before>>> {
        let CachedFile { file, bytes, mode, identity: (device, inode) } = files::open_cached(&self.path, IN_PLACE)?;
        let digest = blake3::hash(&bytes);
        let identity = InodeId { device, inode, born: None };
        Some(self.unless_unsaved(Some(Before { file, bytes, digest, mode, identity })))
    }

    fn unless_unsaved(&self, before: Option<Before>) -> anyhow::Result<Option<Before>> {
        let Some(buffer) = self.buffer() else { return Ok(before) };
        let saved = before.as_ref().is_some_and(|before| before.bytes == buffer.text.as_bytes());
        // A write that the editor does not know of would make one of the two texts get lost.
        ensure!(saved, "{} has unsaved changes in {}: save it there first", self.shown, buffer.owner);
        Ok(before)
    }

    /// The file on the disk; `None` if there is none. Blocks.
    pub(crate) fn open_file(&self) -> anyhow::Result<Option<Before>> {
        let mut file = match files::open(&self.path) {
            Ok(file) => file,
            Err(OpenError::NotFound(_)) => return Ok(None),
            Err(OpenError::Folder(_)) => bail!("{} is a folder", self.shown),
            Err(error) => return Err(error.into()),
        };
        let metadata = file.metadata()?;
        let size = metadata.len();
        let limit = MAX_BYTES;
        ensure!(
            size <= limit,
            "{} has {size} bytes; files over {limit} bytes can only be changed by commands",
            self.shown
        );
        let bytes = files::read_opened(&mut file, &self.path, limit)?;
        let digest = blake3::hash(&bytes);
        let mode = metadata.permissions().mode() & 0o777;
        let identity = InodeId::of(&metadata);
        Ok(Some(Before { file, bytes, digest, mode, identity }))
    }
}

/// One file after a change.
#[derive(Clone, Debug, Default)]
pub(crate) struct NewState {
    /// `None` removes the file.
    pub(crate) content: Option<Vec<u8>>,
    /// The permission bits of a new file; by default those of the umask.
    pub(crate) mode: Option<u32>,
    /// Where the content was before the change, if it was moved here.
    pub(crate) moved_from: Option<PathBuf>,
    /// For the model: what else it should know.
    pub(crate) notes: Vec<String>,
}

impl NewState {
    pub(crate) fn of(content: Vec<u8>) -> Self {
        Self { content: Some(content), ..Self::default() }
    }
}

/// Computes what becomes of the files, one state for each target, from the files as they are.
pub(crate) type NewStates = dyn Fn(&[ChangeTarget], &[Option<Before>]) -> anyhow::Result<Vec<NewState>> + Send + Sync;

/// Where the new content comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Basis {
    /// Computed from the old text. Success or failure thus reveals something about that text.
    OldText,
    /// Given completely by the caller.
    NewText,
}

/// A change of different files.
#[derive(Clone)]
pub(crate) struct Change {
    targets: Arc<[ChangeTarget]>,
    /// The basis of each target.
    bases: Arc<[Basis]>,
    states: Arc<NewStates>,
    /// Whether what the caller gave is so short that to plan the change of a small file takes no time.
    is_short: bool,
}

impl Change {
    pub(crate) fn new(targets: Vec<(ChangeTarget, Basis)>, states: Arc<NewStates>) -> Self {
        let (targets, bases): (Vec<ChangeTarget>, Vec<Basis>) = targets.into_iter().unzip();
        Self { targets: targets.into(), bases: bases.into(), states, is_short: false }
    }

    /// A change of one file.
    pub(crate) fn of_file(
        target: ChangeTarget,
        basis: Basis,
        state: impl Fn(&ChangeTarget, Option<&Before>) -> anyhow::Result<NewState> + Send + Sync + 'static,
    ) -> Self {
        let states = move |targets: &[ChangeTarget], before: &[Option<Before>]| {
            targets.iter().zip(before).map(|(target, before)| state(target, before.as_ref())).collect()
        };
        Self::new(vec![(target, basis)], Arc::new(states))
    }

    /// `given` is the length of the texts that the caller gave, in bytes.
    pub(crate) fn with_length(self, given: usize) -> Self {
        Self { is_short: given <= IN_PLACE, ..self }
    }

    pub(crate) fn targets(&self) -> &[ChangeTarget] {
        &self.targets
    }

    fn behind_hidden_links(&self) -> impl Iterator<Item = &ChangeTarget> {
        self.targets.iter().filter(|target| target.located.hides_its_target())
    }

    fn write_needs(&self, cx: &Cx) -> Vec<Need> {
        self.targets.iter().map(|target| target.located.target_to_write(cx)).collect()
    }

    /// The permissions to read that the change needs in addition to those to write. A user who is asked about the
    /// change of a file sees its diff, so one answer covers both.
    fn read_needs(&self, cx: &Cx) -> Vec<Need> {
        let of_target = |(target, basis): (&ChangeTarget, &Basis)| {
            let read = target.located.target_to_read(cx);
            let is_needed = match (basis, verdict(&read, cx)) {
                (Basis::NewText, _) | (Basis::OldText, Verdict::Allow) => false,
                (Basis::OldText, Verdict::Deny) => true,
                (Basis::OldText, Verdict::Ask) => verdict(&target.located.target_to_write(cx), cx) == Verdict::Allow,
            };
            is_needed.then_some(read)
        };
        self.targets.iter().zip(self.bases.iter()).filter_map(of_target).collect()
    }

    fn is_readable(&self, cx: &Cx) -> bool {
        self.targets.iter().all(|target| target.located.may_read(cx))
    }

    /// The change as it would be made now. Small files that the system has in memory are read in place: a thread of its own
    /// takes longer.
    async fn plan(&self, cx: &Cx) -> anyhow::Result<Vec<PlannedChange>> {
        let cached = || self.targets.iter().map(ChangeTarget::open_cached).collect::<Option<Vec<_>>>();
        if let Some(before) = self.is_short.then(cached).flatten() {
            return self.plan_from(before.into_iter().collect::<anyhow::Result<_>>()?);
        }
        let change = self.clone();
        blocking(cx, move |_| {
            let before = change.targets.iter().map(ChangeTarget::open);
            change.plan_from(before.collect::<anyhow::Result<_>>()?)
        })
        .await
    }

    fn plan_from(&self, before: Vec<Option<Before>>) -> anyhow::Result<Vec<PlannedChange>> {
        let states = (self.states)(&self.targets, &before)?;
        let written = self.targets.iter().zip(&states).filter(|(_, state)| state.content.is_some());
        let written: BTreeMap<&Path, &str> =
            written.map(|(target, _)| (target.path.as_path(), target.shown.as_str())).collect();
        for (path, inner) in &written {
            if let Some(outer) = path.ancestors().skip(1).find_map(|above| written.get(above)) {
                anyhow::bail!("{outer} cannot be a file and the folder of {inner}: nothing was changed");
            }
        }
        let all = self.targets.iter().zip(before).zip(states);
        all.map(|((target, before), state)| PlannedChange::new(target.clone(), before, state)).collect()
    }
}

/// A change of one file that can be made.
struct PlannedChange {
    target: ChangeTarget,
    before: Option<KnownContent>,
    after: NewState,
    diff: Diff,
}

/// The content of a file that may be replaced or removed.
struct KnownContent {
    bytes: Vec<u8>,
    digest: FileDigest,
    mode: u32,
    identity: InodeId,
    /// Only of a file that is removed: one that stays keeps them.
    attributes: Option<UserAttributes>,
}

/// The permissions for a change, with the diff of each file.
///
/// # Errors
/// When the change cannot be made and the caller may read its files; then nobody is asked. For other files, the caller
/// gets this error only after the change is approved.
pub(crate) async fn needs(change: Change, cx: &Cx) -> anyhow::Result<Vec<Need>> {
    let links: Vec<Need> = change.behind_hidden_links().map(|target| target.located.to_write(cx)).collect();
    if links.is_empty() { needs_there(&change, cx).await } else { Ok(links) }
}

/// The permissions for a change that an agent makes with a tool of its own. Whether the change fits the file is the
/// agent's business; only a person who is asked here sees a diff.
pub(crate) async fn needs_of_agent(change: Change, cx: &Cx) -> Vec<Need> {
    let mut needs: Vec<Need> = change.behind_hidden_links().map(|target| target.located.to_write(cx)).collect();
    let writes = change.write_needs(cx);
    let has_hidden_link = !needs.is_empty();
    needs.extend(change.read_needs(cx));
    let is_asked = || {
        cx.agent.as_ref().is_some_and(|agent| agent.asks_until.is_some())
            && writes.iter().any(|need| verdict(need, cx) == Verdict::Ask)
            && cx.engine.asks.can_be_answered(cx)
    };
    if !has_hidden_link
        && is_asked()
        && let Ok(plan) = change.plan(cx).await
    {
        needs.extend(plan.iter().map(|plan| with_diff(plan, cx)));
        return needs;
    }
    needs.extend(writes);
    needs
}

async fn needs_there(change: &Change, cx: &Cx) -> anyhow::Result<Vec<Need>> {
    let needs = change.write_needs(cx);
    let verdicts: Vec<Verdict> = needs.iter().map(|need| verdict(need, cx)).collect();
    if let Some(denied) = verdicts.iter().position(|verdict| *verdict == Verdict::Deny) {
        // The caller may not see even the diff.
        return Ok(vec![needs[denied].clone()]);
    }
    let reads = change.read_needs(cx);
    if !reads.is_empty() {
        return Ok(reads.into_iter().chain(needs).collect());
    }
    let is_readable = change.is_readable(cx);
    // The files are read for the user who is asked, and for no one else.
    let is_asked = verdicts.contains(&Verdict::Ask) && cx.engine.asks.can_be_answered(cx);
    if !is_readable && !is_asked {
        return Ok(needs);
    }
    match change.plan(cx).await {
        Ok(plan) => Ok(plan.iter().map(|plan| with_diff(plan, cx)).collect()),
        Err(error) if is_readable => Err(error),
        Err(_) => Ok(needs.into_iter().map(failing).collect()),
    }
}

/// Makes the change.
///
/// # Errors
/// When the change can no longer be made, or the policy denies it. The files are unchanged then, unless the error says
/// that one could not be brought back.
pub(crate) async fn make(change: Change, cx: &Cx) -> anyhow::Result<ToolOutput> {
    if change.behind_hidden_links().next().is_some() {
        for target in change.behind_hidden_links() {
            cx.require(target.located.to_write(cx)).await?;
        }
        for need in needs_there(&change, cx).await? {
            cx.require(need).await?;
        }
    }
    // Planned while holding the files' locks, so that each writer builds on the result of the one before. Taken in one
    // order by all, so that no two wait for each other.
    let mut paths: Vec<&Path> = change.targets.iter().map(|target| target.path.as_path()).collect();
    paths.sort_unstable();
    paths.dedup();
    let mut guards = Vec::with_capacity(paths.len());
    for path in paths {
        tokio::select! {
            biased;
            () = cx.cancel.cancelled() => return Err(ToolError::Cancelled.into()),
            guard = change.targets[0].toolkit.stamps.writing(path) => guards.push(guard),
        }
    }
    // Checked again: a path may lead elsewhere by now, and the change may be a different one.
    for read in change.read_needs(cx) {
        cx.require(read).await?;
    }
    let planned = change.plan(cx).await;
    let is_readable = change.is_readable(cx);
    let planned = match planned {
        Ok(planned) => planned,
        Err(error) if is_readable => return Err(error),
        Err(error) => {
            for need in change.write_needs(cx) {
                cx.require(failing(need)).await?;
            }
            return Err(error);
        }
    };
    for plan in &planned {
        cx.require(with_diff(plan, cx)).await?;
    }
    let readable: Vec<bool> = planned.iter().map(|plan| plan.target.located.may_read(cx)).collect();
    let (call, toolkit) = (ChangingCall::of(cx), change.targets[0].toolkit.clone());
    blocking(cx, move |cancel| {
        let _guards = guards;
        check(cancel)?;
        let changes = changes_of(&planned, &toolkit);
        let new_folders: Vec<PathBuf> = changes.iter().flatten().filter_map(made_folder).collect();
        // Recorded before it is made: if the daemon is killed in between, what is made can be undone.
        let recorded = changes.and_then(|changes| toolkit.journal.record(&call, changes, Vec::new()));
        if let Err(error) = make_all(&planned) {
            for folder in new_folders.iter().rev() {
                // One that was not made, or that others use by now.
                let _ = files::remove(folder);
            }
            if let Ok(Some(record)) = recorded {
                record.withdraw();
            }
            return Err(error);
        }
        let outputs = planned.iter().zip(readable).map(|(plan, may_read)| plan.result(may_read)).collect();
        let output = joined(outputs);
        Ok(match recorded {
            Ok(_) => output,
            Err(error) => {
                let mut output = output.with("not_undoable", error.to_string());
                output.content.push(Block::text(format!("[this change cannot be undone: {error}]")));
                output
            }
        })
    })
    .await
}

/// The folder that a change makes, if it is one.
fn made_folder(change: &PathChange) -> Option<PathBuf> {
    change.after.as_ref().is_some_and(PathState::is_folder).then(|| change.path.0.clone())
}

/// What is about to change, with the folders that it makes. The contents before are kept.
fn changes_of(planned: &[PlannedChange], toolkit: &Toolkit) -> io::Result<Vec<PathChange>> {
    let mut changes: BTreeMap<PathBuf, PathChange> = BTreeMap::new();
    for plan in planned.iter().filter(|plan| !plan.is_made_already()) {
        let path = &plan.target.path;
        let kept = |before: &KnownContent| {
            let removed = plan.after.content.is_none();
            let state = toolkit.journal.keep(&before.bytes, before.mode)?.with_attributes(before.attributes.clone());
            // The bits of a file that stays are not a part of the change.
            io::Result::Ok(if removed { state } else { state.without_mode() })
        };
        let before = plan.before.as_ref().map(kept).transpose()?;
        let after = plan.after.content.as_ref().map(|content| {
            // Kept too: the change is shown when others have changed the file since. Undoing it does not need that.
            let kept = toolkit.journal.contents().and_then(|contents| contents.keep(content));
            let digest = kept.unwrap_or_else(|_| blake3::hash(content));
            PathState::File { content: Some(digest), mode: None, size: content.len() as u64, attributes: None }
        });
        if before.is_none() {
            for folder in path.ancestors().skip(1).take_while(|folder| !folder.exists()) {
                let made = PathChange::new(folder, None, Some(PathState::Folder { mode: None, attributes: None }));
                changes.entry(folder.to_owned()).or_insert(made);
            }
        }
        let was = plan.before.as_ref().map(|before| before.identity);
        changes.insert(
            path.clone(),
            PathChange {
                from: plan.after.moved_from.clone().map(RawPath),
                ..PathChange::new(path, before, after).of_file(was)
            },
        );
    }
    toolkit.command_changes.expect_others(changes.keys());
    Ok(changes.into_values().collect())
}

/// Writes, moves and removes the files. When one of them fails, those before it are brought back.
fn make_all(planned: &[PlannedChange]) -> anyhow::Result<()> {
    let mut files = Vec::new();
    for plan in planned {
        let now = plan.target.open()?;
        let known = plan.before.as_ref().map(|before| before.digest);
        ensure!(
            now.as_ref().map(|now| now.digest) == known,
            "{} has changed on disk in the meantime: read it again",
            plan.target.shown
        );
        files.push(now.map(|now| now.file));
    }
    let moves: BTreeMap<usize, usize> =
        planned.iter().enumerate().filter_map(|(to, plan)| Some((to, plan.moved_from(planned)?))).collect();
    let is_moved = |at: &usize| moves.values().any(|from| from == at);
    // Moved and removed last: until then, a failure loses nothing that only an open file keeps.
    let (written, rest): (Vec<usize>, Vec<usize>) =
        (0..planned.len()).partition(|at| planned[*at].after.content.is_some() && !moves.contains_key(at));
    let (moved, removed): (Vec<usize>, Vec<usize>) = rest.into_iter().partition(|at| moves.contains_key(at));
    let removed = removed.into_iter().filter(|at| !is_moved(at));
    let mut made: Vec<MadeChange<'_>> = Vec::new();
    for at in written.into_iter().chain(moved).chain(removed) {
        let change = MadeChange { plan: &planned[at], source: moves.get(&at).map(|from| &planned[*from]) };
        let file = files[moves.get(&at).copied().unwrap_or(at)].as_ref();
        if let Err(error) = change.make(file) {
            let lost: Vec<String> = made.iter().rev().filter_map(|made| made.take_back().err()).collect();
            let error = anyhow::Error::from(error);
            return Err(match (lost.is_empty(), planned.len()) {
                (true, 1) => error,
                (true, _) => error.context("nothing was changed"),
                (false, _) => error.context(format!("these files could not be brought back: {}", lost.join("; "))),
            });
        }
        made.push(change);
    }
    Ok(())
}

/// The change of one path, or of the two of a file that is moved.
struct MadeChange<'p> {
    plan: &'p PlannedChange,
    /// The path that the file was moved from.
    source: Option<&'p PlannedChange>,
}

impl MadeChange<'_> {
    fn make(&self, file: Option<&File>) -> Result<(), ReplaceError> {
        let (Some(source), Some(file)) = (self.source, file) else { return self.plan.make(file) };
        let (from, to) = (&source.target.path, &self.plan.target.path);
        let content = self.plan.after.content.as_deref().unwrap_or_default();
        files::make_folders(to.parent().unwrap_or(Path::new("/")))?;
        // So it stays the same file, with its attributes and its other names.
        if add_name(from, to, None).is_err() {
            // On a file system without further names, or another one.
            self.plan.make(None)?;
            if let Ok(made) = files::open(to) {
                // If the system refuses that, the content matters more.
                let _ = UserAttributes::of(file).give(&made);
            }
            return source.make(Some(file)).inspect_err(|_| drop(self.plan.take_back()));
        }
        let change = || {
            remove(from, file)?;
            if source.before.as_ref().is_some_and(|before| before.bytes != content) {
                let moved = files::open(to)?;
                replace(to, content, Expected::Same(&moved))?;
            }
            Ok(())
        };
        change().inspect_err(|_| _ = self.move_back())
    }

    /// Undoes what [`Self::make`] did. The error is for readers.
    fn take_back(&self) -> Result<(), String> {
        let Some(source) = self.source else { return self.plan.take_back() };
        let before = source.before.as_ref().map(|before| before.bytes.as_slice()).unwrap_or_default();
        let done = files::open(&self.plan.target.path).map_err(ReplaceError::from).and_then(|file| {
            replace(&self.plan.target.path, before, Expected::Same(&file))?;
            self.move_back()
        });
        done.map_err(|error| format!("{}: {error}", source.target.shown))
    }

    fn move_back(&self) -> Result<(), ReplaceError> {
        let (Some(source), to) = (self.source, &self.plan.target.path) else { return Ok(()) };
        if !source.target.path.exists() {
            add_name(to, &source.target.path, None)?;
        }
        remove(to, &files::open(to)?)
    }
}

impl PlannedChange {
    fn new(target: ChangeTarget, before: Option<Before>, after: NewState) -> anyhow::Result<Self> {
        let (size, limit) = (after.content.as_ref().map_or(0, Vec::len), MAX_BYTES);
        ensure!(size as u64 <= limit, "{size} bytes are too many for one file: at most {limit}");
        let old = before.as_ref().map(|before| before.bytes.as_slice());
        // `read` shows the text of its cells, and the file has them as JSON.
        let is_notebook = target.path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("ipynb"));
        if is_notebook && old.is_some_and(is_json) && after.content.as_deref().is_some_and(|content| !is_json(content))
        {
            bail!(
                "{} was not changed: it is a notebook, and would no longer be valid JSON. Give the text as it stands in the \
                 JSON, with \\n for a line end and \\\" for a quote, or rewrite the cell with a program",
                target.shown
            );
        }
        let diff = diff::of_contents(old, after.content.as_deref(), &target.shown);
        let is_removed = after.content.is_none();
        let known = |Before { file, bytes, digest, mode, identity }| {
            let attributes = is_removed.then(|| UserAttributes::of(&file));
            KnownContent { bytes, digest, mode, identity, attributes }
        };
        Ok(Self { target, before: before.map(known), after, diff })
    }

    /// The place in the plan of the file that is moved here, if it is one and nothing was here.
    fn moved_from(&self, planned: &[Self]) -> Option<usize> {
        let from = self.after.moved_from.as_ref().filter(|_| self.before.is_none())?;
        let is_source =
            |plan: &Self| plan.target.path == *from && plan.before.is_some() && plan.after.content.is_none();
        planned.iter().position(is_source)
    }

    fn is_made_already(&self) -> bool {
        self.before.as_ref().map(|before| &before.bytes) == self.after.content.as_ref()
    }

    fn make(&self, file: Option<&File>) -> Result<(), ReplaceError> {
        let path = &self.target.path;
        match (&self.after.content, file) {
            _ if self.is_made_already() => Ok(()),
            (Some(content), Some(file)) => replace(path, content, Expected::Same(file)),
            (Some(content), None) => create(path, content, self.after.mode),
            (None, Some(file)) => remove(path, file),
            (None, None) => Ok(()),
        }
    }

    /// Undoes what `make` did. The error is for readers.
    fn take_back(&self) -> Result<(), String> {
        let path = &self.target.path;
        let done = match (&self.before, files::open(path)) {
            _ if self.is_made_already() => Ok(()),
            (Some(before), Ok(file)) => replace(path, &before.bytes, Expected::Same(&file)),
            (Some(before), Err(OpenError::NotFound(_))) => create(path, &before.bytes, Some(before.mode)),
            (None, Ok(file)) => remove(path, &file),
            (None, Err(OpenError::NotFound(_))) => Ok(()),
            (_, Err(error)) => Err(error.into()),
        };
        done.map_err(|error| format!("{}: {error}", self.target.shown))
    }

    /// The result of the change, after it was made; what the session has seen of the file is noted.
    fn result(&self, may_read: bool) -> ToolOutput {
        let ChangeTarget { toolkit, session, path, shown, .. } = &self.target;
        if self.is_made_already() {
            return ToolOutput::text(format!("{shown} already has this content: nothing was written"));
        }
        // A diff also shows lines that the change did not add.
        let known = self.before.as_ref().map(|before| before.digest);
        let knows = may_read || known.is_none_or(|known| toolkit.stamps.has_seen(session, path, known));
        let digest = self.after.content.as_ref().map(|content| blake3::hash(content));
        match digest {
            Some(digest) if knows => toolkit.stamps.wrote(session, path, digest),
            Some(_) => {}
            None => toolkit.stamps.forget(session, path),
        }
        if knows { self.output() } else { self.output_unseen() }
    }

    /// The result for a caller that may write the file but not read it.
    fn output_unseen(&self) -> ToolOutput {
        let output = ToolOutput::text(format!("changed {}; you may not read its content", self.target.shown));
        output.with("path", self.target.path.to_string_lossy().as_ref()).with("created", false)
    }

    fn output(&self) -> ToolOutput {
        let Diff { text, added, removed, .. } = &self.diff;
        let shown = &self.target.shown;
        let lines = |count: usize| counted(count as u64, "line");
        let mut words = match (&self.before, &self.after.content) {
            // The model has just written the whole file.
            (None, _) => format!("created {shown} ({})", lines(*added)),
            (Some(_), None) => format!("removed {shown} ({})", lines(*removed)),
            (Some(_), Some(_)) => {
                let mut part = text.as_str();
                if part.len() > MAX_SHOWN_DIFF {
                    let end = part.floor_char_boundary(MAX_SHOWN_DIFF);
                    part = &part[..part[..end].rfind('\n').map_or(end, |line| line + 1)];
                }
                let cut = if part.len() < text.len() { "[the rest of the diff is cut]" } else { "" };
                format!("changed {shown} (+{added} -{removed})\n{part}{cut}").trim_end().to_owned()
            }
        };
        for note in &self.after.notes {
            words.push_str(&format!("\n[{note}]"));
        }
        let mut output = ToolOutput::text(words)
            .with("path", self.target.path.to_string_lossy().as_ref())
            .with("created", self.before.is_none())
            .with("added", *added)
            .with("removed", *removed)
            .with("diff", text.as_str());
        if self.after.content.is_none() {
            output = output.with("deleted", true);
        }
        output
    }
}

fn is_json(bytes: &[u8]) -> bool {
    serde_json::from_slice::<serde::de::IgnoredAny>(bytes).is_ok()
}

/// Fails for the name of a folder, into which the caller may mean to put a file.
pub(crate) fn check_names_file(path: &str) -> anyhow::Result<()> {
    ensure!(!path.ends_with('/'), "{path} names a folder: give the path of a file");
    Ok(())
}

/// Creates a file. `mode` holds its permission bits.
pub(crate) fn create(path: &Path, content: &[u8], mode: Option<u32>) -> Result<(), ReplaceError> {
    replace(path, content, Expected::Absent)?;
    let Some(mode) = mode else { return Ok(()) };
    let set = files::open(path)?.set_permissions(Permissions::from_mode(mode));
    set.map_err(|source| ReplaceError::System { path: path.to_owned(), source })
}

/// The explanation for a user who is asked about a change that does not apply to the file.
fn failing(need: Need) -> Need {
    need.because("the change does not fit the file as it is now: it will fail and write nothing")
}

fn with_diff(plan: &PlannedChange, cx: &Cx) -> Need {
    let diff = Some(plan.diff.text.clone());
    let need = plan.target.located.target_to_write(cx).with_file(|file| file.diff = diff);
    match plan.diff.form.is_empty() {
        true => need,
        false => need.because(format!("it changes more than the diff's lines show: {}", plan.diff.form.join(", "))),
    }
}

/// One result for all files. That of several has the metadata of each in `files`, and their diffs one below another.
fn joined(mut outputs: Vec<ToolOutput>) -> ToolOutput {
    if outputs.len() == 1 {
        return outputs.remove(0);
    }
    let texts: Vec<&str> = outputs.iter().flat_map(|output| &output.content).filter_map(Block::as_text).collect();
    let diffs: String = outputs.iter().filter_map(|output| output.metadata.get("diff")?.as_str()).collect();
    let joined = ToolOutput::text(texts.join("\n")).with("diff", diffs);
    let files: Vec<Value> = outputs
        .into_iter()
        .map(|mut output| {
            output.metadata.remove("diff");
            Value::Object(output.metadata)
        })
        .collect();
    joined.with("files", files)
}
