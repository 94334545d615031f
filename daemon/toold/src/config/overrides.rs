//! Overrides of the file: variables of the environment, then flags.

use std::ffi::OsString;

use toold_proto::nearest::did_you_mean;

use crate::config::schema::{Leaf, leaf_keys};

/// One key with a value from outside the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Override {
    /// As `limits.calls`.
    pub key: String,
    pub value: String,
    /// The value is text, quotes or not.
    pub text: bool,
    /// The source for the user: the variable, or the flag.
    pub origin: String,
}

/// The overrides of an environment and of `--set KEY=VALUE` flags.
#[derive(Default)]
pub struct Overrides {
    /// In ascending precedence.
    pub found: Vec<Override>,
    /// Variables that name no key, as sentences for the user. Other programs may have set them.
    pub unknown: Vec<String>,
    /// Errors of flags.
    pub problems: Vec<String>,
}

/// Reads the overrides.
///
/// The variable of `limits.calls` is `TOOLD_LIMITS_CALLS`. An empty one counts as unset.
pub fn overrides(environment: &[(OsString, OsString)], flags: &[String]) -> Overrides {
    let may_be_key = |name: &OsString| {
        // Each key has a section.
        name.to_str().and_then(|name| name.strip_prefix("TOOLD_")).is_some_and(|rest| rest.contains('_'))
    };
    if flags.is_empty() && !environment.iter().any(|(name, _)| may_be_key(name)) {
        // Listing the keys takes longer than reading most files.
        return Default::default();
    }
    let leaves: Vec<Leaf> = leaf_keys().into_iter().filter(|leaf| leaf.scalar).collect();
    let (mut found, mut unknown, mut problems) = (Vec::new(), Vec::new(), Vec::new());
    let variables: Vec<String> = leaves.iter().map(|leaf| variable(&leaf.key)).collect();
    let mut sections: Vec<&str> =
        leaves.iter().filter_map(|leaf| leaf.key.split_once('.')).map(|(section, _)| section).collect();
    sections.dedup();
    for (name, value) in environment {
        let Some(name) = name.to_str().filter(|_| !value.is_empty()) else { continue };
        let Some(rest) = name.strip_prefix("TOOLD_") else { continue };
        let in_section = |section: &&str| {
            let after = rest.strip_prefix(section.to_uppercase().as_str());
            after.is_some_and(|after| after.starts_with('_'))
        };
        match variables.iter().position(|known| known == name) {
            Some(place) => found.push(Override {
                key: leaves[place].key.clone(),
                value: value.to_string_lossy().into_owned(),
                text: leaves[place].text,
                origin: format!("environment {name}"),
            }),
            // Other variables with the prefix are not ours to check.
            None if sections.iter().any(in_section) => {
                let known = variables.iter().map(String::as_str);
                let near = did_you_mean(name, known);
                unknown.push(format!("environment {name}: there is no such key: it is ignored{near}"));
            }
            None => {}
        }
    }
    found.sort_by(|a, b| a.key.cmp(&b.key));
    for flag in flags {
        let Some((key, value)) = flag.split_once('=') else {
            problems.push(format!("flag --set {flag}: expected KEY=VALUE, as limits.calls=100"));
            continue;
        };
        let leaf = leaves.iter().find(|leaf| leaf.key == key.trim());
        let Some(leaf) = leaf else {
            let known = leaves.iter().map(|leaf| leaf.key.as_str());
            problems.push(format!("flag --set {flag}: there is no key {key}{}", did_you_mean(key, known)));
            continue;
        };
        found.push(Override {
            key: leaf.key.clone(),
            value: value.trim().to_owned(),
            text: leaf.text,
            origin: format!("flag --set {flag}"),
        });
    }
    Overrides { found, unknown, problems }
}

fn variable(key: &str) -> String {
    format!("TOOLD_{}", key.replace('.', "_").to_uppercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(environment: &[(&str, &str)], flags: &[&str]) -> (Vec<(String, String)>, Vec<String>) {
        let environment: Vec<_> = environment.iter().map(|(name, value)| (name.into(), value.into())).collect();
        let flags: Vec<_> = flags.iter().map(|flag| (*flag).to_owned()).collect();
        let Overrides { found, unknown, problems } = overrides(&environment, &flags);
        (
            found.into_iter().map(|found| (found.key, found.value)).collect(),
            unknown.into_iter().chain(problems).collect(),
        )
    }

    /// Otherwise its variable would be ignored: only names with a second `_` are examined.
    #[test]
    fn each_key_has_a_section() {
        for leaf in leaf_keys().into_iter().filter(|leaf| leaf.scalar) {
            assert!(leaf.key.contains('.'), "{}", leaf.key);
        }
    }

    #[test]
    fn flags_come_after_the_environment() {
        let (found, problems) = of(&[("TOOLD_LIMITS_CALLS", "7"), ("TOOLD_SOCKET", "/s")], &["limits.calls=8"]);
        let pair = |value: &str| ("limits.calls".to_owned(), value.to_owned());
        assert_eq!((found, problems), (vec![pair("7"), pair("8")], vec![]));
    }

    #[test]
    fn misspelt_override_is_reported_with_a_suggestion() {
        let (found, problems) = of(&[("TOOLD_LIMITS_CALS", "7")], &["limit.calls=8", "x"]);
        assert_eq!(found, []);
        assert!(problems[0].contains("did you mean TOOLD_LIMITS_CALLS"), "{problems:?}");
        assert!(problems[1].contains("did you mean limits.calls"), "{problems:?}");
        assert!(problems[2].contains("KEY=VALUE"), "{problems:?}");
    }
}
