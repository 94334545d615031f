//! The system calls that are denied to a confined program. The daemon compiles the filter, and the launcher applies it.
//!
//! The kernel runs a new filter for each call that there is, to learn which are always allowed. So it looks a call up in a tree.

use std::collections::BTreeMap;

use libc::c_long;

use super::order::Confinement;

/// A condition on the lower half of an argument, of which only the bits of the mask count.
#[derive(Clone, Copy, Debug)]
struct ArgumentCondition {
    argument: u8,
    mask: u32,
    value: u32,
    /// Whether it holds if they are equal, or if they are not.
    is_equal: bool,
}

/// The conditions under which each call is refused: all those of one of the lists.
type RefusedCalls = BTreeMap<c_long, Vec<Vec<ArgumentCondition>>>;

/// An instruction of a filter (`struct sock_filter`).
#[derive(Clone, Copy, Debug)]
struct FilterStep {
    code: u16,
    jump_true: u8,
    jump_false: u8,
    value: u32,
}

const LOAD: u16 = 0x20;
const AND: u16 = 0x54;
const JUMP: u16 = 0x05;
const JUMP_IF_EQUAL: u16 = 0x15;
const JUMP_IF_AT_LEAST: u16 = 0x35;
const RETURN: u16 = 0x06;
const ALLOW: u32 = 0x7fff_0000;
/// Whoever has the filter's descriptor takes the call.
const NOTIFY: u32 = 0x7fc0_0000;
const FAIL: u32 = 0x0005_0000;
const END_PROCESS: u32 = 0x8000_0000;
/// The name of each architecture's calls (`AUDIT_ARCH`).
const ARCHITECTURES: [(&str, u32); 3] = [("x86_64", 0xc000_003e), ("aarch64", 0xc000_00b7), ("riscv64", 0xc000_00f3)];

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
const OF_A_USER: u32 = 3;

/// The filter that denies the calls, as the launcher takes it.
///
/// # Errors
/// The calls of this architecture are not known, in words for people.
pub(super) fn filter(confinement: &Confinement) -> Result<String, String> {
    let mut missing: Vec<c_long> = KEYS.into();
    let mut refused: RefusedCalls = ALWAYS.map(|call| (call, always())).into();
    refused.insert(libc::SYS_prlimit64, vec![vec![is_not(0, 0)]]);
    // Process id -1 stands for everything on a processor. The kernel checks other ids like any other access.
    refused.insert(libc::SYS_perf_event_open, vec![vec![is(1, u32::MAX)]]);
    if !confinement.guard {
        refuse_sockets(confinement, &mut refused);
        if confinement.writable.is_empty() || confinement.floor {
            refuse_scheduling(&mut refused);
        }
        if !confinement.writable.is_empty() {
            refuse_other_rights(&mut refused);
            // It has the mode where no filter sees it. Programs do without it where kernels lack it.
            missing.push(libc::SYS_openat2);
        }
    }
    if confinement.floor {
        refuse_namespaces(&mut missing, &mut refused);
        if !confinement.needs_scope {
            refuse_signals(&mut refused);
        }
    }
    if confinement.bare {
        refuse_metadata(&mut refused);
    }
    let fails = |error: i32| FAIL | error as u32;
    let mut calls: BTreeMap<c_long, Vec<FilterStep>> =
        refused.iter().map(|(call, lists)| (*call, answer(lists, fails(libc::EPERM)))).collect();
    calls.extend(missing.into_iter().map(|call| (call, answer(&always(), fails(libc::ENOSYS)))));
    if confinement.own_sockets {
        calls.insert(libc::SYS_connect, answer(&always(), NOTIFY));
    }
    let architecture = ARCHITECTURES.iter().find(|(name, _)| *name == std::env::consts::ARCH);
    let (_, architecture) = architecture.ok_or("there is no filter of system calls for this architecture")?;
    let mut steps = vec![step(LOAD, 4), jump(JUMP_IF_EQUAL, *architecture, 1, 0), step(RETURN, END_PROCESS)];
    steps.push(step(LOAD, 0));
    // The calls of the x32 ABI, which most kernels do not have.
    #[cfg(target_arch = "x86_64")]
    steps.extend([jump(JUMP_IF_AT_LEAST, 0x4000_0000, 0, 1), step(RETURN, fails(libc::ENOSYS))]);
    steps.extend(tree(&calls.into_iter().collect::<Vec<_>>()));
    Ok(steps.iter().flat_map(digits).collect())
}

