//! Messages without sense, many and large.

use serde_json::json;

use super::scene::{TrustScene, expect_refusal, text};

/// The memory of a process in KiB.
fn resident(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim_end_matches("kB").trim().parse().unwrap()
}

#[test]
fn garbage_keeps_nobody_from_calling() {
    let Some(scene) = TrustScene::start() else { return };
    let mut client = scene.laptop.connect();
    assert_eq!(text(&client.tool("build_mark", json!({"id": "before"}))), "marked before");
    let before = resident(scene.build.pid());
    let subjects =
        ["toold.build.call", "toold.any.gpu.call", "toold.build.cancel.x", "toold.build.alive.x", "toold.answer.x"];
    let garbage: [&[u8]; 6] = [b"", b"{}", b"null", b"[[[[[[", b"\xff\xfe\0", br#"{"kind":"call","signature":"00"}"#];
    let total = 20_000;
    let messages = || {
        (0..total)
            .map(|n| (subjects[n % subjects.len()].to_owned(), garbage[n / subjects.len() % garbage.len()].to_vec()))
    };
    expect_refusal(&scene.build, "malformed", "garbage", || scene.bus.flood(messages()));
    let large = vec![b'['; 1024 * 1024 - 200];
    scene.bus.flood((0..100).map(|n| (subjects[n % subjects.len()].to_owned(), large.clone())));
    // Objects inside objects, without an end.
    let nested = format!("{}{}", r#"{"kind":"call","x":"#, r#"{"a":"#.repeat(100_000));
    scene.bus.flood((0..10).map(|_| ("toold.build.call".to_owned(), nested.clone().into_bytes())));
    scene.mark("after");
    let grown = resident(scene.build.pid()).saturating_sub(before);
    assert!(grown < 200 * 1024, "it has grown by {grown} KiB");
    // The client library reports each message at the level of these tests.
    let lines = scene.build.log().lines().filter(|line| line.contains("refused a message")).count();
    assert!(lines < 200, "{lines} lines of the log are about refused messages");
    assert_eq!(scene.marks(), ["before", "after"]);

    // In the buckets and streams too.
    for (bucket, key) in [
        ("toold_daemons", "mallory"),
        ("toold_daemons", "build"),
        ("toold_tools", "build.odd"),
        ("toold_tools", "odd"),
        ("toold_grants", "anna.odd"),
        ("toold_grants", "mallory.odd"),
    ] {
        for bytes in garbage.iter().copied().chain([&large[..]]) {
            scene.bus.put(bucket, key, bytes);
        }
    }
    for subject in ["toold.ask.anna.odd", "toold.audit.build", "toold.audit.mallory", "toold.answer.odd"] {
        for bytes in garbage {
            scene.bus.send(subject, None, bytes);
        }
    }
    assert_eq!(text(&client.tool("build_mark", json!({"id": "still"}))), "marked still");
}
