//! Hooks: code of plugins and of the configuration that sees every call.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::time::timeout;

use crate::cx::Cx;
use crate::registry::SourceKey;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HookEvent {
    PreTool,
    PostTool,
    PreMessage,
    PostMessage,
}

impl HookEvent {
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

/// What a hook says of itself.
#[derive(Clone, Debug)]
pub struct HookSpec {
    pub name: String,
    pub source: SourceKey,
    pub event: HookEvent,
    /// Lower runs first; ties go by the source's name.
    pub priority: i64,
    /// An asynchronous hook never delays the call, and what it returns counts for nothing.
    pub asynchronous: bool,
    pub timeout: Duration,
    /// A hook that fails ends the call, instead of being told and passed over.
    pub fail_closed: bool,
    /// Only for these tools.
    pub tools: Option<globset::GlobSet>,
}

/// What a hook is told: what applies.
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

/// What a hook may return.
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

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HookDecision {
    /// No objection. Never skips the permission.
    Allow,
    Deny,
    Modify,
}

/// A hook that can be run.
pub trait Hook: Send + Sync + 'static {
    fn spec(&self) -> &HookSpec;
    /// Dropped when its time is over.
    fn run<'a>(&'a self, input: HookInput) -> BoxFuture<'a, Result<HookAnswer, String>>;
}

/// The hooks of all sources. Replaced source by source; readers never wait.
#[derive(Default)]
pub struct Hooks {
    all: ArcSwap<Vec<Arc<dyn Hook>>>,
}

/// What the hooks before or after a call made of it.
#[derive(Debug, PartialEq)]
pub enum Hooked {
    /// The value, perhaps changed.
    Go(Value),
    Denied {
        hook: String,
        reason: String,
    },
}

impl Hooks {
    /// The source has exactly these hooks from now on.
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

    /// Runs the hooks of a tool call in order. `value` is the input before, the result after the call.
    pub async fn around(&self, event: HookEvent, cx: &Cx, mut value: Value) -> Hooked {
        for hook in self.snapshot().iter().filter(|hook| fits(hook.spec(), event, cx)) {
            let spec = hook.spec();
            let input = input_of(event, cx, spec, &value);
            if spec.asynchronous {
                let hook = hook.clone();
                cx.engine.tasks.spawn(async move {
                    if let Err(error) = run(hook.as_ref(), input).await {
                        tracing::warn!(hook = hook.spec().name, %error, "asynchronous hook failed");
                    }
                });
                continue;
            }
            match run(hook.as_ref(), input).await {
                Ok(answer) => match answer.decision {
                    Some(HookDecision::Deny) => {
                        let reason = answer.reason.unwrap_or_else(|| "no reason given".to_owned());
                        return Hooked::Denied { hook: spec.name.clone(), reason };
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
                    return Hooked::Denied { hook: spec.name.clone(), reason: format!("the hook failed: {error}") };
                }
                Err(error) => {
                    tracing::warn!(hook = spec.name, %error, "hook failed, the call goes on");
                    cx.message(format!("hook {} failed: {error}", spec.name));
                }
            }
        }
        Hooked::Go(value)
    }
}

fn fits(spec: &HookSpec, event: HookEvent, cx: &Cx) -> bool {
    let seen = match &spec.source.scope {
        crate::registry::Scope::Global => true,
        crate::registry::Scope::Project(project) => *project == cx.session.project,
    };
    seen && spec.event == event && spec.tools.as_ref().is_none_or(|tools| tools.is_match(cx.tool.as_str()))
}

fn input_of(event: HookEvent, cx: &Cx, spec: &HookSpec, value: &Value) -> HookInput {
    let before = event == HookEvent::PreTool;
    HookInput {
        event: Some(event),
        session_id: cx.session.id.to_string(),
        hook_name: spec.name.clone(),
        pwd: cx.cwd.display().to_string(),
        tool_name: Some(cx.tool.to_string()),
        tool_input: before.then(|| value.clone()),
        tool_result: (!before).then(|| value.clone()),
        call_id: Some(cx.call_id.to_string()),
        message: None,
        mode_name: serde_json::to_value(cx.session.mode()).ok().and_then(|mode| mode.as_str().map(str::to_owned)),
    }
}

async fn run(hook: &dyn Hook, input: HookInput) -> Result<HookAnswer, String> {
    let limit = hook.spec().timeout;
    match timeout(limit, hook.run(input)).await {
        Ok(answer) => answer,
        Err(_) => Err(format!("it took longer than {} ms", limit.as_millis())),
    }
}
