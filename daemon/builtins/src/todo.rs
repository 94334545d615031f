//! `todo`: the session's to-do list.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, ensure};
use serde::Deserialize;
use tokio_util::sync::CancellationToken;
use toold_engine::cx::Cx;
use toold_engine::need::Need;
use toold_engine::session::Session;
use toold_engine::tool::ToolOutput;
use toold_host::state_file;
use toold_proto::event::EventBody;
use toold_proto::todo::{TodoItem, TodoPriority, TodoStatus};
use toold_proto::tool::Annotations;

use crate::blocking::blocking;
use crate::builtin::{Builtin, ToolFacts};
use crate::toolkit::Toolkit;

/// Arguments of `todo`.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct TodoInput {
    /// The whole list: it replaces the one before. Empty when all is done.
    #[cfg_attr(test, schemars(length(max = 200), schema_with = "item_list"))]
    items: Vec<TodoItem>,
}

#[cfg(test)]
fn item_list(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    let protocol = toold_proto::openrpc::document();
    toold_schemas::schema_in(&protocol, "todo.list", "/result/schema/properties/items")
}

pub(crate) struct TodoTool {
    toolkit: Arc<Toolkit>,
}

/// The limit of items.
const MAX_FILE: u64 = 1024 * 1024;

/// The session's to-do list; empty if none was set. Blocks.
pub fn items(toolkit: &Toolkit, session: &Session) -> Vec<TodoItem> {
    file(toolkit, session).and_then(|file| state_file::load(&file, MAX_FILE)).unwrap_or_default()
}

fn file(toolkit: &Toolkit, session: &Session) -> Option<PathBuf> {
    Some(toolkit.session_folder(session)?.join("todo.json"))
}

/// Saves the list so that it survives the daemon.
fn keep(toolkit: &Toolkit, session: &Session, items: &[TodoItem]) -> std::io::Result<()> {
    match file(toolkit, session) {
        Some(file) => state_file::save(&file, &items),
        None => Ok(()),
    }
}

impl Builtin for TodoTool {
    type Input = TodoInput;

    const NAME: &'static str = "todo";
    const FACTS: ToolFacts = ToolFacts {
        label: "Plan the work",
        description: "Replaces the session's to-do list, which people see as it changes. Keep exactly one \
                      item in progress while working, and mark items completed as soon as they are.",
        parallelizable: false,
        permissions: &[],
        timeout: None,
        annotations: Annotations {
            read_only: Some(false),
            destructive: Some(false),
            idempotent: Some(true),
            open_world: Some(false),
            task: None,
        },
    };

    fn new(toolkit: Arc<Toolkit>) -> Self {
        Self { toolkit }
    }

    async fn needs(&self, _: &TodoInput, _: &Cx) -> anyhow::Result<Vec<Need>> {
        Ok(Vec::new())
    }

    async fn run(&self, TodoInput { items }: TodoInput, cx: &Cx) -> anyhow::Result<ToolOutput> {
        let empty = items.iter().position(|item| item.content.trim().is_empty());
        ensure!(empty.is_none(), "item {} is empty", empty.unwrap_or_default() + 1);
        let (toolkit, session, kept) = (self.toolkit.clone(), cx.session.clone(), items.clone());
        let stored = move |_: &CancellationToken| {
            keep(&toolkit, &session, &kept).context("the list is as before: it cannot be stored")
        };
        blocking(cx, stored).await?;
        let text = describe(&items);
        let value = serde_json::to_value(&items)?;
        cx.engine.events.emit(EventBody::TodoChanged { session_id: cx.session.id.clone(), items });
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
