//! Patterns of commands.

use std::borrow::Borrow;

use toold_proto::cut;
use toold_proto::effect::Effect;
use toold_proto::shell_word::quoted_unless;

use crate::effects::CommandEffects;
use crate::need::{CommandForm, FormOption, Word};
use crate::policy::pattern::scripts::{self, SCRIPT};
use crate::policy::pattern::wild::Wild;
use crate::policy::targets::is_grammar;

#[derive(Clone, Debug)]
pub(super) struct WordsPattern {
    words: Vec<Wild>,
    /// The last word is `*`: any further words may follow, or none.
    more: bool,
}

impl WordsPattern {
    /// Quotes and backslashes make the characters that they quote literal, as in a shell.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut words = split(text)?;
        let more = words.last().is_some_and(Wild::is_any);
        if more {
            words.pop();
        }
        Ok(Self { words, more })
    }

    /// # Errors
    /// Why no command has such words.
    pub(super) fn check(&self) -> Result<(), String> {
        let Some(first) = self.words.first() else { return Ok(()) };
        if let Some(word) = first.as_literal().filter(|word| is_grammar(word)) {
            return Err(format!(
                "it can match nothing: {word:?} is shell syntax, and the commands after it are checked one by one"
            ));
        }
        if self.words.len() > 1 && first.pieces().any(|piece| piece.contains('=')) {
            return Err("it can match nothing: variables before a command are checked separately".to_owned());
        }
        Ok(())
    }

    /// Literal words and wildcards.
    pub(super) fn count(&self) -> (usize, usize) {
        let literal = self.words.iter().filter(|word| word.as_literal().is_some()).count();
        let stars: usize = self.words.iter().map(Wild::stars).sum();
        (literal, stars + usize::from(self.more))
    }

    /// Whether no word but the last, which stands for further ones, has a wildcard.
    pub(super) fn is_literal(&self) -> bool {
        self.words.iter().all(|word| word.as_literal().is_some())
    }

    /// Whether its second word is a subcommand, and none asks for help.
    pub(super) fn is_of_operation(&self) -> bool {
        let texts = || self.words.iter().skip(1).map(Wild::as_literal);
        texts().next().flatten().is_some_and(|text| !text.starts_with('-'))
            && !texts().flatten().any(|text| matches!(text, "--help" | "help"))
    }

    pub(super) fn matches(&self, given: &[Word]) -> bool {
        let fits = if self.more { given.len() >= self.words.len() } else { given.len() == self.words.len() };
        let mut pairs = self.words.iter().zip(given);
        fits && pairs.all(|(pattern, word)| match word.literal {
            true => pattern.matches(&word.text),
            false => pattern.is_any() || FileNames::of(word).is_some() && pattern.covers_wild(&word.text),
        })
    }

    /// Whether the words that choose the operation are among those of the pattern, in their order.
    pub(super) fn names_operation(&self, effects: &CommandEffects) -> bool {
        let mut own = self.words.iter().enumerate().filter_map(|(at, word)| {
            let text = word.as_literal()?;
            Some(if at == 0 { text.rsplit('/').next().unwrap_or_default() } else { text })
        });
        effects.name.iter().enumerate().all(|(at, name)| {
            let name = if at == 0 { name.rsplit('/').next().unwrap_or_default() } else { name };
            own.any(|own| own == name)
        })
    }

    /// Whether the wildcards take in no effect that the pattern does not show. A pattern that names the operation covers its
    /// effects, and those of the options and operands among its own words; one that does not, such as `git *`, covers any
    /// operation but those with the worst effects.
    pub(super) fn covers_effects(&self, effects: &CommandEffects) -> bool {
        let names_operation = self.names_operation(effects);
        let shows = |words: &[String]| {
            self.words.iter().filter_map(Wild::as_literal).any(|own| {
                let is_in_bundle = |option: &String| {
                    let letter = option.strip_prefix('-').filter(|letter| letter.len() == 1);
                    letters_of(own).zip(letter).is_some_and(|(letters, letter)| letters.contains(letter))
                };
                words.iter().any(|word| word == own || is_in_bundle(word))
            })
        };
        // `--repo=a/b` and `-Ra/b` show the option as well.
        let shows_place = |names: &Vec<String>| {
            self.words.iter().filter_map(|word| word.pieces().next()).any(|own| {
                let is_short = |name: &str| name.len() == 2 && own.len() > 2 && !own.starts_with("--");
                names.iter().any(|name| match own.strip_prefix(name.as_str()) {
                    Some(rest) => rest.is_empty() || rest.starts_with('=') || is_short(name),
                    None => false,
                })
            })
        };
        let shows_target = |target: &&String| self.words.iter().skip(1).any(|own| own.matches(target));
        let shown = effects.targets.iter().filter(shows_target).count();
        (shown == 0 || shown == effects.targets.len())
            && effects.places.iter().all(shows_place)
            && (names_operation || !effects.operation.iter().any(Effect::must_be_named))
            && effects.added.iter().all(|added| {
                added.effect == Effect::Read
                    || effects.operation.contains(added.effect)
                    || shows(&added.words)
                    || !names_operation && !added.effect.must_be_named()
            })
    }

    /// Whether all commands that `narrow` matches are among those that this pattern is about.
    pub(super) fn includes(&self, narrow: &Self) -> bool {
        // No literal word matches it, but each wildcard does.
        const ANY: &str = "\u{1}";
        let word = |word: &Wild| Word { text: word.as_literal().unwrap_or(ANY).to_owned(), literal: true };
        let words: Vec<Word> = narrow.words.iter().map(word).collect();
        (self.more || !narrow.more) && (self.matches(&words) || self.may_match(&words, None))
    }

    /// Whether the command may turn out to be one that the pattern means. The folder of the program does not count, nor
    /// does where its options stand and how they are spelled.
    pub(super) fn may_match(&self, given: &[Word], form: Option<&CommandForm>) -> bool {
        let Some((first, rest)) = given.split_first() else { return false };
        let Some((pattern, patterns)) = self.words.split_first() else { return true };
        if first.literal && first.text == SCRIPT {
            return scripts::may_match(rest, &self.words, self.more);
        }
        if !first.literal {
            // A variable is set; otherwise the name may become any words, options of a wrapper among them.
            return match variable_of(&first.text).filter(|_| rest.is_empty()) {
                Some(known) => pattern.may_begin_with(known),
                None => true,
            };
        }
        let name = first.text.rsplit('/').next().unwrap_or_default();
        // As the first word, too, a `*` stands for any words, or for none.
        let spanning = if pattern.is_any() { &self.words } else { patterns };
        let is_one = (pattern.matches(name) || pattern.matches(&first.text))
            && (may_become(rest, patterns, self.more, StarMeaning::OneWord)
                || match form {
                    Some(form) => has_form(form, spanning, self.more),
                    None => occurs_in_order(rest, spanning, self.more),
                });
        let is_none = || {
            let behind = Self { words: patterns.to_vec(), more: self.more };
            pattern.is_any() && !patterns.is_empty() && behind.may_match(given, form)
        };
        is_one || is_none()
    }

    /// Whether the first words of the pattern occur in a line that could not be parsed.
    pub(super) fn may_occur_in(&self, line: &str) -> bool {
        let names: Vec<&str> = self.words.iter().map_while(Wild::as_literal).collect();
        if names.is_empty() {
            return true;
        }
        let plain: String = line.chars().filter(|c| !"'\"\\".contains(*c)).collect();
        let mut found = plain.split(|c: char| c.is_whitespace() || ";|&()<>{}[],`$/=!+:@%".contains(c));
        names.iter().all(|name| found.any(|word| word == name.rsplit('/').next().unwrap_or_default()))
    }
}

