//! Values of assignments, options and operations, which name no operation.

use toold_engine::need::{CommandForm, FormOption};

use super::placed::{OptionSpec, skip_options};
use crate::shell_grammar::arg::Arg;

/// Programs whose operation no value chooses: `make test ENV=deploy` is not `make deploy`.
const PROGRAMS: &[&str] = &[
    "make",
    "gmake",
    "just",
    "task",
    "go-task",
    "ninja",
    "samu",
    "mvn",
    "mvnw",
    "gradle",
    "gradlew",
    "rake",
    "npm",
    "pnpm",
    "yarn",
    "docker",
    "podman",
    "kubectl",
    "oc",
    "helm",
    "terraform",
    "tofu",
    "gh",
];

/// Programs in which nobody can give an operation another name.
const WITHOUT_ALIASES: &[&str] = &["npm", "docker", "podman", "kubectl", "oc", "helm", "terraform", "tofu"];

/// The text of a command in which a denied command may occur, with the values in front of the program: a rule's words occur in it
/// in their order, so that a value counts for other programs, and not for an operation of this one. `None` for other programs, and
/// where words are not known. `is_other`: the program has an operation that no table knows, whose name has two words at most.
pub(in crate::shell_grammar) fn in_front(words: &[Arg], is_other: bool) -> Option<String> {
    let (first, rest) = words.split_first()?;
    let name = first.literal()?.rsplit('/').next()?;
    if !PROGRAMS.contains(&name) {
        return None;
    }
    let (mut values, mut plain) = (Vec::new(), vec![first.literal()?]);
    for word in rest {
        let text = word.literal()?;
        match text.split_once('=') {
            Some((option, value)) if option.starts_with('-') => {
                plain.push(option);
                values.push(value);
            }
            Some((variable, value)) => values.extend([variable, value]),
            None => plain.push(text),
        }
    }
    if is_other && WITHOUT_ALIASES.contains(&name) {
        let is_operand = |at: &usize| !plain[*at].starts_with('-');
        let behind = (1..plain.len()).filter(is_operand).nth(2).unwrap_or(plain.len());
        let (operands, options): (Vec<&str>, Vec<&str>) =
            plain.split_off(behind).into_iter().partition(|text| !text.starts_with('-'));
        values.extend(operands);
        plain.extend(options);
    }
    Some(values.into_iter().chain(plain).collect::<Vec<_>>().join(" "))
}

/// Programs in no table whose first operand is the operation, with the options that may stand before it, and the operations that
/// name others: `nx run web:deploy`.
const FIRST_OPERAND: &[(&str, OptionSpec, &str)] = &[
    (
        "redis-cli valkey-cli keydb-cli",
        OptionSpec {
            flags: "-2 -3 -c -e -x --raw --no-raw --csv --json --quoted-json --tls --insecure --no-auth-warning --verbose",
            values: "-h -p -s -t -a -u -r -i -n -d -D --user --pass --sni --cacert --cacertdir --cert --key",
        },
        "",
    ),
    (
        "nx",
        OptionSpec { flags: "--skip-nx-cache --verbose --dry-run --prod", values: "-c --configuration --parallel" },
        "run run-many affected exec",
    ),
];

/// The words of such a program, told apart; `None` where an option in front of the operation is not known.
pub(in crate::shell_grammar) fn form(name: &str, words: &[Arg]) -> Option<CommandForm> {
    let (_, options, others) = FIRST_OPERAND.iter().find(|(names, ..)| names.split(' ').any(|own| own == name))?;
    let (at, is_certain) = skip_options(words, 0, options);
    let operation = words.get(at).and_then(Arg::literal).filter(|_| is_certain)?;
    if others.split(' ').any(|other| operation.split(':').next() == Some(other)) {
        return None;
    }
    let is_option = |word: &&Arg| word.start().starts_with('-');
    let option = |word: &Arg| FormOption { names: vec![word.start().to_owned()], values: Vec::new() };
    let (before, behind) = words.split_at(at);
    Some(CommandForm {
        plain: behind.iter().filter(|word| !is_option(word)).map(Arg::word).collect(),
        options: before.iter().chain(behind).filter(is_option).map(option).collect(),
        operation: Some(1),
    })
}
