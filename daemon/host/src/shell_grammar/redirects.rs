//! The files that redirects open.

use std::path::Path;

use toold_engine::need::{Need, Word};
use toold_proto::tool::Category;

use super::shell;
use crate::exclude::Exclusions;
use crate::files::{read_need, resolve, write_need};

/// A file that is opened by its name.
pub(super) struct Redirected {
    category: Category,
    path: String,
    /// As it was written.
    shown: String,
}

pub(super) enum Target {
    /// A descriptor, or a device that keeps nothing.
    Nothing,
    File(Redirected),
    /// Which file it is cannot be told.
    Unsure,
}

impl Redirected {
    pub(super) fn target(operator: &str, word: Word, raw: &str) -> Target {
        let harmless = ["/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr"];
        let descriptor = operator.ends_with('&');
        let number = word.text.strip_suffix('-').unwrap_or(&word.text);
        let is_number = number.chars().all(|c| c.is_ascii_digit()) && word.text != "--";
        if !word.literal || word.text.is_empty() {
            return Target::Unsure;
        }
        // The shell expands the word behind `>&` twice.
        let plain = |c: char| c.is_alphanumeric() || "_./-+,@%=:".contains(c);
        if descriptor && !is_number && (!word.text.chars().all(plain) || word.text.starts_with(['-', '+'])) {
            return Target::Unsure;
        }
        if (descriptor && is_number) || harmless.contains(&word.text.as_str()) {
            return Target::Nothing;
        }
        let category = match operator {
            "<" => Category::FileRead,
            ">" | ">>" | ">|" | "&>" | "&>>" | ">&" => Category::FileWrite,
            _ => return Target::Unsure,
        };
        if let Some(address) = ["/dev/tcp/", "/dev/udp/"].iter().find_map(|start| word.text.strip_prefix(start)) {
            let target = address.replacen('/', ":", 1);
            return Target::File(Self {
                category: Category::Network,
                path: target,
                shown: format!("{operator} {raw}"),
            });
        }
        Target::File(Self { category, path: word.text, shown: format!("{operator} {raw}") })
    }

    /// A file that a program writes because an argument says so.
    pub(super) fn written_by_argument(path: String) -> Self {
        Self { category: Category::FileWrite, shown: path.clone(), path }
    }

    /// `cwd` is `None` when the line changes folders.
    pub(super) fn need(self, line: &str, cwd: Option<&Path>, exclusions: &mut Exclusions) -> Need {
        let path = Path::new(&self.path);
        let resolved = match (path.is_absolute(), cwd) {
            (true, _) => resolve(path, Path::new("/")),
            (false, Some(cwd)) => resolve(path, cwd),
            (false, None) => return shell(line, self.shown, None),
        };
        let need = match (self.category, resolved) {
            (Category::FileRead, Ok(resolved)) => read_need(&resolved, exclusions),
            (Category::FileWrite, Ok(resolved)) => write_need(&resolved, exclusions),
            (Category::FileRead | Category::FileWrite, Err(_)) => return shell(line, self.shown, None),
            (other, _) => Need::new(other, self.path),
        };
        Need { command: Some(line.to_owned()), ..need }
    }
}