/// `NAME=` of a variable that is set.
fn variable_of(text: &str) -> Option<&str> {
    let (known, _) = text.split_at_checked(text.find('=')? + 1)?;
    let name = known.strip_suffix('=')?;
    let name = name.strip_suffix('+').unwrap_or(name);
    let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    is_name.then_some(known)
}

/// A word in which the shell changes only `*` and `?`: it becomes names of files, or stays as it is.
struct FileNames {
    /// With stars for both.
    names: Wild,
    start: String,
    slashes: usize,
    /// `**` may stand for several folders.
    is_deep: bool,
}

impl FileNames {
    fn of(word: &Word) -> Option<Self> {
        let plain = |c: char| c.is_ascii_alphanumeric() || "_./-*?".contains(c);
        let wild = word.text.find(['*', '?']).filter(|_| !word.literal && word.text.chars().all(plain))?;
        Some(Self {
            names: Wild::parse(&word.text.replace('?', "*")),
            start: word.text.get(..wild)?.to_owned(),
            slashes: word.text.matches('/').count(),
            is_deep: word.text.contains("**"),
        })
    }

    fn may_be(&self, pattern: &Wild) -> bool {
        match pattern.as_literal() {
            Some(text) => self.names.matches(text) && (self.is_deep || text.matches('/').count() == self.slashes),
            None => {
                let first = pattern.pieces().next().unwrap_or_default();
                first.starts_with(&self.start) || self.start.starts_with(first)
            }
        }
    }
}

