//! The sandbox of programs that tools run: the files that they may change, and whether they may use the network.
//!
//! [`Sandbox`] holds the configuration; [`Confinement`] is the restriction of one program, which the
//! [`launcher`] applies to itself before it becomes the program.

pub mod control_watch;
mod existing;
mod floors;
mod git_control;
#[cfg(target_os = "linux")]
mod handover;
mod home_settings;
pub mod network;
mod other_mounts;
mod other_names;
mod root_secrets;
mod secret_index;
#[cfg(target_os = "linux")]
mod sockets;
mod surroundings;
mod tool_caches;
mod tracked;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;

use toold_engine::cx::Cx;
use toold_engine::policy::{Policy, is_secret};
use toold_engine::session::Session;

use crate::exclude::Exclusions;
use crate::launcher;
use crate::launcher::order::NO_SANDBOX;
use crate::launcher::stand_in::StandIn;
use crate::sandbox::control_watch::MadeRepositories;
use crate::sandbox::floors::FloorSupport;
use crate::sandbox::home_settings::HomeSettings;
use crate::sandbox::network::call::CallNetwork;
use crate::sandbox::network::hosts::NetworkHosts;
use crate::sandbox::other_mounts::OtherMounts;
use crate::sandbox::other_names::OtherNames;
use crate::sandbox::root_secrets::RootSecrets;
use crate::sandbox::secret_index::SecretIndex;

pub use crate::launcher::life::ConfinedLife;
pub use crate::launcher::order::Confinement;
pub use crate::sandbox::floors::{
    CommandToConfine, FoundSecrets, LineToConfine, SessionRecords, confined_effects_of, overwritten,
};

/// The files that a confined program may change.
///
/// Later modes are stricter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum ConfinementMode {
    /// Programs are not confined.
    #[default]
    Off,
    /// Everything except files that control the daemon. The daemon's own files cannot be read either.
    Guard,
    /// The session's folders and the configured ones.
    WorkspaceWrite,
    /// Nothing that outlives the program.
    ReadOnly,
}

/// The configured rules.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SandboxRules {
    pub mode: ConfinementMode,
    /// Whether programs may use the network. In the mode `Guard` they always may. In the stricter modes they can never
    /// reach other programs of this machine that listen on a Unix socket, such as this daemon.
    pub network: bool,
    /// Programs reach only hosts that are listed or that a person allows, by a guard. Then `network` is not set.
    pub hosts: Option<Arc<NetworkHosts>>,
    /// Absolute folders that may also be changed in the mode `WorkspaceWrite`.
    pub writable: Vec<PathBuf>,
    /// Commands that can change nothing need no ask. Applies only in the mode `ReadOnly` without the network.
    pub ease: bool,
    /// Secret files that a build may read on its floor: absolute, or relative to the session's folders. Only the user's
    /// rules have them.
    pub expose: Vec<PathBuf>,
    /// Unix sockets that a build may connect to on its floor. Only the user's rules have them.
    pub sockets: Vec<PathBuf>,
    pub home: Option<PathBuf>,
    /// Why the system cannot provide the sandbox. Then no program runs.
    pub refused: Option<String>,
}

/// One per daemon. Its rules may be replaced while programs run; running programs keep the rules they started with.
#[derive(Debug, Default)]
pub struct Sandbox {
    rules: Mutex<Arc<SandboxRules>>,
    /// The rules of trusted projects that set any.
    of_projects: Mutex<Arc<BTreeMap<PathBuf, SandboxRules>>>,
    /// Some earlier rules waived asks.
    eased: AtomicBool,
    /// Tried when it is first needed.
    support: OnceLock<FloorSupport>,
    /// Whether the system gives a network by host.
    has_network: OnceLock<bool>,
    secrets: SecretIndex,
    other_names: OtherNames,
    other_mounts: OtherMounts,
    of_root: RootSecrets,
    home_settings: HomeSettings,
    made_repositories: MadeRepositories,
}

/// The configured sandbox is unavailable, so nothing runs.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("nothing runs: the configured sandbox is not available: {0}")]
pub struct SandboxUnavailable(pub String);

/// Secrets below the home folder that are not direct entries of it.
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

impl ConfinementMode {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Guard => "guard",
            Self::ReadOnly => "read-only",
            Self::WorkspaceWrite => "workspace-write",
        }
    }
}

