//! Sockets and notifications of service managers.

use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::path::Path;
use std::process::Stdio;

use serde_json::json;
use toold_tests::{Setup, Wire, toold};

use crate::operation::serving::{ALLOW_ALL, Manager, ServingProcess, activated, listener, private, socket, text};

#[test]
fn a_socket_of_the_service_manager_is_served_and_stays() {
    let setup = Setup::new().config(ALLOW_ALL);
    let (listener, manager) = (listener(&setup), Manager::new(&setup));
    let start = || {
        let mut command = activated(&setup, listener.try_clone().unwrap());
        ServingProcess(command.env("NOTIFY_SOCKET", setup.path("notify")).spawn().unwrap())
    };
    // A client that was there before the daemon.
    let mut early = Wire::connect(&socket(&setup));
    let id = early.request("daemon.status", json!({}));
    let mut daemon = start();
    let ready = manager.hear("READY=1");
    assert_eq!(ready, ["READY=1".to_owned(), format!("STATUS=serves {}", socket(&setup).display())]);
    let status = early.answer(id)["result"].take();
    assert_eq!(status["pid"], daemon.0.id());
    assert_eq!(status["socket"], json!(socket(&setup)));
    // None of these variables reach the programs of tools.
    early.result("session.open", json!({"cwd": setup.path("work")}));
    let bash = early.tool(
        "bash",
        json!({"command": "env | grep -E 'LISTEN|NOTIFY|WATCHDOG'; ls -l /proc/self/fd | grep socket; echo none"}),
    );
    assert_eq!(bash["content"][0]["text"].as_str().unwrap().trim(), "none", "{bash}");

    daemon.signal("HUP");
    let reloading = manager.hear("RELOADING=1");
    assert!(reloading.iter().any(|line| line.starts_with("MONOTONIC_USEC=") && line.len() > 15), "{reloading:?}");
    manager.hear("READY=1");

    daemon.signal("TERM");
    manager.hear("STOPPING=1");
    assert!(daemon.ended().success());
    assert!(socket(&setup).exists(), "the service manager's socket was removed");
    // The next client waits in the service manager's socket until the next daemon is there.
    let mut late = Wire::connect(&socket(&setup));
    let id = late.request("daemon.ping", json!({}));
    let next = start();
    assert_eq!(late.answer(id)["result"], json!({}));
    next.stop();
}

#[test]
fn a_service_manager_hears_that_the_daemon_lives() {
    let setup = Setup::new();
    let (listener, manager) = (listener(&setup), Manager::new(&setup));
    let mut command = activated(&setup, listener);
    command.env("NOTIFY_SOCKET", setup.path("notify")).env("WATCHDOG_USEC", "20000");
    let daemon = ServingProcess(command.spawn().unwrap());
    manager.hear("READY=1");
    for _ in 0..3 {
        manager.hear("WATCHDOG=1");
    }
    daemon.stop();
}

#[track_caller]
fn check_refused(setup: &Setup, given: impl Into<OwnedFd>, words: &str) {
    let mut command = activated(setup, given);
    let output = command.stderr(Stdio::piped()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains(words), "{said}");
}

#[test]
fn a_socket_that_cannot_be_served_safely_is_refused() {
    let setup = Setup::new();
    let listener = listener(&setup);
    let (other, _end) = UnixStream::pair().unwrap();
    check_refused(&setup, other, "does not listen");
    check_refused(&setup, UnixDatagram::unbound().unwrap(), "no Unix stream socket");
    check_refused(&setup, fs::File::open("/dev/null").unwrap(), "no Unix stream socket");
    fs::set_permissions(socket(&setup), fs::Permissions::from_mode(0o666)).unwrap();
    check_refused(&setup, listener.try_clone().unwrap(), "SocketMode=0600");
    fs::set_permissions(socket(&setup), fs::Permissions::from_mode(0o600)).unwrap();
    fs::set_permissions(setup.path("run"), fs::Permissions::from_mode(0o755)).unwrap();
    check_refused(&setup, listener, "DirectoryMode=0700");
}

#[test]
fn units_are_valid_for_systemd_and_launchd() {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../daemon/toold"));
    let read = |name: &str| fs::read_to_string(folder.join(name)).unwrap();
    let (service, socket) = (read("systemd/toold.service"), read("systemd/toold.socket"));
    let has = |unit: &str, line: &str| assert!(unit.lines().any(|found| found == line), "{line} is not in\n{unit}");
    has(&service, "Type=notify");
    has(&service, "ExecStart=/usr/bin/toold serve");
    has(&socket, "ListenStream=%t/toold/toold.sock");
    for unit in [&service, &socket] {
        let odd = unit.lines().find(|line| {
            !(line.is_empty()
                || line.starts_with(['#', '['])
                || line.split_once('=').is_some_and(|(key, _)| !key.contains(' ')))
        });
        assert_eq!(odd, None);
    }
    let setup = Setup::new();
    let installed = service.replace("/usr/bin/toold", &toold().display().to_string());
    fs::write(setup.path("toold.service"), installed).unwrap();
    fs::write(setup.path("toold.socket"), socket).unwrap();
    let units = [setup.path("toold.service"), setup.path("toold.socket")];
    private(&setup);
    let mut verify = setup.command(Path::new("systemd-analyze"));
    // Where there is no systemd, the lines above have to do.
    if let Ok(output) = verify.args(["--user", "verify"]).args(units).env("XDG_RUNTIME_DIR", setup.path("run")).output()
    {
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && said.trim().is_empty(), "{said}");
    }
    let list = "import plistlib, sys; print(plistlib.load(open(sys.argv[1], 'rb'))['ProgramArguments'])";
    let mut python = setup.command(Path::new("python3"));
    if let Ok(output) = python.args(["-c", list]).arg(folder.join("launchd/toold.plist")).output() {
        assert_eq!(text(&output).trim(), "['/usr/local/bin/toold', 'serve']");
    }
}
