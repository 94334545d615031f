//! The names of the files that commits have or change, for commands that show them although the index has none of that name.

use std::collections::{BTreeMap, BTreeSet, HashSet, VecDeque};
use std::path::{Path, PathBuf};

use super::contents::{Object, ObjectError, ObjectKind, ObjectStore};
use super::objects::{ObjectId, is_object_name, parse_hex};
use super::{Repository, common_of, text_of};
use crate::shell_grammar::programs::pathspec::Pathspecs;

/// So many objects are read for one command, deltas included: a fifth of a second at most.
const MAX_OBJECTS: usize = 6000;
/// A repository with more branches and tags is not read as a whole.
const MAX_REFS: usize = 500;
const MAX_PACKED_REFS: u64 = 4 * 1024 * 1024;
/// Commits that a range leaves out.
const MAX_EXCLUDED: usize = 500;
/// Folders within one another.
const MAX_DEPTH: usize = 64;
const MAX_STEPS: usize = 10_000;

/// Which commits a command shows, by the revisions in its words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::shell_grammar::programs) enum ShownCommits {
    /// All files that these have.
    Files(Vec<String>),
    /// The changes that each of these made.
    Changes(Vec<String>),
    /// The differences between the first and the second.
    Between(String, String),
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
    /// The names of the files that commits show, as far as paths choose them; `None` if they are not known.
    pub(in crate::shell_grammar::programs) fn names_shown(
        &self,
        shown: &ShownCommits,
        chosen: &Pathspecs,
    ) -> Option<Vec<String>> {
        let common = common_of(&self.own);
        let store = ObjectStore::open(&common.join("objects"), MAX_OBJECTS)?;
        let refs = Refs::of(&self.own, &common)?;
        let mut history = History { store, refs, chosen, found: BTreeSet::new(), seen: HashSet::new() };
        history.add(shown)?;
        Some(history.found.into_iter().collect())
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
        let text = text_of(&log, MAX_PACKED_REFS).ok()?;
        text.lines().map(|line| parse_hex(line.split(' ').nth(1)?)).collect()
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

struct Commit {
    tree: ObjectId,
    parents: Vec<ObjectId>,
}

/// The entries of a tree by their names.
type CommittedFolder = BTreeMap<String, CommittedEntry>;

#[derive(Clone, Copy, PartialEq, Eq)]
struct CommittedEntry {
    kind: CommittedKind,
    id: ObjectId,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum CommittedKind {
    File,
    Folder,
    Submodule,
}

struct History<'p> {
    store: ObjectStore,
    refs: Refs,
    chosen: &'p Pathspecs,
    found: BTreeSet<String>,
    /// Folders of which all names were found, with their paths.
    seen: HashSet<(ObjectId, String)>,
}

impl History<'_> {
    fn add(&mut self, shown: &ShownCommits) -> Option<()> {
        match shown {
            ShownCommits::Unnamed => None,
            ShownCommits::Files(revisions) => {
                revisions.iter().try_for_each(|revision| match self.tree_of(revision)? {
                    Some(tree) => self.differences(None, Some(tree), ""),
                    None => Some(()),
                })
            }
            ShownCommits::Changes(revisions) => {
                revisions.iter().try_for_each(|revision| match self.commit_named(revision)? {
                    Some(id) => self.changes_of(&id).map(drop),
                    None => Some(()),
                })
            }
            ShownCommits::Between(before, after) => {
                let (before, after) = (self.tree_of(before)?, self.tree_of(after)?);
                self.differences(before, after, "")
            }
            // Without a stash, nothing is shown.
            ShownCommits::Stash(name) if name == "stash" && self.refs.find(name).is_none() => Some(()),
            ShownCommits::Stash(revision) => match self.commit_named(revision)? {
                Some(id) => self.stash(&id),
                None => Some(()),
            },
            ShownCommits::Stashes => self.refs.stashes()?.iter().try_for_each(|id| self.stash(id)),
            ShownCommits::Walk(revisions, most) => {
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
            ShownCommits::All => {
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
        let mut done: HashSet<ObjectId> = HashSet::new();
        let mut excluded: VecDeque<ObjectId> = not.into();
        // Some commits that are further away may be counted although they are left out.
        while let Some(id) = excluded.pop_front().filter(|_| done.len() < MAX_EXCLUDED) {
            if done.insert(id) {
                excluded.extend(self.commit(&id)?.parents);
            }
        }
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
        let before = before.map_or(Some(CommittedFolder::new()), |id| self.tree(&id))?;
        let after = after.map_or(Some(CommittedFolder::new()), |id| self.tree(&id))?;
        let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
        for name in names {
            let (old, new) = (before.get(name), after.get(name));
            if old == new {
                continue;
            }
            let entries = || [old, new].into_iter().flatten();
            let whole = format!("{path}{name}");
            if entries().any(|entry| entry.kind == CommittedKind::File) && self.chosen.may_choose(&whole) {
                self.found.insert(whole.clone());
            }
            let folder = |entry: Option<&CommittedEntry>| {
                entry.filter(|entry| entry.kind == CommittedKind::Folder).map(|entry| entry.id)
            };
            if folder(old).or(folder(new)).is_some() && self.chosen.may_choose_below(&whole) {
                self.differences(folder(old), folder(new), &format!("{whole}/"))?;
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

    fn tree(&mut self, id: &ObjectId) -> Option<CommittedFolder> {
        let object = self.store.read(id).ok()?;
        (object.kind == ObjectKind::Tree).then(|| entries_in(&object.bytes)).flatten()
    }

    /// The tree of a commit, or a tree. The inner `None`: there is no such object, so that Git fails.
    fn tree_of(&mut self, revision: &str) -> Option<Option<ObjectId>> {
        let Some(id) = self.named(revision)? else { return Some(None) };
        if let Ok(object) = self.store.read(&id)
            && object.kind == ObjectKind::Tree
        {
            return Some(Some(id));
        }
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

    /// The object of a revision: a name, with steps to its parents behind it (gitrevisions(7)).
    fn named(&mut self, revision: &str) -> Option<Option<ObjectId>> {
        let end = revision.find(['~', '^']).unwrap_or(revision.len());
        let (name, mut steps) = revision.split_at_checked(end)?;
        let name = match name {
            "" if steps.is_empty() => return Some(None),
            "@" => "HEAD",
            "stash@{0}" => "stash",
            name => name,
        };
        if name.contains(['@', ':', '{', ' ', '*', '?', '[']) || name.starts_with('-') {
            return None;
        }
        let mut id = match (parse_hex(&name.to_ascii_lowercase()), self.refs.find(name)) {
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
    Some(Commit { tree, parents })
}

fn entries_in(mut bytes: &[u8]) -> Option<CommittedFolder> {
    let mut found = CommittedFolder::new();
    while !bytes.is_empty() {
        let blank = bytes.iter().position(|byte| *byte == b' ')?;
        let end = bytes.iter().position(|byte| *byte == 0)?;
        let kind = match bytes.get(..blank)? {
            b"40000" => CommittedKind::Folder,
            b"160000" => CommittedKind::Submodule,
            _ => CommittedKind::File,
        };
        let name = String::from_utf8_lossy(bytes.get(blank + 1..end)?).into_owned();
        let id = bytes.get(end + 1..end + 21)?.try_into().ok()?;
        found.insert(name, CommittedEntry { kind, id });
        bytes = bytes.get(end + 21..)?;
    }
    Some(found)
}