impl SandboxRules {
    /// Checks whether this system supports the rules, by confining a program that does nothing. Blocks for some
    /// milliseconds.
    ///
    /// # Errors
    /// The missing feature, in words for people.
    pub fn try_out(&self) -> Result<(), String> {
        if self.mode == ConfinementMode::Off {
            return Ok(());
        }
        let guard = self.mode == ConfinementMode::Guard;
        let confinement = Confinement { guard, network: self.network, ..Confinement::default() };
        confinement.try_out("/bin/true", &[])?;
        if self.hosts.is_some() {
            network::try_out(&confinement)?;
        }
        if !self.ease {
            return Ok(());
        }
        let confinement = Confinement { needs_scope: true, ..confinement };
        let words = "ease needs Linux 6.12 or later: in earlier versions, commands can send signals to other processes";
        confinement.try_out("/bin/true", &[]).map_err(|error| format!("{words} ({error})"))
    }

    /// `read-only, no network`, or `guard`; `None` when programs are not confined.
    pub fn describe(&self) -> Option<String> {
        let network = match (self.network, &self.hosts) {
            (true, _) => "network",
            (false, Some(_)) => "network by host",
            (false, None) => "no network",
        };
        match self.mode {
            ConfinementMode::Off => None,
            ConfinementMode::Guard => Some(self.mode.as_str().to_owned()),
            ConfinementMode::ReadOnly | ConfinementMode::WorkspaceWrite => {
                Some(format!("{}, {network}", self.mode.as_str()))
            }
        }
    }

    /// These rules, tightened by those of a project that a person trusted: never loosened.
    fn tightened(&self, by: &Self) -> Self {
        let mut rules = self.clone();
        rules.refused = self.refused.clone().or_else(|| by.refused.clone());
        match (self.mode, by.mode) {
            // These two modes say nothing about the network and folders.
            (_, ConfinementMode::Off | ConfinementMode::Guard) => rules.mode = self.mode.max(by.mode),
            (ConfinementMode::Off | ConfinementMode::Guard, _) => {
                let Self { refused, home, expose, sockets, .. } = rules;
                rules = Self { refused, home, expose, sockets, ..by.clone() };
            }
            (
                ConfinementMode::ReadOnly | ConfinementMode::WorkspaceWrite,
                ConfinementMode::ReadOnly | ConfinementMode::WorkspaceWrite,
            ) => {
                rules.network = self.network && by.network;
                rules.hosts = match (&self.hosts, &by.hosts) {
                    (Some(own), Some(other)) => Some(Arc::new(own.and(other))),
                    (Some(hosts), None) if by.network => Some(hosts.clone()),
                    (None, Some(hosts)) if self.network => Some(hosts.clone()),
                    _ => None,
                };
                rules.ease = self.ease || by.ease;
                if by.mode == ConfinementMode::ReadOnly {
                    rules.mode = ConfinementMode::ReadOnly;
                    rules.writable.clear();
                }
            }
        }
        rules
    }

    /// Whether programs can neither change nor send anything, and the configuration waives asks for that.
    pub fn eases(&self) -> bool {
        self.ease
            && self.refused.is_none()
            && self.mode == ConfinementMode::ReadOnly
            && !self.network
            && self.hosts.is_none()
    }
}

impl Sandbox {
    pub fn replace(&self, rules: SandboxRules) {
        self.eased.fetch_or(rules.eases(), Ordering::Relaxed);
        *self.rules.lock() = Arc::new(rules);
    }

    /// Replaces the rules of all projects, by real path. They tighten the user's rules in sessions of the project.
    pub fn replace_projects(&self, rules: BTreeMap<PathBuf, SandboxRules>) {
        self.eased.fetch_or(rules.values().any(|rules| rules.ease), Ordering::Relaxed);
        *self.of_projects.lock() = Arc::new(rules);
    }

    /// The user's rules.
    pub fn rules(&self) -> Arc<SandboxRules> {
        self.rules.lock().clone()
    }

    /// The rules in a session of a project.
    pub fn rules_in(&self, project: &Path) -> Arc<SandboxRules> {
        let of_projects = self.of_projects.lock().clone();
        match of_projects.get(project) {
            Some(own) => Arc::new(self.rules().tightened(own)),
            None => self.rules(),
        }
    }

