//! `hygge.sleep`, `hygge.now`, `hygge.all`.

use std::time::SystemTime;

use crate::api::{ApiTable, HostReply};

pub(super) fn install(hygge: &ApiTable) -> mlua::Result<()> {
    hygge.waiting("sleep", "hygge.sleep", |host_call| {
        let duration = host_call.args.duration(1, "duration")?;
        Ok(async move {
            tokio::time::sleep(duration).await;
            Ok(HostReply::Nil)
        })
    })?;
    hygge.function("now", "hygge.now", |_, _, context| {
        context.note_side_effect();
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Ok(since.as_secs_f64())
    })?;
    let all: mlua::Function = hygge.prelude.table.raw_get("all")?;
    hygge.table.raw_set("all", all)
}
