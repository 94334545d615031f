//! File systems that may not answer: network file systems, and those that a program serves (FUSE). A thread that
//! accesses a path there waits in the kernel until they answer, and only SIGKILL ends that.
//!
//! So each is probed before a path on it is accessed, by a thread that may hang. While that thread waits, nothing else
//! accesses the file system. Local files cost nothing: the list of mounts identifies them.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, mpsc};
use std::time::{Duration, Instant};

use parking_lot::{Mutex, RwLock};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use toold_engine::blocking::run_blocking;

/// Time limit for a file system to answer.
const PATIENCE: Duration = Duration::from_secs(1);
/// How long an answer stays valid.
const GOOD_FOR: Duration = Duration::from_secs(2);
/// Limit of threads that wait for one file system. Further ones fail at once.
const MAX_WAITING: usize = 64;
/// The shortest interval between two reads of the list of mounts.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// The list of mounts (proc_pid_mountinfo(5)).
const LIST: &str = "/proc/self/mountinfo";
/// Size limit of the list, in bytes.
const MAX_LIST: u64 = 4 << 20;
/// File systems there belong to the kernel, whatever their type is called.
const OF_KERNEL: [&str; 3] = ["/proc", "/sys", "/dev"];

/// A file system that did not answer. It is wrapped in the `io::Error` of the access that failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the file system at {} ({kind}) does not answer: try again when it does, or unmount it (with `umount --lazy` if necessary)",
    .place.display()
)]
pub struct UnresponsiveFileSystem {
    pub place: PathBuf,
    /// As mount(8) names it.
    pub kind: String,
}

impl From<UnresponsiveFileSystem> for io::Error {
    fn from(error: UnresponsiveFileSystem) -> Self {
        Self::other(error)
    }
}

/// The file system that did not answer, if that is the cause of the error.
pub fn no_answer(error: &io::Error) -> Option<&UnresponsiveFileSystem> {
    error.get_ref()?.downcast_ref()
}

/// Whether any file system that may not answer is mounted. Costs nothing.
pub fn any() -> bool {
    !TABLE.mounts().is_empty()
}

/// Whether an absolute path is on a file system of this kernel's own, by its name. Costs nothing.
pub fn is_local_path(path: &Path) -> bool {
    let mounts = TABLE.mounts();
    mounts.is_empty() || path.ancestors().all(|above| !mounts.contains_key(above))
}

/// Runs an operation on an absolute path. If its file system may not answer, that is probed first. The probe takes at
/// most a second, and the runtime gets another thread in place of this one meanwhile.
///
/// # Errors
/// The file system does not answer; the operation did not run.
pub fn at<T>(path: &Path, work: impl FnOnce() -> T) -> Result<T, UnresponsiveFileSystem> {
    let mounts = TABLE.mounts();
    if mounts.is_empty() {
        return Ok(work());
    }
    match path.ancestors().find_map(|above| mounts.get(above)) {
        Some(mount) => {
            // Before another thread is started: refused calls need none.
            let turn = mount.take_turn()?;
            run_blocking(|| {
                mount.ask()?;
                drop(turn);
                Ok(work())
            })
        }
        None => Ok(work()),
    }
}

/// As [`at`], for a caller that accesses the path later.
///
/// # Errors
/// It does not answer.
pub fn ask(path: &Path) -> Result<(), UnresponsiveFileSystem> {
    at(path, || ())
}

/// How often a change of what is mounted was seen. At most [`LOOK_EVERY`] late.
pub(crate) fn mount_changes() -> u64 {
    TABLE.mounts();
    TABLE.state.read().as_ref().map_or(0, |state| state.changes)
}

/// A place where a file system is mounted, or a part of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MountedPlace {
    /// As the list names it.
    pub(crate) device: Vec<u8>,
    /// The part, as a path in the file system.
    pub(crate) root: PathBuf,
    pub(crate) place: PathBuf,
}

/// All mounts, each after those that it may cover. Reads the list.
pub(crate) fn mounted_places() -> Vec<MountedPlace> {
    let list = read_list();
    list.split(|byte| *byte == b'\n').filter_map(mounted_place).collect()
}

fn mounted_place(line: &[u8]) -> Option<MountedPlace> {
    let fields: Vec<&[u8]> = line.split(|byte| *byte == b' ').take(5).collect();
    let [_, _, device, root, place] = fields[..] else { return None };
    Some(MountedPlace { device: device.to_vec(), root: unescaped(root), place: unescaped(place) })
}

/// The mounts of this process. They belong to the kernel, so all daemons in the process share one table.
static TABLE: Table = Table { state: RwLock::new(None), list: OnceLock::new() };

type MountMap = Arc<BTreeMap<PathBuf, Arc<Mount>>>;

