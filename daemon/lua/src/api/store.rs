//! `hygge.store`: data that a plugin keeps between calls and across restarts of the daemon.

use std::sync::Arc;

use mlua::Function;
use serde_json::Value as Json;

use crate::api::{ApiTable, HostCall, HostReply, HostWork};
use crate::plugin::store::KeyValueStore;
use crate::vm::convert;

const MAX_KEY: usize = 256;
/// Bytes of JSON that one key may hold.
const MAX_VALUE: usize = 1 << 20;

pub(super) fn install(hygge: &ApiTable) -> mlua::Result<()> {
    let store = hygge.within("store")?;
    store.waiting("get", "hygge.store.get", |host_call| {
        let key = key(host_call)?;
        work(host_call, move |store, plugin| Ok(store.get(plugin, &key)?.map_or(HostReply::Nil, HostReply::Stored)))
    })?;
    store.waiting("set", "hygge.store.set", |host_call| {
        let key = key(host_call)?;
        let value = value(host_call, 2, "value")?;
        work(host_call, move |store, plugin| match value {
            None => store.delete(plugin, &key).map(|_| HostReply::Nil),
            Some(value) => store.set(plugin, &key, &value).map(|()| HostReply::Nil),
        })
    })?;
    store.waiting("compare_and_set", "hygge.store.compare_and_set", |host_call| {
        let key = key(host_call)?;
        let (expected, new) = (value(host_call, 2, "expected")?, value(host_call, 3, "new")?);
        work(host_call, move |store, plugin| {
            let expected = expected.map(|value| value.to_string());
            Ok(HostReply::Json(store.compare_and_set(plugin, &key, expected.as_deref(), new.as_ref())?.into()))
        })
    })?;
    let update: Function = hygge.prelude.table.raw_get("update")?;
    let (read, swap) = update_parts(hygge)?;
    let sleep: Function = hygge.table.raw_get("sleep")?;
    store.table.raw_set("update", update.call::<Function>((read, swap, sleep))?)?;
    store.waiting("delete", "hygge.store.delete", |host_call| {
        let key = key(host_call)?;
        work(host_call, move |store, plugin| Ok(HostReply::Json(store.delete(plugin, &key)?.into())))
    })?;
    store.waiting("keys", "hygge.store.keys", |host_call| {
        let prefix = host_call.args.optional_text(1, "prefix")?.unwrap_or_default();
        work(host_call, move |store, plugin| Ok(HostReply::Json(store.keys(plugin, &prefix)?.into())))
    })?;
    Ok(())
}

/// The functions that `update` is made of. The text of the old value is kept, since the script may change the table that
/// it was given.
fn update_parts(hygge: &ApiTable) -> mlua::Result<(Function, Function)> {
    let parts = hygge.apart()?;
    let read = parts.waiting("read", "hygge.store.update", |host_call| {
        let key = key(host_call)?;
        host_call.args.function(2, "change")?;
        work(host_call, move |store, plugin| {
            Ok(match store.get(plugin, &key)? {
                None => HostReply::Fields(Vec::new()),
                Some(value) => {
                    let text = HostReply::Bytes(value.to_string().into_bytes());
                    HostReply::Fields(vec![("text", text), ("value", HostReply::Stored(value))])
                }
            })
        })
    })?;
    let swap = parts.waiting("swap", "hygge.store.update", |host_call| {
        let (key, text) = (key(host_call)?, host_call.args.optional_text(2, "text")?);
        let new = value(host_call, 3, "new")?;
        work(host_call, move |store, plugin| {
            Ok(HostReply::Json(store.compare_and_set(plugin, &key, text.as_deref(), new.as_ref())?.into()))
        })
    })?;
    Ok((read, swap))
}

/// The argument as JSON; `None` for nil and null, which stand for a missing key.
fn value(host_call: &HostCall, place: usize, name: &str) -> Result<Option<Json>, String> {
    let (lua, called) = (host_call.lua, host_call.args.function);
    let value = convert::to_json_with_bytes(lua, host_call.args.value(place));
    let value = value.map_err(|error| format!("{called}: argument {place} '{name}': {error}"))?;
    if value.is_null() {
        return Ok(None);
    }
    let length = value.to_string().len();
    if length > MAX_VALUE {
        return Err(format!("{}: the value has {length} bytes; the limit is {MAX_VALUE}", host_call.args.function));
    }
    Ok(Some(value))
}

fn key(host_call: &HostCall) -> Result<String, String> {
    let key = host_call.args.text(1, "key")?;
    if key.is_empty() || key.len() > MAX_KEY {
        return Err(host_call.args.mistake(1, "key", "1 to 256 bytes"));
    }
    Ok(key)
}

fn work(
    host_call: &HostCall,
    work: impl FnOnce(&dyn KeyValueStore, &str) -> Result<HostReply, String> + Send + 'static,
) -> Result<HostWork, String> {
    let plugin = host_call.context.plugin.clone();
    let called = host_call.args.function;
    let store: Arc<dyn KeyValueStore> =
        plugin.shared.store.clone().ok_or_else(|| format!("{called}: this daemon has no store for plugins"))?;
    Ok(Box::pin(async move {
        let done = tokio::task::spawn_blocking(move || work(store.as_ref(), &plugin.store_name())).await;
        done.map_err(|error| error.to_string())?.map_err(|error| format!("{called}: {error}"))
    }))
}
