//! Determines the files that commands name, and the permissions to read or write them.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use toold_engine::need::{CommandForm, Need, ShownFiles};
use toold_engine::policy::{is_control, is_secret};
use toold_proto::tool::Category;

use super::arg::{Arg, WordPart};
use super::clock::JudgingClock;
use super::expand;
use super::names::{self, NameSet, TreeEntry};
use super::programs::{FileAccess, FileUse, Reading};
use super::state::{MAX_PATH, logical};
use super::trees::TreeFilter;
use super::{MAX_NEEDS, ShellWalk, SimpleCommand, programs};
use crate::credentials::holds_credentials;
use crate::exclude::Exclusions;
use crate::file_needs::{is_certificate, is_of_repository, read_need, write_need};
use crate::files::{OpenError, ResolvedPath, is_file_of_opener, is_opener_path, resolve_for};

/// Up to this number, files are judged one by one; above it, by the folder that contains them.
const MAX_SINGLE: usize = 16;
/// Limit of links that lead out of a folder: each is a need of its own.
const MAX_LINKS: usize = MAX_NEEDS;
/// Size limit of an ignore file, in bytes.
const MAX_IGNORE_FILE: u64 = 1 << 20;
/// Reading and writing these has no other effect.
const DEVICES: &[&str] = &[
    "/dev/null",
    "/dev/stdin",
    "/dev/stdout",
    "/dev/stderr",
    "/dev/zero",
    "/dev/urandom",
    "/dev/random",
    "/dev/full",
    "/dev/tty",
];

/// Programs that put files into a folder under the names that they have.
const INTO_FOLDERS: &[&str] = &[
    "cp",
    "mv",
    "ln",
    "install",
    "scp",
    "rsync",
    "git mv",
    "docker cp",
    "docker compose cp",
    "podman cp",
    "nerdctl cp",
    "kubectl cp",
    "oc cp",
];

/// Those of them that copy folders from other machines or containers: `host:folder`.
const FROM_ELSEWHERE: &[&str] =
    &["scp", "rsync", "docker cp", "docker compose cp", "podman cp", "nerdctl cp", "kubectl cp", "oc cp"];

/// Programs that take files away from where they are: all that is in a folder is read and written.
const MOVES: &[&str] = &["mv", "git mv"];

/// Programs that copy or move folders with all that is in them.
const COPY_FOLDERS: &[&str] = &[
    "cp",
    "mv",
    "scp",
    "rsync",
    "git mv",
    "docker cp",
    "docker compose cp",
    "podman cp",
    "nerdctl cp",
    "kubectl cp",
    "oc cp",
];

/// Options by which programs remove the files that they have read.
const REMOVE_SOURCES: &[(&str, &[&str])] = &[
    ("zip", &["-m", "--move"]),
    ("tar", &["--remove-files"]),
    ("gtar", &["--remove-files"]),
    ("rsync", &["--remove-source-files"]),
];

/// Folders whose files are fetched again, so that removing a file there removes no secret of anybody.
const FETCHED: &[&str] = &["node_modules", "site-packages", "dist-packages", "bower_components"];

/// What a command puts into a folder.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct PutFile {
    name: PathBuf,
    /// Where it is copied or moved from, with everything inside if it is a folder.
    from: Option<PathBuf>,
}

/// Files that a command puts into a folder, if another one of the line makes them before.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ComingFiles {
    /// The folder from which they come.
    from: PathBuf,
    /// Their place below the folder into which they are put.
    below: PathBuf,
}

/// A file or folder that a command names.
#[derive(Clone, Debug)]
pub(super) struct NamedFile {
    how: FileAccess,
    /// Absolute; links are not followed yet.
    path: PathBuf,
    /// The parts of it that are used, if not everything inside.
    covers: Option<Rc<NameSet>>,
    filter: Option<Rc<TreeFilter>>,
    /// What is put into it, if it is a folder.
    puts: Vec<PutFile>,
    /// Files that another command of the line makes, and that may be put into it.
    coming: Vec<ComingFiles>,
    /// See [`toold_engine::need::JudgedFile::overwrites`].
    overwrites: Vec<PathBuf>,
    /// The folder in which a wildcard has found it.
    matched_in: Option<PathBuf>,
    /// The target of the command.
    pub(super) command: String,
    is_operand: bool,
    /// It may be a file of another machine: `host:file`.
    is_elsewhere: bool,
    /// It is one, of which no permission speaks.
    is_remote: bool,
    /// Files are put here: see `puts`.
    is_target: bool,
    /// If it is a folder, everything inside is written as well: it is moved, removed, or changed.
    is_whole: bool,
    /// The folder that is copied to it, if it is one that does not exist yet.
    copy_of: Option<PathBuf>,
    /// Why the file is not known after all, and whether it may be one that no tool touches.
    pub(super) unknown: Option<(String, bool)>,
    /// How many links were followed to get here.
    depth: usize,
}

/// Why it is not known where a path leads.
pub(super) fn leads_nowhere(error: &std::io::Error) -> String {
    match is_opener_path(error) {
        true => error.to_string(),
        false => "a loop of symbolic links".to_owned(),
    }
}

