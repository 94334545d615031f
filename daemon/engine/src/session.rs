//! Sessions: the state of conversations. They outlive connections.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use dashmap::DashMap;
use globset::{Glob, GlobSet, GlobSetBuilder};
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use toold_proto::call::ListingMode;
use toold_proto::level::Level;
use toold_proto::provide::CallInfo;
use toold_proto::session::{ClientInfo, Mode, SessionInfo, ToolFilter, WorkspaceState};
use toold_proto::tool::{CallId, SessionId, Source, SourceKind, ToolName};

use crate::client_profile::{ClientProfile, ProfileFilter};
use crate::lanes::{Lane, LaneGuard};
use crate::slots::Slots;
use crate::tool::{Origin, ToolSpec};
use crate::workspace::Workspace;

/// The number of created files that a session records.
const MAX_MADE: usize = 1_000;

/// The parameters of a new session. Paths are resolved.
pub struct NewSession {
    pub id: SessionId,
    pub cwd: PathBuf,
    pub roots: Vec<PathBuf>,
    pub project: PathBuf,
    pub client: Option<ClientInfo>,
    pub model: Option<String>,
    pub env: BTreeMap<String, String>,
    pub filter: SessionFilter,
    /// `None` when a person chose the folders.
    pub workspace: Option<Workspace>,
}

/// Whom a session belongs to, which limits it besides its own mode and filter.
#[derive(Clone, Default)]
pub enum SessionOwner {
    /// A frontend: nothing else limits it.
    #[default]
    Frontend,
    /// A process that a tool started: it may do what the tool's session may do, never more.
    Tool(Starter),
    /// A process that an unknown tool started: it may only read.
    UnknownTool,
    /// A plugin that acts on its own, outside of any call: it works in no folder, and nobody is asked.
    Plugin {
        /// The folder of which it may read what controls nothing.
        profile: Option<PathBuf>,
    },
}

/// The call that started a process.
#[derive(Clone)]
pub struct Starter {
    pub session: Arc<Session>,
    /// The plugins that the process was started through, the outermost first.
    pub chain: Arc<[String]>,
}

impl fmt::Debug for SessionOwner {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Frontend => formatter.write_str("Frontend"),
            Self::Tool(starter) => {
                formatter.debug_tuple("Tool").field(&starter.session.id).field(&starter.chain).finish()
            }
            Self::UnknownTool => formatter.write_str("UnknownTool"),
            Self::Plugin { profile } => formatter.debug_struct("Plugin").field("profile", profile).finish(),
        }
    }
}

/// A call in flight, as its session sees it.
pub trait CallInFlight: Send + Sync {
    fn cancel(&self);

    /// As `calls.list` shows it.
    fn info(&self) -> CallInfo;
}

pub struct Session {
    pub id: SessionId,
    pub cwd: PathBuf,
    pub roots: Vec<PathBuf>,
    /// See [`Session::project`].
    project: PathBuf,
    /// See [`Session::grant_project`].
    grant_project: PathBuf,
    pub client: Option<ClientInfo>,
    pub model: Option<String>,
    /// Added to the environment of the session's processes.
    pub env: BTreeMap<String, String>,
    pub filter: SessionFilter,
    pub opened_at: SystemTime,
    /// Serial calls run one at a time.
    pub lane: Lane,
    /// Those of each mounted source: its calls delay no others.
    source_lanes: Mutex<BTreeMap<(SourceKind, String), Lane>>,
    /// Grows with every interrupt: calls that wait, and batches between their units, watch it.
    pub interrupts: watch::Sender<u64>,
    /// Calls that wait for the lane.
    pub(crate) waiting: AtomicU64,
    mode: Mutex<Mode>,
    /// The level that a person chose for it.
    level: Mutex<Option<Level>>,
    /// The level of its client's profile, which lowers that of the configuration.
    profile_level: Option<Level>,
    /// See [`Session::with_proven_agent`].
    proven_agent: Option<String>,
    owner: SessionOwner,
    workspace: Option<Workspace>,
    calls: Mutex<HashMap<CallId, Arc<dyn CallInFlight>>>,
    connections: AtomicU64,
    /// When it was opened, a connection detached, or a call ended.
    last_use: Mutex<Instant>,
    /// Data that tools keep for a session: read stamps, shells, lists. Keyed by type.
    slots: Slots,
    /// See [`Session::made`].
    made: Mutex<Vec<PathBuf>>,
    /// Fires when the session is closed.
    pub closed: CancellationToken,
}

