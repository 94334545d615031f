//! The active configuration: those of the user and of every open project, turned into rules, hooks
//! and plugins.
//!
//! It is replaced as a whole, never changed in place. The rules of a project's file that deny or
//! ask apply while the project is open; everything else in it applies only in the version that a
//! person trusted last.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use anyhow::Context;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use toold_builtins::toolkit::Toolkit;
use toold_engine::Engine;
use toold_engine::client_profile::ClientProfile;
use toold_engine::kept::{ChangeEffect, NotKept};
use toold_engine::policy::Policy;
use toold_engine::policy::rules::RulePlace;
use toold_engine::registry::SourceScope;
use toold_engine::rule_files::RuleFiles;
use toold_host::environment::Environment;
use toold_host::sandbox::SandboxRules;
use toold_lua::reload::PluginHost;
use toold_proto::agent_programs::AGENT_PROGRAMS;
use toold_proto::config::{ConfigEntry, ReloadedConfig};
use toold_proto::daemon::GuardTrial;
use toold_proto::event::EventBody;
use toold_proto::permission::ObservedAgents;
use toold_store::Store;

use crate::config::fleet::FleetFiles;
use crate::config::hooks;
use crate::config::kept_state::keep;
use crate::config::mcp_profiles;
use crate::config::observing;
use crate::config::options::Options;
use crate::config::paused::PausedBy;
use crate::config::project::ProjectFile;
use crate::config::sandbox::{self, GuardTrials, SandboxConfig};
use crate::config::saved_files::SavedFiles;
use crate::config::secrets;
use crate::config::strict_rules::StrictRules;
use crate::config::watch::ConfigWatch;
use crate::config::{self, LoadedConfig};

/// How many projects without a session stay open: the next session there finds its plugins loaded.
const LINGERING: usize = 16;

/// Keys that take effect only when the daemon is restarted.
const AT_START: &[&str] = &[
    "audit.max_age_days",
    "audit.max_rows",
    "cache.max_mib",
    "limits.message_bytes",
    "limits.subscriptions_per_connection",
    "limits.vm_memory_mib",
    "log.file",
    "log.format",
    "log.keep",
    "log.max_kib",
    "page.listen",
    "trace.otlp_endpoint",
    "trace.sample",
    "plugins.poll_ms",
];

/// The configurations, as last read.
pub struct ActiveConfig {
    pub options: Options,
    engine: Arc<Engine>,
    plugins: Arc<PluginHost>,
    pub(super) store: Arc<Store>,
    builtins: Arc<Toolkit>,
    watch: ConfigWatch,
    saved: SavedFiles,
    /// Files that no tool may read: the database and the socket's folder.
    own_files: Vec<PathBuf>,
    pub(super) guard_trials: GuardTrials,
    loaded: watch::Sender<Arc<LoadedConfig>>,
    /// The configuration at the start of the daemon, for the keys that apply from then on.
    at_start: Arc<LoadedConfig>,
    /// The denials of each file when it was last read.
    strict: StrictRules,
    /// The errors of a newer file, which is not active.
    rejected: Mutex<Vec<String>>,
    /// Who has paused everything, and when.
    paused: Mutex<Option<PausedBy>>,
    /// The agents that are observed; maybe no longer.
    observing: Mutex<Option<ObservedAgents>>,
    /// Held while a file is read and applied, so that an older text of it never replaces a newer one.
    reloading: Mutex<()>,
    /// Held while a configuration is applied, so that this happens in the order of the changes.
    projects: Mutex<BTreeMap<PathBuf, OpenProject>>,
    /// Incremented when a project's configuration changes.
    changes: watch::Sender<u64>,
}

/// A project that sessions work in, or did recently.
struct OpenProject {
    sessions: usize,
    left: Instant,
    file: Arc<ProjectFile>,
    /// The version of the file that a person trusted last.
    trusted: Option<Arc<ProjectFile>>,
    /// Its sandbox settings. Tried once, when the file is trusted.
    sandbox: Option<SandboxRules>,
}

