//! The effects of a command, by the table `effects.toml` and by its operands.

use std::collections::HashMap;
use std::sync::LazyLock;

use toold_engine::effects::{AddedEffect, CommandEffects, EffectSet};
use toold_engine::need::{CommandForm, FormOption};
use toold_proto::effect::Effect;

use super::known::{ProgramTable, find};
use super::operation::WHOLE;
use super::options::is_of_engine;
use super::{Reading, interpreters, named_effects, shell, transfers};
use crate::shell_grammar::arg::Arg;

const TABLE: &str = include_str!("effects.toml");

/// Programs that run a script or a module of the project, and the options that name a module.
const INTERPRETERS: &[(&str, &[&str])] = &[
    ("python", &["-m"]),
    ("python3", &["-m"]),
    ("node", &[]),
    ("deno", &[]),
    ("bun", &[]),
    ("ruby", &[]),
    ("perl", &[]),
    ("php", &[]),
    ("lua", &[]),
    ("Rscript", &[]),
    ("tsx", &[]),
    ("ts-node", &[]),
];

/// Operations whose operands are scripts of the project, by their names.
const RUN_SCRIPTS: &[[&str; 2]] = &[["turbo", "run"], ["nx", "run"], ["lerna", "run"]];

/// Modules of Python that run what their words say, as the interpreter does.
const CODE_MODULES: &[&str] = &[
    "IPython",
    "cProfile",
    "code",
    "coverage",
    "debugpy",
    "kernprof",
    "memory_profiler",
    "pdb",
    "profile",
    "runpy",
    "scalene",
    "timeit",
    "trace",
];

/// More of them are no part of the operation.
const MAX_SCRIPTS: usize = 4;

/// A line of the table.
#[derive(Debug)]
struct EffectRow {
    effect: Effect,
    /// The option that has the effect, and its value if only that one does; `None` for the operation itself.
    option: Option<(String, Option<String>)>,
}

static ROWS: LazyLock<HashMap<String, Vec<EffectRow>>> = LazyLock::new(|| {
    // A test reads the table, so a release cannot fail here; without it, no rule about effects covers a command.
    read(TABLE).unwrap_or_else(|error| {
        tracing::error!("the table effects.toml cannot be read: {error}");
        HashMap::new()
    })
});

fn read(text: &str) -> Result<HashMap<String, Vec<EffectRow>>, String> {
    let table: toml::Table = toml::from_str(text).map_err(|error| error.to_string())?;
    let mut rows: HashMap<String, Vec<EffectRow>> = HashMap::new();
    for (name, lines) in &table {
        let effect = Effect::parse(name).ok_or_else(|| format!("{name} is not an effect"))?;
        let lines = lines.as_str().ok_or_else(|| format!("{name}: expected lines of text"))?;
        for line in lines.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let mut words: Vec<&str> = line.split_whitespace().collect();
            let option = words.pop_if(|word| word.starts_with('-'));
            let option = option.map(|option| match option.split_once('=') {
                Some((option, value)) => (option.to_owned(), Some(value.to_owned())),
                None => (option.to_owned(), None),
            });
            let last = words.pop().ok_or_else(|| format!("{name}: {line:?} names no program"))?;
            for last in last.split('|') {
                let operation = [words.as_slice(), &[last]].concat().join(" ");
                rows.entry(operation).or_default().push(EffectRow { effect, option: option.clone() });
            }
        }
    }
    Ok(rows)
}

/// The rows of an entry: those of the name itself, of its last word in any group (`gh * list`), or of the first name of its
/// entry.
fn rows_of(known: &ProgramTable) -> &'static [EffectRow] {
    let program = known.entry.split(' ').next().unwrap_or_default();
    let words: Vec<&str> = known.name.split(' ').collect();
    let own = match words.as_slice() {
        [_, subcommands @ ..] if !subcommands.is_empty() => {
            let named = |word: &str| [&[program], &subcommands[..subcommands.len() - 1], &[word]].concat().join(" ");
            let last = subcommands[subcommands.len() - 1];
            let any_group = || ROWS.get(&format!("{program} * {last}")).filter(|_| subcommands.len() == 2);
            ROWS.get(&named(last)).or_else(any_group)
        }
        _ => ROWS.get(&known.name),
    };
    own.or_else(|| ROWS.get(&known.entry)).map(Vec::as_slice).unwrap_or_default()
}

