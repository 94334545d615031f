//! The calls that a filter leaves to the daemon, as the kernel hands them over.
#![allow(
    unsafe_code,
    reason = "no crate has safe functions for these requests to the kernel, nor for an address of any family"
)]

use std::mem::{MaybeUninit, offset_of};
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::ioctl::{Opcode, Setter, Updater, ioctl, opcode};
use rustix::net::SocketAddrAny;
use rustix::net::addr::SocketAddrStorage;

const TAKE: Opcode = opcode::read_write::<libc::seccomp_notif>(b'!', 0);
const ANSWER: Opcode = opcode::read_write::<libc::seccomp_notif_resp>(b'!', 1);
const IS_WAITING: Opcode = opcode::write::<u64>(b'!', 2);

/// The longest address of any family.
pub(super) const MAX_ADDRESS: usize = size_of::<SocketAddrStorage>();

/// A thread that waits in `connect`.
pub(super) struct ConnectCall {
    id: u64,
    pub(super) thread: u32,
    pub(super) descriptor: i32,
    /// In the memory of its process.
    pub(super) address: u64,
    pub(super) length: u64,
}

impl ConnectCall {
    /// Takes the next call. Blocks until there is one.
    ///
    /// # Errors
    /// The thread is gone.
    pub(super) fn take(calls: &OwnedFd) -> Result<Self, Errno> {
        // SAFETY: all its fields are numbers, and the kernel wants them to be 0.
        let mut call: libc::seccomp_notif = unsafe { MaybeUninit::zeroed().assume_init() };
        // SAFETY: the request writes this structure, whose size is part of its number.
        unsafe { ioctl(calls, Updater::<TAKE, _>::new(&mut call))? };
        let [descriptor, address, length, ..] = call.data.args;
        // The kernel reads these two as 32 bits.
        let (descriptor, length) = (descriptor as u32 as i32, u64::from(length as u32));
        Ok(Self { id: call.id, thread: call.pid, descriptor, address, length })
    }

    /// Whether the thread still waits, so that its number is its own.
    pub(super) fn is_waiting(&self, calls: &OwnedFd) -> bool {
        // SAFETY: the request only reads a number of 64 bits.
        unsafe { ioctl(calls, Setter::<IS_WAITING, u64>::new(self.id)) }.is_ok()
    }

    /// Lets the thread go on. One that is gone needs no answer.
    pub(super) fn answer(&self, calls: &OwnedFd, done: Result<(), Errno>) {
        let error = done.err().map_or(0, |error| -error.raw_os_error());
        let mut answer = libc::seccomp_notif_resp { id: self.id, val: 0, error, flags: 0 };
        // SAFETY: the request reads this structure, whose size is part of its number.
        let _ = unsafe { ioctl(calls, Updater::<ANSWER, _>::new(&mut answer)) };
    }
}

/// An address as a program gave it, of 2 to [`MAX_ADDRESS`] bytes; the rest is left out.
pub(super) fn raw_address(bytes: &[u8]) -> SocketAddrAny {
    let mut storage = MaybeUninit::<SocketAddrStorage>::zeroed();
    let length = bytes.len().min(MAX_ADDRESS);
    // SAFETY: the storage is as long as that, and each of its bytes may have any value.
    unsafe {
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), storage.as_mut_ptr().cast(), length);
        SocketAddrAny::read(storage.as_ptr(), length as u32)
    }
}

/// The number of a request holds the size, and the kernel's structures have these.
const _: () = assert!(size_of::<libc::seccomp_notif>() == 80 && offset_of!(libc::seccomp_notif, data) == 16);
const _: () = assert!(size_of::<libc::seccomp_notif_resp>() == 24);
