//! How much memory a JSON text takes once it is parsed, computed beforehand: a few bytes of text can become hundreds.

use memchr::memchr2;

/// Bytes of each kind of value in a `serde_json::Value`, with the room that vectors and maps take in advance.
const SCALAR: u64 = 144;
const ARRAY: u64 = 4 * SCALAR;
const OBJECT: u64 = 640;
/// Beside the bytes of the string itself.
const STRING: u64 = SCALAR + 32;

/// Adds up the memory of a JSON text that comes in pieces. Whether the text is JSON does not matter.
#[derive(Clone, Copy, Debug, Default)]
pub struct Weigher {
    weight: u64,
    within: Within,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Within {
    #[default]
    Nothing,
    /// A number, `true`, `false` or `null`.
    Scalar,
    String,
    /// Behind a backslash.
    Escape,
}

impl Weigher {
    /// Takes the next piece; gives the bytes of memory so far, which are more than the parser takes.
    pub fn add(&mut self, mut text: &[u8]) -> u64 {
        while let Some((first, rest)) = text.split_first() {
            match self.within {
                Within::Escape => {
                    self.within = Within::String;
                    text = rest;
                }
                Within::String => {
                    let end = memchr2(b'"', b'\\', text).unwrap_or(text.len());
                    self.weight += end as u64;
                    text = match text.get(end) {
                        Some(b'"') => {
                            self.within = Within::Nothing;
                            &text[end + 1..]
                        }
                        Some(_) => {
                            self.within = Within::Escape;
                            &text[end + 1..]
                        }
                        None => &[],
                    };
                }
                Within::Nothing | Within::Scalar => {
                    self.within = self.begin(*first);
                    text = rest;
                }
            }
        }
        self.weight
    }

    fn begin(&mut self, byte: u8) -> Within {
        match byte {
            b'"' => {
                self.weight += STRING;
                Within::String
            }
            b'[' => {
                self.weight += ARRAY;
                Within::Nothing
            }
            b'{' => {
                self.weight += OBJECT;
                Within::Nothing
            }
            b']' | b'}' | b',' | b':' | b' ' | b'\t' | b'\r' | b'\n' => Within::Nothing,
            _ => {
                self.weight += if self.within == Within::Scalar { 0 } else { SCALAR };
                Within::Scalar
            }
        }
    }
}

/// The memory that a whole JSON text takes once it is parsed, in bytes.
pub fn weight(text: &[u8]) -> u64 {
    Weigher::default().add(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_counted_and_strings_by_their_length() {
        assert_eq!(weight(b"[1,22,333]"), ARRAY + 3 * SCALAR);
        assert_eq!(weight(b"[ true , null ]"), ARRAY + 2 * SCALAR);
        assert_eq!(weight(br#"{"a":1}"#), OBJECT + STRING + 1 + SCALAR);
        assert_eq!(weight(br#""[1,2,\"3\",{}]""#), STRING + 10);
    }

    #[test]
    fn pieces_weigh_as_much_as_the_whole() {
        let text = br#"{"key": ["text \\ and \" more", -1.5e3, {"b": false}], "c": null}"#;
        for size in 1..text.len() {
            let mut weigher = Weigher::default();
            let weight = text.chunks(size).fold(0, |_, piece| weigher.add(piece));
            assert_eq!(weight, super::weight(text), "pieces of {size}");
        }
    }
}
