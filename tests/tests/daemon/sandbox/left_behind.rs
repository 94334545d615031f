//! Processes that a command on a floor leaves behind: without their parent, their session and their environment. They are ended
//! with the command, or watched until they end.

use toold_tests::{Setup, TestDaemon, has_ended, until};

use crate::sandbox::floors::{at, machine_has_floors};
use crate::sandbox::run;

fn files() -> Setup {
    let setup = Setup::new().file("leave.py", include_str!("leave.py"));
    toold_test_kit::git(&setup.path("work"), &["init", "-q"]);
    setup.file("leave.sh", "python3 leave.py; until [ -e left ]; do sleep 0.01; done\n")
}

fn left(daemon: &TestDaemon) -> u32 {
    std::fs::read_to_string(daemon.work().join("left")).unwrap().parse().unwrap()
}

#[test]
fn what_a_command_leaves_behind_ends_with_it_whatever_it_has_left() {
    if !machine_has_floors() {
        return;
    }
    let daemon = at("develop", files());
    let said = run(&mut daemon.connect(), "sh leave.sh");
    let pid = left(&daemon);
    until("the process has ended", || has_ended(pid).then_some(()));
    assert!(said.contains("left"), "{said}");
}

#[test]
fn what_may_run_on_is_watched_until_it_ends() {
    if !machine_has_floors() {
        return;
    }
    let daemon = files().config("[permission]\nlevel = \"develop\"\n[shell]\nkeep = [\"python3\"]\n").start();
    run(&mut daemon.connect(), "sh leave.sh");
    let (pid, file) = (left(&daemon), |name: &str| daemon.work().join(name));
    assert!(!has_ended(pid));
    std::fs::write(file("go"), "").unwrap();
    until("the file is set aside", || file(".envrc.not-allowed").exists().then_some(()));
    until("the process has ended", || has_ended(pid).then_some(()));
    assert!(!file(".envrc").exists());
    // While it ran, a file without effect stood in for it.
    until("the stand-in is gone", || (!file(".git/commondir").exists()).then_some(()));
}
