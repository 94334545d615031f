//! Files that a program may read because its words name them, where no table says what the words are.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use toold_engine::need::ShownFiles;
use toold_engine::policy::is_secret;
use toold_proto::cut;

use super::known::find;
use super::written_files::named_by;
use super::{
    CommandContext, FileAccess, FileUse, Reading, builtins, elsewhere, formatters, interpreters, moved, named_effects,
    shown,
};
use crate::shell_grammar::arg::Arg;
use crate::shell_grammar::state::logical;

/// So many words of a program are looked at for names of files.
const MAX_NAMED: usize = 60;
/// So many words of a text that it runs.
const MAX_NAMED_IN_TEXT: usize = 300;

/// Editors: they show the files that they write.
const EDITORS: &[&str] = &[
    "nano",
    "pico",
    "emacs",
    "emacsclient",
    "micro",
    "hx",
    "helix",
    "kak",
    "joe",
    "mg",
    "code",
    "codium",
    "red",
    "mcedit",
];

/// Further ones, and versions of them that change nothing by themselves.
const WITH_COMMANDS: &[&str] =
    &["vim", "vi", "nvim", "ex", "view", "rview", "vimdiff", "gvim", "rvim", "ed", "sam", "elvis", "vis"];

/// Programs that show what a repository of Git has.
const SHOW_REPOSITORIES: &[&str] = &["tig", "gitk", "gitg", "git-cola", "qgit", "lazygit", "gitui"];

/// Programs that read everything in the folders which their words name, with the words that choose such an operation.
const READ_FOLDERS: &[(&str, &str)] = &[
    ("7z 7za 7zr 7zz rar zpaq", "a u add"),
    ("jar ar pax dar mksquashfs genisoimage mkisofs xorriso rdiff-backup duplicity tarsnap unison", ""),
    ("docker podman nerdctl buildah", "build bud"),
    ("restic kopia", "backup create"),
    ("borg", "create"),
    ("npm pnpm bun", "pack publish"),
    ("repomix files-to-prompt code2prompt gitingest", ""),
];

/// Programs, and modules of interpreters, that show a folder to whoever connects to them, with the word behind which its name
/// stands. Without a name it is the folder that they run in.
const SERVERS: &[(&str, &str)] = &[
    ("serve http-server live-server miniserve darkhttpd dufs simple-http-server webfsd sfz", ""),
    ("http.server SimpleHTTPServer RangeHTTPServer uploadserver pyftpdlib file-server", ""),
    ("smbserver.py impacket-smbserver", ""),
    ("caddy", "file-server"),
    ("php", "-S"),
    ("twistd twist", "web"),
    ("twistd twist", "ftp"),
    ("busybox toybox", "httpd"),
    ("busybox toybox", "ftpd"),
    ("busybox toybox", "tftpd"),
    // `un`, a library of Ruby: `ruby -run -e httpd`.
    ("ruby jruby", "httpd"),
    ("ruby jruby", "-ehttpd"),
];

/// Options of servers whose value is no folder.
const OF_SERVERS: &[&str] = &[
    "-a",
    "-b",
    "-c",
    "-i",
    "-l",
    "-p",
    "-u",
    "-S",
    "--address",
    "--bind",
    "--host",
    "--hostname",
    "--interface",
    "--listen",
    "--port",
    "--protocol",
    "--user",
];

/// Programs whose words another machine or a container gives a meaning where they run a command there.
const RUN_ELSEWHERE: &[&str] = &[
    "ssh",
    "kubectl",
    "oc",
    "docker",
    "podman",
    "nerdctl",
    "docker-compose",
    "podman-compose",
    "lxc",
    "incus",
    "multipass",
    "adb",
    "vagrant",
    "flatpak",
    "az",
    "aws",
    "gcloud",
];

/// Programs that use the key behind `-i`, and do not show it.
const USE_KEYS: &[&str] = &["ssh", "scp", "sftp", "autossh"];

/// The words of a text in another language that may be names of files.
pub(super) fn names_in(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| c.is_whitespace() || "'\"`()[]{}<>|&;,=$".contains(c)).filter(|word| !word.is_empty())
}

/// The files with secrets that a text in another language names.
pub(super) fn secrets_in(text: &str) -> impl Iterator<Item = FileUse> {
    let secrets = names_in(text).filter(|word| is_secret(&Path::new("/x").join(word)));
    secrets.map(|word| FileUse { is_operand: false, ..FileUse::new(FileAccess::Read, Arg::text(word)) })
}