/// Operations and options that a pattern for commands seems to cover and does not: those of its program, or of its
/// operation, whose effects it does not show. `git *` does not cover `git push`, nor `git push *`
/// `git push -f`. Sorted; empty for a pattern without a wildcard at its end.
pub fn withheld(pattern: &str) -> Vec<(String, Effect)> {
    let Some(words) = pattern.trim().strip_suffix(" *") else { return Vec::new() };
    let words: Vec<&str> = words.split_whitespace().filter(|word| !word.starts_with('-')).collect();
    let shown = |option: &str| pattern.split_whitespace().any(|word| word == option);
    let mut found: Vec<(String, Effect)> = Vec::new();
    for (operation, rows) in ROWS.iter() {
        let names: Vec<&str> = operation.split(' ').collect();
        let is_below = |(at, word): (usize, &&str)| names.get(at).is_some_and(|name| *name == "*" || name == word);
        if !words.iter().enumerate().all(is_below) || !has_verb(&words, &names) {
            continue;
        }
        for row in rows.iter().filter(|row| row.effect.must_be_named()) {
            match &row.option {
                None if names.len() > words.len() => found.push((operation.clone(), row.effect)),
                Some((option, _)) if !shown(option) => found.push((format!("{operation} {option}"), row.effect)),
                None | Some(_) => {}
            }
        }
    }
    found.sort();
    found.dedup_by(|a, b| a.0 == b.0);
    found
}

/// Whether the group of a program that stands for the asterisk of an operation has such a verb: `gh pr` has `create`, and `gh api`
/// has none.
fn has_verb(words: &[&str], operation: &[&str]) -> bool {
    let group =
        operation.iter().position(|name| *name == "*").and_then(|at| Some((words.get(at)?, operation.get(at + 1)?)));
    let Some((group, verb)) = group else { return true };
    let known = find(operation[0]).and_then(|program| program.subcommands.get(*group));
    known.is_none_or(|group| group.subcommands.contains_key(*verb))
}

/// The effects of a command, whose first word is its program. `head`: how many of its first words choose the operation,
/// where that is known.
pub(in crate::shell_grammar) fn effects_of(words: &[Arg], reading: &Reading, head: Option<usize>) -> CommandEffects {
    let mut effects = effects_by_tables(words, reading, head);
    effects.places.clone_from(&reading.places);
    effects.targets.clone_from(&reading.targets);
    // `python3 -m pip install x` does what `pip install x` does.
    if let Some(tool) = interpreters::tool(words)
        && let Some(name) = tool[0].literal()
    {
        let mut of_tool = effects_of(&tool, &super::from_table(name, &tool[1..]), None);
        of_tool.operation = of_tool.operation.without(Effect::Read);
        effects.join(of_tool);
    }
    // What it sends elsewhere, it reads.
    let reads = |file: &super::FileUse| matches!(file.how, super::FileAccess::Read | super::FileAccess::Tree);
    let goes_elsewhere = |effects: EffectSet| {
        [Effect::Send, Effect::Publish, Effect::Change].iter().any(|effect| effects.contains(*effect))
    };
    if goes_elsewhere(effects.all()) && reading.files.iter().any(reads) {
        effects.operation = effects.operation.with(Effect::Read);
    }
    if effects.operation.iter().all(|effect| !effect.must_be_named())
        && let Some((effect, name)) = named_effects::of(words)
    {
        effects.operation = effects.operation.with(effect);
        // A module stays that of its interpreter: `python3 -m pytest`.
        if effects.name.get(1).is_none_or(|option| option != "-m") {
            effects.name = name;
        }
        // The scripts that they run.
        if RUN_SCRIPTS.iter().any(|runner| effects.name.iter().eq(runner)) {
            let behind = words.iter().skip(effects.name.len()).map_while(Arg::literal);
            let scripts = behind.take_while(|word| !word.starts_with('-')).take(MAX_SCRIPTS);
            effects.name.extend(scripts.map(str::to_owned));
        }
    }
    let is_of_project = reading.is_installed && reading.elsewhere.iter().all(|tool| named_effects::shows(tool));
    if is_of_project || named_effects::shows(words) {
        effects.operation = effects.operation.with(Effect::Read);
    }
    // The option keeps it from writing.
    if named_effects::shows(words) {
        effects.operation = effects.operation.without(Effect::Write);
    }
    if !reading.reads_only && tells_of_itself(words) {
        effects.operation = [Effect::Build, Effect::Read].into_iter().collect();
        effects.added.clear();
    }
    effects
}

