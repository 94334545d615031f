//! Programs that send files elsewhere or fetch some: the files that their words name, where no table says so.

use std::path::PathBuf;

use toold_engine::effects::EffectSet;
use toold_engine::need::CommandForm;
use toold_proto::effect::Effect;

use super::known::{ProgramTable, find};
use super::options::parse;
use super::{CommandContext, FileAccess, FileUse, Reading, requests};
use crate::shell_grammar::arg::Arg;

/// Programs that send what their words name. Whatever there is of these names is read.
const SEND: &[&str] = &[
    "gsutil",
    "s3cmd",
    "s5cmd",
    "rclone",
    "mc",
    "b2",
    "azcopy",
    "http",
    "https",
    "xh",
    "xhs",
    "curlie",
    "mail",
    "mailx",
    "mutt",
    "neomutt",
    "sendmail",
    "swaks",
    "twine",
    "croc",
    "wormhole",
    "ffsend",
    "pastebinit",
    "transfer",
    "surge",
    "websocat",
    "ipfs",
    "magic-wormhole",
];

/// `None` if the program is not one of these.
pub(super) fn read(name: &str, words: &[Arg], site: &CommandContext) -> Option<Reading> {
    match name {
        "wget" => wget(words),
        "gh" => release_files(words),
        // Which files of a folder it overwrites depends on their times and sizes.
        "rsync" => Some(Reading { never_free: true, ..super::from_table(name, words) }),
        _ if SEND.contains(&name) => {
            let mut reading = super::from_table(name, words);
            add_named(words, site, &mut reading);
            Some(reading)
        }
        _ => None,
    }
}

/// Whether a program that copies files takes a word for a file of another machine, or of a container: `host:file` (scp(1),
/// rsync(1)), `container:file` (docker-cp(1), `kubectl cp --help`).
pub(in crate::shell_grammar) fn is_elsewhere(program: &str, word: &str) -> bool {
    let Some((place, _)) = word.split_once(':').filter(|(place, _)| !place.is_empty()) else { return false };
    match program {
        "scp" => !place.contains('/') || word.starts_with("scp://"),
        "rsync" => !place.contains('/') || word.starts_with("rsync://"),
        _ => !place.starts_with(['/', '.']),
    }
}

/// The effects of a program that copies files between machines, by the direction; `None` for other programs, and where words are
/// not known.
pub(super) fn effects_by_direction(known: &ProgramTable, form: Option<&CommandForm>) -> Option<EffectSet> {
    let program = known.entry.as_str();
    let from_there = match program {
        "scp" | "rsync" | "kubectl cp" => Effect::Fetch,
        "docker cp" | "docker compose cp" => Effect::Read,
        _ => return None,
    };
    let form = form.filter(|form| form.plain.iter().all(|word| word.literal))?;
    let operands: Vec<&str> =
        form.plain.iter().skip(program.split(' ').count() - 1).map(|word| word.text.as_str()).collect();
    let is_there = |word: &&str| is_elsewhere(program, word);
    let (target, sources) = operands.split_last()?;
    let fetches = sources.iter().any(is_there).then_some(from_there);
    let effects: EffectSet = match (sources.is_empty(), is_there(target)) {
        // It lists what is there.
        (true, is_there) => [if is_there { from_there } else { Effect::Read }].into_iter().collect(),
        (false, true) if matches!(program, "scp" | "rsync") => fetches.into_iter().chain([Effect::Send]).collect(),
        (false, true) => fetches.into_iter().chain([Effect::Read]).collect(),
        (false, false) => fetches.into_iter().chain([Effect::Write]).collect(),
    };
    Some(if sources.iter().all(is_there) { effects } else { effects.with(Effect::Read) })
}

