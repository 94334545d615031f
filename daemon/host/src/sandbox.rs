//! What confines the programs that tools run: which files they may change, and whether they reach the network.
//!
//! [`Sandbox`] is what the configuration says; [`Confinement`] is what holds for one program. The program is
//! not confined by the daemon itself, but by a process between the two, which runs [`helper`] and then becomes
//! the program.

pub mod helper;
#[cfg(target_os = "linux")]
mod kernel;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use toold_engine::cx::Cx;
use toold_engine::policy::is_secret;

use crate::exclude::Exclusions;

/// What a confined program may change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Programs are not confined.
    #[default]
    Off,
    /// Nothing that outlives the program.
    ReadOnly,
    /// The session's folders and those that are configured.
    WorkspaceWrite,
}

/// What the configuration says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    pub mode: Mode,
    /// Whether programs reach the network. Other programs of this machine that listen on a Unix socket, such as
    /// this daemon, they never reach.
    pub network: bool,
    /// Absolute folders that may be changed too, in the mode `WorkspaceWrite`.
    pub writable: Vec<PathBuf>,
    /// Commands that can change nothing need no ask. Counts only in the mode `ReadOnly` without the network.
    pub ease: bool,
    pub home: Option<PathBuf>,
    /// The system cannot give what is asked for: why. Then no program runs.
    pub refused: Option<String>,
}

/// One for each daemon. Its rules may be replaced while programs run, which keep those that they began with.
#[derive(Debug, Default)]
pub struct Sandbox {
    rules: Mutex<Arc<Rules>>,
    /// Of projects that are trusted and say something.
    of_projects: Mutex<Arc<BTreeMap<PathBuf, Rules>>>,
    /// Some rules eased, once.
    eased: AtomicBool,
}

/// The sandbox that is configured cannot be given, so nothing runs.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("nothing is run: the sandbox that the configuration asks for cannot be had: {0}")]
pub struct Refused(pub String);

/// What holds for one program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Confinement {
    pub network: bool,
    /// Folders and files that it may change, with all that is in them.
    pub writable: Vec<PathBuf>,
    /// What in them it may not change.
    pub protected: Vec<PathBuf>,
    /// What it finds empty.
    pub masked: Vec<PathBuf>,
    /// For people and models, as [`Rules::describe`].
    pub words: String,
}

/// What lies below the home folder, deeper than its own entries, and holds secrets.
const DEEP_SECRETS: [&str; 8] = [
    ".docker/config.json",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".config/gh/hosts.yml",
    ".config/hub",
    ".config/gcloud",
    ".gem/credentials",
    ".m2/settings.xml",
];
const CONTROL_FILES: [&str; 4] = [".toold", ".hygge", ".aiexclude", ".toolignore"];

impl Mode {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::ReadOnly => "read-only",
            Self::WorkspaceWrite => "workspace-write",
        }
    }
}

impl Rules {
    /// Tries whether this system gives what is asked for, by confining a program that does nothing. Blocks for
    /// some milliseconds.
    ///
    /// # Errors
    /// What is missing, in words for people.
    pub fn try_out(&self) -> Result<(), String> {
        if self.mode == Mode::Off {
            return Ok(());
        }
        let confinement = Confinement { network: self.network, ..Confinement::default() };
        let (program, arguments) = confinement.wrap(Path::new("/bin/true"), None);
        let output = std::process::Command::new(program)
            .args(arguments)
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::null())
            .output()
            .map_err(|error| format!("can't run {}: {error}", helper::PROGRAM))?;
        let words = String::from_utf8_lossy(&output.stderr);
        match (output.status.success(), words.lines().next_back()) {
            (true, _) => Ok(()),
            (false, Some(line)) => Err(line.trim_start_matches(helper::SAYS).to_owned()),
            (false, None) => Err(format!("a confined program ended with {}", output.status)),
        }
    }

    /// `read-only, no network`; `None` when programs are not confined.
    pub fn describe(&self) -> Option<String> {
        let network = if self.network { "network" } else { "no network" };
        (self.mode != Mode::Off).then(|| format!("{}, {network}", self.mode.as_str()))
    }

    /// These rules, made stricter by those of a project that a person trusted: never looser.
    fn tightened(&self, by: &Self) -> Self {
        let mut rules = self.clone();
        rules.refused = self.refused.clone().or_else(|| by.refused.clone());
        match (self.mode, by.mode) {
            (_, Mode::Off) => {}
            (Mode::Off, _) => {
                rules = Self { refused: rules.refused, home: rules.home, ..by.clone() };
            }
            (Mode::ReadOnly | Mode::WorkspaceWrite, Mode::ReadOnly | Mode::WorkspaceWrite) => {
                rules.network = self.network && by.network;
                rules.ease = self.ease || by.ease;
                if by.mode == Mode::ReadOnly {
                    rules.mode = Mode::ReadOnly;
                    rules.writable.clear();
                }
            }
        }
        rules
    }

    /// Whether what runs can neither change nor send anything, and the configuration trusts that.
    pub fn eases(&self) -> bool {
        self.ease && self.refused.is_none() && self.mode == Mode::ReadOnly && !self.network
    }
}

