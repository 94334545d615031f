//! The system calls of the launcher that the standard library does not make. Calls that C libraries may lack go through
//! `syscall`; they have the same numbers on all architectures.
#![allow(unsafe_code, reason = "the launcher is compiled without the crates that have safe functions for these calls")]

use std::ffi::{CStr, CString, c_char, c_int, c_long, c_uint, c_ulong, c_void};
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::net::UdpSocket;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::null;
use std::time::Duration;

unsafe extern "C" {
    safe fn setsid() -> c_int;
    safe fn geteuid() -> c_uint;
    safe fn getegid() -> c_uint;
    #[link_name = "unshare"]
    safe fn unshare_namespaces(flags: c_int) -> c_int;
    #[link_name = "setns"]
    safe fn enter_namespace(namespace: RawFd, kind: c_int) -> c_int;
    #[link_name = "ioctl"]
    fn control_device(socket: RawFd, request: c_ulong, ...) -> c_int;
    #[link_name = "sendmsg"]
    fn send_message(socket: RawFd, message: *const SocketMessage, flags: c_int) -> isize;
    #[cfg_attr(target_env = "gnu", link_name = "setrlimit64")]
    fn setrlimit(resource: c_int, limit: *const [u64; 2]) -> c_int;
    fn access(path: *const c_char, mode: c_int) -> c_int;
    #[link_name = "mount"]
    fn mount_at(
        from: *const c_char,
        at: *const c_char,
        kind: *const c_char,
        flags: c_ulong,
        data: *const c_void,
    ) -> c_int;
    #[link_name = "umount2"]
    fn unmount_at(at: *const c_char, flags: c_int) -> c_int;
    fn prctl(option: c_int, ...) -> c_int;
    fn memfd_create(name: *const c_char, flags: c_uint) -> c_int;
    safe fn inotify_init1(flags: c_int) -> c_int;
    fn inotify_add_watch(changes: RawFd, path: *const c_char, mask: u32) -> c_int;
    #[link_name = "poll"]
    fn poll_descriptors(polled: *mut PolledDescriptor, number: c_ulong, milliseconds: c_int) -> c_int;
    fn syscall(number: c_long, ...) -> c_long;
}

/// An error if the call returned -1.
fn checked(returned: impl Into<c_long>) -> io::Result<c_long> {
    match returned.into() {
        -1 => Err(io::Error::last_os_error()),
        returned => Ok(returned),
    }
}