fn effects_by_tables(words: &[Arg], reading: &Reading, head: Option<usize>) -> CommandEffects {
    let mut effects = CommandEffects::default();
    let Some(path) = words.first().and_then(Arg::literal) else { return effects };
    let name = path.rsplit('/').next().unwrap_or_default();
    if let Some(known) = reading.known {
        let rows = if reading.reads_only { &[] } else { rows_of(known) };
        effects.operation = rows.iter().filter(|row| row.option.is_none()).map(|row| row.effect).collect();
        let by_words = by_statement(known, words, head, reading.unsure.is_some())
            .or_else(|| transfers::effects_by_direction(known, reading.form.as_ref()));
        effects.operation = by_words.unwrap_or(effects.operation);
        if reading.is_installed {
            effects.operation = effects.operation.without(Effect::Install);
        }
        if effects.operation.is_empty() && !reading.is_unknown_operation {
            effects.operation = EffectSet::EMPTY.with(Effect::Read);
        }
        effects.name = operation_name(words, reading, known, head);
        if reading.form.as_ref().is_some_and(|form| is_milder(&known.entry, form)) {
            effects.operation = match known.entry.as_str() {
                // It makes the package, as `cargo package` does.
                "cargo publish" => [Effect::Build, Effect::Write, Effect::Fetch].into_iter().collect(),
                _ => [Effect::History, Effect::Read].into_iter().collect(),
            };
        }
        if known.entry == "kill" && reading.form.as_ref().is_some_and(ends_own_jobs) {
            effects.operation = EffectSet::READING;
        }
        if let Some(form) = &reading.form {
            let form = &without_folders_of_git(known, words, form);
            effects.added.extend(rows.iter().filter_map(|row| by_option(row, known, form)));
            effects.added.extend(by_operands(&known.entry, words, form));
        } else {
            // The options that were read have their effects, whatever the others do.
            let form = CommandForm { options: reading.given.clone(), ..CommandForm::default() };
            effects.added.extend(rows.iter().filter_map(|row| by_option(row, known, &form)));
        }
        effects.added.extend(reading.added.iter().cloned());
    } else if let Some((_, modules)) = INTERPRETERS.iter().find(|(interpreter, _)| *interpreter == name) {
        effects.operation = EffectSet::EMPTY.with(Effect::Build);
        if shows_by_code(words, modules) {
            effects.operation = effects.operation.with(Effect::Read);
        }
        effects.name = script_name(words, modules);
    } else if matches!(path, "cd" | "pushd" | "popd") {
        effects.operation = EffectSet::READING;
    } else if shell::NAMES.contains(&name)
        || matches!(path, "source" | ".")
        || path.contains('/') && !path.starts_with('/')
    {
        // A script, or a program of the project.
        // What it runs of its words is judged by itself.
        let is_judged = shell::NAMES.contains(&name)
            && !reading.scripts.is_empty()
            && reading.script_file.is_none()
            && reading.unsure.is_none()
            && !reading.may_run_any
            && !reading.runs_input;
        let effect = if reading.reads_only || is_judged { Effect::Read } else { Effect::Build };
        effects.operation = EffectSet::EMPTY.with(effect);
        // `bash deploy.sh` runs the script, as `./deploy.sh` does.
        let script = words.get(1).filter(|_| reading.script_file.is_some());
        let script = script.and_then(Arg::literal).filter(|script| !script.starts_with('-'));
        let script = script.filter(|script| script.contains(['.', '/']));
        let names_script = script.is_some() || !shell::NAMES.contains(&name);
        effects.name = words[0].literal().into_iter().chain(script).map(str::to_owned).collect();
        let verb = words.get(effects.name.len()).and_then(Arg::literal).filter(|word| names_script && is_verb(word));
        effects.name.extend(verb.map(str::to_owned));
    }
    effects
}

/// The effects of programs whose words are a language or an interface of its own: of clouds by the groups and the verb, of
/// databases by whether the statement is known to read.
fn by_statement(known: &ProgramTable, words: &[Arg], head: Option<usize>, is_unsure: bool) -> Option<EffectSet> {
    let effect = match known.name.as_str() {
        "aws" | "gcloud" | "az" => return of_cloud(words, head?),
        "psql" | "mysql" | "mariadb" | "sqlite3" if is_unsure && removes_rows(words) => Effect::Destroy,
        "psql" | "mysql" | "mariadb" if is_unsure => Effect::Change,
        "sqlite3" if is_unsure => Effect::Write,
        _ => return None,
    };
    Some(EffectSet::EMPTY.with(effect))
}