/// Adds the files that the words of a command name, as far as it may read them. `words` begins with the program, whose name
/// without a folder is `name`.
pub(super) fn add(name: &str, words: &[Arg], site: &CommandContext, reading: &mut Reading) {
    if site.is_elsewhere {
        return;
    }
    if EDITORS.contains(&name) {
        let written = reading.files.iter().filter(|file| file.how == FileAccess::Write);
        let is_file = |file: &&FileUse| {
            let folders = site.folders.unwrap_or_default();
            let named = file.arg.literal().map(|text| folders.iter().any(|folder| folder.join(text).is_dir()));
            named != Some(true)
        };
        let shown: Vec<FileUse> =
            written.filter(is_file).map(|file| FileUse { how: FileAccess::Read, ..file.clone() }).collect();
        reading.files.extend(shown);
    }
    for mount in elsewhere::mounted(name, words).into_iter().filter(|mount| !mount.is_read_only) {
        let Some(text) = mount.source.literal() else { continue };
        let paths = site.folders.unwrap_or_default().iter().map(|folder| logical(&folder.join(text)));
        reading.changes_in.extend(paths.filter(|path| is_inside(path, site)).map(|path| (path, "")));
        moved::may_write(std::iter::once(text), site, reading);
    }
    // Their own commands write any file: `vim -c 'w FILE'`, `ed x <<< 'w FILE'`.
    if EDITORS.contains(&name) || WITH_COMMANDS.contains(&name) {
        let texts = words.iter().skip(1).take(MAX_NAMED).filter_map(Arg::literal).chain(site.input.text());
        moved::may_write(texts.flat_map(names_in).take(MAX_NAMED_IN_TEXT), site, reading);
    }
    // It shows lines of its settings that are wrong.
    if name == "screen" {
        let settings = named_by(words, "-c").into_iter();
        reading.files.extend(settings.map(|file| FileUse::new(FileAccess::Read, file)));
    }
    if SHOW_REPOSITORIES.contains(&name) {
        shown::add_all(words, site, reading);
    }
    add_folders(name, words, site, reading);
    // A folder in the place of a file stands for the files in it: `kubectl apply -f FOLDER`.
    if !reading.reads_only && name != "git" {
        let folders = site.folders.unwrap_or_default();
        let is_folder = |text: &str| folders.iter().any(|folder| folder.join(text).is_dir());
        let read = reading.files.iter().filter(|file| file.how == FileAccess::Read && file.folder.is_none());
        let read = read.map(|file| &file.arg).filter(|arg| arg.literal().is_some_and(is_folder));
        reading.reads_in.extend(read.cloned().collect::<Vec<_>>());
    }
    if builtins::is_builtin(name) {
        return;
    }
    if reading.known.is_none() && reading.files.is_empty() {
        add_of_unknown(words, site, reading);
    }
    let runs_words = !reading.commands.is_empty() || !reading.on_found.is_empty();
    let runs_elsewhere = !reading.elsewhere.is_empty() || !reading.scripts_elsewhere.is_empty();
    // Git's output is judged by its index and its commits.
    let is_judged = name == "git" || runs_words || runs_elsewhere && RUN_ELSEWHERE.contains(&name);
    if !reading.reads_only && !is_judged {
        add_shown(words, reading.known.is_some(), site, reading);
    }
    let is_told = reading.known.is_some() && reading.unsure.is_none() || is_told_by_name(words);
    if !reading.reads_only && !is_told && !runs_words && !runs_elsewhere {
        add_written(words, site, reading);
    }
}

/// The same for a tool that another program runs here, whose name is the first word.
pub(super) fn add_of_tool(words: &[Arg], site: &CommandContext, reading: &mut Reading) {
    let name = words.first().and_then(Arg::literal).and_then(|path| path.rsplit('/').next()).unwrap_or_default();
    add_folders(name, words, site, reading);
    add_shown(words, find(name).is_some(), site, reading);
    if find(name).is_none() && !is_told_by_name(words) {
        add_written(words, site, reading);
    }
}

/// Whether it is known what the program, or the module of an interpreter, changes.
fn is_told_by_name(words: &[Arg]) -> bool {
    let is_it = |words: &[Arg]| named_effects::shows(words) || formatters::is_one(words);
    is_it(words) || interpreters::tool(words).is_some_and(|tool| is_it(&tool))
}

