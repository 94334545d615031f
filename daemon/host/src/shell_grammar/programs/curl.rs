//! `curl`.

use toold_engine::effects::AddedEffect;
use toold_proto::cut;
use toold_proto::effect::Effect;

use super::known::find;
use super::options::{Parsed, parse};
use super::{FileAccess, FileUse, Reading, requests};
use crate::shell_grammar::arg::{Arg, WordPart};

/// Options whose values the server gets; a body has the effect by the table.
const SENT: &[&[&str]] = &[
    &["-A", "--user-agent"],
    &["-b", "--cookie"],
    &["-e", "--referer"],
    &["-H", "--header"],
    &["-r", "--range"],
    &["-u", "--user"],
    &["--oauth2-bearer"],
    &["--request-target"],
    &["--url-query"],
];

/// `@file` in data that it sends, and files that are named after the URL.
pub(super) fn curl(words: &[Arg]) -> Option<Reading> {
    let parsed = parse(find("curl")?, words);
    let mut files = Vec::new();
    let mut why = None;
    let sends = [
        "-d",
        "--data",
        "--data-ascii",
        "--data-binary",
        "--data-urlencode",
        "--json",
        "-F",
        "--form",
        "-H",
        "--header",
        "-b",
        "--cookie",
        "-w",
        "--write-out",
        "--variable",
        "--url-query",
        "--expand-data",
    ];
    for value in parsed.values(&sends) {
        let Some(text) = value.literal() else {
            if value.start().is_empty() && value.pieces.first() != Some(&WordPart::Plain) {
                why = Some(format!("{} may name a file that is sent", value.raw));
            }
            continue;
        };
        // Also `name=@file`, `name=<file` and `name@file`.
        if let Some(at) = text.find(['@', '<']).filter(|at| {
            *at == 0
                || text.starts_with('@')
                || cut::before(text, *at).contains('=')
                || cut::before(text, *at).chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        }) {
            let name = cut::from(text, at + 1).split(';').next().unwrap_or_default();
            if !name.is_empty() && name != "-" {
                files.push(FileUse::new(FileAccess::Read, Arg::text(name)));
            }
        }
    }
    for value in parsed.values(&["-b", "--cookie"]) {
        if value.literal().is_some_and(|text| !text.contains('=')) {
            files.push(FileUse::new(FileAccess::Read, value.clone()));
        }
    }
    // Braces and brackets in a URL stand for several URLs, also in the scheme and host.
    let has_list = |url: &Arg| {
        let scheme = url.start().split("://").next().unwrap_or_default();
        scheme.contains(['{', '[']) || url.start().starts_with(['{', '['])
    };
    // `#1` in the name of the output stands for a part of the URL (curl(1), "--output").
    if parsed.operands.iter().chain(parsed.values(&["--url"])).any(has_list)
        || parsed.values(&["-o", "--output"]).any(|name| name.start().contains('#') || name.literal().is_none())
        || parsed.values(&["--url"]).any(|url| url.start().starts_with('@'))
        || parsed.values(&["-w", "--write-out"]).any(|format| format.start().contains("%output"))
    {
        why = Some("the files that it reads or writes are unknown".to_owned());
    }
    let names_file = |url: &&Arg| url.start().to_ascii_lowercase().starts_with("file:");
    let mut hides_file = parsed.has(&["--proto-default"]);
    for url in parsed.operands.iter().chain(parsed.values(&["--url"])).filter(names_file) {
        why = Some("its address names a file".to_owned());
        let path = url.literal().filter(|text| !text.contains(['{', '['])).and_then(path_of);
        hides_file |= path.is_none();
        files.extend(path.map(|path| FileUse::new(FileAccess::Read, Arg::text(&path))));
    }
    let folder = parsed.values(&["--output-dir"]).last().cloned();
    if parsed.has(&["-O", "--remote-name", "--remote-name-all"]) {
        for url in parsed.operands.iter().chain(parsed.values(&["--url"])) {
            let name = url.literal().and_then(|url| url.split(['?', '#']).next()?.rsplit('/').next());
            match name.filter(|name| !name.is_empty() && !name.contains(['{', '['])) {
                Some(name) => {
                    files.push(FileUse { folder: folder.clone(), ..FileUse::new(FileAccess::Write, Arg::text(name)) })
                }
                None => why = Some("the name of the file that it writes is unknown".to_owned()),
            }
        }
    }
    let added = sent(&parsed);
    let outputs: Vec<Arg> = parsed.values(&["-o", "--output"]).cloned().collect();
    let mut reading = parsed.into_reading();
    for file in reading.files.iter_mut().filter(|file| outputs.contains(&file.arg)) {
        file.folder.clone_from(&folder);
    }
    // Writing the file of `-o` is the purpose of the command.
    reading.files.iter_mut().for_each(|file| file.is_operand = true);
    reading.files.extend(files);
    reading.added.extend(added);
    reading.hides_file |= hides_file;
    if let Some(why) = why {
        reading.doubt(why);
    }
    Some(reading)
}

/// The data that it sends without a body.
fn sent(parsed: &Parsed) -> Vec<AddedEffect> {
    let mut added = requests::effects(parsed, &["-X", "--request"], SENT);
    let is_file = |header: &Arg| header.start().starts_with('@');
    // `NAME@FILE`
    let names_file = |query: &Arg| query.start().split('=').next().is_some_and(|name| name.contains('@'));
    let mut sends = |option: &[&str]| {
        added.push(AddedEffect { effect: Effect::Send, words: option.iter().map(|&name| name.to_owned()).collect() });
    };
    if parsed.values(&["-H", "--header"]).any(is_file) {
        sends(&["-H", "--header"]);
    }
    if parsed.values(&["--url-query"]).any(names_file) {
        sends(&["--url-query"]);
    }
    added
}

/// The path of `file:///path`, decoded.
fn path_of(address: &str) -> Option<String> {
    let path = url::Url::parse(address).ok()?.to_file_path().ok()?;
    path.to_str().map(str::to_owned)
}
