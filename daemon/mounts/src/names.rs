//! The names here of other servers' tools: `[a-z][a-z0-9_]*`, at most 64 characters.

use std::collections::HashMap;

use toold_proto::tool::ToolName;

const MAX_NAME: usize = 64;
/// Long enough that no two of a server's tools ever share it.
const HASH: usize = 8;

/// A name for each of a server's tools, independent of the order of the list. If two would have the
/// same, the one with this name on its server keeps it, and the others get a suffix.
pub(crate) fn assign(server: &str, own: &[&str]) -> Vec<ToolName> {
    let plain: Vec<String> = own.iter().map(|own| plain(server, own)).collect();
    let mut wanted: HashMap<&str, usize> = HashMap::new();
    for name in &plain {
        *wanted.entry(name).or_default() += 1;
    }
    let is_alone = |at: usize| wanted[plain[at].as_str()] == 1 || plain[at].ends_with(&format!("_{}", own[at]));
    let fits = |at: usize| plain[at].len() <= MAX_NAME && is_alone(at);
    (0..own.len()).map(|at| if fits(at) { parsed(&plain[at]) } else { with_hash(server, own[at]) }).collect()
}

/// The name with a suffix that distinguishes it from any other tool of any server.
pub(crate) fn with_hash(server: &str, own: &str) -> ToolName {
    let mark = &blake3::hash(format!("{server}\0{own}").as_bytes()).to_hex()[..HASH];
    let plain = plain(server, own);
    let head = plain[..plain.len().min(MAX_NAME - HASH - 1)].trim_end_matches('_');
    parsed(&format!("{head}_{mark}"))
}

/// A name for the calls that read or render an offer; several offers may share it.
pub(crate) fn of_offer(kind: &str, server: &str, own: &str) -> ToolName {
    let name = plain(&format!("{kind}_{server}"), own);
    parsed(&name[..name.len().min(MAX_NAME)])
}

fn parsed(name: &str) -> ToolName {
    ToolName::parse(name).expect("it is made of what a name may be made of")
}

/// The beginning of the names of all tools of a server that fit.
pub fn prefix(server: &str) -> String {
    plain(server, "")
}

fn plain(server: &str, own: &str) -> String {
    let mut name = String::new();
    words(server, &mut name);
    if !name.starts_with(|first: char| first.is_ascii_lowercase()) {
        name.insert_str(0, "mcp_");
    }
    name.push('_');
    words(own, &mut name);
    name
}

/// `readFile` becomes `read_file`; anything but letters and digits becomes `_`.
fn words(text: &str, into: &mut String) {
    let mut before_was_small = false;
    for c in text.chars() {
        if c.is_ascii_uppercase() && before_was_small {
            into.push('_');
        }
        before_was_small = c.is_ascii_lowercase() || c.is_ascii_digit();
        into.push(if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(server: &str, own: &[&str], expected: &[&str]) {
        let names: Vec<String> = assign(server, own).iter().map(|name| name.as_str().to_owned()).collect();
        assert_eq!(names, expected);
    }

    #[test]
    fn names_are_made_of_lower_case_words() {
        check(
            "files",
            &["read_file", "listDir", "a.b/c-d", "HTTPGet"],
            &["files_read_file", "files_list_dir", "files_a_b_c_d", "files_httpget"],
        );
        check("My-Server", &["x"], &["my_server_x"]);
        check("1", &["2"], &["mcp_1_2"]);
        check("größe", &["日本"], &["gr__e___"]);
    }

    #[test]
    fn of_two_that_want_one_name_the_rightful_one_keeps_it() {
        let one = assign("s", &["readFile", "read_file", "read-file"]);
        let other = assign("s", &["read-file", "readFile", "read_file"]);
        assert_eq!(one[1].as_str(), "s_read_file");
        assert_eq!((&one[0], &one[1], &one[2]), (&other[1], &other[2], &other[0]));
        assert!(one[0].as_str().starts_with("s_read_file_") && one[0] != one[2], "{one:?}");
    }

    #[test]
    fn long_names_are_cut_and_marked() {
        let (a, b) = ("x".repeat(100) + "a", "x".repeat(100) + "b");
        let names = assign("s", &[&a, &b]);
        assert!(names.iter().all(|name| name.as_str().len() <= MAX_NAME) && names[0] != names[1], "{names:?}");
        assert_eq!(assign(&"s".repeat(200), &["t"])[0].as_str().len(), MAX_NAME);
    }
}
