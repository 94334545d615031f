//! The fuzzers' corpora, replayed: what one of them ever found stays found.

use std::path::Path;

type Target = fn(&[u8]);

/// Each fuzz target with the function that it calls.
const TARGETS: &[(&str, Target)] = &[
    ("shell_line", toold_host::shell_grammar::fuzz_one),
    ("pattern", toold_engine::policy::fuzz_one),
    ("config", toold::config::fuzz::fuzz_user),
    ("project_config", toold::config::fuzz::fuzz_project),
    ("model_text", toold_adapters::fuzz_one),
];

fn fuzz_dir() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz"))
}

fn names(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).unwrap_or_else(|error| panic!("{}: {error}", dir.display()));
    let mut names: Vec<String> = entries.map(|e| e.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn every_kept_input_still_passes() {
    for (target, run) in TARGETS {
        let corpus = fuzz_dir().join("corpus").join(target);
        let inputs = names(&corpus);
        assert!(inputs.len() >= 5, "{target} has no corpus");
        for input in inputs {
            // A panic names no file by itself.
            println!("{target}/{input}");
            run(&std::fs::read(corpus.join(input)).unwrap());
        }
    }
}

#[test]
fn every_target_calls_the_function_that_is_replayed() {
    let files: Vec<String> = TARGETS.iter().map(|(target, _)| format!("{target}.rs")).collect();
    let mut expected = files.clone();
    expected.sort();
    assert_eq!(names(&fuzz_dir().join("fuzz_targets")), expected);
    let manifest = std::fs::read_to_string(fuzz_dir().join("Cargo.toml")).unwrap();
    for (target, file) in TARGETS.iter().map(|(target, _)| target).zip(&files) {
        assert!(manifest.contains(&format!("name = \"{target}\"")), "{target} is in no manifest");
        let source = std::fs::read_to_string(fuzz_dir().join("fuzz_targets").join(file)).unwrap();
        assert!(source.contains("fuzz_target!(|data: &[u8]| toold"), "{source}");
    }
}
