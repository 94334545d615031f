//! Extended attributes that users give to files and folders: those whose names begin with `user.` (xattr(7)).

use std::io;
use std::os::fd::AsFd;

use rustix::fs::{Mode, XattrFlags};
use serde::{Deserialize, Serialize};

/// Bytes of one value. File systems have no more room.
const MAX: usize = 64 * 1024;
const PREFIX: &[u8] = b"user.";

/// Names and values, sorted by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserAttributes(Vec<(Vec<u8>, Vec<u8>)>);

impl UserAttributes {
    /// The attributes of an open file or folder; none where the file system has none.
    pub fn of(file: impl AsFd) -> Self {
        let file = file.as_fd();
        // Most files have none, or none but the system's.
        let length = rustix::fs::flistxattr_query(file).unwrap_or(0);
        if length == 0 {
            return Self::default();
        }
        let mut names = vec![0u8; length];
        let length = rustix::fs::flistxattr(file, names.as_mut_slice()).unwrap_or(0);
        let names = names[..length].split(|byte| *byte == 0).filter(|name| name.starts_with(PREFIX));
        let with_value = |name: &[u8]| {
            let mut value = vec![0u8; MAX];
            let length = rustix::fs::fgetxattr(file, name, value.as_mut_slice()).ok()?;
            Some((name.to_vec(), value[..length].to_vec()))
        };
        let mut all: Vec<_> = names.filter_map(with_value).collect();
        all.sort();
        Self(all)
    }

    /// Gives the file these attributes and takes all others of users from it. It may be read-only.
    ///
    /// # Errors
    /// The system refuses that, or the file system has none.
    pub fn give(&self, file: impl AsFd) -> io::Result<()> {
        let (file, now) = (file.as_fd(), Self::of(&file));
        if now == *self {
            return Ok(());
        }
        let mode = Mode::from_raw_mode(rustix::fs::fstat(file)?.st_mode);
        if !mode.contains(Mode::WUSR) {
            rustix::fs::fchmod(file, mode | Mode::WUSR)?;
        }
        let given = self.set(file, &now);
        if !mode.contains(Mode::WUSR) {
            rustix::fs::fchmod(file, mode)?;
        }
        given
    }

    fn set(&self, file: impl AsFd, now: &Self) -> io::Result<()> {
        for (name, _) in now.0.iter().filter(|(name, _)| self.0.iter().all(|(other, _)| other != name)) {
            rustix::fs::fremovexattr(&file, name.as_slice())?;
        }
        for (name, value) in self.0.iter().filter(|attribute| !now.0.contains(attribute)) {
            rustix::fs::fsetxattr(&file, name.as_slice(), value, XattrFlags::empty())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{File, Permissions};
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    use super::*;

    #[test]
    fn attributes_are_given_as_they_were() {
        let folder = tempfile::tempdir().unwrap();
        let make = |name: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, name).unwrap();
            File::open(path).unwrap()
        };
        let (one, two) = (make("one"), make("two"));
        assert_eq!(UserAttributes::of(&one), UserAttributes::default());
        if rustix::fs::fsetxattr(&one, "user.a", b"1", XattrFlags::empty()).is_err() {
            return eprintln!("skipped: the file system has no attributes of users");
        }
        rustix::fs::fsetxattr(&two, "user.a", b"2", XattrFlags::empty()).unwrap();
        rustix::fs::fsetxattr(&two, "user.b", b"", XattrFlags::empty()).unwrap();
        two.set_permissions(Permissions::from_mode(0o444)).unwrap();
        let known = UserAttributes::of(&one);
        known.give(&two).unwrap();
        assert_eq!((UserAttributes::of(&two), two.metadata().unwrap().mode() & 0o777), (known.clone(), 0o444));
        let text = serde_json::to_string(&known).unwrap();
        assert_eq!(serde_json::from_str::<UserAttributes>(&text).unwrap(), known);
        UserAttributes::default().give(&two).unwrap();
        assert_eq!(UserAttributes::of(&two), UserAttributes::default());
    }
}
