//! The system calls that are denied to a confined program. The daemon compiles the filters, and the launcher applies
//! them.

use std::collections::BTreeMap;
use std::error::Error;

use libc::c_long;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule, TargetArch,
};

use super::order::Confinement;

type SeccompRules = BTreeMap<i64, Vec<SeccompRule>>;

/// Calls that change mounts, which Landlock also forbids where it checks them; calls that reach into other namespaces
/// or open files without a path; and calls that inspect other processes or the kernel, which hardly any program needs
/// and many systems deny anyway.
const ALWAYS: [c_long; 16] = [
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    OPEN_TREE_ATTR,
    libc::SYS_setns,
    libc::SYS_open_by_handle_at,
    libc::SYS_bpf,
    libc::SYS_userfaultfd,
    libc::SYS_quotactl,
];
/// Keys belong to a user and session, not to a namespace. Kernels can be built without these calls, and programs expect
/// that.
const KEYS: [c_long; 3] = [libc::SYS_add_key, libc::SYS_request_key, libc::SYS_keyctl];
/// It creates sockets without the `socket` call.
const RINGS: [c_long; 3] = [libc::SYS_io_uring_setup, libc::SYS_io_uring_enter, libc::SYS_io_uring_register];
const SOCKETS: [c_long; 6] =
    [libc::SYS_socket, libc::SYS_connect, libc::SYS_bind, libc::SYS_listen, libc::SYS_accept, libc::SYS_accept4];
/// The families of sockets in a network of its own.
const IN_OWN_NETWORK: [i32; 3] = [libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK];
/// Kinds of Unix sockets that send to any other one without a connection. The second is another name of the first.
const WITHOUT_CONNECTION: [i32; 2] = [libc::SOCK_DGRAM, libc::SOCK_RAW];
/// They change another process if their first argument is not 0. A program's own id is refused too: a filter cannot
/// compare process ids.
const SCHEDULING: [c_long; 4] =
    [libc::SYS_sched_setaffinity, libc::SYS_sched_setscheduler, libc::SYS_sched_setparam, libc::SYS_sched_setattr];
/// Since Linux 6.15, with the same number on all architectures.
const OPEN_TREE_ATTR: c_long = 467;
const OF_A_USER: u64 = 3;
#[cfg(target_arch = "x86_64")]
const X32: i64 = 0x4000_0000;

/// The filters that deny the calls, as the launcher takes them.
pub(super) fn filters(confinement: &Confinement) -> Result<Vec<String>, Box<dyn Error>> {
    let mut missing: SeccompRules = KEYS.map(|call| (call, Vec::new())).into();
    let mut refused: SeccompRules = ALWAYS.map(|call| (call, Vec::new())).into();
    refused.insert(libc::SYS_prlimit64, vec![when(0, SeccompCmpOp::Ne, 0)?]);
    // Process id -1 stands for everything on a processor. The kernel checks other ids like any other access.
    refused.insert(libc::SYS_perf_event_open, vec![when(1, SeccompCmpOp::Eq, u64::from(u32::MAX))?]);
    if !confinement.guard {
        refuse_sockets(confinement, &mut refused)?;
        if confinement.writable.is_empty() || confinement.floor {
            refuse_scheduling(&mut refused)?;
        }
        if !confinement.writable.is_empty() {
            refuse_other_rights(&mut refused)?;
            // It has the mode where no filter sees it. Programs do without it where kernels lack it.
            missing.insert(libc::SYS_openat2, Vec::new());
        }
    }
    if confinement.floor {
        refuse_namespaces(&mut missing, &mut refused)?;
        if !confinement.needs_scope {
            refuse_signals(&mut refused)?;
        }
    }
    if confinement.bare {
        refuse_metadata(&mut refused)?;
    }
    Ok(vec![filter(missing, libc::ENOSYS)?, filter(refused, libc::EPERM)?])
}

