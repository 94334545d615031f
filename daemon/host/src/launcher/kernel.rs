//! The restrictions that the kernel enforces. A mount namespace makes everything read-only except what may be written,
//! and hides secrets. Landlock again limits what may be written, forbids changes of mounts, and isolates the program
//! from processes outside. Seccomp denies sockets and calls that affect other processes.
//!
//! Each of them is needed. Mounts do not cover devices and processes. Landlock covers neither metadata nor exceptions
//! inside folders. Neither of the two covers connections to Unix sockets.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixStream};
use std::path::{Path, PathBuf};

use super::mounts::{self, OwnMounts, TERMINAL_MAKER, TERMINALS};
use super::network;
use super::order::Confinement;
use super::renew;
use super::system::{self, Handled, Instruction};

/// Below it lie devices. Through one of them, a program of root would read whole disks, or control the machine.
const DEVICES_FOLDER: &str = "/dev";
/// Devices that store nothing and control nothing.
const DEVICES: [&str; 6] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"];

/// The program's own outputs, which programs open again by these names, and what the kernel says about them.
const OUTPUTS: [(&str, &str); 2] =
    [("/proc/self/fd/1", "/proc/self/fdinfo/1"), ("/proc/self/fd/2", "/proc/self/fdinfo/2")];

/// Capabilities over files, and those that an ordinary user does not need: `CHOWN`, `DAC_OVERRIDE`, `FOWNER`, `FSETID`,
/// `KILL`, `SETGID`, `SETUID`.
const KEPT_CAPABILITIES: [u8; 7] = [0, 1, 3, 4, 5, 6, 7];

/// Accesses to files, by their bits in Landlock.
const EXECUTE: u64 = 1;
const WRITE_FILE: u64 = 1 << 1;
const READ_FILE: u64 = 1 << 2;
const READ_FOLDER: u64 = 1 << 3;
const MAKE_CHARACTER_DEVICE: u64 = 1 << 6;
const MAKE_BLOCK_DEVICE: u64 = 1 << 11;
const MOVE_ELSEWHERE: u64 = 1 << 13;
const TRUNCATE: u64 = 1 << 14;
/// Control of a device that is opened.
const CONTROL_DEVICE: u64 = 1 << 15;
/// The first version of Landlock that can forbid it.
const FORBIDS_CONTROL: i64 = 5;
/// All accesses of Landlock's third version, the first that can forbid truncating files.
const ALL: u64 = (1 << 15) - 1;
const READ: u64 = EXECUTE | READ_FILE | READ_FOLDER;
const OF_FILES: u64 = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | CONTROL_DEVICE;
const MAKE_DEVICES: u64 = MAKE_CHARACTER_DEVICE | MAKE_BLOCK_DEVICE;
/// Signals, and abstract Unix sockets.
const SCOPES: u64 = 0b11;

/// Confines this process and all that it starts, for good. Returns what it has of its own.
pub(super) fn confine(confinement: &Confinement, filter: &str) -> Result<OwnMounts, String> {
    let filter = instructions(filter).filter(|filter| !filter.is_empty()).ok_or("--filter takes hexadecimal digits")?;
    if confinement.by_host && (confinement.bare || confinement.join.is_empty()) {
        return Err("a network by host needs --join, and namespaces".to_owned());
    }
    if confinement.own_sockets && confinement.handover.is_none() {
        return Err("sockets of its own need --hand-over".to_owned());
    }
    // In the network in which the daemon is.
    let handover = confinement.handover.as_deref().map(connect_to_daemon).transpose()?;
    let outside = user_namespace();
    network::enter(&confinement.join)?;
    // Without namespaces there is no private folder either: nothing is written at all.
    let own = if confinement.bare { OwnMounts::default() } else { mounts::arrange(confinement)? };
    let namespaces = handover.as_ref().map(|_| program_namespaces(&outside)).transpose()?;
    if confinement.floor {
        system::keep_three_descriptors().map_err(|error| format!("can't close descriptors: {error}"))?;
    }
    // There is no folder that refuses root, unless it loses the right to read every folder.
    drop_capabilities(own.covers_folders && system::user_and_group().0 == 0);
    let restricted = match (confinement.guard, confinement.floor) {
        (true, _) => restrict_mounts_and_processes(),
        (false, true) => restrict_to_floor(confinement, &own),
        (false, false) => restrict_files(confinement, &own),
    };
    restricted.map_err(|error| format!("Landlock: {error}"))?;
    let filtered = system::filter_calls(&filter, handover.is_some()).map_err(|error| format!("seccomp: {error}"))?;
    if let Some((daemon, mut sent)) = handover.zip(namespaces) {
        let words = |error| format!("can't hand over to the daemon: {error}");
        sent.extend(filtered.map(|calls| (b'c', calls)));
        sent.push((b'l', system::file_in_memory(&renew::list(&own.covers)).map_err(words)?));
        let (letters, descriptors): (Vec<u8>, Vec<OwnedFd>) = sent.into_iter().unzip();
        system::send_descriptors(daemon.as_raw_fd(), &letters, &descriptors).map_err(words)?;
        // The daemon looks at this process, and follows it, before it becomes the program.
        let _ = io::Read::read_exact(&mut &daemon, &mut [0]);
    }
    Ok(own)
}