struct Table {
    state: RwLock<Option<MountSnapshot>>,
    /// The open [`LIST`], which signals changes when polled; `None` if the system has no such list.
    list: OnceLock<Option<File>>,
}

struct MountSnapshot {
    mounts: MountMap,
    looked: Instant,
    /// How often the list was read.
    changes: u64,
}

impl Table {
    fn mounts(&self) -> MountMap {
        if let Some(state) = self.state.read().as_ref()
            && state.looked.elapsed() < LOOK_EVERY
        {
            return state.mounts.clone();
        }
        let mut state = self.state.write();
        let before = match state.as_ref() {
            Some(state) if state.looked.elapsed() < LOOK_EVERY || !self.has_changed() => Some(state.mounts.clone()),
            _ => None,
        };
        let changes = state.as_ref().map_or(0, |state| state.changes) + u64::from(before.is_none());
        let mounts = before.unwrap_or_else(|| {
            let known = state.as_ref().map(|state| state.mounts.clone()).unwrap_or_default();
            Arc::new(read(&known))
        });
        *state = Some(MountSnapshot { mounts: mounts.clone(), looked: Instant::now(), changes });
        mounts
    }

    fn has_changed(&self) -> bool {
        let Some(list) = self.list.get_or_init(open_list) else { return false };
        let mut changes = [PollFd::new(list, PollFlags::PRI)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut changes, Some(&now)).is_ok_and(|changed| changed > 0)
    }
}

fn open_list() -> Option<File> {
    File::open(LIST).ok()
}

fn read_list() -> Vec<u8> {
    let mut list = Vec::new();
    let read = open_list().map(|file| file.take(MAX_LIST).read_to_end(&mut list));
    if matches!(read, Some(Ok(_))) { list } else { Vec::new() }
}

/// The mounts that may not answer. Known mounts keep their state.
fn read(known: &BTreeMap<PathBuf, Arc<Mount>>) -> BTreeMap<PathBuf, Arc<Mount>> {
    let mut found = BTreeMap::new();
    let list = read_list();
    for (place, kind, id) in list.split(|byte| *byte == b'\n').filter_map(entry) {
        if is_local(&kind) || OF_KERNEL.iter().any(|folder| place.starts_with(folder)) {
            // Mounted over an earlier mount.
            found.remove(&place);
            continue;
        }
        let same = known.get(&place).filter(|mount| mount.id == id).cloned();
        let mount = same.unwrap_or_else(|| {
            Arc::new(Mount { place: place.clone(), kind, id, asked: Mutex::default(), waiting: AtomicUsize::new(0) })
        });
        found.insert(place, mount);
    }
    found
}

/// Parses a line of the list: the mount point, the file system type, and the mount's id.
fn entry(line: &[u8]) -> Option<(PathBuf, String, u64)> {
    let mut fields = line.split(|byte| *byte == b' ');
    let id = std::str::from_utf8(fields.next()?).ok()?.parse().ok()?;
    let place = unescaped(fields.nth(3)?);
    let kind = fields.skip_while(|field| *field != b"-").nth(1)?;
    Some((place, String::from_utf8_lossy(kind).into_owned(), id))
}

/// Spaces, line ends and backslashes are written as three octal digits.
fn unescaped(text: &[u8]) -> PathBuf {
    let mut plain = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((first, after)) = rest.split_first() {
        let digits = after.get(..3).and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) if *first == b'\\' => {
                plain.push(byte);
                rest = &after[3..];
            }
            _ => {
                plain.push(*first);
                rest = after;
            }
        }
    }
    PathBuf::from(OsStr::from_bytes(&plain))
}

/// The types that this kernel serves from its own disks. All others may not answer.
fn is_local(kind: &str) -> bool {
    const LOCAL: &str = "bcachefs bdev binder binfmt_misc bpf btrfs cgroup cgroup2 configfs cpuset cramfs debugfs \
                         devpts devtmpfs ecryptfs efivarfs erofs exfat ext2 ext3 ext4 f2fs fusectl hfs hfsplus hugetlbfs \
                         iso9660 jfs mqueue msdos nilfs2 none nsfs ntfs3 overlay pipefs proc pstore ramfs reiserfs \
                         resctrl rootfs rpc_pipefs securityfs selinuxfs smackfs sockfs squashfs sysfs tmpfs tracefs \
                         ubifs udf ufs vfat xfs zfs zonefs";
    LOCAL.split_ascii_whitespace().any(|local| local == kind)
}

#[derive(Debug)]
struct Mount {
    place: PathBuf,
    kind: String,
    id: u64,
    asked: Mutex<ProbeState>,
    /// Threads that wait for its answer.
    waiting: AtomicUsize,
}

#[derive(Debug, Default)]
enum ProbeState {
    #[default]
    Never,
    /// When it last answered.
    Answered(Instant),
    /// A thread waits for its answer, which is published here.
    Waits(mpsc::Receiver<()>),
}

