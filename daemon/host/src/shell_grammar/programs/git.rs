//! `git`: aliases, settings and subcommands that name commands, and the files that it shows.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::path::{Component, Path};

use toold_engine::effects::AddedEffect;
use toold_engine::need::{CheckedOutCommits, CommandForm, FormOption, ShownFiles};
use toold_engine::policy::is_secret;
use toold_proto::cut;
use toold_proto::effect::Effect;

use super::known::find;
use super::operation_effects::is_milder;
use super::options::{Parsed, parse};
use super::pathspec::{Pathspecs, excludes};
use super::repository::settings::RepositoryProblem;
use super::repository::{self, Repository};
use super::shown::{self, GitCommand};
use super::{CommandContext, CommandOutput, FileAccess, FileUse, Reading};
use super::{overwritten, pushed};
use crate::shell_grammar::arg::{Arg, WordPart};
use crate::shell_grammar::expand;
use crate::shell_grammar::trees::TreeFilter;

/// Settings that name no command, in small letters. Compared as a whole: what a key begins with says nothing about it.
const HARMLESS_SETTINGS: &[&str] = &[
    "advice.addignoredfile",
    "advice.detachedhead",
    "advice.skippedcherrypicks",
    "advice.statushints",
    "advice.updatesparsepath",
    "color.branch",
    "color.diff",
    "color.grep",
    "color.interactive",
    "color.pager",
    "color.push",
    "color.remote",
    "color.showbranch",
    "color.status",
    "color.ui",
    "column.branch",
    "column.status",
    "column.tag",
    "column.ui",
    "user.email",
    "user.name",
    "user.useconfigonly",
    "core.quotepath",
    "core.autocrlf",
    "core.eol",
    "core.abbrev",
    "core.precomposeunicode",
    "core.ignorecase",
    "core.longpaths",
    "core.filemode",
    "init.defaultbranch",
    "commit.gpgsign",
    "tag.gpgsign",
    "pull.rebase",
    "pull.ff",
    "push.default",
    "push.autosetupremote",
    "merge.conflictstyle",
    "diff.renames",
    "diff.algorithm",
    "diff.context",
    "diff.noprefix",
    "diff.mnemonicprefix",
    "log.date",
    "log.decorate",
    "log.abbrevcommit",
    "status.branch",
    "status.relativepaths",
    "status.renames",
    "status.short",
    "status.showstash",
    "status.showuntrackedfiles",
    "rerere.enabled",
    "fetch.prune",
    "gc.auto",
    "http.postbuffer",
    "safe.directory",
];

pub(super) fn read(words: &[Arg], site: &CommandContext) -> Option<Reading> {
    let known = find("git")?;
    Some(match read_known(known, words, site) {
        ControlFlow::Continue(reading) => reading,
        ControlFlow::Break(mut unknown) => {
            shown::add_all(words, site, &mut unknown);
            unknown
        }
    })
}