fn step(code: u16, value: u32) -> FilterStep {
    jump(code, value, 0, 0)
}

fn jump(code: u16, value: u32, jump_true: u8, jump_false: u8) -> FilterStep {
    FilterStep { code, jump_true, jump_false, value }
}

/// The 16 digits of an instruction.
fn digits(of: &FilterStep) -> impl Iterator<Item = char> {
    let FilterStep { code, jump_true, jump_false, value } = *of;
    let bits = u64::from(code) << 48 | u64::from(jump_true) << 40 | u64::from(jump_false) << 32 | u64::from(value);
    (0..16).rev().map(move |place| char::from_digit((bits >> (place * 4)) as u32 & 0xf, 16).unwrap_or_default())
}

/// Finds a call by its number, which is loaded.
fn tree(calls: &[(c_long, Vec<FilterStep>)]) -> Vec<FilterStep> {
    let [first, .., _] = calls else {
        let found = calls.iter().flat_map(|(call, answer)| {
            let skip = answer.len().try_into().expect("few conditions");
            [jump(JUMP_IF_EQUAL, *call as u32, 0, skip)].into_iter().chain(answer.iter().copied())
        });
        return found.chain([step(RETURN, ALLOW)]).collect();
    };
    let (lower, upper) = calls.split_at(calls.len() / 2);
    let middle = upper.first().unwrap_or(first).0 as u32;
    let lower = tree(lower);
    let mut steps = vec![jump(JUMP_IF_AT_LEAST, middle, 0, 1), step(JUMP, lower.len() as u32)];
    steps.extend(lower);
    steps.extend(tree(upper));
    steps
}

/// The answer to a call: this one if all conditions of a list hold.
fn answer(lists: &[Vec<ArgumentCondition>], answer: u32) -> Vec<FilterStep> {
    let mut steps = Vec::new();
    for conditions in lists {
        let mut left: u8 = conditions.iter().map(|condition| condition.steps().len() as u8).sum();
        for condition in conditions {
            let own = condition.steps();
            left -= own.len() as u8;
            steps.extend(own);
            // Else on with the next list.
            if let Some(FilterStep { jump_true, jump_false, .. }) = steps.last_mut() {
                *(if condition.is_equal { jump_false } else { jump_true }) = left + 1;
            }
        }
        steps.push(step(RETURN, answer));
        if conditions.is_empty() {
            return steps;
        }
    }
    steps.push(step(RETURN, ALLOW));
    steps
}

impl ArgumentCondition {
    fn steps(&self) -> Vec<FilterStep> {
        let load = step(LOAD, 16 + 8 * u32::from(self.argument));
        let mask = Some(step(AND, self.mask)).filter(|_| self.mask != u32::MAX);
        [load].into_iter().chain(mask).chain([step(JUMP_IF_EQUAL, self.value)]).collect()
    }
}

fn always() -> Vec<Vec<ArgumentCondition>> {
    vec![Vec::new()]
}

fn is(argument: u8, value: u32) -> ArgumentCondition {
    ArgumentCondition { argument, mask: u32::MAX, value, is_equal: true }
}

fn is_not(argument: u8, value: u32) -> ArgumentCondition {
    ArgumentCondition { is_equal: false, ..is(argument, value) }
}

/// Whether all these bits are set.
fn has(argument: u8, bits: u32) -> ArgumentCondition {
    ArgumentCondition { mask: bits, ..is(argument, bits) }
}

