//! Shows the daemon's prompts at this terminal: permission prompts and questions of tools.

pub(crate) mod ask;
pub(crate) mod question;

use std::collections::VecDeque;
use std::io::Write;
use std::time::{Duration, Instant};

use chrono::Utc;
use crossterm::event::{KeyCode, KeyEvent};
use toold_client::{Client, ClientError, Items};
use toold_proto::error::{METHOD_NOT_FOUND, UNKNOWN};
use toold_proto::method::{
    Method, PermissionsReply, PermissionsSubscribe, QuestionsReply, QuestionsSubscribe, Subscription,
};
use toold_proto::permission::{Action, Ask, PermissionEvent, ReplyPermission, SubscribePrompts};
use toold_proto::question::{Question, QuestionEvent};
use toold_proto::session::terminal_of;
use toold_proto::tool::{CallId, SessionId};

use crate::keys::{AT_ONCE, KeyPress, KeyReader, key, rewrite_line_raw, write_raw};
use crate::output::{self, DIM};
use crate::prompts::ask::choices;
use crate::prompts::question::Chosen;

/// Keys that allow something are ignored for this long, because they were pressed before the prompt could be read.
pub(crate) const READ_FOR: Duration = Duration::from_millis(300);

/// A key whose answer is remembered counts if no other one follows it within this time.
const ALONE_FOR: Duration = Duration::from_millis(250);

/// The waiting prompts, the oldest first. The daemon expects answers from this client as long as this exists.
pub(crate) struct Prompter {
    client: Client,
    permissions: Option<Items<PermissionEvent>>,
    questions: Option<Items<QuestionEvent>>,
    waiting: VecDeque<WaitingPrompt>,
    /// The one that is being answered, as it is now.
    open: Option<WaitingPrompt>,
    shown: ShownPrompts,
}

/// The prompts that a client shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ShownPrompts {
    All,
    /// The prompts of one call. If its session is known and belongs to a terminal, they say "this terminal".
    OfCall(Option<SessionId>),
}

impl ShownPrompts {
    fn is_of_own_terminal(&self, session: &SessionId) -> bool {
        matches!(self, Self::OfCall(Some(own)) if own == session && terminal_of(own).is_some())
    }
}

/// A prompt that waits for an answer.
#[derive(Clone, Debug)]
pub(crate) enum WaitingPrompt {
    Permission(Box<Ask>),
    Question(Box<Question>),
}

impl WaitingPrompt {
    pub(crate) fn id(&self) -> &str {
        match self {
            Self::Permission(ask) => &ask.request_id,
            Self::Question(question) => &question.request_id,
        }
    }

    pub(crate) fn session_id(&self) -> &SessionId {
        match self {
            Self::Permission(ask) => &ask.session_id,
            Self::Question(question) => &question.session_id,
        }
    }

    /// The command, file or question that it is about.
    pub(crate) fn subject(&self) -> &str {
        match self {
            Self::Permission(ask) => &ask.target,
            Self::Question(question) => &question.question,
        }
    }

    /// Whether it is about this call, alone or with others.
    pub(crate) fn is_for(&self, call_id: &CallId) -> bool {
        match self {
            Self::Permission(ask) => ask.call_id == *call_id || ask.call_ids.contains(call_id),
            Self::Question(question) => question.call_id == *call_id,
        }
    }
}

/// A prompt that needs no answer any more, and its outcome, on one line.
struct EndedPrompt {
    request_id: String,
    line: String,
}

impl EndedPrompt {
    /// For a terminal in raw mode, where no line is open.
    fn show(&self) -> anyhow::Result<PromptOutcome> {
        write_raw(|out| writeln!(out, "{}", self.line))?;
        Ok(PromptOutcome::Settled)
    }
}

/// The meaning of a message of the daemon.
enum PromptNews {
    New,
    /// Others wait for the answer of the open ask than before, who are named on this line.
    Askers(String),
    /// A prompt that is known has changed in nothing that is shown.
    Known,
    Ended(EndedPrompt),
}

/// How a prompt ended here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PromptOutcome {
    /// It was answered or closed, here or elsewhere.
    Settled,
    /// The user exits without an answer.
    Exited,
}

/// The time that is left for an answer, as the last line of the terminal, while nothing is typed there.
struct Countdown {
    /// RFC 3339.
    expires_at: String,
    /// The line as it stands there; empty when it does not.
    shown: String,
}

impl Countdown {
    const STEP: Duration = Duration::from_secs(1);

    fn begin(expires_at: &str) -> Self {
        Self { expires_at: expires_at.to_owned(), shown: String::new() }
    }

    /// One that is never shown.
    fn none() -> Self {
        Self::begin("")
    }

    fn line(&self) -> Option<String> {
        ask::time_left(&self.expires_at, Utc::now())
    }

