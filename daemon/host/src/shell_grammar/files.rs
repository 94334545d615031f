//! Determines the files that commands name, and the permissions to read or write them.

use std::collections::HashSet;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use toold_engine::need::Need;
use toold_engine::policy::is_secret;
use toold_proto::tool::Category;

use super::arg::{Arg, WordPart};
use super::clock::JudgingClock;
use super::expand;
use super::names::{self, NameSet, TreeEntry};
use super::programs::{FileAccess, FileUse, Reading};
use super::trees::TreeFilter;
use super::{ShellWalk, SimpleCommand};
use crate::exclude::Exclusions;
use crate::file_needs::{is_certificate, read_need, write_need};
use crate::files::{OpenError, ResolvedPath, resolve_for};

/// Up to this number, files are judged one by one; above it, by the folder that contains them.
const MAX_SINGLE: usize = 16;
/// Limit of links that lead out of a folder: each is a need of its own.
const MAX_LINKS: usize = super::MAX_NEEDS;
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
    "podman cp",
    "nerdctl cp",
    "kubectl cp",
    "oc cp",
];

/// Those of them that copy folders from other machines or containers: `host:folder`.
const FROM_ELSEWHERE: &[&str] = &["scp", "rsync", "docker cp", "podman cp", "nerdctl cp", "kubectl cp", "oc cp"];

/// Programs that take files away from where they are: all that is in a folder is read and written.
const MOVES: &[&str] = &["mv", "git mv"];

