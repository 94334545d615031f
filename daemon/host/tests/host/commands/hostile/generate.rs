//! Makes lines out of the pieces in [`super::kits`].

use super::kits::{AROUND, EVERYDAY_AROUND, FOLDERS, KITS, Kit, OF_ZSH, SHELL, VARIABLES};
use super::shell::ShellKind;
use crate::commands::judge::RuleLine;
use crate::commands::random::SplitMix;

/// A line with the rules under which it is tried.
#[derive(Clone)]
pub(super) struct HostileCase {
    pub(super) rules: Vec<RuleLine>,
    /// The line is these pieces in sequence; if it still fails without one of them, that is a smaller case.
    pub(super) pieces: Vec<String>,
}

impl HostileCase {
    pub(super) fn line(&self) -> String {
        self.pieces.concat().replace('⏎', "\n").replace('␣', " ")
    }
}

pub(super) fn generate(kind: ShellKind, seed: u64, at: u64) -> HostileCase {
    let random = &mut SplitMix::of_line(seed, at);
    let kit = random.pick(KITS);
    let rules = kit.rules.iter().map(|rule| RuleLine::parse(rule).unwrap()).collect();
    let mut pieces = Vec::new();
    let denies = kit.rules.iter().any(|rule| rule.starts_with("deny"));
    match random.below(if denies { 90 } else { 100 }) {
        // As people write them: most of these are allowed, and so run.
        0..56 => {
            let command = plain(random.pick(kit.plain));
            match random.below(100) {
                0..35 => pieces.extend(command),
                35..50 => {
                    let mut spelled = Spelled::default();
                    spelled.command(random.pick(kit.plain), random);
                    pieces.extend([spelled.before, spelled.words, spelled.after].concat());
                }
                50..88 => around(random.pick(EVERYDAY_AROUND), command, &mut pieces),
                _ => {
                    if !denies {
                        pieces.extend(variable(random));
                    }
                    pieces.extend(command);
                }
            }
        }
        56..90 => {
            let words = if random.chance(80) { kit.tricks } else { kit.plain };
            let mut spelled = Spelled::default();
            spelled.command(random.pick(words), random);
            if !denies && random.chance(12) {
                pieces.push(random.pick(FOLDERS).to_owned());
            }
            if !denies && random.chance(10) {
                pieces.extend(variable(random));
            }
            let Spelled { before, words, after } = spelled;
            let command = [before, words, after].concat();
            match random.chance(30) {
                true => around(random.pick(AROUND), command, &mut pieces),
                false => pieces.extend(command),
            }
        }
        _ => {
            if random.chance(15) {
                pieces.extend(variable(random));
            }
            let of_shell = if kind == ShellKind::Zsh && random.chance(70) { OF_ZSH } else { SHELL };
            let command = vec![random.pick(of_shell).to_owned()];
            match random.chance(15) {
                true => around(random.pick(AROUND), command, &mut pieces),
                false => pieces.extend(command),
            }
        }
    }
    HostileCase { rules, pieces }
}

/// Each command of a set as people write it: alone, and with one of the usual surroundings.
pub(super) fn everyday(kit: &Kit) -> Vec<HostileCase> {
    let rules: Vec<RuleLine> = kit.rules.iter().map(|rule| RuleLine::parse(rule).unwrap()).collect();
    let case = |form: &str, command: &str| {
        let mut pieces = Vec::new();
        around(form, plain(command), &mut pieces);
        HostileCase { rules: rules.clone(), pieces }
    };
    let forms = EVERYDAY_AROUND.iter().cycle();
    kit.plain.iter().zip(forms).flat_map(|(command, form)| [case("@", command), case(form, command)]).collect()
}

fn around(form: &str, command: Vec<String>, pieces: &mut Vec<String>) {
    let (before, after) = form.split_once('@').unwrap();
    let quote = before.ends_with('\'');
    let command = command.into_iter().map(|piece| if quote { piece.replace('\'', r"'\''") } else { piece });
    pieces.push(before.to_owned());
    pieces.extend(command);
    pieces.push(after.to_owned());
}

fn variable(random: &mut SplitMix) -> Vec<String> {
    let value = random.pick(VARIABLES);
    let form = random.pick(&["@ ", "@ ", "export @; ", "@; ", "declare -x @; ", "env @ ", "export @ && "]);
    vec![form.replace('@', value)]
}

/// The words of a command as one would write them.
fn plain(command: &str) -> Vec<String> {
    command.split(' ').enumerate().map(|(at, word)| format!("{}{}", blank(at), quoted(word))).collect()
}

