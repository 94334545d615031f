//! The way on from a command that is refused because of one of many files: a search leaves it out.

use std::path::Path;

use toold_proto::tool::Category;

use super::is_secret;
use super::pattern::Pattern;
use crate::need::Need;

/// For a file with secrets; empty for commands that are no searches and write nothing.
pub(super) fn secret(need: &Need, file: &str) -> String {
    if need.category() == Category::FileWrite {
        return " (no tool changes it: name what lies beside it, or let a person do this in a terminal)".to_owned();
    }
    let is_one = is_secret(&Path::new("/").join(name_of(file))) || need.holds_secrets().iter().any(|of| of == file);
    match searches(need) {
        Some(GrepKind::Files) if Path::new(file).components().any(|part| part.as_os_str() == ".git") => {
            " (leave it out with --exclude-dir=.git)".to_owned()
        }
        Some(search) if is_one => search.without(need, file, false),
        Some(_) | None => String::new(),
    }
}

/// A rule or a grant, in words, with the file that it is about if the need does not show that: one of many.
pub(super) fn with_file(rule: String, pattern: &Pattern, need: &Need) -> String {
    let is_denied = |file: &str| pattern.matches(&Need::new(need.category(), file)).is_some();
    let covered = || need.covers().iter().map(String::as_str);
    let shows_it = pattern.matches(need).is_some();
    let Some(file) = covered().find(|file| is_denied(file)).filter(|_| !shows_it) else { return rule };
    let whole = widest_folder(file, covered().chain([need.target.as_str()]), is_denied);
    let way = searches(need).map(|search| search.without(need, whole, whole != file)).unwrap_or_default();
    format!("{rule}: {file}{way}")
}

/// The widest folder around a file of which all files are denied, or the file.
pub(super) fn widest_folder<'n, 'f>(
    name: &'n str,
    names: impl Iterator<Item = &'f str> + Clone,
    is_denied: impl Fn(&str) -> bool,
) -> &'n str {
    let is_whole = |folder: &&Path| {
        let mut inside = names.clone().filter(|name| Path::new(name).starts_with(folder));
        inside.all(&is_denied)
    };
    let above = Path::new(name).ancestors().skip(1).filter(|folder| !folder.as_os_str().is_empty());
    above.take_while(is_whole).last().and_then(Path::to_str).unwrap_or(name)
}

/// Whether a name has no character that is special in a pattern, or to the shell.
pub(super) fn is_plain(name: &str) -> bool {
    name.chars().all(|c| c.is_alphanumeric() || "._-/ +@".contains(c))
}

#[derive(Clone, Copy)]
enum GrepKind {
    /// `grep -r`
    Files,
    /// `git grep`
    Tracked,
}

fn searches(need: &Need) -> Option<GrepKind> {
    let command = need.command_naming_it().or(need.line.as_deref()).unwrap_or_default();
    let mut words = command.split_whitespace().map(|word| word.rsplit('/').next().unwrap_or_default());
    let is_of_git = words.clone().next() == Some("git");
    words.any(|word| word == "grep").then_some(if is_of_git { GrepKind::Tracked } else { GrepKind::Files })
}

impl GrepKind {
    /// `grep` compares names without their folders, and Git paths in the folder that it searches.
    fn without(self, need: &Need, path: &str, is_folder: bool) -> String {
        let below = || Path::new(path).strip_prefix(&need.target).ok()?.to_str().filter(|below| !below.is_empty());
        let way = match self {
            Self::Files => {
                let option = if is_folder { "--exclude-dir" } else { "--exclude" };
                Some(name_of(path)).filter(|name| !name.contains(' ')).map(|name| (name, format!("{option}={name}")))
            }
            Self::Tracked => below().map(|below| (below, format!("-- ':(exclude){below}'"))),
        };
        way.filter(|(name, _)| is_plain(name)).map(|(_, way)| format!(" (leave it out with {way})")).unwrap_or_default()
    }
}

fn name_of(path: &str) -> &str {
    Path::new(path).file_name().and_then(|name| name.to_str()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_widest_folder_that_is_denied_is_left_out() {
        let names = ["a.rs", "secrets/k/b.txt", "secrets/k/c.txt", "web/secrets/a.txt", "web/x.ts"];
        let widest = |name, is_denied: &dyn Fn(&str) -> bool| widest_folder(name, names.into_iter(), is_denied);
        let is_secret = |name: &str| name.contains("secrets");
        assert_eq!(widest("secrets/k/b.txt", &is_secret), "secrets");
        assert_eq!(widest("web/secrets/a.txt", &is_secret), "web/secrets");
        assert_eq!(widest("web/x.ts", &|name| name == "web/x.ts"), "web/x.ts");
    }
}
