//! The files of the working tree that Git overwrites or removes: by their paths (`git checkout PATH`, `git restore PATH`,
//! `git rm PATH`), wherever they are (`git reset --hard`, `git stash`, `git clean`, `git apply`), and where other commits
//! have files (`git checkout BRANCH`, `git merge`).

use std::path::{Path, PathBuf};
use std::rc::Rc;

use toold_engine::effects::AddedEffect;
use toold_engine::need::{CheckoutKind, CommandForm, FormOption, Word};
use toold_proto::effect::Effect;

use super::pathspec::excludes;
use super::repository::Repository;
use super::{CommandContext, FileAccess, FileUse, Reading};
use crate::ignore_files::IgnoreFiles;
use crate::shell_grammar::arg::Arg;
use crate::shell_grammar::expand;
use crate::shell_grammar::names::{self, NameSet};
use crate::shell_grammar::state::logical;

/// Options of these subcommands with a value as the next word.
const WITH_VALUES: &[&str] = &["-b", "-B", "--orphan", "--conflict", "-s", "--source"];

/// Adds the files to those of the command. `words` are those behind the subcommand, and `folder` is that of `git -C`.
pub(super) fn add(
    name: &str,
    words: &[Arg],
    reading: &mut Reading,
    repository: &Repository,
    site: &CommandContext,
    folder: Option<&Arg>,
) {
    let Some([here]) = site.folders.filter(|_| matches!(name, "checkout" | "restore" | "rm")) else { return };
    for (path, is_certain) in paths(name, words) {
        let below = tracked_below(path, repository);
        if !is_certain && below.is_empty() {
            continue;
        }
        // The tables know the operands of the others.
        if name == "checkout" {
            // Without the mark of paths, they throw away changes all the same.
            let is_marked = words.iter().any(|word| word.is("--"));
            reading
                .added
                .extend((!is_marked).then(|| AddedEffect { effect: Effect::Destroy, words: vec![path.word().text] }));
            let folder = folder.cloned();
            reading.files.push(FileUse { folder, ..FileUse::new(FileAccess::Write, path.clone()) });
        }
        if !below.is_empty() {
            let names = Rc::new(NameSet::printed(repository.top.clone(), below, here));
            reading.files.push(FileUse::new(FileAccess::Write, expand::arg(names, &path.raw)));
        }
    }
}

/// The operands that are paths, and whether that is certain: the first one of `checkout` may be a revision.
fn paths<'a>(name: &str, words: &'a [Arg]) -> Vec<(&'a Arg, bool)> {
    let mut found = Vec::new();
    let mut is_first = name == "checkout";
    let mut is_behind = false;
    let mut words = words.iter();
    while let Some(word) = words.next() {
        if word.is("--") && !is_behind {
            found.clear();
            (is_behind, is_first) = (true, false);
        } else if WITH_VALUES.iter().any(|option| word.is(option)) && !is_behind {
            words.next();
        } else if is_behind || !word.start().starts_with('-') {
            found.push((word, !is_first || word.has_glob()));
            is_first = false;
        }
    }
    found
}

/// The tracked files in a folder, or those that a pathspec may mean (gitglossary(7), "pathspec").
fn tracked_below(path: &Arg, repository: &Repository) -> Vec<PathBuf> {
    let all = || repository.tracked_names().map(|name| repository.top.join(name));
    let Some(text) = path.literal() else { return Vec::new() };
    if excludes(text) {
        return Vec::new();
    }
    if text.starts_with(':') || text.contains(['*', '?', '[']) {
        return all().collect();
    }
    let named = logical(&repository.folder.join(text));
    all().filter(|file| file.starts_with(&named)).collect()
}

/// Options with which `git apply` changes nothing in the working tree.
const ONLY_SHOW: &[&str] = &["--stat", "--numstat", "--summary", "--check", "--cached"];

/// More files are not looked at: Git changes them all the same.
const MAX_FILES: usize = 50_000;