pub(super) fn is_device(path: &str) -> bool {
    let descriptor = path.strip_prefix("/dev/fd/");
    DEVICES.contains(&path)
        || descriptor.is_some_and(|number| number.len() < 4 && number.bytes().all(|b| b.is_ascii_digit()))
}

/// Whether a name that is not known as a whole may become that of a file that no tool reads, or writes.
pub(super) fn may_be_forbidden(arg: &Arg, how: FileAccess) -> bool {
    match arg.pieces.last() {
        // Whatever comes before: what is forbidden depends on the last parts of a path, but for the daemon's own folders.
        Some(WordPart::Text(tail)) if how == FileAccess::Read && tail.contains('/') => {
            tail.split('/').any(|part| part == "toold") || is_secret(Path::new(&format!("/x{tail}")))
        }
        Some(_) => how != FileAccess::List,
        None => false,
    }
}

/// The last part of the path of a file that is read in a folder which is not known.
fn name_anywhere(arg: &Arg, how: FileAccess) -> Option<String> {
    match arg.pieces.last() {
        Some(WordPart::Text(tail)) if how == FileAccess::Read => {
            let name = tail.rsplit_once('/').map(|(_, name)| name).or(arg.literal())?;
            Some(name.to_owned()).filter(|name| !matches!(name.as_str(), "" | "." | ".."))
        }
        _ => None,
    }
}

