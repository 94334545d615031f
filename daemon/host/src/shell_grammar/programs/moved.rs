//! Options and operands that say where a program writes. The permission for a command covers what it writes in the session's
//! folders, but not in places that may run code later, nor where a rule denies writing.

use std::borrow::Cow;
use std::path::{Component, Path, PathBuf};

use toold_engine::policy::Policy;

use super::named_files::names_in;
use super::written_files::named_by;
use super::{CommandContext, Reading};
use crate::shell_grammar::arg::Arg;
use crate::shell_grammar::state::logical;

/// Programs with the options whose value is a file or a folder that they write, or in which they work. Read from their own manuals.
const ROWS: &[(&str, &str)] = &[
    ("git", "-C"),
    ("make gmake ninja samu", "-C --directory DESTDIR prefix PREFIX"),
    ("npm", "--prefix -C"),
    ("pnpm", "-C --dir --modules-dir --virtual-store-dir --store-dir"),
    ("yarn yarnpkg", "--cwd --modules-folder --cache-folder"),
    ("bun", "--cwd --outdir --outfile"),
    ("pip pip3", "-t --target --prefix --root"),
    ("cargo", "--root --target-dir --out-dir --artifact-dir --output-path --output-dir"),
    ("nyc c8", "--report-dir --reports-dir --temp-dir --temp-directory"),
    ("composer", "-d --working-dir"),
    ("gem", "-i --install-dir -n --bindir"),
    ("bundle", "--path"),
    ("go", "-C -o"),
    ("meson", "-C --destdir"),
    ("cmake", "--build --install --prefix -B"),
    ("gradle gradlew", "-p --project-dir"),
    ("tsc", "--outDir --outFile --declarationDir --tsBuildInfoFile --generateTrace --generateCpuProfile"),
    ("vite", "--outDir"),
    ("webpack", "-o --output-path"),
    ("rollup", "-o --file -d --dir"),
    ("esbuild", "--outfile --outdir"),
    ("parcel", "--dist-dir --cache-dir"),
    ("babel swc", "-o --out-file -d --out-dir"),
    ("jest", "--outputFile --coverageDirectory --cacheDirectory"),
    ("vitest", "--outputFile --coverage.reportsDirectory"),
    ("playwright", "--output"),
    ("eslint", "-o --output-file --cache-location --cache-file"),
    ("typedoc", "--out --json"),
    ("storybook", "-o --output-dir"),
    ("pytest py.test", "--junitxml --junit-xml --basetemp"),
    ("mypy", "--cache-dir --junit-xml --html-report --txt-report --xml-report"),
    ("ruff", "-o --output-file --cache-dir"),
    ("coverage", "-d --directory -o --data-file"),
    ("tox nox", "--workdir --envdir"),
    ("pdoc", "-o --output-dir"),
    ("mkdocs", "-d --site-dir"),
    ("hugo jekyll", "-d --destination"),
    ("rustdoc", "-o --out-dir"),
    ("buf swagger-codegen openapi-generator openapi-generator-cli", "-o --output"),
    ("dotnet", "-o --output"),
    ("javac javadoc kotlinc scalac jsdoc", "-d"),
    ("mvn mvnw", "-f --file"),
    ("swift", "--build-path --scratch-path"),
    ("zig", "--prefix -p --cache-dir"),
    ("deno", "-o --output"),
    ("docker podman nerdctl", "-o --output --metadata-file --cidfile"),
    ("kubectl oc", "--output-directory"),
    ("terraform tofu", "-chdir"),
    ("pg_dump pg_dumpall pg_basebackup", "-f --file -D --pgdata"),
    ("mysqldump mariadb-dump", "-r --result-file -T --tab"),
    ("redis-cli valkey-cli", "--rdb"),
];

/// Programs whose operands are folders that they make, and the words by which they do; none where they always do.
const MADE: &[(&str, &str)] = &[
    ("venv virtualenv sphinx-build django-admin meson", ""),
    ("cookiecutter copier degit tiged create-react-app create-next-app create-vite create-expo-app", ""),
    ("rails ember ng nest mix jekyll hugo poetry hatch pdm cargo dotnet", "new n init"),
    ("npm pnpm yarn bun flutter dart sam cdk helm composer vue", "create init create-project"),
    ("uv", "init venv"),
    ("svn hg", "checkout co export clone init"),
    ("gh glab", "clone"),
    ("cargo", "vendor"),
];

/// The files and folders that a command may write: those that need a permission of their own, and others in the session's folders.
/// `words` are those behind the program.
pub(super) fn written(name: &str, words: &[Arg], site: &CommandContext) -> (Vec<Arg>, Vec<Arg>) {
    let rows = ROWS.iter().filter(|(programs, _)| programs.split(' ').any(|program| program == name));
    let mut found: Vec<Arg> = rows.flat_map(|(_, options)| named_by(words, options)).collect();
    let makes = |(programs, verbs): &(&str, &str)| {
        programs.split(' ').any(|program| program == name)
            && (verbs.is_empty() || words.iter().any(|word| verbs.split(' ').any(|verb| word.is(verb))))
    };
    if MADE.iter().any(makes) {
        found.extend(words.iter().filter(|word| !word.start().starts_with('-')).cloned());
    }
    if name == "protoc" {
        let is_output = |word: &&Arg| word.start().split('=').next().is_some_and(|option| option.ends_with("_out"));
        found.extend(words.iter().filter(is_output).filter_map(|word| {
            let at = word.start().find('=')?;
            Some(word.without_start(at + 1))
        }));
    }
    found.into_iter().partition(|word| leads_away(word, site))
}

