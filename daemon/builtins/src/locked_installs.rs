//! Installations that need no approval: commands that fetch exactly what a lock file names, as the file was committed when the
//! session began, or as a person has seen it since.
//!
//! [`commands`] knows the commands and [`formats`] the files. A person who is asked about another lock file sees how it
//! differs, and need not answer again for that version.

mod commands;
mod formats;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use toold_engine::cx::Cx;
use toold_engine::need::Need;
use toold_engine::session::{Session, SessionOwner};
use toold_host::checked_out::CheckedOutCommit;
use toold_host::files;
use toold_proto::tool::Category;

use crate::stamps::FileDigest;
use commands::{LockedCommand, locked_command};
use formats::{LockFormat, LockedPackages};

/// The longest lock file.
const MAX_FILE: u64 = 16 << 20;
/// The most versions of a lock file that a session knows.
const MAX_VERSIONS: usize = 16;

/// The lock files that a session has met.
#[derive(Default)]
struct SessionLockFiles {
    /// The commits that the repositories of its folders had checked out when it began; empty if they are not known.
    began: OnceLock<Vec<CheckedOutCommit>>,
    files: Mutex<HashMap<PathBuf, KnownLockFile>>,
}

#[derive(Default)]
struct KnownLockFile {
    /// Whether the commit has been looked at.
    is_looked_up: bool,
    /// The committed version and those that a person has seen, the newest last.
    seen: Vec<LockFileVersion>,
    /// The version that a person was asked about last.
    asked: Option<FileDigest>,
}

#[derive(Clone)]
struct LockFileVersion {
    digest: FileDigest,
    packages: Arc<LockedPackages>,
}

/// Records what the session's repositories have checked out now. A session that a process of a tool opens has none: the tool
/// may have committed anything before. Reads a few small files.
pub(crate) fn note_began(session: &Session) {
    let commits = || match session.owner() {
        SessionOwner::Frontend => {
            let places = std::iter::once(&session.cwd).chain(&session.roots);
            places.filter_map(|place| CheckedOutCommit::around(place)).collect()
        }
        SessionOwner::Tool(_) | SessionOwner::UnknownTool | SessionOwner::Plugin { .. } => Vec::new(),
    };
    session.slot::<SessionLockFiles>().began.get_or_init(commits);
}

/// Records that the session has begun before: what was checked out then is not known.
pub(crate) fn note_restored(session: &Session) {
    session.slot::<SessionLockFiles>().began.get_or_init(Vec::new);
}

/// The commands of a line that fetch what a lock file names.
#[derive(Default)]
pub(crate) struct LineLocks(Vec<LineLock>);

struct LineLock {
    /// The target and the folder of the need.
    of: (String, Option<PathBuf>),
    command: LockedCommand,
    now: LockFileVersion,
    /// Whether this version was committed or seen.
    is_seen: bool,
    /// For a person, how it differs.
    difference: String,
}

impl LineLocks {
    /// Looks at the lock files of a line, as they are now, and compares them with those that the session knows. Reads the files.
    pub(crate) fn known(needs: &[Need], session: &Session) -> Self {
        let known = session.slot::<SessionLockFiles>();
        let lock = |(need, command): (&Need, LockedCommand)| {
            let now = read(&command)?;
            let mut files = known.files.lock();
            let file = files.entry(command.file.clone()).or_default();
            let is_seen = file.seen.iter().any(|version| version.digest == now.digest);
            let difference = now.packages.difference(file.seen.last().map(|version| &*version.packages));
            let folder = need.command()?.folder.clone();
            Some(LineLock { of: (need.target.clone(), folder), command, now, is_seen, difference })
        };
        Self(locked_commands(needs, session).into_iter().filter_map(lock).collect())
    }

    /// Whether a command fetches what a lock file names that was committed or seen.
    pub(crate) fn is_free(&self, need: &Need) -> bool {
        self.0.iter().any(|lock| lock.is_seen && lock.is_of(need))
    }

    /// The hosts of these lock files, as `host:port`.
    pub(crate) fn hosts(&self) -> Vec<String> {
        let seen = self.0.iter().filter(|lock| lock.is_seen);
        seen.flat_map(|lock| lock.now.packages.hosts.iter().cloned()).collect()
    }

