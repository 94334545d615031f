//! Looking at the source texts of a plugin for what other Lua hosts have and this one does not, and for members of `hygge`
//! and `ctx` that do not exist.

use mlua::chunk::Compiler;

use crate::api::script_context::LoadNotes;
use crate::plugin::PluginVersion;
use crate::plugin::content::{files_of, read_file};
use crate::vm::create::MAX_SOURCE;
use crate::vm::dialect::{self, Unsupported};
use crate::vm::members::{UnknownMember, unknown_members};

/// Every such place in every file, with its line: problems in files that do not compile, warnings in the others. Loading
/// stops at the first one, and does not reach functions that are not called.
pub(crate) fn check_sources(plugin: &PluginVersion) -> LoadNotes {
    let mut notes = LoadNotes::default();
    for path in files_of(&plugin.path).unwrap_or_default() {
        if path.extension().is_none_or(|ending| ending != "lua") {
            continue;
        }
        // Loading reports files that it cannot read.
        let Ok(source) = read_file(&path, MAX_SOURCE) else { continue };
        let shown = plugin.manifest.shown(&path);
        let adapted = dialect::adapt(&source, Default::default()).text;
        let syntax = match Compiler::new().compile(&*adapted) {
            Ok(_) => Vec::new(),
            Err(_) => dialect::unsupported_syntax(&adapted),
        };
        let missing = dialect::missing_functions(&source);
        let members = unknown_members(&source).into_iter().filter(UnknownMember::is_mistake);
        let members = members.map(|member| Unsupported { line: member.line, message: member.to_string() });
        let members: Vec<Unsupported> = members.collect();
        plugin.sources.add(&shown, &path, source.into());
        let explain =
            |Unsupported { line, message }| plugin.sources.explain_text(&format!("{shown}:{line}: {message}"), None);
        notes.problems.extend(syntax.into_iter().map(explain));
        notes.warnings.extend(missing.into_iter().chain(members).map(explain));
    }
    notes
}
