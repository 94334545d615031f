//! `files.*` and `buffers.*`: taking changes back, and unsaved texts over files.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use jsonrpsee::RpcModule;
use jsonrpsee::types::ErrorObjectOwned;
use toold_builtins::buffers::Buffer;
use toold_builtins::journal::{Change, Selection, UndoError, history, undo};
use toold_engine::session::Session;
use toold_engine::time::rfc3339;
use toold_host::files::resolve;
use toold_proto::daemon::Done;
use toold_proto::file::{
    ClearBuffer, ClearedBuffer, FileChange, FileChanges, FileHistory, SetBuffer, UndoFiles, UndoneFiles,
};
use toold_proto::method::{BuffersClear, BuffersSet, FilesHistory, FilesUndo};

use crate::daemon::State;
use crate::rpc::error::{invalid_params, refused};
use crate::rpc::{Request, Right, add, add_async, client_name};

pub(super) fn register(module: &mut RpcModule<Arc<State>>) -> anyhow::Result<()> {
    add::<FilesHistory>(module, Right::Anyone, |request, params: FileHistory| {
        let session = request.session(params.session_id.as_ref())?;
        Ok(FileChanges { changes: history(&session).iter().map(describe).collect() })
    })?;
    add_async::<FilesUndo, _>(module, Right::Decider, take_back)?;
    add::<BuffersSet>(module, Right::Decider, set)?;
    add::<BuffersClear>(module, Right::Decider, |request, params: ClearBuffer| {
        let session = request.session(None)?;
        let path = resolved(&session, &params.path)?;
        Ok(ClearedBuffer { cleared: request.state.builtins.buffers.clear(request.connection().id, &path) })
    })
}

fn describe(change: &Change) -> FileChange {
    FileChange {
        call_id: change.call_id.clone(),
        tool: change.tool.to_string(),
        path: change.path.display().to_string(),
        at: rfc3339(change.at),
        created: change.created(),
        undone: change.undone,
    }
}

async fn take_back(request: Request, params: UndoFiles) -> Result<UndoneFiles, ErrorObjectOwned> {
    let session = request.session(params.session_id.as_ref())?;
    let selection = match (params.call_id, params.path) {
        (Some(call), None) => Selection::Call(call),
        (None, Some(path)) => Selection::Path(resolved(&session, &path)?),
        (Some(_), Some(_)) | (None, None) => return Err(invalid_params("expected either call_id or path")),
    };
    let undone = undo(&request.state.builtins, &session, &selection).await;
    let paths = undone.map_err(|error| match error {
        UndoError::Nothing => refused("nothing_to_undo", &error.to_string()),
        UndoError::Changed(_) => refused("changed_since", &error.to_string()),
        UndoError::Open(_) | UndoError::Replace(_) | UndoError::Read { .. } => {
            refused("execution_failed", &error.to_string())
        }
    })?;
    Ok(UndoneFiles { paths: paths.iter().map(|path| path.display().to_string()).collect() })
}

fn set(request: Request, params: SetBuffer) -> Result<Done, ErrorObjectOwned> {
    let session = request.session(None)?;
    let connection = request.connection();
    let buffer = Buffer {
        path: resolved(&session, &params.path)?,
        project: session.project.clone(),
        connection: connection.id,
        owner: client_name(&request).unwrap_or_else(|| format!("connection {}", connection.id)),
        version: params.version,
        text: params.text,
    };
    request.state.builtins.buffers.set(buffer).map_err(|error| invalid_params(&error.to_string()))?;
    Ok(Done {})
}

fn resolved(session: &Session, path: &str) -> Result<PathBuf, ErrorObjectOwned> {
    resolve(Path::new(path), &session.cwd).map_err(|error| invalid_params(&format!("path: {path}: {error}")))
}
