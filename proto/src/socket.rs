//! Where the daemon's socket is. Both sides must agree, so the rule is here. The clients in other languages have the same
//! rule; all are tested with the cases in `proto/tests/socket.json`.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// Why no place for a socket is found.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoSocketPlace {
    #[error(
        "can't tell where the daemon's socket is: none of TOOLD_SOCKET, XDG_RUNTIME_DIR, XDG_STATE_HOME and HOME is an \
         absolute path; set one"
    )]
    NoFolder,
    #[error("daemons with other databases than {0} serve at all usual places: set TOOLD_SOCKET to a path of your own")]
    AllTaken(PathBuf),
}

/// A running daemon, as it describes itself in two files: [`state_record_path`] and [`record_path`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DaemonRecord {
    pub socket: PathBuf,
    pub database: PathBuf,
    pub pid: u32,
    /// When the process was started, in clock ticks after boot; absent on systems without `/proc`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started: Option<u64>,
    /// Which boot of the system; absent on systems that do not number them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot_id: Option<String>,
}

/// The parts of the system that tell where the socket is. Nothing else is looked at.
#[derive(Clone, Copy)]
pub struct SocketFinder<'s> {
    /// The value of an environment variable.
    pub var: &'s dyn Fn(&str) -> Option<String>,
    /// The text of a file, if there is one that can be read.
    pub read: &'s dyn Fn(&Path) -> Option<String>,
    pub is_folder: &'s dyn Fn(&Path) -> bool,
    pub uid: u32,
}

impl SocketFinder<'_> {
    /// The socket of the user's daemon, whether or not it is running.
    ///
    /// `$TOOLD_SOCKET`; else where the daemon with this state folder's database runs, as it has recorded; else the first
    /// of `$XDG_RUNTIME_DIR/toold/toold.sock`, `/run/user/UID/toold/toold.sock` if there is such a folder, and
    /// `$XDG_STATE_HOME/toold/toold.sock` that is not the place of a running daemon with another database. An unset
    /// `$XDG_STATE_HOME` is `$HOME/.local/state`. Empty and relative values count as unset, as the XDG Base Directory
    /// Specification says.
    ///
    /// # Errors
    /// No variable names a folder, or daemons with other databases run at all these places.
    pub fn find(&self) -> Result<PathBuf, NoSocketPlace> {
        if let Some(path) = self.absolute("TOOLD_SOCKET") {
            return Ok(path);
        }
        let recorded = self.state().and_then(|state| self.running(&state_record_path(&state)));
        match recorded {
            Some(record) => Ok(record.socket),
            None => self.free_place(),
        }
    }

    /// The running daemon that a record describes; `None` for a record that a killed daemon left.
    pub fn running(&self, record: &Path) -> Option<DaemonRecord> {
        let record: DaemonRecord = serde_json::from_str(&(self.read)(record)?).ok()?;
        let runs = record.boot_id == self.boot_id()
            && record.started.is_none_or(|started| self.started(&record.pid.to_string()) == Some(started));
        runs.then_some(record)
    }

    /// The record of this process.
    pub fn own_record(&self, pid: u32, socket: PathBuf, database: PathBuf) -> DaemonRecord {
        DaemonRecord { socket, database, pid, started: self.started("self"), boot_id: self.boot_id() }
    }

    /// The state folder of the user's daemon.
    pub fn state(&self) -> Option<PathBuf> {
        let home = self.absolute("XDG_STATE_HOME").or_else(|| Some(self.absolute("HOME")?.join(".local/state")))?;
        Some(home.join("toold"))
    }

    fn free_place(&self) -> Result<PathBuf, NoSocketPlace> {
        let run_user = PathBuf::from(format!("/run/user/{}", self.uid));
        let run_user = (self.is_folder)(&run_user).then(|| run_user.join("toold"));
        let runtime = self.absolute("XDG_RUNTIME_DIR").map(|folder| folder.join("toold"));
        let state = self.state();
        let database = state.as_deref().map(database_path);
        let mut places = [runtime, run_user, state].into_iter().flatten().map(|folder| folder.join("toold.sock"));
        let is_free = |socket: &PathBuf| {
            let other = self.running(&record_path(socket)).map(|record| record.database);
            database.is_none() || other.is_none() || other == database
        };
        places.find(is_free).ok_or_else(|| database.clone().map_or(NoSocketPlace::NoFolder, NoSocketPlace::AllTaken))
    }

    fn absolute(&self, name: &str) -> Option<PathBuf> {
        (self.var)(name).map(PathBuf::from).filter(|path| path.is_absolute())
    }

    fn boot_id(&self) -> Option<String> {
        let id = (self.read)(Path::new("/proc/sys/kernel/random/boot_id"))?;
        Some(id.trim().to_owned())
    }

    /// Whether the process of a record has ended, or has begun to: after a kill it holds its locks and its socket for a moment
    /// longer. False where there is no `/proc`.
    pub fn is_ending(&self, record: &DaemonRecord) -> bool {
        /// `PF_EXITING` of `include/linux/sched.h`.
        const EXITING: u64 = 0x4;
        let field = |number| self.stat_field(&record.pid.to_string(), number);
        let is_gone = field(3).is_none_or(|state| ["Z", "X"].contains(&state.as_str()));
        let flags = field(9).and_then(|flags| flags.parse::<u64>().ok());
        record.started.is_some() && (is_gone || flags.is_some_and(|flags| flags & EXITING != 0))
    }

    /// When a process was started.
    fn started(&self, pid: &str) -> Option<u64> {
        self.stat_field(pid, 22)?.parse().ok()
    }

    /// A field of proc_pid_stat(5) by its number there, from the third one.
    fn stat_field(&self, pid: &str, number: usize) -> Option<String> {
        let stat = (self.read)(&Path::new("/proc").join(pid).join("stat"))?;
        // The second field is the name in parentheses, which may hold anything.
        let (_, rest) = stat.rsplit_once(')')?;
        rest.split_ascii_whitespace().nth(number - 3).map(str::to_owned)
    }
}

/// The database in a state folder.
pub fn database_path(state: &Path) -> PathBuf {
    state.join("toold.db")
}

/// Where the daemon of a state folder records its place.
pub fn state_record_path(state: &Path) -> PathBuf {
    state.join("daemon.json")
}

/// Where the daemon of a socket records its database.
pub fn record_path(socket: &Path) -> PathBuf {
    beside(socket, ".json")
}

/// The file in a state folder whose lock the one daemon of its database holds. It stays after a stop.
pub fn database_lock_path(state: &Path) -> PathBuf {
    state.join("daemon.lock")
}

/// The file whose lock the one daemon of a socket holds. It stays after a stop.
pub fn lock_path(socket: &Path) -> PathBuf {
    beside(socket, ".lock")
}

/// The output of a daemon that a client started, until it opens its log; see [`log_file`].
pub fn log_path(socket: &Path) -> PathBuf {
    beside(socket, ".log")
}

/// The log of the daemon with this state folder. Older ones are beside it, `.1` the newest of them.
pub fn log_file(state: &Path) -> PathBuf {
    state.join("log/toold.log")
}

/// Whether other users can remove files from a folder of this mode, and put others in their places. In one with the sticky
/// bit, such as `/tmp`, they cannot.
pub fn others_can_replace_files(mode: u32) -> bool {
    mode & 0o022 != 0 && mode & 0o1000 == 0
}

fn beside(socket: &Path, suffix: &str) -> PathBuf {
    let mut name = socket.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

#[cfg(test)]
mod tests;
