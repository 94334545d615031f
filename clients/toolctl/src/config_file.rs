//! Configuration files, the user's own and those of other programs, as commands change them.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use similar::algorithms::{Capture, Compact, Replace, myers};
use similar::{DiffTag, group_diff_ops};
use toold_client::Client;
use toold_files::FileReplacement;
use toold_proto::daemon::NoParams;
use toold_proto::method::DaemonGetConfig;

use crate::output;
use crate::person::PersonWrites;
use crate::program;
use crate::secret_texts::without_secrets;

/// The path of the user's configuration, whether or not it exists.
pub(crate) async fn find() -> anyhow::Result<PathBuf> {
    let file = PathBuf::from(program::text(&["config".as_ref(), "path".as_ref()]).await?.trim_end());
    Ok(behind_links(&file))
}

/// The file that is changed: the target of a symbolic link, not the link, also when it does not exist yet.
pub(crate) fn behind_links(file: &Path) -> PathBuf {
    let mut target = file.to_owned();
    // The kernel's limit before it reports a loop: path_resolution(7).
    for _ in 0..40 {
        if let Ok(real) = target.canonicalize() {
            return real;
        }
        let Ok(next) = std::fs::read_link(&target) else { return target };
        target = target.parent().unwrap_or(Path::new("/")).join(next);
    }
    file.to_owned()
}

/// The configuration of the nearest project folder, found as the daemon finds it.
pub(crate) fn of_project() -> anyhow::Result<PathBuf> {
    let cwd = std::env::current_dir().context("can't determine the current folder")?;
    let marked = |mark: &str| cwd.ancestors().find(|folder| folder.join(mark).exists());
    let project = marked(".toold").or_else(|| marked(".git")).unwrap_or(&cwd);
    Ok(project.join(".toold/config.toml"))
}

/// # Errors
/// The daemon that runs reads another configuration than the file.
pub(crate) async fn check_is_read(client: &Client, file: &Path) -> anyhow::Result<()> {
    let theirs = PathBuf::from(client.call::<DaemonGetConfig>(NoParams {}).await?.file);
    let theirs = theirs.canonicalize().unwrap_or(theirs);
    if theirs != file {
        bail!(
            "the daemon that runs reads {}, and this toolctl writes {}: to use that, run `toolctl stop`, then `toolctl start` here",
            theirs.display(),
            file.display()
        );
    }
    Ok(())
}

/// The text with one more part at its end, after an empty line.
pub(crate) fn appended(text: &str, part: &str) -> String {
    let gap = if text.is_empty() {
        ""
    } else if text.ends_with('\n') {
        "\n"
    } else {
        "\n\n"
    };
    format!("{text}{gap}{part}")
}

/// Nothing is written that the daemon would refuse.
pub(crate) async fn write_checked(file: &Path, text: &str, right: &PersonWrites) -> anyhow::Result<()> {
    let folder = file.parent().context("the file is in no folder")?;
    std::fs::create_dir_all(folder).with_context(|| format!("can't create {}", folder.display()))?;
    // Under the name by which a process that comes after one that was killed here finds what it left.
    remove_leftovers(file);
    let candidate = beside(file);
    let written = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&candidate);
    written
        .and_then(|mut written| written.write_all(text.as_bytes()))
        .with_context(|| format!("can't write {}", candidate.display()))?;
    let check = ["config".as_ref(), "check".as_ref(), "--".as_ref(), candidate.as_ref()];
    let wrong = program::errors(&check).await;
    std::fs::remove_file(&candidate).with_context(|| format!("can't remove {}", candidate.display()))?;
    if let Some(wrong) = wrong? {
        // The errors are about the file as it would have been.
        let wrong = wrong.replace(&*candidate.to_string_lossy(), &file.to_string_lossy());
        write!(output::unfolded_stderr(), "{wrong}")?;
        bail!("nothing was written to {}", file.display());
    }
    replace(file, text, right)
}

pub(crate) fn read(file: &Path) -> anyhow::Result<Option<String>> {
    match std::fs::read_to_string(file) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("can't read {}", file.display())),
    }
}

