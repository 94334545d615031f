//! What must hold of any configuration: driven by proptest, by a fuzzer and by a kept corpus.

use std::path::Path;

use toold_engine::policy::Policy;
use toold_proto::permission::Verdict;

use crate::config::project::ProjectFile;
use crate::config::read::{ConfigText, read};

/// Takes any bytes as a user's file; panics when an error is reported without its position.
#[doc(hidden)]
pub fn fuzz_user(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let read = read(ConfigText { name: "config.toml", text: &text, overrides: &[], sections: None });
    let problems = read.problems;
    assert!(problems.iter().all(|problem| problem.starts_with("config.toml:")), "{problems:?} of {text:?}");
}

/// Takes any bytes as a project's file; panics when it allows anything before it is trusted, or counts elsewhere.
#[doc(hidden)]
pub fn fuzz_project(data: &[u8]) {
    let project = Path::new("/p");
    let file = ProjectFile::of_bytes(project, data.to_vec());
    let policy = file.add_rules(Policy::default(), None, false);
    assert!(policy.rules.iter().all(|rule| rule.action != Verdict::Allow), "{:?}", String::from_utf8_lossy(data));
    assert!(policy.rules.iter().all(|rule| rule.project.as_deref() == Some(project)));
    assert!(policy.closed.iter().all(|closed| closed.project.as_deref() == Some(project)) && policy.broken.is_empty());
    assert!(file.problems.is_empty() || !policy.closed.is_empty(), "{:?}", file.problems);
    let allows = file.add_trusted(Policy::default(), None);
    assert!(allows.rules.iter().all(|rule| rule.action == Verdict::Allow));
    assert_eq!(allows.rules.len(), file.allows(None).len());
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{fuzz_project, fuzz_user};

    const WORDS: &[&str] = &[
        "[[permission.rules]]",
        "[limits]",
        "[[hooks]]",
        "[plugins.x]",
        "calls = ",
        "category = ",
        "pattern = ",
        "action = ",
        "\"allow\"",
        "\"deny\"",
        "\"shell\"",
        "\"ls\"",
        "7",
        "\n",
        "\n",
        "cals",
        "command = [\"x\"]",
        "event = ",
        "[",
        "]",
        "=",
        "{a = 1}",
        "'''",
        "\"",
        "tools = [\"*\"]",
        "\u{fffd}",
        "paths = [\"~\"]",
    ];

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn mistakes_have_places_and_untrusted_files_allow_nothing(
            words in prop::collection::vec(prop::sample::select(WORDS), 0..30),
        ) {
            let text = words.concat();
            fuzz_user(text.as_bytes());
            fuzz_project(text.as_bytes());
        }
    }
}