impl OpenProject {
    fn is_trusted(&self) -> bool {
        self.trusted.as_ref().is_some_and(|trusted| trusted.digest == self.file.digest)
    }
}

impl ActiveConfig {
    /// From the configuration read at the start; applied by [`ActiveConfig::apply_all`]. `watch` must have
    /// followed its file since before it was read.
    ///
    /// # Errors
    /// The socket's path has no folder.
    pub fn new(
        options: Options,
        loaded: LoadedConfig,
        engine: &Arc<Engine>,
        plugins: &Arc<PluginHost>,
        store: &Arc<Store>,
        builtins: &Arc<Toolkit>,
        watch: ConfigWatch,
    ) -> anyhow::Result<Arc<Self>> {
        let at_start = Arc::new(loaded);
        let saved = SavedFiles::default();
        drop(saved.reading(&options.config_file()));
        Ok(Arc::new(Self {
            saved,
            engine: engine.clone(),
            plugins: plugins.clone(),
            store: store.clone(),
            builtins: builtins.clone(),
            watch,
            own_files: own_files(&options)?,
            guard_trials: GuardTrials::default(),
            loaded: watch::Sender::new(at_start.clone()),
            at_start,
            strict: StrictRules::load(options.paths.strict_rules()),
            rejected: Mutex::default(),
            paused: Mutex::new(PausedBy::load(&options.paths.paused())),
            observing: Mutex::new(observing::load(&options.paths.observing())),
            reloading: Mutex::default(),
            projects: Mutex::default(),
            changes: watch::Sender::new(0),
            options,
        }))
    }

    /// The profile of MCP clients that has this name now.
    ///
    /// # Errors
    /// There is none, as a sentence for the user.
    pub fn profile(&self, name: &str) -> Result<ClientProfile, String> {
        mcp_profiles::find(&self.loaded().config.mcp.profiles, name, self.options.paths.home.as_deref())
    }

    /// The user's active configuration. Keep it only to compare: it is replaced when the file changes.
    pub fn loaded(&self) -> Arc<LoadedConfig> {
        self.loaded.borrow().clone()
    }

    /// Notifies of a change of the user's active configuration.
    pub fn loaded_changes(&self) -> watch::Receiver<Arc<LoadedConfig>> {
        self.loaded.subscribe()
    }

    /// Runs `put` now, and again after each change of the user's or a project's configuration,
    /// until the daemon stops. It may block, except the first time. See [`ActiveConfig::loaded`]
    /// and [`ActiveConfig::trusted_configs`].
    pub fn follow(self: &Arc<Self>, put: impl Fn(&ActiveConfig) + Send + Sync + 'static) {
        let (mut loaded, mut projects) = (self.loaded.subscribe(), self.changes.subscribe());
        put(self);
        let (state, put) = (self.clone(), Arc::new(put));
        self.engine.tasks.spawn(async move {
            loop {
                let changed = tokio::select! {
                    biased;
                    () = state.engine.stop.cancelled() => return,
                    changed = loaded.changed() => changed,
                    changed = projects.changed() => changed,
                };
                if changed.is_err() {
                    return;
                }
                let (state, put) = (state.clone(), put.clone());
                // Fails only when the runtime stops.
                let _ = tokio::task::spawn_blocking(move || put(&state)).await;
            }
        });
    }

    /// Reloads configurations when their files change, until the daemon stops.
    pub fn follow_files(self: &Arc<Self>, stop: CancellationToken) {
        let (config, tasks) = (self.clone(), self.engine.tasks.clone());
        self.engine.tasks.spawn(async move {
            loop {
                tokio::select! {
                    () = stop.cancelled() => return,
                    () = config.watch.changed() => {}
                }
                let config = config.clone();
                let read = tasks.spawn_blocking(move || config.reload_changed());
                if let Err(error) = read.await {
                    tracing::error!(%error, "a configuration could not be reloaded");
                }
            }
        });
    }