    /// Says of commands that are asked about how their lock files differ.
    pub(crate) fn explain(&self, needs: &mut [Need], session: &Session) {
        let known = session.slot::<SessionLockFiles>();
        for need in needs.iter_mut().filter(|need| need.reason.is_none()) {
            let Some(lock) = self.0.iter().find(|lock| !lock.is_seen && lock.command.fetches && lock.is_of(need))
            else {
                continue;
            };
            let mut files = known.files.lock();
            let file = files.entry(lock.command.file.clone()).or_default();
            file.asked = Some(lock.now.digest);
            let name = lock.command.file.file_name().unwrap_or_default().to_string_lossy();
            need.reason = Some(match (lock.command.format.names_packages(), file.seen.is_empty()) {
                (false, _) => format!("{name} is not as it was committed when the session began"),
                (true, false) => format!("{name} has changed since the session began: it {}", lock.difference),
                (true, true) => format!("{name} was not committed when the session began: it {}", lock.difference),
            });
        }
    }

    /// Records the lock files that a person has seen before allowing their commands.
    pub(crate) fn note_seen(&self, cx: &Cx) {
        let known = cx.session.slot::<SessionLockFiles>();
        for lock in self.0.iter().filter(|lock| !lock.is_seen && lock.command.format.names_packages()) {
            let mut files = known.files.lock();
            let file = files.entry(lock.command.file.clone()).or_default();
            // It may have changed since.
            if file.asked == Some(lock.now.digest) && cx.was_answered(Category::Shell, &lock.of.0) {
                file.add(lock.now.clone());
            }
        }
    }
}

impl LineLock {
    fn is_of(&self, need: &Need) -> bool {
        need.command().is_some_and(|command| self.of.0 == need.target && self.of.1 == command.folder)
    }
}

impl KnownLockFile {
    fn add(&mut self, version: LockFileVersion) {
        if self.seen.len() >= MAX_VERSIONS {
            self.seen.remove(0);
        }
        self.seen.push(version);
    }
}

/// The commands of a line whose lock files lie in the session's folders. What runs before such a command must only read, since
/// it could change the lock file.
fn locked_commands<'n>(needs: &'n [Need], session: &Session) -> Vec<(&'n Need, LockedCommand)> {
    let reads = |need: &&Need| need.category() == Category::FileRead || need.reads_only();
    let first = needs.iter().take_while(reads).count();
    // The same program may build afterwards what it has fetched.
    let found = needs.iter().enumerate().filter_map(|(at, need)| Some((at, need, locked_command(need)?)));
    let found = found.filter(|(at, _, command)| *at <= first || !command.fetches);
    found.filter(|(.., command)| session.contains(&command.file)).map(|(_, need, command)| (need, command)).collect()
}

fn read(command: &LockedCommand) -> Option<LockFileVersion> {
    version(command.format, &files::read_named(&command.file, MAX_FILE).ok()?)
}

fn version(format: LockFormat, content: &[u8]) -> Option<LockFileVersion> {
    let packages = format.read(std::str::from_utf8(content).ok()?)?;
    Some(LockFileVersion { digest: blake3::hash(content), packages: Arc::new(packages) })
}

/// A lock file whose committed version the session does not know yet.
pub(crate) struct LockFileToLookUp {
    pub(crate) file: PathBuf,
    /// What its repository had checked out when the session began, if that is known.
    pub(crate) commit: Option<CheckedOutCommit>,
    format: LockFormat,
}

/// The lock files of a line that have to be looked up.
pub(crate) fn to_look_up(needs: &[Need], session: &Session) -> Vec<LockFileToLookUp> {
    let known = session.slot::<SessionLockFiles>();
    let commits = known.began.get().map(Vec::as_slice).unwrap_or_default();
    let commands = locked_commands(needs, session).into_iter().map(|(_, command)| command);
    let unknown =
        commands.filter(|command| known.files.lock().get(&command.file).is_none_or(|file| !file.is_looked_up));
    unknown
        .map(|LockedCommand { file, format, .. }| {
            let commit = commits.iter().find(|commit| commit.has(&file)).cloned();
            LockFileToLookUp { file, commit, format }
        })
        .collect()
}

impl LockFileToLookUp {
    /// Records what was committed; `None` if nothing was.
    pub(crate) fn found(self, committed: Option<Vec<u8>>, session: &Session) {
        let known = session.slot::<SessionLockFiles>();
        let mut files = known.files.lock();
        let file = files.entry(self.file).or_default();
        // Another call may have looked it up meanwhile.
        if std::mem::replace(&mut file.is_looked_up, true) {
            return;
        }
        if let Some(version) = committed.and_then(|content| version(self.format, &content)) {
            file.seen.insert(0, version);
        }
    }
}
