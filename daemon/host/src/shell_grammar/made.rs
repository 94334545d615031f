//! Names that a command of a line makes: links above all. The line is judged before it runs, so what the disk has there
//! says nothing about what a later command finds, nor about what one copies.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use toold_engine::need::CommandForm;
use toold_proto::effect::Effect;

use super::clock::JudgingClock;
use super::files::NamedFile;
use super::programs::{FileAccess, ProgramTable};
use super::state::logical;
use super::{LineItem, SimpleCommand, names};
use crate::files::resolve_for;

/// Commands that put whatever they have been given into a folder: a commit, a patch, an archive, another machine.
/// The first words of their names in the tables.
const FILL_FOLDERS: &[&str] = &[
    "git checkout",
    "git switch",
    "git restore",
    "git reset",
    "git merge",
    "git pull",
    "git rebase",
    "git cherry-pick",
    "git revert",
    "git apply",
    "git am",
    "git stash",
    "git bisect",
    "git submodule update",
    "git submodule add",
    "git sparse-checkout",
    "git read-tree",
    "git checkout-index",
    "git worktree add",
    "tar",
    "gtar",
    "unzip",
    "7z",
    "7za",
    "7zr",
    "unrar",
    "rar",
    "cpio",
    "pax",
    "patch",
    "gh pr checkout",
    "gh pr co",
    "gh run download",
    "gh release download",
    "gh repo clone",
    "gh repo sync",
    "gh gist clone",
    "glab mr checkout",
    "glab repo clone",
    "sftp",
];

/// Commands of these that change no file, or only remove some.
const FILL_NOTHING: &[&str] = &[
    "git stash list",
    "git stash show",
    "git stash drop",
    "git stash clear",
    "git stash create",
    "git bisect log",
    "git bisect terms",
];

/// Commands that put nothing into a repository that the line did not make itself: no commit, file or link from elsewhere.
const BRING_NOTHING: &[&str] = &[
    "git init",
    "git add",
    "git commit",
    "git checkout",
    "git switch",
    "git branch",
    "git merge",
    "git rebase",
    "git cherry-pick",
    "git revert",
    "git reset",
    "git restore",
    "git stash",
    "git tag",
    "mkdir",
    "touch",
    "rm",
    "tee",
];

/// Copies of a folder have the links in it, which may lead elsewhere from their new place.
const COPY_LINKS: &[&str] = &[
    "-a",
    "-R",
    "-r",
    "-d",
    "-P",
    "-l",
    "-s",
    "--recursive",
    "--archive",
    "--links",
    "--no-dereference",
    "--symbolic-link",
];

/// Git reaches no file behind a link by a path of the repository.
const OF_REPOSITORY: &[&str] = &[
    "git add",
    "git stage",
    "git rm",
    "git mv",
    "git checkout",
    "git restore",
    "git reset",
    "git log",
    "git show",
    "git blame",
    "git status",
    "git grep",
    "git ls-files",
    "git stash push",
];

/// The names that a command makes.
#[derive(Clone, Debug, Default)]
pub(super) struct MadeNames {
    /// These, and everything below them.
    names: Vec<PathBuf>,
    /// Anything below these folders.
    folders: Vec<PathBuf>,
    /// Anything anywhere.
    anything: bool,
    /// They come from a repository that is not there yet.
    of_new_repository: bool,
    /// They are a repository's own files, none of them a link: from what is written there, Git takes settings.
    only_written: bool,
}

