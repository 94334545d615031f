//! The arguments of the launcher, and the steps until it is the program.

use std::ffi::{OsStr, OsString};
#[cfg(target_os = "linux")]
use std::path::Path;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use super::life::ConfinedLife;
#[cfg(target_os = "linux")]
use super::mounts::OwnMounts;
use super::stand_in::{StandIn, StandInContent};

/// The first arguments that select the launcher: without confinement, and with it.
const LAUNCH: &str = "launch";
const CONFINE: &str = "sandbox-exec";
/// Variables of programs that write to a cache wherever they run, and the folder below the private one for temporary files
/// that they get on a floor; and where the cache usually is, below the home folder, if it may have a
/// [layer](Confinement::layers) instead.
const CACHES: [(&str, &str, &str); 11] = [
    ("CARGO_HOME", "cargo", ".cargo"),
    ("GOCACHE", "go-build", ".cache/go-build"),
    ("GOMODCACHE", "go-mod", "go/pkg"),
    ("GRADLE_USER_HOME", "gradle", ".gradle"),
    ("PIP_CACHE_DIR", "pip", ".cache/pip"),
    ("POETRY_CACHE_DIR", "poetry", ""),
    ("PYTHONPYCACHEPREFIX", "pycache", ""),
    ("npm_config_cache", "npm", ".npm"),
    ("UV_CACHE_DIR", "uv", ".cache/uv"),
    ("YARN_CACHE_FOLDER", "yarn", ""),
    ("npm_config_logs_dir", "npm-logs", ""),
];
/// The same of pnpm, for what its projects run alone: npm warns about a variable that it does not know.
#[cfg(target_os = "linux")]
const STORE: (&str, &str) = ("npm_config_store_dir", "pnpm");
#[cfg(target_os = "linux")]
const JAVA_OPTIONS: &str = "JAVA_TOOL_OPTIONS";
#[cfg(target_os = "linux")]
const NO_SERVER: &str = "-Dorg.gradle.daemon=false";
/// Programs that look for newer versions of themselves, when they find no cache that says that they just did.
const NO_UPDATES: [(&str, &str); 2] = [("PIP_DISABLE_PIP_VERSION_CHECK", "1"), ("npm_config_update_notifier", "false")];
/// The first argument for the process that makes the network of a session.
pub(crate) const NETWORK: &str = "sandbox-network";
/// The first argument for the process that covers files again beside a confined program.
pub(crate) const RENEW: &str = "sandbox-renew";
/// The prefix of messages about a program that was to be confined.
pub(crate) const NO_SANDBOX: &str = "toold: no sandbox: ";
/// The exit status of shells for a command that could not be run.
pub(crate) const FAILED: u8 = 126;

/// The program that the launcher becomes. The program's arguments follow those of the order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LaunchOrder {
    /// The mark of tools; see `tool_mark.rs`.
    pub(crate) tool_mark: Option<u64>,
    pub(crate) confinement: Option<Confinement>,
    /// The filter of system calls for the confinement, as hexadecimal digits.
    pub(crate) filter: Option<String>,
    pub(crate) program: PathBuf,
}

