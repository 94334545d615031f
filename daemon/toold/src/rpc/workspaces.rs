//! `workspaces.*`

use std::path::{Path, PathBuf};

use jsonrpsee::types::ErrorObjectOwned;
use toold_proto::method::{WorkspacesAllow, WorkspacesForget, WorkspacesList};
use toold_proto::workspace::{NameWorkspace, WorkspaceList};

use crate::config::project_folder::real_dir;
use crate::config::workspaces::without_dots;
use crate::peer::workspaces::WorkspaceError;
use crate::rpc::blocking::blocking;
use crate::rpc::error::{NOT_KEPT, invalid_params, refused, unknown};
use crate::rpc::{MethodRequest, MethodTable, Right, add, add_async};

pub(super) fn register(module: &mut MethodTable) -> anyhow::Result<()> {
    add::<WorkspacesList>(module, Right::Administrator, |request, _| Ok(list(&request)))?;
    add_async::<WorkspacesAllow, _>(module, Right::Administrator, allow)?;
    add_async::<WorkspacesForget, _>(module, Right::Administrator, forget)
}

fn list(request: &MethodRequest) -> WorkspaceList {
    WorkspaceList { workspaces: request.services.workspaces.list() }
}

async fn allow(request: MethodRequest, params: NameWorkspace) -> Result<WorkspaceList, ErrorObjectOwned> {
    let path = absolute(&request, &params.path)?;
    let services = request.services.clone();
    let allowed = blocking(move || {
        let folder = real_dir(&path);
        let folder = folder.map_err(|error| WorkspaceError::Invalid(format!("{}: {error}", path.display())))?;
        services.workspaces.allow(&folder)
    });
    allowed.await?.map_err(|error| match error {
        WorkspaceError::Invalid(words) => invalid_params(&words),
        WorkspaceError::Store(error) => refused(NOT_KEPT, &error.to_string()),
    })?;
    Ok(list(&request))
}

async fn forget(request: MethodRequest, params: NameWorkspace) -> Result<WorkspaceList, ErrorObjectOwned> {
    let path = absolute(&request, &params.path)?;
    let services = request.services.clone();
    let forgotten = blocking(move || {
        // A missing folder is identified by the path that it had.
        let folder = real_dir(&path).unwrap_or_else(|_| without_dots(&path));
        services.workspaces.forget(&folder)
    });
    match forgotten.await? {
        Ok(true) => Ok(list(&request)),
        Ok(false) => Err(unknown("workspace", &params.path)),
        Err(error) => Err(refused(NOT_KEPT, &error.to_string())),
    }
}

fn absolute(request: &MethodRequest, text: &str) -> Result<PathBuf, ErrorObjectOwned> {
    let path = request.services.sessions.expand_tilde(Path::new(text));
    match path.is_absolute() {
        true => Ok(path),
        false => Err(invalid_params(&format!("path: {text:?} is not an absolute path"))),
    }
}
