//! What a command on a floor has made that runs code later, or that a rule keeps it from writing: it is set aside under
//! another name, where nothing takes it for that file, until a person allows it. A repository of Git that runs nothing stays
//! as it is.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use rustix::fs::{Mode, RenameFlags, fchmod, fstat};
use rustix::process::geteuid;
use toold_engine::guarded_files::GuardedFiles;
use toold_engine::policy::is_control;
use toold_engine::redact::one_line;

use super::secret_index::{FoundControl, RULES, SecretIndex};
use super::{Sandbox, git_control};
use crate::files;
use crate::launcher::life::ConfinedLife;
use crate::launcher::order::Confinement;
use crate::launcher::stand_in::StandIn;

/// What is appended to the name of a file that is set aside.
const ASIDE: &str = "not-allowed";
/// Numbers that are tried where that name is taken. The last one is taken over.
const MAX_NAMES: usize = 100;
/// How often it is looked for what a command has made that still runs.
const LOOK_EACH: Duration = Duration::from_secs(1);
/// More is not compared when it is put back: entries, and bytes in all of them.
const MAX_ENTRIES: usize = 4096;
const MAX_BYTES: u64 = 32 << 20;
/// A longer list of files that tools leave alone is set aside.
const MAX_LIST: u64 = 256 << 10;
/// Programs that people run without a thought of the folder that they are in, and no environment of a project brings along.
const USUAL_PROGRAMS: &str = "apt apt-get awk bash brew cat chmod chown claude code codex cp curl cut dash df diff docker dpkg du \
    echo emacs env false find fish gemini gh git gpg grep gzip head id journalctl kill killall kubectl less ln ls mkdir more mount mv \
    nano nvim pass passwd podman printf ps pwd rg rm rmdir rsync scp screen sed sftp sh sort ssh su sudo systemctl tail tar tee test \
    tmux toold toolctl top touch tr true unzip vi vim wc wget whoami xargs zip zsh";
/// The configuration of a bare repository.
const OF_BARE: [&str; 4] = ["config", "hooks", "commondir", "config.worktree"];

type FileNumber = (u64, u64);

/// The number of a link, and whether it leads to anything.
type ControlLink = (FileNumber, bool);

fn link_state(path: &Path) -> Option<ControlLink> {
    number_of(path).filter(|_| path.is_symlink()).map(|number| (number, path.exists()))
}

/// The repositories that commands on floors have made and that run nothing. Further commands may change them.
#[derive(Debug, Default)]
pub(super) struct MadeRepositories(Mutex<BTreeMap<PathBuf, FileNumber>>);

impl MadeRepositories {
    /// Whether a repository is one of them. One that runs something by now was changed by somebody else, and is none any more.
    pub(super) fn has(&self, git: &Path) -> bool {
        let mut made = self.0.lock();
        let Some(number) = made.get(git).copied() else { return false };
        let is_one = number_of(git) == Some(number) && git_control::runs_nothing(git, |_| false);
        if !is_one {
            made.remove(git);
        }
        is_one
    }

    fn add(&self, git: &Path) {
        self.0.lock().extend(number_of(git).map(|number| (git.to_owned(), number)));
    }
}

/// A file or folder that was set aside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetAside {
    pub path: PathBuf,
    /// A rule or a refusal keeps commands from writing it; else it runs code later.
    pub by_rule: bool,
    /// Where it is now; an error of the system if it is still at its path.
    pub now: Result<PathBuf, String>,
    /// The digest of all that it held then; `None` if that is too much.
    held: Option<blake3::Hash>,
}

impl SetAside {
    /// Puts it back, unless something else is at its path by now, or a command beside this one has changed it since.
    ///
    /// # Errors
    /// Why it stays aside, or the error of the system.
    pub fn put_back(&self) -> Result<(), String> {
        let Ok(now) = &self.now else { return Ok(()) };
        if self.held.is_none() || digest(now) != self.held {
            return Err("it is too large to be compared, or was changed since".to_owned());
        }
        let name = |path: &Path| path.file_name().unwrap_or_default().to_owned();
        let folder = folder_of(&self.path)?;
        let renamed = rustix::fs::renameat_with(&folder, name(now), &folder, name(&self.path), RenameFlags::NOREPLACE);
        renamed.map_err(|error| error.to_string())
    }
}

