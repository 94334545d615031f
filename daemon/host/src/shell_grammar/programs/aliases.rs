//! Aliases and options that a line hands to a program by variables and settings: `CARGO_ALIAS_X=publish cargo x` is `cargo publish`,
//! and `npm_config_global=true npm i x` is `npm i x --global`. Rules that deny or ask are about what they stand for.

use super::other_names::unversioned;
use super::placed::{OptionSpec, skip_options};
use crate::shell_grammar::arg::Arg;

/// A variable that the line has set: its name and its value.
pub(in crate::shell_grammar) type SetVariable = (String, String);

/// An alias may stand for another one.
const MAX_CHAIN: usize = 4;

const CARGO: OptionSpec = OptionSpec {
    flags: "-V --version --list -v --verbose -vv -q --quiet --frozen --locked --offline -h --help",
    values: "--config -C --color -Z --explain",
};

const GIT: OptionSpec = OptionSpec {
    flags: "-p -P --paginate --no-pager --bare --no-replace-objects --literal-pathspecs --no-optional-locks",
    values: "-c -C --git-dir --work-tree --namespace --config-env --super-prefix --exec-path",
};

/// Programs that read each of their options from a variable whose name begins so (npm-config(7), pip, "Environment Variables").
const BY_VARIABLE: &[(&str, &str)] = &[
    ("npm", "npm_config_"),
    ("npx", "npm_config_"),
    ("pnpm", "npm_config_"),
    ("pip", "pip_"),
    ("uv", "uv_"),
    ("poetry", "poetry_"),
];

/// The command with what its alias stands for, and with the options that variables stand for.
pub(in crate::shell_grammar) fn meant(words: &[Arg], variables: &[SetVariable]) -> Vec<Vec<Arg>> {
    let mut found: Vec<Vec<Arg>> = Vec::new();
    let mut waiting = vec![words.to_vec()];
    for _ in 0..MAX_CHAIN {
        let next: Vec<Vec<Arg>> = waiting.iter().flat_map(|words| behind_alias(words, variables)).collect();
        found.extend(next.iter().cloned());
        waiting = next;
    }
    found.extend(with_options(words, variables));
    found
}

fn behind_alias(words: &[Arg], variables: &[SetVariable]) -> Vec<Vec<Arg>> {
    let Some((first, rest)) = words.split_first() else { return Vec::new() };
    let name = first.literal().and_then(|path| path.rsplit('/').next()).unwrap_or_default();
    let (options, at) = match name {
        "cargo" => {
            let toolchain = usize::from(rest.first().is_some_and(|word| word.start().starts_with('+')));
            (cargo_aliases(rest, variables), skip_options(rest, toolchain, &CARGO).0)
        }
        "git" => (git_aliases(rest, variables), skip_options(rest, 0, &GIT).0),
        _ => return Vec::new(),
    };
    let Some(alias) = rest.get(at).and_then(Arg::literal) else { return Vec::new() };
    let same = |own: &str| {
        own.eq_ignore_ascii_case(alias) || name == "cargo" && own == alias.replace('-', "_").to_ascii_uppercase()
    };
    let values = options.into_iter().filter(|(own, _)| same(own)).map(|(_, value)| value);
    let behind = rest.get(at + 1..).unwrap_or_default();
    values.flat_map(|value| commands_of(first, &rest[..at], &value, behind)).collect()
}

/// The commands of an alias: words of the program, or the script behind `!`.
fn commands_of(program: &Arg, options: &[Arg], value: &str, behind: &[Arg]) -> Vec<Vec<Arg>> {
    let is_mark = |c: char| c.is_whitespace() || "\"'[],".contains(c);
    let words = |text: &str| text.split(is_mark).filter(|word| !word.is_empty()).map(Arg::text).collect::<Vec<_>>();
    match value.trim_start().strip_prefix('!') {
        Some(script) => {
            let commands = script.split([';', '|', '&', '\n', '(', ')', '{', '}']).map(words);
            commands.filter(|words| !words.is_empty()).map(|words| [&words, behind].concat()).collect()
        }
        None => vec![[std::slice::from_ref(program), options, &words(value), behind].concat()],
    }
}

/// By variables and by `--config alias.x="publish"` (The Cargo Book, "alias").
fn cargo_aliases(words: &[Arg], variables: &[SetVariable]) -> Vec<SetVariable> {
    let by_variable = variables
        .iter()
        .filter_map(|(name, value)| Some((name.strip_prefix("CARGO_ALIAS_")?.to_owned(), value.clone())));
    let by_option = values_of(words, "--config").filter_map(|setting| {
        let (key, value) = setting.split_once('=')?;
        Some((key.trim().strip_prefix("alias.")?.to_owned(), value.to_owned()))
    });
    by_variable.chain(by_option).collect()
}

