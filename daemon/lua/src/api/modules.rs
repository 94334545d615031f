//! `require`: modules of the plugin's own folder, and no others.

use std::io::Read;
use std::path::{Path, PathBuf};

use mlua::Function;
use toold_host::files;

use crate::api::ApiTable;
use crate::api::script_context::ScriptContext;
use crate::vm::create::{MAX_SOURCE, chunk};

pub(super) fn install(hygge: &ApiTable) -> mlua::Result<()> {
    let raw = hygge.apart()?;
    let find = raw.function("find", "require", |lua, args, context| {
        let name = args.text(1, "name")?;
        let (path, source) = find(context, &name)?;
        let shown = context.plugin.manifest.shown(&path);
        // A syntax error in the module has a position of its own.
        Ok(match chunk(lua, &source, &format!("@{shown}")) {
            Ok(chunk) => (Some(chunk), None),
            Err(message) => (None, Some(message)),
        })
    })?;
    let require: Function = hygge.prelude.table.raw_get::<Function>("require")?.call(find)?;
    hygge.lua.globals().raw_set("require", require)
}

type ModuleText = std::sync::Arc<[u8]>;

fn find(context: &ScriptContext, name: &str) -> Result<(PathBuf, ModuleText), String> {
    let plugin = &context.plugin;
    let folder = plugin.manifest.folder.as_deref().ok_or_else(|| {
        format!("require: no module '{name}': this plugin is a single file; only a plugin in a folder of its own has modules")
    })?;
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/');
    if name.is_empty() || name.len() > 200 || !name.chars().all(fits) || name.contains("..") || name.starts_with('/') {
        return Err(format!("require: {name:?} is not a valid module name"));
    }
    let real = folder.canonicalize().map_err(|error| format!("require: {}: {error}", folder.display()))?;
    let within = name.replace('.', "/");
    let mut tried = Vec::new();
    for base in ["", "lib/"] {
        for end in [".lua", "/init.lua"] {
            let relative = format!("{base}{within}{end}");
            let path = folder.join(&relative);
            match path.canonicalize() {
                // Links are followed as long as they stay inside the folder.
                Ok(target) if target.starts_with(&real) => return Ok((path.clone(), read(context, &path, &target)?)),
                Ok(_) => return Err(format!("require: module '{name}' lies outside of the plugin's folder")),
                Err(_) => tried.push(relative),
            }
        }
    }
    Err(format!("require: no module '{name}' in the plugin's folder (looked for {})", tried.join(", ")))
}

/// The text of a module as this version first read it, so that all Lua states of a version run the same.
///
/// `target` is where `path` led when it was checked: no other file is opened.
fn read(context: &ScriptContext, path: &Path, target: &Path) -> Result<ModuleText, String> {
    let sources = &context.plugin.sources;
    if let Some(source) = sources.text(path) {
        return Ok(source);
    }
    if context.plugin.sealed {
        return Err(format!("require: {} was not part of this plugin when it was trusted", path.display()));
    }
    let cannot = |why: &dyn std::fmt::Display| format!("require: can't read {}: {why}", path.display());
    let file = files::open(target).map_err(|error| cannot(&error))?;
    let mut source = Vec::new();
    file.take(MAX_SOURCE as u64 + 1).read_to_end(&mut source).map_err(|error| cannot(&error))?;
    if source.len() > MAX_SOURCE {
        return Err(format!("require: {} is longer than the limit of {MAX_SOURCE} bytes", path.display()));
    }
    let source: ModuleText = source.into();
    sources.add(&context.plugin.manifest.shown(path), path, source.clone());
    Ok(source)
}
