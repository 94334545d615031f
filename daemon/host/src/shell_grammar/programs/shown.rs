//! Contents of tracked files that commands of Git show, or put elsewhere, without naming the files.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use toold_engine::need::{CommandForm, FormOption, ShownFiles, Word};

use super::pathspec::{Pathspecs, has_magic};
use super::repository::history::ShownContents;
use super::repository::{self, Repository, is_object_name};
use super::{CommandContext, Reading};
use crate::shell_grammar::arg::Arg;

/// A command of Git: its subcommand, and the words and the form behind that.
pub(super) struct GitCommand<'a> {
    pub(super) name: &'a str,
    pub(super) words: &'a [Arg],
    /// The subcommand is the first of its plain words. `None` if the words cannot be told apart.
    pub(super) form: Option<&'a CommandForm>,
    /// The words of the form that choose the operation: two for `git stash show`.
    pub(super) verbs: usize,
}

/// The place where a command takes the paths that choose among the files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TakesPaths {
    /// Behind the revisions.
    BehindRevisions,
    /// Behind the first operand.
    BehindTree,
    Nowhere,
}

/// Adds the files that it may show. `repository` is `None` if it is not known.
pub(super) fn add(command: &GitCommand, repository: Option<&Repository>, site: &CommandContext, reading: &mut Reading) {
    let takes = command.shows(repository);
    let Some(repository) = repository else {
        reading.shows.extend(takes.map(|_| any_file()));
        return;
    };
    let takes_paths = takes.or(command.reads_commits());
    let Some(paths) = takes_paths else { return };
    let (chosen, leaves_out) = (command.chosen(paths, repository, site), paths != TakesPaths::Nowhere);
    let contents = command.contents(paths, repository, site);
    let names = repository.names_shown(&contents, &chosen, site.clock);
    if let Some(names) = names.as_ref().filter(|_| takes.is_some() && command.compares(&contents, site)) {
        let differing = (!names.is_empty()).then(|| shown(repository, Some(names.clone()), leaves_out));
        reading.shows.extend(differing);
        return;
    }
    reading.shows.extend(takes.map(|_| files_of(repository, &chosen, leaves_out)));
    reading.shows.extend(files_of_commits(repository, names, leaves_out));
}

/// Adds any file, for a command whose words name its repository or its working tree.
pub(super) fn add_any(reading: &mut Reading) {
    reading.shows.push(any_file());
}

/// Adds all files of the repository, for a command of which nothing else is known.
pub(super) fn add_all(words: &[Arg], site: &CommandContext, reading: &mut Reading) {
    let chooses_folder =
        |word: &Arg| ["-C", "--git-dir", "--work-tree"].iter().any(|name| word.start().starts_with(name));
    let found = repository::find(site, None, "", true).ok().filter(|_| !words.iter().any(chooses_folder));
    match found {
        Some(found) => reading.shows.extend(all_files_of(&found, site)),
        None => reading.shows.push(any_file()),
    }
}

/// Adds all files of the repository, for a command that sends its commits to another folder of this machine.
pub(super) fn add_sent(repository: &Repository, site: &CommandContext, reading: &mut Reading) {
    reading.shows.extend(all_files_of(repository, site));
}

/// Adds the files of a repository on this machine that is cloned: they get other paths.
pub(super) fn add_cloned(place: &Arg, folder: Option<&Arg>, site: &CommandContext, reading: &mut Reading) {
    let Some(place) = place.literal().map(|place| place.strip_prefix("file://").unwrap_or(place)) else { return };
    let from = Path::new(folder.and_then(Arg::literal).unwrap_or(".")).join(place);
    if let Ok(repository) = repository::find(site, Some(&Arg::text(&from.to_string_lossy())), "", true) {
        reading.shows.extend(all_files_of(&repository, site));
    }
}

/// The files that `git grep` searches: those that the paths among its words choose.
pub(super) fn searched(command: &GitCommand, repository: &Repository, site: &CommandContext) -> Pathspecs {
    command.chosen(TakesPaths::BehindRevisions, repository, site)
}

fn any_file() -> Arc<ShownFiles> {
    Arc::new(ShownFiles { folder: "/".into(), ..ShownFiles::default() })
}

fn files_of(repository: &Repository, chosen: &Pathspecs, takes_paths: bool) -> Arc<ShownFiles> {
    let names = repository.all_tracked_names();
    let names = names.map(|names| names.filter(|name| chosen.may_choose(name)).map(str::to_owned).collect());
    shown(repository, names, takes_paths)
}

