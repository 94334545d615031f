//! The names of the files whose contents commands of Git show: those that commits have or change, and those in which a commit,
//! the index and the working tree differ.

use std::cmp::Ordering;
use std::collections::{BTreeSet, BinaryHeap, HashMap, HashSet, VecDeque};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::contents::{Object, ObjectError, ObjectKind, ObjectStore};
use super::objects::{ObjectId, is_object_name, parse_hex};
use super::{MAX_CONFIG, Repository, common_of, text_of};
use crate::git_index::{IndexEntry, IndexEntryKind};
use crate::git_settings::{self, Setting};
use crate::shell_grammar::clock::JudgingClock;
use crate::shell_grammar::programs::pathspec::Pathspecs;

/// A repository with more branches and tags is not read as a whole.
const MAX_REFS: usize = 500;
const MAX_PACKED_REFS: u64 = 4 * 1024 * 1024;
/// Folders within one another.
const MAX_DEPTH: usize = 64;
const MAX_STEPS: usize = 10_000;
/// The name of the tree without files, which Git knows without an object.
const EMPTY_TREE: &str = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";

/// Contents that a command shows, by the revisions in its words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::shell_grammar::programs) enum ShownContents {
    /// All files that these have.
    Files(Vec<String>),
    /// The changes that each of these made.
    Changes(Vec<String>),
    /// The differences between the first and the second.
    Between(String, String),
    /// The differences between this one and the index.
    Index(String),
    /// The differences between the index and the working tree.
    WorkingTree,
    /// The changes of a stash, against the commit that it was made on.
    Stash(String),
    /// The changes of all stashes.
    Stashes,
    /// The changes of the commits that these lead to, without those that a `^` excludes; the first ones up to a number.
    Walk(Vec<String>, Option<usize>),
    /// The changes of all branches.
    All,
    /// Contents without a name.
    Unnamed,
}

impl Repository {
    /// The names of the files whose contents are shown, as far as paths choose them; `None` if they are not known, or not found
    /// within half of the time that is left.
    pub(in crate::shell_grammar::programs) fn names_shown(
        &self,
        shown: &[ShownContents],
        chosen: &Pathspecs,
        clock: JudgingClock,
    ) -> Option<Vec<String>> {
        let mut found = BTreeSet::new();
        let (of_working_tree, others): (Vec<_>, Vec<_>) =
            shown.iter().partition(|shown| **shown == ShownContents::WorkingTree);
        if !of_working_tree.is_empty() {
            found.extend(self.changed_names()?.filter(|name| chosen.may_choose(name)).map(str::to_owned));
        }
        if !others.is_empty() {
            let common = common_of(&self.own);
            let store = ObjectStore::open(&common.join("objects"), clock.half())?;
            let refs = Refs::of(&self.own, &common)?;
            let mut history = History { repository: self, store, refs, chosen, found, seen: HashSet::new() };
            others.into_iter().try_for_each(|shown| history.add(shown))?;
            found = history.found;
        }
        Some(found.into_iter().collect())
    }
}

/// Branches, tags and the like.
struct Refs {
    own: PathBuf,
    common: PathBuf,
    /// Names with the objects that they are about.
    packed: Vec<(String, ObjectId)>,
    /// Commits at which the history of a shallow clone ends.
    shallow: HashSet<ObjectId>,
}

impl Refs {
    /// `None` if other objects replace some, or the commits at which the history ends are not known.
    fn of(own: &Path, common: &Path) -> Option<Self> {
        let mut packed = Vec::new();
        if common.join("packed-refs").symlink_metadata().is_ok() {
            let text = text_of(&common.join("packed-refs"), MAX_PACKED_REFS).ok()?;
            let entries =
                text.lines().filter(|line| !line.starts_with(['#', '^'])).filter_map(|line| line.split_once(' '));
            packed = entries.map(|(id, name)| Some((name.to_owned(), parse_hex(id)?))).collect::<Option<_>>()?;
        }
        let is_replacing = |(name, _): &(String, ObjectId)| name.starts_with("refs/replace/");
        let others = ["reftable", "refs/replace", "info/grafts"];
        let is_odd =
            others.iter().any(|name| common.join(name).symlink_metadata().is_ok()) || packed.iter().any(is_replacing);
        let shallow = match common.join("shallow").symlink_metadata() {
            Ok(_) => {
                text_of(&common.join("shallow"), MAX_PACKED_REFS).ok()?.lines().map(parse_hex).collect::<Option<_>>()?
            }
            Err(_) => HashSet::new(),
        };
        (!is_odd).then(|| Self { own: own.to_owned(), common: common.to_owned(), packed, shallow })
    }

