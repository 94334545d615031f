//! The restrictions that the kernel enforces. A mount namespace makes everything read-only but what may be written, and hides secrets;
//! Landlock says again what may be written, forbids to change the mounts, and keeps the program away from the processes
//! outside; seccomp takes away sockets and what reaches others.
//!
//! Each of them is needed: a mount knows no devices and processes, Landlock no metadata and no holes in folders, and
//! neither of them connections to Unix sockets.

mod attributes;
mod calls;
mod mounts;

use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetCreatedAttr, Scope, path_beneath_rules,
};
use rustix::thread::{CapabilitySet, remove_capability_from_bounding_set};

use super::Confinement;

/// Devices that keep nothing.
const DEVICES: [&str; 6] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"];

/// The first that can forbid to cut files (`truncate`).
const NEEDED: ABI = ABI::V3;

/// Confines this process and all that it will start, for good. Gives the folder for temporary files.
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

/// A process with any rule for files neither changes mounts nor traces processes without it, whose view of the files
/// would be another one. Signals are left: they neither write nor read.
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
    // Nodes of devices would lead around every rule.
    let write = read | (AccessFs::from_write(NEEDED) & !(AccessFs::MakeBlock | AccessFs::MakeChar));
    let device = AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::Truncate;
    // A program at a terminal finds it again by its name.
    let terminal = std::fs::read_link("/proc/self/fd/0").ok().filter(|path| path.starts_with("/dev/pts"));
    let devices = DEVICES.iter().map(Path::new).chain(terminal.as_deref());
    let writable = confinement.writable.iter().map(PathBuf::as_path).chain(temp);
    let scope = if confinement.needs_scope { CompatLevel::HardRequirement } else { CompatLevel::BestEffort };
    // Paths that are not there are passed over.
    Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(NEEDED))?
        // Where the kernel has it: no signals to, and no abstract sockets of, those outside.
        .set_compatibility(scope)
        .scope(Scope::Signal | Scope::AbstractUnixSocket)?
        .create()?
        .add_rules(path_beneath_rules(["/"], read))?
        .add_rules(path_beneath_rules(devices, device))?
        .add_rules(path_beneath_rules(writable, write))?
        .restrict_self()?;
    Ok(())
}
