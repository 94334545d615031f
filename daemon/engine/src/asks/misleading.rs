//! What is easily misread in the texts of an ask: characters that nobody sees, and those that look like others.

use std::collections::BTreeSet;

/// The number of sentences; the rest would hardly be read.
const MAX_SENTENCES: usize = 4;
/// The number of characters of a word that a sentence shows.
const MAX_SHOWN: usize = 40;

/// Letters of other alphabets that look like Latin ones, so that a word of nothing else looks like a Latin one, unless the text is
/// written in that alphabet.
const LIKE_LATIN: &str = "аеорсухіјѕһԁԛԝӏвнмтАВЕКМНОРСТХУІЈЅԌԛɡոսցհαονιρκΑΒΕΖΗΙΚΜΝΟΡΤΥΧ";

/// Sentences about these texts, for the person who is asked. Linear in their length.
pub(super) fn misleading<'a>(texts: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let (mut unseen, mut alike) = (BTreeSet::new(), BTreeSet::new());
    for text in texts {
        unseen.extend(text.chars().filter(|c| is_unseen(*c)));
        let is_foreign = text.contains(|c: char| is_foreign_letter(c) && !LIKE_LATIN.contains(c));
        let is_wide = text.contains(is_of_wide_script);
        for token in text.split(|c: char| c.is_whitespace() || "'\"`()<>|;&".contains(c)) {
            let is_latin = !is_foreign || token.contains(|c: char| c.is_ascii_alphabetic());
            let words = token.split(|c: char| !c.is_alphanumeric());
            let foreign = words.filter(|word| is_latin && is_mistakable(word));
            alike.extend(foreign.map(|word| (token, word)));
            let signs = token.char_indices().filter(|(at, c)| is_sign_alike(token, *at, *c, is_wide));
            alike.extend(signs.map(|(at, c)| (token, &token[at..at + c.len_utf8()])));
        }
    }
    let unseen = (!unseen.is_empty()).then(|| {
        let codes: Vec<String> = unseen.into_iter().map(code).collect();
        format!("it has characters that cannot be seen: {}", codes.join(", "))
    });
    let alike = alike.into_iter().map(|(token, word)| {
        let letters: BTreeSet<char> = word.chars().filter(|c| !c.is_ascii()).collect();
        let letters: Vec<String> = letters.into_iter().map(|c| format!("{c} ({})", code(c))).collect();
        format!("{:?} has characters that look like others: {}", shortened(token), letters.join(", "))
    });
    unseen.into_iter().chain(alike).take(MAX_SENTENCES).collect()
}

/// Whether a word mixes Latin letters with those of an alphabet that has similar ones, has other shapes of Latin letters, or has only
/// letters that look Latin.
fn is_mistakable(word: &str) -> bool {
    let letters = || word.chars().filter(|c| c.is_alphabetic());
    let mixes = word.contains(|c: char| c.is_ascii_alphabetic()) && word.contains(is_of_similar_alphabet);
    let is_like_latin = || letters().next().is_some() && letters().all(|c| LIKE_LATIN.contains(c));
    mixes || word.contains(is_shape_of_latin) || !word.is_ascii() && is_like_latin()
}

/// A letter of an alphabet in which people write, and that has some letters which look Latin.
fn is_foreign_letter(c: char) -> bool {
    matches!(c, '\u{370}'..='\u{58f}' | '\u{13a0}'..='\u{13ff}' | '\u{1f00}'..='\u{1fff}' | '\u{2c80}'..='\u{2cff}')
        && c.is_alphabetic()
}

/// Latin letters in the shapes of mathematics, numerals and ligatures, and the letters of Lisu.
fn is_shape_of_latin(c: char) -> bool {
    matches!(c, '\u{2100}'..='\u{214f}' | '\u{2160}'..='\u{2188}' | '\u{a4d0}'..='\u{a4f7}' | '\u{fb00}'..='\u{fb06}'
        | '\u{ff21}'..='\u{ff3a}' | '\u{ff41}'..='\u{ff5a}' | '\u{1d400}'..='\u{1d7ff}')
        && c.is_alphanumeric()
}