    /// The object that a name is about, as Git looks it up (gitrevisions(7)).
    fn find(&self, name: &str) -> Option<ObjectId> {
        let is_plain =
            !name.is_empty() && !name.split('/').any(|part| part.is_empty() || part == "..") && !name.contains('\0');
        let places = ["", "refs/", "refs/tags/", "refs/heads/", "refs/remotes/"]
            .into_iter()
            .map(|place| format!("{place}{name}"));
        let all = places.chain([format!("refs/remotes/{name}/HEAD")]);
        is_plain.then(|| all.into_iter().find_map(|name| self.read(&name))).flatten()
    }

    fn read(&self, name: &str) -> Option<ObjectId> {
        let mut name = name.to_owned();
        for _ in 0..5 {
            let is_pseudo = name.chars().all(|c| c.is_ascii_uppercase() || c == '_');
            if !is_pseudo && !name.starts_with("refs/") {
                return None;
            }
            let of_worktree = self.own.join(&name);
            let text = text_of(&of_worktree, 4096).or_else(|_| text_of(&self.common.join(&name), 4096));
            match text {
                Ok(text) => match text.trim_end().strip_prefix("ref: ") {
                    Some(other) => name = other.to_owned(),
                    None => return parse_hex(text.split_whitespace().next()?),
                },
                Err(_) => return self.packed.iter().find(|(packed, _)| *packed == name).map(|(_, id)| *id),
            }
        }
        None
    }

    /// The stashes, which the log of their name lists.
    fn stashes(&self) -> Option<Vec<ObjectId>> {
        let log = self.common.join("logs/refs/stash");
        if log.symlink_metadata().is_err() {
            return Some(self.find("stash").into_iter().collect());
        }
        logged(&log)
    }

    /// The object that a name was about so many changes ago: `HEAD@{1}`, `stash@{0}`, `main@{2}`.
    fn earlier(&self, name: &str, changes: usize) -> Option<ObjectId> {
        let log = match name {
            "HEAD" => self.own.join("logs/HEAD"),
            "stash" => self.common.join("logs/refs/stash"),
            branch => self.common.join("logs/refs/heads").join(branch),
        };
        let all = logged(&log)?;
        // A tag may have the same name.
        all.last().filter(|last| Some(**last) == self.find(name))?;
        all.into_iter().rev().nth(changes)
    }

    /// The object of a name with a text in `@{}` behind it (gitrevisions(7)): an earlier state of the name, the branch that
    /// one follows, or one that was checked out before.
    fn described(&self, repository: &Repository, name: &str, text: &str) -> Option<ObjectId> {
        let branch = || match name {
            "" | "HEAD" => repository.current_branch(),
            name => Some(name.to_owned()),
        };
        if let Some(times) = text.strip_prefix('-') {
            let log = text_of(&self.own.join("logs/HEAD"), MAX_PACKED_REFS).ok().filter(|_| name.is_empty())?;
            let moves = log.lines().rev().filter_map(|line| line.split_once("\tcheckout: moving from "));
            let (_, moved) = moves.into_iter().nth(times.parse::<usize>().ok()?.checked_sub(1)?)?;
            let (from, _) = moved.split_once(" to ")?;
            return parse_hex(from).or_else(|| self.read(&format!("refs/heads/{from}")));
        }
        match text.to_ascii_lowercase().as_str() {
            "u" | "upstream" => self.read(&self.upstream(&branch()?)?),
            "push" => self.read(&self.pushed(&branch()?)?),
            changes => {
                let name =
                    if name.is_empty() { branch().unwrap_or_else(|| "HEAD".to_owned()) } else { name.to_owned() };
                self.earlier(&name, changes.parse().ok()?)
            }
        }
    }

    /// The settings of the repository, if they are in one file.
    fn settings(&self) -> Option<Vec<Setting>> {
        let settings = git_settings::all(&text_of(&self.common.join("config"), MAX_CONFIG).ok()?)?;
        let is_elsewhere = self.own.join("config.worktree").symlink_metadata().is_ok();
        let includes = settings.iter().any(|setting| setting.section.starts_with("include"));
        (!is_elsewhere && !includes).then_some(settings)
    }