/// The word of a pattern that stands for the names of files which the shell makes of a word.
pub(in crate::policy) fn names_of_files(word: &Word) -> Option<String> {
    FileNames::of(word).map(|_| word.text.replace('?', "*"))
}

/// Whether the shell may make an option of a word.
fn may_become_option(word: &Word) -> bool {
    !word.literal && FileNames::of(word).is_none_or(|names| names.start.is_empty() || names.start.starts_with('-'))
}

/// Whether a word of a pattern is an option.
pub(super) fn is_option(pattern: &Wild) -> bool {
    pattern.pieces().next().is_some_and(|start| start.len() > 1 && start.starts_with(['-', '+']) && start != "--")
}

/// Whether the command has the options of the patterns, and maybe others, and its other words can turn into a match.
fn has_form(form: &CommandForm, patterns: &[Wild], more: bool) -> bool {
    // Such a word may become any option.
    let is_open = form.plain.iter().any(may_become_option);
    let mut plain: Vec<&Wild> = Vec::new();
    let mut waiting = patterns.iter().filter(|pattern| pattern.as_literal() != Some("--")).peekable();
    while let Some(pattern) = waiting.next() {
        if !is_option(pattern) {
            plain.push(pattern);
            continue;
        }
        let is_given = |option: &&FormOption| {
            // Programs whose options no table has may take their beginnings for them.
            is_spelled(option, pattern)
                || form.operation.is_some() && option.names.iter().any(|name| is_abbreviated(name, pattern))
        };
        let given: Vec<&FormOption> = form.options.iter().filter(is_given).collect();
        if given.is_empty() && !is_open && !is_bundle(form, pattern) {
            return false;
        }
        // The value of an option is no operand.
        let is_value = |next: &&Wild| {
            let fits = |word: &Word| !word.literal || next.matches(&word.text);
            given.iter().any(|option| option.values.iter().any(fits))
        };
        waiting.next_if(is_value);
    }
    match form.operation.filter(|_| more) {
        Some(count) => {
            plain.retain(|pattern| !pattern.is_any());
            chooses(&form.plain, count, &plain)
        }
        None => may_become(&form.plain, &plain, more, StarMeaning::AnyWords),
    }
}

/// Whether the patterns choose the operation, which so many of the words name: they match its words in order, those up to the
/// last one or the first of them. Further ones occur behind it.
fn chooses(words: &[Word], operation: usize, patterns: &[&Wild]) -> bool {
    let (own, behind) = words.split_at(operation.min(words.len()));
    let occur = |patterns: &[&Wild], words: &[Word]| {
        let mut words = words.iter();
        patterns.iter().all(|pattern| words.any(|word| pattern.matches(&word.text)))
    };
    let Some((verb, groups)) = own.split_last() else { return occur_in_order(behind, patterns.iter().copied()) };
    occur(patterns, own)
        || patterns.iter().enumerate().any(|(at, pattern)| {
            let (before, after) = patterns.split_at(at);
            pattern.matches(&verb.text)
                && occur(before, groups)
                && occur_in_order(behind, after.iter().skip(1).copied())
        })
}

