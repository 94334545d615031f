//! `hygge.secret`: a secret that the manifest declares and a person granted.

use crate::api::{ApiTable, HostReply};
use crate::plugin::secrets;

pub(super) fn install(hygge: &ApiTable) -> mlua::Result<()> {
    hygge.waiting("secret", "hygge.secret", |host_call| {
        let name = host_call.args.text(1, "name")?;
        let (call, plugin) = (host_call.call.clone(), host_call.context.plugin.clone());
        secrets::declared(&plugin, &name).map_err(|why| format!("hygge.secret: {why}"))?;
        // A cached result would outlive the secret.
        call.authority()?.do_not_keep();
        Ok(async move {
            call.require(secrets::need(&name, None)).await.map_err(|error| format!("hygge.secret: {error}"))?;
            let value = secrets::value(&plugin, &name).await.map_err(|why| format!("hygge.secret: {why}"))?;
            Ok(HostReply::Bytes(value.into_bytes()))
        })
    })?;
    Ok(())
}
