//! Failures to start the daemon. The workspace's tests start the real one.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Duration;

use crate::{Client, ClientError, StartOptions};
use tempfile::TempDir;
use toold_proto::socket::log_path;

struct FakeProgram {
    folder: TempDir,
    options: StartOptions,
}

/// A folder with a program of the given shell script.
fn fake_program(script: &str) -> FakeProgram {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("toold");
    // Renamed into place: a file that is open for writing, here or in a child of another test that
    // was forked meanwhile, cannot be run.
    fs::write(folder.path().join("new"), format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(folder.path().join("new"), fs::Permissions::from_mode(0o755)).unwrap();
    let status = std::process::Command::new("cp").arg(folder.path().join("new")).arg(&program).status().unwrap();
    assert!(status.success());
    let options = StartOptions { program: Some(program), wait: Duration::from_secs(10), ..StartOptions::default() };
    FakeProgram { folder, options }
}

impl FakeProgram {
    fn socket(&self) -> PathBuf {
        self.folder.path().join("run/toold.sock")
    }
}

#[tokio::test]
async fn a_missing_listener_is_an_error() {
    let place = fake_program("exit 0");
    let error = Client::connect(&place.socket()).await.unwrap_err();
    assert!(matches!(error, ClientError::NotRunning { .. }), "{error}");
}

#[tokio::test]
async fn a_failed_start_shows_only_its_own_output() {
    let place = fake_program(r#"echo "$1 $2 $TOOLD_SOCKET: no room" >&2; exit 3"#);
    let log = log_path(&place.socket());
    fs::create_dir(log.parent().unwrap()).unwrap();
    fs::write(&log, "an earlier start\n").unwrap();
    let error = Client::connect_or_start(&place.socket(), &place.options).await.unwrap_err();
    let ClientError::StartFailed { status, output, .. } = error else { panic!("{error}") };
    assert_eq!(status.code(), Some(3));
    assert_eq!(output, format!("serve --detached {}: no room", place.socket().display()));
}

#[tokio::test]
async fn the_log_is_the_users_alone() {
    let mut place = fake_program("exit 0");
    place.options.wait = Duration::from_millis(50);
    Client::connect_or_start(&place.socket(), &place.options).await.unwrap_err();
    let mode = |path: PathBuf| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(log_path(&place.socket())), 0o600);
    assert_eq!(mode(place.folder.path().join("run")), 0o700);
}

#[tokio::test]
async fn a_failed_start_leaves_nothing_beside_the_socket() {
    let place = fake_program("echo no room >&2; exit 1");
    let error = Client::connect_or_start(&place.socket(), &place.options).await.unwrap_err();
    assert!(error.to_string().contains("no room"), "{error}");
    assert_eq!(fs::read_dir(place.folder.path().join("run")).unwrap().count(), 0);
}

#[tokio::test]
async fn a_daemon_that_never_serves_is_given_up() {
    let mut place = fake_program("echo busy; exit 0");
    place.options.wait = Duration::from_millis(50);
    let error = Client::connect_or_start(&place.socket(), &place.options).await.unwrap_err();
    assert!(matches!(error, ClientError::NoAnswer { .. }), "{error}");
}
