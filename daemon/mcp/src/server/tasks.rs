//! The tasks extension (SEP-2663): a long call becomes a task, which its client polls.
//!
//! The request runs as it does without the extension, but an [`McpTask`] attends it in place of a request of the client.
//! The server decides when a call becomes a task; the annotation `task` of a tool says what the tool prefers.

use parking_lot::Mutex;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
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
use toold_engine::detached::RETENTION;
use toold_engine::time::rfc3339;
use toold_proto::call::Progress;
use toold_proto::tool::TaskUse;

use crate::server::request_session::is_modern;
use crate::server::running_request::{AnswerSender, RequestOutcome, RequestResult};
use crate::server::{McpClientServer, McpFacade, McpIdentity};

/// A call of a tool that prefers tasks becomes one if it runs longer.
const SOON: Duration = Duration::from_millis(200);
/// How often a client is advised to poll.
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// Tasks of all clients, including stored ones that have ended.
const MAX_TASKS: usize = 1_000;
const MAX_MESSAGE: usize = 200;

/// Whether a request's client accepts tasks.
pub(super) fn are_accepted(context: &RequestContext<RoleServer>) -> bool {
    is_modern(context) && context.client_capabilities().is_some_and(|can| can.supports_tasks())
}

/// The error for a client without the extension that calls a tool which is always a task.
pub(super) fn missing() -> ErrorData {
    ErrorData::missing_required_client_capability(ClientCapabilities::builder().enable_tasks().build())
}

/// How a call may become a task.
#[derive(Clone)]
pub(super) struct TaskHandover {
    /// It becomes a task if it runs longer; at once when `None`.
    pub(super) after: Option<Duration>,
    /// Set when it became one.
    pub(super) done: Arc<AtomicBool>,
}

impl TaskHandover {
    /// `default`: the time after which a call of a tool without a preference becomes a task. `None` when this call never
    /// becomes one.
    pub(super) fn of(preference: Option<TaskUse>, default: Option<Duration>) -> Option<Self> {
        let after = match preference {
            Some(TaskUse::Required) => None,
            Some(TaskUse::Optional) => Some(SOON),
            None => Some(default?),
        };
        Some(Self { after, done: Arc::default() })
    }
}

#[derive(Default)]
pub(crate) struct McpTasks {
    /// Ids are derived from it, so that they cannot be guessed.
    key: [u8; 32],
    next: AtomicU64,
    all: Mutex<HashMap<String, Arc<McpTask>>>,
}

/// A task from its start until it expires.
pub(super) struct McpTask {
    id: String,
    owner: McpIdentity,
    created_at: SystemTime,
    started: Instant,
    answers: AnswerSender,
    cancel: CancellationToken,
    state: Mutex<McpTaskState>,
}

struct McpTaskState {
    updated_at: SystemTime,
    message: Option<String>,
    /// Requests that wait for the client, by the key that it sees: the key within the request, and the request.
    asked: BTreeMap<String, (String, Box<InputRequest>)>,
    /// Keys that the client has seen. Each is used once in the life of the task.
    used_keys: HashSet<String>,
    ended: Option<(Instant, TaskPayload)>,
}

impl McpTasks {
    pub(super) fn new(key: [u8; 32]) -> Self {
        Self { key, ..Self::default() }
    }

    /// Whether another task is accepted.
    pub(super) fn has_room(&self) -> bool {
        let mut all = self.all.lock();
        all.retain(|_, entry| !entry.is_over());
        all.len() < MAX_TASKS
    }