fn user_namespace() -> Option<PathBuf> {
    std::fs::read_link("/proc/self/ns/user").ok()
}

/// The namespaces in which the program's files are covered, each with its letter: `m` that of its mounts, `u` the user
/// namespace that owns it, if it is not the daemon's.
fn program_namespaces(outside: &Option<PathBuf>) -> Result<Vec<(u8, OwnedFd)>, String> {
    let own = |letter: u8, kind: &str| match File::open(Path::new("/proc/self/ns").join(kind)) {
        Ok(namespace) => Ok((letter, OwnedFd::from(namespace))),
        Err(error) => Err(format!("can't open its own namespace: {error}")),
    };
    let user = (user_namespace() != *outside).then(|| own(b'u', "user"));
    user.into_iter().chain([own(b'm', "mnt")]).collect()
}

/// A connection to the daemon, by a name that only it and this process know.
fn connect_to_daemon(name: &str) -> Result<UnixStream, String> {
    let connect = || UnixStream::connect_addr(&SocketAddr::from_abstract_name(name)?);
    connect().map_err(|error: io::Error| format!("can't connect to the daemon: {error}"))
}

/// The instructions of a filter: 16 digits for each.
fn instructions(filter: &str) -> Option<Vec<Instruction>> {
    let instruction = |digits: &[u8]| {
        let digits = std::str::from_utf8(digits).ok().filter(|digits| digits.len() == 16)?;
        let bits = u64::from_str_radix(digits, 16).ok()?;
        let [code, code_low, jump_true, jump_false, value @ ..] = bits.to_be_bytes();
        Some(Instruction {
            code: u16::from_be_bytes([code, code_low]),
            jump_true,
            jump_false,
            value: u32::from_be_bytes(value),
        })
    };
    filter.as_bytes().chunks(16).map(instruction).collect()
}

/// Drops all capabilities of root, real or in a user namespace, except those over files; with `no_override` also that over
/// the modes of files.
fn drop_capabilities(no_override: bool) {
    const DAC_OVERRIDE: u8 = 1;
    let is_kept = |number: &u8| KEPT_CAPABILITIES.contains(number) && !(no_override && *number == DAC_OVERRIDE);
    for number in (0..64).filter(|number| !is_kept(number)) {
        // Fails for the first capability that this kernel does not have, and for processes that have none to drop.
        if system::drop_capability(number.into()).is_err() {
            break;
        }
    }
}

/// A process with any Landlock rule for files cannot change mounts, nor trace processes without the rule, which see
/// other files. Signals stay allowed: they neither write nor read.
fn restrict_mounts_and_processes() -> io::Result<()> {
    let handled = Handled { files: MOVE_ELSEWHERE | MAKE_DEVICES, network: 0, scopes: 0 };
    restrict(&handled, &[(Path::new("/"), MOVE_ELSEWHERE)], &[])
}

/// The version of Landlock that is used.
fn version(confinement: &Confinement) -> i64 {
    let of_kernel = system::landlock_version().unwrap_or(0);
    confinement.landlock.map_or(of_kernel, |most| of_kernel.min(most.into()))
}

/// What a confinement isolates of processes, by the version.
fn scopes(confinement: &Confinement, version: i64) -> io::Result<u64> {
    /// The first version that can.
    const ISOLATES_SIGNALS: i64 = 6;
    if version >= ISOLATES_SIGNALS {
        return Ok(SCOPES);
    }
    match confinement.needs_scope {
        true => Err(io::Error::other("signals to processes outside cannot be refused before Linux 6.12")),
        false => Ok(0),
    }
}

fn restrict_files(confinement: &Confinement, own: &OwnMounts) -> io::Result<()> {
    let root = Path::new("/");
    let places: Vec<PathBuf> = std::fs::read_dir(root)?.flatten().map(|entry| entry.path()).collect();
    let shown = places.iter().filter(|path| *path != Path::new(DEVICES_FOLDER)).map(|path| (path.as_path(), READ));
    let shown: Vec<(&Path, u64)> = shown.chain([(root, READ_FOLDER)]).collect();
    restrict_to(confinement, own, ALL, &shown)
}

