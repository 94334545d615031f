//! The commands that fetch what a lock file names, and nothing else.

use std::path::{Path, PathBuf};

use toold_engine::need::{CommandForm, InnerCommand, Need, Word};
use toold_proto::effect::Effect;

use super::formats::LockFormat;

/// A command that fetches what a lock file names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LockedCommand {
    pub(super) file: PathBuf,
    pub(super) format: LockFormat,
    /// It has an effect for which the lock file has to be known. Otherwise only hosts follow from it.
    pub(super) fetches: bool,
}

struct FrozenCommand {
    programs: &'static [&'static str],
    subcommands: &'static [&'static str],
    /// With one of these options it fetches what the lock file names and leaves that file as it is; empty if it always does.
    frozen: &'static [&'static str],
    /// The further options that change nothing about that. Of a command that only builds, any may be there: no more than the
    /// hosts of the lock file follow from it.
    options: &'static [&'static str],
    /// The first one that is there counts.
    files: &'static [&'static str],
    /// It may lie in a folder above.
    is_above: bool,
    format: LockFormat,
}

const NPM: &[&str] = &["package-lock.json"];
const COMMANDS: &[FrozenCommand] = &[
    FrozenCommand {
        programs: &["npm"],
        subcommands: &["ci", "clean-install"],
        frozen: &[],
        options: &[
            "--silent",
            "--quiet",
            "--verbose",
            "--no-color",
            "--ignore-scripts",
            "--no-audit",
            "--no-fund",
            "--no-progress",
            "--loglevel",
            "--omit",
            "--include",
            "--prefer-offline",
            "--offline",
            "--production",
            "--no-optional",
            "--legacy-peer-deps",
            "--foreground-scripts",
            "--no-bin-links",
        ],
        files: &["npm-shrinkwrap.json", NPM[0]],
        is_above: false,
        format: LockFormat::Npm,
    },
    FrozenCommand {
        programs: &["pnpm"],
        subcommands: &["install", "i"],
        frozen: &["--frozen-lockfile"],
        options: &[
            "--silent",
            "--dev",
            "--prod",
            "--ignore-scripts",
            "--offline",
            "--prefer-offline",
            "--no-optional",
            "--reporter",
        ],
        files: &["pnpm-lock.yaml"],
        is_above: false,
        format: LockFormat::Pnpm,
    },
    FrozenCommand {
        programs: &["yarn", "yarnpkg"],
        subcommands: &["install"],
        frozen: &["--frozen-lockfile", "--immutable"],
        options: &[
            "--silent",
            "--production",
            "--ignore-scripts",
            "--offline",
            "--prefer-offline",
            "--non-interactive",
            "--no-progress",
            "--ignore-optional",
            "--immutable-cache",
            "--network-timeout",
        ],
        files: &["yarn.lock"],
        is_above: false,
        format: LockFormat::Unread("registry.yarnpkg.com:443"),
    },
    FrozenCommand {
        programs: &["uv"],
        subcommands: &["sync"],
        frozen: &["--frozen", "--locked"],
        options: &[
            "--quiet",
            "--verbose",
            "--offline",
            "--no-progress",
            "--all-extras",
            "--no-dev",
            "--only-dev",
            "--all-groups",
            "--all-packages",
            "--no-install-project",
            "--inexact",
            "--extra",
            "--group",
            "--no-group",
            "--only-group",
            "--package",
        ],
        files: &["uv.lock"],
        is_above: false,
        format: LockFormat::Uv,
    },
    FrozenCommand {
        programs: &["poetry"],
        subcommands: &["install", "sync"],
        frozen: &[],
        options: &[
            "--no-interaction",
            "--quiet",
            "-v",
            "-vv",
            "--no-ansi",
            "--no-root",
            "--no-dev",
            "--sync",
            "--all-extras",
            "--only-root",
            "--with",
            "--without",
            "--only",
            "--extras",
            "--no-cache",
        ],
        files: &["poetry.lock"],
        is_above: false,
        format: LockFormat::Poetry,
    },
    FrozenCommand {
        programs: &["cargo"],
        subcommands: &[
            "fetch", "build", "b", "check", "c", "test", "t", "run", "r", "clippy", "doc", "bench", "nextest",
        ],
        frozen: &["--locked"],
        options: &["--quiet", "--verbose", "--locked", "--target"],
        files: &["Cargo.lock"],
        is_above: true,
        format: LockFormat::Cargo,
    },
];

/// Options of `pip install` beside the file.
const PIP_OPTIONS: &[&str] = &[
    "-v",
    "-q",
    "--verbose",
    "--quiet",
    "--no-deps",
    "--no-cache-dir",
    "--no-input",
    "--disable-pip-version-check",
    "--prefer-binary",
    "--require-hashes",
    "--progress-bar",
];