/// The restriction of one program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Confinement {
    /// It may change everything except protected files, and use the network. Then `network` and `writable` are ignored.
    pub guard: bool,
    pub network: bool,
    /// It may read only what `seen` and `listed` name, and `masked` places are refused instead of empty.
    pub floor: bool,
    /// Without namespaces: Landlock and seccomp carry all of it. For a floor that writes nothing.
    pub bare: bool,
    /// No version of Landlock above this one is used, whatever the kernel has.
    pub landlock: Option<u8>,
    /// It may use the internet protocols in the network namespace of `join`, and nothing else of the network. Then
    /// `network` is not set.
    pub by_host: bool,
    /// The namespaces that it enters, as paths: a user namespace, if there is one, before the network that it owns.
    pub join: Vec<PathBuf>,
    /// The program is not started if the kernel cannot prevent it from sending signals to other processes.
    pub needs_scope: bool,
    /// Folders and files that it may change, with everything inside.
    pub writable: Vec<PathBuf>,
    /// On a floor: the session's folders among them. The launcher does not need them.
    pub places: Vec<PathBuf>,
    /// Places inside the writable ones that it may not change.
    pub protected: Vec<PathBuf>,
    /// On a floor: folders of `PATH` in the session's. The launcher does not need them.
    pub path_folders: Vec<PathBuf>,
    /// On a floor: folders that appear with a layer in memory above, in which it may change the places of `layered`; nobody
    /// else sees that.
    pub layers: Vec<PathBuf>,
    pub layered: Vec<PathBuf>,
    /// On a floor: it may make Unix sockets, and connect to those. Needs `handover`.
    pub own_sockets: bool,
    /// Unix sockets of others that it may connect to as well. The launcher does not need them.
    pub named_sockets: Vec<PathBuf>,
    /// The name of the daemon's socket that takes over its connections, if it may make sockets, and the namespaces in which its
    /// files are covered again.
    pub handover: Option<String>,
    /// Places that appear empty.
    pub masked: Vec<PathBuf>,
    /// Places whose folders above cannot be renamed: in another one, the next program would see them.
    pub held: Vec<PathBuf>,
    /// On a floor: files that appear with another text, and read-only. Short, since each is an argument.
    pub replaced: Vec<(PathBuf, String)>,
    /// On a floor: places that it may read, with everything inside.
    pub seen: Vec<PathBuf>,
    /// On a floor: folders of which it may read the names inside.
    pub listed: Vec<PathBuf>,
    /// The session's folders: no link in them is followed to what may be read, since another program may have put it there.
    pub unfollowed: Vec<PathBuf>,
    /// Secrets among the masked places that `[sandbox] expose` could show, relative to the session's folders. The launcher
    /// does not need them.
    pub exposable: Vec<PathBuf>,
    /// Places that are protected too and may not exist yet, with what stands in for them. The launcher does not need them:
    /// see [`Confinement::hold_stand_ins`].
    pub stand_ins: Vec<(PathBuf, StandInContent)>,
    /// Follows the program with all that it starts. The launcher does not need it, but for the `handover` by which it begins.
    pub life: Option<ConfinedLife>,
    /// A description for people and models, as `SandboxRules::describe`. The launcher does not need it.
    pub words: String,
}

impl Confinement {
    /// Makes the stand-ins and protects them. The caller holds them until the program and all that it starts have ended.
    #[must_use]
    pub(crate) fn hold_stand_ins(&mut self) -> Vec<Arc<StandIn>> {
        let places = std::mem::take(&mut self.stand_ins);
        let held = places.iter().filter_map(|(path, content)| StandIn::hold(path, *content)).collect();
        // Where nothing can be made, the program cannot make it either.
        let is_new = |path: &PathBuf| path.symlink_metadata().is_ok() && !self.protected.contains(path);
        let new: Vec<PathBuf> = places.into_iter().map(|(path, _)| path).filter(is_new).collect();
        self.protected.extend(new);
        held
    }
}

impl LaunchOrder {
    /// The launcher's arguments up to the program.
    pub(crate) fn arguments(&self) -> Vec<OsString> {
        let mark = self.tool_mark.map(|mark| OsString::from(mark.to_string()));
        let Some(confinement) = &self.confinement else {
            return vec![LAUNCH.into(), mark.unwrap_or_default(), self.program.clone().into()];
        };
        let mut arguments: Vec<OsString> = vec![CONFINE.into()];
        arguments.extend(mark.into_iter().flat_map(|mark| ["--tool-mark".into(), mark]));
        let Confinement { guard, network, by_host, floor, bare, landlock, needs_scope, own_sockets, .. } = confinement;
        let flags = [
            ("--guard", guard),
            ("--network", network),
            ("--by-host", by_host),
            ("--floor", floor),
            ("--bare", bare),
            ("--needs-scope", needs_scope),
            ("--own-sockets", own_sockets),
        ];
        arguments.extend(flags.iter().filter(|(_, set)| **set).map(|(flag, _)| flag.into()));
        arguments.extend(landlock.iter().flat_map(|version| ["--landlock".into(), version.to_string().into()]));
        arguments.extend(confinement.handover.iter().flat_map(|name| ["--hand-over".into(), name.into()]));
        let Confinement { join, writable, layers, layered, protected, masked, held, .. } = confinement;
        let Confinement { seen, listed, unfollowed, .. } = confinement;
        let lists = [
            ("--join", join),
            ("--write", writable),
            ("--layer", layers),
            ("--layered", layered),
            ("--protect", protected),
            ("--mask", masked),
            ("--hold", held),
            ("--see", seen),
            ("--list", listed),
            ("--unfollowed", unfollowed),
        ];
        for (flag, paths) in lists {
            arguments.extend(paths.iter().flat_map(|path| [flag.into(), path.clone().into_os_string()]));
        }
        let replaced = confinement.replaced.iter();
        arguments.extend(replaced.flat_map(|(path, text)| ["--replace".into(), path.clone().into(), text.into()]));
        arguments.extend(self.filter.iter().flat_map(|filter| ["--filter".into(), filter.into()]));
        arguments.extend(["--".into(), self.program.clone().into()]);
        arguments
    }
}

