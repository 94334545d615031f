//! Programs that run what their standard input says: shells, interpreters, clients of databases.
//!
//! The readers of their words tell by [`Reading::runs_input`] that the words name no other program, and by
//! [`Reading::is_open`] that the command comes from elsewhere.

use super::{CommandOutput, Reading};
use crate::shell_grammar::arg::Arg;

/// Operations that start a shell, or the program of a container, if no command is given: a program, and words behind it that
/// are no options.
const SHELLS: &[&str] = &[
    "docker run",
    "docker start",
    "docker attach",
    "docker compose run",
    "docker compose attach",
    "docker-compose run",
    "podman run",
    "podman start",
    "podman attach",
    "nerdctl run",
    "nerdctl attach",
    "kubectl run",
    "kubectl attach",
    "kubectl debug",
    "kubectl exec",
    "oc rsh",
    "oc debug",
    "lxc shell",
    "lxc exec",
    "incus shell",
    "incus exec",
    "multipass shell",
    "adb shell",
    "vagrant ssh",
    "gcloud compute ssh",
    "gcloud cloud-shell ssh",
    "az ssh vm",
    "fly ssh console",
    "flyctl ssh console",
    "heroku run",
    "heroku ps:exec",
    "railway shell",
    "chroot",
    "fakeroot",
    "fakechroot",
    "nix develop",
    "nix shell",
    "poetry shell",
    "pipenv shell",
    "hatch shell",
    "pixi shell",
    "distrobox enter",
    "distrobox-enter",
    "toolbox enter",
    "toolbox run",
    "flatpak run",
    "wsl",
];

/// Names of the standard input as a file.
const AS_FILE: &[&str] = &["/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"];

fn starts_shell(name: &str, words: &[Arg]) -> bool {
    SHELLS.iter().any(|operation| {
        let mut verbs = operation.split(' ');
        let mut plain = words.iter().filter(|word| !word.start().starts_with('-'));
        verbs.next() == Some(name) && verbs.all(|verb| plain.any(|word| word.is(verb)))
    })
}

/// Adds what the standard input of such a program says to what rules that deny or ask are about. Where it is not known, the
/// program may run anything.
pub(super) fn judge(name: &str, words: &[Arg], reading: &mut Reading, input: &CommandOutput) {
    let runs_command = !reading.commands.is_empty()
        || !reading.scripts.is_empty()
        || !reading.elsewhere.is_empty()
        || !reading.scripts_elsewhere.is_empty();
    // Of a program that reads commands or settings from files.
    let is_file = |word: &Arg| AS_FILE.iter().any(|file| word.start().ends_with(file));
    let reads_it = || reading.known.is_some_and(|known| !known.runs_nothing) && words.iter().any(is_file);
    reading.runs_input |= !runs_command && starts_shell(name, words) || reading.unsure.is_some() && reads_it();
    reading.runs_input &= !matches!(input, CommandOutput::OfLine);
    if !reading.runs_input && !reading.is_open {
        return;
    }
    match input {
        CommandOutput::OfLine => {}
        CommandOutput::Content(file) => _ = reading.script_file.get_or_insert_with(|| file.clone()),
        other => match other.text() {
            Some(text) => {
                reading.program = Some(text.to_owned());
                reading.also.extend(commands_of_client(name, text));
            }
            None => reading.may_run_any = true,
        },
    }
}

/// So many lines of the input are looked at one by one.
const MAX_LINES: usize = 50;

/// `redis-cli flushall` of `echo FLUSHALL | redis-cli`: each line is what the words would be.
fn commands_of_client(name: &str, text: &str) -> Vec<Vec<Arg>> {
    if !matches!(name, "redis-cli" | "valkey-cli" | "keydb-cli") {
        return Vec::new();
    }
    let command = |line: &str| {
        let words = line.split_whitespace().map(|word| Arg::text(&word.to_ascii_lowercase()));
        std::iter::once(Arg::text("redis-cli")).chain(words).collect()
    };
    text.lines().take(MAX_LINES).map(command).collect()
}
