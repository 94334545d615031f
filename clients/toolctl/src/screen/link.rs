//! The connection to the daemon, and the next one when it has ended.

use std::time::Duration;

use serde_json::Value;
use tokio::task::JoinHandle;
use toold_client::{Client, ClientError, Items};
use toold_proto::event::SubscribeEvents;
use toold_proto::method::{EventsSubscribe, PermissionsSubscribe, QuestionsSubscribe, Subscription};
use toold_proto::permission::{PermissionEvent, SubscribePrompts};
use toold_proto::question::QuestionEvent;

use crate::connection::{self, CommandSession};
use crate::globals::Globals;

/// The wait before the first and before later attempts to connect.
const FIRST_WAIT: Duration = Duration::from_millis(100);
const LONGEST_WAIT: Duration = Duration::from_secs(3);

/// A connection with a session and subscriptions.
pub(super) struct ScreenLink {
    client: Client,
    session: CommandSession,
    events: Items<Value>,
    permissions: Option<Items<PermissionEvent>>,
    questions: Option<Items<QuestionEvent>>,
}

/// An item of a subscription.
pub(super) enum DaemonItem {
    Event(Value),
    Permission(PermissionEvent),
    Question(QuestionEvent),
}

impl ScreenLink {
    pub(super) async fn open(client: Client) -> anyhow::Result<Self> {
        let session = connection::open_session(&client, Some("/".into()), None).await?;
        // Starts with the events of the last hour.
        let params = SubscribeEvents { since: Some(0), ..SubscribeEvents::default() };
        let events = client.subscribe_as::<EventsSubscribe, Value>(params).await?;
        let permissions = subscribe::<PermissionsSubscribe>(&client).await?;
        let questions = subscribe::<QuestionsSubscribe>(&client).await?;
        Ok(Self { client, session, events, permissions, questions })
    }

    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    /// Cancel-safe.
    ///
    /// # Errors
    /// The connection or a subscription has ended. An item that cannot be read is left out.
    pub(super) async fn next(&mut self) -> anyhow::Result<DaemonItem> {
        loop {
            let item = tokio::select! {
                item = prompt(&mut self.permissions) => item.map(|item| item.map(DaemonItem::Permission)),
                item = prompt(&mut self.questions) => item.map(|item| item.map(DaemonItem::Question)),
                item = self.events.next() => item.map(|item| item.map(DaemonItem::Event)),
            };
            match item {
                Some(Ok(item)) => return Ok(item),
                Some(Err(ClientError::BadAnswer(_))) => {}
                Some(Err(error)) => return Err(error.into()),
                None => return Err(self.client.closed().await.into()),
            }
        }
    }

    pub(super) async fn close(self) {
        self.session.close(&self.client).await;
    }
}

/// `None` when the daemon sends no prompts, or none to this client.
async fn subscribe<S>(client: &Client) -> Result<Option<Items<S::Item>>, ClientError>
where
    S: Subscription<Params = SubscribePrompts>,
{
    match client.subscribe::<S>(SubscribePrompts::default()).await {
        Ok(items) => Ok(Some(items)),
        Err(ClientError::Rpc(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

async fn prompt<T: serde::de::DeserializeOwned>(items: &mut Option<Items<T>>) -> Option<Result<T, ClientError>> {
    match items {
        Some(items) => items.next().await,
        None => std::future::pending().await,
    }
}

/// The next connection, while it is made.
#[derive(Default)]
pub(super) struct LinkTask(Option<JoinHandle<anyhow::Result<ScreenLink>>>);

impl LinkTask {
    /// Waits for a daemon to come back.
    pub(super) fn begin(&mut self, globals: &Globals) {
        let globals = Globals { no_start: true, ..globals.clone() };
        self.replace(tokio::spawn(async move {
            let mut wait = FIRST_WAIT;
            loop {
                if let Ok(link) = open(&globals).await {
                    return Ok(link);
                }
                tokio::time::sleep(wait).await;
                wait = (wait * 2).min(LONGEST_WAIT);
            }
        }));
    }

    /// Starts a daemon unless another one has come back.
    pub(super) fn begin_with_start(&mut self, globals: &Globals) {
        let globals = Globals { no_start: false, ..globals.clone() };
        self.replace(tokio::spawn(async move { open(&globals).await }));
    }

    fn replace(&mut self, task: JoinHandle<anyhow::Result<ScreenLink>>) {
        if let Some(old) = self.0.replace(task) {
            old.abort();
        }
    }

    /// Cancel-safe; never ready when nothing is being made.
    pub(super) async fn done(&mut self) -> anyhow::Result<ScreenLink> {
        let Some(task) = &mut self.0 else { return std::future::pending().await };
        let ended = task.await;
        self.0 = None;
        ended?
    }
}

impl Drop for LinkTask {
    fn drop(&mut self) {
        if let Some(task) = &self.0 {
            task.abort();
        }
    }
}

async fn open(globals: &Globals) -> anyhow::Result<ScreenLink> {
    ScreenLink::open(connection::open(globals).await?).await
}