/// By the words of the operation, which are groups and a verb: `az keyvault secret show`.
fn of_cloud(words: &[Arg], head: usize) -> Option<EffectSet> {
    let names: Vec<&str> = words.get(1..head)?.iter().filter_map(Arg::literal).collect();
    let (verb, groups) = names.split_last()?;
    let has = |parts: &[&str]| verb.split('-').any(|part| parts.contains(&part));
    let is_in = |parts: &[&str]| groups.iter().any(|group| parts.contains(group));
    let reads = has(&["list", "ls", "get", "describe", "show", "head", "search", "query", "wait", "help"]);
    let is_secret = has(&[
        "token",
        "password",
        "credential",
        "credentials",
        "secret",
        "secrets",
        "keys",
        "access",
        "decrypt",
        "assume",
        "connection",
        "publishing",
        "rbac",
    ]) || has(&["create", "download"]) && has(&["pair"])
        || has(&["api"]) && has(&["key"])
        || is_in(&["kms"]) && has(&["generate"])
        || is_in(&["keys", "credential", "credentials", "connection-string", "appsettings"])
        // Lists of these have names alone.
        || is_in(&["secret", "secrets"]) && !matches!(*verb, "list" | "describe")
        // Only the region and the like are no secrets.
        || groups == ["configure"] && *verb == "get" && !matches!(words.get(head).and_then(Arg::literal), Some("region" | "output"));
    let is_right = is_in(&["iam", "role", "permission", "permissions"])
        || has(&["iam", "permission", "permissions", "grant", "policy", "acl"]);
    let effect = if has(&[
        "delete",
        "rm",
        "rb",
        "terminate",
        "purge",
        "remove",
        "destroy",
        "deregister",
        "release",
        "deletion",
        "close",
    ]) {
        Effect::Destroy
    } else if has(&["presign"]) {
        Effect::Publish
    } else if is_right && !reads {
        Effect::Privilege
    } else if reads || is_secret && has(&["access", "print", "decrypt", "generate"]) {
        Effect::Fetch
    } else if has(&["cp", "mv", "sync", "upload", "import", "put"]) {
        Effect::Send
    } else {
        Effect::Change
    };
    let secret = is_secret.then_some(Effect::Secret);
    Some([effect].into_iter().chain(secret).collect())
}

/// Whether a statement removes tables or rows.
fn removes_rows(words: &[Arg]) -> bool {
    let starts = ["drop", "truncate", "delete"];
    words.iter().skip(1).any(|word| {
        let text = word.literal().unwrap_or(&word.raw).to_ascii_lowercase();
        let mut all = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        text.contains(' ') && all.any(|word| starts.contains(&word))
    })
}

/// `git -C FOLDER branch` does not have the option `-C` of `git branch`.
fn without_folders_of_git(known: &ProgramTable, words: &[Arg], form: &CommandForm) -> CommandForm {
    let mut form = form.clone();
    let Some(subcommand) = known.name.strip_prefix("git ").and_then(|rest| rest.split(' ').next()) else { return form };
    let behind = words.iter().skip_while(|word| !word.is(subcommand)).skip(1);
    let has = behind.clone().any(|word| {
        word.literal().is_none()
            || word.start().starts_with('-') && !word.start().starts_with("--") && word.start().contains('C')
    });
    form.options.retain(|option| has || option.names != ["-C"]);
    form
}

fn by_option(row: &EffectRow, known: &ProgramTable, form: &CommandForm) -> Option<AddedEffect> {
    let (option, value) = row.option.as_ref()?;
    let is_of_engine = |given: &FormOption| {
        !given.values.is_empty() && given.values.iter().all(|value| is_of_engine(&known.entry, option, value))
    };
    let has_value = |given: &FormOption| match value {
        Some(value) => given.values.iter().any(|word| !word.literal || word.text == *value),
        None => !is_of_engine(given),
    };
    let given = form.options.iter().find(|given| given.names.contains(option) && has_value(given))?;
    let words = match value {
        Some(value) => given.names.iter().map(|name| format!("{name}={value}")).collect(),
        None => given.names.clone(),
    };
    Some(AddedEffect { effect: row.effect, words })
}

