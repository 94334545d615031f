//! Bytes to text, where a character may lie across two chunks.

/// Decodes chunks of UTF-8. What is no UTF-8 becomes U+FFFD; nothing is lost and nothing panics.
#[derive(Debug, Default)]
pub(crate) struct Decoder {
    /// The beginning of a character whose end has not come; at most 3 bytes.
    held: Vec<u8>,
}

impl Decoder {
    pub(crate) fn decode(&mut self, chunk: &[u8]) -> String {
        let mut bytes = std::mem::take(&mut self.held);
        bytes.extend_from_slice(chunk);
        let whole = bytes.len() - unfinished(&bytes);
        self.held = bytes.split_off(whole);
        match String::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
        }
    }

    /// What is left when no more bytes come.
    pub(crate) fn finish(&mut self) -> String {
        String::from_utf8_lossy(&std::mem::take(&mut self.held)).into_owned()
    }
}

/// How many bytes at the end begin a character that may still be finished.
fn unfinished(bytes: &[u8]) -> usize {
    for back in 1..=bytes.len().min(3) {
        let byte = bytes[bytes.len() - back];
        let length = match byte {
            0xC2..=0xDF => 2,
            0xE0..=0xEF => 3,
            0xF0..=0xF4 => 4,
            // A continuation byte: its first byte lies further back.
            0x80..=0xBF => continue,
            _ => return 0,
        };
        return if back < length { back } else { 0 };
    }
    0
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn chunks_give_the_same_text_as_the_whole(text in "\\PC{0,40}", cuts in prop::collection::vec(0usize..160, 0..8)) {
            let bytes = text.as_bytes();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let mut decoder = Decoder::default();
            let mut decoded: String = cuts.windows(2).map(|pair| decoder.decode(&bytes[pair[0]..pair[1]])).collect();
            decoded.push_str(&decoder.finish());
            prop_assert_eq!(decoded, text);
        }

        #[test]
        fn any_bytes_become_text_and_little_is_held(chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..9), 0..9)) {
            let mut decoder = Decoder::default();
            for chunk in &chunks {
                decoder.decode(chunk);
                prop_assert!(decoder.held.len() < 4);
            }
            decoder.finish();
            prop_assert!(decoder.held.is_empty());
        }
    }
}
