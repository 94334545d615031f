//! Properties of all patterns: driven by proptest, by a fuzzer and by a stored corpus.

use toold_proto::tool::Category;

use crate::need::{Need, Word};
use crate::policy::pattern::Pattern;
use crate::policy::pattern::host::{labels, split};
use crate::policy::suggest::{exact_pattern, suggestions};

/// Takes any bytes; panics when a pattern that can be read is not what it shows, or when what is made for a need
/// does not match that need, or more than it.
///
/// The first byte chooses the category; a NUL parts the pattern from what it is held against.
pub fn fuzz_one(data: &[u8]) {
    let [kind, rest @ ..] = data else { return };
    let category = Category::ALL[usize::from(*kind) % Category::ALL.len()];
    let text = String::from_utf8_lossy(rest);
    let (pattern, target) = text.split_once('\0').unwrap_or((&text, &text));
    let need = need_of(category, target);
    if let Ok(read) = Pattern::parse(category, pattern) {
        assert_eq!(read.as_str(), pattern);
        // A pattern that matches when it allows must also match when it denies, or writing a command in another way would evade the rule.
        assert!(read.matches(&need).is_none() || read.may_match(&need).is_some(), "{category} {pattern:?} {target:?}");
    }
    let Some(exact) = exact_pattern(&need) else { return };
    let read = Pattern::parse(category, &exact).expect("a pattern that was made can be read");
    assert!(read.matches(&need).is_some(), "{exact:?} does not match what it was made for: {target:?}");
    let other = need_of(category, pattern);
    assert!(read.matches(&other).is_none() || same(&need, &other), "{exact:?} matches {pattern:?} too");
    for suggestion in suggestions(&need, None) {
        let read = Pattern::parse(category, &suggestion.pattern).expect("a suggestion can be read");
        assert!(read.matches(&need).is_some(), "{:?} does not match {target:?}", suggestion.pattern);
    }
}

/// The need of a target; of a command, its words between blanks, all of them literal.
fn need_of(category: Category, target: &str) -> Need {
    let words = || target.split_ascii_whitespace().map(|text| Word { text: text.to_owned(), literal: true }).collect();
    Need::new(category, target).with_command(|command| command.words = Some(words()))
}

/// Whether what was made for exactly one need may match the other too.
fn same(one: &Need, other: &Need) -> bool {
    match (one.words(), other.words()) {
        (Some(one), Some(other)) => one == other,
        _ if one.category() == Category::Network => {
            let ((host, port), (other_host, other_port)) = (split(&one.target), split(&other.target));
            // A host without a port stands for all its ports.
            labels(host) == labels(other_host) && port.is_none_or(|port| other_port == Some(port))
        }
        _ => one.target == other.target,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use toold_proto::tool::Category;

    use super::fuzz_one;

    #[test]
    fn hosts_are_compared_as_patterns_compare_them() {
        let network = Category::ALL.iter().position(|category| *category == Category::Network).unwrap();
        for pair in ["x:80\0x", "x.\0x", "[x]\0X", "x:\0x"] {
            fuzz_one(&[&[u8::try_from(network).unwrap()], pair.as_bytes()].concat());
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn any_pattern_parses_as_its_text(
            kind in any::<u8>(),
            pattern in "[a-z*./:\\[\\]{}\\\\'\" ?!~-]{0,20}",
            target in "[a-z*./:\\[\\]{}\\\\'\" 0-9]{0,20}",
        ) {
            let mut data = vec![kind];
            data.extend(format!("{pattern}\0{target}").bytes());
            fuzz_one(&data);
        }

        #[test]
        fn any_bytes_can_be_taken(data in prop::collection::vec(any::<u8>(), 0..64)) {
            fuzz_one(&data);
        }
    }
}
