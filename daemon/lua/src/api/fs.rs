//! `hygge.fs`, which `io` and `os` use too. Every path is resolved, then checked, then opened, so that no answer
//! depends on something that the plugin may not read in its call.

use std::ffi::OsString;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use globset::GlobBuilder;
use mlua::Value;
use serde_json::{Value as Json, json};
use toold_engine::cx::Cx;
use toold_engine::decision::decide_need;
use toold_engine::dependencies::FileStamp;
use toold_host::exclude::Exclusions;
use toold_host::file_needs;
use toold_host::files::{self, FileType, OpenError, PathFacts, ResolvedPath};
use toold_host::read_access::ReadAccess;
use toold_host::stamps;
use toold_proto::permission::Verdict;

use crate::api::{ApiTable, HostCall, HostReply, HostWork};
use crate::plugin::PluginVersion;
use crate::plugin::needs::may_know;
use crate::vm::script_run::ScriptRun;

/// Larger files are not read into a Lua state.
const MAX_READ: u64 = 16 << 20;
/// Bytes that `read_at` reads if the script does not say.
const PIECE: f64 = 262_144.0;
/// How many entries `list` and `glob` return at most.
const MAX_ENTRIES: usize = 10_000;
/// How many entries of one folder `list` and `glob` look at.
const MAX_SEEN: usize = 1_000_000;