/// Without the network, only socket pairs are allowed, and on a floor questions to the kernel that list addresses, routes
/// and open sockets: to change one, they need a capability that no confined program has. With the network, all but the Unix
/// family: over Unix sockets a program could reach the daemon and other servers that trust this user. In a network of its
/// own, only the internet protocols and the kernel's answers about them are allowed: a namespace does not bound sockets of
/// all families; and Unix sockets with connections, if those are handed over.
fn refuse_sockets(confinement: &Confinement, refused: &mut SeccompRules) -> Result<(), Box<dyn Error>> {
    refused.extend(RINGS.map(|call| (call, Vec::new())));
    let without_connection =
        || WITHOUT_CONNECTION.map(|kind| is(1, SeccompCmpOp::MaskedEq(0xf), kind as u64)).into_iter();
    // One half of such a pair could still send to any other socket.
    let pairs: Result<Vec<_>, _> = without_connection().map(|kind| SeccompRule::new(vec![kind?])).collect();
    refused.insert(libc::SYS_socketpair, pairs?);
    if confinement.by_host || confinement.own_sockets {
        let unix = confinement.own_sockets.then_some(libc::AF_UNIX).into_iter();
        let other = IN_OWN_NETWORK.into_iter().chain(unix).map(|family| is(0, SeccompCmpOp::Ne, family as u64));
        let other = SeccompRule::new(other.collect::<Result<_, _>>()?)?;
        let is_unix = || is(0, SeccompCmpOp::Eq, libc::AF_UNIX as u64);
        let unix: Result<Vec<_>, _> =
            without_connection().map(|kind| SeccompRule::new(vec![is_unix()?, kind?])).collect();
        refused.insert(libc::SYS_socket, [vec![other, other_netlink()?], unix?].concat());
        return Ok(());
    }
    if confinement.network {
        refused.insert(libc::SYS_socket, vec![when(0, SeccompCmpOp::Eq, libc::AF_UNIX as u64)?]);
        return Ok(());
    }
    refused.extend(SOCKETS.map(|call| (call, Vec::new())));
    if confinement.floor {
        let other_family = when(0, SeccompCmpOp::Ne, libc::AF_NETLINK as u64)?;
        refused.insert(libc::SYS_socket, vec![other_family, other_netlink()?]);
        // Addresses of other families are of other lengths, and no socket of another family can be made.
        let length = size_of::<libc::sockaddr_nl>() as u64;
        for call in [libc::SYS_bind, libc::SYS_connect] {
            refused.insert(call, vec![when(2, SeccompCmpOp::Ne, length)?]);
        }
    }
    Ok(())
}

/// Questions to the kernel about anything but addresses, routes and open sockets.
fn other_netlink() -> Result<SeccompRule, seccompiler::BackendError> {
    SeccompRule::new(vec![
        is(0, SeccompCmpOp::Eq, libc::AF_NETLINK as u64)?,
        is(2, SeccompCmpOp::Ne, libc::NETLINK_ROUTE as u64)?,
        is(2, SeccompCmpOp::Ne, libc::NETLINK_SOCK_DIAG as u64)?,
    ])
}

/// Namespaces of its own. By those of its command, a process is known wherever it moves; and in new ones it would have the
/// capabilities that were taken from it, over parts of the kernel that only root uses otherwise. Without them, only a new user
/// namespace leads to any other.
fn refuse_namespaces(missing: &mut SeccompRules, refused: &mut SeccompRules) -> Result<(), Box<dyn Error>> {
    let user = libc::CLONE_NEWUSER as u64;
    for call in [libc::SYS_unshare, libc::SYS_clone] {
        refused.insert(call, vec![when(0, SeccompCmpOp::MaskedEq(user), user)?]);
    }
    // It has the flags where no filter sees them. Programs do without it where kernels lack it.
    missing.insert(libc::SYS_clone3, Vec::new());
    Ok(())
}

/// Signals to other processes than those of the program's own group, where Landlock does not refuse them. A program still
/// aborts itself, and its threads still cancel each other.
fn refuse_signals(refused: &mut SeccompRules) -> Result<(), Box<dyn Error>> {
    const SET_OWNER_EX: u64 = 15;
    const FIOSETOWN: u64 = 0x8901;
    const SIOCSPGRP: u64 = 0x8902;
    const OF_LIBRARY: [u64; 2] = [32, 33];
    let all = [libc::SYS_tkill, libc::SYS_rt_sigqueueinfo, libc::SYS_rt_tgsigqueueinfo, libc::SYS_pidfd_send_signal];
    refused.extend(all.map(|call| (call, Vec::new())));
    refused.insert(libc::SYS_kill, vec![when(0, SeccompCmpOp::Ne, 0)?]);
    let harmless = [libc::SIGABRT as u64].into_iter().chain(OF_LIBRARY);
    let others: Result<Vec<SeccompCondition>, _> = harmless.map(|signal| is(2, SeccompCmpOp::Ne, signal)).collect();
    refused.insert(libc::SYS_tgkill, vec![SeccompRule::new(others?)?]);
    // Input that is announced by a signal.
    let owners = [libc::F_SETOWN as u64, SET_OWNER_EX].map(|command| when(1, SeccompCmpOp::Eq, command));
    refused.insert(libc::SYS_fcntl, owners.into_iter().collect::<Result<_, _>>()?);
    let owners = [FIOSETOWN, SIOCSPGRP].map(|command| when(1, SeccompCmpOp::Eq, command));
    refused.insert(libc::SYS_ioctl, owners.into_iter().collect::<Result<_, _>>()?);
    Ok(())
}

