//! A full file system: which one it is, and what to do about it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The message and the advice for an error that a full file system, or an exhausted quota, caused.
pub(super) fn explain(error: &anyhow::Error) -> Option<(String, Option<String>)> {
    let cause = error.chain().find_map(|cause| cause.downcast_ref::<io::Error>())?;
    let why = match cause.kind() {
        io::ErrorKind::StorageFull => "full",
        io::ErrorKind::QuotaExceeded => "over your quota",
        _ => return None,
    };
    // Files are named by the error's context; what has none is this program's output.
    let is_output = error.chain().count() == 1;
    if !is_output {
        return Some((
            format!("{error:#}"),
            Some(format!("the file system is {why}: free some space there, then repeat")),
        ));
    }
    let target = target_of_stdout();
    let message = match &target {
        Some(path) => format!("can't write the output to {}: its file system is {why}", path.display()),
        None => format!("can't write the output: its file system is {why}"),
    };
    let place = target.as_deref().and_then(mount_point);
    let place = place.map_or_else(|| "on that file system".to_owned(), |point| format!("on {}", point.display()));
    Some((message, Some(format!("free some space {place}, or write to another one; the output is not complete"))))
}

fn target_of_stdout() -> Option<PathBuf> {
    fs::read_link("/proc/self/fd/1").ok().filter(|path| path.is_absolute())
}

/// The highest folder of the file system that a file is on.
fn mount_point(path: &Path) -> Option<PathBuf> {
    use std::os::unix::fs::MetadataExt;
    let device = path.metadata().ok().filter(fs::Metadata::is_file)?.dev();
    let same = |folder: &&Path| folder.metadata().is_ok_and(|folder| folder.dev() == device);
    path.ancestors().skip(1).take_while(same).last().map(Path::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_full_file_system_is_explained() {
        assert_eq!(explain(&io::Error::from(io::ErrorKind::NotFound).into()), None);
        let full = anyhow::Error::from(io::Error::from(io::ErrorKind::StorageFull));
        let (message, advice) = explain(&full.context("can't write /a/b")).unwrap();
        assert!(message.starts_with("can't write /a/b: "), "{message}");
        assert!(advice.unwrap().contains("free some space"));
    }
}
