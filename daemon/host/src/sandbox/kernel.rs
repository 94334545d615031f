//! What the kernel is told. Landlock says which files may be changed; a mount namespace hides secrets and
//! keeps control files within writable folders as they are, which Landlock cannot say; seccomp takes the
//! sockets away.
//!
//! Each of them is needed: Landlock forbids to change mounts, and does not yet know connections to Unix sockets.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetCreatedAttr, Scope, path_beneath_rules,
};
use rustix::fs::{StatVfsMountFlags, statvfs};
use rustix::io::Errno;
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_bind_recursive, mount_change, mount_remount};
use rustix::thread::{CapabilitySet, UnshareFlags, remove_capability_from_bounding_set};
use seccompiler::{
    SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule, TargetArch,
};

use super::Confinement;

/// Becomes a file system of the program's own, in memory: nobody else sees it, and it goes with the program.
const TEMP: &str = "/dev/shm";
/// Devices that keep nothing.
const DEVICES: [&str; 6] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"];

/// The first that can forbid to cut files (`truncate`).
const NEEDED: ABI = ABI::V3;

/// Confines this process and all that it will start, for good. Gives the folder for temporary files.
pub(super) fn confine(confinement: &Confinement) -> Result<Option<PathBuf>, String> {
    own_mounts()?;
    for (paths, act, verb) in [
        (&confinement.masked, mask as fn(&Path) -> rustix::io::Result<()>, "hide"),
        (&confinement.protected, protect, "protect"),
    ] {
        for path in paths {
            match act(path) {
                // It went since somebody looked.
                Ok(()) | Err(Errno::NOENT) => {}
                Err(error) => return Err(format!("can't {verb} {}: {error}", path.display())),
            }
        }
    }
    let temp = own_temp(confinement)?;
    drop_capabilities();
    restrict_files(confinement, temp.as_deref()).map_err(|error| format!("Landlock: {error}"))?;
    restrict_sockets(confinement.network).map_err(|error| format!("seccomp: {error}"))?;
    Ok(temp)
}

/// A mount namespace, within a user namespace where the right to make one comes only with that.
#[expect(deprecated, reason = "its replacement is unsafe for the sake of shared file descriptors, which stay shared")]
fn own_mounts() -> Result<(), String> {
    use rustix::thread::unshare;
    if unshare(UnshareFlags::NEWNS).is_err() {
        let (user, group) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
        let words = |error: &dyn Display| format!("the system gives no user namespace: {error}");
        unshare(UnshareFlags::NEWUSER | UnshareFlags::NEWNS).map_err(|error| words(&error))?;
        let map = [
            ("setgroups", "deny".to_owned()),
            ("uid_map", format!("{user} {user} 1")),
            ("gid_map", format!("{group} {group} 1")),
        ];
        for (file, text) in map {
            std::fs::write(format!("/proc/self/{file}"), text).map_err(|error| words(&error))?;
        }
    }
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)
        .map_err(|error| format!("the system gives no mounts of its own: {error}"))
}

fn mask(path: &Path) -> rustix::io::Result<()> {
    match path.is_dir() {
        true => mount("tmpfs", path, "tmpfs", MountFlags::RDONLY | MountFlags::NOSUID | MountFlags::NODEV, c"size=4k"),
        false => mount_bind_recursive("/dev/null", path),
    }
}

fn protect(path: &Path) -> rustix::io::Result<()> {
    mount_bind_recursive(path, path)?;
    // Those that the mount had cannot be taken from it in a user namespace.
    let had = statvfs(path)?.f_flag;
    let mut flags = MountFlags::BIND | MountFlags::RDONLY;
    for (flag, same) in [
        (StatVfsMountFlags::NOSUID, MountFlags::NOSUID),
        (StatVfsMountFlags::NODEV, MountFlags::NODEV),
        (StatVfsMountFlags::NOEXEC, MountFlags::NOEXEC),
        (StatVfsMountFlags::NOATIME, MountFlags::NOATIME),
        (StatVfsMountFlags::NODIRATIME, MountFlags::NODIRATIME),
        (StatVfsMountFlags::RELATIME, MountFlags::RELATIME),
    ] {
        if had.contains(flag) {
            flags |= same;
        }
    }
    mount_remount(path, flags, c"")
}

