//! The floors of commands that run without a person's word: which of them this system can confine, and how.

use std::collections::{BTreeSet, HashSet};
use std::ffi::OsStr;
use std::fs::{Metadata, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::process::geteuid;
use toold_engine::cx::Cx;
use toold_engine::effects::EffectSet;
use toold_engine::floor::{Floor, FloorCredentials, FloorNetwork, FloorSockets, FloorWrites};
use toold_engine::guarded_files::GuardedFiles;
use toold_engine::level::{confined_effects, frees_command};
use toold_engine::need::{Need, Word};
use toold_engine::policy::{Policy, is_temporary_file};
use toold_engine::session::Session;
use toold_proto::effect::Effect;
use toold_proto::level::Level;
use toold_proto::tool::Category;

use super::git_control::GitControl;
use super::home_settings::SettingsOnFloor;
use super::network::{self, hosts, hosts::NetworkHosts};
use super::secret_index::{FoundControl, SecretCounts, TooMany};
use super::surroundings::{is_led_by_link, read_places, seen, without};
use super::tool_caches::LayeredCaches;
use super::{
    ConfinementMode, Sandbox, SandboxRules, SandboxUnavailable, control_places, is_wide, places_of, secrets,
    tool_caches, writable_elsewhere,
};
use crate::environment::Environment;
use crate::launcher::life::ConfinedLife;
use crate::launcher::order::Confinement;
use crate::tool_mark;

/// More secrets than this in writable folders are not covered one by one.
const MAX_COVERS: usize = 64;
/// More places that run code later, and more repositories, are not protected one by one where a command may write.
const MAX_CONTROL: usize = 256;
const MAX_REPOSITORIES: usize = 32;
/// Instead of a secret, what lies beside it is shown, if that is no more than this. Else the secret is covered, which is
/// faster, but shows in its mode and size.
const MAX_BESIDE: usize = 128;
/// More secrets in it are left out of what is shown, with what lies beside them, which takes longer.
const MAX_COVERED_IN_ETC: usize = 24;
/// Folders in a linked folder that are looked at for files that run code later.
const LINKED_DEPTH: usize = 2;
/// More is not shown: a program gets only so many arguments.
const MAX_SHOWN: usize = 4096;

/// The floors that a system can give.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum FloorSupport {
    All,
    /// For commands that only read.
    Reading {
        /// Without namespaces.
        bare: bool,
        /// Why there are no others, in words for people.
        why: String,
    },
    None(String),
}

/// What a kernel offers, as far as it decides which floors there are.
#[derive(Clone, Copy, Debug)]
pub(super) struct KernelLimits {
    pub(super) namespaces: bool,
    /// The version of Landlock is at most this one.
    pub(super) landlock: Option<u8>,
}

/// A command that is about to run.
pub struct CommandToConfine<'a> {
    /// What it needs, which was decided.
    pub needs: &'a [Need],
    pub cwd: &'a Path,
    pub environment: &'a Environment,
    /// Places that it may read as well.
    pub seen: &'a [PathBuf],
    /// Whether [`Sandbox::open_network`] follows.
    pub opens_network: bool,
    /// The secrets that were found when its needs were marked, if they were.
    pub secrets: Option<&'a FoundSecrets>,
}

/// The secrets in the folders of a session, for the rest of the call that asked for them.
#[derive(Clone, Debug)]
pub struct FoundSecrets {
    at: Instant,
    places: Vec<PathBuf>,
    paths: Vec<PathBuf>,
    /// Other names of these and of the secrets in known places.
    names: Vec<PathBuf>,
    counts: SecretCounts,
}

impl FoundSecrets {
    /// What appears meanwhile is like what appears while the command runs. A call that waits for a person takes longer.
    const FRESH: Duration = Duration::from_millis(50);

    fn is_of(&self, places: &[PathBuf]) -> bool {
        self.places == places && self.at.elapsed() < Self::FRESH
    }
}

impl FloorSupport {
    /// Tries them by confining a program that does nothing. Blocks for some milliseconds.
    pub(super) fn of(limits: KernelLimits) -> Self {
        // A daemon embedded in another program has no binary that applies a confinement.
        if tool_mark::own().is_none() && cfg!(not(test)) {
            return Self::None("commands of this daemon cannot be confined".to_owned());
        }
        let reading =
            Confinement { floor: true, landlock: limits.landlock, seen: vec!["/".into()], ..Confinement::default() };
        let full = Confinement { needs_scope: true, masked: vec!["/etc/passwd".into()], ..reading.clone() };
        let bare = Confinement { bare: true, ..reading.clone() };
        let no_namespaces = || Err("the system does not allow user namespaces".to_owned());
        let attempt = |confinement: &Confinement| match limits.namespaces {
            true => confinement.try_out("/bin/true", &[]),
            false => no_namespaces(),
        };
        let Err(why) = attempt(&full) else { return Self::All };
        if attempt(&reading).is_ok() {
            return Self::Reading { bare: false, why };
        }
        match bare.try_out("/bin/true", &[]) {
            Ok(()) => Self::Reading { bare: true, why },
            Err(error) => Self::None(format!("{why}; {error}")),
        }
    }
}

impl Sandbox {
    fn support(&self) -> &FloorSupport {
        self.support.get_or_init(|| FloorSupport::of(KernelLimits { namespaces: true, landlock: None }))
    }