/// The watch over a command on a floor. It sets aside what the command makes while it runs, once a second, and when it is
/// settled or dropped. If processes of the command still run then, it goes on until they have ended.
#[derive(Debug)]
pub struct ControlWatch {
    watched: Arc<WatchedCommand>,
    is_settled: bool,
}

/// What ran code later in the session's folders before the command.
#[derive(Debug)]
struct WatchedCommand {
    sandbox: Arc<Sandbox>,
    files: GuardedFiles,
    places: Vec<PathBuf>,
    before: FoundControl,
    /// Links, which a mount does not protect.
    links: BTreeMap<PathBuf, ControlLink>,
    /// Folders of `PATH`, and the usual programs in them.
    path_folders: Vec<PathBuf>,
    programs: BTreeSet<PathBuf>,
    /// The repositories of [`MadeRepositories`], which are looked at again.
    made: BTreeSet<PathBuf>,
    /// See [`git_control::waiting_commands`].
    waiting: BTreeSet<(PathBuf, String)>,
    /// See [`git_control::links`].
    git_links: BTreeSet<PathBuf>,
    life: Option<ConfinedLife>,
    /// Locked while it is looked.
    aside: Mutex<Vec<SetAside>>,
}

impl Sandbox {
    /// Begins to watch for what a command makes; `None` if it may make nothing in the session's folders without a person's
    /// word. Called after [`Sandbox::confine`]. Blocks for as long as it takes to look at folders that have changed.
    pub fn watch_control(
        self: &Arc<Self>,
        files: impl FnOnce() -> GuardedFiles,
        confinement: Option<&Confinement>,
    ) -> Option<ControlWatch> {
        let confinement = confinement.filter(|confinement| confinement.floor && !confinement.places.is_empty())?;
        let mut watch = WatchedCommand {
            sandbox: self.clone(),
            files: files(),
            places: confinement.places.clone(),
            before: FoundControl::default(),
            links: BTreeMap::new(),
            path_folders: confinement.path_folders.clone(),
            programs: usual_programs(&confinement.path_folders).collect(),
            made: BTreeSet::new(),
            waiting: BTreeSet::new(),
            git_links: BTreeSet::new(),
            life: confinement.life.clone(),
            aside: Mutex::default(),
        };
        watch.before = watch.found()?;
        let all = watch.before.files.iter().chain(&watch.before.repositories);
        watch.links = all.filter_map(|path| Some((path.clone(), link_state(path)?))).collect();
        let repositories = watch.before.repositories.iter();
        watch.waiting = repositories.clone().flat_map(|git| git_control::waiting_commands(git)).collect();
        watch.git_links = repositories.clone().flat_map(|git| git_control::links(git)).collect();
        watch.made = repositories.filter(|git| self.made_repositories.has(git)).cloned().collect();
        let watched = Arc::new(watch);
        // Without a runtime, as in tests, it is looked at the end alone.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(look_while_it_runs(Arc::downgrade(&watched)));
        }
        Some(ControlWatch { watched, is_settled: false })
    }
}

/// A command in the background may run without end.
async fn look_while_it_runs(watched: Weak<WatchedCommand>) {
    loop {
        tokio::time::sleep(LOOK_EACH).await;
        let Some(watched) = watched.upgrade() else { return };
        // The last look tells about errors.
        _ = tokio::task::spawn_blocking(move || watched.look()).await;
    }
}