/// Breaks with the reading of a command of which it is not known what Git does.
fn read_known(
    known: &'static super::ProgramTable,
    words: &[Arg],
    site: &CommandContext,
) -> ControlFlow<Reading, Reading> {
    let mut reading = Reading::default();
    if words.iter().any(|word| word.start().starts_with("ext::")) {
        return ControlFlow::Break(reading.runs_any("an ext:: address runs a command"));
    }
    let mut folder: Option<Arg> = None;
    let (mut is_elsewhere, mut is_set) = (false, false);
    // The options before the subcommand, and the repository that they name.
    let mut before: Vec<FormOption> = Vec::new();
    let mut named: Vec<Arg> = Vec::new();
    let mut at = 0;
    while let Some(word) = words.get(at) {
        at += 1;
        if word.start().starts_with('-') {
            let takes_value = ["-c", "-C", "--git-dir", "--work-tree", "--namespace"].iter().any(|name| word.is(name));
            let value = words.get(at).filter(|_| takes_value);
            let values = value.map(Arg::word).into_iter().collect();
            before.push(FormOption { names: vec![word.start().to_owned()], values });
        }
        let Some(text) = word.literal() else {
            return ControlFlow::Break(
                reading.runs_any(format!("the shell expands {}, and the result is unknown", word.raw)),
            );
        };
        match text {
            "-c" => {
                is_set = true;
                let setting = words.get(at).and_then(Arg::literal);
                at += 1;
                let Some(setting) = setting else {
                    return ControlFlow::Break(
                        reading.runs_any("the shell expands the setting after -c, and the result is unknown"),
                    );
                };
                let (key, value) = setting.split_once('=').unwrap_or((setting, ""));
                let key = key.to_ascii_lowercase();
                if key.starts_with("alias.") {
                    reading.scripts.push(match value.trim_start().strip_prefix('!') {
                        Some(script) => script.to_owned(),
                        None => format!("git {value}"),
                    });
                } else if !HARMLESS_SETTINGS.contains(&key.as_str()) && !names_plain_program(&key, value) {
                    return ControlFlow::Break(
                        reading.runs_any(format!("the setting {key} is not known to be harmless")),
                    );
                }
            }
            "-C" => {
                // Each `-C` is relative to the one before.
                folder = match (folder.take(), words.get(at)) {
                    (Some(before), Some(next)) => {
                        let joined = std::path::Path::new(before.start()).join(next.literal().unwrap_or_default());
                        next.literal().map(|_| Arg::text(&joined.to_string_lossy()))
                    }
                    (_, next) => next.cloned(),
                };
                at += 1;
                if folder.as_ref().is_none_or(|folder| folder.literal().is_none()) {
                    return ControlFlow::Break(reading.unsure("the folder after -C is unknown"));
                }
            }
            "--git-dir" | "--work-tree" | "--namespace" => {
                named.extend(words.get(at).filter(|_| text != "--namespace").cloned());
                at += 1;
                is_elsewhere = true;
            }
            "--help" | "-h" => {
                // With a subcommand it runs a viewer.
                return ControlFlow::Continue(match words.len() {
                    1 => Reading { reads_only: true, ..reading },
                    _ => reading.unsure("it opens a manual page in another program"),
                });
            }
            "-p"
            | "-P"
            | "--paginate"
            | "--no-pager"
            | "--bare"
            | "--no-replace-objects"
            | "--literal-pathspecs"
            | "--no-optional-locks"
            | "--version"
            | "-v"
            | "--exec-path"
            | "--html-path" => {
                is_elsewhere |= text == "--bare";
            }
            _ if ["--git-dir=", "--work-tree=", "--namespace="].iter().any(|start| text.starts_with(start)) => {
                let value = word.without_start(text.find('=').map_or(0, |at| at + 1));
                named.extend(Some(value).filter(|_| !text.starts_with("--namespace")));
                is_elsewhere = true;
            }
            _ if text.starts_with("--config-env") || text.starts_with("--exec-path=") => {
                return ControlFlow::Break(reading.runs_any(format!("{text} may name a program that Git runs")));
            }
            _ if text.starts_with('-') => {
                return ControlFlow::Break(reading.unsure(format!("{text} is not known to be harmless")));
            }
            name => {
                let Some(known) = known.subcommands.get(name) else {
                    return ControlFlow::Break(
                        reading.runs_any(format!("toold does not know git {name}; it may be an alias")),
                    );
                };
                let mut of = subcommand(name, known, &words[at..], folder.as_ref());
                let changes_settings = changes_settings(name, of.form.as_ref(), &words[at..], site, folder.as_ref());
                if let Some(form) = &mut of.form {
                    form.plain.insert(0, word.word());
                    form.options.append(&mut before);
                }
                of.scripts.append(&mut reading.scripts);
                of.note(word, "subcommand");
                // Before its own words.
                of.notes.rotate_right(1);
                if is_elsewhere {
                    of.doubt("an option names its repository, and any tool may have written the settings there");
                }
                let repository = match is_elsewhere {
                    true => Err(RepositoryProblem::NotKnown("its repository is named by an option".to_owned())),
                    false => repository::find(site, folder.as_ref(), name, of.reads_only),
                };
                if name == "diff" && repository.is_err() {
                    // Then it compares any files.
                    let read = of.files.iter_mut().filter(|file| file.how == FileAccess::Read);
                    read.for_each(|file| file.how = FileAccess::Tree);
                }
                let own_files = of.files.len();
                if name == "push" {
                    pushed::add(&words[at..], &mut of, repository.as_ref().ok(), site);
                }
                if matches!(name, "pull" | "fetch" | "remote" | "submodule") {
                    pushed::add_pulled(&mut of, repository.as_ref().ok());
                }
                // `--staged` alone writes the index and no file.
                let only_index =
                    name == "restore" && of.form.as_ref().is_some_and(|form| is_milder("git restore", form));
                if only_index {
                    of.files.retain(|file| file.how != FileAccess::Write);
                } else if let Ok(repository) = &repository {
                    overwritten::add(name, &words[at..], &mut of, repository, site, folder.as_ref());
                    of.discards = overwritten::discarded(name, of.form.as_ref(), repository);
                    let is_patch = matches!(name, "apply" | "am") && !of.discards.is_empty();
                    of.writes_in.extend(repository.top.to_str().filter(|_| is_patch).map(Arg::text));
                }
                if let Some(option) = ends_operation(name, &words[at..], repository.as_ref().ok()) {
                    of.added.push(AddedEffect { effect: Effect::Destroy, words: vec![option.to_owned()] });
                    of.note(word, "throws away what was resolved since the operation began");
                }
                if name == "checkout" {
                    restores(&words[at..], &mut of, own_files, repository.as_ref().ok());
                }
                match (overwritten::checked_out(name, of.form.as_ref(), &words[at..]), &repository) {
                    (None, _) => {}
                    (Some(Ok((how, revisions))), Ok(Repository { top, own, .. })) => {
                        let (top, git) = (top.clone(), own.clone());
                        of.checks_out = Some(CheckedOutCommits { git, top, revisions, how });
                    }
                    (Some(_), _) => of.never_free = true,
                }
                if matches!(name, "add" | "stage" | "commit") {
                    of.files.retain(|file| !excludes(file.arg.start()));
                }
                if changes_settings {
                    of.never_free = true;
                    of.note(word, "changes the settings of the repository, which no confined command does");
                }
                if name == "stash" {
                    stashes(&words[at..], &mut of);
                }
                let form = of.form.clone();
                let verbs = of.known.map_or(1, |known| known.name.split(' ').count() - 1);
                let others = other_repositories(name, &words[at..], of.form.as_ref());
                let is_other = |place: &Arg| !place.is(".");
                if let Ok(repository) = repository.as_ref()
                    && name == "push"
                    && others.iter().any(is_other)
                {
                    shown::add_sent(repository, site, &mut of);
                }
                let command = GitCommand { name, words: &words[at..], form: form.as_ref(), verbs };
                shown::add(&command, repository.as_ref().ok(), site, &mut of);
                // It may put the files there.
                if is_elsewhere && !known.reads_only {
                    shown::add_any(&mut of);
                }
                let searched = repository.as_ref().map(|repository| shown::searched(&command, repository, site));
                let searched = searched.unwrap_or_default();
                finish(name, &mut of, repository, &words[at..], &searched);
                if shows_secrets(name, &words[at..], site, folder.as_ref()) {
                    of.added.push(AddedEffect { effect: Effect::Secret, words: Vec::new() });
                    of.note(word, "shows settings, and they hold a password or a token");
                    of.reads_only = false;
                }
                // A setting may change what else Git runs.
                of.reads_only &= !is_set;
                if matches!(name, "clone" | "fetch" | "pull" | "submodule") {
                    others.iter().for_each(|place| shown::add_cloned(place, folder.as_ref(), site, &mut of));
                }
                of.files.extend(named.into_iter().chain(others).flat_map(|place| repository_read(&place, &folder)));
                of.files.extend(made_by_clone(name, of.form.as_ref(), folder.as_ref()));
                if name == "config" {
                    of.files.extend(settings_written(&words[at..], site));
                }
                of.files.extend(folder.map(|folder| FileUse::new(FileAccess::List, folder)));
                return ControlFlow::Continue(of);
            }
        }
    }
    // Without a subcommand it lists things.
    ControlFlow::Continue(Reading { reads_only: reading.scripts.is_empty() && !is_set, ..reading })
}

