//! Secrets on floors: no name leads to one, and none looks like an empty file or a device.

use std::os::unix::fs::symlink;
use std::process::Command;

use serde_json::json;
use toold_tests::{Setup, TestDaemon, skip};

use crate::sandbox::floors::{at, git, machine_has_floors, with_program};
use crate::sandbox::run;

/// Says of each path in `names` what opening it gives, and whether it looks like a file or a folder.
const LOOK: &str = r#"import os, stat, sys
for name in open("names").read().split():
    try:
        content = os.listdir(name) if os.path.isdir(name) else open(name).read()
        print(name, "was read:", content)
    except OSError as error:
        print(name, error.strerror)
    try:
        mode = os.lstat(name).st_mode
    except PermissionError:
        continue
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISLNK(mode)):
        print(name, "is a device")
"#;

/// A user that may make no namespaces: Landlock and seccomp carry the floor.
fn without_namespaces(setup: Setup) -> Option<Setup> {
    let script = "echo 0 > /proc/sys/user/max_user_namespaces && exec setpriv --bounding-set=-sys_admin \
                  --inh-caps=-sys_admin \"$0\" \"$@\"";
    let command = ["unshare", "--user", "--map-root-user", "sh", "-c", script];
    if !Command::new(command[0]).args(&command[1..]).arg("/bin/true").status().is_ok_and(|status| status.success()) {
        skip("this machine has no user namespaces");
        return None;
    }
    Some(setup.through(&command))
}

const SECRETS: [&str; 7] =
    [".env", "deep/er/.env.local", ".aws/credentials", "soft", "notes.txt", "node_modules/p/x", "deep/home-link"];

fn among_secrets() -> Setup {
    let setup = Setup::new()
        .file(".env", "KEY=secret-1\n")
        .file("deep/er/.env.local", "KEY=secret-2\n")
        .file(".aws/credentials", "secret-3\n")
        .file("../home/.ssh/id_ed25519", "secret-4\n")
        .file("node_modules/p/code.js", "plain\n")
        .file("a.txt", "a\n")
        .file("look.py", LOOK);
    let (work, home) = (setup.path("work"), setup.path("home"));
    symlink(".env", work.join("soft")).unwrap();
    std::fs::hard_link(work.join(".env"), work.join("notes.txt")).unwrap();
    std::fs::hard_link(work.join("deep/er/.env.local"), work.join("node_modules/p/x")).unwrap();
    std::fs::hard_link(home.join(".ssh/id_ed25519"), work.join("deep/home-link")).unwrap();
    std::fs::create_dir_all(home.join(".local/bin")).unwrap();
    std::fs::hard_link(home.join(".ssh/id_ed25519"), home.join(".local/bin/tool")).unwrap();
    let names = [SECRETS.join("\n"), home.join(".local/bin/tool").display().to_string()].join("\n");
    setup.file("names", names)
}

#[track_caller]
fn all_are_refused(said: &str) {
    let lines: Vec<&str> = said.lines().filter(|line| !line.starts_with('[')).collect();
    assert!(
        lines.len() == SECRETS.len() + 1 && lines.iter().all(|line| line.ends_with(" Permission denied")),
        "{said}"
    );
}

const READS: &str = "#!/bin/sh\nexec python3 \"$PWD/look.py\"\n";

#[track_caller]
fn look_where_commands_read(daemon: &TestDaemon) {
    let mut wire = daemon.connect();
    all_are_refused(&run(&mut wire, "uniq a.txt"));
    // A command that names one is no exception.
    let said = run(&mut wire, "cat notes.txt a.txt");
    assert!(said.contains("notes.txt: Permission denied") && said.contains("a\n"), "{said}");
}

#[test]
fn no_name_of_a_secret_leads_to_it() {
    if machine_has_floors() {
        look_where_commands_read(&with_program(among_secrets(), "uniq", READS));
    }
}

#[test]
fn no_name_of_a_secret_leads_to_it_without_namespaces() {
    let Some(setup) = without_namespaces(among_secrets()) else { return };
    let daemon = with_program(setup, "uniq", READS);
    let floors = daemon.connect().result("daemon.status", json!({}))["floors"].take();
    assert_eq!(floors["freed"], json!(false), "{floors}");
    look_where_commands_read(&daemon);
}

#[test]
fn no_name_of_a_secret_leads_a_build_to_it() {
    if !machine_has_floors() {
        return;
    }
    let daemon = at("develop", among_secrets().file("build.sh", "python3 look.py\n"));
    let mut wire = daemon.connect();
    all_are_refused(&run(&mut wire, "sh build.sh"));
    // One that is made meanwhile.
    std::fs::hard_link(daemon.work().join(".aws/credentials"), daemon.work().join("late")).unwrap();
    std::fs::write(daemon.work().join("names"), "late\n").unwrap();
    let said = run(&mut wire, "sh build.sh");
    assert!(said.starts_with("late Permission denied\n"), "{said}");
}

/// A file that cannot be changed by its own name is not changed by another one either.
#[test]
fn a_file_that_runs_code_later_is_changed_under_no_name() {
    if !machine_has_floors() {
        return;
    }
    let setup =
        Setup::new().file(".envrc", "own\n").file("build.sh", "echo x > plain; echo x > deep/other; echo x > new\n");
    let work = setup.path("work");
    git(&work, &["init", "-q"]);
    std::fs::create_dir(work.join("deep")).unwrap();
    std::fs::hard_link(work.join(".envrc"), work.join("plain")).unwrap();
    std::fs::hard_link(work.join(".git/config"), work.join("deep/other")).unwrap();
    let config = std::fs::read(work.join(".git/config")).unwrap();
    let daemon = at("develop", setup);
    let said = run(&mut daemon.connect(), "sh build.sh");
    assert!(said.contains("plain: Read-only file system") && work.join("new").exists(), "{said}");
    assert_eq!(std::fs::read_to_string(work.join(".envrc")).unwrap(), "own\n");
    assert_eq!(std::fs::read(work.join(".git/config")).unwrap(), config);
}
