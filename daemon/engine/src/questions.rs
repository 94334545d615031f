//! Questions of tools to people.
//!
//! [`ask`] is a call that waits, [`reply`] a person's answer. As with permissions, the first reply counts
//! and a question ends with its call; see [`crate::prompts`].

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde_json::{Map, Value};
use tokio::sync::watch;
use tokio::time::Instant;
use toold_proto::event::EventBody;
use toold_proto::permission::Answerer;
use toold_proto::provide::CallWait;
use toold_proto::question::{Question, QuestionEnd, QuestionEvent, QuestionOption, QuestionResolved, ReplyQuestion};
use toold_proto::tool::{CallId, SessionId};

use crate::Engine;
use crate::asks::STOPPED_WHILE_ASKED;
use crate::call::Caller;
use crate::cx::Cx;
use crate::events::Events;
use crate::prompts::{PromptEvent, PromptKind, PromptScope, PromptSubscription, Prompts, WaitOutcome};
use crate::schema::Schema;
use crate::time::rfc3339;
use crate::tool::ToolError;

/// The questions that wait for a person, and the frontends that can answer them.
pub struct Questions {
    prompts: Prompts<PendingQuestion>,
}

/// A question of a tool.
#[derive(Clone, Debug, PartialEq)]
pub struct QuestionRequest {
    pub question: String,
    /// With ids that are unique.
    pub options: Vec<QuestionOption>,
    pub multiple: bool,
    pub allow_other: bool,
}

/// A person's answer to a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QuestionAnswer {
    /// Ids of options, in the order of the question, and free text of the person.
    Answer { answer_ids: Vec<String>, answer: Option<String> },
    /// The person declines to answer.
    Cancelled,
}

/// A form that a tool wants filled in.
#[derive(Clone, Debug)]
pub struct FormRequest {
    /// The name of the form, for clients that show several forms at once.
    pub key: Option<String>,
    pub message: String,
    /// The schema of an object; frontends show its properties as fields.
    pub schema: Schema,
}

/// The outcome of a form.
#[derive(Clone, Debug, PartialEq)]
pub enum FormOutcome {
    /// Matches the form's schema.
    Accepted(Map<String, Value>),
    /// The person declined.
    Declined,
    /// The person dismissed the form.
    Cancelled,
}

/// Why a reply was rejected. The question is still pending after `NoAnswer` alone.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QuestionReplyError {
    #[error("no question {0} is waiting for an answer: it was answered, it ended, or it never existed")]
    Unknown(String),
    #[error("question {0} is already answered: {1}")]
    AlreadyAnswered(String, String),
    #[error("question {0} has ended: {1}")]
    Ended(String, String),
    #[error("{0}")]
    NoAnswer(String),
}

#[derive(Clone, Debug)]
pub struct PendingQuestion {
    question: Box<Question>,
    /// The schema that a form's fields must match.
    schema: Option<Schema>,
}

#[derive(Clone, Debug)]
pub struct EndedQuestion {
    resolved: QuestionResolved,
    /// `None` when nobody answered.
    said: Option<PersonReply>,
}

#[derive(Clone, Debug)]
enum PersonReply {
    Question(QuestionAnswer),
    Form(FormOutcome),
}

impl PromptKind for PendingQuestion {
    type Outcome = EndedQuestion;
    type End = QuestionResolved;

    fn session(&self) -> &SessionId {
        &self.question.session_id
    }

    // A question is never joined: each has its one call.
    fn join(&mut self, _: &Cx, _: Duration) {}

    fn leave(&mut self, _: &CallId) {}

    fn cancelled(&self) -> EndedQuestion {
        ended(&self.question.request_id, QuestionEnd::Cancelled, "the call ended")
    }

    fn asked(&self) -> EventBody {
        EventBody::QuestionAsked { session_id: self.question.session_id.clone(), request: self.question.clone() }
    }

    fn resolved(&self, outcome: &EndedQuestion) -> EventBody {
        EventBody::QuestionAnswered { session_id: self.question.session_id.clone(), resolved: outcome.resolved.clone() }
    }

    fn end(outcome: &EndedQuestion) -> QuestionResolved {
        outcome.resolved.clone()
    }
}

/// A frontend that receives questions. While it exists it counts as able to answer.
pub struct QuestionSubscription(PromptSubscription<PendingQuestion>);

impl QuestionSubscription {
    /// First every pending question, then new events; none is lost. Cancel-safe.
    pub async fn next(&mut self) -> QuestionEvent {
        to_wire(self.0.next().await)
    }