    /// Adds a task, which can be found by its id from now on.
    pub(super) fn add(&self, owner: McpIdentity, answers: AnswerSender, cancel: CancellationToken) -> Arc<McpTask> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let id = blake3::keyed_hash(&self.key, &number.to_be_bytes()).to_hex()[..32].to_owned();
        let state = McpTaskState {
            updated_at: SystemTime::now(),
            message: None,
            asked: BTreeMap::new(),
            used_keys: HashSet::new(),
            ended: None,
        };
        let (created_at, started) = (state.updated_at, Instant::now());
        let entry = McpTask { id: id.clone(), owner, created_at, started, answers, cancel, state: Mutex::new(state) };
        let entry = Arc::new(entry);
        self.all.lock().insert(id, entry.clone());
        entry
    }

    /// # Errors
    /// Invalid params: there is no task with this id, or it belongs to a client of another identity, which
    /// looks the same to the client.
    fn find(&self, id: &str, owner: &McpIdentity) -> Result<Arc<McpTask>, ErrorData> {
        let mut all = self.all.lock();
        all.retain(|_, entry| !entry.is_over());
        let found = all.get(id).filter(|entry| entry.owner == *owner).cloned();
        found.ok_or_else(|| {
            ErrorData::invalid_params(format!("taskId: there is no task {id}; it may have expired"), None)
        })
    }
}

impl McpTask {
    fn is_over(&self) -> bool {
        self.state.lock().ended.as_ref().is_some_and(|(at, _)| at.elapsed() > RETENTION)
    }

    /// The answer to the call that became this task.
    pub(super) fn created(&self) -> CreateTaskResult {
        CreateTaskResult::new(self.describe(&self.state.lock()))
    }

    /// The time to live ends some time after the task does, so it grows while the task runs.
    fn describe(&self, state: &McpTaskState) -> Task {
        let end = state.ended.as_ref().map_or_else(Instant::now, |(at, _)| *at);
        let ttl = end.duration_since(self.started) + RETENTION;
        let status = match &state.ended {
            Some((_, payload)) => payload.status(),
            None if state.asked.is_empty() => TaskStatus::Working,
            None => TaskStatus::InputRequired,
        };
        let task = Task::new(&self.id, status, rfc3339(self.created_at), rfc3339(state.updated_at))
            .with_ttl_ms(u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX))
            .with_poll_interval_ms(POLL_INTERVAL.as_millis() as u64);
        match &state.message {
            Some(message) => task.with_status_message(message),
            None => task,
        }
    }

    fn detailed(&self) -> DetailedTask {
        let state = self.state.lock();
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

    /// The call asks its client something, perhaps for a second time.
    pub(super) fn ask(&self, within: String, request: Box<InputRequest>) {
        let mut state = self.state.lock();
        let mut key = within.clone();
        let mut again = 1;
        while !state.used_keys.insert(key.clone()) {
            again += 1;
            key = format!("{within}.{again}");
        }
        state.asked.insert(key, (within, request));
        state.updated_at = SystemTime::now();
    }

    /// It was answered elsewhere, or is no longer needed.
    pub(super) fn end_ask(&self, within: &str) {
        let mut state = self.state.lock();
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
        let mut state = self.state.lock();
        state.message = Some(line[..line.floor_char_boundary(MAX_MESSAGE)].to_owned());
        state.updated_at = SystemTime::now();
    }

    pub(super) fn finish(&self, finished: RequestResult) {
        let payload = match finished {
            Ok(RequestOutcome::Tool(result)) => TaskPayload::Completed { result: object(&result) },
            Ok(RequestOutcome::Prompt(result)) => TaskPayload::Completed { result: object(&result) },
            Ok(RequestOutcome::Resource(result)) => TaskPayload::Completed { result: object(&result) },
            Ok(RequestOutcome::Cancelled) => TaskPayload::Cancelled,
            Err(error) => TaskPayload::Failed { error: object(&error) },
        };
        let mut state = self.state.lock();
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

impl McpClientServer {
    fn task(&self, id: &str) -> Result<Arc<McpTask>, ErrorData> {
        let mcp: &McpFacade = &self.mcp;
        mcp.tasks.find(id, &self.connection.identity)
    }

    pub(super) fn task_now(&self, asked: &GetTaskParams) -> Result<GetTaskResult, ErrorData> {
        Ok(GetTaskResult::new(self.task(&asked.task_id)?.detailed()))
    }

    /// Takes answers. Those to requests that are not open are ignored.
    pub(super) async fn answer_task(&self, update: UpdateTaskParams) -> Result<(), ErrorData> {
        let entry = self.task(&update.task_id)?;
        for (key, answer) in update.input_responses {
            let asked = entry.state.lock().asked.remove(&key);
            if let Some((within, _)) = asked {
                entry.answers.send(within, answer).await;
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