/// Whether a setting names a program that shows what it gets, or does nothing: `core.pager=cat`, `core.editor=true`.
fn names_plain_program(key: &str, value: &str) -> bool {
    let is_pager = key == "core.pager" || key.starts_with("pager.");
    let is_editor = matches!(key, "core.editor" | "sequence.editor");
    is_pager && matches!(value, "" | "cat" | "false" | "less" | "less -R" | "less -FRX")
        || is_editor && matches!(value, "true" | ":" | "cat")
}

/// The repositories on this machine that a command reads or writes besides its own.
fn other_repositories(name: &str, words: &[Arg], form: Option<&CommandForm>) -> Vec<Arg> {
    let skipped = match name {
        "clone" | "fetch" | "pull" | "push" | "ls-remote" => 0,
        // `git submodule add ADDRESS`, `git remote add NAME ADDRESS`
        "submodule" => 1,
        "remote" => 2,
        "archive" => usize::MAX,
        _ => return Vec::new(),
    };
    let is_address = |word: &&Arg| !word.start().starts_with('-');
    let operands: Vec<Arg> = match form {
        // The subcommand is the first.
        Some(form) if form.plain.iter().all(|word| word.literal) => {
            form.plain.iter().skip(1).map(|word| Arg::text(&word.text)).collect()
        }
        _ => words.iter().filter(is_address).cloned().collect(),
    };
    let by_option = words.iter().filter(|word| word.start().starts_with("--remote="));
    let by_option = by_option.map(|word| word.without_start("--remote=".len()));
    let wanted = if form.is_some() { 1 } else { usize::MAX };
    operands.into_iter().skip(skipped).take(wanted).chain(by_option).filter(is_path).collect()
}

