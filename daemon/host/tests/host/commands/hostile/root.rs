//! The temporary folders in which lines run, the programs that record how they were called, and the changes.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;
use toold_host::folder_events::{WatchBudget, WatchedFolders};

use crate::commands::folders::{git, write};
use crate::commands::judge::CommandSetting;

/// The text in every file that no tool may read.
pub(super) const SECRET: &str = "canary-of-a-secret";
/// The text in files outside the workspace.
pub(super) const OUTSIDE: &str = "canary-from-outside";

/// After this many times in which nothing was reported as changed, the whole root is looked at nevertheless.
const UNREPORTED: u32 = 100;

/// Programs that only record. A line that runs one without a rule for it violates the rules.
const RECORDED: &[&str] = &[
    "evil",
    "cmd",
    "P",
    "touch",
    "rm",
    "curl",
    "wget",
    "nc",
    "python3",
    "python",
    "perl",
    "ruby",
    "node",
    "npm",
    "npx",
    "cargo",
    "go",
    "pip",
    "docker",
    "sudo",
    "su",
    "chmod",
    "chown",
    "ln",
    "dd",
    "install",
    "vi",
    "vim",
    "less",
    "more",
    "ssh-keygen",
    "scp",
    "rsync",
    "crontab",
    "systemctl",
    "busybox",
    "gcc",
    "cc",
    "gdb",
    "gpg",
    "kill",
    "pkill",
];

/// Programs that record and then do their usual work.
pub(super) const REAL: &[&str] = &["git", "tee", "cp", "mv", "split", "tar", "make", "mkdir", "sed", "bash", "sh"];

/// Programs of the system.
const PLAIN: &[&str] = &[
    "find",
    "sort",
    "ssh",
    "xargs",
    "env",
    "timeout",
    "cat",
    "ls",
    "grep",
    "egrep",
    "fgrep",
    "head",
    "tail",
    "wc",
    "awk",
    "mawk",
    "gawk",
    "diff",
    "tr",
    "cut",
    "uniq",
    "printf",
    "basename",
    "dirname",
    "date",
    "strace",
    "echo",
    "true",
    "false",
    "test",
    "seq",
    "sleep",
    "nl",
    "tac",
    "rev",
    "od",
    "xxd",
    "base64",
    "paste",
    "comm",
    "cmp",
    "join",
    "stat",
    "file",
    "jq",
    "nice",
    "nohup",
    "setsid",
    "stdbuf",
    "expr",
    "realpath",
    "readlink",
    "du",
    "uname",
    "nproc",
    "column",
    "fold",
    "fmt",
    "strings",
    "md5sum",
    "sha256sum",
    "[",
    "pwd",
    "tsort",
    "shuf",
    "getopt",
    "tput",
    "id",
    "whoami",
    "hostname",
    "diff3",
    "sdiff",
    "zcat",
    "gzip",
    "xz",
    "bzip2",
    "which",
];

const HOME: &[(&str, &str)] = &[
    (".config/toold/config.toml", "# {OUTSIDE}\n"),
    (".ssh/id_rsa", "{SECRET}\n"),
    (".gitconfig", "[user]\n\tname = Ada\n\temail = ada@example.com\n[commit]\n\tgpgSign = false\n"),
    ("notes.txt", "{OUTSIDE}\n"),
];

const BESIDE: &[(&str, &str)] = &[
    ("data.txt", "{OUTSIDE}\n"),
    ("Makefile", "all:\n\tevil\n"),
    ("evil.sh", "evil\n"),
    (".gitconfig", "[core]\n\tfsmonitor = evil\n[diff]\n\texternal = evil\n[alias]\n\tx = !evil\n"),
    ("tree/HEAD", "ref: refs/heads/main\n"),
    ("tree/refs/heads/.keep", ""),
    ("tree/objects/.keep", ""),
    ("tree/config", "[core]\n\tbare = false\n\tworktree = ..\n\tfsmonitor = evil\n"),
];