impl MadeNames {
    /// The names that a command makes, if they may be links or lead to some. `files` are those that it names; `folders`
    /// are those in which it may run.
    pub(super) fn of(
        known: Option<&ProgramTable>,
        form: Option<&CommandForm>,
        files: &[NamedFile],
        folders: Option<&[PathBuf]>,
    ) -> Self {
        let Some(known) = known else { return Self::default() };
        let has = |options: &[&str]| {
            form.is_none_or(|form| {
                form.options.iter().any(|option| option.names.iter().any(|name| options.contains(&name.as_str())))
            })
        };
        let plain = |at: usize| form.and_then(|form| form.plain.get(at)).map(|word| word.text.as_str());
        let name = known.name.as_str();
        match name {
            "ln" | "link" => Self::put(files),
            "cp" if has(&["-s", "--symbolic-link"]) || has(COPY_LINKS) && copies_links(files) => Self::put(files),
            "mv" | "git mv" if copies_links(files) => Self::put(files),
            "rsync" if has(COPY_LINKS) && (copies_links(files) || files.iter().any(NamedFile::is_elsewhere)) => {
                Self::put(files)
            }
            "docker cp" | "podman cp" | "nerdctl cp" | "kubectl cp" | "oc cp" => Self::put(files),
            // A new branch at this commit.
            "git checkout" if form.is_some() && has(&["-b", "-B"]) && plain(1).is_none() => Self::default(),
            "git switch" if form.is_some() && has(&["-c", "--create"]) && plain(1).is_none() => Self::default(),
            "git restore" if form.is_some() && has(&["-S", "--staged"]) && !has(&["-W", "--worktree"]) => {
                Self::default()
            }
            "git reset" if form.is_some() && !has(&["--hard", "--merge", "--keep"]) => Self::default(),
            "git apply" if form.is_some() && has(&["--check", "--stat", "--numstat", "--summary"]) => Self::default(),
            "tar" | "gtar" if form.is_some() && !has(&["-x", "--extract", "--get"]) => Self::default(),
            "unzip" if form.is_some() && has(&["-l", "-t", "-v", "-Z", "-z", "-p"]) => Self::default(),
            "patch" if form.is_some() && has(&["--dry-run"]) => Self::default(),
            "git init" if has(&["--bare", "--separate-git-dir"]) => match (has(&["--separate-git-dir"]), folders) {
                (false, Some(folders)) => Self { only_written: true, ..Self::below(folders, plain(1).unwrap_or(".")) },
                (true, _) | (_, None) => Self { only_written: true, anything: true, ..Self::default() },
            },
            "git clone" => match (plain(1), plain(2), folders) {
                (_, Some(target), Some(folders)) => Self::below(folders, target),
                (Some(address), None, Some(folders)) => {
                    let last = address.trim_end_matches('/').rsplit(['/', ':']).next().unwrap_or_default();
                    Self::below(folders, last.strip_suffix(".git").unwrap_or(last))
                }
                _ => Self { anything: true, ..Self::default() },
            },
            _ if known.reads_only || FILL_NOTHING.contains(&name) => Self::default(),
            _ if is_in(FILL_FOLDERS, name) => {
                let names_folder = ["-C", "--directory", "-d", "-o", "-D", "--git-dir", "--work-tree", "--dir"];
                match folders {
                    Some(folders) if !has(&names_folder) && name != "git worktree add" => {
                        let of_git = name.starts_with("git ");
                        let of_new_repository = of_git && folders.iter().all(|folder| repository_of(folder).is_none());
                        let folders = match of_git || name.contains(" pr ") || name.contains(" mr ") {
                            true => folders
                                .iter()
                                .map(|folder| repository_of(folder).unwrap_or(folder).to_owned())
                                .collect(),
                            false => folders.to_vec(),
                        };
                        Self { folders, of_new_repository, ..Self::default() }
                    }
                    _ => Self { anything: true, ..Self::default() },
                }
            }
            _ => Self::default(),
        }
    }

    /// The names that files get at the place where the command puts them.
    fn put(files: &[NamedFile]) -> Self {
        let names: Vec<PathBuf> = files.iter().flat_map(NamedFile::put_at).collect();
        Self { anything: names.is_empty(), names, ..Self::default() }
    }

    fn below(folders: &[PathBuf], name: &str) -> Self {
        Self { names: folders.iter().map(|folder| folder.join(name)).collect(), ..Self::default() }
    }