/// The files whose changes since the last commit the command may throw away, or that a patch may change, wherever they are.
/// `form` is that of the words
/// behind the subcommand, which is the first of its plain words; `None` if these cannot be told apart.
pub(super) fn discarded(name: &str, form: Option<&CommandForm>, repository: &Repository) -> Vec<String> {
    let has = |names: &[&str]| {
        form.is_none_or(|form| {
            form.options.iter().any(|option| option.names.iter().any(|name| names.contains(&name.as_str())))
        })
    };
    let verb = form.and_then(|form| form.plain.get(1)).map(|word| word.text.as_str());
    let (tracked, untracked) = match name {
        "reset" => (has(&["--hard", "--merge", "--keep"]), false),
        "checkout" => (has(&["-f", "--force"]), false),
        "switch" => (has(&["-f", "--force", "--discard-changes"]), false),
        "stash" if matches!(verb, Some("list" | "show" | "drop" | "clear" | "create" | "store")) => (false, false),
        "stash" => (true, has(&["-u", "--include-untracked", "-a", "--all"])),
        "apply" => (has(&["--apply"]) || form.is_none() || !has(ONLY_SHOW), false),
        "am" => (form.is_none() || !has(&["--abort", "--quit", "--show-current-patch"]), false),
        "clean" => (false, form.is_none() || !has(&["-n", "--dry-run"])),
        _ => (false, false),
    };
    let all = || repository.tracked_names().map(|name| repository.top.join(name));
    if !tracked && !untracked || all().count() > MAX_FILES {
        return Vec::new();
    }
    let shown = |path: PathBuf| path.to_string_lossy().into_owned();
    let mut found: Vec<String> = all().filter(|_| tracked).map(shown).collect();
    if untracked {
        let known: std::collections::HashSet<PathBuf> = all().collect();
        let ignored = IgnoreFiles::for_daemon(&repository.top);
        let is_ignored = |path: &Path, is_folder| ignored.matched(path, is_folder).is_ignore();
        let inside = names::tree(
            &repository.top,
            |entry| entry.name != ".git" && !is_ignored(entry.path, true),
            |entry| !known.contains(entry.path) && !is_ignored(entry.path, false),
        );
        found.extend(inside.unwrap_or_default().into_iter().map(shown));
    }
    found
}

/// The commits whose files a command puts into the working tree, and which of them count; `None` for one that puts none there.
/// `words` are those behind the subcommand. A name of a commit that the shell changes is an error.
pub(super) fn checked_out(
    name: &str,
    form: Option<&CommandForm>,
    words: &[Arg],
) -> Option<Result<(CheckoutKind, Vec<String>), UnknownCommit>> {
    let given: Vec<&FormOption> = form.iter().flat_map(|form| &form.options).collect();
    let has =
        |names: &[&str]| given.iter().any(|option| option.names.iter().any(|name| names.contains(&name.as_str())));
    let plain: Vec<&Word> = form.iter().flat_map(|form| &form.plain).skip(1).collect();
    let verb = plain.first().map_or("", |word| word.text.as_str());
    let is_continued = || has(&["--continue", "--skip", "--abort", "--quit"]);
    let or = |named: Vec<&'_ Word>, usual: &'static [&'static str]| match named.is_empty() {
        true => usual.iter().map(|name| Word { text: (*name).to_owned(), literal: true }).collect(),
        false => named.into_iter().cloned().collect::<Vec<Word>>(),
    };
    let (how, commits) = match name {
        "checkout" | "switch" => {
            let names_paths = words.iter().skip_while(|word| !word.is("--")).nth(1).is_some();
            if names_paths || name == "checkout" && plain.len() > 1 && !has(&["-b", "-B"]) {
                return None;
            }
            let last = words.iter().any(|word| word.is("-")).then(|| Word { text: "-".to_owned(), literal: true });
            (CheckoutKind::These, plain.into_iter().cloned().chain(last).collect())
        }
        "merge" if is_continued() => (CheckoutKind::These, or(Vec::new(), &["HEAD", "ORIG_HEAD", "MERGE_HEAD"])),
        "merge" => (CheckoutKind::These, or(plain, &["@{upstream}"])),
        "rebase" if is_continued() => (CheckoutKind::Between, or(Vec::new(), REBASED)),
        "rebase" => {
            let onto = given.iter().filter(|option| option.names.iter().any(|name| name == "--onto"));
            let onto = onto.flat_map(|option| &option.values).cloned();
            (CheckoutKind::Between, or(plain, &["@{upstream}"]).into_iter().chain(onto).collect())
        }
        "reset" if has(&["--keep", "--merge", "--hard"]) => (CheckoutKind::These, or(plain, &["HEAD"])),
        "cherry-pick" | "revert" if !is_continued() => (CheckoutKind::Changes, plain.into_iter().cloned().collect()),
        "stash" if matches!(verb, "pop" | "apply" | "branch") => {
            let named = plain.into_iter().skip(if verb == "branch" { 2 } else { 1 }).collect();
            (CheckoutKind::Changes, or(named, &["stash@{0}"]))
        }
        // The names of its verbs are none of commits.
        "bisect" => (CheckoutKind::Bisected, plain.into_iter().skip(1).cloned().collect()),
        _ => return None,
    };
    if commits.is_empty() && how != CheckoutKind::Bisected {
        return None;
    }
    if commits.iter().any(|word| !word.literal) {
        return Some(Err(UnknownCommit));
    }
    let revision = |word: Word| match word.text.as_str() {
        "-" => "@{-1}".to_owned(),
        number if name == "stash" && number.bytes().all(|byte| byte.is_ascii_digit()) => format!("stash@{{{number}}}"),
        _ => word.text,
    };
    Some(Ok((how, commits.into_iter().map(revision).collect())))
}

/// The shell changes the name of a commit.
pub(super) struct UnknownCommit;

/// The commits of a rebase that has stopped.
const REBASED: &[&str] = &[
    "ORIG_HEAD",
    "REBASE_HEAD",
    "rebase-merge/orig-head",
    "rebase-merge/onto",
    "rebase-apply/orig-head",
    "rebase-apply/onto",
];