/// Effects of operands, for the programs in which these choose as options do elsewhere.
fn by_operands(entry: &str, words: &[Arg], form: &CommandForm) -> Vec<AddedEffect> {
    let added = |effect, text: &str| AddedEffect { effect, words: vec![text.to_owned()] };
    let names = entry.split(' ').count() - 1;
    let operands = || form.plain.iter().skip(names).map(|word| word.text.as_str());
    match entry {
        // `+main` forces, and `:main` deletes when it is pushed (git-fetch(1) and git-push(1), "<refspec>").
        "git push" | "git fetch" => operands()
            .skip(1)
            .filter(|refspec| refspec.starts_with('+') || entry == "git push" && refspec.starts_with(':'))
            .map(|refspec| added(Effect::Destroy, refspec))
            .collect(),
        // Paths are overwritten by what the index or a commit has (git-checkout(1), "<pathspec>").
        "git checkout" => {
            let is_path =
                |text: &str| text == "." || text.starts_with("./") || text.starts_with("../") || text.ends_with('/');
            let marked = words.iter().position(|word| word.is("--")).filter(|at| at + 1 < words.len());
            let creates =
                form.options.iter().any(|option| option.names.iter().any(|name| name == "-b" || name == "-B"));
            let path = operands().enumerate().find(|(at, text)| !creates && *at > 0 || is_path(text));
            marked
                .map(|_| "--")
                .or(path.map(|(_, text)| text))
                .map(|text| added(Effect::Destroy, text))
                .into_iter()
                .collect()
        }
        "kubectl get" => operands()
            .flat_map(|resources| resources.split(','))
            .filter(|resource| {
                // Case does not count, and `secrets.v1.` is one as well.
                let kind = resource.split(['/', '.']).next().unwrap_or_default().to_ascii_lowercase();
                matches!(kind.as_str(), "secret" | "secrets")
            })
            .map(|resource| added(Effect::Secret, resource))
            .collect(),
        "kubectl apply" if form.plain.first().is_some_and(|word| word.text == "create") => operands()
            .take(1)
            .filter_map(|kind| match kind {
                "secret" | "secrets" | "token" => Some(added(Effect::Secret, kind)),
                "role" | "clusterrole" | "rolebinding" | "clusterrolebinding" => Some(added(Effect::Privilege, kind)),
                _ => None,
            })
            .collect(),
        // Copies from there write here.
        "docker cp" | "docker compose cp" | "kubectl cp" => operands()
            .skip(1)
            .filter(|path| path.contains(':') && !path.starts_with(['/', '.']))
            .map(|path| added(Effect::Change, path))
            .collect(),
        // A chart of others.
        _ if entry.starts_with("helm ") => {
            operands().filter(|chart| chart.contains("://")).map(|chart| added(Effect::Install, chart)).collect()
        }
        "go run" => operands()
            .take(1)
            .filter(|package| package.contains('@'))
            .map(|package| added(Effect::Install, package))
            .collect(),
        // Without a subcommand it installs (yarn(1)).
        "yarn" => installs_by_name(words, form).map(|word| added(Effect::Install, word)).into_iter().collect(),
        // A parameter makes a request that changes something, unless another method is given (gh-api(1), glab-api(1)).
        "gh api" | "glab api" => {
            let given = |names: &[&str]| {
                form.options.iter().any(|option| option.names.iter().any(|name| names.contains(&name.as_str())))
            };
            let posts = given(&["-f", "--raw-field", "-F", "--field", "--input"]) && !given(&["-X", "--method"]);
            posts.then(|| added(Effect::Publish, "-f")).into_iter().collect()
        }
        // A program that then has the rights of its owner.
        "chmod" => {
            operands().take(1).filter(|mode| sets_owner(mode)).map(|mode| added(Effect::Privilege, mode)).collect()
        }
        "install" => {
            let given = |short: &'static str| {
                form.options.iter().filter(move |option| option.names.iter().any(|name| name == short))
            };
            let modes = given("-m").flat_map(|option| &option.values).map(|mode| mode.text.as_str());
            let modes = modes.filter(|mode| sets_owner(mode)).map(|mode| added(Effect::Privilege, mode));
            let owners = ["-o", "-g"].into_iter().filter(|option| given(option).next().is_some());
            modes.chain(owners.map(|option| added(Effect::System, option))).collect()
        }
        "mvn" | "gradle" => operands()
            .filter(|target| target.contains("publish") || target.contains("deploy") || target.contains("release"))
            .map(|target| added(Effect::Publish, target))
            .collect(),
        _ => Vec::new(),
    }
}

