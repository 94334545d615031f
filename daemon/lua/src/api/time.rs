//! `hygge.sleep`, `hygge.now`, `hygge.all`.

use std::time::SystemTime;

use super::{Module, Reply};

pub(super) fn offer(hygge: &Module) -> mlua::Result<()> {
    hygge.waiting("sleep", "hygge.sleep", |asked| {
        let duration = asked.args.duration(1, "duration")?;
        Ok(async move {
            tokio::time::sleep(duration).await;
            Ok(Reply::Nil)
        })
    })?;
    hygge.function("now", "hygge.now", |_, _, home| {
        home.does_more();
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Ok(since.as_secs_f64())
    })?;
    let all: mlua::Function = hygge.prelude.prelude.raw_get("all")?;
    hygge.table.raw_set("all", all)
}
