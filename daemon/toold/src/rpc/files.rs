//! `files.*` and `buffers.*`: undoing changes, and unsaved texts in place of files.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use jsonrpsee::types::ErrorObjectOwned;
use serde::Serialize;
use toold_builtins::buffers::Buffer;
use toold_builtins::journal::{
    ChangeFilter, ChangeRecord, JournalScope, PathChange, RawPath, Selection, UnrecordedChanges,
};
use toold_builtins::undo::{self, UndoError};
use toold_engine::session::Session;
use toold_engine::time::{read_since, rfc3339};
use toold_host::files::resolve;
use toold_proto::daemon::Done;
use toold_proto::file::{
    ClearBuffer, ClearedBuffer, FileChange, FileChanges, FileHistory, ForgetChanges, ForgottenChanges, SetBuffer,
    UndoFiles, UndoneFiles, UnrecordedCall, UnrecordedPaths,
};
use toold_proto::method::{BuffersClear, BuffersSet, FilesForget, FilesHistory, FilesUndo};

use crate::rpc::blocking::blocking;
use crate::rpc::error::{invalid_params, refused};
use crate::rpc::{MethodRequest, MethodTable, Right, add, add_async, client_name, decides};

/// Bytes of the changes in an answer, and of the paths in one.
const MAX_CHANGES: usize = 8 << 20;
const MAX_PATHS: usize = 4 << 20;

pub(super) fn register(module: &mut MethodTable) -> anyhow::Result<()> {
    add_async::<FilesHistory, _>(module, Right::Anyone, history)?;
    add_async::<FilesForget, _>(module, Right::Decider, forget)?;
    add_async::<FilesUndo, _>(module, Right::Decider, take_back)?;
    add::<BuffersSet>(module, Right::Administrator, set)?;
    add::<BuffersClear>(module, Right::Administrator, |request, params: ClearBuffer| {
        let session = request.session(None)?;
        let path = resolved(&session, &params.path)?;
        Ok(ClearedBuffer { cleared: request.services.builtins.buffers.clear(request.connection().id, &path) })
    })
}

async fn history(request: MethodRequest, params: FileHistory) -> Result<FileChanges, ErrorObjectOwned> {
    let mut filter = filter(params.since.as_deref(), params.agent)?;
    let session = match (params.all, params.session_id) {
        (true, session_id) => {
            decides("files.history of other sessions", &request)?;
            // It may have ended, and records of other sessions name it where either of them may have made a change.
            filter.session = session_id;
            None
        }
        (false, session_id) => Some(request.session(session_id.as_ref())?.id.clone()),
    };
    if params.diff {
        decides("files.history with a diff", &request)?;
    }
    let builtins = request.services.builtins.clone();
    blocking(move || {
        let whose = session.as_ref().map_or(JournalScope::Everybody, JournalScope::Session);
        let records = undo::changes_of(&builtins, whose, &filter);
        let below = params.below.as_deref().map(Path::new);
        let is_below = |change: &PathChange| below.is_none_or(|folder| change.path.path().starts_with(folder));
        let changes = records.iter().flat_map(|record| record.changes.iter().map(move |change| (record, change)));
        let changes: Vec<_> = changes.filter(|(_, change)| is_below(change)).collect();
        let (newest, older) =
            fitting(changes.into_iter().rev().map(|(record, change)| describe(record, change)), MAX_CHANGES);
        let diff = match (&params.folder, params.patch) {
            (Some(folder), true) if params.diff => Some(undo::patch(&builtins, &records, Path::new(folder))),
            (folder, _) => {
                let folder = folder.as_deref().map(Path::new);
                params.diff.then(|| undo::combined_diff(&builtins, &records, folder))
            }
        };
        let folder = params.folder.as_deref().map(Path::new);
        let unrecorded = records.iter().filter(|record| !record.undone);
        let unrecorded = unrecorded.filter_map(|record| unrecorded_by(record, folder)).collect();
        FileChanges { changes: newest.into_iter().rev().collect(), older, unrecorded, diff }
    })
    .await
}

/// As many as fit into so many bytes of JSON, and the number of those that do not.
fn fitting<T: Serialize>(all: impl ExactSizeIterator<Item = T>, mut room: usize) -> (Vec<T>, u64) {
    let count = all.len();
    let mut has_room = |item: &T| {
        let length = serde_json::to_vec(item).map_or(0, |text| text.len());
        room = room.saturating_sub(length);
        room > 0
    };
    let fitting: Vec<T> = all.take_while(|item| has_room(item)).collect();
    let rest = (count - fitting.len()) as u64;
    (fitting, rest)
}

fn filter(since: Option<&str>, agent: Option<String>) -> Result<ChangeFilter, ErrorObjectOwned> {
    let since = since.map(|since| read_since(since, SystemTime::now())).transpose();
    Ok(ChangeFilter { since: since.map_err(|why| invalid_params(&why))?, agent, ..ChangeFilter::default() })
}

fn describe(record: &ChangeRecord, change: &PathChange) -> FileChange {
    FileChange {
        session_id: record.session_id.clone(),
        call_id: record.call_id.clone(),
        tool: record.tool.to_string(),
        path: change.path.path().display().to_string(),
        at: rfc3339(record.at),
        created: change.before.is_none(),
        removed: change.after.is_none(),
        undone: record.undone,
        agent: record.agent.clone(),
        command: record.command.clone(),
        shared_with: record.shared_with.clone(),
    }
}

