//! The permissions that a script says it needs.

use std::path::Path;

use mlua::{MultiValue, Value as LuaValue};
use toold_engine::need::Need;
use toold_engine::policy::targets::check_target;
use toold_host::files::{self, ResolvedPath};
use toold_host::read_access;
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
        return Ok(vec![need(&fields, call, plugin)?]);
    }
    let list = fields.table.sequence_values::<mlua::Table>();
    let needs = list.map(|table| {
        let table = table.map_err(|_| "permission: expected a table or a list of tables".to_owned())?;
        need(&Fields::new("permission", table), call, plugin)
    });
    needs.collect()
}

/// A need as a script writes it: `{category, target, reason}`.
pub(crate) fn need(fields: &Fields, call: &ScriptRun, plugin: &PluginVersion) -> Result<Need, String> {
    let named = fields.get("category")?;
    let category = text(&named).and_then(|text| Category::parse(&text)).ok_or_else(|| {
        let known: Vec<&str> = Category::ALL.iter().map(|category| category.as_str()).collect();
        fields.mistake("category", &format!("one of {}", known.join(", ")), &named)
    })?;
    let mut target = fields.text("target")?;
    if matches!(category, Category::FileRead | Category::FileWrite) {
        let found = files::resolve_for(target.as_ref(), &call.cx()?.cwd, &mut |place| may_know(call, plugin, place));
        let ResolvedPath { path, veil } = found.map_err(|error| fields.wrong("target", error))?;
        // The destination is checked when something accesses it.
        target = veil.unwrap_or(path).display().to_string();
    }
    check_target(category, &target).map_err(|error| fields.wrong("target", error))?;
    let need = Need::new(category, target);
    Ok(match fields.optional_text("reason")? {
        Some(reason) => need.because(reason),
        None => need,
    })
}

/// Whether a script may learn that there is a link at `place`.
pub(crate) fn may_know(call: &ScriptRun, plugin: &PluginVersion, place: &Path) -> bool {
    // A plugin knows its own location.
    let is_own = plugin.owns(place) || plugin.dir().starts_with(place) || plugin.real_dir().starts_with(place);
    is_own || call.authority().is_ok_and(|cx| read_access::may_see_link(place, cx, &call.chain))
}
