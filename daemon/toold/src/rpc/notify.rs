//! `notify.*`

use toold_proto::method::NotifyTest;

use crate::rpc::{MethodTable, Right, add_async};

pub(super) fn register(module: &mut MethodTable) -> anyhow::Result<()> {
    add_async::<NotifyTest, _>(module, Right::Administrator, |request, _| async move {
        Ok(request.services.notifier.test().await)
    })
}