/// A file or folder that a command names.
#[derive(Clone, Debug)]
pub(super) struct NamedFile {
    how: FileAccess,
    /// Absolute; links are not followed yet.
    path: PathBuf,
    /// The parts of it that are used, if not everything inside.
    covers: Option<Rc<NameSet>>,
    filter: Option<Rc<TreeFilter>>,
    /// The names under which files are put into it, if it is a folder.
    puts: Vec<PathBuf>,
    /// The target of the command.
    pub(super) command: String,
    is_operand: bool,
    /// It may be a file of another machine: `host:file`.
    is_elsewhere: bool,
    /// Files are put here: see `puts`.
    is_target: bool,
    /// It is a folder that is moved, with everything inside.
    is_moved: bool,
    /// Why the file is not known after all, and whether it may be one that no tool touches.
    pub(super) unknown: Option<(String, bool)>,
    /// How many links were followed to get here.
    depth: usize,
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
            if let Err(why) = self.named_file(&file, &mut found) {
                reading.hides_file |= may_be_forbidden(&file.arg, file.how);
                reading.doubt(why);
            }
        }
        if let Some(known) = reading.known.filter(|known| INTO_FOLDERS.contains(&known.name.as_str())) {
            let is_known = name_what_is_put(&mut found, known.name == "rsync").is_some();
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
            }
            // They are read under their new name.
            if MOVES.contains(&known.name.as_str()) {
                let moved = |file: &&mut NamedFile| file.is_operand && !file.is_target;
                found.iter_mut().filter(moved).for_each(|file| file.is_moved = true);
                let sources: Vec<NamedFile> = found.iter().filter(|file| file.is_moved).cloned().collect();
                let read = |file| NamedFile { how: FileAccess::Tree, is_moved: false, ..file };
                found.extend(sources.into_iter().map(read));
            }
        }
        found
    }

    fn named_file(&mut self, file: &FileUse, found: &mut Vec<NamedFile>) -> Result<(), String> {
        let unknown = || format!("the file that {} names is unknown", file.arg.raw);
        let named = |path: PathBuf| NamedFile {
            how: file.how,
            path,
            covers: None,
            filter: file.filter.clone(),
            puts: Vec::new(),
            command: String::new(),
            is_operand: file.is_operand,
            is_elsewhere: file.arg.start().contains(':') && !file.arg.start().starts_with(['/', '.']),
            is_target: false,
            is_moved: false,
            unknown: None,
            depth: 0,
        };
        match file.arg.pieces.as_slice() {
            [] | [WordPart::Pipe] => return Ok(()),
            [WordPart::Names(names)] => {
                // Relative names, interpreted in another folder.
                if self.state.folders() != Some(std::slice::from_ref(&names.base)) {
                    return Err(unknown());
                }
                // A folder among them is read with everything inside.
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
            match names.files.len() {
                // Then the wildcard is an ordinary character.
                0 => found.push(named(folder.join(file.arg.pattern()))),
                1..=MAX_SINGLE => found.extend(names.files.into_iter().map(named)),
                _ => {
                    let covers = (file.how != FileAccess::List).then(|| Rc::new(names.clone()));
                    found.push(NamedFile { covers, ..named(names.folder) });
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
            let ResolvedPath { path, veil } =
                resolve_for(&named.path, Path::new("/"), self.surroundings.may_read).ok()?;
            if veil.is_some() || !(self.surroundings.may_read)(&path) {
                return None;
            }
            match (&named.covers, path.is_dir()) {
                (Some(names), _) => files.extend(names.files.iter().cloned()),
                // `ls` shows the contents of a folder.
                (None, true) if named.how == FileAccess::List => return None,
                (None, true) if named.how == FileAccess::Tree => {
                    let (enters, takes) = (enters(named.filter.as_deref()), takes(named.filter.as_deref()));
                    let found = names::tree(&path, enters, takes)?;
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

/// Notes the names that files get in the folders that they are put into: the last operand, or that of `-t`.
/// For rsync, a folder with a slash at its end stands for the files in it. `None` if these are too many.
fn name_what_is_put(files: &mut [NamedFile], is_rsync: bool) -> Option<()> {
    // Options of rsync name files for other purposes.
    let is_option = |file: &NamedFile| file.how == FileAccess::Write && !file.is_operand && !is_rsync;
    let is_named = |file: &NamedFile| file.how == FileAccess::Write && file.is_operand;
    let last = files.iter().rposition(is_named).filter(|_| !files.iter().any(is_option));
    for (at, file) in files.iter_mut().enumerate() {
        file.is_target = is_option(file) || Some(at) == last;
    }
    let targets: Vec<usize> = (0..files.len()).filter(|at| files[*at].is_target && files[*at].path.is_dir()).collect();
    if targets.is_empty() {
        return Some(());
    }
    let mut names: Vec<PathBuf> = Vec::new();
    for (_, file) in files.iter().enumerate().filter(|(at, file)| file.is_operand && !targets.contains(at)) {
        let text = file.path.as_os_str().as_encoded_bytes();
        let is_content = text.ends_with(b"/.") || text.ends_with(b"/..") || is_rsync && text.ends_with(b"/");
        match (&file.covers, is_content) {
            (None, _) if file.is_elsewhere => names.push(PathBuf::from(file.elsewhere_name())),
            (Some(several), _) => {
                names.extend(several.files.iter().filter_map(|file| file.file_name()).map(PathBuf::from))
            }
            (None, false) => names.extend(file.path.file_name().map(PathBuf::from)),
            (None, true) => {
                let inside = names::tree(&file.path, |_| true, |_| true)?;
                let below = inside.iter().filter_map(|inside| inside.strip_prefix(&file.path).ok());
                names.extend(below.filter_map(|below| below.iter().next()).map(PathBuf::from));
            }
        }
    }
    names.sort();
    names.dedup();
    if names.len() > super::MAX_NEEDS {
        return None;
    }
    targets.iter().for_each(|at| files[*at].puts.clone_from(&names));
    Some(())
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

impl NamedFile {
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

    /// The names at which files are put here; none for a file that is not a target.
    pub(super) fn put_at(&self) -> Vec<PathBuf> {
        match (self.is_target, self.puts.as_slice()) {
            (false, _) => Vec::new(),
            (true, []) => vec![self.path.clone()],
            (true, names) => names.iter().map(|name| self.path.join(name)).collect(),
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
        let not_known = |why: &str| {
            let target = format!("{} {}", self.command, self.path.display());
            vec![Need { hides_file: true, ..SimpleCommand::not_understood(&target, why).need(line) }]
        };
        let Ok(ResolvedPath { mut path, veil }) = resolve_for(&self.path, Path::new("/"), may_read) else {
            return not_known("a loop of symbolic links");
        };
        // Only names are shown, and they belong to the folder.
        if self.how == FileAccess::List
            && (is_secret(&path) && !path.is_dir() || !path.is_dir())
            && let Some(folder) = path.parent()
        {
            path = folder.to_owned();
        }
        let category = match self.how {
            FileAccess::Write => Category::FileWrite,
            FileAccess::Read | FileAccess::Tree | FileAccess::List => Category::FileRead,
        };
        let mut on = |path: &Path| {
            let need = match category {
                Category::FileWrite => write_need(path, exclusions),
                _ => read_need(path, exclusions),
            };
            let is_public = category == Category::FileRead && is_public(path);
            let of_command = self.is_operand.then(|| self.command.clone());
            Need { command: Some(line.to_owned()), of_command, is_public, ..need }
        };
        if let Some(veil) = veil {
            return vec![on(&veil), on(&path)];
        }
        let mut needs = vec![on(&path)];
        if let Some((why, hides_file)) = &self.unknown {
            needs.push(Need {
                hides_file: *hides_file,
                ..SimpleCommand::not_understood(&self.path.display().to_string(), why).need(line)
            });
        }
        if self.how == FileAccess::Read && is_own_input(&self.command, &path) {
            let input = needs[0].target.clone();
            needs[0].no_secrets.push(input);
        }
        for name in &self.puts {
            let file = path.join(name);
            // Through a link, the file that it names is written.
            match resolve_for(&file, Path::new("/"), may_read) {
                Ok(ResolvedPath { path, veil: None }) => needs.push(on(&path)),
                Ok(ResolvedPath { path, veil: Some(veil) }) => needs.extend([on(&veil), on(&path)]),
                Err(_) => return not_known("a loop of symbolic links"),
            }
        }
        if self.how == FileAccess::Tree && !may_read(&path) {
            // Its contents are not examined, so whether everyone may read them is unknown.
            needs[0].is_public &= !path.is_dir();
            return needs;
        }
        let takes_all = self.how == FileAccess::Tree || self.is_moved;
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
        for folder in &folders {
            match names::tree(folder, enters(filter), takes(filter)) {
                Some(found) => covers.extend(found),
                None => return not_known("it contains too many files to check"),
            }
        }
        let (mut links, mut seen) = (Vec::new(), HashSet::new());
        for file in &covers {
            if clock.is_over() || links.len() > MAX_LINKS {
                return not_known("it contains too many files and links to check");
            }
            if self.how != FileAccess::Write
                && file.is_symlink()
                && let Ok(ResolvedPath { path: target, .. }) = resolve_for(file, Path::new("/"), may_read)
                && !target.starts_with(&path)
                && seen.insert(target.clone())
            {
                links.push(target);
            }
            if needs[0].forbidden.is_none() {
                needs[0].forbidden = exclusions.reason(file, false);
            }
        }
        needs[0].covers = covers.iter().map(|file| file.to_string_lossy().into_owned()).collect();
        let looks = |_: &&PathBuf| category == Category::FileRead && !clock.is_over();
        let certificates = covers.iter().filter(looks).filter(|file| is_certificate(file));
        needs[0].no_secrets = certificates.map(|file| file.to_string_lossy().into_owned()).collect();
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

/// Whether the command takes a file with secrets as its own input, and does not show it.
fn is_own_input(command: &str, path: &Path) -> bool {
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
    let below = ["/etc", "/usr"].iter().any(|folder| path.starts_with(folder))
        || of_system.iter().any(|file| path == Path::new(file));
    let readable =
        |path: &Path, mode: u32| path.symlink_metadata().is_ok_and(|metadata| metadata.mode() & mode == mode);
    below && readable(path, 0o004) && path.ancestors().skip(1).all(|folder| readable(folder, 0o001))
}
