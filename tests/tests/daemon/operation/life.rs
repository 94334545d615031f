//! The end of a daemon that nobody uses, and the socket that is deleted under it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use serde_json::json;
use toold_tests::{Setup, Wire, until};

use crate::operation::serving::{ALLOW_ALL, ServingProcess, activated, listener, private, run, serve, socket, text};

#[test]
fn a_daemon_that_nobody_uses_ends() {
    let setup = Setup::new().config("[daemon]\nidle_exit_ms = 1000\n");
    private(&setup);
    let mut daemon = serve(&setup);
    assert!(daemon.ended().success());
    assert!(!socket(&setup).exists());
    let said = fs::read_to_string(setup.path("log")).unwrap();
    assert!(said.contains("nobody uses it"), "{said}");
}

#[test]
fn a_daemon_that_is_in_use_goes_on() {
    let setup = Setup::new().config(ALLOW_ALL);
    private(&setup);
    let mut daemon = serve(&setup);
    let mut wire = Wire::connect(&socket(&setup));
    wire.result("session.open", json!({"cwd": setup.path("work"), "session_id": "s"}));
    // Active at once, like the rest of the configuration.
    let config = setup.path("config/toold/config.toml");
    let rules = fs::read_to_string(&config).unwrap();
    fs::write(&config, format!("[daemon]\nidle_exit_ms = 30\n{rules}")).unwrap();
    assert_eq!(wire.result("daemon.reload", json!({}))["applied"], true);
    // Several times as long as it may be idle, kept alive only by a connection and its calls.
    let result = wire.tool("bash", json!({"command": "sleep 0.3"}));
    assert_eq!(result["is_error"], false, "{result}");
    let shell = wire.tool("bash", json!({"command": "sleep 0.5; echo done > out", "background": true}));
    assert_eq!(shell["is_error"], false, "{shell}");
    drop(wire);
    // The connection is gone, and the background command still runs to its end.
    assert!(daemon.ended().success());
    assert_eq!(fs::read_to_string(setup.path("work/out")).unwrap(), "done\n");
}

#[test]
fn idle_session_is_unloaded_and_found_again() {
    let daemon = Setup::new().config("[daemon]\nsession_idle_ms = 1\n").file("f", "there\n").start();
    let open = |id: &str| json!({"cwd": daemon.work(), "session_id": id});
    let mut stays = daemon.connect();
    stays.result("session.open", open("stays"));
    let mut goes = daemon.connect();
    assert_eq!(goes.result("session.open", open("goes"))["resumed"], false);
    drop(goes);
    let ids = |wire: &mut Wire| {
        let listed = wire.result("session.list", json!({}))["sessions"].clone();
        listed.as_array().unwrap().iter().map(|session| session["session_id"].clone()).collect::<Vec<_>>()
    };
    until("the session that nobody uses is gone", || (ids(&mut stays) == [json!("stays")]).then_some(()));
    assert!(stays.tool("read", json!({"path": "f"}))["content"][0]["text"].as_str().unwrap().contains("there"));
    let mut back = daemon.connect();
    assert_eq!(back.result("session.open", open("goes"))["resumed"], true);
}

#[test]
fn no_client_is_lost_when_the_daemon_ends_as_it_comes() {
    let setup = Setup::new().config("[daemon]\nidle_exit_ms = 1\n").file("f", "there\n");
    private(&setup);
    for n in 0..25 {
        // Each connects at another moment of the daemon's shutdown.
        std::thread::park_timeout(Duration::from_millis(n % 7));
        assert!(text(&run(&setup, &["call", "read", "path=f"])).contains("there"));
    }
    until("the last daemon ends", || (!socket(&setup).exists()).then_some(()));
}

#[test]
fn idle_exit_under_a_service_manager_leaves_the_client_to_the_next_daemon() {
    let setup = Setup::new().config("[daemon]\nidle_exit_ms = 20\n");
    let listener = listener(&setup);
    for _ in 0..3 {
        let mut wire = Wire::connect(&socket(&setup));
        let id = wire.request("daemon.ping", json!({}));
        let mut daemon = ServingProcess(activated(&setup, listener.try_clone().unwrap()).spawn().unwrap());
        assert_eq!(wire.answer(id)["result"], json!({}));
        drop(wire);
        assert!(daemon.ended().success());
        assert!(socket(&setup).exists());
    }
}

#[test]
fn a_daemon_whose_folder_was_deleted_binds_again_and_stays_the_only_one() {
    let setup = Setup::new();
    private(&setup);
    let daemon = serve(&setup);
    let mut wire = Wire::connect(&socket(&setup));
    fs::remove_dir_all(setup.path("run")).unwrap();
    // It finds no socket, starts a daemon, which exits because of the lock, and finds the first one's new socket.
    let status: serde_json::Value = serde_json::from_str(&text(&run(&setup, &["status", "--json"]))).unwrap();
    assert_eq!(status["pid"], daemon.0.id());
    assert_eq!(fs::metadata(setup.path("run")).unwrap().permissions().mode() & 0o777, 0o700);
    assert_eq!(fs::metadata(socket(&setup)).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(wire.result("daemon.ping", json!({})), json!({}), "those that were connected stay so");
    // The same when only the file is deleted.
    fs::remove_file(socket(&setup)).unwrap();
    until("the daemon binds again", || UnixStream::connect(socket(&setup)).ok());
    let said = fs::read_to_string(setup.path("log")).unwrap();
    assert!(said.contains("the socket was deleted"), "{said}");
    daemon.stop();
    assert!(!socket(&setup).exists());
}