/// Becomes the program if this process's arguments ask for it; returns only on failure. `filter` makes the filter for
/// a confinement if the arguments have none. Must be called before any other thread exists.
pub(crate) fn run_if_asked(
    mut arguments: impl Iterator<Item = OsString>,
    filter: impl FnOnce(&Confinement) -> Result<String, String>,
) -> Option<ExitCode> {
    arguments.next();
    let mode = arguments.next()?;
    let (order, says) = match mode.to_str()? {
        LAUNCH => (read_plain(&mut arguments), "toold: "),
        CONFINE => (read_confined(&mut arguments), NO_SANDBOX),
        NETWORK | RENEW => return Some(serve(&mode, arguments)),
        _ => return None,
    };
    let error = match order {
        Ok(order) => become_program(order, arguments, filter),
        Err(error) => error,
    };
    eprintln!("{says}{error}");
    Some(ExitCode::from(FAILED))
}

fn read_plain(arguments: &mut impl Iterator<Item = OsString>) -> Result<LaunchOrder, String> {
    let tool_mark = arguments.next().and_then(|mark| mark.to_str()?.parse().ok());
    match tool_mark.zip(arguments.next()) {
        Some((mark, program)) => {
            Ok(LaunchOrder { tool_mark: Some(mark), program: program.into(), ..LaunchOrder::default() })
        }
        None => Err(format!("{LAUNCH} takes a mark and a program; the daemon uses it to start tools")),
    }
}

fn read_confined(arguments: &mut impl Iterator<Item = OsString>) -> Result<LaunchOrder, String> {
    let mut order = LaunchOrder::default();
    let mut confinement = Confinement::default();
    loop {
        let flag = arguments.next().ok_or("expected -- and a program")?;
        let mut value = || arguments.next().ok_or(format!("{} takes a value", flag.display()));
        match flag.to_str() {
            Some("--guard") => confinement.guard = true,
            Some("--network") => confinement.network = true,
            Some("--floor") => confinement.floor = true,
            Some("--bare") => confinement.bare = true,
            Some("--by-host") => confinement.by_host = true,
            Some("--join") => confinement.join.push(value()?.into()),
            Some("--needs-scope") => confinement.needs_scope = true,
            Some("--own-sockets") => confinement.own_sockets = true,
            Some("--landlock") => {
                let version = value()?.to_str().and_then(|version| version.parse().ok());
                confinement.landlock = Some(version.ok_or("--landlock takes a version")?);
            }
            Some("--see") => confinement.seen.push(value()?.into()),
            Some("--list") => confinement.listed.push(value()?.into()),
            Some("--unfollowed") => confinement.unfollowed.push(value()?.into()),
            Some("--tool-mark") => {
                let mark = value()?.to_str().and_then(|mark| mark.parse().ok());
                order.tool_mark = Some(mark.ok_or("--tool-mark takes a number")?);
            }
            Some("--write") => confinement.writable.push(value()?.into()),
            Some("--layer") => confinement.layers.push(value()?.into()),
            Some("--layered") => confinement.layered.push(value()?.into()),
            Some("--hand-over") => {
                confinement.handover = Some(value()?.into_string().map_err(|_| "--hand-over takes a name")?);
            }
            Some("--protect") => confinement.protected.push(value()?.into()),
            Some("--mask") => confinement.masked.push(value()?.into()),
            Some("--hold") => confinement.held.push(value()?.into()),
            Some("--replace") => {
                let path = value()?.into();
                let text = value()?.into_string().map_err(|_| "--replace takes a path and a text")?;
                confinement.replaced.push((path, text));
            }
            Some("--filter") => {
                order.filter = Some(value()?.into_string().map_err(|_| "--filter takes hexadecimal digits")?);
            }
            Some("--") => {
                return Ok(LaunchOrder { confinement: Some(confinement), program: value()?.into(), ..order });
            }
            Some(_) | None => return Err(format!("unknown flag {}", flag.display())),
        }
    }
}

