//! Options of `rustc` whose values name files and programs: its own, and those that `cargo rustc` and `cargo clippy` hand on.

use super::known::find;
use super::options::{Parsed, parse};
use super::{FileAccess, FileUse, Reading};
use crate::shell_grammar::arg::Arg;

/// Settings of `-C` that name neither a program nor a file.
const SETTINGS: &[&str] = &[
    "codegen-units",
    "debug-assertions",
    "debuginfo",
    "embed-bitcode",
    "force-frame-pointers",
    "inline-threshold",
    "lto",
    "metadata",
    "opt-level",
    "overflow-checks",
    "panic",
    "prefer-dynamic",
    "relocation-model",
    "rpath",
    "split-debuginfo",
    "strip",
    "symbol-mangling-version",
    "target-cpu",
    "target-feature",
];

pub(super) fn read(words: &[Arg]) -> Option<Reading> {
    let mut parsed = parse(find("rustc")?, words);
    add_values(&mut parsed);
    Some(parsed.into_reading())
}

/// `--emit=dep-info=FILE,link` and `--print=cfg=FILE` write, and `-C linker=PROGRAM` runs.
pub(super) fn add_values(parsed: &mut Parsed) {
    let doubt = |parsed: &mut Parsed, why: String| {
        parsed.reading.hides_file = true;
        parsed.reading.doubt(why);
    };
    for value in parsed.values(&["--emit", "--print"]).cloned().collect::<Vec<_>>() {
        match value.literal() {
            None => doubt(parsed, format!("the files that {} names are unknown", value.raw)),
            Some(text) => {
                let files = text.split(',').filter_map(|part| part.split_once('=')).map(|(_, file)| Arg::text(file));
                let written = files.map(|file| FileUse { is_operand: false, ..FileUse::new(FileAccess::Write, file) });
                parsed.reading.files.extend(written);
            }
        }
    }
    for value in parsed.values(&["-C", "--codegen"]).cloned().collect::<Vec<_>>() {
        let name = value.literal().map(|text| text.split('=').next().unwrap_or_default().replace('_', "-"));
        if !name.is_some_and(|name| SETTINGS.contains(&name.as_str())) {
            doubt(parsed, format!("-C {} may name a program or a file", value.raw));
        }
    }
    if let Some(file) = parsed.operands.iter().find(|word| word.start().starts_with('@')).cloned() {
        doubt(parsed, format!("{} stands for other options", file.raw));
    }
}
