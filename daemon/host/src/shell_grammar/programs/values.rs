//! Values of assignments and options, which name no operation.

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

/// The text of a command in which a denied command may occur, with the values in front of the program: a rule's words occur in it
/// in their order, so that a value counts for other programs, and not for an operation of this one. `None` for other programs, and
/// where words are not known.
pub(in crate::shell_grammar) fn in_front(words: &[Arg]) -> Option<String> {
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
    Some(values.into_iter().chain(plain).collect::<Vec<_>>().join(" "))
}