    /// Why this system cannot confine the commands that a level frees, as a sentence for the user; `None` when it can.
    /// Blocks for some milliseconds the first time.
    pub fn unconfined(&self) -> Option<String> {
        match self.support() {
            FloorSupport::All => None,
            FloorSupport::Reading { why, .. } | FloorSupport::None(why) => Some(why.clone()),
        }
    }

    /// Whether commands that are known only to read are confined here. Blocks for some milliseconds the first time.
    pub fn confines_reading(&self) -> bool {
        !matches!(self.support(), FloorSupport::None(_))
    }

    /// Marks the needs of a line that a level frees if it runs confined, by [`confined_effects_of`]. A line that only reads
    /// is left as it is, unless there are more secrets than can be kept from it. `records` is `None` for what an agent runs
    /// itself, whose changes and network are not held. Reads a few folders. Returns the secrets, if it had to look for them.
    pub fn mark_confined(
        &self,
        needs: &mut [Need],
        level: Level,
        session: &Session,
        cwd: &Path,
        (files, records): (&GuardedFiles, Option<&SessionRecords>),
    ) -> Option<FoundSecrets> {
        let is_free = |need: &Need| need.reads_only() || need.category() == Category::FileRead;
        let rules = self.rules_in(session.project());
        let places = || session.places().iter().map(|place| place.to_path_buf()).collect::<Vec<PathBuf>>();
        if needs.iter().all(is_free) {
            if !self.confines_reading() {
                return None;
            }
            let found = self
                .secrets_in(&places(), (rules.home.as_deref(), files))
                .ok()
                .filter(|found| self.hides(found.counts));
            if found.is_none() {
                for need in needs.iter_mut() {
                    let Some(command) = need.command_mut() else { continue };
                    command.reads_only = false;
                    need.reason.get_or_insert("the session's folders have too many secret files to hide".to_owned());
                }
            }
            return found;
        }
        // What the configuration forbids would only fail.
        if level == Level::Read
            || rules.refused.is_some()
            || rules.mode == ConfinementMode::ReadOnly
            || self.unconfined().is_some()
        {
            return None;
        }
        let places = places();
        if places.iter().any(|place| files.keeps_all(place)) {
            return None;
        }
        let hosts = records.and_then(|_| self.hosts_of_floor(&rules));
        let records = records.unwrap_or(&SessionRecords::NONE);
        let line =
            LineToConfine { needs, places: &places, cwd, made: &session.made(), records, hosts: hosts.as_deref() };
        let effects = confined_effects_of(level, &line);
        if effects.is_empty() {
            return None;
        }
        let found = self.secrets_in(&places, (rules.home.as_deref(), files)).ok()?;
        let control = self.found_control(&places, (rules.home.as_deref(), files));
        if found.counts.secrets <= MAX_COVERS && control.is_ok() {
            needs.iter_mut().for_each(|need| need.confined = effects);
        }
        Some(found)
    }

    /// The hosts that a command on a floor with a network by host reaches without an ask; `None` if the configuration or the
    /// system gives it no network. Blocks for some milliseconds the first time.
    fn hosts_of_floor(&self, rules: &SandboxRules) -> Option<Arc<NetworkHosts>> {
        let may_ask = match rules.mode {
            ConfinementMode::Off | ConfinementMode::Guard => true,
            ConfinementMode::WorkspaceWrite | ConfinementMode::ReadOnly => rules.network || rules.hosts.is_some(),
        };
        let has_network = || {
            let confinement = Confinement { floor: true, seen: vec!["/".into()], ..Confinement::default() };
            *self.has_network.get_or_init(|| network::try_out(&confinement).is_ok())
        };
        (may_ask && has_network()).then(|| rules.hosts.clone().unwrap_or_default())
    }

    /// The restriction for a program of this call; `None` if programs are not confined. A command that runs without a
    /// person's word is confined in any case, if the system can. Reads a few folders.
    ///
    /// # Errors
    /// When the configured sandbox is unavailable, or the one that the command needs.
    pub fn confine(&self, cx: &Cx, command: &CommandToConfine) -> Result<Option<Confinement>, SandboxUnavailable> {
        let rules = self.rules_in(cx.session.project());
        let floor = cx.floor(command.needs).filter(|_| rules.refused.is_none());
        let Some(floor) = floor else {
            return self.confine_by(&rules, &cx.session, &cx.engine.policy.load());
        };
        let bare = match self.support() {
            FloorSupport::All => false,
            FloorSupport::Reading { bare, .. } if floor.rights.writes == FloorWrites::Nothing => *bare,
            // What the tables say about a command that only reads is all that there is.
            FloorSupport::None(_) if floor.rights.writes == FloorWrites::Nothing => {
                return self.confine_by(&rules, &cx.session, &cx.engine.policy.load());
            }
            FloorSupport::Reading { why, .. } | FloorSupport::None(why) => return Err(SandboxUnavailable(why.clone())),
        };
        let needs_scope = *self.support() == FloorSupport::All;
        let kernel = Confinement { floor: true, bare, needs_scope, ..Confinement::default() };
        let files = cx.guarded_files();
        self.on_floor(kernel, &floor, (&cx.session, &files, &rules), command).map(Some)
    }

