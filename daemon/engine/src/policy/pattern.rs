//! Patterns of rules and grants, one kind for each category.
//!
//! `**` alone matches every target of its category. Otherwise a command pattern is words, quoted as
//! for a shell; `*` stands for any text within one word, and as the last word for any further
//! words, which add no effect to those of the operation that the pattern names. `$ LINE` is all commands of exactly this
//! line, in which the shell may change words. A file pattern is a glob over the resolved path. A network pattern is `host` or
//! `host:port`, `*` within one label, `**` for any labels; `*` alone is every host. All others are globs over the
//! name; `SERVER/*` is everything of an MCP server, `SERVER/mcp:read` its tools that only read, and `mcp:read` those of all
//! servers.

mod agent_names;
pub(in crate::policy) mod check;
mod emptiness;
pub(in crate::policy) mod host;
pub mod scripts;
pub(in crate::policy) mod wild;
pub(in crate::policy) mod words;

use globset::{GlobBuilder, GlobMatcher};
use toold_proto::tool::Category;

use crate::need::{CommandForm, JudgedCommand, Need, NeedKind, Word};
use crate::policy::pattern::host::HostPattern;
use crate::policy::pattern::words::WordsPattern;

/// A pattern that was read and is valid for its category.
#[derive(Clone, Debug)]
pub struct Pattern {
    text: String,
    kind: PatternKind,
    specificity: Specificity,
}

#[derive(Clone, Debug)]
enum PatternKind {
    Any,
    Words(WordsPattern),
    /// A whole command line, without blanks around it.
    Line(String),
    Glob {
        glob: GlobMatcher,
        /// For `folder/**`: the folder itself.
        folder: Option<GlobMatcher>,
    },
    Host(HostPattern),
    /// The tools of an MCP server, or of all, that only read: see [`Need::reads_only`].
    ReadingTools(Option<GlobMatcher>),
}

/// The pattern of all tools of MCP servers that only read; behind a server's name and `/` that of its own.
pub(in crate::policy) const READING_TOOLS: &str = "mcp:read";

/// The beginning of the pattern of a whole command line: the prompt of a shell.
pub(crate) const LINE: &str = "$ ";

/// How narrowly a pattern matches; greater is more specific.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Specificity {
    exact: bool,
    /// Words, segments or labels without a wildcard.
    literal: usize,
    /// Fewer wildcards are more specific.
    wildcards: std::cmp::Reverse<usize>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the pattern {text:?} of category {category} cannot be used: {reason}")]
pub struct BadPattern {
    pub text: String,
    pub category: Category,
    pub reason: String,
}

impl Pattern {
    /// # Errors
    /// Text that means nothing in this category; the message says what is wrong with it.
    pub fn parse(category: Category, text: &str) -> Result<Self, BadPattern> {
        Self::read(category, text).map_err(|why| bad(category, text, &why))
    }

    /// The error is the reason alone.
    fn read(category: Category, text: &str) -> Result<Self, String> {
        let trimmed = text.trim();
        if trimmed.is_empty() {
            return Err("it is empty".into());
        }
        let (kind, specificity) = match category {
            _ if trimmed == "**" => (PatternKind::Any, specificity(0, usize::MAX)),
            Category::Shell if trimmed.starts_with(LINE) => {
                let line = trimmed.strip_prefix(LINE).unwrap_or_default().trim();
                (PatternKind::Line(line.to_owned()), specificity(1, 0))
            }
            Category::Shell => {
                let words = WordsPattern::parse(trimmed)?;
                let (literal, wildcards) = words.count();
                (PatternKind::Words(words), specificity(literal, wildcards))
            }
            Category::Network => {
                let host = HostPattern::parse(trimmed)?;
                let (literal, wildcards) = host.count();
                (PatternKind::Host(host), specificity(literal, wildcards))
            }
            Category::Mcp if reading_tools_of(trimmed).is_some() => {
                let server = reading_tools_of(trimmed).filter(|server| !server.is_empty());
                let glob = server.map(glob_matcher).transpose()?;
                (PatternKind::ReadingTools(glob), specificity(usize::from(server.is_some()), 1))
            }
            Category::FileRead | Category::FileWrite if !text.starts_with(['/', '*']) => {
                return Err("a path must be absolute, or begin with **".into());
            }
            Category::FileRead | Category::FileWrite | Category::Mcp | Category::Agent | Category::Plugin => {
                let (literal, wildcards) = count_segments(text);
                // Names of tools and URIs of resources may contain slashes.
                let all_of_server =
                    text.strip_suffix("/*").filter(|server| category == Category::Mcp && !server.contains('/'));
                let kind = match all_of_server {
                    Some(server) => globs(&format!("{server}/**"))?,
                    None => globs(text)?,
                };
                (kind, specificity(literal, wildcards))
            }
        };
        Ok(Self { text: text.to_owned(), kind, specificity })
    }