    fn is_empty(&self) -> bool {
        self.names.is_empty() && self.folders.is_empty() && !self.anything
    }

    pub(super) fn join(&mut self, other: Self) {
        self.names.extend(other.names);
        self.folders.extend(other.folders);
        self.anything |= other.anything;
    }

    /// Whether a path may lead elsewhere once the command has run; `None` if not, else whether that is likely: the
    /// command makes this name, or nothing has it yet.
    fn changes(&self, path: &Path, how: FileAccess, places: &mut PlaceFinder) -> Option<bool> {
        let forms = places.forms(path);
        let mut relation = |other: &PathBuf| {
            let others = places.forms(other);
            let is_below = others.iter().any(|other| forms.iter().any(|path| path.starts_with(other)));
            let is_around =
                how == FileAccess::Tree && others.iter().any(|other| forms.iter().any(|path| other.starts_with(path)));
            let is_same = others.iter().any(|other| forms.contains(other));
            (is_below, is_around, is_same)
        };
        if self.names.iter().map(&mut relation).any(|(is_below, is_around, _)| is_below || is_around) {
            return Some(true);
        }
        let is_filled = self
            .folders
            .iter()
            .map(&mut relation)
            .any(|(is_below, is_around, is_same)| is_below && (how == FileAccess::Tree || !is_same) || is_around);
        // Names of folders show little, and the command that fills a folder has not made it.
        if how == FileAccess::List || !(is_filled || self.anything) {
            return None;
        }
        Some(!forms.iter().any(|path| path.symlink_metadata().is_ok_and(|metadata| !metadata.is_symlink())))
    }
}

fn is_in(list: &[&str], name: &str) -> bool {
    list.iter().any(|known| name.strip_prefix(known).is_some_and(|rest| rest.is_empty() || rest.starts_with(' ')))
}

/// Whether a link is among the files that are put somewhere.
fn copies_links(files: &[NamedFile]) -> bool {
    let has_links = |path: &Path| {
        path.is_symlink()
            || path.is_dir()
                && names::tree(path, |_| true, |_| true).is_none_or(|all| all.iter().any(|file| file.is_symlink()))
    };
    files.iter().filter(|file| !file.is_target()).any(|file| has_links(file.path()))
}

/// The folder of the repository that holds a folder.
fn repository_of(folder: &Path) -> Option<&Path> {
    folder.ancestors().find(|above| above.join(".git").symlink_metadata().is_ok())
}

/// Whether a new repository holds nothing but what these commands write, so that no link in it comes from elsewhere.
fn is_own_work(found: &[LineItem]) -> bool {
    found.iter().all(|item| match item {
        LineItem::Command(command) => brings_nothing(command),
        LineItem::File(file) => file.paths().all(|path| !is_of_git(path)),
        LineItem::Redirect(redirected) => redirected.paths().iter().all(|path| !is_of_git(path)),
    })
}

fn brings_nothing(command: &SimpleCommand) -> bool {
    let (Some(known), Some(form)) = (command.known, &command.form) else { return false };
    let is_of_elsewhere = |name: &String| name == "--template" || name == "--separate-git-dir";
    // Options before the subcommand are settings and other folders.
    let subcommand = form.plain.first().map(|word| word.text.as_str());
    let has_settings = known.name.starts_with("git ") && command.raw.get(1).map(String::as_str) != subcommand;
    let is_plain = !has_settings && !form.options.iter().any(|option| option.names.iter().any(is_of_elsewhere));
    // Of `git add` and `git checkout -b`, the inner commands are only their other names.
    let runs_nothing = || command.elsewhere.is_empty() || matches!(known.name.as_str(), "git add" | "git checkout");
    let is_known = match known.name.as_str() {
        "git config" => form.plain.get(1).is_some_and(|name| name.text.starts_with("user.")),
        name => known.reads_only || is_in(BRING_NOTHING, name),
    };
    is_known && is_plain && runs_nothing()
}

