//! The place of the socket, by the cases that the clients in all languages are tested with.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::socket::{DaemonRecord, SocketFinder};
use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize)]
struct PlaceCase {
    case: String,
    environment: BTreeMap<String, String>,
    #[serde(default)]
    folders: Vec<PathBuf>,
    /// Texts; other values stand for their JSON.
    #[serde(default)]
    files: BTreeMap<PathBuf, Value>,
    socket: Option<PathBuf>,
}

#[test]
fn the_socket_is_found_as_in_the_table() {
    let cases: Vec<PlaceCase> = serde_json::from_str(include_str!("../../tests/socket.json")).unwrap();
    assert!(cases.len() > 10);
    for PlaceCase { case, environment, folders, files, socket } in cases {
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let finder = SocketFinder {
            var: &|name| environment.get(name).cloned(),
            read: &|path| files.get(path).map(text),
            is_folder: &|path| folders.iter().any(|folder| folder == path),
            uid: 7,
        };
        assert_eq!(finder.find().ok(), socket, "{case}");
    }
}

#[test]
fn a_daemon_records_what_a_client_checks() {
    let stat = "41 (toold) S 1 41 41 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 9 0 900 1 2\n";
    let read = |path: &Path| match path.to_str()? {
        "/proc/self/stat" | "/proc/41/stat" => Some(stat.to_owned()),
        "/proc/sys/kernel/random/boot_id" => Some("b1\n".to_owned()),
        "/record" => Some(r#"{"socket":"/s","database":"/d","pid":41,"started":900,"boot_id":"b1"}"#.to_owned()),
        _ => None,
    };
    let finder = SocketFinder { var: &|_| None, read: &read, is_folder: &|_| false, uid: 7 };
    let own = finder.own_record(41, "/s".into(), "/d".into());
    assert_eq!(finder.running(Path::new("/record")), Some(own));
}

#[test]
fn a_daemon_that_is_being_killed_is_known() {
    let own = |stat: Option<&'static str>| {
        let read = move |path: &Path| stat.filter(|_| path == Path::new("/proc/41/stat")).map(str::to_owned);
        let finder = SocketFinder { var: &|_| None, read: &read, is_folder: &|_| false, uid: 7 };
        let record = DaemonRecord { started: Some(900), ..finder.own_record(41, "/s".into(), "/d".into()) };
        finder.is_ending(&record)
    };
    assert!(!own(Some("41 (toold) S 1 41 41 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 9 0 900 1 2\n")));
    // Its first thread, while others still end, and while it closes its files.
    assert!(own(Some("41 (toold) Z 1 41 41 0 -1 4194564 1 2 3 4 5 6 7 8 20 0 9 0 900 0 0\n")));
    assert!(own(Some("41 (toold) R 1 41 41 0 -1 4194564 1 2 3 4 5 6 7 8 20 0 9 0 900 1 2\n")));
    assert!(own(None));
    // A system without `/proc`.
    let finder = SocketFinder { var: &|_| None, read: &|_| None, is_folder: &|_| false, uid: 7 };
    assert!(!finder.is_ending(&finder.own_record(41, "/s".into(), "/d".into())));
}
