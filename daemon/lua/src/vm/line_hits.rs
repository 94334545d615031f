//! How often the lines of a plugin's files ran, for the coverage of its tests.

use std::collections::BTreeMap;

use mlua::chunk::Compiler;
use mlua::{Function, Lua};

/// The compiled files of a Lua state that counts.
#[derive(Default)]
struct CountedFiles(Vec<(String, Function)>);

/// How often each line ran, of those that have code.
pub(crate) type LineHits = BTreeMap<u32, u64>;

/// Makes a Lua state count, in every file that is compiled from now on.
pub(crate) fn start_counting(lua: &Lua) {
    lua.set_compiler(Compiler::new().set_coverage_level(1));
    lua.set_app_data(CountedFiles::default());
}

/// Adds a compiled file, in a Lua state that counts. `shown` is its name in messages.
pub(crate) fn count_lines(lua: &Lua, shown: &str, file: &Function) {
    if let Some(mut files) = lua.app_data_mut::<CountedFiles>() {
        files.0.push((shown.to_owned(), file.clone()));
    }
}

/// The counts of the files so far, by their names in messages.
pub(crate) fn line_hits(lua: &Lua) -> BTreeMap<String, LineHits> {
    let mut files = BTreeMap::<String, LineHits>::new();
    let Some(counted) = lua.app_data_ref::<CountedFiles>() else { return files };
    for (shown, file) in &counted.0 {
        let lines = files.entry(shown.clone()).or_default();
        file.coverage(|function| {
            for (line, hits) in (0..).zip(function.hits) {
                // A line without code in this function is negative.
                if let Ok(hits) = u64::try_from(hits) {
                    let known = lines.entry(line).or_default();
                    *known = hits.max(*known);
                }
            }
        });
    }
    files
}