/// A script that has wide forms of punctuation of its own.
fn is_of_wide_script(c: char) -> bool {
    matches!(c, '\u{2e80}'..='\u{a4cf}' | '\u{ac00}'..='\u{d7af}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
        && c.is_alphabetic()
}

/// Whether a character looks like a sign of the shell, of options or of paths.
fn is_sign_alike(token: &str, at: usize, c: char, is_wide: bool) -> bool {
    let begins_option = || at == 0 && token[c.len_utf8()..].starts_with(char::is_alphanumeric);
    match c {
        '\u{2010}'..='\u{2012}' | '\u{2024}' | '\u{2044}' | '\u{2212}' | '\u{2215}' | '\u{29f8}' => true,
        '\u{2013}'..='\u{2015}' => begins_option(),
        '\u{ff01}'..='\u{ff5e}' => !is_wide && !c.is_alphanumeric(),
        _ => false,
    }
}

/// Cyrillic, Greek, Armenian, Cherokee, and the other shapes of Latin letters.
fn is_of_similar_alphabet(c: char) -> bool {
    matches!(c, '\u{250}'..='\u{2af}' | '\u{370}'..='\u{3ff}' | '\u{400}'..='\u{58f}' | '\u{13a0}'..='\u{13ff}'
        | '\u{1d00}'..='\u{1dbf}' | '\u{1f00}'..='\u{1fff}' | '\u{2100}'..='\u{214f}' | '\u{2c80}'..='\u{2cff}'
        | '\u{a640}'..='\u{a69f}' | '\u{ab70}'..='\u{abbf}' | '\u{ff01}'..='\u{ff5e}' | '\u{1d400}'..='\u{1d7ff}')
}

/// Formatting and filling characters, which have no width or change the order of others, blanks that part no words, and characters
/// that control a terminal.
fn is_unseen(c: char) -> bool {
    let is_blank = c.is_whitespace() && !c.is_ascii();
    is_blank || c.is_control() && !matches!(c, '\n' | '\t' | '\r') || is_format(c)
}

fn is_format(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{2800}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

fn code(c: char) -> String {
    format!("U+{:04X}", u32::from(c))
}

/// The word without what cannot be seen, which could change how the sentence looks.
fn shortened(token: &str) -> String {
    let shown: String = token.chars().filter(|c| !is_unseen(*c)).take(MAX_SHOWN).collect();
    if token.chars().count() > MAX_SHOWN { format!("{shown}…") } else { shown }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn look_alike_and_unseen_characters_are_named() {
        let found = |text: &str| misleading([text]);
        let none = Vec::<String>::new();
        for plain in [
            "git commit -m 'исправил ошибку в main.rs'",
            "cat docs/приложение.md",
            "echo 日本語 café naïve Ærø",
            "awk '{print $1}' < données.csv",
            "λ x",
            "git commit -m 'а теперь и с моделью'",
            "git commit -m '修复：更新；' -m \"don’t – it is 5–6 long\"",
            "printf 'a\\tb'\ncat <<E\n\tx\nE",
        ] {
            assert_eq!(found(plain), none, "{plain}");
        }
        assert_eq!(
            found("curl https://gіthub.com/x"),
            ["\"https://gіthub.com/x\" has characters that look like others: і (U+0456)"]
        );
        assert_eq!(found("curl аррӏе.com").len(), 1);
        assert_eq!(found("ｒm -r src").len(), 1);
        assert_eq!(found("rm\u{200b} -r src \u{202e}txt"), ["it has characters that cannot be seen: U+200B, U+202E"]);
        for word in [
            "x\u{2028}y",
            "x\u{fe0f}",
            "x\u{a0}y",
            "x\u{3000}y",
            "x\u{7}",
            "x\u{9b}",
            "раураӏ",
            "ѕсоре",
            "а",
            "ΡΑΤΗ",
            "ｒｍ",
            "𝗰𝗮𝘁",
            "ⅼs",
            "ꓲs",
            "ﬁx",
            "a․py",
            "src∕x",
            "src⁄x",
            "x‐y",
            "x−y",
            "–x",
            "a；b",
            "a＆b",
        ] {
            assert_eq!(found(&format!("npm run '{word}'")).len(), 1, "{word}");
        }
        let many: String = (0..100).map(|n| format!("gі{n} ")).collect();
        assert_eq!(found(&many).len(), MAX_SENTENCES);
    }
}