/// A process that a command has left behind may make something when nobody waits for the command any more.
async fn look_until_all_have_ended(watched: Arc<WatchedCommand>, life: ConfinedLife) {
    loop {
        tokio::time::sleep(LOOK_EACH).await;
        let (watched, is_over) = (watched.clone(), life.is_over());
        if let Ok(Err(why)) = tokio::task::spawn_blocking(move || watched.look()).await {
            tracing::warn!("after a confined command: {why}");
        }
        if is_over {
            return;
        }
    }
}

impl ControlWatch {
    /// Sets aside what was made, and returns all that was since the command began. Called when the command has ended. Blocks.
    ///
    /// # Errors
    /// The folders cannot be looked at, in words for people.
    pub fn settle(mut self) -> Result<Vec<SetAside>, String> {
        self.is_settled = true;
        self.go_on();
        self.watched.look()?;
        Ok(std::mem::take(&mut self.watched.aside.lock()))
    }

    /// Goes on beside what the command has left behind.
    fn go_on(&self) {
        let life = self.watched.life.clone().filter(|life| !life.is_over());
        if let Some((life, runtime)) = life.zip(tokio::runtime::Handle::try_current().ok()) {
            runtime.spawn(look_until_all_have_ended(self.watched.clone(), life));
        }
    }
}

impl WatchedCommand {
    /// `None` if there are too many folders.
    fn found(&self) -> Option<FoundControl> {
        let mut all = FoundControl::default();
        for place in &self.places {
            let found = self.sandbox.secrets.control(place, &self.files);
            all.add(found.or_else(|_| SecretIndex::control_below(place, &self.files)).ok()?);
        }
        Some(all)
    }

    /// The same after the command has begun: a folder is no secret from the command that has made it.
    fn found_since(&self) -> Option<FoundControl> {
        let mut all = self.found()?;
        let new: Vec<PathBuf> = all.secret.difference(&self.before.secret).cloned().collect();
        for folder in new {
            all.add(SecretIndex::control_below(&folder, &self.files).ok()?);
        }
        Some(all)
    }

    /// Sets aside what was made since the last look.
    fn look(&self) -> Result<(), String> {
        let mut all = self.aside.lock();
        for file in self.set_aside(&all)? {
            tracing::info!("{}", file.words());
            all.push(file);
        }
        Ok(())
    }

    /// `earlier`: what was set aside already.
    fn set_aside(&self, earlier: &[SetAside]) -> Result<Vec<SetAside>, String> {
        let found = self.found_since().ok_or("there are too many folders to look for files that run code later")?;
        let is_other = |path: &Path| self.links.get(path).is_some_and(|link| link_state(path) != Some(*link));
        let is_new = |path: &&PathBuf| {
            (!self.before.files.contains(*path) || is_other(path)) && !StandIn::is_held(path) && !only_excludes(path)
        };
        let mut aside: Vec<SetAside> = found.files.iter().filter(is_new).map(|path| self.put_aside(path)).collect();
        let is_new =
            |git: &&PathBuf| !self.before.repositories.contains(*git) || self.made.contains(*git) || is_other(git);
        // As a whole, it goes back if it is allowed.
        let is_left = |git: &&PathBuf| !earlier.iter().any(|file| file.now.as_ref() == Ok(git));
        for git in found.repositories.iter().filter(is_new).filter(is_left) {
            let is_known = |other: &Path| self.before.repositories.contains(other) && !self.made.contains(other);
            if git_control::runs_nothing(git, is_known) {
                self.sandbox.made_repositories.add(git);
            } else if git.ends_with(".git") {
                aside.push(self.put_aside(git));
            } else {
                let parts = OF_BARE.map(|name| git.join(name)).into_iter();
                aside.extend(parts.filter(|part| number_of(part).is_some()).map(|part| self.put_aside(&part)));
            }
        }
        // In an active environment of a project, they would run in place of those of the system.
        let is_here = |file: &PathBuf| self.places.iter().any(|place| file.starts_with(place));
        let programs = usual_programs(&self.path_folders).filter(|program| !self.programs.contains(program));
        aside.extend(programs.filter(is_here).map(|program| self.put_aside(&program)));
        // Git would run them when somebody goes on with a rebase or a series of picks.
        let waiting = found.repositories.iter().flat_map(|git| git_control::waiting_commands(git));
        let files = waiting.filter(|command| !self.waiting.contains(command)).map(|(file, _)| file);
        let links = found.repositories.iter().flat_map(|git| git_control::links(git));
        // Git writes nothing of the name that they get.
        let links = links.filter(|link| !self.git_links.contains(link) && !is_aside(link));
        // A repository that was made here may name the folder of one elsewhere, which no command has changed. Two may lead to one
        // file.
        let all: BTreeSet<PathBuf> = files.chain(links).filter(is_here).collect();
        aside.extend(all.iter().filter(|file| number_of(file).is_some()).map(|file| self.put_aside(file)));
        Ok(aside)
    }