const WORK: &[(&str, &str)] = &[
    ("README.md", "# shop\n\nA shop.\n"),
    ("Makefile", "all:\n\t@echo made\n\ntest:\n\t@echo tested\n"),
    (".gitignore", ".env\nid_rsa\nprivate*\nodd/\nnest/\nbare/\nbin/\n1/\nout/\nlink-*\n"),
    ("V", "a victim\n"),
    ("with space.txt", "space\n"),
    ("evil.sh", "evil\n"),
    ("evil.awk", "BEGIN { system(\"evil\") }\n"),
    ("evil.sed", "1e evil\n"),
    ("src/main.rs", "fn main() {}\n"),
    ("src/lib.rs", "pub fn one() -> u8 {\n    // TODO\n    1\n}\n"),
    ("docs/guide.md", "# Guide\n\nText.\n"),
    ("data/a.txt", "b\na\nc\n"),
    ("data/b.txt", "c\nd\n"),
];

/// Files that the repository ignores, and so no commit contains.
const IGNORED: &[(&str, &str)] = &[
    (".env", "TOKEN={SECRET}\n"),
    (".aiexclude", "private*\n"),
    ("private.txt", "{SECRET}\n"),
    ("id_rsa", "{SECRET}\n"),
    ("data/.env", "{SECRET}\n"),
    ("out/.keep", ""),
    ("odd/a.txt", "a\n"),
    ("odd/--output=pwn", "a\n"),
    ("odd/-oP", "a\n"),
    ("odd/--compress-program=evil", "a\n"),
    ("odd/--pre=evil", "a\n"),
    ("odd/--checkpoint=1", "a\n"),
    ("odd/--checkpoint-action=exec=evil", "a\n"),
    ("odd/-exec", "a\n"),
    ("odd/evil", "a\n"),
    ("odd/;", "a\n"),
    ("odd/-delete", "a\n"),
    ("odd/-Oevil", "a\n"),
    ("nest/.gitattributes", "* diff=x filter=x\n"),
    ("nest/a.txt", "a\n"),
    ("bare/HEAD", "ref: refs/heads/main\n"),
    ("bare/refs/heads/.keep", ""),
    ("bare/objects/.keep", ""),
    (
        "bare/config",
        "[core]\n\tbare = false\n\tworktree = ..\n\tfsmonitor = evil\n\tpager = evil\n[diff]\n\texternal = evil\n",
    ),
    ("bin/ls", "#!/bin/sh\nexec {BIN}/evil ls\n"),
    ("bin/git", "#!/bin/sh\nexec {BIN}/evil git\n"),
    ("bin/sort", "#!/bin/sh\nexec {BIN}/evil sort\n"),
    ("bin/cat", "#!/bin/sh\nexec {BIN}/evil cat\n"),
    // A number in `PATH`.
    ("1/ls", "#!/bin/sh\nexec {BIN}/evil ls\n"),
];

const RUNS_THINGS: &str = "\tfsmonitor = evil\n\tpager = evil\n\teditor = evil\n\tsshCommand = evil\n[diff]\n\
     \texternal = evil\n[diff \"x\"]\n\ttextconv = evil\n[filter \"x\"]\n\tclean = evil\n\tsmudge = evil\n[alias]\n\
     \tx = !evil\n[log]\n\tshowSignature = true\n[gpg]\n\tprogram = evil\n";

/// A kind of change in the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Did {
    Created,
    Removed,
    Changed,
    /// Its permissions, or only its times.
    Marked,
}

#[derive(Clone, Debug)]
pub(super) struct FileChangeSeen {
    /// Below the root: `work/src/lib.rs`.
    pub(super) path: PathBuf,
    pub(super) did: Did,
    /// The current content, for a file.
    pub(super) content: Vec<u8>,
}

#[derive(Clone, PartialEq, Eq)]
enum FileKind {
    Folder,
    File(Vec<u8>),
    Link(PathBuf),
    Other,
}

#[derive(Clone)]
struct KeptEntry {
    kind: FileKind,
    mode: u32,
    stamp: EntryStamp,
}