/// Without the network, only socket pairs are allowed, and on a floor questions to the kernel that list addresses, routes
/// and open sockets: to change one, they need a capability that no confined program has. With the network, all but the Unix
/// family: over Unix sockets a program could reach the daemon and other servers that trust this user. In a network of its
/// own, only the internet protocols and the kernel's answers about them are allowed: a namespace does not bound sockets of
/// all families; and Unix sockets with connections, if those are handed over.
fn refuse_sockets(confinement: &Confinement, refused: &mut RefusedCalls) {
    refused.extend(RINGS.map(|call| (call, always())));
    let without_connection =
        WITHOUT_CONNECTION.map(|kind| ArgumentCondition { mask: 0xf, ..is(1, kind as u32) }).into_iter();
    // One half of such a pair could still send to any other socket.
    refused.insert(libc::SYS_socketpair, without_connection.clone().map(|kind| vec![kind]).collect());
    if confinement.by_host || confinement.own_sockets {
        let unix = confinement.own_sockets.then_some(libc::AF_UNIX).into_iter();
        let other = IN_OWN_NETWORK.into_iter().chain(unix).map(|family| is_not(0, family as u32)).collect();
        let unix = without_connection.map(|kind| vec![is(0, libc::AF_UNIX as u32), kind]);
        refused.insert(libc::SYS_socket, [other, other_netlink()].into_iter().chain(unix).collect());
        return;
    }
    if confinement.network {
        refused.insert(libc::SYS_socket, vec![vec![is(0, libc::AF_UNIX as u32)]]);
        return;
    }
    refused.extend(SOCKETS.map(|call| (call, always())));
    if confinement.floor {
        refused.insert(libc::SYS_socket, vec![vec![is_not(0, libc::AF_NETLINK as u32)], other_netlink()]);
        // Addresses of other families are of other lengths, and no socket of another family can be made.
        let length = size_of::<libc::sockaddr_nl>() as u32;
        for call in [libc::SYS_bind, libc::SYS_connect] {
            refused.insert(call, vec![vec![is_not(2, length)]]);
        }
    }
}

/// Questions to the kernel about anything but addresses, routes and open sockets.
fn other_netlink() -> Vec<ArgumentCondition> {
    let others = [libc::NETLINK_ROUTE, libc::NETLINK_SOCK_DIAG].map(|protocol| is_not(2, protocol as u32));
    [is(0, libc::AF_NETLINK as u32)].into_iter().chain(others).collect()
}

/// Namespaces of its own. By those of its command, a process is known wherever it moves; and in new ones it would have the
/// capabilities that were taken from it, over parts of the kernel that only root uses otherwise. Without them, only a new user
/// namespace leads to any other.
fn refuse_namespaces(missing: &mut Vec<c_long>, refused: &mut RefusedCalls) {
    for call in [libc::SYS_unshare, libc::SYS_clone] {
        refused.insert(call, vec![vec![has(0, libc::CLONE_NEWUSER as u32)]]);
    }
    // It has the flags where no filter sees them. Programs do without it where kernels lack it.
    missing.push(libc::SYS_clone3);
}

/// Signals to other processes than those of the program's own group, where Landlock does not refuse them. A program still
/// aborts itself, and its threads still cancel each other.
fn refuse_signals(refused: &mut RefusedCalls) {
    const SET_OWNER_EX: u32 = 15;
    const FIOSETOWN: u32 = 0x8901;
    const SIOCSPGRP: u32 = 0x8902;
    const OF_LIBRARY: [u32; 2] = [32, 33];
    let all = [libc::SYS_tkill, libc::SYS_rt_sigqueueinfo, libc::SYS_rt_tgsigqueueinfo, libc::SYS_pidfd_send_signal];
    refused.extend(all.map(|call| (call, always())));
    refused.insert(libc::SYS_kill, vec![vec![is_not(0, 0)]]);
    let harmless = [libc::SIGABRT as u32].into_iter().chain(OF_LIBRARY);
    refused.insert(libc::SYS_tgkill, vec![harmless.map(|signal| is_not(2, signal)).collect()]);
    // Input that is announced by a signal.
    let owners = [libc::F_SETOWN as u32, SET_OWNER_EX].map(|command| vec![is(1, command)]);
    refused.insert(libc::SYS_fcntl, owners.into());
    refused.insert(libc::SYS_ioctl, [FIOSETOWN, SIOCSPGRP].map(|command| vec![is(1, command)]).into());
}

/// Changes of modes, owners, times and attributes, and what a namespace would separate.
fn refuse_metadata(refused: &mut RefusedCalls) {
    /// Since Linux 6.6, 6.13 and 6.17, with the same numbers on all architectures.
    const NEWER: [c_long; 4] = [452, 463, 466, 469];
    const SET_FLAGS: [u32; 2] = [0x4008_6602, 0x401c_5820];
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
    refused.extend(metadata.into_iter().chain(shared).chain(NEWER).map(|call| (call, always())));
    #[cfg(target_arch = "x86_64")]
    refused.extend(
        [libc::SYS_chmod, libc::SYS_chown, libc::SYS_lchown, libc::SYS_utime, libc::SYS_utimes, libc::SYS_futimesat]
            .map(|call| (call, always())),
    );
    refused.entry(libc::SYS_ioctl).or_default().extend(SET_FLAGS.map(|command| vec![is(1, command)]));
}

