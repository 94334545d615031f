//! `require`: modules of the plugin's own folder, and no others.

use std::path::{Path, PathBuf};

use mlua::Function;

use crate::api::ApiTable;
use crate::api::script_context::ScriptContext;
use crate::plugin::PluginVersion;
use crate::vm::create::chunk;

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
    let within = name.replace('.', "/");
    let mut tried = Vec::new();
    for base in ["", "lib/"] {
        for end in [".lua", "/init.lua"] {
            let relative = format!("{base}{within}{end}");
            let path = folder.join(&relative);
            let source = match plugin.files.text(&path) {
                Ok(None) => through_links(plugin, folder, &path, name)?,
                found => found.map_err(|error| format!("require: can't read {}: {error}", path.display()))?,
            };
            match source {
                Some(source) => {
                    plugin.sources.add(&plugin.manifest.shown(&path), &path, source.clone());
                    return Ok((path, source));
                }
                None => tried.push(relative),
            }
        }
    }
    Err(format!("require: no module '{name}' in the plugin's folder (looked for {})", tried.join(", ")))
}

/// A module in a folder that is a link, as long as it leads to a file of this version.
fn through_links(plugin: &PluginVersion, folder: &Path, path: &Path, name: &str) -> Result<Option<ModuleText>, String> {
    let (Ok(target), Ok(real)) = (path.canonicalize(), folder.canonicalize()) else { return Ok(None) };
    let Ok(within) = target.strip_prefix(&real) else {
        return Err(format!("require: module '{name}' lies outside of the plugin's folder"));
    };
    match plugin.files.text(&folder.join(within)) {
        Ok(Some(text)) => Ok(Some(text)),
        Ok(None) => {
            Err(format!("require: {} is not part of this version of the plugin: it was added later", path.display()))
        }
        Err(error) => Err(format!("require: can't read {}: {error}", path.display())),
    }
}