/// `names` is `None` if they may be any.
fn shown(repository: &Repository, names: Option<Vec<String>>, takes_paths: bool) -> Arc<ShownFiles> {
    let leaving_out = takes_paths.then(|| exclusion(repository));
    Arc::new(ShownFiles { folder: repository.top.clone(), names, leaving_out })
}

/// Such a pathspec is relative to the folder, unless it says that it is not.
fn exclusion(repository: &Repository) -> &'static str {
    if repository.folder == repository.top { ":(exclude)" } else { ":(top,exclude)" }
}

/// The files of commits that the index does not have, if there are any. `names` is what [`Repository::names_shown`] gives.
fn files_of_commits(repository: &Repository, names: Option<Vec<String>>, takes_paths: bool) -> Option<Arc<ShownFiles>> {
    let tracked: HashSet<&str> = repository.tracked_names().collect();
    let names: Option<Vec<String>> =
        names.map(|names| names.into_iter().filter(|name| !tracked.contains(name.as_str())).collect());
    let is_any = names.as_ref().is_none_or(|names| !names.is_empty());
    is_any.then(|| shown(repository, names, takes_paths))
}

/// The files of its index and of all commits.
fn all_files_of(repository: &Repository, site: &CommandContext) -> impl Iterator<Item = Arc<ShownFiles>> {
    let names = repository.names_shown(&[ShownContents::All], &Pathspecs::default(), site.clock);
    let of_commits = files_of_commits(repository, names, false);
    std::iter::once(files_of(repository, &Pathspecs::default(), false)).chain(of_commits)
}