/// Modes with which a program that is made here would have the rights of this user, or its group, whoever runs it. Only
/// root's group has rights of its own, and folders have that bit for another purpose.
fn refuse_other_rights(refused: &mut RefusedCalls) {
    const FCHMODAT2: c_long = 452;
    let bits = match rustix::process::geteuid().is_root() {
        true => vec![libc::S_ISUID, libc::S_ISGID],
        false => vec![libc::S_ISUID],
    };
    // The calls with the argument that is the mode.
    let mut calls = vec![(libc::SYS_fchmod, 1), (libc::SYS_fchmodat, 2), (FCHMODAT2, 2), (libc::SYS_mknodat, 2)];
    // These have one only with certain flags.
    let mut opening = vec![(libc::SYS_openat, 2, 3)];
    #[cfg(target_arch = "x86_64")]
    {
        calls.extend([(libc::SYS_chmod, 1), (libc::SYS_creat, 1), (libc::SYS_mknod, 1)]);
        opening.push((libc::SYS_open, 1, 2));
    }
    for bit in bits {
        for (call, mode) in &calls {
            refused.entry(*call).or_default().push(vec![has(*mode, bit)]);
        }
        for (call, flags, mode) in &opening {
            for flag in [libc::O_CREAT, libc::O_TMPFILE & !libc::O_DIRECTORY] {
                refused.entry(*call).or_default().push(vec![has(*flags, flag as u32), has(*mode, bit)]);
            }
        }
    }
}

