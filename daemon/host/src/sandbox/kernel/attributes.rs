//! `mount_setattr` (Linux 5.12), which neither the standard library nor rustix provides. Only this call makes all
//! mounts of a tree read-only at once, including mounts that others cover or that no path reaches.
#![allow(unsafe_code, reason = "no safe function makes this call")]

use std::os::fd::{AsRawFd, BorrowedFd};

use rustix::io::Errno;

/// `struct mount_attr` of the kernel.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    set: u64,
    clear: u64,
    propagation: u64,
    user_namespace: u64,
}

/// The same number on all architectures.
pub(super) const READ_ONLY: u64 = 1;
pub(super) const WITHOUT_PRIVILEGES: u64 = 2;
const RECURSIVE: libc::c_int = 0x8000;

/// Sets one of the attributes above on a mount and all mounts below it. The other attributes stay, so this also works
/// where they are locked, as in a user namespace.
pub(super) fn set(tree: BorrowedFd<'_>, attribute: u64) -> rustix::io::Result<()> {
    let attributes = Attributes { set: attribute, ..Attributes::default() };
    // SAFETY: the descriptor is open, the path is an empty C string, and the kernel reads exactly `size` bytes of the
    // attributes, all of which are initialized. It writes to none of them.
    let done = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            tree.as_raw_fd(),
            c"".as_ptr(),
            libc::AT_EMPTY_PATH | RECURSIVE,
            &raw const attributes,
            size_of::<Attributes>(),
        )
    };
    match done {
        0 => Ok(()),
        _ => Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::INVAL)),
    }
}