    fn put_aside(&self, path: &Path) -> SetAside {
        let by_rule = self.files.keeps_from_writing(path, path.is_dir());
        let now = rename_aside(path);
        let held = now.as_ref().ok().and_then(|now| digest(now));
        SetAside { path: path.to_owned(), by_rule, now, held }
    }
}

impl Drop for ControlWatch {
    fn drop(&mut self) {
        if self.is_settled {
            return;
        }
        self.go_on();
        if let Err(why) = self.watched.look() {
            tracing::warn!("after a confined command: {why}");
        }
    }
}

impl SetAside {
    /// What is the matter with it, as the rest of a sentence that begins with its path.
    pub fn reason(&self) -> &'static str {
        match self.by_rule {
            true => "is a file about whose writing there is a rule",
            false if is_control(&self.path) => "controls toold",
            false if is_usual_program(&self.path) => "would run in place of the program of its name",
            false => "runs code later",
        }
    }

    /// A sentence for people and models. The command has chosen the names.
    pub fn words(&self) -> String {
        let shown = |path: &Path| one_line(&path.to_string_lossy(), usize::MAX);
        let path = shown(&self.path);
        let reason = format!("{}, and nobody allowed the confined command to make it", self.reason());
        match &self.now {
            Ok(now) => {
                let now = shown(now);
                format!("{path} {reason}: it was set aside as {now}; a person who wants it renames it")
            }
            Err(why) => format!("{path} {reason}: remove it, since it cannot be set aside ({why})"),
        }
    }
}

fn is_usual_program(path: &Path) -> bool {
    USUAL_PROGRAMS.split_whitespace().any(|name| path.ends_with(name))
}

/// The usual programs in these folders, where they really lie.
fn usual_programs(folders: &[PathBuf]) -> impl Iterator<Item = PathBuf> {
    let all = |folder: &PathBuf| {
        let folder = folder.canonicalize().unwrap_or_else(|_| folder.clone());
        USUAL_PROGRAMS.split_whitespace().map(move |name| folder.join(name))
    };
    folders.iter().flat_map(all).filter(|program| number_of(program).is_some())
}

/// Whether it is a new list of files that tools leave alone, which takes nothing from anybody: it takes none back from another
/// list.
fn only_excludes(path: &Path) -> bool {
    let is_list = path.file_name().is_some_and(|name| RULES.iter().any(|rules| name == *rules));
    let takes_none = |text: String| {
        !text
            .lines()
            .any(|line| line.trim_start_matches(|c: char| c.is_whitespace() || c == '\u{feff}').starts_with('!'))
    };
    is_list && files::read_text(path, MAX_LIST).is_ok_and(takes_none)
}

fn is_aside(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().contains(ASIDE))
}

