//! `files.*` and `buffers.*`: undoing changes, and unsaved texts in place of files.

use std::path::{Path, PathBuf};

use jsonrpsee::types::ErrorObjectOwned;
use toold_builtins::buffers::Buffer;
use toold_builtins::journal::{JournalEntry, JournalScope, Selection};
use toold_builtins::undo::{self, UndoError};
use toold_engine::session::Session;
use toold_engine::time::rfc3339;
use toold_host::files::resolve;
use toold_proto::daemon::Done;
use toold_proto::file::{
    ClearBuffer, ClearedBuffer, FileChange, FileChanges, FileHistory, SetBuffer, UndoFiles, UndoneFiles,
};
use toold_proto::method::{BuffersClear, BuffersSet, FilesHistory, FilesUndo};

use crate::rpc::blocking::blocking;
use crate::rpc::error::{invalid_params, refused};
use crate::rpc::{MethodRequest, MethodTable, Right, add, add_async, client_name, decides};

pub(super) fn register(module: &mut MethodTable) -> anyhow::Result<()> {
    add_async::<FilesHistory, _>(module, Right::Anyone, history)?;
    add_async::<FilesUndo, _>(module, Right::Decider, take_back)?;
    add::<BuffersSet>(module, Right::Administrator, set)?;
    add::<BuffersClear>(module, Right::Administrator, |request, params: ClearBuffer| {
        let session = request.session(None)?;
        let path = resolved(&session, &params.path)?;
        Ok(ClearedBuffer { cleared: request.services.builtins.buffers.clear(request.connection().id, &path) })
    })
}

async fn history(request: MethodRequest, params: FileHistory) -> Result<FileChanges, ErrorObjectOwned> {
    let session = match params.all {
        true => {
            decides("files.history of other sessions", &request)?;
            None
        }
        false => Some(request.session(params.session_id.as_ref())?.id.clone()),
    };
    let builtins = request.services.builtins.clone();
    blocking(move || {
        let whose = session.as_ref().map_or(JournalScope::Everybody, JournalScope::Session);
        FileChanges { changes: undo::history(&builtins, whose).iter().map(describe).collect() }
    })
    .await
}

fn describe(change: &JournalEntry) -> FileChange {
    FileChange {
        session_id: change.session_id.clone(),
        call_id: change.call_id.clone(),
        tool: change.tool.to_string(),
        path: change.path.display().to_string(),
        at: rfc3339(change.at),
        created: change.created,
        removed: change.removed,
        undone: change.undone,
    }
}

async fn take_back(request: MethodRequest, params: UndoFiles) -> Result<UndoneFiles, ErrorObjectOwned> {
    let session = request.session(if params.all { None } else { params.session_id.as_ref() })?;
    let selection = match (params.call_id, params.path) {
        (Some(call), None) => Selection::Call(call),
        (None, Some(path)) => Selection::Path(resolved(&session, &path)?),
        (Some(_), Some(_)) | (None, None) => return Err(invalid_params("expected either call_id or path")),
    };
    let builtins = request.services.builtins.clone();
    let whose = if params.all { JournalScope::Everybody } else { JournalScope::Session(&session.id) };
    if params.dry_run {
        let (session, all) = (session.clone(), params.all);
        let shown = blocking(move || {
            let whose = if all { JournalScope::Everybody } else { JournalScope::Session(&session.id) };
            undo::preview(&builtins, whose, &selection)
        });
        let shown = shown.await?.map_err(|error| refusal(&error))?;
        let (paths, diffs): (Vec<PathBuf>, Vec<String>) = shown.into_iter().unzip();
        return Ok(UndoneFiles { paths: names(&paths), diff: Some(diffs.concat()) });
    }
    let paths = undo::undo(&builtins, &session, whose, &selection).await.map_err(|error| refusal(&error))?;
    Ok(UndoneFiles { paths: names(&paths), diff: None })
}

fn refusal(error: &UndoError) -> ErrorObjectOwned {
    let kind = match error {
        UndoError::Nothing => "nothing_to_undo",
        UndoError::Changed(_) => "changed_since",
        UndoError::Open(_) | UndoError::Replace(_) | UndoError::Read { .. } => "execution_failed",
    };
    refused(kind, &error.to_string())
}

fn names(paths: &[PathBuf]) -> Vec<String> {
    paths.iter().map(|path| path.display().to_string()).collect()
}

fn set(request: MethodRequest, params: SetBuffer) -> Result<Done, ErrorObjectOwned> {
    let session = request.session(None)?;
    let connection = request.connection();
    let buffer = Buffer {
        path: resolved(&session, &params.path)?,
        project: session.project().to_owned(),
        connection: connection.id,
        owner: client_name(&request).unwrap_or_else(|| format!("connection {}", connection.id)),
        version: params.version,
        text: params.text,
    };
    request.services.builtins.buffers.set(buffer).map_err(|error| invalid_params(&error.to_string()))?;
    Ok(Done {})
}

fn resolved(session: &Session, path: &str) -> Result<PathBuf, ErrorObjectOwned> {
    resolve(Path::new(path), &session.cwd).map_err(|error| invalid_params(&format!("path: {path}: {error}")))
}