/// Whether an address is a path: it has no host, and is not the name of a remote (git-clone(1), "GIT URLS").
fn is_path(address: &Arg) -> bool {
    let text = address.start();
    let before_slash = text.split('/').next().unwrap_or_default();
    text.starts_with("file://") || text.contains('/') && !before_slash.contains(':') || matches!(text, "." | "..")
}

/// A file of a repository, and the one in the folder above its `.git`: reading it stands for all that Git may read there.
fn repository_read(place: &Arg, folder: &Option<Arg>) -> Vec<FileUse> {
    let place = match place.start().starts_with("file://") {
        true => place.without_start("file://".len()),
        false => place.clone(),
    };
    let above = place.literal().map(|text| text.trim_end_matches('/')).and_then(|text| text.strip_suffix(".git"));
    let above = above.map(|above| Arg::text(if above.is_empty() { "." } else { above }));
    let read = |place: Arg| {
        let file =
            place.literal().map(|text| Arg::text(&format!("{}/HEAD", text.trim_end_matches('/')))).unwrap_or(place);
        FileUse { folder: folder.clone(), ..FileUse::new(FileAccess::Read, file) }
    };
    std::iter::once(place).chain(above).map(read).collect()
}

/// The folder that `git clone` makes if it is not named: the last part of the address (git-clone(1), "<directory>").
fn made_by_clone(name: &str, form: Option<&CommandForm>, folder: Option<&Arg>) -> Option<FileUse> {
    let [_, address] = form.filter(|_| name == "clone")?.plain.as_slice() else { return None };
    let made = cloned_name(Some(address.text.as_str()).filter(|_| address.literal)?)?;
    Some(FileUse { folder: folder.cloned(), ..FileUse::new(FileAccess::Write, Arg::text(made)) })
}

pub(super) fn cloned_name(address: &str) -> Option<&str> {
    let plain = address.trim_end_matches('/').trim_end_matches("/.git");
    let last = plain.rsplit(['/', ':']).next().unwrap_or_default();
    Some(last.strip_suffix(".git").unwrap_or(last)).filter(|name| !name.is_empty())
}

fn subcommand(name: &str, known: &'static super::ProgramTable, words: &[Arg], folder: Option<&Arg>) -> Reading {
    if name == "bisect" && words.first().is_some_and(|word| word.is("run")) {
        let mut reading = Reading::default();
        reading.command(&words[1..]);
        return reading;
    }
    if let ("submodule", Some(at)) = (name, words.iter().position(|word| word.is("foreach"))) {
        let mut reading = Reading::default();
        let flags = words[at + 1..].iter().take_while(|word| word.start().starts_with('-')).count();
        reading.script(&words[at + 1 + flags..]);
        return reading;
    }
    if name == "rebase" {
        let mut reading = parse(known, words).into_reading();
        for script in executed(words) {
            reading.script(&[script]);
        }
        return reading;
    }
    let parsed = parse(known, words);
    if name == "config" {
        let mut reading = parsed.into_reading();
        // `git config KEY --` sets the key.
        if words.iter().any(|word| word.is("--")) {
            reading.doubt("-- may be a value here");
        }
        // What it sets, any later command of Git may run.
        reading.may_run_any |= reading.unsure.is_some() && may_set_program(words);
        return reading;
    }
    if matches!(name, "add" | "stage") && parsed.has(&["-f", "--force"]) {
        return parsed.into_reading().unsure("-f adds ignored files, which may hold secrets");
    }
    if name == "clean" && parsed.has(&["-x", "-X"]) && !parsed.has(&["-n", "--dry-run"]) {
        let filter = TreeFilter { excluded_at_top: vec![".git".to_owned()], ..TreeFilter::default() };
        let filter = Some(std::rc::Rc::new(filter));
        let removed = |path: Arg| FileUse {
            folder: folder.cloned(),
            filter: filter.clone(),
            is_whole: true,
            ..FileUse::new(FileAccess::Write, path)
        };
        let paths = if parsed.operands.is_empty() { vec![Arg::text(".")] } else { parsed.operands.clone() };
        let mut reading = parsed.into_reading();
        reading.files = paths.into_iter().map(removed).collect();
        return reading;
    }
    // Another program verifies signatures.
    let signs = |word: &&Arg| word.start().contains("%G") || word.start().contains("signature");
    if let Some(word) = words.iter().find(signs) {
        return parsed.into_reading().unsure(format!("{} runs the program that checks signatures", word.raw));
    }
    if words.iter().any(|word| word.is("--help")) {
        return parsed.into_reading().unsure("it opens a manual page in another program");
    }
    let shows_contents = matches!(
        name,
        "show"
            | "diff"
            | "log"
            | "blame"
            | "annotate"
            | "cat-file"
            | "grep"
            | "whatchanged"
            | "diff-tree"
            | "diff-index"
            | "diff-files"
            | "stash"
            | "archive"
            | "hash-object"
    );
    // It numbers the names: `0001-x.patch`, `v2-0001-x.patch`.
    let numbered: Vec<FileUse> = match name == "format-patch" && !parsed.has(&["--stdout"]) {
        true => {
            let folder = parsed.values(&["-o", "--output-directory"]).last().cloned();
            let folder = folder.unwrap_or_else(|| Arg::text("."));
            let names = ["", "v"].map(|start| Arg::joined(&folder, &format!("/{start}"), "[0-9]"));
            names.map(|name| FileUse::new(FileAccess::Write, name.followed_by_any())).into()
        }
        false => Vec::new(),
    };
    let files = if shows_contents { named(&parsed, name) } else { Vec::new() };
    let of_options = parsed.reading.files.clone();
    let mut reading = parsed.into_reading();
    if shows_contents {
        reading.files = [of_options, files].concat();
    }
    reading.files.extend(numbered);
    for file in &mut reading.files {
        file.folder = file.folder.take().or_else(|| folder.cloned());
    }
    reading
}

