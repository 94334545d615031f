//! The process that marks a tool's programs before they run: from a file in memory, and by the daemon's own program.

use std::path::PathBuf;

use serde_json::json;
use toold_tests::{Setup, TestDaemon};

use crate::principals::peers::ALLOW;

/// Becomes the program of its arguments, for which the system makes no files in memory.
const WITHOUT_MEMORY_FILES: &str = r#"
import ctypes, os, platform, struct, sys

number = {"x86_64": 319, "aarch64": 279}[platform.machine()]
load, equals, give = 0x20, 0x15, 0x06
steps = [(load, 0, 0, 0), (equals, 0, 1, number), (give, 0, 0, 0x00050001), (give, 0, 0, 0x7FFF0000)]
code = b"".join(struct.pack("HBBI", *step) for step in steps)
code = ctypes.create_string_buffer(code)
program = struct.pack("HP", len(steps), ctypes.addressof(code))
libc = ctypes.CDLL(None, use_errno=True)
for arguments in [(38, 1, 0, 0, 0), (22, 2, program, 0, 0)]:
    if libc.prctl(*arguments) != 0:
        sys.exit("prctl: " + os.strerror(ctypes.get_errno()))
os.execv(sys.argv[1], sys.argv[1:])
"#;

/// The descriptors of the daemon that are the launcher's file.
fn files(daemon: &TestDaemon) -> Vec<PathBuf> {
    let descriptors = std::fs::read_dir(format!("/proc/{}/fd", daemon.pid())).unwrap().flatten();
    let is_launcher = |path: &PathBuf| {
        std::fs::read_link(path).is_ok_and(|to| to.to_string_lossy().starts_with("/memfd:toold-launcher"))
    };
    descriptors.map(|entry| entry.path()).filter(is_launcher).collect()
}

/// The limit of a tool's program, how many of its descriptors are files in memory, and its session.
const STATE: &str = "ulimit -Hq\nls -l /proc/self/fd | grep -c memfd\ncut -d ' ' -f 6 /proc/$$/stat\n";

/// Tries to change a file in three ways.
const CHANGE: &str =
    "echo changed >$1 && echo done\necho changed >>$1 && echo done\necho changed 1<>$1 && echo done\n:\n";

fn setup() -> Setup {
    Setup::new().config(ALLOW).file("state.sh", STATE).file("change.sh", CHANGE)
}

#[track_caller]
fn run(daemon: &TestDaemon, command: &str) -> String {
    let ran = daemon.connect().tool("bash", json!({"command": command}));
    assert_eq!(ran["is_error"], false, "{ran}");
    ran["content"][0]["text"].as_str().unwrap().to_owned()
}

#[track_caller]
fn marks(daemon: &TestDaemon) {
    let said = run(daemon, "bash state.sh");
    let [mark, descriptors, session] = said.lines().map(|line| line.parse().unwrap()).collect::<Vec<u64>>()[..] else {
        panic!("{said}")
    };
    assert!((0xB_0000..=0xB_FFFF).contains(&mark), "{said}");
    assert_eq!(descriptors, 0, "{said}");
    let own = std::fs::read_to_string(format!("/proc/{}/stat", daemon.pid())).unwrap();
    assert_ne!(own.rsplit_once(')').unwrap().1.split_ascii_whitespace().nth(3), Some(session.to_string().as_str()));
}

#[test]
fn programs_are_marked_from_a_file_in_memory_that_no_tool_can_change() {
    let daemon = setup().start();
    marks(&daemon);
    let files = files(&daemon);
    let [file] = files.as_slice() else { panic!("one file serves all programs: {files:?}") };
    let before = std::fs::read(file).unwrap();
    let said = run(&daemon, &format!("bash change.sh {}", file.display()));
    assert!(said.contains("not permitted") || said.contains("denied"), "{said}");
    assert!(!said.contains("done"), "{said}");
    assert!(std::fs::read(file).unwrap() == before);
    marks(&daemon);
}

#[test]
fn programs_are_marked_by_the_daemons_own_program_where_files_in_memory_are_refused() {
    let daemon = setup().through(&["python3", "-c", WITHOUT_MEMORY_FILES]).start();
    marks(&daemon);
    assert_eq!(files(&daemon), [] as [PathBuf; 0]);
    assert!(daemon.log().contains("commands start through the daemon's own program"));
}
