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
/// The families of sockets in a network by host.
const BY_HOST: [i32; 3] = [libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK];
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
    let missing: SeccompRules = KEYS.map(|call| (call, Vec::new())).into();
    let mut refused: SeccompRules = ALWAYS.map(|call| (call, Vec::new())).into();
    refused.insert(libc::SYS_prlimit64, vec![when(0, SeccompCmpOp::Ne, 0)?]);
    // Process id -1 stands for everything on a processor. The kernel checks other ids like any other access.
    refused.insert(libc::SYS_perf_event_open, vec![when(1, SeccompCmpOp::Eq, u64::from(u32::MAX))?]);
    if !confinement.guard {
        refuse_sockets(confinement, &mut refused)?;
        if confinement.writable.is_empty() {
            refuse_scheduling(&mut refused)?;
        }
    }
    Ok(vec![filter(missing, libc::ENOSYS)?, filter(refused, libc::EPERM)?])
}

/// Without the network, only socket pairs are allowed. With it, all but the Unix family: over Unix sockets a program
/// could reach the daemon and other servers that trust this user. With a network by host, only the internet protocols
/// and the kernel's answers about them are allowed: a namespace does not bound sockets of all families.
fn refuse_sockets(confinement: &Confinement, refused: &mut SeccompRules) -> Result<(), Box<dyn Error>> {
    refused.extend(RINGS.map(|call| (call, Vec::new())));
    // One half of a pair of datagram sockets could still send to any other socket.
    let datagram = when(1, SeccompCmpOp::MaskedEq(0xf), libc::SOCK_DGRAM as u64)?;
    refused.insert(libc::SYS_socketpair, vec![datagram]);
    if confinement.by_host {
        let other = BY_HOST.map(|family| condition(0, SeccompCmpOp::Ne, family as u64));
        let other = SeccompRule::new(other.into_iter().collect::<Result<_, _>>()?)?;
        refused.insert(libc::SYS_socket, vec![other]);
    } else if confinement.network {
        refused.insert(libc::SYS_socket, vec![when(0, SeccompCmpOp::Eq, libc::AF_UNIX as u64)?]);
    } else {
        refused.extend(SOCKETS.map(|call| (call, Vec::new())));
    }
    Ok(())
}

/// In read-only mode, a program must not change how other processes run.
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

fn when(argument: u8, is: SeccompCmpOp, value: u64) -> Result<SeccompRule, seccompiler::BackendError> {
    SeccompRule::new(vec![condition(argument, is, value)?])
}

fn condition(argument: u8, is: SeccompCmpOp, value: u64) -> Result<SeccompCondition, seccompiler::BackendError> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, is, value)
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
