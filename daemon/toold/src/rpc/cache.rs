//! `cache.*`

use toold_proto::cache::CacheCleared;
use toold_proto::method::{CacheClear, CacheGetStats};

use crate::rpc::{MethodTable, Right, add_async};

pub(super) fn register(module: &mut MethodTable) -> anyhow::Result<()> {
    add_async::<CacheGetStats, _>(module, Right::Anyone, |request, _| async move {
        Ok(request.services.engine.cache.stats())
    })?;
    // Anybody who may call may also call with `no_cache`, so this costs others nothing but time.
    add_async::<CacheClear, _>(module, Right::Anyone, |request, _| async move {
        Ok(CacheCleared { cleared: request.services.engine.cache.clear() })
    })
}
