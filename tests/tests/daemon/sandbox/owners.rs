//! Floors of an ordinary user, who has no other user in a user namespace, and what programs leave out that may not look at others.

use std::os::unix::fs::chown;
use std::process::Command;

use toold_tests::{Setup, skip};

use crate::sandbox::floors::{at, machine_has_floors, with_program};
use crate::sandbox::run;

/// This user under another number, without privileges.
const ORDINARY: [&str; 4] = ["unshare", "--user", "--map-user=1000", "--map-group=1000"];

fn of_ordinary_user(setup: Setup) -> Option<Setup> {
    let nested = ["unshare", "--user", "--map-current-user", "true"];
    let mut command = Command::new(ORDINARY[0]);
    let made = command.args(&ORDINARY[1..]).args(nested).status().is_ok_and(|status| status.success());
    if !made || !machine_has_floors() {
        skip("this machine gives an ordinary user no namespaces");
        return None;
    }
    Some(setup.through(&ORDINARY))
}

#[test]
fn owners_that_are_not_known_are_said_to_be_so() {
    let Some(setup) = of_ordinary_user(Setup::new().file("a.txt", "nobody\n").file("other", "")) else { return };
    // Only root can make one of another user; root's own are for all others.
    let other = setup.path("work/other");
    let other = if chown(&other, Some(12345), Some(12345)).is_ok() { "other" } else { "/etc/passwd" };
    let daemon = with_program(setup, "uniq", "#!/bin/sh\ncat a.txt\n");
    let mut wire = daemon.connect();
    let said = run(&mut wire, &format!("ls -l {other}"));
    assert!(said.ends_with("[nobody and nogroup stand for all users and groups but yours in this sandbox]"), "{said}");
    for line in ["ls -l a.txt", "cat a.txt", "uniq a.txt"] {
        let said = run(&mut wire, line);
        assert!(!said.contains("stand for"), "{line}: {said}");
    }
}

#[test]
fn a_rule_about_a_file_of_the_system_holds_for_an_ordinary_user_too() {
    let rule = "[[permission.rules]]\ncategory = \"file.read\"\npattern = \"/etc/hosts\"\naction = \"deny\"\n";
    let Some(setup) = of_ordinary_user(Setup::new().file("a.txt", "a\n").config(rule)) else { return };
    let daemon = with_program(setup, "uniq", "#!/bin/sh\ncat /etc/passwd > /dev/null && cat /etc/hosts\n");
    let said = run(&mut daemon.connect(), "uniq a.txt");
    assert!(said.starts_with("cat: /etc/hosts: Permission denied\n"), "{said}");
}

/// Git finds a repository in a folder that can be entered and not read, and runs what it names.
#[test]
fn no_mode_of_a_folder_keeps_what_runs_code_later_from_being_set_aside() {
    let script = "for d in shut closed; do git init -q $d; git -C $d config core.fsmonitor x; done\n\
                  chmod 0111 shut\nchmod 0555 closed\n";
    let Some(setup) = of_ordinary_user(Setup::new().file("make.sh", script)) else { return };
    let daemon = at("develop", setup);
    let said = run(&mut daemon.connect(), "sh make.sh");
    let there = ["shut", "shut.not-allowed", "closed/.git", "closed/.git.not-allowed"];
    assert_eq!(there.map(|name| daemon.work().join(name).exists()), [false, true, false, true], "{said}");
}

/// They answer that there is none, although one may be there.
#[test]
fn a_program_that_leaves_out_what_it_may_not_see_does_not_answer_alone() {
    if !machine_has_floors() {
        return;
    }
    let daemon = with_program(Setup::new().file("a.txt", "a\n"), "lsof", "#!/bin/sh\nexit 1\n");
    let mut wire = daemon.connect();
    let said = run(&mut wire, "lsof -i :3000");
    let expected = "[exit code 1]\n[lsof does not see in this sandbox which files and sockets other programs have open: what \
                    it leaves out may be there. Allow it with: toolctl permissions grant shell 'lsof -i :3000']";
    assert_eq!(said, expected);
    assert!(!run(&mut wire, "cat a.txt").contains("sandbox"));
}
