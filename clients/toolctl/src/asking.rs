//! Asking the person at this terminal what the daemon wants to know.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::time::{Duration, Instant};

use toold_client::{Client, ClientError, Items};
use toold_proto::daemon::NoParams;
use toold_proto::error::{METHOD_NOT_FOUND, UNKNOWN};
use toold_proto::method::{PermissionsReply, PermissionsSubscribe};
use toold_proto::permission::{Action, Ask, PermissionEvent, ReplyPermission, Resolved};
use toold_proto::tool::CallId;

use crate::ask::{self, choices};
use crate::keys::{Key, Keys};
use crate::output::{self, DIM};

/// No key allows anything before an ask could be read: it was pressed for something else.
pub(crate) const READ_FOR: Duration = Duration::from_millis(300);

/// The asks that wait, in the order in which they came. The daemon counts on an answer as long as
/// this lives.
pub(crate) struct Asking {
    client: Client,
    events: Items<PermissionEvent>,
    waiting: VecDeque<Ask>,
}

/// What a person did with an ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answered {
    /// It is settled, here or elsewhere.
    Settled,
    /// The person wants out and has not answered.
    Left,
}

impl Asking {
    /// `None` when this daemon does not let this connection answer.
    pub(crate) async fn subscribe(client: &Client) -> Result<Option<Self>, ClientError> {
        match client.subscribe::<PermissionsSubscribe>(NoParams {}).await {
            Ok(events) => Ok(Some(Self { client: client.clone(), events, waiting: VecDeque::new() })),
            Err(ClientError::Rpc(error)) if error.code == METHOD_NOT_FOUND => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The oldest ask that `wanted` takes; waits for one. Cancel-safe.
    pub(crate) async fn next(&mut self, wanted: impl Fn(&Ask) -> bool) -> Result<Ask, ClientError> {
        loop {
            if let Some(at) = self.waiting.iter().position(&wanted) {
                return Ok(self.waiting.remove(at).expect("the position is of this queue"));
            }
            self.hear().await?;
        }
    }

    /// How many wait beside the one that is being asked.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Takes in what the daemon tells. Cancel-safe.
    async fn hear(&mut self) -> Result<Option<Resolved>, ClientError> {
        match self.events.next().await {
            Some(Ok(PermissionEvent::Asked { request })) => {
                self.waiting.push_back(*request);
                Ok(None)
            }
            Some(Ok(PermissionEvent::Resolved(resolved))) => {
                self.waiting.retain(|ask| ask.request_id != resolved.request_id);
                Ok(Some(resolved))
            }
            Some(Err(error)) => Err(error),
            None => Err(self.client.closed().await),
        }
    }

    /// Shows the ask and waits for a key, or for somebody else's answer.
    pub(crate) async fn put(&mut self, ask: &Ask) -> anyhow::Result<Answered> {
        let choices = choices(ask);
        {
            let mut err = output::stderr();
            ask::show(ask, &mut err)?;
            ask::show_choices(&choices, &mut err)?;
        }
        let shown = Instant::now();
        let mut keys = Keys::open()?;
        loop {
            tokio::select! {
                biased;
                heard = self.hear() => match heard? {
                    Some(resolved) if resolved.request_id == ask.request_id => {
                        drop(keys);
                        ask::show_resolved(&resolved, &mut output::stderr())?;
                        return Ok(Answered::Settled);
                    }
                    Some(_) | None => {}
                },
                key = keys.next() => match key {
                    Some(Key::Leave) | None => return Ok(Answered::Left),
                    Some(Key::Char('d')) => {
                        keys.close().await;
                        let message = read_line("why: ").await?;
                        let message = Some(message.trim().to_owned()).filter(|message| !message.is_empty());
                        return self.reply(ask, ReplyPermission { message, ..deny(ask) }).await;
                    }
                    Some(Key::Char(c)) => {
                        let choice = choices.iter().find(|choice| choice.key == c);
                        let choice = choice.filter(|choice| choice.action == Action::Deny || shown.elapsed() >= READ_FOR);
                        if let Some(choice) = choice {
                            drop(keys);
                            return self.reply(ask, choice.reply(ask)).await;
                        }
                    }
                    Some(Key::Other) => {}
                },
            }
        }
    }

    async fn reply(&mut self, ask: &Ask, reply: ReplyPermission) -> anyhow::Result<Answered> {
        match self.client.call::<PermissionsReply>(reply).await {
            Ok(_) => {}
            // Somebody was faster; what they said comes next.
            Err(ClientError::Rpc(error)) if error.code == UNKNOWN => {}
            // A grant that cannot be stored, a pattern that the daemon refuses: the ask still waits.
            Err(ClientError::Rpc(error)) => {
                writeln!(output::stderr(), "{DIM}{}{DIM:#}", output::plain(&error.message))?;
                self.waiting.push_front(ask.clone());
                return Ok(Answered::Settled);
            }
            Err(error) => return Err(error.into()),
        }
        loop {
            if let Some(resolved) = self.hear().await?
                && resolved.request_id == ask.request_id
            {
                ask::show_resolved(&resolved, &mut output::stderr())?;
                return Ok(Answered::Settled);
            }
        }
    }
}

/// Whether the ask is for this call, alone or with others.
pub(crate) fn is_for(ask: &Ask, call_id: &CallId) -> bool {
    ask.call_id == *call_id || ask.call_ids.contains(call_id)
}

fn deny(ask: &Ask) -> ReplyPermission {
    ReplyPermission {
        request_id: ask.request_id.clone(),
        action: Action::Deny,
        scope: None,
        pattern: None,
        message: None,
        expires_in: None,
    }
}

async fn read_line(prompt: &str) -> anyhow::Result<String> {
    let mut err = output::stderr();
    write!(err, "  {prompt}")?;
    err.flush()?;
    drop(err);
    let read = tokio::task::spawn_blocking(|| -> io::Result<String> {
        let mut line = String::new();
        io::stdin().read_line(&mut line)?;
        Ok(line)
    });
    Ok(read.await??)
}
