//! Which lines of a plugin its tests ran.

use std::collections::BTreeMap;
use std::path::PathBuf;

use mlua::Lua;

use crate::plugin::PluginVersion;
use crate::vm::line_hits::line_hits;

/// The lines of a plugin's files, those that its tests loaded.
#[derive(Clone, Debug, Default)]
pub struct TestCoverage {
    /// By the file's name in messages.
    pub files: BTreeMap<String, FileCoverage>,
}

#[derive(Clone, Debug, Default)]
pub struct FileCoverage {
    pub path: PathBuf,
    /// How often each line ran, of those that have code.
    pub lines: BTreeMap<u32, u64>,
}

impl TestCoverage {
    /// Adds what ran in a Lua state.
    pub(crate) fn add(&mut self, lua: &Lua, plugin: &PluginVersion) {
        for (shown, lines) in line_hits(lua) {
            let path = plugin.sources.path(&shown).unwrap_or_default();
            let file = self.files.entry(shown).or_insert_with(|| FileCoverage { path, ..FileCoverage::default() });
            for (line, hits) in lines {
                *file.lines.entry(line).or_default() += hits;
            }
        }
    }

    /// As an lcov tracefile, which editors and services read.
    pub fn to_lcov(&self) -> String {
        let mut text = String::new();
        for file in self.files.values() {
            text += &format!("TN:\nSF:{}\n", file.path.display());
            for (line, hits) in &file.lines {
                text += &format!("DA:{line},{hits}\n");
            }
            text += &format!("LF:{}\nLH:{}\nend_of_record\n", file.lines.len(), file.covered());
        }
        text
    }
}

impl FileCoverage {
    /// How many lines ran.
    pub fn covered(&self) -> usize {
        self.lines.values().filter(|hits| **hits > 0).count()
    }

    /// The lines that did not run, as ranges from the first to the last one. Lines without code between two of them
    /// belong to a range.
    pub fn uncovered(&self) -> Vec<(u32, u32)> {
        let mut ranges: Vec<(u32, u32)> = Vec::new();
        let mut continues = false;
        for (line, hits) in &self.lines {
            match ranges.last_mut().filter(|_| continues && *hits == 0) {
                Some(range) => range.1 = *line,
                None if *hits == 0 => ranges.push((*line, *line)),
                None => {}
            }
            continues = *hits == 0;
        }
        ranges
    }
}