impl ShellWalk<'_, '_, '_> {
    /// Looks up the names that leading wildcards match, where the program might take one for an option. True if that
    /// was done.
    pub(super) fn look_up_wildcards(&mut self, words: &[Arg], reading: &mut Reading) -> bool {
        if reading.known.is_none_or(|known| known.closed && !known.has_choosing_options()) {
            return false;
        }
        let mut looked_up = false;
        for word in words.iter().skip(1).filter(|word| matches!(word.pieces.first(), Some(WordPart::Glob(_)))) {
            looked_up = true;
            if self.clock.is_over() {
                break;
            }
            let folders = self.state.folders().map(<[PathBuf]>::to_vec).unwrap_or_default();
            let found: Option<Vec<NameSet>> =
                folders.iter().map(|folder| expand::expand(word, folder, self.surroundings.may_read)).collect();
            let is_option =
                |file: &PathBuf| file.file_name().is_none_or(|name| name.as_encoded_bytes().starts_with(b"-"));
            match found.filter(|found| !found.is_empty()) {
                None => reading.doubt(format!("the files that {} matches are unknown", word.raw)),
                Some(found) if found.iter().flat_map(|names| &names.files).any(is_option) => {
                    reading.doubt(format!("{} matches a file whose name looks like an option", word.raw));
                }
                Some(_) => {}
            }
        }
        looked_up
    }

    /// The files of a command. If one of them is unknown, so is the effect of the command.
    pub(super) fn named_files(&mut self, reading: &mut Reading) -> Vec<NamedFile> {
        let mut found = Vec::new();
        for file in std::mem::take(&mut reading.files) {
            // The line is not judged then.
            if found.len() > MAX_NEEDS || self.clock.is_over() {
                break;
            }
            let (from, is_remote) = (found.len(), is_remote(&file, reading));
            if let Err(why) = self.named_file(&file, &mut found) {
                reading.hides_file |= may_be_forbidden(&file.arg, file.how);
                reading.reads_anywhere.extend(name_anywhere(&file.arg, file.how));
                reading.doubt(why);
                found.extend(self.forbidden_anywhere(&file));
            }
            found.iter_mut().skip(from).for_each(|file: &mut NamedFile| file.is_remote = is_remote);
        }
        // The words of a command with an option that may do more have no form.
        let given = |options: &[&str]| {
            let named = reading.form.iter().flat_map(|form| &form.options).flat_map(|option| &option.names);
            let noted = reading.notes.iter().map(|note| &note.text);
            let is_given = |name: &String, option: &&str| {
                let is_bundle = name.starts_with('-') && !name.starts_with("--") && option.len() == 2;
                name == option || is_bundle && name.ends_with(option.trim_start_matches('-'))
            };
            named.chain(noted).any(|name| options.iter().any(|option| is_given(name, option)))
        };
        let removes = |name: &str| REMOVE_SOURCES.iter().any(|(program, options)| *program == name && given(options));
        if reading.known.is_some_and(|known| removes(&known.name)) {
            let is_source = |file: &&NamedFile| matches!(file.how, FileAccess::Read | FileAccess::Tree);
            let sources: Vec<NamedFile> = found.iter().filter(is_source).cloned().collect();
            let removed = |file| NamedFile { how: FileAccess::Write, is_whole: true, is_operand: true, ..file };
            found.splice(0..0, sources.into_iter().map(removed));
        }
        if let Some(known) = reading.known.filter(|known| INTO_FOLDERS.contains(&known.name.as_str())) {
            let is_merged = known.name != "rsync" && given(&["-T", "--no-target-directory"]);
            let is_known = name_what_is_put(&mut found, &known.name, is_merged).is_some();
            let is_recursive = reading.form.as_ref().is_none_or(|form| {
                let all = ["-r", "-a", "-R", "--recursive", "--archive"];
                form.options.iter().any(|option| option.names.iter().any(|name| all.contains(&name.as_str())))
            });
            let brings_folder = |file: &NamedFile| {
                FROM_ELSEWHERE.contains(&known.name.as_str())
                    && file.brings_folder(is_recursive || known.name.ends_with(" cp"))
            };
            if !is_known || found.iter().any(brings_folder) {
                reading.doubt("it puts files into a folder, and their names are not known");
                let targets = found.iter().filter(|file| file.is_target);
                reading.writes_in.extend(targets.map(|file| Arg::text(&file.path.to_string_lossy())));
            }
            let empties = |form: &CommandForm| {
                form.options.iter().flat_map(|option| &option.names).any(|name| name.starts_with("--del"))
            };
            if known.name == "rsync" && reading.form.as_ref().is_some_and(empties) {
                found.iter_mut().filter(|file| file.is_target).for_each(|file| file.is_whole = true);
            }
            // They are read under their new name.
            if MOVES.contains(&known.name.as_str()) {
                let moved = |file: &&mut NamedFile| file.is_operand && !file.is_target;
                found.iter_mut().filter(moved).for_each(|file| file.is_whole = true);
                let sources: Vec<NamedFile> = found.iter().filter(|file| file.is_whole).cloned().collect();
                let read = |file| NamedFile { how: FileAccess::Tree, is_whole: false, ..file };
                found.extend(sources.into_iter().map(read));
            }
        }
        found
    }

    /// The paths of folders, links followed as far as they exist; the root folder for those that are not known.
    pub(super) fn folders_written(&self, folders: &[Arg]) -> Vec<String> {
        let here = self.state.folders().unwrap_or_default();
        let paths = |folder: &Arg| match folder.literal() {
            Some(text) if !here.is_empty() => here.iter().map(|here| logical(&here.join(text))).collect(),
            Some(_) | None => vec![PathBuf::from("/")],
        };
        let real = |path: PathBuf| path.canonicalize().unwrap_or(path).to_string_lossy().into_owned();
        folders.iter().flat_map(paths).map(real).collect()
    }

    /// All files in a folder, or the file, for a program that gets it as a whole.
    pub(super) fn shown_in(&mut self, folder: PathBuf) -> Arc<ShownFiles> {
        self.files_in(folder, "", enters(None))
    }

    /// The files in a folder that end so, for a program that changes any of them; all files if there are no endings.
    pub(super) fn changed_in(&mut self, folder: PathBuf, endings: &str) -> Arc<ShownFiles> {
        let is_of_others = |name: &str| FETCHED.contains(&name) || matches!(name, ".git" | "target" | ".venv" | "venv");
        self.files_in(folder, endings, |entry| !is_of_others(entry.name))
    }

    fn files_in(&mut self, folder: PathBuf, endings: &str, enters: impl FnMut(&TreeEntry) -> bool) -> Arc<ShownFiles> {
        if let (false, Some(above), Some(name)) = (folder.is_dir(), folder.parent(), folder.file_name()) {
            let names = Some(vec![name.to_string_lossy().into_owned()]);
            return Arc::new(ShownFiles { folder: above.to_owned(), names, leaving_out: None });
        }
        let is_known = folder.parent().is_some() && (self.surroundings.may_read)(&folder);
        let takes = |entry: &TreeEntry| {
            let ending = entry.name.trim_start_matches('.').rsplit_once('.').map(|(_, ending)| ending);
            endings.is_empty()
                || ending.is_some_and(|ending| endings.split(' ').any(|known| ending.eq_ignore_ascii_case(known)))
        };
        let found = is_known.then(|| names::tree(&folder, enters, takes)).flatten();
        let name = |file: &PathBuf| Some(file.strip_prefix(&folder).ok()?.to_str()?.to_owned());
        let names = found.map(|files| files.iter().filter_map(name).collect());
        Arc::new(ShownFiles { folder, names, leaving_out: None })
    }

    /// A file of the unknown folder that no tool touches in any folder, by its name alone. The line's folder stands for it.
    fn forbidden_anywhere(&self, file: &FileUse) -> Option<NamedFile> {
        let text = file.arg.literal().filter(|text| !text.is_empty() && file.how != FileAccess::List)?;
        let anywhere = Path::new("/x").join(text);
        let is_forbidden = is_secret(&anywhere) || file.how == FileAccess::Write && is_control(&anywhere);
        is_forbidden.then(|| NamedFile::of(file, logical(&self.surroundings.cwd.join(text))))
    }

    pub(super) fn named_file(&mut self, file: &FileUse, found: &mut Vec<NamedFile>) -> Result<(), String> {
        let unknown = || format!("the file that {} names is unknown", file.arg.raw);
        let named = |path: PathBuf| NamedFile::of(file, path);
        if file.arg.start().len() > MAX_PATH {
            return Err("a path is longer than the system allows".to_owned());
        }
        match file.arg.pieces.as_slice() {
            [] | [WordPart::Pipe] => return Ok(()),
            [WordPart::Names(names)] => {
                // Relative names, interpreted in another folder.
                if self.state.folders() != Some(std::slice::from_ref(&names.base)) {
                    return Err(unknown());
                }
                // A folder among them is read with everything inside.
                if file.how == FileAccess::Tree && names.files.len() <= MAX_SINGLE {
                    let whole = |path: &PathBuf| NamedFile { filter: None, ..named(path.clone()) };
                    found.extend(names.files.iter().map(whole));
                    return Ok(());
                }
                if file.how == FileAccess::Tree {
                    found.push(NamedFile { filter: None, ..named(names.folder.clone()) });
                    return Ok(());
                }
                if names.files.len() <= MAX_SINGLE {
                    found.extend(names.files.iter().cloned().map(named));
                } else {
                    // Their names belong to the folder.
                    let covers = (file.how != FileAccess::List).then(|| names.clone());
                    found.push(NamedFile { covers, ..named(names.folder.clone()) });
                }
                return Ok(());
            }
            _ => {}
        }
        if file.arg.literal().is_some_and(is_device) {
            return Ok(());
        }
        let folders = self.folders_of(file)?;
        for folder in folders {
            if let Some(text) = file.arg.literal() {
                found.push(named(folder.join(text)));
                continue;
            }
            if !file.arg.has_glob() {
                return Err(unknown());
            }
            let names = expand::expand(&file.arg, &folder, self.surroundings.may_read).ok_or_else(unknown)?;
            let named = |path| NamedFile { matched_in: Some(names.folder.clone()), ..named(path) };
            match names.files.len() {
                // Then the wildcard is an ordinary character.
                0 => found.push(named(folder.join(file.arg.pattern()))),
                1..=MAX_SINGLE => found.extend(names.files.iter().cloned().map(named)),
                _ => {
                    let covers = (file.how != FileAccess::List).then(|| Rc::new(names.clone()));
                    found.push(NamedFile { covers, ..named(names.folder.clone()) });
                }
            }
        }
        Ok(())
    }

    /// The folder for relative names of a use.
    fn folders_of(&self, file: &FileUse) -> Result<Vec<PathBuf>, String> {
        let below = match &file.folder {
            None => None,
            Some(folder) => {
                Some(folder.literal().ok_or_else(|| format!("the folder that {} names is unknown", folder.raw))?)
            }
        };
        if file.arg.start().starts_with('/') {
            return Ok(vec![PathBuf::from("/")]);
        }
        if let Some(absolute) = below.filter(|below| below.starts_with('/')) {
            return Ok(vec![absolute.into()]);
        }
        let folders = self.state.folders().ok_or_else(|| "the folder that it runs in is unknown".to_owned())?;
        Ok(folders.iter().map(|folder| below.map_or_else(|| folder.clone(), |below| folder.join(below))).collect())
    }

    /// The names that a program prints for these; `None` if they are unknown or not one word each.
    pub(super) fn names_of(&mut self, uses: &[FileUse]) -> Option<Rc<NameSet>> {
        let mut reading = Reading { files: uses.to_vec(), ..Reading::default() };
        let named = self.named_files(&mut reading);
        if reading.unsure.is_some() {
            return None;
        }
        let base = match self.state.folders() {
            Some([folder]) => folder.clone(),
            _ => return None,
        };
        let (first, mut files) = (named.first()?.path.clone(), Vec::new());
        for named in named {
            let ResolvedPath { path, judged_as, .. } =
                resolve_for(&named.path, Path::new("/"), self.surroundings.may_read).ok()?;
            if judged_as.is_some() || !(self.surroundings.may_read)(&path) {
                return None;
            }
            match (&named.covers, path.is_dir()) {
                (Some(names), _) => files.extend(names.files.iter().cloned()),
                // `ls` shows the contents of a folder.
                (None, true) if named.how == FileAccess::List => return None,
                (None, true) if named.how == FileAccess::Tree => {
                    let (enters, takes) = (enters(named.filter.as_deref()), takes(named.filter.as_deref()));
                    let is_of_files = named.filter.as_ref().is_some_and(|filter| filter.is_of_files);
                    let found = match is_of_files {
                        true => names::tree(&path, enters, takes)?,
                        // A program that gets a folder may use everything inside.
                        false => names::tree_with_folders(&path, enters, takes)?,
                    };
                    let names_itself = named.filter.as_ref().is_none_or(|filter| filter.includes.is_empty());
                    files.extend((!is_of_files && names_itself).then(|| named.path.components().collect::<PathBuf>()));
                    // As they are printed: appended to the given name.
                    let as_printed = |file: &PathBuf| {
                        named.path.join(file.strip_prefix(&path).unwrap_or(file)).components().collect()
                    };
                    files.extend(found.iter().map(as_printed));
                }
                (None, _) => files.push(named.path),
            }
        }
        let printed = NameSet::printed(first, files, &base);
        // After a given starting point such as `.`, no name begins with a dash.
        let has_dash = printed.has_dash && uses.iter().any(|file| file.how != FileAccess::Tree);
        Some(Rc::new(NameSet { has_dash, ..printed }))
    }
}

