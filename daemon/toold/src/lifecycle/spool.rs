//! Long results, stored whole as files for `read`.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use toold_engine::spool::Spool;
use toold_proto::tool::{CallId, SessionId};

use crate::config::paths::private_dir;

/// A folder with one folder for each session.
pub struct SpoolDir(PathBuf);

impl SpoolDir {
    pub fn new(dir: PathBuf) -> Self {
        Self(dir)
    }

    /// The folder for the results of a session.
    pub fn of_session(dir: &Path, session: &SessionId) -> PathBuf {
        dir.join(session.as_str())
    }

    /// Removes files older than `age`, if `may_remove` allows it for one more of that many, and then the oldest until
    /// `max_bytes` are left. Blocks.
    pub fn clean(dir: &Path, age: Duration, may_remove: &mut dyn FnMut(u64) -> bool, max_bytes: u64) -> io::Result<()> {
        let mut files = Vec::new();
        let sessions = match std::fs::read_dir(dir) {
            Ok(sessions) => sessions,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error),
        };
        for session in sessions.flatten() {
            let Ok(entries) = std::fs::read_dir(session.path()) else { continue };
            for entry in entries.flatten() {
                let Ok(metadata) = entry.metadata() else { continue };
                files.push((metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH), metadata.len(), entry.path()));
            }
        }
        files.sort();
        let mut left: u64 = files.iter().map(|(_, length, _)| length).sum();
        let oldest_kept = SystemTime::now().checked_sub(age).unwrap_or(SystemTime::UNIX_EPOCH);
        let all = files.len() as u64;
        for (modified, length, path) in files {
            if left <= max_bytes && (modified >= oldest_kept || !may_remove(all)) {
                break;
            }
            match std::fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => left -= length,
            }
            if let Some(session) = path.parent() {
                // Fails while the folder is not empty.
                let _ = std::fs::remove_dir(session);
            }
        }
        Ok(())
    }
}

impl Spool for SpoolDir {
    fn keep<'a>(
        &'a self,
        session: &'a SessionId,
        call: &'a CallId,
        text: &'a str,
    ) -> BoxFuture<'a, io::Result<String>> {
        let dir = Self::of_session(&self.0, session);
        // A call id may contain any character.
        let name: String = call
            .as_str()
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' })
            .take(64)
            .collect();
        let text = text.to_owned();
        async move {
            let kept = tokio::task::spawn_blocking(move || -> io::Result<String> {
                private_dir(&dir)?;
                let mut file = tempfile_in(&dir, &name)?;
                io::Write::write_all(&mut file.1, text.as_bytes())?;
                Ok(file.0.display().to_string())
            });
            kept.await.map_err(io::Error::other)?
        }
        .boxed()
    }
}

/// A new file `NAME.txt`, or `NAME-1.txt` and so on if that exists.
fn tempfile_in(dir: &Path, name: &str) -> io::Result<(PathBuf, std::fs::File)> {
    use std::os::unix::fs::OpenOptionsExt;
    for n in 0..1_000 {
        let path = dir.join(if n == 0 { format!("{name}.txt") } else { format!("{name}-{n}.txt") });
        match std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path) {
            Ok(file) => return Ok((path, file)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::new(io::ErrorKind::AlreadyExists, "a thousand files of this name"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn long_results_are_kept_and_the_oldest_go_first() {
        let dir = tempfile::tempdir().unwrap();
        let spool = SpoolDir::new(dir.path().to_owned());
        let session = SessionId::parse("s").unwrap();
        let mut kept = Vec::new();
        for (n, age) in [(1, 3_600), (2, 60), (3, 0)] {
            let call = CallId::parse(&format!("../call {n}")).unwrap();
            let path = PathBuf::from(spool.keep(&session, &call, &"x".repeat(100)).await.unwrap());
            assert_eq!(path.parent().unwrap(), dir.path().join("s"), "a call's id names no folder");
            let file = std::fs::File::options().write(true).open(&path).unwrap();
            file.set_modified(SystemTime::now() - Duration::from_secs(age)).unwrap();
            kept.push(path);
        }
        let there = || kept.iter().map(|path| path.exists()).collect::<Vec<_>>();
        SpoolDir::clean(dir.path(), Duration::from_secs(1_800), &mut |_| true, 1_000).unwrap();
        assert_eq!(there(), [false, true, true], "by age");
        SpoolDir::clean(dir.path(), Duration::from_secs(1_800), &mut |_| true, 150).unwrap();
        assert_eq!(there(), [false, false, true], "by size");
        SpoolDir::clean(dir.path(), Duration::ZERO, &mut |_| true, 0).unwrap();
        assert!(!dir.path().join("s").exists(), "an empty folder goes too");
        SpoolDir::clean(&dir.path().join("none"), Duration::ZERO, &mut |_| true, 0).unwrap();
    }
}