impl GitCommand<'_> {
    fn has(&self, names: &[&str]) -> bool {
        self.form.is_none_or(|form| {
            form.options.iter().any(|option| option.names.iter().any(|name| names.contains(&name.as_str())))
        })
    }

    /// The operands before `--`, behind the words that choose the operation.
    fn operands(&self) -> &[Word] {
        let Some(form) = self.form else { return &[] };
        let end = form.plain.len().saturating_sub(self.behind_dashes().len());
        form.plain.get(self.verbs..end).unwrap_or_default()
    }

    fn behind_dashes(&self) -> &[Arg] {
        let at = self.words.iter().position(|word| word.is("--"));
        at.map(|at| &self.words[at + 1..]).unwrap_or_default()
    }

    /// Whether it shows contents of files that its words do not name, and where it takes paths then.
    fn shows(&self, repository: Option<&Repository>) -> Option<TakesPaths> {
        let verb = self.form.and_then(|form| form.plain.get(1)).map(|word| word.text.as_str());
        let has = |names: &[&str]| match self.form {
            Some(_) => self.has(names),
            None => self.words.iter().any(|word| names.iter().any(|name| word.is(name))),
        };
        let asks_for_each = has(&["-p", "--patch"]) || matches!(self.name, "add" | "stage") && has(&["-i", "-e"]);
        match self.name {
            "show" | "cat-file" | "diff" if self.names_its_files(repository) => None,
            "diff" if self.words.iter().any(|word| word.is("--no-index")) => None,
            "cat-file" => {
                let tells = ["-t", "-s", "-e"].iter().any(|option| self.words.iter().any(|word| word.is(option)));
                let checks = self.words.iter().any(|word| word.start().starts_with("--batch-check"));
                let of_kind = matches!(verb, Some("commit" | "tree" | "tag"));
                let is_content = |word: &Word| repository.is_none_or(|repository| may_be_no_commit(word, repository));
                let shows = self.operands().is_empty() || self.operands().iter().any(is_content);
                (!tells && !checks && !of_kind && shows).then_some(TakesPaths::Nowhere)
            }
            "stash" if verb == Some("show") => shows_changes(self.name, self.words).then_some(TakesPaths::Nowhere),
            "range-diff" => shows_changes(self.name, self.words).then_some(TakesPaths::Nowhere),
            "archive" => (!has(&["-l", "--list"])).then_some(TakesPaths::BehindTree),
            "format-patch" => Some(TakesPaths::BehindRevisions),
            "add" | "stage" | "checkout" | "reset" | "restore" | "commit" | "stash" if asks_for_each => {
                Some(TakesPaths::BehindRevisions)
            }
            // All that is to be committed, whatever the paths are.
            "commit" if has(&["-v", "--verbose"]) => Some(TakesPaths::Nowhere),
            "status" => has(&["-v", "--verbose"]).then_some(TakesPaths::Nowhere),
            "bundle" => (verb == Some("create")).then_some(TakesPaths::Nowhere),
            "bisect" if matches!(verb, Some("view" | "visualize")) => {
                shows_changes("log", self.words).then_some(TakesPaths::BehindRevisions)
            }
            "worktree" => (verb == Some("add")).then_some(TakesPaths::Nowhere),
            "rerere" => (verb == Some("diff")).then_some(TakesPaths::Nowhere),
            "rebase" | "am" => {
                let shows = |word: &Arg| word.start().starts_with("--show-current-patch");
                self.words.iter().any(shows).then_some(TakesPaths::Nowhere)
            }
            "stash" if verb != Some("list") => None,
            _ if shows_changes(self.name, self.words) => Some(TakesPaths::BehindRevisions),
            _ => None,
        }
    }

    /// Whether each of its operands is the name of a file in a revision, `REVISION:PATH`. Of two folders, `diff` compares what is
    /// in them.
    fn names_its_files(&self, repository: Option<&Repository>) -> bool {
        let is_tracked = |path: &str| {
            let tracked = repository.and_then(Repository::all_tracked_names);
            tracked.is_some_and(|mut names| names.any(|name| name == path))
        };
        let names_file = |word: &Word| {
            let path = word.text.split_once(':').map(|(_, path)| path).unwrap_or_default();
            word.literal
                && !word.text.starts_with(":/")
                && !word.text.contains("^{")
                && !path.is_empty()
                && (self.name != "diff" || is_tracked(path))
        };
        // `git cat-file blob HEAD:a.txt`
        let operands = match self.operands() {
            [kind, named @ ..] if self.name == "cat-file" && matches!(kind.text.as_str(), "blob" | "tree") => named,
            all => all,
        };
        !operands.is_empty() && self.behind_dashes().is_empty() && operands.iter().all(names_file)
    }

    /// The place of the paths of a command that shows nothing, but searches or puts back files of the commits that its words name.
    fn reads_commits(&self) -> Option<TakesPaths> {
        let names_paths = !self.behind_dashes().is_empty() || self.operands().len() > 1;
        let reads = match self.name {
            "grep" => true,
            "checkout" => names_paths,
            "restore" => self.has(&["-s", "--source"]),
            _ => false,
        };
        reads.then_some(TakesPaths::BehindRevisions)
    }

    /// The revisions among its words, and the paths behind them, but for those behind `--`.
    fn split(&self, takes: TakesPaths, repository: &Repository, site: &CommandContext) -> (&[Word], &[Word]) {
        let skipped = match self.name {
            "grep" => usize::from(!self.has(&["-e", "-f"])),
            _ => usize::from(takes == TakesPaths::BehindTree),
        };
        let operands = self.operands().get(skipped..).unwrap_or_default();
        // A name of a revision that is the path of a file, too, is refused. One that is neither may be either, later in the line.
        let exists =
            |word: &Word| site.nothing_changed && repository.folder.join(&word.text).symlink_metadata().is_ok();
        // Git takes this for the text of a message first, and refuses it if there is such a file, too.
        let is_message = |word: &Word| {
            let text = word.text.strip_prefix(":/").filter(|text| !text.is_empty());
            text.is_some_and(|text| repository.top.join(text).symlink_metadata().is_err() || !site.nothing_changed)
        };
        let is_path = |word: &Word| {
            takes == TakesPaths::BehindTree
                || word.literal && (has_magic(&word.text) && !is_message(word) || exists(word))
        };
        operands.split_at(operands.iter().take_while(|word| !is_path(word)).count())
    }

    /// The paths that choose among the files. Unless they are certain, all files are chosen.
    fn chosen(&self, takes: TakesPaths, repository: &Repository, site: &CommandContext) -> Pathspecs {
        let Some(form) = self.form.filter(|_| takes != TakesPaths::Nowhere) else { return Pathspecs::default() };
        let is_literal = self.form.is_some() && self.has(&["--literal-pathspecs"]);
        let is_value = form.options.iter().flat_map(|option| &option.values).any(|value| value.text == "--");
        // One shows a file under its earlier names as well, the other all files of the commits that the paths choose.
        if is_literal || is_value || site.changes_pathspecs || self.has(&["--follow", "--full-diff"]) {
            return Pathspecs::default();
        }
        let (revisions, paths) = self.split(takes, repository, site);
        // Paths choose nothing from a content, and from the tree of a folder others than their names say.
        let tree = self.operands().first().filter(|_| takes == TakesPaths::BehindTree);
        if tree.into_iter().chain(revisions).any(|word| may_be_no_commit(word, repository)) {
            return Pathspecs::default();
        }
        let below = repository.folder.strip_prefix(&repository.top).unwrap_or(Path::new(""));
        let given: Vec<Arg> = paths.iter().map(arg_of).collect();
        Pathspecs::of(given.iter().chain(self.behind_dashes()), &repository.top, below)
    }

    /// Whether it shows only files that differ in what it compares. `contents` is what [`Self::contents`] gives.
    fn compares(&self, contents: &[ShownContents], site: &CommandContext) -> bool {
        let is_comparison = |contents: &ShownContents| {
            use ShownContents::{All, Between, Changes, Files, Index, Stash, Stashes, Unnamed, Walk, WorkingTree};
            match contents {
                Changes(_) | Between(..) | Index(_) | WorkingTree | Stash(_) | Stashes | Walk(..) => true,
                Files(_) | All | Unnamed => false,
            }
        };
        // Twice, it compares with all files; before the subcommand, it names the folder.
        let copies =
            |word: &Arg| !word.start().starts_with("--") && word.start().starts_with('-') && word.start().contains('C');
        let is_known = |option: &FormOption| keeps_limit(option) || is_among(option, FILTERING);
        let is_plain = self.form.is_some_and(|form| form.options.iter().all(is_known));
        self.name != "cat-file"
            && site.nothing_changed
            && is_plain
            && !self.words.iter().any(copies)
            && contents.iter().all(is_comparison)
    }

    /// The contents that it may show; none if it only reads files that the index has.
    fn contents(&self, takes: TakesPaths, repository: &Repository, site: &CommandContext) -> Vec<ShownContents> {
        if self.name == "reflog" || self.form.is_some() && self.has(LISTED) {
            return vec![ShownContents::Unnamed];
        }
        // Changes that the line makes before are in the index or in a branch.
        let Some(form) = self.form.filter(|_| site.nothing_changed && !self.has(WALKING)) else {
            return vec![ShownContents::All];
        };
        let (revisions, paths) = match takes {
            TakesPaths::Nowhere => (self.operands(), Default::default()),
            TakesPaths::BehindTree => self.operands().split_at(self.operands().len().min(1)),
            TakesPaths::BehindRevisions => self.split(takes, repository, site),
        };
        if revisions.iter().any(|word| !word.literal) {
            return vec![ShownContents::Unnamed];
        }
        let names: Vec<String> = revisions.iter().map(|word| word.text.clone()).collect();
        let head = || "HEAD".to_owned();
        let or_head = |names: Vec<String>| if names.is_empty() { vec![head()] } else { names };
        let is_range = names.iter().any(|name| name.contains("..") || name.starts_with('^'));
        let (of_index, of_base) = (self.has(&["--cached", "--staged"]), self.has(&["--merge-base"]));
        let behind_base = |one: &str, other: &str| ShownContents::Walk(vec![format!("{one}..{other}")], None);
        let contents = match (self.name, names.as_slice()) {
            ("add" | "stage" | "diff-files", _) => ShownContents::WorkingTree,
            ("show", _) if is_range => ShownContents::Walk(names, None),
            // Since their merge base, a file that differs there from the second one has changed.
            ("diff-tree", [one]) if one.contains("...") => ShownContents::All,
            ("diff", [one]) if one.contains("...") => {
                let (one, other) = one.split_once("...").unwrap_or_default();
                behind_base(one, other)
            }
            ("diff", [one, other]) if of_base => behind_base(one, other),
            ("diff" | "diff-tree", [one]) if is_range => {
                let named = |name: &str| if name.is_empty() { head() } else { name.to_owned() };
                let (before, after) = one.split_once("..").unwrap_or(("HEAD", one));
                ShownContents::Between(named(before), named(after))
            }
            ("diff", []) if !of_index => ShownContents::WorkingTree,
            ("diff" | "diff-index", [] | [_]) => {
                let revision = names.into_iter().next().unwrap_or_else(head);
                let since_base = of_base.then(|| behind_base(&revision, "HEAD"));
                let revision = if of_base { head() } else { revision };
                let of_tree = (!of_index).then_some(ShownContents::WorkingTree);
                return since_base.into_iter().chain([ShownContents::Index(revision)]).chain(of_tree).collect();
            }
            ("status" | "commit", []) => {
                let revision = if self.has(&["--amend"]) { "HEAD~1".to_owned() } else { head() };
                return vec![ShownContents::Index(revision), ShownContents::WorkingTree];
            }
            ("diff-tree", [_, _]) if of_base => ShownContents::All,
            ("diff" | "diff-tree", [before, after]) => ShownContents::Between(before.clone(), after.clone()),
            ("show" | "diff-tree" | "cat-file", _) => ShownContents::Changes(or_head(names)),
            ("log" | "whatchanged" | "format-patch", _) => {
                let is_whole = paths.is_empty() && self.behind_dashes().is_empty();
                let most = limit_of(self.words).filter(|_| is_whole && form.options.iter().all(keeps_limit));
                match names.as_slice() {
                    // The commits since then.
                    [since] if self.name == "format-patch" && !is_range && limit_of(self.words).is_none() => {
                        behind_base(since, "HEAD")
                    }
                    _ => ShownContents::Walk(or_head(names), most),
                }
            }
            ("stash", _) if form.plain.get(1).is_some_and(|verb| verb.text == "list") => ShownContents::Stashes,
            ("stash", []) if form.plain.get(1).is_some_and(|verb| verb.text == "show") => {
                ShownContents::Stash("stash".to_owned())
            }
            ("stash", [one]) if one.bytes().all(|byte| byte.is_ascii_digit()) => {
                ShownContents::Stash(format!("stash@{{{one}}}"))
            }
            ("stash", [one]) if form.plain.get(1).is_some_and(|verb| verb.text == "show") => {
                ShownContents::Stash(one.clone())
            }
            ("archive", [tree]) => ShownContents::Files(vec![tree.clone()]),
            ("worktree", [_, commit]) => ShownContents::Files(vec![commit.clone()]),
            ("worktree", [place]) => {
                // A branch of the folder's name is checked out there.
                let name = place.rsplit('/').next().unwrap_or_default();
                let branch = repository.branches().into_iter().find(|branch| branch == name);
                ShownContents::Files(vec![branch.unwrap_or_else(head)])
            }
            ("grep", []) => return Vec::new(),
            ("grep", _) => ShownContents::Files(names),
            ("restore", _) => {
                let source = form.options.iter().filter(|option| option.names.iter().any(|name| name == "--source"));
                let values = source.flat_map(|option| &option.values).map(|value| value.text.clone());
                ShownContents::Files(or_head(values.collect()))
            }
            ("checkout" | "reset" | "commit" | "status" | "stash", _) => ShownContents::Files(or_head(names)),
            _ => ShownContents::All,
        };
        vec![contents]
    }
}