    /// As [`Pattern::parse`], for a rule or a grant that is made now: one that can match nothing is
    /// a mistake. Patterns stored by an earlier version are read by `parse`.
    ///
    /// # Errors
    /// It is invalid, or can match no possible target; the message suggests a correction.
    pub fn parse_to_use(category: Category, text: &str) -> Result<Self, BadPattern> {
        let pattern = Self::parse_as_meant(category, text)?;
        pattern.check(category)?;
        Ok(pattern)
    }

    /// As [`Pattern::parse`], for text that a person writes now: a `*` in the place of a whole host stands for every
    /// host, as `**` does. In patterns stored by an earlier version it stands for one label.
    ///
    /// # Errors
    /// As [`Pattern::parse`].
    pub(crate) fn parse_as_meant(category: Category, text: &str) -> Result<Self, BadPattern> {
        let trimmed = text.trim();
        let meant = match (category, trimmed.split_once(':')) {
            (Category::Network, Some(("*" | "**", "*"))) => "**".to_owned(),
            (Category::Network, Some(("*", port))) => format!("**:{port}"),
            (Category::Network, None) if trimmed == "*" => "**".to_owned(),
            _ => return Self::parse(category, text),
        };
        Self::read(category, &meant).map_err(|why| bad(category, text, &why))
    }

    /// # Errors
    /// It can match no possible target; the message suggests a correction.
    pub fn check(&self, category: Category) -> Result<(), BadPattern> {
        check::check(category, self).map_err(|why| bad(category, &self.text, &why))
    }

    /// Why the pattern, which is valid, may not mean what its author meant, with a pattern that would; for commands.
    /// `is_strict`: the rule denies or asks.
    pub fn otherwise_meant(&self, is_strict: bool) -> Option<String> {
        match &self.kind {
            PatternKind::Words(_) => check::otherwise_meant(self.text.trim(), is_strict),
            PatternKind::Any
            | PatternKind::Line(_)
            | PatternKind::Glob { .. }
            | PatternKind::Host(_)
            | PatternKind::ReadingTools(_) => None,
        }
    }

    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// `**`, which stands for every target.
    pub fn is_any(&self) -> bool {
        matches!(self.kind, PatternKind::Any)
    }

    /// Whether it stands for tools of MCP servers that only read.
    pub(crate) fn is_of_reading_tools(&self) -> bool {
        matches!(self.kind, PatternKind::ReadingTools(_))
    }

    /// Whether it stands for a whole command line.
    pub(crate) fn is_line(&self) -> bool {
        matches!(self.kind, PatternKind::Line(_))
    }

    /// Whether it stands for exactly one target, having no wildcard.
    pub fn is_exact(&self) -> bool {
        self.specificity.exact
    }

    /// How specifically it matches a need of its category; `None` when it does not.
    pub fn matches(&self, need: &Need) -> Option<Specificity> {
        let matches = match &self.kind {
            PatternKind::Any => true,
            PatternKind::Glob { glob, folder } => {
                glob.is_match(&need.target) || folder.as_ref().is_some_and(|folder| folder.is_match(&need.target))
            }
            PatternKind::Host(host) => host.matches(&need.target),
            PatternKind::ReadingTools(server) => need.reads_only() && is_of_server(server.as_ref(), &need.target),
            PatternKind::Line(line) => is_of_line(line, need) && shows_what_runs(need),
            // A command with an uncertain effect is matched by its exact words only.
            PatternKind::Words(words) => {
                let fits = |given: &Option<Vec<Word>>| given.as_deref().is_some_and(|given| words.matches(given));
                need.command().is_some_and(|command| match self.is_exact() {
                    true => fits(&command.words) && !command.runs_input,
                    false => {
                        command.unsure.is_none()
                            && (fits(&command.words) || fits(&command.short))
                            && words.covers_effects(&command.effects)
                    }
                })
            }
        };
        matches.then_some(self.specificity)
    }

    /// Whether it is about the need's operation alone: `git push *`, unlike `git *` and `**`.
    pub(in crate::policy) fn names_operation(&self, need: &Need) -> bool {
        match &self.kind {
            PatternKind::Words(words) => {
                let names = |command: &JudgedCommand| words.names_operation(&command.effects);
                self.is_exact() || need.command().is_some_and(names)
            }
            // It is about one operation, whichever that is.
            PatternKind::Line(_) => true,
            PatternKind::Any | PatternKind::Glob { .. } | PatternKind::Host(_) | PatternKind::ReadingTools(_) => false,
        }
    }

