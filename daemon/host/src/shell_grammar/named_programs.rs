//! Programs and scripts that a line names by a relative path, as they are named from the session's folder: a rule for
//! `./run.sh`, or for `python3 run.py`, is about that file there, wherever the line has gone by then.

use std::path::{Path, PathBuf};

use super::state::logical;

/// The name of a program from the session's folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ProgramName {
    AsWritten,
    Other(String),
    /// It is not known which file the name stands for.
    Unknown,
}

/// How the program `written` is named from the session's folder. `folders` are those in which the command may run, `places` the
/// session's folders. `is_settled`: nothing that the line has run by then can have moved a folder.
pub(super) fn name_in_session(
    written: &str,
    folders: Option<&[PathBuf]>,
    places: &[&Path],
    is_settled: bool,
) -> ProgramName {
    if !written.contains('/') {
        return ProgramName::AsWritten;
    }
    match script_in_session(written, folders, places, is_settled) {
        ProgramName::Other(name) if !name.contains('/') => ProgramName::Other(format!("./{name}")),
        name => name,
    }
}

/// The same for the file that an interpreter runs, which is in the folder of the command without a `/`, too.
pub(super) fn script_in_session(
    written: &str,
    folders: Option<&[PathBuf]>,
    places: &[&Path],
    is_settled: bool,
) -> ProgramName {
    if written.starts_with('/') {
        return ProgramName::AsWritten;
    }
    let mut names = folders.unwrap_or_default().iter().map(|folder| name_from(written, folder, places, is_settled));
    let Some(first) = names.next() else { return ProgramName::Unknown };
    if names.all(|name| name == first) { first } else { ProgramName::Unknown }
}

fn name_from(written: &str, folder: &Path, places: &[&Path], is_settled: bool) -> ProgramName {
    if places.contains(&folder) {
        return ProgramName::AsWritten;
    }
    // The system leaves a folder that is a link by the folder that it stands for.
    let climbs = written.split('/').any(|part| part == "..");
    if climbs && !(is_settled && folder.canonicalize().is_ok_and(|real| real == folder)) {
        return ProgramName::Unknown;
    }
    let file = logical(&folder.join(written));
    let below =
        places.iter().filter_map(|place| file.strip_prefix(place).ok()).min_by_key(|below| below.as_os_str().len());
    ProgramName::Other(below.unwrap_or(&file).to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_relative_program_is_named_from_the_sessions_folder() {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().canonicalize().unwrap();
        std::fs::create_dir_all(top.join("docs/api")).unwrap();
        std::os::unix::fs::symlink("docs/api", top.join("link")).unwrap();
        let other = |name: &str| ProgramName::Other(name.to_owned());
        let name = |written: &str, folders: &[&str]| {
            let folders: Vec<PathBuf> = folders.iter().map(|folder| logical(&top.join(folder))).collect();
            name_in_session(written, Some(&folders), &[&top], true)
        };
        for (written, folders, expected) in [
            ("./run.sh", vec![""], ProgramName::AsWritten),
            ("docs/run.sh", vec![""], ProgramName::AsWritten),
            ("/bin/run.sh", vec!["docs"], ProgramName::AsWritten),
            ("run.sh", vec!["docs"], ProgramName::AsWritten),
            ("./run.sh", vec!["docs"], other("docs/run.sh")),
            ("../run.sh", vec!["docs"], other("./run.sh")),
            ("api/../run.sh", vec!["docs"], other("docs/run.sh")),
            ("./run.sh", vec!["/"], other("/run.sh")),
            ("./run.sh", vec!["link"], other("link/run.sh")),
            ("../run.sh", vec!["link"], ProgramName::Unknown),
            ("../run.sh", vec!["none"], ProgramName::Unknown),
            ("./run.sh", vec!["", "docs"], ProgramName::Unknown),
            ("./run.sh", vec!["docs", "docs"], other("docs/run.sh")),
        ] {
            assert_eq!(name(written, &folders), expected, "{written} in {folders:?}");
        }
        for (written, folder, expected) in [
            ("run.py", "docs", other("docs/run.py")),
            ("../run.py", "docs", other("run.py")),
            ("run.py", "", ProgramName::AsWritten),
        ] {
            let folder = logical(&top.join(folder));
            assert_eq!(script_in_session(written, Some(&[folder]), &[&top], true), expected, "{written}");
        }
        assert_eq!(name_in_session("./run.sh", None, &[&top], true), ProgramName::Unknown);
        assert_eq!(name_in_session("../run.sh", Some(&[top.join("docs")]), &[&top], false), ProgramName::Unknown);
        // The deepest of several folders.
        let both = [top.as_path(), &top.join("docs")];
        assert_eq!(name_in_session("./run.sh", Some(&[top.join("docs/api")]), &both, true), other("api/run.sh"));
    }
}
