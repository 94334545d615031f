//! Lua that a person types at a prompt, run in a plugin's main Lua state as a call.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use mlua::{Function, Lua, MultiValue};
use serde_json::{Value, json};
use toold_engine::callable::Callable;
use toold_engine::cx::Cx;
use toold_engine::need::Need;
use toold_engine::tool::{ToolError, ToolOutput, ToolSpec};

use crate::plugin::failures::HandlerName;
use crate::plugin::handler;
use crate::plugin::state_pool::StatePool;
use crate::vm::create::{MAX_SOURCE, chunk};
use crate::vm::display::display;
use crate::vm::script_run::ScriptRun;

/// How messages name the text.
const NAME: &str = "=prompt";

/// Runs an expression or statements in a plugin's main Lua state, where they see its globals. Their `ctx` is the
/// call's; `print` and `hygge.log` also write to the call's output.
pub(crate) struct Evaluator {
    spec: ToolSpec,
    states: Arc<StatePool>,
}

impl Evaluator {
    pub(crate) fn new(states: Arc<StatePool>) -> Self {
        let input = json!({"type": "object", "properties": {"source": {"type": "string"}}, "required": ["source"]});
        let name = states.plugin.name();
        let about = (format!("Evaluate in {name}"), "Lua that a person typed at a prompt.".to_owned());
        let spec = handler::spec("evaluate", name, about, input, &states.plugin);
        Self { spec, states }
    }

    async fn run(&self, input: Value, cx: &Cx) -> Result<ToolOutput, ToolError> {
        let states = &self.states;
        let loaded = states.main().await.map_err(ToolError::Failed)?;
        let lua = loaded.state.lua();
        let function = match compile(lua, input["source"].as_str().unwrap_or_default()) {
            Ok(function) => function,
            Err(message) => return Ok(ToolOutput::error(message)),
        };
        let call = ScriptRun::of_prompt(cx.shared());
        let read = |values: &MultiValue| Ok(ToolOutput::text(display(values)));
        let handler = HandlerName { kind: "input", name: "" };
        handler::run_script(states, &loaded, (handler, &function), &call, &json!({}), &[], read).await
    }
}

impl Callable for Evaluator {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn needs<'a>(&'a self, _: &'a Value, _: &'a Cx) -> BoxFuture<'a, Result<Vec<Need>, ToolError>> {
        // A person typed it; each thing that it touches is checked when it does.
        std::future::ready(Ok(Vec::new())).boxed()
    }

    fn may_block(&self) -> bool {
        true
    }

    fn call<'a>(&'a self, input: Value, cx: &'a Cx) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        self.run(input, cx).boxed()
    }
}

/// As an expression whose values are returned, or else as statements.
fn compile(lua: &Lua, source: &str) -> Result<Function, String> {
    chunk(lua, as_expression(source).as_bytes(), NAME).or_else(|_| chunk(lua, as_statements(source).as_bytes(), NAME))
}

/// Whether more text could make the source complete, so that a prompt should read another line. Runs nothing.
pub fn is_incomplete(source: &str) -> bool {
    // The call reports that it is too long.
    if source.len() > MAX_SOURCE {
        return false;
    }
    let compiler = mlua::chunk::Compiler::new();
    let ends_early = |text: String| match compiler.compile(text) {
        Ok(_) => Ok(()),
        Err(mlua::Error::SyntaxError { message, incomplete_input }) => {
            let is_open = ["Malformed string", "unfinished comment"].iter().any(|part| message.contains(part));
            Err(incomplete_input || (is_open && opens_long_bracket(source)))
        }
        Err(_) => Err(false),
    };
    match (ends_early(as_expression(source)), ends_early(as_statements(source))) {
        (Ok(()), _) | (_, Ok(())) => false,
        (Err(expression), Err(statements)) => expression || statements,
    }
}

fn as_expression(source: &str) -> String {
    // A comment at the end of the source ends with its line.
    format!("local ctx = ... return {source}\n")
}

fn as_statements(source: &str) -> String {
    format!("local ctx = ... {source}\n")
}

fn opens_long_bracket(source: &str) -> bool {
    source.rfind("[[").is_some_and(|opened| source.rfind("]]").is_none_or(|closed| closed < opened))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_beginning_is_told_from_a_mistake() {
        for beginning in
            ["function f()", "local t = {", "1 +", "if x then", "f(", "x =", "[[long", "x = [[\nlong", "--[[ a"]
        {
            assert!(is_incomplete(beginning), "{beginning}");
        }
        for whole in ["1 + 1", "x = 1", "f()", "", "-- a comment", "return 1, 2", "for i = 1, 2 do print(i) end"] {
            assert!(!is_incomplete(whole), "{whole}");
        }
        for mistake in ["x = = 1", "end", "\"abc", "1 1", "goto x"] {
            assert!(!is_incomplete(mistake), "{mistake}");
        }
    }
}