/// Narrows a view to some tools, by their names and sources.
#[derive(Clone, Debug, Default)]
pub struct SessionFilter {
    given: ToolFilter,
    enable: Option<GlobSet>,
    disable: Option<GlobSet>,
    /// The filter of the client's profile.
    profile: Option<Arc<ProfileFilter>>,
    /// Narrows it further: of a profile, or of the session that holds this one.
    outer: Option<Arc<SessionFilter>>,
}

impl SessionFilter {
    /// # Errors
    /// A glob that cannot be read; the message names it.
    pub fn new(filter: &ToolFilter) -> Result<Self, globset::Error> {
        let set = |globs: &Option<Vec<String>>| -> Result<Option<GlobSet>, globset::Error> {
            let Some(globs) = globs else { return Ok(None) };
            let mut builder = GlobSetBuilder::new();
            for glob in globs {
                builder.add(Glob::new(glob)?);
            }
            builder.build().map(Some)
        };
        let (enable, disable) = (set(&filter.enable)?, set(&filter.disable)?);
        Ok(Self { given: filter.clone(), enable, disable, ..Self::default() })
    }

    /// The filter that shows a session the tools of a profile.
    ///
    /// # Errors
    /// A glob that cannot be read; the message names it.
    pub fn of_profile(profile: &ClientProfile) -> Result<Self, globset::Error> {
        Ok(Self { profile: Some(Arc::new(profile.filter()?)), ..Self::default() })
    }

    /// Narrowed by another filter, too.
    #[must_use]
    pub fn within(mut self, outer: SessionFilter) -> Self {
        self.outer = Some(Arc::new(match self.outer.take() {
            Some(own) => SessionFilter::clone(&own).within(outer),
            None => outer,
        }));
        self
    }

    fn is_each(&self, allows: &dyn Fn(&SessionFilter) -> bool) -> bool {
        allows(self) && self.outer.as_ref().is_none_or(|outer| outer.is_each(allows))
    }

    /// The globs of the filter.
    pub fn given(&self) -> &ToolFilter {
        &self.given
    }

    /// Globs apply to a tool's own name, so that another name gives nobody more tools. A tool is left out by either name.
    pub fn allows(&self, own_name: &ToolName, spec: &ToolSpec) -> bool {
        self.is_each(&|filter| filter.allows_itself(own_name, spec, |_| true))
    }

    /// Whether a tool that the session sees can call this one.
    pub fn allows_inner(&self, own_name: &ToolName, spec: &ToolSpec) -> bool {
        self.is_each(&|filter| filter.allows_itself(own_name, spec, |profile| profile.binds_inner_calls))
    }

    /// Whether the session sees what a source offers besides tools: if the client's profiles let it, and if it sees no
    /// other source alone.
    pub fn allows_offers_of(&self, source: &Source) -> bool {
        self.only_source().is_none_or(|only| source.name == only)
            && self.is_each(&|filter| filter.profile.as_ref().is_none_or(|profile| profile.allows_source(source)))
    }

    /// The one source whose tools the session sees, if it is limited to one by its name.
    pub fn only_source(&self) -> Option<&str> {
        let own = match self.given.sources.as_deref() {
            Some([only]) if SourceKind::ALL.iter().all(|kind| kind.as_str() != only) => Some(only.as_str()),
            _ => None,
        };
        own.or_else(|| self.outer.as_ref()?.only_source())
    }

    /// Whether the client's profiles let it run a slash command, which counts as a tool for them.
    pub fn allows_command(&self, name: &str, source: &Source) -> bool {
        self.is_each(&|filter| filter.profile.as_ref().is_none_or(|profile| profile.allows_tool(name, name, source)))
    }

    /// The list that a profile chooses.
    pub fn listing(&self) -> Option<ListingMode> {
        let own = self.profile.as_ref().and_then(|profile| profile.listing);
        own.or_else(|| self.outer.as_ref().and_then(|outer| outer.listing()))
    }