    /// The next event, if one is ready.
    pub fn try_next(&mut self) -> Option<QuestionEvent> {
        self.0.try_next().map(to_wire)
    }
}

fn to_wire(news: PromptEvent<PendingQuestion>) -> QuestionEvent {
    match news {
        PromptEvent::Asked(asked) => QuestionEvent::Asked { request: asked.question },
        PromptEvent::Resolved(ended) => QuestionEvent::Resolved(ended.resolved),
    }
}

impl Questions {
    pub(crate) fn new(events: Arc<Events>) -> Self {
        Self { prompts: Prompts::new(events) }
    }

    /// `session`: only that session's questions; `None` for all.
    pub fn subscribe(&self, session: Option<SessionId>) -> QuestionSubscription {
        QuestionSubscription(self.prompts.subscribe(true, session.map_or(PromptScope::All, PromptScope::Session)))
    }

    /// For a client that can answer for this caller only.
    pub fn subscribe_for(&self, caller: Arc<Caller>) -> QuestionSubscription {
        QuestionSubscription(self.prompts.subscribe(true, PromptScope::Caller(caller)))
    }

    /// Call it when frontends of the previous daemon will connect to this one: for a while, questions wait for them.
    pub fn expect_frontends(&self) {
        self.prompts.expect_frontends();
    }

    /// Whether a frontend is connected that can answer the questions of all calls.
    pub fn can_all_be_answered(&self) -> bool {
        self.prompts.can_all_be_answered()
    }

    /// Fires when questions, or frontends that see them, come and go.
    pub fn changes(&self) -> watch::Receiver<()> {
        self.prompts.changes()
    }

    /// The oldest first.
    pub fn pending(&self) -> Vec<Question> {
        self.prompts.pending().into_iter().map(|asked| *asked.question).collect()
    }
}

/// Asks a person and waits. The call's deadline is paused meanwhile, and its caller is notified
/// that it waits.
///
/// # Errors
/// `Failed` when nobody can answer, or nobody did; `Cancelled` when the call ends first.
pub async fn ask(cx: &Cx, asking: QuestionRequest) -> Result<QuestionAnswer, ToolError> {
    match put(cx, asking, None, None).await? {
        PersonReply::Question(said) => Ok(said),
        // Only forms are filled in.
        PersonReply::Form(_) => Ok(QuestionAnswer::Cancelled),
    }
}

/// Asks a person to fill in a form, which is a question with a `schema`. See [`ask`].
///
/// # Errors
/// As [`ask`].
pub async fn elicit(cx: &Cx, form: FormRequest) -> Result<FormOutcome, ToolError> {
    let FormRequest { key, message, schema } = form;
    let asking = QuestionRequest { question: message, options: Vec::new(), multiple: false, allow_other: false };
    match put(cx, asking, Some(schema), key).await? {
        PersonReply::Form(filled) => Ok(filled),
        PersonReply::Question(_) => Ok(FormOutcome::Cancelled),
    }
}

impl Cx {
    /// Asks a person a question, and waits for the answer; pauses the deadline meanwhile.
    ///
    /// # Errors
    /// As [`ask`]. A tool passes them on with `?`.
    pub async fn question(&self, request: QuestionRequest) -> Result<QuestionAnswer, ToolError> {
        ask(self, request).await
    }

    /// Asks a person to fill in a form; pauses the deadline meanwhile.
    ///
    /// # Errors
    /// As [`elicit`]. A tool passes them on with `?`.
    pub async fn elicit(&self, form: FormRequest) -> Result<FormOutcome, ToolError> {
        elicit(self, form).await
    }
}

