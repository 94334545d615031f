//! Which file systems report all changes, and which ones may not answer.

pub mod answering;

use std::fs::File;
use std::io;
use std::path::Path;

/// The type of a file system on which other systems may change files, so that it cannot report all changes; `None` for
/// all others, and where the system does not tell the type. A path that does not exist counts as the folder in which it
/// would be created. Blocks, on a network file system for as long as that takes.
pub fn silent(path: &Path) -> Option<&'static str> {
    let there = path.ancestors().find(|path| path.exists())?;
    kind(there)
}

/// The bytes that are free for this user on the file system of a path; `None` if the system does not tell. Blocks.
pub fn free_bytes(path: &Path) -> Option<u64> {
    let there = path.ancestors().find(|path| path.exists())?;
    rustix::fs::statvfs(there).ok().map(|facts| facts.f_bavail.saturating_mul(facts.f_frsize))
}

/// Makes the content of `to` that of `from`, with blocks that both share until one of them is changed. Blocks.
///
/// # Errors
/// The file system cannot share blocks, or the files are on different ones. Then `to` is as before.
#[cfg(target_os = "linux")]
pub fn share_blocks(from: &File, to: &File) -> io::Result<()> {
    Ok(rustix::fs::ioctl_ficlone(to, from)?)
}

#[cfg(not(target_os = "linux"))]
pub fn share_blocks(_: &File, _: &File) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(target_os = "linux")]
fn kind(path: &Path) -> Option<&'static str> {
    // The numbers are 32 bits wide, whatever type the platform uses for them.
    rustix::fs::statfs(path).ok().and_then(|facts| silent_kind(facts.f_type as u32))
}

#[cfg(not(target_os = "linux"))]
fn kind(_: &Path) -> Option<&'static str> {
    None
}

/// By the magic numbers of statfs(2). A FUSE file system need not be a network, and virtiofs is FUSE, too.
#[cfg(target_os = "linux")]
fn silent_kind(magic: u32) -> Option<&'static str> {
    Some(match magic {
        0x6969 => "nfs",
        0x517B => "smb",
        0xFF53_4D42 => "cifs",
        0xFE53_4D42 => "smb2",
        0x6573_5546 => "fuse",
        0x0102_1997 => "9p",
        0x7375_7245 => "coda",
        0x5346_414F | 0x6B41_4653 => "afs",
        0x00C3_6400 => "ceph",
        0x0BD0_0BD0 => "lustre",
        0x4750_4653 => "gpfs",
        0x7461_636F => "ocfs2",
        0x0116_1970 => "gfs2",
        0x786F_4256 => "vboxsf",
        0xBACB_ACBC => "vmhgfs",
        _ => return None,
    })
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn network_file_systems_do_not_report_all_changes() {
        for (magic, kind) in [(0x6969, "nfs"), (0xFF53_4D42, "cifs"), (0x6573_5546, "fuse"), (0x0102_1997, "9p")] {
            assert_eq!(silent_kind(magic), Some(kind));
        }
        // ext4, btrfs, xfs, tmpfs, overlayfs, zfs
        for magic in [0xEF53, 0x9123_683E, 0x5846_5342, 0x0102_1994, 0x794C_7630, 0x2FC1_2FC1] {
            assert_eq!(silent_kind(magic), None);
        }
    }

    #[test]
    fn a_path_that_is_not_there_counts_as_the_folder_above_it() {
        assert_eq!(silent(Path::new("/proc/there/is/no/such/thing")), None);
    }
}