/// Whether the option, with or without its value, is one that the pattern means.
fn is_spelled(option: &FormOption, pattern: &Wild) -> bool {
    option.names.iter().any(|name| {
        pattern.matches(name)
            || option.values.iter().any(|value| match value.literal {
                true => {
                    pattern.matches(&format!("{name}={}", value.text))
                        || pattern.matches(&format!("{name}{}", value.text))
                }
                false => pattern.pieces().next().is_some_and(|start| start.starts_with(name.as_str())),
            })
    })
}

/// Whether all letters of `-rf` are given.
fn is_bundle(form: &CommandForm, pattern: &Wild) -> bool {
    pattern.as_literal().and_then(letters_of).is_some_and(|letters| {
        letters.chars().all(|letter| {
            let name = format!("-{letter}");
            form.options.iter().any(|option| option.names.contains(&name))
        })
    })
}

/// `rf` of `-rf`.
fn letters_of(option: &str) -> Option<&str> {
    option.strip_prefix('-').filter(|letters| !letters.starts_with('-'))
}

/// For a program whose words cannot be told apart: whether the words of the pattern occur in this order, and its options
/// anywhere.
pub(super) fn occurs_in_order(given: &[Word], patterns: &[Wild], more: bool) -> bool {
    let looks_like_option = |word: &&Word| word.literal && word.text.len() > 1 && word.text.starts_with(['-', '+']);
    let (options, plain): (Vec<&Word>, Vec<&Word>) = given.iter().partition(looks_like_option);
    let is_open = plain.iter().any(|word| may_become_option(word));
    let names_it = |pattern: &Wild| {
        let bundles = || options.iter().filter(|word| !word.text.starts_with("--"));
        pattern
            .as_literal()
            .and_then(letters_of)
            .is_some_and(|letters| letters.chars().all(|letter| bundles().any(|word| word.text.contains(letter))))
            || options.iter().any(|word| {
                let name = word.text.split('=').next().unwrap_or_default();
                pattern.matches(&word.text) || pattern.matches(name) || is_abbreviated(name, pattern)
            })
    };
    let patterns = || patterns.iter().filter(|pattern| pattern.as_literal() != Some("--"));
    if !is_open && !patterns().filter(|pattern| is_option(pattern)).all(names_it) {
        return false;
    }
    let wanted: Vec<&Wild> = patterns().filter(|pattern| !is_option(pattern)).collect();
    if !more {
        let plain: Vec<Word> = plain.into_iter().cloned().collect();
        return may_become(&plain, &wanted, false, StarMeaning::AnyWords);
    }
    occur_in_order(plain, wanted.into_iter().filter(|pattern| !pattern.is_any()))
}

/// Whether a word is the beginning of a long option.
fn is_abbreviated(text: &str, pattern: &Wild) -> bool {
    let wanted = pattern.as_literal().filter(|wanted| text.len() > 3 && wanted.starts_with("--"));
    wanted.is_some_and(|wanted| wanted.starts_with(text))
}

/// Whether words can turn into some that the patterns match in this order, with any others among them.
fn occur_in_order<'w, 'p>(words: impl IntoIterator<Item = &'w Word>, wanted: impl Iterator<Item = &'p Wild>) -> bool {
    let mut wanted = wanted.peekable();
    for word in words {
        if !word.literal {
            let Some(names) = FileNames::of(word) else { return true };
            while wanted.next_if(|pattern| names.may_be(pattern)).is_some() {}
            continue;
        }
        wanted.next_if(|pattern| pattern.matches(&word.text));
    }
    wanted.peek().is_none()
}

/// The meaning of a `*` alone, in front of other words of a rule that denies or asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StarMeaning {
    OneWord,
    /// Or none.
    AnyWords,
}

