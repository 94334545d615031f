//! Forms that need the terminal for themselves: the arguments of a tool, the fields of a question.

use serde_json::{Map, Value};
use tokio::task::JoinHandle;
use toold_proto::call::Execute;
use toold_proto::question::Question;
use toold_proto::tool::Tool;

use super::action::Request;
use crate::prompts::question;
use crate::{form, output};

/// A form that is being filled in.
#[derive(Default)]
pub(super) struct FormTask(Option<JoinHandle<anyhow::Result<Option<Request>>>>);

impl FormTask {
    /// `fill` blocks on the terminal.
    pub(super) fn begin(&mut self, fill: impl FnOnce() -> anyhow::Result<Option<Request>> + Send + 'static) {
        self.0 = Some(tokio::task::spawn_blocking(fill));
    }

    /// Cancel-safe; never ready without a form.
    pub(super) async fn done(&mut self) -> anyhow::Result<Option<Request>> {
        let Some(task) = &mut self.0 else { return std::future::pending().await };
        let ended = task.await;
        self.0 = None;
        ended?
    }
}

/// Asks for the arguments of a tool.
pub(super) fn call(tool: &Tool) -> anyhow::Result<Option<Request>> {
    let Some(arguments) = form::fill(tool, &Map::new(), &[])? else { return Ok(None) };
    Ok(Some(Request::Execute(Box::new(Execute {
        name: tool.name.as_str().to_owned(),
        arguments: Value::Object(arguments),
        ..Execute::default()
    }))))
}

pub(super) fn answer(question: &Question) -> anyhow::Result<Option<Request>> {
    use std::io::Write;
    writeln!(output::stderr(), "{}", output::plain(&question.question))?;
    Ok(question::fill_form(question)?.map(Request::Answer))
}
