//! Model completions for a tool, requested from the frontend that called it.
//!
//! A connection whose client can ask a model provides its [`Sampler`]; see [`Samplers::register`].

use std::collections::HashMap;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::time::Instant;
use toold_proto::offer::{PromptMessage, Speaker};
use toold_proto::tool::Block;

use crate::cx::Cx;
use crate::tool::ToolError;

/// A request to a model.
#[derive(Clone, Debug, PartialEq)]
pub struct SamplingRequest {
    pub messages: Vec<PromptMessage>,
    pub system_prompt: Option<String>,
    pub max_tokens: u32,
    pub temperature: Option<f64>,
    pub stop_sequences: Vec<String>,
    /// As in MCP's `modelPreferences`; the client may ignore it.
    pub model_preferences: Option<Value>,
}

/// A model's answer.
#[derive(Clone, Debug, PartialEq)]
pub struct SamplingResponse {
    pub role: Speaker,
    pub content: Vec<Block>,
    pub model: String,
    pub stop_reason: Option<String>,
}

/// A client that can ask a model.
pub trait Sampler: Send + Sync {
    /// Asks, and waits without a limit of its own; dropped when the call ends first.
    ///
    /// # Errors
    /// `Failed` when the client or its user refused, or an error occurred.
    fn sample<'a>(&'a self, asked: SamplingRequest, cx: &'a Cx) -> BoxFuture<'a, Result<SamplingResponse, ToolError>>;

    /// Whether the client of this call has a model; otherwise [`sample`](Self::sample) fails at once.
    fn has_model(&self, _: &Cx) -> bool {
        true
    }

    /// The folders that the client works in, as reported by the client: for display only, never for
    /// permissions.
    ///
    /// # Errors
    /// `Failed` when the client does not report them.
    fn roots<'a>(&'a self, _: &'a Cx) -> BoxFuture<'a, Result<Vec<ClientRoot>, ToolError>> {
        Box::pin(std::future::ready(Err(ToolError::Failed(
            "the client of this call does not report its folders".to_owned(),
        ))))
    }
}

/// A folder of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientRoot {
    pub uri: String,
    pub name: Option<String>,
}

/// The clients that can ask a model, by connection.
#[derive(Default)]
pub struct Samplers(Arc<Mutex<HashMap<u64, Arc<dyn Sampler>>>>);

/// A client's registration; ends when dropped.
pub struct SamplerRegistration {
    samplers: Arc<Mutex<HashMap<u64, Arc<dyn Sampler>>>>,
    connection: u64,
}

impl Samplers {
    /// Until the registration is dropped, calls whose [`Caller`](crate::call::Caller) is this
    /// connection can sample.
    pub fn register(&self, connection: u64, sampler: Arc<dyn Sampler>) -> SamplerRegistration {
        self.0.lock().insert(connection, sampler);
        SamplerRegistration { samplers: self.0.clone(), connection }
    }
}

impl Drop for SamplerRegistration {
    fn drop(&mut self) {
        self.samplers.lock().remove(&self.connection);
    }
}

/// Asks the model of the call's own frontend. The call's deadline is paused meanwhile, and its
/// caller is notified that it waits.
///
/// # Errors
/// `Failed` when that frontend cannot ask a model, refused, or took longer than asks may take;
/// `Cancelled` when the call ends first.
pub async fn sample(cx: &Cx, asked: SamplingRequest) -> Result<SamplingResponse, ToolError> {
    let sampler = sampler(cx, "the client of this call cannot ask a model (it offers no sampling)")?;
    wait(cx, "a model's answer", sampler.sample(asked, cx)).await
}

/// Whether the frontend of the call has a model that it can ask now; otherwise [`sample`] fails at once.
pub fn has_model(cx: &Cx) -> bool {
    sampler(cx, "").is_ok_and(|sampler| sampler.has_model(cx))
}

/// Asks the call's own frontend for its folders. As [`sample`].
///
/// # Errors
/// As [`sample`].
pub async fn roots(cx: &Cx) -> Result<Vec<ClientRoot>, ToolError> {
    let sampler = sampler(cx, "the client of this call does not report its folders (it offers no roots)")?;
    wait(cx, "the client's folders", sampler.roots(cx)).await
}

impl Cx {
    /// Asks the model of the frontend that called; pauses the deadline meanwhile.
    ///
    /// # Errors
    /// As [`sample`]. A tool passes them on with `?`.
    pub async fn sample(&self, request: SamplingRequest) -> Result<SamplingResponse, ToolError> {
        sample(self, request).await
    }
}

fn sampler(cx: &Cx, otherwise: &str) -> Result<Arc<dyn Sampler>, ToolError> {
    if cx.unattended {
        return Err(ToolError::Failed("the client is not asked after the end of a call".to_owned()));
    }
    let sampler = cx.engine.samplers.0.lock().get(&cx.caller.connection).cloned();
    sampler.ok_or_else(|| ToolError::Failed(otherwise.to_owned()))
}

async fn wait<T>(cx: &Cx, what: &str, work: BoxFuture<'_, Result<T, ToolError>>) -> Result<T, ToolError> {
    let settings = cx.engine.settings.load_full();
    let _pause = cx.deadline.pause();
    let mut heartbeat = tokio::time::interval_at(Instant::now() + settings.heartbeat, settings.heartbeat);
    let give_up = tokio::time::sleep(settings.ask_timeout);
    tokio::pin!(give_up, work);
    loop {
        tokio::select! {
            biased;
            () = cx.cancel.cancelled() => return Err(ToolError::Cancelled),
            answered = &mut work => return answered,
            () = &mut give_up => {
                let seconds = settings.ask_timeout.as_secs();
                return Err(ToolError::Failed(format!("the client did not send {what} within {seconds} s")));
            }
            _ = heartbeat.tick() => cx.message(format!("waiting for {what}")),
        }
    }
}
