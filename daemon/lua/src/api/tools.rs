//! `hygge.call_tool`.

use serde_json::{Map, Value as Json, json};
use toold_proto::tool::ToolResult;

use crate::api::{ApiTable, HostReply};
use crate::plugin::schema_shape::empty_lists;

pub(super) fn install(hygge: &ApiTable) -> mlua::Result<()> {
    hygge.waiting("call_tool", "hygge.call_tool", |host_call| {
        let args = host_call.args;
        let name = args.text(1, "name")?;
        let mut arguments =
            if args.value(2).is_nil() { Json::Object(Map::new()) } else { args.json(host_call.lua, 2, "args")? };
        let (cx, chain) = (host_call.call.cx()?.clone(), host_call.call.chain.clone());
        let plugin = &host_call.context.plugin;
        let snapshot = plugin.shared.engine.registry.snapshot();
        if let Some(tool) = snapshot.view(cx.session.project()).find_own(&name) {
            empty_lists(&mut arguments, tool.spec().input.as_value());
        }
        if host_call.blocking {
            return Err("hygge.call_tool: tools cannot be called from a callback of a C function".to_owned());
        }
        Ok(async move {
            let result = cx.call_tool_as(chain, &name, arguments).await;
            result.map(|result| HostReply::Json(table_of(result))).map_err(|error| format!("hygge.call_tool: {error}"))
        })
    })?;
    Ok(())
}

/// The table that a script gets for a result.
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