/// The commands that `git rebase` runs for each commit (git-rebase(1), "--exec").
fn executed(words: &[Arg]) -> Vec<Arg> {
    let of = |(at, word): (usize, &Arg)| match word.start() {
        "-x" | "--exec" => words.get(at + 1).cloned(),
        text if text.starts_with("--exec=") => Some(word.without_start("--exec=".len())),
        text if text.starts_with("-x") => Some(word.without_start("-x".len())),
        _ => None,
    };
    words.iter().enumerate().filter_map(of).collect()
}

/// `git checkout PATH` throws away the changes of the files, as `git restore PATH` does. Those that it overwrites stand behind
/// so many others.
fn restores(words: &[Arg], reading: &mut Reading, own_files: usize, repository: Option<&Repository>) {
    let of_branch = ["-b", "-B", "--orphan", "-d", "--detach", "-t", "--track"];
    let Some(form) = &reading.form else { return };
    // Behind `--` there are only paths.
    if words.iter().any(|word| word.is("--")) {
        return;
    }
    let only_takes_paths = words.iter().any(|word| word.is("--ours") || word.is("--theirs"));
    if form.options.iter().any(|option| option.names.iter().any(|name| of_branch.contains(&name.as_str()))) {
        return;
    }
    let mut paths: Vec<Arg> = reading.files.iter().skip(own_files).map(|file| file.arg.clone()).collect();
    // The first operand, behind the subcommand, may be a pathspec, or begin as the path of a file.
    if let Some(first) = form.plain.get(1) {
        let may_be_path = match repository {
            Some(repository) => {
                let start = words.iter().find(|word| word.raw == first.text).map(Arg::start).unwrap_or_default();
                let named = repository.folder.join(start);
                let begins = |name: &str| {
                    repository.top.join(name).to_string_lossy().starts_with(named.to_string_lossy().as_ref())
                };
                !first.literal && start.contains('/') && repository.tracked_names().any(begins)
            }
            // No branch is known, and few have a dot in their names.
            None => first.text.contains('.'),
        };
        if may_be_path || only_takes_paths || first.literal && first.text.starts_with(':') {
            paths.push(Arg::text(&first.text));
        }
    }
    let mut words: Vec<String> = paths.into_iter().map(|path| path.word().text).collect();
    words.dedup();
    if !words.is_empty() {
        reading
            .also
            .push(["git", "restore"].into_iter().chain(words.iter().map(String::as_str)).map(Arg::text).collect());
        reading.added.push(AddedEffect { effect: Effect::Destroy, words: words.into_iter().take(1).collect() });
    }
}

/// Whether a command that changes commits, branches or files writes `.git/config` or other settings as well, or needs them to be as
/// they are without a confinement. It fails there, or does a part of its work without saying so. `form` is that of its own words,
/// `words`.
fn changes_settings(
    name: &str,
    form: Option<&CommandForm>,
    words: &[Arg],
    site: &CommandContext,
    folder: Option<&Arg>,
) -> bool {
    let has = |names: &[&str]| {
        form.is_some_and(|form| {
            form.options.iter().any(|option| option.names.iter().any(|name| names.contains(&name.as_str())))
        })
    };
    let verb = words.iter().find(|word| !word.start().starts_with('-')).and_then(Arg::literal).unwrap_or_default();
    match name {
        "branch" => has(&[
            "-m",
            "--move",
            "-M",
            "-c",
            "--copy",
            "-C",
            "-u",
            "--set-upstream-to",
            "--unset-upstream",
            "-t",
            "--track",
        ]),
        "checkout" | "switch" => has(&["-t", "--track"]),
        "remote" => matches!(verb, "add" | "set-url" | "remove" | "rm" | "rename" | "set-branches"),
        "worktree" => matches!(verb, "remove" | "move"),
        "sparse-checkout" => verb != "list",
        "config" => sets_keys(words),
        "submodule" => matches!(verb, "init" | "deinit" | "sync" | "add" | "absorbgitdirs"),
        // A new repository has none yet.
        "init" => {
            let made = form.and_then(|form| form.plain.first()).map_or(".", |word| word.text.as_str());
            let here = site.folders.unwrap_or_default().iter();
            let folder = folder.and_then(Arg::literal).unwrap_or(".");
            here.map(|here| here.join(folder).join(made)).any(|made| made.join(".git").exists())
        }
        _ => false,
    }
}