async fn put(
    cx: &Cx,
    asking: QuestionRequest,
    schema: Option<Schema>,
    name: Option<String>,
) -> Result<PersonReply, ToolError> {
    let engine = &cx.engine;
    if engine.stop.is_cancelled() {
        return Err(ToolError::Cancelled);
    }
    let settings = engine.settings.load_full();
    let make = |number| {
        let now = SystemTime::now();
        let question = Question {
            request_id: format!("question_{}_{number}", engine.short_epoch()),
            session_id: cx.session.id.clone(),
            call_id: cx.call_id.clone(),
            tool: Some(cx.tool.to_string()),
            agent: cx.asker(),
            cwd: Some(cx.cwd.display().to_string()),
            question: asking.question.clone(),
            options: asking.options.clone(),
            multiple: asking.multiple,
            allow_other: asking.allow_other,
            schema: schema.as_ref().map(|schema| schema.as_value().clone()),
            key: name.clone(),
            asked_at: rfc3339(now),
            expires_at: rfc3339(now + settings.ask_timeout),
        };
        PendingQuestion { question: Box::new(question), schema: schema.clone() }
    };
    // Each question is one prompt: the same words may mean something else to another call.
    let key = format!("{:?}", (cx.session.id.as_str(), cx.call_id.as_str(), &asking.question));
    let entered = engine.questions.prompts.enter(key, cx, settings.ask_timeout, make);
    let Some(mut waiter) = entered else { return Err(nobody()) };
    let _pause = cx.deadline.pause();
    let _waiting = cx.wait_for(CallWait::Answer);
    let mut heartbeat = tokio::time::interval_at(Instant::now() + settings.heartbeat, settings.heartbeat);
    loop {
        tokio::select! {
            biased;
            // Dropping the waiter ends the question.
            () = engine.stop.cancelled() => return Err(ToolError::Stopped(STOPPED_WHILE_ASKED)),
            () = cx.cancel.cancelled() => return Err(ToolError::Cancelled),
            waited = waiter.wait() => {
                let (ended, otherwise) = match waited {
                    WaitOutcome::Answered(ended) => (ended, ToolError::Cancelled),
                    WaitOutcome::Expired => {
                        let words = format!("no answer within {} s", settings.ask_timeout.as_secs());
                        let end = ended(&waiter.prompt.question.request_id, QuestionEnd::Expired, &words);
                        (waiter.resolve(end), ToolError::Failed(words))
                    }
                    WaitOutcome::Alone => {
                        let how = "no client is connected any more that could answer";
                        let end = ended(&waiter.prompt.question.request_id, QuestionEnd::Expired, how);
                        (waiter.resolve(end), nobody())
                    }
                };
                return ended.said.ok_or(otherwise);
            }
            _ = heartbeat.tick() => cx.message("waiting for a person's answer"),
        }
    }
}

/// A person's answer to a question. The first one counts. `session`: the only session that the
/// author answers for.
///
/// # Errors
/// Nothing was answered. See [`QuestionReplyError`].
pub fn reply(
    engine: &Engine,
    reply: &ReplyQuestion,
    by: Answerer,
    session: Option<&SessionId>,
) -> Result<(), QuestionReplyError> {
    let is_it = |asked: &PendingQuestion| {
        asked.question.request_id == reply.request_id
            && session.is_none_or(|session| *session == asked.question.session_id)
    };
    let prompts = &engine.questions.prompts;
    let (id, asked) = prompts.claim(is_it).ok_or_else(|| {
        let id = reply.request_id.clone();
        // Only who may answer all questions learns how others were answered.
        match prompts.end(|end| end.request_id == id).filter(|_| session.is_none()) {
            Some(end) if end.by.is_some() => QuestionReplyError::AlreadyAnswered(id, end.how),
            Some(end) => QuestionReplyError::Ended(id, end.how),
            None => QuestionReplyError::Unknown(id),
        }
    })?;
    let answer = match &asked.schema {
        Some(schema) => filled(schema, reply).map(PersonReply::Form),
        None => said(&asked.question, reply).map(PersonReply::Question),
    };
    let answer = match answer {
        Ok(answer) => answer,
        Err(words) => {
            prompts.release(id);
            return Err(QuestionReplyError::NoAnswer(words));
        }
    };
    let (action, word) = match answer {
        PersonReply::Question(QuestionAnswer::Answer { .. }) | PersonReply::Form(FormOutcome::Accepted(_)) => {
            (QuestionEnd::Answered, "answered")
        }
        PersonReply::Question(QuestionAnswer::Cancelled)
        | PersonReply::Form(FormOutcome::Declined | FormOutcome::Cancelled) => (QuestionEnd::Cancelled, "declined"),
    };
    let who = by.client.clone().unwrap_or_else(|| format!("connection {}", by.connection));
    let mut ended = ended(&reply.request_id, action, &format!("{word} by {who}"));
    ended.resolved.by = Some(by);
    ended.said = Some(answer);
    match prompts.resolve(id, ended) {
        true => Ok(()),
        false => Err(QuestionReplyError::Unknown(reply.request_id.clone())),
    }
}