/// Options by which a command shows other commits than its words name.
const WALKING: &[&str] = &["--all", "--branches", "--tags", "--remotes", "--glob", "--not", "--bisect", "--remote"];

/// Options by which it shows those that no branch has, or that its input names.
const LISTED: &[&str] = &[
    "--reflog",
    "-g",
    "--walk-reflogs",
    "--stdin",
    "--alternate-refs",
    "--batch",
    "--batch-command",
    "--batch-all-objects",
];

/// Options that leave out no commit, so that those which a number counts are the nearest ones.
const COUNTED: &str = "-p -u --patch -n --max-count --oneline --stat --numstat --shortstat --name-only --name-status --summary --graph \
                       --decorate --no-decorate --color --no-color --format --pretty --abbrev-commit -U --unified --date -w -b \
                       --word-diff --color-words --no-pager -P -C --stdout --no-ext-diff -M --find-renames --no-renames \
                       --topo-order --date-order --no-textconv -W --function-context -c --cc -m -o --output-directory";

/// Options that leave out commits or files, or say what a comparison compares.
const FILTERING: &str = "--cached --staged --merge-base -v --verbose -R -a --text -z --raw --abbrev --exit-code --quiet --minimal \
                         --patience --histogram --diff-algorithm --ignore-all-space --ignore-space-change --ignore-blank-lines \
                         --diff-filter --full-index --relative --no-prefix --author --committer --since --until --after --before \
                         --grep -S -G --merges --no-merges --first-parent --reverse --skip";