    /// The places to search for plugins, first to last.
    pub fn plugin_dirs(&self) -> Vec<PathBuf> {
        crate::config::plugins::dirs(&self.options, &self.loaded())
    }

    /// Tries the mode `guard` where no sandbox is set; see [`sandbox::trial_of_guard`].
    pub(crate) fn trial_of_guard(&self) -> Option<GuardTrial> {
        sandbox::trial_of_guard(&self.guard_trials, self.loaded(), &self.engine.policy.load())
    }

    /// The trusted configurations of open projects.
    pub fn trusted_configs(&self) -> Vec<Arc<ProjectFile>> {
        self.projects.lock().values().filter_map(|open| open.trusted.clone()).collect()
    }

    /// The current configuration of a project, and whether it is trusted; `None` while the project
    /// is not open.
    pub fn project_file(&self, project: &Path) -> Option<(Arc<ProjectFile>, bool)> {
        self.projects.lock().get(project).map(|open| (open.file.clone(), open.is_trusted()))
    }

    /// The errors in the configurations, as sentences for the user: of the newest files, active or
    /// not.
    pub fn config_problems(&self) -> Vec<String> {
        let mut problems = self.user_config_problems();
        problems.extend(self.projects.lock().values().flat_map(|open| open.file.problems.clone()));
        problems
    }

    /// The same of the user's configuration alone.
    pub fn user_config_problems(&self) -> Vec<String> {
        let rejected = self.rejected.lock().clone();
        if rejected.is_empty() { self.loaded().problems.clone() } else { rejected }
    }

    /// Opens a project for a session: the denials of its configuration apply from now on. Reads a
    /// small file when the project is new.
    pub(crate) fn enter(&self, project: &Path) {
        let mut projects = self.projects.lock();
        if let Some(open) = projects.get_mut(project) {
            open.sessions += 1;
            return;
        }
        // Before it is read, so that no change between is missed.
        let path = config::project::file_of(project);
        self.watch.follow(&path);
        let _read = self.saved.reading(&path);
        let file = Arc::new(ProjectFile::read(project));
        let trusted = self.is_trusted_config(&file).then(|| file.clone());
        log_problems(&file);
        let sandbox = trusted.as_ref().and_then(|trusted| self.sandbox_of(trusted));
        projects.insert(project.to_owned(), OpenProject { sessions: 1, left: Instant::now(), file, trusted, sandbox });
        self.apply(&projects);
    }

    /// Ends one session's use of the project.
    pub(crate) fn release(&self, project: &Path) {
        let mut projects = self.projects.lock();
        if let Some(open) = projects.get_mut(project) {
            open.sessions = open.sessions.saturating_sub(1);
            open.left = Instant::now();
        }
        let mut unused: Vec<(Instant, PathBuf)> = projects
            .iter()
            .filter(|(_, open)| open.sessions == 0)
            .map(|(path, open)| (open.left, path.clone()))
            .collect();
        if unused.len() <= LINGERING {
            return;
        }
        unused.sort();
        for (_, path) in &unused[..unused.len() - LINGERING] {
            projects.remove(path);
            self.engine.hooks.replace(&hooks::source(SourceScope::Project(path.clone())), Vec::new());
            let file = config::project::file_of(path);
            self.watch.forget(&file);
            self.saved.forget(&file);
        }
        self.apply(&projects);
    }

