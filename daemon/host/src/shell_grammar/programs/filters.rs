//! Programs that print names of files, or lines of their input.

use super::known::find;
use super::options::parse;
use super::{CommandOutput, FileAccess, FileUse, Reading};
use crate::shell_grammar::arg::Arg;
use crate::shell_grammar::trees::TreeFilter;

/// Prints lines of its input: of its standard input if it names no file.
pub(super) fn filter(name: &str, words: &[Arg]) -> Option<Reading> {
    let parsed = parse(find(name)?, words);
    // With these options, each printed line is a line of the input.
    let keeps: &[&str] = match name {
        "uniq" => &["-d", "-u", "-i", "--repeated", "--unique", "--ignore-case"],
        "head" | "tail" => &["-n", "--lines", "-q", "--quiet"],
        "sort" => &[
            "-r",
            "-n",
            "-u",
            "-h",
            "-V",
            "-f",
            "-d",
            "-b",
            "-g",
            "-M",
            "-R",
            "-k",
            "-t",
            "-s",
            "--reverse",
            "--unique",
        ],
        "shuf" => &["-n", "--head-count"],
        "grep" | "egrep" | "fgrep" => &[
            "-v",
            "-i",
            "-E",
            "-F",
            "-P",
            "-G",
            "-w",
            "-x",
            "-e",
            "-h",
            "-s",
            "-a",
            "-m",
            "--invert-match",
            "--ignore-case",
        ],
        _ => &[],
    };
    let is_grep = name.ends_with("grep");
    let lists = is_grep && parsed.has(&["-l", "--files-with-matches", "-L", "--files-without-match"]);
    let plain = [
        "-l",
        "-L",
        "-r",
        "-R",
        "-i",
        "-E",
        "-F",
        "-w",
        "-e",
        "-n",
        "-s",
        "--include",
        "--exclude",
        "--exclude-dir",
        "--files-with-matches",
    ];
    let lists = lists && parsed.given.iter().all(|given| plain.contains(&given.name.as_str()));
    let has_pattern = parsed.has(&["-e", "--regexp", "-f", "--file"]);
    let named = parsed.operands.len() - usize::from(is_grep && !has_pattern && !parsed.operands.is_empty());
    let keeps_lines = named == 0 && parsed.given.iter().all(|given| keeps.contains(&given.name.as_str()));
    let filter = is_grep.then(|| TreeFilter::of_grep(&parsed)).flatten();
    let mut reading = parsed.into_reading();
    for file in &mut reading.files {
        if file.how == FileAccess::Tree {
            file.filter.clone_from(&filter);
        }
    }
    if let ("cat", [file]) = (name, words)
        && reading.files.len() == 1
        && !file.is("-")
    {
        reading.output = CommandOutput::Content(file.clone());
    } else if keeps_lines && reading.files.is_empty() {
        reading.output = CommandOutput::Input;
    } else if lists {
        reading.output = CommandOutput::Names(reading.files.clone());
    }
    Some(reading)
}

pub(super) fn list(words: &[Arg]) -> Option<Reading> {
    let parsed = parse(find("ls")?, words);
    // One existing file name per line, as given.
    let is_plain = parsed.given.iter().all(|given| matches!(given.name.as_str(), "-1" | "-t" | "-r" | "-d" | "-S"));
    let has_names = !parsed.operands.is_empty() && parsed.operands.iter().all(|operand| operand.has_glob());
    let mut reading = parsed.into_reading();
    if is_plain && has_names {
        reading.output = CommandOutput::Names(reading.files.clone());
    }
    Some(reading)
}

pub(super) fn search(name: &str, words: &[Arg]) -> Option<Reading> {
    let parsed = parse(find(name)?, words);
    let has_pattern = parsed.known.first_unless.iter().any(|option| parsed.has(&[option]));
    let has_path = parsed.operands.len() > usize::from(!has_pattern);
    let lists = parsed.has(&["-l", "--files-with-matches", "--files", "--files-without-match"]);
    let plain = [
        "-l",
        "--files-with-matches",
        "--files",
        "--files-without-match",
        "-i",
        "-w",
        "-F",
        "-g",
        "-t",
        "--type",
        "--glob",
        "-e",
        "-n",
    ];
    let is_plain = parsed.given.iter().all(|given| plain.contains(&given.name.as_str()));
    let names_only = name == "rg" && parsed.has(&["--files", "--type-list"]);
    let filter = TreeFilter::of_rg(&parsed);
    // A glob is a language of its own, and brings back files that are left out without it.
    let has_globs = parsed.has(&["-g", "--glob", "--iglob", "--ignore-file", "--type-add"]);
    let mut reading = parsed.into_reading();
    reading.reads_only &= !has_globs;
    if !has_path {
        reading.files.push(FileUse::new(FileAccess::Tree, Arg::text(".")));
    }
    for file in &mut reading.files {
        if file.how == FileAccess::Tree {
            file.filter.clone_from(&filter);
            if names_only {
                file.how = FileAccess::List;
            }
        }
    }
    if lists && is_plain {
        reading.output = CommandOutput::Names(reading.files.clone());
    }
    Some(reading)
}
