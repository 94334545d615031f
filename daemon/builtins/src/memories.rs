//! The memories of agents: Markdown files with a front matter, one per memory.
//!
//! The daemon stores the memories of a session and removes them with it. A project's memories are in its
//! `.toold/memories`, where people see, edit and commit them. Memories for all projects are in the user's
//! configuration. Any `.md` file in these folders is a memory. Nothing is cached; the disk is the only state.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Context, bail, ensure};
use serde::{Deserialize, Serialize};
use toold_engine::redact::redact;
use toold_engine::session::Session;
use toold_engine::time::rfc3339;
use toold_host::exclude::Exclusions;
use toold_host::files::{self, OpenError};
use toold_host::replace::{Expected, remove, replace};

use crate::front_matter::split;
use crate::toolkit::Toolkit;

/// The limit of one memory, in bytes.
pub(crate) const MAX_BYTES: usize = 8 * 1024;
/// Below a project.
const OF_PROJECT: &str = ".toold/memories";
/// In one folder.
const MAX_MEMORIES: usize = 500;
/// The length of the words in a file name.
const MAX_SLUG: usize = 40;

/// The scope of a memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum MemoryScope {
    /// This conversation.
    #[default]
    Session,
    /// All agents that work in this project.
    Project,
    /// All of this user's agents.
    Global,
}

#[derive(Clone, Debug, PartialEq)]
pub struct StoredMemory {
    /// The file name without its extension.
    pub id: String,
    pub scope: MemoryScope,
    pub file: PathBuf,
    pub content: String,
    /// RFC 3339. Without a date in the front matter, the file's modification time.
    pub created_at: String,
}

#[derive(Debug, Default, Deserialize)]
struct MemoryFrontMatter {
    created_at: Option<String>,
}

/// The folder of a scope; `None` if the daemon has none, and for the project of a session without one.
pub(crate) fn folder(toolkit: &Toolkit, session: &Session, scope: MemoryScope) -> Option<PathBuf> {
    match scope {
        MemoryScope::Session => Some(toolkit.session_folder(session)?.join("memories")),
        MemoryScope::Project => session.has_folder().then(|| session.project().join(OF_PROJECT)),
        MemoryScope::Global => toolkit.places.memories.clone(),
    }
}

/// The memories for a session: its own, its project's, the user's; oldest first in each scope. Skips files that cannot
/// be read. Blocks.
pub fn memories(toolkit: &Toolkit, session: &Session) -> Vec<StoredMemory> {
    let scopes = [MemoryScope::Session, MemoryScope::Project, MemoryScope::Global];
    scopes.into_iter().flat_map(|scope| of_scope(toolkit, session, scope)).collect()
}

fn of_scope(toolkit: &Toolkit, session: &Session, scope: MemoryScope) -> Vec<StoredMemory> {
    let Some(folder) = folder(toolkit, session, scope) else { return Vec::new() };
    if scope == MemoryScope::Project && !is_inside(&folder, session.project()) {
        return Vec::new();
    }
    let files = fs::read_dir(&folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut memories: Vec<StoredMemory> = files
        .filter(|file| file.extension().is_some_and(|ending| ending == "md"))
        .take(MAX_MEMORIES)
        .filter_map(|file| load(&folder, file, scope))
        .collect();
    memories.sort_by(|a, b| (&a.created_at, &a.id).cmp(&(&b.created_at, &b.id)));
    memories
}

/// The ids of a project's memories or, without a project, of those for all projects; sorted. Empty if the project's
/// folder is a link that leads outside. Blocks.
pub fn ids(toolkit: &Toolkit, project: Option<&Path>) -> Vec<String> {
    let folder = match project {
        Some(project) => Some(project.join(OF_PROJECT)).filter(|folder| is_inside(folder, project)),
        None => toolkit.places.memories.clone(),
    };
    let entries = folder.and_then(|folder| fs::read_dir(folder).ok()).into_iter().flatten().flatten();
    let files = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file())).map(|entry| entry.path());
    let memories = files.filter(|file| file.extension().is_some_and(|ending| ending == "md")).take(MAX_MEMORIES);
    let mut ids: Vec<String> = memories.filter_map(|file| Some(file.file_stem()?.to_str()?.to_owned())).collect();
    ids.sort();
    ids
}

/// The text of a memory, for a caller that may read no other file. `None` if it does not exist, is excluded from tools,
/// or is outside the project that it should belong to. Blocks.
pub(crate) fn shown(toolkit: &Toolkit, session: &Session, scope: MemoryScope, id: &str) -> Option<String> {
    let folder = folder(toolkit, session, scope)?;
    let memory = load(&folder, folder.join(format!("{id}.md")), scope)?;
    let is_kept_away = Exclusions::default().reason(&memory.file, false).is_some();
    let is_elsewhere = scope == MemoryScope::Project && !is_inside(&memory.file, session.project());
    (!is_kept_away && !is_elsewhere).then_some(memory.content)
}

fn is_inside(path: &Path, project: &Path) -> bool {
    let real = path.canonicalize().and_then(|path| Ok((path, project.canonicalize()?)));
    real.is_ok_and(|(path, project)| path.starts_with(project))
}

