//! `hygge.store`: data that a plugin keeps between calls and across restarts of the daemon.

use std::sync::Arc;

use crate::api::{ApiTable, HostCall, HostReply, HostWork};
use crate::plugin::store::KeyValueStore;

const MAX_KEY: usize = 256;
/// Bytes of JSON that one key may hold.
const MAX_VALUE: usize = 1 << 20;

pub(super) fn install(hygge: &ApiTable) -> mlua::Result<()> {
    let store = hygge.within("store")?;
    store.waiting("get", "hygge.store.get", |host_call| {
        let key = key(host_call)?;
        work(host_call, move |store, plugin| Ok(store.get(plugin, &key)?.map_or(HostReply::Nil, HostReply::Exact)))
    })?;
    store.waiting("set", "hygge.store.set", |host_call| {
        let key = key(host_call)?;
        let value = host_call.args.json(host_call.lua, 2, "value")?;
        let length = value.to_string().len();
        if length > MAX_VALUE {
            return Err(format!("hygge.store.set: the value has {length} bytes; the limit is {MAX_VALUE}"));
        }
        work(host_call, move |store, plugin| match value {
            serde_json::Value::Null => store.delete(plugin, &key).map(|_| HostReply::Nil),
            value => store.set(plugin, &key, &value).map(|()| HostReply::Nil),
        })
    })?;
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