fn is_of_git(path: &Path) -> bool {
    path.components().any(|part| part.as_os_str() == ".git")
}

/// Finds where paths lead, each folder once.
struct PlaceFinder<'a> {
    may_read: &'a mut dyn FnMut(&Path) -> bool,
    folders: HashMap<PathBuf, Option<PathBuf>>,
}

impl PlaceFinder<'_> {
    /// A path as it is written without `.` and `..`, and with the links to its folder followed.
    fn forms(&mut self, path: &Path) -> Vec<PathBuf> {
        let written = logical(path);
        let folder = path.parent().unwrap_or(Path::new("/"));
        if !self.folders.contains_key(folder) {
            let found = resolve_for(folder, Path::new("/"), self.may_read).ok().map(|found| found.path);
            self.folders.insert(folder.to_owned(), found);
        }
        let followed = self.folders.get(folder).cloned().flatten();
        let followed = followed.zip(path.file_name()).map(|(folder, name)| folder.join(name));
        std::iter::once(written).chain(followed).collect()
    }
}

/// Doubts each command that reaches a file through a name that another command of the line makes before it.
///
/// `unordered` are the ranges of `found` in which a command may also run before one that stands in front of it: loops,
/// and whatever runs beside the rest of the line.
pub(super) fn doubt_made_names(
    found: &mut [LineItem],
    unordered: &[Range<usize>],
    may_read: &mut dyn FnMut(&Path) -> bool,
    clock: JudgingClock,
) {
    let is_own_work = is_own_work(found);
    let made: Vec<(usize, String, MadeNames)> = found
        .iter()
        .enumerate()
        .filter_map(|(at, item)| match item {
            LineItem::Command(command) if !command.makes.is_empty() => {
                let name = command.known.map_or_else(|| command.target.clone(), |known| known.name.clone());
                Some((at, name, command.makes.clone()))
            }
            LineItem::Command(_) | LineItem::File(_) | LineItem::Redirect(_) => None,
        })
        .filter(|(.., makes)| !(makes.of_new_repository && is_own_work))
        .collect();
    if made.is_empty() {
        return;
    }
    let mut places = PlaceFinder { may_read, folders: HashMap::new() };
    for at in 0..found.len() {
        let comes_after =
            |maker: usize| maker < at || unordered.iter().any(|range| range.contains(&maker) && range.contains(&at));
        let uses: Vec<(PathBuf, FileAccess)> = match &found[at] {
            LineItem::Command(_) => continue,
            LineItem::File(file) => file.paths().map(|path| (path.to_owned(), file.how())).collect(),
            LineItem::Redirect(redirected) => {
                let how = if redirected.is_written() { FileAccess::Write } else { FileAccess::Read };
                redirected.paths().into_iter().map(|path| (path, how)).collect()
            }
        };
        let by = match &found[at] {
            LineItem::File(file) if !file.command.is_empty() => {
                let is_its = |item: &LineItem| matches!(item, LineItem::Command(by) if by.target == file.command);
                found.iter().take(at).rposition(is_its)
            }
            LineItem::File(_) | LineItem::Command(_) | LineItem::Redirect(_) => None,
        };
        let known = by.and_then(|by| match &found[by] {
            LineItem::Command(command) => command.known.map(|known| known.name.as_str()),
            LineItem::File(_) | LineItem::Redirect(_) => None,
        });
        let is_of_git = known.is_some_and(|known| is_in(OF_REPOSITORY, known));
        let removes = known.is_some_and(|known| matches!(known, "rm" | "unlink" | "ln" | "mkdir" | "rmdir"));
        let mut doubt: Option<(String, bool)> = None;
        for (_, name, names) in made.iter().filter(|(maker, ..)| Some(*maker) != by && comes_after(*maker)) {
            for (path, how) in &uses {
                // The caller does not judge a line that takes too long.
                if clock.is_over() {
                    return;
                }
                // The name itself goes, not the file to which it leads.
                if is_of_git
                    || names.only_written && *how != FileAccess::Write
                    || removes && *how == FileAccess::Write && names.names.contains(path)
                {
                    continue;
                }
                if let Some(is_likely) = names.changes(path, *how, &mut places) {
                    let shown = path.file_name().unwrap_or_default().to_string_lossy();
                    let why =
                        format!("{name}, which runs before, decides where {shown} leads: run them one after the other");
                    let before = doubt.take().is_some_and(|(_, likely)| likely);
                    doubt = Some((why, is_likely || before));
                }
            }
        }
        let Some((why, is_likely)) = doubt else { continue };
        match (by, &mut found[at]) {
            (Some(by), _) => {
                if let LineItem::Command(command) = &mut found[by] {
                    command.doubt(&why);
                    command.hides_file |= is_likely;
                }
            }
            (None, LineItem::File(file)) => file.unknown = Some((why, is_likely)),
            (None, LineItem::Redirect(redirected)) => redirected.unknown = Some((why, is_likely)),
            (None, LineItem::Command(_)) => {}
        }
    }
}