    fn allows_itself(&self, own_name: &ToolName, spec: &ToolSpec, binds: impl Fn(&ProfileFilter) -> bool) -> bool {
        let is_of = |sources: &Vec<String>| sources.iter().any(|source| spec.source.is_of(source));
        let excludes = |set: &GlobSet| set.is_match(own_name.as_str()) || set.is_match(spec.name.as_str());
        let profile = self.profile.as_ref().filter(|profile| binds(profile));
        self.enable.as_ref().is_none_or(|set| set.is_match(own_name.as_str()))
            && !self.disable.as_ref().is_some_and(excludes)
            && self.given.sources.as_ref().is_none_or(is_of)
            && !self.given.without_sources.as_ref().is_some_and(is_of)
            && profile.is_none_or(|profile| profile.allows_tool(own_name.as_str(), spec.name.as_str(), &spec.source))
    }
}

impl Session {
    /// The lane of the serial calls of a tool.
    pub(crate) fn lane_of(&self, spec: &ToolSpec) -> Lane {
        match spec.origin == Origin::Mcp {
            true => self.source_lanes.lock().entry((spec.source.kind, spec.source.name.clone())).or_default().clone(),
            false => self.lane.clone(),
        }
    }

    /// A frontend's session.
    pub fn new(new: NewSession) -> Self {
        Self::owned_by(new, SessionOwner::Frontend)
    }

    /// A session that belongs to something else: it follows the modes of the sessions above it, and a tool that they
    /// don't see it does not see either. The opener sees to its folders.
    pub fn owned_by(new: NewSession, owner: SessionOwner) -> Self {
        let NewSession { id, cwd, roots, project, client, model, env, mut filter, workspace } = new;
        if let SessionOwner::Tool(starter) = &owner {
            filter = filter.within(starter.session.filter.clone());
        }
        Self {
            id,
            cwd,
            roots,
            grant_project: project.clone(),
            project,
            client,
            model,
            env,
            filter,
            opened_at: SystemTime::now(),
            lane: Lane::default(),
            source_lanes: Mutex::default(),
            interrupts: watch::Sender::new(0),
            waiting: AtomicU64::new(0),
            mode: Mutex::default(),
            level: Mutex::default(),
            profile_level: None,
            proven_agent: None,
            owner,
            workspace,
            calls: Mutex::default(),
            connections: AtomicU64::new(0),
            last_use: Mutex::new(Instant::now()),
            slots: Slots::default(),
            made: Mutex::default(),
            closed: CancellationToken::new(),
        }
    }

    /// In this session, grants of another project count as well: see [`Session::grant_project`].
    pub fn with_grants_of(mut self, project: PathBuf) -> Self {
        self.grant_project = project;
        self
    }

    /// The effective mode: that of the topmost session that holds this one, as long as it is open.
    pub fn mode(&self) -> Mode {
        let mut session = self;
        loop {
            session = match &session.owner {
                SessionOwner::Frontend | SessionOwner::Plugin { .. } => break,
                SessionOwner::UnknownTool => return Mode::Plan,
                SessionOwner::Tool(starter) if starter.session.closed.is_cancelled() => return Mode::Plan,
                SessionOwner::Tool(starter) => &starter.session,
            }
        }
        *session.mode.lock()
    }

    /// Applies only to a session that nothing holds.
    pub fn set_mode(&self, mode: Mode) {
        *self.mode.lock() = mode;
    }

    /// The level that a person chose for this session, if one did. The level that counts is
    /// [`ConfiguredLevels::of`](crate::level::ConfiguredLevels::of).
    pub fn chosen_level(&self) -> Option<Level> {
        *self.level.lock()
    }

    /// Chooses a level for this session; `None` for that of the configuration.
    pub fn set_level(&self, level: Option<Level>) {
        *self.level.lock() = level;
    }

    /// In this session, the client's profile lowers the level of the configuration to this.
    pub fn with_profile_level(mut self, level: Option<Level>) -> Self {
        self.profile_level = level;
        self
    }

    /// The client that opened it runs the program that a person recorded for this agent.
    pub fn with_proven_agent(mut self, agent: Option<String>) -> Self {
        self.proven_agent = agent;
        self
    }

    pub(crate) fn proven_agent(&self) -> Option<&str> {
        self.proven_agent.as_deref()
    }

