//! Programs that run the tools of a project, or of a package that they fetch.

use std::path::PathBuf;

use super::in_folder::InFolder;
use super::known::find;
use super::options::parse;
use super::placed::verbs_at;
use super::special::skip_dashes;
use super::{CommandContext, Reading, formatters, named_files};
use crate::shell_grammar::arg::Arg;

/// Their tools are of the project, or found in `PATH`: `poetry run pytest`.
const OF_PROJECT: &[&str] =
    &["uv run", "poetry run", "pipenv run", "pdm run", "rye run", "bundle exec", "pnpm exec", "yarn exec"];

/// Their tools are packages, which they fetch unless they are installed.
const OF_PACKAGES: &[&str] = &[
    "npx",
    "bunx",
    "pnpx",
    "npm exec",
    "npm x",
    "pnpm dlx",
    "yarn dlx",
    "bun x",
    "uvx",
    "uv tool run",
    "uv x",
    "pipx run",
];

/// Those of them that run the project's own `node_modules/.bin/TOOL` if it is there (npm-exec(1)).
const OF_NPM: &[&str] = &["npx", "npm exec", "npm x"];

/// Interpreters, whose words hold the code that they run: they are judged as if written alone.
const INTERPRETERS: &[&str] =
    &["python", "python3", "node", "nodejs", "deno", "bun", "perl", "ruby", "php", "lua", "irb"];

/// Build tools whose operands each name something to do.
const SEVERAL_TARGETS: &[&str] = &["gradle", "gradlew", "mvn", "mvnw", "just", "task", "go-task", "ninja", "samu"];

/// So many words of a command show whether toold knows its program.
const SHOWING: usize = 8;

/// Limit of targets that are looked at one by one.
const MAX_TARGETS: usize = 20;

/// `None` if the program is not one of these.
pub(super) fn read(name: &str, words: &[Arg], site: &CommandContext) -> Option<Reading> {
    if SEVERAL_TARGETS.contains(&name) {
        return Some(targets(name, words));
    }
    let named = |runner: &'static &'static str| {
        let verbs = runner.strip_prefix(name).filter(|verbs| verbs.is_empty() || verbs.starts_with(' '))?;
        Some((*runner, verbs_at(name, words, verbs)?))
    };
    let all = OF_PROJECT.iter().chain(OF_PACKAGES);
    let (runner, at) = all.filter_map(named).max_by_key(|(runner, _)| runner.len())?;
    let (before, words) = words.split_at(at);
    let verbs = runner.split(' ').count() - 1;
    let mut parsed = parse(find(runner)?, words.get(verbs..)?);
    parsed.subcommands = words[..verbs].to_vec();
    let scripts: Vec<Arg> = parsed.values(&["-c", "--call"]).cloned().collect();
    let installs = parsed.has(&["--with", "--with-requirements", "--with-editable"]) && runner.starts_with("uv run");
    let module = parsed.has(&["-m", "--module"]) && runner.starts_with("uv run");
    let picks_package = parsed.has(&["-p", "--package"]);
    let interpreters: &[&str] = if runner.starts_with("uv") { &["-p", "--python"][..] } else { &["--python"] };
    let python =
        parsed.values(interpreters).find(|value| value.start().contains('/') || value.literal().is_none()).cloned();
    let command = skip_dashes(&parsed.command);
    // `yarn exec 'npm publish'`: a shell reads it.
    let command = match command.split_first().and_then(|(first, behind)| Some((first.literal()?, behind))) {
        Some((text, behind)) if text.contains(char::is_whitespace) => {
            text.split_whitespace().map(Arg::text).chain(behind.iter().cloned()).collect()
        }
        _ => command.to_vec(),
    };
    let mut folder = parsed.entered();
    let mut reading = parsed.into_reading();
    reading.commands.clear();
    reading.scripts.clear();
    for (at, verb) in words[..verbs].iter().enumerate() {
        reading.notes.insert(at, super::Note { text: verb.raw.clone(), meaning: "subcommand".to_owned() });
    }
    if !before.is_empty() {
        match find(name) {
            Some(known) => {
                let before = parse(known, before);
                folder = before.entered().or(folder);
                reading.behind(before.into_reading());
            }
            None => reading.doubt("its first options are not known to be harmless"),
        }
    }
    if installs {
        reading.doubt("--with installs a package");
    }
    if let Some(python) = python {
        reading.may_run_any = true;
        reading.doubt(format!("--python runs the program {}", python.raw));
    }
    for script in &scripts {
        reading.script(std::slice::from_ref(script));
    }
    let Some(tool) = command.first() else {
        let is_known = !scripts.is_empty();
        return Some(if is_known { reading } else { reading.runs_any("the command that it runs is unknown") });
    };
    if !tool.is_one() || tool.may_be_option() || tool.literal().is_none() {
        return Some(reading.runs_any(format!("the program that {} names is unknown", tool.raw)));
    }
    let text = tool.literal().unwrap_or_default();
    if OF_PACKAGES.contains(&runner) {
        reading.is_installed = OF_NPM.contains(&runner) && !picks_package && is_installed(text, site);
        let tool = [vec![Arg::text(program_of(text))], command[1..].to_vec()].concat();
        add_files(&tool, site, &mut reading);
        reading.elsewhere.push(tool);
        return Some(reading);
    }
    if module || text.ends_with(".py") && runner.starts_with("uv run") {
        let python = if module { vec![Arg::text("python"), Arg::text("-m")] } else { vec![Arg::text("python")] };
        let tool = [python, command].concat();
        add_files(&tool, site, &mut reading);
        reading.elsewhere.push(tool);
        return Some(reading);
    }
    match is_own_tool(text, &command, site) {
        true => {
            add_files(&command, site, &mut reading);
            reading.elsewhere.push(command);
        }
        false => match &folder {
            Some(folder) => reading.command_in(&command, &InFolder::At(folder)),
            None => reading.command(&command),
        },
    }
    Some(reading)
}