/// Does what the daemon needs a process of its own for.
fn serve(mode: &OsStr, arguments: impl Iterator<Item = OsString>) -> ExitCode {
    #[cfg(target_os = "linux")]
    let done = match mode == NETWORK {
        true => super::network::serve(arguments),
        false => super::renew::serve(arguments),
    };
    #[cfg(not(target_os = "linux"))]
    let done: Result<(), String> =
        Err(format!("this system has no namespaces ({}, {} arguments)", mode.display(), arguments.count()));
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{NO_SANDBOX}{error}");
            ExitCode::from(FAILED)
        }
    }
}

#[cfg(target_os = "linux")]
fn become_program(
    order: LaunchOrder,
    arguments: impl Iterator<Item = OsString>,
    filter: impl FnOnce(&Confinement) -> Result<String, String>,
) -> String {
    let program = order.program.display();
    super::system::lead_session();
    // An unmarked program could be mistaken for a person.
    if let Some(Err(error)) = order.tool_mark.map(super::system::limit_message_queues) {
        return format!("can't mark {program} as started by a tool: {error}");
    }
    let mut command = std::process::Command::new(&order.program);
    let arguments: Vec<OsString> = arguments.collect();
    let names_pnpm =
        |text: &OsString| text.as_encoded_bytes().windows(STORE.1.len()).any(|part| part == STORE.1.as_bytes());
    let uses_pnpm = arguments.iter().any(names_pnpm) || is_in_project_of_pnpm();
    command.args(arguments);
    if let Some(confinement) = &order.confinement {
        let filter = order.filter.map_or_else(|| filter(confinement), Ok);
        match filter.and_then(|filter| super::kernel::confine(confinement, &filter)) {
            Ok(OwnMounts { temp: Some(temp), layered, .. }) => {
                let caches = CACHES.iter().filter(|_| confinement.floor);
                let caches = caches.filter(|(name, _, usual)| !has_its_own(name, usual, &layered));
                command.envs(caches.map(|(name, folder, _)| (name, temp.join(folder))));
                command.envs(NO_UPDATES.iter().copied().filter(|_| confinement.floor));
                command.envs(Some((STORE.0, temp.join(STORE.1))).filter(|_| confinement.floor && uses_pnpm));
                if !confinement.writable.is_empty() {
                    let with = |name: &str, more| with_option(std::env::var_os(name), more);
                    command.env(JAVA_OPTIONS, with(JAVA_OPTIONS, java_options(&temp, confinement.floor)));
                    // The next command would not find its server, whose address is in the cache, but start another one.
                    command.envs(confinement.floor.then(|| ("GRADLE_OPTS", with("GRADLE_OPTS", NO_SERVER.into()))));
                }
                command.env("TMPDIR", temp);
            }
            Ok(_) => {}
            Err(error) => return error,
        }
    }
    format!("can't run {program}: {}", std::os::unix::process::CommandExt::exec(&mut command))
}

/// Options of Java for the folder for temporary files, which it does not take from `TMPDIR`, and on a floor for Maven's cache if
/// there is none that could have a layer. The options of a program count more.
#[cfg(target_os = "linux")]
fn java_options(temp: &Path, is_floor: bool) -> OsString {
    let mut options = OsString::from("-Djava.io.tmpdir=");
    options.push(temp);
    let home = std::env::var_os("HOME").filter(|home| is_floor && !Path::new(home).join(".m2").is_dir());
    if home.is_some() {
        options.push(" -Dmaven.repo.local=");
        options.push(temp.join("m2"));
    }
    options
}

