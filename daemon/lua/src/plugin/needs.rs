//! The permissions that a script says it needs.

use std::path::Path;

use mlua::{MultiValue, Value as LuaValue};
use toold_engine::need::Need;
use toold_engine::policy::targets::check_target;
use toold_host::environment::Environment;
use toold_host::files::{self, ResolvedPath};
use toold_host::read_access;
use toold_host::shell_grammar::{self, Surroundings};
use toold_proto::shell_word::quoted;
use toold_proto::tool::Category;

use crate::plugin::PluginVersion;
use crate::vm::args::{Args, Fields, text};
use crate::vm::script_run::ScriptRun;

/// One need, a list of needs, or nothing.
pub(crate) fn read_needs(values: MultiValue, call: &ScriptRun, plugin: &PluginVersion) -> Result<Vec<Need>, String> {
    let args = Args::new("permission", values);
    if matches!(args.value(1), LuaValue::Nil | LuaValue::Boolean(false)) {
        return Ok(Vec::new());
    }
    let fields = args.fields(1, "result")?;
    if fields.table.raw_len() == 0 {
        return written_needs(&fields, call, plugin);
    }
    let mut needs = Vec::new();
    for table in fields.table.sequence_values::<mlua::Table>() {
        let table = table.map_err(|_| "permission: expected a table or a list of tables".to_owned())?;
        needs.extend(written_needs(&Fields::new("permission", table), call, plugin)?);
    }
    Ok(needs)
}

/// The needs that a script writes as `{category, target, reason}`: one, or those of a command line.
pub(crate) fn written_needs(fields: &Fields, call: &ScriptRun, plugin: &PluginVersion) -> Result<Vec<Need>, String> {
    let named = fields.get("category")?;
    let category = text(&named).and_then(|text| Category::parse(&text)).ok_or_else(|| {
        let known: Vec<&str> = Category::ALL.iter().map(|category| category.as_str()).collect();
        fields.mistake("category", &format!("one of {}", known.join(", ")), &named)
    })?;
    let mut target = match fields.get("target")? {
        LuaValue::Table(words) if category == Category::Shell => {
            let words: Vec<LuaValue> = words.sequence_values().collect::<mlua::Result<_>>().unwrap_or_default();
            let words: Option<Vec<String>> = words.iter().map(|word| text(word).map(|word| quoted(&word))).collect();
            words.ok_or_else(|| fields.wrong("target", "expected a list of strings"))?.join(" ")
        }
        _ => fields.text("target")?,
    };
    let cx = call.cx()?;
    if matches!(category, Category::FileRead | Category::FileWrite) {
        let found = files::resolve_for(target.as_ref(), &cx.cwd, &mut |place| may_know(call, plugin, place));
        let ResolvedPath { path, judged_as, .. } = found.map_err(|error| fields.wrong("target", error))?;
        // The destination is checked when something accesses it.
        target = judged_as.unwrap_or(path).display().to_string();
    }
    check_target(category, &target).map_err(|error| fields.wrong("target", error))?;
    let mut needs = match category {
        Category::Shell => {
            let environment = plugin.shared.environment.clone().with(&cx.session.env);
            let dir = match fields.optional_text("dir")? {
                Some(dir) => {
                    let found = files::resolve_for(dir.as_ref(), &cx.cwd, &mut |place| may_know(call, plugin, place));
                    found.map_err(|error| fields.wrong("dir", error))?.path
                }
                None => cx.cwd.clone(),
            };
            command_needs(&target, &dir, &environment, call, plugin)?
        }
        Category::FileRead
        | Category::FileWrite
        | Category::Network
        | Category::Mcp
        | Category::Agent
        | Category::Plugin => vec![Need::new(category, target)],
    };
    if let Some(reason) = fields.optional_text("reason")? {
        for need in &mut needs {
            need.reason = Some(match need.reason.take() {
                Some(sandboxed) => format!("{reason} {sandboxed}"),
                None => reason.clone(),
            });
        }
    }
    Ok(needs)
}

/// The permissions that running this line of the shell needs. Declared in advance they are the same as when
/// `hygge.exec` runs the program, so that one answer serves for both.
///
/// # Errors
/// The script runs outside of any call.
pub(crate) fn command_needs(
    line: &str,
    cwd: &Path,
    environment: &Environment,
    call: &ScriptRun,
    plugin: &PluginVersion,
) -> Result<Vec<Need>, String> {
    let session = &call.authority()?.session;
    let (project, folders, sandbox) = (session.project(), session.places(), &plugin.shared.sandbox);
    let rules = sandbox.rules_in(project);
    let confined = rules.describe();
    let mut is_known = |place: &Path| may_know(call, plugin, place);
    let mut surroundings = Surroundings { cwd, folders: &folders, environment, may_read: &mut is_known };
    let mut needs = shell_grammar::needs(line, &mut surroundings);
    needs.retain(|need| {
        need.category() != Category::FileRead || need.forbidden.is_some() || !plugin.owns(Path::new(&need.target))
    });
    for need in &mut needs {
        if need.command_naming_it().is_some() {
            need.set_harmless(confined.is_some() && rules.eases());
        }
        if let Some(confined) = &confined
            && let Some(command) = need.command_mut()
        {
            command.harmless = rules.eases();
            command.hides_file = false;
            need.reason = Some(format!("[sandbox: {confined}]"));
        }
        need.set_harmless(need.is_harmless() && !sandbox.eases_no_more(project));
    }
    Ok(needs)
}

/// Whether a script may learn that there is a link at `place`.
pub(crate) fn may_know(call: &ScriptRun, plugin: &PluginVersion, place: &Path) -> bool {
    // A plugin knows its own location.
    let is_own = plugin.owns(place) || plugin.dir().starts_with(place) || plugin.real_dir().starts_with(place);
    is_own || call.authority().is_ok_and(|cx| read_access::may_see_link(place, cx, &call.chain))
}
