//! `bash -c SCRIPT` and similar commands.

use toold_proto::cut;

use super::{CommandContext, FileAccess, FileUse, Reading};
use crate::shell_grammar::arg::Arg;
use crate::shell_grammar::posix;
use crate::shell_grammar::zsh::{self, ZshReading};

pub(super) const NAMES: &[&str] = &["sh", "bash", "dash", "ash", "rbash", "zsh"];

/// Options that `-o` may turn on: none of them changes how a script is parsed.
const OPTIONS: &[&str] = &["errexit", "nounset", "pipefail", "xtrace", "verbose", "noglob", "errtrace", "noclobber"];

/// A shell without a script reads its standard input. Its commands are judged where they are known, but any of them may read
/// a part of the others.
pub(super) fn read(name: &str, words: &[Arg], site: &CommandContext) -> Reading {
    let mut reading = Reading::default();
    let mut at = 0;
    let (mut takes_script, mut only_parses) = (false, false);
    while let Some(word) = words.get(at) {
        let Some(text) = word.literal() else {
            return reading.open(format!("the shell expands {}, and the result is unknown", word.raw));
        };
        match text {
            "--" => {
                at += 1;
                break;
            }
            "--version" | "--help" => return Reading { reads_only: true, ..reading },
            "--login" => {}
            "--norc" | "--noprofile" | "--posix" | "--verbose" if name != "zsh" => {}
            _ if text.starts_with("--") => return reading.open(format!("{text} is not known to be harmless")),
            _ if text.starts_with(['-', '+']) => {
                // Most letters are other options of zsh.
                let letters = if name == "zsh" { "ceflouvx" } else { "abcefhlmnouvxBCEPT" };
                if text.len() < 2 || cut::after_first(text).contains(|c: char| !letters.contains(c)) {
                    return reading.open(format!("{text} is not known to be harmless"));
                }
                takes_script |= text.contains('c');
                only_parses |= text.starts_with('-') && text.contains('n');
                match text.matches('o').count() {
                    0 => {}
                    1 if words.get(at + 1).is_some_and(|name| OPTIONS.iter().any(|known| name.is(known))) => at += 1,
                    _ => return reading.open("an option of the shell is unknown"),
                }
            }
            _ => break,
        }
        at += 1;
    }
    match words.get(at) {
        None => {
            if let Some(text) = site.input.text() {
                reading.script(&[Arg::text(text)]);
                reading.other_shell = name == "zsh";
            }
            reading.open("its commands are those of its standard input")
        }
        Some(script) if takes_script => {
            reading.note(script, "script");
            reading.script(std::slice::from_ref(script));
            // Whatever the script does is judged by itself, as bash reads it. In zsh only what it reads alike is free, but rules count.
            let is_alike = || matches!(name, "bash" | "zsh") || script.literal().is_some_and(posix::reads_alike);
            reading.reads_only = reading.unsure.is_none() && is_alike();
            if name == "zsh" {
                let reading_of = script.literal().map_or(ZshReading::Differs, zsh::reading_of);
                reading.other_shell = reading_of != ZshReading::Alike;
                if reading_of == ZshReading::Differs {
                    return reading.runs_any("zsh may read the script in another way");
                }
            }
            reading
        }
        Some(_) if name == "zsh" => reading.open("toold does not analyze scripts of zsh"),
        Some(file) if file.literal().is_none_or(|text| text.starts_with("/dev/") || text.starts_with("/proc/")) => {
            reading.open("the script that it runs is unknown")
        }
        // A shell that is not interactive runs nothing then (bash(1), "set -n"; sh(1p)).
        Some(file) if only_parses => {
            reading.note(file, "script that is parsed");
            reading.files.push(FileUse::new(FileAccess::Read, file.clone()));
            reading.reads_only = matches!(name, "bash" | "sh" | "dash");
            reading
        }
        Some(file) => {
            reading.note(file, "script that is run");
            reading.script_file = Some(file.clone());
            reading.files.push(FileUse::new(FileAccess::Read, file.clone()));
            reading
        }
    }
}
