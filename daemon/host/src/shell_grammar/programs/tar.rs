//! `tar`: its first word may be options without a dash (GNU tar manual, section 3.3).

use super::known::find;
use super::options::parse;
use super::{FileAccess, FileUse, Reading};
use crate::shell_grammar::arg::Arg;

pub(super) fn read(words: &[Arg]) -> Option<Reading> {
    let mut words = words.to_vec();
    if let Some(first) = words.first()
        && !first.start().starts_with('-')
    {
        let Some(letters) = first.literal() else {
            return Some(
                Reading::default().runs_any(format!("the shell expands {}, and the result is unknown", first.raw)),
            );
        };
        // Old-style options take their values from the following words, in the order of the letters.
        let letters: Vec<char> = letters.chars().collect();
        let mut rest = words[1..].to_vec();
        let mut options = Vec::new();
        for letter in letters {
            options.push(Arg::text(&format!("-{letter}")));
            if "fbCTXNKVgHL".contains(letter) && !rest.is_empty() {
                options.push(rest.remove(0));
            }
        }
        words = [options, rest].concat();
    }
    let parsed = parse(find("tar")?, &words);
    let (creates, lists) = (parsed.has(&["-c", "--create"]), parsed.has(&["-t", "--list"]));
    let adds = parsed.has(&["-r", "-u", "-A", "--append", "--update", "--concatenate", "--catenate", "--delete"]);
    let extracts = parsed.has(&["-x", "--extract", "--get"]);
    let archives: Vec<Arg> = parsed.values(&["-f", "--file"]).cloned().collect();
    let folder = parsed.values(&["-C", "--directory", "--cd"]).last().cloned();
    let has_folders = parsed.values(&["-C", "--directory", "--cd"]).count() > 1;
    let operands = parsed.operands.clone();
    let is_remote = archives.iter().any(|archive| archive.start().contains(':') || archive.start().is_empty());
    let mut reading = parsed.into_reading();
    reading.files.clear();
    reading.reads_only = false;
    for archive in archives.into_iter().filter(|archive| !archive.is("-")) {
        let how = if creates || adds { FileAccess::Write } else { FileAccess::Read };
        reading.files.push(FileUse::new(how, archive));
    }
    if has_folders {
        reading.doubt("the folder of each operand is unknown");
    }
    if is_remote {
        reading.doubt("tar runs a program to reach an archive on another machine");
    }
    if creates || adds {
        let members = operands
            .into_iter()
            .map(|operand| FileUse { folder: folder.clone(), ..FileUse::new(FileAccess::Tree, operand) });
        reading.files.extend(members);
    } else if extracts {
        reading.files.extend(folder.map(|folder| FileUse::new(FileAccess::Write, folder)));
        reading.doubt("the archive decides which files are written");
    } else if lists {
        reading.reads_only = reading.unsure.is_none();
    } else {
        reading.doubt("the effect on the archive is unknown");
    }
    Some(reading)
}