    pub(crate) fn profile_level(&self) -> Option<Level> {
        self.profile_level
    }

    pub fn owner(&self) -> &SessionOwner {
        &self.owner
    }

    /// Whether it belongs to a plugin that acts on its own.
    pub fn is_of_plugin(&self) -> bool {
        matches!(self.owner, SessionOwner::Plugin { .. })
    }

    /// The folder of which a plugin that acts on its own may read what controls nothing.
    pub fn profile(&self) -> Option<&Path> {
        match &self.owner {
            SessionOwner::Plugin { profile } => profile.as_deref(),
            SessionOwner::Frontend | SessionOwner::UnknownTool | SessionOwner::Tool(_) => None,
        }
    }

    /// The sessions of the tools that it belongs to, the nearest first.
    pub fn above(&self) -> Vec<&SessionId> {
        let mut above = Vec::new();
        let mut session = self;
        while let SessionOwner::Tool(starter) = &session.owner {
            session = &starter.session;
            above.push(&session.id);
        }
        above
    }

    /// Files and folders below the folder for temporary files that did not exist when the session was permitted to make them.
    pub fn made(&self) -> Vec<PathBuf> {
        self.topmost().made.lock().clone()
    }

    /// Records a file below the folder for temporary files that will be created.
    pub(crate) fn note_made(&self, path: &Path) {
        let mut made = self.topmost().made.lock();
        if made.len() < MAX_MADE && !made.iter().any(|before| path.starts_with(before)) {
            made.push(path.to_owned());
        }
    }

    /// The session that holds all others above this one, or this one.
    pub(crate) fn topmost(&self) -> &Self {
        let mut session = self;
        while let SessionOwner::Tool(starter) = &session.owner {
            session = &starter.session;
        }
        session
    }

    /// The nearest ancestor of `cwd` with a `.toold` folder, else the Git top level, else `cwd`. Until a person has opened
    /// its folders it is `/`, which has no skills, no plugins and no rules: what a project holds is as much the person's to
    /// show as the files in it.
    pub fn project(&self) -> &Path {
        if self.has_folder() { &self.project } else { Path::new("/") }
    }

    /// The same, also of a session whose folders wait for a person.
    pub fn own_project(&self) -> &Path {
        &self.project
    }

    /// The project that a grant for the session's project is made for: its [project](Self::project), or, if that lies in a
    /// linked worktree of Git, the same folder in the repository's main worktree.
    pub fn grant_project(&self) -> &Path {
        if self.has_folder() { &self.grant_project } else { Path::new("/") }
    }

    /// The same, also of a session whose folders wait for a person.
    pub fn own_grant_project(&self) -> &Path {
        &self.grant_project
    }