/// Adds the files that a tool reads and writes here.
fn add_files(tool: &[Arg], site: &CommandContext, reading: &mut Reading) {
    if !site.is_elsewhere {
        formatters::add(tool, site, reading);
        named_files::add_of_tool(tool, site, reading);
    }
}

/// Programs that run scripts of `package.json` by their names, one for each operand.
const OF_SCRIPTS: &[&str] =
    &["run-s", "run-p", "npm-run-all", "npm-run-all2", "run-z", "turbo", "lerna", "nx", "wsrun"];

/// `npm run deploy` of `run-s deploy`, `turbo run deploy`, `lerna run deploy` and `nx run web:deploy`, for rules that deny or ask.
pub(super) fn scripts_run(name: &str, words: &[Arg]) -> Vec<Vec<Arg>> {
    if !OF_SCRIPTS.contains(&name) {
        return Vec::new();
    }
    let own: Vec<&str> = words.iter().take_while(|word| !word.is("--")).filter_map(Arg::literal).collect();
    let operands = own.iter().copied().filter(|text| !text.starts_with('-'));
    let scripts: Vec<&str> = match name {
        "nx" => targets_of_nx(&own, operands),
        _ => operands.filter(|text| !matches!(*text, "run" | "run-many")).collect(),
    };
    scripts.into_iter().take(MAX_TARGETS).map(|text| ["npm", "run", text].map(Arg::text).to_vec()).collect()
}

/// `nx build PROJECT`, `nx run PROJECT:build:CONFIGURATION`, `nx affected -t build,test` (nx.dev, "Nx Commands").
fn targets_of_nx<'w>(words: &[&'w str], operands: impl Iterator<Item = &'w str>) -> Vec<&'w str> {
    let operands: Vec<&str> = operands.collect();
    let named = match operands.as_slice() {
        ["run", targets @ ..] => targets.iter().filter_map(|target| target.split(':').nth(1)).collect(),
        ["run-many" | "affected" | "affected:build" | "exec", behind @ ..] => behind.to_vec(),
        [target, ..] => vec![*target],
        [] => Vec::new(),
    };
    let options = words.iter().enumerate().filter_map(|(at, word)| match word.split_once('=') {
        Some(("-t" | "--target" | "--targets", value)) => Some(value),
        _ => words.get(at + 1).copied().filter(|_| matches!(*word, "-t" | "--target" | "--targets")),
    });
    named.into_iter().chain(options.flat_map(|value| value.split(','))).collect()
}

/// Managers of packages whose scripts and installed programs have one way to run them.
const MANAGERS: &[&str] = &["npm", "yarn", "yarnpkg", "pnpm", "bun"];

/// The words behind `run`, which may also be a program with its words: `yarn run npm publish`.
pub(super) fn behind_run<'w>(name: &str, words: &'w [Arg]) -> Option<&'w [Arg]> {
    let at = words.iter().position(|word| word.is("run")).filter(|_| MANAGERS.contains(&name))?;
    let behind = words.get(at + 1..)?;
    let options = behind.iter().take_while(|word| word.start().starts_with('-')).count();
    behind.get(options..)
}