    /// The branch to which another one is pushed, if that is the one which it follows whatever `push.default` says: there is only one
    /// remote, and the names are the same.
    fn pushed(&self, branch: &str) -> Option<String> {
        let settings = self.settings()?;
        let remotes = settings
            .iter()
            .filter(|setting| setting.section == "remote")
            .filter_map(|setting| setting.subsection.as_ref());
        let is_other = |setting: &Setting| {
            setting.section == "push" || setting.name.starts_with("push") && setting.section != "http"
        };
        let upstream = self.upstream(branch)?;
        let (_, name) = upstream.strip_prefix("refs/remotes/")?.split_once('/')?;
        let is_usual = remotes.collect::<HashSet<_>>().len() == 1 && !settings.iter().any(is_other) && name == branch;
        is_usual.then_some(upstream)
    }

    /// The branch that another one follows.
    fn upstream(&self, branch: &str) -> Option<String> {
        let settings = self.settings()?;
        let value = |section: &str, of: &str, name: &str| {
            let is_it = |setting: &&Setting| {
                setting.section == section && setting.name == name && setting.subsection.as_deref() == Some(of)
            };
            let mut found = settings.iter().filter(is_it);
            let first = found.next()?.value.clone();
            first.filter(|_| found.next().is_none())
        };
        let (remote, merge) = (value("branch", branch, "remote")?, value("branch", branch, "merge")?);
        let name = merge.strip_prefix("refs/heads/")?;
        if remote == "." {
            return Some(merge);
        }
        let is_usual = value("remote", &remote, "fetch")? == format!("+refs/heads/*:refs/remotes/{remote}/*");
        is_usual.then(|| format!("refs/remotes/{remote}/{name}"))
    }

    /// All of them, with the commit that is checked out; `None` if there are too many.
    fn all(&self) -> Option<Vec<ObjectId>> {
        let mut found: Vec<ObjectId> = self.packed.iter().map(|(_, id)| *id).chain(self.read("HEAD")).collect();
        let mut folders = vec![self.common.join("refs")];
        let mut steps = 0;
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
                steps += 1;
                if steps > MAX_STEPS {
                    return None;
                }
                match entry.file_type() {
                    Ok(kind) if kind.is_dir() => folders.push(entry.path()),
                    _ => found.extend(text_of(&entry.path(), 4096).ok().and_then(|text| parse_hex(text.trim_end()))),
                }
            }
        }
        found.sort_unstable();
        found.dedup();
        (found.len() <= MAX_REFS).then_some(found)
    }
}

/// The objects that a name was about one after the other, from its log.
fn logged(log: &Path) -> Option<Vec<ObjectId>> {
    text_of(log, MAX_PACKED_REFS).ok()?.lines().map(|line| parse_hex(line.split(' ').nth(1)?)).collect()
}

struct Commit {
    tree: ObjectId,
    parents: Vec<ObjectId>,
    /// When it was made, in seconds since 1970; 0 if that is not known.
    date: u64,
}

/// An entry of a tree.
struct CommittedEntry<'o> {
    name: &'o [u8],
    kind: CommittedKind,
    id: ObjectId,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum CommittedKind {
    File,
    Folder,
    Submodule,
}

impl CommittedEntry<'_> {
    /// The order in a tree: the names of folders count as if they ended in a slash.
    fn order(&self, other: &Self) -> Ordering {
        let behind = |entry: &Self| (entry.kind == CommittedKind::Folder).then_some(&b'/');
        self.name.iter().chain(behind(self)).cmp(other.name.iter().chain(behind(other)))
    }

    fn path(&self, above: &str) -> String {
        format!("{above}{}", String::from_utf8_lossy(self.name))
    }
}

struct History<'p> {
    repository: &'p Repository,
    store: ObjectStore,
    refs: Refs,
    chosen: &'p Pathspecs,
    found: BTreeSet<String>,
    /// Folders of which all names were found, with their paths.
    seen: HashSet<(ObjectId, String)>,
}

