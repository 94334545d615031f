//! The restrictions that the kernel enforces. A mount namespace makes everything read-only except what may be written,
//! and hides secrets. Landlock again limits what may be written, forbids changes of mounts, and isolates the program
//! from processes outside. Seccomp denies sockets and calls that affect other processes.
//!
//! Each of them is needed. Mounts do not cover devices and processes. Landlock covers neither metadata nor exceptions
//! inside folders. Neither of the two covers connections to Unix sockets.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use super::mounts::{self, OwnMounts, TERMINAL_MAKER, TERMINALS};
use super::network;
use super::order::Confinement;
use super::system::{self, Handled, Instruction};

/// Below it lie devices. Through one of them, a program of root would read whole disks, or control the machine.
const DEVICES_FOLDER: &str = "/dev";
/// Devices that store nothing and control nothing.
const DEVICES: [&str; 6] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"];

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

/// Confines this process and all that it starts, for good. Returns the folder for temporary files.
pub(super) fn confine(confinement: &Confinement, filters: &[String]) -> Result<Option<PathBuf>, String> {
    let filters: Option<Vec<Vec<Instruction>>> = filters.iter().map(|filter| instructions(filter)).collect();
    let filters = filters.filter(|filters| !filters.is_empty()).ok_or("--filter takes hexadecimal digits")?;
    if confinement.by_host && (confinement.bare || confinement.join.is_empty()) {
        return Err("a network by host needs --join, and namespaces".to_owned());
    }
    network::enter(&confinement.join)?;
    // Without namespaces there is no private folder either: nothing is written at all.
    let own = if confinement.bare { OwnMounts::default() } else { mounts::arrange(confinement)? };
    let no_override = confinement.floor && mounts::covers::need_no_override(&confinement.masked);
    drop_capabilities(no_override);
    let restricted = match (confinement.guard, confinement.floor) {
        (true, _) => restrict_mounts_and_processes(),
        (false, true) => restrict_to_floor(confinement, &own),
        (false, false) => restrict_files(confinement, &own),
    };
    restricted.map_err(|error| format!("Landlock: {error}"))?;
    for filter in filters {
        system::filter_calls(&filter).map_err(|error| format!("seccomp: {error}"))?;
    }
    Ok(own.temp)
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
    restrict(&handled, &[(Path::new("/"), MOVE_ELSEWHERE)])
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
    let writable = confinement.writable.iter().map(PathBuf::as_path).chain(own.temp.as_deref());
    let mut allowed = shown.to_vec();
    allowed.extend(devices.map(|path| (path, READ_FILE | WRITE_FILE | TRUNCATE | CONTROL_DEVICE)));
    // Device nodes would bypass every rule.
    allowed.extend(writable.map(|path| (path, ALL & !MAKE_DEVICES)));
    restrict(&handled, &allowed)
}

/// Forbids what is handled, except these accesses below these places. Places that do not exist are skipped.
fn restrict(handled: &Handled, allowed: &[(&Path, u64)]) -> io::Result<()> {
    let ruleset = system::landlock_ruleset(handled)?;
    for (path, accesses) in allowed {
        let Ok(place) = system::open_place(path).map(File::from) else { continue };
        let accesses = if place.metadata()?.is_dir() { *accesses } else { accesses & OF_FILES } & handled.files;
        system::landlock_allow(&ruleset, &OwnedFd::from(place), accesses)?;
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
