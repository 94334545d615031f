//! The shape of the targets of each category: everything that a tool can ask for. A pattern that
//! fits no such target can never decide anything, and [`crate::policy::pattern::Pattern::check`]
//! rejects it.
//!
//! Shapes are automata over bytes, so that whether a glob fits any text of a shape is computed and not guessed.

use toold_proto::tool::Category;

use crate::need::Word;

/// Texts that are all alike: paths, names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TargetShape {
    /// Absolute, links followed: no `//`, no `.` and no `..`, no slash at the end.
    Path,
    /// `SERVER/TOOL`, or `remote:NAME/TOOL`.
    McpTool,
    /// A tool's name: `[a-z][a-z0-9_]*`.
    ToolName,
    /// Any text that is not empty.
    Text,
}

/// Where in a text of the shape a reader is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Position {
    phase: u8,
    /// Bytes that the character still has, in UTF-8.
    pending: u8,
}

const START: u8 = 0;
/// Behind the first slash of a path.
const ROOT: u8 = 1;
/// Behind any other slash.
const SLASH: u8 = 2;
const DOT: u8 = 3;
const TWO_DOTS: u8 = 4;
const INSIDE: u8 = 5;

impl Position {
    pub(super) const START: Self = Self { phase: START, pending: 0 };
    /// Each position has a number below this.
    pub(super) const COUNT: usize = 24;

    pub(super) fn number(self) -> usize {
        usize::from(self.phase) * 4 + usize::from(self.pending)
    }

    pub(super) fn of_number(number: usize) -> Self {
        Self { phase: (number / 4) as u8, pending: (number % 4) as u8 }
    }
}

impl TargetShape {
    /// Where a reader is after one byte more; `None` when no text of the shape goes on so.
    pub(super) fn step(self, position: Position, byte: u8) -> Option<Position> {
        let Position { phase, pending } = position;
        if pending > 0 {
            return (0x80..=0xbf).contains(&byte).then_some(Position { phase, pending: pending - 1 });
        }
        let pending = match byte {
            0..=0x7f => 0,
            0xc2..=0xdf => 1,
            0xe0..=0xef => 2,
            0xf0..=0xf4 => 3,
            _ => return None,
        };
        Some(Position { phase: self.next(phase, byte)?, pending })
    }

    fn next(self, phase: u8, byte: u8) -> Option<u8> {
        match self {
            Self::Path => match (phase, byte) {
                (_, 0) => None,
                (START, b'/') => Some(ROOT),
                (INSIDE, b'/') => Some(SLASH),
                (START, _) | (_, b'/') => None,
                (ROOT | SLASH, b'.') => Some(DOT),
                (DOT, b'.') => Some(TWO_DOTS),
                _ => Some(INSIDE),
            },
            Self::McpTool => match (phase, byte) {
                (_, byte) if byte.is_ascii_control() => None,
                (START, b'/') => None,
                (START, _) => Some(INSIDE),
                (INSIDE, b'/') => Some(SLASH),
                // After the slash comes the tool's own name, which may contain further slashes.
                (SLASH | ROOT, _) => Some(ROOT),
                _ => Some(phase),
            },
            Self::ToolName => match (phase, byte) {
                (START, b'a'..=b'z') | (INSIDE, b'a'..=b'z' | b'0'..=b'9' | b'_') => Some(INSIDE),
                _ => None,
            },
            Self::Text => Some(INSIDE),
        }
    }

    pub(super) fn accepts(self, position: Position) -> bool {
        position.pending == 0
            && match self {
                Self::Path => matches!(position.phase, ROOT | INSIDE),
                Self::McpTool => position.phase == ROOT,
                Self::ToolName | Self::Text => position.phase == INSIDE,
            }
    }