fn blank(at: usize) -> &'static str {
    if at == 0 { "" } else { " " }
}

fn quoted(word: &str) -> String {
    if let Some(raw) = word.strip_prefix('^') {
        return raw.to_owned();
    }
    // The folders of a root have names without blanks.
    let plain = |c: char| c.is_alphanumeric() || "_@%+=:,./-".contains(c);
    let shown = word.replace("{root}", "").replace("{bin}", "");
    match !shown.is_empty() && shown.chars().all(plain) || word.starts_with("{root}") {
        true => word.to_owned(),
        false => format!("'{word}'"),
    }
}

/// A command that is spelled in a way that hides what it is.
#[derive(Default)]
struct Spelled {
    /// Assignments and similar statements that the words need.
    before: Vec<String>,
    words: Vec<String>,
    after: Vec<String>,
}

impl Spelled {
    fn command(&mut self, command: &str, random: &mut SplitMix) {
        let mut words = Vec::new();
        let mut is_raw = false;
        for word in command.split(' ') {
            // A raw word may continue after blanks: it ends where the command ends, or at the next value of one word.
            is_raw |= word.starts_with('^') && command.starts_with('^');
            match word.chars().next() {
                _ if is_raw => words.push(format!("^{}", word.trim_start_matches('^'))),
                Some('@') => long_option(&word[1..], random, &mut words),
                Some('%') => short_option(&word[1..], random, &mut words),
                _ => words.push(word.to_owned()),
            }
        }
        let changed =
            if is_raw { Vec::new() } else { (0..random.below(3)).map(|_| random.below(words.len())).collect() };
        let mut at = 0;
        while at < words.len() {
            let word = words[at].clone();
            let blank = blank(at);
            if changed.contains(&at) && !word.starts_with('^') {
                if random.chance(12) && at + 1 < words.len() && !words[at + 1].starts_with('^') {
                    self.words.push(format!("{blank}{{{},{}}}", in_braces(&word), in_braces(&words[at + 1])));
                    at += 2;
                    continue;
                }
                let spelled = self.spell(&word, random);
                self.words.push(format!("{blank}{spelled}"));
            } else {
                self.words.push(format!("{blank}{}", quoted(&word)));
            }
            at += 1;
        }
    }

    /// One value, spelled in one of the possible ways.
    fn spell(&mut self, word: &str, random: &mut SplitMix) -> String {
        let chars: Vec<char> = word.chars().collect();
        if word.contains("{root}") || word.contains("{bin}") || chars.is_empty() {
            return quoted(word);
        }
        let cut = random.below(chars.len());
        let len = 1 + random.below(chars.len() - cut);
        let text = |part: &[char]| part.iter().collect::<String>();
        let (head, part, tail) = (text(&chars[..cut]), text(&chars[cut..cut + len]), text(&chars[cut + len..]));
        let (q_head, q_tail) = (quoted_part(&head), quoted_part(&tail));
        let q_part = quoted_part(&part);
        let joined = |middle: &str| format!("{q_head}{middle}{q_tail}");
        let separator = random.pick(&["; ", " && ", "⏎"]);
        match random.below(34) {
            0 => format!("'{word}'"),
            1 => format!(
                "\"{}\"",
                word.replace('\\', r"\\").replace('"', "\\\"").replace('$', "\\$").replace('`', "\\`")
            ),
            2 => joined(&format!("\\{}", q_part)),
            3 => format!("{q_head}$'{}'{q_tail}", escapes(&part, random)),
            4 => joined(&format!("\"\"{q_part}")),
            5..9 => {
                let name = random.pick(&["x", "u", "y"]);
                let form = random.pick(&[
                    "#=@",
                    "#=@",
                    "export #=@",
                    "declare #=@",
                    "read # <<< @",
                    "printf -v # %s @",
                    "read -r # < <(echo @)",
                    ": ${#:=@}",
                    "#=; #+=@",
                    "readonly #=@",
                    "typeset #=@",
                    "#=$(echo @)",
                    "mapfile -t # <<< @",
                    "#=(@)",
                    "IFS= read -r # <<< @",
                ]);
                self.before.push(form.replace('#', name).replace('@', &q_part) + separator);
                let used = random
                    .pick(&["$#", "${#}", "\"$#\"", "\"${#}\"", "${#:-}", "${#%}", "${#@E}", "${#[0]}", "${#//q/}"]);
                joined(&used.replace('#', name))
            }
            9 => joined(&format!("${{u:-{q_part}}}")),
            10 => joined(&format!("${{u-{q_part}}}")),
            11 => joined(&format!("${{HOME:+{q_part}}}")),
            12 => joined(&format!("$(echo {q_part})")),
            13 => joined(&format!("`echo {q_part}`")),
            14 => joined(&format!("\"$(printf %s {q_part})\"")),
            15 => joined(&format!("{q_part}$u")),
            16 => joined(&format!("${{u}}{q_part}")),
            17 => joined(&format!("$@{q_part}")),
            18 => joined(&format!("\\⏎{q_part}")),
            19 => format!("{{{},}}", in_braces(word)),
            20 => joined(&format!("{{{},}}", in_braces(&part))),
            21 => {
                self.before.push(format!("x={q_part}; y=x{separator}"));
                joined("${!y}")
            }
            22 => {
                self.before.push(format!("set -- {q_part}{separator}"));
                joined(random.pick(&["$1", "\"$1\"", "$@", "\"$@\"", "$*", "${@:1}"]))
            }
            23 => {
                self.before.push(format!("for x in {q_part}; do "));
                self.after.push("; done".to_owned());
                joined("$x")
            }
            24 => {
                self.before.push(format!("x={}{separator}", quoted_part(&part.to_uppercase())));
                joined("${x,,}")
            }
            25 => {
                self.before.push(format!("x=q{q_part}{separator}"));
                joined("${x#q}")
            }
            26 => {
                self.before.push("f() { ".to_owned());
                self.after.push("; }; f ".to_owned() + &q_part);
                joined("$1")
            }
            27 => {
                self.before.push(format!("echo {q_part} | while read -r x; do "));
                self.after.push("; done".to_owned());
                joined("$x")
            }
            // Matches a file whose name is an option.
            28 => joined(&format!("[{}]{}", chars[cut], quoted_part(&text(&chars[cut + 1..cut + len])))),
            29 => joined(&format!("$\"{}\"", part.replace(['"', '$', '`', '\\'], ""))),
            30 => {
                self.before.push(format!("declare -n z=x; x={q_part}{separator}"));
                joined("$z")
            }
            31 => {
                self.before.push(format!("declare -A h=([k]={q_part}){separator}"));
                joined("${h[k]}")
            }
            32 => joined("*"),
            _ => {
                self.before.push("IFS=q; ".to_owned());
                self.before.push(format!("x=q{q_part}q{separator}"));
                joined("$x")
            }
        }
    }
}