/// Notes which files a copy of a folder may overwrite, if another command of the line fills the folder before. `unordered` is as
/// for [`doubt_made_names`]. `places` are the session's folders: what is elsewhere is not overwritten without an approval.
pub(super) fn note_overwritten(found: &mut [LineItem], unordered: &[Range<usize>], places: &[Cow<Path>]) {
    let writers: Vec<Option<WrittenBefore>> = found.iter().map(WrittenBefore::of).collect();
    for at in 0..found.len() {
        let LineItem::File(file) = &found[at] else { continue };
        if !file.is_target() || !places.iter().any(|place| file.path().starts_with(place)) {
            continue;
        }
        let is_its = |item: &LineItem| matches!(item, LineItem::Command(by) if by.target == file.command);
        let by = found.iter().take(at).rposition(is_its);
        let is_own = |other: usize| {
            Some(other) == by
                || by.is_some_and(|by| other > by)
                    && matches!(&found[other], LineItem::File(of) if of.command == file.command)
        };
        let is_before =
            |other: usize| other < at || unordered.iter().any(|range| range.contains(&other) && range.contains(&at));
        let others = || (0..found.len()).filter(|other| is_before(*other) && !is_own(*other));
        let is_filled = |folder: &Path| {
            others().filter_map(|other| writers[other].as_ref()).any(|written| written.may_fill(folder))
        };
        let mut file = file.clone();
        let is_known = file.note_overwritten(is_filled);
        found[at] = LineItem::File(file);
        if let Some(LineItem::Command(command)) = by.filter(|_| !is_known).map(|by| &mut found[by]) {
            command.never_free = true;
        }
    }
}

/// The files that an action of the line writes.
enum WrittenBefore {
    These(Vec<PathBuf>),
    Anything,
}

impl WrittenBefore {
    fn of(item: &LineItem) -> Option<Self> {
        match item {
            LineItem::File(file) if file.how() == FileAccess::Write => {
                Some(Self::These(file.paths().map(Path::to_owned).chain(file.put_at()).collect()))
            }
            LineItem::Redirect(redirected) if redirected.is_written() => Some(Self::These(redirected.paths())),
            LineItem::File(_) | LineItem::Redirect(_) => None,
            LineItem::Command(command) if command.reads_only => None,
            LineItem::Command(command) => {
                let effects = command.effects.all();
                // The files that such a command names are all that it writes.
                let is_plain = |effect| matches!(effect, Effect::Read | Effect::Write | Effect::Destroy);
                let is_known = command.unsure.is_none() && command.makes.is_empty() && command.writes_in.is_empty();
                (!is_known || effects.is_empty() || !effects.iter().all(is_plain)).then_some(Self::Anything)
            }
        }
    }

    fn may_fill(&self, folder: &Path) -> bool {
        match self {
            Self::These(paths) => paths.iter().any(|path| logical(path).starts_with(logical(folder))),
            Self::Anything => true,
        }
    }
}