/// `yarn` alone installs, and so does `pnpm it`; other words that are no subcommands are scripts of the project.
fn installs_by_name<'f>(words: &[Arg], form: &'f CommandForm) -> Option<&'f str> {
    let program = words.first().and_then(Arg::literal)?.rsplit('/').next()?;
    let only_tells =
        || form.options.iter().any(|option| option.names.iter().any(|name| matches!(name.as_str(), "-h" | "-v")));
    match (program, form.plain.first().map(|word| word.text.as_str())) {
        ("yarn" | "yarnpkg", None) if !only_tells() => Some("yarn"),
        ("pnpm", Some(word @ ("it" | "install-test"))) => Some(word),
        _ => None,
    }
}

/// `u+s`, `4755`: programs of this mode run as their owner or with their group (chmod(1), "SETUID AND SETGID BITS").
fn sets_owner(mode: &str) -> bool {
    let digits = mode.trim_start_matches(['=', '+', '0']);
    match digits.bytes().all(|b| b.is_ascii_digit()) {
        true => digits.len() > 3 && digits.starts_with(['2', '3', '4', '5', '6', '7']),
        false => {
            mode.split(',').any(|clause| clause.split_once(['+', '=']).is_some_and(|(_, what)| what.contains('s')))
        }
    }
}

/// `NAME --version`: an installed program says what it is. Its code does that, which is then run where it can change nothing.
pub(super) fn tells_of_itself(words: &[Arg]) -> bool {
    let [program, option] = words else { return false };
    program.literal().is_some_and(|name| !name.contains('/')) && (option.is("--version") || option.is("--help"))
}

/// `kill %1`: a job of the same shell, which the line itself has started.
fn ends_own_jobs(form: &CommandForm) -> bool {
    !form.plain.is_empty() && form.plain.iter().all(|word| word.literal && word.text.starts_with('%'))
}

/// Whether options make an operation do less than its row says: `git clean -n`, `git restore --staged`, `cargo publish -n`.
pub(super) fn is_milder(entry: &str, form: &CommandForm) -> bool {
    let has = |names: &[&str]| {
        form.options.iter().any(|option| option.names.iter().any(|name| names.contains(&name.as_str())))
    };
    match entry {
        "git clean" => has(&["-n", "--dry-run"]),
        "git rm" => has(&["--cached"]),
        "git restore" => has(&["-S", "--staged"]) && !has(&["-W", "--worktree"]),
        "cargo publish" => has(&["-n", "--dry-run"]),
        _ => false,
    }
}

/// The words that choose what a command does: the program, its subcommand, and the script, target or service that it is given.
/// A wrapper is an operation of its own, whatever it runs.
fn operation_name(words: &[Arg], reading: &Reading, known: &ProgramTable, head: Option<usize>) -> Vec<String> {
    let is_wrapper = !reading.commands.is_empty() || !reading.elsewhere.is_empty() || !reading.scripts.is_empty();
    let first = head.filter(|_| !is_wrapper).and_then(|head| words.get(..head)).unwrap_or_default();
    let is_name = |word: &&Arg| word.literal().is_some_and(|text| !text.starts_with(['-', '+']));
    let by_table = known.name.split(' ').count();
    // Its rules name the operation without the kind of a resource.
    let is_of_kind = known.name.starts_with("kubectl ");
    let is_whole = WHOLE.contains(&known.name.as_str());
    if !is_of_kind && !is_whole && first.len() > by_table && first.iter().all(|word| is_name(&word)) {
        return first.iter().filter_map(|word| word.literal().map(str::to_owned)).collect();
    }
    known.name.split(' ').map(str::to_owned).collect()
}

/// Whether an interpreter runs code of the line, of its input or of a module that shows something: `python3 -c CODE`.
fn shows_by_code(words: &[Arg], modules: &[&str]) -> bool {
    match words.get(1).map(Arg::literal) {
        None => true,
        Some(Some("-")) => true,
        Some(Some(option)) if modules.contains(&option) => words.get(2..).is_some_and(named_effects::shows),
        Some(Some("-c")) => modules.contains(&"-m"),
        Some(Some(option)) => ["-e", "-p", "-r", "-l", "-ne", "--eval", "--print"].contains(&option),
        Some(None) => false,
    }
}

