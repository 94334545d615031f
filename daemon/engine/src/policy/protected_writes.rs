//! Places that run code later: files that a shell, git, an editor, a build tool or the system runs,
//! or takes the names of programs from, without asking again. Writing one is as good as running a
//! command, so it needs an approval of its own. The list is [`list`]; `[permission]
//! protected_writes` of the configuration adds to it.

pub mod list;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use toold_proto::tool::Category;

use crate::need::Need;
use crate::policy::Policy;
use crate::policy::pattern::wild::Wild;

/// One line of [`list::PROTECTED_WRITES`].
#[derive(Clone, Copy, Debug)]
pub struct ProtectedPlace {
    /// See [`ProtectedWrite::parse`].
    pub pattern: &'static str,
    /// Why a file there runs code later.
    pub reason: &'static str,
}

/// A pattern of paths, compared without regard to case: on macOS and vfat `.GIT` is `.git`.
#[derive(Clone, Debug)]
pub struct ProtectedWrite {
    text: String,
    reason: String,
    start: Start,
    segments: Vec<Segment>,
    /// A project's pattern counts in that project; `None` for everywhere.
    project: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Start {
    Root,
    Home,
    AnyFolder,
}

/// How a path is protected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PlaceMatch {
    Itself,
    /// It is a hidden folder that holds such places.
    HiddenFolder,
}

#[derive(Clone, Debug)]
enum Segment {
    One {
        wild: Wild,
        /// `.vscode` in `.vscode/*.json`: renaming a folder to it brings its files along.
        is_hidden: bool,
    },
    /// `**`: any number of names, also none.
    Any,
}

impl ProtectedWrite {
    /// `/...` begins at the root, `~/...` in the home folder, and anything else in any folder. `*` stands for any text
    /// within a name, and a `**` of its own for any number of names.
    ///
    /// # Errors
    /// The pattern can match no path; the message suggests a correction.
    pub fn parse(text: &str, reason: &str, project: Option<PathBuf>) -> Result<Self, String> {
        let (start, rest) = match (text.strip_prefix('/'), text.strip_prefix("~/")) {
            (Some(rest), _) => (Start::Root, rest),
            (None, Some(rest)) => (Start::Home, rest),
            (None, None) => (Start::AnyFolder, text),
        };
        if rest.is_empty() || text.starts_with('~') && start != Start::Home {
            return Err(format!("{text:?} names no file: expected a path such as deploy/** or ~/scripts/*.sh"));
        }
        let names: Vec<&str> = rest.split('/').collect();
        if let Some((folder, true)) = text.strip_suffix('/').map(|folder| (folder, !folder.ends_with('/'))) {
            return Err(format!("{text:?} ends with a slash and can match no file: did you mean {folder}/**?"));
        }
        if names.iter().any(|name| matches!(*name, "" | "." | "..")) {
            let words = "paths are compared after links are followed and //, . and .. are removed";
            return Err(format!("{text:?} can match no file: {words}"));
        }
        let segment = |name: &&str| match *name {
            "**" => Segment::Any,
            name => {
                Segment::One { wild: Wild::parse(&fold(name)), is_hidden: name.starts_with('.') || name == "*.git" }
            }
        };
        let segments = names.iter().map(segment).collect();
        Ok(Self { text: text.to_owned(), reason: reason.to_owned(), start, segments, project })
    }

    /// How the path (its names, folded) is such a place; `None` if it is not.
    fn matched(&self, names: &[String], home: Option<&[String]>) -> Option<PlaceMatch> {
        let (names, is_anchored) = match (self.start, home) {
            (Start::Root, _) => (names, true),
            (Start::Home, Some(home)) => match names.strip_prefix(home) {
                Some(below) => (below, true),
                None => return None,
            },
            // With the home folder unknown, each folder might be it.
            (Start::Home, None) | (Start::AnyFolder, _) => (names, false),
        };
        // `reachable[n]`: the segments so far can match the first n names.
        let mut reachable = vec![!is_anchored; names.len() + 1];
        reachable[0] = true;
        let mut holds = false;
        for (at, segment) in self.segments.iter().enumerate() {
            let mut next = vec![false; names.len() + 1];
            match segment {
                Segment::Any => {
                    let first = reachable.iter().position(|reached| *reached).unwrap_or(next.len());
                    next[first..].fill(true);
                }
                Segment::One { wild, is_hidden } => {
                    for (at, name) in names.iter().enumerate() {
                        next[at + 1] = reachable[at] && wild.matches(name);
                    }
                    let holds_more = at + 1 < self.segments.len();
                    holds |= holds_more && *is_hidden && next[names.len()];
                }
            }
            reachable = next;
        }
        if reachable[names.len()] { Some(PlaceMatch::Itself) } else { holds.then_some(PlaceMatch::HiddenFolder) }
    }

    /// The last part of the pattern that is not `**`.
    fn last(&self) -> Option<&Wild> {
        self.segments.iter().rev().find_map(|segment| match segment {
            Segment::One { wild, .. } => Some(wild),
            Segment::Any => None,
        })
    }

    /// That part if it has no star.
    fn last_name(&self) -> Option<&str> {
        self.last().and_then(Wild::as_literal)
    }

    /// Whether the last name of a path may be that of such a place.
    fn may_end_with(&self, name: &str) -> bool {
        self.last().is_none_or(|last| last.matches(name))
    }

    /// The rule, and how to allow the write.
    fn describe(&self) -> String {
        describe(&self.text, &self.reason)
    }
}

fn describe(place: &str, reason: &str) -> String {
    format!("protected write ({place}): {reason}; only a rule for exactly this file or mode yolo allows it")
}