/// Adds the files that words name, or that stand behind `=` or `@` in them, if there are any of the name.
pub(super) fn add_named(words: &[Arg], site: &CommandContext, reading: &mut Reading) {
    let folders = site.folders.unwrap_or_default();
    for word in words {
        let Some(text) = word.literal() else { continue };
        let behind = ['=', '@', ':'].into_iter().filter_map(|mark| text.split_once(mark).map(|(_, behind)| behind));
        for name in std::iter::once(text).chain(behind) {
            let name = name.trim_start_matches(['@', '=']);
            let is_there = |folder: &PathBuf| folder.join(name).symlink_metadata().is_ok();
            let file = Arg::text(name);
            let is_new = !reading.files.iter().any(|known| known.arg == file);
            if !name.is_empty() && !name.starts_with('-') && is_new && folders.iter().any(is_there) {
                reading.files.push(FileUse::new(FileAccess::Tree, file));
            }
        }
    }
}

/// `FILE#LABEL` is the file with a text that is shown for it (gh release upload, gh release create).
fn release_files(words: &[Arg]) -> Option<Reading> {
    if let [group, verb, address, rest @ ..] = words
        && group.is("repo")
        && verb.is("clone")
        && rest.first().is_none_or(|next| next.start().starts_with('-'))
    {
        let mut reading = parse(find("gh")?, words).into_reading();
        let made = address.literal().and_then(super::git::cloned_name);
        reading.files.extend(made.map(|name| FileUse::new(FileAccess::Write, Arg::text(name))));
        return Some(reading);
    }
    if !words.first()?.is("release") {
        return None;
    }
    let mut reading = parse(find("gh")?, words).into_reading();
    let labelled = |file: &FileUse| {
        let (name, _) = file.arg.literal()?.split_once('#')?;
        Some(FileUse { arg: Arg::text(name), ..file.clone() })
    };
    let more: Vec<FileUse> = reading.files.iter().filter_map(labelled).collect();
    reading.files.extend(more);
    Some(reading)
}

/// Options of `wget` whose values the server gets; a body has the effect by the table.
const SENT: &[&[&str]] = &[
    &["--header"],
    &["-U", "--user-agent"],
    &["--referer"],
    &["--user"],
    &["--password"],
    &["--http-user"],
    &["--http-password"],
];

/// Without `-O` it writes a file with the last name in the address (wget(1), "--output-document").
fn wget(words: &[Arg]) -> Option<Reading> {
    let parsed = parse(find("wget")?, words);
    let names_none = parsed.has(&["-O", "--output-document", "--spider", "-V", "--version", "-h", "--help"]);
    let folder = parsed.values(&["-P", "--directory-prefix"]).last().cloned();
    let has_list = parsed.has(&["-i", "--input-file"]);
    let makes_folders = parsed.has(&["-x", "--force-directories"]);
    let addresses = parsed.operands.clone();
    let added = requests::effects(&parsed, &["--method"], SENT);
    let mut reading = parsed.into_reading();
    reading.added.extend(added);
    if names_none {
        return Some(reading);
    }
    for address in &addresses {
        let name = address.literal().map(|address| {
            let rest = address.split_once("://").map_or(address, |(_, rest)| rest);
            let (path, query) = rest.split_once('?').map_or((rest, None), |(path, query)| (path, Some(query)));
            let path = path.split('#').next().unwrap_or_default();
            let last = path.split_once('/').map(|(_, path)| path.rsplit('/').next().unwrap_or_default());
            let last = last.filter(|last| !last.is_empty()).unwrap_or("index.html");
            match query {
                Some(query) => format!("{last}?{query}"),
                None => last.to_owned(),
            }
        });
        // Escaped letters are written as such, or as what they stand for.
        match name.filter(|name| !makes_folders && !name.contains(['%', '/', '*', '[', '{'])) {
            Some(name) => {
                let file = FileUse::new(FileAccess::Write, Arg::text(&name));
                reading.files.push(FileUse { folder: folder.clone(), ..file });
            }
            None => reading.doubt("the name of the file that it writes is not known"),
        }
    }
    if has_list {
        reading.doubt("the names of the files that it writes stand in another file");
    }
    Some(reading)
}