/// A descriptor, if the call returned one.
fn descriptor(returned: c_long) -> io::Result<OwnedFd> {
    let descriptor = checked(returned)? as RawFd;
    // SAFETY: the caller passes what a call returned that opens a descriptor, which nobody else has yet.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

fn text(path: &Path) -> io::Result<CString> {
    Ok(CString::new(path.as_os_str().as_bytes())?)
}

/// Creates a session, unless this process leads one already, as with a terminal.
pub(super) fn lead_session() {
    setsid();
}

/// Sets both limits of POSIX message queues for this process and all that it starts.
pub(super) fn limit_message_queues(bytes: u64) -> io::Result<()> {
    const RLIMIT_MSGQUEUE: c_int = 12;
    let limit = [bytes; 2];
    // SAFETY: the pointer is to the two numbers of a limit, which are only read.
    checked(unsafe { setrlimit(RLIMIT_MSGQUEUE, &raw const limit) }).map(|_| ())
}

pub(super) fn user_and_group() -> (u32, u32) {
    (geteuid(), getegid())
}

pub(super) const NEW_MOUNTS: c_int = 0x2_0000;
pub(super) const NEW_IPC: c_int = 0x800_0000;
pub(super) const NEW_USER: c_int = 0x1000_0000;
pub(super) const NEW_NETWORK: c_int = 0x4000_0000;

pub(super) fn unshare(namespaces: c_int) -> io::Result<()> {
    checked(unshare_namespaces(namespaces)).map(|_| ())
}

/// Enters a namespace of whatever kind.
pub(super) fn enter(namespace: &File) -> io::Result<()> {
    const ANY_KIND: c_int = 0;
    checked(enter_namespace(namespace.as_raw_fd(), ANY_KIND)).map(|_| ())
}

/// Starts the loopback device of this network namespace. Any socket of the namespace will do.
pub(super) fn start_loopback(socket: &UdpSocket) -> io::Result<()> {
    /// `struct ifreq`.
    #[repr(C)]
    struct DeviceFlags {
        name: [u8; 16],
        flags: i16,
        unused: [u8; 22],
    }
    const SET_FLAGS: c_ulong = 0x8914;
    const UP: i16 = 1;
    let mut name = [0; 16];
    name[..2].copy_from_slice(b"lo");
    let request = DeviceFlags { name, flags: UP, unused: [0; 22] };
    // SAFETY: the kernel only reads the request, which has the size that it expects.
    checked(unsafe { control_device(socket.as_raw_fd(), SET_FLAGS, &raw const request) }).map(|_| ())
}

/// The most descriptors that one message carries.
pub(super) const MAX_SENT: usize = 64;

/// `struct iovec`.
#[repr(C)]
struct MessagePart {
    start: *const c_void,
    length: usize,
}

/// `struct msghdr`, as the kernel reads it.
#[repr(C)]
struct SocketMessage {
    name: *const c_void,
    name_length: c_uint,
    parts: *const MessagePart,
    number_of_parts: usize,
    control: *const c_void,
    control_length: usize,
    flags: c_int,
}

/// Sends a text, and with it descriptors, at most [`MAX_SENT`].
pub(super) fn send_descriptors(socket: RawFd, text: &[u8], descriptors: &[OwnedFd]) -> io::Result<()> {
    /// `struct cmsghdr`, and what follows it.
    #[repr(C)]
    struct Rights {
        length: usize,
        level: c_int,
        kind: c_int,
        descriptors: [RawFd; MAX_SENT],
    }
    const SOCKET_LEVEL: c_int = 1;
    const RIGHTS: c_int = 1;
    const HEADER: usize = size_of::<usize>() + 2 * size_of::<c_int>();
    if descriptors.len() > MAX_SENT {
        return Err(io::Error::other("too many descriptors"));
    }
    let length = HEADER + size_of::<RawFd>() * descriptors.len();
    let mut rights = Rights { length, level: SOCKET_LEVEL, kind: RIGHTS, descriptors: [0; MAX_SENT] };
    for (sent, descriptor) in rights.descriptors.iter_mut().zip(descriptors) {
        *sent = descriptor.as_raw_fd();
    }
    let part = MessagePart { start: text.as_ptr().cast(), length: text.len() };
    let message = SocketMessage {
        name: null(),
        name_length: 0,
        parts: &raw const part,
        number_of_parts: 1,
        control: (&raw const rights).cast(),
        control_length: length.next_multiple_of(size_of::<usize>()),
        flags: 0,
    };
    // SAFETY: the kernel only reads the message, whose parts live until the call returns.
    checked(unsafe { send_message(socket, &raw const message, 0) } as c_long).map(|_| ())
}

pub(super) fn may_write(path: &Path) -> bool {
    const W_OK: c_int = 2;
    // SAFETY: the path is a C string.
    text(path).is_ok_and(|path| unsafe { access(path.as_ptr(), W_OK) } == 0)
}

pub(super) const READ_ONLY: c_ulong = 1;
pub(super) const NO_SUID: c_ulong = 2;
pub(super) const NO_DEVICES: c_ulong = 4;
pub(super) const NO_PROGRAMS: c_ulong = 8;
/// Changes of mounts, here and below, do not reach other namespaces, nor the other way round.
pub(super) const PRIVATE: c_ulong = 0x4_0000 | 0x4000;

/// Mounts a file system of this kind, or changes the mount at the path if the flags say so.
pub(super) fn mount(kind: &CStr, at: &Path, flags: c_ulong, options: &CStr) -> io::Result<()> {
    let at = text(at)?;
    // SAFETY: all are C strings, which are only read.
    checked(unsafe { mount_at(kind.as_ptr(), at.as_ptr(), kind.as_ptr(), flags, options.as_ptr().cast()) }).map(|_| ())
}

/// Mounts the file or folder that one path leads to where the other one leads, with what is mounted below it. It keeps the
/// attributes of the mount in which it lies.
pub(super) fn bind(from: &Path, at: &Path) -> io::Result<()> {
    const BIND: c_ulong = 0x1000 | 0x4000;
    let (from, at) = (text(from)?, text(at)?);
    // SAFETY: both are C strings, and the other arguments are not used.
    checked(unsafe { mount_at(from.as_ptr(), at.as_ptr(), null(), BIND, null()) }).map(|_| ())
}

/// Takes the uppermost mount at the path away. What is open or copied of it stays.
pub(super) fn unmount(at: &Path) -> io::Result<()> {
    const DETACH: c_int = 2;
    let at = text(at)?;
    // SAFETY: the path is a C string.
    checked(unsafe { unmount_at(at.as_ptr(), DETACH) }).map(|_| ())
}

const CURRENT_FOLDER: c_int = -100;
const CLOSE_ON_EXEC: c_int = 0x8_0000;
const RECURSIVE: c_int = 0x8000;
const EMPTY_PATH: c_int = 0x1000;

/// Opens the place of a path, without access to its content.
pub(super) fn open_place(path: &Path) -> io::Result<OwnedFd> {
    open_tree(path, CLOSE_ON_EXEC)
}

/// A copy of the mounts at and below a path, not yet attached.
pub(super) fn copy_tree(path: &Path) -> io::Result<OwnedFd> {
    const CLONE: c_int = 1;
    open_tree(path, CLONE | CLOSE_ON_EXEC | RECURSIVE)
}

fn open_tree(path: &Path, flags: c_int) -> io::Result<OwnedFd> {
    const OPEN_TREE: c_long = 428;
    let path = text(path)?;
    // SAFETY: the path is a C string. The call opens a descriptor.
    descriptor(unsafe { syscall(OPEN_TREE, CURRENT_FOLDER, path.as_ptr(), flags) })
}

/// Opens the place of a path on which there is no link, without access to its content.
pub(super) fn open_without_links(path: &Path) -> io::Result<OwnedFd> {
    const OPENAT2: c_long = 437;
    const PLACE: u64 = 0x20_0000;
    const NO_LINKS: u64 = 2 | 4;
    // `struct open_how`: the flags, the mode, how the path is resolved.
    let how = [PLACE | CLOSE_ON_EXEC as u64, 0, NO_LINKS];
    let path = text(path)?;
    // SAFETY: the path is a C string, and the kernel only reads the other structure, `size_of_val` bytes. The call opens a
    // descriptor.
    descriptor(unsafe { syscall(OPENAT2, CURRENT_FOLDER, path.as_ptr(), how.as_ptr(), size_of_val(&how)) })
}

/// Whether something is mounted at exactly this place.
pub(super) fn is_mounted(place: &OwnedFd) -> io::Result<bool> {
    #[cfg(target_arch = "x86_64")]
    const STATX: c_long = 332;
    #[cfg(not(target_arch = "x86_64"))]
    const STATX: c_long = 291;
    const NOTHING_MORE: c_uint = 0;
    const ROOT_OF_MOUNT: u64 = 0x2000;
    // `struct statx`, whose second number has the attributes.
    let mut facts = [0u64; 32];
    let pointer = facts.as_mut_ptr();
    // SAFETY: the path is a C string, and the kernel writes a structure of the size of these numbers.
    checked(unsafe { syscall(STATX, place.as_raw_fd(), c"".as_ptr(), EMPTY_PATH, NOTHING_MORE, pointer) })?;
    Ok(facts[1] & ROOT_OF_MOUNT != 0)
}

/// Attaches a copy at a path.
pub(super) fn attach(tree: &OwnedFd, path: &Path) -> io::Result<()> {
    const MOVE_MOUNT: c_long = 429;
    const FROM_DESCRIPTOR: c_int = 4;
    const TO_LINKS_TARGET: c_int = 0x10;
    let (path, flags) = (text(path)?, FROM_DESCRIPTOR | TO_LINKS_TARGET);
    // SAFETY: both paths are C strings.
    checked(unsafe { syscall(MOVE_MOUNT, tree.as_raw_fd(), c"".as_ptr(), CURRENT_FOLDER, path.as_ptr(), flags) })
        .map(|_| ())
}

pub(super) const TREE_READ_ONLY: u64 = 1;
pub(super) const TREE_WITHOUT_PRIVILEGES: u64 = 2;

/// Sets one of the attributes above on a mount and all mounts below it. The other attributes stay, so this also works
/// where they are locked, as in a user namespace. Only this call (Linux 5.12) reaches all mounts of a tree at once,
/// including mounts that others cover or that no path reaches.
pub(super) fn set_attribute(tree: &OwnedFd, attribute: u64) -> io::Result<()> {
    const MOUNT_SETATTR: c_long = 442;
    // `struct mount_attr`: the attributes to set and to clear, the propagation, the user namespace.
    let attributes = [attribute, 0, 0, 0];
    let (pointer, size) = (attributes.as_ptr(), size_of_val(&attributes));
    // SAFETY: the path is a C string, and the kernel only reads the attributes, `size` bytes.
    checked(unsafe { syscall(MOUNT_SETATTR, tree.as_raw_fd(), c"".as_ptr(), EMPTY_PATH | RECURSIVE, pointer, size) })
        .map(|_| ())
}

/// A file in memory that is read from its start.
pub(super) fn file_in_memory(content: &[u8]) -> io::Result<OwnedFd> {
    const CLOSE_ON_EXEC: c_uint = 1;
    // SAFETY: the name is a C string. The call opens a descriptor.
    let mut file = File::from(descriptor(unsafe { memfd_create(c"covers".as_ptr(), CLOSE_ON_EXEC) }.into())?);
    file.write_all(content)?;
    file.rewind()?;
    Ok(file.into())
}

/// The kernel's notices about changes of the entries of folders.
pub(super) struct WatchedEntries(File);

/// An entry that appeared, or a folder that is no longer watched; then it has no name.
pub(super) struct ChangedName {
    pub(super) watch: i32,
    pub(super) name: Vec<u8>,
}

impl WatchedEntries {
    pub(super) fn new() -> io::Result<Self> {
        const NON_BLOCKING: c_int = 0o4000;
        Ok(Self(descriptor(inotify_init1(CLOSE_ON_EXEC | NON_BLOCKING).into())?.into()))
    }

    /// Watches a folder. Returns the number of the watch, which is the same for the same folder.
    pub(super) fn watch(&self, folder: &Path) -> io::Result<i32> {
        const CREATED: u32 = 0x100;
        const MOVED_HERE: u32 = 0x80;
        const MOVED_ITSELF: u32 = 0x800;
        const FOLDERS_ONLY: u32 = 0x0100_0000;
        let folder = text(folder)?;
        let mask = CREATED | MOVED_HERE | MOVED_ITSELF | FOLDERS_ONLY;
        // SAFETY: the path is a C string.
        let watch = unsafe { inotify_add_watch(self.0.as_raw_fd(), folder.as_ptr(), mask) };
        checked(watch).map(|_| watch)
    }

    fn take(&self) -> io::Result<Vec<ChangedName>> {
        // `struct inotify_event`: the watch, the kind, a cookie, the length of the name with the zeros behind it.
        const HEAD: usize = 16;
        const LENGTH: usize = 12;
        let mut space = [0; 16 << 10];
        let length = (&self.0).read(&mut space)?;
        let (mut rest, mut found) = (&space[..length], Vec::new());
        let number = |bytes: &[u8]| bytes.first_chunk().map(|bytes| i32::from_ne_bytes(*bytes)).unwrap_or_default();
        while rest.len() >= HEAD {
            let end = (HEAD + number(&rest[LENGTH..]) as usize).min(rest.len());
            let name = rest[HEAD..end].split(|byte| *byte == 0).next().unwrap_or_default();
            found.push(ChangedName { watch: number(rest), name: name.to_vec() });
            rest = &rest[end..];
        }
        Ok(found)
    }
}

/// `struct pollfd`.
#[repr(C)]
struct PolledDescriptor {
    descriptor: RawFd,
    wanted: i16,
    found: i16,
}

/// Waits for changes, none if the time is over first; `None` when nothing is at the other end of the descriptor.
pub(super) fn wait_for_change(
    changes: Option<&WatchedEntries>,
    other: RawFd,
    time: Duration,
) -> io::Result<Option<Vec<ChangedName>>> {
    const READABLE: i16 = 1;
    const OVER: i16 = 8 | 16 | 32;
    let changed = changes.map_or(-1, |changes| changes.0.as_raw_fd());
    let polled = |descriptor, wanted| PolledDescriptor { descriptor, wanted, found: 0 };
    let mut all = [polled(changed, READABLE), polled(other, 0)];
    let milliseconds = time.as_millis().try_into().unwrap_or(c_int::MAX);
    // SAFETY: the kernel reads and writes these two structures.
    checked(unsafe { poll_descriptors(all.as_mut_ptr(), 2, milliseconds) })?;
    if all[1].found & OVER != 0 {
        return Ok(None);
    }
    match changes.filter(|_| all[0].found != 0) {
        Some(changes) => changes.take().map(Some),
        None => Ok(Some(Vec::new())),
    }
}

/// Lets the program inherit its input and its two outputs, and no other descriptor of whoever started this process.
pub(super) fn keep_three_descriptors() -> io::Result<()> {
    const CLOSE_RANGE: c_long = 436;
    const ON_EXEC: c_uint = 4;
    let (first, last): (c_uint, c_uint) = (3, c_uint::MAX);
    // SAFETY: no pointer is passed, and the descriptors stay open in this process.
    checked(unsafe { syscall(CLOSE_RANGE, first, last, ON_EXEC) }).map(|_| ())
}

/// Removes a capability from all programs that this process starts.
pub(super) fn drop_capability(number: c_ulong) -> io::Result<()> {
    const PR_CAPBSET_DROP: c_int = 24;
    control(PR_CAPBSET_DROP, number)
}

/// No program that this process starts gains privileges. Landlock and filters need that.
pub(super) fn forbid_privileges() -> io::Result<()> {
    const PR_SET_NO_NEW_PRIVS: c_int = 38;
    control(PR_SET_NO_NEW_PRIVS, 1)
}

/// `struct sock_filter`.
#[repr(C)]
pub(super) struct Instruction {
    pub(super) code: u16,
    pub(super) jump_true: u8,
    pub(super) jump_false: u8,
    pub(super) value: u32,
}

/// `struct sock_fprog`.
#[repr(C)]
struct FilterProgram {
    length: u16,
    instructions: *const Instruction,
}

/// Filters all further system calls. With `follow`, returns a descriptor that tells when this process and all that it starts have
/// ended, and by which others take the calls that the filter leaves to them.
pub(super) fn filter_calls(instructions: &[Instruction], follow: bool) -> io::Result<Option<OwnedFd>> {
    #[cfg(target_arch = "x86_64")]
    const SECCOMP: c_long = 317;
    #[cfg(not(target_arch = "x86_64"))]
    const SECCOMP: c_long = 277;
    const SET_MODE_FILTER: c_uint = 1;
    /// With a descriptor; and a call that was taken is ended by a signal only if that kills.
    const FOLLOW: c_uint = (1 << 3) | (1 << 5);
    let flags = if follow { FOLLOW } else { 0 };
    let length = instructions.len().try_into().map_err(io::Error::other)?;
    let program = FilterProgram { length, instructions: instructions.as_ptr() };
    // SAFETY: the kernel only reads the program. With these flags, the call opens a descriptor.
    let returned = unsafe { syscall(SECCOMP, SET_MODE_FILTER, flags, &raw const program) };
    if follow { descriptor(returned).map(Some) } else { checked(returned).map(|_| None) }
}

fn control(option: c_int, value: c_ulong) -> io::Result<()> {
    let none: c_ulong = 0;
    // SAFETY: no pointer is passed.
    checked(unsafe { prctl(option, value, none, none, none) }).map(|_| ())
}

/// `struct landlock_ruleset_attr`: the accesses that are forbidden unless a rule allows them.
#[repr(C)]
pub(super) struct Handled {
    pub(super) files: u64,
    pub(super) network: u64,
    pub(super) scopes: u64,
}

/// The version of Landlock.
pub(super) fn landlock_version() -> io::Result<c_long> {
    const VERSION: c_uint = 1;
    // SAFETY: with this flag, the kernel takes no attributes.
    checked(unsafe { syscall(CREATE_RULESET, null::<Handled>(), 0usize, VERSION) })
}

const CREATE_RULESET: c_long = 444;

pub(super) fn landlock_ruleset(handled: &Handled) -> io::Result<OwnedFd> {
    let no_flags: c_uint = 0;
    // SAFETY: the kernel only reads the attributes, exactly `size_of` bytes. The call opens a descriptor.
    descriptor(unsafe { syscall(CREATE_RULESET, &raw const *handled, size_of::<Handled>(), no_flags) })
}

/// Adds a rule that allows these accesses to a place and everything below it.
pub(super) fn landlock_allow(ruleset: &OwnedFd, place: &OwnedFd, files: u64) -> io::Result<()> {
    /// `struct landlock_path_beneath_attr`.
    #[repr(C, packed)]
    struct Beneath {
        files: u64,
        place: RawFd,
    }
    const ADD_RULE: c_long = 445;
    const PATH_BENEATH: c_int = 1;
    let rule = Beneath { files, place: place.as_raw_fd() };
    let no_flags: c_uint = 0;
    // SAFETY: the kernel only reads the rule, whose size follows from its kind.
    checked(unsafe { syscall(ADD_RULE, ruleset.as_raw_fd(), PATH_BENEATH, &raw const rule, no_flags) }).map(|_| ())
}

/// Applies the rules to this process and all that it starts.
pub(super) fn landlock_restrict(ruleset: &OwnedFd) -> io::Result<()> {
    const RESTRICT_SELF: c_long = 446;
    let no_flags: c_uint = 0;
    // SAFETY: no pointer is passed.
    checked(unsafe { syscall(RESTRICT_SELF, ruleset.as_raw_fd(), no_flags) }).map(|_| ())
}