/// Renames it so that nothing runs it. Returns its new path, or why it has none.
fn rename_aside(path: &Path) -> Result<PathBuf, String> {
    let old = path.file_name().unwrap_or_default();
    let folder = folder_of(path)?;
    make_writable(&folder);
    for number in 0..MAX_NAMES {
        let name = old.to_string_lossy();
        let own = if number == 0 { format!("{name}.{ASIDE}") } else { format!("{name}.{ASIDE}.{number}") };
        let now = path.with_file_name(&own);
        match rustix::fs::renameat_with(&folder, old, &folder, &own, RenameFlags::NOREPLACE) {
            Ok(()) => return Ok(now),
            Err(rustix::io::Errno::EXIST) if number == MAX_NAMES - 1 => {
                let renamed = rustix::fs::renameat(&folder, old, &folder, &own);
                return renamed.map(|()| now).map_err(|error| error.to_string());
            }
            Err(rustix::io::Errno::EXIST) => {}
            Err(error) => return Err(error.to_string()),
        }
    }
    Err("it has no other name".to_owned())
}

/// The command may have made a folder in which nothing can be renamed.
fn make_writable(folder: &OwnedFd) {
    let (user, own) = (geteuid(), Mode::WUSR | Mode::XUSR);
    let Ok(found) = fstat(folder) else { return };
    let mode = Mode::from_raw_mode(found.st_mode);
    if !user.is_root() && found.st_uid == user.as_raw() && !mode.contains(own) {
        // Renaming says why it fails.
        let _ = fchmod(folder, mode | own);
    }
}

/// The folder of a path, which has no links. The command may have put a link in its place since: it leads to files of others.
fn folder_of(path: &Path) -> Result<OwnedFd, String> {
    files::open_folder(path.parent().unwrap_or(path)).map_err(|error| error.to_string())
}

/// A digest of a file, a link, or a folder with all that is in it; `None` if that is too much or cannot be read.
fn digest(path: &Path) -> Option<blake3::Hash> {
    let (mut left, mut entries, mut bytes) = (vec![path.to_owned()], 0, 0);
    let mut hasher = blake3::Hasher::new();
    while let Some(at) = left.pop() {
        let found = at.symlink_metadata().ok()?;
        let content = if found.is_dir() {
            let inner = std::fs::read_dir(&at).ok()?.map(|entry| entry.map(|entry| entry.path()));
            let mut inner: Vec<PathBuf> = inner.take(MAX_ENTRIES).collect::<Result<_, _>>().ok()?;
            inner.sort();
            left.extend(inner);
            Vec::new()
        } else if found.is_symlink() {
            at.read_link().ok()?.into_os_string().into_encoded_bytes()
        } else {
            files::read_whole(&at, MAX_BYTES).ok()?
        };
        (entries, bytes) = (entries + 1, bytes + content.len() as u64);
        if entries > MAX_ENTRIES || bytes > MAX_BYTES {
            return None;
        }
        let name = at.strip_prefix(path).ok()?.as_os_str().as_encoded_bytes();
        hasher.update(format!("{} {} {}\n", found.mode(), name.len(), content.len()).as_bytes());
        hasher.update(name).update(&content);
    }
    Some(hasher.finalize())
}