    /// The range of folders to search for a project's skills and the like: from a folder of this session up to the
    /// project's.
    /// `None` until a person has opened its folders.
    pub fn looks_in<'s>(&'s self, cwd: &'s Path) -> Option<(&'s Path, &'s Path)> {
        self.has_folder().then(|| (cwd, self.project()))
    }

    /// Whether it has a folder and may work there.
    pub fn has_folder(&self) -> bool {
        self.workspace_state() == WorkspaceState::Open
    }

    /// The state of its folders; `None` when a person chose them.
    pub fn workspace(&self) -> Option<&Workspace> {
        self.workspace.as_ref()
    }

    /// Whether it may work in its folders.
    pub fn workspace_state(&self) -> WorkspaceState {
        self.topmost().workspace.as_ref().map_or(WorkspaceState::Open, Workspace::state)
    }

    /// The folders that count as its own for a permission: `cwd` and the roots, of the topmost session that holds it,
    /// but for those that nobody opened yet.
    pub fn places(&self) -> Vec<Cow<'_, Path>> {
        let session = self.topmost();
        match &session.workspace {
            None if session.is_of_plugin() => Vec::new(),
            None => {
                let folders = std::iter::once(&session.cwd).chain(&session.roots);
                folders.map(|folder| Cow::Borrowed(folder.as_path())).collect()
            }
            Some(workspace) => workspace.open_folders().into_iter().map(Cow::Owned).collect(),
        }
    }

    /// The plugins between a person and the calls of this session: none, but below a plugin.
    pub fn chain(&self) -> Arc<[String]> {
        match &self.owner {
            SessionOwner::Frontend | SessionOwner::UnknownTool | SessionOwner::Plugin { .. } => Arc::from([]),
            SessionOwner::Tool(starter) => starter.chain.clone(),
        }
    }

    /// Whether a resolved path lies in the session's folder or one of its roots.
    pub fn contains(&self, path: &Path) -> bool {
        std::iter::once(&self.cwd).chain(&self.roots).any(|root| path.starts_with(root))
            || (self.topmost().workspace.is_some() && self.places().iter().any(|root| path.starts_with(root)))
    }

    /// Data that a tool keeps for this session; created on first use.
    pub fn slot<T: Default + Send + Sync + 'static>(&self) -> Arc<T> {
        self.slots.get()
    }

    /// The same, if it is there.
    pub fn slot_if_any<T: Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        self.slots.get_if_any()
    }

    /// Adds a call. `None` when one with this id is in flight.
    pub(crate) fn enter(self: &Arc<Self>, id: &CallId, call: Arc<dyn CallInFlight>) -> Option<InFlightGuard> {
        let mut calls = self.calls.lock();
        if calls.contains_key(id) {
            return None;
        }
        calls.insert(id.clone(), call);
        Some(InFlightGuard { session: self.clone(), id: id.clone() })
    }

    /// Cancels a call; false when none of that id is in flight.
    pub fn cancel(&self, id: &CallId) -> bool {
        let calls = self.calls.lock();
        calls.get(id).map(|call| call.cancel()).is_some()
    }

    /// Its calls in flight, in no order.
    pub fn calls(&self) -> Vec<Arc<dyn CallInFlight>> {
        let calls = self.calls.lock();
        calls.values().cloned().collect()
    }

    /// The call of this id, if it is in flight.
    pub fn call(&self, id: &CallId) -> Option<Arc<dyn CallInFlight>> {
        self.calls.lock().get(id).cloned()
    }

    /// Cancels every call in flight; returns how many.
    pub fn cancel_all(&self) -> u64 {
        let calls = self.calls.lock();
        calls.values().for_each(|call| call.cancel());
        calls.len() as u64
    }

    /// Skips the calls that wait for a turn; returns how many.
    pub fn interrupt(&self) -> u64 {
        let waiting = self.waiting.load(Ordering::Relaxed);
        self.interrupts.send_modify(|n| *n += 1);
        waiting
    }

    /// How many connections use it.
    pub fn connections(&self) -> u64 {
        self.connections.load(Ordering::Relaxed)
    }

    pub fn bind(&self) {
        self.connections.fetch_add(1, Ordering::Relaxed);
    }

    pub fn unbind(&self) {
        self.connections.fetch_sub(1, Ordering::Relaxed);
        self.note_use();
    }

    fn note_use(&self) {
        *self.last_use.lock() = Instant::now();
    }

    /// How long it has been unused, without the machine's sleep.
    fn unused_for(&self) -> Duration {
        self.last_use().elapsed()
    }

    fn last_use(&self) -> Instant {
        *self.last_use.lock()
    }

    /// `level`: the one that counts in it, see [`ConfiguredLevels::of`](crate::level::ConfiguredLevels::of).
    pub fn describe(&self, level: Level) -> SessionInfo {
        let text = |path: &PathBuf| path.display().to_string();
        SessionInfo {
            session_id: self.id.clone(),
            cwd: text(&self.cwd),
            roots: self.roots.iter().map(text).collect(),
            project: self.project().display().to_string(),
            mode: self.mode(),
            level,
            client: self.client.clone(),
            connections: self.connections(),
            opened_at: crate::time::rfc3339(self.opened_at),
            calls: self.calls.lock().len() as u64,
        }
    }
}

/// A call in flight; removed from its session when dropped.
pub struct InFlightGuard {
    session: Arc<Session>,
    id: CallId,
}

impl Drop for InFlightGuard {
    fn drop(&mut self) {
        self.session.calls.lock().remove(&self.id);
        self.session.note_use();
    }
}

/// The open sessions.
#[derive(Default)]
pub struct Sessions {
    all: DashMap<SessionId, Arc<Session>>,
    elsewhere: Mutex<BusyElsewhere>,
}

