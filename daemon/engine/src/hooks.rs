//! Hooks: code of plugins and of the configuration that runs before and after every call.

use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::time::timeout;
use tokio_util::task::TaskTracker;
use toold_proto::hook::{HookAction, HookDecision};

use crate::cx::Cx;
use crate::registry::SourceKey;
use crate::session::Session;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HookEvent {
    PreTool,
    PostTool,
    PreMessage,
    PostMessage,
}

impl HookEvent {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::PreTool => "pre_tool",
            Self::PostTool => "post_tool",
            Self::PreMessage => "pre_message",
            Self::PostMessage => "post_message",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "pre_tool" => Some(Self::PreTool),
            "post_tool" => Some(Self::PostTool),
            "pre_message" => Some(Self::PreMessage),
            "post_message" => Some(Self::PostMessage),
            _ => None,
        }
    }
}

/// How a hook describes itself.
#[derive(Clone, Debug)]
pub struct HookSpec {
    pub name: String,
    pub source: SourceKey,
    pub event: HookEvent,
    /// Lower runs first; ties are ordered by the source's name.
    pub priority: i64,
    /// An asynchronous hook never delays the call, and its return value is ignored.
    pub asynchronous: bool,
    pub timeout: Duration,
    /// A failing hook ends the call, instead of being reported and skipped.
    pub fail_closed: bool,
    /// Only for these tools.
    pub tools: Option<globset::GlobSet>,
    pub health: HookHealth,
}

/// How the last run of a hook ended; shared by its copies.
#[derive(Clone, Debug, Default)]
pub struct HookHealth(Arc<Mutex<Option<String>>>);

impl HookHealth {
    /// Why the last run failed; `None` when it did not, or there was none.
    pub fn error(&self) -> Option<String> {
        self.0.lock().clone()
    }
}

/// The input of a hook; members that do not apply are absent.
#[derive(Clone, Debug, Default, Serialize)]
pub struct HookInput {
    pub event: Option<HookEvent>,
    pub session_id: String,
    pub hook_name: String,
    pub pwd: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_input: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_result: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode_name: Option<String>,
}

/// The answer of a hook.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct HookAnswer {
    pub decision: Option<HookDecision>,
    pub reason: Option<String>,
    pub modified_tool_input: Option<Value>,
    pub modified_tool_result: Option<Value>,
    pub modified_message: Option<Value>,
    pub system_prompt_append: Option<String>,
}

/// A hook that can be run.
pub trait Hook: Send + Sync + 'static {
    fn spec(&self) -> &HookSpec;
    /// `cx` is that of the observed call; `None` for messages. Dropped when its time is over.
    fn run<'a>(&'a self, input: HookInput, cx: Option<Arc<Cx>>) -> BoxFuture<'a, Result<HookAnswer, String>>;
}

/// The hooks of all sources. Replaced source by source; readers never wait.
#[derive(Default)]
pub struct Hooks {
    all: ArcSwap<Vec<Arc<dyn Hook>>>,
}

/// The outcome of the hooks before or after a call.
#[derive(Debug, PartialEq)]
pub enum HookOutcome {
    /// The value, perhaps changed.
    Go(Value),
    Denied {
        hook: String,
        reason: String,
    },
}

impl Hooks {
    /// From now on the source has exactly these hooks.
    pub fn replace(&self, source: &SourceKey, hooks: Vec<Arc<dyn Hook>>) {
        self.all.rcu(|all| {
            let mut next: Vec<Arc<dyn Hook>> =
                all.iter().filter(|hook| hook.spec().source != *source).cloned().chain(hooks.iter().cloned()).collect();
            next.sort_by(|a, b| {
                let (a, b) = (a.spec(), b.spec());
                (a.priority, &a.source.name).cmp(&(b.priority, &b.source.name))
            });
            next
        });
    }

    pub fn snapshot(&self) -> Arc<Vec<Arc<dyn Hook>>> {
        self.all.load_full()
    }

    pub fn is_empty(&self) -> bool {
        self.all.load().is_empty()
    }

    /// Runs the message hooks for a frontend's own loop, in order; a denial ends it.
    pub async fn message(
        &self,
        event: HookEvent,
        session: &Session,
        message: Value,
        tasks: &TaskTracker,
    ) -> HookAction {
        let mut action = HookAction::default();
        let mut message = message;
        let mut appended: Vec<String> = Vec::new();
        for hook in self.snapshot().iter().filter(|hook| sees(hook.spec(), event, session)) {
            let spec = hook.spec();
            let input = HookInput { message: Some(message.clone()), ..input_of(event, session, &session.cwd, spec) };
            if spec.asynchronous {
                spawn(hook.clone(), input, None, tasks);
                continue;
            }
            match run(hook.as_ref(), input, None).await {
                Ok(answer) => {
                    appended.extend(answer.system_prompt_append);
                    if answer.decision == Some(HookDecision::Deny) {
                        action.decision = HookDecision::Deny;
                        action.reason = answer.reason;
                        break;
                    }
                    if let Some(modified) = answer.modified_message {
                        message = modified.clone();
                        action.decision = HookDecision::Modify;
                        action.modified_message = Some(modified);
                    }
                }
                Err(error) if spec.fail_closed => {
                    action.decision = HookDecision::Deny;
                    action.reason = Some(format!("hook {} failed: {error}", spec.name));
                    break;
                }
                Err(error) => action.failed.push(format!("{}: {error}", spec.name)),
            }
        }
        if !appended.is_empty() {
            action.system_prompt_append = Some(appended.join("\n"));
        }
        action
    }