static BUILT_IN: LazyLock<Vec<ProtectedWrite>> = LazyLock::new(|| {
    let parsed = list::PROTECTED_WRITES.iter().map(|place| ProtectedWrite::parse(place.pattern, place.reason, None));
    parsed.collect::<Result<_, _>>().expect("a test reads each pattern of the list")
});

/// The built-in places by the last name of their patterns, and those whose last name has a star.
static BY_LAST_NAME: LazyLock<HashMap<&str, Vec<usize>>> = LazyLock::new(|| {
    let mut by_name: HashMap<&str, Vec<usize>> = HashMap::new();
    for (at, place) in BUILT_IN.iter().enumerate() {
        by_name.entry(place.last_name().unwrap_or_default()).or_default().push(at);
    }
    by_name
});
static WITH_STARS: LazyLock<Vec<usize>> =
    LazyLock::new(|| (0..BUILT_IN.len()).filter(|at| BUILT_IN[*at].last_name().is_none()).collect());

/// The home folder and the folder of settings, as folded names.
struct PersonalFolders {
    home: Option<Vec<String>>,
    /// Only where it is another one than `.config` in the home folder.
    config_home: Option<Vec<String>>,
}

impl PersonalFolders {
    fn new(policy: &Policy) -> Self {
        let names = |folder: &Option<PathBuf>| folder.as_deref().map(|folder| names_of(&folder.to_string_lossy()));
        Self { home: names(&policy.home), config_home: names(&policy.config_home) }
    }

    /// How the path is such a place, under its own name or under the one that it would have without `XDG_CONFIG_HOME`.
    fn matched(&self, place: &ProtectedWrite, names: &[String]) -> Option<PlaceMatch> {
        place.matched(names, self.home.as_deref()).or_else(|| {
            let below = names.strip_prefix(self.config_home.as_deref()?)?;
            let usual = [self.home.as_deref().unwrap_or_default(), &[fold(".config")], below].concat();
            place.matched(&usual, self.home.as_deref())
        })
    }
}

impl Policy {
    /// Why writing this needs an approval for this exact file; `None` when it does not. `project` is the session's.
    pub fn protected_write(&self, project: &Path, need: &Need) -> Option<String> {
        if need.category() != Category::FileWrite {
            return None;
        }
        if let Some(file) = need.file().and_then(|file| file.of_repository.first()) {
            return Some(describe(
                file,
                "git runs hooks, and programs that its configuration names, in the repository around it",
            ));
        }
        let places = PersonalFolders::new(self);
        let of_project = |place: &&ProtectedWrite| place.project.as_deref().is_none_or(|of| of == project);
        let all = BUILT_IN.iter().chain(self.protected_writes.iter().filter(of_project));
        let all: Vec<&ProtectedWrite> = all.into_iter().collect();
        std::iter::once(&need.target).chain(need.covers()).find_map(|target| {
            let names = names_of(target);
            all.iter().find(|place| places.matched(place, &names).is_some()).map(|place| place.describe())
        })
    }

    /// Whether a file, a link or a folder is such a place itself, in any project. For walks through many paths: most differ
    /// in their last names.
    pub fn is_protected_place(&self, path: &Path) -> bool {
        let Some(name) = path.file_name() else { return false };
        let name = fold(&name.to_string_lossy());
        let named = BY_LAST_NAME.get(name.as_str()).into_iter().flatten().map(|place| &BUILT_IN[*place]);
        let others = WITH_STARS.iter().map(|place| &BUILT_IN[*place]).chain(&self.protected_writes);
        let mut candidates = named.chain(others.filter(|place| place.may_end_with(&name))).peekable();
        if candidates.peek().is_none() {
            return false;
        }
        let places = PersonalFolders::new(self);
        let names = names_of(&path.to_string_lossy());
        candidates.any(|place| places.matched(place, &names) == Some(PlaceMatch::Itself))
    }

    /// Whether a path is that of a hidden folder in which such places lie, in any project.
    pub fn holds_protected_places(&self, path: &Path) -> bool {
        let (places, names) = (PersonalFolders::new(self), names_of(&path.to_string_lossy()));
        let mut all = BUILT_IN.iter().chain(&self.protected_writes);
        all.any(|place| places.matched(place, &names) == Some(PlaceMatch::HiddenFolder))
    }

    /// The patterns of the configuration.
    pub fn own_protected_patterns(&self) -> impl Iterator<Item = &str> {
        self.protected_writes.iter().map(|place| place.text.as_str())
    }

    /// Adds a pattern of the configuration. A pattern that can match nothing denies, like an
    /// unreadable rule.
    pub fn protect(&mut self, pattern: &str, origin: &str, project: Option<&Path>) {
        let reason = format!("the configuration protects it ({origin})");
        match ProtectedWrite::parse(pattern, &reason, project.map(Path::to_owned)) {
            Ok(place) => self.protected_writes.push(place),
            Err(why) => {
                self.close_category(Category::FileWrite, project, &format!("{origin}: protected_writes: {why}"))
            }
        }
    }
}

fn names_of(path: &str) -> Vec<String> {
    path.split('/').filter(|name| !matches!(*name, "" | ".")).map(fold).collect()
}

/// Two names that a case-insensitive file system takes for one are equal afterwards. In upper case,
/// since only that maps `ß` and `ſ` to the letters that such a system does.
fn fold(name: &str) -> String {
    if name.is_ascii() { name.to_ascii_uppercase() } else { name.to_uppercase() }
}

#[cfg(test)]
mod tests;