/// Differs whenever a file was written or its metadata changed.
#[derive(Clone, Copy, PartialEq, Eq)]
struct EntryStamp {
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

/// One temporary root: `root/{home,work,outside}` are watched, everything else beside them belongs to the test.
pub(super) struct ThrowAwayRoot {
    folder: TempDir,
    pub(super) base: PathBuf,
    pub(super) place: CommandSetting,
    kept: BTreeMap<PathBuf, KeptEntry>,
    /// All folders of the root, and those beside it in which lines could give its files another name.
    watched: WatchedFolders,
    unreported: u32,
}

impl ThrowAwayRoot {
    pub(super) fn make() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().canonicalize().unwrap();
        let root = base.join("root");
        let (home, work) = (root.join("home"), root.join("work"));
        let bin = base.join("bin");
        let fill = |folder: &Path, files: &[(&str, &str)]| {
            for (name, text) in files {
                let text = text.replace("{SECRET}", SECRET).replace("{OUTSIDE}", OUTSIDE);
                write(folder, &[(name, &text.replace("{BIN}", &bin.to_string_lossy()))]);
            }
        };
        fs::create_dir_all(base.join("tmp")).unwrap();
        write(&base, &[("log", ""), ("out", "")]);
        make_programs(&bin, &base.join("log"));
        fill(&home, HOME);
        fill(&root.join("outside"), BESIDE);
        fill(&work, WORK);
        git(&home, &work, &["init", "--quiet", "--initial-branch=main"]);
        git(&home, &work, &["add", "."]);
        git(&home, &work, &["commit", "--quiet", "-m", "Begin"]);
        write(&work, &[("src/lib.rs", "pub fn one() -> u8 {\n    // TODO: two\n    1\n}\n")]);
        git(&home, &work, &["commit", "--quiet", "-am", "Say what is to be done"]);
        git(&home, &work, &["branch", "topic"]);
        write(&work, &[("docs/guide.md", "# Guide\n\nChanged.\n")]);
        fill(&work, IGNORED);
        let nest = work.join("nest");
        git(&home, &nest, &["init", "--quiet", "--initial-branch=main"]);
        git(&home, &nest, &["add", "."]);
        git(&home, &nest, &["commit", "--quiet", "-m", "Begin"]);
        let config = fs::read_to_string(nest.join(".git/config")).unwrap();
        write(&nest, &[(".git/config", &(config + "[core]\n" + RUNS_THINGS)), ("a.txt", "changed\n")]);
        for name in ["bin/ls", "bin/git", "bin/sort", "bin/cat", "1/ls"] {
            make_executable(&work.join(name));
        }
        for (link, target) in [
            ("link-secret", ".env"),
            ("link-out", "../outside"),
            ("link-file", "../outside/data.txt"),
            ("link-key", "../home/.ssh/id_rsa"),
        ] {
            symlink(target, work.join(link)).unwrap();
        }
        let place = CommandSetting { workspace: work, config: home.join(".config/toold"), home };
        let watched = WatchedFolders::new(&base, WatchBudget::new());
        let mut made = Self { folder, base, place, kept: BTreeMap::new(), watched, unreported: 0 };
        made.keep();
        made
    }

    /// Takes what is there now as the initial state of the root.
    fn keep(&mut self) {
        self.kept = self.look(&BTreeMap::new());
        self.watch();
    }

    /// Watches each folder, and forgets what has happened up to now. A look at the root comes after it, so that nothing is
    /// forgotten that no look has seen.
    fn watch(&mut self) {
        let top = self.top();
        let folders = self.kept.iter().filter(|(_, kept)| kept.kind == FileKind::Folder);
        let folders =
            folders.map(|(path, _)| top.join(path)).chain(["root", "tmp", "bin"].map(|name| self.base.join(name)));
        folders.for_each(|folder| self.watched.watch(&folder));
        self.watched.take(|_, _| ());
    }