/// The option that ends an operation which is in progress, or may be, and throws away what was resolved for it (git-merge(1),
/// git-rebase(1), "--abort").
fn ends_operation(name: &str, words: &[Arg], repository: Option<&Repository>) -> Option<&'static str> {
    let in_progress: &[&str] = match name {
        "merge" => &["MERGE_HEAD"],
        "rebase" => &["rebase-merge", "rebase-apply"],
        "am" => &["rebase-apply"],
        "cherry-pick" => &["CHERRY_PICK_HEAD", "sequencer"],
        "revert" => &["REVERT_HEAD", "sequencer"],
        _ => return None,
    };
    let option = ["--abort", "--skip"].into_iter().find(|option| words.iter().any(|word| word.is(option)))?;
    let is_there =
        |repository: &Repository| in_progress.iter().any(|state| repository.own.join(state).symlink_metadata().is_ok());
    repository.is_none_or(is_there).then_some(option)
}

/// The file outside of the repository that `git config` writes (git-config(1), "FILES").
fn settings_written(words: &[Arg], site: &CommandContext) -> Option<FileUse> {
    let has = |option: &str| words.iter().any(|word| word.is(option));
    let is_global = has("--global");
    if !is_global && !has("--system") || !sets_keys(words) {
        return None;
    }
    let variable = |name: &str| site.environment.get(name).map(|value| value.to_string_lossy().into_owned());
    let file = match is_global {
        true => variable("GIT_CONFIG_GLOBAL").or_else(|| Some(format!("{}/.gitconfig", variable("HOME")?))),
        false => variable("GIT_CONFIG_SYSTEM").or_else(|| Some("/etc/gitconfig".to_owned())),
    };
    file.map(|file| FileUse::new(FileAccess::Write, Arg::text(&file)))
}

/// Whether `git config` changes keys, and does not show some.
fn sets_keys(words: &[Arg]) -> bool {
    const READING: &str =
        "--get --get-all --get-regexp --get-urlmatch --get-color --get-colorbool --list -l get list --help -h";
    const WITH_VALUES: &str = "--type --default -f --file --blob";
    let is = |word: &Arg, options: &str| options.split(' ').any(|option| word.is(option));
    let has = |options: &str| words.iter().any(|word| is(word, options));
    // A key alone is shown.
    let is_value = |at: usize| at > 0 && is(&words[at - 1], WITH_VALUES);
    let plain = (0..words.len()).filter(|at| !words[*at].start().starts_with('-') && !is_value(*at)).count();
    !has(READING) && (plain > 1 || has("--unset --unset-all --remove-section --rename-section --edit -e edit"))
}

/// Whether `git config` may set a key that names a program.
fn may_set_program(words: &[Arg]) -> bool {
    let only_removes = ["--unset", "--unset-all", "--remove-section", "unset", "remove-section"];
    let is_harmless =
        |word: &Arg| word.literal().is_some_and(|text| HARMLESS_SETTINGS.contains(&text.to_ascii_lowercase().as_str()));
    let is_key = |word: &&Arg| word.literal().is_none_or(|text| !text.starts_with('-') && text.contains('.'));
    // A file that an option names looks like a key as well.
    let mut keys = words.iter().filter(is_key);
    let removes = words.iter().any(|word| only_removes.iter().any(|option| word.is(option)));
    !removes && !keys.next().is_some_and(is_harmless)
}

