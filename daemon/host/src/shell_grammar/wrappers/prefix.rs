//! Wrappers of the plain kind: options, perhaps operands, then a command.

use toold_engine::need::Word;

use super::Looked;

/// How a wrapper's own arguments end and the command's begin.
struct Prefix {
    name: &'static str,
    /// Short options that take the next word, when nothing is attached.
    short: &'static str,
    /// Long options that take the next word, when no `=` is attached.
    long: &'static [&'static str],
    /// Short options that take no word.
    flags: &'static str,
    long_flags: &'static [&'static str],
    /// Words that stand between the options and the command.
    operands: usize,
    /// `NAME=value` may stand before the command.
    assignments: bool,
}

const fn prefix(name: &'static str, short: &'static str, flags: &'static str) -> Prefix {
    Prefix { name, short, long: &[], flags, long_flags: &[], operands: 0, assignments: false }
}

/// Options that are not listed make it unsure.
const PREFIXES: &[Prefix] = &[
    Prefix {
        long: &["--unset", "--chdir"],
        long_flags: &["--ignore-environment", "--null", "--debug"],
        assignments: true,
        ..prefix("env", "uC", "i0v")
    },
    Prefix {
        long: &["--user", "--group", "--host", "--prompt", "--close-from", "--chdir"],
        long_flags: &[
            "--preserve-env",
            "--non-interactive",
            "--set-home",
            "--stdin",
            "--background",
            "--reset-timestamp",
        ],
        assignments: true,
        ..prefix("sudo", "ughpCDRT", "AbEHnPSkK")
    },
    prefix("doas", "uC", "n"),
    Prefix { long: &["--adjustment"], ..prefix("nice", "n", "0123456789") },
    Prefix {
        long: &["--signal", "--kill-after"],
        long_flags: &["--foreground", "--preserve-status", "--verbose"],
        operands: 1,
        ..prefix("timeout", "sk", "v")
    },
    prefix("nohup", "", ""),
    Prefix { long_flags: &["--ctty", "--fork", "--wait"], ..prefix("setsid", "", "cfw") },
    Prefix { long: &["--class", "--classdata"], long_flags: &["--ignore"], ..prefix("ionice", "cn", "t") },
    Prefix { long: &["--input", "--output", "--error"], ..prefix("stdbuf", "ioe", "") },
    Prefix {
        long: &["--format", "--output"],
        long_flags: &["--verbose", "--portability", "--append", "--quiet"],
        ..prefix("time", "fo", "pvaq")
    },
    prefix("exec", "a", "cl"),
    prefix("command", "", "p"),
    prefix("builtin", "", ""),
    prefix("busybox", "", ""),
    Prefix { operands: 1, ..prefix("chrt", "", "bfiorv") },
    Prefix { operands: 1, ..prefix("taskset", "", "") },
    Prefix { operands: 1, ..prefix("chroot", "", "") },
    Prefix { long_flags: &["--verbose"], ..prefix("chronic", "", "ev") },
    prefix("caffeinate", "tw", "dimsu"),
    prefix("fakeroot", "", ""),
    prefix("torify", "", ""),
    prefix("proxychains", "f", "q"),
    prefix("proxychains4", "f", "q"),
    prefix("unbuffer", "", "p"),
    prefix("entr", "", "acdnprz"),
    Prefix { long_flags: &["--"], ..prefix("dbus-run-session", "", "") },
    Prefix { long_flags: &["--auto-servernum"], ..prefix("xvfb-run", "ns", "a") },
    Prefix { long: &["--output"], ..prefix("strace", "oePpsuE", "cCdDfFhiqrtTvVxXyzZk") },
    Prefix { ..prefix("ltrace", "oeluns", "cCfhirStT") },
];

/// What `name` would run with these words; `None` when it is no such wrapper.
pub(super) fn look_into(name: &str, words: &[Word]) -> Option<Looked> {
    PREFIXES.iter().find(|prefix| prefix.name == name).map(|prefix| prefixed(prefix, words))
}

fn prefixed(prefix: &Prefix, words: &[Word]) -> Looked {
    let mut at = 0;
    while let Some(word) = words.get(at) {
        if !word.literal {
            return Looked::unsure();
        }
        let text = word.text.as_str();
        at += 1;
        if text == "--" {
            break;
        } else if let Some(long) = text.strip_prefix("--").map(|_| text) {
            let (option, attached) = long.split_once('=').map_or((long, false), |(option, _)| (option, true));
            let takes_word = prefix.long.contains(&option);
            if !takes_word && !prefix.long_flags.contains(&option) {
                return Looked::unsure();
            }
            at += usize::from(takes_word && !attached);
        } else if let Some(cluster) = text.strip_prefix('-') {
            if cluster.is_empty() && prefix.name != "env" {
                return Looked::unsure();
            }
            for (index, letter) in cluster.char_indices() {
                if prefix.short.contains(letter) {
                    at += usize::from(index + letter.len_utf8() == cluster.len());
                    break;
                }
                if !prefix.flags.contains(letter) {
                    return Looked::unsure();
                }
            }
        } else {
            at -= 1;
            break;
        }
    }
    while prefix.assignments && words.get(at).is_some_and(|word| word.text.contains('=')) {
        at += 1;
    }
    for _ in 0..prefix.operands {
        if words.get(at).is_some_and(|word| !word.literal || word.text.starts_with('-')) {
            return Looked::unsure();
        }
        at += 1;
    }
    let command = words.get(at..).unwrap_or_default();
    match command.first() {
        // What it expands to may be nothing, or an option.
        Some(name) if !name.literal => Looked::unsure(),
        Some(_) | None => Looked::command(command),
    }
}
