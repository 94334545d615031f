//! The data that a request of `curl` or `wget` sends besides its body: by its method, and in texts that the line takes from
//! elsewhere.

use toold_engine::effects::AddedEffect;
use toold_proto::effect::Effect;

use super::options::Parsed;
use crate::shell_grammar::arg::{Arg, WordPart};

/// Methods that only ask for something (RFC 9110, section 9.2.1).
const ASKING: &[&str] = &["GET", "HEAD", "OPTIONS", "TRACE"];

/// Addresses of these fetch. With others, `curl` sends its standard input or a part of the address (`telnet:`, `gopher:`).
const FETCHING: &[&str] = &["http", "https", "ftp", "ftps", "sftp", "scp", "file"];

/// The effects that no option has by itself. `method`: the spellings of the option that chooses the method. `sent`: those of
/// each option whose value the server gets.
pub(super) fn effects(parsed: &Parsed, method: &[&str], sent: &[&[&str]]) -> Vec<AddedEffect> {
    let mut added = Vec::new();
    let texts = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<String>>();
    for value in parsed.values(method) {
        match value.literal() {
            Some(name) if ASKING.iter().any(|asking| name.eq_ignore_ascii_case(asking)) => {}
            Some(name) => {
                let attached = method.iter().map(|option| match option.starts_with("--") {
                    true => format!("{option}={name}"),
                    false => format!("{option}{name}"),
                });
                let words = attached.chain([name.to_owned()]).collect();
                let is_removal = name.eq_ignore_ascii_case("DELETE");
                added.push(AddedEffect { effect: if is_removal { Effect::Destroy } else { Effect::Send }, words });
            }
            None => {
                added.extend([Effect::Send, Effect::Destroy].map(|effect| AddedEffect { effect, words: texts(method) }))
            }
        }
    }
    for option in sent.iter().filter(|option| parsed.values(option).any(is_from_elsewhere)) {
        added.push(AddedEffect { effect: Effect::Send, words: texts(option) });
    }
    for address in parsed.operands.iter().chain(parsed.values(&["--url"])) {
        let scheme = address.start().split_once("://").map(|(scheme, _)| scheme.to_ascii_lowercase());
        if is_from_elsewhere(address) || scheme.is_some_and(|scheme| !FETCHING.contains(&scheme.as_str())) {
            added.push(AddedEffect { effect: Effect::Send, words: vec![address.word().text] });
        }
    }
    added
}

/// Whether the text may be that of a file: the output of a command, or a variable that the line does not set to a text.
fn is_from_elsewhere(word: &Arg) -> bool {
    word.pieces.iter().any(|piece| matches!(piece, WordPart::Unknown { .. } | WordPart::Pipe))
}