    /// Reloads the user's configuration. It is applied whole or not at all: while it has errors,
    /// the last valid one stays active. Blocks.
    pub fn reload(&self) -> ReloadedConfig {
        let _reloading = self.reloading.lock();
        let _read = self.saved.reading(&self.options.config_file());
        let next = Arc::new(config::load(&self.options));
        let file = self.options.config_file().display().to_string();
        let changed = |problems: Vec<String>| EventBody::ConfigChanged { file: file.clone(), project: None, problems };
        if !next.problems.is_empty() {
            let problems = next.problems.clone();
            for problem in &problems {
                tracing::error!(problem, "the new configuration is invalid: the previous one stays active");
            }
            *self.rejected.lock() = problems.clone();
            self.engine.events.emit(changed(problems.clone()));
            return ReloadedConfig { applied: false, problems, needs_restart: Vec::new() };
        }
        let projects = self.projects.lock();
        self.loaded.send_replace(next.clone());
        self.rejected.lock().clear();
        self.engine.settings.store(Arc::new(next.config.settings()));
        self.engine.limits.set(next.config.limits.calls_per_connection, next.config.limits.calls);
        self.engine.hooks.replace(&hooks::source(SourceScope::Global), next.hooks.clone());
        self.builtins.sandbox.replace(next.sandbox.clone());
        *self.builtins.kept_programs.lock() = next.config.shell.kept_programs();
        self.apply(&projects);
        drop(projects);
        // Not the errors of the previous file: a repeated request, also after the daemon has seen
        // the change itself, gets the same answer.
        let needs_restart = differing(&self.at_start.entries, &next.entries, AT_START);
        tracing::info!(file, ?needs_restart, "configuration reloaded");
        self.engine.events.emit(changed(Vec::new()));
        ReloadedConfig { applied: true, problems: Vec::new(), needs_restart }
    }

    /// Reloads the file of an open project, and checks whether it is trusted now. Blocks.
    pub fn reload_project(&self, project: &Path) {
        let _reloading = self.reloading.lock();
        let _read = self.saved.reading(&config::project::file_of(project));
        let file = Arc::new(ProjectFile::read(project));
        let trusted = self.is_trusted_config(&file);
        let mut projects = self.projects.lock();
        let Some(open) = projects.get_mut(project) else { return };
        if open.file.digest == file.digest && open.file.problems == file.problems && open.is_trusted() == trusted {
            return;
        }
        log_problems(&file);
        let problems = file.problems.clone();
        if trusted {
            open.trusted = Some(file.clone());
            open.sandbox = self.sandbox_of(&file);
        }
        open.file = file;
        self.apply(&projects);
        drop(projects);
        let (file, project) = (config::project::file_of(project).display().to_string(), project.display().to_string());
        self.engine.events.emit(EventBody::ConfigChanged { file, project: Some(project), problems });
    }

    /// Reloads everything, whether it changed or not; the answer is about the user's configuration.
    /// Blocks.
    pub fn reload_all(&self) -> ReloadedConfig {
        let reloaded = self.reload();
        let open: Vec<PathBuf> = self.projects.lock().keys().cloned().collect();
        open.iter().for_each(|project| self.reload_project(project));
        reloaded
    }

    /// Reloads the files that changed: the user's, and those of all open projects. Blocks.
    pub fn reload_changed(&self) {
        if self.watch.take_change(&self.options.config_file()) {
            self.reload();
        }
        let open: Vec<PathBuf> = self.projects.lock().keys().cloned().collect();
        for project in open {
            if self.watch.take_change(&config::project::file_of(&project)) {
                self.reload_project(&project);
            }
        }
    }

    /// The files whose rules hold for sessions of a project.
    fn files_for(&self, project: &Path) -> [PathBuf; 2] {
        [self.options.config_file(), config::project::file_of(project)]
    }

    /// Who has paused everything, if somebody has.
    pub fn paused(&self) -> Option<PausedBy> {
        self.paused.lock().clone()
    }

    /// Pauses everything, or lets it go on with `None`; also after a restart. Blocks.
    ///
    /// # Errors
    /// The state cannot be stored.
    pub fn set_paused(&self, paused: Option<PausedBy>) -> Result<(), NotKept> {
        let effect = if paused.is_some() { ChangeEffect::Narrows } else { ChangeEffect::Widens };
        effect.keep(|| keep(paused.as_ref(), &self.options.paths.paused()), |_| self.hold_paused(paused.clone()))
    }