/// The lock file of a command that fetches what it names; `None` for any other command, and if its folder is not known.
pub(super) fn locked_command(need: &Need) -> Option<LockedCommand> {
    let command = need.command()?;
    let folder = command.folder.as_deref()?;
    if command.unsure.is_some() || command.may_run_any {
        return None;
    }
    let effects = command.effects.all();
    let fetches = effects.contains(Effect::Install) || effects.contains(Effect::Fetch);
    let program_of = |words: &'_ [Word]| words.first().filter(|word| word.literal).map(|word| word.text.clone());
    let program = program_of(command.words.as_ref()?)?;
    // `python3 -m pip install -r FILE`
    let is_pip = |inner: &&InnerCommand| inner.words.as_deref().and_then(program_of).as_deref() == Some("pip");
    let inner = || command.elsewhere.iter().filter(is_pip).find_map(|inner| inner.form.as_ref());
    let (program, form) = match (program.rsplit('/').next().unwrap_or_default(), &command.form) {
        ("python" | "python3", None) => ("pip", inner()?),
        (_, form) => (program.as_str(), form.as_ref()?),
    };
    let plain: Vec<&str> = form.plain.iter().map(|word| if word.literal { word.text.as_str() } else { "" }).collect();
    if matches!(program, "pip" | "pip3") && plain == ["install"] {
        return of_pip(folder, form, fetches);
    }
    // `yarn` alone installs.
    let name = plain.first().copied().or(matches!(program, "yarn" | "yarnpkg").then_some("install"))?;
    let command =
        COMMANDS.iter().find(|command| command.programs.contains(&program) && command.subcommands.contains(&name))?;
    let has = |names: &[String], options: &[&str]| names.iter().any(|name| options.contains(&name.as_str()));
    let is_frozen = command.frozen.is_empty() || form.options.iter().any(|option| has(&option.names, command.frozen));
    let is_listed =
        form.options.iter().all(|option| has(&option.names, command.frozen) || has(&option.names, command.options));
    if !is_frozen || fetches && (plain.len() > 1 || !is_listed) {
        return None;
    }
    let depth = if command.is_above { usize::MAX } else { 1 };
    let folders = folder.ancestors().take(depth);
    let file =
        folders.flat_map(|folder| command.files.iter().map(|name| folder.join(name))).find(|file| is_file(file))?;
    Some(LockedCommand { file, format: command.format, fetches })
}

fn of_pip(folder: &Path, form: &CommandForm, fetches: bool) -> Option<LockedCommand> {
    let (files, others): (Vec<_>, Vec<_>) =
        form.options.iter().partition(|option| option.names.iter().any(|name| name == "-r"));
    let is_listed = others.iter().all(|option| option.names.iter().any(|name| PIP_OPTIONS.contains(&name.as_str())));
    let [file] = files.as_slice() else { return None };
    let [name] = file.values.as_slice() else { return None };
    let file = folder.join(&name.text);
    let is_known = name.literal && is_listed && is_file(&file);
    is_known.then_some(LockedCommand { file, format: LockFormat::Requirements, fetches })
}

fn is_file(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|found| found.is_file())
}

#[cfg(test)]
mod tests {
    use toold_host::environment::Environment;
    use toold_host::shell_grammar::{Surroundings, needs};

    use super::*;

    #[test]
    fn a_command_is_one_that_a_lock_file_names_under_its_other_names() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["requirements.txt", "yarn.lock"] {
            std::fs::write(folder.path().join(name), "x").unwrap();
        }
        let environment = Environment::default();
        let is_locked = |line: &str| {
            let mut surroundings =
                Surroundings { cwd: folder.path(), folders: &[], environment: &environment, may_read: &mut |_| true };
            needs(line, &mut surroundings).iter().any(|need| locked_command(need).is_some())
        };
        for line in [
            "pip install -r requirements.txt",
            "python3 -m pip install -q -r requirements.txt",
            ".venv/bin/python -Im pip install --require-hashes -r requirements.txt",
            "yarn install --immutable",
            "yarn --immutable",
            "yarn --frozen-lockfile --offline",
        ] {
            assert!(is_locked(line), "{line}");
        }
        for line in [
            "python3 -m pip install x",
            "python3 -m pip install -r requirements.txt x",
            "python3 -m pip install -r requirements.txt --index-url http://x",
            "python3 -m pip install -r \"$FILE\"",
            "python3 -m pip install -r other.txt",
            "yarn",
            "yarn add x --immutable",
        ] {
            assert!(!is_locked(line), "{line}");
        }
    }
}