impl History<'_> {
    fn add(&mut self, shown: &ShownContents) -> Option<()> {
        match shown {
            ShownContents::Unnamed => None,
            ShownContents::Files(revisions) => {
                revisions.iter().try_for_each(|revision| match self.tree_of(revision)? {
                    Some(tree) => self.differences(None, Some(tree), ""),
                    None => Some(()),
                })
            }
            ShownContents::Changes(revisions) => {
                revisions.iter().try_for_each(|revision| match self.commit_named(revision)? {
                    Some(id) => self.changes_of(&id).map(drop),
                    None => Some(()),
                })
            }
            ShownContents::Between(before, after) => {
                let (before, after) = (self.tree_of(before)?, self.tree_of(after)?);
                self.differences(before, after, "")
            }
            ShownContents::Index(revision) => {
                let tree = self.tree_of(revision)?;
                self.differences_of_index(tree)
            }
            // Is found without reading objects.
            ShownContents::WorkingTree => Some(()),
            // Without a stash, nothing is shown.
            ShownContents::Stash(name) if name == "stash" && self.refs.find(name).is_none() => Some(()),
            ShownContents::Stash(revision) => match self.commit_named(revision)? {
                Some(id) => self.stash(&id),
                None => Some(()),
            },
            ShownContents::Stashes => self.refs.stashes()?.iter().try_for_each(|id| self.stash(id)),
            ShownContents::Walk(revisions, most) => {
                // The commits that only one of both leads to.
                if let [one] = revisions.as_slice()
                    && let Some((left, right)) = one.split_once("...")
                {
                    self.add(&ShownContents::Walk(vec![format!("{left}..{right}")], *most))?;
                    return self.add(&ShownContents::Walk(vec![format!("{right}..{left}")], *most));
                }
                let (mut from, mut not) = (Vec::new(), Vec::new());
                for revision in revisions {
                    for part in parts_of(revision) {
                        let (list, name) = match part.strip_prefix('^') {
                            Some(name) => (&mut not, name),
                            None => (&mut from, part.as_str()),
                        };
                        list.extend(self.commit_named(name)?);
                    }
                }
                self.walk(from, not, *most)
            }
            ShownContents::All => {
                let mut commits = Vec::new();
                for id in self.refs.all()? {
                    commits.extend(self.peeled(id, ObjectKind::Commit)?);
                }
                self.walk(commits, Vec::new(), None)
            }
        }
    }

    fn stash(&mut self, id: &ObjectId) -> Option<()> {
        let commit = self.commit(id)?;
        let before = self.commit(commit.parents.first()?)?.tree;
        self.differences(Some(before), Some(commit.tree), "")
    }

    /// The changes of all commits that some lead to, but not those that others do, the nearest first.
    fn walk(&mut self, from: Vec<ObjectId>, not: Vec<ObjectId>, most: Option<usize>) -> Option<()> {
        let mut done = self.excluded(&from, not)?;
        let mut waiting: VecDeque<ObjectId> = from.into();
        // Git shows the newest commits of all branches first. Each that is as many steps away may be among them.
        let mut left = most.unwrap_or(usize::MAX);
        while left > 0 && !waiting.is_empty() {
            left -= 1;
            for id in std::mem::take(&mut waiting) {
                if done.insert(id) {
                    waiting.extend(self.changes_of(&id)?);
                }
            }
        }
        Some(())
    }

    /// The commits that `not` lead to, as far as those that `from` lead to may be among them. The newest are looked at first, so
    /// that with wrong dates some may be missing.
    fn excluded(&mut self, from: &[ObjectId], not: Vec<ObjectId>) -> Option<HashSet<ObjectId>> {
        let mut excluded = HashSet::new();
        if not.is_empty() {
            return Some(excluded);
        }
        let (mut seen, mut waiting, mut wanted) = (HashSet::new(), BinaryHeap::new(), 0_usize);
        // Among commits of the same second, an excluded one may come after the last one that is wanted.
        let mut oldest = u64::MAX;
        let starts = not.into_iter().map(|id| (id, true)).chain(from.iter().map(|id| (*id, false)));
        let mut next: Vec<(ObjectId, bool)> = starts.collect();
        loop {
            for (id, is_excluded) in next {
                let is_new = if is_excluded { excluded.insert(id) } else { seen.insert(id) && !excluded.contains(&id) };
                if is_new {
                    waiting.push((self.commit(&id)?.date, id, is_excluded));
                    wanted += usize::from(!is_excluded);
                }
            }
            let may_matter = |(date, ..): &(u64, ObjectId, bool)| wanted > 0 || *date >= oldest;
            let Some((date, id, is_excluded)) = waiting.pop().filter(may_matter) else { return Some(excluded) };
            if !is_excluded {
                wanted -= 1;
                oldest = oldest.min(date);
            }
            let is_excluded = excluded.contains(&id);
            next = self.commit(&id)?.parents.into_iter().map(|parent| (parent, is_excluded)).collect();
        }
    }

    /// Adds the changes that a commit made against each of its parents, which are the result.
    fn changes_of(&mut self, id: &ObjectId) -> Option<Vec<ObjectId>> {
        let commit = self.commit(id)?;
        if commit.parents.is_empty() {
            self.differences(None, Some(commit.tree), "")?;
        }
        for parent in &commit.parents {
            let before = self.commit(parent)?.tree;
            self.differences(Some(before), Some(commit.tree), "")?;
        }
        Some(commit.parents)
    }

    /// Adds the names of the files in which two folders differ.
    fn differences(&mut self, before: Option<ObjectId>, after: Option<ObjectId>, path: &str) -> Option<()> {
        if before == after {
            return Some(());
        }
        if path.matches('/').count() > MAX_DEPTH {
            return None;
        }
        // A folder that is compared with nothing has been looked at as a whole before.
        if let (None, Some(only)) | (Some(only), None) = (before, after)
            && !self.seen.insert((only, path.to_owned()))
        {
            return Some(());
        }
        let (before, after) = (self.tree(before)?, self.tree(after)?);
        let (before, after) = (entries_in(&before.bytes)?, entries_in(&after.bytes)?);
        let (mut before, mut after) = (before.iter().peekable(), after.iter().peekable());
        loop {
            let order = match (before.peek(), after.peek()) {
                (Some(old), Some(new)) => old.order(new),
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (None, None) => return Some(()),
            };
            let old = before.next_if(|_| order.is_le());
            let new = after.next_if(|_| order.is_ge());
            let file = new.filter(|new| new.kind == CommittedKind::File);
            let Some(entry) = file.or(old).or(new).filter(|_| old.map(|old| old.id) != new.map(|new| new.id)) else {
                continue;
            };
            let whole = entry.path(path);
            match entry.kind {
                CommittedKind::File if self.chosen.may_choose(&whole) => _ = self.found.insert(whole),
                CommittedKind::Folder if self.chosen.may_choose_below(&whole) => {
                    self.differences(old.map(|old| old.id), new.map(|new| new.id), &format!("{whole}/"))?;
                }
                CommittedKind::File | CommittedKind::Folder | CommittedKind::Submodule => {}
            }
        }
    }

    /// Adds the names of the files in which a folder and the index differ.
    fn differences_of_index(&mut self, tree: Option<ObjectId>) -> Option<()> {
        let mut committed = HashMap::new();
        self.files_below(tree, "", &mut committed)?;
        let is_file = |entry: &&IndexEntry| entry.kind == IndexEntryKind::File;
        for entry in self.repository.all_entries()?.iter().filter(is_file) {
            let is_same = committed.remove(entry.text()) == Some(entry.object) && !entry.is_unmerged;
            if !is_same && self.chosen.may_choose(entry.text()) {
                self.found.insert(entry.text().to_owned());
            }
        }
        self.found.extend(committed.into_keys());
        Some(())
    }

    /// The files below a folder that paths choose, with their contents.
    fn files_below(&mut self, tree: Option<ObjectId>, path: &str, files: &mut HashMap<String, ObjectId>) -> Option<()> {
        if path.matches('/').count() > MAX_DEPTH {
            return None;
        }
        let tree = self.tree(tree)?;
        for entry in entries_in(&tree.bytes)? {
            let whole = entry.path(path);
            match entry.kind {
                CommittedKind::File if self.chosen.may_choose(&whole) => _ = files.insert(whole, entry.id),
                CommittedKind::Folder if self.chosen.may_choose_below(&whole) => {
                    self.files_below(Some(entry.id), &format!("{whole}/"), files)?;
                }
                CommittedKind::File | CommittedKind::Folder | CommittedKind::Submodule => {}
            }
        }
        Some(())
    }

    fn commit(&mut self, id: &ObjectId) -> Option<Commit> {
        let mut commit = commit_in(&*self.store.read(id).ok()?)?;
        if self.refs.shallow.contains(id) {
            commit.parents.clear();
        }
        Some(commit)
    }

    /// A folder, which is empty without a name.
    fn tree(&mut self, id: Option<ObjectId>) -> Option<Rc<Object>> {
        let Some(id) = id else { return Some(Rc::new(Object { kind: ObjectKind::Tree, bytes: Vec::new() })) };
        self.store.read(&id).ok().filter(|object| object.kind == ObjectKind::Tree)
    }

    /// The tree of a commit; `None` for that of a folder, whose files have other paths. The inner `None`: there is no such object,
    /// so that Git fails, or it is empty.
    fn tree_of(&mut self, revision: &str) -> Option<Option<ObjectId>> {
        if revision == EMPTY_TREE {
            return Some(None);
        }
        let Some(id) = self.named(revision)? else { return Some(None) };
        match self.peeled(id, ObjectKind::Commit)? {
            Some(id) => self.commit(&id).map(|commit| Some(commit.tree)),
            None => None,
        }
    }

    fn commit_named(&mut self, revision: &str) -> Option<Option<ObjectId>> {
        match self.named(revision)? {
            // The name of a file's content is that of any file.
            Some(id) => self.peeled(id, ObjectKind::Commit)?.map(Some),
            None => Some(None),
        }
    }

    /// The object behind annotated tags, if it is of the kind.
    fn peeled(&mut self, mut id: ObjectId, kind: ObjectKind) -> Option<Option<ObjectId>> {
        for _ in 0..5 {
            let object = self.store.read(&id).ok()?;
            if object.kind == kind {
                return Some(Some(id));
            }
            if object.kind != ObjectKind::Tag {
                return Some(None);
            }
            id = parse_hex(header(&object, "object").next()?)?;
        }
        None
    }

    /// The newest of the commits that these lead to whose message has a text, as `:/text` and `HEAD^{/text}` name it. `None` if the
    /// text may be a pattern.
    fn with_message(&mut self, from: Vec<ObjectId>, text: &str) -> Option<Option<ObjectId>> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || " _-,:/#'\"".contains(c);
        if text.is_empty() || !text.chars().all(is_plain) {
            return None;
        }
        let mut waiting = BinaryHeap::new();
        let mut seen = HashSet::new();
        for id in from {
            if seen.insert(id) {
                waiting.push((self.commit(&id)?.date, id));
            }
        }
        let mut found: Option<(u64, ObjectId)> = None;
        while let Some((date, id)) = waiting.pop() {
            if found.is_some_and(|(of, _)| date < of) {
                break;
            }
            let object = self.store.read(&id).ok()?;
            let start = memchr::memmem::find(&object.bytes, b"\n\n").unwrap_or(object.bytes.len());
            // It is not known here which one of several commits of the same second Git takes.
            if memchr::memmem::find(object.bytes.get(start..)?, text.as_bytes()).is_some()
                && found.replace((date, id)).is_some()
            {
                return None;
            }
            for parent in self.commit(&id)?.parents {
                if seen.insert(parent) {
                    waiting.push((self.commit(&parent)?.date, parent));
                }
            }
        }
        Some(found.map(|(_, id)| id))
    }

    /// The object of a revision: a name, with steps to its parents behind it (gitrevisions(7)).
    fn named(&mut self, revision: &str) -> Option<Option<ObjectId>> {
        if let Some(text) = revision.strip_prefix(":/") {
            let mut from = Vec::new();
            for id in self.refs.all()? {
                from.extend(self.peeled(id, ObjectKind::Commit)?);
            }
            // Otherwise it is a path.
            return self.with_message(from, text)?.map(Some);
        }
        let end = revision.find(['~', '^']).unwrap_or(revision.len());
        let (name, mut steps) = revision.split_at_checked(end)?;
        let name = match name {
            "" if steps.is_empty() => return Some(None),
            "@" => "HEAD",
            name => name,
        };
        let described = name.strip_suffix('}').and_then(|name| name.split_once("@{"));
        let name = described.map_or(name, |(name, _)| name);
        if name.contains(['@', ':', '{', ' ', '*', '?', '[']) || name.starts_with('-') {
            return None;
        }
        let found = match described {
            Some((name, text)) => Some(self.refs.described(self.repository, name, text)?),
            None => self.refs.find(name),
        };
        let mut id = match (parse_hex(&name.to_ascii_lowercase()), found) {
            (_, Some(id)) if described.is_some() => id,
            (Some(id), _) | (None, Some(id)) => id,
            (None, None) if is_object_name(name) => match self.store.find(name) {
                Ok(id) => id,
                Err(ObjectError::Missing) => return Some(None),
                Err(ObjectError::Unknown) => return None,
            },
            // A repository without a commit.
            (None, None) if name == "HEAD" => return Some(None),
            (None, None) => return None,
        };
        while let Some(behind) = steps.strip_prefix(['~', '^']) {
            let is_first = steps.starts_with('~');
            if let Some(rest) = behind.strip_prefix("{commit}").or_else(|| behind.strip_prefix("{}")) {
                (id, steps) = (self.peeled(id, ObjectKind::Commit)??, rest);
                continue;
            }
            if let Some((text, rest)) = behind.strip_prefix("{/").and_then(|behind| behind.split_once('}')) {
                id = self.peeled(id, ObjectKind::Commit)??;
                match self.with_message(vec![id], text)? {
                    Some(found) => (id, steps) = (found, rest),
                    None => return Some(None),
                }
                continue;
            }
            let digits = behind.find(|c: char| !c.is_ascii_digit()).unwrap_or(behind.len());
            let (number, rest) = behind.split_at_checked(digits)?;
            steps = rest;
            let number: usize = if number.is_empty() { 1 } else { number.parse().ok()? };
            id = self.peeled(id, ObjectKind::Commit)??;
            let (times, which) = if is_first { (number, 0) } else { (number.min(1), number.saturating_sub(1)) };
            for _ in 0..times {
                match self.commit(&id)?.parents.get(which) {
                    Some(parent) => id = *parent,
                    None => return Some(None),
                }
            }
        }
        steps.is_empty().then_some(Some(id))
    }
}