    /// As [`ActiveConfig::set_paused`], for a state that another daemon keeps.
    pub(crate) fn hold_paused(&self, paused: Option<PausedBy>) {
        *self.paused.lock() = paused;
        self.decisions_changed();
    }

    /// The agents that are observed, if any are: this one, or any for `None`.
    pub fn observing(&self, agent: Option<&str>) -> Option<ObservedAgents> {
        self.observing.lock().clone().filter(|observed| observing::covers(observed, agent))
    }

    /// Observes agents, or ends that with `None`; also after a restart. Blocks.
    ///
    /// # Errors
    /// The state cannot be stored.
    pub fn set_observing(&self, observed: Option<ObservedAgents>) -> Result<(), NotKept> {
        // An agent that is observed decides by itself, so that more is allowed.
        let effect = if observed.is_some() { ChangeEffect::Widens } else { ChangeEffect::Narrows };
        let make = |_: Option<&()>| {
            *self.observing.lock() = observed.clone();
            // What was judged before is judged again.
            self.decisions_changed();
        };
        effect.keep(|| keep(observed.as_ref(), &self.options.paths.observing()), make)
    }

    /// Rereads which content is trusted, and which plugins are switched on or off.
    pub fn decisions_changed(&self) {
        let projects = self.projects.lock();
        self.apply(&projects);
    }

    /// Applies the configuration that was read at the start.
    pub(crate) fn apply_all(&self) {
        self.apply(&self.projects.lock());
    }

    fn sandbox_of(&self, trusted: &ProjectFile) -> Option<SandboxRules> {
        let config = &trusted.config.sandbox;
        (*config != SandboxConfig::default()).then(|| config.rules(&self.options.paths))
    }

    fn apply(&self, projects: &BTreeMap<PathBuf, OpenProject>) {
        let sandboxes = projects.iter().filter_map(|(project, open)| Some((project.clone(), open.sandbox.clone()?)));
        self.builtins.sandbox.replace_projects(sandboxes.collect());
        let loaded = self.loaded();
        self.engine.registry.set_tool_settings(loaded.tools.clone());
        let environment = Environment::inherited(self.options.environment.iter().cloned());
        let home = self.options.paths.home.as_deref();
        let mut policy: Policy = loaded.policy.clone();
        policy.private.extend(self.own_files.iter().cloned());
        policy.private.extend(FleetFiles::of(&loaded.config.fleet, &self.options).secret());
        policy.lost_refusals = self.store.lost_refusals();
        policy.paused = self.paused().map(|paused| paused.describe());
        policy = self.with_strict_rules(policy, &loaded);
        policy.control.extend(crate::config::plugins::control_files(&self.options, &loaded));
        for (project, open) in projects {
            policy = open.file.add_rules(policy, home, open.is_trusted());
            policy = self.with_strict_rules_of(policy, &open.file);
            let Some(trusted) = &open.trusted else { continue };
            if !open.is_trusted() {
                policy = trusted.add_trusted(policy, home);
            }
            policy.control.extend(crate::config::plugins::paths_of(trusted, &self.options));
            let scope = SourceScope::Project(project.clone());
            let mut made = Vec::new();
            for hook in &trusted.config.hooks {
                match hooks::read(hook.get_ref(), scope.clone(), &environment) {
                    Ok(hook) => made.push(hook),
                    // A blocking hook that cannot be loaded closes the policy instead.
                    Err(error) => {
                        let line = trusted.line_of(hook);
                        policy.close_project(project, &format!("{}:{line}: {error:#}", trusted.path.display()));
                    }
                }
            }
            self.engine.hooks.replace(&hooks::source(scope), made);
        }
        self.engine.policy.store(Arc::new(policy));
        self.engine.policy_changed();
        let trusted: Vec<(PathBuf, Option<Arc<ProjectFile>>)> =
            projects.iter().map(|(project, open)| (project.clone(), open.trusted.clone())).collect();
        let settings = crate::config::plugins::settings(&self.options, &loaded, &self.store, &trusted);
        self.plugins.update_settings(|now| *now = settings);
        self.changes.send_modify(|changes| *changes += 1);
    }
}

