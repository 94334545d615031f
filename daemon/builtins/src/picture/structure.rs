//! The size of an image, whether it moves, and whether its end is there, from its bytes. Nothing is decompressed; the time
//! is linear in the length.

/// What the structure of an image says.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct PictureStructure {
    pub(super) width: u32,
    pub(super) height: u32,
    /// It has more than one picture.
    pub(super) animated: bool,
    /// Its end is there.
    pub(super) whole: bool,
}

/// The structure of an image of one of the four formats that models take; `None` if it has no size that can be read.
pub(super) fn structure(mime_type: &str, bytes: &[u8]) -> Option<PictureStructure> {
    match mime_type {
        "image/png" => png(bytes),
        "image/jpeg" => jpeg(bytes),
        "image/gif" => gif(bytes),
        "image/webp" => webp(bytes),
        _ => None,
    }
}

/// `N` bytes from `at`.
fn array<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at.checked_add(N)?)?.try_into().ok()
}

fn big32(bytes: &[u8], at: usize) -> Option<u32> {
    array(bytes, at).map(u32::from_be_bytes)
}

fn big16(bytes: &[u8], at: usize) -> Option<u32> {
    array(bytes, at).map(|pair| u16::from_be_bytes(pair).into())
}

fn little32(bytes: &[u8], at: usize) -> Option<u32> {
    array(bytes, at).map(u32::from_le_bytes)
}

fn little24(bytes: &[u8], at: usize) -> Option<u32> {
    let [a, b, c] = array(bytes, at)?;
    Some(u32::from_le_bytes([a, b, c, 0]))
}

fn little16(bytes: &[u8], at: usize) -> Option<u32> {
    array(bytes, at).map(|pair| u16::from_le_bytes(pair).into())
}

/// Chunks of a length, a name, the content and a checksum.
fn png(bytes: &[u8]) -> Option<PictureStructure> {
    if bytes.get(12..16)? != b"IHDR" {
        return None;
    }
    let mut found =
        PictureStructure { width: big32(bytes, 16)?, height: big32(bytes, 20)?, animated: false, whole: false };
    let mut at = 8;
    while let Some(length) = big32(bytes, at) {
        let Some(end) = at.checked_add(12 + length as usize).filter(|end| *end <= bytes.len()) else { break };
        match &bytes[at + 4..at + 8] {
            b"acTL" => found.animated = true,
            b"IEND" => {
                found.whole = true;
                break;
            }
            _ => {}
        }
        at = end;
    }
    Some(found)
}

/// Segments of a marker, a length and the content; then data up to the marker of the end.
fn jpeg(bytes: &[u8]) -> Option<PictureStructure> {
    let mut at = 2;
    let mut size = None;
    loop {
        let marker = loop {
            // Any number of fill bytes may stand before a marker.
            let (Some(&before), Some(&marker)) = (bytes.get(at), bytes.get(at + 1)) else {
                let (width, height) = size?;
                return Some(PictureStructure { width, height, animated: false, whole: false });
            };
            if before == 0xff && marker != 0xff {
                break marker;
            }
            at += 1;
        };
        match marker {
            // Each of the kinds of frames, but no tables, which have numbers among them.
            0xc0..=0xcf if !matches!(marker, 0xc4 | 0xc8 | 0xcc) => {
                size = Some((big16(bytes, at + 7)?, big16(bytes, at + 5)?));
            }
            // The data begin. What follows the end, such as a second picture of a phone, is no part of this one.
            0xda => {
                let (width, height) = size?;
                let whole = bytes[at..].windows(2).any(|pair| pair == [0xff, 0xd9]);
                return Some(PictureStructure { width, height, animated: false, whole });
            }
            _ => {}
        }
        at += 2 + big16(bytes, at + 2)?.max(2) as usize;
    }
}

/// Blocks of kinds with a length each, and of pieces of up to 255 bytes.
fn gif(bytes: &[u8]) -> Option<PictureStructure> {
    let colours = |flags: u8| if flags & 0x80 == 0 { 0 } else { 3 << ((flags & 7) + 1) };
    let mut found =
        PictureStructure { width: little16(bytes, 6)?, height: little16(bytes, 8)?, animated: false, whole: false };
    let mut at = 13 + colours(*bytes.get(10)?);
    let mut pictures = 0;
    while let Some(kind) = bytes.get(at) {
        at += match kind {
            0x21 => 2,
            0x2c => {
                pictures += 1;
                found.animated = pictures > 1;
                let Some(flags) = bytes.get(at + 9) else { break };
                11 + colours(*flags)
            }
            kind => {
                found.whole = *kind == 0x3b;
                break;
            }
        };
        while let Some(piece) = bytes.get(at) {
            at += 1 + *piece as usize;
            if *piece == 0 {
                break;
            }
        }
    }
    Some(found)
}

