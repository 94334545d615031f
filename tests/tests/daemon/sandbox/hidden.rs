//! Secrets on floors: no name leads to one, and none looks like an empty file or a device.

use std::os::unix::fs::{PermissionsExt, symlink};
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

/// A file system that is mounted twice shows each file twice.
#[test]
fn a_secret_is_read_through_no_other_mount() {
    if !machine_has_floors() {
        return;
    }
    let setup = among_secrets();
    let (home, elsewhere) = (setup.path("home"), setup.path("elsewhere"));
    std::fs::create_dir_all(&elsewhere).unwrap();
    let top = home.parent().unwrap().to_owned();
    let script = format!("mount --bind '{}' '{}' && exec \"$0\" \"$@\"", top.display(), elsewhere.display());
    let command = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", &script];
    if !Command::new(command[0]).args(&command[1..]).arg("/bin/true").status().is_ok_and(|status| status.success()) {
        return skip("this machine mounts nothing");
    }
    let names = ["work/.env", "work/deep/er/.env.local", "work/.aws/credentials", "home/.ssh/id_ed25519"];
    let names: Vec<String> = names.iter().map(|name| elsewhere.join(name).display().to_string()).collect();
    let setup = setup
        .file("names", names.join("\n"))
        .file("build.sh", format!("python3 look.py; cat '{}'\n", elsewhere.join("work/a.txt").display()))
        .config("[permission]\nlevel = \"develop\"\n")
        .through(&command);
    let daemon = with_program(setup, "uniq", READS);
    let mut wire = daemon.connect();
    for line in ["uniq a.txt", "sh build.sh"] {
        let said = run(&mut wire, line);
        let refused = said.lines().filter(|line| line.ends_with(" Permission denied")).count();
        assert!(refused == names.len() && !said.contains("secret-"), "{line}: {said}");
    }
}

/// The commands of a daemon of root do not read what other users may not read.
#[test]
fn files_that_only_root_reads_are_hidden() {
    let named = ["/etc/shadow", "/etc/shadow-", "/etc/gshadow-", "/var/lib/postgresql/15/main/PG_VERSION"];
    let named = named.map(std::path::Path::new);
    let is_private =
        |path: &&&std::path::Path| path.metadata().is_ok_and(|found| found.permissions().mode() & 0o004 == 0);
    let private: Vec<String> = named.iter().filter(is_private).map(|path| path.display().to_string()).collect();
    if private.is_empty() || !machine_has_floors() {
        return skip("this machine has no such files, or not all floors");
    }
    let lines = format!("cat {}; cat /etc/passwd > /dev/null && echo others\n", private.join(" "));
    let daemon = at("develop", Setup::new().file("build.sh", lines));
    let said = run(&mut daemon.connect(), "sh build.sh");
    assert_eq!(said.matches(": Permission denied").count(), private.len(), "{said}");
    assert!(said.contains("others\n"), "{said}");
}

/// In a folder of another name, the next command would see it.
#[test]
fn the_folders_above_a_hidden_file_stay_where_they_are() {
    if !machine_has_floors() {
        return;
    }
    let setup = Setup::new()
        .file(".aiexclude", "/a/in/plan.txt\n")
        .file("a/in/plan.txt", "secret-1\n")
        .file("b/x.txt", "secret-2\n")
        .file("c/.env", "KEY=secret-3\n")
        .file("d/code", "x\n")
        .file("build.sh", "mkdir target; mv a a2; mv a/in a/in2; mv b b2; mv c target; mv d d2; ls\n")
        .file("then.sh", "cat */*.txt */*/*.txt target/c/.env\n");
    let rule = format!(
        "[permission]\nlevel = \"develop\"\n[[permission.rules]]\ncategory = \"file.read\"\npattern = \"{}\"\n\
         action = \"deny\"\n",
        setup.path("work/b/x.txt").display()
    );
    let daemon = setup.config(&rule).start();
    let mut wire = daemon.connect();
    let lines = ["mv a a2", "mv b b2", "sh build.sh", "sh then.sh", "cat a2/in/plan.txt", "cat b2/x.txt"];
    let said: String = lines.iter().map(|line| run(&mut wire, line)).collect();
    assert!(!said.contains("secret-"), "{said}");
    assert!(said.contains("mv: cannot move 'c' to 'target/c': Device or resource busy"), "{said}");
    let plan = daemon.work().join("a/in/plan.txt");
    let why = format!("a can't be moved or removed here, since {} is hidden", plan.display());
    assert!(said.contains(&why), "{said}");
    let is_there = |name: &str| daemon.work().join(name).exists();
    assert!(is_there("a/in/plan.txt") && is_there("b/x.txt") && is_there("c/.env") && is_there("d2/code"), "{said}");
}
