//! `todo`: what the session has to do, as the model sees it.

use std::sync::{Arc, Mutex};

use anyhow::ensure;
use schemars::JsonSchema;
use serde::Deserialize;
use toold_engine::cx::Cx;
use toold_engine::need::Need;
use toold_engine::session::Session;
use toold_engine::tool::ToolOutput;
use toold_proto::event::What;
use toold_proto::todo::{TodoItem, TodoPriority, TodoStatus};
use toold_proto::tool::Annotations;

use crate::builtin::{Builtin, Facts};
use crate::shared::Shared;

/// What `todo` takes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// The whole list: it replaces the one before. Empty when all is done.
    #[schemars(length(max = 200))]
    items: Vec<TodoItem>,
}

pub(crate) struct Todo;

/// The list of a session, kept by the session.
#[derive(Default)]
struct List(Mutex<Vec<TodoItem>>);

/// What the session has to do.
pub fn items(session: &Session) -> Vec<TodoItem> {
    session.slot::<List>().0.lock().expect("no code panics while it holds this lock").clone()
}

/// Replaces the list without telling anybody, such as when a session is taken up again.
pub fn restore(session: &Session, items: Vec<TodoItem>) {
    *session.slot::<List>().0.lock().expect("no code panics while it holds this lock") = items;
}

impl Builtin for Todo {
    type Input = Input;

    const NAME: &'static str = "todo";
    const FACTS: Facts = Facts {
        label: "Plan the work",
        description: "Replaces the session's list of things to do, which people see as it changes. Keep exactly one \
                      item in progress while working, and mark items completed as soon as they are.",
        parallelizable: false,
        permissions: &[],
        timeout: None,
        annotations: Annotations { read_only: false, destructive: false, idempotent: true, open_world: false },
    };

    fn new(_: Arc<Shared>) -> Self {
        Self
    }

    async fn needs(&self, _: &Input, _: &Cx) -> anyhow::Result<Vec<Need>> {
        Ok(Vec::new())
    }

    async fn run(&self, Input { items }: Input, cx: &Cx) -> anyhow::Result<ToolOutput> {
        let empty = items.iter().position(|item| item.content.trim().is_empty());
        ensure!(empty.is_none(), "item {} says nothing", empty.unwrap_or_default() + 1);
        restore(&cx.session, items.clone());
        let text = describe(&items);
        let value = serde_json::to_value(&items)?;
        cx.engine.events.emit(What::TodoChanged { session_id: cx.session.id.clone(), items });
        Ok(ToolOutput::text(text).with("items", value))
    }
}

fn describe(items: &[TodoItem]) -> String {
    if items.is_empty() {
        return "the list is empty".to_owned();
    }
    let rows = items.iter().map(|item| {
        let mark = match item.status {
            TodoStatus::Pending => "[ ]",
            TodoStatus::InProgress => "[>]",
            TodoStatus::Completed => "[x]",
            TodoStatus::Cancelled => "[-]",
        };
        let priority = match item.priority {
            Some(TodoPriority::High) => " (high)",
            Some(TodoPriority::Low) => " (low)",
            Some(TodoPriority::Medium) | None => "",
        };
        format!("{mark} {}{priority}", item.content)
    });
    rows.collect::<Vec<_>>().join("\n")
}