/// By options, and by the variables of git-config(1), "ENVIRONMENT".
fn git_aliases(words: &[Arg], variables: &[SetVariable]) -> Vec<SetVariable> {
    let alias = |setting: &str| {
        let (key, value) = setting.split_once('=')?;
        let (section, name) = key.trim_matches('\'').split_once('.')?;
        section.eq_ignore_ascii_case("alias").then_some(())?;
        Some((name.strip_suffix(".command").unwrap_or(name).to_owned(), value.trim_matches('\'').to_owned()))
    };
    let value_of =
        |wanted: &str| variables.iter().rev().find(|(name, _)| name == wanted).map(|(_, value)| value.as_str());
    let by_option = values_of(words, "-c").filter_map(|setting| alias(&setting));
    let by_name = values_of(words, "--config-env").filter_map(|setting| {
        let (key, variable) = setting.split_once('=')?;
        value_of(variable).and_then(|value| alias(&format!("{key}={value}")))
    });
    let numbered = variables.iter().filter_map(|(name, key)| {
        let number = name.strip_prefix("GIT_CONFIG_KEY_")?;
        let value = value_of(&format!("GIT_CONFIG_VALUE_{number}"))?;
        alias(&format!("{key}={value}"))
    });
    let listed = value_of("GIT_CONFIG_PARAMETERS").into_iter().flat_map(|list| list.split("' '")).filter_map(alias);
    by_option.chain(by_name).chain(numbered).chain(listed).collect()
}

/// The values of an option, in the next word or behind `=`.
fn values_of<'a>(words: &'a [Arg], option: &'a str) -> impl Iterator<Item = String> + 'a {
    words.iter().enumerate().filter_map(move |(at, word)| {
        let text = word.literal()?;
        let value = match text.strip_prefix(option)? {
            "" => words.get(at + 1)?.literal()?,
            attached => attached.strip_prefix('=').or_else(|| (!option.starts_with("--")).then_some(attached))?,
        };
        Some(value.to_owned())
    })
}

fn with_options(words: &[Arg], variables: &[SetVariable]) -> Option<Vec<Arg>> {
    let name = words.first()?.literal()?.rsplit('/').next()?;
    if matches!(name, "terraform" | "tofu") {
        let given = variables.iter().filter(|(name, _)| name.starts_with("TF_CLI_ARGS"));
        let options: Vec<Arg> = given.flat_map(|(_, value)| value.split_whitespace().map(Arg::text)).collect();
        return (!options.is_empty()).then(|| [words, &options].concat());
    }
    let (_, start) = BY_VARIABLE.iter().find(|(program, _)| *program == unversioned(name))?;
    let option = |(name, value): &SetVariable| {
        let name = name.to_ascii_lowercase();
        let name = name.strip_prefix(start)?.replace('_', "-");
        Some(match value.as_str() {
            "" | "1" | "true" | "yes" => format!("--{name}"),
            value => format!("--{name}={value}"),
        })
    };
    let options: Vec<Arg> = variables.iter().filter_map(option).map(|option| Arg::text(&option)).collect();
    (!options.is_empty()).then(|| [words, &options].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &[&str], variables: &[(&str, &str)], expected: &[&str]) {
        let words: Vec<Arg> = line.iter().map(|word| Arg::text(word)).collect();
        let variables: Vec<SetVariable> =
            variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let shown = |words: Vec<Arg>| words.iter().map(|word| word.start().to_owned()).collect::<Vec<_>>().join(" ");
        assert_eq!(meant(&words, &variables).into_iter().map(shown).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn an_alias_means_what_it_stands_for() {
        check(&["cargo", "x", "-v"], &[("CARGO_ALIAS_X", "publish --locked")], &["cargo publish --locked -v"]);
        check(&["cargo", "+nightly", "-q", "my-x"], &[("CARGO_ALIAS_MY_X", "b")], &["cargo +nightly -q b"]);
        check(
            &["cargo", "--config", "alias.x=[\"publish\", \"-v\"]", "x"],
            &[],
            &["cargo --config alias.x=[\"publish\", \"-v\"] publish -v"],
        );
        check(&["git", "-c", "alias.x=push", "x", "-f"], &[], &["git -c alias.x=push push -f"]);
        check(
            &["git", "x"],
            &[("GIT_CONFIG_COUNT", "1"), ("GIT_CONFIG_KEY_0", "alias.x"), ("GIT_CONFIG_VALUE_0", "push")],
            &["git push"],
        );
        check(&["git", "x", "a"], &[("GIT_CONFIG_PARAMETERS", "'alias.x=!cd y; rm -r'")], &["cd y a", "rm -r a"]);
        check(&["git", "--config-env=alias.x=V", "x"], &[("V", "push")], &["git --config-env=alias.x=V push"]);
        check(&["git", "x"], &[("GIT_CONFIG_PARAMETERS", "'alias.x=y' 'alias.y'='push'")], &["git y", "git push"]);
        check(&["git", "status"], &[("CARGO_ALIAS_STATUS", "x")], &[]);
    }

    #[test]
    fn a_variable_stands_for_an_option() {
        check(&["npm", "i", "x"], &[("npm_config_global", "true")], &["npm i x --global"]);
        check(&["npm", "publish"], &[("NPM_CONFIG_DRY_RUN", "no"), ("A", "b")], &["npm publish --dry-run=no"]);
        check(&["pip3", "install", "x"], &[("PIP_INDEX_URL", "http://x")], &["pip3 install x --index-url=http://x"]);
        check(&["ls"], &[("npm_config_global", "true")], &[]);
    }
}