    fn on_floor(
        &self,
        kernel: Confinement,
        floor: &Floor,
        (session, files, rules): (&Session, &GuardedFiles, &SandboxRules),
        command: &CommandToConfine,
    ) -> Result<Confinement, SandboxUnavailable> {
        let (home, policy) = (rules.home.as_deref(), files.policy());
        let places = places_of(session)?;
        let may_write = floor.rights.writes > FloorWrites::Nothing && rules.mode != ConfinementMode::ReadOnly;
        let mut writable: Vec<PathBuf> =
            places.iter().filter(|place| may_write && !is_wide(place, home)).cloned().collect();
        let too_many = |TooMany| {
            let words = "too many folders, secret files or files that run code later in the session's folders";
            SandboxUnavailable(words.to_owned())
        };
        let mut protected = control_places(policy, &writable);
        protected.extend(writable.iter().flat_map(|place| existing_protected(place, policy)));
        protected.extend(
            files.named_to_write().filter(|path| files.keeps_from_writing(path, path.is_dir()) && path.exists()),
        );
        let writable_places = writable.clone();
        let (control, git) = self.control_in(&writable, (home, files)).map_err(too_many)?;
        protected.extend(control.into_iter().chain(git.existing));
        // Git itself goes on with what it was doing.
        let is_git = |need: &Need| need.words().and_then(<[Word]>::first).is_some_and(|word| word.text == "git");
        if !command.needs.iter().any(is_git) {
            protected.extend(git.waiting);
        }
        if may_write && rules.mode == ConfinementMode::WorkspaceWrite {
            writable.extend(writable_elsewhere(rules));
        }
        let is_writable = |path: &PathBuf| writable.iter().any(|place| path.starts_with(place));
        protected.retain(is_writable);
        // A file that runs code later would be changed under another name too.
        let objects = |path: &PathBuf| path.ends_with(".git/modules");
        let linked: Vec<PathBuf> = protected.iter().filter(|path| !objects(path)).cloned().collect();
        protected.extend(self.other_names.of(&linked, || writable.clone()).map_err(too_many)?);
        let elsewhere = self.other_mounts.of(&linked);
        protected.extend(elsewhere.into_iter().filter(is_writable));
        let stand_ins = git.missing.into_iter().filter(|(path, _)| is_writable(path)).collect();
        let found = match command.secrets.filter(|found| found.is_of(&places)) {
            Some(found) => found.clone(),
            None => self.secrets_in(&places, (home, files)).map_err(too_many)?,
        };
        let (counts, mut covered) = (found.counts, found.paths.clone());
        if !self.hides(counts) {
            return Err(too_many(TooMany));
        }
        let beside_much = !kernel.bare && counts.beside > MAX_BESIDE && counts.secrets <= MAX_COVERS;
        // Only root reads the passwords.
        let is_root = geteuid().is_root();
        covered.extend(secrets(home, &[]).into_iter().filter(|path| is_root || !path.starts_with("/etc")));
        // A person opened the session's folders, but hardly for all that lies below /etc.
        let is_opened =
            |path: &PathBuf| !path.starts_with("/etc") && places.iter().any(|place| path.starts_with(place));
        let of_root = self.of_root.found();
        covered.extend(of_root.paths.iter().filter(|path| !is_opened(path)).cloned());
        let SettingsOnFloor { seen: settings, mut replaced, hidden } =
            self.home_settings.on_floor(home, command.environment);
        covered.retain(|path| !settings.contains(path));
        covered.extend(hidden);
        // Those in the session's folders are its own.
        replaced.retain(|(path, _)| !places.iter().any(|place| path.starts_with(place)));
        if kernel.bare {
            covered.extend(std::mem::take(&mut replaced).into_iter().map(|(path, _)| path));
        }
        covered.extend(
            files.named_to_read().filter(|path| files.keeps_from_reading(path, path.is_dir()) && path.exists()),
        );
        // The files that the command names were judged, and a person may name those that a build needs.
        covered.retain(|path| !floor.reads.contains(path));
        // The other names of the session's secrets were looked for with them, unless the command may read one of them.
        let may_read_some = found.paths.iter().any(|path| floor.reads.contains(path));
        let known: HashSet<&PathBuf> = found.paths.iter().filter(|_| !may_read_some).collect();
        let with_names = covered.iter().filter(|path| !known.contains(path) && !of_root.paths.contains(*path));
        let with_names: Vec<PathBuf> = with_names.chain(&of_root.linked).cloned().collect();
        let mut names = self.other_names.of(&with_names, || read_places(&places, home)).map_err(too_many)?;
        names.extend(found.names.iter().filter(|_| !may_read_some).cloned());
        covered.extend(names.iter().cloned());
        let elsewhere = self.other_mounts.of(&covered);
        covered.extend(elsewhere.iter().cloned());
        names.extend(elsewhere);
        covered.sort();
        covered.dedup();
        covered.extend(policy.private.iter().filter(|path| path.exists()).cloned());
        let mut exposable = Vec::new();
        if floor.rights.credentials >= FloorCredentials::Exposed {
            let is_exposed = |path: &PathBuf| {
                let in_places = |name: &PathBuf| places.iter().any(|place| place.join(name) == *path);
                rules.expose.iter().any(|name| name == path || in_places(name))
            };
            covered.retain(|path| !is_exposed(path) || files.keeps_from_reading(path, path.is_dir()));
            let of_places = covered.iter().filter(|path| !policy.private.iter().any(|private| private == *path));
            let relative =
                |path: &PathBuf| places.iter().find_map(|place| Some(path.strip_prefix(place).ok()?.to_owned()));
            exposable = of_places.filter_map(relative).collect();
        }
        if may_write {
            let is_inside = |path: &PathBuf| places.iter().any(|place| path.starts_with(place));
            let outside = floor.files.iter().filter(|path| path.starts_with("/tmp") && !is_inside(path));
            for path in outside {
                make_temporary(path, session)?;
                writable.push(path.clone());
            }
        }
        let reads = || floor.reads.iter().filter(|path| !names.contains(path));
        let named = reads().chain(command.seen).cloned().chain([command.cwd.to_owned()]);
        let mut all = seen(home, &places, command.environment, command.needs);
        all.extend(named.filter(|path| path.exists()));
        all.extend(settings);
        if floor.rights.credentials >= FloorCredentials::Exposed {
            all.extend(rules.expose.iter().filter(|path| path.is_absolute() && path.exists()).cloned());
        }
        // A command may put a link in the place of anything there, also beside this one.
        all.retain(|path| places.contains(path) || !places.iter().any(|place| path.starts_with(place)));
        // A mount covers what lies in a writable folder: the program may make files beside it, and reads those. It also
        // covers what lies beside many files.
        let is_ticket = |path: &PathBuf| path.parent() == Some(Path::new("/tmp"));
        let has_few_in_etc = covered.iter().filter(|path| path.starts_with("/etc")).count() <= MAX_COVERED_IN_ETC;
        let is_covered = |path: &PathBuf| {
            let is_in = |places: &[PathBuf]| places.iter().any(|place| path.starts_with(place));
            is_in(&writable)
                || beside_much && is_in(&places)
                || !kernel.bare
                    && (has_few_in_etc && path.starts_with("/etc") || is_ticket(path) || names.contains(path))
        };
        let (masked, covered): (Vec<PathBuf>, Vec<PathBuf>) = covered.into_iter().partition(is_covered);
        if may_write && masked.len() > MAX_COVERS {
            return Err(too_many(TooMany));
        }
        let is_writable = |path: &&PathBuf| writable.iter().any(|place| path.starts_with(place));
        let held = masked.iter().filter(is_writable).cloned().collect();
        // If somebody replaces a file in whose place another text is shown, the new one is not.
        let hidden: Vec<PathBuf> = covered.iter().chain(replaced.iter().map(|(path, _)| path)).cloned().collect();
        let of_root = |place: &PathBuf| of_root.shown_of(place, &hidden).filter(|_| !places.contains(place));
        let (known, all): (Vec<PathBuf>, Vec<PathBuf>) = all.into_iter().partition(|place| of_root(place).is_some());
        let mut shown = without(&all, &hidden, &places);
        for known in known.iter().filter_map(of_root) {
            shown.seen.extend(known.seen.iter().cloned());
            shown.listed.extend(known.listed.iter().cloned());
        }
        shown.seen.extend(replaced.iter().map(|(path, _)| path.clone()));
        // Also one in a folder of secrets.
        let is_hidden = |path: &PathBuf| masked.iter().chain(&hidden).any(|cover| path.starts_with(cover));
        shown.seen.extend(reads().filter(|path| is_hidden(path) && path.is_file()).cloned());
        let by_host = floor.rights.network == FloorNetwork::Hosts
            && command.opens_network
            && self.hosts_of_floor(rules).is_some();
        let network = if by_host { "network by host" } else { "no network" };
        let words = match rules.describe() {
            Some(words) if !may_write => words,
            _ if may_write => format!("workspace-write, {network}, because of {}", floor.by),
            _ => format!("read-only, no network, because {}", floor.by),
        };
        let (seen, listed) = (shown.seen, shown.listed);
        let caches = match floor.rights.network {
            FloorNetwork::Hosts => tool_caches::of(home, command.environment, &places),
            FloorNetwork::Nothing => LayeredCaches::default(),
        };
        let own_sockets = floor.rights.sockets == FloorSockets::Own && !kernel.bare;
        let is_private = |path: &PathBuf| policy.private.iter().any(|private| path.starts_with(private));
        let named_sockets = rules.sockets.iter().filter(|path| !is_led_by_link(&places, path));
        let named_sockets = named_sockets.filter_map(|path| path.canonicalize().ok());
        let named_sockets = named_sockets.filter(|path| own_sockets && !is_private(path)).collect();
        let (unfollowed, places) = (places, writable_places);
        // A process that it leaves behind may change the session's folders, too.
        let life = may_write.then(ConfinedLife::default);
        let path = command.environment.get("PATH").map(std::env::split_paths).into_iter().flatten();
        let is_own = |folder: &Path| places.iter().any(|place| folder.starts_with(place));
        // A link in its place may lead elsewhere soon.
        let is_own = |folder: &PathBuf| is_own(folder) || folder.canonicalize().is_ok_and(|real| is_own(&real));
        let path_folders = path.filter(is_own).collect();
        Ok(Confinement {
            by_host,
            life,
            path_folders,
            writable,
            places,
            protected,
            layers: caches.folders,
            layered: caches.writable,
            own_sockets,
            named_sockets,
            masked,
            held,
            replaced,
            seen,
            listed,
            unfollowed,
            exposable,
            stand_ins,
            words,
            ..kernel
        })
    }

