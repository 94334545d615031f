//! A copy of the launcher that root has installed, with a profile of AppArmor.
//!
//! Ubuntu lets only programs with a profile make user namespaces, since 23.10
//! (<https://discourse.ubuntu.com/t/spec-unprivileged-user-namespace-restrictions-via-apparmor-in-ubuntu-23-10/37626>). A profile is
//! attached to a path: neither a program in memory has one, nor would it be safe to give rights to a file that its user
//! can change. So `toold allow-namespaces`, run by root, puts the launcher where only root writes. The daemon runs that copy
//! instead of the one in memory while both are the same.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;

use super::image;

const FOLDER: &str = "/var/lib/toold";
const LAUNCHER: &str = "/var/lib/toold/launcher";
const PROFILE: &str = "/etc/apparmor.d/toold-launcher";

/// `unconfined` with one right more than programs without a profile have. The programs that the launcher becomes keep it, as
/// they would have it on a system without the restriction; in confined ones, a filter denies all mounts.
const PROFILE_TEXT: &str = "abi <abi/4.0>,
include <tunables/global>

profile toold-launcher /var/lib/toold/launcher flags=(unconfined) {
  userns,
  include if exists <local/toold-launcher>
}
";

/// What a person can do where user namespaces are refused, as the end of a sentence; `None` where AppArmor does not refuse
/// them or the launcher has its profile.
pub(crate) fn advice() -> Option<&'static str> {
    let refuses =
        fs::read("/proc/sys/kernel/apparmor_restrict_unprivileged_userns").is_ok_and(|text| text.starts_with(b"1"));
    (refuses && !Path::new(PROFILE).exists()).then_some(
        "; AppArmor refuses user namespaces here: `sudo toold allow-namespaces` allows them to toold's launcher, then \
         `toolctl restart`",
    )
}

/// The installed copy of this program, if there is one that only root can change.
pub(super) fn open(image: &[u8]) -> Option<OwnedFd> {
    open_same(Path::new(LAUNCHER), image)
}

/// What is opened stays what was compared: nobody but root can write to it.
fn open_same(path: &Path, image: &[u8]) -> Option<OwnedFd> {
    let mut file = File::open(path).ok()?;
    let metadata = file.metadata().ok()?;
    let is_ours = metadata.is_file() && metadata.uid() == 0 && metadata.mode() & 0o022 == 0;
    if !is_ours || metadata.len() != image.len() as u64 {
        return None;
    }
    let mut content = vec![0; image.len()];
    file.read_exact(&mut content).ok()?;
    (content == image).then(|| file.into())
}

/// Installs the launcher with its profile and loads it; `toold allow-namespaces` as root. Running daemons use it after a
/// restart.
///
/// # Errors
/// Why it could not be installed, in words for people. What was written by then stays.
pub fn install() -> Result<(), String> {
    if !Path::new("/etc/apparmor.d/abi/4.0").exists() {
        return Err("AppArmor 4 is not installed on this system, so it restricts no user namespaces".into());
    }
    let written = |path: &'static str| move |error: io::Error| format!("can't write {path}: {error}; run it as root");
    fs::create_dir_all(FOLDER).map_err(written(FOLDER))?;
    write_program(Path::new(LAUNCHER)).map_err(written(LAUNCHER))?;
    fs::write(PROFILE, PROFILE_TEXT).map_err(written(PROFILE))?;
    apparmor_parser("--replace")
}

/// Replaces the file in one step: a daemon may be running it.
fn write_program(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let new = path.with_extension("new");
    fs::write(&new, image::IMAGE)?;
    fs::set_permissions(&new, fs::Permissions::from_mode(0o755))?;
    fs::rename(new, path)
}

/// Takes back what [`install`] did.
///
/// # Errors
/// Why it could not be removed, in words for people.
pub fn remove() -> Result<(), String> {
    if Path::new(PROFILE).exists() {
        apparmor_parser("--remove")?;
    }
    for path in [PROFILE, LAUNCHER] {
        match fs::remove_file(path) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(format!("can't remove {path}: {error}; run it as root"));
            }
            _ => {}
        }
    }
    // Only if it is empty.
    let _ = fs::remove_dir(FOLDER);
    Ok(())
}

fn apparmor_parser(action: &str) -> Result<(), String> {
    let output = Command::new("apparmor_parser")
        .args([action, PROFILE])
        .output()
        .map_err(|error| format!("can't run apparmor_parser: {error}"))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(format!("apparmor_parser {action}: {}", String::from_utf8_lossy(&output.stderr).trim())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_equal_file_that_root_alone_can_change_is_run() {
        let program = fs::read("/bin/true").unwrap();
        assert!(open_same(Path::new("/bin/true"), &program).is_some());
        assert!(open_same(Path::new("/bin/true"), &program[1..]).is_none());
        let mut other = program.clone();
        other[0] ^= 1;
        assert!(open_same(Path::new("/bin/true"), &other).is_none());
        assert!(open_same(Path::new("/no/such"), &program).is_none());
        let folder = tempfile::tempdir().unwrap();
        let copy = folder.path().join("copy");
        fs::write(&copy, &program).unwrap();
        fs::set_permissions(&copy, std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
        assert!(open_same(&copy, &program).is_none(), "others may change it");
    }
}
