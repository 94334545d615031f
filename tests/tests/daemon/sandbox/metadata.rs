//! The metadata of a file: mode, owner, times, attributes, links.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use toold_tests::Setup;

use crate::sandbox::{confined, run};

const CHANGES: [&str; 9] = [
    "chmod 640 {F}",
    "touch -d 2001-01-01 {F}",
    "touch -a -d 2001-01-01 {F}",
    "chown \"$(id -u):$(id -g)\" {F}",
    "python3 -c 'import os; os.setxattr(\"{F}\", \"user.new\", b\"x\")'",
    "python3 -c 'import os; os.removexattr(\"{F}\", \"user.old\")'",
    "chattr +d {F}",
    "ln {F} {G}",
    "chmod 700 $(dirname {F})",
];

/// All metadata of a file but the time of its last read.
fn facts(path: &Path) -> (u32, u32, u32, u64, i64, i64, i64) {
    let metadata = path.metadata().unwrap();
    let changed = (metadata.ctime(), metadata.ctime_nsec());
    (metadata.mode(), metadata.uid(), metadata.gid(), metadata.nlink(), metadata.mtime(), changed.0, changed.1)
}

/// Tries to change a file that lies outside of what may be written.
#[track_caller]
fn check(sandbox: &str, kept: bool) {
    let setup = Setup::new();
    let folder = setup.path("elsewhere");
    std::fs::create_dir(&folder).unwrap();
    let file = folder.join("file");
    std::fs::write(&file, "text\n").unwrap();
    let shown = file.display().to_string();
    let set = format!("import os; os.setxattr({shown:?}, 'user.old', b'x')");
    assert!(std::process::Command::new("python3").args(["-c", &set]).status().unwrap().success());
    let Some(daemon) = confined(sandbox, setup) else { return };
    let mut wire = daemon.connect();
    let before = (facts(&folder), facts(&file));
    for change in CHANGES {
        let command = change.replace("{G}", &format!("{shown}2")).replace("{F}", &shown);
        let result = wire.tool("bash", serde_json::json!({"command": command}));
        assert_eq!(result["is_error"], kept, "{sandbox}: {command}: {result}");
        if kept {
            assert_eq!((facts(&folder), facts(&file)), before, "{sandbox}: {command}");
        }
    }
    let old = run(&mut wire, &format!("python3 -c 'import os; print(os.listxattr(\"{shown}\"))'"));
    assert_eq!(old, if kept { "['user.old']\n" } else { "['user.new']\n" });
}

#[test]
fn nothing_of_a_file_changes_where_nothing_may_be_written() {
    check("mode = \"read-only\"", true);
}

#[test]
fn nothing_of_a_file_changes_outside_of_the_workspace() {
    check("mode = \"workspace-write\"", true);
}

#[test]
fn a_guarded_command_changes_files_as_ever() {
    check("mode = \"guard\"", false);
}

#[test]
fn in_the_workspace_and_in_the_folder_for_temporary_files_all_of_it_changes() {
    let Some(daemon) = confined("mode = \"workspace-write\"", Setup::new().file("f", "x\n")) else { return };
    let command = "touch $TMPDIR/t; for f in f $TMPDIR/t; do chmod 640 $f && touch -d 2001-01-01 $f && ln $f $f.2 && \
                   stat -c '%a %h %Y' $f; done";
    let expected = "640 2 978307200\n640 2 978307200\n";
    assert_eq!(run(&mut daemon.connect(), &format!("export TZ=UTC; {command}")), expected);
}
