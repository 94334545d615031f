//! `hygge.fs`, which `io` and `os` go through too. Every path is resolved, then judged, then opened.

use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use globset::GlobBuilder;
use serde_json::{Value as Json, json};
use toold_engine::cache::depend::Stamp;
use toold_engine::cx::Cx;
use toold_host::exclude::Exclusions;
use toold_host::files;
use toold_host::stamps;

use super::{Asked, Module, Reply, Work};
use crate::call::Call;
use crate::plugin::Plugin;

/// A file over this is not read into a machine.
const MAX_READ: u64 = 16 << 20;
/// How many entries `list` and `glob` give at most.
const MAX_ENTRIES: usize = 10_000;

pub(super) fn offer(hygge: &Module) -> mlua::Result<()> {
    let fs = hygge.within("fs")?;
    fs.waiting("read", "hygge.fs.read", |asked| {
        to_read(asked, |path, notes| {
            notes.facts();
            let file = files::open(path).map_err(|error| error.to_string())?;
            let stamp = notes.before_reading(&file);
            let mut bytes = Vec::new();
            (&file).take(MAX_READ + 1).read_to_end(&mut bytes).map_err(|error| cannot("read", path, &error))?;
            notes.content(stamp, &bytes);
            if bytes.len() as u64 > MAX_READ {
                return Err(format!("{} is larger than {} MiB", path.display(), MAX_READ >> 20));
            }
            Ok(Reply::Bytes(bytes))
        })
    })?;
    fs.waiting("write", "hygge.fs.write", |asked| {
        let bytes = asked.args.bytes(2, "text")?;
        on_path(asked, 1, Access::Write, move |path| {
            let mut options = fs::OpenOptions::new();
            put(path, &bytes, options.write(true).create(true).truncate(true))
        })
    })?;
    fs.waiting("append", "hygge.fs.append", |asked| {
        let bytes = asked.args.bytes(2, "text")?;
        on_path(asked, 1, Access::Write, move |path| {
            put(path, &bytes, fs::OpenOptions::new().append(true).create(true))
        })
    })?;
    fs.waiting("list", "hygge.fs.list", |asked| {
        to_read(asked, |path, notes| {
            notes.unknown();
            let entries = fs::read_dir(path).map_err(|error| cannot("list", path, &error))?;
            let mut list: Vec<(String, &'static str)> = entries
                .flatten()
                .take(MAX_ENTRIES)
                .map(|entry| (entry.file_name().to_string_lossy().into_owned(), kind(entry.file_type().ok())))
                .collect();
            list.sort();
            Ok(Reply::Json(list.into_iter().map(|(name, kind)| json!({"name": name, "type": kind})).collect()))
        })
    })?;
    fs.waiting("stat", "hygge.fs.stat", |asked| {
        to_read(asked, |path, notes| {
            notes.facts();
            let Ok(facts) = fs::metadata(path) else { return Ok(Reply::Nil) };
            let since = facts.modified().ok().and_then(|at| at.duration_since(SystemTime::UNIX_EPOCH).ok());
            let mtime = since.unwrap_or_default().as_secs_f64();
            Ok(Reply::Json(json!({"type": kind(Some(facts.file_type())), "size": facts.len(), "mtime": mtime})))
        })
    })?;
    fs.waiting("exists", "hygge.fs.exists", |asked| {
        to_read(asked, |path, notes| {
            notes.facts();
            Ok(Reply::Json(path.exists().into()))
        })
    })?;
    fs.waiting("mkdir", "hygge.fs.mkdir", |asked| {
        on_path(asked, 1, Access::Write, |path| {
            fs::create_dir_all(path).map(|()| Reply::Nil).map_err(|error| cannot("make", path, &error))
        })
    })?;
    fs.waiting("remove", "hygge.fs.remove", |asked| {
        on_path(asked, 1, Access::Write, |path| {
            // Files, and folders that are empty: nothing here removes a tree.
            let removed = if path.is_dir() { fs::remove_dir(path) } else { fs::remove_file(path) };
            removed.map(|()| Reply::Nil).map_err(|error| cannot("remove", path, &error))
        })
    })?;
    fs.waiting("rename", "os.rename", |asked| {
        let to = Target::of(asked, 2, Access::Write)?;
        let from = Target::of(asked, 1, Access::Write)?;
        Ok(async move {
            let (from, to) = (from.judged().await?, to.judged().await?);
            blocking(move || {
                fs::rename(&from, &to).map(|()| Reply::Nil).map_err(|error| cannot("rename", &from, &error))
            })
            .await
        })
    })?;
    fs.waiting("glob", "hygge.fs.glob", |asked| {
        let pattern = asked.args.text(1, "pattern")?;
        let glob = GlobBuilder::new(&pattern).literal_separator(true).build();
        let glob = glob.map_err(|error| format!("hygge.fs.glob: {error}"))?.compile_matcher();
        let base = Target::at(asked, ".", Access::Read)?;
        base.notes().unknown();
        Ok(async move {
            let base = base.judged().await?;
            blocking(move || {
                let mut found = Vec::new();
                walk(&base, &base, &mut Exclusions::default(), &mut |within| {
                    if glob.is_match(within) {
                        found.push(within.to_string_lossy().into_owned());
                    }
                    found.len() < MAX_ENTRIES
                });
                found.sort();
                Ok(Reply::Json(found.into_iter().map(Json::String).collect()))
            })
            .await
        })
    })?;
    // `os.rename` only: it is not among the documented members.
    let rename: mlua::Function = fs.table.raw_get("rename")?;
    fs.table.raw_remove("rename")?;
    hygge.prelude.prelude.raw_set("rename", rename)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Access {
    Read,
    Write,
}

/// A path that a script names, and who judges it.
struct Target {
    path: PathBuf,
    access: Access,
    call: Arc<Call>,
    plugin: Arc<Plugin>,
    /// Absolute, before its links were followed.
    asked: PathBuf,
}

impl Target {
    fn of(asked: &Asked, place: usize, access: Access) -> Result<Self, String> {
        Self::at(asked, &asked.args.text(place, "path")?, access)
    }

    fn at(asked: &Asked, path: &str, access: Access) -> Result<Self, String> {
        let plugin = asked.home.plugin.clone();
        match access {
            Access::Read => plugin.requires("fs_read", |can| can.fs_read)?,
            Access::Write => plugin.requires("fs_write", |can| can.fs_write)?,
        }
        let call = asked.call.clone();
        // While it loads, a plugin knows no other folder than its own.
        let base = call.cx.as_ref().map_or_else(|| plugin.dir(), |cx| &cx.cwd);
        let asked = base.join(path);
        let path = files::resolve(path.as_ref(), base).map_err(|error| format!("{path}: {error}"))?;
        Ok(Self { path, access, call, plugin, asked })
    }

    fn notes(&self) -> Notes {
        let cx = self.call.cx.clone().filter(|cx| cx.wants_stamps());
        Notes { cx, path: self.asked.clone() }
    }

    /// The path, once the policy or a person has allowed it.
    async fn judged(self) -> Result<PathBuf, String> {
        let Self { path, access, call, plugin, asked: _ } = self;
        if access == Access::Read && plugin.owns(&path) {
            return Ok(path);
        }
        if call.cx.is_none() {
            let path = path.display();
            return Err(format!("{path}: while a plugin loads it reads its own folder only, and writes nothing"));
        }
        let need = {
            let path = path.clone();
            blocking(move || {
                let mut exclusions = Exclusions::default();
                Ok(match access {
                    Access::Read => files::read_need(&path, &mut exclusions),
                    Access::Write => files::write_need(&path, &mut exclusions),
                })
            })
            .await?
        };
        call.require(need).await.map_err(|error| error.to_string())?;
        Ok(path)
    }
}

/// What the result of the script's call depends on, for the cache of results.
struct Notes {
    /// `None` when nobody wants to know.
    cx: Option<Arc<Cx>>,
    path: PathBuf,
}

impl Notes {
    /// On no more than what the system tells of the path now. To be said before the system is asked.
    fn facts(&self) {
        let Some(cx) = &self.cx else { return };
        match stamps::of_facts(&self.path) {
            Some(stamp) => cx.depends_on(stamp),
            None => cx.do_not_keep(),
        }
    }

    fn before_reading(&self, file: &fs::File) -> Option<Stamp> {
        let cx = self.cx.as_ref()?;
        stamps::before_reading(&self.path, file).map_err(|_| cx.do_not_keep()).ok()
    }

    /// On the file of a stamp, which had this content.
    fn content(&self, stamp: Option<Stamp>, bytes: &[u8]) {
        if let (Some(cx), Some(stamp)) = (&self.cx, stamp) {
            cx.depends_on(stamps::with_content(stamp, bytes));
        }
    }

    /// On something that has no stamp.
    fn unknown(&self) {
        self.cx.iter().for_each(|cx| cx.do_not_keep());
    }
}

/// Judges the path in the first argument, then reads there on a blocking thread.
fn to_read(
    asked: &Asked,
    work: impl FnOnce(&Path, &Notes) -> Result<Reply, String> + Send + 'static,
) -> Result<Work, String> {
    let notes = Target::of(asked, 1, Access::Read)?.notes();
    on_path(asked, 1, Access::Read, move |path| work(path, &notes))
}

/// Judges the path in an argument, then works on it on a blocking thread.
fn on_path(
    asked: &Asked,
    place: usize,
    access: Access,
    work: impl FnOnce(&Path) -> Result<Reply, String> + Send + 'static,
) -> Result<Work, String> {
    let target = Target::of(asked, place, access)?;
    Ok(Box::pin(async move {
        let path = target.judged().await?;
        blocking(move || work(&path)).await
    }))
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T, String> + Send + 'static) -> Result<T, String> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => Err(error.to_string()),
    }
}

fn put(path: &Path, bytes: &[u8], options: &mut fs::OpenOptions) -> Result<Reply, String> {
    let written = options.open(path).and_then(|mut file| file.write_all(bytes));
    written.map(|()| Reply::Nil).map_err(|error| cannot("write", path, &error))
}

fn cannot(what: &str, path: &Path, error: &std::io::Error) -> String {
    format!("can't {what} {}: {error}", path.display())
}

fn kind(kind: Option<fs::FileType>) -> &'static str {
    match kind {
        Some(kind) if kind.is_dir() => "directory",
        Some(kind) if kind.is_file() => "file",
        Some(kind) if kind.is_symlink() => "link",
        Some(_) | None => "other",
    }
}

/// Files below a folder, without those that are kept from tools and what Git keeps for itself; links
/// to folders are not followed. `see` says whether to go on.
fn walk(base: &Path, folder: &Path, exclusions: &mut Exclusions, see: &mut impl FnMut(&Path) -> bool) -> bool {
    let Ok(entries) = fs::read_dir(folder) else { return true };
    for entry in entries.flatten() {
        let path = entry.path();
        let Ok(kind) = entry.file_type() else { continue };
        if entry.file_name() == ".git" || exclusions.reason(&path, kind.is_dir()).is_some() {
            continue;
        }
        let goes_on = match kind.is_dir() {
            true => walk(base, &path, exclusions, see),
            false => see(path.strip_prefix(base).unwrap_or(&path)),
        };
        if !goes_on {
            return false;
        }
    }
    true
}