/// One chunk, which says how long it is; the first one in it has the size.
fn webp(bytes: &[u8]) -> Option<PictureStructure> {
    let whole = little32(bytes, 4)? as usize + 8 <= bytes.len();
    let (width, height, animated) = match bytes.get(12..16)? {
        b"VP8 " => (little16(bytes, 26)? & 0x3fff, little16(bytes, 28)? & 0x3fff, false),
        b"VP8L" => {
            let bits = little32(bytes, 21)?;
            ((bits & 0x3fff) + 1, (bits >> 14 & 0x3fff) + 1, false)
        }
        b"VP8X" => (little24(bytes, 24)? + 1, little24(bytes, 27)? + 1, bytes.get(20)? & 2 != 0),
        _ => return None,
    };
    Some(PictureStructure { width, height, animated, whole })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn found(width: u32, height: u32, animated: bool, whole: bool) -> Option<PictureStructure> {
        Some(PictureStructure { width, height, animated, whole })
    }

    const JPEG: &[u8] = b"\xff\xd8\xff\xe0\0\x04JF\xff\xc4\0\x03x\xff\xff\xc2\0\x0b\x08\0\x05\0\x07\x01\x01\x11\0\
                          \xff\xda\0\x02data\xff\0\xff\xd9";
    /// Two pictures of one pixel, with a table of colours for both.
    const GIF: &[u8] = b"GIF89a\x07\0\x05\0\x80\0\0rgbrgb!\xf9\x04\0\0\0\0\0,\0\0\0\0\x01\0\x01\0\0\x02\x02D\x01\0\
                         ,\0\0\0\0\x01\0\x01\0\0\x02\x02D\x01\0;";

    #[test]
    fn formats_have_their_sizes() {
        assert_eq!(structure("image/jpeg", JPEG), found(7, 5, false, true));
        assert_eq!(structure("image/jpeg", &JPEG[..JPEG.len() - 2]), found(7, 5, false, false));
        assert_eq!(structure("image/gif", GIF), found(7, 5, true, true));
        assert_eq!(structure("image/gif", &GIF[..GIF.len() - 1]), found(7, 5, true, false));
        let mut lossy = b"RIFF\x16\0\0\0WEBPVP8 \0\0\0\0\0\0\0\x9d\x01\x2a\x07\0\x05\0".to_vec();
        assert_eq!(structure("image/webp", &lossy), found(7, 5, false, true));
        lossy.pop();
        assert_eq!(structure("image/webp", &lossy), None);
        let extended = b"RIFF\x16\0\0\0WEBPVP8X\x0a\0\0\0\x02\0\0\0\x06\0\0\x04\0\0";
        assert_eq!(structure("image/webp", extended), found(7, 5, true, true));
        let lossless = b"RIFF\x20\0\0\0WEBPVP8L\x05\0\0\0\x2f\x06\0\x01\0";
        assert_eq!(structure("image/webp", lossless), found(7, 5, false, false));
    }

    #[test]
    fn a_moving_png_has_a_chunk_for_that() {
        let mut png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x07\0\0\0\x05\x08\x02\0\0\0crc1".to_vec();
        png.extend(b"\0\0\0\x08acTL\0\0\0\x02\0\0\0\0crc2\0\0\0\0IENDcrc3");
        assert_eq!(structure("image/png", &png), found(7, 5, true, true));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(bytes in proptest::collection::vec(any::<u8>(), 0..200), at in 0_usize..60) {
            for mime_type in ["image/png", "image/jpeg", "image/gif", "image/webp"] {
                structure(mime_type, &bytes);
            }
            // What begins well, and goes on badly.
            for (mime_type, good) in [("image/jpeg", JPEG), ("image/gif", GIF)] {
                structure(mime_type, &[&good[..at.min(good.len())], &bytes].concat());
            }
        }
    }
}