/// Changes of modes, owners, times and attributes, and what a namespace would separate.
fn refuse_metadata(refused: &mut SeccompRules) -> Result<(), Box<dyn Error>> {
    /// Since Linux 6.6, 6.13 and 6.17, with the same numbers on all architectures.
    const NEWER: [c_long; 4] = [452, 463, 466, 469];
    const SET_FLAGS: [u64; 2] = [0x4008_6602, 0x401c_5820];
    let metadata = [
        libc::SYS_fchmod,
        libc::SYS_fchmodat,
        libc::SYS_fchown,
        libc::SYS_fchownat,
        libc::SYS_utimensat,
        libc::SYS_setxattr,
        libc::SYS_lsetxattr,
        libc::SYS_fsetxattr,
        libc::SYS_removexattr,
        libc::SYS_lremovexattr,
        libc::SYS_fremovexattr,
    ];
    let shared = [
        libc::SYS_shmget,
        libc::SYS_shmat,
        libc::SYS_shmctl,
        libc::SYS_semget,
        libc::SYS_semop,
        libc::SYS_semtimedop,
        libc::SYS_semctl,
        libc::SYS_msgget,
        libc::SYS_msgsnd,
        libc::SYS_msgrcv,
        libc::SYS_msgctl,
        libc::SYS_mq_open,
        libc::SYS_mq_unlink,
    ];
    refused.extend(metadata.into_iter().chain(shared).chain(NEWER).map(|call| (call, Vec::new())));
    #[cfg(target_arch = "x86_64")]
    refused.extend(
        [libc::SYS_chmod, libc::SYS_chown, libc::SYS_lchown, libc::SYS_utime, libc::SYS_utimes, libc::SYS_futimesat]
            .map(|call| (call, Vec::new())),
    );
    let flags = SET_FLAGS.map(|command| when(1, SeccompCmpOp::Eq, command));
    let ioctl = refused.entry(libc::SYS_ioctl).or_default();
    ioctl.extend(flags.into_iter().collect::<Result<Vec<_>, _>>()?);
    Ok(())
}

/// Modes with which a program that is made here would have the rights of this user, or its group, whoever runs it. Only
/// root's group has rights of its own, and folders have that bit for another purpose.
fn refuse_other_rights(refused: &mut SeccompRules) -> Result<(), Box<dyn Error>> {
    const FCHMODAT2: c_long = 452;
    let bits = match rustix::process::geteuid().is_root() {
        true => vec![libc::S_ISUID, libc::S_ISGID],
        false => vec![libc::S_ISUID],
    };
    let has = |argument, bit: u64| is(argument, SeccompCmpOp::MaskedEq(bit), bit);
    // The calls with the argument that is the mode.
    let mut calls = vec![(libc::SYS_fchmod, 1), (libc::SYS_fchmodat, 2), (FCHMODAT2, 2), (libc::SYS_mknodat, 2)];
    // These have one only with certain flags.
    let mut opening = vec![(libc::SYS_openat, 2, 3)];
    #[cfg(target_arch = "x86_64")]
    {
        calls.extend([(libc::SYS_chmod, 1), (libc::SYS_creat, 1), (libc::SYS_mknod, 1)]);
        opening.push((libc::SYS_open, 1, 2));
    }
    for bit in bits.into_iter().map(u64::from) {
        for (call, mode) in &calls {
            refused.entry(*call).or_default().push(SeccompRule::new(vec![has(*mode, bit)?])?);
        }
        for (call, flags, mode) in &opening {
            for flag in [libc::O_CREAT, libc::O_TMPFILE & !libc::O_DIRECTORY] {
                let makes = SeccompRule::new(vec![has(*flags, flag as u64)?, has(*mode, bit)?])?;
                refused.entry(*call).or_default().push(makes);
            }
        }
    }
    Ok(())
}

/// In read-only mode and on a floor, a program must not change how other processes run.
fn refuse_scheduling(refused: &mut SeccompRules) -> Result<(), Box<dyn Error>> {
    for call in SCHEDULING {
        refused.insert(call, vec![when(0, SeccompCmpOp::Ne, 0)?]);
    }
    // The arguments are the kind of target and its id; id 0 is the program itself or its user.
    for (call, of_user) in [(libc::SYS_setpriority, libc::PRIO_USER as u64), (libc::SYS_ioprio_set, OF_A_USER)] {
        refused.insert(call, vec![when(0, SeccompCmpOp::Eq, of_user)?, when(1, SeccompCmpOp::Ne, 0)?]);
    }
    Ok(())
}

fn when(argument: u8, how: SeccompCmpOp, value: u64) -> Result<SeccompRule, seccompiler::BackendError> {
    SeccompRule::new(vec![is(argument, how, value)?])
}

fn is(argument: u8, how: SeccompCmpOp, value: u64) -> Result<SeccompCondition, seccompiler::BackendError> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, how, value)
}

#[cfg_attr(not(target_arch = "x86_64"), expect(unused_mut))]
fn filter(mut rules: SeccompRules, error: i32) -> Result<String, Box<dyn Error>> {
    // The same calls under the numbers of the x32 ABI.
    #[cfg(target_arch = "x86_64")]
    for (call, of_call) in rules.clone() {
        rules.insert(call | X32, of_call);
    }
    let arch = TargetArch::try_from(std::env::consts::ARCH)?;
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, SeccompAction::Errno(error as u32), arch)?;
    let program: BpfProgram = filter.try_into()?;
    Ok(program.iter().map(|step| format!("{:04x}{:02x}{:02x}{:08x}", step.code, step.jt, step.jf, step.k)).collect())
}
