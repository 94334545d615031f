//! Commands that programs run in a container or on another machine. The permission for the program covers them, but what a
//! rule denies is denied there too.

use super::Parsed;
use crate::shell_grammar::arg::Arg;

/// Programs with a first operand that names the place, and then a command.
const PLACE_THEN_COMMAND: &[&str] = &[
    "docker exec",
    "docker run",
    "docker compose exec",
    "docker compose run",
    "podman exec",
    "podman run",
    "podman compose exec",
    "podman compose run",
    "docker-compose exec",
    "docker-compose run",
    "kubectl exec",
    "nerdctl exec",
    "nerdctl run",
    "lxc exec",
    "multipass exec",
    "adb shell",
];

/// Where an option is not known, its value may come before the place: so many words are tried as the command's first.
const TRIED: usize = 4;

/// The commands, and the scripts of a shell there.
pub(super) fn commands(parsed: &Parsed) -> (Vec<Vec<Arg>>, Vec<String>) {
    let words = parsed.operands.iter().chain(&parsed.rest).filter(|word| !word.is("--"));
    let words: Vec<Arg> = words.cloned().collect();
    let behind = |count: usize| words.get(count..).unwrap_or_default();
    let tried = if parsed.is_sure() { 1 } else { TRIED };
    match parsed.known.name.as_str() {
        // The words are joined, and a shell reads them.
        "ssh" => {
            let script = |words: &[Arg]| {
                words.iter().map(|word| word.literal().unwrap_or(&word.raw)).collect::<Vec<_>>().join(" ")
            };
            let scripts = (1..=tried).map(behind).filter(|words| !words.is_empty()).map(script);
            (Vec::new(), scripts.collect())
        }
        name if PLACE_THEN_COMMAND.contains(&name) => {
            let commands = (1..=tried).map(behind).filter(|words| !words.is_empty()).map(<[Arg]>::to_vec);
            (commands.collect(), Vec::new())
        }
        _ => (Vec::new(), Vec::new()),
    }
}