    /// How specifically it is about a need, for rules that deny or ask. A program counts by its name, in whatever folder;
    /// options count in any order and spelling; a word that the shell still changes may become any words; and a command
    /// that is not understood is about each rule whose words occur in it. See also [`Need::may_run_any`].
    pub fn may_match(&self, need: &Need) -> Option<Specificity> {
        let may = match &self.kind {
            PatternKind::Glob { .. } | PatternKind::ReadingTools(_) if need.kind == NeedKind::AgentMcp => {
                agent_names::may_match(&self.text, &need.target)
            }
            PatternKind::Words(words) => {
                let concerns =
                    |given: &Option<Vec<Word>>, form: &Option<CommandForm>, target: &str, is_unsure: bool| {
                        given.as_deref().is_some_and(|given| words.may_match(given, form.as_ref()))
                            || (is_unsure || given.is_none()) && words.may_occur_in(target)
                    };
                need.command().is_some_and(|command| {
                    concerns(&command.words, &command.form, &need.target, command.may_run_any || command.runs_written)
                        || command.script.as_deref().is_some_and(|script| words.may_occur_in(script))
                        || command.elsewhere.iter().any(|inner| {
                            let has_text = inner.is_unsure || inner.may_run_any || !inner.target.is_empty();
                            concerns(&inner.words, &inner.form, &inner.target, has_text)
                        })
                })
            }
            PatternKind::Line(line) => is_of_line(line, need),
            // Any tool may be one that only reads.
            PatternKind::ReadingTools(server) => is_of_server(server.as_ref(), &need.target),
            PatternKind::Any | PatternKind::Glob { .. } | PatternKind::Host(_) => false,
        };
        let covers = |target: &String| match &self.kind {
            PatternKind::Glob { glob, folder } => {
                glob.is_match(target) || folder.as_ref().is_some_and(|folder| folder.is_match(target))
            }
            PatternKind::Any
            | PatternKind::Words(_)
            | PatternKind::Line(_)
            | PatternKind::Host(_)
            | PatternKind::ReadingTools(_) => false,
        };
        self.matches(need).or_else(|| (may || need.covers().iter().any(covers)).then_some(self.specificity))
    }

    /// Whether it is about an operation of a program, and not about asking for help: `git push *`, unlike `git *` and `rm -rf *`.
    pub(in crate::policy) fn is_of_operation(&self) -> bool {
        matches!(&self.kind, PatternKind::Words(words) if words.is_of_operation())
    }

    /// Whether it may match a file in this folder, whose path is absolute, as far as its text up to the first wildcard tells.
    pub(in crate::policy) fn may_match_below(&self, folder: &str) -> bool {
        match &self.kind {
            PatternKind::Any => true,
            PatternKind::Glob { .. } => {
                let start = self.text.split(['*', '?', '[', '{', '\\']).next().unwrap_or_default();
                let folder = format!("{}/", folder.trim_end_matches('/'));
                folder.starts_with(start) || start.starts_with(&folder)
            }
            PatternKind::Words(_) | PatternKind::Line(_) | PatternKind::Host(_) | PatternKind::ReadingTools(_) => false,
        }
    }

    /// Whether it may match a file with this last part of its path, in some folder.
    pub(in crate::policy) fn may_match_name(&self, name: &str) -> bool {
        match &self.kind {
            PatternKind::Any => true,
            PatternKind::Glob { .. } => {
                let last = self.text.rsplit('/').next().unwrap_or_default();
                // Alternatives may contain slashes.
                let is_whole = last.matches('{').count() == last.matches('}').count();
                !is_whole || glob_matcher(last).is_ok_and(|glob| glob.is_match(name))
            }
            PatternKind::Words(_) | PatternKind::Line(_) | PatternKind::Host(_) | PatternKind::ReadingTools(_) => false,
        }
    }

    /// Whether it may be about a command only because of what the shell makes of a word behind the program's name, and the
    /// command does not have the pattern's own words.
    pub fn depends_on_expansion(&self, need: &Need) -> bool {
        // No pattern has such a word.
        const OTHER: &str = "\u{1}";
        let PatternKind::Words(words) = &self.kind else { return false };
        let fixed = |words: &mut [Word]| {
            for word in words.iter_mut().filter(|word| !word.literal) {
                *word = Word { text: OTHER.to_owned(), literal: true };
            }
        };
        let fixed_form = |form: &mut Option<CommandForm>| {
            if let Some(form) = form {
                fixed(&mut form.plain);
                form.options.iter_mut().for_each(|option| fixed(&mut option.values));
            }
        };
        let as_written = need.clone().with_command(|command| {
            let inner = command.elsewhere.iter_mut().map(|inner| (&mut inner.words, &mut inner.form));
            for (words, form) in inner.chain([(&mut command.words, &mut command.form)]) {
                words.iter_mut().for_each(|words| fixed(words.get_mut(1..).unwrap_or_default()));
                fixed_form(form);
            }
        });
        let own_words_occur = words.is_literal() && words.may_occur_in(&need.target);
        self.may_match(need).is_some() && self.may_match(&as_written).is_none() && !own_words_occur
    }
}

