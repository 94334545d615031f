//! Links that are swapped while files are read and written: the path that was judged is the path that is opened.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

use serde_json::{Value, json};
use toold_tests::{TestDaemon, Wire};

/// How many calls are made while links are swapped.
const ROUNDS: usize = 300;

/// Swaps the target of a link as fast as it can, until it is dropped.
struct Swapper {
    stop: Arc<AtomicBool>,
    swaps: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

impl Swapper {
    fn start(link: PathBuf, targets: [PathBuf; 2]) -> Self {
        let (stop, swaps) = (Arc::<AtomicBool>::default(), Arc::<AtomicU64>::default());
        let beside = link.with_extension("swap");
        symlink(&targets[0], &link).unwrap();
        let thread = std::thread::spawn({
            let (stop, swaps) = (stop.clone(), swaps.clone());
            move || {
                for target in targets.iter().cycle() {
                    if stop.load(Ordering::Relaxed) {
                        return;
                    }
                    symlink(target, &beside).unwrap();
                    fs::rename(&beside, &link).unwrap();
                    swaps.fetch_add(1, Ordering::Relaxed);
                }
            }
        });
        Self { stop, swaps, thread: Some(thread) }
    }

    fn end(mut self) -> u64 {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap();
        self.swaps.load(Ordering::Relaxed)
    }
}

/// A daemon, a folder that the session works in, and one that it may not touch.
struct RacingPlugins {
    daemon: TestDaemon,
    inside: PathBuf,
    outside: PathBuf,
}

impl RacingPlugins {
    fn new() -> Self {
        let daemon = TestDaemon::asking();
        let (inside, outside) = (daemon.work().join("real"), daemon.setup.path("outside"));
        for folder in [&inside, &outside] {
            fs::create_dir(folder).unwrap();
        }
        fs::write(inside.join("a.txt"), "mine\n").unwrap();
        fs::write(outside.join("a.txt"), "SECRET\n").unwrap();
        Self { daemon, inside, outside }
    }

    /// Writes inside are allowed; anything outside needs approval, and there is no client to give it.
    fn wire(&self) -> Wire {
        let mut wire = self.daemon.connect();
        wire.result("permissions.set_mode", json!({"mode": "accept_edits"}));
        wire
    }

    fn swap_folder(&self) -> Swapper {
        Swapper::start(self.daemon.work().join("d"), [self.inside.clone(), self.outside.clone()])
    }
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// No answer may contain any text from outside.
fn tells_nothing(result: &Value) -> bool {
    !result.to_string().contains("SECRET")
}

#[test]
fn nothing_outside_is_read_while_a_folder_is_swapped() {
    let plugins = RacingPlugins::new();
    let mut wire = plugins.wire();
    let swapper = plugins.swap_folder();
    let mut read = 0;
    for _ in 0..ROUNDS {
        let result = wire.tool("read", json!({"path": "d/a.txt"}));
        assert!(tells_nothing(&result), "{result}");
        read += usize::from(result["is_error"] == false);
        let found = wire.tool("grep", json!({"pattern": "SECRET|mine", "path": "d"}));
        assert!(tells_nothing(&found["content"]), "{found}");
    }
    assert!(swapper.end() > 2 && read < ROUNDS, "{read} of {ROUNDS} were read");
}

#[test]
fn nothing_outside_is_read_while_a_file_is_swapped() {
    let plugins = RacingPlugins::new();
    let mut wire = plugins.wire();
    let targets = [plugins.inside.join("a.txt"), plugins.outside.join("a.txt")];
    let swapper = Swapper::start(plugins.daemon.work().join("f.txt"), targets);
    for _ in 0..ROUNDS {
        let result = wire.tool("read", json!({"path": "f.txt"}));
        assert!(tells_nothing(&result), "{result}");
    }
    assert!(swapper.end() > 2);
}

#[test]
fn nothing_outside_is_written_while_a_folder_is_swapped() {
    let plugins = RacingPlugins::new();
    let mut wire = plugins.wire();
    let swapper = plugins.swap_folder();
    let mut written = 0;
    for n in 0..ROUNDS {
        let result = wire.tool("write", json!({"path": format!("d/n{n}.txt"), "content": "x"}));
        written += usize::from(result["is_error"] == false);
    }
    assert!(swapper.end() > 2);
    assert_eq!(names(&plugins.outside), ["a.txt"]);
    assert_eq!(fs::read_to_string(plugins.outside.join("a.txt")).unwrap(), "SECRET\n");
    assert_eq!(names(&plugins.inside).len(), written + 1);
}

#[test]
fn nothing_outside_is_edited_while_a_link_is_swapped() {
    let plugins = RacingPlugins::new();
    let mut wire = plugins.wire();
    fs::write(plugins.inside.join("e.txt"), "0\n").unwrap();
    fs::write(plugins.outside.join("e.txt"), "0\n").unwrap();
    let swapper = plugins.swap_folder();
    let mut edits = 0;
    for _ in 0..ROUNDS {
        // Edits need a file that was read and has not changed since.
        wire.tool("read", json!({"path": "d/e.txt"}));
        let (old, new) = (edits.to_string(), (edits + 1).to_string());
        let result = wire.tool("edit", json!({"path": "d/e.txt", "old": old, "new": new}));
        edits += usize::from(result["is_error"] == false);
    }
    assert!(swapper.end() > 2);
    assert_eq!(fs::read_to_string(plugins.outside.join("e.txt")).unwrap(), "0\n");
    assert_eq!(fs::read_to_string(plugins.inside.join("e.txt")).unwrap(), format!("{edits}\n"));
    assert_eq!(names(&plugins.outside), ["a.txt", "e.txt"]);
}