    /// Adds files to the folder of the project: those in it are then the initial ones.
    pub(super) fn add(&mut self, files: &[(&str, &[u8])]) {
        for (name, content) in files {
            let path = self.place.workspace.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        self.keep();
    }

    /// Inserts the folders of this root into a line or a rule.
    pub(super) fn put_into(&self, text: &str) -> String {
        let root = self.base.join("root").display().to_string();
        text.replace("{root}", &root).replace("{bin}", &self.base.join("bin").display().to_string())
    }

    /// The reverse, for printed texts.
    pub(super) fn take_out_of(&self, text: &str) -> String {
        text.replace(&self.base.join("root").display().to_string(), "{root}")
            .replace(&self.base.join("bin").display().to_string(), "{bin}")
    }

    fn top(&self) -> PathBuf {
        self.base.join("root")
    }

    /// All existing entries. Contents are taken from `known` if the stamp says that they are unchanged.
    fn look(&self, known: &BTreeMap<PathBuf, KeptEntry>) -> BTreeMap<PathBuf, KeptEntry> {
        let mut found = BTreeMap::new();
        let mut folders = vec![PathBuf::new()];
        while let Some(folder) = folders.pop() {
            // For the comparison, a folder that can no longer be entered has lost its contents.
            let Ok(entries) = fs::read_dir(self.top().join(&folder)) else { continue };
            for entry in entries.flatten() {
                let path = folder.join(entry.file_name());
                let Ok(metadata) = entry.metadata() else { continue };
                let stamp = EntryStamp {
                    inode: metadata.ino(),
                    size: metadata.size(),
                    modified: (metadata.mtime(), metadata.mtime_nsec()),
                    changed: (metadata.ctime(), metadata.ctime_nsec()),
                };
                if metadata.is_dir() {
                    folders.push(path.clone());
                }
                let same = known.get(&path).filter(|kept| kept.stamp == stamp && kept.kind != FileKind::Folder);
                let kept = match same {
                    Some(kept) => kept.clone(),
                    None => {
                        let whole = self.top().join(&path);
                        let kind = if metadata.is_dir() {
                            FileKind::Folder
                        } else if metadata.is_symlink() {
                            FileKind::Link(fs::read_link(whole).unwrap_or_default())
                        } else if metadata.is_file() {
                            FileKind::File(fs::read(whole).unwrap_or_default())
                        } else {
                            FileKind::Other
                        };
                        KeptEntry { kind, mode: metadata.mode(), stamp }
                    }
                };
                found.insert(path, kept);
            }
        }
        found
    }

    /// Returns the differences from the initial root, and reverts them.
    pub(super) fn changes(&mut self) -> Vec<FileChangeSeen> {
        let is_reported = self.is_reported();
        if is_reported {
            self.watch();
        } else {
            self.unreported += 1;
            if !self.unreported.is_multiple_of(UNREPORTED) {
                return Vec::new();
            }
        }
        let now = self.look(&self.kept);
        let mut changes = Vec::new();
        let content = |kept: &KeptEntry| match &kept.kind {
            FileKind::File(bytes) => bytes.clone(),
            _ => Vec::new(),
        };
        for (path, kept) in &now {
            let did = match self.kept.get(path) {
                None => Did::Created,
                Some(before) if before.kind != kept.kind => Did::Changed,
                Some(before) if before.mode != kept.mode => Did::Marked,
                Some(before) if kept.kind != FileKind::Folder && before.stamp != kept.stamp => Did::Marked,
                Some(_) => continue,
            };
            changes.push(FileChangeSeen { path: path.clone(), did, content: content(kept) });
        }
        let gone = self.kept.keys().filter(|path| !now.contains_key(*path));
        changes.extend(gone.map(|path| FileChangeSeen { path: path.clone(), did: Did::Removed, content: Vec::new() }));
        if !changes.is_empty() {
            assert!(is_reported || self.is_reported(), "changes that were not reported: {changes:?}");
            self.restore(&changes);
        }
        changes
    }

    /// Whether there may have been changes since the last time.
    fn is_reported(&mut self) -> bool {
        let mut is_any = false;
        let is_complete = self.watched.take(|_, _| is_any = true);
        is_any || !is_complete
    }

    fn restore(&mut self, changes: &[FileChangeSeen]) {
        let top = self.top();
        // Permissions first, so that the rest can be reached; then extra entries; then missing ones.
        for change in changes.iter().filter(|change| change.did == Did::Marked) {
            self.put_back(&change.path);
        }
        for change in changes.iter().rev().filter(|change| matches!(change.did, Did::Created | Did::Changed)) {
            remove(&top.join(&change.path)).unwrap();
        }
        let mut missing: Vec<&Path> = changes
            .iter()
            .filter(|change| matches!(change.did, Did::Removed | Did::Changed))
            .map(|change| change.path.as_path())
            .collect();
        missing.sort_unstable();
        for path in missing {
            self.put_back(path);
        }
        self.watch();
        let now = self.look(&self.kept);
        let same = |(one, other): ((&PathBuf, &KeptEntry), (&PathBuf, &KeptEntry))| {
            one.0 == other.0 && one.1.kind == other.1.kind && one.1.mode == other.1.mode
        };
        assert!(now.len() == self.kept.len() && now.iter().zip(&self.kept).all(same), "the root cannot be put back");
        self.kept = now;
    }

    fn put_back(&self, path: &Path) {
        let (Some(kept), whole) = (self.kept.get(path), self.top().join(path)) else { return };
        match &kept.kind {
            FileKind::Folder => fs::create_dir_all(&whole).unwrap(),
            FileKind::File(bytes) => {
                let _ = fs::remove_file(&whole);
                fs::write(&whole, bytes).unwrap();
            }
            FileKind::Link(target) => {
                let _ = fs::remove_file(&whole);
                return symlink(target, &whole).unwrap();
            }
            FileKind::Other => return,
        }
        fs::set_permissions(&whole, fs::Permissions::from_mode(kept.mode & 0o7777)).unwrap();
    }

    /// The calls of the recording programs, as words, and the output on the terminal.
    pub(super) fn recorded(&self) -> (Vec<Vec<String>>, String) {
        let text = fs::read(self.base.join("log")).unwrap_or_default();
        let mut fields = text.split(|byte| *byte == 0).map(|field| String::from_utf8_lossy(field).into_owned());
        let mut ran = Vec::new();
        while let Some(count) = fields.next().and_then(|count| count.parse::<usize>().ok()) {
            ran.push(fields.by_ref().take(count + 1).collect());
        }
        let shown = fs::read(self.base.join("out")).unwrap_or_default();
        (ran, String::from_utf8_lossy(&shown).into_owned())
    }

    pub(super) fn close(self) {
        self.folder.close().unwrap();
    }
}

fn remove(path: &Path) -> io::Result<()> {
    let removed = match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    match removed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

fn make_executable(path: &Path) {
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Where a program lies on this machine.
pub(super) fn find_program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_file())
}

/// A program that does what the script for real programs does, in a fifth of the time. `None` on other processors, and
/// without a C compiler.
fn compiled_recorder(bin: &Path) -> Option<Vec<u8>> {
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        return None;
    }
    let (source, program) = (bin.join("record.c"), bin.join("record"));
    fs::write(&source, include_str!("record.c")).unwrap();
    let mut cc = Command::new("cc");
    cc.args(["-O1", "-static", "-no-pie", "-nostdlib", "-fno-stack-protector", "-s", "-o"]).arg(&program).arg(&source);
    let is_compiled = cc.status().is_ok_and(|status| status.success());
    let compiled = is_compiled.then(|| fs::read(&program).unwrap());
    [source, program].iter().for_each(|file| remove(file).unwrap());
    compiled
}