/// Replaces the file atomically, with its mode; a new file is for the owner alone, as it may hold keys of other servers.
pub(crate) fn replace(file: &Path, text: &str, _: &PersonWrites) -> anyhow::Result<()> {
    replace_own(file, text)
}

/// The same for a file that only toolctl reads.
pub(crate) fn replace_own(file: &Path, text: &str) -> anyhow::Result<()> {
    remove_leftovers(file);
    toold_files::replace(file, &beside(file), text.as_bytes(), FileReplacement::KeepsMode(0o600))
        .with_context(|| format!("can't write {}", file.display()))
}

/// The temporary file of this process beside a file.
fn beside(file: &Path) -> PathBuf {
    let mut beside = file.as_os_str().to_owned();
    beside.push(format!("{BESIDE}{}", std::process::id()));
    beside.into()
}

/// The ending of the name of a temporary file that replaces another one; the number of the process that writes it follows.
const BESIDE: &str = ".new-";

/// Removes what processes left beside the file that were killed while they replaced it.
pub(crate) fn remove_leftovers(file: &Path) {
    let (Some(folder), Some(name)) = (file.parent(), file.file_name().and_then(|name| name.to_str())) else { return };
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let found = entry.file_name();
        let number = found.to_str().and_then(|found| found.strip_prefix(name)?.strip_prefix(BESIDE)?.parse().ok());
        let writer = number.and_then(rustix::process::Pid::from_raw);
        // A process of another user has the number by now.
        if writer.is_some_and(|writer| rustix::process::test_kill_process(writer).is_err()) {
            // Another process may be faster.
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// The removed and added lines, with a few lines of context, without what looks like a secret.
pub(crate) fn difference(file: &Path, before: &str, after: &str) -> String {
    const CONTEXT: usize = 3;
    let (old, new): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    // Hidden in the whole text: the option before a secret may be on a line that is not shown.
    let (hidden_old, hidden_new) = (without_secrets(before), without_secrets(after));
    let (shown_old, shown_new): (Vec<&str>, Vec<&str>) = (hidden_old.lines().collect(), hidden_new.lines().collect());
    let mut text = format!("{}\n", file.display());
    // Not by `capture_diff_slices`, which has the code of six algorithms.
    let mut steps = Compact::new(Replace::new(Capture::new()), &old[..], &new[..]);
    let Ok(()) = myers::diff(&mut steps, &old[..], 0..old.len(), &new[..], 0..new.len());
    let groups = group_diff_ops(steps.into_inner().into_inner().into_ops(), CONTEXT);
    for (at, group) in groups.iter().enumerate() {
        if at > 0 {
            text.push_str("  ...\n");
        }
        for op in group {
            let is_equal = op.tag() == DiffTag::Equal;
            let lines = |sign: &str, lines: &[&str]| -> String {
                lines.iter().map(|line| format!("{sign} {line}\n")).collect()
            };
            text.push_str(&lines(if is_equal { " " } else { "-" }, &shown_old[op.old_range()]));
            if !is_equal {
                text.push_str(&lines("+", &shown_new[op.new_range()]));
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_shows_what_changes_and_no_secrets() {
        let lines = |middle: &str| -> String {
            let server = "args = [\n  \"--password\",\n  \"hunter2\",\n  \"a\",\n  \"b\",\n]\n";
            format!("one = 1\ntwo = 2\n{server}{middle}\nthree = 3\n{}four = 4\n", "# a comment\n".repeat(9))
        };
        let after = lines("x = 2").replace("four = 4", "four = 5").replace("one = 1\n", "");
        let shown = difference(Path::new("/a"), &lines("x = 1"), &after);
        let expected = "/a\n- one = 1\n  two = 2\n  args = [\n    \"--password\",\n  ...\n    \"a\",\n    \"b\",\n  ]\n- x = 1\n\
                        + x = 2\n  three = 3\n  # a comment\n  # a comment\n  ...\n  # a comment\n  # a comment\n  # a comment\n\
                        - four = 4\n+ four = 5\n";
        assert_eq!(shown, expected);
        let secret = difference(Path::new("/a"), &lines("x = 1"), &lines("x = 1").replace("\"a\"", "\"c\""));
        assert!(secret.contains("    \"***\",\n-   \"a\",\n+   \"c\",\n"), "{secret}");
    }
}