fn keeps_limit(option: &FormOption) -> bool {
    let is_number =
        |name: &str| name.strip_prefix('-').is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_digit()));
    option.names.iter().any(|name| is_number(name)) || is_among(option, COUNTED)
}

fn is_among(option: &FormOption, names: &str) -> bool {
    names.split_whitespace().any(|known| option.names.iter().any(|name| name == known))
}

/// The number of commits that `-3`, `-n 3` or `--max-count=3` says; the largest of several.
fn limit_of(words: &[Arg]) -> Option<usize> {
    let own = words.iter().take_while(|word| !word.is("--"));
    let texts: Vec<&str> = own.map(Arg::start).collect();
    let number = |at: usize| {
        let text = texts[at];
        let attached = ["--max-count=", "-n", "-"].iter().find_map(|start| text.strip_prefix(*start)?.parse().ok());
        let next = || texts.get(at + 1)?.parse().ok();
        attached.or_else(|| next().filter(|_| matches!(text, "-n" | "--max-count")))
    };
    (0..texts.len()).filter_map(number).max()
}

/// Whether a revision may be the name of a file's content, or of a folder, and not that of a commit.
fn may_be_no_commit(word: &Word, repository: &Repository) -> bool {
    let is_other = |name: &str| match name.split_once("^{") {
        Some((_, kind)) => !(matches!(kind, "commit}" | "tree}") || kind.starts_with('/')),
        None => name.contains(':') && !name.starts_with(":/") || is_object_name(name) && !repository.has_commit(name),
    };
    !word.literal || word.text.split("..").any(|name| is_other(name.trim_start_matches('.')))
}