    /// Whether some hook sees this event.
    pub fn has(&self, event: HookEvent) -> bool {
        self.all.load().iter().any(|hook| hook.spec().event == event)
    }

    /// Runs the hooks of a tool call in order. `value` is the input before, the result after the call; `arguments` are
    /// those of a call that has a result.
    pub async fn around(&self, event: HookEvent, cx: &Cx, mut value: Value, arguments: Option<&Value>) -> HookOutcome {
        for hook in self.snapshot().iter().filter(|hook| fits(hook.spec(), event, cx)) {
            let spec = hook.spec();
            let input = input_of_call(event, cx, spec, &value, arguments);
            if spec.asynchronous {
                spawn(hook.clone(), input, Some(cx.shared()), &cx.engine.tasks);
                continue;
            }
            match run(hook.as_ref(), input, Some(cx.shared())).await {
                Ok(answer) => match answer.decision {
                    Some(HookDecision::Deny) => {
                        let reason = answer.reason.unwrap_or_else(|| "no reason given".to_owned());
                        return HookOutcome::Denied { hook: spec.name.clone(), reason };
                    }
                    None | Some(HookDecision::Allow | HookDecision::Modify) => {
                        let modified = match event {
                            HookEvent::PreTool => answer.modified_tool_input,
                            HookEvent::PostTool => answer.modified_tool_result,
                            HookEvent::PreMessage | HookEvent::PostMessage => answer.modified_message,
                        };
                        value = modified.unwrap_or(value);
                    }
                },
                Err(error) if spec.fail_closed => {
                    return HookOutcome::Denied {
                        hook: spec.name.clone(),
                        reason: format!("the hook failed: {error}"),
                    };
                }
                Err(error) => {
                    tracing::warn!(call = %cx.call_id, hook = spec.name, %error, "hook failed, the call goes on");
                    cx.message(format!("hook {} failed: {error}", spec.name));
                }
            }
        }
        HookOutcome::Go(value)
    }
}

fn fits(spec: &HookSpec, event: HookEvent, cx: &Cx) -> bool {
    sees(spec, event, &cx.session) && spec.tools.as_ref().is_none_or(|tools| tools.is_match(cx.tool.as_str()))
}

fn sees(spec: &HookSpec, event: HookEvent, session: &Session) -> bool {
    let in_view = match &spec.source.scope {
        crate::registry::SourceScope::Global => true,
        crate::registry::SourceScope::Project(project) => project == session.project(),
    };
    in_view && spec.event == event
}

fn input_of_call(event: HookEvent, cx: &Cx, spec: &HookSpec, value: &Value, arguments: Option<&Value>) -> HookInput {
    let before = event == HookEvent::PreTool;
    HookInput {
        tool_name: Some(cx.tool.to_string()),
        tool_input: if before { Some(value.clone()) } else { arguments.cloned() },
        tool_result: (!before).then(|| value.clone()),
        call_id: Some(cx.call_id.as_str().to_owned()),
        ..input_of(event, &cx.session, &cx.cwd, spec)
    }
}

fn input_of(event: HookEvent, session: &Session, pwd: &Path, spec: &HookSpec) -> HookInput {
    HookInput {
        event: Some(event),
        session_id: session.id.to_string(),
        hook_name: spec.name.clone(),
        pwd: pwd.display().to_string(),
        mode_name: serde_json::to_value(session.mode()).ok().and_then(|mode| mode.as_str().map(str::to_owned)),
        ..HookInput::default()
    }
}

fn spawn(hook: Arc<dyn Hook>, input: HookInput, cx: Option<Arc<Cx>>, tasks: &TaskTracker) {
    tasks.spawn(async move {
        let call = cx.as_ref().map(|cx| cx.call_id.to_string());
        if let Err(error) = run(hook.as_ref(), input, cx).await {
            tracing::warn!(call, hook = hook.spec().name, %error, "asynchronous hook failed");
        }
    });
}

async fn run(hook: &dyn Hook, input: HookInput, cx: Option<Arc<Cx>>) -> Result<HookAnswer, String> {
    let limit = hook.spec().timeout;
    let answer = match timeout(limit, AssertUnwindSafe(hook.run(input, cx)).catch_unwind()).await {
        Ok(Ok(answer)) => answer,
        Ok(Err(_)) => Err("it panicked".to_owned()),
        Err(_) => Err(format!("it took longer than {} ms", limit.as_millis())),
    };
    *hook.spec().health.0.lock() = answer.as_ref().err().cloned();
    answer
}