/// `None` where the program works in what would be hidden.
fn own_temp(confinement: &Confinement) -> Result<Option<PathBuf>, String> {
    let cwd = std::env::current_dir().unwrap_or_default();
    let in_use = confinement.writable.iter().chain([&cwd]).any(|path| path.starts_with(TEMP));
    if in_use || !Path::new(TEMP).is_dir() {
        return Ok(None);
    }
    mount("tmpfs", TEMP, "tmpfs", MountFlags::NOSUID | MountFlags::NODEV, c"size=512m,mode=1777")
        .map_err(|error| format!("can't make a folder for temporary files: {error}"))?;
    Ok(Some(TEMP.into()))
}

/// Root, ours or that of a user namespace, keeps its rights over files only.
fn drop_capabilities() {
    let kept = CapabilitySet::CHOWN
        | CapabilitySet::DAC_OVERRIDE
        | CapabilitySet::FOWNER
        | CapabilitySet::FSETID
        | CapabilitySet::KILL
        | CapabilitySet::SETGID
        | CapabilitySet::SETUID;
    for bit in 0..64 {
        let capability = CapabilitySet::from_bits_retain(1 << bit);
        if !kept.contains(capability) {
            // Fails for those that this kernel does not have, and for whoever has none to drop.
            let _ = remove_capability_from_bounding_set(capability);
        }
    }
}

fn restrict_files(confinement: &Confinement, temp: Option<&Path>) -> Result<(), landlock::RulesetError> {
    let read = AccessFs::from_read(NEEDED);
    // Nodes of devices would lead around every rule.
    let write = read | (AccessFs::from_write(NEEDED) & !(AccessFs::MakeBlock | AccessFs::MakeChar));
    let device = AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::Truncate;
    // A program at a terminal finds it again by its name.
    let terminal = std::fs::read_link("/proc/self/fd/0").ok().filter(|path| path.starts_with("/dev/pts"));
    let devices = DEVICES.iter().map(Path::new).chain(terminal.as_deref());
    let writable = confinement.writable.iter().map(PathBuf::as_path).chain(temp);
    // Paths that are not there are passed over.
    Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(NEEDED))?
        // Where the kernel has it: no signals to, and no abstract sockets of, those outside.
        .set_compatibility(CompatLevel::BestEffort)
        .scope(Scope::Signal | Scope::AbstractUnixSocket)?
        .create()?
        .add_rules(path_beneath_rules(["/"], read))?
        .add_rules(path_beneath_rules(devices, device))?
        .add_rules(path_beneath_rules(writable, write))?
        .restrict_self()?;
    Ok(())
}

/// Without the network there are no sockets but pairs; with it, none of the Unix family, by which a program
/// would reach the daemon and others that trust whoever runs as this user.
fn restrict_sockets(network: bool) -> Result<(), Box<dyn std::error::Error>> {
    let always: Vec<SeccompRule> = Vec::new();
    let argument = |index, operator, value| {
        SeccompRule::new(vec![SeccompCondition::new(index, SeccompCmpArgLen::Dword, operator, value)?])
    };
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = BTreeMap::new();
    // It makes sockets without the call, and changes mounts that Landlock does not look at.
    for call in [libc::SYS_io_uring_setup, libc::SYS_io_uring_enter, libc::SYS_io_uring_register, SYS_MOUNT_SETATTR] {
        rules.insert(call, always.clone());
    }
    // One half of a pair of datagram sockets could still send to any other.
    let datagram = argument(1, SeccompCmpOp::MaskedEq(0xf), libc::SOCK_DGRAM as u64)?;
    rules.insert(libc::SYS_socketpair, vec![datagram]);
    if network {
        rules.insert(libc::SYS_socket, vec![argument(0, SeccompCmpOp::Eq, libc::AF_UNIX as u64)?]);
    } else {
        for call in
            [libc::SYS_socket, libc::SYS_connect, libc::SYS_bind, libc::SYS_listen, libc::SYS_accept, libc::SYS_accept4]
        {
            rules.insert(call, always.clone());
        }
    }
    // The same calls by their other numbers.
    #[cfg(target_arch = "x86_64")]
    for (call, of_call) in rules.clone() {
        rules.insert(call | X32, of_call);
    }
    let arch = TargetArch::try_from(std::env::consts::ARCH)?;
    let refuse = SeccompAction::Errno(libc::EPERM as u32);
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, refuse, arch)?;
    let program: seccompiler::BpfProgram = filter.try_into()?;
    Ok(seccompiler::apply_filter(&program)?)
}

/// The same number on every architecture.
const SYS_MOUNT_SETATTR: i64 = 442;
#[cfg(target_arch = "x86_64")]
const X32: i64 = 0x4000_0000;
