//! A program at a terminal: keys in, screen out.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::process::{Child, Command, ExitStatus};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};
use toold_test_kit::until;

/// A program whose stdin, stdout and stderr are a terminal, of 100 columns and 30 rows by default. It is no
/// controlling terminal: Ctrl-C is a key, and makes no signal.
pub struct Terminal {
    keys: File,
    child: Child,
    /// Everything that was written, with the sequences that move and colour it.
    written: Arc<Mutex<Vec<u8>>>,
    reader: Option<JoinHandle<()>>,
}

impl Terminal {
    pub fn run(command: &mut Command) -> Self {
        Self::run_in(command, 100)
    }

    /// The same with a terminal of another width.
    pub fn run_in(command: &mut Command, columns: u16) -> Self {
        let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&ours).unwrap();
        unlockpt(&ours).unwrap();
        let name = ptsname(&ours, Vec::new()).unwrap().into_string().unwrap();
        let size = Winsize { ws_row: 30, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&ours, size).unwrap();
        let theirs = OpenOptions::new().read(true).write(true).open(name).unwrap();
        command.env("TERM", "xterm-256color").stdin(theirs.try_clone().unwrap());
        let child = command.stdout(theirs.try_clone().unwrap()).stderr(theirs).spawn().unwrap();
        // The command has copies of the program's end, and the end is not seen while they are open.
        command.stdin(std::process::Stdio::null()).stdout(std::process::Stdio::null());
        command.stderr(std::process::Stdio::null());
        let keys = File::from(ours);
        let written = Arc::new(Mutex::new(Vec::new()));
        let reader = std::thread::spawn({
            let (mut screen, written) = (keys.try_clone().unwrap(), Arc::clone(&written));
            move || {
                let mut bytes = [0; 4096];
                // Linux reports the closed other end as an error, EIO.
                while let Ok(n @ 1..) = screen.read(&mut bytes) {
                    written.lock().unwrap().extend_from_slice(&bytes[..n]);
                }
            }
        });
        Self { keys, child, written, reader: Some(reader) }
    }

    /// Types these characters.
    pub fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    /// Presses the key until the text is there: programs ignore keys that come too early. One that comes too late may be
    /// echoed in the middle of the text.
    #[track_caller]
    pub fn press_until(&mut self, key: &str, text: &str) {
        let without_echo = |text: &str| text.replace(key, "");
        let expected = without_echo(text);
        assert!(!expected.is_empty(), "{text:?} is nothing but echoes of {key:?}");
        until(&format!("{text:?} on the terminal"), || {
            if without_echo(&self.written()).contains(&expected) {
                return Some(());
            }
            // The program may be gone in the end, with its terminal.
            let _ = self.keys.write_all(key.as_bytes());
            None
        });
    }

    /// Waits until this was written.
    #[track_caller]
    pub fn wait_for(&self, text: &str) {
        until(&format!("{text:?} on the terminal"), || self.written().contains(text).then_some(()));
    }

    pub fn written(&self) -> String {
        String::from_utf8_lossy(&self.written.lock().unwrap()).into_owned()
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Waits for the program's end; gives its status and everything that it wrote.
    #[track_caller]
    pub fn end(mut self) -> (ExitStatus, String) {
        let status = until("the program ends", || self.child.try_wait().unwrap());
        let modes = tcgetattr(&self.keys).unwrap().local_modes;
        assert!(modes.contains(LocalModes::ICANON | LocalModes::ECHO), "the terminal is not as it was: {modes:?}");
        self.reader.take().expect("nobody else takes it").join().unwrap();
        (status, self.written())
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("--- the terminal ---\n{:?}", self.written());
        }
        // Needed after a failed test; harmless for a program that has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
