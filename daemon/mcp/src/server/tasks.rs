//! The tasks extension (SEP-2663): a call that takes long is a task, which its client comes back for.
//!
//! The work is the same as without: only it is a keeper, not a request, that attends to it. Handing over is this
//! side's decision; a tool says by its annotation `task` what it wants.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant, SystemTime};

use rmcp::ErrorData;
use rmcp::model::{
    CancelTaskParams, ClientCapabilities, CreateTaskResult, DetailedTask, GetTaskParams, GetTaskResult, InputRequest,
    InputRequests, JsonObject, Task, TaskPayload, TaskStatus, UpdateTaskParams,
};
use rmcp::service::{RequestContext, RoleServer};
use serde::Serialize;
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use toold_engine::call::Principal;
use toold_engine::detached::RETENTION;
use toold_engine::time::rfc3339;
use toold_proto::call::Progress;
use toold_proto::tool::TaskUse;

use crate::server::view::is_modern;
use crate::server::work::{Answers, Finished, Outcome};
use crate::server::{Mcp, Server};

/// A tool that wants to be a task is one when it is not over by then.
const MOMENT: Duration = Duration::from_millis(200);
/// How often a client is advised to ask.
const POLL: Duration = Duration::from_millis(500);
/// Tasks of all clients, those that ended and are kept included.
const MAX_TASKS: usize = 1_000;
const MAX_MESSAGE: usize = 200;

/// Whether a request's client can be handed tasks.
pub(super) fn are_taken(context: &RequestContext<RoleServer>) -> bool {
    is_modern(context) && context.client_capabilities().is_some_and(|can| can.supports_tasks())
}

/// What is told to a client without the extension of a tool that is always a task.
pub(super) fn missing() -> ErrorData {
    ErrorData::missing_required_client_capability(ClientCapabilities::builder().enable_tasks().build())
}

/// How a call may become a task.
#[derive(Clone)]
pub(super) struct Handing {
    /// It is handed over when it is not over by then; at once when none.
    pub(super) after: Option<Duration>,
    /// Set when it is.
    pub(super) done: Arc<AtomicBool>,
}

impl Handing {
    /// `unusual`: when a call of a tool that says nothing takes unusually long. `None`: this one stays a request.
    pub(super) fn of(wanted: Option<TaskUse>, unusual: Option<Duration>) -> Option<Self> {
        let after = match wanted {
            Some(TaskUse::Required) => None,
            Some(TaskUse::Optional) => Some(MOMENT),
            None => Some(unusual?),
        };
        Some(Self { after, done: Arc::default() })
    }
}

#[derive(Default)]
pub(crate) struct Tasks {
    /// Ids are made of it, so that nobody guesses one.
    key: [u8; 32],
    next: AtomicU64,
    all: Mutex<HashMap<String, Arc<Entry>>>,
}

/// A task from its beginning until it is forgotten.
pub(super) struct Entry {
    id: String,
    owner: Principal,
    created_at: SystemTime,
    began: Instant,
    answers: Answers,
    cancel: CancellationToken,
    state: Mutex<State>,
}

struct State {
    updated_at: SystemTime,
    message: Option<String>,
    /// What waits for the client: by the name that it was told, the name within, and the request.
    asked: BTreeMap<String, (String, Box<InputRequest>)>,
    /// Names that were told: each stands for one thing, as long as the task is there.
    told: HashSet<String>,
    ended: Option<(Instant, TaskPayload)>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("no code panics while it holds this lock")
}

impl Tasks {
    pub(super) fn new(key: [u8; 32]) -> Self {
        Self { key, ..Self::default() }
    }

    /// Whether another one is taken.
    pub(super) fn has_room(&self) -> bool {
        let mut all = lock(&self.all);
        all.retain(|_, entry| !entry.is_over());
        all.len() < MAX_TASKS
    }

    /// Enters a task; from now on it is found by its id.
    pub(super) fn enter(&self, owner: Principal, answers: Answers, cancel: CancellationToken) -> Arc<Entry> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let id = blake3::keyed_hash(&self.key, &number.to_be_bytes()).to_hex()[..32].to_owned();
        let state = State {
            updated_at: SystemTime::now(),
            message: None,
            asked: BTreeMap::new(),
            told: HashSet::new(),
            ended: None,
        };
        let (created_at, began) = (state.updated_at, Instant::now());
        let entry = Entry { id: id.clone(), owner, created_at, began, answers, cancel, state: Mutex::new(state) };
        let entry = Arc::new(entry);
        lock(&self.all).insert(id, entry.clone());
        entry
    }

    /// # Errors
    /// Invalid params: there is none of this id, or it is another principal's, which is the same to whoever asks.
    fn find(&self, id: &str, owner: Principal) -> Result<Arc<Entry>, ErrorData> {
        let mut all = lock(&self.all);
        all.retain(|_, entry| !entry.is_over());
        let found = all.get(id).filter(|entry| entry.owner == owner).cloned();
        found.ok_or_else(|| ErrorData::invalid_params(format!("taskId: there is no task {id}, or none any more"), None))
    }
}

