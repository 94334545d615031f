//! `tmux`: the commands that its panes run.

use super::Reading;
use super::in_folder::InFolder;
use super::known::find;
use super::options::parse;
use crate::shell_grammar::arg::Arg;

/// Commands of tmux whose operands are a command for a pane.
const RUN_COMMAND: &[&str] = &[
    "new-session",
    "new",
    "new-window",
    "neww",
    "split-window",
    "splitw",
    "respawn-pane",
    "respawnp",
    "respawn-window",
    "respawnw",
    "display-popup",
    "popup",
];
/// Commands of tmux whose operand is a script of `sh`.
const RUN_SCRIPT: &[&str] = &["run-shell", "run", "pipe-pane", "pipep"];

/// Several commands stand behind each other with a word `;` between them.
pub(super) fn read(words: &[Arg]) -> Option<Reading> {
    let ends = |word: &&Arg| word.start().len() > 1 && word.start().ends_with(';');
    let is_format = |word: &&Arg| word.literal().is_none() || word.start().contains("#(");
    let mut reading = Reading::default();
    for (at, part) in words.split(|word| word.is(";")).enumerate() {
        let read = one(part)?;
        match at {
            0 => reading = read,
            _ => {
                reading.known = None;
                (reading.form, reading.may_run_any) = (None, reading.may_run_any | read.may_run_any);
                reading.is_open |= read.is_open;
                reading.hides_file |= read.hides_file;
                reading.unsure = reading.unsure.or(read.unsure);
                reading.commands.extend(read.commands);
                reading.scripts.extend(read.scripts);
                reading.files.extend(read.files);
            }
        }
    }
    reading.reads_only = false;
    reading.other_shell = true;
    if let Some(word) = words.iter().find(|word| ends(word)) {
        return Some(reading.open(format!("the command of tmux behind {} is not analyzed", word.raw)));
    }
    if let Some(word) = words.iter().find(|word| is_format(word)) {
        return Some(reading.runs_any(format!("tmux may run a command that {} holds", word.raw)));
    }
    Some(reading)
}

fn one(words: &[Arg]) -> Option<Reading> {
    let parsed = parse(find("tmux")?, words);
    let verb = parsed.subcommands.last().and_then(Arg::literal).unwrap_or_default().to_owned();
    let operands = parsed.operands.clone();
    let folder = parsed.values(&["-c"]).chain(parsed.values(&["-d"])).last().cloned();
    let is_new = matches!(verb.as_str(), "new-session" | "new");
    let mut reading = parsed.into_reading();
    // Its options can name a file with further commands.
    reading.may_run_any |= reading.unsure.is_some();
    if verb.is_empty() && !operands.is_empty() {
        return Some(reading.open("toold does not know what this command of tmux does"));
    }
    if matches!(verb.as_str(), "send-keys" | "send") {
        return Some(reading.runs_any("it types into the program that runs there"));
    }
    // A pane of an existing session starts in a folder of that session.
    let folder = match &folder {
        Some(folder) if folder.start().contains('#') => InFolder::Unknown,
        Some(folder) => InFolder::At(folder),
        None if is_new => InFolder::Here,
        None => InFolder::Unknown,
    };
    match (operands.as_slice(), verb.as_str()) {
        ([], _) => {}
        // One word is a script, several are a command.
        ([script], verb) if RUN_COMMAND.contains(&verb) || RUN_SCRIPT.contains(&verb) => {
            reading.script_in(std::slice::from_ref(script), &folder);
        }
        (command, verb) if RUN_COMMAND.contains(&verb) => reading.command_in(command, &folder),
        (_, verb) if RUN_SCRIPT.contains(&verb) => return Some(reading.runs_any("it takes one word")),
        _ => {}
    }
    Some(reading)
}
