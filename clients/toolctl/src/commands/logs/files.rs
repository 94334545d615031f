//! The files of a log: the current one, and rotated ones with a number after their name, where 1 is the newest.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::Context;

/// Reads all files of a log, and continues where it was, even when the file was rotated meanwhile.
pub(super) struct LogFiles {
    path: PathBuf,
    /// The files still to be read, the oldest first. The last is the current one.
    open: Vec<FollowedLog>,
    found_any: bool,
}

struct FollowedLog {
    identity: (u64, u64),
    reader: BufReader<File>,
    /// The beginning of an incomplete line.
    partial: Vec<u8>,
}

impl LogFiles {
    /// Opens all files.
    ///
    /// # Errors
    /// One of them cannot be opened.
    pub(super) fn open(path: &Path) -> anyhow::Result<Self> {
        let mut files = Self { path: path.to_owned(), open: Vec::new(), found_any: false };
        files.open_newer(None)?;
        Ok(files)
    }

    pub(super) fn found_any(&self) -> bool {
        self.found_any
    }

    /// Passes on all complete lines since the last read.
    pub(super) fn read(&mut self, mut take: impl FnMut(&str) -> anyhow::Result<()>) -> anyhow::Result<()> {
        let known = self.open.last().map(|last| last.identity);
        match identity(&self.path)? {
            // Deleted, or just being rotated: another one will appear.
            None => {}
            Some(newest) if Some(newest) == known => {}
            Some(_) => self.open_newer(known)?,
        }
        let last = self.open.len().saturating_sub(1);
        for (n, open) in self.open.iter_mut().enumerate() {
            open.read(&self.path, &mut take)?;
            if n < last && !open.partial.is_empty() {
                // This file is not written to any more.
                let rest = std::mem::take(&mut open.partial);
                take(&String::from_utf8_lossy(&rest))?;
            }
        }
        self.open.drain(..last);
        Ok(())
    }

    /// Opens the files that are newer than the known one, or all when none is known. When the known one is gone, it was
    /// deleted and the older ones were read before, so this opens only the newest.
    fn open_newer(&mut self, known: Option<(u64, u64)>) -> anyhow::Result<()> {
        let mut newer = Vec::new();
        let mut found = known.is_none();
        for number in 0.. {
            let path = match number {
                0 => self.path.clone(),
                _ => PathBuf::from(format!("{}.{number}", self.path.display())),
            };
            let file = match File::open(&path) {
                Ok(file) => file,
                // During a rotation there is no current file.
                Err(error) if error.kind() == io::ErrorKind::NotFound && number == 0 => continue,
                Err(error) if error.kind() == io::ErrorKind::NotFound => break,
                Err(error) => return Err(error).with_context(|| format!("can't open {}", path.display())),
            };
            let metadata = file.metadata()?;
            let identity = (metadata.dev(), metadata.ino());
            if Some(identity) == known {
                found = true;
                break;
            }
            // A file that is being rotated may appear under both names.
            if newer.iter().all(|open: &FollowedLog| open.identity != identity) {
                newer.push(FollowedLog { identity, reader: BufReader::new(file), partial: Vec::new() });
            }
        }
        if !found {
            newer.truncate(1);
        }
        self.found_any |= !newer.is_empty();
        self.open.extend(newer.into_iter().rev());
        Ok(())
    }
}

impl FollowedLog {
    /// Errors of `take` are passed on as they are.
    fn read(&mut self, path: &Path, take: &mut impl FnMut(&str) -> anyhow::Result<()>) -> anyhow::Result<()> {
        loop {
            let read = self.reader.by_ref().read_until(b'\n', &mut self.partial);
            let read = read.with_context(|| format!("can't read {}", path.display()))?;
            if read == 0 || self.partial.last() != Some(&b'\n') {
                return Ok(());
            }
            self.partial.pop();
            let line = std::mem::take(&mut self.partial);
            take(&String::from_utf8_lossy(&line))?;
        }
    }
}

fn identity(path: &Path) -> anyhow::Result<Option<(u64, u64)>> {
    match std::fs::metadata(path) {
        Ok(metadata) => Ok(Some((metadata.dev(), metadata.ino()))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("can't inspect {}", path.display())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::io::Write;

    fn append(path: &Path, text: &str) {
        File::options().append(true).create(true).open(path).unwrap().write_all(text.as_bytes()).unwrap();
    }

    fn read(files: &mut LogFiles) -> Vec<String> {
        let mut lines = Vec::new();
        files
            .read(|line| {
                lines.push(line.to_owned());
                Ok(())
            })
            .unwrap();
        lines
    }

    #[test]
    fn lines_are_read_in_order_over_all_files_and_turns() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("toold.log");
        let aside = |n: usize| dir.path().join(format!("toold.log.{n}"));
        let mut none = LogFiles::open(&path).unwrap();
        assert!(!none.found_any() && read(&mut none).is_empty());
        append(&aside(2), "a\n");
        append(&aside(1), "b\n");
        append(&path, "c\npart");
        let mut files = LogFiles::open(&path).unwrap();
        assert_eq!(read(&mut files), ["a", "b", "c"]);
        append(&path, "ial\n");
        assert_eq!(read(&mut files), ["partial"]);
        // It is put aside twice before it is looked at again.
        append(&path, "d\n");
        fs::rename(aside(1), aside(3)).unwrap();
        fs::rename(&path, aside(2)).unwrap();
        append(&aside(1), "e\n");
        append(&path, "f\n");
        assert_eq!(read(&mut files), ["d", "e", "f"]);
        assert_eq!(read(&mut files), Vec::<String>::new());
        fs::remove_file(&path).unwrap();
        assert_eq!(read(&mut files), Vec::<String>::new());
        append(&path, "g\n");
        assert_eq!(read(&mut files), ["g"]);
        assert_eq!(read(&mut none).last().unwrap(), "g", "it came later");
    }
}
