//! Patterns of commands.

use toold_proto::shell_word::quoted_unless;

use crate::need::Word;
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

    pub(super) fn matches(&self, given: &[Word]) -> bool {
        let fits = if self.more { given.len() >= self.words.len() } else { given.len() == self.words.len() };
        let mut pairs = self.words.iter().zip(given);
        fits && pairs.all(|(pattern, word)| if word.literal { pattern.matches(&word.text) } else { pattern.is_any() })
    }

    /// Whether the command may turn out to match the pattern. The folder of the program does not
    /// count.
    pub(super) fn may_match(&self, given: &[Word]) -> bool {
        let Some((first, rest)) = given.split_first() else { return false };
        let name = first.text.rsplit('/').next().unwrap_or_default();
        match self.words.split_first() {
            None => true,
            Some((pattern, _)) if first.literal && !pattern.matches(name) && !pattern.matches(&first.text) => false,
            Some((_, patterns)) if first.literal => may_become(rest, patterns, self.more),
            // The name may become any words, options of a wrapper among them.
            Some(_) => true,
        }
    }

    /// Whether the first words of the pattern occur in a line that could not be parsed.
    pub(super) fn may_occur_in(&self, line: &str) -> bool {
        let names: Vec<&str> = self.words.iter().map_while(Wild::as_literal).collect();
        if names.is_empty() {
            return true;
        }
        let plain: String = line.chars().filter(|c| !"'\"\\".contains(*c)).collect();
        let mut found = plain.split(|c: char| c.is_whitespace() || ";|&()<>{}`$/=".contains(c));
        names.iter().all(|name| found.any(|word| word == name.rsplit('/').next().unwrap_or_default()))
    }
}

/// Whether words can turn into a match of the patterns: a word that the shell still changes can
/// become any number of words.
fn may_become(given: &[Word], patterns: &[Wild], more: bool) -> bool {
    // `reachable[n]`: the words so far can become what the first n patterns match.
    let mut reachable = vec![false; patterns.len() + 1];
    reachable[0] = true;
    for word in given {
        let mut next = vec![false; patterns.len() + 1];
        for at in (0..=patterns.len()).filter(|at| reachable[*at]) {
            if at == patterns.len() {
                next[at] |= more || !word.literal;
            } else if !word.literal {
                next[at..].fill(true);
            } else if patterns[at].matches(&word.text) {
                next[at + 1] = true;
            }
        }
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

/// A word of a pattern that matches exactly `text`.
pub(crate) fn escape_word(text: &str) -> String {
    quoted_unless(text, |c| c.is_alphanumeric() || "_@%+=:,./-^{}[]!#?~".contains(c))
}