    /// Those in the session's folders, except in one that is too wide to be looked through.
    fn secrets_in(
        &self,
        places: &[PathBuf],
        (home, files): (Option<&Path>, &GuardedFiles),
    ) -> Result<FoundSecrets, TooMany> {
        let at = Instant::now();
        let (mut paths, mut sum) = (Vec::new(), SecretCounts::default());
        for place in places.iter().filter(|place| !is_wide(place, home)) {
            let (found, counts) = self.secrets.secrets(place, files)?;
            paths.extend(found);
            sum.secrets += counts.secrets;
            sum.beside += counts.beside;
        }
        let mut all = secrets(home, &[]);
        all.extend(paths.iter().cloned());
        let names = self.other_names.of(&all, || read_places(places, home))?;
        let elsewhere = self.other_mounts.of(&all);
        sum.secrets += names.len() + elsewhere.len();
        sum.beside += names.iter().chain(&elsewhere).map(|name| entries_beside(name, places)).sum::<usize>();
        Ok(FoundSecrets { at, places: places.to_vec(), paths, names, counts: sum })
    }

    /// What runs code later in the session's folders, and what decides what Git runs there.
    fn control_in(
        &self,
        places: &[PathBuf],
        known: (Option<&Path>, &GuardedFiles),
    ) -> Result<(BTreeSet<PathBuf>, GitControl), TooMany> {
        let FoundControl { files: found, repositories, .. } = self.found_control(places, known)?;
        let (home, guarded) = known;
        let mut git = GitControl::default();
        repositories.iter().for_each(|repository| git.add(repository, home));
        // A repository has them already.
        let plain = places.iter().filter(|place| !repositories.contains(&place.join(".git")));
        plain.for_each(|place| git.add_of_person(place, home));
        let mut files = BTreeSet::new();
        for file in found {
            match file.is_symlink() && !guarded.is_kept(&file, false) {
                true => files.extend(kept_below(&file, guarded, LINKED_DEPTH)),
                false => _ = files.insert(file),
            }
        }
        files.extend(home.into_iter().flat_map(|home| linked_settings(home, places)));
        Ok((files, git))
    }

