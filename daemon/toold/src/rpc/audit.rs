//! `audit.*`

use jsonrpsee::types::ErrorObjectOwned;
use tokio_util::sync::CancellationToken;
use toold_proto::audit::{AuditList, AuditQuery, AuditVerification};
use toold_proto::daemon::NoParams;
use toold_proto::error::{self, ErrorData};
use toold_proto::method::{self, Method};
use toold_store::StoreError;

use crate::peer::sessions::persistence::with_store;
use crate::rpc::error::{invalid_params, object, unknown};
use crate::rpc::{MethodRequest, MethodTable, Right, add_async, decides};

pub(super) fn register(module: &mut MethodTable) -> anyhow::Result<()> {
    add_async::<method::AuditQuery, _>(module, Right::Anyone, query)?;
    add_async::<method::AuditVerify, _>(module, Right::Anyone, verify)
}

async fn verify(request: MethodRequest, _: NoParams) -> Result<AuditVerification, ErrorObjectOwned> {
    // The check stops once the requester is gone.
    let gone = CancellationToken::new();
    let _guard = gone.clone().drop_guard();
    let verified = with_store(&request.services.store, move |store| store.verify_audit(&|| gone.is_cancelled())).await;
    verified.map_err(|error| failed(&error))
}

async fn query(request: MethodRequest, mut query: AuditQuery) -> Result<AuditList, ErrorObjectOwned> {
    if decides(method::AuditQuery::NAME, &request).is_err() {
        let own = request.session(None)?.id.clone();
        if let Some(other) = query.session_id.filter(|id| *id != own) {
            return Err(unknown("session", other.as_str()));
        }
        query.session_id = Some(own);
    }
    // The search stops once the requester is gone.
    let gone = CancellationToken::new();
    let _guard = gone.clone().drop_guard();
    let found =
        with_store(&request.services.store, move |store| store.query_audit(&query, &|| gone.is_cancelled())).await;
    found.map_err(|error| match error {
        StoreError::BadQuery(words) => invalid_params(&words),
        error => failed(&error),
    })
}

fn failed(error: &StoreError) -> ErrorObjectOwned {
    object(error::EXECUTION_FAILED, &error.to_string(), ErrorData::new("execution_failed"))
}
