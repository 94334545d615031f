//! `mount_setattr` (Linux 5.12), which neither the standard library nor rustix has. Only with it are all the mounts of a
//! tree made read-only at once, also those that others cover or that no path leads to.
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

/// The same number in every architecture.
pub(super) const READ_ONLY: u64 = 1;
pub(super) const WITHOUT_PRIVILEGES: u64 = 2;
const RECURSIVE: libc::c_int = 0x8000;

/// Gives a mount and all below it one of the attributes above. The others stay, so that it also works where they are
/// locked, as they are in a user namespace.
pub(super) fn set(tree: BorrowedFd<'_>, attribute: u64) -> rustix::io::Result<()> {
    let attributes = Attributes { set: attribute, ..Attributes::default() };
    // SAFETY: the descriptor is open, the path is an empty C string, and the kernel reads as many bytes of the
    // attributes as it is told, all of which are initialised. It writes to none of them.
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