    /// The files that run code later, and the repositories, also one that the folders lie in. One that commands on floors have
    /// made is their own.
    fn found_control(
        &self,
        places: &[PathBuf],
        (home, files): (Option<&Path>, &GuardedFiles),
    ) -> Result<FoundControl, TooMany> {
        let mut all = FoundControl::default();
        for place in places.iter().filter(|place| !is_wide(place, home)) {
            let found = self.secrets.control(place, files)?;
            all.files.extend(found.files);
            all.repositories.extend(found.repositories.into_iter().filter(|git| !self.made_repositories.has(git)));
            let mut around = place.ancestors().map(|folder| folder.join(".git"));
            all.repositories.extend(around.find(|git| git.symlink_metadata().is_ok()));
        }
        match all.files.len() > MAX_CONTROL || all.repositories.len() > MAX_REPOSITORIES {
            true => Err(TooMany),
            false => Ok(all),
        }
    }

    /// Whether so many secrets can be kept from a command that only reads: covered, or left out of what is shown.
    fn hides(&self, counts: SecretCounts) -> bool {
        let has_covers = !matches!(self.support(), FloorSupport::Reading { bare: true, .. });
        counts.beside <= MAX_SHOWN || has_covers && counts.secrets <= MAX_COVERS
    }
}

impl Confinement {
    /// Whether it is a floor on which nothing can be changed.
    pub fn only_reads(&self) -> bool {
        self.floor && self.writable.is_empty()
    }

    /// Whether other users and groups than the daemon's own seem to be `nobody` and `nogroup`: a user namespace does not have
    /// them.
    pub fn has_unknown_owners(&self) -> bool {
        !self.bare && !geteuid().is_root()
    }
}

/// The entries of the folders above a file, in the places.
fn entries_beside(file: &Path, places: &[PathBuf]) -> usize {
    let Some(place) = places.iter().find(|place| file.starts_with(place)) else { return 0 };
    let above = file.ancestors().skip(1).take_while(|folder| folder.starts_with(place));
    above.filter_map(|folder| std::fs::read_dir(folder).ok()).map(Iterator::count).sum()
}

/// What the daemon has recorded of a session.
pub struct SessionRecords<'a> {
    /// Whether `undo` keeps what is in all of these files.
    pub keeps: &'a dyn Fn(&[&Path]) -> bool,
    /// Whether the session made this file or folder and all that is in it, and nobody has changed it since.
    pub made: &'a dyn Fn(&Path) -> bool,
    /// Whether a command fetches only what a lock file names that was committed when the session began, or that a person has
    /// seen since.
    pub is_locked: &'a dyn Fn(&Need) -> bool,
}

impl SessionRecords<'static> {
    /// Nothing was recorded.
    pub const NONE: Self = Self { keeps: &|_| false, made: &|_| false, is_locked: &|_| false };
}

/// A line that a level may free.
pub struct LineToConfine<'a> {
    pub needs: &'a [Need],
    /// The session's folders.
    pub places: &'a [PathBuf],
    pub cwd: &'a Path,
    /// As [`Session::made`].
    pub made: &'a [PathBuf],
    pub records: &'a SessionRecords<'a>,
    /// The hosts that it reaches without an ask; `None` where it has no network.
    pub hosts: Option<&'a NetworkHosts>,
}