/// Whether a subcommand prints what it shows, so that a secret among it reaches whoever reads that.
pub(super) fn prints(name: &str) -> bool {
    !matches!(name, "add" | "stage" | "checkout" | "reset" | "restore" | "commit" | "bundle" | "worktree")
}

fn arg_of(word: &Word) -> Arg {
    if word.literal { Arg::text(&word.text) } else { Arg::unknown(&word.text) }
}

/// Options by which a command only lists, unless another one makes it print.
const LISTING: &[&str] = &[
    "--stat",
    "--numstat",
    "--shortstat",
    "--name-only",
    "--name-status",
    "--summary",
    "-s",
    "--no-patch",
    "--dirstat",
    "--quiet",
];

/// Options by which it prints a patch.
const PRINTING: &[&str] = &[
    "-p",
    "-u",
    "--patch",
    "-U",
    "--unified",
    "--patch-with-stat",
    "--patch-with-raw",
    "-L",
    "--word-diff",
    "--color-words",
    "-c",
    "--cc",
    "--dd",
    "--remerge-diff",
    "--diff-merges",
    "--binary",
    "--check",
    "-W",
    "--function-context",
];

/// Whether it may print lines of any file: a patch. `log` does so only with an option.
fn shows_changes(name: &str, words: &[Arg]) -> bool {
    let is_given = |option: &str, word: &Arg| match word.start().strip_prefix(option) {
        Some(rest) => rest.is_empty() || rest.starts_with('=') || option.len() == 2,
        None => false,
    };
    let has = |options: &[&str]| words.iter().any(|word| options.iter().any(|option| is_given(option, word)));
    // Long options may be cut short, and short ones stand in one word, up to one with a value.
    let may_print = |word: &Arg| {
        let text = word.start().split('=').next().unwrap_or_default();
        let letters = text.strip_prefix('-').filter(|letters| !letters.starts_with('-')).unwrap_or_default();
        let mut flags = letters.chars().take_while(|letter| !"SGOnlMCBXI".contains(*letter));
        text.len() > 3
            && text.starts_with("--")
            && text != "--color"
            && PRINTING.iter().any(|option| option.starts_with(text))
            || flags.any(|letter| "puUcWL".contains(letter))
    };
    // Which commits these find tells of the contents as well.
    let searches = has(&["-S", "-G"]);
    let (lists, prints) = (has(LISTING), has(PRINTING) || searches || words.iter().any(may_print));
    match name {
        "show" | "diff" => !lists || prints,
        "log" | "whatchanged" | "stash" | "diff-tree" | "diff-index" | "diff-files" | "reflog" => prints,
        "range-diff" => !has(&["-s", "--no-patch"]),
        _ => false,
    }
}