    /// For people.
    pub(super) fn describe(self) -> &'static str {
        match self {
            Self::Path => "absolute paths without //, . and .., and with no slash at the end",
            Self::McpTool => "SERVER/TOOL, such as github/search_issues",
            Self::ToolName => "lower-case letters, digits and _, beginning with a letter",
            Self::Text => "non-empty texts",
        }
    }

    fn fits(self, text: &str) -> bool {
        let end = text.bytes().try_fold(Position::START, |position, byte| self.step(position, byte));
        end.is_some_and(|end| self.accepts(end))
    }
}

/// The shape of the targets of a category whose patterns are globs.
pub(super) fn shape_of(category: Category) -> Option<TargetShape> {
    match category {
        Category::FileRead | Category::FileWrite => Some(TargetShape::Path),
        Category::Mcp => Some(TargetShape::McpTool),
        // A frontend runs sub-agents of any name, and a plugin names what its own permission is for.
        Category::Agent | Category::Plugin => Some(TargetShape::Text),
        Category::Shell | Category::Network => None,
    }
}

/// Whether rules and grants could ever be about this target. To be asked of targets that come from outside.
///
/// # Errors
/// The form of targets of the category.
pub fn check_target(category: Category, target: &str) -> Result<(), String> {
    let expected = match (category, shape_of(category)) {
        (_, Some(shape)) if !shape.fits(target) => shape.describe(),
        (Category::Network, _) if !is_network_target(target) => {
            "HOST:PORT, such as example.com:443 or [2001:db8::1]:443"
        }
        (Category::Shell, _) if target.trim().is_empty() => "a command",
        _ => return Ok(()),
    };
    Err(format!("{target:?} is not a target of {category}: expected {expected}"))
}

/// `host:port`, or the name of a program that uses the network.
fn is_network_target(target: &str) -> bool {
    let (host, port) = match target.rsplit_once(':') {
        Some((host, port)) => (host, Some(port)),
        None => (target, None),
    };
    let is_port = |port: &str| port.parse::<u16>().is_ok_and(|number| number.to_string() == port);
    let is_host = match host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        Some(address) => port.is_some() && is_address(address),
        None => !host.is_empty() && host.trim_end_matches('.').split('.').all(is_label),
    };
    is_host && port.is_none_or(is_port)
}

fn is_label(label: &str) -> bool {
    !label.is_empty() && label.chars().all(is_host_char)
}

/// An address of version 6, as requests write it.
pub(super) fn is_address(text: &str) -> bool {
    // One of version 4 that is written in version 6 is requested as what it is.
    let is_plain = |address: core::net::Ipv6Addr| address.to_ipv4_mapped().is_none();
    let parsed = text.parse::<core::net::Ipv6Addr>();
    parsed.is_ok_and(|address| is_plain(address) && address.to_string() == text.to_ascii_lowercase())
}

/// The characters of a host label in a target: URLs convert other letters into these (`xn--...`).
pub(super) fn is_host_char(c: char) -> bool {
    c.is_ascii_graphic() && !"#/:<>?@[\\]^|%*".contains(c)
}

/// Whether the text is a possible plugin name, and so a possible member of a chain.
pub fn is_plugin_name(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes.next().is_some_and(|first| first.is_ascii_lowercase())
        && bytes.all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-".contains(&byte))
}

/// Words that the shell reads as its own grammar where a command begins: what stands behind them are commands of their
/// own. `[[` is none of them, since the test behind it is judged as one command.
const GRAMMAR: &[&str] = &[
    "if", "then", "else", "elif", "fi", "do", "done", "case", "esac", "while", "until", "for", "select", "function",
    "{", "}", "in", "coproc", "!",
];

/// Whether a simple command can begin with these words. Variables before a command are judged apart from it.
pub fn begins_command(words: &[Word]) -> bool {
    let Some(first) = words.first() else { return false };
    let has_variable_before_it = words.len() > 1 && first.text.contains('=');
    !is_grammar(&first.text) && !has_variable_before_it
}

pub(super) fn is_grammar(word: &str) -> bool {
    GRAMMAR.contains(&word)
}