/// The files that the words name: `REVISION:PATH`, or paths.
///
/// The same command without operands shows all tracked files, so an unknown operand shows no more. But `diff` of two
/// paths compares any files.
fn named(parsed: &Parsed, name: &str) -> Vec<FileUse> {
    let skipped = usize::from(name == "grep" && !parsed.has(&["-e", "-f"]));
    let is_head = |operand: &Arg| {
        operand
            .literal()
            .and_then(|text| text.strip_prefix("HEAD"))
            .is_some_and(|rest| rest.chars().all(|c| "~^0123456789".contains(c)))
    };
    let paths = parsed.operands.iter().filter(|operand| !is_head(operand)).count();
    // Paths outside of the repository are compared with all that is in them, also what Git does not track.
    let is_outside = |operand: &Arg| {
        operand.literal().is_none_or(|text| {
            text.starts_with(['/', '~']) || Path::new(text).components().any(|part| part == Component::ParentDir)
        })
    };
    let compares_any = name == "diff" && (parsed.has(&["--no-index"]) || parsed.operands.iter().any(is_outside));
    let how = if compares_any { FileAccess::Tree } else { FileAccess::Read };
    let mut files = Vec::new();
    for range in parsed.values(&["-L"]) {
        if let Some(at) = range.start().rfind(':') {
            files.push(FileUse::new(FileAccess::Read, range.without_start(at + 1)));
        }
    }
    // Excluded paths are not shown.
    for operand in parsed.operands.iter().skip(skipped).filter(|operand| !excludes(operand.start())) {
        let is_known = operand.literal().is_some()
            || operand.has_glob()
            || matches!(operand.pieces.as_slice(), [WordPart::Names(_)]);
        let is_name =
            (operand.is_one() || operand.pieces == [WordPart::Maybe]) && !operand.start().starts_with(['/', '.']);
        if !is_known && is_name && (name != "diff" || paths < 2) {
            continue;
        }
        files.push(FileUse::new(how, operand.clone()));
        // `REVISION:PATH`; the revision may contain colons and slashes.
        let text = operand.start();
        // Not of a text in a message or a path from the top on, which chooses among the files that it shows.
        let is_of_revision = !text.starts_with(":/");
        let paths = text.match_indices(':').filter(|(at, _)| is_of_revision && at + 1 < text.len());
        files.extend(paths.map(|(at, _)| FileUse::new(FileAccess::Read, operand.without_start(at + 1))));
    }
    files
}

/// Whether it prints settings that hold a password or a token, or that are not all known.
fn shows_secrets(name: &str, words: &[Arg], site: &CommandContext, folder: Option<&Arg>) -> bool {
    let has = |options: &[&str]| words.iter().any(|word| options.iter().any(|option| word.is(option)));
    let shows_address = match name {
        "config" => false,
        // All settings, behind the variables of Git itself.
        "var" if has(&["-l"]) => false,
        "remote" => has(&["-v", "--verbose", "show", "get-url"]),
        "ls-remote" => has(&["--get-url"]),
        _ => return false,
    };
    if !matches!(name, "config" | "var") && !shows_address {
        return false;
    }
    // All settings that may be shown, or those of one section.
    let wanted = match (name, words) {
        ("config", [.., key]) if !has(&["-l", "--list", "list", "--get-regexp", "--regexp", "--get-urlmatch"]) => {
            key.literal().and_then(|key| key.split_once('.')).map(|(section, _)| section.to_ascii_lowercase())
        }
        _ => None,
    };
    let Some([here]) = site.folders else { return true };
    let folder = here.join(folder.and_then(Arg::literal).unwrap_or("."));
    let Some(found) = repository::credentials::sections_with_secrets(site, &folder) else { return true };
    found.iter().any(|section| match &wanted {
        Some(wanted) => section == wanted,
        None if shows_address => matches!(section.as_str(), "remote" | "url"),
        None => true,
    })
}

/// Git runs a program that the repository names.
fn runs_code(reading: &mut Reading, why: &str) {
    reading.added.push(AddedEffect { effect: Effect::Build, words: Vec::new() });
    reading.note(&Arg::text("the repository"), why);
}

/// With these options a stash takes files that Git does not track, ignored ones too, or shows them.
fn stashes(words: &[Arg], reading: &mut Reading) {
    let begins = |long: &str, least: usize| {
        words.iter().any(|word| word.start().len() >= least && long.starts_with(word.start()))
    };
    let has_letter =
        |word: &Arg| word.start().starts_with('-') && !word.start().starts_with("--") && word.start().contains('a');
    let why = match words.first().is_some_and(|word| word.is("show")) {
        true if begins("--include-untracked", 4) || begins("--only-untracked", 4) => {
            "it shows files that Git does not track"
        }
        false if begins("--all", 3) || words.iter().any(has_letter) => "it takes files that Git ignores",
        true | false => return,
    };
    reading.doubt(why);
    reading.hides_file = true;
}

