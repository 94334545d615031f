//! `hygge.store`: what a plugin keeps between its calls, and between runs of the daemon.

use std::sync::Arc;

use super::{Asked, Module, Reply, Work};
use crate::store::Store;

const MAX_KEY: usize = 256;
/// Bytes of JSON that one key may hold.
const MAX_VALUE: usize = 1 << 20;

pub(super) fn offer(hygge: &Module) -> mlua::Result<()> {
    let store = hygge.within("store")?;
    store.waiting("get", "hygge.store.get", |asked| {
        let key = key(asked)?;
        work(asked, move |store, plugin| Ok(store.get(plugin, &key)?.map_or(Reply::Nil, Reply::Exact)))
    })?;
    store.waiting("set", "hygge.store.set", |asked| {
        let key = key(asked)?;
        let value = asked.args.json(asked.lua, 2, "value")?;
        let length = value.to_string().len();
        if length > MAX_VALUE {
            return Err(format!("hygge.store.set: the value has {length} bytes; at most {MAX_VALUE} are taken"));
        }
        work(asked, move |store, plugin| match value {
            serde_json::Value::Null => store.delete(plugin, &key).map(|_| Reply::Nil),
            value => store.set(plugin, &key, &value).map(|()| Reply::Nil),
        })
    })?;
    store.waiting("delete", "hygge.store.delete", |asked| {
        let key = key(asked)?;
        work(asked, move |store, plugin| Ok(Reply::Json(store.delete(plugin, &key)?.into())))
    })?;
    store.waiting("keys", "hygge.store.keys", |asked| {
        let prefix = asked.args.optional_text(1, "prefix")?.unwrap_or_default();
        work(asked, move |store, plugin| Ok(Reply::Json(store.keys(plugin, &prefix)?.into())))
    })?;
    Ok(())
}

fn key(asked: &Asked) -> Result<String, String> {
    let key = asked.args.text(1, "key")?;
    if key.is_empty() || key.len() > MAX_KEY {
        return Err(asked.args.mistake(1, "key", "1 to 256 bytes"));
    }
    Ok(key)
}

fn work(
    asked: &Asked,
    work: impl FnOnce(&dyn Store, &str) -> Result<Reply, String> + Send + 'static,
) -> Result<Work, String> {
    let plugin = asked.home.plugin.clone();
    let called = asked.args.function;
    let store: Arc<dyn Store> =
        plugin.shared.store.clone().ok_or_else(|| format!("{called}: this daemon keeps nothing for plugins"))?;
    Ok(Box::pin(async move {
        let done = tokio::task::spawn_blocking(move || work(store.as_ref(), &plugin.store_name())).await;
        done.map_err(|error| error.to_string())?.map_err(|error| format!("{called}: {error}"))
    }))
}