/// The words of an interpreter up to its script or its module, with a subcommand of that; `None` if it has none.
pub(super) fn script_of(words: &[Arg]) -> Option<Vec<String>> {
    let name = words.first()?.literal()?.rsplit('/').next()?;
    let (_, modules) = INTERPRETERS.iter().find(|(interpreter, _)| *interpreter == name)?;
    Some(script_name(words, modules)).filter(|script| script.len() > 1)
}

/// `python3 -m pytest`, `node scripts/x.js`, `python3 manage.py migrate`: a script may have subcommands.
fn script_name(words: &[Arg], modules: &[&str]) -> Vec<String> {
    let texts: Vec<&str> = words.iter().map_while(Arg::literal).collect();
    let script = match texts.as_slice() {
        // Their own subcommand comes before the script.
        ["deno" | "bun" | "tsx", "run" | "test" | "task" | "x" | "watch", rest @ ..] => rest.first().map(|_| 2),
        [_, script, ..] if !script.starts_with('-') => Some(1),
        _ => None,
    };
    // An option before the script may have the next word as its value.
    let script = script.filter(|at| !texts[*at].starts_with('-'));
    let module = texts.iter().skip(1).position(|text| modules.contains(text)).map(|at| at + 2);
    // Another one may have subcommands: `python3 -m alembic upgrade`.
    let of_module = |at: usize| {
        if texts.get(at).is_some_and(|name| CODE_MODULES.contains(name)) {
            return 1;
        }
        let is_known = words.get(at..).is_some_and(named_effects::shows);
        at + 1 + texts.get(at + 1).iter().filter(|text| !is_known && is_verb(text)).count()
    };
    let end = module.map(of_module);
    let of_script = |at: usize| match texts[at].rsplit('/').next() {
        // Each of its words is a command.
        Some("setup.py") => texts.len(),
        _ => at + 1 + texts.get(at + 1).iter().filter(|text| is_verb(text)).count(),
    };
    let end = end.or_else(|| script.map(of_script)).unwrap_or(1);
    texts.iter().take(end).map(|text| (*text).to_owned()).collect()
}

/// Whether a word may be a subcommand.
fn is_verb(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_:".contains(&b))
}

#[cfg(test)]
mod tests {
    use super::super::known;
    use super::*;

    #[test]
    fn each_line_names_an_operation_and_an_option_of_the_tables() {
        let mut wrong: Vec<String> = Vec::new();
        for (operation, rows) in read(TABLE).unwrap() {
            let mut words = operation.split(' ');
            let program = known::find(words.next().unwrap());
            // The entry of the operation, after those that it is below.
            let path: Vec<&ProgramTable> = match (known::find(&operation), program, words.next()) {
                (Some(whole), ..) => vec![whole],
                (None, Some(program), Some("*")) => {
                    let last = words.next().unwrap();
                    program.subcommands.values().find_map(|group| group.subcommands.get(last)).into_iter().collect()
                }
                (None, program, first) => {
                    let below = |entry: Option<&'static ProgramTable>, word: &str| entry?.subcommands.get(word);
                    let entries = first.into_iter().chain(words).scan(program, |entry, word| {
                        *entry = below(*entry, word);
                        Some(*entry)
                    });
                    let path: Option<Vec<_>> = std::iter::once(program).chain(entries).collect();
                    path.unwrap_or_default()
                }
            };
            let options = rows.iter().filter_map(|row| Some(&row.option.as_ref()?.0));
            wrong.extend(match path.is_empty() {
                true => vec![operation.clone()],
                // Options also stand in front of a subcommand.
                false => options
                    .filter(|option| !path.iter().any(|entry| entry.options.contains_key(*option)))
                    .map(|option| format!("{operation} {option}"))
                    .collect(),
            });
        }
        wrong.sort_unstable();
        assert!(wrong.is_empty(), "they are in no table: {wrong:#?}");
    }

    #[test]
    fn each_entry_has_effects_unless_it_only_reads() {
        let mut without: Vec<&str> = known::all_entries()
            .into_iter()
            .filter(|entry| !entry.reads_only && entry.subcommands.is_empty() && rows_of(entry).is_empty())
            .map(|entry| entry.name.as_str())
            .collect();
        without.sort_unstable();
        assert!(without.is_empty(), "{without:#?}");
    }
}
