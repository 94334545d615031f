//! A call of a tool in flight.

use std::sync::Arc;

use tokio::sync::oneshot;
use toold_proto::call::{CallProgress, CancelCall, Execute};
use toold_proto::method::{Method, PluginsEvaluate, ToolsCancel, ToolsExecute};
use toold_proto::plugin::{EvaluateInPlugin, Evaluation};
use toold_proto::tool::{CallId, SessionId, ToolResult};

use crate::client::Client;
use crate::error::ClientError;
use crate::progress::ProgressQueue;

/// A call of a tool, from [`Client::execute`], or of Lua in a plugin, from [`Client::evaluate`].
///
/// It runs whether or not its progress is read. Dropping it before its answer came cancels it,
/// unless it was made with `detach`.
#[derive(Debug)]
pub struct CallHandle<T = ToolResult> {
    client: Client,
    call_id: CallId,
    session_id: Option<SessionId>,
    queue: Arc<ProgressQueue>,
    answer: oneshot::Receiver<Result<T, ClientError>>,
}

impl Client {
    /// Calls a tool. The request is sent whether or not the [`CallHandle`] is awaited.
    ///
    /// An absent `call_id` is made here. Set `progress` to receive any.
    ///
    /// # Errors
    ///
    /// Only [`ClientError::CallIdInUse`]; every other error is the call's answer.
    pub fn execute(&self, mut execute: Execute) -> Result<CallHandle, ClientError> {
        let call_id = execute.call_id.get_or_insert_with(|| self.new_call_id()).clone();
        let (session_id, detached) = (execute.session_id.clone(), execute.detach);
        send::<ToolsExecute>(self, call_id, session_id, detached, execute)
    }

    /// Runs Lua in a plugin. As [`Client::execute`], also in its errors.
    pub fn evaluate(&self, mut evaluate: EvaluateInPlugin) -> Result<CallHandle<Evaluation>, ClientError> {
        let call_id = evaluate.call_id.get_or_insert_with(|| self.new_call_id()).clone();
        let session_id = evaluate.session_id.clone();
        send::<PluginsEvaluate>(self, call_id, session_id, false, evaluate)
    }
}

impl<T> CallHandle<T> {
    pub fn id(&self) -> &CallId {
        &self.call_id
    }

    /// The call's next progress, in order; `None` when its answer has come and all progress was read. When 16 MiB wait
    /// to be read, later progress is dropped, and the next one that fits counts how many were. Cancel-safe.
    pub async fn progress(&mut self) -> Option<CallProgress> {
        self.queue.take().await
    }

    /// Waits for the answer. Progress that was not read is lost.
    pub async fn answer(mut self) -> Result<T, ClientError> {
        match (&mut self.answer).await {
            Ok(answer) => answer,
            Err(_) => Err(ClientError::Disconnected("its runtime is stopping".to_owned())),
        }
    }

    /// Asks the daemon to cancel the call, which then answers with an error of code
    /// [`toold_proto::error::CANCELLED`]. False when it had ended already.
    pub async fn cancel(&self) -> Result<bool, ClientError> {
        cancel(&self.client, &self.call_id, self.session_id.as_ref()).await
    }
}

/// Sends the call; `params` has the same id and session.
fn send<M: Method>(
    client: &Client,
    call_id: CallId,
    session_id: Option<SessionId>,
    detached: bool,
    params: M::Params,
) -> Result<CallHandle<M::Answer>, ClientError> {
    let Some(queue) = client.routes().open(&call_id) else {
        return Err(ClientError::CallIdInUse(call_id.to_string()));
    };
    let (mut sender, answer) = oneshot::channel();
    let call =
        CallHandle { client: client.clone(), call_id: call_id.clone(), session_id: session_id.clone(), queue, answer };
    let client = client.clone();
    tokio::spawn(async move {
        let answer = tokio::select! {
            biased;
            // Sent at once: the daemon cancels the call even if it has not begun to run.
            () = sender.closed(), if !detached => None,
            answer = client.call::<M>(params) => Some(answer),
        };
        client.routes().close(&call_id);
        match answer {
            // The handle may have been dropped meanwhile.
            Some(answer) => drop(sender.send(answer)),
            None => drop(cancel(&client, &call_id, session_id.as_ref()).await),
        }
    });
    Ok(call)
}

async fn cancel(client: &Client, call_id: &CallId, session_id: Option<&SessionId>) -> Result<bool, ClientError> {
    let params = CancelCall { call_id: call_id.clone(), session_id: session_id.cloned() };
    Ok(client.call::<ToolsCancel>(params).await?.cancelled)
}