/// The effects that are possible where a line runs if the level frees it; none if it does not. All its commands must be free
/// at the level, and what it writes must lie in the session's folders or be a file of the session's below `/tmp`; what it
/// overwrites must be kept, what it removes with all that is in it must be the session's own, and what it downloads must come
/// from listed hosts or be named by a lock file. A line that writes no file may be free where nothing can be changed. Reads a
/// few folders.
pub fn confined_effects_of(level: Level, line: &LineToConfine) -> EffectSet {
    let of = |category: Category| line.needs.iter().filter(move |need| need.category() == category);
    let is_here = |need: &Need| matches!(need.category(), Category::Shell | Category::FileRead | Category::FileWrite);
    if of(Category::Shell).next().is_none() || !line.needs.iter().all(is_here) {
        return EffectSet::EMPTY;
    }
    let is_inside = |path: &Path| line.places.iter().any(|place| path.starts_with(place) && path != place);
    let mut effects = confined_effects();
    if !of(Category::FileWrite).all(|need| is_inside(Path::new(&need.target)) || is_temporary_file(need, line.made)) {
        return EffectSet::EMPTY;
    }
    let overwritten = overwritten(line.needs, line.places);
    if !overwritten.is_empty() && !(line.records.keeps)(&overwritten) {
        return EffectSet::EMPTY;
    }
    // Also of a tool that a runner starts: `uv run -m pip install x`.
    let has = |need: &Need, effect: Effect| {
        need.command().is_some_and(|command| {
            let inner = command.elsewhere.iter().map(|inner| &inner.effects);
            std::iter::once(&command.effects).chain(inner).any(|effects| effects.all().contains(effect))
        })
    };
    let removes = |need: &Need| has(need, Effect::Destroy);
    if of(Category::Shell).any(|need| removes(need) && !removes_only_own(need, line)) {
        effects = effects.without(Effect::Destroy);
    }
    let top = line.cwd.ancestors().map(|folder| folder.join(".git")).find(|git| git.symlink_metadata().is_ok());
    if !top.is_some_and(|git| git.is_dir() && !git.is_symlink() && is_inside(&git)) {
        effects = effects.without(Effect::History);
    }
    let is_locked = |need: &Need| line.hosts.is_some() && (line.records.is_locked)(need);
    // There, a person is asked about each host when it is connected to.
    let is_any = |of_level: bool| of_level && level == Level::Operate && line.hosts.is_some();
    let is_listed = |need: &Need| {
        line.hosts.is_some_and(|hosts| hosts.lists_all_of(need)) || is_any(hosts::addresses(need).is_some())
    };
    let fetches = |need: &&Need| has(need, Effect::Fetch) && !is_locked(need) && !is_any(installs_here(need));
    if of(Category::Shell).filter(fetches).any(|need| !is_listed(need)) {
        effects = effects.without(Effect::Fetch);
    }
    if of(Category::Shell).any(|need| has(need, Effect::Install) && !is_locked(need) && !is_any(installs_here(need))) {
        effects = effects.without(Effect::Install);
    }
    let frees = |effects| of(Category::Shell).all(|need| need.reads_only() || frees_command(level, need, effects));
    let only_reads = of(Category::FileWrite).next().is_none();
    [Some(effects), only_reads.then_some(EffectSet::READING)]
        .into_iter()
        .flatten()
        .find(|effects| frees(*effects))
        .unwrap_or(EffectSet::EMPTY)
}

/// Whether a command installs what it names into its own folder, and into none of the system or the person.
fn installs_here(need: &Need) -> bool {
    const VERBS: &[&str] = &["add", "ci", "i", "install", "remove", "sync", "update", "upgrade"];
    const PROGRAMS: &[&str] = &["bun", "composer", "npm", "pnpm", "poetry", "uv", "yarn"];
    let Some(command) = need.command() else { return false };
    let [program, verb] = command.effects.name.as_slice() else { return false };
    let is_global = |word: &Word| matches!(word.text.as_str(), "-g" | "--global" | "global" | "--system" | "--prefix");
    PROGRAMS.contains(&program.as_str())
        && VERBS.contains(&verb.as_str())
        && need.words().is_some_and(|words| words.iter().all(|word| word.literal && !is_global(word)))
}

/// Whether a command is `rm`, and what it names was made by the session. What it names must not come from the line itself.
fn removes_only_own(need: &Need, line: &LineToConfine) -> bool {
    let is_rm = need.words().and_then(<[Word]>::first).is_some_and(|program| program.text == "rm");
    let is_its = |file: &&Need| file.command_naming_it() == Some(need.target.as_str());
    let mut files = line.needs.iter().filter(|file| file.category() == Category::FileWrite).filter(is_its).peekable();
    let others_read =
        || line.needs.iter().all(|other| other == need || other.command().is_none_or(|command| command.reads_only));
    is_rm && files.peek().is_some() && others_read() && files.all(|file| (line.records.made)(Path::new(&file.target)))
}

/// The files in the session's folders that hold something, and that a line writes.
pub fn overwritten<'a>(needs: &'a [Need], places: &[PathBuf]) -> Vec<&'a Path> {
    let holds_something = |path: &Path| path.symlink_metadata().is_ok_and(|found| !found.is_dir() && found.len() > 0);
    let files = needs.iter().filter(|need| need.category() == Category::FileWrite);
    let overwrites = |need: &'a Need| need.file().map_or(&[][..], |file| &file.overwrites);
    let named = files.flat_map(|need| [&need.target].into_iter().chain(need.covers()).chain(overwrites(need)));
    let named = named.map(Path::new);
    named.filter(|path| places.iter().any(|place| path.starts_with(place)) && holds_something(path)).collect()
}