/// Whether the word that names a file is certainly `host:file` to a program that copies such files.
fn is_remote(file: &FileUse, reading: &Reading) -> bool {
    let program = reading.known.map(|known| known.name.as_str()).filter(|program| FROM_ELSEWHERE.contains(program));
    let (Some(program), Some(text), Some(form)) = (program, file.arg.literal(), &reading.form) else { return false };
    let is_operand = form.plain.iter().any(|word| word.literal && word.text == text);
    is_operand && programs::is_elsewhere(program, text)
}

/// Notes the names that files get in the folders that they are put into: the last operand, or that of `-t`.
/// For rsync, a folder with a slash at its end stands for the files in it; with `is_merged`, each one does. `None` if these are
/// too many.
fn name_what_is_put(files: &mut [NamedFile], program: &str, is_merged: bool) -> Option<()> {
    let (is_rsync, copies_folders) = (program == "rsync", COPY_FOLDERS.contains(&program));
    // Options of rsync name files for other purposes.
    let is_option = |file: &NamedFile| file.how == FileAccess::Write && !file.is_operand && !is_rsync;
    let is_named = |file: &NamedFile| file.how == FileAccess::Write && file.is_operand;
    let last = files.iter().rposition(is_named).filter(|_| !files.iter().any(is_option));
    for (at, file) in files.iter_mut().enumerate() {
        file.is_target = is_option(file) || Some(at) == last;
    }
    let targets: Vec<usize> = (0..files.len()).filter(|at| files[*at].is_target).collect();
    let sources: Vec<usize> = (0..files.len()).filter(|at| files[*at].is_operand && !targets.contains(at)).collect();
    // A folder is copied to a name that does not exist yet, or over a file, which fails.
    if let ([source], true) = (sources.as_slice(), copies_folders) {
        let copied = files[*source].path.clone();
        for at in targets.iter().filter(|_| copied.is_dir()) {
            let target = &mut files[*at];
            target.copy_of = (!target.path.is_dir()).then(|| copied.clone());
        }
    }
    let targets: Vec<usize> = targets.into_iter().filter(|at| files[*at].path.is_dir()).collect();
    if targets.is_empty() {
        return Some(());
    }
    let mut put: Vec<PutFile> = Vec::new();
    let mut coming: Vec<ComingFiles> = Vec::new();
    for file in sources.into_iter().map(|at| &files[at]) {
        let text = file.path.as_os_str().as_encoded_bytes();
        let is_content = text.ends_with(b"/.") || text.ends_with(b"/..") || is_rsync && text.ends_with(b"/");
        let takes_content = |path: &Path| is_content || is_merged && path.is_dir();
        let below = if takes_content(&file.path) { Some(OsStr::new("")) } else { file.path.file_name() };
        coming.extend(match &file.matched_in {
            _ if file.is_elsewhere => None,
            Some(folder) => Some(ComingFiles { from: folder.clone(), below: PathBuf::new() }),
            None => below.map(|below| ComingFiles { from: file.path.clone(), below: below.into() }),
        });
        let from = |path: &Path| Some(path.to_owned()).filter(|path| copies_folders && path.is_dir());
        let of = |path: &PathBuf| Some(PutFile { name: PathBuf::from(path.file_name()?), from: from(path) });
        if file.covers.is_none() && file.is_elsewhere {
            put.push(PutFile { name: PathBuf::from(file.elsewhere_name()), from: None });
            continue;
        }
        for path in file.covers.as_ref().map_or(std::slice::from_ref(&file.path), |several| &several.files) {
            if !takes_content(path) || file.covers.is_some() && !is_merged {
                put.extend(of(path));
                continue;
            }
            let inside = names::tree(path, |_| true, |_| true)?;
            let below = inside.iter().filter_map(|inside| inside.strip_prefix(path).ok());
            let firsts = below.filter_map(|below| below.iter().next());
            put.extend(firsts.map(|first| PutFile { name: first.into(), from: from(&path.join(first)) }));
        }
    }
    put.sort();
    put.dedup();
    if put.len() > super::MAX_NEEDS {
        return None;
    }
    for at in targets {
        files[at].puts.clone_from(&put);
        files[at].coming.clone_from(&coming);
    }
    Some(())
}