    /// Waits until another line is due. Cancel-safe.
    async fn next(&self) {
        if self.expires_at.is_empty() {
            std::future::pending().await
        } else if self.line().is_none() || !self.shown.is_empty() {
            tokio::time::sleep(Self::STEP).await;
        }
    }

    fn show(&mut self) -> std::io::Result<()> {
        let Some(line) = self.line().filter(|line| *line != self.shown) else { return Ok(()) };
        rewrite_line_raw(|out| write!(out, "  {DIM}{line}{DIM:#}"))?;
        self.shown = line;
        Ok(())
    }

    fn clear(&mut self) -> std::io::Result<()> {
        if std::mem::take(&mut self.shown).is_empty() { Ok(()) } else { rewrite_line_raw(|_| Ok(())) }
    }
}

/// Input while a prompt is shown.
enum PromptInput {
    Key(KeyEvent),
    /// The prompt has ended, with this outcome.
    Ended(EndedPrompt),
    /// The terminal is gone.
    TerminalGone,
}

impl Prompter {
    /// `None` when this daemon sends no prompts.
    pub(crate) async fn subscribe(client: &Client, shown: ShownPrompts) -> Result<Option<Self>, ClientError> {
        let permissions = subscribe::<PermissionsSubscribe>(client).await?;
        let questions = subscribe::<QuestionsSubscribe>(client).await?;
        if permissions.is_none() && questions.is_none() {
            return Ok(None);
        }
        Ok(Some(Self { client: client.clone(), permissions, questions, waiting: VecDeque::new(), open: None, shown }))
    }

    /// The oldest prompt that `wanted` accepts; waits for one. Cancel-safe.
    pub(crate) async fn next(&mut self, wanted: impl Fn(&WaitingPrompt) -> bool) -> Result<WaitingPrompt, ClientError> {
        loop {
            if let Some(at) = self.waiting.iter().position(&wanted) {
                return Ok(self.waiting.remove(at).expect("the position is of this queue"));
            }
            self.receive().await?;
        }
    }

    /// How many prompts wait besides the one that is shown.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Receives the next prompt, a change of one, or its end. Cancel-safe.
    async fn receive(&mut self) -> Result<PromptNews, ClientError> {
        let ended = tokio::select! {
            event = item(&mut self.permissions) => match event {
                Some(Ok(PermissionEvent::Asked { mut request })) => {
                    if self.shown.is_of_own_terminal(&request.session_id) {
                        request.session_name = Some("this terminal".to_owned());
                    }
                    return Ok(self.take(WaitingPrompt::Permission(request)));
                }
                Some(Ok(PermissionEvent::Resolved(resolved))) => {
                    EndedPrompt { line: ask::end(&resolved), request_id: resolved.request_id }
                }
                Some(Err(error)) => return Err(error),
                None => return Err(self.client.closed().await),
            },
            event = item(&mut self.questions) => match event {
                Some(Ok(QuestionEvent::Asked { request })) => {
                    return Ok(self.take(WaitingPrompt::Question(request)));
                }
                Some(Ok(QuestionEvent::Resolved(resolved))) => {
                    EndedPrompt { line: question::end(&resolved), request_id: resolved.request_id }
                }
                Some(Err(error)) => return Err(error),
                None => return Err(self.client.closed().await),
            },
        };
        self.waiting.retain(|request| request.id() != ended.request_id);
        Ok(PromptNews::Ended(ended))
    }

    fn take(&mut self, prompt: WaitingPrompt) -> PromptNews {
        let known = self.open.iter_mut().chain(&mut self.waiting).find(|known| known.id() == prompt.id());
        let Some(known) = known else {
            self.waiting.push_back(prompt);
            return PromptNews::New;
        };
        let before = std::mem::replace(known, prompt);
        match (&before, &self.open) {
            (WaitingPrompt::Permission(before), Some(WaitingPrompt::Permission(open)))
                if before.request_id == open.request_id && ask::askers(before) != ask::askers(open) =>
            {
                PromptNews::Askers(ask::askers(open))
            }
            _ => PromptNews::Known,
        }
    }

    /// Shows the prompt and waits for keys, or for another client's answer.
    pub(crate) async fn show(&mut self, request: &WaitingPrompt) -> anyhow::Result<PromptOutcome> {
        self.open = Some(request.clone());
        let outcome = match request {
            WaitingPrompt::Permission(ask) => self.show_ask(ask).await,
            WaitingPrompt::Question(question) => self.show_question(question).await,
        };
        self.open = None;
        outcome
    }