pub(super) fn install(hygge: &ApiTable) -> mlua::Result<()> {
    let fs = hygge.within("fs")?;
    fs.waiting("read", "hygge.fs.read", |host_call| {
        to_read(host_call, |path, cache_notes| {
            cache_notes.depends_on_facts();
            let file = files::open(path).map_err(|error| error.to_string())?;
            let stamp = cache_notes.before_reading(&file);
            let mut bytes = Vec::new();
            (&file).take(MAX_READ + 1).read_to_end(&mut bytes).map_err(|error| cannot("read", path, &error))?;
            cache_notes.content(stamp, &bytes);
            if bytes.len() as u64 > MAX_READ {
                return Err(format!(
                    "{} is larger than {} MiB: read it in pieces, with hygge.fs.lines, hygge.fs.open or hygge.fs.read_at",
                    path.display(),
                    MAX_READ >> 20
                ));
            }
            Ok(HostReply::Bytes(bytes))
        })
    })?;
    fs.waiting("read_at", "hygge.fs.read_at", |host_call| {
        let number = |place: usize, name: &str, default: f64| match host_call.args.value(place) {
            Value::Nil => Ok(default),
            Value::Integer(number) if *number >= 0 => Ok(*number as f64),
            Value::Number(number) if *number >= 0.0 => Ok(*number),
            _ => Err(host_call.args.mistake(place, name, "a number of bytes, from 0")),
        };
        let (offset, length) = (number(2, "offset", 0.0)? as u64, number(3, "length", PIECE)? as u64);
        if length > MAX_READ {
            return Err(format!("hygge.fs.read_at: a piece has at most {} MiB", MAX_READ >> 20));
        }
        to_read(host_call, move |path, cache_notes| {
            cache_notes.not_cacheable();
            let mut file = files::open(path).map_err(|error| error.to_string())?;
            let mut bytes = Vec::new();
            let read = file.seek(SeekFrom::Start(offset)).and_then(|_| file.take(length).read_to_end(&mut bytes));
            read.map_err(|error| cannot("read", path, &error))?;
            Ok(HostReply::Bytes(bytes))
        })
    })?;
    let pieces: mlua::Function = hygge.prelude.table.raw_get("file_pieces")?;
    let read_at: mlua::Function = fs.table.raw_get("read_at")?;
    let (open, lines): (mlua::Function, mlua::Function) = pieces.call(read_at)?;
    fs.table.raw_set("open", open)?;
    fs.table.raw_set("lines", lines)?;
    fs.waiting("write", "hygge.fs.write", |host_call| {
        let bytes = host_call.args.bytes(2, "text")?;
        on_path(host_call, 1, Access::Write, move |path| done("write", path, files::write(path, &bytes)))
    })?;
    fs.waiting("append", "hygge.fs.append", |host_call| {
        let bytes = host_call.args.bytes(2, "text")?;
        on_path(host_call, 1, Access::Write, move |path| done("write", path, files::append(path, &bytes)))
    })?;
    fs.waiting("list", "hygge.fs.list", |host_call| {
        let folder = FsTarget::of(host_call, 1, Access::Read)?;
        folder.cache_notes().not_cacheable();
        let (call, plugin) = (host_call.call.clone(), host_call.context.plugin.clone());
        Ok(async move {
            let folder = folder.checked().await?;
            blocking(move || list(&mut FolderView::new(&call, plugin, &folder), &folder)).await
        })
    })?;
    fs.waiting("stat", "hygge.fs.stat", |host_call| {
        to_read(host_call, |path, cache_notes| {
            cache_notes.depends_on_facts();
            let Some(facts) = known_facts(path)? else { return Ok(HostReply::Nil) };
            let mtime = facts.modified.as_secs_f64();
            // The size of a folder grows with the names in it, including those that may not be shown.
            let size = if facts.kind.is_dir() { 0 } else { facts.size };
            Ok(HostReply::Json(json!({"type": kind(facts.kind), "size": size, "mtime": mtime})))
        })
    })?;
    fs.waiting("exists", "hygge.fs.exists", |host_call| {
        to_read(host_call, |path, cache_notes| {
            cache_notes.depends_on_facts();
            Ok(HostReply::Json(known_facts(path)?.is_some().into()))
        })
    })?;
    fs.waiting("mkdir", "hygge.fs.mkdir", |host_call| {
        let folder = FsTarget::of(host_call, 1, Access::Write)?;
        let call = host_call.call.clone();
        Ok(async move {
            let folder = folder.checked().await?;
            refuse_above(&folder, &call).await?;
            blocking(move || done("make", &folder, files::make_folders(&folder).map(drop))).await
        })
    })?;
    fs.waiting("remove", "hygge.fs.remove", |host_call| {
        // Removes files and empty folders only, never a tree.
        on_path(host_call, 1, Access::Write, |path| done("remove", path, files::remove(path)))
    })?;
    fs.waiting("rename", "os.rename", |host_call| {
        let to = FsTarget::of(host_call, 2, Access::Write)?;
        let from = FsTarget::of(host_call, 1, Access::Move)?;
        Ok(async move {
            let (from, to) = (from.checked().await?, to.checked().await?);
            blocking(move || done("rename", &from, files::rename(&from, &to))).await
        })
    })?;
    fs.waiting("glob", "hygge.fs.glob", |host_call| {
        let pattern = host_call.args.text(1, "pattern")?;
        let glob = GlobBuilder::new(&pattern).literal_separator(true).build();
        let glob = glob.map_err(|error| format!("hygge.fs.glob: {error}"))?.compile_matcher();
        let base = FsTarget::at(host_call, ".", Access::Read)?;
        base.cache_notes().not_cacheable();
        let (call, plugin) = (host_call.call.clone(), host_call.context.plugin.clone());
        Ok(async move {
            let base = base.checked().await?;
            blocking(move || {
                let mut found = Vec::new();
                files::open_folder(&base).map_err(|error| refused("list", &base, error))?;
                walk(&base, &base, &mut FolderView::new(&call, plugin, &base), &mut |within| {
                    if glob.is_match(within) {
                        found.push(within.to_string_lossy().into_owned());
                    }
                    found.len() < MAX_ENTRIES
                });
                found.sort();
                Ok(HostReply::Json(found.into_iter().map(Json::String).collect()))
            })
            .await
        })
    })?;
    // For `os.rename` only: it is not a documented member.
    let rename: mlua::Function = fs.table.raw_get("rename")?;
    fs.table.raw_remove("rename")?;
    hygge.prelude.table.raw_set("rename", rename)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Access {
    Read,
    Write,
    /// Gives a file another name, under which it may be readable: needs both.
    Move,
}

/// A path that a script names, and the call that it is checked for.
struct FsTarget {
    path: PathBuf,
    /// See [`ResolvedPath::judged_as`].
    judged_as: Option<PathBuf>,
    access: Access,
    call: Arc<ScriptRun>,
    plugin: Arc<PluginVersion>,
    /// Absolute, before links were followed.
    host_call: PathBuf,
}

impl FsTarget {
    fn of(host_call: &HostCall, place: usize, access: Access) -> Result<Self, String> {
        Self::at(host_call, &host_call.args.text(place, "path")?, access)
    }

    fn at(host_call: &HostCall, path: &str, access: Access) -> Result<Self, String> {
        let plugin = host_call.context.plugin.clone();
        match access {
            Access::Read => plugin.requires("fs_read", |can| can.fs_read)?,
            Access::Write | Access::Move => plugin.requires("fs_write", |can| can.fs_write)?,
        }
        let call = host_call.call.clone();
        let base = call.authority().map_or_else(|_| plugin.real_dir(), |cx| &cx.cwd);
        let host_call = base.join(path);
        let found = files::resolve_for(path.as_ref(), base, &mut |place| may_know(&call, &plugin, place));
        let ResolvedPath { path, judged_as, .. } = found.map_err(|error| format!("{path}: {error}"))?;
        Ok(Self { path, judged_as, access, call, plugin, host_call })
    }

    fn cache_notes(&self) -> CacheNotes {
        let cx = self.call.cx.clone().filter(|cx| cx.wants_stamps());
        CacheNotes { cx, path: self.host_call.clone() }
    }

    /// The path, once the policy or the user has allowed it: first as it was named, if only that may be checked at
    /// first, and then as it resolves.
    async fn checked(self) -> Result<PathBuf, String> {
        let Self { path, judged_as, access, call, plugin, host_call: _ } = self;
        let is_open = |path: &Path| access == Access::Read && plugin.owns(path);
        for place in judged_as.into_iter().chain([path.clone()]) {
            if is_open(&place) {
                continue;
            }
            let needs = blocking(move || {
                let mut exclusions = Exclusions::default();
                Ok(match access {
                    Access::Read => vec![file_needs::read_need(&place, &mut exclusions)],
                    Access::Write => vec![file_needs::write_need(&place, &mut exclusions)],
                    Access::Move => {
                        vec![
                            file_needs::read_need(&place, &mut exclusions),
                            file_needs::write_need(&place, &mut exclusions),
                        ]
                    }
                })
            });
            for need in needs.await? {
                call.require(need).await.map_err(|error| error.to_string())?;
            }
        }
        Ok(path)
    }
}

/// Refuses to make a folder that may not be written on the way to one that may: for example the name of a secret, where
/// the answer would show whether a file of that name exists.
async fn refuse_above(folder: &Path, call: &ScriptRun) -> Result<(), String> {
    let folder = folder.to_owned();
    let needs = blocking(move || {
        let missing = folder.ancestors().skip(1).take_while(|above| !files::is_folder(above));
        let mut exclusions = Exclusions::default();
        Ok(missing.map(|above| file_needs::write_need(above, &mut exclusions)).collect::<Vec<_>>())
    });
    for need in needs.await? {
        if decide_need(call.authority()?, &call.chain, &need).verdict == Verdict::Deny {
            call.require(need).await.map_err(|error| error.to_string())?;
        }
    }
    Ok(())
}

/// The part of a folder that a script may see.
struct FolderView {
    plugin: Arc<PluginVersion>,
    /// `None` in a hook outside of calls: it sees the plugin's own files.
    judge: Option<ReadAccess>,
    exclusions: Exclusions,
}

impl FolderView {
    fn new(call: &ScriptRun, plugin: Arc<PluginVersion>, folder: &Path) -> Self {
        let judge = call.authority().ok().map(|cx| ReadAccess::new(cx, call.chain.clone(), folder.to_owned()));
        Self { plugin, judge, exclusions: Exclusions::of_walk() }
    }

    /// The entries of a folder that the script may read.
    fn entries(&mut self, folder: &Path) -> Result<impl Iterator<Item = (OsString, FileType)>, OpenError> {
        let found = files::list(folder, MAX_SEEN)?.into_iter();
        Ok(found.filter(|(name, kind)| {
            let path = folder.join(name);
            let judge = self.judge.as_ref();
            self.plugin.owns(&path)
                || judge.is_some_and(|judge| judge.may_read(&path, kind.is_dir(), &mut self.exclusions))
        }))
    }
}

/// Records what the result of the call depends on, for the result cache.
struct CacheNotes {
    /// `None` if the result is not cached.
    cx: Option<Arc<Cx>>,
    path: PathBuf,
}

impl CacheNotes {
    /// Depends only on what the system now reports about the path. To be called before the system is asked.
    fn depends_on_facts(&self) {
        let Some(cx) = &self.cx else { return };
        match stamps::of_facts(&self.path) {
            Some(stamp) => cx.depends_on(stamp),
            None => cx.do_not_keep(),
        }
    }

    fn before_reading(&self, file: &File) -> Option<FileStamp> {
        let cx = self.cx.as_ref()?;
        stamps::before_reading(&self.path, file).map_err(|_| cx.do_not_keep()).ok()
    }

    /// Depends on the file of a stamp, which had this content.
    fn content(&self, stamp: Option<FileStamp>, bytes: &[u8]) {
        if let (Some(cx), Some(stamp)) = (&self.cx, stamp) {
            cx.depends_on(stamps::with_content(stamp, bytes));
        }
    }

    /// Depends on something that has no stamp.
    fn not_cacheable(&self) {
        self.cx.iter().for_each(|cx| cx.do_not_keep());
    }
}

/// Checks the path in the first argument, then reads there on a blocking thread.
fn to_read(
    host_call: &HostCall,
    work: impl FnOnce(&Path, &CacheNotes) -> Result<HostReply, String> + Send + 'static,
) -> Result<HostWork, String> {
    let cache_notes = FsTarget::of(host_call, 1, Access::Read)?.cache_notes();
    on_path(host_call, 1, Access::Read, move |path| work(path, &cache_notes))
}

/// Checks the path in an argument, then works on it on a blocking thread.
fn on_path(
    host_call: &HostCall,
    place: usize,
    access: Access,
    work: impl FnOnce(&Path) -> Result<HostReply, String> + Send + 'static,
) -> Result<HostWork, String> {
    let target = FsTarget::of(host_call, place, access)?;
    Ok(Box::pin(async move {
        let path = target.checked().await?;
        blocking(move || work(&path)).await
    }))
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T, String> + Send + 'static) -> Result<T, String> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => Err(error.to_string()),
    }
}