/// The files in a folder that is copied to other names, under each of these names. Too many are a doubt of whoever reads
/// them.
fn copied(from: &Path, to: &[PathBuf]) -> Vec<String> {
    let inside = names::tree(from, |_| true, |_| true).unwrap_or_default();
    let below: Vec<&Path> = inside.iter().filter_map(|file| file.strip_prefix(from).ok()).collect();
    to.iter().flat_map(|to| below.iter().map(|below| to.join(below).to_string_lossy().into_owned())).collect()
}

fn enters(filter: Option<&TreeFilter>) -> impl FnMut(&TreeEntry) -> bool {
    // Git's packed files are not files of the project.
    move |entry| {
        !(entry.name == "objects" && entry.path.parent().is_some_and(|folder| folder.ends_with(".git")))
            && filter.is_none_or(|filter| filter.enters(entry))
    }
}

fn takes(filter: Option<&TreeFilter>) -> impl FnMut(&TreeEntry) -> bool {
    move |entry| filter.is_none_or(|filter| filter.takes(entry))
}

/// What they write is a program of the project, built from its code, and no script.
const COMPILERS: &[&str] =
    &["gcc", "g++", "cc", "c++", "clang", "clang++", "rustc", "go", "ld", "javac", "cargo", "make"];

impl NamedFile {
    fn of(file: &FileUse, path: PathBuf) -> Self {
        Self {
            how: file.how,
            path,
            covers: None,
            filter: file.filter.clone(),
            puts: Vec::new(),
            coming: Vec::new(),
            overwrites: Vec::new(),
            matched_in: None,
            command: String::new(),
            is_operand: file.is_operand,
            is_elsewhere: file.arg.start().contains(':') && !file.arg.start().starts_with(['/', '.']),
            is_remote: false,
            is_target: false,
            is_whole: file.is_whole,
            copy_of: None,
            unknown: None,
            depth: 0,
        }
    }