/// Makes an empty file below `/tmp` for a command to write, unless the session has made it: nothing else there is writable.
fn make_temporary(path: &Path, session: &Session) -> Result<(), SandboxUnavailable> {
    let is_own = |found: Metadata| found.is_file() && found.uid() == geteuid().as_raw() && found.nlink() == 1;
    let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    match made {
        Ok(_) => Ok(()),
        Err(error)
            if error.kind() == ErrorKind::AlreadyExists
                && session.made().iter().any(|made| made == path)
                && path.symlink_metadata().is_ok_and(is_own) =>
        {
            Ok(())
        }
        Err(error) => Err(SandboxUnavailable(format!("{} cannot be made: {error}", path.display()))),
    }
}

/// What runs code later below a link to a folder, under the paths that it has there; where it really lies.
fn kept_below(folder: &Path, files: &GuardedFiles, depth: usize) -> Vec<PathBuf> {
    let mut kept = Vec::new();
    for path in std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).take(MAX_BESIDE) {
        if files.is_kept(&path, path.is_dir()) {
            kept.extend(path.canonicalize());
        } else if depth > 1 && path.is_dir() {
            kept.extend(kept_below(&path, files, depth - 1));
        }
    }
    kept
}

/// Settings in the home folder that are links into the session's folders, as those of a repository with dotfiles are: what
/// the person's shell and programs start is decided there.
fn linked_settings(home: &Path, places: &[PathBuf]) -> Vec<PathBuf> {
    let entries = |folder: &Path| std::fs::read_dir(folder).into_iter().flatten().flatten();
    let own = entries(home).filter(|entry| entry.file_name().as_encoded_bytes().starts_with(b"."));
    let links = own.chain([".config", ".ssh"].iter().flat_map(|name| entries(&home.join(name))));
    let links = links.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_symlink()));
    let is_inside = |target: &PathBuf| places.iter().any(|place| target != place && target.starts_with(place));
    links.filter_map(|link| link.path().canonicalize().ok()).filter(is_inside).collect()
}

/// Folders with such files in which build tools also keep what they have made. The files are protected one by one.
const FOLDERS_OF_TOOLS: [&str; 2] = [".gradle", ".yarn"];