    /// Whether rules that are no longer active may have waived asks for a program: then its needs must be decided again
    /// before it runs.
    pub fn eases_no_more(&self, project: &Path) -> bool {
        self.eased.load(Ordering::Relaxed) && !self.rules_in(project).eases()
    }

    /// The restriction for a program that only reads its input, whatever the rules are: it can change nothing, reaches no
    /// network, and does not see secrets in known places.
    ///
    /// # Errors
    /// When the configured sandbox is unavailable.
    pub fn confine_reader(&self, session: &Session, policy: &Policy) -> Result<Confinement, SandboxUnavailable> {
        let own = self.rules_in(session.project());
        let (home, refused) = (own.home.clone(), own.refused.clone());
        let rules = SandboxRules {
            mode: ConfinementMode::ReadOnly,
            network: false,
            ease: false,
            home,
            refused,
            ..SandboxRules::default()
        };
        // Nothing is confined only where the mode is off.
        Ok(self.confine_by(&rules, session, policy)?.unwrap_or_default())
    }

    /// Opens the network by host for the program that `confinement` confines; `None` if it has none. The network must
    /// live as long as the program. `line`: for the person who is asked. `locked`: hosts that its lock file names.
    /// `background`: the program outlives its call.
    ///
    /// # Errors
    /// When the system does not provide it.
    pub async fn open_network(
        &self,
        cx: &Cx,
        confinement: &mut Option<Confinement>,
        line: &str,
        locked: Vec<String>,
        background: bool,
    ) -> Result<Option<Arc<CallNetwork>>, SandboxUnavailable> {
        let Some(confinement) = confinement.as_mut().filter(|confinement| confinement.by_host) else { return Ok(None) };
        // Without rules, which have just changed, no host is listed.
        let hosts = self.rules_in(cx.session.project()).hosts.clone().unwrap_or_default();
        let hosts = Arc::new(hosts.with_allowed(&cx.allowed_hosts()).with_locked(locked));
        network::open(cx, hosts, line, background, confinement).await.map(Some).map_err(SandboxUnavailable)
    }

    fn confine_by(
        &self,
        rules: &SandboxRules,
        session: &Session,
        policy: &Policy,
    ) -> Result<Option<Confinement>, SandboxUnavailable> {
        if rules.mode == ConfinementMode::Off && rules.refused.is_none() {
            return Ok(None);
        }
        if let Some(why) = &rules.refused {
            return Err(SandboxUnavailable(why.clone()));
        }
        let home = rules.home.as_deref();
        let places = places_of(session)?;
        let places: Vec<&PathBuf> = places.iter().filter(|path| !is_wide(path, home)).collect();
        let words = rules.describe().unwrap_or_default();
        if rules.mode == ConfinementMode::Guard {
            return Ok(Some(Confinement { words, ..Confinement::guarding(policy, &session.places()) }));
        }
        let network = rules.network;
        let by_host = rules.hosts.is_some();
        let mut confinement =
            Confinement { network, by_host, needs_scope: rules.eases(), words, ..Confinement::default() };
        if rules.mode == ConfinementMode::WorkspaceWrite {
            confinement.writable = places.iter().map(|path| (*path).clone()).chain(writable_elsewhere(rules)).collect();
            let mut control = control_places(policy, &confinement.writable);
            control.retain(|path| confinement.writable.iter().any(|place| path.starts_with(place)));
            confinement.protected = control;
        }
        confinement.masked = secrets(home, &places);
        confinement.masked.extend(policy.private.iter().filter(|path| path.exists()).cloned());
        let elsewhere = self.other_mounts.of(&confinement.masked);
        confinement.masked.extend(elsewhere);
        let mut elsewhere = self.other_mounts.of(&confinement.protected);
        elsewhere.retain(|path| confinement.writable.iter().any(|place| path.starts_with(place)));
        confinement.protected.extend(elsewhere);
        Ok(Some(confinement))
    }
}