/// Sessions of which another daemon still runs serial calls.
#[derive(Default)]
struct BusyElsewhere {
    ids: HashSet<SessionId>,
    /// The lanes of those that are open here.
    lanes: Vec<LaneGuard>,
}

impl Sessions {
    pub fn find(&self, id: &SessionId) -> Option<Arc<Session>> {
        self.all.get(id).map(|session| session.clone())
    }

    /// Adds a session, or returns the existing one of that id; true when it existed.
    pub fn open(&self, session: Session) -> (Arc<Session>, bool) {
        let mut there = true;
        let entry = self.all.entry(session.id.clone()).or_insert_with(|| {
            there = false;
            let mut elsewhere = self.elsewhere.lock();
            if elsewhere.ids.contains(&session.id) {
                elsewhere.lanes.extend(session.lane.try_take());
            }
            Arc::new(session)
        });
        (entry.clone(), there)
    }

    /// The sessions of which serial calls run.
    pub fn busy(&self) -> Vec<SessionId> {
        let busy = self.all.iter().filter(|session| session.lane.is_held());
        busy.map(|session| session.id.clone()).collect()
    }

    /// Serial calls of these sessions wait from now on, while another daemon runs those that it had. Called before any of
    /// them is open here.
    pub fn set_busy_elsewhere(&self, ids: Vec<SessionId>) {
        self.elsewhere.lock().ids = ids.into_iter().collect();
    }

    /// The other daemon is gone.
    pub fn end_busy_elsewhere(&self) {
        let over = std::mem::take(&mut *self.elsewhere.lock());
        drop(over);
    }

    /// Closes a session and cancels its calls; returns how many. `None` for an unknown one.
    pub fn close(&self, id: &SessionId) -> Option<u64> {
        let (_, session) = self.all.remove(id)?;
        session.closed.cancel();
        Some(session.cancel_all())
    }

    /// Closes and returns the sessions that have been unused for this long: that no connection, no
    /// call and nothing else holds, and that `in_use` does not claim.
    pub fn close_unused(&self, unused: Duration, in_use: impl Fn(&Session) -> bool) -> Vec<Arc<Session>> {
        let ids: Vec<SessionId> = self.all.iter().map(|entry| entry.key().clone()).collect();
        ids.iter().filter_map(|id| self.close_if_unused(id, unused, &in_use)).collect()
    }

    /// The same for unused sessions beyond `most`, those unused the longest first. Only of those that are counted.
    pub fn close_surplus(
        &self,
        most: usize,
        is_counted: impl Fn(&Session) -> bool,
        in_use: impl Fn(&Session) -> bool,
    ) -> Vec<Arc<Session>> {
        if self.all.len() <= most {
            return Vec::new();
        }
        let unused = self.all.iter().filter(|entry| Arc::strong_count(entry.value()) == 1 && is_counted(entry.value()));
        let mut unused: Vec<_> = unused.map(|entry| (entry.last_use(), entry.key().clone())).collect();
        unused.sort();
        let surplus = unused.len().saturating_sub(most);
        unused[..surplus].iter().filter_map(|(_, id)| self.close_if_unused(id, Duration::ZERO, &in_use)).collect()
    }

    fn close_if_unused(
        &self,
        id: &SessionId,
        unused: Duration,
        in_use: impl Fn(&Session) -> bool,
    ) -> Option<Arc<Session>> {
        // A caller that is about to use it got it from this map, under the lock that is held here.
        let alone = |session: &Arc<Session>| {
            Arc::strong_count(session) == 1 && session.unused_for() >= unused && !in_use(session)
        };
        let (_, session) = self.all.remove_if(id, |_, session| alone(session))?;
        session.closed.cancel();
        Some(session)
    }

    /// The oldest first.
    pub fn list(&self) -> Vec<Arc<Session>> {
        let mut all: Vec<Arc<Session>> = self.all.iter().map(|entry| entry.value().clone()).collect();
        all.sort_by(|a, b| (a.opened_at, &a.id).cmp(&(b.opened_at, &b.id)));
        all
    }

    pub fn len(&self) -> usize {
        self.all.len()
    }

    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }
}

#[cfg(test)]
mod tests;
