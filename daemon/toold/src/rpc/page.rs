//! `page.*`

use jsonrpsee::types::ErrorObjectOwned;
use toold_engine::time::rfc3339;
use toold_proto::method::{PageOpen, PageRevoke, PageSessionsList};
use toold_proto::page::{OpenPage, OpenedPage, PageSessionList, RevokedPageSessions};

use crate::rpc::error::{invalid_params, refused, unknown};
use crate::rpc::{MethodRequest, MethodTable, Right, add, add_async};

pub(super) fn register(module: &mut MethodTable) -> anyhow::Result<()> {
    add_async::<PageOpen, _>(module, Right::LocalPerson, open)?;
    add::<PageSessionsList>(module, Right::LocalPerson, |request, _| {
        Ok(PageSessionList { sessions: request.services.lifecycle.page.sign_ins.list() })
    })?;
    add::<PageRevoke>(module, Right::LocalPerson, |request, wanted| {
        let revoked = request.services.lifecycle.page.sign_ins.revoke(wanted.id);
        match wanted.id {
            Some(id) if revoked == 0 => Err(unknown("page_session", &id.to_string())),
            Some(_) | None => Ok(RevokedPageSessions { revoked }),
        }
    })
}

async fn open(request: MethodRequest, wanted: OpenPage) -> Result<OpenedPage, ErrorObjectOwned> {
    // It becomes a part of the link.
    let is_id =
        |id: &str| !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
    if let Some(ask) = wanted.ask.as_deref().filter(|ask| !is_id(ask)) {
        return Err(invalid_params(&format!("ask: {ask:?} is not the id of a request")));
    }
    let page = &request.services.lifecycle.page;
    let served = page.serve().await.map_err(|why| refused("no_page", &why))?;
    let code = page.sign_ins.make_code();
    let ask = wanted.ask.map_or_else(String::new, |ask| format!("&ask={ask}"));
    let loaded = request.services.config.loaded();
    let hosts = &loaded.config.page.hosts;
    Ok(OpenedPage {
        url: format!("{}/page/#code={}{ask}", served.origin(hosts), code.code),
        code: code.code,
        expires_at: rfc3339(code.expires_at),
        address: served.address.to_string(),
        loopback: served.address.ip().is_loopback(),
        tls: served.tls,
    })
}
