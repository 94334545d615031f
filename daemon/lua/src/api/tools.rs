//! `hygge.call_tool`.

use serde_json::{Map, Value as Json, json};
use toold_proto::tool::ToolResult;

use super::{Module, Reply};

pub(super) fn offer(hygge: &Module) -> mlua::Result<()> {
    hygge.waiting("call_tool", "hygge.call_tool", |asked| {
        let args = asked.args;
        let name = args.text(1, "name")?;
        let arguments =
            if args.value(2).is_nil() { Json::Object(Map::new()) } else { args.json(asked.lua, 2, "args")? };
        let (cx, chain) = (asked.call.cx()?.clone(), asked.call.chain.clone());
        if asked.held {
            return Err("hygge.call_tool: tools cannot be called from a callback of a C function".to_owned());
        }
        Ok(async move {
            let result = cx.call_tool_as(chain, &name, arguments).await;
            result.map(|result| Reply::Json(table_of(result))).map_err(|error| format!("hygge.call_tool: {error}"))
        })
    })?;
    Ok(())
}

/// What a script sees of a result.
fn table_of(result: ToolResult) -> Json {
    json!({
        "content": result.text(),
        "blocks": result.content,
        "is_error": result.is_error,
        "metadata": result.metadata,
        "structured": result.structured,
        "duration_ms": result.duration_ms,
    })
}