/// The entries of a folder of the session that run code later, or that hold such files: what runs without an approval does
/// not change them.
fn existing_protected(folder: &Path, policy: &Policy) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let is_shared = |name: &OsStr| name == ".git" || FOLDERS_OF_TOOLS.iter().any(|folder| name == *folder);
    // The walk through the folder finds those that are in no hidden folder.
    let is_hidden = |name: &[u8]| name.starts_with(b".") || name.to_ascii_lowercase().ends_with(b".git");
    let is_protected = |path: &PathBuf| {
        let need = || Need::new(Category::FileWrite, path.to_string_lossy());
        let name = path.file_name().filter(|name| !is_shared(name) && is_hidden(name.as_encoded_bytes()));
        name.is_some() && policy.protected_write(folder, &need()).is_some()
    };
    entries.filter(is_protected).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a script of the shell, unconfined.
    fn outside(folder: &Path, script: &str) {
        let variables = [("HOME", folder), ("GIT_CONFIG_NOSYSTEM", Path::new("1"))];
        let done = std::process::Command::new("sh").args(["-ec", script]).current_dir(folder).envs(variables).output();
        let done = done.unwrap();
        assert!(done.status.success(), "{script}: {}", String::from_utf8_lossy(&done.stderr));
    }

    /// Everything below a folder that is not a folder, with its content.
    fn contents(folder: &Path) -> std::collections::BTreeMap<PathBuf, Vec<u8>> {
        let (mut left, mut found) = (vec![folder.to_owned()], std::collections::BTreeMap::new());
        while let Some(folder) = left.pop() {
            for path in std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()) {
                match path.is_dir() && !path.is_symlink() {
                    true => left.push(path),
                    false => _ = found.insert(path.clone(), std::fs::read(&path).unwrap_or_default()),
                }
            }
        }
        found
    }

    /// Runs a script where it may write the folder, with what runs code later protected.
    fn confined(top: &Path, script: &str) -> String {
        let (files, git) = Sandbox::default().control_in(&[top.to_owned()], (None, &GuardedFiles::default())).unwrap();
        let (mut protected, stand_ins) = (existing_protected(top, &Policy::default()), git.missing);
        let all = files.into_iter().chain(git.existing).chain(git.waiting);
        protected.extend(all.filter(|path| path.starts_with(top)));
        let writable = vec![top.to_owned()];
        let mut confinement = Confinement { writable, protected, stand_ins, ..Confinement::default() };
        confinement.stand_ins.retain(|(path, _)| path.starts_with(top));
        let held = confinement.hold_stand_ins();
        let output = crate::launcher::command(Path::new("/bin/sh"), None, Some(&confinement))
            .args(["-c", script])
            .current_dir(top)
            .output()
            .unwrap();
        drop(held);
        String::from_utf8_lossy(&output.stderr).into_owned()
    }

    const COMMIT: &str = "git -c user.name=n -c user.email=e@example.org commit -q --allow-empty -m x";

    /// What is there, the session's folder, and what a command on a floor does there: Git would run another program with any
    /// of it.
    /// `mv` would copy what it cannot rename.
    const RENAME: &str =
        "rename() { python3 -c 'import os, sys; os.rename(sys.argv[1], sys.argv[2])' \"$1\" \"$2\" 2>/dev/null; }";

    const GIT_CASES: &[(&str, &str, &str)] = &[
        (
            "git init -q r; mkdir -p r/.git/worktrees/w; echo ../.. > r/.git/worktrees/w/commondir; rm -rf r/.git/hooks \
             r/.git/info",
            "r",
            "echo ../other > .git/commondir; true > .git/config.worktree; mkdir .git/hooks/x; true > .git/hooks/pre-commit; \
             mkdir .git/modules/m; rm -rf .git/commondir .git/modules; rename .git git; echo x > .git/worktrees/w/commondir; \
             echo x > .git/worktrees/w/config.worktree; echo x >> .git/config",
        ),
        // A repository below the top, a bare one, and a submodule.
        (
            "git init -q r; git init -q r/a/inner; git init -q --bare r/b; mkdir r/s; echo 'gitdir: ../.git/modules/s' > r/s/.git",
            "r",
            "echo x >> a/inner/.git/config; echo x > a/inner/.git/commondir; echo x > a/inner/.git/hooks/pre-commit; \
             rename a/inner/.git a/x; rename a/inner a/y; echo x >> b/config; echo x > b/hooks/update; rename b c; rm s/.git; echo x > s/.git",
        ),
        // A rebase that has stopped: what is left to do may name commands.
        (
            "git init -q r; mkdir r/.git/rebase-merge; echo pick > r/.git/rebase-merge/git-rebase-todo",
            "r",
            "cd .git; echo 'exec x' >> rebase-merge/git-rebase-todo; rm -rf rebase-merge; rename rebase-merge x; rename x/y \
             rebase-merge/git-rebase-todo",
        ),
        // A linked worktree.
        (
            "git init -q m; cd m; COMMIT; git worktree add -q ../r",
            "r",
            "rename .git .git.o; echo 'gitdir: g' > .git; rm -f .git",
        ),
        // Files that settings include, which need not exist, and hooks elsewhere.
        (
            "git init -q r; cd r; mkdir conf; echo '[alias]' > conf/shared; git config include.path ../conf/shared; git config \
             --add include.path ../none/at/all; git config core.hooksPath .husky/_",
            "r",
            "echo x >> conf/shared; rename conf c; mkdir -p none/at; echo x > none/at/all; mkdir -p .husky/_; echo x > .husky/_/pre-commit",
        ),
        // The session's folder lies in a repository whose settings name a file there.
        ("git init -q o; cd o; mkdir r; git config include.path ../r/shared", "o/r", "echo x > shared"),
        // Build tools write into these folders.
        (
            "mkdir -p r/.gradle/init.d r/.yarn/releases; cd r; echo x > .gradle/init.gradle; echo x > .yarn/releases/y.cjs",
            "r",
            "mkdir .gradle/4 && rmdir .gradle/4 && true > .yarn/s && rm .yarn/s || true > failed; cd .gradle; for f in init.gradle \
             init.d/x ../.yarn/releases/y.cjs; do echo y > $f; rm -f $f; done; cd ..; rename .gradle g; rename .yarn/releases y",
        ),
        // Files that run code later, wherever they lie.
        (
            "mkdir -p r/a/b/.vscode r/a/.husky/_ r/a/.cargo; cd r/a; echo x > b/.vscode/tasks.json; echo x > .husky/_/pre-commit; \
             echo x > .mcp.json; echo x > .cargo/config.toml; echo x > b/rust-toolchain",
            "r",
            "cd a; for f in b/.vscode/tasks.json .husky/_/pre-commit .husky/post-merge .mcp.json .cargo/config.toml \
             b/rust-toolchain; do echo y > $f; rm -f $f; rename $f x; done; rename b c; rename .husky h; rm -rf .husky",
        ),
    ];

    #[test]
    fn what_runs_code_later_stays_as_it_is() {
        if !matches!(FloorSupport::of(KernelLimits { namespaces: true, landlock: None }), FloorSupport::All) {
            return eprintln!("skipped: this machine has not all floors");
        }
        for (there, place, script) in GIT_CASES {
            let folder = tempfile::tempdir().unwrap();
            let top = folder.path().canonicalize().unwrap();
            outside(&top, &there.replace("COMMIT", COMMIT));
            let before = contents(&top);
            let said = confined(&top.join(place), &format!("{RENAME}; ({script}); true > made"));
            let mut after = contents(&top);
            assert!(after.remove(&top.join(place).join("made")).is_some(), "{said}");
            assert_eq!(after, before, "{there}: {script}: {said}");
        }
    }

    /// The table of `SANDBOX.md`, as far as this kernel goes.
    #[test]
    fn each_kernel_has_the_floors_of_the_matrix() {
        let here = FloorSupport::of(KernelLimits { namespaces: true, landlock: None });
        let FloorSupport::All = here else {
            eprintln!("skipped: this machine has not all floors: {here:?}");
            return;
        };
        let floors =
            |namespaces, landlock| match FloorSupport::of(KernelLimits { namespaces, landlock: Some(landlock) }) {
                FloorSupport::All => "all",
                FloorSupport::Reading { bare: false, .. } => "reading",
                FloorSupport::Reading { bare: true, .. } => "reading, bare",
                FloorSupport::None(_) => "none",
            };
        let found: Vec<(u8, &str, &str)> =
            [0, 1, 2, 3, 5, 6].map(|version| (version, floors(true, version), floors(false, version))).into();
        assert_eq!(
            found,
            [
                (0, "none", "none"),
                (1, "reading", "none"),
                (2, "reading", "none"),
                (3, "reading", "reading, bare"),
                (5, "reading", "reading, bare"),
                (6, "all", "reading, bare"),
            ]
        );
    }
}