impl Mount {
    /// Reserves one of the places for threads that wait for its answer.
    ///
    /// # Errors
    /// All places are taken.
    fn take_turn(&self) -> Result<ProbeSlot<'_>, UnresponsiveFileSystem> {
        let turn = ProbeSlot(&self.waiting);
        let waiting = self.waiting.fetch_add(1, Ordering::Relaxed);
        if waiting < MAX_WAITING { Ok(turn) } else { Err(self.no_answer()) }
    }

    fn ask(&self) -> Result<(), UnresponsiveFileSystem> {
        // Concurrent callers share one probe.
        let mut asked = self.asked.lock();
        let (receiver, patience) = match std::mem::take(&mut *asked) {
            ProbeState::Answered(at) if at.elapsed() < GOOD_FOR => {
                *asked = ProbeState::Answered(at);
                return Ok(());
            }
            // The time limit has passed already.
            ProbeState::Waits(receiver) => (receiver, Duration::ZERO),
            ProbeState::Never | ProbeState::Answered(_) => (self.send_somebody()?, PATIENCE),
        };
        match receiver.recv_timeout(patience) {
            Err(mpsc::RecvTimeoutError::Timeout) => {
                *asked = ProbeState::Waits(receiver);
                Err(self.no_answer())
            }
            // An error is an answer, too.
            Ok(()) | Err(mpsc::RecvTimeoutError::Disconnected) => {
                *asked = ProbeState::Answered(Instant::now());
                Ok(())
            }
        }
    }

    fn send_somebody(&self) -> Result<mpsc::Receiver<()>, UnresponsiveFileSystem> {
        let (sender, receiver) = mpsc::channel();
        let place = self.place.clone();
        let asks = move || {
            // The result does not matter. The kernel does not cache it, so the file system itself must answer.
            let _ = rustix::fs::statfs(&place);
            let _ = sender.send(());
        };
        let thread = std::thread::Builder::new().name("mount".to_owned()).stack_size(64 * 1024).spawn(asks);
        thread.map(|_| receiver).map_err(|_| self.no_answer())
    }

    fn no_answer(&self) -> UnresponsiveFileSystem {
        UnresponsiveFileSystem { place: self.place.clone(), kind: self.kind.clone() }
    }
}

/// One of the threads that wait for a file system's answer, until it is dropped.
struct ProbeSlot<'a>(&'a AtomicUsize);

impl Drop for ProbeSlot<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_list_are_read() {
        let line =
            b"36 35 98:0 /mnt1 /mnt/with\\040blank rw,noatime master:1 shared:2 - fuse.sshfs host:/ rw,errors=continue";
        assert_eq!(entry(line), Some((PathBuf::from("/mnt/with blank"), "fuse.sshfs".to_owned(), 36)));
        assert_eq!(entry(b"36 35 98:0 / /plain rw - ext4 /dev/sda rw").unwrap().1, "ext4");
        assert_eq!(entry(b""), None);
        let mounted = MountedPlace { device: b"98:0".to_vec(), root: "/mnt1".into(), place: "/mnt/with blank".into() };
        assert_eq!(mounted_place(line), Some(mounted));
        assert_eq!(unescaped(b"a\\134b\\x"), Path::new("a\\b\\x"));
    }

    #[test]
    fn only_file_systems_of_this_kernel_are_local() {
        for kind in ["ext4", "tmpfs", "overlay", "proc", "zfs"] {
            assert!(is_local(kind), "{kind}");
        }
        for kind in ["fuse", "fuse.sshfs", "nfs4", "cifs", "9p", "virtiofs", "ceph", "something new"] {
            assert!(!is_local(kind), "{kind}");
        }
    }

    #[test]
    fn a_file_system_that_is_asked_and_answers_is_not_asked_again_at_once() {
        let mount = Mount {
            place: "/".into(),
            kind: "test".into(),
            id: 1,
            asked: Mutex::default(),
            waiting: AtomicUsize::new(0),
        };
        let mut turns: Vec<ProbeSlot<'_>> = (0..MAX_WAITING).map(|_| mount.take_turn().unwrap()).collect();
        assert!(mount.take_turn().is_err());
        turns.pop();
        assert!(mount.take_turn().is_ok());
        mount.ask().unwrap();
        assert!(matches!(*mount.asked.lock(), ProbeState::Answered(_)));
        let (sender, receiver) = mpsc::channel();
        *mount.asked.lock() = ProbeState::Waits(receiver);
        let error = io::Error::from(mount.ask().unwrap_err());
        assert_eq!(no_answer(&error).unwrap().place, Path::new("/"));
        sender.send(()).unwrap();
        mount.ask().unwrap();
    }
}