fn said(question: &Question, reply: &ReplyQuestion) -> Result<QuestionAnswer, String> {
    let chosen = reply.answer_ids.as_deref().unwrap_or_default();
    let text = reply.answer.as_deref().filter(|text| !text.trim().is_empty());
    if reply.cancelled || reply.declined {
        return match (chosen, text) {
            ([], None) => Ok(QuestionAnswer::Cancelled),
            _ => Err("a reply cannot both answer and decline".into()),
        };
    }
    if let Some(id) = chosen.iter().find(|id| question.options.iter().all(|option| option.id != **id)) {
        let known: Vec<&str> = question.options.iter().map(|option| option.id.as_str()).collect();
        return Err(format!("{id:?} is not an option of this question: expected one of {}", known.join(", ")));
    }
    if text.is_some() && !question.allow_other && !question.options.is_empty() {
        return Err("this question takes one of its options, not free text".into());
    }
    let picked = |option: &&QuestionOption| chosen.contains(&option.id);
    let answer_ids: Vec<String> = question.options.iter().filter(picked).map(|option| option.id.clone()).collect();
    match answer_ids.len() + usize::from(text.is_some()) {
        0 => Err("expected answer_ids, answer, or cancelled".into()),
        1 => Ok(QuestionAnswer::Answer { answer_ids, answer: text.map(str::to_owned) }),
        _ if question.multiple => Ok(QuestionAnswer::Answer { answer_ids, answer: text.map(str::to_owned) }),
        _ => Err("this question takes one answer".into()),
    }
}

fn filled(schema: &Schema, reply: &ReplyQuestion) -> Result<FormOutcome, String> {
    let text = reply.answer.as_deref().map(str::trim).filter(|text| !text.is_empty());
    let content = match (&reply.content, text) {
        _ if reply.answer_ids.as_ref().is_some_and(|ids| !ids.is_empty()) => {
            return Err("this question is a form and has no options".into());
        }
        (Some(_), Some(_)) => return Err("a form takes either content or answer, not both".into()),
        (None, None) if reply.declined => return Ok(FormOutcome::Declined),
        (None, None) if reply.cancelled => return Ok(FormOutcome::Cancelled),
        (None, None) => return Err("expected content, declined, or cancelled".into()),
        (Some(content), None) => content.clone(),
        (None, Some(text)) => fields_of(schema, text)?,
    };
    if reply.cancelled || reply.declined {
        return Err("a reply cannot both answer and decline".into());
    }
    let content = with_defaults(schema, content);
    let errors = schema.check(&Value::Object(content.clone()));
    if errors.is_empty() {
        return Ok(FormOutcome::Accepted(content));
    }
    let errors: Vec<String> = errors.iter().map(|error| format!("{}: {}", error.path, error.message)).collect();
    Err(format!("invalid fields: {}", errors.join("; ")))
}

/// A field that the answer leaves out has its default, which the person saw in the form.
fn with_defaults(schema: &Schema, mut content: Map<String, Value>) -> Map<String, Value> {
    for (name, field) in schema.as_value()["properties"].as_object().into_iter().flatten() {
        if let Some(default) = field.get("default")
            && !content.contains_key(name)
        {
            content.insert(name.clone(), default.clone());
        }
    }
    content
}

/// Parses the text of a person who saw the form as a plain question.
fn fields_of(schema: &Schema, text: &str) -> Result<Map<String, Value>, String> {
    if text.starts_with('{') {
        return serde_json::from_str(text).map_err(|error| format!("this is not a JSON object: {error}"));
    }
    let properties = schema.as_value()["properties"].as_object();
    let mut fields = properties.into_iter().flatten();
    let (Some((name, field)), None) = (fields.next(), fields.next()) else {
        let names: Vec<&str> = properties.into_iter().flatten().map(|(name, _)| name.as_str()).collect();
        return Err(format!("this is a form: expected a JSON object with {}", names.join(", ")));
    };
    let value = match field["type"].as_str() {
        Some("boolean") => match text.to_lowercase().as_str() {
            "y" | "yes" | "true" => Value::Bool(true),
            "n" | "no" | "false" => Value::Bool(false),
            _ => return Err(format!("{name}: expected yes or no")),
        },
        Some("number" | "integer") => serde_json::from_str(text).map_err(|_| format!("{name}: expected a number"))?,
        Some(_) | None => Value::String(text.to_owned()),
    };
    Ok(Map::from_iter([(name.clone(), value)]))
}

/// `how`: in words, for people.
fn ended(request_id: &str, action: QuestionEnd, how: &str) -> EndedQuestion {
    let resolved = QuestionResolved { request_id: request_id.to_owned(), action, by: None, how: how.to_owned() };
    EndedQuestion { resolved, said: None }
}

fn nobody() -> ToolError {
    ToolError::Failed(
        "no connected client can answer questions: continue without an answer, or say what you would have asked"
            .to_owned(),
    )
}
