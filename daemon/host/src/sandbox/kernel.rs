//! The restrictions that the kernel enforces. A mount namespace makes everything read-only except what may be written,
//! and hides secrets. Landlock again limits what may be written, forbids changes of mounts, and isolates the program
//! from processes outside. Seccomp denies sockets and calls that affect other processes.
//!
//! Each of them is needed. Mounts do not cover devices and processes. Landlock covers neither metadata nor exceptions
//! inside folders. Neither of the two covers connections to Unix sockets.

mod attributes;
mod calls;
mod mounts;

use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetCreatedAttr, Scope, path_beneath_rules,
};
use rustix::thread::{CapabilitySet, remove_capability_from_bounding_set};

use super::Confinement;

/// Devices that store nothing.
const DEVICES: [&str; 6] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"];

/// The first version that can forbid truncating files.
const NEEDED: ABI = ABI::V3;

/// Confines this process and all that it starts, for good. Returns the folder for temporary files.
pub(super) fn confine(confinement: &Confinement) -> Result<Option<PathBuf>, String> {
    let temp = mounts::arrange(confinement)?;
    drop_capabilities();
    let restricted = match confinement.guard {
        true => restrict_mounts_and_processes(),
        false => restrict_files(confinement, temp.as_deref()),
    };
    restricted.map_err(|error| format!("Landlock: {error}"))?;
    calls::restrict(confinement).map_err(|error| format!("seccomp: {error}"))?;
    Ok(temp)
}

/// Drops all capabilities of root, real or in a user namespace, except those over files.
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
            // Fails for capabilities that this kernel does not have, and for processes that have none to drop.
            let _ = remove_capability_from_bounding_set(capability);
        }
    }
}

/// A process with any Landlock rule for files cannot change mounts, nor trace processes without the rule, which see
/// other files. Signals stay allowed: they neither write nor read.
fn restrict_mounts_and_processes() -> Result<(), landlock::RulesetError> {
    Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::Refer | AccessFs::MakeBlock | AccessFs::MakeChar)?
        .create()?
        .add_rules(path_beneath_rules(["/"], AccessFs::Refer))?
        .restrict_self()?;
    Ok(())
}

fn restrict_files(confinement: &Confinement, temp: Option<&Path>) -> Result<(), landlock::RulesetError> {
    let read = AccessFs::from_read(NEEDED);
    // Device nodes would bypass every rule.
    let write = read | (AccessFs::from_write(NEEDED) & !(AccessFs::MakeBlock | AccessFs::MakeChar));
    let device = AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::Truncate;
    // A program in a terminal opens the terminal again by its name.
    let terminal = std::fs::read_link("/proc/self/fd/0").ok().filter(|path| path.starts_with("/dev/pts"));
    let devices = DEVICES.iter().map(Path::new).chain(terminal.as_deref());
    let writable = confinement.writable.iter().map(PathBuf::as_path).chain(temp);
    let scope = if confinement.needs_scope { CompatLevel::HardRequirement } else { CompatLevel::BestEffort };
    // Paths that do not exist are skipped.
    Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(NEEDED))?
        // If the kernel supports it: no signals to processes outside, and no abstract sockets of theirs.
        .set_compatibility(scope)
        .scope(Scope::Signal | Scope::AbstractUnixSocket)?
        .create()?
        .add_rules(path_beneath_rules(["/"], read))?
        .add_rules(path_beneath_rules(devices, device))?
        .add_rules(path_beneath_rules(writable, write))?
        .restrict_self()?;
    Ok(())
}
