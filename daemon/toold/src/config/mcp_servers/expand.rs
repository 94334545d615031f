//! `${env:NAME}` and `${secret:NAME}` in the configuration.

use toold_host::secret_text::SecretText;
use toold_host::secrets::is_secret_name;

/// Substitutes variables: `${env:NAME}` and, as in the files of other programs, `${NAME}`; each may
/// have a default, `${env:NAME:-text}`. `${secret:NAME}` becomes a place for a secret, and so
/// does `${input:NAME}` of the files of VS Code. Any other `$` stands for itself,
/// and so does everything in the value of a variable.
///
/// # Errors
/// A variable that is not set and has no default, and a secret whose name is none.
pub(in crate::config) fn variables(text: &str, var: &dyn Fn(&str) -> Option<String>) -> Result<SecretText, String> {
    argument(text, var, &|_| false)
}

/// The same for an argument of a program that sets some variables itself: where `is_own` says so of a variable, and the daemon does
/// not have it, its `${NAME}` stays as it is.
///
/// # Errors
/// As for [`variables`].
pub(in crate::config) fn argument(
    text: &str,
    var: &dyn Fn(&str) -> Option<String>,
    is_own: &dyn Fn(&str) -> bool,
) -> Result<SecretText, String> {
    let mut made = SecretText::default();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        made.push_plain(before);
        let Some((inside, behind)) = after.split_once('}') else {
            made.push_plain("${");
            rest = after;
            continue;
        };
        // In files of VS Code, a text that is asked for once and kept.
        if let Some(name) = inside.strip_prefix("secret:").or_else(|| inside.strip_prefix("input:")) {
            if !is_secret_name(name) {
                return Err(format!("{name:?} is not the name of a secret"));
            }
            made.push_secret(name);
            rest = behind;
            continue;
        }
        let inside_env = inside.strip_prefix("env:").unwrap_or(inside);
        let (name, default) = match inside_env.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (inside_env, None),
        };
        let is_name = !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        if !is_name {
            made.push_plain(&format!("${{{inside}}}"));
            rest = behind;
            continue;
        }
        match var(name).or_else(|| default.map(str::to_owned)) {
            Some(value) => made.push_plain(&value),
            None if inside == name && is_own(name) => made.push_plain(&format!("${{{name}}}")),
            None => return Err(format!("{NO_VARIABLE} {name}")),
        }
        rest = behind;
    }
    made.push_plain(rest);
    Ok(made)
}

const NO_VARIABLE: &str = "the daemon's environment has no variable";

/// Whether an error of [`variables`] is that of a variable which is not set.
pub(in crate::config) fn is_about_variable(why: &str) -> bool {
    why.starts_with(NO_VARIABLE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let var = |name: &str| (name == "A").then(|| "${env:B} é ${secret:S}".to_owned());
        let made = variables(text, &var).and_then(|made| made.filled(|name| Ok(format!("<{name}>"))));
        assert_eq!(made.unwrap_or_else(|error| error), expected);
    }

    #[test]
    fn only_whole_places_are_filled_and_values_are_left_alone() {
        check("x${env:A}y${A}", "x${env:B} é ${secret:S}y${env:B} é ${secret:S}");
        check("x${secret:S}y${secret:T}", "x<S>y<T>");
        check("${B:-}${env:B:-d e}$A ${", "d e$A ${");
        check("${input:token} ${}", "<token> ${}");
        check("${env:B}", "the daemon's environment has no variable B");
    }
}