fn number_of(path: &Path) -> Option<FileNumber> {
    path.symlink_metadata().ok().map(|found| (found.dev(), found.ino()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(folder: &Path, script: &str) {
        let variables = [("HOME", folder), ("GIT_CONFIG_NOSYSTEM", Path::new("1"))];
        let done = std::process::Command::new("sh").args(["-ec", script]).current_dir(folder).envs(variables).output();
        let done = done.unwrap();
        assert!(done.status.success(), "{script}: {}", String::from_utf8_lossy(&done.stderr));
    }

    struct WatchTest {
        folder: tempfile::TempDir,
        sandbox: Arc<Sandbox>,
    }

    impl WatchTest {
        fn new() -> Self {
            Self { folder: tempfile::tempdir().unwrap(), sandbox: Arc::default() }
        }

        fn top(&self) -> PathBuf {
            self.folder.path().canonicalize().unwrap()
        }

        fn watch(&self) -> ControlWatch {
            let confinement = Confinement { floor: true, places: vec![self.top()], ..Confinement::default() };
            self.sandbox.watch_control(GuardedFiles::default, Some(&confinement)).unwrap()
        }

        /// What is set aside after a command, by its names in the folder.
        fn aside(&self, script: &str) -> Vec<String> {
            let watch = self.watch();
            run(&self.top(), script);
            let aside = watch.settle().unwrap();
            let is_moved = |file: &SetAside| {
                file.path.symlink_metadata().is_err() && number_of(file.now.as_ref().unwrap()).is_some()
            };
            assert!(aside.iter().all(is_moved), "{aside:?}");
            let names = aside.iter().map(|file| file.path.strip_prefix(self.top()).unwrap().display().to_string());
            names.collect()
        }
    }

    #[test]
    fn what_was_made_and_runs_code_later_is_set_aside() {
        let test = WatchTest::new();
        run(&test.top(), "mkdir old; echo x > old/.envrc; ln -s old/.envrc .envrc");
        for (script, expected) in [
            ("mkdir -p a/.vscode; echo x > a/.vscode/tasks.json; echo x > a/code", vec!["a/.vscode/tasks.json"]),
            ("echo x > .mcp.json; mkdir -p .husky/_; echo x > .husky/_/pre-commit", vec![".husky", ".mcp.json"]),
            // Under the name of another one that is set aside already.
            ("echo y > .mcp.json", vec![".mcp.json"]),
            ("echo x > x; mkdir b; mv x b/.envrc; ln -s nowhere b/.mcp.json", vec!["b/.envrc", "b/.mcp.json"]),
            ("ln -sfn elsewhere .envrc", vec![".envrc"]),
            ("ln -s ../dangling b/.envrc", vec!["b/.envrc"]),
            ("mkdir conf; ln -s conf .claude; ln -s ../conf c; ln -s conf .config", vec![".claude", ".config"]),
            ("mkdir -p d/e; ln -s ../../conf d/e/.vscode; echo x > conf/settings.json", vec!["d/e/.vscode"]),
            // Others' code.
            ("mkdir -p node_modules/p; echo x > node_modules/p/.envrc; mkdir .venv; echo x > .venv/.envrc", vec![]),
            (
                "for d in node_modules/p target target/debug .venv/lib/python3.9/site-packages/q node_modules/@s/r; do git init -q \
                 $d; git -C $d config core.fsmonitor x; done; git init -q target/harmless",
                vec![
                    ".venv/lib/python3.9/site-packages/q/.git",
                    "node_modules/@s/r/.git",
                    "node_modules/p/.git",
                    "target/.git",
                    "target/debug/.git",
                ],
            ),
            ("echo x > code; rm code; mkdir z; echo x > old/code", vec![]),
            // In a folder that is secret from the next command.
            (
                "printf 'hid/\n' > .toolignore; mkdir -p hid/a .aws; echo x > hid/a/.envrc; git init -q hid/b; git -C hid/b config \
                 core.fsmonitor x; echo x > .aws/.mcp.json",
                vec![".aws/.mcp.json", "hid/a/.envrc", "hid/b/.git"],
            ),
            // Lists of files that tools leave alone.
            ("mkdir l; echo x > l/.aiexclude; printf 'x\\n!code\\n' > l/.toolignore", vec!["l/.toolignore"]),
        ] {
            assert_eq!(test.aside(script), expected, "{script}");
        }
        assert!(test.top().join(".mcp.json.not-allowed.1").exists());
        // It goes back when it is allowed, unless something else is there.
        let watch = test.watch();
        run(&test.top(), "echo mine > mise.toml");
        let aside = watch.settle().unwrap();
        aside[0].put_back().unwrap();
        assert_eq!(std::fs::read_to_string(test.top().join("mise.toml")).unwrap(), "mine\n");
        // A name that would look like another sentence.
        let watch = test.watch();
        run(&test.top(), "mkdir \"$(printf 'forged\\n[allowed]\\033[2K')\"; cd forged*; echo x > .envrc");
        let words = watch.settle().unwrap()[0].words();
        assert!(
            words.contains("/forged [allowed] [2K/.envrc runs code later") && !words.contains(char::is_control),
            "{words}"
        );
        // A command in the background has changed it under its new name.
        let watch = test.watch();
        run(&test.top(), "echo mine > lefthook.yml; git init -q own; git -C own config core.fsmonitor ./x");
        let aside = watch.settle().unwrap();
        assert_eq!(aside.len(), 2, "{aside:?}");
        run(&test.top(), "echo other > lefthook.yml.not-allowed; echo x > own/.git.not-allowed/description");
        aside.iter().for_each(|file| _ = file.put_back().unwrap_err());
        assert!(!test.top().join("lefthook.yml").exists() && !test.top().join("own/.git").exists());
        // Whoever forgets it sets it aside.
        let watch = test.watch();
        run(&test.top(), "echo x > .tool-versions");
        drop(watch);
        assert!(test.top().join(".tool-versions.not-allowed").exists());
    }

    /// The command may put a link in the place of a folder at any time.
    #[test]
    fn nothing_is_renamed_where_a_link_leads() {
        let test = WatchTest::new();
        run(&test.top(), "mkdir other mine; echo x > other/.envrc; echo x > mine/.envrc; ln -s other link");
        rename_aside(&test.top().join("link/.envrc")).unwrap_err();
        let path = test.top().join("mine/.envrc");
        let now = rename_aside(&path);
        let aside = SetAside { held: digest(now.as_ref().unwrap()), now, path, by_rule: false };
        run(&test.top(), "mv mine gone; mv other/.envrc other/.envrc.not-allowed; ln -s other mine");
        aside.put_back().unwrap_err();
        assert!(test.top().join("other/.envrc.not-allowed").exists() && !test.top().join("other/.envrc").exists());
    }

    #[test]
    fn repositories_that_run_nothing_stay() {
        let test = WatchTest::new();
        let commit = "git -c user.name=n -c user.email=e@example.org commit -q --allow-empty -m x";
        run(&test.top(), &format!("git init -q own; cd own; {commit}"));
        let none: Vec<&str> = Vec::new();
        for script in [
            "git init -q a; git -C a config user.name n; git clone -q own b; git init -q --bare c",
            "git -C own worktree add -q ../w",
            "git -C a config user.email e@example.org; git -C c config gc.auto 0",
        ] {
            assert_eq!(test.aside(script), none, "{script}");
        }
        for (script, expected) in [
            ("git -C a config core.fsmonitor ./x", vec!["a/.git"]),
            ("printf '#!/bin/sh\n' > b/.git/hooks/pre-commit", vec!["b/.git"]),
            ("git -C c config core.hooksPath x", vec!["c/config", "c/hooks"]),
            ("git init -q d; git -C d config alias.st '!x'", vec!["d/.git"]),
            ("git init -q e; git -C e config include.path x", vec!["e/.git"]),
            (
                "mkdir -p h/objects h/refs; echo 'ref: refs/heads/main' > h/HEAD; printf '[core]\nrepositoryformatversion=0\n\
                 bare=false\nworktree=%s/h\nfsmonitor=touch %s/x #\n' \"$PWD\" \"$PWD\" > h/config",
                vec!["h/config"],
            ),
            (
                "mkdir -p g/objects g/refs f; echo 'ref: refs/heads/x' > g/HEAD; echo 'gitdir: ../g' > f/.git; printf \
              '[core]\nfsmonitor = x\n' > g/config",
                vec!["f/.git", "g/config"],
            ),
        ] {
            assert_eq!(test.aside(script), expected, "{script}");
        }
        // It is looked at again while the command runs.
        let watch = test.watch();
        run(&test.top(), "git init -q again; git -C again config core.fsmonitor ./x");
        watch.watched.look().unwrap();
        let aside = watch.settle().unwrap();
        assert_eq!(aside.iter().map(|file| file.path.clone()).collect::<Vec<_>>(), [test.top().join("again/.git")]);
        // Commands that a stopped rebase will run.
        run(
            &test.top(),
            "cd own; mkdir .git/rebase-merge; printf 'pick a\nexec mine\n' > .git/rebase-merge/git-rebase-todo",
        );
        let list = "own/.git/rebase-merge/git-rebase-todo";
        for (script, expected) in [
            ("cd own/.git/rebase-merge; printf 'exec mine\nbreak\n' > git-rebase-todo", none.clone()),
            ("printf 'pick b\n\tx  touch y\n' >> own/.git/rebase-merge/git-rebase-todo", vec![list]),
            ("printf 'pick b\nlabel exec\n' > own/.git/rebase-merge/git-rebase-todo", none.clone()),
            (
                "mkdir own/.git/worktrees/w/rebase-merge; echo 'x y' > own/.git/worktrees/w/rebase-merge/git-rebase-todo",
                vec!["own/.git/worktrees/w/rebase-merge/git-rebase-todo"],
            ),
            ("echo ours > own/.git/rebase-merge/strategy", none.clone()),
            ("echo x/y > own/.git/rebase-merge/strategy", vec!["own/.git/rebase-merge/strategy"]),
            (
                "mkdir own/.git/sequencer; printf '[options]\n\tstrategy = x/y\n' > own/.git/sequencer/opts",
                vec!["own/.git/sequencer/opts"],
            ),
        ] {
            assert_eq!(test.aside(script), expected, "{script}");
        }
        // Links through which Git would write elsewhere. One that was there before is somebody's own.
        run(
            &test.top(),
            "git init -q linked; ln -s ../mine linked/.git/MERGE_MSG; mkdir -p linked/.git/logs/refs/heads",
        );
        for (script, expected) in [
            (
                "ln -s ../../mine linked/.git/COMMIT_EDITMSG; ln -s /nowhere linked/.git/logs/HEAD; ln -s /nowhere \
                 linked/.git/logs/refs/heads/x; ln -s /nowhere own/.git/worktrees/w/COMMIT_EDITMSG",
                vec![
                    "linked/.git/COMMIT_EDITMSG",
                    "linked/.git/logs/HEAD",
                    "linked/.git/logs/refs/heads/x",
                    "own/.git/worktrees/w/COMMIT_EDITMSG",
                ],
            ),
            ("git init -q new; rm -r new/.git/refs; ln -s ../../mine new/.git/refs", vec!["new/.git/refs"]),
            (
                "mkdir linked/.git/worktrees; ln -s ../../../old linked/.git/worktrees/x",
                vec!["linked/.git/worktrees/x"],
            ),
        ] {
            assert_eq!(test.aside(script), expected, "{script}");
        }
        assert_eq!(test.aside("true"), none);
        assert!(test.top().join("linked/.git/MERGE_MSG").is_symlink());
        // A repository elsewhere stays as it is, even if a new one here names it.
        let other = tempfile::tempdir().unwrap();
        run(
            other.path(),
            "git init -q; mkdir .git/rebase-merge; echo 'exec x' > .git/rebase-merge/git-rebase-todo; ln -s x \
             .git/y",
        );
        let elsewhere = other.path().canonicalize().unwrap();
        test.aside(&format!("mkdir far; echo 'gitdir: {}/.git' > far/.git", elsewhere.display()));
        assert!(elsewhere.join(".git/y").is_symlink() && elsewhere.join(".git/rebase-merge/git-rebase-todo").exists());
        // A person adds a hook: nothing is taken from them, and no command may change it any more.
        run(&test.top(), "git init -q before");
        let again = WatchTest::new();
        assert_eq!(again.aside("git init -q a"), none);
        run(&again.top(), "printf '#!/bin/sh\n' > a/.git/hooks/pre-commit");
        assert_eq!(again.aside("true"), none);
        assert!(!again.sandbox.made_repositories.has(&again.top().join("a/.git")));
    }
}