/// Whether every target that `narrow` matches is one that `wide` is about, as far as their texts tell: a rule that allows
/// `narrow` is then an exception from a rule that asks about `wide`.
pub(in crate::policy) fn is_exception(narrow: &Pattern, wide: &Pattern) -> bool {
    match (&wide.kind, &narrow.kind) {
        (PatternKind::Any, _) => true,
        (_, PatternKind::Any) => false,
        _ if narrow.is_exact() => true,
        (PatternKind::Words(wide), PatternKind::Words(narrow)) => wide.includes(narrow),
        (PatternKind::Glob { .. }, PatternKind::ReadingTools(_)) => {
            let server = reading_tools_of(&narrow.text).filter(|server| !server.is_empty()).unwrap_or("*");
            [format!("{server}/*"), format!("{server}/**"), "*/*".to_owned(), "*/**".to_owned()].contains(&wide.text)
        }
        (PatternKind::ReadingTools(server), PatternKind::ReadingTools(_)) => {
            server.is_none() || wide.text == narrow.text
        }
        // A wildcard of the narrow pattern counts as a name that only a wildcard matches.
        (PatternKind::Glob { glob, folder }, PatternKind::Glob { .. }) => {
            glob.is_match(&narrow.text) || folder.as_ref().is_some_and(|folder| folder.is_match(&narrow.text))
        }
        (PatternKind::Host(_), _) => true,
        (PatternKind::Words(_) | PatternKind::Line(_) | PatternKind::Glob { .. } | PatternKind::ReadingTools(_), _) => {
            false
        }
    }
}

/// Whether a command is one of this line.
fn is_of_line(line: &str, need: &Need) -> bool {
    need.command().is_some() && need.line.as_deref().is_some_and(|of| of.trim() == line)
}

/// Whether the text of the line says which program runs and which files it may touch: where these are not known, no variable, no
/// wildcard, no output of another command and no input decides them.
fn shows_what_runs(need: &Need) -> bool {
    let expands = need.line.as_deref().is_some_and(|line| line.contains(['$', '`', '*', '?', '[', '{', '~']));
    let is_known = !need.may_run_any() && !need.hides_file();
    !need.always_asked && (is_known || !expands) && need.command().is_some_and(|command| !command.runs_input)
}

fn bad(category: Category, text: &str, why: &str) -> BadPattern {
    let reason = format!("{why}{}", check::perhaps(category, text));
    BadPattern { text: text.to_owned(), category, reason }
}

fn specificity(literal: usize, wildcards: usize) -> Specificity {
    Specificity { exact: wildcards == 0, literal, wildcards: std::cmp::Reverse(wildcards) }
}

/// The server whose tools that only read a pattern is about; empty for all servers.
fn reading_tools_of(text: &str) -> Option<&str> {
    let server = text.strip_suffix(READING_TOOLS)?;
    if server.is_empty() { Some(server) } else { server.strip_suffix('/').filter(|server| !server.contains('/')) }
}

fn is_of_server(server: Option<&GlobMatcher>, target: &str) -> bool {
    server.is_none_or(|glob| target.split_once('/').is_some_and(|(name, _)| glob.is_match(name)))
}

fn glob_matcher(text: &str) -> Result<GlobMatcher, String> {
    let glob = GlobBuilder::new(text).literal_separator(true).backslash_escape(true).build();
    glob.map(|glob| glob.compile_matcher()).map_err(|error| error.kind().to_string())
}

fn globs(text: &str) -> Result<PatternKind, String> {
    let folder = text.strip_suffix("/**").filter(|folder| !folder.is_empty() && !folder.ends_with('\\'));
    Ok(PatternKind::Glob { glob: glob_matcher(text)?, folder: folder.map(glob_matcher).transpose()? })
}

/// Segments without a wildcard, and wildcards.
fn count_segments(text: &str) -> (usize, usize) {
    let (mut literal, mut wildcards) = (0, 0);
    for segment in text.split('/').filter(|segment| !segment.is_empty()) {
        let mut escaped = false;
        let mut here = 0;
        for c in segment.chars() {
            here += usize::from(!escaped && "*?[{".contains(c));
            escaped = !escaped && c == '\\';
        }
        wildcards += here;
        literal += usize::from(here == 0);
    }
    (literal, wildcards)
}

/// A glob that matches exactly `text`.
pub fn escape_glob(text: &str) -> String {
    text.chars().flat_map(|c| "*?[]{}!\\,".contains(c).then_some('\\').into_iter().chain([c])).collect()
}

pub(crate) use check::check_tool_glob;

#[cfg(test)]
mod tests;