/// `B` and `^A` of `A..B`; of `A...B` both.
fn parts_of(revision: &str) -> Vec<String> {
    let or_head = |name: &str| if name.is_empty() { "HEAD" } else { name }.to_owned();
    if let Some((one, other)) = revision.split_once("...") {
        return vec![or_head(one), or_head(other)];
    }
    match revision.split_once("..") {
        Some((one, other)) => vec![format!("^{}", or_head(one)), or_head(other)],
        None => vec![revision.to_owned()],
    }
}

/// The values of a header of a commit or a tag. Other headers may have letters of any encoding.
fn header<'o>(object: &'o Object, name: &'static str) -> impl Iterator<Item = &'o str> {
    let lines = object.bytes.split(|byte| *byte == b'\n').take_while(|line| !line.is_empty());
    lines.filter_map(move |line| std::str::from_utf8(line.strip_prefix(name.as_bytes())?.strip_prefix(b" ")?).ok())
}

fn commit_in(object: &Object) -> Option<Commit> {
    if object.kind != ObjectKind::Commit {
        return None;
    }
    let tree = parse_hex(header(object, "tree").next()?)?;
    let parents = header(object, "parent").map(parse_hex).collect::<Option<_>>()?;
    // `Name <address> SECONDS ZONE`, where the name may have letters of any encoding.
    let committer = object.bytes.split(|byte| *byte == b'\n').find_map(|line| line.strip_prefix(b"committer "));
    let seconds = committer.and_then(|line| line.rsplit(|byte| *byte == b' ').nth(1));
    let date = seconds.and_then(|seconds| std::str::from_utf8(seconds).ok()?.parse().ok()).unwrap_or_default();
    Some(Commit { tree, parents, date })
}

/// In the order of the tree.
fn entries_in(mut bytes: &[u8]) -> Option<Vec<CommittedEntry<'_>>> {
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let blank = memchr::memchr(b' ', bytes)?;
        let end = blank + memchr::memchr(0, bytes.get(blank..)?)?;
        // Git reads them as octal numbers.
        let zeros = bytes.iter().take_while(|byte| **byte == b'0').count();
        let kind = match bytes.get(zeros..blank)? {
            b"40000" => CommittedKind::Folder,
            b"160000" => CommittedKind::Submodule,
            _ => CommittedKind::File,
        };
        let id = *bytes.get(end + 1..)?.first_chunk()?;
        found.push(CommittedEntry { name: bytes.get(blank + 1..end)?, kind, id });
        bytes = bytes.get(end + 21..)?;
    }
    Some(found)
}