/// The folders that it reads with everything inside.
fn add_folders(name: &str, words: &[Arg], site: &CommandContext, reading: &mut Reading) {
    let is_one = |(programs, verbs): &&(&str, &str)| {
        programs.split(' ').any(|program| program == name)
            && (verbs.is_empty() || words.iter().any(|word| verbs.split(' ').any(|verb| word.is(verb))))
    };
    let tool = interpreters::tool(words);
    let served = served(name, words).or_else(|| {
        let (module, rest) = tool.as_ref()?.split_first()?;
        served(module.literal()?, &[std::slice::from_ref(module), rest].concat())
    });
    let packs =
        tool.as_ref().and_then(|tool| tool.first()).is_some_and(|module| module.is("zipfile") || module.is("tarfile"));
    if served.is_none() && !packs && !READ_FOLDERS.iter().any(|row| is_one(&row)) {
        return;
    }
    let folders = site.folders.unwrap_or_default();
    let is_folder = |word: &&Arg| {
        word.literal().is_some_and(|text| !text.starts_with('-') && folders.iter().any(|at| at.join(text).is_dir()))
    };
    if served.is_some() || packs {
        let is_outside = |word: &&Arg| {
            let paths =
                word.literal().into_iter().flat_map(|text| folders.iter().map(move |at| logical(&at.join(text))));
            is_folder(word) && !paths.into_iter().all(|path| is_inside(&path, site))
        };
        let outside = words.iter().skip(1).filter(is_outside);
        reading.files.extend(outside.map(|word| FileUse::new(FileAccess::Tree, word.clone())));
    }
    let is_here = served.as_ref().is_some_and(|words| {
        !words.iter().enumerate().any(|(at, word)| {
            let text = word.start();
            let before = at.checked_sub(1).map(|at| words[at].start()).unwrap_or_default();
            !text.starts_with('-')
                && !text.contains(':')
                && !text.bytes().all(|byte| byte.is_ascii_digit())
                && !OF_SERVERS.contains(&before)
        })
    });
    let attached = words
        .iter()
        .filter(|word| word.start().starts_with("--"))
        .filter_map(|word| Some(word.without_start(word.start().find('=')? + 1)));
    let attached: Vec<Arg> = attached.filter(|word| is_folder(&word)).collect();
    let here = (is_here && attached.is_empty()).then(|| Arg::text("."));
    reading.reads_in.extend(words.iter().skip(1).filter(is_folder).cloned().chain(attached).chain(here));
}

/// The words among which a server has the name of the folder that it shows.
fn served(name: &str, words: &[Arg]) -> Option<Vec<Arg>> {
    let row = SERVERS.iter().find_map(|(programs, verb)| {
        let at = if verb.is_empty() { 0 } else { words.iter().position(|word| word.is(verb))? };
        programs.split(' ').any(|program| program == name).then_some(at)
    });
    row.map(|at| words[at + 1..].to_vec())
}

/// Names among the words of a command, and in their texts.
fn names_among(words: &[Arg]) -> impl Iterator<Item = &str> {
    let program = words.first().and_then(Arg::literal).and_then(|path| path.rsplit('/').next());
    let uses_key = program.is_some_and(|name| USE_KEYS.contains(&name));
    let own = words.iter().enumerate().skip(1).take(MAX_NAMED);
    let own = own.filter(move |(at, _)| !(uses_key && words[at - 1].is("-i")));
    let names = own.filter_map(|(_, word)| word.literal()).flat_map(|text| {
        let behind = ["=", "@", ":", "file://"];
        let behind = behind.into_iter().filter_map(|mark| text.split_once(mark).map(|(_, behind)| behind));
        std::iter::once(text).chain(behind)
    });
    names.filter(|name| !name.is_empty() && !name.starts_with('-'))
}

/// The files of the session's folders that the words of a program name which no table knows, or the text that it runs: it may
/// read them, or change them. Of a secret it is not known what becomes of it.
fn add_of_unknown(words: &[Arg], site: &CommandContext, reading: &mut Reading) {
    let folders = site.folders.unwrap_or_default();
    let (only_shows, script) = (is_told_by_name(words), script_of(words, site));
    let texts: Vec<String> = interpreters::inline_script(words).into_iter().chain(reading.program.clone()).collect();
    let in_texts = texts.iter().flat_map(|text| names_in(text)).take(MAX_NAMED_IN_TEXT);
    let named = names_among(words).chain(in_texts.filter(|name| !name.starts_with('-')));
    let mut seen: Vec<PathBuf> = Vec::new();
    for path in named.flat_map(|name| folders.iter().map(move |folder| logical(&folder.join(name)))) {
        if seen.contains(&path) || !path.is_file() {
            continue;
        }
        seen.push(path.clone());
        let is_secret = is_secret(&path) || path.canonicalize().is_ok_and(|real| is_secret(&real));
        reading.hides_file |= is_secret;
        if !is_secret && is_inside(&path, site) {
            let name = path.to_string_lossy();
            reading.files.push(FileUse { is_operand: false, ..FileUse::new(FileAccess::Read, Arg::text(&name)) });
            if !only_shows && !script.contains(&path) {
                reading.discards.push(name.into_owned());
            }
        }
    }
}