/// The options in a variable, and another one.
#[cfg(target_os = "linux")]
fn with_option(own: Option<OsString>, more: OsString) -> OsString {
    let mut options = own.filter(|own| !own.is_empty()).unwrap_or_default();
    if !options.is_empty() {
        options.push(" ");
    }
    options.push(more);
    options
}

#[cfg(target_os = "linux")]
fn is_in_project_of_pnpm() -> bool {
    let folder = std::env::current_dir().unwrap_or_default();
    folder.ancestors().any(|folder| folder.join("pnpm-lock.yaml").is_file())
}

/// Caches that builds without the network need, also where they cannot change them, or that hold more than a cache.
#[cfg(target_os = "linux")]
const NEEDED: [&str; 3] = ["CARGO_HOME", "GOMODCACHE", "GRADLE_USER_HOME"];

/// Whether a cache, which is where the variable says or in its usual place, has a layer, or is needed as it is.
#[cfg(target_os = "linux")]
fn has_its_own(variable: &str, usual: &str, layered: &[PathBuf]) -> bool {
    let named = |variable: &str| std::env::var_os(variable).map(PathBuf::from);
    let of_go = || Some(named("GOPATH")?.join("pkg")).filter(|_| variable == "GOMODCACHE");
    let at_home = || Some(named("HOME")?.join(usual)).filter(|_| !usual.is_empty());
    let Some(folder) = named(variable).or_else(of_go).or_else(at_home) else { return false };
    let real = folder.canonicalize().unwrap_or_else(|_| folder.clone());
    layered.iter().any(|place| place.starts_with(&real)) || NEEDED.contains(&variable) && folder.is_dir()
}

#[cfg(not(target_os = "linux"))]
fn become_program(
    _: LaunchOrder,
    _: impl Iterator<Item = OsString>,
    _: impl FnOnce(&Confinement) -> Result<String, String>,
) -> String {
    "this system has neither Landlock nor seccomp".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_read_as_they_were_written() {
        let own = ["own".into(), "--guard".into()];
        let marked = LaunchOrder { tool_mark: Some(720_896), program: "/bin/true".into(), ..LaunchOrder::default() };
        let mut arguments = marked.arguments().into_iter().skip(1).chain(own.clone());
        assert_eq!(read_plain(&mut arguments).as_ref(), Ok(&marked));
        assert!(arguments.eq(own.clone()));

        let confinement = Confinement {
            guard: true,
            network: true,
            floor: true,
            bare: true,
            landlock: Some(3),
            by_host: true,
            join: vec!["/proc/1/fd/3".into()],
            needs_scope: true,
            writable: vec!["/a".into(), "--".into()],
            places: Vec::new(),
            path_folders: Vec::new(),
            protected: vec!["/a/b".into()],
            masked: vec!["/c".into()],
            held: vec!["/c/d".into()],
            replaced: vec![("/e".into(), "--\n".to_owned())],
            seen: vec!["/usr".into()],
            listed: vec!["/a".into(), "/d".into()],
            unfollowed: vec!["/d".into()],
            layers: vec!["/f".into()],
            layered: vec!["/f/g".into()],
            own_sockets: true,
            named_sockets: Vec::new(),
            handover: Some("name".to_owned()),
            exposable: Vec::new(),
            stand_ins: Vec::new(),
            life: None,
            words: String::new(),
        };
        for tool_mark in [None, Some(720_896)] {
            let (confinement, filter) = (Some(confinement.clone()), Some("00".to_owned()));
            let confined = LaunchOrder { tool_mark, confinement, filter, ..marked.clone() };
            let mut arguments = confined.arguments().into_iter().skip(1).chain(own.clone());
            assert_eq!(read_confined(&mut arguments), Ok(confined));
            assert!(arguments.eq(own.clone()));
        }
    }

    #[test]
    fn a_program_without_a_mark_is_refused() {
        let unmarked = LaunchOrder { program: "/bin/true".into(), ..LaunchOrder::default() };
        assert!(read_plain(&mut unmarked.arguments().into_iter().skip(1)).is_err());
        assert!(read_plain(&mut ["720896"].map(OsString::from).into_iter()).is_err());
    }
}
