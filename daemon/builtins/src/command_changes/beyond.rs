//! Changes of a command beside the files of its session's folders: branches and indexes of Git, and files elsewhere that it
//! says it writes. Neither is recorded, so that whoever undoes the command has to know of it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use toold_engine::need::Need;
use toold_engine::session::Session;
use toold_host::file_systems::answering;
use toold_host::git_state::{self, GitState};
use toold_proto::tool::Category;

use crate::journal::{RawPath, UnrecordedChanges};

/// Further files, and repositories of a folder, are not looked at.
const MAX_TARGETS: usize = 64;
pub(super) const MAX_REPOSITORIES: usize = 32;

/// Number of the file, size, and the times of its last changes; `None` if there is nothing.
type TargetStamp = Option<(u64, u64, i64, i64, i64, i64)>;

/// Changes beside the session's folders that the words of a command tell.
#[derive(Clone, Default)]
pub(crate) struct DeclaredChanges {
    /// Files and folders that it names to write.
    targets: Vec<PathBuf>,
    /// Folders in which it runs Git for more than to read.
    git_in: Vec<PathBuf>,
}

impl DeclaredChanges {
    /// `cwd` is the folder in which the command runs.
    pub(crate) fn of(needs: &[Need], session: &Session, cwd: &Path) -> Self {
        let places = session.places();
        let is_outside = |path: &Path| {
            // Devices keep nothing.
            path.is_absolute() && !path.starts_with("/dev") && !places.iter().any(|place| path.starts_with(place))
        };
        let written = needs.iter().filter(|need| need.category() == Category::FileWrite);
        let named = written.flat_map(|need| std::iter::once(&need.target).chain(need.covers())).map(PathBuf::from);
        let mut targets: Vec<PathBuf> = named.filter(|path| is_outside(path)).collect();
        targets.sort();
        targets.dedup();
        targets.truncate(MAX_TARGETS);
        let commands = needs.iter().filter(|need| !need.reads_only()).filter_map(Need::command);
        let runs_git = commands.filter(|command| command.effects.name.first().is_some_and(|name| name == "git"));
        let git_in = runs_git.map(|command| command.folder.clone().unwrap_or_else(|| cwd.to_owned()));
        Self { targets, git_in: git_in.collect() }
    }
}

/// The states before a command.
#[derive(Default)]
pub(super) struct StatesBefore {
    targets: Vec<(PathBuf, TargetStamp)>,
    /// By the `.git` of each repository.
    repositories: BTreeMap<PathBuf, GitState>,
    /// The `.git` of repositories that the command says it may change, whether or not that can be seen.
    named: Vec<PathBuf>,
}

impl StatesBefore {
    /// Blocks for a moment.
    pub(super) fn of(declared: &DeclaredChanges) -> Self {
        let targets = declared.targets.iter().map(|path| (path.clone(), stamp(path))).collect();
        let named = declared.git_in.iter().filter_map(|folder| git_state::around(folder)).collect();
        Self { targets, repositories: BTreeMap::new(), named }
    }

    /// Adds the repositories of a folder.
    pub(super) fn add(&mut self, repositories: BTreeMap<PathBuf, GitState>) {
        self.repositories.extend(repositories);
    }

    /// The changes since then, where the repositories are `now`; with those that the command names, if anything `is_recorded`.
    /// Blocks for a moment.
    pub(super) fn changes(&self, now: &BTreeMap<PathBuf, GitState>, is_recorded: bool) -> UnrecordedChanges {
        let written = self.targets.iter().filter(|(path, before)| stamp(path) != *before);
        let outside: Vec<RawPath> = written.map(|(path, _)| RawPath(path.clone())).collect();
        let is_changed = |(git, state): &(&PathBuf, &GitState)| {
            self.repositories.get(*git).is_none_or(|before| state.is_changed(before))
        };
        let mut repositories: BTreeSet<&PathBuf> = now.iter().filter(is_changed).map(|(git, _)| git).collect();
        if is_recorded || !repositories.is_empty() || !outside.is_empty() {
            repositories.extend(&self.named);
        }
        let repositories = repositories.into_iter().cloned().map(RawPath).collect();
        UnrecordedChanges { repositories, outside, ..UnrecordedChanges::default() }
    }

    /// The states from now on, where the repositories are these.
    pub(super) fn at(self, repositories: BTreeMap<PathBuf, GitState>) -> Self {
        let targets = self.targets.into_iter().map(|(path, _)| (path.clone(), stamp(&path))).collect();
        Self { targets, repositories, ..self }
    }
}

fn stamp(path: &Path) -> TargetStamp {
    answering::ask(path).ok()?;
    let of = |facts: Metadata| {
        (facts.ino(), facts.size(), facts.mtime(), facts.mtime_nsec(), facts.ctime(), facts.ctime_nsec())
    };
    path.symlink_metadata().ok().map(of)
}