fn unrecorded_by(record: &ChangeRecord, folder: Option<&Path>) -> Option<UnrecordedCall> {
    let paths = unrecorded_paths(&record.beyond);
    (paths != UnrecordedPaths::default()).then(|| UnrecordedCall {
        session_id: record.session_id.clone(),
        call_id: record.call_id.clone(),
        tool: record.tool.to_string(),
        at: rfc3339(record.at),
        command: record.command.clone(),
        paths,
        notes: undo::notes(&record.beyond, folder),
    })
}

fn unrecorded_paths(changes: &UnrecordedChanges) -> UnrecordedPaths {
    let names = |paths: &[RawPath]| paths.iter().map(|path| path.path().display().to_string()).collect();
    UnrecordedPaths {
        not_kept: names(&changes.not_kept),
        repositories: names(&changes.repositories),
        outside: names(&changes.outside),
        ignored: names(&changes.ignored),
    }
}

async fn forget(request: MethodRequest, params: ForgetChanges) -> Result<ForgottenChanges, ErrorObjectOwned> {
    let session = request.session(None)?;
    let path = match (params.path, params.all) {
        (Some(path), false) => Some(resolved(&session, &path)?),
        (None, true) => None,
        (Some(_), true) | (None, false) => return Err(invalid_params("expected either path or all")),
    };
    let builtins = request.services.builtins.clone();
    let forgotten = blocking(move || builtins.forget_changes(path.as_deref())).await?;
    match forgotten {
        Ok(forgotten) => Ok(ForgottenChanges { forgotten: forgotten as u64 }),
        Err(error) => Err(refused("execution_failed", &format!("can't forget: {error}"))),
    }
}

async fn take_back(request: MethodRequest, params: UndoFiles) -> Result<UndoneFiles, ErrorObjectOwned> {
    let session = request.session(if params.all { None } else { params.session_id.as_ref() })?;
    let names_all = params.every || params.since.is_some() || params.agent.is_some();
    let selection = match (params.call_id, params.path) {
        (Some(call), None) if !names_all => Selection::Call(call),
        (None, Some(path)) if !names_all => Selection::Path(resolved(&session, &path)?),
        (None, None) if names_all => {
            let below = params.folder.as_ref().map(PathBuf::from);
            Selection::All(ChangeFilter { below, ..filter(params.since.as_deref(), params.agent)? })
        }
        _ => return Err(invalid_params("expected either call_id or path, or some of since, agent and every")),
    };
    let builtins = request.services.builtins.clone();
    // The session that changed something may have ended.
    let of_session = if params.all { params.session_id } else { Some(session.id.clone()) };
    if params.dry_run {
        let shown = blocking(move || {
            let whose = of_session.as_ref().map_or(JournalScope::Everybody, JournalScope::Session);
            let folder = params.folder.as_deref().map(Path::new);
            let shown = undo::preview(&builtins, whose, &selection, folder)?;
            let unrecorded = undo::unrecorded(&builtins, whose, &selection);
            let notes = undo::notes(&unrecorded, folder);
            Ok((shown, unrecorded, notes))
        });
        let (shown, unrecorded, notes) = shown.await?.map_err(|error: UndoError| refusal(&error))?;
        let (paths, diffs): (Vec<PathBuf>, Vec<String>) = shown.into_iter().unzip();
        let ((paths, more), unrecorded) = (names(&paths), unrecorded_paths(&unrecorded));
        return Ok(UndoneFiles { paths, more, diff: Some(diffs.concat()), unrecorded, notes });
    }
    let (looking, selected, session_id) = (builtins.clone(), selection.clone(), of_session.clone());
    let unrecorded = blocking(move || {
        let whose = session_id.as_ref().map_or(JournalScope::Everybody, JournalScope::Session);
        undo::unrecorded(&looking, whose, &selected)
    });
    let unrecorded = unrecorded.await?;
    let notes = undo::notes(&unrecorded, params.folder.as_deref().map(Path::new));
    let unrecorded = unrecorded_paths(&unrecorded);
    let whose = of_session.as_ref().map_or(JournalScope::Everybody, JournalScope::Session);
    let paths = undo::undo(&builtins, &session, whose, &selection).await.map_err(|error| refusal(&error))?;
    let (paths, more) = names(&paths);
    Ok(UndoneFiles { paths, more, diff: None, unrecorded, notes })
}

fn refusal(error: &UndoError) -> ErrorObjectOwned {
    let kind = match error {
        UndoError::Nothing | UndoError::NothingOf(_) | UndoError::NotRecorded { .. } => "nothing_to_undo",
        UndoError::Changed { .. } | UndoError::InUse(_) => "changed_since",
        UndoError::NotKept { .. }
        | UndoError::Open(_)
        | UndoError::Replace(_)
        | UndoError::Read { .. }
        | UndoError::Begin(_)
        | UndoError::Refused { .. }
        | UndoError::HalfDone { .. } => "execution_failed",
    };
    refused(kind, &error.to_string())
}

fn names(paths: &[PathBuf]) -> (Vec<String>, u64) {
    fitting(paths.iter().map(|path| path.display().to_string()), MAX_PATHS)
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
