//! Killed writers and full disks: every file is either the old one or the new one.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use toold_host::files;
use toold_host::replace::{Expected, replace};
use toold_test_kit::own_process;

const FILES: usize = 8;
const SIZE: usize = 40_000;

const WRITER: &str = "crash::the_writer_itself";
/// The folder for this program when it is started again as a writer.
const FOLDER: &str = "TOOLD_TEST_WRITER";
/// How many times the writer writes; forever if it is not set.
const ROUNDS: &str = "TOOLD_TEST_ROUNDS";

/// The process that `kill -9` hits: replaces files forever, and reports each.
#[test]
fn the_writer_itself() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let mut stdout = std::io::stdout();
    let rounds = std::env::var(ROUNDS).ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(usize::MAX);
    for round in 0..rounds {
        let path = Path::new(&folder).join(format!("f{}", round % FILES));
        let letter = b'a' + ((round / FILES + 1) % 26) as u8;
        let old = files::open(&path).unwrap();
        let written = replace(&path, &vec![letter; SIZE + round % 7], Expected::Same(&old));
        let reported = match written {
            Ok(()) => writeln!(stdout, "written"),
            Err(error) => writeln!(stdout, "failed: {error}"),
        };
        if reported.is_err() {
            return;
        }
    }
}

fn writer(folder: &Path) -> Child {
    let mut command = own_process(WRITER);
    command.env(FOLDER, folder);
    command.stdout(Stdio::piped()).stderr(Stdio::null()).process_group(0);
    command.spawn().unwrap()
}

fn filled() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for n in 0..FILES {
        std::fs::write(folder.path().join(format!("f{n}")), vec![b'a'; SIZE]).unwrap();
    }
    folder
}

fn check_whole(folder: &Path) {
    for n in 0..FILES {
        let bytes = std::fs::read(folder.join(format!("f{n}"))).unwrap();
        assert!(bytes.iter().all(|byte| *byte == bytes[0]), "f{n} is a mixture");
        assert!((SIZE..SIZE + 7).contains(&bytes.len()), "f{n} has {} bytes", bytes.len());
    }
}

#[test]
fn killed_writer_leaves_complete_files() {
    let folder = filled();
    let mut written = 0;
    let mut kills = 0;
    let mut random = 12345u64;
    while written < 1000 {
        random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let wanted = 10 + (random >> 33) % 60;
        let mut child = writer(folder.path());
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        written += lines.map_while(Result::ok).filter(|line| line.ends_with("written")).take(wanted as usize).count();
        child.kill().unwrap();
        child.wait().unwrap();
        kills += 1;
        check_whole(folder.path());
    }
    // A new file has a name of its own only briefly.
    let left = std::fs::read_dir(folder.path()).unwrap().count() - FILES;
    assert!(left <= kills, "{left} files are left of {kills} writers");
}

#[test]
fn write_that_fails_half_way_keeps_the_old_file() {
    let folder = filled();
    let hard_link = folder.path().join("second-name");
    std::fs::hard_link(folder.path().join("f0"), &hard_link).unwrap();
    // No file may grow beyond 8 KiB: for a writer, that is like a full disk.
    let program = std::env::current_exe().unwrap();
    let line = format!("ulimit -f 8; trap '' XFSZ; exec {} --exact {WRITER} --nocapture", program.display());
    let mut command = Command::new("bash");
    command
        .args(["-c", &line])
        .env(FOLDER, folder.path())
        .env(ROUNDS, (2 * FILES).to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let reported: Vec<String> = lines.filter(|line| line.contains("failed: ") || line.contains("written")).collect();
    // It ends by itself: if killed, it could be in the middle of restoring a file with two names.
    child.wait().unwrap();
    assert_eq!(reported.len(), 2 * FILES);
    assert!(reported.iter().all(|line| line.contains("failed: can't write")), "{reported:?}");
    for n in 0..FILES {
        let bytes = std::fs::read(folder.path().join(format!("f{n}"))).unwrap();
        assert!(bytes == vec![b'a'; SIZE], "f{n}");
    }
    let left = std::fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(left, FILES + 1);
    drop(File::open(hard_link).unwrap());
}