/// Whether npm finds a tool in the project, in each folder that the command may run in: there, or above it up to the folder
/// of the repository.
fn is_installed(tool: &str, site: &CommandContext) -> bool {
    let is_name = !tool.is_empty() && tool.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b));
    let has = |folder: &PathBuf| {
        let top = folder.ancestors().position(|above| above.join(".git").exists());
        let mut within = folder.ancestors().take(top.map_or(1, |top| top + 1));
        within.any(|folder| folder.join("node_modules/.bin").join(tool).exists())
    };
    is_name
        && tool != "."
        && tool != ".."
        && site.folders.is_some_and(|folders| !folders.is_empty() && folders.iter().all(has))
}

/// A tool that toold knows nothing about: a rule for the runner trusts the project's tools.
pub(super) fn is_own_tool(name: &str, command: &[Arg], site: &CommandContext) -> bool {
    let base = name.rsplit('/').next().unwrap_or_default();
    // The first words show it. A line may hold thousands of runners, one inside of another.
    let shown: Vec<Arg> = command.iter().take(SHOWING).take_while(|word| !word.is("--")).cloned().collect();
    let reading = super::read_as_known(&shown, site);
    let runs_nothing = reading.commands.is_empty() && reading.scripts.is_empty() && reading.on_found.is_empty();
    !INTERPRETERS.contains(&base)
        && reading.known.is_none()
        && reading.unsure.is_none()
        && reading.files.is_empty()
        && reading.script_file.is_none()
        && reading.elsewhere.is_empty()
        && runs_nothing
        && !reading.may_run_any
        && !reading.reads_only
        && !reading.same_shell
}

/// The program of a package: `cli` of `@angular/cli@19`.
fn program_of(package: &str) -> &str {
    let (scope, name) = package.rsplit_once('/').map_or(("", package), |(scope, name)| (scope, name));
    let is_scope = scope.is_empty() || scope.starts_with('@');
    if !is_scope {
        return package;
    }
    name.split_once('@').map_or(name, |(name, _)| name)
}

/// `gradle`, `mvn`, `just`, `task` and `ninja`: each operand names something to do.
fn targets(name: &str, words: &[Arg]) -> Reading {
    let Some(known) = find(name) else { return Reading::default() };
    let parsed = parse(known, words);
    let operands = parsed.operands.clone();
    let sets_variable =
        operands.iter().find(|word| matches!(name, "just" | "task" | "go-task") && word.start().contains('=')).cloned();
    let mut reading = parsed.into_reading();
    if let Some(word) = sets_variable {
        reading.doubt(format!("{} sets a variable, and recipes may run what it holds", word.raw));
    }
    // A rule for `gradlew` is about `./gradlew` too, but not the reverse.
    let program = if name.ends_with('w') { format!("./{name}") } else { name.to_owned() };
    each_target(&program, &operands, &mut reading);
    // `:web:publish` and `deploy:deploy` are about the task or the goal at their end.
    let is_path = matches!(name, "gradle" | "gradlew" | "mvn" | "mvnw");
    let last = |word: &Arg| word.literal().and_then(|text| text.rsplit_once(':')).map(|(_, last)| Arg::text(last));
    let named = operands.iter().take(MAX_TARGETS).filter(|_| is_path).filter_map(last);
    reading.elsewhere.extend(named.map(|target| vec![Arg::text(&program), target]));
    reading
}

/// A rule that denies one target holds for it behind others as well, and one that allows a target covers no other: `make build
/// deploy`.
pub(super) fn each_target(name: &str, operands: &[Arg], reading: &mut Reading) {
    let is_target = |word: &&Arg| !word.start().contains('=') && !word.start().starts_with('-');
    let text = |word: &Arg| word.literal().unwrap_or(&word.raw).to_owned();
    reading.targets = operands.iter().filter(is_target).map(text).collect();
    let targets = operands.iter().skip(1).filter(is_target).take(MAX_TARGETS).cloned();
    // `./deploy` is the target `deploy` (GNU make, Ninja).
    let named = |word: &Arg| Some(Arg::text(word.literal()?.strip_prefix("./")?.trim_start_matches(['.', '/'])));
    let in_folder = operands.iter().take(MAX_TARGETS).filter_map(named);
    reading.elsewhere.extend(targets.chain(in_folder).map(|target| vec![Arg::text(name), target]));
    if operands.len() > MAX_TARGETS {
        reading.doubt("it has too many targets");
    }
}
