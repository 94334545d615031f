//! Text of any length in bounded memory: its head and tail, and optionally the whole text in a file.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use toold_engine::head_tail::HeadTail;

/// The most that is written to the file of one text.
const MAX_FILE: u64 = 256 * 1024 * 1024;
/// After this many bytes, checks whether the file was removed.
const LOOK_EVERY: u64 = 1024 * 1024;

/// The first and last bytes of a text; the middle is cut if the text is too long.
#[derive(Debug)]
pub struct OutputBuffer {
    text: HeadTail,
    spill: Spill,
}

/// Where the whole text is stored.
#[derive(Debug)]
enum Spill {
    Nowhere,
    /// Created when the text becomes too long to keep in memory.
    WhenLong(PathBuf),
    File {
        file: File,
        path: PathBuf,
        written: u64,
    },
    Failed(String),
}

impl OutputBuffer {
    /// Keeps about `max` bytes, half of them from the beginning.
    pub fn new(max: usize) -> Self {
        Self { text: HeadTail::new(max), spill: Spill::Nowhere }
    }

    /// As `new`, but a text that does not fit is also written to `path` completely, up to 256 MiB. The file and its
    /// folder are created only for such a text, and only the owner can read the file.
    pub fn with_file(max: usize, path: PathBuf) -> Self {
        Self { spill: Spill::WhenLong(path), ..Self::new(max) }
    }

    /// Appends text. Writes to the file, if there is one, on the calling thread.
    pub fn push(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        if let Spill::File { .. } = self.spill {
            self.write(text);
        }
        self.text.append(text);
        if self.text.is_too_long() {
            self.start_file();
        }
        self.text.trim();
    }

    /// Bytes that were pushed.
    pub fn total(&self) -> u64 {
        self.text.total()
    }

    /// The file with the whole text; `None` if the text fits in memory.
    pub fn file(&self) -> Option<&Path> {
        match &self.spill {
            Spill::File { path, .. } => Some(path),
            Spill::Nowhere | Spill::WhenLong(_) | Spill::Failed(_) => None,
        }
    }

    /// Why the whole text is not in a file although it should be.
    pub fn file_error(&self) -> Option<&str> {
        match &self.spill {
            Spill::Failed(error) => Some(error),
            Spill::Nowhere | Spill::WhenLong(_) | Spill::File { .. } => None,
        }
    }

    /// Head and tail, and how many bytes between them are cut.
    pub fn parts(&self) -> (&str, String, u64) {
        self.text.parts()
    }

    /// The text. If bytes were cut, a line in the middle says how many.
    pub fn to_text(&self) -> String {
        self.text.to_text()
    }

    /// When this is first called, the whole text is still in memory.
    fn start_file(&mut self) {
        let Spill::WhenLong(path) = &mut self.spill else { return };
        let path = std::mem::take(path);
        match create(&path) {
            Ok(file) => {
                self.spill = Spill::File { file, path, written: 0 };
                self.write(&self.text.kept());
            }
            Err(error) => self.spill = Spill::Failed(format!("can't write {}: {error}", path.display())),
        }
    }

    fn write(&mut self, text: &str) {
        let Spill::File { file, path, written } = &mut self.spill else { return };
        let room = MAX_FILE.saturating_sub(*written).min(text.len() as u64) as usize;
        let is_due = *written / LOOK_EVERY != (*written + room as u64) / LOOK_EVERY;
        *written += room as u64;
        let wrote = file.write_all(&text.as_bytes()[..room]).and_then(|()| match is_due && is_removed(file)? {
            true => Err(io::Error::other("it was removed to free space (see spool.max_mib)")),
            false => Ok(()),
        });
        if let Err(error) = wrote {
            let words = format!("can't write {}: {error}", path.display());
            // A partial text is worse than none: readers could not tell that it is partial.
            let _ = std::fs::remove_file(path);
            self.spill = Spill::Failed(words);
        }
    }
}

/// Whether the file was unlinked: what is written to it is lost, and takes space until it is closed.
fn is_removed(file: &File) -> io::Result<bool> {
    Ok(file.metadata()?.nlink() == 0)
}

fn create(path: &Path) -> std::io::Result<File> {
    use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
    if let Some(folder) = path.parent() {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_text_is_kept_whole_and_makes_no_file() {
        let folder = tempfile::tempdir().unwrap();
        let mut kept = OutputBuffer::with_file(100, folder.path().join("a/text"));
        for _ in 0..10 {
            kept.push("0123456789");
        }
        assert_eq!(kept.to_text(), "0123456789".repeat(10));
        assert!(kept.file().is_none() && !folder.path().join("a").exists());
    }

    #[test]
    fn long_text_keeps_its_ends_and_is_whole_in_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/text");
        let mut kept = OutputBuffer::with_file(1000, path.clone());
        let mut whole = String::new();
        for n in 0..5000 {
            let line = format!("ligne é {n}\n");
            kept.push(&line);
            whole.push_str(&line);
        }
        let text = kept.to_text();
        assert!(text.starts_with("ligne é 0\n") && text.ends_with("ligne é 4999\n"));
        assert!(text.len() < 1100, "{}", text.len());
        let (head, tail, cut) = kept.parts();
        assert_eq!(head.len() as u64 + tail.len() as u64 + cut, whole.len() as u64);
        assert!(std::fs::read_to_string(&path).unwrap() == whole);
    }

    #[test]
    fn removed_file_is_abandoned() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("text");
        let mut kept = OutputBuffer::with_file(100, path.clone());
        kept.push(&"a".repeat(200));
        std::fs::remove_file(&path).unwrap();
        kept.push(&"a".repeat(LOOK_EVERY as usize));
        assert!(kept.file_error().unwrap().contains("spool.max_mib"));
        assert!(kept.file().is_none());
    }
}