    async fn show_ask(&mut self, ask: &Ask) -> anyhow::Result<PromptOutcome> {
        let choices = choices(ask);
        // Before anything is shown, so that no key is lost.
        let mut keys = KeyReader::open()?;
        write_raw(|out| ask::show(ask, out).and_then(|()| ask::show_choices(&choices, out)))?;
        let shown = Instant::now();
        let mut countdown = Countdown::begin(&ask.expires_at);
        loop {
            let event = match self.answer_or_end(&mut keys, &ask.request_id, &mut countdown).await? {
                PromptInput::Key(event) => event,
                PromptInput::Ended(ended) => return ended.show(),
                PromptInput::TerminalGone => return Ok(PromptOutcome::Exited),
            };
            match key(event) {
                KeyPress::Exit => return Ok(PromptOutcome::Exited),
                KeyPress::Char('d') => match self.line(&mut keys, "reason: ", &ask.request_id).await? {
                    TypedLine::Text(text) => {
                        let message = Some(text.trim().to_owned()).filter(|text| !text.is_empty());
                        drop(keys);
                        let reply = ReplyPermission { message, ..ReplyPermission::once(&ask.request_id, Action::Deny) };
                        return self.reply::<PermissionsReply>(&ask.request_id, reply).await;
                    }
                    TypedLine::Cancelled => {}
                    TypedLine::End => return Ok(PromptOutcome::Settled),
                },
                KeyPress::Char(c) => {
                    let choice = choices.iter().find(|choice| choice.key == c);
                    let choice = choice.filter(|choice| choice.action == Action::Deny || shown.elapsed() >= READ_FOR);
                    if let Some(choice) = choice {
                        // The first letter of a word that is typed into the wrong window allows nothing for long.
                        if choice.allows_more() && !keys.is_alone(event, ALONE_FOR).await {
                            continue;
                        }
                        drop(keys);
                        return self.reply::<PermissionsReply>(&ask.request_id, choice.reply(ask)).await;
                    }
                }
                KeyPress::Other => {}
            }
        }
    }

    async fn show_question(&mut self, question: &Question) -> anyhow::Result<PromptOutcome> {
        let mut keys = KeyReader::open()?;
        write_raw(|out| question::show(question, out))?;
        let shown = Instant::now();
        let mut chosen = Chosen::new();
        let mut countdown = Countdown::begin(&question.expires_at);
        loop {
            let event = match self.answer_or_end(&mut keys, &question.request_id, &mut countdown).await? {
                PromptInput::Key(event) => event,
                PromptInput::Ended(ended) => return ended.show(),
                PromptInput::TerminalGone => return Ok(PromptOutcome::Exited),
            };
            let read = shown.elapsed() >= READ_FOR;
            let reply = match (key(event), event.code) {
                (KeyPress::Exit, _) => return Ok(PromptOutcome::Exited),
                (_, KeyCode::Enter) if question.multiple && read => question::options_reply(question, &chosen),
                (KeyPress::Char('n'), _) => question::no_reply(question),
                (KeyPress::Char('f'), _) if question.schema.is_some() => {
                    drop(keys);
                    let asked = question.clone();
                    let filled = tokio::task::spawn_blocking(move || question::fill_form(&asked)).await??;
                    let Some(reply) = filled else {
                        self.again();
                        return Ok(PromptOutcome::Settled);
                    };
                    return self.reply::<QuestionsReply>(&question.request_id, reply).await;
                }
                (KeyPress::Char('o'), _) if question::takes_text(question) => {
                    match self.line(&mut keys, "", &question.request_id).await? {
                        TypedLine::Text(text) => question::text_reply(question, &chosen, text),
                        TypedLine::Cancelled => continue,
                        TypedLine::End => return Ok(PromptOutcome::Settled),
                    }
                }
                (KeyPress::Char(c), _) if read => {
                    let Some(at) = question::option(question, c) else { continue };
                    if !chosen.remove(&at) {
                        chosen.insert(at);
                    }
                    if question.multiple {
                        write_raw(|out| question::show_chosen(question, &chosen, out))?;
                        continue;
                    }
                    question::options_reply(question, &chosen)
                }
                (KeyPress::Char(_) | KeyPress::Other, _) => continue,
            };
            drop(keys);
            return self.reply::<QuestionsReply>(&question.request_id, reply).await;
        }
    }

    /// The open prompt still waits, and is shown again.
    fn again(&mut self) {
        if let Some(open) = self.open.take() {
            self.waiting.push_front(open);
        }
    }

    /// A key that answers, or the end of the prompt: not one of a pasted text.
    async fn answer_or_end(
        &mut self,
        keys: &mut KeyReader,
        request_id: &str,
        countdown: &mut Countdown,
    ) -> anyhow::Result<PromptInput> {
        loop {
            match self.key_or_end(keys, request_id, Some(&mut *countdown)).await? {
                PromptInput::Key(event)
                    if matches!(key(event), KeyPress::Char(_)) && !keys.is_alone(event, AT_ONCE).await => {}
                input => return Ok(input),
            }
        }
    }