/// Programs that take settings and variables among their words: `-DOUT=folder`, `OUT=folder`.
const SET_VALUES: &str = "make gmake ninja samu cmake ctest meson mvn mvnw gradle gradlew ant sbt cargo npm pnpm yarn bun dotnet msbuild bazel \
                          just task go-task rake scons waf go pip pip3 uv poetry pytest py.test tox nox mix rebar3 composer";

fn takes_values(name: &str) -> bool {
    SET_VALUES.split_whitespace().any(|program| program == name)
}

/// Notes that such a program writes into the folder that it runs in, if that is one below a session's folder.
pub(super) fn in_own_folder(name: &str, site: &CommandContext, reading: &mut Reading) {
    let only_tests = ["pytest", "py.test", "ctest", "tox", "nox"];
    let is_one = takes_values(name) && !only_tests.contains(&name);
    let here = site.folders.unwrap_or_default().iter().filter(|_| is_one);
    let is_below = |folder: &&PathBuf| {
        site.session_folders.iter().any(|place| folder.starts_with(place))
            && !site.session_folders.iter().any(|place| *place == **folder)
    };
    reading.discards.extend(here.filter(is_below).map(|folder| folder.join("*").to_string_lossy().into_owned()));
}

/// The texts among the words of such a program that may name a file or a folder.
pub(super) fn set_values<'w>(name: &str, words: &'w [Arg]) -> impl Iterator<Item = &'w str> {
    let is_one = takes_values(name);
    let texts = words.iter().take(MAX_VALUES).filter(move |_| is_one).filter_map(Arg::literal);
    texts.filter_map(value_in).flat_map(names_in_value)
}

/// So many words are looked at.
const MAX_VALUES: usize = 60;

/// `value` in `NAME=value`, `-DNAME=value` and `--option=NAME=value`.
fn value_in(text: &str) -> Option<&str> {
    let (option, value) = text.split_once('=')?;
    match option.strip_prefix("--") {
        Some(_) => value_in(value),
        None => {
            let name = ["-D", "-P", "-p:", "/p:"].iter().find_map(|start| option.strip_prefix(start)).unwrap_or(option);
            name.chars().all(|c| c.is_ascii_alphanumeric() || "_.-".contains(c)).then_some(value)
        }
    }
}

/// The names of files that the value of a variable may have, also in a list or in a text that the shell expands.
pub(in crate::shell_grammar) fn names_in_value(value: &str) -> impl Iterator<Item = &str> {
    std::iter::once(value).chain(names_in(value).flat_map(|part| part.split(':')))
}

/// Notes that a command may write such files, or files of any name in such folders: where a rule denies that, a person is
/// asked. Names outside of the session's folders do not count, nor the folder that it runs in.
pub(super) fn may_write<'n>(names: impl Iterator<Item = &'n str>, site: &CommandContext, reading: &mut Reading) {
    let written = places(names, site.folders.unwrap_or_default(), site.session_folders);
    let new = written.into_iter().filter(|place| !reading.discards.contains(place)).collect::<Vec<_>>();
    reading.discards.extend(new);
}

/// Such files, and any in such folders, as paths and patterns. `folders` are those that a command may run in.
pub(in crate::shell_grammar) fn places<'n>(
    names: impl Iterator<Item = &'n str>,
    folders: &[PathBuf],
    session_folders: &[Cow<Path>],
) -> Vec<String> {
    let mut found = Vec::new();
    for path in names.flat_map(|name| folders.iter().map(move |folder| logical(&folder.join(name)))) {
        let is_around = folders.iter().any(|folder| folder.starts_with(&path));
        let is_inside = session_folders.iter().any(|place| path.starts_with(place));
        let real = match (path.canonicalize(), path.parent().map(Path::canonicalize), path.file_name()) {
            (Ok(real), ..) => real,
            (Err(_), Some(Ok(folder)), Some(name)) => folder.join(name),
            _ => path,
        };
        let written = [real.to_string_lossy().into_owned(), real.join("*").to_string_lossy().into_owned()];
        if is_inside && !is_around && !found.contains(&written[1]) {
            found.extend(written);
        }
    }
    found
}

fn leads_away(word: &Arg, site: &CommandContext) -> bool {
    let (Some(text), Some(folders)) = (word.literal(), site.folders) else { return false };
    let is_protected = |path: &Path| Policy::default().is_protected_place(path);
    let is_hidden = |path: &Path| {
        path.components().any(|part| matches!(part, Component::Normal(name) if name.to_string_lossy().starts_with('.')))
    };
    !text.is_empty()
        && folders.iter().map(|folder| logical(&folder.join(text))).any(|path| {
            let place = site.session_folders.iter().find_map(|place| path.strip_prefix(place).ok());
            place.is_none_or(is_hidden) || is_protected(&path)
        })
}