/// In read-only mode and on a floor, a program must not change how other processes run.
fn refuse_scheduling(refused: &mut RefusedCalls) {
    for call in SCHEDULING {
        refused.insert(call, vec![vec![is_not(0, 0)]]);
    }
    // The arguments are the kind of target and its id; id 0 is the program itself or its user.
    for (call, of_user) in [(libc::SYS_setpriority, libc::PRIO_USER), (libc::SYS_ioprio_set, OF_A_USER)] {
        refused.insert(call, vec![vec![is(0, of_user)], vec![is_not(1, 0)]]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The answer of the kernel to a call of this architecture.
    fn outcome(filter: &str, call: c_long, arguments: [u32; 4]) -> u32 {
        let steps: Vec<u64> = (0..filter.len() / 16)
            .map(|at| u64::from_str_radix(&filter[at * 16..(at + 1) * 16], 16).unwrap())
            .collect();
        let (_, architecture) = ARCHITECTURES.iter().find(|(name, _)| *name == std::env::consts::ARCH).unwrap();
        let (mut at, mut loaded) = (0, 0);
        loop {
            let step = steps[at];
            let (code, value) = ((step >> 48) as u16, step as u32);
            let jump = |is_true: bool| 1 + (step >> if is_true { 40 } else { 32 }) as usize % 256;
            at += match code {
                LOAD => {
                    loaded = match value {
                        0 => call as u32,
                        4 => *architecture,
                        _ => arguments[(value as usize - 16) / 8],
                    };
                    1
                }
                AND => {
                    loaded &= value;
                    1
                }
                JUMP => 1 + value as usize,
                JUMP_IF_EQUAL => jump(loaded == value),
                JUMP_IF_AT_LEAST => jump(loaded >= value),
                RETURN => return value,
                _ => panic!("{code:x}"),
            };
        }
    }

    #[test]
    fn calls_are_refused_by_their_numbers_and_arguments() {
        let floor = Confinement { floor: true, needs_scope: true, ..Confinement::default() };
        let write = Confinement { writable: vec!["/w".into()], ..floor.clone() };
        let build = Confinement { own_sockets: true, by_host: true, ..write.clone() };
        let bare = Confinement { bare: true, needs_scope: false, ..floor.clone() };
        let (refused, missing) = (FAIL | libc::EPERM as u32, FAIL | libc::ENOSYS as u32);
        let (unix, inet) = (libc::AF_UNIX as u32, libc::AF_INET as u32);
        let (stream, datagram) = (libc::SOCK_STREAM as u32 | libc::SOCK_CLOEXEC as u32, libc::SOCK_DGRAM as u32);
        let netlink = libc::AF_NETLINK as u32;
        for (confinement, call, arguments, expected) in [
            (&floor, libc::SYS_read, [0; 4], ALLOW),
            (&floor, libc::SYS_mount, [0; 4], refused),
            (&floor, libc::SYS_keyctl, [0; 4], missing),
            (&floor, libc::SYS_clone3, [0; 4], missing),
            (&floor, libc::SYS_clone, [libc::CLONE_NEWUSER as u32 | 17, 0, 0, 0], refused),
            (&floor, libc::SYS_clone, [libc::CLONE_VM as u32 | 17, 0, 0, 0], ALLOW),
            (&floor, libc::SYS_prlimit64, [0, 7, 0, 0], ALLOW),
            (&floor, libc::SYS_prlimit64, [1, 7, 0, 0], refused),
            (&floor, libc::SYS_socket, [inet, stream, 0, 0], refused),
            (&floor, libc::SYS_socket, [netlink, stream, libc::NETLINK_ROUTE as u32, 0], ALLOW),
            (&floor, libc::SYS_socket, [netlink, stream, libc::NETLINK_AUDIT as u32, 0], refused),
            (&floor, libc::SYS_connect, [0, 0, 12, 0], ALLOW),
            (&floor, libc::SYS_connect, [0, 0, 16, 0], refused),
            (&floor, libc::SYS_setpriority, [libc::PRIO_USER, 0, 0, 0], refused),
            (&floor, libc::SYS_setpriority, [libc::PRIO_PROCESS, 0, 0, 0], ALLOW),
            (&floor, libc::SYS_setpriority, [libc::PRIO_PROCESS, 1, 0, 0], refused),
            (&floor, libc::SYS_openat, [0, 0, 0o100, 0o4755], ALLOW),
            (&write, libc::SYS_openat, [0, 0, 0o100, 0o4755], refused),
            (&write, libc::SYS_openat, [0, 0, 0o100, 0o755], ALLOW),
            (&write, libc::SYS_openat, [0, 0, 0, 0o4755], ALLOW),
            (&write, libc::SYS_openat2, [0; 4], missing),
            (&write, libc::SYS_fchmod, [0, 0o4755, 0, 0], refused),
            (&write, libc::SYS_fchmod, [0, 0o755, 0, 0], ALLOW),
            (&write, libc::SYS_connect, [0, 0, 16, 0], refused),
            (&build, libc::SYS_connect, [0, 0, 16, 0], NOTIFY),
            (&build, libc::SYS_socket, [unix, stream, 0, 0], ALLOW),
            (&build, libc::SYS_socket, [unix, datagram, 0, 0], refused),
            (&build, libc::SYS_socket, [inet, datagram, 0, 0], ALLOW),
            (&build, libc::SYS_socket, [libc::AF_VSOCK as u32, stream, 0, 0], refused),
            (&build, libc::SYS_socketpair, [unix, datagram, 0, 0], refused),
            (&bare, libc::SYS_fchmod, [0, 0o755, 0, 0], refused),
            (&bare, libc::SYS_kill, [0, 15, 0, 0], ALLOW),
            (&bare, libc::SYS_kill, [1, 15, 0, 0], refused),
            (&bare, libc::SYS_tgkill, [1, 1, libc::SIGABRT as u32, 0], ALLOW),
            (&bare, libc::SYS_tgkill, [1, 1, libc::SIGTERM as u32, 0], refused),
        ] {
            let found = outcome(&filter(confinement).unwrap(), call, arguments);
            assert_eq!(found, expected, "{call} {arguments:?} {confinement:?}");
        }
        let all = filter(&build).unwrap();
        #[cfg(target_arch = "x86_64")]
        assert_eq!(outcome(&all, libc::SYS_read | 0x4000_0000, [0; 4]), missing);
        // Each of those that are always refused, wherever it lies in the tree.
        assert!(ALWAYS.iter().all(|call| outcome(&all, *call, [0; 4]) == refused));
        assert!(KEYS.iter().all(|call| outcome(&all, *call, [0; 4]) == missing));
    }
}
