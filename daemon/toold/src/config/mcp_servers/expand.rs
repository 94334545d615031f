//! `${env:NAME}` in the configuration of servers.

/// Substitutes variables: `${env:NAME}` and, as in the files of other programs, `${NAME}`; each may
/// have a default, `${env:NAME:-text}`. Any other `$` stands for itself.
///
/// # Errors
/// A variable that is not set and has no default.
pub(super) fn variables(text: &str, var: &dyn Fn(&str) -> Option<String>) -> Result<String, String> {
    let mut made = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        made.push_str(before);
        let Some((inside, behind)) = after.split_once('}') else {
            made.push_str("${");
            rest = after;
            continue;
        };
        let inside_env = inside.strip_prefix("env:").unwrap_or(inside);
        let (name, default) = match inside_env.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (inside_env, None),
        };
        let is_name = !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        if !is_name {
            made.push_str(&format!("${{{inside}}}"));
            rest = behind;
            continue;
        }
        match var(name).or_else(|| default.map(str::to_owned)) {
            Some(value) => made.push_str(&value),
            None => return Err(format!("the daemon's environment has no variable {name}")),
        }
        rest = behind;
    }
    made.push_str(rest);
    Ok(made)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let var = |name: &str| (name == "A").then(|| "${env:B} é".to_owned());
        assert_eq!(variables(text, &var).unwrap_or_else(|error| error), expected);
    }

    #[test]
    fn only_whole_places_are_filled_and_values_are_left_alone() {
        check("x${env:A}y${A}", "x${env:B} éy${env:B} é");
        check("${B:-}${env:B:-d e}$A ${", "d e$A ${");
        check("${input:token} ${}", "${input:token} ${}");
        check("${env:B}", "the daemon's environment has no variable B");
    }
}
