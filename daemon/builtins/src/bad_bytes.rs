//! UTF-8 with some bytes that are not: in memory each such byte is a character that no text has, so that a change of the
//! text keeps it.

use std::borrow::Cow;

/// The characters of the bytes 0x80 to 0xff: the first byte of a sequence that is not valid, and the others. They are at
/// the end of a private plane.
const FIRST: u32 = 0x10_f800;
const OTHER: u32 = 0x10_f900;

/// The byte that a character stands for, and whether a reader sees U+FFFD in its place.
fn byte_of(c: char) -> Option<(u8, bool)> {
    let code = u32::from(c);
    let of = |base: u32| u8::try_from(code.checked_sub(base)?).ok().filter(|byte| *byte >= 0x80);
    of(FIRST).map(|byte| (byte, true)).or_else(|| of(OTHER).map(|byte| (byte, false)))
}

/// The text; `None` if it has characters that stand for bytes, so that the two could not be told apart.
pub(crate) fn decode(bytes: &[u8]) -> Option<String> {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        let bases = std::iter::once(FIRST).chain(std::iter::repeat(OTHER));
        text.extend(
            chunk.invalid().iter().zip(bases).filter_map(|(byte, base)| char::from_u32(base + u32::from(*byte))),
        );
    }
    // Compared at the end: most texts have neither.
    (encode(&text) == bytes).then_some(text)
}

pub(crate) fn encode(text: &str) -> Vec<u8> {
    // The first byte of these characters in UTF-8; few texts have one of this plane.
    if !has_any(text) {
        return text.as_bytes().to_vec();
    }
    let mut bytes = Vec::with_capacity(text.len());
    for c in text.chars() {
        match byte_of(c) {
            Some((byte, _)) => bytes.push(byte),
            None => bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    bytes
}

/// The character that a reader sees in its place: U+FFFD for the first byte of each sequence that is not valid, as in `read`, and
/// `None` for the other bytes.
pub(crate) fn shown_char(c: char) -> Option<char> {
    match byte_of(c) {
        None => Some(c),
        Some((_, true)) => Some('\u{fffd}'),
        Some((_, false)) => None,
    }
}

/// The text for readers.
pub(crate) fn shown(text: &str) -> Cow<'_, str> {
    match has_any(text) {
        true => Cow::Owned(text.chars().filter_map(shown_char).collect()),
        false => Cow::Borrowed(text),
    }
}

pub(crate) fn has_any(text: &str) -> bool {
    memchr::memchr(0xf4, text.as_bytes()).is_some() && text.chars().any(|c| byte_of(c).is_some())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn characters_that_stand_for_bytes_are_not_mistaken_for_them() {
        assert_eq!(decode("a\u{10f8ff}".as_bytes()), None);
        assert!(decode("a\u{10f7ff}\u{10ffff}".as_bytes()).is_some());
    }

    proptest! {
        #[test]
        fn any_bytes_come_back_and_look_as_read_shows_them(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            let text = decode(&bytes).unwrap();
            prop_assert_eq!(shown(&text), String::from_utf8_lossy(&bytes));
            prop_assert_eq!(encode(&text), bytes);
        }
    }
}