/// The session's folders, as they were when it began. In the folder of another session, a command of that one may have put a
/// link in their place: what that leads to is none of them.
fn places_of(session: &Session) -> Result<Vec<PathBuf>, SandboxUnavailable> {
    let places: Vec<PathBuf> = session.places().into_iter().map(Cow::into_owned).collect();
    let leads_elsewhere = |place: &&PathBuf| place.canonicalize().is_ok_and(|real| real != **place);
    match places.iter().find(leads_elsewhere) {
        Some(place) => {
            let words = "is not the folder any more that the session was opened in: a link leads elsewhere";
            Err(SandboxUnavailable(format!("{} {words}", place.display())))
        }
        None => Ok(places),
    }
}

/// The folders of the configuration that may be written, where they really lie.
fn writable_elsewhere(rules: &SandboxRules) -> impl Iterator<Item = PathBuf> {
    rules.writable.iter().filter_map(|path| path.canonicalize().ok())
}

/// As for reads without permission: the home folder and the folders above it would allow too much.
fn is_wide(path: &Path, home: Option<&Path>) -> bool {
    path.parent().is_none() || home.is_some_and(|home| home.starts_with(path))
}

/// The existing files that control the daemon: those that the policy knows, and control files at the top of these
/// folders.
fn control_places(policy: &Policy, folders: &[impl AsRef<Path>]) -> Vec<PathBuf> {
    let named = folders.iter().flat_map(|path| CONTROL_FILES.map(|name| path.as_ref().join(name)));
    policy.control.iter().cloned().chain(named).filter(|path| path.exists()).collect()
}

/// Secrets in known places: in the home folder, and at the top of the session's folders.
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
    // The user's tickets of Kerberos.
    let tickets = format!("/tmp/krb5cc_{}", rustix::process::geteuid().as_raw());
    masked.extend(deep.chain(["/etc/shadow", "/etc/gshadow", &tickets].map(PathBuf::from)));
    masked.retain(|path| path.exists());
    masked
}

/// A script that reports which of its file arguments violate the promise of the mode `guard`: the first ones must not
/// be writable, the others must be hidden. `-w` asks the kernel, which respects read-only mounts, and changes nothing.
const LOOK: &str = r#"
/bin/true || exit
kept=$1
shift
while [ $# -gt 0 ]; do
    if [ "$kept" -gt 0 ]; then
        kept=$((kept - 1))
        [ ! -w "$1" ] || { echo "$1 can be changed" >&2; exit 1; }
    elif [ -d "$1" ]; then
        [ -z "$(ls -A "$1")" ] || { echo "$1 can be read" >&2; exit 1; }
    else
        [ ! -s "$1" ] || { echo "$1 can be read" >&2; exit 1; }
    fi
    shift
done"#;

/// Checks whether the mode `guard` keeps its promise on this system for the control files and the daemon's own files of
/// this policy, by running a check in a confined shell. Blocks for some milliseconds.
///
/// # Errors
/// The files that are not protected, or why programs cannot be confined, in words for people.
pub fn try_guard(policy: &Policy) -> Result<(), String> {
    let confinement = Confinement::guarding(policy, &[] as &[PathBuf]);
    let kept = confinement.protected.len().to_string();
    let mut arguments: Vec<OsString> = ["-c", LOOK, "sh", &kept].map(OsString::from).into();
    arguments.extend(confinement.protected.iter().chain(&confinement.masked).map(|path| path.clone().into()));
    confinement.try_out("/bin/sh", &arguments)
}

/// The process that starts a confined program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramStarter {
    Daemon,
    /// An agent, for a command of its own.
    Agent,
}

/// Held until a confined program has ended. Its stand-ins stay for what it has left behind.
pub struct AttendedProgram {
    _stand_ins: Vec<Arc<StandIn>>,
    life: Option<ConfinedLife>,
}

impl Drop for AttendedProgram {
    fn drop(&mut self) {
        if let Some(life) = &self.life {
            life.settle();
        }
    }
}

/// Attends a confined program, and all that it starts, from its start to its end: lets it make Unix sockets, if it may, covers
/// files again that somebody outside replaces, and keeps its stand-ins. Called just before it starts.
#[must_use]
pub fn attend(confinement: &mut Confinement, starter: ProgramStarter) -> AttendedProgram {
    let stand_ins = confinement.hold_stand_ins();
    #[cfg(target_os = "linux")]
    handover::prepare(confinement, starter, &stand_ins);
    #[cfg(not(target_os = "linux"))]
    let _ = starter;
    AttendedProgram { _stand_ins: stand_ins, life: confinement.life.clone() }
}