impl Sandbox {
    pub fn replace(&self, rules: Rules) {
        self.eased.fetch_or(rules.eases(), Ordering::Relaxed);
        *self.lock() = Arc::new(rules);
    }

    /// Replaces the rules of all projects, by their real paths: they make the user's stricter in sessions there.
    pub fn replace_projects(&self, rules: BTreeMap<PathBuf, Rules>) {
        self.eased.fetch_or(rules.values().any(|rules| rules.ease), Ordering::Relaxed);
        *self.of_projects.lock().expect("no code panics while it holds this lock") = Arc::new(rules);
    }

    /// The user's.
    pub fn rules(&self) -> Arc<Rules> {
        self.lock().clone()
    }

    /// Those that hold in a session of a project.
    pub fn rules_in(&self, project: &Path) -> Arc<Rules> {
        let of_projects = self.of_projects.lock().expect("no code panics while it holds this lock").clone();
        match of_projects.get(project) {
            Some(own) => Arc::new(self.rules().tightened(own)),
            None => self.rules(),
        }
    }

    /// Whether a program may have been let off an ask by rules that hold no more: then its needs are to be judged
    /// again before it runs.
    pub fn eases_no_more(&self, project: &Path) -> bool {
        self.eased.load(Ordering::Relaxed) && !self.rules_in(project).eases()
    }

    fn lock(&self) -> MutexGuard<'_, Arc<Rules>> {
        self.rules.lock().expect("no code panics while it holds this lock")
    }

    /// What holds for a program of this call; `None` when programs are not confined. Reads a few folders.
    ///
    /// # Errors
    /// When the sandbox is configured and cannot be had.
    pub fn confine(&self, cx: &Cx) -> Result<Option<Confinement>, Refused> {
        let rules = self.rules_in(cx.session.project());
        if rules.mode == Mode::Off && rules.refused.is_none() {
            return Ok(None);
        }
        if let Some(why) = &rules.refused {
            return Err(Refused(why.clone()));
        }
        let home = rules.home.as_deref();
        // As for reads without leave: of the home folder and what lies above it too much would be given.
        let is_wide = |path: &Path| path.parent().is_none() || home.is_some_and(|home| home.starts_with(path));
        let places: Vec<PathBuf> = cx.session.places().into_iter().map(Cow::into_owned).collect();
        let places: Vec<&PathBuf> = places.iter().filter(|path| !is_wide(path)).collect();
        let words = rules.describe().unwrap_or_default();
        let mut confinement = Confinement { network: rules.network, words, ..Confinement::default() };
        let policy = cx.engine.policy.load();
        if rules.mode == Mode::WorkspaceWrite {
            confinement.writable = places.iter().map(|path| (*path).clone()).chain(rules.writable.clone()).collect();
            let named = confinement.writable.iter().flat_map(|path| CONTROL_FILES.map(|name| path.join(name)));
            let named: Vec<PathBuf> = named.collect();
            let control = policy.control.iter().cloned().chain(named);
            let touches = |path: &PathBuf| confinement.writable.iter().any(|place| path.starts_with(place));
            confinement.protected = control.filter(|path| touches(path) && path.exists()).collect();
        }
        confinement.masked = secrets(home, &places);
        confinement.masked.extend(policy.private.iter().filter(|path| path.exists()).cloned());
        Ok(Some(confinement))
    }
}