fn load(folder: &Path, file: PathBuf, scope: MemoryScope) -> Option<StoredMemory> {
    let id = file.file_stem()?.to_str()?.to_owned();
    let resolved = files::resolve(&file, Path::new("/")).ok()?;
    // A link must not expose other files.
    let folder = files::resolve(folder, Path::new("/")).ok()?;
    (resolved.parent() == Some(&folder)).then_some(())?;
    let mut opened = files::open(&resolved).ok()?;
    let changed = opened.metadata().and_then(|metadata| metadata.modified()).unwrap_or(SystemTime::UNIX_EPOCH);
    let text = String::from_utf8(files::read_opened(&mut opened, &resolved, 4 * MAX_BYTES as u64).ok()?).ok()?;
    let split = split::<MemoryFrontMatter>(&text).ok()?;
    let created_at = split.front.created_at.unwrap_or_else(|| rfc3339(changed));
    Some(StoredMemory { id, scope, file: resolved, content: split.body.trim().to_owned(), created_at })
}

/// A new memory: its place and its content.
pub(crate) struct PlannedMemory {
    pub(crate) id: String,
    pub(crate) file: PathBuf,
    pub(crate) text: String,
}

/// # Errors
/// An empty or too long text, or one that looks like a secret.
pub(crate) fn plan(
    toolkit: &Toolkit,
    session: &Session,
    content: &str,
    scope: MemoryScope,
) -> anyhow::Result<PlannedMemory> {
    let content = content.trim();
    ensure!(!content.is_empty(), "the memory is empty");
    ensure!(content.len() <= MAX_BYTES, "{} bytes are too many for one memory: at most {MAX_BYTES}", content.len());
    ensure!(
        redact(content) == content,
        "this looks like a secret, and memories are read by every agent: remember where it is kept, not what it is"
    );
    let folder = folder(toolkit, session, scope).context("there is no place for memories of this scope")?;
    let folder = files::resolve(&folder, Path::new("/"))?;
    // The same text gets the same id.
    let id = format!("{}-{}", slug(content), &blake3::hash(content.as_bytes()).to_hex()[..8]);
    let text = format!("---\ncreated_at: {}\n---\n{content}\n", rfc3339(SystemTime::now()));
    Ok(PlannedMemory { file: folder.join(format!("{id}.md")), id, text })
}

/// The first words, as a file name.
fn slug(content: &str) -> String {
    let mut slug = String::new();
    for word in content.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()) {
        if slug.len() + word.len() > MAX_SLUG {
            break;
        }
        if !slug.is_empty() {
            slug.push('-');
        }
        slug.push_str(&word.to_ascii_lowercase());
    }
    if slug.is_empty() { "memory".to_owned() } else { slug }
}

/// Writes a memory; false if it already exists. Blocks.
pub(crate) fn keep(plan: &PlannedMemory) -> anyhow::Result<bool> {
    let folder = plan.file.parent().context("a memory lies in a folder")?;
    let there = fs::read_dir(folder).into_iter().flatten().count();
    if plan.file.exists() {
        return Ok(false);
    }
    ensure!(there < MAX_MEMORIES, "there are {there} memories already: forget some first");
    replace(&plan.file, plan.text.as_bytes(), Expected::Absent)?;
    Ok(true)
}

/// Finds the memory with this id, nearest scope first. Blocks.
///
/// # Errors
/// When there is none. The message lists the existing ids.
pub(crate) fn find(toolkit: &Toolkit, session: &Session, id: &str) -> anyhow::Result<StoredMemory> {
    let memories = memories(toolkit, session);
    if let Some(memory) = memories.iter().find(|memory| memory.id == id) {
        return Ok(memory.clone());
    }
    let known: Vec<&str> = memories.iter().map(|memory| memory.id.as_str()).take(50).collect();
    match known.is_empty() {
        true => bail!("there is no memory {id}, and no other"),
        false => bail!("there is no memory {id}; there are: {}", known.join(", ")),
    }
}

/// Removes a memory's file. Blocks.
pub(crate) fn drop_file(memory: &StoredMemory) -> anyhow::Result<()> {
    let file: File = match files::open(&memory.file) {
        Ok(file) => file,
        Err(OpenError::NotFound(_)) => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    Ok(remove(&memory.file, &file)?)
}

/// Removes the data of sessions that was not touched for `age`, if `may_remove` allows it for one more of that many. Blocks.
pub fn clean(sessions: &Path, age: std::time::Duration, may_remove: &mut dyn FnMut(u64) -> bool) {
    let oldest = SystemTime::now().checked_sub(age).unwrap_or(SystemTime::UNIX_EPOCH);
    let entries: Vec<fs::DirEntry> = fs::read_dir(sessions).into_iter().flatten().flatten().collect();
    let all = entries.len() as u64;
    for entry in entries {
        let changed = entry.metadata().and_then(|metadata| metadata.modified());
        if changed.is_ok_and(|changed| changed < oldest) && may_remove(all) {
            // A file that cannot be removed is tried again at the next start.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Removes a session's memories and its to-do list. Blocks.
pub fn forget_session(toolkit: &Toolkit, session: &toold_proto::tool::SessionId) -> io::Result<()> {
    let Some(folder) = toolkit.folder_of(session) else { return Ok(()) };
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
