//! Loading other files of the plugin: `require`, `dofile`, `loadfile`, `package`; and `arg`.
//!
//! They are written in Lua, in `package.lua`. Here is the one place that reads a file for them.

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use mlua::{Function, Value};

use crate::api::ApiTable;
use crate::plugin::PluginVersion;
use crate::vm::create::chunk;
use crate::vm::line_hits::count_lines;

pub(super) fn install(hygge: &ApiTable) -> mlua::Result<()> {
    let plugin = hygge.context.plugin.clone();
    let host = hygge.apart()?;
    host.function("file", "file", |lua, args, context| {
        let name = args.text(1, "path")?;
        let (path, text) = match find(&context.plugin, &name) {
            Ok(found) => found,
            Err(NotFound { why, goes_on }) => return Ok((None, Some(why), goes_on)),
        };
        let shown = context.plugin.manifest.shown(&path);
        // A syntax error in the file has a position of its own.
        Ok(match chunk(lua, &text, &format!("@{shown}")) {
            Ok(chunk) => {
                count_lines(lua, &shown, &chunk);
                (Some(chunk), None, false)
            }
            Err(message) => (None, Some(message), false),
        })
    })?;
    host.table.raw_set("level", hygge.prelude.table.raw_get::<Value>("level")?)?;
    let source = include_str!("package.lua");
    plugin.shared.host_chunks.package(hygge.lua, source).call::<()>((&host.table, search_path(&plugin)))?;
    let arg = hygge.lua.create_table()?;
    arg.raw_set(0, plugin.manifest.entry.display().to_string())?;
    hygge.lua.globals().raw_set("arg", arg)?;
    let name_sources: Function = hygge.prelude.table.raw_get("name_sources")?;
    let path_of = hygge.lua.create_function(move |_, shown: String| {
        Ok(plugin.sources.path(&shown).map(|path| path.display().to_string()))
    })?;
    name_sources.call(path_of)
}

/// Where `require` looks at first: the plugin's folder and its `lib`. A single file has no modules.
fn search_path(plugin: &PluginVersion) -> String {
    let folder = plugin.dir().display();
    let places = ["?.lua", "?/init.lua", "lib/?.lua", "lib/?/init.lua"];
    let places = if plugin.manifest.folder.is_some() { &places[..] } else { &places[..1] };
    places.iter().map(|end| format!("{folder}/{end}")).collect::<Vec<_>>().join(";")
}

/// Why a file cannot be loaded.
struct NotFound {
    why: String,
    /// It is not there, or not the plugin's: `require` looks further.
    goes_on: bool,
}

impl NotFound {
    fn unreadable(path: &Path, error: &std::io::Error) -> Self {
        Self { why: format!("can't read {}: {error}", path.display()), goes_on: false }
    }
}

type ModuleText = Arc<[u8]>;

/// The path of a file, as the plugin's files are listed, and its text in this version of the plugin.
fn find(plugin: &PluginVersion, name: &str) -> Result<(PathBuf, ModuleText), NotFound> {
    let Some(path) = within(plugin, name) else {
        let why = match &plugin.manifest.folder {
            Some(_) => "is outside of the plugin's folder, and only files in it are loaded",
            None => "is not this plugin's: it is a single file, and only a plugin in a folder of its own has modules",
        };
        return Err(NotFound { why: format!("{name} {why}"), goes_on: true });
    };
    let text = match plugin.files.text(&path) {
        Ok(Some(text)) => text,
        Ok(None) => through_links(plugin, &path)?,
        Err(error) => return Err(NotFound::unreadable(&path, &error)),
    };
    plugin.sources.add(&plugin.manifest.shown(&path), &path, text.clone());
    Ok((path, text))
}

/// A file in a folder that is a link, as long as it leads to a file of this version.
fn through_links(plugin: &PluginVersion, path: &Path) -> Result<ModuleText, NotFound> {
    let shown = plugin.manifest.shown(path);
    let further = |why: &str| NotFound { why: format!("{shown} {why}"), goes_on: true };
    let (Ok(target), Ok(real)) = (path.canonicalize(), plugin.dir().canonicalize()) else {
        return Err(NotFound { why: format!("no file {shown}"), goes_on: true });
    };
    let within = target.strip_prefix(&real).map_err(|_| further("lies outside of the plugin's folder"))?;
    match plugin.files.text(&plugin.dir().join(within)) {
        Ok(Some(text)) => Ok(text),
        Ok(None) => {
            Err(NotFound { goes_on: false, ..further("is not part of this version of the plugin: it was added later") })
        }
        Err(error) => Err(NotFound::unreadable(path, &error)),
    }
}

/// The path within the plugin's folder that a script means; `None` if it leads out. Relative paths are relative to the
/// folder.
fn within(plugin: &PluginVersion, name: &str) -> Option<PathBuf> {
    let mut path = PathBuf::new();
    for part in plugin.dir().join(name).components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                path.pop();
            }
            other => path.push(other),
        }
    }
    if plugin.owns(&path) {
        return Some(path);
    }
    let real = plugin.dir().canonicalize().ok()?;
    let path = plugin.dir().join(path.strip_prefix(real).ok()?);
    plugin.owns(&path).then_some(path)
}