/// Whether words can turn into a match of the patterns: a word that the shell still changes can
/// become any number of words.
fn may_become<W: Borrow<Wild>>(given: &[Word], patterns: &[W], more: bool, star: StarMeaning) -> bool {
    let spans =
        |at: usize| star == StarMeaning::AnyWords && patterns.get(at).is_some_and(|pattern| pattern.borrow().is_any());
    let skip_stars = |reachable: &mut [bool]| {
        for at in 0..patterns.len() {
            reachable[at + 1] |= reachable[at] && spans(at);
        }
    };
    // `reachable[n]`: the words so far can become what the first n patterns match.
    let mut reachable = vec![false; patterns.len() + 1];
    reachable[0] = true;
    skip_stars(&mut reachable);
    for word in given {
        let names = FileNames::of(word);
        let mut next = vec![false; patterns.len() + 1];
        for at in (0..=patterns.len()).filter(|at| reachable[*at]) {
            if at == patterns.len() {
                next[at] |= more || !word.literal;
            } else if spans(at) {
                next[at] = true;
            } else if let Some(names) = &names {
                let fits = patterns[at..].iter().take_while(|pattern| names.may_be((*pattern).borrow())).count();
                next[at..=at + fits].fill(true);
            } else if !word.literal {
                next[at..].fill(true);
            } else if patterns[at].borrow().matches(&word.text) {
                next[at + 1] = true;
            }
        }
        skip_stars(&mut next);
        reachable = next;
    }
    reachable[patterns.len()]
}

fn split(text: &str) -> Result<Vec<Wild>, String> {
    let mut words = Vec::new();
    // The pieces of the current word.
    let mut word: Option<Vec<String>> = None;
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c == ' ' || c == '\t' {
            words.extend(word.take().map(Wild::from_pieces));
            continue;
        }
        let pieces = word.get_or_insert_with(|| vec![String::new()]);
        let last = pieces.last_mut().expect("a word has a piece from its start");
        match c {
            '*' => {
                if !(last.is_empty() && pieces.len() > 1) {
                    pieces.push(String::new());
                }
            }
            '\\' => last.push(chars.next().ok_or("it ends with a backslash")?),
            '\'' => loop {
                match chars.next().ok_or("a quote is not closed")? {
                    '\'' => break,
                    inner => last.push(inner),
                }
            },
            '"' => loop {
                match chars.next().ok_or("a quote is not closed")? {
                    '"' => break,
                    '\\' => last.push(chars.next().ok_or("a quote is not closed")?),
                    inner => last.push(inner),
                }
            },
            ';' | '|' | '&' | '<' | '>' | '(' | ')' | '`' | '$' | '\n' => {
                return Err(format!("{c:?} must be quoted: a pattern describes one simple command"));
            }
            c => last.push(c),
        }
    }
    words.extend(word.map(Wild::from_pieces));
    Ok(words)
}

/// The pattern with the home folder where `~` begins a word, as in a command. Quotes keep it.
pub(crate) fn with_home(pattern: &str, home: &str) -> String {
    let mut written = String::with_capacity(pattern.len());
    let (mut quote, mut before) = (None, ' ');
    let mut rest = pattern.char_indices();
    while let Some((at, c)) = rest.next() {
        let behind = cut::from(pattern, at + c.len_utf8());
        let begins_path = c == '~' && quote.is_none() && matches!(before, ' ' | '\t');
        match c {
            '~' if begins_path && (behind.is_empty() || behind.starts_with(['/', ' ', '\t'])) => {
                written.push_str(&escape_word(home.trim_end_matches('/')));
                before = c;
                continue;
            }
            '\\' if quote != Some('\'') => {
                written.push(c);
                written.extend(rest.next().map(|(_, escaped)| escaped));
                before = c;
                continue;
            }
            '\'' | '"' if quote.is_none() => quote = Some(c),
            c if quote == Some(c) => quote = None,
            _ => {}
        }
        written.push(c);
        before = c;
    }
    written
}

/// A word of a pattern that matches exactly `text`.
pub(crate) fn escape_word(text: &str) -> String {
    if text == "~" || text.starts_with("~/") {
        return format!("'~'{}", if text.len() > 1 { escape_word(cut::after_first(text)) } else { String::new() });
    }
    quoted_unless(text, |c| c.is_alphanumeric() || "_@%+=:,./-^{}[]!#?~".contains(c))
}
