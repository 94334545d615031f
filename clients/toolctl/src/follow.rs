//! Shows a call at the terminal while it runs, with its prompts; Ctrl-C cancels it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, sleep_until};
use toold_client::{CallHandle, Client, ClientError};
use toold_proto::call::CancelCall;
use toold_proto::method::ToolsCancel;
use toold_proto::tool::CallId;

use crate::live::{LiveOutput, SPINNER_AFTER};
use crate::output::one_line;
use crate::prompts::{PromptOutcome, Prompter, WaitingPrompt};

/// Cancels a call that has not ended by itself when its time is over: the daemon's clock stands still while a person is
/// asked. Stops when it is dropped.
pub(crate) struct CallLimit {
    reached: Arc<AtomicBool>,
    timer: JoinHandle<()>,
}

/// How long the daemon has to end the call itself, with what the tool has so far.
const GRACE: Duration = Duration::from_secs(1);

impl CallLimit {
    pub(crate) fn start(client: &Client, call_id: &CallId, limit: Duration) -> Self {
        let reached = Arc::<AtomicBool>::default();
        let (client, call_id, is_reached) = (client.clone(), call_id.clone(), reached.clone());
        let timer = tokio::spawn(async move {
            sleep(limit + GRACE).await;
            is_reached.store(true, Ordering::Relaxed);
            cancel(&client, &call_id);
        });
        Self { reached, timer }
    }

    pub(crate) fn was_reached(&self) -> bool {
        self.reached.load(Ordering::Relaxed)
    }
}

impl Drop for CallLimit {
    fn drop(&mut self) {
        self.timer.abort();
    }
}

/// Shows the call until it has ended; `None` when the user did not wait for that.
pub(crate) async fn follow<T>(
    client: &Client,
    mut call: CallHandle<T>,
    name: &str,
    live: &mut LiveOutput,
    prompter: &mut Option<Prompter>,
) -> anyhow::Result<Option<Result<T, ClientError>>> {
    let mut interrupts = signal(SignalKind::interrupt()).context("can't catch Ctrl-C")?;
    let call_id = call.id().clone();
    let mut cancelling = false;
    let mut spinner_at = Some(Instant::now() + SPINNER_AFTER);
    loop {
        let spinner = spinner_at.unwrap_or_else(Instant::now);
        // All of these are cancel-safe.
        tokio::select! {
            biased;
            _ = interrupts.recv() => {
                if cancelling {
                    live.finish()?;
                    return Ok(None);
                }
                cancelling = true;
                live.message("cancelling; press Ctrl-C again to exit at once")?;
                cancel(client, &call_id);
            }
            progress = call.progress() => match progress {
                Some(progress) => live.show(progress)?,
                None => break,
            },
            prompt = next_prompt(prompter, &call_id) => {
                let prompt = prompt?;
                live.pause()?;
                let outcome = match prompter {
                    Some(prompter) => prompter.show(&prompt).await?,
                    None => PromptOutcome::Settled,
                };
                if outcome == PromptOutcome::Exited {
                    cancelling = true;
                    cancel(client, &call_id);
                }
                spinner_at = Some(Instant::now() + SPINNER_AFTER);
            }
            () = sleep_until(spinner), if spinner_at.is_some() => {
                spinner_at = None;
                live.start_spinner(&one_line(name));
            }
        }
    }
    live.finish()?;
    Ok(Some(call.answer().await))
}

/// The next prompt of this call. Never ready when this client shows no prompts.
async fn next_prompt(prompter: &mut Option<Prompter>, call_id: &CallId) -> Result<WaitingPrompt, ClientError> {
    match prompter {
        Some(prompter) => prompter.next(|prompt| prompt.is_for(call_id)).await,
        None => std::future::pending().await,
    }
}

/// Sends the request without waiting: the call's own answer says how it ended, and keys must keep working.
fn cancel(client: &Client, call_id: &CallId) {
    let params = CancelCall { call_id: call_id.clone(), session_id: None };
    let client = client.clone();
    tokio::spawn(async move { client.call::<ToolsCancel>(params).await });
}