impl Entry {
    fn is_over(&self) -> bool {
        lock(&self.state).ended.as_ref().is_some_and(|(at, _)| at.elapsed() > RETENTION)
    }

    /// As a client is told that there is a task now.
    pub(super) fn created(&self) -> CreateTaskResult {
        CreateTaskResult::new(self.describe(&lock(&self.state)))
    }

    /// It is kept for a time after its end; until then the end of its life moves on with it.
    fn describe(&self, state: &State) -> Task {
        let end = state.ended.as_ref().map_or_else(Instant::now, |(at, _)| *at);
        let life = end.duration_since(self.began) + RETENTION;
        let status = match &state.ended {
            Some((_, payload)) => payload.status(),
            None if state.asked.is_empty() => TaskStatus::Working,
            None => TaskStatus::InputRequired,
        };
        let task = Task::new(&self.id, status, rfc3339(self.created_at), rfc3339(state.updated_at))
            .with_ttl_ms(u64::try_from(life.as_millis()).unwrap_or(u64::MAX))
            .with_poll_interval_ms(POLL.as_millis() as u64);
        match &state.message {
            Some(message) => task.with_status_message(message),
            None => task,
        }
    }

    fn detailed(&self) -> DetailedTask {
        let state = lock(&self.state);
        let payload = match &state.ended {
            Some((_, payload)) => payload.clone(),
            None if state.asked.is_empty() => TaskPayload::Working,
            None => {
                let asked = state.asked.iter().map(|(key, (_, request))| (key.clone(), (**request).clone()));
                TaskPayload::InputRequired { input_requests: asked.collect::<InputRequests>() }
            }
        };
        DetailedTask::new(self.describe(&state), payload)
    }

    /// The work asks its client something, perhaps once more.
    pub(super) fn ask(&self, within: String, request: Box<InputRequest>) {
        let mut state = lock(&self.state);
        let mut key = within.clone();
        let mut again = 1;
        while !state.told.insert(key.clone()) {
            again += 1;
            key = format!("{within}.{again}");
        }
        state.asked.insert(key, (within, request));
        state.updated_at = SystemTime::now();
    }

    /// It was answered elsewhere, or is wanted no more.
    pub(super) fn end_ask(&self, within: &str) {
        let mut state = lock(&self.state);
        state.asked.retain(|_, (known, _)| known != within);
        state.updated_at = SystemTime::now();
    }

    pub(super) fn progress(&self, progress: Progress) {
        let text = match progress {
            Progress::Output { text, .. } | Progress::Message { text } => Some(text),
            Progress::Update { message, .. } => message,
        };
        let text = text.unwrap_or_default();
        let Some(line) = text.lines().rev().find(|line| !line.trim().is_empty()) else { return };
        let line = line.trim();
        let mut state = lock(&self.state);
        state.message = Some(line[..line.floor_char_boundary(MAX_MESSAGE)].to_owned());
        state.updated_at = SystemTime::now();
    }

    pub(super) fn finish(&self, finished: Finished) {
        let payload = match finished {
            Ok(Outcome::Tool(result)) => TaskPayload::Completed { result: object(&result) },
            Ok(Outcome::Prompt(result)) => TaskPayload::Completed { result: object(&result) },
            Ok(Outcome::Resource(result)) => TaskPayload::Completed { result: object(&result) },
            Ok(Outcome::Cancelled) => TaskPayload::Cancelled,
            Err(error) => TaskPayload::Failed { error: object(&error) },
        };
        let mut state = lock(&self.state);
        state.asked.clear();
        state.updated_at = SystemTime::now();
        state.ended = Some((Instant::now(), payload));
    }
}

fn object(value: &impl Serialize) -> JsonObject {
    match serde_json::to_value(value) {
        Ok(Value::Object(object)) => object,
        Ok(_) | Err(_) => JsonObject::new(),
    }
}

impl Server {
    fn task(&self, id: &str) -> Result<Arc<Entry>, ErrorData> {
        let mcp: &Mcp = &self.mcp;
        mcp.tasks.find(id, self.connection.principal)
    }

    pub(super) fn task_now(&self, asked: &GetTaskParams) -> Result<GetTaskResult, ErrorData> {
        Ok(GetTaskResult::new(self.task(&asked.task_id)?.detailed()))
    }

    /// Takes answers. What is not asked, or was answered already, is passed over.
    pub(super) async fn answer_task(&self, update: UpdateTaskParams) -> Result<(), ErrorData> {
        let entry = self.task(&update.task_id)?;
        for (key, answer) in update.input_responses {
            let asked = lock(&entry.state).asked.remove(&key);
            if let Some((within, _)) = asked {
                entry.answers.give(within, answer).await;
            }
        }
        Ok(())
    }

    /// Cancels the call; one that has ended stays as it is.
    pub(super) fn end_task(&self, cancel: &CancelTaskParams) -> Result<(), ErrorData> {
        self.task(&cancel.task_id)?.cancel.cancel();
        Ok(())
    }
}