/// Nothing is read but what a floor shows. Before the version that can forbid truncating files, mounts forbid it.
fn restrict_to_floor(confinement: &Confinement, own: &OwnMounts) -> io::Result<()> {
    let version = version(confinement);
    let accesses = match version {
        ..1 => return Err(io::Error::other("this kernel has no Landlock, or a filter of system calls denies it")),
        1 => MOVE_ELSEWHERE - 1,
        2 => TRUNCATE - 1,
        3.. => ALL,
    };
    if confinement.bare && accesses != ALL {
        return Err(io::Error::other("without namespaces, files can be truncated before Linux 6.2"));
    }
    if confinement.bare && !confinement.writable.is_empty() {
        return Err(io::Error::other("without namespaces, no part of a writable folder can be protected"));
    }
    let seen = confinement.seen.iter().map(|path| (path.as_path(), READ));
    let listed = confinement.listed.iter().map(PathBuf::as_path).chain([Path::new(DEVICES_FOLDER)]);
    let shown: Vec<(&Path, u64)> = seen.chain(listed.map(|path| (path, READ_FOLDER))).collect();
    restrict_to(confinement, own, accesses, &shown)
}

/// Forbids these accesses except to what is shown, the writable places, and devices that store nothing.
fn restrict_to(confinement: &Confinement, own: &OwnMounts, files: u64, shown: &[(&Path, u64)]) -> io::Result<()> {
    let version = version(confinement);
    let control = if version >= FORBIDS_CONTROL { CONTROL_DEVICE } else { 0 };
    let handled = Handled { files: files | control, network: 0, scopes: scopes(confinement, version)? };
    // A program in a terminal opens the terminal again by its name.
    let terminal = mounts::terminal();
    let devices = DEVICES.iter().map(Path::new).chain(terminal.as_deref());
    let of_terminals = [TERMINALS, TERMINAL_MAKER].map(Path::new).into_iter().filter(|_| own.terminals);
    let devices = devices.chain(of_terminals);
    let outputs = OUTPUTS.iter().filter(|(_, info)| is_file_to_write(info)).map(|(path, _)| Path::new(path));
    let devices = devices.chain(outputs);
    let writable = confinement.writable.iter().chain(&own.layered).map(PathBuf::as_path).chain(own.temp.as_deref());
    let mut allowed = shown.to_vec();
    allowed.extend(devices.map(|path| (path, READ_FILE | WRITE_FILE | TRUNCATE | CONTROL_DEVICE)));
    // Device nodes would bypass every rule.
    allowed.extend(writable.map(|path| (path, ALL & !MAKE_DEVICES)));
    restrict(&handled, &allowed, &confinement.unfollowed)
}

/// Whether a descriptor may be written. What is no file or device needs no permission of its own.
fn is_file_to_write(info: &str) -> bool {
    let flags = |text: String| {
        let line = text.lines().find_map(|line| line.strip_prefix("flags:"))?;
        u32::from_str_radix(line.trim(), 8).ok()
    };
    std::fs::read_to_string(info).ok().and_then(flags).is_some_and(|flags| flags & 0o3 != 0)
}

/// `EBADFD`.
const IN_NO_HIERARCHY: i32 = 77;

/// Forbids what is handled, except these accesses below these places. Places that do not exist are skipped, and so are those to
/// which a link in the `unfollowed` ones leads.
fn restrict(handled: &Handled, allowed: &[(&Path, u64)], unfollowed: &[PathBuf]) -> io::Result<()> {
    let ruleset = system::landlock_ruleset(handled)?;
    for (path, accesses) in allowed {
        // Another program may have put a link in the place of what may be changed.
        let may_have_links =
            accesses & MOVE_ELSEWHERE == 0 && !unfollowed.iter().any(|folder| path.starts_with(folder));
        let open = if may_have_links { system::open_place } else { system::open_without_links };
        let Ok(place) = open(path) else { continue };
        let allow = |accesses| system::landlock_allow(&ruleset, &place, accesses & handled.files);
        match allow(*accesses) {
            // A pipe or a file in memory, as the program's output may be: it needs no permission.
            Err(error) if error.raw_os_error() == Some(IN_NO_HIERARCHY) => {}
            // Not all of them are for files.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => allow(accesses & OF_FILES)?,
            allowed => allowed?,
        }
    }
    system::forbid_privileges()?;
    system::landlock_restrict(&ruleset)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instruction_has_sixteen_digits() {
        let read = instructions("0015020300000102ffff00ff80000000").unwrap();
        let fields = |of: &Instruction| (of.code, of.jump_true, of.jump_false, of.value);
        assert_eq!(read.iter().map(fields).collect::<Vec<_>>(), [(0x15, 2, 3, 0x102), (0xffff, 0, 0xff, 0x8000_0000)]);
        assert!(instructions("0015020300000102f").is_none() && instructions("001502030000010x").is_none());
    }
}