impl ActiveConfig {
    /// Stores the denials of the user's configuration, or adds the stored ones if part of it could
    /// not be read.
    fn with_strict_rules(&self, policy: Policy, loaded: &LoadedConfig) -> Policy {
        let (strict, file) = (&self.strict, self.options.config_file());
        if loaded.problems.is_empty() {
            strict.remember(&file, loaded.strict_rules(), loaded.hooks.len());
            return policy;
        }
        let home = self.options.paths.home.clone();
        let place = RulePlace { origin: String::new(), project: None, trusted: false, base: None, home };
        self.with_kept(policy, &file, &place, loaded.hooks.len())
    }

    /// The same for a project's.
    fn with_strict_rules_of(&self, policy: Policy, file: &ProjectFile) -> Policy {
        let home = self.options.paths.home.as_deref();
        if file.is_whole(home) {
            // A project's hooks apply once exactly this version of the file is trusted.
            self.strict.remember(&file.path, file.strict_rules(home), 0);
            return policy;
        }
        self.with_kept(policy, &file.path, &file.place_of_kept(home), 0)
    }

    fn with_kept(&self, policy: Policy, file: &Path, place: &RulePlace, hooks_in_force: usize) -> Policy {
        let mut policy = policy.with_rules(self.strict.of(file, place));
        policy.lost_refusals = policy.lost_refusals.or_else(|| self.strict.problem(file, hooks_in_force));
        policy
    }
}

fn log_problems(file: &ProjectFile) {
    for problem in &file.problems {
        tracing::warn!(project = %file.project.display(), problem, "everything that needs permission is denied in this project");
    }
}

/// The keys whose values differ.
fn differing(before: &[ConfigEntry], after: &[ConfigEntry], keys: &[&str]) -> Vec<String> {
    let value = |entries: &[ConfigEntry], key: &str| {
        entries.iter().find(|entry| entry.key == key).map(|entry| entry.value.clone())
    };
    keys.iter().filter(|key| value(before, key) != value(after, key)).map(|key| (*key).to_owned()).collect()
}

impl RuleFiles for ActiveConfig {
    fn are_current(&self, project: &Path) -> bool {
        self.files_for(project).iter().all(|file| self.saved.is_read(file))
    }

    fn until_current<'a>(&'a self, project: &'a Path) -> BoxFuture<'a, ()> {
        async move {
            if self.are_current(project) {
                return;
            }
            let files = self.files_for(project);
            files.iter().for_each(|file| self.watch.look_at(file));
            self.saved.wait(&files).await;
        }
        .boxed()
    }
}

/// Files that no tool may read: the database with SQLite's own files next to it, the folder of the socket, and that of
/// systemd's credentials.
fn own_files(options: &Options) -> anyhow::Result<Vec<PathBuf>> {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let state = real(&options.paths.state);
    let mut own: Vec<PathBuf> = [
        "toold.db",
        "toold.db-wal",
        "toold.db-shm",
        "refusals.jsonl",
        "refusals.new",
        "strict-rules.json",
        "strict-rules.new",
        "registrations",
        "plugin-versions",
        "mcp-token",
        "mcp-tokens",
        "secrets.json",
        "secrets.new",
        "paused.json",
        "paused.new",
        "observing.json",
        "observing.new",
        "admin-token",
        "instance",
        "agent-processes",
        AGENT_PROGRAMS,
        "remotes",
        "fleet",
        "undo",
        "temporary-names",
        "sessions",
        "log",
    ]
    .map(|name| state.join(name))
    .into();
    if let Some(socket) = &options.socket {
        own.push(real(socket.parent().context("the socket's path has no folder")?));
    }
    own.extend(secrets::options(options).credentials.map(|folder| real(&folder)));
    Ok(own)
}