#[cfg(not(target_os = "linux"))]
impl ConfinedLife {
    /// Nothing is confined.
    pub fn is_over(&self) -> bool {
        true
    }

    fn settle(&self) {}
}

/// Why no confined program makes Unix sockets here, as a sentence for people; `None` if those do that may.
pub fn sockets_refused(starter: ProgramStarter) -> Option<String> {
    #[cfg(target_os = "linux")]
    return sockets::refused(starter);
    #[cfg(not(target_os = "linux"))]
    return {
        let _ = starter;
        None
    };
}

impl Confinement {
    /// No restriction except for files that control the daemon and the daemon's own files.
    fn guarding(policy: &Policy, places: &[impl AsRef<Path>]) -> Self {
        let masked = policy.private.iter().filter(|path| path.exists()).cloned().collect();
        Self { guard: true, protected: control_places(policy, places), masked, ..Self::default() }
    }

    fn try_out(&self, program: &str, own_arguments: &[OsString]) -> Result<(), String> {
        let output = launcher::command(Path::new(program), None, Some(self))
            .args(own_arguments)
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .current_dir("/")
            .stdin(Stdio::null())
            .output()
            .map_err(|error| format!("can't run the launcher: {error}"))?;
        let words = String::from_utf8_lossy(&output.stderr);
        match (output.status.success(), words.lines().next_back()) {
            (true, _) => Ok(()),
            (false, Some(line)) => {
                let advice = launcher::advice().unwrap_or_default();
                Err(format!("{}{advice}", line.trim_start_matches(NO_SANDBOX)))
            }
            (false, None) => Err(format!("a confined program ended with {}", output.status)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(mode: ConfinementMode, network: bool, ease: bool) -> SandboxRules {
        let writable = if mode == ConfinementMode::WorkspaceWrite { vec!["/own".into()] } else { Vec::new() };
        SandboxRules { mode, network, ease, writable, ..SandboxRules::default() }
    }

    #[test]
    fn a_project_makes_the_rules_stricter_and_never_looser() {
        use ConfinementMode::{Guard, Off, ReadOnly, WorkspaceWrite};
        let strictness = |mode| [Off, Guard, WorkspaceWrite, ReadOnly].iter().position(|known| *known == mode);
        let modes = [Off, Guard, ReadOnly, WorkspaceWrite];
        for (mode, of_project) in modes.iter().flat_map(|mode| modes.map(|of_project| (*mode, of_project))) {
            for (network, asked) in [(false, false), (false, true), (true, false), (true, true)] {
                let user = rules(mode, network, false);
                let mut own = rules(of_project, asked, false);
                own.writable.push("/etc".into());
                let both = user.tightened(&own);
                assert_eq!(strictness(both.mode), strictness(mode).max(strictness(of_project)));
                let reaches = match (mode, of_project) {
                    (Off | Guard, _) => asked,
                    (_, Off | Guard) => network,
                    _ => network && asked,
                };
                assert!(both.mode <= Guard || both.network == reaches, "{mode:?} {of_project:?}");
                let adds = both.writable.iter().any(|path| path == Path::new("/etc"));
                assert!(mode <= Guard || !adds, "{mode:?} {of_project:?}");
            }
        }
    }

    #[test]
    fn a_sandbox_that_a_project_asks_for_and_cannot_have_lets_nothing_run() {
        let own = SandboxRules { refused: Some("no".into()), ..rules(ConfinementMode::ReadOnly, false, false) };
        assert_eq!(SandboxRules::default().tightened(&own).refused.as_deref(), Some("no"));
        assert_eq!(rules(ConfinementMode::WorkspaceWrite, true, false).tightened(&own).refused.as_deref(), Some("no"));
    }

    #[test]
    fn a_session_elsewhere_has_the_users_rules() {
        let sandbox = Sandbox::default();
        sandbox.replace_projects([("/p".into(), rules(ConfinementMode::ReadOnly, false, false))].into());
        assert_eq!(sandbox.rules_in(Path::new("/p")).mode, ConfinementMode::ReadOnly);
        assert_eq!(sandbox.rules_in(Path::new("/p/q")).mode, ConfinementMode::Off);
    }
}