/// `searched`: the paths that choose among the files of `git grep`.
fn finish(
    name: &str,
    reading: &mut Reading,
    repository: Result<Repository, RepositoryProblem>,
    words: &[Arg],
    searched: &Pathspecs,
) {
    if let Some(why) = repository.as_ref().ok().and_then(|repository| repository.runs_inside.as_ref()) {
        runs_code(reading, why);
    }
    let repository = match repository {
        Ok(Repository { problem: Some(problem), .. }) | Err(problem) => {
            let only_reads = reading.reads_only;
            reading.reads_only = false;
            reading.output = CommandOutput::Unknown;
            match problem {
                RepositoryProblem::Odd(why) => reading.doubt(why),
                RepositoryProblem::Runs(why) | RepositoryProblem::Nested(why) if only_reads => reading.doubt(why),
                RepositoryProblem::Nested(why) => {
                    // No word of a pattern shows whose repository it is.
                    reading.places.push(Vec::new());
                    runs_code(reading, &format!("{why}, and no person has chosen this repository"));
                }
                RepositoryProblem::Runs(why) | RepositoryProblem::NotKnown(why) => {
                    if let Some(word) = words.first().filter(|_| only_reads) {
                        reading.note(word, format!("not treated as read-only: {why}"));
                    }
                }
            }
            return;
        }
        Ok(repository) => repository,
    };
    // Paths after a revision are relative to the top folder.
    if let Some(top) = repository.top.to_str() {
        let behind_colons =
            |text| memchr::memchr_iter(b':', str::as_bytes(text)).map(move |at| cut::from(text, at + 1));
        let named: HashSet<&str> = words.iter().map(Arg::start).flat_map(behind_colons).collect();
        let behind = |file: &FileUse| named.contains(file.arg.start());
        let from_top: Vec<FileUse> =
            reading.files.iter().filter(|file| file.how == FileAccess::Read && behind(file)).cloned().collect();
        reading.files.extend(from_top.into_iter().map(|file| FileUse { folder: Some(Arg::text(top)), ..file }));
    }
    // The settings of the submodules apply, also of those that only older commits name.
    if words.iter().any(|word| word.start().starts_with("--submodule=d")) {
        reading.doubt("it compares the contents of submodules, whose settings apply too");
    }
    if matches!(name, "blame" | "annotate") {
        let files = repository.ignored_revisions.iter().filter_map(|file| file.to_str());
        reading.files.extend(files.map(|file| FileUse::new(FileAccess::Read, Arg::text(file))));
    }
    let secret_of = |files: &ShownFiles| files.names.iter().flatten().find(|file| is_secret(Path::new(file))).cloned();
    let shown = reading.shows.iter().filter(|_| shown::prints(name));
    let secret = shown.filter_map(|files| Some((secret_of(files)?, files.leaving_out))).next();
    match secret {
        Some((file, Some(magic))) => reading
            .doubt_files(format!("the repository has {file}, which it may show: leave it out with -- '{magic}{file}'")),
        Some((file, None)) => reading.doubt_files(format!("the repository has {file}, which it may show")),
        None => {}
    }
    // Without a path it reads all tracked files.
    if name == "grep" {
        match repository.tracked(words.iter().any(|word| word.start().starts_with("--recurse")), searched) {
            Some(names) => reading.files.push(FileUse::new(FileAccess::Read, expand::arg(names, "tracked files"))),
            None => reading.doubt_files("the tracked files are unknown"),
        }
    }
    let texts: Vec<Option<&str>> = words.iter().map(Arg::literal).collect();
    reading.output = match (name, texts.as_slice()) {
        ("rev-parse", [Some("--show-toplevel")]) => match repository.top.to_str() {
            Some(top) => CommandOutput::Pieces(vec![WordPart::Text(top.to_owned())]),
            None => CommandOutput::Unknown,
        },
        ("rev-parse", [Some("--abbrev-ref"), Some("HEAD")])
        | ("branch", [Some("--show-current")])
        | ("symbolic-ref", [Some("--short"), Some("HEAD")]) => match repository.branch() {
            Some(branch) if name == "rev-parse" || branch != "HEAD" => {
                CommandOutput::Pieces(vec![WordPart::Text(branch)])
            }
            Some(_) => CommandOutput::Unknown,
            None => CommandOutput::Unknown,
        },
        ("rev-parse", [Some("HEAD")] | [Some("--short" | "--verify"), Some("HEAD")])
        | ("rev-parse", [Some("--short=7" | "--short=8" | "--short=10" | "--short=12"), Some("HEAD")])
        | ("merge-base", [Some(_), Some(_)]) => CommandOutput::Pieces(vec![WordPart::Plain]),
        ("rev-list", [Some("--count"), Some(_)]) => CommandOutput::Pieces(vec![WordPart::Number]),
        ("ls-files", _) if texts.iter().all(|text| text.is_some_and(|text| !text.starts_with('-'))) => {
            match repository.tracked(false, &Pathspecs::default()) {
                Some(names) => CommandOutput::Lines(names),
                None => CommandOutput::Unknown,
            }
        }
        _ => CommandOutput::Unknown,
    };
}