    /// A key, or the end of the prompt; meanwhile the time that is left is the last line of the terminal, which is gone when this
    /// returns. Cancel-safe.
    async fn key_or_end(
        &mut self,
        keys: &mut KeyReader,
        request_id: &str,
        countdown: Option<&mut Countdown>,
    ) -> anyhow::Result<PromptInput> {
        let mut none = Countdown::none();
        let countdown = countdown.unwrap_or(&mut none);
        loop {
            tokio::select! {
                biased;
                ended = self.receive() => {
                    countdown.clear()?;
                    match ended? {
                        PromptNews::Ended(ended) if ended.request_id == request_id => return Ok(PromptInput::Ended(ended)),
                        PromptNews::New if self.shown == ShownPrompts::All => {
                            let waiting = self.waiting.len();
                            write_raw(|out| writeln!(out, "{DIM}{waiting} more waiting{DIM:#}"))?;
                        }
                        PromptNews::Askers(askers) => {
                            write_raw(|out| writeln!(out, "  {DIM}agent now:{DIM:#} {askers}"))?;
                        }
                        PromptNews::New | PromptNews::Known | PromptNews::Ended(_) => {}
                    }
                }
                event = keys.next_event() => {
                    countdown.clear()?;
                    return Ok(event.map_or(PromptInput::TerminalGone, PromptInput::Key));
                }
                () = countdown.next() => countdown.show()?,
            }
        }
    }

    /// A line of text, typed in raw mode, where the terminal does not echo.
    async fn line(&mut self, keys: &mut KeyReader, prompt: &str, request_id: &str) -> anyhow::Result<TypedLine> {
        let mut text = String::new();
        write_raw(|out| write!(out, "  {prompt}"))?;
        loop {
            let event = match self.key_or_end(keys, request_id, None).await? {
                PromptInput::Key(event) => event,
                PromptInput::Ended(ended) => {
                    rewrite_line_raw(|out| writeln!(out, "{}", ended.line))?;
                    return Ok(TypedLine::End);
                }
                PromptInput::TerminalGone => return Ok(TypedLine::End),
            };
            match (event.code, key(event)) {
                (KeyCode::Enter, _) => {
                    write_raw(|out| writeln!(out))?;
                    return Ok(TypedLine::Text(text));
                }
                (KeyCode::Backspace, _) => {
                    text.pop();
                    rewrite_line_raw(|out| write!(out, "  {prompt}{}", output::plain(&text)))?;
                }
                (_, KeyPress::Exit) => {
                    write_raw(|out| writeln!(out))?;
                    return Ok(TypedLine::Cancelled);
                }
                (_, KeyPress::Char(c)) => {
                    text.push(c);
                    write_raw(|out| write!(out, "{}", output::plain(c.encode_utf8(&mut [0; 4]))))?;
                }
                (_, KeyPress::Other) => {}
            }
        }
    }

    async fn reply<M: Method>(&mut self, request_id: &str, reply: M::Params) -> anyhow::Result<PromptOutcome> {
        match self.client.call::<M>(reply).await {
            Ok(_) => {}
            // Another client was faster; its answer comes next.
            Err(ClientError::Rpc(error)) if error.code == UNKNOWN => {}
            // The grant could not be stored, or the daemon refused the answer: the prompt still waits.
            Err(ClientError::Rpc(error)) => {
                writeln!(output::stderr(), "{DIM}{}{DIM:#}", output::plain(&error.message))?;
                self.again();
                return Ok(PromptOutcome::Settled);
            }
            Err(error) => return Err(error.into()),
        }
        loop {
            if let PromptNews::Ended(ended) = self.receive().await?
                && ended.request_id == request_id
            {
                writeln!(output::stderr(), "{}", ended.line)?;
                return Ok(PromptOutcome::Settled);
            }
        }
    }
}

enum TypedLine {
    Text(String),
    /// The user cancelled the line.
    Cancelled,
    /// The prompt or the terminal has ended.
    End,
}

/// `None` when the daemon does not have this subscription.
async fn subscribe<S>(client: &Client) -> Result<Option<Items<S::Item>>, ClientError>
where
    S: Subscription<Params = SubscribePrompts>,
{
    match client.subscribe::<S>(SubscribePrompts::default()).await {
        Ok(items) => Ok(Some(items)),
        Err(ClientError::Rpc(error)) if error.code == METHOD_NOT_FOUND => Ok(None),
        Err(error) => Err(error),
    }
}

/// Never ready without a subscription.
async fn item<T: serde::de::DeserializeOwned>(items: &mut Option<Items<T>>) -> Option<Result<T, ClientError>> {
    match items {
        Some(items) => items.next().await,
        None => std::future::pending().await,
    }
}
