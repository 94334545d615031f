//! Commands that run in a folder which the words of another one choose.

use toold_proto::shell_word::quoted;

use super::Reading;
use crate::shell_grammar::arg::Arg;

/// The folder in which a command runs.
pub(super) enum InFolder<'a> {
    Here,
    At(&'a Arg),
    Unknown,
}

impl Reading {
    /// A script that a shell reads in the folder.
    pub(super) fn script_in(&mut self, words: &[Arg], folder: &InFolder) {
        let place = match folder {
            InFolder::Here => return self.script(words),
            InFolder::At(folder) => folder.literal().map(quoted),
            InFolder::Unknown => None,
        };
        let texts: Option<Vec<&str>> = words.iter().map(Arg::literal).collect();
        match (place, texts) {
            (Some(folder), Some(texts)) => self.scripts.push(format!("cd {folder} && {}", texts.join(" "))),
            _ => {
                // The command counts, but not which files it names.
                self.hides_file = true;
                self.script(words);
                self.doubt("the folder in which the command runs is unknown");
            }
        }
    }

    /// A command in the folder.
    pub(super) fn command_in(&mut self, words: &[Arg], folder: &InFolder) {
        if words.is_empty() {
            return;
        }
        match folder {
            InFolder::Here => self.command(words),
            InFolder::At(_) | InFolder::Unknown => {
                let texts: Option<Vec<String>> = words.iter().map(|word| word.literal().map(quoted)).collect();
                match texts {
                    Some(texts) => self.script_in(&[Arg::text(&texts.join(" "))], folder),
                    None => {
                        self.hides_file = true;
                        self.doubt("the folder in which the command runs is unknown");
                        self.command(words);
                    }
                }
            }
        }
    }
}