fn done(what: &str, path: &Path, result: Result<(), OpenError>) -> Result<HostReply, String> {
    result.map(|()| HostReply::Nil).map_err(|error| refused(what, path, error))
}

/// The system's report about a path; `None` if nothing is there or it may not be seen.
fn known_facts(path: &Path) -> Result<Option<PathFacts>, String> {
    match files::facts(path) {
        Ok(facts) => Ok(facts),
        Err(OpenError::System { .. }) => Ok(None),
        Err(error) => Err(error.to_string()),
    }
}

fn refused(what: &str, path: &Path, error: OpenError) -> String {
    match error {
        OpenError::System { source, .. } => cannot(what, path, &source),
        error => error.to_string(),
    }
}

fn cannot(what: &str, path: &Path, error: &std::io::Error) -> String {
    format!("can't {what} {}: {error}", path.display())
}

fn kind(kind: FileType) -> &'static str {
    match kind {
        FileType::Directory => "directory",
        FileType::RegularFile => "file",
        FileType::Symlink => "link",
        _ => "other",
    }
}

fn list(sight: &mut FolderView, folder: &Path) -> Result<HostReply, String> {
    let entries = sight.entries(folder).map_err(|error| refused("list", folder, error))?;
    let mut list: Vec<(String, &'static str)> =
        entries.map(|(name, file)| (name.to_string_lossy().into_owned(), kind(file))).collect();
    list.sort();
    list.truncate(MAX_ENTRIES);
    Ok(HostReply::Json(list.into_iter().map(|(name, kind)| json!({"name": name, "type": kind})).collect()))
}

/// Walks the files below a folder that the script may read, without Git's own; links to folders are not followed. `see`
/// returns whether to continue.
fn walk(base: &Path, folder: &Path, sight: &mut FolderView, see: &mut impl FnMut(&Path) -> bool) -> bool {
    // A folder that cannot be opened, or became a link, counts as empty.
    let Ok(entries) = sight.entries(folder).map(Vec::from_iter) else { return true };
    for (name, kind) in entries {
        let path = folder.join(&name);
        if name == ".git" {
            continue;
        }
        let goes_on = match kind.is_dir() {
            true => walk(base, &path, sight, see),
            false => see(path.strip_prefix(base).unwrap_or(&path)),
        };
        if !goes_on {
            return false;
        }
    }
    true
}