/// Secrets at places that are known: in the home folder, and at the top of the session's folders.
fn secrets(home: Option<&Path>, places: &[&PathBuf]) -> Vec<PathBuf> {
    let mut exclusions = Exclusions::default();
    let entries = |folder: &Path| std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut masked = Vec::new();
    for folder in home.into_iter().chain(places.iter().map(|place| place.as_path())) {
        for entry in entries(folder) {
            let path = entry.path();
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            if is_secret(&path) || (Some(folder) != home && exclusions.reason(&path, is_folder).is_some()) {
                masked.push(path);
            }
        }
    }
    let deep = home.into_iter().flat_map(|home| DEEP_SECRETS.map(|name| home.join(name)));
    masked.extend(deep.chain([PathBuf::from("/etc/shadow"), PathBuf::from("/etc/gshadow")]));
    masked.retain(|path| path.exists());
    masked
}

impl Confinement {
    /// The program to run instead of `program`, and the arguments to put before its own.
    pub(crate) fn wrap(&self, program: &Path, tool_mark: Option<u64>) -> (PathBuf, Vec<OsString>) {
        let mut arguments: Vec<OsString> = vec![helper::NAME.into()];
        if let Some(mark) = tool_mark {
            arguments.extend(["--tool-mark".into(), mark.to_string().into()]);
        }
        if self.network {
            arguments.push("--network".into());
        }
        for (flag, paths) in [("--write", &self.writable), ("--protect", &self.protected), ("--mask", &self.masked)] {
            arguments.extend(paths.iter().flat_map(|path| [flag.into(), path.clone().into_os_string()]));
        }
        arguments.extend(["--".into(), program.into()]);
        (helper::PROGRAM.into(), arguments)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(mode: Mode, network: bool, ease: bool) -> Rules {
        let writable = if mode == Mode::WorkspaceWrite { vec!["/own".into()] } else { Vec::new() };
        Rules { mode, network, ease, writable, ..Rules::default() }
    }

    #[test]
    fn a_project_makes_the_rules_stricter_and_never_looser() {
        use Mode::{Off, ReadOnly, WorkspaceWrite};
        let strictness = |mode| [Off, WorkspaceWrite, ReadOnly].iter().position(|known| *known == mode);
        for (mode, of_project) in
            [Off, ReadOnly, WorkspaceWrite].iter().flat_map(|m| [(*m, Off), (*m, ReadOnly), (*m, WorkspaceWrite)])
        {
            for (network, asked) in [(false, false), (false, true), (true, false), (true, true)] {
                let user = rules(mode, network, false);
                let mut own = rules(of_project, asked, false);
                own.writable.push("/etc".into());
                let both = user.tightened(&own);
                assert_eq!(strictness(both.mode), strictness(mode).max(strictness(of_project)));
                let reaches = match (mode, of_project) {
                    (Off, _) => asked,
                    (_, Off) => network,
                    _ => network && asked,
                };
                assert!(both.mode == Off || both.network == reaches, "{mode:?} {of_project:?}");
                let adds = both.writable.iter().any(|path| path == Path::new("/etc"));
                assert!(mode == Off || !adds, "{mode:?} {of_project:?}");
            }
        }
    }

    #[test]
    fn a_sandbox_that_a_project_asks_for_and_cannot_have_lets_nothing_run() {
        let own = Rules { refused: Some("no".into()), ..rules(Mode::ReadOnly, false, false) };
        assert_eq!(Rules::default().tightened(&own).refused.as_deref(), Some("no"));
        assert_eq!(rules(Mode::WorkspaceWrite, true, false).tightened(&own).refused.as_deref(), Some("no"));
    }

    #[test]
    fn a_session_elsewhere_has_the_users_rules() {
        let sandbox = Sandbox::default();
        sandbox.replace_projects([("/p".into(), rules(Mode::ReadOnly, false, false))].into());
        assert_eq!(sandbox.rules_in(Path::new("/p")).mode, Mode::ReadOnly);
        assert_eq!(sandbox.rules_in(Path::new("/p/q")).mode, Mode::Off);
    }
}
