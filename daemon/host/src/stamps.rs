//! Stamps of files, for results that are valid as long as the files are unchanged.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::SystemTime;

use rustix::fs::{FileType, Mode, OFlags};
use toold_engine::dependencies::{FileChecks, FileStamp};
use toold_engine::need::Need;
use toold_proto::tool::Category;

use crate::exclude::Exclusions;
use crate::file_facts::{facts, is_settled};
use crate::file_needs::may_be_folder;
use crate::files::resolve;

/// Larger files are not read again just to learn whether they are unchanged.
const MAX_DIGESTED: u64 = 16 * 1024 * 1024;

/// A stamp of a file that is about to be read. `path` is absolute and as the caller asked for it.
///
/// Take it before reading the first byte, so that a change during the read is detected.
///
/// # Errors
/// When the system refuses metadata of an open file.
pub fn before_reading(path: &Path, file: &File) -> io::Result<FileStamp> {
    let now = SystemTime::now();
    let metadata = file.metadata()?;
    Ok(FileStamp {
        path: path.to_owned(),
        facts: Some(facts(&metadata)),
        settled: is_settled(&metadata, now),
        digest: None,
    })
}

/// Completes the stamp once the whole content is known. Hashes it only if the metadata alone is not sufficient.
pub fn with_content(mut stamp: FileStamp, content: &[u8]) -> FileStamp {
    if !stamp.settled {
        stamp.digest = Some(blake3::hash(content).into());
    }
    stamp
}

/// A stamp of a path's metadata, for a result that depends on nothing else; `None` if the system refuses it.
pub fn of_facts(path: &Path) -> Option<FileStamp> {
    let facts = match std::fs::metadata(path) {
        Ok(metadata) => Some(facts(&metadata)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(_) => return None,
    };
    Some(FileStamp { path: path.to_owned(), facts, settled: true, digest: None })
}

/// Checks stamps against this machine's files.
pub struct Disk;

impl FileChecks for Disk {
    fn is_current(&self, stamp: &FileStamp) -> bool {
        let now = match std::fs::metadata(&stamp.path) {
            Ok(metadata) => Some(facts(&metadata)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(_) => return false,
        };
        now == stamp.facts && (stamp.settled || stamp.digest.is_some_and(|digest| has_content(stamp, digest)))
    }

    fn stands(&self, need: &Need) -> bool {
        match need.category() {
            Category::FileRead | Category::FileWrite => {
                let path = Path::new(&need.target);
                resolve(path, Path::new("/")).is_ok_and(|resolved| resolved == path)
                    && Exclusions::default().reason(path, may_be_folder(path)) == need.forbidden
            }
            Category::Shell | Category::Network | Category::Agent | Category::Plugin | Category::Mcp => true,
        }
    }
}

/// Whether the file of a stamp has this content.
fn has_content(stamp: &FileStamp, digest: [u8; 32]) -> bool {
    let Some(known) = stamp.facts.filter(|facts| facts.size <= MAX_DIGESTED) else { return false };
    // Must not wait if someone has replaced the file with a pipe.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let Ok(fd) = rustix::fs::open(&stamp.path, flags, Mode::empty()) else { return false };
    let file = File::from(fd);
    let same = file.metadata().is_ok_and(|metadata| {
        facts(&metadata) == known && FileType::from_raw_mode(metadata.mode()) == FileType::RegularFile
    });
    let mut content = Vec::new();
    same && file.take(MAX_DIGESTED + 1).read_to_end(&mut content).is_ok() && blake3::hash(&content) == digest
}

#[cfg(test)]
mod tests {
    use std::fs::{FileTimes, write};

    use super::*;

    struct StampedFile {
        _folder: tempfile::TempDir,
        path: std::path::PathBuf,
    }

    fn place(content: &str) -> StampedFile {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().canonicalize().unwrap().join("file");
        write(&path, content).unwrap();
        StampedFile { _folder: folder, path }
    }

    fn read(path: &Path) -> FileStamp {
        let file = File::open(path).unwrap();
        let stamp = before_reading(path, &file).unwrap();
        with_content(stamp, &std::fs::read(path).unwrap())
    }

    #[test]
    fn a_young_file_is_known_by_its_content() {
        let place = place("one");
        let stamp = read(&place.path);
        assert!(!stamp.settled && Disk.is_current(&stamp));
        let without = FileStamp { digest: None, ..stamp };
        assert!(!Disk.is_current(&without));
    }

    #[test]
    fn rewrite_with_equal_metadata_is_detected_by_content() {
        let place = place("one");
        let old = read(&place.path);
        write(&place.path, "two").unwrap();
        // As if both writes happened within one tick of the clock.
        let now = before_reading(&place.path, &File::open(&place.path).unwrap()).unwrap();
        let stamp = FileStamp { facts: now.facts, ..old };
        assert!(!Disk.is_current(&stamp));
    }

    #[test]
    fn a_rewrite_with_the_old_time_is_seen() {
        let place = place("one");
        let stamp = FileStamp { settled: true, ..read(&place.path) };
        let before = std::fs::metadata(&place.path).unwrap().modified().unwrap();
        write(&place.path, "two").unwrap();
        File::options()
            .write(true)
            .open(&place.path)
            .unwrap()
            .set_times(FileTimes::new().set_modified(before))
            .unwrap();
        // The change time cannot be set back. Where its clock is too coarse, the content decides.
        let same = before_reading(&place.path, &File::open(&place.path).unwrap()).unwrap().facts == stamp.facts;
        assert!(!Disk.is_current(&FileStamp { settled: !same, ..stamp }));
    }

    #[test]
    fn missing_path_must_still_be_missing() {
        let place = place("one");
        let missing = place.path.with_file_name("missing");
        let stamp = of_facts(&missing).unwrap();
        assert!(Disk.is_current(&stamp));
        write(&missing, "").unwrap();
        assert!(!Disk.is_current(&stamp));
    }

    #[test]
    fn a_link_that_leads_elsewhere_is_another_file() {
        let place = place("one");
        let (other, link) = (place.path.with_file_name("other"), place.path.with_file_name("link"));
        write(&other, "one").unwrap();
        std::os::unix::fs::symlink(&place.path, &link).unwrap();
        let stamp = read(&link);
        assert!(Disk.is_current(&stamp));
        std::fs::remove_file(&link).unwrap();
        std::os::unix::fs::symlink(&other, &link).unwrap();
        assert!(!Disk.is_current(&stamp));
    }

    #[test]
    fn a_need_stands_until_its_path_leads_elsewhere_or_is_excluded() {
        let place = place("one");
        let need = crate::file_needs::read_need(&place.path, &mut Exclusions::default());
        assert!(Disk.stands(&need));
        std::fs::create_dir(place.path.with_file_name(".git")).unwrap();
        write(place.path.with_file_name(".aiexclude"), "file\n").unwrap();
        assert!(!Disk.stands(&need));
    }
}