    /// Whether it is written, and may be the file at this path, or a folder around it.
    pub(super) fn may_write(&self, path: &Path) -> bool {
        let program = self.command.split(' ').next().unwrap_or_default();
        let is_built = COMPILERS.contains(&program);
        self.how == FileAccess::Write && !is_built && (path.starts_with(&self.path) || self.unknown.is_some())
    }

    pub(super) fn how(&self) -> FileAccess {
        self.how
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn is_target(&self) -> bool {
        self.is_target
    }

    pub(super) fn is_elsewhere(&self) -> bool {
        self.is_elsewhere
    }

    /// Whether it may be a folder of another machine, of which nobody knows what is in it, or several files.
    fn brings_folder(&self, is_recursive: bool) -> bool {
        let name = self.elsewhere_name();
        let is_file = name.trim_start_matches('.').contains('.') || !is_recursive;
        let is_known = !matches!(name.as_str(), "" | "." | "..") && !name.contains(['*', '?', '[', '{', '~', '$', '`']);
        self.is_elsewhere && !self.is_target && !(is_known && is_file)
    }

    /// The last part of its name on the other machine.
    fn elsewhere_name(&self) -> String {
        let text = self.path.to_string_lossy();
        let text = text.rsplit('/').next().unwrap_or_default();
        text.rsplit(':').next().unwrap_or_default().to_owned()
    }

    /// Notes what is overwritten by files that come from folders into which the line puts some before: whatever is there.
    /// `is_filled` tells about a folder. False if that is too much to look at.
    pub(super) fn note_overwritten(&mut self, is_filled: impl Fn(&Path) -> bool) -> bool {
        for ComingFiles { from, below } in &self.coming {
            if from.symlink_metadata().is_ok() && !is_filled(from) {
                continue;
            }
            let place = self.path.join(below);
            match names::tree(&place, |entry| entry.name != ".git", |_| true) {
                Some(there) => self.overwrites.extend(there),
                None => return false,
            }
        }
        true
    }

    /// The names at which files are put here; none for a file that is not a target.
    pub(super) fn put_at(&self) -> Vec<PathBuf> {
        match (self.is_target, self.puts.as_slice()) {
            (false, _) => Vec::new(),
            (true, []) => vec![self.path.clone()],
            (true, put) => put.iter().map(|put| self.path.join(&put.name)).collect(),
        }
    }

    /// The file or folder, and those of its files that were named one by one.
    pub(super) fn paths(&self) -> impl Iterator<Item = &Path> {
        let covers = self.covers.iter().flat_map(|names| &names.files);
        std::iter::once(&self.path).chain(covers).map(PathBuf::as_path)
    }

    /// A place on the path that needs permission comes before the file.
    pub(super) fn needs(
        &self,
        line: &str,
        may_read: &mut dyn FnMut(&Path) -> bool,
        exclusions: &mut Exclusions,
        clock: JudgingClock,
    ) -> Vec<Need> {
        if self.is_remote {
            return Vec::new();
        }
        let not_known = |why: &str| {
            let target = format!("{} (what is in {})", self.command, self.path.display());
            vec![SimpleCommand { hides_file: true, ..SimpleCommand::not_understood(&target, why) }.need(line)]
        };
        let category = match self.how {
            FileAccess::Write => Category::FileWrite,
            FileAccess::Read | FileAccess::Tree | FileAccess::List => Category::FileRead,
        };
        let mut on = |path: &Path| {
            let need = match category {
                Category::FileWrite => write_need(path, exclusions),
                _ => read_need(path, exclusions),
            };
            Need { line: Some(line.to_owned()), ..need }.with_file(|file| {
                file.is_public = category == Category::FileRead && is_public(path);
                file.of_command = self.is_operand.then(|| self.command.clone());
            })
        };
        let ResolvedPath { mut path, judged_as, .. } = match resolve_for(&self.path, Path::new("/"), may_read) {
            Ok(found) => found,
            // No program needs such a name, and it could be that of any file.
            Err(error) if is_file_of_opener(&error) => {
                return vec![Need { forbidden: Some(error.to_string()), ..on(&self.path) }];
            }
            // Only names are shown, and these are about the program.
            Err(error) if is_opener_path(&error) && self.how == FileAccess::List => {
                ResolvedPath { path: self.path.clone(), judged_as: None, kind: None }
            }
            Err(error) => return not_known(&leads_nowhere(&error)),
        };
        // Only names are shown, and they belong to the folder.
        if self.how == FileAccess::List
            && (is_secret(&path) && !path.is_dir() || !path.is_dir())
            && let Some(folder) = path.parent()
        {
            path = folder.to_owned();
        }
        if let Some(judged_as) = judged_as {
            return vec![on(&judged_as), on(&path)];
        }
        let overwrites = self.overwrites.iter().map(|path| path.to_string_lossy().into_owned()).collect();
        let mut needs = vec![on(&path).with_file(|file| file.overwrites = overwrites)];
        if let Some(from) = &self.copy_of {
            // Another command of the line may make the folder before, and then the copy gets its name in it.
            let inside = from.file_name().map(|name| path.join(name));
            let covers = copied(from, &[path.clone()].into_iter().chain(inside).collect::<Vec<_>>());
            if let Some(file) = needs[0].file_mut() {
                file.covers = covers;
            }
        }
        if let Some((why, hides_file)) = &self.unknown {
            let unknown = SimpleCommand::not_understood(&self.path.display().to_string(), why);
            needs.push(SimpleCommand { hides_file: *hides_file, ..unknown }.need(line));
        }
        if self.how == FileAccess::Read && is_own_input(&self.command, &path) {
            let input = needs[0].target.clone();
            if let Some(file) = needs[0].file_mut() {
                file.no_secrets.push(input);
                file.holds_secrets.clear();
            }
        }
        for put in &self.puts {
            let file = path.join(&put.name);
            // Through a link, the file that it names is written.
            let covers = put.from.iter().flat_map(|from| copied(from, std::slice::from_ref(&file))).collect();
            match resolve_for(&file, Path::new("/"), may_read) {
                Ok(ResolvedPath { path, judged_as, .. }) => {
                    needs.extend(judged_as.map(|judged_as| on(&judged_as)));
                    needs.push(on(&path).with_file(|file| file.covers = covers));
                }
                Err(error) => return not_known(&leads_nowhere(&error)),
            }
        }
        if self.how == FileAccess::Tree && !may_read(&path) {
            // Its contents are not examined, so whether everyone may read them is unknown.
            if let Some(file) = needs[0].file_mut() {
                file.is_public &= !path.is_dir();
            }
            return needs;
        }
        let takes_all = self.how == FileAccess::Tree || self.is_whole;
        let folders: Vec<PathBuf> = match (&self.covers, takes_all && path.is_dir()) {
            (Some(_), _) if !takes_all => Vec::new(),
            (Some(names), _) => {
                names.files.iter().filter(|file| file.is_dir() && !file.is_symlink()).cloned().collect()
            }
            (None, true) => vec![path.clone()],
            (None, false) => return needs,
        };
        let filter = self.filter.as_deref();
        let shows_hidden =
            filter.is_some_and(|filter| filter.skips_hidden) && folders.iter().any(|folder| brings_back_hidden(folder));
        let filter = filter.filter(|_| !shows_hidden);
        let mut covers = self.covers.as_ref().map(|names| names.files.clone()).unwrap_or_default();
        let is_removed = self.is_whole && self.how == FileAccess::Write;
        for folder in &folders {
            let all = names::tree(folder, enters(filter), takes(filter)).or_else(|| {
                // What is fetched again has rules of its own rarely, and most files.
                let enters_own = |entry: &TreeEntry| !FETCHED.contains(&entry.name) && enters(filter)(entry);
                is_removed.then(|| names::tree(folder, enters_own, takes(filter))).flatten()
            });
            match all {
                Some(found) => covers.extend(found),
                None => return not_known("it contains too many files to check, or one whose name is not UTF-8"),
            }
        }
        // What is fetched again is nobody's own, neither its secrets nor its settings.
        let is_own = |file: &PathBuf| !file.iter().any(|part| FETCHED.iter().any(|folder| part == *folder));
        if is_removed {
            covers.retain(is_own);
        }
        let (mut links, mut seen) = (Vec::new(), HashSet::new());
        // A link may lead to a file that is left out under its own name.
        let follows = filter.is_some_and(|filter| filter.follows_links);
        let own: HashSet<&PathBuf> = if follows { covers.iter().collect() } else { HashSet::new() };
        for file in &covers {
            if clock.is_over() || links.len() > MAX_LINKS {
                return not_known("it contains too many files and links to check");
            }
            if self.how != FileAccess::Write && file.is_symlink() {
                match resolve_for(file, Path::new("/"), may_read) {
                    Ok(ResolvedPath { path: target, .. }) => {
                        let is_further = !target.starts_with(&path) || follows && !own.contains(&target);
                        if is_further && seen.insert(target.clone()) {
                            links.push(target);
                        }
                    }
                    Err(error) if is_opener_path(&error) => return not_known(&leads_nowhere(&error)),
                    // Programs cannot open a loop of links.
                    Err(_) => {}
                }
            }
            if needs[0].forbidden.is_none() {
                needs[0].forbidden = exclusions.reason(file, false);
            }
        }
        let looks = |_: &&PathBuf| category == Category::FileRead && !clock.is_over();
        let shown = |file: &PathBuf| file.to_string_lossy().into_owned();
        if let Some(folder) = needs[0].file_mut() {
            folder.covers.extend(covers.iter().map(shown));
            let is_written = |_: &&PathBuf| category == Category::FileWrite;
            folder
                .of_repository
                .extend(covers.iter().filter(is_written).filter(|file| is_of_repository(file)).map(shown));
            folder.no_secrets.extend(covers.iter().filter(looks).filter(|file| is_certificate(file)).map(shown));
            folder.holds_secrets.extend(covers.iter().filter(looks).filter(|file| holds_credentials(file)).map(shown));
        }
        for target in links {
            let how = if self.how == FileAccess::Tree { FileAccess::Tree } else { FileAccess::Read };
            // Links inside lead to further places, which are not all examined.
            if self.depth > 0 {
                return not_known("its links lead to folders that contain further links");
            }
            let (path, depth) = (target, self.depth + 1);
            let linked = Self { how, path, depth, covers: None, puts: Vec::new(), ..self.clone() };
            needs.extend(linked.needs(line, may_read, exclusions, clock));
        }
        needs
    }
}

/// Options whose values are keys that a program uses and does not show.
const KEY_OPTIONS: &[(&str, &[&str])] = &[
    ("ssh", &["-i"]),
    ("scp", &["-i"]),
    ("sftp", &["-i"]),
    ("curl", &["--key", "--cert", "-E", "--cacert", "--proxy-key", "--proxy-cert"]),
];

/// Whether the command takes a file with secrets as its own input, and does not show it.
fn is_own_input(command: &str, path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let is_named = |word: &str| word.rsplit('/').next() == Some(name);
    let is_value_of = |option: &str| {
        let words: Vec<&str> = command.split_whitespace().collect();
        words.windows(2).any(|pair| pair[0] == option && is_named(pair[1]))
    };
    let first = command.split_whitespace().next().and_then(|word| word.rsplit('/').next()).unwrap_or_default();
    let uses_key = |(program, options): &(&str, &[&str])| {
        let others = command.split_whitespace().filter(|word| is_named(word)).count();
        *program == first && others == 1 && options.iter().any(|option| is_value_of(option))
    };
    if KEY_OPTIONS.iter().any(uses_key) {
        return true;
    }
    let mut words = command.split_whitespace().map(|word| word.rsplit('/').next().unwrap_or_default());
    let program = words.next().unwrap_or_default();
    let subcommand = words.find(|word| !word.starts_with('-')).unwrap_or_default();
    let is_of = |ending: &str| path.extension().is_some_and(|of| of == ending);
    matches!(program, "terraform" | "tofu")
        && matches!(subcommand, "plan" | "apply" | "destroy" | "import" | "refresh")
        && (is_of("tfvars") || is_of("tfstate"))
}

/// Whether an ignore file in the folder or above it re-includes hidden files for `rg`.
///
/// An unreadable one counts as such.
fn brings_back_hidden(folder: &Path) -> bool {
    let is_ignore_file = |name: &str| matches!(name, ".ignore" | ".rgignore" | ".gitignore");
    let brings_back = |file: &Path| match crate::files::read_whole(file, MAX_IGNORE_FILE) {
        Ok(text) => text.split(|byte| *byte == b'\n').any(|line| line.starts_with(b"!")),
        Err(error) => !matches!(error, OpenError::NotFound(_)),
    };
    let above = folder
        .ancestors()
        .flat_map(|above| [".ignore", ".rgignore", ".gitignore", ".git/info/exclude"].map(|name| above.join(name)));
    let inside = names::tree(folder, |_| true, |entry| is_ignore_file(entry.name)).unwrap_or_default();
    above.chain(inside).any(|file| brings_back(&file))
}

/// Whether this is a file or folder of the system that all users may read.
pub(super) fn is_public(path: &Path) -> bool {
    let of_system = ["/proc/cpuinfo", "/proc/meminfo", "/proc/loadavg", "/proc/uptime", "/proc/version"];
    let below = ["/etc", "/usr", "/bin", "/sbin", "/lib", "/lib64"].iter().any(|folder| path.starts_with(folder))
        || of_system.iter().any(|file| path == Path::new(file));
    let readable =
        |path: &Path, mode: u32| path.symlink_metadata().is_ok_and(|metadata| metadata.mode() & mode == mode);
    below && readable(path, 0o004) && path.ancestors().skip(1).all(|folder| readable(folder, 0o001))
}