fn quoted_part(part: &str) -> String {
    if part.is_empty() { String::new() } else { quoted(part) }
}

fn in_braces(word: &str) -> String {
    if word.chars().any(|c| "{},.".contains(c) || !c.is_ascii_graphic()) { format!("'{word}'") } else { quoted(word) }
}

fn escapes(part: &str, random: &mut SplitMix) -> String {
    let escaped = |c: char, how: usize| match how {
        0 => format!("\\x{:02x}", u32::from(c)),
        1 => format!("\\{:03o}", u32::from(c)),
        _ => format!("\\u{:04x}", u32::from(c)),
    };
    let at = random.below(part.chars().count());
    let how = random.below(3);
    let shown = |(here, c): (usize, char)| match c {
        _ if here == at && c.is_ascii() => escaped(c, how),
        '\'' | '\\' => format!("\\{c}"),
        c => c.to_string(),
    };
    part.chars().enumerate().map(shown).collect()
}

/// `name=value`, spelled as programs accept it: abbreviated, with the value attached or separate.
fn long_option(option: &str, random: &mut SplitMix, words: &mut Vec<String>) {
    let (name, value) = option.split_once('=').unwrap_or((option, ""));
    let name = match random.below(3) {
        0 => &name[..name.len().min(3 + random.below(name.len()))],
        _ => name,
    };
    match (value.is_empty(), random.chance(70)) {
        (true, _) => words.push(format!("--{name}")),
        (false, true) => words.push(format!("--{name}={value}")),
        (false, false) => words.extend([format!("--{name}"), value.to_owned()]),
    }
}

/// `o:value`, alone or after others that take none.
fn short_option(option: &str, random: &mut SplitMix, words: &mut Vec<String>) {
    let (name, value) = option.split_once(':').unwrap_or((option, ""));
    match random.below(5) {
        0 => words.extend([format!("-{name}"), value.to_owned()]),
        1 => words.push(format!("-{}{name}{value}", random.pick(&["n", "q", "v", "x", "r", "f", "4", "z", "u", "s"]))),
        2 => words.extend([format!("-{}{name}", random.pick(&["n", "q", "v", "r", "z", "t"])), value.to_owned()]),
        _ => words.push(format!("-{name}{value}")),
    }
}