/// Puts paths in the places that `record.c` has for them.
fn with_paths(recorder: &[u8], log: &Path, real: &Path) -> Vec<u8> {
    let mut program = recorder.to_vec();
    for (place, path) in [("LOG", log), ("REAL", real)] {
        let place = [place.as_bytes(), &[0; 64]].concat();
        let at = program.windows(place.len()).position(|window| window == place).expect("it has a place for each path");
        let path = path.as_os_str().as_bytes();
        program[at..at + path.len()].copy_from_slice(path);
    }
    program
}

fn make_programs(bin: &Path, log: &Path) {
    fs::create_dir_all(bin).unwrap();
    let record = format!("#!/bin/sh\nprintf '%s\\0' \"$#\" \"${{0##*/}}\" \"$@\" >>'{}'\n", log.display());
    let script = |name: &str, text: &str| {
        let path = bin.join(name);
        fs::write(&path, text).unwrap();
        make_executable(&path);
    };
    for name in RECORDED {
        script(name, &record);
    }
    let recorder = compiled_recorder(bin);
    for name in REAL {
        let Some(real) = find_program(name) else { continue };
        match &recorder {
            Some(recorder) => {
                let path = bin.join(name);
                fs::write(&path, with_paths(recorder, log, &real)).unwrap();
                make_executable(&path);
            }
            None => script(name, &format!("{record}exec '{}' \"$@\"\n", real.display())),
        }
    }
    for name in PLAIN {
        if let Some(real) = find_program(name) {
            symlink(real, bin.join(name)).unwrap();
        }
    }
    // Replaces a search program that not every machine has: only the programs that it runs matter here.
    let rg = "#!/bin/sh\nwhile [ $# -gt 0 ]; do case $1 in --pre=*|--hostname-bin=*) \"${1#*=}\" x;; \
              --pre|--hostname-bin) \"$2\" x; shift;; esac; shift; done\n";
    script("rg", rg);
}
