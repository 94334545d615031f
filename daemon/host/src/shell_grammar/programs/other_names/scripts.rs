//! A script is the same one whichever interpreter runs it: `bash x.sh`, `./x.sh`, `source x.sh`.

use std::path::Path;

use toold_engine::need::Word;
use toold_engine::policy::pattern::scripts::{SCRIPT, SCRIPT_RUNNERS, WITHOUT_SCRIPT};

use super::spellings::paths;
use super::{NamedCommand, unversioned};
use crate::shell_grammar::programs::known::find;
use crate::shell_grammar::state::logical;

/// Options of them with a value in the next word.
const WITH_VALUE: &[&str] =
    &["-o", "-O", "-W", "-X", "-r", "--require", "--import", "--loader", "-I", "--rcfile", "--init-file"];

/// The script that a command runs with its words, under each of its names.
pub(super) fn script(words: &[Word], folder: Option<&Path>, places: &[&Path]) -> Vec<NamedCommand> {
    let Some(at) = file_at(words) else { return Vec::new() };
    let (file, rest) = (&words[at], &words[at + 1..]);
    let own = file.text.as_str();
    let mut names = paths(own, folder);
    names.push(own.to_owned());
    if !own.contains('/') {
        names.push(format!("./{own}"));
        names.extend(folder.map(|folder| folder.join(own).to_string_lossy().into_owned()));
    }
    // As it is named from the session's folders.
    let whole = match folder {
        Some(folder) => Some(logical(&folder.join(own))),
        None => Path::new(own).is_absolute().then(|| logical(Path::new(own))),
    };
    let below = places.iter().filter_map(|place| whole.as_deref()?.strip_prefix(place).ok()?.to_str());
    names.extend(below.flat_map(|below| [format!("./{below}"), below.to_owned()]));
    if whole.is_none() {
        names.extend(own.rsplit('/').next().map(|name| format!("./{name}")));
    }
    let word = |text: &str| Word { text: text.to_owned(), literal: true };
    let command = |name: String| NamedCommand {
        words: [word(SCRIPT), word(&name)].into_iter().chain(rest.iter().cloned()).collect(),
        form: None,
    };
    names.into_iter().map(command).collect()
}

/// Where the script's name stands.
fn file_at(words: &[Word]) -> Option<usize> {
    let first = words.first().filter(|word| word.literal)?;
    let program = first.text.rsplit('/').next().unwrap_or_default();
    let Some((_, verb)) = SCRIPT_RUNNERS.iter().find(|(name, _)| *name == unversioned(program)) else {
        // A file of the project, by its path.
        return (first.text.contains('/') && find(program).is_none()).then_some(0);
    };
    let mut at = 1;
    while let Some(word) = words.get(at).filter(|word| word.literal) {
        let text = word.text.as_str();
        let is_option = text.len() > 1 && text.starts_with(['-', '+']);
        match is_option {
            true if WITHOUT_SCRIPT.contains(&text) => return None,
            // A shell only parses it (bash(1), "set -n").
            true if program.ends_with("sh")
                && text.starts_with('-')
                && !text.starts_with("--")
                && text.contains('n') =>
            {
                return None;
            }
            true if text == "--" => return (at + 1 < words.len()).then_some(at + 1),
            true if WITH_VALUE.contains(&text) => at += 2,
            true => at += 1,
            false if !verb.is_empty() && text == *verb => at += 1,
            // `uv sync` runs no script.
            false if matches!(program, "uv" | "npx") && words[1..at].iter().all(|word| word.text != *verb) => {
                return None;
            }
            false => return Some(at),
        }
    }
    None
}