/// The files and folders that a command may write, about whose words no table tells, or whose text it runs.
fn add_written(words: &[Arg], site: &CommandContext, reading: &mut Reading) {
    let script = interpreters::script_at(words);
    let is_known = reading.known.is_some();
    let is_read = |at: usize| {
        Some(at) == script || is_known && at > 0 && NAMING_INPUT.iter().any(|option| words[at - 1].is(option))
    };
    let own: Vec<Arg> = (0..words.len()).filter(|at| !is_read(*at)).map(|at| words[at].clone()).collect();
    let texts: Vec<String> = interpreters::inline_script(words).into_iter().chain(reading.program.clone()).collect();
    let is_path = |name: &&str| name.contains('/') && !name.starts_with('-');
    let in_texts = texts.iter().flat_map(|text| names_in(text)).take(MAX_NAMED_IN_TEXT).filter(is_path);
    // `-oFILE`
    let short = |text: &'_ str| text.starts_with('-') && !text.starts_with("--");
    let attached = words.iter().skip(1).take(MAX_NAMED).filter_map(Arg::literal).filter(|text| short(text));
    let attached = attached.map(|text| cut::after_first(cut::after_first(text))).filter(is_path);
    let named = names_among(&own).filter(|name| !name.contains(char::is_whitespace));
    moved::may_write(named.chain(in_texts).chain(attached), site, reading);
}

/// Options of known programs whose value is a file that they read.
const NAMING_INPUT: &[&str] = &["-f", "--file", "--env-file", "--config", "--values", "--var-file"];

/// The file that a shell or an interpreter runs: it reads that one.
fn script_of(words: &[Arg], site: &CommandContext) -> Vec<PathBuf> {
    let script = interpreters::script_at(words).and_then(|at| words[at].literal());
    let folders = site.folders.unwrap_or_default().iter();
    folders.filter_map(|folder| Some(logical(&folder.join(script?)))).collect()
}

fn is_inside(path: &Path, site: &CommandContext) -> bool {
    site.session_folders.iter().any(|place| path.starts_with(place))
}

fn may_be_code(text: &str) -> bool {
    text.contains(|c: char| c.is_whitespace() || "'\"(".contains(c))
}

/// Further files that its words may name: files that a table takes for a text or a value, files in a text, and folders of a program
/// that no table knows. If reading one of them is denied, a person is asked.
fn add_shown(words: &[Arg], is_known: bool, site: &CommandContext, reading: &mut Reading) {
    let folders = site.folders.unwrap_or_default();
    let texts = words.iter().skip(1).filter_map(Arg::literal).filter(|text| may_be_code(text));
    let in_texts: Vec<&str> = texts.flat_map(names_in).take(MAX_NAMED_IN_TEXT).collect();
    let paths_of = |name: &str| folders.iter().map(|folder| logical(&folder.join(name))).collect::<Vec<_>>();
    let used = reading.files.iter().filter_map(|file| file.arg.literal()).flat_map(paths_of);
    let mut seen: HashSet<PathBuf> = used.collect();
    let named = names_among(words).chain(in_texts).filter(|name| !name.contains(char::is_whitespace));
    for path in named.flat_map(paths_of) {
        let is_around = folders.iter().any(|folder| folder.starts_with(&path));
        if is_around || !is_inside(&path, site) || !seen.insert(path.clone()) {
            continue;
        }
        let is_there = path.is_file() || !is_known && path.is_dir();
        let Some(real) = path.canonicalize().ok().filter(|_| is_there) else { continue };
        if let (Some(folder), Some(name)) = (real.parent(), real.file_name()) {
            let names = Some(vec![name.to_string_lossy().into_owned()]);
            reading.shows.push(Arc::new(ShownFiles { folder: folder.to_owned(), names, leaving_out: None }));
        }
    }
}
