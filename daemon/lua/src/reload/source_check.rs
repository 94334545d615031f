//! Looking at the source texts of a plugin for what other Lua hosts have and this one does not, and for members of `hygge`
//! and `ctx` that do not exist.

use std::collections::BTreeSet;
use std::path::PathBuf;

use mlua::chunk::Compiler;
use toold_proto::nearest::nearest;

use crate::api::script_context::LoadNotes;
use crate::plugin::PluginVersion;
use crate::plugin::content::{files_of, read_file};
use crate::vm::create::MAX_SOURCE;
use crate::vm::dialect::{self, Unsupported};
use crate::vm::globals::{needed, set_names, undefined};
use crate::vm::members::{UnknownMember, unknown_members};

/// Every such place in every file, with its line: problems in files that do not compile, and members, globals and
/// capabilities that are missing; warnings in the others. Loading stops at the first one, and does not reach functions that
/// are not called. Descriptions for language servers, which begin with `---@meta`, are not looked at: nothing runs them.
pub(crate) fn check_sources(plugin: &PluginVersion) -> LoadNotes {
    let mut notes = LoadNotes::default();
    let files: Vec<PathBuf> = files_of(&plugin.path).unwrap_or_default();
    let mut set = BTreeSet::new();
    for path in files.iter().filter(|path| path.extension().is_some_and(|ending| ending == "lua")) {
        set.extend(read_file(path, MAX_SOURCE).map(|source| set_names(&source)).unwrap_or_default());
    }
    for path in files {
        if path.extension().is_none_or(|ending| ending != "lua") {
            continue;
        }
        // Loading reports files that it cannot read.
        let Ok(source) = read_file(&path, MAX_SOURCE) else { continue };
        if source.starts_with(b"---@meta") {
            continue;
        }
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
        let is_test = path.to_string_lossy().ends_with("_test.lua");
        let at = |line: u32, message: String| Unsupported { line, message };
        let unset = undefined(&source, &set, is_test).into_iter();
        let unset = unset.map(|(line, name)| at(line, unset_words(&name, &set)));
        let unset: Vec<Unsupported> = unset.collect();
        let undeclared = if is_test { Vec::new() } else { undeclared(plugin, &source) };
        let undeclared: Vec<Unsupported> = undeclared.into_iter().map(|(line, words)| at(line, words)).collect();
        plugin.sources.add(&shown, &path, source.into());
        let explain =
            |Unsupported { line, message }| plugin.sources.explain_text(&format!("{shown}:{line}: {message}"), None);
        notes.problems.extend(syntax.into_iter().chain(members).chain(unset).chain(undeclared).map(explain));
        notes.warnings.extend(missing.into_iter().map(explain));
    }
    notes
}

fn unset_words(name: &str, set: &BTreeSet<String>) -> String {
    let meant = nearest(name, set.iter().map(String::as_str));
    let meant = meant.map(|meant| format!("; {meant} was meant")).unwrap_or_default();
    format!("nothing sets the global {name}{meant}")
}

/// The capabilities that the text needs and the manifest does not declare, each at its first line.
fn undeclared(plugin: &PluginVersion, source: &[u8]) -> Vec<(u32, String)> {
    let Some(declared) = &plugin.manifest.capabilities else { return Vec::new() };
    let declared = declared.names();
    let mut seen = BTreeSet::new();
    let missing =
        needed(source).into_iter().filter(|(_, capability, _)| !declared.iter().any(|name| name == capability));
    let missing = missing.filter(|(_, capability, _)| seen.insert(*capability));
    let words = |(line, capability, member): (u32, &str, String)| {
        (
            line,
            format!(
                "{member} needs the capability {capability}: add {capability} = true to [capabilities] in plugin.toml"
            ),
        )
    };
    missing.map(words).collect()
}
